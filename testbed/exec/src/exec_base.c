/**
 * @file
 * Lock, ids, clock and printing for the other files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec_priv.h"

#define LINE_MAX_BYTES 256
#define TIME_BYTES     40

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

/* Write the time of a line, in UTC and milliseconds. @return its characters */
static int PrintTime(char *line)
{
    struct timespec now = {0, 0};
    struct tm       utc;
    char            date[sizeof "2026-11-28T06:39:12"];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)memset(&utc, 0, sizeof utc);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    return snprintf(line, TIME_BYTES, "%s.%03dZ ", date, (int)(now.tv_nsec / 1000000));
}

/* Begin a log again when it is long: a satellite writes for as long as it flies. What is no file has no offset. */
static void BoundLog(void)
{
    const off_t max = (off_t)EXEC_Config.log_bytes_max;
    if (max > 0 && lseek(STDERR_FILENO, 0, SEEK_CUR) >= max && ftruncate(STDERR_FILENO, 0) == 0)
    {
        static const char said[] = "the log began anew, as it was full\n";
        (void)lseek(STDERR_FILENO, 0, SEEK_SET);
        const ssize_t written = write(STDERR_FILENO, said, sizeof said - 1);
        (void)written;
    }
}

void EXEC_Print(const char *format, va_list arguments)
{
    char line[TIME_BYTES + LINE_MAX_BYTES];
    if (EXEC_Config.quiet)
    {
        return;
    }
    const int begin  = PrintTime(line);
    int       length = vsnprintf(line + begin, LINE_MAX_BYTES - 1, format, arguments);
    if (length < 0)
    {
        return;
    }
    length = begin + (length < LINE_MAX_BYTES - 1 ? length : LINE_MAX_BYTES - 2);
    if (length == 0 || line[length - 1] != '\n')
    {
        line[length++] = '\n';
    }
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    BoundLog();
    const ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written; /* nobody can be told of a failure */
    (void)pthread_setcancelstate(before, NULL);
}
