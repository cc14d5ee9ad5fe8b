/**
 * @file
 * The erasure code's speed beside that of ISA-L: parity of a value's rows, and two lost chunks a row from the others.
 *
 *     build/tests/fsw_apps/sky_bench_isal
 *
 * Both libraries take turns in one process, on the same memory. What is printed is the median of their rounds, and the ratio.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <isa-l/erasure_code.h>

#include "code_rig.h"
#include "sky_code.h"

#define CHUNK_BYTES 6000u
#define VALUE_BYTES 2900000u
#define ROUNDS      301u
#define LOST        2u

static uint8_t *chunks[VALUE_BYTES / CHUNK_BYTES * 3u + SKY_CODE_CHUNKS_MAX]; /* of all rows, one after another */
static uint8_t *mended[SKY_CODE_CHUNKS_MAX];                                  /* of one row */

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double left  = *(const double *)a;
    const double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* A job: sums of some chunks of each row into others. */
typedef struct
{
    SKY_CodeRow_t row;
    uint32_t      rows;
    bool          is_decode;
    uint8_t       have[SKY_CODE_CHUNKS_MAX];
    uint8_t       wanted[SKY_CODE_CHUNKS_MAX];
    uint8_t       wanted_count;
} Job_t;

static uint8_t *target(const Job_t *job, uint32_t row, uint32_t i)
{
    return job->is_decode ? mended[i] : chunks[row * (job->row.k + job->row.m) + job->wanted[i]];
}

static double run_ours(const Job_t *job)
{
    static uint8_t weights[SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];
    const double   began_us = now_us();

    for (uint32_t i = 0; i < job->wanted_count; ++i)
    {
        CHECK(SKY_Code_Weights(job->row, job->wanted[i], job->have, weights + i * job->row.k));
    }
    for (uint32_t r = 0; r < job->rows; ++r)
    {
        SKY_CodeChunk_t sources[SKY_CODE_CHUNKS_MAX];
        uint8_t        *sums[SKY_CODE_CHUNKS_MAX] = {NULL};

        for (uint32_t j = 0; j < job->row.k; ++j)
        {
            sources[j] = (SKY_CodeChunk_t){chunks[r * (job->row.k + job->row.m) + job->have[j]], CHUNK_BYTES};
        }
        for (uint32_t i = 0; i < job->wanted_count; ++i)
        {
            sums[i] = target(job, r, i);
        }
        SKY_Code_Sums(sums, job->wanted_count, CHUNK_BYTES, sources, job->row.k, weights);
    }
    return now_us() - began_us;
}

static double run_isal(const Job_t *job)
{
    static uint8_t matrix[SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];
    static uint8_t part[SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];
    static uint8_t inverse[SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];
    static uint8_t tables[32u * SKY_CODE_CHUNKS_MAX * SKY_CODE_CHUNKS_MAX];
    const int      k        = job->row.k;
    const double   began_us = now_us();

    gf_gen_cauchy1_matrix(matrix, k + job->row.m, k);
    if (job->is_decode)
    {
        for (int j = 0; j < k; ++j)
        {
            (void)memcpy(part + j * k, matrix + job->have[j] * k, (size_t)k);
        }
        CHECK_EQ(gf_invert_matrix(part, inverse, k), 0);
        for (uint32_t i = 0; i < job->wanted_count; ++i)
        {
            (void)memcpy(part + (int)i * k, inverse + job->wanted[i] * k, (size_t)k);
        }
        ec_init_tables(k, job->wanted_count, part, tables);
    }
    else
    {
        ec_init_tables(k, job->wanted_count, matrix + k * k, tables);
    }
    for (uint32_t r = 0; r < job->rows; ++r)
    {
        uint8_t *sources[SKY_CODE_CHUNKS_MAX] = {NULL};
        uint8_t *sums[SKY_CODE_CHUNKS_MAX]    = {NULL};

        for (int j = 0; j < k; ++j)
        {
            sources[j] = chunks[r * (job->row.k + job->row.m) + job->have[j]];
        }
        for (uint32_t i = 0; i < job->wanted_count; ++i)
        {
            sums[i] = target(job, r, i);
        }
        ec_encode_data((int)CHUNK_BYTES, k, job->wanted_count, tables, sources, sums);
    }
    return now_us() - began_us;
}

static void compare_job(const Job_t *job)
{
    static double ours_us[ROUNDS];
    static double isal_us[ROUNDS];

    for (uint32_t round = 0; round < ROUNDS; ++round)
    {
        isal_us[round] = run_isal(job);
        ours_us[round] = run_ours(job);
    }
    qsort(ours_us, ROUNDS, sizeof(double), compare);
    qsort(isal_us, ROUNDS, sizeof(double), compare);
    (void)printf("%3u + %3u %-6s %-6s %8.1f us, ISA-L %8.1f us, ratio %.2f\n", job->row.k, job->row.m,
                 job->is_decode ? "decode" : "encode", SKY_Code_Implementation(), ours_us[ROUNDS / 2u], isal_us[ROUNDS / 2u],
                 ours_us[ROUNDS / 2u] / isal_us[ROUNDS / 2u]);
}

static void compare_row(SKY_CodeRow_t row)
{
    Job_t job = {.row = row, .rows = VALUE_BYTES / CHUNK_BYTES / row.k, .wanted_count = row.m};

    for (uint32_t j = 0; j < row.k; ++j)
    {
        job.have[j] = (uint8_t)j;
    }
    for (uint32_t i = 0; i < row.m; ++i)
    {
        job.wanted[i] = (uint8_t)(row.k + i);
    }
    compare_job(&job);
    job.is_decode    = true;
    job.wanted_count = LOST; /* the first ones; two parity chunks stand for them */
    for (uint32_t i = 0; i < LOST; ++i)
    {
        job.wanted[i] = (uint8_t)i;
        job.have[i]   = (uint8_t)(row.k + i);
    }
    compare_job(&job);
}

int main(void)
{
    static const SKY_CodeRow_t rows[] = {{10, 2}, {16, 4}, {8, 8}, {7, 2}, {100, 20}};

    for (uint32_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); ++i)
    {
        chunks[i] = malloc(CHUNK_BYTES);
        rig_fill(chunks[i], CHUNK_BYTES, i);
    }
    for (uint32_t i = 0; i < LOST; ++i)
    {
        mended[i] = malloc(CHUNK_BYTES);
        rig_fill(mended[i], CHUNK_BYTES, i);
    }
    for (uint32_t which = SKY_Code_Implementations(); which-- > 0u;)
    {
        SKY_Code_Use(which);
        for (uint32_t r = 0; r < sizeof(rows) / sizeof(rows[0]); ++r)
        {
            compare_row(rows[r]);
        }
    }
    return CHECK_RESULT();
}
