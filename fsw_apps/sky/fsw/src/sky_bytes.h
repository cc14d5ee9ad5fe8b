/**
 * @file
 * Numbers as big-endian bytes, and bytes that may be a key.
 */
#ifndef SKY_BYTES_H
#define SKY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sky_assert.h"

static inline void SKY_Bytes_Put16(uint8_t *at, uint16_t value)
{
    SKY_ASSERT(at != NULL);
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void SKY_Bytes_Put32(uint8_t *at, uint32_t value)
{
    SKY_ASSERT(at != NULL);
    SKY_Bytes_Put16(at, (uint16_t)(value >> 16));
    SKY_Bytes_Put16(at + 2, (uint16_t)value);
}

static inline uint16_t SKY_Bytes_Get16(const uint8_t *at)
{
    SKY_ASSERT(at != NULL);
    return (uint16_t)((unsigned)at[0] << 8 | at[1]);
}

static inline uint32_t SKY_Bytes_Get32(const uint8_t *at)
{
    SKY_ASSERT(at != NULL);
    return (uint32_t)SKY_Bytes_Get16(at) << 16 | SKY_Bytes_Get16(at + 2);
}

/** Return true if all bytes are zeros, in a time that does not depend on them: they may be a key. */
static inline bool SKY_Bytes_AreZeros(const uint8_t *bytes, size_t count)
{
    uint8_t any = 0;

    SKY_ASSERT(bytes != NULL);
    SKY_ASSERT(count <= UINT16_MAX); /* no field is longer */
    for (size_t i = 0; i < count; ++i)
    {
        any = (uint8_t)(any | bytes[i]);
    }
    return any == 0u;
}

#endif
