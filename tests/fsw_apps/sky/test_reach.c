/* Who is lost: only who is silent while another answers, and never all; and how long nothing is asked in a silent sky. */
#include "sky_reach.h"

#include <string.h>

#include "check.h"

#define PLANES 4u
#define SLOTS  6u
#define ALL    (PLANES * SLOTS)
#define S      UINT64_C(1000000)

static const SKY_ReachCfg_t cfg = {30u * S, 5u * S, 1u * S, 64u * S};

static SKY_Torus_t          torus;
static SKY_Reach_t          reach;
static SKY_ReachSatellite_t records[ALL];
static SKY_Addr_t           lost[ALL], found[ALL];
static SKY_ReachAsk_t       asks[2u * ALL + SKY_HOST_OTHERS], others[ALL];
static bool                 is_down[ALL];

static SKY_Addr_t addr(uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t satellite = {(uint16_t)plane, (uint16_t)slot};

    return satellite;
}

static void begin_with(const SKY_ReachCfg_t *times)
{
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    memset(records, 0xFF, sizeof(records)); /* of somebody before */
    memset(is_down, 0, sizeof(is_down));
    SKY_Reach_Init(&reach, times, &torus, records, lost);
}

static void begin(void)
{
    begin_with(&cfg);
}

static uint32_t index_of(SKY_Addr_t satellite)
{
    return (satellite.plane - 1u) * SLOTS + satellite.slot - 1u;
}

static void ask(uint32_t at, SKY_Addr_t satellite, SKY_Addr_t entry)
{
    asks[at].satellite = satellite;
    asks[at].entry     = entry;
    asks[at].answered  = true; /* of a round before */
}

/* All satellites, nearest first or not, are there for comparison. */
static uint32_t all_others(void)
{
    for (uint32_t i = 0; i < ALL; ++i)
    {
        others[i].satellite = addr(i / SLOTS + 1u, i % SLOTS + 1u);
        others[i].entry     = others[i].satellite;
        others[i].answered  = false;
    }
    return ALL;
}

/* Send the questions: whoever is up answers. */
static SKY_ReachFound_t look(uint64_t now_us, uint32_t round, uint32_t about, uint32_t other_count)
{
    const uint32_t count = SKY_Reach_Around(&reach, asks, about, others, other_count);

    for (uint32_t i = 0; i < count; ++i)
    {
        asks[i].answered = !is_down[index_of(asks[i].satellite)] && !is_down[index_of(asks[i].entry)];
    }
    return SKY_Reach_Found(&reach, now_us, round, asks, about, count);
}

static bool is_lost(SKY_Addr_t satellite)
{
    const SKY_Satellites_t list = {reach.lost, reach.lost_count};

    return SKY_Satellites_Has(&list, satellite);
}

/* A direct look at satellites (2, 2), (2, 3), (2, 4). */
static SKY_ReachFound_t look_at_three(uint64_t now_us, uint32_t round)
{
    for (uint32_t i = 0; i < 3u; ++i)
    {
        ask(i, addr(2, 2u + i), addr(2, 2u + i));
    }
    return look(now_us, round, 3, all_others());
}

/* ---- whom to ask ----------------------------------------------------------------------------------------------------- */

static void test_a_look_asks_the_ways_in_and_a_few_others(void)
{
    uint32_t count;

    begin();
    ask(0, addr(2, 2), addr(1, 1));
    ask(1, addr(2, 3), addr(1, 1));
    ask(2, addr(2, 4), addr(2, 2)); /* that is asked anyway */
    (void)all_others();
    count = SKY_Reach_Around(&reach, asks, 3, others, ALL);
    CHECK_EQ(count, 4u + SKY_HOST_OTHERS);
    CHECK(SKY_Addr_Equal(asks[3].satellite, addr(1, 1)) && SKY_Addr_Equal(asks[3].entry, addr(1, 1)) && !asks[3].answered);
    for (uint32_t i = 0; i < SKY_HOST_OTHERS; ++i) /* the first that are not asked yet */
    {
        CHECK(SKY_Addr_Equal(asks[4u + i].satellite, addr(1, 2u + i)));
    }
}

static void test_lost_ones_are_not_asked_for_comparison(void)
{
    begin();
    is_down[index_of(addr(2, 2))] = true;
    CHECK_EQ(look_at_three(1, 1), SKY_REACH_AGAIN);
    ask(0, addr(3, 3), addr(3, 3));
    others[0].satellite = addr(2, 2);
    others[1].satellite = addr(3, 3);
    CHECK_EQ(SKY_Reach_Around(&reach, asks, 1, others, 2), 1);
    CHECK_EQ(SKY_Reach_Around(&reach, asks, 1, others, 0), 1);
}

/* ---- who is lost ----------------------------------------------------------------------------------------------------- */

static void test_nobody_is_lost_while_all_answer(void)
{
    begin();
    CHECK_EQ(SKY_Reach_May(&reach, 5), SKY_REACH_OPEN);
    CHECK_EQ(look_at_three(5, 1), SKY_REACH_FOUND);
    CHECK_EQ(reach.lost_count, 0);
    CHECK_EQ(reach.losses, 0);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 100u * S, true, found), 0);
}

static void test_who_is_silent_while_others_answer_is_lost(void)
{
    begin();
    is_down[index_of(addr(2, 4))] = true;
    is_down[index_of(addr(2, 3))] = true;
    is_down[index_of(addr(1, 2))] = true; /* one of the others: no server's place depends on it */
    CHECK_EQ(look_at_three(5, 1), SKY_REACH_AGAIN);
    CHECK_EQ(reach.lost_count, 2);
    CHECK(SKY_Addr_Equal(reach.lost[0], addr(2, 3)) && SKY_Addr_Equal(reach.lost[1], addr(2, 4)));
    CHECK_EQ(look_at_three(6, 2), SKY_REACH_FOUND); /* nothing new */
    CHECK_EQ(reach.losses, 2);
    CHECK_EQ(SKY_Reach_May(&reach, 7), SKY_REACH_OPEN);
}

static void test_lost_ones_are_in_order(void)
{
    static const uint16_t which[][2] = {{3, 3}, {1, 5}, {3, 1}, {4, 6}, {2, 2}, {1, 1}};
    const uint32_t        count      = sizeof(which) / sizeof(which[0]);

    begin();
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_Addr_t one = addr(which[i][0], which[i][1]);

        is_down[index_of(one)] = true;
        ask(0, one, one);
        CHECK_EQ(look(i, 1, 1, all_others()), SKY_REACH_AGAIN);
        CHECK(is_lost(one));
        for (uint32_t k = 1; k < reach.lost_count; ++k)
        {
            CHECK(index_of(reach.lost[k - 1u]) < index_of(reach.lost[k]));
        }
    }
    SKY_Reach_Heard(&reach, addr(3, 1));
    SKY_Reach_Heard(&reach, addr(3, 2)); /* was not lost */
    CHECK_EQ(reach.lost_count, count - 1u);
    CHECK(!is_lost(addr(3, 1)) && is_lost(addr(3, 3)) && is_lost(addr(2, 2)));
    CHECK_EQ(reach.losses, count); /* goes up only */
}

static void test_behind_a_silent_way_in_nothing_is_known(void)
{
    begin();
    is_down[index_of(addr(1, 1))] = true;
    is_down[index_of(addr(3, 3))] = true;
    ask(0, addr(2, 2), addr(1, 1));
    ask(1, addr(3, 3), addr(3, 3));
    ask(2, addr(2, 4), addr(4, 4));
    CHECK_EQ(look(1, 1, 3, all_others()), SKY_REACH_AGAIN);
    CHECK(is_lost(addr(1, 1)) && !is_lost(addr(2, 2)));
    is_down[index_of(addr(2, 4))] = true; /* now the ways in answer */
    ask(0, addr(2, 2), addr(4, 4));
    ask(1, addr(2, 4), addr(4, 4));
    CHECK_EQ(look(2, 2, 2, all_others()), SKY_REACH_AGAIN);
    CHECK(is_lost(addr(2, 4)) && !is_lost(addr(4, 4)) && !is_lost(addr(2, 2)));
}

static void test_rounds_are_bounded(void)
{
    begin();
    for (uint32_t round = 1; round <= SKY_HOST_LOOKS; ++round)
    {
        const SKY_Addr_t one = addr((round - 1u) / SLOTS + 1u, (round - 1u) % SLOTS + 1u);

        is_down[index_of(one)] = true;
        ask(0, one, one);
        CHECK_EQ(look(round, round, 1, all_others()), round < SKY_HOST_LOOKS ? SKY_REACH_AGAIN : SKY_REACH_FOUND);
    }
    CHECK_EQ(reach.losses, SKY_HOST_LOOKS);
}

static void test_who_answers_is_not_lost(void)
{
    begin();
    is_down[index_of(addr(2, 2))] = true;
    CHECK_EQ(look_at_three(1, 1), SKY_REACH_AGAIN);
    is_down[index_of(addr(2, 2))] = false;
    CHECK_EQ(look_at_three(2, 1), SKY_REACH_FOUND);
    CHECK_EQ(reach.lost_count, 0);
}

static void test_never_are_all_lost(void)
{
    begin();
    for (uint32_t last = 0; last < ALL; ++last) /* each time another one is up, and all are asked */
    {
        for (uint32_t i = 0; i < ALL; ++i)
        {
            is_down[i] = i != last;
            ask(i, addr(i / SLOTS + 1u, i % SLOTS + 1u), addr(i / SLOTS + 1u, i % SLOTS + 1u));
        }
        (void)look(last, 1, ALL, 0);
        CHECK_EQ(reach.lost_count, ALL - 1u);
        CHECK(!is_lost(addr(last / SLOTS + 1u, last % SLOTS + 1u)));
    }
}

/* ---- is it back? ----------------------------------------------------------------------------------------------------- */

static void lose_one(uint64_t now_us)
{
    is_down[index_of(addr(2, 2))] = true;
    CHECK_EQ(look_at_three(now_us, 1), SKY_REACH_AGAIN);
}

static void test_a_lost_satellite_is_asked_again_after_a_while(void)
{
    begin();
    lose_one(7);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 6u + cfg.lost_us, false, found), 0);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 7u + cfg.lost_us, false, found), 1);
    CHECK(SKY_Addr_Equal(found[0], addr(2, 2)));
    CHECK_EQ(SKY_Reach_AskLost(&reach, 7u + cfg.lost_us, false, found), 0); /* by another caller */
    CHECK_EQ(SKY_Reach_AskLost(&reach, 7u + 2u * cfg.lost_us, false, found), 1);
    SKY_Reach_Heard(&reach, addr(2, 2));
    CHECK_EQ(SKY_Reach_AskLost(&reach, 1000u * S, false, found), 0);
}

static void test_a_doubt_asks_sooner_and_then_ever_later(void)
{
    static const uint32_t when_s[] = {5, 15, 35, 65, 95};
    uint32_t              asked    = 0;

    begin();
    for (uint32_t again = 0; again < 2u; ++again) /* once it was back it begins anew */
    {
        const uint64_t from_us = again * 1000u * S;

        asked = 0;
        lose_one(from_us);
        for (uint32_t s = 1; s < 100u; ++s)
        {
            if (SKY_Reach_AskLost(&reach, from_us + s * S, true, found) > 0u)
            {
                CHECK(asked < 5u && s == when_s[asked]);
                ++asked;
            }
        }
        CHECK_EQ(asked, 5);
        SKY_Reach_Heard(&reach, addr(2, 2));
    }
}

static void test_a_loss_seen_again_is_not_asked_about_sooner(void)
{
    begin();
    lose_one(0);
    CHECK_EQ(look_at_three(20u * S, 1), SKY_REACH_FOUND);
    CHECK_EQ(reach.losses, 1);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 49u * S, false, found), 0);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 50u * S, false, found), 1);
}

/* ---- silence --------------------------------------------------------------------------------------------------------- */

static void test_when_nobody_answers_nobody_is_lost(void)
{
    begin();
    memset(is_down, 1, sizeof(is_down));
    CHECK_EQ(look_at_three(10u * S, 1), SKY_REACH_NOBODY);
    CHECK_EQ(reach.lost_count, 0);
    CHECK_EQ(reach.pause_us, cfg.pause_first_us);
    CHECK_EQ(SKY_Reach_May(&reach, 11u * S - 1u), SKY_REACH_SILENT);
    CHECK_EQ(SKY_Reach_May(&reach, 11u * S), SKY_REACH_LOOK);
    CHECK_EQ(SKY_Reach_May(&reach, 11u * S), SKY_REACH_SILENT); /* one caller is enough */
    memset(is_down, 0, sizeof(is_down));
    CHECK_EQ(look_at_three(11u * S, 1), SKY_REACH_FOUND);
    CHECK_EQ(SKY_Reach_May(&reach, 11u * S), SKY_REACH_OPEN);
}

static void test_a_silent_sky_is_asked_ever_more_rarely(void)
{
    uint64_t now_us = 0;

    begin();
    memset(is_down, 1, sizeof(is_down));
    for (uint32_t i = 0; i < 9u; ++i)
    {
        const uint64_t pause_us = i < 6u ? S << i : 64u * S;

        CHECK_EQ(look_at_three(now_us, 1), SKY_REACH_NOBODY);
        CHECK_EQ(reach.pause_us, pause_us);
        CHECK_EQ(SKY_Reach_May(&reach, now_us + pause_us - 1u), SKY_REACH_SILENT);
        now_us += pause_us;
        CHECK_EQ(SKY_Reach_May(&reach, now_us), SKY_REACH_LOOK);
    }
    SKY_Reach_Heard(&reach, addr(1, 1)); /* somebody else asked */
    CHECK_EQ(SKY_Reach_May(&reach, now_us), SKY_REACH_OPEN);
    CHECK_EQ(look_at_three(now_us, 1), SKY_REACH_NOBODY); /* and it begins anew */
    CHECK_EQ(reach.pause_us, cfg.pause_first_us);
}

static void test_a_first_pause_may_be_longer_than_those_after_it(void)
{
    const SKY_ReachCfg_t patient = {0, 0, 3600u * S, 64u * S};

    begin_with(&patient);
    memset(is_down, 1, sizeof(is_down));
    CHECK_EQ(look_at_three(0, 1), SKY_REACH_NOBODY);
    CHECK_EQ(reach.pause_us, 3600u * S);
    CHECK_EQ(look_at_three(0, 1), SKY_REACH_NOBODY);
    CHECK_EQ(reach.pause_us, 64u * S);
    memset(is_down, 0, sizeof(is_down));
    lose_one(1);
    CHECK_EQ(SKY_Reach_AskLost(&reach, 1, true, found), 1); /* times of 0 are at once */
    CHECK_EQ(SKY_Reach_AskLost(&reach, 1, false, found), 1);
}

int main(void)
{
    RUN(test_a_look_asks_the_ways_in_and_a_few_others);
    RUN(test_lost_ones_are_not_asked_for_comparison);
    RUN(test_nobody_is_lost_while_all_answer);
    RUN(test_who_is_silent_while_others_answer_is_lost);
    RUN(test_lost_ones_are_in_order);
    RUN(test_behind_a_silent_way_in_nothing_is_known);
    RUN(test_rounds_are_bounded);
    RUN(test_who_answers_is_not_lost);
    RUN(test_never_are_all_lost);
    RUN(test_a_lost_satellite_is_asked_again_after_a_while);
    RUN(test_a_doubt_asks_sooner_and_then_ever_later);
    RUN(test_a_loss_seen_again_is_not_asked_about_sooner);
    RUN(test_when_nobody_answers_nobody_is_lost);
    RUN(test_a_silent_sky_is_asked_ever_more_rarely);
    RUN(test_a_first_pause_may_be_longer_than_those_after_it);
    return CHECK_RESULT();
}
