/**
 * @file
 * Hook of the core's assertions in the ground's library. A cache never breaks a generation: the engine that loaded this library is
 * told once, on standard error, and goes on.
 */
#include <stdbool.h>
#include <stdio.h>

#include "sky_assert.h"

void SKY_AssertFailed(const char *file, int line)
{
    static bool told;

    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
    {
        (void)fprintf(stderr, "skymemory: assertion failed at %s:%d. The cache goes on, but this is a fault: please report it\n",
                      file, line);
    }
}
