/**
 * @file
 * Stubs of the registry and the clock.
 *
 * SKY_LIB_Acquire and SKY_LIB_AcquireAt give what the test has put into their data buffer (a pointer to a SKY_LIB_Service_t),
 * NULL without one.
 */
#include "sky_lib.h"

#include "sky_assert.h"
#include "utassert.h"
#include "utstubs.h"

int32 SKY_LibInit(void)
{
    return UT_DEFAULT_IMPL(SKY_LibInit);
}

int32 SKY_LIB_Register(uint16_t apid, const SKY_LIB_Service_t *service)
{
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_Register), apid);
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_Register), service);
    return UT_DEFAULT_IMPL(SKY_LIB_Register);
}

void SKY_LIB_Unregister(uint16_t apid)
{
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_Unregister), apid);
    UT_DEFAULT_IMPL(SKY_LIB_Unregister);
}

uint32_t SKY_LIB_SetNode(const SKY_LIB_Node_t *node)
{
    UT_Stub_CopyFromLocal(UT_KEY(SKY_LIB_SetNode), node, sizeof(*node));
    return (uint32_t)UT_DEFAULT_IMPL(SKY_LIB_SetNode);
}

const SKY_LIB_Service_t *SKY_LIB_Acquire(uint16_t apid)
{
    const SKY_LIB_Service_t *service = NULL;

    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_Acquire), apid);
    (void)UT_DEFAULT_IMPL(SKY_LIB_Acquire);
    (void)UT_Stub_CopyToLocal(UT_KEY(SKY_LIB_Acquire), &service, sizeof(service));
    return service;
}

const SKY_LIB_Service_t *SKY_LIB_AcquireAt(uint32_t place, uint16_t *apid)
{
    const SKY_LIB_Service_t *service = NULL;

    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_AcquireAt), place);
    *apid = (uint16_t)UT_DEFAULT_IMPL(SKY_LIB_AcquireAt);
    (void)UT_Stub_CopyToLocal(UT_KEY(SKY_LIB_AcquireAt), &service, sizeof(service));
    return service;
}

void SKY_LIB_Release(void)
{
    UT_DEFAULT_IMPL(SKY_LIB_Release);
}

uint64_t SKY_LIB_NowUs(void)
{
    return (uint64_t)UT_DEFAULT_IMPL(SKY_LIB_NowUs);
}

uint64_t SKY_LIB_ClockOffsetUs(void)
{
    return (uint64_t)UT_DEFAULT_IMPL(SKY_LIB_ClockOffsetUs);
}

const char *SKY_LIB_StatusName(uint32_t status)
{
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_StatusName), status);
    (void)UT_DEFAULT_IMPL(SKY_LIB_StatusName);
    return "status";
}

uint64_t SKY_LIB_Seed(void)
{
    return (uint64_t)UT_DEFAULT_IMPL(SKY_LIB_Seed);
}

void SKY_LIB_CountAssert(const char *file, int line)
{
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_CountAssert), file);
    UT_Stub_RegisterContextGenericArg(UT_KEY(SKY_LIB_CountAssert), line);
    UT_DEFAULT_IMPL(SKY_LIB_CountAssert);
}

SKY_LIB_Asserts_t SKY_LIB_Asserts(void)
{
    SKY_LIB_Asserts_t asserts = {0, NULL, 0};

    (void)UT_DEFAULT_IMPL(SKY_LIB_Asserts);
    (void)UT_Stub_CopyToLocal(UT_KEY(SKY_LIB_Asserts), &asserts, sizeof(asserts));
    return asserts;
}

void SKY_LIB_ResetAsserts(void)
{
    UT_DEFAULT_IMPL(SKY_LIB_ResetAsserts);
}

/* Fail the test: an assertion of the core that fails is a fault, whatever the test is about. */
void SKY_AssertFailed(const char *file, int line)
{
    UtAssertEx(false, UTASSERT_CASETYPE_FAILURE, file, (uint32)line, "assertion of sky");
}
