/**
 * @file
 * Each kind of fault alone: it shows in the counters, and no invariant is violated.
 */
#include "twin_rig.h"

static void run(Rig_t *rig, SKYT_Counters_t *counters)
{
    rig_run_sound(rig, counters);
    CHECK_EQ(counters->gets, GETS);
    CHECK(counters->hits > GETS / 8u);
}

static SKYT_Model_t *on_all_links(Rig_t *rig, uint64_t seed)
{
    rig_init(rig, seed);
    return &rig_fault(rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model;
}

static void test_loss(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    on_all_links(&rig, 1)->loss_ppm = 20000;
    run(&rig, &counters);
    CHECK(counters.lost > 100);
    CHECK_EQ(counters.hits, GETS);
}

static void test_bursts_of_loss(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;
    SKYT_Model_t   *model = on_all_links(&rig, 2);

    model->burst_enter_ppm = 2000;
    model->burst_leave_ppm = 100000;
    model->burst_loss_ppm  = 900000;
    run(&rig, &counters);
    CHECK(counters.lost_burst > 100);
    CHECK_EQ(counters.lost, 0);
}

static void test_jitter_reorders(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    on_all_links(&rig, 3)->jitter_us = 20000;
    run(&rig, &counters);
    CHECK(counters.jittered > 1000);
    CHECK_EQ(counters.hits, GETS);
}

static void test_packets_held_back(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;
    SKYT_Model_t   *model = on_all_links(&rig, 4);

    model->reorder_ppm = 50000;
    model->reorder_us  = 40000;
    run(&rig, &counters);
    CHECK(counters.reordered > 100);
    CHECK_EQ(counters.hits, GETS);
}

static void test_duplicates(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    on_all_links(&rig, 5)->duplicate_ppm = 50000;
    run(&rig, &counters);
    CHECK(counters.duplicated > 100);
    CHECK_EQ(counters.hits, GETS);
}

static void test_bit_flips(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    on_all_links(&rig, 6)->flip_ppm = 20000;
    run(&rig, &counters);
    CHECK(counters.flipped > 100);
    CHECK(counters.damaged > counters.flipped * 9u / 10u); /* the rest met a link or a host that was gone */
    CHECK_EQ(counters.hits, GETS);
}

static void test_one_link_alone(void)
{
    SKYT_Counters_t counters;
    SKYT_Fault_t   *fault;
    Rig_t           rig;

    rig_init(&rig, 7);
    fault                 = rig_fault(&rig, 0, SKYT_FAULT_MODEL, node_at(3, 10), 0);
    fault->link           = SKYT_LINK_UP;
    fault->model.loss_ppm = 100000;
    fault                 = rig_fault(&rig, 40, SKYT_FAULT_MODEL, node_at(3, 10), 0); /* and whole again */
    fault->link           = SKYT_LINK_UP;
    run(&rig, &counters);
    CHECK(counters.lost > 5);
    CHECK(counters.lost < counters.packets / 50u);
}

static void test_a_cut(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 8);
    for (uint32_t i = 0; i < 3; ++i)
    {
        const uint64_t at_s = 40u + 60u * i;

        rig_fault(&rig, at_s, SKYT_FAULT_CUT, node_at(3, 9), 1)->link       = SKY_LINK_EAST;
        rig_fault(&rig, at_s + 40u, SKYT_FAULT_CUT, node_at(3, 9), 0)->link = SKY_LINK_EAST;
    }
    run(&rig, &counters);
    CHECK_EQ(counters.cuts, 3);
    CHECK(counters.lost_cut > 0);
}

static void test_a_partition(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 9);
    for (uint32_t slot = 1; slot <= SLOTS; ++slot) /* between planes 2 and 3; the other way round leads over the seam */
    {
        rig_fault(&rig, 100, SKYT_FAULT_CUT, node_at(2, slot), 1)->link = SKY_LINK_SOUTH;
    }
    for (uint32_t slot = 1; slot <= SLOTS; ++slot)
    {
        rig_fault(&rig, 160, SKYT_FAULT_CUT, node_at(2, slot), 0)->link = SKY_LINK_SOUTH;
    }
    rig.config.seam_cut = 1;
    run(&rig, &counters);
    CHECK_EQ(counters.cuts, SLOTS);
    /* Hosts call satellites beyond the cut lost, and look for blocks at those that stand in. */
    CHECK(counters.misses[SKYT_CAUSE_STRANDED] > 0);
}

static void test_a_crash(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 10);
    (void)rig_fault(&rig, 100, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 101, SKYT_FAULT_CRASH, node_at(3, 10), 0); /* it is down already */
    (void)rig_fault(&rig, 130, SKYT_FAULT_RESTART, node_at(3, 10), 0);
    (void)rig_fault(&rig, 131, SKYT_FAULT_RESTART, node_at(3, 10), 0);
    run(&rig, &counters);
    CHECK_EQ(counters.crashes, 1);
    CHECK(counters.misses[SKYT_CAUSE_CRASHED] > 0);
    CHECK(counters.blocks_checked < BLOCKS);
}

static void test_pressure(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 11);
    rig.config.gossip = 1;
    for (uint32_t slot = 5; slot <= 9; ++slot) /* the window is about to come there */
    {
        (void)rig_fault(&rig, 50, SKYT_FAULT_PRESSURE, node_at(3, slot), 2);
    }
    (void)rig_fault(&rig, 300, SKYT_FAULT_RELIEF, node_at(3, 9), 0);
    run(&rig, &counters);
    CHECK_EQ(counters.pressures, 5);
    CHECK(counters.evicted_chunks > 0);
}

static void test_pressure_evicts(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 12);
    rig.config.slot_count = 128;
    for (uint32_t plane = 2; plane <= 4; ++plane)
    {
        (void)rig_fault(&rig, 50, SKYT_FAULT_PRESSURE, node_at(plane, 8), 4);
    }
    run(&rig, &counters);
    CHECK(counters.misses[SKYT_CAUSE_EVICTED] + counters.hits == GETS);
}

static void test_a_late_clock(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 13);
    (void)rig_fault(&rig, 30, SKYT_FAULT_CLOCK, node_at(3, 11), 30000000);
    (void)rig_fault(&rig, 31, SKYT_FAULT_CLOCK, node_at(2, 11), 50000000);
    (void)rig_fault(&rig, 200, SKYT_FAULT_CLOCK, node_at(2, 11), 0);
    run(&rig, &counters);
    CHECK_EQ(counters.late_clocks, 2);
    CHECK_EQ(counters.hits, GETS); /* within a row the old place is asked too */
}

/* A server is down. Who puts a block puts its share at a stand-in, and another host finds it there, each by what it sees itself. */
static void test_hosts_go_around_a_lost_satellite(void)
{
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    uint32_t             count = 0;
    SKYT_Twin_t         *twin;
    Rig_t                rig;

    rig_init(&rig, 12);
    rig.rows          = 1;
    rig.config.uplink = SKYT_UPLINK_DIRECT;
    (void)rig_fault(&rig, 10, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 80, SKYT_FAULT_RESTART, node_at(3, 10), 0);
    rig.ops[0]   = (SKYT_Op_t){START_US + 20u * SECOND, SKYT_OP_PUT, 5, 1, 5000, 0};
    rig.ops[1]   = (SKYT_Op_t){START_US + 40u * SECOND, SKYT_OP_GET, 5, 1, 5000, 0};
    rig.ops[2]   = (SKYT_Op_t){START_US + 50u * SECOND, SKYT_OP_GET, 5, 2, 5000, 0};
    rig.ops[3]   = (SKYT_Op_t){START_US + 170u * SECOND, SKYT_OP_GET, 5, 2, 5000, 0}; /* it has come home */
    rig.op_count = 4;
    twin         = rig_create(&rig);
    (void)SKYT_Run(twin, START_US + 300u * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(violations_of(&counters), 0);
    show_violations(twin);
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, 4);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK(results[i].ended == 1);
        CHECK_EQ(results[i].cause, SKYT_CAUSE_NONE);
    }
    CHECK(results[0].duration_us < SECOND); /* once the others have answered, the share goes to the stand-in */
    CHECK(results[1].duration_us < SECOND); /* it knows */
    CHECK(results[2].duration_us > results[1].duration_us);
    CHECK(results[3].duration_us < SECOND);
    CHECK_EQ(counters.blocks_checked, 1);
    CHECK_EQ(counters.blocks_misplaced, 0);
    SKYT_Destroy(twin);
}

/* A server is back, and has not got its share yet. Who has never called it lost finds the share at the stand-in, which says that it
 * is late. */
static void test_a_host_that_calls_nobody_lost_finds_what_a_stand_in_has(void)
{
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    uint32_t             count = 0;
    SKYT_Twin_t         *twin;
    Rig_t                rig;

    rig_init(&rig, 12);
    rig.rows          = 1;
    rig.config.uplink = SKYT_UPLINK_DIRECT;
    (void)rig_fault(&rig, 10, SKYT_FAULT_CRASH, node_at(3, 10), 0);
    (void)rig_fault(&rig, 80, SKYT_FAULT_RESTART, node_at(3, 10), 0);
    rig.ops[0]   = (SKYT_Op_t){START_US + 20u * SECOND, SKYT_OP_PUT, 5, 1, 5000, 0};
    rig.ops[1]   = (SKYT_Op_t){START_US + 80u * SECOND + SECOND / 100u, SKYT_OP_GET, 5, 2, 5000, 0};
    rig.op_count = 2;
    twin         = rig_create(&rig);
    (void)SKYT_Run(twin, START_US + 79u * SECOND);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(counters.migrated_chunks, 0); /* nothing has come home yet */
    (void)SKYT_Run(twin, START_US + 200u * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(violations_of(&counters), 0);
    show_violations(twin);
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, 2);
    CHECK_EQ(results[1].cause, SKYT_CAUSE_NONE);
    CHECK_EQ(counters.fallback_hits, 1);
    CHECK(results[1].duration_us < SECOND);
    CHECK_EQ(counters.purges, 0);
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_loss);
    RUN(test_bursts_of_loss);
    RUN(test_jitter_reorders);
    RUN(test_packets_held_back);
    RUN(test_duplicates);
    RUN(test_bit_flips);
    RUN(test_one_link_alone);
    RUN(test_a_cut);
    RUN(test_a_partition);
    RUN(test_a_crash);
    RUN(test_pressure);
    RUN(test_pressure_evicts);
    RUN(test_a_late_clock);
    RUN(test_hosts_go_around_a_lost_satellite);
    RUN(test_a_host_that_calls_nobody_lost_finds_what_a_stand_in_has);
    return CHECK_RESULT();
}
