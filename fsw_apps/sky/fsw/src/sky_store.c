/**
 * @file
 * Chunk store: taking in, finding and forgetting chunks. See sky_store.h; the tables are in sky_store_table.c.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_crc.h"
#include "sky_store_table.h"
#include "sky_store_tenants.h"

/* Return the slot of a complete chunk, or NONE. */
static uint32_t find_complete(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t slot = block == NONE ? NONE : SKY_StoreTable_FindSlot(store, block, chunk_id);

    SKY_ASSERT(slot == NONE || store->slots[slot].block == block);
    return slot != NONE && store->slots[slot].complete ? slot : NONE;
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
    SKY_StoreSlot_t *slot = &store->slots[index];
    uint8_t         *data = SKY_StoreTable_Data(store, index);
    SKY_ASSERT(store->counters.partial > 0);
    SKY_ASSERT(pkt->length < pkt->chunk_len); /* a part is shorter than its chunk */
    SKY_ASSERT(slot->len == pkt->chunk_len);

    SKY_ASSERT(!slot->complete);
    SKY_ASSERT(slot->len <= store->cfg.slot_bytes);
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
    SKY_ASSERT(pkt->offset + pkt->length <= slot->len);
    (void)memcpy(data + pkt->offset, pkt->payload, pkt->length);
    if (!SKY_Parts_AllHere(&slot->parts))
    {
        return SKY_STATUS_OK;
    }
    if (SKY_Crc32c(0, data, slot->len) != slot->crc32c)
    {
        SKY_StoreTable_DropSlot(store, index);
        return SKY_STATUS_BAD_CRC;
    }
    SKY_StoreTable_Complete(store, index, SKY_Crc16(0, data, slot->len));
    return SKY_STATUS_OK;
}

static bool is_declared_as(const SKY_StoreBlock_t *block, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe)
{
    return SKY_Stripe_Equal(&block->stripe, stripe) && block->version == pkt->block_version && block->content == pkt->content;
}

void SKY_Store_RaiseEpoch(SKY_Store_t *store, uint32_t block, uint32_t epoch)
{
    SKY_ASSERT(block < store->fresh_block);
    if (store->blocks[block].epoch < epoch)
    {
        store->blocks[block].epoch = epoch;
    }
    SKY_ASSERT(store->blocks[block].epoch >= epoch);
}

/* Find the block of a PUT as the packet declares it, or declare it. A block of an earlier version goes, and so does one that has
 * nothing complete and was declared otherwise. @return NONE if there is no room */
static uint32_t declare(SKY_Store_t *store, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe, const uint64_t *name,
                        uint32_t hash)
{
    uint32_t index = SKY_StoreTable_FindBlock(store, name, hash);

    if (index != NONE && !is_declared_as(&store->blocks[index], pkt, stripe))
    {
        /* A packet does not contradict complete chunks of its own version. */
        SKY_ASSERT(store->blocks[index].held == 0 || store->blocks[index].version < pkt->block_version);
        SKY_ASSERT(store->blocks[index].version <= pkt->block_version);
        (void)SKY_StoreTable_DropBlock(store, index);
        index = NONE;
    }
    if (index == NONE)
    {
        const uint32_t tenant = SKY_StoreTenants_RowOf(store, pkt->tenant);

        if (!SKY_StoreTable_MakeRoom(store, tenant, NONE, (pkt->flags & SKY_FLAG_FREE) == 0))
        {
            return NONE;
        }
        index = SKY_StoreTable_NewBlock(store, name, hash, tenant);

        store->blocks[index].stripe  = *stripe;
        store->blocks[index].version = pkt->block_version;
        store->blocks[index].content = pkt->content;
    }
    SKY_ASSERT(is_declared_as(&store->blocks[index], pkt, stripe));
    SKY_ASSERT(store->blocks[index].stripe.chunk_len <= store->cfg.slot_bytes);
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
    store->blocks[index].suspect_us = 0;
    store->blocks[index].track      = pkt->track;
    if (store->blocks[index].put_until_us < expires_us)
    {
        store->blocks[index].put_until_us = expires_us;
    }
    SKY_ASSERT(store->by_use.newest == index || (pkt->flags & SKY_FLAG_FREE) != 0);
    SKY_ASSERT(store->blocks[index].held <= store->blocks[index].stripe.chunk_total);
}

/* Return the slot of the chunk of a PUT, an empty one if it had none; NONE if there is no room. */
static uint32_t slot_for(SKY_Store_t *store, uint32_t block, const SKY_Packet_t *pkt)
{
    const uint32_t index  = SKY_StoreTable_FindSlot(store, block, pkt->chunk_id);
    const bool     is_new = store->blocks[block].first == NONE; /* then there was made room for a slot, too */
    SKY_ASSERT(!is_new || index == NONE);
    SKY_ASSERT(store->by_use.newest == block || (pkt->flags & SKY_FLAG_FREE) != 0);

    if (index != NONE ||
        (!is_new && !SKY_StoreTable_MakeRoom(store, store->blocks[block].tenant, block, (pkt->flags & SKY_FLAG_FREE) == 0)))
    {
        return index;
    }
    return SKY_StoreTable_NewSlot(store, block, pkt);
}

/* Compare a PUT with what is here of its block. @return OK, OLD_VERSION, or BAD_KEY if it contradicts a complete chunk of its version */
static SKY_Status_t compare(const SKY_Store_t *store, const SKY_Packet_t *pkt, const SKY_Stripe_t *stripe, uint32_t block)
{
    if (block == NONE)
    {
        return SKY_STATUS_OK;
    }
    const SKY_StoreBlock_t *known = &store->blocks[block];
    const uint32_t          held  = find_complete(store, block, pkt->chunk_id);
    SKY_ASSERT(block < store->fresh_block);
    SKY_ASSERT(held == NONE || store->slots[held].block == block);
    if (known->version != pkt->block_version)
    {
        return pkt->block_version < known->version ? SKY_STATUS_OLD_VERSION : SKY_STATUS_OK;
    }
    SKY_ASSERT(held == NONE || known->held > 0);
    return (known->held > 0 && !is_declared_as(known, pkt, stripe)) ||
                   (held != NONE && store->slots[held].crc32c != pkt->chunk_crc)
               ? SKY_STATUS_BAD_KEY
               : SKY_STATUS_OK;
}

SKY_Status_t SKY_Store_Put(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt)
{
    SKY_Stripe_t stripe;
    SKY_Status_t status = check_stripe(store, pkt, &stripe);

    store->evicted.held = 0;
    store->completed    = false;
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
    const bool     is_newer = known != NONE && store->blocks[known].version < pkt->block_version;
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
    SKY_ASSERT(block == NONE || block < store->fresh_block);
    SKY_ASSERT(held == NONE || block == known); /* the block of a held chunk was not declared anew */
    if (block == NONE)
    {
        return SKY_STATUS_STORE_FULL;
    }
    note_put(store, block, expires_us, pkt);
    if (held != NONE)
    {
        return SKY_STATUS_OK;
    }
    const uint32_t index = slot_for(store, block, pkt);
    if (index == NONE)
    {
        return SKY_STATUS_STORE_FULL;
    }
    SKY_ASSERT(index < store->fresh_slot);
    SKY_ASSERT(store->slots[index].block == block);
    SKY_ASSERT(!store->slots[index].complete);
    if (!is_whole)
    {
        return put_part(store, expires_us, pkt, index);
    }
    SKY_ASSERT(store->slots[index].len == pkt->length);
    store->slots[index].crc32c = pkt->chunk_crc; /* the slot may have had parts of another version */
    (void)memcpy(SKY_StoreTable_Data(store, index), pkt->payload, pkt->length);
    SKY_StoreTable_Complete(store, index, pkt->payload_crc16);
    return SKY_STATUS_OK;
}

/* ---- look up ------------------------------------------------------------------------------------------------------ */

uint32_t SKY_Store_Find(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key)
{
    uint64_t name[NAME_WORDS];

    SKY_StoreTable_Name(name, tenant, key);
    return SKY_StoreTable_FindBlock(store, name, SKY_Hash(store->secret, name, NAME_WORDS));
}

uint32_t SKY_Store_FindInstance(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint64_t version, uint32_t content)
{
    const uint32_t block = SKY_Store_Find(store, tenant, key);

    SKY_ASSERT(block == NONE || block < store->fresh_block);
    return block != NONE && (version == 0 || store->blocks[block].version == version) &&
                   (content == 0 || store->blocks[block].content == content)
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
    view->data            = SKY_StoreTable_Data(store, index);
    view->len             = store->slots[index].len;
    view->crc32c          = store->slots[index].crc32c;
    view->crc16_from_zero = store->slots[index].crc16_from_zero;
    SKY_ASSERT(view->len >= 1);
    SKY_ASSERT(view->len <= store->cfg.slot_bytes);
    return SKY_STATUS_OK;
}

void SKY_Store_Use(SKY_Store_t *store, uint32_t block)
{
    SKY_ASSERT(block == NONE || block < store->fresh_block);
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
    SKY_ASSERT(block == NONE || block < store->fresh_block);
    if (block == NONE || store->blocks[block].held == 0)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    SKY_StoreTable_Info(&store->blocks[block], info);
    return SKY_STATUS_OK;
}

void SKY_Store_Instance(const SKY_Store_t *store, uint32_t block, uint64_t *version, uint32_t *content)
{
    SKY_ASSERT(block < store->fresh_block);
    SKY_ASSERT(store->blocks[block].first != NONE);
    *version = store->blocks[block].version;
    *content = store->blocks[block].content;
}

void SKY_Store_Suspect(SKY_Store_t *store, uint32_t block, uint64_t since_us)
{
    SKY_ASSERT(block < store->fresh_block);
    SKY_ASSERT(store->blocks[block].held > 0);
    store->blocks[block].suspect_us = since_us;
    SKY_ASSERT(store->blocks[block].first != NONE);
}

uint32_t SKY_Store_NextChunk(SKY_Store_t *store, uint32_t block, uint32_t from)
{
    uint32_t lowest = NONE;
    SKY_ASSERT(block == NONE || block < store->fresh_block);

    if (block == NONE || store->blocks[block].held == 0)
    {
        return NONE;
    }
    if (store->blocks[block].lowest != NONE && store->blocks[block].lowest >= from)
    {
        return store->blocks[block].lowest;
    }
    for (uint32_t i = store->blocks[block].first; i != NONE; i = store->slots[i].next)
    {
        const SKY_StoreSlot_t *slot = &store->slots[i];

        if (slot->complete && slot->chunk_id >= from && slot->chunk_id < lowest)
        {
            lowest = slot->chunk_id;
        }
    }
    SKY_ASSERT(from > 0 || lowest != NONE); /* the block holds a chunk */
    if (from == 0)
    {
        store->blocks[block].lowest = lowest;
    }
    SKY_ASSERT(lowest == NONE || lowest >= from);
    return lowest;
}

bool SKY_Store_EachChunk(const SKY_Store_t *store, uint32_t block, uint32_t *cursor, uint32_t *chunk_id)
{
    SKY_ASSERT(block == NONE || block < store->fresh_block);
    SKY_ASSERT(*cursor <= store->fresh_slot);
    if (block == NONE)
    {
        return false;
    }
    uint32_t slot = *cursor == 0 ? store->blocks[block].first : store->slots[*cursor - 1u].next;

    while (slot != NONE && !store->slots[slot].complete)
    {
        slot = store->slots[slot].next;
    }
    if (slot == NONE)
    {
        return false;
    }
    SKY_ASSERT(store->slots[slot].block == block);
    SKY_ASSERT(slot < store->fresh_slot);
    *cursor   = slot + 1u;
    *chunk_id = store->slots[slot].chunk_id;
    return true;
}

bool SKY_Store_NextBlock(const SKY_Store_t *store, uint32_t *cursor, SKY_BlockInfo_t *info)
{
    while (*cursor < store->fresh_block)
    {
        const SKY_StoreBlock_t *block = &store->blocks[*cursor];

        ++*cursor;
        if (block->held > 0)
        {
            SKY_ASSERT(block->first != NONE);
            SKY_ASSERT(*cursor <= store->cfg.block_count);
            SKY_StoreTable_Info(block, info);
            return true;
        }
    }
    return false;
}

bool SKY_Store_NextUsed(const SKY_Store_t *store, SKY_StoreWalk_t *walk, SKY_BlockInfo_t *info)
{
    const SKY_StoreBlock_t *last = &store->blocks[walk->at];
    uint32_t                index;

    if (walk->used != 0 && walk->at < store->fresh_block && last->first != NONE && last->used == walk->used)
    {
        index = last->older[LIST_ALL];
    }
    else
    {
        index = store->by_use.newest;
        while (index != NONE && walk->used != 0 && store->blocks[index].used >= walk->used)
        {
            index = store->blocks[index].older[LIST_ALL];
        }
    }
    while (index != NONE && store->blocks[index].held == 0)
    {
        index = store->blocks[index].older[LIST_ALL];
    }
    if (index == NONE)
    {
        return false;
    }
    SKY_ASSERT(walk->used == 0 || store->blocks[index].used < walk->used);
    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(store->blocks[index].held > 0);
    walk->used = store->blocks[index].used;
    walk->at   = index;
    SKY_StoreTable_Info(&store->blocks[index], info);
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
    const uint32_t          index = SKY_Store_Find(store, tenant, key);
    const SKY_StoreBlock_t *block = index != NONE ? &store->blocks[index] : NULL;

    SKY_ASSERT(index == NONE || index < store->fresh_block);
    return block == NULL || (bounds != NULL && !SKY_StoreBounds_Hold(bounds, block->version, block->content, block->epoch))
               ? 0
               : SKY_StoreTable_DropBlock(store, index);
}

bool SKY_Store_Drop(SKY_Store_t *store, uint32_t block, uint32_t chunk_id)
{
    const uint32_t index = find_complete(store, block, chunk_id);

    if (index != NONE)
    {
        SKY_ASSERT(index < store->fresh_slot);
        SKY_ASSERT(store->slots[index].complete);
        SKY_ASSERT(store->blocks[store->slots[index].block].held > 0);
        SKY_StoreTable_DropSlot(store, index);
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
            SKY_StoreTable_DropSlot(store, index);
            ++gone;
        }
    }
    store->counters.expired_partial += gone;
    SKY_ASSERT(store->counters.partial <= store->counters.slots_used);
    SKY_ASSERT(gone <= looks);
    SKY_ASSERT(store->expire_cursor <= store->cfg.slot_count);
    return gone;
}
