/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of KVC.
 */
#ifndef KVC_INTERFACE_CFG_H
#define KVC_INTERFACE_CFG_H

#define KVC_KEY_BYTES 32 /**< bytes of a block key */

#endif
