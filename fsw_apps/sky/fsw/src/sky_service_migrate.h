/**
 * @file
 * Private to the service: migrations (sky_service_migrate.c).
 */
#ifndef SKY_SERVICE_MIGRATE_H
#define SKY_SERVICE_MIGRATE_H

#include "sky_service_state.h"

/** Return true if there is such a satellite, and it is not this one. */
bool SKY_Migrate_CanGoTo(const SKY_ServiceCore_t *core, SKY_Addr_t target);
/** Act on a MIGRATE request. @return the status of its response */
SKY_Status_t SKY_Migrate_Request(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt);
/**
 * Begin the migration of the handover: the chunks server, server + stride, ... of all blocks go to @p target, except those that
 * wait for a row after @p row. @return OK, or NOT_FOUND if there are none
 */
SKY_Status_t SKY_Migrate_All(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t target, uint64_t deadline_us,
                             uint32_t row, uint32_t stride, uint32_t server);
/** Begin the migration of all chunks that are kept for @p home, in the place of the handover. @return OK, or NOT_FOUND if there are none */
SKY_Status_t SKY_Migrate_Hinted(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Addr_t home, uint64_t deadline_us);
/** End all migrations to @p dst. */
void SKY_Migrate_Unreachable(SKY_Migrations_t *migrations, SKY_Addr_t dst);
/** Act on a response. @return false if it belongs to no migration */
bool SKY_Migrate_Response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, const SKY_Packet_t *pkt);
/** Begin a pull: packets that were not pulled in the last one are dropped. */
void SKY_Migrate_Pull(const SKY_ServiceCore_t *core, SKY_Migrations_t *migrations);
/** Make the next packet of a migration in this pull. */
bool SKY_Migrate_Next(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, SKY_Out_t *out);
/** Let timers act. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Migrate_OnTime(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us);

#endif
