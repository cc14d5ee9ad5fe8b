/**
 * @file
 * An input that a fuzz target reads from its beginning to its end.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include "fuzz.h"
#include "sky_icd.h"

typedef struct
{
    const uint8_t *data;
    size_t         left;
} input_t;

/** The next byte; 0 after the last. */
static uint8_t take(input_t *in)
{
    if (in->left == 0)
    {
        return 0;
    }
    --in->left;
    return *in->data++;
}

/** A small number, one around a limit, or any. */
static uint32_t take32(input_t *in)
{
    const uint32_t kind  = take(in);
    const uint32_t value = take(in);

    switch (kind & 3u)
    {
        case 0:
            return value;
        case 1:
            return UINT32_MAX - value;
        case 2:
            return SKY_LIMIT_CHUNK_SET + 128u - value;
        default:
            return value << 24 | (uint32_t)take(in) << 16 | (uint32_t)take(in) << 8 | take(in);
    }
}

#endif
