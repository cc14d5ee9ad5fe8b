/**
 * @file
 * Fuzz target: commands about master keys -> the keys of a satellite.
 *
 * The input is a row of steps: a byte with the kind of step and the sender's generation, the length of a payload (not a multiple of 4:
 * that of a command) and the payload. Half of the payloads are wrapped rightly before they go in, as no mutation finds a tag.
 */
#include "fuzz.h"

#include <string.h>

#include "../fsw_apps/sky/rekey_rig.h"
#include "sky_crypto_library.h"

#define ESTABLISHED 2u
#define HALF_OPEN   2u
#define ENTRIES     (ESTABLISHED + HALF_OPEN)
#define PLACES      (SKY_ASSOCIATION_PLACES * ENTRIES)
#define HEAD_BYTES  2u
#define WRAP        0x80u /* of a step: the payload is wrapped, */
#define SHAPE       0x40u /* or gets the shape of a command without a key, as most bytes have none */
#define GENERATIONS 4u    /* few, so that they meet */

static SKY_CryptoLibrary_t library;
static SKY_Associations_t  table;
static SKY_RekeyState_t    state;
static const SKY_Addr_t    self = {2, 3};

static uint32_t Valid(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        count += table.masters[i].is_set ? 1u : 0u;
    }
    return count;
}

/* Every key is of its generation alone, so that nothing else was taken. */
static void Check(void)
{
    uint8_t key[SKY_CRYPTO_KEY_BYTES];

    ENSURE(Valid() >= 1u);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        (void)memset(key, table.masters[i].generation, sizeof(key));
        ENSURE(!table.masters[i].is_set || memcmp(table.masters[i].key, key, sizeof(key)) == 0);
    }
    (void)memset(key, state.waiting.generation, sizeof(key));
    ENSURE(!state.waiting.is_set || memcmp(state.waiting.key, key, sizeof(key)) == 0);
}

/* Wrap the key of the generation that a command names under the key that it names. */
static void Wrap(uint8_t *payload)
{
    const uint8_t under      = payload[SKY_REKEY_OFF_UNDER] % GENERATIONS;
    const uint8_t generation = (uint8_t)(payload[SKY_REKEY_OFF_GENERATION] % GENERATIONS);
    uint8_t       under_key[SKY_CRYPTO_KEY_BYTES];
    uint8_t       key[SKY_CRYPTO_KEY_BYTES];

    (void)memset(under_key, under, sizeof(under_key));
    (void)memset(key, generation, sizeof(key));
    rekey_load(&library.crypto, under_key, under, self, generation, key, payload);
}

static void Step(uint8_t what, uint8_t *payload, size_t bytes)
{
    SKY_Rekey_t        command;
    const bool         is_one  = SKY_Rekey_Decode(payload, bytes, &command);
    const uint8_t      sender  = what % GENERATIONS;
    const bool         has_it  = SKY_Associations_HasMaster(&table, sender);
    const uint64_t     refused = state.refused;
    const SKY_Status_t status  = SKY_Rekey_Act(&state, &table, self, sender, payload, bytes);

    ENSURE(is_one == (status != SKY_STATUS_BAD_OP));
    ENSURE(state.refused == refused + (status == SKY_STATUS_BAD_KEY ? 1u : 0u));
    ENSURE(SKY_Associations_HasMaster(&table, sender) || !has_it); /* the sender's own key stays */
    if (is_one && status == SKY_STATUS_OK)
    {
        ENSURE(command.command != SKY_REKEY_ACTIVATE || SKY_Associations_HasMaster(&table, command.generation));
        ENSURE(command.command != SKY_REKEY_FORGET || !SKY_Associations_HasMaster(&table, command.generation));
        ENSURE(SKY_Rekey_Act(&state, &table, self, sender, payload, bytes) == SKY_STATUS_OK); /* again */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static SKY_CryptoPlace_t       places[PLACES];
    static SKY_Association_t       entries[ENTRIES];
    static const uint8_t           zeros[SKY_CRYPTO_KEY_BYTES];
    const SKY_AssociationsConfig_t config = {&library.crypto, SKY_SUITES_BLAKE2B, ESTABLISHED, HALF_OPEN, 0, NULL, NULL};

    if (library.places == NULL)
    {
        ENSURE(SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES));
    }
    ENSURE(SKY_Associations_Init(&table, &config, entries, sizeof(entries), zeros));
    ENSURE(SKY_Associations_SetMaster(&table, 0, zeros));
    (void)memset(&state, 0, sizeof(state));
    while (size >= HEAD_BYTES)
    {
        const size_t wanted  = data[1] % 4u != 0 ? SKY_REKEY_BYTES : data[1];
        const size_t bytes   = wanted < size - HEAD_BYTES ? wanted : size - HEAD_BYTES;
        uint8_t     *payload = malloc(bytes + 1u); /* a heap block of its own: reading beyond is seen */

        ENSURE(payload != NULL);
        (void)memcpy(payload, data + HEAD_BYTES, bytes);
        if ((data[0] & WRAP) != 0 && bytes == SKY_REKEY_BYTES)
        {
            Wrap(payload);
        }
        else if ((data[0] & SHAPE) != 0 && bytes == SKY_REKEY_BYTES)
        {
            rekey_command((uint8_t)(payload[0] % (SKY_REKEY_FORGET + 1u)), payload[1] % GENERATIONS, payload);
        }
        Step(data[0], payload, bytes);
        Check();
        free(payload);
        data += HEAD_BYTES + bytes;
        size -= HEAD_BYTES + bytes;
    }
    return 0;
}
