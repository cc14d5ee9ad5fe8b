/**
 * @file
 * Master keys over the air: what a satellite takes, when it is valid, and what is refused and changes nothing.
 */
#include "associations_rig.h"
#include "rekey_rig.h"

#define NOBODY 9u /* a generation that no sender is of */

static SKY_RekeyState_t state;
static const SKY_Addr_t self                         = {3, 10};
static const uint8_t    newest[SKY_CRYPTO_KEY_BYTES] = {3, 3, 3};
static const uint8_t    no_secret[sizeof(state.waiting)]; /* zeros */

static SKY_Status_t act(uint8_t sender, const uint8_t *payload, size_t bytes)
{
    SKY_Rekey_t command;

    return SKY_Rekey_Decode(payload, bytes, &command) ? SKY_Rekey_Act(&state, &table, self, sender, &command) : SKY_STATUS_BAD_OP;
}

static SKY_Status_t command(uint8_t sender, uint8_t what, uint8_t generation)
{
    uint8_t payload[SKY_REKEY_BYTES];

    return act(sender, payload, rekey_command(what, generation, payload));
}

static rekey_wrap_t under_key(uint8_t under, const uint8_t *key)
{
    return (rekey_wrap_t){&rig.crypto, self, under, key, NULL};
}

static SKY_Status_t load_wrapped(const rekey_wrap_t *wrap, uint8_t generation, const uint8_t *key)
{
    uint8_t payload[REKEY_LOAD_BYTES];

    return act(wrap->generation, payload, rekey_load(wrap, generation, key, payload));
}

static SKY_Status_t load_key(uint8_t under, const uint8_t *under_which, uint8_t generation, const uint8_t *key)
{
    const rekey_wrap_t wrap = under_key(under, under_which);

    return load_wrapped(&wrap, generation, key);
}

static bool associates(uint8_t generation, uint8_t number)
{
    const SKY_HandshakeRequest_t request = a_request(0, generation, number);
    SKY_HandshakeResponse_t      response;
    uint8_t                      pair[SKY_CRYPTO_KEY_BYTES];

    return SKY_Associations_PairKey(&table, &request.credential, pair) &&
           SKY_Associations_Begin(&table, &request, pair, &somewhere, 1, &response) != NULL;
}

static bool waits(void)
{
    return memcmp(&state.waiting, no_secret, sizeof(no_secret)) != 0;
}

static void start(void)
{
    open();
    (void)memset(&state, 0, sizeof(state));
}

static void test_a_key_is_loaded_activated_and_takes_over(void)
{
    start();
    CHECK(associates(0, 1));
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK(!associates(1, 2)); /* it waits */
    CHECK(!SKY_Associations_HasMaster(&table, 1));
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK(!waits()); /* there is no second copy of it */
    CHECK(associates(1, 2));
    CHECK(associates(0, 3)); /* both are valid */
    CHECK_EQ(table.half_open, 3);
    CHECK(memcmp(table.masters[1].key, newer, sizeof(newer)) == 0);

    CHECK_EQ(command(1, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
    CHECK_EQ(table.half_open, 1);
    CHECK(!associates(0, 4));
    CHECK(associates(1, 2));
    CHECK(memcmp(&table.masters[0], no_secret, sizeof(table.masters[0])) == 0);
    CHECK_EQ(state.wrong + state.kept, 0);

    CHECK_EQ(load_key(1, newer, 7, newest), SKY_STATUS_OK); /* generations may be left out */
    CHECK_EQ(command(1, SKY_REKEY_ACTIVATE, 7), SKY_STATUS_OK);
    CHECK_EQ(command(7, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    CHECK(associates(7, 5));
    crypto_rig_close(&rig);
}

static void test_a_command_that_comes_again_changes_nothing(void)
{
    start();
    for (unsigned time = 0; time < 3u; ++time)
    {
        CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    }
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK(associates(1, 1));
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(load_key(0, master, 1, newest), SKY_STATUS_OK); /* nobody takes the place of a valid key */
    CHECK(!waits());
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK(memcmp(table.masters[1].key, newer, sizeof(newer)) == 0);
    CHECK_EQ(table.half_open, 1);
    for (unsigned time = 0; time < 3u; ++time)
    {
        CHECK_EQ(command(1, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
    }
    CHECK_EQ(command(1, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(table.half_open, 1);
    CHECK(associates(1, 1));
    CHECK_EQ(state.wrong + state.kept, 0);
    crypto_rig_close(&rig);
}

static void test_a_wrong_wrap_changes_nothing_and_is_counted(void)
{
    static const uint8_t other_nonce[SKY_CRYPTO_NONCE_BYTES] = {1};
    const rekey_wrap_t   right                               = under_key(0, master);
    rekey_wrap_t         wrong;
    uint8_t              payload[REKEY_LOAD_BYTES];
    uint64_t             refused = 0;

    start();
    for (unsigned bit = 8; bit < 8u * REKEY_LOAD_BYTES; ++bit) /* any but those of the command */
    {
        (void)rekey_load(&right, 1, newer, payload);
        payload[bit / 8u]         = (uint8_t)(payload[bit / 8u] ^ (1u << bit % 8u));
        const SKY_Status_t status = act(0, payload, sizeof(payload));

        CHECK(status == SKY_STATUS_BAD_KEY || (status == SKY_STATUS_BAD_OP && bit < 32u));
        refused += status == SKY_STATUS_BAD_KEY ? 1u : 0u;
    }
    CHECK_EQ(refused, 7u + 8u * (REKEY_LOAD_BYTES - SKY_REKEY_OFF_NONCE)); /* others make no command, or no rising generation */

    wrong                = right;
    wrong.satellite.slot = 11;
    CHECK_EQ(load_wrapped(&wrong, 1, newer), SKY_STATUS_BAD_KEY);
    wrong                 = right;
    wrong.satellite.plane = 259;
    CHECK_EQ(load_wrapped(&wrong, 1, newer), SKY_STATUS_BAD_KEY);
    wrong     = right;
    wrong.key = newer;
    CHECK_EQ(load_wrapped(&wrong, 1, newer), SKY_STATUS_BAD_KEY);
    wrong       = right;
    wrong.nonce = other_nonce; /* chosen by the mission */
    CHECK_EQ(load_wrapped(&wrong, 1, newer), SKY_STATUS_BAD_KEY);
    CHECK_EQ(load_key(0, master, 1, no_secret), SKY_STATUS_BAD_KEY); /* everybody knows it */
    CHECK_EQ(state.wrong, refused + 5u);
    CHECK_EQ(state.kept, 0);
    CHECK(!waits());
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);

    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(load_key(0, newest, 2, newest), SKY_STATUS_BAD_KEY); /* the one that waits stays */
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK(associates(1, 1));
    crypto_rig_close(&rig);
}

static void test_what_is_no_command_is_refused(void)
{
    uint8_t     payload[REKEY_MOST_BYTES + 2u * SKY_CRYPTO_KEY_BYTES] = {0};
    SKY_Rekey_t read;

    start();
    for (unsigned what = 0; what < 256u; ++what)
    {
        const bool is_plain = what == SKY_REKEY_ACTIVATE || what == SKY_REKEY_FORGET;

        (void)rekey_command((uint8_t)what, 1, payload);
        for (size_t bytes = 0; bytes <= sizeof(payload); ++bytes)
        {
            const bool is_page = bytes > SKY_REKEY_BYTES + 20u && bytes <= REKEY_MOST_BYTES &&
                                 (bytes - SKY_REKEY_BYTES - 20u) % SKY_CRYPTO_KEY_BYTES == 0;
            const bool is_one = (is_plain && bytes == SKY_REKEY_BYTES) || (what == SKY_REKEY_LOAD && bytes == REKEY_LOAD_BYTES) ||
                                (what == SKY_REKEY_LOAD_PEERS && is_page);

            CHECK(SKY_Rekey_Decode(bytes == 0 ? NULL : payload, bytes, &read) == is_one);
        }
        for (unsigned byte = SKY_REKEY_OFF_UNDER; byte < SKY_REKEY_BYTES && is_plain; ++byte)
        {
            payload[byte] = 1;
            CHECK(!SKY_Rekey_Decode(payload, SKY_REKEY_BYTES, &read));
            payload[byte] = 0;
        }
    }
    for (unsigned generation = 0; generation < 256u; ++generation)
    {
        (void)rekey_command(SKY_REKEY_LOAD, (uint8_t)generation, payload);
        payload[SKY_REKEY_OFF_UNDER] = 5;
        CHECK(SKY_Rekey_Decode(payload, REKEY_LOAD_BYTES, &read) == (generation > 5u));
        payload[SKY_REKEY_OFF_COMMAND] = SKY_REKEY_LOAD_PEERS;
        CHECK(SKY_Rekey_Decode(payload, REKEY_MOST_BYTES, &read) == (generation >= 5u));
        payload[SKY_REKEY_OFF_SPARE] = 1;
        CHECK(!SKY_Rekey_Decode(payload, REKEY_MOST_BYTES, &read));
    }
    CHECK_EQ(state.wrong + state.kept, 0);
    crypto_rig_close(&rig);
}

static void test_keys_that_are_not_there(void)
{
    start();
    CHECK_EQ(load_key(1, newer, 2, newest), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 0), SKY_STATUS_OK);
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 2), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(load_key(1, newer, 2, newest), SKY_STATUS_NOT_FOUND); /* a key that waits wraps no other one */
    CHECK_EQ(load_key(0, master, 2, newest), SKY_STATUS_OK);       /* the later one waits */
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    CHECK(waits());
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 2), SKY_STATUS_OK);
    CHECK(!waits());
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 2), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(state.wrong + state.kept, 0);
    crypto_rig_close(&rig);
}

static void test_keys_that_stay(void)
{
    start();
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY);
    CHECK_EQ(command(NOBODY, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY); /* the last one */
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(command(NOBODY, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY); /* one that waits is no other one */
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY); /* that of the sender */
    CHECK_EQ(command(1, SKY_REKEY_FORGET, 1), SKY_STATUS_BAD_KEY);
    CHECK_EQ(state.kept, 5);
    CHECK_EQ(state.wrong, 0); /* they were right, and would have gone too far */

    CHECK_EQ(load_key(1, newer, 2, newest), SKY_STATUS_OK);
    CHECK_EQ(command(1, SKY_REKEY_ACTIVATE, 2), SKY_STATUS_STORE_FULL); /* two are valid; nothing is lost */
    CHECK_EQ(command(0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);           /* the new one can be given up, too */
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 2), SKY_STATUS_OK);
    CHECK(associates(0, 1) && associates(2, 2) && !associates(1, 3));
    crypto_rig_close(&rig);
}

static void test_a_master_key_leaves_satellites_alone(void)
{
    SKY_HandshakeRequest_t  request = a_request(1, 0, 1);
    SKY_HandshakeResponse_t response;
    uint8_t                 pair[SKY_CRYPTO_KEY_BYTES];

    start();
    CHECK(SKY_Associations_PairKey(&table, &request.credential, pair));
    CHECK(SKY_Associations_Begin(&table, &request, pair, &somewhere, 1, &response) != NULL);
    CHECK_EQ(load_key(0, master, 1, newer), SKY_STATUS_OK);
    CHECK_EQ(command(0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK_EQ(command(1, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
    CHECK_EQ(table.half_open, 1);
    CHECK(SKY_Associations_PairKey(&table, &request.credential, pair));
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_a_key_is_loaded_activated_and_takes_over);
    RUN(test_a_command_that_comes_again_changes_nothing);
    RUN(test_a_wrong_wrap_changes_nothing_and_is_counted);
    RUN(test_what_is_no_command_is_refused);
    RUN(test_keys_that_are_not_there);
    RUN(test_keys_that_stay);
    RUN(test_a_master_key_leaves_satellites_alone);
    return CHECK_RESULT();
}
