/**
 * @file
 * Tables of KVC. Fields are naturally aligned, without implicit padding.
 */
#ifndef KVC_TBLSTRUCT_H
#define KVC_TBLSTRUCT_H

#include "common_types.h"
#include "kvc_tbldefs.h"

/** KVC.Limits: how the store's memory is cut up, and what requests may do. A new cut empties the store. */
typedef struct KVC_LimitsTable
{
    uint32 StoreBytes;     /**< memory to use, index included; 0: all of KVC_PLATFORM_STORE_BYTES */
    uint32 SlotBytes;      /**< largest chunk */
    uint32 BlockCount;     /**< blocks that the index has room for; 0: one for each slot */
    uint32 Credit;         /**< chunks of one burst, PUT and GET; fewer are used if their packets exceed SKY_LIB_BURST_MAX */
    uint32 PartLifetimeMs; /**< of an incomplete chunk; less if its PUT has a nearer deadline */
    uint32 MigrateAllFromGround; /**< 1: ground hosts may move all blocks of a tenant, for which no key is needed; 0: refused */
    uint32 Gossip;        /**< 1: neighbours tell each other which blocks were evicted, and purge the rest of them; 0: neither */
    uint32 ScrubPeriodMs; /**< with a schedule, incomplete blocks are looked for once in this time, and purged; 0: they are not */
} KVC_LimitsTable_t;

#endif
