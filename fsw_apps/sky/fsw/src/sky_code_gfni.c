/**
 * @file
 * Sums of the erasure code with GFNI: an instruction multiplies each byte, as eight bits, with a matrix of bits. The instruction
 * that multiplies in GF(256) itself does so modulo another polynomial.
 */
#include "sky_code_accel.h"

#if defined(SKY_CODE_X86)

#include <immintrin.h>

#define VEC_TARGET __attribute__((target("avx2,gfni")))
#define VEC_BYTES  32u

typedef __m256i Vec_t;
typedef __m256i VecWeight_t;

#define VEC_LOAD(bytes)      _mm256_loadu_si256((const __m256i *)(const void *)(bytes))
#define VEC_STORE(bytes, v)  _mm256_storeu_si256((__m256i *)(void *)(bytes), (v))
#define VEC_XOR(a, b)        _mm256_xor_si256((a), (b))
#define VEC_ZERO()           _mm256_setzero_si256()
#define VEC_WEIGHT(weight)   _mm256_set1_epi64x((long long)code_matrices[weight])
#define VEC_TIMES(weight, v) _mm256_gf2p8affine_epi64_epi8((v), (weight), 0)

/* The matrix of a weight is the XOR of the matrices of its bits. Its row for bit i of the product is byte 7 - i. */
#define BIT(byte, bit, value) ((((byte) >> (bit)) & 1u) != 0u ? UINT64_C(value) : UINT64_C(0))
#define MATRIX(w)                                                                                    \
    (BIT(w, 0, 0x0102040810204080) ^ BIT(w, 1, 0x8001828488102040) ^ BIT(w, 2, 0x408041C2C4881020) ^ \
     BIT(w, 3, 0x2040A061E2C48810) ^ BIT(w, 4, 0x102050B071E2C488) ^ BIT(w, 5, 0x8810A8D83871E2C4) ^ \
     BIT(w, 6, 0xC488D46C1C3871E2) ^ BIT(w, 7, 0xE2C46A368E1C3871))
#define MATRICES4(w)  MATRIX(w), MATRIX((w) + 1u), MATRIX((w) + 2u), MATRIX((w) + 3u)
#define MATRICES16(w) MATRICES4(w), MATRICES4((w) + 4u), MATRICES4((w) + 8u), MATRICES4((w) + 12u)
#define MATRICES64(w) MATRICES16(w), MATRICES16((w) + 16u), MATRICES16((w) + 32u), MATRICES16((w) + 48u)

static const uint64_t code_matrices[256] = {MATRICES64(0u), MATRICES64(64u), MATRICES64(128u), MATRICES64(192u)};

#include "sky_code_vector.h"

const SKY_CodeKernel_t SKY_CodeGfni_Kernel = {"gfni", Vec_Add, Vec_Sums};

#endif
