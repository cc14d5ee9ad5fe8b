/**
 * @file
 * The mission's side of new keys: it wraps them, as sky_rekey.h says, and writes commands.
 */
#ifndef REKEY_RIG_H
#define REKEY_RIG_H

#include <string.h>

#include "sky_rekey.h"

#define REKEY_BOUND_BYTES 8u

/* Write a command without a key. */
static inline void rekey_command(uint8_t command, uint8_t generation, uint8_t payload[SKY_REKEY_BYTES])
{
    (void)memset(payload, 0, SKY_REKEY_BYTES);
    payload[SKY_REKEY_OFF_COMMAND]    = command;
    payload[SKY_REKEY_OFF_GENERATION] = generation;
}

/* Write a command that loads a key. @param nonce  to take; NULL: the right one */
static inline void rekey_load_with(const SKY_Crypto_t *crypto, const uint8_t *under_key, uint8_t under, SKY_Addr_t satellite,
                                   uint8_t generation, const uint8_t *key, const uint8_t *nonce, uint8_t payload[SKY_REKEY_BYTES])
{
    const uint8_t          bound[REKEY_BOUND_BYTES] = {SKY_REKEY_LOAD,
                                                       generation,
                                                       under,
                                                       0,
                                                       (uint8_t)(satellite.plane >> 8),
                                                       (uint8_t)satellite.plane,
                                                       (uint8_t)(satellite.slot >> 8),
                                                       (uint8_t)satellite.slot};
    const SKY_CryptoPart_t info[]                   = {{"skymemory 2 wrap", 16}, {bound, sizeof(bound)}};
    const SKY_CryptoPart_t all[]                    = {{bound, sizeof(bound)}, {key, SKY_CRYPTO_KEY_BYTES}};
    uint8_t                keys[2u * SKY_CRYPTO_KEY_BYTES];

    rekey_command(SKY_REKEY_LOAD, generation, payload);
    payload[SKY_REKEY_OFF_UNDER] = under;
    SKY_Crypto_Kdf(crypto, under_key, info, 2, keys, sizeof(keys));
    if (nonce != NULL)
    {
        (void)memcpy(payload + SKY_REKEY_OFF_NONCE, nonce, SKY_CRYPTO_NONCE_BYTES);
    }
    else
    {
        crypto->Hash(crypto->context, keys + SKY_CRYPTO_KEY_BYTES, SKY_CRYPTO_KEY_BYTES, all, 2, payload + SKY_REKEY_OFF_NONCE,
                     SKY_CRYPTO_NONCE_BYTES);
    }
    crypto->Seal(crypto->context, keys, payload + SKY_REKEY_OFF_NONCE, &info[1], key, SKY_CRYPTO_KEY_BYTES,
                 payload + SKY_REKEY_OFF_SEALED);
}

static inline void rekey_load(const SKY_Crypto_t *crypto, const uint8_t *under_key, uint8_t under, SKY_Addr_t satellite,
                              uint8_t generation, const uint8_t *key, uint8_t payload[SKY_REKEY_BYTES])
{
    rekey_load_with(crypto, under_key, under, satellite, generation, key, NULL, payload);
}

#endif
