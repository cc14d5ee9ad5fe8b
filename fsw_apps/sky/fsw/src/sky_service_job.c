/**
 * @file
 * Job of a migration: the choice of the chunks that go next, and the lanes in which they go.
 *
 * A job walks over blocks, the one used last first, and over each block in pieces of SKY_SERVICE_LANE_CHUNKS chunk ids. Each piece
 * takes a lane: a push of its own, with its own questions.
 */
#include "sky_service_job.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_home.h"
#include "sky_service_letgo.h"
#include "sky_spread.h"

uint32_t SKY_Job_FirstLane(const SKY_Migrations_t *migrations, const SKY_Migration_t *job)
{
    SKY_ASSERT((uint32_t)(job - migrations->jobs) < SKY_SERVICE_JOBS);
    return (uint32_t)(job - migrations->jobs) * SKY_SERVICE_REQUEST_LANES;
}

uint32_t SKY_Job_LanesEnd(const SKY_Migrations_t *migrations, const SKY_Migration_t *job)
{
    return job == &migrations->jobs[SKY_SERVICE_MIGRATIONS] ? SKY_SERVICE_LANES
                                                            : SKY_Job_FirstLane(migrations, job) + SKY_SERVICE_REQUEST_LANES;
}

bool SKY_Job_LaneIsOf(const SKY_Lane_t *lane, uint32_t tenant, const uint8_t *key)
{
    return lane->push.cfg.tenant == tenant && memcmp(lane->push.cfg.key, key, SKY_KEY_BYTES) == 0;
}

static void end_lane(SKY_Migration_t *job, SKY_Lane_t *lane)
{
    SKY_ASSERT(lane->active);
    SKY_ASSERT(job->lanes > 0);
    SKY_ASSERT(job->active);
    SKY_Push_Stop(&lane->push, SKY_SHARE_EXPIRED);
    lane->active = false;
    --job->lanes;
    SKY_ASSERT(lane->push.on_way == 0);
}

void SKY_Job_End(SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    for (uint32_t i = SKY_Job_FirstLane(migrations, job); job->active && i < SKY_Job_LanesEnd(migrations, job); ++i)
    {
        if (migrations->lanes[i].active)
        {
            end_lane(job, &migrations->lanes[i]);
        }
    }
    SKY_ASSERT(job->lanes == 0);
    job->active = false;
    SKY_ASSERT(!job->active);
    SKY_ASSERT(job->peer.outstanding == 0); /* nothing is on its way without a lane */
}

/* ---- what to move ------------------------------------------------------------------------------------------------- */

bool SKY_Job_Goes(const SKY_ServiceCore_t *core, const SKY_Migration_t *job, uint32_t block, uint32_t id)
{
    SKY_ASSERT(job->target.plane != 0);
    SKY_ASSERT(!job->hinted || job->stride == 1u);
    if (job->hinted)
    {
        return SKY_Addr_Equal(SKY_Store_HomeOf(core->store, block, id), job->target);
    }
    return !job->hands_on || !SKY_Store_Leaves(core->store, block, id); /* what leaves is at home, and would stay where it goes */
}

/* Return the lowest chunk of a share from @p from on and below @p end that is held, or SKY_STORE_NONE. */
static uint32_t lowest_to_go(const SKY_ServiceCore_t *core, const SKY_Migration_t *job, uint32_t block, uint32_t share,
                             uint32_t from, uint32_t end)
{
    uint32_t lowest = SKY_STORE_NONE;
    uint32_t cursor = 0;
    uint32_t id     = 0;

    SKY_ASSERT(share < job->stride);
    while (SKY_Store_EachChunk(core->store, block, &cursor, &id))
    {
        if (id >= from && id < end && id < lowest && id % job->stride == share && SKY_Job_Goes(core, job, block, id))
        {
            lowest = id;
        }
    }
    SKY_ASSERT(lowest == SKY_STORE_NONE || lowest >= from);
    SKY_ASSERT(lowest == SKY_STORE_NONE || lowest < end);
    return lowest;
}

/* Begin with the chunks of a block from @p from on and below @p end that are held. @return the id after the last, or 0 if there
 * are none */
static uint32_t begin_share(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane, uint32_t tenant, const uint8_t *key,
                            uint32_t from, uint32_t end)
{
    SKY_BlockInfo_t info;
    SKY_ShareCfg_t  cfg;

    const uint32_t block = SKY_Store_Find(core->store, tenant, key);
    if (SKY_Store_Block(core->store, block, &info) != SKY_STATUS_OK)
    {
        return 0;
    }
    SKY_ASSERT(info.held > 0);
    const uint32_t share  = SKY_Spread_Share(key, info.stripe.chunk_total, job->stride, job->server);
    const uint32_t lowest = lowest_to_go(core, job, block, share, from, end);
    if (lowest == SKY_STORE_NONE)
    {
        return 0;
    }
    (void)memset(&cfg, 0, sizeof(cfg));
    (void)memcpy(cfg.key, key, SKY_KEY_BYTES);
    cfg.self         = core->cfg.self;
    cfg.tenant       = tenant;
    cfg.epoch        = job->epoch != 0 ? job->epoch : info.epoch;
    cfg.epoch        = cfg.epoch <= job->row ? cfg.epoch : 0; /* the chunk lies beside those that wait, and waits for nothing */
    cfg.track        = info.track;
    cfg.content      = info.content;
    cfg.version      = info.version;
    cfg.stripe       = info.stripe;
    cfg.base         = lowest;
    cfg.stride       = job->stride;
    cfg.count        = ((end < info.stripe.chunk_total ? end : info.stripe.chunk_total) - lowest - 1u) / job->stride + 1u;
    cfg.count        = cfg.count < SKY_SERVICE_LANE_CHUNKS ? cfg.count : SKY_SERVICE_LANE_CHUNKS;
    cfg.packet_bytes = core->cfg.packet_bytes;
    cfg.deadline_us  = job->deadline_us;
    cfg.request_id   = SKY_ServiceCore_TakeIds(core);

    SKY_ASSERT(cfg.count >= 1);
    SKY_ASSERT(lowest < info.stripe.chunk_total);
    SKY_ASSERT((uint64_t)lowest + (uint64_t)(cfg.count - 1u) * cfg.stride < end);
    SKY_ASSERT(cfg.count <= SKY_SERVICE_LANE_CHUNKS);
    SKY_ASSERT(SKY_ShareCfg_Check(&cfg));
    (void)SKY_Push_Init(&lane->push, &cfg, &job->peer, lane->asked_by); /* a held block has sound numbers */
    for (uint32_t i = 0; i < cfg.count; ++i)
    {
        const uint32_t id = lowest + i * job->stride;

        if (!SKY_Store_Has(core->store, block, id) || !SKY_Job_Goes(core, job, block, id))
        {
            SKY_Push_Skip(&lane->push, i);
        }
    }
    SKY_ASSERT(lane->push.left > 0); /* the lowest chunk is held */
    SKY_ASSERT(lane->push.state == SKY_SHARE_RUNNING);
    return lowest + (cfg.count - 1u) * job->stride + 1u;
}

static bool begin_next_block(const SKY_ServiceCore_t *core, SKY_Migration_t *job)
{
    SKY_BlockInfo_t info;

    while (job->all_blocks && SKY_Store_NextUsed(core->store, &job->walk, &info))
    {
        if ((job->all_tenants || info.tenant == job->tenant) &&
            (info.epoch <= job->row || !SKY_Home_Waits(core, info.epoch, job->server)))
        {
            SKY_ASSERT(info.held > 0);
            job->tenant = info.tenant;
            (void)memcpy(job->key, info.key, SKY_KEY_BYTES);
            job->from = 0;
            SKY_ASSERT(job->walk.used != 0);
            return true;
        }
    }
    return false;
}

bool SKY_Job_BeginLane(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    uint32_t free_lane = SKY_Job_FirstLane(migrations, job);
    uint32_t next      = 0;

    while (free_lane < SKY_Job_LanesEnd(migrations, job) && migrations->lanes[free_lane].active)
    {
        ++free_lane;
    }
    if (job->walked || free_lane == SKY_Job_LanesEnd(migrations, job))
    {
        return false;
    }
    SKY_Lane_t *lane = &migrations->lanes[free_lane];
    SKY_ASSERT(!lane->active);
    SKY_ASSERT(free_lane >= SKY_Job_FirstLane(migrations, job));

    while ((next = begin_share(core, job, lane, job->tenant, job->key, job->from, SKY_JOB_ALL_DONE)) == 0)
    {
        if (!begin_next_block(core, job))
        {
            job->walked = true;
            return false;
        }
    }
    SKY_ASSERT(next > job->from);
    job->from    = next;
    lane->active = true;
    ++job->lanes;
    SKY_ASSERT(job->lanes <= SKY_Job_LanesEnd(migrations, job) - SKY_Job_FirstLane(migrations, job));
    job->turn = free_lane;
    return true;
}

void SKY_Job_RestartLane(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane)
{
    const SKY_ShareCfg_t *cfg = &lane->push.cfg;
    SKY_ASSERT(lane->active);
    SKY_ASSERT(cfg->count >= 1);

    SKY_Push_Stop(&lane->push, SKY_SHARE_DONE);
    if (begin_share(core, job, lane, cfg->tenant, cfg->key, cfg->base, cfg->base + (cfg->count - 1u) * cfg->stride + 1u) == 0)
    {
        end_lane(job, lane);
    }
}

void SKY_Job_FollowUp(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane)
{
    SKY_ASSERT(job->active);
    SKY_ASSERT(job->lanes > 0);
    SKY_ASSERT(lane->active);
    SKY_LetGo_Damaged(core, job, lane);
    switch (lane->push.state)
    {
        case SKY_SHARE_RUNNING:
            if (lane->push.unanswered >= SKY_SERVICE_MIGRATION_TRIES)
            {
                SKY_Job_End(migrations, job);
            }
            return;
        case SKY_SHARE_EXPIRED:
            SKY_Job_End(migrations, job);
            return;
        case SKY_SHARE_DONE:
            break;
        case SKY_SHARE_MISS:
        case SKY_SHARE_REFUSED:
        default:
            if (lane->push.last_status == SKY_STATUS_UNREACHABLE)
            {
                SKY_Job_End(migrations, job); /* no other block finds a way there either */
                return;
            }
            if (SKY_Job_LaneIsOf(lane, job->tenant, job->key))
            {
                job->from = SKY_JOB_ALL_DONE; /* the target does not take this block, so it stays here */
            }
            break;
    }
    end_lane(job, lane);
    job->active = job->lanes > 0 || SKY_Job_BeginLane(core, migrations, job);
    SKY_ASSERT(job->active == (job->lanes > 0));
}
