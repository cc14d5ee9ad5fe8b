/**
 * @file
 * GMAC by OpenSSL: what is allocated when, and what happens without memory. OpenSSL asks this program for its memory.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "check.h"
#include "sky_crypto_library.h"

#define PLACES 32u

static unsigned allocated;         /* blocks, since the start */
static unsigned left = UINT32_MAX; /* blocks until there is no memory */

static bool may_allocate(void)
{
    ++allocated;
    left -= left == 0 || left == UINT32_MAX ? 0 : 1u;
    return left != 0;
}

static void *allocate(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return may_allocate() ? malloc(bytes) : NULL;
}

static void *reallocate(void *block, size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return may_allocate() ? realloc(block, bytes) : NULL;
}

static void give_back(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block);
}

static SKY_CryptoLibrary_t library;
static SKY_CryptoPlace_t   places[PLACES];

static void test_nothing_is_allocated_after_the_start(void)
{
    static const uint8_t   data[6152];
    const SKY_CryptoPart_t parts[]                   = {{data, 6}, {data + 6, 146}, {data + 152, 6000}};
    uint8_t                key[SKY_CRYPTO_KEY_BYTES] = {1};
    uint8_t                tag[SKY_CRYPTO_TAG_BYTES];
    const SKY_Crypto_t    *crypto = &library.crypto;

    CHECK(SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES));
    CHECK_EQ(crypto->suites, SKY_SUITES_GMAC | SKY_SUITES_BLAKE2B);
    CHECK(allocated >= PLACES);
    const unsigned before = allocated;

    CHECK(SKY_Crypto_SelfTest(crypto));
    for (uint32_t i = 0; i < 10u * PLACES; ++i)
    {
        key[1] = (uint8_t)i;
        CHECK(crypto->LoadKey(crypto->context, i % PLACES, SKY_SUITE_GMAC_PACKET, key));
        for (uint64_t sequence = 1; sequence <= 10; ++sequence)
        {
            CHECK(crypto->Tag(crypto->context, i % PLACES, sequence, parts, 3, tag));
        }
        crypto->EraseKey(crypto->context, i % PLACES);
    }
    CHECK_EQ(allocated, before);
    SKY_CryptoLibrary_End(&library);
}

/* Somewhere in the middle of the places the memory ends. */
static void test_without_memory_there_is_no_gmac(void)
{
    for (unsigned blocks = 1; blocks < 2u * PLACES; blocks += 5u)
    {
        left = blocks;
        CHECK(SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES));
        CHECK_EQ(library.crypto.suites, SKY_SUITES_BLAKE2B);
        CHECK(!library.crypto.LoadKey(&library, 0, SKY_SUITE_GMAC_HEADER, (const uint8_t *)places));
        CHECK(SKY_Crypto_SelfTest(&library.crypto));
        left = UINT32_MAX;
        SKY_CryptoLibrary_End(&library);
    }
}

int main(void)
{
    CHECK(CRYPTO_set_mem_functions(allocate, reallocate, give_back) == 1);
    RUN(test_nothing_is_allocated_after_the_start);
    RUN(test_without_memory_there_is_no_gmac);
    return CHECK_RESULT();
}
