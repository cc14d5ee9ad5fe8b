/**
 * @file
 * OpenSSL of the system, looked for when it is first needed. A program built so starts also where there is none.
 *
 * The signatures are those of OpenSSL 1.1 and 3, whose functions of these names take the same arguments.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "sky_libcrypto.h"

static SKY_Libcrypto_t functions;
static bool            is_there;
static pthread_once_t  once = PTHREAD_ONCE_INIT;

/* ISO C has no conversion of a pointer to a function; POSIX guarantees that both have one representation. */
static bool find(void *library, const char *name, void *function, size_t bytes)
{
    void *const found = dlsym(library, name);

    (void)memcpy(function, &found, bytes);
    return found != NULL;
}

static bool load(const char *name)
{
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* stays for as long as the process */

    return library != NULL && find(library, "EVP_CIPHER_CTX_new", &functions.New, sizeof(functions.New)) &&
           find(library, "EVP_CIPHER_CTX_free", &functions.Free, sizeof(functions.Free)) &&
           find(library, "EVP_aes_256_gcm", &functions.Aes256Gcm, sizeof(functions.Aes256Gcm)) &&
           find(library, "EVP_EncryptInit_ex", &functions.Init, sizeof(functions.Init)) &&
           find(library, "EVP_EncryptUpdate", &functions.Update, sizeof(functions.Update)) &&
           find(library, "EVP_EncryptFinal_ex", &functions.Final, sizeof(functions.Final)) &&
           find(library, "EVP_CIPHER_CTX_ctrl", &functions.Control, sizeof(functions.Control));
}

static void load_any(void)
{
    is_there = load("libcrypto.so.3") || load("libcrypto.so.1.1");
}

const SKY_Libcrypto_t *SKY_Libcrypto(void)
{
    return pthread_once(&once, load_any) == 0 && is_there ? &functions : NULL;
}
