/**
 * @file
 * Default image of ISL.Peers2: no keys.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_PeersTable_t ISL_Peers2 = {.Count = 0};

CFE_TBL_FILEDEF(ISL_Peers2, ISL.Peers2, Keys between satellites 2, isl_peers2.tbl)
