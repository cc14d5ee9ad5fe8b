/**
 * @file
 * Stateless cookies: see sky_cookie.h.
 */
#include "sky_cookie.h"

#include <string.h>

#include "sky_assert.h"

/* Return the cookie of an endpoint in a period. A hash of 0, which is no cookie, counts as 1. */
static uint64_t cookie_of(const SKY_Cookies_t *cookies, const SKY_Crypto_t *crypto, uint64_t endpoint, uint64_t period)
{
    const uint64_t         what[2] = {endpoint, period}; /* nobody else reads it, so it is in the order of this machine */
    const SKY_CryptoPart_t part    = {what, sizeof(what)};
    uint64_t               cookie  = 0;

    SKY_ASSERT(crypto->Hash != NULL);
    SKY_ASSERT(sizeof(cookie) == SKY_COOKIE_BYTES);
    crypto->Hash(crypto->context, cookies->secret, sizeof(cookies->secret), &part, 1, (uint8_t *)&cookie, sizeof(cookie));
    return cookie == SKY_COOKIE_NONE ? 1u : cookie;
}

/* Return the place of an endpoint among the cookies that are kept. */
static uint32_t place_of(uint64_t endpoint)
{
    const uint64_t place =
        (endpoint * UINT64_C(0x9E3779B97F4A7C15)) >> (64u - SKY_COOKIE_KEPT_BITS); /* the golden ratio spreads ports */

    SKY_ASSERT(endpoint != 0u);
    SKY_ASSERT(place < UINT64_C(1) << SKY_COOKIE_KEPT_BITS);
    return (uint32_t)place;
}

void SKY_Cookies_Init(SKY_Cookies_t *cookies, const uint8_t secret[SKY_CRYPTO_KEY_BYTES])
{
    SKY_ASSERT(cookies->secret != secret);
    SKY_ASSERT(sizeof(cookies->secret) == SKY_CRYPTO_KEY_BYTES);
    (void)memcpy(cookies->secret, secret, sizeof(cookies->secret));
    (void)memset(cookies->kept, 0, sizeof(cookies->kept));
}

uint64_t SKY_Cookies_Make(const SKY_Cookies_t *cookies, const SKY_Crypto_t *crypto, uint64_t endpoint, uint64_t now_us)
{
    const uint64_t cookie = cookie_of(cookies, crypto, endpoint, now_us / SKY_COOKIE_PERIOD_US);

    SKY_ASSERT(cookies != NULL);
    SKY_ASSERT(cookie != SKY_COOKIE_NONE);
    return cookie;
}

bool SKY_Cookies_IsValid(SKY_Cookies_t *cookies, const SKY_Crypto_t *crypto, uint64_t endpoint, uint64_t now_us, uint64_t cookie)
{
    const uint64_t    period = now_us / SKY_COOKIE_PERIOD_US;
    SKY_CookieKept_t *kept   = &cookies->kept[place_of(endpoint)];

    SKY_ASSERT(crypto->IsEqual != NULL);
    SKY_ASSERT(kept->cookie != SKY_COOKIE_NONE || kept->period == 0u); /* nothing was kept there before */
    if (cookie == SKY_COOKIE_NONE)
    {
        return false;
    }
    if (kept->endpoint == endpoint && period - kept->period <= 1u &&
        crypto->IsEqual(crypto->context, &kept->cookie, &cookie, sizeof(cookie)))
    {
        return true;
    }
    for (uint64_t age = 0; age <= 1u && age <= period; ++age)
    {
        const uint64_t right = cookie_of(cookies, crypto, endpoint, period - age);

        if (crypto->IsEqual(crypto->context, &right, &cookie, sizeof(right)))
        {
            *kept = (SKY_CookieKept_t){endpoint, period - age, cookie};
            return true;
        }
    }
    return false;
}
