/**
 * @file
 * ISL without a cryptographic library: a satellite that has a key does not start, as it would serve everybody.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app_rig.h"
#include "isl_security.h"

#define HEAD_BYTES 16u
#define SATELLITES 9u

static rig_t rig;
static char  port[8];
static char  file[] = "/tmp/skymem-keys-XXXXXX";

/* Write a key file of satellite (2, 2) of 3 x 3: docs/cfs-integration.md. */
static void write_keys(void)
{
    static const uint8_t head[HEAD_BYTES] = {'S', 'K', 'Y', 'K', 1, 0, 0, 3, 0, 3, 0, 2, 0, 2};
    static uint8_t       keys[(SATELLITES + 1u) * ISL_KEY_BYTES];
    const int            fd = mkstemp(file);

    (void)memset(keys, 7, sizeof(keys));
    CHECK(write(fd, head, sizeof(head)) == (ssize_t)sizeof(head));
    CHECK(write(fd, keys, sizeof(keys)) == (ssize_t)sizeof(keys));
    (void)close(fd);
}

/* Start the satellite. @param keys  its key file, NULL: none. @return true if it runs */
static bool starts(const char *keys)
{
    const char *const argv[]                   = {"skysat", "--plane",     "2", "--slot", "2",  "--planes", "3", "--slots",
                                                  "3",      "--store-mib", "1", "--port", port, "--keys",   keys};
    char              why[SATELLITE_WHY_BYTES] = "";
    SKYSAT_Options_t  options;

    CHECK(SKYSAT_ParseOptions(keys != NULL ? 15 : 13, argv, &options, why, sizeof(why)));
    CHECK(SATELLITE_Init(&options, true, why, sizeof(why)));
    if (!SATELLITE_Start(why, sizeof(why)))
    {
        (void)printf("no satellite: %s\n", why);
        return false;
    }
    return true;
}

static void test_with_a_key_it_does_not_start(void)
{
    CHECK(!starts(file));
    (void)SATELLITE_Stop();
}

static void test_without_a_key_it_starts_and_takes_none(void)
{
    ISL_KeysTable_t keys;

    CHECK(starts(NULL));
    (void)memset(&keys, 0, sizeof(keys));
    CHECK_EQ(ISL_Security_ValidateKeys(&keys), CFE_SUCCESS);
    keys.Master[1].IsSet = 1;
    CHECK(ISL_Security_ValidateKeys(&keys) != CFE_SUCCESS);
    CHECK(SATELLITE_Stop());
}

int main(void)
{
    bool is_bound = false;

    for (int i = 0; i < RIG_TRIES && !is_bound; ++i)
    {
        is_bound = rig_bind(&rig);
    }
    CHECK(is_bound);
    (void)snprintf(port, sizeof(port), "%u", rig.port);
    write_keys();
    RUN(test_with_a_key_it_does_not_start);
    RUN(test_without_a_key_it_starts_and_takes_none);
    (void)unlink(file);
    rig_close_sockets(&rig);
    return CHECK_RESULT();
}
