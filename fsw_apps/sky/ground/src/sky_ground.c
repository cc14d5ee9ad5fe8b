/**
 * @file
 * Operations of a ground host, from their beginning to their end: see sky_ground.h.
 */
#include "sky_ground.h"

#include <stddef.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define RUNS_MAX     64u    /* runs of the host in one call: others have their turn then */
#define BUNDLE_BYTES 65536u /* of large puts that go between two looks at what has come, while small operations run; */
#define BUNDLES      4u     /* and else so many */

/* ---- sky ------------------------------------------------------------------------------------------------------------- */

/* Return true if nothing in a sky leads out of the ground's tables. */
static bool IsSound(const SKY_GroundLimits_t *limits, const SKY_GroundSky_t *sky)
{
    const SKY_Placement_t *placement = &sky->schedule->placement;

    bool is_sound = placement->torus.planes == limits->torus.planes && placement->torus.slots == limits->torus.slots &&
                    placement->servers == limits->servers && sky->parity < limits->servers && sky->parity <= SKY_STRIPE_ROW_MAX &&
                    sky->uplink <= (uint32_t)SKY_UPLINK_ABOARD;

    for (uint32_t i = 0; is_sound && i < sky->seen_count; ++i)
    {
        is_sound = SKY_Torus_Contains(&limits->torus, sky->seen[i]);
    }
    return is_sound;
}

bool SKY_Ground_SetSky(SKY_Ground_t *ground, const SKY_GroundSky_t *sky)
{
    if (sky->schedule == NULL || !IsSound(&ground->limits, sky))
    {
        return false;
    }
    ground->sky = *sky;
    ++ground->skies;
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

SKY_GroundOp_t *SKY_Ground_OpOf(const SKY_HostBlock_t *block)
{
    SKY_ASSERT(block != NULL);
    SKY_GroundOp_t *op = (SKY_GroundOp_t *)((uintptr_t)block - offsetof(SKY_GroundOp_t, block));

    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT);
    return op;
}

bool SKY_Ground_Submit(SKY_Ground_t *ground, uint64_t now_us, SKY_GroundOp_t *op)
{
    SKY_ASSERT(now_us >= ground->now_us);
    SKY_ASSERT(ground->sky.schedule != NULL || op->kind == SKY_GROUND_EXCHANGE);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(!op->has_moved);
    if (ground->queue.waiting == ground->limits.queued)
    {
        return false;
    }
    ground->now_us   = now_us;
    op->submitted_us = now_us;
    op->status       = SKY_STATUS_RUNNING;
    op->verdict      = (uint32_t)SKY_VERDICT_KEEP;
    op->gone         = SKY_HOST_NONE;
    SKY_GroundQueue_Add(ground, op);
    return true;
}

/* Begin an operation whose turn it is. */
static void Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(ground->running < ground->limits.operations);
    SKY_ASSERT((ground->last == NULL) == (ground->running == 0u));
    op->is_due   = true;
    op->next     = NULL;
    op->previous = ground->last;
    op->memory   = ground->memory_free[ground->limits.operations - 1u - ground->running];
    SKY_ASSERT(op->memory < ground->limits.operations);
    op->places    = &ground->places[(size_t)op->memory * ground->limits.servers * (SKY_HOST_ROUNDS + 1u)];
    op->is_held   = &ground->is_held[(size_t)op->memory * ground->limits.servers];
    op->questions = &ground->questions[(size_t)op->memory * ground->asks_most];
    op->slots     = &ground->slots[(size_t)op->memory * ground->asks_most];
    ++ground->running;
    *(ground->last == NULL ? &ground->first : &ground->last->next) = op;
    ground->last                                                   = op;
    switch (op->kind)
    {
        case SKY_GROUND_FIND:
            SKY_GroundFind_Begin(ground, op);
            break;
        case SKY_GROUND_CHECK:
            SKY_GroundCheck_Begin(op);
            break;
        case SKY_GROUND_PURGE:
            SKY_GroundPurge_Begin(op);
            break;
        case SKY_GROUND_EXCHANGE:
            SKY_GroundExchange_Begin(op);
            break;
        case SKY_GROUND_TOUCH:
            break;
        case SKY_GROUND_PREFETCH:
            SKY_GroundPrefetch_Begin(op, ground->now_us);
            break;
        default:
            SKY_GroundMove_Begin(ground, op);
            break;
    }
}

/* Begin operations for which there is room. */
static void BeginAll(SKY_Ground_t *ground)
{
    SKY_GroundOp_t *op = SKY_GroundQueue_Take(ground);

    while (op != NULL)
    {
        Begin(ground, op);
        op = SKY_GroundQueue_Take(ground);
    }
    SKY_ASSERT(ground->running <= ground->limits.operations);
    SKY_ASSERT(ground->running > 0u || ground->queue.waiting == 0u); /* what is alone has room */
}

/* Put an operation behind the others that have ended. */
static void Hand(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint64_t asked_us = op->asked_us != 0u ? op->asked_us : ground->now_us;
    const uint64_t heard_us = op->heard_us > asked_us ? op->heard_us : asked_us;

    op->queue_us   = asked_us - op->submitted_us;
    op->network_us = heard_us - asked_us;
    op->rest_us    = ground->now_us - heard_us;
    SKY_ASSERT(op->submitted_us <= asked_us);
    SKY_ASSERT(heard_us <= ground->now_us);
    SKY_ASSERT(op->status != SKY_STATUS_RUNNING);
    SKY_ASSERT((ground->ended_first == NULL) == (ground->ended_last == NULL));
    op->next                                                                         = NULL;
    *(ground->ended_last == NULL ? &ground->ended_first : &ground->ended_last->next) = op;
    ground->ended_last                                                               = op;
}

/* End operations whose turn has not come by their deadlines. */
static void EndLate(SKY_Ground_t *ground)
{
    SKY_GroundOp_t *next = NULL;

    SKY_ASSERT(ground->queue.waiting <= ground->limits.queued);
    for (SKY_GroundOp_t *op = SKY_GroundQueue_TakeLate(ground); op != NULL; op = next)
    {
        next = op->next;
        SKY_GroundExchange_Expire(op);
        SKY_ASSERT(op->status != SKY_STATUS_RUNNING);
        Hand(ground, op);
    }
}

/* Take an operation that has ended out of those that run. */
static void End(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(ground->running >= 1u);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->verdict <= (uint32_t)SKY_VERDICT_PURGE);
    *(op->previous == NULL ? &ground->first : &op->previous->next) = op->next;
    *(op->next == NULL ? &ground->last : &op->next->previous)      = op->previous;
    --ground->running;
    SKY_ASSERT((ground->first == NULL) == (ground->running == 0u));
    ground->memory_free[ground->limits.operations - 1u - ground->running] = op->memory;
    SKY_ASSERT(op->memory < ground->limits.operations);
    SKY_GroundQueue_Ended(ground, op);
    Hand(ground, op);
}

void SKY_Ground_Cancel(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    if (op->status != SKY_STATUS_RUNNING)
    {
        return;
    }
    if (op->is_queued)
    {
        SKY_GroundQueue_Remove(ground, op);
        op->status = SKY_STATUS_CANCELLED;
        Hand(ground, op);
        return;
    }
    SKY_ASSERT(ground->running >= 1u);
    SKY_ASSERT(op->memory < ground->limits.operations);
    op->is_cancelled = true;
    op->is_due       = true;
    op->waits        = SKY_GROUND_WAIT_NOT; /* the inquiry goes on: what it finds is of use to others */
    SKY_Host_Stop(&ground->host, ground->now_us, &op->block, SKY_STATUS_CANCELLED);
    SKY_Host_Withdraw(&ground->host, op, SKY_STATUS_CANCELLED);
}

/* Let an operation go on. @return true if it waits */
static bool Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (op->is_cancelled)
    {
        op->status       = SKY_STATUS_CANCELLED;
        op->verdict      = (uint32_t)SKY_VERDICT_KEEP;
        op->find.is_open = false;
        return false;
    }
    switch (op->kind)
    {
        case SKY_GROUND_FIND:
            return SKY_GroundFind_Goes(ground, op);
        case SKY_GROUND_CHECK:
            return SKY_GroundCheck_Goes(ground, op);
        case SKY_GROUND_PURGE:
            return SKY_GroundPurge_Goes(ground, op);
        case SKY_GROUND_EXCHANGE:
            return SKY_GroundExchange_Goes(ground, op);
        case SKY_GROUND_TOUCH:
            return SKY_GroundTouch_Goes(ground, op);
        case SKY_GROUND_PREFETCH:
            return SKY_GroundPrefetch_Goes(ground, op);
        default:
            SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT);
            return SKY_GroundMove_Goes(ground, op);
    }
}

/* Let an operation go on, to its end if nothing keeps it. */
static void Go(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    op->is_due       = false;
    const bool waits = Goes(ground, op);

    SKY_ASSERT(waits == (op->status == SKY_STATUS_RUNNING));
    SKY_ASSERT(!waits || !op->is_due);
    if (!waits)
    {
        End(ground, op);
    }
}

/* Let all operations go on that can. @return true if any could */
static bool GoAll(SKY_Ground_t *ground)
{
    bool            has_gone = false;
    SKY_GroundOp_t *next     = NULL;

    for (SKY_GroundOp_t *op = ground->first; op != NULL; op = next)
    {
        next = op->next;
        SKY_ASSERT(next == NULL || next->previous == op);
        SKY_ASSERT(op->memory < ground->limits.operations);
        if (op->is_due)
        {
            has_gone = true;
            Go(ground, op);
        }
    }
    return has_gone;
}

SKY_GroundOp_t *SKY_Ground_Ended(SKY_Ground_t *ground)
{
    SKY_GroundOp_t *op = ground->ended_first;

    if (op != NULL)
    {
        ground->ended_first = op->next;
        ground->ended_last  = op->next == NULL ? NULL : ground->ended_last;
        op->next            = NULL;
        SKY_ASSERT(op->status != SKY_STATUS_RUNNING);
        SKY_ASSERT((ground->ended_first == NULL) == (ground->ended_last == NULL));
    }
    return op;
}

/* ---- packets and time ------------------------------------------------------------------------------------------------ */

void SKY_Ground_Receive(SKY_Ground_t *ground, uint64_t now_us, uint64_t endpoint, const uint8_t *data, size_t len)
{
    SKY_ASSERT(now_us >= ground->now_us);
    SKY_ASSERT(data != NULL || len == 0u);
    ground->now_us = now_us;
    SKY_Host_Receive(&ground->host, now_us, endpoint, data, len);
}

/* Note when something of an operation was asked, and answered. @param heard_us  0: it was not */
static void NoteTimes(SKY_GroundOp_t *op, uint64_t asked_us, uint64_t heard_us)
{
    SKY_ASSERT(heard_us == 0u || asked_us != 0u);
    SKY_ASSERT(heard_us == 0u || heard_us >= asked_us);
    op->asked_us = op->asked_us == 0u ? asked_us : op->asked_us;
    op->heard_us = heard_us > op->heard_us ? heard_us : op->heard_us;
}

uint32_t SKY_Ground_Progress(const SKY_GroundOp_t *op, uint32_t *total)
{
    const SKY_Stripe_t *stripe = &op->facts.stripe;

    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT);
    *total = stripe->chunk_total - (op->kind == SKY_GROUND_GET ? SKY_Stripe_Rows(stripe) * stripe->code_m : 0u);
    return op->block.moved < *total ? op->block.moved : *total; /* parity may come beside data */
}

/* Hand the end of a question to who has asked it. */
static void TakeAnswer(SKY_Ground_t *ground, SKY_HostQuestion_t *question)
{
    SKY_GroundHearing_Note(ground, question);
    if (question->owner == (void *)&ground->inquiry)
    {
        SKY_ASSERT(ground->inquiry.running >= 1u);
        --ground->inquiry.running;
        return;
    }
    if (question->owner == (void *)ground->strays)
    {
        SKY_GroundHearing_Strayed(ground, question);
        return;
    }
    SKY_GroundOp_t *op = question->owner;

    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(op->asking >= 1u);
    NoteTimes(op, question->first_us, question->status == SKY_STATUS_DONE && question->sent > 0u ? ground->now_us : 0u);
    if (op->find.is_open && op->is_cancelled)
    {
        --op->asking; /* it ends next, and asks nobody in the place of this one */
        return;
    }
    if (op->find.is_open)
    {
        SKY_GroundFind_Answered(ground, op, question);
        return;
    }
    if (op->kind == SKY_GROUND_CHECK && op->check.step == SKY_GROUND_CHECK_HELD && !op->is_cancelled)
    {
        SKY_GroundCheck_Answered(ground, op, question);
        return;
    }
    --op->asking;
    op->is_due = op->asking == 0u;
}

/* Take in what has ended in the host. @return true if something has: others may be asked then */
static bool TakeEnds(SKY_Ground_t *ground)
{
    SKY_HostBlock_t    *block;
    SKY_HostQuestion_t *question;
    bool                has_taken = false;

    while ((block = SKY_Host_NextEnded(&ground->host)) != NULL)
    {
        SKY_GroundOp_t *op = SKY_Ground_OpOf(block);

        SKY_ASSERT(block->status != SKY_STATUS_RUNNING);
        SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
        SKY_ASSERT(!op->has_moved);
        NoteTimes(op, block->asked_us, block->heard_us);
        op->has_moved = true;
        op->is_due    = true;
        has_taken     = true;
    }
    while ((question = SKY_Host_NextAnswered(&ground->host)) != NULL)
    {
        TakeAnswer(ground, question);
        has_taken = true;
    }
    return has_taken;
}

/* Let operations go on that have waited for a time. @param timers  as for SKY_Ground_Run @return the next such time */
static uint64_t Wake(const SKY_Ground_t *ground, bool timers)
{
    uint64_t next_us = UINT64_MAX;

    for (SKY_GroundOp_t *op = ground->first; op != NULL; op = op->next)
    {
        SKY_ASSERT(op->wakes_us == 0u || op->asking == 0u || op->find.is_open);
        if (timers && op->wakes_us != 0u && op->wakes_us <= ground->now_us)
        {
            op->wakes_us = 0;
            op->waits    = SKY_GROUND_WAIT_NOT; /* it waits for an inquiry no longer */
            op->is_due   = true;
        }
        next_us = op->wakes_us != 0u && op->wakes_us < next_us ? op->wakes_us : next_us;
    }
    return next_us > ground->now_us ? next_us : ground->now_us;
}

uint64_t SKY_Ground_Run(SKY_Ground_t *ground, uint64_t now_us, bool timers)
{
    uint64_t due_us = now_us;
    bool     goes   = true;

    SKY_ASSERT(now_us >= ground->now_us);
    ground->now_us = now_us;
    if (timers)
    {
        EndLate(ground);
    }
    BeginAll(ground);
    SKY_Host_SetQuantum(&ground->host, ground->running > ground->queue.large ? BUNDLE_BYTES : BUNDLES * BUNDLE_BYTES);
    (void)TakeEnds(ground); /* of what was called back: it must not be asked for any more */
    for (uint32_t runs = 0; goes && runs < RUNS_MAX; ++runs)
    {
        (void)Wake(ground, timers);
        bool has_acted = GoAll(ground);

        due_us    = SKY_Host_Run(&ground->host, now_us, timers);
        has_acted = SKY_GroundReplace_Run(ground) || has_acted;
        has_acted = TakeEnds(ground) || has_acted;
        SKY_GroundQueue_Resume(ground);
        has_acted = GoAll(ground) || has_acted;
        has_acted = SKY_GroundInquiry_Run(ground) || has_acted;
        due_us    = has_acted ? now_us : due_us;
        goes =
            (has_acted || (timers && due_us <= now_us)) && ground->host.quantum_left > 0u; /* without timers it is due at once */
        BeginAll(ground);
    }
    const uint64_t wakes_us = Wake(ground, timers);
    const uint64_t ends_us  = ground->queue.expires_us > now_us ? ground->queue.expires_us : now_us; /* timers may have to wait */
    const uint64_t either_us = wakes_us < ends_us ? wakes_us : ends_us;

    SKY_ASSERT(due_us >= now_us);
    return due_us < either_us ? due_us : either_us;
}
