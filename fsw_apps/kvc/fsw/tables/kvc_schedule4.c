/**
 * @file
 * Default image of KVC.Schedule4: no schedule, nothing moves by itself.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"

KVC_ScheduleTable_t KVC_Schedule4 = {.TotalRows = 0};

CFE_TBL_FILEDEF(KVC_Schedule4, KVC.Schedule4, Rotation schedule segment 4, kvc_schedule4.tbl)
