/**
 * @file
 * Keys between satellites over the air: where they are kept, for how many generations, and what is refused.
 */
#include "associations_rig.h"
#include "rekey_rig.h"

#define PEERS_MAX 40u
#define SLOTS     10u

static SKY_RekeyState_t state;
static uint8_t          memory[SKY_REKEY_BANKS * PEERS_MAX * SKY_CRYPTO_KEY_BYTES];
static const SKY_Addr_t self = {3, 10};

static rekey_wrap_t wrap_under(uint8_t generation, const uint8_t *key)
{
    return (rekey_wrap_t){&rig.crypto, self, generation, key, NULL};
}

static SKY_Status_t load_bytes(const uint8_t *payload, uint32_t bytes, uint16_t slots)
{
    SKY_Rekey_t command;

    CHECK(SKY_Rekey_Decode(payload, bytes, &command));
    return SKY_RekeyPeers_Load(&state, &table, self, slots, &command);
}

static SKY_Status_t load_page(uint8_t generation, uint32_t first, uint32_t count)
{
    const rekey_wrap_t wrap = wrap_under(0, master);
    uint8_t            payload[REKEY_MOST_BYTES];
    const uint32_t     bytes = rekey_load_peers(&wrap, generation, first, count, payload);

    return load_bytes(payload, bytes, SLOTS);
}

/* Return the first byte of a key; 0 if there is none. */
static uint8_t key_with(uint16_t plane, uint16_t slot, uint8_t generation)
{
    uint8_t key[SKY_CRYPTO_KEY_BYTES];

    return SKY_RekeyPeers_Find(&state, (SKY_Addr_t){plane, slot}, generation, key) ? key[0] : 0;
}

static void start(void)
{
    open();
    (void)memset(memory, 0xFF, sizeof(memory));
    SKY_RekeyPeers_Init(&state, memory, PEERS_MAX);
}

static void test_pages_come_in_any_order(void)
{
    start();
    CHECK(!SKY_RekeyPeers_Has(&state, 1));
    CHECK_EQ(key_with(1, 1, 1), 0);
    CHECK_EQ(load_page(1, 32, 8), SKY_STATUS_OK);
    CHECK(SKY_RekeyPeers_Has(&state, 1));
    CHECK_EQ(key_with(4, 3, 1), 1);
    CHECK_EQ(key_with(4, 2, 1), 0); /* it did not come yet */
    CHECK_EQ(load_page(1, 0, 32), SKY_STATUS_OK);
    CHECK_EQ(load_page(1, 0, 32), SKY_STATUS_OK);
    for (uint16_t plane = 1; plane <= 5u; ++plane)
    {
        for (uint16_t slot = 1; slot <= SLOTS + 1u; ++slot)
        {
            CHECK_EQ(key_with(plane, slot, 1), plane <= 4u && slot <= SLOTS ? 1 : 0);
            CHECK_EQ(key_with(plane, slot, 2), 0);
        }
    }
    CHECK_EQ(key_with(UINT16_MAX, UINT16_MAX, 1), 0);
    crypto_rig_close(&rig);
}

static void test_only_what_fits_is_taken(void)
{
    start();
    CHECK_EQ(load_page(1, 39, 1), SKY_STATUS_OK);
    CHECK_EQ(load_page(1, 39, 2), SKY_STATUS_TOO_LARGE);
    CHECK_EQ(load_page(1, 40, 1), SKY_STATUS_TOO_LARGE);
    CHECK_EQ(load_page(1, UINT32_MAX, 32), SKY_STATUS_TOO_LARGE);
    SKY_RekeyPeers_Init(&state, NULL, 0);
    CHECK_EQ(load_page(1, 0, 1), SKY_STATUS_TOO_LARGE);
    CHECK(!SKY_RekeyPeers_Has(&state, 1));
    crypto_rig_close(&rig);
}

static void test_a_wrong_wrap_changes_nothing_and_is_counted(void)
{
    rekey_wrap_t wrap = wrap_under(0, newer);
    uint8_t      payload[REKEY_MOST_BYTES];
    uint32_t     bytes;

    start();
    CHECK_EQ(load_bytes(payload, rekey_load_peers(&wrap, 1, 0, 3, payload), SLOTS), SKY_STATUS_BAD_KEY);
    wrap                = wrap_under(0, master);
    wrap.satellite.slot = 9;
    CHECK_EQ(load_bytes(payload, rekey_load_peers(&wrap, 1, 0, 3, payload), SLOTS), SKY_STATUS_BAD_KEY);
    wrap  = wrap_under(0, master);
    bytes = rekey_load_peers(&wrap, 1, 0, 3, payload);
    CHECK_EQ(load_bytes(payload, bytes - SKY_CRYPTO_KEY_BYTES, SLOTS), SKY_STATUS_BAD_KEY); /* shortened */
    CHECK_EQ(state.wrong, 3);
    CHECK(!SKY_RekeyPeers_Has(&state, 1));
    wrap = wrap_under(1, newer);
    CHECK_EQ(load_bytes(payload, rekey_load_peers(&wrap, 1, 0, 3, payload), SLOTS), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(state.wrong, 3);
    crypto_rig_close(&rig);
}

static void test_generations_take_turns(void)
{
    start();
    CHECK_EQ(load_page(1, 0, 8), SKY_STATUS_OK);
    CHECK_EQ(load_page(2, 0, 8), SKY_STATUS_OK);
    CHECK_EQ(load_page(3, 0, 4), SKY_STATUS_OK); /* in the place of one that is not valid */
    CHECK(!SKY_RekeyPeers_Has(&state, 1));
    CHECK_EQ(key_with(1, 4, 3), 3);
    CHECK_EQ(key_with(1, 5, 3), 0); /* nothing is left of the others */
    CHECK(SKY_Associations_SetMaster(&table, 3, newer));
    CHECK_EQ(load_page(4, 0, 8), SKY_STATUS_OK);
    CHECK(SKY_RekeyPeers_Has(&state, 3)); /* its master key is valid */
    CHECK(!SKY_RekeyPeers_Has(&state, 2));
    CHECK_EQ(load_page(5, 0, 8), SKY_STATUS_OK);
    CHECK(SKY_RekeyPeers_Has(&state, 3) && !SKY_RekeyPeers_Has(&state, 4));
    CHECK_EQ(load_page(0, 0, 8), SKY_STATUS_OK); /* those of the key that wraps */
    CHECK_EQ(load_page(6, 0, 8), SKY_STATUS_STORE_FULL);
    CHECK_EQ(load_page(3, 8, 1), SKY_STATUS_OK);
    CHECK_EQ(key_with(1, 9, 3), 3);

    SKY_RekeyPeers_Forget(&state, &rig.crypto, 3);
    CHECK_EQ(key_with(1, 9, 3), 0);
    for (uint32_t i = 0; i < PEERS_MAX * SKY_CRYPTO_KEY_BYTES; ++i)
    {
        CHECK_EQ(memory[i], 0);
    }
    SKY_RekeyPeers_Forget(&state, &rig.crypto, 3);
    CHECK_EQ(load_page(6, 0, 8), SKY_STATUS_OK);
    crypto_rig_close(&rig);
}

static void test_keys_of_another_constellation_are_erased(void)
{
    const rekey_wrap_t wrap = wrap_under(0, master);
    uint8_t            payload[REKEY_MOST_BYTES];

    start();
    CHECK_EQ(load_page(1, 0, 20), SKY_STATUS_OK);
    CHECK_EQ(load_bytes(payload, rekey_load_peers(&wrap, 1, 2, 1, payload), 2), SKY_STATUS_OK);
    CHECK_EQ(key_with(2, 1, 1), 1);
    CHECK_EQ(key_with(1, 1, 1), 0);
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_pages_come_in_any_order);
    RUN(test_only_what_fits_is_taken);
    RUN(test_a_wrong_wrap_changes_nothing_and_is_counted);
    RUN(test_generations_take_turns);
    RUN(test_keys_of_another_constellation_are_erased);
    return CHECK_RESULT();
}
