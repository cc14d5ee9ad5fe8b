/**
 * @file
 * Shell around the host of the flight core (sky_host.h): memory, the socket, the loop of a call. Private to the library.
 */
#ifndef SKYC_ENGINE_H
#define SKYC_ENGINE_H

#include "skyc_keyring.h"
#include "skyc_socket.h"
#include "skyc_stream.h"

/** Satellites that one client knows at a time. The least recently used one makes room for another. */
#define SKYC_PEERS (SKY_HOST_LANES_MAX / SKY_HOST_LANES)

typedef struct
{
    SKYC_Config_t         config;
    SKY_Host_t            host;
    SKY_HostPeerMemory_t  peers;
    SKY_HostBlockMemory_t blocks;
    uint8_t              *own; /* memory of the blocks of a call for the host, own_bytes long */
    uint64_t              own_bytes;
    uint8_t              *own_next; /* part of it for the next block that begins */
    SKYC_Stream_t        *stream;   /* the one that runs; NULL: none does */
    SKYC_Socket_t        *sock;
    SKYC_Counters_t       counters;
    SKYC_Progress_t       progress;
    uint64_t              cancel; /* number of the call to end; atomic */
    uint64_t              now_us, started_us;
    uint64_t              empty_us;    /* last time at which nothing was left to read */
    uint64_t              chunks_then; /* chunks of the host's counter when the call began */
    SKYC_Keyring_t        keyring;
} SKYC_Engine_t;

/** @return 0 or ENOMEM */
int SKYC_Engine_Init(SKYC_Engine_t *engine, const SKYC_Config_t *config, uint64_t random);
/** @return 0, EINVAL or ENOMEM */
int SKYC_Engine_Run(SKYC_Engine_t *engine, SKY_HostKind_t kind, SKY_HostBlock_t *blocks, uint32_t count);
/** @return 0, EINVAL or ENOMEM, see SKYC_Stream_Run */
int SKYC_Engine_RunStream(SKYC_Engine_t *engine, SKYC_Stream_t *stream);
/** Run until nothing is under way, or the time is over. */
void SKYC_Engine_Loop(SKYC_Engine_t *engine, uint64_t until_us);
/** Copy the host's counters, and count the call as ended. */
void     SKYC_Engine_EndCall(SKYC_Engine_t *engine);
uint64_t SKYC_Engine_NowUs(void);
void     SKYC_Engine_Free(SKYC_Engine_t *engine);
/** See SKYC_Served. */
uint32_t SKYC_Engine_Served(const SKYC_Engine_t *engine, SKY_HostServed_t *served, uint32_t room);

#endif
