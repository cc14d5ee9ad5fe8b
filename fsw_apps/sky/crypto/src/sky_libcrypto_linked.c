/**
 * @file
 * OpenSSL as the build has linked it.
 */
#include <openssl/evp.h>

#include "sky_libcrypto.h"

static void *New(void)
{
    return EVP_CIPHER_CTX_new();
}

static void Free(void *cipher)
{
    EVP_CIPHER_CTX_free(cipher);
}

static const void *Aes256Gcm(void)
{
    return EVP_aes_256_gcm();
}

static int Init(void *cipher, const void *type, void *engine, const uint8_t *key, const uint8_t *nonce)
{
    return EVP_EncryptInit_ex(cipher, type, engine, key, nonce);
}

static int Update(void *cipher, uint8_t *out, int *out_bytes, const uint8_t *in, int in_bytes)
{
    return EVP_EncryptUpdate(cipher, out, out_bytes, in, in_bytes);
}

static int Final(void *cipher, uint8_t *out, int *out_bytes)
{
    return EVP_EncryptFinal_ex(cipher, out, out_bytes);
}

static int Control(void *cipher, int type, int number, void *pointer)
{
    return EVP_CIPHER_CTX_ctrl(cipher, type, number, pointer);
}

const SKY_Libcrypto_t *SKY_Libcrypto(void)
{
    static const SKY_Libcrypto_t functions = {New, Free, Aes256Gcm, Init, Update, Final, Control};

    return &functions;
}
