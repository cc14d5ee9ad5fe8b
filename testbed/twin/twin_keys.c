/**
 * @file
 * Keys of satellites and hosts. All tags are made by one library with a few places, into which keys are loaded as they are needed: so a
 * twin of hundreds of satellites, each with hundreds of session keys, needs no context of the library for each.
 *
 * Whatever seals a packet does so here, so here it is seen whether a key seals two packets under one sequence number. Keys are known by
 * their bytes, not by who holds them, and for the whole run: a satellite that comes back with keys of before is found as well.
 */
#include <string.h>

#include "twin_priv.h"

/* As in the satellite: fsw_apps/isl, isl_internal_cfg.h. */
#define ASSOCIATIONS 128u
#define HALF_OPEN    16u
#define SESSIONS     64u
#define RETRY_US     500000u

#define ASKING_PLACES  (2u * SESSIONS)
#define NODE_PLACES    (ASKING_PLACES + 2u * (ASSOCIATIONS + HALF_OPEN))
#define LIBRARY_PLACES 256u
#define USES           (1u << 17) /* keys that may seal in a run, at most half of them */
#define MADE_TAGS      8192u
#define ROLE_AT        0u
#define GENERATION_AT  1u
#define COUNT_AT       2u
#define NAME_AT        4u
#define TENANTS_AT     16u

/** A tag that was made, so that who checks it need not make it again. */
typedef struct
{
    uint64_t name; /**< first bytes of the key; 0: the entry is free */
    uint64_t sequence;
    uint32_t crc; /**< of what the tag covers: it finds each change of few bits */
    uint32_t bytes;
    uint8_t  tag[SKY_CRYPTO_TAG_BYTES];
} MadeTag_t;

struct SKYT_Keys
{
    SKY_CryptoLibrary_t    library;
    const SKYT_KeyPlace_t *loaded[LIBRARY_PLACES]; /**< by the library's place: whose key it has */
    uint8_t                root[SKY_CRYPTO_KEY_BYTES];
    uint8_t               *masters; /**< by satellite */
    uint8_t               *entropy; /**< of the last boot, by satellite */
    SKYT_Vault_t          *vaults;  /**< satellites, then hosts, then the mission */
    SKYT_KeyPlace_t       *places;
    uint64_t              *security; /**< memory of the core, by satellite */
    size_t                 security_bytes;
    SKYT_KeyUse_t         *uses;
    uint32_t               use_count;
    uint64_t               sealed;
    MadeTag_t              made[MADE_TAGS];
};

/* ---- the library, as the core calls it ----------------------------------------------------------------------------------- */

static void hash(void *context, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts, uint32_t part_count,
                 uint8_t *out, size_t out_bytes)
{
    const SKY_Crypto_t *crypto = &((SKYT_Vault_t *)context)->twin->keys->library.crypto;

    crypto->Hash(crypto->context, key, key_bytes, parts, part_count, out, out_bytes);
}

static uint32_t library_place_of(const SKYT_Keys_t *keys, const SKYT_KeyPlace_t *place)
{
    return (uint32_t)(place - keys->places) % LIBRARY_PLACES;
}

static void forget(SKYT_Keys_t *keys, const SKYT_KeyPlace_t *place)
{
    const uint32_t at = library_place_of(keys, place);

    keys->loaded[at] = keys->loaded[at] == place ? NULL : keys->loaded[at];
}

static void erase_key(void *context, uint32_t place)
{
    SKYT_Vault_t *vault = context;

    if (place < vault->crypto.key_count)
    {
        forget(vault->twin->keys, &vault->places[place]);
        (void)memset(&vault->places[place], 0, sizeof(vault->places[place]));
    }
}

static bool load_key(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    SKYT_Vault_t *vault = context;

    if (place >= vault->crypto.key_count || (vault->crypto.suites & SKY_SUITE_BIT(suite)) == 0)
    {
        return false;
    }
    erase_key(context, place);
    (void)memcpy(vault->places[place].key, key, SKY_CRYPTO_KEY_BYTES);
    vault->places[place].suite = suite;
    vault->places[place].used  = SKYT_NONE;
    return true;
}

/* Who has asked for a session sends under the first of its two keys, and who was asked under the second. */
static bool seals_with(const SKYT_Vault_t *vault, uint32_t place)
{
    return (place % 2u == 0u) == (place < vault->asking_count);
}

/* Find a key among those that have sealed. @return SKYT_NONE if there are too many */
static uint32_t find_use(SKYT_Keys_t *keys, const uint8_t *key)
{
    uint64_t name[2];

    (void)memcpy(name, key, sizeof(name));
    for (uint32_t at = (uint32_t)(name[0] % USES);; at = (at + 1u) % USES) /* it ends, because half the entries are free */
    {
        SKYT_KeyUse_t *use = &keys->uses[at];

        if (use->name[0] == name[0] && use->name[1] == name[1])
        {
            return at;
        }
        if (use->name[0] == 0 && use->name[1] == 0)
        {
            if (keys->use_count == USES / 2u)
            {
                return SKYT_NONE;
            }
            ++keys->use_count;
            (void)memcpy(use->name, name, sizeof(name));
            return at;
        }
    }
}

/* Note that a key seals a packet. */
static void note_sealed(const SKYT_Vault_t *vault, SKYT_KeyPlace_t *place, uint64_t sequence)
{
    SKYT_Keys_t *keys = vault->twin->keys;

    ++keys->sealed;
    place->used = place->used == SKYT_NONE ? find_use(keys, place->key) : place->used;
    if (place->used == SKYT_NONE)
    {
        SKYT_Check_Fail(vault->twin, SKYT_INVARIANT_NONCE, vault->node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "more keys have sealed packets than the twin can watch");
        return;
    }
    SKYT_KeyUse_t *use = &keys->uses[place->used];

    /* Numbers rise by one, so one that does not rise was used before, or will be. */
    if (sequence <= use->last)
    {
        SKYT_Check_Fail(vault->twin, SKYT_INVARIANT_NONCE, vault->node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a key seals a packet under a sequence number that it has had");
    }
    use->last = sequence > use->last ? sequence : use->last;
}

/* Return the entry for a tag, and whether it has it. */
static MadeTag_t *find_made(SKYT_Keys_t *keys, const MadeTag_t *wanted, bool *has_it)
{
    MadeTag_t *made = &keys->made[(wanted->name ^ wanted->sequence * UINT64_C(0x9E3779B97F4A7C15)) % MADE_TAGS];

    *has_it = made->name == wanted->name && made->sequence == wanted->sequence && made->crc == wanted->crc &&
              made->bytes == wanted->bytes;
    return made;
}

static bool make_tag(void *context, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts, uint32_t part_count,
                     uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    SKYT_Vault_t       *vault  = context;
    SKYT_Keys_t        *keys   = vault->twin->keys;
    const SKY_Crypto_t *crypto = &keys->library.crypto;
    SKYT_KeyPlace_t    *from   = place < vault->crypto.key_count ? &vault->places[place] : NULL;
    MadeTag_t           wanted = {0, sequence, 0, 0, {0}};
    bool                has_it = false;

    if (from == NULL || from->suite == SKY_SUITE_NONE)
    {
        (void)memset(tag, 0, SKY_CRYPTO_TAG_BYTES);
        return false;
    }
    (void)memcpy(&wanted.name, from->key, sizeof(wanted.name));
    for (uint32_t i = 0; i < part_count; ++i)
    {
        wanted.crc = SKY_Crc32c(wanted.crc, parts[i].data, parts[i].bytes);
        wanted.bytes += (uint32_t)parts[i].bytes;
    }
    MadeTag_t *made = find_made(keys, &wanted, &has_it);

    if (vault->is_watched && seals_with(vault, place))
    {
        note_sealed(vault, from, sequence);
    }
    else if (vault->is_watched && has_it)
    {
        (void)memcpy(tag, made->tag, SKY_CRYPTO_TAG_BYTES);
        return true;
    }
    const uint32_t at = library_place_of(keys, from);

    if (keys->loaded[at] != from)
    {
        keys->loaded[at] = crypto->LoadKey(crypto->context, at, from->suite, from->key) ? from : NULL;
    }
    if (!crypto->Tag(crypto->context, at, sequence, parts, part_count, tag))
    {
        return false;
    }
    *made = wanted;
    (void)memcpy(made->tag, tag, SKY_CRYPTO_TAG_BYTES);
    return true;
}

static void seal(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *plain, size_t bytes, uint8_t *sealed)
{
    const SKY_Crypto_t *crypto = &((SKYT_Vault_t *)context)->twin->keys->library.crypto;

    crypto->Seal(crypto->context, key, nonce, associated, plain, bytes, sealed);
}

static bool open(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *sealed, size_t bytes, uint8_t *plain)
{
    const SKY_Crypto_t *crypto = &((SKYT_Vault_t *)context)->twin->keys->library.crypto;

    return crypto->Open(crypto->context, key, nonce, associated, sealed, bytes, plain);
}

static bool is_equal(void *context, const void *one, const void *other, size_t bytes)
{
    const SKYT_Vault_t *vault  = context;
    const SKY_Crypto_t *crypto = &vault->twin->keys->library.crypto;

    return (vault->twin->broken == SKYT_BREAK_CREDULOUS && vault->is_watched) ||
           crypto->IsEqual(crypto->context, one, other, bytes);
}

static void wipe(void *context, void *secret, size_t bytes)
{
    const SKY_Crypto_t *crypto = &((SKYT_Vault_t *)context)->twin->keys->library.crypto;

    crypto->Wipe(crypto->context, secret, bytes);
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static void draw(SKYT_Twin_t *twin, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
    {
        bytes[i] = (uint8_t)(SKYT_Random(twin) >> 56);
    }
}

static void init_vault(SKYT_Twin_t *twin, SKYT_Vault_t *vault, SKYT_KeyPlace_t *places, uint32_t count, uint32_t asking)
{
    const SKY_Crypto_t crypto = {
        vault, twin->keys->library.crypto.suites, count, hash, load_key, erase_key, make_tag, seal, open, is_equal, wipe};

    vault->twin         = twin;
    vault->crypto       = crypto;
    vault->places       = places;
    vault->asking_count = asking;
    vault->is_watched   = true;
}

static bool peer_key(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKYT_Node_t     *node   = context;
    const SKYT_Twin_t     *twin   = node->twin;
    const SKY_Crypto_t    *crypto = &twin->keys->library.crypto;
    const SKY_Addr_t       other  = {plane, slot};
    const uint32_t         self   = (uint32_t)(node - twin->nodes);
    uint32_t               ends[2];
    const SKY_CryptoPart_t part = {ends, sizeof(ends)};

    if (generation != SKYT_KEY_GENERATION || !SKY_Torus_Contains(&twin->torus, other))
    {
        return false;
    }
    const uint32_t far = SKYT_NodeOf(twin, other);

    ends[0] = self < far ? self : far;
    ends[1] = self < far ? far : self;
    crypto->Hash(crypto->context, twin->keys->root, SKY_CRYPTO_KEY_BYTES, &part, 1, key, SKY_CRYPTO_KEY_BYTES);
    return true;
}

static SKY_SecurityCfg_t security_of(SKYT_Twin_t *twin, uint32_t node)
{
    SKY_SecurityCfg_t cfg;

    (void)memset(&cfg, 0, sizeof(cfg));
    cfg.crypto          = &twin->keys->vaults[node].crypto;
    cfg.suites          = SKY_SUITES_GMAC | SKY_SUITES_BLAKE2B;
    cfg.peer_suite      = (uint8_t)twin->config.suite;
    cfg.established_max = ASSOCIATIONS;
    cfg.half_open_max   = HALF_OPEN;
    cfg.session_max     = SESSIONS;
    cfg.retry_us        = RETRY_US;
    cfg.peer_key        = peer_key;
    cfg.peer_context    = &twin->nodes[node];
    return cfg;
}

bool SKYT_Keys_Init(SKYT_Twin_t *twin)
{
    const uint32_t nodes       = twin->node_count;
    const uint32_t hosts       = twin->config.hosts + 1u;
    const uint32_t host_places = 2u * nodes;
    const size_t   places      = (size_t)nodes * NODE_PLACES + (size_t)hosts * host_places;
    const size_t   bytes       = SKY_CryptoLibrary_MemoryBytes(LIBRARY_PLACES);
    SKYT_Keys_t   *keys        = SKYT_Take(twin, 1, sizeof(*keys));

    twin->keys = keys;
    if (keys == NULL)
    {
        return false;
    }
    void *memory  = SKYT_Take(twin, 1, bytes);
    keys->masters = SKYT_Take(twin, nodes, SKY_CRYPTO_KEY_BYTES);
    keys->entropy = SKYT_Take(twin, nodes, SKY_SECURITY_ENTROPY_BYTES);
    keys->vaults  = SKYT_Take(twin, (size_t)nodes + hosts, sizeof(*keys->vaults));
    keys->places  = SKYT_Take(twin, places, sizeof(*keys->places));
    keys->uses    = SKYT_Take(twin, USES, sizeof(*keys->uses));
    if (twin->is_short || !SKY_CryptoLibrary_Init(&keys->library, memory, bytes, LIBRARY_PLACES))
    {
        return false;
    }
    draw(twin, keys->root, sizeof(keys->root));
    draw(twin, keys->masters, (size_t)nodes * SKY_CRYPTO_KEY_BYTES);
    for (uint32_t node = 0; node < nodes; ++node)
    {
        init_vault(twin, &keys->vaults[node], keys->places + (size_t)node * NODE_PLACES, NODE_PLACES, ASKING_PLACES);
        keys->vaults[node].node = node;
    }
    for (uint32_t host = 0; host < hosts; ++host)
    {
        init_vault(twin, &keys->vaults[nodes + host], keys->places + (size_t)nodes * NODE_PLACES + (size_t)host * host_places,
                   host_places, host_places);
        keys->vaults[nodes + host].node = SKYT_NONE;
    }
    const SKY_SecurityCfg_t cfg = security_of(twin, 0);

    keys->security_bytes = SKY_Security_MemoryBytes(&cfg);
    keys->security       = SKYT_Take(twin, nodes, keys->security_bytes);
    return keys->security_bytes > 0 && keys->security != NULL;
}

void SKYT_Keys_Free(SKYT_Twin_t *twin)
{
    if (twin->keys->library.places != NULL)
    {
        SKY_CryptoLibrary_End(&twin->keys->library);
    }
}

bool SKYT_Keys_Boot(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Keys_t            *keys    = twin->keys;
    SKYT_Node_t            *booted  = &twin->nodes[node];
    SKYT_Vault_t           *vault   = &keys->vaults[node];
    uint8_t                *memory  = (uint8_t *)keys->security + node * keys->security_bytes;
    const SKY_SecurityCfg_t cfg     = security_of(twin, node);
    uint8_t                *entropy = keys->entropy + (size_t)node * SKY_SECURITY_ENTROPY_BYTES;

    if (twin->broken != SKYT_BREAK_SALT)
    {
        draw(twin, entropy, SKY_SECURITY_ENTROPY_BYTES);
    }
    for (uint32_t place = 0; place < NODE_PLACES; ++place)
    {
        erase_key(vault, place); /* it has forgotten everything */
    }
    vault->is_watched = false;
    if (!SKY_Security_Init(&booted->security, &cfg, SKYT_AddrOf(twin, node), memory, keys->security_bytes, entropy) ||
        !SKY_Security_SetMaster(&booted->security, SKYT_KEY_GENERATION, keys->masters + (size_t)node * SKY_CRYPTO_KEY_BYTES))
    {
        return false;
    }
    vault->is_watched = true;
    SKY_Node_Secure(&booted->core, &booted->security);
    return true;
}

/* ---- hosts --------------------------------------------------------------------------------------------------------------- */

/* Write the credential of a host: that of the mission may do all, others name their tenants. */
static void issue(const SKYT_Twin_t *twin, uint32_t host, SKY_Credential_t *credential)
{
    const uint32_t tenants = twin->config.tenants;
    const bool     is_any  = host > twin->config.hosts || tenants > SKY_CREDENTIAL_TENANTS_MAX;

    (void)memset(credential, 0, sizeof(*credential));
    credential->bytes[ROLE_AT]       = (uint8_t)(host > twin->config.hosts ? SKY_ROLE_MISSION : SKY_ROLE_HOST);
    credential->bytes[GENERATION_AT] = SKYT_KEY_GENERATION;
    credential->bytes[COUNT_AT]      = (uint8_t)(is_any ? SKY_CREDENTIAL_ANY_TENANT : tenants);
    credential->bytes[NAME_AT]       = (uint8_t)host;
    for (uint32_t i = 0; i < tenants && !is_any; ++i)
    {
        credential->bytes[TENANTS_AT + 4u * i + 3u] = (uint8_t)SKYT_Content_Tenant(twin, i);
    }
}

static bool pair_key(void *context, SKY_Addr_t satellite, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKYT_Vault_t *vault = context;
    const SKYT_Twin_t  *twin  = vault->twin;
    SKY_Credential_t    credential;

    issue(twin, (uint32_t)(vault - twin->keys->vaults) - twin->node_count + 1u, &credential);
    SKY_Keys_Pair(&vault->crypto, twin->keys->masters + (size_t)SKYT_NodeOf(twin, satellite) * SKY_CRYPTO_KEY_BYTES, &credential,
                  key);
    return true;
}

void SKYT_Keys_OfHost(SKYT_Twin_t *twin, uint32_t host, SKY_HostSecurity_t *security)
{
    const uint32_t suite = twin->config.suite;
    SKYT_Vault_t  *vault = &twin->keys->vaults[twin->node_count + host - 1u];

    (void)memset(security, 0, sizeof(*security));
    security->is_on    = true;
    security->is_keyed = true;
    security->wanted   = (uint8_t)suite;
    security->accepted = SKY_SUITE_BIT(suite == SKY_SUITE_GMAC_HEADER ? SKY_SUITE_BLAKE2B_HEADER : SKY_SUITE_BLAKE2B_PACKET);
    security->crypto   = &vault->crypto;
    security->PairKey  = pair_key;
    security->context  = vault;
    issue(twin, host, &security->credential);
}

void SKYT_Keys_Count(const SKYT_Twin_t *twin, SKYT_Counters_t *counters)
{
    if (twin->keys != NULL)
    {
        counters->sealed       = twin->keys->sealed;
        counters->session_keys = twin->keys->use_count;
    }
}
