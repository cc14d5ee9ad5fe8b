/**
 * @file
 * Arrivals: asks whether all that belongs here has arrived, and says so in every response (the field `word`).
 *
 * A server asks those who may owe it chunks, its *sources*: the satellites that stand in first in this row of the schedule and in the three
 * before it, and those that had its share in these. In the first rows of a schedule also all servers before it, by another schedule or the
 * window. If all satellites are servers, they stand in for each other, and all are sources. Without a schedule the window is the only row.
 *
 * A source is asked by PING at this APID. In its response to a satellite it tells its row (`epoch`), and how many chunks it has that belong
 * to who asks (`chunk_total`). Each is asked until it says "none", in this row, and then the next one. Who had the share is asked last, the
 * last of them at the end: a satellite whose clock is late still sends chunks to these, until it says that it is in this row.
 *
 * Once all have said so, everything has arrived: the satellite is *settled* in that row, and has *caught up*. From then on one source is
 * asked every 4 s. If it owes something, a host has found this satellite silent. If four sources one after another do not answer, or
 * all if there are fewer, this satellite was cut off. Both mean that it has not caught up.
 *
 * A source that is silent may owe something. Then the satellite is not settled until it answers, or until three rows have passed: what is
 * later than that counts as lost, here as on the ground.
 */
#include "sky_service_arrivals.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_home.h"

#define PATIENCE_US  500000u  /* time for an answer */
#define TRIES        2u       /* questions to a source before it is silent */
#define SILENT       4u       /* silent sources, or all if there are fewer: this satellite was cut off */
#define SLOW_US      4000000u /* between two questions of a satellite that is settled */
#define PAUSE_US     1000000u /* before a source that was silent or owes something is asked again; doubles to PAUSE_MAX_US */
#define PAUSE_MAX_US 16000000u

static SKY_Addr_t source_at(const SKY_ServiceCore_t *core, const SKY_Arrivals_t *arrivals, uint32_t at)
{
    const uint32_t slots = core->cfg.torus.slots;
    SKY_ASSERT(at < arrivals->count);
    SKY_ASSERT(arrivals->listed <= SKY_SERVICE_SOURCES);

    if (at < arrivals->listed)
    {
        return arrivals->sources[at];
    }
    const uint32_t   further = at - arrivals->listed;
    const SKY_Addr_t one     = {(uint16_t)(further / slots + 1u), (uint16_t)(further % slots + 1u)};
    SKY_ASSERT(arrivals->asks_all || further < arrivals->before_count);
    return arrivals->asks_all ? one : arrivals->before[further];
}

/* Return the source whose turn it is. */
static SKY_Addr_t source_now(const SKY_ServiceCore_t *core, const SKY_Arrivals_t *arrivals)
{
    SKY_ASSERT(arrivals->left <= arrivals->count);
    SKY_ASSERT(arrivals->left > 0 || arrivals->turn < arrivals->count);
    return source_at(core, arrivals, arrivals->left > 0 ? arrivals->left - 1u : arrivals->turn);
}

/* Begin anew: nothing is known. */
static void begin_anew(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    core->word &= (uint8_t)~SKY_WORD_SETTLED;
    arrivals->left     = arrivals->count;
    arrivals->turn     = 0;
    arrivals->silent   = 0;
    arrivals->tries    = 0;
    arrivals->to_ask   = false;
    arrivals->is_asked = false;
    arrivals->until_us = now_us;
    arrivals->pause_us = PAUSE_US;
    SKY_ASSERT((core->word & SKY_WORD_SETTLED) == 0);
    SKY_ASSERT(!arrivals->to_ask);
}

void SKY_Arrivals_Reset(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals)
{
    if (arrivals->row != 0) /* else it has not been looked at, and the servers before it are those before this one, too */
    {
        arrivals->before_count = arrivals->server_count;
        (void)memcpy(arrivals->before, arrivals->servers, sizeof(arrivals->before));
    }
    arrivals->count     = 0;
    arrivals->row       = 0;
    arrivals->first_row = 0;
    begin_anew(core, arrivals, 0);
    core->word = 0;
    SKY_ASSERT(arrivals->left == 0);
    SKY_ASSERT(arrivals->before_count <= SKY_PLACEMENT_SERVERS_MAX);
}

void SKY_Arrivals_Check(SKY_ServiceCore_t *core, const SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    if (now_us >= arrivals->row_end_us)
    {
        core->word &= (uint8_t)~SKY_WORD_SETTLED;
    }
    SKY_ASSERT((core->word & ~(SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP)) == 0);
    SKY_ASSERT(arrivals->left <= arrivals->count);
}

/* ---- sources ------------------------------------------------------------------------------------------------------ */

/* Add a source, unless it is this satellite or was added before. */
static void add(const SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, SKY_Addr_t source)
{
    bool is_known = SKY_Addr_Equal(source, core->cfg.self);
    SKY_ASSERT(source.plane >= 1);
    SKY_ASSERT(source.slot >= 1);

    for (uint32_t i = 0; i < arrivals->listed && !is_known; ++i)
    {
        is_known = SKY_Addr_Equal(source, arrivals->sources[i]);
    }
    if (!is_known)
    {
        SKY_ASSERT(arrivals->listed < SKY_SERVICE_SOURCES);
        arrivals->sources[arrivals->listed] = source;
        ++arrivals->listed;
    }
}

/* Add the satellites that stand in first in a row. @return false if nobody does */
static bool add_spares(const SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint32_t row)
{
    const SKY_Schedule_t *schedule = SKY_Home_Schedule(core);
    SKY_Addr_t            spares[SKY_STANDINS_SPARES];

    arrivals->server_count = schedule->placement.servers;
    for (uint32_t i = 0; i < arrivals->server_count; ++i)
    {
        arrivals->servers[i] = SKY_Schedule_Server(schedule, row, i);
    }
    SKY_ASSERT(arrivals->server_count >= 1);
    const uint32_t count = SKY_StandIns_Spares(&schedule->placement.torus, SKY_Schedule_Centre(schedule, row), arrivals->servers,
                                               arrivals->server_count, arrivals->cells, spares);
    SKY_ASSERT(count <= SKY_STANDINS_SPARES);

    for (uint32_t i = 0; i < count; ++i)
    {
        add(core, arrivals, spares[i]);
    }
    return count > 0;
}

/* Find the sources of a row, those that are asked last first. */
static void find_sources(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals)
{
    const SKY_Schedule_t *schedule   = SKY_Home_Schedule(core);
    const uint32_t        satellites = (uint32_t)core->cfg.torus.planes * core->cfg.torus.slots;
    const uint32_t        server     = SKY_Home_ServerOf(core, arrivals->row, core->cfg.self);
    const uint32_t        back       = arrivals->row > SKY_SERVICE_BACK ? SKY_SERVICE_BACK : arrivals->row - 1u;
    SKY_ASSERT(arrivals->row >= 1);

    arrivals->listed       = 0;
    arrivals->asks_all     = false;
    arrivals->before_count = arrivals->row - arrivals->first_row < SKY_SERVICE_BACK ? arrivals->before_count : 0;
    for (uint32_t i = 1; i <= back && server < schedule->placement.servers; ++i)
    {
        add(core, arrivals, SKY_Schedule_Server(schedule, arrivals->row - i, server));
    }
    for (uint32_t i = back + 1u; i-- > 0;) /* the servers of this row stay listed */
    {
        arrivals->asks_all = !add_spares(core, arrivals, arrivals->row - i);
    }
    arrivals->count = arrivals->listed + (arrivals->asks_all ? satellites : arrivals->before_count);
    if (server == schedule->placement.servers) /* nothing belongs here */
    {
        arrivals->count = 0;
    }
    SKY_ASSERT(arrivals->listed <= SKY_SERVICE_SOURCES);
    SKY_ASSERT(arrivals->count >= 1 || server == schedule->placement.servers); /* who stands in is no server */
}

static void begin_row(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    const bool had_nobody = arrivals->count == 0;

    arrivals->row        = core->schedule != NULL ? SKY_Schedule_RowAt(core->schedule, now_us) : 1u;
    arrivals->row_end_us = core->schedule != NULL ? SKY_Schedule_EndUs(core->schedule, arrivals->row) : UINT64_MAX;
    arrivals->first_row  = arrivals->first_row == 0 ? arrivals->row : arrivals->first_row;
    find_sources(core, arrivals);
    begin_anew(core, arrivals, now_us);
    core->word = had_nobody ? 0 : core->word; /* it said that it had caught up without a question */
    SKY_ASSERT(now_us < arrivals->row_end_us);
    SKY_ASSERT(arrivals->row >= arrivals->first_row);
}

/* ---- questions ---------------------------------------------------------------------------------------------------- */

/* Wait before the next question. */
static void rest(SKY_Arrivals_t *arrivals, uint64_t until_us)
{
    arrivals->tries    = 0;
    arrivals->is_asked = false;
    arrivals->until_us = until_us;
    SKY_ASSERT(arrivals->count >= 1);
    SKY_ASSERT(!arrivals->to_ask);
}

/* Note that all has arrived, and ask the next source after a while. */
static void settle(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    SKY_ASSERT(arrivals->left == 0);
    core->word |= SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP;
    arrivals->turn     = arrivals->turn + 1u < arrivals->count ? arrivals->turn + 1u : 0;
    arrivals->pause_us = PAUSE_US;
    rest(arrivals, now_us + SLOW_US);
    SKY_ASSERT(arrivals->turn < arrivals->count);
}

/* Note that the source owes nothing. */
static void note_none(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    arrivals->silent   = 0;
    arrivals->pause_us = PAUSE_US;
    arrivals->left -= arrivals->left > 0 ? 1u : 0u;
    if (arrivals->left == 0)
    {
        settle(core, arrivals, now_us);
        return;
    }
    rest(arrivals, now_us);
    SKY_ASSERT(arrivals->left < arrivals->count);
}

/* Note that something may have been put elsewhere meanwhile. */
static void note_away(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    begin_anew(core, arrivals, now_us);
    core->word &= (uint8_t)~SKY_WORD_CAUGHT_UP;
    SKY_ASSERT(core->word == 0);
    SKY_ASSERT(arrivals->left == arrivals->count);
}

/* Note that the source owes something, is not in this row, or is silent: ask it again after a pause. */
static void note_more(SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    rest(arrivals, now_us + arrivals->pause_us);
    arrivals->pause_us = arrivals->pause_us < PAUSE_MAX_US ? 2u * arrivals->pause_us : arrivals->pause_us;
    SKY_ASSERT(arrivals->until_us > now_us);
    SKY_ASSERT(arrivals->pause_us <= PAUSE_MAX_US);
}

/* Note that the source is silent. */
static void note_silence(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    const uint32_t most = arrivals->count < SILENT ? arrivals->count : SILENT;
    SKY_ASSERT(arrivals->silent < most);
    if (arrivals->left > 0)
    {
        note_more(arrivals, now_us);
        return;
    }
    ++arrivals->silent;
    if (arrivals->silent == most)
    {
        note_away(core, arrivals, now_us);
        return;
    }
    settle(core, arrivals, now_us);
    arrivals->until_us = now_us; /* ask another one at once */
    SKY_ASSERT(arrivals->silent >= 1);
}

/* Ask, or note that a source is silent, when it is time. */
static void act(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    arrivals->tries += arrivals->is_asked ? 1u : 0u;
    arrivals->is_asked = false;
    SKY_ASSERT(arrivals->tries <= TRIES);
    if (SKY_Addr_Equal(source_now(core, arrivals), core->cfg.self))
    {
        note_none(core, arrivals, now_us);
        return;
    }
    if (arrivals->tries == TRIES)
    {
        note_silence(core, arrivals, now_us);
        return;
    }
    arrivals->to_ask   = true;
    arrivals->until_us = now_us + PATIENCE_US;
    SKY_ASSERT(!arrivals->is_asked);
}

uint64_t SKY_Arrivals_OnTime(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us)
{
    if (SKY_Home_Schedule(core) == NULL)
    {
        return UINT64_MAX; /* nobody can say what belongs here */
    }
    if (arrivals->row == 0 || now_us >= arrivals->row_end_us)
    {
        begin_row(core, arrivals, now_us);
    }
    if (arrivals->count == 0)
    {
        core->word = SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP;
        return arrivals->row_end_us;
    }
    while (now_us >= arrivals->until_us) /* this satellite passes itself over, and after a silent source another is asked */
    {
        act(core, arrivals, now_us);
    }
    SKY_ASSERT(arrivals->left <= arrivals->count);
    SKY_ASSERT(arrivals->until_us > now_us);
    return arrivals->until_us < arrivals->row_end_us ? arrivals->until_us : arrivals->row_end_us;
}

bool SKY_Arrivals_Next(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t pkt;

    if (!arrivals->to_ask)
    {
        return false;
    }
    arrivals->to_ask     = false;
    arrivals->is_asked   = true;
    arrivals->request_id = SKY_ServiceCore_TakeIds(core);
    SKY_ServiceCore_Request(core, SKY_OP_PING, source_now(core, arrivals), arrivals->request_id, &pkt);
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    SKY_ASSERT(!arrivals->to_ask);
    SKY_ASSERT(arrivals->tries < TRIES);
    return true;
}

bool SKY_Arrivals_Response(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint32_t row = core->schedule != NULL ? arrivals->row : SKY_SCHEDULE_NONE;

    if (!arrivals->is_asked || pkt->op != SKY_OP_PING || pkt->request_id != arrivals->request_id)
    {
        return false;
    }
    SKY_ASSERT(!pkt->is_request);
    if (pkt->status != SKY_STATUS_OK || !SKY_Addr_Equal(pkt->src, source_now(core, arrivals)))
    {
        note_silence(core, arrivals, now_us); /* a satellite on the way says why the question did not get there */
    }
    else if (pkt->epoch == row && pkt->chunk_total == 0)
    {
        note_none(core, arrivals, now_us);
    }
    else if (arrivals->left > 0)
    {
        note_more(arrivals, now_us);
    }
    else if (pkt->epoch == row)
    {
        note_away(core, arrivals, now_us);
    }
    else
    {
        settle(core, arrivals, now_us); /* its clock is in another row: that changes nothing of what is known */
    }
    return true;
}
