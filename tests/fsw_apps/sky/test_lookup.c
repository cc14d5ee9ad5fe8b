/* Who is asked for blocks of which only the keys are known, and what is found, missed, or not answered. */
#include "sky_lookup.h"

#include "check.h"

static SKY_LookupKey_t keys[3];

static SKY_Lookup_t lookup_of(uint32_t count, bool is_over)
{
    SKY_Lookup_t lookup;

    SKY_Lookup_Init(&lookup, keys, count, is_over);
    return lookup;
}

/* One satellite says these words of the keys that it is asked for. @return the next one is to be asked */
static bool say(SKY_Lookup_t *lookup, const SKY_HasWord_t *words)
{
    for (uint32_t i = 0; i < lookup->count; ++i)
    {
        if (SKY_Lookup_Wants(lookup, i))
        {
            SKY_Lookup_Take(lookup, i, words[i]);
        }
    }
    return SKY_Lookup_Asked(lookup);
}

static const SKY_HasWord_t here[]    = {SKY_WORD_BLOCK, SKY_WORD_BLOCK, SKY_WORD_BLOCK};
static const SKY_HasWord_t gone[]    = {SKY_WORD_ABSENT, SKY_WORD_UNSOUND, SKY_WORD_ABSENT};
static const SKY_HasWord_t nothing[] = {SKY_WORD_NOTHING, SKY_WORD_NOTHING, SKY_WORD_NOTHING};
static const SKY_HasWord_t mixed[]   = {SKY_WORD_BLOCK, SKY_WORD_NOTHING, SKY_WORD_ABSENT};

static void test_nothing_is_asked_for_nothing(void)
{
    SKY_Lookup_t lookup;

    SKY_Lookup_Init(&lookup, NULL, 0, false);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
}

static void test_where_nobody_can_be_asked_nobody_answers(void)
{
    SKY_Lookup_t lookup = lookup_of(1, false);

    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(!SKY_Lookup_Begin(&lookup, 1, 0));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), SKY_STATUS_UNANSWERED);
}

static void test_what_is_found_is_not_asked_for_again(void)
{
    SKY_Lookup_t lookup = lookup_of(3, false);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 3));
    CHECK(SKY_Lookup_Wants(&lookup, 0));
    CHECK(say(&lookup, mixed));
    CHECK(!SKY_Lookup_Wants(&lookup, 0));
    CHECK(SKY_Lookup_Wants(&lookup, 1)); /* the next one may have it */
    CHECK(SKY_Lookup_Wants(&lookup, 2));
    CHECK(!say(&lookup, here)); /* the third has nothing to add */
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        CHECK_EQ(SKY_Lookup_Status(&lookup, i, false), SKY_STATUS_DONE);
        CHECK_EQ(SKY_Lookup_Status(&lookup, i, true), SKY_STATUS_MISS);
    }
}

static void test_who_is_asked_next_cannot_deny_for_another(void)
{
    SKY_Lookup_t lookup = lookup_of(3, true);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 3));
    CHECK(say(&lookup, mixed));
    CHECK(say(&lookup, mixed));
    CHECK(!say(&lookup, gone));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(!SKY_Lookup_Begin(&lookup, 1, 3)); /* the same again */
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), SKY_STATUS_DONE);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 1, false), SKY_STATUS_UNANSWERED);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 1, true), SKY_STATUS_UNANSWERED);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 2, false), SKY_STATUS_MISS);
}

/* Another one would be waited for as long. */
static void test_after_one_that_says_nothing_at_all_nobody_is_asked(void)
{
    SKY_Lookup_t lookup = lookup_of(3, true);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 3));
    CHECK(say(&lookup, gone));
    CHECK(!say(&lookup, nothing));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(SKY_Lookup_Begin(&lookup, 2, 1)); /* around it */
    CHECK(!say(&lookup, mixed));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_LOOK); /* who is silent is of use to others */
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), SKY_STATUS_DONE);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 1, false), SKY_STATUS_UNANSWERED);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 2, false), SKY_STATUS_MISS);
}

static void test_only_what_is_left_is_asked_on_another_way(void)
{
    SKY_Lookup_t lookup = lookup_of(3, true);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 1));
    CHECK(!say(&lookup, mixed));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(SKY_Lookup_Begin(&lookup, 2, 1));
    CHECK(!SKY_Lookup_Wants(&lookup, 0));
    CHECK(SKY_Lookup_Wants(&lookup, 1));
    CHECK(!SKY_Lookup_Wants(&lookup, 2));
    CHECK(!say(&lookup, gone));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 1, false), SKY_STATUS_MISS); /* those who are there deny it */
}

static void test_what_all_deny_may_be_on_its_way(void)
{
    for (uint32_t found = 0; found < 5u; ++found)
    {
        SKY_Lookup_t lookup = lookup_of(1, false);

        CHECK(SKY_Lookup_Begin(&lookup, 1, 1));
        CHECK(!say(&lookup, gone));
        CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_SEARCH);
        CHECK(SKY_Lookup_Wants(&lookup, 0));
        CHECK(!say(&lookup, found == 0u ? here : nothing));
        if (found > 0u)
        {
            CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_AGAIN); /* it may have moved between the questions */
            CHECK(!say(&lookup, found == 1u ? here : gone));
        }
        if (found > 1u)
        {
            CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_SEARCH); /* to where it has to move on from */
            CHECK(!say(&lookup, found == 2u ? here : gone));
        }
        if (found > 2u)
        {
            CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_AGAIN);
            CHECK(!say(&lookup, found == 3u ? here : gone));
        }
        CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
        CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), found < 4u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
    }
}

static void test_where_nobody_is_late_one_search_is_enough(void)
{
    SKY_Lookup_t lookup = lookup_of(1, false);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 1));
    CHECK(!say(&lookup, gone));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_SEARCH);
    CHECK(!SKY_Lookup_Asked(&lookup));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_AGAIN);
    CHECK(!say(&lookup, gone));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), SKY_STATUS_MISS);
}

static void test_of_several_that_are_late_one_word_is_enough(void)
{
    SKY_Lookup_t lookup = lookup_of(1, false);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 1));
    CHECK(!say(&lookup, gone));
    SKY_Lookup_Take(&lookup, 0, SKY_WORD_ABSENT);
    SKY_Lookup_Take(&lookup, 0, SKY_WORD_BLOCK);
    SKY_Lookup_Take(&lookup, 0, SKY_WORD_NOTHING);
    SKY_Lookup_Take(&lookup, 0, SKY_WORD_ABSENT);
    CHECK(!SKY_Lookup_Asked(&lookup));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, 0, false), SKY_STATUS_DONE);
}

static void test_only_what_was_denied_is_searched_for(void)
{
    SKY_Lookup_t lookup = lookup_of(3, false);

    CHECK(SKY_Lookup_Begin(&lookup, 1, 1));
    CHECK(!say(&lookup, mixed));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(!SKY_Lookup_Begin(&lookup, 1, 1));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_SEARCH);
    CHECK(!SKY_Lookup_Wants(&lookup, 0));
    CHECK(!SKY_Lookup_Wants(&lookup, 1));
    CHECK(SKY_Lookup_Wants(&lookup, 2));
}

int main(void)
{
    RUN(test_nothing_is_asked_for_nothing);
    RUN(test_where_nobody_can_be_asked_nobody_answers);
    RUN(test_what_is_found_is_not_asked_for_again);
    RUN(test_who_is_asked_next_cannot_deny_for_another);
    RUN(test_after_one_that_says_nothing_at_all_nobody_is_asked);
    RUN(test_only_what_is_left_is_asked_on_another_way);
    RUN(test_what_all_deny_may_be_on_its_way);
    RUN(test_where_nobody_is_late_one_search_is_enough);
    RUN(test_of_several_that_are_late_one_word_is_enough);
    RUN(test_only_what_was_denied_is_searched_for);
    return CHECK_RESULT();
}
