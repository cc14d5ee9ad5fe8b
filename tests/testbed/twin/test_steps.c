/**
 * @file
 * A value, or its deletion, is put while one of its homes is cut off, so that a stand-in keeps what that home misses. Each packet from then on is
 * lost, one in each run. Whichever it is, the put is done, no get brings the older version, and in the end the home has the newest one.
 */
#include "twin_rig.h"

#define SIDE       5u /* planes, and satellites of each: a small sky, as there are many runs */
#define SATELLITES (SIDE * SIDE)
#define CENTRE     14u /* satellite that hosts send to */
#define VALUE      0u
#define CUT_S      17u
#define PUT_S      20u
#define GET_S      24u
#define BACK_S     26u
#define AGAIN_S    34u
#define CALM_S     35u            /* from here on nothing is lost on purpose */
#define END_S      (BACK_S + 75u) /* what has gone home stays for a minute more */
#define LEAST      100u           /* runs: so many packets there are at least */

typedef struct
{
    uint64_t lost;             /* packets */
    uint64_t newest;           /* version that was put last */
    uint64_t held[SATELLITES]; /* versions, in the end */
} Outcome_t;

static void cut_off(Rig_t *rig, uint64_t at_s, uint32_t satellite, bool is_cut)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        rig_fault(rig, at_s, SKYT_FAULT_CUT, satellite, is_cut ? 1u : 0u)->link = link;
    }
}

static void set_up(Rig_t *rig, SKYT_OpKind_t kind, SKYT_Scheduled_t scheduled)
{
    const SKYT_Op_t ops[] = {{START_US + 5u * SECOND, SKYT_OP_PUT, VALUE, 1, 5000, 0},
                             {START_US + PUT_S * SECOND, (uint32_t)kind, VALUE, 1, 5000, 0},
                             {START_US + GET_S * SECOND, SKYT_OP_GET, VALUE, 2, 5000, 0},
                             {START_US + AGAIN_S * SECOND, SKYT_OP_GET, VALUE, 2, 5000, 0}};

    rig_init(rig, 1);
    rig->rows               = 1;
    rig->config.planes      = SIDE;
    rig->config.slots       = SIDE;
    rig->config.servers     = 9;
    rig->config.parity      = 2;
    rig->config.values      = 1;
    rig->config.slot_count  = 16;
    rig->config.packets_max = 512;
    rig->config.hello_ms    = 1000;
    rig->config.scheduled   = (uint32_t)scheduled;
    rig->op_count           = sizeof(ops) / sizeof(ops[0]);
    (void)memcpy(rig->ops, ops, sizeof(ops));
}

/* Run to the end. All operations end well, and gets bring the newest version. */
static void run(Rig_t *rig, Outcome_t *outcome)
{
    SKYT_Twin_t         *twin  = rig_create(rig);
    uint32_t             count = 0;
    const SKYT_Result_t *results;
    SKYT_Counters_t      counters;

    SKYT_Run(twin, START_US + END_S * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK_EQ(violations_of(&counters), 0);
    results         = SKYT_Results(twin, &count);
    outcome->lost   = counters.lost;
    outcome->newest = results[1].version;
    CHECK(results[1].version > results[0].version);
    CHECK_EQ(results[2].version, outcome->newest);
    CHECK_EQ(results[3].version, outcome->newest);
    for (uint32_t satellite = 0; satellite < SATELLITES; ++satellite)
    {
        outcome->held[satellite] = SKYT_VersionAt(twin, satellite, VALUE);
    }
    SKYT_Destroy(twin);
}

/* In the end all is as it would be had nothing happened: the homes have the newest version, and nobody else has. Servers that are no homes of a
 * deletion keep the older version, for which nobody asks them. */
static void lose_each(SKYT_OpKind_t kind, SKYT_Scheduled_t scheduled)
{
    uint32_t  home   = 0;
    uint32_t  number = 0;
    Outcome_t calm;
    Outcome_t outcome;
    Rig_t     rig;

    set_up(&rig, kind, scheduled);
    run(&rig, &calm);
    while (home + 1u < SATELLITES && (calm.held[home] != calm.newest || home == CENTRE))
    {
        ++home;
    }
    do
    {
        set_up(&rig, kind, scheduled);
        cut_off(&rig, CUT_S, home, true);
        rig_fault(&rig, PUT_S, SKYT_FAULT_DROP, 0, ++number);
        cut_off(&rig, BACK_S, home, false);
        rig_fault(&rig, CALM_S, SKYT_FAULT_DROP, 0, 0);
        run(&rig, &outcome);
        for (uint32_t satellite = 0; satellite < SATELLITES; ++satellite)
        {
            const bool is_home = calm.held[satellite] == calm.newest;

            CHECK_EQ(outcome.held[satellite], is_home ? outcome.newest : calm.held[satellite]);
        }
    } while (outcome.lost > 0);
    CHECK(number > LEAST);
}

static void test_a_value_that_its_home_has_missed(void)
{
    lose_each(SKYT_OP_PUT, SKYT_SCHEDULED_NOBODY);
    lose_each(SKYT_OP_PUT, SKYT_SCHEDULED_ALL);
}

static void test_a_deletion_that_its_home_has_missed(void)
{
    lose_each(SKYT_OP_DELETE, SKYT_SCHEDULED_NOBODY);
    lose_each(SKYT_OP_DELETE, SKYT_SCHEDULED_ALL);
}

int main(void)
{
    RUN(test_a_value_that_its_home_has_missed);
    RUN(test_a_deletion_that_its_home_has_missed);
    return CHECK_RESULT();
}
