/**
 * @file
 * Private to the service: the census of blocks with parity (sky_service_census.c).
 */
#ifndef SKY_SERVICE_CENSUS_H
#define SKY_SERVICE_CENSUS_H

#include "sky_service_state.h"

/** Begin anew, because the schedule has changed. */
void SKY_Census_Reset(SKY_Census_t *census);
/** Count, repair and judge, and begin with the block used last if the scrub has found some. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Census_OnTime(SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip,
                           SKY_Survey_t *survey, uint64_t now_us);
/** Drop what was not pulled. */
void SKY_Census_Pull(SKY_Census_t *census);
/** Make the next question, or the next packet of a repair. */
bool SKY_Census_Next(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, SKY_Out_t *out);
/** Act on a response. @return false if it belongs to no question of a census or a repair */
bool SKY_Census_Response(SKY_ServiceCore_t *core, SKY_Census_t *census, uint64_t now_us, const SKY_Packet_t *pkt);
/** Note that there is no way to @p dst: it says nothing. */
void SKY_Census_Unreachable(const SKY_ServiceCore_t *core, SKY_Census_t *census, SKY_Addr_t dst);

#endif
