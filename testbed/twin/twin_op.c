/**
 * @file
 * Operations of ground hosts: put a block, get it, forget it. Each has a share with every server of the block, and a deadline.
 *
 * A get has one place after the other to look at for each share: what one denies is asked of the next.
 */
#include <string.h>

#include "twin_priv.h"

#define PURGE_AFTER_MISS_US 2000000u /* that a host spends on what is left of a block that it missed */

/* ---- places ---------------------------------------------------------------------------------------------------------- */

static SKY_Places_t places_of(const SKYT_Twin_t *twin)
{
    const SKY_Places_t places = {&twin->schedule, (uint64_t)twin->config.handover_ms * US_PER_MS};

    return places;
}

static void find_places(const SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Share_t *share)
{
    const SKY_Places_t places = places_of(twin);
    const uint32_t     now    = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const uint32_t     epoch  = twin->blocks[active->block].epoch;

    if (active->kind == SKYT_OP_PUT)
    {
        share->places[0]   = SKY_Schedule_Server(&twin->schedule, now < epoch ? epoch : now, share->server); /* it waits there */
        share->place_count = 1;
    }
    else
    {
        share->place_count = SKY_Places_Find(&places, twin->now_us, epoch, share->server, share->places);
    }
}

/* Has a satellite something left to hand over? Who is in another row, by its clock, does not know. */
static bool has_left(const SKYT_Twin_t *twin, const SKYT_Node_t *node)
{
    const SKY_Schedule_t *schedule = node->service.core.schedule;
    const bool            knows =
        schedule != NULL && SKY_Schedule_RowAt(schedule, twin->now_us) == SKY_Schedule_RowAt(&twin->schedule, twin->now_us);

    return SKY_Service_HandoverLeft(&node->service, twin->now_us) > 0 || (!knows && node->store.counters.slots_used > 0);
}

/* Has any satellite something left to hand over, or is it down, so that nobody knows? A host asks by STATS; here its counters are read. */
static bool is_settled(const SKYT_Twin_t *twin)
{
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        if (!twin->nodes[node].is_up || has_left(twin, &twin->nodes[node]))
        {
            return false;
        }
    }
    return true;
}

static bool is_late(const void *context, SKY_Addr_t satellite)
{
    const SKYT_Twin_t *twin = context;
    const SKYT_Node_t *node = &twin->nodes[SKYT_NodeOf(twin, satellite)];

    return node->is_up && has_left(twin, node);
}

/* The satellite to send to. @return SKYT_NONE: there is none */
static uint32_t find_entry(const SKYT_Twin_t *twin, SKY_Addr_t target)
{
    uint32_t best      = SKYT_NONE;
    uint32_t best_hops = UINT32_MAX;

    if (twin->config.uplink == SKYT_UPLINK_DIRECT)
    {
        return SKYT_NodeOf(twin, target);
    }
    if (twin->config.uplink == SKYT_UPLINK_CENTRE)
    {
        const SKY_Cell_t centre = twin->rows[twin->row - 1u].centre;
        const int32_t    planes = (int32_t)twin->config.planes;
        const int32_t    slots  = (int32_t)twin->config.slots;
        const SKY_Addr_t addr   = {(uint16_t)(((centre.plane - 1) % planes + planes) % planes + 1),
                                   (uint16_t)(((centre.slot - 1) % slots + slots) % slots + 1)};

        return SKYT_NodeOf(twin, addr);
    }
    for (uint32_t i = 0; i < twin->entry_count; ++i)
    {
        const uint32_t hops = SKY_Torus_Hops(&twin->torus, SKYT_AddrOf(twin, twin->entries[i]), target);

        if (hops < best_hops)
        {
            best_hops = hops;
            best      = twin->entries[i];
        }
    }
    return best;
}

/* ---- begin ----------------------------------------------------------------------------------------------------------- */

static SKYT_Share_t *shares_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->shares[(size_t)(active - twin->active) * twin->config.servers];
}

static void finish(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t failed);

static void begin_shares(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const uint32_t total = SKYT_Content_Total(twin, active->block);
    SKYT_Share_t  *share = shares_of(twin, active);
    const uint32_t first = (uint32_t)(share - twin->shares);

    active->is_settled = is_settled(twin);
    active->row        = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    active->left       = total < twin->config.servers ? total : twin->config.servers;
    for (uint32_t server = 0; server < active->left; ++server)
    {
        share[server].active       = (uint32_t)(active - twin->active);
        share[server].server       = server;
        share[server].place        = 0;
        share[server].has_searched = false;
        find_places(twin, active, &share[server]);
        const uint32_t entry = find_entry(twin, share[server].places[0]);

        if (entry == SKYT_NONE)
        {
            finish(twin, active, SKYT_CAUSE_NOBODY);
            return;
        }
        ++active->tries;
        SKYT_Share_Begin(twin, first + server, entry, NULL);
    }
}

static void begin(SKYT_Twin_t *twin, uint32_t number)
{
    const SKYT_Op_t *op     = &twin->ops[number];
    SKYT_Active_t   *active = &twin->active[twin->active_free[--twin->active_free_count]];
    uint8_t         *buffer = active->buffer;

    (void)memset(active, 0, sizeof(*active));
    active->buffer      = buffer;
    active->is_active   = true;
    active->op          = number;
    active->kind        = op->kind;
    active->block       = op->block;
    active->host        = op->host;
    active->denied      = SKYT_NONE;
    active->started_us  = twin->now_us;
    active->deadline_us = twin->now_us + (uint64_t)op->deadline_ms * US_PER_MS;
    SKYT_Digest(twin, number, NULL, 0);
    SKYT_Truth_OpBegins(twin, active);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), active->deadline_us + 1u);
    begin_shares(twin, active);
}

void SKYT_Op_Next(SKYT_Twin_t *twin)
{
    while (twin->op_next < twin->op_count && twin->ops[twin->op_next].time_us <= twin->now_us && twin->active_free_count > 0)
    {
        begin(twin, twin->op_next++);
    }
    if (twin->op_next < twin->op_count && twin->active_free_count > 0)
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfScript(twin, 0), twin->ops[twin->op_next].time_us);
    }
}

/* ---- end ------------------------------------------------------------------------------------------------------------- */

static void count(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause)
{
    SKYT_Counters_t *counters = &twin->counters;

    switch (active->kind)
    {
        case SKYT_OP_PUT:
            ++counters->puts;
            counters->puts_failed += cause != SKYT_CAUSE_NONE ? 1u : 0u;
            break;
        case SKYT_OP_GET:
            ++counters->gets;
            counters->hits += cause == SKYT_CAUSE_NONE ? 1u : 0u;
            counters->fallback_hits += cause == SKYT_CAUSE_NONE && active->fell_back ? 1u : 0u;
            counters->misses[cause] += cause != SKYT_CAUSE_NONE ? 1u : 0u;
            break;
        case SKYT_OP_PURGE:
        default:
            ++counters->purges;
            break;
    }
}

static void stop_shares(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    SKYT_Share_t *share = shares_of(twin, active);

    for (uint32_t server = 0; server < twin->config.servers; ++server)
    {
        if (share[server].is_active)
        {
            SKYT_Share_End(twin, (uint32_t)(&share[server] - twin->shares));
        }
    }
}

/* A host that missed a block purges what is left: the rest is useless without what is gone (paper, section 3.9). */
static void become_purge(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->kind        = SKYT_OP_PURGE;
    active->is_lazy     = true;
    active->started_us  = twin->now_us;
    active->deadline_us = twin->now_us + PURGE_AFTER_MISS_US;
    SKYT_Truth_OpBegins(twin, active);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), active->deadline_us + 1u);
    begin_shares(twin, active);
}

static void finish(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t failed)
{
    const uint32_t     index = (uint32_t)(active - twin->active);
    const SKYT_Cause_t cause = SKYT_Truth_OpEnds(twin, active, failed);

    stop_shares(twin, active);
    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfActive(twin, index));
    SKYT_Digest(twin, (uint32_t)cause, NULL, 0);
    count(twin, active, cause);
    if (!active->is_lazy)
    {
        SKYT_Result_t *result = &twin->results[active->op];

        result->ended       = 1;
        result->cause       = (uint32_t)cause;
        result->duration_us = (uint32_t)(twin->now_us - active->started_us);
        result->tries       = active->tries;
    }
    if (active->kind == SKYT_OP_GET && failed == SKYT_CAUSE_ABSENT && active->is_settled && twin->config.lazy_purge != 0)
    {
        become_purge(twin, active);
        return;
    }
    active->is_active                            = false;
    twin->active_free[twin->active_free_count++] = index;
    SKYT_Queue_SetBy(&twin->queue, SKYT_EventOfScript(twin, 0), twin->now_us); /* there is room for another */
}

void SKYT_Op_Overdue(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Active_t *active = &twin->active[index];

    SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, active->op, active->block, SKYT_NONE,
                    "an operation goes on after its deadline");
    finish(twin, active, SKYT_CAUSE_EXPIRED);
}

/* ---- shares that have ended ------------------------------------------------------------------------------------------ */

static SKY_Status_t last_status(const SKYT_Active_t *active, const SKYT_Share_t *share)
{
    switch (active->kind)
    {
        case SKYT_OP_PUT:
            return share->u.push.last_status;
        case SKYT_OP_GET:
            return share->u.fetch.last_status;
        default:
            return SKY_STATUS_OK;
    }
}

static bool is_unreachable(SKY_Status_t status)
{
    return status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_HOP_LIMIT;
}

static bool has_next(const SKYT_Share_t *share)
{
    return share->place + 1u < share->place_count;
}

/* Ask the next place for what this one does not hold. */
static void ask_next(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Share_t *share)
{
    const bool         is_get = active->kind == SKYT_OP_GET;
    const SKY_Fetch_t *fetch  = &share->u.fetch;
    SKY_ChunkSet_t     wanted;

    if (is_get)
    {
        wanted = fetch->missing;
        for (uint32_t i = SKY_ChunkSet_Next(&fetch->denied, 0); i < fetch->denied.count;
             i          = SKY_ChunkSet_Next(&fetch->denied, i + 1u))
        {
            SKY_ChunkSet_Add(&wanted, i);
        }
    }
    const uint32_t entry = find_entry(twin, share->places[share->place + 1u]);

    if (entry == SKYT_NONE)
    {
        finish(twin, active, SKYT_CAUSE_NOBODY);
        return;
    }
    SKYT_Share_End(twin, (uint32_t)(share - twin->shares));
    ++share->place;
    ++active->tries;
    active->fell_back = true;
    SKYT_Share_Begin(twin, (uint32_t)(share - twin->shares), entry, is_get ? &wanted : NULL);
}

/* Nobody that was asked has it, but it may be late. Where a row has begun meanwhile it may have moved on, so the search goes on until one
 * is done within a row, or the get's deadline ends it. @return false: it has been looked for */
static bool search(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Share_t *share)
{
    const SKY_Places_t places   = places_of(twin);
    const uint32_t     row      = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const bool         is_asked = share->has_searched ? share->search_row == row : active->is_settled && active->row == row;

    if (active->kind != SKYT_OP_GET || is_asked)
    {
        return false;
    }
    share->has_searched = true;
    share->search_row   = row;
    share->place_count  = SKY_Places_FindLate(&places, twin->now_us, twin->blocks[active->block].epoch, share->server, is_late,
                                              twin, share->places);
    active->is_settled  = is_settled(twin);
    share->place        = UINT32_MAX; /* the next one is the first */
    ask_next(twin, active, share);
    return true;
}

static void note_denied(SKYT_Active_t *active, const SKYT_Share_t *share)
{
    const SKY_Fetch_t *fetch = &share->u.fetch;
    uint32_t           at    = SKY_ChunkSet_Next(&fetch->denied, 0);

    at             = at < fetch->denied.count ? at : SKY_ChunkSet_Next(&fetch->missing, 0);
    active->denied = SKY_ChunkSet_ChunkId(&fetch->denied, at < fetch->denied.count ? at : 0);
}

static void settle(SKYT_Twin_t *twin, SKYT_Share_t *share)
{
    SKYT_Active_t         *active = &twin->active[share->active];
    const SKY_ShareState_t state  = SKYT_Share_State(twin, share);
    const SKY_Status_t     status = last_status(active, share);

    switch (state)
    {
        case SKY_SHARE_DONE:
            if (active->kind == SKYT_OP_PURGE && has_next(share))
            {
                ask_next(twin, active, share); /* what moves meanwhile is to be forgotten at each place */
                break;
            }
            SKYT_Share_End(twin, (uint32_t)(share - twin->shares));
            if (--active->left == 0)
            {
                finish(twin, active, SKYT_CAUSE_NONE);
            }
            break;
        case SKY_SHARE_MISS:
            if (status != SKY_STATUS_BAD_KEY && has_next(share))
            {
                ask_next(twin, active, share);
                break;
            }
            if (status != SKY_STATUS_BAD_KEY && search(twin, active, share))
            {
                break;
            }
            note_denied(active, share);
            finish(twin, active, status == SKY_STATUS_BAD_KEY ? SKYT_CAUSE_UNEXPLAINED : SKYT_CAUSE_ABSENT);
            break;
        case SKY_SHARE_EXPIRED:
            finish(twin, active, SKYT_CAUSE_EXPIRED);
            break;
        default:
            if (is_unreachable(status) && has_next(share))
            {
                ask_next(twin, active, share);
                break;
            }
            finish(twin, active, is_unreachable(status) ? SKYT_CAUSE_UNREACHABLE : SKYT_CAUSE_UNEXPLAINED);
            break;
    }
}

void SKYT_Op_Settle(SKYT_Twin_t *twin)
{
    while (twin->settle_first != SKYT_NONE)
    {
        SKYT_Share_t *share = &twin->shares[twin->settle_first];

        twin->settle_first = share->settle_next;
        share->is_settled  = false;
        if (share->is_active && SKYT_Share_State(twin, share) != SKY_SHARE_RUNNING)
        {
            settle(twin, share);
        }
    }
}
