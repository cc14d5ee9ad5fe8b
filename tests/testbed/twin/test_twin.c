/**
 * @file
 * The twin as a whole: runs repeat exactly, nothing is missed without faults.
 */
#include "twin_rig.h"

static void test_nothing_is_missed_without_faults(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 1);
    rig_run(&rig, SKYT_BREAK_NOTHING, &counters);
    CHECK_EQ(counters.puts, BLOCKS);
    CHECK_EQ(counters.puts_failed, 0);
    CHECK_EQ(counters.gets, GETS);
    CHECK_EQ(counters.hits, GETS);
    CHECK_EQ(counters.handovers, 5);
    CHECK_EQ(violations_of(&counters), 0);
    CHECK_EQ(counters.blocks_checked, BLOCKS);
    CHECK_EQ(counters.blocks_misplaced, 0);
    CHECK(counters.migrated_chunks > 0);
    CHECK_EQ(counters.packets_on_way, 0);
    (void)printf("events %llu packets %llu migrated %llu fallback %llu misses", (unsigned long long)counters.events,
                 (unsigned long long)counters.packets, (unsigned long long)counters.migrated_chunks,
                 (unsigned long long)counters.fallback_hits);
    for (uint32_t i = 0; i < SKYT_CAUSES; ++i)
        (void)printf(" %llu", (unsigned long long)counters.misses[i]);
    (void)printf("\n");
}

int main(void)
{
    RUN(test_nothing_is_missed_without_faults);
    return CHECK_RESULT();
}
