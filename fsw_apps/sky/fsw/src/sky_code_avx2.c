/**
 * @file
 * Sums of the erasure code with AVX2: a shuffle looks up the products of 32 nibbles, sixteen in each half.
 */
#include "sky_code_accel.h"

#if defined(SKY_CODE_X86)

#include <immintrin.h>

#define VEC_TARGET __attribute__((target("avx2")))
#define VEC_BYTES  32u

typedef __m256i Vec_t;

typedef struct
{
    Vec_t low;  /* products with the low nibbles, in both halves */
    Vec_t high; /* products with the high nibbles, in both halves */
} VecWeight_t;

#define VEC_LOAD(bytes)     _mm256_loadu_si256((const __m256i *)(const void *)(bytes))
#define VEC_STORE(bytes, v) _mm256_storeu_si256((__m256i *)(void *)(bytes), (v))
#define VEC_XOR(a, b)       _mm256_xor_si256((a), (b))
#define VEC_ZERO()          _mm256_setzero_si256()
#define VEC_TWICE(bytes)    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(bytes)))
#define VEC_WEIGHT(weight) \
    ((VecWeight_t){VEC_TWICE(SKY_Code_Products[weight]), VEC_TWICE(SKY_Code_Products[weight] + SKY_CODE_NIBBLES)})
#define VEC_NIBBLES(v) _mm256_and_si256((v), _mm256_set1_epi8(0x0F))
#define VEC_TIMES(weight, v)                                   \
    VEC_XOR(_mm256_shuffle_epi8((weight).low, VEC_NIBBLES(v)), \
            _mm256_shuffle_epi8((weight).high, VEC_NIBBLES(_mm256_srli_epi64((v), 4))))

#include "sky_code_vector.h"

const SKY_CodeKernel_t SKY_CodeAvx2_Kernel = {"avx2", Vec_Add, Vec_Sums};

#endif
