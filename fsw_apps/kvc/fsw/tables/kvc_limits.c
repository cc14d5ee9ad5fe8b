/**
 * @file
 * Default image of KVC.Limits.
 */
#include "cfe_tbl_filedef.h"
#include "kvc_tbl.h"

KVC_LimitsTable_t KVC_Limits = {
    .StoreBytes           = 0, /* all of KVC_PLATFORM_STORE_BYTES */
    .SlotBytes            = 6144,
    .BlockCount           = 0, /* one for each slot */
    .Credit               = 20,
    .PartLifetimeMs       = 10000,
    .MigrateAllFromGround = 0,
    .Gossip               = 0,
    .ScrubPeriodMs        = 0,
    .HandoverMs           = 30000,
};

CFE_TBL_FILEDEF(KVC_Limits, KVC.Limits, Limits of the chunk store, kvc_limits.tbl)
