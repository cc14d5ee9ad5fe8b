/**
 * @file
 * Unit tests of KVC: start with every failure, dispatch, commands, KVC.Limits, service, end.
 */
#include "kvc_eventids.h"
#include "kvc_msgids.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"
#include "kvc_ut.h"

static osal_task_entry DeleteHandler;

static void Test_StartFails(void)
{
    const UT_EntryKey_t keys[]   = {UT_KEY(CFE_EVS_Register),   UT_KEY(CFE_MSG_Init),     UT_KEY(CFE_SB_CreatePipe),
                                    UT_KEY(CFE_SB_SubscribeEx), UT_KEY(CFE_SB_Subscribe), UT_KEY(OS_MutSemCreate),
                                    UT_KEY(CFE_TBL_Register),   UT_KEY(CFE_TBL_Load),     UT_KEY(CFE_TBL_GetAddress),
                                    UT_KEY(OS_MutSemTake),      UT_KEY(SKY_LIB_Register)};
    const uint16        events[] = {0,
                                    KVC_PIPE_ERR_EID,
                                    KVC_PIPE_ERR_EID,
                                    KVC_PIPE_ERR_EID,
                                    KVC_PIPE_ERR_EID,
                                    KVC_STORE_ERR_EID,
                                    KVC_TBL_ERR_EID,
                                    KVC_TBL_ERR_EID,
                                    KVC_TBL_ERR_EID,
                                    KVC_STORE_ERR_EID,
                                    KVC_STORE_ERR_EID};
    uint32              i;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i)
    {
        UT_Setup();
        UT_SetDeferredRetcode(keys[i], 1, -1);
        KVC_AppMain();
        UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
        UtAssert_UINT32_EQ(UT_LastEvent, events[i]);
        UtAssert_STUB_COUNT(CFE_ES_ExitApp, 1);
    }
}

static void Test_PipeEndsTheApp(void)
{
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_PIPE_RD_ERR);
    KVC_AppMain();
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_PIPE_ERR_EID);
    UtAssert_STUB_COUNT(SKY_LIB_Unregister, 1);
}

/** Let a message come in, then tell the app to end. */
static void OnReceive(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    static CFE_SB_Buffer_t message;

    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "BufPtr", CFE_SB_Buffer_t **) = &message;
}

static void Test_MainLoop(void)
{
    CFE_SB_MsgId_t    id   = CFE_SB_ValueToMsgId(0x1888);
    CFE_MSG_FcnCode_t code = 0;
    CFE_MSG_Size_t    size = sizeof(KVC_NoopCmd_t);

    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), &id, sizeof(id), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), &code, sizeof(code), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &size, sizeof(size), true);
    UT_SetHandlerFunction(UT_KEY(CFE_SB_ReceiveBuffer), OnReceive, NULL);
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    KVC_AppMain();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_MID_ERR_EID);
    UtAssert_UINT32_EQ(KVC_Data.CommandErrorCounter, 1);
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_RUN);
    UtAssert_STUB_COUNT(SKY_LIB_Unregister, 1);
    UtAssert_STUB_COUNT(CFE_ES_ExitApp, 1);
}

static void OnDeleteHandler(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    DeleteHandler = UT_Hook_GetArgValueByName(context, "function_pointer", osal_task_entry);
}

static void Test_DeletedByForce(void)
{
    UT_SetHandlerFunction(UT_KEY(OS_TaskInstallDeleteHandler), OnDeleteHandler, NULL);
    KVC_AppMain(); /* the app ends by itself */
    UtAssert_STUB_COUNT(SKY_LIB_Unregister, 1);
    DeleteHandler();
    UtAssert_STUB_COUNT(SKY_LIB_Unregister, 2);
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
        {KVC_CMD_MID, KVC_NOOP_CC, sizeof(KVC_NoopCmd_t), KVC_NOOP_INF_EID},
        {KVC_CMD_MID, KVC_RESET_COUNTERS_CC, sizeof(KVC_ResetCountersCmd_t), KVC_RESET_INF_EID},
        {KVC_CMD_MID, KVC_CLEAR_STORE_CC, sizeof(KVC_ClearStoreCmd_t), KVC_CLEAR_INF_EID},
        {KVC_CMD_MID, KVC_PURGE_BLOCK_CC, sizeof(KVC_PurgeBlockCmd_t), KVC_PURGE_INF_EID},
        {KVC_CMD_MID, KVC_SCHEDULE_BEGIN_CC, sizeof(KVC_ScheduleBeginCmd_t), 0},
        {KVC_CMD_MID, KVC_SCHEDULE_ROWS_CC, sizeof(KVC_ScheduleRowsCmd_t), KVC_UPLOAD_ERR_EID},
        {KVC_CMD_MID, KVC_SCHEDULE_COMMIT_CC, sizeof(KVC_ScheduleCommitCmd_t), 0},
        {KVC_CMD_MID, KVC_HANDOVER_CC, sizeof(KVC_HandoverCmd_t), KVC_NOT_READY_ERR_EID},
        {KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), 0},
        {KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), 0},
    };
    uint32 i;

    UT_Start();
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        UT_LastEvent = 0;
        UT_Send(good[i].mid, good[i].code, good[i].size, NULL);
        UtAssert_UINT32_EQ(UT_LastEvent, good[i].event);
        UT_Send(good[i].mid, good[i].code, good[i].size + 1, NULL);
        UtAssert_UINT32_EQ(UT_LastEvent, KVC_LEN_ERR_EID);
    }
    UtAssert_UINT32_EQ(KVC_Data.CommandCounter, 4); /* commands since the reset */
    UT_Send(KVC_CMD_MID, 99, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_CC_ERR_EID);
    UT_Send(0x1888, 0, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_MID_ERR_EID);
    UtAssert_UINT32_EQ(KVC_Data.CommandErrorCounter, 13);
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 1);

    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR); /* without the lock there are errors, but no crash */
    UT_Send(KVC_CMD_MID, KVC_CLEAR_STORE_CC, sizeof(KVC_ClearStoreCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_NOT_READY_ERR_EID);
    UT_Send(KVC_CMD_MID, KVC_PURGE_BLOCK_CC, sizeof(KVC_PurgeBlockCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_NOT_READY_ERR_EID);
    UT_Send(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, sizeof(KVC_ResetCountersCmd_t), NULL);
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 2);
}

static void Test_Limits(void)
{
    const KVC_LimitsTable_t good = UT_Table.limits;
    SKY_StoreCfg_t          cfg;

    UT_Start();
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_SUCCESS);
    UT_Table.limits.StoreBytes = KVC_PLATFORM_STORE_BYTES + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits           = good;
    UT_Table.limits.SlotBytes = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits        = good;
    UT_Table.limits.Credit = SKY_LIMIT_CHUNK_SET + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits                = good;
    UT_Table.limits.PartLifetimeMs = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits        = good;
    UT_Table.limits.Gossip = 2;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits               = good;
    UT_Table.limits.ScrubPeriodMs = UINT32_MAX;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits            = good;
    UT_Table.limits.HandoverMs = UINT32_MAX;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UT_Table.limits               = good;
    UT_Table.limits.WindowServers = 2;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE); /* it has no layout */
    UT_Table.limits.WindowLayout = SKY_LAYOUT_ROTATION;
    UT_Table.limits.WindowPlane  = 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE); /* nor a slot */
    UT_Table.limits.WindowSlot = 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_SUCCESS);
    UT_Table.limits            = good;
    UT_Table.limits.StoreBytes = 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_VALUE_ERR_EID);

    UT_Table.limits = good;
    UtAssert_BOOL_TRUE(KVC_Service_PlanStore(&UT_Table.limits, &cfg));
    UtAssert_BOOL_TRUE(SKY_Store_MemoryBytes(&cfg) <= KVC_PLATFORM_STORE_BYTES);
    ++cfg.slot_count; /* the store has as many slots as fit */
    UtAssert_BOOL_TRUE(SKY_Store_MemoryBytes(&cfg) > KVC_PLATFORM_STORE_BYTES);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    KVC_Tbl_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_STORE_INF_EID);
    KVC_Tbl_Manage(); /* the division is the same, so the store keeps its chunks */
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_STORE_INF_EID);
}

static void Test_Tenants(void)
{
    static const struct
    {
        uint32 count, tenant, reserved, most, others_reserved, others_most;
        int32  status;
    } cases[] = {
        {0, 1, 101, 0, 7, 101, CFE_SUCCESS}, /* without tenants the rest does not matter */
        {2, 1, 60, 100, 40, 100, CFE_SUCCESS},
        {2, 1, 0, 0, 0, 0, CFE_SUCCESS},
        {KVC_TENANTS + 1, 1, 0, 100, 0, 100, CFE_STATUS_VALIDATION_FAILURE},
        {2, 1, 0, 101, 0, 100, CFE_STATUS_VALIDATION_FAILURE},
        {2, 1, 51, 50, 0, 100, CFE_STATUS_VALIDATION_FAILURE},
        {2, 1, 0, 100, 0, 101, CFE_STATUS_VALIDATION_FAILURE},
        {2, 1, 0, 100, 11, 10, CFE_STATUS_VALIDATION_FAILURE},
        {2, 1, 61, 100, 40, 100, CFE_STATUS_VALIDATION_FAILURE},
        {2, 0, 0, 100, 0, 100, CFE_STATUS_VALIDATION_FAILURE}, /* twice */
    };
    const KVC_LimitsTable_t good = UT_Table.limits;
    const SKY_LIB_Node_t    node = UT_Satellite(9000);
    static const uint8_t    data[6144]; /* a whole slot, so that another chunk needs another one */
    SKY_Packet_t            pkt;
    SKY_Out_t               out;
    uint32                  i;

    UT_Start();
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        UT_Table.limits                           = good;
        UT_Table.limits.TenantCount               = cases[i].count;
        UT_Table.limits.Tenant[0].Tenant          = cases[i].tenant;
        UT_Table.limits.Tenant[0].ReservedPercent = (uint16)cases[i].reserved;
        UT_Table.limits.Tenant[0].MostPercent     = (uint16)cases[i].most;
        UT_Table.limits.OthersReservedPercent     = (uint16)cases[i].others_reserved;
        UT_Table.limits.OthersMostPercent         = (uint16)cases[i].others_most;
        UT_LastEvent                              = 0;
        UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&UT_Table.limits), cases[i].status);
        UtAssert_UINT32_EQ(UT_LastEvent, cases[i].status == CFE_SUCCESS ? 0 : KVC_TBL_VALUE_ERR_EID);
    }

    /* A new table counts at once, and takes nothing away: tenant 0 may put, then no more. */
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = true;
    pkt.apid        = SKY_APID_KVC;
    pkt.op          = SKY_OP_PUT;
    pkt.src.slot    = 9;
    pkt.dst         = node.self;
    pkt.gateway     = node.self;
    pkt.chunk_total = 2;
    pkt.block_len   = 2 * sizeof(data);
    pkt.chunk_len   = sizeof(data);
    pkt.payload     = data;
    pkt.length      = sizeof(data);
    pkt.chunk_crc   = SKY_Crc32c(0, data, sizeof(data));
    UT_Service->Begin(1, &pkt);
    UtAssert_BOOL_FALSE(UT_Service->Next(1, &out)); /* a PUT that succeeds is not answered */

    UT_Table.limits                       = good;
    UT_Table.limits.TenantCount           = 1;
    UT_Table.limits.Tenant[0].Tenant      = 5;
    UT_Table.limits.Tenant[0].MostPercent = 100;
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    KVC_Tbl_Manage();
    KVC_Tbl_Manage(); /* nothing new */
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Chunks, 1);
    pkt.chunk_id = 1;
    UT_Service->Begin(1, &pkt);
    UtAssert_BOOL_TRUE(UT_Service->Next(1, &out)); /* store_full */
    pkt.tenant = 5;
    UT_Service->Begin(1, &pkt);
    UtAssert_BOOL_FALSE(UT_Service->Next(1, &out));
}

static void Test_Service(void)
{
    SKY_LIB_Node_t node;
    SKY_Packet_t   pkt;
    SKY_Out_t      out;
    uint64_t       next_us = 0;

    UT_Start();
    UtAssert_NOT_NULL(UT_Service);
    UtAssert_BOOL_FALSE(UT_Service->Lock()); /* it is not known yet which satellite this is */

    node = UT_Satellite(9000);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_BOOL_FALSE(UT_Service->Attach(&node));
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_BOOL_FALSE(UT_Service->Lock());

    UtAssert_BOOL_TRUE(UT_Service->Lock());
    memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_KVC;
    pkt.op         = SKY_OP_PING;
    pkt.src.slot   = 9;
    pkt.dst        = node.self;
    pkt.gateway    = node.self;
    UT_Service->Begin(1, &pkt);
    UtAssert_BOOL_TRUE(UT_Service->Next(1, &out));
    UtAssert_BOOL_FALSE(UT_Service->Next(1, &out));
    UT_Service->Poll(2, &next_us);
    UT_Service->Reject(SKY_STATUS_BAD_CHUNK);
    UT_Service->Unreachable(node.self); /* nothing is on its way there */
    UT_Service->Unlock();

    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_REFUSED_ERR_EID);
    UT_Events = 0;
    UT_Service->Reject(SKY_STATUS_BAD_CHUNK);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 1000); /* the event of this cause would come too soon */
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_Events, 1); /* the clock stood at 0 before, which counts as never reported */
    UT_Service->Reject(SKY_STATUS_BAD_CHUNK);
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_Events, 1);
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Serving, 1);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Errors, 3);
    UT_Send(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, sizeof(KVC_ResetCountersCmd_t), NULL);
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Errors, 0);
}

static void Test_CreditIsLowered(void)
{
    SKY_LIB_Node_t node = UT_Satellite(SKY_RESPONSE_OVERHEAD + 2100); /* a chunk takes three packets */

    UT_Table.limits.Credit = SKY_LIMIT_CHUNK_SET;
    UT_Start();
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_CREDIT_INF_EID);
    UT_LastEvent = 0;
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, 0); /* the event comes once */
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_StartFails, UT_Setup, NULL, "start fails");
    UtTest_Add(Test_PipeEndsTheApp, UT_Setup, NULL, "pipe cannot be read");
    UtTest_Add(Test_MainLoop, UT_Setup, NULL, "a message, then the end");
    UtTest_Add(Test_DeletedByForce, UT_Setup, NULL, "deleted by force");
    UtTest_Add(Test_Dispatch, UT_Setup, NULL, "dispatch");
    UtTest_Add(Test_Limits, UT_Setup, NULL, "KVC.Limits");
    UtTest_Add(Test_Tenants, UT_Setup, NULL, "quotas of tenants");
    UtTest_Add(Test_Service, UT_Setup, NULL, "service");
    UtTest_Add(Test_CreditIsLowered, UT_Setup, NULL, "credit is lowered");
    UT_AddSchedule();
}
