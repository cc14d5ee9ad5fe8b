/**
 * @file
 * What commands about keys change in the security of a satellite: see sky_security.h. The commands themselves are in sky_rekey.h.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_security_priv.h"

uint8_t SKY_Security_OtherGeneration(const SKY_Security_t *security)
{
    uint8_t other = security->generation;

    SKY_ASSERT(security->sessions != NULL);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const SKY_MasterKey_t *master = &security->associations.masters[i];

        other = master->is_set && master->generation != security->generation ? master->generation : other;
    }
    return other;
}

/* Find a key between satellites that could be valid: one of the mission's tables, or one that came over the air with a valid master key. */
static bool Lookup(const SKY_Security_t *security, SKY_Addr_t satellite, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_SecurityCfg_t *cfg = &security->cfg;

    SKY_ASSERT(satellite.plane != 0u);
    return (SKY_Associations_HasMaster(&security->associations, generation) &&
            SKY_RekeyPeers_Find(&security->rekey, satellite, generation, key)) ||
           (cfg->peer_key != NULL && cfg->peer_key(cfg->peer_context, satellite.plane, satellite.slot, generation, key));
}

bool SKY_Security_PeerKey(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_Security_t *security  = context;
    const SKY_Addr_t      satellite = {plane, slot};
    uint8_t               newer[SKY_CRYPTO_KEY_BYTES];
    bool                  is_valid = Lookup(security, satellite, generation, key);

    SKY_ASSERT(security->sessions != NULL);
    if (!is_valid || SKY_Associations_HasMaster(&security->associations, generation))
    {
        return is_valid;
    }
    /* A key of the tables whose master key was forgotten stays until there is a newer one. */
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const SKY_MasterKey_t *master = &security->associations.masters[i];

        is_valid = is_valid &&
                   !(master->is_set && master->generation > generation && Lookup(security, satellite, master->generation, newer));
    }
    SKY_Security_Wipe(security, newer, sizeof(newer));
    if (!is_valid)
    {
        SKY_Security_Wipe(security, key, SKY_CRYPTO_KEY_BYTES);
    }
    return is_valid;
}

/* End what follows from a master key that was forgotten, between satellites. */
static void EndGeneration(SKY_Security_t *security, uint8_t generation)
{
    const bool had_peers = SKY_RekeyPeers_Has(&security->rekey, generation);
    SKY_ASSERT(!SKY_Associations_HasMaster(&security->associations, generation));

    SKY_RekeyPeers_Forget(&security->rekey, security->cfg.crypto, generation);
    if (security->generation == generation && had_peers)
    {
        security->generation = SKY_Security_OtherGeneration(security);
    }
    SKY_Associations_ForgetPeers(&security->associations, generation);
    SKY_Security_EndSessions(security); /* new ones begin, under the keys that are valid */
}

SKY_Status_t SKY_Security_Rekey(SKY_Security_t *security, uint8_t sender, uint16_t slots, const uint8_t *payload, size_t bytes)
{
    SKY_Associations_t *table = &security->associations;
    SKY_Rekey_t         command;

    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(SKY_Associations_HasMaster(table, sender));
    if (!SKY_Rekey_Decode(payload, bytes, &command))
    {
        return SKY_STATUS_BAD_OP;
    }
    const bool         was_valid = SKY_Associations_HasMaster(table, command.generation);
    const SKY_Status_t status    = command.command == SKY_REKEY_LOAD_PEERS
                                       ? SKY_RekeyPeers_Load(&security->rekey, table, security->self, slots, &command)
                                       : SKY_Rekey_Act(&security->rekey, table, security->self, sender, &command);

    if (!SKY_Associations_HasMaster(table, command.generation))
    {
        if (was_valid)
        {
            EndGeneration(security, command.generation);
        }
    }
    else if (SKY_RekeyPeers_Has(&security->rekey, command.generation) && command.generation > security->generation)
    {
        security->generation = command.generation; /* preferred from now on; sessions under the older keys go on */
    }
    SKY_ASSERT(SKY_Associations_HasMaster(table, sender));
    return status;
}
