/**
 * @file
 * Ways around satellites and links that are down: nothing circles, nothing multiplies, and what is down costs no more than it must.
 */
#include "twin_rig.h"

/* With the rule that knows only its own links: hundreds of thousands of packets, each of which circled to its hop limit. */
static void test_copies_around_a_dead_satellite(void)
{
    SKYT_Counters_t whole, holed;
    Rig_t           rig;

    rig_init(&rig, 1);
    rig_fault(&rig, 60, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.duplicate_ppm = 100000;
    rig_run_sound(&rig, &whole);
    rig_init(&rig, 1);
    rig_dead_satellite(&rig, 100000);
    rig_run_sound(&rig, &holed);
    CHECK_EQ(holed.crashes, 1);
    CHECK(holed.packets < 2u * whole.packets);
    (void)printf("  %llu packets without, %llu with a dead satellite\n", (unsigned long long)whole.packets,
                 (unsigned long long)holed.packets);
}

/* Hellos are sent where something is to be learned, and nowhere else. */
static void test_calm_links_greet_nobody(void)
{
    SKYT_Counters_t whole, cut;
    Rig_t           rig;

    rig_init(&rig, 2);
    rig.op_count = 1;
    rig.ops[0]   = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig_run_sound(&rig, &whole);
    rig_fault(&rig, 100, SKYT_FAULT_CUT, node_at(3, 3), 1)->link = SKY_LINK_EAST;
    rig_fault(&rig, 190, SKYT_FAULT_CUT, node_at(3, 3), 0)->link = SKY_LINK_EAST;
    rig_run_sound(&rig, &cut);
    CHECK(cut.packets > whole.packets + 2u * NODES);           /* everybody was told of both ends, twice */
    CHECK(cut.packets < whole.packets + 4u * 4u * NODES * 2u); /* and over each link at most once each time */
}

/* Satellites that are cut off: what is for them is answered at once instead of being waited for, and others stand in for
 * them, which do not have what was lost. */
static void test_a_hole_of_several(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 4);
    for (uint32_t slot = 8; slot <= 10; ++slot)
    {
        (void)rig_fault(&rig, 100, SKYT_FAULT_CRASH, node_at(3, slot), 0);
    }
    (void)rig_fault(&rig, 100, SKYT_FAULT_CRASH, node_at(2, 9), 0);
    (void)rig_fault(&rig, 100, SKYT_FAULT_CRASH, node_at(4, 9), 0);
    for (uint32_t slot = 8; slot <= 10; ++slot)
    {
        (void)rig_fault(&rig, 220, SKYT_FAULT_RESTART, node_at(3, slot), 0);
    }
    (void)rig_fault(&rig, 220, SKYT_FAULT_RESTART, node_at(2, 9), 0);
    (void)rig_fault(&rig, 220, SKYT_FAULT_RESTART, node_at(4, 9), 0);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.crashes, 5);
    CHECK(counters.misses[SKYT_CAUSE_CRASHED] > 10u * counters.misses[SKYT_CAUSE_EXPIRED]);
}

/* A link that goes up and down every few seconds, with lost packets: news of it is bounded. */
static void test_a_link_that_flaps(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 5);
    rig.config.hello_ms = 1000;
    rig.op_count        = 1;
    rig.ops[0]          = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000, 0};
    for (uint32_t i = 0; i < 30u; ++i)
    {
        rig_fault(&rig, 20u + 10u * i, SKYT_FAULT_CUT, node_at(3, 3), 1)->link = SKY_LINK_EAST;
        rig_fault(&rig, 25u + 10u * i, SKYT_FAULT_CUT, node_at(3, 3), 0)->link = SKY_LINK_EAST;
    }
    rig_run_sound(&rig, &counters);
    /* 60 changes of two ends would be 120 floods over 190 links, there and back; beside hellos, and the servers' questions whether all
     * has arrived, it is a few. */
    CHECK(counters.packets < 30000u);
    (void)printf("  %llu packets\n", (unsigned long long)counters.packets);
}

int main(void)
{
    RUN(test_copies_around_a_dead_satellite);
    RUN(test_calm_links_greet_nobody);
    RUN(test_a_hole_of_several);
    RUN(test_a_link_that_flaps);
    return CHECK_RESULT();
}
