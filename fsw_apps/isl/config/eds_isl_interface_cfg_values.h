/**
 * @file
 * Where the values of isl_interface_cfg.h come from where the data sheets define them.
 */
#ifndef EDS_ISL_INTERFACE_CFG_VALUES_H
#define EDS_ISL_INTERFACE_CFG_VALUES_H

#include "isl_eds_designparameters.h"

#define ISL_INTERFACE_CFGVAL(x) EdsParam_ISL_##x

#endif
