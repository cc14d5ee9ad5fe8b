/**
 * @file
 * Rows of blocks with parity: which of their chunks are held, and whether that explains a miss. Any chunk of a row may be lost, stranded or
 * unknown, as long as no more of the row are than its code bears.
 */
#include <string.h>

#include "twin_priv.h"

bool SKYT_Rows_Init(SKYT_Twin_t *twin)
{
    uint32_t most = 1;

    for (uint32_t block = 0; block < twin->block_count; ++block)
    {
        most = SKYT_Content_Total(twin, block) > most ? SKYT_Content_Total(twin, block) : most;
    }
    twin->seen = SKYT_Take(twin, most, 1);
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
    const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, block, 0);
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
    const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, active->block, active->version);

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
           (active->core.is_ahead && epoch != active->epoch && epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us));
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

static bool is_purged(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    return SKYT_Truth_Unpurged(twin, active, chunk) == SKYT_NONE;
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

/* ---- repair ---------------------------------------------------------------------------------------------------------- */

#define PERIODS_MOST 4u                  /* of the scrub, until a share was found missing twice, and a census begins */
#define REPAIR_US    UINT64_C(120000000) /* for the censuses and repairs of all blocks */
#define CHUNK_US     UINT64_C(10000000)  /* for one chunk at most: its sources are asked one after another */
#define SPARE_SLOTS  6u                  /* a repair needs room where it is made, and at the home: two slots for a chunk */

uint64_t SKYT_Rows_RepairUs(const SKYT_Twin_t *twin)
{
    return PERIODS_MOST * (uint64_t)twin->config.scrub_ms * US_PER_MS + REPAIR_US;
}

/* Return true if nothing has disturbed the sky for as long as a repair takes, and none goes on. Over long ways many chunks take longer. */
static bool is_at_rest(const SKYT_Twin_t *twin)
{
    const uint64_t most_us  = SKYT_Rows_RepairUs(twin);
    const uint64_t since_us = twin->now_us > most_us ? twin->now_us - most_us : 0u;
    const uint32_t row      = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const uint64_t row_us   = twin->schedule.epoch_us + (uint64_t)twin->rows[row - 1u].time_ms * US_PER_MS;

    return !SKYT_Fault_Since(&twin->hard, since_us) && !SKYT_Fault_Since(&twin->lossy, since_us) && twin->sky_links_down == 0u &&
           twin->pressed_us < since_us && row_us < since_us && twin->op_next == twin->op_count &&
           (twin->repaired_us == 0u || twin->now_us - twin->repaired_us > CHUNK_US);
}

/* Return true if satellites are to repair a block: nobody has put or purged it lately, and no row is prefetched. */
static bool is_mended(const SKYT_Twin_t *twin, uint32_t block)
{
    const SKYT_Truth_t *truth = &twin->truth[block];
    const uint32_t      row   = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const uint64_t      since = twin->now_us - SKYT_Rows_RepairUs(twin);
    bool                waits = truth->epoch > row;

    for (uint32_t node = 0; !waits && node < twin->node_count; ++node)
    {
        waits = SKYT_Use_Epoch(twin, node, block) > row;
    }
    return truth->is_held && !waits && truth->put_us < since && truth->purged_us < since &&
           (truth->taint & (SKYT_BIT(SKYT_CAUSE_PURGED) | SKYT_BIT(SKYT_CAUSE_REPLACED))) == 0;
}

/* Return the satellite at which the schedule has a chunk. */
static uint32_t home_of(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk)
{
    const uint32_t row = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);

    return SKYT_NodeOf(twin, SKYT_Content_Home(twin, row, block, 0, chunk));
}

/* Count the chunks of a row that are at their homes. */
static uint32_t held_at_home(const SKYT_Twin_t *twin, uint32_t block, SKY_StripeRow_t row)
{
    uint32_t held = 0;

    for (uint32_t chunk = row.first; chunk < row.first + row.data + row.parity; ++chunk)
    {
        held += SKYT_Truth_Holds(twin, home_of(twin, block, chunk), block, chunk) ? 1u : 0u;
    }
    return held;
}

/* Return true if each row of a block has chunks enough at home: of one that nobody can decode, satellites rebuild nothing. */
static bool is_decodable_at_home(const SKYT_Twin_t *twin, uint32_t block, const SKY_Stripe_t *stripe)
{
    bool is_decodable = true;

    for (uint32_t number = 0; is_decodable && number < SKY_Stripe_Rows(stripe); ++number)
    {
        const SKY_StripeRow_t row = SKY_Stripe_Row(stripe, number);

        is_decodable = held_at_home(twin, block, row) >= row.data;
    }
    return is_decodable;
}

/* Return the slots of a store that a tenant may fill, whoever has the others: less than its quota if others have more reserved. */
static uint32_t slots_for_one(const SKYT_Config_t *config)
{
    const uint32_t others = (config->tenants - 1u) * config->quota_reserved;
    const uint32_t most   = SKY_STORE_PERCENT - others < config->quota_most ? SKY_STORE_PERCENT - others : config->quota_most;

    return config->quota_most == 0u ? config->slot_count : config->slot_count * most / SKY_STORE_PERCENT;
}

/* Check the homes of a row's chunks. @return true if a violation was found */
static bool check_row(SKYT_Twin_t *twin, uint32_t block, SKY_StripeRow_t row)
{
    uint32_t lost = SKYT_NONE;
    bool     room = true;

    for (uint32_t chunk = row.first; chunk < row.first + row.data + row.parity; ++chunk)
    {
        const SKYT_Node_t *home = &twin->nodes[home_of(twin, block, chunk)];
        const bool         has  = SKYT_Truth_Holds(twin, home_of(twin, block, chunk), block, chunk);

        lost = has ? lost : chunk;
        room = room && home->is_up && home->store.slab.used + SPARE_SLOTS <= slots_for_one(&twin->config);
    }
    if (lost == SKYT_NONE || !room)
    {
        return false;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_REPAIRED, home_of(twin, block, lost), SKYT_NONE, block, lost,
                    "in the end a lost chunk is not back on this satellite, although the others of its row suffice");
    return true;
}

void SKYT_Rows_CheckRepaired(SKYT_Twin_t *twin)
{
    if (twin->config.parity == 0u || twin->config.scrub_ms == 0u || !is_at_rest(twin))
    {
        return;
    }
    for (uint32_t block = 0; block < twin->block_count; ++block)
    {
        const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, block, 0);
        bool               found  = !is_mended(twin, block) || !is_decodable_at_home(twin, block, &stripe);

        for (uint32_t number = 0; !found && number < SKY_Stripe_Rows(&stripe); ++number)
        {
            found = check_row(twin, block, SKY_Stripe_Row(&stripe, number));
        }
    }
}
