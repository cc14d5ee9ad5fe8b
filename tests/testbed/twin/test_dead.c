/**
 * @file
 * The first put and the first get of a host while servers are dead: what they take, against a healthy sky.
 */
#include "sky_schedule.h"
#include "twin_rig.h"

#define SERVERS    12u
#define DEADLINE   5000u
#define HEALTHY_AT 4u  /* second at which all satellites still live */
#define DEAD_AT    60u /* second at which all satellites know the ways around the dead */

typedef struct
{
    uint32_t uplink, parity, values, look_up, dead;
} case_t;

/* One of the servers that dies: none of them is a way in. */
static uint32_t dead_at(uint32_t number)
{
    static const uint32_t servers[] = {2, 7};

    static SKY_ScheduleRow_t row;
    static SKY_Schedule_t    schedule;
    SKY_Torus_t              torus;

    row.centre.plane = 3;
    row.centre.slot  = 10;
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS, false));
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION_HOP, SERVERS, &row, 1, START_US));
    const SKY_Addr_t one = SKY_Schedule_Server(&schedule, 1, servers[number]);

    CHECK(one.plane != 3u || one.slot != 10u);

    return node_at(one.plane, one.slot);
}

static void add(Rig_t *rig, uint64_t at_s, SKYT_OpKind_t kind, uint32_t block, uint32_t host)
{
    const SKYT_Op_t op = {START_US + at_s * SECOND, (uint32_t)kind, block, host, DEADLINE, 0};

    rig->ops[rig->op_count++] = op;
}

/* Block 20, 16,000 bytes, is put by a host, then satellites die. Others then begin with a put, or a get, and go on with another. */
static void run(case_t one, uint64_t *took_us, uint32_t *causes)
{
    static Rig_t         rig;
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;
    uint32_t             count;

    rig_init(&rig, 1);
    rig.rows           = 1;
    rig.fetch_s        = 120;
    rig.config.hosts   = 4;
    rig.config.servers = SERVERS;
    rig.config.parity  = one.parity;
    rig.config.values  = one.values;
    rig.config.uplink  = one.uplink;
    rig.config.look_up = one.look_up;
    for (uint32_t i = 0; i < one.dead; ++i)
    {
        (void)rig_fault(&rig, HEALTHY_AT, SKYT_FAULT_CRASH, dead_at(i), 0);
    }
    add(&rig, 1, SKYT_OP_PUT, 20, 1);
    add(&rig, DEAD_AT, SKYT_OP_PUT, 21, 2);
    add(&rig, DEAD_AT, SKYT_OP_GET, 20, 3);
    add(&rig, DEAD_AT + 15u, SKYT_OP_PUT, 22, 2);
    add(&rig, DEAD_AT + 15u, SKYT_OP_GET, 21, 4);
    add(&rig, DEAD_AT + 30u, SKYT_OP_GET, 21, 4);
    SKYT_Twin_t *twin = rig_create(&rig);

    SKYT_Run(twin, START_US + 120u * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results = SKYT_Results(twin, &count);
    CHECK_EQ(count, rig.op_count);
    for (uint32_t i = 0; i < count; ++i)
    {
        took_us[i] = results[i].duration_us;
        causes[i]  = results[i].cause;
    }
    SKYT_Destroy(twin);
}

/* What an operation may take at most: twice what it takes while all live, and what is waited for a satellite that is late. */
static uint64_t most_us(uint64_t healthy_us)
{
    return 2u * healthy_us + healthy_us + healthy_us / 2u + SKY_HOST_RTO_MIN_US;
}

/* A put takes little longer with two of twelve dead than with none, the first of a host, too; and so does a get of what was put since, or of
 * what the code bears. */
static void test_the_dead_cost_little(void)
{
    for (uint32_t i = 0; i < 12u; ++i)
    {
        uint64_t healthy_us[6];
        uint32_t causes[6];
        case_t   one = {i / 4u % 2u, i / 2u % 2u * 2u, i < 8u ? i % 2u : 0u, i < 8u ? 0u : 1u, 0};

        run(one, healthy_us, causes);
        for (one.dead = 1; one.dead <= 2u; ++one.dead)
        {
            uint64_t took_us[6];

            run(one, took_us, causes);
            CHECK(took_us[1] <= most_us(healthy_us[1]) && causes[1] == SKYT_CAUSE_NONE);
            CHECK(took_us[3] <= 2u * healthy_us[3] && causes[3] == SKYT_CAUSE_NONE); /* it is known by now who is dead */
            CHECK(one.values == 1u || one.parity == 0u || (took_us[2] <= most_us(healthy_us[2]) && causes[2] == SKYT_CAUSE_NONE));
            CHECK(took_us[2] <
                  2u * SECOND); /* without parity it ends once it is known that nobody has the share: of a value the dead may */
            CHECK_EQ(causes[2], one.parity > 0u ? SKYT_CAUSE_NONE : one.values == 1u ? SKYT_CAUSE_NOBODY : SKYT_CAUSE_CRASHED);
            /* With a look-up it asks for the blocks of a prompt, and of those that are not there all have to speak. */
            CHECK(one.values == 1u || one.look_up == 1u || took_us[4] <= most_us(healthy_us[4]));
            CHECK(causes[4] == SKYT_CAUSE_NONE && causes[5] == SKYT_CAUSE_NONE);
        }
    }
}

int main(void)
{
    RUN(test_the_dead_cost_little);
    return CHECK_RESULT();
}
