/**
 * @file
 * What a satellite believes of answers that come to it from other satellites.
 */
#include "session_rig.h"

static void test_a_response_needs_spi_suite_and_tag(void)
{
    wire_t       there;
    wire_t       back;
    wire_t       wire;
    SKY_Packet_t pkt;
    SKY_TagKey_t key;

    open(2);
    begin(&peers[0], NOW);
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK(answer_request(&peers[0], NOW, &there.pkt, &back));
    key = (SKY_TagKey_t){&peers[0].rig.crypto, SKY_Associations_Find(&peers[0].security.associations, back.pkt.spi)->place_back,
                         NULL, NULL};
    pkt = back.pkt;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(take(NOW, &wire, false));
    pkt.spi += 1u;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* an SPI of nobody */
    pkt          = back.pkt;
    pkt.security = SKY_SUITE_BLAKE2B_PACKET;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* another suite */
    pkt.security = SKY_SUITE_NONE;
    CHECK(carry(&pkt, NULL, &wire));
    CHECK(!take(NOW, &wire, true)); /* no tag */
    pkt     = back.pkt;
    pkt.src = peers[1].addr;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* from a satellite with which there is no session */
    pkt.src = (SKY_Addr_t){0, 2};
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* from a host, which answers nothing */
    want_session(&satellite.security, NOW, peers[1].addr);
    pkt.src = peers[1].addr;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* there is a session only soon */
    pkt       = back.pkt;
    key.place = SKY_Associations_Find(&peers[0].security.associations, back.pkt.spi)->place_there;
    CHECK(carry(&pkt, &key, &wire));
    CHECK(!take(NOW, &wire, true)); /* the key of the other direction */
    wire = back;
    CHECK_EQ(SKY_Packet_Decode(wire.bytes, wire.len, &wire.pkt), SKY_STATUS_OK);
    wire.bytes[wire.len - SKY_TAIL_MAX] ^= 1u;
    CHECK(!take(NOW, &wire, true)); /* a wrong tag */
    CHECK(take(NOW, &back, false));
    close_all(2);
}

/* Let somebody say `unauthenticated` of a packet. */
static bool is_doubted(uint64_t now_us, const party_t *from, uint32_t spi, uint64_t sequence)
{
    const SKY_SecuritySession_t *entry = entry_of(&peers[0]);
    SKY_Packet_t                 pkt   = a_request(from, &satellite, SKY_OP_GET);
    wire_t                       wire;

    pkt.is_request = false;
    pkt.status     = SKY_STATUS_UNAUTHENTICATED;
    pkt.spi        = spi;
    pkt.sequence   = sequence;
    CHECK(carry(&pkt, NULL, &wire));
    CHECK(!SKY_Security_AdmitResponse(&satellite.security, now_us, &wire.pkt));
    return entry->session.state == SKY_SESSION_DOUBTED;
}

static void test_who_does_not_know_the_session_makes_it_doubted(void)
{
    const uint64_t late = NOW + RETRY_US;
    wire_t         there;
    wire_t         back;

    open(1);
    begin(&peers[0], NOW);
    const uint32_t spi = entry_of(&peers[0])->session.spi;

    CHECK(!is_doubted(late, &peers[0], spi, 0)); /* nothing was sent yet */
    for (unsigned i = 0; i < 3; ++i)
    {
        CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    }
    const uint64_t before = satellite.security.counters.unauthenticated;

    CHECK(!is_doubted(late, &peers[0], spi, 4));      /* a number that was not used */
    CHECK(!is_doubted(late, &peers[0], spi, 0));      /* that repeats none */
    CHECK(!is_doubted(late, &peers[0], spi + 1u, 3)); /* another association */
    CHECK(!is_doubted(late, &peers[0], 0, 0));        /* that repeats nothing */
    CHECK(!is_doubted(late, &peers[0], spi, UINT64_MAX));
    CHECK_EQ(satellite.security.counters.unauthenticated, before + 5u);
    CHECK(!is_doubted(late - 1u, &peers[0], spi, 3)); /* it may be about the session of before */
    close_party(&peers[0]);
    open_satellite(&peers[0], 1, 2); /* it starts again and knows nobody */
    CHECK(!answer_request(&peers[0], NOW, &there.pkt, &back));
    CHECK(is_doubted(late, &peers[0], there.pkt.spi, there.pkt.sequence));
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 2);
    CHECK_EQ(send_to(&peers[0], late, &there), 1); /* nothing waits */
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), late);
    CHECK(exchange(&satellite, &peers[0], late));
    CHECK(entry_of(&peers[0])->session.spi != SKY_SPI_NONE);
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), UINT64_MAX);
    CHECK_EQ(send_to(&peers[0], late, &there), 1);
    CHECK(answer_request(&peers[0], late, &there.pkt, &back));
    CHECK(take(late, &back, false));
    close_all(1);
}

static void test_what_is_long_sent_makes_no_doubt(void)
{
    const uint64_t late = NOW + RETRY_US;

    open(1);
    begin(&peers[0], NOW);
    const uint32_t spi = entry_of(&peers[0])->session.spi;

    satellite.security.sessions[0].session.sequence = SKY_REPLAY_WINDOW + 1u;
    CHECK(!is_doubted(late, &peers[0], spi, 1));
    CHECK(is_doubted(late, &peers[0], spi, 2));
    close_all(1);
}

/* A forged word costs a handshake at most: an answer under the old keys shows that they are still known. */
static void test_a_right_answer_ends_the_doubt(void)
{
    const uint64_t late = NOW + RETRY_US;
    wire_t         there, back;

    open(1);
    begin(&peers[0], NOW);
    const uint32_t spi = entry_of(&peers[0])->session.spi;

    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK(is_doubted(late, &peers[0], spi, 1));
    CHECK(answer_request(&peers[0], NOW, &there.pkt, &back));
    CHECK(take(late, &back, false));
    CHECK_EQ(entry_of(&peers[0])->session.state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(entry_of(&peers[0])->session.spi, spi);
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), UINT64_MAX);
    CHECK_EQ(send_to(&peers[0], late, &there), 1);
    CHECK_EQ(there.pkt.sequence, 2);
    close_all(1);
}

/* Only that status does, and only without a tag. */
static void test_another_status_makes_no_doubt(void)
{
    wire_t             there;
    wire_t             back;
    SKY_Packet_t       pkt;
    SKY_Association_t *association;
    SKY_TagKey_t       key;

    open(1);
    begin(&peers[0], NOW);
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    SKY_Packet_Reply(&there.pkt, peers[0].addr, SKY_STATUS_REFUSED, &pkt);
    pkt.spi      = there.pkt.spi;
    pkt.sequence = there.pkt.sequence;
    CHECK(carry(&pkt, NULL, &back));
    CHECK(!take(NOW + RETRY_US, &back, true));

    CHECK_EQ(SKY_Security_Admit(&peers[0].security, NOW, &there.pkt, ENDPOINT, &association), SKY_ADMIT_OK);
    SKY_Packet_Reply(&there.pkt, peers[0].addr, SKY_STATUS_UNAUTHENTICATED, &pkt);
    CHECK_EQ(SKY_Security_Prepare(&peers[0].security, NOW, &pkt, association, &key), 1);
    CHECK(carry(&pkt, &key, &back));
    CHECK(take(NOW + RETRY_US, &back, false)); /* its own word, for the service that asked */
    CHECK_EQ(entry_of(&peers[0])->session.state, SKY_SESSION_ESTABLISHED);
    close_all(1);
}

int main(void)
{
    RUN(test_a_response_needs_spi_suite_and_tag);
    RUN(test_who_does_not_know_the_session_makes_it_doubted);
    RUN(test_what_is_long_sent_makes_no_doubt);
    RUN(test_a_right_answer_ends_the_doubt);
    RUN(test_another_status_makes_no_doubt);
    return CHECK_RESULT();
}
