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

/* The pages are copies, so that a key can be looked up at any time under the node's lock. */
static struct
{
    CFE_TBL_Handle_t keys_handle;
    CFE_TBL_Handle_t peers_handle[ISL_PEERS_PAGES];
    ISL_PeersTable_t peers[ISL_PEERS_PAGES];
    bool             is_open;
    bool             cannot_open; /**< it was tried in vain: no table with a key is taken */
    uint16           slots;
    SKY_Security_t   security;
    uint64_t         memory[ISL_PLATFORM_SECURITY_BYTES / sizeof(uint64_t)];
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

CFE_Status_t ISL_Security_ValidateKeys(void *data)
{
    const ISL_KeysTable_t *const table = data;
    bool                         is_valid =
        ISL_KeyValueIs((table->Suites & ~(uint32)ISL_SUITES_ALL) == 0, "ISL.Keys", "Suites", table->Suites,
                       "a sum of 2, 4, 8, 16; 0: all") &&
        ISL_KeyValueIs(table->PeerSuite <= SKY_SECURITY_BLAKE2B_PACKET, "ISL.Keys", "PeerSuite", table->PeerSuite, "0 .. 4");
    uint32 i;

    for (i = 0; i < ISL_MASTER_KEYS && is_valid; ++i)
    {
        is_valid = ISL_KeyValueIs(table->Master[i].IsSet <= 1, "ISL.Keys", "IsSet", table->Master[i].IsSet, "0, 1");
    }
    if (is_valid && table->Master[0].IsSet != 0 && table->Master[1].IsSet != 0)
    {
        is_valid = ISL_KeyValueIs(table->Master[0].Generation != table->Master[1].Generation, "ISL.Keys", "Generation",
                                  table->Master[1].Generation, "another than that of the first key");
    }
    if (is_valid && ISL_Security.cannot_open)
    {
        is_valid = ISL_KeyValueIs(!ISL_HasKey(table), "ISL.Keys", "IsSet", 1, "0: there is no cryptographic library that works");
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

/** Return true if a place of a table has a key. Zeros, which everybody knows, are none: the own place has them, and gaps. */
static bool ISL_IsKey(const ISL_PeerKey_t *peer)
{
    uint8  any = 0;
    uint32 i;

    for (i = 0; i < ISL_KEY_BYTES; ++i)
    {
        any = (uint8)(any | peer->Key[i]);
    }
    return any != 0;
}

/** Find the key between this satellite and another. Called under the node's lock. */
static bool ISL_PeerKey(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const uint32 index = ((uint32)plane - 1u) * ISL_Security.slots + slot - 1u; /* a credential's plane and slot are not 0 */
    uint32       page;

    (void)context;
    if (slot > ISL_Security.slots)
    {
        return false;
    }
    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        const ISL_PeersTable_t *const table = &ISL_Security.peers[page];

        if (table->Generation == generation && index >= table->First && index - table->First < table->Count &&
            ISL_IsKey(&table->Peer[index - table->First]))
        {
            memcpy(key, table->Peer[index - table->First].Key, SKY_CRYPTO_KEY_BYTES);
            return true;
        }
    }
    return false;
}

/* ---- taking over --------------------------------------------------------------------------------------------------- */

/** Begin the core's security, once it is known which satellite this is. @return false if there is no library */
static bool ISL_Security_Open(ISL_Node_t *isl, const ISL_KeysTable_t *table)
{
    SKY_SecurityCfg_t cfg;
    uint8_t           entropy[SKY_SECURITY_ENTROPY_BYTES];

    memset(&cfg, 0, sizeof(cfg));
    cfg.crypto = ISL_Crypto_Open(ISL_PLATFORM_KEYS);
    if (cfg.crypto == NULL)
    {
        return false;
    }
    cfg.suites     = table->Suites != 0 ? table->Suites : ISL_SUITES_ALL;
    cfg.peer_suite = table->PeerSuite;
    if (cfg.peer_suite == SKY_SECURITY_NONE)
    {
        cfg.peer_suite = (cfg.crypto->suites & SKY_SUITES_GMAC) != 0 ? SKY_SECURITY_GMAC_HEADER : SKY_SECURITY_BLAKE2B_HEADER;
    }
    cfg.established_max = ISL_PLATFORM_ASSOCIATIONS;
    cfg.half_open_max   = ISL_PLATFORM_HALF_OPEN;
    cfg.session_max     = ISL_PLATFORM_SESSIONS;
    cfg.retry_us        = ISL_PLATFORM_HANDSHAKE_RETRY_MS * 1000u;
    cfg.peer_key        = ISL_PeerKey;
    ISL_Crypto_Entropy(entropy, sizeof(entropy));
    ISL_Security.is_open = SKY_Security_Init(&ISL_Security.security, &cfg, isl->node.router.self, ISL_Security.memory,
                                             sizeof(ISL_Security.memory), entropy);
    memset(entropy, 0, sizeof(entropy));
    if (ISL_Security.is_open)
    {
        SKY_Node_Secure(&isl->node, &ISL_Security.security);
    }
    return ISL_Security.is_open;
}

static bool ISL_TableHas(const ISL_KeysTable_t *table, uint8 generation)
{
    uint32 i;
    bool   has_it = false;

    for (i = 0; i < ISL_MASTER_KEYS; ++i)
    {
        has_it = has_it || (table->Master[i].IsSet != 0 && table->Master[i].Generation == generation);
    }
    return has_it;
}

/** Forget the keys that the table does not have, but for the one that is in use. */
static void ISL_ForgetKeys(const ISL_KeysTable_t *table)
{
    uint32 i;

    for (i = 0; i < SKY_MASTER_KEYS; ++i)
    {
        const SKY_MasterKey_t *const known = &ISL_Security.security.associations.masters[i];

        if (known->is_set && !ISL_TableHas(table, known->generation))
        {
            (void)SKY_Security_ForgetMaster(&ISL_Security.security, known->generation);
        }
    }
}

/** Make the keys of the table valid, and forget others. The last one in the table is the newest. */
static void ISL_TakeKeys(const ISL_KeysTable_t *table)
{
    uint32 i;

    ISL_ForgetKeys(table);
    for (i = 0; i < ISL_MASTER_KEYS; ++i)
    {
        if (table->Master[i].IsSet != 0)
        {
            (void)SKY_Security_SetMaster(&ISL_Security.security, table->Master[i].Generation, table->Master[i].Key);
            ISL_ForgetKeys(table); /* the one that was in use goes now, which leaves a place for the next one */
        }
    }
}

/** Copy the pages that are new. @return true if there were some */
static bool ISL_TakePeers(void)
{
    bool   any = false;
    uint32 page;

    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        void              *data   = NULL;
        const CFE_Status_t status = CFE_TBL_GetAddress(&data, ISL_Security.peers_handle[page]);

        if (status == CFE_TBL_INFO_UPDATED)
        {
            memcpy(&ISL_Security.peers[page], data, sizeof(ISL_Security.peers[page]));
            any = true;
        }
        if (data != NULL)
        {
            (void)CFE_TBL_ReleaseAddress(ISL_Security.peers_handle[page]);
        }
    }
    return any;
}

CFE_Status_t ISL_Security_Update(void)
{
    void              *keys    = NULL;
    const CFE_Status_t status  = CFE_TBL_GetAddress(&keys, ISL_Security.keys_handle);
    const bool         is_new  = status == CFE_TBL_INFO_UPDATED;
    const char        *what    = NULL;
    bool               is_safe = true;
    ISL_Node_t *const  isl     = ISL_Task_Enter();

    if (isl != NULL)
    {
        ISL_Security.slots = isl->node.router.torus.slots;
        if (ISL_TakePeers() && ISL_Security.is_open)
        {
            SKY_Security_EndSessions(&ISL_Security.security);
        }
        if (is_new && !ISL_Security.is_open && !ISL_Security_Open(isl, keys))
        {
            /* With a key, the mission wants its links secured. A satellite that cannot do so must not serve everybody. */
            is_safe                  = !ISL_HasKey(keys);
            ISL_Security.cannot_open = true;
            what = "ISL: links cannot be secured: there is no cryptographic library, or its answers are wrong";
        }
        if (is_new && ISL_Security.is_open)
        {
            ISL_TakeKeys(keys);
            what =
                ISL_Security.security.is_keyed ? "ISL: links are secured" : "ISL: links are not secured: there is no master key";
        }
        ISL_Task_Leave();
    }
    if (keys != NULL)
    {
        (void)CFE_TBL_ReleaseAddress(ISL_Security.keys_handle);
    }
    if (what != NULL)
    {
        (void)CFE_EVS_SendEvent(is_safe ? ISL_SECURITY_INF_EID : ISL_SECURITY_ERR_EID,
                                is_safe ? CFE_EVS_EventType_INFORMATION : CFE_EVS_EventType_ERROR, "%s", what);
    }
    return isl == NULL || !is_safe ? CFE_STATUS_EXTERNAL_RESOURCE_FAIL : status == CFE_SUCCESS || is_new ? CFE_SUCCESS : status;
}

CFE_Status_t ISL_Security_InitTables(void)
{
    CFE_Status_t status;
    uint32       page;

    ISL_Security.is_open     = false; /* the app may have been started before */
    ISL_Security.cannot_open = false;
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

void ISL_Security_ManageTables(void)
{
    uint32 page;

    (void)CFE_TBL_Manage(ISL_Security.keys_handle);
    for (page = 0; page < ISL_PEERS_PAGES; ++page)
    {
        (void)CFE_TBL_Manage(ISL_Security.peers_handle[page]);
    }
}
