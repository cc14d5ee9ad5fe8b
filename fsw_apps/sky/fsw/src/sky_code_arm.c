/**
 * @file
 * Sums of the erasure code with NEON, which every aarch64 has: a lookup in a table of sixteen bytes for sixteen nibbles.
 */
#include "sky_code_accel.h"

#if defined(SKY_CODE_ARM)

#include <arm_neon.h>

#define VEC_TARGET
#define VEC_BYTES 16u

typedef uint8x16_t Vec_t;

typedef struct
{
    Vec_t low;  /* products with the low nibbles */
    Vec_t high; /* products with the high nibbles */
} VecWeight_t;

#define VEC_LOAD(bytes)     vld1q_u8(bytes)
#define VEC_STORE(bytes, v) vst1q_u8((bytes), (v))
#define VEC_XOR(a, b)       veorq_u8((a), (b))
#define VEC_ZERO()          vdupq_n_u8(0)
#define VEC_WEIGHT(weight) \
    ((VecWeight_t){VEC_LOAD(SKY_Code_Products[weight]), VEC_LOAD(SKY_Code_Products[weight] + SKY_CODE_NIBBLES)})
#define VEC_TIMES(weight, v) \
    VEC_XOR(vqtbl1q_u8((weight).low, vandq_u8((v), vdupq_n_u8(0x0F))), vqtbl1q_u8((weight).high, vshrq_n_u8((v), 4)))

#include "sky_code_vector.h"

static const SKY_CodeKernel_t neon_kernel = {"neon", Vec_Add, Vec_Sums};

uint32_t SKY_CodeAccel_Count(void)
{
    return 1;
}

const SKY_CodeKernel_t *SKY_CodeAccel_Kernel(uint32_t which)
{
    SKY_ASSERT(which == 0u);
    (void)which;

    return &neon_kernel;
}

#endif
