/* Who is asked for a block of which only the key is known, and whether it is found, missed, or not answered. */
#include "sky_lookup.h"

#include "check.h"

static SKY_Lookup_t lookup;

static void begin(bool is_over)
{
    SKY_Lookup_Init(&lookup, is_over);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
}

/* The satellites of a step say this together. */
static void say(SKY_HasWord_t word, SKY_LookupStep_t next)
{
    SKY_Lookup_Told(&lookup, word);
    CHECK_EQ(SKY_Lookup_Next(&lookup), next);
}

static void ask(uint32_t ways, SKY_HasWord_t word, SKY_LookupStep_t next)
{
    CHECK(SKY_Lookup_Begin(&lookup, ways));
    say(word, next);
}

static void test_where_nobody_can_be_asked_nobody_answers(void)
{
    begin(false);
    CHECK(!SKY_Lookup_Begin(&lookup, 0));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_UNANSWERED);
}

static void test_what_is_found_is_there_unless_a_share_is_missing(void)
{
    begin(false);
    ask(1, SKY_WORD_BLOCK, SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_DONE);
    CHECK_EQ(SKY_Lookup_Status(&lookup, true), SKY_STATUS_MISS);
}

static void test_the_same_satellites_are_not_asked_twice(void)
{
    begin(true);
    ask(1, SKY_WORD_NOTHING, SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    CHECK(!SKY_Lookup_Begin(&lookup, 1));
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_UNANSWERED);
    CHECK_EQ(SKY_Lookup_Status(&lookup, true), SKY_STATUS_UNANSWERED);
}

static void test_others_are_asked_around_one_that_is_silent_once(void)
{
    begin(true);
    ask(1, SKY_WORD_NOTHING, SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    ask(2, SKY_WORD_NOTHING, SKY_LOOKUP_LOOK); /* who is silent is of use to others */
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_UNANSWERED);
}

static void test_those_who_are_there_deny_it(void)
{
    begin(true);
    ask(1, SKY_WORD_NOTHING, SKY_LOOKUP_LOOK);
    CHECK_EQ(SKY_Lookup_Next(&lookup), SKY_LOOKUP_ASK);
    ask(2, SKY_WORD_UNSOUND, SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_MISS);
}

static void test_what_all_deny_may_be_on_its_way(void)
{
    static const SKY_LookupStep_t steps[] = {SKY_LOOKUP_AGAIN, SKY_LOOKUP_SEARCH, SKY_LOOKUP_AGAIN, SKY_LOOKUP_END};

    for (uint32_t found = 0; found < 5u; ++found)
    {
        begin(false);
        ask(1, SKY_WORD_ABSENT, SKY_LOOKUP_SEARCH);
        for (uint32_t i = 0; i < 4u && i <= found; ++i) /* it may have moved between the questions, and has to move on */
        {
            say(i == found ? SKY_WORD_BLOCK : SKY_WORD_ABSENT, i == found ? SKY_LOOKUP_END : steps[i]);
        }
        CHECK_EQ(SKY_Lookup_Status(&lookup, false), found < 4u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
    }
}

static void test_where_nobody_is_late_one_search_is_enough(void)
{
    begin(false);
    ask(1, SKY_WORD_ABSENT, SKY_LOOKUP_SEARCH);
    say(SKY_WORD_NOTHING, SKY_LOOKUP_AGAIN);
    say(SKY_WORD_ABSENT, SKY_LOOKUP_END);
    CHECK_EQ(SKY_Lookup_Status(&lookup, false), SKY_STATUS_MISS);
}

int main(void)
{
    RUN(test_where_nobody_can_be_asked_nobody_answers);
    RUN(test_what_is_found_is_there_unless_a_share_is_missing);
    RUN(test_the_same_satellites_are_not_asked_twice);
    RUN(test_others_are_asked_around_one_that_is_silent_once);
    RUN(test_those_who_are_there_deny_it);
    RUN(test_what_all_deny_may_be_on_its_way);
    RUN(test_where_nobody_is_late_one_search_is_enough);
    return CHECK_RESULT();
}
