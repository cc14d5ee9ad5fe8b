/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of KVC.
 */
#ifndef KVC_INTERFACE_CFG_H
#define KVC_INTERFACE_CFG_H

#define KVC_KEY_BYTES    32   /**< bytes of a block key */
#define KVC_SEGMENT_ROWS 1362 /**< rows of one table KVC.Schedule1 ..: what 16 KiB have room for */
#define KVC_COMMAND_ROWS 83   /**< rows of one command SCHEDULE_ROWS: what RELAY carries */

#endif
