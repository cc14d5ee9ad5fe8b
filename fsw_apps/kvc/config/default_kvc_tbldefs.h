/**
 * @file
 * Constants and parts of the tables of KVC.
 */
#ifndef KVC_TBLDEFS_H
#define KVC_TBLDEFS_H

#include "common_types.h"
#include "kvc_interface_cfg.h"

#define KVC_LIMITS_TABLE_NAME    "Limits"    /**< KVC.Limits */
#define KVC_SCHEDULE1_TABLE_NAME "Schedule1" /**< KVC.Schedule1, and so on */
#define KVC_SCHEDULE2_TABLE_NAME "Schedule2"
#define KVC_SCHEDULE3_TABLE_NAME "Schedule3"
#define KVC_SCHEDULE4_TABLE_NAME "Schedule4"

/** Clocks that can time the epoch of a schedule. */
#define KVC_CLOCK_SATELLITE 0u /**< CFE_TIME_GetTime: the schedule goes with it when it is set */
#define KVC_CLOCK_MONOTONIC 1u /**< OS_GetMonotonicTime, seconds modulo 2^32: nobody sets it; good until the processor restarts */

/** A tenant's share of the store, in percent of its slots. */
typedef struct KVC_TenantQuota
{
    uint32 Tenant;
    uint16 ReservedPercent; /**< kept free for it, rounded down to whole slots */
    uint16 MostPercent;     /**< ReservedPercent .. 100, rounded up */
} KVC_TenantQuota_t;

/** One row of the rotation schedule. */
typedef struct KVC_ScheduleRow
{
    uint32 TimeMs; /**< begin of the row, since the schedule's epoch; rising, the first row's is 0 */
    int32  Plane; /**< centre of the window, unrolled: it goes on past the last plane instead of beginning anew, and is at most */
    int32  Slot;  /**< half the torus from the row before. Modulo the torus it is the satellite, counted from 1 */
} KVC_ScheduleRow_t;

#endif
