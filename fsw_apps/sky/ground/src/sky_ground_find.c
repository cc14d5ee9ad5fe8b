/**
 * @file
 * FIND: the look-up of a block by its key alone. sky_lookup.h decides who is asked by HAS, and whether the block is found, missed or not
 * answered.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define QUESTION_US UINT64_C(1000000) /* least time that an answer is waited for, unless the operation has less */

void SKY_GroundFind_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Late_t  late = SKY_GroundWays_Late(ground);
    SKY_GroundFind_t *find = &op->find;
    SKY_ChunkSet_t    any;

    SKY_ASSERT(op->asking == 0u);
    (void)memset(find, 0, sizeof(*find));
    (void)SKY_ChunkSet_Init(&any, 0, 1, 1); /* one chunk makes a sound set */
    SKY_ChunkSet_Add(&any, 0);
    find->payload_bytes = (uint32_t)SKY_ChunkSet_Encode(&any, find->payload, sizeof(find->payload));
    SKY_ASSERT(find->payload_bytes >= 1u);
    SKY_Lookup_Init(&find->core, &find->key, 1, late.is_known && late.is_over);
    SKY_ASSERT(find->core.step == (uint32_t)SKY_LOOKUP_ASK);
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

bool SKY_GroundFind_AskFor(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint64_t wait_us)
{
    SKY_HostQuestion_t what;

    (void)memset(&what, 0, sizeof(what));
    what.op            = SKY_OP_HAS;
    what.flags         = SKY_FLAG_ANY;
    what.payload       = op->find.payload;
    what.payload_bytes = op->find.payload_bytes;
    SKY_ASSERT(!op->find.has_asked);
    op->find.has_asked = true;
    SKY_ASSERT(what.payload_bytes >= 1u);
    SKY_ASSERT(what.payload_bytes <= SKY_CHUNKSET_MAX_BYTES);
    return SKY_GroundAsk_All(ground, op, &what, wait_us);
}

bool SKY_GroundFind_AskAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint64_t most_us     = (uint64_t)op->deadline_ms * SKY_GROUND_US_PER_MS;
    const uint64_t patience_us = SKY_GroundAsk_WaitUs(ground, op, false);
    const uint64_t wait_us     = patience_us > QUESTION_US ? patience_us : QUESTION_US;

    SKY_ASSERT(most_us >= 1u);
    SKY_ASSERT(patience_us >= 1u);
    return SKY_GroundFind_AskFor(ground, op, wait_us < most_us ? wait_us : most_us);
}

SKY_HasWord_t SKY_GroundFind_Word(SKY_GroundOp_t *op)
{
    SKY_HasWord_t word      = SKY_WORD_NOTHING;
    bool          is_silent = false;

    SKY_ASSERT(op->asking == 0u);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        const bool                is_done  = question->status == SKY_STATUS_DONE;
        SKY_BlockFacts_t          facts    = {{0, 0, 0, 0, 0}, 0, 0, 0};
        const SKY_HasWord_t       one      = SKY_Word_Of(is_done ? &question->answer : NULL, question->key, &facts);

        SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
        if (one == SKY_WORD_BLOCK && (word != SKY_WORD_BLOCK || SKY_Word_IsNewer(&facts, &op->find.facts)))
        {
            op->find.facts = facts;
        }
        word      = one > word ? one : word;
        is_silent = is_silent || one == SKY_WORD_NOTHING;
        op->find.silences += one == SKY_WORD_NOTHING ? 1u : 0u;
        if (!is_done)
        {
            op->failed_on = (SKY_Addr_t){question->place.plane, question->place.slot};
        }
    }
    if (is_silent && word != SKY_WORD_BLOCK && op->find.at_once && op->find.is_passing)
    {
        return SKY_WORD_NOTHING; /* the silent one may have the block, as only all of them together are sure to */
    }
    return word == SKY_WORD_UNSOUND ? SKY_WORD_ABSENT : word;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

/* Find whom to ask first. @return false if the operation waits for that */
static bool FindFirst(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundMay_t may = SKY_GroundInquiry_May(ground, op);

    SKY_ASSERT(!op->find.is_passing);
    SKY_ASSERT(!op->find.has_asked);
    if (may == SKY_GROUND_MAY_LATER)
    {
        return false;
    }
    op->has_asked_lost = false;
    op->find.count     = may == SKY_GROUND_MAY_NOW ? SKY_GroundWays_First(ground, op->key, op->find.first) : 0u;
    return true;
}

/* Ask one satellite after the other; if blocks have parity, all at once. @return true if the operation waits */
static bool RunPass(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(find->core.step == (uint32_t)SKY_LOOKUP_ASK);
    SKY_ASSERT(find->is_passing || !find->has_asked);
    if (!find->is_passing)
    {
        if (!FindFirst(ground, op))
        {
            return true;
        }
        find->at_once         = ground->sky.parity > 0u;
        const uint32_t groups = find->at_once && find->count > 0u ? 1u : find->count;

        if (!SKY_Lookup_Begin(&find->core, SKY_GroundWays_NumberOfWays(ground, find->first, find->count), groups))
        {
            return false;
        }
        find->is_passing = true;
        find->at         = 0;
    }
    if (!find->has_asked)
    {
        op->asks = 0;
        for (uint32_t i = 0; i < (find->at_once ? find->count : 1u); ++i)
        {
            SKY_GroundAsk_Add(ground, op, find->first[find->at + i]);
        }
        if (SKY_GroundFind_AskAll(ground, op))
        {
            return true;
        }
    }
    SKY_ASSERT(find->has_asked);
    SKY_Lookup_Take(&find->core, 0, SKY_GroundFind_Word(op));
    find->has_asked  = false;
    find->is_passing = SKY_Lookup_Asked(&find->core);
    ++find->at;
    SKY_ASSERT(!find->is_passing || find->at < find->count);
    return false;
}

/* Ask all at once: the late satellites, or the places of now. @return true if the operation waits */
static bool RunAll(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_LookupStep_t step)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(step == SKY_LOOKUP_SEARCH || step == SKY_LOOKUP_AGAIN);
    SKY_ASSERT(!find->is_passing);
    if (!find->has_asked)
    {
        if (step == SKY_LOOKUP_SEARCH ? SKY_GroundInquiry_WaitsLate(ground, op) : !FindFirst(ground, op))
        {
            return true;
        }
        op->asks = 0;
        if (step == SKY_LOOKUP_SEARCH)
        {
            SKY_GroundAsk_AddLate(ground, op);
        }
        for (uint32_t i = 0; step == SKY_LOOKUP_AGAIN && i < find->count; ++i)
        {
            SKY_GroundAsk_Add(ground, op, find->first[i]);
        }
        if (SKY_GroundFind_AskAll(ground, op))
        {
            return true;
        }
    }
    SKY_ASSERT(find->has_asked);
    if (op->asks > 0u || step == SKY_LOOKUP_AGAIN) /* in a search nobody says anything unless somebody is late */
    {
        const SKY_HasWord_t word = SKY_GroundFind_Word(op);

        SKY_Lookup_Take(&find->core, 0, word == SKY_WORD_BLOCK ? SKY_WORD_BLOCK : SKY_WORD_ABSENT);
    }
    find->has_asked  = false;
    op->has_searched = false;
    (void)SKY_Lookup_Asked(&find->core);
    return false;
}

bool SKY_GroundFind_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    for (;;)
    {
        const SKY_LookupStep_t step = SKY_Lookup_Next(&op->find.core);

        if (step == SKY_LOOKUP_END)
        {
            return false;
        }
        if (step == SKY_LOOKUP_LOOK)
        {
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
            return true;
        }
        if (step == SKY_LOOKUP_ASK ? RunPass(ground, op) : RunAll(ground, op, step))
        {
            return true;
        }
    }
}

bool SKY_GroundFind_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_FIND);
    if (SKY_GroundFind_Waits(ground, op))
    {
        return true;
    }
    op->status = SKY_Lookup_Status(&op->find.core, 0, false);
    if (op->status == SKY_STATUS_DONE)
    {
        op->facts = op->find.facts;
    }
    else if (op->status == SKY_STATUS_UNANSWERED && op->find.count == 0u && ground->reach.pause_us == 0u)
    {
        op->status = SKY_STATUS_NO_SATELLITE;
    }
    SKY_ASSERT(op->status != SKY_STATUS_RUNNING);
    return false;
}
