/**
 * @file
 * HMAC, key derivation and the self-test over a cryptographic library: see sky_crypto.h.
 */
#include "sky_crypto.h"

#include <string.h>

#include "sky_assert.h"

#define INNER_PAD 0x36u
#define OUTER_PAD 0x5Cu

/* One pass of HMAC: the hash of the padded key and the parts. */
static void hash_padded(const SKY_Crypto_t *crypto, const uint8_t *key, size_t key_bytes, uint8_t pad,
                        const SKY_CryptoPart_t *parts, uint32_t part_count, uint8_t out[SKY_CRYPTO_HASH_BYTES])
{
    uint8_t          block[SKY_CRYPTO_HMAC_KEY_BYTES];
    SKY_CryptoPart_t all[SKY_CRYPTO_PARTS_MAX];

    SKY_ASSERT(key_bytes <= sizeof(block));
    SKY_ASSERT(part_count < SKY_CRYPTO_PARTS_MAX);
    (void)memset(block, pad, sizeof(block));
    for (size_t i = 0; i < key_bytes; ++i)
    {
        block[i] = (uint8_t)(block[i] ^ key[i]);
    }
    all[0] = (SKY_CryptoPart_t){block, sizeof(block)};
    for (uint32_t i = 0; i < part_count; ++i)
    {
        all[i + 1u] = parts[i];
    }
    crypto->Hash(crypto->context, NULL, 0, all, part_count + 1u, out, SKY_CRYPTO_HASH_BYTES);
    crypto->Wipe(crypto->context, block, sizeof(block));
}

void SKY_Crypto_Hmac(const SKY_Crypto_t *crypto, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts,
                     uint32_t part_count, uint8_t out[SKY_CRYPTO_HASH_BYTES])
{
    uint8_t                inner[SKY_CRYPTO_HASH_BYTES];
    const SKY_CryptoPart_t part = {inner, sizeof(inner)};

    SKY_ASSERT(key != NULL || key_bytes == 0);
    SKY_ASSERT(part_count <= SKY_CRYPTO_HMAC_PARTS_MAX);
    hash_padded(crypto, key, key_bytes, INNER_PAD, parts, part_count, inner);
    hash_padded(crypto, key, key_bytes, OUTER_PAD, &part, 1, out);
    crypto->Wipe(crypto->context, inner, sizeof(inner));
}

void SKY_Crypto_Kdf(const SKY_Crypto_t *crypto, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *info,
                    uint32_t part_count, uint8_t *out, size_t out_bytes)
{
    static const uint8_t   round = 1;
    uint8_t                extracted[SKY_CRYPTO_HASH_BYTES];
    uint8_t                expanded[SKY_CRYPTO_HASH_BYTES];
    SKY_CryptoPart_t       all[SKY_CRYPTO_HMAC_PARTS_MAX];
    const SKY_CryptoPart_t secret = {key, SKY_CRYPTO_KEY_BYTES};

    SKY_ASSERT(part_count <= SKY_CRYPTO_KDF_PARTS_MAX);
    SKY_ASSERT(out_bytes >= 1u);
    SKY_ASSERT(out_bytes <= sizeof(expanded));
    for (uint32_t i = 0; i < part_count; ++i)
    {
        all[i] = info[i];
    }
    all[part_count] = (SKY_CryptoPart_t){&round, sizeof(round)};
    /* An empty salt is a key of zeros, which is what an empty key is padded to. */
    SKY_Crypto_Hmac(crypto, NULL, 0, &secret, 1, extracted);
    SKY_Crypto_Hmac(crypto, extracted, sizeof(extracted), all, part_count + 1u, expanded);
    (void)memcpy(out, expanded, out_bytes);
    crypto->Wipe(crypto->context, extracted, sizeof(extracted));
    crypto->Wipe(crypto->context, expanded, sizeof(expanded));
}

bool SKY_Crypto_IsTag(const SKY_Crypto_t *crypto, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts,
                      uint32_t part_count, const uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    uint8_t right[SKY_CRYPTO_TAG_BYTES];

    SKY_ASSERT(place < crypto->key_count);
    SKY_ASSERT(part_count <= SKY_CRYPTO_PARTS_MAX);
    return crypto->Tag(crypto->context, place, sequence, parts, part_count, right) &&
           crypto->IsEqual(crypto->context, right, tag, sizeof(right));
}

/* --- self-test --------------------------------------------------------------------------------------------------------------- */

#define TEXT_BYTES      152u /* as much as a header-scoped tag covers: more than a block of BLAKE2b, no multiple of one of AES */
#define TEXT_FIRST_PART 100u
#define SEQUENCE        UINT64_C(0x0102030405060708)

/* A known answer: the tag of the text under the test key. */
typedef struct
{
    uint8_t suite;
    uint8_t tag[SKY_CRYPTO_TAG_BYTES];
} KnownTag_t;

/* tests/fsw_apps/test_crypto_answers.py computes these anew. */
static const uint8_t known_hash[SKY_CRYPTO_HASH_BYTES] = {
    0x5B, 0x3F, 0xDA, 0xFC, 0x98, 0x7C, 0x22, 0x74, 0x5B, 0xA7, 0x0D, 0x09, 0xFD, 0x67, 0x5E, 0xF7,
    0x19, 0x2C, 0xCF, 0x6B, 0xE5, 0x31, 0x80, 0x0E, 0x12, 0x3A, 0x5F, 0x9D, 0xF2, 0x82, 0x5E, 0x9D,
    0x15, 0x62, 0xDB, 0xFB, 0xCE, 0xD8, 0xBD, 0x10, 0x84, 0x11, 0x5E, 0x72, 0xF8, 0x01, 0xFC, 0xC8,
    0x14, 0xE2, 0x4E, 0x4B, 0x51, 0x32, 0xC1, 0xD0, 0x56, 0xF7, 0x9C, 0x16, 0xB6, 0x93, 0x3C, 0x5B};
static const uint8_t known_kdf[SKY_CRYPTO_KEY_BYTES] = {0x43, 0x18, 0x79, 0x44, 0x7A, 0xC4, 0xFB, 0x76, 0xAC, 0x22, 0x1E,
                                                        0x87, 0xA5, 0xF8, 0x22, 0xAF, 0x2D, 0x96, 0x6A, 0x72, 0x95, 0xC2,
                                                        0x24, 0x16, 0xB8, 0x0E, 0x99, 0xAA, 0xB2, 0xC7, 0x89, 0x72};
static const uint8_t known_sealed[SKY_CRYPTO_KEY_BYTES + SKY_CRYPTO_TAG_BYTES] = {
    0x94, 0x3E, 0x79, 0xED, 0xC0, 0xE6, 0x9A, 0x2D, 0x7F, 0x52, 0xD9, 0xF8, 0x61, 0x32, 0xD3, 0x54,
    0x31, 0xA9, 0xE2, 0xCB, 0x39, 0xEC, 0xCF, 0x2A, 0x8D, 0x59, 0xED, 0x42, 0x0B, 0xBC, 0x0F, 0xD2,
    0xDF, 0xC5, 0x74, 0x06, 0x4A, 0x69, 0x9C, 0x61, 0x5A, 0x67, 0x94, 0x9F, 0x36, 0xBD, 0x3E, 0xFB};
static const KnownTag_t known_tags[] = {
    {SKY_SUITE_GMAC_HEADER, {0x24, 0x28, 0x5C, 0x02, 0x7E, 0x86, 0x9D, 0xAB, 0x9C, 0xC7, 0x73, 0x12, 0xCC, 0xB9, 0xB5, 0x1D}},
    {SKY_SUITE_GMAC_PACKET, {0x24, 0x28, 0x5C, 0x02, 0x7E, 0x86, 0x9D, 0xAB, 0x9C, 0xC7, 0x73, 0x12, 0xCC, 0xB9, 0xB5, 0x1D}},
    {SKY_SUITE_BLAKE2B_HEADER, {0xA4, 0x50, 0xF6, 0xAE, 0x77, 0xEB, 0xB4, 0xB8, 0x84, 0xB2, 0xF4, 0x47, 0xD8, 0xE8, 0xFD, 0x89}},
    {SKY_SUITE_BLAKE2B_PACKET, {0xA4, 0x50, 0xF6, 0xAE, 0x77, 0xEB, 0xB4, 0xB8, 0x84, 0xB2, 0xF4, 0x47, 0xD8, 0xE8, 0xFD, 0x89}},
};

/* Key and text: bytes that count up. */
static void fill(uint8_t *bytes, size_t count)
{
    SKY_ASSERT(bytes != NULL);
    SKY_ASSERT(count <= TEXT_BYTES);
    for (size_t i = 0; i < count; ++i)
    {
        bytes[i] = (uint8_t)i;
    }
}

static bool knows_hash(const SKY_Crypto_t *crypto, const uint8_t *key, const SKY_CryptoPart_t parts[2])
{
    uint8_t out[SKY_CRYPTO_HASH_BYTES];

    SKY_ASSERT(sizeof(known_hash) == sizeof(out));
    SKY_ASSERT(sizeof(known_kdf) <= sizeof(out));
    crypto->Hash(crypto->context, key, SKY_CRYPTO_KEY_BYTES, parts, 2, out, sizeof(out));
    if (memcmp(out, known_hash, sizeof(known_hash)) != 0)
    {
        return false;
    }
    SKY_Crypto_Kdf(crypto, key, parts, 2, out, sizeof(known_kdf));
    return memcmp(out, known_kdf, sizeof(known_kdf)) == 0;
}

/* Wrapping gives the known answer, is undone, and one flipped bit is found. */
static bool knows_wrapping(const SKY_Crypto_t *crypto, const uint8_t *key, const uint8_t *text)
{
    static const uint8_t   nonce[SKY_CRYPTO_NONCE_BYTES] = {1};
    const SKY_CryptoPart_t associated                    = {text, TEXT_FIRST_PART};
    uint8_t                sealed[SKY_CRYPTO_KEY_BYTES + SKY_CRYPTO_TAG_BYTES];
    uint8_t                plain[SKY_CRYPTO_KEY_BYTES];

    SKY_ASSERT(sizeof(known_sealed) == sizeof(sealed));
    SKY_ASSERT(sizeof(plain) <= TEXT_BYTES);
    crypto->Seal(crypto->context, key, nonce, &associated, text, sizeof(plain), sealed);
    if (memcmp(sealed, known_sealed, sizeof(sealed)) != 0 ||
        !crypto->Open(crypto->context, key, nonce, &associated, sealed, sizeof(plain), plain) ||
        memcmp(plain, text, sizeof(plain)) != 0)
    {
        return false;
    }
    sealed[0] = (uint8_t)(sealed[0] ^ 1u);
    return !crypto->Open(crypto->context, key, nonce, &associated, sealed, sizeof(plain), plain);
}

static bool compares(const SKY_Crypto_t *crypto)
{
    const uint8_t zeros[SKY_CRYPTO_TAG_BYTES] = {0};
    uint8_t       other[SKY_CRYPTO_TAG_BYTES];

    SKY_ASSERT(crypto->IsEqual != NULL);
    SKY_ASSERT(crypto->Wipe != NULL);
    fill(other, sizeof(other));
    if (crypto->IsEqual(crypto->context, zeros, other, sizeof(other)))
    {
        return false;
    }
    crypto->Wipe(crypto->context, other, sizeof(other));
    return memcmp(zeros, other, sizeof(other)) == 0 && crypto->IsEqual(crypto->context, zeros, other, sizeof(other));
}

/* A key that is loaded gives the known tag, and one that is erased gives none. */
static bool knows_tag(const SKY_Crypto_t *crypto, const KnownTag_t *known, const uint8_t *key, const SKY_CryptoPart_t parts[2])
{
    SKY_ASSERT(known->suite >= SKY_SUITE_GMAC_HEADER);
    SKY_ASSERT(known->suite <= SKY_SUITE_BLAKE2B_PACKET);
    if (!crypto->LoadKey(crypto->context, 0, known->suite, key))
    {
        return false;
    }
    const bool is_known = SKY_Crypto_IsTag(crypto, 0, SEQUENCE, parts, 2, known->tag) &&
                          !SKY_Crypto_IsTag(crypto, 0, SEQUENCE + 1u, parts, 2, known->tag);

    crypto->EraseKey(crypto->context, 0);
    return is_known && !SKY_Crypto_IsTag(crypto, 0, SEQUENCE, parts, 2, known->tag);
}

bool SKY_Crypto_SelfTest(const SKY_Crypto_t *crypto)
{
    uint8_t                key[SKY_CRYPTO_KEY_BYTES];
    uint8_t                text[TEXT_BYTES];
    const SKY_CryptoPart_t parts[2] = {{text, TEXT_FIRST_PART}, {text + TEXT_FIRST_PART, TEXT_BYTES - TEXT_FIRST_PART}};
    bool                   is_right = true;

    SKY_ASSERT(crypto != NULL);
    fill(key, sizeof(key));
    fill(text, sizeof(text));
    if (!knows_hash(crypto, key, parts) || !knows_wrapping(crypto, key, text) || !compares(crypto) ||
        (crypto->key_count == 0 && crypto->suites != 0))
    {
        return false;
    }
    for (uint32_t i = 0; i < sizeof(known_tags) / sizeof(known_tags[0]); ++i)
    {
        const bool is_there = (crypto->suites & SKY_SUITE_BIT(known_tags[i].suite)) != 0;

        is_right = is_right && (!is_there || knows_tag(crypto, &known_tags[i], key, parts));
    }
    return is_right;
}
