/**
 * @file
 * GET and PUT: attempts to move a block. sky_transfer_attempts.h decides what comes between them, and what a failed one means.
 *
 *     GET  ASK --> its chunks have come ------------------------------------------------> DONE
 *              --> nobody is in sight, or nobody answers this host ---------------------> NO_SATELLITE, UNANSWERED
 *              --> a place was silent ---------------------> LOOK --> ASK, once
 *              --> a stand-in does not have its share -----> DOUBT -> ASK, once
 *              --> denied, and the window has moved on -------------> ASK, three times in all
 *              --> silent or denied, and a handover may go on -> SEARCH --> ASK at those who are late, too: once,
 *              |                                                    and again if a row has begun meanwhile; else EXPIRED
 *              --> denied by all, or another block has the key -> CONFIRM --> ASK, once, for what satellites know
 *                                                                         --> MISS, or UNANSWERED if too few homes speak;
 *                                                                             BAD_LENGTH: it does not fit the memory
 *     PUT  ASK --> enough chunks are stored --> satellites forget older versions ---------> DONE
 *              --> nobody can be asked: as a GET
 *              --> a place was silent --> LOOK --> ASK, once; then the outcome of that
 *              --> refused -------------------------------------------------------------> OLD_VERSION, TOO_LARGE, ...
 *
 * ASK waits for its turn in the host's tables (sky_ground_queue.c). While a block moves, others are asked besides those that are late
 * (sky_ground_replace.c). CONFIRM is drawn in sky_ground_confirm.c.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

/* ---- an attempt ------------------------------------------------------------------------------------------------------ */

/* Mark the shares of a PUT that are held where they are to be. @return true if all are: there is nothing to send */
static bool AreAllHeld(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t total  = op->facts.stripe.chunk_total;
    const uint32_t shares = total < ground->limits.servers ? total : ground->limits.servers;
    uint32_t       held   = 0;

    SKY_ASSERT(op->kind == SKY_GROUND_PUT);
    SKY_ASSERT(op->holders != NULL);
    for (uint32_t share = 0; share < shares; ++share)
    {
        const SKY_Addr_t place = {op->places[share].plane, op->places[share].slot};

        op->is_held[share] = SKY_Addr_Equal(place, op->holders[share]);
        held += op->is_held[share] ? 1u : 0u;
    }
    op->block.holders = op->is_held;
    return held == shares;
}

/* Begin a transfer, or wait for room for it. @return false if nobody is to be asked, or nothing to be gained; the attempts go on, or are over */
static bool BeginTransfer(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(!op->has_moved);
    SKY_ASSERT(op->asking == 0u);
    op->besides = 0;
    if (!SKY_GroundWays_Find(ground, op))
    {
        op->outcome = SKY_STATUS_NO_SATELLITE;
        SKY_TransferAttempts_GiveUp(&op->attempts);
        return false;
    }
    if (!SKY_GroundQueue_HasRoom(ground, op))
    {
        return true;
    }
    op->has_asked_lost    = false;
    const SKY_Rows_t rows = {ground->shares.rows, ground->shares.row_count};

    if (!SKY_TransferAttempts_Begin(&op->attempts, &rows, SKY_GroundWays_Number(ground, op)))
    {
        return false;
    }
    if (op->kind == SKY_GROUND_PUT)
    {
        (void)memset(&op->places[ground->limits.servers], 0,
                     ground->limits.servers * sizeof(*op->places)); /* nobody stands in yet */
        if (op->holders != NULL && AreAllHeld(ground, op))
        {
            op->outcome = SKY_STATUS_DONE;
            SKY_TransferAttempts_GiveUp(&op->attempts);
            return false;
        }
    }
    op->tries += (uint32_t)SKY_Host_Pieces(&ground->host, &op->block);
    if (SKY_Host_Begin(&ground->host, ground->now_us, &op->block) != SKY_HOST_BEGUN)
    {
        op->outcome = SKY_STATUS_REFUSED; /* its numbers contradict each other, or it is larger than the tables */
        SKY_TransferAttempts_GiveUp(&op->attempts);
        return false;
    }
    return true;
}

/* Begin an attempt. @return false if the attempts go on, or are over */
static bool Ask(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->attempts.step == (uint32_t)SKY_ATTEMPT_ASK);
    switch (SKY_GroundInquiry_May(ground, op))
    {
        case SKY_GROUND_MAY_NOW:
            return BeginTransfer(ground, op);
        case SKY_GROUND_MAY_LATER:
            return true;
        default:
            op->outcome = SKY_STATUS_UNANSWERED;
            SKY_TransferAttempts_GiveUp(&op->attempts);
            return false;
    }
}

/* Take in the end of a transfer. */
static void TakeEnd(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundWatch_t *watch  = &ground->shell.watch;
    const SKY_HostBlock_t   *block  = &op->block;
    const uint32_t           status = block->status;
    const SKY_Places_t       places = SKY_GroundWays_Rule(ground);
    uint32_t                 found[SKY_PLACES_ROWS_MAX];

    if (op->kind == SKY_GROUND_GET && status == SKY_STATUS_MISS)
    {
        op->facts.epoch = SKY_GroundPrefetch_EpochOf(ground, op);
    }
    const SKY_Rows_t rows = {found, SKY_Places_Rows(&places, ground->now_us, op->facts.epoch, found)};

    SKY_ASSERT(op->has_moved);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    SKY_ASSERT(rows.count >= 1u);
    SKY_ASSERT(op->attempts.asks >= 1u);
    op->has_moved = false;
    op->tries += block->passes;
    op->is_passed       = op->is_passed || block->passes > 0u || op->attempts.asks > 1u;
    op->gone            = block->status == SKY_STATUS_MISS && op->kind == SKY_GROUND_GET ? block->failed_chunk : SKY_HOST_NONE;
    op->failed_on.plane = (uint16_t)block->failed_plane;
    op->failed_on.slot  = (uint16_t)block->failed_slot;
    if (watch->Moved != NULL)
    {
        watch->Moved(watch->context, op, status);
    }
    /* If it was prefetched meanwhile, it has another epoch, and so these are other rows. */
    SKY_TransferAttempts_Ended(&op->attempts, status, block->at_stand_in, block->is_unsettled, &rows, SKY_GroundWays_Row(ground));
    op->outcome = op->attempts.status;
    SKY_ASSERT(op->outcome != SKY_STATUS_RUNNING);
}

static bool IsValue(const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind <= SKY_GROUND_PUT);
    return op->facts.version != 0u;
}

/* ---- between attempts ------------------------------------------------------------------------------------------------ */

/* Search for late satellites, unless they are known. @return true if the operation waits */
static bool Search(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(op->attempts.step == (uint32_t)SKY_ATTEMPT_SEARCH);
    if (!op->has_searched && !SKY_GroundWays_Late(ground).is_known)
    {
        op->has_searched = true;
        SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LATE);
        return true;
    }
    const SKY_Late_t late = SKY_GroundWays_Late(ground);

    op->has_searched = false;
    SKY_TransferAttempts_Searched(&op->attempts, &late, ground->handovers.row);
    return false;
}

/* Find out what became of the block. @return true if the operation waits */
static bool Confirm(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_TransferAttempts_t *attempts = &op->attempts;
    bool                    is_other;
    bool                    is_aside;

    SKY_ASSERT(attempts->step == (uint32_t)SKY_ATTEMPT_CONFIRM);
    if (SKY_GroundConfirm_Waits(ground, op, SKY_Verdict_MayPurge(&attempts->denied), &is_other, &is_aside))
    {
        return true;
    }
    SKY_TransferAttempts_Confirmed(attempts, is_other, op->is_blind, is_aside);
    if (!SKY_Stripe_Equal(&op->facts.stripe, &op->block.stripe))
    {
        op->outcome = SKY_STATUS_BAD_LENGTH;
        SKY_TransferAttempts_GiveUp(attempts);
    }
    else if (op->outcome == SKY_STATUS_MISS && IsValue(op) && (!op->has_words || (attempts->denied.is_other && !op->is_ahead)))
    {
        op->outcome = SKY_STATUS_UNANSWERED; /* who is silent may know it, or it has changed twice meanwhile */
        SKY_TransferAttempts_GiveUp(attempts);
    }
    else
    {
        op->has_words = op->has_words && attempts->step == (uint32_t)SKY_ATTEMPT_END;
    }
    return false;
}

/* Do what comes next. @return true if the operation waits */
static bool Step(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_AttemptStep_t step)
{
    SKY_ASSERT(step != SKY_ATTEMPT_END);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->kind == SKY_GROUND_GET || step <= SKY_ATTEMPT_LOOK);
    switch (step)
    {
        case SKY_ATTEMPT_ASK:
            return Ask(ground, op);
        case SKY_ATTEMPT_LOOK:
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
            return true;
        case SKY_ATTEMPT_DOUBT:
            op->doubts = true;
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_BACK);
            return true;
        case SKY_ATTEMPT_SEARCH:
            return Search(ground, op);
        default:
            return Confirm(ground, op);
    }
}

void SKY_GroundMove_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Late_t late = SKY_GroundWays_Late(ground);

    if (op->kind == SKY_GROUND_GET)
    {
        SKY_TransferAttempts_InitGet(&op->attempts, &late, SKY_GroundWays_Row(ground), ground->sky.lazy_purge);
    }
    else
    {
        SKY_ASSERT(op->kind == SKY_GROUND_PUT);
        SKY_TransferAttempts_InitPut(&op->attempts);
    }
    SKY_ASSERT(op->attempts.step == (uint32_t)SKY_ATTEMPT_ASK);
    SKY_ASSERT(op->deadline_ms >= 1u);
}

bool SKY_GroundMove_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_AttemptStep_t step;

    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT);
    if (op->has_moved)
    {
        TakeEnd(ground, op);
    }
    if (op->left_out.plane != 0u && op->attempts.asks > 0u)
    {
        op->status = op->outcome; /* what others do not have says nothing of the block */
        return false;
    }
    do
    {
        if (op->kind == SKY_GROUND_GET && op->outcome == SKY_STATUS_MISS && IsValue(op) && !op->has_words)
        {
            SKY_TransferAttempts_Doubt(&op->attempts);
        }
        step = SKY_TransferAttempts_Next(&op->attempts);
    } while (step != SKY_ATTEMPT_END && !Step(ground, op, step));
    if (step != SKY_ATTEMPT_END)
    {
        return true;
    }
    SKY_ASSERT(op->outcome != SKY_STATUS_RUNNING);
    if (op->kind == SKY_GROUND_PUT && op->outcome == SKY_STATUS_DONE && SKY_GroundOlder_Asks(ground, op))
    {
        return true;
    }
    op->status  = op->outcome;
    op->verdict = (uint32_t)(op->changes == ground->sky.changes && op->status != SKY_STATUS_UNANSWERED
                                 ? SKY_TransferAttempts_Verdict(&op->attempts)
                                 : SKY_VERDICT_KEEP);
    SKY_ASSERT(op->status != SKY_STATUS_DONE || op->verdict == (uint32_t)SKY_VERDICT_KEEP);
    return false;
}
