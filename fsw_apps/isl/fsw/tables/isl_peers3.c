/**
 * @file
 * Default image of ISL.Peers3: no keys.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_PeersTable_t ISL_Peers3 = {.Count = 0};

CFE_TBL_FILEDEF(ISL_Peers3, ISL.Peers3, Keys between satellites 3, isl_peers3.tbl)
