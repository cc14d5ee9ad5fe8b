/**
 * @file
 * Configuration that shapes the commands, telemetry and tables of ISL.
 */
#ifndef ISL_INTERFACE_CFG_H
#define ISL_INTERFACE_CFG_H

#define ISL_NEIGHBOUR_COUNT 4    /**< north, east, south, west */
#define ISL_LINK_COUNT      5    /**< the same, then ground */
#define ISL_CUT_S_MAX       3600 /**< longest cut of a link by command, seconds */
#define ISL_DOWNLINK_MIDS   16   /**< telemetry that can be relayed to ground hosts */

#endif
