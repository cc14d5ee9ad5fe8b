/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of ISL, where the data sheets define it.
 */
#ifndef ISL_INTERFACE_CFG_H
#define ISL_INTERFACE_CFG_H

#include "isl_eds_designparameters.h"

#define ISL_NEIGHBOUR_COUNT 4 /**< ISL/Direction: north, east, south, west */
#define ISL_LINK_COUNT      5 /**< ISL/LinkId: the same, then ground */
#define ISL_CUT_S_MAX       EdsParam_ISL_CUT_S_MAX
#define ISL_DOWNLINK_MIDS   EdsParam_ISL_DOWNLINK_MIDS

#endif
