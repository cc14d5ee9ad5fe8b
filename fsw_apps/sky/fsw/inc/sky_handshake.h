/**
 * @file
 * Payloads and tags of the two packets that make an association: operation `associate`, suite handshake.
 *
 *     request, 72 bytes    credential 48 | host's word 16 | wanted suite 1 | spare 7
 *     response, 24 bytes   satellite's salt 16 | granted suite 1 | spare 7; the SPI is in the header
 *
 * Spare bytes are 0. Both have a tag under the pair key. That of the response also covers the word of the request, so that a recorded
 * response answers no other request.
 */
#ifndef SKY_HANDSHAKE_H
#define SKY_HANDSHAKE_H

#include "sky_keys.h"

#define SKY_SPI_NONE                 0u /**< no association */
#define SKY_HANDSHAKE_SPARE_BYTES    7u
#define SKY_HANDSHAKE_REQUEST_BYTES  (SKY_CREDENTIAL_BYTES + SKY_WORD_BYTES + 1u + SKY_HANDSHAKE_SPARE_BYTES)
#define SKY_HANDSHAKE_RESPONSE_BYTES (SKY_SALT_BYTES + 1u + SKY_HANDSHAKE_SPARE_BYTES)
#define SKY_HANDSHAKE_PARTS_MAX      (SKY_CRYPTO_PARTS_MAX - 1u)

typedef struct
{
    SKY_Credential_t credential;
    uint8_t          word[SKY_WORD_BYTES];
    uint8_t          wanted; /**< SKY_SUITE_GMAC_HEADER .. SKY_SUITE_BLAKE2B_PACKET */
} SKY_HandshakeRequest_t;

typedef struct
{
    uint8_t salt[SKY_SALT_BYTES];
    uint8_t granted;
} SKY_HandshakeResponse_t;

/** Write a request. @param payload  SKY_HANDSHAKE_REQUEST_BYTES */
void SKY_Handshake_EncodeRequest(const SKY_HandshakeRequest_t *request, uint8_t *payload);
/** Read a request. @return false if its length, credential, suite or spare bytes are wrong */
bool SKY_Handshake_DecodeRequest(const uint8_t *payload, size_t bytes, SKY_HandshakeRequest_t *request);
/** Write a response. @param payload  SKY_HANDSHAKE_RESPONSE_BYTES */
void SKY_Handshake_EncodeResponse(const SKY_HandshakeResponse_t *response, uint8_t *payload);
/** Read a response. @return false if its length, suite or spare bytes are wrong */
bool SKY_Handshake_DecodeResponse(const uint8_t *payload, size_t bytes, SKY_HandshakeResponse_t *response);

/**
 * Compute the tag of a handshake: keyed BLAKE2b-128 under the pair key over the parts of the packet, then the word.
 * @param parts  of the packet, as for any tag; at most SKY_HANDSHAKE_PARTS_MAX
 * @param word   of the request that is answered; NULL if this is the request, in which it stands already
 */
void SKY_Handshake_Tag(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *parts,
                       uint32_t part_count, const uint8_t *word, uint8_t tag[SKY_CRYPTO_TAG_BYTES]);
/** Return true if @p tag is that of a handshake. Takes the same time wherever they differ. */
bool SKY_Handshake_IsTag(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *parts,
                         uint32_t part_count, const uint8_t *word, const uint8_t tag[SKY_CRYPTO_TAG_BYTES]);

#endif
