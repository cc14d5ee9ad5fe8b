/**
 * @file
 * ISL as an app: keys that come by the tables ISL.Keys and ISL.Peers1, and who is served then.
 */
#include "app_rig.h"
#include "isl_eventids.h"
#include "sky/party_rig.h"
#include "sky/rekey_rig.h"

#define TENANT         7u
#define LAST_OF_TENANT 19u /* byte of a credential: its first tenant */

#define WEST_INDEX 3u /* (2, 1) of 3 x 3 */
#define EAST_INDEX 5u /* (2, 3) */

static rig_t        rig;
static crypto_rig_t theirs;
static uint32_t     parties; /* so far */

/* Master keys, by generation. */
static const uint8_t masters[][SKY_CRYPTO_KEY_BYTES] = {{10}, {11}, {12}, {13}};

static void set_master(ISL_KeysTable_t *table, uint32_t place, uint8_t generation)
{
    table->Master[place].IsSet      = 1;
    table->Master[place].Generation = generation;
    (void)memcpy(table->Master[place].Key, masters[generation], SKY_CRYPTO_KEY_BYTES);
}

/* Load ISL.Keys with these generations, the newest last; -1: none. @param suites  mask, 0: all */
static void load_keys_and_suites(int older, int newest, uint32_t suites)
{
    ISL_KeysTable_t table;

    (void)memset(&table, 0, sizeof(table));
    table.Suites = (uint8_t)suites;
    if (older >= 0)
    {
        set_master(&table, 0, (uint8_t)older);
    }
    set_master(&table, 1, (uint8_t)newest);
    rig_table_load("ISL.Keys", &table, sizeof(table));
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "links are secured");
}

static void load_keys(int older, int newest)
{
    load_keys_and_suites(older, newest, 0);
}

/* A host. @param tenants  1: it may name tenant TENANT alone */
static void open_host_of(party_t *party, uint8_t generation, uint8_t tenants)
{
    uint8_t bytes[SKY_CREDENTIAL_BYTES] = {SKY_ROLE_HOST, generation, tenants};

    bytes[LAST_OF_TENANT] = tenants == 1u ? TENANT : 0u;
    party_open(party, &theirs.crypto, parties++, (SKY_Addr_t){0, RIG_HOST}, 1);
    CHECK(SKY_Credential_Decode(bytes, &party->credential));
    SKY_Keys_Pair(party->crypto, masters[generation], &party->credential, party->pair);
}

static void open_host(party_t *party, uint8_t generation)
{
    open_host_of(party, generation, SKY_CREDENTIAL_ANY_TENANT);
}

/* Send a datagram, and wait for what comes back. */
static SKY_Packet_t exchange(int fd, const uint8_t *wire, uint32_t len)
{
    SKY_Packet_t pkt;

    rig_send_bytes(&rig, fd, wire, len);
    CHECK(rig_receive(&rig, fd, RIG_LIMIT_MS, &pkt));
    return pkt;
}

/* Associate, for the first time or anew. @return true if the answer was right */
static bool associate(party_t *party, int fd)
{
    static uint64_t now_us;
    uint8_t         wire[PARTY_WIRE];
    SKY_Packet_t    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_ASSOCIATE);
    uint32_t        len;

    if (party->session.state == SKY_SESSION_ESTABLISHED)
    {
        SKY_Session_End(&party->session, party->crypto);
    }
    len = party_handshake(party, &pkt, now_us += 1000000u, wire);
    pkt = exchange(fd, wire, len);
    CHECK(pkt.status == SKY_STATUS_OK || pkt.status == SKY_STATUS_UNAUTHENTICATED);
    return party_take(party, &pkt);
}

/* Ask under the association. @return the status of the answer */
static SKY_Status_t ping(party_t *party, int fd)
{
    uint8_t        wire[PARTY_WIRE];
    SKY_Packet_t   pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    const uint32_t len = party_request(party, &pkt, wire);

    pkt = exchange(fd, wire, len);
    CHECK(pkt.status == SKY_STATUS_UNAUTHENTICATED || party_trusts(party, &pkt));
    return pkt.status;
}

static void test_wrong_tables_are_refused(void)
{
    static ISL_PeersTable_t peers;
    ISL_KeysTable_t         keys;

    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "links are not secured: there is no master key");
    for (uint32_t i = 0; i < 4u; ++i)
    {
        static const char *const texts[] = {"ISL.Keys: Suites is 1, allowed a sum of 2, 4, 8, 16",
                                            "PeerSuite is 5, allowed 0 .. 4", "IsSet is 2, allowed 0, 1",
                                            "Generation is 3, allowed another"};

        (void)memset(&keys, 0, sizeof(keys));
        set_master(&keys, 0, 3);
        set_master(&keys, 1, i == 3u ? 3 : 2);
        keys.Suites          = i == 0u ? 1 : 0;
        keys.PeerSuite       = i == 1u ? 5 : 0;
        keys.Master[1].IsSet = i == 2u ? 2 : 1;
        rig_table_load("ISL.Keys", &keys, sizeof(keys));
        RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, texts[i]);
    }
    peers.Count = ISL_PEERS_OF_PAGE + 1u;
    rig_table_load("ISL.Peers1", &peers, sizeof(peers));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "ISL.Peers: Count is 501, allowed 0 .. 500");
    CHECK_EQ(rig_isl_stat(&rig, SKY_STATS_ISL_SECURED), 0);
}

static void test_a_keyed_satellite_serves_who_has_a_key(void)
{
    static ISL_PeersTable_t peers;
    const SKY_Packet_t      plain = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t            answer;
    party_t                 host, east, other;

    CHECK_EQ(rig_ask(&rig, &plain, &answer), SKY_STATUS_OK);
    party_satellite(&east, &theirs.crypto, parties++, rig_neighbour[SKY_LINK_EAST], rig_self, 1);
    peers.First = EAST_INDEX;
    peers.Count = 1;
    (void)memcpy(peers.Peer[0].Key, east.pair, SKY_CRYPTO_KEY_BYTES);
    rig_table_load("ISL.Peers1", &peers, sizeof(peers));
    load_keys(-1, 0);

    CHECK_EQ(rig_ask(&rig, &plain, &answer), SKY_STATUS_UNAUTHENTICATED);
    open_host(&host, 0);
    CHECK(associate(&host, rig.ground));
    CHECK(host.cookie != SKY_COOKIE_NONE);
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
    CHECK(associate(&east, rig.neighbour[SKY_LINK_EAST]));
    CHECK_EQ(ping(&east, rig.neighbour[SKY_LINK_EAST]), SKY_STATUS_OK);
    party_satellite(&other, &theirs.crypto, parties++, rig_neighbour[SKY_LINK_WEST], rig_self, 1);
    CHECK(!associate(&other, rig.neighbour[SKY_LINK_WEST])); /* the table has no key of it */
    other.credential.bytes[7] = 9;                           /* nor is there such a satellite */
    CHECK(!associate(&other, rig.neighbour[SKY_LINK_WEST]));
}

static void test_generations_of_keys_follow_each_other(void)
{
    party_t old, young;

    open_host(&old, 0);
    CHECK(associate(&old, rig.ground));
    CHECK_EQ(ping(&old, rig.ground), SKY_STATUS_OK);
    open_host(&young, 1);
    CHECK(!associate(&young, rig.ground));

    load_keys(0, 1); /* both are valid */
    CHECK_EQ(ping(&old, rig.ground), SKY_STATUS_OK);
    CHECK(associate(&young, rig.ground));
    CHECK_EQ(ping(&young, rig.ground), SKY_STATUS_OK);
    load_keys(-1, 1);
    CHECK_EQ(ping(&old, rig.ground), SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(ping(&young, rig.ground), SKY_STATUS_OK);

    load_keys(2, 3); /* two new ones at once, in place of the one in use */
    CHECK_EQ(ping(&young, rig.ground), SKY_STATUS_UNAUTHENTICATED);
    for (uint8_t generation = 0; generation < 4u; ++generation)
    {
        open_host(&old, generation);
        CHECK(associate(&old, rig.ground) == (generation >= 2u));
    }
}

/* Load ISL.Peers1 with keys of generation 3 of the neighbours in the east and the west, and wait until it was taken over. */
static void load_neighbours_keys(const party_t *east, const party_t *west)
{
    static ISL_PeersTable_t peers;

    (void)memset(&peers, 0, sizeof(peers));
    peers.Generation = 3;
    peers.First      = WEST_INDEX;
    peers.Count      = EAST_INDEX - WEST_INDEX + 1u;
    (void)memcpy(peers.Peer[0].Key, west->pair, SKY_CRYPTO_KEY_BYTES);
    (void)memcpy(peers.Peer[EAST_INDEX - WEST_INDEX].Key, east->pair, SKY_CRYPTO_KEY_BYTES);
    rig_table_load("ISL.Peers1", &peers, sizeof(peers));
    load_keys(2, 3); /* an event tells that this was taken over, and that one before it */
}

static void open_neighbour(party_t *party, SKY_LinkId_t link)
{
    party_satellite(party, &theirs.crypto, parties++, rig_neighbour[link], rig_self, 1);
    SKY_Credential_OfSatellite(rig_neighbour[link], 3, &party->credential);
    party->pair[0] ^= (uint8_t)parties; /* each gets a key of its own */
}

static void test_who_has_a_new_key_begins_again(void)
{
    party_t east, west, young;

    open_neighbour(&east, SKY_LINK_EAST);
    open_neighbour(&west, SKY_LINK_WEST);
    load_neighbours_keys(&east, &west);
    CHECK(associate(&east, rig.neighbour[SKY_LINK_EAST]));
    CHECK(associate(&west, rig.neighbour[SKY_LINK_WEST]));
    CHECK_EQ(ping(&east, rig.neighbour[SKY_LINK_EAST]), SKY_STATUS_OK);
    CHECK_EQ(ping(&west, rig.neighbour[SKY_LINK_WEST]), SKY_STATUS_OK);
    load_neighbours_keys(&east, &west); /* the same again */
    CHECK_EQ(ping(&east, rig.neighbour[SKY_LINK_EAST]), SKY_STATUS_OK);

    open_neighbour(&young, SKY_LINK_EAST);
    load_neighbours_keys(&young, &west);
    CHECK_EQ(ping(&east, rig.neighbour[SKY_LINK_EAST]), SKY_STATUS_UNAUTHENTICATED);
    CHECK(!associate(&east, rig.neighbour[SKY_LINK_EAST]));
    CHECK(associate(&young, rig.neighbour[SKY_LINK_EAST]));
    CHECK_EQ(ping(&west, rig.neighbour[SKY_LINK_WEST]), SKY_STATUS_OK); /* its key is what it was */
}

static void test_suites_may_change(void)
{
    party_t host;

    open_host(&host, 3);
    CHECK(associate(&host, rig.ground)); /* with BLAKE2b of whole packets */
    load_keys_and_suites(2, 3, SKY_SUITES_BLAKE2B);
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
    load_keys_and_suites(2, 3, SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER));
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_UNAUTHENTICATED);
    CHECK(!associate(&host, rig.ground));
    load_keys_and_suites(2, 3, 0);
    CHECK(associate(&host, rig.ground));
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
}

/* Nobody could be served under them. */
static void test_suites_that_the_library_cannot_do_are_refused(void)
{
    const bool      has_gmac = (theirs.crypto.suites & SKY_SUITES_GMAC) != 0;
    ISL_KeysTable_t table;

    (void)memset(&table, 0, sizeof(table));
    set_master(&table, 0, 3);
    table.Suites = (uint8_t)SKY_SUITES_GMAC;
    rig_table_load("ISL.Keys", &table, sizeof(table));
    RIG_EVENT(&rig, "ISL", has_gmac ? ISL_SECURITY_INF_EID : ISL_TBL_VALUE_ERR_EID,
              has_gmac ? "links are secured" : "Suites is 6, allowed suites of which the library can do one");
    load_keys(2, 3);
}

static void test_housekeeping_tells_of_keys_and_who_uses_them(void)
{
    ISL_HkSecurity_t before, after;
    party_t          host, stranger;
    uint8_t          wire[PARTY_WIRE];
    SKY_Packet_t     pkt;
    uint32_t         len;

    before = rig_isl_hk(&rig).Security;
    CHECK(before.Secured == 0 && before.MasterKeys == 0 && before.NoCookie == 1); /* the rig got its cookie so */
    load_keys(2, 3);
    rig_command(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_RESET_INF_EID, "counters reset");
    before = rig_isl_hk(&rig).Security;
    CHECK_EQ(before.NoCookie, 0);
    CHECK(before.Secured == 1 && before.MasterKeys == 2 && before.Generation == 3 && before.Older == 2);
    CHECK(before.Suites == theirs.crypto.suites && before.PeerSuite != 0);
    CHECK(before.Begun == 0 && before.NoAssociation == 0 && before.WrongTag == 0 && before.Handshakes == 0);

    open_host_of(&host, 3, 1);
    CHECK(associate(&host, rig.ground));
    after = rig_isl_hk(&rig).Security;
    CHECK_EQ(after.Begun, 1);
    CHECK_EQ(after.HalfOpen, before.HalfOpen + 1);
    CHECK_EQ(after.Established, before.Established);
    CHECK_EQ(after.BySuite[SKY_SUITE_BLAKE2B_PACKET - 1], before.BySuite[SKY_SUITE_BLAKE2B_PACKET - 1] + 1);
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
    after = rig_isl_hk(&rig).Security;
    CHECK_EQ(after.Established, before.Established + 1);
    CHECK_EQ(after.HalfOpen, before.HalfOpen);

    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING); /* without an association */
    CHECK_EQ(rig_ask(&rig, &pkt, &pkt), SKY_STATUS_UNAUTHENTICATED);
    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING); /* under a wrong key */
    host.session.place_there += 1u;
    len = party_request(&host, &pkt, wire);
    host.session.place_there -= 1u;
    CHECK_EQ(exchange(rig.ground, wire, len).status, SKY_STATUS_UNAUTHENTICATED);
    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING); /* twice */
    len = party_request(&host, &pkt, wire);
    CHECK_EQ(exchange(rig.ground, wire, len).status, SKY_STATUS_OK);
    rig_send_bytes(&rig, rig.ground, wire, len);
    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_RELAY); /* a command */
    len = party_request(&host, &pkt, wire);
    CHECK_EQ(exchange(rig.ground, wire, len).status, SKY_STATUS_REFUSED);
    pkt        = rig_request(&rig, SKY_APID_KVC, SKY_OP_PURGE); /* of another tenant */
    pkt.tenant = TENANT + 1u;
    len        = party_request(&host, &pkt, wire);
    CHECK_EQ(exchange(rig.ground, wire, len).status, SKY_STATUS_REFUSED);
    open_host(&stranger, 1); /* of a generation that is not valid */
    CHECK(!associate(&stranger, rig.ground));

    after = rig_isl_hk(&rig).Security;
    CHECK_EQ(after.NoAssociation, 1);
    CHECK_EQ(after.WrongTag, 1);
    CHECK_EQ(after.Replayed, 1);
    CHECK_EQ(after.WrongRole, 1);
    CHECK_EQ(after.WrongTenant, 1);
    CHECK_EQ(after.Handshakes, 1);
    CHECK_EQ(after.Begun, 1);
}

static void test_there_is_an_event_for_each_reason(void)
{
    static const char *const texts[] = {
        "1 packets refused: no association", "1 packets refused: wrong tag",         "1 handshakes refused",
        "1 packets dropped: replayed",       "1 requests refused: not of this role", "1 requests refused: not of this tenant"};

    for (uint32_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
    {
        RIG_EVENT(&rig, "ISL", ISL_REFUSED_ERR_EID, texts[i]);
    }
}

/* Return the answer to a command about keys. */
static uint8_t rekey(party_t *mission, const uint8_t *payload, uint32_t bytes)
{
    uint8_t      wire[PARTY_WIRE];
    SKY_Packet_t pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_REKEY);

    pkt.payload = payload;
    pkt.length  = bytes;
    return exchange(rig.ground, wire, party_request(mission, &pkt, wire)).status;
}

static void open_mission(party_t *mission, uint8_t generation)
{
    open_host(mission, generation);
    mission->credential.bytes[0] = SKY_ROLE_MISSION;
    SKY_Keys_Pair(mission->crypto, masters[generation], &mission->credential, mission->pair);
    CHECK(associate(mission, rig.ground));
}

/* A mission's commands with keys that were not wrapped for this satellite, and one to forget the key under which it is sent. */
static void test_refused_keys_are_counted_and_told(void)
{
    uint8_t payload[REKEY_LOAD_BYTES] = {SKY_REKEY_LOAD, 4, 3};
    party_t mission;

    open_mission(&mission, 3);
    CHECK_EQ(rekey(&mission, payload, sizeof(payload)), SKY_STATUS_BAD_KEY);
    CHECK_EQ(rekey(&mission, payload, sizeof(payload)), SKY_STATUS_BAD_KEY);
    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_FORGET, 3, payload)), SKY_STATUS_BAD_KEY);
    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_ACTIVATE, 9, payload)), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(rekey(&mission, payload, 1), SKY_STATUS_BAD_OP);
    CHECK_EQ(rig_isl_hk(&rig).Security.RekeyRefused, 5);
    CHECK_EQ(rig_isl_hk(&rig).Security.RekeyDone, 0);
    RIG_EVENT(&rig, "ISL", ISL_REFUSED_ERR_EID, "new keys refused: wrapped wrongly");
    RIG_EVENT(&rig, "ISL", ISL_REFUSED_ERR_EID, "1 keys kept that were to be forgotten");
    RIG_EVENT(&rig, "ISL", ISL_REFUSED_ERR_EID, "commands about keys refused");
    rig_command(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_RESET_INF_EID, "counters reset");
    CHECK_EQ(rig_isl_hk(&rig).Security.RekeyRefused, 0);
}

/* Keys that come over the air, and keys that are forgotten, are told of by an event, and by the generations in the housekeeping. */
static void test_new_keys_over_the_air_are_told(void)
{
    static const uint8_t next[SKY_CRYPTO_KEY_BYTES] = {14};
    uint8_t              payload[REKEY_LOAD_BYTES];
    uint8_t              peers[REKEY_MOST_BYTES];
    party_t              mission;
    ISL_HkSecurity_t     hk;

    open_mission(&mission, 3);
    const rekey_wrap_t wrap = {mission.crypto, rig_self, 3, masters[3], NULL};

    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_ACTIVATE, 3, payload)), SKY_STATUS_OK); /* it is */
    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_FORGET, 2, payload)), SKY_STATUS_OK);
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "ISL: 1 master key is valid, of generation 3; links use keys of generation 3");
    hk = rig_isl_hk(&rig).Security;
    CHECK(hk.MasterKeys == 1 && hk.Generation == 3 && hk.Older == 3 && hk.PeersGeneration == 3);
    CHECK_EQ(rekey(&mission, payload, rekey_load(&wrap, 4, next, payload)), SKY_STATUS_OK);
    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_ACTIVATE, 4, payload)), SKY_STATUS_OK);
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID,
              "ISL: 2 master keys are valid, of generations 4 and 3; links use keys of generation 3");
    hk = rig_isl_hk(&rig).Security;
    CHECK(hk.MasterKeys == 2 && hk.Generation == 4 && hk.Older == 3 && hk.PeersGeneration == 3);
    CHECK_EQ(hk.RekeyDone, 4);
    CHECK_EQ(rekey(&mission, peers, rekey_load_peers(&wrap, 4, WEST_INDEX, 1, peers)), SKY_STATUS_OK);
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID,
              "ISL: 2 master keys are valid, of generations 4 and 3; links use keys of generation 4");
    CHECK_EQ(rig_isl_hk(&rig).Security.PeersGeneration, 4);
    CHECK_EQ(rekey(&mission, payload, rekey_command(SKY_REKEY_FORGET, 4, payload)), SKY_STATUS_OK);
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "ISL: 1 master key is valid, of generation 3; links use keys of generation 3");
}

static void test_a_satellite_that_moves_serves_nobody_of_before(void)
{
    ISL_NeighboursTable_t here, there;
    SKY_Packet_t          pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    uint8_t               wire[PARTY_WIRE];
    party_t               host;

    open_host(&host, 3);
    CHECK(associate(&host, rig.ground));
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
    CHECK_EQ(EXEC_TableRead("ISL.Neighbours", &here, sizeof(here)), CFE_SUCCESS);
    there           = here;
    there.SelfPlane = 1;
    there.SelfSlot  = 1;
    (void)memset(there.Neighbour, 0, sizeof(there.Neighbour));
    rig_table_load("ISL.Neighbours", &there, sizeof(there));
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "sessions and associations have ended");
    pkt.dst = (SKY_Addr_t){1, 1};
    pkt     = exchange(rig.ground, wire, party_request(&host, &pkt, wire));
    CHECK(SKY_Addr_Equal(pkt.src, (SKY_Addr_t){1, 1}));
    CHECK_EQ(pkt.status, SKY_STATUS_UNAUTHENTICATED);
    rig_table_load("ISL.Neighbours", &here, sizeof(here));
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "sessions and associations have ended");
    CHECK(associate(&host, rig.ground));
    CHECK_EQ(ping(&host, rig.ground), SKY_STATUS_OK);
}

/* skysat's tables have zeros at the satellite's own place. Everybody knows those, so they are no key. */
static void test_zeros_are_no_key(void)
{
    static ISL_PeersTable_t peers;
    party_t                 east, stranger;

    party_satellite(&east, &theirs.crypto, parties++, rig_neighbour[SKY_LINK_EAST], rig_self, 1);
    SKY_Credential_OfSatellite(rig_neighbour[SKY_LINK_EAST], 3, &east.credential);
    peers.Generation = 3;
    peers.First      = EAST_INDEX - 1u; /* the own place, (2, 2), comes first */
    peers.Count      = 2;
    (void)memcpy(peers.Peer[1].Key, east.pair, SKY_CRYPTO_KEY_BYTES);
    rig_table_load("ISL.Peers1", &peers, sizeof(peers));
    load_keys(2, 3);
    CHECK(associate(&east, rig.neighbour[SKY_LINK_EAST]));

    party_open(&stranger, &theirs.crypto, parties++, (SKY_Addr_t){0, RIG_HOST}, 1); /* it comes from the ground */
    SKY_Credential_OfSatellite(rig_self, 3, &stranger.credential);
    CHECK(!associate(&stranger, rig.ground));
}

int main(void)
{
    static const char *const options[] = {"--hello-s", "0", NULL};

    crypto_rig_open(&theirs);
    if (rig_open(&rig, options))
    {
        RUN(test_wrong_tables_are_refused);
        RUN(test_a_keyed_satellite_serves_who_has_a_key);
        RUN(test_generations_of_keys_follow_each_other);
        RUN(test_zeros_are_no_key);
        RUN(test_who_has_a_new_key_begins_again);
        RUN(test_suites_may_change);
        RUN(test_suites_that_the_library_cannot_do_are_refused);
        RUN(test_a_satellite_that_moves_serves_nobody_of_before);
        rig_close(&rig);
    }
    if (rig_open(&rig, options)) /* events of this one have told of nothing */
    {
        RUN(test_housekeeping_tells_of_keys_and_who_uses_them);
        RUN(test_there_is_an_event_for_each_reason);
        RUN(test_refused_keys_are_counted_and_told);
        RUN(test_new_keys_over_the_air_are_told);
        rig_close(&rig);
    }
    crypto_rig_close(&theirs);
    return CHECK_RESULT();
}
