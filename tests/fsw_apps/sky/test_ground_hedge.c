/**
 * @file
 * FIND of a ground host while a satellite is late: who is asked besides, and when it is known to be lost.
 */
#include "ground_rig.h"

#define KEYS 8u

static run_t             runs[OPERATIONS];
static SKY_GroundFound_t found[KEYS];

/* Put a value with a share of parity, and know how long all satellites take. */
static SKY_Addr_t put_value(bool is_warm)
{
    open_ground(1);
    sky.parity = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 350, 5);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 350, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    for (uint32_t number = 0; is_warm && number < 4u; ++number)
    {
        CHECK_EQ(find(&runs[1], 1u + 64u * number), number == 0u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
    }
    return home_of(&runs[0].op, 1, 0);
}

/* The newest version counts, so that the silent home has to speak, or to be known as lost. The look begins as soon as it is late. */
static void test_a_look_begins_when_another_one_has_answered(void)
{
    for (uint32_t is_warm = 0; is_warm < 2u; ++is_warm)
    {
        const SKY_Addr_t away     = put_value(is_warm != 0u);
        const uint64_t   began_us = now_us;

        silence(away, true);
        told_lost = 0;
        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        CHECK_EQ(runs[1].one.facts.version, 5);
        CHECK(now_us - began_us < (is_warm != 0u ? 700000u : 2000000u));
        CHECK(told_lost == 1u && SKY_Ground_IsLost(&ground, away));
        CHECK_EQ(SKY_Host_Asking(&ground.host), 0);
        close_ground();
    }
}

/* It was late, and answers: its word counts, and it is not lost. */
static void test_one_that_is_late_may_answer(void)
{
    const SKY_Addr_t late = put_value(true);

    silence(late, true);
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0));
    while (ground.inquiry.kind != SKY_GROUND_WAIT_LOOK)
    {
        step();
    }
    silence(late, false);
    run_all();
    CHECK(runs[1].op.status == SKY_STATUS_DONE && runs[1].one.silences == 0u);
    rest();
    CHECK(told_lost == 0u && ground.doubted.plane == 0u);
    close_ground();
}

/* All keys of a look-up go on at once around a satellite that is lost. */
static void test_many_keys_wait_once(void)
{
    const SKY_Addr_t away = put_value(true);

    silence(away, true);
    (void)prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0);
    for (uint32_t i = 0; i < KEYS; ++i)
    {
        (void)memset(&found[i], 0, sizeof(found[i]));
        fx_key(found[i].key, 1u + i);
    }
    runs[1].op.found        = found;
    runs[1].op.found_count  = KEYS;
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_MISS);
    CHECK_EQ(found[0].status, SKY_STATUS_DONE);
    CHECK(now_us - began_us < SECOND_US && told_lost == 1u);
    close_ground();
}

/* Without parity satellites are asked one after the other: that of this row, and that of the row before, which has not handed over yet. */
static void test_the_next_one_is_asked_besides(void)
{
    SKY_Addr_t away;

    open_ground(2);
    CHECK_EQ(put(&runs[0], 1, 350, 0), SKY_STATUS_DONE);
    away   = home_of(&runs[0].op, 2, 0);
    now_us = START_US + ROW_US + SECOND_US;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK_EQ(runs[1].op.tries, 2);
    silence(away, true);
    const uint64_t began_us = now_us;

    asked_count = 0;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK(SKY_Addr_Equal(asked[0].dst, away) && runs[1].op.tries == 2u);
    CHECK(now_us - began_us < 15u * RTT_US && told_lost == 0u);
    rest(); /* nobody waits for what becomes of it */
    CHECK(told_lost == 1u && SKY_Ground_IsLost(&ground, away));
    close_ground();
}

static void ask_one_at_a_time(SKY_GroundLimits_t *limits)
{
    limits->questions = 1;
}

/* What waits to be sent is not late, nor is anybody doubted before another one has answered. */
static void test_a_question_that_waits_is_not_late(void)
{
    limit                 = ask_one_at_a_time;
    const SKY_Addr_t late = put_value(true);

    limit = NULL;
    silence(late, true);
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0));
    for (const uint64_t end_us = now_us + SECOND_US / 2u; now_us < end_us;)
    {
        step();
        CHECK(ground.inquiry.kind == SKY_GROUND_WAIT_NOT);
    }
    silence(late, false);
    run_all();
    CHECK(runs[1].op.status == SKY_STATUS_DONE && runs[1].one.facts.version == 5u);
    CHECK_EQ(told_lost, 0);
    close_ground();
}

/* What lies unread on the socket is not late. */
static void test_nothing_is_late_before_all_was_read(void)
{
    const SKY_Addr_t away = put_value(true);

    silence(away, true);
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0));
    (void)SKY_Ground_Run(&ground, now_us, true);
    now_us += SECOND_US / 4u;
    while (hear(now_us))
    {
        CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us);
    }
    CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us);
    CHECK(ground.doubted.plane == 0u && ground.inquiry.kind == SKY_GROUND_WAIT_NOT);
    (void)SKY_Ground_Run(&ground, now_us, true);
    CHECK_EQ(ground.inquiry.kind, SKY_GROUND_WAIT_LOOK);
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    close_ground();
}

int main(void)
{
    RUN(test_a_look_begins_when_another_one_has_answered);
    RUN(test_one_that_is_late_may_answer);
    RUN(test_many_keys_wait_once);
    RUN(test_the_next_one_is_asked_besides);
    RUN(test_a_question_that_waits_is_not_late);
    RUN(test_nothing_is_late_before_all_was_read);
    return CHECK_RESULT();
}
