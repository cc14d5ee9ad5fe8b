/**
 * @file
 * Tables of KVC. Fields are naturally aligned, without implicit padding.
 */
#ifndef KVC_TBLSTRUCT_H
#define KVC_TBLSTRUCT_H

#include "common_types.h"
#include "kvc_tbldefs.h"

/**
 * KVC.Limits: how the store's memory is divided, and what requests may do. A new division empties the store. New quotas of tenants
 * count at once, but evict nothing by themselves: a tenant that has more than they allow shrinks with its own puts (sky_store.h).
 */
typedef struct KVC_LimitsTable
{
    uint32 StoreBytes;     /**< memory to use, index included; 0: all of KVC_PLATFORM_STORE_BYTES */
    uint32 SlotBytes;      /**< largest chunk */
    uint32 Credit;         /**< chunks of one burst, PUT and GET; fewer are used if their packets exceed SKY_NODE_BURST_MAX */
    uint32 PartLifetimeMs; /**< lifetime of an incomplete chunk; less if its PUT has a nearer deadline */
    uint32 MigrateAllFromGround; /**< 1: ground hosts may move all blocks of a tenant, for which no key is needed; 0: refused */
    uint32 Gossip;        /**< 1: neighbours tell each other which blocks were evicted, and purge the rest of them; 0: neither */
    uint32 ScrubPeriodMs; /**< period in which all incomplete blocks are found, and repaired or purged; 0: never */
    uint32 HandoverMs;    /**< time after which an event tells of a late handover, with a schedule; 0: its row's */
    uint32 TenantCount;   /**< rows of Tenant that count; 0: there are no quotas, all tenants share the store */
    uint16
        WindowServers; /**< servers of a sky that does not turn: without a schedule blocks with parity are repaired there; 0: not known */
    uint16 WindowLayout; /**< its layout, as in KVC.Schedule1 */
    uint16 WindowPlane;  /**< its centre, counted from 1 */
    uint16 WindowSlot;
    uint16 OthersReservedPercent; /**< share of all tenants that are not in Tenant, as theirs. Reserves come to 100 at most */
    uint16 OthersMostPercent;
    KVC_TenantQuota_t Tenant[KVC_TENANTS]; /**< each tenant once */
} KVC_LimitsTable_t;

/**
 * KVC.Schedule1 .. KVC.Schedule4: the rotation schedule in segments. Table k has the rows from (k - 1) * KVC_SEGMENT_ROWS + 1 on, as
 * many as there are and fit. A schedule takes effect when all tables that it needs are loaded and agree on it; until then the one
 * before stays. With TotalRows 0 in KVC.Schedule1 there is none, and nothing moves by itself.
 */
typedef struct KVC_ScheduleTable
{
    uint32            EpochS;    /**< epoch of the schedule: seconds on Clock, */
    uint16            EpochMs;   /**< and milliseconds, 0 .. 999 */
    uint16            Clock;     /**< KVC_CLOCK_SATELLITE, which may be set, or KVC_CLOCK_MONOTONIC */
    uint32            Planes;    /**< planes of the constellation that it is for */
    uint32            Slots;     /**< slots of a plane */
    uint32            Layout;    /**< 1 rotation, 2 hop (never moves), 3 rotation_hop, 4 all_planes: SKY_LayoutId_t */
    uint32            Servers;   /**< 1 .. 1,024 */
    uint32            FirstRow;  /**< number of the first row here, from 1 */
    uint32            RowCount;  /**< rows here */
    uint32            TotalRows; /**< rows of all segments */
    uint32            RowsCrc;   /**< CRC-32C of all rows of all segments, as they lie in memory */
    KVC_ScheduleRow_t Row[KVC_SEGMENT_ROWS];
} KVC_ScheduleTable_t;

#endif
