/**
 * @file
 * Requests and their answers: one function per operation. Each leaves an answer to be pulled, or none.
 */
#include "sky_service_answer.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_gossip.h"
#include "sky_service_guard.h"
#include "sky_service_handover.h"
#include "sky_service_hints.h"
#include "sky_service_migrate.h"
#include "sky_service_stats.h"

#define US_PER_MS     1000u
#define COUNTER_BYTES 8u

#if SKY_STATS_KVC_COUNT * COUNTER_BYTES > SKY_SERVICE_SCRATCH_BYTES || SKY_LIMIT_PING_BYTES > SKY_SERVICE_SCRATCH_BYTES || \
    SKY_CHUNKSET_MAX_BYTES > SKY_STATS_KVC_COUNT * COUNTER_BYTES
#error "SKY_SERVICE_SCRATCH_BYTES or SKY_SERVICE_PACKET_MIN is too small for the ICD"
#endif

/* ---- responses of one packet -------------------------------------------------------------------------------------- */

/* Make a response whose payload is the first @p length bytes of scratch. */
static void reply_with(const SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req, SKY_Status_t status,
                       uint32_t length)
{
    SKY_ASSERT(length <= sizeof(answer->scratch));
    SKY_ASSERT(req->is_request);                  /* a response is never answered */
    SKY_ASSERT(answer->stage == SKY_ANSWER_IDLE); /* there is one answer at a time */
    SKY_ASSERT(core->cfg.credit <= SKY_LIMIT_CHUNK_SET);
    SKY_Packet_Reply(req, core->cfg.self, status, &answer->reply);
    answer->reply.word    = core->word;
    answer->reply.credit  = (uint16_t)core->cfg.credit;
    answer->reply.offset  = 0;
    answer->reply.length  = length;
    answer->reply.payload = answer->scratch;
    answer->stage         = SKY_ANSWER_REPLY;
}

static void refuse(SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT);
    SKY_ServiceCore_CountError(core, status);
    reply_with(core, answer, req, status, 0);
}

static void reply_with_set(const SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req, SKY_Status_t status,
                           const SKY_ChunkSet_t *set)
{
    SKY_ASSERT(set->count >= 1);
    reply_with(core, answer, req, status, (uint32_t)SKY_ChunkSet_Encode(set, answer->scratch, sizeof(answer->scratch)));
    answer->reply.chunk_id = set->base;
    SKY_ASSERT(answer->reply.length > 0); /* scratch is large enough for every set */
    SKY_ASSERT(answer->stage == SKY_ANSWER_REPLY);
}

/* Describe the block in the answer, as far as it is known here. */
static SKY_Status_t describe_block(const SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint32_t block)
{
    SKY_BlockInfo_t    info;
    const SKY_Status_t status = SKY_Store_Block(core->store, block, &info);

    if (status == SKY_STATUS_OK)
    {
        SKY_Stripe_ToPacket(&info.stripe, &answer->reply);
        answer->reply.epoch         = info.epoch;
        answer->reply.block_version = info.version;
        answer->reply.content       = info.content;
        answer->reply.track         = info.track;
        SKY_ASSERT(info.held > 0);
        SKY_ASSERT(info.stripe.chunk_len <= core->store->cfg.slot_bytes);
        SKY_ASSERT(info.held <= core->store->counters.chunks);
    }
    return status;
}

/* Tell the neighbours of the blocks that the PUT at hand has evicted. */
static void tell_evicted(SKY_Service_t *svc, uint64_t now_us)
{
    const SKY_Store_t *store = svc->core.store;
    SKY_ASSERT(store->evicted_count <= SKY_STORE_EVICTS);
    SKY_ASSERT(store->evicted_count <= store->counters.evicted_blocks);

    /* With parity the other shares may suffice. Chunks to be handed over may be at their new places already, and the block whole. Then
     * the neighbours are not told. */
    for (uint32_t i = 0; i < store->evicted_count; ++i)
    {
        const SKY_BlockInfo_t *evicted = &store->evicted[i];

        if (evicted->held > 0 && evicted->stripe.code_m == 0 &&
            SKY_Handover_Left(&svc->core, &svc->migrations, &svc->handover, now_us) == 0)
        {
            SKY_Gossip_Begin(&svc->core, &svc->gossip, now_us, evicted);
        }
    }
}

/* Refuse a PUT, and say which version and content is held instead, even if only parts of it are. */
static void refuse_put(SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req, SKY_Status_t status)
{
    const uint32_t block = SKY_Store_Find(core->store, req->tenant, req->key);

    refuse(core, answer, req, status);
    if (block != SKY_STORE_NONE)
    {
        SKY_Store_Instance(core->store, block, &answer->reply.block_version, &answer->reply.content);
    }
    SKY_ASSERT(status != SKY_STATUS_OLD_VERSION || answer->reply.block_version > req->block_version);
}

static void put(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_ServiceCore_t *core        = &svc->core;
    const bool         is_nearer   = req->deadline_ms != 0 && req->deadline_ms < core->cfg.part_lifetime_ms;
    const uint32_t     lifetime_ms = is_nearer ? req->deadline_ms : core->cfg.part_lifetime_ms;
    const uint32_t     given       = SKY_Guard_Given(&svc->migrations, req);
    SKY_Status_t       status      = SKY_Addr_Equal(req->home, core->cfg.self) /* nobody stands in for itself */
                                         ? SKY_STATUS_BAD_ADDRESS
                                         : SKY_Guard_Check(core, &svc->migrations, req, given, req->chunk_total, req->chunk_id);

    SKY_ASSERT(lifetime_ms <= core->cfg.part_lifetime_ms);
    SKY_ASSERT(given >> SKY_SERVICE_JOBS == 0);
    if (status == SKY_STATUS_OK)
    {
        status = SKY_Store_Put(core->store, now_us + (uint64_t)lifetime_ms * US_PER_MS, req);
        tell_evicted(svc, now_us);
    }
    if (status != SKY_STATUS_OK)
    {
        refuse_put(core, &svc->answer, req, status);
        return;
    }
    SKY_ASSERT(core->store->counters.blocks > 0);
    SKY_ASSERT(svc->answer.stage == SKY_ANSWER_IDLE); /* a PUT that succeeds is not answered */
    ++core->counters.puts;
    SKY_Handover_Put(core, &svc->handover, now_us, req);
    if (req->src.plane != 0 && req->offset + req->length == req->chunk_len)
    {
        ++core->counters.migrated_in;
    }
}

static void has_any(const SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req)
{
    const uint32_t block  = SKY_Store_Find(core->store, req->tenant, req->key);
    const uint32_t lowest = SKY_Store_NextChunk(core->store, block, 0);
    SKY_ChunkSet_t held;
    SKY_ASSERT(block != SKY_STORE_NONE || lowest == SKY_STORE_NONE);
    SKY_ASSERT(answer->stage == SKY_ANSWER_IDLE);

    (void)SKY_ChunkSet_Init(&held, lowest == SKY_STORE_NONE ? req->chunk_id : lowest, 1, 1); /* one chunk is never too many */
    if (lowest != SKY_STORE_NONE)
    {
        SKY_ChunkSet_Add(&held, 0);
    }
    reply_with_set(core, answer, req, SKY_STATUS_OK, &held);
    answer->reply.status = describe_block(core, answer, block);
}

static void has(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_ServiceCore_t *core   = &svc->core;
    SKY_Answer_t      *answer = &svc->answer;

    if ((req->flags & SKY_FLAG_USE) != 0)
    {
        SKY_Store_Use(core->store, SKY_Store_FindInstance(core->store, req->tenant, req->key, req->block_version, req->content));
    }
    if ((req->flags & SKY_FLAG_ANY) != 0)
    {
        has_any(core, answer, req);
        return;
    }
    if ((req->flags & SKY_FLAG_USE) != 0)
    {
        return; /* who wants to know asks for any chunk */
    }
    SKY_ChunkSet_t     held;
    const SKY_Status_t status = SKY_ChunkSet_Decode(req, &held);
    if (status != SKY_STATUS_OK)
    {
        refuse(core, answer, req, status);
        return;
    }
    const uint32_t  block = SKY_Store_Find(core->store, req->tenant, req->key);
    const uint32_t  given = SKY_Guard_Given(&svc->migrations, req);
    SKY_BlockInfo_t info  = {.held = 0};

    (void)SKY_Store_Block(core->store, block, &info); /* of a block that is not here no chunk is looked at */
    SKY_ASSERT(given >> SKY_SERVICE_JOBS == 0);
    for (uint32_t i = SKY_ChunkSet_Next(&held, 0); i < held.count; i = SKY_ChunkSet_Next(&held, i + 1u))
    {
        const uint32_t id = SKY_ChunkSet_ChunkId(&held, i);

        if (!SKY_Store_Has(core->store, block, id) ||
            SKY_Guard_Check(core, &svc->migrations, req, given, info.stripe.chunk_total, id) != SKY_STATUS_OK)
        {
            SKY_ChunkSet_Remove(&held, i);
        }
    }
    reply_with_set(core, answer, req, SKY_STATUS_OK, &held);
    answer->reply.epoch  = core->schedule != NULL ? SKY_Schedule_RowAt(core->schedule, now_us) : SKY_SCHEDULE_NONE;
    answer->reply.status = describe_block(core, answer, block); /* a block that is here has a known epoch */
    SKY_ASSERT(held.count <= SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(answer->stage == SKY_ANSWER_REPLY);
}

static void purge(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_ServiceCore_t *core   = &svc->core;
    SKY_Answer_t      *answer = &svc->answer;

    if ((req->flags & SKY_FLAG_GOSSIP) != 0)
    {
        SKY_Gossip_Hear(core, &svc->gossip, now_us, req);
        return;
    }
    const uint32_t          block  = SKY_Store_Find(core->store, req->tenant, req->key);
    const SKY_StoreBounds_t bounds = {req->block_version, req->content, req->epoch};

    reply_with(core, answer, req, SKY_STATUS_OK, 0);
    answer->reply.epoch = 0;
    (void)describe_block(core, answer, block); /* the lengths of a block that is not here stay 0 */
    answer->reply.chunk_total = SKY_Store_Purge(core->store, req->tenant, req->key, &bounds);
    if (answer->reply.chunk_total == 0) /* nothing was purged: a block that is spared shows by its version, content and epoch */
    {
        answer->reply.block_len = 0;
        answer->reply.chunk_len = 0;
    }
    SKY_ASSERT(block != SKY_STORE_NONE || answer->reply.chunk_total == 0);
    SKY_ASSERT(answer->reply.chunk_total == 0 || SKY_Store_Find(core->store, req->tenant, req->key) == SKY_STORE_NONE);
    core->counters.purges += answer->reply.chunk_total;
}

static void migrate(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    const SKY_Status_t status = SKY_Migrate_Request(&svc->core, &svc->migrations, now_us, req);

    if (status != SKY_STATUS_OK)
    {
        refuse(&svc->core, &svc->answer, req, status);
        return;
    }
    reply_with(&svc->core, &svc->answer, req, SKY_STATUS_OK, 0);
    SKY_ASSERT(svc->answer.stage == SKY_ANSWER_REPLY);
}

/* Return how many chunks are here that belong to a satellite. If some do, and no schedule brings them, they go now. */
static uint32_t owed_to(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t satellite)
{
    const SKY_ServiceCore_t *core = &svc->core;
    SKY_ASSERT(satellite.plane != 0);

    if (SKY_Handover_Moves(core))
    {
        return SKY_Handover_Owed(core, &svc->migrations, &svc->handover, now_us, satellite);
    }
    const uint32_t owed = SKY_Hints_Owed(core, satellite);
    SKY_ASSERT(!SKY_Handover_Moves(core));

    if (owed > 0)
    {
        SKY_Hints_Wake(&svc->hints, now_us, satellite);
    }
    SKY_ASSERT(owed <= core->store->counters.hinted);
    return owed;
}

static void ping(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_ServiceCore_t *core   = &svc->core;
    SKY_Answer_t      *answer = &svc->answer;

    if (req->length > SKY_LIMIT_PING_BYTES)
    {
        refuse(core, answer, req, SKY_STATUS_BAD_LENGTH);
        return;
    }
    if (req->length > 0)
    {
        (void)memcpy(answer->scratch, req->payload, req->length);
    }
    reply_with(core, answer, req, SKY_STATUS_OK, req->length);
    if (req->src.plane != 0)
    {
        answer->reply.epoch       = core->schedule != NULL ? SKY_Schedule_RowAt(core->schedule, now_us) : SKY_SCHEDULE_NONE;
        answer->reply.chunk_total = owed_to(svc, now_us, req->src);
    }
    SKY_ASSERT(answer->reply.length == req->length);
}

static void put_counters(uint8_t *bytes, const uint64_t *counters, uint32_t count)
{
    SKY_ASSERT(count >= 1);
    SKY_ASSERT(count <= SKY_STATS_KVC_COUNT);
    for (uint32_t i = 0; i < count * COUNTER_BYTES; ++i)
    {
        bytes[i] = (uint8_t)(counters[i / COUNTER_BYTES] >> (56u - i % COUNTER_BYTES * 8u) & 0xFFu);
    }
}

/* Answer with the counters. If the request has a chunk id, it is the number of the first record of tenants that is to follow. */
static void stats(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_Answer_t  *answer = &svc->answer;
    const uint32_t room   = svc->core.cfg.packet_bytes - SKY_RESPONSE_OVERHEAD;
    const uint32_t most   = room < sizeof(answer->scratch) ? room : (uint32_t)sizeof(answer->scratch);
    uint32_t       length = SKY_STATS_KVC_COUNT * COUNTER_BYTES;
    uint64_t       counters[SKY_STATS_KVC_COUNT];

    SKY_ASSERT(length <= most); /* SKY_SERVICE_PACKET_MIN */
    SKY_Stats_Collect(svc, now_us, counters);
    put_counters(answer->scratch, counters, SKY_STATS_KVC_COUNT);
    for (uint32_t row = req->chunk_id - 1u; req->chunk_id > 0 && length + SKY_STATS_TENANT_COUNT * COUNTER_BYTES <= most &&
                                            SKY_Stats_Tenants(svc->core.store, row, 1, counters) > 0;
         ++row)
    {
        put_counters(&answer->scratch[length], counters, SKY_STATS_TENANT_COUNT);
        length += SKY_STATS_TENANT_COUNT * COUNTER_BYTES;
    }
    reply_with(&svc->core, answer, req, SKY_STATUS_OK, length);
    SKY_ASSERT(answer->reply.length <= most);
}

/* ---- GET ---------------------------------------------------------------------------------------------------------- */

/* Find a chunk that was asked for. Satellites ask to rebuild other chunks of the block, which makes it used nowhere: if it did, its shares
 * would not be evicted at about the same time. */
static bool look_up(SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint32_t id)
{
    return (answer->reply.dst.plane != 0 ? SKY_Store_Peek(core->store, answer->block, id, &answer->chunk)
                                         : SKY_Store_Get(core->store, answer->block, id, &answer->chunk)) == SKY_STATUS_OK;
}

/* Look for the next chunk of the burst that is here, and note those that are not. @return false if the burst is over */
static bool get_seek(SKY_ServiceCore_t *core, SKY_Answer_t *answer)
{
    while (answer->burst_left > 0 && answer->set_index < answer->set.count)
    {
        const uint32_t id = SKY_ChunkSet_ChunkId(&answer->set, answer->set_index);
        const uint32_t at = answer->set_index;

        answer->set_index = SKY_ChunkSet_Next(&answer->set, at + 1u);
        if (look_up(core, answer, id))
        {
            SKY_ASSERT(answer->chunk.len >= 1);
            SKY_ASSERT(id < answer->reply.chunk_total); /* the block was described */
            SKY_ASSERT(answer->burst_left <= core->cfg.credit);
            SKY_ASSERT(answer->chunk.len <= core->store->cfg.slot_bytes);
            --answer->burst_left;
            ++core->counters.hits;
            answer->reply.chunk_id  = id;
            answer->reply.chunk_len = answer->chunk.len;
            answer->reply.chunk_crc = answer->chunk.crc32c;
            answer->part_offset     = 0;
            return true;
        }
        SKY_ChunkSet_Add(&answer->missing, at);
        ++core->counters.misses;
    }
    SKY_ASSERT(answer->burst_left == 0 || answer->set_index >= answer->set.count);
    return false;
}

static SKY_AnswerStage_t get_stage_after(const SKY_Answer_t *answer)
{
    SKY_ASSERT(answer->missing.count == answer->set.count);
    SKY_ASSERT(answer->missing.base == answer->set.base);
    return SKY_ChunkSet_Next(&answer->missing, 0) < answer->missing.count ? SKY_ANSWER_MISSING : SKY_ANSWER_IDLE;
}

static void get(SKY_ServiceCore_t *core, SKY_Answer_t *answer, const SKY_Packet_t *req)
{
    SKY_Status_t status = SKY_ChunkSet_Decode(req, &answer->set);

    answer->set_index = 0;
    if (status == SKY_STATUS_OK)
    {
        answer->set_index = SKY_ChunkSet_Next(&answer->set, 0);
        if (answer->set_index == answer->set.count || req->credit == 0)
        {
            status = SKY_STATUS_BAD_CHUNK; /* the request asks for nothing */
        }
    }
    if (status != SKY_STATUS_OK)
    {
        refuse(core, answer, req, status);
        return;
    }
    ++core->counters.gets;
    reply_with(core, answer, req, SKY_STATUS_OK, 0);
    /* Chunks that are not here show one by one. So do all chunks if a block of another version or content is here: the answer says of
     * which. */
    (void)describe_block(core, answer, SKY_Store_Find(core->store, req->tenant, req->key));
    answer->block   = SKY_Store_FindInstance(core->store, req->tenant, req->key, req->block_version, req->content);
    answer->missing = answer->set;
    (void)memset(answer->missing.map, 0, sizeof(answer->missing.map));
    answer->burst_left = req->credit < core->cfg.credit ? req->credit : core->cfg.credit;
    SKY_ASSERT(answer->burst_left >= 1);
    SKY_ASSERT(answer->set_index < answer->set.count);
    answer->stage = get_seek(core, answer) ? SKY_ANSWER_CHUNKS : SKY_ANSWER_MISSING;
    SKY_ASSERT(answer->stage == SKY_ANSWER_CHUNKS || get_stage_after(answer) == SKY_ANSWER_MISSING);
}

/* Send the chunk at hand, or its next part. Only the look for the next chunk shows whether it is the last of the burst. */
static bool get_next_chunk(SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint64_t now_us, SKY_Out_t *out)
{
    const SKY_ChunkView_t chunk = answer->chunk;
    SKY_Packet_t         *reply = &answer->reply;

    SKY_ASSERT(answer->part_offset < chunk.len);
    SKY_ASSERT(reply->chunk_len == chunk.len);
    answer->part_offset = SKY_Packet_CutPart(reply, chunk.data, answer->part_offset, core->cfg.packet_bytes);
    SKY_ASSERT(answer->part_offset <= chunk.len);
    if (answer->part_offset < chunk.len)
    {
        SKY_ServiceCore_Emit(core, now_us, reply, NULL, out);
        return true;
    }
    SKY_Packet_t last = *reply;
    if (!get_seek(core, answer))
    {
        answer->stage = get_stage_after(answer);
        last.flags    = answer->stage == SKY_ANSWER_IDLE ? SKY_FLAG_LAST : 0;
    }
    SKY_ServiceCore_Emit(core, now_us, &last, last.length == chunk.len ? &chunk.crc16_from_zero : NULL, out);
    return true;
}

static bool get_next_missing(SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t *reply = &answer->reply;
    SKY_ASSERT(answer->missing.stride == answer->set.stride);
    SKY_ASSERT(answer->missing.count == answer->set.count);

    reply->status    = SKY_STATUS_NOT_FOUND;
    reply->flags     = SKY_FLAG_LAST;
    reply->seq_flags = SKY_SEQ_WHOLE;
    reply->chunk_id  = answer->missing.base;
    reply->chunk_crc = 0;
    reply->offset    = 0;
    reply->length    = (uint32_t)SKY_ChunkSet_Encode(&answer->missing, answer->scratch, sizeof(answer->scratch));
    reply->payload   = answer->scratch;
    SKY_ASSERT(reply->length > 0);
    answer->stage = SKY_ANSWER_IDLE;
    SKY_ServiceCore_Emit(core, now_us, reply, NULL, out);
    return true;
}

/* ---- in and out --------------------------------------------------------------------------------------------------- */

void SKY_Answer_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_ASSERT(svc->answer.stage == SKY_ANSWER_IDLE); /* answers that were not pulled were dropped */
    SKY_ASSERT(req->is_request);
    switch (req->op)
    {
        case SKY_OP_PUT:
            put(svc, now_us, req);
            break;
        case SKY_OP_GET:
            get(&svc->core, &svc->answer, req);
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
            ping(svc, now_us, req);
            break;
        case SKY_OP_STATS:
            stats(svc, now_us, req);
            break;
        default:
            refuse(&svc->core, &svc->answer, req, SKY_STATUS_BAD_OP);
            break;
    }
}

bool SKY_Answer_Next(SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint64_t now_us, SKY_Out_t *out)
{
    SKY_ASSERT(answer->stage != SKY_ANSWER_IDLE);
    SKY_ASSERT(!answer->reply.is_request);
    if (answer->stage == SKY_ANSWER_CHUNKS)
    {
        SKY_ASSERT(answer->chunk.len >= 1);
        return get_next_chunk(core, answer, now_us, out);
    }
    if (answer->stage == SKY_ANSWER_MISSING)
    {
        return get_next_missing(core, answer, now_us, out);
    }
    answer->stage = SKY_ANSWER_IDLE; /* the reply is the last packet of the answer */
    SKY_ServiceCore_Emit(core, now_us, &answer->reply, NULL, out);
    return true;
}
