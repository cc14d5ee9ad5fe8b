/**
 * @file
 * The `sky` cFS library: registry of services, clock, seed, count of failed assertions.
 */
#include "sky_lib.h"

#include <string.h>

#include "cfe.h"
#include "sky_assert.h"
#include "sky_mix.h"
#include "sky_release.h"

#define SKY_LIB_US_PER_S UINT64_C(1000000)

typedef struct
{
    uint16_t                 apid;
    const SKY_LIB_Service_t *service; /* NULL: the place is free */
} SKY_LIB_Entry_t;

static struct
{
    osal_id_t       mutex;
    bool            node_known;
    SKY_LIB_Node_t  node;
    SKY_LIB_Entry_t entries[SKY_LIB_SERVICES];
    uint64_t        seed;

    osal_id_t         asserts_mutex; /* a lock of its own: assertions fail in tasks that hold other locks, or none */
    SKY_LIB_Asserts_t asserts;
} SKY_LIB_Global;

static bool SKY_LIB_Lock(void)
{
    return OS_MutSemTake(SKY_LIB_Global.mutex) == OS_SUCCESS;
}

int32 SKY_LibInit(void)
{
    int32 os_status;

    memset(&SKY_LIB_Global, 0, sizeof(SKY_LIB_Global));
    os_status = OS_MutSemCreate(&SKY_LIB_Global.mutex, "SKY_LIB", 0);
    if (os_status == OS_SUCCESS)
    {
        os_status = OS_MutSemCreate(&SKY_LIB_Global.asserts_mutex, "SKY_ASSERTS", 0);
    }
    if (os_status != OS_SUCCESS)
    {
        (void)CFE_ES_WriteToSysLog("SKY: no mutex for the registry or for assertions, OSAL status %ld\n", (long)os_status);
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    (void)OS_printf("SKY Library Initialized. Version %s, CRC by %s\n", SKY_RELEASE, SKY_Crc_Implementation());
    return CFE_SUCCESS;
}

static SKY_LIB_Entry_t *SKY_LIB_FindLocked(uint16_t apid)
{
    uint32_t i;

    for (i = 0; i < SKY_LIB_SERVICES; ++i)
    {
        SKY_LIB_Entry_t *entry = &SKY_LIB_Global.entries[i];

        if (entry->service != NULL && entry->apid == apid)
        {
            return entry;
        }
    }
    return NULL;
}

static bool SKY_LIB_IsComplete(const SKY_LIB_Service_t *service)
{
    return service != NULL && service->Attach != NULL && service->Lock != NULL && service->Unlock != NULL &&
           service->Begin != NULL && service->Next != NULL && service->Poll != NULL && service->Reject != NULL &&
           service->Unreachable != NULL;
}

int32 SKY_LIB_Register(uint16_t apid, const SKY_LIB_Service_t *service)
{
    int32    status = CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    uint32_t i;

    if (!SKY_LIB_IsComplete(service) || !SKY_LIB_Lock())
    {
        return status;
    }
    for (i = 0; SKY_LIB_FindLocked(apid) == NULL && i < SKY_LIB_SERVICES; ++i)
    {
        SKY_LIB_Entry_t *entry = &SKY_LIB_Global.entries[i];

        if (entry->service == NULL)
        {
            entry->apid    = apid;
            entry->service = service;
            SKY_ASSERT(entry->apid == apid);
            status = CFE_SUCCESS;
        }
    }
    if (status == CFE_SUCCESS && SKY_LIB_Global.node_known)
    {
        (void)service->Attach(&SKY_LIB_Global.node);
    }
    SKY_LIB_Release();
    return status;
}

void SKY_LIB_Unregister(uint16_t apid)
{
    SKY_LIB_Entry_t *entry;

    if (SKY_LIB_Lock())
    {
        entry = SKY_LIB_FindLocked(apid);
        if (entry != NULL)
        {
            entry->service = NULL;
        }
        SKY_LIB_Release();
    }
}

uint32_t SKY_LIB_SetNode(const SKY_LIB_Node_t *node)
{
    uint32_t refused = 0;
    uint32_t i;

    if (!SKY_LIB_Lock())
    {
        return SKY_LIB_SERVICES;
    }
    SKY_LIB_Global.node       = *node;
    SKY_LIB_Global.node_known = true;
    for (i = 0; i < SKY_LIB_SERVICES; ++i)
    {
        const SKY_LIB_Service_t *service = SKY_LIB_Global.entries[i].service;

        if (service != NULL && !service->Attach(node))
        {
            ++refused;
        }
    }
    SKY_LIB_Release();
    SKY_ASSERT(refused <= SKY_LIB_SERVICES);
    return refused;
}

const SKY_LIB_Service_t *SKY_LIB_Acquire(uint16_t apid)
{
    SKY_LIB_Entry_t *entry;

    if (!SKY_LIB_Lock())
    {
        return NULL;
    }
    entry = SKY_LIB_FindLocked(apid);
    if (entry == NULL)
    {
        SKY_LIB_Release();
        return NULL;
    }
    SKY_ASSERT(entry->service != NULL);
    SKY_ASSERT(entry->apid == apid);
    return entry->service;
}

const SKY_LIB_Service_t *SKY_LIB_AcquireAt(uint32_t place, uint16_t *apid)
{
    if (place >= SKY_LIB_SERVICES || !SKY_LIB_Lock())
    {
        return NULL;
    }
    if (SKY_LIB_Global.entries[place].service == NULL)
    {
        SKY_LIB_Release();
        return NULL;
    }
    *apid = SKY_LIB_Global.entries[place].apid;
    return SKY_LIB_Global.entries[place].service;
}

void SKY_LIB_Release(void)
{
    (void)OS_MutSemGive(SKY_LIB_Global.mutex);
}

uint64_t SKY_LIB_NowUs(void)
{
    OS_time_t now;

    if (OS_GetMonotonicTime(&now) != OS_SUCCESS)
    {
        return 0;
    }
    return (uint64_t)OS_TimeGetTotalMicroseconds(now);
}

uint64_t SKY_LIB_ClockOffsetUs(void)
{
    const CFE_TIME_SysTime_t now = CFE_TIME_GetTime();

    return now.Seconds * SKY_LIB_US_PER_S + CFE_TIME_Sub2MicroSecs(now.Subseconds) - SKY_LIB_NowUs();
}

const char *SKY_LIB_StatusName(uint32_t status)
{
    static const char *const names[SKY_STATUS_COUNT] = {
        [SKY_STATUS_OK]              = "ok",
        [SKY_STATUS_NOT_FOUND]       = "not_found",
        [SKY_STATUS_STORE_FULL]      = "store_full",
        [SKY_STATUS_BAD_VERSION]     = "bad_version",
        [SKY_STATUS_BAD_OP]          = "bad_op",
        [SKY_STATUS_BAD_LENGTH]      = "bad_length",
        [SKY_STATUS_BAD_CHUNK]       = "bad_chunk",
        [SKY_STATUS_BAD_CRC]         = "bad_crc",
        [SKY_STATUS_TOO_LARGE]       = "too_large",
        [SKY_STATUS_HOP_LIMIT]       = "hop_limit",
        [SKY_STATUS_UNREACHABLE]     = "unreachable",
        [SKY_STATUS_EXPIRED]         = "expired",
        [SKY_STATUS_BUSY]            = "busy",
        [SKY_STATUS_REFUSED]         = "refused",
        [SKY_STATUS_BAD_CHECKSUM]    = "bad_checksum",
        [SKY_STATUS_BAD_HEADER]      = "bad_header",
        [SKY_STATUS_BAD_ADDRESS]     = "bad_address",
        [SKY_STATUS_BAD_KEY]         = "bad_key",
        [SKY_STATUS_SHORT]           = "short",
        [SKY_STATUS_UNAUTHENTICATED] = "unauthenticated",
        [SKY_STATUS_COOKIE]          = "cookie",
        [SKY_STATUS_OLD_VERSION]     = "old_version",
    };

    SKY_ASSERT(status >= SKY_STATUS_COUNT || names[status] != NULL); /* every status has a name */
    return status < SKY_STATUS_COUNT ? names[status] : "unknown";
}

uint64_t SKY_LIB_Seed(void)
{
    const CFE_TIME_SysTime_t wall = CFE_TIME_GetTime();
    uint64_t                 x;

    /* The seed mixes all that differs between two runs and two satellites, the place of the stack included. */
    x = SKY_LIB_Global.seed;
    x ^= ((uint64_t)wall.Seconds << 32) ^ wall.Subseconds;
    x ^= SKY_LIB_NowUs() << 20;
    x ^= (uint64_t)CFE_PSP_GetProcessorId() << 48;
    x ^= (uint64_t)(cpuaddr)&wall;
    SKY_LIB_Global.seed = SKY_Mix64(x);
    return SKY_LIB_Global.seed;
}

void SKY_LIB_CountAssert(const char *file, int line)
{
    const char *const slash  = strrchr(file, '/');
    const char *const name   = slash != NULL ? slash + 1 : file;
    const bool        locked = OS_MutSemTake(SKY_LIB_Global.asserts_mutex) == OS_SUCCESS;
    const bool        first  = SKY_LIB_Global.asserts.failed == 0;

    if (first)
    {
        SKY_LIB_Global.asserts.file = name;
        SKY_LIB_Global.asserts.line = line;
    }
    ++SKY_LIB_Global.asserts.failed;
    if (locked)
    {
        (void)OS_MutSemGive(SKY_LIB_Global.asserts_mutex);
    }
    if (first)
    {
        (void)CFE_ES_WriteToSysLog("SKY: assertion failed at %s:%d\n", name, line);
    }
}

SKY_LIB_Asserts_t SKY_LIB_Asserts(void)
{
    const SKY_LIB_Asserts_t none = {0, NULL, 0};
    SKY_LIB_Asserts_t       asserts;

    if (OS_MutSemTake(SKY_LIB_Global.asserts_mutex) != OS_SUCCESS)
    {
        return none;
    }
    asserts = SKY_LIB_Global.asserts;
    (void)OS_MutSemGive(SKY_LIB_Global.asserts_mutex);
    return asserts;
}

void SKY_LIB_ResetAsserts(void)
{
    if (OS_MutSemTake(SKY_LIB_Global.asserts_mutex) == OS_SUCCESS)
    {
        memset(&SKY_LIB_Global.asserts, 0, sizeof(SKY_LIB_Global.asserts));
        (void)OS_MutSemGive(SKY_LIB_Global.asserts_mutex);
    }
}
