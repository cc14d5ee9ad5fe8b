/**
 * @file
 * Lock, ids and clock for the other files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "exec_priv.h"

EXEC_Config_t EXEC_Config;

static pthread_mutex_t base_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int    base_cancel_state; /* state of this thread before it took the lock */

void EXEC_Lock(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&base_lock);
    base_cancel_state = before;
}

void EXEC_Unlock(void)
{
    const int before = base_cancel_state;
    (void)pthread_mutex_unlock(&base_lock);
    (void)pthread_setcancelstate(before, NULL);
}

static void Release(void *lock)
{
    (void)pthread_mutex_unlock(lock);
}

int EXEC_CondWait(pthread_cond_t *cond, pthread_mutex_t *lock, int64 deadline_ns)
{
    int rc = 0;
    pthread_cleanup_push(Release, lock);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    if (deadline_ns < 0)
    {
        rc = pthread_cond_wait(cond, lock);
    }
    else
    {
        const struct timespec at = {(time_t)(deadline_ns / 1000000000), (long)(deadline_ns % 1000000000)};
        rc                       = pthread_cond_timedwait(cond, lock, &at);
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return rc;
}

bool EXEC_Wait(pthread_cond_t *change, int64 deadline_ns)
{
    return EXEC_CondWait(change, &base_lock, deadline_ns) != ETIMEDOUT;
}

void EXEC_CondInit(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

int64 EXEC_NowNs(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool EXEC_NameOk(const char *name)
{
    return name[0] != '\0' && memchr(name, '\0', OS_MAX_API_NAME) != NULL;
}

uint32 EXEC_IdIndex(uint32 id, uint32 kind, uint32 count)
{
    return (id & ~0xFFFFu) == (EXEC_ID_MARK | (kind << 16)) ? (id & 0xFFFFu) % count : EXEC_NONE;
}

uint32 EXEC_IdNext(uint32 last, uint32 kind, const void *ids, size_t stride, uint32 count)
{
    uint32 serial = last & 0xFFFFu;
    for (uint32 tries = 0; tries <= count; ++tries)
    {
        serial       = (serial + 1u) & 0xFFFFu;
        uint32 taken = 0;
        (void)memcpy(&taken, (const uint8 *)ids + (serial % count) * stride, sizeof taken);
        if (serial != 0 && taken == 0)
        {
            return EXEC_ID_MARK | (kind << 16) | serial;
        }
    }
    return 0;
}
