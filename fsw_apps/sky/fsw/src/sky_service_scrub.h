/**
 * @file
 * Private to the service: the scrub (sky_service_scrub.c).
 */
#ifndef SKY_SERVICE_SCRUB_H
#define SKY_SERVICE_SCRUB_H

#include "sky_service_state.h"

/** Begin anew, because the schedule has changed: findings by the one before do not count. */
void SKY_Scrub_Reset(SKY_Scrub_t *scrub);
/** Look at the next block when it is time. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Scrub_OnTime(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey,
                          uint64_t now_us);
/** Make the question of the last look. */
bool SKY_Scrub_Next(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, uint64_t now_us, SKY_Out_t *out);
/** Act on a response. @return false if it belongs to no question of the scrub */
bool SKY_Scrub_Response(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                        const SKY_Packet_t *pkt);
/** Note that there is no way to @p dst: a question to it gets no answer. */
void SKY_Scrub_Unreachable(SKY_Scrub_t *scrub, SKY_Addr_t dst);

#endif
