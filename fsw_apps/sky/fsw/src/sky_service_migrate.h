/**
 * @file
 * Private to the service: MIGRATE (sky_service_migrate.c), and what it needs of sky_service.c.
 */
#ifndef SKY_SERVICE_MIGRATE_H
#define SKY_SERVICE_MIGRATE_H

#include "sky_service.h"

#define SKY_SERVICE_REQUEST_IDS 0x10000u /**< that one share, or another question, takes: the low bits count within it */

/** Number and encode @p pkt, whose payload stays where it is. @return false if there is no such packet (it is too long). */
bool SKY_Service_Emit(SKY_Service_t *svc, uint64_t now_us, SKY_Packet_t *pkt, const uint16_t *payload_crc16, SKY_Out_t *out);

/** Act on a MIGRATE request. @return the status of its response */
SKY_Status_t SKY_Service_MigrateRequest(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/**
 * May this satellite take a chunk of a block from the one that sent @p req, and say to it what it holds of the block?
 * @return OK; while the block is being moved away BUSY, or REFUSED if both move it to each other and this one goes first
 */
SKY_Status_t SKY_Service_MigrateGuard(const SKY_Service_t *svc, const SKY_Packet_t *req);
/** @return false if the response belongs to no migration */
bool SKY_Service_MigrateResponse(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** A new pull begins: what was not pulled in the last one is dropped. */
void SKY_Service_MigratePull(SKY_Service_t *svc);
/** The next packet of a migration in this pull. */
bool SKY_Service_MigrateNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/** Let timers act. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Service_MigrateOnTime(SKY_Service_t *svc, uint64_t now_us);

#endif
