/**
 * @file
 * The telemetry task: wait for a message of the downlink list, then hand it to the node.
 */
#include "isl_tlm.h"

#include <string.h>

#include "isl_app.h"
#include "isl_cmds.h"
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_task.h"

static struct
{
    osal_id_t       ended; /* the telemetry task gives this at its end */
    bool            running;
    bool            stop; /* guarded by the node's lock */
    CFE_ES_TaskId_t task;
} ISL_Tlm;

CFE_Status_t ISL_Tlm_Open(void)
{
    memset(&ISL_Tlm, 0, sizeof(ISL_Tlm));
    return CFE_SB_CreatePipe(&ISL_Data.TlmPipe, ISL_PLATFORM_TLM_PIPE_DEPTH, "ISL_TLM_PIPE");
}

CFE_Status_t ISL_Tlm_Subscribe(const ISL_NeighboursTable_t *table)
{
    CFE_Status_t result = CFE_SUCCESS;
    uint32       i;

    for (i = 0; i < ISL_DOWNLINK_MIDS; ++i)
    {
        if (ISL_Data.DownlinkMid[i] != 0)
        {
            (void)CFE_SB_Unsubscribe(CFE_SB_ValueToMsgId(ISL_Data.DownlinkMid[i]), ISL_Data.TlmPipe);
        }
        ISL_Data.DownlinkMid[i] = 0;
    }
    for (i = 0; i < ISL_DOWNLINK_MIDS; ++i)
    {
        if (table->DownlinkMid[i] != 0)
        {
            const CFE_Status_t status = CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(table->DownlinkMid[i]), ISL_Data.TlmPipe,
                                                           CFE_SB_DEFAULT_QOS, ISL_PLATFORM_DOWNLINK_LIMIT);

            if (status == CFE_SUCCESS)
            {
                ISL_Data.DownlinkMid[i] = table->DownlinkMid[i];
            }
            else
            {
                result = status;
            }
        }
    }
    return result;
}

/** Return true if the task may go on. Without the lock the app is being torn down. */
static bool ISL_GoesOn(void)
{
    bool go_on = false;

    if (ISL_Task_Enter() != NULL)
    {
        go_on = !ISL_Tlm.stop;
        ISL_Task_Leave();
    }
    return go_on;
}

static void ISL_TlmTask(void)
{
    CFE_SB_Buffer_t *buffer = NULL;
    CFE_Status_t     status;

    do
    {
        status = CFE_SB_ReceiveBuffer(&buffer, ISL_Data.TlmPipe, ISL_PLATFORM_PIPE_WAIT_MS);
        if (!ISL_GoesOn())
        {
            break;
        }
        if (status == CFE_SUCCESS)
        {
            ISL_RelayTelemetry(&buffer->Msg);
        }
        else if (status != CFE_SB_TIME_OUT)
        {
            (void)CFE_EVS_SendEvent(ISL_PIPE_ERR_EID, CFE_EVS_EventType_ERROR,
                                    "ISL: telemetry pipe cannot be read, status 0x%08lX: no telemetry until the app restarts",
                                    (unsigned long)(uint32)status);
        }
    } while (status == CFE_SUCCESS || status == CFE_SB_TIME_OUT);
    (void)OS_BinSemGive(ISL_Tlm.ended);
    CFE_ES_ExitChildTask();
}

CFE_Status_t ISL_Tlm_Start(void)
{
    const int32  os_status = OS_BinSemCreate(&ISL_Tlm.ended, "ISL_TLM_ENDED", 0, 0);
    CFE_Status_t status    = CFE_STATUS_EXTERNAL_RESOURCE_FAIL;

    if (os_status == OS_SUCCESS)
    {
        status = CFE_ES_CreateChildTask(&ISL_Tlm.task, "ISL_TLM", ISL_TlmTask, CFE_ES_TASK_STACK_ALLOCATE,
                                        ISL_PLATFORM_TLM_STACK_BYTES, ISL_PLATFORM_TLM_PRIORITY, 0);
    }
    ISL_Tlm.running = status == CFE_SUCCESS;
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_TASK_ERR_EID, CFE_EVS_EventType_ERROR,
                                "ISL: no telemetry task, status 0x%08lX, OSAL status %ld", (unsigned long)(uint32)status,
                                (long)os_status);
    }
    return status;
}

/** Put a message into the telemetry pipe, so that the task looks at `stop` now. If that fails, the task looks a little later. */
static void ISL_WakeTlm(void)
{
    ISL_WakeupCmd_t wakeup;

    if (CFE_SB_Subscribe(CFE_SB_ValueToMsgId(ISL_WAKEUP_MID), ISL_Data.TlmPipe) == CFE_SUCCESS &&
        CFE_MSG_Init(CFE_MSG_PTR(wakeup.CommandHeader), CFE_SB_ValueToMsgId(ISL_WAKEUP_MID), sizeof(wakeup)) == CFE_SUCCESS)
    {
        (void)CFE_SB_TransmitMsg(CFE_MSG_PTR(wakeup.CommandHeader), true);
    }
}

void ISL_Tlm_Stop(void)
{
    if (!ISL_Tlm.running)
    {
        return;
    }
    if (ISL_Task_Enter() != NULL)
    {
        ISL_Tlm.stop = true;
        ISL_Task_Leave();
    }
    ISL_WakeTlm();
    if (OS_BinSemTimedWait(ISL_Tlm.ended, ISL_PLATFORM_PIPE_WAIT_MS + ISL_STOP_EXTRA_MS) != OS_SUCCESS)
    {
        (void)CFE_ES_DeleteChildTask(ISL_Tlm.task);
    }
    ISL_Tlm.running = false;
}
