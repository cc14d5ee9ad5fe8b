/**
 * @file
 * Private to the service: requests and their answers (sky_service_answer.c).
 */
#ifndef SKY_SERVICE_ANSWER_H
#define SKY_SERVICE_ANSWER_H

#include "sky_service_state.h"

/** Act on a request. The answer is then pulled with SKY_Answer_Next while its stage is not SKY_ANSWER_IDLE. */
void SKY_Answer_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req);
/** Make the next packet of an answer whose stage is not SKY_ANSWER_IDLE. @return false if there is no such packet (it is too long) */
bool SKY_Answer_Next(SKY_ServiceCore_t *core, SKY_Answer_t *answer, uint64_t now_us, SKY_Out_t *out);

#endif
