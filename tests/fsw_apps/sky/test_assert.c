/* SKY_ASSERT in tests: what fails ends the process, and says where. */
#define _POSIX_C_SOURCE 200809L
#include "sky_assert.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* What a process that asserts @p condition says on standard error. @return its exit status, as waitpid has it */
static int child(bool condition, char *said, size_t said_bytes)
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
        SKY_ASSERT(condition);
        _exit(0);
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

static void what_holds_says_nothing(void)
{
    char      said[256];
    const int status = child(true, said, sizeof(said));

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(said[0], 0);
}

static void what_fails_ends_the_process_and_says_where(void)
{
    char      said[256];
    const int status = child(false, said, sizeof(said));

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(said, "test_assert.c:") != NULL);
    CHECK(strstr(said, "assertion failed") != NULL);
}

static void an_assertion_is_one_expression_that_is_evaluated_once(void)
{
    int looked = 0;

    SKY_ASSERT(++looked == 1);
    CHECK_EQ(looked, 1);
}

int main(void)
{
    RUN(what_holds_says_nothing);
    RUN(what_fails_ends_the_process_and_says_where);
    RUN(an_assertion_is_one_expression_that_is_evaluated_once);
    return CHECK_RESULT();
}
