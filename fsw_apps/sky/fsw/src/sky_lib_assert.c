/**
 * @file
 * The hook of assertions in flight: it counts and goes on. It has a file of its own, so that tests can link another.
 */
#include "sky_assert.h"
#include "sky_lib.h"

void SKY_AssertFailed(const char *file, int line)
{
    SKY_LIB_CountAssert(file, line);
}
