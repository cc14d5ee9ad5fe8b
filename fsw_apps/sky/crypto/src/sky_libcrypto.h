/**
 * @file
 * The functions of OpenSSL's libcrypto that GMAC needs: linked (sky_libcrypto_linked.c), or of the system that runs the program
 * (sky_libcrypto_loaded.c), so that a wheel needs no libcrypto to start and carries none.
 */
#ifndef SKY_LIBCRYPTO_H
#define SKY_LIBCRYPTO_H

#include <stdbool.h>
#include <stdint.h>

/** AES-256-GCM by OpenSSL, with its own types as pointers. Each function returns 1, or a pointer that is not NULL, if it worked. */
typedef struct
{
    void *(*New)(void);
    void (*Free)(void *cipher); /**< wipes it; @p cipher may be NULL */
    const void *(*Aes256Gcm)(void);
    int (*Init)(void *cipher, const void *type, void *engine, const uint8_t *key, const uint8_t *nonce);
    int (*Update)(void *cipher, uint8_t *out, int *out_bytes, const uint8_t *in, int in_bytes);
    int (*Final)(void *cipher, uint8_t *out, int *out_bytes);
    int (*Control)(void *cipher, int type, int number, void *pointer);
} SKY_Libcrypto_t;

/** Return the library's functions, the same at each call, from any thread; NULL if there is no library. */
const SKY_Libcrypto_t *SKY_Libcrypto(void);

#endif
