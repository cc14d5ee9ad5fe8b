/**
 * @file
 * Touches and prefetches: what follows from them, and that the twin notices if it does not.
 */
#include "twin_rig.h"

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

int main(void)
{
    RUN(test_a_block_is_there_before_the_row_begins);
    RUN(test_what_cannot_move_stays);
    RUN(test_a_chain_is_touched);
    return CHECK_RESULT();
}
