/**
 * @file
 * Blocks with parity: as many satellites may be lost as hold parity of a row, and nothing is missed. What must hold of them is broken on
 * purpose, and the twin says so.
 */
#include "twin_rig.h"

static void rig_coded(Rig_t *rig, uint64_t seed, uint32_t servers, uint32_t parity)
{
    rig_init(rig, seed);
    rig->config.servers = servers;
    rig->config.parity  = parity;
    rig->config.uplink  = SKYT_UPLINK_DIRECT;
}

/* So many servers of the first window forget everything, and never come back. */
static void crash_some(Rig_t *rig, uint32_t count)
{
    static const uint32_t window[][2] = {{3, 10}, {2, 10}, {3, 9}, {4, 10}};

    CHECK(count <= sizeof(window) / sizeof(window[0]));
    for (uint32_t i = 0; i < count; ++i)
    {
        (void)rig_fault(rig, 30 + i, SKYT_FAULT_CRASH, node_at(window[i][0], window[i][1]), 0);
    }
}

static void test_nothing_is_missed_without_faults(void)
{
    static const uint32_t codes[][2] = {{12, 2}, {12, 1}, {10, 5}, {3, 2}, {2, 1}, {24, 4}};

    for (uint32_t i = 0; i < sizeof(codes) / sizeof(codes[0]); ++i)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_coded(&rig, i, codes[i][0], codes[i][1]);
        rig.config.slot_count = 1024; /* of three servers each has a chunk of each row */
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.puts_failed, 0);
        CHECK_EQ(counters.hits, GETS);
        CHECK_EQ(counters.blocks_checked, BLOCKS);
        CHECK_EQ(counters.blocks_misplaced, 0);
        CHECK(counters.migrated_chunks > 100);
    }
}

static void test_as_many_lost_as_hold_parity_are_borne(void)
{
    for (uint32_t seed = 1; seed <= 3; ++seed)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_coded(&rig, seed, 12, 2);
        rig.config.lazy_purge = 1;
        crash_some(&rig, 2);
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.crashes, 2);
        CHECK_EQ(counters.hits, GETS);
    }
}

static void test_one_more_is_not(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_coded(&rig, 1, 12, 2);
    crash_some(&rig, 3);
    rig_run_sound(&rig, &counters);
    CHECK(counters.hits < GETS);
    CHECK_EQ(counters.hits + counters.misses[SKYT_CAUSE_CRASHED] + counters.misses[SKYT_CAUSE_EXPIRED], GETS);
}

/* Without parity the same two satellites are missed. */
static void test_without_parity_none_is_borne(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_coded(&rig, 1, 12, 0);
    crash_some(&rig, 2);
    rig_run_sound(&rig, &counters);
    CHECK(counters.hits < GETS);
}

/* A put is done without satellites that are silent, and the rest is enough. */
static void test_a_put_leaves_out_the_silent(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_coded(&rig, 1, 12, 2);
    (void)rig_fault(&rig, 0, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 0, SKYT_FAULT_CRASH, node_at(2, 10), 0);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.puts_failed, 0);
    CHECK_EQ(counters.hits, GETS);
    CHECK_EQ(counters.blocks_checked, BLOCKS);
}

static void test_chunks_are_exact(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    check_only_broken(&rig, SKYT_BREAK_FLIP, SKYT_INVARIANT_EXACT, "a chunk is not what was put");
}

static void test_a_get_brings_what_can_be_decoded(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    crash_some(&rig, 1);
    check_only_broken(&rig, SKYT_BREAK_DENY, SKYT_INVARIANT_KEPT,
                      "a get missed a block although enough chunks of each row are at hand");
}

/* Return true if a violation of the run says this. */
static bool any_says(Rig_t *rig, SKYT_Break_t broken, const char *text)
{
    SKYT_Twin_t     *twin = rig_create(rig);
    SKYT_Violation_t violation;
    bool             found = false;

    SKYT_Break(twin, broken);
    (void)SKYT_Run(twin, START_US + (rig->fetch_s + 100u) * SECOND);
    for (uint32_t i = 0; SKYT_Violation(twin, i, &violation); ++i)
    {
        found = found || strstr(violation.text, text) != NULL;
    }
    SKYT_Destroy(twin);
    return found;
}

static void test_no_host_purges_what_can_be_decoded(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    rig.config.lazy_purge = 1;
    rig.rows              = 1; /* nothing is on its way, so that a host is sure */
    (void)rig_fault(&rig, 30, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 31, SKYT_FAULT_RESTART, node_at(3, 10), 0);
    CHECK(any_says(&rig, SKYT_BREAK_DENY, "a host purged the rest of a block that could be decoded"));
    CHECK(!any_says(&rig, SKYT_BREAK_NOTHING, ""));
}

/* Three satellites are lost while blocks are put, and come back empty, @p apart from all others or not. Stand-ins follow no schedule, or it
 * moves nothing, as the layout is hop. */
static void lose_three(Rig_t *rig, uint32_t variant, bool apart)
{
    rig_coded(rig, 1, 12, 2);
    rig->config.lazy_purge = 1;
    rig->config.ask_first  = variant / 2u; /* each get asks all servers what they hold, or none does */
    rig->config.scheduled  = variant % 2u == 0u ? SKYT_SCHEDULED_NOBODY : SKYT_SCHEDULED_ALL;
    rig->config.layout     = variant % 2u == 0u ? SKY_LAYOUT_ROTATION_HOP : SKY_LAYOUT_HOP;
    rig->rows              = 1;
    crash_some(rig, 3);
    for (uint32_t at = 0; at < 12u && apart; ++at)
    {
        rig_fault(rig, 30, SKYT_FAULT_CUT, rig->faults[at / 4u].node, 1)->link = at % 4u;
    }
    for (uint32_t lost = 0; lost < 3u; ++lost)
    {
        rig->faults[lost].time_us = START_US;
        (void)rig_fault(rig, 60 + lost, SKYT_FAULT_RESTART, rig->faults[lost].node, 0);
    }
}

/* Each chunk is kept with its home, and goes there. */
static void test_what_stand_ins_hold_goes_home(void)
{
    for (uint32_t i = 0; i < 4u; ++i)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        lose_three(&rig, i, false);
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.misses[SKYT_CAUSE_STRANDED], 0);
        CHECK_EQ(counters.hits, GETS);
        CHECK_EQ(counters.purges, 0);
        rig.fetch_s += 120; /* the end is long after the last fault */
        check_first(&rig, SKYT_BREAK_MISER, SKYT_INVARIANT_KEPT,
                    "in the end a stand-in keeps a chunk for a satellite that is there");
    }
}

/* Their links to other satellites stay cut, so that nothing comes home. Nobody looks for these shares at the stand-ins, but the rest of the
 * block stays. */
static void test_no_host_purges_what_stand_ins_hold(void)
{
    for (uint32_t i = 0; i < 4u; ++i)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        lose_three(&rig, i, true);
        rig.config.uplink = SKYT_UPLINK_DIRECT;
        rig_run_sound(&rig, &counters);
        CHECK(counters.misses[SKYT_CAUSE_STRANDED] > 0);
        CHECK_EQ(counters.purges, 0);
        check_only_broken(&rig, SKYT_BREAK_RUTHLESS, SKYT_INVARIANT_KEPT,
                          "a host purged the rest of a block that could be decoded");
        if (rig.config.ask_first == 0u)
        {
            CHECK(any_says(&rig, SKYT_BREAK_RUTHLESS, "by the word of a satellite that was not settled"));
        }
    }
}

static void test_a_block_counts_as_whole_only_if_it_can_be_decoded(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    rig.config.ask_first = 1;
    crash_some(&rig, 3);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        (void)rig_fault(&rig, 40 + i, SKYT_FAULT_RESTART, rig.faults[i].node, 0);
    }
    check_only_broken(&rig, SKYT_BREAK_BOAST, SKYT_INVARIANT_HELD, "too many chunks of a row are held nowhere");
}

static void test_a_purged_block_cannot_be_decoded(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    rig_ops(&rig);
    rig.ops[BLOCKS].kind  = SKYT_OP_PURGE;
    rig.ops[BLOCKS].block = 2;
    check_only_broken(&rig, SKYT_BREAK_CLING, SKYT_INVARIANT_HELD, "purged that can still be decoded");
}

/* A host that knows only the key asks as many servers as may have lost their shares, and one more. */
static void test_a_look_up_finds_what_can_be_had(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_coded(&rig, 1, 12, 2);
    rig.config.look_up = 1;
    crash_some(&rig, 2);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.hits, GETS);
}

/* That satellites are lost explains no look-up that misses: one of the servers that were asked has its share. */
static void test_a_look_up_that_denies_what_can_be_had_is_noticed(void)
{
    Rig_t rig;

    rig_coded(&rig, 1, 12, 2);
    rig.config.look_up = 1;
    (void)rig_fault(&rig, 5, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 6, SKYT_FAULT_CRASH, node_at(2, 10), 0);
    CHECK(any_says(&rig, SKYT_BREAK_DISOWN, "a look-up missed a block that is whole"));
}

/* Two satellites have come back empty. Others rebuild what they had. */
static void test_what_was_lost_is_repaired(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_coded(&rig, 1, 12, 2);
    rig.config.scrub_ms = 10000;
    rig.rows            = 1;
    crash_some(&rig, 2);
    for (uint32_t i = 0; i < 2u; ++i)
    {
        (void)rig_fault(&rig, 60 + i, SKYT_FAULT_RESTART, rig.faults[i].node, 0);
    }
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.hits, GETS);
    check_only_broken(&rig, SKYT_BREAK_NEGLECT, SKYT_INVARIANT_REPAIRED, "a lost chunk is not back on this satellite");
}

static void test_numbers_that_contradict_each_other(void)
{
    static const uint32_t wrong[][2] = {{12, 12}, {12, 13}, {1, 1}};
    char                  why[SKYT_TEXT_BYTES];
    Rig_t                 rig;

    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
    {
        rig_coded(&rig, 1, wrong[i][0], wrong[i][1]);
        CHECK(SKYT_Create(&rig.config, why) == NULL);
        CHECK(strstr(why, "parity is ") == why);
    }
}

int main(void)
{
    RUN(test_nothing_is_missed_without_faults);
    RUN(test_as_many_lost_as_hold_parity_are_borne);
    RUN(test_one_more_is_not);
    RUN(test_without_parity_none_is_borne);
    RUN(test_a_put_leaves_out_the_silent);
    RUN(test_chunks_are_exact);
    RUN(test_a_get_brings_what_can_be_decoded);
    RUN(test_no_host_purges_what_can_be_decoded);
    RUN(test_what_stand_ins_hold_goes_home);
    RUN(test_no_host_purges_what_stand_ins_hold);
    RUN(test_a_block_counts_as_whole_only_if_it_can_be_decoded);
    RUN(test_a_purged_block_cannot_be_decoded);
    RUN(test_a_look_up_finds_what_can_be_had);
    RUN(test_a_look_up_that_denies_what_can_be_had_is_noticed);
    RUN(test_what_was_lost_is_repaired);
    RUN(test_numbers_that_contradict_each_other);
    return CHECK_RESULT();
}
