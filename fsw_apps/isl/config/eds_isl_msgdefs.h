/**
 * @file
 * Payloads of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef ISL_MSGDEFS_H
#define ISL_MSGDEFS_H

#include "common_types.h"
#include "isl_eds_typedefs.h"
#include "isl_fcncodes.h"
#include "isl_interface_cfg.h"

#endif
