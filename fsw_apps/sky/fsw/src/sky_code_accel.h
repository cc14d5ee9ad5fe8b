/**
 * @file
 * Private to sky_code*.c: what the files of one processor family offer to the dispatch in sky_code.c.
 */
#ifndef SKY_CODE_ACCEL_H
#define SKY_CODE_ACCEL_H

#include "sky_code_table.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define SKY_CODE_X86
extern const SKY_CodeKernel_t SKY_CodeSsse3_Kernel;
extern const SKY_CodeKernel_t SKY_CodeAvx2_Kernel;
extern const SKY_CodeKernel_t SKY_CodeGfni_Kernel;
#elif defined(__GNUC__) && defined(__aarch64__)
#define SKY_CODE_ARM
#endif

#if defined(SKY_CODE_X86) || defined(SKY_CODE_ARM)

/** Number of the family's implementations that the processor can run: the first ones. Each is faster than the one before. */
uint32_t                SKY_CodeAccel_Count(void);
const SKY_CodeKernel_t *SKY_CodeAccel_Kernel(uint32_t which);

#else

/* This family has no file: the dispatch finds nothing better than the tables. */
#define SKY_CodeAccel_Count()       0u
#define SKY_CodeAccel_Kernel(which) (&SKY_CodeTable_Kernel)

#endif

#endif
