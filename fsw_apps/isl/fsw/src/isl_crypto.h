/**
 * @file
 * Cryptographic library and entropy of ISL. One of the files isl_crypto_*.c implements this, chosen by the CMake variable ISL_CRYPTO:
 * `library` (fsw_apps/sky/crypto), `none`, or the name of a mission's own file.
 */
#ifndef ISL_CRYPTO_H
#define ISL_CRYPTO_H

#include "cfe.h"
#include "sky_crypto.h"

/** Return the library, with so many places for session keys; NULL if there is none: then links cannot be secured. Called once
 *  in each start of the app; one that was ended by force has not called ISL_Crypto_Close. */
const SKY_Crypto_t *ISL_Crypto_Open(uint32_t key_count);
/** Erase all session keys, and give back what the library holds. */
void ISL_Crypto_Close(void);
/**
 * Fill memory with bytes that no other boot has.
 * @return false if somebody could guess them, as there is no source of random bytes: then a satellite that has a key does not start
 */
bool ISL_Crypto_Entropy(uint8_t *bytes, size_t count);

#endif
