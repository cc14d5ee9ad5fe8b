/**
 * @file
 * Default image of ISL.Peers4: no keys.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_PeersTable_t ISL_Peers4 = {.Count = 0};

CFE_TBL_FILEDEF(ISL_Peers4, ISL.Peers4, Keys between satellites 4, isl_peers4.tbl)
