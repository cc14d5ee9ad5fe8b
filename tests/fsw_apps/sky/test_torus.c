/* The torus: neighbours, distances against a breadth-first search, and next hops, exhaustively. */
#include "sky_torus.h"

#include <string.h>

#include "check.h"

#define SATELLITES_MAX 128u
#define ALL_UP         0x0Fu

typedef struct
{
    uint32_t planes, slots;
    bool     seam_cut;
} Shape_t;

static const Shape_t shapes[] = {{5, 19, false}, {5, 19, true}, {4, 4, false}, {4, 4, true}, {1, 7, false}, {7, 1, false},
                                 {7, 1, true},   {2, 2, false}, {2, 3, true},  {1, 1, true}, {3, 2, false}, {1, 2, false}};

static const SKY_Addr_t nowhere = {0, 0};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static uint32_t IndexOf(const SKY_Torus_t *torus, SKY_Addr_t addr)
{
    return (addr.plane - 1u) * torus->slots + addr.slot - 1u;
}

static SKY_Addr_t AddrOf(const SKY_Torus_t *torus, uint32_t index)
{
    const SKY_Addr_t addr = {(uint16_t)(index / torus->slots + 1u), (uint16_t)(index % torus->slots + 1u)};

    return addr;
}

/* Hops from @p from to everywhere, found by walking over neighbours. */
static void Search(const SKY_Torus_t *torus, uint32_t from, uint32_t *hops)
{
    uint32_t queue[SATELLITES_MAX];
    uint32_t first = 0;
    uint32_t last  = 0;

    (void)memset(hops, 0xFF, SATELLITES_MAX * sizeof(*hops));
    hops[from]    = 0;
    queue[last++] = from;
    while (first < last)
    {
        const uint32_t at = queue[first++];

        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const SKY_Addr_t next = SKY_Torus_Neighbour(torus, AddrOf(torus, at), (SKY_LinkId_t)link);

            if (next.plane != 0u && hops[IndexOf(torus, next)] == UINT32_MAX)
            {
                hops[IndexOf(torus, next)] = hops[at] + 1u;
                queue[last++]              = IndexOf(torus, next);
            }
        }
    }
}

static void Limits(void)
{
    SKY_Torus_t torus;

    CHECK(SKY_Torus_Init(&torus, 1, 1, false));
    CHECK(SKY_Torus_Init(&torus, 65535, 65535, true));
    CHECK(!SKY_Torus_Init(&torus, 0, 19, false));
    CHECK(!SKY_Torus_Init(&torus, 5, 0, false));
    CHECK(!SKY_Torus_Init(&torus, 65536, 19, false));
    CHECK(!SKY_Torus_Init(&torus, 5, 65536, false));

    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    CHECK(SKY_Torus_Contains(&torus, (SKY_Addr_t){1, 1}));
    CHECK(SKY_Torus_Contains(&torus, (SKY_Addr_t){5, 19}));
    CHECK(!SKY_Torus_Contains(&torus, (SKY_Addr_t){0, 1}));
    CHECK(!SKY_Torus_Contains(&torus, (SKY_Addr_t){1, 0}));
    CHECK(!SKY_Torus_Contains(&torus, (SKY_Addr_t){6, 1}));
    CHECK(!SKY_Torus_Contains(&torus, (SKY_Addr_t){1, 20}));
}

static void CheckNeighbour(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_LinkId_t link, uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t to = SKY_Torus_Neighbour(torus, from, link);

    CHECK_EQ(to.plane, plane);
    CHECK_EQ(to.slot, slot);
}

static void Neighbours(void)
{
    SKY_Torus_t torus;

    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_NORTH, 2, 10);
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_SOUTH, 4, 10);
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_WEST, 3, 9);
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_EAST, 3, 11);
    CheckNeighbour(&torus, (SKY_Addr_t){1, 1}, SKY_LINK_NORTH, 5, 1);
    CheckNeighbour(&torus, (SKY_Addr_t){5, 19}, SKY_LINK_SOUTH, 1, 19);
    CheckNeighbour(&torus, (SKY_Addr_t){1, 1}, SKY_LINK_WEST, 1, 19);
    CheckNeighbour(&torus, (SKY_Addr_t){5, 19}, SKY_LINK_EAST, 5, 1);
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_GROUND, 0, 0);
    CheckNeighbour(&torus, (SKY_Addr_t){3, 10}, SKY_LINK_NONE, 0, 0);

    CHECK(SKY_Torus_Init(&torus, 5, 19, true));
    CheckNeighbour(&torus, (SKY_Addr_t){1, 1}, SKY_LINK_NORTH, 0, 0);
    CheckNeighbour(&torus, (SKY_Addr_t){5, 19}, SKY_LINK_SOUTH, 0, 0);
    CheckNeighbour(&torus, (SKY_Addr_t){1, 1}, SKY_LINK_WEST, 1, 19); /* only planes have a seam */

    CHECK(SKY_Torus_Init(&torus, 1, 19, false));
    CheckNeighbour(&torus, (SKY_Addr_t){1, 5}, SKY_LINK_NORTH, 0, 0);
    CheckNeighbour(&torus, (SKY_Addr_t){1, 5}, SKY_LINK_SOUTH, 0, 0);
    CHECK(SKY_Torus_Init(&torus, 5, 1, false));
    CheckNeighbour(&torus, (SKY_Addr_t){2, 1}, SKY_LINK_EAST, 0, 0);
}

static void NeighboursAreMutual(void)
{
    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        SKY_Torus_t torus;

        CHECK(SKY_Torus_Init(&torus, shapes[s].planes, shapes[s].slots, shapes[s].seam_cut));
        for (uint32_t i = 0; i < shapes[s].planes * shapes[s].slots; ++i)
        {
            for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
            {
                const SKY_Addr_t to = SKY_Torus_Neighbour(&torus, AddrOf(&torus, i), (SKY_LinkId_t)link);

                if (to.plane != 0u)
                {
                    CHECK(SKY_Torus_Contains(&torus, to));
                    CHECK(SKY_Addr_Equal(SKY_Torus_Neighbour(&torus, to, (SKY_LinkId_t)((link + 2u) % 4u)), AddrOf(&torus, i)));
                }
            }
        }
    }
}

static void EveryPairOnTheShortestWay(void)
{
    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        const uint32_t satellites = shapes[s].planes * shapes[s].slots;
        SKY_Torus_t    torus;
        uint32_t       hops[SATELLITES_MAX];

        CHECK(SKY_Torus_Init(&torus, shapes[s].planes, shapes[s].slots, shapes[s].seam_cut));
        for (uint32_t from = 0; from < satellites; ++from)
        {
            Search(&torus, from, hops);
            for (uint32_t to = 0; to < satellites; ++to)
            {
                SKY_Addr_t at       = AddrOf(&torus, from);
                bool       in_plane = false;

                CHECK_EQ(SKY_Torus_Hops(&torus, at, AddrOf(&torus, to)), hops[to]);
                for (uint32_t step = 0; step < hops[to]; ++step)
                {
                    const SKY_LinkId_t link = SKY_Torus_NextHop(&torus, at, AddrOf(&torus, to), nowhere, ALL_UP);

                    if (link == SKY_LINK_WEST || link == SKY_LINK_EAST)
                    {
                        in_plane = true;
                    }
                    CHECK(!in_plane || link == SKY_LINK_WEST || link == SKY_LINK_EAST); /* planes come first */
                    at = SKY_Torus_Neighbour(&torus, at, link);
                    CHECK(at.plane != 0u);
                }
                CHECK(SKY_Addr_Equal(at, AddrOf(&torus, to)));
                CHECK_EQ(SKY_Torus_NextHop(&torus, at, at, nowhere, ALL_UP), SKY_LINK_NONE);
            }
        }
    }
}

/* d_north < d_south, and so on, written down as in section 4 of the paper. */
static void ThePapersRule(void)
{
    SKY_Torus_t torus;

    CHECK(SKY_Torus_Init(&torus, 4, 19, false));
    for (uint32_t from = 0; from < 76u; ++from)
    {
        for (uint32_t to = 0; to < 76u; ++to)
        {
            const SKY_Addr_t a        = AddrOf(&torus, from);
            const SKY_Addr_t b        = AddrOf(&torus, to);
            const uint32_t   north    = b.plane < a.plane ? a.plane - (uint32_t)b.plane : (a.plane + 4u - b.plane) % 4u;
            const uint32_t   south    = b.plane > a.plane ? b.plane - (uint32_t)a.plane : (b.plane + 4u - a.plane) % 4u;
            const uint32_t   west     = b.slot < a.slot ? a.slot - (uint32_t)b.slot : (a.slot + 19u - b.slot) % 19u;
            const uint32_t   east     = b.slot > a.slot ? b.slot - (uint32_t)a.slot : (b.slot + 19u - a.slot) % 19u;
            SKY_LinkId_t     expected = SKY_LINK_NONE;

            if (north < south)
            {
                expected = SKY_LINK_NORTH;
            }
            else if (south < north || south != 0u) /* a tie goes south */
            {
                expected = SKY_LINK_SOUTH;
            }
            else if (west < east)
            {
                expected = SKY_LINK_WEST;
            }
            else if (east < west) /* 19 slots: no tie */
            {
                expected = SKY_LINK_EAST;
            }
            CHECK_EQ(SKY_Torus_NextHop(&torus, a, b, nowhere, ALL_UP), expected);
        }
    }
}

static SKY_LinkId_t Without(const SKY_Torus_t *torus, uint32_t plane, uint32_t slot, SKY_Addr_t to, uint32_t down)
{
    const SKY_Addr_t from = {(uint16_t)plane, (uint16_t)slot};

    return SKY_Torus_NextHop(torus, from, to, nowhere, ALL_UP & ~down);
}

static void Ties(void)
{
    SKY_Torus_t torus;

    CHECK(SKY_Torus_Init(&torus, 4, 4, false));
    CHECK_EQ(Without(&torus, 1, 1, (SKY_Addr_t){3, 1}, 0), SKY_LINK_SOUTH);
    CHECK_EQ(Without(&torus, 1, 1, (SKY_Addr_t){1, 3}, 0), SKY_LINK_EAST);
    CHECK_EQ(Without(&torus, 1, 1, (SKY_Addr_t){3, 1}, 1u << SKY_LINK_SOUTH), SKY_LINK_NORTH); /* the tie's other half */
    CHECK_EQ(Without(&torus, 1, 1, (SKY_Addr_t){1, 3}, 1u << SKY_LINK_EAST), SKY_LINK_WEST);
}

static void Detours(void)
{
    const uint32_t north = 1u << SKY_LINK_NORTH;
    const uint32_t east  = 1u << SKY_LINK_EAST;
    const uint32_t south = 1u << SKY_LINK_SOUTH;
    const uint32_t west  = 1u << SKY_LINK_WEST;
    SKY_Torus_t    torus;

    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    /* The other axis, if it leads nearer. */
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 8}, south), SKY_LINK_EAST);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 6}, south), SKY_LINK_WEST);
    /* Two hops away on a ring of five, the other way round is one hop more: less than stepping aside. */
    CHECK_EQ(Without(&torus, 1, 7, (SKY_Addr_t){3, 7}, south), SKY_LINK_NORTH);
    /* Otherwise aside: on the ring of 19 the long way would be 17 hops. */
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){2, 8}, east), SKY_LINK_SOUTH);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){2, 8}, east | south), SKY_LINK_NORTH);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){2, 8}, east | south | north), SKY_LINK_WEST);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 7}, south), SKY_LINK_EAST);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 7}, south | east), SKY_LINK_WEST);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 7}, south | east | west), SKY_LINK_NORTH);
    CHECK_EQ(Without(&torus, 2, 7, (SKY_Addr_t){3, 7}, ALL_UP), SKY_LINK_NONE);
    CHECK_EQ(SKY_Torus_NextHop(&torus, (SKY_Addr_t){2, 7}, (SKY_Addr_t){3, 7}, nowhere, 0), SKY_LINK_NONE);

    CHECK(SKY_Torus_Init(&torus, 5, 19, true)); /* across the seam: all the way back */
    CHECK_EQ(Without(&torus, 1, 7, (SKY_Addr_t){5, 7}, 0), SKY_LINK_SOUTH);
    CHECK_EQ(SKY_Torus_Hops(&torus, (SKY_Addr_t){1, 7}, (SKY_Addr_t){5, 7}), 4);
    CHECK_EQ(Without(&torus, 1, 7, (SKY_Addr_t){2, 7}, south), SKY_LINK_EAST);
}

static void ComesFromSomewhere(void)
{
    const uint32_t   north = 1u << SKY_LINK_NORTH;
    const uint32_t   east  = 1u << SKY_LINK_EAST;
    const uint32_t   south = 1u << SKY_LINK_SOUTH;
    const uint32_t   west  = 1u << SKY_LINK_WEST;
    const SKY_Addr_t at    = {2, 7};
    SKY_Torus_t      torus;

    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    /* It stepped aside from (1,7): not nearer over the link it came by, but along the other axis. */
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){1, 8}, (SKY_Addr_t){1, 7}, ALL_UP), SKY_LINK_EAST);
    /* The long way round goes on. */
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){2, 9}, (SKY_Addr_t){2, 8}, east | west), SKY_LINK_WEST);
    /* Aside, and not back aside, if there is a choice. */
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){2, 9}, (SKY_Addr_t){3, 7}, north | south | west), SKY_LINK_NORTH);
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){2, 9}, (SKY_Addr_t){3, 7}, south | west), SKY_LINK_SOUTH);
    /* Nowhere but back. */
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){2, 9}, (SKY_Addr_t){2, 8}, east), SKY_LINK_EAST);

    CHECK(SKY_Torus_Init(&torus, 2, 19, false)); /* north and south lead to the same satellite */
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){1, 8}, (SKY_Addr_t){1, 7}, ALL_UP), SKY_LINK_EAST);
    CHECK_EQ(SKY_Torus_NextHop(&torus, at, (SKY_Addr_t){1, 7}, (SKY_Addr_t){1, 7}, ALL_UP), SKY_LINK_EAST);
}

int main(void)
{
    RUN(Limits);
    RUN(Neighbours);
    RUN(NeighboursAreMutual);
    RUN(EveryPairOnTheShortestWay);
    RUN(ThePapersRule);
    RUN(Ties);
    RUN(Detours);
    RUN(ComesFromSomewhere);
    return CHECK_RESULT();
}
