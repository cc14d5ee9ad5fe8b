/**
 * @file
 * Puts and gets of a ground host while a satellite turns out to be late: where they go instead, and what the host thinks of it afterwards.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS + 1u];

/* The stand-in to which a share of a put went, or {0,0}. */
static SKY_Addr_t besides_of(const run_t *run, uint32_t share)
{
    const SKY_HostPlace_t *place = &run->op.places[SERVERS + share];

    return (SKY_Addr_t){place->plane, place->slot};
}

static void test_a_put_goes_around_one_that_is_late_at_once(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    uint64_t began_us = now_us;

    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(now_us - began_us < 5u * RTT_US && told_replaced == 1 && told_lost == 0);
    CHECK(ground.reach.suspects == 1u && !SKY_Ground_IsLost(&ground, away));
    CHECK(holds(besides_of(&runs[0], 2), &runs[0].op));
    began_us = now_us;
    CHECK_EQ(put(&runs[1], 65, 950, 5), SKY_STATUS_DONE); /* nothing is put there before the look is over */
    CHECK(now_us - began_us < 2u * RTT_US && told_replaced == 1);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 5) && told_replaced == 2);
    rest();
    CHECK(told_lost == 1 && SKY_Ground_IsLost(&ground, away) && ground.reach.suspects == 0u);
    CHECK(!SKY_Reach_Suspect(&ground.reach, away)); /* more is known of it */
    close_ground();
}

/* Two of four are late at the same time: each has a stand-in of its own, as the next attempt would find it. */
static void test_two_that_are_late_have_two_stand_ins(void)
{
    open_ground(1);
    sky.parity = 2;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 2, 2));
    silence(home_of(&runs[0].op, 1, 0), true);
    silence(home_of(&runs[0].op, 1, 3), true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(runs[0].op.block.lost == 0u && runs[0].op.block.duration_us < 6u * RTT_US && told_replaced == 2);
    const SKY_Addr_t one   = besides_of(&runs[0], 0);
    const SKY_Addr_t other = besides_of(&runs[0], 3);

    CHECK(!SKY_Addr_Equal(one, other));
    rest();
    CHECK_EQ(ground.reach.lost_count, 2);
    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 5);
    runs[1].op.facts.stripe = runs[0].op.facts.stripe;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 5));
    CHECK(runs[1].op.places[0].plane == one.plane && runs[1].op.places[0].slot == one.slot);
    CHECK(runs[1].op.places[3].plane == other.plane && runs[1].op.places[3].slot == other.slot);
    close_ground();
}

static void test_the_next_stand_in_follows_if_one_is_late_too(void)
{
    SKY_Addr_t first;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(&runs[0].op);
    while (told_replaced == 0u)
    {
        first = home_of(&runs[0].op, 1, 2);
        step();
    }
    first = besides_of(&runs[0], 2);
    silence(first, true);
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_DONE);
    close_ground();

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    silence(home_of(&runs[0].op, 1, 2), true);
    silence(first, true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(told_replaced == 2 && !SKY_Addr_Equal(first, besides_of(&runs[0], 2)) && runs[0].op.block.duration_us < 12u * RTT_US);
    rest();
    CHECK(ground.reach.suspects == 0u);
    close_ground();
}

/* One that is late, and answers the look, is trusted again. */
static void test_one_that_answers_is_trusted_again(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    submit(&runs[0].op);
    while (told_replaced == 0u)
    {
        step();
    }
    silence(away, false);
    run_all();
    rest();
    CHECK(runs[0].op.status == SKY_STATUS_DONE && ground.reach.suspects == 0u && ground.reach.lost_count == 0u);
    CHECK_EQ(put(&runs[1], 65, 950, 5), SKY_STATUS_DONE);
    CHECK(holds(away, &runs[1].op));
    close_ground();
}

/* The window moves on while a put waits: who stands in in the next row is another matter. */
static void test_the_rows_of_an_attempt_stay(void)
{
    open_ground(2);
    now_us = START_US + ROW_US - 30000u;
    poll_all();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    runs[0].op.deadline_ms = 500;
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(&runs[0].op);
    while (ground.reach.suspects == 0u)
    {
        step();
    }
    CHECK(now_us >= START_US + ROW_US && told_replaced == 0u);
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_DONE); /* at the places of the next row */
    CHECK(holds(home_of(&runs[0].op, 2, 2), &runs[0].op));
    close_ground();
}

/* A share that nobody answers for: the get ends when its satellite is known to be lost, not after its whole time. */
static void test_a_get_does_not_wait_for_the_lost(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 1), true);
    const uint64_t began_us = now_us;

    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_MISS);
    CHECK(now_us - began_us < 2u * SECOND_US);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    close_ground();
}

/* The last satellite in sight sets while one is suspected: nobody can be asked, so nobody is suspected. */
static void test_nobody_is_in_sight_for_a_look(void)
{
    open_ground(1);
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    seen[0]        = (SKY_Addr_t){1, 1};
    sky.seen_count = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    runs[0].op.deadline_ms = 500;
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(&runs[0].op);
    for (uint32_t steps = 0; ground.host.has_suspects == false && ground.reach.suspects == 0u && steps < STEPS_MAX; ++steps)
    {
        if (now_us - START_US > 2u * RTT_US)
        {
            sky.seen_count = 0;
            set_sky();
        }
        step();
    }
    run_all();
    CHECK(runs[0].op.status == SKY_STATUS_NO_SATELLITE && ground.reach.suspects == 0u && told_replaced == 0u);
    close_ground();
}

static void test_nobody_has_to_watch(void)
{
    open_watched(1, false);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 0);
    silence(home_of(&runs[0].op, 1, 2), true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(told_replaced == 0u && runs[0].op.block.duration_us < 6u * RTT_US);
    close_ground();
}

/* The stand-in is the satellite whose chunks are wrong: the get does not ask it. */
static void test_one_that_is_left_out_stands_in_for_nobody(void)
{
    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    silence(home_of(&runs[0].op, 1, 2), true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    const SKY_Addr_t besides = besides_of(&runs[0], 2);

    CHECK(ground.reach.suspects == 1u && holds(besides, &runs[0].op));
    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 5);
    runs[1].op.left_out = besides;
    asked_count         = 0;
    CHECK(finish(&runs[1].op) != SKY_STATUS_DONE);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(asked[i].op != SKY_OP_GET || !SKY_Addr_Equal(asked[i].dst, besides));
    }
    close_ground();
}

/* Another schedule comes while a put waits: who stands in by that one is another matter. */
static void test_another_schedule_comes_meanwhile(void)
{
    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    runs[0].op.deadline_ms = 500;
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(&runs[0].op);
    step();
    sky.changes = 2;
    set_sky();
    while (ground.reach.suspects == 0u)
    {
        step();
    }
    CHECK_EQ(told_replaced, 0);
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_DONE);
    close_ground();
}

int main(void)
{
    RUN(test_a_put_goes_around_one_that_is_late_at_once);
    RUN(test_two_that_are_late_have_two_stand_ins);
    RUN(test_the_next_stand_in_follows_if_one_is_late_too);
    RUN(test_one_that_answers_is_trusted_again);
    RUN(test_the_rows_of_an_attempt_stay);
    RUN(test_a_get_does_not_wait_for_the_lost);
    RUN(test_nobody_is_in_sight_for_a_look);
    RUN(test_nobody_has_to_watch);
    RUN(test_one_that_is_left_out_stands_in_for_nobody);
    RUN(test_another_schedule_comes_meanwhile);
    return CHECK_RESULT();
}
