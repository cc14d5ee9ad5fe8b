/**
 * @file
 * Payloads of the commands and telemetry of ISL. Fields are naturally aligned, without implicit padding.
 */
#ifndef ISL_MSGDEFS_H
#define ISL_MSGDEFS_H

#include "common_types.h"
#include "isl_fcncodes.h"
#include "isl_interface_cfg.h"

typedef struct ISL_SetLink_Payload
{
    uint16 Link; /**< 0 north, 1 east, 2 south, 3 west, 4 ground */
    uint16 CutS; /**< seconds in which nothing goes in or out, at most ISL_CUT_S_MAX; 0: follow ISL.Links from now on */
} ISL_SetLink_Payload_t;

typedef struct ISL_HkLink
{
    uint8  Present;
    uint8  Up;
    uint16 Plane; /**< plane of the neighbour; 0 for the ground */
    uint16 Slot;
    uint16 QueueDepth;  /**< packets in the delay line; 0xFFFF: so many or more */
    uint32 LastHeardMs; /**< time since the last packet; 0xFFFFFFFF: none came yet */
    uint32 DelayRequestedUs;
    uint32 DelayMeanUs; /**< smoothed delay of hellos, to which the machine's load adds; 0: not measured */
    uint32 DelayMinUs;  /**< smallest of the last 16 delays; 0: not measured */
    uint64 TxPackets;
    uint64 TxBytes;
    uint64 RxPackets;
    uint64 RxBytes;
    uint64 DropQueue;
    uint64 DropLoss;
    uint64 DropCut;
    uint64 DropError; /**< packets that the socket did not take */
} ISL_HkLink_t;

typedef struct ISL_HkSecurity
{
    uint8  Secured;     /**< 1: there is a master key, and links are secured */
    uint8  MasterKeys;  /**< valid generations of the master key */
    uint8  Generation;  /**< newest one */
    uint8  Older;       /**< the other valid one; the newest if there is none */
    uint8  Suites;      /**< mask of the suites that others get, bit 1 << number (docs/icd.md) */
    uint8  PeerSuite;   /**< suite that other satellites are asked for */
    uint16 Established; /**< associations in use */
    uint16 HalfOpen;    /**< associations that were granted and not used yet */
    uint16 Sessions;    /**< sessions with other satellites */
    uint16 Asking;      /**< satellites that were asked for a session and have not answered yet */
    uint16
        BySuite[ISL_SUITES]; /**< associations and sessions by suite: gmac_header, gmac_packet, blake2b_header, blake2b_packet */
    uint8  PeersGeneration;  /**< generation of the keys under which other satellites are asked first */
    uint8  Spare;
    uint32 Begun;         /**< associations granted */
    uint32 Repeated;      /**< handshakes that came again */
    uint32 Evicted;       /**< associations in use that made room for others */
    uint32 Lapsed;        /**< half-open ones that made room */
    uint64 NoAssociation; /**< packets not acted upon: no association has their index */
    uint64 WrongTag;      /**< packets with a wrong tag, or none */
    uint64 Handshakes;    /**< handshakes refused */
    uint64 Replayed;      /**< packets that had come before, or are too old */
    uint64 WrongRole;     /**< requests that the sender's role may not send */
    uint64 WrongTenant;   /**< requests for a tenant that the sender may not name */
    uint64 NoCookie;      /**< requests from the ground without a cookie */
    uint64 Unsent;        /**< own packets to a satellite with which there was no session yet */
    uint64 RekeyDone;     /**< commands about keys that were carried out */
    uint64 RekeyRefused;  /**< commands about keys that were not, for whatever reason */
    uint64 Limited;       /**< packets of strangers that were too many from their source, or from all */
} ISL_HkSecurity_t;

typedef struct ISL_HkTlm_Payload
{
    uint8            CommandCounter;
    uint8            CommandErrorCounter;
    uint8            Listeners;     /**< ground hosts to which telemetry is relayed */
    uint8            FailedAsserts; /**< failed assertions of sky; 255: so many or more */
    uint16           Plane;         /**< plane of this satellite */
    uint16           Slot;
    uint32           RelayedUp;   /**< messages put on the Software Bus */
    uint32           RelayedDown; /**< telemetry messages sent to listeners */
    uint32           RelayErrors;
    uint32           IoErrors; /**< errors of the socket */
    uint64           Delivered;
    uint64           Forwarded;
    uint64           ToGround;
    uint64           Dropped; /**< dropped packets, all causes; STATS has them by cause */
    ISL_HkLink_t     Link[ISL_LINK_COUNT];
    ISL_HkSecurity_t Security;
} ISL_HkTlm_Payload_t;

#endif
