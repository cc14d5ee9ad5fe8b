/**
 * @file
 * A whole constellation of services under virtual time: packets between satellites take a random time, are lost and repeated; the
 * ground's reach their satellite at once. Every chunk that was ever put is known, and where it should be.
 */
#ifndef TURNING_RIG_H
#define TURNING_RIG_H

#include "check.h"
#include "fixture.h"

#define PLANES       4u
#define SLOTS        5u
#define SATELLITES   (PLANES * SLOTS)
#define STORE_SLOTS  256u
#define CHUNK_BYTES  300u
#define PACKET_BYTES SKY_SERVICE_PACKET_MIN /* a full chunk takes two */
#define PACKETS      8192u
#define STEP_US      2000u
#define START_US     5000000u
#define BLOCKS       32u
#define ROWS         32u

typedef struct
{
    SKY_Store_t   store;
    SKY_Service_t svc;
    bool          silent;  /* hears nothing */
    uint32_t      skew_us; /* its clock is late by so much */
    uint64_t      next_us; /* on its clock */
    uint64_t      memory[(STORE_SLOTS * (CHUNK_BYTES + 256u)) / 8u];
} satellite_t;

typedef struct
{
    uint64_t   at_us;
    SKY_Addr_t dst;
    uint32_t   len;
    uint8_t    bytes[PACKET_BYTES];
} packet_t;

static satellite_t       sats[SATELLITES];
static packet_t          packets[PACKETS];
static uint32_t          packet_count;
static uint32_t          to_ground; /* packets, and the status of the last */
static SKY_Status_t      last_status;
static uint64_t          now_us;
static uint64_t          random_state;
static uint32_t          loss_percent, repeat_percent, jitter_us;
static SKY_ScheduleRow_t rows[ROWS];
static SKY_Schedule_t    schedule;
static fx_block_t        blocks[BLOCKS];
static uint32_t          block_count;
static uint32_t          holder[BLOCKS][64]; /* where a chunk was seen last */

static inline satellite_t *at(SKY_Addr_t addr)
{
    return &sats[(addr.plane - 1u) * SLOTS + addr.slot - 1u];
}

static inline uint64_t clock_of(const satellite_t *sat)
{
    return now_us - sat->skew_us;
}

static inline bool sat_holds(const satellite_t *sat, const fx_block_t *block, uint32_t id)
{
    uint8_t         key[SKY_KEY_BYTES], data[CHUNK_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, block->number);
    if (SKY_Store_Peek(&sat->store, SKY_Store_Find(&sat->store, 0, key), id, &view) != SKY_STATUS_OK)
    {
        return false;
    }
    fx_fill(block, id, data);
    CHECK(view.len == fx_len(block, id) && memcmp(view.data, data, view.len) == 0);
    return true;
}

static inline void open_constellation(uint64_t seed, uint32_t late_us)
{
    const SKY_StoreCfg_t store = {CHUNK_BYTES, STORE_SLOTS, STORE_SLOTS};
    SKY_ServiceCfg_t     cfg   = {.packet_bytes = PACKET_BYTES, .credit = 8, .part_lifetime_ms = 500};

    CHECK(SKY_Torus_Init(&cfg.torus, PLANES, SLOTS, false));
    now_us         = START_US;
    packet_count   = 0;
    random_state   = seed * 0x9E3779B97F4A7C15ull + 1u;
    loss_percent   = 0;
    repeat_percent = 0;
    jitter_us      = 0;
    block_count    = 0;
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        satellite_t *sat = &sats[i];

        cfg.self.plane = (uint16_t)(i / SLOTS + 1u);
        cfg.self.slot  = (uint16_t)(i % SLOTS + 1u);
        sat->silent    = false;
        sat->next_us   = UINT64_MAX;
        sat->skew_us   = fx_below(&random_state, late_us + 1u);
        CHECK(SKY_Store_Init(&sat->store, &store, sat->memory, sizeof(sat->memory), seed + i));
        CHECK(SKY_Service_Init(&sat->svc, &cfg, &sat->store, clock_of(sat), fx_random(&random_state)));
    }
}

/* Lay @p servers out around the first of @p count rows, and tell every satellite. */
static inline void follow(SKY_LayoutId_t layout, uint32_t servers, uint32_t count)
{
    CHECK(SKY_Schedule_Init(&schedule, &sats[0].svc.cfg.torus, layout, servers, rows, count, START_US));
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&sats[i].svc, &schedule));
    }
}

static inline void send(const SKY_Out_t *out)
{
    const uint32_t copies = fx_below(&random_state, 100) < repeat_percent ? 2u : 1u;

    if (out->dst.plane == 0)
    {
        ++to_ground;
        last_status = out->head[SKY_PRIMARY_BYTES + SKY_RESPONSE_SECONDARY_BYTES + SKY_OFF_STATUS];
        return;
    }
    for (uint32_t i = 0; i < copies; ++i)
    {
        packet_t *packet = &packets[packet_count];

        if (fx_below(&random_state, 100) < loss_percent)
        {
            continue;
        }
        CHECK(packet_count < PACKETS - 1u);
        ++packet_count;
        packet->at_us = now_us + STEP_US + fx_below(&random_state, jitter_us + 1u);
        packet->dst   = out->dst;
        packet->len   = out->head_len + out->body_len + SKY_PEC_BYTES;
        CHECK(packet->len <= PACKET_BYTES);
        (void)memcpy(packet->bytes, out->head, out->head_len);
        if (out->body_len > 0)
        {
            (void)memcpy(packet->bytes + out->head_len, out->body, out->body_len);
        }
        (void)memcpy(packet->bytes + out->head_len + out->body_len, out->tail, SKY_PEC_BYTES);
    }
}

static inline void pull_and_poll(satellite_t *sat)
{
    SKY_Out_t out;

    while (SKY_Service_Next(&sat->svc, clock_of(sat), &out))
    {
        send(&out);
    }
    SKY_Service_Poll(&sat->svc, clock_of(sat), &sat->next_us);
    CHECK(sat->next_us > clock_of(sat));
    while (SKY_Service_Next(&sat->svc, clock_of(sat), &out))
    {
        send(&out);
    }
}

/* A packet of the ground. @return the status of its answer; OK if there is none */
static inline SKY_Status_t ask(SKY_Addr_t dst, SKY_Packet_t *pkt)
{
    to_ground   = 0;
    last_status = SKY_STATUS_OK;
    pkt->dst    = dst;
    SKY_Service_Begin(&at(dst)->svc, clock_of(at(dst)), pkt);
    pull_and_poll(at(dst));
    return last_status;
}

static inline bool is_listed(const satellite_t *sat, const uint8_t *key, uint32_t id)
{
    return SKY_Store_Has(&sat->store, SKY_Store_Find(&sat->store, 0, key), id);
}

/* No chunk is gone. It is mostly where it was before. */
static inline void check_all_held(void)
{
    for (uint32_t i = 0; i < block_count; ++i)
    {
        uint8_t key[SKY_KEY_BYTES];

        fx_key(key, blocks[i].number);
        for (uint32_t id = 0; id < blocks[i].chunk_total; ++id)
        {
            for (uint32_t looks = 0; looks < SATELLITES && !is_listed(&sats[holder[i][id]], key, id); ++looks)
            {
                holder[i][id] = (holder[i][id] + 1u) % SATELLITES;
            }
            if (!is_listed(&sats[holder[i][id]], key, id))
            {
                CHECK(!"a chunk is nowhere");
            }
        }
    }
}

/* One step of time: what is due arrives, in any order; satellites whose time has come act. */
static inline void step(void)
{
    bool arrived = false;

    now_us += STEP_US;
    for (uint32_t i = packet_count; i-- > 0;)
    {
        const packet_t packet = packets[i];
        SKY_Packet_t   pkt;

        if (packet.at_us > now_us)
        {
            continue;
        }
        packets[i] = packets[--packet_count]; /* of those that come on the way none is due */
        if (!at(packet.dst)->silent)
        {
            CHECK_EQ(SKY_Packet_Decode(packet.bytes, packet.len, &pkt), SKY_STATUS_OK);
            SKY_Service_Begin(&at(packet.dst)->svc, clock_of(at(packet.dst)), &pkt);
            pull_and_poll(at(packet.dst));
            arrived = true;
        }
    }
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        if (clock_of(&sats[i]) >= sats[i].next_us)
        {
            pull_and_poll(&sats[i]);
        }
    }
    if (arrived) /* by time alone nothing goes */
    {
        check_all_held();
    }
}

static inline void run_for(uint64_t duration_us)
{
    const uint64_t end_us = now_us + duration_us;

    while (now_us < end_us)
    {
        step();
    }
}

/* Put a chunk at a satellite. */
static inline void put_at(SKY_Addr_t dst, const fx_block_t *block, uint32_t id, uint32_t epoch)
{
    uint8_t      data[CHUNK_BYTES];
    SKY_Packet_t pkt;

    fx_put(block, id, data, &pkt);
    pkt.epoch = epoch;
    if (pkt.length > 100) /* as the link would have it */
    {
        const uint32_t half = pkt.length / 2u + 1u;
        SKY_Packet_t   part = pkt;

        fx_part(&part, 0, half);
        CHECK_EQ(ask(dst, &part), SKY_STATUS_OK);
        fx_part(&pkt, half, pkt.length - half);
    }
    CHECK_EQ(ask(dst, &pkt), SKY_STATUS_OK);
}

/* Put a new block where the window of @p row has it. */
static inline const fx_block_t *put_block(uint32_t chunks, uint32_t row, uint32_t epoch)
{
    fx_block_t *block = &blocks[block_count];

    CHECK(block_count < BLOCKS && chunks <= 64);
    block->number      = 100u + block_count;
    block->version     = 0;
    block->chunk_total = chunks;
    block->chunk_len   = CHUNK_BYTES;
    block->block_len   = chunks * CHUNK_BYTES - 7u;
    for (uint32_t id = 0; id < chunks; ++id)
    {
        put_at(SKY_Schedule_Server(&schedule, row, id), block, id, epoch);
        holder[block_count][id] = 0;
    }
    ++block_count;
    return block;
}

/* Is every chunk exactly where the window of @p row has it? */
static inline bool is_at_home(const fx_block_t *block, uint32_t row)
{
    bool good = true;

    for (uint32_t id = 0; id < block->chunk_total; ++id)
    {
        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            good = good && sat_holds(&sats[i], block, id) == (&sats[i] == at(SKY_Schedule_Server(&schedule, row, id)));
        }
    }
    return good;
}

/* MIGRATE of a block, or of all (NULL). */
static inline SKY_Status_t migrate(SKY_Addr_t from, const fx_block_t *block, SKY_Addr_t target, uint32_t epoch,
                                   uint32_t deadline_ms)
{
    const uint8_t payload[SKY_MIGRATE_BYTES] = {0, (uint8_t)target.plane, 0, (uint8_t)target.slot};
    SKY_Packet_t  pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = true;
    pkt.apid        = SKY_APID_KVC;
    pkt.seq_flags   = SKY_SEQ_WHOLE;
    pkt.op          = SKY_OP_MIGRATE;
    pkt.src.slot    = 77;
    pkt.epoch       = epoch;
    pkt.deadline_ms = deadline_ms;
    pkt.payload     = payload;
    pkt.length      = sizeof(payload);
    if (block != NULL)
    {
        fx_key(pkt.key, block->number);
    }
    return ask(from, &pkt);
}

#endif
