/**
 * @file
 * TOUCH: blocks of a chain count as used, the last one first. A satellite evicts the block that was used longest ago, and knows nothing of
 * chains. One that was put or fetched from its beginning on would lose its beginning first, and the rest would be of no use.
 *
 *     BEGIN --> ASK some blocks at the end --> all have answered --> ASK those before them --> ... --> DONE
 *                                          --> one was silent    --> UNANSWERED: the rest keeps its order
 *
 * Each server of a block is asked for any chunk of it, and counts the block as used (HAS with `use` and `any`): no chunk moves. Few questions
 * are on their way at once, so that blocks further to the front are surely used later.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Return how many blocks are asked about at once. */
static uint32_t BlocksAtOnce(const SKY_Ground_t *ground)
{
    const uint32_t most  = ground->asks_most;
    const uint32_t count = (most < SKY_GROUND_TOUCH_ASKS ? most : SKY_GROUND_TOUCH_ASKS) / ground->limits.servers;

    SKY_ASSERT(ground->limits.servers >= 1u);
    SKY_ASSERT(most >= ground->limits.servers);
    return count > 0u ? count : 1u;
}

/* Add a question to each server of a block. @return false if nobody is in sight */
static bool AddBlock(SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_GroundBlock_t *block)
{
    (void)memcpy(op->key, block->key, SKY_KEY_BYTES);
    op->facts = block->facts;
    if (!SKY_GroundWays_Find(ground, op))
    {
        return false;
    }
    for (uint32_t share = 0; share < ground->limits.servers && share < block->facts.stripe.chunk_total; ++share)
    {
        uint8_t            *payload  = SKY_GroundAsk_Room(ground, op, share); /* the same of each block */
        SKY_HostQuestion_t *question = &op->questions[op->asks];
        SKY_ChunkSet_t      any;

        (void)SKY_ChunkSet_Init(&any, share, 1, 1);
        SKY_ChunkSet_Add(&any, 0);
        SKY_GroundAsk_Write(op, question, &op->places[share], SKY_OP_HAS);
        question->flags         = SKY_FLAG_USE | SKY_FLAG_ANY;
        question->block_version = block->facts.version;
        question->content       = block->facts.content;
        question->chunk_id      = share;
        question->payload_bytes = (uint32_t)SKY_ChunkSet_Encode(&any, payload, SKY_CHUNKSET_MAX_BYTES);
        question->payload       = payload;
        ++op->asks;
        SKY_ASSERT(question->place.plane != 0u);
        SKY_ASSERT(op->asks <= ground->asks_most);
    }
    return true;
}

/* Ask about the next blocks, towards the front. @return false if nobody could be asked */
static bool AskNext(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t left = op->chain_length - op->touched;
    const uint32_t most = BlocksAtOnce(ground);

    SKY_ASSERT(left >= 1u);
    SKY_ASSERT(op->asking == 0u);
    op->asks     = 0;
    op->touching = left < most ? left : most;
    for (uint32_t i = 0; i < op->touching; ++i)
    {
        if (!AddBlock(ground, op, &op->chain[left - 1u - i]))
        {
            return false;
        }
    }
    return SKY_GroundAsk_Send(ground, op, SKY_GroundAsk_WaitUs(ground, op, false));
}

/* Take in the answers. @return false if a satellite was silent; it is suspected */
static bool HaveAnswered(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    bool have_all = true;

    SKY_ASSERT(op->asks >= 1u);
    SKY_ASSERT(op->touching >= 1u);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostPlace_t *place = &op->questions[i].place;

        if (op->questions[i].status != SKY_STATUS_DONE)
        {
            (void)SKY_Reach_Suspect(&ground->reach, (SKY_Addr_t){place->plane, place->slot});
            have_all = false;
        }
    }
    return have_all;
}

/* End with a status. @return false: it waits for nothing */
static bool Ends(SKY_GroundOp_t *op, uint32_t status)
{
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->touched <= op->chain_length);
    op->status = status;
    return false;
}

bool SKY_GroundTouch_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_TOUCH);
    SKY_ASSERT(op->asking == 0u);
    if (op->touching > 0u)
    {
        if (!HaveAnswered(ground, op))
        {
            return Ends(op, SKY_STATUS_UNANSWERED);
        }
        op->touched += op->touching;
        op->touching = 0;
    }
    if (op->touched == op->chain_length)
    {
        return Ends(op, SKY_STATUS_DONE);
    }
    switch (SKY_GroundInquiry_May(ground, op))
    {
        case SKY_GROUND_MAY_LATER:
            return true;
        case SKY_GROUND_MAY_NOW:
            return AskNext(ground, op) || Ends(op, SKY_STATUS_NO_SATELLITE);
        default:
            return Ends(op, SKY_STATUS_UNANSWERED);
    }
}
