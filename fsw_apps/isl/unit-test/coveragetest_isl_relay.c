/**
 * @file
 * Unit tests of what ISL serves itself: PING, STATS, and RELAY of commands and telemetry.
 */
#include "isl_bus.h"
#include "isl_cmds.h"
#include "isl_dispatch.h"
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_task.h"
#include "isl_tlm.h"
#include "isl_ut.h"

#define COMMAND_BYTES   8u
#define TELEMETRY_BYTES 100u
#define S               UINT64_C(1000000)

static union
{
    CFE_SB_Buffer_t buffer;
    uint8_t         bytes[TELEMETRY_BYTES];
} Buffer;

static CFE_MSG_Size_t Size;
static CFE_SB_MsgId_t Mid;
static bool           ChecksumIsGood;
static uint8_t        Bytes[2048];

static void OnAllocate(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    CFE_SB_Buffer_t *buffer = &Buffer.buffer;

    (void)user;
    (void)context;
    UT_Stub_SetReturnValue(key, buffer);
}

static void OnSize(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "Size", CFE_MSG_Size_t *) = Size;
}

static void OnMid(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "MsgId", CFE_SB_MsgId_t *) = Mid;
}

static void OnChecksum(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "IsValid", bool *) = ChecksumIsGood;
}

/** Set up a satellite whose table admits one command, and a command that is admitted. */
static void Setup(void)
{
    UT_Setup();
    Size                         = COMMAND_BYTES;
    Mid                          = CFE_SB_ValueToMsgId(0x18D0);
    ChecksumIsGood               = true;
    UT_Type                      = CFE_MSG_Type_Cmd;
    UT_Neighbours.DownlinkMid[0] = 0; /* the stubs call every message a command */
    UT_Neighbours.UplinkFirstMid = 0x18D0;
    UT_Neighbours.UplinkLastMid  = 0x18D0;
    UT_SetHandlerFunction(UT_KEY(CFE_SB_AllocateMessageBuffer), OnAllocate, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_MSG_GetSize), OnSize, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_MSG_GetMsgId), OnMid, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_MSG_ValidateChecksum), OnChecksum, NULL);
}

static SKY_Packet_t Command(uint32_t len)
{
    SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_RELAY);

    request.payload = Bytes;
    request.length  = len;
    return request;
}

/** Return the status of the answer to a command, each with a number of its own. */
static SKY_Status_t Relay(uint32_t len)
{
    static uint64_t id;
    SKY_Packet_t    request = Command(len);

    request.request_id = ++id;
    UT_Input(1, &request, UT_GROUND);
    return UT_Answer().status;
}

static void Test_OwnServices(void)
{
    SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_PING);

    UT_Start();
    request.payload = Bytes;
    request.length  = SKY_LIMIT_PING_BYTES + 1;
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_TOO_LARGE);
    request = UT_Request(SKY_APID_ISL, SKY_OP_HAS);
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_BAD_OP);
    request.is_request = false; /* nobody has asked for this response */
    request.src.plane  = 2;
    request.src.slot   = 1;
    UT_Input(1, &request, UT_Neighbour(SKY_LINK_WEST));
    UtAssert_UINT32_EQ(UT_SentCount, 0);
}

static void Test_Commands(void)
{
    ISL_Node_t  *node;
    SKY_Packet_t request;
    uint32_t     i;

    UT_Start();
    node = UT_Node();
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_OK);
    UtAssert_STUB_COUNT(CFE_SB_TransmitBuffer, 1);
    UtAssert_STUB_COUNT(CFE_SB_ReleaseMessageBuffer, 0);
    request = Command(COMMAND_BYTES); /* a repeated command is carried out once */
    for (i = 0; i < 2; ++i)
    {
        UT_Input(1, &request, UT_GROUND);
        UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_OK);
    }
    UtAssert_STUB_COUNT(CFE_SB_TransmitBuffer, 2);
    UtAssert_UINT32_EQ(node->node.relayed_up, 2);

    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES - 1), SKY_STATUS_BAD_LENGTH);
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES + 1), SKY_STATUS_BAD_LENGTH);
    UtAssert_UINT32_EQ(Relay(0), SKY_STATUS_BAD_LENGTH);
    UtAssert_UINT32_EQ(Relay(SKY_LIMIT_RELAY_BYTES + 1), SKY_STATUS_TOO_LARGE);
    UT_Type = CFE_MSG_Type_Tlm;
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_BAD_HEADER);
    UT_Type = CFE_MSG_Type_Cmd;
    Mid     = CFE_SB_ValueToMsgId(0x18D1);
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_REFUSED);
    Mid            = CFE_SB_ValueToMsgId(0x18D0);
    ChecksumIsGood = false;
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_BAD_CHECKSUM);
    ChecksumIsGood = true;
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_TransmitBuffer), 1, CFE_SB_BAD_ARGUMENT);
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_BUSY);
    UtAssert_UINT32_EQ(node->node.relay_errors, 8);
    UtAssert_STUB_COUNT(CFE_SB_ReleaseMessageBuffer, 7); /* all buffers but that of the one that got none */
    UT_ResetState(UT_KEY(CFE_SB_AllocateMessageBuffer));
    UtAssert_UINT32_EQ(Relay(COMMAND_BYTES), SKY_STATUS_BUSY);
}

/** Ask for telemetry. */
static SKY_Status_t Listen(uint64_t now_us, uint16_t host, uint64_t endpoint)
{
    SKY_Packet_t request = Command(0);

    request.flags    = SKY_FLAG_TLM;
    request.src.slot = host;
    UT_Input(now_us, &request, endpoint);
    return UT_Answer().status;
}

static void Test_Listeners(void)
{
    ISL_Node_t *node;
    uint16_t    host;

    UT_Start();
    node         = UT_Node();
    UT_SentCount = 0;
    ISL_Node_Telemetry(node, 1, &Buffer.buffer.Msg); /* nobody listens */
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_UINT32_EQ(Listen(S, UT_HOST, UT_GROUND), SKY_STATUS_OK);
    UtAssert_UINT32_EQ(Listen(2 * S, UT_HOST + 1, UT_GROUND), SKY_STATUS_OK); /* an endpoint has one lease */
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&node->node, 2 * S), 1);
    Size = TELEMETRY_BYTES;
    ISL_Node_Telemetry(node, 3 * S, &Buffer.buffer.Msg);
    UtAssert_UINT32_EQ(UT_Answer().length, TELEMETRY_BYTES);
    UtAssert_UINT32_EQ(node->node.relayed_down, 1);
    Size = SKY_LIMIT_RELAY_BYTES + 1;
    ISL_Node_Telemetry(node, 3 * S, &Buffer.buffer.Msg);
    UtAssert_UINT32_EQ(node->node.relay_errors, 1);
    for (host = 1; host <= ISL_PLATFORM_LISTENERS; ++host)
    {
        UtAssert_UINT32_EQ(Listen(4 * S + host, host, UT_GROUND + host), SKY_STATUS_OK);
    }
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&node->node, 5 * S), ISL_PLATFORM_LISTENERS);
    Size         = TELEMETRY_BYTES;
    UT_SentCount = 0;
    ISL_Node_Telemetry(node, 5 * S, &Buffer.buffer.Msg); /* the oldest lease has made room */
    UtAssert_UINT32_EQ(UT_SentCount, ISL_PLATFORM_LISTENERS);
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&node->node, 5 * S + ISL_PLATFORM_LISTENER_LEASE_S * S), 0);
    UtAssert_UINT32_EQ(Listen(40 * S, UT_HOST, UT_GROUND), SKY_STATUS_OK); /* the new lease takes the place of one that is over */
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&node->node, 40 * S), 1);
}

/** Check that a listener behind another satellite is known by its number and its gateway. */
static void Test_FarListener(void)
{
    SKY_Packet_t request = Command(0);
    uint32_t     i;

    UT_Start();
    request.flags         = SKY_FLAG_TLM;
    request.gateway.plane = 2;
    request.gateway.slot  = 1;
    for (i = 0; i < 2; ++i)
    {
        UT_Input(S, &request, UT_Neighbour(SKY_LINK_WEST));
    }
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&UT_Node()->node, S), 1);
    request.gateway.slot  = 2;
    request.gateway.plane = 1;
    UT_Input(S, &request, UT_Neighbour(SKY_LINK_WEST));
    UtAssert_UINT32_EQ(SKY_Node_Listeners(&UT_Node()->node, S), 2);
    UT_SentCount = 0;
    ISL_Node_Telemetry(UT_Node(), S, &Buffer.buffer.Msg);
    UtAssert_UINT32_EQ(UT_SentCount, 2);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(1, 2));
}

/* ---- the telemetry task -------------------------------------------------------------------------------------------- */

static void OnReceiveBuffer(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "BufPtr", CFE_SB_Buffer_t **) = &Buffer.buffer;
}

static void Test_TlmTask(void)
{
    ISL_Node_t *node;

    UT_Start();
    node = UT_Node();
    UtAssert_UINT32_EQ(Listen(0, UT_HOST, UT_GROUND), SKY_STATUS_OK);
    UT_SetHandlerFunction(UT_KEY(CFE_SB_ReceiveBuffer), OnReceiveBuffer, NULL);
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 1, CFE_SB_TIME_OUT); /* silence is no error */
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_ReceiveBuffer), 2, CFE_SB_PIPE_RD_ERR);
    UT_TlmTask();
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_PIPE_ERR_EID);
    UtAssert_UINT32_EQ(node->node.relayed_down, 1);
    UtAssert_STUB_COUNT(OS_BinSemGive, 1);
    UtAssert_STUB_COUNT(CFE_ES_ExitChildTask, 1);

    node->node.poll_due_us = 10 * S;
    UT_SetModel(SKY_LINK_GROUND, 5000, 0, false); /* the packet is due before the I/O task would look, so that is woken */
    UT_SentCount = 0;
    ISL_RelayTelemetry(&Buffer.buffer.Msg);
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_SentBytes, 0);
    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR); /* without the lock the app is being torn down */
    ISL_RelayTelemetry(&Buffer.buffer.Msg);
    UT_TlmTask();
    UtAssert_STUB_COUNT(CFE_ES_ExitChildTask, 2);
    UtAssert_UINT32_EQ(node->node.relayed_down, 2);
}

/** Check that the task ends when it is asked to; a wakeup lets it look at once. */
static void Test_TlmTaskEnds(void)
{
    UT_Start();
    ISL_Tlm_Stop();
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 1);
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 0);
    UT_SetHandlerFunction(UT_KEY(CFE_SB_ReceiveBuffer), OnReceiveBuffer, NULL);
    UT_TlmTask();
    UtAssert_UINT32_EQ(UT_Node()->node.relay_errors, 0);
    UtAssert_STUB_COUNT(CFE_SB_ReceiveBuffer, 1);
    ISL_Tlm_Stop();
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 1);

    Setup();
    UT_Start();
    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR);
    UT_SetDefaultReturnValue(UT_KEY(CFE_SB_Subscribe), CFE_SB_MAX_MSGS_MET);
    UT_SetDefaultReturnValue(UT_KEY(OS_BinSemTimedWait), OS_SEM_TIMEOUT);
    ISL_Tlm_Stop();
    UtAssert_STUB_COUNT(CFE_SB_TransmitMsg, 0);
    UtAssert_STUB_COUNT(CFE_ES_DeleteChildTask, 1);
}

static void Test_TlmPipe(void)
{
    UtAssert_INT32_EQ(ISL_Tlm_Open(), CFE_SUCCESS);
    UT_Neighbours.DownlinkMid[1] = 0x08D0;
    UtAssert_INT32_EQ(ISL_Tlm_Subscribe(&UT_Neighbours), CFE_SUCCESS);
    UtAssert_STUB_COUNT(CFE_SB_SubscribeEx, 1);
    UT_Neighbours.DownlinkMid[2] = 0x08D8;
    UT_SetDeferredRetcode(UT_KEY(CFE_SB_SubscribeEx), 1, CFE_SB_MAX_DESTS_MET);
    UtAssert_INT32_EQ(ISL_Tlm_Subscribe(&UT_Neighbours), CFE_SB_MAX_DESTS_MET);
    UtAssert_STUB_COUNT(CFE_SB_Unsubscribe, 1);
    UtAssert_UINT32_EQ(ISL_Data.DownlinkMid[1], 0);
    UtAssert_UINT32_EQ(ISL_Data.DownlinkMid[2], 0x08D8);
}

void UT_AddRelay(void)
{
    UtTest_Add(Test_OwnServices, Setup, NULL, "PING and others");
    UtTest_Add(Test_Commands, Setup, NULL, "RELAY of commands");
    UtTest_Add(Test_Listeners, Setup, NULL, "RELAY of telemetry");
    UtTest_Add(Test_FarListener, Setup, NULL, "a listener behind another satellite");
    UtTest_Add(Test_TlmTask, Setup, NULL, "telemetry task");
    UtTest_Add(Test_TlmTaskEnds, Setup, NULL, "telemetry task ends");
    UtTest_Add(Test_TlmPipe, Setup, NULL, "telemetry pipe");
}
