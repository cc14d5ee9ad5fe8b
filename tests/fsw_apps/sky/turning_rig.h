/**
 * @file
 * A whole constellation of services under virtual time: packets between satellites take a random time, are lost and repeated; the
 * ground's reach their satellite at once. Every chunk that was ever put is known, and where it should be.
 */
#ifndef TURNING_RIG_H
#define TURNING_RIG_H

#define PLANES 4u
#define SLOTS  5u

#include "nodes.h"

#define STORE_SLOTS  256u
#define CHUNK_BYTES  336u
#define PACKET_BYTES SKY_SERVICE_PACKET_MIN /* a full chunk takes two */
#define PACKETS      8192u
#define STEP_US      2000u
#define START_US     5000000u
#define BLOCKS       32u
#define ROWS         32u
#define ROW_US       10000000u

static flying_t          packets[PACKETS];
static uint32_t          packet_count;
static uint32_t          to_ground; /* packets, and the status of the last */
static SKY_Status_t      last_status;
static uint64_t          random_state;
static uint32_t          loss_percent, repeat_percent, jitter_us;
static SKY_ScheduleRow_t rows[ROWS];
static SKY_Schedule_t    schedule;
static fx_block_t        blocks[BLOCKS];
static uint32_t          block_count;
static uint32_t          holder[BLOCKS][64]; /* where a chunk was seen last */

static inline bool sat_holds(const node_t *sat, const fx_block_t *block, uint32_t id)
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
    const SKY_StoreCfg_t store = {CHUNK_BYTES, 2u * STORE_SLOTS};
    SKY_ServiceCfg_t     cfg   = {.packet_bytes = PACKET_BYTES, .credit = 8, .part_lifetime_ms = 500};

    now_us         = START_US;
    packet_count   = 0;
    random_state   = seed * 0x9E3779B97F4A7C15ull + 1u;
    loss_percent   = 0;
    repeat_percent = 0;
    jitter_us      = 0;
    block_count    = 0;
    for (uint32_t i = 0; i < NODES; ++i)
    {
        node_t *sat = &nodes[i];

        cfg.self.plane = (uint16_t)(i / SLOTS + 1u);
        cfg.self.slot  = (uint16_t)(i % SLOTS + 1u);
        sat->skew_us   = fx_below(&random_state, late_us + 1u);
        node_init(sat, &store, &cfg, seed + i, fx_random(&random_state));
    }
}

/* Rows of ROW_US each, from centre (2, 3). */
static inline void step_to(uint32_t row, int32_t plane, int32_t slot)
{
    rows[row - 1].time_ms      = (row - 1u) * (ROW_US / 1000u);
    rows[row - 1].centre.plane = plane;
    rows[row - 1].centre.slot  = slot;
}

static inline SKY_Migration_t *handover_of(node_t *sat)
{
    return &sat->svc.migrations.jobs[SKY_SERVICE_MIGRATIONS];
}

/* Lay @p servers out around the first of @p count rows, and tell every satellite. */
static inline void follow(SKY_LayoutId_t layout, uint32_t servers, uint32_t count)
{
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, layout, servers, rows, count, START_US));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, &schedule));
        nodes[i].next_us = 0; /* its shell polls it soon */
    }
}

static void node_send(const SKY_Out_t *out)
{
    const uint32_t copies = fx_below(&random_state, 100) < repeat_percent ? 2u : 1u;

    if (out->pkt.dst.plane == 0)
    {
        ++to_ground;
        last_status = out->pkt.status;
        return;
    }
    for (uint32_t i = 0; i < copies; ++i)
    {
        if (fx_below(&random_state, 100) < loss_percent)
        {
            continue;
        }
        CHECK(packet_count < PACKETS - 1u);
        packets[packet_count]       = flying_of(out);
        packets[packet_count].at_us = now_us + STEP_US + fx_below(&random_state, jitter_us + 1u);
        CHECK(packets[packet_count].len <= PACKET_BYTES);
        ++packet_count;
    }
}

static inline void pull_and_poll(node_t *node)
{
    node_pull(node);
    SKY_Service_Poll(&node->svc, node_clock(node), &node->next_us);
    CHECK(node->next_us > node_clock(node));
    node_pull(node);
}

/* A packet of the ground. @return the status of its answer; OK if there is none */
static inline SKY_Status_t ask(SKY_Addr_t dst, SKY_Packet_t *pkt)
{
    to_ground   = 0;
    last_status = SKY_STATUS_OK;
    pkt->dst    = dst;
    node_serve(node_at(dst), pkt);
    pull_and_poll(node_at(dst));
    return last_status;
}

static inline bool is_listed(const node_t *sat, const uint8_t *key, uint32_t id)
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
            for (uint32_t looks = 0; looks < NODES && !is_listed(&nodes[holder[i][id]], key, id); ++looks)
            {
                holder[i][id] = (holder[i][id] + 1u) % NODES;
            }
            if (!is_listed(&nodes[holder[i][id]], key, id))
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
        const flying_t packet = packets[i];

        if (packet.at_us > now_us)
        {
            continue;
        }
        packets[i] = packets[--packet_count]; /* of those that come on the way none is due */
        node_hear(&packet);
        if (!node_at(packet.dst)->deaf)
        {
            pull_and_poll(node_at(packet.dst));
            arrived = true;
        }
    }
    for (uint32_t i = 0; i < NODES; ++i)
    {
        if (node_clock(&nodes[i]) >= nodes[i].next_us)
        {
            pull_and_poll(&nodes[i]);
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

/* The server of a chunk. */
static inline uint32_t server_of(const fx_block_t *block, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, block->number);
    return SKY_Spread_Server(key, block->chunk_total, schedule.placement.servers, id);
}

/* The satellite to which the window of @p row has a chunk belong. */
static inline SKY_Addr_t home_of(const fx_block_t *block, uint32_t row, uint32_t id)
{
    return SKY_Schedule_Server(&schedule, row, server_of(block, id));
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
        put_at(home_of(block, row, id), block, id, epoch);
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
        for (uint32_t i = 0; i < NODES; ++i)
        {
            good = good && sat_holds(&nodes[i], block, id) == (&nodes[i] == node_at(home_of(block, row, id)));
        }
    }
    return good;
}

/* MIGRATE of a share of a block, or of all blocks (NULL). */
static inline SKY_Status_t migrate_share(SKY_Addr_t from, const fx_block_t *block, uint32_t share, SKY_Addr_t target,
                                         uint32_t epoch, uint32_t deadline_ms)
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
    pkt.chunk_id    = share;
    pkt.payload     = payload;
    pkt.length      = sizeof(payload);
    if (block != NULL)
    {
        fx_key(pkt.key, block->number);
    }
    return ask(from, &pkt);
}

/* MIGRATE of a block, or of all (NULL). */
static inline SKY_Status_t migrate(SKY_Addr_t from, const fx_block_t *block, SKY_Addr_t target, uint32_t epoch,
                                   uint32_t deadline_ms)
{
    return migrate_share(from, block, 0, target, epoch, deadline_ms);
}

/* A counter of a satellite's service, by its number in STATS. */
static inline uint64_t stat(node_t *sat, uint32_t index)
{
    uint64_t counters[SKY_STATS_KVC_COUNT];

    SKY_Service_Stats(&sat->svc, node_clock(sat), counters);
    return counters[index];
}

/* The satellite that has a server's place in a row. */
static inline node_t *server(uint32_t row, uint32_t number)
{
    return node_at(SKY_Schedule_Server(&schedule, row, number));
}

#endif
