/* The router: admission, the table of ground hosts under attack, gateways, hop limits, and walks around broken links. */
#include "sky_router.h"

#include <string.h>

#include "check.h"

#define PLANES     5u
#define SLOTS      19u
#define SATELLITES ((size_t)PLANES * SLOTS)
#define NOW_US     UINT64_C(1000000000)
#define ENDPOINT   UINT64_C(0x7F0000010000)

static SKY_Router_t fleet[SATELLITES];
static SKY_Torus_t  torus;
static SKY_Router_t router;
static SKY_Route_t  route;

static const SKY_Addr_t self = {3, 10};

static void Start(void)
{
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    CHECK(SKY_Router_Init(&router, &torus, self));
}

static SKY_Packet_t Packet(bool is_request, SKY_Addr_t src, SKY_Addr_t dst)
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

static SKY_Addr_t Satellite(uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t addr = {(uint16_t)plane, (uint16_t)slot};

    return addr;
}

static SKY_Addr_t Host(uint32_t number)
{
    const SKY_Addr_t addr = {0, (uint16_t)number};

    return addr;
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

/* Somebody with one endpoint and many numbers takes places from nobody else, and a new host finds one. */
static void OneEndpointUnderManyNumbers(void)
{
    const uint64_t attacker = ENDPOINT + 77u;

    Start();
    CHECK_EQ(Ask(NOW_US, 100, ENDPOINT), SKY_ROUTE_FORWARD);
    for (uint32_t i = 0; i < 1000u; ++i)
    {
        CHECK_EQ(Ask(NOW_US + 1u + i, 3000u + i, attacker), SKY_ROUTE_FORWARD);
    }
    CHECK_EQ(EndpointOf(100), ENDPOINT);
    CHECK_EQ(EndpointOf(3999), attacker);
    CHECK_EQ(EndpointOf(3999u - SKY_ROUTER_GROUNDS + 2u), attacker);
    CHECK_EQ(EndpointOf(3999u - SKY_ROUTER_GROUNDS + 1u), 0); /* its own oldest number made room */
    CHECK_EQ(Ask(NOW_US + 2000u, 101, ENDPOINT + 1u), SKY_ROUTE_FORWARD);
    CHECK_EQ(EndpointOf(101), ENDPOINT + 1u);
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

/* ---- walks over the whole constellation ---------------------------------------------------------------------------- */

static uint32_t IndexOf(SKY_Addr_t addr)
{
    return (addr.plane - 1u) * torus.slots + addr.slot - 1u;
}

static SKY_Addr_t AddrOf(uint32_t index)
{
    return Satellite(index / torus.slots + 1u, index % torus.slots + 1u);
}

static void StartFleet(uint32_t planes, uint32_t slots, bool seam_cut)
{
    CHECK(SKY_Torus_Init(&torus, planes, slots, seam_cut));
    for (uint32_t i = 0; i < planes * slots; ++i)
    {
        CHECK(SKY_Router_Init(&fleet[i], &torus, AddrOf(i)));
    }
}

/* Both ends of a link, which both have noticed. */
static void SetLink(uint32_t from, SKY_LinkId_t link, bool up)
{
    const SKY_Addr_t to = SKY_Torus_Neighbour(&torus, AddrOf(from), link);

    if (to.plane != 0u)
    {
        SKY_Router_SetLinkUp(&fleet[from], link, up);
        SKY_Router_SetLinkUp(&fleet[IndexOf(to)], (SKY_LinkId_t)((link + 2u) % 4u), up);
    }
}

/* Hops over links that are up, found by walking; UINT32_MAX: cut off. */
static void Search(uint32_t from, uint32_t *hops)
{
    uint32_t queue[SATELLITES];
    uint32_t first = 0;
    uint32_t last  = 0;

    (void)memset(hops, 0xFF, SATELLITES * sizeof(*hops));
    hops[from]    = 0;
    queue[last++] = from;
    while (first < last)
    {
        const uint32_t at = queue[first++];

        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const SKY_Addr_t next = SKY_Torus_Neighbour(&torus, AddrOf(at), (SKY_LinkId_t)link);

            if ((fleet[at].usable & (1u << link)) != 0u && next.plane != 0u && hops[IndexOf(next)] == UINT32_MAX)
            {
                hops[IndexOf(next)] = hops[at] + 1u;
                queue[last++]       = IndexOf(next);
            }
        }
    }
}

/* Let a request walk. @return hops it took, UINT32_MAX if it never arrived */
static uint32_t Walk(uint32_t from, uint32_t to)
{
    SKY_Packet_t pkt     = Packet(true, AddrOf(from), AddrOf(to));
    SKY_LinkId_t ingress = SKY_LINK_NONE;
    uint32_t     at      = from;

    for (uint32_t hops = 0; hops <= SKY_LIMIT_HOP_LIMIT; ++hops)
    {
        SKY_Router_Decide(&fleet[at], NOW_US, &pkt, ingress, 0, &route);
        if (route.action != SKY_ROUTE_FORWARD)
        {
            return route.action == SKY_ROUTE_DELIVER && at == to ? hops : UINT32_MAX;
        }
        pkt.hop_limit = route.hop_limit;
        at            = IndexOf(SKY_Torus_Neighbour(&torus, AddrOf(at), route.link));
        ingress       = (SKY_LinkId_t)((route.link + 2u) % 4u);
    }
    return UINT32_MAX;
}

typedef struct
{
    uint32_t walks, lost, cut_off, detour_hops_max;
} Outcome_t;

/* All pairs of the fleet as it is now; @p without takes no part. */
static void WalkAll(uint32_t without, Outcome_t *outcome)
{
    const uint32_t satellites = (uint32_t)torus.planes * torus.slots;
    uint32_t       hops[SATELLITES];

    for (uint32_t from = 0; from < satellites; ++from)
    {
        Search(from, hops);
        for (uint32_t to = 0; to < satellites; ++to)
        {
            uint32_t taken;

            if (from == without || to == without)
            {
                continue;
            }
            taken = Walk(from, to);
            ++outcome->walks;
            if (hops[to] == UINT32_MAX)
            {
                ++outcome->cut_off;
                CHECK_EQ(taken, UINT32_MAX);
            }
            else if (taken == UINT32_MAX)
            {
                ++outcome->lost;
            }
            else if (taken - hops[to] > outcome->detour_hops_max)
            {
                outcome->detour_hops_max = taken - hops[to];
            }
        }
    }
}

static void Report(const char *what, const Outcome_t *outcome)
{
    (void)printf("  %s, %ux%u%s: %u walks, %u lost, %u cut off, at most %u hops more than the shortest way left\n", what,
                 (unsigned)torus.planes, (unsigned)torus.slots, torus.seam_cut ? " with seam" : "", (unsigned)outcome->walks,
                 (unsigned)outcome->lost, (unsigned)outcome->cut_off, (unsigned)outcome->detour_hops_max);
}

static void WalksArriveOnTheShortestWay(void)
{
    static const uint32_t shapes[][2] = {{5, 19}, {4, 4}, {1, 19}, {7, 1}, {2, 2}, {2, 5}};

    for (uint32_t s = 0; s < 2u * sizeof(shapes) / sizeof(shapes[0]); ++s)
    {
        Outcome_t outcome = {0, 0, 0, 0};

        StartFleet(shapes[s / 2u][0], shapes[s / 2u][1], s % 2u == 1u);
        WalkAll(UINT32_MAX, &outcome);
        CHECK_EQ(outcome.lost + outcome.cut_off + outcome.detour_hops_max, 0);
    }
}

static void WalksRoundOneCutLink(void)
{
    static const uint32_t shapes[][2] = {{5, 19}, {4, 4}, {3, 3}, {1, 19}, {7, 1}, {2, 2}, {2, 5}, {5, 2}};

    for (uint32_t s = 0; s < 2u * sizeof(shapes) / sizeof(shapes[0]); ++s)
    {
        Outcome_t outcome = {0, 0, 0, 0};

        StartFleet(shapes[s / 2u][0], shapes[s / 2u][1], s % 2u == 1u);
        /* All slots look alike, and without a seam all planes do. */
        for (uint32_t plane = 0; plane < (torus.seam_cut ? torus.planes : 1u); ++plane)
        {
            SetLink(plane * torus.slots, SKY_LINK_EAST, false);
            WalkAll(UINT32_MAX, &outcome);
            SetLink(plane * torus.slots, SKY_LINK_EAST, true);
            SetLink(plane * torus.slots, SKY_LINK_SOUTH, false);
            WalkAll(UINT32_MAX, &outcome);
            SetLink(plane * torus.slots, SKY_LINK_SOUTH, true);
        }
        Report("one link cut", &outcome);
        CHECK_EQ(outcome.lost, 0);
        CHECK(outcome.detour_hops_max <= 2u || torus.planes == 1u || torus.slots == 1u); /* a lone ring has only the long way */
        /* Only a single file of satellites without wrap falls apart. */
        CHECK_EQ(outcome.cut_off != 0u, torus.seam_cut && torus.slots == 1u);
    }
}

static void WalksRoundOneDeadSatellite(void)
{
    for (uint32_t seam = 0; seam < 2u; ++seam)
    {
        Outcome_t outcome = {0, 0, 0, 0};

        StartFleet(PLANES, SLOTS, seam == 1u);
        for (uint32_t plane = 0; plane < PLANES; ++plane)
        {
            for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
            {
                SetLink(plane * SLOTS, (SKY_LinkId_t)link, false);
            }
            WalkAll(plane * SLOTS, &outcome);
            for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
            {
                SetLink(plane * SLOTS, (SKY_LinkId_t)link, true);
            }
        }
        Report("one satellite dead", &outcome);
        CHECK_EQ(outcome.lost + outcome.cut_off, 0);
        CHECK(outcome.detour_hops_max <= 2u);
    }
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
    RUN(OneEndpointUnderManyNumbers);
    RUN(RoutesByTheMap);
    RUN(CountsDrops);
    RUN(WalksArriveOnTheShortestWay);
    RUN(WalksRoundOneCutLink);
    RUN(WalksRoundOneDeadSatellite);
    return CHECK_RESULT();
}
