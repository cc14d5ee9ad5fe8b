/**
 * @file
 * Function codes of KVC where its data sheet (eds/kvc.xml) is built in.
 */
#ifndef KVC_FCNCODES_H
#define KVC_FCNCODES_H

#include "kvc_eds_cc.h"

#define KVC_NOOP_CC           EDS_CONTAINER_KVC_NOOP_CC
#define KVC_RESET_COUNTERS_CC EDS_CONTAINER_KVC_RESET_COUNTERS_CC
#define KVC_CLEAR_STORE_CC    EDS_CONTAINER_KVC_CLEAR_STORE_CC
#define KVC_PURGE_BLOCK_CC    EDS_CONTAINER_KVC_PURGE_BLOCK_CC

#endif
