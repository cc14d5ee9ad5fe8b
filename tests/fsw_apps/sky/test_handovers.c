/* Whether something is left to hand over: what one word means, how many are asked, and how long the answer counts. */
#include "sky_handovers.h"

#include "check.h"

#define S UINT64_C(1000000)

static SKY_Handovers_t      handovers;
static SKY_HandoverSearch_t search;

static void begin(uint32_t schedule, uint32_t row)
{
    SKY_Handovers_Begin(&handovers, &search, schedule, row, 9);
}

static void test_what_a_word_means(void)
{
    static const struct
    {
        SKY_HandoverWord_t word;
        bool               has_left;
    } cases[] = {
        {{4, 9, 0, 0}, false}, {{4, 9, 0, 7}, false}, {{4, 9, 3, 7}, true},  {{5, 9, 0, 7}, true}, /* another row */
        {{4, 8, 0, 7}, true},                                                                      /* another schedule */
        {{5, 9, 0, 0}, false}, {{4, 8, 0, 0}, false}, {{0, 0, 0, 0}, false}, {{0, 0, 0, 1}, true},
    };

    SKY_Handovers_Init(&handovers);
    begin(1, 4);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        CHECK_EQ(SKY_Handovers_HasLeft(&search, &cases[i].word, true), cases[i].has_left);
        CHECK_EQ(SKY_Handovers_HasLeft(&search, &cases[i].word, false), cases[i].word.left > 0u); /* by its own word only */
    }
}

static void test_before_anybody_was_asked_nothing_is_known(void)
{
    SKY_Handovers_Init(&handovers);
    CHECK(!SKY_Handovers_IsKnown(&handovers, 0, 1, 0));
    begin(0, 3);
    CHECK_EQ(search.first, 1);
}

static void test_nobody_to_ask_is_certain_at_once(void)
{
    SKY_Handovers_Init(&handovers);
    begin(1, 1);
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 0, 0, 0));
    CHECK(handovers.is_over && handovers.is_certain);
    CHECK(SKY_Handovers_IsKnown(&handovers, 1, 1, 1000000u * S)); /* until the next row */
    CHECK(!SKY_Handovers_IsKnown(&handovers, 1, 2, 5));
    CHECK(!SKY_Handovers_IsKnown(&handovers, 2, 1, 5));
}

static void test_nothing_left_is_asked_twice_and_counts_for_the_row(void)
{
    SKY_Handovers_Init(&handovers);
    begin(1, 4);
    CHECK(SKY_Handovers_Asked(&handovers, &search, 5, 3, 3, 0));
    CHECK(!SKY_Handovers_IsKnown(&handovers, 1, 4, 5));
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 6, 3, 3, 0));
    CHECK(handovers.is_over && handovers.is_certain);
    CHECK(SKY_Handovers_IsKnown(&handovers, 1, 4, 1000000u * S));
    begin(1, 6);
    CHECK_EQ(search.first, 4); /* satellites of rows before are not asked */
    begin(1, 3);
    CHECK_EQ(search.first, 3); /* the clock was set back */
    begin(2, 6);
    CHECK_EQ(search.first, 1); /* another schedule */
}

static void test_something_left_counts_for_a_moment(void)
{
    SKY_Handovers_Init(&handovers);
    begin(1, 4);
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 3, 3, 1));
    CHECK(!handovers.is_over && handovers.is_certain);
    CHECK(SKY_Handovers_IsKnown(&handovers, 1, 4, 4u + SKY_HOST_ON_WAY_US));
    CHECK(!SKY_Handovers_IsKnown(&handovers, 1, 4, 5u + SKY_HOST_ON_WAY_US));
    begin(1, 5);
    CHECK_EQ(search.first, 1);
    CHECK(SKY_Handovers_Asked(&handovers, &search, 5, 3, 3, 0));
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 3, 3, 2)); /* it was on its way meanwhile */
    CHECK(!handovers.is_over);
}

static void test_while_one_is_silent_nothing_is_certain(void)
{
    for (uint32_t silent_in = 0; silent_in < 2u; ++silent_in)
    {
        SKY_Handovers_Init(&handovers);
        begin(1, 4);
        CHECK(SKY_Handovers_Asked(&handovers, &search, 5, 3, silent_in == 0u ? 2 : 3, 0));
        CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 3, silent_in == 1u ? 2 : 3, 0));
        CHECK(handovers.is_over && !handovers.is_certain);
        CHECK(SKY_Handovers_IsKnown(&handovers, 1, 4, 4u + SKY_HOST_LOST_US));
        CHECK(!SKY_Handovers_IsKnown(&handovers, 1, 4, 5u + SKY_HOST_LOST_US));
        begin(1, 5);
        CHECK_EQ(search.first, 1);
    }
}

static void test_what_was_settled_stays_so(void)
{
    SKY_Handovers_Init(&handovers);
    begin(1, 3);
    CHECK(SKY_Handovers_Asked(&handovers, &search, 5, 1, 1, 0));
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 1, 1, 0));
    begin(1, 5);
    CHECK(!SKY_Handovers_Asked(&handovers, &search, 5, 2, 1, 1));
    begin(1, 6);
    CHECK_EQ(search.first, 3);
}

int main(void)
{
    RUN(test_what_a_word_means);
    RUN(test_before_anybody_was_asked_nothing_is_known);
    RUN(test_nobody_to_ask_is_certain_at_once);
    RUN(test_nothing_left_is_asked_twice_and_counts_for_the_row);
    RUN(test_something_left_counts_for_a_moment);
    RUN(test_while_one_is_silent_nothing_is_certain);
    RUN(test_what_was_settled_stays_so);
    return CHECK_RESULT();
}
