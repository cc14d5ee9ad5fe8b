/* Where a share may be while the sky turns: which rows, in which order, and satellites that are late. */
#include "sky_places.h"

#include <string.h>

#include "check.h"

#define SECOND_US   UINT64_C(1000000)
#define START_US    (1000u * SECOND_US)
#define HANDOVER_US (30u * SECOND_US)
#define SKEW_S      2.0
#define MANY        60u

static SKY_Torus_t       torus;
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t rows_of_schedule[MANY];
static SKY_Places_t      places;

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
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION_HOP, 10, rows_of_schedule, count, START_US));
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

static void test_a_block_laid_for_a_row_to_come(void)
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

static void test_satellites_of_a_share(void)
{
    static const uint32_t seconds[] = {0, 300, 600};
    SKY_Addr_t            found[SKY_PLACES_ROWS_MAX];

    follow(seconds, 3);
    for (uint32_t server = 0; server < 10u; ++server)
    {
        const SKY_Addr_t old   = SKY_Schedule_Server(&schedule, 1, server);
        const SKY_Addr_t now   = SKY_Schedule_Server(&schedule, 2, server);
        const uint32_t   count = SKY_Places_Find(&places, at(310), 0, server, found);

        if (SKY_Addr_Equal(old, now)) /* it stays, and is asked once */
        {
            CHECK_EQ(count, 1);
            CHECK(SKY_Addr_Equal(found[0], now));
        }
        else
        {
            CHECK_EQ(count, 3);
            CHECK(SKY_Addr_Equal(found[0], now) && SKY_Addr_Equal(found[1], old) && SKY_Addr_Equal(found[2], now));
        }
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

/* ---- late satellites ------------------------------------------------------------------------------------------------- */

static bool is_late(const void *context, SKY_Addr_t satellite)
{
    const SKY_Addr_t *late = context;

    return SKY_Addr_Equal(late[0], satellite) || SKY_Addr_Equal(late[1], satellite);
}

static bool all_are_late(const void *context, SKY_Addr_t satellite)
{
    (void)context;
    return satellite.plane != 0u;
}

static void test_late_satellites_come_first(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500};
    SKY_Addr_t            found[SKY_PLACES_MAX];
    SKY_Addr_t            late[2];
    SKY_Addr_t            places_of_now[SKY_PLACES_ROWS_MAX];
    uint32_t              server = 0;
    uint32_t              count;

    follow(seconds, 6);
    while (SKY_Addr_Equal(SKY_Schedule_Server(&schedule, 1, server), SKY_Schedule_Server(&schedule, 2, server)))
    {
        ++server; /* one that moves in the first row */
    }
    late[0] = SKY_Schedule_Server(&schedule, 1, server);
    late[1] = SKY_Schedule_Server(&schedule, 2, server);
    count   = SKY_Places_FindLate(&places, at(550), 0, server, is_late, late, found);
    CHECK(count >= 3u);
    CHECK(SKY_Addr_Equal(found[0], late[0]) && SKY_Addr_Equal(found[1], late[1])); /* in the order of time */
    CHECK(SKY_Addr_Equal(found[count - 1u], SKY_Schedule_Server(&schedule, 6, server)));
    late[0].plane = 0; /* nobody is late: only the places of now */
    late[1].plane = 0;
    count         = SKY_Places_FindLate(&places, at(550), 0, server, is_late, late, found);
    CHECK_EQ(count, SKY_Places_Find(&places, at(550), 0, server, places_of_now));
    CHECK(memcmp(found, places_of_now, count * sizeof(*found)) == 0);
}

static void test_of_many_late_satellites_the_last_are_asked(void)
{
    uint32_t   seconds[MANY];
    SKY_Addr_t found[SKY_PLACES_MAX];
    uint32_t   count;

    for (uint32_t i = 0; i < MANY; ++i)
    {
        seconds[i] = 100u * i;
    }
    CHECK(SKY_Torus_Init(&torus, 5, 200, false));
    follow(seconds, MANY);
    CHECK(SKY_Torus_Init(&torus, 5, 200, false)); /* a ring so long that no satellite comes again */
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 1, rows_of_schedule, MANY, START_US));
    count = SKY_Places_FindLate(&places, at(100.0 * MANY - 50), 0, 0, all_are_late, NULL, found);
    CHECK_EQ(count, SKY_HOST_LATE + 3u); /* then those that are asked in any case: new, old, new */
    CHECK(SKY_Addr_Equal(found[SKY_HOST_LATE - 1u], SKY_Schedule_Server(&schedule, MANY - 1u, 0)));
    CHECK(SKY_Addr_Equal(found[0], SKY_Schedule_Server(&schedule, MANY - SKY_HOST_LATE, 0)));
}

/* On a ring of few satellites places come again, so a satellite may have had a share and have it now. */
static void test_who_has_a_share_now_is_not_late_with_it(void)
{
    static const uint32_t seconds[] = {0, 100, 200, 300, 400, 500, 600};
    SKY_Addr_t            found[SKY_HOST_LATE];

    follow(seconds, 7);
    CHECK(SKY_Torus_Init(&torus, 1, 4, false));
    for (uint32_t i = 0; i < 7u; ++i)
    {
        rows_of_schedule[i].centre.plane = 1;
    }
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 1, rows_of_schedule, 7, START_US));
    for (uint32_t row = 1; row <= 7u; ++row)
    {
        const uint32_t count = SKY_Places_Late(&schedule, 1, row, 0, all_are_late, NULL, found);

        CHECK_EQ(count, row < 4u ? row - 1u : 3u);
        for (uint32_t i = 0; i < count; ++i) /* in the order of the last row in which they had it */
        {
            CHECK(SKY_Addr_Equal(found[i], SKY_Schedule_Server(&schedule, row - count + i, 0)));
            CHECK(!SKY_Addr_Equal(found[i], SKY_Schedule_Server(&schedule, row, 0)));
        }
    }
    CHECK_EQ(SKY_Places_Late(&schedule, 6, 7, 0, all_are_late, NULL, found), 1); /* rows before the first do not count */
    CHECK_EQ(SKY_Places_Late(&schedule, 7, 7, 0, all_are_late, NULL, found), 0);
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
    RUN(test_a_block_laid_for_a_row_to_come);
    RUN(test_satellites_of_a_share);
    RUN(test_late_satellites_come_first);
    RUN(test_of_many_late_satellites_the_last_are_asked);
    return CHECK_RESULT();
}
