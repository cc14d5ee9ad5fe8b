/**
 * @file
 * Commands and telemetry of ISL.
 */
#ifndef ISL_MSG_H
#define ISL_MSG_H

#include "isl_mission_cfg.h"
#include "isl_fcncodes.h"
#include "isl_msgdefs.h"
#include "isl_msgstruct.h"

#endif
