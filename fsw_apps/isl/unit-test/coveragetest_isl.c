/**
 * @file
 * Unit tests of ISL: start with every failure, dispatch, commands, tables, packets through the I/O task.
 */
#include "cfe.h"
#include "isl_app.h"
#include "isl_dispatch.h"
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

#define HOST 9

static ISL_NeighboursTable_t         Neighbours;
static ISL_LinksTable_t              Links;
static uint16                        LastEvent;
static CFE_ES_ChildTaskMainFuncPtr_t IoTask;
static uint8                         Received[2048];
static size_t                        ReceivedBytes;
static uint8                         Sent[2048];
static size_t                        SentBytes;
static uint16                        FromPort;

static void OnEvent(void *user, UT_EntryKey_t key, const UT_StubContext_t *context, va_list va)
{
    (void)user;
    (void)key;
    (void)va;
    LastEvent = UT_Hook_GetArgValueByName(context, "EventID", uint16);
}

static void OnChildTask(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    IoTask = UT_Hook_GetArgValueByName(context, "FunctionPtr", CFE_ES_ChildTaskMainFuncPtr_t);
}

/** An address as BSD sockets have it. */
static void OnAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    static const uint8   ipv4[] = {201, 102, 53, 154};
    OS_SockAddr_t *const addr   = UT_Hook_GetArgValueByName(context, "Addr", OS_SockAddr_t *);

    (void)user;
    (void)key;
    addr->ActualLength = 16;
    memcpy(&addr->AddrData.Buffer[4], ipv4, sizeof(ipv4));
}

static void OnSend(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    const void *const buffer = UT_Hook_GetArgValueByName(context, "buffer", const void *);
    int32             status;

    (void)user;
    SentBytes = UT_Hook_GetArgValueByName(context, "buflen", size_t);
    status    = (int32)SentBytes;
    if (SentBytes <= sizeof(Sent))
    {
        memcpy(Sent, buffer, SentBytes);
    }
    UT_Stub_SetReturnValue(key, status);
}

static void OnGetPort(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "PortNum", uint16 *) = FromPort;
}

/** One packet of the ground, then nothing. */
static void OnReceive(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    void *const          buffer = UT_Hook_GetArgValueByName(context, "buffer", void *);
    OS_SockAddr_t *const from   = UT_Hook_GetArgValueByName(context, "RemoteAddr", OS_SockAddr_t *);
    int32                status = OS_ERROR_TIMEOUT;

    (void)user;
    memset(from, 0, sizeof(*from));
    if (ReceivedBytes > 0)
    {
        status = (int32)ReceivedBytes;
        memcpy(buffer, Received, ReceivedBytes);
        ReceivedBytes = 0;
    }
    UT_Stub_SetReturnValue(key, status);
}

static void OnType(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    CFE_MSG_Type_t *const type = UT_Hook_GetArgValueByName(context, "Type", CFE_MSG_Type_t *);

    (void)user;
    (void)key;
    *type = CFE_MSG_Type_Tlm;
}

/** The two tables in turn, as ISL asks for them. */
static void OnGetAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    void **const address = UT_Hook_GetArgValueByName(context, "TblPtr", void **);

    (void)user;
    *address = (UT_GetStubCount(key) % 2) == 1 ? (void *)&Neighbours : (void *)&Links;
}

static void Setup(void)
{
    static const ISL_Neighbour_t around[ISL_NEIGHBOUR_COUNT] = {{0x7F120102, 4919, 1, 2, 1, 0},
                                                                {0x7F120203, 4919, 2, 3, 1, 0},
                                                                {0x7F120302, 4919, 3, 2, 1, 0},
                                                                {0x7F120201, 4919, 2, 1, 1, 0}};

    UT_ResetState(0);
    memset(&ISL_Data, 0, sizeof(ISL_Data));
    memset(&Links, 0, sizeof(Links));
    memset(&Neighbours, 0, sizeof(Neighbours));
    Neighbours.SelfPlane      = 2;
    Neighbours.SelfSlot       = 2;
    Neighbours.Planes         = 3;
    Neighbours.Slots          = 3;
    Neighbours.LocalIpv4      = 0x7F120202;
    Neighbours.LocalPort      = 4919;
    Neighbours.PacketBytes    = 9000;
    Neighbours.DownlinkMid[0] = ISL_HK_TLM_MID;
    memcpy(Neighbours.Neighbour, around, sizeof(around));
    LastEvent = 0;
    SentBytes = 0;
    FromPort  = 40000;
    IoTask    = NULL;
    UT_SetVaHandlerFunction(UT_KEY(CFE_EVS_SendEvent), OnEvent, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_ES_CreateChildTask), OnChildTask, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketAddrFromString), OnAddress, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketSendTo), OnSend, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketRecvFrom), OnReceive, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_GetAddress), OnGetAddress, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketAddrGetPort), OnGetPort, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_MSG_GetType), OnType, NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
}

/** Start the parts that the main function starts, and stay up. */
static void Start(void)
{
    UtAssert_INT32_EQ(ISL_Task_Open(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tbl_Init(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Task_Start(ISL_Data.LocalIpv4, ISL_Data.LocalPort), CFE_SUCCESS);
    UtAssert_BOOL_TRUE(IoTask != NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
}

static void Test_StartFails(void)
{
    const UT_EntryKey_t keys[]   = {UT_KEY(CFE_EVS_Register), UT_KEY(CFE_MSG_Init),       UT_KEY(CFE_SB_CreatePipe),
                                    UT_KEY(CFE_SB_Subscribe), UT_KEY(OS_MutSemCreate),    UT_KEY(OS_BinSemCreate),
                                    UT_KEY(CFE_TBL_Register), UT_KEY(CFE_TBL_Load),       UT_KEY(CFE_TBL_GetAddress),
                                    UT_KEY(OS_MutSemTake),    UT_KEY(CFE_SB_SubscribeEx), UT_KEY(OS_SocketAddrInit),
                                    UT_KEY(OS_SocketOpen),    UT_KEY(OS_SocketBind),      UT_KEY(CFE_ES_CreateChildTask)};
    const uint16        events[] = {0,
                                    ISL_PIPE_ERR_EID,
                                    ISL_PIPE_ERR_EID,
                                    ISL_PIPE_ERR_EID,
                                    ISL_TASK_ERR_EID,
                                    ISL_TASK_ERR_EID,
                                    ISL_TBL_ERR_EID,
                                    ISL_TBL_ERR_EID,
                                    ISL_TBL_ERR_EID,
                                    ISL_TBL_ERR_EID,
                                    ISL_TBL_ERR_EID,
                                    ISL_SOCKET_ERR_EID,
                                    ISL_SOCKET_ERR_EID,
                                    ISL_SOCKET_ERR_EID,
                                    ISL_TASK_ERR_EID};
    uint32              i;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i)
    {
        Setup();
        UT_SetDeferredRetcode(keys[i], 1, -1);
        ISL_AppMain();
        UtAssert_UINT32_EQ(ISL_Data.RunStatus, CFE_ES_RunStatus_APP_ERROR);
        UtAssert_UINT32_EQ(LastEvent, events[i]);
        UtAssert_STUB_COUNT(CFE_ES_ExitApp, 1);
    }
}

static void Test_RunAndEnd(void)
{
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_ES_RunLoop), 1, true);
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_TIME_OUT); /* silence is no error */
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_PIPE_RD_ERR);
    ISL_AppMain();
    UtAssert_UINT32_EQ(LastEvent, ISL_PIPE_ERR_EID);
    UtAssert_STUB_COUNT(OS_BinSemTimedWait, 1);
    UtAssert_STUB_COUNT(OS_close, 1);
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 0);

    Setup();
    UT_SetDefaultReturnValue(UT_KEY(OS_BinSemTimedWait), OS_SEM_TIMEOUT); /* the I/O task does not end by itself */
    ISL_AppMain();
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 1);
}

static void Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes)
{
    union
    {
        CFE_SB_Buffer_t  buffer;
        ISL_SetLinkCmd_t set_link;
    } message;
    /* an event about a wrong length asks for id and code a second time */
    CFE_SB_MsgId_t    ids[]   = {CFE_SB_ValueToMsgId(mid), CFE_SB_ValueToMsgId(mid)};
    CFE_MSG_FcnCode_t codes[] = {code, code};
    CFE_MSG_Size_t    length  = size;

    memset(&message, 0, sizeof(message));
    if (bytes != NULL)
    {
        memcpy(&message, bytes, sizeof(message.set_link));
    }
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), ids, sizeof(ids), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), codes, sizeof(codes), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &length, sizeof(length), true);
    ISL_TaskPipe(&message.buffer);
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
        {ISL_CMD_MID, ISL_NOOP_CC, sizeof(ISL_NoopCmd_t), ISL_NOOP_INF_EID},
        {ISL_CMD_MID, ISL_RESET_COUNTERS_CC, sizeof(ISL_ResetCountersCmd_t), ISL_RESET_INF_EID},
        {ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(ISL_SetLinkCmd_t), ISL_SET_LINK_INF_EID},
        {ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), 0},
        {ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), ISL_LINKS_INF_EID},
    };
    ISL_SetLinkCmd_t set_link;
    uint32           i;

    Start();
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        LastEvent = 0;
        Send(good[i].mid, good[i].code, good[i].size, NULL);
        UtAssert_UINT32_EQ(LastEvent, good[i].event);
        Send(good[i].mid, good[i].code, good[i].size + 1, NULL);
        UtAssert_UINT32_EQ(LastEvent, ISL_LEN_ERR_EID);
    }
    Send(ISL_CMD_MID, 99, sizeof(ISL_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, ISL_CC_ERR_EID);
    Send(0x1888, 0, sizeof(ISL_NoopCmd_t), NULL);
    UtAssert_UINT32_EQ(LastEvent, ISL_MID_ERR_EID);
    LastEvent = 0;
    Send(ISL_HK_TLM_MID, 0, sizeof(ISL_HkTlm_t), NULL); /* of the downlink list; nobody listens */
    UtAssert_UINT32_EQ(LastEvent, 0);

    memset(&set_link, 0, sizeof(set_link));
    set_link.Payload.Link = SKY_LINK_EAST;
    set_link.Payload.CutS = 1;
    Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(set_link), &set_link);
    Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_EAST].Up, 0);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_WEST].Up, 1);
    set_link.Payload.CutS = ISL_CUT_S_MAX + 1;
    Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(set_link), &set_link);
    UtAssert_UINT32_EQ(LastEvent, ISL_LINK_ERR_EID);

    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR); /* the lock is gone: errors, no crash */
    for (i = 0; i < sizeof(good) / sizeof(good[0]); ++i)
    {
        Send(good[i].mid, good[i].code, good[i].size, NULL);
    }
    Send(ISL_HK_TLM_MID, 0, sizeof(ISL_HkTlm_t), NULL);
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 3);
}

#define REFUSED(table, field, value, validate)                                \
    do                                                                        \
    {                                                                         \
        Setup();                                                              \
        (table).field = (value);                                              \
        UtAssert_INT32_EQ(validate(&(table)), CFE_STATUS_VALIDATION_FAILURE); \
        UtAssert_UINT32_EQ(LastEvent, ISL_TBL_VALUE_ERR_EID);                 \
    } while (0)

static void Test_Tables(void)
{
    UtAssert_INT32_EQ(ISL_Tbl_ValidateNeighbours(&Neighbours), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tbl_ValidateLinks(&Links), CFE_SUCCESS);
    REFUSED(Neighbours, Planes, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, Slots, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, SelfPlane, 4, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, SelfSlot, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, SeamCut, 2, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, LocalPort, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, HelloS, 3601, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, PacketBytes, 65508, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, UplinkFirstMid, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, UplinkLastMid, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, DownlinkMid[1], ISL_HK_TLM_MID, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, Neighbour[0].Present, 2, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, Neighbour[1].Slot, 1, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, Neighbour[2].Ipv4, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Neighbours, Neighbour[3].Port, 0, ISL_Tbl_ValidateNeighbours);
    REFUSED(Links, Link[0].DelayUs, 10000001, ISL_Tbl_ValidateLinks);
    REFUSED(Links, Link[1].JitterUs, 10000001, ISL_Tbl_ValidateLinks);
    REFUSED(Links, Link[2].LossPpm, 1000001, ISL_Tbl_ValidateLinks);
    REFUSED(Links, Link[4].Cut, 2, ISL_Tbl_ValidateLinks);

    Setup();
    Start();
    Neighbours.LocalPort = 5000;
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_SetNode), 1);
    ISL_Tbl_Manage();
    UtAssert_STUB_COUNT(CFE_SB_Unsubscribe, 1);
    UtAssert_UINT16_EQ(ISL_Data.LocalPort, 4919); /* until the next start */
}

/** Give the I/O task one packet and one turn; it ends because the lock is gone at its second turn. */
static void Turn(const SKY_Packet_t *pkt)
{
    ReceivedBytes = SKY_Packet_Encode(pkt, Received, sizeof(Received));
    SentBytes     = 0;
    UT_ResetState(UT_KEY(OS_MutSemTake));
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 2, OS_ERROR);
    IoTask();
}

static void Test_Packets(void)
{
    SKY_Packet_t pkt;
    SKY_Packet_t answer;

    Start();
    memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = SKY_OP_PING;
    pkt.hop_limit  = 3;
    pkt.src.slot   = HOST;
    pkt.dst.plane  = 2;
    pkt.dst.slot   = 2;
    Turn(&pkt);
    UtAssert_UINT32_EQ(SKY_Packet_Decode(Sent, SentBytes, &answer), SKY_STATUS_OK);
    UtAssert_BOOL_TRUE(!answer.is_request && answer.op == SKY_OP_PING && answer.dst.slot == HOST);

    FromPort = 0; /* nobody can be answered there */
    Turn(&pkt);
    UtAssert_UINT32_EQ(SentBytes, 0);
    FromPort = 40000;

    pkt.op = SKY_OP_STATS;
    Turn(&pkt);
    UtAssert_UINT32_EQ(SKY_Packet_Decode(Sent, SentBytes, &answer), SKY_STATUS_OK);
    UtAssert_UINT32_EQ(answer.length, (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT) * 8);

    pkt.op       = SKY_OP_PING;
    pkt.dst.slot = 3;
    Turn(&pkt);
    UtAssert_UINT32_EQ(SKY_Packet_Decode(Sent, SentBytes, &answer), SKY_STATUS_OK);
    UtAssert_BOOL_TRUE(answer.is_request && answer.hop_limit == 2 && answer.gateway.plane == 2);

    pkt.dst.slot = 2;
    pkt.apid     = SKY_APID_KVC; /* nobody has registered for it */
    Turn(&pkt);
    UtAssert_UINT32_EQ(SKY_Packet_Decode(Sent, SentBytes, &answer), SKY_STATUS_OK);
    UtAssert_UINT32_EQ(answer.status, SKY_STATUS_UNREACHABLE);

    UT_SetDefaultReturnValue(UT_KEY(OS_SelectMultiple), OS_ERROR);
    Turn(&pkt);
    UtAssert_UINT32_EQ(ISL_Task_Errors(), 1);
    UtAssert_STUB_COUNT(OS_TaskDelay, 1);
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_StartFails, Setup, NULL, "start fails");
    UtTest_Add(Test_RunAndEnd, Setup, NULL, "run and end");
    UtTest_Add(Test_Dispatch, Setup, NULL, "dispatch");
    UtTest_Add(Test_Tables, Setup, NULL, "tables");
    UtTest_Add(Test_Packets, Setup, NULL, "packets");
}
