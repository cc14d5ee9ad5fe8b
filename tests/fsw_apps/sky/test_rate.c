/**
 * @file
 * Rates: how much is taken from a source in a time.
 */
#include "fixture.h"
#include "sky_rate.h"

#define SECOND_US UINT64_C(1000000)

static const SKY_RateLimit_t limit                         = {100, 10};
static const uint64_t        secret[SKY_RATE_SECRET_WORDS] = {3, 4};

static uint32_t taken_of(SKY_Rate_t *rate, uint64_t now_us, uint32_t most)
{
    uint32_t taken = 0;

    while (taken < most && SKY_Rate_Take(rate, now_us, limit, 1))
    {
        ++taken;
    }
    return taken;
}

static void test_a_burst_and_then_as_much_as_comes_in_the_time(void)
{
    SKY_Rate_t rate = {0};

    CHECK_EQ(taken_of(&rate, 0, 1000), 10);
    CHECK_EQ(taken_of(&rate, 9999, 1000), 0);
    CHECK_EQ(taken_of(&rate, 10000, 1000), 1);
    CHECK_EQ(taken_of(&rate, 50000, 1000), 4);
    CHECK_EQ(taken_of(&rate, 10 * SECOND_US, 1000), 10); /* who took nothing for a long time has no more than a burst */
    CHECK_EQ(taken_of(&rate, 10 * SECOND_US + SECOND_US / 20u, 1000), 5);
}

static void test_what_is_too_much_costs_nothing(void)
{
    SKY_Rate_t rate = {0};

    CHECK(!SKY_Rate_Take(&rate, 5, limit, 11));
    CHECK(SKY_Rate_Take(&rate, 5, limit, 7));
    CHECK(!SKY_Rate_Take(&rate, 5, limit, 4));
    CHECK(SKY_Rate_Take(&rate, 5, limit, 3));
    CHECK(!SKY_Rate_Take(&rate, 5, limit, UINT32_MAX));
}

static void test_large_numbers_are_no_small_ones(void)
{
    static const SKY_RateLimit_t large = {UINT32_MAX, UINT32_MAX};
    const uint64_t               late  = UINT64_C(100) * 366u * 86400u * SECOND_US;
    SKY_Rate_t                   rate  = {0};

    CHECK(SKY_Rate_Take(&rate, late, large, UINT32_MAX));
    CHECK(!SKY_Rate_Take(&rate, late, large, UINT32_MAX));
    CHECK(SKY_Rate_Take(&rate, late + SECOND_US, large, UINT32_MAX));
}

/* Return how many of 1,000 sources have nothing left after one of them has taken all that it may. */
static uint32_t hit_by_one(const uint64_t *of_boot, uint64_t one)
{
    SKY_Rates_t rates;
    uint32_t    hit = 0;

    SKY_Rates_Init(&rates, of_boot);
    CHECK(SKY_Rates_Take(&rates, 1, limit, one, 10));
    CHECK(!SKY_Rates_Take(&rates, 1, limit, one, 1));
    for (uint64_t source = 1; source <= 1000u; ++source)
    {
        SKY_Rates_t copy = rates;

        hit += source != one && !SKY_Rates_Take(&copy, 1, limit, source, 1) ? 1u : 0u;
    }
    return hit;
}

/* Which few sources share a bucket changes with the secret, so nobody can choose whose. */
static void test_sources_are_apart(void)
{
    static const uint64_t another[SKY_RATE_SECRET_WORDS] = {5, 6};
    bool                  differs                        = false;

    for (uint64_t one = 1; one <= 20u; ++one)
    {
        CHECK(hit_by_one(secret, one) < 20u);
        differs = differs || hit_by_one(secret, one) != hit_by_one(another, one);
    }
    CHECK(differs);
}

int main(void)
{
    RUN(test_a_burst_and_then_as_much_as_comes_in_the_time);
    RUN(test_what_is_too_much_costs_nothing);
    RUN(test_large_numbers_are_no_small_ones);
    RUN(test_sources_are_apart);
    return CHECK_RESULT();
}
