/**
 * @file
 * No GMAC: the build has no library for it, or the mission wants none.
 */
#include "sky_gmac.h"

SKY_Gmac_t *SKY_Gmac_New(void)
{
    return NULL;
}

void SKY_Gmac_Free(SKY_Gmac_t *gmac)
{
    (void)gmac;
}

bool SKY_Gmac_SetKey(SKY_Gmac_t *gmac, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    (void)gmac;
    (void)key;
    return false;
}

bool SKY_Gmac_Tag(SKY_Gmac_t *gmac, const uint8_t nonce[SKY_GMAC_NONCE_BYTES], const SKY_CryptoPart_t *parts, uint32_t part_count,
                  uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    (void)gmac;
    (void)nonce;
    (void)parts;
    (void)part_count;
    (void)tag;
    return false;
}
