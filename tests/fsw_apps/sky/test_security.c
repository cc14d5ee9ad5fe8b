/**
 * @file
 * Who may ask a satellite for what: associations, tags, sequence numbers, roles, master keys and cookies.
 */
#include "security_rig.h"

#define NOW UINT64_C(5000000)

static party_t satellite, host, other;

static const uint64_t *counter_of(const SKY_SecurityCounters_t *counters, SKY_Admission_t result)
{
    static const uint64_t zero = 0;

    return result == SKY_ADMIT_UNAUTHENTICATED ? &counters->unauthenticated
           : result == SKY_ADMIT_REFUSED       ? &counters->refused
           : result == SKY_ADMIT_DROP          ? &counters->replayed
                                               : &zero;
}

/* Let a packet in that is on the wire, and check that what happens is counted. */
static SKY_Admission_t arrive(const wire_t *wire)
{
    const SKY_SecurityCounters_t before = satellite.security.counters;
    const SKY_Admission_t        result = admit(&satellite, NOW, wire);
    const SKY_SecurityCounters_t after  = satellite.security.counters;

    CHECK_EQ(*counter_of(&after, result), *counter_of(&before, result) + (result == SKY_ADMIT_OK ? 0u : 1u));
    CHECK_EQ(after.unauthenticated + after.refused + after.replayed,
             before.unauthenticated + before.refused + before.replayed + (result == SKY_ADMIT_OK ? 0u : 1u));
    CHECK_EQ(after.unauthenticated, after.no_association + after.wrong_tag + after.handshakes);
    CHECK_EQ(after.refused, after.wrong_role + after.wrong_tenant);
    return result;
}

/* Let a host ask for something under its session. */
static SKY_Admission_t ask_as(party_t *who, SKY_Packet_t pkt)
{
    wire_t wire;

    send(who, &pkt, &wire);
    return arrive(&wire);
}

static SKY_Admission_t ask_for(SKY_Packet_t pkt)
{
    return ask_as(&host, pkt);
}

static void open(SKY_Role_t role)
{
    open_satellite(&satellite, 1, 2);
    open_host(&host, role, 0, master_0);
    CHECK(associate(&host, &satellite, NOW, 1));
}

static void close_all(void)
{
    close_party(&satellite);
    close_party(&host);
}

/* Let another satellite associate, by its own means. */
static void open_peer(void)
{
    open_satellite(&satellite, 1, 2);
    (void)memset(&host, 0, sizeof(host));
    crypto_rig_open(&host.rig);
    host.addr        = (SKY_Addr_t){1, 3};
    host.generations = 3;
    SKY_Credential_OfSatellite(host.addr, 0, &host.credential);
    CHECK(rig_peer_key(&host, 1, 2, 0, host.pair));
    SKY_Session_Init(&host.session, SKY_SUITE_BLAKE2B_HEADER, UINT32_MAX, HOST_PLACE, HOST_PLACE + 1u);
    CHECK(associate(&host, &satellite, NOW, 1));
}

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

/* ---- requests ---- */

static void test_a_request_needs_spi_suite_and_tag(void)
{
    static const uint8_t key_bytes[SKY_CRYPTO_KEY_BYTES] = {9};
    SKY_TagKey_t         key;
    wire_t               wire;
    SKY_Packet_t         pkt;

    open(SKY_ROLE_HOST);
    key = (SKY_TagKey_t){&host.rig.crypto, host.session.place_there, NULL, NULL};
    pkt = a_request(&host, &satellite, SKY_OP_GET);
    CHECK(carry(&pkt, NULL, &wire)); /* no tag at all */
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    pkt.spi = host.session.spi;
    CHECK(carry(&pkt, NULL, &wire)); /* no tag, but an association */
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    send(&host, &pkt, &wire);
    pkt.spi += 1u; /* an SPI of nobody */
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    pkt.spi      = host.session.spi;
    pkt.security = SKY_SUITE_BLAKE2B_HEADER; /* another suite than granted, with the tag that it would have */
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    pkt.security = host.session.suite;
    key.place    = host.session.place_back; /* what this satellite has sent comes back */
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK(host.rig.crypto.LoadKey(host.rig.crypto.context, 60, host.session.suite, key_bytes));
    key.place = 60; /* a key of somebody else */
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK_EQ(satellite.security.associations.half_open, 1); /* nothing of this has used the association */
    key.place = host.session.place_there;
    CHECK(carry(&pkt, &key, &wire)); /* nor its sequence number */
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    close_all();
}

/* The SPI of one host is of no use to another, nor is its sequence number taken by it. */
static void test_an_association_is_that_of_one_host(void)
{
    wire_t       wire;
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    open_host(&other, SKY_ROLE_MISSION, 0, master_0);
    CHECK(associate(&other, &satellite, NOW, 1)); /* the same word */
    CHECK(other.session.spi != host.session.spi);
    const SKY_TagKey_t key = {&other.rig.crypto, other.session.place_there, NULL, NULL};

    pkt = a_request(&host, &satellite, SKY_OP_GET);
    send(&host, &pkt, &wire);
    pkt.sequence = 100;
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_OK);
    close_all();
    close_party(&other);
}

static void test_a_request_is_acted_upon_once(void)
{
    wire_t       first;
    wire_t       wire;
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    pkt = a_request(&host, &satellite, SKY_OP_PUT);
    send(&host, &pkt, &first);
    for (unsigned i = 0; i < 20; ++i)
    {
        pkt = a_request(&host, &satellite, SKY_OP_PUT);
        send(&host, &pkt, &wire);
        CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
        CHECK_EQ(arrive(&wire), SKY_ADMIT_DROP);
    }
    CHECK_EQ(arrive(&first), SKY_ADMIT_OK); /* it was overtaken */
    CHECK_EQ(arrive(&first), SKY_ADMIT_DROP);
    CHECK_EQ(satellite.security.counters.replayed, 21);
    close_all();
}

static void test_a_request_may_be_too_old(void)
{
    wire_t       oldest;
    wire_t       old;
    wire_t       wire;
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    pkt = a_request(&host, &satellite, SKY_OP_PUT);
    send(&host, &pkt, &oldest);
    send(&host, &pkt, &old);
    host.session.sequence = SKY_REPLAY_WINDOW; /* the packets between were lost */
    send(&host, &pkt, &wire);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&oldest), SKY_ADMIT_DROP);
    CHECK_EQ(arrive(&old), SKY_ADMIT_OK); /* just not too old */
    close_all();
}

static void test_a_number_of_zero_is_not_new(void)
{
    wire_t       wire;
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    const SKY_TagKey_t key = {&host.rig.crypto, host.session.place_there, NULL, NULL};

    pkt          = a_request(&host, &satellite, SKY_OP_PUT);
    pkt.spi      = host.session.spi;
    pkt.security = host.session.suite;
    pkt.sequence = 0;
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_DROP);
    pkt.sequence = UINT64_MAX;
    CHECK(carry(&pkt, &key, &wire));
    CHECK_EQ(arrive(&wire), SKY_ADMIT_DROP);
    close_all();
}

static void test_a_command_is_the_newest(void)
{
    wire_t       late;
    wire_t       wire;
    wire_t       all;
    SKY_Packet_t pkt;

    open(SKY_ROLE_MISSION);
    pkt        = a_request(&host, &satellite, SKY_OP_MIGRATE);
    pkt.key[0] = 0; /* of a whole tenant */
    send(&host, &pkt, &all);
    pkt = a_request(&host, &satellite, SKY_OP_RELAY);
    send(&host, &pkt, &late);
    send(&host, &pkt, &wire);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_DROP);
    CHECK_EQ(arrive(&late), SKY_ADMIT_DROP); /* it came too late to be obeyed */
    CHECK_EQ(arrive(&all), SKY_ADMIT_DROP);
    pkt = a_request(&host, &satellite, SKY_OP_GET);
    send(&host, &pkt, &wire); /* what is no command may come in any order */
    pkt = a_request(&host, &satellite, SKY_OP_RELAY);
    send(&host, &pkt, &late);
    CHECK_EQ(arrive(&late), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    pkt = a_request(&host, &satellite, SKY_OP_GET);
    send(&host, &pkt, &wire);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&late), SKY_ADMIT_DROP);
    pkt.op     = SKY_OP_MIGRATE;
    pkt.key[0] = 0;
    send(&host, &pkt, &all);
    pkt.op = SKY_OP_RELAY;
    send(&host, &pkt, &late);
    pkt.op     = SKY_OP_MIGRATE;
    pkt.key[0] = 1; /* of one block, which is none */
    send(&host, &pkt, &wire);
    CHECK_EQ(arrive(&wire), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&all), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&late), SKY_ADMIT_OK);
    CHECK_EQ(arrive(&all), SKY_ADMIT_DROP);
    close_all();
}

/* ---- roles ---- */

#define ALL_BLOCKS   1u
#define OTHER_TENANT 2u
#define GOSSIP       4u
#define AS_SATELLITE 8u /* the packet says that a satellite sent it */

/* What is refused to whom: a bit for each role. */
static void test_each_role_has_its_rights(void)
{
    static const struct
    {
        uint8_t  op;
        unsigned how;
        unsigned refused;
    } cases[] = {
        {SKY_OP_PUT, 0, 0},
        {SKY_OP_GET, 0, 0},
        {SKY_OP_HAS, 0, 0},
        {SKY_OP_PURGE, 0, 0},
        {SKY_OP_MIGRATE, 0, 0},
        {SKY_OP_PING, 0, 0},
        {SKY_OP_STATS, 0, 0},
        {SKY_OP_PUT, OTHER_TENANT, 1},
        {SKY_OP_GET, OTHER_TENANT, 1},
        {SKY_OP_HAS, OTHER_TENANT, 1},
        {SKY_OP_PURGE, OTHER_TENANT, 1},
        {SKY_OP_MIGRATE, OTHER_TENANT, 1},
        {SKY_OP_PING, OTHER_TENANT, 0},
        {SKY_OP_STATS, OTHER_TENANT, 0},
        {SKY_OP_ASSOCIATE, 0, 0},
        {SKY_OP_MIGRATE, ALL_BLOCKS, 5}, /* a captured satellite empties no others */
        {SKY_OP_MIGRATE, ALL_BLOCKS | OTHER_TENANT, 5},
        {SKY_OP_GET, ALL_BLOCKS, 0}, /* the block with that key */
        {SKY_OP_RELAY, 0, 5},
        {SKY_OP_HELLO, 0, 3},
        {SKY_OP_HELLO, GOSSIP, 3},
        {SKY_OP_PURGE, GOSSIP, 3},
        {SKY_OP_PUT, AS_SATELLITE, 3},
        {SKY_OP_RELAY, AS_SATELLITE, 7},
    };

    for (unsigned role = SKY_ROLE_HOST; role <= SKY_ROLE_SATELLITE; ++role)
    {
        if (role == SKY_ROLE_SATELLITE)
        {
            open_peer();
        }
        else
        {
            open((SKY_Role_t)role);
        }
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        {
            SKY_Packet_t pkt = a_request(&host, &satellite, cases[i].op);

            pkt.key[0] = (cases[i].how & ALL_BLOCKS) != 0u ? 0 : 1;
            pkt.tenant = (cases[i].how & OTHER_TENANT) != 0u ? 9u : 8u;
            pkt.flags  = (cases[i].how & GOSSIP) != 0u ? SKY_FLAG_GOSSIP : 0;
            if ((cases[i].how & AS_SATELLITE) != 0u)
            {
                pkt.src = (SKY_Addr_t){1, 3};
            }
            const SKY_Admission_t expected = (cases[i].refused & (1u << role)) != 0u ? SKY_ADMIT_REFUSED : SKY_ADMIT_OK;
            const SKY_Admission_t result   = ask_for(pkt);

            if (result != expected)
            {
                (void)printf("role %u, case %zu\n", role, i);
            }
            CHECK_EQ(result, expected);
        }
        close_all();
    }
}

static void test_a_satellite_speaks_for_itself_alone(void)
{
    SKY_Packet_t pkt;

    open_peer();
    pkt     = a_request(&host, &satellite, SKY_OP_PUT);
    pkt.src = (SKY_Addr_t){1, 4};
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_REFUSED);
    pkt.src = (SKY_Addr_t){2, 3};
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_REFUSED);
    pkt.src = (SKY_Addr_t){0, 3}; /* nor for a host */
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_REFUSED);
    pkt.src = host.addr;
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_OK);
    close_all();
}

/* The key of a tenant's data is checked where there is one: a counter of isl has none, whatever the field says. */
static void test_numbers_of_operations_are_those_of_the_cache(void)
{
    SKY_Packet_t pkt;

    open(SKY_ROLE_HOST);
    pkt        = a_request(&host, &satellite, SKY_OP_GET);
    pkt.apid   = SKY_APID_ISL;
    pkt.tenant = 9;
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_OK); /* isl knows no such operation and says so */
    pkt        = a_request(&host, &satellite, SKY_OP_STATS);
    pkt.apid   = SKY_APID_KVC;
    pkt.tenant = 9;
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_OK); /* counters are those of all */
    pkt                         = a_request(&host, &satellite, SKY_OP_MIGRATE);
    pkt.key[0]                  = 0; /* a block whose key is almost that of all */
    pkt.key[SKY_KEY_BYTES - 1u] = 1;
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_OK);
    close_all();
}

/* ---- counters ---- */

static void test_each_reason_is_counted(void)
{
    const SKY_SecurityCounters_t *counters = &satellite.security.counters;
    SKY_Packet_t                  pkt;
    wire_t                        wire;

    open(SKY_ROLE_HOST);
    pkt = a_request(&host, &satellite, SKY_OP_GET);
    send(&host, &pkt, &wire);
    wire.pkt.spi += 1u;
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK(counters->no_association == 1u && counters->wrong_tag == 0u);
    wire.pkt.spi -= 1u;
    wire.pkt.sequence += 1u;
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK_EQ(counters->wrong_tag, 1);
    wire.pkt.sequence -= 1u;
    wire.pkt.security = SKY_SUITE_NONE;
    CHECK_EQ(arrive(&wire), SKY_ADMIT_UNAUTHENTICATED);
    CHECK_EQ(counters->wrong_tag, 2);
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_RELAY)), SKY_ADMIT_REFUSED);
    CHECK(counters->wrong_role == 1u && counters->wrong_tenant == 0u);
    pkt        = a_request(&host, &satellite, SKY_OP_GET);
    pkt.tenant = 9;
    CHECK_EQ(ask_for(pkt), SKY_ADMIT_REFUSED);
    CHECK(counters->wrong_role == 1u && counters->wrong_tenant == 1u);
    open_host(&other, SKY_ROLE_HOST, 3, master_1);
    CHECK(!associate(&other, &satellite, NOW, 2));
    CHECK_EQ(counters->handshakes, 1);
    CHECK_EQ(satellite.security.associations.stats.begun, 1);
    SKY_Security_ResetCounters(&satellite.security);
    CHECK(counters->unauthenticated == 0u && counters->wrong_tag == 0u && counters->wrong_tenant == 0u);
    CHECK_EQ(satellite.security.associations.stats.begun, 0);
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_OK); /* nothing but counters */
    close_party(&other);
    close_all();
}

/* ---- master keys ---- */

static void test_the_first_master_key_makes_it_keyed(void)
{
    open_unkeyed(&satellite, 1, 2);
    CHECK(!satellite.security.is_keyed);
    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 0));
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0)); /* generation 0 is one as any */
    CHECK(satellite.security.is_keyed);
    CHECK_EQ(satellite.security.generation, 0);
    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 0)); /* else anybody would be served */
    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 1));
    CHECK(satellite.security.is_keyed);
    close_party(&satellite);
}

static void test_two_generations_are_valid_at_once(void)
{
    open(SKY_ROLE_HOST);
    open_host(&other, SKY_ROLE_HOST, 1, master_1);
    CHECK(!associate(&other, &satellite, NOW, 2));
    CHECK(SKY_Security_SetMaster(&satellite.security, 1, master_1));
    CHECK(!SKY_Security_SetMaster(&satellite.security, 2, master_2)); /* there is no room for a third */
    CHECK_EQ(satellite.security.generation, 1);
    CHECK(associate(&other, &satellite, NOW, 2));
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_OK);

    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 1)); /* the newest stays */
    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 2));
    CHECK(SKY_Security_ForgetMaster(&satellite.security, 0));
    CHECK(!SKY_Security_ForgetMaster(&satellite.security, 0));
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_UNAUTHENTICATED);
    CHECK(!associate(&host, &satellite, NOW, 3));
    CHECK_EQ(ask_as(&other, a_request(&other, &satellite, SKY_OP_GET)), SKY_ADMIT_OK); /* the newer one goes on */
    CHECK(SKY_Security_SetMaster(&satellite.security, 2, master_2));
    close_all();
    close_party(&other);
}

static void test_peers_of_a_forgotten_generation_end(void)
{
    open_peer();
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_HELLO)), SKY_ADMIT_OK);
    CHECK(SKY_Security_SetMaster(&satellite.security, 1, master_1));
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_HELLO)), SKY_ADMIT_OK); /* those of before are served meanwhile */
    CHECK(SKY_Security_ForgetMaster(&satellite.security, 0));
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_HELLO)), SKY_ADMIT_UNAUTHENTICATED);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    close_all();
}

static void test_a_master_key_that_is_changed_ends_its_hosts(void)
{
    open(SKY_ROLE_HOST);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0)); /* the same again */
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_OK);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_2));
    CHECK_EQ(ask_for(a_request(&host, &satellite, SKY_OP_GET)), SKY_ADMIT_UNAUTHENTICATED);
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
    RUN(test_a_request_needs_spi_suite_and_tag);
    RUN(test_an_association_is_that_of_one_host);
    RUN(test_a_request_is_acted_upon_once);
    RUN(test_a_request_may_be_too_old);
    RUN(test_a_number_of_zero_is_not_new);
    RUN(test_a_command_is_the_newest);
    RUN(test_each_role_has_its_rights);
    RUN(test_a_satellite_speaks_for_itself_alone);
    RUN(test_numbers_of_operations_are_those_of_the_cache);
    RUN(test_each_reason_is_counted);
    RUN(test_the_first_master_key_makes_it_keyed);
    RUN(test_two_generations_are_valid_at_once);
    RUN(test_peers_of_a_forgotten_generation_end);
    RUN(test_a_master_key_that_is_changed_ends_its_hosts);
    return CHECK_RESULT();
}
