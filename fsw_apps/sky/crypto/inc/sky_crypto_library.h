/**
 * @file
 * SKY_Crypto_t over libraries: BLAKE2b and ChaCha20-Poly1305 by Monocypher, GMAC by OpenSSL where there is one.
 *
 * Not part of the core: a mission with a library or hardware of its own leaves this folder out (docs/cfs-integration.md).
 */
#ifndef SKY_CRYPTO_LIBRARY_H
#define SKY_CRYPTO_LIBRARY_H

#include "sky_crypto.h"
#include "sky_gmac.h"

#define SKY_CRYPTO_LIBRARY_PLACES_MAX 65536u

/** A place for a session key. */
typedef struct
{
    uint8_t     suite;                     /**< SKY_SUITE_NONE: empty */
    uint8_t     key[SKY_CRYPTO_KEY_BYTES]; /**< of a BLAKE2b suite; a GMAC key is in @c gmac only */
    SKY_Gmac_t *gmac;                      /**< NULL if the build has no GMAC */
} SKY_CryptoPlace_t;

typedef struct
{
    SKY_Crypto_t       crypto; /**< what the core takes */
    SKY_CryptoPlace_t *places;
} SKY_CryptoLibrary_t;

/** Return the bytes of memory for @p key_count places (1 .. SKY_CRYPTO_LIBRARY_PLACES_MAX); 0 if that is out of range. */
size_t SKY_CryptoLibrary_MemoryBytes(uint32_t key_count);
/**
 * Make a library with empty places. Nothing is allocated after this. The structure must not move: the table points to it.
 * @param memory  aligned for pointers
 * @return false if @p key_count is out of range or the memory is too small. If OpenSSL cannot allocate its contexts, the GMAC
 *         suites are left out of the mask.
 */
bool SKY_CryptoLibrary_Init(SKY_CryptoLibrary_t *library, void *memory, size_t memory_bytes, uint32_t key_count);
/** Erase all keys, and give back what was allocated. */
void SKY_CryptoLibrary_End(SKY_CryptoLibrary_t *library);

#endif
