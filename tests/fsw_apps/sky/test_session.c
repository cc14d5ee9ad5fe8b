/**
 * @file
 * The initiator's side of associations, by itself and against a satellite's table.
 */
#include "crypto_rig.h"
#include "sky_associations.h"
#include "sky_session.h"

#define ROUND_TRIP_US UINT64_C(20000)
#define WORST_SPI     UINT32_MAX

static crypto_rig_t rig;

static SKY_Session_t    session;
static SKY_Credential_t credential;
static uint8_t          payload[SKY_HANDSHAKE_REQUEST_BYTES];

static const uint8_t pair[SKY_CRYPTO_KEY_BYTES] = {1};
static const uint8_t random_one[SKY_WORD_BYTES] = "random word one";
static const uint8_t random_two[SKY_WORD_BYTES] = "random word two";

static void open(uint8_t wanted, uint32_t accepted)
{
    crypto_rig_open(&rig);
    SKY_Credential_OfSatellite((SKY_Addr_t){1, 2}, 0, &credential);
    SKY_Session_Init(&session, wanted, accepted, 8, 9);
}

static size_t ask(uint64_t now_us, const uint8_t *random)
{
    return SKY_Session_Ask(&session, &credential, random, now_us, ROUND_TRIP_US, payload);
}

/* Take a response that grants a suite. */
static bool take(uint32_t spi, uint8_t granted)
{
    const SKY_HandshakeResponse_t response = {.salt = {3}, .granted = granted};
    uint8_t                       answer[SKY_HANDSHAKE_RESPONSE_BYTES];

    SKY_Handshake_EncodeResponse(&response, answer);
    return SKY_Session_Take(&session, &rig.crypto, pair, spi, answer, sizeof(answer));
}

static void test_a_request_is_sent_once_in_a_round_trip(void)
{
    SKY_HandshakeRequest_t request;

    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    CHECK(SKY_Session_IsDue(&session, 0));
    CHECK_EQ(ask(100, random_one), SKY_HANDSHAKE_REQUEST_BYTES);
    CHECK(SKY_Handshake_DecodeRequest(payload, sizeof(payload), &request));
    CHECK(memcmp(request.word, random_one, sizeof(random_one)) == 0);
    CHECK(memcmp(request.credential.bytes, credential.bytes, SKY_CREDENTIAL_BYTES) == 0);
    CHECK_EQ(request.wanted, SKY_SUITE_BLAKE2B_PACKET);

    CHECK(!SKY_Session_IsDue(&session, 100u + ROUND_TRIP_US - 1u));
    CHECK_EQ(ask(100u + ROUND_TRIP_US - 1u, random_two), 0);
    CHECK_EQ(session.tries, 1);
    CHECK_EQ(ask(100u + ROUND_TRIP_US, random_two), SKY_HANDSHAKE_REQUEST_BYTES);
    CHECK(SKY_Handshake_DecodeRequest(payload, sizeof(payload), &request));
    CHECK(memcmp(request.word, random_one, sizeof(random_one)) == 0); /* the same request again */
    CHECK_EQ(session.tries, 2);
    crypto_rig_close(&rig);
}

static void test_only_an_established_session_sends(void)
{
    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    CHECK_EQ(SKY_Session_NextSequence(&session), 0);
    CHECK(!take(64, SKY_SUITE_BLAKE2B_PACKET)); /* nothing was asked */
    CHECK_EQ(ask(0, random_one), SKY_HANDSHAKE_REQUEST_BYTES);
    CHECK_EQ(SKY_Session_NextSequence(&session), 0);
    CHECK(take(WORST_SPI, SKY_SUITE_BLAKE2B_PACKET));
    CHECK_EQ(session.state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(session.spi, WORST_SPI);
    CHECK_EQ(session.suite, SKY_SUITE_BLAKE2B_PACKET);
    CHECK_EQ(crypto_rig_keys(&rig), 2);
    CHECK_EQ(SKY_Session_NextSequence(&session), 1);
    CHECK_EQ(SKY_Session_NextSequence(&session), 2);
    CHECK(!SKY_Session_IsDue(&session, UINT64_MAX));
    CHECK_EQ(ask(UINT64_MAX / 2u, random_two), 0);
    CHECK(!take(64, SKY_SUITE_BLAKE2B_PACKET)); /* the response came twice */
    CHECK_EQ(session.spi, WORST_SPI);
    CHECK_EQ(SKY_Session_NextSequence(&session), 3);
    crypto_rig_close(&rig);
}

static void test_sequences_end_before_they_repeat(void)
{
    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    (void)ask(0, random_one);
    CHECK(take(64, SKY_SUITE_BLAKE2B_PACKET));
    session.sequence = UINT64_MAX - 2u;
    CHECK(SKY_Session_NextSequence(&session) == UINT64_MAX - 1u);
    CHECK_EQ(SKY_Session_NextSequence(&session), 0);
    CHECK_EQ(SKY_Session_NextSequence(&session), 0);
    crypto_rig_close(&rig);
}

static void test_only_accepted_suites_are_taken(void)
{
    open(SKY_SUITE_GMAC_HEADER, SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER));
    (void)ask(0, random_one);
    CHECK(!take(64, SKY_SUITE_BLAKE2B_PACKET));
    CHECK(!take(64, SKY_SUITE_GMAC_PACKET));
    CHECK_EQ(session.state, SKY_SESSION_ASKING);
    CHECK_EQ(rig.loaded, 0);
    CHECK(take(64, SKY_SUITE_BLAKE2B_HEADER));
    CHECK_EQ(session.suite, SKY_SUITE_BLAKE2B_HEADER);
    crypto_rig_close(&rig);
}

static void test_what_is_no_response_is_not_taken(void)
{
    const SKY_HandshakeResponse_t response = {.salt = {3}, .granted = SKY_SUITE_BLAKE2B_PACKET};
    uint8_t                       answer[SKY_HANDSHAKE_RESPONSE_BYTES];

    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    (void)ask(0, random_one);
    SKY_Handshake_EncodeResponse(&response, answer);
    CHECK(!SKY_Session_Take(&session, &rig.crypto, pair, 64, answer, sizeof(answer) - 1u));
    CHECK(!SKY_Session_Take(&session, &rig.crypto, pair, 64, answer, 0));
    CHECK(!SKY_Session_Take(&session, &rig.crypto, pair, SKY_SPI_NONE, answer, sizeof(answer)));
    CHECK_EQ(session.state, SKY_SESSION_ASKING);
    CHECK(SKY_Session_Take(&session, &rig.crypto, pair, 64, answer, sizeof(answer)));
    crypto_rig_close(&rig);
}

static void test_a_library_that_takes_no_key_leaves_none(void)
{
    static const crypto_fault_t faults[] = {FAULT_LOADS_NOTHING, FAULT_LOADS_ONE};

    for (size_t i = 0; i < 2; ++i)
    {
        open(SKY_SUITE_BLAKE2B_PACKET, 0);
        (void)ask(0, random_one);
        rig.fault = faults[i];
        CHECK(!take(64, SKY_SUITE_BLAKE2B_PACKET));
        CHECK_EQ(session.state, SKY_SESSION_ASKING);
        CHECK_EQ(crypto_rig_keys(&rig), 0);
        rig.fault = FAULT_NONE;
        CHECK(take(64, SKY_SUITE_BLAKE2B_PACKET));
        crypto_rig_close(&rig);
    }
}

/* Whoever says without a tag that an association has ended causes one handshake in a round trip, and stops nothing. */
static void test_a_session_in_doubt_goes_on_until_there_is_another_one(void)
{
    const uint64_t soon_us = 50u + ROUND_TRIP_US;

    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    CHECK(!SKY_Session_Doubt(&session, 0));
    (void)ask(50, random_one);
    CHECK(!SKY_Session_Doubt(&session, UINT64_MAX)); /* it asks already */
    CHECK(!SKY_Session_Confirm(&session, 9));
    CHECK(take(64, SKY_SUITE_BLAKE2B_PACKET));
    CHECK_EQ(SKY_Session_NextSequence(&session), 1);
    CHECK(!SKY_Session_Doubt(&session, soon_us - 1u));
    CHECK_EQ(session.state, SKY_SESSION_ESTABLISHED);
    CHECK(SKY_Session_Doubt(&session, soon_us));
    CHECK(!SKY_Session_Doubt(&session, soon_us));
    CHECK_EQ(session.state, SKY_SESSION_DOUBTED);
    CHECK(SKY_Session_IsUsable(&session));
    CHECK_EQ(session.spi, 64);
    CHECK_EQ(crypto_rig_keys(&rig), 2);
    CHECK_EQ(SKY_Session_NextSequence(&session), 2);
    CHECK(!take(65, SKY_SUITE_BLAKE2B_PACKET)); /* it has not asked yet */

    CHECK(ask(soon_us, random_two) != 0);
    CHECK(memcmp(session.word, random_two, sizeof(random_two)) == 0); /* for a new association */
    CHECK_EQ(session.tries, 1);
    CHECK(!SKY_Session_IsDue(&session, soon_us + ROUND_TRIP_US - 1u));
    CHECK_EQ(SKY_Session_NextSequence(&session), 3);
    CHECK(ask(soon_us + ROUND_TRIP_US, random_one) != 0);
    CHECK(memcmp(session.word, random_two, sizeof(random_two)) == 0); /* the same one is asked for again */
    CHECK(take(65, SKY_SUITE_BLAKE2B_PACKET));
    CHECK_EQ(session.state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(session.spi, 65);
    CHECK_EQ(SKY_Session_NextSequence(&session), 1);
    crypto_rig_close(&rig);
}

static void test_a_session_that_is_confirmed_asks_no_more(void)
{
    const uint64_t soon_us = 50u + ROUND_TRIP_US;

    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    (void)ask(50, random_one);
    CHECK(take(64, SKY_SUITE_BLAKE2B_PACKET));
    CHECK(!SKY_Session_Confirm(&session, 7));
    CHECK(SKY_Session_Doubt(&session, soon_us));
    CHECK(ask(soon_us, random_two) != 0);
    CHECK(!SKY_Session_Confirm(&session, 7)); /* somebody sends it again */
    CHECK(!SKY_Session_Confirm(&session, 6));
    CHECK_EQ(session.state, SKY_SESSION_DOUBTED);
    CHECK(SKY_Session_Confirm(&session, 8));
    CHECK_EQ(session.state, SKY_SESSION_ESTABLISHED);
    CHECK(!SKY_Session_IsDue(&session, UINT64_MAX));
    CHECK(!take(65, SKY_SUITE_BLAKE2B_PACKET)); /* which it asked for, but does not need */
    CHECK_EQ(session.spi, 64);
    CHECK_EQ(SKY_Session_NextSequence(&session), 1);
    crypto_rig_close(&rig);
}

static void test_a_library_that_takes_no_new_key_ends_a_session_in_doubt(void)
{
    open(SKY_SUITE_BLAKE2B_PACKET, 0);
    (void)ask(50, random_one);
    CHECK(take(64, SKY_SUITE_BLAKE2B_PACKET));
    CHECK(SKY_Session_Doubt(&session, 50u + ROUND_TRIP_US));
    CHECK(ask(50u + ROUND_TRIP_US, random_two) != 0);
    rig.fault = FAULT_LOADS_NOTHING;
    CHECK(!take(65, SKY_SUITE_BLAKE2B_PACKET));
    rig.fault = FAULT_NONE;
    CHECK_EQ(session.state, SKY_SESSION_NONE);
    CHECK_EQ(SKY_Session_NextSequence(&session), 0);
    CHECK_EQ(crypto_rig_keys(&rig), 0);
    crypto_rig_close(&rig);
}

/* A host and a satellite, each with a library of its own, agree on both keys. */
static void test_both_sides_make_the_same_tags(void)
{
    static SKY_Association_t       entries[2];
    static crypto_rig_t            other;
    static const uint8_t           master[SKY_CRYPTO_KEY_BYTES] = {4};
    static const uint8_t           salt[SKY_SALT_BYTES]         = {6};
    static const uint8_t           host[SKY_CREDENTIAL_BYTES]   = {0, 7, 255};
    const SKY_CryptoPart_t         part                         = {"a packet", 8};
    SKY_Associations_t             table;
    SKY_HandshakeRequest_t         request;
    SKY_HandshakeResponse_t        response;
    const SKY_AssociationsConfig_t config = {&other.crypto, UINT32_MAX, 1, 1, 0, NULL, NULL};
    const SKY_HandshakeOrigin_t    origin = {1, false};
    uint8_t                        key[SKY_CRYPTO_KEY_BYTES], tag[SKY_CRYPTO_TAG_BYTES], answer[SKY_HANDSHAKE_RESPONSE_BYTES];

    for (uint8_t wanted = SKY_SUITE_GMAC_HEADER; wanted <= SKY_SUITE_BLAKE2B_PACKET; ++wanted)
    {
        open(wanted, SKY_SUITES_BLAKE2B);
        crypto_rig_open(&other);
        CHECK(SKY_Credential_Decode(host, &credential));
        CHECK(SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
        CHECK(SKY_Associations_SetMaster(&table, 7, master));

        CHECK(SKY_Handshake_DecodeRequest(payload, ask(0, random_one), &request));
        CHECK(SKY_Associations_PairKey(&table, &request.credential, key));
        SKY_Association_t *there = SKY_Associations_Begin(&table, &request, key, &origin, 1, &response);

        CHECK(there != NULL);
        SKY_Handshake_EncodeResponse(&response, answer);
        CHECK(SKY_Session_Take(&session, &rig.crypto, key, there->spi, answer, sizeof(answer)));
        CHECK_EQ(session.suite, there->suite);
        CHECK((rig.crypto.suites & SKY_SUITE_BIT(wanted)) == 0 || session.suite == wanted);

        CHECK(rig.crypto.Tag(rig.crypto.context, session.place_there, 1, &part, 1, tag));
        CHECK(SKY_Crypto_IsTag(&other.crypto, there->place_there, 1, &part, 1, tag));
        CHECK(!SKY_Crypto_IsTag(&other.crypto, there->place_back, 1, &part, 1, tag)); /* nothing is sent back to its sender */
        CHECK(other.crypto.Tag(other.crypto.context, there->place_back, 1, &part, 1, tag));
        CHECK(SKY_Crypto_IsTag(&rig.crypto, session.place_back, 1, &part, 1, tag));
        crypto_rig_close(&rig);
        crypto_rig_close(&other);
    }
}

int main(void)
{
    RUN(test_a_request_is_sent_once_in_a_round_trip);
    RUN(test_only_an_established_session_sends);
    RUN(test_sequences_end_before_they_repeat);
    RUN(test_only_accepted_suites_are_taken);
    RUN(test_what_is_no_response_is_not_taken);
    RUN(test_a_library_that_takes_no_key_leaves_none);
    RUN(test_a_session_in_doubt_goes_on_until_there_is_another_one);
    RUN(test_a_session_that_is_confirmed_asks_no_more);
    RUN(test_a_library_that_takes_no_new_key_ends_a_session_in_doubt);
    RUN(test_both_sides_make_the_same_tags);
    return CHECK_RESULT();
}
