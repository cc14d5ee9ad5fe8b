/**
 * @file
 * The hashtable service: see sky_service.h. One function per operation; each leaves a response to be pulled, or none.
 */
#include "sky_service.h"

#include <string.h>

#include "sky_service_gossip.h"
#include "sky_service_migrate.h"
#include "sky_service_scrub.h"
#include "sky_service_survey.h"

#define SEQ_COUNT_MASK 0x3FFFu
#define US_PER_MS      1000u

#if SKY_STATS_KVC_COUNT * 8u > SKY_SERVICE_SCRATCH_BYTES || SKY_LIMIT_PING_BYTES > SKY_SERVICE_SCRATCH_BYTES
#error "SKY_SERVICE_SCRATCH_BYTES is too small for the ICD"
#endif

static bool is_sound(const SKY_ServiceCfg_t *cfg, const SKY_Store_t *store)
{
    return SKY_Torus_Contains(&cfg->torus, cfg->self) && cfg->packet_bytes >= SKY_SERVICE_PACKET_MIN &&
           cfg->packet_bytes <= SKY_LIMIT_PACKET_BYTES && cfg->credit != 0 && cfg->credit <= SKY_LIMIT_CHUNK_SET &&
           (cfg->packet_bytes - SKY_RESPONSE_OVERHEAD) * SKY_LIMIT_FRAGMENTS >= store->cfg.slot_bytes;
}

bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random)
{
    if (!is_sound(cfg, store))
    {
        return false;
    }
    (void)memset(svc, 0, sizeof(*svc));
    svc->cfg             = *cfg;
    svc->store           = store;
    svc->started_us      = now_us;
    svc->next_request_id = random;
    return true;
}

bool SKY_Service_Configure(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg)
{
    if (!is_sound(cfg, svc->store) || !SKY_Addr_Equal(cfg->self, svc->cfg.self) || cfg->torus.planes != svc->cfg.torus.planes ||
        cfg->torus.slots != svc->cfg.torus.slots || cfg->torus.seam_cut != svc->cfg.torus.seam_cut)
    {
        return false;
    }
    svc->cfg = *cfg;
    return true;
}

bool SKY_Service_Emit(SKY_Service_t *svc, uint64_t now_us, SKY_Packet_t *pkt, const uint16_t *payload_crc16, SKY_Out_t *out)
{
    pkt->seq_count = svc->seq_count;
    svc->seq_count = (uint16_t)((svc->seq_count + 1u) & SEQ_COUNT_MASK);
    SKY_Packet_SetTime(pkt, now_us + svc->cfg.clock_offset_us);

    out->dst      = pkt->dst;
    out->gateway  = pkt->gateway;
    out->body     = pkt->payload;
    out->body_len = pkt->length;
    out->head_len = (uint32_t)SKY_Packet_EncodeAround(pkt, payload_crc16, out->head, out->tail);
    return out->head_len > 0;
}

/* ---- responses of one packet -------------------------------------------------------------------------------------- */

/* A response whose payload is the first @p length bytes of scratch. */
static void reply_with(SKY_Service_t *svc, const SKY_Packet_t *req, SKY_Status_t status, uint32_t length)
{
    SKY_Packet_Reply(req, svc->cfg.self, status, &svc->reply);
    svc->reply.credit  = (uint16_t)svc->cfg.credit;
    svc->reply.offset  = 0;
    svc->reply.length  = length;
    svc->reply.payload = svc->scratch;
    svc->stage         = SKY_SERVICE_REPLY;
}

static void refuse(SKY_Service_t *svc, const SKY_Packet_t *req, SKY_Status_t status)
{
    SKY_Service_CountError(svc, status);
    reply_with(svc, req, status, 0);
}

static void reply_with_set(SKY_Service_t *svc, const SKY_Packet_t *req, SKY_Status_t status, const SKY_ChunkSet_t *set)
{
    reply_with(svc, req, status, (uint32_t)SKY_ChunkSet_Encode(set, svc->scratch, sizeof(svc->scratch)));
    svc->reply.chunk_id = set->base;
}

/* What the block was declared as, as far as it is known here. */
static SKY_Status_t describe_block(SKY_Service_t *svc, uint32_t block)
{
    SKY_BlockInfo_t    info;
    const SKY_Status_t status = SKY_Store_Block(svc->store, block, &info);

    if (status == SKY_STATUS_OK)
    {
        svc->reply.chunk_total = info.chunk_total;
        svc->reply.block_len   = info.block_len;
        svc->reply.chunk_len   = info.chunk_len;
        svc->reply.epoch       = info.epoch;
    }
    return status;
}

static void put(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    const bool     is_nearer   = req->deadline_ms != 0 && req->deadline_ms < svc->cfg.part_lifetime_ms;
    const uint32_t lifetime_ms = is_nearer ? req->deadline_ms : svc->cfg.part_lifetime_ms;
    SKY_Status_t   status      = SKY_Service_MigrateGuard(svc, req, SKY_Service_MigrateGiven(svc, req), req->chunk_id);

    if (status == SKY_STATUS_OK)
    {
        status = SKY_Store_Put(svc->store, now_us + (uint64_t)lifetime_ms * US_PER_MS, req);
        SKY_Service_GossipEvicted(svc, now_us);
    }
    if (status != SKY_STATUS_OK)
    {
        refuse(svc, req, status);
        return;
    }
    ++svc->counters.puts;
    SKY_Service_HandoverPut(svc, now_us, req);
    if (req->src.plane != 0 && req->offset + req->length == req->chunk_len)
    {
        ++svc->counters.migrated_in;
    }
}

static void has_any(SKY_Service_t *svc, const SKY_Packet_t *req)
{
    const uint32_t block  = SKY_Store_Find(svc->store, req->tenant, req->key);
    const uint32_t lowest = SKY_Store_NextChunk(svc->store, block, 0);
    SKY_ChunkSet_t held;

    (void)SKY_ChunkSet_Init(&held, lowest == SKY_STORE_NONE ? req->chunk_id : lowest, 1, 1); /* a set of one is never too large */
    if (lowest != SKY_STORE_NONE)
    {
        SKY_ChunkSet_Add(&held, 0);
    }
    reply_with_set(svc, req, SKY_STATUS_OK, &held);
    svc->reply.status = describe_block(svc, block);
}

static void has(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    if ((req->flags & SKY_FLAG_ANY) != 0)
    {
        has_any(svc, req);
        return;
    }
    SKY_ChunkSet_t     held;
    const SKY_Status_t status = SKY_ChunkSet_Decode(req, &held);
    if (status != SKY_STATUS_OK)
    {
        refuse(svc, req, status);
        return;
    }
    const uint32_t block = SKY_Store_Find(svc->store, req->tenant, req->key);
    const uint32_t given = SKY_Service_MigrateGiven(svc, req);
    for (uint32_t i = SKY_ChunkSet_Next(&held, 0); i < held.count; i = SKY_ChunkSet_Next(&held, i + 1u))
    {
        const uint32_t id = SKY_ChunkSet_ChunkId(&held, i);

        if (!SKY_Store_Has(svc->store, block, id) || SKY_Service_MigrateGuard(svc, req, given, id) != SKY_STATUS_OK)
        {
            SKY_ChunkSet_Remove(&held, i);
        }
    }
    reply_with_set(svc, req, SKY_STATUS_OK, &held);
    svc->reply.epoch  = svc->handover.schedule != NULL ? SKY_Schedule_RowAt(svc->handover.schedule, now_us) : SKY_SCHEDULE_NONE;
    svc->reply.status = describe_block(svc, block); /* of one that is here the epoch is known */
}

static void purge(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    if ((req->flags & SKY_FLAG_GOSSIP) != 0)
    {
        SKY_Service_GossipHear(svc, now_us, req);
        return;
    }
    const uint32_t block = SKY_Store_Find(svc->store, req->tenant, req->key);

    reply_with(svc, req, SKY_STATUS_OK, 0);
    (void)describe_block(svc, block); /* of one that is not here the lengths stay 0 */
    svc->reply.chunk_total = SKY_Store_Purge(svc->store, req->tenant, req->key);
    svc->counters.purges += svc->reply.chunk_total;
}

static void migrate(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    const SKY_Status_t status = SKY_Service_MigrateRequest(svc, now_us, req);

    if (status != SKY_STATUS_OK)
    {
        refuse(svc, req, status);
        return;
    }
    reply_with(svc, req, SKY_STATUS_OK, 0);
}

static void ping(SKY_Service_t *svc, const SKY_Packet_t *req)
{
    if (req->length > SKY_LIMIT_PING_BYTES)
    {
        refuse(svc, req, SKY_STATUS_BAD_LENGTH);
        return;
    }
    if (req->length > 0)
    {
        (void)memcpy(svc->scratch, req->payload, req->length);
    }
    reply_with(svc, req, SKY_STATUS_OK, req->length);
}

static void stats(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    uint64_t counters[SKY_STATS_KVC_COUNT];

    SKY_Service_Stats(svc, now_us, counters);
    for (uint32_t i = 0; i < sizeof(counters); ++i)
    {
        svc->scratch[i] = (uint8_t)(counters[i / 8u] >> (56u - i % 8u * 8u) & 0xFFu);
    }
    reply_with(svc, req, SKY_STATUS_OK, sizeof(counters));
}

/* ---- GET ---------------------------------------------------------------------------------------------------------- */

/* Look for the next chunk of the burst that is here; note those that are not. @return false: the burst is over */
static bool get_seek(SKY_Service_t *svc)
{
    while (svc->burst_left > 0 && svc->set_index < svc->set.count)
    {
        const uint32_t id = SKY_ChunkSet_ChunkId(&svc->set, svc->set_index);
        const uint32_t at = svc->set_index;

        svc->set_index = SKY_ChunkSet_Next(&svc->set, at + 1u);
        if (SKY_Store_Get(svc->store, svc->block, id, &svc->chunk) == SKY_STATUS_OK)
        {
            --svc->burst_left;
            ++svc->counters.hits;
            svc->reply.chunk_id  = id;
            svc->reply.chunk_len = svc->chunk.len;
            svc->reply.chunk_crc = svc->chunk.crc32c;
            svc->part_offset     = 0;
            return true;
        }
        SKY_ChunkSet_Add(&svc->missing, at);
        ++svc->counters.misses;
    }
    return false;
}

static SKY_ServiceStage_t get_stage_after(const SKY_Service_t *svc)
{
    return SKY_ChunkSet_Next(&svc->missing, 0) < svc->missing.count ? SKY_SERVICE_MISSING : SKY_SERVICE_IDLE;
}

static void get(SKY_Service_t *svc, const SKY_Packet_t *req)
{
    SKY_Status_t status = SKY_ChunkSet_Decode(req, &svc->set);

    svc->set_index = 0;
    if (status == SKY_STATUS_OK)
    {
        svc->set_index = SKY_ChunkSet_Next(&svc->set, 0);
        if (svc->set_index == svc->set.count || req->credit == 0)
        {
            status = SKY_STATUS_BAD_CHUNK; /* asks for nothing */
        }
    }
    if (status != SKY_STATUS_OK)
    {
        refuse(svc, req, status);
        return;
    }
    ++svc->counters.gets;
    reply_with(svc, req, SKY_STATUS_OK, 0);
    svc->block = SKY_Store_Find(svc->store, req->tenant, req->key);
    (void)describe_block(svc, svc->block); /* what is not here shows chunk by chunk */
    svc->missing = svc->set;
    (void)memset(svc->missing.map, 0, sizeof(svc->missing.map));
    svc->burst_left = req->credit < svc->cfg.credit ? req->credit : svc->cfg.credit;
    svc->stage      = get_seek(svc) ? SKY_SERVICE_CHUNKS : SKY_SERVICE_MISSING;
}

/* The chunk at hand, or its next part. Whether it is the last of the burst shows only when the next has been looked for. */
static bool get_next_chunk(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out)
{
    const SKY_ChunkView_t chunk = svc->chunk;
    SKY_Packet_t         *reply = &svc->reply;

    svc->part_offset = SKY_Packet_CutPart(reply, chunk.data, svc->part_offset, svc->cfg.packet_bytes);
    if (svc->part_offset < chunk.len)
    {
        return SKY_Service_Emit(svc, now_us, reply, NULL, out);
    }
    SKY_Packet_t last = *reply;
    if (!get_seek(svc))
    {
        svc->stage = get_stage_after(svc);
        last.flags = svc->stage == SKY_SERVICE_IDLE ? SKY_FLAG_LAST : 0;
    }
    return SKY_Service_Emit(svc, now_us, &last, last.length == chunk.len ? &chunk.crc16_from_zero : NULL, out);
}

static bool get_next_missing(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t *reply = &svc->reply;

    reply->status    = SKY_STATUS_NOT_FOUND;
    reply->flags     = SKY_FLAG_LAST;
    reply->seq_flags = SKY_SEQ_WHOLE;
    reply->chunk_id  = svc->missing.base;
    reply->chunk_crc = 0;
    reply->offset    = 0;
    reply->length    = (uint32_t)SKY_ChunkSet_Encode(&svc->missing, svc->scratch, sizeof(svc->scratch));
    reply->payload   = svc->scratch;
    svc->stage       = SKY_SERVICE_IDLE;
    return SKY_Service_Emit(svc, now_us, reply, NULL, out);
}

/* ---- in and out --------------------------------------------------------------------------------------------------- */

static void serve(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    switch (req->op)
    {
        case SKY_OP_PUT:
            put(svc, now_us, req);
            break;
        case SKY_OP_GET:
            get(svc, req);
            break;
        case SKY_OP_HAS:
            has(svc, now_us, req);
            break;
        case SKY_OP_PURGE:
            purge(svc, now_us, req);
            break;
        case SKY_OP_MIGRATE:
            migrate(svc, now_us, req);
            break;
        case SKY_OP_PING:
            ping(svc, req);
            break;
        case SKY_OP_STATS:
            stats(svc, now_us, req);
            break;
        default:
            refuse(svc, req, SKY_STATUS_BAD_OP);
            break;
    }
}

void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt)
{
    svc->stage = SKY_SERVICE_IDLE;
    SKY_Service_MigratePull(svc);
    if (pkt->is_request)
    {
        ++svc->counters.requests;
        serve(svc, now_us, pkt);
    }
    else if (!SKY_Service_MigrateResponse(svc, now_us, pkt) && !SKY_Service_ScrubResponse(svc, now_us, pkt) &&
             !SKY_Service_SurveyResponse(svc, now_us, pkt))
    {
        ++svc->counters.unsolicited;
    }
}

bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out)
{
    switch (svc->stage)
    {
        case SKY_SERVICE_REPLY:
            svc->stage = SKY_SERVICE_IDLE;
            return SKY_Service_Emit(svc, now_us, &svc->reply, NULL, out);
        case SKY_SERVICE_CHUNKS:
            return get_next_chunk(svc, now_us, out);
        case SKY_SERVICE_MISSING:
            return get_next_missing(svc, now_us, out);
        case SKY_SERVICE_IDLE:
        default:
            return SKY_Service_MigrateNext(svc, now_us, out) || SKY_Service_GossipNext(svc, now_us, out) ||
                   SKY_Service_ScrubNext(svc, now_us, out) || SKY_Service_SurveyNext(svc, now_us, out);
    }
}

void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us)
{
    uint64_t next;

    svc->stage = SKY_SERVICE_IDLE;
    SKY_Service_MigratePull(svc);
    const uint64_t handover_us = SKY_Service_HandoverOnTime(svc, now_us);

    next = SKY_Service_MigrateOnTime(svc, now_us);
    next = handover_us < next ? handover_us : next;
    (void)SKY_Store_Expire(svc->store, now_us, SKY_SERVICE_EXPIRE_SLOTS); /* the store counts them */
    if (svc->store->counters.partial > 0 && next > now_us + SKY_SERVICE_EXPIRE_US)
    {
        next = now_us + SKY_SERVICE_EXPIRE_US;
    }
    const uint64_t scrub_us  = SKY_Service_ScrubOnTime(svc, now_us);
    const uint64_t survey_us = SKY_Service_SurveyOnTime(svc, now_us);

    next     = scrub_us < next ? scrub_us : next;
    *next_us = survey_us < next ? survey_us : next;
}

void SKY_Service_Unreachable(SKY_Service_t *svc, SKY_Addr_t dst)
{
    SKY_Service_MigrateUnreachable(svc, dst);
    SKY_Service_ScrubUnreachable(svc, dst);
    SKY_Service_SurveyUnreachable(svc, dst);
}

/* ---- counters ----------------------------------------------------------------------------------------------------- */

void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status)
{
    if (status <= SKY_STATUS_SHORT)
    {
        ++svc->counters.errors[status];
    }
}

void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out)
{
    const SKY_Store_t           *store    = svc->store;
    const SKY_ServiceCounters_t *c        = &svc->counters;
    const SKY_Schedule_t        *schedule = svc->handover.schedule;

    out[SKY_STATS_KVC_UPTIME_MS]       = (now_us - svc->started_us) / US_PER_MS;
    out[SKY_STATS_KVC_STORE_BYTES]     = (uint64_t)store->cfg.slot_count * store->cfg.slot_bytes;
    out[SKY_STATS_KVC_SLOT_BYTES]      = store->cfg.slot_bytes;
    out[SKY_STATS_KVC_SLOTS]           = store->cfg.slot_count;
    out[SKY_STATS_KVC_SLOTS_USED]      = store->counters.slots_used;
    out[SKY_STATS_KVC_BLOCKS]          = store->counters.blocks;
    out[SKY_STATS_KVC_BYTES]           = store->counters.bytes;
    out[SKY_STATS_KVC_PUTS]            = c->puts;
    out[SKY_STATS_KVC_GETS]            = c->gets;
    out[SKY_STATS_KVC_HITS]            = c->hits;
    out[SKY_STATS_KVC_MISSES]          = c->misses;
    out[SKY_STATS_KVC_EVICTIONS]       = store->counters.evicted_chunks;
    out[SKY_STATS_KVC_PURGES]          = c->purges;
    out[SKY_STATS_KVC_REQUESTS]        = c->requests;
    out[SKY_STATS_KVC_MIGRATED_OUT]    = c->migrated_out;
    out[SKY_STATS_KVC_MIGRATED_IN]     = c->migrated_in;
    out[SKY_STATS_KVC_PARTIAL_EXPIRED] = store->counters.expired_partial;
    out[SKY_STATS_KVC_ERR_VERSION]     = c->errors[SKY_STATUS_BAD_VERSION];
    out[SKY_STATS_KVC_ERR_OP]          = c->errors[SKY_STATUS_BAD_OP];
    out[SKY_STATS_KVC_ERR_LENGTH]      = c->errors[SKY_STATUS_BAD_LENGTH];
    out[SKY_STATS_KVC_ERR_CHUNK]       = c->errors[SKY_STATUS_BAD_CHUNK];
    out[SKY_STATS_KVC_ERR_CRC]         = c->errors[SKY_STATUS_BAD_CRC];
    out[SKY_STATS_KVC_ERR_TOO_LARGE]   = c->errors[SKY_STATUS_TOO_LARGE];
    out[SKY_STATS_KVC_ERR_STORE_FULL]  = c->errors[SKY_STATUS_STORE_FULL];
    out[SKY_STATS_KVC_ERR_KEY]         = c->errors[SKY_STATUS_BAD_KEY];
    out[SKY_STATS_KVC_GOSSIP_TX]       = c->gossip_tx;
    out[SKY_STATS_KVC_GOSSIP_PURGED]   = c->gossip_purged;
    out[SKY_STATS_KVC_HANDOVERS]       = c->handovers;
    out[SKY_STATS_KVC_ROW]             = schedule != NULL ? SKY_Schedule_RowAt(schedule, now_us) : SKY_SCHEDULE_NONE;
    out[SKY_STATS_KVC_ROWS]            = schedule != NULL ? schedule->count : 0;
    out[SKY_STATS_KVC_SCRUBBED]        = c->scrubbed;
    out[SKY_STATS_KVC_HANDOVER_LEFT]   = SKY_Service_HandoverLeft(svc, now_us);
    out[SKY_STATS_KVC_HANDOVER_MS]     = SKY_Service_HandoverMs(svc, now_us);
}

void SKY_Service_ResetCounters(SKY_Service_t *svc)
{
    (void)memset(&svc->counters, 0, sizeof(svc->counters));
    svc->store->counters.evicted_blocks  = 0;
    svc->store->counters.evicted_chunks  = 0;
    svc->store->counters.expired_partial = 0;
}
