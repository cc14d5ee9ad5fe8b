/**
 * @file
 * Private to the chunk store: its tenants (sky_store_tenants.c). What each may have and has, and the order of its blocks by last use.
 */
#ifndef SKY_STORE_TENANTS_H
#define SKY_STORE_TENANTS_H

#include "sky_store_priv.h"

/** Return the row of a tenant: its own, or that of the others. Looks at the whole table. */
uint32_t SKY_StoreTenants_RowOf(const SKY_Store_t *store, uint32_t tenant);
/** Take over sound quotas. What tenants hold is not counted yet. */
void SKY_StoreTenants_Set(SKY_Store_t *store, const SKY_Quotas_t *quotas);
/** Note that nothing is held. */
void SKY_StoreTenants_Empty(SKY_Store_t *store);

/** Count one more slot of a tenant. */
void SKY_StoreTenants_TakeSlot(SKY_Store_t *store, uint32_t row);
/** Count one less. */
void SKY_StoreTenants_GiveSlot(SKY_Store_t *store, uint32_t row);

/** Put a block into its lists, as the one used last. */
void SKY_StoreTenants_Link(SKY_Store_t *store, uint32_t index);
void SKY_StoreTenants_Unlink(SKY_Store_t *store, uint32_t index);

/**
 * May a tenant have @p slots more? @p block is the one that gets them, or NONE.
 * @param victim  the block that would have to go first; NONE: room is there, or nothing makes any
 */
bool SKY_StoreTenants_HasRoom(const SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t slots, uint32_t *victim);

#endif
