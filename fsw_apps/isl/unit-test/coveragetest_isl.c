/**
 * @file
 * Unit tests of ISL: start with every failure, run and end, dispatch, tables. The other files have the rest.
 */
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "isl_tlm.h"
#include "isl_ut.h"

/** One step of the start that fails: the function, at which call, and the event that tells. */
typedef struct
{
    UT_EntryKey_t key;
    uint32        call;
    uint16        event;
} Step_t;

static void Test_StartFails(void)
{
    const Step_t steps[] = {
        {UT_KEY(CFE_EVS_Register), 1, 0},
        {UT_KEY(CFE_MSG_Init), 1, ISL_PIPE_ERR_EID},
        {UT_KEY(CFE_SB_CreatePipe), 1, ISL_PIPE_ERR_EID},
        {UT_KEY(CFE_SB_Subscribe), 1, ISL_PIPE_ERR_EID},
        {UT_KEY(CFE_SB_CreatePipe), 2, ISL_PIPE_ERR_EID},
        {UT_KEY(OS_MutSemCreate), 1, ISL_TASK_ERR_EID},
        {UT_KEY(OS_BinSemCreate), 1, ISL_TASK_ERR_EID},
        {UT_KEY(CFE_TBL_Register), 1, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_Load), 1, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_GetAddress), 1, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_GetAddress), 2, ISL_TBL_ERR_EID},
        {UT_KEY(OS_MutSemTake), 1, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_Register), 3, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_Load), 7, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_TBL_GetAddress), 3, ISL_TBL_ERR_EID},
        {UT_KEY(OS_MutSemTake), 2, ISL_TBL_ERR_EID},
        {UT_KEY(CFE_SB_SubscribeEx), 1, ISL_TBL_ERR_EID},
        {UT_KEY(OS_SocketAddrInit), 1, ISL_SOCKET_ERR_EID},
        {UT_KEY(OS_SocketOpen), 1, ISL_SOCKET_ERR_EID},
        {UT_KEY(OS_SocketBind), 1, ISL_SOCKET_ERR_EID},
        {UT_KEY(CFE_ES_CreateChildTask), 1, ISL_TASK_ERR_EID},
        {UT_KEY(OS_BinSemCreate), 2, ISL_TASK_ERR_EID},
        {UT_KEY(CFE_ES_CreateChildTask), 2, ISL_TASK_ERR_EID},
    };
    uint32 i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i)
    {
        UT_Setup();
        UT_SetDeferredRetcode(steps[i].key, (int32)steps[i].call, -1);
        ISL_AppMain();
        UtAssert_UINT32_EQ(ISL_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
        UtAssert_UINT32_EQ(UT_LastEvent, steps[i].event);
        UtAssert_STUB_COUNT(CFE_ES_ExitApp, 1);
    }
}

static void OnReceiveBuffer(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)key;
    *UT_Hook_GetArgValueByName(context, "BufPtr", CFE_SB_Buffer_t **) = user;
}

static void Test_RunAndEnd(void)
{
    static CFE_SB_Buffer_t buffer;
    static CFE_SB_MsgId_t  strange = CFE_SB_MSGID_WRAP_VALUE(0x1888);
    CFE_MSG_FcnCode_t      code    = 0;
    CFE_MSG_Size_t         size    = sizeof(ISL_NoopCmd_t);

    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), &strange, sizeof(strange), false);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), &code, sizeof(code), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &size, sizeof(size), true);
    UT_SetHandlerFunction(UT_KEY(CFE_SB_ReceiveBuffer), OnReceiveBuffer, &buffer);
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_TIME_OUT); /* silence is no error */
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 2, CFE_SB_PIPE_RD_ERR);
    ISL_AppMain();
    UtAssert_UINT32_EQ(ISL_Data.CommandErrorCounter, 1); /* a message that belongs to nobody */
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_PIPE_ERR_EID);
    UtAssert_STUB_COUNT(OS_BinSemTimedWait, 2);
    UtAssert_STUB_COUNT(OS_close, 1);
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 0);

    UT_Setup();
    UT_SetDefaultReturnValue(UT_KEY(OS_BinSemTimedWait), OS_SEM_TIMEOUT); /* the tasks do not end by themselves */
    ISL_AppMain();
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 2);
}

static void Test_Dispatch(void)
{
    static const struct
    {
        uint32            mid;
        CFE_MSG_FcnCode_t code;
        size_t            size;
        uint16            event;
    } good[] = {
        {ISL_CMD_MID, ISL_NOOP_CC, sizeof(ISL_NoopCmd_t), ISL_NOOP_INF_EID},
        {ISL_CMD_MID, ISL_RESET_COUNTERS_CC, sizeof(ISL_ResetCountersCmd_t), ISL_RESET_INF_EID},
        {ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(ISL_SetLinkCmd_t), ISL_SET_LINK_INF_EID},
        {ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), 0},
        {ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), ISL_LINKS_INF_EID},
    };
    ISL_SetLinkCmd_t set_link;
    uint32           i;

    UT_Start();
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        UT_LastEvent = 0;
        UT_Send(good[i].mid, good[i].code, good[i].size, NULL);
        UtAssert_UINT32_EQ(UT_LastEvent, good[i].event);
        UT_Send(good[i].mid, good[i].code, good[i].size + 1, NULL);
        UtAssert_UINT32_EQ(UT_LastEvent, ISL_LEN_ERR_EID);
    }
    UT_Send(ISL_CMD_MID, 99, sizeof(ISL_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_CC_ERR_EID);
    UT_Send(0x1888, 0, sizeof(ISL_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_MID_ERR_EID);

    memset(&set_link, 0, sizeof(set_link));
    set_link.Payload.Link = SKY_LINK_EAST;
    set_link.Payload.CutS = 1;
    UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(set_link), &set_link);
    UT_Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_EAST].Up, 0);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_WEST].Up, 1);
    set_link.Payload.CutS = ISL_CUT_S_MAX + 1;
    UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(set_link), &set_link);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_LINK_ERR_EID);

    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR); /* without the lock there are errors, but no crash */
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        UT_Send(good[i].mid, good[i].code, good[i].size, NULL);
    }
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 3);
}

static void Test_FailedAsserts(void)
{
    const SKY_LIB_Asserts_t asserts[] = {{300, "sky_store.c", 12}, {301, "sky_store.c", 12}, {301, "sky_store.c", 12}};

    UT_Start();
    UT_SetDataBuffer(UT_KEY(SKY_LIB_Asserts), (void *)(uintptr_t)asserts, sizeof(asserts), false);
    UT_LastEvent = 0;
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_ASSERT_ERR_EID);
    UT_LastEvent = 0;
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL); /* there is one event until the counters are reset */
    UtAssert_UINT32_EQ(UT_LastEvent, 0);
    UT_Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.FailedAsserts, 255);
    UT_Send(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, sizeof(ISL_ResetCountersCmd_t), NULL);
    UtAssert_STUB_COUNT(SKY_LIB_ResetAsserts, 1);
}

#define REFUSED(table, field, value, validate)                                \
    do                                                                        \
    {                                                                         \
        UT_Setup();                                                           \
        (table).field = (value);                                              \
        UtAssert_INT32_EQ(validate(&(table)), CFE_STATUS_VALIDATION_FAILURE); \
        UtAssert_UINT32_EQ(UT_LastEvent, ISL_TBL_VALUE_ERR_EID);              \
    } while (0)

static void Test_Tables(void)
{
    UtAssert_INT32_EQ(ISL_Tbl_ValidateNeighbours(&UT_Neighbours), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tbl_ValidateLinks(&UT_Links), CFE_SUCCESS);
    REFUSED(UT_Neighbours, Planes, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, Slots, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, SelfPlane, 4, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, SelfSlot, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, SeamCut, 2, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, LocalPort, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, HelloS, 3601, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, PacketBytes, 65508, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, UplinkFirstMid, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, UplinkLastMid, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, DownlinkMid[1], ISL_HK_TLM_MID, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, Neighbour[0].Present, 2, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, Neighbour[1].Slot, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, Neighbour[2].Ipv4, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Neighbours, Neighbour[3].Port, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(UT_Links, Link[0].DelayUs, 10000001, ISL_Tbl_ValidateLinks);
    REFUSED(UT_Links, Link[1].JitterUs, 10000001, ISL_Tbl_ValidateLinks);
    REFUSED(UT_Links, Link[2].LossPpm, 1000001, ISL_Tbl_ValidateLinks);
    REFUSED(UT_Links, Link[4].Cut, 2, ISL_Tbl_ValidateLinks);

    UT_Setup();
    UT_Start();
    UT_Neighbours.LocalPort = 5000;
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_SetNode), 1);
    ISL_Tbl_Manage();
    UtAssert_STUB_COUNT(CFE_SB_Unsubscribe, 1);
    UtAssert_UINT16_EQ(ISL_Data.LocalPort, 4919); /* the port stays until the next start */
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_StartFails, UT_Setup, NULL, "start fails");
    UtTest_Add(Test_RunAndEnd, UT_Setup, NULL, "run and end");
    UtTest_Add(Test_Dispatch, UT_Setup, NULL, "dispatch");
    UtTest_Add(Test_FailedAsserts, UT_Setup, NULL, "failed assertions");
    UtTest_Add(Test_Tables, UT_Setup, NULL, "tables");
    UT_AddLinks();
    UT_AddNode();
    UT_AddRelay();
    UT_AddSecurity();
    UT_AddTasks();
}
