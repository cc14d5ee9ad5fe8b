/**
 * @file
 * The cryptographic library, and what the core builds over it. test_crypto_answers.py compares both with other people's vectors.
 */
#include "crypto_rig.h"

static crypto_rig_t rig;

static const uint8_t key[SKY_CRYPTO_KEY_BYTES] = {1, 2, 3};
static const uint8_t text[6152]                = "The tag of a whole packet covers so much.";

static bool has_gmac(void)
{
    return (rig.crypto.suites & SKY_SUITE_BIT(SKY_SUITE_GMAC_PACKET)) != 0;
}

/* RFC 7693, appendix A. */
static void test_blake2b_of_abc(void)
{
    static const uint8_t   right[64] = {0xBA, 0x80, 0xA5, 0x3F, 0x98, 0x1C, 0x4D, 0x0D, 0x6A, 0x27, 0x97, 0xB6, 0x9F,
                                        0x12, 0xF6, 0xE9, 0x4C, 0x21, 0x2F, 0x14, 0x68, 0x5A, 0xC4, 0xB7, 0x4B, 0x12,
                                        0xBB, 0x6F, 0xDB, 0xFF, 0xA2, 0xD1, 0x7D, 0x87, 0xC5, 0x39, 0x2A, 0xAB, 0x79,
                                        0x2D, 0xC2, 0x52, 0xD5, 0xDE, 0x45, 0x33, 0xCC, 0x95, 0x18, 0xD3, 0x8A, 0xA8,
                                        0xDB, 0xF1, 0x92, 0x5A, 0xB9, 0x23, 0x86, 0xED, 0xD4, 0x00, 0x99, 0x23};
    const SKY_CryptoPart_t parts[]   = {{"a", 1}, {NULL, 0}, {"bc", 2}};
    uint8_t                out[64];

    crypto_rig_open(&rig);
    rig.crypto.Hash(rig.crypto.context, NULL, 0, parts, 3, out, sizeof(out));
    CHECK(memcmp(out, right, sizeof(right)) == 0);
    crypto_rig_close(&rig);
}

static void test_a_right_library_passes(void)
{
    crypto_rig_open(&rig);
    CHECK(SKY_Crypto_SelfTest(&rig.crypto));
    CHECK(SKY_Crypto_SelfTest(&rig.library.crypto));
    CHECK_EQ(crypto_rig_keys(&rig), 0);
    CHECK(rig.loaded >= 2u);
    crypto_rig_close(&rig);
}

static void test_every_wrong_answer_is_found(void)
{
    for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; ++fault)
    {
        crypto_rig_open(&rig);
        rig.fault = (crypto_fault_t)fault;
        /* The first key that it loads is right, so one suite alone would pass. */
        CHECK(!SKY_Crypto_SelfTest(&rig.crypto));
        crypto_rig_close(&rig);
    }
}

/* What a library does not offer is not asked for. */
static void test_suites_that_are_not_offered_are_not_tested(void)
{
    crypto_rig_open(&rig);
    rig.crypto.suites    = 0;
    rig.crypto.key_count = 0;
    rig.fault            = FAULT_TAG;
    CHECK(SKY_Crypto_SelfTest(&rig.crypto));
    CHECK_EQ(rig.loaded, 0);
    rig.fault         = FAULT_NONE;
    rig.crypto.suites = SKY_SUITES_BLAKE2B;
    CHECK(!SKY_Crypto_SelfTest(&rig.crypto)); /* there is no place for a key */
    CHECK_EQ(rig.loaded, 0);
    crypto_rig_close(&rig);
}

static void test_a_tag_depends_on_key_sequence_and_parts(void)
{
    static const uint8_t suites[] = {SKY_SUITE_GMAC_HEADER, SKY_SUITE_GMAC_PACKET, SKY_SUITE_BLAKE2B_HEADER,
                                     SKY_SUITE_BLAKE2B_PACKET};
    uint8_t              other_key[SKY_CRYPTO_KEY_BYTES] = {1, 2, 3};
    uint8_t              changed[sizeof(text)];
    SKY_CryptoPart_t     whole    = {text, sizeof(text)};
    SKY_CryptoPart_t     pieces[] = {{text, 1}, {text + 1, 0}, {text + 1, 200}, {text + 201, sizeof(text) - 201u}};
    uint8_t              tag[SKY_CRYPTO_TAG_BYTES];

    other_key[31] = 1;
    crypto_rig_open(&rig);
    for (size_t i = 0; i < sizeof(suites); ++i)
    {
        if ((rig.crypto.suites & SKY_SUITE_BIT(suites[i])) == 0)
        {
            continue;
        }
        CHECK(rig.crypto.LoadKey(rig.crypto.context, 3, suites[i], key));
        CHECK(rig.crypto.Tag(rig.crypto.context, 3, 9, &whole, 1, tag));
        CHECK(SKY_Crypto_IsTag(&rig.crypto, 3, 9, pieces, 4, tag));
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 10, pieces, 4, tag));
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 9 | UINT64_C(1) << 63, pieces, 4, tag));
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 9, pieces, 3, tag));
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 9, NULL, 0, tag));
        for (size_t at = 0; at < sizeof(text); at += 617)
        {
            (void)memcpy(changed, text, sizeof(text));
            changed[at] = (uint8_t)(changed[at] ^ 4u);
            whole.data  = changed;
            CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 9, &whole, 1, tag));
        }
        whole.data = text;
        for (unsigned bit = 0; bit < 8u * SKY_CRYPTO_TAG_BYTES; ++bit)
        {
            tag[bit / 8u] = (uint8_t)(tag[bit / 8u] ^ 1u << bit % 8u);
            CHECK(!SKY_Crypto_IsTag(&rig.crypto, 3, 9, &whole, 1, tag));
            tag[bit / 8u] = (uint8_t)(tag[bit / 8u] ^ 1u << bit % 8u);
        }
        CHECK(rig.crypto.LoadKey(rig.crypto.context, 4, suites[i], other_key));
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, 4, 9, &whole, 1, tag));
        CHECK(SKY_Crypto_IsTag(&rig.crypto, 3, 9, &whole, 1, tag)); /* places do not share anything */
    }
    crypto_rig_close(&rig);
}

static void test_a_place_takes_one_key_after_the_other(void)
{
    const SKY_CryptoPart_t part = {text, 152};
    uint8_t                first[SKY_CRYPTO_TAG_BYTES], second[SKY_CRYPTO_TAG_BYTES];
    const uint8_t          zeros[SKY_CRYPTO_TAG_BYTES] = {0};
    const SKY_Crypto_t    *crypto                      = &rig.library.crypto;

    crypto_rig_open(&rig);
    for (uint8_t suite = has_gmac() ? 1 : 3; suite <= SKY_SUITE_BLAKE2B_PACKET; ++suite)
    {
        CHECK(crypto->LoadKey(crypto->context, 0, suite, key));
        CHECK(crypto->Tag(crypto->context, 0, 1, &part, 1, first));
        CHECK(crypto->LoadKey(crypto->context, 0, SKY_SUITE_BLAKE2B_HEADER, text));
        CHECK(crypto->Tag(crypto->context, 0, 1, &part, 1, second));
        CHECK(memcmp(first, second, sizeof(first)) != 0);
        crypto->EraseKey(crypto->context, 0);
        crypto->EraseKey(crypto->context, 0);
        (void)memset(second, 1, sizeof(second));
        CHECK(!crypto->Tag(crypto->context, 0, 1, &part, 1, second));
        CHECK(memcmp(second, zeros, sizeof(zeros)) == 0);
        CHECK(crypto->LoadKey(crypto->context, 0, suite, key));
        CHECK(SKY_Crypto_IsTag(crypto, 0, 1, &part, 1, first));
    }
    crypto_rig_close(&rig);
}

static void test_a_library_refuses_what_it_has_not(void)
{
    const SKY_CryptoPart_t part   = {text, 152};
    const SKY_Crypto_t    *crypto = &rig.library.crypto;
    uint8_t                tag[SKY_CRYPTO_TAG_BYTES];

    crypto_rig_open(&rig);
    CHECK(!crypto->LoadKey(crypto->context, RIG_PLACES, SKY_SUITE_BLAKE2B_HEADER, key));
    CHECK(!crypto->LoadKey(crypto->context, 0, SKY_SUITE_NONE, key));
    CHECK(!crypto->LoadKey(crypto->context, 0, SKY_SUITE_HANDSHAKE, key));
    CHECK(!crypto->LoadKey(crypto->context, 0, 255, key));
    CHECK(!crypto->Tag(crypto->context, 0, 1, &part, 1, tag));
    CHECK(!crypto->Tag(crypto->context, RIG_PLACES, 1, &part, 1, tag));
    crypto->EraseKey(crypto->context, RIG_PLACES);
    crypto_rig_close(&rig);
    CHECK_EQ(SKY_CryptoLibrary_MemoryBytes(0), 0);
    CHECK_EQ(SKY_CryptoLibrary_MemoryBytes(SKY_CRYPTO_LIBRARY_PLACES_MAX + 1u), 0);
    CHECK(!SKY_CryptoLibrary_Init(&rig.library, rig.places, sizeof(rig.places), 0));
    CHECK(!SKY_CryptoLibrary_Init(&rig.library, rig.places, sizeof(rig.places) - 1u, RIG_PLACES));
}

static void test_a_wrapped_key_opens_only_as_it_was_sealed(void)
{
    const SKY_CryptoPart_t associated = {text, 60};
    const SKY_CryptoPart_t other      = {text, 59};
    uint8_t                nonce[12]  = {7};
    const uint8_t          zeros[32]  = {0};
    uint8_t                wrapped[48], plain[32];
    const SKY_Crypto_t    *crypto = &rig.library.crypto;

    crypto_rig_open(&rig);
    crypto->Seal(crypto->context, key, nonce, &associated, text, 32, wrapped);
    CHECK(crypto->Open(crypto->context, key, nonce, &associated, wrapped, 32, plain));
    CHECK(memcmp(plain, text, 32) == 0);
    CHECK(!crypto->Open(crypto->context, key, nonce, &other, wrapped, 32, plain));
    CHECK(memcmp(plain, zeros, 32) == 0);
    for (unsigned bit = 0; bit < 8u * sizeof(wrapped); ++bit)
    {
        wrapped[bit / 8u] = (uint8_t)(wrapped[bit / 8u] ^ 1u << bit % 8u);
        CHECK(!crypto->Open(crypto->context, key, nonce, &associated, wrapped, 32, plain));
        wrapped[bit / 8u] = (uint8_t)(wrapped[bit / 8u] ^ 1u << bit % 8u);
    }
    nonce[11] = 1;
    CHECK(!crypto->Open(crypto->context, key, nonce, &associated, wrapped, 32, plain));
    crypto_rig_close(&rig);
}

/* A long key is padded, not hashed: 128 bytes are a block. */
static void test_hmac_takes_keys_up_to_a_block(void)
{
    uint8_t                block[SKY_CRYPTO_HMAC_KEY_BYTES] = {1, 2, 3};
    const SKY_CryptoPart_t part                             = {text, 5};
    uint8_t                one[SKY_CRYPTO_HASH_BYTES], other[SKY_CRYPTO_HASH_BYTES];

    crypto_rig_open(&rig);
    SKY_Crypto_Hmac(&rig.crypto, key, 3, &part, 1, one);
    SKY_Crypto_Hmac(&rig.crypto, block, sizeof(block), &part, 1, other);
    CHECK(memcmp(one, other, sizeof(one)) == 0);
    block[127] = 1;
    SKY_Crypto_Hmac(&rig.crypto, block, sizeof(block), &part, 1, other);
    CHECK(memcmp(one, other, sizeof(one)) != 0);
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_blake2b_of_abc);
    RUN(test_a_right_library_passes);
    RUN(test_every_wrong_answer_is_found);
    RUN(test_suites_that_are_not_offered_are_not_tested);
    RUN(test_a_tag_depends_on_key_sequence_and_parts);
    RUN(test_a_place_takes_one_key_after_the_other);
    RUN(test_a_library_refuses_what_it_has_not);
    RUN(test_a_wrapped_key_opens_only_as_it_was_sealed);
    RUN(test_hmac_takes_keys_up_to_a_block);
    return CHECK_RESULT();
}
