/**
 * @file
 * Software Bus messages in the form in which links carry them: space packets. The mission decides which implementation is built:
 * isl_bus_native.c if messages on the bus are packets, isl_bus_eds.c if electronic data sheets give them another form on the bus.
 * Both are called with the node locked.
 */
#ifndef ISL_BUS_H
#define ISL_BUS_H

#include "cfe.h"
#include "sky_packet.h"

/**
 * Make a message of one packet: a whole command with a right checksum and a message id in @p first_mid .. @p last_mid; with
 * last 0 none is admitted. @p bytes need no alignment.
 * @return SKY_STATUS_OK, and in @p out a buffer that the caller transmits or releases; else the reason, and no buffer
 */
SKY_Status_t ISL_Bus_Decode(const uint8_t *bytes, uint32_t len, CFE_SB_MsgId_Atom_t first_mid, CFE_SB_MsgId_Atom_t last_mid,
                            CFE_SB_Buffer_t **out);

/**
 * Make a packet of a telemetry message. It is valid until the next call, and as long as the message.
 * @return its length; 0 if it would exceed SKY_LIMIT_RELAY_BYTES
 */
uint32_t ISL_Bus_Encode(const CFE_MSG_Message_t *message, const uint8_t **bytes);

#endif
