/**
 * @file
 * Questions of the ground to many satellites, one inquiry at a time, and the operations that wait for the result.
 *
 *     LOOK  after an answer that did not come: which satellites do not answer at all?   (sky_reach.h)
 *     BACK  are lost satellites back?
 *     LATE  which satellites have something left to hand over?                          (sky_handovers.h)
 *     BLIND do servers follow a schedule, though this host follows none?
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define STATS_BYTES ((uint32_t)(8u * SKY_STATS_KVC_COUNT))

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* Ask the satellites of the inquiry. @param wait_us  for an answer; 0: as long as five sendings take */
static void AskAll(SKY_Ground_t *ground, uint8_t op, uint64_t wait_us)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(op == SKY_OP_PING || op == SKY_OP_STATS);
    SKY_ASSERT(op == SKY_OP_PING || inquiry->count <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->addrs[i] = inquiry->asks[i].satellite;
    }
    if (wait_us == 0u)
    {
        wait_us = SKY_Host_PatienceUs(&ground->host, inquiry->addrs, inquiry->count);
    }
    inquiry->began_us = ground->now_us;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_ReachAsk_t *ask      = &inquiry->asks[i];
        SKY_HostQuestion_t   *question = &inquiry->questions[i];

        (void)memset(question, 0, sizeof(*question));
        question->place.plane       = ask->satellite.plane;
        question->place.slot        = ask->satellite.slot;
        question->place.entry_plane = ask->entry.plane;
        question->place.entry_slot  = ask->entry.slot;
        question->place.endpoint    = ground->shell.EndpointOf(ground->shell.context, ask->entry);
        question->apid              = SKY_APID_KVC;
        question->op                = op;
        question->deadline_ms       = (uint32_t)(wait_us / SKY_GROUND_US_PER_MS + 1u);
        question->room_bytes        = op == SKY_OP_STATS ? STATS_BYTES : 0u;
        question->room              = op == SKY_OP_STATS ? inquiry->stats + (size_t)i * STATS_BYTES : NULL;
        question->owner             = inquiry;
        SKY_ASSERT(question->place.plane != 0u);
        SKY_ASSERT(question->deadline_ms >= 1u);
        inquiry->running += SKY_GroundQuestion_Ask(ground, question) ? 1u : 0u;
    }
}

/* Add a satellite to those that are asked, unless it is among them. */
static void AddOver(SKY_Ground_t *ground, SKY_Addr_t satellite, SKY_Addr_t entry)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    uint32_t             at      = 0;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(entry.plane != 0u);
    while (at < inquiry->count && !SKY_Addr_Equal(inquiry->asks[at].satellite, satellite))
    {
        ++at;
    }
    if (at == inquiry->count)
    {
        inquiry->asks[at].satellite = satellite;
        inquiry->asks[at].entry     = entry;
        inquiry->asks[at].answered  = false;
        ++inquiry->count;
    }
    SKY_ASSERT(at < inquiry->count);
}

/* Add a satellite, over the way in to it. @return false if nobody is in sight */
static bool AddAsk(SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_HostPlace_t place = SKY_GroundWays_Place(ground, satellite);
    const SKY_Addr_t      entry = {place.entry_plane, place.entry_slot};

    if (place.plane == 0u)
    {
        return false;
    }
    AddOver(ground, satellite, entry);
    return true;
}

static bool IsOk(const SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    return question->status == SKY_STATUS_DONE && question->answer.status == SKY_STATUS_OK;
}

/* ---- a look ---------------------------------------------------------------------------------------------------------- */

/* Most satellites that a look is about: the servers, and the one on which an operation failed. */
static uint32_t AboutMost(const SKY_Ground_t *ground)
{
    return ground->limits.servers + 1u;
}

/* Find others that may be asked, the best first. @return number of them */
static uint32_t FindOthers(SKY_Ground_t *ground)
{
    const uint32_t  satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;
    const uint32_t  near       = 2u * AboutMost(ground) + SKY_HOST_OTHERS + ground->reach.lost_count;
    const uint32_t  uplink     = ground->sky.uplink;
    const bool      is_seen    = uplink == (uint32_t)SKY_UPLINK_SEEN || uplink == (uint32_t)SKY_UPLINK_FIRST;
    const bool      is_aboard  = uplink == (uint32_t)SKY_UPLINK_ABOARD;
    uint32_t        count      = near < satellites ? near : satellites;
    SKY_ReachAsk_t *others     = ground->inquiry.others;

    SKY_ASSERT(near > ground->reach.lost_count);
    const SKY_Addr_t centre = SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground));

    if (is_seen)
    {
        count = ground->sky.seen_count < count ? ground->sky.seen_count : count;
    }
    else
    {
        SKY_StandIns_Nearest(&ground->limits.torus, centre, count, ground->cells);
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_Addr_t near_one = {(uint16_t)ground->cells[i].plane, (uint16_t)ground->cells[i].slot};

        others[i].satellite = is_seen ? ground->sky.seen[i] : near_one;
        others[i].entry     = is_aboard ? centre : others[i].satellite;
        others[i].answered  = false;
        SKY_ASSERT(SKY_Torus_Contains(&ground->limits.torus, others[i].satellite));
    }
    return count;
}

/* Begin a round of a look. @return false if nobody is in sight */
static bool BeginRound(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_LOOK);
    SKY_ASSERT(inquiry->round < SKY_HOST_LOOKS);
    inquiry->count = 0;
    SKY_GroundWays_Servers(ground, SKY_GroundWays_Row(ground));
    for (uint32_t server = 0; server < ground->limits.servers; ++server)
    {
        if (!AddAsk(ground, ground->placed[server]))
        {
            return false;
        }
    }
    if (inquiry->failed.plane != 0u && !SKY_Ground_IsLost(ground, inquiry->failed))
    {
        (void)AddAsk(ground, inquiry->failed);
    }
    ++inquiry->round;
    inquiry->about = inquiry->count;
    SKY_ASSERT(inquiry->about <= AboutMost(ground));
    inquiry->count = SKY_Reach_Around(&ground->reach, inquiry->asks, inquiry->about, inquiry->others, FindOthers(ground));
    SKY_ASSERT(inquiry->count >= inquiry->about);
    AskAll(ground, SKY_OP_PING, 0);
    return true;
}

/* End a round of a look. @return false if another round is under way */
static bool EndRound(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t     *inquiry = &ground->inquiry;
    const SKY_GroundWatch_t *watch   = &ground->shell.watch;
    const uint32_t           losses  = ground->reach.losses;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(inquiry->about >= 1u);
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->asks[i].answered = IsOk(&inquiry->questions[i]);
    }
    const SKY_ReachFound_t found =
        SKY_Reach_Found(&ground->reach, ground->now_us, inquiry->round, inquiry->asks, inquiry->about, inquiry->count);

    SKY_ASSERT(ground->reach.losses >= losses);
    if (found == SKY_REACH_FOUND)
    {
        SKY_Reach_Trust(&ground->reach);
    }
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        if (SKY_Ground_IsLost(ground, inquiry->asks[i].satellite))
        {
            SKY_Host_GiveUp(&ground->host, ground->now_us, inquiry->asks[i].satellite, inquiry->began_us);
        }
    }
    if (watch->Lost != NULL && (found == SKY_REACH_NOBODY || ground->reach.losses != losses))
    {
        watch->Lost(watch->context);
    }
    return found != SKY_REACH_AGAIN || !BeginRound(ground);
}

/* ---- are they back? -------------------------------------------------------------------------------------------------- */

/* Return true if a satellite is one of the servers of now, whoever stands in for it. */
static bool IsServer(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const uint32_t row    = SKY_GroundWays_Row(ground);
    uint32_t       server = 0;

    SKY_ASSERT(row >= 1u);
    while (server < ground->limits.servers && !SKY_Addr_Equal(SKY_Schedule_Server(ground->sky.schedule, row, server), satellite))
    {
        ++server;
    }
    SKY_ASSERT(server <= ground->limits.servers);
    return server < ground->limits.servers;
}

/* Return true if a satellite is one of the first that are in sight. */
static bool IsSeen(const SKY_Ground_t *ground, SKY_Addr_t satellite, uint32_t count)
{
    uint32_t at = 0;

    SKY_ASSERT(count <= ground->sky.seen_count);
    while (at < count && !SKY_Addr_Equal(ground->sky.seen[at], satellite))
    {
        ++at;
    }
    SKY_ASSERT(at <= count);
    return at < count;
}

/* Return true if packets to a satellite may enter the sky there, were it not lost. */
static bool IsEntry(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const uint32_t seen = ground->sky.seen_count;

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(ground->sky.uplink <= (uint32_t)SKY_UPLINK_ABOARD);
    switch (ground->sky.uplink)
    {
        case SKY_UPLINK_CENTRE:
        case SKY_UPLINK_ABOARD:
            return SKY_Addr_Equal(satellite, SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground)));
        case SKY_UPLINK_SEEN:
            return IsSeen(ground, satellite, seen);
        case SKY_UPLINK_FIRST:
            return IsSeen(ground, satellite, seen < 1u ? seen : 1u);
        case SKY_UPLINK_SERVERS:
            return IsServer(ground, satellite);
        default:
            return false; /* all are reached directly in any case */
    }
}

/* Begin to ask lost satellites whether they are back. @return false if none is to be asked now */
static bool BeginBack(SKY_Ground_t *ground, bool doubted)
{
    SKY_GroundInquiry_t *inquiry  = &ground->inquiry;
    const uint32_t       count    = SKY_Reach_AskLost(&ground->reach, ground->now_us, doubted, inquiry->addrs);
    const uint64_t       hurry_us = SKY_Host_HurryUs(&ground->host, inquiry->addrs, count);

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_BACK);
    SKY_ASSERT(hurry_us > 0u || count == 0u);
    inquiry->count = 0;
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_ASSERT(SKY_Ground_IsLost(ground, inquiry->addrs[i]));
        if (IsEntry(ground, inquiry->addrs[i]))
        {
            AddOver(ground, inquiry->addrs[i], inquiry->addrs[i]); /* directly, for it may be the only one in sight */
        }
        else
        {
            (void)AddAsk(ground, inquiry->addrs[i]);
        }
    }
    SKY_ASSERT(inquiry->count <= count);
    if (inquiry->count == 0u)
    {
        return false;
    }
    AskAll(ground, SKY_OP_PING, hurry_us > SKY_HOST_PROBE_US ? hurry_us : SKY_HOST_PROBE_US);
    return true;
}

static void EndBack(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BACK);
    SKY_ASSERT(ground->inquiry.count >= 1u);
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        if (IsOk(&ground->inquiry.questions[i]))
        {
            SKY_Reach_Heard(&ground->reach, ground->inquiry.asks[i].satellite);
        }
    }
}

/* ---- who is late ----------------------------------------------------------------------------------------------------- */

static void BeginPass(SKY_Ground_t *ground)
{
    const uint32_t       satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;
    SKY_GroundInquiry_t *inquiry    = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_LATE);
    SKY_ASSERT(inquiry->search.first <= inquiry->search.row);
    inquiry->count = 0;
    inquiry->about = 0;
    SKY_Places_Left(ground->sky.schedule, inquiry->search.first, inquiry->search.row, inquiry->last_rows);
    SKY_Places_Spares(ground->sky.schedule, inquiry->search.first, inquiry->search.row, inquiry->is_spare, ground->placed,
                      ground->cells);
    for (uint32_t number = 0; number < satellites; ++number)
    {
        const SKY_Addr_t satellite = SKY_GroundWays_AddrOf(ground, number);

        if (inquiry->last_rows[number] != SKY_SCHEDULE_NONE || inquiry->is_spare[number])
        {
            ++inquiry->about;
            if (!SKY_Ground_IsLost(ground, satellite))
            {
                (void)AddAsk(ground, satellite);
            }
        }
    }
    SKY_ASSERT(inquiry->count <= inquiry->about);
    AskAll(ground, SKY_OP_STATS, 0);
}

static uint64_t Counter(const uint8_t *stats, uint32_t number)
{
    uint64_t value = 0;

    SKY_ASSERT(number < SKY_STATS_KVC_COUNT);
    SKY_ASSERT(stats != NULL);
    for (uint32_t i = 0; i < 8u; ++i)
    {
        value = value << 8 | stats[8u * number + i];
    }
    return value;
}

/* Return the counters that a satellite has told; NULL: it has told none. */
static const uint8_t *StatsOf(const SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->op == SKY_OP_STATS);
    return IsOk(question) && question->answer.length == STATS_BYTES ? question->answer.payload : NULL;
}

/* Take in the word of a satellite. @return false if it has said nothing of its handover */
static bool TakeWord(SKY_Ground_t *ground, uint32_t index)
{
    const SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    const uint8_t             *stats   = StatsOf(&inquiry->questions[index]);
    const uint32_t             number  = SKY_GroundWays_NumberOf(ground, inquiry->asks[index].satellite);

    SKY_ASSERT(index < inquiry->count);
    SKY_ASSERT(ground->late_count <= index);
    if (stats == NULL)
    {
        return false;
    }
    const SKY_HandoverWord_t word = {Counter(stats, SKY_STATS_KVC_ROW), Counter(stats, SKY_STATS_KVC_ROWS),
                                     Counter(stats, SKY_STATS_KVC_HANDOVER_LEFT), Counter(stats, SKY_STATS_KVC_USED_BYTES)};

    if (SKY_Handovers_HasLeft(&inquiry->search, &word, inquiry->last_rows[number] != SKY_SCHEDULE_NONE))
    {
        SKY_ASSERT(ground->late_count == 0u || SKY_GroundWays_NumberOf(ground, ground->late[ground->late_count - 1u]) < number);
        ground->late[ground->late_count] = inquiry->asks[index].satellite; /* in ascending order, as they were asked */
        ++ground->late_count;
        if (inquiry->is_spare[number] && SKY_Handovers_HasLeft(&inquiry->search, &word, false))
        {
            ground->spares[ground->spare_count] = inquiry->asks[index].satellite;
            ++ground->spare_count;
        }
    }
    return true;
}

/* End a pass of the search for late satellites. @return false if another pass is under way */
static bool EndPass(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t     *inquiry  = &ground->inquiry;
    const SKY_GroundWatch_t *watch    = &ground->shell.watch;
    uint32_t                 answered = 0;

    ground->late_count  = 0;
    ground->late_first  = inquiry->search.first;
    ground->spare_count = 0;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        answered += TakeWord(ground, i) ? 1u : 0u;
    }
    SKY_ASSERT(ground->late_count <= answered);
    SKY_ASSERT(ground->spare_count <= ground->late_count);
    if (SKY_Handovers_Asked(&ground->handovers, &inquiry->search, ground->now_us, inquiry->about, answered, ground->late_count))
    {
        BeginPass(ground);
        return false;
    }
    if (watch->Searched != NULL)
    {
        watch->Searched(watch->context);
    }
    return true;
}

/* ---- do they follow a schedule? ------------------------------------------------------------------------------------- */

/* Begin to ask the servers of now. @return false if nobody is in sight */
static bool BeginBlind(SKY_Ground_t *ground)
{
    bool is_in_sight = true;

    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BLIND);
    SKY_ASSERT(ground->sky.is_unscheduled);
    ground->is_blind      = false;
    ground->inquiry.count = 0;
    SKY_GroundWays_Servers(ground, SKY_GroundWays_Row(ground));
    for (uint32_t server = 0; is_in_sight && server < ground->limits.servers; ++server)
    {
        is_in_sight = AddAsk(ground, ground->placed[server]);
    }
    if (is_in_sight)
    {
        AskAll(ground, SKY_OP_STATS, SKY_Host_HurryUs(&ground->host, ground->placed, ground->limits.servers));
    }
    return is_in_sight;
}

static void EndBlind(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BLIND);
    SKY_ASSERT(ground->inquiry.count >= 1u);
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        const uint8_t *stats = StatsOf(&ground->inquiry.questions[i]);

        ground->is_blind = ground->is_blind || (stats != NULL && Counter(stats, SKY_STATS_KVC_ROWS) > 0u);
    }
}

/* ---- inquiries ------------------------------------------------------------------------------------------------------- */

/* Return true if the answer that an operation waits for is known already. */
static bool IsKnown(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    return (op->waits == SKY_GROUND_WAIT_LATE && SKY_GroundWays_Late(ground).is_known) ||
           (op->waits == SKY_GROUND_WAIT_LOOK && op->failed_on.plane != 0u && SKY_Ground_IsLost(ground, op->failed_on));
}

static void Resume(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(!op->is_due);
    SKY_ASSERT(op->asking == 0u);
    op->waits  = SKY_GROUND_WAIT_NOT;
    op->is_due = true;
}

/* Begin an inquiry. @param failed  satellite that a look is about besides @param doubts  as for BeginBack @return false if there is
 * nothing to ask */
static bool BeginInquiry(SKY_Ground_t *ground, SKY_GroundWait_t kind, SKY_Addr_t failed, bool doubts)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(kind != SKY_GROUND_WAIT_NOT);
    inquiry->kind    = kind;
    inquiry->round   = 0;
    inquiry->running = 0;
    inquiry->failed  = failed;
    ++inquiry->number;
    switch (inquiry->kind)
    {
        case SKY_GROUND_WAIT_LOOK:
            return BeginRound(ground);
        case SKY_GROUND_WAIT_BACK:
            return BeginBack(ground, doubts);
        case SKY_GROUND_WAIT_BLIND:
            return BeginBlind(ground);
        default:
            SKY_Handovers_Begin(&ground->handovers, &inquiry->search, ground->sky.changes, SKY_GroundWays_Row(ground),
                                ground->sky.schedule->count);
            BeginPass(ground);
            return true;
    }
}

/* End an inquiry of which all have answered, or whose time is over. @return true if it is over */
static bool EndStep(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.running == 0u);
    SKY_ASSERT(ground->inquiry.kind != SKY_GROUND_WAIT_NOT);
    switch (ground->inquiry.kind)
    {
        case SKY_GROUND_WAIT_LOOK:
            return EndRound(ground);
        case SKY_GROUND_WAIT_BACK:
            EndBack(ground);
            return true;
        case SKY_GROUND_WAIT_BLIND:
            EndBlind(ground);
            return true;
        default:
            return EndPass(ground);
    }
}

/* Let the operations go on that waited for the inquiry before it began. */
static void EndInquiry(SKY_Ground_t *ground)
{
    const SKY_GroundWait_t kind = ground->inquiry.kind;

    SKY_ASSERT(kind != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(ground->inquiry.running == 0u);
    ground->inquiry.kind = SKY_GROUND_WAIT_NOT;
    for (SKY_GroundOp_t *op = ground->first; op != NULL; op = op->next)
    {
        if (op->waits == kind && op->waits_for <= ground->inquiry.number)
        {
            Resume(op);
        }
        op->is_due =
            op->is_due || (kind == SKY_GROUND_WAIT_LOOK && op->find.is_open && op->asking > 0u); /* it asks around who is lost */
    }
}

/* Begin a look that no operation waits for: satellites are suspected. @return false if there is nobody to ask */
static bool BeginLook(SKY_Ground_t *ground)
{
    const SKY_Addr_t nobody = {0, 0};
    const uint32_t   away   = SKY_Reach_Away(&ground->reach, ground->away);
    uint32_t         at     = 0;

    SKY_ASSERT(ground->reach.suspects > 0u);
    while (at < away && SKY_Ground_IsLost(ground, ground->away[at]))
    {
        ++at;
    }
    SKY_ASSERT(at < away);
    if (!BeginInquiry(ground, SKY_GROUND_WAIT_LOOK, at < away ? ground->away[at] : nobody, false))
    {
        SKY_Reach_Trust(&ground->reach);
        return false;
    }
    return true;
}

static SKY_GroundOp_t *FirstWaiting(const SKY_Ground_t *ground)
{
    SKY_GroundOp_t *op = ground->first;

    SKY_ASSERT((op == NULL) == (ground->running == 0u));
    while (op != NULL && op->waits == SKY_GROUND_WAIT_NOT)
    {
        op = op->next;
    }
    SKY_ASSERT(op == NULL || op->waits_for >= 1u);
    return op;
}

/* Return true if a satellite is doubted that a look may find lost. */
static bool IsLookDue(const SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_NOT);
    return ground->doubted.plane != 0u && ground->reach.pause_us == 0u && !SKY_Ground_IsLost(ground, ground->doubted);
}

/* Begin the next inquiry: what the first operation waits for that waits, or a look at the satellite that is doubted. @return false if there is
 * none */
static bool BeginNext(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Addr_t doubted = ground->doubted;

    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_NOT);
    if (op != NULL && IsKnown(ground, op))
    {
        Resume(op);
        return true;
    }
    if (op != NULL)
    {
        SKY_ASSERT(op->waits_for <= ground->inquiry.number + 1u);
        if (!BeginInquiry(ground, op->waits, op->failed_on, op->doubts))
        {
            EndInquiry(ground);
        }
        return true;
    }
    if (ground->reach.suspects > 0u)
    {
        if (!BeginLook(ground))
        {
            EndInquiry(ground);
        }
        return true;
    }
    const bool is_due = IsLookDue(ground);

    ground->doubted = (SKY_Addr_t){0, 0};
    if (is_due && !BeginInquiry(ground, SKY_GROUND_WAIT_LOOK, doubted, false))
    {
        EndInquiry(ground);
    }
    return is_due;
}

bool SKY_GroundInquiry_Run(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    SKY_GroundOp_t      *op      = FirstWaiting(ground);

    SKY_ASSERT(inquiry->running <= inquiry->count);
    SKY_ASSERT(inquiry->running == 0u || inquiry->kind != SKY_GROUND_WAIT_NOT);
    if (inquiry->kind == SKY_GROUND_WAIT_NOT)
    {
        return BeginNext(ground, op);
    }
    if (inquiry->running > 0u)
    {
        return false;
    }
    if (EndStep(ground))
    {
        EndInquiry(ground);
    }
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

void SKY_GroundInquiry_Wait(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundWait_t what)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(what != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    op->waits     = what;
    op->waits_for = ground->inquiry.number + 1u;
}

SKY_GroundMay_t SKY_GroundInquiry_May(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    switch (SKY_Reach_May(&ground->reach, ground->now_us))
    {
        case SKY_REACH_SILENT:
            return SKY_GROUND_MAY_NOT;
        case SKY_REACH_LOOK:
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
            return SKY_GROUND_MAY_LATER;
        default:
            break;
    }
    if (ground->reach.lost_count > 0u && !op->has_asked_lost)
    {
        op->has_asked_lost = true;
        op->doubts         = false;
        SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_BACK);
        return SKY_GROUND_MAY_LATER;
    }
    return SKY_GROUND_MAY_NOW;
}

bool SKY_GroundInquiry_WaitsLate(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind != SKY_GROUND_PUT);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (op->has_searched || ground->reach.pause_us > 0u || SKY_GroundWays_Late(ground).is_known)
    {
        return false;
    }
    op->has_searched = true;
    SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LATE);
    return true;
}
