/**
 * @file
 * Private to sky_code*.c: products in GF(256) by tables, and what each implementation of the sums offers. The fast code uses the
 * portable one for what is left over.
 */
#ifndef SKY_CODE_TABLE_H
#define SKY_CODE_TABLE_H

#include "sky_code.h"

#define SKY_CODE_NIBBLES 16u

/** A part of many sums: the same bytes of each. */
typedef struct
{
    uint8_t *const        *sums;
    const SKY_CodeChunk_t *sources;
    const uint8_t         *weights; /**< that of source j in sum s at s * source_count + j */
    const uint8_t         *active;  /**< sources that have these bytes */
    uint32_t               active_count;
    uint8_t                sum_count;
    uint8_t                source_count;
} SKY_CodeWork_t;

/** An implementation. */
typedef struct
{
    const char *name;
    void (*add)(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight);
    /** Set bytes from .. to - 1 of each sum. */
    void (*sums)(const SKY_CodeWork_t *work, uint32_t from, uint32_t to);
} SKY_CodeKernel_t;

/** Products of each weight: with 0x00 .. 0x0F, then with 0x00, 0x10 .. 0xF0. The product with a byte is the XOR of two of them. */
extern const uint8_t SKY_Code_Products[256][2u * SKY_CODE_NIBBLES];

extern const SKY_CodeKernel_t SKY_CodeTable_Kernel;

void SKY_CodeTable_Add(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight);
void SKY_CodeTable_Sums(const SKY_CodeWork_t *work, uint32_t from, uint32_t to);

#endif
