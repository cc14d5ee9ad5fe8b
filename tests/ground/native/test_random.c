/**
 * @file
 * A ground whose system gives no random bytes any more: it begins no association, and says why. Without a keyring it goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/random.h>

#include "grounds.h"

#define CHUNK 1000u

ssize_t __real_getrandom(void *bytes, size_t count, unsigned int flags);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);

typedef enum
{
    GIVES_ALL,
    GIVES_SOME,
    GIVES_NONE
} gives_t;

static gives_t gives;
static uint8_t data[CHUNK];

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    switch (gives)
    {
        case GIVES_ALL:
            return __real_getrandom(bytes, count, flags);
        case GIVES_SOME:
            return __real_getrandom(bytes, count - 1u, flags);
        default:
            errno = ENOSYS;
            return -1;
    }
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

static SKYC_Op_t a_move(SKY_GroundKind_t kind)
{
    return move_of(kind, 1, data, CHUNK, CHUNK);
}

static void test_no_association_begins_with_a_word_that_can_be_guessed(void)
{
    static const uint8_t      credential[SKY_CREDENTIAL_BYTES]        = {SKY_ROLE_HOST, 0, SKY_CREDENTIAL_ANY_TENANT};
    static const uint8_t      keys[SATELLITES * SKY_CRYPTO_KEY_BYTES] = {1};
    const SKYC_GroundConfig_t config                                  = ground_config(4, 16, CHUNK);
    const SKYC_Config_t       client                                  = {
                                               .packet_bytes = 1472, .credential = credential, .pair_keys = keys, .planes = 1, .slots = SATELLITES};

    for (gives_t now = GIVES_SOME; now <= GIVES_NONE; ++now)
    {
        SKYC_Counters_t counters;

        gives                 = GIVES_ALL;
        SKYC_Ground_t *ground = open_with(&config, &client);
        SKYC_Box_t    *box    = new_box(ground, false);

        follow(ground, (const uint16_t[]){1}, 1);
        gives = now;
        CHECK_EQ(ended(ground, box, a_move(SKY_GROUND_PUT)), SKY_STATUS_NO_RANDOM); /* at once, not at its deadline */
        CHECK_EQ(ended(ground, box, a_move(SKY_GROUND_GET)), SKY_STATUS_NO_RANDOM);
        SKYC_Ground_Counters(ground, &counters);
        CHECK_EQ(counters.tx_packets, 0);
        CHECK(counters.no_random >= 2u);
        SKYC_Box_Free(box);
        SKYC_Ground_Free(ground);
    }
}

static void test_without_a_keyring_it_goes_on(void)
{
    const SKYC_GroundConfig_t config = ground_config(4, 16, CHUNK);
    const SKYC_Config_t       client = {.packet_bytes = 1472};
    SKYC_Counters_t           counters;

    gives                 = GIVES_ALL;
    SKYC_Ground_t *ground = open_with(&config, &client);
    SKYC_Box_t    *box    = new_box(ground, false);

    follow(ground, (const uint16_t[]){1}, 1);
    gives = GIVES_NONE;
    CHECK_EQ(ended(ground, box, a_move(SKY_GROUND_PUT)), SKY_STATUS_DONE);
    CHECK_EQ(ended(ground, box, a_move(SKY_GROUND_GET)), SKY_STATUS_DONE);
    SKYC_Ground_Counters(ground, &counters);
    CHECK_EQ(counters.no_random, 0);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_a_ground_takes_the_next_number_where_none_can_be_drawn(void)
{
    const SKYC_GroundConfig_t config = ground_config(1, 1, CHUNK);
    const SKYC_Config_t       client = {0};
    SKYC_Counters_t           counters;
    int                       error = 0;

    gives = GIVES_NONE;
    CHECK(SKYC_Ground_Open(&config, &client, &error) == NULL && error != 0);
    gives                 = GIVES_ALL;
    SKYC_Ground_t *ground = SKYC_Ground_Open(&config, &client, &error);

    CHECK(ground != NULL);
    gives = GIVES_NONE;
    SKYC_Ground_Counters(ground, &counters);
    const uint64_t number = counters.host_number;

    SKYC_Ground_SetNumber(ground, 0);
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.host_number != number && counters.host_number != 0u);
    SKYC_Ground_Free(ground);
}

int main(void)
{
    gives                  = GIVES_ALL;
    const pthread_t flight = launch();

    RUN(test_no_association_begins_with_a_word_that_can_be_guessed);
    RUN(test_without_a_keyring_it_goes_on);
    gives = GIVES_ALL;
    RUN(test_a_ground_takes_the_next_number_where_none_can_be_drawn);
    land(flight);
    return CHECK_RESULT();
}
