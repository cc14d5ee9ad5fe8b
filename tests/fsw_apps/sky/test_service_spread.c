/**
 * @file
 * Small blocks with parity whose keys spread them over the servers: scrub, census and repair find their shares where they are.
 */
#include "repair_rig.h"

#define SERVERS 9u

static const uint32_t numbers[] = {0, 30, 100, 200, 255}; /* of blocks: their keys begin with this byte */

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static coded_t blocks[NUMBERS];

static void open_filled(void)
{
    open_sky(SKY_LAYOUT_ROTATION, SERVERS, 64, true);
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        blocks[i] = a_coded(numbers[i], i == 0 ? 700 : 16u * 100u + 30u, 100, 7, 2);
        put_all(&blocks[i]);
        CHECK(is_whole(&blocks[i]));
    }
    run(LIFE_MS * 1000u);
}

static bool are_whole(void)
{
    bool good = true;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        good = good && is_whole(&blocks[i]);
    }
    return good;
}

/* Whatever satellite comes back empty, and with another one two of them, all that it had comes back. */
static void test_lost_shares_are_rebuilt_where_they_belong(void)
{
    for (uint32_t lost = 0; lost < SERVERS; ++lost)
    {
        open_filled();
        restart(home_of(lost));
        restart(home_of((lost + 4u) % SERVERS));
        CHECK(!are_whole());
        run(10u * PERIOD_US);
        CHECK(are_whole());
        CHECK_EQ(scrubbed() + gossip_purged(), 0);
    }
}

/* A whole block stays: nobody is suspected, and nothing is rebuilt. */
static void test_whole_blocks_are_left_alone(void)
{
    open_filled();
    run(6u * PERIOD_US);
    CHECK(are_whole());
    CHECK_EQ(degraded() + repaired() + scrubbed(), 0);
}

/* Three servers lost all. The rows of each block lack three chunks, so what is left of it goes. */
static void test_what_nobody_can_decode_goes(void)
{
    open_filled();
    restart(home_of(1));
    restart(home_of(2));
    restart(home_of(3));
    run(12u * PERIOD_US);
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        CHECK_EQ(held(&blocks[i]), 0);
    }
}

/* The window moves on, and shares with it. What is lost afterwards comes back in the new row. */
static void test_shares_follow_the_window(void)
{
    open_filled();
    while (SKY_Schedule_RowAt(&schedule, now_us) == 1u)
    {
        run(PERIOD_US);
    }
    run(5000000);
    CHECK(are_whole());
    restart(home_of(5));
    run(10u * PERIOD_US);
    CHECK(are_whole());
}

/* The satellite before a full one asks about a share of each block there. That it is full, it knows of all blocks after the first. */
static void test_a_full_home_is_remembered_for_all_blocks(void)
{
    open_filled();
    store_slots = 2; /* an entry, and a chunk */
    restart(home_of(3));
    at_home(2)->svc.census.rest_us = now_us + 4u * PERIOD_US; /* so long that all of them wait */
    for (uint32_t i = 0; i < 8u * PERIOD_US / STEP_US && at_home(2)->svc.census.full_until_us[3] == 0; ++i)
    {
        step();
    }
    CHECK(at_home(2)->svc.census.full_until_us[3] > now_us);
    const uint32_t before = sent_gets;

    run(at_home(2)->svc.census.full_until_us[3] - STEP_US - now_us);
    CHECK_EQ(sent_gets, before);
}

/* Likewise that it is silent. */
static void test_silence_is_remembered_for_all_blocks(void)
{
    uint32_t quiet = 0;

    open_filled();
    restart(home_of(3));
    at_home(7)->deaf = true;
    run(10u * PERIOD_US);
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        quiet += at_home(2)->svc.census.quiet_until_us[i] > 0 ? 1u : 0u;
    }
    CHECK(at_home(2)->svc.census.quiet_until_us[7] > 0);
    CHECK_EQ(quiet, 1);
    at_home(7)->deaf = false;
    run(10u * PERIOD_US);
    CHECK(are_whole());
}

int main(void)
{
    RUN(test_lost_shares_are_rebuilt_where_they_belong);
    RUN(test_whole_blocks_are_left_alone);
    RUN(test_what_nobody_can_decode_goes);
    RUN(test_shares_follow_the_window);
    RUN(test_a_full_home_is_remembered_for_all_blocks);
    RUN(test_silence_is_remembered_for_all_blocks);
    close_sky();
    return CHECK_RESULT();
}
