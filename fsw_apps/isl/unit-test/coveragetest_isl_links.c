/**
 * @file
 * Unit tests of ISL's links: models, delay lines, cuts, hellos.
 */
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_tbl_manage.h"
#include "isl_ut.h"

#define S UINT64_C(1000000)

static uint8_t Body[UT_SENT_MAX];

static SKY_PacketParts_t Parts(uint32_t body_len)
{
    SKY_PacketParts_t parts;

    memset(&parts, 0, sizeof(parts));
    parts.head     = Body;
    parts.head_len = 16;
    parts.body     = Body;
    parts.body_len = body_len;
    return parts;
}

static void Test_Delay(void)
{
    ISL_Node_t             *node;
    const SKY_PacketParts_t parts     = Parts(100);
    const SKY_PacketParts_t too_long  = Parts(9100);
    SKY_PacketParts_t       long_head = parts;
    uint32_t                i;

    UT_Start();
    UT_Links.Link[SKY_LINK_EAST].DelayUs = 5000;
    UT_SetDeferredRetcode(UT_KEY(CFE_TBL_GetAddress), 2, CFE_TBL_INFO_UPDATED);
    ISL_Tbl_Manage();
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_LINES_INF_EID);
    node = UT_Node();
    UT_SendParts(0, SKY_LINK_EAST, &parts);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_BOOL_TRUE(ISL_Node_NextDue(node) <= 5000);
    UtAssert_BOOL_TRUE(ISL_Line_NextDue(node) == 5000);
    ISL_Line_Run(node, 4999);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    ISL_Line_Run(node, 5000);
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_SentBytes, 116);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 3));

    UT_SendParts(0, SKY_LINK_EAST, &too_long);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_EAST].counters.drop_error == 1);
    long_head.head_len = SKY_NODE_HEAD_BYTES + 1;
    UT_SendParts(0, SKY_LINK_EAST, &long_head);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_EAST].counters.drop_error == 2);
    for (i = 0; i < ISL_Line_Slots(node) + 1; ++i)
    {
        UT_SendParts(0, SKY_LINK_EAST, &parts);
    }
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_EAST].counters.drop_queue == 1);
    UT_SetModel(SKY_LINK_EAST, 0, 0, false); /* packets that wait keep their place before new ones */
    ISL_Line_Run(node, 5000);
    UT_SetModel(SKY_LINK_EAST, 5000, 1000000, false);
    UT_SendParts(6000, SKY_LINK_EAST, &parts);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_EAST].counters.drop_loss == 1);

    node->node.cfg.packet_bytes = 576; /* more packets fit than a line may have slots */
    UtAssert_BOOL_TRUE(ISL_Line_Slots(node) <= SKY_LINK_SLOTS_MAX);
}

/** Check that packets which wait when a link is cut are lost with those that come later. */
static void Test_CutWhileWaiting(void)
{
    const SKY_PacketParts_t parts = Parts(100);
    ISL_Node_t             *node;

    UT_Start();
    node = UT_Node();
    UT_SetModel(SKY_LINK_WEST, 5000, 0, false);
    UT_SendParts(0, SKY_LINK_WEST, &parts);
    UT_SetModel(SKY_LINK_WEST, 5000, 0, true);
    ISL_Line_Run(node, 5000);
    UT_SendParts(5000, SKY_LINK_WEST, &parts); /* node and line take nothing for a link that is cut */
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_WEST].counters.drop_cut == 2);
}

/** Check that the satellite delays packets from the ground, which has no model of its own. */
static void Test_Uplink(void)
{
    SKY_Packet_t ping = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    ISL_Node_t  *node;

    UT_Start();
    node = UT_Node();
    UT_SetModel(SKY_LINK_GROUND, 5000, 0, false);
    UT_Input(0, &ping, UT_GROUND);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_BOOL_TRUE(ISL_Line_NextDue(node) == 5000);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_GROUND].counters.rx_packets == 0); /* the packet is on its way */
    ISL_Node_Run(node, 5000); /* the packet has arrived; the answer takes its time as well */
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_GROUND].counters.rx_packets == 1);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    ISL_Node_Run(node, 10000);
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_Answer().op, SKY_OP_PING);

    UT_Input(20000, &ping, UT_GROUND);
    UT_SetModel(SKY_LINK_GROUND, 5000, 0, true);
    ISL_Node_Run(node, 30000);
    UtAssert_UINT32_EQ(UT_SentCount, 0);
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_GROUND].counters.drop_cut == 1);
    UT_Input(30000, &ping, UT_GROUND); /* nothing comes in over a cut link */
    UtAssert_BOOL_TRUE(node->node.links[SKY_LINK_GROUND].counters.drop_cut == 2);
    UtAssert_BOOL_FALSE(ISL_Line_DelayUplink(node, 30000, UT_GROUND, Body, 100)); /* nothing goes into the line either */
}

static ISL_SetLinkCmd_t Cut(uint16 link, uint16 seconds)
{
    ISL_SetLinkCmd_t command;

    memset(&command, 0, sizeof(command));
    command.Payload.Link = link;
    command.Payload.CutS = seconds;
    return command;
}

static void Test_CutsByCommand(void)
{
    ISL_SetLinkCmd_t command;
    ISL_Node_t      *node;
    uint16           link;

    UT_Start();
    node = UT_Node();
    for (link = 0; link < SKY_ISL_COUNT; ++link)
    {
        command = Cut(link, 60);
        UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(command), &command);
        UtAssert_UINT32_EQ(UT_LastEvent, ISL_SET_LINK_INF_EID);
    }
    command = Cut(SKY_LINK_GROUND, 60); /* nobody could reach the satellite any more */
    UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(command), &command);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_LINK_ERR_EID);
    UtAssert_BOOL_TRUE(SKY_Node_NextDue(&node->node) <= 60 * S);
    command = Cut(SKY_LINK_NORTH, 0);
    UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(command), &command);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_SET_LINK_INF_EID);
    UtAssert_BOOL_TRUE(SKY_Node_IsUp(&node->node, SKY_LINK_NORTH));
    ISL_Node_Run(node, 60 * S - 1);
    UtAssert_BOOL_FALSE(SKY_Node_IsUp(&node->node, SKY_LINK_EAST));
    ISL_Node_Run(node, 60 * S);
    UtAssert_BOOL_TRUE(SKY_Node_IsUp(&node->node, SKY_LINK_EAST));
    command = Cut(ISL_LINK_COUNT, 60);
    UT_Send(ISL_CMD_MID, ISL_SET_LINK_CC, sizeof(command), &command);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_LINK_ERR_EID);
}

static void Test_NoNeighbour(void)
{
    UT_Neighbours.Neighbour[SKY_LINK_SOUTH].Present = 0;
    UtAssert_INT32_EQ(ISL_Tbl_ValidateNeighbours(&UT_Neighbours), CFE_SUCCESS);
    UT_Start();
    UtAssert_BOOL_FALSE(SKY_Node_IsUp(&UT_Node()->node, SKY_LINK_SOUTH));
    UtAssert_BOOL_FALSE(SKY_Node_Cut(&UT_Node()->node, 0, SKY_LINK_SOUTH, 1));
}

/** Send a hello of the western neighbour, which knows nothing of links. */
static void HelloOfWest(uint64_t now_us, uint64_t endpoint, bool is_request, uint64_t request_id, SKY_Status_t status,
                        uint8_t flags)
{
    static const uint8_t nothing[SKY_HELLO_BYTES];
    SKY_Packet_t         hello = UT_Request(SKY_APID_ISL, SKY_OP_HELLO);

    hello.is_request = is_request;
    hello.status     = status;
    hello.flags      = flags;
    hello.request_id = request_id;
    hello.src.plane  = 2;
    hello.src.slot   = 1;
    hello.payload    = nothing;
    hello.length     = sizeof(nothing);
    UT_Input(now_us, &hello, endpoint);
}

static void Test_Hellos(void)
{
    ISL_Node_t *node;
    uint64_t    due_us;
    uint64_t    id;

    UT_Neighbours.HelloS = 1;
    UT_Start();
    node   = UT_Node();
    due_us = node->node.hello.due_us;
    UtAssert_BOOL_TRUE(ISL_Node_NextDue(node) == 0); /* present neighbours are greeted at once */
    ISL_Node_Run(node, due_us);
    UtAssert_UINT32_EQ(UT_SentCount, 4);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 1));
    node->node.poll_due_us = 1000 * S;
    UtAssert_BOOL_TRUE(ISL_Node_NextDue(node) == node->node.hello.due_us);
    UtAssert_BOOL_TRUE(node->node.hello.due_us > due_us && node->node.hello.due_us <= due_us + S);
    id = UT_Answer().request_id;
    HelloOfWest(due_us + 2000, UT_Neighbour(SKY_LINK_NORTH), false, id, SKY_STATUS_OK, 0); /* the answer of somebody else */
    HelloOfWest(due_us + 2000, UT_GROUND, false, id, SKY_STATUS_OK, 0);                    /* the answer of no neighbour */
    HelloOfWest(due_us + 2000, UT_Neighbour(SKY_LINK_WEST), false, id, SKY_STATUS_BUSY, 0);
    UtAssert_UINT32_EQ(node->node.hello.links[SKY_LINK_WEST].mean_us, 0);
    HelloOfWest(due_us + 2000, UT_Neighbour(SKY_LINK_WEST), false, id, SKY_STATUS_OK, 0);
    UtAssert_UINT32_EQ(node->node.hello.links[SKY_LINK_WEST].mean_us, 1000);

    UT_SentCount = 0; /* a neighbour's greeting is answered over its link, a stranger's is refused */
    HelloOfWest(due_us + 3000, UT_Neighbour(SKY_LINK_WEST), true, 77, SKY_STATUS_OK, 0);
    UtAssert_UINT32_EQ(UT_SentCount, 1);
    UtAssert_UINT32_EQ(UT_SentIpv4, UT_IPV4(2, 1));
    UtAssert_BOOL_TRUE(UT_Answer().request_id == 77 && UT_Answer().status == SKY_STATUS_OK);
    HelloOfWest(due_us + 3000, UT_Neighbour(SKY_LINK_NORTH), true, 78, SKY_STATUS_OK, 0);
    UtAssert_BOOL_TRUE(UT_Answer().request_id == 78 && UT_Answer().status == SKY_STATUS_REFUSED);

    UT_SentCount = 0; /* refused news is not answered */
    HelloOfWest(due_us + 3000, UT_Neighbour(SKY_LINK_NORTH), true, 79, SKY_STATUS_OK, SKY_FLAG_GOSSIP);
    UtAssert_UINT32_EQ(UT_SentCount, 0);

    ISL_Node_Run(node, due_us + 10 * S); /* all neighbours have been silent for more than three hellos */
    UtAssert_BOOL_FALSE(SKY_Node_IsUp(&node->node, SKY_LINK_WEST));
    ISL_Node_Input(node, due_us + 10 * S, Body, 1, UT_Neighbour(SKY_LINK_WEST)); /* any packet from there brings the link back */
    UtAssert_BOOL_TRUE(SKY_Node_IsUp(&node->node, SKY_LINK_WEST));
    UT_SetDefaultReturnValue(UT_KEY(SKY_LIB_NowUs), (int32)(due_us + 10 * S + 3000));
    UT_Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_WEST].LastHeardMs, 3);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_WEST].DelayMeanUs, 1000);
    UtAssert_UINT32_EQ(ISL_Data.Hk.Payload.Link[SKY_LINK_WEST].DelayMinUs, 1000);
}

/** Check that there is no map without hellos, as nothing would repair it; a table with hellos brings it. */
static void Test_NoMapWithoutHellos(void)
{
    UT_Neighbours.HelloS = 0;
    UT_Start();
    UtAssert_BOOL_TRUE(UT_Node()->node.router.map == NULL);
    UT_Neighbours.HelloS = 1;
    UtAssert_BOOL_TRUE(ISL_Node_SetNeighbours(UT_Node(), 0, &UT_Neighbours));
    UtAssert_BOOL_TRUE(UT_Node()->node.router.map != NULL);
    UT_Neighbours.HelloS = 0;
    UtAssert_BOOL_TRUE(ISL_Node_SetNeighbours(UT_Node(), 0, &UT_Neighbours)); /* the map would have room */
    UtAssert_BOOL_TRUE(UT_Node()->node.router.map == NULL);
}

static void Test_LargerThanTheMap(void)
{
    UT_Neighbours.HelloS = 1;
    UT_Neighbours.Planes = 300;
    UT_Neighbours.Slots  = 300;
    UT_Start();
    UtAssert_BOOL_TRUE(UT_Node()->node.router.map == NULL);
}

void UT_AddLinks(void)
{
    UtTest_Add(Test_Delay, UT_Setup, NULL, "delay lines");
    UtTest_Add(Test_CutWhileWaiting, UT_Setup, NULL, "a cut while packets wait");
    UtTest_Add(Test_Uplink, UT_Setup, NULL, "delay of the uplink");
    UtTest_Add(Test_CutsByCommand, UT_Setup, NULL, "cuts by command");
    UtTest_Add(Test_NoNeighbour, UT_Setup, NULL, "a direction without a neighbour");
    UtTest_Add(Test_Hellos, UT_Setup, NULL, "hellos");
    UtTest_Add(Test_NoMapWithoutHellos, UT_Setup, NULL, "no map without hellos");
    UtTest_Add(Test_LargerThanTheMap, UT_Setup, NULL, "a constellation larger than the map");
}
