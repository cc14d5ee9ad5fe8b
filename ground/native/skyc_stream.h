/**
 * @file
 * A stream of gets, as the engine sees it: which blocks may begin, and which have an end. Private to the library. Two threads use it at
 * a time: the one in which the engine runs, and one that allows blocks and waits for them.
 */
#ifndef SKYC_STREAM_H
#define SKYC_STREAM_H

#include <pthread.h>

#include "skyc.h"
#include "skyc_socket.h"

struct SKYC_Stream
{
    pthread_mutex_t  lock;   /* guards all below */
    pthread_cond_t   change; /* `ended` or `is_over` has changed */
    SKY_HostBlock_t *blocks;
    uint8_t        **data; /* memory of the allowed blocks */
    uint32_t         count;
    uint32_t         allowed, begun, ended; /* blocks, from the first */
    SKYC_Socket_t   *sock;                  /* socket of the engine that runs; NULL: none does */
    bool             is_stopped, is_over;
};

/** Begin to run. @return false if it has run already; it does not run then */
bool SKYC_Stream_Enter(SKYC_Stream_t *stream, SKYC_Socket_t *sock);
/** Get the next block that may begin. It counts as begun. @return NULL if none may */
SKY_HostBlock_t *SKYC_Stream_Next(SKYC_Stream_t *stream);
/** Note which blocks have an end, and tell who waits for them. */
void SKYC_Stream_Tell(SKYC_Stream_t *stream);
bool SKYC_Stream_IsStopped(SKYC_Stream_t *stream);
/**
 * End the run, unless a block may begin. From then on none does, and the socket is not used.
 * @param at_once  end it in any case
 * @return false if a block may begin
 */
bool SKYC_Stream_Leave(SKYC_Stream_t *stream, bool at_once);

#endif
