/**
 * @file
 * Default image of KVC.Schedule2: no schedule, nothing moves by itself.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"

KVC_ScheduleTable_t KVC_Schedule2 = {.TotalRows = 0};

CFE_TBL_FILEDEF(KVC_Schedule2, KVC.Schedule2, Rotation schedule segment 2, kvc_schedule2.tbl)
