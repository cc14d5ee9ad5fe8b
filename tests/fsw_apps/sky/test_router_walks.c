/* Routers of a whole constellation: requests arrive, also around broken links. */
#include "router_rig.h"

static SKY_Router_t fleet[SATELLITES];

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
    RUN(WalksArriveOnTheShortestWay);
    RUN(WalksRoundOneCutLink);
    RUN(WalksRoundOneDeadSatellite);
    return CHECK_RESULT();
}
