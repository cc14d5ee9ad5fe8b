/**
 * @file
 * What new tables change while links are secured: keys, suites, and the satellite's own place. See sky_security.h.
 */
#include "sky_assert.h"
#include "sky_security_priv.h"

bool SKY_Security_SetMaster(SKY_Security_t *security, uint8_t generation, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const bool is_known = SKY_Associations_HasMaster(&security->associations, generation);

    SKY_ASSERT(security->sessions != NULL);
    if (!SKY_Associations_SetMaster(&security->associations, generation, key))
    {
        return false;
    }
    if (!is_known) /* the first one is new, too */
    {
        security->generation = generation;
    }
    security->is_keyed = true;
    SKY_Security_CheckPeers(security);
    SKY_ASSERT(SKY_Associations_HasMaster(&security->associations, generation));
    SKY_ASSERT(is_known || security->generation == generation);
    return true;
}

static bool Lists(const SKY_MasterKey_t masters[SKY_MASTER_KEYS], uint8_t generation)
{
    bool found = false;

    SKY_ASSERT(masters != NULL);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        found = found || (masters[i].is_set && masters[i].generation == generation);
    }
    return found;
}

/* Forget the keys that are not listed. */
static void ForgetOthers(SKY_Associations_t *table, const SKY_MasterKey_t masters[SKY_MASTER_KEYS])
{
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const uint8_t generation = table->masters[i].generation;

        if (table->masters[i].is_set && !Lists(masters, generation))
        {
            (void)SKY_Associations_ForgetMaster(table, generation);
        }
        SKY_ASSERT(!table->masters[i].is_set || Lists(masters, generation));
    }
}

void SKY_Security_TakeMasters(SKY_Security_t *security, const SKY_MasterKey_t masters[SKY_MASTER_KEYS])
{
    const SKY_MasterKey_t *newest = NULL;

    SKY_ASSERT(security->sessions != NULL);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        newest = masters[i].is_set ? &masters[i] : newest;
    }
    if (newest == NULL)
    {
        return;
    }
    ForgetOthers(&security->associations, masters);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        if (masters[i].is_set) /* there is a place for each, as the others have gone */
        {
            (void)SKY_Associations_SetMaster(&security->associations, masters[i].generation, masters[i].key);
        }
    }
    SKY_Rekey_Clear(&security->rekey, security->cfg.crypto); /* a table has the last word over keys that came over the air */
    security->generation = newest->generation;
    security->is_keyed   = true;
    SKY_Security_CheckPeers(security);
    SKY_ASSERT(SKY_Associations_HasMaster(&security->associations, security->generation));
}

/* Return true if what began under a key with another satellite, of a generation, would not begin so now. */
static bool IsRefused(SKY_Security_t *security, SKY_Addr_t satellite, uint8_t generation, uint64_t key_mark)
{
    uint8_t    key[SKY_CRYPTO_KEY_BYTES];
    const bool is_valid = SKY_Security_PeerKey(security, satellite.plane, satellite.slot, generation, key);
    const bool is_same  = is_valid && SKY_Security_KeyMark(security, key) == key_mark;

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(security->is_keyed);
    SKY_Security_Wipe(security, key, sizeof(key));
    return !is_same;
}

void SKY_Security_CheckPeers(SKY_Security_t *security)
{
    SKY_Associations_t *table = &security->associations;

    SKY_ASSERT(security->sessions != NULL);
    SKY_ASSERT(table->entries != NULL);
    for (uint32_t i = 0; i < security->cfg.session_max; ++i)
    {
        SKY_SecuritySession_t *entry = &security->sessions[i];

        if (SKY_Session_IsUsable(&entry->session) && IsRefused(security, entry->satellite, entry->generation, entry->key_mark))
        {
            SKY_SecuritySession_End(security, entry);
        }
    }
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state != SKY_ASSOCIATION_FREE && SKY_Credential_Role(&entry->credential) == SKY_ROLE_SATELLITE &&
            IsRefused(security, SKY_Credential_Satellite(&entry->credential), SKY_Credential_Generation(&entry->credential),
                      entry->key_mark))
        {
            SKY_Associations_End(table, entry);
        }
    }
}

/* End the associations whose suite is not in a mask. */
static void EndAssociations(SKY_Associations_t *table, uint32_t but_suites)
{
    SKY_ASSERT(table->entries != NULL);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state != SKY_ASSOCIATION_FREE && (but_suites & SKY_SUITE_BIT(entry->suite)) == 0u)
        {
            SKY_Associations_End(table, entry);
        }
    }
    SKY_ASSERT(but_suites != 0u || table->established + table->half_open == 0u);
}

void SKY_Security_Move(SKY_Security_t *security, SKY_Addr_t self)
{
    SKY_ASSERT(self.plane != 0u);
    SKY_ASSERT(self.slot != 0u);
    security->self = self;
    SKY_Rekey_Clear(&security->rekey, security->cfg.crypto); /* they are keys of the old place */
    SKY_Security_EndSessions(security);
    EndAssociations(&security->associations, 0);
}

void SKY_Security_SetSuites(SKY_Security_t *security, uint32_t suites, uint8_t peer_suite)
{
    const SKY_Crypto_t *crypto = security->cfg.crypto;

    SKY_ASSERT(security->sessions != NULL);
    security->cfg.suites                 = suites;
    security->cfg.peer_suite             = peer_suite;
    security->associations.config.suites = suites & crypto->suites;
    const uint8_t  wanted                = SKY_Security_SuiteToAskFor(&security->cfg);
    const uint32_t accepted              = suites | SKY_SUITE_BIT(wanted);

    for (uint32_t i = 0; i < security->cfg.session_max; ++i)
    {
        SKY_SecuritySession_t *entry = &security->sessions[i];

        if (entry->session.wanted != wanted ||
            (entry->session.suite != SKY_SUITE_NONE && (accepted & SKY_SUITE_BIT(entry->session.suite)) == 0u))
        {
            SKY_SecuritySession_End(security, entry);
        }
        entry->session.wanted   = wanted;
        entry->session.accepted = accepted;
    }
    EndAssociations(&security->associations, security->associations.config.suites);
    SKY_ASSERT((security->sessions[0].session.accepted & SKY_SUITE_BIT(wanted)) != 0u);
}
