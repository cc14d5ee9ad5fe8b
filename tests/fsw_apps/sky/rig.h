/**
 * @file
 * A satellite's service on a bench: packets are encoded, decoded, served, and what comes out is joined and decoded again, so that
 * every checksum on the way is the real one.
 */
#ifndef RIG_H
#define RIG_H

#include "check.h"
#include "fixture.h"

#define RIG_OUT_MAX 256u

typedef struct
{
    SKY_Addr_t   dst, gateway;
    uint8_t      bytes[8192];
    uint32_t     len;
    SKY_Packet_t pkt; /* decoded from bytes */
} rig_out_t;

typedef struct
{
    SKY_Store_t   store;
    SKY_Service_t svc;
    void         *memory;
    rig_out_t     out[RIG_OUT_MAX]; /* of the last pull */
    uint32_t      count;
    uint64_t      now_us;
} rig_t;

static inline void rig_open(rig_t *rig, SKY_Addr_t self, uint32_t slots, uint32_t packet_bytes)
{
    const SKY_StoreCfg_t store = {1000, slots};
    const size_t         bytes = SKY_Store_MemoryBytes(&store);
    SKY_ServiceCfg_t     cfg   = {
              .self = self, .packet_bytes = packet_bytes, .credit = 20, .part_lifetime_ms = 500, .migrate_all_from_ground = true};

    free(rig->memory);
    rig->memory = malloc(bytes);
    rig->now_us = 5000000;
    CHECK(rig->memory != NULL && SKY_Store_Init(&rig->store, &store, rig->memory, bytes, 3));
    CHECK(SKY_Torus_Init(&cfg.torus, 5, 19, false));
    CHECK(SKY_Service_Init(&rig->svc, &cfg, &rig->store, rig->now_us, 0xABCDEF0123456789ull));
}

/* What Next gives is one datagram each: it must decode. */
static inline void rig_pull(rig_t *rig)
{
    SKY_Out_t out;

    rig->count = 0;
    while (rig->count < RIG_OUT_MAX && SKY_Service_Next(&rig->svc, rig->now_us, &out))
    {
        rig_out_t *to = &rig->out[rig->count++];

        to->dst     = out.pkt.dst;
        to->gateway = out.pkt.gateway;
        to->len     = fx_join(&out, to->bytes, rig->svc.core.cfg.packet_bytes);
        CHECK_EQ(SKY_Packet_Decode(to->bytes, to->len, &to->pkt), SKY_STATUS_OK);
        CHECK(SKY_Addr_Equal(to->dst, to->pkt.dst));
        CHECK(SKY_Addr_Equal(to->pkt.src, rig->svc.core.cfg.self));
    }
    CHECK(rig->count < RIG_OUT_MAX);
}

/** Give the service a packet over the wire; rig->out is what it sends. */
static inline void rig_serve(rig_t *rig, const SKY_Packet_t *pkt)
{
    static uint8_t wire[SKY_LIMIT_PACKET_BYTES];
    const size_t   len = SKY_Packet_Encode(pkt, wire, sizeof(wire));
    SKY_Packet_t   decoded;

    CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_OK);
    SKY_Service_Begin(&rig->svc, rig->now_us, &decoded);
    (void)memset(wire, 0xEE, len); /* the datagram's buffer goes back before anything is sent */
    rig_pull(rig);
}

static inline void rig_poll(rig_t *rig, uint64_t *next_us)
{
    SKY_Service_Poll(&rig->svc, rig->now_us, next_us);
    rig_pull(rig);
}

static inline void rig_request(SKY_Packet_t *pkt, uint8_t op, uint32_t number)
{
    (void)memset(pkt, 0, sizeof(*pkt));
    pkt->is_request = true;
    pkt->apid       = SKY_APID_KVC;
    pkt->seq_flags  = SKY_SEQ_WHOLE;
    pkt->op         = op;
    pkt->hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt->src        = (SKY_Addr_t){0, 77};
    pkt->dst        = (SKY_Addr_t){1, 1};
    pkt->gateway    = (SKY_Addr_t){2, 3};
    pkt->request_id = 0x1122334455667788ull;
    fx_key(pkt->key, number);
}

/** A GET or HAS of the chunks base, base + stride, ..., all or those of @p bits (bit 0 is the first). */
static inline void rig_ask(rig_t *rig, uint8_t op, uint32_t number, uint32_t base, uint32_t stride, uint32_t count, uint64_t bits,
                           uint16_t credit)
{
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;

    CHECK(SKY_ChunkSet_Init(&set, base, stride, count));
    for (uint32_t i = 0; i < count; ++i)
    {
        if (i >= 64 || (bits >> i & 1u) != 0)
        {
            SKY_ChunkSet_Add(&set, i);
        }
    }
    rig_request(&pkt, op, number);
    pkt.credit   = credit;
    pkt.chunk_id = base;
    pkt.payload  = payload;
    pkt.length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    rig_serve(rig, &pkt);
}

static inline void rig_put(rig_t *rig, const fx_block_t *block, uint32_t id)
{
    static uint8_t data[2000];
    SKY_Packet_t   pkt;

    fx_put(block, id, data, &pkt);
    rig_serve(rig, &pkt);
}

/** The only response, its status. */
static inline SKY_Status_t rig_status(const rig_t *rig)
{
    CHECK_EQ(rig->count, 1);
    return rig->out[0].pkt.status;
}

static inline bool rig_holds(const rig_t *rig, const fx_block_t *block, uint32_t id)
{
    static uint8_t  data[1000];
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, block->number);
    fx_fill(block, id, data);
    return SKY_Store_Peek(&rig->store, SKY_Store_Find(&rig->store, 0, key), id, &view) == SKY_STATUS_OK &&
           view.len == fx_len(block, id) && memcmp(view.data, data, view.len) == 0;
}

#endif
