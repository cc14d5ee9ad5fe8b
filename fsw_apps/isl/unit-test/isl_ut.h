/**
 * @file
 * What the unit tests of ISL share: satellite (2, 2) of 3 x 3 on stubs of cFE and OSAL. Each test file has an Add function.
 */
#ifndef ISL_UT_H
#define ISL_UT_H

#include "cfe.h"
#include "isl_app.h"
#include "isl_node.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

#define UT_HOST       9      /* number of the ground host */
#define UT_GROUND     40000u /* endpoint of the ground host: this port at 0.0.0.0 */
#define UT_PORT       4919u
#define UT_SENT_MAX   9216u
#define UT_IPV4(p, s) (0x7F120000u + 256u * (p) + (s))

extern ISL_NeighboursTable_t         UT_Neighbours;
extern ISL_LinksTable_t              UT_Links;
extern ISL_KeysTable_t               UT_Keys;
extern ISL_PeersTable_t              UT_Peers[ISL_PEERS_PAGES];
extern uint16                        UT_LastEvent;
extern CFE_ES_ChildTaskMainFuncPtr_t UT_IoTask, UT_TlmTask;
extern osal_task_entry               UT_DeleteHandler;

/** The datagram that the socket gives next. */
extern uint8  UT_Received[2048];
extern size_t UT_ReceivedBytes;
extern uint32 UT_FromIpv4;
extern uint16 UT_FromPort;

/** The datagram that was sent last, the number of datagrams sent, and the target. */
extern uint8  UT_Sent[UT_SENT_MAX];
extern size_t UT_SentBytes;
extern uint32 UT_SentCount, UT_SentIpv4;

/** Facts that the stubs of CFE_MSG tell of a message. */
extern CFE_MSG_Type_t UT_Type;

/** Reset all stubs, with tables that are good. */
void UT_Setup(void);
/** Start the parts that the main function starts, and stay up. */
void UT_Start(void);
/** Return the node of a satellite that has started. */
ISL_Node_t *UT_Node(void);
/** Give a command or another message to the dispatcher. @param bytes  NULL: all 0 */
void UT_Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes);
/** Return a request of the ground host to this satellite. */
SKY_Packet_t UT_Request(uint16_t apid, uint8_t op);
/** Return a packet with its cookie, if a ground host sends it and the satellite asks for cookies. */
SKY_Packet_t UT_WithCookie(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/** Let a packet come in from an endpoint, without the I/O task. It gets its cookie here. */
void UT_Input(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/** Decode the packet that was sent last. */
SKY_Packet_t UT_Answer(void);
/** Emulate a link from now on, as the table ISL.Links does. */
void UT_SetModel(SKY_LinkId_t link, uint32_t delay_us, uint32_t loss_ppm, bool is_cut);
/** Send parts over a link that is not cut, as the node does. */
void UT_SendParts(uint64_t now_us, SKY_LinkId_t link, const SKY_PacketParts_t *parts);
/** Return the endpoint of a neighbour. */
uint64_t UT_Neighbour(SKY_LinkId_t link);

void UT_AddLinks(void);
void UT_AddNode(void);
void UT_AddRelay(void);
void UT_AddSecurity(void);
void UT_AddTasks(void);

#endif
