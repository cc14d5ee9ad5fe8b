/**
 * @file
 * Which keys of this satellite with others are valid: see sky_security.h.
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
    SKY_ASSERT(other == security->generation || SKY_Associations_HasMaster(&security->associations, other));
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
    const SKY_Crypto_t   *crypto    = security->cfg.crypto;
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
    crypto->Wipe(crypto->context, newer, sizeof(newer));
    if (!is_valid)
    {
        crypto->Wipe(crypto->context, key, SKY_CRYPTO_KEY_BYTES);
    }
    return is_valid;
}

uint64_t SKY_Security_KeyMark(const SKY_Security_t *security, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_Crypto_t    *crypto = security->cfg.crypto;
    const SKY_CryptoPart_t part   = {key, SKY_CRYPTO_KEY_BYTES};
    uint8_t                digest[sizeof(uint64_t)];
    uint64_t               mark;

    SKY_ASSERT(key != NULL);
    SKY_ASSERT(sizeof(digest) <= SKY_CRYPTO_HASH_BYTES);
    crypto->Hash(crypto->context, security->word_secret, sizeof(security->word_secret), &part, 1, digest, sizeof(digest));
    (void)memcpy(&mark, digest, sizeof(mark));
    return mark;
}
