/**
 * @file
 * The chunk store: see sky_store.h.
 *
 * A slot is free, partial or complete. A block exists as long as it has a slot; its slots are a doubly linked list. Free entries
 * are found in two ways: a list of those given back, and a high-water mark below which lie all that were ever used, so that
 * memory is first touched when there is something to put into it.
 */
#include "sky_store.h"

#include <string.h>

#include "sky_crc.h"
#include "sky_parts.h"

#define NONE       SKY_STORE_NONE
#define ALIGNMENT  64u /* a cache line */
#define NAME_WORDS (1u + SKY_KEY_BYTES / 8u)

struct SKY_StoreBlock
{
    uint64_t name[NAME_WORDS]; /* tenant, key */
    uint32_t hash;             /* of the name */
    uint32_t chunk_total, block_len, chunk_len, epoch;
    uint32_t held;         /* complete chunks */
    uint32_t first;        /* slot; NONE: the block is free */
    uint32_t newer, older; /* by last use; older also links the free blocks */
};

struct SKY_StoreSlot
{
    SKY_Parts_t parts;      /* of a partial chunk */
    uint64_t    expires_us; /* of a partial chunk */
    uint32_t    block;      /* NONE: the slot is free */
    uint32_t    chunk_id;
    uint32_t    hash;
    uint32_t    prev, next; /* of the block; next also links the free slots */
    uint32_t    len;
    uint32_t    crc32c;
    uint16_t    crc16_from_zero;
    bool        complete;
};

/* ---- names and look-up --------------------------------------------------------------------------------------------- */

static void block_name(uint64_t *name, uint32_t tenant, const uint8_t *key)
{
    name[0] = tenant;
    (void)memcpy(&name[1], key, SKY_KEY_BYTES);
}

static uint64_t slot_name(uint32_t block, uint32_t chunk_id)
{
    return ((uint64_t)block << 32) | chunk_id;
}

static uint32_t find_named_block(const SKY_Store_t *store, const uint64_t *name, uint32_t hash)
{
    uint32_t step  = 0;
    uint32_t block = SKY_Index_Find(&store->block_index, hash, &step);

    while (block != NONE && memcmp(store->blocks[block].name, name, sizeof(store->blocks[block].name)) != 0)
    {
        block = SKY_Index_Find(&store->block_index, hash, &step);
    }
    return block;
}

static uint32_t find_block(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key)
{
    uint64_t name[NAME_WORDS];

    block_name(name, tenant, key);
    return find_named_block(store, name, SKY_Hash(store->secret, name, NAME_WORDS));
}

static uint32_t find_slot(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint64_t name = slot_name(block, chunk_id);
    const uint32_t hash = SKY_Hash(store->secret, &name, 1);
    uint32_t       step = 0;
    uint32_t       slot = SKY_Index_Find(&store->chunk_index, hash, &step);

    while (slot != NONE && slot_name(store->slots[slot].block, store->slots[slot].chunk_id) != name)
    {
        slot = SKY_Index_Find(&store->chunk_index, hash, &step);
    }
    return slot;
}

/* Slot of a complete chunk, or NONE. */
static uint32_t find_complete(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t slot = block == NONE ? NONE : find_slot(store, block, chunk_id);

    return slot != NONE && store->slots[slot].complete ? slot : NONE;
}

static uint8_t *slot_data(const SKY_Store_t *store, uint32_t slot)
{
    return store->data + (size_t)slot * store->cfg.slot_bytes;
}

/* ---- life of blocks and slots ------------------------------------------------------------------------------------- */

static void lru_unlink(SKY_Store_t *store, uint32_t index)
{
    const SKY_StoreBlock_t *block = &store->blocks[index];

    if (block->newer == NONE)
    {
        store->newest = block->older;
    }
    else
    {
        store->blocks[block->newer].older = block->older;
    }
    if (block->older == NONE)
    {
        store->oldest = block->newer;
    }
    else
    {
        store->blocks[block->older].newer = block->newer;
    }
}

static void lru_link(SKY_Store_t *store, uint32_t index)
{
    store->blocks[index].newer = NONE;
    store->blocks[index].older = store->newest;
    if (store->newest == NONE)
    {
        store->oldest = index;
    }
    else
    {
        store->blocks[store->newest].newer = index;
    }
    store->newest = index;
}

static void lru_touch(SKY_Store_t *store, uint32_t index)
{
    if (store->newest != index)
    {
        lru_unlink(store, index);
        lru_link(store, index);
    }
}

static void block_free(SKY_Store_t *store, uint32_t index)
{
    SKY_Index_Remove(&store->block_index, store->blocks[index].hash, index);
    lru_unlink(store, index);
    store->blocks[index].older = store->free_block;
    store->free_block          = index;
    --store->counters.blocks;
}

static void slot_free(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreSlot_t  *slot  = &store->slots[index];
    SKY_StoreBlock_t *block = &store->blocks[slot->block];

    SKY_Index_Remove(&store->chunk_index, slot->hash, index);
    if (slot->prev == NONE)
    {
        block->first = slot->next;
    }
    else
    {
        store->slots[slot->prev].next = slot->next;
    }
    if (slot->next != NONE)
    {
        store->slots[slot->next].prev = slot->prev;
    }
    if (slot->complete)
    {
        --block->held;
        store->counters.bytes -= slot->len;
    }
    else
    {
        --store->counters.partial;
    }
    slot->block      = NONE;
    slot->next       = store->free_slot;
    store->free_slot = index;
    --store->counters.slots_used;
}

/* Free one slot, and its block if that was its last. */
static void slot_drop(SKY_Store_t *store, uint32_t index)
{
    const uint32_t block = store->slots[index].block;

    slot_free(store, index);
    if (store->blocks[block].first == NONE)
    {
        block_free(store, block);
    }
}

/* @return complete chunks that went with it */
static uint32_t block_drop(SKY_Store_t *store, uint32_t index)
{
    const uint32_t held = store->blocks[index].held;

    while (store->blocks[index].first != NONE)
    {
        slot_free(store, store->blocks[index].first);
    }
    block_free(store, index);
    return held;
}

static void evict_oldest(SKY_Store_t *store)
{
    ++store->counters.evicted_blocks;
    store->counters.evicted_chunks += block_drop(store, store->oldest);
}

/* An entry for the block of a PUT, which is not here; there is always one, because others may be evicted. */
static uint32_t block_new(SKY_Store_t *store, const uint64_t *name, uint32_t hash)
{
    if (store->free_block == NONE && store->fresh_block == store->cfg.block_count)
    {
        evict_oldest(store);
    }
    const uint32_t index = store->free_block != NONE ? store->free_block : store->fresh_block++;

    SKY_StoreBlock_t *block = &store->blocks[index];
    if (index == store->free_block)
    {
        store->free_block = block->older;
    }
    (void)memset(block, 0, sizeof(*block));
    (void)memcpy(block->name, name, sizeof(block->name));
    block->hash  = hash;
    block->first = NONE;
    SKY_Index_Insert(&store->block_index, hash, index);
    lru_link(store, index);
    ++store->counters.blocks;
    return index;
}

/* A partial slot without parts for the chunk of a PUT, or NONE if all slots are the block's own. The block is the newest. */
static uint32_t slot_new(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt)
{
    if (store->free_slot == NONE && store->fresh_slot == store->cfg.slot_count)
    {
        if (store->oldest == block_index)
        {
            return NONE;
        }
        evict_oldest(store);
    }
    const uint32_t index = store->free_slot != NONE ? store->free_slot : store->fresh_slot++;

    SKY_StoreSlot_t  *slot  = &store->slots[index];
    SKY_StoreBlock_t *block = &store->blocks[block_index];
    if (index == store->free_slot)
    {
        store->free_slot = slot->next;
    }
    (void)memset(slot, 0, sizeof(*slot));
    const uint64_t name = slot_name(block_index, pkt->chunk_id);

    slot->hash     = SKY_Hash(store->secret, &name, 1);
    slot->block    = block_index;
    slot->chunk_id = pkt->chunk_id;
    slot->len      = pkt->chunk_len;
    slot->crc32c   = pkt->chunk_crc;
    slot->prev     = NONE;
    slot->next     = block->first;
    if (block->first != NONE)
    {
        store->slots[block->first].prev = index;
    }
    block->first = index;
    SKY_Index_Insert(&store->chunk_index, slot->hash, index);
    ++store->counters.slots_used;
    ++store->counters.partial;
    return index;
}

static void slot_complete(SKY_Store_t *store, SKY_StoreSlot_t *slot, uint16_t crc16_from_zero)
{
    slot->crc16_from_zero = crc16_from_zero;
    slot->complete        = true;
    ++store->blocks[slot->block].held;
    store->counters.bytes += slot->len;
    --store->counters.partial;
}

/* ---- put ---------------------------------------------------------------------------------------------------------- */

/* Do the lengths of a PUT agree with each other? @c chunk_len becomes that of a full chunk of the block. */
static SKY_Status_t check_lengths(const SKY_Store_t *store, const SKY_Packet_t *pkt, uint32_t *chunk_len)
{
    if (pkt->chunk_id >= pkt->chunk_total || pkt->chunk_len == 0 || pkt->chunk_len > pkt->block_len)
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    const uint32_t others  = pkt->chunk_total - 1u;
    const bool     is_last = pkt->chunk_id == others;
    const uint32_t full    = is_last && others > 0 ? (pkt->block_len - pkt->chunk_len) / others : pkt->chunk_len;
    const uint64_t before  = (uint64_t)others * full; /* the last chunk */

    if (before >= pkt->block_len || pkt->block_len - before > full || (is_last && pkt->block_len - before != pkt->chunk_len))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    if (full > store->cfg.slot_bytes)
    {
        return SKY_STATUS_TOO_LARGE;
    }
    *chunk_len = full;
    return SKY_STATUS_OK;
}

/* A packet with a part of a chunk. Parts of another version of the chunk make room for the new one. */
static SKY_Status_t put_part(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt, uint32_t index)
{
    SKY_StoreSlot_t *slot = &store->slots[index];
    uint8_t         *data = slot_data(store, index);

    if (slot->crc32c != pkt->chunk_crc)
    {
        slot->crc32c = pkt->chunk_crc;
        (void)memset(&slot->parts, 0, sizeof(slot->parts));
    }
    if (!SKY_Parts_Add(&slot->parts, slot->len, pkt->offset, pkt->length))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    slot->expires_us = expires_us;
    (void)memcpy(data + pkt->offset, pkt->payload, pkt->length);
    if (!SKY_Parts_AllHere(&slot->parts))
    {
        return SKY_STATUS_OK;
    }
    if (SKY_Crc32c(0, data, slot->len) != slot->crc32c)
    {
        slot_drop(store, index);
        return SKY_STATUS_BAD_CRC;
    }
    slot_complete(store, slot, SKY_Crc16(0, data, slot->len));
    return SKY_STATUS_OK;
}

static bool is_declared_as(const SKY_StoreBlock_t *block, const SKY_Packet_t *pkt, uint32_t chunk_len)
{
    return block->chunk_total == pkt->chunk_total && block->block_len == pkt->block_len && block->chunk_len == chunk_len;
}

/* The block of a PUT, as the newest: declared by the packet if it is not here, or has nothing complete and was declared otherwise. */
static uint32_t declare(SKY_Store_t *store, const SKY_Packet_t *pkt, uint32_t chunk_len, const uint64_t *name, uint32_t hash)
{
    uint32_t index = find_named_block(store, name, hash);

    if (index != NONE && !is_declared_as(&store->blocks[index], pkt, chunk_len))
    {
        (void)block_drop(store, index);
        index = NONE;
    }
    if (index == NONE)
    {
        index = block_new(store, name, hash);

        store->blocks[index].chunk_total = pkt->chunk_total;
        store->blocks[index].block_len   = pkt->block_len;
        store->blocks[index].chunk_len   = chunk_len;
    }
    lru_touch(store, index);
    if (store->blocks[index].epoch < pkt->epoch)
    {
        store->blocks[index].epoch = pkt->epoch;
    }
    return index;
}

/* Is there anything complete here that a PUT contradicts? */
static bool contradicts(const SKY_Store_t *store, const SKY_Packet_t *pkt, uint32_t chunk_len, uint32_t block, uint32_t held)
{
    return (block != NONE && store->blocks[block].held > 0 && !is_declared_as(&store->blocks[block], pkt, chunk_len)) ||
           (held != NONE && store->slots[held].crc32c != pkt->chunk_crc);
}

SKY_Status_t SKY_Store_Put(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt)
{
    uint32_t           chunk_len = 0;
    const SKY_Status_t status    = check_lengths(store, pkt, &chunk_len);

    if (status != SKY_STATUS_OK)
    {
        return status;
    }
    if (!SKY_Parts_Check(pkt->chunk_len, pkt->offset, pkt->length))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    uint64_t name[NAME_WORDS];
    block_name(name, pkt->tenant, pkt->key);
    const uint32_t hash     = SKY_Hash(store->secret, name, NAME_WORDS);
    const uint32_t known    = find_named_block(store, name, hash);
    const uint32_t held     = find_complete(store, known, pkt->chunk_id);
    const bool     is_whole = pkt->length == pkt->chunk_len;
    if (contradicts(store, pkt, chunk_len, known, held))
    {
        return SKY_STATUS_BAD_KEY;
    }
    if (held == NONE && is_whole && SKY_Crc32c(0, pkt->payload, pkt->length) != pkt->chunk_crc)
    {
        return SKY_STATUS_BAD_CRC;
    }

    /* From here on the packet is as good as can be told, and may evict another block. */
    const uint32_t block = declare(store, pkt, chunk_len, name, hash);
    if (held != NONE)
    {
        return SKY_STATUS_OK;
    }
    uint32_t index = find_slot(store, block, pkt->chunk_id);
    if (index == NONE)
    {
        index = slot_new(store, block, pkt);
    }
    if (index == NONE)
    {
        return SKY_STATUS_STORE_FULL;
    }
    if (!is_whole)
    {
        return put_part(store, expires_us, pkt, index);
    }
    store->slots[index].crc32c = pkt->chunk_crc; /* parts of another version may have been there */
    (void)memcpy(slot_data(store, index), pkt->payload, pkt->length);
    slot_complete(store, &store->slots[index], pkt->payload_crc16);
    return SKY_STATUS_OK;
}

/* ---- look up ------------------------------------------------------------------------------------------------------ */

static SKY_Status_t view_chunk(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id, SKY_ChunkView_t *view)
{
    const uint32_t index = find_complete(store, block, chunk_id);

    if (index == NONE)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    view->data            = slot_data(store, index);
    view->len             = store->slots[index].len;
    view->crc32c          = store->slots[index].crc32c;
    view->crc16_from_zero = store->slots[index].crc16_from_zero;
    return SKY_STATUS_OK;
}

SKY_Status_t SKY_Store_Peek(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint32_t chunk_id,
                            SKY_ChunkView_t *view)
{
    return view_chunk(store, find_block(store, tenant, key), chunk_id, view);
}

SKY_Status_t SKY_Store_Get(SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint32_t chunk_id, SKY_ChunkView_t *view)
{
    const uint32_t     block  = find_block(store, tenant, key);
    const SKY_Status_t status = view_chunk(store, block, chunk_id, view);

    if (status == SKY_STATUS_OK)
    {
        lru_touch(store, block);
    }
    return status;
}

bool SKY_Store_Has(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint32_t chunk_id)
{
    return find_complete(store, find_block(store, tenant, key), chunk_id) != NONE;
}

static void block_info(const SKY_StoreBlock_t *block, SKY_BlockInfo_t *info)
{
    info->tenant = (uint32_t)block->name[0];
    (void)memcpy(info->key, &block->name[1], SKY_KEY_BYTES);
    info->chunk_total = block->chunk_total;
    info->block_len   = block->block_len;
    info->chunk_len   = block->chunk_len;
    info->epoch       = block->epoch;
    info->held        = block->held;
}

SKY_Status_t SKY_Store_Block(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, SKY_BlockInfo_t *info)
{
    const uint32_t block = find_block(store, tenant, key);

    if (block == NONE || store->blocks[block].held == 0)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    block_info(&store->blocks[block], info);
    return SKY_STATUS_OK;
}

uint32_t SKY_Store_NextChunk(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint32_t from)
{
    const uint32_t block  = find_block(store, tenant, key);
    uint32_t       lowest = NONE;

    for (uint32_t i = block == NONE ? NONE : store->blocks[block].first; i != NONE; i = store->slots[i].next)
    {
        const SKY_StoreSlot_t *slot = &store->slots[i];

        if (slot->complete && slot->chunk_id >= from && slot->chunk_id < lowest)
        {
            lowest = slot->chunk_id;
        }
    }
    return lowest;
}

bool SKY_Store_NextBlock(const SKY_Store_t *store, uint32_t *cursor, SKY_BlockInfo_t *info)
{
    while (*cursor < store->fresh_block)
    {
        const SKY_StoreBlock_t *block = &store->blocks[*cursor];

        ++*cursor;
        if (block->held > 0)
        {
            block_info(block, info);
            return true;
        }
    }
    return false;
}

/* ---- forget ------------------------------------------------------------------------------------------------------- */

uint32_t SKY_Store_Purge(SKY_Store_t *store, uint32_t tenant, const uint8_t *key)
{
    const uint32_t block = find_block(store, tenant, key);

    return block == NONE ? 0 : block_drop(store, block);
}

bool SKY_Store_Drop(SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint32_t chunk_id)
{
    const uint32_t index = find_complete(store, find_block(store, tenant, key), chunk_id);

    if (index != NONE)
    {
        slot_drop(store, index);
    }
    return index != NONE;
}

uint32_t SKY_Store_Expire(SKY_Store_t *store, uint64_t now_us, uint32_t most)
{
    const uint32_t looks = most < store->fresh_slot ? most : store->fresh_slot;
    uint32_t       gone  = 0;

    for (uint32_t i = 0; i < looks && store->counters.partial > 0; ++i)
    {
        const uint32_t         index = store->expire_cursor < store->fresh_slot ? store->expire_cursor : 0;
        const SKY_StoreSlot_t *slot  = &store->slots[index];

        store->expire_cursor = index + 1u;
        if (slot->block != NONE && !slot->complete && now_us >= slot->expires_us)
        {
            slot_drop(store, index);
            ++gone;
        }
    }
    store->counters.expired_partial += gone;
    return gone;
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1u) / ALIGNMENT * ALIGNMENT;
}

static bool cfg_ok(const SKY_StoreCfg_t *cfg)
{
    return cfg->slot_bytes >= 1 && cfg->slot_bytes <= SKY_LIMIT_CHUNK_BYTES && cfg->slot_count >= 1 &&
           cfg->slot_count <= SKY_STORE_SLOT_MAX && cfg->block_count >= 1 && cfg->block_count <= cfg->slot_count;
}

size_t SKY_Store_MemoryBytes(const SKY_StoreCfg_t *cfg)
{
    if (!cfg_ok(cfg))
    {
        return 0;
    }
    const uint64_t bytes = ALIGNMENT - 1u + aligned(cfg->block_count * sizeof(SKY_StoreBlock_t)) +
                           aligned(cfg->slot_count * sizeof(SKY_StoreSlot_t)) + aligned(SKY_Index_MemoryBytes(cfg->block_count)) +
                           aligned(SKY_Index_MemoryBytes(cfg->slot_count)) + (uint64_t)cfg->slot_count * cfg->slot_bytes;
    return (size_t)bytes == bytes ? (size_t)bytes : 0; /* 32-bit processors */
}

static void forget_all(SKY_Store_t *store)
{
    store->free_block          = NONE;
    store->free_slot           = NONE;
    store->fresh_block         = 0;
    store->fresh_slot          = 0;
    store->newest              = NONE;
    store->oldest              = NONE;
    store->expire_cursor       = 0;
    store->counters.blocks     = 0;
    store->counters.slots_used = 0;
    store->counters.partial    = 0;
    store->counters.bytes      = 0;
}

void SKY_Store_Clear(SKY_Store_t *store)
{
    SKY_Index_Clear(&store->block_index);
    SKY_Index_Clear(&store->chunk_index);
    forget_all(store);
}

bool SKY_Store_Init(SKY_Store_t *store, const SKY_StoreCfg_t *cfg, void *memory, size_t memory_bytes, uint64_t seed)
{
    const size_t needed = SKY_Store_MemoryBytes(cfg);

    if (needed == 0 || memory_bytes < needed)
    {
        return false;
    }
    uint8_t *at = (uint8_t *)memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;

    (void)memset(store, 0, sizeof(*store));
    store->cfg    = *cfg;
    store->blocks = (SKY_StoreBlock_t *)(void *)at;
    at += aligned(cfg->block_count * sizeof(SKY_StoreBlock_t));
    store->slots = (SKY_StoreSlot_t *)(void *)at;
    at += aligned(cfg->slot_count * sizeof(SKY_StoreSlot_t));
    SKY_Index_Init(&store->block_index, at, cfg->block_count);
    at += aligned(SKY_Index_MemoryBytes(cfg->block_count));
    SKY_Index_Init(&store->chunk_index, at, cfg->slot_count);
    at += aligned(SKY_Index_MemoryBytes(cfg->slot_count));
    store->data      = at;
    store->secret[0] = seed;
    store->secret[1] = (seed ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull; /* one secret, two different words */
    forget_all(store);
    return true;
}
