/**
 * @file
 * Telemetry that a host asks satellites for: which messages are handed over.
 */
#include "ask_rig.h"

static uint32_t heard;
static uint8_t  message[4];

static void on_telemetry(void *context, const SKY_Packet_t *pkt)
{
    CHECK(context == &heard);
    CHECK(pkt->length <= sizeof(message));
    (void)memcpy(message, pkt->payload, pkt->length);
    ++heard;
}

static SKY_HostQuestion_t lease(uint32_t i)
{
    SKY_HostQuestion_t one = question(i);

    one.apid  = SKY_APID_ISL;
    one.op    = SKY_OP_RELAY;
    one.flags = SKY_FLAG_TLM;
    return one;
}

/* A message of the satellite that was asked nth. */
static SKY_Packet_t told(uint32_t nth)
{
    static const uint8_t bytes[] = {9, 8, 7, 6};
    SKY_Packet_t         pkt     = answer_to(nth, SKY_STATUS_OK);

    pkt.flags   = SKY_FLAG_TLM;
    pkt.payload = bytes;
    pkt.length  = sizeof(bytes);
    return pkt;
}

static void test_what_was_asked_for_is_handed_over(void)
{
    SKY_HostQuestion_t one = lease(0);
    SKY_HostQuestion_t again;
    SKY_Packet_t       pkt;

    start(false);
    heard = 0;
    SKY_Host_Listen(&host, on_telemetry, &heard);
    ask(&one);
    (void)run();
    pkt = told(0);
    receive(&pkt); /* before the answer to the question */
    CHECK_EQ(heard, 1);
    CHECK_EQ(message[0], 9);
    answer(0, SKY_STATUS_OK);
    check_ended(&one, SKY_STATUS_DONE);
    receive(&pkt);
    CHECK_EQ(heard, 2);

    again = lease(0);
    ask(&again);
    (void)run();
    receive(&pkt); /* under the lease before, which the satellite may still have */
    CHECK_EQ(heard, 3);
    pkt = told(1);
    receive(&pkt);
    CHECK_EQ(heard, 4);
    now_us = again.due_us;
    (void)run(); /* the same question, sent again */
    receive(&pkt);
    CHECK_EQ(heard, 5);
    CHECK_EQ(host.counters.stale, 0);
}

static void test_other_messages_are_not(void)
{
    SKY_HostQuestion_t one = lease(0);
    SKY_Packet_t       good;

    start(false);
    heard = 0;
    ask(&one);
    (void)run();
    good = told(0);
    receive(&good); /* nobody listens */
    CHECK_EQ(host.counters.stale, 1);
    SKY_Host_Listen(&host, on_telemetry, &heard);
    for (uint32_t forged = 0; forged < 5u; ++forged)
    {
        SKY_Packet_t pkt = good;

        pkt.src        = forged == 0 ? satellite(3) : pkt.src; /* it was not asked */
        pkt.is_request = forged == 1;
        pkt.status     = forged == 2 ? SKY_STATUS_BUSY : pkt.status;
        pkt.dst        = forged == 3 ? (SKY_Addr_t){0, NUMBER + 1u} : pkt.dst;
        pkt.request_id ^= forged == 4 ? 1u : 0u;
        receive(&pkt);
        CHECK_EQ(host.counters.stale, 2u + forged);
    }
    receive_from(101, &good);
    CHECK_EQ(host.counters.stale, 7);
    CHECK_EQ(heard, 0);
    receive(&good);
    CHECK_EQ(heard, 1);
}

/* A host without a keyring takes nothing that has a tag: it could not check it. */
static void test_a_message_with_a_tag_is_not_trusted(void)
{
    static const uint8_t tag[SKY_TAG_BYTES] = {1};
    SKY_HostQuestion_t   one                = lease(0);
    SKY_Packet_t         pkt;
    uint8_t              bytes[400], tail[SKY_TAIL_MAX];

    start(false);
    heard = 0;
    SKY_Host_Listen(&host, on_telemetry, &heard);
    ask(&one);
    (void)run();
    host.cfg.security.is_on = true;
    pkt                     = told(0);
    pkt.security            = SKY_SUITE_BLAKE2B_PACKET;
    const size_t head       = SKY_Packet_EncodeHead(&pkt, bytes);
    SKY_Packet_Finish(&pkt, NULL, tag, bytes, tail);
    (void)memcpy(bytes + head, pkt.payload, pkt.length);
    (void)memcpy(bytes + head + pkt.length, tail, sizeof(tail));
    SKY_Host_Receive(&host, now_us, 100, bytes, head + pkt.length + sizeof(tail));
    CHECK_EQ(heard, 0);
    CHECK_EQ(host.counters.untrusted, 1);
}

static void test_without_memory_for_the_satellite_nothing_is_taken(void)
{
    SKY_HostQuestion_t one = lease(0);
    SKY_Packet_t       pkt;

    start(false);
    host.peer_used = host.peers.peer_count; /* all have something to do */
    for (uint32_t i = 0; i < host.peers.peer_count; ++i)
    {
        host.peers.peers[i].active = 0;
    }
    heard = 0;
    SKY_Host_Listen(&host, on_telemetry, &heard);
    ask(&one);
    (void)SKY_Host_Run(&host, now_us, false);
    CHECK_EQ(sent_count, 1);
    pkt = told(0);
    receive(&pkt);
    CHECK_EQ(heard, 0);
    CHECK_EQ(host.counters.stale, 1);
}

int main(void)
{
    RUN(test_what_was_asked_for_is_handed_over);
    RUN(test_other_messages_are_not);
    RUN(test_a_message_with_a_tag_is_not_trusted);
    RUN(test_without_memory_for_the_satellite_nothing_is_taken);
    return CHECK_RESULT();
}
