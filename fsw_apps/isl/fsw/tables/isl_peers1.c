/**
 * @file
 * Default image of ISL.Peers1: no keys.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_PeersTable_t ISL_Peers1 = {.Count = 0};

CFE_TBL_FILEDEF(ISL_Peers1, ISL.Peers1, Keys between satellites 1, isl_peers1.tbl)
