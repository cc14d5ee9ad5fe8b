/**
 * @file
 * Lengths that cross the interface of the core: cFE's defaults.
 */
#ifndef CFE_CORE_API_INTERFACE_CFG_H
#define CFE_CORE_API_INTERFACE_CFG_H

#define CFE_MISSION_MAX_PATH_LEN 64
#define CFE_MISSION_MAX_FILE_LEN 20
#define CFE_MISSION_MAX_API_LEN  20 /**< with the terminator */

#endif
