/**
 * @file
 * Fuzz target: a satellite that holds its share of a block with parity and scrubs. Some of the other servers have lost their shares, as the
 * input says. All answer by the truth, and where the input says so with a part or another answer, or with a field overwritten. Whatever they say, what it puts home has a right checksum and the flag FREE, its
 * store stays whole, and as long as nobody lied about bytes what it rebuilds is what was lost.
 */
#include "fuzz_input.h"

#include <stdbool.h>
#include <string.h>

#include "sky.h"
#include "sky_code.h"

#define SLOT_BYTES 700u
#define SLOTS      8u
#define ROWS_MAX   3u
#define CHUNK_MAX  640u
#define PERIOD_MS  50u
#define PULL_MAX   64u
#define QUEUE      32u

static SKY_Store_t       store;
static SKY_Service_t     service;
static uint8_t           memory[65536];
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t rows[2];
static SKY_Stripe_t      stripe;
static uint64_t          now_us;
static uint8_t           key[SKY_KEY_BYTES];
static SKY_Packet_t      asked[QUEUE]; /* what was sent last */
static uint8_t           asked_payload[QUEUE][SKY_CHUNKSET_MAX_BYTES];
static uint32_t          asked_count;
static uint32_t          answered;
static bool              has_lied;
static uint8_t           lost;    /* bit of each server that has lost its share */
static uint32_t          brought; /* bit of each chunk that was put home */

/* Bytes of a chunk. @return how many */
static uint32_t truth(uint32_t id, uint8_t *out)
{
    const SKY_StripeRow_t row   = SKY_Stripe_Row(&stripe, SKY_Stripe_RowOf(&stripe, id));
    const SKY_CodeRow_t   code  = {(uint8_t)row.data, (uint8_t)row.parity};
    const uint32_t        place = id - row.first;

    (void)memset(out, 0, SLOT_BYTES);
    for (uint32_t i = 0; i < row.data; ++i)
    {
        const uint32_t len = SKY_Stripe_ChunkBytes(&stripe, row.first + i);
        uint8_t        data[SLOT_BYTES];

        for (uint32_t b = 0; b < len; ++b)
        {
            data[b] = (uint8_t)((row.first + i) * 31u + b * 7u + b / 13u);
        }
        if (i == place || place >= row.data)
        {
            SKY_Code_Add(out, data, len, i == place ? 1 : SKY_Code_Coefficient(code, (uint8_t)place, (uint8_t)i));
        }
    }
    return SKY_Stripe_ChunkBytes(&stripe, id);
}

static void check_put(const SKY_Packet_t *pkt)
{
    static uint8_t bytes[SLOT_BYTES];

    const bool is_here = SKY_Store_Has(&store, SKY_Store_Find(&store, pkt->tenant, pkt->key), pkt->chunk_id);

    ENSURE((pkt->flags & SKY_FLAG_FREE) != 0 || is_here); /* a handover has the chunk */
    ENSURE(pkt->chunk_id < stripe.chunk_total);
    ENSURE(truth(pkt->chunk_id, bytes) == pkt->chunk_len);
    brought |= pkt->offset + pkt->length == pkt->chunk_len ? 1u << pkt->chunk_id : 0u;
    if (!has_lied)
    {
        ENSURE(memcmp(pkt->payload, bytes + pkt->offset, pkt->length) == 0);
    }
}

static void pull(void)
{
    static uint8_t wire[SKY_LIMIT_PACKET_BYTES];
    SKY_Out_t      out;

    for (uint32_t count = 0; SKY_Service_Next(&service, now_us, &out); ++count)
    {
        const size_t len = SKY_Packet_Encode(&out.pkt, wire, sizeof(wire));
        SKY_Packet_t pkt;

        ENSURE(count < PULL_MAX);
        ENSURE(len > 0 && len <= service.core.cfg.packet_bytes);
        ENSURE(SKY_Packet_Decode(wire, len, &pkt) == SKY_STATUS_OK);
        if (pkt.is_request && pkt.op == SKY_OP_PUT)
        {
            check_put(&pkt);
        }
        else if (pkt.is_request && pkt.length <= SKY_CHUNKSET_MAX_BYTES)
        {
            const uint32_t at = asked_count++ % QUEUE;

            asked[at] = pkt;
            (void)memcpy(asked_payload[at], pkt.payload, pkt.length);
            asked[at].payload = asked_payload[at];
        }
    }
}

/* Overwrite a field of an answer. */
static void spoil(input_t *in, SKY_Packet_t *pkt)
{
    switch (take(in) % 12u)
    {
        case 0:
            pkt->status = take(in);
            break;
        case 1:
            pkt->chunk_id = take32(in);
            break;
        case 2:
            pkt->chunk_len = take32(in);
            break;
        case 3:
            pkt->offset = take32(in);
            break;
        case 4:
            pkt->length = pkt->length > 0 ? take(in) % pkt->length : 0;
            break;
        case 5:
            pkt->block_len = take32(in);
            break;
        case 6:
            pkt->chunk_total = take32(in);
            break;
        case 7:
            pkt->content ^= take(in) & 1u;
            break;
        case 8:
            pkt->block_version = take(in) & 1u;
            break;
        case 9:
            pkt->epoch = take32(in);
            break;
        case 10:
            pkt->src.slot = take(in) & 3u;
            break;
        default:
            pkt->op = take(in) & 15u;
            break;
    }
}

/* Does the home of a chunk hold it? */
static bool is_held(uint32_t id)
{
    return id < stripe.chunk_total &&
           (((uint32_t)lost >> id % schedule.placement.servers & 1u) == 0 || (brought >> id & 1u) != 0);
}

/* Answer a question by the truth, @p how far: bit 7 a chunk with another byte, 2 a part, 3 the other one, 1 half of a set, 4 a field. */
static void answer(input_t *in, const SKY_Packet_t *req, uint8_t how)
{
    static uint8_t bytes[SLOT_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;

    if (SKY_ChunkSet_Decode(req, &set) != SKY_STATUS_OK)
    {
        return;
    }
    SKY_Packet_Reply(req, req->dst, SKY_STATUS_OK, &pkt);
    SKY_Stripe_ToPacket(&stripe, &pkt);
    pkt.content = 5;
    pkt.credit  = 8;
    for (uint32_t i = 0; i < set.count; ++i)
    {
        if (!is_held(SKY_ChunkSet_ChunkId(&set, i)) || ((how & 2u) != 0 && i % 2u == 0))
        {
            SKY_ChunkSet_Remove(&set, i);
        }
    }
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, bytes, sizeof(bytes));
    pkt.payload = bytes;
    if (SKY_ChunkSet_Size(&set) == 0)
    {
        pkt.status = SKY_STATUS_NOT_FOUND;
        pkt.epoch  = SKY_Schedule_RowAt(&schedule, now_us);
    }
    else if (req->op == SKY_OP_GET)
    {
        pkt.chunk_len = truth(req->chunk_id, bytes);
        bytes[0]      = (uint8_t)(bytes[0] ^ how >> 7);
        has_lied      = has_lied || how >> 7 != 0;
        pkt.chunk_crc = SKY_Crc32c(0, bytes, pkt.chunk_len);
        pkt.length    = (how & 4u) != 0 ? pkt.chunk_len / 2u + 1u : pkt.chunk_len;
        pkt.offset    = (how & 12u) == 12u && pkt.length < pkt.chunk_len ? pkt.length : 0;
        pkt.length    = pkt.offset != 0 ? pkt.chunk_len - pkt.offset : pkt.length;
        pkt.payload   = bytes + pkt.offset;
    }
    if ((how & 0x10u) != 0)
    {
        spoil(in, &pkt);
    }
    /* Decoding lets no chunk through that its lengths contradict. */
    if (pkt.op != SKY_OP_GET || pkt.status != SKY_STATUS_OK ||
        (pkt.chunk_len <= SKY_LIMIT_CHUNK_BYTES && pkt.offset <= pkt.chunk_len && pkt.length <= pkt.chunk_len - pkt.offset))
    {
        pkt.payload_crc16 = SKY_Crc16(0, pkt.payload, pkt.length);
        SKY_Service_Begin(&service, now_us, &pkt);
        pull();
    }
}

/* All that was asked is answered by the truth, and what is asked then. */
static void answer_all(input_t *in)
{
    for (uint32_t i = 0; answered < asked_count && i < 4u * QUEUE; ++i)
    {
        const SKY_Packet_t req = asked[answered++ % QUEUE];

        answer(in, &req, 0);
    }
}

/* A host puts a chunk, or another block, or purges. */
static void serve(input_t *in)
{
    static uint8_t bytes[SLOT_BYTES];
    const uint8_t  what = take(in);
    SKY_Packet_t   pkt  = {.is_request = true, .apid = SKY_APID_KVC, .seq_flags = SKY_SEQ_WHOLE, .op = SKY_OP_PUT};

    SKY_Stripe_ToPacket(&stripe, &pkt);
    (void)memcpy(pkt.key, key, sizeof(pkt.key));
    pkt.key[1] ^= what >> 7;
    pkt.src           = (SKY_Addr_t){0, 9};
    pkt.dst           = service.core.cfg.self;
    pkt.content       = 5;
    pkt.chunk_id      = (what & 0x3Fu) % stripe.chunk_total;
    pkt.chunk_len     = truth(pkt.chunk_id, bytes);
    pkt.length        = pkt.chunk_len;
    pkt.chunk_crc     = SKY_Crc32c(0, bytes, pkt.chunk_len);
    pkt.payload       = bytes;
    pkt.payload_crc16 = SKY_Crc16(0, bytes, pkt.length);
    if ((what & 0x40u) != 0 && (what & 7u) == 0)
    {
        pkt.op     = SKY_OP_PURGE;
        pkt.length = 0;
    }
    SKY_Service_Begin(&service, now_us, &pkt);
    pull();
}

static void step(input_t *in)
{
    const uint8_t control = take(in);
    uint64_t      next_us;

    switch (control & 7u)
    {
        case 0:
        case 1:
            now_us += 1000u + (uint64_t)(control >> 3 ^ 10u) * 2000u;
            SKY_Service_Poll(&service, now_us, &next_us);
            ENSURE(next_us > now_us);
            pull();
            if ((control & 1u) == 0)
            {
                answer_all(in);
            }
            break;
        case 2:
            SKY_Service_Unreachable(&service, SKY_Schedule_Server(&schedule, 1, control >> 3));
            break;
        case 3:
            serve(in);
            break;
        default:
            if (asked_count > 0)
            {
                const SKY_Packet_t req =
                    asked[(asked_count - 1u - (control >> 3) % (asked_count < QUEUE ? asked_count : QUEUE)) % QUEUE];

                answered = (control & 4u) != 0 && answered < asked_count ? answered + 1u : answered;
                answer(in, &req, take(in));
            }
            break;
    }
    ENSURE(store.counters.blocks <= store.counters.chunks && store.slab.used <= store.cfg.slot_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t              in    = {data, size};
    const uint8_t        setup = take(&in);
    const uint8_t        m     = (uint8_t)(1u + (setup & 1u));
    const uint8_t        k     = (uint8_t)(1u + (setup >> 1 & 3u));
    const uint32_t       len   = 1u + (255u - take(&in)) * (ROWS_MAX * k * CHUNK_MAX - 1u) / 255u;
    const SKY_StoreCfg_t cfg   = {SLOT_BYTES, 2u * SLOTS};
    SKY_ServiceCfg_t     kvc   = {.packet_bytes = SKY_SERVICE_PACKET_MIN, .credit = 8, .part_lifetime_ms = 20, .gossip = true};

    now_us      = 1000000;
    asked_count = 0;
    answered    = 0;
    brought     = 0;
    lost        = (uint8_t)(1u << (setup >> 5)) | take(&in); /* never its own share */
    lost        = (uint8_t)(lost & 0xFEu);
    has_lied    = false;
    (void)memset(asked, 0, sizeof(asked));
    (void)memset(key, 3, sizeof(key));
    kvc.scrub_period_ms = PERIOD_MS;
    rows[0].centre      = (SKY_Cell_t){2, 2};
    rows[1].centre      = (SKY_Cell_t){2, 3};
    rows[1].time_ms     = 2000u;
    ENSURE(SKY_Torus_Init(&kvc.torus, 3, 4, false));
    ENSURE(SKY_Schedule_Init(&schedule, &kvc.torus, SKY_LAYOUT_ROTATION, (uint32_t)k + m, rows, 2, now_us));
    ENSURE(SKY_Stripe_Cut(&stripe, len, CHUNK_MAX, k, m));
    kvc.self = SKY_Schedule_Server(&schedule, 1, 0);
    ENSURE(SKY_Store_Init(&store, &cfg, memory, sizeof(memory), setup));
    ENSURE(SKY_Service_Init(&service, &kvc, &store, now_us, setup));
    ENSURE(SKY_Service_SetSchedule(&service, &schedule));
    for (uint32_t id = 0; id < stripe.chunk_total; id += (uint32_t)k + m)
    {
        const uint8_t chunk = (uint8_t)id;
        input_t       put   = {&chunk, 1};

        serve(&put);
    }
    while (in.left > 0)
    {
        step(&in);
    }
    return 0;
}
