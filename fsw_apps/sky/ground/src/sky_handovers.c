/**
 * @file
 * Search for satellites that still have something to hand over: see sky_handovers.h.
 */
#include "sky_handovers.h"

#include <string.h>

#include "sky_assert.h"

#define PASSES 2u /* passes through all satellites before nobody has anything left */

void SKY_Handovers_Init(SKY_Handovers_t *handovers)
{
    (void)memset(handovers, 0, sizeof(*handovers));
}

bool SKY_Handovers_IsKnown(const SKY_Handovers_t *handovers, uint32_t schedule, uint32_t row, uint64_t now_us)
{
    SKY_ASSERT(row > 0u);
    return handovers->row == row && handovers->schedule == schedule && now_us < handovers->until_us;
}

void SKY_Handovers_Begin(const SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint32_t schedule, uint32_t row,
                         uint32_t rows)
{
    const bool     is_same = handovers->schedule == schedule && handovers->settled > 0u;
    const uint32_t since   = is_same ? handovers->settled : 1u;

    SKY_ASSERT(row > 0u);
    search->schedule   = schedule;
    search->row        = row;
    search->rows       = rows;
    search->first      = since < row ? since : row;
    search->passes     = 0;
    search->is_certain = true;
    SKY_ASSERT(search->first >= 1u);
    SKY_ASSERT(search->first <= search->row);
}

bool SKY_Handovers_HasLeft(const SKY_HandoverSearch_t *search, const SKY_HandoverWord_t *word, bool had_place)
{
    const bool knows = word->row == search->row && word->rows == search->rows;

    SKY_ASSERT(search->row > 0u);
    return word->left > 0u || (had_place && !knows && word->used_bytes > 0u);
}

bool SKY_Handovers_Asked(SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint64_t now_us, uint32_t count,
                         uint32_t answered, uint32_t having)
{
    SKY_ASSERT(having <= answered);
    SKY_ASSERT(answered <= count);
    SKY_ASSERT(search->passes < PASSES);
    ++search->passes;
    search->is_certain = search->is_certain && answered == count;
    if (count > 0u && having == 0u && search->passes < PASSES)
    {
        return true;
    }
    handovers->is_over    = having == 0u;
    handovers->is_certain = search->is_certain;
    handovers->settled    = handovers->is_over && search->is_certain ? search->row : search->first;
    handovers->schedule   = search->schedule;
    handovers->row        = search->row;
    handovers->until_us   = now_us + (handovers->is_over ? SKY_HOST_LOST_US : SKY_HOST_ON_WAY_US);
    if (handovers->is_over && handovers->is_certain)
    {
        handovers->until_us = UINT64_MAX;
    }
    SKY_ASSERT(handovers->settled <= handovers->row);
    SKY_ASSERT(handovers->until_us > now_us);
    return false;
}
