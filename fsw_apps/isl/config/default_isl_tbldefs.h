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
#define ISL_KEYS_TABLE_NAME       "Keys"       /**< ISL.Keys */
#define ISL_PEERS1_TABLE_NAME     "Peers1"     /**< ISL.Peers1 */
#define ISL_PEERS2_TABLE_NAME     "Peers2"     /**< ISL.Peers2 */
#define ISL_PEERS3_TABLE_NAME     "Peers3"     /**< ISL.Peers3 */
#define ISL_PEERS4_TABLE_NAME     "Peers4"     /**< ISL.Peers4 */

typedef struct ISL_Neighbour
{
    uint32 Ipv4; /**< 127.18.3.9 is 0x7F120309 */
    uint16 Port;
    uint16 Plane;
    uint16 Slot;
    uint8  Present; /**< 0: no link in this direction */
    uint8  Spare;
} ISL_Neighbour_t;

/** A master key of this satellite. */
typedef struct ISL_MasterKey
{
    uint8 IsSet; /**< 0: there is none */
    uint8 Generation;
    uint8 Spare[2];
    uint8 Key[ISL_KEY_BYTES];
} ISL_MasterKey_t;

/** A key between this satellite and another one. */
typedef struct ISL_PeerKey
{
    uint8 Key[ISL_KEY_BYTES];
} ISL_PeerKey_t;

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
