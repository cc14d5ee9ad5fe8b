/**
 * @file
 * What the tests of store and service share: seeded random numbers, blocks whose bytes follow from their number, PUT packets.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sky.h"

/** xorshift64*: repeatable, and the same everywhere. */
static inline uint64_t fx_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Dull;
}

static inline uint32_t fx_below(uint64_t *state, uint32_t limit)
{
    const uint64_t random = fx_random(state) >> 33;

    return limit == 0 ? 0 : (uint32_t)(random % limit);
}

/** A block: number and version say what is in it. */
typedef struct
{
    uint32_t number;
    uint32_t version;
    uint32_t chunk_total;
    uint32_t chunk_len;
    uint32_t block_len;
} fx_block_t;

static inline void fx_key(uint8_t *key, uint32_t number)
{
    (void)memset(key, 0xA5, SKY_KEY_BYTES);
    (void)memcpy(key, &number, sizeof(number));
}

static inline uint32_t fx_len(const fx_block_t *block, uint32_t id)
{
    return id + 1 < block->chunk_total ? block->chunk_len : block->block_len - (block->chunk_total - 1) * block->chunk_len;
}

static inline void fx_fill(const fx_block_t *block, uint32_t id, uint8_t *data)
{
    uint64_t state = 1 + block->number * 1000003ull + block->version * 7919ull + (uint64_t)id * 104729ull;

    for (uint32_t i = 0; i < fx_len(block, id); ++i)
    {
        data[i] = (uint8_t)(fx_random(&state) >> 56);
    }
}

/** A PUT of a whole chunk, as SKY_Packet_Decode would give it. @p data: room for a chunk, becomes the payload */
static inline void fx_put(const fx_block_t *block, uint32_t id, uint8_t *data, SKY_Packet_t *pkt)
{
    (void)memset(pkt, 0, sizeof(*pkt));
    fx_fill(block, id, data);
    pkt->is_request    = true;
    pkt->apid          = SKY_APID_KVC;
    pkt->seq_flags     = SKY_SEQ_WHOLE;
    pkt->op            = SKY_OP_PUT;
    pkt->hop_limit     = SKY_LIMIT_HOP_LIMIT;
    pkt->src           = (SKY_Addr_t){0, 77};
    pkt->dst           = (SKY_Addr_t){1, 1};
    pkt->chunk_id      = id;
    pkt->chunk_total   = block->chunk_total;
    pkt->block_len     = block->block_len;
    pkt->chunk_len     = fx_len(block, id);
    pkt->length        = pkt->chunk_len;
    pkt->chunk_crc     = SKY_Crc32c(0, data, pkt->chunk_len);
    pkt->payload       = data;
    pkt->payload_crc16 = SKY_Crc16(0, data, pkt->length);
    fx_key(pkt->key, block->number);
}

/** Make a PUT of a whole chunk one of a part of it. */
static inline void fx_part(SKY_Packet_t *pkt, uint32_t offset, uint32_t length)
{
    pkt->offset        = offset;
    pkt->length        = length;
    pkt->payload       = pkt->payload + offset;
    pkt->payload_crc16 = SKY_Crc16(0, pkt->payload, length);
}

/** The datagram of what a service sends. @p bytes: @p room of them @return its length */
static inline uint32_t fx_join(const SKY_Out_t *out, uint8_t *bytes, size_t room)
{
    const size_t len = SKY_Packet_Encode(&out->pkt, bytes, room);

    CHECK(len > 0);
    CHECK(!out->has_crc16 || out->payload_crc16 == SKY_Crc16(0, out->pkt.payload, out->pkt.length));
    return (uint32_t)len;
}

#endif
