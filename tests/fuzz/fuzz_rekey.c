/**
 * @file
 * Fuzz target: commands about keys -> the keys of a satellite.
 *
 * The input is a row of steps: a byte with the kind of step and the sender, the length of a payload and the payload. Many payloads are
 * wrapped rightly before they go in, as no mutation finds a tag.
 */
#include "fuzz.h"

#include <string.h>

#include "../fsw_apps/sky/rekey_rig.h"
#include "sky_crypto_library.h"
#include "sky_security.h"

#define ESTABLISHED 2u
#define HALF_OPEN   2u
#define SESSIONS    1u
#define PLACES      (SKY_ASSOCIATION_PLACES * (ESTABLISHED + HALF_OPEN + SESSIONS))
#define PEERS_MAX   40u
#define SLOTS       8u
#define HEAD_BYTES  2u
#define GENERATIONS 4u /* few, so that they meet */
#define MEMORY      2048u

static SKY_CryptoLibrary_t library;
static SKY_Security_t      security;
static uint8_t             peers[SKY_REKEY_BANKS * PEERS_MAX * SKY_CRYPTO_KEY_BYTES];
static const SKY_Addr_t    self = {2, 3};

static bool IsOf(const uint8_t *key, uint8_t generation)
{
    uint8_t expected[SKY_CRYPTO_KEY_BYTES];

    (void)memset(expected, generation, sizeof(expected));
    return memcmp(key, expected, sizeof(expected)) == 0;
}

/* Every key is of its generation alone: nothing else was taken. */
static void Check(void)
{
    const SKY_RekeyState_t *state = &security.rekey;
    uint32_t                valid = 0;

    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const SKY_MasterKey_t *master = &security.associations.masters[i];

        valid += master->is_set ? 1u : 0u;
        ENSURE(!master->is_set || IsOf(master->key, master->generation));
    }
    ENSURE(valid >= 1u);
    ENSURE(!state->waiting.is_set || IsOf(state->waiting.key, state->waiting.generation));
    for (uint32_t bank = 0; bank < SKY_REKEY_BANKS; ++bank)
    {
        for (uint32_t i = 0; i < PEERS_MAX; ++i)
        {
            const uint8_t *key = state->banks[bank].keys + (size_t)i * SKY_CRYPTO_KEY_BYTES;

            ENSURE(IsOf(key, 0) || (state->banks[bank].is_used && IsOf(key, state->banks[bank].generation)));
        }
    }
}

/* Write a command that the mission could send. @return its length */
static uint32_t Write(uint8_t kind, const uint8_t *bytes, uint8_t *payload)
{
    const uint8_t      generation = bytes[1] % GENERATIONS;
    const uint8_t      under      = bytes[2] % GENERATIONS;
    uint8_t            under_key[SKY_CRYPTO_KEY_BYTES];
    uint8_t            key[SKY_CRYPTO_KEY_BYTES];
    const rekey_wrap_t wrap = {&library.crypto, self, under, under_key, NULL};

    (void)memset(under_key, under, sizeof(under_key));
    (void)memset(key, generation, sizeof(key));
    switch (kind % 4u)
    {
        case 0:
            return rekey_load(&wrap, generation, key, payload);
        case 1:
            return rekey_load_peers(&wrap, generation, bytes[3], 1u + bytes[0] % SKY_REKEY_PEERS_MOST, payload);
        case 2:
            return rekey_command(SKY_REKEY_ACTIVATE, generation, payload);
        default:
            return rekey_command(SKY_REKEY_FORGET, generation, payload);
    }
}

static void Step(uint8_t what, const uint8_t *payload, size_t bytes)
{
    const SKY_Associations_t *table   = &security.associations;
    const SKY_MasterKey_t    *one     = &table->masters[what % SKY_MASTER_KEYS];
    const uint8_t             sender  = one->is_set ? one->generation : table->masters[1u - what % SKY_MASTER_KEYS].generation;
    const uint64_t            done    = security.rekey.done;
    const uint64_t            refused = security.rekey.refused;
    SKY_Rekey_t               command;
    const bool                is_one = SKY_Rekey_Decode(payload, bytes, &command);
    const SKY_Status_t        status = SKY_Security_Rekey(&security, sender, SLOTS, payload, bytes);
    uint8_t                   key[SKY_CRYPTO_KEY_BYTES];

    ENSURE(is_one == (status != SKY_STATUS_BAD_OP));
    ENSURE(security.rekey.done + security.rekey.refused == done + refused + 1u);
    ENSURE((security.rekey.done > done) == (status == SKY_STATUS_OK));
    ENSURE(SKY_Associations_HasMaster(table, sender)); /* the sender's own key stays */
    if (is_one && status == SKY_STATUS_OK)
    {
        ENSURE(command.command != SKY_REKEY_ACTIVATE || SKY_Associations_HasMaster(table, command.generation));
        ENSURE(command.command != SKY_REKEY_FORGET || !SKY_Associations_HasMaster(table, command.generation));
        ENSURE(SKY_Security_Rekey(&security, sender, SLOTS, payload, bytes) == SKY_STATUS_OK); /* again */
    }
    if (SKY_RekeyPeers_Find(&security.rekey, (SKY_Addr_t){1u + what % 9u, 1u + what % 11u}, what % GENERATIONS, key))
    {
        ENSURE(IsOf(key, what % GENERATIONS));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static SKY_CryptoPlace_t places[PLACES];
    static uint64_t          memory[MEMORY];
    static const uint8_t     zeros[SKY_SECURITY_ENTROPY_BYTES];
    const SKY_SecurityCfg_t  cfg = {.crypto          = &library.crypto,
                                    .suites          = SKY_SUITES_BLAKE2B,
                                    .peer_suite      = SKY_SUITE_BLAKE2B_HEADER,
                                    .established_max = ESTABLISHED,
                                    .half_open_max   = HALF_OPEN,
                                    .session_max     = SESSIONS,
                                    .retry_us        = 1,
                                    .rekey_peers     = peers,
                                    .rekey_peers_max = PEERS_MAX};

    if (library.places == NULL)
    {
        ENSURE(SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES));
    }
    ENSURE(SKY_Security_Init(&security, &cfg, self, memory, sizeof(memory), zeros));
    ENSURE(SKY_Security_SetMaster(&security, 0, zeros));
    while (size >= HEAD_BYTES)
    {
        const size_t bytes   = data[1] < size - HEAD_BYTES ? data[1] : size - HEAD_BYTES;
        uint8_t     *payload = malloc(bytes + 1u); /* a heap block of its own: reading beyond is seen */
        uint8_t      written[REKEY_MOST_BYTES];

        ENSURE(payload != NULL);
        (void)memcpy(payload, data + HEAD_BYTES, bytes);
        Step(data[0], payload, bytes);
        if (bytes >= 4u)
        {
            const uint32_t len = Write(data[0], payload, written);

            Step(data[0], written, len);
            Check();
            written[payload[0] % len] = (uint8_t)(written[payload[0] % len] ^ payload[3]);
            Step(data[0], written, len);
        }
        Check();
        free(payload);
        data += HEAD_BYTES + bytes;
        size -= HEAD_BYTES + bytes;
    }
    return 0;
}
