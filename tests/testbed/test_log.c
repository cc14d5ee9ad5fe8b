/* The log: times, levels, text and JSON, and a bound for a log that is a file of its own. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_app.h"

#define LOG_BYTES_MAX 4096u
#define LINE_BYTES    64 /* at least, of each line with 60 letters */
#define LINES         500
#define TEXT          256

static char  first[TEXT], last[TEXT]; /* lines of the log */
static off_t most;                    /* bytes that the log had at most */

static void Numbers(void)
{
    struct stat about;
    for (int i = 0; i < LINES; ++i)
    {
        OS_printf("%060d\n", i);
        CHECK_EQ(fstat(STDERR_FILENO, &about), 0);
        most = about.st_size > most ? about.st_size : most;
    }
}

static void Hello(void)
{
    OS_printf("hello\n");
}

static void Fault(void)
{
    (void)CFE_ES_WriteToSysLog("no room");
}

static void Event(CFE_EVS_EventType_Enum_t type)
{
    CHECK_EQ(CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY), CFE_SUCCESS);
    CHECK_EQ(CFE_EVS_SendEvent(7, type, "file \"a\\b\"\t%d", 3), CFE_SUCCESS);
}

static void Information(void)
{
    Event(CFE_EVS_EventType_INFORMATION);
}

static void Error(void)
{
    Event(CFE_EVS_EventType_ERROR);
}

static void Critical(void)
{
    Event(CFE_EVS_EventType_CRITICAL);
}

/* Run @p say over a log of its own, and keep its first and last line. */
static void Log(uint32 log_bytes_max, bool log_json, void (*say)(void))
{
    const EXEC_Config_t config = {.spacecraft_id = 3010, .processor_id = 1, .log_bytes_max = log_bytes_max, .log_json = log_json};
    const int           before = dup(STDERR_FILENO);
    FILE               *file   = tmpfile();

    most     = 0;
    first[0] = last[0] = '\0';
    CHECK(before >= 0 && file != NULL);
    CHECK(dup2(fileno(file), STDERR_FILENO) >= 0);
    BenchUp(&config);
    say();
    BenchDown();
    CHECK(dup2(before, STDERR_FILENO) >= 0);
    rewind(file);
    CHECK(fgets(first, sizeof first, file) != NULL);
    (void)snprintf(last, sizeof last, "%s", first);
    while (fgets(last, sizeof last, file) != NULL)
    {
        /* the last line stays */
    }
    (void)fclose(file);
    (void)close(before);
}

/* Return what follows the time of a line that begins with @p begin; "" if there is no time. */
static const char *AfterTime(const char *line, const char *begin)
{
    int year, month, day, hour, minute, second, ms, length = 0;
    if (strncmp(line, begin, strlen(begin)) == 0 && sscanf(line + strlen(begin), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month,
                                                           &day, &hour, &minute, &second, &ms, &length) == 7)
    {
        return line + strlen(begin) + length;
    }
    return "";
}

static void CheckLine(bool log_json, void (*say)(void), const char *expected)
{
    Log(0, log_json, say);
    CHECK(strcmp(AfterTime(last, log_json ? "{\"time\": \"" : ""), expected) == 0);
}

static void ALineHasATimeAndALevel(void)
{
    CheckLine(false, Hello, " INFO OS: hello\n");
    CheckLine(false, Fault, " ERROR ES: no room\n");
    CheckLine(false, Information, " INFO EVS 3010/1/BENCH 7: file \"a\\b\"\t3\n");
    CheckLine(false, Error, " ERROR EVS 3010/1/BENCH 7: file \"a\\b\"\t3\n");
    CheckLine(false, Critical, " CRITICAL EVS 3010/1/BENCH 7: file \"a\\b\"\t3\n");
}

static void ALineIsAnObject(void)
{
    CheckLine(true, Hello, "\", \"level\": \"info\", \"logger\": \"OS\", \"message\": \"hello\"}\n");
    CheckLine(true, Fault, "\", \"level\": \"error\", \"logger\": \"ES\", \"message\": \"no room\"}\n");
    CheckLine(true, Critical,
              "\", \"level\": \"critical\", \"logger\": \"EVS 3010/1/BENCH 7\", \"message\": \"file \\\"a\\\\b\\\"?3\"}\n");
}

static void ALogOfItsOwnBeginsAgain(void)
{
    Log(LOG_BYTES_MAX, false, Numbers);
    CHECK(most >= (off_t)LOG_BYTES_MAX);
    CHECK(most < (off_t)(LOG_BYTES_MAX + 256u));
    CHECK(strcmp(AfterTime(first, ""), " INFO OS: the log began anew, as it was full\n") == 0);
    CHECK(strstr(last, "00499\n") != NULL);
}

static void ALogOfOthersGrows(void)
{
    Log(0, false, Numbers);
    CHECK(most >= LINES * LINE_BYTES);
}

int main(void)
{
    RUN(ALineHasATimeAndALevel);
    RUN(ALineIsAnObject);
    RUN(ALogOfItsOwnBeginsAgain);
    RUN(ALogOfOthersGrows);
    return CHECK_RESULT();
}
