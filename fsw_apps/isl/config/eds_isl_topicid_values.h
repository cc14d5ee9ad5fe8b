/**
 * @file
 * Topic ids of ISL where the mission's data sheets define them.
 */
#ifndef EDS_ISL_TOPICID_VALUES_H
#define EDS_ISL_TOPICID_VALUES_H

#include "cfe_mission_eds_designparameters.h"

#define CFE_MISSION_ISL_TIDVAL(x) EdsParam_CFE_MISSION_ISL_##x##_TOPICID

#endif
