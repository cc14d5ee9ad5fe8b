/**
 * @file
 * Rows of blocks with parity: which of their chunks are held, and whether that explains a miss. Any chunk of a row may be lost, stranded or
 * unknown, as long as no more of the row are than its code bears.
 */
#include <stdlib.h>
#include <string.h>

#include "twin_priv.h"

bool SKYT_Rows_Init(SKYT_Twin_t *twin)
{
    uint32_t most = 1;

    for (uint32_t block = 0; block < twin->block_count; ++block)
    {
        most = SKYT_Content_Total(twin, block) > most ? SKYT_Content_Total(twin, block) : most;
    }
    twin->seen = calloc(most, 1);
    return twin->seen != NULL;
}

/* Note of each chunk whether a satellite holds it where hosts look. */
static void take_census(const SKYT_Twin_t *twin, uint32_t block, uint32_t total)
{
    uint8_t key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    (void)memset(twin->seen, 0, total);
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const SKY_Store_t *store  = &twin->nodes[node].store;
        const uint32_t     entry  = SKY_Store_Find(store, SKYT_Content_Tenant(twin, block), key);
        uint32_t           cursor = 0;
        uint32_t           chunk  = 0;

        while (entry != SKY_STORE_NONE && !SKYT_Truth_IsAside(twin, block, node) &&
               SKY_Store_EachChunk(store, entry, &cursor, &chunk))
        {
            if (chunk < total)
            {
                twin->seen[chunk] = 1;
            }
        }
    }
}

bool SKYT_Rows_CanBeHad(const SKYT_Twin_t *twin, uint32_t block)
{
    const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, block);
    bool               has    = true;

    take_census(twin, block, stripe.chunk_total);
    for (uint32_t number = 0; has && number < SKY_Stripe_Rows(&stripe); ++number)
    {
        const SKY_StripeRow_t row  = SKY_Stripe_Row(&stripe, number);
        uint32_t              held = 0;

        for (uint32_t place = 0; place < row.data + row.parity; ++place)
        {
            held += twin->seen[row.first + place];
        }
        has = held >= row.data;
    }
    return has;
}

bool SKYT_Rows_AreTooMany(const SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_ChunkRule_t *counts)
{
    const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, active->block);

    for (uint32_t number = 0; number < SKY_Stripe_Rows(&stripe); ++number)
    {
        const SKY_StripeRow_t row = SKY_Stripe_Row(&stripe, number);
        uint32_t              sum = 0;

        for (uint32_t place = 0; sum <= row.parity && place < row.data + row.parity; ++place)
        {
            sum += counts(twin, active, row.first + place) ? 1u : 0u;
        }
        if (sum > row.parity)
        {
            return true;
        }
    }
    return false;
}

/* ---- why a get may miss ---------------------------------------------------------------------------------------------- */

static bool is_gone(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    uint32_t holder;

    return SKYT_Holders(twin, active->block, chunk, &holder, 1) == 0;
}

/* Return true if nobody holds a chunk where the host looks in this row of the schedule. */
static bool is_gone_or_waits(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    const uint32_t holder = SKYT_Truth_Holder(twin, active->block, chunk, false);
    const uint32_t epoch  = holder == SKYT_NONE ? 0u : SKYT_Use_Epoch(twin, holder, active->block);

    return holder == SKYT_NONE ||
           (active->is_ahead && epoch != active->epoch && epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us));
}

/* Return true if a chunk is where this host could not ask. */
static bool is_away(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    return !SKYT_ShareRecord_IsAtHand(twin, active, chunk) && SKYT_ShareRecord_PassedOver(twin, active, chunk) == SKYT_NONE;
}

/* Return true if a chunk is where this host does not ask first, gone included. */
static bool is_elsewhere(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    return !SKYT_ShareRecord_IsAtHand(twin, active, chunk);
}

static bool is_stray_or_gone(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    return is_gone_or_waits(twin, active, chunk) || SKYT_ShareRecord_IsStray(twin, active, chunk);
}

bool SKYT_Rows_AreStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return SKYT_Rows_AreTooMany(twin, active, is_stray_or_gone);
}

SKYT_Cause_t SKYT_Rows_JudgeMiss(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t why, bool may_miss, bool is_hard)
{
    const bool  are_gone = SKYT_Rows_AreTooMany(twin, active, is_gone);
    const char *text     = "a get missed a block although enough chunks of each row are at hand";

    if (why != SKYT_CAUSE_NONE && (may_miss || are_gone))
    {
        return why;
    }
    if (are_gone)
    {
        text = "too many chunks of a row are held nowhere, and no fault took them";
    }
    else if (SKYT_Rows_AreTooMany(twin, active, is_gone_or_waits))
    {
        return SKYT_CAUSE_PREFETCHED;
    }
    else if (is_hard || active->is_stray)
    {
        if (SKYT_Rows_AreTooMany(twin, active, is_away))
        {
            return SKYT_CAUSE_STRANDED;
        }
        text = SKYT_Rows_AreTooMany(twin, active, is_elsewhere)
                   ? "a get missed chunks that satellites were about to hand over, and did not ask all of them"
                   : text;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied, text);
    return SKYT_CAUSE_UNEXPLAINED;
}

bool SKYT_Rows_AreReachable(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return !SKYT_Rows_AreTooMany(twin, active, is_elsewhere);
}

/* Return true if a chunk is not held, but for satellites that the host calls lost. */
static bool is_purged(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    const uint32_t holder = SKYT_Truth_Holder(twin, active->block, chunk, false);

    return holder == SKYT_NONE || SKYT_Reach_IsLost(&twin->grounds[active->host - 1u], SKYT_AddrOf(twin, holder));
}

bool SKYT_Rows_ArePurged(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return SKYT_Rows_AreTooMany(twin, active, is_purged);
}

/* Return true if the host has found a chunk nowhere, and it is held nowhere. */
static bool is_nowhere(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    return (active->have[chunk / 8u] & (0x80u >> chunk % 8u)) != 0 && is_gone(twin, active, chunk);
}

bool SKYT_Rows_WereHeld(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return !SKYT_Rows_AreTooMany(twin, active, is_nowhere);
}
