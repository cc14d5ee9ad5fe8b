/**
 * @file
 * Configuration of KVC that a whole mission shares.
 */
#ifndef KVC_MISSION_CFG_H
#define KVC_MISSION_CFG_H

#include "kvc_interface_cfg.h"

#endif
