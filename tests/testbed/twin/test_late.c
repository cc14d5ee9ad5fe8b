/**
 * @file
 * twin_op.c: where a get looks for what handovers of earlier rows have left.
 */
#include "twin_rig.h"

#define ROW     (60u * SECOND)
#define ROWS    62u
#define OLD     20u /* blocks that are put in the rows from 1 on, so that satellites have something to hand over */
#define RECENT  44u /* row in which the first of the others is put */
#define LATEST  48u /* and of the last block that is put at all */
#define ANY_NEW 3u  /* of the other blocks */

static void add(Rig_t *rig, uint32_t row, SKYT_OpKind_t kind, uint32_t block)
{
    const SKYT_Op_t op = {START_US + (row - 1u) * ROW + 5u * SECOND + rig->op_count * 1000u, (uint32_t)kind, block, 1, 5000, 0};

    rig->ops[rig->op_count++] = op;
}

/* No link between satellites works, so whatever is put stays. More satellites are late than a get can ask: it asks those of the
 * latest rows, all of them. */
static void test_of_many_late_satellites_the_latest_are_asked(void)
{
    const SKYT_Result_t *results;
    uint32_t             count = 0;
    SKYT_Twin_t         *twin;
    Rig_t                rig;

    rig_init(&rig, 1);
    rig.rows               = ROWS;
    rig.config.servers     = 1;
    rig.config.uplink      = SKYT_UPLINK_DIRECT;
    rig.config.handover_ms = 1000;
    for (uint32_t row = 1; row <= LATEST; ++row)
    {
        const bool is_recent = row >= RECENT && row < RECENT + ANY_NEW;

        add(&rig, row, SKYT_OP_PUT, is_recent ? OLD + row - RECENT : row % OLD);
    }
    for (uint32_t i = 0; i < ANY_NEW; ++i)
    {
        add(&rig, ROWS, SKYT_OP_GET, OLD + i);
    }
    twin = rig_create(&rig);
    rig_all_links_down(twin);
    SKYT_Run(twin, START_US + ROWS * ROW);
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, LATEST + ANY_NEW);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK(results[i].ended == 1);
        CHECK_EQ(results[i].cause, SKYT_CAUSE_NONE);
    }
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_of_many_late_satellites_the_latest_are_asked);
    return CHECK_RESULT();
}
