/**
 * @file
 * SKY_Crypto_t over Monocypher, and over sky_gmac.h for GMAC: see sky_crypto_library.h.
 */
#include "sky_crypto_library.h"

#include <string.h>

#include "monocypher.h"

#define SEQUENCE_BYTES 8u

static bool is_gmac(uint8_t suite)
{
    return suite == SKY_SUITE_GMAC_HEADER || suite == SKY_SUITE_GMAC_PACKET;
}

static bool is_blake2b(uint8_t suite)
{
    return suite == SKY_SUITE_BLAKE2B_HEADER || suite == SKY_SUITE_BLAKE2B_PACKET;
}

static void update(crypto_blake2b_ctx *hash, const SKY_CryptoPart_t *parts, uint32_t part_count)
{
    for (uint32_t i = 0; i < part_count; ++i)
    {
        crypto_blake2b_update(hash, parts[i].data, parts[i].bytes);
    }
}

static void Hash(void *context, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts, uint32_t part_count,
                 uint8_t *out, size_t out_bytes)
{
    crypto_blake2b_ctx hash;

    (void)context;
    crypto_blake2b_keyed_init(&hash, out_bytes, key, key_bytes);
    update(&hash, parts, part_count);
    crypto_blake2b_final(&hash, out); /* wipes the state */
}

static SKY_CryptoPlace_t *place_at(const SKY_CryptoLibrary_t *library, uint32_t place)
{
    return place < library->crypto.key_count ? &library->places[place] : NULL;
}

static void EraseKey(void *context, uint32_t place)
{
    SKY_CryptoPlace_t *at = place_at(context, place);

    if (at != NULL && at->suite != SKY_SUITE_NONE)
    {
        static const uint8_t zeros[SKY_CRYPTO_KEY_BYTES];

        if (is_gmac(at->suite))
        {
            (void)SKY_Gmac_SetKey(at->gmac, zeros); /* what was made of the key is overwritten; the context stays allocated */
        }
        crypto_wipe(at->key, sizeof(at->key));
        at->suite = SKY_SUITE_NONE;
    }
}

static bool LoadKey(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    SKY_CryptoLibrary_t *library = context;
    SKY_CryptoPlace_t   *at      = place_at(library, place);

    if (at == NULL || suite > SKY_SUITE_BLAKE2B_PACKET || (library->crypto.suites & SKY_SUITE_BIT(suite)) == 0)
    {
        return false;
    }
    EraseKey(context, place);
    if (is_gmac(suite))
    {
        if (!SKY_Gmac_SetKey(at->gmac, key))
        {
            return false;
        }
    }
    else
    {
        (void)memcpy(at->key, key, sizeof(at->key));
    }
    at->suite = suite;
    return true;
}

/* Write a sequence, big-endian. */
static void put_sequence(uint8_t *at, uint64_t sequence)
{
    for (uint32_t i = 0; i < SEQUENCE_BYTES; ++i)
    {
        at[i] = (uint8_t)(sequence >> (8u * (SEQUENCE_BYTES - 1u - i)));
    }
}

static bool Tag(void *context, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts, uint32_t part_count,
                uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    SKY_CryptoPlace_t *at                          = place_at(context, place);
    uint8_t            nonce[SKY_GMAC_NONCE_BYTES] = {0};
    uint8_t           *number                      = nonce + SKY_GMAC_NONCE_BYTES - SEQUENCE_BYTES;

    put_sequence(number, sequence);
    if (at != NULL && is_blake2b(at->suite))
    {
        crypto_blake2b_ctx hash;

        crypto_blake2b_keyed_init(&hash, SKY_CRYPTO_TAG_BYTES, at->key, sizeof(at->key));
        crypto_blake2b_update(&hash, number, SEQUENCE_BYTES);
        update(&hash, parts, part_count);
        crypto_blake2b_final(&hash, tag);
        return true;
    }
    if (at != NULL && is_gmac(at->suite) && SKY_Gmac_Tag(at->gmac, nonce, parts, part_count, tag))
    {
        return true;
    }
    (void)memset(tag, 0, SKY_CRYPTO_TAG_BYTES);
    return false;
}

static void Seal(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *plain, size_t bytes, uint8_t *sealed)
{
    crypto_aead_ctx cipher;

    (void)context;
    crypto_aead_init_ietf(&cipher, key, nonce); /* the first message under it is that of RFC 8439 */
    crypto_aead_write(&cipher, sealed, sealed + bytes, associated->data, associated->bytes, plain, bytes);
    crypto_wipe(&cipher, sizeof(cipher));
}

static bool Open(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *sealed, size_t bytes, uint8_t *plain)
{
    crypto_aead_ctx cipher;

    (void)context;
    crypto_aead_init_ietf(&cipher, key, nonce);
    const bool is_right =
        crypto_aead_read(&cipher, plain, sealed + bytes, associated->data, associated->bytes, sealed, bytes) == 0;

    crypto_wipe(&cipher, sizeof(cipher));
    if (!is_right)
    {
        crypto_wipe(plain, bytes);
    }
    return is_right;
}

static bool IsEqual(void *context, const void *one, const void *other, size_t bytes)
{
    const uint8_t *a          = one;
    const uint8_t *b          = other;
    uint8_t        difference = 0;

    (void)context;
    for (size_t i = 0; i < bytes; ++i)
    {
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
}

static void Wipe(void *context, void *secret, size_t bytes)
{
    (void)context;
    crypto_wipe(secret, bytes);
}

size_t SKY_CryptoLibrary_MemoryBytes(uint32_t key_count)
{
    return key_count == 0 || key_count > SKY_CRYPTO_LIBRARY_PLACES_MAX ? 0 : key_count * sizeof(SKY_CryptoPlace_t);
}

bool SKY_CryptoLibrary_Init(SKY_CryptoLibrary_t *library, void *memory, size_t memory_bytes, uint32_t key_count)
{
    const size_t needed   = SKY_CryptoLibrary_MemoryBytes(key_count);
    bool         has_gmac = true;

    if (needed == 0 || memory_bytes < needed)
    {
        return false;
    }
    (void)memset(memory, 0, needed);
    library->places = memory;
    for (uint32_t i = 0; i < key_count && has_gmac; ++i)
    {
        library->places[i].gmac = SKY_Gmac_New();
        has_gmac                = library->places[i].gmac != NULL;
    }
    library->crypto = (SKY_Crypto_t){
        .context   = library,
        .suites    = SKY_SUITES_BLAKE2B | (has_gmac ? SKY_SUITES_GMAC : 0u),
        .key_count = key_count,
        .Hash      = Hash,
        .LoadKey   = LoadKey,
        .EraseKey  = EraseKey,
        .Tag       = Tag,
        .Seal      = Seal,
        .Open      = Open,
        .IsEqual   = IsEqual,
        .Wipe      = Wipe,
    };
    return true;
}

void SKY_CryptoLibrary_End(SKY_CryptoLibrary_t *library)
{
    for (uint32_t i = 0; i < library->crypto.key_count; ++i)
    {
        EraseKey(library, i);
        SKY_Gmac_Free(library->places[i].gmac);
    }
    (void)memset(library, 0, sizeof(*library));
}
