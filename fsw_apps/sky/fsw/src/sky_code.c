/**
 * @file
 * The erasure code: its matrix and the inverse of any part of it, and the choice of the implementation of the sums.
 */
#include "sky_code.h"

#include <stddef.h>

#include "sky_assert.h"
#include "sky_code_accel.h"

#define ORDER       255u  /* x^255 = 1 */
#define LOST_MAX    127u  /* the lesser of k and m */
#define BLOCK_BYTES 1024u /* of each source: those of a usual row stay in the processor's first cache */
#define WORD_BITS   32u

/* x^i */
static const uint8_t code_exp[ORDER] = {
    0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1D, 0x3A, 0x74, 0xE8, 0xCD, 0x87, 0x13, 0x26, 0x4C, 0x98, 0x2D, 0x5A,
    0xB4, 0x75, 0xEA, 0xC9, 0x8F, 0x03, 0x06, 0x0C, 0x18, 0x30, 0x60, 0xC0, 0x9D, 0x27, 0x4E, 0x9C, 0x25, 0x4A, 0x94, 0x35,
    0x6A, 0xD4, 0xB5, 0x77, 0xEE, 0xC1, 0x9F, 0x23, 0x46, 0x8C, 0x05, 0x0A, 0x14, 0x28, 0x50, 0xA0, 0x5D, 0xBA, 0x69, 0xD2,
    0xB9, 0x6F, 0xDE, 0xA1, 0x5F, 0xBE, 0x61, 0xC2, 0x99, 0x2F, 0x5E, 0xBC, 0x65, 0xCA, 0x89, 0x0F, 0x1E, 0x3C, 0x78, 0xF0,
    0xFD, 0xE7, 0xD3, 0xBB, 0x6B, 0xD6, 0xB1, 0x7F, 0xFE, 0xE1, 0xDF, 0xA3, 0x5B, 0xB6, 0x71, 0xE2, 0xD9, 0xAF, 0x43, 0x86,
    0x11, 0x22, 0x44, 0x88, 0x0D, 0x1A, 0x34, 0x68, 0xD0, 0xBD, 0x67, 0xCE, 0x81, 0x1F, 0x3E, 0x7C, 0xF8, 0xED, 0xC7, 0x93,
    0x3B, 0x76, 0xEC, 0xC5, 0x97, 0x33, 0x66, 0xCC, 0x85, 0x17, 0x2E, 0x5C, 0xB8, 0x6D, 0xDA, 0xA9, 0x4F, 0x9E, 0x21, 0x42,
    0x84, 0x15, 0x2A, 0x54, 0xA8, 0x4D, 0x9A, 0x29, 0x52, 0xA4, 0x55, 0xAA, 0x49, 0x92, 0x39, 0x72, 0xE4, 0xD5, 0xB7, 0x73,
    0xE6, 0xD1, 0xBF, 0x63, 0xC6, 0x91, 0x3F, 0x7E, 0xFC, 0xE5, 0xD7, 0xB3, 0x7B, 0xF6, 0xF1, 0xFF, 0xE3, 0xDB, 0xAB, 0x4B,
    0x96, 0x31, 0x62, 0xC4, 0x95, 0x37, 0x6E, 0xDC, 0xA5, 0x57, 0xAE, 0x41, 0x82, 0x19, 0x32, 0x64, 0xC8, 0x8D, 0x07, 0x0E,
    0x1C, 0x38, 0x70, 0xE0, 0xDD, 0xA7, 0x53, 0xA6, 0x51, 0xA2, 0x59, 0xB2, 0x79, 0xF2, 0xF9, 0xEF, 0xC3, 0x9B, 0x2B, 0x56,
    0xAC, 0x45, 0x8A, 0x09, 0x12, 0x24, 0x48, 0x90, 0x3D, 0x7A, 0xF4, 0xF5, 0xF7, 0xF3, 0xFB, 0xEB, 0xCB, 0x8B, 0x0B, 0x16,
    0x2C, 0x58, 0xB0, 0x7D, 0xFA, 0xE9, 0xCF, 0x83, 0x1B, 0x36, 0x6C, 0xD8, 0xAD, 0x47, 0x8E,
};

/* The exponent of x that gives a byte. That of 0, which has none, is 0 here: what it is multiplied by stays as it is. */
static const uint8_t code_log[256] = {
    0x00, 0x00, 0x01, 0x19, 0x02, 0x32, 0x1A, 0xC6, 0x03, 0xDF, 0x33, 0xEE, 0x1B, 0x68, 0xC7, 0x4B, 0x04, 0x64, 0xE0, 0x0E,
    0x34, 0x8D, 0xEF, 0x81, 0x1C, 0xC1, 0x69, 0xF8, 0xC8, 0x08, 0x4C, 0x71, 0x05, 0x8A, 0x65, 0x2F, 0xE1, 0x24, 0x0F, 0x21,
    0x35, 0x93, 0x8E, 0xDA, 0xF0, 0x12, 0x82, 0x45, 0x1D, 0xB5, 0xC2, 0x7D, 0x6A, 0x27, 0xF9, 0xB9, 0xC9, 0x9A, 0x09, 0x78,
    0x4D, 0xE4, 0x72, 0xA6, 0x06, 0xBF, 0x8B, 0x62, 0x66, 0xDD, 0x30, 0xFD, 0xE2, 0x98, 0x25, 0xB3, 0x10, 0x91, 0x22, 0x88,
    0x36, 0xD0, 0x94, 0xCE, 0x8F, 0x96, 0xDB, 0xBD, 0xF1, 0xD2, 0x13, 0x5C, 0x83, 0x38, 0x46, 0x40, 0x1E, 0x42, 0xB6, 0xA3,
    0xC3, 0x48, 0x7E, 0x6E, 0x6B, 0x3A, 0x28, 0x54, 0xFA, 0x85, 0xBA, 0x3D, 0xCA, 0x5E, 0x9B, 0x9F, 0x0A, 0x15, 0x79, 0x2B,
    0x4E, 0xD4, 0xE5, 0xAC, 0x73, 0xF3, 0xA7, 0x57, 0x07, 0x70, 0xC0, 0xF7, 0x8C, 0x80, 0x63, 0x0D, 0x67, 0x4A, 0xDE, 0xED,
    0x31, 0xC5, 0xFE, 0x18, 0xE3, 0xA5, 0x99, 0x77, 0x26, 0xB8, 0xB4, 0x7C, 0x11, 0x44, 0x92, 0xD9, 0x23, 0x20, 0x89, 0x2E,
    0x37, 0x3F, 0xD1, 0x5B, 0x95, 0xBC, 0xCF, 0xCD, 0x90, 0x87, 0x97, 0xB2, 0xDC, 0xFC, 0xBE, 0x61, 0xF2, 0x56, 0xD3, 0xAB,
    0x14, 0x2A, 0x5D, 0x9E, 0x84, 0x3C, 0x39, 0x53, 0x47, 0x6D, 0x41, 0xA2, 0x1F, 0x2D, 0x43, 0xD8, 0xB7, 0x7B, 0xA4, 0x76,
    0xC4, 0x17, 0x49, 0xEC, 0x7F, 0x0C, 0x6F, 0xF6, 0x6C, 0xA1, 0x3B, 0x52, 0x29, 0x9D, 0x55, 0xAA, 0xFB, 0x60, 0x86, 0xB1,
    0xBB, 0xCC, 0x3E, 0x5A, 0xCB, 0x59, 0x5F, 0xB0, 0x9C, 0xA9, 0xA0, 0x51, 0x0B, 0xF5, 0x16, 0xEB, 0x7A, 0x75, 0x2C, 0xD7,
    0x4F, 0xAE, 0xD5, 0xE9, 0xE6, 0xE7, 0xAD, 0xE8, 0x74, 0xD6, 0xF4, 0xEA, 0xA8, 0x50, 0x58, 0xAF,
};

/* --- the matrix --------------------------------------------------------------------------------------------------------------- */

/* Chunks at hand, apart from the data chunks among them, and the data chunks that they stand for. There are as many. */
typedef struct
{
    uint32_t at_hand[256u / WORD_BITS]; /* one bit a chunk */
    uint32_t count;
    uint8_t  parity[LOST_MAX];
    uint8_t  lost[LOST_MAX];
} Points_t;

static bool IsAtHand(const Points_t *points, uint32_t chunk)
{
    SKY_ASSERT(points != NULL);
    SKY_ASSERT(chunk < SKY_CODE_CHUNKS_MAX);

    return ((points->at_hand[chunk / WORD_BITS] >> (chunk % WORD_BITS)) & 1u) != 0u;
}

bool SKY_CodeRow_Check(SKY_CodeRow_t row)
{
    return row.k >= 1u && (uint32_t)row.k + row.m <= SKY_CODE_CHUNKS_MAX;
}

uint8_t SKY_Code_Coefficient(SKY_CodeRow_t row, uint8_t parity, uint8_t data)
{
    SKY_ASSERT(SKY_CodeRow_Check(row));
    SKY_ASSERT(parity >= row.k);
    SKY_ASSERT(parity < (uint32_t)row.k + row.m);
    SKY_ASSERT(data < row.k);

    return row.k == 1u ? 1u : code_exp[(ORDER - code_log[parity ^ data]) % ORDER];
}

/* @return false: an index is not in the row, or comes twice */
static bool Points_Set(Points_t *points, SKY_CodeRow_t row, const uint8_t have[])
{
    uint32_t parities = 0;
    SKY_ASSERT(SKY_CodeRow_Check(row));
    SKY_ASSERT(have != NULL);

    *points = (Points_t){.count = 0};
    for (uint32_t j = 0; j < row.k; ++j)
    {
        const uint32_t chunk = have[j];

        if (chunk >= (uint32_t)row.k + row.m || IsAtHand(points, chunk))
        {
            return false;
        }
        points->at_hand[chunk / WORD_BITS] |= (uint32_t)1 << (chunk % WORD_BITS);
        if (chunk >= row.k)
        {
            SKY_ASSERT(parities < LOST_MAX);
            points->parity[parities++] = have[j];
        }
    }
    for (uint32_t j = 0; j < row.k; ++j)
    {
        if (!IsAtHand(points, j))
        {
            SKY_ASSERT(points->count < parities);
            points->lost[points->count++] = (uint8_t)j;
        }
    }
    SKY_ASSERT(points->count == parities);
    return true;
}

/* Return the logarithm of the product of the differences of a point to others. If it is one of them, that factor is left out. */
static uint32_t LogDifferences(uint8_t point, const uint8_t others[], uint32_t count)
{
    uint32_t sum = 0;
    SKY_ASSERT(count <= LOST_MAX);
    SKY_ASSERT(point < SKY_CODE_CHUNKS_MAX);

    for (uint32_t i = 0; i < count; ++i)
    {
        sum += code_log[point ^ others[i]];
    }
    return sum;
}

/*
 * With u(t) = product of t - l over all data chunks l other than t, f(t) = u(t) * chunk t is a polynomial in t of degree k - 1 at
 * most: for t >= k that is what Lagrange's formula for the points 0 .. k - 1 gives, divided by the row of the Cauchy matrix. So the
 * same formula, for the k points at hand, gives f(wanted). Most of its factors are those of u, and cancel. What is left are the
 * differences to the parity chunks at hand (P) and to the data chunks that are not (L):
 *
 *     weight of s = P(wanted) / L(wanted) * L(s) / P(s) / (wanted - s)
 */
bool SKY_Code_Weights(SKY_CodeRow_t row, uint8_t wanted, const uint8_t have[], uint8_t weights[])
{
    Points_t points;

    if (!SKY_CodeRow_Check(row) || wanted >= (uint32_t)row.k + row.m || !Points_Set(&points, row, have))
    {
        return false;
    }
    if (row.k == 1u || IsAtHand(&points, wanted))
    {
        for (uint32_t j = 0; j < row.k; ++j)
        {
            weights[j] = row.k == 1u || have[j] == wanted ? 1u : 0u;
        }
        return true;
    }

    const uint32_t above = LogDifferences(wanted, points.parity, points.count);
    const uint32_t below = LogDifferences(wanted, points.lost, points.count);

    for (uint32_t j = 0; j < row.k; ++j)
    {
        const uint32_t plus  = above + LogDifferences(have[j], points.lost, points.count);
        const uint32_t minus = below + LogDifferences(have[j], points.parity, points.count) + code_log[wanted ^ have[j]];
        SKY_ASSERT(wanted != have[j]);
        SKY_ASSERT(minus <= (2u * LOST_MAX + 1u) * ORDER);

        weights[j] = code_exp[(plus + (2u * LOST_MAX + 1u) * ORDER - minus) % ORDER];
    }
    return true;
}

/* --- the sums ----------------------------------------------------------------------------------------------------------------- */

/*
 * The choice of the implementation is an exception to "no mutable globals", as that of the checksums is. Every thread that finds it
 * unknown works out the same answer, and loads and stores are atomic, so races do no harm. 0: unknown; else the number plus 1.
 */
#if defined(__GNUC__)
static uint32_t choice = 0;
#define CHOICE_LOAD()       __atomic_load_n(&choice, __ATOMIC_RELAXED)
#define CHOICE_STORE(value) __atomic_store_n(&choice, (value), __ATOMIC_RELAXED)
#else
static volatile uint32_t choice = 0;
#define CHOICE_LOAD()       (choice)
#define CHOICE_STORE(value) (choice = (value))
#endif

static const SKY_CodeKernel_t *Kernel(void)
{
    uint32_t now = CHOICE_LOAD();

    if (now == 0u)
    {
        now = SKY_Code_Implementations();
        CHOICE_STORE(now);
    }
    SKY_ASSERT(now >= 1u);
    SKY_ASSERT(now <= SKY_Code_Implementations());
    return now == 1u ? &SKY_CodeTable_Kernel : SKY_CodeAccel_Kernel(now - 2u);
}

uint32_t SKY_Code_Implementations(void)
{
    return 1u + SKY_CodeAccel_Count();
}

const char *SKY_Code_Implementation(void)
{
    return Kernel()->name;
}

void SKY_Code_Use(uint32_t which)
{
    CHOICE_STORE(which < SKY_Code_Implementations() ? which + 1u : 0u);
}

void SKY_Code_Add(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight)
{
    const SKY_CodeKernel_t *kernel = Kernel();
    SKY_ASSERT(len == 0u || sum != NULL);
    SKY_ASSERT(len == 0u || chunk != NULL);
    SKY_ASSERT(len == 0u || sum != chunk);

    kernel->add(sum, chunk, len, weight);
}

void SKY_Code_Sums(uint8_t *const sums[], uint8_t sum_count, uint32_t len, const SKY_CodeChunk_t sources[], uint8_t source_count,
                   const uint8_t weights[])
{
    const SKY_CodeKernel_t *kernel = Kernel();
    uint8_t                 active[SKY_CODE_CHUNKS_MAX];
    SKY_CodeWork_t          work = {.sums         = sums,
                                    .sources      = sources,
                                    .weights      = weights,
                                    .active       = active,
                                    .sum_count    = sum_count,
                                    .source_count = source_count};

    SKY_ASSERT(len == 0u || sum_count == 0u || sums != NULL);
    SKY_ASSERT(source_count == 0u || sources != NULL);
    SKY_ASSERT(source_count == 0u || weights != NULL);

    for (uint32_t at = 0; at < len;)
    {
        uint32_t to = len; /* up to the end of the next source that ends */

        work.active_count = 0;
        for (uint32_t j = 0; j < source_count; ++j)
        {
            if (sources[j].len > at)
            {
                active[work.active_count++] = (uint8_t)j;
                to                          = sources[j].len < to ? sources[j].len : to;
            }
        }
        SKY_ASSERT(to > at);
        SKY_ASSERT(to <= len);
        SKY_ASSERT(work.active_count <= source_count);
        while (at < to)
        {
            const uint32_t end = to - at < 2u * BLOCK_BYTES ? to : at + BLOCK_BYTES; /* no short block is left over */

            kernel->sums(&work, at, end);
            at = end;
        }
    }
}
