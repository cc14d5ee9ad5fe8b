/**
 * @file
 * The library of fsw_apps/sky/crypto. Entropy is the kernel's on Linux. Elsewhere, or if that fails, it is a digest over all that differs
 * between two boots and two satellites. Somebody who knows the clock may guess it, so it is not good enough for a satellite that has a
 * key: a mission with a source of its own replaces this file.
 */
#include <string.h>

#include "isl_crypto.h"
#include "isl_platform_cfg.h"
#include "sky_crypto_library.h"
#include "sky_lib.h"

#ifdef __linux__
#include <sys/random.h>
#endif

#define ISL_SEEDS 16u

static SKY_CryptoLibrary_t ISL_CryptoLibrary;
static SKY_CryptoPlace_t   ISL_CryptoPlaces[ISL_PLATFORM_KEYS];

const SKY_Crypto_t *ISL_Crypto_Open(uint32_t key_count)
{
    SKY_CryptoLibrary_End(&ISL_CryptoLibrary); /* of a start that was ended by force; else there is nothing to end */
    return SKY_CryptoLibrary_Init(&ISL_CryptoLibrary, ISL_CryptoPlaces, sizeof(ISL_CryptoPlaces), key_count)
               ? &ISL_CryptoLibrary.crypto
               : NULL;
}

void ISL_Crypto_Close(void)
{
    SKY_CryptoLibrary_End(&ISL_CryptoLibrary);
}

bool ISL_Crypto_Entropy(uint8_t *bytes, size_t count)
{
    const SKY_Crypto_t *const crypto = &ISL_CryptoLibrary.crypto;
    uint64_t                  seeds[ISL_SEEDS];
    const SKY_CryptoPart_t    part = {seeds, sizeof(seeds)};
    size_t                    at;

#ifdef __linux__
    if (getrandom(bytes, count, 0) == (ssize_t)count) /* so few come whole */
    {
        return true;
    }
#endif
    for (at = 0; at < count; at += SKY_CRYPTO_HASH_BYTES)
    {
        const size_t left = count - at;
        uint32_t     i;

        for (i = 0; i < ISL_SEEDS; ++i)
        {
            seeds[i] = SKY_LIB_Seed();
        }
        crypto->Hash(crypto->context, NULL, 0, &part, 1, bytes + at, left < SKY_CRYPTO_HASH_BYTES ? left : SKY_CRYPTO_HASH_BYTES);
    }
    crypto->Wipe(crypto->context, seeds, sizeof(seeds));
    return false;
}
