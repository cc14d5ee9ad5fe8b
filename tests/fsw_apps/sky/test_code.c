/* The erasure code's matrix: its coefficients, and the weights of every pattern of losses that it promises to mend. */
#include "sky_code.h"

#include <string.h>

#include "check.h"
#include "code_rig.h"

#define BYTES 5u /* of a chunk */

static uint8_t chunks[SKY_CODE_CHUNKS_MAX][BYTES]; /* a row as it was sent */
static uint8_t mended[SKY_CODE_CHUNKS_MAX][BYTES];
static uint8_t weights[SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];

static void rows_have_data_and_few_enough_chunks(void)
{
    for (uint32_t k = 0; k < 256; ++k)
    {
        for (uint32_t m = 0; m < 256; ++m)
        {
            const SKY_CodeRow_t row = {(uint8_t)k, (uint8_t)m};

            CHECK_EQ(SKY_CodeRow_Check(row), k >= 1 && k + m <= 255);
        }
    }
}

static void coefficients_are_those_of_a_cauchy_matrix(void)
{
    for (uint32_t k = 2; k < 255; ++k)
    {
        const SKY_CodeRow_t row = {(uint8_t)k, (uint8_t)(255 - k)};

        for (uint32_t i = k; i < 255; ++i)
        {
            for (uint32_t j = 0; j < k; ++j)
            {
                if (rig_product(SKY_Code_Coefficient(row, (uint8_t)i, (uint8_t)j), (uint8_t)(i ^ j)) != 1)
                {
                    CHECK_EQ(j, UINT32_MAX);
                    return;
                }
            }
        }
    }
    CHECK_EQ(SKY_Code_Coefficient((SKY_CodeRow_t){2, 1}, 2, 0), 0x8E); /* 1 / x */
}

static void parity_of_one_chunk_are_copies(void)
{
    for (uint32_t i = 1; i < 255; ++i)
    {
        CHECK_EQ(SKY_Code_Coefficient((SKY_CodeRow_t){1, 254}, (uint8_t)i, 0), 1);
        for (uint32_t j = 0; j < 255; ++j)
        {
            const uint8_t have   = (uint8_t)j;
            uint8_t       weight = 0;

            CHECK(SKY_Code_Weights((SKY_CodeRow_t){1, 254}, (uint8_t)i, &have, &weight));
            CHECK_EQ(weight, 1);
        }
    }
}

/* The rule of the parity, byte by byte. */
static void make_row(SKY_CodeRow_t row, uint64_t seed)
{
    rig_fill(&chunks[0][0], (size_t)row.k * BYTES, seed);
    for (uint32_t i = row.k; i < (uint32_t)row.k + row.m; ++i)
    {
        (void)memset(chunks[i], 0, BYTES);
        for (uint32_t j = 0; j < row.k; ++j)
        {
            const uint8_t weight = SKY_Code_Coefficient(row, (uint8_t)i, (uint8_t)j);

            for (uint32_t b = 0; b < BYTES; ++b)
            {
                chunks[i][b] = (uint8_t)(chunks[i][b] ^ rig_product(weight, chunks[j][b]));
            }
        }
    }
}

/* Mend what is lost, in one pass and chunk by chunk. The chunks at hand come in an order of their own. */
static bool mends(SKY_CodeRow_t row, const uint8_t lost[], uint8_t lost_count, uint64_t *random)
{
    const uint32_t  n = (uint32_t)row.k + row.m;
    SKY_CodeChunk_t sources[SKY_CODE_CHUNKS_MAX];
    uint8_t         have[SKY_CODE_CHUNKS_MAX];
    uint8_t        *sums[SKY_CODE_CHUNKS_MAX] = {NULL};
    bool            is_good                   = true;
    uint32_t        left                      = 0;

    for (uint32_t chunk = 0; chunk < n; ++chunk)
    {
        if (memchr(lost, (int)chunk, lost_count) == NULL)
        {
            have[left++] = (uint8_t)chunk;
        }
    }
    for (uint32_t j = 0; j < row.k; ++j)
    {
        const uint32_t other = j + rig_random(random) % (left - j);
        const uint8_t  moved = have[other];

        have[other] = have[j];
        have[j]     = moved;
        sources[j]  = (SKY_CodeChunk_t){chunks[moved], BYTES};
    }
    for (uint32_t i = 0; i < lost_count; ++i)
    {
        uint8_t sum[BYTES] = {0};

        is_good &= SKY_Code_Weights(row, lost[i], have, weights + (size_t)i * row.k);
        for (uint32_t j = 0; j < row.k; ++j)
        {
            SKY_Code_Add(sum, chunks[have[j]], BYTES, weights[i * row.k + j]);
        }
        is_good &= memcmp(sum, chunks[lost[i]], BYTES) == 0;
        sums[i] = mended[i];
    }
    SKY_Code_Sums(sums, lost_count, BYTES, sources, row.k, weights);
    for (uint32_t i = 0; i < lost_count; ++i)
    {
        is_good &= memcmp(mended[i], chunks[lost[i]], BYTES) == 0;
    }
    return is_good;
}

static void every_pattern_of_losses_is_mended(void)
{
    static const SKY_CodeRow_t rows[]   = {{1, 0}, {1, 2}, {2, 1}, {2, 2},  {3, 3},  {2, 6},
                                           {7, 2}, {8, 4}, {9, 2}, {10, 2}, {16, 4}, {253, 2}};
    static const uint32_t      counts[] = {1, 7, 4, 11, 42, 247, 46, 794, 67, 79, 6196, 32641};
    uint64_t                   random   = 3;

    for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
    {
        const uint32_t n        = (uint32_t)rows[r].k + rows[r].m;
        uint32_t       patterns = 0;
        uint32_t       failed   = 0;

        make_row(rows[r], r);
        for (uint32_t count = 0; count <= rows[r].m; ++count)
        {
            uint8_t lost[SKY_CODE_CHUNKS_MAX];

            for (uint32_t i = 0; i < count; ++i)
            {
                lost[i] = (uint8_t)i;
            }
            do
            {
                failed += mends(rows[r], lost, (uint8_t)count, &random) ? 0u : 1u;
                ++patterns;
            } while (rig_next_choice(lost, count, n));
        }
        CHECK_EQ(failed, 0);
        CHECK_EQ(patterns, counts[r]);
    }
}

static void random_losses_of_long_rows_are_mended(void)
{
    static const SKY_CodeRow_t rows[] = {{128, 127}, {127, 128}, {1, 254}, {254, 1}, {100, 31}, {31, 100}, {20, 12}, {255, 0}};
    uint64_t                   random = 5;

    for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
    {
        const uint32_t n      = (uint32_t)rows[r].k + rows[r].m;
        uint32_t       failed = 0;

        make_row(rows[r], r);
        for (uint32_t i = 0; i < 10; ++i)
        {
            uint8_t  lost[SKY_CODE_CHUNKS_MAX];
            uint8_t  order[SKY_CODE_CHUNKS_MAX];
            uint32_t count = i == 0 ? rows[r].m : rig_random(&random) % (rows[r].m + 1u);

            for (uint32_t chunk = 0; chunk < n; ++chunk)
            {
                order[chunk] = (uint8_t)chunk;
            }
            for (uint32_t j = 0; j < count; ++j)
            {
                const uint32_t other = j + rig_random(&random) % (n - j);

                lost[j]      = order[other];
                order[other] = order[j];
            }
            failed += mends(rows[r], lost, (uint8_t)count, &random) ? 0u : 1u;
        }
        CHECK_EQ(failed, 0);
    }
}

static void a_chunk_at_hand_is_itself(void)
{
    static const SKY_CodeRow_t row     = {4, 3};
    static const uint8_t       have[4] = {6, 1, 4, 3};

    for (uint32_t i = 0; i < 4; ++i)
    {
        CHECK(SKY_Code_Weights(row, have[i], have, weights));
        for (uint32_t j = 0; j < 4; ++j)
        {
            CHECK_EQ(weights[j], i == j);
        }
    }
}

static void parity_comes_from_the_data_by_its_coefficients(void)
{
    static const SKY_CodeRow_t row      = {10, 4};
    static const uint8_t       have[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    for (uint32_t i = 10; i < 14; ++i)
    {
        CHECK(SKY_Code_Weights(row, (uint8_t)i, have, weights));
        for (uint32_t j = 0; j < 10; ++j)
        {
            CHECK_EQ(weights[j], SKY_Code_Coefficient(row, (uint8_t)i, (uint8_t)j));
        }
    }
}

static void indices_of_no_row_are_refused(void)
{
    static const SKY_CodeRow_t row     = {4, 2};
    static const uint8_t       good[4] = {0, 2, 3, 5};

    CHECK(SKY_Code_Weights(row, 1, good, weights));
    CHECK(SKY_Code_Weights(row, 5, good, weights));
    CHECK(!SKY_Code_Weights(row, 6, good, weights));
    CHECK(!SKY_Code_Weights(row, 255, good, weights));
    CHECK(!SKY_Code_Weights((SKY_CodeRow_t){0, 2}, 1, good, weights));
    CHECK(!SKY_Code_Weights((SKY_CodeRow_t){4, 252}, 1, good, weights));
    CHECK(!SKY_Code_Weights(row, 1, (const uint8_t[]){0, 2, 3, 6}, weights));
    CHECK(!SKY_Code_Weights(row, 1, (const uint8_t[]){255, 2, 3, 5}, weights));
    CHECK(!SKY_Code_Weights(row, 1, (const uint8_t[]){0, 2, 0, 5}, weights));
    CHECK(!SKY_Code_Weights(row, 1, (const uint8_t[]){5, 2, 3, 5}, weights));
    CHECK(!SKY_Code_Weights((SKY_CodeRow_t){1, 1}, 0, (const uint8_t[]){2}, weights));
}

int main(void)
{
    RUN(rows_have_data_and_few_enough_chunks);
    RUN(coefficients_are_those_of_a_cauchy_matrix);
    RUN(parity_of_one_chunk_are_copies);
    RUN(every_pattern_of_losses_is_mended);
    RUN(random_losses_of_long_rows_are_mended);
    RUN(a_chunk_at_hand_is_itself);
    RUN(parity_comes_from_the_data_by_its_coefficients);
    RUN(indices_of_no_row_are_refused);
    return CHECK_RESULT();
}
