/**
 * @file
 * Sums of the erasure code by tables, on any processor.
 */
#include "sky_code_table.h"

#include <string.h>

#include "sky_assert.h"

/*
 * A product is linear in the weight: it is the XOR of the products of the weight's bits. So eight constants make the products of
 * one nibble with all 256 weights, here at compile time.
 */
#define BIT(byte, bit, value) ((((byte) >> (bit)) & 1u) != 0u ? (value) : 0u)
#define ENTRY(byte, b0, b1, b2, b3, b4, b5, b6, b7)                                                                    \
    (BIT(byte, 0, b0) ^ BIT(byte, 1, b1) ^ BIT(byte, 2, b2) ^ BIT(byte, 3, b3) ^ BIT(byte, 4, b4) ^ BIT(byte, 5, b5) ^ \
     BIT(byte, 6, b6) ^ BIT(byte, 7, b7))

#define PRODUCTS(w)                                                           \
    {                                                                         \
        ENTRY(w, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u),     \
            ENTRY(w, 0x01u, 0x02u, 0x04u, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u), \
            ENTRY(w, 0x02u, 0x04u, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u, 0x1Du), \
            ENTRY(w, 0x03u, 0x06u, 0x0Cu, 0x18u, 0x30u, 0x60u, 0xC0u, 0x9Du), \
            ENTRY(w, 0x04u, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au), \
            ENTRY(w, 0x05u, 0x0Au, 0x14u, 0x28u, 0x50u, 0xA0u, 0x5Du, 0xBAu), \
            ENTRY(w, 0x06u, 0x0Cu, 0x18u, 0x30u, 0x60u, 0xC0u, 0x9Du, 0x27u), \
            ENTRY(w, 0x07u, 0x0Eu, 0x1Cu, 0x38u, 0x70u, 0xE0u, 0xDDu, 0xA7u), \
            ENTRY(w, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u), \
            ENTRY(w, 0x09u, 0x12u, 0x24u, 0x48u, 0x90u, 0x3Du, 0x7Au, 0xF4u), \
            ENTRY(w, 0x0Au, 0x14u, 0x28u, 0x50u, 0xA0u, 0x5Du, 0xBAu, 0x69u), \
            ENTRY(w, 0x0Bu, 0x16u, 0x2Cu, 0x58u, 0xB0u, 0x7Du, 0xFAu, 0xE9u), \
            ENTRY(w, 0x0Cu, 0x18u, 0x30u, 0x60u, 0xC0u, 0x9Du, 0x27u, 0x4Eu), \
            ENTRY(w, 0x0Du, 0x1Au, 0x34u, 0x68u, 0xD0u, 0xBDu, 0x67u, 0xCEu), \
            ENTRY(w, 0x0Eu, 0x1Cu, 0x38u, 0x70u, 0xE0u, 0xDDu, 0xA7u, 0x53u), \
            ENTRY(w, 0x0Fu, 0x1Eu, 0x3Cu, 0x78u, 0xF0u, 0xFDu, 0xE7u, 0xD3u), \
            ENTRY(w, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u), \
            ENTRY(w, 0x10u, 0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u), \
            ENTRY(w, 0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu), \
            ENTRY(w, 0x30u, 0x60u, 0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u), \
            ENTRY(w, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu, 0x87u), \
            ENTRY(w, 0x50u, 0xA0u, 0x5Du, 0xBAu, 0x69u, 0xD2u, 0xB9u, 0x6Fu), \
            ENTRY(w, 0x60u, 0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u, 0x4Au), \
            ENTRY(w, 0x70u, 0xE0u, 0xDDu, 0xA7u, 0x53u, 0xA6u, 0x51u, 0xA2u), \
            ENTRY(w, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu, 0x87u, 0x13u), \
            ENTRY(w, 0x90u, 0x3Du, 0x7Au, 0xF4u, 0xF5u, 0xF7u, 0xF3u, 0xFBu), \
            ENTRY(w, 0xA0u, 0x5Du, 0xBAu, 0x69u, 0xD2u, 0xB9u, 0x6Fu, 0xDEu), \
            ENTRY(w, 0xB0u, 0x7Du, 0xFAu, 0xE9u, 0xCFu, 0x83u, 0x1Bu, 0x36u), \
            ENTRY(w, 0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u, 0x4Au, 0x94u), \
            ENTRY(w, 0xD0u, 0xBDu, 0x67u, 0xCEu, 0x81u, 0x1Fu, 0x3Eu, 0x7Cu), \
            ENTRY(w, 0xE0u, 0xDDu, 0xA7u, 0x53u, 0xA6u, 0x51u, 0xA2u, 0x59u), \
            ENTRY(w, 0xF0u, 0xFDu, 0xE7u, 0xD3u, 0xBBu, 0x6Bu, 0xD6u, 0xB1u)  \
    }
#define PRODUCTS4(w)  PRODUCTS(w), PRODUCTS((w) + 1u), PRODUCTS((w) + 2u), PRODUCTS((w) + 3u)
#define PRODUCTS16(w) PRODUCTS4(w), PRODUCTS4((w) + 4u), PRODUCTS4((w) + 8u), PRODUCTS4((w) + 12u)
#define PRODUCTS64(w) PRODUCTS16(w), PRODUCTS16((w) + 16u), PRODUCTS16((w) + 32u), PRODUCTS16((w) + 48u)

const uint8_t SKY_Code_Products[256][2u * SKY_CODE_NIBBLES] = {PRODUCTS64(0u), PRODUCTS64(64u), PRODUCTS64(128u),
                                                               PRODUCTS64(192u)};

const SKY_CodeKernel_t SKY_CodeTable_Kernel = {"table", SKY_CodeTable_Add, SKY_CodeTable_Sums};

void SKY_CodeTable_Add(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight)
{
    const uint8_t *low  = SKY_Code_Products[weight];
    const uint8_t *high = low + SKY_CODE_NIBBLES;
    SKY_ASSERT(low[1] == weight);

    for (uint32_t i = 0; i < len; ++i)
    {
        sum[i] = (uint8_t)(sum[i] ^ low[chunk[i] & 0x0Fu] ^ high[chunk[i] >> 4]);
    }
}

void SKY_CodeTable_Sums(const SKY_CodeWork_t *work, uint32_t from, uint32_t to)
{
    SKY_ASSERT(from < to);
    SKY_ASSERT(work->active_count <= work->source_count);

    for (uint32_t s = 0; s < work->sum_count; ++s)
    {
        const uint8_t *weights = work->weights + (size_t)s * work->source_count;
        uint8_t       *sum     = work->sums[s] + from;

        (void)memset(sum, 0, to - from);
        for (uint32_t i = 0; i < work->active_count; ++i)
        {
            const uint32_t source = work->active[i];
            SKY_ASSERT(source < work->source_count);
            SKY_ASSERT(work->sources[source].len >= to);

            SKY_CodeTable_Add(sum, work->sources[source].bytes + from, to - from, weights[source]);
        }
    }
}
