/**
 * @file
 * GMAC by OpenSSL: AES-256-GCM that encrypts nothing. A context keeps what the library has made of the key.
 */
#include <limits.h>

#include "sky_gmac.h"
#include "sky_libcrypto.h"

#define GET_TAG 0x10 /* EVP_CTRL_AEAD_GET_TAG */

SKY_Gmac_t *SKY_Gmac_New(void)
{
    static const uint8_t         zeros[SKY_CRYPTO_KEY_BYTES];
    const SKY_Libcrypto_t *const openssl = SKY_Libcrypto();
    void                        *cipher  = openssl != NULL ? openssl->New() : NULL;

    /* The first key allocates what all later ones use. */
    if (cipher != NULL && openssl->Init(cipher, openssl->Aes256Gcm(), NULL, zeros, NULL) != 1)
    {
        openssl->Free(cipher);
        cipher = NULL;
    }
    return cipher;
}

void SKY_Gmac_Free(SKY_Gmac_t *gmac)
{
    if (gmac != NULL)
    {
        SKY_Libcrypto()->Free(gmac); /* wipes it */
    }
}

bool SKY_Gmac_SetKey(SKY_Gmac_t *gmac, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    return SKY_Libcrypto()->Init(gmac, NULL, NULL, key, NULL) == 1;
}

bool SKY_Gmac_Tag(SKY_Gmac_t *gmac, const uint8_t nonce[SKY_GMAC_NONCE_BYTES], const SKY_CryptoPart_t *parts, uint32_t part_count,
                  uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    const SKY_Libcrypto_t *const openssl  = SKY_Libcrypto();
    bool                         is_right = openssl->Init(gmac, NULL, NULL, NULL, nonce) == 1;
    int                          done     = 0;

    for (uint32_t i = 0; i < part_count && is_right; ++i)
    {
        is_right = parts[i].bytes <= INT_MAX &&
                   (parts[i].bytes == 0 || openssl->Update(gmac, NULL, &done, parts[i].data, (int)parts[i].bytes) == 1);
    }
    return is_right && openssl->Final(gmac, tag, &done) == 1 &&
           openssl->Control(gmac, GET_TAG, (int)SKY_CRYPTO_TAG_BYTES, tag) == 1;
}
