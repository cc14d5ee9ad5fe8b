/**
 * @file
 * Migrations: chunks of this satellite go to another, as PUTs with HAS for acknowledgement (sky_push.c); what is acknowledged is
 * forgotten here unless the request said to keep it. MIGRATE asks for one, a command or the schedule for one of everything.
 *
 * A job walks over blocks, the one used last first, and over each block in pieces of SKY_SERVICE_LANE_CHUNKS chunk ids. Each piece
 * takes a lane: a push of its own, with its own questions. Window and timers are the job's, so many blocks of one chunk each are
 * on their way as fast as one block of many. A new lane begins whenever the window has room that the others do not fill. What is
 * held is looked up when a lane begins and again when a chunk is sent, so chunks may come and go meanwhile.
 */
#include "sky_service_migrate.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_defaults.h"
#include "sky_service_core.h"
#include "sky_service_home.h"
#include "sky_service_letgo.h"

#define US_PER_MS      1000u
#define ALL_DONE       UINT32_MAX /* no chunk has this id */
#define RTO_INITIAL_US 250000u    /* several hops out and back */
#define POLL_MAX_US    5000u      /* a timer that starts in the pull to come is looked at after this at the latest */
#define RTO_MIN_US \
    50000u /* above the mean: satellites on the way are busy now and then, and a repeat too soon halves the window */
#define RTO_MAX_US 4000000u

static SKY_Addr_t load_addr(const uint8_t *payload)
{
    const SKY_Addr_t addr = {(uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_PLANE] << 8) | payload[SKY_MIGRATE_OFF_PLANE + 1u]),
                             (uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_SLOT] << 8) | payload[SKY_MIGRATE_OFF_SLOT + 1u])};

    return addr;
}

/* ---- lanes -------------------------------------------------------------------------------------------------------- */

uint32_t SKY_Migrate_FirstLane(const SKY_Migrations_t *migrations, const SKY_Migration_t *job)
{
    SKY_ASSERT((uint32_t)(job - migrations->jobs) < SKY_SERVICE_JOBS);
    return (uint32_t)(job - migrations->jobs) * SKY_SERVICE_REQUEST_LANES;
}

uint32_t SKY_Migrate_LanesEnd(const SKY_Migrations_t *migrations, const SKY_Migration_t *job)
{
    return job == &migrations->jobs[SKY_SERVICE_MIGRATIONS] ? SKY_SERVICE_LANES
                                                            : SKY_Migrate_FirstLane(migrations, job) + SKY_SERVICE_REQUEST_LANES;
}

bool SKY_Migrate_LaneIsOf(const SKY_Lane_t *lane, uint32_t tenant, const uint8_t *key)
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

void SKY_Migrate_End(SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    for (uint32_t i = SKY_Migrate_FirstLane(migrations, job); job->active && i < SKY_Migrate_LanesEnd(migrations, job); ++i)
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

void SKY_Migrate_Unreachable(SKY_Migrations_t *migrations, SKY_Addr_t dst)
{
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        if (SKY_Addr_Equal(migrations->jobs[i].target, dst))
        {
            SKY_Migrate_End(migrations, &migrations->jobs[i]);
            SKY_ASSERT(!migrations->jobs[i].active);
        }
    }
}

/* ---- what to move ------------------------------------------------------------------------------------------------- */

/* Lowest chunk from @p from on and below @p end that is held and to go, or SKY_STORE_NONE. */
static uint32_t lowest_to_go(const SKY_ServiceCore_t *core, const SKY_Migration_t *job, uint32_t block, uint32_t from,
                             uint32_t end)
{
    uint32_t lowest = SKY_STORE_NONE;
    uint32_t cursor = 0;
    uint32_t id     = 0;

    SKY_ASSERT(job->server < job->stride); /* so the stride is not 0 */
    while (SKY_Store_EachChunk(core->store, block, &cursor, &id))
    {
        if (id >= from && id < end && id < lowest && id % job->stride == job->server)
        {
            lowest = id;
        }
    }
    SKY_ASSERT(lowest == SKY_STORE_NONE || lowest >= from);
    SKY_ASSERT(lowest == SKY_STORE_NONE || lowest < end);
    return lowest;
}

/* Begin with the chunks of a block from @p from on and below @p end that are held. @return the id after the last; 0: there are none */
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
    const uint32_t lowest = lowest_to_go(core, job, block, from, end);
    if (lowest == SKY_STORE_NONE)
    {
        return 0;
    }
    (void)memset(&cfg, 0, sizeof(cfg));
    (void)memcpy(cfg.key, key, SKY_KEY_BYTES);
    cfg.self         = core->cfg.self;
    cfg.tenant       = tenant;
    cfg.epoch        = job->epoch != 0 ? job->epoch : info.epoch;
    cfg.epoch        = cfg.epoch <= job->row ? cfg.epoch : 0; /* it lies beside what waits, and waits for nothing */
    cfg.chunk_total  = info.chunk_total;
    cfg.chunk_len    = info.chunk_len;
    cfg.block_len    = info.block_len;
    cfg.base         = lowest;
    cfg.stride       = job->stride;
    cfg.count        = ((end < info.chunk_total ? end : info.chunk_total) - lowest - 1u) / job->stride + 1u;
    cfg.count        = cfg.count < SKY_SERVICE_LANE_CHUNKS ? cfg.count : SKY_SERVICE_LANE_CHUNKS;
    cfg.packet_bytes = core->cfg.packet_bytes;
    cfg.deadline_us  = job->deadline_us;
    cfg.request_id   = SKY_ServiceCore_TakeIds(core);

    SKY_ASSERT(cfg.count >= 1);
    SKY_ASSERT(lowest < info.chunk_total);
    SKY_ASSERT((uint64_t)lowest + (uint64_t)(cfg.count - 1u) * cfg.stride < end);
    SKY_ASSERT(cfg.count <= SKY_SERVICE_LANE_CHUNKS);
    SKY_ASSERT(SKY_ShareCfg_Check(&cfg));
    (void)SKY_Push_Init(&lane->push, &cfg, &job->peer, lane->asked_by); /* numbers of a block that is held are sound */
    for (uint32_t i = 0; i < cfg.count; ++i)
    {
        if (!SKY_Store_Has(core->store, block, lowest + i * job->stride))
        {
            SKY_Push_Skip(&lane->push, i);
        }
    }
    SKY_ASSERT(lane->push.left > 0); /* the lowest is held */
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

/* Begin with the next chunks of this block, or of the next block that has some. @return false: no lane is free, or all has begun */
static bool begin_lane(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    uint32_t free_lane = SKY_Migrate_FirstLane(migrations, job);
    uint32_t next      = 0;

    while (free_lane < SKY_Migrate_LanesEnd(migrations, job) && migrations->lanes[free_lane].active)
    {
        ++free_lane;
    }
    if (job->walked || free_lane == SKY_Migrate_LanesEnd(migrations, job))
    {
        return false;
    }
    SKY_Lane_t *lane = &migrations->lanes[free_lane];
    SKY_ASSERT(!lane->active);
    SKY_ASSERT(free_lane >= SKY_Migrate_FirstLane(migrations, job));

    while ((next = begin_share(core, job, lane, job->tenant, job->key, job->from, ALL_DONE)) == 0)
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
    SKY_ASSERT(job->lanes <= SKY_Migrate_LanesEnd(migrations, job) - SKY_Migrate_FirstLane(migrations, job));
    job->turn = free_lane;
    return true;
}

/* After anything that may have ended a lane. */
static void follow_up(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane)
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
                SKY_Migrate_End(migrations, job);
            }
            return;
        case SKY_SHARE_EXPIRED:
            SKY_Migrate_End(migrations, job);
            return;
        case SKY_SHARE_DONE:
            break;
        case SKY_SHARE_MISS:
        case SKY_SHARE_REFUSED:
        default:
            if (lane->push.last_status == SKY_STATUS_UNREACHABLE)
            {
                SKY_Migrate_End(migrations, job); /* nor is any other block's way there */
                return;
            }
            if (SKY_Migrate_LaneIsOf(lane, job->tenant, job->key))
            {
                job->from = ALL_DONE; /* the target does not take this block; it stays here */
            }
            break;
    }
    end_lane(job, lane);
    job->active = job->lanes > 0 || begin_lane(core, migrations, job);
    SKY_ASSERT(job->active == (job->lanes > 0));
}

/* ---- requests and responses --------------------------------------------------------------------------------------- */

static bool is_all_blocks(const SKY_Packet_t *pkt)
{
    static const uint8_t zero[SKY_KEY_BYTES];

    return memcmp(pkt->key, zero, SKY_KEY_BYTES) == 0;
}

/* A request that was repeated because its response was lost finds its job running. */
static bool is_same_job(const SKY_Migration_t *job, const SKY_Packet_t *pkt, SKY_Addr_t target)
{
    return job->active && job->tenant == pkt->tenant && SKY_Addr_Equal(job->target, target) && job->epoch == pkt->epoch &&
           job->all_blocks == is_all_blocks(pkt) && (job->all_blocks || memcmp(job->key, pkt->key, SKY_KEY_BYTES) == 0);
}

static void begin_pull(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, SKY_Migration_t *job)
{
    SKY_ASSERT(core->cfg.credit >= 1);
    job->asked   = 0;
    job->cutting = false; /* the rest of a chunk counts as lost and is sent again */
    job->budget  = core->cfg.credit;
    job->turn    = SKY_Migrate_FirstLane(migrations, job);
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
    job->from   = job->all_blocks ? ALL_DONE : 0;
    job->active = begin_lane(core, migrations, job);
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

/* A place for one more job, or NULL. */
static SKY_Migration_t *idle_job(SKY_Migrations_t *migrations)
{
    SKY_Migration_t *idle = NULL;

    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        idle = migrations->jobs[i].active ? idle : &migrations->jobs[i];
    }
    SKY_ASSERT(idle == NULL || idle->lanes == 0);
    SKY_ASSERT(idle == NULL || idle < &migrations->jobs[SKY_SERVICE_MIGRATIONS]); /* the last is the handover's */
    return idle;
}

static SKY_Status_t start_request(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt,
                                  SKY_Addr_t target)
{
    const uint32_t   asked_ms = pkt->deadline_ms != 0 ? pkt->deadline_ms : SKY_SERVICE_MIGRATION_MS;
    const uint32_t   limit_ms = asked_ms < SKY_SERVICE_MIGRATION_MAX_MS ? asked_ms : SKY_SERVICE_MIGRATION_MAX_MS;
    SKY_Migration_t *job      = idle_job(migrations);
    SKY_ASSERT(limit_ms >= 1);
    SKY_ASSERT(limit_ms <= SKY_SERVICE_MIGRATION_MAX_MS);

    if (job == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    prepare(core, migrations, job, target, now_us + (uint64_t)limit_ms * US_PER_MS);
    SKY_ASSERT(job->deadline_us > now_us);
    (void)memcpy(job->key, pkt->key, SKY_KEY_BYTES);
    job->keep       = (pkt->flags & SKY_FLAG_KEEP) != 0;
    job->all_blocks = is_all_blocks(pkt);
    job->tenant     = pkt->tenant;
    job->epoch      = pkt->epoch;
    SKY_Home_Share(core, pkt->epoch, target, &job->stride, &job->server);
    SKY_ASSERT(job->server < job->stride);
    return start(core, migrations, job);
}

/* What is here already and belongs here in a later row is to wait for it, as what is moved here: handover and scrub leave it. */
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

SKY_Status_t SKY_Migrate_All(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t target, uint64_t deadline_us,
                             uint32_t row, uint32_t stride, uint32_t server)
{
    SKY_Migration_t *job = &migrations->jobs[SKY_SERVICE_MIGRATIONS];
    SKY_ASSERT(stride >= 1);
    SKY_ASSERT(!SKY_Addr_Equal(target, core->cfg.self));

    prepare(core, migrations, job, target, deadline_us);
    job->all_blocks  = true;
    job->all_tenants = true;
    job->row         = row;
    job->stride      = stride;
    job->server      = server;
    SKY_ASSERT(server < stride);
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
    for (uint32_t i = SKY_Migrate_FirstLane(migrations, job); i < SKY_Migrate_LanesEnd(migrations, job); ++i)
    {
        migrations->lanes[i].push.unanswered = 0; /* the target is not silent, whatever it was asked about */
    }
    SKY_LetGo_Acknowledged(core, job, lane, &before);
    if (core->schedule != NULL && job == &migrations->jobs[SKY_SERVICE_MIGRATIONS] && lane->push.state == SKY_SHARE_REFUSED &&
        lane->push.last_status == SKY_STATUS_BAD_KEY && SKY_Addr_Equal(pkt->src, job->target))
    {
        SKY_LetGo_Refused(core, job, lane); /* the home's version counts */
    }
    follow_up(core, migrations, job, lane);
    SKY_ASSERT(job->active == (job->lanes > 0));
}

bool SKY_Migrate_Response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt)
{
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        SKY_Migration_t *job = &migrations->jobs[i];

        for (uint32_t at = SKY_Migrate_FirstLane(migrations, job); job->active && at < SKY_Migrate_LanesEnd(migrations, job);
             ++at)
        {
            SKY_Lane_t *lane = &migrations->lanes[at];

            /* Only the target says what it holds; why a packet did not get there may be said by any satellite on the way. */
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

/* Find the chunk that the request at hand is to carry. @return false: it was evicted or purged since the lane began, and maybe put
 * anew as one of a block with other lengths */
static bool find_chunk(const SKY_ServiceCore_t *core, SKY_Migration_t *job)
{
    const SKY_Packet_t *req   = &job->request;
    const uint32_t      block = SKY_Store_Find(core->store, req->tenant, req->key);
    SKY_BlockInfo_t     info;
    SKY_ASSERT(job->active);
    SKY_ASSERT(!job->cutting); /* the one before has gone whole */

    return SKY_Store_Block(core->store, block, &info) == SKY_STATUS_OK &&
           SKY_Store_Peek(core->store, block, req->chunk_id, &job->chunk) == SKY_STATUS_OK &&
           info.chunk_total == req->chunk_total && info.block_len == req->block_len && job->chunk.len == req->chunk_len;
}

/* Take the next chunk or query of a lane. @return false: nothing in this pull */
static bool take_of_lane(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane,
                         uint64_t now_us)
{
    SKY_Packet_t         *req = &job->request;
    const SKY_ShareCfg_t *cfg = &lane->push.cfg;
    SKY_ASSERT(lane->active);
    SKY_ASSERT(!job->cutting);

    switch (SKY_Push_Next(&lane->push, now_us, job->budget, req, lane->payload))
    {
        case SKY_PUSH_QUERY:
            SKY_ASSERT(job->turn < SKY_Migrate_LanesEnd(migrations, job));
            SKY_ASSERT(req->op == SKY_OP_HAS);
            job->asked |= 1ull << (job->turn - SKY_Migrate_FirstLane(migrations, job));
            return true;
        case SKY_PUSH_CHUNK:
            if (find_chunk(core, job))
            {
                SKY_ASSERT(req->op == SKY_OP_PUT);
                SKY_ASSERT(job->budget > 0);
                --job->budget;
                job->cutting     = true;
                job->part_offset = 0;
                return true;
            }
            /* Begin the lane anew with what is left. */
            SKY_Push_Stop(&lane->push, SKY_SHARE_DONE);
            if (begin_share(core, job, lane, cfg->tenant, cfg->key, cfg->base,
                            cfg->base + (cfg->count - 1u) * cfg->stride + 1u) == 0)
            {
                end_lane(job, lane);
            }
            return false;
        case SKY_PUSH_NOTHING:
        default:
            return false;
    }
}

/* Take the next chunk or query of a job: lane by lane, and while the window has room, of a new one. @return false: nothing in this
 * pull */
static bool take_next(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, uint64_t now_us)
{
    bool has_more = true;
    SKY_ASSERT(job->active);

    while (has_more)
    {
        for (; job->turn < SKY_Migrate_LanesEnd(migrations, job); ++job->turn)
        {
            SKY_Lane_t *lane = &migrations->lanes[job->turn];

            if (lane->active && (job->asked >> (job->turn - SKY_Migrate_FirstLane(migrations, job)) & 1u) == 0 &&
                take_of_lane(core, migrations, job, lane, now_us))
            {
                return true;
            }
        }
        has_more = job->budget > 0 && job->peer.outstanding < job->peer.window && begin_lane(core, migrations, job);
    }
    job->active = job->lanes > 0; /* without any there was room for one more, and nothing to begin it with */
    SKY_ASSERT(job->turn == SKY_Migrate_LanesEnd(migrations, job));
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
    return SKY_ServiceCore_Emit(core, now_us, req, crc16, out);
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

        for (uint32_t at = SKY_Migrate_FirstLane(migrations, job); job->active && at < SKY_Migrate_LanesEnd(migrations, job);
             ++at)
        {
            SKY_Lane_t *lane = &migrations->lanes[at];

            if (lane->active)
            {
                const uint64_t lane_us = SKY_Push_OnTime(&lane->push, now_us);

                follow_up(core, migrations, job, lane);
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
