/**
 * @file
 * Memory of the host, and the loop of a call.
 */
#define _GNU_SOURCE
#include "skyc_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "sky_endpoint.h"

#define BACKLOG_MAX_US 100000u
#define ROW_ALIGN      8u          /* of what the host notes of rows */
#define OWN_KEPT       (16u << 20) /* bytes of own memory of blocks that are kept for the next call */

/* The kernel counts its own overhead against the receive buffer: from a tenth (bundles) over a half (datagrams of 6 kB) to as
 * much again (of 1.5 kB). If this guess is too large, loss makes the windows smaller. */
#define BUFFER_CHUNKS(buffer_bytes, chunk_bytes) ((buffer_bytes)*2u / 3u / (chunk_bytes))

uint64_t SKYC_Engine_NowUs(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* ---- functions for the host ------------------------------------------------------------------------------------------- */

static void send_packet(void *context, uint64_t at_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const SKYC_Engine_t  *engine = context;
    const SKYC_Endpoint_t to     = {(uint32_t)SKY_Endpoint_Address(endpoint), SKY_Endpoint_Port(endpoint)};

    (void)at_us;
    SKYC_Socket_Add(engine->sock, to, pkt, key);
}

static uint8_t *payload(void *context)
{
    const SKYC_Engine_t *engine = context;

    return SKYC_Socket_Payload(engine->sock);
}

/* So few bytes come whole, or not at all. */
static bool random_bytes(void *context, uint8_t *bytes, size_t count)
{
    (void)context;
    return getrandom(bytes, count, 0) == (ssize_t)count;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t standard)
{
    return value != 0 ? value : standard;
}

int SKYC_Engine_Init(SKYC_Engine_t *engine, const SKYC_Config_t *config, uint64_t random)
{
    const SKY_HostShell_t shell = {engine, send_packet, payload, random_bytes};
    SKY_HostCfg_t         cfg   = {0};

    cfg.peer =
        SKY_PeerCfg_OfHost(or_default(config->window_max, SKY_DEFAULT_WINDOW), or_default(config->burst, SKY_DEFAULT_CREDIT));
    cfg.packet_bytes = or_default(config->packet_bytes, SKY_LIMIT_PACKET_BYTES);
    cfg.number       = config->host_number != 0 ? config->host_number : (uint16_t)(random % UINT16_MAX + 1);
    cfg.keeps_number = config->host_number != 0;
    cfg.way_chunks   = 0;
    cfg.asks_all     = config->asks_all != 0;

    engine->config           = *config;
    engine->cancel           = UINT64_MAX;
    engine->peers.peer_count = SKYC_PEERS;
    cfg.security.is_on       = true;
    if (config->credential != NULL)
    {
        engine->peers.peer_count = (uint32_t)config->planes * config->slots;
        if (SKYC_Keyring_Begin(&engine->keyring, config, &cfg.security) != 0)
        {
            return ENOMEM;
        }
        engine->counters.suites   = engine->keyring.library.crypto.suites;
        engine->config.credential = NULL; /* the caller's memory may go */
        engine->config.pair_keys  = NULL;
    }
    engine->peers.peers  = calloc(SKYC_PEERS, sizeof(*engine->peers.peers));
    engine->peers.active = calloc(SKYC_PEERS, sizeof(*engine->peers.active));
    engine->peers.ways   = calloc(SKYC_PEERS, sizeof(*engine->peers.ways));
    engine->peers.index  = calloc(1, SKY_Index_MemoryBytes(SKYC_PEERS));
    if (engine->peers.peers == NULL || engine->peers.active == NULL || engine->peers.ways == NULL || engine->peers.index == NULL)
    {
        return ENOMEM;
    }
    (void)SKY_Host_Init(&engine->host, &shell, &cfg, &engine->peers); /* there is room for satellites */
    return 0;
}

static void free_blocks(SKYC_Engine_t *engine)
{
    free(engine->blocks.works);
    free(engine->blocks.pieces);
    free(engine->blocks.lanes);
    engine->blocks = (SKY_HostBlockMemory_t){0};
}

void SKYC_Engine_Free(SKYC_Engine_t *engine)
{
    free_blocks(engine);
    free(engine->own);
    SKYC_Keyring_End(&engine->keyring);
    free(engine->peers.peers);
    free(engine->peers.active);
    free(engine->peers.ways);
    free(engine->peers.index);
}

/* Take memory for a call of so many blocks. Memory of an earlier, larger call is enough. */
static int lend(SKYC_Engine_t *engine, uint32_t blocks, uint32_t pieces)
{
    const uint32_t         lanes  = pieces < SKY_HOST_LANES_MAX ? pieces : SKY_HOST_LANES_MAX;
    SKY_HostBlockMemory_t *memory = &engine->blocks;

    if (memory->work_count < blocks || memory->piece_count < pieces)
    {
        free_blocks(engine);
        memory->works  = calloc(blocks, sizeof(*memory->works));
        memory->pieces = calloc(pieces, sizeof(*memory->pieces));
        memory->lanes  = calloc(lanes, sizeof(*memory->lanes));
        if (memory->works == NULL || memory->pieces == NULL || memory->lanes == NULL)
        {
            free_blocks(engine);
            return ENOMEM;
        }
        memory->work_count  = blocks;
        memory->piece_count = pieces;
        memory->lane_count  = lanes;
    }
    return SKY_Host_Lend(&engine->host, memory) ? 0 : EINVAL;
}

static void free_own(SKYC_Engine_t *engine)
{
    free(engine->own);
    engine->own       = NULL;
    engine->own_bytes = 0;
}

/* Take memory for what the host notes of the blocks of a call, and for their parity. That of an earlier call may do. */
static int take_own(SKYC_Engine_t *engine, uint64_t bytes)
{
    if (engine->own == NULL || engine->own_bytes < bytes)
    {
        free_own(engine);
        engine->own       = malloc(bytes + 1);
        engine->own_bytes = engine->own != NULL ? bytes : 0;
    }
    return engine->own != NULL ? 0 : ENOMEM;
}

/* ---- a call ---------------------------------------------------------------------------------------------------------- */

/* Needs of a call. */
typedef struct
{
    uint64_t pieces, chunks, own_bytes;
    uint32_t chunk_bytes;
} needs_t;

/* Memory of a block for the host's own use. */
typedef struct
{
    uint64_t rows, parity, have; /* bytes of each; they lie in this order */
} own_t;

static own_t own_of(const SKY_HostBlock_t *block)
{
    const bool     is_coded = block->stripe.code_m > 0;
    const bool     notes    = block->kind == SKY_HOST_GET && (block->rounds > 0 || is_coded);
    const uint64_t rows     = is_coded ? SKY_Stripe_Rows(&block->stripe) : 0;

    return (own_t){rows * sizeof(SKY_HostRow_t), SKY_Stripe_ParityBytes(&block->stripe),
                   notes ? ((uint64_t)block->stripe.chunk_total + 7) / 8 : 0};
}

/* Return the bytes of a block's own memory. What lies behind it begins at a multiple of ROW_ALIGN. */
static uint64_t own_bytes(const SKY_HostBlock_t *block)
{
    const own_t own = own_of(block);

    return (own.rows + own.parity + own.have + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
}

/* Check the endpoints: UDP needs a port. SKY_Host_Pieces has checked that the places are there. */
static bool ports_check(const SKY_HostBlock_t *block)
{
    const uint64_t fallbacks = block->kind == SKY_HOST_PUT ? 0 : (uint64_t)block->rounds * block->server_count;

    for (uint32_t i = 0; i < block->server_count; ++i)
    {
        if (SKY_Endpoint_Port(block->servers[i].endpoint) == 0)
        {
            return false;
        }
    }
    for (uint64_t i = 0; i < fallbacks; ++i)
    {
        if (block->fallbacks[i].plane != 0 && SKY_Endpoint_Port(block->fallbacks[i].endpoint) == 0)
        {
            return false;
        }
    }
    return true;
}

/* Return the pieces of a block that has no memory of the host's own yet, and in a stream none for its data. */
static uint64_t pieces_of(const SKYC_Engine_t *engine, const SKY_HostBlock_t *block)
{
    static uint8_t       some;
    static SKY_HostRow_t row;
    SKY_HostBlock_t      checked = *block;

    checked.have   = &some;
    checked.parity = &some;
    checked.rows   = &row;
    checked.data   = engine->stream != NULL ? &some : block->data;
    return SKY_Host_Pieces(&engine->host, &checked);
}

/* Check all blocks. @return 0 or EINVAL */
static int find_needs(const SKYC_Engine_t *engine, SKY_HostKind_t kind, SKY_HostBlock_t *blocks, uint32_t count, needs_t *needs)
{

    *needs = (needs_t){0, 0, 0, 1};
    for (uint32_t b = 0; b < count; ++b)
    {
        blocks[b].kind        = kind;
        blocks[b].last_status = SKY_STATUS_OK;
        const uint64_t pieces = pieces_of(engine, &blocks[b]);

        if (pieces == 0 || !ports_check(&blocks[b]))
        {
            blocks[b].last_status = SKY_STATUS_BAD_CHUNK;
            return EINVAL;
        }
        needs->pieces += pieces;
        needs->chunks += kind == SKY_HOST_PUT ? blocks[b].stripe.chunk_total : SKY_Stripe_DataChunks(&blocks[b].stripe);
        needs->own_bytes += own_bytes(&blocks[b]);
        needs->chunk_bytes = blocks[b].stripe.chunk_len > needs->chunk_bytes ? blocks[b].stripe.chunk_len : needs->chunk_bytes;
    }
    return needs->pieces < SKY_HOST_NONE ? 0 : EINVAL;
}

static void on_datagram(void *context, SKYC_Endpoint_t from, const uint8_t *data, size_t len)
{
    SKYC_Engine_t *engine = context;

    SKY_Host_Receive(&engine->host, engine->now_us, SKY_Endpoint_Of(from.ipv4, from.port), data, len);
}

/* Refuse the requests that are too large for their path. @return true if there were some */
static bool refuse_too_large(SKYC_Engine_t *engine)
{
    uint64_t request_id = 0;
    bool     any        = false;

    while (SKYC_Socket_NextTooLarge(engine->sock, &request_id))
    {
        SKY_Host_RefuseTooLarge(&engine->host, engine->now_us, request_id);
        any = true;
    }
    return any;
}

static void tell_progress(SKYC_Engine_t *engine)
{
    const uint64_t all  = __atomic_load_n(&engine->progress.chunks_total, __ATOMIC_RELAXED);
    const uint64_t done = engine->host.counters.chunks - engine->chunks_then;

    /* Parity may come beside data: then more chunks come than the blocks have. */
    __atomic_store_n(&engine->progress.chunks_done, done < all ? done : all, __ATOMIC_RELAXED);
}

/* Let timers wait until the socket is empty, though not for ever: packets that came but were not read yet are not late. */
static bool timers_may_act(const SKYC_Engine_t *engine)
{
    return engine->empty_us == engine->now_us || engine->now_us - engine->empty_us >= BACKLOG_MAX_US;
}

static bool is_cancelled(const SKYC_Engine_t *engine)
{
    return __atomic_load_n(&engine->cancel, __ATOMIC_RELAXED) ==
               engine->progress.calls || /* only this thread writes the latter */
           (engine->stream != NULL && SKYC_Stream_IsStopped(engine->stream));
}

static bool is_busy(const SKYC_Engine_t *engine)
{
    return engine->host.running > 0;
}

/* Begin a block, with its part of the host's own memory. */
static bool begin(SKYC_Engine_t *engine, uint64_t at_us, SKY_HostBlock_t *block)
{
    const own_t own = own_of(block);
    uint8_t    *at  = engine->own_next;

    block->rows   = own.rows > 0 ? (SKY_HostRow_t *)(void *)at : NULL;
    block->parity = own.parity > 0 ? at + own.rows : NULL;
    block->have   = own.have > 0 ? at + own.rows + own.parity : NULL;
    engine->own_next += own_bytes(block);
    return SKY_Host_Begin(&engine->host, at_us, block) == SKY_HOST_BEGUN;
}

/* Begin the blocks of a stream that were allowed since the last look. */
static void begin_allowed(SKYC_Engine_t *engine)
{
    SKY_HostBlock_t *block = engine->stream != NULL ? SKYC_Stream_Next(engine->stream) : NULL;

    while (block != NULL)
    {
        if (!begin(engine, engine->now_us, block))
        {
            block->status = SKY_STATUS_BAD_CHUNK; /* it was allowed without memory; all else was checked */
        }
        block = SKYC_Stream_Next(engine->stream);
    }
}

static void tell_stream(SKYC_Engine_t *engine)
{
    if (engine->stream != NULL)
    {
        SKYC_Stream_Tell(engine->stream);
    }
}

void SKYC_Engine_Loop(SKYC_Engine_t *engine, uint64_t until_us)
{
    engine->now_us = SKYC_Engine_NowUs();
    while (is_busy(engine) && engine->now_us < until_us)
    {
        if (is_cancelled(engine))
        {
            SKY_Host_Stop(&engine->host, engine->now_us, NULL, SKY_STATUS_CANCELLED);
            return;
        }
        begin_allowed(engine);
        if (SKYC_Socket_Receive(engine->sock, on_datagram, engine))
        {
            engine->now_us = SKYC_Engine_NowUs(); /* reading has taken time */
        }
        else
        {
            engine->empty_us = engine->now_us;
        }
        const uint64_t due_us = SKY_Host_Run(&engine->host, engine->now_us, timers_may_act(engine));

        SKYC_Socket_Flush(engine->sock);
        tell_progress(engine);
        tell_stream(engine);
        const bool again = refuse_too_large(engine) || engine->empty_us != engine->now_us;

        engine->now_us = SKYC_Engine_NowUs();
        if (again)
        {
            continue;
        }
        if (is_busy(engine) && due_us > engine->now_us && until_us > engine->now_us) /* timers may have ended the last block */
        {
            SKYC_Socket_Wait(engine->sock, (due_us < until_us ? due_us : until_us) - engine->now_us);
            engine->now_us = SKYC_Engine_NowUs();
        }
    }
}

static int begin_all(SKYC_Engine_t *engine, SKY_HostBlock_t *blocks, uint32_t count)
{
    for (uint32_t b = 0; b < count; ++b)
    {
        if (!begin(engine, engine->started_us, &blocks[b]))
        {
            return EINVAL; /* this cannot be: there is memory for all blocks, and their numbers were checked */
        }
    }
    return 0;
}

/* Run as long as blocks of the stream may begin. */
static void loop_stream(SKYC_Engine_t *engine)
{
    do
    {
        engine->now_us = SKYC_Engine_NowUs();
        begin_allowed(engine);
        SKYC_Engine_Loop(engine, UINT64_MAX);
        tell_stream(engine);
    } while (!SKYC_Stream_Leave(engine->stream, is_cancelled(engine)));
}

static int run(SKYC_Engine_t *engine, SKY_HostKind_t kind, SKY_HostBlock_t *blocks, uint32_t count)
{
    needs_t needs;
    int     error = find_needs(engine, kind, blocks, count, &needs);

    if (error != 0 || count == 0)
    {
        return error;
    }
    error = lend(engine, count, (uint32_t)needs.pieces);
    error = error == 0 ? take_own(engine, needs.own_bytes) : error;
    if (error == 0)
    {
        SKY_Host_SetBudget(&engine->host, (uint32_t)BUFFER_CHUNKS(engine->counters.receive_buffer_bytes, needs.chunk_bytes));
        engine->chunks_then = engine->host.counters.chunks;
        __atomic_store_n(&engine->progress.chunks_done, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->progress.chunks_total, needs.chunks, __ATOMIC_RELAXED);
        engine->own_next = engine->own;
        error            = engine->stream == NULL ? begin_all(engine, blocks, count) : 0;
    }
    if (error == 0 && engine->stream == NULL)
    {
        SKYC_Engine_Loop(engine, UINT64_MAX);
        tell_progress(engine);
    }
    else if (error == 0)
    {
        loop_stream(engine);
        tell_progress(engine);
    }
    while (SKY_Host_NextEnded(&engine->host) != NULL)
    {
        /* callers look at all blocks */
    }
    if (engine->own_bytes > OWN_KEPT)
    {
        free_own(engine);
    }
    return error;
}

void SKYC_Engine_EndCall(SKYC_Engine_t *engine)
{
    engine->counters.rx_bad       = engine->host.counters.undecoded;
    engine->counters.rx_stale     = engine->host.counters.stale;
    engine->counters.repeats      = engine->host.counters.repeats;
    engine->counters.rx_untrusted = engine->host.counters.untrusted;
    engine->counters.no_random    = engine->host.counters.no_random;
    engine->counters.host_number  = engine->host.self.slot;
    (void)__atomic_fetch_add(&engine->progress.calls, 1, __ATOMIC_RELAXED);
}

int SKYC_Engine_Run(SKYC_Engine_t *engine, SKY_HostKind_t kind, SKY_HostBlock_t *blocks, uint32_t count)
{
    engine->started_us = SKYC_Engine_NowUs();
    engine->empty_us   = engine->started_us;
    SKY_Host_BeginReport(&engine->host);
    const int error = run(engine, kind, blocks, count);

    SKYC_Engine_EndCall(engine);
    return error;
}

int SKYC_Engine_RunStream(SKYC_Engine_t *engine, SKYC_Stream_t *stream)
{
    if (!SKYC_Stream_Enter(stream, engine->sock))
    {
        return EINVAL;
    }
    for (uint32_t b = 0; b < stream->count; ++b)
    {
        stream->blocks[b].status = SKY_STATUS_RUNNING;
    }
    engine->stream  = stream;
    const int error = SKYC_Engine_Run(engine, SKY_HOST_GET, stream->blocks, stream->count);

    engine->stream = NULL;
    (void)SKYC_Stream_Leave(stream, true);
    return error;
}

/* ---- served chunks --------------------------------------------------------------------------------------------------- */

/* Convert a time of the clock into one of the call; 0 stays 0. */
static uint64_t since_start(const SKYC_Engine_t *engine, uint64_t at_us)
{
    return at_us == 0 ? 0 : at_us - engine->started_us;
}

uint32_t SKYC_Engine_Served(const SKYC_Engine_t *engine, SKY_HostServed_t *served, uint32_t room)
{
    const uint32_t count = SKY_Host_Served(&engine->host, served, room);

    for (uint32_t i = 0; i < count && i < room; ++i)
    {
        served[i].asked_us = since_start(engine, served[i].asked_us);
        served[i].first_us = since_start(engine, served[i].first_us);
        served[i].last_us  = since_start(engine, served[i].last_us);
    }
    return count;
}
