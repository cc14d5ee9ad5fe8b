/**
 * @file
 * Message ids of ISL.
 */
#ifndef ISL_MSGIDS_H
#define ISL_MSGIDS_H

#include "cfe_core_api_base_msgids.h"
#include "isl_msgid_values.h"

#define ISL_CMD_MID     CFE_PLATFORM_ISL_CMD_MIDVAL(CMD)
#define ISL_SEND_HK_MID CFE_PLATFORM_ISL_CMD_MIDVAL(SEND_HK)
#define ISL_WAKEUP_MID  CFE_PLATFORM_ISL_CMD_MIDVAL(WAKEUP)
#define ISL_HK_TLM_MID  CFE_PLATFORM_ISL_TLM_MIDVAL(HK_TLM)

#endif
