/**
 * @file
 * CRCs with the instructions of x86-64: carry-less multiplication, and CRC32 of SSE 4.2. The functions carry their target
 * themselves, so the object file runs on any x86-64; sky_crc.c calls them only where the processor has them.
 */
#include "sky_crc_accel.h"

#if defined(__GNUC__) && defined(__x86_64__)

#include <immintrin.h>

#define SKY_FOLD_TARGET __attribute__((target("pclmul,sse4.2")))

typedef __m128i SKY_FoldVec_t;

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Load(const uint8_t *data)
{
    return _mm_loadu_si128((const __m128i *)(const void *)data);
}

SKY_FOLD_TARGET static inline void Fold_Store(uint8_t *out, SKY_FoldVec_t v)
{
    _mm_storeu_si128((__m128i *)(void *)out, v);
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Make(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((long long)high, (long long)low);
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Xor(SKY_FoldVec_t a, SKY_FoldVec_t b)
{
    return _mm_xor_si128(a, b);
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_SwapBytes(SKY_FoldVec_t v)
{
    return _mm_shuffle_epi8(v, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/* low half * low half XOR high half * high half */
SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Multiply(SKY_FoldVec_t v, SKY_FoldVec_t k)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11));
}

SKY_FOLD_TARGET static inline uint32_t Fold_Crc32c64(uint32_t crc, uint64_t word)
{
    return (uint32_t)_mm_crc32_u64(crc, word);
}

#include "sky_crc_fold.h"

int SKY_CrcAccel_Available(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("pclmul") != 0) & (__builtin_cpu_supports("sse4.2") != 0);
}

const char *SKY_CrcAccel_Name(void)
{
    return "pclmul+sse4.2";
}

#endif
