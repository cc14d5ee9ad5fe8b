/**
 * @file
 * Commands of KVC.
 */
#include "kvc_cmds.h"

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_report.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"
#include "kvc_upload.h"
#include "kvc_version.h"

void KVC_NoopCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    ++KVC_Data.CommandCounter;
    (void)CFE_EVS_SendEvent(KVC_NOOP_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: no operation. Version %s", KVC_VERSION);
}

void KVC_ResetCountersCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    KVC_Data.CommandCounter      = 0;
    KVC_Data.CommandErrorCounter = 0;
    KVC_Service_ResetCounters();
    (void)CFE_EVS_SendEvent(KVC_RESET_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: counters reset");
}

/** Count a command that needs the store, and say so if the store was not there. */
static bool KVC_CountStoreCommand(bool done)
{
    if (done)
    {
        ++KVC_Data.CommandCounter;
    }
    else
    {
        ++KVC_Data.CommandErrorCounter;
        (void)CFE_EVS_SendEvent(KVC_NOT_READY_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: the store is not there yet");
    }
    return done;
}

void KVC_ClearStoreCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    if (KVC_CountStoreCommand(KVC_Service_Clear()))
    {
        (void)CFE_EVS_SendEvent(KVC_CLEAR_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: store cleared");
    }
}

void KVC_PurgeBlockCmd(const CFE_SB_Buffer_t *buffer)
{
    const KVC_PurgeBlockCmd_t *const cmd    = (const KVC_PurgeBlockCmd_t *)buffer;
    uint32                           chunks = 0;

    if (KVC_CountStoreCommand(KVC_Service_Purge(cmd->Payload.Tenant, cmd->Payload.Key, &chunks)))
    {
        (void)CFE_EVS_SendEvent(KVC_PURGE_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "KVC: block %02x%02x%02x%02x... purged, %lu chunks", cmd->Payload.Key[0], cmd->Payload.Key[1],
                                cmd->Payload.Key[2], cmd->Payload.Key[3], (unsigned long)chunks);
    }
}

static void KVC_Count(bool done)
{
    KVC_Data.CommandCounter      = (uint8)(KVC_Data.CommandCounter + (done ? 1 : 0));
    KVC_Data.CommandErrorCounter = (uint8)(KVC_Data.CommandErrorCounter + (done ? 0 : 1));
}

void KVC_ScheduleBeginCmd(const CFE_SB_Buffer_t *buffer)
{
    const KVC_ScheduleBeginCmd_t *const cmd = (const KVC_ScheduleBeginCmd_t *)buffer;

    KVC_Count(KVC_Upload_Begin(&cmd->Payload));
}

void KVC_ScheduleRowsCmd(const CFE_SB_Buffer_t *buffer)
{
    const KVC_ScheduleRowsCmd_t *const cmd = (const KVC_ScheduleRowsCmd_t *)buffer;

    KVC_Count(KVC_Upload_Rows(&cmd->Payload));
}

void KVC_ScheduleCommitCmd(const CFE_SB_Buffer_t *buffer)
{
    const KVC_ScheduleCommitCmd_t *const cmd = (const KVC_ScheduleCommitCmd_t *)buffer;

    KVC_Count(KVC_Upload_Commit(&cmd->Payload));
}

void KVC_HandoverCmd(const CFE_SB_Buffer_t *buffer)
{
    const KVC_HandoverCmd_t *const cmd    = (const KVC_HandoverCmd_t *)buffer;
    const SKY_Addr_t               target = {cmd->Payload.Plane, cmd->Payload.Slot};
    SKY_Status_t                   status = SKY_STATUS_BUSY;
    const bool                     ready  = KVC_Service_Evacuate(target, &status);

    KVC_Count(ready && status == SKY_STATUS_OK);
    if (!ready)
    {
        (void)CFE_EVS_SendEvent(KVC_NOT_READY_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: the service does not run yet");
    }
    else if (status != SKY_STATUS_OK)
    {
        (void)CFE_EVS_SendEvent(KVC_HANDOVER_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: no handover to (%u, %u): %s%s",
                                (unsigned)target.plane, (unsigned)target.slot, SKY_LIB_StatusName(status),
                                status == SKY_STATUS_REFUSED ? ", a schedule is followed" : "");
    }
    else
    {
        (void)CFE_EVS_SendEvent(KVC_HANDOVER_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: everything goes to (%u, %u)",
                                (unsigned)target.plane, (unsigned)target.slot);
    }
}

void KVC_SendHkCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    KVC_Report_FillHk(&KVC_Data.Hk.Payload);
    KVC_Data.Hk.Payload.CommandCounter      = KVC_Data.CommandCounter;
    KVC_Data.Hk.Payload.CommandErrorCounter = KVC_Data.CommandErrorCounter;
    CFE_SB_TimeStampMsg(CFE_MSG_PTR(KVC_Data.Hk.TelemetryHeader));
    (void)CFE_SB_TransmitMsg(CFE_MSG_PTR(KVC_Data.Hk.TelemetryHeader), true);
}

void KVC_WakeupCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    KVC_Service_Age();
    KVC_Report_Events();
    KVC_Tbl_Manage();
}
