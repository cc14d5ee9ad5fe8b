/**
 * @file
 * EXCHANGE of a ground host: questions of the shell, each with an end of its own.
 */
#include "ground_rig.h"

#define QUESTIONS 3u

static run_t              run;
static SKY_HostQuestion_t questions[QUESTIONS];

/* Questions to satellites (1, 1), (1, 2), ... */
static SKY_GroundOp_t *ask(uint32_t count, uint32_t deadline_ms)
{
    SKY_GroundOp_t *op = prepare(&run, SKY_GROUND_EXCHANGE, 1, 1, 0);

    (void)memset(questions, 0, sizeof(questions));
    for (uint32_t i = 0; i < count; ++i)
    {
        const uint16_t slot = (uint16_t)(i + 1u);

        questions[i].place = (SKY_HostPlace_t){1, slot, 1, slot, 0, 0, 0};
        questions[i].apid  = SKY_APID_KVC;
        questions[i].op    = SKY_OP_PING;
    }
    op->requests      = questions;
    op->request_count = count;
    op->deadline_ms   = deadline_ms;
    return op;
}

static void test_each_question_has_an_end_of_its_own(void)
{
    open_ground(1);
    silence((SKY_Addr_t){1, 2}, true);
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(ask(QUESTIONS, 700)), SKY_STATUS_DONE);
    CHECK(questions[0].status == SKY_STATUS_DONE && questions[0].answer.status == SKY_STATUS_OK);
    CHECK_EQ(questions[0].rtt_us, RTT_US);
    CHECK_EQ(questions[1].status, SKY_STATUS_EXPIRED);
    CHECK_EQ(questions[2].status, SKY_STATUS_DONE);
    CHECK_EQ(now_us - began_us, 700000);
    CHECK(ground.running == 0u && SKY_Host_Asking(&ground.host) == 0u && told_lost == 0u);
    close_ground();
}

static void test_without_a_deadline_it_waits_as_long_as_answers_may_take(void)
{
    open_ground(1);
    CHECK_EQ(finish(ask(QUESTIONS, 0)), SKY_STATUS_DONE); /* round trips are known from now on */
    silence((SKY_Addr_t){1, 1}, true);
    const SKY_Addr_t satellite   = {1, 1};
    const uint64_t   patience_us = SKY_Host_PatienceUs(&ground.host, &satellite, 1);
    const uint64_t   began_us    = now_us;

    CHECK_EQ(finish(ask(1, 0)), SKY_STATUS_DONE);
    CHECK_EQ(questions[0].status, SKY_STATUS_EXPIRED);
    CHECK(now_us - began_us >= patience_us && now_us - began_us <= patience_us + 1000u);
    close_ground();
}

static void test_nobody_is_asked_beside_the_torus(void)
{
    open_ground(1);
    SKY_GroundOp_t *op = ask(QUESTIONS, 700);

    questions[2].place.slot = SLOTS + 1u;
    CHECK_EQ(finish(op), SKY_STATUS_REFUSED);
    op                            = ask(QUESTIONS, 700);
    questions[1].place.entry_slot = 0;
    CHECK_EQ(finish(op), SKY_STATUS_REFUSED);
    CHECK_EQ(asked_count, 0);
    close_ground();
}

static void test_no_question_and_wrong_ones_end_at_once(void)
{
    open_ground(1);
    CHECK_EQ(finish(ask(0, 700)), SKY_STATUS_DONE);
    SKY_GroundOp_t *op = ask(1, 700);

    questions[0].payload_bytes = 1; /* and there is none */
    CHECK_EQ(finish(op), SKY_STATUS_DONE);
    CHECK_EQ(questions[0].status, SKY_STATUS_EXPIRED);
    CHECK_EQ(asked_count, 0);
    close_ground();
}

static void test_before_a_sky_was_set_satellites_can_be_asked(void)
{
    open_ground(1);
    ground.sky.schedule = NULL;
    CHECK_EQ(finish(ask(QUESTIONS, 700)), SKY_STATUS_DONE);
    CHECK_EQ(questions[0].status, SKY_STATUS_DONE);
    SKY_GroundOp_t *op = ask(1, 700);

    questions[0].place.entry_plane = 0; /* nobody knows the way yet */
    CHECK_EQ(finish(op), SKY_STATUS_REFUSED);
    close_ground();
}

static void test_the_ground_finds_the_way(void)
{
    open_ground(1);
    sky.uplink     = (uint32_t)SKY_UPLINK_FIRST;
    seen[0]        = (SKY_Addr_t){2, 2};
    sky.seen_count = 1;
    set_sky();
    SKY_GroundOp_t *op = ask(1, 700);

    questions[0].place.entry_plane = 0;
    CHECK_EQ(finish(op), SKY_STATUS_DONE);
    CHECK_EQ(questions[0].status, SKY_STATUS_DONE);
    CHECK_EQ(asked_at[0], endpoint_of(NULL, seen[0]));
    sky.seen_count = 0;
    set_sky();
    op                             = ask(2, 700);
    questions[0].place.entry_plane = 0;
    CHECK_EQ(finish(op), SKY_STATUS_DONE);
    CHECK_EQ(questions[0].status, SKY_STATUS_NO_SATELLITE);
    CHECK_EQ(questions[1].status, SKY_STATUS_DONE); /* its way was named */
    close_ground();
}

static void test_who_answers_is_not_lost(void)
{
    SKY_Addr_t away;

    open_ground(1);
    away = home_of(prepare(&run, SKY_GROUND_PUT, 1, 950, 5), 1, 2);
    silence(away, true);
    CHECK_EQ(finish(&run.op), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    SKY_GroundOp_t *op = ask(1, 700);

    questions[0].place = (SKY_HostPlace_t){away.plane, away.slot, away.plane, away.slot, 0, 0, 0};
    CHECK_EQ(finish(op), SKY_STATUS_DONE);
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    op                 = ask(1, 700);
    questions[0].place = (SKY_HostPlace_t){away.plane, away.slot, away.plane, away.slot, 0, 0, 0};
    CHECK_EQ(finish(op), SKY_STATUS_DONE);
    CHECK(!SKY_Ground_IsLost(&ground, away));
    close_ground();
}

static void test_what_is_asked_goes_on_under_another_number(void)
{
    open_ground(1);
    silence_all(true);
    submit(ask(1, 700));
    step();
    silence_all(false);
    SKY_Host_SetNumber(&ground.host, 99);
    run_all();
    CHECK_EQ(questions[0].status, SKY_STATUS_DONE);
    CHECK_EQ(asked[asked_count - 1u].src.slot, 99);
    CHECK_EQ(questions[0].answer.dst.slot, 99);
    close_ground();
}

static bool says_another(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (question->op == SKY_OP_PING)
    {
        answer->src    = (SKY_Addr_t){1, 1};
        answer->status = SKY_STATUS_UNREACHABLE;
    }
    return true;
}

/* A satellite on the way says that a lost one cannot be reached, which is no sign of that one. */
static void test_only_who_answers_itself_is_not_lost(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&run, SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&run.op, 1, 2);
    silence(away, true);
    CHECK_EQ(finish(&run.op), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    for (uint32_t itself = 0; itself < 2u; ++itself)
    {
        SKY_GroundOp_t *op = ask(1, 700);

        forge              = itself > 0u ? NULL : says_another;
        questions[0].place = (SKY_HostPlace_t){away.plane, away.slot, away.plane, away.slot, 0, 0, 0};
        CHECK_EQ(finish(op), SKY_STATUS_DONE);
        CHECK_EQ(questions[0].answer.status, itself > 0u ? SKY_STATUS_OK : SKY_STATUS_UNREACHABLE);
        CHECK(SKY_Ground_IsLost(&ground, away) == (itself == 0u));
    }
    close_ground();
}

int main(void)
{
    RUN(test_each_question_has_an_end_of_its_own);
    RUN(test_without_a_deadline_it_waits_as_long_as_answers_may_take);
    RUN(test_nobody_is_asked_beside_the_torus);
    RUN(test_no_question_and_wrong_ones_end_at_once);
    RUN(test_before_a_sky_was_set_satellites_can_be_asked);
    RUN(test_the_ground_finds_the_way);
    RUN(test_who_answers_is_not_lost);
    RUN(test_what_is_asked_goes_on_under_another_number);
    RUN(test_only_who_answers_itself_is_not_lost);
    return CHECK_RESULT();
}
