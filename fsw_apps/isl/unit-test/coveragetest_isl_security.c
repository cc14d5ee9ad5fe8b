/**
 * @file
 * Unit tests of ISL's tables of keys: validation, and what keys change.
 */
#include "isl_dispatch.h"
#include "isl_eventids.h"
#include "isl_msgids.h"
#include "isl_security.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "isl_ut.h"

#define WEST_INDEX 3u /* (2, 1) of 3 x 3 */
#define EAST_INDEX 5u /* (2, 3) of 3 x 3 */
#define HELLO_S    10u
#define HELLO_US   (HELLO_S * 1000000u)

static void Refused(CFE_Status_t status)
{
    UtAssert_INT32_EQ(status, CFE_STATUS_VALIDATION_FAILURE);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_TBL_VALUE_ERR_EID);
    UT_Setup();
}

static void Test_Validation(void)
{
    UtAssert_INT32_EQ(ISL_Security_ValidateKeys(&UT_Keys), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Security_ValidatePeers(&UT_Peers[0]), CFE_SUCCESS);
    UT_Keys.Suites = 1;
    Refused(ISL_Security_ValidateKeys(&UT_Keys));
    UT_Keys.Suites = 0x20;
    Refused(ISL_Security_ValidateKeys(&UT_Keys));
    UT_Keys.PeerSuite = 5;
    Refused(ISL_Security_ValidateKeys(&UT_Keys));
    UT_Keys.Master[1].IsSet = 2;
    Refused(ISL_Security_ValidateKeys(&UT_Keys));
    UT_Keys.Master[0].IsSet = UT_Keys.Master[1].IsSet = 1; /* two keys of one generation */
    Refused(ISL_Security_ValidateKeys(&UT_Keys));
    UT_Peers[0].Count = ISL_PEERS_OF_PAGE + 1u;
    Refused(ISL_Security_ValidatePeers(&UT_Peers[0]));
}

/** Set a key, by its generation. */
static void SetKey(uint32 place, uint8 generation)
{
    UT_Keys.Master[place].IsSet      = 1;
    UT_Keys.Master[place].Generation = generation;
    memset(UT_Keys.Master[place].Key, 0x40 + generation, sizeof(UT_Keys.Master[place].Key));
}

#ifdef UT_NO_LIBRARY

static void Test_NoLibrary(void)
{
    UT_Start();
    UtAssert_NULL(UT_Node()->node.security);
    SetKey(0, 1); /* from now on no key is taken */
    UtAssert_INT32_EQ(ISL_Security_ValidateKeys(&UT_Keys), CFE_STATUS_VALIDATION_FAILURE);

    UT_Setup();
    SetKey(0, 1);
    UtAssert_INT32_EQ(ISL_Task_Open(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tbl_Init(), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
}

void UT_AddSecurity(void)
{
    UtTest_Add(Test_Validation, UT_Setup, NULL, "tables of keys");
    UtTest_Add(Test_NoLibrary, UT_Setup, NULL, "no cryptographic library");
}

#else

/** Take over all tables, as if they were new. */
static void Wakeup(void)
{
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
}

static bool HasMaster(uint8 generation)
{
    const SKY_Associations_t *const table = &UT_Node()->node.security->associations;

    return (table->masters[0].is_set && table->masters[0].generation == generation) ||
           (table->masters[1].is_set && table->masters[1].generation == generation);
}

static void Test_NoKey(void)
{
    const SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_PING);

    UT_Start();
    UtAssert_NOT_NULL(UT_Node()->node.security);
    UtAssert_BOOL_FALSE(UT_Node()->node.security->is_keyed);
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_OK);
}

static void Test_Keys(void)
{
    const SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_PING);

    SetKey(0, 1);
    UT_Start();
    UtAssert_BOOL_TRUE(UT_Node()->node.security->is_keyed);
    UT_Input(1, &request, UT_GROUND);
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_UNAUTHENTICATED);

    UtAssert_ZERO(UT_Keys.Master[0].Key[0]); /* the table has no key any more */
    SetKey(0, 1);
    SetKey(1, 2); /* the next generation beside it, then instead of it */
    Wakeup();
    UtAssert_BOOL_TRUE(HasMaster(1) && HasMaster(2));
    UtAssert_UINT32_EQ(UT_Node()->node.security->generation, 2);
    SetKey(0, 3);
    SetKey(1, 2);
    Wakeup();
    UtAssert_BOOL_TRUE(!HasMaster(1) && HasMaster(2) && HasMaster(3));
    UT_Keys.Master[0].IsSet = 0;
    Wakeup();
    UtAssert_BOOL_TRUE(HasMaster(2) && !HasMaster(3));
    UT_Keys.Master[1].IsSet = 0; /* the last key stays: without it anybody would be served */
    Wakeup();
    UtAssert_BOOL_TRUE(HasMaster(2) && UT_Node()->node.security->is_keyed);
}

/** Return whether this satellite has asked its neighbour in the east for an association. */
static bool HasAsked(uint64_t now_us)
{
    SKY_Packet_t asked;

    UT_SentCount = 0;
    UT_SentIpv4  = 0;
    ISL_Node_Run(UT_Node(), now_us);
    if (UT_SentCount == 0 || UT_SentIpv4 != UT_IPV4(2, 3))
    {
        return false;
    }
    asked = UT_Answer();
    return asked.op == SKY_OP_ASSOCIATE && asked.security == SKY_SUITE_HANDSHAKE;
}

static void Test_Peers(void)
{
    UT_Neighbours.HelloS = HELLO_S;
    SetKey(0, 1);
    UT_Peers[1].Generation = 1;
    UT_Peers[1].First      = EAST_INDEX - 1u; /* its first key is zeros, which are none */
    UT_Peers[1].Count      = 2;
    memset(UT_Peers[1].Peer[1].Key, 7, sizeof(UT_Peers[1].Peer[1].Key));
    UT_Start();
    UtAssert_BOOL_TRUE(HasAsked(HELLO_US));

    UT_Peers[1].Generation = 2; /* keys of another generation are not used */
    Wakeup();
    UtAssert_BOOL_FALSE(HasAsked(3 * HELLO_US));
}

/** Let a neighbour of the same plane associate. @param key  the byte of which its key consists */
static void Associate(uint16 slot, uint8 key, SKY_LinkId_t link)
{
    static uint8           wire[UT_SENT_MAX];
    const SKY_Addr_t       from = {2, slot};
    uint8                  pair[SKY_CRYPTO_KEY_BYTES];
    uint8                  payload[SKY_HANDSHAKE_REQUEST_BYTES];
    uint8                  tail[SKY_TAIL_MAX];
    const SKY_TagKey_t     tag = {UT_Node()->node.security->cfg.crypto, 0, pair, NULL};
    SKY_HandshakeRequest_t request;
    SKY_Packet_t           pkt = UT_Request(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    size_t                 len;

    memset(&request, 0, sizeof(request));
    memset(pair, key, sizeof(pair));
    SKY_Credential_OfSatellite(from, 1, &request.credential);
    request.wanted = SKY_SUITE_BLAKE2B_HEADER;
    SKY_Handshake_EncodeRequest(&request, payload);
    pkt.src      = from;
    pkt.security = SKY_SUITE_HANDSHAKE;
    pkt.payload  = payload;
    pkt.length   = sizeof(payload);
    len          = SKY_Tag_EncodeAround(&pkt, &tag, NULL, wire, tail);
    UtAssert_BOOL_TRUE(len > 0);
    memcpy(wire + len, payload, sizeof(payload));
    len += sizeof(payload);
    memcpy(wire + len, tail, SKY_Packet_TailBytes(&pkt));
    len += SKY_Packet_TailBytes(&pkt);
    ISL_Node_Input(UT_Node(), 1, wire, (uint32)len, UT_Neighbour(link));
    UtAssert_UINT32_EQ(UT_Answer().status, SKY_STATUS_OK);
}

/** Start with keys of the neighbours in the east and the west, which have associated. */
static SKY_Security_t *StartWithPeers(void)
{
    SetKey(0, 1);
    UT_Peers[0].Generation = 1;
    UT_Peers[0].First      = WEST_INDEX;
    UT_Peers[0].Count      = EAST_INDEX - WEST_INDEX + 1u;
    memset(UT_Peers[0].Peer[0].Key, 6, sizeof(UT_Peers[0].Peer[0].Key));
    memset(UT_Peers[0].Peer[EAST_INDEX - WEST_INDEX].Key, 7, sizeof(UT_Peers[0].Peer[0].Key));
    UT_Start();
    Associate(1, 6, SKY_LINK_WEST);
    Associate(3, 7, SKY_LINK_EAST);
    return UT_Node()->node.security;
}

static bool HasAssociated(const SKY_Security_t *security, uint16 slot)
{
    uint32 i;
    bool   found = false;

    for (i = 0; i < security->associations.count; ++i)
    {
        const SKY_Association_t *const association = &security->associations.entries[i];

        found = found ||
                (association->state != SKY_ASSOCIATION_FREE && SKY_Credential_Satellite(&association->credential).slot == slot);
    }
    return found;
}

static void Test_NewPeers(void)
{
    SKY_Security_t *const security = StartWithPeers();

    UtAssert_ZERO(UT_Peers[0].Peer[0].Key[0]); /* the table has no key any more */
    UtAssert_UINT32_EQ(UT_Peers[0].Count, 3);
    UtAssert_BOOL_TRUE(HasAssociated(security, 3));
    SetKey(0, 1);
    memset(UT_Peers[0].Peer[0].Key, 6, sizeof(UT_Peers[0].Peer[0].Key)); /* as before */
    memset(UT_Peers[0].Peer[EAST_INDEX - WEST_INDEX].Key, 8, sizeof(UT_Peers[0].Peer[0].Key));
    Wakeup();
    UtAssert_BOOL_TRUE(HasAssociated(security, 1));
    UtAssert_BOOL_FALSE(HasAssociated(security, 3)); /* its key is another one */

    SetKey(0, 1);
    UT_Peers[0].Count = 0; /* nor is there one any more */
    Wakeup();
    UtAssert_BOOL_FALSE(HasAssociated(security, 1));
}

static void Test_Suites(void)
{
    SKY_Security_t *const security = StartWithPeers();

    SetKey(0, 1);
    UT_Keys.Suites    = SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_PACKET);
    UT_Keys.PeerSuite = SKY_SUITE_BLAKE2B_PACKET;
    Wakeup();
    UtAssert_UINT32_EQ(security->associations.config.suites, UT_Keys.Suites);
    UtAssert_UINT32_EQ(security->sessions[0].session.wanted, SKY_SUITE_BLAKE2B_PACKET);
    if ((security->cfg.crypto->suites & SKY_SUITES_GMAC) == 0)
    {
        UT_Keys.Suites = SKY_SUITES_GMAC; /* the library can do none of them */
        UtAssert_INT32_EQ(ISL_Security_ValidateKeys(&UT_Keys), CFE_STATUS_VALIDATION_FAILURE);
    }
}

static void Test_ErasedTable(void)
{
    SetKey(0, 1);
    UtAssert_INT32_EQ(ISL_Security_ValidateKeys(&UT_Keys), CFE_SUCCESS);
    UT_Start();
    UtAssert_INT32_EQ(ISL_Security_ValidateKeys(&UT_Keys), CFE_STATUS_VALIDATION_FAILURE); /* zeros are no key */
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_TBL_VALUE_ERR_EID);
}

static void Test_Move(void)
{
    SKY_Security_t *const security = StartWithPeers();

    SetKey(0, 1);
    UT_Neighbours.SelfSlot = 1;
    memset(UT_Neighbours.Neighbour, 0, sizeof(UT_Neighbours.Neighbour));
    Wakeup();
    UtAssert_UINT32_EQ(security->self.slot, 1);
    UtAssert_BOOL_FALSE(HasAssociated(security, 3));
    UtAssert_BOOL_TRUE(security->is_keyed);
}

static void Test_Housekeeping(void)
{
    const SKY_Packet_t request = UT_Request(SKY_APID_ISL, SKY_OP_PING);
    ISL_HkSecurity_t  *hk      = &ISL_Data.Hk.Payload.Security;

    SetKey(0, 1);
    SetKey(1, 2);
    UT_Start();
    UT_Input(1, &request, UT_GROUND);
    UT_Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(hk->Secured, 1);
    UtAssert_UINT32_EQ(hk->MasterKeys, 2);
    UtAssert_UINT32_EQ(hk->Generation, 2);
    UtAssert_UINT32_EQ(hk->Older, 1);
    UtAssert_UINT32_EQ(hk->PeersGeneration, 2);
    UtAssert_UINT32_EQ(hk->NoAssociation, 1);
    UT_LastEvent = 0;
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(ISL_Data.Refused[0], 1); /* an event has told */
    UT_Send(ISL_CMD_MID, ISL_RESET_COUNTERS_CC, sizeof(ISL_ResetCountersCmd_t), NULL);
    UT_Send(ISL_SEND_HK_MID, 0, sizeof(ISL_SendHkCmd_t), NULL);
    UtAssert_UINT32_EQ(hk->NoAssociation, 0);
}

/** Keys that come over the air are in the core: the app tells of them when it wakes up, once. */
static void Test_KeysOverTheAir(void)
{
    const uint8           key[ISL_KEY_BYTES] = {9};
    SKY_Security_t *const security           = StartWithPeers();

    UtAssert_BOOL_TRUE(SKY_Associations_SetMaster(&security->associations, 2, key));
    UT_LastEvent = 0;
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_SECURITY_INF_EID);
    UT_LastEvent = 0;
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_ZERO(UT_LastEvent);
    UtAssert_BOOL_TRUE(SKY_Associations_ForgetMaster(&security->associations, 2)); /* one key is told of in other words */
    UT_Send(ISL_WAKEUP_MID, 0, sizeof(ISL_WakeupCmd_t), NULL);
    UtAssert_UINT32_EQ(UT_LastEvent, ISL_SECURITY_INF_EID);
}

/** At the end no key is left. */
static void Test_End(void)
{
    SKY_Security_t *const security = StartWithPeers();

    ISL_Security_End();
    UtAssert_ZERO(security->associations.masters[0].key[0]);
    UtAssert_BOOL_FALSE(security->is_keyed);
}

void UT_AddSecurity(void)
{
    UtTest_Add(Test_NewPeers, UT_Setup, NULL, "new keys of other satellites");
    UtTest_Add(Test_Suites, UT_Setup, NULL, "suites");
    UtTest_Add(Test_ErasedTable, UT_Setup, NULL, "a table that was taken over");
    UtTest_Add(Test_Move, UT_Setup, NULL, "a new place");
    UtTest_Add(Test_Housekeeping, UT_Setup, NULL, "housekeeping of security");
    UtTest_Add(Test_KeysOverTheAir, UT_Setup, NULL, "keys that come over the air");
    UtTest_Add(Test_End, UT_Setup, NULL, "keys at the end");
    UtTest_Add(Test_Validation, UT_Setup, NULL, "tables of keys");
    UtTest_Add(Test_NoKey, UT_Setup, NULL, "no key");
    UtTest_Add(Test_Keys, UT_Setup, NULL, "keys");
    UtTest_Add(Test_Peers, UT_Setup, NULL, "keys of other satellites");
}

#endif
