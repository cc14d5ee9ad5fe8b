/**
 * @file
 * The tables of the chunk store, their memory, and the life of their entries: see sky_store_table.h.
 */
#include "sky_store_table.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_store_tenants.h"

#define ALIGNMENT 64u /* bytes of a cache line */

/* ---- names and look-up --------------------------------------------------------------------------------------------- */

void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key)
{
    name[0] = tenant;
    (void)memcpy(&name[1], key, SKY_KEY_BYTES);
}

static uint64_t slot_name(uint32_t block, uint32_t chunk_id)
{
    return ((uint64_t)block << 32) | chunk_id;
}

uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash)
{
    uint32_t step  = 0;
    uint32_t block = SKY_Index_Find(&store->block_index, hash, &step);

    while (block != NONE && memcmp(store->blocks[block].name, name, sizeof(store->blocks[block].name)) != 0)
    {
        block = SKY_Index_Find(&store->block_index, hash, &step);
    }
    SKY_ASSERT(block == NONE || block < store->fresh_block);
    SKY_ASSERT(block == NONE || store->blocks[block].first != NONE);
    SKY_ASSERT(block == NONE || store->blocks[block].hash == hash);
    return block;
}

uint32_t SKY_StoreTable_FindSlot(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint64_t name = slot_name(block, chunk_id);
    const uint32_t hash = SKY_Hash(store->secret, &name, 1);
    uint32_t       step = 0;
    uint32_t       slot = SKY_Index_Find(&store->chunk_index, hash, &step);
    SKY_ASSERT(block < store->fresh_block);

    while (slot != NONE && slot_name(store->slots[slot].block, store->slots[slot].chunk_id) != name)
    {
        slot = SKY_Index_Find(&store->chunk_index, hash, &step);
    }
    SKY_ASSERT(slot == NONE || slot < store->fresh_slot);
    SKY_ASSERT(slot == NONE || store->slots[slot].hash == hash);
    return slot;
}

uint8_t *SKY_StoreTable_Data(const SKY_Store_t *store, uint32_t slot)
{
    SKY_ASSERT(slot < store->fresh_slot);
    SKY_ASSERT((uint64_t)slot < store->cfg.slot_count);
    return store->data + (size_t)slot * store->cfg.slot_bytes;
}

/* ---- life of blocks and slots ------------------------------------------------------------------------------------- */

void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index)
{
    SKY_ASSERT(index < store->fresh_block);
    if (store->by_use.newest != index)
    {
        SKY_StoreTenants_Unlink(store, index);
        SKY_StoreTenants_Link(store, index);
    }
    SKY_ASSERT(store->by_use.newest == index);
    SKY_ASSERT(store->tenants[store->blocks[index].tenant].by_use.newest == index);
}

static void block_free(SKY_Store_t *store, uint32_t index)
{
    SKY_ASSERT(store->blocks[index].first == NONE);
    SKY_ASSERT(store->blocks[index].held == 0);
    SKY_ASSERT(store->counters.blocks > 0);
    SKY_ASSERT(index < store->fresh_block);
    SKY_Index_Remove(&store->block_index, store->blocks[index].hash, index);
    SKY_StoreTenants_Unlink(store, index);
    SKY_StoreTenants_GiveBlock(store, store->blocks[index].tenant);
    store->blocks[index].older[LIST_ALL] = store->free_block;
    store->free_block                    = index;
    --store->counters.blocks;
    SKY_ASSERT(store->counters.blocks < store->fresh_block);
    SKY_ASSERT(store->free_block < store->fresh_block);
}

static void slot_free(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreSlot_t  *slot  = &store->slots[index];
    SKY_StoreBlock_t *block = &store->blocks[slot->block];
    SKY_ASSERT(index < store->fresh_slot);
    SKY_ASSERT(slot->block < store->fresh_block);
    SKY_ASSERT(block->held + store->counters.partial <= store->counters.slots_used);

    SKY_ASSERT(slot->prev == NONE ? block->first == index : store->slots[slot->prev].next == index);
    SKY_ASSERT(slot->next == NONE || store->slots[slot->next].prev == index);
    SKY_ASSERT(store->counters.slots_used > 0);
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
        SKY_ASSERT(block->held > 0);
        SKY_ASSERT(store->counters.bytes >= slot->len);
        --block->held;
        block->suspect_us = 0;
        block->lowest     = slot->chunk_id == block->lowest ? NONE : block->lowest;
        store->counters.bytes -= slot->len;
    }
    else
    {
        SKY_ASSERT(store->counters.partial > 0);
        --store->counters.partial;
    }
    SKY_StoreTenants_GiveSlot(store, block->tenant);
    slot->block      = NONE;
    slot->next       = store->free_slot;
    store->free_slot = index;
    --store->counters.slots_used;
    SKY_ASSERT(store->counters.slots_used < store->fresh_slot);
    SKY_ASSERT(store->free_slot < store->fresh_slot);
}

void SKY_StoreTable_DropSlot(SKY_Store_t *store, uint32_t index)
{
    const uint32_t block = store->slots[index].block;
    SKY_ASSERT(index < store->fresh_slot);

    SKY_ASSERT(block < store->fresh_block);
    slot_free(store, index);
    if (store->blocks[block].first == NONE)
    {
        block_free(store, block);
    }
}

uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index)
{
    const uint32_t held = store->blocks[index].held;
    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(held <= store->counters.slots_used);

    while (store->blocks[index].first != NONE)
    {
        slot_free(store, store->blocks[index].first);
    }
    SKY_ASSERT(store->blocks[index].held == 0);
    block_free(store, index);
    SKY_ASSERT(store->free_block == index);
    return held;
}

void SKY_StoreTable_Info(const SKY_StoreBlock_t *block, SKY_BlockInfo_t *info)
{
    SKY_ASSERT(block->held <= block->stripe.chunk_total);
    SKY_ASSERT(block->first != NONE || block->held == 0);
    SKY_ASSERT(block->stripe.chunk_total >= 1);
    info->tenant = (uint32_t)block->name[0];
    (void)memcpy(info->key, &block->name[1], SKY_KEY_BYTES);
    info->stripe       = block->stripe;
    info->epoch        = block->epoch;
    info->held         = block->held;
    info->track        = block->track;
    info->content      = block->content;
    info->version      = block->version;
    info->put_until_us = block->put_until_us;
    info->suspect_us   = block->suspect_us;
}

static void evict(SKY_Store_t *store, uint32_t index)
{
    const SKY_StoreBlock_t *block  = &store->blocks[index];
    SKY_StoreTenant_t      *tenant = &store->tenants[block->tenant];
    SKY_ASSERT(store->evicted.held == 0); /* a PUT evicts one block */
    SKY_ASSERT(tenant->by_use.oldest == index);

    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(block->first != NONE);
    SKY_StoreTable_Info(block, &store->evicted);
    ++store->counters.evicted_blocks;
    store->counters.evicted_chunks += block->held;
    tenant->evicted_chunks += block->held;
    (void)SKY_StoreTable_DropBlock(store, index);
}

bool SKY_StoreTable_MakeRoom(SKY_Store_t *store, uint32_t tenant, uint32_t block, bool evicts)
{
    uint32_t victim   = NONE;
    bool     has_room = SKY_StoreTenants_HasRoom(store, tenant, block, &victim);
    SKY_ASSERT(block == NONE || !evicts || store->by_use.newest == block); /* so it is no victim, unless it is the only one */
    SKY_ASSERT(block == NONE || store->blocks[block].tenant == tenant);

    if (evicts && victim != NONE)
    {
        evict(store, victim);
        has_room = SKY_StoreTenants_HasRoom(store, tenant, block, &victim);
    }
    store->tenants[tenant].refused += has_room ? 0u : 1u;
    SKY_ASSERT(!has_room || store->free_slot != NONE || store->fresh_slot < store->cfg.slot_count);
    SKY_ASSERT(!has_room || block != NONE || store->free_block != NONE || store->fresh_block < store->cfg.block_count);
    return has_room;
}

uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash, uint32_t tenant)
{
    const uint32_t index = store->free_block != NONE ? store->free_block : store->fresh_block++;
    SKY_ASSERT(index < store->cfg.block_count);

    SKY_StoreBlock_t *block = &store->blocks[index];
    if (index == store->free_block)
    {
        store->free_block = block->older[LIST_ALL];
    }
    (void)memset(block, 0, sizeof(*block));
    (void)memcpy(block->name, name, sizeof(block->name));
    block->hash   = hash;
    block->first  = NONE;
    block->tenant = (uint16_t)tenant;
    SKY_Index_Insert(&store->block_index, hash, index);
    SKY_StoreTenants_Link(store, index);
    SKY_StoreTenants_TakeBlock(store, tenant);
    ++store->counters.blocks;
    SKY_ASSERT(store->counters.blocks <= store->fresh_block);
    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(store->by_use.newest == index);
    SKY_ASSERT(store->free_block == NONE || store->free_block < store->fresh_block);
    SKY_ASSERT(store->counters.blocks <= store->cfg.block_count);
    return index;
}

uint32_t SKY_StoreTable_NewSlot(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(block_index < store->fresh_block);
    SKY_ASSERT(pkt->chunk_len <= store->cfg.slot_bytes);
    const uint32_t index = store->free_slot != NONE ? store->free_slot : store->fresh_slot++;
    SKY_ASSERT(index < store->cfg.slot_count);

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
    SKY_StoreTenants_TakeSlot(store, block->tenant);
    ++store->counters.slots_used;
    ++store->counters.partial;
    SKY_ASSERT(store->counters.slots_used <= store->fresh_slot);
    SKY_ASSERT(store->counters.partial <= store->counters.slots_used);
    SKY_ASSERT(index < store->fresh_slot);
    SKY_ASSERT(slot->block == block_index);
    SKY_ASSERT(store->free_slot == NONE || store->free_slot < store->fresh_slot);
    SKY_ASSERT(store->counters.blocks <= store->counters.slots_used); /* each block has a slot */
    return index;
}

void SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero)
{
    SKY_StoreSlot_t  *slot  = &store->slots[index];
    SKY_StoreBlock_t *block = &store->blocks[slot->block];
    SKY_ASSERT(index < store->fresh_slot);
    SKY_ASSERT(slot->block < store->fresh_block);

    SKY_ASSERT(!slot->complete);
    SKY_ASSERT(store->counters.partial > 0);
    slot->crc16_from_zero = crc16_from_zero;
    slot->complete        = true;
    store->completed      = true;
    if (block->held == 0 || (block->lowest != NONE && slot->chunk_id < block->lowest))
    {
        block->lowest = slot->chunk_id;
    }
    ++block->held;
    store->counters.bytes += slot->len;
    --store->counters.partial;
    SKY_ASSERT(block->held <= block->stripe.chunk_total);
    SKY_ASSERT(block->lowest == NONE || block->lowest <= slot->chunk_id);
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
                           aligned(SKY_Index_MemoryBytes(cfg->slot_count)) +
                           ((uint64_t)cfg->slot_count + SKY_STORE_SPARES) * cfg->slot_bytes;
    return (size_t)bytes == bytes ? (size_t)bytes : 0; /* 32-bit processors cannot have more */
}

static void forget_all(SKY_Store_t *store)
{
    SKY_ASSERT(store->cfg.block_count <= store->cfg.slot_count);
    store->free_block          = NONE;
    store->free_slot           = NONE;
    store->fresh_block         = 0;
    store->fresh_slot          = 0;
    store->expire_cursor       = 0;
    store->counters.blocks     = 0;
    store->counters.slots_used = 0;
    store->counters.partial    = 0;
    store->counters.bytes      = 0;
    SKY_StoreTenants_Empty(store);
    SKY_ASSERT(store->cfg.slot_count <= SKY_STORE_SLOT_MAX);
}

void SKY_Store_Clear(SKY_Store_t *store)
{
    SKY_Index_Clear(&store->block_index);
    SKY_Index_Clear(&store->chunk_index);
    forget_all(store);
    SKY_ASSERT(store->block_index.mask >= store->cfg.block_count);
    SKY_ASSERT(store->chunk_index.mask >= store->cfg.slot_count);
}

bool SKY_Store_Init(SKY_Store_t *store, const SKY_StoreCfg_t *cfg, void *memory, size_t memory_bytes, uint64_t seed)
{
    static const SKY_Quotas_t none   = {.count = 0};
    const size_t              needed = SKY_Store_MemoryBytes(cfg);

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
    store->data  = at;
    store->spare = at + (size_t)cfg->slot_count * cfg->slot_bytes;
    SKY_ASSERT((uintptr_t)at % ALIGNMENT == 0);
    SKY_ASSERT(at > (uint8_t *)store->slots);
    SKY_ASSERT((size_t)(store->spare - (uint8_t *)memory) + (size_t)SKY_STORE_SPARES * cfg->slot_bytes <= needed);
    store->secret[0] = seed;
    store->secret[1] = (seed ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull; /* two different words of one secret */
    SKY_StoreTenants_Set(store, &none);
    forget_all(store);
    SKY_ASSERT(store->block_index.mask >= cfg->block_count);
    SKY_ASSERT(store->chunk_index.mask >= cfg->slot_count);
    return true;
}
