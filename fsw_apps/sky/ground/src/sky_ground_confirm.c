/**
 * @file
 * What a GET asks before it ends without its block, which may be purged then: whether another host has prefetched it for a row to come, or
 * has replaced it, or has put some of it at stand-ins.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

/* ---- prefetched, or replaced ----------------------------------------------------------------------------------------- */

/* Return true if the servers of now say that the block is prefetched for a row to come. */
static bool IsAhead(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Places_t places = SKY_GroundWays_Rule(ground);
    uint32_t           rows[SKY_PLACES_ROWS_MAX];

    SKY_ASSERT(op->find.has_asked);
    if (SKY_GroundFind_Word(op) != SKY_WORD_BLOCK)
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
    const SKY_GroundMay_t may = SKY_GroundInquiry_May(ground, op);

    SKY_ASSERT(op->confirms == SKY_GROUND_CONFIRM_AHEAD);
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
    SKY_ASSERT(op->asks <= ground->limits.servers);
    return SKY_GroundFind_AskAll(ground, op);
}

/* Take in the facts of a block that satellites know. Their lengths are the satellites' word: no transfer begins for which the operation's memory was
 * not made. @return true if another one has the key, or if it waits for a row to come */
static bool TakeFacts(SKY_GroundOp_t *op, bool is_found)
{
    const bool is_other = is_found && SKY_Word_IsOther(&op->find.facts, &op->facts);

    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(!op->is_ahead || op->ahead_epoch != 0u);
    if (is_other && op->find.facts.version >= op->known)
    {
        op->facts = op->find.facts; /* it is the operation's from now on */
        return true;
    }
    op->facts.epoch = op->is_ahead ? op->ahead_epoch : op->facts.epoch;
    return op->is_ahead;
}

/* Ask whether the block is prefetched, or replaced. @return true if the operation waits */
static bool AsksOther(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_other)
{
    SKY_ASSERT(op->confirms != SKY_GROUND_CONFIRM_ASIDE);
    if (op->confirms == SKY_GROUND_CONFIRM_NOT)
    {
        SKY_GroundFind_Begin(ground, op);
        op->confirms = SKY_GROUND_CONFIRM_AHEAD;
    }
    if (op->confirms == SKY_GROUND_CONFIRM_AHEAD)
    {
        if (!op->find.has_asked && AskAhead(ground, op))
        {
            return true;
        }
        op->is_ahead    = IsAhead(ground, op);
        op->ahead_epoch = op->find.facts.epoch;
        op->confirms    = SKY_GROUND_CONFIRM_OTHER;
        SKY_GroundFind_Begin(ground, op);
    }
    SKY_ASSERT(op->confirms == SKY_GROUND_CONFIRM_OTHER);
    if (SKY_GroundFind_Waits(ground, op))
    {
        return true;
    }
    *is_other = TakeFacts(op, SKY_Lookup_Status(&op->find.core, 0, false) == SKY_STATUS_DONE);
    return false;
}

/* ---- at stand-ins ---------------------------------------------------------------------------------------------------- */

/* Ask the satellites that stand in first, but for lost ones. @return false if there are none */
static bool AskSpares(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;

    SKY_ASSERT(op->outcome != SKY_STATUS_DONE);
    SKY_GroundFind_Begin(ground, op);
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
    return SKY_GroundFind_AskFor(ground, op, SKY_GroundAsk_WaitUs(ground, op, true));
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

bool SKY_GroundConfirm_AsksAside(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_aside)
{
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

bool SKY_GroundConfirm_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_other, bool *is_aside)
{
    *is_other = false;
    *is_aside = false;
    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    if (op->confirms != SKY_GROUND_CONFIRM_ASIDE)
    {
        if (AsksOther(ground, op, is_other))
        {
            return true;
        }
        op->confirms       = *is_other ? SKY_GROUND_CONFIRM_NOT : SKY_GROUND_CONFIRM_ASIDE;
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
