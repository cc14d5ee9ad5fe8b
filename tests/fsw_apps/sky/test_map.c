/* The map of links: sequence numbers, floods, restarts; ways held against a search of the test's own. */
#include "sky_map.h"

#include <string.h>

#include "check.h"

#define SATELLITES_MAX 128u
#define SECOND_US      1000000u
#define ALL_UP         0x0Fu
#define NORTH          (1u << SKY_LINK_NORTH)
#define EAST           (1u << SKY_LINK_EAST)
#define SOUTH          (1u << SKY_LINK_SOUTH)
#define WEST           (1u << SKY_LINK_WEST)

static SKY_Torus_t torus;
static SKY_Map_t   map;
static SKY_Map_t   fleet[SATELLITES_MAX];
static uint32_t    memory[SATELLITES_MAX][SATELLITES_MAX * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
static uint64_t    random_state;
static uint64_t    now_us; /* a second passes before each state that is told */

static uint32_t Random(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static SKY_Addr_t At(uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t addr = {(uint16_t)plane, (uint16_t)slot};

    return addr;
}

static SKY_Addr_t AddrOf(uint32_t index)
{
    return At(index / torus.slots + 1u, index % torus.slots + 1u);
}

static uint32_t IndexOf(SKY_Addr_t addr)
{
    return (addr.plane - 1u) * torus.slots + addr.slot - 1u;
}

static SKY_LinkState_t State(SKY_Addr_t addr, uint32_t sequence, uint32_t down)
{
    const SKY_LinkState_t state = {addr, sequence, (uint16_t)down};

    return state;
}

static bool Take(SKY_Addr_t addr, uint32_t sequence, uint32_t down, SKY_LinkId_t link)
{
    const SKY_LinkState_t state = State(addr, sequence, down);

    now_us += SECOND_US;
    return SKY_Map_Take(&map, now_us, &state, link);
}

/* All that is to be told over a link. */
static uint32_t Told(SKY_LinkId_t link, SKY_LinkState_t *states)
{
    return SKY_Map_Next(&map, link, states, SATELLITES_MAX);
}

static void DrainAll(void)
{
    SKY_LinkState_t states[SATELLITES_MAX];

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        (void)Told((SKY_LinkId_t)link, states);
    }
}

static void Start(uint32_t planes, uint32_t slots, bool seam_cut, SKY_Addr_t self)
{
    CHECK(SKY_Torus_Init(&torus, planes, slots, seam_cut));
    CHECK(SKY_Map_Init(&map, &torus, self, memory[0], sizeof(memory[0])));
}

static SKY_LinkId_t First(SKY_Addr_t to)
{
    uint32_t hops;

    return SKY_Map_FirstHop(&map, now_us, to, &hops);
}

/* ---- limits ---------------------------------------------------------------------------------------------------------- */

static void Limits(void)
{
    Start(5, 19, false, At(3, 10));
    CHECK_EQ(SKY_Map_MemoryBytes(&torus), 95 * SKY_MAP_SATELLITE_BYTES);
    CHECK(!SKY_Map_Init(&map, &torus, At(6, 1), memory[0], sizeof(memory[0])));
    CHECK(!SKY_Map_Init(&map, &torus, At(3, 10), memory[0], 95u * SKY_MAP_SATELLITE_BYTES - 1u));
    CHECK(SKY_Torus_Init(&torus, 65535, 65535, false));
    CHECK_EQ(SKY_Map_MemoryBytes(&torus), 0);
    CHECK(!SKY_Map_Init(&map, &torus, At(3, 10), memory[0], sizeof(memory[0])));
}

static void NonsenseIsRefused(void)
{
    Start(5, 19, false, At(3, 10));
    CHECK(!Take(At(6, 1), 1, SOUTH, SKY_LINK_EAST));
    CHECK(!Take(At(1, 20), 1, SOUTH, SKY_LINK_EAST));
    CHECK(!Take(At(0, 1), 1, SOUTH, SKY_LINK_EAST));
    CHECK(!Take(At(1, 0), 1, SOUTH, SKY_LINK_EAST));
    CHECK(!Take(At(1, 1), 0, SOUTH, SKY_LINK_EAST));
    CHECK(!Take(At(1, 1), 1, 0x10, SKY_LINK_EAST));
    CHECK_EQ(map.digest, 0);
    CHECK_EQ(map.exceptions, 0);
}

/* ---- floods ---------------------------------------------------------------------------------------------------------- */

static void NewsGoesOnOnce(void)
{
    SKY_LinkState_t states[SATELLITES_MAX];

    Start(5, 19, false, At(3, 10));
    CHECK(Take(At(1, 1), 5, SOUTH, SKY_LINK_EAST));
    CHECK_EQ(map.exceptions, 1);
    CHECK_EQ(Told(SKY_LINK_EAST, states), 0); /* not back to where it came from */
    CHECK_EQ(Told(SKY_LINK_NORTH, states), 1);
    CHECK(SKY_Addr_Equal(states[0].addr, At(1, 1)) && states[0].sequence == 5u && states[0].down == SOUTH);
    CHECK_EQ(Told(SKY_LINK_NORTH, states), 0);
    CHECK(Take(At(1, 1), 5, SOUTH, SKY_LINK_WEST)); /* the same from another side: that one knows */
    CHECK_EQ(Told(SKY_LINK_WEST, states), 0);
    CHECK_EQ(Told(SKY_LINK_SOUTH, states), 1);

    CHECK(Take(At(1, 1), 4, NORTH, SKY_LINK_SOUTH)); /* an older one is answered with the newer one */
    CHECK_EQ(Told(SKY_LINK_SOUTH, states), 1);
    CHECK_EQ(states[0].sequence, 5);
    CHECK_EQ(Told(SKY_LINK_NORTH, states), 0);

    CHECK(Take(At(1, 1), 6, 0, SKY_LINK_SOUTH)); /* all is well again */
    CHECK_EQ(map.exceptions, 0);
    CHECK(map.digest != 0u); /* but not forgotten */
    CHECK_EQ(Told(SKY_LINK_EAST, states), 1);
    CHECK_EQ(states[0].down, 0);
}

static void ChangesInTheMeantimeAreToldOnce(void)
{
    SKY_LinkState_t states[SATELLITES_MAX];

    Start(5, 19, false, At(3, 10));
    for (uint32_t i = 1; i <= 50u; ++i)
    {
        CHECK(Take(At(1, 1), i, i & ALL_UP, SKY_LINK_EAST));
    }
    CHECK_EQ(Told(SKY_LINK_WEST, states), 1);
    CHECK_EQ(states[0].sequence, 50);
    for (uint32_t i = 0; i < 40u; ++i)
    {
        CHECK(i == IndexOf(At(3, 10)) || Take(AddrOf(i), 60, SOUTH, SKY_LINK_EAST));
    }
    CHECK_EQ(SKY_Map_Next(&map, SKY_LINK_WEST, states, 32), 32); /* some now, the rest later, each once */
    CHECK_EQ(SKY_Map_Next(&map, SKY_LINK_WEST, states, 32), 8);
    CHECK_EQ(SKY_Map_Next(&map, SKY_LINK_WEST, states, 32), 0);
}

/* The larger number is newer, but one that is far above the known one is refused. */
static void SequencesAreCompared(void)
{
    static const struct
    {
        uint32_t known, told;
        bool     is_sound, is_newer;
    } cases[] = {
        {1, 2, true, true},
        {2, 1, true, false},
        {1, 1u + SKY_MAP_AHEAD_MAX, true, true},
        {1u + SKY_MAP_AHEAD_MAX, 1, true, false},
        {1, 2u + SKY_MAP_AHEAD_MAX, false, false},
        {1, 0x80000000u, false, false},
        {1, 0xFFFFFFFEu, false, false},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        Start(5, 19, false, At(3, 10));
        if (cases[i].known > SKY_MAP_AHEAD_MAX)
        {
            CHECK(Take(At(1, 1), SKY_MAP_AHEAD_MAX, SOUTH, SKY_LINK_EAST));
        }
        CHECK(Take(At(1, 1), cases[i].known, SOUTH, SKY_LINK_EAST));
        CHECK_EQ(Take(At(1, 1), cases[i].told, NORTH, SKY_LINK_EAST), cases[i].is_sound);
        CHECK_EQ(map.down[0], cases[i].is_newer ? NORTH : SOUTH);
    }
    /* Two lives of a satellite with the same number: the one that warns of more, in whatever order they come. */
    Start(5, 19, false, At(3, 10));
    CHECK(Take(At(1, 1), 3, SOUTH, SKY_LINK_EAST));
    CHECK(Take(At(1, 1), 3, NORTH, SKY_LINK_EAST));
    CHECK_EQ(map.down[0], SOUTH);
    CHECK(Take(At(1, 1), 3, SOUTH | NORTH, SKY_LINK_EAST));
    CHECK_EQ(map.down[0], SOUTH | NORTH);
}

static void OwnLinks(void)
{
    SKY_LinkState_t states[SATELLITES_MAX];

    Start(5, 19, false, At(3, 10));
    SKY_Map_SetOwn(&map, ALL_UP); /* nothing has changed */
    CHECK_EQ(map.digest, 0);
    SKY_Map_SetOwn(&map, ALL_UP & ~EAST);
    CHECK_EQ(Told(SKY_LINK_EAST, states), 0); /* nobody is there */
    CHECK_EQ(Told(SKY_LINK_WEST, states), 1);
    CHECK(SKY_Addr_Equal(states[0].addr, At(3, 10)) && states[0].sequence == 1u && states[0].down == EAST);
    CHECK_EQ(First(At(3, 11)), SKY_LINK_SOUTH);
    CHECK(Take(At(1, 1), 9, SOUTH, SKY_LINK_WEST));
    CHECK_EQ(Told(SKY_LINK_EAST, states), 0);
    CHECK(Take(At(1, 1), 8, SOUTH, SKY_LINK_EAST)); /* one that is held down says something */
    CHECK_EQ(Told(SKY_LINK_EAST, states), 0);
    SKY_Map_Tell(&map, SKY_LINK_EAST);
    CHECK_EQ(Told(SKY_LINK_EAST, states), 0);

    SKY_Map_SetOwn(&map, ALL_UP); /* who comes up is told everything */
    CHECK_EQ(Told(SKY_LINK_EAST, states), 2);
    CHECK_EQ(map.sequence[map.self], 2);
    CHECK_EQ(First(At(3, 11)), SKY_LINK_EAST);

    CHECK(Take(At(1, 2), 9, SOUTH, SKY_LINK_WEST));
    SKY_Map_SetOwn(&map, ALL_UP & ~EAST); /* what was to be told there is not */
    CHECK_EQ(map.unsent_count[SKY_LINK_EAST], 0);

    Start(5, 19, true, At(1, 10)); /* a link that is not there is not down */
    SKY_Map_SetOwn(&map, ALL_UP & ~NORTH);
    CHECK_EQ(map.exceptions, 0);
}

/* As OSPF: who hears of a life before originates above it. */
static void ARestart(void)
{
    SKY_LinkState_t states[SATELLITES_MAX];

    Start(5, 19, false, At(3, 10));
    CHECK(Take(At(3, 10), 70, WEST, SKY_LINK_NORTH));
    CHECK_EQ(map.sequence[map.self], 71);
    CHECK_EQ(map.down[map.self], 0);
    CHECK_EQ(Told(SKY_LINK_NORTH, states), 1); /* also back to who said it */
    CHECK_EQ(states[0].sequence, 71);
    CHECK_EQ(Told(SKY_LINK_SOUTH, states), 1);
    CHECK(Take(At(3, 10), 70, WEST, SKY_LINK_SOUTH)); /* the old one again, from the other side of the sky */
    CHECK_EQ(map.sequence[map.self], 71);
    CHECK_EQ(Told(SKY_LINK_SOUTH, states), 1);
    CHECK_EQ(Told(SKY_LINK_NORTH, states), 0);
    CHECK(Take(At(3, 10), 71, WEST, SKY_LINK_SOUTH)); /* the same number, but something else */
    CHECK_EQ(map.sequence[map.self], 72);
    CHECK(!Take(At(3, 10), 72u + SKY_MAP_AHEAD_MAX + 1u, WEST, SKY_LINK_SOUTH)); /* no life of ours came so far */
    CHECK_EQ(map.sequence[map.self], 72);
    CHECK(Take(At(3, 10), 72u + SKY_MAP_AHEAD_MAX, WEST, SKY_LINK_SOUTH));
    CHECK_EQ(map.sequence[map.self], 73u + SKY_MAP_AHEAD_MAX);

    /* A satellite that knows nothing of itself goes above any number. Nobody takes the last one, and the numbers end there. */
    Start(5, 19, false, At(3, 10));
    CHECK(!Take(At(3, 10), 0xFFFFFFFFu, WEST, SKY_LINK_SOUTH));
    CHECK_EQ(map.sequence[map.self], 0);
    CHECK(Take(At(3, 10), 0xFFFFFFFEu, WEST, SKY_LINK_SOUTH));
    CHECK_EQ(map.sequence[map.self], 0xFFFFFFFFu);
    SKY_Map_SetOwn(&map, ALL_UP & ~EAST);
    CHECK_EQ(map.sequence[map.self], 0xFFFFFFFFu);
    CHECK_EQ(map.down[map.self], EAST);
    DrainAll();
}

static void DigestsTellWhatIsKnown(void)
{
    uint64_t digest;

    Start(5, 19, false, At(3, 10));
    for (uint32_t i = 0; i < 20u; ++i)
    {
        CHECK(Take(AddrOf(i), 3, i % 16u, SKY_LINK_EAST));
    }
    digest = map.digest;
    Start(5, 19, false, At(3, 10));
    for (uint32_t i = 20; i-- > 0u;) /* in another order, with what was before */
    {
        CHECK(Take(AddrOf(i), 1, 5, SKY_LINK_EAST));
        CHECK(map.digest != digest);
        CHECK(Take(AddrOf(i), 3, i % 16u, SKY_LINK_EAST));
    }
    CHECK(map.digest == digest);
    CHECK(Take(AddrOf(3), 4, 3, SKY_LINK_EAST));
    CHECK(map.digest != digest);
}

/* ---- ways ------------------------------------------------------------------------------------------------------------ */

static const struct
{
    uint32_t planes, slots;
    bool     seam_cut;
} shapes[] = {{5, 19, false}, {5, 19, true}, {4, 4, false}, {3, 3, true},  {1, 7, false}, {7, 1, true},
              {2, 5, false},  {2, 2, false}, {6, 7, false}, {1, 1, false}, {2, 1, true}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void WholeItIsThePapersRule(void)
{
    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        const uint32_t satellites = shapes[s].planes * shapes[s].slots;

        for (uint32_t from = 0; from < satellites; ++from)
        {
            CHECK(SKY_Torus_Init(&torus, shapes[s].planes, shapes[s].slots, shapes[s].seam_cut));
            CHECK(SKY_Map_Init(&map, &torus, AddrOf(from), memory[0], sizeof(memory[0])));
            for (uint32_t to = 0; to < satellites; ++to)
            {
                uint32_t hops;

                CHECK_EQ(SKY_Map_FirstHop(&map, now_us, AddrOf(to), &hops),
                         SKY_Torus_NextHop(&torus, AddrOf(from), AddrOf(to), At(0, 0), ALL_UP));
                CHECK_EQ(hops, SKY_Torus_Hops(&torus, AddrOf(from), AddrOf(to)));
            }
        }
    }
}

static uint32_t down_of[SATELLITES_MAX]; /* the truth */

static bool IsOpen(uint32_t from, uint32_t link, uint32_t *to)
{
    const SKY_Addr_t there = SKY_Torus_Neighbour(&torus, AddrOf(from), (SKY_LinkId_t)link);

    if (there.plane == 0u)
    {
        return false;
    }
    *to = IndexOf(there);
    return (down_of[from] & 1u << link) == 0u && (down_of[*to] & 1u << (link + 2u) % 4u) == 0u;
}

/* Distances to one satellite, by going over all links until nothing changes. */
static void Distances(uint32_t to, uint32_t *hops)
{
    const uint32_t satellites = (uint32_t)torus.planes * torus.slots;
    bool           goes_on    = true;

    for (uint32_t i = 0; i < satellites; ++i)
    {
        hops[i] = i == to ? 0u : UINT32_MAX;
    }
    while (goes_on)
    {
        goes_on = false;
        for (uint32_t i = 0; i < satellites; ++i)
        {
            for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
            {
                uint32_t next;

                if (IsOpen(i, link, &next) && hops[next] != UINT32_MAX && hops[next] + 1u < hops[i])
                {
                    hops[i] = hops[next] + 1u;
                    goes_on = true;
                }
            }
        }
    }
}

/* Everybody greets everybody who is there: one's own state goes over all links, and who knows something else tells it. */
static bool GreetAll(const bool *is_dead)
{
    const uint32_t satellites = (uint32_t)torus.planes * torus.slots;
    uint32_t       unsent     = 0;

    for (uint32_t i = 0; i < satellites; ++i)
    {
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const SKY_Addr_t   there = SKY_Torus_Neighbour(&torus, AddrOf(i), (SKY_LinkId_t)link);
            const SKY_LinkId_t back  = (SKY_LinkId_t)((link + 2u) % 4u);
            SKY_LinkState_t    own;
            uint32_t           next;

            if (there.plane != 0u && !is_dead[i] && !is_dead[IndexOf(there)] && SKY_Map_Own(&fleet[i], &own))
            {
                CHECK(SKY_Map_Take(&fleet[IndexOf(there)], now_us, &own, back));
            }
            if (IsOpen(i, link, &next) && fleet[i].digest != fleet[next].digest)
            {
                SKY_Map_Tell(&fleet[i], (SKY_LinkId_t)link);
                SKY_Map_Tell(&fleet[next], back);
            }
        }
    }
    for (uint32_t i = 0; i < satellites * SKY_ISL_COUNT; ++i)
    {
        unsent += fleet[i / SKY_ISL_COUNT].unsent_count[i % SKY_ISL_COUNT];
    }
    return unsent > 0u;
}

/* Everybody tells everybody, over links that are open, until nobody has anything to tell. */
static void FloodAll(const bool *is_dead)
{
    const uint32_t satellites = (uint32_t)torus.planes * torus.slots;
    bool           goes_on    = true;

    while (goes_on)
    {
        goes_on = false;
        for (uint32_t i = 0; i < satellites; ++i)
        {
            now_us += SECOND_US;
            for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
            {
                SKY_LinkState_t states[4];
                uint32_t        next  = 0;
                const uint32_t  count = SKY_Map_Next(&fleet[i], (SKY_LinkId_t)link, states, 4);

                goes_on = goes_on || count > 0u;
                for (uint32_t n = 0; n < count && IsOpen(i, link, &next); ++n)
                {
                    CHECK(SKY_Map_Take(&fleet[next], now_us, &states[n], (SKY_LinkId_t)((link + 2u) % 4u)));
                }
            }
        }
        goes_on = goes_on || GreetAll(is_dead);
    }
}

/* Random links down, by one end or by both, and whole satellites gone. @return links of satellites that are gone */
static void MakeHoles(uint32_t satellites, uint32_t links, uint32_t dead, bool *is_dead)
{
    (void)memset(down_of, 0, sizeof(down_of));
    (void)memset(is_dead, 0, SATELLITES_MAX);
    for (uint32_t i = 0; i < links; ++i)
    {
        down_of[Random(satellites)] |= 1u << Random(SKY_ISL_COUNT);
    }
    for (uint32_t i = 0; i < dead; ++i)
    {
        const uint32_t who = Random(satellites);

        is_dead[who] = true;
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const SKY_Addr_t there = SKY_Torus_Neighbour(&torus, AddrOf(who), (SKY_LinkId_t)link);

            if (there.plane != 0u)
            {
                down_of[IndexOf(there)] |= 1u << (link + 2u) % 4u; /* its neighbours say so; it says nothing */
            }
        }
    }
}

static void CheckWays(const bool *is_dead)
{
    const uint32_t satellites = (uint32_t)torus.planes * torus.slots;
    uint32_t       hops[SATELLITES_MAX];

    for (uint32_t to = 0; to < satellites; ++to)
    {
        Distances(to, hops);
        for (uint32_t from = 0; from < satellites; ++from)
        {
            uint32_t at = from;

            for (uint32_t taken = 0; !is_dead[from] && hops[from] != UINT32_MAX && taken < hops[from]; ++taken)
            {
                uint32_t           told;
                const SKY_LinkId_t link = SKY_Map_FirstHop(&fleet[at], now_us, AddrOf(to), &told);

                CHECK_EQ(told, hops[at]);
                CHECK(link < SKY_LINK_GROUND && IsOpen(at, link, &at));
            }
            if (!is_dead[from] && hops[from] != UINT32_MAX)
            {
                CHECK_EQ(at, to);
            }
            else if (!is_dead[from])
            {
                uint32_t told;

                CHECK_EQ(SKY_Map_FirstHop(&fleet[from], now_us, AddrOf(to), &told), SKY_LINK_NONE);
            }
        }
    }
}

/* Each pair that is not cut off gets there on a shortest way; of the others the first satellite says that nothing leads there. */
static void WaysAroundRandomHoles(void)
{
    random_state = 1;
    for (uint32_t run = 0; run < 60u; ++run)
    {
        const uint32_t s          = run % (uint32_t)SHAPES;
        const uint32_t satellites = shapes[s].planes * shapes[s].slots;
        bool           is_dead[SATELLITES_MAX];

        CHECK(SKY_Torus_Init(&torus, shapes[s].planes, shapes[s].slots, shapes[s].seam_cut));
        for (uint32_t i = 0; i < satellites; ++i)
        {
            CHECK(SKY_Map_Init(&fleet[i], &torus, AddrOf(i), memory[i], sizeof(memory[i])));
        }
        for (uint32_t change = 0; change < 3u; ++change) /* holes that come and go */
        {
            MakeHoles(satellites, Random(satellites), Random(1u + satellites / 6u), is_dead);
            for (uint32_t i = 0; i < satellites; ++i)
            {
                if (!is_dead[i])
                {
                    SKY_Map_SetOwn(&fleet[i], ALL_UP & ~down_of[i]);
                }
            }
            FloodAll(is_dead);
            CheckWays(is_dead);
        }
    }
}

/* A whole plane is gone: with the seam the others are a strip, without it two. */
static void AWholePlane(void)
{
    for (uint32_t seam_cut = 0; seam_cut < 2u; ++seam_cut)
    {
        bool is_dead[SATELLITES_MAX] = {false};

        CHECK(SKY_Torus_Init(&torus, 5, 19, seam_cut != 0u));
        (void)memset(down_of, 0, sizeof(down_of));
        for (uint32_t i = 0; i < 95u; ++i)
        {
            CHECK(SKY_Map_Init(&fleet[i], &torus, AddrOf(i), memory[i], sizeof(memory[i])));
            is_dead[i] = AddrOf(i).plane == 3u;
            down_of[i] = AddrOf(i).plane == 2u ? SOUTH : AddrOf(i).plane == 4u ? NORTH : 0u;
        }
        for (uint32_t i = 0; i < 95u; ++i)
        {
            SKY_Map_SetOwn(&fleet[i], is_dead[i] ? ALL_UP : ALL_UP & ~down_of[i]);
        }
        FloodAll(is_dead);
        CheckWays(is_dead);
    }
}

static void LinksAreCountedOnce(void)
{
    Start(5, 19, true, At(3, 10));
    CHECK_EQ(map.links_down, 0);
    CHECK(Take(At(1, 1), 1, NORTH, SKY_LINK_EAST)); /* over the seam: there is none */
    CHECK_EQ(map.links_down, 0);
    CHECK(Take(At(1, 1), 2, SOUTH | EAST, SKY_LINK_EAST));
    CHECK_EQ(map.links_down, 2);
    CHECK(Take(At(2, 1), 1, NORTH, SKY_LINK_EAST)); /* the other end of the same */
    CHECK(Take(At(1, 3), 1, WEST, SKY_LINK_EAST));
    CHECK_EQ(map.links_down, 3);
}

/* Ways longer than a byte counts. */
static void ALongRing(void)
{
    static uint32_t room[400u * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
    uint32_t        hops;

    CHECK(SKY_Torus_Init(&torus, 1, 400, false));
    CHECK(SKY_Map_Init(&map, &torus, At(1, 1), room, sizeof(room)));
    SKY_Map_SetOwn(&map, EAST);
    CHECK_EQ(SKY_Map_FirstHop(&map, now_us, At(1, 400), &hops), SKY_LINK_EAST);
    CHECK_EQ(hops, UINT8_MAX);
}

int main(void)
{
    RUN(Limits);
    RUN(NonsenseIsRefused);
    RUN(NewsGoesOnOnce);
    RUN(ChangesInTheMeantimeAreToldOnce);
    RUN(SequencesAreCompared);
    RUN(OwnLinks);
    RUN(ARestart);
    RUN(DigestsTellWhatIsKnown);
    RUN(WholeItIsThePapersRule);
    RUN(WaysAroundRandomHoles);
    RUN(AWholePlane);
    RUN(LinksAreCountedOnce);
    RUN(ALongRing);
    return CHECK_RESULT();
}
