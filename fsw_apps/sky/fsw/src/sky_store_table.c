/**
 * @file
 * The tables of the chunk store, their memory, and the life of their entries: see sky_store_table.h.
 */
#include "sky_store_table.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_index.h"
#include "sky_store_tenants.h"

#define ROW_BYTES 1024u /* bytes of the store for which the index has one row */

/* ---- names and look-up --------------------------------------------------------------------------------------------- */

void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key)
{
    name[0] = tenant;
    (void)memcpy(&name[1], key, SKY_KEY_BYTES);
}

static uint64_t chunk_name(uint32_t block, uint32_t chunk_id)
{
    return ((uint64_t)block << 32) | chunk_id;
}

uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash)
{
    uint32_t block = store->blocks_by_hash[hash & store->index_mask];

    while (block != NONE && (block_at(store, block)->hash != hash ||
                             memcmp(block_at(store, block)->name, name, sizeof(block_at(store, block)->name)) != 0))
    {
        block = block_at(store, block)->next_hash;
    }
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    SKY_ASSERT(block == NONE || block_at(store, block)->first != NONE);
    return block;
}

uint32_t SKY_StoreTable_FindChunk(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint64_t name  = chunk_name(block, chunk_id);
    const uint32_t hash  = SKY_Hash(store->secret, &name, 1);
    uint32_t       chunk = store->chunks_by_hash[hash & store->index_mask];
    SKY_ASSERT(block < store->slab.fresh_unit);

    while (chunk != NONE && chunk_name(chunk_at(store, chunk)->block, chunk_at(store, chunk)->chunk_id) != name)
    {
        chunk = chunk_at(store, chunk)->next_hash;
    }
    SKY_ASSERT(chunk == NONE || chunk_at(store, chunk)->hash == hash);
    return chunk;
}

/* ---- life of blocks and chunks ------------------------------------------------------------------------------------ */

void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index)
{
    SKY_ASSERT(index < store->slab.fresh_unit);
    if (store->by_use.newest != index)
    {
        SKY_StoreTenants_Unlink(store, index);
        SKY_StoreTenants_Link(store, index);
    }
    SKY_ASSERT(store->by_use.newest == index);
    SKY_ASSERT(store->tenants[block_at(store, index)->row].by_use.newest == index);
}

/* Take a cell for a tenant. Room has been made. */
static uint32_t take_cell(SKY_Store_t *store, uint32_t row, uint32_t class_id)
{
    bool           took_slot = false;
    const uint32_t cell      = SKY_Slab_Take(&store->slab, row, class_id, &took_slot);

    SKY_ASSERT(store->slab.used <= store->cfg.slot_count);
    if (took_slot)
    {
        SKY_StoreTenants_TakeSlot(store, row);
    }
    SKY_ASSERT(store->tenants[row].used > 0);
    return cell;
}

static void give_cell(SKY_Store_t *store, uint32_t row, uint32_t cell)
{
    SKY_ASSERT(store->tenants[row].used > 0);
    if (SKY_Slab_Give(&store->slab, cell))
    {
        SKY_StoreTenants_GiveSlot(store, row);
    }
    SKY_ASSERT(store->tenants[row].used <= store->slab.used);
}

static void block_free(SKY_Store_t *store, uint32_t index)
{
    const SKY_StoreBlock_t *block = block_at(store, index);
    uint32_t               *at    = &store->blocks_by_hash[block->hash & store->index_mask];
    SKY_ASSERT(block->first == NONE);
    SKY_ASSERT(block->held == 0);
    SKY_ASSERT(store->counters.blocks > 0);

    while (*at != index) /* every block is in the index */
    {
        SKY_ASSERT(*at != NONE);
        at = &block_at(store, *at)->next_hash;
    }
    *at = block->next_hash;
    SKY_StoreTenants_Unlink(store, index);
    SKY_ASSERT(store->tenants[block->row].blocks > 0);
    --store->tenants[block->row].blocks;
    --store->counters.blocks;
    give_cell(store, block->row, index);
}

static bool is_hinted(const SKY_StoreChunk_t *chunk)
{
    return chunk->home.plane != 0;
}

static void chunk_free(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreChunk_t *chunk = chunk_at(store, index);
    SKY_StoreBlock_t *block = block_at(store, chunk->block);
    uint32_t         *at    = &store->chunks_by_hash[chunk->hash & store->index_mask];
    SKY_ASSERT(chunk->block < store->slab.fresh_unit);
    SKY_ASSERT(block->held + store->counters.partial <= store->counters.chunks);
    SKY_ASSERT(chunk->prev == NONE ? block->first == index : chunk_at(store, chunk->prev)->next == index);
    SKY_ASSERT(chunk->next == NONE || chunk_at(store, chunk->next)->prev == index);
    SKY_ASSERT(store->counters.chunks > 0);

    while (*at != index) /* every chunk is in the index */
    {
        SKY_ASSERT(*at != NONE);
        at = &chunk_at(store, *at)->next_hash;
    }
    *at = chunk->next_hash;
    if (chunk->prev == NONE)
    {
        block->first = chunk->next;
    }
    else
    {
        chunk_at(store, chunk->prev)->next = chunk->next;
    }
    if (chunk->next != NONE)
    {
        chunk_at(store, chunk->next)->prev = chunk->prev;
    }
    if (chunk->complete)
    {
        SKY_ASSERT(block->held > 0);
        SKY_ASSERT(store->counters.bytes >= chunk->len);
        --block->held;
        block->suspect_us = 0;
        block->lowest     = chunk->chunk_id == block->lowest ? NONE : block->lowest;
        store->counters.bytes -= chunk->len;
        store->counters.hinted -= is_hinted(chunk) ? 1u : 0u;
        store->counters.leaving -= chunk->leaves ? 1u : 0u;
    }
    else
    {
        SKY_ASSERT(store->counters.partial > 0);
        --store->counters.partial;
    }
    --store->counters.chunks;
    give_cell(store, block->row, index);
}

void SKY_StoreTable_DropChunk(SKY_Store_t *store, uint32_t index)
{
    SKY_ASSERT(store->counters.chunks > 0);
    const uint32_t block = chunk_at(store, index)->block;

    SKY_ASSERT(block < store->slab.fresh_unit);
    chunk_free(store, index);
    if (block_at(store, block)->first == NONE)
    {
        block_free(store, block);
    }
}

uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreBlock_t *block = block_at(store, index);
    const uint32_t    held  = block->held;
    SKY_ASSERT(index < store->slab.fresh_unit);
    SKY_ASSERT(held <= store->counters.chunks);

    while (block->first != NONE)
    {
        chunk_free(store, block->first);
    }
    SKY_ASSERT(block->held == 0);
    block_free(store, index);
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

/* ---- room --------------------------------------------------------------------------------------------------------- */

static void evict(SKY_Store_t *store, uint32_t index)
{
    const SKY_StoreBlock_t *block  = block_at(store, index);
    SKY_StoreTenant_t      *tenant = &store->tenants[block->row];
    SKY_ASSERT(store->evicted_count < SKY_STORE_EVICTS);
    SKY_ASSERT(block->first != NONE);
    SKY_ASSERT(block->row < store->tenant_count);

    SKY_StoreTable_Info(block, &store->evicted[store->evicted_count]);
    ++store->evicted_count;
    ++store->counters.evicted_blocks;
    store->counters.evicted_chunks += block->held;
    const uint32_t hinted = store->counters.hinted;
    tenant->evicted_chunks += block->held;
    (void)SKY_StoreTable_DropBlock(store, index);
    SKY_ASSERT(store->counters.hinted <= hinted);
    store->counters.evicted_hinted += hinted - store->counters.hinted;
}

/* Evict the blocks with a chunk in a slot, but not @p block. They belong to one tenant. */
static void evict_mates(SKY_Store_t *store, uint32_t slot, uint32_t block)
{
    SKY_ASSERT(store->evicted_count >= 1);
    uint32_t from  = 0;
    uint32_t chunk = SKY_Slab_Next(&store->slab, slot, &from);

    while (chunk != NONE && store->evicted_count < SKY_STORE_EVICTS)
    {
        const uint32_t mate = chunk_at(store, chunk)->block;

        SKY_ASSERT(from <= SKY_SLAB_PARTS_MAX);
        if (mate != block)
        {
            evict(store, mate);
        }
        chunk = SKY_Slab_Next(&store->slab, slot, &from);
    }
}

/* Return true if there is room for a chunk of this class, and for a block if @p block is NONE. */
static bool has_room_for(const SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t class_id, uint32_t *victim)
{
    SKY_ASSERT(row < store->tenant_count);
    const bool has_block = block != NONE || SKY_Slab_HasCell(&store->slab, row, SKY_SLAB_ENTRIES);
    const bool has_chunk = SKY_Slab_HasCell(&store->slab, row, class_id);

    SKY_ASSERT(class_id != SKY_SLAB_ENTRIES);
    return SKY_StoreTenants_HasRoom(store, row, block, (has_block ? 0u : 1u) + (has_chunk ? 0u : 1u), victim);
}

bool SKY_StoreTable_MakeRoom(SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t len, bool evicts)
{
    const uint32_t class_id = SKY_Slab_ClassFor(&store->slab, CHUNK_HEAD + len);
    uint32_t       victim   = NONE;
    bool           has_room = has_room_for(store, row, block, class_id, &victim);
    SKY_ASSERT(block == NONE || !evicts || store->by_use.newest == block); /* so it is no victim, unless it is the only one */
    SKY_ASSERT(block == NONE || block_at(store, block)->row == row);

    while (evicts && victim != NONE && store->evicted_count < SKY_STORE_EVICTS)
    {
        const uint32_t slot = SKY_Slab_SlotOf(&store->slab, block_at(store, victim)->first);
        const uint32_t used = store->slab.used;

        evict(store, victim);
        has_room = has_room_for(store, row, block, class_id, &victim);
        if (!has_room && store->slab.used == used)
        {
            evict_mates(store, slot, block);
            has_room = has_room_for(store, row, block, class_id, &victim);
        }
    }
    store->tenants[row].refused += has_room ? 0u : 1u;
    return has_room;
}

/* ---- new ones ----------------------------------------------------------------------------------------------------- */

uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash, uint32_t row)
{
    const uint32_t    index = take_cell(store, row, SKY_SLAB_ENTRIES);
    SKY_StoreBlock_t *block = block_at(store, index);
    uint32_t         *head  = &store->blocks_by_hash[hash & store->index_mask];

    (void)memset(block, 0, sizeof(*block));
    (void)memcpy(block->name, name, sizeof(block->name));
    block->hash      = hash;
    block->next_hash = *head;
    *head            = index;
    block->first     = NONE;
    block->row       = (uint16_t)row;
    SKY_StoreTenants_Link(store, index);
    ++store->tenants[row].blocks;
    ++store->counters.blocks;
    SKY_ASSERT(store->by_use.newest == index);
    SKY_ASSERT(store->tenants[row].blocks <= store->counters.blocks);
    return index;
}

uint32_t SKY_StoreTable_NewChunk(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt)
{
    SKY_StoreBlock_t *block = block_at(store, block_index);
    const uint64_t    name  = chunk_name(block_index, pkt->chunk_id);
    SKY_ASSERT(block_index < store->slab.fresh_unit);
    SKY_ASSERT(pkt->chunk_len <= store->cfg.slot_bytes);
    const uint32_t    index = take_cell(store, block->row, SKY_Slab_ClassFor(&store->slab, CHUNK_HEAD + pkt->chunk_len));
    SKY_StoreChunk_t *chunk = chunk_at(store, index);

    (void)memset(chunk, 0, sizeof(*chunk));
    chunk->hash      = SKY_Hash(store->secret, &name, 1);
    uint32_t *head   = &store->chunks_by_hash[chunk->hash & store->index_mask];
    chunk->next_hash = *head;
    *head            = index;
    chunk->block     = block_index;
    chunk->chunk_id  = pkt->chunk_id;
    chunk->len       = pkt->chunk_len;
    chunk->crc32c    = pkt->chunk_crc;
    chunk->prev      = NONE;
    chunk->next      = block->first;
    if (block->first != NONE)
    {
        chunk_at(store, block->first)->prev = index;
    }
    block->first = index;
    ++store->counters.chunks;
    ++store->counters.partial;
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
    SKY_ASSERT(store->counters.blocks <= store->counters.chunks); /* each block has a chunk */
    return index;
}

void SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero)
{
    SKY_StoreChunk_t *chunk = chunk_at(store, index);
    SKY_StoreBlock_t *block = block_at(store, chunk->block);
    SKY_ASSERT(chunk->block < store->slab.fresh_unit);

    SKY_ASSERT(!chunk->complete);
    SKY_ASSERT(store->counters.partial > 0);
    chunk->crc16_from_zero = crc16_from_zero;
    chunk->complete        = true;
    store->completed       = true;
    if (block->held == 0 || (block->lowest != NONE && chunk->chunk_id < block->lowest))
    {
        block->lowest = chunk->chunk_id;
    }
    ++block->held;
    store->counters.bytes += chunk->len;
    store->counters.hinted += is_hinted(chunk) ? 1u : 0u;
    --store->counters.partial;
    SKY_ASSERT(block->held <= block->stripe.chunk_total);
    SKY_ASSERT(block->lowest == NONE || block->lowest <= chunk->chunk_id);
}

void SKY_StoreTable_SetHome(SKY_Store_t *store, uint32_t index, SKY_Addr_t home)
{
    SKY_StoreChunk_t *chunk = chunk_at(store, index);
    SKY_ASSERT(chunk->complete);

    if (is_hinted(chunk) || chunk->leaves)
    {
        store->counters.leaving -= chunk->leaves ? 1u : 0u;
        store->counters.hinted -= is_hinted(chunk) ? 1u : 0u;
        chunk->leaves = false;
        chunk->home   = home;
        store->counters.hinted += is_hinted(chunk) ? 1u : 0u;
    }
    SKY_ASSERT(store->counters.hinted <= store->counters.chunks);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SKY_SLAB_ALIGNMENT - 1u) / SKY_SLAB_ALIGNMENT * SKY_SLAB_ALIGNMENT;
}

/* Return the bytes of a slot: a chunk of the largest size, or an entry, fits. */
static uint32_t slot_bytes_of(const SKY_StoreCfg_t *cfg)
{
    SKY_ASSERT(cfg->slot_bytes >= 1);
    const uint64_t bytes = (uint64_t)cfg->slot_bytes + CHUNK_HEAD;

    SKY_ASSERT(bytes <= SKY_SLAB_SLOT_BYTES);
    return (uint32_t)aligned(bytes > sizeof(SKY_StoreBlock_t) ? bytes : sizeof(SKY_StoreBlock_t));
}

static uint32_t index_rows(const SKY_StoreCfg_t *cfg)
{
    SKY_ASSERT(cfg->slot_count >= SKY_STORE_SLOTS_MIN);
    const uint64_t wanted = (uint64_t)slot_bytes_of(cfg) * cfg->slot_count / ROW_BYTES;
    uint32_t       rows   = 1;

    while (rows < wanted)
    {
        rows *= 2u;
    }
    SKY_ASSERT(rows >= wanted);
    return rows;
}

static bool cfg_ok(const SKY_StoreCfg_t *cfg)
{
    return cfg->slot_bytes >= 1 && cfg->slot_bytes <= SKY_LIMIT_CHUNK_BYTES && cfg->slot_count >= SKY_STORE_SLOTS_MIN &&
           SKY_Slab_MemoryBytes(slot_bytes_of(cfg), cfg->slot_count) != 0;
}

size_t SKY_Store_MemoryBytes(const SKY_StoreCfg_t *cfg)
{
    if (!cfg_ok(cfg))
    {
        return 0;
    }
    const uint64_t bytes = SKY_SLAB_ALIGNMENT - 1u + 2u * aligned((uint64_t)index_rows(cfg) * sizeof(uint32_t)) +
                           SKY_Slab_MemoryBytes(slot_bytes_of(cfg), cfg->slot_count) +
                           (uint64_t)SKY_STORE_SPARES * cfg->slot_bytes;
    return (size_t)bytes == bytes ? (size_t)bytes : 0; /* 32-bit processors cannot have more */
}

/* Note that nothing is held. Bytes of 0xFF make every row of the index SKY_STORE_NONE. */
static void forget_all(SKY_Store_t *store)
{
    const size_t bytes = ((size_t)store->index_mask + 1u) * sizeof(uint32_t);
    SKY_ASSERT((store->index_mask & (store->index_mask + 1u)) == 0);

    (void)memset(store->blocks_by_hash, 0xFF, bytes);
    (void)memset(store->chunks_by_hash, 0xFF, bytes);
    store->expire_slot      = 0;
    store->counters.blocks  = 0;
    store->counters.chunks  = 0;
    store->counters.partial = 0;
    store->counters.hinted  = 0;
    store->counters.leaving = 0;
    store->counters.bytes   = 0;
    SKY_Slab_Clear(&store->slab);
    SKY_StoreTenants_Empty(store);
    SKY_ASSERT(store->promised <= store->cfg.slot_count);
}

void SKY_Store_Clear(SKY_Store_t *store)
{
    SKY_ASSERT(store->tenant_count >= 1);
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
    forget_all(store);
}

bool SKY_Store_Init(SKY_Store_t *store, const SKY_StoreCfg_t *cfg, void *memory, size_t memory_bytes, uint64_t seed)
{
    static const SKY_Quotas_t none   = {.count = 0};
    const size_t              needed = SKY_Store_MemoryBytes(cfg);

    if (needed == 0 || memory_bytes < needed)
    {
        return false;
    }
    const uint32_t rows        = index_rows(cfg);
    const size_t   index_bytes = (size_t)aligned((uint64_t)rows * sizeof(uint32_t));
    uint8_t       *at = (uint8_t *)memory + (SKY_SLAB_ALIGNMENT - (uintptr_t)memory % SKY_SLAB_ALIGNMENT) % SKY_SLAB_ALIGNMENT;

    (void)memset(store, 0, sizeof(*store));
    store->cfg            = *cfg;
    store->index_mask     = rows - 1u;
    store->blocks_by_hash = (uint32_t *)(void *)at;
    store->chunks_by_hash = (uint32_t *)(void *)(at + index_bytes);
    at += 2u * index_bytes;
    SKY_Slab_Init(&store->slab, slot_bytes_of(cfg), cfg->slot_count, sizeof(SKY_StoreBlock_t), at);
    store->spare = at + (size_t)SKY_Slab_MemoryBytes(slot_bytes_of(cfg), cfg->slot_count);
    SKY_ASSERT((size_t)(store->spare - (uint8_t *)memory) + (size_t)SKY_STORE_SPARES * cfg->slot_bytes <= needed);
    store->secret[0] = seed;
    store->secret[1] = (seed ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull; /* two different words of one secret */
    SKY_StoreTenants_Set(store, &none);
    forget_all(store);
    SKY_ASSERT(store->tenant_count == 1);
    return true;
}
