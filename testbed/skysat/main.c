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

/* Print what becomes of the satellite: @p text, or the same as an object of the log. */
static bool Tell(FILE *stream, const SKYSAT_Options_t *options, CFE_EVS_EventType_Enum_t level, const char *text)
{
    char name[EXEC_LOGGER_BYTES];
    char line[EXEC_LINE_BYTES];
    (void)snprintf(name, sizeof name, "skysat %u,%u", options->plane, options->slot);
    if (options->log_json)
    {
        EXEC_FormatLine(true, level, name, text, line);
        return fputs(line, stream) >= 0 && fflush(stream) == 0;
    }
    return fprintf(stream, "%s%s %s\n", name, level == CFE_EVS_EventType_INFORMATION ? "" : ":", text) >= 0 &&
           fflush(stream) == 0;
}

int main(int argc, char **argv)
{
    SKYSAT_Options_t options;
    char             why[SATELLITE_WHY_BYTES];
    char             endpoint[32];
    char             ready[sizeof "ready on " + sizeof endpoint];
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
        (void)Tell(stderr, &options, CFE_EVS_EventType_CRITICAL, why);
        return EXIT_FAILED;
    }
    SATELLITE_Endpoint(endpoint, sizeof endpoint);
    (void)snprintf(ready, sizeof ready, "ready on %s", endpoint);
    if (!Tell(stdout, &options, CFE_EVS_EventType_INFORMATION, ready))
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
