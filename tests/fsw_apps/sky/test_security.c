/**
 * @file
 * Who may ask a satellite for what: tags, sequence numbers, roles, and the master keys behind them.
 */
#include "admission_rig.h"

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
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0)); /* generation 0 is one as any */
    CHECK(satellite.security.is_keyed);
    CHECK_EQ(satellite.security.generation, 0);
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

    keep_master(&satellite.security, 1, master_1);
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
    keep_master(&satellite.security, 1, master_1);
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
