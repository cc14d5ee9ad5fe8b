/**
 * @file
 * sky_service_scrub.c, sky_service_census.c and sky_service_home.c: blocks with parity are repaired without a schedule too, by the window of a
 * sky that does not turn, and where only some satellites have a schedule.
 */
#include "repair_rig.h"

/* A block of three rows on nine servers, two of which may be lost. */
static coded_t open_filled(bool still_one)
{
    const coded_t coded = a_coded(1, 16u * 100u + 30u, 100, 7, 2);

    is_still = still_one;
    open_sky(SKY_LAYOUT_ROTATION, 9, 64, true);
    put_all(&coded);
    CHECK(is_whole(&coded));
    run(LIFE_MS * 1000u);
    return coded;
}

static void test_lost_shares_come_back_in_the_window(void)
{
    const coded_t coded = open_filled(true);

    run(4u * PERIOD_US);
    CHECK_EQ(degraded() + repaired(), 0);
    restart(home_of(3));
    restart(home_of(8));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
    CHECK(repaired() > 0);
    restart(home_of(0));
    restart(home_of(4));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
}

/* Another host's window may have them: nothing is purged. */
static void test_nothing_is_purged_without_a_schedule(void)
{
    const coded_t coded = open_filled(true);

    for (uint32_t i = 0; i < 3; ++i)
    {
        restart(home_of(i));
    }
    const uint32_t left = held(&coded);
    run(10u * PERIOD_US);
    CHECK_EQ(held(&coded), left);

    coded_t other = coded; /* those three say for sure that they have no share of the block */
    other.content = 7;
    for (uint32_t i = 0; i < 3; ++i)
    {
        put_at(home_of(i), &other, i, 0);
    }
    run(LIFE_MS * 1000u + 10u * PERIOD_US);
    CHECK_EQ(held(&coded), left);
    CHECK_EQ(held(&other), 3);
    CHECK_EQ(scrubbed() + gossip_purged() + repaired(), 0);
}

/* A host with another number of servers, or without parity, puts its blocks elsewhere. */
static void test_other_blocks_are_left_alone(void)
{
    const coded_t narrow = a_coded(2, 600, 100, 3, 2);
    const coded_t plain  = a_coded(3, 900, 100, 0, 0);

    (void)open_filled(true);
    for (uint32_t id = 0; id < narrow.stripe.chunk_total; ++id)
    {
        put_at(home_of(id % 5u), &narrow, id, 0);
    }
    put_all(&plain);
    run(LIFE_MS * 1000u);
    restart(home_of(1));
    run(6u * PERIOD_US);
    CHECK_EQ(held_at(at_home(1), &narrow), 0);
    CHECK_EQ(held(&plain), plain.stripe.chunk_total - 1u);
    CHECK_EQ(scrubbed() + gossip_purged(), 0);
}

/* A satellite that restarts has no schedule. The others have one, and fill it. */
static void test_a_restarted_satellite_is_filled(void)
{
    const coded_t coded = open_filled(false);

    is_still = true;
    restart(home_of(2));
    CHECK(SKY_Service_SetWindow(&at_home(2)->svc, NULL));
    restart(home_of(5));
    run(5u * PERIOD_US);
    CHECK(is_whole(&coded));
    for (uint32_t i = 0; i < 3; ++i) /* what they lack may be on its way */
    {
        restart(home_of(3u + i));
    }
    const uint32_t left = held(&coded);
    run(10u * PERIOD_US);
    CHECK_EQ(held(&coded), left);
    CHECK_EQ(scrubbed() + gossip_purged(), 0);
}

/* Rows may be shorter than two periods: the first sign is in one row, the second in the next. Servers 4 and 5 stay where they are. */
static void test_signs_of_two_rows(void)
{
    const coded_t  coded  = open_filled(false);
    const uint64_t row_us = SKY_Schedule_EndUs(&schedule, 1);

    run(row_us - PERIOD_US - now_us);
    restart(home_of(5));
    run(PERIOD_US);
    CHECK(!is_whole(&coded));
    run(PERIOD_US + 300000u);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, now_us), 2);
    CHECK(is_whole(&coded));
}

static void test_what_is_no_window(void)
{
    SKY_Schedule_t two   = schedule;
    SKY_Schedule_t other = still;
    SKY_Service_t *svc   = &at_home(0)->svc;

    (void)open_filled(true);
    two.count = 2;
    CHECK(!SKY_Service_SetWindow(svc, &two));
    ++other.placement.torus.planes;
    CHECK(!SKY_Service_SetWindow(svc, &other));
    --other.placement.torus.planes;
    ++other.placement.torus.slots;
    CHECK(!SKY_Service_SetWindow(svc, &other));
    CHECK(svc->core.window == &still);
    CHECK(SKY_Service_SetWindow(svc, NULL));
    CHECK(svc->core.window == NULL);
    CHECK(SKY_Service_SetSchedule(svc, &schedule)); /* the schedule goes on */
    svc->census.row = 7;
    CHECK(SKY_Service_SetWindow(svc, &still));
    CHECK(svc->core.schedule == &schedule);
    CHECK_EQ(svc->census.row, 7);
}

int main(void)
{
    RUN(test_lost_shares_come_back_in_the_window);
    RUN(test_nothing_is_purged_without_a_schedule);
    RUN(test_other_blocks_are_left_alone);
    RUN(test_a_restarted_satellite_is_filled);
    RUN(test_signs_of_two_rows);
    RUN(test_what_is_no_window);
    close_sky();
    return CHECK_RESULT();
}
