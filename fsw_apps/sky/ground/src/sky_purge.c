/**
 * @file
 * Purge of a block: whom to ask next, and whether it is gone from the sky: see sky_purge.h.
 */
#include "sky_purge.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_stripe.h"

#define ROUNDS 3u /* the second goes around lost satellites; the third meets chunks that were on their way meanwhile */

void SKY_PurgeAnswers_Add(SKY_PurgeAnswers_t *cleared, const SKY_Packet_t *answer, bool is_repeated)
{
    ++cleared->asked;
    if (answer != NULL && answer->status == SKY_STATUS_OK)
    {
        SKY_Stripe_t   stripe;
        const bool     knows = SKY_Stripe_Cut(&stripe, answer->block_len, answer->chunk_len, answer->code_k, answer->code_m);
        const uint32_t total = knows ? stripe.chunk_total : 0u; /* the packet's own number is that of removed chunks */

        ++cleared->confirmed;
        cleared->chunks += answer->chunk_total;
        cleared->most        = answer->chunk_total > cleared->most ? answer->chunk_total : cleared->most;
        cleared->chunk_total = total > cleared->chunk_total ? total : cleared->chunk_total;
        if (knows)
        {
            cleared->chunk_least = cleared->chunk_least == 0u || total < cleared->chunk_least ? total : cleared->chunk_least;
            cleared->code_m      = stripe.code_m > cleared->code_m ? stripe.code_m : cleared->code_m;
        }
        cleared->is_repeated = cleared->is_repeated || is_repeated;
    }
    SKY_ASSERT(cleared->confirmed <= cleared->asked);
    SKY_ASSERT(cleared->asked > 0u);
}

void SKY_PurgeAnswers_AddShare(SKY_PurgeAnswers_t *cleared, bool is_gone)
{
    const uint32_t needed = cleared->chunk_least > 0u ? cleared->chunk_least : cleared->code_m + 1u;

    cleared->gone += is_gone && cleared->servers < needed ? 1u : 0u;
    ++cleared->servers;
    SKY_ASSERT(cleared->gone <= cleared->servers);
    SKY_ASSERT(cleared->gone <= needed);
}

static bool HaveAllConfirmed(const SKY_PurgeAnswers_t *cleared)
{
    SKY_ASSERT(cleared->confirmed <= cleared->asked);
    return cleared->asked > 0u && cleared->confirmed == cleared->asked;
}

bool SKY_PurgeAnswers_IsConfirmed(const SKY_PurgeAnswers_t *cleared)
{
    SKY_ASSERT(cleared->asked > 0u || cleared->chunks == 0u);
    SKY_ASSERT(cleared->gone <= cleared->servers);
    return cleared->code_m > 0u ? cleared->gone > cleared->code_m : HaveAllConfirmed(cleared);
}

bool SKY_PurgeAnswers_HasMore(const SKY_PurgeAnswers_t *cleared)
{
    SKY_ASSERT(cleared->confirmed > 0u || cleared->chunks == 0u);
    SKY_ASSERT(cleared->confirmed > 0u || !cleared->is_repeated);
    return cleared->most < cleared->chunk_total || cleared->is_repeated;
}

void SKY_Purge_Init(SKY_Purge_t *clearing, bool is_way_made)
{
    (void)memset(clearing, 0, sizeof(*clearing));
    clearing->step = is_way_made ? (uint32_t)SKY_PURGE_FIRST : (uint32_t)SKY_PURGE_ALL;
    SKY_ASSERT(!clearing->is_confirmed);
    SKY_ASSERT(clearing->rounds == 0u);
}

SKY_PurgeStep_t SKY_Purge_Next(SKY_Purge_t *clearing)
{
    const SKY_PurgeStep_t step = (SKY_PurgeStep_t)clearing->step;

    SKY_ASSERT(step <= SKY_PURGE_END);
    if (step == SKY_PURGE_LOOK)
    {
        SKY_ASSERT(clearing->rounds < ROUNDS);
        clearing->step = SKY_PURGE_ALL;
    }
    return step;
}

void SKY_Purge_Told(SKY_Purge_t *clearing, const SKY_PurgeAnswers_t *cleared, bool is_over, bool is_same_row)
{
    /* Who is silent while others hand over may have taken a share over, whoever had it before. */
    const bool is_swept     = is_same_row && SKY_PurgeAnswers_IsConfirmed(cleared) && (is_over || HaveAllConfirmed(cleared));
    const bool is_confirmed = is_swept && (is_over || clearing->is_swept);

    SKY_ASSERT(clearing->step == SKY_PURGE_FIRST || clearing->step == SKY_PURGE_ALL);
    SKY_ASSERT(clearing->rounds < ROUNDS);
    if (clearing->step == SKY_PURGE_FIRST)
    {
        clearing->is_confirmed = is_confirmed && !SKY_PurgeAnswers_HasMore(cleared);
        clearing->step         = clearing->is_confirmed ? (uint32_t)SKY_PURGE_END : (uint32_t)SKY_PURGE_ALL;
        return;
    }
    ++clearing->rounds;
    clearing->is_swept     = is_swept;
    clearing->is_confirmed = is_confirmed;
    clearing->step         = is_confirmed || clearing->rounds == ROUNDS ? (uint32_t)SKY_PURGE_END : (uint32_t)SKY_PURGE_LOOK;
    SKY_ASSERT(clearing->step != SKY_PURGE_END || clearing->is_confirmed || clearing->rounds == ROUNDS);
}
