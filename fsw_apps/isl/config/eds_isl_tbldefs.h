/**
 * @file
 * Constants and parts of the tables of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef ISL_TBLDEFS_H
#define ISL_TBLDEFS_H

#include "common_types.h"
#include "isl_eds_typedefs.h"
#include "isl_interface_cfg.h"

#define ISL_NEIGHBOURS_TABLE_NAME "Neighbours" /**< ISL.Neighbours, also an interface of the data sheet */
#define ISL_LINKS_TABLE_NAME      "Links"      /**< ISL.Links */
#define ISL_KEYS_TABLE_NAME       "Keys"       /**< ISL.Keys */
#define ISL_PEERS1_TABLE_NAME     "Peers1"     /**< ISL.Peers1 */
#define ISL_PEERS2_TABLE_NAME     "Peers2"     /**< ISL.Peers2 */
#define ISL_PEERS3_TABLE_NAME     "Peers3"     /**< ISL.Peers3 */
#define ISL_PEERS4_TABLE_NAME     "Peers4"     /**< ISL.Peers4 */

#endif
