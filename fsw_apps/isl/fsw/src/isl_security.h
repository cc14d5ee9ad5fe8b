/**
 * @file
 * Keys of ISL: the tables ISL.Keys and ISL.Peers1 .., and the memory of the core's security (sky_security.h). No key goes into an event,
 * telemetry or the log.
 */
#ifndef ISL_SECURITY_H
#define ISL_SECURITY_H

#include "isl_app.h"
#include "isl_node.h"

/** Register and load the tables. @return CFE_SUCCESS, or an error after an event that says why */
CFE_Status_t ISL_Security_InitTables(void);
/** Take new tables over, if there are some. Call it after ISL.Neighbours was taken over, without the node's lock. */
CFE_Status_t ISL_Security_Update(void);
/** Let table services act on the tables. */
void ISL_Security_ManageTables(void);

/** Fill in housekeeping, under the node's lock. */
void ISL_Security_FillHk(ISL_HkSecurity_t *hk);
/** Get the counts of what was not acted upon, in the order of ISL_Security_ReasonName, under the node's lock. */
void        ISL_Security_Reasons(uint64_t counts[ISL_REASONS]);
const char *ISL_Security_ReasonName(uint32 reason);
/** Erase all keys, at the end of the app. No task may use the node any more. */
void ISL_Security_End(void);

CFE_Status_t ISL_Security_ValidateKeys(void *data);
CFE_Status_t ISL_Security_ValidatePeers(void *data);

#endif
