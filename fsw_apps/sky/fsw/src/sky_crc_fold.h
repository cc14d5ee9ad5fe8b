/**
 * @file
 * Private to sky_crc_x86.c and sky_crc_arm.c, which define the vector operations Fold_* and then include this: CRCs by folding.
 *
 * 128 bits of the message, seen as a polynomial, may be replaced by any polynomial that is congruent modulo the CRC's: high
 * half * (x^(64 + d) mod P) + low half * (x^d mod P) stands for the 128 bits d bits further on. Four such registers run
 * abreast (d = 512), then they are folded into one (d = 128); its 16 bytes have the CRC of all that was folded.
 * (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.)
 */
#ifndef SKY_CRC_FOLD_H
#define SKY_CRC_FOLD_H

#include <string.h>

#include "sky_crc_table.h"

#define FOLD_BYTES   ((size_t)16)
#define STRIDE_BYTES (4u * FOLD_BYTES) /* four registers run abreast */

/* CRC-16: bytes are swapped at load, so the low half is the low half of the polynomial: x^d, x^(64 + d). */
#define CRC16_K512_LOW  UINT64_C(0x13FC)
#define CRC16_K512_HIGH UINT64_C(0x8832)
#define CRC16_K128_LOW  UINT64_C(0xAEFC)
#define CRC16_K128_HIGH UINT64_C(0x650B)

/* CRC-32C is reflected, so the low half is the high half of the polynomial, and a product comes out one bit short: x^(64 + d -
 * 1), x^(d - 1), reflected in 64 bits. */
#define CRC32C_K512_LOW  UINT64_C(0x1C19243B00000000)
#define CRC32C_K512_HIGH UINT64_C(0x75BBA45B00000000)
#define CRC32C_K128_LOW  UINT64_C(0x3743F7BD00000000)
#define CRC32C_K128_HIGH UINT64_C(0x3171D43000000000)

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Step(SKY_FoldVec_t v, SKY_FoldVec_t k, SKY_FoldVec_t next)
{
    return Fold_Xor(Fold_Multiply(v, k), next);
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_LoadSwapped(const uint8_t *data)
{
    return Fold_SwapBytes(Fold_Load(data));
}

SKY_FOLD_TARGET uint16_t SKY_CrcAccel_16(uint16_t crc, const uint8_t *data, size_t len)
{
    if (len >= STRIDE_BYTES)
    {
        const SKY_FoldVec_t k512 = Fold_Make(CRC16_K512_LOW, CRC16_K512_HIGH);
        const SKY_FoldVec_t k128 = Fold_Make(CRC16_K128_LOW, CRC16_K128_HIGH);
        SKY_FoldVec_t       a    = Fold_Xor(Fold_LoadSwapped(data), Fold_Make(0, (uint64_t)crc << 48));
        SKY_FoldVec_t       b    = Fold_LoadSwapped(data + FOLD_BYTES);
        SKY_FoldVec_t       c    = Fold_LoadSwapped(data + 2u * FOLD_BYTES);
        SKY_FoldVec_t       d    = Fold_LoadSwapped(data + 3u * FOLD_BYTES);
        uint8_t             rest[FOLD_BYTES];

        for (data += STRIDE_BYTES, len -= STRIDE_BYTES; len >= STRIDE_BYTES; data += STRIDE_BYTES, len -= STRIDE_BYTES)
        {
            a = Fold_Step(a, k512, Fold_LoadSwapped(data));
            b = Fold_Step(b, k512, Fold_LoadSwapped(data + FOLD_BYTES));
            c = Fold_Step(c, k512, Fold_LoadSwapped(data + 2u * FOLD_BYTES));
            d = Fold_Step(d, k512, Fold_LoadSwapped(data + 3u * FOLD_BYTES));
        }
        a = Fold_Step(Fold_Step(Fold_Step(a, k128, b), k128, c), k128, d);
        for (; len >= FOLD_BYTES; data += FOLD_BYTES, len -= FOLD_BYTES)
        {
            a = Fold_Step(a, k128, Fold_LoadSwapped(data));
        }
        Fold_Store(rest, Fold_SwapBytes(a));
        crc = SKY_Crc16_Table(0, rest, sizeof(rest));
    }
    return SKY_Crc16_Table(crc, data, len);
}

SKY_FOLD_TARGET uint32_t SKY_CrcAccel_32c(uint32_t crc, const uint8_t *data, size_t len)
{
    if (len >= STRIDE_BYTES)
    {
        const SKY_FoldVec_t k512 = Fold_Make(CRC32C_K512_LOW, CRC32C_K512_HIGH);
        const SKY_FoldVec_t k128 = Fold_Make(CRC32C_K128_LOW, CRC32C_K128_HIGH);
        SKY_FoldVec_t       a    = Fold_Xor(Fold_Load(data), Fold_Make(crc, 0));
        SKY_FoldVec_t       b    = Fold_Load(data + FOLD_BYTES);
        SKY_FoldVec_t       c    = Fold_Load(data + 2u * FOLD_BYTES);
        SKY_FoldVec_t       d    = Fold_Load(data + 3u * FOLD_BYTES);
        uint64_t            rest[2];

        for (data += STRIDE_BYTES, len -= STRIDE_BYTES; len >= STRIDE_BYTES; data += STRIDE_BYTES, len -= STRIDE_BYTES)
        {
            a = Fold_Step(a, k512, Fold_Load(data));
            b = Fold_Step(b, k512, Fold_Load(data + FOLD_BYTES));
            c = Fold_Step(c, k512, Fold_Load(data + 2u * FOLD_BYTES));
            d = Fold_Step(d, k512, Fold_Load(data + 3u * FOLD_BYTES));
        }
        a = Fold_Step(Fold_Step(Fold_Step(a, k128, b), k128, c), k128, d);
        for (; len >= FOLD_BYTES; data += FOLD_BYTES, len -= FOLD_BYTES)
        {
            a = Fold_Step(a, k128, Fold_Load(data));
        }
        Fold_Store((uint8_t *)rest, a);
        crc = Fold_Crc32c64(Fold_Crc32c64(0, rest[0]), rest[1]);
    }
    for (; len >= sizeof(uint64_t); data += sizeof(uint64_t), len -= sizeof(uint64_t))
    {
        uint64_t word;

        (void)memcpy(&word, data, sizeof(word));
        crc = Fold_Crc32c64(crc, word);
    }
    return SKY_Crc32c_Table(crc, data, len);
}

#endif
