/* A failed assertion in the ground's library: the engine is told once, on standard error, and goes on. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sky_assert.h"

/* Fail @p times assertions in another process. @return its status, as waitpid has it; -1: there is no such process */
static int fails(unsigned times, char *said, size_t said_bytes)
{
    int    ends[2];
    int    status = -1;
    size_t length = 0;
    pid_t  pid;

    (void)memset(said, 0, said_bytes);
    (void)fflush(stdout);
    if (pipe(ends) != 0 || (pid = fork()) < 0)
    {
        return status;
    }
    if (pid == 0)
    {
        (void)dup2(ends[1], STDERR_FILENO);
        for (unsigned i = 0; i < times; ++i)
        {
            SKY_ASSERT(i == times);
        }
        exit(0); /* what waits in buffers is written */
    }
    (void)close(ends[1]);
    for (ssize_t got = 1; got > 0 && length + 1 < said_bytes; length += (size_t)(got > 0 ? got : 0))
    {
        got = read(ends[0], said + length, said_bytes - length - 1);
    }
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return status;
}

static void what_fails_is_told_and_the_process_goes_on(void)
{
    char      said[512];
    const int status = fails(1, said, sizeof(said));

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(strstr(said, "skymemory: assertion failed at ") == said);
    CHECK(strstr(said, "test_assert.c:") != NULL);
}

static void it_is_told_once(void)
{
    char        said[512];
    const int   status = fails(3, said, sizeof(said));
    const char *line   = strchr(said, '\n');

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(line != NULL && line[1] == '\0');
}

static void without_a_fault_nothing_is_said(void)
{
    char said[512];

    CHECK_EQ(fails(0, said, sizeof(said)), 0);
    CHECK_EQ(said[0], 0);
}

int main(void)
{
    RUN(what_fails_is_told_and_the_process_goes_on);
    RUN(it_is_told_once);
    RUN(without_a_fault_nothing_is_said);
    return CHECK_RESULT();
}
