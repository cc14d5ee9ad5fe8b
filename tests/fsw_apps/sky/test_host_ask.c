/**
 * @file
 * Questions of the host: what is sent when, and how each ends.
 */
#include "ask_rig.h"

static void test_a_question_is_sent_as_asked_and_its_answer_kept(void)
{
    static const uint8_t told[] = {9, 8, 7, 6};
    SKY_HostQuestion_t   one    = question(0);

    start(false);
    ask(&one);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(SKY_Host_Asking(&host), 1);
    CHECK_EQ(run(), now_us + FIRST_US);
    CHECK_EQ(sent_count, 1);
    const SKY_Packet_t *pkt = &sent[0].pkt;

    CHECK_EQ(sent[0].endpoint, 100);
    CHECK(pkt->is_request && SKY_Host_IsQuestion(pkt->request_id));
    CHECK(pkt->apid == SKY_APID_KVC && pkt->op == SKY_OP_HAS && pkt->flags == SKY_FLAG_ANY && pkt->status == SKY_STATUS_OK);
    CHECK(pkt->tenant == 5 && pkt->epoch == 6 && pkt->chunk_id == 7 && pkt->credit == 8);
    CHECK_EQ(pkt->block_version, 9);
    CHECK(SKY_Addr_Equal(pkt->dst, satellite(0)) && SKY_Addr_Equal(pkt->src, (SKY_Addr_t){0, NUMBER}));
    CHECK(memcmp(pkt->key, one.key, SKY_KEY_BYTES) == 0);
    CHECK(pkt->payload == one.payload && pkt->length == one.payload_bytes);
    CHECK_EQ(pkt->deadline_ms, 5000);

    now_us += 30000;
    SKY_Packet_t back = answer_to(0, SKY_STATUS_OK);

    back.payload     = told;
    back.length      = sizeof(told);
    back.chunk_total = 3;
    back.block_len   = 2001;
    back.chunk_len   = 1000;
    receive(&back);
    check_ended(&one, SKY_STATUS_DONE);
    check_none_ended();
    CHECK_EQ(SKY_Host_Asking(&host), 0);
    CHECK(one.sent == 1 && one.rtt_us == 30000);
    CHECK(one.answer.status == SKY_STATUS_OK && one.answer.chunk_total == 3 && one.answer.block_len == 2001);
    CHECK(one.answer.payload == rooms[0] && one.answer.length == sizeof(told) && memcmp(rooms[0], told, sizeof(told)) == 0);
    CHECK_EQ(run(), UINT64_MAX);
    CHECK_EQ(sent_count, 1);
    answer(0, SKY_STATUS_OK); /* once more: nobody waits for it */
    CHECK_EQ(host.counters.stale, 1);
    check_none_ended();
}

static void test_numbers_that_contradict_each_other(void)
{
    const SKY_HostQuestion_t good = question(0);
    SKY_HostQuestion_t       one;

    start(false);
    for (uint32_t wrong = 0; wrong < 6u; ++wrong)
    {
        one               = good;
        one.place.plane   = wrong == 0 ? 0 : one.place.plane;
        one.place.slot    = wrong == 1 ? 0 : one.place.slot;
        one.deadline_ms   = wrong == 2 ? 0 : one.deadline_ms;
        one.payload       = wrong == 3 ? NULL : one.payload;
        one.room          = wrong == 4 ? NULL : one.room;
        one.payload_bytes = wrong == 5 ? SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_OVERHEAD + 1u : one.payload_bytes;
        CHECK_EQ(SKY_Host_Ask(&host, now_us, &one), SKY_HOST_WRONG);
    }
    CHECK_EQ(SKY_Host_Asking(&host), 0);
    one               = good;
    one.payload       = NULL;
    one.payload_bytes = 0;
    one.room          = NULL;
    one.room_bytes    = 0;
    ask(&one);
    (void)run();
    SKY_Packet_t back = answer_to(0, SKY_STATUS_OK);

    back.payload = good.payload; /* there is no room for it */
    back.length  = good.payload_bytes;
    receive(&back);
    check_ended(&one, SKY_STATUS_DONE);
    CHECK(one.answer.payload == NULL && one.answer.length == good.payload_bytes);
}

static void test_memory_that_is_none(void)
{
    SKY_HostQuestionMemory_t memory = {asked, PLACES};
    SKY_HostQuestion_t       one    = question(0);

    start(false);
    memory.count = 0;
    CHECK(!SKY_Host_LendQuestions(&host, &memory));
    memory.count = SKY_HOST_QUESTIONS_MAX + 1u;
    CHECK(!SKY_Host_LendQuestions(&host, &memory));
    memory = (SKY_HostQuestionMemory_t){NULL, PLACES};
    CHECK(!SKY_Host_LendQuestions(&host, &memory));
    ask(&one);
    memory = (SKY_HostQuestionMemory_t){asked, PLACES};
    CHECK(!SKY_Host_LendQuestions(&host, &memory)); /* one waits */
    SKY_Host_Stop(&host, now_us, NULL, SKY_STATUS_CANCELLED);
    CHECK(SKY_Host_LendQuestions(&host, &memory));

    host.questions.memory.count = 0; /* as before any was lent */
    CHECK_EQ(SKY_Host_Ask(&host, now_us, &one), SKY_HOST_FULL);
}

static void test_what_is_lost_is_sent_again_until_the_deadline(void)
{
    /* the timer doubles after three sendings, up to a second */
    static const uint64_t at_us[] = {0, 250000, 500000, 750000, 1250000, 1750000, 2250000, 3250000, 4250000};
    SKY_HostQuestion_t    one     = question(0);

    start(false);
    ask(&one);
    run_until(START_US + 4999999);
    CHECK_EQ(sent_count, 9);
    check_none_ended();
    CHECK_EQ(run(), START_US + 5000000);
    for (uint32_t i = 0; i < sent_count; ++i)
    {
        CHECK_EQ(sent[i].pkt.request_id, sent[0].pkt.request_id);
        CHECK_EQ(sent[i].pkt.deadline_ms, 5000 - at_us[i] / 1000);
        CHECK_EQ(sent[i].pkt.seq_count, i);
    }
    now_us = START_US + 5000000;
    CHECK_EQ(run(), UINT64_MAX);
    check_ended(&one, SKY_STATUS_EXPIRED);
    CHECK_EQ(one.sent, 9);
    CHECK_EQ(host.counters.repeats, 8);
}

static void test_each_question_has_its_own_timer(void)
{
    SKY_HostQuestion_t two[2] = {question(0), question(1)};

    start(false);
    ask(&two[0]);
    (void)run();
    now_us += 100000;
    ask(&two[1]);
    CHECK_EQ(run(), START_US + FIRST_US);
    now_us = START_US + FIRST_US;
    CHECK_EQ(run(), START_US + 100000 + FIRST_US);
    CHECK(two[0].sent == 2 && two[1].sent == 1);
    now_us = START_US + 100000 + FIRST_US;
    CHECK_EQ(run(), START_US + 2u * FIRST_US);
    CHECK(two[0].sent == 2 && two[1].sent == 2);
}

/* What has come but was not read yet is not late. */
static void test_nothing_is_late_while_datagrams_are_read(void)
{
    SKY_HostQuestion_t one = question(0);

    start(false);
    ask(&one);
    (void)run();
    now_us += 5000000;
    CHECK_EQ(SKY_Host_Run(&host, now_us, false), now_us);
    CHECK_EQ(sent_count, 1);
    answer(0, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
}

static void test_busy_is_asked_again_in_its_time(void)
{
    SKY_HostQuestion_t one = question(0);

    start(false);
    ask(&one);
    (void)run();
    now_us += 1000;
    answer(0, SKY_STATUS_BUSY);
    check_none_ended();
    CHECK_EQ(run(), START_US + FIRST_US);
    CHECK_EQ(sent_count, 1);
    run_until(START_US + FIRST_US);
    CHECK_EQ(sent_count, 2);
    answer(1, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
}

static void test_more_questions_than_places(void)
{
    SKY_HostQuestion_t five[5];

    start(false);
    for (uint32_t i = 0; i < 5u; ++i)
    {
        five[i]             = question(i);
        five[i].deadline_ms = i == 3 ? 100 : 5000;
        ask(&five[i]);
    }
    CHECK_EQ(SKY_Host_Asking(&host), 5);
    CHECK_EQ(run(), START_US + 100000); /* the deadline of one that waits */
    CHECK_EQ(sent_count, PLACES);
    answer(0, SKY_STATUS_OK);
    (void)run();
    CHECK_EQ(sent_count, 3);
    CHECK(SKY_Addr_Equal(sent[2].pkt.dst, satellite(2)));
    CHECK(sent[2].pkt.request_id != sent[0].pkt.request_id);
    answer(0, SKY_STATUS_OK); /* the place is another one's now */
    CHECK_EQ(host.counters.stale, 1);
    check_ended(&five[0], SKY_STATUS_DONE);
    check_none_ended();

    now_us = START_US + 100000;
    CHECK_EQ(run(), START_US + FIRST_US); /* one of those that wait has waited in vain, the other one still waits */
    check_ended(&five[3], SKY_STATUS_EXPIRED);
    CHECK_EQ(five[3].sent, 0);
    CHECK_EQ(SKY_Host_Asking(&host), 3);
    answer(1, SKY_STATUS_OK);
    answer(2, SKY_STATUS_OK);
    (void)run();
    answer(3, SKY_STATUS_OK);
    check_ended(&five[1], SKY_STATUS_DONE);
    check_ended(&five[2], SKY_STATUS_DONE);
    check_ended(&five[4], SKY_STATUS_DONE);
    CHECK_EQ(SKY_Host_Asking(&host), 0);
}

/* All of them wait behind others, and their time is over before there is a place, or just as there is one. */
static void test_waiting_in_vain(void)
{
    SKY_HostQuestion_t five[5];

    start(false);
    for (uint32_t i = 0; i < 5u; ++i)
    {
        five[i]             = question(i);
        five[i].deadline_ms = i < 2 ? 5000 : i == 4 ? 300 : 100 * (6u - i);
        ask(&five[i]);
    }
    (void)run();
    now_us += 1000;
    answer(0, SKY_STATUS_OK);
    now_us = START_US + 400000; /* both timers and deadlines are over; nobody has looked, for datagrams were read */
    CHECK_EQ(SKY_Host_Run(&host, now_us, false), now_us);
    check_ended(&five[0], SKY_STATUS_DONE);
    check_ended(&five[2], SKY_STATUS_EXPIRED);
    check_ended(&five[3], SKY_STATUS_EXPIRED);
    check_ended(&five[4], SKY_STATUS_EXPIRED);
    CHECK(five[2].sent == 0 && five[3].sent == 0);

    for (uint32_t i = 2; i < 6u; ++i) /* one goes out, one waits in vain, two go on waiting */
    {
        five[i % 5u]             = question(i % 5u);
        five[i % 5u].deadline_ms = i == 3u ? 100 : 5000;
        ask(&five[i % 5u]);
    }
    (void)run();
    sent_count = 0;
    now_us += 100000;
    (void)run();
    check_ended(&five[3], SKY_STATUS_EXPIRED);
    CHECK_EQ(SKY_Host_Asking(&host), 4);
    SKY_Host_RefuseTooLarge(&host, now_us, five[1].request_id);
    SKY_Host_RefuseTooLarge(&host, now_us, five[2].request_id);
    sent_count = 0;
    (void)run();
    CHECK_EQ(sent_count, 2);
    CHECK(SKY_Addr_Equal(sent[0].pkt.dst, satellite(4)) && SKY_Addr_Equal(sent[1].pkt.dst, satellite(0)));
    SKY_Host_Stop(&host, now_us, NULL, SKY_STATUS_CANCELLED);
    CHECK_EQ(SKY_Host_Asking(&host), 0);
}

static void test_stop_ends_all(void)
{
    SKY_HostQuestion_t four[4];
    SKY_HostBlock_t    none;

    start(false);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        four[i] = question(i);
        ask(&four[i]);
    }
    (void)run();
    answer(0, SKY_STATUS_OK);
    SKY_Host_Stop(&host, now_us, &none, SKY_STATUS_CANCELLED); /* a block is no question */
    CHECK_EQ(SKY_Host_Asking(&host), 3);
    SKY_Host_Stop(&host, now_us, NULL, SKY_STATUS_CANCELLED);
    CHECK_EQ(SKY_Host_Asking(&host), 0);
    check_ended(&four[0], SKY_STATUS_DONE);
    for (uint32_t i = 1; i < 4u; ++i)
    {
        check_ended(&four[i], SKY_STATUS_CANCELLED);
    }
    check_none_ended();
    CHECK_EQ(run(), UINT64_MAX);
    CHECK_EQ(sent_count, PLACES);
    answer(1, SKY_STATUS_OK);
    CHECK_EQ(host.counters.stale, 1);
    ask(&four[3]); /* places are free again */
    (void)run();
    CHECK_EQ(sent_count, PLACES + 1u);
}

/* Two are on their way, four wait: one of each, and one in the middle of those that wait, are withdrawn. */
static void test_an_owner_withdraws_its_questions(void)
{
    SKY_HostQuestion_t six[6];

    start(false);
    for (uint32_t i = 0; i < 6u; ++i)
    {
        six[i]       = question(i % SATELLITES);
        six[i].owner = i % 2u == 0u ? (void *)&host : (void *)six;
        ask(&six[i]);
    }
    (void)run();
    CHECK_EQ(sent_count, PLACES);
    SKY_Host_Withdraw(&host, &host, SKY_STATUS_CANCELLED);
    CHECK_EQ(SKY_Host_Asking(&host), 3);
    for (uint32_t i = 0; i < 6u; i += 2u)
    {
        check_ended(&six[i], SKY_STATUS_CANCELLED);
    }
    check_none_ended();
    (void)run();
    CHECK_EQ(sent_count, PLACES + 1u);
    answer(1, SKY_STATUS_OK);
    answer(2, SKY_STATUS_OK);
    check_ended(&six[1], SKY_STATUS_DONE);
    check_ended(&six[3], SKY_STATUS_DONE);
    (void)run();
    answer(3, SKY_STATUS_OK);
    check_ended(&six[5], SKY_STATUS_DONE);
    CHECK_EQ(SKY_Host_Asking(&host), 0);
}

static void test_a_packet_that_no_path_takes(void)
{
    SKY_HostQuestion_t one = question(0);

    start(false);
    ask(&one);
    (void)run();
    SKY_Host_RefuseTooLarge(&host, now_us, sent[0].pkt.request_id ^ UINT64_C(1) << 40);
    check_none_ended();
    SKY_Host_RefuseTooLarge(&host, now_us, sent[0].pkt.request_id);
    check_ended(&one, SKY_STATUS_TOO_LARGE);
    SKY_Host_RefuseTooLarge(&host, now_us, sent[0].pkt.request_id);
    check_none_ended();
}

/* Nobody waits for a question any more: another one goes on in its place, or nothing does. */
static void test_what_is_left_ends_nowhere(void)
{
    SKY_HostQuestion_t all[4] = {question(0), question(1), question(2), question(3)};
    SKY_HostQuestion_t heir;

    start(false);
    ask(&all[0]);
    CHECK(!SKY_Host_Leave(&host, &all[0], &heir)); /* it has not been sent: there is nothing to wait for */
    CHECK(all[0].status == SKY_STATUS_EXPIRED && SKY_Host_Asking(&host) == 0);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        ask(&all[i]);
    }
    (void)run();
    CHECK(sent_count == PLACES && SKY_Host_Asking(&host) == 4u);
    CHECK(!SKY_Host_Leave(&host, &all[2], NULL)); /* it waits for a place, and the one behind it goes on doing so */
    CHECK(!SKY_Host_Leave(&host, &all[1], NULL));
    CHECK(SKY_Host_Leave(&host, &all[0], &heir));
    CHECK(all[0].status == SKY_STATUS_EXPIRED && heir.status == SKY_STATUS_RUNNING);
    (void)run();
    CHECK(sent_count == PLACES + 1u && SKY_Addr_Equal(sent[PLACES].pkt.dst, satellite(3)));
    answer(1, SKY_STATUS_OK);
    check_none_ended();
    answer(0, SKY_STATUS_OK);
    check_ended(&heir, SKY_STATUS_DONE);
    answer(PLACES, SKY_STATUS_OK);
    check_ended(&all[3], SKY_STATUS_DONE);
    check_none_ended();
    CHECK_EQ(SKY_Host_Asking(&host), 0);
}

/* With keys it waits for a session, although it has a place. */
static void test_what_is_left_unsent_has_no_heir(void)
{
    SKY_HostQuestion_t one = question(0);
    SKY_HostQuestion_t heir;

    start(false);
    ask(&one);
    (void)run();
    one.sent = 0;
    CHECK(!SKY_Host_Leave(&host, &one, &heir));
    CHECK_EQ(SKY_Host_Asking(&host), 0);
}

int main(void)
{
    RUN(test_a_question_is_sent_as_asked_and_its_answer_kept);
    RUN(test_numbers_that_contradict_each_other);
    RUN(test_memory_that_is_none);
    RUN(test_what_is_lost_is_sent_again_until_the_deadline);
    RUN(test_each_question_has_its_own_timer);
    RUN(test_nothing_is_late_while_datagrams_are_read);
    RUN(test_busy_is_asked_again_in_its_time);
    RUN(test_more_questions_than_places);
    RUN(test_waiting_in_vain);
    RUN(test_stop_ends_all);
    RUN(test_an_owner_withdraws_its_questions);
    RUN(test_what_is_left_ends_nowhere);
    RUN(test_what_is_left_unsent_has_no_heir);
    RUN(test_a_packet_that_no_path_takes);
    return CHECK_RESULT();
}
