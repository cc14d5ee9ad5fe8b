/**
 * @file
 * A ground whose system cannot bundle datagrams, or whose path takes no large packets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "grounds.h"

#define CHUNK      1000u
#define CHUNKS     60u
#define LARGE      6000u
#define PATH_BYTES 1500

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);

static bool    bundles = true;
static uint8_t up[CHUNKS * CHUNK], down[CHUNKS * CHUNK];

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    if (!bundles && level == IPPROTO_UDP)
    {
        errno = ENOPROTOOPT;
        return -1;
    }
    return __real_setsockopt(fd, level, name, value, bytes);
}

static void before_responses(uint32_t satellite)
{
    (void)satellite;
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    (void)satellite;
    (void)response;
    return true;
}

static SKYC_Ground_t *open_ground(const SKYC_Config_t *client)
{
    const SKYC_GroundConfig_t config = ground_config(4, 16, CHUNK);
    SKYC_Ground_t            *ground = open_with(&config, client);

    follow(ground, (const uint16_t[]){1}, 1);
    return ground;
}

static void test_without_bundles_and_with_a_small_receive_buffer(void)
{
    SKYC_Counters_t counters;

    bundles               = false;
    SKYC_Ground_t *ground = open_ground(&(SKYC_Config_t){.packet_bytes = 1472, .receive_bytes = 65536});
    SKYC_Box_t    *box    = new_box(ground, false);

    CHECK_EQ(ended(ground, box, move_of(SKY_GROUND_PUT, 1, up, sizeof(up), CHUNK)), SKY_STATUS_DONE);
    CHECK_EQ(ended(ground, box, move_of(SKY_GROUND_GET, 1, down, sizeof(down), CHUNK)), SKY_STATUS_DONE);
    CHECK(memcmp(up, down, sizeof(up)) == 0);
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.tx_offload == 0 && counters.rx_offload == 0);
    CHECK(counters.rx_bad == 0 && counters.tx_failed == 0);
    CHECK(counters.receive_buffer_bytes < UINT64_C(1) << 20);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
    bundles = true;
}

/* A packet is never cut by IP: it would be lost with each part. A bundle that fails because its packets are too large does not speak
 * against bundles. */
static void test_packets_that_the_path_does_not_take_end_the_block_at_once(void)
{
    uint64_t offload[2];

    for (uint32_t i = 0; i < 2; ++i)
    {
        SKYC_Ground_t  *ground = open_ground(&(SKYC_Config_t){0});
        SKYC_Box_t     *box    = new_box(ground, false);
        SKYC_Op_t       op     = move_of(SKY_GROUND_PUT, 2, up, i == 0 ? LARGE : 5u * LARGE, LARGE);
        SKYC_Counters_t counters;

        op.core.deadline_ms = 60000;
        CHECK_EQ(status_of(ground, box, &op), SKY_STATUS_TOO_LARGE);
        CHECK_EQ(op.core.block.last_status, SKY_STATUS_TOO_LARGE);
        SKYC_Op_End(&op);
        SKYC_Ground_Counters(ground, &counters);
        offload[i] = counters.tx_offload;
        CHECK(counters.tx_failed > 0);
        SKYC_Box_Free(box);
        SKYC_Ground_Free(ground);
    }
    CHECK_EQ(offload[0], offload[1]);
}

/* Go into a network of this process alone, whose path takes packets of PATH_BYTES. @return false if this user may not */
static bool leave_for_a_small_path(void)
{
    struct ifreq lo = {.ifr_name = "lo"};

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    {
        return false;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);

    lo.ifr_mtu   = PATH_BYTES;
    bool is_done = ioctl(fd, SIOCSIFMTU, &lo) == 0 && ioctl(fd, SIOCGIFFLAGS, &lo) == 0;

    lo.ifr_flags = (short)(lo.ifr_flags | IFF_UP);
    is_done      = is_done && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    (void)close(fd);
    CHECK(is_done);
    return is_done;
}

int main(void)
{
    const bool is_small = leave_for_a_small_path(); /* before there are threads */

    const pthread_t flight = launch();

    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(1u + i % 255u);
    }
    RUN(test_without_bundles_and_with_a_small_receive_buffer);
    if (is_small)
    {
        RUN(test_packets_that_the_path_does_not_take_end_the_block_at_once);
    }
    land(flight);
    return CHECK_RESULT();
}
