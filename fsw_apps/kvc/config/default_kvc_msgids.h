/**
 * @file
 * Message ids of KVC.
 */
#ifndef KVC_MSGIDS_H
#define KVC_MSGIDS_H

#include "cfe_core_api_base_msgids.h"
#include "kvc_msgid_values.h"

#define KVC_CMD_MID     CFE_PLATFORM_KVC_CMD_MIDVAL(CMD)
#define KVC_SEND_HK_MID CFE_PLATFORM_KVC_CMD_MIDVAL(SEND_HK)
#define KVC_WAKEUP_MID  CFE_PLATFORM_KVC_CMD_MIDVAL(WAKEUP)
#define KVC_HK_TLM_MID  CFE_PLATFORM_KVC_TLM_MIDVAL(HK_TLM)

#endif
