/* How often a host tries to move a block, and what a block that did not come means. */
#include "sky_transfer_attempts.h"

#include "check.h"

static const uint32_t   first_rows[]  = {3, 2};
static const uint32_t   second_rows[] = {4, 3};
static const SKY_Rows_t none          = {NULL, 0};
static const SKY_Rows_t first         = {first_rows, 2};
static const SKY_Rows_t second        = {second_rows, 2};
static const SKY_Late_t unknown       = {false, false, false};
static const SKY_Late_t settled       = {true, true, true};
static const SKY_Late_t unsure        = {true, true, false};
static const SKY_Late_t going_on      = {true, false, true};

static SKY_TransferAttempts_t get_of(SKY_Late_t late)
{
    SKY_TransferAttempts_t get;

    SKY_TransferAttempts_InitGet(&get, &late, 3, true);
    return get;
}

/* One attempt over the places of the first rows. */
static void attempt(SKY_TransferAttempts_t *attempts, uint32_t ways, uint32_t status)
{
    CHECK_EQ(SKY_TransferAttempts_Next(attempts), SKY_ATTEMPT_ASK);
    CHECK(SKY_TransferAttempts_Begin(attempts, &first, ways));
    SKY_TransferAttempts_Ended(attempts, status, false, false, &first, 3);
}

static void test_what_a_denied_share_means(void)
{
    const SKY_Denied_t gone = {false, false, false, true, false, false, false, true};
    SKY_Denied_t       one  = gone;

    CHECK_EQ(SKY_Verdict_Of(&gone), SKY_VERDICT_PURGE);
    one.lazy_purge = false;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one             = gone;
    one.at_stand_in = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one              = gone;
    one.is_unsettled = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    CHECK(SKY_Verdict_MayPurge(&one));
    one.at_stand_in = true;
    CHECK(!SKY_Verdict_MayPurge(&one));
    one            = gone;
    one.is_certain = false;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one          = gone;
    one.is_other = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one          = gone;
    one.is_blind = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one          = gone;
    one.is_aside = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_FORGET);
    one.has_moved = true;
    CHECK_EQ(SKY_Verdict_Of(&one), SKY_VERDICT_KEEP);
}

/* Each stand-in has to say that it holds nothing. If there are none nobody can. */
static void test_a_stand_in_may_hold_some(void)
{
    CHECK(SKY_Verdict_IsAside(0, 0));
    CHECK(SKY_Verdict_IsAside(4, 0));
    CHECK(SKY_Verdict_IsAside(4, 3));
    CHECK(!SKY_Verdict_IsAside(4, 4));
    CHECK(!SKY_Verdict_IsAside(1, 1));
}

static void test_what_comes_or_is_refused_is_over(void)
{
    static const uint32_t ends[] = {SKY_STATUS_DONE, SKY_STATUS_STORE_FULL, SKY_STATUS_CANCELLED};

    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i)
    {
        SKY_TransferAttempts_t get = get_of(unknown);
        SKY_TransferAttempts_t put;

        SKY_TransferAttempts_InitPut(&put);
        attempt(&get, 1, ends[i]);
        attempt(&put, 1, ends[i]);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_KEEP);
        CHECK_EQ(SKY_TransferAttempts_Next(&put), SKY_ATTEMPT_END);
    }
}

/* Once around those that were found lost; not again if none was. */
static void test_silence_is_asked_around_once(void)
{
    static const uint32_t ends[] = {SKY_STATUS_EXPIRED, SKY_STATUS_UNREACHABLE, SKY_STATUS_HOP_LIMIT};

    for (uint32_t i = 0; i < 2u * sizeof(ends) / sizeof(ends[0]); ++i)
    {
        SKY_TransferAttempts_t some = get_of(settled);

        if (i % 2u == 1u)
        {
            SKY_TransferAttempts_InitPut(&some);
        }
        attempt(&some, 1, ends[i / 2u]);
        CHECK_EQ(SKY_TransferAttempts_Next(&some), SKY_ATTEMPT_LOOK);
        CHECK_EQ(SKY_TransferAttempts_Next(&some), SKY_ATTEMPT_ASK);

        SKY_TransferAttempts_t same = some;

        CHECK(!SKY_TransferAttempts_Begin(&same, &first, 1));
        CHECK_EQ(SKY_TransferAttempts_Next(&same), SKY_ATTEMPT_END);

        attempt(&some, 2, ends[i / 2u]);
        CHECK_EQ(SKY_TransferAttempts_Next(&some), SKY_ATTEMPT_LOOK); /* who is silent is of use to others */
        CHECK_EQ(SKY_TransferAttempts_Next(&some), SKY_ATTEMPT_END);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&some), SKY_VERDICT_KEEP);
    }
}

static void test_a_put_that_is_denied_asks_nobody_anything(void)
{
    SKY_TransferAttempts_t put;

    SKY_TransferAttempts_InitPut(&put);
    attempt(&put, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&put), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&put), SKY_VERDICT_KEEP);
}

static void test_what_is_gone_is_purged_once_it_is_confirmed(void)
{
    SKY_TransferAttempts_t get = get_of(settled);

    attempt(&get, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);

    SKY_TransferAttempts_t other = get;
    SKY_TransferAttempts_t blind = get;
    SKY_TransferAttempts_t aside = get;

    SKY_TransferAttempts_Confirmed(&get, false, false, false);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_PURGE);
    SKY_TransferAttempts_Confirmed(&other, true, false, false); /* what is there now is asked for, once */
    attempt(&other, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&other), SKY_ATTEMPT_CONFIRM);
    SKY_TransferAttempts_Confirmed(&other, true, false, false);
    CHECK_EQ(SKY_TransferAttempts_Next(&other), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&other), SKY_VERDICT_FORGET);
    SKY_TransferAttempts_Confirmed(&blind, false, true, false);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&blind), SKY_VERDICT_FORGET);
    SKY_TransferAttempts_Confirmed(&aside, false, false, true);
    CHECK_EQ(SKY_TransferAttempts_Next(&aside), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&aside), SKY_VERDICT_FORGET);

    SKY_TransferAttempts_t hesitant = get_of(unsure);

    attempt(&hesitant, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&hesitant), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&hesitant), SKY_VERDICT_FORGET);

    SKY_TransferAttempts_InitGet(&hesitant, &settled, 3, false);
    attempt(&hesitant, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&hesitant), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&hesitant), SKY_VERDICT_FORGET);
}

static void test_another_block_of_the_name(void)
{
    SKY_TransferAttempts_t get = get_of(settled);
    SKY_TransferAttempts_t put;

    SKY_TransferAttempts_InitPut(&put);
    attempt(&put, 1, SKY_STATUS_BAD_KEY);
    CHECK_EQ(SKY_TransferAttempts_Next(&put), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&put), SKY_VERDICT_KEEP);

    attempt(&get, 1, SKY_STATUS_BAD_KEY);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);

    SKY_TransferAttempts_t gone = get;

    SKY_TransferAttempts_Confirmed(&gone, false, false, false);
    CHECK_EQ(SKY_TransferAttempts_Next(&gone), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&gone), SKY_VERDICT_FORGET);
    SKY_TransferAttempts_Confirmed(&get, true, false, false);
    attempt(&get, 1, SKY_STATUS_DONE);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_KEEP);
}

/* A window that moves on during each attempt is followed twice. */
static void test_what_has_moved_is_asked_for_where_it_is(void)
{
    SKY_TransferAttempts_t get = get_of(settled);

    for (uint32_t ways = 1; ways <= 3u; ++ways)
    {
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_ASK);
        CHECK(SKY_TransferAttempts_Begin(&get, &first, ways));
        SKY_TransferAttempts_Ended(&get, SKY_STATUS_MISS, false, false, &second, 3);
    }
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_KEEP);
    SKY_TransferAttempts_t there = get_of(settled); /* a block that came is not looked for elsewhere */

    CHECK(SKY_TransferAttempts_Begin(&there, &none, 1));
    SKY_TransferAttempts_Ended(&there, SKY_STATUS_DONE, true, true, &second, 4);
    CHECK_EQ(SKY_TransferAttempts_Next(&there), SKY_ATTEMPT_END);
}

/* A stand-in never had the share; whom it stands in for may be back. */
static void test_a_stand_in_raises_doubts(void)
{
    SKY_TransferAttempts_t get = get_of(settled);

    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_ASK);
    CHECK(SKY_TransferAttempts_Begin(&get, &first, 1));
    SKY_TransferAttempts_Ended(&get, SKY_STATUS_MISS, true, false, &first, 3);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_DOUBT);

    SKY_TransferAttempts_t same = get;

    CHECK(!SKY_TransferAttempts_Begin(&same, &first, 1));
    CHECK_EQ(SKY_TransferAttempts_Next(&same), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&same), SKY_VERDICT_FORGET);

    SKY_TransferAttempts_t again = get;

    CHECK_EQ(SKY_TransferAttempts_Next(&again), SKY_ATTEMPT_ASK);
    CHECK(SKY_TransferAttempts_Begin(&again, &first, 2));
    SKY_TransferAttempts_Ended(&again, SKY_STATUS_MISS, true, false, &first, 3);
    CHECK_EQ(SKY_TransferAttempts_Next(&again), SKY_ATTEMPT_DOUBT);
    CHECK_EQ(SKY_TransferAttempts_Next(&again), SKY_ATTEMPT_END);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&again), SKY_VERDICT_FORGET);

    attempt(&get, 2, SKY_STATUS_MISS); /* it is back, and does not have it either */
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);
}

static void search(SKY_TransferAttempts_t *get, SKY_Late_t late, uint32_t row, uint32_t status, uint32_t row_then)
{
    CHECK_EQ(SKY_TransferAttempts_Next(get), SKY_ATTEMPT_SEARCH);
    SKY_TransferAttempts_Searched(get, &late, row);
    CHECK_EQ(SKY_TransferAttempts_Next(get), SKY_ATTEMPT_ASK);
    CHECK(SKY_TransferAttempts_Begin(get, &first, 1)); /* the same ways: a chunk may have come meanwhile */
    SKY_TransferAttempts_Ended(get, status, false, false, &first, row_then);
}

/* What such a satellite denies may be on its way to it. The same is asked as of others. */
static void test_the_word_of_who_is_not_settled_purges_nothing(void)
{
    for (uint32_t is_settled = 0; is_settled < 2u; ++is_settled)
    {
        SKY_TransferAttempts_t get  = get_of(settled);
        SKY_TransferAttempts_t late = get_of(unknown);

        CHECK(SKY_TransferAttempts_Begin(&get, &first, 1));
        SKY_TransferAttempts_Ended(&get, SKY_STATUS_MISS, false, is_settled == 0u, &first, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);
        SKY_TransferAttempts_Confirmed(&get, false, false, false);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
        CHECK_EQ(get.status, SKY_STATUS_MISS);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&get), is_settled == 0u ? SKY_VERDICT_FORGET : SKY_VERDICT_PURGE);

        CHECK(SKY_TransferAttempts_Begin(&late, &first, 1));
        SKY_TransferAttempts_Ended(&late, SKY_STATUS_MISS, false, is_settled == 0u, &first, 3);
        search(&late, settled, 3, SKY_STATUS_MISS, 3); /* it is settled by now */
        CHECK_EQ(SKY_TransferAttempts_Next(&late), SKY_ATTEMPT_CONFIRM);
        SKY_TransferAttempts_Confirmed(&late, false, false, false);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&late), SKY_VERDICT_PURGE);
    }
}

static void test_what_may_be_late_is_searched_for(void)
{
    static const SKY_Late_t before[] = {{false, false, false}, {false, true, true}, {true, false, true}};

    for (uint32_t i = 0; i < 3u; ++i)
    {
        SKY_TransferAttempts_t get = get_of(before[i]);

        attempt(&get, 1, SKY_STATUS_MISS);

        SKY_TransferAttempts_t there = get, late = get, gone = get, turning = get, silent = get;

        search(&there, going_on, 3, SKY_STATUS_DONE, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&there), SKY_ATTEMPT_END);
        search(&late, i == 1u ? before[1] : going_on, 3, SKY_STATUS_MISS, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&late), SKY_ATTEMPT_END);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&late), SKY_VERDICT_FORGET); /* it may come */
        search(&gone, settled, 3, SKY_STATUS_MISS, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&gone), SKY_ATTEMPT_CONFIRM);
        search(&silent, unsure, 3, SKY_STATUS_EXPIRED, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&silent), SKY_ATTEMPT_END);
        for (uint32_t row = 3; row < 7u; ++row)
        {
            search(&turning, row == 6u ? settled : going_on, row, SKY_STATUS_MISS, row + 1u);
        }
        CHECK_EQ(SKY_TransferAttempts_Next(&turning), SKY_ATTEMPT_END);
        CHECK_EQ(turning.status, SKY_STATUS_EXPIRED); /* nothing is known of the block */
        CHECK_EQ(SKY_TransferAttempts_Verdict(&turning), SKY_VERDICT_KEEP);
    }
}

/* Who could not hand its share over to a silent satellite still has it. */
static void test_behind_silence_somebody_may_be_late(void)
{
    static const uint32_t ends[] = {SKY_STATUS_EXPIRED, SKY_STATUS_UNREACHABLE, SKY_STATUS_HOP_LIMIT};

    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i)
    {
        SKY_TransferAttempts_t get = get_of(unknown);

        attempt(&get, 1, ends[i]);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_LOOK);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_ASK);

        SKY_TransferAttempts_t same = get;

        CHECK(!SKY_TransferAttempts_Begin(&same, &first, 1)); /* nobody was found lost */
        CHECK_EQ(SKY_TransferAttempts_Next(&same), SKY_ATTEMPT_SEARCH);
        attempt(&get, 2, ends[i]);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_LOOK);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_SEARCH);

        SKY_TransferAttempts_t over = get, in_vain = get, not_known = get;

        SKY_TransferAttempts_Searched(&over, &unsure, 3); /* nobody is late: it is not asked a third time */
        CHECK_EQ(SKY_TransferAttempts_Next(&over), SKY_ATTEMPT_END);
        CHECK_EQ(SKY_TransferAttempts_Verdict(&over), SKY_VERDICT_KEEP);
        search(&in_vain, going_on, 3, ends[i], 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&in_vain), SKY_ATTEMPT_END);
        search(&not_known, unknown, 3, ends[i], 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&not_known), SKY_ATTEMPT_END);
        search(&get, going_on, 3, SKY_STATUS_DONE, 3);
        CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
        CHECK_EQ(get.status, SKY_STATUS_DONE);
    }
}

/* What was known of handovers is of the row that held then. */
static void test_a_new_row_may_be_late(void)
{
    SKY_TransferAttempts_t get = get_of(settled);

    CHECK(SKY_TransferAttempts_Begin(&get, &second, 1));
    SKY_TransferAttempts_Ended(&get, SKY_STATUS_MISS, false, false, &second, 4);
    search(&get, settled, 4, SKY_STATUS_MISS, 4);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);
}

/* A miss that purges nothing is confirmed, too, if it is in doubt. */
static void test_a_miss_in_doubt_is_confirmed(void)
{
    SKY_TransferAttempts_t get = get_of(settled);

    get.denied.lazy_purge = false;
    SKY_TransferAttempts_Doubt(&get); /* it has not begun yet */
    attempt(&get, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    SKY_TransferAttempts_Doubt(&get);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_CONFIRM);
    SKY_TransferAttempts_Confirmed(&get, false, false, false);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    get = get_of(settled);
    attempt(&get, 1, SKY_STATUS_DONE);
    SKY_TransferAttempts_Doubt(&get);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
}

static void test_nobody_can_be_asked(void)
{
    SKY_TransferAttempts_t get = get_of(settled);
    SKY_TransferAttempts_t put;

    SKY_TransferAttempts_GiveUp(&get);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_END);
    CHECK_EQ(get.status, SKY_STATUS_RUNNING);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_KEEP);

    get = get_of(unknown);
    attempt(&get, 1, SKY_STATUS_MISS);
    CHECK_EQ(SKY_TransferAttempts_Next(&get), SKY_ATTEMPT_SEARCH);
    SKY_TransferAttempts_Searched(&get, &settled, 3);
    SKY_TransferAttempts_GiveUp(&get);
    CHECK_EQ(SKY_TransferAttempts_Verdict(&get), SKY_VERDICT_FORGET);

    SKY_TransferAttempts_InitPut(&put);
    SKY_TransferAttempts_GiveUp(&put);
    CHECK_EQ(SKY_TransferAttempts_Next(&put), SKY_ATTEMPT_END);
}

int main(void)
{
    RUN(test_what_a_denied_share_means);
    RUN(test_a_stand_in_may_hold_some);
    RUN(test_what_comes_or_is_refused_is_over);
    RUN(test_silence_is_asked_around_once);
    RUN(test_a_put_that_is_denied_asks_nobody_anything);
    RUN(test_what_is_gone_is_purged_once_it_is_confirmed);
    RUN(test_another_block_of_the_name);
    RUN(test_what_has_moved_is_asked_for_where_it_is);
    RUN(test_a_stand_in_raises_doubts);
    RUN(test_the_word_of_who_is_not_settled_purges_nothing);
    RUN(test_what_may_be_late_is_searched_for);
    RUN(test_behind_silence_somebody_may_be_late);
    RUN(test_a_new_row_may_be_late);
    RUN(test_a_miss_in_doubt_is_confirmed);
    RUN(test_nobody_can_be_asked);
    return CHECK_RESULT();
}
