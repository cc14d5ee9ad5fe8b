/**
 * @file
 * Management of the table KVC.Limits, and of all tables of KVC together.
 */
#ifndef KVC_TBL_MANAGE_H
#define KVC_TBL_MANAGE_H

#include "cfe.h"

/** Register and load the tables, set the store up, and follow the schedule. */
CFE_Status_t KVC_Tbl_Init(void);
/** Let table services act, and take new values over. */
void KVC_Tbl_Manage(void);
/** Return true if a value of a table is in range; else an event names table, field, value and range. */
bool KVC_Tbl_InRange(const char *table, const char *field, uint32 value, uint32 least, uint32 most);
/** Validate a table. @return CFE_SUCCESS or CFE_STATUS_VALIDATION_FAILURE, with an event that names field and range */
int32 KVC_Tbl_ValidateLimits(void *data);

#endif
