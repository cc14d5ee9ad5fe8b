/**
 * @file
 * Operations of ground hosts: put a block, get it, forget it. The core runs them (sky_ground.h), some in several phases, one after the other.
 * This file says what the core is to do, and what follows from the end.
 */
#include <stddef.h>
#include <string.h>

#include "twin_break.h"
#include "twin_priv.h"

/* Operations are called back within so long, most of them much earlier. */
#define CANCEL_US    UINT64_C(800000)
#define CANCEL_SHARP 10u
#define MENDED       2u /* one of so many gets without some shares puts its block again */

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

bool SKYT_Op_IsLate(const SKYT_Twin_t *twin)
{
    uint32_t node = 0;

    while (node < twin->node_count && !SKYT_Op_HasLeft(twin, node))
    {
        ++node;
    }
    return node < twin->node_count;
}

SKYT_Active_t *SKYT_Op_OfCore(const SKY_GroundOp_t *core)
{
    return (SKYT_Active_t *)((uintptr_t)core - offsetof(SKYT_Active_t, core));
}

SKYT_Active_t *SKYT_Op_Of(const SKY_HostBlock_t *block)
{
    return SKYT_Op_OfCore(SKY_Ground_OpOf(block));
}

/* ---- begin ----------------------------------------------------------------------------------------------------------- */

/* Return the epoch of an operation. A get or a purge knows that of the last put that ended well. */
static uint32_t epoch_of(const SKYT_Twin_t *twin, const SKYT_Op_t *op)
{
    if (op->kind == SKYT_OP_GET || op->kind >= SKYT_OP_TOUCH || op->kind == SKYT_OP_PURGE)
    {
        return twin->truth[op->block].epoch;
    }
    return op->epoch != 0 ? op->epoch : twin->blocks[op->block].epoch;
}

/* Write what is put. */
static void write_data(const SKYT_Active_t *active)
{
    const SKY_Stripe_t *stripe = &active->core.facts.stripe;

    for (uint32_t chunk = 0; chunk < stripe->chunk_total; ++chunk)
    {
        if (!SKY_Stripe_IsParity(stripe, chunk))
        {
            SKYT_Content_Chunk(active->block, active->version, chunk, active->buffer + SKY_Stripe_Offset(stripe, chunk),
                               SKY_Stripe_ChunkBytes(stripe, chunk));
        }
    }
}

/* Have the core do a part of the operation. */
static void submit(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Phase_t phase)
{
    static const SKY_GroundKind_t kinds[] = {SKY_GROUND_FIND,  SKY_GROUND_CHECK, SKY_GROUND_GET,
                                             SKY_GROUND_PURGE, SKY_GROUND_TOUCH, SKY_GROUND_PREFETCH};

    SKY_GroundOp_t *core  = &active->core;
    const bool      puts  = phase == SKYT_PHASE_MOVE && active->kind == SKYT_OP_PUT;
    const size_t    index = (size_t)(active - twin->active);
    const size_t    rows  = SKYT_Content_RowsMost(&twin->config);

    (void)memset(core, 0, sizeof(*core));
    (void)memset(active->have, 0, (SKYT_Content_Total(twin, active->block) + 7u) / 8u);
    (void)memset(twin->held_rows + index * rows, 0, rows * sizeof(*twin->held_rows));
    active->phase       = phase;
    core->kind          = puts ? SKY_GROUND_PUT : kinds[phase];
    core->tenant        = SKYT_Content_Tenant(twin, active->block);
    core->facts.stripe  = SKYT_Content_Stripe(twin, active->block, active->version);
    core->facts.epoch   = active->epoch;
    core->facts.version = active->version;
    core->facts.content = SKYT_Content_Instance(active->block, active->version);
    core->known         = SKYT_Register_Known(twin, active);
    core->deadline_ms   = active->deadline_ms;
    core->data          = active->buffer;
    core->parity        = twin->parities + index * SKYT_Content_ParityBytes(&twin->config);
    core->have          = active->have;
    core->rows          = twin->rows_of + index * rows;
    core->held_rows     = twin->held_rows + index * rows;
    core->chain         = active->chain;
    core->chain_length  = active->chain_count;
    core->is_calm       = phase == SKYT_PHASE_PREFETCH;
    core->to_row        = twin->ops[active->op].epoch;
    core->is_lazy       = active->is_lazy;
    core->is_hurried    = phase == SKYT_PHASE_CHECK
                              ? active->op / 3u % 2u == 0u
                              : active->is_lazy && active->is_useless; /* somebody is about to count on blocks */
    core->is_sample     = active->op / 7u % 4u == 0u;
    core->is_deletion   = active->is_deletion;
    core->is_way_made   = !active->is_lazy && active->op % 2u == 1u;
    SKYT_Content_Key(twin, active->block, core->key);
    if (puts)
    {
        write_data(active);
    }
    if (phase == SKYT_PHASE_FIND)
    {
        SKYT_Find_Prepare(twin, active);
    }
    (void)SKY_Ground_Submit(&ground_of(twin, active)->core, twin->now_us, core); /* all may wait in line */
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, active->host - 1u), twin->now_us);
}

/* Begin to purge. The first server's word tells of a block only if it has a share of it. */
static void begin_purge(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const bool     is_way_made = !active->is_lazy && active->op % 2u == 1u;
    const uint32_t first       = SKYT_Content_Asked(twin, active->block, 0);
    uint32_t       holder;

    active->is_calm =
        !active->is_lazy && !SKYT_Op_IsLate(twin) && (!is_way_made || SKYT_Holders(twin, active->block, first, &holder, 1) > 0u);
    submit(twin, active, SKYT_PHASE_PURGE);
}

/* Begin what is left to do before a get, or the get itself; a put; a purge. */
static void begin_phase(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (active->kind == SKYT_OP_PURGE)
    {
        begin_purge(twin, active);
    }
    else if (active->kind == SKYT_OP_TOUCH || active->kind == SKYT_OP_PREFETCH)
    {
        submit(twin, active, active->kind == SKYT_OP_TOUCH ? SKYT_PHASE_TOUCH : SKYT_PHASE_PREFETCH);
    }
    else if (active->looks_up)
    {
        active->looks_up = false;
        submit(twin, active, SKYT_PHASE_FIND);
    }
    else if (active->checks)
    {
        active->checks = false;
        submit(twin, active, SKYT_PHASE_CHECK);
    }
    else
    {
        submit(twin, active, SKYT_PHASE_MOVE);
    }
}

/* ---- end ------------------------------------------------------------------------------------------------------------- */

static void count(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause)
{
    SKYT_Counters_t *counters = &twin->counters;

    switch (active->kind)
    {
        case SKYT_OP_PUT:
            counters->puts += active->is_mending ? 0u : 1u;
            counters->puts_failed += !active->is_mending && cause != SKYT_CAUSE_NONE ? 1u : 0u;
            counters->mends += active->is_mending && cause == SKYT_CAUSE_NONE ? 1u : 0u;
            break;
        case SKYT_OP_GET:
            ++counters->gets;
            counters->hits += cause == SKYT_CAUSE_NONE ? 1u : 0u;
            counters->fallback_hits += cause == SKYT_CAUSE_NONE && active->fell_back ? 1u : 0u;
            counters->misses[cause] += cause != SKYT_CAUSE_NONE ? 1u : 0u;
            break;
        case SKYT_OP_TOUCH:
            ++counters->touches;
            counters->touched += active->core.touched;
            break;
        case SKYT_OP_PREFETCH:
            ++counters->prefetches;
            counters->prefetched += cause == SKYT_CAUSE_NONE ? 1u : 0u;
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
    active->kind       = SKYT_OP_PURGE;
    active->is_lazy    = true;
    active->started_us = twin->now_us;
    active->failed     = SKYT_CAUSE_NONE;
    SKYT_Outcome_Begin(twin, active);
    begin_phase(twin, active);
    active->is_useless = false;
}

/* Let a host put a block again that it has got without some shares: it holds the keys of the block's seal (skymemory.store.put_again). */
static void become_mending(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->kind       = SKYT_OP_PUT;
    active->is_mending = true;
    active->started_us = twin->now_us;
    active->failed     = SKYT_CAUSE_NONE;
    SKYT_Outcome_Begin(twin, active);
    begin_phase(twin, active);
}

/* Return a digest of an operation's memory. */
static uint32_t digest_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t data = SKY_Crc32c(0, active->buffer, twin->config.block_bytes);

    return SKY_Crc32c(data, active->core.parity, SKYT_Content_ParityBytes(&twin->config));
}

void SKYT_Op_CheckMemory(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    if (active->is_called_back && digest_of(twin, active) != active->left)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a host writes into the memory of an operation that was called back");
    }
}

static void finish(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t failed)
{
    const uint32_t index = (uint32_t)(active - twin->active);

    active->is_stray =
        active->kind == SKYT_OP_GET && failed == SKYT_CAUSE_ABSENT &&
        (twin->config.parity > 0u ? SKYT_Rows_AreStray(twin, active) : SKYT_ShareRecord_IsStray(twin, active, active->denied));
    const bool         is_ahead = active->kind == SKYT_OP_TOUCH || active->kind == SKYT_OP_PREFETCH;
    const SKYT_Cause_t cause    = is_ahead                                           ? SKYT_Ahead_Ended(twin, active, failed)
                                  : active->is_missed && failed == SKYT_CAUSE_ABSENT ? SKYT_Outcome_Missed(twin, active)
                                                                                     : SKYT_Outcome_End(twin, active, failed);

    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfActive(twin, index));
    SKYT_Digest(twin, (uint32_t)cause, NULL, 0);
    SKYT_Pace_Restart(twin);
    count(twin, active, cause);
    if (!active->is_lazy && !active->is_mending)
    {
        SKYT_Result_t *result = &twin->results[active->op];

        result->version     = cause == SKYT_CAUSE_NONE ? active->version : 0u;
        result->ended       = 1;
        result->cause       = (uint32_t)cause;
        result->duration_us = (uint32_t)(twin->now_us - active->started_us);
        result->tries       = active->tries;
    }
    if (active->is_useless || (active->phase == SKYT_PHASE_MOVE && active->core.verdict == (uint32_t)SKY_VERDICT_PURGE))
    {
        become_purge(twin, active);
        return;
    }
    if (active->kind == SKYT_OP_GET && cause == SKYT_CAUSE_NONE && active->core.block.lost > 0u && active->op % MENDED == 0u)
    {
        become_mending(twin, active);
        return;
    }
    active->is_active                            = false;
    active->is_called_back                       = cause == SKYT_CAUSE_CANCELLED;
    active->left                                 = active->is_called_back ? digest_of(twin, active) : 0u;
    twin->active_free[twin->active_free_count++] = index;
    SKYT_Queue_SetBy(&twin->queue, SKYT_EventOfScript(twin, 0), twin->now_us); /* there is room for another operation */
}

/* With keys an attacker may say in a packet's way why it did not get there, which needs no tag. */
static SKYT_Cause_t cause_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t status)
{
    switch (status)
    {
        case SKY_STATUS_NO_SATELLITE:
        case SKY_STATUS_UNANSWERED:
            return SKYT_CAUSE_NOBODY;
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
        case SKY_STATUS_BAD_LENGTH:
            return active->version != 0u ? SKYT_CAUSE_REPLACED : SKYT_CAUSE_UNEXPLAINED;
        default:
            return SKYT_CAUSE_UNEXPLAINED;
    }
}

/* A look-up is over. */
static void end_find(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->silences   = active->found[0].silences;
    active->core.facts = active->found[0].facts;
    SKYT_Find_Judge(twin, active);
    switch (active->found[0].status)
    {
        case SKY_STATUS_DONE:
            if (!SKYT_Version_IsValue(twin, active->block) || SKYT_Register_Take(twin, active))
            {
                begin_phase(twin, active);
                return;
            }
            active->failed = SKYT_CAUSE_REPLACED; /* the host knows that there was a newer one */
            break;
        case SKY_STATUS_MISS:
            SKYT_Register_Got(twin, active, 0);
            active->failed = SKYT_CAUSE_ABSENT;
            break;
        default:
            active->failed = active->core.find.row_count == 0u
                                 ? SKYT_CAUSE_NOBODY /* at first, or when the last were to be asked */
                             : twin->sky_links_down > 0u ? SKYT_CAUSE_UNREACHABLE
                                                         : SKYT_CAUSE_EXPIRED;
            break;
    }
    active->is_missed = true;
    finish(twin, active, active->failed);
}

/* The word of the servers is known. */
static void end_check(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (active->core.status == SKY_STATUS_DONE && !active->core.is_sample)
    {
        SKYT_Truth_Held(twin, active, active->core.check.began_us);
    }
    if (active->core.verdict != (uint32_t)SKY_VERDICT_PURGE)
    {
        begin_phase(twin, active);
        return;
    }
    active->denied     = active->core.gone;
    active->aside_us   = active->core.aside_us;
    active->is_useless = true;
    finish(twin, active, SKYT_CAUSE_ABSENT);
}

/* Put a value once more if a newer version was in its way, above that one. @return false if it is no such put */
static bool put_above(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (active->kind != SKYT_OP_PUT || active->failed != SKYT_CAUSE_REPLACED || active->is_above || active->is_mending)
    {
        return false;
    }
    active->is_above = true;
    active->version  = SKYT_Version_Next(twin, active, active->core.block.held_version);
    SKYT_Register_Put(twin, active);
    active->failed = SKYT_CAUSE_NONE;
    begin_phase(twin, active);
    return true;
}

/* Get a value again of which satellites told another version, of another length. @return false if it is no such get */
static bool get_again(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    if (active->kind != SKYT_OP_GET || active->core.status != SKY_STATUS_BAD_LENGTH || active->is_renewed)
    {
        return false;
    }
    active->is_renewed = true;
    if (!SKYT_Register_Take(twin, active))
    {
        return false;
    }
    begin_phase(twin, active);
    return true;
}

static void end_move(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->epoch     = active->core.facts.epoch;
    active->version   = active->core.facts.version;
    active->failed    = cause_of(twin, active, active->core.status);
    active->denied    = active->core.gone;
    active->aside_us  = active->core.aside_us;
    active->fell_back = active->fell_back || active->core.is_passed;
    if (active->failed == SKYT_CAUSE_ABSENT)
    {
        SKYT_Register_Got(twin, active, 0);
    }
    if (!get_again(twin, active) && !put_above(twin, active))
    {
        finish(twin, active, active->failed);
    }
}

static void end_purge(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const bool is_done = active->core.status == SKY_STATUS_DONE;

    if (is_done)
    {
        SKYT_Register_Ended(twin, active);
        SKYT_Truth_Cleared(twin, active);
    }
    finish(twin, active, is_done ? SKYT_CAUSE_NONE : cause_of(twin, active, active->core.status));
}

void SKYT_Op_Ended(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->tries += active->core.tries;
    SKYT_Pace_Restart(twin);
    if (active->core.status == SKY_STATUS_CANCELLED)
    {
        finish(twin, active, SKYT_CAUSE_CANCELLED);
        return;
    }
    switch (active->phase)
    {
        case SKYT_PHASE_FIND:
            end_find(twin, active);
            break;
        case SKYT_PHASE_CHECK:
            end_check(twin, active);
            break;
        case SKYT_PHASE_MOVE:
            end_move(twin, active);
            break;
        case SKYT_PHASE_TOUCH:
        case SKYT_PHASE_PREFETCH:
            active->denied = active->core.gone;
            finish(twin, active,
                   active->core.status == SKY_STATUS_UNANSWERED ? SKYT_CAUSE_EXPIRED
                                                                : cause_of(twin, active, active->core.status));
            break;
        default:
            end_purge(twin, active);
            break;
    }
}

/* Return the time at which an operation that begins now is called back. It follows from the seed and the number of the operation. */
static uint64_t cancel_time(const SKYT_Twin_t *twin, uint32_t number)
{
    const uint64_t draw   = SKYT_DrawOf(twin, number);
    const uint64_t within = CANCEL_US >> SKYT_DrawOf(twin, draw) % CANCEL_SHARP;

    return draw % PPM < twin->config.cancel_ppm ? twin->now_us + (draw / PPM) % within : UINT64_MAX;
}

/* Call an operation back. It has to end at once. */
static void cancel(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->cancel_us = UINT64_MAX;
    SKY_Ground_Cancel(&ground_of(twin, active)->core, &active->core);
    SKYT_Ground_Run(twin, active->host - 1u);
    if (active->core.is_cancelled && active->core.status == SKY_STATUS_RUNNING)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "an operation goes on that its host has called back");
    }
}

/* ---- from beginning to end --------------------------------------------------------------------------------------------- */

static void begin(SKYT_Twin_t *twin, uint32_t number)
{
    const SKYT_Op_t    *op     = &twin->ops[number];
    SKYT_Active_t      *active = &twin->active[twin->active_free[--twin->active_free_count]];
    const SKYT_Active_t keep   = *active;

    SKYT_Op_CheckMemory(twin, active);
    (void)memset(active, 0, sizeof(*active));
    active->buffer      = keep.buffer;
    active->have        = keep.have;
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
    active->cancel_us   = cancel_time(twin, number);
    const bool is_value = SKYT_Version_IsValue(twin, active->block);

    active->kind      = is_value && op->kind == SKYT_OP_PREFETCH ? (uint32_t)SKYT_OP_GET : active->kind;
    const bool is_get = active->kind == SKYT_OP_GET;

    active->version = is_get || active->kind == SKYT_OP_TOUCH ? 0u : SKYT_Version_Next(twin, active, 0);
    SKYT_Register_Begin(twin, active);
    if (active->kind == SKYT_OP_PUT)
    {
        SKYT_Register_Put(twin, active);
    }

    active->checks = is_get && !is_value && twin->config.ask_first > 0u && number % twin->config.ask_first == 0u;
    active->looks_up =
        is_get && (is_value || (twin->config.look_up > 0u && number % twin->config.look_up == 1u % twin->config.look_up));
    SKYT_Digest(twin, number, NULL, 0);
    SKYT_ShareRecord_Begin(twin, active);
    SKYT_Outcome_Begin(twin, active);
    if (active->kind == SKYT_OP_TOUCH)
    {
        SKYT_Ahead_Chain(twin, active);
    }
    twin->truth[active->block].prefetching += active->kind == SKYT_OP_PREFETCH ? 1u : 0u;
    begin_phase(twin, active);
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

void SKYT_Op_Due(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Active_t *active = &twin->active[index];

    if (twin->now_us >= active->cancel_us)
    {
        cancel(twin, active);
        return;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, active->op, active->block, SKYT_NONE,
                    "an operation goes on after its deadline");
    SKY_Ground_Cancel(&ground_of(twin, active)->core, &active->core);
    SKYT_Ground_Run(twin, active->host - 1u);
}
