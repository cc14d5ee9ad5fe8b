/**
 * @file
 * Constants and parts of the tables of ISL.
 */
#ifndef ISL_TBLDEFS_H
#define ISL_TBLDEFS_H

#include "common_types.h"
#include "isl_interface_cfg.h"

#define ISL_NEIGHBOURS_TABLE_NAME "Neighbours" /**< ISL.Neighbours */
#define ISL_LINKS_TABLE_NAME      "Links"      /**< ISL.Links */

typedef struct ISL_Neighbour
{
    uint32 Ipv4; /**< 127.18.3.9 is 0x7F120309 */
    uint16 Port;
    uint16 Plane;
    uint16 Slot;
    uint8  Present; /**< 0: no link in this direction */
    uint8  Spare;
} ISL_Neighbour_t;

typedef struct ISL_LinkEntry
{
    uint32 DelayUs;
    uint32 JitterUs; /**< jitter on top, uniform up to this */
    uint32 RateKbps; /**< 0: unlimited */
    uint32 LossPpm;
    uint8  Cut;
    uint8  Spare[3];
} ISL_LinkEntry_t;

#endif
