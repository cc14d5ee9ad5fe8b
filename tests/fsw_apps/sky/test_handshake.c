/**
 * @file
 * Payloads and tags of handshakes: what was written is read, and nothing else is.
 */
#include "crypto_rig.h"
#include "sky_handshake.h"

static crypto_rig_t rig;

static const uint8_t pair[SKY_CRYPTO_KEY_BYTES] = {5, 6, 7};

static SKY_HandshakeRequest_t a_request(void)
{
    SKY_HandshakeRequest_t request = {.word = "fifteen letters", .wanted = SKY_SUITE_GMAC_HEADER};

    SKY_Credential_OfSatellite((SKY_Addr_t){3, 10}, 1, &request.credential);
    return request;
}

static void test_a_request_is_read_as_it_was_written(void)
{
    uint8_t                      payload[SKY_HANDSHAKE_REQUEST_BYTES + 1u];
    const SKY_HandshakeRequest_t request = a_request();
    SKY_HandshakeRequest_t       read;

    CHECK_EQ(SKY_HANDSHAKE_REQUEST_BYTES, 72);
    SKY_Handshake_EncodeRequest(&request, payload);
    CHECK(SKY_Handshake_DecodeRequest(payload, SKY_HANDSHAKE_REQUEST_BYTES, &read));
    CHECK(memcmp(read.credential.bytes, request.credential.bytes, SKY_CREDENTIAL_BYTES) == 0);
    CHECK(memcmp(read.word, request.word, SKY_WORD_BYTES) == 0);
    CHECK_EQ(read.wanted, request.wanted);
    CHECK(memcmp(payload + 48, "fifteen letters", 16) == 0);
    CHECK_EQ(payload[64], SKY_SUITE_GMAC_HEADER);

    for (size_t bytes = 0; bytes <= sizeof(payload); ++bytes)
    {
        CHECK(SKY_Handshake_DecodeRequest(payload, bytes, &read) == (bytes == SKY_HANDSHAKE_REQUEST_BYTES));
    }
}

static void test_a_request_with_a_wrong_byte_is_refused(void)
{
    uint8_t                payload[SKY_HANDSHAKE_REQUEST_BYTES];
    SKY_HandshakeRequest_t request = a_request();

    SKY_Handshake_EncodeRequest(&request, payload);
    for (unsigned suite = 0; suite < 256; ++suite)
    {
        payload[64] = (uint8_t)suite;
        CHECK(SKY_Handshake_DecodeRequest(payload, sizeof(payload), &request) == (suite >= 1u && suite <= 4u));
    }
    payload[64] = SKY_SUITE_BLAKE2B_PACKET;
    for (unsigned byte = 65; byte < sizeof(payload); ++byte)
    {
        payload[byte] = 1;
        CHECK(!SKY_Handshake_DecodeRequest(payload, sizeof(payload), &request));
        payload[byte] = 0;
    }
    payload[0] = 3; /* no role */
    CHECK(!SKY_Handshake_DecodeRequest(payload, sizeof(payload), &request));
}

static void test_a_response_is_read_as_it_was_written(void)
{
    uint8_t                       payload[SKY_HANDSHAKE_RESPONSE_BYTES + 1u];
    const SKY_HandshakeResponse_t response = {.salt = "salt of the boot", .granted = SKY_SUITE_BLAKE2B_HEADER};
    SKY_HandshakeResponse_t       read;

    CHECK_EQ(SKY_HANDSHAKE_RESPONSE_BYTES, 24);
    SKY_Handshake_EncodeResponse(&response, payload);
    CHECK(SKY_Handshake_DecodeResponse(payload, SKY_HANDSHAKE_RESPONSE_BYTES, &read));
    CHECK(memcmp(read.salt, response.salt, SKY_SALT_BYTES) == 0);
    CHECK_EQ(read.granted, SKY_SUITE_BLAKE2B_HEADER);

    for (size_t bytes = 0; bytes <= sizeof(payload); ++bytes)
    {
        CHECK(SKY_Handshake_DecodeResponse(payload, bytes, &read) == (bytes == SKY_HANDSHAKE_RESPONSE_BYTES));
    }
    for (unsigned byte = 17; byte < SKY_HANDSHAKE_RESPONSE_BYTES; ++byte)
    {
        payload[byte] = 128;
        CHECK(!SKY_Handshake_DecodeResponse(payload, SKY_HANDSHAKE_RESPONSE_BYTES, &read));
        payload[byte] = 0;
    }
    for (unsigned suite = 0; suite < 256; ++suite)
    {
        payload[16] = (uint8_t)suite;
        CHECK(SKY_Handshake_DecodeResponse(payload, SKY_HANDSHAKE_RESPONSE_BYTES, &read) == (suite >= 1u && suite <= 4u));
    }
}

static void test_a_tag_is_of_one_packet_key_and_word(void)
{
    static const uint8_t   word[SKY_WORD_BYTES]  = {1};
    static const uint8_t   other[SKY_WORD_BYTES] = {2};
    static const uint8_t   other_pair[SKY_CRYPTO_KEY_BYTES];
    const SKY_CryptoPart_t parts[] = {{"header", 6}, {"payload", 7}};
    uint8_t                tag[SKY_CRYPTO_TAG_BYTES];

    crypto_rig_open(&rig);
    SKY_Handshake_Tag(&rig.crypto, pair, parts, 2, word, tag);
    CHECK(SKY_Handshake_IsTag(&rig.crypto, pair, parts, 2, word, tag));
    CHECK(!SKY_Handshake_IsTag(&rig.crypto, pair, parts, 2, other, tag));
    CHECK(!SKY_Handshake_IsTag(&rig.crypto, pair, parts, 2, NULL, tag));
    CHECK(!SKY_Handshake_IsTag(&rig.crypto, pair, parts, 1, word, tag));
    CHECK(!SKY_Handshake_IsTag(&rig.crypto, other_pair, parts, 2, word, tag));
    SKY_Handshake_Tag(&rig.crypto, pair, parts, 2, NULL, tag);
    CHECK(SKY_Handshake_IsTag(&rig.crypto, pair, parts, 2, NULL, tag));
    tag[0] = (uint8_t)(tag[0] ^ 1u);
    CHECK(!SKY_Handshake_IsTag(&rig.crypto, pair, parts, 2, NULL, tag));
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_a_request_is_read_as_it_was_written);
    RUN(test_a_request_with_a_wrong_byte_is_refused);
    RUN(test_a_response_is_read_as_it_was_written);
    RUN(test_a_tag_is_of_one_packet_key_and_word);
    return CHECK_RESULT();
}
