/**
 * @file
 * EXCHANGE of a ground host: questions of the shell, each with an end of its own.
 */
#include "ground_rig.h"

#define QUESTIONS 3u
#define WAITING   4u

static run_t              run;
static SKY_HostQuestion_t questions[QUESTIONS];
static run_t              waiting[WAITING];
static SKY_HostQuestion_t waiting_for[WAITING];

/* One operation at a time, and one question. */
static void one_at_a_time(SKY_GroundLimits_t *limits)
{
    limits->operations = 1;
    limits->questions  = 1;
}

/* A question to a satellite of plane 1 in an operation of its own. */
static void submit_one(uint32_t number, uint16_t slot, uint32_t deadline_ms)
{
    SKY_GroundOp_t *op = prepare(&waiting[number], SKY_GROUND_EXCHANGE, 1, 1, 0);

    waiting_for[number] = (SKY_HostQuestion_t){.place = {1, slot, 1, slot, 0, 0, 0}, .apid = SKY_APID_KVC, .op = SKY_OP_PING};
    op->requests        = &waiting_for[number];
    op->request_count   = 1;
    op->deadline_ms     = deadline_ms;
    submit(op);
}

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

static bool refuses(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (question->op == SKY_OP_PING)
    {
        answer->status = SKY_STATUS_UNAUTHENTICATED;
    }
    return true;
}

/* A satellite on the way says that a lost one cannot be reached, which is no sign of that one; nor is it of use if it refuses this host. */
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

        forge              = itself > 0u ? NULL : refuses;
        questions[0].place = (SKY_HostPlace_t){away.plane, away.slot, away.plane, away.slot, 0, 0, 0};
        CHECK_EQ(itself > 0u ? SKY_STATUS_DONE : finish(op), SKY_STATUS_DONE);
        CHECK(itself > 0u || (questions[0].answer.status == SKY_STATUS_UNAUTHENTICATED && SKY_Ground_IsLost(&ground, away)));
        op                 = itself > 0u ? op : ask(1, 700);
        forge              = itself > 0u ? NULL : says_another;
        questions[0].place = (SKY_HostPlace_t){away.plane, away.slot, away.plane, away.slot, 0, 0, 0};
        CHECK_EQ(finish(op), SKY_STATUS_DONE);
        CHECK_EQ(questions[0].answer.status, itself > 0u ? SKY_STATUS_OK : SKY_STATUS_UNREACHABLE);
        CHECK(SKY_Ground_IsLost(&ground, away) == (itself == 0u));
    }
    close_ground();
}

static void test_a_deadline_counts_from_the_beginning_of_the_wait(void)
{
    const uint32_t deadlines_ms[WAITING] = {700, 300, 900, 0};
    uint64_t       ended_us[WAITING]     = {0};

    limit = one_at_a_time;
    open_ground(1);
    limit = NULL;
    silence_all(true);
    const uint64_t began_us = now_us;

    for (uint32_t i = 0; i < WAITING; ++i)
    {
        submit_one(i, 1, deadlines_ms[i]);
    }
    for (uint32_t steps = 0; !waiting[WAITING - 1u].has_ended && steps < STEPS_MAX; ++steps)
    {
        const uint64_t passed_us = now_us - began_us;

        step();
        for (uint32_t i = 0; i < WAITING; ++i)
        {
            ended_us[i] = waiting[i].has_ended && ended_us[i] == 0u ? passed_us : ended_us[i];
        }
    }
    for (uint32_t i = 0; i < WAITING; ++i)
    {
        CHECK(waiting[i].has_ended && waiting[i].op.status == SKY_STATUS_DONE);
        CHECK_EQ(waiting_for[i].status, SKY_STATUS_EXPIRED);
        CHECK_EQ(waiting_for[i].request_id != 0u, i != 1u); /* whose turn has come */
        CHECK(i == 3u || (ended_us[i] >= deadlines_ms[i] * 1000u && ended_us[i] <= (deadlines_ms[i] + 1u) * 1000u));
    }
    CHECK(ended_us[3] > ended_us[2]); /* without a deadline it has waited for its turn */
    CHECK_EQ(ground.queue.expires_us, UINT64_MAX);
    close_ground();
}

static void test_nobody_is_late_while_the_host_reads(void)
{
    limit = one_at_a_time;
    open_ground(1);
    limit = NULL;
    silence_all(true);
    submit_one(0, 1, 700);
    step();
    submit_one(1, 2, 300);
    submit_one(2, 2, 400);
    now_us += 301000;
    CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us);
    CHECK(waiting_for[1].status != SKY_STATUS_EXPIRED);
    SKY_Ground_Cancel(&ground, &waiting[0].op);
    CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us); /* the next one begins all the same, though it has no time left */
    CHECK_EQ(waiting_for[1].deadline_ms, 1);
    run_all();
    CHECK(waiting[1].has_ended && waiting_for[1].status == SKY_STATUS_EXPIRED);
    CHECK(waiting[2].has_ended && waiting_for[2].deadline_ms >= 97u && waiting_for[2].deadline_ms <= 99u);
    close_ground();
}

static void test_who_was_not_asked_is_not_silent(void)
{
    limit = one_at_a_time;
    open_ground(1);
    limit = NULL;
    silence((SKY_Addr_t){1, 1}, true);
    CHECK_EQ(finish(ask(2, 1500)), SKY_STATUS_DONE);
    CHECK(questions[0].status == SKY_STATUS_EXPIRED && questions[0].request_id != 0u);
    CHECK(questions[1].status == SKY_STATUS_EXPIRED && questions[1].request_id == 0u);
    CHECK(ground.hearing[0].silent_us == now_us && ground.hearing[1].silent_us == 0u);
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
    RUN(test_a_deadline_counts_from_the_beginning_of_the_wait);
    RUN(test_nobody_is_late_while_the_host_reads);
    RUN(test_who_was_not_asked_is_not_silent);
    return CHECK_RESULT();
}
