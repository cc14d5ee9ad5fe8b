/**
 * @file
 * A small constellation of services and a network that brings each packet to its destination, for what satellites say to each
 * other: gossip and scrub.
 */
#ifndef CONSTELLATION_RIG_H
#define CONSTELLATION_RIG_H

#define PLANES 5u
#define SLOTS  7u

#include "nodes.h"

#define FLEET_MAX 4096u
#define CHUNK     100u
#define LIFE_MS   500u                         /* of parts */
#define QUIET_US  (1001000u + LIFE_MS * 1000u) /* after a PUT: words about its block count again */

static flying_t fleet[FLEET_MAX]; /* packets on their way, first in, first out */
static uint32_t fleet_first, fleet_count;
static uint32_t scrub_period_ms; /* of satellites that are opened from now on */

static const SKY_Addr_t centre = {3, 4};

static SKY_Addr_t stuck;         /* what it would hand over is lost */
static bool       asks_arrivals; /* else questions whether all has arrived are lost: they are on their way all the time */

static uint32_t sent_count;            /* packets that have gone on their way */
static uint32_t lost_at  = UINT32_MAX; /* the one with this number is lost, */
static uint32_t lost_end = UINT32_MAX; /* and those after it before this one */

/* What satellites say goes on its way; what they say to the ground is lost. */
static void node_send(const SKY_Out_t *out)
{
    const flying_t flying = flying_of(out);
    SKY_Packet_t   pkt;

    CHECK_EQ(SKY_Packet_Decode(flying.bytes, flying.len, &pkt), SKY_STATUS_OK);
    const bool is_arrivals = pkt.is_request && pkt.request_id == node_at(pkt.src)->svc.arrivals.request_id;

    if (out->pkt.dst.plane != 0 && (asks_arrivals || !is_arrivals) &&
        !(pkt.is_request && pkt.op != SKY_OP_STATS && SKY_Addr_Equal(pkt.src, stuck)))
    {
        ++sent_count;
        if (sent_count <= lost_at || sent_count > lost_end)
        {
            fleet[(fleet_first + fleet_count++) % FLEET_MAX] = flying;
        }
        CHECK(fleet_count < FLEET_MAX);
    }
}

static inline void node_open(node_t *node, SKY_Addr_t self, uint32_t slots, bool gossip)
{
    const SKY_StoreCfg_t store = {CHUNK, slots};
    SKY_ServiceCfg_t     cfg   = {.self             = self,
                                  .packet_bytes     = 1472,
                                  .credit           = 20,
                                  .part_lifetime_ms = LIFE_MS,
                                  .gossip           = gossip,
                                  .scrub_period_ms  = scrub_period_ms};

    node_init(node, &store, &cfg, 3, self.plane * 1000u + self.slot);
}

static inline void sky_open(uint32_t slots, bool gossip)
{
    fleet_count = 0;
    now_us      = 5000000;
    for (uint16_t plane = 1; plane <= PLANES; ++plane)
    {
        for (uint16_t slot = 1; slot <= SLOTS; ++slot)
        {
            node_open(node_at((SKY_Addr_t){plane, slot}), (SKY_Addr_t){plane, slot}, slots, gossip);
        }
    }
}

static inline void sky_close(void)
{
    for (uint32_t i = 0; i < NODES; ++i)
    {
        free(nodes[i].memory);
    }
}

/* The oldest packet arrives. */
static inline void sky_deliver(void)
{
    const flying_t flying = fleet[fleet_first];

    fleet_first = (fleet_first + 1u) % FLEET_MAX;
    --fleet_count;
    node_hear(&flying);
}

/* @return packets that were on their way until none was left */
static inline uint32_t sky_settle(void)
{
    uint32_t count = 0;

    while (fleet_count > 0 && count < 100000)
    {
        sky_deliver();
        ++count;
    }
    CHECK_EQ(fleet_count, 0);
    return count;
}

/* Time goes on for all, in steps; packets take none. */
static inline void sky_run(uint64_t for_us, uint64_t step_us)
{
    for (uint64_t end_us = now_us + for_us; now_us < end_us;)
    {
        uint64_t next_us;

        now_us += step_us;
        for (uint32_t i = 0; i < NODES; ++i)
        {
            SKY_Service_Poll(&nodes[i].svc, now_us, &next_us);
            node_pull(&nodes[i]);
        }
        (void)sky_settle();
    }
}

static inline fx_block_t a_block(uint32_t number, uint32_t chunks)
{
    const fx_block_t block = {number, 0, chunks, CHUNK, chunks * CHUNK};

    return block;
}

static inline void sky_put(SKY_Addr_t addr, const fx_block_t *block, uint32_t id)
{
    uint8_t      data[CHUNK];
    SKY_Packet_t pkt;

    fx_put(block, id, data, &pkt);
    node_serve(node_at(addr), &pkt);
}

/* Let a satellite ask, and catch its question, which is the only packet. @return an answer to it: not a request, and from who was asked */
static inline SKY_Packet_t sky_catch(SKY_Addr_t at, uint8_t op)
{
    SKY_Packet_t pkt;
    uint64_t     next_us;

    SKY_Service_Poll(&node_at(at)->svc, now_us, &next_us);
    CHECK(next_us > now_us);
    fleet_count = 0;
    node_pull(node_at(at));
    CHECK_EQ(fleet_count, 1);
    CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &pkt), SKY_STATUS_OK);
    CHECK_EQ(pkt.op, op);
    fleet_count    = 0;
    pkt.is_request = false;
    pkt.src        = pkt.dst;
    pkt.dst        = at;
    return pkt;
}

/* Server 0 .. 8 of a layout of 3 x 3 around the centre. */
static inline SKY_Addr_t server(uint32_t number)
{
    const SKY_Addr_t addr = {(uint16_t)(centre.plane - 1u + number / 3u), (uint16_t)(centre.slot - 1u + number % 3u)};

    return addr;
}

/* The satellite to which a chunk of a block belongs. */
static inline SKY_Addr_t home_of(const fx_block_t *block, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, block->number);
    return server(SKY_Spread_Server(key, block->chunk_total, 9, id));
}

static inline void sky_put_all(const fx_block_t *block)
{
    for (uint32_t id = 0; id < block->chunk_total; ++id)
    {
        sky_put(home_of(block, id), block, id);
    }
}

/* The same as a block of rows of seven and two: all chunks are full ones. */
static inline void sky_put_coded(const fx_block_t *block)
{
    for (uint32_t id = 0; id < block->chunk_total; ++id)
    {
        uint8_t      data[CHUNK];
        SKY_Packet_t pkt;

        fx_put(block, id, data, &pkt);
        pkt.code_k      = 7;
        pkt.code_m      = 2;
        pkt.code_scheme = SKY_CODE_CAUCHY;
        pkt.block_len   = block->block_len - (block->chunk_total + 8u) / 9u * 2u * CHUNK;
        node_serve(node_at(home_of(block, id)), &pkt);
    }
}

/* Complete chunks of a block at one satellite. */
static inline uint32_t held_at(SKY_Addr_t addr, const fx_block_t *block)
{
    const node_t   *node = node_at(addr);
    SKY_BlockInfo_t info = {.held = 0};
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, block->number);
    return SKY_Store_Block(&node->store, SKY_Store_Find(&node->store, 0, key), &info) == SKY_STATUS_OK ? info.held : 0;
}

static inline uint32_t held(const fx_block_t *block)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += held_at(nodes[i].svc.core.cfg.self, block);
    }
    return count;
}

#endif
