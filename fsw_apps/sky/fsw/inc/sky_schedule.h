/**
 * @file
 * Rotation schedule on board: which window holds when, and so where every chunk is at every instant.
 *
 * Rows lie in memory of the caller, in order; row i holds from its time to that of row i + 1, the first also before its time, the
 * last for ever. A row's number counts from 1 and is the *epoch* of the packets' header: a block with epoch e > 0 was prefetched for
 * the window of row e and does not move before that; epoch 0 lies where the window of the moment has it.
 */
#ifndef SKY_SCHEDULE_H
#define SKY_SCHEDULE_H

#include "sky_placement.h"

#define SKY_SCHEDULE_NONE  0u         /**< no row has this number */
#define SKY_SCHEDULE_STAYS UINT32_MAX /**< nor this; a chunk that is prefetched for it never moves by itself */

typedef struct
{
    uint32_t   time_ms; /**< time since the schedule's epoch; the first row's is 0 */
    SKY_Cell_t centre;  /**< unrolled */
} SKY_ScheduleRow_t;

typedef struct
{
    SKY_Placement_t          placement; /**< laid out around the first row's centre, for steps as far as those of the rows */
    const SKY_ScheduleRow_t *rows;
    uint32_t                 count;
    uint64_t                 epoch_us; /**< epoch of the schedule on the clock of now_us; modulo 2^64 if that clock began later */
} SKY_Schedule_t;

/**
 * Take over a schedule.
 * @param rows  stay with the schedule; nothing of them is trusted
 * @return false: what SKY_Placement_Init refuses; no rows; the first time not 0, or times not rising; a centre further than half
 *         the torus from the one before on either axis, or not within +-2^30
 */
bool SKY_Schedule_Init(SKY_Schedule_t *schedule, const SKY_Torus_t *torus, SKY_LayoutId_t layout, uint32_t servers,
                       const SKY_ScheduleRow_t *rows, uint32_t count, uint64_t epoch_us);
/** Return the number of the row that holds at @p now_us, 1 .. count. */
uint32_t SKY_Schedule_RowAt(const SKY_Schedule_t *schedule, uint64_t now_us);
/** Return the time at which the row after @p row begins, UINT64_MAX behind the last. @p row is that of now or a later one. */
uint64_t SKY_Schedule_EndUs(const SKY_Schedule_t *schedule, uint32_t row);
/** Return the satellite at the centre of a row (clamped to 1 .. count). */
SKY_Addr_t SKY_Schedule_Centre(const SKY_Schedule_t *schedule, uint32_t row);
/** Return the satellite of a server in the window of a row (clamped to 1 .. count). */
SKY_Addr_t SKY_Schedule_Server(const SKY_Schedule_t *schedule, uint32_t row, uint32_t server);

#endif
