/* Is a block whole? Which chunks each place is asked for, and what its answer means. */
#include "sky_held.h"

#include <string.h>

#include "check.h"

#define SERVERS 3u

static const uint8_t          key[SKY_KEY_BYTES] = {1};
static const SKY_BlockFacts_t block              = {{1995, 100, 20, 0, 0}, 0, 0, 0};
static uint8_t                payload[SKY_CHUNKSET_MAX_BYTES];

/* What a satellite says that holds these chunks. */
static SKY_Packet_t word_of(const SKY_BlockFacts_t *facts, uint32_t base, uint32_t stride, uint32_t count, const uint32_t *held,
                            uint32_t held_count)
{
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    CHECK(SKY_ChunkSet_Init(&set, base, stride, count));
    for (uint32_t i = 0; i < held_count; ++i)
    {
        SKY_ChunkSet_Add(&set, SKY_ChunkSet_IndexOf(&set, held[i]));
    }
    SKY_Stripe_ToPacket(&facts->stripe, &pkt);
    pkt.status   = SKY_STATUS_OK;
    pkt.word     = SKY_WORD_SETTLED;
    pkt.chunk_id = base;
    pkt.length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    pkt.payload  = payload;
    (void)memcpy(pkt.key, key, sizeof(key));
    return pkt;
}

static SKY_Packet_t denial(uint8_t status)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.status = status;
    pkt.word   = SKY_WORD_SETTLED;
    return pkt;
}

/* Server 1 of three has chunks 1, 4, 7, 10, 13, 16, 19. */
static SKY_HeldShare_t share_of(uint32_t places)
{
    SKY_HeldShare_t share;

    CHECK_EQ(SKY_HeldShare_Pieces(&block, SERVERS, 1), 1);
    SKY_HeldShare_Init(&share, &block, SERVERS, 1, 0, places, false);
    return share;
}

/* What is asked of the next place. */
static SKY_ChunkSet_t ask(SKY_HeldShare_t *share)
{
    SKY_Packet_t   pkt;
    SKY_ChunkSet_t asked;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.length  = SKY_HeldShare_Ask(share, payload, &pkt.chunk_id);
    pkt.payload = payload;
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &asked), SKY_STATUS_OK);
    return asked;
}

static SKY_Held_t held_by(const SKY_HeldShare_t *share)
{
    SKY_Held_t held = {.verdict = SKY_HELD_WHOLE};

    SKY_Held_Add(&held, share);
    return held;
}

static void test_a_share_goes_in_pieces_that_a_request_can_name(void)
{
    const uint32_t         most  = SKY_LIMIT_CHUNK_SET;
    const SKY_BlockFacts_t large = {{4u * most, 1, 4u * most, 0, 0}, 0, 0, 0};
    const SKY_BlockFacts_t odd   = {{4u * most + 3u, 1, 4u * most + 3u, 0, 0}, 0, 0, 0};
    SKY_HeldShare_t        share;

    CHECK_EQ(SKY_HeldShare_Pieces(&large, 2, 0), 2);
    CHECK_EQ(SKY_HeldShare_Pieces(&large, 2, 1), 2);
    CHECK_EQ(SKY_HeldShare_Pieces(&odd, 2, 0), 3);
    CHECK_EQ(SKY_HeldShare_Pieces(&odd, 2, 1), 3);
    CHECK_EQ(SKY_HeldShare_Pieces(&odd, 1, 0), 5);
    SKY_HeldShare_Init(&share, &odd, 2, 1, 1, 1, false);
    CHECK_EQ(SKY_ChunkSet_ChunkId(&share.missing, 0), 1u + 2u * most);
    CHECK_EQ(SKY_ChunkSet_Size(&share.missing), most);
    SKY_HeldShare_Init(&share, &odd, 2, 1, 2, 1, false);
    CHECK_EQ(SKY_ChunkSet_ChunkId(&share.missing, 0), 1u + 4u * most);
    CHECK_EQ(SKY_ChunkSet_Size(&share.missing), 1);
    SKY_HeldShare_Init(&share, &odd, 2, 0, 2, 1, false);
    CHECK_EQ(SKY_ChunkSet_Size(&share.missing), 2);
}

static void test_a_server_behind_the_last_chunk_has_no_share(void)
{
    const SKY_BlockFacts_t small = {{150, 100, 2, 0, 0}, 0, 0, 0};

    CHECK_EQ(SKY_HeldShare_Pieces(&small, SERVERS, 1), 1);
    CHECK_EQ(SKY_HeldShare_Pieces(&small, SERVERS, 2), 0);
}

/* Let the places of a share answer one after the other: the first one with so many of its chunks, the others with all. */
static bool is_held_first(uint32_t places, uint32_t first_count)
{
    static const uint32_t all[] = {1, 4, 7, 10, 13, 16, 19};
    SKY_HeldShare_t       share = share_of(places);

    for (uint32_t place = 0; SKY_HeldShare_Next(&share) != SKY_HELD_NOWHERE; ++place)
    {
        (void)ask(&share); /* before the answer, which uses the same memory */
        const SKY_Packet_t word = word_of(&block, 1, SERVERS, 7, all, place == 0u ? first_count : 7u);

        SKY_HeldShare_Take(&share, key, &word);
    }
    return SKY_HeldShare_IsHeldFirst(&share);
}

static void test_who_holds_all_of_a_share(void)
{
    CHECK(is_held_first(1, 7));
    CHECK(is_held_first(2, 7)); /* the second place is not asked */
    CHECK(!is_held_first(1, 6));
    CHECK(!is_held_first(2, 6)); /* the second place holds it */
    CHECK(!is_held_first(0, 7));
}

static void test_the_next_place_is_asked_for_what_is_missing(void)
{
    static const uint32_t first[]  = {1, 10, 19};
    static const uint32_t second[] = {4, 7, 13, 16};
    SKY_HeldShare_t       share    = share_of(3);
    SKY_ChunkSet_t        asked;
    SKY_Packet_t          word;

    CHECK_EQ(SKY_HeldShare_Next(&share), 0);
    asked = ask(&share);
    CHECK_EQ(asked.base, 1);
    CHECK_EQ(asked.count, 7);
    CHECK_EQ(SKY_ChunkSet_Size(&asked), 7);
    word = word_of(&block, 1, SERVERS, 7, first, 3);
    SKY_HeldShare_Take(&share, key, &word);

    CHECK_EQ(SKY_HeldShare_Next(&share), 1);
    asked = ask(&share);
    CHECK_EQ(asked.base, 4);
    CHECK_EQ(asked.stride, SERVERS);
    CHECK_EQ(asked.count, 5); /* 4 to 16, without 10 */
    CHECK_EQ(SKY_ChunkSet_Size(&asked), 4);
    CHECK(!SKY_ChunkSet_Has(&asked, 2));
    word = word_of(&block, 4, SERVERS, 5, second, 4);
    SKY_HeldShare_Take(&share, key, &word);

    CHECK_EQ(SKY_HeldShare_Next(&share), SKY_HELD_NOWHERE); /* the third place has nothing to add */
    CHECK_EQ(held_by(&share).verdict, SKY_HELD_WHOLE);
}

static void test_what_a_satellite_says_of_other_chunks_counts_for_nothing(void)
{
    static const uint32_t other[] = {0, 3, 18};
    SKY_HeldShare_t       share   = share_of(1);

    (void)ask(&share);
    const SKY_Packet_t word = word_of(&block, 0, SERVERS, 7, other, 3);

    SKY_HeldShare_Take(&share, key, &word);
    CHECK_EQ(SKY_ChunkSet_Size(&share.missing), 7);
    CHECK_EQ(held_by(&share).verdict, SKY_HELD_BROKEN);
}

static void test_a_chunk_that_all_deny_is_gone(void)
{
    static const uint32_t held[] = {1, 4, 7, 10, 13, 16};
    const SKY_Packet_t    gone   = denial(SKY_STATUS_NOT_FOUND);
    SKY_HeldShare_t       share  = share_of(2);

    (void)ask(&share);
    const SKY_Packet_t word = word_of(&block, 1, SERVERS, 7, held, 6);

    SKY_HeldShare_Take(&share, key, &word);
    (void)ask(&share);
    SKY_HeldShare_Take(&share, key, &gone);
    CHECK_EQ(SKY_HeldShare_Next(&share), SKY_HELD_NOWHERE);
    CHECK_EQ(held_by(&share).verdict, SKY_HELD_BROKEN);
}

/* What a satellite denies that is not settled may be on its way to it. It is enough that one of a share's places is not. */
static void test_who_is_not_settled_is_told_if_it_denies_chunks(void)
{
    static const uint32_t all[] = {1, 4, 7, 10, 13, 16, 19};

    for (uint32_t unsettled = 0; unsettled < 1u << 2; ++unsettled)
    {
        for (uint32_t held = 0; held <= 7u; held += 7u) /* by the second place */
        {
            SKY_HeldShare_t    share = share_of(2);
            const SKY_Packet_t none  = denial(SKY_STATUS_NOT_FOUND);
            SKY_Held_t         told;

            for (uint32_t place = 0; place < 2u; ++place)
            {
                (void)ask(&share); /* before the answer, which uses the same memory */
                SKY_Packet_t word = place == 0u ? none : word_of(&block, 1, SERVERS, 7, all, held);

                word.word = (unsettled & 1u << place) == 0u ? SKY_WORD_SETTLED : SKY_WORD_CAUGHT_UP;
                SKY_HeldShare_Take(&share, key, &word);
            }
            told = held_by(&share);
            CHECK_EQ(told.verdict, held == 7u ? SKY_HELD_WHOLE : SKY_HELD_BROKEN);
            CHECK_EQ(told.is_unsettled, unsettled != 0u && held == 0u);
            SKY_Held_Add(&told, &share); /* another share of the block says nothing else */
            CHECK_EQ(told.is_unsettled, unsettled != 0u && held == 0u);
        }
    }
}

static void test_silence_denies_nothing(void)
{
    const SKY_Packet_t    gone   = denial(SKY_STATUS_NOT_FOUND);
    const SKY_Packet_t    no_way = denial(SKY_STATUS_UNREACHABLE);
    SKY_HeldShare_t       silent = share_of(2);
    SKY_HeldShare_t       cut    = share_of(2);
    const SKY_HeldShare_t nobody = share_of(0);

    (void)ask(&silent);
    SKY_HeldShare_Take(&silent, key, NULL);
    (void)ask(&silent);
    SKY_HeldShare_Take(&silent, key, &gone);
    CHECK_EQ(held_by(&silent).verdict, SKY_HELD_UNKNOWN);

    (void)ask(&cut);
    SKY_HeldShare_Take(&cut, key, &gone);
    (void)ask(&cut);
    SKY_HeldShare_Take(&cut, key, &no_way);
    CHECK_EQ(held_by(&cut).verdict, SKY_HELD_UNKNOWN);

    CHECK_EQ(SKY_HeldShare_Next(&nobody), SKY_HELD_NOWHERE);
    CHECK_EQ(held_by(&nobody).verdict, SKY_HELD_UNKNOWN);
}

static void test_silence_does_not_matter_where_another_has_all(void)
{
    static const uint32_t all[] = {1, 4, 7, 10, 13, 16, 19};
    SKY_HeldShare_t       share = share_of(2);

    (void)ask(&share);
    SKY_HeldShare_Take(&share, key, NULL);
    (void)ask(&share);
    const SKY_Packet_t word = word_of(&block, 1, SERVERS, 7, all, 7);

    SKY_HeldShare_Take(&share, key, &word);
    CHECK_EQ(held_by(&share).verdict, SKY_HELD_WHOLE);
}

static void test_a_word_that_cannot_be_read_denies_nothing(void)
{
    static const uint32_t held[] = {1};
    SKY_Packet_t          words[4];

    for (uint32_t i = 0; i < 4u; ++i)
    {
        SKY_HeldShare_t share = share_of(1);

        (void)ask(&share);
        words[i] = word_of(&block, 1, SERVERS, 7, held, 1);
        switch (i)
        {
            case 0: /* numbers that no block can have */
                words[i].chunk_total = 0;
                break;
            case 1: /* it was longer than there is room for */
                words[i].payload = NULL;
                break;
            case 2:
                words[i].length -= 1u;
                break;
            default:
                words[i].key[0] ^= 1u;
                break;
        }
        SKY_HeldShare_Take(&share, key, &words[i]);
        CHECK_EQ(SKY_ChunkSet_Size(&share.missing), 7);
        CHECK_EQ(held_by(&share).verdict, SKY_HELD_UNKNOWN);
    }
}

static void test_another_block_of_the_name_is_told(void)
{
    static const uint32_t  all[]  = {1, 4, 7, 10, 13, 16, 19};
    const SKY_BlockFacts_t longer = {{1996, 100, 20, 0, 0}, 0, 0, 0};
    SKY_HeldShare_t        share  = share_of(1);

    (void)ask(&share);
    const SKY_Packet_t word = word_of(&longer, 1, SERVERS, 7, all, 7);

    SKY_HeldShare_Take(&share, key, &word);
    CHECK_EQ(held_by(&share).verdict, SKY_HELD_BROKEN); /* this one is not there */
    CHECK(held_by(&share).is_other);
}

static void test_one_share_breaks_a_block_and_one_makes_it_doubtful(void)
{
    static const uint32_t all[] = {1, 4, 7, 10, 13, 16, 19};
    const SKY_Packet_t    gone  = denial(SKY_STATUS_NOT_FOUND);
    SKY_HeldShare_t       shares[3];
    SKY_Held_t            held = {.verdict = SKY_HELD_WHOLE};

    for (uint32_t i = 0; i < 3u; ++i)
    {
        shares[i] = share_of(1);
        (void)ask(&shares[i]);
    }
    const SKY_Packet_t word = word_of(&block, 1, SERVERS, 7, all, 7);

    SKY_HeldShare_Take(&shares[0], key, &word);
    SKY_HeldShare_Take(&shares[1], key, NULL);
    SKY_HeldShare_Take(&shares[2], key, &gone);
    SKY_Held_Add(&held, &shares[0]);
    CHECK_EQ(held.verdict, SKY_HELD_WHOLE);
    SKY_Held_Add(&held, &shares[1]);
    CHECK_EQ(held.verdict, SKY_HELD_UNKNOWN);
    SKY_Held_Add(&held, &shares[0]);
    CHECK_EQ(held.verdict, SKY_HELD_UNKNOWN);
    SKY_Held_Add(&held, &shares[2]);
    CHECK_EQ(held.verdict, SKY_HELD_BROKEN);
    SKY_Held_Add(&held, &shares[1]);
    CHECK_EQ(held.verdict, SKY_HELD_BROKEN);
    CHECK(!held.is_other);
    shares[0].is_other = true;
    SKY_Held_Add(&held, &shares[0]);
    SKY_Held_Add(&held, &shares[1]);
    CHECK(held.is_other);
}

/* A block of rows of three and two, over five servers: what is said of it decides row by row. */
static void test_a_block_with_parity_is_whole_while_each_row_is(void)
{
    static const SKY_BlockFacts_t coded = {{7u * 100u, 100, 13, 3, 2}, 0, 0, 0}; /* the last row has one data chunk */

    for (uint32_t denying = 0; denying < 1u << 5; ++denying)
    {
        for (uint32_t silent = 0; silent < 1u << 5; ++silent)
        {
            SKY_HeldRow_t rows[3] = {{0, 0, 0}};
            SKY_Held_t    held    = {.rows = rows};
            uint32_t      gone[3] = {0};
            uint32_t      none[3] = {0};
            uint32_t      wanted  = SKY_HELD_WHOLE;

            for (uint32_t server = 0; server < 5u; ++server)
            {
                SKY_HeldShare_t    share;
                const bool         denies = (denying & 1u << server) != 0u;
                const bool         is_off = (silent & 1u << server) != 0u;
                const SKY_Packet_t no     = denial(SKY_STATUS_NOT_FOUND);
                uint32_t           all[3] = {server, server + 5u, server + 10u};
                const uint32_t     count  = server < 3u ? 3u : 2u;

                CHECK_EQ(SKY_HeldShare_Pieces(&coded, 5, server), 1);
                SKY_HeldShare_Init(&share, &coded, 5, server, 0, 1, false);
                (void)ask(&share);
                const SKY_Packet_t yes = word_of(&coded, server, 5, count, all, count);

                SKY_HeldShare_Take(&share, key, is_off ? NULL : denies ? &no : &yes);
                SKY_Held_Add(&held, &share);
                for (uint32_t row = 0; row < 3u; ++row)
                {
                    if (server + 5u * row < 13u)
                    {
                        gone[row] += denies && !is_off ? 1u : 0u;
                        none[row] += denies || is_off ? 1u : 0u;
                    }
                }
            }
            for (uint32_t row = 0; row < 3u; ++row)
            {
                const uint32_t one = gone[row] > 2u ? SKY_HELD_BROKEN : none[row] > 2u ? SKY_HELD_UNKNOWN : SKY_HELD_WHOLE;

                wanted = one > wanted ? one : wanted;
            }
            CHECK_EQ(held.verdict, wanted);
            CHECK_EQ(held.denied, gone[0] + gone[1] + gone[2]);
        }
    }
}

/* What stand-ins deny, the satellites may have for which they stand in. */
static void test_a_block_is_gone_by_the_word_of_its_own_satellites(void)
{
    static const SKY_BlockFacts_t coded = {{7u * 100u, 100, 13, 3, 2}, 0, 0, 0};

    for (uint32_t replaced = 0; replaced < 1u << 5; ++replaced)
    {
        SKY_HeldRow_t      rows[3] = {{0, 0, 0}};
        SKY_Held_t         held    = {.rows = rows};
        const SKY_Packet_t no      = denial(SKY_STATUS_NOT_FOUND);
        uint32_t           own     = 0;

        for (uint32_t server = 0; server < 5u; ++server)
        {
            SKY_HeldShare_t share;

            own += (replaced & 1u << server) == 0u ? 1u : 0u;
            SKY_HeldShare_Init(&share, &coded, 5, server, 0, 1, (replaced & 1u << server) != 0u);
            (void)ask(&share);
            SKY_HeldShare_Take(&share, key, &no);
            SKY_Held_Add(&held, &share);
        }
        CHECK_EQ(held.verdict, SKY_HELD_BROKEN);
        CHECK_EQ(held.is_gone, own > 2u);
    }
}

int main(void)
{
    RUN(test_a_share_goes_in_pieces_that_a_request_can_name);
    RUN(test_a_server_behind_the_last_chunk_has_no_share);
    RUN(test_who_holds_all_of_a_share);
    RUN(test_the_next_place_is_asked_for_what_is_missing);
    RUN(test_what_a_satellite_says_of_other_chunks_counts_for_nothing);
    RUN(test_a_chunk_that_all_deny_is_gone);
    RUN(test_who_is_not_settled_is_told_if_it_denies_chunks);
    RUN(test_silence_denies_nothing);
    RUN(test_a_block_is_gone_by_the_word_of_its_own_satellites);
    RUN(test_silence_does_not_matter_where_another_has_all);
    RUN(test_a_word_that_cannot_be_read_denies_nothing);
    RUN(test_another_block_of_the_name_is_told);
    RUN(test_one_share_breaks_a_block_and_one_makes_it_doubtful);
    RUN(test_a_block_with_parity_is_whole_while_each_row_is);
    return CHECK_RESULT();
}
