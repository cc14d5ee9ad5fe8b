/**
 * @file
 * What a GET or a CHECK asks before it ends without its block, which may be purged then:
 *
 *     AHEAD -> has another host prefetched it for a row to come?
 *     OTHER -> has another block its key? Of a value, m + 1 homes say so: a GET has a miss only then
 *     BLIND -> do satellites follow a schedule that this host does not know?
 *     ASIDE -> do stand-ins hold some of it, or does it wait for a row to come?
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define QUESTION_US UINT64_C(1000000) /* least time that an answer is waited for, unless the operation has less */

/* ---- questions about the block --------------------------------------------------------------------------------------- */

/* Ask those who were added for the block, and wait so long at most. @return false if there are none */
static bool AskFor(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint64_t wait_us)
{
    SKY_HostQuestion_t what;

    (void)memset(&what, 0, sizeof(what));
    what.op            = SKY_OP_HAS;
    what.flags         = SKY_FLAG_ANY;
    what.payload       = ground->any;
    what.payload_bytes = ground->any_bytes;
    SKY_ASSERT(!op->find.has_asked);
    SKY_ASSERT(!op->find.is_open);
    op->find.has_asked = true;
    return SKY_GroundAsk_All(ground, op, &what, wait_us);
}

/* Take the newest facts of the block from what those said who were asked for it. @return false if nobody knows it */
static bool TakeNewest(SKY_GroundOp_t *op)
{
    bool is_known = false;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->find.has_asked);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        const bool                is_done  = question->status == SKY_STATUS_DONE;
        SKY_BlockFacts_t          facts;

        if (SKY_Word_Of(is_done ? &question->answer : NULL, question->key, &facts) == SKY_WORD_BLOCK &&
            (!is_known || SKY_Word_IsNewer(&facts, &op->find.facts)))
        {
            op->find.facts = facts;
            is_known       = true;
        }
        if (!is_done)
        {
            op->failed_on = (SKY_Addr_t){question->place.plane, question->place.slot};
        }
    }
    return is_known;
}

/* ---- prefetched, or replaced ----------------------------------------------------------------------------------------- */

/* Return true if the servers of now say that the block is prefetched for a row to come. */
static bool IsAhead(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Places_t places = SKY_GroundWays_Rule(ground);
    uint32_t           rows[SKY_PLACES_ROWS_MAX];

    SKY_ASSERT(op->find.has_asked);
    if (!TakeNewest(op))
    {
        return false;
    }
    const SKY_BlockFacts_t *facts = &op->find.facts;
    const uint32_t          count = SKY_Places_Rows(&places, ground->now_us, facts->epoch, rows);

    SKY_ASSERT(count >= 1u);
    return SKY_Word_IsAhead(facts, SKY_GroundWays_Row(ground), rows, count);
}

/* Ask the servers of now. @return false if that is done */
static bool AskAhead(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundMay_t may     = SKY_GroundInquiry_May(ground, op);
    const uint64_t        most_us = (uint64_t)op->deadline_ms * SKY_GROUND_US_PER_MS;

    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_CHECK);
    if (may == SKY_GROUND_MAY_LATER)
    {
        return true;
    }
    op->has_asked_lost = false;
    op->asks           = 0;
    SKY_GroundWays_Servers(ground, SKY_GroundWays_Row(ground));
    for (uint32_t server = 0; may == SKY_GROUND_MAY_NOW && server < ground->limits.servers; ++server)
    {
        SKY_GroundAsk_Add(ground, op, ground->placed[server]);
    }
    const uint64_t patience_us = SKY_GroundAsk_WaitUs(ground, op, false);
    const uint64_t wait_us     = patience_us > QUESTION_US ? patience_us : QUESTION_US;

    SKY_ASSERT(op->asks <= ground->limits.servers);
    return AskFor(ground, op, wait_us < most_us ? wait_us : most_us);
}

bool SKY_GroundConfirm_AsksAhead(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    if (!op->find.has_asked && AskAhead(ground, op))
    {
        return true;
    }
    SKY_ASSERT(op->asking == 0u);
    op->is_ahead       = IsAhead(ground, op);
    op->find.has_asked = false;
    if (op->is_ahead)
    {
        op->facts.epoch = op->find.facts.epoch; /* it is the operation's from now on */
    }
    SKY_ASSERT(!op->is_ahead || op->facts.epoch != 0u);
    return false;
}

/* Take in the facts of a block that satellites know. Their lengths are the satellites' word: no transfer begins for which the operation's memory was
 * not made. @return true if another one has the key, or if it waits for a row to come */
static bool TakeFacts(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundFound_t *one      = &op->find.one;
    const bool               is_found = one->status == SKY_STATUS_DONE;

    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(one->status != SKY_STATUS_RUNNING);
    /* What stand-ins alone know and do not give may be at the homes, and so may the shares that stand-ins deny of what homes know. */
    op->has_words =
        is_found ? !op->attempts.denied.at_stand_in && (op->find.parity == 0u || SKY_GroundFirst_IsAnyHome(ground, op, one))
                 : one->status == SKY_STATUS_MISS;
    if (is_found && SKY_Word_IsOther(&one->facts, &op->facts) && one->facts.version >= op->known)
    {
        op->facts = one->facts; /* it is the operation's from now on */
        return true;
    }
    return op->is_ahead;
}

/* Ask whether the block is prefetched, or replaced. @return true if the operation waits */
static bool AsksOther(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_other)
{
    SKY_ASSERT(op->confirms <= SKY_GROUND_CONFIRM_OTHER);
    if (op->confirms == SKY_GROUND_CONFIRM_NOT)
    {
        op->find.has_asked = false;
        op->confirms       = SKY_GROUND_CONFIRM_AHEAD;
    }
    if (op->confirms == SKY_GROUND_CONFIRM_AHEAD)
    {
        if (SKY_GroundConfirm_AsksAhead(ground, op))
        {
            return true;
        }
        op->confirms = SKY_GROUND_CONFIRM_OTHER;
        SKY_GroundFind_BeginOne(ground, op, op->facts.version != 0u || op->outcome == SKY_STATUS_BAD_KEY);
    }
    SKY_ASSERT(op->confirms == SKY_GROUND_CONFIRM_OTHER);
    if (SKY_GroundFind_Waits(ground, op))
    {
        return true;
    }
    *is_other = TakeFacts(ground, op);
    return false;
}

/* ---- a schedule that the host does not know -------------------------------------------------------------------------- */

bool SKY_GroundConfirm_AsksBlind(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_CHECK);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (ground->sky.is_unscheduled && !op->has_asked_blind)
    {
        op->has_asked_blind = true;
        SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_BLIND);
        return true;
    }
    op->is_blind        = op->has_asked_blind && ground->is_blind;
    op->has_asked_blind = false;
    return false;
}

/* ---- at stand-ins ---------------------------------------------------------------------------------------------------- */

/* Ask the satellites that stand in first, but for lost ones. @return false if there are none */
static bool AskSpares(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;

    SKY_ASSERT(op->outcome != SKY_STATUS_DONE);
    op->find.spares = SKY_Ground_Spares(ground, ground->now_us);
    op->aside_us    = ground->now_us;
    op->asks        = 0;
    for (uint32_t number = 0; number < satellites; ++number)
    {
        const SKY_Addr_t satellite = SKY_GroundWays_AddrOf(ground, number);

        if (ground->aside[number] && !SKY_Ground_IsLost(ground, satellite))
        {
            SKY_GroundAsk_Add(ground, op, satellite);
        }
    }
    SKY_ASSERT(op->asks <= op->find.spares);
    return AskFor(ground, op, SKY_GroundAsk_WaitUs(ground, op, true));
}

/* Count the satellites that said that they hold nothing of the block. */
static uint32_t DenialsOf(const SKY_GroundOp_t *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        const bool                is_done  = question->status == SKY_STATUS_DONE;
        SKY_BlockFacts_t          facts;

        SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
        count += SKY_Word_Of(is_done ? &question->answer : NULL, question->key, &facts) == SKY_WORD_ABSENT ? 1u : 0u;
    }
    SKY_ASSERT(count <= op->asks);
    return count;
}

/* Return true if the operation's block waits for a row to come. */
static bool WaitsForRow(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(ground->sky.schedule != NULL);
    SKY_ASSERT(op->outcome != SKY_STATUS_DONE);
    return op->facts.epoch > SKY_GroundWays_Row(ground) && op->facts.epoch <= ground->sky.schedule->count;
}

bool SKY_GroundConfirm_AsksAside(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_aside)
{
    if (WaitsForRow(ground, op))
    {
        *is_aside = true; /* another host may have moved it to an earlier row meanwhile, where no purge would spare it */
        return false;
    }
    if (!op->find.has_asked && AskSpares(ground, op))
    {
        return true;
    }
    const uint32_t denials = DenialsOf(op);

    SKY_ASSERT(op->find.has_asked);
    SKY_ASSERT(denials <= op->find.spares);
    op->find.has_asked = false;
    *is_aside          = SKY_Verdict_IsAside(op->find.spares, denials);
    return false;
}

bool SKY_GroundConfirm_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool may_purge, bool *is_other, bool *is_aside)
{
    *is_other = false;
    *is_aside = false;
    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (op->confirms <= SKY_GROUND_CONFIRM_OTHER)
    {
        if (AsksOther(ground, op, is_other))
        {
            return true;
        }
        op->confirms = *is_other || !may_purge ? SKY_GROUND_CONFIRM_NOT : SKY_GROUND_CONFIRM_BLIND;
        op->is_blind = false;
    }
    if (op->confirms == SKY_GROUND_CONFIRM_BLIND)
    {
        if (SKY_GroundConfirm_AsksBlind(ground, op))
        {
            return true;
        }
        op->confirms       = op->is_blind ? SKY_GROUND_CONFIRM_NOT : SKY_GROUND_CONFIRM_ASIDE;
        op->find.has_asked = false;
    }
    if (op->confirms == SKY_GROUND_CONFIRM_ASIDE && SKY_GroundConfirm_AsksAside(ground, op, is_aside))
    {
        return true;
    }
    op->confirms = SKY_GROUND_CONFIRM_NOT;
    SKY_ASSERT(!*is_other || !*is_aside);
    return false;
}
