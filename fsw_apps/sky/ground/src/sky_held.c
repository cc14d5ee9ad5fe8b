/**
 * @file
 * Check whether a block is whole, by the word of servers: see sky_held.h.
 */
#include "sky_held.h"

#include <string.h>

#include "sky_assert.h"

/* Count the chunks of a share. */
static uint32_t ChunksOf(const SKY_BlockFacts_t *block, uint32_t servers, uint32_t number)
{
    SKY_ASSERT(servers > 0u);
    SKY_ASSERT(number < servers);
    return number < block->stripe.chunk_total ? (block->stripe.chunk_total - number - 1u) / servers + 1u : 0u;
}

uint32_t SKY_HeldShare_Pieces(const SKY_BlockFacts_t *block, uint32_t servers, uint32_t number)
{
    const uint32_t chunks = ChunksOf(block, servers, number);
    const uint32_t pieces = chunks / SKY_LIMIT_CHUNK_SET + (chunks % SKY_LIMIT_CHUNK_SET > 0u ? 1u : 0u);

    SKY_ASSERT(pieces <= chunks);
    SKY_ASSERT(pieces > 0u || chunks == 0u);
    return pieces;
}

void SKY_HeldShare_Init(SKY_HeldShare_t *share, const SKY_BlockFacts_t *block, uint32_t servers, uint32_t number, uint32_t piece,
                        uint32_t places, bool is_stand_in)
{
    const uint32_t first = piece * SKY_LIMIT_CHUNK_SET;
    const uint32_t left  = ChunksOf(block, servers, number) - first;
    const uint32_t count = left < SKY_LIMIT_CHUNK_SET ? left : SKY_LIMIT_CHUNK_SET;

    SKY_ASSERT(piece < SKY_HeldShare_Pieces(block, servers, number));
    (void)memset(share, 0, sizeof(*share));
    share->block         = *block;
    share->places        = places;
    share->is_unanswered = places == 0u;
    share->is_stand_in   = is_stand_in;
    (void)SKY_ChunkSet_Init(&share->missing, number + first * servers, servers, count); /* ids of chunks of the block */
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_ChunkSet_Add(&share->missing, i);
    }
    SKY_ASSERT(share->missing.count == count);
    SKY_ASSERT(SKY_ChunkSet_ChunkId(&share->missing, count - 1u) < block->stripe.chunk_total);
}

static bool IsMissing(const SKY_HeldShare_t *share)
{
    return SKY_ChunkSet_Next(&share->missing, 0) < share->missing.count;
}

uint32_t SKY_HeldShare_Next(const SKY_HeldShare_t *share)
{
    SKY_ASSERT(share->asked <= share->places);
    return share->asked < share->places && IsMissing(share) ? share->asked : SKY_HELD_NOWHERE;
}

uint32_t SKY_HeldShare_Ask(SKY_HeldShare_t *share, uint8_t *payload, uint32_t *chunk_id)
{
    const SKY_ChunkSet_t *missing = &share->missing;
    const uint32_t        first   = SKY_ChunkSet_Next(missing, 0);
    uint32_t              last    = first;
    SKY_ChunkSet_t        asked;

    SKY_ASSERT(SKY_HeldShare_Next(share) != SKY_HELD_NOWHERE);
    for (uint32_t i = first; i < missing->count; i = SKY_ChunkSet_Next(missing, i + 1u))
    {
        last = i;
    }
    (void)SKY_ChunkSet_Init(&asked, SKY_ChunkSet_ChunkId(missing, first), missing->stride, last - first + 1u);
    for (uint32_t i = first; i < missing->count; i = SKY_ChunkSet_Next(missing, i + 1u))
    {
        SKY_ChunkSet_Add(&asked, i - first);
    }
    ++share->asked;
    *chunk_id = asked.base;
    SKY_ASSERT(share->asked <= share->places);
    SKY_ASSERT(SKY_ChunkSet_Size(&asked) == SKY_ChunkSet_Size(missing));
    return (uint32_t)SKY_ChunkSet_Encode(&asked, payload, SKY_CHUNKSET_MAX_BYTES);
}

/* Remove held chunks from the missing ones. */
static void Strike(SKY_HeldShare_t *share, const SKY_ChunkSet_t *held)
{
    SKY_ChunkSet_t *missing = &share->missing;
    const uint32_t  before  = SKY_ChunkSet_Size(missing);

    for (uint32_t i = SKY_ChunkSet_Next(missing, 0); i < missing->count; i = SKY_ChunkSet_Next(missing, i + 1u))
    {
        if (SKY_ChunkSet_Has(held, SKY_ChunkSet_IndexOf(held, SKY_ChunkSet_ChunkId(missing, i))))
        {
            SKY_ChunkSet_Remove(missing, i);
        }
    }
    SKY_ASSERT(SKY_ChunkSet_Size(missing) <= before); /* no chunk becomes missing */
    SKY_ASSERT(before - SKY_ChunkSet_Size(missing) <= SKY_ChunkSet_Size(held));
}

void SKY_HeldShare_Take(SKY_HeldShare_t *share, const uint8_t *key, const SKY_Packet_t *answer)
{
    SKY_BlockFacts_t    facts;
    SKY_ChunkSet_t      held;
    const SKY_HasWord_t word = SKY_Word_Of(answer, key, &facts);

    SKY_ASSERT(share->asked > 0u);
    SKY_ASSERT(share->asked <= share->places);
    if (answer == NULL || word == SKY_WORD_NOTHING || word == SKY_WORD_UNSOUND)
    {
        share->is_unanswered = true;
        return;
    }
    share->is_unsettled = share->is_unsettled || (answer->word & SKY_WORD_SETTLED) == 0u;
    if (word == SKY_WORD_ABSENT)
    {
        /* All chunks stay missing. */
    }
    else if (SKY_Word_IsOther(&facts, &share->block))
    {
        share->is_other = true;
    }
    else if (answer->payload == NULL || SKY_ChunkSet_Decode(answer, &held) != SKY_STATUS_OK)
    {
        share->is_unanswered = true; /* the satellite holds some chunks, but does not say which */
    }
    else
    {
        Strike(share, &held);
    }
}

bool SKY_HeldShare_IsHeldFirst(const SKY_HeldShare_t *share)
{
    SKY_ASSERT(share->asked <= share->places);
    return share->asked == 1u && !IsMissing(share);
}

/* Count a missing chunk. @return what it makes of the block */
static SKY_HeldVerdict_t Count(SKY_Held_t *held, const SKY_HeldShare_t *share, uint32_t chunk_id)
{
    const SKY_Stripe_t *stripe = &share->block.stripe;
    SKY_HeldRow_t      *row    = stripe->code_m == 0u ? &held->only_row : &held->rows[SKY_Stripe_RowOf(stripe, chunk_id)];

    SKY_ASSERT(chunk_id < stripe->chunk_total);
    SKY_ASSERT(stripe->code_m == 0u || held->rows != NULL);
    SKY_ASSERT(held->denied < stripe->chunk_total);
    row->denied += share->is_unanswered ? 0u : 1u;
    row->gone += share->is_unanswered || share->is_stand_in ? 0u : 1u;
    row->doubted += share->is_unanswered ? 1u : 0u;
    held->denied += share->is_unanswered ? 0u : 1u;
    held->is_gone = held->is_gone || row->gone > stripe->code_m;
    if (row->denied > stripe->code_m)
    {
        return SKY_HELD_BROKEN;
    }
    return row->denied + row->doubted > stripe->code_m ? SKY_HELD_UNKNOWN : SKY_HELD_WHOLE;
}

void SKY_Held_Add(SKY_Held_t *held, const SKY_HeldShare_t *share)
{
    SKY_ASSERT(SKY_HeldShare_Next(share) == SKY_HELD_NOWHERE);
    SKY_ASSERT(held->verdict <= SKY_HELD_BROKEN);
    for (uint32_t i = SKY_ChunkSet_Next(&share->missing, 0); i < share->missing.count;
         i          = SKY_ChunkSet_Next(&share->missing, i + 1u))
    {
        const SKY_HeldVerdict_t verdict = Count(held, share, SKY_ChunkSet_ChunkId(&share->missing, i));

        held->verdict = verdict > held->verdict ? verdict : held->verdict;
    }
    held->is_other     = held->is_other || share->is_other;
    held->is_unsettled = held->is_unsettled || (share->is_unsettled && IsMissing(share));
}
