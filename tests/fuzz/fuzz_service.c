/**
 * @file
 * Fuzz target: a sequence of packets into one service with its store, in the order and with the pauses that the input says.
 *
 * Each record of the input is a packet that makes sense (otherwise little but the first check would be reached) with, at will, one
 * field overwritten; or a pause; or a response to what a migration sent. Every packet that comes out must decode, keep to the
 * sizes, and carry what its checksums say.
 */
#include "fuzz_input.h"

#include <stdbool.h>
#include <string.h>

#include "sky.h"

#define SLOT_BYTES   256u
#define SLOTS        4u /* fewer than the largest block has chunks */
#define BLOCKS       3u
#define CREDIT       8u
#define PACKET_BYTES (SKY_SERVICE_PACKET_MIN + 10u) /* chunks of SLOT_BYTES fit, those of PARTED_BYTES go in parts */
#define PARTED_BYTES 600u                           /* slot size of the inputs that are about parts */
/* A pull gives at most one burst for the request and one, with its query, for each migration; a chunk has at most three parts.
 * Besides, words of gossip to all neighbours, and the scrub's question. */
#define PULL_MAX ((1u + SKY_SERVICE_JOBS) * (CREDIT * 3u + 1u) + SKY_SERVICE_WORDS * SKY_ISL_COUNT + 1u)

static SKY_Store_t       store;
static SKY_Service_t     service;
static uint8_t           memory[32768];
static uint64_t          now_us;
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t rows[4];
static SKY_Packet_t      asked; /* what a migration sent last */
static bool              has_asked;

static void check_out(const SKY_Out_t *out)
{
    static uint8_t wire[SKY_LIMIT_PACKET_BYTES];
    const size_t   len = SKY_Packet_Encode(&out->pkt, wire, sizeof(wire));
    SKY_Packet_t   pkt;

    ENSURE(len > 0 && len <= PACKET_BYTES);
    ENSURE(!out->has_crc16 || out->payload_crc16 == SKY_Crc16(0, out->pkt.payload, out->pkt.length));
    ENSURE(SKY_Packet_Decode(wire, len, &pkt) == SKY_STATUS_OK);
    ENSURE(SKY_Addr_Equal(pkt.src, service.core.cfg.self));
    if (pkt.seq_flags == SKY_SEQ_WHOLE && (pkt.op == SKY_OP_PUT ? pkt.is_request : pkt.op == SKY_OP_GET && pkt.status == 0))
    {
        ENSURE(SKY_Crc32c(0, pkt.payload, pkt.length) == pkt.chunk_crc);
    }
    if (pkt.is_request)
    {
        asked     = pkt;
        has_asked = true;
    }
}

static void pull(uint32_t most)
{
    SKY_Out_t out;
    uint32_t  count = 0;

    while (count < most && SKY_Service_Next(&service, now_us, &out))
    {
        check_out(&out);
        ++count;
        ENSURE(count <= PULL_MAX);
    }
}

static void check_counters(void)
{
    const SKY_StoreCounters_t *c = &store.counters;

    ENSURE(store.slab.used <= store.cfg.slot_count && c->blocks <= c->chunks);
    ENSURE(c->partial <= c->chunks && c->bytes <= (uint64_t)(c->chunks - c->partial) * store.cfg.slot_bytes);
    ENSURE((c->blocks == 0) == (c->chunks == 0) && (c->blocks == 0) == (store.slab.used == 0));
}

static void spoil(input_t *in, SKY_Packet_t *pkt)
{
    switch (take(in) % 12u)
    {
        case 1:
            pkt->chunk_id = take32(in);
            break;
        case 2:
            pkt->chunk_total = take32(in);
            break;
        case 3:
            pkt->block_len = take32(in);
            break;
        case 4:
            pkt->chunk_len = take32(in);
            break;
        case 5:
            pkt->offset = take32(in);
            break;
        case 6:
            pkt->chunk_crc ^= take(in);
            break;
        case 7:
            pkt->tenant = take(in) & 1u;
            break;
        case 8:
            pkt->length = pkt->length > 0 ? take(in) % pkt->length : 0;
            break;
        case 9:
            pkt->op = take(in);
            break;
        case 10:
            pkt->deadline_ms = take32(in);
            break;
        case 11:
            pkt->src.plane = take(in);
            break;
        default: /* as it is */
            break;
    }
}

static void make_put(input_t *in, SKY_Packet_t *pkt, uint8_t *payload)
{
    const uint8_t form    = take(in);
    const uint8_t version = take(in) & 1u;

    pkt->chunk_total = 1u + pkt->key[0] % 7u;
    pkt->chunk_len   = store.cfg.slot_bytes - (pkt->key[0] & 1u);
    pkt->block_len   = pkt->chunk_total * pkt->chunk_len;
    pkt->chunk_id    = take(in) % pkt->chunk_total;
    for (uint32_t i = 0; i < pkt->chunk_len; ++i)
    {
        payload[i] = (uint8_t)(i * 7u + pkt->chunk_id * 3u + version);
    }
    pkt->chunk_crc = SKY_Crc32c(0, payload, pkt->chunk_len) ^ (form >> 3 & 1u);
    pkt->payload   = payload;
    pkt->length    = pkt->chunk_len;
    if ((form & 1u) != 0)
    {
        const uint32_t part  = 1u + pkt->chunk_len / (2u + (form >> 1) % 4u);
        const uint32_t count = 1u + (pkt->chunk_len - 1u) / part;

        pkt->offset  = (form >> 4) % count * part;
        pkt->length  = pkt->chunk_len - pkt->offset < part ? pkt->chunk_len - pkt->offset : part;
        pkt->payload = payload + pkt->offset;
    }
}

static void make_set(input_t *in, SKY_Packet_t *pkt, uint8_t *payload)
{
    SKY_ChunkSet_t set;
    const uint8_t  count = take(in);

    pkt->chunk_id = take(in) & 7u;
    pkt->credit   = take(in);
    pkt->flags    = take(in);
    if (SKY_ChunkSet_Init(&set, pkt->chunk_id, 1u + take(in) % 3u, 1u + count))
    {
        for (uint32_t i = 0; i < set.count; i += 8)
        {
            const uint32_t bits = ~(uint32_t)take(in); /* when the input is at its end: all */

            for (uint32_t j = 0; j < 8; ++j)
            {
                if ((bits >> j & 1u) != 0)
                {
                    SKY_ChunkSet_Add(&set, i + j);
                }
            }
        }
        pkt->length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, SKY_CHUNKSET_MAX_BYTES);
        pkt->payload = payload;
    }
}

/* What a satellite might say to the last packet that a migration sent. */
static bool make_response(input_t *in, SKY_Packet_t *pkt, uint8_t *payload)
{
    const uint8_t how = take(in);

    if (!has_asked)
    {
        return false;
    }
    SKY_Packet_Reply(&asked, asked.dst, (how & 8u) != 0 ? take(in) : SKY_STATUS_OK, pkt);
    pkt->op     = SKY_OP_HAS;
    pkt->credit = take(in);
    if ((how & 1u) != 0)
    {
        make_set(in, pkt, payload);
    }
    if ((how & 2u) != 0)
    {
        pkt->op = SKY_OP_PUT;
    }
    return true;
}

/* Name what a purge means, or whatever is there. */
static void make_bounds(uint8_t bounds, SKY_Packet_t *pkt)
{
    pkt->block_version = bounds & 3u;
    pkt->content       = bounds >> 2 & 3u;
    pkt->epoch         = bounds >> 4 == 15u ? SKY_SCHEDULE_STAYS : bounds;
}

static bool make_packet(input_t *in, SKY_Packet_t *pkt, uint8_t *payload)
{
    static const uint8_t ops[8]        = {SKY_OP_PUT,   SKY_OP_PUT,     SKY_OP_GET,   SKY_OP_HAS,
                                          SKY_OP_PURGE, SKY_OP_MIGRATE, SKY_OP_STATS, SKY_OP_PING};
    const uint8_t        what          = take(in);
    const uint8_t        payload_bytes = (uint8_t)(what >> 4);

    (void)memset(pkt, 0, sizeof(*pkt));
    if ((what & 8u) != 0)
    {
        return make_response(in, pkt, payload);
    }
    pkt->is_request = true;
    pkt->apid       = SKY_APID_KVC;
    pkt->op         = ops[what & 7u];
    pkt->seq_flags  = SKY_SEQ_WHOLE;
    pkt->src.slot   = 9;
    pkt->dst        = service.core.cfg.self;
    pkt->key[0]     = take(in) & 7u;
    pkt->epoch      = what;
    switch (pkt->op)
    {
        case SKY_OP_PUT:
            make_put(in, pkt, payload);
            break;
        case SKY_OP_GET:
        case SKY_OP_HAS:
            make_set(in, pkt, payload);
            break;
        case SKY_OP_MIGRATE:
            (void)memset(payload, 0, SKY_MIGRATE_BYTES);
            payload[1]   = take(in) & 3u;
            payload[3]   = take(in) & 3u;
            pkt->flags   = take(in);
            pkt->length  = SKY_MIGRATE_BYTES;
            pkt->payload = payload;
            break;
        case SKY_OP_PURGE:
            pkt->flags  = take(in); /* of the neighbours, when the source is spoilt */
            pkt->credit = payload_bytes;
            make_bounds(take(in), pkt);
            break;
        default:
            pkt->length  = payload_bytes * 5u;
            pkt->payload = payload;
            break;
    }
    return true;
}

/* A schedule with a step of the window now and then; with a bad one, as with none, nothing moves. */
static void follow(input_t *in)
{
    const uint8_t servers = take(in);

    for (uint32_t i = 0; i < 4; ++i)
    {
        const uint8_t cell = take(in);

        rows[i].time_ms      = i * 100u;
        rows[i].centre.plane = cell & 3;
        rows[i].centre.slot  = cell >> 2 & 3;
    }
    if (SKY_Schedule_Init(&schedule, &service.core.cfg.torus, (SKY_LayoutId_t)(1 + servers / 16 % 3), 1u + servers % 9u, rows, 4,
                          now_us))
    {
        ENSURE(SKY_Service_SetSchedule(&service, &schedule));
    }
}

/* What an order can be: to evacuate, or to follow no schedule any more. */
static void order(input_t *in)
{
    const uint8_t    what   = take(in);
    const SKY_Addr_t target = {(uint16_t)(what & 3u), (uint16_t)(what >> 2 & 3u)};

    if ((what & 16u) != 0)
    {
        ENSURE(SKY_Service_SetSchedule(&service, NULL));
    }
    (void)SKY_Service_Evacuate(&service, now_us, target);
}

static void step(input_t *in)
{
    static uint8_t payload[PARTED_BYTES + SKY_CHUNKSET_MAX_BYTES];
    const uint8_t  control = take(in);
    SKY_Packet_t   pkt;
    uint64_t       next_us;

    if ((control & 0x0Fu) == 0)
    {
        now_us += (uint64_t)take(in) * 10000u;
        SKY_Service_Poll(&service, now_us, &next_us);
        ENSURE(next_us > now_us);
    }
    else if ((control & 0x0Fu) == 1 && (control & 0x80u) != 0)
    {
        order(in);
    }
    else if (make_packet(in, &pkt, payload))
    {
        if ((control & 0x10u) != 0)
        {
            spoil(in, &pkt);
        }
        pkt.payload_crc16 = SKY_Crc16(0, pkt.payload, pkt.length); /* as decoding would have it */
        SKY_Service_Begin(&service, now_us, &pkt);
    }
    pull((control & 0x20u) != 0 ? 1u + (control >> 6) : UINT32_MAX);
    check_counters();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t              in    = {data, size};
    const uint8_t        setup = take(&in);
    const SKY_StoreCfg_t cfg   = {(setup & 1u) != 0 ? PARTED_BYTES : SLOT_BYTES, SLOTS};
    SKY_ServiceCfg_t     kvc   = {.self             = {1, 1},
                                  .packet_bytes     = PACKET_BYTES,
                                  .credit           = CREDIT,
                                  .part_lifetime_ms = 100,
                                  .gossip           = true,
                                  .scrub_period_ms  = 50};

    now_us    = 1000000;
    has_asked = false;
    ENSURE(SKY_Torus_Init(&kvc.torus, 3, 3, false));
    ENSURE(SKY_Store_Init(&store, &cfg, memory, sizeof(memory), setup));
    ENSURE(SKY_Service_Init(&service, &kvc, &store, now_us, setup));
    if ((setup & 2u) != 0)
    {
        follow(&in);
    }
    while (in.left > 0)
    {
        step(&in);
    }
    ENSURE(SKY_Store_Expire(&store, UINT64_MAX, SLOTS) <= SLOTS && store.counters.partial == 0);
    return 0;
}
