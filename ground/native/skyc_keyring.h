/**
 * @file
 * Keyring of a client: the keys that a host shares with satellites, and the library that works with them. Private to the library.
 */
#ifndef SKYC_KEYRING_H
#define SKYC_KEYRING_H

#include "sky_crypto_library.h"
#include "skyc.h"

typedef struct
{
    uint16_t            planes, slots;
    uint8_t            *pair_keys;
    SKY_CryptoLibrary_t library;
    void               *library_memory;
} SKYC_Keyring_t;

/** Return true if credential, size and suite of a configuration with a keyring are sound, for at most so many satellites. */
bool SKYC_Keyring_IsSound(const SKYC_Config_t *config, uint32_t satellites_max);
/**
 * Take a copy of the keyring of a configuration, which is sound. The structure must not move: the host points to it.
 * @param security  receives what the host needs
 * @return 0 or ENOMEM; SKYC_Keyring_End gives back what was taken
 */
int SKYC_Keyring_Begin(SKYC_Keyring_t *keyring, const SKYC_Config_t *config, SKY_HostSecurity_t *security);
/** Erase and give back all keys. A keyring of zeros is none. */
void SKYC_Keyring_End(SKYC_Keyring_t *keyring);

#endif
