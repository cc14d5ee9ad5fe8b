/**
 * @file
 * A client whose system gives no random bytes any more: it begins no association, and says why. Without a keyring it goes on.
 */
#define _GNU_SOURCE
#include <sys/random.h>

#include "satellites.h"
#include "skyc_ground.h"

#define CHUNK   1000u
#define CALL_MS 20000u

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

static SKY_HostBlock_t a_block(void)
{
    SKY_HostBlock_t block = {0};

    fx_key(block.key, 1);
    block.stripe.block_len   = CHUNK;
    block.stripe.chunk_len   = CHUNK;
    block.stripe.chunk_total = 1;
    block.deadline_ms        = CALL_MS;
    block.data               = data;
    block.servers            = &servers[0];
    block.server_count       = 1;
    return block;
}

static void test_no_association_begins_with_a_word_that_can_be_guessed(void)
{
    static const uint8_t credential[SKY_CREDENTIAL_BYTES]        = {SKY_ROLE_HOST, 0, SKY_CREDENTIAL_ANY_TENANT};
    static const uint8_t keys[SATELLITES * SKY_CRYPTO_KEY_BYTES] = {1};
    const SKYC_Config_t  config                                  = {
                                          .packet_bytes = 1472, .credential = credential, .pair_keys = keys, .planes = 1, .slots = SATELLITES};

    for (gives_t now = GIVES_SOME; now <= GIVES_NONE; ++now)
    {
        SKY_HostBlock_t put = a_block(), get = a_block();
        SKYC_Counters_t counters;

        gives                 = GIVES_ALL;
        SKYC_Client_t *client = SKYC_Open(&config, NULL);

        CHECK(client != NULL);
        gives = now;
        CHECK_EQ(SKYC_Put(client, &put, 1), 0);
        CHECK_EQ(put.status, SKY_STATUS_NO_RANDOM);
        CHECK_EQ(SKYC_Get(client, &get, 1), 0);
        CHECK_EQ(get.status, SKY_STATUS_NO_RANDOM);
        CHECK(get.duration_us < CALL_MS * 1000u); /* at once, not at its deadline */
        SKYC_Counters(client, &counters);
        CHECK_EQ(counters.tx_packets, 0);
        CHECK(counters.no_random >= 2u);
        SKYC_Close(client);
    }
}

static void test_a_client_does_not_open_without_random_bytes(void)
{
    int error = 0;

    gives = GIVES_NONE;
    CHECK(SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, &error) == NULL);
}

static void test_without_a_keyring_it_goes_on(void)
{
    SKY_HostBlock_t put = a_block(), get = a_block();
    SKYC_Counters_t counters;

    gives                 = GIVES_ALL;
    SKYC_Client_t *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);

    gives = GIVES_NONE;
    CHECK_EQ(SKYC_Put(client, &put, 1), 0);
    CHECK_EQ(put.status, SKY_STATUS_DONE);
    CHECK_EQ(SKYC_Get(client, &get, 1), 0);
    CHECK_EQ(get.status, SKY_STATUS_DONE);
    SKYC_Counters(client, &counters);
    CHECK_EQ(counters.no_random, 0);
    SKYC_Close(client);
}

static void test_a_ground_takes_the_next_number_where_none_can_be_drawn(void)
{
    const uint64_t            endpoints[SATELLITES] = {servers[0].endpoint, servers[1].endpoint};
    const SKYC_GroundConfig_t config                = {.planes      = 1,
                                                       .slots       = SATELLITES,
                                                       .servers     = 1,
                                                       .operations  = 1,
                                                       .queued      = 1,
                                                       .chunk_bytes = CHUNK,
                                                       .endpoints   = endpoints};
    const SKYC_Config_t       client                = {0};
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
    RUN(test_a_client_does_not_open_without_random_bytes);
    RUN(test_without_a_keyring_it_goes_on);
    gives = GIVES_ALL;
    RUN(test_a_ground_takes_the_next_number_where_none_can_be_drawn);
    land(flight);
    return CHECK_RESULT();
}
