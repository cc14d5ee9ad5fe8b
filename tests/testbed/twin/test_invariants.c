/**
 * @file
 * A check that never fails proves nothing: each invariant is broken on purpose, and the twin says so.
 */
#include "twin_rig.h"

static void check_broken(SKYT_Break_t broken, SKYT_Invariant_t invariant)
{
    SKYT_Violation_t first;
    SKYT_Counters_t  counters;
    SKYT_Twin_t     *twin;
    Rig_t            rig;

    rig_init(&rig, 3);
    rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 5000;
    twin                                                              = rig_create(&rig);
    SKYT_Break(twin, broken);
    SKYT_Run(twin, START_US + 460 * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK(counters.violations[invariant] > 0);
    CHECK(SKYT_Violation(twin, 0, &first));
    CHECK_EQ(first.invariant, invariant);
    CHECK(first.text[0] != '\0');
    CHECK(first.time_us > START_US);
    SKYT_Destroy(twin);
}

static void test_damage_that_no_checksum_sees(void)
{
    check_broken(SKYT_BREAK_FLIP, SKYT_INVARIANT_EXACT);
}

static void test_a_chunk_of_another_tenant(void)
{
    check_broken(SKYT_BREAK_SWAP, SKYT_INVARIANT_FOREIGN);
}

static void test_a_chunk_lost_in_a_handover(void)
{
    check_broken(SKYT_BREAK_FORGET, SKYT_INVARIANT_KEPT);
}

static void test_a_store_over_its_limit(void)
{
    check_broken(SKYT_BREAK_OVERFULL, SKYT_INVARIANT_LIMIT);
}

static void test_an_operation_that_does_not_end(void)
{
    check_broken(SKYT_BREAK_DEAF, SKYT_INVARIANT_DEADLINE);
}

static void test_packets_that_are_not_given_back(void)
{
    check_broken(SKYT_BREAK_LEAK, SKYT_INVARIANT_PACKETS);
}

/* The window's satellites are asked, one of them is dead, and the others know of no links but their own: packets circle. */
static void test_packets_that_circle(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig_dead_satellite(&rig, 0);
    rig_run(&rig, SKYT_BREAK_ROUTE, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_ROUTE] > 100);
}

static void test_more_packets_than_there_may_be(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.packets_max = 10;
    rig_run(&rig, SKYT_BREAK_LEAK, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_PACKETS] > 1);
    CHECK_EQ(counters.packets_on_way_most, 10);
}

/* Without a limit of violations, so that only the livelock stops it. */
static void check_livelock(SKYT_Break_t broken, const char *kind)
{
    SKYT_Violation_t found;
    SKYT_Counters_t  counters;
    SKYT_Twin_t     *twin;
    Rig_t            rig;
    uint32_t         last = 0;

    rig_init(&rig, 3);
    rig.config.livelock_steps = 100000;
    twin                      = rig_create(&rig);
    SKYT_Break(twin, broken);
    CHECK(!SKYT_Run(twin, START_US + 460 * SECOND));
    CHECK(!SKYT_Run(twin, START_US + 461 * SECOND)); /* for good */
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(counters.stopped, SKYT_STOP_LIVELOCK);
    CHECK_EQ(counters.violations[SKYT_INVARIANT_LIVELOCK], 1);
    CHECK(counters.now_us < START_US + 120 * SECOND);
    while (SKYT_Violation(twin, last, &found))
    {
        ++last;
    }
    CHECK_EQ(found.invariant, SKYT_INVARIANT_LIVELOCK); /* always kept, as the last */
    CHECK(strstr(found.text, kind) != NULL);
    CHECK(found.op != SKYT_NONE || broken != SKYT_BREAK_SPIN); /* the answers may be to other satellites */
    SKYT_Destroy(twin);
}

/* Nothing is sent while it goes round: there is an operation, and no kind of packet. */
static void test_a_host_that_is_always_due(void)
{
    check_livelock(SKYT_BREAK_SPIN, "no kind");
}

static void test_an_answer_without_end(void)
{
    check_livelock(SKYT_BREAK_BABBLE, "responses of HAS");
}

static void test_a_run_stops_at_the_first_violations(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.violations_max = 3;
    rig_run(&rig, SKYT_BREAK_FLIP, &counters);
    CHECK_EQ(violations_of(&counters), 3);
    CHECK_EQ(counters.stopped, SKYT_STOP_VIOLATIONS);
    CHECK(counters.now_us < START_US + 60 * SECOND);
}

/* Gone in the end, although nobody asked for it. */
static void test_a_chunk_that_is_missed_by_nobody(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.ops[0]   = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000};
    rig.op_count = 1;
    rig_run(&rig, SKYT_BREAK_FORGET, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_KEPT] > 0);
    CHECK_EQ(counters.gets, 0);
}

int main(void)
{
    RUN(test_damage_that_no_checksum_sees);
    RUN(test_a_chunk_of_another_tenant);
    RUN(test_a_chunk_lost_in_a_handover);
    RUN(test_a_store_over_its_limit);
    RUN(test_an_operation_that_does_not_end);
    RUN(test_packets_that_are_not_given_back);
    RUN(test_packets_that_circle);
    RUN(test_a_host_that_is_always_due);
    RUN(test_an_answer_without_end);
    RUN(test_a_run_stops_at_the_first_violations);
    RUN(test_more_packets_than_there_may_be);
    RUN(test_a_chunk_that_is_missed_by_nobody);
    return CHECK_RESULT();
}
