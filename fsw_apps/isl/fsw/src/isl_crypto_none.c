/**
 * @file
 * No cryptographic library: links cannot be secured, and nobody is asked for a cookie.
 */
#include "isl_crypto.h"

#include <string.h>

const SKY_Crypto_t *ISL_Crypto_Open(uint32_t key_count)
{
    (void)key_count;
    return NULL;
}

void ISL_Crypto_Close(void)
{
}

bool ISL_Crypto_Entropy(uint8_t *bytes, size_t count)
{
    memset(bytes, 0, count); /* nobody uses it */
    return false;
}
