/**
 * @file
 * Default image of KVC.Limits.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"
#include "sky_defaults.h"

KVC_LimitsTable_t KVC_Limits = {
    .StoreBytes           = 0, /* 0: all of KVC_PLATFORM_STORE_BYTES */
    .SlotBytes            = SKY_DEFAULT_SLOT_BYTES,
    .Credit               = SKY_DEFAULT_CREDIT,
    .PartLifetimeMs       = SKY_DEFAULT_PART_LIFETIME_MS,
    .MigrateAllFromGround = 0,
    .Gossip               = 0,
    .ScrubPeriodMs        = SKY_DEFAULT_SCRUB_MS,
    .HandoverMs           = SKY_DEFAULT_HANDOVER_MS,
    .WindowServers        = 0, /* not known: nothing is repaired without a schedule */
    .TenantCount          = 0, /* no quotas: all tenants share the store */
};

CFE_TBL_FILEDEF(KVC_Limits, KVC.Limits, Limits of the chunk store, kvc_limits.tbl)
