/**
 * @file
 * The service of KVC: its store, its lock, and the functions that `isl` calls through the registry of `sky`.
 *
 * `isl` works in its own task. The mutex is held by it from Lock to Unlock, and by the functions of this file that KVC's own task
 * calls. The store's memory is a static array that is not touched before it is needed.
 */
#include "kvc_service.h"

#include <string.h>

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_service_state.h"

#define KVC_SLOTS_MAX_STEPS 23u /* halvings until nothing is left of SKY_STORE_SLOT_MAX */
#define KVC_US_PER_S        UINT64_C(1000000)
#define KVC_CLOCK_SET_US    50000 /* a larger change of the satellite's clock cannot be drift */

CompileTimeAssert(sizeof(SKY_ScheduleRow_t) == sizeof(KVC_ScheduleRow_t), KvcRowsAreTheCores);

CompileTimeAssert(KVC_TENANTS == SKY_LIMIT_TENANTS, KvcTenantsAreTheCores);

KVC_ServiceState_t KVC_Service;

static SKY_ScheduleRow_t KVC_ScheduleRows[KVC_PLATFORM_SCHEDULE_SEGMENTS * KVC_SEGMENT_ROWS];
static uint64_t          KVC_StoreMemory[KVC_PLATFORM_STORE_BYTES / sizeof(uint64_t)];

bool KVC_Service_Enter(void)
{
    return OS_MutSemTake(KVC_Service.mutex) == OS_SUCCESS;
}

void KVC_Service_Leave(void)
{
    (void)OS_MutSemGive(KVC_Service.mutex);
}

/** Return the chunks that one answer can have. Each takes the packets of a largest chunk, and one more packet says what is
 * missing. The lock is held. */
static uint32_t KVC_CreditMaxLocked(void)
{
    const uint32_t packet_bytes = KVC_Service.node.packet_bytes;
    const uint32_t part_bytes   = packet_bytes > SKY_RESPONSE_OVERHEAD ? packet_bytes - SKY_RESPONSE_OVERHEAD : 1u;
    const uint32_t parts        = (KVC_Service.store.cfg.slot_bytes + part_bytes - 1u) / part_bytes;

    return parts < SKY_NODE_BURST_MAX ? (SKY_NODE_BURST_MAX - 1u) / parts : 1u;
}

/** Give a schedule to the service, or none. Its count of late handovers begins anew. The lock is held, and the service runs. */
static bool KVC_SetScheduleLocked(const SKY_Schedule_t *schedule)
{
    KVC_Service.late_reported = 0;
    KVC_Service.done_reported = 0;
    return SKY_Service_SetSchedule(&KVC_Service.service, schedule);
}

/** Give the schedule, if there is one, to the service. The lock is held, and the service runs. */
static void KVC_FollowLocked(void)
{
    if (KVC_Service.following)
    {
        KVC_Service.epoch_offset_us   = SKY_LIB_ClockOffsetUs();
        KVC_Service.schedule.epoch_us = KVC_Service.epoch_us - (KVC_Service.clock_bound ? KVC_Service.epoch_offset_us : 0);
        KVC_Service.foreign           = !KVC_SetScheduleLocked(&KVC_Service.schedule);
    }
}

/** Tell the service of the window of a sky that does not turn, if the limits have one. The lock is held, and the service runs. */
static void KVC_SetWindowLocked(void)
{
    const KVC_LimitsTable_t *limits = &KVC_Service.limits;
    const SKY_Torus_t       *torus  = &KVC_Service.node.torus;
    const SKY_ScheduleRow_t  row    = {0, {limits->WindowPlane, limits->WindowSlot}};
    const bool               is_one = limits->WindowServers != 0;
    const bool               fits   = limits->WindowPlane <= torus->planes && limits->WindowSlot <= torus->slots;
    bool                     is_set;

    (void)SKY_Service_SetWindow(&KVC_Service.service, NULL); /* what the service reads is about to change */
    KVC_Service.window_row = row;
    is_set                 = is_one && fits &&
             SKY_Schedule_Init(&KVC_Service.window, torus, (SKY_LayoutId_t)limits->WindowLayout, limits->WindowServers,
                               &KVC_Service.window_row, 1, 0) &&
             SKY_Service_SetWindow(&KVC_Service.service, &KVC_Service.window);
    KVC_Service.stray = is_one && !is_set;
}

/** Start the service, or start it anew, if satellite and store are known. Migrations that can go on with the new values go on.
 * The lock is held. */
static bool KVC_StartLocked(void)
{
    SKY_ServiceCfg_t cfg;
    uint32_t         credit_max;

    if (!KVC_Service.node_known || !KVC_Service.store_ready)
    {
        KVC_Service.serving = false;
        return false;
    }
    credit_max = KVC_CreditMaxLocked();
    memset(&cfg, 0, sizeof(cfg));
    cfg.self                    = KVC_Service.node.self;
    cfg.torus                   = KVC_Service.node.torus;
    cfg.packet_bytes            = KVC_Service.node.packet_bytes;
    cfg.credit                  = KVC_Service.limits.Credit < credit_max ? KVC_Service.limits.Credit : credit_max;
    cfg.part_lifetime_ms        = KVC_Service.limits.PartLifetimeMs;
    cfg.clock_offset_us         = SKY_LIB_ClockOffsetUs();
    cfg.migrate_all_from_ground = KVC_Service.limits.MigrateAllFromGround != 0;
    cfg.gossip                  = KVC_Service.limits.Gossip != 0;
    cfg.scrub_period_ms         = KVC_Service.limits.ScrubPeriodMs;
    cfg.handover_ms             = KVC_Service.limits.HandoverMs;
    KVC_Service.credit_lowered  = cfg.credit < KVC_Service.limits.Credit;
    if (!KVC_Service.serving || !SKY_Service_Configure(&KVC_Service.service, &cfg))
    {
        memset(KVC_Service.reported, 0, sizeof(KVC_Service.reported));
        KVC_Service.serving = SKY_Service_Init(&KVC_Service.service, &cfg, &KVC_Service.store, SKY_LIB_NowUs(), SKY_LIB_Seed());
        if (KVC_Service.serving)
        {
            KVC_FollowLocked();
        }
    }
    if (KVC_Service.serving)
    {
        KVC_SetWindowLocked();
    }
    return KVC_Service.serving;
}

/* ---- called by isl ------------------------------------------------------------------------------------------------- */

static bool KVC_OnAttach(const SKY_LIB_Node_t *node)
{
    bool ok;

    if (!KVC_Service_Enter())
    {
        return false;
    }
    KVC_Service.node       = *node;
    KVC_Service.node_known = true;
    ok                     = KVC_StartLocked();
    KVC_Service_Leave();
    return ok;
}

static bool KVC_OnLock(void)
{
    if (!KVC_Service_Enter())
    {
        return false;
    }
    if (!KVC_Service.serving)
    {
        KVC_Service_Leave();
        return false;
    }
    return true;
}

static void KVC_OnBegin(uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_Service_Begin(&KVC_Service.service, now_us, pkt);
}

static bool KVC_OnNext(uint64_t now_us, SKY_Out_t *out)
{
    return SKY_Service_Next(&KVC_Service.service, now_us, out);
}

static void KVC_OnPoll(uint64_t now_us, uint64_t *next_us)
{
    SKY_Service_Poll(&KVC_Service.service, now_us, next_us);
}

static void KVC_OnReject(SKY_Status_t status)
{
    SKY_Service_CountError(&KVC_Service.service, status);
}

static void KVC_OnUnreachable(SKY_Addr_t dst)
{
    SKY_Service_Unreachable(&KVC_Service.service, dst);
}

static const SKY_LIB_Service_t KVC_ServiceTable = {
    .Attach      = KVC_OnAttach,
    .Lock        = KVC_OnLock,
    .Unlock      = KVC_Service_Leave,
    .Begin       = KVC_OnBegin,
    .Next        = KVC_OnNext,
    .Poll        = KVC_OnPoll,
    .Reject      = KVC_OnReject,
    .Unreachable = KVC_OnUnreachable,
};

/* ---- called by KVC's own task -------------------------------------------------------------------------------------- */

/** Withdraw the service when ES deletes the task: `isl` must not call into an app that is gone. */
static void KVC_OnTaskDelete(void)
{
    SKY_LIB_Unregister(SKY_APID_KVC);
}

CFE_Status_t KVC_Service_Open(void)
{
    int32 os_status;

    memset(&KVC_Service, 0, sizeof(KVC_Service));
    os_status = OS_MutSemCreate(&KVC_Service.mutex, "KVC_SERVICE", 0);
    if (os_status != OS_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_STORE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: no mutex, OSAL status %ld", (long)os_status);
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    KVC_Service.mutex_made = true;
    return CFE_SUCCESS;
}

CFE_Status_t KVC_Service_Offer(void)
{
    CFE_Status_t status;

    (void)OS_TaskInstallDeleteHandler(KVC_OnTaskDelete);
    status = SKY_LIB_Register(SKY_APID_KVC, &KVC_ServiceTable);
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_STORE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: APID 0x%03X cannot be registered, status 0x%08lX", SKY_APID_KVC,
                                (unsigned long)(uint32)status);
    }
    return status;
}

void KVC_Service_Close(void)
{
    if (KVC_Service.mutex_made)
    {
        SKY_LIB_Unregister(SKY_APID_KVC);
        KVC_Service.mutex_made = false;
    }
}

bool KVC_Service_PlanStore(const KVC_LimitsTable_t *limits, SKY_StoreCfg_t *cfg)
{
    const size_t memory = limits->StoreBytes != 0 ? limits->StoreBytes : sizeof(KVC_StoreMemory);
    uint32_t     fits   = 0; /* number of slots that is known to fit */
    uint32_t     fails  = SKY_STORE_SLOT_MAX + 1u;
    uint32_t     step;

    for (step = 0; step < KVC_SLOTS_MAX_STEPS && fails - fits > 1; ++step)
    {
        const uint32_t slots = fits + (fails - fits) / 2;
        size_t         needed;

        cfg->slot_bytes = limits->SlotBytes;
        cfg->slot_count = slots;
        needed          = SKY_Store_MemoryBytes(cfg);
        if (needed != 0 && needed <= memory && needed <= sizeof(KVC_StoreMemory))
        {
            fits = slots;
        }
        else
        {
            fails = slots;
        }
    }
    cfg->slot_bytes = limits->SlotBytes;
    cfg->slot_count = fits;
    return fits > 0;
}

/** Return the quotas of validated limits. Bytes that do not matter are 0. */
static SKY_Quotas_t KVC_QuotasOf(const KVC_LimitsTable_t *limits)
{
    SKY_Quotas_t quotas;
    uint32_t     i;

    memset(&quotas, 0, sizeof(quotas));
    quotas.count = limits->TenantCount;
    if (quotas.count > 0)
    {
        quotas.others.reserved_percent = limits->OthersReservedPercent;
        quotas.others.most_percent     = limits->OthersMostPercent;
    }
    for (i = 0; i < quotas.count; ++i)
    {
        quotas.tenants[i].tenant           = limits->Tenant[i].Tenant;
        quotas.tenants[i].reserved_percent = limits->Tenant[i].ReservedPercent;
        quotas.tenants[i].most_percent     = limits->Tenant[i].MostPercent;
    }
    return quotas;
}

/** Give the store its quotas if it or they are new. The lock is held. */
static bool KVC_SetQuotasLocked(const KVC_LimitsTable_t *limits, bool is_new)
{
    const SKY_Quotas_t quotas = KVC_QuotasOf(limits);

    if (!is_new && memcmp(&quotas, &KVC_Service.quotas, sizeof(quotas)) == 0)
    {
        return true; /* the tenants' counters go on */
    }
    KVC_Service.quotas = quotas;
    return SKY_Store_SetQuotas(&KVC_Service.store, &quotas);
}

CFE_Status_t KVC_Service_SetLimits(const KVC_LimitsTable_t *limits)
{
    SKY_StoreCfg_t cfg;
    bool           ok = KVC_Service_PlanStore(limits, &cfg) && KVC_Service_Enter();

    if (ok)
    {
        bool is_new = false;

        if (!KVC_Service.store_ready || cfg.slot_bytes != KVC_Service.store.cfg.slot_bytes ||
            cfg.slot_count != KVC_Service.store.cfg.slot_count)
        {
            ok     = SKY_Store_Init(&KVC_Service.store, &cfg, KVC_StoreMemory, sizeof(KVC_StoreMemory), SKY_LIB_Seed());
            is_new = ok;
            KVC_Service.store_ready = ok;
            KVC_Service.serving     = false; /* the store is new, so migrations have lost their chunks: begin anew */
        }
        ok                 = ok && KVC_SetQuotasLocked(limits, is_new);
        KVC_Service.limits = *limits;
        (void)KVC_StartLocked(); /* this fails until isl has told which satellite this is */
        KVC_Service_Leave();
    }
    if (!ok)
    {
        (void)CFE_EVS_SendEvent(KVC_STORE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: store cannot be set up");
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    (void)CFE_EVS_SendEvent(KVC_STORE_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: store of %lu slots of %lu bytes",
                            (unsigned long)cfg.slot_count, (unsigned long)cfg.slot_bytes);
    return CFE_SUCCESS;
}

bool KVC_Service_Clear(void)
{
    bool ready;

    if (!KVC_Service_Enter())
    {
        return false;
    }
    ready = KVC_Service.store_ready;
    if (ready)
    {
        SKY_Store_Clear(&KVC_Service.store);
    }
    KVC_Service_Leave();
    return ready;
}

bool KVC_Service_Purge(uint32 tenant, const uint8 *key, uint32 *chunks)
{
    bool ready;

    if (!KVC_Service_Enter())
    {
        return false;
    }
    ready = KVC_Service.store_ready;
    if (ready)
    {
        *chunks = SKY_Store_Purge(&KVC_Service.store, tenant, key, NULL);
    }
    KVC_Service_Leave();
    return ready;
}

bool KVC_Service_Torus(SKY_Torus_t *torus)
{
    bool known;

    if (!KVC_Service_Enter())
    {
        return false;
    }
    known  = KVC_Service.node_known;
    *torus = KVC_Service.node.torus;
    KVC_Service_Leave();
    return known;
}

/** Return the epoch of a schedule on its clock. A monotonic clock may have begun after it; then the nearest that the table has
 * room for. */
static uint64_t KVC_EpochUs(const KVC_ScheduleTable_t *table)
{
    uint64_t epoch_s = table->EpochS;

    if (table->Clock == KVC_CLOCK_MONOTONIC)
    {
        const uint64_t now_s = SKY_LIB_NowUs() / KVC_US_PER_S;

        epoch_s = now_s + (uint64_t)(int32)(table->EpochS - (uint32)now_s);
    }
    return epoch_s * KVC_US_PER_S + table->EpochMs * UINT64_C(1000);
}

/** Join the rows of all segments. The lock is held. @return false if they are no schedule */
static bool KVC_JoinLocked(const KVC_ScheduleTable_t *const *segment, uint32 segments)
{
    const KVC_ScheduleTable_t *const first = segment[0];
    SKY_Torus_t                      torus;
    uint32                           k;

    for (k = 0; k < segments; ++k)
    {
        memcpy(&KVC_ScheduleRows[segment[k]->FirstRow - 1u], segment[k]->Row, segment[k]->RowCount * sizeof(segment[k]->Row[0]));
    }
    KVC_Service.clock_bound = first->Clock == KVC_CLOCK_SATELLITE;
    KVC_Service.epoch_us    = KVC_EpochUs(first);
    return SKY_Torus_Init(&torus, first->Planes, first->Slots, false) &&
           SKY_Schedule_Init(&KVC_Service.schedule, &torus, (SKY_LayoutId_t)first->Layout, first->Servers, KVC_ScheduleRows,
                             first->TotalRows, 0);
}

bool KVC_Service_Follow(const KVC_ScheduleTable_t *const *segment, uint32 segments)
{
    bool before;
    bool now;

    if (!KVC_Service_Enter())
    {
        return false;
    }
    before = KVC_Service.following;
    if (KVC_Service.serving)
    {
        (void)KVC_SetScheduleLocked(NULL); /* the rows that the service reads are about to change */
    }
    KVC_Service.following = segments > 0 && KVC_JoinLocked(segment, segments);
    if (KVC_Service.serving)
    {
        KVC_FollowLocked();
    }
    now = KVC_Service.following;
    KVC_Service_Leave();
    return segments > 0 ? now : before;
}

bool KVC_Service_Evacuate(SKY_Addr_t target, SKY_Status_t *status)
{
    if (!KVC_OnLock())
    {
        return false;
    }
    *status = SKY_Service_Evacuate(&KVC_Service.service, SKY_LIB_NowUs(), target);
    KVC_Service_Leave();
    return true;
}

void KVC_Service_ResetCounters(void)
{
    if (KVC_Service_Enter())
    {
        if (KVC_Service.serving)
        {
            SKY_Service_ResetCounters(&KVC_Service.service);
            memset(KVC_Service.reported, 0, sizeof(KVC_Service.reported));
        }
        KVC_Service_Leave();
    }
}

void KVC_Service_Age(void)
{
    if (!KVC_Service_Enter())
    {
        return;
    }
    if (KVC_Service.store_ready)
    {
        (void)SKY_Store_Expire(&KVC_Service.store, SKY_LIB_NowUs(), KVC_PLATFORM_EXPIRE_SLOTS);
    }
    if (KVC_Service.serving)
    {
        const uint64_t offset_us = SKY_LIB_ClockOffsetUs(); /* the satellite's clock may have been set */

        if (KVC_Service.clock_bound &&
            offset_us - KVC_Service.epoch_offset_us + KVC_CLOCK_SET_US > UINT64_C(2) * KVC_CLOCK_SET_US)
        {
            KVC_FollowLocked();
        }
        KVC_Service.service.core.cfg.clock_offset_us = offset_us;
    }
    KVC_Service_Leave();
}
