/**
 * @file
 * Commands about keys as a node takes them: from the mission alone, once each, and under tags.
 */
#include "guard_rig.h"
#include "rekey_rig.h"

static const uint8_t newer[SKY_CRYPTO_KEY_BYTES] = {2, 7, 1, 8};

static const rekey_wrap_t under_first = {&theirs.crypto, {2, 2}, 0, party_master, NULL};

static SKY_Packet_t rekey(const uint8_t *payload, uint32_t bytes)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_REKEY);

    pkt.payload = payload;
    pkt.length  = bytes;
    return pkt;
}

static SKY_Status_t command(uint64_t now_us, party_t *party, const uint8_t *payload, uint32_t bytes)
{
    SKY_Packet_t pkt = rekey(payload, bytes);

    ask(now_us, party, &pkt);
    return answered(party);
}

static SKY_Status_t plain_command(uint64_t now_us, party_t *party, uint8_t what, uint8_t generation)
{
    uint8_t        payload[SKY_REKEY_BYTES];
    const uint32_t bytes = rekey_command(what, generation, payload);

    return command(now_us, party, payload, bytes);
}

static SKY_Status_t load_second(uint64_t now_us, party_t *party)
{
    uint8_t        payload[REKEY_LOAD_BYTES];
    const uint32_t bytes = rekey_load(&under_first, 1, newer, payload);

    return command(now_us, party, payload, bytes);
}

/* The mission under its new credential. */
static party_t renewed_mission(void)
{
    party_t party;

    party_host(&party, &theirs.crypto, 4, SKY_ROLE_MISSION, HOST + 2u, GROUND + 2u);
    party.credential.bytes[1] = 1;
    SKY_Keys_Pair(&theirs.crypto, newer, &party.credential, party.pair);
    return party;
}

static void test_a_mission_replaces_the_key(void)
{
    SKY_Packet_t pkt;
    party_t      renewed;

    secure(true, 0);
    renewed = renewed_mission();
    CHECK(associate(1, &mission));
    CHECK(associate(1, &host));
    CHECK_EQ(counter(2, &mission, SKY_STATS_ISL_MASTER_KEYS), 1);
    CHECK_EQ(counter(2, &mission, SKY_STATS_ISL_GENERATION_FIRST), 0);
    CHECK_EQ(load_second(3, &mission), SKY_STATUS_OK);
    CHECK(!associate(4, &renewed));
    CHECK_EQ(plain_command(5, &mission, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK_EQ(counter(6, &mission, SKY_STATS_ISL_MASTER_KEYS), 2);
    CHECK_EQ(counter(6, &mission, SKY_STATS_ISL_GENERATION_FIRST), 0);
    CHECK_EQ(counter(6, &mission, SKY_STATS_ISL_GENERATION_SECOND), 1);
    CHECK_EQ(counter(6, &mission, SKY_STATS_ISL_GENERATION_PEERS), 0); /* of those no others have come */
    CHECK(associate(7, &renewed));
    CHECK_EQ(plain_command(8, &mission, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY);
    CHECK_EQ(counter(9, &mission, SKY_STATS_ISL_REKEY_REFUSED), 1);
    CHECK_EQ(counter(9, &host, SKY_STATS_ISL_MASTER_KEYS), 2);

    CHECK_EQ(plain_command(10, &renewed, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
    CHECK_EQ(counter(11, &renewed, SKY_STATS_ISL_MASTER_KEYS), 1);
    CHECK_EQ(counter(11, &renewed, SKY_STATS_ISL_GENERATION_FIRST), 1); /* wherever the key lies */
    CHECK_EQ(counter(11, &renewed, SKY_STATS_ISL_GENERATION_SECOND), 0);
    CHECK_EQ(counter(11, &renewed, SKY_STATS_ISL_ASSOCIATIONS), 1);
    pkt = request_of(SKY_APID_ISL, SKY_OP_PING);
    ask(12, &host, &pkt);
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(plain_command(13, &renewed, 9, 0), SKY_STATUS_BAD_OP);
    end();
}

/* Tables of the mission have the last word. */
static void test_a_table_brings_the_old_key_back(void)
{
    party_t renewed;

    secure(true, 0);
    renewed = renewed_mission();
    CHECK(associate(1, &mission));
    CHECK_EQ(load_second(2, &mission), SKY_STATUS_OK);
    CHECK_EQ(plain_command(3, &mission, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK(associate(4, &renewed));
    CHECK_EQ(plain_command(5, &renewed, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
    keep_master(&security, 0, party_master);
    CHECK_EQ(security.associations.half_open + security.associations.established, 0);
    CHECK(associate(6, &host));
    end();
}

static void test_nobody_else_may(void)
{
    static uint8_t wire[PARTY_WIRE];
    uint8_t        payload[REKEY_LOAD_BYTES];
    SKY_Packet_t   pkt;
    uint32_t       len;

    secure(true, 0);
    CHECK(associate(1, &host));
    CHECK(associate(1, &east));
    CHECK_EQ(load_second(2, &host), SKY_STATUS_REFUSED);
    CHECK_EQ(load_second(2, &east), SKY_STATUS_REFUSED);
    pkt = rekey(payload, rekey_load(&under_first, 1, newer, payload));
    come(3, &pkt, GROUND); /* without a tag */
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    CHECK(!security.rekey.waiting.is_set);

    CHECK(associate(4, &mission));
    pkt = rekey(payload, rekey_load(&under_first, 1, newer, payload));
    len = party_request(&mission, &pkt, wire);
    CHECK_EQ(load_second(4, &mission), SKY_STATUS_OK);
    CHECK_EQ(plain_command(5, &mission, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    come_bytes(6, wire, len, mission.endpoint); /* a command that was overtaken does not count any more */
    CHECK_EQ(sent_count, 0);
    CHECK(!security.rekey.waiting.is_set);
    CHECK_EQ(security.counters.replayed, 1);
    end();
}

static void test_a_satellite_without_keys_takes_none(void)
{
    uint8_t      payload[REKEY_LOAD_BYTES];
    SKY_Packet_t pkt;

    secure(false, 0);
    pkt     = rekey(payload, rekey_load(&under_first, 1, newer, payload));
    pkt.src = in_the_east;
    come(1, &pkt, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(answer().status, SKY_STATUS_REFUSED);
    CHECK_EQ(counter(2, NULL, SKY_STATS_ISL_MASTER_KEYS), 0);
    CHECK(!SKY_Node_IsKeyed(&node));
    end();
}

int main(void)
{
    RUN(test_a_mission_replaces_the_key);
    RUN(test_a_table_brings_the_old_key_back);
    RUN(test_nobody_else_may);
    RUN(test_a_satellite_without_keys_takes_none);
    return CHECK_RESULT();
}
