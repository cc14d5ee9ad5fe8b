/**
 * @file
 * Shell around the core's node (sky_node.h): it owns the delay lines, brings the node together with the socket, the library's
 * services and the Software Bus, and takes the tables over. All functions are called with the node's lock held (isl_task.h); time
 * comes in as an argument.
 */
#ifndef ISL_NODE_H
#define ISL_NODE_H

#include "cfe.h"
#include "isl_io.h"
#include "isl_msg.h"
#include "isl_platform_cfg.h"
#include "isl_tbl.h"
#include "sky_lib.h"

#define ISL_ENDPOINT_BYTES 8u /**< endpoint before a packet in a delay line, in place of the UDP header, which is as long */

/** A packet line with delay; its memory is set up when a model first asks for one. */
typedef struct
{
    bool       ready;
    SKY_Link_t line;
} ISL_Line_t;

typedef struct
{
    SKY_Node_t               node;
    ISL_Line_t               lines[SKY_LINK_COUNT]; /**< lines outwards */
    ISL_Line_t               uplink;                /**< line from the ground */
    uint64_t                 local_endpoint;        /**< an empty datagram from here only wakes the I/O task */
    uint32_t                 uplink_first_mid, uplink_last_mid;
    const SKY_LIB_Service_t *held;   /**< the service that is locked; NULL: none */
    SKY_NodeService_t        served; /**< functions that call the locked service */
    SKY_NodeListener_t       listeners[ISL_PLATFORM_LISTENERS];
    SKY_NodeRelayed_t        relayed[ISL_PLATFORM_RELAYED];
    uint8_t                  work[ISL_IO_DATAGRAM_BYTES]; /**< packet from the uplink line */
} ISL_Node_t;

/* ---- isl_node.c ---------------------------------------------------------------------------------------------------- */

void ISL_Node_Init(ISL_Node_t *isl);
/**
 * Take the (valid) tables over.
 * @return false if the constellation is too large for the map; then only this satellite's own links decide routes
 */
bool ISL_Node_SetNeighbours(ISL_Node_t *isl, uint64_t now_us, const ISL_NeighboursTable_t *table);
void ISL_Node_SetModels(ISL_Node_t *isl, uint64_t now_us, const ISL_LinksTable_t *table);
/** Take in a datagram from @p endpoint. */
void ISL_Node_Input(ISL_Node_t *isl, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint);
/** Run delay lines and the node, and send everything. Call it after the last datagram of a batch, and when it is due. */
void ISL_Node_Run(ISL_Node_t *isl, uint64_t now_us);
/** Return the time of the next Run, at the latest. */
uint64_t ISL_Node_NextDue(const ISL_Node_t *isl);
/** Send a telemetry message from the Software Bus to all listeners. */
void ISL_Node_Telemetry(ISL_Node_t *isl, uint64_t now_us, const CFE_MSG_Message_t *message);

/* ---- isl_line.c ---------------------------------------------------------------------------------------------------- */

/** Emulate a link from now on. */
void ISL_Line_SetModel(ISL_Node_t *isl, SKY_LinkId_t id, const SKY_LinkModel_t *model);
/** Forget the packets in the lines, which were for other places. */
void ISL_Line_Reset(ISL_Node_t *isl);
/** Return the packets that one delay line holds; return true if a line is ready. */
uint32_t ISL_Line_Slots(const ISL_Node_t *isl);
bool     ISL_Line_AnyReady(const ISL_Node_t *isl);
/** Send over a link, through its line if it has one. @return false if it was dropped and counted */
bool ISL_Line_Send(ISL_Node_t *isl, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const SKY_PacketParts_t *parts);
/** Keep a packet from the ground if the model delays it. @return false if it does not */
bool ISL_Line_DelayUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t endpoint, const uint8_t *data, uint32_t len);
/** Get the next due packet from the ground, in isl->work. @return its length, 0 if there is none */
uint32_t ISL_Line_NextUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t *endpoint);
/** Send the due packets of the lines. */
void     ISL_Line_Run(ISL_Node_t *isl, uint64_t now_us);
uint64_t ISL_Line_NextDue(const ISL_Node_t *isl);

#endif
