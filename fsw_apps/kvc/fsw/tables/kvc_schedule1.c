/**
 * @file
 * Default image of KVC.Schedule1: no schedule, nothing moves by itself.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"

KVC_ScheduleTable_t KVC_Schedule1 = {.TotalRows = 0};

CFE_TBL_FILEDEF(KVC_Schedule1, KVC.Schedule1, Rotation schedule segment 1, kvc_schedule1.tbl)
