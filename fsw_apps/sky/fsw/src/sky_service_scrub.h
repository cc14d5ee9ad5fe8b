/**
 * @file
 * Private to the service: the scrub (sky_service_scrub.c).
 */
#ifndef SKY_SERVICE_SCRUB_H
#define SKY_SERVICE_SCRUB_H

#include "sky_service.h"

/** The schedule has changed: what was found by the one before does not count. */
void SKY_Service_ScrubReset(SKY_Service_t *svc);
/** Look at the next block when it is time. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Service_ScrubOnTime(SKY_Service_t *svc, uint64_t now_us);
/** The question of the last look. */
bool SKY_Service_ScrubNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/** @return false if the response belongs to no question of the scrub */
bool SKY_Service_ScrubResponse(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** There is no way to @p dst: what it was asked gets no answer. */
void SKY_Service_ScrubUnreachable(SKY_Service_t *svc, SKY_Addr_t dst);

#endif
