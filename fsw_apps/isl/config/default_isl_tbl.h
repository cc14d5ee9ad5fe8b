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
#define ISL_KEYS_TABLE_FILE       "/cf/isl_keys.tbl"
#define ISL_PEERS1_TABLE_FILE     "/cf/isl_peers1.tbl"
#define ISL_PEERS2_TABLE_FILE     "/cf/isl_peers2.tbl"
#define ISL_PEERS3_TABLE_FILE     "/cf/isl_peers3.tbl"
#define ISL_PEERS4_TABLE_FILE     "/cf/isl_peers4.tbl"

#endif
