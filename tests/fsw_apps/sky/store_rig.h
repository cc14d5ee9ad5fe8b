/**
 * @file
 * A store, and what tests put into it and look for.
 */
#ifndef STORE_RIG_H
#define STORE_RIG_H

#include "check.h"
#include "fixture.h"

#define SLOT_BYTES 100u

static SKY_Store_t store;
static void       *memory;
static uint8_t     data[2000];

static const fx_block_t one = {1, 0, 4, 100, 350}; /* chunks of 100, 100, 100, 50 */
static const fx_block_t two = {2, 0, 3, 90, 270};

/* With room for so many blocks and chunks: an entry takes a slot, and so does a chunk of more than 32 bytes. */
static inline void open_store(uint32_t chunks, uint32_t blocks)
{
    const SKY_StoreCfg_t cfg   = {SLOT_BYTES, chunks + blocks};
    const size_t         bytes = SKY_Store_MemoryBytes(&cfg);

    free(memory);
    memory = malloc(bytes);
    CHECK(memory != NULL && SKY_Store_Init(&store, &cfg, memory, bytes, 7));
    CHECK_EQ((uintptr_t)store.slab.data % 64u, 0);
}

static inline SKY_Status_t put_at(const fx_block_t *block, uint32_t id, uint32_t offset, uint32_t length, uint64_t expires_us)
{
    SKY_Packet_t pkt;

    fx_put(block, id, data, &pkt);
    fx_part(&pkt, offset, length);
    return SKY_Store_Put(&store, expires_us, &pkt);
}

static inline SKY_Status_t put(const fx_block_t *block, uint32_t id)
{
    return put_at(block, id, 0, fx_len(block, id), 0);
}

static inline bool has(const fx_block_t *block, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, block->number);
    return SKY_Store_Has(&store, SKY_Store_Find(&store, 0, key), id);
}

/* The chunk is there with all its bytes and sums. */
static inline bool holds(const fx_block_t *block, uint32_t id)
{
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, block->number);
    fx_fill(block, id, data);
    return SKY_Store_Get(&store, SKY_Store_Find(&store, 0, key), id, &view) == SKY_STATUS_OK && view.len == fx_len(block, id) &&
           memcmp(view.data, data, view.len) == 0 && view.crc32c == SKY_Crc32c(0, data, view.len) &&
           view.crc16_from_zero == SKY_Crc16(0, data, view.len);
}

#endif
