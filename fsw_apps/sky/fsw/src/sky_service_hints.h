/**
 * @file
 * Private to the service: hints (sky_service_hints.c).
 */
#ifndef SKY_SERVICE_HINTS_H
#define SKY_SERVICE_HINTS_H

#include "sky_service_state.h"

/** Return how many chunks are kept here for a satellite. Walks over all chunks, if any is kept for somebody. */
uint32_t SKY_Hints_Owed(const SKY_ServiceCore_t *core, SKY_Addr_t to);
/** Note that a satellite has asked what is kept for it: it is there, and its turn is next. */
void SKY_Hints_Wake(SKY_Hints_t *hints, uint64_t now_us, SKY_Addr_t home);
/** Look for what is kept for others when it is time. Before SKY_Migrate_OnTime. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Hints_OnTime(const SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Hints_t *hints, uint64_t now_us);
/** Make the question of the last look. */
bool SKY_Hints_Next(SKY_ServiceCore_t *core, SKY_Hints_t *hints, uint64_t now_us, SKY_Out_t *out);
/** Act on a response: what is kept for a home that answers goes there. @return false if it belongs to no question of the hints */
bool SKY_Hints_Response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Hints_t *hints, uint64_t now_us,
                        const SKY_Packet_t *pkt);

#endif
