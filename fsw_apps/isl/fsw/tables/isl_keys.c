/**
 * @file
 * Default image of ISL.Keys: no master key, so nobody is asked for a tag.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_KeysTable_t ISL_Keys = {.Suites = 0};

CFE_TBL_FILEDEF(ISL_Keys, ISL.Keys, Master keys, isl_keys.tbl)
