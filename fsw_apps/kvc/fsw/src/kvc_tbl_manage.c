/**
 * @file
 * The table KVC.Limits: registration, validation, taking over.
 */
#include "kvc_tbl_manage.h"

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_schedule.h"
#include "kvc_service.h"
#include "sky_defaults.h"

#define KVC_CREDIT_MAX           SKY_LIMIT_CHUNK_SET
#define KVC_PART_LIFETIME_MS_MAX 3600000u
#define KVC_PERCENT              100u

bool KVC_Tbl_InRange(const char *table, const char *field, uint32 value, uint32 least, uint32 most)
{
    if (value >= least && value <= most)
    {
        return true;
    }
    (void)CFE_EVS_SendEvent(KVC_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR, "%s: %s is %lu, allowed %lu .. %lu", table, field,
                            (unsigned long)value, (unsigned long)least, (unsigned long)most);
    return false;
}

static bool KVC_InRange(const char *field, uint32 value, uint32 least, uint32 most)
{
    return KVC_Tbl_InRange("KVC.Limits", field, value, least, most);
}

static bool KVC_QuotaInRange(uint32 reserved, uint32 most)
{
    return KVC_InRange("MostPercent", most, 0, KVC_PERCENT) && KVC_InRange("ReservedPercent", reserved, 0, most);
}

/** Check the quotas of tenants. */
static bool KVC_TenantsInRange(const KVC_LimitsTable_t *limits)
{
    uint32 reserved = limits->OthersReservedPercent;
    uint32 i;
    uint32 k;

    if (!KVC_InRange("TenantCount", limits->TenantCount, 0, KVC_TENANTS))
    {
        return false;
    }
    if (limits->TenantCount == 0)
    {
        return true;
    }
    if (!KVC_QuotaInRange(limits->OthersReservedPercent, limits->OthersMostPercent))
    {
        return false;
    }
    for (i = 0; i < limits->TenantCount; ++i)
    {
        if (!KVC_QuotaInRange(limits->Tenant[i].ReservedPercent, limits->Tenant[i].MostPercent))
        {
            return false;
        }
        reserved += limits->Tenant[i].ReservedPercent;
        for (k = 0; k < i; ++k)
        {
            if (limits->Tenant[k].Tenant == limits->Tenant[i].Tenant)
            {
                (void)CFE_EVS_SendEvent(KVC_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                        "KVC.Limits: Tenant has %lu twice, allowed is once",
                                        (unsigned long)limits->Tenant[i].Tenant);
                return false;
            }
        }
    }
    return KVC_InRange("sum of ReservedPercent", reserved, 0, KVC_PERCENT);
}

/** Return true if the window is none, or one that some constellation has. Its satellites are checked once they are known. */
static bool KVC_WindowInRange(const KVC_LimitsTable_t *limits)
{
    return KVC_InRange("WindowServers", limits->WindowServers, 0, SKY_PLACEMENT_SERVERS_MAX) &&
           (limits->WindowServers == 0 ||
            (KVC_InRange("WindowLayout", limits->WindowLayout, SKY_LAYOUT_ROTATION, SKY_LAYOUT_ALL_PLANES) &&
             KVC_InRange("WindowPlane", limits->WindowPlane, 1, SKY_MOST_PLANES) &&
             KVC_InRange("WindowSlot", limits->WindowSlot, 1, SKY_MOST_SLOTS)));
}

int32 KVC_Tbl_ValidateLimits(void *data)
{
    const KVC_LimitsTable_t *limits = data;
    SKY_StoreCfg_t           cfg;

    if (!KVC_InRange("StoreBytes", limits->StoreBytes, 0, KVC_PLATFORM_STORE_BYTES) ||
        !KVC_InRange("SlotBytes", limits->SlotBytes, 1, SKY_LIMIT_CHUNK_BYTES) ||
        !KVC_InRange("Credit", limits->Credit, 1, KVC_CREDIT_MAX) ||
        !KVC_InRange("PartLifetimeMs", limits->PartLifetimeMs, 1, KVC_PART_LIFETIME_MS_MAX) ||
        !KVC_InRange("MigrateAllFromGround", limits->MigrateAllFromGround, 0, 1) ||
        !KVC_InRange("Gossip", limits->Gossip, 0, 1) ||
        !KVC_InRange("ScrubPeriodMs", limits->ScrubPeriodMs, 0, SKY_MOST_SCRUB_MS) ||
        !KVC_InRange("HandoverMs", limits->HandoverMs, 0, SKY_MOST_HANDOVER_MS) || !KVC_WindowInRange(limits) ||
        !KVC_TenantsInRange(limits))
    {
        return CFE_STATUS_VALIDATION_FAILURE;
    }
    if (!KVC_Service_PlanStore(limits, &cfg))
    {
        (void)CFE_EVS_SendEvent(KVC_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC.Limits: no store of %lu byte slots fits %lu bytes", (unsigned long)limits->SlotBytes,
                                (unsigned long)limits->StoreBytes);
        return CFE_STATUS_VALIDATION_FAILURE;
    }
    return CFE_SUCCESS;
}

/** Take the table's values over if they are new. @return CFE_SUCCESS also if nothing is new */
static CFE_Status_t KVC_Tbl_Apply(void)
{
    void        *address = NULL;
    CFE_Status_t status;
    CFE_Status_t result = CFE_SUCCESS;

    status = CFE_TBL_GetAddress(&address, KVC_Data.LimitsHandle);
    if (status == CFE_TBL_INFO_UPDATED)
    {
        result = KVC_Service_SetLimits(address);
    }
    else if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "KVC.Limits cannot be read, status 0x%08lX",
                                (unsigned long)(uint32)status);
        return status;
    }
    (void)CFE_TBL_ReleaseAddress(KVC_Data.LimitsHandle);
    return result;
}

CFE_Status_t KVC_Tbl_Init(void)
{
    CFE_Status_t status;

    status = CFE_TBL_Register(&KVC_Data.LimitsHandle, KVC_LIMITS_TABLE_NAME, sizeof(KVC_LimitsTable_t), CFE_TBL_OPT_DEFAULT,
                              KVC_Tbl_ValidateLimits);
    if (status == CFE_SUCCESS)
    {
        status = CFE_TBL_Load(KVC_Data.LimitsHandle, CFE_TBL_SRC_FILE, KVC_LIMITS_TABLE_FILE);
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "KVC.Limits cannot be loaded from %s, status 0x%08lX",
                                KVC_LIMITS_TABLE_FILE, (unsigned long)(uint32)status);
        return status;
    }
    status = KVC_Tbl_Apply();
    return status == CFE_SUCCESS ? KVC_Schedule_Init() : status;
}

void KVC_Tbl_Manage(void)
{
    (void)CFE_TBL_Manage(KVC_Data.LimitsHandle);
    (void)KVC_Tbl_Apply();
    KVC_Schedule_Manage();
}
