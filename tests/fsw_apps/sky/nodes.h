/**
 * @file
 * The satellites of a small constellation, PLANES x SLOTS, and packets between them, for the rigs that include this: they say how
 * large the constellation is, and by node_send how packets travel.
 */
#ifndef NODES_H
#define NODES_H

#include "check.h"
#include "fixture.h"
#include "sky_spread.h"

#define NODES        (PLANES * SLOTS)
#define FLYING_BYTES 600u

typedef struct
{
    SKY_Store_t   store;
    SKY_Service_t svc;
    void         *memory;
    bool          deaf;    /* packets to it are lost */
    uint32_t      skew_us; /* its clock is late by so much */
    uint64_t      next_us; /* when it is to be polled, on its clock */
} node_t;

typedef struct
{
    uint64_t   at_us; /* when it arrives, if packets take time */
    SKY_Addr_t dst;
    uint32_t   len;
    uint8_t    bytes[FLYING_BYTES];
} flying_t;

static node_t   nodes[NODES];
static uint64_t now_us;

/* A packet leaves a satellite; to the ground if the destination's plane is 0. */
static void node_send(const SKY_Out_t *out);

static inline node_t *node_at(SKY_Addr_t addr)
{
    return &nodes[(addr.plane - 1u) * SLOTS + addr.slot - 1u];
}

static inline uint64_t node_clock(const node_t *node)
{
    return now_us - node->skew_us;
}

/* It begins with nothing, by the clock that it has. @p cfg: all but the torus */
static inline void node_init(node_t *node, const SKY_StoreCfg_t *store, SKY_ServiceCfg_t *cfg, uint64_t store_seed, uint64_t seed)
{
    const size_t bytes = SKY_Store_MemoryBytes(store);

    free(node->memory);
    node->memory  = malloc(bytes);
    node->deaf    = false;
    node->next_us = UINT64_MAX;
    CHECK(node->memory != NULL && SKY_Store_Init(&node->store, store, node->memory, bytes, store_seed));
    CHECK(SKY_Torus_Init(&cfg->torus, PLANES, SLOTS, false));
    CHECK(SKY_Service_Init(&node->svc, cfg, &node->store, node_clock(node), seed));
}

/* What it says goes on its way. */
static inline void node_pull(node_t *node)
{
    SKY_Out_t out;

    while (SKY_Service_Next(&node->svc, node_clock(node), &out))
    {
        node_send(&out);
    }
}

static inline void node_serve(node_t *node, const SKY_Packet_t *pkt)
{
    SKY_Service_Begin(&node->svc, node_clock(node), pkt);
    node_pull(node);
}

/* A packet that was on its way arrives. */
static inline void node_hear(const flying_t *flying)
{
    node_t      *node = node_at(flying->dst);
    SKY_Packet_t pkt;

    CHECK_EQ(SKY_Packet_Decode(flying->bytes, flying->len, &pkt), SKY_STATUS_OK);
    if (!node->deaf)
    {
        node_serve(node, &pkt);
    }
}

static inline flying_t flying_of(const SKY_Out_t *out)
{
    flying_t flying = {.dst = out->pkt.dst};

    flying.len = fx_join(out, flying.bytes, sizeof(flying.bytes));
    return flying;
}

#endif
