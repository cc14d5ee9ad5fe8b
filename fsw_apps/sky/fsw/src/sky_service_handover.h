/**
 * @file
 * Private to the service: handover (sky_service_handover.c).
 */
#ifndef SKY_SERVICE_HANDOVER_H
#define SKY_SERVICE_HANDOVER_H

#include "sky_service_state.h"

/** Return true if chunks follow a schedule: not in the layout hop, where they stay. */
bool SKY_Handover_Moves(const SKY_ServiceCore_t *core);
/** Return how many chunks are here that a satellite has in this row of a schedule that moves them. Walks over all chunks, if any is to go. */
uint32_t SKY_Handover_Owed(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Handover_t *handover,
                           uint64_t now_us, SKY_Addr_t to);
/** The schedule has changed: end what the one before had begun. */
void SKY_Handover_Reset(SKY_Migrations_t *migrations, SKY_Handover_t *handover);
/** Send everything elsewhere: see SKY_Service_Evacuate. */
SKY_Status_t SKY_Handover_Evacuate(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, SKY_Addr_t target);
/** Act on a PUT that the store has taken in: if it has completed a chunk that belongs elsewhere, a look will come. */
void SKY_Handover_Put(const SKY_ServiceCore_t *core, SKY_Handover_t *handover, uint64_t now_us, const SKY_Packet_t *req);
/** Let the schedule act, before SKY_Migrate_OnTime. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Handover_OnTime(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Handover_t *handover, uint64_t now_us);
/** See SKY_Service_HandoverLeft. */
uint32_t SKY_Handover_Left(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Handover_t *handover,
                           uint64_t now_us);
/** See SKY_Service_HandoverMs. */
uint64_t SKY_Handover_Ms(const SKY_Handover_t *handover, uint64_t now_us);
/** See SKY_Service_HandoverIsLate. */
bool SKY_Handover_IsLate(const SKY_ServiceCore_t *core, SKY_Handover_t *handover, uint64_t now_us);

#endif
