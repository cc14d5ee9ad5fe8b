/**
 * @file
 * How topics of ISL become message ids.
 */
#ifndef DEFAULT_ISL_MSGID_VALUES_H
#define DEFAULT_ISL_MSGID_VALUES_H

#include "cfe_core_api_base_msgids.h"
#include "isl_topicids.h"

#define CFE_PLATFORM_ISL_CMD_MIDVAL(x) CFE_PLATFORM_CMD_TOPICID_TO_MIDV(CFE_MISSION_ISL_##x##_TOPICID)
#define CFE_PLATFORM_ISL_TLM_MIDVAL(x) CFE_PLATFORM_TLM_TOPICID_TO_MIDV(CFE_MISSION_ISL_##x##_TOPICID)

#endif
