/**
 * @file
 * Unit tests of KVC: the schedule, its tables and its upload, and the handover.
 */
#include "kvc_eventids.h"
#include "kvc_msgids.h"
#include "kvc_service.h"
#include "kvc_upload.h"
#include "kvc_ut.h"

/** Give the segments of a schedule that needs two, and none behind them. */
static KVC_ScheduleTable_t Segments[2];
static uint32              NextSegment;

static void Test_ScheduleTables(void)
{
    uint32 *const fields  = (uint32 *)&UT_Table.schedule; /* all fields have 32 bits but EpochMs and Clock */
    const uint32  wrong[] = {
         0, 0xFFFFFFFF, 0, 65536, SKY_LAYOUT_ALL_PLANES + 1, 10, 2, 7, KVC_PLATFORM_SCHEDULE_SEGMENTS * KVC_SEGMENT_ROWS + 1};
    uint32 i;

    UT_Start();
    UtAssert_UINT32_EQ(KVC_Schedule_RowsOf(1, KVC_SEGMENT_ROWS + 7), 7);
    UtAssert_UINT32_EQ(KVC_Schedule_RowsOf(1, 7), 0);
    memset(&UT_Table, 0, sizeof(UT_Table)); /* a table without a schedule */
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_SUCCESS);
    UT_Table.schedule.RowCount = 1;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    for (i = 1; i < sizeof(wrong) / sizeof(wrong[0]); ++i) /* the epoch's seconds may be any */
    {
        UT_MakeSchedule(8);
        UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_SUCCESS);
        fields[i] = wrong[i];
        UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
        UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_VALUE_ERR_EID);
    }
    UT_MakeSchedule(8);
    UT_Table.schedule.EpochMs = 1000;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    UT_MakeSchedule(8);
    UT_Table.schedule.Clock = KVC_CLOCK_MONOTONIC + 1;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    UT_MakeSchedule(8);
    UT_Table.schedule.Row[0].TimeMs = 1;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    UT_MakeSchedule(8);
    UT_Table.schedule.Row[3].TimeMs = 2;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    UT_MakeSchedule(8);
    UT_Table.schedule.Row[3].Slot = 2;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);

    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_MakeSchedule(8);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_INF_EID);
    UT_Table.schedule.RowsCrc ^= 1;
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_ERR_EID);
    UT_MakeSchedule(KVC_SEGMENT_ROWS + 1); /* the second segment says that it is the first */
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SEGMENT_INF_EID);
    UT_MakeSchedule(8);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_ERR_EID);
    memset(&UT_Table, 0, sizeof(UT_Table));
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_INF_EID); /* the schedule is no longer followed */
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_ERR_NEVER_LOADED);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_ERR_EID);
}

static void OnGetSegment(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    static KVC_ScheduleTable_t none;
    const uint32               k = NextSegment++ % KVC_PLATFORM_SCHEDULE_SEGMENTS;

    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "TblPtr", void **) = k < 2 ? &Segments[k] : &none;
}

static void Test_ScheduleOfTwoTables(void)
{
    const uint32 total = KVC_SEGMENT_ROWS + 1;

    UT_Start();
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_GetAddress), OnGetSegment, NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    NextSegment = 0;
    UT_MakeSchedule(total);
    Segments[0]               = UT_Table.schedule;
    Segments[1]               = UT_Table.schedule;
    Segments[1].FirstRow      = KVC_SEGMENT_ROWS + 1;
    Segments[1].RowCount      = 1;
    Segments[1].Row[0].TimeMs = KVC_SEGMENT_ROWS;
    Segments[0].RowsCrc       = SKY_Crc32c(Segments[0].RowsCrc, Segments[1].Row, sizeof(Segments[1].Row[0]));
    Segments[1].RowsCrc       = Segments[0].RowsCrc;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Segments[0]), CFE_SUCCESS);
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Segments[1]), CFE_SUCCESS);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_INF_EID);

    UT_MakeSchedule(total); /* each table is good, but time does not rise from one to the next */
    Segments[1].Row[0].TimeMs = KVC_SEGMENT_ROWS - 1;
    Segments[0].RowsCrc       = SKY_Crc32c(UT_Table.schedule.RowsCrc, Segments[1].Row, sizeof(Segments[1].Row[0]));
    Segments[1].RowsCrc       = Segments[0].RowsCrc;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&Segments[1]), CFE_SUCCESS);
    KVC_Schedule_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_VALUE_ERR_EID);
}

static void Test_ScheduleIsLoadedAtTheStart(void)
{
    UT_SetDeferredRetcode(UT_KEY(CFE_TBL_Load), 2, CFE_TBL_ERR_ACCESS); /* the first load is that of KVC.Limits */
    KVC_AppMain();
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_ERR_EID);
}

static void Test_ScheduleOfAnotherSky(void)
{
    SKY_LIB_Node_t node = UT_Satellite(9000);

    UT_Start();
    UT_MakeSchedule(2);
    UT_Table.schedule.Planes = 4; /* the table may be right, as long as it is not known which satellite this is */
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_SUCCESS);
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_TBL_VALUE_ERR_EID);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR); /* the constellation cannot be asked for */
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_SUCCESS);
    UT_Table.schedule.Planes = 3;
    UtAssert_INT32_EQ(KVC_Schedule_Validate(&UT_Table), CFE_SUCCESS);
}

static void Test_Upload(void)
{
    KVC_ScheduleBegin_Payload_t  begin;
    KVC_ScheduleRows_Payload_t   rows;
    KVC_ScheduleCommit_Payload_t commit;

    UT_Start();
    memset(&begin, 0, sizeof(begin));
    memset(&rows, 0, sizeof(rows));
    memset(&commit, 0, sizeof(commit));
    begin.Id = 7;
    rows.Id = commit.Id = 8;
    begin.AgeMs         = 1; /* before the clock begins any age will do */
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
    UtAssert_BOOL_FALSE(KVC_Upload_Commit(&commit)); /* the CRC is wrong */
    commit.RowsCrc = SKY_Crc32c(0, rows.Row, 2 * sizeof(rows.Row[0]));
    UT_SetDeferredRetcode(UT_KEY(CFE_TBL_Load), 1, CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_BOOL_FALSE(KVC_Upload_Commit(&commit));
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_UPLOAD_ERR_EID);
    UtAssert_BOOL_TRUE(KVC_Upload_Commit(&commit));
    UtAssert_BOOL_TRUE(KVC_Upload_Commit(&commit));
}

static void Test_HandoverCommand(void)
{
    KVC_HandoverCmd_t cmd;
    SKY_LIB_Node_t    node;

    UT_Start();
    node = UT_Satellite(9000);
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    memset(&cmd, 0, sizeof(cmd));
    cmd.Payload.Plane = 2;
    cmd.Payload.Slot  = 2;
    UT_Send(KVC_CMD_MID, KVC_HANDOVER_CC, sizeof(cmd), &cmd);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_HANDOVER_ERR_EID); /* nothing is held */
    cmd.Payload.Plane = 1;
    cmd.Payload.Slot  = 1;
    UT_Send(KVC_CMD_MID, KVC_HANDOVER_CC, sizeof(cmd), &cmd);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_HANDOVER_INF_EID); /* chunks that are still here stay */

    /* A schedule for more satellites than there are is told once, at the next WAKEUP. */
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_MakeSchedule(2);
    UT_Table.schedule.Planes = 4;
    KVC_Schedule_Manage();
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_ERR_EID);
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(KVC_Data.Hk.Payload.Rows, 0);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), 1000000000); /* the satellite's clock has been set */
    UT_LastEvent = 0;
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_SCHEDULE_ERR_EID);
}

static void Test_LateHandover(void)
{
    static const uint8_t data[1];
    const SKY_LIB_Node_t node   = UT_Satellite(9000);
    KVC_LimitsTable_t    limits = UT_Table.limits;
    SKY_Packet_t         pkt;
    SKY_Out_t            out;
    uint64_t             next_us = 0;

    UT_Start();
    limits.HandoverMs = 1000;
    UtAssert_INT32_EQ(KVC_Service_SetLimits(&limits), CFE_SUCCESS);
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_MakeSchedule(2);
    KVC_Schedule_Manage();
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);

    memset(&pkt, 0, sizeof(pkt)); /* chunks of four servers, of which this satellite is one at most */
    pkt.is_request  = true;
    pkt.apid        = SKY_APID_KVC;
    pkt.op          = SKY_OP_PUT;
    pkt.src.slot    = 9;
    pkt.dst         = node.self;
    pkt.gateway     = node.self;
    pkt.chunk_total = 4;
    pkt.block_len   = 4;
    pkt.chunk_len   = 1;
    pkt.payload     = data;
    pkt.length      = 1;
    pkt.chunk_crc   = SKY_Crc32c(0, data, 1);
    for (pkt.chunk_id = 0; pkt.chunk_id < pkt.chunk_total; ++pkt.chunk_id)
    {
        UT_Service->Begin(1000000, &pkt);
    }
    UT_Service->Poll(1000000, &next_us);
    UtAssert_BOOL_TRUE(UT_Service->Next(1000000, &out));
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 2000000);
    UT_LastEvent = 0;
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, 0);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 3000000);
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_LATE_ERR_EID);
    UT_Events = 0;
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_Events, 0); /* the event has been sent */
    UT_Send(KVC_CMD_MID, KVC_CLEAR_STORE_CC, sizeof(KVC_ClearStoreCmd_t), NULL);
    UT_Service->Poll(3000000, &next_us);
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_DONE_INF_EID);
}

/** Return the current row, as housekeeping says. */
static uint32 RowNow(void)
{
    UT_Send(KVC_WAKEUP_MID, 0, sizeof(KVC_WakeupCmd_t), NULL);
    UT_Send(KVC_SEND_HK_MID, 0, sizeof(KVC_SendHkCmd_t), NULL);
    return KVC_Data.Hk.Payload.Row;
}

static void Test_Clocks(void)
{
    SKY_LIB_Node_t node;
    uint32         clock;

    UT_Start();
    node = UT_Satellite(9000);
    UtAssert_BOOL_TRUE(UT_Service->Attach(&node));
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 1000000);
    for (clock = KVC_CLOCK_SATELLITE; clock <= KVC_CLOCK_MONOTONIC; ++clock)
    {
        UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), 0);
        UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
        UT_MakeSchedule(8);
        UT_Table.schedule.EpochS  = clock == KVC_CLOCK_MONOTONIC ? 0xFFFFFFFF : 0; /* the epoch is before that clock began */
        UT_Table.schedule.EpochMs = 998;
        UT_Table.schedule.Clock   = (uint16)clock;
        KVC_Schedule_Manage();
        UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
        UtAssert_UINT32_EQ(RowNow(), clock == KVC_CLOCK_MONOTONIC ? 8 : 3);
        UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_ClockOffsetUs), -1000000);
        UtAssert_UINT32_EQ(RowNow(), clock == KVC_CLOCK_MONOTONIC ? 8 : 1);
    }
}

void UT_AddSchedule(void)
{
    UtTest_Add(Test_ScheduleTables, UT_Setup, NULL, "KVC.Schedule1 ..");
    UtTest_Add(Test_ScheduleOfTwoTables, UT_Setup, NULL, "a schedule of two tables");
    UtTest_Add(Test_ScheduleIsLoadedAtTheStart, UT_Setup, NULL, "no schedule at the start");
    UtTest_Add(Test_ScheduleOfAnotherSky, UT_Setup, NULL, "a schedule of another sky");
    UtTest_Add(Test_Upload, UT_Setup, NULL, "upload of a schedule");
    UtTest_Add(Test_HandoverCommand, UT_Setup, NULL, "handover");
    UtTest_Add(Test_LateHandover, UT_Setup, NULL, "late handover");
    UtTest_Add(Test_Clocks, UT_Setup, NULL, "clocks of a schedule");
}
