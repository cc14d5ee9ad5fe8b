/**
 * @file
 * Default image of KVC.Schedule3: no schedule, nothing moves by itself.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"

KVC_ScheduleTable_t KVC_Schedule3 = {.TotalRows = 0};

CFE_TBL_FILEDEF(KVC_Schedule3, KVC.Schedule3, Rotation schedule segment 3, kvc_schedule3.tbl)
