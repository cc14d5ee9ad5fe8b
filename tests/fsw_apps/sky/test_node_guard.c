/* Who is served by a node with security: cookies, tags, associations. Hosts and neighbours are played by hand. */
#include "guard_rig.h"

/* ---- without a master key ------------------------------------------------------------------------------------------- */

static void test_strangers_get_a_cookie_and_nothing_else(void)
{
    static const struct
    {
        uint16_t   apid;
        uint8_t    op;
        SKY_Addr_t dst;
    } requests[] = {
        {SKY_APID_ISL, SKY_OP_PING, {2, 2}},  {SKY_APID_ISL, SKY_OP_STATS, {2, 2}}, {SKY_APID_ISL, SKY_OP_RELAY, {2, 2}},
        {SKY_APID_ISL, SKY_OP_HELLO, {2, 2}}, {APID, SKY_OP_PUT, {2, 2}},           {APID, SKY_OP_GET, {2, 3}},
        {SKY_APID_ISL, SKY_OP_PING, {9, 9}},
    };
    uint64_t cookie = 0;

    secure(false, 0);
    for (uint32_t i = 0; i < sizeof(requests) / sizeof(requests[0]); ++i)
    {
        SKY_Packet_t pkt = request_of(requests[i].apid, requests[i].op);

        pkt.dst       = requests[i].dst;
        pkt.payload   = body;
        pkt.length    = 16;
        pkt.chunk_len = 16;
        for (pkt.cookie = 0; pkt.cookie < 2u; ++pkt.cookie) /* none, and a wrong one */
        {
            come(1, &pkt, GROUND);
            CHECK_EQ(sent_count, 1);
            CHECK_EQ(answer().status, SKY_STATUS_COOKIE);
            CHECK_EQ(answer().request_id, pkt.request_id);
            CHECK(sent_link == SKY_LINK_GROUND && sent_endpoint == GROUND);
            CHECK(answer().cookie != 0u && (cookie == 0u || answer().cookie == cookie));
            CHECK(sent_bytes <= SKY_REQUEST_BYTES + 8u); /* as many bytes as the shortest request has, and 8 more */
            cookie = answer().cookie;
        }
    }
    CHECK(begun == 0u && commands == 0u && SKY_Node_Listeners(&node, 1) == 0u);
    CHECK_EQ(known_hosts(), 0);
    CHECK_EQ(counter(1, NULL, SKY_STATS_ISL_DROP_COOKIE), 2u * sizeof(requests) / sizeof(requests[0]));
    CHECK_EQ(counter(1, NULL, SKY_STATS_ISL_SECURED), 0);
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_COOKIE], 2u * sizeof(requests) / sizeof(requests[0]));
    end();
}

static void test_a_cookie_opens_the_satellite_to_its_endpoint(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

    secure(false, 0);
    come(1, &pkt, GROUND);
    pkt.cookie = answer().cookie;
    come(1, &pkt, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_OK);
    CHECK_EQ(answer().cookie, pkt.cookie); /* a host that asks in time has always one that is valid */
    pkt.op = SKY_OP_PING;
    come(1, &pkt, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_OK);
    CHECK_EQ(answer().cookie, 0);
    come(1, &pkt, GROUND + 1u); /* somebody else who has seen it */
    CHECK_EQ(answer().status, SKY_STATUS_COOKIE);
    CHECK(answer().cookie != pkt.cookie);
    come(129 * SECOND_US, &pkt, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_COOKIE);

    pkt.dst = in_the_east;
    come(1, &pkt, GROUND);
    CHECK(sent_count == 1u && sent_link == SKY_LINK_EAST && answer().is_request && answer().request_id == pkt.request_id);
    CHECK_EQ(known_hosts(), 1);
    pkt     = request_of(APID, SKY_OP_PUT);
    pkt.src = in_the_east;
    come(1, &pkt, endpoint_of(SKY_LINK_EAST)); /* no neighbour is asked for a cookie */
    CHECK_EQ(begun, 1);
    pkt            = request_of(SKY_APID_ISL, SKY_OP_PING);
    pkt.is_request = false; /* nor is a response, which is not answered at all */
    come(1, &pkt, GROUND);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(counter(1, NULL, SKY_STATS_ISL_DROP_COOKIE), 3);
    end();
}

static void test_without_a_key_nobody_can_check_a_tag(void)
{
    static uint8_t     wire[PARTY_WIRE];
    const SKY_TagKey_t key = {&theirs.crypto, 0, NULL, NULL};
    SKY_Packet_t       pkt = request_of(APID, SKY_OP_GET);

    secure(false, 0);
    CHECK(theirs.crypto.LoadKey(theirs.crypto.context, 0, SKY_SUITE_BLAKE2B_PACKET, party_master));
    come(1, &pkt, GROUND);
    pkt.cookie   = answer().cookie;
    pkt.security = SKY_SUITE_BLAKE2B_PACKET;
    pkt.spi      = 4711;
    pkt.sequence = 12;
    come_bytes(1, wire, party_encode(&pkt, &key, wire), GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    CHECK(answer().security == SKY_SUITE_NONE && answer().spi == 4711u && answer().sequence == 12u);
    pkt.is_request = false;
    pkt.src        = in_the_east;
    come_bytes(1, wire, party_encode(&pkt, &key, wire), endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(begun, 0);

    SKY_Node_Secure(&node, NULL); /* and without security there are no cookies either */
    pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    come(1, &pkt, GROUND);
    CHECK(answer().status == SKY_STATUS_OK && answer().cookie == 0u);
    CHECK(!associate(1, &host));
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(counter(1, NULL, SKY_STATS_ISL_DROP_UNAUTHENTICATED), 0);
    end();
}

/* ---- with a master key ----------------------------------------------------------------------------------------------- */

static void test_a_keyed_satellite_refuses_what_has_no_tag(void)
{
    static const struct
    {
        uint16_t apid;
        uint8_t  op;
    } requests[] = {
        {SKY_APID_ISL, SKY_OP_PING},  {SKY_APID_ISL, SKY_OP_STATS},     {SKY_APID_ISL, SKY_OP_RELAY},
        {SKY_APID_ISL, SKY_OP_HELLO}, {SKY_APID_ISL, SKY_OP_ASSOCIATE}, {APID, SKY_OP_PUT},
        {APID + 2u, SKY_OP_PING},
    };
    const uint32_t count = sizeof(requests) / sizeof(requests[0]);

    secure(true, SECOND_US);
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_Packet_t pkt = request_of(requests[i].apid, requests[i].op);

        pkt.spi      = 5;
        pkt.sequence = 6;
        come(1, &pkt, GROUND);
        CHECK(sent_count == 1u && answer().status == SKY_STATUS_UNAUTHENTICATED);
        CHECK(answer().spi == 5u && answer().sequence == 6u && answer().security == SKY_SUITE_NONE);
        CHECK_EQ(answer().cookie, 0);
        CHECK(sent_bytes <= SKY_REQUEST_BYTES + 8u);
        pkt.src = in_the_east;
        come(1, &pkt, endpoint_of(SKY_LINK_EAST)); /* whoever can forge a neighbour's address */
        CHECK(sent_count == 1u && answer().status == SKY_STATUS_UNAUTHENTICATED);
        CHECK(answer().spi == 5u && answer().sequence == 6u && sent_link == SKY_LINK_EAST);
    }
    CHECK(begun == 0u && commands == 0u && SKY_Node_Listeners(&node, 1) == 0u);
    CHECK(associate(1, &host));
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_DROP_UNAUTHENTICATED), 2u * count);
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_SECURED), 1);
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_ASSOCIATIONS), 1);
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_DROP_COOKIE), 0);
    end();
}

static void test_an_associated_host_is_served_under_its_association(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

    secure(true, 0);
    CHECK(associate(1, &host));
    CHECK(host.cookie != 0u);
    CHECK_EQ(security.associations.half_open, 1);
    ask(2, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_OK);
    CHECK(node.association == NULL && node.handshake == NULL);
    CHECK_EQ(security.associations.established, 1);

    pkt = request_of(APID, SKY_OP_GET); /* what a service answers, too; with a body that is not copied */
    say((SKY_Addr_t){0, HOST}, false, 1);
    saying.pkt.chunk_len = sizeof(body);
    saying.has_crc16     = true;
    saying.payload_crc16 = SKY_Crc16(0, body, sizeof(body));
    ask(2, &host, &pkt);
    CHECK_EQ(begun, 1);
    CHECK_EQ(answered(&host), SKY_STATUS_OK);
    CHECK_EQ(answer().length, sizeof(body));
    pkt = request_of(APID + 2u, SKY_OP_GET); /* nobody serves it */
    ask(2, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_UNREACHABLE);
    pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE); /* a new cookie, when the old one ends */
    ask(200 * SECOND_US, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_OK);
    CHECK(answer().cookie != 0u && answer().cookie != host.cookie);
    end();
}

static void test_a_handshake_without_the_right_key_is_refused(void)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    uint32_t       len;

    secure(true, 0);
    host.pair[0] = (uint8_t)(host.pair[0] ^ 1u);
    CHECK(!associate(1, &host));
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    host.pair[0] = (uint8_t)(host.pair[0] ^ 1u);
    for (uint32_t i = 0; i < 3u; ++i) /* what else is said to be a handshake, or is said by nobody who was asked */
    {
        pkt            = request_of(i == 0u ? APID : SKY_APID_ISL, i == 1u ? SKY_OP_PING : SKY_OP_ASSOCIATE);
        pkt.is_request = i != 2u;
        len            = party_handshake(i == 2u ? &east : &host, &pkt, 10 + i, wire);
        come_bytes(10, wire, len, i == 2u ? east.endpoint : GROUND);
        CHECK_EQ(sent_count, i == 2u ? 0u : 1u);
        CHECK_EQ(security.counters.unauthenticated, 2u + i);
        CHECK(i == 2u || answer().status == SKY_STATUS_UNAUTHENTICATED);
    }
    CHECK_EQ(security.associations.half_open, 0);
    CHECK_EQ(begun, 0);
    CHECK(associate(20, &host));
    CHECK_EQ(counter(20, &host, SKY_STATS_ISL_DROP_UNAUTHENTICATED), 4);
    end();
}

static void test_a_keyed_satellite_passes_on_for_those_it_knows(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

    secure(true, 0);
    pkt.dst = in_the_east;
    come(1, &pkt, GROUND);
    CHECK(sent_count == 1u && sent_link == SKY_LINK_GROUND && answer().status == SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(answer().cookie, 0); /* cookies go to associated hosts alone */
    CHECK_EQ(known_hosts(), 0);
    CHECK(associate(1, &host));
    pkt.cookie = host.cookie; /* anybody who has recorded the handshake gets one, too: it opens no way */
    come(1, &pkt, GROUND);
    CHECK(sent_link == SKY_LINK_GROUND && answer().status == SKY_STATUS_UNAUTHENTICATED);
    take_cookie(1, &host);
    CHECK(host.cookie != pkt.cookie);
    pkt.cookie = host.cookie;
    come(1, &pkt, GROUND + 1u);
    CHECK(sent_link == SKY_LINK_GROUND && answer().status == SKY_STATUS_UNAUTHENTICATED);
    come(1, &pkt, GROUND);
    CHECK(sent_count == 1u && sent_link == SKY_LINK_EAST && answer().is_request);
    pkt.is_request = false; /* the way back, which is not looked into */
    pkt.src        = in_the_east;
    pkt.dst        = (SKY_Addr_t){0, HOST};
    pkt.gateway    = self;
    come(1, &pkt, endpoint_of(SKY_LINK_EAST));
    CHECK(sent_count == 1u && sent_link == SKY_LINK_GROUND && sent_endpoint == GROUND);
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_DROP_COOKIE), 3);
    end();
}

/* Who sends a recorded handshake again, from an address of his own, gets a cookie for handshakes. So it is after a boot. */
static void test_a_recorded_handshake_opens_no_way(void)
{
    static uint8_t wire[PARTY_WIRE], again[PARTY_WIRE];
    const uint64_t thief = GROUND + 1u;
    SKY_Packet_t   pkt   = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    uint32_t       len;

    for (uint64_t boot = 0; boot < 2u; ++boot)
    {
        secure(true, 0);
        if (boot == 0u)
        {
            len = party_handshake(&host, &pkt, 1, wire);
        }
        (void)memcpy(again, wire, len);
        come_bytes(1, again, len, thief);
        CHECK(sent_count == 1u && answer().status == SKY_STATUS_OK && sent_endpoint == thief);
        pkt        = request_of(SKY_APID_ISL, SKY_OP_PING);
        pkt.dst    = in_the_east;
        pkt.cookie = answer().cookie;
        CHECK(pkt.cookie != SKY_COOKIE_NONE);
        CHECK(
            SKY_Security_IsReachable(&security, 1, &pkt, thief)); /* a handshake with it is one of somebody who can be reached */
        come(1, &pkt, thief);
        CHECK(sent_count == 1u && sent_link == SKY_LINK_GROUND && answer().status == SKY_STATUS_UNAUTHENTICATED);
        CHECK_EQ(known_hosts(), 0);
        end();
    }
}

static void test_a_request_is_served_once(void)
{
    static uint8_t wire[PARTY_WIRE], again[PARTY_WIRE];
    SKY_Packet_t   pkt = request_of(APID, SKY_OP_PUT);

    secure(true, 0);
    CHECK(associate(1, &host));
    const uint32_t len = party_request(&host, &pkt, wire);

    (void)memcpy(again, wire, len);
    come_bytes(1, wire, len, GROUND);
    CHECK_EQ(begun, 1);
    come_bytes(2, again, len, GROUND);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(begun, 1);
    CHECK(node.association == NULL);
    CHECK_EQ(counter(2, &host, SKY_STATS_ISL_DROP_REPLAYED), 1);
    end();
}

static void test_what_a_host_may_not_is_refused_under_its_association(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_RELAY);

    secure(true, 0);
    CHECK(associate(1, &host));
    pkt.payload = body;
    pkt.length  = 16;
    ask(1, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_REFUSED);
    CHECK_EQ(commands, 0);
    pkt = request_of(SKY_APID_ISL, SKY_OP_HELLO);
    ask(1, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_REFUSED);
    CHECK_EQ(counter(1, &host, SKY_STATS_ISL_DROP_REFUSED), 2);
    CHECK_EQ(node.router.counters.drops[SKY_STATUS_REFUSED], 2);
    CHECK(associate(1, &mission));
    pkt         = request_of(SKY_APID_ISL, SKY_OP_RELAY);
    pkt.payload = body;
    pkt.length  = 16;
    ask(1, &mission, &pkt);
    CHECK_EQ(answered(&mission), SKY_STATUS_OK);
    CHECK_EQ(commands, 1);
    end();
}

static void test_telemetry_ends_with_the_listeners_association(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_RELAY);

    secure(true, 0);
    CHECK(associate(1, &mission));
    pkt.flags = SKY_FLAG_TLM;
    ask(1, &mission, &pkt);
    CHECK_EQ(answered(&mission), SKY_STATUS_OK);
    sent_count = 0;
    SKY_Node_Telemetry(&node, 2, body, 32);
    CHECK_EQ(answered(&mission), SKY_STATUS_OK);
    CHECK_EQ(answer().length, 32);
    CHECK(node.association == NULL);
    CHECK_EQ(SKY_Node_Listeners(&node, 2), 1);

    keep_master(&security, 1, party_master);
    sent_count = 0;
    SKY_Node_Telemetry(&node, 3, body, 32);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(node.relayed_down, 1);
    CHECK_EQ(SKY_Node_Listeners(&node, 3), 0); /* the lease ends, too */
    end();
}

/* ---- the own place ---------------------------------------------------------------------------------------------------- */

static void test_a_satellite_that_moves_is_another_one(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

    secure(true, 0);
    CHECK(associate(1, &mission));
    CHECK_EQ(SKY_Node_Configure(&node, 2, &cfg), SKY_NODE_CONFIGURED); /* it stays where it is */
    ask(2, &mission, &pkt);
    CHECK_EQ(answered(&mission), SKY_STATUS_OK);
    CHECK_EQ(security.associations.stats.begun, 1);
    SKY_Node_ResetCounters(&node);
    CHECK_EQ(security.associations.stats.begun, 0);
    cfg.self = (SKY_Addr_t){1, 1};
    CHECK_EQ(SKY_Node_Configure(&node, 3, &cfg), SKY_NODE_CONFIGURED);
    CHECK(SKY_Addr_Equal(security.self, cfg.self));
    pkt     = request_of(SKY_APID_ISL, SKY_OP_PING);
    pkt.dst = cfg.self;
    ask(3, &mission, &pkt);
    CHECK_EQ(sent_count, 1);
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    end();
}

/* ---- answers to what cannot be acted upon ------------------------------------------------------------------------------ */

/* Whoever sends, and whatever is wrong, a stranger makes nobody get more than 8 bytes beyond what was sent. */
static void test_no_answer_to_a_stranger_is_long(void)
{
    static uint8_t wire[SENT_MAX];
    const size_t   header = SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES;

    for (unsigned is_keyed = 0; is_keyed < 2u; ++is_keyed)
    {
        secure(is_keyed != 0u, 0);
        for (uint32_t i = 0; i < 12u; ++i)
        {
            SKY_Packet_t pkt = request_of(i % 2u == 0u ? SKY_APID_ISL : APID, SKY_OP_GET);
            uint32_t     len = 0;

            pkt.dst = i < 6u ? self : in_the_east; /* which it would be passed on to */
            if (i % 6u == 0u)                      /* an earlier version, at its shortest */
            {
                len = encode_as_version(&pkt, 2, wire);
            }
            else if (i % 6u == 1u) /* version 1 again, and the function code is wrong too */
            {
                len                     = encode_as_version(&pkt, 1, wire);
                wire[SKY_PRIMARY_BYTES] = SKY_OP_PUT;
            }
            else
            {
                len                              = (uint32_t)SKY_Packet_Encode(&pkt, wire, sizeof(wire));
                wire[SKY_PRIMARY_BYTES]          = i % 6u == 2u ? SKY_OP_PUT : wire[SKY_PRIMARY_BYTES];
                wire[header + SKY_OFF_LENGTH]    = i % 6u == 3u ? 1 : 0;
                wire[header + SKY_OFF_DST_PLANE] = i % 6u == 4u ? 99 : 0; /* outside the constellation */
            }
            mend(wire, len);
            come_bytes(1, wire, len, GROUND);
            CHECK(sent_count == 1u && sent_link == SKY_LINK_GROUND && sent_endpoint == GROUND);
            CHECK(sent_bytes <= len + 8u);
        }
        CHECK_EQ(begun, 0);
        CHECK_EQ(known_hosts(), 0);
        end();
    }
}

int main(void)
{
    RUN(test_strangers_get_a_cookie_and_nothing_else);
    RUN(test_a_cookie_opens_the_satellite_to_its_endpoint);
    RUN(test_without_a_key_nobody_can_check_a_tag);
    RUN(test_a_keyed_satellite_refuses_what_has_no_tag);
    RUN(test_an_associated_host_is_served_under_its_association);
    RUN(test_a_handshake_without_the_right_key_is_refused);
    RUN(test_a_keyed_satellite_passes_on_for_those_it_knows);
    RUN(test_a_recorded_handshake_opens_no_way);
    RUN(test_a_request_is_served_once);
    RUN(test_what_a_host_may_not_is_refused_under_its_association);
    RUN(test_telemetry_ends_with_the_listeners_association);
    RUN(test_a_satellite_that_moves_is_another_one);
    RUN(test_no_answer_to_a_stranger_is_long);
    return CHECK_RESULT();
}
