/**
 * @file
 * skysat: one satellite as a process. Statically linked: it is the only file of its container, so it reads no file at all.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "satellite.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

/** Wait for a signal, or for the end of standard input. @return false if it cannot be waited for; then a signal is none */
static bool AwaitSignalOrEnd(const sigset_t *signals)
{
    const int     descriptor = signalfd(-1, signals, SFD_CLOEXEC);
    struct pollfd sources[]  = {{.fd = descriptor, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    bool          wait       = descriptor >= 0;
    while (wait)
    {
        if (poll(sources, 2, -1) <= 0)
        {
            continue; /* the process was stopped and continued */
        }
        if (sources[0].revents != 0)
        {
            wait = false;
        }
        else if (sources[1].revents != 0)
        {
            char byte;
            wait          = read(STDIN_FILENO, &byte, 1) > 0;
            sources[1].fd = -1; /* a byte means that the satellite goes on alone */
        }
    }
    return descriptor >= 0;
}

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
        SKYSAT_PrintUsage();
        return 0;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* all threads inherit the mask; this one waits for the signals */

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
    if (printf("skysat %u,%u ready on %s\n", options.plane, options.slot, endpoint) < 0 || fflush(stdout) != 0)
    {
        perror("skysat: standard output"); /* whoever waits for that line has to know */
        (void)SATELLITE_Stop();
        return EXIT_FAILED;
    }
    if (!options.until_stdin_ends || !AwaitSignalOrEnd(&signals))
    {
        (void)sigwait(&signals, &signal_number);
    }
    return SATELLITE_Stop() ? 0 : EXIT_FAILED;
}
