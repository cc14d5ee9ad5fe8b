/**
 * @file
 * What a put, a get and a deletion mean (docs/design.md) while one of three copies is away: each case is one that a store got wrong before.
 */
#include "sky_schedule.h"
#include "twin_rig.h"

#define SERVERS  3u
#define BLOCK    2u
#define OPS_MOST 8u

typedef struct
{
    Rig_t         rig;
    SKYT_Result_t results[OPS_MOST];
} Case_t;

/* Return the satellite with a number among the servers that are not the centre. */
static uint32_t server_at(uint32_t number)
{
    SKY_ScheduleRow_t row = {0, {3, 10}};
    SKY_Schedule_t    schedule;
    SKY_Torus_t       torus;
    uint32_t          found = 0;

    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION_HOP, SERVERS, &row, 1, START_US));
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        const SKY_Addr_t addr = SKY_Schedule_Server(&schedule, 1, server);

        if ((addr.plane != 3u || addr.slot != 10u) && found++ == number)
        {
            return node_at(addr.plane, addr.slot);
        }
    }
    CHECK(false);
    return 0;
}

static void add(Case_t *one, uint64_t at_s, SKYT_OpKind_t kind, uint32_t host)
{
    one->rig.ops[one->rig.op_count++] = (SKYT_Op_t){START_US + at_s * SECOND, (uint32_t)kind, BLOCK, host, 5000, 0};
}

/* Blocks are values, of which each of three satellites has a copy. The first host puts one. */
static void set_up(Case_t *one, SKYT_Uplink_t uplink)
{
    (void)memset(one, 0, sizeof(*one));
    rig_init(&one->rig, 1);
    one->rig.rows            = 1;
    one->rig.config.hosts    = 4;
    one->rig.config.servers  = SERVERS;
    one->rig.config.parity   = SERVERS - 1u;
    one->rig.config.values   = 1;
    one->rig.config.hello_ms = 1000;
    one->rig.config.uplink   = (uint32_t)uplink;
    add(one, 5, SKYT_OP_PUT, 1);
}

static void run(Case_t *one)
{
    SKYT_Twin_t         *twin  = rig_create(&one->rig);
    uint32_t             count = 0;
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;

    SKYT_Run(twin, START_US + 300u * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results = SKYT_Results(twin, &count);
    CHECK(count <= OPS_MOST);
    (void)memcpy(one->results, results, count * sizeof(*results));
    SKYT_Destroy(twin);
}

/* A deletion is done although a satellite is dead, be it known or not. The satellite comes back empty, or never: nothing comes back with it. */
static void test_a_deletion_with_a_dead_satellite(void)
{
    for (uint32_t i = 0; i < 8u; ++i)
    {
        Case_t         one;
        const uint64_t deleted_s = i % 2u == 0u ? 21u : 60u;

        set_up(&one, i / 4u == 0u ? SKYT_UPLINK_CENTRE : SKYT_UPLINK_DIRECT);
        (void)rig_fault(&one.rig, 20, SKYT_FAULT_CRASH, server_at(0), 0);
        if (i / 2u % 2u == 0u)
        {
            (void)rig_fault(&one.rig, 100, SKYT_FAULT_RESTART, server_at(0), 0);
        }
        add(&one, deleted_s, SKYT_OP_DELETE, 2);
        add(&one, deleted_s + 10u, SKYT_OP_GET, 1);
        add(&one, 102, SKYT_OP_GET, 3);
        add(&one, 200, SKYT_OP_GET, 4);
        run(&one);
        CHECK_EQ(one.results[1].cause, SKYT_CAUSE_NONE);
        CHECK(one.results[1].version > one.results[0].version);
        for (uint32_t get = 2; get < 5u; ++get)
        {
            CHECK_EQ(one.results[get].version, one.results[1].version);
        }
    }
}

static void cut_off(Case_t *one, uint64_t at_s, uint32_t satellite, bool is_cut)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        rig_fault(&one->rig, at_s, SKYT_FAULT_CUT, satellite, is_cut ? 1u : 0u)->link = link;
    }
}

/* A home is cut off while the value is put again. It is back, and another one dies at once: nobody gets the first version any more. */
static void test_a_healed_partition_and_a_death(void)
{
    for (uint32_t i = 0; i < 2u; ++i)
    {
        Case_t one;

        set_up(&one, SKYT_UPLINK_CENTRE);
        cut_off(&one, 17, server_at(i), true);
        add(&one, 20, SKYT_OP_PUT, 1);
        cut_off(&one, 40, server_at(i), false);
        (void)rig_fault(&one.rig, 41, SKYT_FAULT_CRASH, server_at(1u - i), 0);
        add(&one, 42, SKYT_OP_GET, 1);
        add(&one, 43, SKYT_OP_GET, 2);
        add(&one, 120, SKYT_OP_GET, 3);
        run(&one);
        CHECK_EQ(one.results[1].cause, SKYT_CAUSE_NONE);
        CHECK(one.results[2].version == one.results[1].version || one.results[2].cause == SKYT_CAUSE_EXPIRED);
        CHECK(one.results[3].version == one.results[1].version || one.results[3].cause == SKYT_CAUSE_EXPIRED);
        CHECK_EQ(one.results[4].version, one.results[1].version);
    }
}

/* From 20 s to 80 s no host reaches any server but one, or none of them at all. */
static void silence_but(Case_t *one, uint32_t heard)
{
    const uint32_t servers[SERVERS] = {server_at(0), server_at(1), node_at(3, 10)};

    for (uint32_t i = 0; i < 4u * SERVERS; ++i)
    {
        const uint32_t server = i / 2u % SERVERS;

        if (server != heard)
        {
            SKYT_Fault_t *fault = rig_fault(&one->rig, i < 2u * SERVERS ? 20u : 80u, SKYT_FAULT_MODEL, servers[server], 0);

            fault->link           = i % 2u == 0u ? SKYT_LINK_DOWN : SKYT_LINK_UP;
            fault->model.loss_ppm = i < 2u * SERVERS ? 1000000u : 0u;
        }
    }
}

/* No host reaches enough satellites that have shares: that is an error for who has put the value and for who has not, and never "absent". */
static void check_cut_off(uint32_t parity, uint32_t heard)
{
    Case_t one;

    set_up(&one, SKYT_UPLINK_DIRECT);
    one.rig.config.parity = parity;
    silence_but(&one, heard);
    add(&one, 21, SKYT_OP_GET, 1);
    add(&one, 40, SKYT_OP_GET, 2);
    add(&one, 60, SKYT_OP_GET, 1);
    add(&one, 70, SKYT_OP_GET, 2);
    add(&one, 150, SKYT_OP_GET, 2);
    run(&one);
    for (uint32_t get = 1; get < 5u; ++get)
    {
        CHECK(one.results[get].cause == SKYT_CAUSE_EXPIRED || one.results[get].cause == SKYT_CAUSE_NOBODY ||
              one.results[get].cause == SKYT_CAUSE_UNREACHABLE);
    }
    CHECK_EQ(one.results[5].version, one.results[0].version);
}

static void test_too_many_are_cut_off(void)
{
    check_cut_off(SERVERS - 1u, SERVERS);
    for (uint32_t heard = 0; heard <= SERVERS; ++heard)
    {
        check_cut_off(1, heard);
    }
}

int main(void)
{
    RUN(test_a_deletion_with_a_dead_satellite);
    RUN(test_a_healed_partition_and_a_death);
    RUN(test_too_many_are_cut_off);
    return CHECK_RESULT();
}
