/**
 * @file
 * What commands about keys change in the security of a satellite: see sky_security.h. The commands themselves are in sky_rekey.h.
 */
#include "sky_assert.h"
#include "sky_security_priv.h"

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
}

SKY_Status_t SKY_Security_Rekey(SKY_Security_t *security, uint8_t sender, uint16_t slots, const uint8_t *payload, size_t bytes)
{
    SKY_Associations_t *table = &security->associations;
    SKY_Rekey_t         command;

    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(SKY_Associations_HasMaster(table, sender));
    if (!SKY_Rekey_Decode(payload, bytes, &command))
    {
        ++security->rekey.refused;
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
        else if (command.command == SKY_REKEY_FORGET) /* the change is given up before it began */
        {
            SKY_RekeyPeers_Forget(&security->rekey, security->cfg.crypto, command.generation);
        }
    }
    else if (SKY_RekeyPeers_Has(&security->rekey, command.generation) && command.generation > security->generation)
    {
        security->generation = command.generation; /* preferred from now on; sessions under the older keys go on */
    }
    SKY_Security_CheckPeers(security);
    security->rekey.done += status == SKY_STATUS_OK ? 1u : 0u;
    security->rekey.refused += status == SKY_STATUS_OK ? 0u : 1u;
    SKY_ASSERT(SKY_Associations_HasMaster(table, sender));
    return status;
}
