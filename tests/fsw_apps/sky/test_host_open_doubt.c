/**
 * @file
 * A host is told, without a tag, that a satellite does not know it: that may be so, or somebody has made it up.
 */
#include "open_rig.h"

static SKY_Packet_t last, opening;
static bool         drops_openings;

static bool spy_last(uint32_t to, const SKY_Packet_t *pkt)
{
    (void)to;
    last = pkt->op == SKY_OP_PING ? *pkt : last;
    return true;
}

/* Ask a satellite, and forge the word before the answer comes. */
static void ask_through_and_forge(SKY_HostQuestion_t *one, uint32_t i, uint32_t entry)
{
    SKY_Packet_t pkt;

    *one = ping(i, entry);
    ask(one);
    net_run(net.now_us + 1000);
    pkt          = answer_of(&last, i, SKY_STATUS_UNAUTHENTICATED);
    pkt.spi      = last.spi;
    pkt.sequence = last.sequence;
    inject(entry, &pkt, NULL);
}

static void ask_and_forge(SKY_HostQuestion_t *one)
{
    ask_through_and_forge(one, 0, 0);
}

/* One handshake is the price. The answer that is on its way counts, and ends the doubt. */
static void test_a_forged_word_stops_nothing(void)
{
    SKY_HostQuestion_t one;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    net.spy            = spy_last;
    const uint32_t spi = peer_of(0)->opening.session.spi;

    for (uint32_t i = 0; i < 3u; ++i)
    {
        const uint32_t openings = net.openings[0], requests = net.requests[0];

        ask_and_forge(&one);
        CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_DOUBTED);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(net.openings[0], openings + 1u);
        CHECK_EQ(net.requests[0], requests + 1u); /* nothing was sent again */
        CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_ESTABLISHED);
        CHECK_EQ(peer_of(0)->opening.session.spi, spi);
        net_wait(SECOND_US);
    }
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* While it is in doubt, other questions go on. */
static void test_nothing_waits_while_in_doubt(void)
{
    SKY_HostQuestion_t one, other = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    net.spy                 = spy_last;
    const uint32_t requests = net.requests[0];

    ask_and_forge(&one);
    ask(&other);
    net_run(net.now_us + 1);
    CHECK_EQ(net.requests[0], requests + 2u);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    check_answered(&other, SKY_STATUS_OK);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* A satellite that has begun anew is associated with again, and what it did not act upon is repeated. */
static void test_who_has_begun_anew_is_asked_once(void)
{
    for (uint32_t entry = 0; entry < 2u; ++entry)
    {
        SKY_HostQuestion_t one = ping(1, entry);

        net_open(MODE_KEYED, MODE_KEYED, usual);
        ask_one(1, entry, SKY_STATUS_OK);
        net_wait(SECOND_US);
        const uint32_t openings = net.openings[1], spi = peer_of(1)->opening.session.spi;

        sat_boot(1, MODE_KEYED);
        ask(&one);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(net.openings[1], openings + 1u);
        CHECK_EQ(peer_of(1)->opening.session.state, SKY_SESSION_ESTABLISHED);
        CHECK_EQ(peer_of(1)->opening.session.sequence, 1);
        CHECK(spi != SKY_SPI_NONE);
        SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
    }
}

static bool is_known(uint32_t i)
{
    bool found = false;

    for (uint32_t at = 0; at < net.host.peer_used; ++at)
    {
        found = found || SKY_Addr_Equal(net.peers.peers[at].peer.addr, addr_of(i));
    }
    return found;
}

/* The satellite through which it was opened is forgotten: the next packet through another one asks. */
static void test_doubt_without_the_way_of_before(void)
{
    const sizes_t      few = {3, 64, SKY_SUITE_BLAKE2B_HEADER, true};
    SKY_HostQuestion_t one, other = ping(1, 2);

    net_open(MODE_KEYED, MODE_KEYED, few);
    ask_one(1, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    ask_one(2, 2, SKY_STATUS_OK);
    ask_one(1, 2, SKY_STATUS_OK);
    ask_one(3, 3, SKY_STATUS_OK); /* takes the place of the first gate */
    net_wait(SECOND_US);
    net.spy                 = spy_last;
    const uint32_t openings = net.openings[1];

    CHECK(!is_known(0));
    ask_through_and_forge(&one, 1, 2);
    CHECK_EQ(peer_of(1)->opening.session.state, SKY_SESSION_DOUBTED);
    CHECK_EQ(net.openings[1], openings);
    ask(&other);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    check_answered(&other, SKY_STATUS_OK);
    CHECK_EQ(net.openings[1], openings + 1u);
    CHECK_EQ(peer_of(1)->opening.session.state, SKY_SESSION_ESTABLISHED);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* The library takes no new key, and the old ones are gone, too: the satellite is opened from the beginning. */
static void test_a_library_that_takes_no_new_key(void)
{
    SKY_HostQuestion_t one;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    sat_boot(0, MODE_KEYED);
    net.crypto.fault = FAULT_LOADS_NOTHING;
    one              = ping(0, 0);
    ask(&one);
    net_run(net.now_us + RTT_US * 2u + RTT_US / 2u);
    CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_NONE);
    CHECK(!peer_of(0)->opening.is_open);
    net.crypto.fault = FAULT_NONE;
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* A satellite that many ask who they are wants a cookie first. */
static void test_a_handshake_with_a_cookie_comes_through(void)
{
    static const SKY_HandshakeOrigin_t stranger = {1, false};
    SKY_HostQuestion_t                 one      = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    while (SKY_Security_MayGreet(&net.sats[0].security, net.now_us + RTT_US, &stranger))
    {
    }
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 2);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* Forge the word about the handshake that is on its way. */
static void forge_about_handshake(uint32_t i, uint32_t entry)
{
    const SKY_Packet_t pkt = answer_of(&opening, i, SKY_STATUS_UNAUTHENTICATED);

    inject(entry, &pkt, NULL);
}

static bool spy_opening(uint32_t to, const SKY_Packet_t *pkt)
{
    opening = pkt->op == SKY_OP_ASSOCIATE ? *pkt : opening;
    return spy_last(to, pkt) && !(drops_openings && pkt->op == SKY_OP_ASSOCIATE);
}

/* A second word, about the handshake that follows the first one: the answer that is on its way proves it wrong. */
static void test_two_forged_words_end_nothing(void)
{
    SKY_HostQuestion_t one;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    net.spy        = spy_opening;
    drops_openings = false;
    for (uint32_t i = 0; i < 3u; ++i)
    {
        ask_and_forge(&one);
        forge_about_handshake(0, 0);
        CHECK_EQ(one.status, SKY_STATUS_RUNNING);
        CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_DOUBTED);
        net_run_all();
        check_answered(&one, SKY_STATUS_OK);
        CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_ESTABLISHED);
        net_wait(SECOND_US);
    }
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* The same about the first handshake, when there are no keys yet. */
static void test_a_forged_word_about_the_first_handshake(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.spy        = spy_opening;
    drops_openings = false;
    ask(&one);
    net_run(net.now_us + 1000);
    forge_about_handshake(0, 0);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 1);
}

/* A word about a cookie follows the forged one: the handshake goes again at once, and is waited for. */
static void test_a_forged_word_before_that_about_a_cookie(void)
{
    SKY_HostQuestion_t one = ping(0, 0);
    SKY_Packet_t       pkt;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.spy        = spy_opening;
    drops_openings = false;
    ask(&one);
    net_run(net.now_us + 1000);
    forge_about_handshake(0, 0);
    pkt        = answer_of(&opening, 0, SKY_STATUS_COOKIE);
    pkt.cookie = 7;
    inject(0, &pkt, NULL);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 2);
}

/* Nobody waits any more when the word would be believed: it says nothing to who comes later. */
static void test_an_old_word_says_nothing(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.spy         = spy_opening;
    drops_openings  = true;
    one.deadline_ms = 20;
    ask(&one);
    net_run(net.now_us + 1000);
    forge_about_handshake(0, 0);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    drops_openings = false;
    net_wait(10u * SECOND_US);
    ask_one(0, 0, SKY_STATUS_OK);
}

int main(void)
{
    RUN(test_a_forged_word_stops_nothing);
    RUN(test_two_forged_words_end_nothing);
    RUN(test_a_forged_word_about_the_first_handshake);
    RUN(test_a_forged_word_before_that_about_a_cookie);
    RUN(test_an_old_word_says_nothing);
    RUN(test_nothing_waits_while_in_doubt);
    RUN(test_who_has_begun_anew_is_asked_once);
    RUN(test_doubt_without_the_way_of_before);
    RUN(test_a_library_that_takes_no_new_key);
    RUN(test_a_handshake_with_a_cookie_comes_through);
    net_close();
    return CHECK_RESULT();
}
