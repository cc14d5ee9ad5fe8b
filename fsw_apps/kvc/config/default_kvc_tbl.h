/**
 * @file
 * Tables of KVC: structures and default images.
 */
#ifndef KVC_TBL_H
#define KVC_TBL_H

#include "kvc_tbldefs.h"
#include "kvc_tblstruct.h"

#define KVC_LIMITS_TABLE_FILE "/cf/kvc_limits.tbl"

#endif
