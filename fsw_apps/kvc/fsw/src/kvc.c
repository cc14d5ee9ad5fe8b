/**
 * @file
 * KVC: start, main loop, end.
 */
#include "kvc_app.h"

#include <string.h>

#include "kvc_dispatch.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"
#include "kvc_perfids.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"
#include "kvc_version.h"

KVC_Data_t KVC_Data;

CompileTimeAssert(sizeof(KVC_HkTlm_Payload_t) == 32u + 14u * sizeof(uint64), KvcHkHasNoPadding);
CompileTimeAssert(sizeof(KVC_PurgeBlock_Payload_t) == 4 + KVC_KEY_BYTES, KvcPurgeBlockHasNoPadding);
CompileTimeAssert(sizeof(KVC_LimitsTable_t) == (12u + 2u * KVC_TENANTS) * sizeof(uint32), KvcLimitsHasNoPadding);
CompileTimeAssert(sizeof(KVC_ScheduleBegin_Payload_t) == 7u * sizeof(uint32), KvcScheduleBeginHasNoPadding);
CompileTimeAssert(sizeof(KVC_ScheduleRows_Payload_t) == 12u + KVC_COMMAND_ROWS * 12u, KvcScheduleRowsHasNoPadding);
CompileTimeAssert(sizeof(KVC_ScheduleRowsCmd_t) <= SKY_LIMIT_RELAY_BYTES, KvcScheduleRowsIsRelayed);
CompileTimeAssert(KVC_KEY_BYTES == SKY_KEY_BYTES, KvcKeyIsTheCores);

static CFE_Status_t KVC_InitPipe(void)
{
    const CFE_SB_MsgId_Atom_t mids[] = {KVC_SEND_HK_MID, KVC_WAKEUP_MID};
    CFE_Status_t              status;
    size_t                    i;

    status = CFE_SB_CreatePipe(&KVC_Data.Pipe, KVC_PLATFORM_PIPE_DEPTH, "KVC_CMD_PIPE");
    if (status == CFE_SUCCESS) /* many pieces of a schedule come in a row */
    {
        status = CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(KVC_CMD_MID), KVC_Data.Pipe, CFE_SB_DEFAULT_QOS, KVC_PLATFORM_PIPE_DEPTH);
    }
    for (i = 0; status == CFE_SUCCESS && i < sizeof(mids) / sizeof(mids[0]); ++i)
    {
        status = CFE_SB_Subscribe(CFE_SB_ValueToMsgId(mids[i]), KVC_Data.Pipe);
    }
    return status;
}

static CFE_Status_t KVC_Init(void)
{
    CFE_Status_t status;

    memset(&KVC_Data, 0, sizeof(KVC_Data));
    KVC_Data.RunStatus = CFE_ES_RunStatus_APP_RUN;

    status = CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY);
    if (status != CFE_SUCCESS)
    {
        (void)CFE_ES_WriteToSysLog("KVC: events cannot be registered, status 0x%08lX\n", (unsigned long)(uint32)status);
        return status;
    }
    status = CFE_MSG_Init(CFE_MSG_PTR(KVC_Data.Hk.TelemetryHeader), CFE_SB_ValueToMsgId(KVC_HK_TLM_MID), sizeof(KVC_Data.Hk));
    if (status == CFE_SUCCESS)
    {
        status = KVC_InitPipe();
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_PIPE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: pipe cannot be set up, status 0x%08lX",
                                (unsigned long)(uint32)status);
        return status;
    }
    status = KVC_Service_Open();
    if (status == CFE_SUCCESS)
    {
        status = KVC_Tbl_Init();
    }
    if (status == CFE_SUCCESS)
    {
        status = KVC_Service_Offer();
    }
    if (status == CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_INIT_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC Initialized. Version %s", KVC_VERSION);
    }
    return status;
}

void KVC_AppMain(void)
{
    CFE_Status_t     status;
    CFE_SB_Buffer_t *buffer;

    CFE_ES_PerfLogEntry(KVC_PERF_ID);
    if (KVC_Init() != CFE_SUCCESS)
    {
        KVC_Data.RunStatus = CFE_ES_RunStatus_APP_ERROR;
    }
    while (CFE_ES_RunLoop(&KVC_Data.RunStatus))
    {
        CFE_ES_PerfLogExit(KVC_PERF_ID);
        status = CFE_SB_ReceiveBuffer(&buffer, KVC_Data.Pipe, KVC_PLATFORM_PIPE_WAIT_MS);
        CFE_ES_PerfLogEntry(KVC_PERF_ID);
        if (status == CFE_SUCCESS)
        {
            KVC_TaskPipe(buffer);
        }
        else if (status != CFE_SB_TIME_OUT)
        {
            (void)CFE_EVS_SendEvent(KVC_PIPE_ERR_EID, CFE_EVS_EventType_ERROR,
                                    "KVC: pipe cannot be read, status 0x%08lX: the app ends", (unsigned long)(uint32)status);
            KVC_Data.RunStatus = CFE_ES_RunStatus_APP_ERROR;
        }
    }
    KVC_Service_Close();
    CFE_ES_PerfLogExit(KVC_PERF_ID);
    CFE_ES_ExitApp(KVC_Data.RunStatus);
}
