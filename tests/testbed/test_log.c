/* The log: times, and a bound for a log that is a file of its own. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_app.h"

#define LOG_BYTES_MAX 4096u
#define LINE_BYTES    64 /* at least, of each line with 60 letters */

static char first[256]; /* line of the log */

static off_t Written(uint32 log_bytes_max, int lines, char *last, size_t last_bytes)
{
    const EXEC_Config_t config = {.spacecraft_id = 3010, .processor_id = 1, .log_bytes_max = log_bytes_max};
    const int           before = dup(STDERR_FILENO);
    FILE               *file   = tmpfile();
    off_t               most   = 0;
    struct stat         about;

    CHECK(before >= 0 && file != NULL);
    CHECK(dup2(fileno(file), STDERR_FILENO) >= 0);
    BenchUp(&config);
    for (int i = 0; i < lines; ++i)
    {
        OS_printf("%060d\n", i);
        CHECK_EQ(fstat(STDERR_FILENO, &about), 0);
        most = about.st_size > most ? about.st_size : most;
    }
    BenchDown();
    CHECK(dup2(before, STDERR_FILENO) >= 0);
    rewind(file);
    CHECK(fgets(first, sizeof first, file) != NULL);
    (void)snprintf(last, last_bytes, "%s", first);
    while (fgets(last, (int)last_bytes, file) != NULL)
    {
        /* the last line stays */
    }
    (void)fclose(file);
    (void)close(before);
    return most;
}

static void ALineHasATime(void)
{
    char line[256] = "";
    int  year, month, day, hour, minute, second, ms, number;
    (void)Written(0, 1, line, sizeof line);
    CHECK_EQ(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %d", &year, &month, &day, &hour, &minute, &second, &ms, &number), 8);
    CHECK_EQ(number, 0);
}

static void ALogOfItsOwnBeginsAgain(void)
{
    char        line[256] = "";
    const off_t most      = Written(LOG_BYTES_MAX, 500, line, sizeof line);
    CHECK(most >= (off_t)LOG_BYTES_MAX);
    CHECK(most < (off_t)(LOG_BYTES_MAX + 256u));
    CHECK(strcmp(first, "the log began anew, as it was full\n") == 0);
    CHECK(strstr(line, "00499\n") != NULL);
}

static void ALogOfOthersGrows(void)
{
    char line[256] = "";
    CHECK(Written(0, 500, line, sizeof line) >= 500 * LINE_BYTES);
}

int main(void)
{
    RUN(ALineHasATime);
    RUN(ALogOfItsOwnBeginsAgain);
    RUN(ALogOfOthersGrows);
    return CHECK_RESULT();
}
