/* The map and link states that are not true: numbers that beat each other in a ring, far jumps, one change after another. */
#include "sky_map.h"

#include <string.h>

#include "check.h"

#define RING      12u
#define MANY      95u
#define TICK_US   10000u
#define TICKS     500u
#define SECOND_US 1000000u
#define ALL_UP    0x0Fu
#define SOUTH     (1u << SKY_LINK_SOUTH)
#define EAST      (1u << SKY_LINK_EAST)
#define THIRD     1431655765u /* of all numbers */

static SKY_Torus_t torus;
static SKY_Map_t   map;
static SKY_Map_t   fleet[RING];
static uint32_t    memory[RING][MANY * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
static uint64_t    now_us;

static const SKY_Addr_t self   = {3, 10};
static const SKY_Addr_t other  = {1, 1};
static const SKY_Addr_t absent = {2, 1}; /* of the ring's torus; the ring is its first plane */

static bool TakeAt(SKY_Map_t *at, SKY_Addr_t addr, uint32_t sequence, uint32_t down, SKY_LinkId_t link)
{
    const SKY_LinkState_t state = {addr, sequence, (uint16_t)down};

    return SKY_Map_Take(at, now_us, &state, link);
}

static bool Take(SKY_Addr_t addr, uint32_t sequence, uint32_t down)
{
    return TakeAt(&map, addr, sequence, down, SKY_LINK_NORTH);
}

static void Start(void)
{
    now_us = 0;
    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    CHECK(SKY_Map_Init(&map, &torus, self, memory[0], sizeof(memory[0])));
}

/* ---- a ring of satellites ---------------------------------------------------------------------------------------------- */

static void StartRing(void)
{
    now_us = 0;
    CHECK(SKY_Torus_Init(&torus, 2, RING, false));
    for (uint32_t i = 0; i < RING; ++i)
    {
        const SKY_Addr_t addr = {1, (uint16_t)(i + 1u)};

        CHECK(SKY_Map_Init(&fleet[i], &torus, addr, memory[i], sizeof(memory[i])));
    }
}

/* Everybody tells both neighbours what there is to tell; all of it arrives one tick later. @return packets that were sent */
static uint32_t Tick(void)
{
    static SKY_LinkState_t states[RING][2][2u * RING];
    uint32_t               count[RING][2];
    uint32_t               sent = 0;

    for (uint32_t i = 0; i < RING; ++i)
    {
        count[i][0] = SKY_Map_Next(&fleet[i], SKY_LINK_WEST, states[i][0], 2u * RING);
        count[i][1] = SKY_Map_Next(&fleet[i], SKY_LINK_EAST, states[i][1], 2u * RING);
        sent += (count[i][0] != 0u ? 1u : 0u) + (count[i][1] != 0u ? 1u : 0u);
    }
    now_us += TICK_US;
    for (uint32_t i = 0; i < RING; ++i)
    {
        for (uint32_t n = 0; n < count[i][0]; ++n)
        {
            (void)SKY_Map_Take(&fleet[(i + RING - 1u) % RING], now_us, &states[i][0][n], SKY_LINK_EAST);
        }
        for (uint32_t n = 0; n < count[i][1]; ++n)
        {
            (void)SKY_Map_Take(&fleet[(i + 1u) % RING], now_us, &states[i][1][n], SKY_LINK_WEST);
        }
    }
    return sent;
}

/* @return ticks until nobody says anything more; TICKS: somebody still does */
static uint32_t TicksUntilSilent(void)
{
    uint32_t ticks = 0;

    while (ticks < TICKS && Tick() > 0u)
    {
        ++ticks;
    }
    return ticks;
}

/* Three numbers, each told to four satellites in a row. Compared modulo 2^32 each third beats the one before it, and waves of news go
 * round for ever. */
static void ARingFallsSilent(void)
{
    static const uint32_t spacings[] = {THIRD, SKY_MAP_AHEAD_MAX / 2u - 1u, 1};

    for (uint32_t s = 0; s < sizeof(spacings) / sizeof(spacings[0]); ++s)
    {
        StartRing();
        for (uint32_t i = 0; i < RING; ++i)
        {
            (void)TakeAt(&fleet[i], absent, 1u + i / 4u * spacings[s], SOUTH, SKY_LINK_NORTH);
        }
        CHECK(TicksUntilSilent() <= RING);
        for (uint32_t i = 1; i < RING; ++i)
        {
            CHECK(fleet[i].digest == fleet[0].digest);
        }
    }
}

/* Somebody tells false link states of a satellite as fast as it can. Each is a flood, but the floods are few. */
static void ForgedStatesAreFewFloods(void)
{
    static const SKY_Addr_t first = {1, 1};

    uint32_t sent = 0;

    StartRing();
    for (uint32_t i = 0; i < 300u; ++i) /* for three seconds */
    {
        (void)TakeAt(&fleet[6], first, 2u * i + 1u, SOUTH, SKY_LINK_NORTH);
        sent += Tick();
    }
    sent += TicksUntilSilent();
    CHECK(sent <= 2u * (SKY_MAP_BURST + 4u) * 2u * RING); /* a flood and its owner's answer each */
}

/* A satellite restarts. Its neighbours hold an old state of it; it goes above that, and everybody believes it. */
static void ARestartedSatelliteWins(void)
{
    static const SKY_Addr_t first = {1, 1};

    StartRing();
    for (uint32_t i = 1; i < RING; ++i)
    {
        CHECK(TakeAt(&fleet[i], first, 70, EAST, SKY_LINK_NORTH));
    }
    CHECK(SKY_Map_Init(&fleet[0], &torus, first, memory[0], sizeof(memory[0])));
    SKY_Map_SetOwn(&fleet[0], ALL_UP & ~SOUTH); /* it begins at 1 */
    CHECK_EQ(fleet[0].sequence[0], 1);
    SKY_Map_Tell(&fleet[1], SKY_LINK_WEST); /* the digests differ */
    SKY_Map_Tell(&fleet[0], SKY_LINK_EAST);
    now_us += SECOND_US;
    CHECK(TicksUntilSilent() < TICKS);
    for (uint32_t i = 0; i < RING; ++i)
    {
        CHECK_EQ(fleet[i].sequence[0], 71);
        CHECK_EQ(fleet[i].down[0], SOUTH);
    }
}

/* ---- one satellite --------------------------------------------------------------------------------------------------- */

static void AFarJumpIsRefused(void)
{
    Start();
    SKY_Map_SetOwn(&map, ALL_UP & ~EAST);
    CHECK(!Take(self, 1u + SKY_MAP_AHEAD_MAX + 1u, 0));
    CHECK_EQ(map.sequence[map.self], 1);
    CHECK(Take(self, 1u + SKY_MAP_AHEAD_MAX, 0));
    CHECK_EQ(map.sequence[map.self], 2u + SKY_MAP_AHEAD_MAX);
    CHECK(!Take(other, SKY_MAP_AHEAD_MAX + 1u, SOUTH)); /* also of one that was never heard of */
    CHECK_EQ(map.sequence[0], 0);
}

static void ChangesAreTakenOneInASecond(void)
{
    Start();
    for (uint32_t i = 1; i <= 20u; ++i)
    {
        CHECK(Take(other, i, i % 2u));
        CHECK(Take(self, i + map.sequence[map.self], EAST));
    }
    CHECK_EQ(map.sequence[0], SKY_MAP_BURST);
    CHECK(map.sequence[map.self] > 0u);
    now_us = 999999;
    CHECK(Take(other, 21, SOUTH));
    CHECK_EQ(map.sequence[0], SKY_MAP_BURST);
    now_us = SECOND_US; /* one more */
    CHECK(Take(other, 22, SOUTH));
    CHECK_EQ(map.sequence[0], 22);
    CHECK(Take(other, 23, SOUTH));
    CHECK_EQ(map.sequence[0], 22);
    now_us = 3u * SECOND_US + 1u; /* two more */
    for (uint32_t i = 24; i < 30u; ++i)
    {
        CHECK(Take(other, i, SOUTH));
    }
    CHECK_EQ(map.sequence[0], 25);
    now_us = 100u * SECOND_US; /* no more than at the beginning */
    for (uint32_t i = 30; i < 40u; ++i)
    {
        CHECK(Take(other, i, SOUTH));
    }
    CHECK_EQ(map.sequence[0], 29u + SKY_MAP_BURST);
}

/* What was left out is told again when the digests are compared. */
static void WhatIsLeftOutComesLater(void)
{
    StartRing();
    for (uint32_t i = 1; i <= SKY_MAP_BURST + 2u; ++i)
    {
        CHECK(TakeAt(&fleet[0], absent, i, SOUTH, SKY_LINK_NORTH));
    }
    CHECK_EQ(fleet[0].sequence[RING], SKY_MAP_BURST);
    now_us += SECOND_US;
    CHECK(TakeAt(&fleet[0], absent, SKY_MAP_BURST + 2u, SOUTH, SKY_LINK_NORTH));
    CHECK(TicksUntilSilent() < TICKS);
    for (uint32_t i = 0; i < RING; ++i)
    {
        CHECK_EQ(fleet[i].sequence[RING], SKY_MAP_BURST + 2u);
    }
}

/* ---- searches -------------------------------------------------------------------------------------------------------- */

static SKY_LinkId_t FirstTo(uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t to = {(uint16_t)plane, (uint16_t)slot};
    uint32_t         hops;

    return SKY_Map_FirstHop(&map, now_us, to, &hops);
}

/* What others tell changes the ways a little later; a change of the own links at once. */
static void SearchesAreRationed(void)
{
    static const SKY_Addr_t east = {3, 11};

    Start();
    now_us = 5u * SECOND_US;
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_EAST);
    CHECK(Take(east, 1, 1u << SKY_LINK_WEST));
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_EAST); /* by the search before */
    now_us += SKY_MAP_SEARCH_US - 1u;
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_EAST);
    now_us += 1u;
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_SOUTH);
    SKY_Map_SetOwn(&map, ALL_UP & ~SOUTH);
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_NORTH);
    CHECK_EQ(FirstTo(3, 12), SKY_LINK_NORTH);
    CHECK(Take(east, 2, 0));
    now_us += SKY_MAP_SEARCH_US;
    CHECK_EQ(FirstTo(3, 11), SKY_LINK_EAST);
}

static uint32_t CountDown(void)
{
    static const SKY_LinkId_t ahead[2] = {SKY_LINK_SOUTH, SKY_LINK_EAST};

    uint32_t count = 0;

    for (uint32_t place = 0; place < map.satellites; ++place)
    {
        const SKY_Addr_t addr = {(uint16_t)(place / torus.slots + 1u), (uint16_t)(place % torus.slots + 1u)};

        for (uint32_t i = 0; i < 2u; ++i)
        {
            const SKY_Addr_t there = SKY_Torus_Neighbour(&torus, addr, ahead[i]);

            if (there.plane != 0u &&
                ((map.down[place] & 1u << ahead[i]) != 0u ||
                 (map.down[(there.plane - 1u) * torus.slots + there.slot - 1u] & 1u << (ahead[i] + 2u) % 4u) != 0u))
            {
                ++count;
            }
        }
    }
    return count;
}

static void LinksAreCountedAsTheyChange(void)
{
    static const uint32_t shapes[][3] = {{5, 19, 0}, {5, 19, 1}, {2, 2, 0}, {2, 5, 1}, {1, 7, 0}, {7, 1, 0}};

    uint64_t random = 1;

    for (uint32_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s)
    {
        const SKY_Addr_t first = {1, 1};

        CHECK(SKY_Torus_Init(&torus, shapes[s][0], shapes[s][1], shapes[s][2] != 0u));
        CHECK(SKY_Map_Init(&map, &torus, first, memory[0], sizeof(memory[0])));
        for (uint32_t i = 1; i < 500u; ++i)
        {
            uint32_t   place;
            SKY_Addr_t addr;

            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            place  = (uint32_t)(random >> 33) % map.satellites;
            addr   = (SKY_Addr_t){(uint16_t)(place / torus.slots + 1u), (uint16_t)(place % torus.slots + 1u)};
            now_us += SECOND_US;
            if (place == 0u)
            {
                SKY_Map_SetOwn(&map, (uint32_t)(random >> 60));
            }
            CHECK(Take(addr, i, (uint32_t)(random >> 60)));
            CHECK_EQ(map.links_down, CountDown());
        }
    }
}

/* A digest that is wrong is right again after everything was told. */
static void TellingMendsTheDigest(void)
{
    uint64_t digest;

    Start();
    CHECK(Take(other, 1, SOUTH));
    SKY_Map_SetOwn(&map, ALL_UP & ~EAST);
    digest = map.digest;
    map.digest ^= 1u << 20; /* a bit has flipped */
    SKY_Map_Tell(&map, SKY_LINK_SOUTH);
    CHECK(map.digest == digest);
}

int main(void)
{
    RUN(ARingFallsSilent);
    RUN(ForgedStatesAreFewFloods);
    RUN(ARestartedSatelliteWins);
    RUN(AFarJumpIsRefused);
    RUN(ChangesAreTakenOneInASecond);
    RUN(WhatIsLeftOutComesLater);
    RUN(SearchesAreRationed);
    RUN(LinksAreCountedAsTheyChange);
    RUN(TellingMendsTheDigest);
    return CHECK_RESULT();
}
