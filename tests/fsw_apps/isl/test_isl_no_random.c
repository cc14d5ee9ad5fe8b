/**
 * @file
 * ISL without random bytes, as getrandom fails: a satellite that has a key does not start, and one that has none says that its cookies
 * can be guessed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "app_rig.h"
#include "isl_eventids.h"

#define HEAD_BYTES 16u
#define SATELLITES 9u

static rig_t  rig;
static char   file[] = "/tmp/skymem-keys-XXXXXX";
static bool   is_short;
static size_t asked;

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);

/* The kernel has none, or not as many as it was asked for. */
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    (void)flags;
    asked += count;
    (void)memset(bytes, 0, count);
    return is_short ? (ssize_t)count - 1 : -1;
}

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

static void test_with_a_key_it_does_not_start(void)
{
    static const char *const argv[] = {"skysat", "--plane",     "2", "--slot", "2",    "--planes", "3", "--slots",
                                       "3",      "--store-mib", "1", "--port", "4919", "--keys",   file};
    char                     why[SATELLITE_WHY_BYTES] = "";
    SKYSAT_Options_t         options;

    CHECK(SKYSAT_ParseOptions((int)(sizeof(argv) / sizeof(argv[0])), argv, &options, why, sizeof(why)));
    options.port = rig.port;
    for (unsigned i = 0; i < 2u; ++i)
    {
        is_short = i == 1u;
        asked    = 0;
        CHECK(SATELLITE_Init(&options, true, why, sizeof(why)));
        CHECK(!SATELLITE_Start(why, sizeof(why)));
        (void)SATELLITE_Stop();
        CHECK(asked > 0);
    }
}

static void test_without_a_key_it_says_so_and_takes_none(void)
{
    static const char *const options[] = {"--hello-s", "0", NULL};
    const SKY_Packet_t       plain     = rig_request(&rig, SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t             pkt       = plain;
    SKY_Packet_t             answer;
    ISL_KeysTable_t          keys;

    if (!rig_open(&rig, options))
    {
        return;
    }
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "cannot be secured: there is no source of random bytes");
    pkt.cookie = rig.cookie;
    CHECK_EQ(rig_ask(&rig, &plain, &answer), SKY_STATUS_COOKIE); /* it asks for cookies, as good as they are */
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_OK);
    (void)memset(&keys, 0, sizeof(keys));
    keys.Master[1].IsSet = 1;
    rig_table_load("ISL.Keys", &keys, sizeof(keys));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "IsSet is 1, allowed 0, as links cannot be secured");
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_OK);
    rig_close(&rig);
}

int main(void)
{
    bool is_bound = false;

    for (int i = 0; i < RIG_TRIES && !is_bound; ++i)
    {
        is_bound = rig_bind(&rig);
    }
    CHECK(is_bound);
    write_keys();
    RUN(test_with_a_key_it_does_not_start);
    (void)unlink(file);
    rig_close_sockets(&rig);
    RUN(test_without_a_key_it_says_so_and_takes_none);
    return CHECK_RESULT();
}
