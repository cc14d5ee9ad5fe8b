/**
 * @file
 * For tests that call cFE's functions from the test's own thread: an executive without apps, and a name on its bus.
 */
#ifndef BENCH_APP_H
#define BENCH_APP_H

#include <string.h>

#include "check.h"
#include "exec.h"

static CFE_ES_AppId_t bench_app;

static void BenchUp(const EXEC_Config_t *config)
{
    char                why[128];
    const EXEC_Config_t quiet = {.spacecraft_id = 3010, .processor_id = 1, .quiet = true};
    CHECK(EXEC_Init(config != NULL ? config : &quiet));
    CHECK(EXEC_Start(1000, why, sizeof why));
    CHECK_EQ(EXEC_HostAppCreate(&bench_app, "BENCH"), CFE_SUCCESS);
    CHECK_EQ(EXEC_Enter(bench_app), CFE_SUCCESS);
}

static void BenchDown(void)
{
    EXEC_Leave();
    CHECK(EXEC_Stop(1000));
}

#endif
