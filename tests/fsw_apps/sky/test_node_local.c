/* What the node serves itself: PING, STATS, and RELAY of commands and telemetry. */
#include "node_rig.h"

static SKY_Packet_t relay_of(uint32_t len)
{
    SKY_Packet_t request = request_of(SKY_APID_ISL, SKY_OP_RELAY);

    request.payload = body;
    request.length  = len;
    return request;
}

static uint64_t counter(const SKY_Packet_t *pkt, uint32_t number)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < 8u; ++i)
    {
        value = value << 8 | pkt->payload[number * 8u + i];
    }
    return value;
}

static void test_pings(void)
{
    SKY_Packet_t request = request_of(SKY_APID_ISL, SKY_OP_PING);

    start();
    (void)memset(body, 0x5A, SKY_LIMIT_PING_BYTES);
    request.payload = body;
    request.length  = SKY_LIMIT_PING_BYTES;
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_OK);
    CHECK_EQ(answer().length, SKY_LIMIT_PING_BYTES);
    CHECK(memcmp(answer().payload, body, SKY_LIMIT_PING_BYTES) == 0);
    request.length = SKY_LIMIT_PING_BYTES + 1;
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_TOO_LARGE);
    request = request_of(SKY_APID_ISL, SKY_OP_HAS);
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_BAD_OP);
    request.is_request = false; /* a response that nobody has asked for */
    request.src.plane  = 2;
    request.src.slot   = 1;
    come(1, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_count, 0);
}

static void test_stats(void)
{
    const SKY_LinkModel_t model   = {5000, 6, 7, 8, false};
    const SKY_Packet_t    request = request_of(SKY_APID_ISL, SKY_OP_STATS);
    const uint32_t        east    = SKY_STATS_ISL_COUNT + SKY_LINK_EAST * SKY_STATS_LINK_COUNT;
    const uint32_t        west    = SKY_STATS_ISL_COUNT + SKY_LINK_WEST * SKY_STATS_LINK_COUNT;
    const uint32_t        ground  = SKY_STATS_ISL_COUNT + SKY_LINK_GROUND * SKY_STATS_LINK_COUNT;
    SKY_Packet_t          pkt;

    set_up();
    cfg.hello_us = SECOND_US;
    CHECK_EQ(SKY_Node_Configure(&node, 1000, &cfg), SKY_NODE_CONFIGURED);
    SKY_Node_SetModel(&node, 1000, SKY_LINK_EAST, &model);
    CHECK(SKY_Node_Cut(&node, 1000, SKY_LINK_WEST, 9));
    node.links[SKY_LINK_EAST].queue_depth = 3;
    SKY_Node_Receive(&node, 2000, body, 4, endpoint_of(SKY_LINK_EAST));
    come(9000, &request, GROUND);
    pkt = answer();
    CHECK_EQ(pkt.length, (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT) * 8u);
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_UPTIME_MS), 8);
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_DELIVERED), 1);
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_DROP_SHORT), 1);
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_LINKS), SKY_LINK_COUNT);
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_LINKS_DOWN_KNOWN), 1);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_UP), 1);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_PLANE), 2);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_SLOT), 3);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_RX_BYTES), 4);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_QUEUE_DEPTH), 3);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_LAST_HEARD_MS), 7);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_DELAY_REQUESTED_US), 5000);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_JITTER_US), 6);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_RATE_KBPS), 7);
    CHECK_EQ(counter(&pkt, east + SKY_STATS_LINK_LOSS_PPM), 8);
    CHECK_EQ(counter(&pkt, west + SKY_STATS_LINK_UP), 0);
    CHECK(counter(&pkt, west + SKY_STATS_LINK_LAST_HEARD_MS) == UINT64_MAX);
    CHECK_EQ(counter(&pkt, ground + SKY_STATS_LINK_UP), 1);
    CHECK_EQ(counter(&pkt, ground + SKY_STATS_LINK_RX_PACKETS), 1);

    start(); /* without a map nothing is known of others' links */
    come(9000, &request, GROUND);
    pkt = answer();
    CHECK_EQ(counter(&pkt, SKY_STATS_ISL_LINKS_DOWN_KNOWN), 0);
}

static void test_commands(void)
{
    SKY_Packet_t request = relay_of(8);

    start();
    for (uint32_t i = 0; i < 2; ++i) /* one that is repeated is carried out once */
    {
        come(1, &request, GROUND);
        CHECK_EQ(answer().status, SKY_STATUS_OK);
    }
    CHECK_EQ(commands, 1);
    CHECK_EQ(node.relayed_up, 1);
    body[0] ^= 1u; /* another command of a host that counts anew */
    come(1, &request, GROUND);
    request.request_id = 78;
    come(1, &request, GROUND);
    request.src.slot = HOST + 1u;
    come(1, &request, GROUND);
    CHECK_EQ(commands, 4);

    command_status     = SKY_STATUS_BUSY; /* what the bus did not take is tried again */
    request.request_id = 79;
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_BUSY);
    CHECK_EQ(node.relay_errors, 1);
    command_status = SKY_STATUS_OK;
    come(1, &request, GROUND);
    CHECK_EQ(commands, 6);
    for (uint64_t id = 100; id < 100 + RELAYED; ++id) /* the oldest are forgotten */
    {
        request.request_id = id;
        come(1, &request, GROUND);
    }
    request.request_id = 79;
    come(1, &request, GROUND);
    CHECK_EQ(commands, 7 + RELAYED);
}

/* Ask for telemetry. */
static SKY_Status_t listen(uint64_t now_us, uint16_t host, uint64_t endpoint)
{
    SKY_Packet_t request = relay_of(0);

    request.flags    = SKY_FLAG_TLM;
    request.src.slot = host;
    come(now_us, &request, endpoint);
    return answer().status;
}

static void test_listeners(void)
{
    start();
    SKY_Node_Telemetry(&node, 1, body, 100); /* to nobody */
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(listen(SECOND_US, HOST, GROUND), SKY_STATUS_OK);
    CHECK_EQ(listen(2 * SECOND_US, HOST + 1u, GROUND), SKY_STATUS_OK); /* an endpoint has one lease */
    CHECK_EQ(SKY_Node_Listeners(&node, 2 * SECOND_US), 1);
    flushes = 0;
    SKY_Node_Telemetry(&node, 3 * SECOND_US, body, 100);
    CHECK_EQ(answer().length, 100);
    CHECK_EQ(answer().flags, SKY_FLAG_TLM);
    CHECK_EQ(flushes, 1);
    CHECK_EQ(node.relayed_down, 1);
    CHECK_EQ(commands, 0);
    for (uint16_t host = 1; host <= LISTENERS; ++host)
    {
        CHECK_EQ(listen(4 * SECOND_US + host, host, GROUND + host), SKY_STATUS_OK);
    }
    CHECK_EQ(SKY_Node_Listeners(&node, 5 * SECOND_US), LISTENERS);
    sent_count = 0;
    SKY_Node_Telemetry(&node, 5 * SECOND_US, body, 100); /* the oldest has made room */
    CHECK_EQ(sent_count, LISTENERS);
    CHECK_EQ(SKY_Node_Listeners(&node, 5 * SECOND_US + LEASE_US), 0);
    sent_count = 0;
    SKY_Node_Telemetry(&node, 5 * SECOND_US + LEASE_US, body, 100); /* all leases are over */
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(listen(40 * SECOND_US, HOST, GROUND), SKY_STATUS_OK); /* in the place of one that is over */
    CHECK_EQ(SKY_Node_Listeners(&node, 40 * SECOND_US), 1);
}

/* A listener behind another satellite is known by its number and its gateway. */
static void test_a_far_listener(void)
{
    SKY_Packet_t request = relay_of(0);

    start();
    request.flags         = SKY_FLAG_TLM;
    request.gateway.plane = 2;
    request.gateway.slot  = 1;
    for (uint32_t i = 0; i < 2; ++i)
    {
        come(SECOND_US, &request, endpoint_of(SKY_LINK_WEST));
    }
    CHECK_EQ(SKY_Node_Listeners(&node, SECOND_US), 1);
    request.src.slot = HOST + 1u;
    come(SECOND_US, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(SKY_Node_Listeners(&node, SECOND_US), 2);
    request.gateway.slot  = 2;
    request.gateway.plane = 1;
    come(SECOND_US, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(SKY_Node_Listeners(&node, SECOND_US), 3);
    sent_count = 0;
    SKY_Node_Telemetry(&node, SECOND_US, body, 100);
    CHECK_EQ(sent_count, 3);
    CHECK_EQ(sent_link, SKY_LINK_NORTH);
}

/* A request for telemetry may carry a command too. */
static void test_a_command_and_a_lease(void)
{
    SKY_Packet_t request = relay_of(8);

    start();
    request.flags = SKY_FLAG_TLM;
    come(1, &request, GROUND);
    CHECK_EQ(commands, 1);
    CHECK_EQ(SKY_Node_Listeners(&node, 1), 1);
    request       = relay_of(0); /* neither: the shell says what is wrong with it */
    request.flags = 0;
    come(1, &request, GROUND);
    CHECK_EQ(commands, 2);
}

/* A message that would make a packet longer than any is not sent. */
static void test_telemetry_that_is_too_long(void)
{
    static uint8_t message[SKY_LIMIT_PACKET_BYTES];

    start();
    CHECK_EQ(listen(1, HOST, GROUND), SKY_STATUS_OK);
    sent_count = 0;
    SKY_Node_Telemetry(&node, 1, message, sizeof(message));
    CHECK_EQ(sent_count, 0);
}

int main(void)
{
    RUN(test_pings);
    RUN(test_stats);
    RUN(test_commands);
    RUN(test_listeners);
    RUN(test_a_far_listener);
    RUN(test_a_command_and_a_lease);
    RUN(test_telemetry_that_is_too_long);
    return CHECK_RESULT();
}
