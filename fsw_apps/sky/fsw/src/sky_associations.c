/**
 * @file
 * The responder's table of associations: see sky_associations.h.
 *
 * The lower bits of an SPI are the entry, the others count how often the entry was given out under the salt of now.
 */
#include "sky_associations.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_endpoint.h"

#define SHARE_LEAST 8u /* associations that a credential may have in any table */

static uint32_t entry_count(const SKY_AssociationsConfig_t *config)
{
    SKY_ASSERT(config->established_max <= SKY_ASSOCIATIONS_MAX);
    SKY_ASSERT(config->half_open_max <= SKY_ASSOCIATIONS_MAX);
    return config->established_max + config->half_open_max;
}

size_t SKY_Associations_MemoryBytes(const SKY_AssociationsConfig_t *config)
{
    SKY_ASSERT(config->crypto != NULL);
    if (config->established_max == 0 || config->established_max > SKY_ASSOCIATIONS_MAX || config->half_open_max == 0 ||
        config->half_open_max > SKY_ASSOCIATIONS_MAX - config->established_max)
    {
        return 0;
    }
    const uint64_t places = (uint64_t)config->first_place + (uint64_t)SKY_ASSOCIATION_PLACES * entry_count(config);

    SKY_ASSERT(entry_count(config) <= SKY_ASSOCIATIONS_MAX);
    return places > config->crypto->key_count ? 0 : entry_count(config) * sizeof(SKY_Association_t);
}

bool SKY_Associations_Init(SKY_Associations_t *table, const SKY_AssociationsConfig_t *config, void *memory, size_t memory_bytes,
                           const uint8_t salt[SKY_SALT_BYTES])
{
    const size_t needed = SKY_Associations_MemoryBytes(config);

    SKY_ASSERT(salt != NULL);
    SKY_ASSERT((uintptr_t)memory % sizeof(uint64_t) == 0);
    if (needed == 0 || memory_bytes < needed)
    {
        return false;
    }
    (void)memset(table, 0, sizeof(*table));
    (void)memset(memory, 0, needed);
    table->config  = *config;
    table->entries = memory;
    table->count   = entry_count(config);
    table->config.suites &= config->crypto->suites;
    (void)memcpy(table->salt, salt, SKY_SALT_BYTES);
    while ((1u << table->index_bits) < table->count)
    {
        table->index_bits += 1u;
    }
    for (uint32_t i = 0; i < table->count; ++i)
    {
        table->entries[i].place_there = config->first_place + SKY_ASSOCIATION_PLACES * i;
        table->entries[i].place_back  = table->entries[i].place_there + 1u;
    }
    SKY_ASSERT(table->index_bits >= 1u);
    return true;
}

/* --- master keys ------------------------------------------------------------------------------------------------------------- */

const SKY_MasterKey_t *SKY_Associations_Master(const SKY_Associations_t *table, uint8_t generation)
{
    const SKY_MasterKey_t *found = NULL;

    SKY_ASSERT(table->index_bits >= 1u);
    SKY_ASSERT(table->count >= 2u);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        if (table->masters[i].is_set && table->masters[i].generation == generation)
        {
            found = &table->masters[i];
        }
    }
    SKY_ASSERT(found == NULL || found->is_set);
    return found;
}

bool SKY_Associations_HasMaster(const SKY_Associations_t *table, uint8_t generation)
{
    SKY_ASSERT(table->config.crypto != NULL);
    return SKY_Associations_Master(table, generation) != NULL;
}

bool SKY_Associations_HasOther(const SKY_Associations_t *table, uint8_t generation)
{
    bool has_one = false;

    SKY_ASSERT(table->config.crypto != NULL);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        has_one = has_one || (table->masters[i].is_set && table->masters[i].generation != generation);
    }
    return has_one;
}

/* End the associations of hosts and missions whose credential has a generation. Keys of satellites do not follow from a master key. */
static void end_generation(SKY_Associations_t *table, uint8_t generation)
{
    SKY_ASSERT(table->entries != NULL);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state != SKY_ASSOCIATION_FREE && SKY_Credential_Generation(&entry->credential) == generation &&
            SKY_Credential_Role(&entry->credential) != SKY_ROLE_SATELLITE)
        {
            SKY_Associations_End(table, entry);
        }
    }
    SKY_ASSERT(table->established + table->half_open <= table->count);
}

bool SKY_Associations_ForgetMaster(SKY_Associations_t *table, uint8_t generation)
{
    bool was_there = false;

    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        SKY_MasterKey_t *master = &table->masters[i];

        if (master->is_set && master->generation == generation)
        {
            table->config.crypto->Wipe(table->config.crypto->context, master, sizeof(*master));
            end_generation(table, generation);
            was_there = true;
        }
    }
    SKY_ASSERT(!SKY_Associations_HasMaster(table, generation));
    return was_there;
}

bool SKY_Associations_SetMaster(SKY_Associations_t *table, uint8_t generation, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_Crypto_t    *crypto = table->config.crypto;
    const SKY_MasterKey_t *known  = SKY_Associations_Master(table, generation);

    SKY_ASSERT(key != NULL);
    if (known != NULL && crypto->IsEqual(crypto->context, known->key, key, SKY_CRYPTO_KEY_BYTES))
    {
        return true; /* the command came twice: nothing is ended */
    }
    (void)SKY_Associations_ForgetMaster(table, generation);
    for (uint32_t i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        SKY_MasterKey_t *master = &table->masters[i];

        if (!master->is_set)
        {
            master->is_set     = true;
            master->generation = generation;
            (void)memcpy(master->key, key, SKY_CRYPTO_KEY_BYTES);
            SKY_ASSERT(SKY_Associations_HasMaster(table, generation));
            return true;
        }
    }
    return false;
}

bool SKY_Associations_PairKey(const SKY_Associations_t *table, const SKY_Credential_t *credential,
                              uint8_t pair[SKY_CRYPTO_KEY_BYTES])
{
    const uint8_t generation = SKY_Credential_Generation(credential);

    SKY_ASSERT(SKY_Credential_Role(credential) <= SKY_ROLE_SATELLITE);
    SKY_ASSERT(pair != NULL);
    if (SKY_Credential_Role(credential) == SKY_ROLE_SATELLITE)
    {
        const SKY_Addr_t peer = SKY_Credential_Satellite(credential);

        return table->config.peer_key != NULL &&
               table->config.peer_key(table->config.peer_context, peer.plane, peer.slot, generation, pair);
    }
    const SKY_MasterKey_t *master = SKY_Associations_Master(table, generation);

    if (master == NULL)
    {
        return false;
    }
    SKY_Keys_Pair(table->config.crypto, master->key, credential, pair);
    return true;
}

/* --- associations ------------------------------------------------------------------------------------------------------------ */

void SKY_Associations_End(SKY_Associations_t *table, SKY_Association_t *association)
{
    const SKY_Crypto_t *crypto  = table->config.crypto;
    uint32_t           *counter = association->state == SKY_ASSOCIATION_ESTABLISHED ? &table->established : &table->half_open;

    SKY_ASSERT(association->state != SKY_ASSOCIATION_FREE);
    SKY_ASSERT(*counter >= 1u);
    crypto->EraseKey(crypto->context, association->place_there);
    crypto->EraseKey(crypto->context, association->place_back);
    *counter -= 1u;
    association->state = SKY_ASSOCIATION_FREE;
    association->spi   = SKY_SPI_NONE;
    SKY_ASSERT(table->established + table->half_open < table->count);
}

/* Return the established entry that was used the longest time ago. There is one. */
static SKY_Association_t *longest_unused(const SKY_Associations_t *table)
{
    SKY_Association_t *found = NULL;

    SKY_ASSERT(table->established >= 1u);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state == SKY_ASSOCIATION_ESTABLISHED && (found == NULL || entry->used_us < found->used_us))
        {
            found = entry;
        }
    }
    SKY_ASSERT(found != NULL);
    return found;
}

static bool is_at(const SKY_Association_t *entry, uint64_t endpoint)
{
    SKY_ASSERT(entry->state == SKY_ASSOCIATION_HALF_OPEN);
    return SKY_Endpoint_Address(entry->endpoint) == SKY_Endpoint_Address(endpoint);
}

/* How readily a half-open entry makes room: the first kind first. */
enum
{
    UNSHOWN_OWN = 0, /* the address of who asked for it was not shown, and is that of the new one */
    UNSHOWN,
    OWN,     /* of the same address as the new one */
    FURTHER, /* of an address that has several */
    SINGLE
};

static uint32_t kind_of(const SKY_Association_t *entry, uint64_t endpoint)
{
    const bool is_own = is_at(entry, endpoint);

    SKY_ASSERT(entry->is_reachable || !entry->is_further);
    if (!entry->is_reachable)
    {
        return is_own ? UNSHOWN_OWN : UNSHOWN;
    }
    if (is_own)
    {
        return OWN;
    }
    return entry->is_further ? FURTHER : SINGLE;
}

/* Return the half-open entry that makes room for one from an origin; NULL if none does. */
static SKY_Association_t *to_push_out(const SKY_Associations_t *table, const SKY_HandshakeOrigin_t *origin)
{
    SKY_Association_t *found = NULL;
    uint32_t           least = origin->is_reachable ? SINGLE : UNSHOWN; /* the last kind that goes */

    SKY_ASSERT(table->half_open >= 1u);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];
        const uint32_t     kind  = entry->state == SKY_ASSOCIATION_HALF_OPEN ? kind_of(entry, origin->endpoint) : UINT32_MAX;

        if (kind < least || (kind == least && (found == NULL || entry->used_us < found->used_us)))
        {
            found = entry;
            least = kind;
        }
    }
    SKY_ASSERT(found == NULL || found->state == SKY_ASSOCIATION_HALF_OPEN);
    SKY_ASSERT(found != NULL || !origin->is_reachable);
    return found;
}

/* Note where a handshake came from, for which an entry was, or is about to be, half-open. */
static void note_origin(const SKY_Associations_t *table, SKY_Association_t *noted, const SKY_HandshakeOrigin_t *origin,
                        uint64_t now_us)
{
    bool is_further = false;

    SKY_ASSERT(noted->state != SKY_ASSOCIATION_ESTABLISHED);
    SKY_ASSERT(noted->state == SKY_ASSOCIATION_FREE || !noted->is_reachable);
    for (uint32_t i = 0; i < table->count && origin->is_reachable; ++i)
    {
        const SKY_Association_t *entry = &table->entries[i];

        is_further =
            is_further || (entry->state == SKY_ASSOCIATION_HALF_OPEN && entry->is_reachable && is_at(entry, origin->endpoint));
    }
    noted->endpoint     = origin->endpoint;
    noted->is_reachable = origin->is_reachable;
    noted->is_further   = is_further;
    noted->used_us      = now_us;
    SKY_ASSERT(noted->is_reachable || !noted->is_further);
}

/* Return the established entry to end before one of this credential is established: the longest unused one of all if there is no room, that
 * of the credential if it has its share. NULL: there is room. */
static SKY_Association_t *to_end(const SKY_Associations_t *table, const SKY_Credential_t *credential)
{
    const uint32_t     quarter = table->config.established_max / 4u;
    const uint32_t     share   = quarter > SHARE_LEAST ? quarter : SHARE_LEAST;
    SKY_Association_t *found   = NULL;
    uint32_t           count   = 0;

    SKY_ASSERT(table->established <= table->config.established_max);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state == SKY_ASSOCIATION_ESTABLISHED &&
            memcmp(entry->credential.bytes, credential->bytes, SKY_CREDENTIAL_BYTES) == 0)
        {
            count += 1u;
            found = found == NULL || entry->used_us < found->used_us ? entry : found;
        }
    }
    SKY_ASSERT(count <= table->established);
    if (count >= share)
    {
        return found;
    }
    return table->established == table->config.established_max ? longest_unused(table) : NULL;
}

/* Return the free entry that was given out least often; NULL if the rounds of all free ones are used up. */
static SKY_Association_t *free_entry(const SKY_Associations_t *table)
{
    const uint32_t     last_round = UINT32_MAX >> table->index_bits;
    SKY_Association_t *found      = NULL;

    SKY_ASSERT(table->half_open < table->config.half_open_max);
    SKY_ASSERT(table->established <= table->config.established_max);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state == SKY_ASSOCIATION_FREE && entry->round < last_round && (found == NULL || entry->round < found->round))
        {
            found = entry;
        }
    }
    return found;
}

/* Let all SPIs be given out again, under another salt. Half-open associations end, as whoever asks for one again is told the salt of now. */
static void renew(SKY_Associations_t *table)
{
    const SKY_Crypto_t    *crypto = table->config.crypto;
    const SKY_CryptoPart_t part   = {table->salt, sizeof(table->salt)};
    uint8_t                next[SKY_SALT_BYTES];

    SKY_ASSERT(table->entries != NULL);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        if (table->entries[i].state == SKY_ASSOCIATION_HALF_OPEN)
        {
            SKY_Associations_End(table, &table->entries[i]);
            table->stats.lapsed += 1u;
        }
        table->entries[i].round = 0;
    }
    crypto->Hash(crypto->context, NULL, 0, &part, 1, next, sizeof(next));
    (void)memcpy(table->salt, next, sizeof(next));
    SKY_ASSERT(table->half_open == 0u);
}

/* Return the association that was granted for the same credential and word; NULL if there is none. */
static SKY_Association_t *granted_before(const SKY_Associations_t *table, const SKY_HandshakeRequest_t *request)
{
    SKY_Association_t *found = NULL;

    SKY_ASSERT(table->entries != NULL);
    for (uint32_t i = 0; i < table->count; ++i)
    {
        SKY_Association_t *entry = &table->entries[i];

        if (entry->state != SKY_ASSOCIATION_FREE && memcmp(entry->word, request->word, SKY_WORD_BYTES) == 0 &&
            memcmp(entry->credential.bytes, request->credential.bytes, SKY_CREDENTIAL_BYTES) == 0)
        {
            found = entry;
        }
    }
    SKY_ASSERT(found == NULL || found->spi != SKY_SPI_NONE);
    return found;
}

/* Return the suite to grant, SKY_SUITE_NONE if there is none. */
static uint8_t suite_for(const SKY_Associations_t *table, uint8_t wanted)
{
    const uint8_t instead =
        wanted == SKY_SUITE_GMAC_HEADER ? SKY_SUITE_BLAKE2B_HEADER : SKY_SUITE_BLAKE2B_PACKET; /* of the same scope */
    uint8_t granted = SKY_SUITE_NONE;

    SKY_ASSERT(wanted >= SKY_SUITE_GMAC_HEADER);
    SKY_ASSERT(wanted <= SKY_SUITE_BLAKE2B_PACKET);
    if ((table->config.suites & SKY_SUITE_BIT(wanted)) != 0)
    {
        granted = wanted;
    }
    else if (wanted <= SKY_SUITE_GMAC_PACKET && (table->config.suites & SKY_SUITE_BIT(instead)) != 0)
    {
        granted = instead;
    }
    return granted;
}

/* Derive both keys and load them into the places of an entry. */
static bool load(const SKY_Associations_t *table, const SKY_Association_t *entry, const uint8_t pair[SKY_CRYPTO_KEY_BYTES],
                 const uint8_t word[SKY_WORD_BYTES], uint32_t spi, uint8_t suite)
{
    const SKY_Crypto_t *crypto = table->config.crypto;
    SKY_SessionKeys_t   keys;

    SKY_ASSERT(entry->state == SKY_ASSOCIATION_FREE);
    SKY_ASSERT(entry->place_back < crypto->key_count);
    SKY_Keys_Session(crypto, pair, word, table->salt, spi, suite, &keys);
    const bool is_loaded = crypto->LoadKey(crypto->context, entry->place_there, suite, keys.there) &&
                           crypto->LoadKey(crypto->context, entry->place_back, suite, keys.back);

    crypto->Wipe(crypto->context, &keys, sizeof(keys));
    if (!is_loaded)
    {
        crypto->EraseKey(crypto->context, entry->place_there);
        crypto->EraseKey(crypto->context, entry->place_back);
    }
    return is_loaded;
}

bool SKY_Associations_HasRoom(const SKY_Associations_t *table)
{
    static const SKY_HandshakeOrigin_t nowhere = {0, false};

    SKY_ASSERT(table->half_open <= table->config.half_open_max);
    return table->half_open < table->config.half_open_max || to_push_out(table, &nowhere) != NULL;
}

/* Make a new association. Return NULL if no suite, no room or no place for its keys is left. */
static SKY_Association_t *grant(SKY_Associations_t *table, const SKY_HandshakeRequest_t *request,
                                const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_HandshakeOrigin_t *origin, uint64_t now_us)
{
    const uint8_t suite = suite_for(table, request->wanted);

    SKY_ASSERT(table->half_open <= table->config.half_open_max);
    SKY_ASSERT(table->established <= table->config.established_max);
    if (suite == SKY_SUITE_NONE)
    {
        return NULL;
    }
    if (table->half_open == table->config.half_open_max)
    {
        SKY_Association_t *const pushed = to_push_out(table, origin);

        if (pushed == NULL)
        {
            return NULL;
        }
        SKY_Associations_End(table, pushed);
        table->stats.lapsed += 1u;
    }
    SKY_Association_t *entry = free_entry(table);

    if (entry == NULL)
    {
        renew(table);
        entry = free_entry(table);
    }
    SKY_ASSERT(entry != NULL);
    entry->round += 1u; /* used up even if no key can be loaded: it may have been, into one of two places */
    const uint32_t spi = entry->round << table->index_bits | (uint32_t)(entry - table->entries);

    if (!load(table, entry, pair, request->word, spi, suite))
    {
        return NULL;
    }
    note_origin(table, entry, origin, now_us);
    table->half_open += 1u;
    entry->spi        = spi;
    entry->state      = SKY_ASSOCIATION_HALF_OPEN;
    entry->suite      = suite;
    entry->credential = request->credential;
    entry->sequence   = 0;
    (void)memcpy(entry->word, request->word, SKY_WORD_BYTES);
    SKY_Replay_Init(&entry->replay);
    SKY_Rising_Init(&entry->commands);
    SKY_ASSERT(SKY_Associations_Find(table, spi) == entry);
    return entry;
}

SKY_Association_t *SKY_Associations_Begin(SKY_Associations_t *table, const SKY_HandshakeRequest_t *request,
                                          const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_HandshakeOrigin_t *origin,
                                          uint64_t now_us, SKY_HandshakeResponse_t *response)
{
    SKY_Association_t *association = granted_before(table, request);

    SKY_ASSERT(pair != NULL);
    SKY_ASSERT(table->half_open <= table->count);
    if (association != NULL)
    {
        table->stats.repeated += 1u;
        if (association->state == SKY_ASSOCIATION_HALF_OPEN && origin->is_reachable && !association->is_reachable)
        {
            note_origin(table, association, origin, now_us);
        }
    }
    else
    {
        association = grant(table, request, pair, origin, now_us);
        if (association == NULL)
        {
            table->stats.refused += 1u;
            return NULL;
        }
        table->stats.begun += 1u;
    }
    (void)memcpy(response->salt, table->salt, SKY_SALT_BYTES);
    response->granted = association->suite;
    return association;
}

SKY_Association_t *SKY_Associations_Find(const SKY_Associations_t *table, uint32_t spi)
{
    const uint32_t index = spi & ((1u << table->index_bits) - 1u);

    SKY_ASSERT(table->entries != NULL);
    SKY_ASSERT(table->count >= 2u);
    if (spi == SKY_SPI_NONE || index >= table->count || table->entries[index].spi != spi)
    {
        return NULL;
    }
    SKY_ASSERT(table->entries[index].state != SKY_ASSOCIATION_FREE);
    return &table->entries[index];
}

void SKY_Associations_Used(SKY_Associations_t *table, SKY_Association_t *association, uint64_t endpoint, uint64_t now_us)
{
    SKY_ASSERT(association->state != SKY_ASSOCIATION_FREE);
    if (association->state == SKY_ASSOCIATION_HALF_OPEN)
    {
        SKY_Association_t *const ended = to_end(table, &association->credential);

        if (ended != NULL)
        {
            SKY_Associations_End(table, ended);
            table->stats.evicted += 1u;
        }
        association->state = SKY_ASSOCIATION_ESTABLISHED;
        table->half_open -= 1u;
        table->established += 1u;
    }
    association->used_us  = now_us;
    association->endpoint = endpoint;
    SKY_ASSERT(table->established <= table->config.established_max);
}

uint64_t SKY_Association_NextSequence(SKY_Association_t *association)
{
    SKY_ASSERT(association->state != SKY_ASSOCIATION_FREE);
    SKY_ASSERT(association->sequence < UINT64_MAX);
    if (association->sequence == UINT64_MAX - 1u)
    {
        return 0;
    }
    association->sequence += 1u;
    return association->sequence;
}
