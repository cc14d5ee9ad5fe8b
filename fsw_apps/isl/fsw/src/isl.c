/**
 * @file
 * ISL: start, main loop, end.
 */
#include "isl_app.h"

#include <string.h>

#include "isl_dispatch.h"
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_perfids.h"
#include "isl_security.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "isl_tlm.h"
#include "isl_version.h"

ISL_Data_t ISL_Data;

CompileTimeAssert(sizeof(ISL_SetLink_Payload_t) == 4, IslSetLinkHasNoPadding);
CompileTimeAssert(sizeof(ISL_HkLink_t) == 24u + 8u * sizeof(uint64), IslHkLinkHasNoPadding);
CompileTimeAssert(sizeof(ISL_HkSecurity_t) == 40u + 11u * sizeof(uint64), IslHkSecurityHasNoPadding);
CompileTimeAssert(sizeof(ISL_HkTlm_Payload_t) == 24u + 4u * 8u + ISL_LINK_COUNT * sizeof(ISL_HkLink_t) + sizeof(ISL_HkSecurity_t),
                  IslHkHasNoPadding);
CompileTimeAssert(sizeof(ISL_Neighbour_t) == 12, IslNeighbourHasNoPadding);
CompileTimeAssert(sizeof(ISL_LinkEntry_t) == 20, IslLinkEntryHasNoPadding);
CompileTimeAssert(sizeof(ISL_NeighboursTable_t) == 32u + ISL_NEIGHBOUR_COUNT * 12u + ISL_DOWNLINK_MIDS * 4u,
                  IslNeighboursHasNoPadding);
CompileTimeAssert(ISL_NEIGHBOUR_COUNT == SKY_ISL_COUNT && ISL_LINK_COUNT == SKY_LINK_COUNT, IslLinksAreTheCores);
CompileTimeAssert(sizeof(ISL_HkTlm_t) <= SKY_LIMIT_RELAY_BYTES, IslHkCanBeRelayed);

static CFE_Status_t ISL_InitPipes(void)
{
    const CFE_SB_MsgId_Atom_t mids[] = {ISL_CMD_MID, ISL_SEND_HK_MID, ISL_WAKEUP_MID};
    CFE_Status_t              status;
    size_t                    i;

    status = CFE_SB_CreatePipe(&ISL_Data.Pipe, ISL_PLATFORM_PIPE_DEPTH, "ISL_CMD_PIPE");
    for (i = 0; status == CFE_SUCCESS && i < sizeof(mids) / sizeof(mids[0]); ++i)
    {
        status = CFE_SB_Subscribe(CFE_SB_ValueToMsgId(mids[i]), ISL_Data.Pipe);
    }
    return status == CFE_SUCCESS ? ISL_Tlm_Open() : status;
}

static CFE_Status_t ISL_Init(void)
{
    CFE_Status_t status;

    memset(&ISL_Data, 0, sizeof(ISL_Data));
    ISL_Data.RunStatus = CFE_ES_RunStatus_APP_RUN;

    status = CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY);
    if (status != CFE_SUCCESS)
    {
        (void)CFE_ES_WriteToSysLog("ISL: events cannot be registered, status 0x%08lX\n", (unsigned long)(uint32)status);
        return status;
    }
    status = CFE_MSG_Init(CFE_MSG_PTR(ISL_Data.Hk.TelemetryHeader), CFE_SB_ValueToMsgId(ISL_HK_TLM_MID), sizeof(ISL_Data.Hk));
    if (status == CFE_SUCCESS)
    {
        status = ISL_InitPipes();
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_PIPE_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: pipe cannot be set up, status 0x%08lX",
                                (unsigned long)(uint32)status);
        return status;
    }
    status = ISL_Task_Open();
    if (status == CFE_SUCCESS)
    {
        status = ISL_Tbl_Init();
    }
    if (status == CFE_SUCCESS)
    {
        status = ISL_Task_Start(ISL_Data.LocalIpv4, ISL_Data.LocalPort);
    }
    if (status == CFE_SUCCESS)
    {
        status = ISL_Tlm_Start();
    }
    if (status == CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_INIT_INF_EID, CFE_EVS_EventType_INFORMATION, "ISL Initialized. Version %s", ISL_VERSION);
    }
    return status;
}

void ISL_AppMain(void)
{
    CFE_Status_t     status;
    CFE_SB_Buffer_t *buffer;

    CFE_ES_PerfLogEntry(ISL_PERF_ID);
    if (ISL_Init() != CFE_SUCCESS)
    {
        ISL_Data.RunStatus = CFE_ES_RunStatus_APP_ERROR;
    }
    while (CFE_ES_RunLoop(&ISL_Data.RunStatus))
    {
        CFE_ES_PerfLogExit(ISL_PERF_ID);
        status = CFE_SB_ReceiveBuffer(&buffer, ISL_Data.Pipe, ISL_PLATFORM_PIPE_WAIT_MS);
        CFE_ES_PerfLogEntry(ISL_PERF_ID);
        if (status == CFE_SUCCESS)
        {
            ISL_TaskPipe(buffer);
        }
        else if (status != CFE_SB_TIME_OUT)
        {
            (void)CFE_EVS_SendEvent(ISL_PIPE_ERR_EID, CFE_EVS_EventType_ERROR,
                                    "ISL: pipe cannot be read, status 0x%08lX: the app ends", (unsigned long)(uint32)status);
            ISL_Data.RunStatus = CFE_ES_RunStatus_APP_ERROR;
        }
    }
    ISL_Tlm_Stop();
    ISL_Task_Stop();
    ISL_Security_End();
    CFE_ES_PerfLogExit(ISL_PERF_ID);
    CFE_ES_ExitApp(ISL_Data.RunStatus);
}
