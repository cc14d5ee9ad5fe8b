/**
 * @file
 * The two packets that make an association: see sky_handshake.h.
 */
#include "sky_handshake.h"

#include <string.h>

#include "sky_assert.h"

#define AT_WORD    SKY_CREDENTIAL_BYTES
#define AT_WANTED  (AT_WORD + SKY_WORD_BYTES)
#define AT_GRANTED SKY_SALT_BYTES

static bool is_session_suite(uint8_t suite)
{
    return suite >= SKY_SUITE_GMAC_HEADER && suite <= SKY_SUITE_BLAKE2B_PACKET;
}

static bool is_spare(const uint8_t *bytes)
{
    static const uint8_t zeros[SKY_HANDSHAKE_SPARE_BYTES];

    SKY_ASSERT(bytes != NULL);
    return memcmp(bytes, zeros, sizeof(zeros)) == 0;
}

void SKY_Handshake_EncodeRequest(const SKY_HandshakeRequest_t *request, uint8_t *payload)
{
    SKY_ASSERT(is_session_suite(request->wanted));
    SKY_ASSERT(SKY_HANDSHAKE_REQUEST_BYTES == AT_WANTED + 1u + SKY_HANDSHAKE_SPARE_BYTES);
    (void)memset(payload, 0, SKY_HANDSHAKE_REQUEST_BYTES);
    (void)memcpy(payload, request->credential.bytes, SKY_CREDENTIAL_BYTES);
    (void)memcpy(payload + AT_WORD, request->word, SKY_WORD_BYTES);
    payload[AT_WANTED] = request->wanted;
}

bool SKY_Handshake_DecodeRequest(const uint8_t *payload, size_t bytes, SKY_HandshakeRequest_t *request)
{
    SKY_ASSERT(SKY_HANDSHAKE_REQUEST_BYTES == AT_WANTED + 1u + SKY_HANDSHAKE_SPARE_BYTES);
    SKY_ASSERT(payload != NULL || bytes == 0);
    if (bytes != SKY_HANDSHAKE_REQUEST_BYTES || !is_session_suite(payload[AT_WANTED]) || !is_spare(payload + AT_WANTED + 1u) ||
        !SKY_Credential_Decode(payload, &request->credential))
    {
        return false;
    }
    (void)memcpy(request->word, payload + AT_WORD, SKY_WORD_BYTES);
    request->wanted = payload[AT_WANTED];
    SKY_ASSERT(is_session_suite(request->wanted));
    return true;
}

void SKY_Handshake_EncodeResponse(const SKY_HandshakeResponse_t *response, uint8_t *payload)
{
    SKY_ASSERT(is_session_suite(response->granted));
    SKY_ASSERT(SKY_HANDSHAKE_RESPONSE_BYTES == AT_GRANTED + 1u + SKY_HANDSHAKE_SPARE_BYTES);
    (void)memset(payload, 0, SKY_HANDSHAKE_RESPONSE_BYTES);
    (void)memcpy(payload, response->salt, SKY_SALT_BYTES);
    payload[AT_GRANTED] = response->granted;
}

bool SKY_Handshake_DecodeResponse(const uint8_t *payload, size_t bytes, SKY_HandshakeResponse_t *response)
{
    SKY_ASSERT(SKY_HANDSHAKE_RESPONSE_BYTES == AT_GRANTED + 1u + SKY_HANDSHAKE_SPARE_BYTES);
    SKY_ASSERT(payload != NULL || bytes == 0);
    if (bytes != SKY_HANDSHAKE_RESPONSE_BYTES || !is_session_suite(payload[AT_GRANTED]) || !is_spare(payload + AT_GRANTED + 1u))
    {
        return false;
    }
    (void)memcpy(response->salt, payload, SKY_SALT_BYTES);
    response->granted = payload[AT_GRANTED];
    SKY_ASSERT(is_session_suite(response->granted));
    return true;
}

void SKY_Handshake_Tag(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *parts,
                       uint32_t part_count, const uint8_t *word, uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    SKY_CryptoPart_t all[SKY_CRYPTO_PARTS_MAX];

    SKY_ASSERT(parts != NULL);
    SKY_ASSERT(pair != NULL);
    SKY_ASSERT(part_count <= SKY_HANDSHAKE_PARTS_MAX);
    (void)memcpy(all, parts, part_count * sizeof(all[0]));
    all[part_count] = (SKY_CryptoPart_t){word, word == NULL ? 0 : SKY_WORD_BYTES};
    crypto->Hash(crypto->context, pair, SKY_CRYPTO_KEY_BYTES, all, part_count + 1u, tag, SKY_CRYPTO_TAG_BYTES);
}

bool SKY_Handshake_IsTag(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *parts,
                         uint32_t part_count, const uint8_t *word, const uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    uint8_t right[SKY_CRYPTO_TAG_BYTES];

    SKY_ASSERT(tag != NULL);
    SKY_ASSERT(pair != NULL);
    SKY_ASSERT(part_count <= SKY_HANDSHAKE_PARTS_MAX);
    SKY_Handshake_Tag(crypto, pair, parts, part_count, word, right);
    return crypto->IsEqual(crypto->context, right, tag, sizeof(right));
}
