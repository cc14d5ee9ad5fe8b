/**
 * @file
 * The hook of assertions in the twin: it names run and place, and ends the process.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sky_assert.h"
#include "twin_priv.h"

static const SKYT_Twin_t *watched; /* NULL: no twin has run yet */

void SKYT_Assert_Watch(const SKYT_Twin_t *twin)
{
    watched = twin;
}

void SKY_AssertFailed(const char *file, int line)
{
    if (watched != NULL)
    {
        (void)fprintf(stderr, "twin: seed %" PRIu64 ", %" PRIu64 " us after its start: ", watched->config.seed,
                      watched->now_us - watched->config.start_us);
    }
    (void)fprintf(stderr, "assertion failed at %s:%d\n", file, line);
    abort();
}
