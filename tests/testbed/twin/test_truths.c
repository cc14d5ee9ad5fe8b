/**
 * @file
 * What must hold of handovers, of blocks that are prefetched for a later row, of links that are down, and of what hosts ask: each is broken on
 * purpose, and the twin says so.
 */
#include "twin_rig.h"

/* Every put stores its block for this row. */
static void put_for(Rig_t *rig, uint32_t row)
{
    rig_ops(rig);
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        rig->ops[i].epoch = row;
    }
}

static void test_a_chunk_waits_for_the_row_that_it_is_prefetched_for(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    put_for(&rig, 5);
    check_only_broken(&rig, SKYT_BREAK_LEAVE, SKYT_INVARIANT_WAITS, "prefetched for a later row");
}

/* Each put of a block says another row: later, earlier, one that has passed. Gets find it all the same. */
static void test_each_put_says_another_row(void)
{
    static const uint32_t rows[] = {4, 6, 2, 5, 1, 6};
    SKYT_Counters_t       counters;
    Rig_t                 rig;

    rig_init(&rig, 3);
    rig_ops(&rig);
    rig.op_count = BLOCKS + GETS / 2u; /* room for more puts */
    for (uint32_t i = 0; i < GETS / 2u; ++i)
    {
        rig.ops[rig.op_count++] = (SKYT_Op_t){START_US + (10u + 3u * i) * SECOND, SKYT_OP_PUT, i % BLOCKS, 1, 5000, rows[i % 6u]};
    }
    rig_sort_ops(&rig);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.puts_failed, 0);
    CHECK_EQ(counters.hits, counters.gets);
    CHECK_EQ(counters.blocks_checked, BLOCKS);
    CHECK_EQ(counters.blocks_misplaced, 0);
}

/* A block is put for row 4, and then for row 1. */
static const SKYT_Op_t put_twice[] = {{START_US, SKYT_OP_PUT, 5, 1, 5000, 4},
                                      {START_US + 10 * SECOND, SKYT_OP_PUT, 5, 1, 5000, 1},
                                      {START_US + 150 * SECOND, SKYT_OP_GET, 5, 1, 5000, 0},
                                      {START_US + 200 * SECOND, SKYT_OP_GET, 5, 1, 5000, 0}};

/* The second put says that the block is for the row of the moment. Chunks that lie where the first has put them wait there all the
 * same, so that a get between misses them: it goes by the second. */
static void test_what_an_earlier_put_has_placed_waits(void)
{
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    SKYT_Twin_t         *twin;
    Rig_t                rig;

    rig_init(&rig, 3);
    rig.rows    = 4;
    rig.returns = true;
    (void)memcpy(rig.ops, put_twice, sizeof(put_twice));
    rig.op_count = 4;
    twin         = rig_create(&rig);
    SKYT_Run(twin, START_US + 300 * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results = SKYT_Results(twin, &rig.op_count);
    CHECK_EQ(results[1].cause, SKYT_CAUSE_NONE);
    CHECK_EQ(results[2].cause, SKYT_CAUSE_PREFETCHED);
    CHECK_EQ(results[3].cause, SKYT_CAUSE_NONE);
    SKYT_Destroy(twin);
}

/* The same block, where hosts purge what they miss. Satellites say that it is prefetched for a row to come: it is got as that, and stays. */
static void test_who_purges_asks_before_whether_the_block_is_prefetched(void)
{
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    SKYT_Twin_t         *twin;
    Rig_t                rig;

    rig_init(&rig, 3);
    rig.rows              = 4;
    rig.config.lazy_purge = 1;
    rig.returns           = true;
    (void)memcpy(rig.ops, put_twice, sizeof(put_twice));
    rig.op_count = 4;
    twin         = rig_create(&rig);
    SKYT_Run(twin, START_US + 300 * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results = SKYT_Results(twin, &rig.op_count);
    CHECK_EQ(results[1].cause, SKYT_CAUSE_NONE);
    CHECK_EQ(results[2].cause, SKYT_CAUSE_NONE);
    CHECK_EQ(results[3].cause, SKYT_CAUSE_NONE);
    CHECK_EQ(counters.purges, 0);
    SKYT_Destroy(twin);
}

/* What a satellite held is gone, and it says nothing; that it is down nobody knows yet. Nobody may take its silence for an answer. */
static void test_silence_is_no_consent(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.scrub_ms = 10000;
    rig.config.hello_ms = 60000;
    (void)rig_fault(&rig, 80, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(&rig, 300, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    check_only_broken(&rig, SKYT_BREAK_CONSENT, SKYT_INVARIANT_KEPT, "has not said that it has nothing left");
}

/* Blocks make room while others are still being put. */
static void test_gossip_spares_what_is_being_put(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.gossip = 1;
    for (uint32_t slot = 8; slot <= 12; ++slot)
    {
        (void)rig_fault(&rig, 4, SKYT_FAULT_PRESSURE, node_at(3, slot), 2);
    }
    check_only_broken(&rig, SKYT_BREAK_HASTE, SKYT_INVARIANT_KEPT, "of which a put still went on");
}

/* Links are slow, so that gets come while a handover goes on. */
static void test_a_share_is_asked_for_where_it_was(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.isl_kbps = 200;
    check_only_broken(&rig, SKYT_BREAK_ELSEWHERE, SKYT_INVARIANT_KEPT, "there until lately");
}

/* No link works, and what was put stays where it was; the links are cut as well, which alone explains no miss. */
static void check_late(SKYT_Break_t broken)
{
    SKYT_Counters_t counters;
    SKYT_Twin_t    *twin;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.uplink                                            = SKYT_UPLINK_DIRECT;
    rig.config.handover_ms                                       = 1000;
    rig_fault(&rig, 310, SKYT_FAULT_CUT, node_at(1, 1), 1)->link = SKY_LINK_EAST;
    rig.ops[rig.op_count++]                                      = (SKYT_Op_t){START_US, SKYT_OP_PUT, 5, 1, 5000, 0};
    rig.ops[rig.op_count++] = (SKYT_Op_t){START_US + 330u * SECOND, SKYT_OP_GET, 5, 1, 5000, 0};
    twin                    = rig_create(&rig);
    rig_all_links_down(twin);
    SKYT_Break(twin, broken);
    SKYT_Run(twin, START_US + 340u * SECOND);
    SKYT_Counters(twin, &counters);
    if (broken == SKYT_BREAK_NOTHING)
    {
        CHECK_EQ(violations_of(&counters), 0);
        CHECK_EQ(counters.hits, 1);
    }
    else
    {
        check_says(twin, SKYT_INVARIANT_KEPT, "did not ask it");
    }
    SKYT_Destroy(twin);
}

static void test_who_is_late_is_asked_before_a_get_misses(void)
{
    check_late(SKYT_BREAK_NOTHING);
    check_late(SKYT_BREAK_HURRY);
}

static void test_a_link_that_is_silent_is_used_no_more(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig_fault(&rig, 60, SKYT_FAULT_CUT, node_at(3, 9), 1)->link  = SKY_LINK_EAST;
    rig_fault(&rig, 340, SKYT_FAULT_CUT, node_at(3, 9), 0)->link = SKY_LINK_EAST;
    check_only_broken(&rig, SKYT_BREAK_BLIND, SKYT_INVARIANT_ROUTE, "heard nothing for long");
}

/* Packets get lost now and then, so that all satellites greet. */
static void test_nothing_goes_over_a_seam_that_is_cut(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.seam_cut                                               = 1;
    rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 500;
    check_only_broken(&rig, SKYT_BREAK_SEAM, SKYT_INVARIANT_ROUTE, "a link that does not exist");
}

static void test_a_share_that_ends_gives_its_room_back(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    check_only_broken(&rig, SKYT_BREAK_HOARD, SKYT_INVARIANT_WINDOW, "other chunks");
}

static void test_a_lease_ends(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    check_only_broken(&rig, SKYT_BREAK_LEASE, SKYT_INVARIANT_LIFETIME, "whose lease has ended");
}

/* Cut satellites off from all others, as if these were behind the earth, and no others. The satellites have four neighbours each. */
static void cut_off(SKYT_Twin_t *twin, const uint32_t *nodes, uint32_t count)
{
    static const int32_t steps[SKY_ISL_COUNT] = {-(int32_t)SLOTS, 1, (int32_t)SLOTS, -1}; /* north, east, south, west */
    static uint8_t       down[NODES * SKY_ISL_COUNT];

    (void)memset(down, 0, sizeof(down));
    for (uint32_t i = 0; i < count; ++i)
    {
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const uint32_t other = (uint32_t)((int32_t)nodes[i] + steps[link]);

            down[nodes[i] * SKY_ISL_COUNT + link]          = 1;
            down[other * SKY_ISL_COUNT + (link + 2u) % 4u] = 1;
        }
    }
    SKYT_SetLinksDown(twin, down);
}

/* A stand-in keeps the copy that a first put has brought. A second put has found the server at home. When the server is out of reach, another
 * stand-in denies the block, and the old copy does not make that wrong. */
static void test_a_copy_at_a_former_stand_in_proves_no_look_up_wrong(void)
{
    const uint32_t entry  = node_at(3, 14);
    const uint32_t away[] = {node_at(3, 10), node_at(2, 10), node_at(3, 11), node_at(4, 10)}; /* home, and who stands in first */
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    SKYT_Twin_t         *twin;
    Rig_t                rig;
    uint32_t             count;

    rig_init(&rig, 3);
    rig.rows           = 1;
    rig.config.layout  = SKY_LAYOUT_HOP;
    rig.config.servers = 1;
    rig.config.uplink  = SKYT_UPLINK_ENTRIES;
    rig.config.look_up = 1;
    rig.ops[0]         = (SKYT_Op_t){START_US + 10 * SECOND, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig.ops[1]         = (SKYT_Op_t){START_US + 150 * SECOND, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig.ops[2]         = (SKYT_Op_t){START_US + 160 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0};
    rig.ops[3]         = (SKYT_Op_t){START_US + 310 * SECOND, SKYT_OP_GET, 0, 1, 5000, 0};
    rig.op_count       = 4;
    twin               = rig_create(&rig);
    CHECK(SKYT_SetEntries(twin, &entry, 1));
    cut_off(twin, away, 4);
    (void)SKYT_Run(twin, START_US + 100 * SECOND);
    cut_off(twin, NULL, 0);
    (void)SKYT_Run(twin, START_US + 300 * SECOND);
    cut_off(twin, away, 1);
    (void)SKYT_Run(twin, START_US + 400 * SECOND);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results = SKYT_Results(twin, &count);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        CHECK(results[i].ended == 1 && results[i].cause == SKYT_CAUSE_NONE);
    }
    CHECK_EQ(results[3].cause, SKYT_CAUSE_STRANDED);
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_a_chunk_waits_for_the_row_that_it_is_prefetched_for);
    RUN(test_each_put_says_another_row);
    RUN(test_what_an_earlier_put_has_placed_waits);
    RUN(test_who_purges_asks_before_whether_the_block_is_prefetched);
    RUN(test_silence_is_no_consent);
    RUN(test_gossip_spares_what_is_being_put);
    RUN(test_a_share_is_asked_for_where_it_was);
    RUN(test_who_is_late_is_asked_before_a_get_misses);
    RUN(test_a_link_that_is_silent_is_used_no_more);
    RUN(test_nothing_goes_over_a_seam_that_is_cut);
    RUN(test_a_share_that_ends_gives_its_room_back);
    RUN(test_a_lease_ends);
    RUN(test_a_copy_at_a_former_stand_in_proves_no_look_up_wrong);
    return CHECK_RESULT();
}
