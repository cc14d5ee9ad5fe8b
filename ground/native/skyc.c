/**
 * @file
 * Interface of the library: checks arguments, runs one call at a time, and gives counters and layout.
 */
#define _GNU_SOURCE
#include "skyc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sky.h"
#include "skyc_engine.h"

struct SKYC_Client
{
    pthread_mutex_t lock;
    SKYC_Engine_t   engine;
};

static bool config_check(const SKYC_Config_t *config)
{
    return (config->packet_bytes == 0 ||
            (config->packet_bytes > SKY_RESPONSE_OVERHEAD && config->packet_bytes <= SKY_LIMIT_PACKET_BYTES)) &&
           (config->credential == NULL || SKYC_Keyring_IsSound(config, SKYC_PEERS)) &&
           config->window_max <= SKY_LIMIT_CHUNK_SET && config->burst <= SKY_LIMIT_CHUNK_SET &&
           config->receive_bytes <= INT32_MAX;
}

SKYC_Client_t *SKYC_Open(const SKYC_Config_t *config, int *error)
{
    SKYC_Client_t *client = calloc(1, sizeof(*client));
    uint64_t       random = 0;
    int            cause  = 0;

    if (client == NULL)
    {
        cause = ENOMEM;
    }
    else if (!config_check(config))
    {
        cause = EINVAL;
    }
    else if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
    {
        cause = errno;
    }
    else
    {
        cause                               = SKYC_Engine_Init(&client->engine, config, random);
        client->engine.counters.host_number = client->engine.host.self.slot;
    }
    if (cause == 0)
    {
        client->engine.sock = SKYC_Socket_Open(config, &client->engine.counters, &cause);
    }
    if (cause == 0)
    {
        cause = pthread_mutex_init(&client->lock, NULL);
    }
    if (cause == 0)
    {
        return client;
    }
    if (client != NULL && client->engine.sock != NULL)
    {
        SKYC_Socket_Close(client->engine.sock);
    }
    if (client != NULL)
    {
        SKYC_Engine_Free(&client->engine);
    }
    free(client);
    if (error != NULL)
    {
        *error = cause;
    }
    return NULL;
}

void SKYC_Close(SKYC_Client_t *client)
{
    if (client == NULL)
    {
        return;
    }
    SKYC_Cancel(client, __atomic_load_n(&client->engine.progress.calls, __ATOMIC_RELAXED));
    (void)pthread_mutex_lock(&client->lock);
    SKYC_Socket_Close(client->engine.sock);
    SKYC_Engine_Free(&client->engine);
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_mutex_destroy(&client->lock);
    free(client);
}

static int client_run(SKYC_Client_t *client, SKY_HostKind_t kind, SKY_HostBlock_t *blocks, uint32_t count)
{
    (void)pthread_mutex_lock(&client->lock);
    const int error = SKYC_Engine_Run(&client->engine, kind, blocks, count);

    (void)pthread_mutex_unlock(&client->lock);
    return error;
}

int SKYC_Put(SKYC_Client_t *client, SKY_HostBlock_t *blocks, uint32_t count)
{
    return client_run(client, SKY_HOST_PUT, blocks, count);
}

int SKYC_Get(SKYC_Client_t *client, SKY_HostBlock_t *blocks, uint32_t count)
{
    return client_run(client, SKY_HOST_GET, blocks, count);
}

int SKYC_Stream_Run(SKYC_Client_t *client, SKYC_Stream_t *stream)
{
    (void)pthread_mutex_lock(&client->lock);
    const int error = SKYC_Engine_RunStream(&client->engine, stream);

    (void)pthread_mutex_unlock(&client->lock);
    return error;
}

void SKYC_Cancel(SKYC_Client_t *client, uint64_t call)
{
    __atomic_store_n(&client->engine.cancel, call, __ATOMIC_RELAXED);
    SKYC_Socket_Wake(client->engine.sock);
}

uint32_t SKYC_Served(SKYC_Client_t *client, SKY_HostServed_t *served, uint32_t room)
{
    (void)pthread_mutex_lock(&client->lock);
    const uint32_t count = SKYC_Engine_Served(&client->engine, served, room);

    (void)pthread_mutex_unlock(&client->lock);
    return count;
}

void SKYC_Progress(const SKYC_Client_t *client, SKYC_Progress_t *progress)
{
    progress->chunks_done  = __atomic_load_n(&client->engine.progress.chunks_done, __ATOMIC_RELAXED);
    progress->chunks_total = __atomic_load_n(&client->engine.progress.chunks_total, __ATOMIC_RELAXED);
    progress->calls        = __atomic_load_n(&client->engine.progress.calls, __ATOMIC_RELAXED);
}

void SKYC_Counters(SKYC_Client_t *client, SKYC_Counters_t *counters)
{
    (void)pthread_mutex_lock(&client->lock);
    *counters             = client->engine.counters;
    counters->suites_used = SKY_Host_Suites(&client->engine.host);
    (void)pthread_mutex_unlock(&client->lock);
}
