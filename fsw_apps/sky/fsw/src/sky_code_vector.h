/**
 * @file
 * Private to the files of one instruction set each (sky_code_avx2.c and others), which define the operations VEC_* on a vector, and
 * then include this: sums by vectors. The operations are macros, so that any instruction set that runs covers the lines here.
 *
 *     VEC_TARGET            attribute of all functions
 *     Vec_t, VEC_BYTES      a vector, and its bytes
 *     VecWeight_t           a weight, ready to multiply vectors: VEC_WEIGHT(weight)
 *     VEC_TIMES(weight, v)  each byte times the weight
 *     VEC_LOAD, VEC_STORE, VEC_XOR, VEC_ZERO
 */
#ifndef SKY_CODE_VECTOR_H
#define SKY_CODE_VECTOR_H

#include <stddef.h>

#include "sky_assert.h"
#include "sky_code_table.h"

#define FEW         2u /* sums at a time, with strips of WIDE vectors of each source */
#define MANY        4u /* sums at a time, with strips of NARROW vectors: the processor has registers for as many products */
#define WIDE        4u
#define NARROW      2u
#define REGISTERS   (FEW * WIDE)
#define STRIP_BYTES (WIDE * VEC_BYTES)

/* A function whose counts are constants where it is called: the loops over them vanish, and the arrays become registers. */
#define VEC_INLINE VEC_TARGET __attribute__((always_inline)) static inline

VEC_TARGET static void Vec_Add(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight)
{
    const VecWeight_t times = VEC_WEIGHT(weight);
    uint32_t          at    = 0;

    for (; len - at >= VEC_BYTES; at += VEC_BYTES)
    {
        VEC_STORE(sum + at, VEC_XOR(VEC_LOAD(sum + at), VEC_TIMES(times, VEC_LOAD(chunk + at))));
    }
    SKY_ASSERT(at <= len);
    SKY_ASSERT(len - at < VEC_BYTES);
    SKY_CodeTable_Add(sum + at, chunk + at, len - at, weight);
}

/* Set bytes of a few sums, from the first one on, strip by strip. The last strip begins before the end of the one before. */
VEC_INLINE void Vec_Strips(const SKY_CodeWork_t *work, uint32_t first, uint32_t count, uint32_t width, uint32_t from, uint32_t to)
{
    const uint8_t *weights = work->weights + (size_t)first * work->source_count;
    const uint32_t strip   = width * VEC_BYTES;
    SKY_ASSERT(first + count <= work->sum_count);
    SKY_ASSERT(count * width <= REGISTERS);
    SKY_ASSERT(to - from >= strip);

    for (uint32_t next = from; next < to; next += strip)
    {
        const uint32_t at = to - next < strip ? to - strip : next;
        Vec_t          sums[REGISTERS];

        for (uint32_t r = 0; r < count * width; ++r)
        {
            sums[r] = VEC_ZERO();
        }
        for (uint32_t i = 0; i < work->active_count; ++i)
        {
            const uint32_t source = work->active[i];
            const uint8_t *bytes  = work->sources[source].bytes + at;
            Vec_t          chunk[WIDE];

            for (uint32_t v = 0; v < width; ++v)
            {
                chunk[v] = VEC_LOAD(bytes + (size_t)v * VEC_BYTES);
            }
            for (uint32_t s = 0; s < count; ++s)
            {
                const VecWeight_t times = VEC_WEIGHT(weights[(size_t)s * work->source_count + source]);

                for (uint32_t v = 0; v < width; ++v)
                {
                    sums[s * width + v] = VEC_XOR(sums[s * width + v], VEC_TIMES(times, chunk[v]));
                }
            }
        }
        for (uint32_t s = 0; s < count; ++s)
        {
            for (uint32_t v = 0; v < width; ++v)
            {
                VEC_STORE(work->sums[first + s] + at + (size_t)v * VEC_BYTES, sums[s * width + v]);
            }
        }
    }
}

VEC_TARGET static void Vec_Sums(const SKY_CodeWork_t *work, uint32_t from, uint32_t to)
{
    const uint32_t count = work->sum_count;
    uint32_t       done  = 0;
    SKY_ASSERT(from < to);
    SKY_ASSERT(work->active_count <= work->source_count);

    if (to - from < STRIP_BYTES)
    {
        SKY_CodeTable_Sums(work, from, to);
        return;
    }
    for (; count - done >= MANY; done += MANY)
    {
        Vec_Strips(work, done, MANY, NARROW, from, to);
    }
    if (count - done >= FEW)
    {
        Vec_Strips(work, done, FEW, WIDE, from, to);
        done += FEW;
    }
    if (count - done >= 1u)
    {
        Vec_Strips(work, done, 1u, WIDE, from, to);
        ++done;
    }
    SKY_ASSERT(done == count);
}

#endif
