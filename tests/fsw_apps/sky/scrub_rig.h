/**
 * @file
 * A constellation that scrubs, for the tests of sky_service_scrub.c.
 */
#ifndef SCRUB_RIG_H
#define SCRUB_RIG_H

#include "constellation_rig.h"

#define ROOM      64u
#define SERVERS   9u
#define PERIOD_MS 2000u
#define PERIOD_US (PERIOD_MS * 1000u)
#define STEP_US   10000u

static const SKY_ScheduleRow_t rows[] = {{0, {3, 4}}, {100000, {3, 4}}, {101000, {3, 4}}};

static SKY_Schedule_t schedule;
static fx_block_t     block, other;

static inline void follow(node_t *node)
{
    CHECK(SKY_Service_SetSchedule(&node->svc, &schedule));
}

/* All satellites hold their shares of two blocks, whose PUTs are over. */
static inline void open_filled(uint32_t period_ms, bool gossip)
{
    block           = a_block(1, 20);
    other           = a_block(2, 4); /* on the first four servers */
    scrub_period_ms = period_ms;
    sky_open(ROOM, gossip);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, rows, 3, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        CHECK(SKY_Addr_Equal(SKY_Schedule_Server(&schedule, 1, i), server(i)));
    }
    sky_put_all(&block);
    sky_put_all(&other);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(held(&other), 4);
    sky_run(LIFE_MS * 1000u, STEP_US);
}

/* It comes back with nothing. */
static inline void restart(SKY_Addr_t addr)
{
    node_t *node = node_at(addr);

    node_open(node, addr, ROOM, node->svc.core.cfg.gossip);
    follow(node);
}

static inline uint64_t scrubbed(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.core.counters.scrubbed;
    }
    return count;
}

static inline uint64_t unsolicited(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.core.counters.unsolicited;
    }
    return count;
}

#endif
