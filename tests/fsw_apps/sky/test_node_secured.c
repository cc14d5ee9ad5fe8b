/* Two neighbours whose links are secured: how they come to know each other, and what they believe. */
#include "pair_rig.h"

static void test_neighbours_greet_as_soon_as_they_have_a_session(void)
{
    uint64_t now_us = 1;

    open();
    settle(now_us);
    for (int which = 0; which < PAIR; ++which)
    {
        const SKY_Security_t *security = &satellites[which].security;

        CHECK_EQ(security->sessions[0].session.state, SKY_SESSION_ESTABLISHED);
        CHECK_EQ(security->associations.established, 1);
        CHECK_EQ(security->counters.unauthenticated, 0);
        CHECK(hello_of(which)->samples > 0u); /* the greeting, and its answer */
        CHECK(satellites[which].node.links[links[which]].heard_once);
        CHECK_EQ(SKY_Security_NextDue(security), UINT64_MAX);
    }
    pass(&now_us, 10);
    CHECK(is_up(WESTERN) && is_up(EASTERN));
    CHECK(hello_of(WESTERN)->samples > 5u);
    is_jammed = true;
    pass(&now_us, 5);
    CHECK(!is_up(WESTERN) && !is_up(EASTERN));
    is_jammed = false;
    pass(&now_us, 2);
    CHECK(is_up(WESTERN) && is_up(EASTERN));
    end();
}

static void test_an_answer_of_a_neighbour_needs_its_tag(void)
{
    satellite_t *western = &satellites[WESTERN];
    SKY_Packet_t forged;
    uint8_t      wire[PARTY_WIRE];
    uint64_t     before;

    open();
    settle(1);
    ask_neighbour(WESTERN, 2);
    CHECK_EQ(flying_count, 1);
    before = western->security.counters.unauthenticated;
    forged = host_request(WESTERN, SKY_OP_GET);
    for (uint32_t i = 0; i < 3u; ++i) /* an answer of the service, one to a handshake, and one of a satellite that nobody asked */
    {
        forged.apid       = i == 1u ? SKY_APID_ISL : APID;
        forged.op         = i == 1u ? SKY_OP_ASSOCIATE : SKY_OP_GET;
        forged.is_request = false;
        forged.src        = i == 2u ? (SKY_Addr_t){3, 3} : addrs[EASTERN];
        forged.spi        = western->security.sessions[0].session.spi;
        SKY_Node_Receive(&western->node, 2, wire, (uint32_t)SKY_Packet_Encode(&forged, wire, sizeof(wire)), endpoint_of(EASTERN));
    }
    CHECK_EQ(western->answered, 0);
    CHECK_EQ(western->security.counters.unauthenticated, before + 2u);
    CHECK_EQ(western->security.sessions[0].session.state, SKY_SESSION_ESTABLISHED);
    settle(3);
    CHECK_EQ(satellites[EASTERN].asked, 1);
    CHECK_EQ(western->answered, 1);
    CHECK_EQ(western->node.links[SKY_LINK_EAST].heard_us, 3);
    end();
}

static uint8_t  recorded[PARTY_WIRE];
static uint32_t recorded_bytes;

/* Record the last answer of the eastern one. */
static void record(int which, const uint8_t *bytes, uint32_t len)
{
    SKY_Packet_t pkt;

    if (which == EASTERN && SKY_Packet_Decode(bytes, len, &pkt) == SKY_STATUS_OK && !pkt.is_request && pkt.op == SKY_OP_GET)
    {
        (void)memcpy(recorded, bytes, len);
        recorded_bytes = len;
    }
}

/* The tag is right, and the service sees it. But who has sent it may be long gone. */
static void test_an_answer_that_is_sent_again_is_no_sign_of_life(void)
{
    satellite_t *western = &satellites[WESTERN];
    uint64_t     now_us  = 1;
    uint8_t      wire[PARTY_WIRE];

    open();
    pass(&now_us, 1);
    on_sent = record;
    ask_neighbour(WESTERN, now_us);
    settle(now_us);
    on_sent = NULL;
    CHECK(recorded_bytes > 0u);
    CHECK_EQ(western->answered, 1);
    CHECK_EQ(hello_of(WESTERN)->heard_us, now_us);
    is_jammed = true;
    for (uint32_t second = 0; second < 6u; ++second)
    {
        pass(&now_us, 1);
        (void)memcpy(wire, recorded, recorded_bytes);
        SKY_Node_Receive(&western->node, now_us, wire, recorded_bytes, endpoint_of(EASTERN));
        SKY_Node_Run(&western->node, now_us);
    }
    CHECK_EQ(western->answered, 7); /* the service goes by the number of its request */
    CHECK(!is_up(WESTERN));
    is_jammed = false;
    end();
}

static void test_neighbours_associate_anew_after_a_restart(void)
{
    satellite_t *western = &satellites[WESTERN];
    uint64_t     now_us  = 1;

    open();
    pass(&now_us, 2);
    crypto_rig_close(&satellites[EASTERN].rig);
    crypto_rig_open(&satellites[EASTERN].rig);
    boot(EASTERN, now_us, 1);
    is_jammed = true; /* it does not get to ask first */
    SKY_Node_Run(&satellites[EASTERN].node, now_us);
    is_jammed = false;
    ask_neighbour(WESTERN, now_us); /* under the association of before, which is refused */
    settle(now_us);
    CHECK_EQ(satellites[EASTERN].asked, 0);
    CHECK_EQ(satellites[EASTERN].security.counters.unauthenticated, 1);
    pass(&now_us, 2);
    CHECK_EQ(western->security.sessions[0].session.state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(satellites[EASTERN].security.associations.stats.begun, 1);
    ask_neighbour(WESTERN, now_us);
    settle(now_us);
    CHECK_EQ(satellites[EASTERN].asked, 1);
    CHECK_EQ(western->answered, 1);
    pass(&now_us, 5);
    CHECK(is_up(WESTERN) && is_up(EASTERN));
    end();
}

/* Both have given up the link, and one of them has lost all its sessions. No way is known from one to the other, so handshakes have to go
 * over the link that counts as down. */
static void test_neighbours_associate_anew_after_a_long_absence(void)
{
    uint64_t now_us = 1;

    for (uint32_t absent = 0; absent < 2u; ++absent)
    {
        open();
        pass(&now_us, 2);
        CHECK(is_up(WESTERN) && is_up(EASTERN));
        is_jammed = true;
        pass(&now_us, 5);
        CHECK(!is_up(WESTERN));
        crypto_rig_close(&satellites[EASTERN].rig);
        crypto_rig_open(&satellites[EASTERN].rig);
        boot(EASTERN, now_us, 1);
        if (absent == 1u) /* nobody hears it for so long that it gives the link up, too */
        {
            pass(&now_us, 5);
            CHECK(!is_up(EASTERN));
        }
        is_jammed = false;
        pass(&now_us, 12); /* a link that was down is held down for a while */
        CHECK(is_up(WESTERN) && is_up(EASTERN));
        ask_neighbour(WESTERN, now_us);
        ask_neighbour(EASTERN, now_us);
        pass(&now_us, 1);
        ask_neighbour(WESTERN, now_us);
        settle(now_us);
        CHECK(satellites[WESTERN].answered > 0);
        CHECK(satellites[EASTERN].answered > 0);
        end();
    }
}

static uint32_t handshakes;

static void count_handshakes(int which, const uint8_t *bytes, uint32_t len)
{
    SKY_Packet_t pkt;

    if (which == WESTERN && SKY_Packet_Decode(bytes, len, &pkt) == SKY_STATUS_OK && pkt.op == SKY_OP_ASSOCIATE)
    {
        ++handshakes;
    }
}

static void test_no_handshake_goes_over_a_link_that_is_cut_nor_to_where_no_way_leads(void)
{
    const SKY_LinkModel_t cut     = {0, 0, 0, 0, true};
    const SKY_LinkModel_t whole   = {0, 0, 0, 0, false};
    satellite_t          *western = &satellites[WESTERN];
    uint64_t              now_us  = 1;

    open();
    on_sent    = count_handshakes;
    handshakes = 0;
    SKY_Node_SetModel(&western->node, now_us, SKY_LINK_EAST, &cut);
    want_session(&western->security, now_us, addrs[EASTERN]);
    want_session(&western->security, now_us, (SKY_Addr_t){3, 3});
    SKY_Node_Run(&western->node, now_us);
    CHECK_EQ(handshakes, 0);
    SKY_Node_SetModel(&western->node, now_us, SKY_LINK_EAST, &whole); /* it is up when the neighbour is heard */
    now_us = SKY_Security_NextDue(&western->security);
    SKY_Node_Run(&western->node, now_us);
    CHECK_EQ(handshakes, 1); /* that to the neighbour */
    on_sent = NULL;
    end();
}

static void test_a_host_associates_through_another_satellite(void)
{
    SKY_Packet_t pkt = host_request(WESTERN, SKY_OP_ASSOCIATE);
    SKY_Packet_t answer;
    party_t      far;
    uint8_t      wire[PARTY_WIRE];
    uint64_t     now_us = 1;

    open();
    pass(&now_us, 1);
    answer = from_ground(now_us, wire, party_handshake(&host, &pkt, now_us, wire));
    CHECK(party_take(&host, &answer));
    pkt    = host_request(WESTERN, SKY_OP_ASSOCIATE); /* the cookie of the handshake opens no way */
    answer = from_ground(now_us, wire, party_request(&host, &pkt, wire));
    CHECK(answer.status == SKY_STATUS_OK && answer.cookie != host.cookie && party_trusts(&host, &answer));
    host.cookie = answer.cookie;

    party_host(&far, &theirs.crypto, 1, SKY_ROLE_HOST, HOST, GROUND); /* the same host's association with the other one */
    pkt    = host_request(EASTERN, SKY_OP_ASSOCIATE);
    answer = from_ground(now_us, wire, party_handshake(&far, &pkt, now_us, wire)); /* without the gateway's cookie */
    CHECK(answer.status == SKY_STATUS_UNAUTHENTICATED && SKY_Addr_Equal(answer.src, addrs[WESTERN]));
    CHECK_EQ(satellites[EASTERN].security.associations.half_open, 0);
    now_us += SECOND_US;
    pkt        = host_request(EASTERN, SKY_OP_ASSOCIATE);
    pkt.cookie = host.cookie;
    answer     = from_ground(now_us, wire, party_handshake(&far, &pkt, now_us, wire));
    CHECK(SKY_Addr_Equal(answer.src, addrs[EASTERN]));
    CHECK(party_take(&far, &answer));
    CHECK_EQ(far.cookie, SKY_COOKIE_NONE); /* it does not see the host's endpoint */

    pkt        = host_request(EASTERN, SKY_OP_PING);
    pkt.cookie = host.cookie;
    answer     = from_ground(now_us, wire, party_request(&far, &pkt, wire));
    CHECK(answer.status == SKY_STATUS_OK && SKY_Addr_Equal(answer.src, addrs[EASTERN]));
    CHECK(party_trusts(&far, &answer));
    CHECK_EQ(satellites[EASTERN].security.associations.established, 2); /* the neighbour's, and the host's */
    end();
}

/* A satellite that is greeted because a session has come may have lost the link meanwhile. */
static void test_greetings_go_over_links_that_are_there(void)
{
    const SKY_LinkModel_t cut    = {0, 0, 0, 0, true};
    SKY_Node_t           *node   = &satellites[WESTERN].node;
    uint64_t              now_us = 1;

    open();
    pass(&now_us, 1);
    SKY_Hello_Greet(&node->hello, SKY_LINK_NORTH);
    CHECK(!node->hello.links[SKY_LINK_NORTH].is_due);
    SKY_Hello_Greet(&node->hello, SKY_LINK_EAST);
    CHECK(node->hello.links[SKY_LINK_EAST].is_due);
    SKY_Node_SetModel(node, now_us, SKY_LINK_EAST, &cut);
    SKY_Hello_Greet(&node->hello, SKY_LINK_EAST);
    CHECK(!node->hello.links[SKY_LINK_EAST].is_due);
    SKY_Hello_Init(&node->hello, &node->router, now_us, 0);
    SKY_Hello_Greet(&node->hello, SKY_LINK_EAST);
    CHECK(!node->hello.links[SKY_LINK_EAST].is_due);
    end();
}

int main(void)
{
    RUN(test_neighbours_greet_as_soon_as_they_have_a_session);
    RUN(test_an_answer_of_a_neighbour_needs_its_tag);
    RUN(test_an_answer_that_is_sent_again_is_no_sign_of_life);
    RUN(test_neighbours_associate_anew_after_a_restart);
    RUN(test_neighbours_associate_anew_after_a_long_absence);
    RUN(test_no_handshake_goes_over_a_link_that_is_cut_nor_to_where_no_way_leads);
    RUN(test_a_host_associates_through_another_satellite);
    RUN(test_greetings_go_over_links_that_are_there);
    return CHECK_RESULT();
}
