/**
 * @file
 * Answers of a satellite about chunks that it is giving away. Two satellites that move the same chunks to each other could each let go
 * of them on the word of the other. So while a chunk is on its way from here for good, other satellites are told that it is not held
 * here, and their PUTs of it are refused.
 */
#include "sky_service_guard.h"

#include "sky_assert.h"
#include "sky_service_job.h"
#include "sky_spread.h"

static bool is_before(SKY_Addr_t a, SKY_Addr_t b)
{
    return a.plane < b.plane || (a.plane == b.plane && a.slot < b.slot);
}

/* Return true if chunks of the block of @p req are on their way from here for good. */
static bool gives_away(const SKY_Migrations_t *migrations, const SKY_Migration_t *job, const SKY_Packet_t *req)
{
    for (uint32_t i = SKY_Job_FirstLane(migrations, job); job->active && !job->keep && i < SKY_Job_LanesEnd(migrations, job); ++i)
    {
        if (migrations->lanes[i].active && SKY_Job_LaneIsOf(&migrations->lanes[i], req->tenant, req->key))
        {
            SKY_ASSERT(job->lanes > 0);
            return true;
        }
    }
    return false;
}

uint32_t SKY_Guard_Given(const SKY_Migrations_t *migrations, const SKY_Packet_t *req)
{
    uint32_t jobs = 0;

    for (uint32_t i = 0; i < SKY_SERVICE_JOBS && req->src.plane != 0; ++i)
    {
        jobs |= gives_away(migrations, &migrations->jobs[i], req) ? 1u << i : 0u;
    }
    SKY_ASSERT(jobs < 1u << SKY_SERVICE_JOBS);
    SKY_ASSERT(jobs == 0 || req->src.plane != 0); /* ground hosts are not told of moves */
    return jobs;
}

SKY_Status_t SKY_Guard_Check(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Packet_t *req,
                             uint32_t given, uint32_t chunk_total, uint32_t chunk_id)
{
    SKY_Status_t status = SKY_STATUS_OK;
    SKY_ASSERT(given >> SKY_SERVICE_JOBS == 0);
    SKY_ASSERT(given == 0 || req->src.plane != 0);

    for (uint32_t i = 0; i < SKY_SERVICE_JOBS && given >> i != 0; ++i)
    {
        const SKY_Migration_t *job = &migrations->jobs[i];

        SKY_ASSERT((given >> i & 1u) == 0 || job->server < job->stride);
        SKY_ASSERT((given >> i & 1u) == 0 || job->active);
        if ((given >> i & 1u) != 0 && SKY_Spread_Server(req->key, chunk_total, job->stride, chunk_id) == job->server &&
            SKY_Job_Goes(core, job, SKY_Store_Find(core->store, req->tenant, req->key), chunk_id))
        {
            if (SKY_Addr_Equal(job->target, req->src) && is_before(core->cfg.self, req->src))
            {
                return SKY_STATUS_REFUSED;
            }
            status = SKY_STATUS_BUSY;
        }
    }
    SKY_ASSERT(given != 0 || status == SKY_STATUS_OK);
    return status;
}
