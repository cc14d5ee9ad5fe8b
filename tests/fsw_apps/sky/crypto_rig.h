/**
 * @file
 * A cryptographic library for tests, and one whose functions give wrong answers where a test says so.
 */
#ifndef CRYPTO_RIG_H
#define CRYPTO_RIG_H

#include <string.h>

#include "check.h"
#include "sky_crypto_library.h"

#define RIG_PLACES 96u

typedef enum
{
    FAULT_NONE = 0,
    FAULT_HASH_OF_PACKETS, /* hashes with a key of 32 bytes */
    FAULT_HASH_OF_KEYS,    /* hashes without a key */
    FAULT_HASH_IS_ZERO,
    FAULT_LOADS_NOTHING,
    FAULT_LOADS_ONE, /* and no more */
    FAULT_ERASES_NOTHING,
    FAULT_TAG,
    FAULT_TAG_IGNORES_SEQUENCE,
    FAULT_SEAL,
    FAULT_OPENS_NOTHING,
    FAULT_OPENS_ALL,
    FAULT_OPENS_WRONG,
    FAULT_ALL_EQUAL,
    FAULT_NONE_EQUAL,
    FAULT_WIPES_NOTHING,
    FAULT_COUNT
} crypto_fault_t;

typedef struct
{
    SKY_CryptoLibrary_t library;
    SKY_CryptoPlace_t   places[RIG_PLACES];
    SKY_Crypto_t        crypto; /* what the core gets */
    crypto_fault_t      fault;
    unsigned            loaded;              /* keys, since the start */
    unsigned            hashes;              /* made since the start */
    bool                is_full[RIG_PLACES]; /* which places hold a key */
} crypto_rig_t;

static inline void rig_hash(void *context, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts,
                            uint32_t part_count, uint8_t *out, size_t out_bytes)
{
    crypto_rig_t *rig = context;

    ++rig->hashes;
    rig->library.crypto.Hash(&rig->library, key, key_bytes, parts, part_count, out, out_bytes);
    if ((rig->fault == FAULT_HASH_OF_PACKETS && key_bytes != 0) || (rig->fault == FAULT_HASH_OF_KEYS && key_bytes == 0))
    {
        out[0] = (uint8_t)(out[0] ^ 1u);
    }
    if (rig->fault == FAULT_HASH_IS_ZERO)
    {
        (void)memset(out, 0, out_bytes);
    }
}

static inline bool rig_load_key(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    crypto_rig_t *rig = context;

    ++rig->loaded;
    if (rig->fault == FAULT_LOADS_NOTHING || (rig->fault == FAULT_LOADS_ONE && rig->loaded > 1u))
    {
        return false;
    }
    rig->is_full[place] = true;
    return rig->library.crypto.LoadKey(&rig->library, place, suite, key);
}

static inline void rig_erase_key(void *context, uint32_t place)
{
    crypto_rig_t *rig = context;

    if (rig->fault != FAULT_ERASES_NOTHING)
    {
        rig->is_full[place] = false;
        rig->library.crypto.EraseKey(&rig->library, place);
    }
}

static inline bool rig_tag(void *context, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts, uint32_t part_count,
                           uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    crypto_rig_t  *rig   = context;
    const uint64_t taken = rig->fault == FAULT_TAG_IGNORES_SEQUENCE ? UINT64_C(0x0102030405060708) : sequence;
    const bool     made  = rig->library.crypto.Tag(&rig->library, place, taken, parts, part_count, tag);

    if (rig->fault == FAULT_TAG)
    {
        tag[15] = (uint8_t)(tag[15] ^ 0x80u);
    }
    return made;
}

static inline void rig_seal(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                            const SKY_CryptoPart_t *associated, const uint8_t *plain, size_t bytes, uint8_t *sealed)
{
    crypto_rig_t *rig = context;

    rig->library.crypto.Seal(&rig->library, key, nonce, associated, plain, bytes, sealed);
    if (rig->fault == FAULT_SEAL)
    {
        sealed[bytes] = (uint8_t)(sealed[bytes] ^ 1u);
    }
}

static inline bool rig_open_sealed(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES],
                                   const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES], const SKY_CryptoPart_t *associated,
                                   const uint8_t *sealed, size_t bytes, uint8_t *plain)
{
    crypto_rig_t *rig    = context;
    const bool    opened = rig->library.crypto.Open(&rig->library, key, nonce, associated, sealed, bytes, plain);

    if (rig->fault == FAULT_OPENS_WRONG)
    {
        plain[0] = (uint8_t)(plain[0] ^ 1u);
    }
    return (opened || rig->fault == FAULT_OPENS_ALL) && rig->fault != FAULT_OPENS_NOTHING;
}

static inline bool rig_is_equal(void *context, const void *one, const void *other, size_t bytes)
{
    crypto_rig_t *rig   = context;
    const bool    equal = rig->library.crypto.IsEqual(&rig->library, one, other, bytes);

    return (equal || rig->fault == FAULT_ALL_EQUAL) && rig->fault != FAULT_NONE_EQUAL;
}

static inline void rig_wipe(void *context, void *secret, size_t bytes)
{
    crypto_rig_t *rig = context;

    if (rig->fault != FAULT_WIPES_NOTHING)
    {
        rig->library.crypto.Wipe(&rig->library, secret, bytes);
    }
}

static inline void crypto_rig_open(crypto_rig_t *rig)
{
    (void)memset(rig, 0, sizeof(*rig));
    CHECK(SKY_CryptoLibrary_Init(&rig->library, rig->places, sizeof(rig->places), RIG_PLACES));
    rig->crypto = (SKY_Crypto_t){
        .context   = rig,
        .suites    = rig->library.crypto.suites,
        .key_count = RIG_PLACES,
        .Hash      = rig_hash,
        .LoadKey   = rig_load_key,
        .EraseKey  = rig_erase_key,
        .Tag       = rig_tag,
        .Seal      = rig_seal,
        .Open      = rig_open_sealed,
        .IsEqual   = rig_is_equal,
        .Wipe      = rig_wipe,
    };
}

static inline void crypto_rig_close(crypto_rig_t *rig)
{
    SKY_CryptoLibrary_End(&rig->library);
}

/* Count the places that hold a key. */
static inline unsigned crypto_rig_keys(const crypto_rig_t *rig)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < RIG_PLACES; ++i)
    {
        count += rig->is_full[i] ? 1u : 0u;
    }
    return count;
}

#endif
