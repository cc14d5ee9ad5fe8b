/**
 * @file
 * Unit tests of KVC: start with every failure, dispatch, commands, table, service.
 */
#include "cfe.h"
#include "kvc_app.h"
#include "kvc_dispatch.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

static KVC_LimitsTable_t Limits;
static uint16            LastEvent;
static uint32            Events;

static void OnEvent(void *user, UT_EntryKey_t key, const UT_StubContext_t *context, va_list va)
{
    (void)user;
    (void)key;
    (void)va;
    LastEvent = UT_Hook_GetArgValueByName(context, "EventID", uint16);
    ++Events;
}

static void OnGetAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "TblPtr", void **) = &Limits;
}

static void Setup(void)
{
    UT_ResetState(0);
    memset(&KVC_Data, 0, sizeof(KVC_Data));
    memset(&Limits, 0, sizeof(Limits));
    Limits.SlotBytes      = 6144;
    Limits.Credit         = 20;
    Limits.PartLifetimeMs = 1000;
    LastEvent             = 0;
    Events                = 0;
    UT_SetVaHandlerFunction(UT_KEY(CFE_EVS_SendEvent), OnEvent, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_GetAddress), OnGetAddress, NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
}

/** A started app that runs no loop. */
static void Start(void)
{
    KVC_AppMain();
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_RUN);
    UtAssert_UINT32_EQ(LastEvent, KVC_INIT_INF_EID);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
}

static void Test_StartFails(void)
{
    const UT_EntryKey_t keys[]   = {UT_KEY(CFE_EVS_Register), UT_KEY(CFE_MSG_Init),       UT_KEY(CFE_SB_CreatePipe),
                                    UT_KEY(CFE_SB_Subscribe), UT_KEY(OS_MutSemCreate),    UT_KEY(CFE_TBL_Register),
                                    UT_KEY(CFE_TBL_Load),     UT_KEY(CFE_TBL_GetAddress), UT_KEY(OS_MutSemTake),
                                    UT_KEY(SKY_LIB_Register)};
    const uint16        events[] = {0,
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
        Setup();
        UT_SetDeferredRetcode(keys[i], 1, -1);
        KVC_AppMain();
        UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
        UtAssert_UINT32_EQ(LastEvent, events[i]);
        UtAssert_STUB_COUNT(CFE_ES_ExitApp, 1);
    }
}

static void Test_PipeEndsTheApp(void)
{
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_PIPE_RD_ERR);
    KVC_AppMain();
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
    UtAssert_UINT32_EQ(LastEvent, KVC_PIPE_ERR_EID);
    UtAssert_STUB_COUNT(SKY_LIB_Unregister, 1);
}

static void Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes)
{
    union
    {
        CFE_SB_Buffer_t     buffer;
        KVC_PurgeBlockCmd_t purge;
    } message;
    /* an event about a wrong length asks for id and code a second time */
    CFE_SB_MsgId_t    ids[]   = {CFE_SB_ValueToMsgId(mid), CFE_SB_ValueToMsgId(mid)};
    CFE_MSG_FcnCode_t codes[] = {code, code};
    CFE_MSG_Size_t    length  = size;

    memset(&message, 0, sizeof(message));
    if (bytes != NULL)
    {
        memcpy(&message, bytes, size);
    }
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), ids, sizeof(ids), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), codes, sizeof(codes), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &length, sizeof(length), true);
    KVC_TaskPipe(&message.buffer);
    UT_ResetState(UT_KEY(CFE_MSG_GetMsgId));
    UT_ResetState(UT_KEY(CFE_MSG_GetFcnCode));
    UT_ResetState(UT_KEY(CFE_MSG_GetSize));
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
        {KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), 0},
        {KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), 0},
    };
    uint32 i;

    Start();
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        LastEvent = 0;
        Send(good[i].mid, good[i].code, good[i].size, NULL);
        UtAssert_UINT32_EQ(LastEvent, good[i].event);
        Send(good[i].mid, good[i].code, good[i].size + 1, NULL);
        UtAssert_UINT32_EQ(LastEvent, KVC_LEN_ERR_EID);
    }
    UtAssert_UINT32_EQ(KVC_Data.CommandCounter, 2); /* since the reset */
    Send(KVC_CMD_MID, 99, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_CC_ERR_EID);
    Send(0x1888, 0, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_MID_ERR_EID);
    UtAssert_UINT32_EQ(KVC_Data.CommandErrorCounter, 7);
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 1);

    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR); /* the lock is gone: errors, no crash */
    Send(KVC_CMD_MID, KVC_CLEAR_STORE_CC, sizeof(KVC_ClearStoreCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_NOT_READY_ERR_EID);
    Send(KVC_CMD_MID, KVC_PURGE_BLOCK_CC, sizeof(KVC_PurgeBlockCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_NOT_READY_ERR_EID);
    Send(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, sizeof(KVC_ResetCountersCmd_t), NULL);
    Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 2);
}

static void Test_Limits(void)
{
    const KVC_LimitsTable_t good = Limits;
    SKY_StoreCfg_t          cfg;

    Start();
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_SUCCESS);
    Limits.StoreBytes = KVC_PLATFORM_STORE_BYTES + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits           = good;
    Limits.SlotBytes = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits        = good;
    Limits.Credit = SKY_LIMIT_CHUNK_SET + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits                = good;
    Limits.PartLifetimeMs = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits        = good;
    Limits.Gossip = 2;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits               = good;
    Limits.ScrubPeriodMs = UINT32_MAX;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    Limits            = good;
    Limits.StoreBytes = 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Limits), CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_UINT32_EQ(LastEvent, KVC_TBL_VALUE_ERR_EID);

    Limits            = good;
    Limits.BlockCount = 3;
    UtAssert_BOOL_TRUE(KVC_Service_PlanStore(&Limits, &cfg));
    UtAssert_UINT32_EQ(cfg.block_count, 3);
    UtAssert_BOOL_TRUE(SKY_Store_MemoryBytes(&cfg) <= KVC_PLATFORM_STORE_BYTES);
    ++cfg.slot_count; /* as many as fit */
    UtAssert_BOOL_TRUE(SKY_Store_MemoryBytes(&cfg) > KVC_PLATFORM_STORE_BYTES);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    KVC_Tbl_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_STORE_INF_EID);
    KVC_Tbl_Manage(); /* the same cut again: the store keeps its chunks */
    UtAssert_UINT32_EQ(LastEvent, KVC_STORE_INF_EID);
}

static const SKY_LIB_Service_t *Service;

static void OnRegister(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    Service = UT_Hook_GetArgValueByName(context, "service", const SKY_LIB_Service_t *);
}

static void Test_Service(void)
{
    SKY_LIB_Node_t node;
    SKY_Packet_t   pkt;
    SKY_Out_t      out;
    uint64_t       next_us = 0;

    UT_SetHandlerFunction(UT_KEY(SKY_LIB_Register), OnRegister, NULL);
    Start();
    UtAssert_NOT_NULL(Service);
    UtAssert_BOOL_FALSE(Service->Lock()); /* which satellite this is is not known yet */

    memset(&node, 0, sizeof(node));
    node.self.plane   = 1;
    node.self.slot    = 1;
    node.packet_bytes = 9000;
    UtAssert_BOOL_TRUE(SKY_Torus_Init(&node.torus, 3, 3, false));
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_BOOL_FALSE(Service->Attach(&node));
    UtAssert_BOOL_TRUE(Service->Attach(&node));
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_BOOL_FALSE(Service->Lock());

    UtAssert_BOOL_TRUE(Service->Lock());
    memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_KVC;
    pkt.op         = SKY_OP_PING;
    pkt.src.slot   = 9;
    pkt.dst        = node.self;
    pkt.gateway    = node.self;
    Service->Begin(1, &pkt);
    UtAssert_BOOL_TRUE(Service->Next(1, &out));
    UtAssert_BOOL_FALSE(Service->Next(1, &out));
    Service->Poll(2, &next_us);
    Service->Reject(SKY_STATUS_BAD_CHUNK);
    Service->Unlock();

    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_REFUSED_ERR_EID);
    Events = 0;
    Service->Reject(SKY_STATUS_BAD_CHUNK);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 1000); /* too soon for the same cause */
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(Events, 1); /* the clock stood at 0 before, which counts as never reported */
    Service->Reject(SKY_STATUS_BAD_CHUNK);
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(Events, 1);
    Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Serving, 1);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Errors, 3);
    Send(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, sizeof(KVC_ResetCountersCmd_t), NULL);
    Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Errors, 0);
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_StartFails, Setup, NULL, "start fails");
    UtTest_Add(Test_PipeEndsTheApp, Setup, NULL, "pipe cannot be read");
    UtTest_Add(Test_Dispatch, Setup, NULL, "dispatch");
    UtTest_Add(Test_Limits, Setup, NULL, "KVC.Limits");
    UtTest_Add(Test_Service, Setup, NULL, "service");
}
