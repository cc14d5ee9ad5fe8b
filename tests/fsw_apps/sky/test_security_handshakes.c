/**
 * @file
 * Who gets a cookie of a satellite, and who an association.
 */
#include "admission_rig.h"

/* ---- cookies ---- */

static void test_a_cookie_is_that_of_an_endpoint_and_a_time(void)
{
    open_unkeyed(&satellite, 1, 2);
    open_unkeyed(&other, 1, 3);
    SKY_Packet_t pkt = a_request(&other, &satellite, SKY_OP_PUT);

    CHECK(!SKY_Security_HasCookie(&satellite.security, NOW, &pkt, ENDPOINT));
    CHECK_EQ(satellite.security.counters.no_cookie, 1);
    pkt.cookie = SKY_Security_CookieOf(&satellite.security, NOW, ENDPOINT);
    CHECK(pkt.cookie != SKY_COOKIE_NONE);
    CHECK(SKY_Security_HasCookie(&satellite.security, NOW, &pkt, ENDPOINT));
    CHECK(SKY_Security_HasCookie(&satellite.security, SKY_COOKIE_PERIOD_US, &pkt, ENDPOINT));
    CHECK_EQ(satellite.security.counters.no_cookie, 1);
    CHECK(!SKY_Security_HasCookie(&satellite.security, NOW, &pkt, ENDPOINT + 1u));
    CHECK(!SKY_Security_HasCookie(&satellite.security, 2u * SKY_COOKIE_PERIOD_US, &pkt, ENDPOINT));
    CHECK(!SKY_Security_HasCookie(&other.security, NOW, &pkt, ENDPOINT)); /* another satellite has another secret */
    CHECK_EQ(satellite.security.counters.no_cookie, 3);
    CHECK_EQ(SKY_Security_CookieOf(&satellite.security, NOW, 0), SKY_COOKIE_NONE); /* who came over a link between satellites */
    close_party(&satellite);
    close_party(&other);
}

/* ---- handshakes ---- */

static void test_a_host_associates_and_is_served(void)
{
    wire_t       wire;
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    CHECK_EQ(satellite.security.associations.half_open, 1);
    pkt = a_request(&host, &satellite, SKY_OP_PUT);
    send(&host, &pkt, &wire);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    CHECK_EQ(satellite.security.associations.established, 1);
    const SKY_Association_t *association = SKY_Associations_Find(&satellite.security.associations, wire.pkt.spi);

    CHECK(association != NULL && association->endpoint == ENDPOINT + NOW && association->used_us == NOW);
    close_all();
}

/* Flip a byte of a handshake's payload and tag it anew, as a host can that has a key. */
static bool is_answered_with(size_t at, uint8_t value, uint32_t length)
{
    const SKY_TagKey_t key = {&host.rig.crypto, 0, host.pair, NULL};
    uint8_t            payload[SKY_HANDSHAKE_REQUEST_BYTES + 1u];
    wire_t             there;
    wire_t             back;
    SKY_Packet_t       pkt;

    SKY_Session_End(&host.session, &host.rig.crypto);
    host.session.next_us = 0;
    ask(&host, &satellite, NOW, 2, &there);
    (void)memset(payload, 0, sizeof(payload));
    (void)memcpy(payload, there.pkt.payload, SKY_HANDSHAKE_REQUEST_BYTES);
    payload[at] = value;
    pkt         = there.pkt;
    pkt.payload = payload;
    pkt.length  = length;
    CHECK(carry(&pkt, &key, &there));
    return answer(&satellite, NOW, &there.pkt, &back);
}

static void test_a_malformed_handshake_is_refused(void)
{
    static const struct
    {
        size_t   at;
        uint8_t  value;
        uint32_t length;
    } cases[] = {
        {0, 3, SKY_HANDSHAKE_REQUEST_BYTES},                                     /* no role */
        {2, 9, SKY_HANDSHAKE_REQUEST_BYTES},                                     /* too many tenants */
        {SKY_CREDENTIAL_BYTES + SKY_WORD_BYTES, 0, SKY_HANDSHAKE_REQUEST_BYTES}, /* no suite */
        {SKY_CREDENTIAL_BYTES + SKY_WORD_BYTES, 5, SKY_HANDSHAKE_REQUEST_BYTES},
        {SKY_HANDSHAKE_REQUEST_BYTES - 1u, 1, SKY_HANDSHAKE_REQUEST_BYTES}, /* spare */
        {0, 0, SKY_HANDSHAKE_REQUEST_BYTES - 1u},
        {0, 0, SKY_HANDSHAKE_REQUEST_BYTES + 1u},
        {0, 0, 0},
        {1, 1, SKY_HANDSHAKE_REQUEST_BYTES},   /* a generation that is not there */
        {0, 1, SKY_HANDSHAKE_REQUEST_BYTES},   /* a role that it was not given: the pair key is another one */
        {15, 99, SKY_HANDSHAKE_REQUEST_BYTES}, /* another name */
        {23, 9, SKY_HANDSHAKE_REQUEST_BYTES},  /* another tenant */
    };

    open_satellite(&satellite, 1, 2);
    open_host(&host, SKY_ROLE_HOST, 0, master_0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK(!is_answered_with(cases[i].at, cases[i].value, cases[i].length));
        CHECK_EQ(satellite.security.counters.unauthenticated, i + 1u);
    }
    CHECK_EQ(satellite.security.associations.stats.begun, 0);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    CHECK(is_answered_with(0, 0, SKY_HANDSHAKE_REQUEST_BYTES));
    close_all();
}

static void test_a_handshake_with_a_wrong_tag_is_refused(void)
{
    wire_t there;
    wire_t back;

    open_satellite(&satellite, 1, 2);
    open_host(&host, SKY_ROLE_HOST, 0, master_1); /* from the master key of another satellite */
    CHECK(!associate(&host, &satellite, NOW, 1));
    close_party(&host);

    open_host(&host, SKY_ROLE_HOST, 0, master_0);
    ask(&host, &satellite, NOW, 1, &there);
    there.bytes[there.len - SKY_TAIL_MAX] ^= 1u;
    CHECK(!answer(&satellite, NOW, &there.pkt, &back));
    CHECK_EQ(satellite.security.counters.unauthenticated, 2);
    CHECK_EQ(satellite.security.associations.half_open, 0);
    there.bytes[there.len - SKY_TAIL_MAX] ^= 1u;
    CHECK(answer(&satellite, NOW, &there.pkt, &back));
    close_all();
}

static void test_a_satellite_without_a_key_does_not_associate(void)
{
    wire_t there;
    wire_t back;

    open_peer();
    satellite.generations = 2; /* the table of its keys is not that of generation 0 any more */
    SKY_Session_End(&host.session, &host.rig.crypto);
    host.session.next_us = 0;
    ask(&host, &satellite, NOW, 2, &there);
    CHECK(!answer(&satellite, NOW, &there.pkt, &back));
    CHECK_EQ(satellite.security.counters.unauthenticated, 1);
    satellite.generations = 1;
    CHECK(answer(&satellite, NOW, &there.pkt, &back));
    close_all();
}

static void test_nobody_associates_as_the_satellite_itself(void)
{
    open_peer();
    SKY_Credential_OfSatellite(satellite.addr, 0, &host.credential);
    CHECK(rig_peer_key(&satellite, 1, 2, 0, host.pair));
    SKY_Session_End(&host.session, &host.rig.crypto);
    host.session.next_us = 0;
    CHECK(!associate(&host, &satellite, NOW, 1));
    close_all();
}

static void test_without_a_suite_there_is_no_association(void)
{
    static const uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES];

    open_unkeyed(&satellite, 1, 2);
    SKY_SecurityCfg_t cfg = a_config(&satellite);

    cfg.suites = SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER);
    CHECK(SKY_Security_Init(&satellite.security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory), entropy));
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
    open_host(&host, SKY_ROLE_HOST, 0, master_0);
    CHECK(!associate(&host, &satellite, NOW, 1)); /* it wants tags of whole packets */
    CHECK_EQ(satellite.security.counters.unauthenticated, 1);
    CHECK_EQ(satellite.security.associations.stats.refused, 1);
    close_all();
}

int main(void)
{
    RUN(test_a_cookie_is_that_of_an_endpoint_and_a_time);
    RUN(test_a_host_associates_and_is_served);
    RUN(test_a_malformed_handshake_is_refused);
    RUN(test_a_handshake_with_a_wrong_tag_is_refused);
    RUN(test_a_satellite_without_a_key_does_not_associate);
    RUN(test_nobody_associates_as_the_satellite_itself);
    RUN(test_without_a_suite_there_is_no_association);
    return CHECK_RESULT();
}
