/* The erasure code's sums: each implementation that runs here, for all lengths, places in memory and weights, against the definition. */
#include "sky_code.h"

#include <string.h>

#include "check.h"
#include "code_rig.h"

#define SOURCES 20u
#define SUMS    11u
#define BYTES   9000u
#define MARGIN  64u /* around each sum: must stay as it is */
#define FILLER  0xA5u

static uint8_t source_memory[SOURCES][BYTES + MARGIN];
static uint8_t sum_memory[SUMS][BYTES + 2u * MARGIN];
static uint8_t expected[BYTES];
static uint8_t weights[SUMS * SOURCES];

static bool is_filler(const uint8_t *bytes, size_t len)
{
    size_t same = 0;

    while (same < len && bytes[same] == FILLER)
    {
        ++same;
    }
    return same == len;
}

/* Sum up by the definition. */
static void expect_sum(const SKY_CodeChunk_t sources[], uint32_t source_count, const uint8_t of[], uint32_t len)
{
    (void)memset(expected, 0, len);
    for (uint32_t j = 0; j < source_count; ++j)
    {
        uint8_t products[256];

        for (uint32_t byte = 0; byte < 256; ++byte)
        {
            products[byte] = rig_product(of[j], (uint8_t)byte);
        }
        for (uint32_t b = 0; b < len && b < sources[j].len; ++b)
        {
            expected[b] = (uint8_t)(expected[b] ^ products[sources[j].bytes[b]]);
        }
    }
}

/* Compare many sums, at places that are not aligned, with the definition. */
static void check_sums(const SKY_CodeChunk_t sources[], uint8_t source_count, uint8_t sum_count, uint32_t len, uint32_t shift)
{
    uint8_t *sums[SUMS] = {NULL};
    uint32_t wrong      = 0;

    for (uint32_t s = 0; s < sum_count; ++s)
    {
        (void)memset(sum_memory[s], FILLER, sizeof(sum_memory[s]));
        sums[s] = sum_memory[s] + (shift + 7u * s) % MARGIN;
    }
    SKY_Code_Sums(sums, sum_count, len, sources, source_count, weights);
    for (uint32_t s = 0; s < sum_count; ++s)
    {
        const uint32_t before = (shift + 7u * s) % MARGIN;

        expect_sum(sources, source_count, weights + s * source_count, len);
        wrong += memcmp(sums[s], expected, len) == 0 ? 0u : 1u;
        wrong += is_filler(sum_memory[s], before) ? 0u : 1u;
        wrong += is_filler(sums[s] + len, sizeof(sum_memory[s]) - before - len) ? 0u : 1u;
    }
    CHECK_EQ(wrong, 0);
}

static void take_sources(SKY_CodeChunk_t sources[], uint32_t len, uint32_t shift)
{
    for (uint32_t j = 0; j < SOURCES; ++j)
    {
        sources[j] = (SKY_CodeChunk_t){source_memory[j] + (shift + 5u * j) % MARGIN, len};
    }
}

static void sums_have_any_length_and_place(void)
{
    static const uint32_t lens[] = {1023, 1024, 1025, 2047, 2048, 2049, 2050, 5999, 6000, 6001, 8192, BYTES};
    SKY_CodeChunk_t       sources[SOURCES];

    for (uint32_t len = 0; len < 300; ++len)
    {
        take_sources(sources, len, len);
        check_sums(sources, 10, 2, len, len * 3u);
    }
    for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); ++i)
    {
        take_sources(sources, lens[i], i);
        check_sums(sources, 10, 3, lens[i], i + 1u);
    }
}

static void any_number_of_sums_and_sources(void)
{
    SKY_CodeChunk_t sources[SOURCES];

    take_sources(sources, 1500, 1);
    for (uint32_t sum_count = 0; sum_count <= SUMS; ++sum_count)
    {
        for (uint32_t source_count = 0; source_count <= SOURCES; ++source_count)
        {
            check_sums(sources, (uint8_t)source_count, (uint8_t)sum_count, sum_count == 5u ? 1500u : 150u, source_count);
        }
    }
}

static void shorter_chunks_count_as_zeros_after_their_end(void)
{
    static const uint32_t lens[] = {0, 1, 31, 32, 33, 127, 128, 1000, 2999, 3000};
    SKY_CodeChunk_t       sources[SOURCES];
    uint64_t              random = 9;

    for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); ++i)
    {
        take_sources(sources, 3000, i); /* only the last one is shorter, as in the last row of a block */
        sources[9].len = lens[i];
        check_sums(sources, 10, 2, 3000, i);
    }
    for (uint32_t round = 0; round < 50; ++round)
    {
        take_sources(sources, 3000, round);
        for (uint32_t j = 0; j < SOURCES; ++j)
        {
            sources[j].len = rig_random(&random) % 3001u;
        }
        sources[round % SOURCES] = (SKY_CodeChunk_t){NULL, 0};
        check_sums(sources, SOURCES, 5, 3000, round);
    }
    take_sources(sources, 3000, 0); /* bytes behind the sums' end do not count */
    check_sums(sources, 10, 2, 2000, 0);
}

static void each_weight_multiplies_each_byte(void)
{
    uint8_t  all[256];
    uint32_t wrong = 0;

    for (uint32_t byte = 0; byte < 256; ++byte)
    {
        all[byte] = (uint8_t)byte;
    }
    for (uint32_t weight = 0; weight < 256; ++weight)
    {
        const SKY_CodeChunk_t source   = {all, sizeof(all)};
        const uint8_t         of       = (uint8_t)weight;
        uint8_t               sum[256] = {0};
        uint8_t               set[256];
        uint8_t *const        sums[1] = {set};

        SKY_Code_Add(sum, all, sizeof(all), of);
        SKY_Code_Sums(sums, 1, sizeof(set), &source, 1, &of);
        for (uint32_t byte = 0; byte < 256; ++byte)
        {
            wrong += sum[byte] == rig_product(of, (uint8_t)byte) ? 0u : 1u;
            wrong += set[byte] == rig_product(of, (uint8_t)byte) ? 0u : 1u;
        }
    }
    CHECK_EQ(wrong, 0);
}

static void chunks_of_any_length_are_added(void)
{
    uint32_t wrong = 0;

    for (uint32_t len = 0; len < 300; ++len)
    {
        const uint8_t *chunk = source_memory[0] + len % MARGIN;
        uint8_t       *sum   = sum_memory[0] + (len * 5u) % MARGIN;
        const uint8_t  of    = (uint8_t)(len + 2u);

        (void)memset(sum_memory[0], FILLER, sizeof(sum_memory[0]));
        SKY_Code_Add(sum, chunk, len, of);
        for (uint32_t b = 0; b < len; ++b)
        {
            wrong += sum[b] == (FILLER ^ rig_product(of, chunk[b])) ? 0u : 1u;
        }
        wrong += is_filler(sum + len, MARGIN) ? 0u : 1u;
        wrong += is_filler(sum_memory[0], (len * 5u) % MARGIN) ? 0u : 1u;
    }
    CHECK_EQ(wrong, 0);
}

static void implementations_can_be_chosen(void)
{
    const uint32_t count = SKY_Code_Implementations();

    CHECK(count >= 1);
    SKY_Code_Use(count - 1u);
    const char *best = SKY_Code_Implementation();
    SKY_Code_Use(0);
    CHECK(strcmp(SKY_Code_Implementation(), "table") == 0);
    SKY_Code_Use(UINT32_MAX);
    CHECK(strcmp(SKY_Code_Implementation(), best) == 0);
    SKY_Code_Use(0);
    SKY_Code_Use(count);
    CHECK(strcmp(SKY_Code_Implementation(), best) == 0);
}

int main(void)
{
    rig_fill(&source_memory[0][0], sizeof(source_memory), 1);
    rig_fill(weights, sizeof(weights), 2);
    weights[3]  = 0;
    weights[12] = 1;
    RUN(implementations_can_be_chosen);
    for (uint32_t which = 0; which < SKY_Code_Implementations(); ++which)
    {
        SKY_Code_Use(which);
        (void)printf("%s:\n", SKY_Code_Implementation());
        RUN(sums_have_any_length_and_place);
        RUN(any_number_of_sums_and_sources);
        RUN(shorter_chunks_count_as_zeros_after_their_end);
        RUN(each_weight_multiplies_each_byte);
        RUN(chunks_of_any_length_are_added);
    }
    return CHECK_RESULT();
}
