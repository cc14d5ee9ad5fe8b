/**
 * @file
 * Limits that belong to the mission: cFE's defaults.
 */
#ifndef CFE_MISSION_CFG_H
#define CFE_MISSION_CFG_H

#include "cfe_core_api_interface_cfg.h"

#define CFE_MISSION_SB_MAX_SB_MSG_SIZE     32768 /**< with headers */
#define CFE_MISSION_EVS_MAX_MESSAGE_LENGTH 122
#define CFE_MISSION_TBL_MAX_NAME_LENGTH    16
#define CFE_MISSION_TBL_MAX_FULL_NAME_LEN  40
#define CFE_MISSION_ES_POOL_MAX_BUCKETS    17
#define CFE_FS_HDR_DESC_MAX_LEN            32

#endif
