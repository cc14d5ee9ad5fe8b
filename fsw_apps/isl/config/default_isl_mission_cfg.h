/**
 * @file
 * Configuration of ISL that a whole mission shares.
 */
#ifndef ISL_MISSION_CFG_H
#define ISL_MISSION_CFG_H

#include "isl_interface_cfg.h"

#endif
