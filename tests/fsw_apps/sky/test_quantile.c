/**
 * @file
 * Quantiles of times.
 */
#include "check.h"
#include "sky_quantile.h"

static void test_few_times_have_none(void)
{
    SKY_Quantile_t quantile = {{0}, 0};

    for (uint32_t i = 0; i + 1u < SKY_QUANTILE_FEWEST; ++i)
    {
        SKY_Quantile_Add(&quantile, 1000);
        CHECK_EQ(SKY_Quantile_Of(&quantile, 50), 0);
    }
    SKY_Quantile_Add(&quantile, 1000);
    CHECK(SKY_Quantile_Of(&quantile, 50) > 0);
}

/* At least so many are not above it, and it is at most a bucket too large. */
static void test_a_quantile_is_a_quarter_off_at_most(void)
{
    static const uint32_t times[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1023, 1024, 1025, 80000, 1u << 31, UINT32_MAX};

    for (uint32_t i = 0; i < sizeof(times) / sizeof(times[0]); ++i)
    {
        SKY_Quantile_t quantile = {{0}, 0};

        for (uint32_t n = 0; n < 100u; ++n)
        {
            SKY_Quantile_Add(&quantile, n < 95u ? times[i] : UINT32_MAX);
        }
        CHECK(SKY_Quantile_Of(&quantile, 95) >= times[i]);
        CHECK(SKY_Quantile_Of(&quantile, 95) <= times[i] + times[i] / 4u + 1u || times[i] > UINT32_MAX / 5u * 4u);
        CHECK_EQ(SKY_Quantile_Of(&quantile, 96), UINT32_MAX);
    }
}

static void test_old_times_are_forgotten(void)
{
    SKY_Quantile_t quantile = {{0}, 0};

    for (uint32_t n = 0; n < 5000u; ++n)
    {
        SKY_Quantile_Add(&quantile, 1000);
    }
    for (uint32_t n = 0; n < 5u * SKY_QUANTILE_MOST; ++n)
    {
        SKY_Quantile_Add(&quantile, 10);
    }
    CHECK(SKY_Quantile_Of(&quantile, 100) <= 12);
    CHECK(quantile.total <= SKY_QUANTILE_MOST);
}

int main(void)
{
    RUN(test_few_times_have_none);
    RUN(test_a_quantile_is_a_quarter_off_at_most);
    RUN(test_old_times_are_forgotten);
    return CHECK_RESULT();
}
