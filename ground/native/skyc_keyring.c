/**
 * @file
 * Keyring of a client.
 */
#define _GNU_SOURCE
#include "skyc_keyring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_A_SATELLITE 2u /* one there, one back */

bool SKYC_Keyring_IsSound(const SKYC_Config_t *config, uint32_t satellites_max)
{
    SKY_Credential_t credential;

    return config->pair_keys != NULL && config->planes > 0 && config->slots > 0 &&
           (uint32_t)config->planes * config->slots <= satellites_max && config->suite <= SKY_SUITE_BLAKE2B_PACKET &&
           SKY_Credential_Decode(config->credential, &credential);
}

/* Find the key that this host shares with a satellite. */
static bool pair_key(void *context, SKY_Addr_t satellite, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKYC_Keyring_t *keyring = context;

    if (satellite.plane == 0 || satellite.plane > keyring->planes || satellite.slot == 0 || satellite.slot > keyring->slots)
    {
        return false;
    }
    const size_t index = (size_t)(satellite.plane - 1u) * keyring->slots + satellite.slot - 1u;

    (void)memcpy(key, keyring->pair_keys + index * SKY_CRYPTO_KEY_BYTES, SKY_CRYPTO_KEY_BYTES);
    return true;
}

int SKYC_Keyring_Begin(SKYC_Keyring_t *keyring, const SKYC_Config_t *config, SKY_HostSecurity_t *security)
{
    const uint32_t satellites = (uint32_t)config->planes * config->slots;
    const size_t   keys       = (size_t)satellites * SKY_CRYPTO_KEY_BYTES;
    const uint32_t places     = KEYS_A_SATELLITE * satellites;
    const size_t   bytes      = SKY_CryptoLibrary_MemoryBytes(places);

    keyring->planes         = config->planes;
    keyring->slots          = config->slots;
    keyring->pair_keys      = malloc(keys);
    keyring->library_memory = calloc(1, bytes);
    if (keyring->pair_keys == NULL || keyring->library_memory == NULL ||
        !SKY_CryptoLibrary_Init(&keyring->library, keyring->library_memory, bytes, places))
    {
        return ENOMEM;
    }
    const SKY_Crypto_t *crypto = &keyring->library.crypto;

    (void)memcpy(keyring->pair_keys, config->pair_keys, keys);
    (void)SKY_Credential_Decode(config->credential, &security->credential);
    security->is_keyed = true;
    security->crypto   = crypto;
    security->PairKey  = pair_key;
    security->context  = keyring;
    security->wanted   = config->suite != 0                        ? config->suite
                         : (crypto->suites & SKY_SUITES_GMAC) != 0 ? SKY_SUITE_GMAC_HEADER
                                                                   : SKY_SUITE_BLAKE2B_HEADER;
    security->accepted =
        SKY_SUITE_BIT(security->wanted == SKY_SUITE_GMAC_HEADER ? SKY_SUITE_BLAKE2B_HEADER : SKY_SUITE_BLAKE2B_PACKET);
    return 0;
}

void SKYC_Keyring_End(SKYC_Keyring_t *keyring)
{
    if (keyring->pair_keys != NULL)
    {
        explicit_bzero(keyring->pair_keys, (size_t)keyring->planes * keyring->slots * SKY_CRYPTO_KEY_BYTES);
    }
    if (keyring->library_memory != NULL)
    {
        SKY_CryptoLibrary_End(&keyring->library);
    }
    free(keyring->pair_keys);
    free(keyring->library_memory);
}
