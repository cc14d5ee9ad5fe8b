/* Neighbours of a node with security: what keeps them alive, and when they are asked and greeted. They are played by hand. */
#include "guard_rig.h"

static SKY_Packet_t hello_of(SKY_Addr_t src)
{
    static const uint8_t nothing[SKY_HELLO_BYTES];
    SKY_Packet_t         pkt = request_of(SKY_APID_ISL, SKY_OP_HELLO);

    pkt.src       = src;
    pkt.hop_limit = 1;
    pkt.payload   = nothing;
    pkt.length    = sizeof(nothing);
    return pkt;
}

static bool is_east_up(void)
{
    return SKY_Node_IsUp(&node, SKY_LINK_EAST);
}

static void test_only_tags_keep_a_neighbour_alive(void)
{
    SKY_Packet_t pkt;
    party_t      far;
    uint64_t     now_us;

    secure(true, SECOND_US);
    party_satellite(&far, &theirs.crypto, 3, (SKY_Addr_t){3, 3}, self, endpoint_of(SKY_LINK_EAST));
    CHECK(associate(1, &east));
    CHECK(associate(1, &far));
    for (now_us = SECOND_US; now_us <= 6u * SECOND_US; now_us += SECOND_US / 2u)
    {
        pkt = hello_of(in_the_east);
        ask(now_us, &east, &pkt);
        CHECK_EQ(answered(&east), SKY_STATUS_OK);
        SKY_Node_Run(&node, now_us);
        CHECK(is_east_up());
    }
    for (; now_us <= 12u * SECOND_US; now_us += SECOND_US / 2u)
    {
        pkt = hello_of(in_the_east); /* forged */
        come(now_us, &pkt, endpoint_of(SKY_LINK_EAST));
        CHECK(sent_count == 0u || answer().status == SKY_STATUS_UNAUTHENTICATED); /* none: no way leads there */
        pkt.is_request = false;
        come(now_us, &pkt, endpoint_of(SKY_LINK_EAST));
        pkt = request_of(SKY_APID_ISL, SKY_OP_PING); /* right, but not from the neighbour; it may have come from anywhere */
        ask(now_us, &far, &pkt);
        SKY_Node_Run(&node, now_us);
    }
    CHECK(!is_east_up());
    CHECK_EQ(node.links[SKY_LINK_EAST].heard_us, 6u * SECOND_US);
    pkt = hello_of(in_the_east);
    ask(now_us, &east, &pkt);
    CHECK(is_east_up());
    CHECK_EQ(node.links[SKY_LINK_EAST].heard_us, now_us);
    end();
}

static void test_what_has_no_session_yet_does_not_go(void)
{
    SKY_Packet_t pkt;
    uint32_t     handshakes;

    secure(true, SECOND_US);
    CHECK_EQ(SKY_Security_NextDue(&security), UINT64_MAX);
    poll_us    = UINT64_MAX;
    sent_count = 0;
    SKY_Node_Run(&node, 1); /* four greetings cannot go, so four handshakes do */
    handshakes = sent_count;
    CHECK_EQ(handshakes, SKY_ISL_COUNT);
    CHECK_EQ(security.counters.unsent, SKY_ISL_COUNT);
    pkt = answer();
    CHECK(pkt.op == SKY_OP_ASSOCIATE && pkt.security == SKY_SUITE_HANDSHAKE && pkt.is_request);
    CHECK_EQ(SKY_Node_NextDue(&node), 1u + RETRY_US); /* before hellos and polls */
    SKY_Node_Run(&node, 1u + RETRY_US - 1u);
    CHECK_EQ(sent_count, handshakes);
    SKY_Node_Run(&node, 1u + RETRY_US);
    CHECK_EQ(sent_count, 2u * handshakes);
    CHECK(node.handshake == NULL);

    say(in_the_east, true, 1); /* nor does what a service says */
    sent_count = 0;
    SKY_Node_Wake(&node);
    SKY_Node_Run(&node, 2u + RETRY_US);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(security.counters.unsent, SKY_ISL_COUNT + 1u);
    end();
}

/* The neighbour answers the handshake that was sent to it last. */
static void answer_handshake(uint64_t now_us, const SKY_Packet_t *asked, const SKY_HandshakeRequest_t *request)
{
    static uint8_t          wire[PARTY_WIRE], payload[SKY_HANDSHAKE_RESPONSE_BYTES];
    SKY_HandshakeResponse_t response = {{4, 2}, SKY_SUITE_BLAKE2B_HEADER};
    const SKY_TagKey_t      key      = {east.crypto, 0, east.pair, request->word};
    SKY_Packet_t            pkt;

    SKY_Packet_Reply(asked, in_the_east, SKY_STATUS_OK, &pkt);
    SKY_Handshake_EncodeResponse(&response, payload);
    pkt.security = SKY_SUITE_HANDSHAKE;
    pkt.spi      = 99;
    pkt.payload  = payload;
    pkt.length   = sizeof(payload);
    come_bytes(now_us, wire, party_encode(&pkt, &key, wire), east.endpoint);
}

/* The greeting of before could not go without a session. It goes as soon as there is one, and to that neighbour alone. */
static void test_a_neighbour_is_greeted_at_once(void)
{
    SKY_HandshakeRequest_t request;
    SKY_Packet_t           asked;
    uint64_t               unsent;

    secure(true, SECOND_US);
    SKY_Node_SetModel(&node, 0, SKY_LINK_NORTH, &(SKY_LinkModel_t){.cut = true});
    SKY_Node_SetModel(&node, 0, SKY_LINK_SOUTH, &(SKY_LinkModel_t){.cut = true});
    SKY_Node_SetModel(&node, 0, SKY_LINK_WEST, &(SKY_LinkModel_t){.cut = true});
    SKY_Node_Run(&node, 1);
    CHECK_EQ(sent_count, 1);
    asked = answer();
    CHECK(asked.op == SKY_OP_ASSOCIATE && SKY_Addr_Equal(asked.dst, in_the_east));
    CHECK(SKY_Handshake_DecodeRequest(asked.payload, asked.length, &request));
    SKY_Node_SetModel(&node, 0, SKY_LINK_WEST, &(SKY_LinkModel_t){.cut = false});
    SKY_Node_Run(&node, 1); /* it is greeted now, and has no session */
    unsent = security.counters.unsent;
    answer_handshake(2, &asked, &request);
    CHECK_EQ(sent_count, 1);
    CHECK_EQ(sent_link, SKY_LINK_EAST);
    CHECK(answer().op == SKY_OP_HELLO && answer().is_request && answer().sequence == 1u && answer().spi == 99u);
    CHECK_EQ(security.counters.unsent, unsent);
    answer_handshake(3, &asked, &request); /* the answer comes again, and changes nothing */
    CHECK_EQ(sent_count, 0);
    end();
}

int main(void)
{
    RUN(test_only_tags_keep_a_neighbour_alive);
    RUN(test_what_has_no_session_yet_does_not_go);
    RUN(test_a_neighbour_is_greeted_at_once);
    return CHECK_RESULT();
}
