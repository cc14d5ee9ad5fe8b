/**
 * @file
 * Private to the service: migrations (sky_service_migrate.c), what they forbid meanwhile (sky_service_guard.c), when the schedule
 * begins them (sky_service_handover.c), and what they need of sky_service.c.
 */
#ifndef SKY_SERVICE_MIGRATE_H
#define SKY_SERVICE_MIGRATE_H

#include "sky_service.h"

#define SKY_SERVICE_REQUEST_IDS 0x10000u /**< that one share, or another question, takes: the low bits count within it */

/** Number and encode @p pkt, whose payload stays where it is. @return false if there is no such packet (it is too long). */
bool SKY_Service_Emit(SKY_Service_t *svc, uint64_t now_us, SKY_Packet_t *pkt, const uint16_t *payload_crc16, SKY_Out_t *out);

/** Lanes of a job: from this one on, */
uint32_t SKY_Service_FirstLane(const SKY_Service_t *svc, const SKY_Migration_t *job);
/** up to the one before this. */
uint32_t SKY_Service_LanesEnd(const SKY_Service_t *svc, const SKY_Migration_t *job);
/** Does a lane move chunks of that block? */
bool SKY_Service_LaneIsOf(const SKY_Lane_t *lane, uint32_t tenant, const uint8_t *key);

/** Act on a MIGRATE request. @return the status of its response */
SKY_Status_t SKY_Service_MigrateRequest(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** End a migration; nothing happens to one that has ended. */
void SKY_Service_MigrateEnd(SKY_Service_t *svc, SKY_Migration_t *job);
/** End all migrations to @p dst. */
void SKY_Service_MigrateUnreachable(SKY_Service_t *svc, SKY_Addr_t dst);
/** @return false if the response belongs to no migration */
bool SKY_Service_MigrateResponse(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/**
 * Begin @p job: the chunks server, server + stride, ... of all blocks go to @p target, but what waits for a row after @p row.
 * @return OK, or NOT_FOUND: there are none
 */
SKY_Status_t SKY_Service_MigrateAll(SKY_Service_t *svc, SKY_Migration_t *job, SKY_Addr_t target, uint64_t deadline_us,
                                    uint32_t row, uint32_t stride, uint32_t server);
/** A new pull begins: what was not pulled in the last one is dropped. */
void SKY_Service_MigratePull(SKY_Service_t *svc);
/** The next packet of a migration in this pull. */
bool SKY_Service_MigrateNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/** Let timers act. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Service_MigrateOnTime(SKY_Service_t *svc, uint64_t now_us);
/* sky_service_guard.c */
/** @return bit (1 << migration) of each that is giving away chunks of the block of @p req; 0 for a request of a ground host */
uint32_t SKY_Service_MigrateGiven(const SKY_Service_t *svc, const SKY_Packet_t *req);
/**
 * May this satellite take a chunk of the block of @p req from whoever sent it, and tell that it holds it?
 * @param given  what SKY_Service_MigrateGiven says of the request
 * @return OK; while the chunk is being moved away BUSY, or REFUSED if both move it to each other and this one goes first
 */
SKY_Status_t SKY_Service_MigrateGuard(const SKY_Service_t *svc, const SKY_Packet_t *req, uint32_t given, uint32_t chunk_id);

/** A chunk was put: if it belongs elsewhere, a look will come. */
void SKY_Service_HandoverPut(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req);
/** The chunks that @p target has in the window of row @p epoch; all (stride 1) if no row says which. */
void SKY_Service_HandoverShare(const SKY_Service_t *svc, uint32_t epoch, SKY_Addr_t target, uint32_t *stride, uint32_t *server);
/**
 * With a schedule: does what is held here of a server, of a block of that epoch, wait for a row to come? It does if that row has it
 * here, or is unknown. Otherwise it only lies beside what waits: it was put anew by who did not know of the prefetch.
 */
bool SKY_Service_HandoverWaits(const SKY_Service_t *svc, uint32_t epoch, uint32_t server);
/** Let the schedule act, before SKY_Service_MigrateOnTime. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Service_HandoverOnTime(SKY_Service_t *svc, uint64_t now_us);

#endif
