/**
 * @file
 * Master keys that come over the air: see sky_rekey.h. Those between satellites are in sky_rekey_peers.c.
 */
#include "sky_rekey.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_bytes.h"

#define BOUND_BYTES 8u /* what a wrap is bound to: the head of the payload and the address of the satellite */
#define HEAD_BYTES  SKY_REKEY_OFF_NONCE
#define INDEX_BYTES 4u

#define LABEL(text)               \
    {                             \
        (text), sizeof(text) - 1u \
    }

/* Return true if a command comes with a text of this length. */
static bool fits(uint8_t command, size_t text_bytes)
{
    SKY_ASSERT(command == SKY_REKEY_LOAD || command == SKY_REKEY_LOAD_PEERS);
    SKY_ASSERT(INDEX_BYTES < SKY_REKEY_TEXT_MOST);
    return command == SKY_REKEY_LOAD ? text_bytes == SKY_CRYPTO_KEY_BYTES
                                     : text_bytes > INDEX_BYTES && text_bytes <= SKY_REKEY_TEXT_MOST &&
                                           (text_bytes - INDEX_BYTES) % SKY_CRYPTO_KEY_BYTES == 0;
}

bool SKY_Rekey_Decode(const uint8_t *payload, size_t bytes, SKY_Rekey_t *command)
{
    SKY_ASSERT(payload != NULL || bytes == 0);
    SKY_ASSERT(SKY_REKEY_OFF_NONCE + SKY_CRYPTO_NONCE_BYTES == SKY_REKEY_BYTES);
    if (bytes < SKY_REKEY_BYTES || payload[SKY_REKEY_OFF_SPARE] != 0 || payload[SKY_REKEY_OFF_COMMAND] < SKY_REKEY_LOAD ||
        payload[SKY_REKEY_OFF_COMMAND] > SKY_REKEY_LOAD_PEERS)
    {
        return false;
    }
    const size_t sealed_bytes = bytes - SKY_REKEY_BYTES;

    (void)memset(command, 0, sizeof(*command));
    command->command    = payload[SKY_REKEY_OFF_COMMAND];
    command->generation = payload[SKY_REKEY_OFF_GENERATION];
    command->under      = payload[SKY_REKEY_OFF_UNDER];
    if (command->command == SKY_REKEY_ACTIVATE || command->command == SKY_REKEY_FORGET)
    {
        return sealed_bytes == 0 && command->under == 0 &&
               SKY_Bytes_AreZeros(payload + SKY_REKEY_OFF_NONCE, SKY_CRYPTO_NONCE_BYTES);
    }
    if (sealed_bytes < SKY_CRYPTO_TAG_BYTES || !fits(command->command, sealed_bytes - SKY_CRYPTO_TAG_BYTES))
    {
        return false;
    }
    command->nonce      = payload + SKY_REKEY_OFF_NONCE;
    command->sealed     = payload + SKY_REKEY_BYTES;
    command->text_bytes = sealed_bytes - SKY_CRYPTO_TAG_BYTES;
    /* Older keys do not come back this way. */
    return command->generation > command->under ||
           (command->command == SKY_REKEY_LOAD_PEERS && command->generation == command->under);
}

bool SKY_Rekey_Open(const SKY_Crypto_t *crypto, const SKY_MasterKey_t *under, SKY_Addr_t self, const SKY_Rekey_t *command,
                    uint8_t *text)
{
    uint8_t                bound[BOUND_BYTES] = {command->command, command->generation, command->under};
    uint8_t                keys[2u * SKY_CRYPTO_KEY_BYTES];
    uint8_t                nonce[SKY_CRYPTO_NONCE_BYTES];
    const SKY_CryptoPart_t info[] = {LABEL("skymemory 2 wrap"), {bound, sizeof(bound)}};
    const SKY_CryptoPart_t all[]  = {{bound, sizeof(bound)}, {text, command->text_bytes}};

    SKY_ASSERT(command->sealed != NULL);
    SKY_ASSERT(command->under == under->generation);
    SKY_Bytes_Put16(bound + HEAD_BYTES, self.plane);
    SKY_Bytes_Put16(bound + HEAD_BYTES + 2u, self.slot);
    SKY_Crypto_Kdf(crypto, under->key, info, 2, keys, sizeof(keys));
    bool is_right = crypto->Open(crypto->context, keys, command->nonce, &info[1], command->sealed, command->text_bytes, text);

    if (is_right)
    {
        crypto->Hash(crypto->context, keys + SKY_CRYPTO_KEY_BYTES, SKY_CRYPTO_KEY_BYTES, all, 2, nonce, sizeof(nonce));
        is_right = crypto->IsEqual(crypto->context, nonce, command->nonce, sizeof(nonce));
    }
    crypto->Wipe(crypto->context, keys, sizeof(keys));
    if (!is_right)
    {
        crypto->Wipe(crypto->context, text, command->text_bytes);
    }
    return is_right;
}

static SKY_Status_t load(SKY_RekeyState_t *state, const SKY_Associations_t *table, SKY_Addr_t self, const SKY_Rekey_t *command)
{
    const SKY_Crypto_t    *crypto = table->config.crypto;
    const SKY_MasterKey_t *under  = SKY_Associations_Master(table, command->under);
    uint8_t                key[SKY_CRYPTO_KEY_BYTES];

    SKY_ASSERT(command->command == SKY_REKEY_LOAD);
    SKY_ASSERT(command->text_bytes == sizeof(key));
    if (SKY_Associations_HasMaster(table, command->generation))
    {
        return SKY_STATUS_OK; /* it was loaded and activated before */
    }
    if (under == NULL)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    if (!SKY_Rekey_Open(crypto, under, self, command, key) || SKY_Bytes_AreZeros(key, sizeof(key))) /* everybody knows that key */
    {
        ++state->wrong;
        return SKY_STATUS_BAD_KEY;
    }
    state->waiting.is_set     = true;
    state->waiting.generation = command->generation;
    (void)memcpy(state->waiting.key, key, sizeof(key));
    crypto->Wipe(crypto->context, key, sizeof(key));
    return SKY_STATUS_OK;
}

static SKY_Status_t activate(SKY_RekeyState_t *state, SKY_Associations_t *table, uint8_t generation)
{
    const SKY_Crypto_t *crypto = table->config.crypto;

    SKY_ASSERT(crypto != NULL);
    if (SKY_Associations_HasMaster(table, generation))
    {
        return SKY_STATUS_OK;
    }
    if (!state->waiting.is_set || state->waiting.generation != generation)
    {
        return SKY_STATUS_NOT_FOUND;
    }
    if (!SKY_Associations_SetMaster(table, generation, state->waiting.key))
    {
        return SKY_STATUS_STORE_FULL;
    }
    crypto->Wipe(crypto->context, &state->waiting, sizeof(state->waiting));
    SKY_ASSERT(SKY_Associations_HasMaster(table, generation));
    return SKY_STATUS_OK;
}

static SKY_Status_t forget(SKY_RekeyState_t *state, SKY_Associations_t *table, uint8_t sender, uint8_t generation)
{
    const SKY_Crypto_t *crypto = table->config.crypto;

    SKY_ASSERT(crypto != NULL);
    if (SKY_Associations_HasMaster(table, generation))
    {
        if (generation == sender || !SKY_Associations_HasOther(table, generation))
        {
            ++state->kept;
            return SKY_STATUS_BAD_KEY;
        }
        (void)SKY_Associations_ForgetMaster(table, generation);
    }
    if (state->waiting.generation == generation)
    {
        crypto->Wipe(crypto->context, &state->waiting, sizeof(state->waiting));
    }
    SKY_ASSERT(!SKY_Associations_HasMaster(table, generation));
    return SKY_STATUS_OK;
}

SKY_Status_t SKY_Rekey_Act(SKY_RekeyState_t *state, SKY_Associations_t *table, SKY_Addr_t self, uint8_t sender,
                           const SKY_Rekey_t *command)
{
    SKY_ASSERT(command->command >= SKY_REKEY_LOAD);
    SKY_ASSERT(command->command <= SKY_REKEY_FORGET);
    switch (command->command)
    {
        case SKY_REKEY_LOAD:
            return load(state, table, self, command);
        case SKY_REKEY_ACTIVATE:
            return activate(state, table, command->generation);
        default:
            return forget(state, table, sender, command->generation);
    }
}
