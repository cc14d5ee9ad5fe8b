/**
 * @file
 * The implementations of the erasure code's sums for x86-64. Their functions carry their targets themselves, so the program runs on
 * any x86-64; sky_code.c calls them only where the processor has the instructions.
 */
#include "sky_code_accel.h"

#if defined(SKY_CODE_X86)

#include "sky_assert.h"

uint32_t SKY_CodeAccel_Count(void)
{
    __builtin_cpu_init();

    /* each needs what the one before needs, so that those that run are the first ones */
    const uint32_t ssse3 = __builtin_cpu_supports("ssse3") != 0;
    const uint32_t avx2  = ssse3 & (uint32_t)(__builtin_cpu_supports("avx2") != 0);
    const uint32_t gfni  = avx2 & (uint32_t)(__builtin_cpu_supports("gfni") != 0);

    return ssse3 + avx2 + gfni;
}

const SKY_CodeKernel_t *SKY_CodeAccel_Kernel(uint32_t which)
{
    static const SKY_CodeKernel_t *const kernels[] = {&SKY_CodeSsse3_Kernel, &SKY_CodeAvx2_Kernel, &SKY_CodeGfni_Kernel};
    SKY_ASSERT(which < sizeof(kernels) / sizeof(kernels[0]));

    return kernels[which];
}

#endif
