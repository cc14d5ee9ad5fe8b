/**
 * @file
 * Key file of a satellite, as `skymem keys` makes it: the tables ISL.Keys and ISL.Peers1 .. follow from it.
 *
 *     magic "SKYK" 4 | format 1 | generation 1 | planes 2 | slots 2 | own plane 2 | own slot 2 | zeros 2 | master key 32
 *     then a key of 32 bytes for each satellite, plane after plane; zeros for this one. Integers are big-endian.
 */
#ifndef KEY_FILE_H
#define KEY_FILE_H

#include "isl_tbl.h"
#include "options.h"

/**
 * Read the file that --keys names.
 * @param keys   ISL.Keys with one master key
 * @param peers  ISL_PEERS_PAGES tables
 * @param why    receives, on failure, what is wrong and what is allowed
 * @return false if the file cannot be read, others may read it, it is damaged, or it is another satellite's
 */
bool SKYSAT_ReadKeyFile(const SKYSAT_Options_t *options, ISL_KeysTable_t *keys, ISL_PeersTable_t *peers, char *why,
                        size_t why_size);

#endif
