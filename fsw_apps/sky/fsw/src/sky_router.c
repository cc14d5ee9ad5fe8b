/**
 * @file
 * Routing decisions, and the table of ground hosts.
 */
#include "sky_router.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_endpoint.h"

bool SKY_Router_Init(SKY_Router_t *router, const SKY_Torus_t *torus, SKY_Addr_t self)
{
    if (!SKY_Torus_Contains(torus, self))
    {
        return false;
    }
    (void)memset(router, 0, sizeof(*router));
    router->torus  = *torus;
    router->self   = self;
    router->usable = SKY_ISL_MASK;
    SKY_ASSERT(router->usable >> SKY_ISL_COUNT == 0u);
    return true;
}

void SKY_Router_SetLinkUp(SKY_Router_t *router, SKY_LinkId_t link, bool up)
{
    const uint32_t bit = (1u << link) & SKY_ISL_MASK;

    router->usable = up ? router->usable | bit : router->usable & ~bit;
    SKY_ASSERT((router->usable & ~SKY_ISL_MASK) == 0u);
    if (router->map != NULL)
    {
        SKY_Map_SetOwn(router->map, router->usable);
    }
    SKY_ASSERT(router->map == NULL || (router->map->down[router->map->self] & router->usable) == 0u); /* the map says the same */
}

void SKY_Router_SetMap(SKY_Router_t *router, SKY_Map_t *map)
{
    SKY_ASSERT(map->satellites == (uint32_t)router->torus.planes * router->torus.slots);
    SKY_ASSERT(map->self == (router->self.plane - 1u) * router->torus.slots + router->self.slot - 1u);
    router->map = map;
    SKY_Map_SetOwn(map, router->usable);
}

void SKY_Router_CountDrop(SKY_Router_t *router, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK); /* nothing is dropped without a reason */
    if (status < SKY_STATUS_COUNT)
    {
        ++router->counters.drops[status];
    }
}

static bool IsHost(SKY_Addr_t addr)
{
    return addr.plane == 0u && addr.slot != 0u;
}

static SKY_RouterHost_t *FindHost(SKY_Router_t *router, uint16_t host)
{
    SKY_ASSERT(host != 0u);
    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        SKY_ASSERT(!router->grounds[i].used || router->grounds[i].host != 0u);
        if (router->grounds[i].used && router->grounds[i].host == host)
        {
            return &router->grounds[i];
        }
    }
    return NULL;
}

/* Count the places of an address. Whoever has an address has all its ports. */
static uint32_t PlacesOf(const SKY_Router_t *router, uint64_t endpoint)
{
    const uint64_t address = SKY_Endpoint_Address(endpoint);
    uint32_t       count   = 0;

    SKY_ASSERT(endpoint != 0u);
    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        const SKY_RouterHost_t *ground = &router->grounds[i];

        count += ground->used && SKY_Endpoint_Address(ground->endpoint) == address ? 1u : 0u;
    }
    SKY_ASSERT(count <= SKY_ROUTER_GROUNDS);
    return count;
}

/* Return a free entry, or else the one unheard for longest of the address that has most places. */
static SKY_RouterHost_t *FindPlace(SKY_Router_t *router)
{
    SKY_RouterHost_t *place = &router->grounds[0];
    uint32_t          most  = 0;

    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        SKY_RouterHost_t *ground = &router->grounds[i];

        if (!ground->used)
        {
            return ground;
        }
        const uint32_t count = PlacesOf(router, ground->endpoint);

        if (count > most || (count == most && ground->heard_us < place->heard_us))
        {
            place = ground;
            most  = count;
        }
    }
    SKY_ASSERT(place >= &router->grounds[0]);
    SKY_ASSERT(place < &router->grounds[SKY_ROUTER_GROUNDS]);
    return place;
}

/* Note that responses to @p host are to come to @p endpoint. @return false if another host has the number */
static bool Learn(SKY_Router_t *router, uint64_t now_us, uint16_t host, uint64_t endpoint)
{
    SKY_RouterHost_t *ground = FindHost(router, host);
    SKY_ASSERT(host != 0u);
    SKY_ASSERT(endpoint != 0u);

    if (ground != NULL && ground->endpoint != endpoint && now_us - ground->heard_us < SKY_ROUTER_GROUND_HOLD_US)
    {
        return false;
    }
    if (ground == NULL)
    {
        ground = FindPlace(router);
    }
    SKY_ASSERT(host != 0u);
    SKY_ASSERT(!ground->used || ground->host == host || FindHost(router, host) == NULL); /* a host has one entry */
    ground->host     = host;
    ground->endpoint = endpoint;
    ground->heard_us = now_us;
    ground->used     = true;
    return true;
}

/* Return true if the satellite that a PUT at a stand-in names as home is one of the constellation, or none is named. */
static bool HomeIsSound(const SKY_Router_t *router, const SKY_Packet_t *pkt)
{
    return pkt->home.plane == 0u || SKY_Torus_Contains(&router->torus, pkt->home);
}

static SKY_Status_t AdmitFromGround(const SKY_Router_t *router, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(SKY_Torus_Contains(&router->torus, router->self));
    if (!pkt->is_request)
    {
        return SKY_STATUS_REFUSED;
    }
    if (!IsHost(pkt->src) || !SKY_Torus_Contains(&router->torus, pkt->dst) || !HomeIsSound(router, pkt))
    {
        return SKY_STATUS_BAD_ADDRESS;
    }
    return SKY_STATUS_OK;
}

/* Return true if a response to this packet could find its way. A host asks and never answers, and is reached through its
 * gateway. */
static bool SourceIsSound(const SKY_Router_t *router, const SKY_Packet_t *pkt)
{
    return SKY_Torus_Contains(&router->torus, pkt->src) ||
           (IsHost(pkt->src) && pkt->is_request && SKY_Torus_Contains(&router->torus, pkt->gateway));
}

static bool DestinationIsSound(const SKY_Router_t *router, const SKY_Packet_t *pkt)
{
    return SKY_Torus_Contains(&router->torus, pkt->dst) ||
           (IsHost(pkt->dst) && !pkt->is_request && SKY_Torus_Contains(&router->torus, pkt->gateway));
}

static SKY_Status_t Forward(const SKY_Router_t *router, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                            SKY_Addr_t target, SKY_Route_t *route)
{
    uint32_t hop_limit = pkt->hop_limit < SKY_LIMIT_HOP_LIMIT ? pkt->hop_limit : SKY_LIMIT_HOP_LIMIT;
    SKY_ASSERT(!SKY_Addr_Equal(target, router->self)); /* a packet for this satellite is delivered instead */

    if (hop_limit == 0u)
    {
        return SKY_STATUS_HOP_LIMIT;
    }
    if (router->map != NULL && router->map->exceptions > 0u)
    {
        uint32_t hops;

        route->link = SKY_Map_FirstHop(router->map, now_us, target, &hops);
        hop_limit   = hop_limit < hops + SKY_ROUTER_SLACK ? hop_limit : hops + SKY_ROUTER_SLACK;
        SKY_ASSERT(route->link == SKY_LINK_NONE || hops >= 1u);
    }
    else
    {
        const SKY_Addr_t previous = SKY_Torus_Neighbour(&router->torus, router->self, ingress);

        route->link = SKY_Torus_NextHop(&router->torus, router->self, target, previous, router->usable);
    }
    if (route->link == SKY_LINK_NONE)
    {
        return SKY_STATUS_UNREACHABLE;
    }
    SKY_ASSERT(route->link < SKY_ISL_COUNT);
    SKY_ASSERT((router->usable & (1u << route->link)) != 0u);
    SKY_ASSERT(hop_limit >= 1u);
    route->action    = SKY_ROUTE_FORWARD;
    route->hop_limit = (uint8_t)(hop_limit - 1u);
    SKY_ASSERT(route->hop_limit < pkt->hop_limit); /* every packet ends, because its hop limit falls */
    return SKY_STATUS_OK;
}

/* Route a packet. @param endpoint  of the ground host that sent it, or, for a packet of our own, that it is for; 0: the table
 * knows */
static SKY_Status_t Direct(SKY_Router_t *router, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                           uint64_t endpoint, SKY_Route_t *route)
{
    const bool       to_ground = pkt->dst.plane == 0u;
    const SKY_Addr_t target    = to_ground ? pkt->gateway : pkt->dst;
    SKY_Status_t     status    = SKY_STATUS_OK;

    if (!SKY_Addr_Equal(target, router->self))
    {
        status = Forward(router, now_us, pkt, ingress, target, route);
        if (status == SKY_STATUS_OK && ingress == SKY_LINK_GROUND && !Learn(router, now_us, pkt->src.slot, endpoint))
        {
            route->action = SKY_ROUTE_DROP;
            route->link   = SKY_LINK_NONE;
            status        = SKY_STATUS_REFUSED;
        }
    }
    else if (to_ground)
    {
        const SKY_RouterHost_t *ground = endpoint != 0u ? NULL : FindHost(router, pkt->dst.slot);

        if (endpoint == 0u && ground == NULL)
        {
            return SKY_STATUS_UNREACHABLE;
        }
        SKY_ASSERT(endpoint != 0u || ground->used);
        route->action   = SKY_ROUTE_GROUND;
        route->endpoint = ground == NULL ? endpoint : ground->endpoint;
    }
    else
    {
        route->action = SKY_ROUTE_DELIVER;
    }
    SKY_ASSERT((status == SKY_STATUS_OK) == (route->action != SKY_ROUTE_DROP));
    return status;
}

void SKY_Router_Decide(SKY_Router_t *router, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint,
                       SKY_Route_t *route)
{
    const bool from_ground = ingress == SKY_LINK_GROUND;
    bool       answerable  = pkt->is_request;

    route->action    = SKY_ROUTE_DROP;
    route->link      = SKY_LINK_NONE;
    route->endpoint  = from_ground ? endpoint : 0u;
    route->hop_limit = pkt->hop_limit;
    route->gateway   = from_ground ? router->self : pkt->gateway;

    if (from_ground)
    {
        route->status = AdmitFromGround(router, pkt);
    }
    else if (!SourceIsSound(router, pkt))
    {
        route->status = SKY_STATUS_BAD_ADDRESS;
        answerable    = false;
    }
    else
    {
        route->status = DestinationIsSound(router, pkt) && HomeIsSound(router, pkt) ? SKY_STATUS_OK : SKY_STATUS_BAD_ADDRESS;
    }
    if (route->status == SKY_STATUS_OK)
    {
        route->status = Direct(router, now_us, pkt, ingress, from_ground || ingress == SKY_LINK_NONE ? endpoint : 0u, route);
    }

    switch (route->action)
    {
        case SKY_ROUTE_DELIVER:
            ++router->counters.delivered;
            break;
        case SKY_ROUTE_FORWARD:
            ++router->counters.forwarded;
            break;
        case SKY_ROUTE_GROUND:
            ++router->counters.to_ground;
            break;
        default:
            SKY_ASSERT(route->status != SKY_STATUS_OK); /* nothing is dropped without a reason */
            route->action = answerable ? SKY_ROUTE_ANSWER : SKY_ROUTE_DROP;
            SKY_Router_CountDrop(router, route->status);
            break;
    }
    SKY_ASSERT(route->action != SKY_ROUTE_FORWARD || route->status == SKY_STATUS_OK);
    SKY_ASSERT(route->action != SKY_ROUTE_GROUND || route->endpoint != 0u);
    SKY_ASSERT(route->action != SKY_ROUTE_ANSWER || pkt->is_request); /* a response is never answered */
}
