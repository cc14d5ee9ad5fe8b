/**
 * @file
 * What the tests of the erasure code compare with: arithmetic of GF(256) as its definition says, bit by bit, random bytes, and all
 * patterns of losses.
 */
#ifndef CODE_RIG_H
#define CODE_RIG_H

#include "sky_code.h"

#include "check.h"

static inline uint32_t rig_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33);
}

static inline void rig_fill(uint8_t *bytes, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; ++i)
    {
        bytes[i] = (uint8_t)(rig_random(&seed) & 0xFFu);
    }
}

static inline uint8_t rig_product(uint8_t a, uint8_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = 0; bit < 8u; ++bit)
    {
        product ^= (((uint32_t)b >> bit) & 1u) != 0u ? a * (1u << bit) : 0u;
    }
    for (uint32_t bit = 14; bit >= 8u; --bit)
    {
        product ^= ((product >> bit) & 1u) != 0u ? 0x11Du << (bit - 8u) : 0u;
    }
    return (uint8_t)product;
}

/* Step to the next choice of count chunks in order. @return false: this was the last */
static inline bool rig_next_choice(uint8_t lost[], uint32_t count, uint32_t n)
{
    for (uint32_t i = count; i > 0; --i)
    {
        if (lost[i - 1] < n - (count - (i - 1)))
        {
            ++lost[i - 1];
            for (uint32_t j = i; j < count; ++j)
            {
                lost[j] = (uint8_t)(lost[j - 1] + 1);
            }
            return true;
        }
    }
    return false;
}

#endif
