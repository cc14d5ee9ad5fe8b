/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of KVC.
 */
#ifndef KVC_INTERFACE_CFG_H
#define KVC_INTERFACE_CFG_H

#include "kvc_interface_cfg_values.h"

#define KVC_KEY_BYTES 32 /**< bytes of a block key */
#define KVC_TENANTS   16 /**< tenants with quotas of their own in KVC.Limits, as many as the core has room for */

/** Rows of one table KVC.Schedule1 ..: as many as fit 16 KiB. */
#define KVC_SEGMENT_ROWS         KVC_INTERFACE_CFGVAL(SEGMENT_ROWS)
#define DEFAULT_KVC_SEGMENT_ROWS 1362

/** Rows of one command SCHEDULE_ROWS: as many as RELAY carries. */
#define KVC_COMMAND_ROWS         KVC_INTERFACE_CFGVAL(COMMAND_ROWS)
#define DEFAULT_KVC_COMMAND_ROWS 83

#endif
