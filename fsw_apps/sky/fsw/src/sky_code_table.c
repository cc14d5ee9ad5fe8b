/**
 * @file
 * Sums of the erasure code by tables, on any processor.
 */
#include "sky_code_table.h"

#include <string.h>

#include "sky_assert.h"

/*
 * Products are linear in both factors. So those of a weight with all nibbles are sums of its products with eight bits, and these are
 * sums of the products of the weight's own nibbles. The compiler does the sums: there is no table that is written while the
 * program runs.
 */
#define SUMS(a, b, c, d)                                                                                                        \
    0u, (a), (b), (b) ^ (a), (c), (c) ^ (a), (c) ^ (b), (c) ^ (b) ^ (a), (d), (d) ^ (a), (d) ^ (b), (d) ^ (b) ^ (a), (d) ^ (c), \
        (d) ^ (c) ^ (a), (d) ^ (c) ^ (b), (d) ^ (c) ^ (b) ^ (a)
/* The products of a weight, from those with x^0 .. x^7. */
#define PRODUCTS(w0, w1, w2, w3, w4, w5, w6, w7)   \
    {                                              \
        SUMS(w0, w1, w2, w3), SUMS(w4, w5, w6, w7) \
    }
/* Those of the sixteen weights with the same high nibble, from its products with x^0 .. x^7. */
#define PRODUCTS16(h0, h1, h2, h3, h4, h5, h6, h7)                                                                            \
    PRODUCTS((h0) ^ 0x00u, (h1) ^ 0x00u, (h2) ^ 0x00u, (h3) ^ 0x00u, (h4) ^ 0x00u, (h5) ^ 0x00u, (h6) ^ 0x00u, (h7) ^ 0x00u), \
        PRODUCTS((h0) ^ 0x01u, (h1) ^ 0x02u, (h2) ^ 0x04u, (h3) ^ 0x08u, (h4) ^ 0x10u, (h5) ^ 0x20u, (h6) ^ 0x40u,            \
                 (h7) ^ 0x80u),                                                                                               \
        PRODUCTS((h0) ^ 0x02u, (h1) ^ 0x04u, (h2) ^ 0x08u, (h3) ^ 0x10u, (h4) ^ 0x20u, (h5) ^ 0x40u, (h6) ^ 0x80u,            \
                 (h7) ^ 0x1Du),                                                                                               \
        PRODUCTS((h0) ^ 0x03u, (h1) ^ 0x06u, (h2) ^ 0x0Cu, (h3) ^ 0x18u, (h4) ^ 0x30u, (h5) ^ 0x60u, (h6) ^ 0xC0u,            \
                 (h7) ^ 0x9Du),                                                                                               \
        PRODUCTS((h0) ^ 0x04u, (h1) ^ 0x08u, (h2) ^ 0x10u, (h3) ^ 0x20u, (h4) ^ 0x40u, (h5) ^ 0x80u, (h6) ^ 0x1Du,            \
                 (h7) ^ 0x3Au),                                                                                               \
        PRODUCTS((h0) ^ 0x05u, (h1) ^ 0x0Au, (h2) ^ 0x14u, (h3) ^ 0x28u, (h4) ^ 0x50u, (h5) ^ 0xA0u, (h6) ^ 0x5Du,            \
                 (h7) ^ 0xBAu),                                                                                               \
        PRODUCTS((h0) ^ 0x06u, (h1) ^ 0x0Cu, (h2) ^ 0x18u, (h3) ^ 0x30u, (h4) ^ 0x60u, (h5) ^ 0xC0u, (h6) ^ 0x9Du,            \
                 (h7) ^ 0x27u),                                                                                               \
        PRODUCTS((h0) ^ 0x07u, (h1) ^ 0x0Eu, (h2) ^ 0x1Cu, (h3) ^ 0x38u, (h4) ^ 0x70u, (h5) ^ 0xE0u, (h6) ^ 0xDDu,            \
                 (h7) ^ 0xA7u),                                                                                               \
        PRODUCTS((h0) ^ 0x08u, (h1) ^ 0x10u, (h2) ^ 0x20u, (h3) ^ 0x40u, (h4) ^ 0x80u, (h5) ^ 0x1Du, (h6) ^ 0x3Au,            \
                 (h7) ^ 0x74u),                                                                                               \
        PRODUCTS((h0) ^ 0x09u, (h1) ^ 0x12u, (h2) ^ 0x24u, (h3) ^ 0x48u, (h4) ^ 0x90u, (h5) ^ 0x3Du, (h6) ^ 0x7Au,            \
                 (h7) ^ 0xF4u),                                                                                               \
        PRODUCTS((h0) ^ 0x0Au, (h1) ^ 0x14u, (h2) ^ 0x28u, (h3) ^ 0x50u, (h4) ^ 0xA0u, (h5) ^ 0x5Du, (h6) ^ 0xBAu,            \
                 (h7) ^ 0x69u),                                                                                               \
        PRODUCTS((h0) ^ 0x0Bu, (h1) ^ 0x16u, (h2) ^ 0x2Cu, (h3) ^ 0x58u, (h4) ^ 0xB0u, (h5) ^ 0x7Du, (h6) ^ 0xFAu,            \
                 (h7) ^ 0xE9u),                                                                                               \
        PRODUCTS((h0) ^ 0x0Cu, (h1) ^ 0x18u, (h2) ^ 0x30u, (h3) ^ 0x60u, (h4) ^ 0xC0u, (h5) ^ 0x9Du, (h6) ^ 0x27u,            \
                 (h7) ^ 0x4Eu),                                                                                               \
        PRODUCTS((h0) ^ 0x0Du, (h1) ^ 0x1Au, (h2) ^ 0x34u, (h3) ^ 0x68u, (h4) ^ 0xD0u, (h5) ^ 0xBDu, (h6) ^ 0x67u,            \
                 (h7) ^ 0xCEu),                                                                                               \
        PRODUCTS((h0) ^ 0x0Eu, (h1) ^ 0x1Cu, (h2) ^ 0x38u, (h3) ^ 0x70u, (h4) ^ 0xE0u, (h5) ^ 0xDDu, (h6) ^ 0xA7u,            \
                 (h7) ^ 0x53u),                                                                                               \
        PRODUCTS((h0) ^ 0x0Fu, (h1) ^ 0x1Eu, (h2) ^ 0x3Cu, (h3) ^ 0x78u, (h4) ^ 0xF0u, (h5) ^ 0xFDu, (h6) ^ 0xE7u, (h7) ^ 0xD3u)

const uint8_t SKY_Code_Products[256][2u * SKY_CODE_NIBBLES] = {
    PRODUCTS16(0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u, 0x00u),
    PRODUCTS16(0x10u, 0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u),
    PRODUCTS16(0x20u, 0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu),
    PRODUCTS16(0x30u, 0x60u, 0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u),
    PRODUCTS16(0x40u, 0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu, 0x87u),
    PRODUCTS16(0x50u, 0xA0u, 0x5Du, 0xBAu, 0x69u, 0xD2u, 0xB9u, 0x6Fu),
    PRODUCTS16(0x60u, 0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u, 0x4Au),
    PRODUCTS16(0x70u, 0xE0u, 0xDDu, 0xA7u, 0x53u, 0xA6u, 0x51u, 0xA2u),
    PRODUCTS16(0x80u, 0x1Du, 0x3Au, 0x74u, 0xE8u, 0xCDu, 0x87u, 0x13u),
    PRODUCTS16(0x90u, 0x3Du, 0x7Au, 0xF4u, 0xF5u, 0xF7u, 0xF3u, 0xFBu),
    PRODUCTS16(0xA0u, 0x5Du, 0xBAu, 0x69u, 0xD2u, 0xB9u, 0x6Fu, 0xDEu),
    PRODUCTS16(0xB0u, 0x7Du, 0xFAu, 0xE9u, 0xCFu, 0x83u, 0x1Bu, 0x36u),
    PRODUCTS16(0xC0u, 0x9Du, 0x27u, 0x4Eu, 0x9Cu, 0x25u, 0x4Au, 0x94u),
    PRODUCTS16(0xD0u, 0xBDu, 0x67u, 0xCEu, 0x81u, 0x1Fu, 0x3Eu, 0x7Cu),
    PRODUCTS16(0xE0u, 0xDDu, 0xA7u, 0x53u, 0xA6u, 0x51u, 0xA2u, 0x59u),
    PRODUCTS16(0xF0u, 0xFDu, 0xE7u, 0xD3u, 0xBBu, 0x6Bu, 0xD6u, 0xB1u),
};

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
