/**
 * @file
 * Unit tests of the registry of services, the clock and the seed.
 */
#include "cfe.h"
#include "sky_assert.h"
#include "sky_lib.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

#define APID 0x123

static uint32 Attached;
static bool   AttachResult;

static bool Attach(const SKY_LIB_Node_t *node)
{
    UtAssert_UINT32_EQ(node->self.slot, 7);
    ++Attached;
    return AttachResult;
}

static bool Lock(void)
{
    return true;
}

static void Unlock(void)
{
}

static void Begin(uint64_t now_us, const SKY_Packet_t *pkt)
{
    (void)now_us;
    (void)pkt;
}

static bool Next(uint64_t now_us, SKY_Out_t *out)
{
    (void)now_us;
    (void)out;
    return false;
}

static void Poll(uint64_t now_us, uint64_t *next_us)
{
    *next_us = now_us;
}

static void Reject(SKY_Status_t status)
{
    (void)status;
}

static void Unreachable(SKY_Addr_t dst)
{
    (void)dst;
}

static const SKY_LIB_Service_t Service = {Attach, Lock, Unlock, Begin, Next, Poll, Reject, Unreachable};

static void Setup(void)
{
    UT_ResetState(0);
    Attached     = 0;
    AttachResult = true;
    UtAssert_INT32_EQ(SKY_LibInit(), CFE_SUCCESS);
}

static void Test_Init(void)
{
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemCreate), 1, OS_ERROR);
    UtAssert_INT32_EQ(SKY_LibInit(), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    UtAssert_STUB_COUNT(CFE_ES_WriteToSysLog, 1);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemCreate), 2, OS_ERROR); /* the second mutex is that of assertions */
    UtAssert_INT32_EQ(SKY_LibInit(), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    UtAssert_STUB_COUNT(CFE_ES_WriteToSysLog, 2);
}

static void Test_Register(void)
{
    SKY_LIB_Service_t incomplete = Service;
    uint16            i;

    incomplete.Poll = NULL;
    UtAssert_INT32_EQ(SKY_LIB_Register(APID, NULL), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    UtAssert_INT32_EQ(SKY_LIB_Register(APID, &incomplete), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_INT32_EQ(SKY_LIB_Register(APID, &Service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);

    for (i = 0; i < SKY_LIB_SERVICES; ++i)
    {
        UtAssert_INT32_EQ(SKY_LIB_Register((uint16)(APID + i), &Service), CFE_SUCCESS);
        UtAssert_INT32_EQ(SKY_LIB_Register((uint16)(APID + i), &Service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    }
    UtAssert_INT32_EQ(SKY_LIB_Register(APID - 1, &Service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    SKY_LIB_Unregister(APID + 1);
    SKY_LIB_Unregister(APID + 1);
    UtAssert_INT32_EQ(SKY_LIB_Register(APID - 1, &Service), CFE_SUCCESS);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    SKY_LIB_Unregister(APID);
    UtAssert_NOT_NULL(SKY_LIB_Acquire(APID));
    SKY_LIB_Release();
}

static void Test_SetNode(void)
{
    SKY_LIB_Node_t node;

    memset(&node, 0, sizeof(node));
    node.self.slot = 7;
    UtAssert_INT32_EQ(SKY_LIB_Register(APID, &Service), CFE_SUCCESS);
    UtAssert_UINT32_EQ(Attached, 0);
    UtAssert_UINT32_EQ(SKY_LIB_SetNode(&node), 0);
    UtAssert_UINT32_EQ(Attached, 1);
    AttachResult = false;
    UtAssert_UINT32_EQ(SKY_LIB_SetNode(&node), 1);
    UtAssert_INT32_EQ(SKY_LIB_Register(APID + 1, &Service), CFE_SUCCESS); /* a service that registers later is told at once */
    UtAssert_UINT32_EQ(Attached, 3);
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_UINT32_EQ(SKY_LIB_SetNode(&node), SKY_LIB_SERVICES);
}

static void Test_Acquire(void)
{
    uint16_t apid = 0;

    UtAssert_NULL(SKY_LIB_Acquire(APID));
    UtAssert_NULL(SKY_LIB_AcquireAt(0, &apid));
    UtAssert_NULL(SKY_LIB_AcquireAt(SKY_LIB_SERVICES, &apid));
    UtAssert_STUB_COUNT(OS_MutSemGive, UT_GetStubCount(UT_KEY(OS_MutSemTake))); /* nothing was found, so nothing was locked */

    UtAssert_INT32_EQ(SKY_LIB_Register(APID, &Service), CFE_SUCCESS);
    UtAssert_ADDRESS_EQ(SKY_LIB_Acquire(APID), &Service);
    UtAssert_STUB_COUNT(OS_MutSemGive, UT_GetStubCount(UT_KEY(OS_MutSemTake)) - 1);
    SKY_LIB_Release();
    UtAssert_ADDRESS_EQ(SKY_LIB_AcquireAt(0, &apid), &Service);
    UtAssert_UINT32_EQ(apid, APID);
    SKY_LIB_Release();
    UT_SetDeferredRetcode(UT_KEY(OS_MutSemTake), 1, OS_ERROR);
    UtAssert_NULL(SKY_LIB_Acquire(APID));
    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR);
    UtAssert_NULL(SKY_LIB_AcquireAt(0, &apid));
}

static void OnTime(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "time_struct", OS_time_t *) = OS_TimeAssembleFromMicroseconds(12, 345678);
}

static void Test_Time(void)
{
    CFE_TIME_SysTime_t wall = {7, 0};

    UT_SetHandlerFunction(UT_KEY(OS_GetMonotonicTime), OnTime, NULL);
    UtAssert_BOOL_TRUE(SKY_LIB_NowUs() == UINT64_C(12345678));
    UT_SetDataBuffer(UT_KEY(CFE_TIME_GetTime), &wall, sizeof(wall), false);
    UtAssert_BOOL_TRUE(SKY_LIB_NowUs() + SKY_LIB_ClockOffsetUs() == UINT64_C(7000000));
    UT_SetDefaultReturnValue(UT_KEY(OS_GetMonotonicTime), OS_ERROR);
    UtAssert_BOOL_TRUE(SKY_LIB_NowUs() == 0);
    UtAssert_BOOL_TRUE(SKY_LIB_Seed() != SKY_LIB_Seed());
    UtAssert_StrCmp(SKY_LIB_StatusName(SKY_STATUS_BAD_CRC), "bad_crc", "name of a status");
    UtAssert_StrCmp(SKY_LIB_StatusName(99), "unknown", "no name");
}

static void Test_Asserts(void)
{
    UtAssert_UINT32_EQ(SKY_LIB_Asserts().failed, 0);
    SKY_AssertFailed("/where/it/was/built/sky_store.c", 12);
    SKY_AssertFailed("sky_fetch.c", 34);
    UtAssert_UINT32_EQ(SKY_LIB_Asserts().failed, 2);
    UtAssert_StrCmp(SKY_LIB_Asserts().file, "sky_store.c", "the first, without a path");
    UtAssert_INT32_EQ(SKY_LIB_Asserts().line, 12);
    UtAssert_STUB_COUNT(CFE_ES_WriteToSysLog, 1);
    SKY_LIB_ResetAsserts();
    UtAssert_UINT32_EQ(SKY_LIB_Asserts().failed, 0);
    UT_SetDefaultReturnValue(UT_KEY(OS_MutSemTake), OS_ERROR);
    SKY_AssertFailed("sky_fetch.c", 34);
    SKY_LIB_ResetAsserts();
    UtAssert_UINT32_EQ(SKY_LIB_Asserts().failed, 0);
    UT_ResetState(UT_KEY(OS_MutSemTake));
    UtAssert_UINT32_EQ(SKY_LIB_Asserts().failed, 1);
}

void UtTest_Setup(void)
{
    UtTest_Add(Test_Init, Setup, NULL, "SKY_LibInit");
    UtTest_Add(Test_Register, Setup, NULL, "SKY_LIB_Register, SKY_LIB_Unregister");
    UtTest_Add(Test_SetNode, Setup, NULL, "SKY_LIB_SetNode");
    UtTest_Add(Test_Acquire, Setup, NULL, "SKY_LIB_Acquire, SKY_LIB_AcquireAt");
    UtTest_Add(Test_Time, Setup, NULL, "SKY_LIB_NowUs, SKY_LIB_Seed");
    UtTest_Add(Test_Asserts, Setup, NULL, "SKY_AssertFailed");
}
