/**
 * @file
 * Management of the tables ISL.Neighbours and ISL.Links.
 */
#ifndef ISL_TBL_MANAGE_H
#define ISL_TBL_MANAGE_H

#include "cfe.h"

/** Register a table and load its first image. @return CFE_SUCCESS, or an error after an event that says why */
CFE_Status_t ISL_Tbl_Load(CFE_TBL_Handle_t *handle, const char *name, size_t size, CFE_TBL_CallbackFuncPtr_t validate,
                          const char *file);
/** Register and load all tables, and set the node up by them. */
CFE_Status_t ISL_Tbl_Init(void);
/** Let table services act, and take new values over. */
void ISL_Tbl_Manage(void);
/** Validate a table. @return CFE_SUCCESS or CFE_STATUS_VALIDATION_FAILURE, with an event that names field and range */
int32 ISL_Tbl_ValidateNeighbours(void *data);
int32 ISL_Tbl_ValidateLinks(void *data);

#endif
