/**
 * @file
 * Truths about what satellites owe each other: who says that all has arrived is owed nothing, and what is kept for somebody who is there goes to
 * him. They count where no hard fault lasted or ended within two minutes.
 */
#include "twin_priv.h"

#define QUIET_US UINT64_C(120000000) /* after a hard fault */
#define OLD_US   UINT64_C(60000000)  /* after a PUT: a host may have found a satellite silent just now */
#define BACK     3u                  /* rows of which a satellite may owe something: what is later counts as lost */

static bool is_calm(const SKYT_Twin_t *twin)
{
    return !SKYT_Fault_Since(&twin->hard, twin->now_us > QUIET_US ? twin->now_us - QUIET_US : 1);
}

/* Return true if the schedule of a satellite moves chunks. Then nobody keeps them for somebody. */
static bool moves(const SKYT_Node_t *node)
{
    const SKY_Schedule_t *schedule = node->service.core.schedule;

    return schedule != NULL && schedule->placement.layout != SKY_LAYOUT_HOP;
}

/* Return true if a row of the schedule before this one had the chunk at a satellite. */
static bool was_home(const SKYT_Twin_t *twin, uint32_t row, uint32_t block, uint64_t version, uint32_t chunk,
                     SKY_Addr_t satellite)
{
    bool was = false;

    for (uint32_t back = 1; back <= BACK && back < row; ++back)
    {
        was = was || SKY_Addr_Equal(SKYT_Content_Home(twin, row - back, block, version, chunk), satellite);
    }
    return was;
}

/* Return true if a chunk that a satellite has held for a while belongs to another one, which does not have it. */
static bool is_owed(const SKYT_Twin_t *twin, const SKYT_Node_t *holder, const SKY_BlockInfo_t *info, uint32_t entry,
                    uint32_t chunk, const SKYT_Node_t *to)
{
    const uint32_t   block = SKYT_Content_BlockOf(twin, info->tenant, info->key);
    const SKY_Addr_t self  = holder->service.core.cfg.self;
    const SKY_Addr_t other = to->service.core.cfg.self;
    const uint32_t   row   = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const uint32_t   there = SKY_Store_Find(&to->store, info->tenant, info->key);

    if (block == SKYT_NONE || info->put_until_us + OLD_US > twin->now_us || SKY_Store_Has(&to->store, there, chunk))
    {
        return false;
    }
    return moves(holder)
               ? info->epoch <= row && SKY_Addr_Equal(SKYT_Content_Home(twin, row, block, info->version, chunk), other) &&
                     was_home(twin, row, block, info->version, chunk, self)
               : SKY_Addr_Equal(SKY_Store_HomeOf(&holder->store, entry, chunk), other);
}

/* Check what a satellite holds, for one that says that all has arrived, or in the end for each. */
static void check_holder(SKYT_Twin_t *twin, uint32_t holder, uint32_t to, const char *text)
{
    SKY_Store_t    *store  = &twin->nodes[holder].store;
    uint32_t        cursor = 0;
    SKY_BlockInfo_t info;

    while (SKY_Store_NextBlock(store, &cursor, &info))
    {
        uint32_t at    = 0;
        uint32_t chunk = 0;

        while (SKY_Store_EachChunk(store, cursor - 1u, &at, &chunk))
        {
            if (is_owed(twin, &twin->nodes[holder], &info, cursor - 1u, chunk, &twin->nodes[to]))
            {
                SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, holder, SKYT_NONE, SKYT_Content_BlockOf(twin, info.tenant, info.key),
                                chunk, text);
                return; /* one is enough */
            }
        }
    }
}

void SKYT_Arrivals_Look(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t   *node       = &twin->nodes[index];
    const uint32_t before     = node->settled_row;
    const bool     is_settled = (node->service.core.word & SKY_WORD_SETTLED) != 0u;

    node->settled_row = is_settled ? SKY_Schedule_RowAt(&twin->schedule, twin->now_us) : SKYT_NONE;
    if (!is_settled || node->settled_row == before || !is_calm(twin))
    {
        return;
    }
    for (uint32_t holder = 0; holder < twin->node_count; ++holder)
    {
        if (holder != index && twin->nodes[holder].is_up)
        {
            check_holder(twin, holder, index, "a satellite that is owed a chunk says that it is settled");
        }
    }
}

void SKYT_Arrivals_Finish(SKYT_Twin_t *twin)
{
    for (uint32_t holder = 0; holder < twin->node_count && is_calm(twin); ++holder)
    {
        for (uint32_t to = 0; to < twin->node_count; ++to)
        {
            if (twin->nodes[holder].is_up && !moves(&twin->nodes[holder]) && twin->nodes[holder].store.counters.hinted > 0u &&
                twin->nodes[to].is_up)
            {
                check_holder(twin, holder, to, "in the end a stand-in keeps a chunk for a satellite that is there");
            }
        }
    }
}
