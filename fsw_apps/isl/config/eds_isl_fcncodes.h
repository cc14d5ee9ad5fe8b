/**
 * @file
 * Function codes of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef ISL_FCNCODES_H
#define ISL_FCNCODES_H

#include "isl_eds_cc.h"

#define ISL_NOOP_CC           EDS_CONTAINER_ISL_NOOP_CC
#define ISL_RESET_COUNTERS_CC EDS_CONTAINER_ISL_RESET_COUNTERS_CC
#define ISL_SET_LINK_CC       EDS_CONTAINER_ISL_SET_LINK_CC

#endif
