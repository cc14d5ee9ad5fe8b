/**
 * @file
 * skysat: one satellite as a process. Statically linked: it is the only file of its container, so it reads no file at all.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "satellite.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

int main(int argc, char **argv)
{
    SKYSAT_Options_t options;
    char             why[SATELLITE_WHY_BYTES];
    char             endpoint[32];
    sigset_t         signals;
    int              signal_number = 0;

    if (!SKYSAT_ParseOptions(argc, (const char *const *)argv, &options, why, sizeof why))
    {
        (void)fprintf(stderr, "skysat: %s\n", why);
        return EXIT_USAGE;
    }
    if (options.help)
    {
        (void)fputs(SKYSAT_Usage, stdout);
        return 0;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* all threads inherit it; this one waits for them */

    bool up = SATELLITE_Init(&options, false, why, sizeof why);
    if (up)
    {
        up = SATELLITE_Start(why, sizeof why);
        if (!up)
        {
            (void)SATELLITE_Stop();
        }
    }
    if (!up)
    {
        (void)fprintf(stderr, "skysat %u,%u: %s\n", options.plane, options.slot, why);
        return EXIT_FAILED;
    }
    SATELLITE_Endpoint(endpoint, sizeof endpoint);
    (void)printf("skysat %u,%u ready on %s\n", options.plane, options.slot, endpoint);
    (void)fflush(stdout);

    (void)sigwait(&signals, &signal_number);
    return SATELLITE_Stop() ? 0 : EXIT_FAILED;
}
