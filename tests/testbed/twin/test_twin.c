/**
 * @file
 * The twin as a whole: without faults nothing is missed, and a run repeats exactly.
 */
#include "twin_rig.h"

static void test_nothing_is_missed_without_faults(void)
{
    for (uint32_t uplink = SKYT_UPLINK_DIRECT; uplink <= SKYT_UPLINK_CENTRE; ++uplink)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_init(&rig, uplink);
        rig.config.uplink = uplink;
        rig_run(&rig, SKYT_BREAK_NOTHING, &counters);
        CHECK_EQ(counters.puts, BLOCKS);
        CHECK_EQ(counters.puts_failed, 0);
        CHECK_EQ(counters.gets, GETS);
        CHECK_EQ(counters.hits, GETS);
        CHECK_EQ(counters.handovers, 5);
        CHECK_EQ(violations_of(&counters), 0);
        CHECK_EQ(counters.blocks_checked, BLOCKS);
        CHECK_EQ(counters.blocks_misplaced, 0);
        CHECK(counters.migrated_chunks > 100);
        CHECK(counters.migrated_bytes > 100 * 500);
        CHECK(counters.fallback_hits > 0);
        CHECK_EQ(counters.packets_on_way, 0);
        CHECK(counters.packets_on_way_most > 0);
    }
}

static void test_narrow_links_and_chunks_in_parts(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 1);
    rig.config.slot_bytes  = 1400;
    rig.config.chunk_bytes = 1300; /* three parts */
    rig.config.isl_kbps    = 20000;
    rig.config.ground_kbps = 50000;
    rig_run(&rig, SKYT_BREAK_NOTHING, &counters);
    CHECK_EQ(counters.hits, GETS);
    CHECK_EQ(violations_of(&counters), 0);
}

static void test_a_run_repeats_exactly(void)
{
    SKYT_Counters_t counters[3];

    for (uint32_t i = 0; i < 3; ++i)
    {
        Rig_t rig;

        rig_init(&rig, i < 2 ? 7 : 8);
        rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 10000;
        rig_run(&rig, SKYT_BREAK_NOTHING, &counters[i]);
    }
    CHECK(memcmp(&counters[0], &counters[1], sizeof(counters[0])) == 0);
    CHECK(counters[0].digest != counters[2].digest);
}

static void test_results_tell_what_became_of_each(void)
{
    Rig_t                rig;
    uint32_t             count = 0;
    SKYT_Twin_t         *twin;
    const SKYT_Result_t *results;

    rig_init(&rig, 1);
    rig.op_count = 1;
    rig.ops[0]   = (SKYT_Op_t){START_US + SECOND, SKYT_OP_GET, 0, 1, 5000, 0}; /* never put */
    twin         = rig_create(&rig);
    results      = SKYT_Results(twin, &count);
    CHECK_EQ(count, 1);
    SKYT_Run(twin, START_US + SECOND / 2);
    CHECK_EQ(results[0].ended, 0);
    SKYT_Run(twin, START_US + 10 * SECOND);
    CHECK_EQ(results[0].ended, 1);
    CHECK_EQ(results[0].cause, SKYT_CAUSE_ABSENT);
    CHECK(results[0].duration_us >= 6000); /* up and down */
    CHECK(results[0].tries >= 8);
    SKYT_Destroy(twin);
}

static void test_prefetched_blocks_wait_for_their_row(void)
{
    static const uint32_t time_ms[] = {0, 60000, 120000};
    static const int32_t  plane[]   = {3, 3, 4};
    static const int32_t  slot[]    = {10, 9, 8};

    const SKYT_Block_t block = {5000, 3};
    const SKYT_Op_t    ops[] = {{START_US + SECOND, SKYT_OP_PUT, 0, 1, 5000, 0},
                                {START_US + 30 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0},
                                {START_US + 90 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0},
                                {START_US + 130 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0}};
    char               why[SKYT_TEXT_BYTES];
    SKYT_Counters_t    counters;
    Rig_t              rig;

    rig_init(&rig, 1);
    SKYT_Twin_t *twin = SKYT_Create(&rig.config, why);
    CHECK(SKYT_SetRows(twin, time_ms, plane, slot, 3));
    CHECK(SKYT_AddBlocks(twin, &block, 1));
    CHECK(SKYT_AddOps(twin, ops, 4));
    SKYT_Run(twin, START_US + 200 * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(counters.hits, 3);
    CHECK_EQ(counters.migrated_chunks, 0); /* it goes once to where it is needed */
    CHECK_EQ(violations_of(&counters), 0);
    SKYT_Destroy(twin);
}

static void test_purged_blocks_are_gone(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 1);
    rig.config.lazy_purge = 1;
    rig.ops[0]            = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig.ops[1]            = (SKYT_Op_t){START_US + 10 * SECOND, SKYT_OP_PURGE, 0, 2, 5000, 0};
    rig.ops[2]            = (SKYT_Op_t){START_US + 20 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0};
    rig.op_count          = 3;
    rig_run(&rig, SKYT_BREAK_NOTHING, &counters);
    CHECK_EQ(counters.misses[SKYT_CAUSE_PURGED], 1);
    CHECK_EQ(counters.purges, 2); /* the second by the host that missed it */
    CHECK_EQ(counters.stored_chunks, 0);
    CHECK_EQ(violations_of(&counters), 0);
}

static void test_nobody_in_sight(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;
    const uint32_t  entries[] = {node_at(1, 1), node_at(3, 8)};
    SKYT_Twin_t    *twin;

    rig_init(&rig, 1);
    rig.config.uplink = SKYT_UPLINK_ENTRIES;
    twin              = rig_create(&rig);
    CHECK(SKYT_SetEntries(twin, entries, 2));
    SKYT_Run(twin, START_US + 100 * SECOND);
    CHECK(SKYT_SetEntries(twin, NULL, 0));
    CHECK(!SKYT_SetEntries(twin, entries, NODES + 1u));
    SKYT_Run(twin, START_US + 500 * SECOND);
    SKYT_Counters(twin, &counters);
    CHECK(counters.hits > 0);
    CHECK(counters.misses[SKYT_CAUSE_NOBODY] > 0);
    CHECK_EQ(counters.hits + counters.misses[SKYT_CAUSE_NOBODY], GETS);
    CHECK_EQ(violations_of(&counters), 0);
    SKYT_Destroy(twin);
}

/* While shares move, a look-up asks one satellite after the other for a block whose server moves. The first has been asked when the sky goes out of sight: there is nobody to
 * ask next. */
static void test_nobody_in_sight_in_the_midst_of_a_look_up(void)
{
    const uint64_t  soon_us = START_US + 63u * SECOND; /* after the second row has begun */
    SKYT_Counters_t counters;
    Rig_t           rig;
    const uint32_t  entry = node_at(3, 8);
    SKYT_Twin_t    *twin;

    rig_init(&rig, 1);
    rig.config.uplink  = SKYT_UPLINK_ENTRIES;
    rig.config.look_up = 1;
    rig.ops[0]         = (SKYT_Op_t){soon_us, SKYT_OP_GET, 17, 1, 5000, 0};
    rig.op_count       = 1;
    twin               = rig_create(&rig);
    CHECK(SKYT_SetEntries(twin, &entry, 1));
    (void)SKYT_Run(twin, soon_us + SECOND / 1000u);
    CHECK(SKYT_SetEntries(twin, NULL, 0));
    (void)SKYT_Run(twin, soon_us + 100 * SECOND);
    SKYT_Counters(twin, &counters);
    CHECK(counters.packets > 0);
    CHECK_EQ(counters.misses[SKYT_CAUSE_NOBODY], 1);
    CHECK_EQ(violations_of(&counters), 0);
    SKYT_Destroy(twin);
}

static void test_operations_wait_for_their_turn(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 1);
    rig.config.active_max = 1;
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        rig.ops[rig.op_count++] = (SKYT_Op_t){START_US, SKYT_OP_PUT, i, 1, 5000, 0};
    }
    rig_run(&rig, SKYT_BREAK_NOTHING, &counters);
    CHECK_EQ(counters.puts, BLOCKS);
    CHECK_EQ(counters.puts_failed, 0);
}

static void test_what_cannot_be_is_refused(void)
{
    static const uint32_t first_late[] = {5};
    static const int32_t  three[]      = {3};

    char         why[SKYT_TEXT_BYTES];
    Rig_t        rig;
    SKYT_Twin_t *twin;
    SKYT_Block_t block = {20001, 0};
    SKYT_Op_t    op    = {START_US, SKYT_OP_PUT, 1, 1, 5000, 0};
    SKYT_Fault_t fault = {START_US, SKYT_FAULT_CRASH, NODES, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};

    rig_init(&rig, 1);
    rig.config.servers = NODES + 1u;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strcmp(why, "servers is 96; allowed are 1 to 95") == 0);
    rig_init(&rig, 1);
    rig.config.slot_bytes   = 60000; /* too many parts */
    rig.config.packet_bytes = 500;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    rig_init(&rig, 1);
    twin = SKYT_Create(&rig.config, why);
    CHECK(!SKYT_SetRows(twin, first_late, three, three, 1));
    SKYT_Destroy(twin);
    twin = SKYT_Create(&rig.config, why);
    CHECK(SKYT_SetRows(twin, (const uint32_t[]){0}, three, three, 1));
    CHECK(!SKYT_AddBlocks(twin, &block, 1));
    SKYT_Destroy(twin);
    twin            = SKYT_Create(&rig.config, why);
    block.block_len = 100;
    CHECK(SKYT_SetRows(twin, (const uint32_t[]){0}, three, three, 1));
    CHECK(SKYT_AddBlocks(twin, &block, 1));
    CHECK(!SKYT_AddOps(twin, &op, 1));
    CHECK(!SKYT_AddFaults(twin, &fault, 1));
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_nothing_is_missed_without_faults);
    RUN(test_narrow_links_and_chunks_in_parts);
    RUN(test_a_run_repeats_exactly);
    RUN(test_results_tell_what_became_of_each);
    RUN(test_prefetched_blocks_wait_for_their_row);
    RUN(test_purged_blocks_are_gone);
    RUN(test_nobody_in_sight);
    RUN(test_nobody_in_sight_in_the_midst_of_a_look_up);
    RUN(test_operations_wait_for_their_turn);
    RUN(test_what_cannot_be_is_refused);
    return CHECK_RESULT();
}
