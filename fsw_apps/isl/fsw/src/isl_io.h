/**
 * @file
 * Socket of ISL. One of two files implements this, chosen by the CMake variable ISL_IO: isl_io_osal.c (any OSAL) or
 * isl_io_linux.c (many packets a system call).
 *
 * Open, Close, Turn, Receive, Send and Flush are called by one task at a time (ISL's
 * node lock). Wait is called without the lock, so that commands get in.
 */
#ifndef ISL_IO_H
#define ISL_IO_H

#include "cfe.h"
#include "sky_endpoint.h"
#include "sky_node.h"

#define ISL_IO_DATAGRAM_BYTES 65536u /**< bytes of a receive buffer */

typedef struct
{
    uint64_t endpoint; /**< endpoint of the sender */
    uint8_t *data;     /**< valid, and changeable, until the next ISL_IO_Receive */
    uint32_t len;
} ISL_IO_Packet_t;

typedef enum
{
    ISL_IO_IDLE = 0, /**< nothing came in time */
    ISL_IO_READABLE,
    ISL_IO_FAILED
} ISL_IO_Event_t;

/** Open the socket. @param ipv4  0: any. @return CFE_SUCCESS, or an error after an event that says why */
CFE_Status_t ISL_IO_Open(uint32_t ipv4, uint16_t port);
void         ISL_IO_Close(void);
/** Wait for packets. A task that is deleted ends here, and not in one of the other functions, which are called with locks held. */
ISL_IO_Event_t ISL_IO_Wait(uint64_t timeout_us);
/** Begin a turn of the I/O task: until the next one, ISL_PLATFORM_SEND_WAIT_MS may be spent on waiting for room to send. */
void ISL_IO_Turn(void);
/** Get the packets that have arrived, without waiting. @return number of packets at *packets */
uint32_t ISL_IO_Receive(const ISL_IO_Packet_t **packets);
/**
 * Send, or queue until ISL_IO_Flush or until the queue is full. A body longer than SKY_NODE_COPY_BYTES must stay in place until then.
 * @param parts   body and tail may be empty
 * @param errors  raised if the packet cannot be sent; stays in place until ISL_IO_Flush
 */
void ISL_IO_Send(uint64_t endpoint, const SKY_PacketParts_t *parts, uint64_t *errors);
void ISL_IO_Flush(void);

#endif
