/**
 * @file
 * Chunk store: taking in, finding and forgetting chunks. See sky_store.h; the tables are in sky_store_table.c.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_crc.h"
#include "sky_index.h"
#include "sky_store_table.h"
#include "sky_store_tenants.h"

/* Find a complete chunk. Return NONE if there is none. */
static uint32_t find_complete(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t chunk = block == NONE ? NONE : SKY_StoreTable_FindChunk(store, block, chunk_id);

    SKY_ASSERT(chunk == NONE || chunk_at(store, chunk)->block == block);
    return chunk != NONE && chunk_at(store, chunk)->complete ? chunk : NONE;
}

/* ---- put ---------------------------------------------------------------------------------------------------------- */

/* Get the stripe of a PUT, and check that its chunk is one of that. */
static SKY_Status_t check_stripe(const SKY_Store_t *store, const SKY_Packet_t *pkt, SKY_Stripe_t *stripe)
{
    if (!SKY_Stripe_OfChunk(stripe, pkt))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    SKY_ASSERT(stripe->chunk_len >= pkt->chunk_len);
    SKY_ASSERT(stripe->chunk_len <= SKY_LIMIT_CHUNK_BYTES);
    return stripe->chunk_len > store->cfg.slot_bytes ? SKY_STATUS_TOO_LARGE : SKY_STATUS_OK;
}

/* Take in a part of a chunk. Parts of another version of the chunk make room for the new one. */
static SKY_Status_t put_part(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt, uint32_t index)
{
    SKY_StoreChunk_t *chunk = chunk_at(store, index);
    uint8_t          *data  = data_of(store, index);
    SKY_ASSERT(store->counters.partial > 0);
    SKY_ASSERT(pkt->length < pkt->chunk_len); /* a part is shorter than its chunk */
    SKY_ASSERT(chunk->len == pkt->chunk_len);

    SKY_ASSERT(!chunk->complete);
    SKY_ASSERT(chunk->len <= store->cfg.slot_bytes);
    chunk->home = pkt->home;
    if (chunk->crc32c != pkt->chunk_crc)
    {
        chunk->crc32c = pkt->chunk_crc;
        (void)memset(&chunk->parts, 0, sizeof(chunk->parts));
    }
    if (!SKY_Parts_Add(&chunk->parts, chunk->len, pkt->offset, pkt->length))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    chunk->expires_us = expires_us;
    SKY_ASSERT(pkt->offset + pkt->length <= chunk->len);
    (void)memcpy(data + pkt->offset, pkt->payload, pkt->length);
    if (!SKY_Parts_AllHere(&chunk->parts))
    {
        return SKY_STATUS_OK;
    }
    if (SKY_Crc32c(0, data, chunk->len) != chunk->crc32c)
    {
        SKY_StoreTable_DropChunk(store, index);
        return SKY_STATUS_BAD_CRC;
    }
    SKY_StoreTable_Complete(store, index, SKY_Crc16(0, data, chunk->len));
    return SKY_STATUS_OK;
}

static bool is_declared_as(const SKY_StoreBlock_t *block, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe)
{
    return SKY_Stripe_Equal(&block->stripe, stripe) && block->version == pkt->block_version && block->content == pkt->content;
}

void SKY_Store_RaiseEpoch(SKY_Store_t *store, uint32_t block, uint32_t epoch)
{
    SKY_ASSERT(block < store->slab.fresh_unit);
    if (block_at(store, block)->epoch < epoch)
    {
        block_at(store, block)->epoch = epoch;
    }
    SKY_ASSERT(block_at(store, block)->epoch >= epoch);
}

/* Find the block of a PUT as the packet declares it, or declare it. A block of an earlier version goes, and so does one that has
 * nothing complete and was declared otherwise. @return NONE if there is no room */
static uint32_t declare(SKY_Store_t *store, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe, const uint64_t *name,
                        uint32_t hash)
{
    uint32_t index = SKY_StoreTable_FindBlock(store, name, hash);

    if (index != NONE && !is_declared_as(block_at(store, index), pkt, stripe))
    {
        /* A packet does not contradict complete chunks of its own version. */
        SKY_ASSERT(block_at(store, index)->held == 0 || block_at(store, index)->version < pkt->block_version);
        SKY_ASSERT(block_at(store, index)->version <= pkt->block_version);
        (void)SKY_StoreTable_DropBlock(store, index);
        index = NONE;
    }
    if (index == NONE)
    {
        const uint32_t row = SKY_StoreTenants_RowOf(store, pkt->tenant);

        if (!SKY_StoreTable_MakeRoom(store, row, NONE, pkt->chunk_len, (pkt->flags & SKY_FLAG_FREE) == 0))
        {
            return NONE;
        }
        index = SKY_StoreTable_NewBlock(store, name, hash, row);

        block_at(store, index)->stripe  = *stripe;
        block_at(store, index)->version = pkt->block_version;
        block_at(store, index)->content = pkt->content;
    }
    SKY_ASSERT(is_declared_as(block_at(store, index), pkt, stripe));
    SKY_ASSERT(block_at(store, index)->stripe.chunk_len <= store->cfg.slot_bytes);
    return index;
}

/* Note the PUT of a block, which becomes the newest. What is repaired was not used. */
static void note_put(SKY_Store_t *store, uint32_t index, uint64_t expires_us, const SKY_Packet_t *pkt)
{
    if ((pkt->flags & SKY_FLAG_FREE) == 0)
    {
        SKY_StoreTable_Touch(store, index);
    }
    SKY_Store_RaiseEpoch(store, index, pkt->epoch);
    block_at(store, index)->suspect_us = 0;
    block_at(store, index)->track      = pkt->track;
    if (block_at(store, index)->put_until_us < expires_us)
    {
        block_at(store, index)->put_until_us = expires_us;
    }
    SKY_ASSERT(store->by_use.newest == index || (pkt->flags & SKY_FLAG_FREE) != 0);
    SKY_ASSERT(block_at(store, index)->held <= block_at(store, index)->stripe.chunk_total);
}

/* Find the chunk of a PUT, or make one without parts. Return NONE if there is no room. */
static uint32_t chunk_for(SKY_Store_t *store, uint32_t block, const SKY_Packet_t *pkt)
{
    const uint32_t index  = SKY_StoreTable_FindChunk(store, block, pkt->chunk_id);
    const bool     is_new = block_at(store, block)->first == NONE; /* then there was made room for its chunk, too */
    SKY_ASSERT(!is_new || index == NONE);
    SKY_ASSERT(store->by_use.newest == block || (pkt->flags & SKY_FLAG_FREE) != 0);

    if (index != NONE || (!is_new && !SKY_StoreTable_MakeRoom(store, block_at(store, block)->row, block, pkt->chunk_len,
                                                              (pkt->flags & SKY_FLAG_FREE) == 0)))
    {
        return index;
    }
    return SKY_StoreTable_NewChunk(store, block, pkt);
}

/* Compare a PUT with what is here of its block. @return OK, OLD_VERSION, or BAD_KEY if it contradicts a complete chunk of its version */
static SKY_Status_t compare(const SKY_Store_t *store, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe, uint32_t block)
{
    if (block == NONE)
    {
        return SKY_STATUS_OK;
    }
    const SKY_StoreBlock_t *known = block_at(store, block);
    const uint32_t          held  = find_complete(store, block, pkt->chunk_id);
    SKY_ASSERT(block < store->slab.fresh_unit);
    SKY_ASSERT(held == NONE || chunk_at(store, held)->block == block);
    if (known->version != pkt->block_version)
    {
        return pkt->block_version < known->version ? SKY_STATUS_OLD_VERSION : SKY_STATUS_OK;
    }
    SKY_ASSERT(held == NONE || known->held > 0);
    return (known->held > 0 && !is_declared_as(known, pkt, stripe)) ||
                   (held != NONE && chunk_at(store, held)->crc32c != pkt->chunk_crc)
               ? SKY_STATUS_BAD_KEY
               : SKY_STATUS_OK;
}

SKY_Status_t SKY_Store_Put(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt)
{
    SKY_Stripe_t stripe;
    SKY_Status_t status = check_stripe(store, pkt, &stripe);

    store->evicted_count = 0;
    store->completed     = false;
    if (status != SKY_STATUS_OK)
    {
        return status;
    }
    if (!SKY_Parts_Check(pkt->chunk_len, pkt->offset, pkt->length))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    uint64_t name[NAME_WORDS];
    SKY_StoreTable_Name(name, pkt->tenant, pkt->key);
    const uint32_t hash     = SKY_Hash(store->secret, name, NAME_WORDS);
    const uint32_t known    = SKY_StoreTable_FindBlock(store, name, hash);
    const bool     is_newer = known != NONE && block_at(store, known)->version < pkt->block_version;
    const uint32_t held     = is_newer ? NONE : find_complete(store, known, pkt->chunk_id);
    const bool     is_whole = pkt->length == pkt->chunk_len;

    status = compare(store, pkt, &stripe, known);
    if (status != SKY_STATUS_OK)
    {
        return status;
    }
    if (held == NONE && is_whole && SKY_Crc32c(0, pkt->payload, pkt->length) != pkt->chunk_crc)
    {
        return SKY_STATUS_BAD_CRC;
    }

    /* The packet was checked as far as it can be; it may replace its block and evict another one from here on. */
    const uint32_t block = declare(store, pkt, &stripe, name, hash);
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    SKY_ASSERT(held == NONE || block == known); /* the block of a held chunk was not declared anew */
    if (block == NONE)
    {
        return SKY_STATUS_STORE_FULL;
    }
    note_put(store, block, expires_us, pkt);
    if (held != NONE)
    {
        SKY_StoreTable_SetHome(store, held, pkt->home);
        return SKY_STATUS_OK;
    }
    const uint32_t index = chunk_for(store, block, pkt);
    if (index == NONE)
    {
        return SKY_STATUS_STORE_FULL;
    }
    SKY_ASSERT(index < store->slab.fresh_unit);
    SKY_ASSERT(chunk_at(store, index)->block == block);
    SKY_ASSERT(!chunk_at(store, index)->complete);
    if (!is_whole)
    {
        return put_part(store, expires_us, pkt, index);
    }
    SKY_ASSERT(chunk_at(store, index)->len == pkt->length);
    chunk_at(store, index)->crc32c = pkt->chunk_crc; /* it may have had parts of another version */
    chunk_at(store, index)->home   = pkt->home;
    (void)memcpy(data_of(store, index), pkt->payload, pkt->length);
    SKY_StoreTable_Complete(store, index, pkt->payload_crc16);
    return SKY_STATUS_OK;
}

/* ---- look up ------------------------------------------------------------------------------------------------------ */

uint32_t SKY_Store_Find(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key)
{
    SKY_ASSERT(store->counters.blocks <= store->counters.chunks);
    uint64_t name[NAME_WORDS];

    SKY_StoreTable_Name(name, tenant, key);
    return SKY_StoreTable_FindBlock(store, name, SKY_Hash(store->secret, name, NAME_WORDS));
}

uint32_t SKY_Store_FindInstance(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint64_t version, uint32_t content)
{
    const uint32_t block = SKY_Store_Find(store, tenant, key);

    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    return block != NONE && (version == 0 || block_at(store, block)->version == version) &&
                   (content == 0 || block_at(store, block)->content == content)
               ? block
               : NONE;
}

SKY_Status_t SKY_Store_Peek(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id, SKY_ChunkView_t *view)
{
    const uint32_t index = find_complete(store, block, chunk_id);

    if (index == NONE)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    view->data            = data_of(store, index);
    view->len             = chunk_at(store, index)->len;
    view->crc32c          = chunk_at(store, index)->crc32c;
    view->crc16_from_zero = chunk_at(store, index)->crc16_from_zero;
    view->home            = chunk_at(store, index)->home;
    SKY_ASSERT(view->len >= 1);
    SKY_ASSERT(view->len <= store->cfg.slot_bytes);
    return SKY_STATUS_OK;
}

void SKY_Store_Use(SKY_Store_t *store, uint32_t block)
{
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    if (block != NONE)
    {
        SKY_StoreTable_Touch(store, block);
        SKY_ASSERT(store->by_use.newest == block);
    }
}

SKY_Status_t SKY_Store_Get(SKY_Store_t *store, uint32_t block, uint32_t chunk_id, SKY_ChunkView_t *view)
{
    const SKY_Status_t status = SKY_Store_Peek(store, block, chunk_id, view);

    if (status == SKY_STATUS_OK)
    {
        SKY_StoreTable_Touch(store, block);
        SKY_ASSERT(store->by_use.newest == block);
    }
    return status;
}

bool SKY_Store_Has(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    return find_complete(store, block, chunk_id) != NONE;
}

SKY_Status_t SKY_Store_Block(const SKY_Store_t *store, uint32_t block, SKY_BlockInfo_t *info)
{
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    if (block == NONE || block_at(store, block)->held == 0)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    SKY_StoreTable_Info(block_at(store, block), info);
    return SKY_STATUS_OK;
}

void SKY_Store_Instance(const SKY_Store_t *store, uint32_t block, uint64_t *version, uint32_t *content)
{
    SKY_ASSERT(block < store->slab.fresh_unit);
    SKY_ASSERT(block_at(store, block)->first != NONE);
    *version = block_at(store, block)->version;
    *content = block_at(store, block)->content;
}

void SKY_Store_Suspect(SKY_Store_t *store, uint32_t block, uint64_t since_us)
{
    SKY_ASSERT(block < store->slab.fresh_unit);
    SKY_ASSERT(block_at(store, block)->held > 0);
    block_at(store, block)->suspect_us = since_us;
    SKY_ASSERT(block_at(store, block)->first != NONE);
}

uint32_t SKY_Store_NextChunk(SKY_Store_t *store, uint32_t block, uint32_t from)
{
    uint32_t lowest = NONE;
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);

    if (block == NONE || block_at(store, block)->held == 0)
    {
        return NONE;
    }
    if (block_at(store, block)->lowest != NONE && block_at(store, block)->lowest >= from)
    {
        return block_at(store, block)->lowest;
    }
    for (uint32_t i = block_at(store, block)->first; i != NONE; i = chunk_at(store, i)->next)
    {
        const SKY_StoreChunk_t *chunk = chunk_at(store, i);

        if (chunk->complete && chunk->chunk_id >= from && chunk->chunk_id < lowest)
        {
            lowest = chunk->chunk_id;
        }
    }
    SKY_ASSERT(from > 0 || lowest != NONE); /* the block holds a chunk */
    if (from == 0)
    {
        block_at(store, block)->lowest = lowest;
    }
    SKY_ASSERT(lowest == NONE || lowest >= from);
    return lowest;
}

bool SKY_Store_EachChunk(const SKY_Store_t *store, uint32_t block, uint32_t *cursor, uint32_t *chunk_id)
{
    SKY_ASSERT(block == NONE || block < store->slab.fresh_unit);
    SKY_ASSERT(*cursor <= store->slab.fresh_unit);
    if (block == NONE)
    {
        return false;
    }
    uint32_t chunk = *cursor == 0 ? block_at(store, block)->first : chunk_at(store, *cursor - 1u)->next;

    while (chunk != NONE && !chunk_at(store, chunk)->complete)
    {
        chunk = chunk_at(store, chunk)->next;
    }
    if (chunk == NONE)
    {
        return false;
    }
    SKY_ASSERT(chunk_at(store, chunk)->block == block);
    SKY_ASSERT(chunk < store->slab.fresh_unit);
    *cursor   = chunk + 1u;
    *chunk_id = chunk_at(store, chunk)->chunk_id;
    return true;
}

SKY_Addr_t SKY_Store_HomeOf(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    static const SKY_Addr_t own   = {0, 0};
    const uint32_t          index = store->counters.hinted == 0 ? NONE : find_complete(store, block, chunk_id);

    SKY_ASSERT(store->counters.hinted <= store->counters.chunks);
    SKY_ASSERT(index == NONE || chunk_at(store, index)->complete);
    return index == NONE ? own : chunk_at(store, index)->home;
}

bool SKY_Store_NextBlock(const SKY_Store_t *store, uint32_t *cursor, SKY_BlockInfo_t *info)
{
    SKY_ASSERT(store->slab.fresh_slot <= store->slab.slot_count);
    const SKY_Slab_t *slab = &store->slab;
    uint32_t          slot = *cursor == 0 ? 0 : (*cursor - 1u) / slab->slot_units;
    uint32_t          from = 0;

    if (*cursor != 0)
    {
        from = (*cursor - 1u) % slab->slot_units / slab->units[SKY_SLAB_ENTRIES] + 1u; /* behind the block before */
    }
    for (; slot < slab->fresh_slot; ++slot)
    {
        uint32_t index = SKY_Slab_ClassOf(slab, slot) == SKY_SLAB_ENTRIES ? SKY_Slab_Next(slab, slot, &from) : NONE;

        while (index != NONE && block_at(store, index)->held == 0)
        {
            index = SKY_Slab_Next(slab, slot, &from);
        }
        if (index != NONE)
        {
            SKY_ASSERT(block_at(store, index)->first != NONE);
            *cursor = index + 1u;
            SKY_StoreTable_Info(block_at(store, index), info);
            return true;
        }
        from = 0;
    }
    return false;
}

bool SKY_Store_NextUsed(const SKY_Store_t *store, SKY_StoreWalk_t *walk, SKY_BlockInfo_t *info)
{
    uint32_t index;

    if (walk->used != 0 && SKY_Slab_IsEntry(&store->slab, walk->at) && block_at(store, walk->at)->used == walk->used)
    {
        index = block_at(store, walk->at)->older[LIST_ALL];
    }
    else
    {
        index = store->by_use.newest;
        while (index != NONE && walk->used != 0 && block_at(store, index)->used >= walk->used)
        {
            index = block_at(store, index)->older[LIST_ALL];
        }
    }
    while (index != NONE && block_at(store, index)->held == 0)
    {
        index = block_at(store, index)->older[LIST_ALL];
    }
    if (index == NONE)
    {
        return false;
    }
    SKY_ASSERT(walk->used == 0 || block_at(store, index)->used < walk->used);
    SKY_ASSERT(index < store->slab.fresh_unit);
    SKY_ASSERT(block_at(store, index)->held > 0);
    walk->used = block_at(store, index)->used;
    walk->at   = index;
    SKY_StoreTable_Info(block_at(store, index), info);
    return true;
}

/* ---- forget ------------------------------------------------------------------------------------------------------- */

bool SKY_StoreBounds_Hold(const SKY_StoreBounds_t *bounds, uint64_t version, uint32_t content, uint32_t epoch)
{
    if (bounds->version != 0 && version != bounds->version)
    {
        return version < bounds->version;
    }
    return (bounds->content == 0 || content == bounds->content) && epoch <= bounds->epoch;
}

uint32_t SKY_Store_Purge(SKY_Store_t *store, uint32_t tenant, const uint8_t *key, const SKY_StoreBounds_t *bounds)
{
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
    const uint32_t          index = SKY_Store_Find(store, tenant, key);
    const SKY_StoreBlock_t *block = index != NONE ? block_at(store, index) : NULL;

    SKY_ASSERT(index == NONE || index < store->slab.fresh_unit);
    return block == NULL || (bounds != NULL && !SKY_StoreBounds_Hold(bounds, block->version, block->content, block->epoch))
               ? 0
               : SKY_StoreTable_DropBlock(store, index);
}

bool SKY_Store_Drop(SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t index = find_complete(store, block, chunk_id);

    if (index != NONE)
    {
        SKY_ASSERT(index < store->slab.fresh_unit);
        SKY_ASSERT(chunk_at(store, index)->complete);
        SKY_ASSERT(block_at(store, chunk_at(store, index)->block)->held > 0);
        SKY_StoreTable_DropChunk(store, index);
    }
    return index != NONE;
}

bool SKY_Store_Leaves(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t index = store->counters.leaving == 0 ? NONE : find_complete(store, block, chunk_id);

    SKY_ASSERT(store->counters.leaving <= store->counters.chunks);
    SKY_ASSERT(index == NONE || chunk_at(store, index)->complete);
    return index != NONE && chunk_at(store, index)->leaves;
}

void SKY_Store_Leave(SKY_Store_t *store, uint32_t block, uint32_t chunk_id, uint64_t until_us)
{
    static const SKY_Addr_t own   = {0, 0};
    const uint32_t          index = find_complete(store, block, chunk_id);

    if (index != NONE && chunk_at(store, index)->home.plane != 0)
    {
        SKY_StoreTable_SetHome(store, index, own);
        chunk_at(store, index)->leaves     = true;
        chunk_at(store, index)->expires_us = until_us;
        ++store->counters.leaving;
    }
    SKY_ASSERT(store->counters.leaving <= store->counters.chunks);
    SKY_ASSERT(index == NONE || !chunk_at(store, index)->leaves || store->counters.leaving > 0);
}

/* Forget the parts in a slot whose time is over, and chunks that leave. Return the number of partial chunks that were given up. */
static uint32_t expire_slot(SKY_Store_t *store, uint64_t now_us, uint32_t slot)
{
    uint32_t from = 0, gone = 0;
    uint32_t index = SKY_Slab_ClassOf(&store->slab, slot) != SKY_SLAB_ENTRIES ? SKY_Slab_Next(&store->slab, slot, &from) : NONE;

    while (index != NONE)
    {
        const SKY_StoreChunk_t *chunk = chunk_at(store, index);

        SKY_ASSERT(from <= SKY_SLAB_PARTS_MAX);
        if ((!chunk->complete || chunk->leaves) && now_us >= chunk->expires_us)
        {
            gone += chunk->complete ? 0u : 1u;
            SKY_StoreTable_DropChunk(store, index);
        }
        index = SKY_Slab_Next(&store->slab, slot, &from);
    }
    return gone;
}

uint32_t SKY_Store_Expire(SKY_Store_t *store, uint64_t now_us, uint32_t most)
{
    const uint32_t looks = most < store->slab.fresh_slot ? most : store->slab.fresh_slot;
    uint32_t       gone  = 0;

    for (uint32_t i = 0; i < looks && store->counters.partial + store->counters.leaving > 0; ++i)
    {
        const uint32_t slot = store->expire_slot < store->slab.fresh_slot ? store->expire_slot : 0;

        store->expire_slot = slot + 1u;
        gone += expire_slot(store, now_us, slot);
    }
    store->counters.expired_partial += gone;
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
    SKY_ASSERT(store->expire_slot <= store->cfg.slot_count);
    return gone;
}
