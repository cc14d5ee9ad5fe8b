/**
 * @file
 * The table KVC.Limits.
 */
#ifndef KVC_TBL_MANAGE_H
#define KVC_TBL_MANAGE_H

#include "cfe.h"

/** Register and load the table, and set the store up by it. */
CFE_Status_t KVC_Tbl_Init(void);
/** Let table services act, and take new values over. */
void KVC_Tbl_Manage(void);
/** Validation function. @return CFE_SUCCESS or CFE_STATUS_VALIDATION_FAILURE, with an event that names field and range */
int32 KVC_Tbl_ValidateLimits(void *data);

#endif
