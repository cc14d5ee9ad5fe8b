/**
 * @file
 * Tables of KVC: structures and default images.
 */
#ifndef KVC_TBL_H
#define KVC_TBL_H

#include "kvc_tbldefs.h"
#include "kvc_tblstruct.h"

#define KVC_LIMITS_TABLE_FILE    "/cf/kvc_limits.tbl"
#define KVC_SCHEDULE1_TABLE_FILE "/cf/kvc_schedule1.tbl"
#define KVC_SCHEDULE2_TABLE_FILE "/cf/kvc_schedule2.tbl"
#define KVC_SCHEDULE3_TABLE_FILE "/cf/kvc_schedule3.tbl"
#define KVC_SCHEDULE4_TABLE_FILE "/cf/kvc_schedule4.tbl"

#endif
