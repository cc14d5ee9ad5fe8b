/**
 * @file
 * Constants of the tables of KVC.
 */
#ifndef KVC_TBLDEFS_H
#define KVC_TBLDEFS_H

#include "kvc_interface_cfg.h"

#define KVC_LIMITS_TABLE_NAME "Limits" /**< KVC.Limits */

#endif
