/**
 * @file
 * Key file of a satellite: see key_file.h.
 */
#define _GNU_SOURCE
#include "key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC      "SKYK"
#define FORMAT     1u
#define HEAD_BYTES 16u
#define PEERS_MOST (ISL_PEERS_PAGES * ISL_PEERS_OF_PAGE)
#define OTHERS_MAY (S_IRWXG | S_IRWXO)
/* In a container the orchestrator decides about owner and mode, and nobody else is there to read. */
#define SECRETS        "/run/secrets/"
#define OFF_FORMAT     4u
#define OFF_GENERATION 5u
#define OFF_PLANES     6u
#define OFF_SLOTS      8u
#define OFF_PLANE      10u
#define OFF_SLOT       12u

static uint32_t Load16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Read exactly @p count bytes. @return false if there are fewer */
static bool ReadAll(int fd, uint8_t *bytes, size_t count)
{
    size_t done = 0;

    while (done < count)
    {
        const ssize_t got = read(fd, bytes + done, count - done);

        if (got < 0 && errno == EINTR)
        {
            continue;
        }
        if (got <= 0)
        {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* Check the head of a file. @return false, and say why, if it is not this satellite's */
static bool CheckHead(const SKYSAT_Options_t *options, const uint8_t *head, char *why, size_t why_size)
{
    if (memcmp(head, MAGIC, OFF_FORMAT) != 0 || head[OFF_FORMAT] != FORMAT)
    {
        (void)snprintf(why, why_size, "--keys %s: no key file of a satellite in format %u", options->keys, FORMAT);
        return false;
    }
    if (Load16(head + OFF_PLANES) != options->planes || Load16(head + OFF_SLOTS) != options->slots)
    {
        (void)snprintf(why, why_size, "--keys %s: for %u planes x %u slots, allowed are %u x %u", options->keys,
                       (unsigned)Load16(head + OFF_PLANES), (unsigned)Load16(head + OFF_SLOTS), (unsigned)options->planes,
                       (unsigned)options->slots);
        return false;
    }
    if (Load16(head + OFF_PLANE) != options->plane || Load16(head + OFF_SLOT) != options->slot)
    {
        (void)snprintf(why, why_size, "--keys %s: for satellite [%u, %u], allowed is the file of [%u, %u]", options->keys,
                       (unsigned)Load16(head + OFF_PLANE), (unsigned)Load16(head + OFF_SLOT), (unsigned)options->plane,
                       (unsigned)options->slot);
        return false;
    }
    if (options->planes * options->slots > PEERS_MOST)
    {
        (void)snprintf(why, why_size, "--keys %s: %u satellites, allowed are at most %u with keys", options->keys,
                       (unsigned)(options->planes * options->slots), (unsigned)PEERS_MOST);
        return false;
    }
    return true;
}

/* Read the keys behind the head. */
static bool ReadKeys(const SKYSAT_Options_t *options, int fd, const uint8_t *head, ISL_KeysTable_t *keys, ISL_PeersTable_t *peers)
{
    const uint32_t satellites = options->planes * options->slots;
    uint8_t        more;
    bool           whole;

    (void)memset(keys, 0, sizeof *keys);
    (void)memset(peers, 0, ISL_PEERS_PAGES * sizeof *peers);
    keys->Master[0].IsSet      = 1;
    keys->Master[0].Generation = head[OFF_GENERATION];
    whole                      = ReadAll(fd, keys->Master[0].Key, sizeof keys->Master[0].Key);
    for (uint32_t first = 0, page = 0; first < satellites && whole; first += ISL_PEERS_OF_PAGE, ++page)
    {
        const uint32_t left = satellites - first;

        peers[page].Generation = head[OFF_GENERATION];
        peers[page].First      = first;
        peers[page].Count      = left < ISL_PEERS_OF_PAGE ? left : ISL_PEERS_OF_PAGE;
        whole                  = ReadAll(fd, peers[page].Peer[0].Key, (size_t)peers[page].Count * ISL_KEY_BYTES);
    }
    return whole && read(fd, &more, 1) == 0;
}

bool SKYSAT_ReadKeyFile(const SKYSAT_Options_t *options, ISL_KeysTable_t *keys, ISL_PeersTable_t *peers, char *why,
                        size_t why_size)
{
    uint8_t     head[HEAD_BYTES];
    struct stat about;
    const int   fd = open(options->keys, O_RDONLY | O_CLOEXEC);
    bool        ok = false;

    if (fd < 0 || fstat(fd, &about) != 0)
    {
        (void)snprintf(why, why_size, "--keys %s: %s", options->keys, strerror(errno));
    }
    else if (!S_ISREG(about.st_mode))
    {
        (void)snprintf(why, why_size, "--keys %s: no file", options->keys);
    }
    else if ((about.st_mode & OTHERS_MAY) != 0 && strncmp(options->keys, SECRETS, sizeof SECRETS - 1) != 0)
    {
        (void)snprintf(why, why_size,
                       "--keys %s: mode %04o, so that others may read or change it; allowed are modes such as 0600",
                       options->keys, (unsigned)(about.st_mode & 07777u));
    }
    else if (!ReadAll(fd, head, sizeof head) || !CheckHead(options, head, why, why_size))
    {
        if (why[0] == '\0')
        {
            (void)snprintf(why, why_size, "--keys %s: shorter than a key file's head of %u bytes", options->keys, HEAD_BYTES);
        }
    }
    else
    {
        ok = ReadKeys(options, fd, head, keys, peers);
        if (!ok)
        {
            (void)snprintf(why, why_size, "--keys %s: damaged, allowed are %u bytes", options->keys,
                           (unsigned)(HEAD_BYTES + (options->planes * options->slots + 1u) * ISL_KEY_BYTES));
        }
    }
    if (fd >= 0)
    {
        (void)close(fd);
    }
    return ok;
}
