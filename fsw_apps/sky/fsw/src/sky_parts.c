/**
 * @file
 * Parts of a chunk that have arrived: see sky_parts.h.
 */
#include "sky_parts.h"

#include "sky_assert.h"

bool SKY_Parts_Check(uint32_t chunk_len, uint32_t offset, uint32_t length)
{
    if (length == 0 || offset > chunk_len || length > chunk_len - offset)
    {
        return false;
    }
    return offset + length == chunk_len || (offset % length == 0 && (chunk_len - 1u) / length < SKY_LIMIT_FRAGMENTS);
}

bool SKY_Parts_Add(SKY_Parts_t *parts, uint32_t chunk_len, uint32_t offset, uint32_t length)
{
    const bool is_tail = offset + length == chunk_len;
    /* Combine what this part and those before say of the layout, whichever came first. */
    const uint32_t part_bytes = is_tail ? parts->part_bytes : length;
    const uint32_t tail       = is_tail ? offset : parts->tail_offset;

    if (!SKY_Parts_Check(chunk_len, offset, length))
    {
        return false;
    }
    if ((parts->part_bytes != 0 && part_bytes != parts->part_bytes) || (parts->tail_offset != 0 && tail != parts->tail_offset) ||
        (part_bytes != 0 && tail != 0 && (tail % part_bytes != 0 || chunk_len - tail > part_bytes)))
    {
        return false;
    }
    parts->part_bytes  = part_bytes;
    parts->tail_offset = tail;
    if (!is_tail)
    {
        SKY_ASSERT(offset / part_bytes < SKY_LIMIT_FRAGMENTS - 1u);
        parts->here |= 1ull << (offset / part_bytes); /* at most SKY_LIMIT_FRAGMENTS - 2, as the tail is behind it */
    }
    SKY_ASSERT(parts->part_bytes != 0 || parts->tail_offset != 0);
    SKY_ASSERT(parts->here == 0 || parts->part_bytes != 0); /* parts that have arrived have a place */
    SKY_ASSERT(parts->tail_offset < chunk_len);
    SKY_ASSERT(parts->here >> (SKY_LIMIT_FRAGMENTS - 1u) == 0); /* the last bit is the tail's */
    return true;
}

bool SKY_Parts_AllHere(const SKY_Parts_t *parts)
{
    SKY_ASSERT(parts->part_bytes == 0 || parts->tail_offset / parts->part_bytes < SKY_LIMIT_FRAGMENTS);
    SKY_ASSERT(parts->here == 0 || parts->part_bytes != 0);
    SKY_ASSERT(parts->part_bytes == 0 || parts->tail_offset % parts->part_bytes == 0);
    return parts->tail_offset != 0 && parts->part_bytes != 0 &&
           parts->here == (1ull << (parts->tail_offset / parts->part_bytes)) - 1u;
}
