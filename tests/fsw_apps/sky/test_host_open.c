/**
 * @file
 * What satellites ask of a host first: cookies and associations, over whole satellites.
 */
#include "open_rig.h"

static const sky_mode_t modes[] = {MODE_COOKIE, MODE_KEYED};

/* ---- without anything ------------------------------------------------------------------------------------------------ */

static void test_without_security_nothing_is_opened(void)
{
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0), place_of(4, 4)};
    SKY_HostQuestion_t    one      = ping(7, 0);

    net_open(MODE_OFF, MODE_OFF, usual); /* an opening would be a failure: host_send */
    net.sats[7].is_deaf = true;
    ask(&one);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    CHECK(peer_of(7) == NULL); /* nothing is known of it, not even that it is there */
    put_and_get(1, 40, places, 3);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.host.counters.untrusted, 0);
}

/* ---- cookies --------------------------------------------------------------------------------------------------------- */

static uint32_t early; /* packets that left before their satellite was open */

/* Count what goes to a satellite without the cookie that it asks for. */
static bool spy_cookies(uint32_t to, const SKY_Packet_t *pkt)
{
    (void)to;
    early += pkt->op != SKY_OP_ASSOCIATE && pkt->cookie == SKY_COOKIE_NONE ? 1u : 0u;
    return true;
}

static uint64_t no_cookies(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        count += net.sats[i].security.counters.no_cookie;
    }
    return count;
}

static void test_an_entry_satellite_is_asked_for_a_cookie_once(void)
{
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0), place_of(3, 0), place_of(4, 4)};

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    net.spy = spy_cookies;
    early   = 0;
    put_and_get(1, 120, places, 4);
    put_and_get(2, 120, places, 4);
    ask_one(1, 0, SKY_STATUS_OK);
    ask_one(0, 0, SKY_STATUS_OK);
    ask_one(8, 4, SKY_STATUS_OK);
    CHECK_EQ(early, 0);
    CHECK_EQ(net.openings[0], 1);
    CHECK_EQ(net.openings[4], 1);
    CHECK_EQ(net.openings[1] + net.openings[3] + net.openings[8], 0); /* they ask nobody who comes from another satellite */
    CHECK_EQ(no_cookies(), 2);                                        /* the two openings */
}

static void test_a_cookie_is_renewed_before_it_is_too_old(void)
{
    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    for (uint32_t i = 0; i < 400; ++i)
    {
        SKY_HostQuestion_t one = ping(1, 0);

        net_wait(SECOND_US);
        ask(&one);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(one.sent, 1);
        CHECK(one.rtt_us <= RTT_US + 4u * ISL_US); /* nothing was held up */
    }
    CHECK_EQ(no_cookies(), 1);
    CHECK(net.openings[0] >= 1u + 400u / 42u);
    CHECK(net.openings[0] <= 1u + 405u / 40u);
    CHECK_EQ(net.openings[1], 0);
}

static void test_a_renewal_that_gets_lost_is_sent_again(void)
{
    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    net_wait(SKY_HOST_COOKIE_FRESH_US + SECOND_US);
    net.loss               = 1000;
    SKY_HostQuestion_t one = ping(0, 0);
    ask(&one);
    net_run(net.now_us + 1000);
    net.loss = 0;
    CHECK_EQ(net.openings[0], 2);
    CHECK_EQ(one.sent, 1); /* the question goes with the old cookie */
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    net_wait(SECOND_US / 2u);
    ask_one(0, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 3);
    CHECK_EQ(no_cookies(), 1);
}

static void test_after_a_long_rest_nothing_goes_with_an_old_cookie(void)
{
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0)};

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    put_and_get(1, 60, places, 2);
    for (uint32_t i = 0; i < 4; ++i)
    {
        const uint32_t openings = net.openings[0];

        net_wait(65u * SECOND_US + 20u * SECOND_US * i);
        put_and_get(2u + i, 60, places, 2);
        CHECK_EQ(net.openings[0], openings + 1u);
        CHECK(no_cookies() <= 2u + i); /* openings only */
    }
}

/* ---- associations ---------------------------------------------------------------------------------------------------- */

static uint64_t refusals(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        const SKY_SecurityCounters_t *counters = &net.sats[i].security.counters;

        count += counters->unauthenticated + counters->replayed + counters->no_cookie + counters->refused;
    }
    return count;
}

static void test_a_handshake_with_each_satellite_and_its_entry(void)
{
    static const uint8_t  suites[]  = {SKY_SUITE_BLAKE2B_HEADER, SKY_SUITE_BLAKE2B_PACKET};
    const SKY_HostPlace_t places[]  = {place_of(0, 0), place_of(1, 0), place_of(3, 0), place_of(4, 4)};
    const SKY_HostPlace_t through[] = {place_of(8, 2)};

    for (uint32_t i = 0; i < 2; ++i)
    {
        sizes_t sizes = usual;

        sizes.wanted = suites[i];
        net_open(MODE_KEYED, MODE_KEYED, sizes);
        put_and_get(1, 120, places, 4);
        put_and_get(2, 60, through, 1); /* its entry satellite has nothing else to do */
        ask_one(1, 0, SKY_STATUS_OK);
        ask_one(5, 0, SKY_STATUS_OK);
        for (uint32_t sat = 0; sat < SATELLITES;
             ++sat) /* who passes packets on is asked for a cookie, too; 4 has its own alone */
        {
            CHECK_EQ(net.openings[sat], sat == 6 || sat == 7 ? 0 : sat == 0 || sat == 2 ? 2 : 1);
        }
        CHECK_EQ(refusals(), 0); /* every packet had a tag, and a cookie where it needs one */
        CHECK_EQ(net.host.counters.untrusted, 0);
        CHECK_EQ(peer_of(0)->opening.session.suite, suites[i]);
        CHECK_EQ(SKY_Host_Suites(&net.host), SKY_SUITE_BIT(suites[i]));
    }
}

static void test_suites_are_those_of_associations(void)
{
    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(SKY_Host_Suites(&net.host), 0);
    net_open(MODE_KEYED, MODE_KEYED, usual);
    CHECK_EQ(SKY_Host_Suites(&net.host), 0); /* nobody was asked yet */
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(SKY_Host_Suites(&net.host), SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER));
}

static void test_a_keyed_cookie_is_renewed_too(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    for (uint32_t i = 0; i < 300; ++i)
    {
        SKY_HostQuestion_t one = ping(1, 0);

        ask(&one);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(one.sent, 1);
        CHECK(one.rtt_us <= RTT_US + 4u * ISL_US);
        net_wait(SECOND_US);
    }
    CHECK_EQ(net.openings[1], 1);
    CHECK(net.openings[0] >= 2u + 300u / 42u);
    CHECK(net.openings[0] <= 2u + 305u / 40u);
    CHECK_EQ(refusals(), 0);
}

/* What goes to a keyed satellite itself has tags: a cookie would cost a round trip for nothing, now and later. */
static void test_without_others_behind_it_no_cookie_is_asked_for(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    const uint64_t began_us = net.now_us;
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.now_us - began_us, 2u * RTT_US);
    for (uint32_t i = 0; i < 3; ++i)
    {
        net_wait(SKY_COOKIE_PERIOD_US + SECOND_US);
        one = ping(0, 0);
        ask(&one);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(one.rtt_us, RTT_US);
    }
    CHECK_EQ(net.openings[0], 1);
    CHECK_EQ(refusals(), 0);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 2);
    CHECK_EQ(refusals(), 0);
}

/* A satellite behind another one becomes an entry satellite: it is asked for a cookie, under the session that there is. */
static void test_a_satellite_becomes_an_entry_satellite(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    const uint32_t spi = peer_of(1)->opening.session.spi;

    ask_one(1, 1, SKY_STATUS_OK);
    CHECK_EQ(net.openings[1], 1); /* its own packets need none */
    ask_one(2, 1, SKY_STATUS_OK);
    CHECK_EQ(peer_of(1)->opening.session.spi, spi);
    CHECK_EQ(net.openings[1], 2);
    CHECK_EQ(refusals(), 0);
}

/* ---- satellites that begin anew -------------------------------------------------------------------------------------- */

/* A PUT and a GET through entry satellite 0, while satellites @p first and @p second begin anew again and again. */
static void restart_while(sky_mode_t mode, uint32_t first, uint32_t second)
{
    static uint8_t        there[300 * CHUNK], back[300 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0), place_of(4, 0)};
    SKY_HostBlock_t       block;

    net_open(mode, mode, usual);
    data_fill(there, 1, sizeof(there));
    (void)memset(back, 0, sizeof(back));
    for (uint32_t kind = SKY_HOST_PUT + 1u; kind-- > 0;)
    {
        uint32_t restarts = 0;

        block_make(&block, kind, 1, 300, places, 3, kind == SKY_HOST_PUT ? there : back);
        block_begin(&block);
        while (net.host.running > 0)
        {
            SKY_HostQuestion_t one = ping(1, 0);

            net_run(net.now_us + 35000);
            if (restarts < 3)
            {
                sat_boot(first, mode);
                sat_boot(second, mode);
                ++restarts;
            }
            ask(&one);
            net_run(net.now_us + 400000);
            check_answered(&one, SKY_STATUS_OK);
            forget_ended();
        }
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        CHECK(restarts > 0);
    }
    CHECK(memcmp(there, back, block.stripe.block_len) == 0);
}

static void test_satellites_that_begin_anew(void)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        restart_while(modes[i], 0, 0);
        restart_while(modes[i], 1, 1);
        restart_while(modes[i], 0, 1);
    }
}

static void test_a_satellite_that_begins_anew_is_opened_once(void)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t many[QUESTIONS];

        net_open(modes[i], modes[i], usual);
        ask_one(1, 0, SKY_STATUS_OK);
        net_wait(2u * SECOND_US);
        sat_boot(0, modes[i]);
        const uint32_t before = net.requests[1];

        for (uint32_t n = 0; n < QUESTIONS; ++n)
        {
            many[n] = ping(1, 0);
            ask(&many[n]);
        }
        net_run_all();
        for (uint32_t n = 0; n < QUESTIONS; ++n)
        {
            check_answered(&many[n], SKY_STATUS_OK);
        }
        CHECK_EQ(net.openings[0],
                 modes[i] == MODE_KEYED ? 4 : 1); /* handshakes and cookies; or a cookie comes with the refusal */
        CHECK_EQ(net.openings[1], modes[i] == MODE_KEYED ? 1 : 0); /* the one behind it goes on as before */
        CHECK_EQ(net.requests[1], before + 2u * QUESTIONS);        /* each was refused once, however many refusals came */
    }
}

/* The session of the satellite behind ends: nothing of what goes to others is sent again. */
static void test_others_go_on_when_one_begins_anew(void)
{
    SKY_HostQuestion_t one = ping(1, 0), other = ping(2, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    ask_one(2, 0, SKY_STATUS_OK);
    net_wait(2u * SECOND_US);
    sat_boot(1, MODE_KEYED);
    ask(&one);
    ask(&other);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    check_answered(&other, SKY_STATUS_OK);
    CHECK_EQ(one.sent, 2);
    CHECK_EQ(other.sent, 1);
    CHECK_EQ(net.openings[0], 2);
    CHECK_EQ(net.openings[1], 2);
    CHECK_EQ(net.openings[2], 1);
}

/* A renewal of a cookie finds a satellite that has begun anew. */
static void test_a_renewal_at_a_satellite_that_has_begun_anew(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    net_wait(SKY_COOKIE_PERIOD_US + SECOND_US); /* so that nothing goes before the renewal */
    sat_boot(0, MODE_KEYED);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 5); /* handshake, cookie, renewal, handshake, cookie */
}

/* Let satellite 0 begin anew while the first opening of satellite 1 is on its way to it. */
static bool spy_restart(uint32_t to, const SKY_Packet_t *pkt)
{
    if (to == 1u && pkt->op == SKY_OP_ASSOCIATE && net.sats[0].boots == 1u)
    {
        sat_boot(0, MODE_KEYED);
    }
    return true;
}

/* The entry satellite begins anew while the opening of the one behind it is on its way. */
static void test_the_gate_begins_anew_in_the_middle(void)
{
    SKY_HostQuestion_t one = ping(1, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.spy = spy_restart;
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.sats[0].boots, 2);
    CHECK_EQ(net.openings[0], 4);
    CHECK(net.openings[1] >= 2);

    /* Once more, when the association of the gate is old enough to be given up at once. */
    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(2, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    sat_boot(0, MODE_KEYED);
    const uint64_t began_us = net.now_us;
    one                     = ping(1, 0);
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 4);
    CHECK_EQ(net.openings[1], 2);
    CHECK(net.now_us - began_us <= 5u * (RTT_US + 4u * ISL_US)); /* refused, gate, its cookie, satellite, question */
}

/* ---- satellites that do not answer, or refuse ------------------------------------------------------------------------ */

static void test_a_silent_satellite_is_passed_over(void)
{
    static uint8_t        there[60 * CHUNK], back[60 * CHUNK];
    const SKY_HostPlace_t holders[] = {place_of(2, 2)};
    const SKY_HostPlace_t places[]  = {place_of(1, 0)};
    uint8_t               have[8];
    SKY_HostBlock_t       block;

    for (uint32_t i = 0; i < 4; ++i)
    {
        SKY_HostQuestion_t one = ping(1, 0);

        net_open(modes[i / 2u], modes[i / 2u], usual);
        data_fill(there, 1, sizeof(there));
        block_make(&block, SKY_HOST_PUT, 1, 60, holders, 1, there);
        block_begin(&block);
        net_run_all();
        net.sats[i % 2u].is_deaf = true;
        block_make(&block, SKY_HOST_GET, 1, 60, places, 1, back);
        (void)memset(have, 0, sizeof(have));
        block.have        = have;
        block.fallbacks   = holders;
        block.rounds      = 1;
        block.deadline_ms = 4000;
        block_begin(&block);
        ask(&one);
        net_run_all();
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        CHECK(block.duration_us < 3u * SECOND_US); /* half of the time, and no more */
        CHECK_EQ(block.passes, 1);
        CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
        block_make(&block, SKY_HOST_PUT, 2, 60, places, 1, there);
        block.deadline_ms = 2000;
        block_begin(&block);
        net_run_all();
        CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
        CHECK(block.duration_us < 2u * SECOND_US + 2u);
    }
}

/* The timers of openings, whatever else comes in: three are alike, then three twice as long, and so on. */
static void test_openings_are_not_sent_more_often_than_their_timer_says(void)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t many[8];
        uint64_t           wait_us = SKY_HOST_ASK_INITIAL_US;

        net_open(modes[i], modes[i], usual);
        ask_one(4, 4, SKY_STATUS_OK);
        net.sats[0].is_deaf = true;
        for (uint32_t n = 0; n < 8; ++n)
        {
            many[n]             = ping(n < 4 ? 0 : 1, 0);
            many[n].deadline_ms = 30000;
            ask(&many[n]);
        }
        for (uint32_t n = 0; n < 2000; ++n)
        {
            SKY_HostQuestion_t one = ping(4, 4);

            ask(&one); /* others go on meanwhile */
            net_run(net.now_us + RTT_US + 1u);
            CHECK_EQ(one.status, SKY_STATUS_DONE);
            forget_ended();
            net_run(net.now_us + 3000);
        }
        CHECK(net.openings[0] >= 5);
        for (uint32_t n = 1; n < net.openings[0]; ++n)
        {
            CHECK(net.opened_us[0][n] - net.opened_us[0][n - 1u] >= wait_us);
            if (n % 3u == 0u)
            {
                wait_us = 2u * wait_us < SKY_HOST_ASK_MAX_US ? 2u * wait_us : SKY_HOST_ASK_MAX_US;
            }
        }
        CHECK_EQ(net.openings[1], 0);
        net_run_all();
        CHECK_EQ(many[0].status, SKY_STATUS_EXPIRED);
        CHECK_EQ(many[7].status, SKY_STATUS_EXPIRED);
    }
}

int main(void)
{
    RUN(test_without_security_nothing_is_opened);
    RUN(test_an_entry_satellite_is_asked_for_a_cookie_once);
    RUN(test_a_cookie_is_renewed_before_it_is_too_old);
    RUN(test_a_renewal_that_gets_lost_is_sent_again);
    RUN(test_after_a_long_rest_nothing_goes_with_an_old_cookie);
    RUN(test_a_handshake_with_each_satellite_and_its_entry);
    RUN(test_suites_are_those_of_associations);
    RUN(test_a_keyed_cookie_is_renewed_too);
    RUN(test_without_others_behind_it_no_cookie_is_asked_for);
    RUN(test_a_satellite_becomes_an_entry_satellite);
    RUN(test_satellites_that_begin_anew);
    RUN(test_a_satellite_that_begins_anew_is_opened_once);
    RUN(test_others_go_on_when_one_begins_anew);
    RUN(test_a_renewal_at_a_satellite_that_has_begun_anew);
    RUN(test_the_gate_begins_anew_in_the_middle);
    RUN(test_a_silent_satellite_is_passed_over);
    RUN(test_openings_are_not_sent_more_often_than_their_timer_says);
    net_close();
    return CHECK_RESULT();
}
