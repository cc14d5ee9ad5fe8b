/* Links of a node: which are up, cuts by command, hellos. */
#include "node_rig.h"

static void set_cut(SKY_LinkId_t link, bool is_cut)
{
    const SKY_LinkModel_t model = {5000, 0, 0, 0, is_cut};

    SKY_Node_SetModel(&node, 0, link, &model);
}

static void test_a_link_that_is_cut(void)
{
    SKY_Packet_t request = request_of(SKY_APID_KVC, SKY_OP_PUT);

    start();
    set_cut(SKY_LINK_EAST, true);
    CHECK(SKY_Node_IsCut(&node, SKY_LINK_EAST));
    CHECK(!SKY_Node_IsUp(&node, SKY_LINK_EAST));
    request.dst.slot = 3;
    come(1, &request, GROUND);
    CHECK_EQ(sent_count, 1);
    CHECK(sent_link != SKY_LINK_EAST); /* another way */
    CHECK(node.links[SKY_LINK_GROUND].heard_once);
    CHECK_EQ(node.links[SKY_LINK_GROUND].heard_us, 1);
    request.src      = request.dst;
    request.dst.slot = 2;
    request.apid     = SKY_APID_ISL;
    come(2, &request, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(sent_count, 0); /* nothing comes in over it */
    CHECK_EQ(node.links[SKY_LINK_EAST].counters.drop_cut, 1);
    CHECK_EQ(node.links[SKY_LINK_EAST].counters.rx_packets, 0);
    set_cut(SKY_LINK_GROUND, true);
    request.src.plane = 2;
    request.src.slot  = 1;
    request.op        = SKY_OP_PING;
    come(3, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_link, SKY_LINK_WEST);
    request.src.plane  = 2; /* a response for a ground host: nothing goes out over a link that is cut */
    request.src.slot   = 1;
    request.is_request = false;
    request.dst.plane  = 0;
    request.dst.slot   = HOST;
    request.gateway    = self;
    come(4, &request, endpoint_of(SKY_LINK_WEST));
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(node.links[SKY_LINK_GROUND].counters.drop_cut, 1);
    set_cut(SKY_LINK_EAST, false);
    CHECK(SKY_Node_IsUp(&node, SKY_LINK_EAST));
}

static void test_cuts_by_command(void)
{
    start();
    SKY_Node_Run(&node, 0);
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        CHECK(SKY_Node_Cut(&node, 0, (SKY_LinkId_t)link, link % 2 == 0 ? 59 : 60 - link));
    }
    CHECK(!SKY_Node_Cut(&node, 0, SKY_LINK_COUNT, 60));  /* no link */
    CHECK(!SKY_Node_Cut(&node, 0, SKY_LINK_GROUND, 60)); /* nobody could reach the satellite any more */
    node.poll_due_us = UINT64_MAX;
    CHECK_EQ(SKY_Node_NextDue(&node), 57 * SECOND_US);
    CHECK(SKY_Node_Cut(&node, 0, SKY_LINK_NORTH, 0));
    CHECK(SKY_Node_IsUp(&node, SKY_LINK_NORTH));
    SKY_Node_Run(&node, 59 * SECOND_US - 1);
    CHECK(!SKY_Node_IsUp(&node, SKY_LINK_EAST));
    CHECK(SKY_Node_IsUp(&node, SKY_LINK_WEST));
    SKY_Node_Receive(&node, 59 * SECOND_US, body, 4,
                     endpoint_of(SKY_LINK_EAST)); /* it ends before what comes then is looked at */
    CHECK(node.links[SKY_LINK_EAST].heard_once);
    CHECK(SKY_Node_IsUp(&node, SKY_LINK_EAST));
}

static void test_a_direction_without_a_neighbour(void)
{
    set_up();
    cfg.neighbours[SKY_LINK_SOUTH].is_present = false;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    CHECK(!SKY_Node_IsUp(&node, SKY_LINK_SOUTH));
    CHECK(!SKY_Node_Cut(&node, 0, SKY_LINK_SOUTH, 1));
    CHECK_EQ(SKY_Node_LinkOf(&node, endpoint_of(SKY_LINK_SOUTH)), SKY_LINK_GROUND);
}

/* On a ring of two, packets of the one neighbour count for both links to it, unless one is cut. */
static void test_a_neighbour_on_two_links(void)
{
    set_up();
    cfg.neighbours[SKY_LINK_WEST].endpoint    = endpoint_of(SKY_LINK_EAST);
    cfg.neighbours[SKY_LINK_SOUTH].is_present = false;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    SKY_Node_Receive(&node, 5, body, 4, endpoint_of(SKY_LINK_EAST));
    CHECK(node.links[SKY_LINK_EAST].heard_once && node.links[SKY_LINK_WEST].heard_once);
    CHECK(!node.links[SKY_LINK_NORTH].heard_once);
    CHECK_EQ(node.links[SKY_LINK_WEST].heard_us, 5);
    CHECK_EQ(node.links[SKY_LINK_EAST].counters.rx_packets, 1);
    CHECK_EQ(node.links[SKY_LINK_EAST].counters.rx_bytes, 4);
    set_cut(SKY_LINK_WEST, true);
    SKY_Node_Receive(&node, 6, body, 4, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(node.links[SKY_LINK_EAST].heard_us, 6);
    CHECK_EQ(node.links[SKY_LINK_WEST].heard_us, 5);
    set_cut(SKY_LINK_WEST, false);
    set_cut(SKY_LINK_EAST, true); /* what comes now has come over the other link */
    SKY_Node_Receive(&node, 7, body, 4, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(node.links[SKY_LINK_EAST].heard_us, 6);
    CHECK_EQ(node.links[SKY_LINK_WEST].heard_us, 7);
    set_cut(SKY_LINK_WEST, true);
    SKY_Node_Receive(&node, 8, body, 4, endpoint_of(SKY_LINK_EAST));
    CHECK_EQ(node.links[SKY_LINK_WEST].heard_us, 7);
}

/* A hello of the western neighbour that knows nothing of links. */
static void hello_of_west(uint64_t now_us, uint64_t endpoint, bool is_request, uint64_t request_id, SKY_Status_t status,
                          uint8_t flags)
{
    static const uint8_t nothing[SKY_HELLO_BYTES];
    SKY_Packet_t         hello = request_of(SKY_APID_ISL, SKY_OP_HELLO);

    hello.is_request = is_request;
    hello.status     = status;
    hello.flags      = flags;
    hello.request_id = request_id;
    hello.src.plane  = 2;
    hello.src.slot   = 1;
    hello.payload    = nothing;
    hello.length     = sizeof(nothing);
    come(now_us, &hello, endpoint);
}

static void test_hellos(void)
{
    uint64_t due_us;
    uint64_t id;

    set_up();
    cfg.hello_us = SECOND_US;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    due_us           = node.hello.due_us;
    node.poll_due_us = UINT64_MAX;
    CHECK_EQ(SKY_Node_NextDue(&node), 0); /* who is there is greeted at once */
    SKY_Node_Run(&node, due_us);
    CHECK_EQ(sent_count, 4);
    CHECK_EQ(sent_link, SKY_LINK_WEST);
    CHECK_EQ(SKY_Node_NextDue(&node), node.hello.due_us);
    id = answer().request_id;
    hello_of_west(due_us + 2000, endpoint_of(SKY_LINK_NORTH), false, id, SKY_STATUS_OK, 0); /* somebody else's */
    hello_of_west(due_us + 2000, GROUND, false, id, SKY_STATUS_OK, 0);                      /* no neighbour's */
    hello_of_west(due_us + 2000, endpoint_of(SKY_LINK_WEST), false, id, SKY_STATUS_BUSY, 0);
    CHECK_EQ(node.hello.links[SKY_LINK_WEST].mean_us, 0);
    hello_of_west(due_us + 2000, endpoint_of(SKY_LINK_WEST), false, id, SKY_STATUS_OK, 0);
    CHECK_EQ(node.hello.links[SKY_LINK_WEST].mean_us, 1000);

    /* a greeting of the neighbour is answered over the link that it came by, a stranger's is refused */
    hello_of_west(due_us + 3000, endpoint_of(SKY_LINK_WEST), true, 77, SKY_STATUS_OK, 0);
    CHECK_EQ(sent_count, 1);
    CHECK_EQ(sent_link, SKY_LINK_WEST);
    CHECK_EQ(answer().time_s, (due_us + 3000 + 7 * SECOND_US) / SECOND_US); /* of the clock that packets carry */
    CHECK(answer().request_id == 77 && answer().status == SKY_STATUS_OK);
    hello_of_west(due_us + 3000, endpoint_of(SKY_LINK_NORTH), true, 78, SKY_STATUS_OK, 0);
    CHECK(answer().request_id == 78 && answer().status == SKY_STATUS_REFUSED);
    hello_of_west(due_us + 3000, endpoint_of(SKY_LINK_NORTH), true, 79, SKY_STATUS_OK, SKY_FLAG_GOSSIP);
    CHECK_EQ(sent_count, 0); /* news that is refused is not answered */

    SKY_Node_Run(&node, due_us + 10 * SECOND_US); /* all have been silent for more than three hellos */
    CHECK(!SKY_Node_IsUp(&node, SKY_LINK_WEST));
    SKY_Node_Receive(&node, due_us + 10 * SECOND_US, body, 1, endpoint_of(SKY_LINK_WEST)); /* whatever comes brings it back */
    CHECK(SKY_Node_IsUp(&node, SKY_LINK_WEST));
}

int main(void)
{
    RUN(test_a_link_that_is_cut);
    RUN(test_cuts_by_command);
    RUN(test_a_direction_without_a_neighbour);
    RUN(test_a_neighbour_on_two_links);
    RUN(test_hellos);
    return CHECK_RESULT();
}
