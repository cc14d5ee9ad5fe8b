/* Who stands in for lost satellites: the nearest that is free, and if there is none, who is there, once more. */
#include "sky_standins.h"

#include <string.h>

#include "check.h"

#define MANY 2048u

static SKY_Torus_t torus;
static SKY_Cell_t  room[MANY];

static const SKY_Addr_t centre = {2, 2};

static void shape(uint32_t planes, uint32_t slots)
{
    CHECK(SKY_Torus_Init(&torus, planes, slots, true)); /* the seam is about links */
}

static bool is_cell(SKY_Cell_t cell, uint32_t plane, uint32_t slot)
{
    return cell.plane == (int32_t)plane && cell.slot == (int32_t)slot;
}

static void test_list(void)
{
    static const SKY_Addr_t all[] = {{1, 3}, {1, 5}, {2, 1}, {2, 2}, {7, 65535}};

    for (uint32_t count = 0; count <= 5u; ++count)
    {
        const SKY_Satellites_t list = {all, count};

        for (uint32_t i = 0; i < 5u; ++i)
        {
            const SKY_Addr_t behind = {all[i].plane, (uint16_t)(all[i].slot + 1u)};

            CHECK_EQ(SKY_Satellites_Has(&list, all[i]), i < count);
            CHECK_EQ(SKY_Satellites_Has(&list, behind), i == 2u && count > 3u);
        }
    }
}

static void test_nearest(void)
{
    static const uint16_t shapes[][2] = {{5, 19}, {4, 4}, {1, 7}, {7, 1}, {2, 2}, {1, 1}, {72, 22}};
    static bool           seen[MANY];

    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
    {
        const uint32_t   planes = shapes[i][0], slots = shapes[i][1];
        const SKY_Addr_t middle = {(uint16_t)planes, (uint16_t)slots};
        uint32_t         hops   = 0;
        SKY_Torus_t      plain;

        shape(planes, slots);
        CHECK(SKY_Torus_Init(&plain, planes, slots, false));
        memset(seen, 0, sizeof(seen));
        SKY_StandIns_Nearest(&torus, middle, planes * slots, room);
        CHECK(is_cell(room[0], planes, slots));
        for (uint32_t k = 0; k < planes * slots; ++k)
        {
            const SKY_Addr_t one   = {(uint16_t)room[k].plane, (uint16_t)room[k].slot};
            const uint32_t   index = (one.plane - 1u) * slots + one.slot - 1u;
            const uint32_t   ring  = SKY_Torus_Hops(&plain, middle, one);

            CHECK(SKY_Torus_Contains(&torus, one));
            CHECK(!seen[index]); /* each once */
            seen[index] = true;
            CHECK(ring >= hops);
            hops = ring;
        }
    }
}

static void test_rings_are_those_of_the_hop_layout(void)
{
    static SKY_Placement_t placement;
    const SKY_Cell_t       cell = {2, 2};

    shape(5, 19);
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 95, cell));
    SKY_StandIns_Nearest(&torus, centre, 95, room);
    for (uint32_t server = 0; server < 95u; ++server)
    {
        const SKY_Addr_t one = SKY_Placement_Server(&placement, cell, server);

        CHECK(is_cell(room[server], one.plane, one.slot));
    }
}

static bool replaced(const SKY_Addr_t *lost, uint32_t lost_count, const SKY_Addr_t *before, const SKY_Addr_t *expected,
                     uint32_t count)
{
    const SKY_Satellites_t list = {lost, lost_count};
    SKY_Addr_t             servers[9];

    memcpy(servers, before, count * sizeof(*servers));
    SKY_StandIns_Replace(&torus, centre, &list, servers, count, room);
    return memcmp(servers, expected, count * sizeof(*servers)) == 0;
}

static void test_the_nearest_that_is_free(void)
{
    static const SKY_Addr_t servers[]  = {{2, 2}, {1, 2}, {2, 3}};
    static const SKY_Addr_t one[]      = {{1, 2}};
    static const SKY_Addr_t one_gone[] = {{2, 2}, {3, 2}, {2, 3}};
    static const SKY_Addr_t two[]      = {{1, 2}, {3, 2}}; /* who would stand in is lost as well */
    static const SKY_Addr_t two_gone[] = {{2, 2}, {2, 1}, {2, 3}};
    static const SKY_Addr_t all[]      = {{1, 2}, {2, 2}, {2, 3}};
    static const SKY_Addr_t all_gone[] = {{3, 2}, {2, 1}, {5, 2}};
    static const SKY_Addr_t other[]    = {{4, 9}};

    shape(5, 19);
    CHECK(replaced(NULL, 0, servers, servers, 3));
    CHECK(replaced(other, 1, servers, servers, 3));
    CHECK(replaced(one, 1, servers, one_gone, 3));
    CHECK(replaced(two, 2, servers, two_gone, 3));
    CHECK(replaced(all, 3, servers, all_gone, 3));
}

static void test_without_a_spare_the_nearest_stand_in_once_more(void)
{
    static const SKY_Addr_t servers[]    = {{2, 2}, {1, 2}, {2, 1}, {1, 1}};
    static const SKY_Addr_t one[]        = {{1, 2}};
    static const SKY_Addr_t one_gone[]   = {{2, 2}, {2, 2}, {2, 1}, {1, 1}};
    static const SKY_Addr_t three[]      = {{1, 2}, {2, 1}, {2, 2}};
    static const SKY_Addr_t three_gone[] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    static const SKY_Addr_t all[]        = {{1, 1}, {1, 2}, {2, 1}, {2, 2}};

    shape(2, 2);
    CHECK(replaced(one, 1, servers, one_gone, 4));
    CHECK(replaced(three, 3, servers, three_gone, 4));
    CHECK(replaced(all, 4, servers, servers, 4)); /* nobody is there */
}

static void test_spares_first_and_then_once_more(void)
{
    static const SKY_Addr_t servers[] = {{2, 2}, {1, 2}, {2, 1}};
    static const SKY_Addr_t lost[]    = {{1, 2}, {2, 1}};
    static const SKY_Addr_t gone[]    = {{2, 2}, {1, 1}, {2, 2}};

    shape(2, 2);
    CHECK(replaced(lost, 2, servers, gone, 3));
}

/* The nearest to the centre that have no share; fewer where the torus has fewer. */
static void test_who_stands_in_first(void)
{
    static const SKY_Addr_t servers[] = {{2, 2}, {2, 3}, {1, 2}, {3, 3}};
    static const struct
    {
        uint32_t count, spares;
    } cases[] = {{1, 3}, {2, 2}, {4, 0}}; /* of a torus of four */
    SKY_Addr_t found[SKY_STANDINS_SPARES];
    uint32_t   at = 0;

    shape(7, 9);
    CHECK_EQ(SKY_StandIns_Spares(&torus, centre, servers, 4, room, found), SKY_STANDINS_SPARES);
    SKY_StandIns_Nearest(&torus, centre, 8, room);
    for (uint32_t i = 0; i < SKY_STANDINS_SPARES; ++i)
    {
        bool is_free = true;

        for (uint32_t k = 0; k < 4u; ++k)
        {
            is_free = is_free && !SKY_Addr_Equal(found[i], servers[k]);
        }
        CHECK(is_free);
        while (at < 8u && !is_cell(room[at], found[i].plane, found[i].slot))
        {
            ++at; /* in the order of distance */
        }
        CHECK(at < 8u);
    }
    shape(2, 2);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        static const SKY_Addr_t all[] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}};

        CHECK_EQ(SKY_StandIns_Spares(&torus, centre, all, cases[i].count, room, found), cases[i].spares);
    }
}

/* Who stands in for one lost satellite, or for some, is among them. */
static void test_stand_ins_of_few_lost_are_spares(void)
{
    static const SKY_Addr_t servers[] = {{2, 2}, {2, 3}, {1, 2}, {3, 3}};
    SKY_Addr_t              lost[]    = {{1, 2}, {2, 2}, {2, 3}, {3, 3}}; /* in ascending order */
    SKY_Addr_t              spares[SKY_STANDINS_SPARES];
    uint32_t                spare_count;

    shape(7, 9);
    spare_count = SKY_StandIns_Spares(&torus, centre, servers, 4, room, spares);
    for (uint32_t first = 0; first < 4u; ++first)
    {
        for (uint32_t count = 1; first + count <= 4u; ++count)
        {
            const SKY_Satellites_t gone = {&lost[first], count};
            SKY_Addr_t             around[4];

            (void)memcpy(around, servers, sizeof(around));
            SKY_StandIns_Replace(&torus, centre, &gone, around, 4, room);
            for (uint32_t i = 0; i < 4u; ++i)
            {
                bool is_spare = false;

                for (uint32_t k = 0; k < spare_count; ++k)
                {
                    is_spare = is_spare || SKY_Addr_Equal(spares[k], around[i]);
                }
                CHECK_EQ(is_spare, SKY_Satellites_Has(&gone, servers[i]));
            }
        }
    }
}

int main(void)
{
    RUN(test_list);
    RUN(test_nearest);
    RUN(test_rings_are_those_of_the_hop_layout);
    RUN(test_the_nearest_that_is_free);
    RUN(test_without_a_spare_the_nearest_stand_in_once_more);
    RUN(test_spares_first_and_then_once_more);
    RUN(test_who_stands_in_first);
    RUN(test_stand_ins_of_few_lost_are_spares);
    return CHECK_RESULT();
}
