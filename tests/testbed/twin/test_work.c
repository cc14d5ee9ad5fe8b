/**
 * @file
 * Chunks that take time on board: one after the other at each satellite, in parallel at several.
 */
#include "twin_rig.h"

#define WAY_US   3000u
#define CHUNK_US 20000u

static const uint32_t block_of_two = 10; /* 10,000 bytes: 20 chunks, two for each of ten servers */

static void begin(Rig_t *rig)
{
    rig_init(rig, 1);
    rig->rows            = 1;
    rig->config.uplink   = SKYT_UPLINK_DIRECT;
    rig->config.chunk_us = CHUNK_US;
}

static void add(Rig_t *rig, uint64_t at_us, SKYT_OpKind_t kind, uint32_t host)
{
    const SKYT_Op_t op = {START_US + at_us, (uint32_t)kind, block_of_two, host, 5000, 0};

    rig->ops[rig->op_count++] = op;
}

/* @param took_us  receives how long each operation took */
static void run(Rig_t *rig, uint64_t *took_us, SKYT_Counters_t *counters)
{
    SKYT_Twin_t         *twin = rig_create(rig);
    const SKYT_Result_t *results;
    uint32_t             count;

    SKYT_Run(twin, START_US + 20u * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, counters);
    show_violations(twin);
    CHECK_EQ(violations_of(counters), 0);
    CHECK_EQ(counters->packets_on_way, 0);
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, rig->op_count);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK_EQ(results[i].ended, 1);
        took_us[i] = results[i].duration_us;
    }
    SKYT_Destroy(twin);
}

static void test_the_chunks_of_a_satellite_follow_each_other(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[2] = {0};
    Rig_t           rig;

    begin(&rig);
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, SECOND, SKYT_OP_GET, 1);
    run(&rig, took_us, &counters);
    CHECK_EQ(counters.hits, 1);
    CHECK_EQ(took_us[0], 2u * WAY_US + 2u * CHUNK_US);
    CHECK_EQ(took_us[1], 2u * WAY_US + 2u * CHUNK_US);
}

static void test_parts_of_a_chunk_take_no_longer_than_the_chunk(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[2] = {0};
    Rig_t           rig;

    begin(&rig);
    rig.config.packet_bytes = SKY_SERVICE_PACKET_MIN; /* two parts and more */
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, SECOND, SKYT_OP_GET, 1);
    run(&rig, took_us, &counters);
    CHECK_EQ(counters.hits, 1);
    CHECK_EQ(took_us[0], 2u * WAY_US + 2u * CHUNK_US);
    CHECK_EQ(took_us[1], 2u * WAY_US + 2u * CHUNK_US);
}

static void test_hosts_wait_for_each_other(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[3] = {0};
    Rig_t           rig;

    begin(&rig);
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, SECOND, SKYT_OP_GET, 1);
    add(&rig, SECOND, SKYT_OP_GET, 2);
    run(&rig, took_us, &counters);
    CHECK_EQ(counters.hits, 2);
    CHECK_EQ(took_us[1], 2u * WAY_US + 2u * CHUNK_US);
    CHECK_EQ(took_us[2], 2u * WAY_US + 4u * CHUNK_US);
}

static void test_a_satellite_that_hangs_answers_later(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[2] = {0};
    Rig_t           rig;

    begin(&rig);
    rig.config.hang_ppm = 1000000;
    rig.config.hang_us  = 80000;
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, SECOND, SKYT_OP_GET, 1);
    run(&rig, took_us, &counters);
    CHECK_EQ(counters.hits, 1);
    CHECK_EQ(took_us[0], 2u * WAY_US + 2u * CHUNK_US);
    CHECK_EQ(took_us[1], 2u * WAY_US + 2u * CHUNK_US + 80000u);
}

static void test_what_waits_is_lost_in_a_crash(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[2] = {0};
    Rig_t           rig;

    begin(&rig);
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, 10u * SECOND, SKYT_OP_GET, 1);
    rig_fault(&rig, 0, SKYT_FAULT_CRASH, node_at(3, 10), 0)->time_us   = START_US + WAY_US + 1u; /* server 1: chunks have come */
    rig_fault(&rig, 0, SKYT_FAULT_RESTART, node_at(3, 10), 0)->time_us = START_US + SECOND / 10u;
    run(&rig, took_us, &counters);
    CHECK(counters.lost_dead >= 3); /* two chunks and the question after them, and what other satellites ask */
    CHECK_EQ(counters.puts_failed, 0);
    CHECK_EQ(counters.hits, 1);
    CHECK(took_us[0] > 2u * WAY_US + 2u * CHUNK_US + 20000u); /* it is late, so a stand-in got the share */
    CHECK(took_us[0] < 300000u);
    CHECK_EQ(took_us[1], 2u * WAY_US + 2u * CHUNK_US);
}

static void test_without_processing_time_there_are_only_ways(void)
{
    SKYT_Counters_t counters;
    uint64_t        took_us[2] = {0};
    Rig_t           rig;

    begin(&rig);
    rig.config.chunk_us = 0;
    add(&rig, 0, SKYT_OP_PUT, 1);
    add(&rig, SECOND, SKYT_OP_GET, 1);
    run(&rig, took_us, &counters);
    CHECK_EQ(took_us[0], 2u * WAY_US);
    CHECK_EQ(took_us[1], 2u * WAY_US);
}

/* The way up and down takes 3 ms in the beginning and 13 ms after 10 s. */
static void test_delays_change_evenly(void)
{
    static uint32_t isl_us[NODES * SKY_ISL_COUNT];
    static uint32_t ground_us[NODES];

    const SKYT_Result_t *results;
    SKYT_Twin_t         *twin;
    Rig_t                rig;
    uint32_t             count;

    begin(&rig);
    rig.config.chunk_us = 0;
    for (uint32_t i = 0; i < 4u; ++i)
    {
        add(&rig, 5u * i * SECOND, i == 0 ? SKYT_OP_PUT : SKYT_OP_GET, 1);
    }
    for (uint32_t i = 0; i < NODES; ++i)
    {
        ground_us[i] = 13000;
    }
    twin = rig_create(&rig);
    SKYT_SetDelays(twin, START_US + 10u * SECOND, isl_us, ground_us);
    CHECK(SKYT_Run(twin, START_US + 20u * SECOND));
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, 4);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        const uint32_t way_us = i < 2u ? WAY_US + 5000u * i : 13000u;

        CHECK_EQ(results[i].cause, SKYT_CAUSE_NONE);
        CHECK(results[i].duration_us >= 2u * way_us && results[i].duration_us < 2u * way_us + 20u);
    }
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_the_chunks_of_a_satellite_follow_each_other);
    RUN(test_parts_of_a_chunk_take_no_longer_than_the_chunk);
    RUN(test_hosts_wait_for_each_other);
    RUN(test_a_satellite_that_hangs_answers_later);
    RUN(test_what_waits_is_lost_in_a_crash);
    RUN(test_delays_change_evenly);
    RUN(test_without_processing_time_there_are_only_ways);
    return CHECK_RESULT();
}
