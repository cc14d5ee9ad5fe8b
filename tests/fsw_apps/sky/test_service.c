/**
 * @file
 * sky_service.c: every operation, over the wire. MIGRATE and STATS have tests of their own: test_service_migrate.c, test_service_stats.c.
 */
#include "rig.h"

#define ALL UINT64_MAX

static rig_t            rig;
static const SKY_Addr_t self  = {1, 1};
static const fx_block_t block = {5, 0, 50, 1000, 49500}; /* the last chunk has 500 bytes */

static void put_all(uint32_t from, uint32_t step)
{
    for (uint32_t i = from; i < block.chunk_total; i += step)
    {
        rig_put(&rig, &block, i);
        CHECK_EQ(rig.count, 0); /* answered only on error */
    }
}

static uint64_t error_count(SKY_Status_t status)
{
    return rig.svc.core.counters.errors[status];
}

static void test_init(void)
{
    SKY_ServiceCfg_t good, cfg;
    SKY_Service_t   *svc = &rig.svc;

    rig_open(&rig, self, 64, 1472);
    good = svc->core.cfg;
#define SPOILED(field, value)                                  \
    do                                                         \
    {                                                          \
        cfg       = good;                                      \
        cfg.field = (value);                                   \
        CHECK(!SKY_Service_Init(svc, &cfg, &rig.store, 0, 0)); \
    } while (0)
    SPOILED(self.plane, 6);
    SPOILED(self.plane, 0);
    SPOILED(packet_bytes, SKY_SERVICE_PACKET_MIN - 1);
    SPOILED(packet_bytes, SKY_LIMIT_PACKET_BYTES + 1);
    SPOILED(credit, 0);
    SPOILED(credit, SKY_LIMIT_CHUNK_SET + 1);
    rig.store.cfg.slot_bytes = 60000; /* more than 64 such packets carry */
    SPOILED(packet_bytes, SKY_SERVICE_PACKET_MIN);
#undef SPOILED
}

static void test_configure(void)
{
    SKY_ServiceCfg_t good, cfg;
    SKY_Service_t   *svc = &rig.svc;

    rig_open(&rig, self, 64, 1472);
    put_all(0, 1);
    good = svc->core.cfg;
#define SPOILED(field, value)                     \
    do                                            \
    {                                             \
        cfg       = good;                         \
        cfg.field = (value);                      \
        CHECK(!SKY_Service_Configure(svc, &cfg)); \
    } while (0)
    SPOILED(credit, 0);
    SPOILED(self.slot, 2);
    SPOILED(torus.planes, 6);
    SPOILED(torus.slots, 20);
    SPOILED(torus.seam_cut, true);
#undef SPOILED
    CHECK_EQ(svc->core.cfg.credit, good.credit);
    cfg                 = good;
    cfg.credit          = 3;
    cfg.clock_offset_us = 1000000000;
    CHECK(SKY_Service_Configure(svc, &cfg));
    CHECK(svc->core.counters.puts > 0); /* all goes on */
    rig_ask(&rig, SKY_OP_GET, block.number, 3, 10, 5, ALL, 100);
    CHECK_EQ(rig.count, 3);
    CHECK_EQ(rig.out[0].pkt.time_s, 1000 + rig.now_us / 1000000);
}

static void test_get_whole_chunks(void)
{
    rig_open(&rig, self, 64, 1472);
    put_all(0, 1);
    rig.now_us = 7250000;
    rig_ask(&rig, SKY_OP_GET, block.number, 3, 10, 5, ALL, 100); /* 3, 13, 23, 33, 43 */
    CHECK_EQ(rig.count, 5);
    for (uint32_t i = 0; i < 5; ++i)
    {
        const SKY_Packet_t *pkt = &rig.out[i].pkt;
        uint8_t             data[1000];

        CHECK(!pkt->is_request);
        CHECK_EQ(pkt->op, SKY_OP_GET);
        CHECK_EQ(pkt->status, SKY_STATUS_OK);
        CHECK_EQ(pkt->apid, SKY_APID_KVC);
        CHECK_EQ(pkt->flags, i == 4 ? SKY_FLAG_LAST : 0);
        CHECK_EQ(pkt->seq_flags, SKY_SEQ_WHOLE);
        CHECK_EQ(pkt->seq_count, i);
        CHECK_EQ(pkt->time_s, 7);
        CHECK_EQ(pkt->time_subs, 16384);
        CHECK_EQ(pkt->request_id, 0x1122334455667788ull);
        CHECK(SKY_Addr_Equal(pkt->dst, (SKY_Addr_t){0, 77}));
        CHECK(SKY_Addr_Equal(pkt->gateway, (SKY_Addr_t){2, 3}));
        CHECK(SKY_Addr_Equal(rig.out[i].gateway, (SKY_Addr_t){2, 3}));
        CHECK_EQ(pkt->chunk_id, 3 + 10 * i);
        CHECK_EQ(pkt->chunk_total, 50);
        CHECK_EQ(pkt->block_len, 49500);
        CHECK_EQ(pkt->chunk_len, 1000);
        CHECK_EQ(pkt->offset, 0);
        CHECK_EQ(pkt->length, 1000);
        fx_fill(&block, pkt->chunk_id, data);
        CHECK(memcmp(pkt->payload, data, 1000) == 0);
        CHECK_EQ(pkt->chunk_crc, SKY_Crc32c(0, data, 1000));
    }
    CHECK_EQ(rig.svc.core.counters.gets, 1);
    CHECK_EQ(rig.svc.core.counters.hits, 5);
    CHECK_EQ(rig.svc.core.counters.misses, 0);
    CHECK_EQ(rig.svc.core.counters.puts, 50);
    CHECK_EQ(rig.svc.core.counters.migrated_in, 0);
    CHECK_EQ(rig.svc.core.counters.requests, 51);
}

static void test_get_keeps_to_the_credit(void)
{
    rig_open(&rig, self, 64, 1472);
    put_all(0, 1);
    rig_ask(&rig, SKY_OP_GET, block.number, 0, 1, 50, ALL, 7);
    CHECK_EQ(rig.count, 7);
    CHECK_EQ(rig.out[6].pkt.flags, SKY_FLAG_LAST);
    rig_ask(&rig, SKY_OP_GET, block.number, 0, 1, 50, ALL, 1000); /* ours is 20 */
    CHECK_EQ(rig.count, 20);
    CHECK_EQ(rig.out[19].pkt.flags, SKY_FLAG_LAST);
    CHECK_EQ(rig.out[19].pkt.chunk_id, 19);
    rig_ask(&rig, SKY_OP_GET, block.number, 0, 1, 2, ALL, 0);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_CHUNK);
    rig_ask(&rig, SKY_OP_GET, block.number, 0, 1, 2, 0, 5); /* asks for nothing */
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_CHUNK);
}

static void check_missing(const SKY_Packet_t *pkt, uint32_t base, uint32_t count, uint64_t bits)
{
    SKY_ChunkSet_t set;

    CHECK_EQ(pkt->status, SKY_STATUS_NOT_FOUND);
    CHECK_EQ(pkt->flags, SKY_FLAG_LAST);
    CHECK_EQ(pkt->op, SKY_OP_GET);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(set.base, base);
    CHECK_EQ(set.count, count);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK_EQ(SKY_ChunkSet_Has(&set, i), (bits >> i & 1u) != 0);
    }
}

static void test_get_names_what_is_missing(void)
{
    rig_open(&rig, self, 64, 1472);
    put_all(0, 3);                                              /* 0, 3, 6, ... */
    rig_ask(&rig, SKY_OP_GET, block.number, 2, 2, 6, 0x2F, 20); /* 2, 4, 6, 8, and 12 */
    CHECK_EQ(rig.count, 3);
    CHECK_EQ(rig.out[0].pkt.chunk_id, 6);
    CHECK_EQ(rig.out[0].pkt.flags, 0);
    CHECK_EQ(rig.out[1].pkt.chunk_id, 12);
    CHECK_EQ(rig.out[1].pkt.flags, 0);
    check_missing(&rig.out[2].pkt, 2, 6, 0x0B);
    CHECK_EQ(rig.svc.core.counters.hits, 2);
    CHECK_EQ(rig.svc.core.counters.misses, 3);

    /* Only what was looked at before the burst was full is named. */
    rig_ask(&rig, SKY_OP_GET, block.number, 0, 1, 10, ALL, 2);
    CHECK_EQ(rig.count, 3);
    CHECK_EQ(rig.out[1].pkt.chunk_id, 3);
    check_missing(&rig.out[2].pkt, 0, 10, 0x06);

    rig_ask(&rig, SKY_OP_GET, 99, 1, 1, 4, 0x0D, 2); /* unknown block: all that was asked for */
    CHECK_EQ(rig.count, 1);
    check_missing(&rig.out[0].pkt, 1, 4, 0x0D);
}

static void test_get_in_parts(void)
{
    const uint32_t part = 552 - SKY_RESPONSE_OVERHEAD; /* 374: 374 + 374 + 252 */
    uint8_t        joined[1000], data[1000];

    rig_open(&rig, self, 64, 552);
    for (uint32_t id = 48; id < 50; ++id)
    {
        const uint32_t len = fx_len(&block, id);

        for (uint32_t at = 0; at < len; at += part)
        {
            SKY_Packet_t pkt;

            fx_put(&block, id, data, &pkt);
            fx_part(&pkt, at, len - at < part ? len - at : part);
            rig_serve(&rig, &pkt);
            CHECK_EQ(rig.count, 0);
        }
    }
    rig_ask(&rig, SKY_OP_GET, block.number, 48, 1, 2, ALL, 20);
    CHECK_EQ(rig.count, 5);
    for (uint32_t i = 0; i < 5; ++i)
    {
        static const uint8_t  seq[] = {SKY_SEQ_FIRST, SKY_SEQ_CONTINUE, SKY_SEQ_LAST, SKY_SEQ_FIRST, SKY_SEQ_LAST};
        static const uint32_t id[]  = {48, 48, 48, 49, 49};
        const SKY_Packet_t   *pkt   = &rig.out[i].pkt;

        CHECK_EQ(pkt->seq_flags, seq[i]);
        CHECK_EQ(pkt->chunk_id, id[i]);
        CHECK_EQ(pkt->chunk_len, fx_len(&block, id[i]));
        CHECK_EQ(pkt->flags, i == 4 ? SKY_FLAG_LAST : 0);
        (void)memcpy(joined + pkt->offset, pkt->payload, pkt->length);
        if (seq[i] == SKY_SEQ_LAST)
        {
            fx_fill(&block, id[i], data);
            CHECK(memcmp(joined, data, pkt->chunk_len) == 0);
            CHECK_EQ(pkt->chunk_crc, SKY_Crc32c(0, data, pkt->chunk_len));
        }
    }
}

static void test_bodies_stay_until_the_next_begin(void)
{
    static SKY_Out_t out[32];
    SKY_ChunkSet_t   set;
    SKY_Packet_t     pkt;
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES], data[1000];
    uint32_t         count = 0;

    rig_open(&rig, self, 64, 1472);
    put_all(0, 2);
    CHECK(SKY_ChunkSet_Init(&set, 0, 1, 20));
    (void)memset(set.map, 0xFF, 2);
    rig_request(&pkt, SKY_OP_GET, block.number);
    pkt.credit  = 20;
    pkt.payload = payload;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    SKY_Service_Begin(&rig.svc, rig.now_us, &pkt);
    while (SKY_Service_Next(&rig.svc, rig.now_us, &out[count]))
    {
        ++count;
    }
    CHECK_EQ(count, 9);
    for (uint32_t i = 0; i < 8; ++i)
    {
        fx_fill(&block, 2 * i, data);
        CHECK(out[i].pkt.payload >= rig.store.slab.data); /* the store's own */
        CHECK(memcmp(out[i].pkt.payload, data, 1000) == 0);
    }
    CHECK(out[8].pkt.payload == rig.svc.answer.scratch);
}

static void test_has(void)
{
    const SKY_Packet_t *pkt = &rig.out[0].pkt;
    SKY_ChunkSet_t      set;

    rig_open(&rig, self, 64, 1472);
    put_all(0, 3);
    rig_ask(&rig, SKY_OP_HAS, block.number, 0, 1, 50, 0xFF, 0); /* 0 to 7, and by rig_ask's way of counting no more below 64 */
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(pkt->chunk_total, 50);
    CHECK_EQ(pkt->block_len, 49500);
    CHECK_EQ(pkt->chunk_len, 1000);
    CHECK_EQ(pkt->credit, 20);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 3);
    CHECK(SKY_ChunkSet_Has(&set, 0) && SKY_ChunkSet_Has(&set, 3) && SKY_ChunkSet_Has(&set, 6));
    rig_ask(&rig, SKY_OP_HAS, block.number, 0, 1, SKY_LIMIT_CHUNK_SET, ALL, 0);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 17);
    rig_ask(&rig, SKY_OP_HAS, 99, 4, 2, 3, ALL, 0);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(pkt->chunk_id, 4);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(set.count, 3);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 0);
}

static void test_has_any(void)
{
    const SKY_Packet_t *pkt = &rig.out[0].pkt;
    SKY_ChunkSet_t      set;
    SKY_Packet_t        req;

    rig_open(&rig, self, 64, 1472);
    put_all(7, 4);
    rig_request(&req, SKY_OP_HAS, block.number); /* without a chunk set */
    req.flags    = SKY_FLAG_ANY;
    req.chunk_id = 3;
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(pkt->chunk_id, 7);
    CHECK_EQ(pkt->chunk_total, 50);
    CHECK_EQ(pkt->block_len, 49500);
    CHECK_EQ(pkt->chunk_len, 1000);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(set.count, 1);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 1);
    fx_key(req.key, 99);
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(pkt->chunk_id, 3);
    CHECK_EQ(SKY_ChunkSet_Decode(pkt, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 0);
}

/* Nobody waits for an answer. */
static void test_a_word_of_use(void)
{
    const fx_block_t newer = {6, 0, 50, 1000, 49500};
    SKY_Packet_t     req;
    SKY_StoreWalk_t  walk = {0};
    SKY_BlockInfo_t  info;

    rig_open(&rig, self, 64, 1472);
    rig_put(&rig, &block, 0);
    rig_put(&rig, &newer, 0);
    rig_request(&req, SKY_OP_HAS, 99); /* which is not here */
    req.flags = SKY_FLAG_USE;
    rig_serve(&rig, &req);
    CHECK_EQ(rig.count, 0);
    CHECK(SKY_Store_NextUsed(&rig.store, &walk, &info));
    fx_key(req.key, newer.number);
    CHECK(memcmp(info.key, req.key, SKY_KEY_BYTES) == 0);
    fx_key(req.key, block.number);
    rig_serve(&rig, &req);
    CHECK_EQ(rig.count, 0);
    walk = (SKY_StoreWalk_t){0};
    CHECK(SKY_Store_NextUsed(&rig.store, &walk, &info));
    CHECK(memcmp(info.key, req.key, SKY_KEY_BYTES) == 0);
}

static void test_bad_chunk_sets(void)
{
    uint8_t      payload[SKY_CHUNKSET_MAX_BYTES] = {0};
    SKY_Packet_t req;

    rig_open(&rig, self, 64, 1472);
    rig_request(&req, SKY_OP_HAS, block.number);
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_LENGTH);
    req.op      = SKY_OP_GET;
    req.credit  = 1;
    req.payload = payload;
    req.length  = SKY_CHUNK_SET_BYTES;
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(error_count(SKY_STATUS_BAD_LENGTH), 1);
    CHECK_EQ(error_count(SKY_STATUS_BAD_CHUNK), 1);
    CHECK_EQ(rig.svc.core.counters.gets, 0);
}

static void test_put_errors_are_answered(void)
{
    uint8_t      data[2000];
    SKY_Packet_t pkt;

    rig_open(&rig, self, 3, 1472);
    fx_put(&block, 1, data, &pkt);
    pkt.chunk_crc ^= 1u;
    pkt.request_id = 42;
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_CRC);
    CHECK_EQ(rig.out[0].pkt.op, SKY_OP_PUT);
    CHECK_EQ(rig.out[0].pkt.chunk_id, 1);
    CHECK_EQ(rig.out[0].pkt.request_id, 42);
    CHECK_EQ(rig.out[0].pkt.credit, 20);
    CHECK_EQ(rig.out[0].pkt.length, 0);

    const fx_block_t big = {6, 0, 1, 1001, 1001};
    rig_put(&rig, &big, 0);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_TOO_LARGE);

    rig_put(&rig, &block, 0);
    rig_put(&rig, &block, 1);
    CHECK_EQ(rig.count, 0);
    rig_put(&rig, &block, 2);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_STORE_FULL);
    const fx_block_t other = {5, 1, 50, 1000, 49500};
    rig_put(&rig, &other, 0);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_KEY);

    fx_put(&block, 0, data, &pkt);
    pkt.src = (SKY_Addr_t){2, 1}; /* from a satellite */
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig.count, 0);
    CHECK_EQ(rig.svc.core.counters.migrated_in, 1);
    fx_part(&pkt, 0, 500);
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig.svc.core.counters.migrated_in, 1); /* the chunk counts with its last part */
    CHECK_EQ(error_count(SKY_STATUS_BAD_CRC), 1);
    CHECK_EQ(error_count(SKY_STATUS_TOO_LARGE), 1);
    CHECK_EQ(error_count(SKY_STATUS_STORE_FULL), 1);
    CHECK_EQ(error_count(SKY_STATUS_BAD_KEY), 1);
}

static void test_purge(void)
{
    SKY_Packet_t req;

    rig_open(&rig, self, 64, 1472);
    put_all(0, 5);
    rig_request(&req, SKY_OP_PURGE, block.number);
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(rig.out[0].pkt.chunk_total, 10);
    CHECK_EQ(rig.out[0].pkt.block_len, block.block_len);
    CHECK_EQ(rig.out[0].pkt.chunk_len, block.chunk_len);
    CHECK(!rig_holds(&rig, &block, 0));
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK); /* repeated because the response was lost */
    CHECK_EQ(rig.out[0].pkt.chunk_total, 0);
    CHECK_EQ(rig.out[0].pkt.block_len, 0);
    CHECK_EQ(rig.svc.core.counters.purges, 10);
}

static void test_ping(void)
{
    uint8_t      payload[SKY_LIMIT_PING_BYTES + 1];
    SKY_Packet_t req;

    rig_open(&rig, self, 64, 1472);
    for (uint32_t i = 0; i < sizeof(payload); ++i)
    {
        payload[i] = (uint8_t)(i * 3u);
    }
    rig_request(&req, SKY_OP_PING, 0);
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(rig.out[0].pkt.length, 0);
    req.payload = payload;
    req.length  = SKY_LIMIT_PING_BYTES;
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(rig.out[0].pkt.length, SKY_LIMIT_PING_BYTES);
    CHECK(memcmp(rig.out[0].pkt.payload, payload, SKY_LIMIT_PING_BYTES) == 0);
    ++req.length;
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_LENGTH);
}

static void test_unknown_operations_and_responses(void)
{
    SKY_Packet_t pkt;

    rig_open(&rig, self, 64, 1472);
    rig_request(&pkt, SKY_OP_RELAY, 0); /* not of this APID */
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_OP);
    pkt.op = 0x7F;
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_BAD_OP);
    CHECK_EQ(error_count(SKY_STATUS_BAD_OP), 2);
    pkt.op         = SKY_OP_PING;
    pkt.is_request = false;
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig.count, 0); /* a response is never answered */
    CHECK_EQ(rig.svc.core.counters.unsolicited, 1);
    CHECK_EQ(rig.svc.core.counters.requests, 2);
}

static void test_sequence_count_wraps(void)
{
    SKY_Packet_t req;

    rig_open(&rig, self, 64, 1472);
    rig.svc.core.seq_count = 0x3FFF;
    rig_request(&req, SKY_OP_PING, 0);
    rig_serve(&rig, &req);
    CHECK_EQ(rig.out[0].pkt.seq_count, 0x3FFF);
    rig_serve(&rig, &req);
    CHECK_EQ(rig.out[0].pkt.seq_count, 0);
}

static void test_what_is_not_pulled_is_dropped(void)
{
    SKY_Packet_t req;
    SKY_Out_t    out;
    uint64_t     next_us;

    rig_open(&rig, self, 64, 1472);
    rig_request(&req, SKY_OP_PING, 0);
    SKY_Service_Begin(&rig.svc, rig.now_us, &req);
    SKY_Service_Poll(&rig.svc, rig.now_us, &next_us);
    CHECK(!SKY_Service_Next(&rig.svc, rig.now_us, &out));
    CHECK_EQ(next_us, UINT64_MAX); /* nothing to come back for */
}

static void test_parts_expire(void)
{
    uint8_t      data[1000];
    SKY_Packet_t pkt;
    uint64_t     next_us;

    rig_open(&rig, self, 64, 1472);
    fx_put(&block, 0, data, &pkt);
    fx_part(&pkt, 0, 500);
    rig_serve(&rig, &pkt); /* no deadline: 500 ms by configuration */
    fx_put(&block, 1, data, &pkt);
    fx_part(&pkt, 0, 500);
    pkt.deadline_ms = 100;
    rig_serve(&rig, &pkt);
    fx_put(&block, 2, data, &pkt);
    fx_part(&pkt, 0, 500);
    pkt.deadline_ms = UINT32_MAX; /* no longer than configured */
    rig_serve(&rig, &pkt);
    CHECK_EQ(rig.store.counters.partial, 3);
    rig_poll(&rig, &next_us);
    CHECK_EQ(next_us, rig.now_us + SKY_SERVICE_EXPIRE_US);
    rig.now_us += 100000;
    rig_poll(&rig, &next_us);
    CHECK_EQ(rig.store.counters.partial, 2);
    rig.now_us += 399999;
    rig_poll(&rig, &next_us);
    CHECK_EQ(rig.store.counters.partial, 2);
    rig.now_us += 1;
    rig_poll(&rig, &next_us);
    CHECK_EQ(rig.store.counters.partial, 0);
    CHECK_EQ(next_us, UINT64_MAX);
}

int main(void)
{
    RUN(test_init);
    RUN(test_configure);
    RUN(test_get_whole_chunks);
    RUN(test_get_keeps_to_the_credit);
    RUN(test_get_names_what_is_missing);
    RUN(test_get_in_parts);
    RUN(test_bodies_stay_until_the_next_begin);
    RUN(test_has);
    RUN(test_has_any);
    RUN(test_a_word_of_use);
    RUN(test_bad_chunk_sets);
    RUN(test_put_errors_are_answered);
    RUN(test_purge);
    RUN(test_ping);
    RUN(test_unknown_operations_and_responses);
    RUN(test_sequence_count_wraps);
    RUN(test_what_is_not_pulled_is_dropped);
    RUN(test_parts_expire);
    free(rig.memory);
    return CHECK_RESULT();
}
