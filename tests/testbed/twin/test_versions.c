/**
 * @file
 * Values: blocks that several hosts put again and again, each time with other content under a newer version.
 */
#include "twin_rig.h"

#define AGAIN 60u

/* All blocks are values. Hosts put and get them in turn; the clock of the second one is behind that of the first. */
static void rig_values(Rig_t *rig, uint64_t seed)
{
    rig_init(rig, seed);
    rig->config.values = 1;
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        const SKYT_Op_t put = {START_US + i * SECOND / 4u, SKYT_OP_PUT, i, 1, 5000, 0};

        rig->ops[rig->op_count++] = put;
    }
    for (uint32_t i = 0; i < AGAIN; ++i)
    {
        const uint64_t  at_us = START_US + 10u * SECOND + i * 5u * SECOND;
        const SKYT_Op_t first = {at_us, SKYT_OP_PUT, i * 7u % BLOCKS, 1, 5000, 0};
        const SKYT_Op_t other = {
            at_us + SECOND / 2u, SKYT_OP_PUT, i * 7u % BLOCKS, 2, 5000, 0}; /* by its clock before the first */
        const SKYT_Op_t get = {at_us + SECOND, SKYT_OP_GET, i * 7u % BLOCKS, i % 2u + 1u, 5000, 0};

        rig->ops[rig->op_count++] = first;
        rig->ops[rig->op_count++] = other;
        rig->ops[rig->op_count++] = get;
    }
}

/* A put that comes later counts, whatever the clocks say: it is refused, and repeated above what is held. */
static void test_values_are_replaced_while_the_sky_turns(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    for (uint64_t seed = 1; seed < 4u; ++seed)
    {
        rig_values(&rig, seed);
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.puts, BLOCKS + 2u * AGAIN);
        CHECK_EQ(counters.puts_failed, 0);
        CHECK_EQ(counters.hits, AGAIN);
        CHECK(counters.handovers > 0);
    }
}

static void test_the_same_seed_is_the_same_run(void)
{
    SKYT_Counters_t counters[2];
    Rig_t           rig;

    for (uint32_t i = 0; i < 2u; ++i)
    {
        rig_values(&rig, 5);
        rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 5000;
        rig_run_sound(&rig, &counters[i]);
    }
    CHECK(counters[0].digest == counters[1].digest);
}

static void test_an_older_version_in_the_place_of_a_newer_one(void)
{
    Rig_t rig;

    rig_values(&rig, 1);
    check_only_broken(&rig, SKYT_BREAK_REVERT, SKYT_INVARIANT_VERSION, "took in an older version");
}

static void test_a_chunk_of_another_version(void)
{
    Rig_t rig;

    rig_values(&rig, 1);
    check_only_broken(&rig, SKYT_BREAK_BLEND, SKYT_INVARIANT_VERSION, "a chunk of another version");
}

static void test_a_version_that_homes_do_not_tell(void)
{
    Rig_t rig;

    rig_values(&rig, 1);
    check_only_broken(&rig, SKYT_BREAK_DISOWN, SKYT_INVARIANT_VERSION, "than was acknowledged before");
}

/* Satellites of the window restart empty, one after the other, and say that they hold nothing. */
static void test_the_word_of_one_satellite(void)
{
    Rig_t rig;

    rig_values(&rig, 1);
    rig.config.parity = 2;
    for (uint32_t i = 0; i < 4u; ++i)
    {
        const uint32_t node = node_at(3, 8 + i);

        (void)rig_fault(&rig, 20u + 60u * i, SKYT_FAULT_CRASH, node, 0);
        (void)rig_fault(&rig, 21u + 60u * i, SKYT_FAULT_RESTART, node, 0);
    }
    check_only_broken(&rig, SKYT_BREAK_GULLIBLE, SKYT_INVARIANT_VERSION, "by the word of too few satellites");
}

/* What was deleted is not what was put before. It is shorter, and lies elsewhere. */
static void test_values_are_deleted_and_put_again(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    for (uint64_t seed = 1; seed < 4u; ++seed)
    {
        rig_values(&rig, seed);
        for (uint32_t i = 0; i < rig.op_count; ++i)
        {
            rig.ops[i].kind = rig.ops[i].kind == SKYT_OP_PUT && i % 4u == 1u ? SKYT_OP_DELETE : rig.ops[i].kind;
        }
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.puts, BLOCKS + 2u * AGAIN);
        CHECK_EQ(counters.puts_failed, 0);
        CHECK_EQ(counters.hits, AGAIN);
    }
}

/* Satellites that crash, lose and double packets leave nobody with chunks of two versions. */
static void test_faults_mix_no_versions(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_values(&rig, 2);
    rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 10000;
    rig_dead_satellite(&rig, 20000);
    rig_run_sound(&rig, &counters);
    CHECK(counters.hits > AGAIN / 2u);
}

static void test_a_purged_value_is_gone_for_who_purged_it(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_values(&rig, 3);
    for (uint32_t i = 0; i < 10u; ++i)
    {
        const SKYT_Op_t purge = {START_US + (320u + i) * SECOND, SKYT_OP_PURGE, i, i % 2u + 1u, 5000, 0};
        const SKYT_Op_t get   = {START_US + (340u + i) * SECOND, SKYT_OP_GET, i, i % 2u + 1u, 5000, 0};

        rig.ops[rig.op_count++] = purge;
        rig.ops[rig.op_count++] = get;
    }
    rig_sort_ops(&rig);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.purges, 10);
    CHECK(counters.misses[SKYT_CAUSE_PURGED] >= 8u);
}

int main(void)
{
    RUN(test_values_are_replaced_while_the_sky_turns);
    RUN(test_the_same_seed_is_the_same_run);
    RUN(test_an_older_version_in_the_place_of_a_newer_one);
    RUN(test_a_chunk_of_another_version);
    RUN(test_a_version_that_homes_do_not_tell);
    RUN(test_the_word_of_one_satellite);
    RUN(test_values_are_deleted_and_put_again);
    RUN(test_faults_mix_no_versions);
    RUN(test_a_purged_value_is_gone_for_who_purged_it);
    return CHECK_RESULT();
}
