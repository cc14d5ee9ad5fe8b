/**
 * @file
 * Private to the service: the question whether all that belongs here has arrived (sky_service_arrivals.c).
 */
#ifndef SKY_SERVICE_ARRIVALS_H
#define SKY_SERVICE_ARRIVALS_H

#include "sky_service_state.h"

/** Begin anew, because the schedule or the window has changed. */
void SKY_Arrivals_Reset(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals);
/** Forget what was known of a row that is over, before a response says it. */
void SKY_Arrivals_Check(SKY_ServiceCore_t *core, const SKY_Arrivals_t *arrivals, uint64_t now_us);
/** Ask the next source when it is time. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Arrivals_OnTime(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us);
/** Make the next question. */
bool SKY_Arrivals_Next(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us, SKY_Out_t *out);
/** Act on a response. @return false if it belongs to no question of the arrivals */
bool SKY_Arrivals_Response(SKY_ServiceCore_t *core, SKY_Arrivals_t *arrivals, uint64_t now_us, const SKY_Packet_t *pkt);

#endif
