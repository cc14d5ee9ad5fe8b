/**
 * @file
 * Chunk sets: arithmetic progression plus bitmap.
 */
#include "sky_chunkset.h"

#include <string.h>

#include "sky_assert.h"

#define BITS_PER_BYTE 8u

static uint32_t MapBytes(const SKY_ChunkSet_t *set)
{
    SKY_ASSERT(set->count <= SKY_LIMIT_CHUNK_SET);
    return (set->count + BITS_PER_BYTE - 1u) / BITS_PER_BYTE;
}

static uint8_t Bit(uint32_t index)
{
    return (uint8_t)(0x80u >> (index % BITS_PER_BYTE));
}

bool SKY_ChunkSet_Init(SKY_ChunkSet_t *set, uint32_t base, uint32_t stride, uint32_t count)
{
    if (stride == 0u || count == 0u || count > SKY_LIMIT_CHUNK_SET || (uint64_t)stride * (count - 1u) > UINT32_MAX - base)
    {
        return false;
    }
    set->base   = base;
    set->stride = stride;
    set->count  = (uint16_t)count;
    SKY_ASSERT(set->count == count); /* the count fits 16 bits */
    (void)memset(set->map, 0, sizeof(set->map));
    return true;
}

void SKY_ChunkSet_Add(SKY_ChunkSet_t *set, uint32_t index)
{
    if (index < set->count)
    {
        set->map[index / BITS_PER_BYTE] = (uint8_t)(set->map[index / BITS_PER_BYTE] | Bit(index));
    }
}

void SKY_ChunkSet_Remove(SKY_ChunkSet_t *set, uint32_t index)
{
    if (index < set->count)
    {
        set->map[index / BITS_PER_BYTE] = (uint8_t)(set->map[index / BITS_PER_BYTE] & ~Bit(index));
    }
}

bool SKY_ChunkSet_Has(const SKY_ChunkSet_t *set, uint32_t index)
{
    return index < set->count && (set->map[index / BITS_PER_BYTE] & Bit(index)) != 0u;
}

uint32_t SKY_ChunkSet_Size(const SKY_ChunkSet_t *set)
{
    const uint32_t bytes = MapBytes(set);
    uint32_t       size  = 0;

    for (uint32_t i = 0; i < bytes; ++i)
    {
        uint32_t bits = set->map[i]; /* sum the bits of pairs, of nibbles, then of the byte */

        bits = bits - ((bits >> 1) & 0x55u);
        bits = (bits & 0x33u) + ((bits >> 2) & 0x33u);
        size += (bits + (bits >> 4)) & 0x0Fu;
    }
    SKY_ASSERT(size <= set->count); /* bits behind the last chunk are 0 */
    return size;
}

uint32_t SKY_ChunkSet_Next(const SKY_ChunkSet_t *set, uint32_t from)
{
    while (from < set->count)
    {
        const uint32_t left = set->map[from / BITS_PER_BYTE] & (0xFFu >> (from % BITS_PER_BYTE));

        if (left == 0u)
        {
            from = (from / BITS_PER_BYTE + 1u) * BITS_PER_BYTE;
        }
        else if ((left & Bit(from)) == 0u)
        {
            ++from;
        }
        else
        {
            return from;
        }
    }
    return set->count;
}

uint32_t SKY_ChunkSet_ChunkId(const SKY_ChunkSet_t *set, uint32_t index)
{
    SKY_ASSERT(index < set->count);
    SKY_ASSERT(set->stride >= 1);
    return set->base + index * set->stride;
}

uint32_t SKY_ChunkSet_IndexOf(const SKY_ChunkSet_t *set, uint32_t chunk_id)
{
    const uint32_t distance = chunk_id - set->base;

    SKY_ASSERT(set->stride >= 1);
    if (chunk_id < set->base || distance % set->stride != 0u || distance / set->stride >= set->count)
    {
        return set->count;
    }
    return distance / set->stride;
}

size_t SKY_ChunkSet_Encode(const SKY_ChunkSet_t *set, uint8_t *out, size_t cap)
{
    const uint32_t map_bytes = MapBytes(set);
    SKY_ASSERT(set->count >= 1);
    SKY_ASSERT(set->stride >= 1);
    SKY_ASSERT((uint64_t)set->stride * (set->count - 1u) <= UINT32_MAX - set->base); /* the last id is an id */
    SKY_ASSERT(map_bytes >= 1);
    SKY_ASSERT(map_bytes <= sizeof(set->map));

    if (cap < SKY_CHUNK_SET_BYTES + map_bytes)
    {
        return 0;
    }
    out[SKY_CHUNK_SET_OFF_STRIDE]        = (uint8_t)(set->stride >> 24);
    out[SKY_CHUNK_SET_OFF_STRIDE + 1u]   = (uint8_t)((set->stride >> 16) & 0xFFu);
    out[SKY_CHUNK_SET_OFF_STRIDE + 2u]   = (uint8_t)((set->stride >> 8) & 0xFFu);
    out[SKY_CHUNK_SET_OFF_STRIDE + 3u]   = (uint8_t)(set->stride & 0xFFu);
    out[SKY_CHUNK_SET_OFF_COUNT]         = (uint8_t)(set->count >> 8);
    out[SKY_CHUNK_SET_OFF_COUNT + 1u]    = (uint8_t)(set->count & 0xFFu);
    out[SKY_CHUNK_SET_OFF_RESERVED]      = 0;
    out[SKY_CHUNK_SET_OFF_RESERVED + 1u] = 0;
    (void)memcpy(out + SKY_CHUNK_SET_BYTES, set->map, map_bytes);
    return SKY_CHUNK_SET_BYTES + map_bytes;
}

SKY_Status_t SKY_ChunkSet_Decode(const SKY_Packet_t *pkt, SKY_ChunkSet_t *set)
{
    const uint8_t *in = pkt->payload;
    uint32_t       stride, count, map_bytes;

    if (pkt->length < SKY_CHUNK_SET_BYTES)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    stride = ((uint32_t)in[SKY_CHUNK_SET_OFF_STRIDE] << 24) | ((uint32_t)in[SKY_CHUNK_SET_OFF_STRIDE + 1u] << 16) |
             ((uint32_t)in[SKY_CHUNK_SET_OFF_STRIDE + 2u] << 8) | in[SKY_CHUNK_SET_OFF_STRIDE + 3u];
    count = ((uint32_t)in[SKY_CHUNK_SET_OFF_COUNT] << 8) | in[SKY_CHUNK_SET_OFF_COUNT + 1u];
    if (!SKY_ChunkSet_Init(set, pkt->chunk_id, stride, count))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    map_bytes = MapBytes(set);
    SKY_ASSERT(set->count == count);
    SKY_ASSERT(map_bytes >= 1);
    SKY_ASSERT(map_bytes <= sizeof(set->map));
    if (pkt->length != SKY_CHUNK_SET_BYTES + map_bytes)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    (void)memcpy(set->map, in + SKY_CHUNK_SET_BYTES, map_bytes);
    if (count % BITS_PER_BYTE != 0u) /* the sender may have left anything behind the last bit */
    {
        set->map[map_bytes - 1u] = (uint8_t)(set->map[map_bytes - 1u] & ~(0xFFu >> (count % BITS_PER_BYTE)));
    }
    return SKY_STATUS_OK;
}
