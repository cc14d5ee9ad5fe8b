/**
 * @file
 * Census of a block with parity. Where the scrub has found a share missing twice, all servers are asked at their homes by the schedule
 * which chunks they hold, for up to SKY_SERVICE_CENSUS_ROWS rows at a time. Of blocks that wait for a census the one used last comes first.
 * What the answers say is judged in sky_service_verdict.c.
 *
 * If more chunks of a row are lost than it has parity, nobody can decode the block any more: this satellite purges what it holds and begins
 * a word about it. Nobody else begins words about such blocks. It does so only if the scrub found the block broken twice in this row of the
 * schedule, and while no satellite has chunks to hand over (the survey), because a chunk on its way is lost to nobody; and not with
 * SKY_LAYOUT_HOP, where stand-ins keep their chunks for ever. Otherwise what is lost is rebuilt, chunk by chunk, if enough others of the row
 * are held (sky_service_repair.c).
 *
 * A census ends when the row of the schedule changes, or the block is put, replaced or purged meanwhile. What is left undone is found
 * again a period later.
 */
#include "sky_service_census.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_gossip.h"
#include "sky_service_home.h"
#include "sky_service_repair.h"
#include "sky_service_survey.h"
#include "sky_service_verdict.h"
#include "sky_spread.h"

#define US_PER_MS   1000u
#define PATIENCE_US 1000000u  /* time for the answers of a round */
#define ROUNDS      2u        /* a question that was lost is asked again */
#define QUIET_US    10000000u /* time for which a silent server is not asked: each census would wait for it */
#define PAUSE_US    10000u    /* least time between two censuses, or two repairs */

static uint32_t servers_of(const SKY_ServiceCore_t *core)
{
    const SKY_Schedule_t *schedule = SKY_Home_Schedule(core);
    SKY_ASSERT(core->row <= schedule->count);
    SKY_ASSERT(schedule->count >= 1);
    return schedule->placement.servers;
}

/* Return the server that has a share of the block that is counted. */
static uint32_t server_of(const SKY_ServiceCore_t *core, const SKY_Census_t *census, uint32_t share)
{
    SKY_ASSERT(share < servers_of(core));
    return SKY_Spread_Server(census->block.key, census->block.stripe.chunk_total, servers_of(core), share);
}

/* Return the satellite of that server. */
static SKY_Addr_t home_of(const SKY_ServiceCore_t *core, const SKY_Census_t *census, uint32_t share)
{
    SKY_ASSERT(census->row != SKY_SCHEDULE_NONE);
    return SKY_Schedule_Server(SKY_Home_Schedule(core), census->row, server_of(core, census, share));
}

static void stop(SKY_Census_t *census)
{
    SKY_Repair_Stop(&census->repair);
    census->state         = SKY_CENSUS_IDLE;
    census->waiting_count = 0;
    (void)memset(census->to_ask, 0, sizeof(census->to_ask));
    SKY_ASSERT(!SKY_Repair_GoesOn(&census->repair));
}

void SKY_Census_Reset(SKY_Census_t *census)
{
    stop(census);
    SKY_ASSERT(census->state == SKY_CENSUS_IDLE);
}

/* Return true if the schedule says where each chunk of a block is now, and nobody is putting it. */
static bool is_fit(const SKY_ServiceCore_t *core, const SKY_BlockInfo_t *info, uint32_t row, uint64_t now_us)
{
    SKY_ASSERT(info->held > 0);
    const SKY_Stripe_t *stripe = &info->stripe;
    SKY_ASSERT(row != SKY_SCHEDULE_NONE);

    return stripe->code_m > 0 && (uint32_t)stripe->code_k + stripe->code_m == servers_of(core) && now_us >= info->put_until_us &&
           info->epoch <= row;
}

/* Return the block that is counted, or NONE if it is not as it was. */
static uint32_t find(const SKY_ServiceCore_t *core, const SKY_Census_t *census, uint64_t now_us)
{
    const SKY_BlockInfo_t *before = &census->block;
    SKY_ASSERT(before->held > 0);
    const uint32_t  block = SKY_Store_Find(core->store, before->tenant, before->key);
    SKY_BlockInfo_t info;

    const bool is_here = SKY_Store_Block(core->store, block, &info) == SKY_STATUS_OK &&
                         is_fit(core, &info, census->row, now_us) && info.version == before->version &&
                         info.content == before->content && SKY_Stripe_Equal(&info.stripe, &before->stripe) &&
                         SKY_Schedule_RowAt(SKY_Home_Schedule(core), now_us) == census->row;
    SKY_ASSERT(census->state != SKY_CENSUS_IDLE);
    return is_here ? block : SKY_STORE_NONE;
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

/* Write the payload of a question for the first @p count chunks of a share. All servers' shares have the same stride. */
static void write_question(const SKY_Census_t *census, uint32_t servers, uint32_t count, uint8_t *payload)
{
    SKY_ChunkSet_t set;

    (void)SKY_ChunkSet_Init(&set, census->first * servers, servers, count); /* the first server has such chunks */
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_ChunkSet_Add(&set, i);
    }
    (void)SKY_ChunkSet_Encode(&set, payload, SKY_CHUNKSET_MAX_BYTES);
    SKY_ASSERT(count >= 1);
    SKY_ASSERT(count <= SKY_SERVICE_CENSUS_ROWS);
    SKY_ASSERT(SKY_ChunkSet_Size(&set) == count);
}

/* Return the rows that are counted in which a share has a chunk: all, or all but the last, which may be short. */
static uint32_t rows_of(const SKY_Census_t *census, uint32_t share)
{
    SKY_ASSERT(census->rows >= 1);
    SKY_ASSERT(census->rows <= SKY_SERVICE_CENSUS_ROWS);
    return share < SKY_Verdict_Places(census, census->rows - 1u) ? census->rows : census->rows - 1u;
}

/* Note which chunks are here. */
static void count_own(const SKY_ServiceCore_t *core, SKY_Census_t *census, uint32_t block)
{
    const uint32_t rows = rows_of(census, census->self);
    SKY_ASSERT(census->self < servers_of(core));
    SKY_ASSERT(block != SKY_STORE_NONE);

    for (uint32_t i = 0; i < rows; ++i)
    {
        const uint32_t id = (census->first + i) * servers_of(core) + census->self;
        SKY_ASSERT(id < census->block.stripe.chunk_total);

        if (SKY_Store_Has(core->store, block, id))
        {
            census->held[census->self] |= SKY_Verdict_Bit(i);
        }
        else
        {
            census->lost[census->self] |= SKY_Verdict_Bit(i);
        }
    }
    SKY_ASSERT((census->held[census->self] & census->lost[census->self]) == 0);
}

/* Count the rows from @p first on. */
static void count_rows(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, uint32_t block, uint32_t first)
{
    const uint32_t left    = SKY_Stripe_Rows(&census->block.stripe) - first;
    const uint32_t servers = servers_of(core);
    SKY_ASSERT(left >= 1);
    SKY_ASSERT(servers <= SKY_STRIPE_ROW_MAX);

    (void)memset(census->held, 0, sizeof(census->held));
    (void)memset(census->lost, 0, sizeof(census->lost));
    (void)memset(census->unsure, 0, sizeof(census->unsure));
    census->state         = SKY_CENSUS_ASKING;
    census->first         = first;
    census->rows          = left < SKY_SERVICE_CENSUS_ROWS ? left : SKY_SERVICE_CENSUS_ROWS;
    census->at            = 0;
    census->waiting_count = 0;
    for (uint32_t i = 0; i < servers; ++i)
    {
        census->to_ask[i] =
            i != census->self && rows_of(census, i) > 0 && now_us >= census->quiet_until_us[server_of(core, census, i)];
        census->waiting[i] = census->to_ask[i];
        census->waiting_count += census->to_ask[i] ? 1u : 0u;
    }
    write_question(census, servers, census->rows, census->payloads[1]);
    if (census->rows > 1u)
    {
        write_question(census, servers, census->rows - 1u, census->payloads[0]);
    }
    count_own(core, census, block);
    census->rounds     = 1;
    census->until_us   = now_us + PATIENCE_US;
    census->request_id = SKY_ServiceCore_TakeIds(core);
    SKY_ASSERT(!census->waiting[census->self]);
    SKY_ASSERT(census->rows >= 1);
    SKY_ASSERT(census->waiting_count < servers);
}

/* Begin with the block used last among those that were found broken a period ago. @return false if there is none */
static bool begin(SKY_ServiceCore_t *core, SKY_Census_t *census, const SKY_Scrub_t *scrub, uint64_t now_us)
{
    const uint64_t  period_us = (uint64_t)core->cfg.scrub_period_ms * US_PER_MS;
    const uint32_t  row       = SKY_Schedule_RowAt(SKY_Home_Schedule(core), now_us);
    const uint32_t  server    = SKY_Home_ServerOf(core, row, core->cfg.self);
    SKY_StoreWalk_t walk      = {.used = 0};
    SKY_ASSERT(census->state == SKY_CENSUS_IDLE);

    while (row == scrub->row && server < servers_of(core) && SKY_Store_NextUsed(core->store, &walk, &census->block))
    {
        const uint64_t since_us = census->block.suspect_us;

        if (is_fit(core, &census->block, row, now_us) && since_us > 0 && now_us - since_us >= period_us)
        {
            const uint32_t block = SKY_Store_Find(core->store, census->block.tenant, census->block.key);
            SKY_ASSERT(block != SKY_STORE_NONE);

            if (census->row != row)
            {
                (void)memset(census->quiet_until_us, 0, sizeof(census->quiet_until_us)); /* they are others now */
                (void)memset(census->full_until_us, 0, sizeof(census->full_until_us));
            }
            census->row         = row;
            census->self        = SKY_Spread_Share(census->block.key, census->block.stripe.chunk_total, servers_of(core), server);
            census->begun_us    = now_us;
            census->is_whole    = true;
            census->is_degraded = false;
            census->may_purge   = core->schedule != NULL && since_us >= scrub->since_us;
            census->is_ahead    = false;
            count_rows(core, census, now_us, block, 0);
            SKY_ASSERT(census->state == SKY_CENSUS_ASKING);
            return true;
        }
    }
    return false;
}

void SKY_Census_Pull(SKY_Census_t *census)
{
    SKY_Repair_Pull(&census->repair);
    SKY_ASSERT(census->state == SKY_CENSUS_MENDING || !SKY_Repair_GoesOn(&census->repair));
}

bool SKY_Census_Next(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, SKY_Out_t *out)
{
    uint32_t     share = 0;
    SKY_Packet_t pkt;

    if (census->state != SKY_CENSUS_ASKING)
    {
        return SKY_Repair_Next(core, &census->repair, now_us, out);
    }
    while (share < SKY_STRIPE_ROW_MAX && !census->to_ask[share])
    {
        ++share;
    }
    if (share == SKY_STRIPE_ROW_MAX)
    {
        return false;
    }
    const uint32_t count = rows_of(census, share);
    SKY_ASSERT(census->waiting[share]);
    SKY_ASSERT(count >= 1);
    SKY_ASSERT(share != census->self);
    SKY_ASSERT(share < servers_of(core));
    SKY_ASSERT(census->waiting_count >= 1);

    census->to_ask[share] = false;
    SKY_ServiceCore_Request(core, SKY_OP_HAS, home_of(core, census, share), SKY_REQUEST_FIRST(census->request_id) | share, &pkt);
    (void)memcpy(pkt.key, census->block.key, SKY_KEY_BYTES);
    pkt.tenant   = census->block.tenant;
    pkt.chunk_id = census->first * servers_of(core) + share;
    pkt.length   = SKY_CHUNK_SET_BYTES + (count + 7u) / 8u;
    pkt.payload  = census->payloads[count == census->rows ? 1 : 0];
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    return true;
}

static void stop_waiting(SKY_Census_t *census, uint32_t share)
{
    SKY_ASSERT(census->waiting[share]);
    SKY_ASSERT(census->waiting_count >= 1);
    census->waiting[share] = false;
    census->to_ask[share]  = false;
    --census->waiting_count;
}

bool SKY_Census_Response(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(!pkt->is_request);
    const uint32_t share = SKY_REQUEST_NUMBER(pkt->request_id);

    if (census->state == SKY_CENSUS_IDLE)
    {
        return false;
    }
    if (find(core, census, now_us) == SKY_STORE_NONE)
    {
        stop(census);
        return false;
    }
    if (census->state == SKY_CENSUS_MENDING)
    {
        return SKY_Repair_Response(core, &census->repair, now_us, pkt);
    }
    if (SKY_REQUEST_FIRST(pkt->request_id) != SKY_REQUEST_FIRST(census->request_id) || share >= servers_of(core) ||
        !census->waiting[share] || pkt->tenant != census->block.tenant || memcmp(pkt->key, census->block.key, SKY_KEY_BYTES) != 0)
    {
        return false;
    }
    SKY_ASSERT(census->state == SKY_CENSUS_ASKING);
    stop_waiting(census, share);
    /* Other satellites on the way may say why the question did not get there. */
    if (pkt->op == SKY_OP_HAS && SKY_Addr_Equal(pkt->src, home_of(core, census, share)))
    {
        SKY_Verdict_TakeWord(census, share, servers_of(core), rows_of(census, share), pkt);
    }
    return true;
}

void SKY_Census_Unreachable(const SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Addr_t dst)
{
    SKY_ASSERT(census->state != SKY_CENSUS_ASKING || census->row != SKY_SCHEDULE_NONE);
    SKY_Repair_Unreachable(&census->repair, dst);
    for (uint32_t i = 0; census->state == SKY_CENSUS_ASKING && i < servers_of(core); ++i)
    {
        if (census->waiting[i] && SKY_Addr_Equal(home_of(core, census, i), dst))
        {
            stop_waiting(census, i);
        }
    }
}

/* ---- acting ------------------------------------------------------------------------------------------------------- */

/* End the census. @param since_us  time to note at the block: 0 if it is whole */
static void end(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, uint32_t block, uint64_t since_us)
{
    SKY_ASSERT(since_us <= now_us);
    SKY_ASSERT(census->state != SKY_CENSUS_IDLE);
    SKY_Store_Suspect(core->store, block, since_us);
    census->rest_us = now_us + PAUSE_US;
    stop(census);
}

/* Purge a block that nobody can decode, unless chunks of it may be on their way: then it is looked at again a period later. */
static void condemn(SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                    uint32_t block)
{
    const SKY_BlockInfo_t  *info   = &census->block;
    const SKY_StoreBounds_t bounds = {info->version, info->content, info->epoch};
    SKY_ASSERT(info->stripe.code_m > 0);
    SKY_ASSERT(census->begun_us <= now_us);

    if (!census->may_purge || core->schedule->placement.layout == SKY_LAYOUT_HOP ||
        !SKY_Survey_IsSettled(survey, census->row, census->begun_us))
    {
        end(core, census, now_us, block, now_us);
        return;
    }
    end(core, census, now_us, block, now_us);
    core->counters.scrubbed += SKY_Store_Purge(core->store, info->tenant, info->key, &bounds);
    SKY_Gossip_Begin(core, gossip, now_us, info);
    SKY_ASSERT(census->state == SKY_CENSUS_IDLE);
}

/* Judge the rows that were counted. */
static void judge(SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                  uint32_t block)
{
    SKY_ASSERT(census->rows >= 1);
    SKY_ASSERT(census->rounds >= 1);

    if (!census->is_degraded && SKY_Verdict_IsDegraded(census))
    {
        census->is_degraded = true;
        ++core->counters.degraded;
    }
    census->waiting_count = 0;
    census->state         = SKY_CENSUS_MENDING;
    if (SKY_Verdict_IsDead(census) && !census->is_ahead)
    {
        condemn(core, census, gossip, survey, now_us, block);
    }
}

/* ---- mending ------------------------------------------------------------------------------------------------------ */

/* Go on with the rows behind those that are done, or end. */
static void go_on(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, uint32_t block)
{
    SKY_ASSERT(census->state == SKY_CENSUS_MENDING);
    census->is_whole = census->is_whole && SKY_Verdict_IsWhole(census);
    if (census->first + census->rows < SKY_Stripe_Rows(&census->block.stripe))
    {
        count_rows(core, census, now_us, block, census->first + census->rows);
        return;
    }
    end(core, census, now_us, block, census->is_whole ? 0 : now_us);
}

/* Begin to rebuild the next chunk that is lost. @return false if there is none */
static bool begin_repair(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us)
{
    const uint32_t servers = servers_of(core);
    uint8_t        have[SKY_STRIPE_ROW_MAX];
    SKY_ASSERT(!SKY_Repair_GoesOn(&census->repair));
    SKY_ASSERT(census->self < servers);

    if (!SKY_Verdict_NextLost(census, now_us, servers, have))
    {
        return false;
    }
    census->rest_us = now_us + PAUSE_US;
    SKY_Repair_Begin(core, &census->repair, now_us, &census->block, census->row, census->first * servers + census->at, have);
    return true;
}

/* Rebuild what is lost, one chunk after another. @return when to call again */
static uint64_t mend(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, uint32_t block)
{
    uint64_t next_us = SKY_Repair_OnTime(&census->repair, now_us);
    SKY_ASSERT(census->state == SKY_CENSUS_MENDING);

    if (SKY_Repair_GoesOn(&census->repair))
    {
        return next_us;
    }
    if (census->repair.state == SKY_REPAIR_FULL) /* else its sources would be read in vain for each block */
    {
        const uint32_t server = server_of(core, census, census->at % servers_of(core));

        census->full_until_us[server] = now_us + (uint64_t)core->cfg.scrub_period_ms * US_PER_MS;
        census->full_tenant[server]   = census->block.tenant;
    }
    core->counters.repaired += SKY_Verdict_TakeRepair(census, servers_of(core)) ? 1u : 0u;
    if (now_us < census->rest_us)
    {
        return census->rest_us;
    }
    if (!begin_repair(core, census, now_us))
    {
        go_on(core, census, now_us, block);
        return census->state == SKY_CENSUS_ASKING ? census->until_us : census->rest_us;
    }
    next_us = SKY_Repair_OnTime(&census->repair, now_us);
    return next_us < census->rest_us ? next_us : census->rest_us;
}

/* Ask those that have not answered once more, or judge. */
static void look_at_answers(SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Gossip_t *gossip, SKY_Survey_t *survey,
                            uint64_t now_us, uint32_t block)
{
    SKY_ASSERT(census->state == SKY_CENSUS_ASKING);
    if (census->waiting_count > 0 && now_us < census->until_us)
    {
        return;
    }
    if (census->waiting_count > 0 && census->rounds < ROUNDS)
    {
        ++census->rounds;
        census->until_us = now_us + PATIENCE_US;
        (void)memcpy(census->to_ask, census->waiting, sizeof(census->to_ask));
        return;
    }
    for (uint32_t i = 0; census->waiting_count > 0 && i < servers_of(core); ++i)
    {
        if (census->waiting[i])
        {
            census->quiet_until_us[server_of(core, census, i)] = now_us + QUIET_US;
        }
    }
    SKY_ASSERT(census->rounds <= ROUNDS);
    SKY_ASSERT(census->waiting_count == 0 || census->rounds == ROUNDS);
    judge(core, census, gossip, survey, now_us, block);
}

uint64_t SKY_Census_OnTime(SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip,
                           SKY_Survey_t *survey, uint64_t now_us)
{
    SKY_ASSERT(census->state != SKY_CENSUS_IDLE || !SKY_Repair_GoesOn(&census->repair));
    uint32_t block = SKY_STORE_NONE;

    if (core->cfg.scrub_period_ms == 0 || SKY_Home_Schedule(core) == NULL)
    {
        stop(census);
        return UINT64_MAX;
    }
    if (census->state != SKY_CENSUS_IDLE)
    {
        block = find(core, census, now_us);
        if (block == SKY_STORE_NONE)
        {
            stop(census);
        }
    }
    if (census->state == SKY_CENSUS_IDLE && scrub->has_ripe && now_us >= census->rest_us)
    {
        scrub->has_ripe = begin(core, census, scrub, now_us);
    }
    else if (census->state == SKY_CENSUS_ASKING)
    {
        look_at_answers(core, census, gossip, survey, now_us, block);
    }
    if (census->state == SKY_CENSUS_MENDING)
    {
        return mend(core, census, now_us, block);
    }
    SKY_ASSERT(census->state != SKY_CENSUS_IDLE || census->waiting_count == 0);
    if (census->state == SKY_CENSUS_ASKING)
    {
        return census->until_us;
    }
    return scrub->has_ripe ? census->rest_us : UINT64_MAX;
}
