/**
 * @file
 * ISL as an app: what it answers, forwards, refuses and counts; commands, tables, relay, delay.
 */
#include "app_rig.h"
#include "isl_eventids.h"
#include "sky_lib.h"

#define UNUSED_APID 0x123u
#define LISTENERS   4u  /* ISL_PLATFORM_LISTENERS */
#define RELAYED     16u /* ISL_PLATFORM_RELAYED */
#define BURSTS      50u

static rig_t rig;

static void test_ping_and_stats(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t answer;

    request.payload = (const uint8_t *)"hello";
    request.length  = 5;
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    CHECK(answer.length == 5 && memcmp(answer.payload, "hello", 5) == 0);
    CHECK(SKY_Addr_Equal(answer.src, rig_self));
    CHECK_EQ(rig_isl_stat(&rig, SKY_STATS_ISL_LINKS), SKY_LINK_COUNT);
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_SLOT), 3);
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_LAST_HEARD_MS), UINT64_MAX);

    request = rig_request(&rig, SKY_APID_ISL, SKY_OP_GET);
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_BAD_OP);
}

static void test_bad_packets_are_counted_by_reason(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t answer;
    uint8_t      wire[256];
    size_t       len;
    uint64_t     values[RIG_ISL_VALUES];

    request.payload = (const uint8_t *)"hello";
    request.length  = 5;
    len             = SKY_Packet_Encode(&request, wire, sizeof(wire));
    rig_command(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_RESET_INF_EID, "reset");
    rig_send_bytes(&rig, rig.ground, wire, 20); /* short */
    rig_send_bytes(&rig, rig.ground, wire, 0);
    rig_send_bytes(&rig, rig.ground, wire, len - 1); /* shorter than it says */
    wire[len - 1] ^= 1;
    rig_send_bytes(&rig, rig.ground, wire, len); /* PEC */

    request.dst.slot = 9; /* outside the constellation */
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_BAD_ADDRESS);
    request = rig_request(&rig, UNUSED_APID, SKY_OP_PING);
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_UNREACHABLE);
    request           = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.dst.slot  = 3;
    request.hop_limit = 0;
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_HOP_LIMIT);

    rig_stats(&rig, SKY_APID_ISL, values, RIG_ISL_VALUES);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_SHORT], 2);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_LENGTH], 1);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_CRC], 1);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_ADDRESS], 1);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_NO_SERVICE], 1);
    CHECK_EQ(values[SKY_STATS_ISL_DROP_HOP_LIMIT], 1);
    RIG_EVENT(&rig, "ISL", ISL_DROP_ERR_EID, "packets dropped: bad_length");
}

static void test_forwarding_and_the_way_back(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_KVC, SKY_OP_PING);
    SKY_Packet_t there;
    SKY_Packet_t reply;
    SKY_Packet_t answer;

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        request.dst        = rig_neighbour[link];
        request.request_id = ++rig.request_id;
        rig_send(&rig, rig.ground, &request);
        CHECK(rig_receive(&rig, rig.neighbour[link], RIG_LIMIT_MS, &there));
        CHECK_EQ(there.hop_limit, SKY_LIMIT_HOP_LIMIT - 1u);
        CHECK(SKY_Addr_Equal(there.gateway, rig_self) && SKY_Addr_Equal(there.src, request.src));

        SKY_Packet_Reply(&there, rig_neighbour[link], SKY_STATUS_OK, &reply);
        rig_send(&rig, rig.neighbour[link], &reply);
        CHECK(rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &answer));
        CHECK(answer.request_id == request.request_id && SKY_Addr_Equal(answer.src, rig_neighbour[link]));
    }
    /* a request of the northern neighbour for the southern one, through us */
    request     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.src = rig_neighbour[SKY_LINK_EAST];
    request.dst = rig_neighbour[SKY_LINK_WEST];
    rig_send(&rig, rig.neighbour[SKY_LINK_EAST], &request);
    CHECK(rig_receive(&rig, rig.neighbour[SKY_LINK_WEST], RIG_LIMIT_MS, &there));
    /* the ground cannot claim to be a satellite */
    rig_send(&rig, rig.ground, &request);
    CHECK(rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &answer));
    CHECK_EQ(answer.status, SKY_STATUS_BAD_ADDRESS);
    CHECK(!rig_receive(&rig, rig.neighbour[SKY_LINK_WEST], RIG_SILENT_MS, &there));
}

static void test_a_train_arrives_packet_by_packet(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_KVC, SKY_OP_PING);
    SKY_Packet_t there;
    uint32_t     arrived = 0;

    request.dst = rig_neighbour[SKY_LINK_EAST];
    for (uint32_t i = 0; i < 100; ++i)
    {
        request.request_id = ++rig.request_id;
        rig_send(&rig, rig.ground, &request);
    }
    while (arrived < 100 && rig_receive(&rig, rig.neighbour[SKY_LINK_EAST], RIG_LIMIT_MS, &there))
    {
        ++arrived;
    }
    CHECK_EQ(arrived, 100);
}

static void test_commands(void)
{
    const uint8_t         excess = 0;
    ISL_SetLink_Payload_t cut    = {SKY_LINK_EAST, 60};
    SKY_Packet_t          request;
    SKY_Packet_t          there;
    ISL_HkTlm_Payload_t   hk;

    rig_command(ISL_CMD_MID, ISL_NOOP_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_NOOP_INF_EID, "Version");
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &excess, 1);
    RIG_EVENT(&rig, "ISL", ISL_LEN_ERR_EID, "9 bytes, not 12");
    rig_command(ISL_CMD_MID, 77, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_CC_ERR_EID, "77");
    cut.Link = 5;
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_LINK_ERR_EID, "no link 5");

    cut.Link = SKY_LINK_EAST;
    cut.CutS = ISL_CUT_S_MAX + 1;
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_LINK_ERR_EID, "3601 s above 3600");
    cut.CutS = 60;
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_SET_LINK_INF_EID, "link 1 cut for 60 s");
    hk = rig_isl_hk(&rig);
    CHECK(hk.Link[SKY_LINK_EAST].Present == 1 && hk.Link[SKY_LINK_EAST].Up == 0 && hk.Link[SKY_LINK_WEST].Up == 1);
    request     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    request.dst = rig_neighbour[SKY_LINK_EAST]; /* three slots: the long way round leads over west */
    rig_send(&rig, rig.ground, &request);
    CHECK(rig_receive_passed_on(&rig, rig.neighbour[SKY_LINK_WEST], RIG_LIMIT_MS, &there));
    CHECK_EQ(there.request_id, request.request_id);
    rig_send(&rig, rig.neighbour[SKY_LINK_EAST], &request); /* nothing comes in over a cut link */
    CHECK(!rig_receive(&rig, rig.ground, RIG_SILENT_MS, &there));
    CHECK_EQ(rig_isl_hk(&rig).Link[SKY_LINK_EAST].DropCut, 1);

    cut.CutS = 0;
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_SET_LINK_INF_EID, "link 1 restored");
    request.request_id = ++rig.request_id;
    rig_send(&rig, rig.ground, &request);
    CHECK(rig_receive_passed_on(&rig, rig.neighbour[SKY_LINK_EAST], RIG_LIMIT_MS, &there));
    hk = rig_isl_hk(&rig);
    CHECK(hk.Plane == 2 && hk.Slot == 2 && hk.CommandErrorCounter == 4);
}

/** However many assertions fail, one event tells of the first; housekeeping has the count. */
static void test_failed_assertions_are_told_once(void)
{
    uint32_t i;

    CHECK_EQ(rig_isl_hk(&rig).FailedAsserts, 0);
    SKY_LIB_CountAssert("/where/it/was/built/sky_store.c", 12);
    SKY_LIB_CountAssert("/where/it/was/built/sky_fetch.c", 34);
    rig_command(ISL_WAKEUP_MID, 0, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_ASSERT_ERR_EID, "assertion failed at sky_store.c:12");
    CHECK_EQ(rig_isl_hk(&rig).FailedAsserts, 2);
    for (i = 0; i < 300; ++i)
    {
        SKY_LIB_CountAssert("sky_fetch.c", 34);
    }
    rig_command(ISL_WAKEUP_MID, 0, NULL, 0);
    CHECK_EQ(rig_isl_hk(&rig).FailedAsserts, 255);
    CHECK(rig_event(&rig, "ISL", ISL_ASSERT_ERR_EID) == NULL);

    rig_command(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_RESET_INF_EID, "reset");
    CHECK_EQ(rig_isl_hk(&rig).FailedAsserts, 0);
    SKY_LIB_CountAssert("sky_fetch.c", 34); /* what fails from here on is told again */
    rig_command(ISL_WAKEUP_MID, 0, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_ASSERT_ERR_EID, "assertion failed at sky_fetch.c:34");
    rig_command(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "ISL", ISL_RESET_INF_EID, "reset");
}

/** A cut ends by itself, and no row of commands makes the satellite deaf and dumb. */
static void test_cuts_do_not_isolate(void)
{
    SKY_Packet_t          request = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t          answer;
    ISL_SetLink_Payload_t cut = {SKY_LINK_GROUND, 1};
    uint64_t              cut_us;

    cut_us = SKY_LIB_NowUs();
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_SET_LINK_INF_EID, "link 4 cut for 1 s");
    do
    {
        rig_send(&rig, rig.ground, &request);
    } while (!rig_receive(&rig, rig.ground, RIG_POLL_MS, &answer) && SKY_LIB_NowUs() - cut_us < RIG_LIMIT_MS * 1000u);
    CHECK(SKY_LIB_NowUs() - cut_us >= 1000000);
    CHECK_EQ(answer.request_id, request.request_id);
    while (rig_receive(&rig, rig.ground, RIG_SILENT_MS, &answer))
    {
        /* to requests that were sent while it ended */
    }

    cut.CutS = 60;
    for (cut.Link = 0; cut.Link < SKY_ISL_COUNT; ++cut.Link)
    {
        rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
        RIG_EVENT(&rig, "ISL", ISL_SET_LINK_INF_EID, "cut for 60 s");
    }
    rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
    RIG_EVENT(&rig, "ISL", ISL_LINK_ERR_EID, "link 4 is not cut: no other link is up");
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    cut.CutS = 0;
    for (cut.Link = 0; cut.Link < SKY_ISL_COUNT; ++cut.Link)
    {
        rig_command(ISL_CMD_MID, ISL_SET_LINK_CC, &cut, sizeof(cut));
        RIG_EVENT(&rig, "ISL", ISL_SET_LINK_INF_EID, "restored");
    }
}

/** More hosts than the router's table holds: who asks this satellite itself needs no place in it. */
static void test_strangers_keep_nobody_out(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_KVC, SKY_OP_PING);
    SKY_Packet_t answer;

    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS + 2u; ++i)
    {
        const int stranger = rig_socket(INADDR_LOOPBACK, 0);

        request.src.slot = (uint16_t)(1000 + i);
        request.cookie   = rig_cookie(&rig, stranger);
        rig_send(&rig, stranger, &request);
        CHECK(rig_receive(&rig, stranger, RIG_LIMIT_MS, &answer));
        CHECK(answer.dst.slot == request.src.slot && answer.status == SKY_STATUS_OK);
        (void)close(stranger);
    }
}

static void test_responses_carry_the_satellites_time(void)
{
    static const uint16_t apids[] = {SKY_APID_ISL, SKY_APID_KVC};

    for (uint32_t i = 0; i < 2; ++i)
    {
        const SKY_Packet_t request = rig_request(&rig, apids[i], SKY_OP_PING);
        const uint32_t     before  = CFE_TIME_GetTime().Seconds;
        SKY_Packet_t       answer;

        CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
        CHECK(answer.time_s + 1u >= before && answer.time_s <= CFE_TIME_GetTime().Seconds + 1u);
    }
}

static SKY_Status_t relay(const CFE_SB_Buffer_t *command, uint32_t len, uint8_t flags)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_ISL, SKY_OP_RELAY);
    SKY_Packet_t answer;

    request.payload = (const uint8_t *)command;
    request.length  = len;
    request.flags   = flags;
    return rig_ask(&rig, &request, &answer);
}

static void test_relay(void)
{
    union
    {
        CFE_SB_Buffer_t buffer;
        uint8_t         bytes[64];
    } command;
    uint32_t     len = rig_command_bytes(KVC_CMD_MID, KVC_NOOP_CC, NULL, 0, &command.buffer, sizeof(command));
    SKY_Packet_t tlm;
    bool         relayed = false;

    CHECK_EQ(relay(&command.buffer, len, 0), SKY_STATUS_OK);
    RIG_EVENT(&rig, "KVC", 2, "no operation");
    CHECK_EQ(relay(&command.buffer, len - 1, 0), SKY_STATUS_BAD_LENGTH);
    CHECK_EQ(relay(&command.buffer, 0, 0), SKY_STATUS_BAD_LENGTH);
    command.bytes[len - 1] ^= 0x40;
    CHECK_EQ(relay(&command.buffer, len, 0), SKY_STATUS_BAD_CHECKSUM);
    len = rig_command_bytes(CFE_PLATFORM_CMD_TOPICID_TO_MIDV(6), 0, NULL, 0, &command.buffer, sizeof(command)); /* cFE ES */
    CHECK_EQ(relay(&command.buffer, len, 0), SKY_STATUS_REFUSED);
    CHECK_EQ(CFE_MSG_Init(&command.buffer.Msg, CFE_SB_ValueToMsgId(KVC_HK_TLM_MID), 32), CFE_SUCCESS);
    CHECK_EQ(relay(&command.buffer, 32, 0), SKY_STATUS_BAD_HEADER); /* telemetry is no command */

    /* listen, then ask for housekeeping: it comes down, and so does the answer of the request */
    CHECK_EQ(relay(NULL, 0, SKY_FLAG_TLM), SKY_STATUS_OK);
    rig_command(KVC_SEND_HK_MID, 0, NULL, 0);
    while (!relayed && rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &tlm))
    {
        CFE_SB_MsgId_t mid = CFE_SB_INVALID_MSG_ID;

        CHECK(tlm.op == SKY_OP_RELAY && (tlm.flags & SKY_FLAG_TLM) != 0 && tlm.length <= sizeof(command) * 16);
        CHECK_EQ(CFE_MSG_GetMsgId((const CFE_MSG_Message_t *)tlm.payload, &mid), CFE_SUCCESS);
        relayed = CFE_SB_MsgIdToValue(mid) == KVC_HK_TLM_MID && tlm.length == sizeof(KVC_HkTlm_t);
    }
    CHECK(relayed);
    CHECK_EQ(rig_isl_hk(&rig).Listeners, 1);
}

/** A ground host that has not got the answer asks again, under the same number. */
static void test_a_repeated_command_is_carried_out_once(void)
{
    union
    {
        CFE_SB_Buffer_t buffer;
        uint8_t         bytes[64];
    } command;
    SKY_Packet_t   request = rig_request(&rig, SKY_APID_ISL, SKY_OP_RELAY);
    const uint32_t before  = rig_isl_hk(&rig).RelayedUp;
    SKY_Packet_t   answer;
    uint32_t       i;

    request.payload = command.bytes;
    request.length  = rig_command_bytes(KVC_CMD_MID, KVC_NOOP_CC, NULL, 0, &command.buffer, sizeof(command));
    command.bytes[request.length - 1] ^= 0x40;
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_BAD_CHECKSUM); /* was not carried out, so it may be */
    command.bytes[request.length - 1] ^= 0x40;
    for (i = 0; i < 3; ++i)
    {
        CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    }
    CHECK_EQ(rig_isl_hk(&rig).RelayedUp, before + 1);
    request.src.slot += 1; /* another host's */
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    CHECK_EQ(rig_isl_hk(&rig).RelayedUp, before + 2);
    request.length = rig_command_bytes(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, NULL, 0, &command.buffer, sizeof(command));
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK); /* another command of a host that counts anew */
    CHECK_EQ(rig_isl_hk(&rig).RelayedUp, before + 3);
    request.length = rig_command_bytes(KVC_CMD_MID, KVC_NOOP_CC, NULL, 0, &command.buffer, sizeof(command));
    for (i = 0; i < RELAYED; ++i) /* others make the oldest forgotten */
    {
        SKY_Packet_t other = request;

        other.request_id = ++rig.request_id;
        CHECK_EQ(rig_ask(&rig, &other, &answer), SKY_STATUS_OK);
    }
    CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    CHECK_EQ(rig_isl_hk(&rig).RelayedUp, before + 3 + RELAYED + 1);
}

/** One lease for each endpoint, whatever numbers it gives itself; the oldest makes room for a new one. */
static void test_listeners(void)
{
    SKY_Packet_t request = rig_request(&rig, SKY_APID_ISL, SKY_OP_RELAY);
    SKY_Packet_t answer;
    int          other[LISTENERS];
    uint32_t     i;

    request.flags = SKY_FLAG_TLM;
    for (i = 0; i < 3; ++i)
    {
        ++request.src.slot;
        request.request_id = ++rig.request_id;
        CHECK_EQ(rig_ask(&rig, &request, &answer), SKY_STATUS_OK);
    }
    CHECK_EQ(rig_isl_hk(&rig).Listeners, 1);
    for (i = 0; i < LISTENERS; ++i)
    {
        other[i]       = rig_socket(INADDR_LOOPBACK, 0);
        request.cookie = rig_cookie(&rig, other[i]);
        rig_send(&rig, other[i], &request);
        CHECK(rig_receive(&rig, other[i], RIG_LIMIT_MS, &answer) && answer.status == SKY_STATUS_OK);
    }
    while (rig_receive(&rig, rig.ground, RIG_SILENT_MS, &answer))
    {
        /* what was on its way */
    }
    CHECK_EQ(rig_isl_hk(&rig).Listeners, LISTENERS);
    for (i = 0; i < LISTENERS; ++i)
    {
        CHECK(rig_receive(&rig, other[i], RIG_LIMIT_MS, &answer) && answer.op == SKY_OP_RELAY && answer.length > 0);
        (void)close(other[i]);
    }
    CHECK(!rig_receive(&rig, rig.ground, RIG_SILENT_MS, &answer));
}

static ISL_NeighboursTable_t good_neighbours(void)
{
    ISL_NeighboursTable_t table;

    (void)memset(&table, 0, sizeof(table));
    table.SelfPlane   = rig_self.plane;
    table.SelfSlot    = rig_self.slot;
    table.Planes      = 3;
    table.Slots       = 3;
    table.LocalIpv4   = rig_ipv4(rig_self);
    table.LocalPort   = rig.port;
    table.PacketBytes = 9000;
    for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
    {
        const ISL_Neighbour_t entry = {rig_ipv4(rig_neighbour[i]), rig.port, rig_neighbour[i].plane, rig_neighbour[i].slot, 1, 0};

        table.Neighbour[i] = entry;
    }
    return table;
}

#define REFUSED(field, value, part)                              \
    do                                                           \
    {                                                            \
        ISL_NeighboursTable_t table = good_neighbours();         \
        table.field                 = (value);                   \
        rig_table_load("ISL.Neighbours", &table, sizeof(table)); \
        RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, part);     \
    } while (0)

static void test_tables(void)
{
    ISL_NeighboursTable_t neighbours = good_neighbours();
    ISL_LinksTable_t      links;
    SKY_Packet_t          request = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t          there;
    uint64_t              sent_us;

    REFUSED(SelfSlot, 4, "SelfSlot is 4, allowed 1 .. 3");
    REFUSED(Neighbour[1].Slot, 1, "east of (2, 2) is (2, 3), not (2, 1)");
    REFUSED(Neighbour[2].Plane, 200, "south of (2, 2)");
    REFUSED(Neighbour[0].Port, 0, "Port is 0");
    REFUSED(PacketBytes, 100, "PacketBytes is 100");
    REFUSED(SeamCut, 2, "SeamCut is 2");
    REFUSED(UplinkLastMid, 0x1FFF, "UplinkLastMid is 8191, allowed 0 .. 0");
    REFUSED(DownlinkMid[3], ISL_CMD_MID, "DownlinkMid[3] is 0x18D8, allowed is telemetry");
    REFUSED(DownlinkMid[1], 0x12345, "DownlinkMid[1] is 0x12345");
    neighbours.DownlinkMid[0] = ISL_HK_TLM_MID;
    neighbours.DownlinkMid[2] = ISL_HK_TLM_MID;
    rig_table_load("ISL.Neighbours", &neighbours, sizeof(neighbours));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "DownlinkMid[2]");
    neighbours = good_neighbours();

    neighbours.Neighbour[SKY_LINK_NORTH].Present = 0;
    rig_table_load("ISL.Neighbours", &neighbours, sizeof(neighbours));
    RIG_EVENT(&rig, "ISL", ISL_NODE_INF_EID, "packets of 9000 bytes");
    CHECK_EQ(rig_link_stat(&rig, SKY_LINK_NORTH, SKY_STATS_LINK_UP), 0);

    (void)memset(&links, 0, sizeof(links));
    links.Link[SKY_LINK_GROUND].LossPpm = 1000001;
    rig_table_load("ISL.Links", &links, sizeof(links));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "LossPpm");
    (void)memset(&links, 0, sizeof(links));
    links.Link[SKY_LINK_EAST].DelayUs   = 60000;
    links.Link[SKY_LINK_GROUND].DelayUs = 40000; /* on the way up as well */
    rig_table_load("ISL.Links", &links, sizeof(links));
    RIG_EVENT(&rig, "ISL", ISL_LINES_INF_EID, "packets of 9000 bytes");
    while (rig_link_stat(&rig, SKY_LINK_EAST, SKY_STATS_LINK_DELAY_REQUESTED_US) != 60000)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
    }
    request.dst = rig_neighbour[SKY_LINK_EAST];
    sent_us     = SKY_LIB_NowUs();
    rig_send(&rig, rig.ground, &request);
    CHECK(rig_receive_passed_on(&rig, rig.neighbour[SKY_LINK_EAST], RIG_LIMIT_MS, &there));
    CHECK(SKY_LIB_NowUs() - sent_us >= 100000);
}

/** Telemetry has a pipe of its own: whatever comes on it, commands find room. */
static void test_a_burst_of_telemetry_pushes_out_no_command(void)
{
    ISL_NeighboursTable_t     neighbours = good_neighbours();
    CFE_MSG_TelemetryHeader_t telemetry;
    uint8                     commands;
    bool                      all_came = true;

    for (uint32_t i = 0; i < ISL_DOWNLINK_MIDS; ++i)
    {
        neighbours.DownlinkMid[i] = CFE_PLATFORM_TLM_TOPICID_TO_MIDV(0xE0 + i);
    }
    rig_table_load("ISL.Neighbours", &neighbours, sizeof(neighbours));
    RIG_EVENT(&rig, "ISL", ISL_NODE_INF_EID, "packets of 9000 bytes");
    commands = rig_isl_hk(&rig).CommandCounter;
    for (uint32_t round = 0; round < BURSTS && all_came; ++round)
    {
        for (uint32_t i = 0; i < 8 * ISL_DOWNLINK_MIDS; ++i) /* four times what any pipe of isl holds */
        {
            const CFE_SB_MsgId_t mid = CFE_SB_ValueToMsgId(neighbours.DownlinkMid[i % ISL_DOWNLINK_MIDS]);

            CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(telemetry), mid, sizeof(telemetry)), CFE_SUCCESS);
            CHECK_EQ(CFE_SB_TransmitMsg(CFE_MSG_PTR(telemetry), true), CFE_SUCCESS);
        }
        rig_command(ISL_CMD_MID, ISL_NOOP_CC, NULL, 0);
        ++commands;
        all_came = rig_isl_hk(&rig).CommandCounter == commands;
    }
    CHECK(all_came);
}

int main(void)
{
    static const char *const options[] = {"--hello-s", "0", NULL};

    if (rig_open(&rig, options))
    {
        RUN(test_ping_and_stats);
        RUN(test_bad_packets_are_counted_by_reason);
        RUN(test_forwarding_and_the_way_back);
        RUN(test_a_train_arrives_packet_by_packet);
        RUN(test_commands);
        RUN(test_failed_assertions_are_told_once);
        RUN(test_cuts_do_not_isolate);
        RUN(test_strangers_keep_nobody_out);
        RUN(test_responses_carry_the_satellites_time);
        RUN(test_relay);
        RUN(test_a_repeated_command_is_carried_out_once);
        RUN(test_listeners);
        RUN(test_tables);
        RUN(test_a_burst_of_telemetry_pushes_out_no_command);
        rig_close(&rig);
    }
    return CHECK_RESULT();
}
