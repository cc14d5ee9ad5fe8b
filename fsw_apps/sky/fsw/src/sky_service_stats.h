/**
 * @file
 * Private to the service: the counters of `stats.kvc` (sky_service_stats.c).
 */
#ifndef SKY_SERVICE_STATS_H
#define SKY_SERVICE_STATS_H

#include "sky_service_state.h"

/** Fill in the counters: see SKY_Service_Stats. */
void SKY_Stats_Collect(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);

#endif
