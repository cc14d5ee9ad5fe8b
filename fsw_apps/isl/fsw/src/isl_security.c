/**
 * @file
 * Keys of ISL: see isl_security.h.
 */
#include "isl_security.h"

#include <string.h>

#include "isl_app.h"
#include "isl_crypto.h"
#include "isl_eventids.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "sky_security.h"
#include "sky_wipe.h"

#define ISL_SUITES_ALL  (SKY_SUITES_GMAC | SKY_SUITES_BLAKE2B)
#define ISL_TABLE_BYTES 16384u

CompileTimeAssert(sizeof(ISL_KeysTable_t) == 4u + ISL_MASTER_KEYS * 36u, IslKeysHasNoPadding);
CompileTimeAssert(sizeof(ISL_PeersTable_t) == 12u + ISL_PEERS_OF_PAGE * ISL_KEY_BYTES, IslPeersHasNoPadding);
CompileTimeAssert(sizeof(ISL_PeersTable_t) <= ISL_TABLE_BYTES, IslPeersFitsATable);
CompileTimeAssert(ISL_KEY_BYTES == SKY_CRYPTO_KEY_BYTES && ISL_MASTER_KEYS == SKY_MASTER_KEYS, IslKeysAreTheCores);

static const struct
{
    const char *name, *file;
} ISL_PeersPages[ISL_PEERS_PAGES] = {
    {ISL_PEERS1_TABLE_NAME, ISL_PEERS1_TABLE_FILE},
    {ISL_PEERS2_TABLE_NAME, ISL_PEERS2_TABLE_FILE},
    {ISL_PEERS3_TABLE_NAME, ISL_PEERS3_TABLE_FILE},
    {ISL_PEERS4_TABLE_NAME, ISL_PEERS4_TABLE_FILE},
};

#define ISL_LACKS_LIBRARY "there is no cryptographic library, or its answers are wrong"
#define ISL_LACKS_RANDOM  "there is no source of random bytes, and cookies can be guessed"

/** Generations of the keys that are in use. */
typedef struct
{
    uint8 count;         /**< valid master keys */
    uint8 newest, other; /**< their generations: the same if there is one; 0: there is none */
    uint8 peers;         /**< generation of the keys under which other satellites are asked first */
} ISL_Generations_t;

/* Keys are held here and in the core alone: they are erased from a table once it was taken over, so that no dump of it has one. */
static struct
{
    CFE_TBL_Handle_t    keys_handle;
    CFE_TBL_Handle_t    peers_handle[ISL_PEERS_PAGES];
    ISL_PeersTable_t    peers[ISL_PEERS_PAGES];
    bool                is_open;
    const char         *lacks;  /**< what links would need to be secured: no table with a key is taken; NULL: nothing */
    const SKY_Crypto_t *crypto; /**< NULL: there is no library */
    SKY_Addr_t          self;   /**< place that sessions and associations are of */
    ISL_Generations_t   told;   /**< generations of the last event about keys */
    SKY_Security_t      security;
    uint8 rekey_peers[SKY_REKEY_BANKS * ISL_PEERS_PAGES * ISL_PEERS_OF_PAGE * ISL_KEY_BYTES]; /**< keys that came over the air */
    uint64_t memory[ISL_PLATFORM_SECURITY_BYTES / sizeof(uint64_t)];
} ISL_Security;

/* ---- validation ---------------------------------------------------------------------------------------------------- */

static bool ISL_KeyValueIs(bool is_allowed, const char *table, const char *field, uint32 value, const char *allowed)
{
    if (!is_allowed)
    {
        (void)CFE_EVS_SendEvent(ISL_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR, "%s: %s is %lu, allowed %s", table, field,
                                (unsigned long)value, allowed);
    }
    return is_allowed;
}

/** Return true if there is a key. Zeros, which everybody knows, are none: the own place has them, gaps, and tables taken over. */
static bool ISL_IsKey(const uint8 key[ISL_KEY_BYTES])
{
    uint8  any = 0;
    uint32 i;

    for (i = 0; i < ISL_KEY_BYTES; ++i)
    {
        any = (uint8)(any | key[i]);
    }
    return any != 0;
}

static bool ISL_HasKey(const ISL_KeysTable_t *table)
{
    uint32 i;
    bool   has_one = false;

    for (i = 0; i < ISL_MASTER_KEYS; ++i)
    {
        has_one = has_one || table->Master[i].IsSet != 0;
    }
    return has_one;
}

static uint32 ISL_SuitesOf(const ISL_KeysTable_t *table)
{
    return table->Suites != 0 ? table->Suites : ISL_SUITES_ALL;
}

/** Return the suite to ask other satellites for. There is a library. */
static uint8 ISL_PeerSuiteOf(const ISL_KeysTable_t *table)
{
    const uint8 best = (ISL_Security.crypto->suites & SKY_SUITES_GMAC) != 0 ? SKY_SUITE_GMAC_HEADER : SKY_SUITE_BLAKE2B_HEADER;

    return table->PeerSuite != SKY_SUITE_NONE ? table->PeerSuite : best;
}

CFE_Status_t ISL_Security_ValidateKeys(void *data)
{
    const ISL_KeysTable_t *const table = data;
    bool                         is_valid =
        ISL_KeyValueIs((table->Suites & ~(uint32)ISL_SUITES_ALL) == 0, "ISL.Keys", "Suites", table->Suites,
                       "a sum of 2, 4, 8, 16; 0: all") &&
        ISL_KeyValueIs(table->PeerSuite <= SKY_SUITE_BLAKE2B_PACKET, "ISL.Keys", "PeerSuite", table->PeerSuite, "0 .. 4");
    uint32 i;

    if (is_valid && ISL_Security.crypto != NULL)
    {
        is_valid = ISL_KeyValueIs((ISL_SuitesOf(table) & ISL_Security.crypto->suites) != 0, "ISL.Keys", "Suites", table->Suites,
                                  "suites of which the library can do one");
    }
    for (i = 0; i < ISL_MASTER_KEYS && is_valid; ++i)
    {
        is_valid = ISL_KeyValueIs(table->Master[i].IsSet <= 1, "ISL.Keys", "IsSet", table->Master[i].IsSet, "0, 1");
    }
    if (is_valid && table->Master[0].IsSet != 0 && table->Master[1].IsSet != 0)
    {
        is_valid = ISL_KeyValueIs(table->Master[0].Generation != table->Master[1].Generation, "ISL.Keys", "Generation",
                                  table->Master[1].Generation, "another than that of the first key");
    }
    if (is_valid && ISL_Security.lacks != NULL)
    {
        is_valid = ISL_KeyValueIs(!ISL_HasKey(table), "ISL.Keys", "IsSet", 1, "0, as links cannot be secured");
    }
    for (i = 0; i < ISL_MASTER_KEYS && is_valid; ++i)
    {
        is_valid = ISL_KeyValueIs(table->Master[i].IsSet == 0 || ISL_IsKey(table->Master[i].Key), "ISL.Keys", "Key", 0,
                                  "a key of 32 random bytes: tables are loaded whole");
    }
    return is_valid ? CFE_SUCCESS : CFE_STATUS_VALIDATION_FAILURE;
}

CFE_Status_t ISL_Security_ValidatePeers(void *data)
{
    const ISL_PeersTable_t *const table = data;

    return ISL_KeyValueIs(table->Count <= ISL_PEERS_OF_PAGE, "ISL.Peers", "Count", table->Count, "0 .. 500")
               ? CFE_SUCCESS
               : CFE_STATUS_VALIDATION_FAILURE;
}

/* ---- keys between satellites --------------------------------------------------------------------------------------- */

/** Find the key between this satellite and another. Called under the node's lock. */
static bool ISL_PeerKey(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_Node_t *const node  = context;
    const uint16            slots = node->router.torus.slots;
    const uint32            index = ((uint32)plane - 1u) * slots + slot - 1u; /* no plane or slot of a credential is 0 */
    bool                    found = false;
    uint32                  page;

    for (page = 0; page < ISL_PEERS_PAGES && slot <= slots && !found; ++page)
    {
        const ISL_PeersTable_t *const table = &ISL_Security.peers[page];

        if (table->Generation == generation && index >= table->First && index - table->First < table->Count &&
            ISL_IsKey(table->Peer[index - table->First].Key))
        {
            memcpy(key, table->Peer[index - table->First].Key, SKY_CRYPTO_KEY_BYTES);
            found = true;
        }
    }
    return found;
}

/* ---- taking over --------------------------------------------------------------------------------------------------- */

/** Begin the core's security, once it is known which satellite this is. Without a library nobody is asked for a cookie. */
static void ISL_Security_Open(ISL_Node_t *isl, const ISL_KeysTable_t *table)
{
    SKY_SecurityCfg_t cfg;
    uint8_t           entropy[SKY_SECURITY_ENTROPY_BYTES];
    bool              is_random;

    ISL_Security.lacks = ISL_LACKS_LIBRARY;
    if (ISL_Security.crypto == NULL)
    {
        return;
    }
    memset(&cfg, 0, sizeof(cfg));
    cfg.crypto           = ISL_Security.crypto;
    cfg.suites           = ISL_SuitesOf(table);
    cfg.peer_suite       = ISL_PeerSuiteOf(table);
    cfg.established_max  = ISL_PLATFORM_ASSOCIATIONS;
    cfg.half_open_max    = ISL_PLATFORM_HALF_OPEN;
    cfg.session_max      = ISL_PLATFORM_SESSIONS;
    cfg.retry_us         = ISL_PLATFORM_HANDSHAKE_RETRY_MS * 1000u;
    cfg.peer_key         = ISL_PeerKey;
    cfg.peer_context     = &isl->node;
    cfg.rekey_peers      = ISL_Security.rekey_peers;
    cfg.rekey_peers_max  = ISL_PEERS_PAGES * ISL_PEERS_OF_PAGE;
    is_random            = ISL_Crypto_Entropy(entropy, sizeof(entropy));
    ISL_Security.is_open = SKY_Security_Init(&ISL_Security.security, &cfg, isl->node.router.self, ISL_Security.memory,
                                             sizeof(ISL_Security.memory), entropy);
    SKY_Wipe(entropy, sizeof(entropy));
    if (ISL_Security.is_open)
    {
        SKY_Node_Secure(&isl->node, &ISL_Security.security);
        ISL_Security.lacks = is_random ? NULL : ISL_LACKS_RANDOM;
    }
}

/** Make the keys of the table valid, and forget others. The last one in the table is the newest. */
static void ISL_TakeKeys(ISL_KeysTable_t *table)
{
    SKY_MasterKey_t masters[SKY_MASTER_KEYS];
    uint32          i;

    for (i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        masters[i].is_set     = table->Master[i].IsSet != 0;
        masters[i].generation = table->Master[i].Generation;
        memcpy(masters[i].key, table->Master[i].Key, SKY_CRYPTO_KEY_BYTES);
        SKY_Wipe(table->Master[i].Key, SKY_CRYPTO_KEY_BYTES);
    }
    SKY_Security_TakeMasters(&ISL_Security.security, masters);
    SKY_Wipe(masters, sizeof(masters));
}

/** Copy the pages that are new, and end what was made with keys that are not valid any more. */
static void ISL_TakePeers(void)
{
    bool   any = false;
    uint32 page;

    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        void *data = NULL;

        if (CFE_TBL_GetAddress(&data, ISL_Security.peers_handle[page]) == CFE_TBL_INFO_UPDATED)
        {
            memcpy(&ISL_Security.peers[page], data, sizeof(ISL_Security.peers[page]));
            SKY_Wipe(((ISL_PeersTable_t *)data)->Peer, sizeof(((ISL_PeersTable_t *)data)->Peer));
            any = true;
        }
        if (data != NULL)
        {
            (void)CFE_TBL_ReleaseAddress(ISL_Security.peers_handle[page]);
        }
    }
    if (any && ISL_Security.is_open)
    {
        SKY_Security_CheckPeers(&ISL_Security.security);
    }
}

static ISL_Generations_t ISL_UsedGenerations(void)
{
    ISL_Generations_t used = {0, 0, 0, ISL_Security.security.generation};
    uint32            i;

    for (i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const SKY_MasterKey_t *const master = &ISL_Security.security.associations.masters[i];

        if (master->is_set)
        {
            used.other  = used.count == 0 || master->generation < used.newest ? master->generation : used.newest;
            used.newest = master->generation > used.newest ? master->generation : used.newest;
            ++used.count;
        }
    }
    return used;
}

/** Note which keys are in use. @return true if others were told of last: commands over the air have changed them, or a table */
static bool ISL_NoteGenerations(void)
{
    const ISL_Generations_t used = ISL_UsedGenerations();
    const ISL_Generations_t told = ISL_Security.told;
    const bool              is_new =
        used.count != told.count || used.newest != told.newest || used.other != told.other || used.peers != told.peers;

    ISL_Security.told = used;
    return is_new;
}

static void ISL_TellGenerations(const ISL_Generations_t *used)
{
    if (used->count == 1)
    {
        (void)CFE_EVS_SendEvent(ISL_SECURITY_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: 1 master key is valid, of generation %u; links use keys of generation %u",
                                (unsigned)used->newest, (unsigned)used->peers);
    }
    else
    {
        (void)CFE_EVS_SendEvent(ISL_SECURITY_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: %u master keys are valid, of generations %u and %u; links use keys of generation %u",
                                (unsigned)used->count, (unsigned)used->newest, (unsigned)used->other, (unsigned)used->peers);
    }
}

/** Note the satellite's place. The core has ended all sessions and associations if it is a new one. @return true if so */
static bool ISL_NotePlace(const SKY_Node_t *node)
{
    const bool is_new =
        ISL_Security.is_open && ISL_Security.security.is_keyed && !SKY_Addr_Equal(ISL_Security.self, node->router.self);

    ISL_Security.self = node->router.self;
    return is_new;
}

CFE_Status_t ISL_Security_Update(void)
{
    void              *keys    = NULL;
    const CFE_Status_t status  = CFE_TBL_GetAddress(&keys, ISL_Security.keys_handle);
    const bool         is_new  = status == CFE_TBL_INFO_UPDATED;
    const char        *what    = NULL;
    const char        *why     = "";
    bool               is_safe = true;
    bool               moved   = false;
    bool               others  = false; /* keys came over the air */
    ISL_Generations_t  used    = {0, 0, 0, 0};
    ISL_Node_t *const  isl     = ISL_Task_Enter();

    if (isl != NULL)
    {
        moved = ISL_NotePlace(&isl->node);
        ISL_TakePeers();
        if (is_new && !ISL_Security.is_open)
        {
            ISL_Security_Open(isl, keys);
        }
        if (is_new && ISL_Security.lacks != NULL)
        {
            /* With a key, the mission wants its links secured. A satellite that cannot do so must not serve everybody. */
            is_safe = !ISL_HasKey(keys);
            what    = "cannot be secured: ";
            why     = ISL_Security.lacks;
        }
        else if (is_new)
        {
            SKY_Security_SetSuites(&ISL_Security.security, ISL_SuitesOf(keys), ISL_PeerSuiteOf(keys));
            ISL_TakeKeys(keys);
            what = ISL_Security.security.is_keyed ? "are secured" : "are not secured: there is no master key";
        }
        if (ISL_Security.is_open)
        {
            others = ISL_NoteGenerations() && what == NULL;
            used   = ISL_Security.told;
        }
        ISL_Task_Leave();
    }
    if (keys != NULL)
    {
        (void)CFE_TBL_ReleaseAddress(ISL_Security.keys_handle);
    }
    if (moved)
    {
        (void)CFE_EVS_SendEvent(ISL_SECURITY_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: sessions and associations have ended: they were those of another place");
    }
    if (others)
    {
        ISL_TellGenerations(&used);
    }
    if (what != NULL)
    {
        (void)CFE_EVS_SendEvent(is_safe ? ISL_SECURITY_INF_EID : ISL_SECURITY_ERR_EID,
                                is_safe ? CFE_EVS_EventType_INFORMATION : CFE_EVS_EventType_ERROR, "ISL: links %s%s", what, why);
    }
    return isl == NULL || !is_safe ? CFE_STATUS_EXTERNAL_RESOURCE_FAIL : status == CFE_SUCCESS || is_new ? CFE_SUCCESS : status;
}

CFE_Status_t ISL_Security_InitTables(void)
{
    CFE_Status_t status;
    uint32       page;

    ISL_Security.is_open = false; /* the app may have been started before */
    ISL_Security.lacks   = NULL;
    memset(&ISL_Security.told, 0, sizeof(ISL_Security.told));
    ISL_Security.crypto = ISL_Crypto_Open(ISL_PLATFORM_KEYS);
    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        ISL_Security.peers[page].Count = 0;
    }
    status = ISL_Tbl_Load(&ISL_Security.keys_handle, ISL_KEYS_TABLE_NAME, sizeof(ISL_KeysTable_t), ISL_Security_ValidateKeys,
                          ISL_KEYS_TABLE_FILE);
    for (page = 0; page < ISL_PEERS_PAGES && status == CFE_SUCCESS; ++page)
    {
        status = ISL_Tbl_Load(&ISL_Security.peers_handle[page], ISL_PeersPages[page].name, sizeof(ISL_PeersTable_t),
                              ISL_Security_ValidatePeers, ISL_PeersPages[page].file);
    }
    return status;
}

/* ---- housekeeping -------------------------------------------------------------------------------------------------- */

static void ISL_CountSuite(ISL_HkSecurity_t *hk, uint8_t suite)
{
    if (suite >= SKY_SUITE_GMAC_HEADER && suite <= ISL_SUITES)
    {
        ++hk->BySuite[suite - SKY_SUITE_GMAC_HEADER];
    }
}

static void ISL_CountSessions(ISL_HkSecurity_t *hk)
{
    const SKY_Security_t *const security = &ISL_Security.security;
    uint32                      i;

    for (i = 0; i < security->cfg.session_max; ++i)
    {
        const SKY_Session_t *const session = &security->sessions[i].session;

        hk->Sessions = (uint16)(hk->Sessions + (session->state == SKY_SESSION_ESTABLISHED ? 1u : 0u));
        hk->Asking   = (uint16)(hk->Asking + (session->state == SKY_SESSION_ASKING ? 1u : 0u));
        ISL_CountSuite(hk, session->suite);
    }
    for (i = 0; i < security->associations.count; ++i)
    {
        const SKY_Association_t *const association = &security->associations.entries[i];

        if (association->state != SKY_ASSOCIATION_FREE)
        {
            ISL_CountSuite(hk, association->suite);
        }
    }
}

static void ISL_FillKeys(ISL_HkSecurity_t *hk)
{
    const ISL_Generations_t used = ISL_UsedGenerations();

    hk->Secured         = ISL_Security.security.is_keyed ? 1 : 0;
    hk->MasterKeys      = used.count;
    hk->Generation      = used.newest;
    hk->Older           = used.other;
    hk->PeersGeneration = used.peers;
}

void ISL_Security_FillHk(ISL_HkSecurity_t *hk)
{
    const SKY_Security_t *const          security = &ISL_Security.security;
    const SKY_AssociationsStats_t *const stats    = &security->associations.stats;
    const SKY_SecurityCounters_t *const  counters = &security->counters;

    if (!ISL_Security.is_open)
    {
        return;
    }
    ISL_FillKeys(hk);
    ISL_CountSessions(hk);
    hk->Suites        = (uint8)security->associations.config.suites;
    hk->PeerSuite     = security->sessions[0].session.wanted;
    hk->Established   = (uint16)security->associations.established;
    hk->HalfOpen      = (uint16)security->associations.half_open;
    hk->Begun         = stats->begun;
    hk->Repeated      = stats->repeated;
    hk->Evicted       = stats->evicted;
    hk->Lapsed        = stats->lapsed;
    hk->NoAssociation = counters->no_association;
    hk->WrongTag      = counters->wrong_tag;
    hk->Handshakes    = counters->handshakes;
    hk->Replayed      = counters->replayed;
    hk->WrongRole     = counters->wrong_role;
    hk->WrongTenant   = counters->wrong_tenant;
    hk->NoCookie      = counters->no_cookie;
    hk->Unsent        = counters->unsent;
    hk->RekeyDone     = security->rekey.done;
    hk->RekeyRefused  = security->rekey.refused;
    hk->Limited       = counters->limited;
}

void ISL_Security_Reasons(uint64_t counts[ISL_REASONS])
{
    const SKY_SecurityCounters_t *const counters = &ISL_Security.security.counters;
    const bool                          is_keyed = ISL_Security.is_open && ISL_Security.security.is_keyed;

    memset(counts, 0, ISL_REASONS * sizeof(*counts));
    if (is_keyed) /* else each host is asked for a cookie once, which the drops tell */
    {
        counts[0]  = counters->no_association;
        counts[1]  = counters->wrong_tag;
        counts[2]  = counters->handshakes;
        counts[3]  = counters->replayed;
        counts[4]  = counters->wrong_role;
        counts[5]  = counters->wrong_tenant;
        counts[6]  = counters->no_cookie;
        counts[7]  = ISL_Security.security.associations.stats.evicted;
        counts[8]  = ISL_Security.security.rekey.wrong;
        counts[9]  = ISL_Security.security.rekey.kept;
        counts[10] = ISL_Security.security.rekey.refused - ISL_Security.security.rekey.wrong - ISL_Security.security.rekey.kept;
    }
    if (ISL_Security.is_open)
    {
        counts[11] = counters->limited; /* without a key, too: whoever is served sends no more than is allowed */
    }
}

const char *ISL_Security_ReasonName(uint32 reason)
{
    static const char *const names[ISL_REASONS] = {
        "packets refused: no association has their index",
        "packets refused: wrong tag",
        "handshakes refused: wrong tag, or no key for it",
        "packets dropped: replayed",
        "requests refused: not of this role",
        "requests refused: not of this tenant",
        "requests refused: no cookie",
        "associations in use ended to make room",
        "new keys refused: wrapped wrongly",
        "keys kept that were to be forgotten: the last one, or that of the command",
        "commands about keys refused: malformed, no room, or no such key",
        "packets of strangers not answered: too many",
    };

    return names[reason];
}

void ISL_Security_End(void)
{
    ISL_Security.is_open = false;
    SKY_Wipe(&ISL_Security.security, sizeof(ISL_Security.security));
    SKY_Wipe(ISL_Security.memory, sizeof(ISL_Security.memory));
    SKY_Wipe(ISL_Security.peers, sizeof(ISL_Security.peers));
    SKY_Wipe(ISL_Security.rekey_peers, sizeof(ISL_Security.rekey_peers));
    ISL_Security.crypto = NULL;
    ISL_Crypto_Close();
}

void ISL_Security_ManageTables(void)
{
    uint32 page;

    (void)CFE_TBL_Manage(ISL_Security.keys_handle);
    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        (void)CFE_TBL_Manage(ISL_Security.peers_handle[page]);
    }
}
