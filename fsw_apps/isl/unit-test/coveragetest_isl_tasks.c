/**
 * @file
 * Unit tests of ISL's I/O task and its socket.
 */
#include "isl_eventids.h"
#include "isl_io.h"
#include "isl_task.h"
#include "isl_ut.h"

/** Give the I/O task one packet and one turn; it ends because the lock is gone at its second turn. */
static void Turn(const SKY_Packet_t *pkt)
{
    const SKY_Packet_t sent = UT_WithCookie(0, pkt, UT_GROUND);

    UT_ReceivedBytes = SKY_Packet_Encode(&sent, UT_Received, sizeof(UT_Received));
    UT_SentBytes     = 0;
    UT_ResetState(UT_KEY(OS_MutSemTake));
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 2, OS_ERROR);
    UT_IoTask();
}

static void Test_Packets(void)
{
    SKY_Packet_t pkt = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t answer;

    UT_Start();
    Turn(&pkt);
    answer = UT_Answer();
    UtAssert_BOOL_TRUE(!answer.is_request && answer.op == SKY_OP_PING && answer.dst.slot == UT_HOST);

    UT_FromPort = 0; /* nobody can be answered at port 0 */
    Turn(&pkt);
    UtAssert_UINT32_EQ(UT_SentBytes, 0);
    UT_FromPort = UT_GROUND;

    pkt.op = SKY_OP_STATS;
    Turn(&pkt);
    UtAssert_UINT32_EQ(UT_Answer().length, (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT) * 8);

    pkt.op       = SKY_OP_PING;
    pkt.dst.slot = 3;
    Turn(&pkt);
    answer = UT_Answer();
    UtAssert_BOOL_TRUE(answer.is_request && answer.hop_limit == 2 && answer.gateway.plane == 2);

    pkt.dst.slot = 2;
    pkt.apid     = SKY_APID_KVC; /* no service has registered for this APID */
    Turn(&pkt);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_UNREACHABLE);

    pkt          = UT_Request(SKY_APID_ISL, SKY_OP_PING); /* a packet from a neighbour, by its address */
    pkt.dst.slot = 3;
    UT_FromIpv4  = UT_IPV4(2, 1);
    UT_FromPort  = UT_PORT;
    Turn(&pkt);
    UtAssert_BOOL_TRUE(UT_Node()->node.links[SKY_LINK_WEST].counters.rx_packets == 1);

    UT_SetDefaultReturnValue(UT_KEY(OS_SelectMultiple), OS_ERROR);
    Turn(&pkt);
    UtAssert_UINT32_EQ(ISL_Task_Errors(), 1);
    UtAssert_STUB_COUNT(OS_TaskDelay, 1);
    UT_SetDefaultReturnValue(UT_KEY(OS_SelectMultiple), OS_ERROR_TIMEOUT);
    Turn(&pkt);
    UtAssert_UINT32_EQ(ISL_Task_Errors(), 1);
}

static void OnSelect(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)key;
    *(int32 *)user = UT_Hook_GetArgValueByName(context, "msecs", int32);
}

/** Check that work which is due already is not waited for. */
static void Test_Due(void)
{
    const SKY_Packet_t pkt = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    SKY_PacketParts_t  parts;
    int32              waited_ms = -1;

    UT_Start();
    memset(&parts, 0, sizeof(parts));
    parts.body     = UT_Received;
    parts.body_len = 100;
    UT_SetModel(SKY_LINK_EAST, 5000, 0, false);
    UT_SendParts(0, SKY_LINK_EAST, &parts);
    UT_SetHandlerFunction(UT_KEY(OS_SelectMultiple), OnSelect, &waited_ms);
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 4000);
    Turn(&pkt);
    UtAssert_INT32_EQ(waited_ms, 1);
    UT_SetDeferredRetcode(UT_KEY(SKY_LIB_NowUs), 3, 5000); /* the work has become due during the turn */
    Turn(&pkt);
    UtAssert_INT32_EQ(waited_ms, 0);
}

static void Test_Deleted(void)
{
    UT_Start();
    UtAssert_BOOL_TRUE(UT_DeleteHandler != NULL);
    UT_SetDeferredRetcode(UT_KEY(OS_BinSemTimedWait), 1, OS_SEM_TIMEOUT);
    UT_DeleteHandler(); /* the task is stuck, and still in there: the socket stays */
    UtAssert_STUB_COUNT(OS_close, 0);
    UT_DeleteHandler();
    UtAssert_STUB_COUNT(OS_close, 1);
    UT_DeleteHandler();
    UtAssert_STUB_COUNT(OS_close, 1);
}

/* ---- the socket ---------------------------------------------------------------------------------------------------- */

static void Test_Socket(void)
{
    const SKY_Packet_t     pkt     = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    const ISL_IO_Packet_t *packets = NULL;
    SKY_PacketParts_t      parts;
    uint64_t               errors = 0;

    memset(&parts, 0, sizeof(parts));
    UtAssert_UINT32_EQ(ISL_IO_Receive(&packets), 0); /* the socket is not open */
    ISL_IO_Send(UT_GROUND, &parts, &errors);
    UtAssert_BOOL_TRUE(errors == 1);
    ISL_IO_Close();
    UtAssert_STUB_COUNT(OS_close, 0);

    UT_SetHandlerFunction(UT_KEY(OS_SocketAddrFromString), NULL, NULL); /* the address is not where it should be */
    UtAssert_INT32_EQ(ISL_IO_Open(0, UT_PORT), CFE_STATUS_NOT_IMPLEMENTED);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_SOCKET_ERR_EID);

    UT_Setup();
    UtAssert_INT32_EQ(ISL_IO_Open(0, UT_PORT), CFE_SUCCESS);
    UT_SetDeferredRetcode(UT_KEY(OS_SelectFdZero), 1, OS_ERROR);
    UtAssert_UINT32_EQ(ISL_IO_Wait(1), ISL_IO_FAILED);
    UT_SetDeferredRetcode(UT_KEY(OS_SocketAddrInit), 1, OS_ERROR);
    UtAssert_UINT32_EQ(ISL_IO_Receive(&packets), 0);
    UT_ReceivedBytes = SKY_Packet_Encode(&pkt, UT_Received, sizeof(UT_Received));
    UT_SetDeferredRetcode(UT_KEY(OS_SocketAddrGetPort), 1, OS_ERROR);
    UtAssert_UINT32_EQ(ISL_IO_Receive(&packets), 0); /* the sender is unknown */
    UT_SetDeferredRetcode(UT_KEY(OS_SocketAddrSetPort), 1, OS_ERROR);
    ISL_IO_Send(UT_GROUND, &parts, &errors);
    UtAssert_BOOL_TRUE(errors == 2);
    UT_SetDeferredRetcode(UT_KEY(OS_SocketSendTo), 1, OS_ERROR);
    ISL_IO_Send(UT_GROUND, &parts, &errors);
    UtAssert_BOOL_TRUE(errors == 3);
    ISL_IO_Send(UT_GROUND, &parts, &errors);
    UtAssert_BOOL_TRUE(errors == 3);
    ISL_IO_Close();
    UtAssert_STUB_COUNT(OS_close, 1);
}

void UT_AddTasks(void)
{
    UtTest_Add(Test_Packets, UT_Setup, NULL, "packets");
    UtTest_Add(Test_Due, UT_Setup, NULL, "work that is due");
    UtTest_Add(Test_Deleted, UT_Setup, NULL, "the app is deleted by force");
    UtTest_Add(Test_Socket, UT_Setup, NULL, "the socket");
}
