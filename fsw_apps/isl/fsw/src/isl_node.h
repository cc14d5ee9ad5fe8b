/**
 * @file
 * The shell around the core's node (sky_node.h): it owns the delay lines, brings the node together with the socket, the library's
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

#define ISL_ENDPOINT_BYTES 8u /**< before each packet in a delay line; there in place of the UDP header, which is as long */

/** A packet line with delay; its memory is set up when a model first asks for one. */
typedef struct
{
    bool       ready;
    SKY_Link_t line;
} ISL_Line_t;

typedef struct
{
    SKY_Node_t               node;
    ISL_Line_t               lines[SKY_LINK_COUNT]; /**< outwards */
    ISL_Line_t               uplink;                /**< from the ground */
    uint64_t                 local_endpoint;        /**< an empty datagram from here only wakes the I/O task */
    uint32_t                 uplink_first_mid, uplink_last_mid;
    const SKY_LIB_Service_t *held;   /**< the service that is locked; NULL: none */
    SKY_NodeService_t        served; /**< calls it */
    SKY_NodeListener_t       listeners[ISL_PLATFORM_LISTENERS];
    SKY_NodeRelayed_t        relayed[ISL_PLATFORM_RELAYED];
    uint8_t                  work[ISL_IO_DATAGRAM_BYTES]; /**< packet from the uplink line */
} ISL_Node_t;

/* ---- isl_node.c ---------------------------------------------------------------------------------------------------- */

void ISL_Node_Init(ISL_Node_t *isl);
/**
 * Take the (valid) tables over.
 * @return false: the constellation is too large for the map; packets are routed by what this satellite's own links say
 */
bool ISL_Node_SetNeighbours(ISL_Node_t *isl, uint64_t now_us, const ISL_NeighboursTable_t *table);
void ISL_Node_SetModels(ISL_Node_t *isl, uint64_t now_us, const ISL_LinksTable_t *table);
/** A datagram has arrived from @p endpoint. */
void ISL_Node_Input(ISL_Node_t *isl, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint);
/** After the last datagram of a batch, and whenever time has come: delay lines, and the node; everything is sent. */
void ISL_Node_Run(ISL_Node_t *isl, uint64_t now_us);
/** When Run has to be called again, at the latest. */
uint64_t ISL_Node_NextDue(const ISL_Node_t *isl);
/** A telemetry message from the Software Bus: to all listeners. */
void ISL_Node_Telemetry(ISL_Node_t *isl, uint64_t now_us, const CFE_MSG_Message_t *message);

/* ---- isl_line.c ---------------------------------------------------------------------------------------------------- */

/** Emulate a link from now on. */
void ISL_Line_SetModel(ISL_Node_t *isl, SKY_LinkId_t id, const SKY_LinkModel_t *model);
/** What waits in the lines was for other places: forget it. */
void ISL_Line_Reset(ISL_Node_t *isl);
/** Packets that one delay line holds, and whether there is any. */
uint32_t ISL_Line_Slots(const ISL_Node_t *isl);
bool     ISL_Line_AnyReady(const ISL_Node_t *isl);
/** Send over a link, through its line if it has one. @return false: dropped and counted */
bool ISL_Line_Send(ISL_Node_t *isl, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const SKY_PacketParts_t *parts);
/** If packets from the ground take their time as well: keep this one until then. @return false: go on with it now */
bool ISL_Line_DelayUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t endpoint, const uint8_t *data, uint32_t len);
/** Next due packet from the ground, in isl->work. @return its length, 0: none */
uint32_t ISL_Line_NextUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t *endpoint);
/** Send what is due in the lines. */
void     ISL_Line_Run(ISL_Node_t *isl, uint64_t now_us);
uint64_t ISL_Line_NextDue(const ISL_Node_t *isl);

#endif
