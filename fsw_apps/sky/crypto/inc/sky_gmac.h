/**
 * @file
 * GMAC with AES-256, one context a key: sky_gmac_openssl.c over sky_libcrypto.h, or sky_gmac_none.c where the build has no library for it.
 */
#ifndef SKY_GMAC_H
#define SKY_GMAC_H

#include "sky_crypto.h"

#define SKY_GMAC_NONCE_BYTES 12u

typedef struct SKY_Gmac SKY_Gmac_t; /* the library's own */

/** Allocate a context. @return NULL if there is no library, or no memory */
SKY_Gmac_t *SKY_Gmac_New(void);
/** Erase the key and free the context. @param gmac  may be NULL */
void SKY_Gmac_Free(SKY_Gmac_t *gmac);
/** Set the key. @return false if the library failed */
bool SKY_Gmac_SetKey(SKY_Gmac_t *gmac, const uint8_t key[SKY_CRYPTO_KEY_BYTES]);
/** Compute a tag over parts. @return false if the library failed */
bool SKY_Gmac_Tag(SKY_Gmac_t *gmac, const uint8_t nonce[SKY_GMAC_NONCE_BYTES], const SKY_CryptoPart_t *parts, uint32_t part_count,
                  uint8_t tag[SKY_CRYPTO_TAG_BYTES]);

#endif
