/**
 * @file
 * Windows: an app sees a received message as a copy in a window of its pipe, through a mapping that it cannot write to. An app that
 * changes a message it was given ends at once. Each pipe has two windows in turn; the one given up is filled with
 * EXEC_POISON_BYTE, so an app that keeps a message too long reads rubbish and not, by luck, its message.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec_priv.h"

#define PIPES        ((size_t)CFE_PLATFORM_SB_MAX_PIPES)
#define WINDOWS      ((size_t)2)
#define WINDOW_BYTES ((size_t)CFE_MISSION_SB_MAX_SB_MSG_SIZE)

static uint8 *window_ours;
static uint8 *window_theirs; /* the same pages, read-only */
static uint32 window_turn[CFE_PLATFORM_SB_MAX_PIPES];

bool EXEC_WindowMap(void)
{
    const size_t bytes = PIPES * WINDOWS * WINDOW_BYTES; /* pages come when they are touched */
    if (window_ours != NULL)
    {
        return true;
    }
    const int fd = memfd_create("exec_sb", MFD_CLOEXEC);
    if (fd < 0)
    {
        return false;
    }
    void *ours   = MAP_FAILED;
    void *theirs = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0)
    {
        ours   = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        theirs = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    }
    (void)close(fd);
    if (ours == MAP_FAILED || theirs == MAP_FAILED)
    {
        return false;
    }
    window_ours   = ours;
    window_theirs = theirs;
    return true;
}

static size_t Offset(uint32 pipe)
{
    return (pipe * WINDOWS + window_turn[pipe]) * WINDOW_BYTES;
}

void *EXEC_WindowShow(uint32 pipe, const void *message, size_t size)
{
    (void)memcpy(window_ours + Offset(pipe), message, size);
    return window_theirs + Offset(pipe);
}

void EXEC_WindowPoison(uint32 pipe, size_t size)
{
    (void)memset(window_ours + Offset(pipe), EXEC_POISON_BYTE, size);
    window_turn[pipe] = (window_turn[pipe] + 1u) % (uint32)WINDOWS;
}
