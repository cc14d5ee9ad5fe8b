/**
 * @file
 * The hook of assertions in tests and fuzz targets: it says where, and ends the process.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sky_assert.h"

void SKY_AssertFailed(const char *file, int line)
{
    (void)fflush(stdout); /* which case it was */
    (void)fprintf(stderr, "%s:%d: assertion failed\n", file, line);
    abort();
}
