/* The erasure code beside ISA-L: the same matrix, the same weights for every pattern of losses, the same bytes. */
#include <string.h>

#include <isa-l/erasure_code.h>

#include "check.h"
#include "code_rig.h"
#include "sky_code.h"

#define SQUARE (SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX)
#define BYTES  6000u
#define CHUNKS 40u

static uint8_t matrix[SQUARE]; /* of the row that is tested, by ISA-L */
static uint8_t part[SQUARE];
static uint8_t inverse[SQUARE];
static uint8_t weights[SQUARE];
static uint8_t tables[32u * SQUARE];
static uint8_t data[CHUNKS][BYTES];
static uint8_t ours[CHUNKS][BYTES];
static uint8_t theirs[CHUNKS][BYTES];

static void the_matrix_is_the_same(void)
{
    uint32_t wrong = 0;

    for (uint32_t k = 2; k < 255; ++k) /* the parity of a row of one chunk are copies here */
    {
        gf_gen_cauchy1_matrix(matrix, 255, (int)k);
        for (uint32_t i = k; i < 255; ++i)
        {
            for (uint32_t j = 0; j < k; ++j)
            {
                const SKY_CodeRow_t row = {(uint8_t)k, (uint8_t)(255 - k)};

                wrong += SKY_Code_Coefficient(row, (uint8_t)i, (uint8_t)j) == matrix[i * k + j] ? 0u : 1u;
            }
        }
    }
    CHECK_EQ(wrong, 0);
}

/* Compare the weights for each lost chunk, from the first k of the others. */
static bool weights_are_the_same(SKY_CodeRow_t row, const uint8_t lost[], uint32_t lost_count)
{
    const uint32_t k = row.k;
    uint8_t        have[SKY_CODE_CHUNKS_MAX];
    uint32_t       left    = 0;
    bool           is_same = true;

    for (uint32_t chunk = 0; left < k; ++chunk)
    {
        if (memchr(lost, (int)chunk, lost_count) == NULL)
        {
            (void)memcpy(part + left * k, matrix + chunk * k, k);
            have[left++] = (uint8_t)chunk;
        }
    }
    is_same &= gf_invert_matrix(part, inverse, (int)k) == 0;
    for (uint32_t i = 0; i < lost_count; ++i)
    {
        is_same &= SKY_Code_Weights(row, lost[i], have, weights);
        for (uint32_t j = 0; j < k; ++j)
        {
            uint8_t weight = 0;

            for (uint32_t l = 0; l < k; ++l)
            {
                weight ^= gf_mul(matrix[lost[i] * k + l], inverse[l * k + j]);
            }
            is_same &= weight == weights[j];
        }
    }
    return is_same;
}

static void weights_are_the_same_for_every_pattern(void)
{
    static const SKY_CodeRow_t rows[]   = {{2, 2}, {4, 4}, {7, 2}, {10, 2}, {12, 3}, {16, 4}};
    static const uint32_t      counts[] = {11, 163, 46, 79, 576, 6196};

    for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
    {
        const uint32_t n        = (uint32_t)rows[r].k + rows[r].m;
        uint32_t       patterns = 0;
        uint32_t       wrong    = 0;

        gf_gen_cauchy1_matrix(matrix, (int)n, rows[r].k);
        for (uint32_t count = 0; count <= rows[r].m; ++count)
        {
            uint8_t lost[SKY_CODE_CHUNKS_MAX];

            for (uint32_t i = 0; i < count; ++i)
            {
                lost[i] = (uint8_t)i;
            }
            do
            {
                wrong += weights_are_the_same(rows[r], lost, count) ? 0u : 1u;
                ++patterns;
            } while (rig_next_choice(lost, count, n));
        }
        CHECK_EQ(wrong, 0);
        CHECK_EQ(patterns, counts[r]);
    }
}

static void weights_are_the_same_for_long_rows(void)
{
    static const SKY_CodeRow_t rows[] = {{253, 2}, {128, 127}, {60, 9}, {9, 60}};
    uint64_t                   random = 7;

    for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
    {
        const uint32_t n = (uint32_t)rows[r].k + rows[r].m;

        gf_gen_cauchy1_matrix(matrix, (int)n, rows[r].k);
        for (uint32_t round = 0; round < 4; ++round)
        {
            uint8_t  lost[SKY_CODE_CHUNKS_MAX];
            uint32_t count = 0;

            for (uint32_t chunk = rig_random(&random) % rows[r].k; chunk < n && count < rows[r].m; ++chunk)
            {
                lost[count] = (uint8_t)chunk;
                count += rig_random(&random) % 2u;
            }
            CHECK(weights_are_the_same(rows[r], lost, count));
        }
    }
}

static void parity_has_the_same_bytes(void)
{
    static const SKY_CodeRow_t rows[] = {{10, 2}, {7, 2}, {16, 4}, {20, 20}, {2, 1}};
    static const uint32_t      lens[] = {64, 100, 1000, 4096, BYTES}; /* ISA-L needs some bytes */

    for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
    {
        const uint32_t  k = rows[r].k;
        const uint32_t  m = rows[r].m;
        SKY_CodeChunk_t sources[CHUNKS];
        uint8_t        *inputs[CHUNKS]  = {NULL};
        uint8_t        *outputs[CHUNKS] = {NULL};
        uint8_t        *sums[CHUNKS]    = {NULL};

        gf_gen_cauchy1_matrix(matrix, (int)(k + m), (int)k);
        ec_init_tables((int)k, (int)m, matrix + k * k, tables);
        for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); ++i)
        {
            uint32_t wrong = 0;

            for (uint32_t j = 0; j < k; ++j)
            {
                sources[j] = (SKY_CodeChunk_t){data[j], lens[i]};
                inputs[j]  = data[j];
            }
            for (uint32_t s = 0; s < m; ++s)
            {
                outputs[s] = theirs[s];
                sums[s]    = ours[s];
            }
            ec_encode_data((int)lens[i], (int)k, (int)m, tables, inputs, outputs);
            SKY_Code_Sums(sums, rows[r].m, lens[i], sources, rows[r].k, matrix + k * k);
            for (uint32_t s = 0; s < m; ++s)
            {
                wrong += memcmp(ours[s], theirs[s], lens[i]) == 0 ? 0u : 1u;
            }
            CHECK_EQ(wrong, 0);
        }
    }
}

int main(void)
{
    rig_fill(&data[0][0], sizeof(data), 1);
    RUN(the_matrix_is_the_same);
    RUN(weights_are_the_same_for_every_pattern);
    RUN(weights_are_the_same_for_long_rows);
    for (uint32_t which = 0; which < SKY_Code_Implementations(); ++which)
    {
        SKY_Code_Use(which);
        (void)printf("%s: ", SKY_Code_Implementation());
        RUN(parity_has_the_same_bytes);
    }
    return CHECK_RESULT();
}
