/**
 * @file
 * Private to the service: what every feature needs (sky_service_core.c).
 */
#ifndef SKY_SERVICE_CORE_H
#define SKY_SERVICE_CORE_H

#include "sky_service_state.h"

/** Reserve SKY_REQUEST_IDS request ids. @return the first */
uint64_t SKY_ServiceCore_TakeIds(SKY_ServiceCore_t *core);
/** Make a request of this satellite's own; what belongs to the operation is still empty. */
void SKY_ServiceCore_Request(const SKY_ServiceCore_t *core, uint8_t op, SKY_Addr_t dst, uint64_t request_id, SKY_Packet_t *pkt);
/** Number and date @p pkt, and hand it out; its payload stays where it is. */
void SKY_ServiceCore_Emit(SKY_ServiceCore_t *core, uint64_t now_us, SKY_Packet_t *pkt, const uint16_t *payload_crc16,
                          SKY_Out_t *out);
/** Count a request that is refused, or a packet that is none. */
void SKY_ServiceCore_CountError(SKY_ServiceCore_t *core, SKY_Status_t status);

#endif
