/**
 * @file
 * The tenants of the chunk store: see sky_store.h for the rules.
 *
 * `promised` is the sum over all tenants of the slots that each uses or has reserved, whichever is more. While it is below the number of
 * slots, a tenant above its reserve may take one and leaves the reserves of all others free.
 */
#include "sky_store_tenants.h"

#include <string.h>

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

static void set_tenant(SKY_Store_t *store, uint32_t row, const SKY_Quota_t *quota)
{
    SKY_StoreTenant_t *tenant = &store->tenants[row];
    const uint64_t     slots  = store->cfg.slot_count;
    SKY_ASSERT(row < SKY_STORE_TENANTS);

    (void)memset(tenant, 0, sizeof(*tenant));
    tenant->tenant        = quota->tenant;
    tenant->by_use.newest = NONE;
    tenant->by_use.oldest = NONE;
    tenant->reserved      = (uint32_t)(slots * quota->reserved_percent / SKY_STORE_PERCENT);
    tenant->most          = (uint32_t)((slots * quota->most_percent + SKY_STORE_PERCENT - 1u) / SKY_STORE_PERCENT);
    SKY_ASSERT(tenant->reserved <= tenant->most);
    SKY_ASSERT(tenant->most <= store->cfg.slot_count);
}

/* Sum up what is promised. */
static void promise(SKY_Store_t *store)
{
    SKY_ASSERT(store->tenant_count <= SKY_STORE_TENANTS);
    store->promised = 0;
    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        const SKY_StoreTenant_t *tenant = &store->tenants[row];

        store->promised += tenant->used > tenant->reserved ? tenant->used : tenant->reserved;
    }
    SKY_ASSERT(store->promised >= store->slab.used);
}

void SKY_StoreTenants_Set(SKY_Store_t *store, const SKY_Quotas_t *quotas)
{
    static const SKY_Quota_t all = {.tenant = 0, .reserved_percent = 0, .most_percent = SKY_STORE_PERCENT};
    SKY_ASSERT(SKY_Quotas_AreSound(quotas));

    store->tenant_count = quotas->count + 1u;
    set_tenant(store, SKY_STORE_OTHERS, quotas->count == 0 ? &all : &quotas->others);
    for (uint32_t i = 0; i < quotas->count; ++i)
    {
        set_tenant(store, i + 1u, &quotas->tenants[i]);
    }
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

void SKY_StoreTenants_TakeSlot(SKY_Store_t *store, uint32_t row)
{
    SKY_StoreTenant_t *tenant = &store->tenants[row];
    SKY_ASSERT(row < store->tenant_count);

    store->promised += tenant->used >= tenant->reserved ? 1u : 0u;
    ++tenant->used;
    SKY_ASSERT(tenant->used <= store->slab.used);
    SKY_ASSERT(store->promised >= tenant->used);
    SKY_ASSERT(store->promised >= tenant->reserved);
}

void SKY_StoreTenants_GiveSlot(SKY_Store_t *store, uint32_t row)
{
    SKY_StoreTenant_t *tenant = &store->tenants[row];
    SKY_ASSERT(row < store->tenant_count);
    SKY_ASSERT(tenant->used > 0);

    --tenant->used;
    store->promised -= tenant->used >= tenant->reserved ? 1u : 0u;
    SKY_ASSERT(store->promised >= tenant->used);
    SKY_ASSERT(store->promised >= tenant->reserved);
}

/* ---- order of use --------------------------------------------------------------------------------------------------- */

static void list_remove(SKY_Store_t *store, SKY_StoreList_t *list, uint32_t which, uint32_t index)
{
    const uint32_t newer = block_at(store, index)->newer[which];
    const uint32_t older = block_at(store, index)->older[which];
    SKY_ASSERT(list->newest != NONE);
    SKY_ASSERT(list->oldest != NONE);

    SKY_ASSERT(newer == NONE ? list->newest == index : block_at(store, newer)->older[which] == index);
    SKY_ASSERT(older == NONE ? list->oldest == index : block_at(store, older)->newer[which] == index);
    if (newer == NONE)
    {
        list->newest = older;
    }
    else
    {
        block_at(store, newer)->older[which] = older;
    }
    if (older == NONE)
    {
        list->oldest = newer;
    }
    else
    {
        block_at(store, older)->newer[which] = newer;
    }
}

/* Put a block at the newest end of a list. */
static void list_add(SKY_Store_t *store, SKY_StoreList_t *list, uint32_t which, uint32_t index)
{
    SKY_ASSERT((list->newest == NONE) == (list->oldest == NONE));
    block_at(store, index)->newer[which] = NONE;
    block_at(store, index)->older[which] = list->newest;
    if (list->newest == NONE)
    {
        list->oldest = index;
    }
    else
    {
        SKY_ASSERT(block_at(store, list->newest)->used < block_at(store, index)->used);
        block_at(store, list->newest)->newer[which] = index;
    }
    list->newest = index;
    SKY_ASSERT(block_at(store, list->oldest)->older[which] == NONE);
}

void SKY_StoreTenants_Link(SKY_Store_t *store, uint32_t index)
{
    SKY_StoreBlock_t *block = block_at(store, index);
    SKY_ASSERT(index < store->slab.fresh_unit);
    SKY_ASSERT(block->row < store->tenant_count);
    block->used = ++store->uses;
    list_add(store, &store->by_use, LIST_ALL, index);
    list_add(store, &store->tenants[block->row].by_use, LIST_OWN, index);
    SKY_ASSERT(store->by_use.newest == index);
}

void SKY_StoreTenants_Unlink(SKY_Store_t *store, uint32_t index)
{
    const uint32_t row = block_at(store, index)->row;
    SKY_ASSERT(index < store->slab.fresh_unit);
    SKY_ASSERT(row < store->tenant_count);
    list_remove(store, &store->by_use, LIST_ALL, index);
    list_remove(store, &store->tenants[row].by_use, LIST_OWN, index);
}

void SKY_StoreTenants_Empty(SKY_Store_t *store)
{
    SKY_ASSERT(store->tenant_count >= 1);
    store->by_use.newest = NONE;
    store->by_use.oldest = NONE;
    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        SKY_StoreTenant_t *tenant = &store->tenants[row];

        tenant->by_use.newest = NONE;
        tenant->by_use.oldest = NONE;
        tenant->used          = 0;
        tenant->blocks        = 0;
    }
    promise(store);
    SKY_ASSERT(store->promised <= store->cfg.slot_count);
}

/* Count the slots of tenants in their new rows @p to. */
static void count_slots(SKY_Store_t *store, const uint32_t used[SKY_STORE_TENANTS], const uint32_t to[SKY_STORE_TENANTS])
{
    uint32_t all = 0;

    SKY_Slab_MapRows(&store->slab, to);
    for (uint32_t row = 0; row < SKY_STORE_TENANTS; ++row)
    {
        store->tenants[to[row]].used += used[row];
        all += used[row];
    }
    SKY_ASSERT(all == store->slab.used);
    promise(store);
}

bool SKY_Store_SetQuotas(SKY_Store_t *store, const SKY_Quotas_t *quotas)
{
    uint32_t       numbers[SKY_STORE_TENANTS] = {0}, used[SKY_STORE_TENANTS] = {0}, to[SKY_STORE_TENANTS] = {SKY_STORE_OTHERS};
    const uint32_t rows = store->tenant_count;

    if (!SKY_Quotas_AreSound(quotas))
    {
        return false;
    }
    for (uint32_t row = 0; row < rows; ++row)
    {
        numbers[row] = store->tenants[row].tenant;
        used[row]    = store->tenants[row].used;
    }
    SKY_StoreTenants_Set(store, quotas);
    for (uint32_t row = SKY_STORE_OTHERS + 1u; row < rows; ++row)
    {
        to[row] = SKY_StoreTenants_RowOf(store, numbers[row]);
    }
    count_slots(store, used, to);
    for (uint32_t i = store->by_use.oldest; i != NONE; i = block_at(store, i)->newer[LIST_ALL])
    {
        SKY_StoreBlock_t *block = block_at(store, i);

        block->row = (uint16_t)to[block->row];
        list_add(store, &store->tenants[block->row].by_use, LIST_OWN, i);
        ++store->tenants[block->row].blocks;
    }
    SKY_ASSERT(store->promised >= store->slab.used);
    return true;
}

/* ---- room ----------------------------------------------------------------------------------------------------------- */

/* Return the tenant that has most above its reserve. */
static uint32_t most_above(const SKY_Store_t *store)
{
    uint32_t found = 0, most = 0;

    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        const SKY_StoreTenant_t *tenant = &store->tenants[row];

        if (tenant->used > tenant->reserved && tenant->used - tenant->reserved > most)
        {
            most  = tenant->used - tenant->reserved;
            found = row;
        }
    }
    SKY_ASSERT(most > 0);
    SKY_ASSERT(store->tenants[found].by_use.oldest != NONE);
    return found;
}

/* Return true if a tenant may have so many slots more: neither its quota nor others' reserves are touched. */
static bool may_have(const SKY_Store_t *store, const SKY_StoreTenant_t *tenant, uint32_t slots)
{
    const uint32_t reserved =
        tenant->used < tenant->reserved ? tenant->reserved - tenant->used : 0; /* what it has promised itself */
    const uint32_t more = slots > reserved ? slots - reserved : 0;

    SKY_ASSERT(store->promised >= tenant->used + reserved);
    return tenant->used + slots <= tenant->most && (more == 0 || store->promised + more <= store->cfg.slot_count);
}

bool SKY_StoreTenants_HasRoom(const SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t slots, uint32_t *victim)
{
    const SKY_StoreTenant_t *tenant = &store->tenants[row];
    SKY_ASSERT(row < store->tenant_count);
    SKY_ASSERT(slots <= SKY_STORE_SLOTS_MIN);

    *victim = NONE;
    if (slots == 0)
    {
        return true;
    }
    if (!may_have(store, tenant, slots))
    {
        *victim = tenant->by_use.oldest == block ? NONE : tenant->by_use.oldest;
        return false;
    }
    if (store->cfg.slot_count - store->slab.used >= slots)
    {
        return true;
    }
    /* Someone is above its reserve, as this tenant is below. */
    *victim = store->tenants[most_above(store)].by_use.oldest;
    SKY_ASSERT(*victim == NONE || *victim != block);
    return false;
}
