/**
 * @file
 * Tables of ISL: structures and default images.
 */
#ifndef ISL_TBL_H
#define ISL_TBL_H

#include "isl_tbldefs.h"
#include "isl_tblstruct.h"

#define ISL_NEIGHBOURS_TABLE_FILE "/cf/isl_neighbours.tbl"
#define ISL_LINKS_TABLE_FILE      "/cf/isl_links.tbl"

#endif
