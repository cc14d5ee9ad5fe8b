/**
 * @file
 * Private to the service: what migrations forbid meanwhile (sky_service_guard.c).
 */
#ifndef SKY_SERVICE_GUARD_H
#define SKY_SERVICE_GUARD_H

#include "sky_service_state.h"

/** @return bit (1 << job) of each migration that is giving away chunks of the block of @p req; 0 for a request of a ground host */
uint32_t SKY_Guard_Given(const SKY_Migrations_t *migrations, const SKY_Packet_t *req);
/**
 * Check that this satellite may take a chunk of the block of @p req from its sender, and tell that it holds it.
 * @param given        what SKY_Guard_Given says of the request
 * @param chunk_total  chunks of the block
 * @return OK; while the chunk is being moved away BUSY, or REFUSED if both move it to each other and this one goes first
 */
SKY_Status_t SKY_Guard_Check(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Packet_t *req,
                             uint32_t given, uint32_t chunk_total, uint32_t chunk_id);

#endif
