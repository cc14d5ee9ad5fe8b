/**
 * @file
 * Migrations: chunks of this satellite go to another, as PUTs with HAS for acknowledgement (sky_push.c); what is acknowledged is
 * forgotten here unless the request said to keep it. MIGRATE asks for one, a command or the schedule for one of everything.
 *
 * A job walks over blocks, and over each block in windows of SKY_LIMIT_CHUNK_SET chunk ids. What is held is looked up when a
 * window begins and again when a chunk is sent, so chunks may come and go meanwhile.
 */
#include "sky_service_migrate.h"

#include <string.h>

#define US_PER_MS      1000u
#define ALL_DONE       UINT32_MAX /* no chunk has this id */
#define RTO_INITIAL_US 250000u    /* several hops out and back */
#define RTO_MIN_US     5000u
#define RTO_MAX_US     4000000u

static SKY_Addr_t load_addr(const uint8_t *payload)
{
    const SKY_Addr_t addr = {(uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_PLANE] << 8) | payload[SKY_MIGRATE_OFF_PLANE + 1u]),
                             (uint16_t)(((uint32_t)payload[SKY_MIGRATE_OFF_SLOT] << 8) | payload[SKY_MIGRATE_OFF_SLOT + 1u])};

    return addr;
}

/* ---- what to move ------------------------------------------------------------------------------------------------- */

/* Lowest chunk from job->from on that is held and to go, or SKY_STORE_NONE. */
static uint32_t lowest_to_go(const SKY_Service_t *svc, const SKY_Migration_t *job, uint32_t block)
{
    uint32_t lowest = SKY_STORE_NONE;
    uint32_t cursor = 0;
    uint32_t id     = 0;

    while (SKY_Store_EachChunk(svc->store, block, &cursor, &id))
    {
        if (id >= job->from && id < lowest && id % job->stride == job->server)
        {
            lowest = id;
        }
    }
    return lowest;
}

/* Begin with the chunks from job->from on that are held of the block at hand. @return false: there are none */
static bool begin_window(SKY_Service_t *svc, SKY_Migration_t *job)
{
    SKY_BlockInfo_t info;
    SKY_ShareCfg_t  cfg;

    const uint32_t block = SKY_Store_Find(svc->store, job->tenant, job->key);
    if (SKY_Store_Block(svc->store, block, &info) != SKY_STATUS_OK)
    {
        return false;
    }
    const uint32_t lowest = lowest_to_go(svc, job, block);
    if (lowest == SKY_STORE_NONE)
    {
        return false;
    }
    (void)memset(&cfg, 0, sizeof(cfg));
    (void)memcpy(cfg.key, job->key, SKY_KEY_BYTES);
    cfg.self         = svc->cfg.self;
    cfg.tenant       = job->tenant;
    cfg.epoch        = job->epoch != 0 ? job->epoch : info.epoch;
    cfg.epoch        = cfg.epoch <= job->row ? cfg.epoch : 0; /* it lies beside what waits, and waits for nothing */
    cfg.chunk_total  = info.chunk_total;
    cfg.chunk_len    = info.chunk_len;
    cfg.block_len    = info.block_len;
    cfg.base         = lowest;
    cfg.stride       = job->stride;
    cfg.count        = (info.chunk_total - lowest - 1u) / job->stride + 1u;
    cfg.count        = cfg.count < SKY_LIMIT_CHUNK_SET ? cfg.count : SKY_LIMIT_CHUNK_SET;
    cfg.packet_bytes = svc->cfg.packet_bytes;
    cfg.deadline_us  = job->deadline_us;
    cfg.request_id   = svc->next_request_id;
    svc->next_request_id += SKY_SERVICE_REQUEST_IDS;

    const bool good = SKY_Push_Init(&job->push, &cfg, &job->peer);
    for (uint32_t i = 0; i < cfg.count; ++i)
    {
        if (!SKY_Store_Has(svc->store, block, lowest + i * job->stride))
        {
            SKY_Push_Skip(&job->push, i);
        }
    }
    job->from = lowest + (cfg.count - 1u) * job->stride + 1u;
    return good;
}

static bool begin_next_block(const SKY_Service_t *svc, SKY_Migration_t *job)
{
    SKY_BlockInfo_t info;

    while (job->all_blocks && SKY_Store_NextBlock(svc->store, &job->cursor, &info))
    {
        if ((job->all_tenants || info.tenant == job->tenant) &&
            (info.epoch <= job->row || !SKY_Service_HandoverWaits(svc, info.epoch, job->server)))
        {
            job->tenant = info.tenant;
            (void)memcpy(job->key, info.key, SKY_KEY_BYTES);
            job->from = 0;
            return true;
        }
    }
    return false;
}

/* The next window of this block, or of the next block that has one; else the job has ended. */
static void go_on(SKY_Service_t *svc, SKY_Migration_t *job)
{
    job->cutting = false;
    while (!begin_window(svc, job))
    {
        if (!begin_next_block(svc, job))
        {
            job->active = false;
            return;
        }
    }
}

/* After anything that may have ended the share at hand. */
static void follow_up(SKY_Service_t *svc, SKY_Migration_t *job)
{
    switch (job->push.state)
    {
        case SKY_SHARE_RUNNING:
            job->active = job->push.unanswered < SKY_SERVICE_MIGRATION_TRIES;
            break;
        case SKY_SHARE_EXPIRED:
            job->active = false;
            break;
        case SKY_SHARE_DONE:
            go_on(svc, job);
            break;
        case SKY_SHARE_MISS:
        case SKY_SHARE_REFUSED:
        default:
            if (job->push.last_status == SKY_STATUS_UNREACHABLE)
            {
                job->active = false; /* nor is any other block's way there */
                break;
            }
            job->from = ALL_DONE; /* the target does not take this block; it stays here */
            go_on(svc, job);
            break;
    }
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
    return job->active && !job->all_tenants && job->tenant == pkt->tenant && SKY_Addr_Equal(job->target, target) &&
           job->epoch == pkt->epoch && job->all_blocks == is_all_blocks(pkt) &&
           (job->all_blocks || memcmp(job->key, pkt->key, SKY_KEY_BYTES) == 0);
}

static void prepare(const SKY_Service_t *svc, SKY_Migration_t *job, SKY_Addr_t target, uint64_t deadline_us)
{
    const SKY_PeerCfg_t peer = {.window_initial = svc->cfg.credit,
                                .window_max     = svc->cfg.credit,
                                .burst          = svc->cfg.credit,
                                .rto_initial_us = RTO_INITIAL_US,
                                .rto_min_us     = RTO_MIN_US,
                                .rto_max_us     = RTO_MAX_US};

    (void)memset(job, 0, sizeof(*job));
    job->stride      = 1;
    job->row         = UINT32_MAX;
    job->target      = target;
    job->deadline_us = deadline_us;
    SKY_Peer_Init(&job->peer, &peer, target);
}

static SKY_Status_t start(SKY_Service_t *svc, SKY_Migration_t *job)
{
    job->active = true;
    job->from   = job->all_blocks ? ALL_DONE : 0;
    go_on(svc, job);
    if (!job->active)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    return SKY_STATUS_OK;
}

static bool can_go_to(const SKY_Service_t *svc, SKY_Addr_t target)
{
    return SKY_Torus_Contains(&svc->cfg.torus, target) && !SKY_Addr_Equal(target, svc->cfg.self);
}

/* A place for one more job, or NULL. */
static SKY_Migration_t *idle_job(SKY_Service_t *svc)
{
    SKY_Migration_t *idle = NULL;

    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        idle = svc->migrations[i].active ? idle : &svc->migrations[i];
    }
    return idle;
}

static SKY_Status_t start_request(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Addr_t target)
{
    const uint32_t   asked_ms = pkt->deadline_ms != 0 ? pkt->deadline_ms : SKY_SERVICE_MIGRATION_MS;
    const uint32_t   limit_ms = asked_ms < SKY_SERVICE_MIGRATION_MAX_MS ? asked_ms : SKY_SERVICE_MIGRATION_MAX_MS;
    SKY_Migration_t *job      = idle_job(svc);

    if (job == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    prepare(svc, job, target, now_us + (uint64_t)limit_ms * US_PER_MS);
    (void)memcpy(job->key, pkt->key, SKY_KEY_BYTES);
    job->keep       = (pkt->flags & SKY_FLAG_KEEP) != 0;
    job->all_blocks = is_all_blocks(pkt);
    job->tenant     = pkt->tenant;
    job->epoch      = pkt->epoch;
    SKY_Service_HandoverShare(svc, pkt->epoch, target, &job->stride, &job->server);
    return start(svc, job);
}

/* What is here already and belongs here in a later row is to wait for it, as what is moved here: handover and scrub leave it. */
static SKY_Status_t stay(SKY_Service_t *svc, const SKY_Packet_t *pkt)
{
    const uint32_t block = SKY_Store_Find(svc->store, pkt->tenant, pkt->key);

    if (block == SKY_STORE_NONE)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    SKY_Store_RaiseEpoch(svc->store, block, pkt->epoch);
    return SKY_STATUS_OK;
}

SKY_Status_t SKY_Service_MigrateRequest(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (pkt->length != SKY_MIGRATE_BYTES)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    const SKY_Addr_t target = load_addr(pkt->payload);
    if (SKY_Addr_Equal(target, svc->cfg.self) && pkt->epoch != SKY_SCHEDULE_NONE && !is_all_blocks(pkt))
    {
        return stay(svc, pkt);
    }
    if (!can_go_to(svc, target))
    {
        return SKY_STATUS_BAD_ADDRESS;
    }
    if (is_all_blocks(pkt) && pkt->src.plane == 0 && !svc->cfg.migrate_all_from_ground)
    {
        return SKY_STATUS_REFUSED;
    }
    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        if (is_same_job(&svc->migrations[i], pkt, target))
        {
            return SKY_STATUS_OK;
        }
    }
    return start_request(svc, now_us, pkt, target);
}

SKY_Status_t SKY_Service_MigrateAll(SKY_Service_t *svc, SKY_Migration_t *job, SKY_Addr_t target, uint64_t deadline_us,
                                    uint32_t row, uint32_t stride, uint32_t server)
{
    prepare(svc, job, target, deadline_us);
    job->all_blocks  = true;
    job->all_tenants = true;
    job->row         = row;
    job->stride      = stride;
    job->server      = server;
    return start(svc, job);
}

SKY_Status_t SKY_Service_Evacuate(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t target)
{
    const bool stays = SKY_Addr_Equal(target, svc->cfg.self);
    bool       runs  = false;

    if (!stays && !can_go_to(svc, target))
    {
        return SKY_STATUS_BAD_ADDRESS;
    }
    if (svc->handover.schedule != NULL)
    {
        return SKY_STATUS_REFUSED;
    }
    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        SKY_Migration_t *job = &svc->migrations[i];

        if (job->active && job->all_tenants)
        {
            runs        = SKY_Addr_Equal(job->target, target);
            job->active = runs; /* of orders the last one counts: there is one such job at most */
        }
    }
    if (stays || runs)
    {
        return SKY_STATUS_OK;
    }
    SKY_Migration_t *job = idle_job(svc);
    if (job == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    return SKY_Service_MigrateAll(svc, job, target, now_us + (uint64_t)SKY_SERVICE_MIGRATION_MAX_MS * US_PER_MS, UINT32_MAX - 1u,
                                  1, 0); /* all but what never moves */
}

static bool is_before(SKY_Addr_t a, SKY_Addr_t b)
{
    return a.plane < b.plane || (a.plane == b.plane && a.slot < b.slot);
}

SKY_Status_t SKY_Service_MigrateGuard(const SKY_Service_t *svc, const SKY_Packet_t *req, uint32_t chunk_id)
{
    SKY_Status_t status = SKY_STATUS_OK;

    for (uint32_t i = 0; i < SKY_SERVICE_JOBS && req->src.plane != 0; ++i)
    {
        const SKY_Migration_t *job = &svc->migrations[i];

        if (job->active && !job->keep && job->tenant == req->tenant && chunk_id % job->stride == job->server &&
            memcmp(job->key, req->key, SKY_KEY_BYTES) == 0)
        {
            if (SKY_Addr_Equal(job->target, req->src) && is_before(svc->cfg.self, req->src))
            {
                return SKY_STATUS_REFUSED;
            }
            status = SKY_STATUS_BUSY;
        }
    }
    return status;
}

/* Count the chunks that were acknowledged since @p before, and forget them unless they are to be kept. */
static void let_go(SKY_Service_t *svc, const SKY_Migration_t *job, const SKY_ChunkSet_t *before)
{
    for (uint32_t i = SKY_ChunkSet_Next(before, 0); i < before->count; i = SKY_ChunkSet_Next(before, i + 1u))
    {
        if (!SKY_ChunkSet_Has(&job->push.unacked, i))
        {
            ++svc->counters.migrated_out;
            if (!job->keep)
            {
                (void)SKY_Store_Drop(svc->store, job->tenant, job->key, SKY_ChunkSet_ChunkId(before, i)); /* may be evicted */
            }
        }
    }
}

bool SKY_Service_MigrateResponse(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt)
{
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        SKY_Migration_t *job = &svc->migrations[i];

        /* Only the target says what it holds; why a packet did not get there may be said by any satellite on the way. */
        if (job->active && SKY_ShareCfg_Owns(&job->push.cfg, pkt) &&
            (pkt->status != SKY_STATUS_OK || SKY_Addr_Equal(pkt->src, job->target)))
        {
            const SKY_ChunkSet_t before = job->push.unacked;

            SKY_Push_OnPacket(&job->push, now_us, pkt);
            let_go(svc, job, &before);
            follow_up(svc, job);
            return true;
        }
    }
    return false;
}

/* ---- what to send ------------------------------------------------------------------------------------------------- */

void SKY_Service_MigratePull(SKY_Service_t *svc)
{
    svc->pulled = 0;
    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        svc->migrations[i].asked   = false;
        svc->migrations[i].cutting = false; /* the rest of a chunk counts as lost and is sent again */
    }
}

/* Take the next chunk or query of a job. @return false: nothing in this pull */
static bool take_next(SKY_Service_t *svc, SKY_Migration_t *job, uint64_t now_us)
{
    SKY_Packet_t *req = &job->request;

    switch (SKY_Push_Next(&job->push, now_us, svc->cfg.credit, req, job->payload))
    {
        case SKY_PUSH_QUERY:
            job->asked = true;
            return true;
        case SKY_PUSH_CHUNK:
            if (SKY_Store_Peek(svc->store, SKY_Store_Find(svc->store, req->tenant, req->key), req->chunk_id, &job->chunk) ==
                SKY_STATUS_OK)
            {
                job->cutting     = true;
                job->part_offset = 0;
                return true;
            }
            /* Evicted or purged since the window began: begin it anew with what is left. */
            SKY_Push_Stop(&job->push, SKY_SHARE_DONE);
            job->from = job->push.cfg.base;
            go_on(svc, job);
            return false;
        case SKY_PUSH_NOTHING:
        default:
            return false;
    }
}

static bool job_next(SKY_Service_t *svc, SKY_Migration_t *job, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t   *req   = &job->request;
    const uint16_t *crc16 = NULL;

    if (!job->active || job->asked || (!job->cutting && !take_next(svc, job, now_us)))
    {
        return false;
    }
    if (job->cutting)
    {
        req->chunk_crc   = job->chunk.crc32c;
        job->part_offset = SKY_Packet_CutPart(req, job->chunk.data, job->part_offset, svc->cfg.packet_bytes);
        job->cutting     = job->part_offset < job->chunk.len;
        crc16            = req->length == job->chunk.len ? &job->chunk.crc16_from_zero : NULL;
    }
    return SKY_Service_Emit(svc, now_us, req, crc16, out);
}

bool SKY_Service_MigrateNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out)
{
    while (svc->pulled < SKY_SERVICE_JOBS)
    {
        if (job_next(svc, &svc->migrations[svc->pulled], now_us, out))
        {
            return true;
        }
        ++svc->pulled;
    }
    return false;
}

uint64_t SKY_Service_MigrateOnTime(SKY_Service_t *svc, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint32_t i = 0; i < SKY_SERVICE_JOBS; ++i)
    {
        SKY_Migration_t *job = &svc->migrations[i];

        if (job->active)
        {
            /* A timer that starts in the pull to come runs for at least the shortest time-out. */
            const uint64_t latest_us = now_us + RTO_MIN_US;
            const uint64_t job_us    = SKY_Push_OnTime(&job->push, now_us);

            follow_up(svc, job);
            next_us = job_us < next_us ? job_us : next_us;
            next_us = latest_us < next_us ? latest_us : next_us;
        }
    }
    return next_us;
}
