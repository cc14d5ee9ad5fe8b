/**
 * @file
 * A satellite's word of a block, its answer to HAS: see sky_word.h.
 */
#include "sky_word.h"

#include <string.h>

#include "sky_assert.h"

SKY_HasWord_t SKY_Word_Of(const SKY_Packet_t *answer, const uint8_t *key, SKY_BlockFacts_t *facts)
{
    SKY_ASSERT(key != NULL);
    SKY_ASSERT(facts != NULL);
    if (answer == NULL)
    {
        return SKY_WORD_NOTHING;
    }
    if (answer->status != SKY_STATUS_OK)
    {
        return answer->status == SKY_STATUS_NOT_FOUND ? SKY_WORD_ABSENT : SKY_WORD_NOTHING;
    }
    if (memcmp(answer->key, key, SKY_KEY_BYTES) != 0 || !SKY_Stripe_OfPacket(&facts->stripe, answer))
    {
        return SKY_WORD_UNSOUND;
    }
    facts->epoch   = answer->epoch;
    facts->content = answer->content;
    facts->version = answer->block_version;
    SKY_ASSERT(SKY_Stripe_Check(&facts->stripe));
    return SKY_WORD_BLOCK;
}

bool SKY_Word_IsOther(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known)
{
    SKY_ASSERT(facts->stripe.chunk_len >= 1u);
    SKY_ASSERT(known->stripe.chunk_len >= 1u);
    return !SKY_Stripe_Equal(&facts->stripe, &known->stripe) || facts->version != known->version ||
           facts->content != known->content;
}

bool SKY_Word_IsNewer(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known)
{
    SKY_ASSERT(facts->stripe.chunk_len >= 1u);
    SKY_ASSERT(known->stripe.chunk_len >= 1u);
    return facts->version > known->version || (facts->version == known->version && facts->epoch > known->epoch);
}

bool SKY_Word_IsAhead(const SKY_BlockFacts_t *facts, uint32_t row, const uint32_t *rows, uint32_t row_count)
{
    bool is_row = false;

    SKY_ASSERT(rows != NULL || row_count == 0u);
    for (uint32_t i = 0; i < row_count; ++i)
    {
        is_row = is_row || rows[i] == facts->epoch;
    }
    SKY_ASSERT(!is_row || row_count > 0u);
    return is_row && facts->epoch > row;
}
