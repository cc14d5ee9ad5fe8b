/**
 * @file
 * What new tables change while links are secured: which sessions and associations end, and which go on.
 */
#include "session_rig.h"

static party_t host;

/* Begin a session to and an association from each of the peers. */
static void open_both_ways(uint32_t count)
{
    open(count);
    for (uint32_t i = 0; i < count; ++i)
    {
        begin(&peers[i], NOW);
        want_session(&peers[i].security, NOW, satellite.addr);
        CHECK(exchange(&peers[i], &satellite, NOW));
    }
}

/* Return true if the satellite's own session with a peer goes on. */
static bool has_session(const party_t *peer)
{
    const SKY_SecuritySession_t *entry = entry_of(peer);

    return entry != NULL && entry->session.state == SKY_SESSION_ESTABLISHED;
}

/* Return true if what a peer asks under its association is acted upon. */
static bool serves(party_t *peer)
{
    SKY_Packet_t pkt = a_request(peer, &satellite, SKY_OP_HELLO);
    SKY_TagKey_t key;
    wire_t       wire;

    return SKY_Security_Prepare(&peer->security, NOW, &pkt, NULL, &key) == 1 && carry(&pkt, &key, &wire) &&
           admit(&satellite, NOW, &wire) == SKY_ADMIT_OK;
}

static bool serves_host(void)
{
    SKY_Packet_t pkt = a_request(&host, &satellite, SKY_OP_GET);
    wire_t       wire;

    send(&host, &pkt, &wire);
    return admit(&satellite, NOW, &wire) == SKY_ADMIT_OK;
}

static void open_host_of(uint8_t generation, const uint8_t *master)
{
    open_host(&host, SKY_ROLE_HOST, generation, master);
    CHECK(associate(&host, &satellite, NOW, 1));
}

static SKY_MasterKey_t master_of(uint8_t generation, const uint8_t *key)
{
    SKY_MasterKey_t master = {true, generation, {0}};

    (void)memcpy(master.key, key, SKY_CRYPTO_KEY_BYTES);
    return master;
}

static void take_masters(SKY_MasterKey_t older, SKY_MasterKey_t newer)
{
    const SKY_MasterKey_t masters[SKY_MASTER_KEYS] = {older, newer};

    SKY_Security_TakeMasters(&satellite.security, masters);
}

static const SKY_MasterKey_t none;

/* ---- master keys ---- */

static void test_the_same_keys_again_end_nothing(void)
{
    open_both_ways(1);
    open_host_of(0, master_0);
    take_masters(none, master_of(0, master_0));
    take_masters(master_of(0, master_0), none);
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    close_party(&host);
    close_all(1);
}

/* The one that stays is the newest: it was asked with before, and is afterwards. */
static void test_an_older_key_beside_it_ends_nothing(void)
{
    open_both_ways(1);
    open_host_of(0, master_0);
    take_masters(master_of(1, master_1), master_of(0, master_0));
    CHECK_EQ(satellite.security.generation, 0);
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    take_masters(master_of(1, master_1), master_of(0, master_0));
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    close_party(&host);
    close_all(1);
}

static void test_a_newer_key_beside_it_ends_nothing(void)
{
    open_both_ways(1);
    open_host_of(0, master_0);
    take_masters(master_of(0, master_0), master_of(1, master_1));
    CHECK_EQ(satellite.security.generation, 1);
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    SKY_Security_EndSessions(&satellite.security);
    begin(&peers[0], NOW);
    CHECK_EQ(entry_of(&peers[0])->generation, 1); /* it asks with the newer one from now on */
    take_masters(master_of(0, master_0), master_of(1, master_1));
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    take_masters(none, master_of(1, master_1)); /* the older one goes */
    CHECK(has_session(&peers[0]));
    CHECK(!serves(&peers[0]) && !serves_host());
    close_party(&host);
    close_all(1);
}

static void test_a_key_that_changes_ends_the_hosts_of_its_generation(void)
{
    open_both_ways(1);
    open_host_of(0, master_0);
    take_masters(none, master_of(0, master_1));
    CHECK(has_session(&peers[0]) && serves(&peers[0])); /* those keys do not follow from it */
    CHECK(!serves_host());
    close_party(&host);
    open_host_of(0, master_1);
    CHECK(serves_host());
    close_party(&host);
    close_all(1);
}

static void test_two_keys_may_be_replaced_at_once(void)
{
    open_both_ways(1);
    open_host_of(0, master_0);
    take_masters(master_of(1, master_1), master_of(2, master_2));
    CHECK_EQ(satellite.security.generation, 2);
    CHECK(!has_session(&peers[0]) && !serves(&peers[0]) && !serves_host());
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    CHECK(SKY_Associations_HasMaster(&satellite.security.associations, 1));
    CHECK(!SKY_Associations_HasMaster(&satellite.security.associations, 0));
    close_party(&host);
    close_all(1);
}

static void test_without_a_key_in_the_table_nothing_changes(void)
{
    open_both_ways(1);
    take_masters(none, none);
    CHECK(satellite.security.is_keyed && has_session(&peers[0]) && serves(&peers[0]));
    close_all(1);
    open_unkeyed(&satellite, 1, 1);
    take_masters(none, none);
    CHECK(!satellite.security.is_keyed);
    take_masters(master_of(0, master_0), none); /* generation 0 is one as any */
    CHECK(satellite.security.is_keyed);
    close_party(&satellite);
}

/* A command that sets a key may come twice, or late. */
static void test_setting_a_known_key_is_no_step_back(void)
{
    open(1);
    CHECK(SKY_Security_SetMaster(&satellite.security, 1, master_1));
    begin(&peers[0], NOW);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
    CHECK_EQ(satellite.security.generation, 1);
    CHECK(has_session(&peers[0]));
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_2)); /* not even with another key */
    CHECK_EQ(satellite.security.generation, 1);
    CHECK(has_session(&peers[0]));
    CHECK(SKY_Associations_HasMaster(&satellite.security.associations, 0));
    close_all(1);
}

/* ---- keys between satellites ---- */

static void test_who_has_another_key_begins_again(void)
{
    open_both_ways(2);
    open_host_of(0, master_0);
    SKY_Security_CheckPeers(&satellite.security); /* the same keys again */
    CHECK(has_session(&peers[0]) && serves(&peers[0]));
    CHECK(has_session(&peers[1]) && serves(&peers[1]) && serves_host());
    satellite.renewed = peers[1].addr;
    SKY_Security_CheckPeers(&satellite.security);
    CHECK(!has_session(&peers[1]) && !serves(&peers[1]));
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    close_party(&host);
    close_all(2);
}

/* A session goes on under the older of two keys. It ends with that key, not with the newest. */
static void test_a_session_ends_with_the_key_under_which_it_began(void)
{
    open_both_ways(2);
    CHECK(SKY_Security_SetMaster(&satellite.security, 1, master_1));
    SKY_Security_EndSessions(&satellite.security);
    begin(&peers[1], NOW); /* under the newest */
    CHECK_EQ(entry_of(&peers[1])->generation, 1);
    satellite.generations = 2;
    SKY_Security_CheckPeers(&satellite.security);
    CHECK(has_session(&peers[1]));
    CHECK(!serves(&peers[0]) && !serves(&peers[1])); /* they have associated under the older one */
    satellite.generations = 1;
    SKY_Security_CheckPeers(&satellite.security);
    CHECK(!has_session(&peers[1]));
    close_all(2);
}

/* Keys whose master key is gone are valid until there are newer ones. So is what began under them. */
static void test_keys_of_before_end_when_newer_ones_come(void)
{
    open_both_ways(2);
    satellite.generations = 1;
    take_masters(none, master_of(1, master_1));
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && has_session(&peers[1]) && serves(&peers[1]));
    SKY_Security_CheckPeers(&satellite.security); /* a table that changes nothing */
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && has_session(&peers[1]) && serves(&peers[1]));
    satellite.generations = 3; /* the newer ones come beside those of before */
    SKY_Security_CheckPeers(&satellite.security);
    CHECK(!has_session(&peers[0]) && !serves(&peers[0]) && !has_session(&peers[1]) && !serves(&peers[1]));
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    SKY_Security_EndSessions(&peers[0].security);
    want_session(&peers[0].security, NOW, satellite.addr);
    SKY_SecurityAsk_t out;
    wire_t            there;
    wire_t            back;

    CHECK(SKY_Security_NextAsk(&peers[0].security, NOW, &out));
    CHECK(carry(&out.pkt, &out.key, &there));
    CHECK(!answer(&satellite, NOW, &there.pkt, &back)); /* it would not begin so now */
    close_all(2);
}

/* Nor does it matter whether the newer keys come first, and their master key later. */
static void test_keys_of_before_end_with_a_newer_master_key(void)
{
    open_both_ways(1);
    satellite.generations = 5; /* 0 and 2 */
    take_masters(none, master_of(1, master_1));
    CHECK(has_session(&peers[0]) && serves(&peers[0]));
    take_masters(master_of(2, master_2), master_of(1, master_1));
    CHECK(!has_session(&peers[0]) && !serves(&peers[0]));
    close_all(1);
}

/* ---- the own place ---- */

static void test_who_moves_begins_again_with_all(void)
{
    SKY_SecurityAsk_t      out;
    SKY_HandshakeRequest_t request;

    open_both_ways(1);
    open_host_of(0, master_0);
    SKY_Security_Move(&satellite.security, (SKY_Addr_t){4, 5});
    CHECK(!has_session(&peers[0]) && !serves(&peers[0]) && !serves_host());
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    CHECK(satellite.security.is_keyed);

    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(SKY_Addr_Equal(out.pkt.src, (SKY_Addr_t){4, 5}));
    CHECK(SKY_Handshake_DecodeRequest(out.payload, out.pkt.length, &request));
    CHECK(SKY_Addr_Equal(SKY_Credential_Satellite(&request.credential), (SKY_Addr_t){4, 5}));
    close_party(&host);
    close_all(1);
}

/* ---- suites ---- */

static void test_a_suite_that_stays_goes_on(void)
{
    open_both_ways(1);
    open_host_of(0, master_0); /* with BLAKE2b of whole packets */
    SKY_Security_SetSuites(&satellite.security, SKY_SUITES_BLAKE2B, SKY_SUITE_BLAKE2B_HEADER);
    CHECK(has_session(&peers[0]) && serves(&peers[0]) && serves_host());
    SKY_Security_SetSuites(&satellite.security, SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER), SKY_SUITE_BLAKE2B_HEADER);
    CHECK(has_session(&peers[0]) && serves(&peers[0]));
    CHECK(!serves_host());
    CHECK(!associate(&host, &satellite, NOW, 2));
    SKY_Security_SetSuites(&satellite.security, SKY_SUITES_BLAKE2B, SKY_SUITE_BLAKE2B_HEADER);
    CHECK(associate(&host, &satellite, NOW, 3));
    close_party(&host);
    close_all(1);
}

static void test_another_suite_is_asked_for_anew(void)
{
    wire_t there;

    open_both_ways(1);
    SKY_Security_SetSuites(&satellite.security, SKY_SUITES_BLAKE2B, SKY_SUITE_BLAKE2B_PACKET);
    CHECK(!has_session(&peers[0]));
    CHECK(serves(&peers[0])); /* who asked for another one keeps it */
    begin(&peers[0], NOW);
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK_EQ(there.pkt.security, SKY_SUITE_BLAKE2B_PACKET);
    close_all(1);
}

/* Whoever was asked for GMAC has granted BLAKE2b, which is not taken any more. */
static void test_a_suite_that_was_granted_instead_may_go(void)
{
    open(1);
    SKY_Security_SetSuites(&satellite.security, UINT32_MAX, SKY_SUITE_GMAC_HEADER);
    SKY_Security_SetSuites(&peers[0].security, SKY_SUITES_BLAKE2B, SKY_SUITE_BLAKE2B_HEADER);
    begin(&peers[0], NOW);
    CHECK_EQ(entry_of(&peers[0])->session.suite, SKY_SUITE_BLAKE2B_HEADER);
    SKY_Security_SetSuites(&satellite.security, UINT32_MAX, SKY_SUITE_GMAC_HEADER);
    CHECK(has_session(&peers[0]));
    SKY_Security_SetSuites(&satellite.security, SKY_SUITES_GMAC, SKY_SUITE_GMAC_HEADER);
    CHECK_EQ(has_session(&peers[0]),
             (satellite.rig.crypto.suites & SKY_SUITES_GMAC) == 0); /* without GMAC it asks for BLAKE2b itself */
    close_all(1);
}

int main(void)
{
    RUN(test_the_same_keys_again_end_nothing);
    RUN(test_an_older_key_beside_it_ends_nothing);
    RUN(test_a_newer_key_beside_it_ends_nothing);
    RUN(test_a_key_that_changes_ends_the_hosts_of_its_generation);
    RUN(test_two_keys_may_be_replaced_at_once);
    RUN(test_without_a_key_in_the_table_nothing_changes);
    RUN(test_setting_a_known_key_is_no_step_back);
    RUN(test_who_has_another_key_begins_again);
    RUN(test_a_session_ends_with_the_key_under_which_it_began);
    RUN(test_keys_of_before_end_when_newer_ones_come);
    RUN(test_keys_of_before_end_with_a_newer_master_key);
    RUN(test_who_moves_begins_again_with_all);
    RUN(test_a_suite_that_stays_goes_on);
    RUN(test_another_suite_is_asked_for_anew);
    RUN(test_a_suite_that_was_granted_instead_may_go);
    return CHECK_RESULT();
}
