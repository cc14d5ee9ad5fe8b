/**
 * @file
 * Touches and prefetches: what follows from them, and that the twin notices if it does not.
 */
#include "twin_rig.h"

#define SEEDS      24u
#define MANY       150u
#define LATER(row) ((uint32_t)((row) < 6u ? (row) : 6u)) /* of six */

static void add(Rig_t *rig, uint64_t at_s, SKYT_OpKind_t kind, uint32_t block, uint32_t epoch)
{
    const SKYT_Op_t op = {START_US + at_s * SECOND, (uint32_t)kind, block, 1, 20000, epoch};

    rig->ops[rig->op_count++] = op;
}

/* A block that is prefetched for the third row is there before that begins, and is had in each row. */
static void test_a_block_is_there_before_the_row_begins(void)
{
    for (uint32_t parity = 0; parity <= 2u; parity += 2u)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_init(&rig, 7);
        rig.config.parity = parity;
        rig.fetch_s       = 300;
        add(&rig, 1, SKYT_OP_PUT, 4, 0);
        add(&rig, 10, SKYT_OP_PREFETCH, 4, 3);
        add(&rig, 50, SKYT_OP_GET, 4, 0);
        add(&rig, 130, SKYT_OP_GET, 4, 0);
        add(&rig, 200, SKYT_OP_GET, 4, 0);
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.prefetches, 1);
        CHECK_EQ(counters.prefetched, 1);
        CHECK_EQ(counters.hits, 3);
    }
}

/* Nothing can move while no link works: the prefetch ends with its time, and the block stays. */
static void test_what_cannot_move_stays(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 7);
    rig.rows          = 4;
    rig.config.uplink = SKYT_UPLINK_DIRECT;
    add(&rig, 1, SKYT_OP_PUT, 4, 0);
    add(&rig, 10, SKYT_OP_PREFETCH, 4, 3);
    add(&rig, 35, SKYT_OP_GET, 4, 0);
    SKYT_Twin_t *twin = rig_create(&rig);

    rig_all_links_down(twin);
    SKYT_Run(twin, START_US + 50u * SECOND);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK(counters.prefetches == 1u && counters.prefetched == 0u && counters.hits == 1u);
    CHECK_EQ(violations_of(&counters), 0);
    SKYT_Destroy(twin);
}

/* Two hosts prefetch a block at once, for different rows: the later one may miss what the other one has moved meanwhile. */
static void test_two_prefetches_of_a_block(void)
{
    uint32_t failed = 0;

    for (uint64_t apart_us = 0; apart_us < SECOND / 4u; apart_us += 20000u)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_init(&rig, 7);
        rig.config.servers = 4; /* so few that no satellite is in two of the rows */
        add(&rig, 1, SKYT_OP_PUT, 4, 0);
        add(&rig, 10, SKYT_OP_PREFETCH, 4, 3);
        add(&rig, 10, SKYT_OP_PREFETCH, 4, 5);
        rig.ops[2].time_us += apart_us;
        rig.ops[2].host = 2;
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.prefetches, 2);
        failed += counters.prefetched < 2u ? 1u : 0u;
    }
    CHECK(failed > 0u);
}

/* A host misses a block that another one moves to a row to come meanwhile: once for the first time, once from a later row. What is there then is not
 * purged. */
static void test_a_get_beside_a_prefetch(void)
{
    for (uint32_t before = 0; before < 2u; ++before)
    {
        uint64_t missed = 0;

        for (uint64_t after_us = 0; after_us < SECOND / 4u; after_us += 5000u)
        {
            SKYT_Counters_t counters;
            Rig_t           rig;

            rig_init(&rig, 7);
            rig.config.servers    = 4; /* so few that none of the first row is in the others */
            rig.config.lazy_purge = 1;
            add(&rig, 1, SKYT_OP_PUT, 4, 0);
            add(&rig, 10, before > 0u ? SKYT_OP_PREFETCH : SKYT_OP_GET, 4, before > 0u ? 6u : 0u);
            add(&rig, 20, SKYT_OP_PREFETCH, 4, 5);
            add(&rig, 20, SKYT_OP_GET, 4, 0);
            add(&rig, 40, SKYT_OP_GET, 4, 0);
            rig.ops[3].time_us += after_us;
            rig.ops[3].host = 2;
            rig_run_sound(&rig, &counters);
            CHECK_EQ(counters.prefetched, 1u + before);
            CHECK_EQ(counters.misses[SKYT_CAUSE_PREFETCHED], counters.gets - counters.hits);
            CHECK(counters.hits > 1u - before);
            missed += counters.misses[SKYT_CAUSE_PREFETCHED];
        }
        CHECK(missed > 0u);
    }
}

/* A satellite that is told to keep a share for a row to come, while it hands that over, ends the handover as it began. */
static void test_a_handover_goes_on_when_shares_are_to_stay(void)
{
    for (uint64_t after_us = 0; after_us < SECOND / 2u; after_us += 10000u)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_init(&rig, 7);
        rig.rows            = 3;
        rig.returns         = true;
        rig.config.servers  = 4;
        rig.config.credit   = 2;
        rig.config.isl_kbps = 60; /* a handover takes seconds */
        add(&rig, 1, SKYT_OP_PUT, 23, 0);
        add(&rig, 60, SKYT_OP_PREFETCH, 23, 3);
        add(&rig, 130, SKYT_OP_GET, 23, 0);
        rig.ops[1].time_us += after_us;
        rig_run_sound(&rig, &counters);
        CHECK(counters.prefetched == 1u && counters.hits == 1u);
    }
}

/* A chain that is touched counts as used from its end on; a silent satellite ends the touch. */
static void test_a_chain_is_touched(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 7);
    rig.rows           = 1;
    rig.config.uplink  = SKYT_UPLINK_DIRECT;
    rig.config.servers = 12;
    for (uint32_t block = 0; block < BLOCKS; ++block)
    {
        add(&rig, 1u + block, SKYT_OP_PUT, block, 0);
    }
    add(&rig, 40, SKYT_OP_TOUCH, 2, 0);
    (void)rig_fault(&rig, 50, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    add(&rig, 60, SKYT_OP_TOUCH, 2, 0);
    add(&rig, 70, SKYT_OP_TOUCH, 2, 0); /* others stand in */
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.touches, 3);
    CHECK_EQ(counters.touched, 8u + 8u);
}

/* Blocks are put, purged, touched, prefetched and had in a sky in which satellites crash and links lose packets, by hosts that call some of that back. */
static void test_a_sky_with_faults(void)
{
    static const SKYT_OpKind_t kinds[]    = {SKYT_OP_PREFETCH, SKYT_OP_GET,   SKYT_OP_TOUCH,
                                             SKYT_OP_PREFETCH, SKYT_OP_PURGE, SKYT_OP_PUT};
    uint64_t                   prefetched = 0;
    uint64_t                   touched    = 0;

    for (uint32_t seed = 1; seed <= SEEDS; ++seed)
    {
        SKYT_Counters_t counters;
        Rig_t           rig;

        rig_init(&rig, seed);
        rig.config.parity     = seed % 3u;
        rig.config.uplink     = seed % 2u == 0u ? SKYT_UPLINK_DIRECT : SKYT_UPLINK_CENTRE;
        rig.config.cancel_ppm = seed % 4u == 3u ? 200000u : 0u;
        rig_fault(&rig, 30, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 50000u * (seed % 3u);
        (void)rig_fault(&rig, 70 + seed, SKYT_FAULT_CRASH, node_at(3, 9), 0);
        (void)rig_fault(&rig, 90 + 2u * seed, SKYT_FAULT_CRASH, node_at(2, 10), 0);
        (void)rig_fault(&rig, 200, SKYT_FAULT_RESTART, node_at(3, 9), 0);
        for (uint32_t block = 0; block < BLOCKS; ++block)
        {
            add(&rig, 1u + block, SKYT_OP_PUT, block, 0);
        }
        for (uint32_t i = 0; i < MANY; ++i)
        {
            const uint64_t at_s = 26u + i * (330u - 26u) / MANY;

            add(&rig, at_s, kinds[(i * 7u + seed) % 6u], (i * 11u + seed) % BLOCKS, LATER(at_s / 60u + 1u + i % 3u));
        }
        for (uint32_t i = 0; i < rig.op_count; ++i)
        {
            rig.ops[i].epoch       = rig.ops[i].kind == SKYT_OP_PREFETCH ? rig.ops[i].epoch : 0u;
            rig.ops[i].deadline_ms = rig.ops[i].kind == SKYT_OP_PREFETCH && i % 5u == 0u ? 100u : 5000u;
        }
        rig_run_sound(&rig, &counters);
        CHECK(counters.prefetches > 0u && counters.touches > 0u);
        prefetched += counters.prefetched;
        touched += counters.touched;
    }
    CHECK(prefetched > 0u && touched > 0u);
}

int main(void)
{
    RUN(test_a_block_is_there_before_the_row_begins);
    RUN(test_what_cannot_move_stays);
    RUN(test_two_prefetches_of_a_block);
    RUN(test_a_get_beside_a_prefetch);
    RUN(test_a_handover_goes_on_when_shares_are_to_stay);
    RUN(test_a_chain_is_touched);
    RUN(test_a_sky_with_faults);
    return CHECK_RESULT();
}
