/**
 * @file
 * A constellation of the paper's shape, and packets that routers decide about.
 */
#ifndef ROUTER_RIG_H
#define ROUTER_RIG_H

#include "sky_router.h"

#include <string.h>

#include "check.h"

#define PLANES     5u
#define SLOTS      19u
#define SATELLITES ((size_t)PLANES * SLOTS)
#define NOW_US     UINT64_C(1000000000)

static SKY_Torus_t torus;
static SKY_Route_t route;

static inline SKY_Packet_t Packet(bool is_request, SKY_Addr_t src, SKY_Addr_t dst)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = is_request;
    pkt.apid       = SKY_APID_KVC;
    pkt.op         = SKY_OP_GET;
    pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt.src        = src;
    pkt.dst        = dst;
    return pkt;
}

static inline SKY_Addr_t Satellite(uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t addr = {(uint16_t)plane, (uint16_t)slot};

    return addr;
}

#endif
