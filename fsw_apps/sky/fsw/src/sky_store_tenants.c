/**
 * @file
 * The tenants of the chunk store: see sky_store.h for the rules.
 *
 * Slots and blocks are counted alike. `promised` is the sum over all tenants of what each uses or has reserved, whichever is more.
 * While it is below the table's size, a tenant above its reserve may take an entry and leaves the reserves of all others free.
 */
#include "sky_store_tenants.h"

#include "sky_assert.h"

/* ---- quotas --------------------------------------------------------------------------------------------------------- */

static bool is_sound(const SKY_Quota_t *quota)
{
    return quota->reserved_percent <= quota->most_percent && quota->most_percent <= SKY_STORE_PERCENT;
}

bool SKY_Quotas_AreSound(const SKY_Quotas_t *quotas)
{
    uint32_t reserved = quotas->others.reserved_percent;

    if (quotas->count == 0)
    {
        return true;
    }
    if (quotas->count > SKY_LIMIT_TENANTS || !is_sound(&quotas->others))
    {
        return false;
    }
    for (uint32_t i = 0; i < quotas->count; ++i)
    {
        if (!is_sound(&quotas->tenants[i]))
        {
            return false;
        }
        reserved += quotas->tenants[i].reserved_percent;
        for (uint32_t k = 0; k < i; ++k)
        {
            if (quotas->tenants[k].tenant == quotas->tenants[i].tenant)
            {
                return false;
            }
        }
    }
    SKY_ASSERT(reserved <= SKY_STORE_TENANTS * SKY_STORE_PERCENT);
    return reserved <= SKY_STORE_PERCENT;
}

static void set_share(SKY_StoreShare_t *share, const SKY_Quota_t *quota, uint32_t entries, uint32_t *promised)
{
    share->reserved = (uint32_t)((uint64_t)entries * quota->reserved_percent / SKY_STORE_PERCENT);
    share->most     = (uint32_t)(((uint64_t)entries * quota->most_percent + SKY_STORE_PERCENT - 1u) / SKY_STORE_PERCENT);
    share->used     = 0;
    *promised += share->reserved;
    SKY_ASSERT(share->reserved <= share->most);
    SKY_ASSERT(share->most <= entries);
}

static void set_tenant(SKY_Store_t *store, uint32_t row, const SKY_Quota_t *quota)
{
    SKY_StoreTenant_t *tenant = &store->tenants[row];
    SKY_ASSERT(row < SKY_STORE_TENANTS);

    tenant->tenant         = quota->tenant;
    tenant->by_use.newest  = NONE;
    tenant->by_use.oldest  = NONE;
    tenant->evicted_chunks = 0;
    tenant->refused        = 0;
    set_share(&tenant->slots, quota, store->cfg.slot_count, &store->promised_slots);
    set_share(&tenant->blocks, quota, store->cfg.block_count, &store->promised_blocks);
    SKY_ASSERT(tenant->blocks.most <= tenant->slots.most);
}

void SKY_StoreTenants_Set(SKY_Store_t *store, const SKY_Quotas_t *quotas)
{
    static const SKY_Quota_t all = {.tenant = 0, .reserved_percent = 0, .most_percent = SKY_STORE_PERCENT};
    SKY_ASSERT(SKY_Quotas_AreSound(quotas));

    store->tenant_count    = quotas->count + 1u;
    store->promised_slots  = 0;
    store->promised_blocks = 0;
    set_tenant(store, SKY_STORE_OTHERS, quotas->count == 0 ? &all : &quotas->others);
    for (uint32_t i = 0; i < quotas->count; ++i)
    {
        set_tenant(store, i + 1u, &quotas->tenants[i]);
    }
    SKY_ASSERT(store->promised_slots <= store->cfg.slot_count);
    SKY_ASSERT(store->promised_blocks <= store->cfg.block_count);
}

uint32_t SKY_StoreTenants_RowOf(const SKY_Store_t *store, uint32_t tenant)
{
    uint32_t row = SKY_STORE_OTHERS + 1u;
    SKY_ASSERT(store->tenant_count <= SKY_STORE_TENANTS);

    while (row < store->tenant_count && store->tenants[row].tenant != tenant)
    {
        ++row;
    }
    SKY_ASSERT(row <= store->tenant_count);
    return row < store->tenant_count ? row : SKY_STORE_OTHERS;
}

/* ---- what tenants hold ---------------------------------------------------------------------------------------------- */

static void take(SKY_StoreShare_t *share, uint32_t *promised)
{
    *promised += share->used >= share->reserved ? 1u : 0u;
    ++share->used;
    SKY_ASSERT(*promised >= share->used);
    SKY_ASSERT(*promised >= share->reserved);
}

static void give(SKY_StoreShare_t *share, uint32_t *promised)
{
    SKY_ASSERT(share->used > 0);
    --share->used;
    *promised -= share->used >= share->reserved ? 1u : 0u;
    SKY_ASSERT(*promised >= share->used);
    SKY_ASSERT(*promised >= share->reserved);
}

void SKY_StoreTenants_TakeSlot(SKY_Store_t *store, uint32_t row)
{
    SKY_ASSERT(row < store->tenant_count);
    take(&store->tenants[row].slots, &store->promised_slots);
    SKY_ASSERT(store->tenants[row].slots.used <= store->cfg.slot_count);
}

void SKY_StoreTenants_TakeBlock(SKY_Store_t *store, uint32_t row)
{
    SKY_ASSERT(row < store->tenant_count);
    take(&store->tenants[row].blocks, &store->promised_blocks);
    SKY_ASSERT(store->tenants[row].blocks.used <= store->cfg.block_count);
}

void SKY_StoreTenants_GiveSlot(SKY_Store_t *store, uint32_t row)
{
    SKY_ASSERT(row < store->tenant_count);
    SKY_ASSERT(store->tenants[row].slots.used <= store->counters.slots_used);
    give(&store->tenants[row].slots, &store->promised_slots);
}

void SKY_StoreTenants_GiveBlock(SKY_Store_t *store, uint32_t row)
{
    SKY_ASSERT(row < store->tenant_count);
    SKY_ASSERT(store->tenants[row].blocks.used <= store->counters.blocks);
    give(&store->tenants[row].blocks, &store->promised_blocks);
}

/* ---- order of use --------------------------------------------------------------------------------------------------- */

static void list_remove(SKY_Store_t *store, SKY_StoreList_t *list, uint32_t which, uint32_t index)
{
    const uint32_t newer = store->blocks[index].newer[which];
    const uint32_t older = store->blocks[index].older[which];
    SKY_ASSERT(list->newest != NONE);
    SKY_ASSERT(list->oldest != NONE);

    SKY_ASSERT(newer == NONE ? list->newest == index : store->blocks[newer].older[which] == index);
    SKY_ASSERT(older == NONE ? list->oldest == index : store->blocks[older].newer[which] == index);
    if (newer == NONE)
    {
        list->newest = older;
    }
    else
    {
        store->blocks[newer].older[which] = older;
    }
    if (older == NONE)
    {
        list->oldest = newer;
    }
    else
    {
        store->blocks[older].newer[which] = newer;
    }
}

/* Put a block at the newest end of a list. */
static void list_add(SKY_Store_t *store, SKY_StoreList_t *list, uint32_t which, uint32_t index)
{
    SKY_ASSERT((list->newest == NONE) == (list->oldest == NONE));
    store->blocks[index].newer[which] = NONE;
    store->blocks[index].older[which] = list->newest;
    if (list->newest == NONE)
    {
        list->oldest = index;
    }
    else
    {
        SKY_ASSERT(store->blocks[list->newest].used < store->blocks[index].used);
        store->blocks[list->newest].newer[which] = index;
    }
    list->newest = index;
    SKY_ASSERT(store->blocks[list->oldest].older[which] == NONE);
}

void SKY_StoreTenants_Link(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreBlock_t *block = &store->blocks[index];
    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(block->tenant < store->tenant_count);
    block->used = ++store->uses;
    list_add(store, &store->by_use, LIST_ALL, index);
    list_add(store, &store->tenants[block->tenant].by_use, LIST_OWN, index);
    SKY_ASSERT(store->by_use.newest == index);
}

void SKY_StoreTenants_Unlink(SKY_Store_t *store, uint32_t index)
{
    SKY_ASSERT(index < store->fresh_block);
    SKY_ASSERT(store->blocks[index].tenant < store->tenant_count);
    list_remove(store, &store->by_use, LIST_ALL, index);
    list_remove(store, &store->tenants[store->blocks[index].tenant].by_use, LIST_OWN, index);
}

void SKY_StoreTenants_Empty(SKY_Store_t *store)
{
    store->by_use.newest   = NONE;
    store->by_use.oldest   = NONE;
    store->promised_slots  = 0;
    store->promised_blocks = 0;
    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        SKY_StoreTenant_t *tenant = &store->tenants[row];

        tenant->by_use.newest = NONE;
        tenant->by_use.oldest = NONE;
        tenant->slots.used    = 0;
        tenant->blocks.used   = 0;
        store->promised_slots += tenant->slots.reserved;
        store->promised_blocks += tenant->blocks.reserved;
    }
    SKY_ASSERT(store->promised_slots <= store->cfg.slot_count);
    SKY_ASSERT(store->promised_blocks <= store->cfg.block_count);
}

bool SKY_Store_SetQuotas(SKY_Store_t *store, const SKY_Quotas_t *quotas)
{
    if (!SKY_Quotas_AreSound(quotas))
    {
        return false;
    }
    SKY_StoreTenants_Set(store, quotas);
    for (uint32_t i = store->by_use.oldest; i != NONE; i = store->blocks[i].newer[LIST_ALL])
    {
        SKY_StoreBlock_t *block = &store->blocks[i];

        block->tenant = (uint16_t)SKY_StoreTenants_RowOf(store, (uint32_t)block->name[0]);
        list_add(store, &store->tenants[block->tenant].by_use, LIST_OWN, i);
        SKY_StoreTenants_TakeBlock(store, block->tenant);
    }
    for (uint32_t i = 0; i < store->fresh_slot; ++i)
    {
        if (store->slots[i].block != NONE)
        {
            SKY_StoreTenants_TakeSlot(store, store->blocks[store->slots[i].block].tenant);
        }
    }
    SKY_ASSERT(store->promised_slots >= store->counters.slots_used);
    SKY_ASSERT(store->promised_blocks >= store->counters.blocks);
    return true;
}

/* ---- room ----------------------------------------------------------------------------------------------------------- */

/** Whose block has to go so that a tenant gets one more entry of a table. */
typedef enum
{
    ROOM_HERE = 0, /* nobody's */
    ROOM_OWN,      /* its own */
    ROOM_OTHERS    /* one of a tenant above its reserve */
} Room_t;

static Room_t room_for(const SKY_StoreShare_t *share, uint32_t promised, uint32_t used, uint32_t entries)
{
    SKY_ASSERT(used <= entries);
    SKY_ASSERT(used <= promised);
    if (share->used >= share->most || (share->used >= share->reserved && promised >= entries))
    {
        return ROOM_OWN;
    }
    return used < entries ? ROOM_HERE : ROOM_OTHERS; /* in a full table someone is above its reserve, as this tenant is below */
}

static const SKY_StoreShare_t *share_of(const SKY_StoreTenant_t *tenant, bool of_slots)
{
    return of_slots ? &tenant->slots : &tenant->blocks;
}

/* Return the tenant that has most above its reserve. */
static uint32_t most_above(const SKY_Store_t *store, bool of_slots)
{
    uint32_t found = 0, most = 0;

    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        const SKY_StoreShare_t *share = share_of(&store->tenants[row], of_slots);

        if (share->used > share->reserved && share->used - share->reserved > most)
        {
            most  = share->used - share->reserved;
            found = row;
        }
    }
    SKY_ASSERT(most > 0);
    SKY_ASSERT(store->tenants[found].by_use.oldest != NONE);
    return found;
}

bool SKY_StoreTenants_HasRoom(const SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t *victim)
{
    const SKY_StoreTenant_t *tenant = &store->tenants[row];
    SKY_ASSERT(row < store->tenant_count);

    const Room_t slots  = room_for(&tenant->slots, store->promised_slots, store->counters.slots_used, store->cfg.slot_count);
    const Room_t blocks = block != NONE
                              ? ROOM_HERE
                              : room_for(&tenant->blocks, store->promised_blocks, store->counters.blocks, store->cfg.block_count);

    *victim = NONE;
    if (slots == ROOM_HERE && blocks == ROOM_HERE)
    {
        return true;
    }
    if (slots == ROOM_OWN || blocks == ROOM_OWN)
    {
        *victim = tenant->by_use.oldest == block ? NONE : tenant->by_use.oldest;
    }
    else
    {
        *victim = store->tenants[most_above(store, slots == ROOM_OTHERS)].by_use.oldest;
    }
    SKY_ASSERT(*victim == NONE || *victim != block);
    return false;
}
