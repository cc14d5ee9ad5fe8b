/**
 * @file
 * Keys between satellites that come over the air: see sky_rekey.h.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_bytes.h"
#include "sky_rekey.h"

#define INDEX_BYTES 4u

void SKY_RekeyPeers_Init(SKY_RekeyState_t *state, uint8_t *memory, uint32_t peers_max)
{
    SKY_ASSERT(memory != NULL || peers_max == 0);
    (void)memset(state, 0, sizeof(*state));
    state->peers_max = peers_max;
    for (uint32_t i = 0; i < SKY_REKEY_BANKS && peers_max > 0; ++i)
    {
        state->banks[i].keys = memory + (size_t)i * peers_max * SKY_CRYPTO_KEY_BYTES;
        (void)memset(state->banks[i].keys, 0, (size_t)peers_max * SKY_CRYPTO_KEY_BYTES);
    }
}

/* Return the place of the keys of a generation; NULL if none came. */
static const SKY_RekeyBank_t *bank_of(const SKY_RekeyState_t *state, uint8_t generation)
{
    const SKY_RekeyBank_t *found = NULL;

    SKY_ASSERT(state != NULL);
    for (uint32_t i = 0; i < SKY_REKEY_BANKS; ++i)
    {
        const SKY_RekeyBank_t *bank = &state->banks[i];

        found = bank->is_used && bank->generation == generation ? bank : found;
    }
    SKY_ASSERT(found == NULL || found->keys != NULL);
    return found;
}

bool SKY_RekeyPeers_Has(const SKY_RekeyState_t *state, uint8_t generation)
{
    SKY_ASSERT(state != NULL);
    return bank_of(state, generation) != NULL;
}

bool SKY_RekeyPeers_Find(const SKY_RekeyState_t *state, SKY_Addr_t satellite, uint8_t generation,
                         uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_RekeyBank_t *bank = bank_of(state, generation);
    uint8_t                any  = 0;

    SKY_ASSERT(satellite.plane != 0);
    SKY_ASSERT(satellite.slot != 0);
    if (bank == NULL || satellite.slot > bank->slots)
    {
        return false;
    }
    const uint64_t index = (satellite.plane - UINT64_C(1)) * bank->slots + satellite.slot - 1u;

    for (uint32_t i = 0; i < SKY_CRYPTO_KEY_BYTES && index < state->peers_max; ++i)
    {
        key[i] = bank->keys[index * SKY_CRYPTO_KEY_BYTES + i];
        any    = (uint8_t)(any | key[i]);
    }
    return any != 0; /* zeros, which everybody knows, are no key */
}

static void clear(SKY_RekeyBank_t *bank, const SKY_Crypto_t *crypto, uint32_t peers_max)
{
    SKY_ASSERT(crypto != NULL);
    SKY_ASSERT(peers_max > 0);
    crypto->Wipe(crypto->context, bank->keys, (size_t)peers_max * SKY_CRYPTO_KEY_BYTES);
    bank->is_used = false;
}

void SKY_RekeyPeers_Forget(SKY_RekeyState_t *state, const SKY_Crypto_t *crypto, uint8_t generation)
{
    SKY_ASSERT(crypto != NULL);
    for (uint32_t i = 0; i < SKY_REKEY_BANKS; ++i)
    {
        if (state->banks[i].is_used && state->banks[i].generation == generation)
        {
            clear(&state->banks[i], crypto, state->peers_max);
        }
    }
    SKY_ASSERT(!SKY_RekeyPeers_Has(state, generation));
}

void SKY_Rekey_Clear(SKY_RekeyState_t *state, const SKY_Crypto_t *crypto)
{
    SKY_ASSERT(crypto != NULL);
    crypto->Wipe(crypto->context, &state->waiting, sizeof(state->waiting));
    for (uint32_t i = 0; i < SKY_REKEY_BANKS; ++i)
    {
        if (state->banks[i].is_used)
        {
            clear(&state->banks[i], crypto, state->peers_max);
        }
    }
    SKY_ASSERT(!state->waiting.is_set);
}

/* Return a place for keys: that of their generation, or one of a generation that is not valid. NULL if there is none. */
static SKY_RekeyBank_t *place_for(SKY_RekeyState_t *state, const SKY_Associations_t *table, uint16_t slots, uint8_t generation)
{
    SKY_RekeyBank_t *found = NULL;

    SKY_ASSERT(slots > 0);
    SKY_ASSERT(state->peers_max > 0);
    for (uint32_t i = 0; i < SKY_REKEY_BANKS; ++i)
    {
        SKY_RekeyBank_t *bank   = &state->banks[i];
        const bool       is_own = bank->is_used && bank->generation == generation;

        if (is_own || (found == NULL && (!bank->is_used || !SKY_Associations_HasMaster(table, bank->generation))))
        {
            found = bank;
        }
    }
    if (found != NULL && (!found->is_used || found->generation != generation || found->slots != slots))
    {
        clear(found, table->config.crypto, state->peers_max);
        found->is_used    = true;
        found->generation = generation;
        found->slots      = slots;
    }
    return found;
}

SKY_Status_t SKY_RekeyPeers_Load(SKY_RekeyState_t *state, const SKY_Associations_t *table, SKY_Addr_t self, uint16_t slots,
                                 const SKY_Rekey_t *command)
{
    const SKY_Crypto_t    *crypto = table->config.crypto;
    const SKY_MasterKey_t *under  = SKY_Associations_Master(table, command->under);
    uint8_t                text[SKY_REKEY_TEXT_MOST];
    const size_t           key_bytes = command->text_bytes - INDEX_BYTES;
    SKY_Status_t           status    = SKY_STATUS_OK;

    SKY_ASSERT(command->command == SKY_REKEY_LOAD_PEERS);
    SKY_ASSERT(command->text_bytes <= sizeof(text));
    if (under == NULL)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    if (!SKY_Rekey_Open(crypto, under, self, command, text))
    {
        ++state->wrong;
        return SKY_STATUS_BAD_KEY;
    }
    const uint32_t first = SKY_Bytes_Get32(text);

    if (first >= state->peers_max || key_bytes / SKY_CRYPTO_KEY_BYTES > state->peers_max - first)
    {
        status = SKY_STATUS_TOO_LARGE;
    }
    else
    {
        SKY_RekeyBank_t *bank = place_for(state, table, slots, command->generation);

        status = bank != NULL ? SKY_STATUS_OK : SKY_STATUS_STORE_FULL;
        if (bank != NULL)
        {
            (void)memcpy(bank->keys + (size_t)first * SKY_CRYPTO_KEY_BYTES, text + INDEX_BYTES, key_bytes);
        }
    }
    crypto->Wipe(crypto->context, text, command->text_bytes);
    return status;
}
