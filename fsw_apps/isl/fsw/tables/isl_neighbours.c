/**
 * @file
 * Default image of ISL.Neighbours: satellite (3, 10) of 5 planes with 19 slots, all on one machine.
 */
#include "cfe_tbl_filedef.h"
#include "isl_msgids.h"
#include "isl_tbl.h"
#include "kvc_msgids.h"
#include "sky_defaults.h"
#include "sky_icd.h"

#define ISL_ON(plane, slot)                                                                                               \
    {                                                                                                                     \
        .Ipv4 = SKY_DEFAULT_NETWORK_IPV4 + (plane)*256u + (slot), .Port = SKY_UDP_PORT, .Plane = (plane), .Slot = (slot), \
        .Present = 1                                                                                                      \
    }

ISL_NeighboursTable_t ISL_Neighbours = {
    .SelfPlane      = 3,
    .SelfSlot       = 10,
    .Planes         = 5,
    .Slots          = 19,
    .LocalIpv4      = SKY_DEFAULT_NETWORK_IPV4 + 3 * 256u + 10,
    .LocalPort      = SKY_UDP_PORT,
    .HelloS         = SKY_DEFAULT_HELLO_S,
    .PacketBytes    = SKY_LIMIT_PACKET_BYTES,
    .SeamCut        = 0,
    .UplinkFirstMid = 0, /* no commands from the ground, because links are not authenticated */
    .UplinkLastMid  = 0,
    .Neighbour      = {ISL_ON(2, 10), ISL_ON(3, 11), ISL_ON(4, 10), ISL_ON(3, 9)},
    .DownlinkMid    = {ISL_HK_TLM_MID, KVC_HK_TLM_MID},
};

CFE_TBL_FILEDEF(ISL_Neighbours, ISL.Neighbours, Self and neighbours, isl_neighbours.tbl)
