/**
 * @file
 * Sessions that a satellite asks other satellites for: when, how many, what ends them, and under which keys it sends.
 */
#include "session_rig.h"

/* ---- asking ---- */

static void test_a_packet_waits_for_its_session(void)
{
    wire_t there;
    wire_t back;

    open(1);
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    CHECK(!exchange(&satellite, &peers[0], NOW)); /* nobody is asked for nothing */
    CHECK(!SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    CHECK_EQ(send_to(&peers[0], NOW, &there), -1);
    CHECK_EQ(satellite.security.counters.unsent, 1);
    CHECK(SKY_Security_NextDue(&satellite.security) <= NOW);
    CHECK(!SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    CHECK(exchange(&satellite, &peers[0], NOW));
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    CHECK(!exchange(&satellite, &peers[0], WORST_US)); /* it is there */
    CHECK(SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK(!SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    CHECK_EQ(there.pkt.sequence, 1);
    CHECK_EQ(there.pkt.security, SKY_SUITE_BLAKE2B_HEADER);
    CHECK(answer_request(&peers[0], NOW, &there.pkt, &back));
    CHECK(take(NOW, &back, false));
    CHECK_EQ(satellite.security.counters.unsent, 1);
    close_all(1);
}

/* Nothing of a handshake is left to chance: who asks hands in memory as it is. */
static void test_a_handshake_is_a_whole_packet(void)
{
    SKY_SecurityAsk_t out;
    wire_t            wire;
    SKY_Packet_t      pkt;

    open(1);
    want_session(&satellite.security, NOW, peers[0].addr);
    (void)memset(&out, 0xEE, sizeof(out));
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(carry(&out.pkt, &out.key, &wire));
    pkt = wire.pkt;
    CHECK(pkt.is_request && pkt.apid == SKY_APID_ISL && pkt.op == SKY_OP_ASSOCIATE && pkt.seq_flags == SKY_SEQ_WHOLE);
    CHECK_EQ(pkt.security, SKY_SUITE_HANDSHAKE);
    CHECK_EQ(pkt.hop_limit, SKY_LIMIT_HOP_LIMIT);
    CHECK(SKY_Addr_Equal(pkt.src, satellite.addr) && SKY_Addr_Equal(pkt.dst, peers[0].addr));
    CHECK(pkt.status == 0u && pkt.flags == 0u && pkt.tenant == 0u && pkt.spi == 0u && pkt.sequence == 0u && pkt.cookie == 0u);
    close_all(1);
}

static void test_both_may_ask_each_other(void)
{
    wire_t there;
    wire_t back;

    open(1);
    begin(&peers[0], NOW);
    want_session(&peers[0].security, NOW, satellite.addr);
    CHECK(exchange(&peers[0], &satellite, NOW));
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK(answer_request(&peers[0], NOW, &there.pkt, &back));
    CHECK(take(NOW, &back, false));
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 4); /* a session and an association */
    close_all(1);
}

static void test_handshakes_are_repeated_until_one_is_answered(void)
{
    SKY_SecurityAsk_t      out;
    SKY_HandshakeRequest_t first;
    SKY_HandshakeRequest_t second;

    open(2);
    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out)); /* it is lost */
    CHECK(SKY_Handshake_DecodeRequest(out.payload, out.pkt.length, &first));
    const uint64_t request_id = out.pkt.request_id;

    want_session(&satellite.security, NOW, peers[1].addr);
    CHECK(SKY_Security_NextDue(&satellite.security) <= NOW); /* the first of two */
    CHECK(exchange(&satellite, &peers[1], NOW));
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW + RETRY_US - 1u, &out));
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), NOW + RETRY_US);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW + RETRY_US, &out));
    CHECK(SKY_Handshake_DecodeRequest(out.payload, out.pkt.length, &second));
    CHECK(memcmp(first.word, second.word, sizeof(first.word)) == 0);
    CHECK(out.pkt.request_id == request_id); /* it is the same question */
    CHECK(exchange(&satellite, &peers[0], NOW + 2u * RETRY_US));
    CHECK(SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    close_all(2);
}

static void test_the_next_time_is_that_of_the_first_that_is_due(void)
{
    SKY_SecurityAsk_t out;

    open(2);
    for (uint32_t i = 0; i < 2; ++i)
    {
        want_session(&satellite.security, NOW + i, peers[i].addr);
        CHECK(SKY_Security_NextAsk(&satellite.security, NOW + i, &out));
    }
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), NOW + RETRY_US);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW + RETRY_US, &out));
    CHECK_EQ(SKY_Security_NextDue(&satellite.security), NOW + RETRY_US + 1u);
    close_all(2);
}

/* A way that takes longer than the time between two handshakes: the answer comes after the next one has gone. */
static void test_a_late_answer_is_taken(void)
{
    SKY_SecurityAsk_t out;
    wire_t            there;
    wire_t            again;
    wire_t            back;
    wire_t            second;

    open(1);
    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(carry(&out.pkt, &out.key, &there));
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW + RETRY_US, &out));
    CHECK(carry(&out.pkt, &out.key, &again));
    CHECK(answer(&peers[0], NOW + RETRY_US, &there.pkt, &back));
    CHECK(answer(&peers[0], NOW + RETRY_US, &again.pkt, &second));
    CHECK_EQ(peers[0].security.associations.stats.repeated, 1);
    CHECK(!take(NOW + RETRY_US, &back, false));
    CHECK(SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    CHECK_EQ(send_to(&peers[0], NOW + RETRY_US, &there), 1);
    CHECK(!take(NOW + RETRY_US, &second, false)); /* the answer to the repeated one changes nothing */
    CHECK_EQ(entry_of(&peers[0])->session.sequence, 1);
    CHECK(answer_request(&peers[0], NOW + RETRY_US, &there.pkt, &back));
    CHECK(take(NOW + RETRY_US, &back, false));
    close_all(1);
}

static void test_an_answer_to_another_handshake_is_not_taken(void)
{
    SKY_SecurityAsk_t out;
    wire_t            there;
    wire_t            old;
    wire_t            back;

    open(1);
    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(carry(&out.pkt, &out.key, &there));
    CHECK(answer(&peers[0], NOW, &there.pkt, &old));
    SKY_Security_EndSessions(&satellite.security);
    CHECK(!take(NOW, &old, true)); /* nobody is asked */
    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(!take(NOW, &old, false)); /* nothing has gone yet */
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(carry(&out.pkt, &out.key, &there));
    CHECK(!take(NOW, &old, false)); /* its request id is of before */
    CHECK(answer(&peers[0], NOW, &there.pkt, &back));

    old.pkt.request_id = back.pkt.request_id; /* as if its request id came again: the word is another one */
    CHECK(!take(NOW, &old, true));
    SKY_Packet_t plain = back.pkt;

    plain.security = SKY_SUITE_NONE;
    plain.length   = 0;
    CHECK(carry(&plain, NULL, &old)); /* without a tag */
    CHECK(!take(NOW, &old, false));
    CHECK_EQ(entry_of(&peers[0])->session.state, SKY_SESSION_ASKING);
    back.bytes[SKY_RESPONSE_HEAD] ^= 1u; /* another salt */
    CHECK(!take(NOW, &back, true));
    back.bytes[SKY_RESPONSE_HEAD] ^= 1u;
    satellite.generations = 0; /* the key is gone */
    CHECK(!take(NOW, &back, true));
    satellite.generations = 3;
    CHECK_EQ(entry_of(&peers[0])->session.state, SKY_SESSION_ASKING);
    CHECK(!take(NOW, &back, false));
    CHECK(SKY_Security_IsFresh(&satellite.security, peers[0].addr));
    close_all(1);
}

/* Words and request ids cannot be guessed from those of before, and none comes again. */
static void test_no_word_comes_again(void)
{
    static uint8_t         words[64][SKY_WORD_BYTES];
    static uint64_t        ids[64];
    SKY_SecurityAsk_t      out;
    SKY_HandshakeRequest_t request;

    open(1);
    for (size_t i = 0; i < 64; ++i)
    {
        want_session(&satellite.security, NOW + i, peers[0].addr);
        CHECK(SKY_Security_NextAsk(&satellite.security, NOW + i, &out));
        CHECK(SKY_Handshake_DecodeRequest(out.payload, out.pkt.length, &request));
        (void)memcpy(words[i], request.word, SKY_WORD_BYTES);
        ids[i] = out.pkt.request_id;
        for (size_t k = 0; k < i; ++k)
        {
            CHECK(memcmp(words[k], words[i], SKY_WORD_BYTES) != 0);
            CHECK(ids[k] != ids[i]);
        }
        SKY_Security_EndSessions(&satellite.security);
    }
    close_all(1);
}

/* ---- the table ---- */

static void test_the_longest_unused_session_makes_room(void)
{
    wire_t wire;
    wire_t back;

    open(PEERS);
    for (uint32_t i = 0; i < SESSIONS; ++i)
    {
        begin(&peers[i], NOW + i);
    }
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 2u * SESSIONS);
    CHECK_EQ(send_to(&peers[0], NOW + 10u, &wire), 1); /* it is used; the second one is the oldest now */
    const uint32_t place = entry_of(&peers[1])->session.place_there;

    CHECK(satellite.rig.is_full[place]);
    CHECK_EQ(send_to(&peers[3], NOW + 11u, &wire), -1);
    CHECK(entry_of(&peers[1]) == NULL);
    CHECK(!satellite.rig.is_full[place] && !satellite.rig.is_full[place + 1u]);
    CHECK(entry_of(&peers[0]) != NULL && entry_of(&peers[2]) != NULL && entry_of(&peers[3]) != NULL);
    CHECK(exchange(&satellite, &peers[3], NOW + 12u));
    CHECK_EQ(send_to(&peers[3], NOW + 13u, &wire), 1);
    CHECK_EQ(entry_of(&peers[3])->session.place_there, place);
    CHECK(answer_request(&peers[3], NOW + 13u, &wire.pkt, &back));
    CHECK(take(NOW + 13u, &back, false));
    CHECK_EQ(send_to(&peers[4], NOW + 14u, &wire), -1);
    CHECK(entry_of(&peers[2]) == NULL);
    CHECK_EQ(send_to(&peers[1], NOW + 15u, &wire), -1); /* that of before has to begin anew */
    CHECK(entry_of(&peers[0]) == NULL);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 2);
    close_all(PEERS);
}

static void test_all_sessions_end_at_once(void)
{
    open(PEERS);
    for (uint32_t i = 0; i < SESSIONS; ++i)
    {
        begin(&peers[i], NOW);
    }
    SKY_Security_EndSessions(&satellite.security);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    for (uint32_t i = 0; i < SESSIONS; ++i)
    {
        CHECK(entry_of(&peers[i]) == NULL);
    }
    close_all(PEERS);
}

/* A free place is taken before anybody has to go. */
static void test_a_free_place_is_taken_first(void)
{
    wire_t wire;

    open(PEERS);
    for (uint32_t i = 0; i < SESSIONS; ++i)
    {
        begin(&peers[i], NOW - IDLE_US * (SESSIONS - i));
    }
    satellite.security.sessions[1].session.state = SKY_SESSION_NONE; /* the middle one ends, as nobody waits for it */
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW, &(SKY_SecurityAsk_t){.payload = {0}}));
    CHECK(entry_of(&peers[1]) == NULL);
    CHECK_EQ(send_to(&peers[3], NOW, &wire), -1);
    CHECK(entry_of(&peers[0]) != NULL && entry_of(&peers[2]) != NULL && entry_of(&peers[3]) != NULL);
    close_all(PEERS);
}

static void test_nobody_is_asked_for_ever(void)
{
    SKY_SecurityAsk_t out;
    unsigned          count = 0;
    uint64_t          now_us;

    open(1);
    want_session(&satellite.security, NOW, peers[0].addr);
    for (now_us = NOW; now_us != UINT64_MAX; now_us = SKY_Security_NextDue(&satellite.security))
    {
        count += SKY_Security_NextAsk(&satellite.security, now_us, &out) ? 1u : 0u;
        CHECK(now_us <= NOW + IDLE_US + RETRY_US);
    }
    CHECK_EQ(count, IDLE_US / RETRY_US + 1u);
    CHECK(entry_of(&peers[0]) == NULL);
    want_session(&satellite.security, NOW + 2u * IDLE_US, peers[0].addr);
    CHECK(exchange(&satellite, &peers[0], NOW + 2u * IDLE_US)); /* it is there again */
    close_all(1);
}

static void test_who_has_no_key_is_not_asked(void)
{
    SKY_SecurityAsk_t out;
    SKY_SecurityCfg_t cfg;
    wire_t            wire;
    uint8_t           entropy[SKY_SECURITY_ENTROPY_BYTES] = {1};

    open(1);
    open_satellite(&peers[1], 9, 1); /* not in the mission's table */
    CHECK_EQ(send_to(&peers[1], NOW, &wire), -1);
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(entry_of(&peers[1]) == NULL);
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    CHECK_EQ(send_to(&peers[1], NOW, &wire), -1); /* it does not keep others from being asked */
    want_session(&satellite.security, NOW, peers[0].addr);
    CHECK(exchange(&satellite, &peers[0], NOW));

    cfg          = a_config(&satellite);
    cfg.peer_key = NULL; /* no satellite is talked to */
    CHECK(SKY_Security_Init(&satellite.security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory), entropy));
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
    CHECK_EQ(send_to(&peers[0], NOW, &wire), -1);
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(entry_of(&peers[0]) == NULL);
    close_all(2);
}

/* Whoever is asked may have a library that can do more, and would grant what this one cannot do. */
static void test_what_the_library_cannot_do_is_not_asked_for(void)
{
    static const uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES] = {1};
    SKY_SecurityCfg_t    cfg;
    wire_t               there;

    for (uint8_t suite = SKY_SUITE_GMAC_HEADER; suite <= SKY_SUITE_BLAKE2B_PACKET; ++suite)
    {
        open(1);
        satellite.rig.crypto.suites = SKY_SUITES_BLAKE2B;
        cfg                         = a_config(&satellite);
        cfg.peer_suite              = suite;
        CHECK(SKY_Security_Init(&satellite.security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory), entropy));
        CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
        begin(&peers[0], NOW);
        CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
        CHECK_EQ(there.pkt.security, suite == SKY_SUITE_GMAC_HEADER || suite == SKY_SUITE_BLAKE2B_HEADER
                                         ? SKY_SUITE_BLAKE2B_HEADER
                                         : SKY_SUITE_BLAKE2B_PACKET);
        close_all(1);
    }
}

static void test_a_new_generation_is_asked_with_from_the_next_session_on(void)
{
    SKY_SecurityAsk_t      out;
    SKY_HandshakeRequest_t request;
    wire_t                 wire;

    open(1);
    begin(&peers[0], NOW);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0)); /* it is the same one */
    CHECK_EQ(send_to(&peers[0], NOW, &wire), 1);
    CHECK(SKY_Security_SetMaster(&satellite.security, 1, master_1));
    CHECK_EQ(send_to(&peers[0], NOW, &wire), 1); /* the older key is still valid */
    SKY_Security_EndSessions(&satellite.security);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    CHECK_EQ(send_to(&peers[0], NOW, &wire), -1);
    CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(SKY_Handshake_DecodeRequest(out.payload, out.pkt.length, &request));
    CHECK_EQ(SKY_Credential_Generation(&request.credential), 1);
    CHECK(exchange(&satellite, &peers[0], NOW + RETRY_US)); /* who has the keys of both answers */
    CHECK_EQ(send_to(&peers[0], NOW + RETRY_US, &wire), 1);
    close_all(1);
}

static void test_before_it_is_keyed_all_goes_without_a_tag(void)
{
    SKY_SecurityAsk_t out;
    SKY_TagKey_t      key;

    open_unkeyed(&satellite, 1, 1);
    open_unkeyed(&peers[0], 1, 2);
    SKY_Packet_t pkt = a_request(&satellite, &peers[0], SKY_OP_GET);

    CHECK_EQ(SKY_Security_Prepare(&satellite.security, NOW, &pkt, NULL, &key), 0);
    CHECK_EQ(pkt.security, SKY_SUITE_NONE);
    pkt.is_request = false;
    CHECK_EQ(SKY_Security_Prepare(&satellite.security, NOW, &pkt, NULL, &key), 0);
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    CHECK_EQ(satellite.security.counters.unsent, 0);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
    CHECK_EQ(SKY_Security_Prepare(&satellite.security, NOW, &pkt, NULL, &key),
             0); /* a word that is nobody's: `unauthenticated` */
    close_all(1);
}

static void test_numbers_end_before_they_repeat(void)
{
    wire_t             there;
    wire_t             back;
    SKY_Association_t *association;
    SKY_Packet_t       reply;
    SKY_TagKey_t       key;

    open(1);
    begin(&peers[0], NOW);
    satellite.security.counters.unsent              = 0;
    satellite.security.sessions[0].session.sequence = UINT64_MAX - 2u;
    CHECK_EQ(send_to(&peers[0], NOW, &there), 1);
    CHECK(there.pkt.sequence == UINT64_MAX - 1u);
    CHECK_EQ(send_to(&peers[0], NOW, &back), -1);
    CHECK_EQ(send_to(&peers[0], NOW, &back), -1);
    CHECK_EQ(satellite.security.counters.unsent, 2);

    CHECK_EQ(SKY_Security_Admit(&peers[0].security, NOW, &there.pkt, ENDPOINT, &association), SKY_ADMIT_OK);
    association->sequence = UINT64_MAX - 1u;
    SKY_Packet_Reply(&there.pkt, peers[0].addr, SKY_STATUS_OK, &reply);
    CHECK_EQ(SKY_Security_Prepare(&peers[0].security, NOW, &reply, association, &key), -1);
    CHECK_EQ(reply.security, SKY_SUITE_NONE);
    CHECK_EQ(peers[0].security.counters.unsent, 1);
    close_all(1);
}

int main(void)
{
    RUN(test_a_packet_waits_for_its_session);
    RUN(test_a_handshake_is_a_whole_packet);
    RUN(test_both_may_ask_each_other);
    RUN(test_handshakes_are_repeated_until_one_is_answered);
    RUN(test_the_next_time_is_that_of_the_first_that_is_due);
    RUN(test_a_late_answer_is_taken);
    RUN(test_an_answer_to_another_handshake_is_not_taken);
    RUN(test_no_word_comes_again);
    RUN(test_the_longest_unused_session_makes_room);
    RUN(test_all_sessions_end_at_once);
    RUN(test_a_free_place_is_taken_first);
    RUN(test_nobody_is_asked_for_ever);
    RUN(test_who_has_no_key_is_not_asked);
    RUN(test_what_the_library_cannot_do_is_not_asked_for);
    RUN(test_a_new_generation_is_asked_with_from_the_next_session_on);
    RUN(test_before_it_is_keyed_all_goes_without_a_tag);
    RUN(test_numbers_end_before_they_repeat);
    return CHECK_RESULT();
}
