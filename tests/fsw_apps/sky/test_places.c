/* Where a share may be while the sky turns: which rows, in which order, and satellites that are late. */
#include "sky_places.h"

#include <string.h>

#include "check.h"

#define SECOND_US   UINT64_C(1000000)
#define START_US    (1000u * SECOND_US)
#define HANDOVER_US (30u * SECOND_US)
#define SKEW_S      2.0
#define MANY        60u
#define SERVERS     10u
#define RING        200u /* slots of a torus in which no satellite comes again */

static SKY_Torus_t       torus;
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t rows_of_schedule[MANY];
static SKY_Places_t      places;
static SKY_Addr_t        found[SERVERS * SKY_PLACES_MAX];
static uint32_t          counts[SERVERS];
static SKY_Addr_t        homes[SERVERS];
static SKY_Addr_t        in_row[SERVERS];
static SKY_Cell_t        cells[5u * RING];
static SKY_Shares_t      shares = {{0}, 0, found, counts, homes, in_row, cells};

static const SKY_PlacesKnown_t nothing = {{NULL, 0}, {NULL, 0}, {NULL, 0}, 1};

static uint64_t at(double seconds)
{
    return START_US + (uint64_t)(int64_t)(seconds * 1e6);
}

/* Rows at these seconds, each one slot to the west of the one before. */
static void follow(const uint32_t *seconds, uint32_t count)
{
    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    for (uint32_t i = 0; i < count; ++i)
    {
        rows_of_schedule[i].time_ms      = seconds[i] * 1000u;
        rows_of_schedule[i].centre.plane = 3;
        rows_of_schedule[i].centre.slot  = 10 - (int32_t)i;
    }
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION_HOP, SERVERS, rows_of_schedule, count, START_US));
    places.schedule    = &schedule;
    places.handover_us = HANDOVER_US;
}

/* Are these the rows, up to a 0? */
static bool rows_are(double seconds, uint32_t epoch, const uint32_t *expected)
{
    uint32_t       rows[SKY_PLACES_ROWS_MAX];
    const uint32_t count = SKY_Places_Rows(&places, at(seconds), epoch, rows);
    uint32_t       i     = 0;

    while (i < count && rows[i] == expected[i])
    {
        ++i;
    }
    return i == count && expected[i] == 0u;
}

static void test_rows_in_the_order_of_time(void)
{
    static const uint32_t seconds[] = {0, 300, 600, 1000, 1010};
    static const struct
    {
        double   seconds;
        uint32_t rows[SKY_PLACES_ROWS_MAX + 1u];
    } cases[] = {
        {-999, {1}},
        {0, {1}},
        {300 - SKEW_S - 0.001, {1}},
        {300 - SKEW_S, {1, 2}}, /* somebody's clock may be fast */
        {299.999, {1, 2}},
        {300, {1, 2}},
        {302.999, {1, 2}},
        {303, {2, 1, 2}},
        {330, {2, 1, 2}},
        {600 - SKEW_S - 0.001, {2, 1, 2}},
        {600 - SKEW_S, {2, 1, 2, 3}},
        {600, {2, 3}},
        {1002.999, {3, 4}},
        {1003, {4, 3, 4}},
        {1008, {4, 3, 4, 5}},
        {1010, {3, 4, 5}}, /* the handover before may not be over */
        {1012.999, {3, 4, 5}},
        {1013, {5, 3, 4, 5}},
        {1029.999, {5, 3, 4, 5}},
        {1030, {5, 4, 5}},
        {1e6, {5, 4, 5}},
    };

    follow(seconds, 5);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK(rows_are(cases[i].seconds, 0, cases[i].rows));
    }
}

static void test_several_old_places_of_short_rows(void)
{
    static const uint32_t seconds[] = {0, 1, 2, 3, 4, 5, 100};
    static const struct
    {
        double   seconds;
        uint32_t epoch;
        uint32_t rows[SKY_PLACES_ROWS_MAX + 1u];
    } cases[] = {
        {0, 0, {1, 2}},
        {0.5, 0, {1, 2}},
        {1, 0, {1, 2, 3}}, /* what moves on while the others are asked is at the next row's place */
        {1.499, 0, {1, 2, 3}},
        {1.5, 0, {2, 1, 2, 3}},
        {1.999, 0, {2, 1, 2, 3}},
        {3, 0, {1, 2, 3, 4, 5}},
        {5, 0, {3, 4, 5, 6}}, /* so many and no more */
        {5, 7, {7, 3, 4, 5, 6, 7}},
        {4.6, 7, {7, 5, 2, 3, 4, 5, 6, 7}},
        {35, 0, {6, 5, 6}},
    };

    follow(seconds, 7);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK(rows_are(cases[i].seconds, cases[i].epoch, cases[i].rows));
    }
}

static void test_a_block_prefetched_for_a_row_to_come(void)
{
    static const uint32_t seconds[] = {0, 300, 600, 1000, 1010};
    static const struct
    {
        double   seconds;
        uint32_t epoch;
        uint32_t rows[SKY_PLACES_ROWS_MAX + 1u];
    } cases[] = {
        {100, 4, {4, 1, 4}}, {301, 4, {4, 1, 2, 4}}, {310, 4, {4, 2, 1, 2, 4}}, {599, 3, {3, 2, 1, 2, 3}},
        {600, 3, {3, 2, 3}}, /* its time has come: it did not take part in the handover */
        {700, 2, {3, 2, 3}}, /* that is past */
        {100, 6, {1}},       /* no row has this number */
        {100, 1, {1}},
    };

    follow(seconds, 5);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK(rows_are(cases[i].seconds, cases[i].epoch, cases[i].rows));
    }
}

static bool is_place(uint32_t server, uint32_t place, SKY_Addr_t satellite)
{
    return place < counts[server] && SKY_Addr_Equal(found[server * SKY_PLACES_MAX + place], satellite);
}

static void test_satellites_of_a_share(void)
{
    static const uint32_t seconds[] = {0, 300, 600};

    follow(seconds, 3);
    SKY_Places_Find(&places, at(310), 0, &nothing, &shares);
    CHECK_EQ(shares.row_count, 3);
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        const SKY_Addr_t old = SKY_Schedule_Server(&schedule, 1, server);
        const SKY_Addr_t now = SKY_Schedule_Server(&schedule, 2, server);

        CHECK_EQ(homes[server].plane, 0);
        CHECK(is_place(server, 0, now));
        if (SKY_Addr_Equal(old, now)) /* it stays, and is asked once */
        {
            CHECK_EQ(counts[server], 1);
        }
        else
        {
            CHECK_EQ(counts[server], 3);
            CHECK(is_place(server, 1, old) && is_place(server, 2, now));
        }
    }
}

static void test_where_shares_are_put(void)
{
    static const uint32_t seconds[] = {0, 300, 600};
    static const struct
    {
        uint32_t epoch, row;
    } cases[]                    = {{0, 2}, {1, 2}, {2, 2}, {3, 3}, {4, 2}}; /* there is no row 4 */
    const SKY_PlacesKnown_t late = {{NULL, 0}, {in_row, SERVERS}, {in_row, SERVERS}, 1};

    follow(seconds, 3);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_Places_InRow(&schedule, 1, &nothing.lost, in_row, cells);
        SKY_Places_FindPut(&places, at(310), cases[i].epoch, &late, &shares);
        CHECK_EQ(shares.row_count, 1);
        CHECK_EQ(shares.rows[0], cases[i].row);
        for (uint32_t server = 0; server < SERVERS; ++server)
        {
            CHECK_EQ(counts[server], 1);
            CHECK(is_place(server, 0, SKY_Schedule_Server(&schedule, cases[i].row, server)));
        }
    }
}

/* ---- lost satellites ------------------------------------------------------------------------------------------------- */

static void test_the_middle_of_a_row(void)
{
    static const uint32_t seconds[] = {0, 300, 600};
    static const uint16_t slots[]   = {10, 10, 9, 8, 8}; /* rows that are not there are the first and the last */

    follow(seconds, 3);
    for (uint32_t row = 0; row < 5u; ++row)
    {
        const SKY_Addr_t middle = {3, slots[row]};
        const SKY_Addr_t centre = SKY_Schedule_Centre(&schedule, row);

        CHECK(SKY_Addr_Equal(centre, middle));
        SKY_Places_InRow(&schedule, row, &nothing.lost, in_row, cells);
        CHECK(SKY_Addr_Equal(in_row[0], SKY_Schedule_Server(&schedule, row, 0)));
    }
}

/* The places of all servers, row by row, as SKY_StandIns_Replace has each row. */
static void check_around(const SKY_Satellites_t *lost, double seconds, uint32_t epoch)
{
    const SKY_PlacesKnown_t known = {*lost, {NULL, 0}, {NULL, 0}, 1};
    SKY_Addr_t              expected[SERVERS];
    uint32_t                place[SERVERS] = {0};
    SKY_Addr_t              gone[SERVERS]  = {{0, 0}}; /* the last home of each server that is lost */
    uint32_t                rows[SKY_PLACES_ROWS_MAX];
    const uint32_t          row_count = SKY_Places_Rows(&places, at(seconds), epoch, rows);

    SKY_Places_Find(&places, at(seconds), epoch, &known, &shares);
    CHECK_EQ(shares.row_count, row_count);
    CHECK(memcmp(shares.rows, rows, row_count * sizeof(*rows)) == 0);
    for (uint32_t i = 0; i < row_count; ++i)
    {
        for (uint32_t server = 0; server < SERVERS; ++server)
        {
            expected[server] = SKY_Schedule_Server(&schedule, rows[i], server);
        }
        SKY_StandIns_Replace(&torus, SKY_Schedule_Centre(&schedule, rows[i]), lost, expected, SERVERS, cells);
        for (uint32_t server = 0; server < SERVERS; ++server)
        {
            const SKY_Addr_t home = SKY_Schedule_Server(&schedule, rows[i], server);

            gone[server] = SKY_Satellites_Has(lost, home) ? home : gone[server];
            if (place[server] == 0u || !is_place(server, place[server] - 1u, expected[server]))
            {
                CHECK(is_place(server, place[server], expected[server]));
                ++place[server];
            }
        }
    }
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        CHECK_EQ(counts[server], place[server]);
        CHECK(SKY_Addr_Equal(homes[server], gone[server]));
    }
}

static void test_others_stand_in_for_lost_satellites(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 203, 400};
    SKY_Addr_t            satellites[95];
    uint32_t              replaced = 0;

    follow(seconds, 5);
    for (uint32_t i = 0; i < 95u; ++i)
    {
        satellites[i].plane = (uint16_t)(1u + i / 19u);
        satellites[i].slot  = (uint16_t)(1u + i % 19u);
    }
    for (uint32_t first = 0; first < 95u; ++first)
    {
        for (uint32_t count = 0; first + count <= 95u; count += 1u + count)
        {
            const SKY_Satellites_t lost = {&satellites[first], count};

            check_around(&lost, 50, 0);
            check_around(&lost, 110, 0);
            check_around(&lost, 204, 5);
            for (uint32_t server = 0; server < SERVERS; ++server)
            {
                replaced += homes[server].plane != 0u ? 1u : 0u;
            }
        }
    }
    CHECK(replaced > 0u);
}

static void test_a_share_is_put_at_a_stand_in(void)
{
    static const uint32_t   seconds[] = {0, 300};
    const SKY_Addr_t        middle    = {3, 10};
    const SKY_PlacesKnown_t known     = {{&middle, 1}, {NULL, 0}, {NULL, 0}, 1};

    follow(seconds, 2);
    SKY_Places_FindPut(&places, at(10), 0, &known, &shares);
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        const SKY_Addr_t home = SKY_Schedule_Server(&schedule, 1, server);
        const bool       goes = SKY_Addr_Equal(home, middle);

        CHECK_EQ(counts[server], 1);
        CHECK(SKY_Addr_Equal(homes[server], goes ? middle : (SKY_Addr_t){0, 0}));
        CHECK_EQ(is_place(server, 0, home), !goes);
    }
}

static void test_when_chunks_may_move(void)
{
    static const uint32_t seconds[] = {0, 300, 600, 1000, 1010};
    static const struct
    {
        double seconds;
        bool   is_moving;
    } cases[] = {
        {-999, false},
        {0, false}, /* nothing is before the first row */
        {300 - SKEW_S - 0.001, false},
        {300 - SKEW_S, true},
        {300, true},
        {329.999, true},
        {330, false},
        {1007, true}, /* the handover before */
        {1039.999, true},
        {1040, false},
        {1e6, false},
    };

    follow(seconds, 5);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK_EQ(SKY_Places_IsMoving(&places, at(cases[i].seconds)), cases[i].is_moving);
    }
}

/* Who has had a share and may have stood in for others is asked once, if that is next. */
static void test_a_spare_that_is_late_is_not_asked_twice_in_a_row(void)
{
    static const uint32_t seconds[] = {0, 300, 600};
    SKY_PlacesKnown_t     known     = nothing;
    SKY_Addr_t            late;

    follow(seconds, 3);
    late         = SKY_Schedule_Server(&schedule, 1, 0);
    known.late   = (SKY_Satellites_t){&late, 1};
    known.spares = known.late;
    SKY_Places_Find(&places, at(650), 0, &known, &shares);
    CHECK(is_place(0, 0, late));
    CHECK(!is_place(0, 1, late));
}

static bool is_spare[95];

/* Each is a spare of a row that counts: the last few, from a row on. */
static void check_spares(uint32_t first, uint32_t row)
{
    const uint32_t begin = row > first + SKY_HOST_BACK ? row - SKY_HOST_BACK : first;
    bool           expected[95];

    (void)memset(expected, 0, sizeof(expected));
    for (uint32_t at = begin; at <= row; ++at)
    {
        SKY_Addr_t spares[SKY_STANDINS_SPARES];
        uint32_t   count;

        SKY_Places_InRow(&schedule, at, &nothing.lost, in_row, cells);
        count = SKY_StandIns_Spares(&torus, SKY_Schedule_Centre(&schedule, at), in_row, SERVERS, cells, spares);
        for (uint32_t i = 0; i < count; ++i)
        {
            expected[(spares[i].plane - 1u) * torus.slots + spares[i].slot - 1u] = true;
        }
    }
    (void)memset(is_spare, 1, sizeof(is_spare));
    SKY_Places_Spares(&schedule, first, row, is_spare, in_row, cells);
    CHECK(memcmp(is_spare, expected, sizeof(expected)) == 0);
}

static void test_who_may_have_stood_in(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500, 600};

    follow(seconds, 7);
    for (uint32_t first = 1; first <= 7u; ++first)
    {
        for (uint32_t row = first; row <= 7u; ++row)
        {
            check_spares(first, row);
        }
    }
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_HOP, SERVERS, rows_of_schedule, 7, START_US));
    check_spares(1, 7); /* they keep what they have */
}

/* What they have moves on to those that have the share: they are asked first, and for every share. */
static void test_late_stand_ins_come_first(void)
{
    static const uint32_t   seconds[] = {0, 300};
    static const SKY_Addr_t late[]    = {{1, 1}, {1, 2}, {5, 1}, {5, 2}, {5, 3}};
    SKY_PlacesKnown_t       known     = nothing;

    follow(seconds, 2);
    for (uint32_t count = 0; count <= 5u; ++count)
    {
        const uint32_t asked = count < SKY_STANDINS_SPARES ? count : SKY_STANDINS_SPARES;
        uint32_t       usual[SERVERS];

        SKY_Places_Find(&places, at(310), 0, &nothing, &shares);
        (void)memcpy(usual, counts, sizeof(usual));
        known.spares.satellites = late;
        known.spares.count      = count;
        SKY_Places_Find(&places, at(310), 0, &known, &shares);
        for (uint32_t server = 0; server < SERVERS; ++server)
        {
            CHECK_EQ(counts[server], usual[server] + asked);
            for (uint32_t i = 0; i < asked; ++i)
            {
                CHECK(is_place(server, i, late[i]));
            }
        }
    }
}

/* ---- late satellites ------------------------------------------------------------------------------------------------- */

static void test_late_satellites_come_first(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500};
    SKY_Addr_t            late[2]; /* in ascending order: the window goes to the west */
    SKY_PlacesKnown_t     known  = {{NULL, 0}, {late, 2}, {NULL, 0}, 1};
    uint32_t              server = 0;
    uint32_t              usual;

    follow(seconds, 6);
    while (SKY_Schedule_Server(&schedule, 1, server).slot <= SKY_Schedule_Server(&schedule, 2, server).slot)
    {
        ++server; /* one that moves to the west in the first row */
    }
    late[1] = SKY_Schedule_Server(&schedule, 1, server);
    late[0] = SKY_Schedule_Server(&schedule, 2, server);
    SKY_Places_Find(&places, at(550), 0, &nothing, &shares);
    usual = counts[server];
    SKY_Places_Find(&places, at(550), 0, &known, &shares);
    CHECK(is_place(server, 0, late[1]) && is_place(server, 1, late[0])); /* in the order of time */
    CHECK_EQ(counts[server], usual + 2u);
    CHECK(is_place(server, usual + 1u, SKY_Schedule_Server(&schedule, 6, server)));
    known.lost = known.late; /* what they have is nowhere else */
    SKY_Places_Find(&places, at(550), 0, &known, &shares);
    CHECK(is_place(server, 0, late[1]) && is_place(server, 1, late[0]));
    known.lost.count = 0;
    known.first      = 2; /* what had come by then is not looked for at its old place */
    SKY_Places_Find(&places, at(550), 0, &known, &shares);
    CHECK(is_place(server, 0, late[0]));
    CHECK_EQ(counts[server], usual + 1u);
}

/* All satellites of the torus, in ascending order. */
static SKY_Satellites_t all_of_it(void)
{
    static SKY_Addr_t satellites[5u * RING];
    SKY_Satellites_t  all = {satellites, (uint32_t)torus.planes * torus.slots};

    for (uint32_t i = 0; i < all.count; ++i)
    {
        satellites[i].plane = (uint16_t)(1u + i / torus.slots);
        satellites[i].slot  = (uint16_t)(1u + i % torus.slots);
    }
    return all;
}

static void test_of_many_late_satellites_the_last_are_asked(void)
{
    uint32_t          seconds[MANY];
    SKY_PlacesKnown_t known = nothing;

    for (uint32_t i = 0; i < MANY; ++i)
    {
        seconds[i] = 100u * i;
    }
    follow(seconds, MANY);
    CHECK(SKY_Torus_Init(&torus, 5, RING, false));
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 1, rows_of_schedule, MANY, START_US));
    known.late = all_of_it();
    SKY_Places_Find(&places, at(100.0 * MANY - 50), 0, &known, &shares);
    CHECK_EQ(counts[0], SKY_HOST_LATE + 3u); /* then those that are asked in any case: new, old, new */
    CHECK(is_place(0, SKY_HOST_LATE - 1u, SKY_Schedule_Server(&schedule, MANY - 1u, 0)));
    CHECK(is_place(0, 0, SKY_Schedule_Server(&schedule, MANY - SKY_HOST_LATE, 0)));
}

/* On a ring of few satellites places come again, so a satellite may have had a share and have it now. */
static void test_who_has_a_share_now_is_not_late_with_it(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500, 600};

    follow(seconds, 7);
    CHECK(SKY_Torus_Init(&torus, 1, 4, false));
    const SKY_Satellites_t all = all_of_it();
    for (uint32_t i = 0; i < 7u; ++i)
    {
        rows_of_schedule[i].centre.plane = 1;
    }
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 1, rows_of_schedule, 7, START_US));
    for (uint32_t row = 1; row <= 7u; ++row)
    {
        const uint32_t count = SKY_Places_Late(&schedule, 1, row, 0, &all, found);

        CHECK_EQ(count, row < 4u ? row - 1u : 3u);
        for (uint32_t i = 0; i < count; ++i) /* in the order of the last row in which they had it */
        {
            CHECK(SKY_Addr_Equal(found[i], SKY_Schedule_Server(&schedule, row - count + i, 0)));
            CHECK(!SKY_Addr_Equal(found[i], SKY_Schedule_Server(&schedule, row, 0)));
        }
    }
    CHECK_EQ(SKY_Places_Late(&schedule, 6, 7, 0, &all, found), 1); /* rows before the first do not count */
    CHECK_EQ(SKY_Places_Late(&schedule, 7, 7, 0, &all, found), 0);
}

/* By a plain search over all rows and servers. */
static void check_left(uint32_t row)
{
    static uint32_t last_rows[5u * 19u];
    const uint32_t  count = (uint32_t)torus.planes * torus.slots;

    for (uint32_t first = 1; first <= row; ++first)
    {
        SKY_Places_Left(&schedule, first, row, last_rows);
        for (uint32_t i = 0; i < count; ++i)
        {
            const SKY_Addr_t one      = {(uint16_t)(1u + i / torus.slots), (uint16_t)(1u + i % torus.slots)};
            uint32_t         expected = SKY_SCHEDULE_NONE;

            for (uint32_t before = first; before < row; ++before)
            {
                for (uint32_t server = 0; server < schedule.placement.servers; ++server)
                {
                    const bool had = SKY_Addr_Equal(SKY_Schedule_Server(&schedule, before, server), one);
                    const bool has = SKY_Addr_Equal(SKY_Schedule_Server(&schedule, row, server), one);

                    expected = had && !has ? before : expected;
                }
            }
            CHECK_EQ(last_rows[i], expected);
        }
    }
}

static void test_who_left_by_its_last_row(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500, 600};

    follow(seconds, 7);
    check_left(7);
    CHECK(SKY_Torus_Init(&torus, 1, 5, false)); /* satellites have one server's place, and later the other's */
    for (uint32_t i = 0; i < 7u; ++i)
    {
        rows_of_schedule[i].centre.plane = 1;
    }
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 2, rows_of_schedule, 7, START_US));
    check_left(7);
}

int main(void)
{
    RUN(test_when_chunks_may_move);
    RUN(test_who_has_a_share_now_is_not_late_with_it);
    RUN(test_who_left_by_its_last_row);
    RUN(test_rows_in_the_order_of_time);
    RUN(test_several_old_places_of_short_rows);
    RUN(test_a_block_prefetched_for_a_row_to_come);
    RUN(test_satellites_of_a_share);
    RUN(test_where_shares_are_put);
    RUN(test_the_middle_of_a_row);
    RUN(test_others_stand_in_for_lost_satellites);
    RUN(test_a_share_is_put_at_a_stand_in);
    RUN(test_a_spare_that_is_late_is_not_asked_twice_in_a_row);
    RUN(test_who_may_have_stood_in);
    RUN(test_late_stand_ins_come_first);
    RUN(test_late_satellites_come_first);
    RUN(test_of_many_late_satellites_the_last_are_asked);
    return CHECK_RESULT();
}
