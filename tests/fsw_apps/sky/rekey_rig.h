/**
 * @file
 * The mission's side of new keys: it wraps them, as sky_rekey.h says, and writes commands.
 */
#ifndef REKEY_RIG_H
#define REKEY_RIG_H

#include <string.h>

#include "sky_rekey.h"

#define REKEY_BOUND_BYTES 8u
#define REKEY_LOAD_BYTES  (SKY_REKEY_BYTES + SKY_CRYPTO_KEY_BYTES + SKY_CRYPTO_TAG_BYTES)
#define REKEY_MOST_BYTES  (SKY_REKEY_BYTES + SKY_REKEY_TEXT_MOST + SKY_CRYPTO_TAG_BYTES)

/* The master key that wraps, and the satellite for which it does. */
typedef struct
{
    const SKY_Crypto_t *crypto;
    SKY_Addr_t          satellite;
    uint8_t             generation;
    const uint8_t      *key;
    const uint8_t      *nonce; /* to take in place of the right one; NULL: the right one */
} rekey_wrap_t;

/* Write a command without a key. @return its length */
static inline uint32_t rekey_command(uint8_t command, uint8_t generation, uint8_t *payload)
{
    (void)memset(payload, 0, SKY_REKEY_BYTES);
    payload[SKY_REKEY_OFF_COMMAND]    = command;
    payload[SKY_REKEY_OFF_GENERATION] = generation;
    return SKY_REKEY_BYTES;
}

/* Write a command with a wrapped text. @return its length */
static inline uint32_t rekey_wrapped(const rekey_wrap_t *wrap, uint8_t command, uint8_t generation, const uint8_t *text,
                                     size_t text_bytes, uint8_t *payload)
{
    const SKY_Crypto_t *crypto                   = wrap->crypto;
    const SKY_Addr_t    to                       = wrap->satellite;
    const uint8_t       bound[REKEY_BOUND_BYTES] = {
              command,         generation, wrap->generation, 0, (uint8_t)(to.plane >> 8), (uint8_t)to.plane, (uint8_t)(to.slot >> 8),
              (uint8_t)to.slot};
    const SKY_CryptoPart_t info[] = {{"skymemory 2 wrap", 16}, {bound, sizeof(bound)}};
    const SKY_CryptoPart_t all[]  = {{bound, sizeof(bound)}, {text, text_bytes}};
    uint8_t               *nonce  = payload + SKY_REKEY_OFF_NONCE;
    uint8_t                keys[2u * SKY_CRYPTO_KEY_BYTES];

    (void)rekey_command(command, generation, payload);
    payload[SKY_REKEY_OFF_UNDER] = wrap->generation;
    SKY_Crypto_Kdf(crypto, wrap->key, info, 2, keys, sizeof(keys));
    crypto->Hash(crypto->context, keys + SKY_CRYPTO_KEY_BYTES, SKY_CRYPTO_KEY_BYTES, all, 2, nonce, SKY_CRYPTO_NONCE_BYTES);
    if (wrap->nonce != NULL)
    {
        (void)memcpy(nonce, wrap->nonce, SKY_CRYPTO_NONCE_BYTES);
    }
    crypto->Seal(crypto->context, keys, nonce, &info[1], text, text_bytes, payload + SKY_REKEY_BYTES);
    return (uint32_t)(SKY_REKEY_BYTES + text_bytes + SKY_CRYPTO_TAG_BYTES);
}

/* Write a command that loads a master key. */
static inline uint32_t rekey_load(const rekey_wrap_t *wrap, uint8_t generation, const uint8_t *key, uint8_t *payload)
{
    return rekey_wrapped(wrap, SKY_REKEY_LOAD, generation, key, SKY_CRYPTO_KEY_BYTES, payload);
}

/* Write a command that loads keys with the satellites from an index on: bytes of their generation. */
static inline uint32_t rekey_load_peers(const rekey_wrap_t *wrap, uint8_t generation, uint32_t first, uint32_t count,
                                        uint8_t *payload)
{
    uint8_t text[SKY_REKEY_TEXT_MOST];

    (void)memset(text, generation, sizeof(text));
    for (uint32_t i = 0; i < 4u; ++i)
    {
        text[i] = (uint8_t)(first >> (24u - 8u * i));
    }
    return rekey_wrapped(wrap, SKY_REKEY_LOAD_PEERS, generation, text, 4u + (size_t)count * SKY_CRYPTO_KEY_BYTES, payload);
}

#endif
