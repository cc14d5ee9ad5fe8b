/**
 * @file
 * A program that looks for OpenSSL on a system that has none.
 */
#include <string.h>

#include "check.h"
#include "sky_crypto_library.h"

static unsigned asked;

/* The linker calls this in place of dlopen. */
void *__wrap_dlopen(const char *name, int mode);

void *__wrap_dlopen(const char *name, int mode)
{
    (void)mode;
    asked += strncmp(name, "libcrypto.so.", strlen("libcrypto.so.")) == 0 ? 1u : 0u;
    return NULL;
}

static void test_there_are_the_suites_of_blake2b(void)
{
    static const uint8_t key[SKY_CRYPTO_KEY_BYTES];
    SKY_CryptoLibrary_t  library;
    SKY_CryptoPlace_t    places[2];

    for (unsigned round = 0; round < 2; ++round)
    {
        CHECK(SKY_CryptoLibrary_Init(&library, places, sizeof(places), 2));
        CHECK_EQ(library.crypto.suites, SKY_SUITES_BLAKE2B);
        CHECK(SKY_Crypto_SelfTest(&library.crypto));
        CHECK(!library.crypto.LoadKey(&library, 0, SKY_SUITE_GMAC_HEADER, key));
        CHECK(library.crypto.LoadKey(&library, 0, SKY_SUITE_BLAKE2B_HEADER, key));
        SKY_CryptoLibrary_End(&library);
    }
    CHECK_EQ(asked, 2); /* for two versions, and once */
}

int main(void)
{
    RUN(test_there_are_the_suites_of_blake2b);
    return CHECK_RESULT();
}
