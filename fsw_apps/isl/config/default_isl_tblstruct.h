/**
 * @file
 * Tables of ISL. Fields are naturally aligned, without implicit padding.
 */
#ifndef ISL_TBLSTRUCT_H
#define ISL_TBLSTRUCT_H

#include "isl_tbldefs.h"

/** ISL.Neighbours: the satellite's own place, and the addresses of its neighbours. */
typedef struct ISL_NeighboursTable
{
    uint16          SelfPlane;
    uint16          SelfSlot;
    uint16          Planes;
    uint16          Slots;
    uint32          LocalIpv4;   /**< 0: any; read once, at start */
    uint16          LocalPort;   /**< read once, at start */
    uint16          HelloS;      /**< seconds between two hellos over a link; 0: no hellos and no map, all links count as up */
    uint32          PacketBytes; /**< largest packet of the links */
    uint8           SeamCut;     /**< 1: no link between the last plane and the first */
    uint8           Spare[3];
    uint32          UplinkFirstMid; /**< commands from the ground go on the bus if their id is in First .. Last; */
    uint32          UplinkLastMid;  /**< 0, 0: none. Anybody who reaches the socket can send them: see docs/cfs-integration.md */
    ISL_Neighbour_t Neighbour[ISL_NEIGHBOUR_COUNT]; /**< north, east, south, west */
    uint32          DownlinkMid[ISL_DOWNLINK_MIDS]; /**< telemetry for listeners; 0: entry not used */
} ISL_NeighboursTable_t;

/** ISL.Links: the models of north, east, south, west, ground. They act on packets that this satellite sends; the model of
 *  the ground also on packets from there, because the ground has no model of its own. A link that is cut is down at once and nothing
 *  comes in over it; the neighbour's table has to say so too, or its hellos have to be lost first. */
typedef struct ISL_LinksTable
{
    ISL_LinkEntry_t Link[ISL_LINK_COUNT];
} ISL_LinksTable_t;

/** ISL.Keys: master keys of this satellite. While none is set, nobody is asked for a tag. The last one is the newest. */
typedef struct ISL_KeysTable
{
    uint8 Suites;    /**< mask of the suites that others get, bit 1 << number (docs/icd.md); 0: all that the library can do */
    uint8 PeerSuite; /**< suite to ask other satellites for; 0: GMAC of headers if the library can do it, else BLAKE2b */
    uint8 Spare[2];
    ISL_MasterKey_t Master[ISL_MASTER_KEYS];
} ISL_KeysTable_t;

/** ISL.Peers1 .. ISL.Peers4: keys between this satellite and others. A satellite's index is (plane - 1) x slots + slot - 1. */
typedef struct ISL_PeersTable
{
    uint8         Generation; /**< generation of these keys */
    uint8         Spare[3];
    uint32        First; /**< index of the first satellite */
    uint32        Count; /**< keys that are used */
    ISL_PeerKey_t Peer[ISL_PEERS_OF_PAGE];
} ISL_PeersTable_t;

#endif
