/**
 * @file
 * Operations that their hosts call back, at any time: what must hold goes on holding, and all that is not called back goes on.
 */
#include "twin_rig.h"

static void check_sound(Rig_t *rig, uint32_t cancel_ppm)
{
    SKYT_Counters_t counters;

    rig->config.cancel_ppm = cancel_ppm;
    rig_run_sound(rig, &counters);
    CHECK(counters.misses[SKYT_CAUSE_CANCELLED] > 0);
    CHECK(counters.puts + counters.gets + counters.purges >= OPS_MAX); /* and lazy purges */
}

static void test_some_are_called_back_while_the_sky_turns(void)
{
    Rig_t rig;

    for (uint64_t seed = 1; seed < 4u; ++seed)
    {
        rig_init(&rig, seed);
        rig.config.lazy_purge = 1;
        rig.config.look_up    = 3;
        rig.config.ask_first  = 4;
        rig_dead_satellite(&rig, 10000);
        check_sound(&rig, 300000);
        rig_init(&rig, seed);
        rig.config.parity = 2;
        rig.config.values = 2;
        rig_dead_satellite(&rig, 10000);
        check_sound(&rig, 300000);
    }
}

static void test_all_are_called_back(void)
{
    Rig_t    rig;
    uint32_t count  = 0;
    uint32_t called = 0;

    rig_init(&rig, 5);
    rig.config.cancel_ppm        = 1000000;
    SKYT_Twin_t         *twin    = rig_create(&rig);
    const SKYT_Result_t *results = SKYT_Results(twin, &count);

    SKYT_Run(twin, START_US + (rig.fetch_s + 100u) * SECOND);
    CHECK_EQ(count, rig.op_count);
    for (uint32_t op = 0; op < count; ++op)
    {
        CHECK_EQ(results[op].ended, 1);
        called += results[op].cause == SKYT_CAUSE_CANCELLED ? 1u : 0u;
    }
    CHECK(called > OPS_MAX / 4u);
    CHECK(called < OPS_MAX); /* some had ended before */
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(test_some_are_called_back_while_the_sky_turns);
    RUN(test_all_are_called_back);
    return CHECK_RESULT();
}
