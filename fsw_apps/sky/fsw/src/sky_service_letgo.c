/**
 * @file
 * Chunks that a migration lets go of: those that the target has acknowledged, and those that it will never take, because it has
 * others under their names or no room for their tenant.
 *
 * If the latter stayed, a handover would have something left for ever. The scrub purges nothing while a satellite has something
 * left, so one such chunk would stop it in the whole constellation.
 */
#include "sky_service_letgo.h"

#include "sky_assert.h"
#include "sky_crc.h"

/* Note that the home of a chunk which was kept for it has it. Hosts that still take the home for lost find it here for a while. */
static void leave(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane, uint32_t index, uint64_t now_us)
{
    const SKY_ShareCfg_t *cfg = &lane->push.cfg;
    SKY_ASSERT(job->hinted);
    SKY_ASSERT(index < cfg->count);

    ++job->moved;
    SKY_Store_Leave(core->store, SKY_Store_FindInstance(core->store, cfg->tenant, cfg->key, cfg->version, cfg->content),
                    SKY_ChunkSet_ChunkId(&lane->push.unacked, index), now_us + SKY_SERVICE_LEAVE_US);
}

/* Forget the chunk with number @p index of the lane, which may have been evicted or replaced meanwhile. */
static void forget(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane, uint32_t index)
{
    const SKY_ShareCfg_t *cfg = &lane->push.cfg;
    SKY_ASSERT(index < cfg->count);
    SKY_ASSERT(lane->active);
    SKY_ASSERT(cfg->stride == job->stride);

    ++job->moved;
    (void)SKY_Store_Drop(core->store, SKY_Store_FindInstance(core->store, cfg->tenant, cfg->key, cfg->version, cfg->content),
                         SKY_ChunkSet_ChunkId(&lane->push.unacked, index));
}

void SKY_LetGo_Acknowledged(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane, const SKY_ChunkSet_t *before,
                            uint64_t now_us)
{
    SKY_ASSERT(before->base == lane->push.unacked.base);
    SKY_ASSERT(before->count == lane->push.unacked.count);
    SKY_ASSERT(lane->active);
    SKY_ASSERT(before->stride == lane->push.unacked.stride);
    for (uint32_t i = SKY_ChunkSet_Next(before, 0); i < before->count; i = SKY_ChunkSet_Next(before, i + 1u))
    {
        if (SKY_ChunkSet_Has(&lane->push.unacked, i))
        {
            continue;
        }
        ++core->counters.migrated_out;
        if (job->keep)
        {
            ++job->moved;
        }
        else if (job->hinted)
        {
            leave(core, job, lane, i, now_us);
        }
        else
        {
            forget(core, job, lane, i);
        }
    }
}

void SKY_LetGo_Refused(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane)
{
    const SKY_ChunkSet_t *set = &lane->push.unacked;
    SKY_ASSERT(!job->keep); /* the job is a handover */
    SKY_ASSERT(lane->active);

    SKY_ASSERT(lane->push.state == SKY_SHARE_REFUSED);
    for (uint32_t i = SKY_ChunkSet_Next(set, 0); i < set->count; i = SKY_ChunkSet_Next(set, i + 1u))
    {
        forget(core, job, lane, i);
    }
}

/* Return true if the chunk has changed in memory. A chunk that was evicted has not. */
static bool is_damaged(const SKY_ServiceCore_t *core, const SKY_Lane_t *lane, uint32_t index)
{
    const SKY_ShareCfg_t *cfg   = &lane->push.cfg;
    const uint32_t        block = SKY_Store_FindInstance(core->store, cfg->tenant, cfg->key, cfg->version, cfg->content);
    SKY_ChunkView_t       chunk = {.len = 0};
    SKY_ASSERT(index < cfg->count);

    (void)SKY_Store_Peek(core->store, block, SKY_ChunkSet_ChunkId(&lane->push.unacked, index), &chunk);
    return SKY_Crc32c(0, chunk.data, chunk.len) != chunk.crc32c;
}

void SKY_LetGo_Damaged(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane)
{
    const SKY_ChunkSet_t *set    = &lane->push.unacked;
    bool                  helped = false;
    SKY_ASSERT(lane->active);

    if (lane->push.fruitless < SKY_SERVICE_MIGRATION_ROUNDS)
    {
        return;
    }
    SKY_ASSERT(lane->push.left > 0 || lane->push.state != SKY_SHARE_RUNNING);
    for (uint32_t i = SKY_ChunkSet_Next(set, 0); i < set->count; i = SKY_ChunkSet_Next(set, i + 1u))
    {
        if (is_damaged(core, lane, i))
        {
            forget(core, job, lane, i);
            helped = true;
        }
    }
    SKY_ASSERT(set->count <= SKY_SERVICE_LANE_CHUNKS);
    lane->push.fruitless = 0;
    if (!helped)
    {
        SKY_Push_Stop(&lane->push, SKY_SHARE_REFUSED);
    }
}
