/**
 * @file
 * Hosts and satellites that do not agree about keys: blocks and questions end at once, and nothing goes without a tag that needs one.
 */
#include "open_rig.h"

/* Check that blocks and questions to satellite @p i through @p entry end at once, with a status. */
static void check_ended(uint32_t i, uint32_t entry, SKY_Status_t status)
{
    static uint8_t        data[60 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(i, entry)};
    const uint64_t        began_us = net.now_us;
    SKY_HostQuestion_t    one      = ping(i, entry);
    SKY_HostBlock_t       put, get;

    block_make(&put, SKY_HOST_PUT, 1, 60, places, 1, data);
    block_make(&get, SKY_HOST_GET, 2, 60, places, 1, data);
    block_begin(&put);
    block_begin(&get);
    ask(&one);
    net_run_all();
    CHECK_EQ(put.status, status);
    CHECK_EQ(get.status, status);
    CHECK_EQ(get.failed_plane, addr_of(i).plane);
    check_answered(&one, status);
    /* A word without a tag is believed when nothing better has come in the time of an answer. */
    CHECK(net.now_us - began_us < 4u * RTT_US + (status == SKY_STATUS_UNAUTHENTICATED ? 2u * SKY_HOST_ASK_INITIAL_US : 0u));
}

static void check_refused(uint32_t i, uint32_t entry)
{
    check_ended(i, entry, SKY_STATUS_UNAUTHENTICATED);
}

/* What waits for another satellite goes on waiting. */
static void test_others_wait_on(void)
{
    SKY_HostQuestion_t one = ping(0, 0), other = ping(3, 3);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.sats[0].master = 7;
    sat_boot(0, MODE_KEYED);
    net.sats[3].is_deaf = true;
    ask(&other);
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(other.status, SKY_STATUS_EXPIRED);
}

static void test_a_satellite_that_refuses_the_keyring(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.sats[0].master = 10;
    sat_boot(0, MODE_KEYED);
    net.sats[4].master = 10;
    sat_boot(4, MODE_KEYED);
    check_refused(0, 0);
    net_wait(SECOND_US);
    check_refused(1, 0); /* behind it */
    check_refused(4, 3); /* it, behind another */
    CHECK_EQ(net.puts[0] + net.puts[1] + net.puts[4], 0);
    ask_one(5, 3, SKY_STATUS_OK);
    ask_one(3, 3, SKY_STATUS_OK);
    CHECK_EQ(net.openings[3], 2); /* a handshake, and the way through it */
    net.sats[0].master = 9;       /* the keyring is right again */
    sat_boot(0, MODE_KEYED);
    net_wait(SECOND_US);
    ask_one(1, 0, SKY_STATUS_OK);
}

/* What goes through the same entry satellite to others is not touched by one that refuses. */
static void test_others_go_on_when_one_refuses(void)
{
    SKY_HostQuestion_t one = ping(4, 3), other = ping(5, 3);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.sats[4].master = 10;
    sat_boot(4, MODE_KEYED);
    ask(&one);
    ask(&other);
    net_run_all();
    check_answered(&one, SKY_STATUS_UNAUTHENTICATED);
    check_answered(&other, SKY_STATUS_OK);
    CHECK(SKY_Addr_Equal(one.answer.src, addr_of(4)));
    CHECK_EQ(one.answer.op, SKY_OP_PING);
}

static void test_no_key_for_a_satellite(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.no_key_for = 1u + 1u;
    check_refused(1, 0);
    CHECK_EQ(net.openings[1], 0);
    net_wait(SECOND_US);
    net.no_key_for = 1u + 0u; /* the gate has its session, and lives on */
    ask_one(2, 0, SKY_STATUS_OK);
    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.no_key_for = 1u + 0u;
    check_refused(2, 0);
    CHECK_EQ(net.openings[0] + net.openings[2], 0);
}

/* With a word that can be guessed there is no handshake. */
static void test_no_random_bytes(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.no_random = true;
    check_ended(0, 0, SKY_STATUS_NO_RANDOM);
    check_ended(1, 0, SKY_STATUS_NO_RANDOM);
    CHECK_EQ(net.openings[0] + net.openings[1], 0);
    CHECK(net.host.counters.no_random >= 2u);
    const uint64_t failed = net.host.counters.no_random;

    net.no_random = false; /* they are back */
    ask_one(0, 0, SKY_STATUS_OK);
    CHECK_EQ(net.host.counters.no_random, failed);
    net.no_random = true;
    ask_one(0, 0, SKY_STATUS_OK); /* an association that is there goes on */
    check_ended(1, 0, SKY_STATUS_NO_RANDOM);
    CHECK_EQ(net.openings[1], 0);
    net.no_random = false;
    ask_one(1, 0, SKY_STATUS_OK);
}

/* A satellite that has begun anew is asked again once there are random bytes. Until then the association of before is not given up: who
 * said that it has ended may be a stranger. */
static void test_no_random_bytes_for_another_association(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    sat_boot(0, MODE_KEYED);
    net.no_random   = true;
    one.deadline_ms = 500;
    ask(&one);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(net.openings[0], 1);
    CHECK(net.host.counters.no_random > 0u);
    net.no_random = false;
    net_wait(SECOND_US);
    ask_one(0, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 2);
}

/* Ids tell answers apart; without a keyring nothing else needs chance. */
static void test_numbers_without_random_bytes_differ(void)
{
    SKY_HostQuestion_t one = ping(0, 0), other = ping(0, 0);

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    net.no_random = true;
    ask(&one);
    ask(&other);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    check_answered(&other, SKY_STATUS_OK);
    CHECK(one.request_id >> 33 != other.request_id >> 33);
    CHECK_EQ(net.host.counters.no_random, 0);
}

/* The keyring lost a key while a handshake was on its way; or the library takes no key. */
static void test_a_handshake_that_cannot_be_taken(void)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t one = ping(0, 0);

        net_open(MODE_KEYED, MODE_KEYED, usual);
        one.deadline_ms = 100;
        ask(&one);
        net_run(net.now_us + 1000);
        CHECK_EQ(net.openings[0], 1);
        net.no_key_for   = i == 0 ? 1 : 0;
        net.crypto.fault = i == 0 ? FAULT_NONE : FAULT_LOADS_NOTHING;
        net_run_all();
        CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
        CHECK_EQ(net.host.counters.untrusted, 1);
        CHECK_EQ(net.requests[0], 0);
        net.no_key_for   = 0;
        net.crypto.fault = FAULT_NONE;
        net_wait(SECOND_US);
        ask_one(0, 0, SKY_STATUS_OK);
    }
}

static void test_a_host_and_a_sky_that_do_not_agree(void)
{
    net_open(MODE_COOKIE, MODE_KEYED, usual);
    check_refused(0, 0);
    check_refused(1, 2);
    net_open(MODE_KEYED, MODE_COOKIE, usual); /* it never goes on without tags: host_send */
    check_refused(0, 0);
    check_refused(1, 2);
    CHECK_EQ(net.puts[0] + net.puts[1], 0);
    net_open(MODE_KEYED, MODE_OFF, usual);
    check_refused(0, 0);
    check_refused(1, 2);
    CHECK_EQ(net.puts[0] + net.puts[1], 0);
    net_open(MODE_COOKIE, MODE_OFF, usual); /* who asks for nothing gets nothing */
    ask_one(0, 0, SKY_STATUS_OK);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 1);
}

/* A satellite that begins anew in another mode. */
static void test_a_satellite_changes_its_mind(void)
{
    static const sky_mode_t others[] = {MODE_COOKIE, MODE_OFF};

    for (uint32_t i = 0; i < 4; ++i)
    {
        net_open(MODE_KEYED, MODE_KEYED, usual);
        ask_one(0, 0, SKY_STATUS_OK);
        ask_one(1, 0, SKY_STATUS_OK);
        net_wait(i < 2 ? SECOND_US : SKY_COOKIE_PERIOD_US + SECOND_US); /* a request finds it, or a renewal */
        sat_boot(0, others[i % 2u]);
        SKY_HostQuestion_t one = ping(0, 0);
        ask(&one);
        net_run_all();
        check_answered(&one, SKY_STATUS_UNAUTHENTICATED);
        check_refused(0, 0);
        sat_boot(0, MODE_KEYED);
        net_wait(SECOND_US);
        ask_one(0, 0, SKY_STATUS_OK);
        ask_one(1, 0, SKY_STATUS_OK);
    }
    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    sat_boot(0, MODE_KEYED);
    check_refused(1, 0);
    check_refused(0, 0);
    sat_boot(0, MODE_COOKIE);
    net_wait(SECOND_US);
    ask_one(1, 0, SKY_STATUS_OK);
    /* A renewal finds another secret. */
    net_wait(SKY_HOST_COOKIE_FRESH_US + SECOND_US);
    sat_boot(0, MODE_COOKIE);
    ask_one(1, 0, SKY_STATUS_OK);
    net_wait(SKY_COOKIE_PERIOD_US);
    sat_boot(0, MODE_COOKIE);
    ask_one(1, 0, SKY_STATUS_OK);
}

int main(void)
{
    RUN(test_a_satellite_that_refuses_the_keyring);
    RUN(test_others_wait_on);
    RUN(test_others_go_on_when_one_refuses);
    RUN(test_no_key_for_a_satellite);
    RUN(test_no_random_bytes);
    RUN(test_no_random_bytes_for_another_association);
    RUN(test_numbers_without_random_bytes_differ);
    RUN(test_a_handshake_that_cannot_be_taken);
    RUN(test_a_host_and_a_sky_that_do_not_agree);
    RUN(test_a_satellite_changes_its_mind);
    net_close();
    return CHECK_RESULT();
}
