/**
 * @file
 * Private to the twin: deliberate faults of the core (SKYT_Break_t), at the places where they happen.
 */
#ifndef TWIN_BREAK_H
#define TWIN_BREAK_H

#include "twin_priv.h"

/** Break a packet that a satellite is about to send. @return its length in twin->scratch2 if it was changed, else 0 */
uint32_t SKYT_Break_Packet(SKYT_Twin_t *twin, const SKY_PacketParts_t *out);
/** Break a packet that a satellite is about to look at. @return the packet that it is to see */
const SKY_Packet_t *SKYT_Break_Seen(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, SKY_Packet_t *changed);
/** Break a service that has looked at a packet, and is about to answer. */
void SKYT_Break_Begun(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt);
/** Return the link over which a packet leaves instead of @p link. */
uint32_t SKYT_Break_Link(const SKYT_Twin_t *twin, uint32_t index, uint32_t link, bool begins);
/** Break the links that a satellite takes for usable, before it runs. */
void SKYT_Break_Links(SKYT_Twin_t *twin, uint32_t index);
/** Break the leases of listeners, before a satellite sends telemetry. */
void SKYT_Break_Lease(SKYT_Twin_t *twin, uint32_t index);
/** Return how much its clock is to be ahead while it looks at this packet. */
uint64_t SKYT_Break_LaterUs(const SKYT_Twin_t *twin, const SKY_Packet_t *pkt);
/** Break the places at which a host asks for a share. @return number of places in @p found */
uint32_t SKYT_Break_Places(const SKYT_Twin_t *twin, SKY_Addr_t *found, uint32_t count);
/** Break what a host knows of late satellites, which it has asked. */
void SKYT_Break_Searched(const SKYT_Twin_t *twin, SKY_Ground_t *ground);
/** Break a packet that a ground host is about to look at. @return its length in twin->scratch2 if it was changed, 0 if it was lost, else @p len */
uint32_t SKYT_Break_Heard(SKYT_Twin_t *twin, const SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len);
/** Break a host, of which an operation has ended. */
void SKYT_Break_Ended(SKYT_Twin_t *twin, uint32_t ground);
/** Break what a satellite knows of sequence numbers, before it looks at a packet. */
void SKYT_Break_Sequences(SKYT_Twin_t *twin, uint32_t index);
/** Break a satellite that has served a request. */
void SKYT_Break_Served(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt);

#endif
