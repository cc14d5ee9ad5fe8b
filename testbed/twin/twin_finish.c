/**
 * @file
 * The end, when all has come to rest: each chunk of each block that was put and that no fault took is held somewhere. Without
 * faults that keep chunks from moving, it is where the schedule has it. Each chunk is what was put.
 */
#include <stdlib.h>

#include "twin_priv.h"

#define SPREAD_US UINT64_C(60000000) /* longest time that news of a link takes to reach everybody */

typedef struct
{
    size_t  *first; /* by block: index of its first chunk below */
    uint8_t *seen;  /* by chunk: bit 0: it is held somewhere, bit 1: it is held where the schedule has it */
} Census_t;

static bool census_init(const SKYT_Twin_t *twin, Census_t *census)
{
    size_t chunks = 0;

    census->first = calloc((size_t)twin->block_count + 1u, sizeof(*census->first));
    for (uint32_t block = 0; census->first != NULL && block < twin->block_count; ++block)
    {
        census->first[block] = chunks;
        chunks += SKYT_Content_Total(twin, block);
    }
    census->seen = calloc(chunks + 1u, 1);
    return census->first != NULL && census->seen != NULL;
}

static SKY_Addr_t home_of(const SKYT_Twin_t *twin, uint32_t block, uint64_t version, uint32_t chunk)
{
    const uint32_t row   = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const uint32_t epoch = twin->truth[block].epoch;

    return SKYT_Content_Home(twin, row > epoch ? row : epoch, block, version, chunk);
}

static void look_at_block(SKYT_Twin_t *twin, const Census_t *census, uint32_t node, const SKY_BlockInfo_t *info, uint32_t block)
{
    SKY_Store_t    *store = &twin->nodes[node].store;
    const uint32_t  entry = SKY_Store_Find(store, info->tenant, info->key);
    SKY_ChunkView_t view;

    for (uint32_t chunk = SKY_Store_NextChunk(store, entry, 0);
         chunk != SKY_STORE_NONE && chunk < SKYT_Content_Total(twin, block);
         chunk = SKY_Store_NextChunk(store, entry, chunk + 1u))
    {
        uint8_t *seen = &census->seen[census->first[block] + chunk];

        *seen |= SKY_Addr_Equal(home_of(twin, block, info->version, chunk), SKYT_AddrOf(twin, node)) ? 3u : 1u;
        if (SKY_Store_Peek(store, entry, chunk, &view) == SKY_STATUS_OK)
        {
            SKYT_Check_Bytes(twin, view.data, view.len, node, SKYT_NONE, block, info->version, chunk);
        }
    }
}

static void look_at_node(SKYT_Twin_t *twin, const Census_t *census, uint32_t node)
{
    SKY_BlockInfo_t info;
    uint32_t        cursor = 0;

    while (SKY_Store_NextBlock(&twin->nodes[node].store, &cursor, &info))
    {
        const uint32_t block = SKYT_Content_BlockOf(twin, info.tenant, info.key);

        if (block != SKYT_NONE)
        {
            look_at_block(twin, census, node, &info, block);
        }
    }
    SKYT_Check_Store(twin, node);
}

static void judge(SKYT_Twin_t *twin, const Census_t *census, uint32_t block)
{
    const bool may_stray = SKYT_Fault_Since(&twin->hard, 1);
    bool       is_home   = true;

    for (uint32_t chunk = 0; chunk < SKYT_Content_Total(twin, block); ++chunk)
    {
        const uint8_t seen = census->seen[census->first[block] + chunk];

        if (seen == 0 && !twin->truth[block].is_degraded)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, SKYT_NONE, block, chunk,
                            "in the end a chunk is held nowhere, and no fault took it");
        }
        else if (seen != 0 && (seen & 2u) == 0 && !may_stray)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NodeOf(twin, home_of(twin, block, 0, chunk)), SKYT_NONE, block, chunk,
                            "in the end a chunk is not on this satellite, where the schedule has it");
        }
        is_home = is_home && (seen & 2u) != 0;
    }
    if (twin->truth[block].is_degraded && !SKYT_Rows_CanBeHad(twin, block))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, SKYT_NONE, block, SKYT_NONE,
                        "in the end a block cannot be decoded, and no fault took chunks of it");
    }
    ++twin->counters.blocks_checked;
    twin->counters.blocks_misplaced += is_home ? 0 : 1u;
}

/* What satellites know of links has had time to spread. */
static void judge_links(SKYT_Twin_t *twin)
{
    const uint64_t since_us = twin->now_us > SPREAD_US ? twin->now_us - SPREAD_US : 0;

    if (!SKYT_Fault_Since(&twin->hard, since_us) && !SKYT_Fault_Since(&twin->lossy, since_us) &&
        twin->map_changed_us < since_us && !SKYT_Hello_AllKnow(twin, twin->now_us))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_ROUTE, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "in the end neighbours do not know the same of links");
    }
}

void SKYT_Finish(SKYT_Twin_t *twin)
{
    Census_t census;

    if (twin->stopped != SKYT_STOP_NOT)
    {
        return;
    }
    SKYT_Assert_Watch(twin);
    if (census_init(twin, &census))
    {
        for (uint32_t node = 0; node < twin->node_count; ++node)
        {
            look_at_node(twin, &census, node);
        }
        for (uint32_t block = 0; block < twin->block_count; ++block)
        {
            if (twin->truth[block].is_held && twin->truth[block].taint == 0)
            {
                judge(twin, &census, block);
            }
        }
    }
    free(census.first);
    free(census.seen);
    for (uint32_t active = 0; active < twin->config.active_max; ++active)
    {
        SKYT_Op_CheckMemory(twin, &twin->active[active]);
        if (twin->active[active].is_active)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_DEADLINE, SKYT_NONE, twin->active[active].op, twin->active[active].block,
                            SKYT_NONE, "in the end an operation still goes on");
        }
    }
    judge_links(twin);
    SKYT_Arrivals_Finish(twin);
    SKYT_Rows_CheckRepaired(twin);
    SKYT_Check_Packets(twin);
}
