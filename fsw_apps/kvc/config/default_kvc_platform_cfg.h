/**
 * @file
 * Configuration of KVC that a processor chooses.
 */
#ifndef KVC_PLATFORM_CFG_H
#define KVC_PLATFORM_CFG_H

#include "kvc_mission_cfg.h"
#include "kvc_internal_cfg.h"

#endif
