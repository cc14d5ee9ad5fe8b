/* The router: admission, the table of ground hosts under attack, gateways, and hop limits. */
#include "router_rig.h"
#include "sky_endpoint.h"

#define ENDPOINT UINT64_C(0x7F0000010000)

static SKY_Router_t router;

static const SKY_Addr_t self = {3, 10};

static void Start(void)
{
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    CHECK(SKY_Router_Init(&router, &torus, self));
}

static SKY_Addr_t Host(uint32_t number)
{
    const SKY_Addr_t addr = {0, (uint16_t)number};

    return addr;
}

/* A PUT to this satellite, which stands in for another one. */
static SKY_Packet_t PutOf(SKY_Addr_t src, SKY_Addr_t home)
{
    SKY_Packet_t pkt = Packet(true, src, self);

    pkt.op   = SKY_OP_PUT;
    pkt.home = home;
    return pkt;
}

static void Decide(const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint)
{
    (void)memset(&route, 0xA5, sizeof(route));
    SKY_Router_Decide(&router, NOW_US, pkt, ingress, endpoint, &route);
}

/* A request from the ground to another satellite at a time. */
static SKY_RouteAction_t Ask(uint64_t now_us, uint32_t host, uint64_t endpoint)
{
    const SKY_Packet_t pkt = Packet(true, Host(host), Satellite(3, 12));

    SKY_Router_Decide(&router, now_us, &pkt, SKY_LINK_GROUND, endpoint, &route);
    return route.action;
}

/* Where does a response to this host go? 0: nowhere. */
static uint64_t EndpointOf(uint32_t host)
{
    SKY_Packet_t pkt = Packet(false, self, Host(host));

    pkt.gateway = self;
    Decide(&pkt, SKY_LINK_NONE, 0);
    return route.action == SKY_ROUTE_GROUND ? route.endpoint : 0u;
}

static void Limits(void)
{
    Start();
    CHECK(!SKY_Router_Init(&router, &torus, Satellite(6, 1)));
    CHECK(!SKY_Router_Init(&router, &torus, Host(1)));
}

static void FromTheGround(void)
{
    SKY_Packet_t pkt = Packet(true, Host(7), self);

    Start();
    pkt.gateway = Satellite(1, 1); /* claims another gateway */
    Decide(&pkt, SKY_LINK_GROUND, ENDPOINT);
    CHECK_EQ(route.action, SKY_ROUTE_DELIVER);
    CHECK_EQ(route.status, SKY_STATUS_OK);
    CHECK(SKY_Addr_Equal(route.gateway, self));
    CHECK_EQ(route.endpoint, ENDPOINT);
    CHECK_EQ(router.counters.delivered, 1);
    CHECK_EQ(EndpointOf(7), 0); /* nothing has to come back through the table */

    /* The answer goes straight to where the request came from. */
    pkt         = Packet(false, self, Host(7));
    pkt.gateway = self;
    Decide(&pkt, SKY_LINK_NONE, ENDPOINT + 3u);
    CHECK_EQ(route.action, SKY_ROUTE_GROUND);
    CHECK_EQ(route.endpoint, ENDPOINT + 3u);
    CHECK_EQ(router.counters.to_ground, 1);
    Decide(&pkt, SKY_LINK_NORTH, ENDPOINT + 3u); /* not of our own: only the table knows */
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    pkt.gateway = Satellite(3, 12);
    Decide(&pkt, SKY_LINK_NONE, ENDPOINT + 3u); /* not our ground */
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD);
    CHECK_EQ(route.endpoint, 0);

    pkt = Packet(true, Host(7), Satellite(3, 12));
    Decide(&pkt, SKY_LINK_GROUND, ENDPOINT);
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD);
    CHECK_EQ(route.link, SKY_LINK_EAST);
    CHECK_EQ(route.hop_limit, SKY_LIMIT_HOP_LIMIT - 1u);
    CHECK(SKY_Addr_Equal(route.gateway, self));
    CHECK_EQ(router.counters.forwarded, 2);
    CHECK_EQ(EndpointOf(7), ENDPOINT);
    CHECK_EQ(router.counters.to_ground, 2);

    pkt.hop_limit = 0; /* does not leave, so nothing comes back */
    pkt.src       = Host(8);
    Decide(&pkt, SKY_LINK_GROUND, ENDPOINT);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(EndpointOf(8), 0);
}

static void CheckRefusedFromGround(SKY_Packet_t pkt, SKY_Status_t status, SKY_RouteAction_t action)
{
    const uint64_t before = router.counters.drops[status];

    Decide(&pkt, SKY_LINK_GROUND, ENDPOINT);
    CHECK_EQ(route.action, action);
    CHECK_EQ(route.status, status);
    CHECK_EQ(route.endpoint, ENDPOINT); /* the answer goes to who sent it, not to whom it claims to be from */
    CHECK_EQ(router.counters.drops[status], before + 1u);
}

static void SpoofsFromTheGround(void)
{
    Start();
    CheckRefusedFromGround(Packet(true, Satellite(1, 1), self), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(Packet(true, Host(0), self), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(Packet(true, Host(7), Host(8)), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(Packet(true, Host(7), Satellite(6, 1)), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(Packet(true, Host(7), Satellite(1, 20)), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(PutOf(Host(7), Satellite(6, 1)), SKY_STATUS_BAD_ADDRESS, SKY_ROUTE_ANSWER);
    CheckRefusedFromGround(Packet(false, Host(7), Host(8)), SKY_STATUS_REFUSED, SKY_ROUTE_DROP);      /* a forged answer */
    CheckRefusedFromGround(Packet(false, Satellite(1, 1), self), SKY_STATUS_REFUSED, SKY_ROUTE_DROP); /* another */
    CHECK_EQ(EndpointOf(7), 0); /* nobody was learnt from any of it */
    CHECK_EQ(EndpointOf(0), 0);
}

static void BadAddressesOverLinks(void)
{
    SKY_Packet_t pkt;

    Start();
    pkt = Packet(true, Satellite(9, 9), self); /* nobody to answer */
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    CHECK_EQ(route.status, SKY_STATUS_BAD_ADDRESS);
    pkt = Packet(true, Host(7), self); /* no gateway, no way home */
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    pkt.gateway = Satellite(2, 2);
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DELIVER);
    CHECK(SKY_Addr_Equal(route.gateway, Satellite(2, 2)));
    pkt.is_request = false; /* a host has nothing to answer */
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    pkt = Packet(true, Host(0), self);
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);

    pkt = Packet(true, Satellite(1, 1), Satellite(1, 20));
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_BAD_ADDRESS);
    CHECK_EQ(route.endpoint, 0);
    pkt         = Packet(true, Satellite(1, 1), Host(7)); /* nobody asks a host */
    pkt.gateway = self;
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_BAD_ADDRESS);
    pkt = Packet(false, Satellite(1, 1), Host(0));
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    pkt = Packet(false, Satellite(1, 1), Host(7)); /* gateway {0,0} */
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    CHECK_EQ(router.counters.drops[SKY_STATUS_BAD_ADDRESS], 8);
    pkt = PutOf(Satellite(1, 1), Satellite(5, 20));
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_BAD_ADDRESS);
    pkt = PutOf(Satellite(1, 1), Satellite(5, 19));
    Decide(&pkt, SKY_LINK_NORTH, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DELIVER);
}

static void ResponsesFindTheirGateway(void)
{
    SKY_Packet_t pkt = Packet(false, Satellite(3, 12), Host(7));

    Start();
    pkt.gateway = Satellite(3, 8);
    Decide(&pkt, SKY_LINK_EAST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD);
    CHECK_EQ(route.link, SKY_LINK_WEST);
    CHECK(SKY_Addr_Equal(route.gateway, Satellite(3, 8))); /* nobody on the way touches it */

    pkt.gateway = self; /* ours, but we never heard of host 7 */
    Decide(&pkt, SKY_LINK_EAST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
    CHECK_EQ(route.status, SKY_STATUS_UNREACHABLE);

    CHECK_EQ(Ask(NOW_US, 7, ENDPOINT), SKY_ROUTE_FORWARD);
    Decide(&pkt, SKY_LINK_EAST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_GROUND);
    CHECK_EQ(route.endpoint, ENDPOINT);
}

static void HopLimits(void)
{
    SKY_Packet_t pkt = Packet(true, Satellite(1, 1), Satellite(3, 12));

    Start();
    pkt.hop_limit = 1;
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD);
    CHECK_EQ(route.hop_limit, 0);
    pkt.hop_limit = 0;
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_HOP_LIMIT);
    pkt.is_request = false;
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP); /* errors are not answered with errors */
    pkt.hop_limit = 255;                    /* more than anybody needs */
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.hop_limit, SKY_LIMIT_HOP_LIMIT - 1u);
    pkt.dst       = self;
    pkt.hop_limit = 0; /* arrived with the last hop */
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DELIVER);
}

static void LinksGoDown(void)
{
    SKY_Packet_t pkt = Packet(true, Satellite(3, 9), Satellite(3, 12));

    Start();
    SKY_Router_SetLinkUp(&router, SKY_LINK_EAST, false);
    SKY_Router_SetLinkUp(&router, SKY_LINK_GROUND, false); /* not an ISL: nothing to it */
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.link, SKY_LINK_SOUTH);
    SKY_Router_SetLinkUp(&router, SKY_LINK_SOUTH, false);
    SKY_Router_SetLinkUp(&router, SKY_LINK_NORTH, false);
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD);
    CHECK_EQ(route.link, SKY_LINK_WEST); /* back: the only way out */
    SKY_Router_SetLinkUp(&router, SKY_LINK_WEST, false);
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_UNREACHABLE);
    SKY_Router_SetLinkUp(&router, SKY_LINK_EAST, true);
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.link, SKY_LINK_EAST);
}

static void HostsMove(void)
{
    const uint64_t later = NOW_US + SKY_ROUTER_GROUND_HOLD_US;

    Start();
    CHECK_EQ(Ask(NOW_US, 7, ENDPOINT), SKY_ROUTE_FORWARD);
    CHECK_EQ(Ask(NOW_US, 8, ENDPOINT), SKY_ROUTE_FORWARD); /* a new number, or one forged to take the old one away */
    CHECK_EQ(EndpointOf(7), ENDPOINT);
    CHECK_EQ(EndpointOf(8), ENDPOINT);

    CHECK_EQ(Ask(later - 1u, 8, ENDPOINT + 1u), SKY_ROUTE_ANSWER); /* somebody else with a number in use */
    CHECK_EQ(route.status, SKY_STATUS_REFUSED);
    CHECK_EQ(route.link, SKY_LINK_NONE);
    CHECK_EQ(route.endpoint, ENDPOINT + 1u);
    CHECK_EQ(EndpointOf(8), ENDPOINT);
    CHECK_EQ(Ask(later, 8, ENDPOINT + 1u), SKY_ROUTE_FORWARD); /* silent for the hold time: the number is free */
    CHECK_EQ(EndpointOf(8), ENDPOINT + 1u);
    CHECK_EQ(EndpointOf(7), ENDPOINT);
}

static void Floods(void)
{
    Start();
    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        CHECK_EQ(Ask(NOW_US + i, 100u + i, ENDPOINT + i), SKY_ROUTE_FORWARD);
    }
    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        CHECK_EQ(EndpointOf(100u + i), ENDPOINT + i);
    }
    /* A new host is never locked out; a host at work keeps its place as long as it is heard among so many. */
    for (uint32_t i = 0; i < 1000u; ++i)
    {
        CHECK_EQ(Ask(NOW_US + 200u + 2u * i, 3000u + i, ENDPOINT + 1000u + i), SKY_ROUTE_FORWARD);
        CHECK_EQ(EndpointOf(3000u + i), ENDPOINT + 1000u + i);
        if (i % (SKY_ROUTER_GROUNDS - 1u) == 0u)
        {
            CHECK_EQ(Ask(NOW_US + 201u + 2u * i, 100, ENDPOINT), SKY_ROUTE_FORWARD);
        }
        CHECK_EQ(EndpointOf(100), ENDPOINT);
    }
    CHECK_EQ(EndpointOf(101), 0);
    /* What is for this satellite needs no place. */
    for (uint32_t i = 0; i < 1000u; ++i)
    {
        const SKY_Packet_t pkt = Packet(true, Host(5000u + i), self);

        Decide(&pkt, SKY_LINK_GROUND, ENDPOINT + i);
        CHECK_EQ(route.action, SKY_ROUTE_DELIVER);
        CHECK_EQ(route.endpoint, ENDPOINT + i);
    }
    CHECK_EQ(EndpointOf(100), ENDPOINT);
}

/* Somebody with one address, many ports and many numbers takes places from nobody else, and a new host finds one. */
static void OneAddressUnderManyNumbers(void)
{
    const uint64_t other = ENDPOINT + (1u << SKY_ENDPOINT_PORT_BITS);

    Start();
    CHECK_EQ(Ask(NOW_US, 100, other), SKY_ROUTE_FORWARD);
    for (uint32_t i = 0; i < 1000u; ++i)
    {
        CHECK_EQ(Ask(NOW_US + 1u + i, 3000u + i, ENDPOINT + i), SKY_ROUTE_FORWARD);
    }
    CHECK_EQ(EndpointOf(100), other);
    CHECK_EQ(EndpointOf(3999), ENDPOINT + 999u);
    CHECK_EQ(EndpointOf(3999u - SKY_ROUTER_GROUNDS + 2u), ENDPOINT + 1001u - SKY_ROUTER_GROUNDS);
    CHECK_EQ(EndpointOf(3999u - SKY_ROUTER_GROUNDS + 1u), 0); /* the oldest number of the address made room */
    CHECK_EQ(Ask(NOW_US + 2000u, 101, other + 1u), SKY_ROUTE_FORWARD);
    CHECK_EQ(EndpointOf(101), other + 1u);
    CHECK_EQ(EndpointOf(100), other); /* the address with most places made room again */
    CHECK_EQ(Ask(NOW_US + 2001u, 102, ENDPOINT + 5000u), SKY_ROUTE_FORWARD);
    CHECK_EQ(EndpointOf(101), other + 1u);
}

static bool Tell(SKY_Map_t *map, SKY_Addr_t satellite, uint32_t sequence, uint32_t down)
{
    const SKY_LinkState_t state = {satellite, sequence, (uint16_t)down};

    return SKY_Map_Take(map, NOW_US, &state, SKY_LINK_NORTH);
}

/* With a map: the paper's rule while nothing is down; then the shortest way, a hop limit to match, and a word where there is none. */
static void RoutesByTheMap(void)
{
    static uint32_t memory[SATELLITES * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
    SKY_Packet_t    pkt = Packet(true, Satellite(3, 9), Satellite(3, 12));
    SKY_Map_t       map;

    Start();
    CHECK(SKY_Map_Init(&map, &torus, self, memory, sizeof(memory)));
    SKY_Router_SetLinkUp(&router, SKY_LINK_WEST, false);
    SKY_Router_SetMap(&router, &map);
    CHECK_EQ(map.down[map.self], 1u << SKY_LINK_WEST); /* it learns of what was before it */
    SKY_Router_SetLinkUp(&router, SKY_LINK_WEST, true);
    CHECK_EQ(map.exceptions, 0);
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.link, SKY_LINK_EAST);
    CHECK_EQ(route.hop_limit, SKY_LIMIT_HOP_LIMIT - 1u);

    CHECK(Tell(&map, Satellite(3, 12), 1, 1u << SKY_LINK_WEST)); /* its other end does not use the last link of the way */
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.link, SKY_LINK_SOUTH);
    CHECK_EQ(route.hop_limit, 4u + SKY_ROUTER_SLACK - 1u);
    pkt.hop_limit = 5;
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.hop_limit, 4);

    CHECK(Tell(&map, Satellite(3, 12), 2, 0x0F));
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_FORWARD); /* not so soon after the last search */
    SKY_Router_Decide(&router, NOW_US + SKY_MAP_SEARCH_US, &pkt, SKY_LINK_WEST, 0, &route);
    CHECK_EQ(route.action, SKY_ROUTE_ANSWER);
    CHECK_EQ(route.status, SKY_STATUS_UNREACHABLE);
    pkt.is_request = false;
    Decide(&pkt, SKY_LINK_WEST, 0);
    CHECK_EQ(route.action, SKY_ROUTE_DROP);
}

static void CountsDrops(void)
{
    Start();
    SKY_Router_CountDrop(&router, SKY_STATUS_SHORT);
    SKY_Router_CountDrop(&router, SKY_STATUS_COUNT); /* no such status: nothing is written */
    CHECK_EQ(router.counters.drops[SKY_STATUS_SHORT], 1);
}

int main(void)
{
    RUN(Limits);
    RUN(FromTheGround);
    RUN(SpoofsFromTheGround);
    RUN(BadAddressesOverLinks);
    RUN(ResponsesFindTheirGateway);
    RUN(HopLimits);
    RUN(LinksGoDown);
    RUN(HostsMove);
    RUN(Floods);
    RUN(OneAddressUnderManyNumbers);
    RUN(RoutesByTheMap);
    RUN(CountsDrops);
    return CHECK_RESULT();
}
