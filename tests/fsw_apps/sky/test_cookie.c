/**
 * @file
 * Cookies: who gets one, and how long it is taken.
 */
#include "crypto_rig.h"
#include "sky_cookie.h"

#define HERE UINT64_C(0x7F00000113370000)

static crypto_rig_t  rig;
static SKY_Cookies_t cookies;

static const uint8_t secret[SKY_CRYPTO_KEY_BYTES] = {9, 8, 7};

static bool takes(uint64_t endpoint, uint64_t now_us, uint64_t cookie)
{
    return SKY_Cookies_IsValid(&cookies, &rig.crypto, endpoint, now_us, cookie);
}

static void open(void)
{
    crypto_rig_open(&rig);
    SKY_Cookies_Init(&cookies, secret);
}

static void test_a_cookie_is_for_one_endpoint(void)
{
    open();
    const uint64_t cookie = SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 5);

    CHECK(takes(HERE, 5, cookie));
    CHECK(!takes(HERE + 1u, 5, cookie));
    CHECK(!takes(HERE ^ UINT64_C(1) << 63, 5, cookie));
    for (unsigned bit = 0; bit < 64; ++bit)
    {
        CHECK(!takes(HERE, 5, cookie ^ UINT64_C(1) << bit));
    }
    crypto_rig_close(&rig);
}

static void test_a_cookie_lives_until_the_end_of_the_next_period(void)
{
    static const uint64_t starts[] = {0, SKY_COOKIE_PERIOD_US, 1000u * SKY_COOKIE_PERIOD_US, UINT64_MAX / 2u};

    open();
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); ++i)
    {
        const uint64_t begin  = starts[i] - starts[i] % SKY_COOKIE_PERIOD_US;
        const uint64_t cookie = SKY_Cookies_Make(&cookies, &rig.crypto, HERE, begin);

        CHECK(SKY_Cookies_Make(&cookies, &rig.crypto, HERE, begin + SKY_COOKIE_PERIOD_US - 1u) == cookie);
        CHECK(SKY_Cookies_Make(&cookies, &rig.crypto, HERE, begin + SKY_COOKIE_PERIOD_US) != cookie);
        CHECK(takes(HERE, begin, cookie));
        CHECK(takes(HERE, begin + 2u * SKY_COOKIE_PERIOD_US - 1u, cookie));
        CHECK(!takes(HERE, begin + 2u * SKY_COOKIE_PERIOD_US, cookie));
        CHECK(begin == 0 || !takes(HERE, begin - 1u, cookie)); /* the clock of a satellite does not go back */
    }
    crypto_rig_close(&rig);
}

static void test_another_boot_takes_no_cookie_of_this_one(void)
{
    uint8_t other[SKY_CRYPTO_KEY_BYTES] = {9, 8, 7};

    open();
    const uint64_t cookie = SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 5);

    other[31] = 1;
    SKY_Cookies_Init(&cookies, other);
    CHECK(!takes(HERE, 5, cookie));
    crypto_rig_close(&rig);
}

/* One endpoint in 2^64 has a hash of 0. */
static void test_zero_is_no_cookie(void)
{
    open();
    CHECK(!takes(HERE, 5, SKY_COOKIE_NONE));
    rig.fault = FAULT_HASH_IS_ZERO;
    CHECK(SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 5) != SKY_COOKIE_NONE);
    CHECK(takes(HERE, 5, SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 5)));
    CHECK(!takes(HERE, 5, SKY_COOKIE_NONE));
    crypto_rig_close(&rig);
}

/* Return how many hashes the look at a cookie takes, which is right. */
static unsigned hashes_for(uint64_t endpoint, uint64_t now_us, uint64_t cookie)
{
    const unsigned before = rig.hashes;

    CHECK(takes(endpoint, now_us, cookie));
    return rig.hashes - before;
}

/* All packets of a value have the cookie, and its hash would take as long as all other checks of a packet. */
static void test_a_cookie_is_hashed_once_in_its_life(void)
{
    open();
    const uint64_t cookie = SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 5);

    CHECK(hashes_for(HERE, 5, cookie) == 1u);
    CHECK(hashes_for(HERE, 6, cookie) == 0u);
    CHECK(hashes_for(HERE, 2u * SKY_COOKIE_PERIOD_US - 1u, cookie) == 0u);
    CHECK(!takes(HERE, 6, cookie + 1u)); /* a wrong one does not count because a right one came before */
    CHECK(hashes_for(HERE, 7, cookie) == 0u);
    CHECK(!takes(HERE, 2u * SKY_COOKIE_PERIOD_US, cookie)); /* nor one that has come to its end */

    const uint64_t next = SKY_Cookies_Make(&cookies, &rig.crypto, HERE, 2u * SKY_COOKIE_PERIOD_US);

    CHECK(hashes_for(HERE, 2u * SKY_COOKIE_PERIOD_US, next) == 1u);
    CHECK(hashes_for(HERE, 2u * SKY_COOKIE_PERIOD_US, next) == 0u);
    crypto_rig_close(&rig);
}

/* There are fewer places than endpoints. Whoever comes to the place of another one makes it hash again. */
static void test_many_endpoints_keep_their_cookies_valid(void)
{
    uint64_t given[256];

    open();
    for (uint64_t i = 0; i < 256u; ++i)
    {
        given[i] = SKY_Cookies_Make(&cookies, &rig.crypto, HERE + i, 5);
    }
    for (uint64_t i = 0; i < 512u; ++i)
    {
        const uint64_t at = i % 256u;

        CHECK(hashes_for(HERE + at, 5, given[at]) <= 1u);
        CHECK(hashes_for(HERE + at, 5, given[at]) == 0u);
        CHECK(!takes(HERE + (at + 1u) % 256u, 5, given[at]));
    }
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_a_cookie_is_for_one_endpoint);
    RUN(test_a_cookie_lives_until_the_end_of_the_next_period);
    RUN(test_another_boot_takes_no_cookie_of_this_one);
    RUN(test_zero_is_no_cookie);
    RUN(test_a_cookie_is_hashed_once_in_its_life);
    RUN(test_many_endpoints_keep_their_cookies_valid);
    return CHECK_RESULT();
}
