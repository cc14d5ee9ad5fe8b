/**
 * @file
 * Erasing secrets.
 */
#include "sky_wipe.h"

#include <string.h>

#include "check.h"

static void test_all_bytes_are_zeros_and_no_others(void)
{
    unsigned char bytes[10];

    for (size_t count = 0; count <= 8u; ++count)
    {
        (void)memset(bytes, 0xEE, sizeof(bytes));
        SKY_Wipe(bytes + 1, count);
        for (size_t i = 0; i < sizeof(bytes); ++i)
        {
            CHECK_EQ(bytes[i], i >= 1u && i <= count ? 0 : 0xEE);
        }
    }
    SKY_Wipe(NULL, 0);
}

int main(void)
{
    RUN(test_all_bytes_are_zeros_and_no_others);
    return CHECK_RESULT();
}
