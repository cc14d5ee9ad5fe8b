/**
 * @file
 * Default image of ISL.Links: no emulation, all links ideal.
 */
#include "cfe_tbl_filedef.h"
#include "isl_tbl.h"

ISL_LinksTable_t ISL_Links = {.Link = {{.DelayUs = 0}}};

CFE_TBL_FILEDEF(ISL_Links, ISL.Links, Models of the links, isl_links.tbl)
