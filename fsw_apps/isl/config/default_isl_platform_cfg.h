/**
 * @file
 * Configuration of ISL that a processor chooses.
 */
#ifndef ISL_PLATFORM_CFG_H
#define ISL_PLATFORM_CFG_H

#include "isl_mission_cfg.h"
#include "isl_internal_cfg.h"

#endif
