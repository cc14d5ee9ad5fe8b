/**
 * @file
 * Everything of cFE and OSAL that the host executive offers. It is a subset, and a shim: see testbed/README.md.
 */
#ifndef CFE_H
#define CFE_H

#include "cfe_error.h"
#include "cfe_es.h"
#include "cfe_evs.h"
#include "cfe_mission_cfg.h"
#include "cfe_msg.h"
#include "cfe_psp.h"
#include "cfe_resourceid.h"
#include "cfe_sb.h"
#include "cfe_tbl.h"
#include "cfe_time.h"
#include "common_types.h"
#include "osapi.h"

#endif
