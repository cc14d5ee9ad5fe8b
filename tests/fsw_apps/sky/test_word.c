/* What a satellite's answer to HAS says of a block: nothing is believed that cannot be. */
#include "sky_word.h"

#include <string.h>

#include "check.h"

static const uint8_t key[SKY_KEY_BYTES] = {7, 8, 9};

/* Three chunks, the last one shorter. */
static SKY_Packet_t answer_of(uint8_t status)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.status      = status;
    pkt.block_len   = 25;
    pkt.chunk_len   = 10;
    pkt.chunk_total = 3;
    pkt.epoch       = 4;
    (void)memcpy(pkt.key, key, sizeof(key));
    return pkt;
}

static SKY_HasWord_t word_of(const SKY_Packet_t *answer)
{
    SKY_BlockFacts_t facts;

    return SKY_Word_Of(answer, key, &facts);
}

static void test_a_block_that_is_known(void)
{
    const SKY_Packet_t answer = answer_of(SKY_STATUS_OK);
    SKY_BlockFacts_t   facts;

    CHECK_EQ(SKY_Word_Of(&answer, key, &facts), SKY_WORD_BLOCK);
    CHECK_EQ(facts.stripe.block_len, 25);
    CHECK_EQ(facts.stripe.chunk_len, 10);
    CHECK_EQ(facts.stripe.chunk_total, 3);
    CHECK_EQ(facts.epoch, 4);
}

static void test_only_the_satellites_own_word_denies(void)
{
    static const uint8_t others[] = {SKY_STATUS_UNREACHABLE, SKY_STATUS_HOP_LIMIT, SKY_STATUS_BUSY, SKY_STATUS_REFUSED};
    const SKY_Packet_t   absent   = answer_of(SKY_STATUS_NOT_FOUND);

    CHECK_EQ(word_of(NULL), SKY_WORD_NOTHING);
    CHECK_EQ(word_of(&absent), SKY_WORD_ABSENT);
    for (uint32_t i = 0; i < sizeof(others); ++i)
    {
        const SKY_Packet_t other = answer_of(others[i]);

        CHECK_EQ(word_of(&other), SKY_WORD_NOTHING);
    }
}

/* Nobody has such a block, and memory would be taken for its rows. */
static void test_a_block_of_too_many_rows_is_none(void)
{
    SKY_Packet_t answer = answer_of(SKY_STATUS_OK);

    answer.block_len   = 3u * SKY_STRIPE_ROWS_MAX;
    answer.chunk_len   = 1;
    answer.chunk_total = 5u * SKY_STRIPE_ROWS_MAX;
    answer.code_k      = 3;
    answer.code_m      = 2;
    answer.code_scheme = SKY_CODE_CAUCHY;
    CHECK_EQ(word_of(&answer), SKY_WORD_BLOCK);
    answer.block_len += 3u;
    answer.chunk_total += 5u;
    CHECK_EQ(word_of(&answer), SKY_WORD_UNSOUND);
}

static void test_numbers_that_contradict_are_no_block(void)
{
    static const struct
    {
        uint32_t      block_len, chunk_len, chunk_total;
        SKY_HasWord_t word;
    } cases[] = {
        {0, 10, 0, SKY_WORD_UNSOUND},
        {20, 10, 3, SKY_WORD_UNSOUND},
        {21, 10, 2, SKY_WORD_UNSOUND},
        {1, 0, 1, SKY_WORD_UNSOUND},
        {SKY_LIMIT_CHUNK_BYTES + 1u, SKY_LIMIT_CHUNK_BYTES + 1u, 1, SKY_WORD_UNSOUND},
        {20, 10, 2, SKY_WORD_BLOCK},
        {21, 10, 3, SKY_WORD_BLOCK},
        {1, SKY_LIMIT_CHUNK_BYTES, 1, SKY_WORD_BLOCK},
        {UINT32_MAX, 1, UINT32_MAX, SKY_WORD_BLOCK},
        {20, 2, UINT32_MAX, SKY_WORD_UNSOUND}, /* no product wraps around */
        {UINT32_MAX, 2, 1u << 31, SKY_WORD_BLOCK},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_Packet_t answer = answer_of(SKY_STATUS_OK);

        answer.block_len   = cases[i].block_len;
        answer.chunk_len   = cases[i].chunk_len;
        answer.chunk_total = cases[i].chunk_total;
        CHECK_EQ(word_of(&answer), cases[i].word);
    }
}

static void test_an_unknown_code_is_no_block(void)
{
    SKY_Packet_t     answer = answer_of(SKY_STATUS_OK);
    SKY_BlockFacts_t facts;

    answer.code_scheme = SKY_CODE_CAUCHY;
    CHECK_EQ(word_of(&answer), SKY_WORD_UNSOUND);
    answer.code_k      = 10;
    answer.code_m      = 2;
    answer.chunk_total = 5;
    CHECK_EQ(SKY_Word_Of(&answer, key, &facts), SKY_WORD_BLOCK);
    CHECK_EQ(facts.stripe.code_k, 10);
    CHECK_EQ(facts.stripe.code_m, 2);
    answer.code_scheme = SKY_CODE_CAUCHY + 1u;
    CHECK_EQ(word_of(&answer), SKY_WORD_UNSOUND);
}

static void test_another_key_is_not_what_was_asked_for(void)
{
    SKY_Packet_t answer = answer_of(SKY_STATUS_OK);

    answer.key[SKY_KEY_BYTES - 1u] ^= 1u;
    CHECK_EQ(word_of(&answer), SKY_WORD_UNSOUND);
}

static void test_another_block_of_the_name_has_other_lengths(void)
{
    const SKY_BlockFacts_t known      = {{25, 10, 3, 0, 0}, 0, 0, 0};
    const SKY_BlockFacts_t prefetched = {{25, 10, 3, 0, 0}, 7, 0, 0};
    const SKY_BlockFacts_t longer     = {{26, 10, 3, 0, 0}, 0, 0, 0};
    const SKY_BlockFacts_t smaller    = {{25, 9, 3, 0, 0}, 0, 0, 0};

    CHECK(!SKY_Word_IsOther(&prefetched, &known));
    CHECK(SKY_Word_IsOther(&longer, &known));
    CHECK(SKY_Word_IsOther(&smaller, &known));
}

static void test_another_version_or_content_is_another_block(void)
{
    const SKY_BlockFacts_t known   = {{25, 10, 3, 0, 0}, 0, 70, 7};
    const SKY_BlockFacts_t newer   = {{25, 10, 3, 0, 0}, 0, 70, 8};
    const SKY_BlockFacts_t unequal = {{25, 10, 3, 0, 0}, 0, 71, 7};
    SKY_BlockFacts_t       facts;
    SKY_Packet_t           answer = answer_of(SKY_STATUS_OK);

    CHECK(!SKY_Word_IsOther(&known, &known));
    CHECK(SKY_Word_IsOther(&newer, &known));
    CHECK(SKY_Word_IsOther(&unequal, &known));
    answer.block_version = 8;
    answer.content       = 71;
    CHECK_EQ(SKY_Word_Of(&answer, answer.key, &facts), SKY_WORD_BLOCK);
    CHECK_EQ(facts.version, 8);
    CHECK_EQ(facts.content, 71);
}

static void test_of_several_words_that_of_the_latest_row_counts(void)
{
    const SKY_BlockFacts_t now   = {{25, 10, 3, 0, 0}, 0, 0, 0};
    const SKY_BlockFacts_t ahead = {{25, 10, 3, 0, 0}, 7, 0, 0};

    CHECK(SKY_Word_IsNewer(&ahead, &now));
    CHECK(!SKY_Word_IsNewer(&now, &ahead));
    CHECK(!SKY_Word_IsNewer(&ahead, &ahead));

    const SKY_BlockFacts_t old_ahead = {{25, 10, 3, 0, 0}, 7, 0, 1};
    const SKY_BlockFacts_t new_now   = {{25, 10, 3, 0, 0}, 0, 0, 2};

    CHECK(SKY_Word_IsNewer(&new_now, &old_ahead)); /* a new version counts before the row */
    CHECK(!SKY_Word_IsNewer(&old_ahead, &new_now));
}

static void test_what_is_prefetched_is_in_a_row_to_come(void)
{
    static const uint32_t  rows[] = {5, 7};
    const SKY_BlockFacts_t ahead  = {{25, 10, 3, 0, 0}, 7, 0, 0};
    const SKY_BlockFacts_t now    = {{25, 10, 3, 0, 0}, 5, 0, 0};
    const SKY_BlockFacts_t never  = {{25, 10, 3, 0, 0}, UINT32_MAX, 0, 0};

    CHECK(SKY_Word_IsAhead(&ahead, 5, rows, 2));
    CHECK(!SKY_Word_IsAhead(&ahead, 7, rows, 2));
    CHECK(!SKY_Word_IsAhead(&ahead, 5, rows, 1));
    CHECK(!SKY_Word_IsAhead(&ahead, 5, NULL, 0));
    CHECK(!SKY_Word_IsAhead(&now, 5, rows, 2));
    CHECK(!SKY_Word_IsAhead(&never, 5, rows, 2));
}

int main(void)
{
    RUN(test_a_block_that_is_known);
    RUN(test_only_the_satellites_own_word_denies);
    RUN(test_a_block_of_too_many_rows_is_none);
    RUN(test_numbers_that_contradict_are_no_block);
    RUN(test_an_unknown_code_is_no_block);
    RUN(test_another_key_is_not_what_was_asked_for);
    RUN(test_another_block_of_the_name_has_other_lengths);
    RUN(test_another_version_or_content_is_another_block);
    RUN(test_of_several_words_that_of_the_latest_row_counts);
    RUN(test_what_is_prefetched_is_in_a_row_to_come);
    return CHECK_RESULT();
}
