/**
 * @file
 * Set of chunks on the wire: first chunk, stride, bitmap. One satellite's share of a block (sky_spread.h) is
 * (s, n, bits), so a bitmap of a few bytes names all of it.
 */
#ifndef SKY_CHUNKSET_H
#define SKY_CHUNKSET_H

#include "sky_packet.h"

#define SKY_CHUNKSET_MAP_BYTES (SKY_LIMIT_CHUNK_SET / 8u)
#define SKY_CHUNKSET_MAX_BYTES (SKY_CHUNK_SET_BYTES + SKY_CHUNKSET_MAP_BYTES) /**< largest payload of a chunk set */

typedef struct
{
    uint32_t base;                        /**< first chunk id */
    uint32_t stride;                      /**< at least 1 */
    uint16_t count;                       /**< bits, at most SKY_LIMIT_CHUNK_SET */
    uint8_t  map[SKY_CHUNKSET_MAP_BYTES]; /**< bit i = 0x80 >> (i % 8) of byte i / 8; bits from count on are 0 */
} SKY_ChunkSet_t;

/** Start a set with all bits clear.
 *  @return false if stride is 0, count not 1 .. SKY_LIMIT_CHUNK_SET, or the last id above 2^32-1 */
bool SKY_ChunkSet_Init(SKY_ChunkSet_t *set, uint32_t base, uint32_t stride, uint32_t count);
/** Add, Remove and Has take an index; one beyond the set changes nothing and is not in it. */
void     SKY_ChunkSet_Add(SKY_ChunkSet_t *set, uint32_t index);
void     SKY_ChunkSet_Remove(SKY_ChunkSet_t *set, uint32_t index);
bool     SKY_ChunkSet_Has(const SKY_ChunkSet_t *set, uint32_t index);
uint32_t SKY_ChunkSet_Size(const SKY_ChunkSet_t *set);                /**< number of bits that are set */
uint32_t SKY_ChunkSet_Next(const SKY_ChunkSet_t *set, uint32_t from); /**< first set index >= from, or count if none */
uint32_t SKY_ChunkSet_ChunkId(const SKY_ChunkSet_t *set, uint32_t index);
/** Return the index of a chunk id, or count if the id is not of this set. */
uint32_t SKY_ChunkSet_IndexOf(const SKY_ChunkSet_t *set, uint32_t chunk_id);

/** @return payload bytes written, 0 if @p cap is too small. The first chunk id travels in the packet's chunk_id. */
size_t SKY_ChunkSet_Encode(const SKY_ChunkSet_t *set, uint8_t *out, size_t cap);
/** Decode the payload of @p pkt. @return OK, BAD_LENGTH, or BAD_CHUNK (stride 0, count 0 or too large, last id above 2^32-1). */
SKY_Status_t SKY_ChunkSet_Decode(const SKY_Packet_t *pkt, SKY_ChunkSet_t *set);

#endif
