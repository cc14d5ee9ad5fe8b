/**
 * @file
 * Payloads of KVC where its data sheet (eds/kvc.xml) is built in.
 */
#ifndef KVC_MSGDEFS_H
#define KVC_MSGDEFS_H

#include "common_types.h"
#include "kvc_eds_typedefs.h"
#include "kvc_fcncodes.h"
#include "kvc_interface_cfg.h"
#include "kvc_tbldefs.h"

#endif
