/**
 * @file
 * Private to the service: the counters of `stats.kvc` (sky_service_stats.c).
 */
#ifndef SKY_SERVICE_STATS_H
#define SKY_SERVICE_STATS_H

#include "sky_service_state.h"

/** Fill in the counters: see SKY_Service_Stats. */
void SKY_Stats_Collect(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);
/**
 * Fill in the `tenant` records of the ICD, of SKY_STATS_TENANT_COUNT counters each, from record @p first on.
 * @return their number, at most @p most; 0 if there are no more, or no quotas
 */
uint32_t SKY_Stats_Tenants(const SKY_Store_t *store, uint32_t first, uint32_t most, uint64_t *out);

#endif
