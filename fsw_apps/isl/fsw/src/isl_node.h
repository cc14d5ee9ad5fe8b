/**
 * @file
 * The packet engine of ISL: from a datagram to a decision to a datagram. All functions are called with the node's lock held
 * (isl_task.h); time comes in as an argument.
 */
#ifndef ISL_NODE_H
#define ISL_NODE_H

#include "cfe.h"
#include "isl_io.h"
#include "isl_msg.h"
#include "isl_platform_cfg.h"
#include "isl_tbl.h"
#include "sky_lib.h"

#define ISL_ENDPOINT_BYTES 8u /**< before each packet in a delay line; there in place of the UDP header, which is as long */

typedef struct
{
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t drop_queue, drop_loss, drop_cut, drop_error;
} ISL_LinkCounters_t;

/** A packet line with delay; its memory is set up when a model first asks for one. */
typedef struct
{
    bool       ready;
    SKY_Link_t line;
} ISL_Line_t;

/** One of north, east, south, west, ground. */
typedef struct
{
    bool               present;
    SKY_Addr_t         peer;         /**< {0,0}: ground */
    uint64_t           endpoint;     /**< of the neighbour */
    SKY_LinkModel_t    model;        /**< of the table */
    uint64_t           cut_until_us; /**< end of a cut by command; 0: none */
    ISL_Line_t         out;
    ISL_LinkCounters_t counters;
    bool               heard_once;
    uint64_t           heard_us; /**< last packet from there, or start */
} ISL_Link_t;

/** A ground host to which telemetry is relayed for a while. */
typedef struct
{
    SKY_Addr_t host;
    SKY_Addr_t gateway;
    uint64_t   endpoint; /**< where it is, 0: behind its gateway */
    uint64_t   request_id;
    uint64_t   until_us; /**< 0: free */
} ISL_Listener_t;

/** A command that was put on the bus. The number alone would take another one for it from a host that counts anew. */
typedef struct
{
    SKY_Addr_t host; /**< {0,0}: none */
    uint64_t   request_id;
    uint32_t   crc;
} ISL_Relayed_t;

typedef struct
{
    SKY_Router_t   router;
    SKY_Map_t      map;
    SKY_Hello_t    hello;
    ISL_Link_t     links[SKY_LINK_COUNT];
    ISL_Line_t     uplink; /**< model of the ground, on the way in */
    uint32_t       packet_bytes;
    uint64_t       poll_due_us; /**< of the services */
    uint64_t       started_us;
    uint64_t       local_endpoint; /**< an empty datagram from here only wakes the I/O task */
    uint32_t       uplink_first_mid, uplink_last_mid;
    uint16_t       seq_count;
    ISL_Listener_t listeners[ISL_PLATFORM_LISTENERS];
    ISL_Relayed_t  relayed[ISL_PLATFORM_RELAYED];
    uint32_t       relayed_next; /**< place of the oldest */
    uint32_t       relayed_up, relayed_down, relay_errors;

    uint64_t asker; /**< endpoint of the ground host whose request is at hand, 0: none; answers go straight there */

    const SKY_LIB_Service_t *held; /**< locked service, NULL: none */
    uint16_t                 held_apid;
    bool                     bodies_wait; /**< bodies in the service's memory are queued for sending */

    uint8_t work[ISL_IO_DATAGRAM_BYTES]; /**< packet from the uplink line */
} ISL_Node_t;

/* ---- isl_node.c ---------------------------------------------------------------------------------------------------- */

/**
 * Take the (valid) tables over. Counters, listeners, known ground hosts and the map are kept where the satellite stays the same.
 * @return false: the constellation is too large for the map; packets are routed by what this satellite's own links say
 */
bool ISL_Node_SetNeighbours(ISL_Node_t *node, uint64_t now_us, const ISL_NeighboursTable_t *table);
void ISL_Node_SetModels(ISL_Node_t *node, uint64_t now_us, const ISL_LinksTable_t *table);
void ISL_Node_ResetCounters(ISL_Node_t *node);
/** A datagram has arrived from @p endpoint. */
void ISL_Node_Input(ISL_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint);
/** After the last datagram of a batch, and whenever time has come: delay lines, hellos, services; everything is sent. */
void ISL_Node_Run(ISL_Node_t *node, uint64_t now_us);
/** When Run has to be called again, at the latest. */
uint64_t ISL_Node_NextDue(const ISL_Node_t *node);
/** Greet neighbours, and tell them news of links. */
void ISL_Node_RunHellos(ISL_Node_t *node, uint64_t now_us);
/** Route and send a packet of our own; a payload of at most ISL_IO_COPY_BYTES is copied. */
void ISL_Node_SendPacket(ISL_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt);
/** Send a packet of our own over a link, whatever the router thinks of it. @p endpoint matters on SKY_LINK_GROUND only. */
void ISL_Node_SendOver(ISL_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, SKY_LinkId_t link, uint64_t endpoint);

/* ---- isl_link.c ---------------------------------------------------------------------------------------------------- */

/** The ISL over which packets of @p endpoint come, or SKY_LINK_GROUND. */
SKY_LinkId_t ISL_Link_Of(const ISL_Node_t *node, uint64_t endpoint);
void         ISL_Link_SetModel(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, const SKY_LinkModel_t *model);
/** Packets that one delay line holds, and whether there is any. */
uint32_t ISL_Link_LineSlots(const ISL_Node_t *node);
bool     ISL_Link_HasLines(const ISL_Node_t *node);
/** Send over a link, through its model. @p endpoint matters on SKY_LINK_GROUND only. */
void ISL_Link_Send(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const ISL_IO_Parts_t *parts);
/** Count an arrival. @return false if the link is cut, so that nothing has arrived */
bool ISL_Link_Heard(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, uint32_t len);
/** If packets from the ground take their time as well: keep this one until then. @return false: go on with it now */
bool ISL_Link_DelayUplink(ISL_Node_t *node, uint64_t now_us, uint64_t endpoint, const uint8_t *data, uint32_t len);
/** Next due packet from the ground, in node->work. @return its length, 0: none */
uint32_t ISL_Link_NextUplink(ISL_Node_t *node, uint64_t now_us, uint64_t *endpoint);
/** Send what is due in the delay lines. */
void     ISL_Link_RunLines(ISL_Node_t *node, uint64_t now_us);
uint64_t ISL_Link_NextDue(const ISL_Node_t *node);
/** Cut a link for @p seconds, or with 0 end such a cut. @return false: no such link, or the last one that is up */
bool ISL_Link_Cut(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t seconds);
/** Restore links whose cut is over. */
void ISL_Link_EndCuts(ISL_Node_t *node, uint64_t now_us);
bool ISL_Link_IsUp(const ISL_Node_t *node, SKY_LinkId_t id);

/* ---- isl_local.c --------------------------------------------------------------------------------------------------- */

/** A packet for this satellite at APID isl: PING, HELLO, STATS, RELAY. */
void ISL_Local_Packet(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress);
/** A telemetry message from the Software Bus: to all listeners. */
void     ISL_Local_Telemetry(ISL_Node_t *node, uint64_t now_us, const CFE_MSG_Message_t *message);
uint32_t ISL_Local_Listeners(const ISL_Node_t *node, uint64_t now_us);

#endif
