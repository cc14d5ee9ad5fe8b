/**
 * @file
 * The log on standard error: each line has its time, level and origin, as text or as a JSON object.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec_priv.h"

#define TIME_BYTES    32
#define ESCAPED_BYTES (2 * EXEC_MESSAGE_BYTES) /* a backslash before each character, at most */

_Static_assert(EXEC_LINE_BYTES >= TIME_BYTES + EXEC_LOGGER_BYTES + ESCAPED_BYTES + 64,
               "a line fits, with the names of an object");

/* By CFE_EVS_EventType. The words are those of the agent's log, so that one search finds both. */
static const char *const log_levels[][2] = {
    [CFE_EVS_EventType_DEBUG]       = {"DEBUG", "debug"},
    [CFE_EVS_EventType_INFORMATION] = {"INFO", "info"},
    [CFE_EVS_EventType_ERROR]       = {"ERROR", "error"},
    [CFE_EVS_EventType_CRITICAL]    = {"CRITICAL", "critical"},
};

/* Write the time, in UTC and milliseconds. */
static void PrintTime(char *text)
{
    struct timespec now = {0, 0};
    struct tm       utc;
    char            date[sizeof "2026-11-28T06:39:12"];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)memset(&utc, 0, sizeof utc);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text, TIME_BYTES, "%s.%03dZ", date, (int)(now.tv_nsec / 1000000));
}

/* Write a message as the content of a JSON string. What is no printable ASCII becomes a question mark. */
static void Escape(const char *message, char *escaped)
{
    size_t at = 0;
    for (size_t i = 0; message[i] != '\0'; ++i)
    {
        const char letter = message[i];
        if (letter == '"' || letter == '\\')
        {
            escaped[at++] = '\\';
        }
        escaped[at++] = (char)(letter >= ' ' && letter <= '~' ? letter : '?');
    }
    escaped[at] = '\0';
}

void EXEC_FormatLine(bool json, CFE_EVS_EventType_Enum_t level, const char *logger, const char *message, char *line)
{
    char time[TIME_BYTES];
    char escaped[ESCAPED_BYTES];
    PrintTime(time);
    if (json)
    {
        Escape(message, escaped);
        (void)snprintf(line, EXEC_LINE_BYTES, "{\"time\": \"%s\", \"level\": \"%s\", \"logger\": \"%s\", \"message\": \"%s\"}\n",
                       time, log_levels[level][1], logger, escaped);
    }
    else
    {
        (void)snprintf(line, EXEC_LINE_BYTES, "%s %s %s: %s\n", time, log_levels[level][0], logger, message);
    }
}

static void PrintLine(CFE_EVS_EventType_Enum_t level, const char *logger, const char *message)
{
    char line[EXEC_LINE_BYTES];
    EXEC_FormatLine(EXEC_Config.log_json, level, logger, message, line);
    const ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written; /* nobody can be told of a failure */
}

/* Begin a log again when it is long: a satellite writes for as long as it flies. What is no file has no offset. */
static void BoundLog(void)
{
    const off_t max = (off_t)EXEC_Config.log_bytes_max;
    if (max > 0 && lseek(STDERR_FILENO, 0, SEEK_CUR) >= max && ftruncate(STDERR_FILENO, 0) == 0)
    {
        (void)lseek(STDERR_FILENO, 0, SEEK_SET);
        PrintLine(CFE_EVS_EventType_INFORMATION, "OS", "the log began anew, as it was full");
    }
}

void EXEC_Log(CFE_EVS_EventType_Enum_t level, const char *logger, const char *message)
{
    int before = PTHREAD_CANCEL_ENABLE;
    if (EXEC_Config.quiet)
    {
        return;
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    BoundLog();
    PrintLine(level, logger, message);
    (void)pthread_setcancelstate(before, NULL);
}

void EXEC_Print(CFE_EVS_EventType_Enum_t level, const char *logger, const char *format, va_list arguments)
{
    char message[EXEC_MESSAGE_BYTES];
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
    {
        return;
    }
    const size_t length = strlen(message);
    if (length > 0 && message[length - 1] == '\n')
    {
        message[length - 1] = '\0';
    }
    EXEC_Log(level, logger, message);
}
