/* The node's packet engine: services, forwarding, refusals, configuration. */
#include "node_rig.h"

/* ---- services -------------------------------------------------------------------------------------------------------- */

static void test_a_service_answers(void)
{
    static const SKY_Addr_t host = {0, HOST}, south = {3, 2}, nowhere = {9, 9};
    SKY_Packet_t            request = request_of(APID, SKY_OP_GET);

    start();
    say(host, false, 2);
    come(1, &request, GROUND);
    CHECK_EQ(begun, 1);
    CHECK_EQ(sent_count, 2);
    CHECK_EQ(sent_link, SKY_LINK_GROUND);
    CHECK_EQ(sent_endpoint, GROUND); /* straight back */
    CHECK(node.bodies_wait);
    CHECK_EQ(flushes, 0);
    say(south, false, 1);
    come(2, &request, GROUND); /* the same service, still locked; what waits is sent before it begins anew */
    CHECK_EQ(flushes, 1);
    CHECK_EQ(released, 0);
    CHECK_EQ(sent_link, SKY_LINK_SOUTH);
    CHECK_EQ(sent_endpoint, endpoint_of(SKY_LINK_SOUTH));
    say(nowhere, false, 1);
    come(3, &request, GROUND);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(unreached, 0); /* an address of no satellite is not out of reach */
    say(nowhere, true, 1);
    come(3, &request, GROUND);
    CHECK_EQ(unreached, 0);
    SKY_Node_Run(&node, 4);
    CHECK_EQ(released, 2); /* once polled */
    CHECK(node.held == NULL);
}

static void test_two_services_take_turns(void)
{
    static const SKY_Addr_t host    = {0, HOST};
    SKY_Packet_t            request = request_of(APID, SKY_OP_GET);

    start();
    say(host, false, 1);
    saying.pkt.length = 10;
    come(1, &request, GROUND);
    CHECK(!node.bodies_wait); /* so short a body has been copied */
    request.apid = APID + 1u;
    come(2, &request, GROUND);
    CHECK_EQ(begun, 2);
    CHECK_EQ(released, 1); /* the first one is let go before the second is locked */
}

static void test_a_burst_ends(void)
{
    static const SKY_Addr_t host    = {0, HOST};
    const SKY_Packet_t      request = request_of(APID, SKY_OP_GET);

    start();
    say(host, false, SKY_NODE_BURST_MAX);
    come(1, &request, GROUND);
    CHECK_EQ(sent_count, SKY_NODE_BURST_MAX);
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_BUSY], 0);
    say(host, false, SKY_NODE_BURST_MAX + 2u);
    come(2, &request, GROUND);
    CHECK_EQ(sent_count, SKY_NODE_BURST_MAX);
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_BUSY], 1);
}

static void test_nobody_serves(void)
{
    SKY_Packet_t request = request_of(APID, SKY_OP_GET);

    start();
    is_served = false;
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_UNREACHABLE);
    CHECK_EQ(begun, 0);
    request.is_request = false; /* nobody is told of a response that nobody takes */
    request.src.plane  = 2;
    request.src.slot   = 1;
    come(2, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(node.router.counters.no_service, 2);
}

static void test_services_are_polled(void)
{
    static const SKY_Addr_t east = {2, 3};

    start();
    poll_us = 500000;
    say(east, false, 1);
    SKY_Node_Run(&node, 1);
    CHECK_EQ(sent_count, 1);
    CHECK_EQ(sent_link, SKY_LINK_EAST);
    CHECK_EQ(SKY_Node_NextDue(&node), 500000);
    poll_us = 0; /* always due: it must not keep the processor */
    SKY_Node_Run(&node, 600000);
    CHECK_EQ(SKY_Node_NextDue(&node), 601000);
    CHECK_EQ(unreached, 0);
    SKY_Node_Run(&node, 600500);
    CHECK_EQ(SKY_Node_NextDue(&node), 601000); /* not yet */

    say(east, true, 1);
    node.router.usable = 0;
    poll_us            = UINT64_MAX;
    SKY_Node_Run(&node, 601000); /* there is no way from here: the service hears of it, and is asked again soon */
    CHECK_EQ(unreached, 1);
    CHECK_EQ(SKY_Node_NextDue(&node), 602000);

    is_served = false;
    SKY_Node_Run(&node, 700000);
    CHECK_EQ(SKY_Node_NextDue(&node), 700000 + SECOND_US);
}

static void test_a_service_without_work_is_left_alone(void)
{
    set_up();
    cfg.poll_most_us = UINT64_MAX;
    CHECK_EQ(SKY_Node_Configure(&node, 5, &cfg), SKY_NODE_CONFIGURED);
    CHECK_EQ(SKY_Node_NextDue(&node), 0); /* a service may have work from the start */
    SKY_Node_Run(&node, 5);
    CHECK_EQ(SKY_Node_NextDue(&node), UINT64_MAX);
    SKY_Node_Wake(&node);
    CHECK_EQ(SKY_Node_NextDue(&node), 0);
}

/* ---- packets of others ----------------------------------------------------------------------------------------------- */

static void test_packets_are_forwarded(void)
{
    SKY_Packet_t request = request_of(SKY_APID_KVC, SKY_OP_PUT);

    start();
    request.dst.slot = 3;
    come(1, &request, GROUND);
    CHECK_EQ(sent_link, SKY_LINK_EAST);
    CHECK_EQ(answer().gateway.slot, 2);
    CHECK_EQ(answer().hop_limit, 2);

    request.is_request = false; /* the response, on the way back */
    request.op         = SKY_OP_PING;
    request.src        = request.dst;
    request.dst.plane  = 0;
    request.dst.slot   = HOST;
    request.gateway    = self;
    come(2, &request, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(sent_count, 1);
    CHECK_EQ(sent_link, SKY_LINK_GROUND);
    CHECK_EQ(sent_endpoint, GROUND);
    CHECK_EQ(node.router.counters.to_ground, 1);
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.tx_packets, 1);
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.tx_bytes, sent_bytes);
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.rx_packets, 1);
    shell_drops = true;
    come(3, &request, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.tx_packets, 1);
}

static void test_packets_that_are_too_long(void)
{
    SKY_Packet_t request = request_of(SKY_APID_ISL, SKY_OP_PING);

    set_up();
    cfg.packet_bytes = 600;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    request.dst.slot = 3;
    request.length   = 1000;
    request.payload  = body;
    come(1, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_TOO_LARGE);
    CHECK_EQ(sent_link, SKY_LINK_GROUND);
    request.src.plane = 2; /* of a neighbour, for another one: the answer goes over the links */
    request.src.slot  = 1;
    come(2, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(answer().status, SKY_STATUS_TOO_LARGE);
    CHECK_EQ(sent_link, SKY_LINK_WEST);
    request.is_request = false;
    come(3, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_count, 0);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------- */

static void test_packets_that_do_not_decode(void)
{
    SKY_Packet_t request = request_of(APID, SKY_OP_PUT);

    start();
    SKY_Node_Receive(&node, 1, body, 4, GROUND); /* shorter than any packet */
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_SHORT], 1);
    CHECK_EQ(sent_count, 0);

    request.length    = 10; /* of a chunk that is said to be shorter */
    request.chunk_len = 5;
    request.payload   = body;
    come(2, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(rejected, 1);
    request.dst.slot = 3; /* another satellite's: our service does not count it */
    come(3, &request, GROUND);
    request.dst = self;
    is_served   = false;
    SKY_Node_Run(&node, 5); /* lets go */
    come(6, &request, GROUND);
    CHECK_EQ(rejected, 1);
    request.op         = SKY_OP_GET; /* a response with a chunk: nobody is told */
    request.is_request = false;
    come(7, &request, GROUND);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(node.undecoded, 5);
}

/* Whoever speaks another version is answered in what every version has, and not at length. */
static void test_packets_of_other_versions(void)
{
    static uint8_t wire[SENT_MAX];
    SKY_Packet_t   request = request_of(SKY_APID_ISL, SKY_OP_PING);
    uint32_t       len;

    start();
    for (uint8_t version = 0; version <= SKY_VERSION + 1u; version = (uint8_t)(version + (version == SKY_VERSION - 1u ? 2u : 1u)))
    {
        len        = encode_as_version(&request, version, wire);
        sent_count = 0;
        SKY_Node_Receive(&node, 1, wire, len, GROUND);
        CHECK(sent_count == 1u && sent_link == SKY_LINK_GROUND && sent_endpoint == GROUND);
        CHECK_EQ(sent_bytes, SKY_BASE_BYTES);
        CHECK(sent_bytes <= len + 8u);
        const uint8_t *header = sent + SKY_PRIMARY_BYTES + SKY_RESPONSE_SECONDARY_BYTES;

        CHECK_EQ(header[SKY_OFF_VERSION], SKY_VERSION);
        CHECK_EQ(header[SKY_OFF_STATUS], SKY_STATUS_BAD_VERSION);
        CHECK_EQ(header[SKY_OFF_REQUEST_ID + 7u], 77);
        CHECK_EQ(header[SKY_OFF_DST_SLOT + 1u], HOST);
        CHECK_EQ(header[SKY_OFF_GATEWAY_SLOT + 1u], self.slot);
        CHECK_EQ(sent[SKY_PRIMARY_BYTES + 3u], 7); /* it is dated */
        CHECK_EQ((sent[2] & 0x3Fu) << 8 | sent[3], node.seq_count - 1u);
    }
    request.src =
        (SKY_Addr_t){2, 3}; /* an answer with a whole header, without which no satellite finds its way, would be much longer */
    len        = encode_as_version(&request, 2, wire);
    sent_count = 0;
    SKY_Node_Receive(&node, 1, wire, len, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(sent_count, 0);
}

static void test_packets_that_go_nowhere(void)
{
    SKY_Packet_t request = request_of(SKY_APID_ISL, SKY_OP_PING);

    start();
    request.hop_limit = 0;
    request.dst.slot  = 3;
    come(3, &request, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_HOP_LIMIT);
    CHECK_EQ(answer().gateway.slot, 2);
    request.src.plane = 2;
    request.src.slot  = 1;
    come(4, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(answer().status, SKY_STATUS_HOP_LIMIT);
    CHECK_EQ(sent_link, SKY_LINK_WEST);
    node.router.usable = 0; /* there is no way back */
    come(5, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_count, 0);
    request.is_request = false; /* from the ground only requests are taken */
    come(6, &request, GROUND);
    CHECK_EQ(sent_count, 0);
    request.is_request = true;
    come(7, &request, 0); /* nobody can be answered at port 0 */
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_BAD_ADDRESS], 1);
}

/* ---- configuration --------------------------------------------------------------------------------------------------- */

static void test_memory_that_is_too_little(void)
{
    const SKY_NodeMemory_t no_listeners = {map, sizeof(map), listeners, 0, relayed, RELAYED};
    const SKY_NodeMemory_t no_relayed   = {map, sizeof(map), listeners, LISTENERS, relayed, 0};

    CHECK(!SKY_Node_Init(&node, &shell, &no_listeners));
    CHECK(!SKY_Node_Init(&node, &shell, &no_relayed));
    set_up();
    CHECK(SKY_Torus_Init(&cfg.torus, 300, 300, false));
    cfg.hello_us = SECOND_US;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_MAPLESS);
    CHECK(node.router.map == NULL);
}

static void test_a_satellite_that_is_nowhere(void)
{
    start();
    cfg.self.plane = 4;
    CHECK_EQ(SKY_Node_Configure(&node, 1, &cfg), SKY_NODE_REFUSED);
    CHECK_EQ(node.router.self.plane, 2);
}

/* Without hellos nothing would repair the map, so there is none; a configuration with hellos brings it. */
static void test_no_map_without_hellos(void)
{
    start();
    CHECK(node.router.map == NULL);
    cfg.hello_us = SECOND_US;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    CHECK(node.router.map != NULL);
    cfg.hello_us = 0;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED); /* it would have room */
    CHECK(node.router.map == NULL);
}

static void test_what_is_kept_of_the_same_satellite(void)
{
    static const SKY_Addr_t other = {2, 3};
    SKY_Packet_t            lease = request_of(SKY_APID_ISL, SKY_OP_RELAY);
    SKY_Torus_t             torus[3];

    lease.flags = SKY_FLAG_TLM;
    start();
    come(100, &lease, GROUND);
    cfg.packet_bytes = 1000;
    CHECK_EQ(SKY_Node_Configure(&node, 200, &cfg), SKY_NODE_CONFIGURED);
    CHECK_EQ(node.router.counters.delivered, 1);
    CHECK_EQ(SKY_Node_Listeners(&node, 200), 1);
    CHECK_EQ(node.started_us, 200); /* the first time that is not 0 */
    CHECK_EQ(SKY_Node_Configure(&node, 300, &cfg), SKY_NODE_CONFIGURED);
    CHECK_EQ(node.started_us, 200);

    CHECK(SKY_Torus_Init(&torus[0], 4, 3, false));
    CHECK(SKY_Torus_Init(&torus[1], 4, 4, false));
    CHECK(SKY_Torus_Init(&torus[2], 4, 4, true));
    for (uint32_t i = 0; i < 3; ++i) /* another constellation each time */
    {
        come(400, &lease, GROUND);
        CHECK_EQ(node.router.counters.delivered, 1u + (i == 0 ? 1u : 0u));
        cfg.torus = torus[i];
        CHECK_EQ(SKY_Node_Configure(&node, 500, &cfg), SKY_NODE_MAPLESS);
        CHECK_EQ(node.router.counters.delivered, 0);
        CHECK_EQ(SKY_Node_Listeners(&node, 500), 0);
    }
    come(600, &lease, GROUND);
    cfg.self = other;
    CHECK_EQ(SKY_Node_Configure(&node, 700, &cfg), SKY_NODE_MAPLESS);
    CHECK_EQ(node.router.counters.delivered, 0);
    CHECK_EQ(SKY_Node_Listeners(&node, 700), 0);
}

static void test_counters_start_anew(void)
{
    const SKY_Packet_t ping = request_of(SKY_APID_ISL, SKY_OP_PING);

    start();
    come(1, &ping, GROUND);
    SKY_Node_Receive(&node, 1, body, 4, GROUND);
    SKY_Node_ResetCounters(&node);
    CHECK_EQ(node.router.counters.delivered, 0);
    CHECK_EQ(node.undecoded, 0);
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.rx_packets, 0);
}

int main(void)
{
    RUN(test_a_service_answers);
    RUN(test_two_services_take_turns);
    RUN(test_a_burst_ends);
    RUN(test_nobody_serves);
    RUN(test_services_are_polled);
    RUN(test_a_service_without_work_is_left_alone);
    RUN(test_packets_are_forwarded);
    RUN(test_packets_that_are_too_long);
    RUN(test_packets_that_do_not_decode);
    RUN(test_packets_of_other_versions);
    RUN(test_packets_that_go_nowhere);
    RUN(test_memory_that_is_too_little);
    RUN(test_a_satellite_that_is_nowhere);
    RUN(test_no_map_without_hellos);
    RUN(test_what_is_kept_of_the_same_satellite);
    RUN(test_counters_start_anew);
    return CHECK_RESULT();
}
