/**
 * @file
 * Operations of ground hosts: put a block, get it, forget it. The core's host runs them; this file says what
 * follows from the end.
 */
#include <stddef.h>
#include <string.h>

#include "twin_priv.h"

static SKYT_Ground_t *ground_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->grounds[active->host - 1u];
}

bool SKYT_Op_HasLeft(const SKYT_Twin_t *twin, uint32_t index)
{
    const SKYT_Node_t    *node     = &twin->nodes[index];
    const SKY_Schedule_t *schedule = node->service.core.schedule;
    const bool            knows =
        schedule != NULL && SKY_Schedule_RowAt(schedule, twin->now_us) == SKY_Schedule_RowAt(&twin->schedule, twin->now_us);

    return SKY_Service_HandoverLeft(&node->service, twin->now_us) > 0 || (!knows && node->store.counters.chunks > 0);
}

SKYT_Active_t *SKYT_Op_Of(const SKY_HostBlock_t *block)
{
    return (SKYT_Active_t *)((uintptr_t)block - offsetof(SKYT_Active_t, block_state));
}

/* ---- begin ----------------------------------------------------------------------------------------------------------- */

/* Return the epoch of an operation. A get or a purge knows that of the last put that ended well. */
static uint32_t epoch_of(const SKYT_Twin_t *twin, const SKYT_Op_t *op)
{
    if (op->kind == SKYT_OP_GET || op->kind == SKYT_OP_PURGE)
    {
        return twin->truth[op->block].epoch;
    }
    return op->epoch != 0 ? op->epoch : twin->blocks[op->block].epoch;
}

static void describe(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKY_HostBlock_t *block = &active->block_state;

    (void)memset(block, 0, sizeof(*block));
    block->kind          = active->kind == SKYT_OP_PUT ? SKY_HOST_PUT : SKY_HOST_GET;
    block->tenant        = SKYT_Content_Tenant(twin, active->block);
    block->epoch         = active->epoch;
    block->block_version = active->version;
    block->content       = SKYT_Content_Instance(active->block, active->version);
    block->stripe        = SKYT_Content_Stripe(twin, active->block, active->version);
    block->deadline_ms   = active->deadline_ms;
    block->data          = active->buffer;
    block->parity        = active->parity;
    block->have          = active->have;
    block->rows          = active->rows;
    block->servers       = active->places;
    block->fallbacks     = active->places + twin->config.servers;
    block->server_count  = twin->config.servers;
    SKYT_Content_Key(twin, active->block, block->key);
    (void)memset(active->have, 0, (block->stripe.chunk_total + 7u) / 8u);
    for (uint32_t chunk = 0; active->kind == SKYT_OP_PUT && chunk < block->stripe.chunk_total; ++chunk)
    {
        if (!SKY_Stripe_IsParity(&block->stripe, chunk))
        {
            SKYT_Content_Chunk(active->block, active->version, chunk, active->buffer + SKY_Stripe_Offset(&block->stripe, chunk),
                               SKY_Stripe_ChunkBytes(&block->stripe, chunk));
        }
    }
}

bool SKYT_Op_FindPlaces(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    describe(twin, active);
    return SKYT_OpPlaces_Take(twin, active);
}

/* Begin an attempt. @return false if there is nobody to ask, or nothing to gain; the attempts go on, or are over */
static bool begin_transfer(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKYT_Ground_t *ground = ground_of(twin, active);
    SKY_Host_t    *core   = &ground->core;

    active->deadline_us    = twin->now_us + (uint64_t)active->deadline_ms * US_PER_MS;
    active->has_asked_lost = false;
    if (!SKYT_Op_FindPlaces(twin, active))
    {
        active->failed = SKYT_CAUSE_NOBODY;
        SKY_TransferAttempts_GiveUp(&active->attempts);
        return false;
    }
    const SKY_Rows_t rows = {ground->shares.rows, ground->shares.row_count};

    if (!SKY_TransferAttempts_Begin(&active->attempts, &rows, SKYT_OpPlaces_Number(twin, active)))
    {
        return false;
    }
    active->is_unsettled = false;
    active->tries += (uint32_t)SKY_Host_Pieces(core, &active->block_state);
    SKY_Host_BeginReport(core);
    if (SKY_Host_Begin(core, twin->now_us, &active->block_state) != SKY_HOST_BEGUN)
    {
        active->failed = SKYT_CAUSE_UNEXPLAINED; /* the host has room for all that run */
        SKY_TransferAttempts_GiveUp(&active->attempts);
        return false;
    }
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), active->deadline_us + 1u);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, active->host - 1u), twin->now_us);
    return true;
}

/* Begin with what is to be attempted. */
static void begin_attempts(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_Late_t late = SKYT_Reach_Late(ground_of(twin, active));

    active->failed = SKYT_CAUSE_NONE;
    if (active->kind == SKYT_OP_GET)
    {
        SKY_TransferAttempts_InitGet(&active->attempts, &late, SKY_Schedule_RowAt(&twin->schedule, twin->now_us),
                                     twin->config.lazy_purge != 0);
    }
    else
    {
        SKY_TransferAttempts_InitPut(&active->attempts); /* the attempts of a purge are never begun */
    }
    SKYT_Outcome_Begin(twin, active);
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

/* Let a host that missed a block purge what is left: the rest is useless without the missing chunk (paper, section 3.9). */
static void become_purge(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const bool is_hurried = active->is_useless; /* somebody is about to count on blocks */

    active->kind       = SKYT_OP_PURGE;
    active->is_lazy    = true;
    active->is_useless = false;
    active->started_us = twin->now_us;
    begin_attempts(twin, active);
    SKYT_Clear_Begin(twin, active, is_hurried);
}

static void finish(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t failed)
{
    const uint32_t index = (uint32_t)(active - twin->active);

    active->is_stray =
        active->kind == SKYT_OP_GET && failed == SKYT_CAUSE_ABSENT &&
        (twin->config.parity > 0u ? SKYT_Rows_AreStray(twin, active) : SKYT_ShareRecord_IsStray(twin, active, active->denied));
    const SKYT_Cause_t cause = active->is_missed && failed == SKYT_CAUSE_ABSENT ? SKYT_Outcome_Missed(twin, active)
                                                                                : SKYT_Outcome_End(twin, active, failed);

    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfActive(twin, index));
    SKYT_Digest(twin, (uint32_t)cause, NULL, 0);
    SKYT_Pace_Restart(twin);
    count(twin, active, cause);
    if (!active->is_lazy)
    {
        SKYT_Result_t *result = &twin->results[active->op];

        result->version     = cause == SKYT_CAUSE_NONE ? active->version : 0u;
        result->ended       = 1;
        result->cause       = (uint32_t)cause;
        result->duration_us = (uint32_t)(twin->now_us - active->started_us);
        result->tries       = active->tries;
    }
    if (active->is_useless || (!active->is_missed && SKY_TransferAttempts_Verdict(&active->attempts) == SKY_VERDICT_PURGE))
    {
        become_purge(twin, active);
        return;
    }
    active->is_active                            = false;
    twin->active_free[twin->active_free_count++] = index;
    SKYT_Queue_SetBy(&twin->queue, SKYT_EventOfScript(twin, 0), twin->now_us); /* there is room for another operation */
}

/* ---- from beginning to end --------------------------------------------------------------------------------------------- */

/* Note the satellites that were found late. */
static void take_search(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = ground_of(twin, active);
    const SKY_Late_t     late   = SKYT_Reach_Late(ground);

    SKY_TransferAttempts_Searched(&active->attempts, &late, ground->handovers.row);
}

/* Begin an attempt. @return false if the attempts go on, or are over */
static bool ask(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    switch (SKYT_Reach_May(twin, active))
    {
        case SKYT_MAY_NOW:
            return begin_transfer(twin, active);
        case SKYT_MAY_LATER:
            return true;
        default:
            active->failed = SKYT_CAUSE_NOBODY;
            SKY_TransferAttempts_GiveUp(&active->attempts);
            return false;
    }
}

/* Look for the block before a get. @return true if the operation waits, or is over */
static bool look_up(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (SKYT_Look_Waits(twin, active))
    {
        return true;
    }
    active->look.is_on = false;
    switch (SKY_Lookup_Status(&active->look.core, 0, false))
    {
        case SKY_STATUS_DONE:
            if (!SKYT_Version_IsValue(twin, active->block))
            {
                return false;
            }
            active->is_missed = !SKYT_Version_Take(twin, active);
            if (active->is_missed)
            {
                finish(twin, active, SKYT_CAUSE_REPLACED); /* the host knows that there was a newer one */
            }
            return active->is_missed;
        case SKY_STATUS_MISS:
            SKYT_Version_Found(twin, active, 0);
            active->failed = SKYT_CAUSE_ABSENT;
            break;
        default:
            active->failed = active->look.count == 0u    ? SKYT_CAUSE_NOBODY /* at first, or when the last were to be asked */
                             : twin->sky_links_down > 0u ? SKYT_CAUSE_UNREACHABLE
                                                         : SKYT_CAUSE_EXPIRED;
            break;
    }
    active->is_missed = true;
    finish(twin, active, active->failed);
    return true;
}

/* Miss a block of which a chunk is gone, unless stand-ins hold some of it. @return true if the operation waits */
static bool miss_first(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    bool is_aside;

    if (SKYT_Look_AsksAside(twin, active, &is_aside))
    {
        return true;
    }
    active->first      = SKYT_FIRST_NOTHING;
    active->is_useless = !is_aside;
    if (active->is_useless)
    {
        finish(twin, active, SKYT_CAUSE_ABSENT);
    }
    active->denied = is_aside ? SKYT_NONE : active->denied;
    return false;
}

/* Ask whether the block is whole before a get, but only while nothing is late. @return true if the operation waits */
static bool ask_first(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = ground_of(twin, active);
    const SKY_Late_t     late   = SKYT_Reach_Late(ground);

    if (active->first == SKYT_FIRST_ASIDE)
    {
        return miss_first(twin, active);
    }
    if (active->first == SKYT_FIRST_DUE && !late.is_known && ground->reach.pause_us == 0u)
    {
        active->first = SKYT_FIRST_LATE;
        SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LATE);
        return true;
    }
    active->first = SKYT_FIRST_NOTHING;
    if (!late.is_known || !late.is_over || ground->reach.pause_us > 0u)
    {
        return false;
    }
    if (!SKYT_Op_FindPlaces(twin, active) || !SKYT_Held_Ask(twin, active, &late))
    {
        return false;
    }
    active->first = SKYT_FIRST_HELD;
    return true;
}

/* Put a value once more if a newer version was in its way, above that one. @return false if it is no such put */
static bool put_above(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (active->kind != SKYT_OP_PUT || active->failed != SKYT_CAUSE_REPLACED || active->is_above)
    {
        return false;
    }
    active->is_above = true;
    active->version  = SKYT_Version_Next(twin, active, active->block_state.held_version);
    active->failed   = SKYT_CAUSE_NONE;
    SKY_TransferAttempts_InitPut(&active->attempts);
    return true;
}

/* A purge is over. */
static void finish_purge(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Cause_t failed = active->asks > 0u ? SKYT_CAUSE_EXPIRED : SKYT_CAUSE_NOBODY;

    if (active->clear.core.is_confirmed)
    {
        SKYT_Version_Ended(twin, active);
        SKYT_Truth_Cleared(twin, active);
    }
    finish(twin, active, active->clear.core.is_confirmed ? SKYT_CAUSE_NONE : failed);
}

/* Let an operation go on until it waits for satellites, or is over. */
static void go_on(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    bool is_other;
    bool is_aside;

    SKYT_Pace_Restart(twin);
    if (active->look.is_on && look_up(twin, active))
    {
        return;
    }
    if (active->first != SKYT_FIRST_NOTHING && ask_first(twin, active))
    {
        return;
    }
    while (active->is_active)
    {
        if (active->kind == SKYT_OP_PURGE)
        {
            if (!SKYT_Clear_Waits(twin, active))
            {
                finish_purge(twin, active);
            }
            return;
        }
        switch (SKY_TransferAttempts_Next(&active->attempts))
        {
            case SKY_ATTEMPT_ASK:
                if (ask(twin, active))
                {
                    return;
                }
                break;
            case SKY_ATTEMPT_LOOK:
                SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LOOK);
                return;
            case SKY_ATTEMPT_DOUBT:
                active->doubts = true;
                SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_BACK);
                return;
            case SKY_ATTEMPT_SEARCH:
                if (!SKYT_Reach_Late(ground_of(twin, active)).is_known)
                {
                    SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LATE);
                    return;
                }
                take_search(twin, active);
                break;
            case SKY_ATTEMPT_CONFIRM:
                if (SKYT_Look_Confirms(twin, active, &is_other, &is_aside))
                {
                    return;
                }
                /* All hosts know the schedule. */
                SKY_TransferAttempts_Confirmed(&active->attempts, is_other, false, is_aside);
                break;
            case SKY_ATTEMPT_END:
                if (put_above(twin, active))
                {
                    break;
                }
                finish(twin, active, active->failed);
                break;
            default:
                finish(twin, active, active->failed);
                break;
        }
    }
}

void SKYT_Op_Resume(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t waited)
{
    if (waited == SKYT_WAIT_LATE && active->kind == SKYT_OP_GET && active->first == SKYT_FIRST_NOTHING && !active->look.is_on &&
        active->confirms == SKYT_CONFIRM_NOT)
    {
        take_search(twin, active);
    }
    go_on(twin, active);
}

void SKYT_Op_Told(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t gone)
{
    active->first          = gone == SKYT_NONE ? SKYT_FIRST_NOTHING : SKYT_FIRST_ASIDE;
    active->denied         = gone;
    active->look.has_asked = false;
    go_on(twin, active);
}

void SKYT_Op_Answered(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    go_on(twin, active);
}

static void begin(SKYT_Twin_t *twin, uint32_t number)
{
    const SKYT_Op_t    *op     = &twin->ops[number];
    SKYT_Active_t      *active = &twin->active[twin->active_free[--twin->active_free_count]];
    const SKYT_Active_t keep   = *active;

    (void)memset(active, 0, sizeof(*active));
    active->buffer      = keep.buffer;
    active->have        = keep.have;
    active->parity      = keep.parity;
    active->rows        = keep.rows;
    active->places      = keep.places;
    active->is_active   = true;
    active->op          = number;
    active->kind        = op->kind == SKYT_OP_DELETE ? (uint32_t)SKYT_OP_PUT : op->kind;
    active->is_deletion = op->kind == SKYT_OP_DELETE;
    active->block       = op->block;
    active->host        = op->host;
    active->denied      = SKYT_NONE;
    active->epoch       = epoch_of(twin, op);
    active->started_us  = twin->now_us;
    active->deadline_ms = op->deadline_ms;
    active->version     = op->kind == SKYT_OP_GET ? 0u : SKYT_Version_Next(twin, active, 0);
    SKYT_Version_Begin(twin, active);
    const bool is_value = SKYT_Version_IsValue(twin, active->block);
    active->first = op->kind == SKYT_OP_GET && !is_value && twin->config.ask_first > 0u && number % twin->config.ask_first == 0u
                        ? SKYT_FIRST_DUE
                        : SKYT_FIRST_NOTHING;
    SKYT_Digest(twin, number, NULL, 0);
    SKYT_ShareRecord_Begin(twin, active);
    begin_attempts(twin, active);
    if (op->kind == SKYT_OP_GET &&
        (is_value || (twin->config.look_up > 0u && number % twin->config.look_up == 1u % twin->config.look_up)))
    {
        SKYT_Look_Begin(twin, active);
    }
    if (op->kind == SKYT_OP_PURGE)
    {
        SKYT_Clear_Begin(twin, active, false);
    }
    go_on(twin, active);
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

void SKYT_Op_Overdue(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Active_t *active = &twin->active[index];

    SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, active->op, active->block, SKYT_NONE,
                    "an operation goes on after its deadline");
    SKY_Host_Stop(&twin->grounds[active->host - 1u].core, twin->now_us, &active->block_state, SKY_STATUS_EXPIRED);
    SKYT_Ground_Run(twin, active->host - 1u);
}

/* With keys an attacker may say in a packet's way why it did not get there, which needs no tag. */
static SKYT_Cause_t cause_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t status)
{
    switch (status)
    {
        case SKY_STATUS_DONE:
            return SKYT_CAUSE_NONE;
        case SKY_STATUS_MISS:
            return SKYT_CAUSE_ABSENT;
        case SKY_STATUS_EXPIRED:
            return SKYT_CAUSE_EXPIRED;
        case SKY_STATUS_UNREACHABLE:
        case SKY_STATUS_HOP_LIMIT:
            return SKYT_CAUSE_UNREACHABLE;
        case SKY_STATUS_BAD_VERSION:
        case SKY_STATUS_TOO_LARGE:
        case SKY_STATUS_UNAUTHENTICATED:
        case SKY_STATUS_REFUSED:
            return twin->attack != NULL ? SKYT_CAUSE_UNREACHABLE : SKYT_CAUSE_UNEXPLAINED;
        case SKY_STATUS_BAD_KEY:
        case SKY_STATUS_OLD_VERSION:
            return active->version != 0u ? SKYT_CAUSE_REPLACED : SKYT_CAUSE_UNEXPLAINED;
        default:
            return SKYT_CAUSE_UNEXPLAINED;
    }
}

/* Return how a transfer has ended. A put of a value is done when all its chunks are stored: others stand in for who was silent. */
static uint32_t status_of(const SKY_HostBlock_t *block)
{
    const bool is_short =
        block->kind == SKY_HOST_PUT && block->status == SKY_STATUS_DONE && block->block_version != 0u && block->lost > 0u;

    return is_short ? (uint32_t)SKY_STATUS_EXPIRED : block->status;
}

void SKYT_Op_End(SKYT_Twin_t *twin, const SKY_HostBlock_t *block)
{
    SKYT_Active_t *active = SKYT_Op_Of(block);
    const uint32_t status = status_of(block);

    active->tries += block->passes;
    active->fell_back = active->fell_back || block->passes > 0u || active->attempts.asks > 1u;
    active->denied    = block->status == SKY_STATUS_MISS && block->kind == SKY_HOST_GET ? block->failed_chunk : SKYT_NONE;
    for (uint32_t chunk = 0; block->kind == SKY_HOST_GET && block->status == SKY_STATUS_DONE && chunk < block->stripe.chunk_total;
         ++chunk)
    {
        if (!SKY_Stripe_IsParity(&block->stripe, chunk)) /* parity is the host's own */
        {
            SKYT_Check_Chunk(twin, active, chunk);
        }
    }
    if (status == SKY_STATUS_DONE)
    {
        SKYT_Version_Ended(twin, active);
    }
    active->failed_on.plane   = (uint16_t)block->failed_plane;
    active->failed_on.slot    = (uint16_t)block->failed_slot;
    const SKY_Places_t places = SKYT_OpPlaces_Rule(twin);
    uint32_t           found[SKY_PLACES_ROWS_MAX];
    const SKY_Rows_t   rows = {found, SKY_Places_Rows(&places, twin->now_us, active->epoch, found)};

    active->at_stand_in = block->at_stand_in;
    SKY_TransferAttempts_Ended(&active->attempts, status, active->at_stand_in,
                               block->is_unsettled && twin->broken != SKYT_BREAK_RUTHLESS, &rows,
                               SKY_Schedule_RowAt(&twin->schedule, twin->now_us), false);
    active->failed = cause_of(twin, active, active->attempts.status);
    go_on(twin, active);
}
