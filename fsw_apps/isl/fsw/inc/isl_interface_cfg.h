/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of ISL.
 */
#ifndef ISL_INTERFACE_CFG_H
#define ISL_INTERFACE_CFG_H

#include "isl_interface_cfg_values.h"

#define ISL_NEIGHBOUR_COUNT 4 /**< north, east, south, west */
#define ISL_LINK_COUNT      5 /**< the same, then ground */

#define ISL_KEY_BYTES     32
#define ISL_SUITES        4   /**< suites of packets, numbered from 1: docs/icd.md */
#define ISL_MASTER_KEYS   2   /**< generations of the master key that are valid at once */
#define ISL_PEERS_PAGES   4   /**< tables with keys between satellites */
#define ISL_PEERS_OF_PAGE 500 /**< keys of one such table */

/** Longest cut of a link by command, seconds. */
#define ISL_CUT_S_MAX         ISL_INTERFACE_CFGVAL(CUT_S_MAX)
#define DEFAULT_ISL_CUT_S_MAX 3600

/** Telemetry that can be relayed to ground hosts. */
#define ISL_DOWNLINK_MIDS         ISL_INTERFACE_CFGVAL(DOWNLINK_MIDS)
#define DEFAULT_ISL_DOWNLINK_MIDS 16

#endif
