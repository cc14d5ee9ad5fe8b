/**
 * @file
 * GMAC by the OpenSSL that the system has, looked for at run time.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"
#include "sky_crypto_library.h"

#define PLACES  2u
#define THREADS 8u

static void *make(void *has_gmac)
{
    SKY_CryptoLibrary_t library;
    SKY_CryptoPlace_t   places[PLACES];
    const bool          is_right = SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES) &&
                          SKY_Crypto_SelfTest(&library.crypto) && /* known answers of each suite in the mask */
                          ((library.crypto.suites & SKY_SUITES_GMAC) != 0) == *(const bool *)has_gmac;

    SKY_CryptoLibrary_End(&library);
    return is_right ? has_gmac : NULL;
}

static void test_threads_that_start_at_once_get_the_suites_of_the_system(void)
{
    bool      has_gmac = dlopen("libcrypto.so.3", RTLD_NOW) != NULL || dlopen("libcrypto.so.1.1", RTLD_NOW) != NULL;
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; ++i)
    {
        CHECK_EQ(pthread_create(&threads[i], NULL, make, &has_gmac), 0);
    }
    for (unsigned i = 0; i < THREADS; ++i)
    {
        void *made = NULL;

        CHECK_EQ(pthread_join(threads[i], &made), 0);
        CHECK(made != NULL);
    }
}

int main(void)
{
    RUN(test_threads_that_start_at_once_get_the_suites_of_the_system);
    return CHECK_RESULT();
}
