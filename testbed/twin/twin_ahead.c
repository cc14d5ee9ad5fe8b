/**
 * @file
 * Touches and prefetches of hosts, and what must hold after them: a chain that was touched loses its end first, and a block that was prefetched is
 * where the row to come has it.
 */
#include "twin_priv.h"

/* ---- touches --------------------------------------------------------------------------------------------------------- */

/* Note that touches of one tenant run at the same time: satellites hear of their blocks in any order. */
static void note_meeting(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    for (uint32_t i = 0; i < twin->config.active_max; ++i)
    {
        SKYT_Active_t *other = &twin->active[i];

        if (other->is_active && other != active && other->kind == SKYT_OP_TOUCH && other->core.tenant == active->core.tenant)
        {
            other->is_met  = true;
            active->is_met = true;
        }
    }
}

void SKYT_Ahead_Chain(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    active->core.tenant = SKYT_Content_Tenant(twin, active->block);
    active->chain_count = 0;
    note_meeting(twin, active);
    for (uint32_t block = active->block; block < twin->block_count && active->chain_count < SKYT_CHAIN;
         block += twin->config.tenants)
    {
        SKY_GroundBlock_t *one = &active->chain[active->chain_count];

        if (twin->truth[block].is_held && !SKYT_Version_IsValue(twin, block))
        {
            SKYT_Content_Key(twin, block, one->key);
            one->facts = (SKY_BlockFacts_t){.stripe  = SKYT_Content_Stripe(twin, block, 0),
                                            .epoch   = twin->truth[block].epoch,
                                            .content = SKYT_Content_Instance(block, 0)};
            ++active->chain_count;
        }
    }
}

/* Check that satellites were told of blocks further behind in a chain first, so that they would evict these first. Blocks that were asked about
 * together may have changed places on the way. */
static void check_order(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t first, uint32_t last)
{
    const uint32_t front = SKYT_Content_BlockOf(twin, active->core.tenant, active->chain[first].key);
    const uint32_t back  = SKYT_Content_BlockOf(twin, active->core.tenant, active->chain[last].key);

    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const uint64_t front_number = SKYT_Use_Touched(twin, node, front, active->started_us);
        const uint64_t back_number  = SKYT_Use_Touched(twin, node, back, active->started_us);

        if (front_number != 0u && back_number > front_number)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_OLDEST, node, active->op, front, SKYT_NONE,
                            "a chain was touched, and this satellite would evict its beginning before its end");
        }
    }
}

/* ---- prefetches ------------------------------------------------------------------------------------------------------ */

/* Return true if a share may be elsewhere than at its server of the row, or somebody else has moved, put or purged the block. */
static bool is_disturbed(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth  = &twin->truth[active->block];
    uint32_t            others = 0;

    for (uint32_t i = 0; i < twin->config.active_max; ++i)
    {
        const SKYT_Active_t *other = &twin->active[i];

        others += other->is_active && other != active && other->block == active->block && other->kind != SKYT_OP_GET ? 1u : 0u;
    }
    return others > 0u || truth->putting > 0 || truth->purging > 0 || truth->put_us >= active->started_us ||
           truth->purged_us >= active->started_us || active->astray != 0u ||
           SKYT_Fault_Since(&twin->hard, SKYT_SettlingSince(active)) || truth->taint != 0u || !truth->is_held ||
           active->core.to_row <= SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
}

/* Check that each chunk is where the row to come has it. With parity some may be lost. */
static void check_there(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t row = active->core.to_row;

    for (uint32_t chunk = 0; twin->config.parity == 0u && chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        const uint32_t home = SKYT_NodeOf(twin, SKYT_Content_Home(twin, row, active->block, 0, chunk));

        if (!SKYT_Truth_Holds(twin, home, active->block, chunk))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_WAITS, home, active->op, active->block, chunk,
                            "a block was prefetched, and this satellite does not have what it is to have in that row");
            return;
        }
    }
}

bool SKYT_Ahead_IsUnknown(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk)
{
    return SKYT_Truth_Holder(twin, block, chunk, false) == SKYT_NONE && SKYT_Truth_Holder(twin, block, chunk, true) != SKYT_NONE;
}

bool SKYT_Ahead_Waits(const SKYT_Twin_t *twin, uint32_t block)
{
    uint32_t chunk = 0;

    while (chunk < SKYT_Content_Total(twin, block) && !SKYT_Ahead_IsUnknown(twin, block, chunk))
    {
        ++chunk;
    }
    return chunk < SKYT_Content_Total(twin, block);
}

bool SKYT_Ahead_Explains(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth = &twin->truth[active->block];

    return truth->prefetching > 0u || (truth->prefetched_us != 0u && truth->prefetched_us >= active->started_us);
}

static SKYT_Cause_t judge_prefetch(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t cause)
{
    SKYT_Truth_t *truth = &twin->truth[active->block];

    --truth->prefetching;
    const bool is_other  = SKYT_Ahead_Explains(twin, active); /* it goes on, or ended meanwhile, and moved shares elsewhere */
    const bool disturbed = is_other || is_disturbed(twin, active);

    truth->prefetched_us = twin->now_us;
    if (cause == SKYT_CAUSE_NONE)
    {
        truth->epoch = active->core.to_row;
        if (!disturbed)
        {
            check_there(twin, active);
        }
    }
    else if (cause == SKYT_CAUSE_ABSENT && (is_other || SKYT_Ahead_Waits(twin, active->block)))
    {
        return SKYT_CAUSE_PREFETCHED;
    }
    else if (cause == SKYT_CAUSE_ABSENT && !disturbed && !truth->is_degraded)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a prefetch missed a block that nothing was taken from");
        return SKYT_CAUSE_UNEXPLAINED;
    }
    return cause;
}

SKYT_Cause_t SKYT_Ahead_Ended(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t cause)
{
    const uint32_t at_once = SKY_GROUND_TOUCH_ASKS / twin->config.servers;
    const uint32_t group   = at_once > 0u ? at_once : 1u;

    if (active->kind == SKYT_OP_PREFETCH)
    {
        return judge_prefetch(twin, active, cause);
    }
    for (uint32_t back = 1; cause == SKYT_CAUSE_NONE && !active->is_met && back < active->chain_count; ++back)
    {
        for (uint32_t front = 0; front < back; ++front)
        {
            if ((active->chain_count - 1u - front) / group != (active->chain_count - 1u - back) / group)
            {
                check_order(twin, active, front, back);
            }
        }
    }
    return cause;
}
