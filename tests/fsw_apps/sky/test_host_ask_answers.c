/**
 * @file
 * Questions of the host: which answers count, and what they tell of the host's number and of round trips.
 */
#include "ask_rig.h"

static void test_what_is_no_answer_does_not_count(void)
{
    SKY_HostQuestion_t one = question(0);
    SKY_Packet_t       pkt;

    start(false);
    ask(&one);
    (void)run();
    for (uint32_t forged = 0; forged < 10u; ++forged)
    {
        pkt = answer_to(0, forged == 8 ? SKY_STATUS_NOT_FOUND : SKY_STATUS_OK);
        pkt.request_id ^= forged == 0 ? UINT64_C(1) << 40 : 0;          /* same place, another question */
        pkt.request_id ^= forged == 1 ? UINT64_C(1) << 16 : 0;          /* a free place */
        pkt.request_id |= forged == 2 ? (uint64_t)UINT16_MAX << 16 : 0; /* no place */
        pkt.request_id |= forged == 3 ? UINT64_C(1) << 32 : 0;          /* a transfer's */
        pkt.op    = forged == 4 ? SKY_OP_PURGE : pkt.op;
        pkt.dst   = forged == 5 ? (SKY_Addr_t){0, NUMBER + 1u} : pkt.dst;
        pkt.flags = forged == 6 ? SKY_FLAG_TLM : pkt.flags;
        pkt.apid  = forged == 7 ? SKY_APID_ISL : pkt.apid;
        pkt.src   = forged == 8 || forged == 9 ? (SKY_Addr_t){1, 1} : pkt.src;
        receive(&pkt);
        CHECK_EQ(host.counters.stale, forged + 1u);
    }
    pkt            = answer_to(0, SKY_STATUS_OK);
    pkt.is_request = true;
    receive(&pkt);
    pkt.is_request = false;
    receive_from(101, &pkt);
    CHECK_EQ(host.counters.stale, 12);
    SKY_Host_Receive(&host, now_us, 100, (const uint8_t *)"noise", 5);
    CHECK_EQ(host.counters.undecoded, 1);
    check_none_ended();
    CHECK_EQ(SKY_Host_Asking(&host), 1);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);

    /* Why it did not get there may be said by anybody on the way, whatever application he is. */
    pkt      = answer_to(0, SKY_STATUS_UNREACHABLE);
    pkt.src  = (SKY_Addr_t){1, 1};
    pkt.apid = SKY_APID_ISL;
    receive(&pkt);
    check_ended(&one, SKY_STATUS_DONE);
    CHECK(one.answer.status == SKY_STATUS_UNREACHABLE && SKY_Addr_Equal(one.answer.src, (SKY_Addr_t){1, 1}));
}

static void test_an_answer_that_is_too_long_is_not_written(void)
{
    uint8_t            told[ROOM + 1u];
    SKY_HostQuestion_t two[2] = {question(0), question(1)};

    start(false);
    (void)memset(told, 0x77, sizeof(told));
    (void)memset(rooms, 0, sizeof(rooms));
    ask(&two[0]);
    ask(&two[1]);
    (void)run();
    for (uint32_t i = 0; i < 2u; ++i)
    {
        SKY_Packet_t pkt = answer_to(i, SKY_STATUS_OK);

        pkt.payload = told;
        pkt.length  = ROOM + 1u - i;
        receive(&pkt);
        check_ended(&two[i], SKY_STATUS_DONE);
        CHECK_EQ(two[i].answer.length, pkt.length);
    }
    CHECK(two[0].answer.payload == NULL && rooms[0][0] == 0);
    CHECK(two[1].answer.payload == rooms[1] && rooms[1][ROOM - 1u] == 0x77);
    CHECK_EQ(rooms[2][0], 0);
}

/* The gateway's word that another host has our number. */
static void refuse(uint32_t nth)
{
    SKY_Packet_t pkt = answer_to(nth, SKY_STATUS_REFUSED);

    pkt.src = (SKY_Addr_t){1, 1};
    receive(&pkt);
}

static void test_a_number_that_another_host_has(void)
{
    SKY_HostQuestion_t three[3] = {question(0), question(1), question(2)};

    start(false);
    ask(&three[0]);
    ask(&three[1]);
    ask(&three[2]);
    (void)run();
    now_us += 1000;
    refuse(0);
    CHECK(host.self.plane == 0 && host.self.slot != NUMBER && host.self.slot != 0);
    refuse(1); /* of the number of before: stale */
    CHECK_EQ(host.counters.stale, 1);
    (void)run();
    CHECK_EQ(sent_count, 4);
    for (uint32_t i = 2; i < 4u; ++i)
    {
        CHECK(SKY_Addr_Equal(sent[i].pkt.src, host.self));
        CHECK_EQ(sent[i].pkt.request_id, sent[i - 2u].pkt.request_id);
    }
    CHECK_EQ(host.counters.repeats, 2);
    now_us += 3000;
    answer(2, SKY_STATUS_OK); /* the third one goes out under the new number, and that counts as measured */
    CHECK(three[0].sent == 2 && three[0].rtt_us == 3000);
    CHECK_EQ(SKY_Host_HurryUs(&host, &(SKY_Addr_t){2, 1}, 1), 3 * 20000);
    (void)run();
    CHECK(SKY_Addr_Equal(sent[4].pkt.src, host.self));

    /* Who is refused again is refused for another reason. */
    const SKY_Addr_t number = host.self;

    refuse(3);
    CHECK(SKY_Addr_Equal(host.self, number));
    check_ended(&three[0], SKY_STATUS_DONE);
    check_ended(&three[1], SKY_STATUS_DONE);
    CHECK_EQ(three[1].answer.status, SKY_STATUS_REFUSED);

    /* What is asked from now on may be refused for its number; what was asked before is asked again as well. */
    SKY_HostQuestion_t later = question(3);

    ask(&later);
    (void)run();
    answer(4, SKY_STATUS_OK);
    check_ended(&three[2], SKY_STATUS_DONE);
    refuse(5);
    CHECK(!SKY_Addr_Equal(host.self, number));
    check_none_ended();
    (void)run();
    CHECK(SKY_Addr_Equal(sent[6].pkt.src, host.self));
    answer(6, SKY_STATUS_OK);
    check_ended(&later, SKY_STATUS_DONE);
}

static void test_what_is_refused_for_other_reasons(void)
{
    for (uint32_t reason = 0; reason < 3u; ++reason)
    {
        SKY_HostQuestion_t one = question(0);

        start(reason == 0); /* it keeps its number */
        one.op = reason == 1 ? SKY_OP_RELAY : one.op;
        ask(&one);
        (void)run();
        if (reason == 2) /* by the satellite itself */
        {
            answer(0, SKY_STATUS_REFUSED);
        }
        else
        {
            refuse(0);
        }
        check_ended(&one, SKY_STATUS_DONE);
        CHECK_EQ(one.answer.status, SKY_STATUS_REFUSED);
        CHECK_EQ(host.self.slot, NUMBER);
    }
    SKY_Host_SetNumber(&host, 12);
    CHECK_EQ(host.self.slot, 12);
}

/* Let satellite 0 answer the nth sending of a question @p rtt_us after the first sending. @return its patience then */
static uint64_t measure(uint64_t rtt_us)
{
    const SKY_Addr_t   addr   = satellite(0);
    const uint64_t     end_us = now_us + rtt_us;
    SKY_HostQuestion_t one    = question(0);

    sent_count = 0;
    ask(&one);
    run_until(end_us);
    answer(sent_count - 1u, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
    return SKY_Host_PatienceUs(&host, &addr, 1);
}

static void test_patience_follows_round_trips(void)
{
    const SKY_Addr_t near = satellite(0);
    SKY_Addr_t       two[2];

    two[0] = satellite(0);
    two[1] = satellite(1);
    start(false);
    CHECK_EQ(SKY_Host_PatienceUs(&host, NULL, 0), SKY_HOST_PATIENCE_MIN_US);
    CHECK_EQ(SKY_Host_HurryUs(&host, NULL, 0), 0);
    CHECK_EQ(SKY_Host_PatienceUs(&host, &near, 1), 250000 + 500000 + 1000000); /* nothing is known */
    CHECK_EQ(SKY_Host_HurryUs(&host, &near, 1), 250000 + 500000);

    /* Sent again, the last time 50 ms ago, and it is not known which was answered. A short guess makes no timer shorter than knowing nothing. */
    CHECK_EQ(measure(800000), 250000 + 500000 + 1000000);
    CHECK_EQ(host.peers.peers[0].peer.srtt_us, 50000);
    /* Sent again once more: the first sending gives the upper bound. */
    CHECK_EQ(measure(800000), 3 * 1000000); /* the timer has its upper bound */
    CHECK_EQ(host.peers.peers[0].peer.srtt_us, 800000);
    /* Known, so what was sent again tells nothing more. */
    CHECK_EQ(measure(1200000), 3 * 1000000);
    CHECK_EQ(host.peers.peers[0].peer.srtt_us, 800000);
    for (uint32_t i = 0; i < 100u; ++i)
    {
        (void)measure(1000);
    }
    CHECK(host.peers.peers[0].peer.srtt_us < 1100);
    CHECK_EQ(SKY_Host_HurryUs(&host, &near, 1), 20000 + 40000); /* the timer has its lower bound */
    CHECK_EQ(SKY_Host_PatienceUs(&host, &near, 1), SKY_HOST_PATIENCE_MIN_US);
    CHECK_EQ(SKY_Host_HurryUs(&host, two, 2), 250000 + 500000); /* of the slowest */

    SKY_Host_Expect(&host, satellite(1), 40000);
    CHECK_EQ(SKY_Host_HurryUs(&host, two, 2), 3 * (40000 + 4 * 20000));
    SKY_Host_Expect(&host, satellite(1), 1); /* one is known */
    CHECK_EQ(SKY_Host_HurryUs(&host, two, 2), 3 * (40000 + 4 * 20000));

    peers.peers[0].peer.srtt_us = 0; /* as if a transfer knew it that has measured nothing */
    CHECK_EQ(SKY_Host_HurryUs(&host, &near, 1), 250000 + 500000);
}

/* The first answer to something that was sent once ends the guess: a lost packet makes no timer long. */
static void test_a_guess_ends_with_the_first_round_trip(void)
{
    start(false);
    CHECK_EQ(measure(300000), 250000 + 500000 + 1000000);
    CHECK_EQ(host.peers.peers[0].peer.srtt_us, 50000);
    CHECK(host.peers.peers[0].peer.is_guess);
    CHECK_EQ(measure(60000), 7 * (60000 + 4 * 30000));
    CHECK_EQ(host.peers.peers[0].peer.srtt_us, 60000);
    CHECK(!host.peers.peers[0].peer.is_guess);

    start(false);
    CHECK_EQ(measure(450000), 600000 + 2 * 1000000); /* 200 ms since the last sending, so a longer timer than that of nothing */
    CHECK(host.peers.peers[0].peer.is_guess);
}

static void test_patience_can_be_set(void)
{
    const SKY_Addr_t addr = satellite(0);

    start(false);
    SKY_Host_SetPatience(&host, &(SKY_HostPatience_t){0});
    CHECK_EQ(SKY_Host_PatienceUs(&host, &addr, 1), 250000 + 500000 + 1000000);
    SKY_Host_SetPatience(&host, &(SKY_HostPatience_t){10, 20, 50, 100});
    CHECK_EQ(SKY_Host_HurryUs(&host, &addr, 1), 20 + 40);
    CHECK_EQ(SKY_Host_PatienceUs(&host, &addr, 1), 20 + 40 + 50);
    SKY_Host_SetPatience(&host, &(SKY_HostPatience_t){.silence_us = 1000});
    CHECK_EQ(SKY_Host_PatienceUs(&host, &addr, 1), 1000);
}

/* Without memory for a satellite nothing is remembered of it. */
static void test_satellites_for_which_there_is_no_memory(void)
{
    SKY_HostQuestion_t one = question(4);

    start(false);
    for (uint32_t i = 0; i < PEERS; ++i)
    {
        SKY_Host_Expect(&host, satellite(i), 30000);
    }
    for (uint32_t i = 0; i < PEERS; ++i)
    {
        peers.peers[i].active = 0; /* as if all had something to do */
    }
    SKY_Host_Expect(&host, satellite(4), 30000);
    SKY_Host_Doubt(&host, satellite(4), UINT64_MAX, true);
    CHECK(SKY_Host_PeerOf(&host, satellite(4)) == NULL);
    ask(&one);
    (void)run();
    answer(0, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
    const SKY_Addr_t addr = satellite(4);

    CHECK_EQ(SKY_Host_HurryUs(&host, &addr, 1), 250000 + 500000);
    for (uint32_t i = 0; i < PEERS; ++i)
    {
        peers.peers[i].active = SKY_HOST_NONE;
    }
    SKY_Host_Expect(&host, addr, 30000); /* the one that was not used for the longest time is forgotten */
    CHECK(SKY_Host_HurryUs(&host, &addr, 1) < 750000);
    CHECK_EQ(SKY_Host_HurryUs(&host, &(SKY_Addr_t){2, 1}, 1), 750000);
}

/* A datagram that took hours is measured as the longest timer. */
static void test_a_round_trip_beyond_32_bits(void)
{
    SKY_HostQuestion_t one = question(0);

    start(false);
    one.deadline_ms = UINT32_MAX;
    ask(&one);
    (void)run();
    now_us += UINT64_C(5000000000);
    answer(0, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
    CHECK_EQ(one.rtt_us, UINT64_C(5000000000));
    CHECK_EQ(peers.peers[0].peer.srtt_us, SKY_HOST_RTO_MAX_US);
}

int main(void)
{
    RUN(test_what_is_no_answer_does_not_count);
    RUN(test_an_answer_that_is_too_long_is_not_written);
    RUN(test_a_number_that_another_host_has);
    RUN(test_what_is_refused_for_other_reasons);
    RUN(test_patience_follows_round_trips);
    RUN(test_a_guess_ends_with_the_first_round_trip);
    RUN(test_patience_can_be_set);
    RUN(test_satellites_for_which_there_is_no_memory);
    RUN(test_a_round_trip_beyond_32_bits);
    return CHECK_RESULT();
}
