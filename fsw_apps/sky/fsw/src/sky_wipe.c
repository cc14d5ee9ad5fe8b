/**
 * @file
 * Erasing secrets: see sky_wipe.h.
 */
#include "sky_wipe.h"

#include "sky_assert.h"

void SKY_Wipe(void *secret, size_t bytes)
{
    volatile unsigned char *at = secret; /* each write to it counts as seen by others */

    SKY_ASSERT(secret != NULL || bytes == 0u);
    for (size_t i = 0; i < bytes; ++i)
    {
        at[i] = 0;
    }
}
