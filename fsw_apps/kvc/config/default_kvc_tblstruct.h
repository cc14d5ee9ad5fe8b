/**
 * @file
 * Tables of KVC. Fields are naturally aligned, without implicit padding.
 */
#ifndef KVC_TBLSTRUCT_H
#define KVC_TBLSTRUCT_H

#include "common_types.h"
#include "kvc_tbldefs.h"

/** KVC.Limits: how the store's memory is cut up, and what one request may take. A new cut empties the store. */
typedef struct KVC_LimitsTable
{
    uint32 StoreBytes;     /**< memory to use, index included; 0: all of KVC_PLATFORM_STORE_BYTES */
    uint32 SlotBytes;      /**< largest chunk */
    uint32 BlockCount;     /**< blocks that the index has room for; 0: one for each slot */
    uint32 Credit;         /**< chunks of one burst, PUT and GET */
    uint32 PartLifetimeMs; /**< of a chunk in parts whose PUT named no deadline */
} KVC_LimitsTable_t;

#endif
