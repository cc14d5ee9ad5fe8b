/**
 * @file
 * ISL as an app: hellos, and news of links that are down.
 */
#include "app_rig.h"
#include "isl_eventids.h"
#include "sky_lib.h"

static rig_t rig;

/** Answer a greeting as a neighbour that knows nothing of links. */
static void answer_hello(const SKY_Packet_t *hello, SKY_LinkId_t link)
{
    static const uint8_t nothing[SKY_HELLO_BYTES];
    SKY_Packet_t         reply;

    SKY_Packet_Reply(hello, rig_neighbour[link], SKY_STATUS_OK, &reply);
    reply.payload = nothing;
    reply.length  = sizeof(nothing);
    rig_send(&rig, rig.neighbour[link], &reply);
}

static bool is_greeting(const SKY_Packet_t *pkt)
{
    return pkt->is_request && pkt->op == SKY_OP_HELLO && (pkt->flags & SKY_FLAG_GOSSIP) == 0;
}

static void test_hellos(void)
{
    static const char *const options[] = {"--hello-s", "1", NULL};
    SKY_Packet_t             hello;
    SKY_Packet_t             reply;

    if (!rig_open(&rig, options))
    {
        return;
    }
    /* the eastern neighbour answers, the others are silent: after three hellos only east is up */
    while (rig_link_stat(&rig, SKY_LINK_WEST, SKY_STATS_LINK_UP) != 0)
    {
        if (rig_receive(&rig, rig.neighbour[SKY_LINK_EAST], RIG_LIMIT_MS, &hello) && is_greeting(&hello))
        {
            CHECK(hello.apid == SKY_APID_ISL && SKY_Addr_Equal(hello.src, rig_self));
            answer_hello(&hello, SKY_LINK_EAST);
        }
    }
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_UP), 1);
    CHECK(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_DELAY_MEAN_US) > 0);
    CHECK(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_DELAY_MIN_US) > 0);
    CHECK(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_DELAY_MIN_US) <=
          rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_DELAY_MEAN_US));
    CHECK_EQ(rig_isl_stat(&rig, SKY_STATS_ISL_LINKS_DOWN_KNOWN), 3);
    RIG_EVENT(&rig, "ISL", ISL_LINKS_INF_EID, "east 1");
    /* whatever comes from a neighbour brings its link back */
    hello     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    hello.src = rig_neighbour[SKY_LINK_WEST];
    rig_send(&rig, rig.neighbour[SKY_LINK_WEST], &hello);
    while (rig_receive(&rig, rig.neighbour[SKY_LINK_WEST], RIG_LIMIT_MS, &reply) && reply.is_request)
    {
        /* hellos that were sent before, and news */
    }
    CHECK_EQ(reply.request_id, hello.request_id);
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_WEST, SKY_STATS_LINK_UP), 1);
    rig_close(&rig);
}

/** News of a link from a neighbour, as it is on the wire. */
static void tell(SKY_LinkId_t link, SKY_Addr_t satellite, uint32_t sequence, uint16_t down)
{
    uint8_t      payload[SKY_HELLO_BYTES + SKY_LINK_STATE_BYTES] = {0};
    SKY_Packet_t news                                            = rig_request(&rig, SKY_APID_ISL, SKY_OP_HELLO);

    payload[SKY_HELLO_OFF_COUNT + 1]                           = 1;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_PLANE + 1]    = (uint8_t)satellite.plane;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SLOT + 1]     = (uint8_t)satellite.slot;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SEQUENCE + 3] = (uint8_t)sequence;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_DOWN + 1]     = (uint8_t)down;
    news.src                                                   = rig_neighbour[link];
    news.flags                                                 = SKY_FLAG_GOSSIP;
    news.hop_limit                                             = 1;
    news.payload                                               = payload;
    news.length                                                = sizeof(payload);
    rig_send(&rig, rig.neighbour[link], &news);
}

/** Packets go around a satellite of which others say that it is gone, and are answered at once if they are for it. */
static void test_news_of_links(void)
{
    static const char *const options[] = {"--hello-s", "3600", NULL};
    static const SKY_Addr_t  gone      = {3, 3}; /* its neighbours in 3 x 3: (2, 3), (1, 3), (3, 1), (3, 2) */
    SKY_Packet_t             request;
    SKY_Packet_t             answer;
    SKY_Packet_t             there;

    if (!rig_open(&rig, options))
    {
        return;
    }
    request     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.dst = gone;
    rig_send(&rig, rig.ground, &request);
    while (rig_receive(&rig, rig.neighbour[SKY_LINK_SOUTH], RIG_LIMIT_MS, &there) && is_greeting(&there))
    {
        /* the greeting at the start */
    }
    CHECK_EQ(there.request_id, request.request_id);

    tell(SKY_LINK_EAST, (SKY_Addr_t){2, 3}, 7, 1u << SKY_LINK_SOUTH);
    while (rig_receive(&rig, rig.neighbour[SKY_LINK_SOUTH], RIG_LIMIT_MS, &there) &&
           (there.op != SKY_OP_HELLO || is_greeting(&there)))
    {
        /* until the news has gone on */
    }
    CHECK(there.op == SKY_OP_HELLO && (there.flags & SKY_FLAG_GOSSIP) != 0 && there.hop_limit == 1);
    tell(SKY_LINK_EAST, (SKY_Addr_t){1, 3}, 7, 1u << SKY_LINK_NORTH);
    tell(SKY_LINK_SOUTH, (SKY_Addr_t){3, 1}, 7, 1u << SKY_LINK_WEST);
    tell(SKY_LINK_SOUTH, (SKY_Addr_t){3, 2}, 7, 1u << SKY_LINK_EAST);
    tell(SKY_LINK_SOUTH, (SKY_Addr_t){3, 9}, 7, 1u << SKY_LINK_EAST); /* nobody */
    while (rig_isl_stat(&rig, SKY_STATS_ISL_LINKS_DOWN_KNOWN) < 4)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
    }
    request     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.dst = gone;
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_UNREACHABLE);
    CHECK(SKY_Addr_Equal(answer.src, rig_self));

    /* it is back: the newer states count, and the older one of another neighbour is answered with the newer one */
    tell(SKY_LINK_EAST, (SKY_Addr_t){2, 3}, 8, 0);
    tell(SKY_LINK_EAST, (SKY_Addr_t){1, 3}, 8, 0);
    tell(SKY_LINK_EAST, (SKY_Addr_t){3, 1}, 8, 0);
    tell(SKY_LINK_EAST, (SKY_Addr_t){3, 2}, 8, 0);
    tell(SKY_LINK_SOUTH, (SKY_Addr_t){3, 2}, 7, 1u << SKY_LINK_EAST);
    while (rig_isl_stat(&rig, SKY_STATS_ISL_LINKS_DOWN_KNOWN) > 0)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
    }

    /* only neighbours are listened to, over the link between */
    request        = rig_request(&rig, SKY_APID_ISL, SKY_OP_HELLO);
    request.length = 0;
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_REFUSED);
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        while (rig_receive(&rig, rig.neighbour[link], RIG_SILENT_MS, &there))
        {
            /* news that went on */
        }
    }

    /* news is never answered, not even where it is refused: the next answer is another request's */
    request.flags = SKY_FLAG_GOSSIP;
    rig_send(&rig, rig.ground, &request);
    request = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    rig_send(&rig, rig.ground, &request);
    CHECK(rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &answer));
    CHECK_EQ(answer.op, SKY_OP_PING);
    rig_close(&rig);
}

/** Routes go around a link that the table cuts from the first packet on: no three hellos have to be lost before. */
static void test_a_link_cut_by_the_table_is_down_from_the_start(void)
{
    static const char *const options[] = {"--hello-s", "1", "--link", "east:cut=1", NULL};
    SKY_Packet_t             request;
    SKY_Packet_t             there;
    ISL_LinksTable_t         links;

    if (!rig_open(&rig, options))
    {
        return;
    }
    request     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.dst = rig_neighbour[SKY_LINK_EAST]; /* three slots: the long way round leads over west */
    rig_send(&rig, rig.ground, &request);
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_UP), 0);
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_WEST, SKY_STATS_LINK_UP), 1);
    while (rig_receive(&rig, rig.neighbour[SKY_LINK_WEST], RIG_LIMIT_MS, &there) && SKY_Addr_Equal(there.src, rig_self))
    {
        /* hellos, and news of the cut */
    }
    CHECK_EQ(there.request_id, request.request_id);
    while (rig_receive(&rig, rig.neighbour[SKY_LINK_WEST], RIG_LIMIT_MS, &there) && !SKY_Addr_Equal(there.src, rig_self))
    {
        /* until the next hello, which goes to all whose links are not cut */
    }
    CHECK(!rig_receive(&rig, rig.neighbour[SKY_LINK_EAST], RIG_SILENT_MS, &there));

    /* no longer cut, it is up when the neighbour is heard */
    (void)memset(&links, 0, sizeof(links));
    rig_table_load("ISL.Links", &links, sizeof(links));
    request.src = rig_neighbour[SKY_LINK_EAST];
    request.dst = rig_self;
    do
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
        rig_send(&rig, rig.neighbour[SKY_LINK_EAST], &request);
    } while (rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_UP) == 0);
    rig_close(&rig);
}

int main(void)
{
    RUN(test_hellos);
    RUN(test_news_of_links);
    RUN(test_a_link_cut_by_the_table_is_down_from_the_start);
    return CHECK_RESULT();
}
