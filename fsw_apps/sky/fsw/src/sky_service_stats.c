/**
 * @file
 * The counters of `stats.kvc`, from all features and the store, and those of its tenants.
 */
#include "sky_service_stats.h"

#include "sky_assert.h"
#include "sky_service_handover.h"

#define US_PER_MS 1000u

#define OTHERS_NUMBER (UINT64_C(1) << 32) /* no tenant has this number */

/* Return the records of tenants: none without quotas, when the others are all. */
static uint32_t records_of(const SKY_Store_t *store)
{
    SKY_ASSERT(store->tenant_count >= 1);
    SKY_ASSERT(store->tenant_count <= SKY_STORE_TENANTS);
    return store->tenant_count > 1u ? store->tenant_count : 0u;
}

uint32_t SKY_Stats_Tenants(const SKY_Store_t *store, uint32_t first, uint32_t most, uint64_t *out)
{
    const uint32_t records    = records_of(store);
    const uint64_t slot_bytes = store->cfg.slot_bytes;
    uint32_t       count      = 0;

    for (uint32_t row = first; row < records && count < most; ++row)
    {
        const SKY_StoreTenant_t *tenant = &store->tenants[row];

        out[SKY_STATS_TENANT_NUMBER]         = row == SKY_STORE_OTHERS ? OTHERS_NUMBER : tenant->tenant;
        out[SKY_STATS_TENANT_RESERVED_BYTES] = tenant->reserved * slot_bytes;
        out[SKY_STATS_TENANT_MOST_BYTES]     = tenant->most * slot_bytes;
        out[SKY_STATS_TENANT_USED_BYTES]     = tenant->used * slot_bytes;
        out[SKY_STATS_TENANT_BLOCKS]         = tenant->blocks;
        out[SKY_STATS_TENANT_EVICTIONS]      = tenant->evicted_chunks;
        out[SKY_STATS_TENANT_REFUSED]        = tenant->refused;
        out += SKY_STATS_TENANT_COUNT;
        ++count;
    }
    SKY_ASSERT(count <= most);
    SKY_ASSERT(count <= records);
    return count;
}

void SKY_Stats_Collect(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out)
{
    const SKY_ServiceCore_t     *core     = &svc->core;
    const SKY_Store_t           *store    = core->store;
    const SKY_ServiceCounters_t *c        = &core->counters;
    const SKY_Schedule_t        *schedule = core->schedule;

    out[SKY_STATS_KVC_UPTIME_MS]       = (now_us - core->started_us) / US_PER_MS;
    out[SKY_STATS_KVC_STORE_BYTES]     = (uint64_t)store->cfg.slot_count * store->cfg.slot_bytes;
    out[SKY_STATS_KVC_USED_BYTES]      = (uint64_t)store->slab.used * store->cfg.slot_bytes;
    out[SKY_STATS_KVC_CHUNKS]          = store->counters.chunks;
    out[SKY_STATS_KVC_BLOCKS]          = store->counters.blocks;
    out[SKY_STATS_KVC_BYTES]           = store->counters.bytes;
    out[SKY_STATS_KVC_PUTS]            = c->puts;
    out[SKY_STATS_KVC_GETS]            = c->gets;
    out[SKY_STATS_KVC_HITS]            = c->hits;
    out[SKY_STATS_KVC_MISSES]          = c->misses;
    out[SKY_STATS_KVC_EVICTIONS]       = store->counters.evicted_chunks;
    out[SKY_STATS_KVC_PURGES]          = c->purges;
    out[SKY_STATS_KVC_REQUESTS]        = c->requests;
    out[SKY_STATS_KVC_MIGRATED_OUT]    = c->migrated_out;
    out[SKY_STATS_KVC_MIGRATED_IN]     = c->migrated_in;
    out[SKY_STATS_KVC_PARTIAL_EXPIRED] = store->counters.expired_partial;
    out[SKY_STATS_KVC_ERR_VERSION]     = c->errors[SKY_STATUS_BAD_VERSION];
    out[SKY_STATS_KVC_ERR_OP]          = c->errors[SKY_STATUS_BAD_OP];
    out[SKY_STATS_KVC_ERR_LENGTH]      = c->errors[SKY_STATUS_BAD_LENGTH];
    out[SKY_STATS_KVC_ERR_CHUNK]       = c->errors[SKY_STATUS_BAD_CHUNK];
    out[SKY_STATS_KVC_ERR_CRC]         = c->errors[SKY_STATUS_BAD_CRC];
    out[SKY_STATS_KVC_ERR_TOO_LARGE]   = c->errors[SKY_STATUS_TOO_LARGE];
    out[SKY_STATS_KVC_ERR_STORE_FULL]  = c->errors[SKY_STATUS_STORE_FULL];
    out[SKY_STATS_KVC_ERR_KEY]         = c->errors[SKY_STATUS_BAD_KEY];
    out[SKY_STATS_KVC_GOSSIP_TX]       = c->gossip_tx;
    out[SKY_STATS_KVC_GOSSIP_PURGED]   = c->gossip_purged;
    out[SKY_STATS_KVC_HANDOVERS]       = c->handovers;
    out[SKY_STATS_KVC_ROW]             = schedule != NULL ? SKY_Schedule_RowAt(schedule, now_us) : SKY_SCHEDULE_NONE;
    out[SKY_STATS_KVC_ROWS]            = schedule != NULL ? schedule->count : 0;
    out[SKY_STATS_KVC_SCRUBBED]        = c->scrubbed;
    out[SKY_STATS_KVC_DEGRADED]        = c->degraded;
    out[SKY_STATS_KVC_REPAIRED]        = c->repaired;
    out[SKY_STATS_KVC_HANDOVER_LEFT]   = SKY_Handover_Left(core, &svc->migrations, &svc->handover, now_us);
    out[SKY_STATS_KVC_HANDOVER_MS]     = SKY_Handover_Ms(&svc->handover, now_us);
    out[SKY_STATS_KVC_HINTS]           = store->counters.hinted;
    out[SKY_STATS_KVC_HINTS_LOST]      = store->counters.evicted_hinted;
    out[SKY_STATS_KVC_TENANTS]         = records_of(store);
    SKY_ASSERT(out[SKY_STATS_KVC_HANDOVER_LEFT] <= out[SKY_STATS_KVC_CHUNKS]);
    SKY_ASSERT(out[SKY_STATS_KVC_USED_BYTES] <= out[SKY_STATS_KVC_STORE_BYTES]);
    SKY_ASSERT(out[SKY_STATS_KVC_ROW] <= out[SKY_STATS_KVC_ROWS]);
    SKY_ASSERT(out[SKY_STATS_KVC_BLOCKS] <= out[SKY_STATS_KVC_CHUNKS]);
    SKY_ASSERT(out[SKY_STATS_KVC_BYTES] <= out[SKY_STATS_KVC_CHUNKS] * store->cfg.slot_bytes);
}
