/**
 * @file
 * Sums of the erasure code with SSSE3: a shuffle looks up the products of sixteen nibbles.
 */
#include "sky_code_accel.h"

#if defined(SKY_CODE_X86)

#include <immintrin.h>

#define VEC_TARGET __attribute__((target("ssse3")))
#define VEC_BYTES  16u

typedef __m128i Vec_t;

typedef struct
{
    Vec_t low;  /* products with the low nibbles */
    Vec_t high; /* products with the high nibbles */
} VecWeight_t;

#define VEC_LOAD(bytes)     _mm_loadu_si128((const __m128i *)(const void *)(bytes))
#define VEC_STORE(bytes, v) _mm_storeu_si128((__m128i *)(void *)(bytes), (v))
#define VEC_XOR(a, b)       _mm_xor_si128((a), (b))
#define VEC_ZERO()          _mm_setzero_si128()
#define VEC_WEIGHT(weight) \
    ((VecWeight_t){VEC_LOAD(SKY_Code_Products[weight]), VEC_LOAD(SKY_Code_Products[weight] + SKY_CODE_NIBBLES)})
#define VEC_NIBBLES(v) _mm_and_si128((v), _mm_set1_epi8(0x0F))
#define VEC_TIMES(weight, v) \
    VEC_XOR(_mm_shuffle_epi8((weight).low, VEC_NIBBLES(v)), _mm_shuffle_epi8((weight).high, VEC_NIBBLES(_mm_srli_epi64((v), 4))))

#include "sky_code_vector.h"

const SKY_CodeKernel_t SKY_CodeSsse3_Kernel = {"ssse3", Vec_Add, Vec_Sums};

#endif
