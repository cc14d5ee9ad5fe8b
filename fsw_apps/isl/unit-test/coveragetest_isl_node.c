/**
 * @file
 * Unit tests of ISL's packet engine: services, forwarding, refusals.
 */
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_task.h"
#include "isl_ut.h"

#define APID 0x123u

/* ---- a service ----------------------------------------------------------------------------------------------------- */

static uint32    Begun, Rejected, Unlocked, Outgoing, Unreached;
static bool      Locks;
static uint64_t  PollUs;
static uint8_t   Body[2048];
static SKY_Out_t Out;

static bool Attach(const SKY_LIB_Node_t *node)
{
    (void)node;
    return true;
}

static bool Lock(void)
{
    return Locks;
}

static void Unlock(void)
{
    ++Unlocked;
}

static void Begin(uint64_t now_us, const SKY_Packet_t *pkt)
{
    (void)now_us;
    (void)pkt;
    ++Begun;
}

static bool Next(uint64_t now_us, SKY_Out_t *out)
{
    (void)now_us;
    if (Outgoing == 0)
    {
        return false;
    }
    --Outgoing;
    *out = Out;
    return true;
}

static void Poll(uint64_t now_us, uint64_t *next_us)
{
    (void)now_us;
    *next_us = PollUs;
}

static void Reject(SKY_Status_t status)
{
    (void)status;
    ++Rejected;
}

static void Unreachable(SKY_Addr_t dst)
{
    (void)dst;
    ++Unreached;
}

static const SKY_Addr_t               Self        = {2, 2};
static const SKY_LIB_Service_t        Service     = {Attach, Lock, Unlock, Begin, Next, Poll, Reject, Unreachable};
static const SKY_LIB_Service_t *const Services[8] = {&Service, &Service, &Service, &Service,
                                                     &Service, &Service, &Service, &Service};

/** Queue a packet of the service for somebody, with a body that is not copied. */
static void Say(SKY_Addr_t dst, SKY_Addr_t gateway, uint32 times)
{
    SKY_Packet_t pkt = UT_Request(APID, SKY_OP_GET);

    memset(&Out, 0, sizeof(Out));
    pkt.is_request = false;
    pkt.src        = Self;
    pkt.dst        = dst;
    pkt.gateway    = gateway;
    pkt.length     = sizeof(Body);
    pkt.payload    = Body;
    Out.pkt        = pkt;
    Outgoing       = times;
}

static void Setup(void)
{
    UT_Setup();
    Begun = Rejected = Unlocked = Outgoing = Unreached = 0;
    Locks                                              = true;
    PollUs                                             = UINT64_MAX;
    UT_SetDataBuffer(UT_KEY(SKY_LIB_Acquire), (void *)(uintptr_t)Services, sizeof(Services), false);
}

static void Test_Service(void)
{
    static const SKY_Addr_t host = {0, UT_HOST}, south = {3, 2}, nowhere = {9, 9};
    SKY_Packet_t            request = UT_Request(APID, SKY_OP_GET);
    ISL_Node_t             *node;

    UT_Start();
    node = UT_Node();
    Say(host, Self, 2);
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(Begun, 1);
    UtAssert_UINT32_EQ(UT_SentCount, 2);
    UtAssert_UINT32_EQ(UT_SentIpv4, 0); /* the answer goes straight back */
    UtAssert_BOOL_TRUE(node->node.bodies_wait);
    Say(south, Self, 1);
    UT_Input(2, &request, UT_GROUND); /* the service is still locked; waiting packets leave before it begins anew */
    UtAssert_UINT32_EQ(Unlocked, 0);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(3, 2));
    Say(nowhere, Self, 1);
    UT_Input(3, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    ISL_Node_Run(node, 4);
    UtAssert_UINT32_EQ(Unlocked, 1);
    UtAssert_STUB_COUNT(SKY_LIB_Release, 1);

    Say(host, Self, SKY_NODE_BURST_MAX + 1); /* packets beyond a burst are cut off, and counted */
    UT_Input(5, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_SentCount, SKY_NODE_BURST_MAX);
    UtAssert_BOOL_TRUE(node->node.router.counters.drops[SKY_STATUS_BUSY] == 1);
    ISL_Node_Run(node, 6);

    Locks = false;
    UT_Input(7, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_UNREACHABLE);
    UtAssert_UINT32_EQ(Begun, 4);
    request.is_request = false; /* nobody is told of a response that nobody takes */
    request.src.plane  = 2;
    request.src.slot   = 1;
    UT_Input(8, &request, UT_Neighbour(SKY_LINK_WEST));
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_BOOL_TRUE(node->node.router.counters.no_service == 2);
}

static void Test_Polls(void)
{
    static const SKY_Addr_t east = {2, 3};
    ISL_Node_t             *node;

    UT_Start();
    node = UT_Node();
    UT_SetDataBuffer(UT_KEY(SKY_LIB_AcquireAt), (void *)(uintptr_t)Services, sizeof(Services[0]), false);
    PollUs = 500000;
    Say(east, Self, 1);
    ISL_Node_Run(node, 1);
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 3));
    UtAssert_BOOL_TRUE(node->node.poll_due_us == 500000);

    UT_SetDataBuffer(UT_KEY(SKY_LIB_AcquireAt), (void *)(uintptr_t)Services, sizeof(Services[0]), false);
    PollUs = 0; /* a service that is always due does not keep the processor */
    ISL_Node_Run(node, 600000);
    UtAssert_BOOL_TRUE(node->node.poll_due_us == 601000);
    UtAssert_UINT32_EQ(Unreached, 0);

    UT_SetDataBuffer(UT_KEY(SKY_LIB_AcquireAt), (void *)(uintptr_t)Services, sizeof(Services[0]), false);
    Say(east, Self, 1);
    Out.pkt.is_request       = true;
    node->node.router.usable = 0;
    ISL_Node_Run(node, 601000); /* no way leads there from here, which the service is told */
    UtAssert_UINT32_EQ(Unreached, 1);

    UT_SetDataBuffer(UT_KEY(SKY_LIB_AcquireAt), (void *)(uintptr_t)Services, sizeof(Services[0]), false);
    Locks = false;
    ISL_Node_Run(node, 700000);
    UtAssert_BOOL_TRUE(node->node.poll_due_us == 1700000);
}

static void Test_Forwards(void)
{
    SKY_Packet_t request = UT_Request(SKY_APID_KVC, SKY_OP_PUT);
    ISL_Node_t  *node;

    UT_Start();
    node             = UT_Node();
    request.dst.slot = 3;
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 3));
    UtAssert_UINT32_EQ(UT_Answer().gateway.slot, 2);

    request.is_request = false; /* the response is on its way back */
    request.op         = SKY_OP_PING;
    request.src        = request.dst;
    request.dst.plane  = 0;
    request.dst.slot   = UT_HOST;
    request.gateway    = node->node.router.self;
    UT_Input(2, &request, UT_Neighbour(SKY_LINK_EAST));
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_SentIpv4, 0);
    UtAssert_BOOL_TRUE(node->node.router.counters.to_ground == 1);
}

static void Test_TooLong(void)
{
    SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_PING);

    UT_Start();
    UT_Node()->node.cfg.packet_bytes = 600;
    request.dst.slot                 = 3;
    request.length                   = 1000;
    request.payload                  = Body;
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_TOO_LARGE);
    UtAssert_UINT32_EQ(UT_SentIpv4, 0);
    request.src.plane = 2; /* a neighbour's packet for another one: the answer goes over the links */
    request.src.slot  = 1;
    UT_Input(2, &request, UT_Neighbour(SKY_LINK_WEST));
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_TOO_LARGE);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 1));
    request.is_request = false;
    UT_Input(3, &request, UT_Neighbour(SKY_LINK_WEST));
    UtAssert_UINT32_EQ(UT_SentCount, 0);
}

static void Test_Refused(void)
{
    SKY_Packet_t request = UT_Request(APID, SKY_OP_PUT);
    ISL_Node_t  *node;

    UT_Start();
    node = UT_Node();
    ISL_Node_Input(node, 1, Body, 4, UT_GROUND); /* the datagram is shorter than any packet */
    UtAssert_BOOL_TRUE(node->node.router.counters.drops[SKY_STATUS_SHORT] == 1);
    UtAssert_UINT32_EQ(UT_SentCount, 0);

    request.length    = 10; /* the payload is longer than its chunk is said to be */
    request.chunk_len = 5;
    request.payload   = Body;
    UT_Input(2, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_BAD_CHUNK);
    UtAssert_UINT32_EQ(Rejected, 1);

    request           = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    request.hop_limit = 0;
    request.dst.slot  = 3;
    UT_Input(3, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_HOP_LIMIT);
    request.is_request = false; /* from the ground only requests are taken */
    UT_Input(4, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    request.is_request = true;
    UT_Input(5, &request, 0); /* nobody can be answered at port 0 */
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    ISL_Node_Input(node, 6, Body, 0, node->local_endpoint); /* an empty datagram only wakes the task */
    UtAssert_BOOL_TRUE(node->node.router.counters.drops[SKY_STATUS_SHORT] == 1);
}

/** Check that events tell of drops, by cause. */
static void Test_Drops(void)
{
    UT_Start();
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), 1000000);
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    SKY_Router_CountDrop(&UT_Node()->node.router, SKY_STATUS_BAD_CRC);
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_DROP_ERR_EID);
    UT_LastEvent = 0;
    SKY_Router_CountDrop(&UT_Node()->node.router, SKY_STATUS_BAD_CRC);
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL); /* the event does not come again within a minute */
    UtAssert_UINT32_EQ(UT_LastEvent, 0);
}

void UT_AddNode(void)
{
    UtTest_Add(Test_Service, Setup, NULL, "a service");
    UtTest_Add(Test_Polls, Setup, NULL, "services are polled");
    UtTest_Add(Test_Forwards, Setup, NULL, "forwarding");
    UtTest_Add(Test_TooLong, Setup, NULL, "packets that are too long for the links");
    UtTest_Add(Test_Refused, Setup, NULL, "packets that are refused");
    UtTest_Add(Test_Drops, Setup, NULL, "drops");
}
