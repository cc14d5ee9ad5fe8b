/**
 * @file
 * Cookies: who sends one back can be reached at the address that it sends from. Nothing is stored for those who have none.
 *
 * A cookie is 8 bytes of keyed BLAKE2b over the endpoint and the period of 64 s, under a secret that is drawn at boot. That of this
 * period and that of the one before are taken, so a cookie lives 64 to 128 s. 0 is no cookie.
 *
 * The last cookies that were right are kept: a value of 2.9 MB comes in 500 packets which all carry the cookie, and its hash takes 6,000
 * instructions. Each endpoint has one place there. If another one takes it, the next packet is hashed again.
 */
#ifndef SKY_COOKIE_H
#define SKY_COOKIE_H

#include "sky_crypto.h"

#define SKY_COOKIE_BYTES     8u
#define SKY_COOKIE_NONE      UINT64_C(0)
#define SKY_COOKIE_PERIOD_US UINT64_C(64000000)
#define SKY_COOKIE_KEPT_BITS 4u /* 16 places: sockets of a host that fall on one place are hashed for each packet */

/** A cookie that was right. */
typedef struct
{
    uint64_t endpoint;
    uint64_t period; /**< in which it was made */
    uint64_t cookie; /**< SKY_COOKIE_NONE: none is kept here */
} SKY_CookieKept_t;

typedef struct
{
    uint8_t          secret[SKY_CRYPTO_KEY_BYTES];
    SKY_CookieKept_t kept[1u << SKY_COOKIE_KEPT_BITS]; /**< each endpoint has one place */
} SKY_Cookies_t;

/** @param secret  random, of this boot, and for nothing else */
void SKY_Cookies_Init(SKY_Cookies_t *cookies, const uint8_t secret[SKY_CRYPTO_KEY_BYTES]);
/** Return the cookie of an endpoint (address and port, as the caller numbers them); never 0. */
uint64_t SKY_Cookies_Make(const SKY_Cookies_t *cookies, const SKY_Crypto_t *crypto, uint64_t endpoint, uint64_t now_us);
/** Return true if an endpoint was given this cookie in this period or in the one before. */
bool SKY_Cookies_IsValid(SKY_Cookies_t *cookies, const SKY_Crypto_t *crypto, uint64_t endpoint, uint64_t now_us, uint64_t cookie);

#endif
