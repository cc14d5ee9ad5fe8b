/**
 * @file
 * sky_parts.c: every order of arrival, and parts that lie.
 */
#include "check.h"
#include "fixture.h"

static void test_check(void)
{
    CHECK(SKY_Parts_Check(1000, 0, 1000));
    CHECK(SKY_Parts_Check(1000, 0, 300));
    CHECK(SKY_Parts_Check(1000, 300, 300));
    CHECK(SKY_Parts_Check(1000, 900, 100));
    CHECK(SKY_Parts_Check(1000, 901, 99)); /* its other parts will tell */
    CHECK(!SKY_Parts_Check(1000, 0, 0));
    CHECK(!SKY_Parts_Check(1000, 1000, 0));
    CHECK(!SKY_Parts_Check(1000, 1001, 1));
    CHECK(!SKY_Parts_Check(1000, UINT32_MAX, 2));
    CHECK(!SKY_Parts_Check(1000, 1, UINT32_MAX));
    CHECK(!SKY_Parts_Check(1000, 900, 101));
    CHECK(!SKY_Parts_Check(1000, 100, 300)); /* not at a multiple */
    CHECK(SKY_Parts_Check(64 * 10, 0, 10));
    CHECK(!SKY_Parts_Check(64 * 10 + 1, 0, 10)); /* 65 parts */
}

/* All orders of four parts, each part twice. */
static void test_orders(void)
{
    const uint32_t offsets[4] = {0, 300, 600, 900};

    for (uint32_t order = 0; order < 256; ++order)
    {
        SKY_Parts_t parts = {0, 0, 0};
        uint32_t    seen  = 0;

        for (uint32_t i = 0; i < 4; ++i)
        {
            const uint32_t at = (order >> (2 * i)) & 3u;

            CHECK(SKY_Parts_Add(&parts, 1000, offsets[at], at == 3 ? 100 : 300));
            CHECK(SKY_Parts_Add(&parts, 1000, offsets[at], at == 3 ? 100 : 300));
            seen |= 1u << at;
            CHECK_EQ(SKY_Parts_AllHere(&parts), seen == 15u);
        }
    }
}

static void test_most_parts(void)
{
    SKY_Parts_t parts = {0, 0, 0};

    for (uint32_t i = 0; i < SKY_LIMIT_FRAGMENTS; ++i)
    {
        CHECK(!SKY_Parts_AllHere(&parts));
        CHECK(SKY_Parts_Add(&parts, SKY_LIMIT_FRAGMENTS * 10, i * 10, 10));
    }
    CHECK(SKY_Parts_AllHere(&parts));
}

static void test_lies(void)
{
    SKY_Parts_t parts = {0, 0, 0};

    CHECK(!SKY_Parts_Add(&parts, 1000, 0, 0));
    CHECK(SKY_Parts_Add(&parts, 1000, 300, 300));
    CHECK(!SKY_Parts_Add(&parts, 1000, 0, 100));   /* another length */
    CHECK(!SKY_Parts_Add(&parts, 1000, 950, 50));  /* the end, but not at a multiple */
    CHECK(!SKY_Parts_Add(&parts, 1000, 600, 400)); /* the end, longer than the others */
    CHECK(SKY_Parts_Add(&parts, 1000, 900, 100));
    CHECK(!SKY_Parts_Add(&parts, 1000, 990, 10)); /* another end */

    const SKY_Parts_t none = {0, 0, 0};
    parts                  = none;
    CHECK(SKY_Parts_Add(&parts, 1000, 950, 50));
    CHECK(!SKY_Parts_Add(&parts, 1000, 0, 300)); /* does not lead to that end */
    CHECK(!SKY_Parts_Add(&parts, 1000, 0, 25));  /* leads there, but leaves a gap behind */
    CHECK(SKY_Parts_Add(&parts, 1000, 0, 475));
    CHECK(SKY_Parts_Add(&parts, 1000, 475, 475));
    CHECK(SKY_Parts_AllHere(&parts));
}

int main(void)
{
    RUN(test_check);
    RUN(test_orders);
    RUN(test_most_parts);
    RUN(test_lies);
    return CHECK_RESULT();
}
