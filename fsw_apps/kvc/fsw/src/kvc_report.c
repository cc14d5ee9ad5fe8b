/**
 * @file
 * Reports of KVC on its service: housekeeping, and events, one for each cause.
 */
#include "kvc_report.h"

#include <string.h>

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_service_state.h"

void KVC_Report_FillHk(KVC_HkTlm_Payload_t *hk)
{
    const SKY_ServiceCounters_t *counters = &KVC_Service.service.core.counters;
    const SKY_Store_t           *store    = &KVC_Service.store;
    const SKY_Schedule_t        *schedule;
    uint32_t                     cause;

    memset(hk, 0, sizeof(*hk));
    if (!KVC_Service_Enter())
    {
        return;
    }
    if (KVC_Service.store_ready)
    {
        hk->SlotBytes     = store->cfg.slot_bytes;
        hk->ChunksPartial = store->counters.partial;
        hk->Blocks        = store->counters.blocks;
        hk->StoreBytes    = (uint64_t)store->cfg.slot_count * store->cfg.slot_bytes;
        hk->UsedBytes     = (uint64_t)store->slab.used * store->cfg.slot_bytes;
        hk->Chunks        = store->counters.chunks;
        hk->Bytes         = store->counters.bytes;
        hk->EvictedChunks = store->counters.evicted_chunks;
        hk->ExpiredParts  = store->counters.expired_partial;
    }
    if (KVC_Service.serving)
    {
        schedule        = KVC_Service.service.core.schedule;
        hk->Serving     = 1;
        hk->Requests    = counters->requests;
        hk->Puts        = counters->puts;
        hk->Gets        = counters->gets;
        hk->Hits        = counters->hits;
        hk->Misses      = counters->misses;
        hk->MigratedOut = counters->migrated_out;
        hk->MigratedIn  = counters->migrated_in;
        hk->Handovers   = counters->handovers;
        if (schedule != NULL)
        {
            hk->Row  = SKY_Schedule_RowAt(schedule, SKY_LIB_NowUs());
            hk->Rows = schedule->count;
        }
        for (cause = 0; cause < KVC_CAUSES; ++cause)
        {
            hk->Errors += counters->errors[cause];
        }
    }
    KVC_Service_Leave();
}

/** Send events about values of tables that the service cannot follow as they are. */
static void KVC_TellTables(void)
{
    bool     lowered = false;
    bool     foreign = false;
    bool     stray   = false;
    uint32_t credit  = 0;

    if (!KVC_Service_Enter())
    {
        return;
    }
    if (KVC_Service.serving)
    {
        foreign                    = KVC_Service.foreign;
        KVC_Service.foreign        = false;
        stray                      = KVC_Service.stray;
        KVC_Service.stray          = false;
        lowered                    = KVC_Service.credit_lowered;
        credit                     = KVC_Service.service.core.cfg.credit;
        KVC_Service.credit_lowered = false;
    }
    KVC_Service_Leave();
    if (foreign)
    {
        (void)CFE_EVS_SendEvent(
            KVC_SCHEDULE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: the schedule is not followed: it is for %u x %u satellites",
            (unsigned)KVC_Service.schedule.placement.torus.planes, (unsigned)KVC_Service.schedule.placement.torus.slots);
    }
    if (stray)
    {
        (void)CFE_EVS_SendEvent(KVC_WINDOW_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: nothing is repaired: the window of KVC.Limits does not fit %u x %u satellites",
                                (unsigned)KVC_Service.node.torus.planes, (unsigned)KVC_Service.node.torus.slots);
    }
    if (lowered)
    {
        (void)CFE_EVS_SendEvent(KVC_CREDIT_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "KVC: Credit lowered to %lu: more chunks need more than %u packets of these links",
                                (unsigned long)credit, (unsigned)SKY_NODE_BURST_MAX);
    }
}

/** Send events about a handover that takes too long: one when it is late, one when it is done. */
static void KVC_TellLate(void)
{
    SKY_Handover_t *const handover = &KVC_Service.service.handover;
    uint64_t              now_us;
    bool                  is_late   = false;
    bool                  is_done   = false;
    unsigned long         left      = 0;
    unsigned long         late_ms   = 0;
    unsigned long         lasted_ms = 0;

    if (!KVC_Service_Enter())
    {
        return;
    }
    now_us =
        SKY_LIB_NowUs(); /* read under the lock: `isl` may have begun a handover meanwhile, which must not be older than now */
    if (KVC_Service.serving)
    {
        is_late   = SKY_Service_HandoverIsLate(&KVC_Service.service, now_us) && KVC_Service.late_reported != handover->late;
        is_done   = KVC_Service.done_reported != handover->late_done;
        left      = SKY_Service_HandoverLeft(&KVC_Service.service, now_us);
        late_ms   = (unsigned long)SKY_Service_HandoverMs(&KVC_Service.service, now_us);
        lasted_ms = (unsigned long)handover->lasted_ms;

        KVC_Service.late_reported = handover->late;
        KVC_Service.done_reported = handover->late_done;
    }
    KVC_Service_Leave();
    if (is_done)
    {
        (void)CFE_EVS_SendEvent(KVC_DONE_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: late handover done after %lu ms",
                                lasted_ms);
    }
    if (is_late)
    {
        (void)CFE_EVS_SendEvent(KVC_LATE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: handover late: %lu chunks left after %lu ms",
                                left, late_ms);
    }
}

/** Return the next cause that is due for an event, or KVC_CAUSES. The lock is held. */
static uint32_t KVC_NextReportLocked(uint32_t from, uint64_t now_us, uint64_t *count)
{
    uint32_t cause;

    for (cause = from; cause < KVC_CAUSES; ++cause)
    {
        const uint64_t errors = KVC_Service.service.core.counters.errors[cause];

        if (errors != KVC_Service.reported[cause] &&
            (KVC_Service.reported_us[cause] == 0 ||
             now_us - KVC_Service.reported_us[cause] >= KVC_PLATFORM_EVENT_PERIOD_S * UINT64_C(1000000)))
        {
            *count                         = errors - KVC_Service.reported[cause];
            KVC_Service.reported[cause]    = errors;
            KVC_Service.reported_us[cause] = now_us;
            break;
        }
    }
    return cause;
}

/** Send events about requests that were refused. */
static void KVC_TellRefused(void)
{
    const uint64_t now_us = SKY_LIB_NowUs();
    uint32_t       cause  = 0;

    while (cause < KVC_CAUSES && KVC_Service_Enter())
    {
        uint64_t count = 0;

        cause = KVC_Service.serving ? KVC_NextReportLocked(cause, now_us, &count) : KVC_CAUSES;
        KVC_Service_Leave();
        if (cause < KVC_CAUSES)
        {
            (void)CFE_EVS_SendEvent(KVC_REFUSED_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: %lu requests refused: %s",
                                    (unsigned long)count, SKY_LIB_StatusName(cause));
            ++cause;
        }
    }
}

void KVC_Report_Events(void)
{
    KVC_TellTables();
    KVC_TellLate();
    KVC_TellRefused();
}
