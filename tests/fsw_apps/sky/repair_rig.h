/**
 * @file
 * A constellation that holds blocks with parity and repairs them, for the tests of sky_service_census.c and sky_service_repair.c. The
 * bytes of each chunk follow from its block, so what comes back is compared with what it must be.
 */
#ifndef REPAIR_RIG_H
#define REPAIR_RIG_H

#define PLANES 5u
#define SLOTS  7u

#include "nodes.h"
#include "sky_code.h"

#ifndef SLOT_BYTES
#define SLOT_BYTES 600u
#endif
#define FLEET_MAX 4096u
#define LIFE_MS   500u /* of parts */
#define PERIOD_MS 2000u
#define PERIOD_US (PERIOD_MS * 1000u)
#define STEP_US   10000u
#define WHOLE     1472u /* bytes of a packet that carries a chunk */
#define IN_PARTS  560u  /* and of one that carries a part */

/** A block with parity. */
typedef struct
{
    uint32_t     tenant;
    uint32_t     number;
    uint32_t     content;
    uint64_t     version;
    SKY_Stripe_t stripe;
} coded_t;

static const SKY_ScheduleRow_t rows[] = {{0, {3, 4}}, {100000, {3, 5}}};

static SKY_Schedule_t schedule;
static SKY_Schedule_t still;            /* the window of its first row, as of a sky that does not turn */
static bool           is_still;         /* satellites that begin know the window alone */
static flying_t       fleet[FLEET_MAX]; /* packets on their way, first in, first out */
static uint32_t       fleet_first, fleet_count;
static uint32_t       store_slots, link_bytes;
static bool (*meets)(SKY_Packet_t *pkt); /* something on the way may change a packet; false: it is lost */
static uint32_t sent_gets;               /* by satellites */

/* What satellites say goes on its way; what they say to the ground is lost. */
static void node_send(const SKY_Out_t *out)
{
    flying_t     flying = flying_of(out);
    uint8_t      bytes[FLYING_BYTES];
    SKY_Packet_t pkt;

    CHECK_EQ(SKY_Packet_Decode(flying.bytes, flying.len, &pkt), SKY_STATUS_OK);
    sent_gets += pkt.is_request && pkt.op == SKY_OP_GET ? 1u : 0u;
    if (pkt.dst.plane == 0 || (meets != NULL && !meets(&pkt)))
    {
        return;
    }
    flying.len = (uint32_t)SKY_Packet_Encode(&pkt, bytes, sizeof(bytes));
    CHECK(flying.len > 0);
    (void)memcpy(flying.bytes, bytes, flying.len);
    fleet[(fleet_first + fleet_count++) % FLEET_MAX] = flying;
    CHECK(fleet_count < FLEET_MAX);
}

static inline void node_begin(SKY_Addr_t self, uint32_t slots, bool gossip)
{
    const SKY_StoreCfg_t store = {SLOT_BYTES, slots};
    SKY_ServiceCfg_t     cfg   = {.self             = self,
                                  .packet_bytes     = link_bytes,
                                  .credit           = 20,
                                  .part_lifetime_ms = LIFE_MS,
                                  .gossip           = gossip,
                                  .scrub_period_ms  = PERIOD_MS};

    node_init(node_at(self), &store, &cfg, 3, self.plane * 1000u + self.slot);
    CHECK(is_still ? SKY_Service_SetWindow(&node_at(self)->svc, &still)
                   : SKY_Service_SetSchedule(&node_at(self)->svc, &schedule));
}

static inline void open_sky(SKY_LayoutId_t layout, uint32_t servers, uint32_t slots, bool gossip)
{
    SKY_Torus_t torus;

    fleet_count = 0;
    meets       = NULL;
    sent_gets   = 0;
    now_us      = 5000000;
    store_slots = slots;
    link_bytes  = link_bytes != 0 ? link_bytes : WHOLE;
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    CHECK(SKY_Schedule_Init(&schedule, &torus, layout, servers, rows, 2, now_us));
    CHECK(SKY_Schedule_Init(&still, &torus, layout, servers, rows, 1, 0));
    for (uint16_t plane = 1; plane <= PLANES; ++plane)
    {
        for (uint16_t slot = 1; slot <= SLOTS; ++slot)
        {
            node_begin((SKY_Addr_t){plane, slot}, slots, gossip);
        }
    }
}

static inline void close_sky(void)
{
    for (uint32_t i = 0; i < NODES; ++i)
    {
        free(nodes[i].memory);
    }
}

/* The satellite of a server. The tests' blocks are large, or have keys that begin with 0, unless they say otherwise: chunk i is at server i. */
static inline SKY_Addr_t home_of(uint32_t id)
{
    return SKY_Schedule_Server(&schedule, SKY_Schedule_RowAt(&schedule, now_us), id);
}

static inline node_t *at_home(uint32_t id)
{
    return node_at(home_of(id));
}

/* It comes back with nothing. */
static inline void restart(SKY_Addr_t addr)
{
    node_begin(addr, store_slots, node_at(addr)->svc.core.cfg.gossip);
}

/* All packets arrive. */
static inline void settle(void)
{
    for (uint32_t i = 0; fleet_count > 0 && i < 1000000u; ++i)
    {
        const flying_t flying = fleet[fleet_first];

        fleet_first = (fleet_first + 1u) % FLEET_MAX;
        --fleet_count;
        node_hear(&flying);
    }
    CHECK_EQ(fleet_count, 0);
}

/* Time goes on by a step; packets take none. */
static inline void step(void)
{
    now_us += STEP_US;
    for (uint32_t i = 0; i < NODES; ++i)
    {
        SKY_Service_Poll(&nodes[i].svc, node_clock(&nodes[i]), &nodes[i].next_us);
        CHECK(nodes[i].next_us > now_us - STEP_US);
        node_pull(&nodes[i]);
    }
    settle();
}

static inline void run(uint64_t for_us)
{
    for (const uint64_t end_us = now_us + for_us; now_us < end_us;)
    {
        step();
    }
}

static inline coded_t a_coded(uint32_t number, uint32_t block_len, uint32_t chunk_len, uint8_t k, uint8_t m)
{
    coded_t coded = {.number = number, .content = number, .version = 0};

    CHECK(SKY_Stripe_Cut(&coded.stripe, block_len, chunk_len, k, m));
    return coded;
}

/* @return bytes of a chunk, which are written to @p out */
static inline uint32_t true_chunk(const coded_t *coded, uint32_t id, uint8_t *out)
{
    const SKY_StripeRow_t row   = SKY_Stripe_Row(&coded->stripe, SKY_Stripe_RowOf(&coded->stripe, id));
    const uint32_t        place = id - row.first;
    const uint32_t        len   = SKY_Stripe_ChunkBytes(&coded->stripe, id);
    uint8_t               data[SLOT_BYTES];

    (void)memset(out, 0, SLOT_BYTES);
    for (uint32_t i = 0; i < row.data; ++i)
    {
        const SKY_CodeRow_t code   = {(uint8_t)row.data, (uint8_t)row.parity};
        const uint32_t      source = SKY_Stripe_ChunkBytes(&coded->stripe, row.first + i);
        uint64_t            state  = 1u + coded->number * 1000003u + coded->content * 7919u + (row.first + i) * 104729u;

        for (uint32_t b = 0; b < source; ++b)
        {
            data[b] = (uint8_t)(fx_random(&state) >> 56);
        }
        if (i == place || place >= row.data)
        {
            SKY_Code_Add(out, data, source, i == place ? 1 : SKY_Code_Coefficient(code, (uint8_t)place, (uint8_t)i));
        }
    }
    return len;
}

static inline void put_at(SKY_Addr_t addr, const coded_t *coded, uint32_t id, uint32_t epoch)
{
    uint8_t      data[SLOT_BYTES];
    SKY_Packet_t pkt = {.is_request = true, .apid = SKY_APID_KVC, .seq_flags = SKY_SEQ_WHOLE, .op = SKY_OP_PUT};

    SKY_Stripe_ToPacket(&coded->stripe, &pkt);
    pkt.src           = (SKY_Addr_t){0, 77};
    pkt.dst           = addr;
    pkt.tenant        = coded->tenant;
    pkt.chunk_id      = id;
    pkt.chunk_len     = true_chunk(coded, id, data);
    pkt.length        = pkt.chunk_len;
    pkt.chunk_crc     = SKY_Crc32c(0, data, pkt.chunk_len);
    pkt.payload       = data;
    pkt.payload_crc16 = SKY_Crc16(0, data, pkt.length);
    pkt.block_version = coded->version;
    pkt.content       = coded->content;
    pkt.epoch         = epoch;
    fx_key(pkt.key, coded->number);
    node_serve(node_at(addr), &pkt);
}

/* The satellite to which a chunk of a block belongs, whatever its key. */
static inline SKY_Addr_t home_in(const coded_t *coded, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, coded->number);
    return home_of(SKY_Spread_Server(key, coded->stripe.chunk_total, schedule.placement.servers, id));
}

static inline void put_all(const coded_t *coded)
{
    for (uint32_t id = 0; id < coded->stripe.chunk_total; ++id)
    {
        put_at(home_in(coded, id), coded, id, 0);
    }
}

/* Facts of a block at a satellite. */
static inline SKY_BlockInfo_t info_at(const node_t *node, const coded_t *coded)
{
    SKY_BlockInfo_t info = {.held = 0};
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, coded->number);
    (void)SKY_Store_Block(&node->store, SKY_Store_Find(&node->store, coded->tenant, key), &info);
    return info;
}

/* Chunks of a block at a satellite; all of them have to be right. */
static inline uint32_t held_at(const node_t *node, const coded_t *coded)
{
    uint8_t  key[SKY_KEY_BYTES];
    uint32_t cursor = 0;
    uint32_t count  = 0;
    uint32_t id;

    fx_key(key, coded->number);
    const uint32_t block = SKY_Store_FindInstance(&node->store, coded->tenant, key, coded->version, coded->content);
    while (SKY_Store_EachChunk(&node->store, block, &cursor, &id))
    {
        uint8_t         data[SLOT_BYTES];
        SKY_ChunkView_t view;

        CHECK_EQ(SKY_Store_Peek(&node->store, block, id, &view), SKY_STATUS_OK);
        CHECK_EQ(view.len, true_chunk(coded, id, data));
        CHECK(memcmp(view.data, data, view.len) == 0);
        CHECK_EQ(view.crc32c, SKY_Crc32c(0, data, view.len));
        CHECK_EQ(view.crc16_from_zero, SKY_Crc16(0, data, view.len));
        ++count;
    }
    return count;
}

static inline uint32_t held(const coded_t *coded)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += held_at(&nodes[i], coded);
    }
    return count;
}

static inline bool is_whole(const coded_t *coded)
{
    uint8_t key[SKY_KEY_BYTES];
    bool    is_here = true;

    fx_key(key, coded->number);
    for (uint32_t id = 0; id < coded->stripe.chunk_total; ++id)
    {
        const SKY_Store_t *store = &node_at(home_in(coded, id))->store;

        is_here = is_here && SKY_Store_Has(store, SKY_Store_Find(store, coded->tenant, key), id);
    }
    return is_here && held(coded) == coded->stripe.chunk_total;
}

/* Sum of a counter over all satellites. */
#define SUM_OF(counter)                                \
    static inline uint64_t counter(void)               \
    {                                                  \
        uint64_t sum = 0;                              \
        for (uint32_t i = 0; i < NODES; ++i)           \
        {                                              \
            sum += nodes[i].svc.core.counters.counter; \
        }                                              \
        return sum;                                    \
    }

SUM_OF(repaired)
SUM_OF(degraded)
SUM_OF(scrubbed)
SUM_OF(gossip_purged)

#endif
