/**
 * @file
 * The I/O task: wait for packets or for the next due time, then run the packet engine under the lock.
 */
#include "isl_task.h"

#include <string.h>

#include "isl_app.h"
#include "isl_eventids.h"
#include "isl_perfids.h"

#define ISL_BATCHES       4u   /* receive calls in a row before timers have their turn */
#define ISL_RETRY_MS      100u /* pause after the socket has failed */
#define ISL_LOOPBACK_IPV4 0x7F000001u

static struct
{
    osal_id_t       mutex;
    osal_id_t       ended; /* the I/O task gives this at its end */
    bool            mutex_made;
    bool            ended_made;
    bool            running;
    bool            stop; /* guarded by the lock, as are the errors and the node */
    uint32          errors;
    CFE_ES_TaskId_t task;
    ISL_Node_t      node;
} ISL_Task;

ISL_Node_t *ISL_Task_Enter(void)
{
    return ISL_Task.mutex_made && OS_MutSemTake(ISL_Task.mutex) == OS_SUCCESS ? &ISL_Task.node : NULL;
}

void ISL_Task_Leave(void)
{
    (void)OS_MutSemGive(ISL_Task.mutex);
}

uint32 ISL_Task_Errors(void)
{
    return ISL_Task.errors;
}

static uint64_t ISL_WaitUs(const ISL_Node_t *node, uint64_t now_us)
{
    const uint64_t most_us = ISL_PLATFORM_IO_WAIT_MS * UINT64_C(1000);
    const uint64_t due_us  = ISL_Node_NextDue(node);

    if (due_us <= now_us)
    {
        return 0;
    }
    return due_us - now_us < most_us ? due_us - now_us : most_us;
}

static void ISL_ReceiveAll(ISL_Node_t *node)
{
    const ISL_IO_Packet_t *packets = NULL;
    uint32_t               batch;
    uint32_t               count;
    uint32_t               i;

    for (batch = 0; batch < ISL_BATCHES && (count = ISL_IO_Receive(&packets)) > 0; ++batch)
    {
        const uint64_t now_us = SKY_LIB_NowUs();

        for (i = 0; i < count; ++i)
        {
            ISL_Node_Input(node, now_us, packets[i].data, packets[i].len, packets[i].endpoint);
        }
        ISL_Node_Run(node, now_us); /* Run sends everything, as the next receive overwrites packets that are passed on */
    }
}

/** Run one turn, locked. @return false at the end of the task */
static bool ISL_Turn(ISL_Node_t *node, ISL_IO_Event_t event, uint64_t *wait_us)
{
    CFE_ES_PerfLogEntry(ISL_IO_PERF_ID);
    ISL_IO_Turn();
    if (event == ISL_IO_READABLE)
    {
        ISL_ReceiveAll(node);
    }
    else if (event == ISL_IO_FAILED)
    {
        ++ISL_Task.errors;
    }
    ISL_Node_Run(node, SKY_LIB_NowUs());
    *wait_us = ISL_WaitUs(node, SKY_LIB_NowUs());
    CFE_ES_PerfLogExit(ISL_IO_PERF_ID);
    return !ISL_Task.stop;
}

static void ISL_IoTask(void)
{
    uint64_t wait_us = 0;
    bool     go_on   = true;

    while (go_on)
    {
        const ISL_IO_Event_t event = ISL_IO_Wait(wait_us);
        ISL_Node_t *const    node  = ISL_Task_Enter();

        go_on = false; /* without the lock the app is being torn down */
        if (node != NULL)
        {
            go_on = ISL_Turn(node, event, &wait_us);
            ISL_Task_Leave();
        }
        if (go_on && event == ISL_IO_FAILED)
        {
            (void)OS_TaskDelay(ISL_RETRY_MS);
        }
    }
    (void)OS_BinSemGive(ISL_Task.ended);
    CFE_ES_ExitChildTask();
}

void ISL_Task_Wake(void)
{
    static const SKY_PacketParts_t nothing = {NULL, NULL, NULL, 0, 0, 0};
    static uint64_t                ignored; /* if this fails, the task wakes by itself a little later */
    ISL_Node_t *const              node = ISL_Task_Enter();

    if (node != NULL)
    {
        ISL_IO_Send(node->local_endpoint, &nothing, &ignored);
        ISL_IO_Flush();
        ISL_Task_Leave();
    }
}

/** Ask the I/O task to end by itself, outside of all locks. @return the status of the wait for that */
static int32 ISL_EndIoTask(void)
{
    if (ISL_Task_Enter() != NULL)
    {
        ISL_Task.stop = true;
        ISL_Task_Leave();
    }
    ISL_Task_Wake();
    return OS_BinSemTimedWait(ISL_Task.ended, ISL_PLATFORM_IO_WAIT_MS + ISL_STOP_EXTRA_MS);
}

/**
 * Clean up when ES deletes ISL's main task, also by force: the port must be free for the next start. cFE has ended the I/O task
 * and deleted lock and semaphore before. Where it has not, the I/O task must leave the socket and a service that it is in first.
 */
static void ISL_OnTaskDelete(void)
{
    if (ISL_Task.running && ISL_EndIoTask() == OS_SEM_TIMEOUT)
    {
        return; /* the task is stuck, and still in there */
    }
    ISL_Task.running = false;
    ISL_IO_Close();
}

CFE_Status_t ISL_Task_Open(void)
{
    int32 os_status;

    memset(&ISL_Task, 0, sizeof(ISL_Task));
    ISL_Node_Init(&ISL_Task.node);
    os_status           = OS_MutSemCreate(&ISL_Task.mutex, "ISL_NODE", 0);
    ISL_Task.mutex_made = os_status == OS_SUCCESS;
    if (os_status == OS_SUCCESS)
    {
        os_status           = OS_BinSemCreate(&ISL_Task.ended, "ISL_IO_ENDED", 0, 0);
        ISL_Task.ended_made = os_status == OS_SUCCESS;
    }
    if (os_status != OS_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_TASK_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: no lock for the node, OSAL status %ld",
                                (long)os_status);
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    return CFE_SUCCESS;
}

CFE_Status_t ISL_Task_Start(uint32 ipv4, uint16 port)
{
    CFE_Status_t status = ISL_IO_Open(ipv4, port);

    if (status != CFE_SUCCESS)
    {
        return status;
    }
    (void)OS_TaskInstallDeleteHandler(ISL_OnTaskDelete);
    ISL_Task.node.local_endpoint = SKY_Endpoint_Of(ipv4 != 0 ? ipv4 : ISL_LOOPBACK_IPV4, port);
    status = CFE_ES_CreateChildTask(&ISL_Task.task, "ISL_IO", ISL_IoTask, CFE_ES_TASK_STACK_ALLOCATE, ISL_PLATFORM_IO_STACK_BYTES,
                                    ISL_PLATFORM_IO_PRIORITY, 0);
    ISL_Task.running = status == CFE_SUCCESS;
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_TASK_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: no I/O task, status 0x%08lX",
                                (unsigned long)(uint32)status);
        ISL_IO_Close();
    }
    return status;
}

void ISL_Task_Stop(void)
{
    if (ISL_Task.running)
    {
        if (ISL_EndIoTask() != OS_SUCCESS)
        {
            (void)CFE_ES_DeleteChildTask(ISL_Task.task);
        }
        ISL_Task.running = false;
    }
    ISL_IO_Close();
}
