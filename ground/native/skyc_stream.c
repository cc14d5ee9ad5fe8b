/**
 * @file
 * State of a stream of gets.
 */
#define _GNU_SOURCE
#include "skyc_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define US_PER_S  1000000u
#define NS_PER_US 1000u

SKYC_Stream_t *SKYC_Stream_New(SKY_HostBlock_t *blocks, uint32_t count)
{
    SKYC_Stream_t     *stream = calloc(1, sizeof(*stream));
    uint8_t          **data   = calloc((size_t)count + 1, sizeof(*data));
    pthread_condattr_t attributes;

    if (stream == NULL || data == NULL)
    {
        free(stream);
        free(data);
        return NULL;
    }
    stream->blocks = blocks;
    stream->data   = data;
    stream->count  = count;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&stream->change, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&stream->lock, NULL);
    return stream;
}

void SKYC_Stream_Free(SKYC_Stream_t *stream)
{
    if (stream != NULL)
    {
        (void)pthread_cond_destroy(&stream->change);
        (void)pthread_mutex_destroy(&stream->lock);
        free(stream->data);
        free(stream);
    }
}

/* ---- the thread that takes the blocks -------------------------------------------------------------------------------- */

static void wake(const SKYC_Stream_t *stream)
{
    if (stream->sock != NULL)
    {
        SKYC_Socket_Wake(stream->sock);
    }
}

bool SKYC_Stream_Allow(SKYC_Stream_t *stream, uint8_t *data)
{
    (void)pthread_mutex_lock(&stream->lock);
    const bool is_left = !stream->is_over && stream->allowed < stream->count;

    if (is_left)
    {
        stream->data[stream->allowed] = data;
        ++stream->allowed;
        wake(stream);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return is_left;
}

void SKYC_Stream_Stop(SKYC_Stream_t *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    stream->is_stopped = true;
    wake(stream);
    (void)pthread_mutex_unlock(&stream->lock);
}

uint32_t SKYC_Stream_Await(SKYC_Stream_t *stream, uint32_t count, uint64_t duration_us, bool *is_over)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t us = (uint64_t)until.tv_nsec / NS_PER_US + duration_us;

    until.tv_sec += (time_t)(us / US_PER_S);
    until.tv_nsec = (long)(us % US_PER_S * NS_PER_US);
    (void)pthread_mutex_lock(&stream->lock);
    while (stream->ended < count && !stream->is_over &&
           pthread_cond_timedwait(&stream->change, &stream->lock, &until) != ETIMEDOUT)
    {
        /* something has changed */
    }
    const uint32_t ended = stream->ended;

    *is_over = stream->is_over;
    (void)pthread_mutex_unlock(&stream->lock);
    return ended;
}

/* ---- the engine's thread --------------------------------------------------------------------------------------------- */

bool SKYC_Stream_Enter(SKYC_Stream_t *stream, SKYC_Socket_t *sock)
{
    (void)pthread_mutex_lock(&stream->lock);
    const bool is_first = stream->sock == NULL && !stream->is_over;

    if (is_first)
    {
        stream->sock = sock;
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return is_first;
}

SKY_HostBlock_t *SKYC_Stream_Next(SKYC_Stream_t *stream)
{
    SKY_HostBlock_t *block = NULL;

    (void)pthread_mutex_lock(&stream->lock);
    if (stream->begun < stream->allowed && !stream->is_stopped)
    {
        block       = &stream->blocks[stream->begun];
        block->data = stream->data[stream->begun];
        ++stream->begun;
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return block;
}

void SKYC_Stream_Tell(SKYC_Stream_t *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    const uint32_t before = stream->ended;

    while (stream->ended < stream->begun && stream->blocks[stream->ended].status != SKY_STATUS_RUNNING)
    {
        ++stream->ended;
    }
    if (stream->ended != before)
    {
        (void)pthread_cond_broadcast(&stream->change);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

bool SKYC_Stream_IsStopped(SKYC_Stream_t *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    const bool is_stopped = stream->is_stopped;

    (void)pthread_mutex_unlock(&stream->lock);
    return is_stopped;
}

bool SKYC_Stream_Leave(SKYC_Stream_t *stream, bool at_once)
{
    (void)pthread_mutex_lock(&stream->lock);
    const bool leaves = at_once || stream->is_stopped || stream->begun == stream->allowed;

    if (leaves)
    {
        stream->sock    = NULL;
        stream->is_over = true;
        (void)pthread_cond_broadcast(&stream->change);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return leaves;
}
