/**
 * @file
 * Topic ids of ISL where the mission's data sheets define them.
 */
#ifndef ISL_TOPICIDS_H
#define ISL_TOPICIDS_H

#include "cfe_mission_eds_designparameters.h"

#define CFE_MISSION_ISL_CMD_TOPICID     EdsParam_CFE_MISSION_ISL_CMD_TOPICID
#define CFE_MISSION_ISL_SEND_HK_TOPICID EdsParam_CFE_MISSION_ISL_SEND_HK_TOPICID
#define CFE_MISSION_ISL_WAKEUP_TOPICID  EdsParam_CFE_MISSION_ISL_WAKEUP_TOPICID
#define CFE_MISSION_ISL_HK_TLM_TOPICID  EdsParam_CFE_MISSION_ISL_HK_TLM_TOPICID

#endif
