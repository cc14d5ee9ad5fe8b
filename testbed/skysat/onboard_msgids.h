/**
 * @file
 * Message ids set aside for on-board code of the user, such as apps written in Python: topics 0xE0 .. 0xEF.
 */
#ifndef ONBOARD_MSGIDS_H
#define ONBOARD_MSGIDS_H

#include "cfe_core_api_base_msgids.h"

#define ONBOARD_HEALTH_TLM_MID CFE_PLATFORM_TLM_TOPICID_TO_MIDV(0xE0) /**< the health monitor; relayed to ground hosts */
#define ONBOARD_LAST_CMD_MID   CFE_PLATFORM_CMD_TOPICID_TO_MIDV(0xEF) /**< commands up to here are taken from the ground */

#endif
