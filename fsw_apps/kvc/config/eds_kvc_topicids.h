/**
 * @file
 * Topic ids of KVC where the mission's data sheets define them.
 */
#ifndef KVC_TOPICIDS_H
#define KVC_TOPICIDS_H

#include "cfe_mission_eds_designparameters.h"

#define CFE_MISSION_KVC_CMD_TOPICID     EdsParam_CFE_MISSION_KVC_CMD_TOPICID
#define CFE_MISSION_KVC_SEND_HK_TOPICID EdsParam_CFE_MISSION_KVC_SEND_HK_TOPICID
#define CFE_MISSION_KVC_WAKEUP_TOPICID  EdsParam_CFE_MISSION_KVC_WAKEUP_TOPICID
#define CFE_MISSION_KVC_HK_TLM_TOPICID  EdsParam_CFE_MISSION_KVC_HK_TLM_TOPICID

#endif
