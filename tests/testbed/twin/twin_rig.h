/**
 * @file
 * A small sky for the tests of the twin: 5 planes x 19 slots, delays that do not change, blocks that are put in the first seconds
 * and then fetched again and again while the window moves on.
 */
#ifndef TWIN_RIG_H
#define TWIN_RIG_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sky.h"
#include "twin.h"

#define PLANES   5u
#define SLOTS    19u
#define NODES    (PLANES * SLOTS)
#define SECOND   UINT64_C(1000000)
#define START_US (1000u * SECOND)
#define BLOCKS   24u
#define GETS     200u
#define OPS_MAX  (BLOCKS + GETS)

typedef struct
{
    SKYT_Config_t config;
    uint32_t      rows;    /**< one every 60 s */
    bool          returns; /**< in the last row the window is where it was in the first */
    uint64_t      fetch_s;
    SKYT_Fault_t  faults[64];
    uint32_t      fault_count;
    SKYT_Op_t     ops[OPS_MAX];
    uint32_t      op_count;
} Rig_t;

static inline uint32_t node_at(uint32_t plane, uint32_t slot)
{
    return (plane - 1u) * SLOTS + slot - 1u;
}

static inline void rig_init(Rig_t *rig, uint64_t seed)
{
    const SKYT_Config_t config = {.seed             = seed,
                                  .start_us         = START_US,
                                  .planes           = PLANES,
                                  .slots            = SLOTS,
                                  .layout           = SKY_LAYOUT_ROTATION_HOP,
                                  .servers          = 10,
                                  .uplink           = SKYT_UPLINK_CENTRE,
                                  .hosts            = 2,
                                  .tenants          = 2,
                                  .slot_bytes       = 512,
                                  .slot_count       = 256,
                                  .packet_bytes     = 750,
                                  .credit           = 8,
                                  .part_lifetime_ms = 5000,
                                  .chunk_bytes      = 500,
                                  .block_bytes      = 20000,
                                  .handover_ms      = 20000,
                                  .active_max       = 8,
                                  .packets_max      = 4096,
                                  .queue_ms         = 500,
                                  .hello_ms         = 10000};

    (void)memset(rig, 0, sizeof(*rig));
    rig->config  = config;
    rig->rows    = 6;
    rig->fetch_s = 360;
}

static inline SKYT_Fault_t *rig_fault(Rig_t *rig, uint64_t at_s, SKYT_FaultKind_t kind, uint32_t node, uint32_t value)
{
    SKYT_Fault_t *fault = &rig->faults[rig->fault_count++];

    fault->time_us = START_US + at_s * SECOND;
    fault->kind    = (uint32_t)kind;
    fault->node    = node;
    fault->value   = value;
    return fault;
}

/** A server of the window is dead for two minutes, while so many packets come twice. */
static inline void rig_dead_satellite(Rig_t *rig, uint32_t duplicate_ppm)
{
    rig_fault(rig, 60, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.duplicate_ppm = duplicate_ppm;
    (void)rig_fault(rig, 80, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(rig, 200, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    (void)rig_fault(rig, 260, SKYT_FAULT_MODEL, SKYT_ALL, 0);
}

static inline void rig_ops(Rig_t *rig)
{
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        const SKYT_Op_t put = {START_US + i * SECOND / 4u, SKYT_OP_PUT, i, i % 2u + 1u, 5000, 0};

        rig->ops[rig->op_count++] = put;
    }
    for (uint32_t i = 0; i < GETS; ++i)
    {
        const SKYT_Op_t get = {
            START_US + 10u * SECOND + i * rig->fetch_s * SECOND / GETS, SKYT_OP_GET, i * 7u % BLOCKS, i % 2u + 1u, 5000, 0};

        rig->ops[rig->op_count++] = get;
    }
}

static inline int rig_by_time(const void *one, const void *other)
{
    const SKYT_Op_t *a = one;
    const SKYT_Op_t *b = other;

    return a->time_us < b->time_us ? -1 : a->time_us > b->time_us;
}

/** Put operations that were added in any order into the order in which they begin. */
static inline void rig_sort_ops(Rig_t *rig)
{
    qsort(rig->ops, rig->op_count, sizeof(rig->ops[0]), rig_by_time);
}

static inline SKYT_Twin_t *rig_create(Rig_t *rig)
{
    static uint32_t isl_us[NODES * SKY_ISL_COUNT];
    static uint32_t ground_us[NODES];
    uint32_t        time_ms[64];
    int32_t         plane[64];
    int32_t         slot[64];
    SKYT_Block_t    blocks[BLOCKS];
    char            why[SKYT_TEXT_BYTES];
    SKYT_Twin_t    *twin = SKYT_Create(&rig->config, why);

    CHECK(twin != NULL);
    for (uint32_t i = 0; i < rig->rows; ++i)
    {
        time_ms[i] = i * 60000u;
        plane[i]   = 3 + (int32_t)(i / 3u); /* now and then it jumps to another plane */
        slot[i]    = 10 - (int32_t)i;
    }
    if (rig->returns)
    {
        plane[rig->rows - 1u] = plane[0];
        slot[rig->rows - 1u]  = slot[0];
    }
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        blocks[i].block_len = 4000u + 600u * i;
        blocks[i].epoch     = 0;
    }
    for (uint32_t i = 0; i < NODES; ++i)
    {
        ground_us[i] = 3000;
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            isl_us[i * SKY_ISL_COUNT + link] = 7600;
        }
    }
    CHECK(SKYT_SetRows(twin, time_ms, plane, slot, rig->rows));
    CHECK(SKYT_AddBlocks(twin, blocks, BLOCKS));
    SKYT_SetDelays(twin, 0, isl_us, ground_us);
    if (rig->op_count == 0)
    {
        rig_ops(rig);
    }
    CHECK(SKYT_AddOps(twin, rig->ops, rig->op_count));
    CHECK(SKYT_AddFaults(twin, rig->faults, rig->fault_count));
    return twin;
}

static inline uint64_t violations_of(const SKYT_Counters_t *counters)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < SKYT_INVARIANTS; ++i)
    {
        sum += counters->violations[i];
    }
    return sum;
}

static inline void show_violations(const SKYT_Twin_t *twin)
{
    SKYT_Violation_t v;

    for (uint32_t i = 0; SKYT_Violation(twin, i, &v); ++i)
    {
        (void)printf("  at %.6f s: invariant %u, node %d, op %d, block %d, chunk %d: %s\n", (double)(v.time_us - START_US) / 1e6,
                     v.invariant, (int)v.node, (int)v.op, (int)v.block, (int)v.chunk, v.text);
    }
}

/** No link between satellites works, so whatever is put stays where it was put. */
static inline void rig_all_links_down(SKYT_Twin_t *twin)
{
    static uint8_t down[NODES * SKY_ISL_COUNT];

    (void)memset(down, 1, sizeof(down));
    SKYT_SetLinksDown(twin, down);
}

/** Run to the end, a minute longer than anything happens. */
static inline void rig_run(Rig_t *rig, SKYT_Break_t broken, SKYT_Counters_t *counters)
{
    SKYT_Twin_t *twin = rig_create(rig);

    SKYT_Break(twin, broken);
    SKYT_Run(twin, START_US + (rig->fetch_s + 100u) * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, counters);
    if (broken == SKYT_BREAK_NOTHING)
    {
        show_violations(twin);
    }
    SKYT_Destroy(twin);
}

/** Run the core as it is to the end: it violates nothing, and each miss is explained. */
static inline void rig_run_sound(Rig_t *rig, SKYT_Counters_t *counters)
{
    rig_run(rig, SKYT_BREAK_NOTHING, counters);
    CHECK_EQ(violations_of(counters), 0);
    CHECK_EQ(counters->misses[SKYT_CAUSE_UNEXPLAINED], 0);
}

/** The first violation is one of @p invariant, and says @p text. */
static inline void check_says(const SKYT_Twin_t *twin, SKYT_Invariant_t invariant, const char *text)
{
    SKYT_Violation_t first = {0};
    SKYT_Counters_t  counters;

    SKYT_Counters(twin, &counters);
    CHECK(counters.violations[invariant] > 0);
    CHECK(SKYT_Violation(twin, 0, &first));
    CHECK_EQ(first.invariant, invariant);
    CHECK(first.time_us > START_US);
    CHECK(first.text[0] != '\0');
    CHECK(strstr(first.text, text) != NULL);
    if (strstr(first.text, text) == NULL)
    {
        show_violations(twin);
    }
}

/** So it is at the end of a run. */
static inline void check_first(Rig_t *rig, SKYT_Break_t broken, SKYT_Invariant_t invariant, const char *text)
{
    SKYT_Twin_t *twin = rig_create(rig);

    SKYT_Break(twin, broken);
    (void)SKYT_Run(twin, START_US + (rig->fetch_s + 100u) * SECOND);
    SKYT_Finish(twin);
    check_says(twin, invariant, text);
    SKYT_Destroy(twin);
}

/** The same sky and faults: with the core as it is nothing is violated, so it is the break that the invariant finds. */
static inline void check_only_broken(Rig_t *rig, SKYT_Break_t broken, SKYT_Invariant_t invariant, const char *text)
{
    SKYT_Counters_t counters;

    rig_run_sound(rig, &counters);
    check_first(rig, broken, invariant, text);
}

#endif
