/**
 * @file
 * GMAC by OpenSSL: AES-256-GCM that encrypts nothing. A context keeps what the library has made of the key.
 */
#include <limits.h>

#include <openssl/evp.h>

#include "sky_gmac.h"

static EVP_CIPHER_CTX *cipher_of(SKY_Gmac_t *gmac)
{
    return (EVP_CIPHER_CTX *)gmac;
}

SKY_Gmac_t *SKY_Gmac_New(void)
{
    static const uint8_t zeros[SKY_CRYPTO_KEY_BYTES];
    EVP_CIPHER_CTX      *cipher = EVP_CIPHER_CTX_new();

    /* The first key allocates what all later ones use. */
    if (cipher != NULL && EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, zeros, NULL) != 1)
    {
        EVP_CIPHER_CTX_free(cipher);
        cipher = NULL;
    }
    return (SKY_Gmac_t *)cipher;
}

void SKY_Gmac_Free(SKY_Gmac_t *gmac)
{
    EVP_CIPHER_CTX_free(cipher_of(gmac)); /* wipes it */
}

bool SKY_Gmac_SetKey(SKY_Gmac_t *gmac, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    return EVP_EncryptInit_ex(cipher_of(gmac), NULL, NULL, key, NULL) == 1;
}

bool SKY_Gmac_Tag(SKY_Gmac_t *gmac, const uint8_t nonce[SKY_GMAC_NONCE_BYTES], const SKY_CryptoPart_t *parts, uint32_t part_count,
                  uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    EVP_CIPHER_CTX *cipher   = cipher_of(gmac);
    bool            is_right = EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce) == 1;
    int             done     = 0;

    for (uint32_t i = 0; i < part_count && is_right; ++i)
    {
        is_right = parts[i].bytes <= INT_MAX &&
                   (parts[i].bytes == 0 || EVP_EncryptUpdate(cipher, NULL, &done, parts[i].data, (int)parts[i].bytes) == 1);
    }
    return is_right && EVP_EncryptFinal_ex(cipher, tag, &done) == 1 &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, (int)SKY_CRYPTO_TAG_BYTES, tag) == 1;
}
