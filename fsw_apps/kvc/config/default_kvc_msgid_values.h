/**
 * @file
 * How topics of KVC become message ids.
 */
#ifndef DEFAULT_KVC_MSGID_VALUES_H
#define DEFAULT_KVC_MSGID_VALUES_H

#include "cfe_core_api_base_msgids.h"
#include "kvc_topicids.h"

#define CFE_PLATFORM_KVC_CMD_MIDVAL(x) CFE_PLATFORM_CMD_TOPICID_TO_MIDV(CFE_MISSION_KVC_##x##_TOPICID)
#define CFE_PLATFORM_KVC_TLM_MIDVAL(x) CFE_PLATFORM_TLM_TOPICID_TO_MIDV(CFE_MISSION_KVC_##x##_TOPICID)

#endif
