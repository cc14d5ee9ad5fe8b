/**
 * @file
 * FIND: the look-up of a block by its key.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS + 1u];

/* ---- one key --------------------------------------------------------------------------------------------------------- */

static void test_find(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK(SKY_Stripe_Equal(&runs[1].one.facts.stripe, &runs[0].op.facts.stripe));
    CHECK(runs[1].one.facts.version == 6 && runs[1].one.facts.content == 7);
    CHECK_EQ(find(&runs[1], 2), SKY_STATUS_MISS);
    CHECK_EQ(told_searched, 1); /* a block that is denied may be on its way */

    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_NO_SATELLITE);
    sky.parity = 1;
    set_sky();
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_NO_SATELLITE);
    sky.uplink = (uint32_t)SKY_UPLINK_DIRECT;
    set_sky();
    silence_all(true);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
    CHECK(ground.reach.pause_us > 0 && told_lost == 1);
    asked_count = 0;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED); /* nothing is asked for a while */
    CHECK_EQ(asked_count, 0);
    now_us += 2u * SKY_HOST_PAUSE_FIRST_US;
    silence_all(false);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    close_ground();
}

static SKY_Addr_t told_first; /* its word is another one */

static bool is_first_newer(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (question->op == SKY_OP_HAS && SKY_Addr_Equal(question->dst, told_first))
    {
        answer->block_version = 8;
    }
    return true;
}

static bool is_unsound(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->key[5] ^= question->op == SKY_OP_HAS ? 1u : 0u;
    return true;
}

/* With parity all that may know the block are asked at once. */
static void test_find_asks_all_at_once_if_blocks_have_parity(void)
{
    open_ground(1);
    sky.parity = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 6);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    asked_count = 0;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), 2);
    for (uint32_t i = 0; i < 2u; ++i) /* the newest word counts, whoever says it */
    {
        told_first = asked[i].dst;
        forge      = is_first_newer;
        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        CHECK_EQ(runs[1].one.facts.version, 8);
        forge = NULL;
    }
    silence(told_first, true);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE); /* the other one knows it */
    CHECK_EQ(find(&runs[1], 2), SKY_STATUS_MISS); /* stand-ins deny it, after a look */
    CHECK(SKY_Ground_IsLost(&ground, told_first));
    silence(told_first, false);
    forge = is_unsound;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].one.facts.stripe.block_len, 0);
    close_ground();
}

static bool is_cut_for_others(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    SKY_Stripe_t stripe;

    CHECK(SKY_Stripe_Cut(&stripe, 950, CHUNK, 2, 1));
    if (question->op == SKY_OP_HAS)
    {
        SKY_Stripe_ToPacket(&stripe, answer);
    }
    return true;
}

/* They are there, but do not say what they hold. */
static void test_find_without_a_word(void)
{
    open_ground(1);
    forge = refuses_has;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
    CHECK(ground.reach.lost_count == 0 && ground.reach.pause_us == 0);
    close_ground();
}

/* With parity, and late satellites: who is silent when places are asked once more says nothing new. */
static void test_find_again_with_a_silent_satellite(void)
{
    open_ground(4);
    sky.parity = 1;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    now_us = START_US + 3u * ROW_US + 10u * SECOND_US;
    poll_all();
    submit(prepare(&runs[1], SKY_GROUND_FIND, 2, 950, 0));
    while (asked_of(SKY_OP_STATS, 0) == 0u)
    {
        step();
    }
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        silence(home_of(&runs[0].op, 4, share), true);
    }
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_MISS);
    close_ground();
}

/* This host has learned that a share is missing, or cannot fetch what was cut for another number of servers. */
static void test_what_is_there_and_of_no_use_is_missed(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0);
    runs[1].one.is_incomplete = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_MISS);
    forge = is_cut_for_others;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_MISS);
    forge = NULL;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    close_ground();
}

/* ---- one satellite is silent ----------------------------------------------------------------------------------------- */

/* A block of which two satellites are asked. @return the one that is asked as the second */
static SKY_Addr_t put_with_parity(uint64_t version)
{
    open_ground(1);
    sky.parity = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, version);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    while (hear(UINT64_MAX))
    {
        (void)SKY_Ground_Run(&ground, now_us, true);
    }
    return asked[asked_count - 1u].dst;
}

/* Run what goes on though nobody waits for it. */
static void run_for(uint64_t us)
{
    const uint64_t until_us = now_us + us;

    while (now_us < until_us)
    {
        const uint64_t due_us = SKY_Ground_Run(&ground, now_us, true);

        if (!hear(until_us))
        {
            now_us = due_us > now_us && due_us < until_us ? due_us : until_us;
        }
    }
}

/* The first yes ends it. That another one is silent is not forgotten. */
static void test_nobody_waits_for_one_that_has_nothing_to_add(void)
{
    const SKY_Addr_t silent = put_with_parity(0);

    silence(silent, true);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        const uint64_t from_us = now_us;

        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        CHECK(now_us - from_us <= 2u * RTT_US);
        CHECK_EQ(told_lost, 0);
    }
    CHECK_EQ(SKY_Host_Asking(&ground.host), 1); /* one question is enough */
    run_for(5u * SECOND_US);
    CHECK(told_lost == 1 && SKY_Ground_IsLost(&ground, silent));
    asked_count = 0;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(!SKY_Addr_Equal(asked[i].dst, silent));
    }
    close_ground();
}

static void test_who_answers_late_is_there(void)
{
    const SKY_Addr_t second = put_with_parity(0);

    asked_count = 0;
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0));
    (void)SKY_Ground_Run(&ground, now_us, true);
    CHECK_EQ(asked_count, 2);
    CHECK(hear(UINT64_MAX)); /* both before the ground runs */
    CHECK(hear(UINT64_MAX));
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    run_for(SECOND_US);
    CHECK(SKY_Host_Asking(&ground.host) == 0 && told_lost == 0);

    silence(second, true); /* it is found lost by somebody else before its silence is noted */
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK_EQ(find(&runs[1], 2), SKY_STATUS_MISS);
    CHECK(told_lost == 1 && SKY_Ground_IsLost(&ground, second));
    run_for(5u * SECOND_US);
    CHECK_EQ(told_lost, 1);
    silence(second, false);
    silence_all(false);
    close_ground();
}

/* Nobody is in sight when a look is due. */
static void test_a_look_at_who_was_silent_may_find_nobody_in_sight(void)
{
    const SKY_Addr_t silent = put_with_parity(0);

    silence(silent, true);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    run_for(5u * SECOND_US);
    CHECK(told_lost == 0 && ground.reach.lost_count == 0);
    close_ground();
}

/* Of a value one more than hold parity have to say which version they know. */
static void test_the_word_of_one_is_too_little_for_a_value(void)
{
    told_mute = put_with_parity(5);
    forge     = is_mute;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
    CHECK_EQ(find(&runs[1], 2), SKY_STATUS_UNANSWERED);
    CHECK_EQ(told_lost, 0);
    forge = NULL;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    silence(told_mute, true); /* another one stands in, and is a home's word */
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK(told_lost == 1 && runs[1].one.facts.version == 5 && runs[1].one.silences == 1);
    close_ground();

    told_mute = put_with_parity(0); /* of what has no version it is enough */
    forge     = is_mute;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0);
    runs[1].op.is_fresh = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK_EQ(runs[1].one.silences, 1);
    close_ground();
}

/* All homes are lost: what stands in for them does not say that a block is absent. One home suffices. */
static void test_who_stands_in_does_not_say_that_a_block_is_absent(void)
{
    const SKY_Addr_t left = {1, 1};

    told_mute = put_with_parity(5);
    silence(told_mute, true);
    CHECK_EQ(find(&runs[1], 2), SKY_STATUS_MISS);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    silence_all(true);
    silence(left, false);
    for (uint32_t i = 0; i < 40u && ground.reach.lost_count + 1u < NODES; ++i)
    {
        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
        now_us += SECOND_US;
    }
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_UNANSWERED);
    close_ground();
}

/* ---- while the sky turns --------------------------------------------------------------------------------------------- */

static SKY_Addr_t told_new; /* it knows a newer version */

static bool tells_versions(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (question->op == SKY_OP_HAS)
    {
        const SKY_Stripe_t *stripe = &runs[0].op.facts.stripe;

        answer->status = SKY_STATUS_OK;
        SKY_Stripe_ToPacket(stripe, answer);
        answer->block_version = SKY_Addr_Equal(question->dst, told_new) ? 6u : 5u;
    }
    return true;
}

static bool tells_block(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    (void)tells_versions(question, answer);
    answer->block_version = 0;
    return true;
}

/* What is asked first may have the version of before. */
static void test_the_newest_version_is_found_while_the_window_moves(void)
{
    open_ground(2);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 350, 5);
    now_us = START_US + ROW_US + SECOND_US / 100u;
    CHECK(!SKY_Addr_Equal(home_of(&runs[0].op, 1, 0), home_of(&runs[0].op, 2, 0)));
    for (uint32_t row = 1; row <= 2u; ++row)
    {
        told_new = home_of(&runs[0].op, row, 0);
        forge    = tells_versions;
        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        CHECK_EQ(runs[1].one.facts.version, 6);
    }
    asked_count = 0;
    forge       = tells_block;
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), 1); /* of what has no version there is no newer one */
    (void)prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0);
    runs[1].op.is_fresh = true;
    asked_count         = 0;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), 2); /* whatever one says first */
    told_mute = home_of(&runs[0].op, 2, 0);
    forge     = is_mute; /* one after the other: nobody is asked behind a silent one */
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_UNANSWERED);
    close_ground();
}

/* All that may know a newer version say what they know, also of a block without versions. */
static void test_a_fresh_look_at_a_block_without_versions(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_FIND, 1, 1, 0);
    runs[1].op.is_fresh = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK_EQ(runs[1].one.facts.stripe.block_len, 950);
    close_ground();
}

int main(void)
{
    RUN(test_find);
    RUN(test_find_asks_all_at_once_if_blocks_have_parity);
    RUN(test_find_without_a_word);
    RUN(test_find_again_with_a_silent_satellite);
    RUN(test_what_is_there_and_of_no_use_is_missed);
    RUN(test_nobody_waits_for_one_that_has_nothing_to_add);
    RUN(test_who_answers_late_is_there);
    RUN(test_a_look_at_who_was_silent_may_find_nobody_in_sight);
    RUN(test_the_word_of_one_is_too_little_for_a_value);
    RUN(test_who_stands_in_does_not_say_that_a_block_is_absent);
    RUN(test_the_newest_version_is_found_while_the_window_moves);
    RUN(test_a_fresh_look_at_a_block_without_versions);
    return CHECK_RESULT();
}
