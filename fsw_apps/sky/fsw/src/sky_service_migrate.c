/**
 * @file
 * Migrations: chunks of this satellite go to another one, as PUTs with HAS for acknowledgement (sky_push.c). Acknowledged chunks
 * are forgotten here unless the request said to keep them. MIGRATE asks for the move of one block, a command or the schedule for
 * that of all.
 *
 * A migration is a job, and sends in lanes (sky_service_job.c). Window and timers are the job's, so many blocks of one chunk each
 * are on their way as fast as one block of many. A new lane begins whenever the window has room that the others do not fill. Held
 * chunks are looked up when a lane begins and again when a chunk is sent, so chunks may come and go meanwhile.
 */
#include "sky_service_migrate.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_defaults.h"
#include "sky_service_core.h"
#include "sky_service_home.h"
#include "sky_service_job.h"
#include "sky_service_letgo.h"

#define US_PER_MS      1000u
#define RTO_INITIAL_US 250000u /* time of several hops out and back */
#define POLL_MAX_US    5000u   /* the latest look at a timer that starts in the next pull */
#define RTO_MIN_US \
    50000u /* time above the mean: satellites on the way are busy now and then, and a repeat too soon halves the window */
#define RTO_MAX_US 4000000u

static SKY_Addr_t load_addr(const uint8_t *payload)
{
    const SKY_Addr_t addr = {(uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_PLANE] << 8) | payload[SKY_MIGRATE_OFF_PLANE + 1u]),
                             (uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_SLOT] << 8) | payload[SKY_MIGRATE_OFF_SLOT + 1u])};

    return addr;
}

/* ---- requests and responses --------------------------------------------------------------------------------------- */

static bool is_all_blocks(const SKY_Packet_t *pkt)
{
    static const uint8_t zero[SKY_KEY_BYTES];

    return memcmp(pkt->key, zero, SKY_KEY_BYTES) == 0;
}

/* Return true if a job runs for this very request, which was repeated because its response was lost. */
static bool is_same_job(const SKY_Migration_t *job, const SKY_Packet_t *pkt, SKY_Addr_t target)
{
    return job->active && job->tenant == pkt->tenant && SKY_Addr_Equal(job->target, target) && job->epoch == pkt->epoch &&
           job->all_blocks == is_all_blocks(pkt) && (job->all_blocks || memcmp(job->key, pkt->key, SKY_KEY_BYTES) == 0);
}

static void begin_pull(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    SKY_ASSERT(core->cfg.credit >= 1);
    job->asked   = 0;
    job->cutting = false; /* the rest of the chunk counts as lost and is sent again */
    job->budget  = core->cfg.credit;
    job->turn    = SKY_Job_FirstLane(migrations, job);
    SKY_ASSERT(!job->cutting);
    SKY_ASSERT(job->budget <= SKY_LIMIT_CHUNK_SET);
}

static void prepare(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Addr_t target,
                    uint64_t deadline_us)
{
    const uint32_t      most = core->cfg.credit > SKY_DEFAULT_WINDOW ? core->cfg.credit : SKY_DEFAULT_WINDOW;
    const SKY_PeerCfg_t peer = {.window_initial = core->cfg.credit,
                                .window_max     = most,
                                .burst          = core->cfg.credit,
                                .rto_initial_us = RTO_INITIAL_US,
                                .rto_min_us     = RTO_MIN_US,
                                .rto_max_us     = RTO_MAX_US};

    SKY_ASSERT(!job->active);
    SKY_ASSERT(job->lanes == 0);
    (void)memset(job, 0, sizeof(*job));
    job->stride      = 1;
    job->row         = UINT32_MAX;
    job->target      = target;
    job->deadline_us = deadline_us;
    begin_pull(core, migrations, job);
    SKY_Peer_Init(&job->peer, &peer, target);
    SKY_ASSERT(!SKY_Addr_Equal(target, core->cfg.self));
    SKY_ASSERT(job->peer.window >= 1);
}

static SKY_Status_t start(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    SKY_ASSERT(job->stride >= 1);
    job->from   = job->all_blocks ? SKY_JOB_ALL_DONE : 0;
    job->active = SKY_Job_BeginLane(core, migrations, job);
    SKY_ASSERT(job->active == (job->lanes > 0));
    if (!job->active)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    SKY_ASSERT(job->lanes == 1);
    return SKY_STATUS_OK;
}

bool SKY_Migrate_CanGoTo(const SKY_ServiceCore_t *core, SKY_Addr_t target)
{
    return SKY_Torus_Contains(&core->cfg.torus, target) && !SKY_Addr_Equal(target, core->cfg.self);
}

/* Return a place for one more job of a tenant, or NULL. */
static SKY_Migration_t *idle_job(SKY_Migrations_t *migrations, uint32_t tenant)
{
    SKY_Migration_t *idle = NULL;
    uint32_t         own  = 0;

    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        SKY_Migration_t *job = &migrations->jobs[i];

        idle = job->active ? idle : job;
        own += job->active && job->tenant == tenant ? 1u : 0u;
    }
    SKY_ASSERT(idle == NULL || idle->lanes == 0);
    SKY_ASSERT(idle == NULL || idle < &migrations->jobs[SKY_SERVICE_MIGRATIONS]); /* the last place is the handover's */
    return own < SKY_SERVICE_TENANT_MIGRATIONS ? idle : NULL;
}

static SKY_Status_t start_request(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt,
                                  SKY_Addr_t target)
{
    const uint32_t   asked_ms = pkt->deadline_ms != 0 ? pkt->deadline_ms : SKY_SERVICE_MIGRATION_MS;
    const uint32_t   least_ms = asked_ms > SKY_SERVICE_MIGRATION_MIN_MS ? asked_ms : SKY_SERVICE_MIGRATION_MIN_MS;
    const uint32_t   limit_ms = least_ms < SKY_SERVICE_MIGRATION_MAX_MS ? least_ms : SKY_SERVICE_MIGRATION_MAX_MS;
    SKY_Migration_t *job      = idle_job(migrations, pkt->tenant);
    SKY_ASSERT(limit_ms >= SKY_SERVICE_MIGRATION_MIN_MS);
    SKY_ASSERT(limit_ms <= SKY_SERVICE_MIGRATION_MAX_MS);

    if (job == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    prepare(core, migrations, job, target, now_us + (uint64_t)limit_ms * US_PER_MS);
    SKY_ASSERT(job->deadline_us > now_us);
    (void)memcpy(job->key, pkt->key, SKY_KEY_BYTES);
    job->keep       = (pkt->flags & SKY_FLAG_KEEP) != 0;
    job->hands_on   = core->schedule == NULL;
    job->all_blocks = is_all_blocks(pkt);
    job->tenant     = pkt->tenant;
    job->epoch      = pkt->epoch;
    SKY_Home_Share(core, pkt, target, &job->stride, &job->server);
    SKY_ASSERT(job->server < job->stride);
    return start(core, migrations, job);
}

/* Let chunks wait that are here already and belong here in a later row, as moved chunks do: handover and scrub leave them. */
static SKY_Status_t stay(SKY_ServiceCore_t *core, const SKY_Packet_t *pkt)
{
    const uint32_t block = SKY_Store_Find(core->store, pkt->tenant, pkt->key);

    if (block == SKY_STORE_NONE)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    SKY_Store_RaiseEpoch(core->store, block, pkt->epoch);
    return SKY_STATUS_OK;
}

SKY_Status_t SKY_Migrate_Request(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (pkt->length != SKY_MIGRATE_BYTES)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    const SKY_Addr_t target = load_addr(pkt->payload);
    if (SKY_Addr_Equal(target, core->cfg.self) && pkt->epoch != SKY_SCHEDULE_NONE && !is_all_blocks(pkt))
    {
        return stay(core, pkt);
    }
    if (!SKY_Migrate_CanGoTo(core, target))
    {
        return SKY_STATUS_BAD_ADDRESS;
    }
    if (is_all_blocks(pkt) && pkt->src.plane == 0 && !core->cfg.migrate_all_from_ground)
    {
        return SKY_STATUS_REFUSED;
    }
    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        if (is_same_job(&migrations->jobs[i], pkt, target))
        {
            return SKY_STATUS_OK;
        }
    }
    return start_request(core, migrations, now_us, pkt, target);
}

/* Prepare the job whose place no request takes, for blocks of every tenant. */
static SKY_Migration_t *prepare_all(const SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t target,
                                    uint64_t deadline_us)
{
    SKY_Migration_t *job = &migrations->jobs[SKY_SERVICE_MIGRATIONS];
    SKY_ASSERT(!SKY_Addr_Equal(target, core->cfg.self));

    prepare(core, migrations, job, target, deadline_us);
    job->all_blocks  = true;
    job->all_tenants = true;
    SKY_ASSERT(job->stride == 1);
    return job;
}

SKY_Status_t SKY_Migrate_All(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t target, uint64_t deadline_us,
                             uint32_t row, uint32_t stride, uint32_t server)
{
    SKY_Migration_t *job = prepare_all(core, migrations, target, deadline_us);
    SKY_ASSERT(stride >= 1);

    job->hands_on = core->schedule == NULL; /* by a schedule chunks go to their homes of now */
    job->row      = row;
    job->stride   = stride;
    job->server   = server;
    SKY_ASSERT(server < stride);
    return start(core, migrations, job);
}

SKY_Status_t SKY_Migrate_Hinted(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t home, uint64_t deadline_us)
{
    SKY_Migration_t *job = prepare_all(core, migrations, home, deadline_us);
    job->hinted          = true;
    SKY_ASSERT(core->store->counters.hinted <= core->store->counters.chunks);
    SKY_ASSERT(job->row == UINT32_MAX); /* each block keeps its epoch */
    return start(core, migrations, job);
}

static void take_response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane,
                          uint64_t now_us, const SKY_Packet_t *pkt)
{
    const SKY_ChunkSet_t before = lane->push.unacked;
    SKY_ASSERT(job->lanes > 0);

    SKY_ASSERT(lane->active);
    SKY_ASSERT(job->active);
    SKY_Push_OnPacket(&lane->push, now_us, pkt);
    SKY_ASSERT(lane->push.left <= lane->push.cfg.count);
    for (uint32_t i = SKY_Job_FirstLane(migrations, job); i < SKY_Job_LanesEnd(migrations, job); ++i)
    {
        migrations->lanes[i].push.unanswered = 0; /* the target has answered, whatever it was asked about */
    }
    SKY_LetGo_Acknowledged(core, job, lane, &before, now_us);
    if ((core->schedule != NULL || job->hinted) && job == &migrations->jobs[SKY_SERVICE_MIGRATIONS] &&
        lane->push.state == SKY_SHARE_REFUSED &&
        (lane->push.last_status == SKY_STATUS_BAD_KEY || lane->push.last_status == SKY_STATUS_OLD_VERSION ||
         lane->push.last_status == SKY_STATUS_STORE_FULL) &&
        SKY_Addr_Equal(pkt->src, job->target))
    {
        SKY_LetGo_Refused(core, job, lane); /* the block at the chunk's home counts; without room there the block is evicted */
    }
    SKY_Job_FollowUp(core, migrations, job, lane);
    SKY_ASSERT(job->active == (job->lanes > 0));
}

bool SKY_Migrate_Response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt)
{
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        SKY_Migration_t *job = &migrations->jobs[i];

        for (uint32_t at = SKY_Job_FirstLane(migrations, job); job->active && at < SKY_Job_LanesEnd(migrations, job); ++at)
        {
            SKY_Lane_t *lane = &migrations->lanes[at];

            /* Only the target says what it holds. Any satellite on the way may say why a packet did not get there. */
            if (lane->active && SKY_ShareCfg_Owns(&lane->push.cfg, pkt) &&
                (pkt->status != SKY_STATUS_OK || SKY_Addr_Equal(pkt->src, job->target)))
            {
                take_response(core, migrations, job, lane, now_us, pkt);
                SKY_ASSERT(!job->active || job->lanes > 0);
                return true;
            }
        }
    }
    return false;
}

void SKY_Migrate_Unreachable(SKY_Migrations_t *migrations, SKY_Addr_t dst)
{
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        if (SKY_Addr_Equal(migrations->jobs[i].target, dst))
        {
            SKY_Job_End(migrations, &migrations->jobs[i]);
            SKY_ASSERT(!migrations->jobs[i].active);
        }
    }
}

/* ---- what to send ------------------------------------------------------------------------------------------------- */

void SKY_Migrate_Pull(const SKY_ServiceCore_t *core, SKY_Migrations_t *migrations)
{
    migrations->pulled = 0;
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        begin_pull(core, migrations, &migrations->jobs[i]);
    }
    SKY_ASSERT(core->cfg.credit >= 1);
}

/* Find the chunk that the request at hand is to carry. @return false if it was evicted, purged or replaced since the lane began, and
 * maybe put anew as one of another block */
static bool find_chunk(const SKY_ServiceCore_t *core, SKY_Migration_t *job)
{
    const SKY_Packet_t *req   = &job->request;
    const uint32_t      block = SKY_Store_Find(core->store, req->tenant, req->key);
    SKY_BlockInfo_t     info;
    SKY_Stripe_t        stripe;
    SKY_ASSERT(job->active);
    SKY_ASSERT(!job->cutting); /* the chunk before has gone whole */

    (void)SKY_Stripe_OfChunk(&stripe, req); /* the request was made of a stripe */
    return SKY_Store_Block(core->store, block, &info) == SKY_STATUS_OK &&
           SKY_Store_Peek(core->store, block, req->chunk_id, &job->chunk) == SKY_STATUS_OK &&
           SKY_Stripe_Equal(&stripe, &info.stripe) && info.version == req->block_version && info.content == req->content;
}

/* Take the next chunk or query of a lane. @return false if there is none in this pull */
static bool take_of_lane(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane,
                         uint64_t now_us)
{
    static const SKY_Addr_t own = {0, 0};
    SKY_Packet_t           *req = &job->request;
    SKY_ASSERT(lane->active);
    SKY_ASSERT(!job->cutting);

    switch (SKY_Push_Next(&lane->push, now_us, job->budget, req, lane->payload))
    {
        case SKY_PUSH_QUERY:
            SKY_ASSERT(job->turn < SKY_Job_LanesEnd(migrations, job));
            SKY_ASSERT(req->op == SKY_OP_HAS);
            job->asked |= 1ull << (job->turn - SKY_Job_FirstLane(migrations, job));
            return true;
        case SKY_PUSH_CHUNK:
            if (find_chunk(core, job))
            {
                SKY_ASSERT(req->op == SKY_OP_PUT);
                SKY_ASSERT(job->budget > 0);
                --job->budget;
                job->cutting     = true;
                job->part_offset = 0;
                req->home        = job->hands_on && !SKY_Addr_Equal(job->chunk.home, job->target) ? job->chunk.home : own;
                return true;
            }
            SKY_Job_RestartLane(core, job, lane);
            return false;
        case SKY_PUSH_NOTHING:
        default:
            return false;
    }
}

/* Take the next chunk or query of a job: lane by lane, and while the window has room, of a new one. @return false if there is
 * none in this pull */
static bool take_next(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, uint64_t now_us)
{
    bool has_more = true;
    SKY_ASSERT(job->active);

    while (has_more)
    {
        for (; job->turn < SKY_Job_LanesEnd(migrations, job); ++job->turn)
        {
            SKY_Lane_t *lane = &migrations->lanes[job->turn];

            if (lane->active && (job->asked >> (job->turn - SKY_Job_FirstLane(migrations, job)) & 1u) == 0 &&
                take_of_lane(core, migrations, job, lane, now_us))
            {
                return true;
            }
        }
        has_more = job->budget > 0 && job->peer.outstanding < job->peer.window && SKY_Job_BeginLane(core, migrations, job);
    }
    job->active = job->lanes > 0; /* a job without lanes had room for one, and nothing to begin it with */
    SKY_ASSERT(job->turn == SKY_Job_LanesEnd(migrations, job));
    return false;
}

static bool job_next(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t   *req   = &job->request;
    const uint16_t *crc16 = NULL;

    if (!job->active || (!job->cutting && !take_next(core, migrations, job, now_us)))
    {
        return false;
    }
    if (job->cutting)
    {
        SKY_ASSERT(job->part_offset < job->chunk.len);
        SKY_ASSERT(req->chunk_len == job->chunk.len); /* the block was not declared anew meanwhile */
        SKY_ASSERT(job->part_offset == 0 || req->length < job->chunk.len);
        req->chunk_crc   = job->chunk.crc32c;
        job->part_offset = SKY_Packet_CutPart(req, job->chunk.data, job->part_offset, core->cfg.packet_bytes);
        job->cutting     = job->part_offset < job->chunk.len;
        SKY_ASSERT(req->offset + req->length == job->part_offset);
        SKY_ASSERT(job->part_offset <= job->chunk.len);
        crc16 = req->length == job->chunk.len ? &job->chunk.crc16_from_zero : NULL;
    }
    SKY_ServiceCore_Emit(core, now_us, req, crc16, out);
    return true;
}

bool SKY_Migrate_Next(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, SKY_Out_t *out)
{
    while (migrations->pulled < SKY_SERVICE_JOBS)
    {
        if (job_next(core, migrations, &migrations->jobs[migrations->pulled], now_us, out))
        {
            return true;
        }
        ++migrations->pulled;
    }
    SKY_ASSERT(migrations->pulled == SKY_SERVICE_JOBS);
    return false;
}

uint64_t SKY_Migrate_OnTime(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        SKY_Migration_t *job = &migrations->jobs[i];

        for (uint32_t at = SKY_Job_FirstLane(migrations, job); job->active && at < SKY_Job_LanesEnd(migrations, job); ++at)
        {
            SKY_Lane_t *lane = &migrations->lanes[at];

            if (lane->active)
            {
                const uint64_t lane_us = SKY_Push_OnTime(&lane->push, now_us);

                SKY_Job_FollowUp(core, migrations, job, lane);
                SKY_ASSERT(!job->active || job->lanes > 0);
                next_us = lane_us < next_us ? lane_us : next_us;
            }
        }
        if (job->active)
        {
            SKY_ASSERT(job->lanes > 0);
            SKY_ASSERT(job->peer.outstanding <= SKY_LIMIT_CHUNK_SET);
            const uint64_t latest_us = now_us + POLL_MAX_US;

            next_us = latest_us < next_us ? latest_us : next_us;
        }
    }
    return next_us;
}
