/**
 * @file
 * A block of which one share is lost, and packets that are changed on their way, for the tests of what a census and a repair are answered.
 */
#ifndef REPAIR_ANSWERS_RIG_H
#define REPAIR_ANSWERS_RIG_H

#include "repair_rig.h"

static coded_t    block; /* of three rows on nine servers, two of which may be lost */
static SKY_Addr_t victim;
static uint32_t   met, limit; /* packets that were met, and how many of them are changed */
static uint32_t   kind;

/* All satellites hold their shares but server 4. Server 3 asks about it. */
static inline void open_filled(void)
{
    block = a_coded(1, 16u * 100u + 30u, 100, 7, 2);
    open_sky(SKY_LAYOUT_ROTATION, 9, 64, true);
    put_all(&block);
    CHECK(is_whole(&block));
    run(LIFE_MS * 1000u);
    restart(home_of(4));
    victim = home_of(6);
    met    = 0;
    limit  = UINT32_MAX;
}

static inline void run_until(const node_t *node, SKY_RepairState_t state)
{
    for (uint32_t i = 0; i < 4u * PERIOD_US / STEP_US && node->svc.census.repair.state != state; ++i)
    {
        step();
    }
    CHECK_EQ(node->svc.census.repair.state, state);
}

static inline bool is_of(const SKY_Packet_t *pkt, uint8_t op, bool is_request)
{
    return pkt->op == op && pkt->is_request == is_request && SKY_Addr_Equal(is_request ? pkt->dst : pkt->src, victim) &&
           met++ < limit;
}

#endif
