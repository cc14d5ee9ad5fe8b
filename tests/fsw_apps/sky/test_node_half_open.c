/**
 * @file
 * A node whose places for associations that are not used yet are fought for.
 */
#include "guard_rig.h"

#define ELSEWHERE (GROUND + (UINT64_C(1) << 16)) /* another address */
#define FLOOD     200u

/* Let a party ask for another association, as if it had none. */
static void begin_anew(party_t *party)
{
    SKY_Session_End(&party->session, &theirs.crypto);
    party->session.next_us = 0;
}

/* Handshakes of a party come, each with a word of its own. @param step  from the endpoint of one to that of the next */
static void flood(uint64_t now_us, party_t *party, uint64_t endpoint, uint64_t step)
{
    static uint8_t wire[PARTY_WIRE];

    for (uint32_t i = 0; i < FLOOD; ++i)
    {
        SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

        begin_anew(party);
        come_bytes(now_us, wire, party_handshake(party, &pkt, now_us, wire), endpoint + i * step);
        CHECK_EQ(sent_count, 1);
        CHECK_EQ(answer().status, SKY_STATUS_OK);
    }
}

static bool has_association(const party_t *party)
{
    return SKY_Associations_Find(&security.associations, party->session.spi) != NULL;
}

static bool load_no_key(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    (void)context;
    (void)place;
    (void)suite;
    (void)key;
    return false;
}

/* The library takes no more keys: the handshake is right and comes to nothing, and the host is told so. */
static void test_without_a_place_for_keys_none_is_granted(void)
{
    secure(true, 0);
    ours.crypto.LoadKey = load_no_key;
    CHECK(!associate(1, &host));
    CHECK(sent_count == 1u && answer().status == SKY_STATUS_UNAUTHENTICATED);
    end();
}

/* A host that has shown nothing is pushed out. So it learns, comes again with the cookie that it got, and stays. */
static void test_a_cookie_wins_against_recorded_handshakes(void)
{
    SKY_Packet_t pkt;

    secure(true, 0);
    CHECK(associate(1, &host));
    flood(2, &mission, ELSEWHERE, UINT64_C(1) << 16);
    CHECK(!has_association(&host));
    pkt        = request_of(SKY_APID_ISL, SKY_OP_PING);
    pkt.cookie = host.cookie;
    ask(3, &host, &pkt);
    CHECK(sent_count == 1u && answer().status == SKY_STATUS_UNAUTHENTICATED && answer().spi == host.session.spi);
    begin_anew(&host);
    CHECK(associate_with(4, &host, host.cookie));
    flood(5, &mission, ELSEWHERE, UINT64_C(1) << 16);
    flood(6, &mission, GROUND, 1); /* from its own address, too */
    CHECK(has_association(&host));
    pkt = request_of(SKY_APID_ISL, SKY_OP_PING);
    ask(7, &host, &pkt);
    CHECK_EQ(answered(&host), SKY_STATUS_OK);
    CHECK_EQ(security.associations.established, 1);
    end();
}

/* Where all places are those of hosts with a cookie, others are asked for one. */
static void test_without_room_a_host_is_asked_for_a_cookie(void)
{
    party_t late;

    secure(true, 0);
    party_host(&late, &theirs.crypto, 3, SKY_ROLE_HOST, HOST + 2u, ELSEWHERE);
    CHECK(associate_with(1, &host, SKY_Security_CookieOf(&security, 1, host.endpoint)));
    CHECK(associate_with(1, &mission, SKY_Security_CookieOf(&security, 1, mission.endpoint)));
    CHECK(!associate(1, &late));
    CHECK(sent_count == 1u && answer().status == SKY_STATUS_COOKIE);
    CHECK_EQ(security.counters.limited, 1);
    CHECK_EQ(security.counters.unauthenticated, 0);
    CHECK(associate_with(3, &late, answer().cookie));
    CHECK(has_association(&late));
    CHECK(has_association(&host)); /* of the two at the same address the first one stays */
    CHECK(!has_association(&mission));
    end();
}

/* Over a link a place is that of a credential: who begins many associations pushes out his own. */
static void test_handshakes_over_a_link_push_out_their_own(void)
{
    for (uint32_t i = 0; i < 2u; ++i)
    {
        party_t far, behind;

        secure(true, 0);
        party_satellite(&far, &theirs.crypto, 3, (SKY_Addr_t){3, 3}, self, endpoint_of(SKY_LINK_EAST));
        party_satellite(&behind, &theirs.crypto, 4, (SKY_Addr_t){3, 1}, self, endpoint_of(SKY_LINK_EAST));
        party_t *const first = i == 0u ? &east : &behind;

        CHECK(associate(1, first));
        flood(2, &far, endpoint_of(SKY_LINK_EAST), 0);
        CHECK(has_association(first));
        CHECK_EQ(security.associations.half_open, HALF_OPEN);
        end();
    }
}

int main(void)
{
    RUN(test_without_a_place_for_keys_none_is_granted);
    RUN(test_a_cookie_wins_against_recorded_handshakes);
    RUN(test_without_room_a_host_is_asked_for_a_cookie);
    RUN(test_handshakes_over_a_link_push_out_their_own);
    return CHECK_RESULT();
}
