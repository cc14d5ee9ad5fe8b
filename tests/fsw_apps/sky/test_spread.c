/**
 * @file
 * sky_spread.c: which server has which chunks.
 */
#include "check.h"
#include "fixture.h"
#include "sky_spread.h"
#include "sky_stripe.h"

#define SERVERS_MAX 1024u

static uint64_t random_state = 1;

static void random_key(uint8_t *key)
{
    for (uint32_t i = 0; i < SKY_KEY_BYTES; ++i)
    {
        key[i] = (uint8_t)fx_below(&random_state, 256);
    }
}

/* Seven rows of twelve are a small block, one chunk more is a large one, whatever its key. */
static void test_a_block_of_eight_rows_begins_at_server_0(void)
{
    uint8_t key[SKY_KEY_BYTES];

    (void)memset(key, 0xFF, sizeof(key));
    CHECK_EQ(SKY_Spread_OfKey(key, 12), 11);
    CHECK_EQ(SKY_Spread_Offset(key, 1, 12), 11);
    CHECK_EQ(SKY_Spread_Offset(key, 84, 12), 11);
    CHECK_EQ(SKY_Spread_Offset(key, 85, 12), 0);
    CHECK_EQ(SKY_Spread_Offset(key, UINT32_MAX, 12), 0);
    for (uint32_t id = 0; id < 85; ++id)
    {
        CHECK_EQ(SKY_Spread_Server(key, 85, 12, id), id % 12);
        CHECK_EQ(SKY_Spread_Server(key, 84, 12, id), (id + 11) % 12);
    }
    CHECK_EQ(SKY_Spread_Server(key, UINT32_MAX, SERVERS_MAX, UINT32_MAX - 1u), (UINT32_MAX - 1u) % SERVERS_MAX);
}

/* The first four bytes of the key say where, the others do not matter: satellites and hosts of any byte order agree. */
static void test_the_first_bytes_of_the_key_say_where(void)
{
    uint8_t key[SKY_KEY_BYTES];

    (void)memset(key, 0, sizeof(key));
    CHECK_EQ(SKY_Spread_OfKey(key, 12), 0);
    (void)memset(&key[4], 0xFF, sizeof(key) - 4u);
    CHECK_EQ(SKY_Spread_OfKey(key, SERVERS_MAX), 0);
    key[0] = 0x80;
    CHECK_EQ(SKY_Spread_OfKey(key, 12), 6);
    CHECK_EQ(SKY_Spread_OfKey(key, SERVERS_MAX), 512);
    key[0] = 0;
    key[1] = 0x40;
    CHECK_EQ(SKY_Spread_OfKey(key, SERVERS_MAX), 1);
    key[1] = 0x3F;
    CHECK_EQ(SKY_Spread_OfKey(key, SERVERS_MAX), 0);
    key[2] = 0xFF; /* 0x3FFFFF.. of 2^32 is just below a 1024th of it */
    key[3] = 0xFF;
    CHECK_EQ(SKY_Spread_OfKey(key, SERVERS_MAX), 0);
    CHECK_EQ(SKY_Spread_OfKey(key, 1), 0);
}

/* Share and server are inverse, for any block and any number of servers; chunks of a share are at one server, those of a row are not. */
static void test_shares_and_servers_are_inverse(void)
{
    for (uint32_t round = 0; round < 20000; ++round)
    {
        const uint32_t servers = 1u + fx_below(&random_state, round % 2u == 0 ? 20 : SERVERS_MAX);
        const uint32_t total   = 1u + fx_below(&random_state, 10u * servers);
        const uint32_t id      = fx_below(&random_state, total);
        uint8_t        key[SKY_KEY_BYTES];

        random_key(key);
        const uint32_t server = SKY_Spread_Server(key, total, servers, id);

        CHECK(server < servers);
        CHECK_EQ(SKY_Spread_Share(key, total, servers, server), id % servers);
        CHECK_EQ(SKY_Spread_Server(key, total, servers, id + servers), server);
        CHECK_EQ(SKY_Spread_Server(key, total, servers, id + 1u), (server + 1u) % servers);
        CHECK_EQ(SKY_Spread_Server(key, total, servers, 0), SKY_Spread_Offset(key, total, servers));
    }
}

/* Where nobody knows the length, the servers from the offset of the key on have a chunk of the block, large or small. */
static void test_who_knows_the_key_alone_finds_the_block(void)
{
    for (uint32_t round = 0; round < 20000; ++round)
    {
        const uint32_t servers = 2u + fx_below(&random_state, 20);
        const uint8_t  parity  = (uint8_t)fx_below(&random_state, servers < 5u ? servers : 5u);
        const uint8_t  data    = parity == 0 ? 0 : (uint8_t)(servers - parity);
        const uint32_t chunk   = 1u + fx_below(&random_state, 100);
        SKY_Stripe_t   stripe;
        uint8_t        key[SKY_KEY_BYTES];

        random_key(key);
        CHECK(SKY_Stripe_Cut(&stripe, 1u + fx_below(&random_state, chunk * servers * 10u), chunk, data, parity));
        for (uint32_t i = 0; i <= parity; ++i)
        {
            const uint32_t server = (SKY_Spread_OfKey(key, servers) + i) % servers;

            CHECK(SKY_Spread_Share(key, stripe.chunk_total, servers, server) < stripe.chunk_total);
        }
    }
}

/* No server has more than a few percent more than another. */
static void test_small_blocks_fill_all_servers_alike(void)
{
    static const uint32_t numbers[] = {3, 10, 12, 20};

    for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
    {
        const uint32_t servers  = numbers[i];
        uint32_t       held[20] = {0};

        for (uint32_t block = 0; block < 60000; ++block)
        {
            uint8_t key[SKY_KEY_BYTES];

            random_key(key);
            for (uint32_t id = 0; id < 3; ++id)
            {
                ++held[SKY_Spread_Server(key, 3, servers, id)];
            }
        }
        for (uint32_t server = 0; server < servers; ++server)
        {
            CHECK(held[server] > 60000u * 3u / servers * 95u / 100u);
            CHECK(held[server] < 60000u * 3u / servers * 105u / 100u);
        }
    }
}

int main(void)
{
    RUN(test_a_block_of_eight_rows_begins_at_server_0);
    RUN(test_the_first_bytes_of_the_key_say_where);
    RUN(test_shares_and_servers_are_inverse);
    RUN(test_who_knows_the_key_alone_finds_the_block);
    RUN(test_small_blocks_fill_all_servers_alike);
    return CHECK_RESULT();
}
