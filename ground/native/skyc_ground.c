/**
 * @file
 * Beginning and end of a ground, and what its host knows. See skyc_ground_priv.h for its locks.
 */
#define _GNU_SOURCE
#include "skyc_ground.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "sky_endpoint.h"
#include "skyc_ground_priv.h"

#define PIECES_AN_OP 64u                   /* an attempt that has ended may leave pieces in queues */
#define LANES        4096u                 /* pieces that run at a time */
#define TENANTS      64u                   /* that are told apart */
#define BYTES        (UINT64_C(256) << 20) /* of large blocks under way */
#define TENANT_BYTES (UINT64_C(128) << 20) /* of one tenant */

/* The kernel counts its own overhead against the receive buffer: from a tenth (bundles) over a half (datagrams of 6 kB) to as
 * much again (of 1.5 kB). If this guess is too large, loss makes the windows smaller. */
#define BUFFER_CHUNKS(buffer_bytes, chunk_bytes) ((buffer_bytes)*2u / 3u / (chunk_bytes))

/* ---- functions for the core ------------------------------------------------------------------------------------------- */

static void send_packet(void *context, uint64_t at_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const SKYC_Ground_t  *ground = context;
    const SKYC_Endpoint_t to     = {(uint32_t)SKY_Endpoint_Address(endpoint), SKY_Endpoint_Port(endpoint)};

    (void)at_us;
    SKYC_Socket_Add(ground->sock, to, pkt, key);
}

static uint8_t *payload(void *context)
{
    const SKYC_Ground_t *ground = context;

    return SKYC_Socket_Payload(ground->sock);
}

/* So few bytes come whole, or not at all. */
static bool draw(void *bytes, size_t count)
{
    return getrandom(bytes, count, 0) == (ssize_t)count;
}

/* Each request has a number by chance, and a draw is a system call: so bytes for many are drawn at once. */
static bool random_bytes(void *context, uint8_t *bytes, size_t count)
{
    SKYC_Ground_t *ground = context;

    if (count > ground->random_left)
    {
        ground->random_left = draw(ground->random, sizeof(ground->random)) ? (uint32_t)sizeof(ground->random) : 0u;
    }
    if (count > ground->random_left)
    {
        return false;
    }
    ground->random_left -= (uint32_t)count;
    (void)memcpy(bytes, &ground->random[ground->random_left], count);
    (void)memset(&ground->random[ground->random_left], 0, count); /* nobody finds it here afterwards */
    return true;
}

static uint64_t endpoint_of(void *context, SKY_Addr_t entry)
{
    const SKYC_Ground_t *ground = context;

    return ground->endpoints[(size_t)(entry.plane - 1u) * ground->config.slots + entry.slot - 1u];
}

static uint64_t counter(const SKY_HostQuestion_t *question, uint32_t number)
{
    const uint8_t *at    = question->answer.payload + (size_t)8 * number;
    uint64_t       value = 0;

    for (uint32_t i = 0; i < 8; ++i)
    {
        value = value << 8 | at[i];
    }
    return value;
}

/* Take in what satellites say that have something to hand over. */
static void searched(void *context)
{
    SKYC_Ground_t             *ground  = context;
    const SKY_Ground_t        *core    = &ground->core;
    const SKY_GroundInquiry_t *inquiry = &core->inquiry;

    ground->words.late        = core->late_count;
    ground->words.late_chunks = 0;
    ground->words.late_ms     = 0;
    for (uint32_t i = 0; i < inquiry->count && core->late_count > 0; ++i)
    {
        const SKY_HostQuestion_t *question = &inquiry->questions[i];

        if (question->op == SKY_OP_STATS && question->status == SKY_STATUS_DONE && question->answer.payload != NULL &&
            question->answer.length >= 8u * SKY_STATS_KVC_COUNT && counter(question, SKY_STATS_KVC_HANDOVER_LEFT) > 0)
        {
            const uint64_t spent_ms = counter(question, SKY_STATS_KVC_HANDOVER_MS);

            ground->words.late_chunks += (uint32_t)counter(question, SKY_STATS_KVC_HANDOVER_LEFT);
            ground->words.late_ms = spent_ms > ground->words.late_ms ? spent_ms : ground->words.late_ms;
        }
    }
}

/* Keep a message of telemetry, if there is room. */
static void keep_telemetry(void *context, const SKY_Packet_t *pkt)
{
    SKYC_Ground_t *ground = context;

    (void)pthread_mutex_lock(&ground->list);
    SKYC_Telemetry_t *one = &ground->telemetry[(ground->telemetry_first + ground->telemetry_count) % SKYC_GROUND_TELEMETRY];

    if (ground->telemetry_count < SKYC_GROUND_TELEMETRY && pkt->length <= sizeof(one->message))
    {
        one->plane  = pkt->src.plane;
        one->slot   = pkt->src.slot;
        one->length = pkt->length;
        if (pkt->length > 0)
        {
            (void)memcpy(one->message, pkt->payload, pkt->length);
        }
        ++ground->telemetry_count;
        (void)pthread_cond_broadcast(&ground->told);
    }
    (void)pthread_mutex_unlock(&ground->list);
}

/* ---- begin and end ------------------------------------------------------------------------------------------------------ */

static bool is_sound(const SKYC_GroundConfig_t *config, const SKYC_Config_t *client)
{
    const uint32_t satellites = (uint32_t)config->planes * config->slots;

    return satellites > 0 && satellites <= SKY_HOST_LANES_MAX && config->endpoints != NULL && config->servers > 0 &&
           config->servers <= satellites && config->operations > 0 && config->queued > 0 && config->chunk_bytes > 0 &&
           (client->packet_bytes == 0 ||
            (client->packet_bytes > SKY_RESPONSE_OVERHEAD && client->packet_bytes <= SKY_LIMIT_PACKET_BYTES)) &&
           (client->credential == NULL ||
            (client->planes == config->planes && client->slots == config->slots && SKYC_Keyring_IsSound(client, satellites))) &&
           client->window_max <= SKY_LIMIT_CHUNK_SET && client->burst <= SKY_LIMIT_CHUNK_SET &&
           client->receive_bytes <= INT32_MAX;
}

static uint32_t or_default(uint32_t value, uint32_t standard)
{
    return value != 0 ? value : standard;
}

static uint64_t or_default_us(uint64_t value_us, uint64_t standard_us)
{
    return value_us != 0 ? value_us : standard_us;
}

/* Begin the core, and what it needs. @return 0, EINVAL, ENOMEM, or why the system gives no random number */
static int begin_core(SKYC_Ground_t *ground, const SKYC_Config_t *client)
{
    const SKYC_GroundConfig_t *config     = &ground->config;
    const size_t               satellites = (size_t)config->planes * config->slots;
    const SKY_GroundShell_t    shell      = {
                {ground, send_packet, payload, random_bytes}, {.context = ground, .Searched = searched}, endpoint_of, ground};
    SKY_GroundLimits_t   limits = {.servers      = config->servers,
                                   .operations   = config->operations,
                                   .works        = 2u * config->operations,
                                   .pieces       = PIECES_AN_OP * config->operations,
                                   .lanes        = LANES,
                                   .questions    = SKYC_GROUND_QUESTIONS,
                                   .queued       = config->queued,
                                   .tenants      = TENANTS,
                                   .bytes        = BYTES,
                                   .tenant_bytes = TENANT_BYTES};
    const SKY_ReachCfg_t times  = {or_default_us(config->reach.lost_us, SKY_HOST_LOST_US),
                                   or_default_us(config->reach.doubt_us, SKY_HOST_DOUBT_US),
                                   or_default_us(config->reach.pause_first_us, SKY_HOST_PAUSE_FIRST_US),
                                   or_default_us(config->reach.pause_max_us, SKY_HOST_PAUSE_MAX_US)};
    SKY_HostCfg_t        cfg    = {0};
    uint16_t             number = 0;

    if (!SKY_Torus_Init(&limits.torus, config->planes, config->slots, config->seam_cut))
    {
        return EINVAL;
    }
    if (!draw(&number, sizeof(number)))
    {
        return errno;
    }
    cfg.peer =
        SKY_PeerCfg_OfHost(or_default(client->window_max, SKY_DEFAULT_WINDOW), or_default(client->burst, SKY_DEFAULT_CREDIT));
    cfg.packet_bytes   = or_default(client->packet_bytes, SKY_LIMIT_PACKET_BYTES);
    cfg.number         = client->host_number != 0 ? client->host_number : (uint16_t)(number % UINT16_MAX + 1u);
    cfg.keeps_number   = client->host_number != 0;
    cfg.asks_all       = client->asks_all != 0;
    cfg.security.is_on = true;
    ground->endpoints  = malloc(satellites * sizeof(*ground->endpoints));
    ground->seen       = malloc(satellites * sizeof(*ground->seen));
    ground->memory     = calloc(1, SKY_Ground_MemoryBytes(&limits));
    if (ground->endpoints == NULL || ground->seen == NULL || ground->memory == NULL ||
        (client->credential != NULL && SKYC_Keyring_Begin(&ground->keyring, client, &cfg.security) != 0))
    {
        return ENOMEM;
    }
    (void)memcpy(ground->endpoints, config->endpoints, satellites * sizeof(*ground->endpoints));
    ground->config.endpoints = NULL; /* the caller's memory may go */
    ground->counters.suites  = ground->keyring.library.crypto.suites;
    if (!SKY_Ground_Init(&ground->core, &limits, &shell, &cfg, &times, ground->memory))
    {
        return EINVAL;
    }
    SKY_Host_SetPatience(&ground->core.host, &client->patience);
    return 0;
}

/* Give back all but the structure and its locks. */
static void end_ground(SKYC_Ground_t *ground)
{
    if (ground->sock != NULL)
    {
        SKYC_Socket_Close(ground->sock);
        ground->sock = NULL;
    }
    SKYC_Keyring_End(&ground->keyring);
    free(ground->endpoints);
    free(ground->memory);
    free(ground->rows);
    free(ground->seen);
    free(ground->telemetry);
}

SKYC_Ground_t *SKYC_Ground_Open(const SKYC_GroundConfig_t *config, const SKYC_Config_t *client, int *error)
{
    SKYC_Ground_t *ground = is_sound(config, client) ? calloc(1, sizeof(*ground)) : NULL;

    if (ground == NULL)
    {
        *error = is_sound(config, client) ? ENOMEM : EINVAL;
        return NULL;
    }
    ground->references = 1;
    ground->config     = *config;
    (void)pthread_mutex_init(&ground->list, NULL);
    SKYC_Ground_BeginCondition(&ground->left);
    SKYC_Ground_BeginCondition(&ground->told);
    SKYC_Ground_BeginCondition(&ground->turns);
    SKYC_Ground_BeginCondition(&ground->rest);
    *error = SKYC_Ground_CountForks(&ground->forks);
    *error = *error == 0 ? begin_core(ground, client) : *error;
    if (*error == 0)
    {
        ground->sock = SKYC_Socket_Open(client, &ground->counters, error);
    }
    if (ground->sock == NULL)
    {
        end_ground(ground);
        SKYC_Ground_Drop(ground);
        return NULL;
    }
    const uint64_t chunks = BUFFER_CHUNKS(ground->counters.receive_buffer_bytes, config->chunk_bytes);

    SKY_Host_SetBudget(&ground->core.host, chunks > 0 ? (uint32_t)chunks : 1u);
    return ground;
}

void SKYC_Ground_Close(SKYC_Ground_t *ground)
{
    if (SKYC_Ground_IsChild(ground)) /* its locks may be held by threads that this process does not have */
    {
        if (ground->sock != NULL)
        {
            SKYC_Socket_Close(ground->sock);
            ground->sock = NULL;
        }
        return;
    }
    (void)pthread_mutex_lock(&ground->list);
    const bool was_closed = ground->is_closed;
    const bool has_thread = ground->has_thread;

    ground->is_closed = true;
    if (!was_closed)
    {
        SKYC_Ground_Kick(ground);
        (void)pthread_cond_broadcast(&ground->told);
    }
    while (was_closed && !ground->has_ended)
    {
        (void)pthread_cond_wait(&ground->left, &ground->list);
    }
    (void)pthread_mutex_unlock(&ground->list);
    if (was_closed)
    {
        return;
    }
    if (has_thread)
    {
        (void)pthread_join(ground->thread, NULL);
    }
    (void)pthread_mutex_lock(&ground->list);
    while (ground->inside > 0)
    {
        (void)pthread_cond_wait(&ground->left, &ground->list);
    }
    (void)pthread_mutex_unlock(&ground->list);
    end_ground(ground);
    (void)pthread_mutex_lock(&ground->list);
    ground->has_ended = true;
    (void)pthread_cond_broadcast(&ground->left);
    (void)pthread_mutex_unlock(&ground->list);
}

void SKYC_Ground_Free(SKYC_Ground_t *ground)
{
    if (ground != NULL)
    {
        SKYC_Ground_Close(ground);
        SKYC_Ground_Drop(ground);
    }
}

/* ---- what the host sees and knows ------------------------------------------------------------------------------------------------- */

/* Take over a sky whose memory is ours. In a turn. @return false: the core refuses it, and has that of before */
static bool take_sky(SKYC_Ground_t *ground, const SKY_GroundSky_t *sky, const SKY_Schedule_t *schedule)
{
    SKY_GroundSky_t ours = *sky;

    ours.schedule = schedule; /* it is looked at, and not kept yet */
    if (!SKY_Ground_SetSky(&ground->core, &ours))
    {
        return false;
    }
    ground->schedule = *schedule;
    for (uint32_t i = 0; i < sky->seen_count; ++i)
    {
        ground->seen[i] = sky->seen[i];
    }
    ours.schedule = &ground->schedule;
    ours.seen     = ground->seen;
    return SKY_Ground_SetSky(&ground->core, &ours);
}

int SKYC_Ground_SetSky(SKYC_Ground_t *ground, const SKY_GroundSky_t *sky, const SKYC_SkyRows_t *rows)
{
    const uint32_t     satellites = (uint32_t)ground->config.planes * ground->config.slots;
    SKY_ScheduleRow_t *ours       = rows->count > 0 ? malloc(rows->count * sizeof(*ours)) : NULL;
    SKY_Schedule_t     schedule;
    int                error;

    if (rows->count == 0 || sky->seen_count > satellites)
    {
        free(ours);
        return EINVAL;
    }
    if (ours == NULL)
    {
        return ENOMEM;
    }
    (void)memcpy(ours, rows->rows, rows->count * sizeof(*ours));
    error = SKYC_Ground_EnterTurn(ground);
    if (error == 0)
    {
        SKY_ScheduleRow_t *given = ours;

        if (SKY_Schedule_Init(&schedule, &ground->core.limits.torus, (SKY_LayoutId_t)rows->layout, ground->config.servers, ours,
                              rows->count, rows->epoch_us) &&
            take_sky(ground, sky, &schedule))
        {
            given        = ground->rows;
            ground->rows = ours;
            (void)pthread_mutex_lock(&ground->list);
            ground->has_sky = true;
            (void)pthread_mutex_unlock(&ground->list);
        }
        else
        {
            error = EINVAL;
        }
        ours = given;
        SKYC_Ground_LeaveTurn(ground);
    }
    free(ours);
    return error;
}

int SKYC_Ground_Reach(SKYC_Ground_t *ground, SKYC_Reach_t *reach)
{
    const SKY_Reach_t *known = &ground->core.reach;
    const int          error = SKYC_Ground_EnterTurn(ground);

    *reach = (SKYC_Reach_t){false, 0, NULL, 0};
    if (error == 0)
    {
        reach->is_silent = known->pause_us > 0;
        reach->losses    = known->losses;
        reach->lost      = known->lost_count > 0 ? malloc(known->lost_count * sizeof(*reach->lost)) : NULL;
        if (reach->lost != NULL)
        {
            (void)memcpy(reach->lost, known->lost, known->lost_count * sizeof(*reach->lost));
            reach->lost_count = known->lost_count;
        }
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_PatienceUs(SKYC_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count, uint64_t *us)
{
    const int error = SKYC_Ground_EnterTurn(ground);

    *us = 0;
    if (error == 0)
    {
        *us = SKY_Host_PatienceUs(&ground->core.host, satellites, count);
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_HurryUs(SKYC_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count, uint64_t *us)
{
    const int error = SKYC_Ground_EnterTurn(ground);

    *us = 0;
    if (error == 0)
    {
        *us = SKY_Host_HurryUs(&ground->core.host, satellites, count);
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

uint32_t SKYC_Ground_Progress(SKYC_Ground_t *ground, const SKYC_Op_t *op, uint32_t *total)
{
    uint32_t moved = 0;

    *total = 0;
    if (SKYC_Ground_EnterTurn(ground) == 0)
    {
        moved = SKY_Ground_Progress(&op->core, total);
        SKYC_Ground_LeaveTurn(ground);
    }
    return moved;
}

int SKYC_Ground_Expect(SKYC_Ground_t *ground, SKY_Addr_t satellite, uint32_t rtt_us)
{
    const int error = SKYC_Ground_EnterTurn(ground);

    if (error == 0)
    {
        SKY_Host_Expect(&ground->core.host, satellite, rtt_us);
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_TakeHints(SKYC_Ground_t *ground, const SKY_GroundHint_t *hints, uint32_t count)
{
    const int error = SKYC_Ground_EnterTurn(ground);

    if (error == 0)
    {
        const uint64_t now_us = SKYC_Ground_ClockUs();

        for (uint32_t i = 0; i < count; ++i)
        {
            SKY_Ground_TakeHint(&ground->core, now_us, &hints[i]);
        }
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_Hints(SKYC_Ground_t *ground, SKY_GroundHint_t *hints)
{
    const int error = SKYC_Ground_EnterTurn(ground);

    if (error == 0)
    {
        const uint32_t satellites = (uint32_t)ground->config.planes * ground->config.slots;
        const uint64_t now_us     = SKYC_Ground_ClockUs();

        for (uint32_t number = 0; number < satellites; ++number)
        {
            hints[number] = SKY_Ground_Hint(&ground->core, now_us, number);
        }
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_SetNumber(SKYC_Ground_t *ground, uint16_t number)
{
    const int error = SKYC_Ground_EnterTurn(ground);
    uint16_t  drawn = number;

    if (error == 0)
    {
        if (number == 0 && !draw(&drawn, sizeof(drawn)))
        {
            drawn = ground->core.host.self.slot; /* the next one, as this one is taken */
        }
        SKY_Host_SetNumber(&ground->core.host, number != 0 ? number : (uint16_t)(drawn % UINT16_MAX + 1u));
        (void)pthread_mutex_lock(&ground->list);
        SKYC_Ground_Kick(ground); /* what is on its way is asked again */
        (void)pthread_mutex_unlock(&ground->list);
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

int SKYC_Ground_Counters(SKYC_Ground_t *ground, SKYC_Counters_t *counters)
{
    const SKY_Host_t *host  = &ground->core.host;
    const int         error = SKYC_Ground_EnterTurn(ground);

    if (error != 0)
    {
        (void)memset(counters, 0, sizeof(*counters));
        return error;
    }
    *counters              = ground->counters;
    counters->rx_bad       = host->counters.undecoded;
    counters->rx_stale     = host->counters.stale;
    counters->repeats      = host->counters.repeats;
    counters->rx_untrusted = host->counters.untrusted;
    counters->no_random    = host->counters.no_random;
    counters->host_number  = host->self.slot;
    counters->suites_used  = SKY_Host_Suites(host);
    SKYC_Ground_LeaveTurn(ground);
    return 0;
}

int SKYC_Ground_Listen(SKYC_Ground_t *ground)
{
    int error = SKYC_Ground_EnterTurn(ground);

    if (error == 0)
    {
        (void)pthread_mutex_lock(&ground->list);
        if (ground->telemetry == NULL)
        {
            ground->telemetry = calloc(SKYC_GROUND_TELEMETRY, sizeof(*ground->telemetry));
        }
        error = ground->telemetry != NULL ? 0 : ENOMEM;
        SKYC_Ground_Kick(ground); /* it comes at any time */
        (void)pthread_mutex_unlock(&ground->list);
        if (error == 0)
        {
            SKY_Host_Listen(&ground->core.host, keep_telemetry, ground);
        }
        SKYC_Ground_LeaveTurn(ground);
    }
    return error;
}

bool SKYC_Ground_NextTelemetry(SKYC_Ground_t *ground, SKYC_Telemetry_t *telemetry, uint32_t timeout_us)
{
    struct timespec until;
    bool            any = false;

    SKYC_Ground_After(timeout_us, &until);
    if (SKYC_Ground_Enter(ground) == 0)
    {
        while (ground->telemetry_count == 0 && !ground->is_closed &&
               pthread_cond_timedwait(&ground->told, &ground->list, &until) == 0)
        {
            /* look again */
        }
        any = ground->telemetry_count > 0;
        if (any)
        {
            *telemetry              = ground->telemetry[ground->telemetry_first];
            ground->telemetry_first = (ground->telemetry_first + 1u) % SKYC_GROUND_TELEMETRY;
            --ground->telemetry_count;
        }
        SKYC_Ground_Leave(ground);
    }
    return any;
}
