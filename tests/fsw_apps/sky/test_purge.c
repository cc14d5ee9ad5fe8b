/* Is a block gone from the sky? What answers to PURGE mean, and who is asked next. */
#include "sky_purge.h"

#include <string.h>

#include "check.h"

/* A satellite that has given up so many chunks of a block of five. */
static SKY_Packet_t gave_up(uint32_t chunks)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.status      = SKY_STATUS_OK;
    pkt.chunk_total = chunks;
    pkt.block_len   = chunks > 0u ? 41u : 0u;
    pkt.chunk_len   = chunks > 0u ? 10u : 0u;
    return pkt;
}

static SKY_PurgeAnswers_t cleared_by(uint32_t chunks)
{
    const SKY_Packet_t answer  = gave_up(chunks);
    SKY_PurgeAnswers_t cleared = {0};

    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    return cleared;
}

static SKY_PurgeAnswers_t silence(void)
{
    SKY_PurgeAnswers_t cleared = cleared_by(5);

    SKY_PurgeAnswers_Add(&cleared, NULL, false);
    return cleared;
}

static void test_what_satellites_gave_up(void)
{
    const SKY_Packet_t two     = gave_up(2);
    const SKY_Packet_t three   = gave_up(3);
    const SKY_Packet_t five    = gave_up(5);
    const SKY_Packet_t none    = gave_up(0);
    SKY_PurgeAnswers_t cleared = {0};

    CHECK(!SKY_PurgeAnswers_IsConfirmed(&cleared)); /* nobody was asked */
    SKY_PurgeAnswers_Add(&cleared, &none, false);
    CHECK(SKY_PurgeAnswers_IsConfirmed(&cleared));
    CHECK(!SKY_PurgeAnswers_HasMore(&cleared)); /* nobody knows such a block */
    SKY_PurgeAnswers_Add(&cleared, &two, false);
    CHECK(SKY_PurgeAnswers_HasMore(&cleared));
    SKY_PurgeAnswers_Add(&cleared, &three, false);
    CHECK(SKY_PurgeAnswers_HasMore(&cleared)); /* both may have had the same chunks */
    CHECK(SKY_PurgeAnswers_IsConfirmed(&cleared));
    CHECK_EQ(cleared.chunks, 5);
    CHECK_EQ(cleared.most, 3);
    SKY_PurgeAnswers_Add(&cleared, &five, false);
    CHECK(!SKY_PurgeAnswers_HasMore(&cleared));
    SKY_PurgeAnswers_Add(&cleared, &two, false);
    CHECK(!SKY_PurgeAnswers_HasMore(&cleared));
    CHECK_EQ(cleared.most, 5);
}

static void test_a_block_whose_chunks_fill_it_exactly(void)
{
    SKY_Packet_t       answer  = gave_up(4);
    SKY_PurgeAnswers_t cleared = {0};

    answer.block_len = 40;
    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    CHECK_EQ(cleared.chunk_total, 4);
    CHECK(!SKY_PurgeAnswers_HasMore(&cleared));
}

static void test_of_two_blocks_of_a_name_the_longer_counts(void)
{
    const SKY_Packet_t five    = gave_up(1);
    SKY_Packet_t       one     = gave_up(1);
    SKY_PurgeAnswers_t cleared = {0};

    SKY_PurgeAnswers_Add(&cleared, &five, false);
    one.block_len = 10;
    SKY_PurgeAnswers_Add(&cleared, &one, false);
    CHECK_EQ(cleared.chunk_total, 5);
    CHECK(SKY_PurgeAnswers_HasMore(&cleared));
}

static void test_who_is_silent_or_refuses_confirms_nothing(void)
{
    SKY_Packet_t       refused = gave_up(3);
    SKY_PurgeAnswers_t cleared = silence();

    CHECK(!SKY_PurgeAnswers_IsConfirmed(&cleared));
    refused.status = SKY_STATUS_UNREACHABLE;
    cleared        = cleared_by(1);
    SKY_PurgeAnswers_Add(&cleared, &refused, true);
    CHECK(!SKY_PurgeAnswers_IsConfirmed(&cleared));
    CHECK_EQ(cleared.chunks, 1);
    CHECK(!cleared.is_repeated);
}

static void test_an_answer_to_a_repeated_request_does_not_tell_all(void)
{
    const SKY_Packet_t none    = gave_up(0);
    const SKY_Packet_t five    = gave_up(5);
    SKY_PurgeAnswers_t cleared = {0};

    SKY_PurgeAnswers_Add(&cleared, &none, true); /* the first answer was lost, and may have said more */
    CHECK(SKY_PurgeAnswers_IsConfirmed(&cleared));
    CHECK(SKY_PurgeAnswers_HasMore(&cleared));
    SKY_PurgeAnswers_Add(&cleared, &five, false);
    CHECK(SKY_PurgeAnswers_HasMore(&cleared));
}

static void test_numbers_of_satellites_do_not_overflow(void)
{
    SKY_Packet_t       answer  = gave_up(5);
    SKY_PurgeAnswers_t cleared = {0};

    answer.chunk_total = UINT32_MAX;
    answer.block_len   = UINT32_MAX;
    answer.chunk_len   = 1;
    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    CHECK_EQ(cleared.chunks, 2u * UINT64_C(0xFFFFFFFF));
    CHECK_EQ(cleared.chunk_total, UINT32_MAX);
    answer.chunk_len = UINT32_MAX; /* no chunk is so long */
    cleared          = (SKY_PurgeAnswers_t){0};
    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    CHECK_EQ(cleared.chunk_total, 0);
    answer.block_len = 41;
    answer.chunk_len = 10;
    answer.code_k    = 3;
    answer.code_m    = 2;
    SKY_PurgeAnswers_Add(&cleared, &answer, false);
    CHECK_EQ(cleared.chunk_total, 9); /* five of data, and parity of two rows */
}

/* A new block, or one that had no other chunks, needs one question. */
static void test_the_first_share_may_be_all(void)
{
    const SKY_PurgeAnswers_t all = cleared_by(5);
    SKY_Purge_t              clearing;

    SKY_Purge_Init(&clearing, true);
    CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_FIRST);
    CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_FIRST);
    SKY_Purge_Told(&clearing, &all, true, true);
    CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_END);
    CHECK(clearing.is_confirmed);
}

static void test_what_may_be_elsewhere_is_asked_for_everywhere(void)
{
    const SKY_PurgeAnswers_t nobody = {0};
    const struct
    {
        SKY_PurgeAnswers_t first;
        bool               is_over, is_same_row;
    } cases[] = {{cleared_by(2), true, true},
                 {cleared_by(5), false, true},
                 {cleared_by(5), true, false},
                 {silence(), true, true},
                 {nobody, true, true}};

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        const SKY_PurgeAnswers_t all = cleared_by(1);
        SKY_Purge_t              clearing;

        SKY_Purge_Init(&clearing, true);
        SKY_Purge_Told(&clearing, &cases[i].first, cases[i].is_over, cases[i].is_same_row);
        CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_ALL);
        CHECK(!clearing.is_confirmed);
        SKY_Purge_Told(&clearing, &all, true, true); /* all places were asked: more is nowhere */
        CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_END);
        CHECK(clearing.is_confirmed);
    }
}

static void test_silence_is_asked_around_twice(void)
{
    const SKY_PurgeAnswers_t all    = cleared_by(5);
    const SKY_PurgeAnswers_t silent = silence();

    for (uint32_t confirmed = 0; confirmed < 3u; ++confirmed) /* the round after the first in which all answer; 0: none */
    {
        SKY_Purge_t clearing;

        SKY_Purge_Init(&clearing, false);
        CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_ALL);
        SKY_Purge_Told(&clearing, &silent, true, true);
        for (uint32_t round = 1; round < 3u && !clearing.is_confirmed; ++round)
        {
            CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_LOOK);
            CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_ALL);
            SKY_Purge_Told(&clearing, confirmed == round ? &all : &silent, true, true);
        }
        CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_END);
        CHECK_EQ(clearing.is_confirmed, confirmed > 0u);
    }
}

/* A chunk may be on its way from a place that was asked too late to one that was asked too early, or not at all. */
static void test_while_chunks_move_all_have_to_answer_twice_in_a_row(void)
{
    const SKY_PurgeAnswers_t all    = cleared_by(5);
    const SKY_PurgeAnswers_t silent = silence();
    const struct
    {
        struct
        {
            const SKY_PurgeAnswers_t *cleared;
            bool                      is_over, is_same_row;
        } rounds[3];
        uint32_t count;
        bool     is_confirmed;
    } cases[] = {
        {{{&all, true, true}}, 1, true},
        {{{&all, false, true}, {&all, false, true}}, 2, true},
        {{{&all, true, false}, {&all, true, true}}, 2, true}, /* the row that began is over, too */
        {{{&all, true, false}, {&all, false, true}, {&all, false, true}}, 3, true},
        {{{&all, false, true}, {&silent, false, true}, {&all, false, true}}, 3, false},
        {{{&silent, false, true}, {&all, false, true}, {&all, false, true}}, 3, true},
        {{{&all, false, true}, {&all, false, false}, {&all, false, false}}, 3, false},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_Purge_t clearing;

        SKY_Purge_Init(&clearing, false);
        for (uint32_t round = 0; round < cases[i].count; ++round)
        {
            CHECK_EQ(SKY_Purge_Next(&clearing), round == 0u ? SKY_PURGE_ALL : SKY_PURGE_LOOK);
            CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_ALL);
            SKY_Purge_Told(&clearing, cases[i].rounds[round].cleared, cases[i].rounds[round].is_over,
                           cases[i].rounds[round].is_same_row);
        }
        CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_END);
        CHECK_EQ(clearing.is_confirmed, cases[i].is_confirmed);
    }
}

/* A satellite that has given up so many chunks of a block of one chunk and its copies, or of five rows of five with three of parity. */
static SKY_Packet_t gave_up_coded(uint32_t chunks, bool is_small)
{
    SKY_Packet_t pkt = gave_up(chunks);

    pkt.code_k    = chunks > 0u ? 2 : 0;
    pkt.code_m    = chunks > 0u ? 3 : 0;
    pkt.block_len = chunks == 0u ? 0u : is_small ? 7u : 91u;
    return pkt;
}

/* Five servers, with three of parity: four shares have to be gone, of a block of one chunk its four copies. */
static void test_with_parity_shares_count(void)
{
    for (uint32_t known = 0; known < 3u; ++known)
    {
        for (uint32_t gone = 0; gone < 1u << 5; ++gone)
        {
            SKY_PurgeAnswers_t cleared = {.code_m = 3};
            uint32_t           first   = 0;
            uint32_t           all     = 0;

            for (uint32_t server = 0; server < 5u; ++server)
            {
                const SKY_Packet_t answer = gave_up_coded(known > 0u ? 1u : 0u, known == 1u);

                SKY_PurgeAnswers_Add(&cleared, (gone & 1u << server) != 0u ? &answer : NULL, false);
            }
            for (uint32_t server = 0; server < 5u; ++server)
            {
                const bool is_gone = (gone & 1u << server) != 0u;

                SKY_PurgeAnswers_AddShare(&cleared, is_gone);
                first += is_gone && server < 4u ? 1u : 0u;
                all += is_gone ? 1u : 0u;
            }
            CHECK_EQ(SKY_PurgeAnswers_IsConfirmed(&cleared), known == 2u ? all > 3u : first > 3u);
        }
    }
}

/* Of two blocks of a name the one on fewer servers may be left. */
static void test_of_two_blocks_of_a_name_the_shorter_one_has_to_be_gone(void)
{
    const SKY_Packet_t small   = gave_up_coded(1, true);
    const SKY_Packet_t large   = gave_up_coded(1, false);
    SKY_PurgeAnswers_t cleared = {0}; /* a sky without parity */

    SKY_PurgeAnswers_Add(&cleared, &large, false);
    SKY_PurgeAnswers_Add(&cleared, &small, false);
    SKY_PurgeAnswers_Add(&cleared, &large, false);
    CHECK_EQ(cleared.code_m, 3);
    CHECK_EQ(cleared.chunk_least, 4);
    for (uint32_t server = 0; server < 5u; ++server)
    {
        CHECK(!SKY_PurgeAnswers_IsConfirmed(&cleared));
        SKY_PurgeAnswers_AddShare(&cleared, server != 2u);
    }
    CHECK(!SKY_PurgeAnswers_IsConfirmed(&cleared));
}

/* While chunks move, silence may have taken over what somebody else had. */
static void test_while_chunks_move_silence_counts_with_parity_too(void)
{
    const SKY_Packet_t answer = gave_up_coded(1, false);

    for (uint32_t is_over = 0; is_over < 2u; ++is_over)
    {
        SKY_PurgeAnswers_t cleared = {.code_m = 3};
        SKY_Purge_t        clearing;

        for (uint32_t server = 0; server < 5u; ++server)
        {
            SKY_PurgeAnswers_Add(&cleared, server != 1u ? &answer : NULL, false);
        }
        for (uint32_t server = 0; server < 5u; ++server)
        {
            SKY_PurgeAnswers_AddShare(&cleared, server != 1u);
        }
        SKY_Purge_Init(&clearing, false);
        for (uint32_t round = 0; SKY_Purge_Next(&clearing) != SKY_PURGE_END; ++round)
        {
            CHECK(round < 3u);
            if (round > 0u)
            {
                CHECK_EQ(SKY_Purge_Next(&clearing), SKY_PURGE_ALL);
            }
            SKY_Purge_Told(&clearing, &cleared, is_over != 0u, true);
        }
        CHECK_EQ(clearing.is_confirmed, is_over != 0u);
    }
}

int main(void)
{
    RUN(test_what_satellites_gave_up);
    RUN(test_a_block_whose_chunks_fill_it_exactly);
    RUN(test_of_two_blocks_of_a_name_the_longer_counts);
    RUN(test_who_is_silent_or_refuses_confirms_nothing);
    RUN(test_an_answer_to_a_repeated_request_does_not_tell_all);
    RUN(test_numbers_of_satellites_do_not_overflow);
    RUN(test_the_first_share_may_be_all);
    RUN(test_what_may_be_elsewhere_is_asked_for_everywhere);
    RUN(test_silence_is_asked_around_twice);
    RUN(test_while_chunks_move_all_have_to_answer_twice_in_a_row);
    RUN(test_with_parity_shares_count);
    RUN(test_of_two_blocks_of_a_name_the_shorter_one_has_to_be_gone);
    RUN(test_while_chunks_move_silence_counts_with_parity_too);
    return CHECK_RESULT();
}
