/**
 * @file
 * Topic ids of KVC where the mission's data sheets define them.
 */
#ifndef EDS_KVC_TOPICID_VALUES_H
#define EDS_KVC_TOPICID_VALUES_H

#include "cfe_mission_eds_designparameters.h"

#define CFE_MISSION_KVC_TIDVAL(x) EdsParam_CFE_MISSION_KVC_##x##_TOPICID

#endif
