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

    SetKey(1, 2); /* the next generation beside it, then instead of it */
    Wakeup();
    UtAssert_BOOL_TRUE(HasMaster(1) && HasMaster(2));
    SetKey(0, 3);
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
    return asked.op == SKY_OP_ASSOCIATE && asked.security == SKY_SECURITY_HANDSHAKE;
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

void UT_AddSecurity(void)
{
    UtTest_Add(Test_Validation, UT_Setup, NULL, "tables of keys");
    UtTest_Add(Test_NoKey, UT_Setup, NULL, "no key");
    UtTest_Add(Test_Keys, UT_Setup, NULL, "keys");
    UtTest_Add(Test_Peers, UT_Setup, NULL, "keys of other satellites");
}

#endif
