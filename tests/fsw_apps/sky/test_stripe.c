/**
 * @file
 * Stripes: how a block is cut into data and parity chunks, and what packets may declare.
 */
#include <string.h>

#include "check.h"
#include "sky_store.h"
#include "sky_stripe.h"

/* Check that the chunks of a stripe fit together: rows without gaps, data that fills the block, parity as long as its row. */
static void check_stripe(const SKY_Stripe_t *stripe)
{
    uint64_t bytes  = 0;
    uint32_t data   = 0;
    uint32_t parity = 0;
    uint32_t id     = 0;

    for (uint32_t r = 0; r < SKY_Stripe_Rows(stripe); ++r)
    {
        const SKY_StripeRow_t row = SKY_Stripe_Row(stripe, r);

        CHECK_EQ(row.first, id);
        CHECK(row.data >= 1u);
        CHECK_EQ(row.parity, stripe->code_m);
        for (uint32_t place = 0; place < row.data + row.parity; ++place, ++id)
        {
            CHECK_EQ(SKY_Stripe_RowOf(stripe, id), r);
            CHECK_EQ(SKY_Stripe_IsParity(stripe, id), place >= row.data);
            if (place < row.data)
            {
                CHECK_EQ(SKY_Stripe_Offset(stripe, id), bytes);
                bytes += SKY_Stripe_ChunkBytes(stripe, id);
                ++data;
            }
            else
            {
                CHECK_EQ(SKY_Stripe_ChunkBytes(stripe, id), SKY_Stripe_ChunkBytes(stripe, row.first));
                CHECK_EQ(SKY_Stripe_Offset(stripe, id), (size_t)parity * stripe->chunk_len);
                ++parity;
            }
        }
    }
    CHECK_EQ(id, stripe->chunk_total);
    CHECK_EQ(bytes, stripe->block_len);
    CHECK_EQ(data, SKY_Stripe_DataChunks(stripe));
    CHECK_EQ(SKY_Stripe_ParityBytes(stripe), (uint64_t)parity * stripe->chunk_len);
}

/* Return whether a packet declares a chunk of a stripe, found in both ways. */
static bool declares(const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe)
{
    SKY_Stripe_t back;
    const bool   is_chunk = SKY_Stripe_IsChunk(stripe, pkt);

    CHECK_EQ(is_chunk, SKY_Stripe_OfChunk(&back, pkt) && SKY_Stripe_Equal(&back, stripe));
    return is_chunk;
}

/* Check that a packet of another block, or of one that is cut in another way, declares no chunk of a stripe. */
static void check_others(const SKY_Stripe_t *stripe, SKY_Packet_t pkt)
{
    SKY_Packet_t other = pkt;

    ++other.block_len;
    CHECK(!declares(&other, stripe));
    other = pkt;
    ++other.chunk_total;
    CHECK(!declares(&other, stripe));
    other        = pkt;
    other.code_k = (uint8_t)(pkt.code_k + 1u);
    CHECK(!declares(&other, stripe));
    other        = pkt;
    other.code_m = (uint8_t)(pkt.code_m + 1u);
    CHECK(!declares(&other, stripe));
}

/* Check that each chunk declares its own stripe, and that a chunk of another length, id or code does not. */
static void check_packets(const SKY_Stripe_t *stripe)
{
    SKY_Packet_t pkt;
    SKY_Stripe_t back;

    (void)memset(&pkt, 0, sizeof(pkt));
    SKY_Stripe_ToPacket(stripe, &pkt);
    CHECK(SKY_Stripe_OfPacket(&back, &pkt));
    CHECK(SKY_Stripe_Equal(&back, stripe));
    for (uint32_t id = 0; id < stripe->chunk_total; ++id)
    {
        pkt.chunk_id  = id;
        pkt.chunk_len = SKY_Stripe_ChunkBytes(stripe, id);
        CHECK(declares(&pkt, stripe));
        if (id == 0 || id + 1u == stripe->chunk_total)
        {
            check_others(stripe, pkt);
        }
        for (uint32_t less = 0; less < 2u; ++less)
        {
            pkt.chunk_len = SKY_Stripe_ChunkBytes(stripe, id) + (less == 0u ? 1u : UINT32_MAX);
            CHECK(!declares(&pkt, stripe));
        }
        pkt.chunk_len   = SKY_Stripe_ChunkBytes(stripe, id);
        pkt.code_scheme = (uint8_t)(pkt.code_scheme + 1u);
        CHECK(!declares(&pkt, stripe));
        pkt.code_scheme = (uint8_t)(pkt.code_scheme - 1u);
    }
    pkt.chunk_id = stripe->chunk_total;
    CHECK(!declares(&pkt, stripe));
}

static void test_chunks_of_every_stripe_fit_together(void)
{
    static const uint8_t codes[][2] = {{0, 0}, {1, 1}, {1, 2}, {10, 2}, {3, 4}, {253, 2}, {1, 254}, {254, 1}};

    for (uint32_t c = 0; c < sizeof(codes) / sizeof(codes[0]); ++c)
    {
        for (uint32_t chunk_len = 1; chunk_len <= 7u; ++chunk_len)
        {
            for (uint32_t block_len = 1; block_len <= 160u; ++block_len)
            {
                SKY_Stripe_t stripe;

                CHECK(SKY_Stripe_Cut(&stripe, block_len, chunk_len, codes[c][0], codes[c][1]));
                CHECK(SKY_Stripe_Check(&stripe));
                check_stripe(&stripe);
                check_packets(&stripe);
            }
        }
    }
}

static void test_parity_ends_each_row(void)
{
    SKY_Stripe_t stripe;

    CHECK(SKY_Stripe_Cut(&stripe, 11u * 6000u + 1u, 6000, 10, 2)); /* 12 data chunks: 10 and 2 */
    CHECK_EQ(stripe.chunk_total, 16);
    CHECK_EQ(SKY_Stripe_Rows(&stripe), 2);
    CHECK(!SKY_Stripe_IsParity(&stripe, 9));
    CHECK(SKY_Stripe_IsParity(&stripe, 10));
    CHECK(SKY_Stripe_IsParity(&stripe, 11));
    CHECK(!SKY_Stripe_IsParity(&stripe, 13));
    CHECK(SKY_Stripe_IsParity(&stripe, 14));
    CHECK_EQ(SKY_Stripe_ChunkBytes(&stripe, 13), 1);
    CHECK_EQ(SKY_Stripe_ChunkBytes(&stripe, 14), 6000);
    CHECK_EQ(SKY_Stripe_Offset(&stripe, 12), 60000);
    CHECK_EQ(SKY_Stripe_Offset(&stripe, 14), 12000);
}

static void test_numbers_that_no_block_can_have(void)
{
    static const SKY_Stripe_t wrong[] = {
        {0, 10, 1, 0, 0},                          /* no byte */
        {10, 0, 1, 0, 0},                          /* chunks of no byte */
        {10, SKY_LIMIT_CHUNK_BYTES + 1u, 1, 0, 0}, /* chunks too large */
        {10, 10, 0, 0, 0},                         /* no chunk */
        {10, 10, 3, 1, 0},                         /* data chunks of a row, and no parity */
        {10, 10, 3, 0, 1},                         /* parity of nothing */
        {10, 10, 3, 254, 2},                       /* rows too long */
        {20, 10, 3, 10, 2},                        /* too few chunks */
        {20, 10, 5, 10, 2},                        /* too many */
        {100, 10, 12u + 2u, 10, 2},                /* a last row of parity alone */
        {20, 2, UINT32_MAX, 0, 0},                 /* no product wraps around */
    };
    SKY_Stripe_t stripe;
    SKY_Packet_t pkt;

    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
    {
        CHECK(!SKY_Stripe_Check(&wrong[i]));
        for (uint32_t id = 0; id < 20u; ++id)
        {
            (void)memset(&pkt, 0, sizeof(pkt));
            pkt.block_len   = wrong[i].block_len;
            pkt.chunk_len   = wrong[i].chunk_len;
            pkt.chunk_total = wrong[i].chunk_total;
            pkt.code_k      = wrong[i].code_k;
            pkt.code_m      = wrong[i].code_m;
            pkt.code_scheme = wrong[i].code_k == 0u ? (uint8_t)SKY_CODE_NONE : (uint8_t)SKY_CODE_CAUCHY;
            pkt.chunk_id    = id;
            CHECK(!SKY_Stripe_OfPacket(&stripe, &pkt));
            CHECK(!SKY_Stripe_OfChunk(&stripe, &pkt) || !SKY_Stripe_Equal(&stripe, &wrong[i]));
        }
    }
    CHECK(!SKY_Stripe_Cut(&stripe, 0, 10, 0, 0));
    CHECK(!SKY_Stripe_Cut(&stripe, 10, 0, 0, 0));
    CHECK(!SKY_Stripe_Cut(&stripe, 10, SKY_LIMIT_CHUNK_BYTES + 1u, 0, 0));
    CHECK(!SKY_Stripe_Cut(&stripe, 10, 10, 1, 0));
    CHECK(!SKY_Stripe_Cut(&stripe, 10, 10, 200, 56));
    CHECK(SKY_Stripe_Cut(&stripe, UINT32_MAX, 1, 0, 0));
    CHECK(!SKY_Stripe_Cut(&stripe, UINT32_MAX, 1, 10, 2)); /* more chunks than can be counted */
    CHECK(!SKY_Stripe_Cut(&stripe, UINT32_MAX, 1, 1, 254));
}

/* Who believes a stripe takes memory for each of its rows. */
static void test_no_block_has_more_rows_than_a_store_has_slots(void)
{
    SKY_Stripe_t stripe;

    CHECK_EQ(SKY_STRIPE_ROWS_MAX, SKY_STORE_SLOT_MAX);
    CHECK(SKY_Stripe_Cut(&stripe, 3u * SKY_STRIPE_ROWS_MAX, 1, 3, 2));
    CHECK_EQ(SKY_Stripe_Rows(&stripe), SKY_STRIPE_ROWS_MAX);
    CHECK(!SKY_Stripe_Cut(&stripe, 3u * SKY_STRIPE_ROWS_MAX + 1u, 1, 3, 2));
    CHECK(!SKY_Stripe_Check(&stripe));
}

static void test_stripes_are_equal_if_their_chunks_are(void)
{
    SKY_Stripe_t a;
    SKY_Stripe_t b;

    CHECK(SKY_Stripe_Cut(&a, 100, 6000, 0, 0));
    CHECK(SKY_Stripe_Cut(&b, 100, 100, 0, 0));
    CHECK(SKY_Stripe_Equal(&a, &b)); /* one chunk of 100 bytes */
    CHECK(SKY_Stripe_Cut(&b, 100, 99, 0, 0));
    CHECK(!SKY_Stripe_Equal(&a, &b));
    CHECK(SKY_Stripe_Cut(&b, 101, 6000, 0, 0));
    CHECK(!SKY_Stripe_Equal(&a, &b));
    CHECK(SKY_Stripe_Cut(&b, 100, 6000, 10, 2));
    CHECK(!SKY_Stripe_Equal(&a, &b));
    CHECK(SKY_Stripe_Cut(&a, 100, 6000, 9, 2));
    CHECK(!SKY_Stripe_Equal(&a, &b));
    a        = b;
    a.code_m = 1;
    CHECK(!SKY_Stripe_Equal(&a, &b));
}

int main(void)
{
    RUN(test_chunks_of_every_stripe_fit_together);
    RUN(test_parity_ends_each_row);
    RUN(test_numbers_that_no_block_can_have);
    RUN(test_no_block_has_more_rows_than_a_store_has_slots);
    RUN(test_stripes_are_equal_if_their_chunks_are);
    return CHECK_RESULT();
}
