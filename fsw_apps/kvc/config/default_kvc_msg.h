/**
 * @file
 * Commands and telemetry of KVC.
 */
#ifndef KVC_MSG_H
#define KVC_MSG_H

#include "kvc_mission_cfg.h"
#include "kvc_fcncodes.h"
#include "kvc_msgdefs.h"
#include "kvc_msgstruct.h"

#endif
