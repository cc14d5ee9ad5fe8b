/* The registry of the sky library. cFE and OSAL are stubs of this file: they count, and fail when told to. */
#include "sky_lib.h"

#include <stdarg.h>
#include <string.h>

#include "cfe.h"
#include "check.h"
#include "sky_assert.h"

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

static struct
{
    int32  create_status, take_status, time_status;
    uint32 creates_left; /* before create_status */
    int    depth;        /* of the mutex: taken, not given */
    uint32 logged, printed;
    int64  now_us;
} stub;

int32 OS_MutSemCreate(osal_id_t *sem_id, const char *sem_name, uint32 options)
{
    (void)sem_name;
    (void)options;
    memset(sem_id, 0, sizeof(*sem_id));
    if (stub.creates_left > 0)
    {
        --stub.creates_left;
        return OS_SUCCESS;
    }
    return stub.create_status;
}

int32 OS_MutSemTake(osal_id_t sem_id)
{
    (void)sem_id;
    stub.depth += stub.take_status == OS_SUCCESS ? 1 : 0;
    return stub.take_status;
}

int32 OS_MutSemGive(osal_id_t sem_id)
{
    (void)sem_id;
    --stub.depth;
    return OS_SUCCESS;
}

int32 OS_GetMonotonicTime(OS_time_t *time_struct)
{
    time_struct->ticks = stub.now_us * OS_TIME_TICKS_PER_USEC;
    return stub.time_status;
}

void OS_printf(const char *string, ...)
{
    (void)string;
    ++stub.printed;
}

CFE_Status_t CFE_ES_WriteToSysLog(const char *SpecStringPtr, ...)
{
    (void)SpecStringPtr;
    ++stub.logged;
    return CFE_SUCCESS;
}

CFE_TIME_SysTime_t CFE_TIME_GetTime(void)
{
    const CFE_TIME_SysTime_t wall = {7, 9};

    return wall;
}

uint32 CFE_TIME_Sub2MicroSecs(uint32 SubSeconds)
{
    return SubSeconds + 91;
}

uint32 CFE_PSP_GetProcessorId(void)
{
    return 310;
}

/* ---- services ---------------------------------------------------------------------------------------------------- */

static uint32         attached;
static bool           able;
static SKY_LIB_Node_t seen;

static bool attach(const SKY_LIB_Node_t *node)
{
    ++attached;
    seen = *node;
    return able;
}

static bool lock(void)
{
    return true;
}

static void unlock(void)
{
}

static void begin(uint64_t now_us, const SKY_Packet_t *pkt)
{
    (void)now_us;
    (void)pkt;
}

static bool next(uint64_t now_us, SKY_Out_t *out)
{
    (void)now_us;
    (void)out;
    return false;
}

static void poll(uint64_t now_us, uint64_t *next_us)
{
    (void)now_us;
    *next_us = UINT64_MAX;
}

static void reject(SKY_Status_t status)
{
    (void)status;
}

static void unreachable(SKY_Addr_t dst)
{
    (void)dst;
}

static const SKY_LIB_Service_t service = {attach, lock, unlock, begin, next, poll, reject, unreachable};
static const SKY_LIB_Node_t    node    = {{3, 10}, {5, 19, false}, 1472};

static void start(void)
{
    memset(&stub, 0, sizeof(stub));
    attached = 0;
    able     = true;
    CHECK_EQ(SKY_LibInit(), CFE_SUCCESS);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void it_starts_or_says_why_not(void)
{
    start();
    CHECK_EQ(stub.printed, 1);
    CHECK_EQ(stub.logged, 0);
    stub.create_status = OS_ERR_NO_FREE_IDS;
    CHECK_EQ(SKY_LibInit(), CFE_STATUS_EXTERNAL_RESOURCE_FAIL); /* no mutex for the registry */
    CHECK_EQ(stub.logged, 1);
    stub.creates_left = 1;
    CHECK_EQ(SKY_LibInit(), CFE_STATUS_EXTERNAL_RESOURCE_FAIL); /* none for assertions */
    CHECK_EQ(stub.logged, 2);
}

static void a_service_is_found_until_it_leaves(void)
{
    start();
    CHECK(SKY_LIB_Acquire(SKY_APID_KVC) == NULL);
    CHECK_EQ(stub.depth, 0);
    CHECK_EQ(SKY_LIB_Register(SKY_APID_KVC, &service), CFE_SUCCESS);
    CHECK_EQ(attached, 0); /* the satellite is not known yet */

    CHECK(SKY_LIB_Acquire(SKY_APID_KVC) == &service);
    CHECK_EQ(stub.depth, 1); /* locked until it is released */
    SKY_LIB_Release();
    CHECK(SKY_LIB_Acquire(SKY_APID_ISL) == NULL);
    CHECK_EQ(stub.depth, 0);

    SKY_LIB_Unregister(SKY_APID_ISL); /* not there: harmless */
    SKY_LIB_Unregister(SKY_APID_KVC);
    CHECK(SKY_LIB_Acquire(SKY_APID_KVC) == NULL);
    CHECK_EQ(stub.depth, 0);
}

static void services_are_walked_by_place(void)
{
    uint16_t apid = 0;

    start();
    CHECK_EQ(SKY_LIB_Register(77, &service), CFE_SUCCESS);
    CHECK(SKY_LIB_AcquireAt(0, &apid) == &service);
    CHECK_EQ(apid, 77);
    SKY_LIB_Release();
    CHECK(SKY_LIB_AcquireAt(1, &apid) == NULL);
    CHECK(SKY_LIB_AcquireAt(SKY_LIB_SERVICES, &apid) == NULL);
    CHECK_EQ(stub.depth, 0);
}

static void the_registry_is_bounded_and_each_apid_has_one_service(void)
{
    uint16_t i;

    start();
    for (i = 0; i < SKY_LIB_SERVICES; ++i)
    {
        CHECK_EQ(SKY_LIB_Register((uint16_t)(100u + i), &service), CFE_SUCCESS);
    }
    CHECK_EQ(SKY_LIB_Register(200, &service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    SKY_LIB_Unregister(101);
    CHECK_EQ(SKY_LIB_Register(100, &service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    CHECK_EQ(SKY_LIB_Register(200, &service), CFE_SUCCESS);
    CHECK_EQ(stub.depth, 0);
}

static void a_service_without_one_of_its_functions_is_refused(void)
{
    SKY_LIB_Service_t partial[8];
    size_t            i;

    start();
    for (i = 0; i < 8; ++i)
    {
        partial[i] = service;
    }
    partial[0].Attach      = NULL;
    partial[1].Lock        = NULL;
    partial[2].Unlock      = NULL;
    partial[3].Begin       = NULL;
    partial[4].Next        = NULL;
    partial[5].Poll        = NULL;
    partial[6].Reject      = NULL;
    partial[7].Unreachable = NULL;
    for (i = 0; i < 8; ++i)
    {
        CHECK_EQ(SKY_LIB_Register(1, &partial[i]), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    }
    CHECK_EQ(SKY_LIB_Register(1, NULL), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    CHECK_EQ(SKY_LIB_Register(1, &service), CFE_SUCCESS);
}

static void services_learn_which_satellite_this_is(void)
{
    start();
    CHECK_EQ(SKY_LIB_Register(1, &service), CFE_SUCCESS);
    CHECK_EQ(SKY_LIB_SetNode(&node), 0);
    CHECK_EQ(attached, 1);
    CHECK(SKY_Addr_Equal(seen.self, node.self));
    CHECK_EQ(seen.packet_bytes, 1472);
    CHECK_EQ(SKY_LIB_Register(2, &service), CFE_SUCCESS); /* who comes later learns it at once */
    CHECK_EQ(attached, 2);
    able = false;
    CHECK_EQ(SKY_LIB_SetNode(&node), 2);
    CHECK_EQ(stub.depth, 0);
}

static void without_the_lock_nothing_is_touched(void)
{
    uint16_t apid = 0;

    start();
    CHECK_EQ(SKY_LIB_Register(1, &service), CFE_SUCCESS);
    stub.take_status = OS_SEM_FAILURE;
    CHECK_EQ(SKY_LIB_Register(2, &service), CFE_STATUS_EXTERNAL_RESOURCE_FAIL);
    CHECK_EQ(SKY_LIB_SetNode(&node), SKY_LIB_SERVICES);
    CHECK(SKY_LIB_Acquire(1) == NULL);
    CHECK(SKY_LIB_AcquireAt(0, &apid) == NULL);
    SKY_LIB_Unregister(1);
    CHECK_EQ(attached, 0);
    CHECK_EQ(stub.depth, 0);
    stub.take_status = OS_SUCCESS;
    CHECK(SKY_LIB_Acquire(1) == &service);
    SKY_LIB_Release();
}

static void the_clock_is_in_microseconds(void)
{
    start();
    stub.now_us = 12345678;
    CHECK_EQ(SKY_LIB_NowUs(), 12345678);
    CHECK_EQ(SKY_LIB_NowUs() + SKY_LIB_ClockOffsetUs(), 7000100);
    stub.time_status = OS_ERROR;
    CHECK_EQ(SKY_LIB_NowUs(), 0);
}

static void each_status_has_the_word_of_the_icd(void)
{
    uint32_t status;

    CHECK_EQ(strcmp(SKY_LIB_StatusName(SKY_STATUS_OK), "ok"), 0);
    CHECK_EQ(strcmp(SKY_LIB_StatusName(SKY_STATUS_UNAUTHENTICATED), "unauthenticated"), 0);
    for (status = 0; status < SKY_STATUS_COUNT; ++status)
    {
        CHECK(strcmp(SKY_LIB_StatusName(status), "unknown") != 0);
    }
    CHECK_EQ(strcmp(SKY_LIB_StatusName(SKY_STATUS_COUNT), "unknown"), 0);
}

static void seeds_differ(void)
{
    start();
    CHECK(SKY_LIB_Seed() != SKY_LIB_Seed());
}

static void an_assertion_that_fails_counts_and_goes_on(void)
{
    bool went_on = false;

    start();
    CHECK_EQ(SKY_LIB_Asserts().failed, 0);
    CHECK(SKY_LIB_Asserts().file == NULL);
    SKY_ASSERT(!went_on);
    CHECK_EQ(SKY_LIB_Asserts().failed, 0);
    SKY_ASSERT(went_on);
    went_on = true;
    SKY_AssertFailed("sky_other.c", 7);
    CHECK_EQ(SKY_LIB_Asserts().failed, 2);
    CHECK_EQ(strcmp(SKY_LIB_Asserts().file, "test_lib.c"), 0); /* the first, without a path */
    CHECK(SKY_LIB_Asserts().line != 7);
    CHECK_EQ(stub.logged, 1); /* the first only */
    CHECK_EQ(stub.depth, 0);

    SKY_LIB_ResetAsserts();
    CHECK_EQ(SKY_LIB_Asserts().failed, 0);
    SKY_AssertFailed("sky_other.c", 7);
    CHECK_EQ(strcmp(SKY_LIB_Asserts().file, "sky_other.c"), 0);
    CHECK_EQ(SKY_LIB_Asserts().line, 7);
    CHECK_EQ(stub.logged, 2);
}

/* An assertion is too important not to be counted, and the count too unimportant to wait for. */
static void assertions_count_without_the_lock_too(void)
{
    start();
    stub.take_status = OS_SEM_FAILURE;
    SKY_AssertFailed("sky_other.c", 7);
    SKY_LIB_ResetAsserts();
    CHECK_EQ(SKY_LIB_Asserts().failed, 0);
    CHECK_EQ(stub.depth, 0);
    stub.take_status = OS_SUCCESS;
    CHECK_EQ(SKY_LIB_Asserts().failed, 1);
}

int main(void)
{
    RUN(it_starts_or_says_why_not);
    RUN(a_service_is_found_until_it_leaves);
    RUN(services_are_walked_by_place);
    RUN(the_registry_is_bounded_and_each_apid_has_one_service);
    RUN(a_service_without_one_of_its_functions_is_refused);
    RUN(services_learn_which_satellite_this_is);
    RUN(without_the_lock_nothing_is_touched);
    RUN(the_clock_is_in_microseconds);
    RUN(each_status_has_the_word_of_the_icd);
    RUN(seeds_differ);
    RUN(an_assertion_that_fails_counts_and_goes_on);
    RUN(assertions_count_without_the_lock_too);
    return CHECK_RESULT();
}
