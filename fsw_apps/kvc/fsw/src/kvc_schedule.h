/**
 * @file
 * Management of the tables KVC.Schedule1 ..: the rotation schedule in segments.
 */
#ifndef KVC_SCHEDULE_H
#define KVC_SCHEDULE_H

#include "cfe.h"
#include "kvc_platform_cfg.h"
#include "kvc_tbl.h"

#define KVC_SEGMENTS ((uint32)KVC_PLATFORM_SCHEDULE_SEGMENTS)
#define KVC_ROWS_MAX (KVC_SEGMENTS * KVC_SEGMENT_ROWS) /**< rows of a schedule */

/** Register and load the tables, and follow their schedule. */
CFE_Status_t KVC_Schedule_Init(void);
/** Let table services act, and take a new schedule over once all its segments are there. */
void KVC_Schedule_Manage(void);
/** Make @p image the table of a segment (from 0), through table services; it is taken over by KVC_Schedule_Manage. */
CFE_Status_t KVC_Schedule_Load(uint32 segment, const KVC_ScheduleTable_t *image);
/** Return the rows of a segment (from 0) of a schedule. */
uint32 KVC_Schedule_RowsOf(uint32 segment, uint32 total_rows);
/** Validate a table. @return CFE_SUCCESS or CFE_STATUS_VALIDATION_FAILURE, with an event that names field and value */
int32 KVC_Schedule_Validate(void *data);

#endif
