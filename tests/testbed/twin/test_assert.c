/* An assertion of the core that fails in the twin ends the process, and says which run it was and where. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sky_assert.h"
#include "twin_rig.h"

static void a_failed_assertion_names_seed_and_place(void)
{
    char         said[256] = {0};
    int          ends[2];
    int          status = 0;
    Rig_t        rig;
    SKYT_Twin_t *twin;
    pid_t        pid;

    rig_init(&rig, 4711);
    twin = rig_create(&rig);
    CHECK_EQ(pipe(ends), 0);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
    {
        (void)dup2(ends[1], STDERR_FILENO);
        SKYT_Run(twin, START_US + SECOND);
        SKY_ASSERT(twin == NULL);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(read(ends[0], said, sizeof(said) - 1) > 0);
    CHECK(strstr(said, "seed 4711, 1000000 us after its start: assertion failed at") != NULL);
    CHECK(strstr(said, "test_assert.c:") != NULL);
    (void)close(ends[0]);
    (void)close(ends[1]);
    SKYT_Destroy(twin);
}

int main(void)
{
    RUN(a_failed_assertion_names_seed_and_place);
    return CHECK_RESULT();
}
