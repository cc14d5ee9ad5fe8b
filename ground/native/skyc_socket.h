/**
 * @file
 * One UDP socket with many packets in a system call. Packets for one endpoint leave as one message that the kernel (or the network
 * card) cuts, and arrive the same way. If the system cannot do that, each packet is a message, with many in a call.
 */
#ifndef SKYC_SOCKET_H
#define SKYC_SOCKET_H

#include "skyc.h"
#include "sky_chunkset.h"

#define SKYC_TX_PACKETS  64u
#define SKYC_RX_MESSAGES 8u /* few messages stay in the cache */

typedef struct
{
    uint32_t ipv4; /**< host order, like port */
    uint16_t port;
} SKYC_Endpoint_t;

typedef struct SKYC_Socket SKYC_Socket_t;

/** Take one received datagram. @p data is valid until the next call of SKYC_Socket_Receive. */
typedef void (*SKYC_OnDatagram_t)(void *context, SKYC_Endpoint_t from, const uint8_t *data, size_t len);

SKYC_Socket_t *SKYC_Socket_Open(const SKYC_Config_t *config, SKYC_Counters_t *counters, int *error);
void           SKYC_Socket_Close(SKYC_Socket_t *sock);
/** Return room (SKY_CHUNKSET_MAX_BYTES) for the payload of the packet that is added next, if it has none of its own. */
uint8_t *SKYC_Socket_Payload(SKYC_Socket_t *sock);
/** Encode and queue a packet, with a tag if there is a key (SKY_Tag_EncodeAround); its payload must stay in place until the flush. Flushes by itself when the queue is full. */
void SKYC_Socket_Add(SKYC_Socket_t *sock, SKYC_Endpoint_t to, const SKY_Packet_t *pkt, const SKY_TagKey_t *key);
/** Send all queued packets. A packet that the system does not take counts as lost. */
void SKYC_Socket_Flush(SKYC_Socket_t *sock);
/** Return true if somebody has closed a descriptor of ours, so that the system refused to send, to receive, or to wait. */
bool SKYC_Socket_IsGone(const SKYC_Socket_t *sock);
/** Get the request id of a packet that is larger than its path will ever take. @return false if there is no more */
bool SKYC_Socket_NextTooLarge(SKYC_Socket_t *sock, uint64_t *request_id);
/** Hand over the datagrams that have come; do not wait. @return number of messages, which are bundles or datagrams: of SKYC_RX_MESSAGES
 *  there may be more, after fewer nothing is left */
uint32_t SKYC_Socket_Receive(SKYC_Socket_t *sock, SKYC_OnDatagram_t on_datagram, void *context);
/** Wait until a datagram comes, SKYC_Socket_Wake is called, a signal comes, or the time is over. @return false: a signal has come */
bool SKYC_Socket_Wait(SKYC_Socket_t *sock, uint64_t timeout_us);
/** End a wait, from any thread or signal handler. */
void SKYC_Socket_Wake(SKYC_Socket_t *sock);

#endif
