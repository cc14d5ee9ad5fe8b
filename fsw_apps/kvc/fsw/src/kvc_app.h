/**
 * @file
 * KVC: the hashtable service of a satellite, as a cFS app. The service itself is SKY_Service of the `sky` library; this app gives
 * it memory, tables (limits, schedule), commands and housekeeping, and registers it so that `isl` can call it.
 */
#ifndef KVC_APP_H
#define KVC_APP_H

#include "cfe.h"
#include "kvc_msg.h"
#include "kvc_platform_cfg.h"
#include "kvc_tbl.h"

typedef struct
{
    uint8            CommandCounter;
    uint8            CommandErrorCounter;
    uint32           RunStatus;
    CFE_SB_PipeId_t  Pipe;
    CFE_TBL_Handle_t LimitsHandle;
    CFE_TBL_Handle_t ScheduleHandle[KVC_PLATFORM_SCHEDULE_SEGMENTS];
    KVC_HkTlm_t      Hk;
} KVC_Data_t;

extern KVC_Data_t KVC_Data;

/** Entry point (startup script). */
void KVC_AppMain(void);

#endif
