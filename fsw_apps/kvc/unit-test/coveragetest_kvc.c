/**
 * @file
 * Unit tests of KVC: start with every failure, dispatch, commands, table, service.
 */
#include "cfe.h"
#include "kvc_app.h"
#include "kvc_dispatch.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"
#include "kvc_schedule.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"
#include "kvc_upload.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

/* What every table reads as. Good limits are, read as a schedule, none. */
static union
{
    KVC_LimitsTable_t   limits;
    KVC_ScheduleTable_t schedule;
} Table;
static uint16 LastEvent;
static uint32 Events;

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
    *UT_Hook_GetArgValueByName(context, "TblPtr", void **) = &Table;
}

static void Setup(void)
{
    UT_ResetState(0);
    memset(&KVC_Data, 0, sizeof(KVC_Data));
    memset(&Table, 0, sizeof(Table));
    Table.limits.SlotBytes      = 6144;
    Table.limits.Credit         = 20;
    Table.limits.PartLifetimeMs = 1000;
    LastEvent                   = 0;
    Events                      = 0;
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
        CFE_SB_Buffer_t       buffer;
        KVC_PurgeBlockCmd_t   purge;
        KVC_ScheduleRowsCmd_t rows;
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
        {KVC_CMD_MID, KVC_SCHEDULE_BEGIN_CC, sizeof(KVC_ScheduleBeginCmd_t), 0},
        {KVC_CMD_MID, KVC_SCHEDULE_ROWS_CC, sizeof(KVC_ScheduleRowsCmd_t), KVC_UPLOAD_ERR_EID},
        {KVC_CMD_MID, KVC_SCHEDULE_COMMIT_CC, sizeof(KVC_ScheduleCommitCmd_t), 0},
        {KVC_CMD_MID, KVC_HANDOVER_CC, sizeof(KVC_HandoverCmd_t), KVC_NOT_READY_ERR_EID},
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
    UtAssert_UINT32_EQ(KVC_Data.CommandCounter, 4); /* since the reset */
    Send(KVC_CMD_MID, 99, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_CC_ERR_EID);
    Send(0x1888, 0, sizeof(KVC_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_MID_ERR_EID);
    UtAssert_UINT32_EQ(KVC_Data.CommandErrorCounter, 13);
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
    const KVC_LimitsTable_t good = Table.limits;
    SKY_StoreCfg_t          cfg;

    Start();
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_SUCCESS);
    Table.limits.StoreBytes = KVC_PLATFORM_STORE_BYTES + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits           = good;
    Table.limits.SlotBytes = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits        = good;
    Table.limits.Credit = SKY_LIMIT_CHUNK_SET + 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits                = good;
    Table.limits.PartLifetimeMs = 0;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits        = good;
    Table.limits.Gossip = 2;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits               = good;
    Table.limits.ScrubPeriodMs = UINT32_MAX;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    Table.limits            = good;
    Table.limits.StoreBytes = 1;
    UtAssert_INT32_EQ(KVC_Tbl_ValidateLimits(&Table.limits), CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_UINT32_EQ(LastEvent, KVC_TBL_VALUE_ERR_EID);

    Table.limits            = good;
    Table.limits.BlockCount = 3;
    UtAssert_BOOL_TRUE(KVC_Service_PlanStore(&Table.limits, &cfg));
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
    Service->Unreachable(node.self); /* nothing goes there */
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

/** A good segment of a schedule of @p total rows. */
static void MakeSchedule(uint32 total)
{
    KVC_ScheduleTable_t *const table = &Table.schedule;
    uint32                     i;

    memset(&Table, 0, sizeof(Table));
    table->Planes    = 3;
    table->Slots     = 3;
    table->Layout    = SKY_LAYOUT_ROTATION;
    table->Servers   = 4;
    table->FirstRow  = 1;
    table->TotalRows = total;
    table->RowCount  = KVC_Schedule_RowsOf(0, total);
    for (i = 0; i < table->RowCount; ++i)
    {
        table->Row[i].TimeMs = i;
    }
    table->RowsCrc = SKY_Crc32c(0, table->Row, table->RowCount * sizeof(table->Row[0]));
}

static void Test_ScheduleTables(void)
{
    uint32 *const fields  = (uint32 *)&Table.schedule; /* all of 32 bits but EpochMs and Clock */
    const uint32  wrong[] = {0, 0xFFFFFFFF, 0, 65536, 4, 10, 2, 7, KVC_PLATFORM_SCHEDULE_SEGMENTS * KVC_SEGMENT_ROWS + 1};
    uint32        i;

    Start();
    UtAssert_UINT32_EQ(KVC_Schedule_RowsOf(1, KVC_SEGMENT_ROWS + 7), 7);
    UtAssert_UINT32_EQ(KVC_Schedule_RowsOf(1, 7), 0);
    for (i = 1; i < sizeof(wrong) / sizeof(wrong[0]); ++i) /* the epoch's seconds may be any */
    {
        MakeSchedule(8);
        UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_SUCCESS);
        fields[i] = wrong[i];
        UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);
        UtAssert_UINT32_EQ(LastEvent, KVC_TBL_VALUE_ERR_EID);
    }
    MakeSchedule(8);
    Table.schedule.EpochMs = 1000;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);
    MakeSchedule(8);
    Table.schedule.Clock = KVC_CLOCK_MONOTONIC + 1;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);
    MakeSchedule(8);
    Table.schedule.Row[0].TimeMs = 1;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);
    MakeSchedule(8);
    Table.schedule.Row[3].TimeMs = 2;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);
    MakeSchedule(8);
    Table.schedule.Row[3].Slot = 2;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Table), CFE_STATUS_VALIDATION_FAILURE);

    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    MakeSchedule(8);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_INF_EID);
    Table.schedule.RowsCrc ^= 1;
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_ERR_EID);
    MakeSchedule(KVC_SEGMENT_ROWS + 1); /* the second segment says that it is the first */
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_SEGMENT_INF_EID);
    MakeSchedule(8);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_ERR_EID);
    memset(&Table, 0, sizeof(Table));
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_INF_EID); /* followed no more */
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_ERR_NEVER_LOADED);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(LastEvent, KVC_TBL_ERR_EID);
}

static void Test_Upload(void)
{
    KVC_ScheduleBegin_Payload_t  begin;
    KVC_ScheduleRows_Payload_t   rows;
    KVC_ScheduleCommit_Payload_t commit;

    Start();
    memset(&begin, 0, sizeof(begin));
    memset(&rows, 0, sizeof(rows));
    memset(&commit, 0, sizeof(commit));
    begin.Id = 7;
    rows.Id = commit.Id = 8;
    begin.AgeMs         = 1; /* before the clock begins: any age will do */
    begin.TotalRows     = KVC_PLATFORM_SCHEDULE_SEGMENTS * KVC_SEGMENT_ROWS + 1;
    UtAssert_BOOL_FALSE(KVC_Upload_Begin(&begin));
    begin.AgeMs     = -1;
    begin.TotalRows = 2;
    UtAssert_BOOL_TRUE(KVC_Upload_Begin(&begin));
    UtAssert_BOOL_TRUE(KVC_Upload_Begin(&begin));
    UtAssert_BOOL_FALSE(KVC_Upload_Rows(&rows));
    UtAssert_BOOL_FALSE(KVC_Upload_Commit(&commit));
    rows.Id = commit.Id = 7;
    rows.FirstRow       = 1;
    rows.RowCount       = 2;
    rows.Row[1].TimeMs  = 1000;
    UtAssert_BOOL_TRUE(KVC_Upload_Rows(&rows));
    UtAssert_BOOL_FALSE(KVC_Upload_Commit(&commit)); /* wrong CRC */
    commit.RowsCrc = SKY_Crc32c(0, rows.Row, 2 * sizeof(rows.Row[0]));
    UT_SetDeferredRetcode(UT_KEY(CFE_TBL_Load), 1, CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_BOOL_FALSE(KVC_Upload_Commit(&commit));
    UtAssert_UINT32_EQ(LastEvent, KVC_UPLOAD_ERR_EID);
    UtAssert_BOOL_TRUE(KVC_Upload_Commit(&commit));
    UtAssert_BOOL_TRUE(KVC_Upload_Commit(&commit));
}

static void Test_HandoverCommand(void)
{
    KVC_HandoverCmd_t cmd;
    SKY_LIB_Node_t    node;

    UT_SetHandlerFunction(UT_KEY(SKY_LIB_Register), OnRegister, NULL);
    Start();
    memset(&node, 0, sizeof(node));
    node.self.plane   = 1;
    node.self.slot    = 1;
    node.packet_bytes = 9000;
    UtAssert_BOOL_TRUE(SKY_Torus_Init(&node.torus, 3, 3, false));
    UtAssert_BOOL_TRUE(Service->Attach(&node));
    memset(&cmd, 0, sizeof(cmd));
    cmd.Payload.Plane = 2;
    cmd.Payload.Slot  = 2;
    Send(KVC_CMD_MID, KVC_HANDOVER_CC, sizeof(cmd), &cmd);
    UtAssert_UINT32_EQ(LastEvent, KVC_HANDOVER_ERR_EID); /* nothing is held */

    /* A schedule for more satellites than there are: told once, at the next WAKEUP. */
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    MakeSchedule(2);
    Table.schedule.Planes = 4;
    KVC_Schedule_Manage();
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_ERR_EID);
    Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Rows, 0);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), 1000000000); /* the clock has been set */
    LastEvent = 0;
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, KVC_SCHEDULE_ERR_EID);
}

/** Row that holds now, by what housekeeping says. */
static uint32 RowNow(void)
{
    Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    return KVC_Data.Hk.Payload.Row;
}

static void Test_Clocks(void)
{
    SKY_LIB_Node_t node;
    uint32         clock;

    UT_SetHandlerFunction(UT_KEY(SKY_LIB_Register), OnRegister, NULL);
    Start();
    memset(&node, 0, sizeof(node));
    node.self.plane   = 1;
    node.self.slot    = 1;
    node.packet_bytes = 9000;
    UtAssert_BOOL_TRUE(SKY_Torus_Init(&node.torus, 3, 3, false));
    UtAssert_BOOL_TRUE(Service->Attach(&node));
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 1000000);
    for (clock = KVC_CLOCK_SATELLITE; clock <= KVC_CLOCK_MONOTONIC; ++clock)
    {
        UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), 0);
        UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
        MakeSchedule(8);
        Table.schedule.EpochS  = clock == KVC_CLOCK_MONOTONIC ? 0xFFFFFFFF : 0; /* before that clock began */
        Table.schedule.EpochMs = 998;
        Table.schedule.Clock   = (uint16)clock;
        KVC_Schedule_Manage();
        UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
        UtAssert_UINT32_EQ(RowNow(), clock == KVC_CLOCK_MONOTONIC ? 8 : 3);
        UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), -1000000);
        UtAssert_UINT32_EQ(RowNow(), clock == KVC_CLOCK_MONOTONIC ? 8 : 1);
    }
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_StartFails, Setup, NULL, "start fails");
    UtTest_Add(Test_PipeEndsTheApp, Setup, NULL, "pipe cannot be read");
    UtTest_Add(Test_Dispatch, Setup, NULL, "dispatch");
    UtTest_Add(Test_Limits, Setup, NULL, "KVC.Limits");
    UtTest_Add(Test_Service, Setup, NULL, "service");
    UtTest_Add(Test_ScheduleTables, Setup, NULL, "KVC.Schedule1 ..");
    UtTest_Add(Test_Upload, Setup, NULL, "upload of a schedule");
    UtTest_Add(Test_HandoverCommand, Setup, NULL, "handover");
    UtTest_Add(Test_Clocks, Setup, NULL, "clocks of a schedule");
}
