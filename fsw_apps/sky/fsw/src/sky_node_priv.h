/**
 * @file
 * Private to the node: functions that its files call of each other. sky_node.c calls the other two, sky_node_local.c calls
 * sky_node_link.c.
 */
#ifndef SKY_NODE_PRIV_H
#define SKY_NODE_PRIV_H

#include "sky_node.h"

/* ---- sky_node_link.c: links, and packets that leave --------------------------------------------------------------------- */

/** Note that the neighbour behind an ISL is there. */
void SKY_NodeLink_Alive(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id);
/** Count an arrival. @return false if the link is cut, so that nothing has arrived */
bool SKY_NodeLink_Heard(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t len);
/** Restore links whose cut is over. */
void     SKY_NodeLink_EndCuts(SKY_Node_t *node, uint64_t now_us);
uint64_t SKY_NodeLink_NextDue(const SKY_Node_t *node);
/** Send parts over a link. @p endpoint matters on SKY_LINK_GROUND only. */
void SKY_NodeLink_Send(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const SKY_PacketParts_t *parts);
/** Encode and send a packet of our own over a link, as it is. @param payload_crc16  CRC-16 of the payload from zero, or NULL */
void SKY_NodeLink_SendWhole(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, const uint16_t *payload_crc16,
                            SKY_LinkId_t id, uint64_t endpoint);
/** Number, date and send a packet of our own over a link, whatever the router decides. @p endpoint matters on SKY_LINK_GROUND only. */
void SKY_NodeLink_SendOver(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, SKY_LinkId_t id, uint64_t endpoint);
/** Number, date and send a response to who speaks another version, on the ground: as SKY_Packet_EncodeBase. */
void SKY_NodeLink_SendBase(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, uint64_t endpoint);
/** Route and send a packet of our own; a payload of at most SKY_NODE_COPY_BYTES is copied. */
void SKY_NodeLink_SendPacket(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt);
/**
 * Send a handshake to another satellite: routed, or, if no way is known to a neighbour, over the link to it. That link may count as down
 * just because there is no session under which it could be greeted.
 */
void SKY_NodeLink_SendHandshake(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt);
/** Greet neighbours, and tell them news of links. */
void SKY_NodeLink_RunHellos(SKY_Node_t *node, uint64_t now_us);

/* ---- sky_node_guard.c: who may be served -------------------------------------------------------------------------------- */

/** Return OK if a packet that came over @p ingress may be looked at, else the status with which to answer: COOKIE,
 * UNAUTHENTICATED. BUSY: it is not answered, either. */
SKY_Status_t SKY_NodeGuard_Enter(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                 uint64_t endpoint);
/**
 * Decide whether a packet for this satellite is served, and take in what concerns security alone.
 * @return OK: serve it, under node->association; RUNNING: it is dealt with; else the status with which to answer
 */
SKY_Status_t SKY_NodeGuard_Admit(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                 uint64_t endpoint);
/** Send handshakes that are due. */
void SKY_NodeGuard_Run(SKY_Node_t *node, uint64_t now_us);

/* ---- sky_node_local.c: what the node serves itself ---------------------------------------------------------------------- */

/** Act on a packet for this satellite at APID isl: PING, HELLO, STATS, RELAY. */
void SKY_NodeLocal_Packet(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress);

#endif
