/**
 * @file
 * Before the first packet: are the numbers right, which satellites have to do with it, what is the job of each?
 */
#include "skyc_transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kernel counts its own overhead against the receive buffer: from a tenth (bundles) over a half (datagrams of 6 kB) to as
 * much again (of 1.5 kB). Where this is too much, loss makes the windows smaller. */
#define BUFFER_CHUNKS(buffer_bytes, chunk_bytes) ((buffer_bytes)*2u / 3u / (chunk_bytes))

uint64_t SKYC_Engine_DeadlineUs(const SKYC_Engine_t *engine, const SKYC_Block_t *block)
{
    return engine->started_us + 1000ull * block->deadline_ms;
}

static uint32_t share_chunks(const SKYC_Block_t *block, uint32_t server)
{
    return server < block->chunk_total ? (block->chunk_total - server - 1) / block->server_count + 1 : 0;
}

void SKYC_Engine_Share(const SKYC_Engine_t *engine, const SKYC_Block_t *block, uint32_t base, uint32_t count, SKY_ShareCfg_t *cfg)
{
    (void)memset(cfg, 0, sizeof(*cfg));
    cfg->self         = engine->self;
    cfg->tenant       = block->tenant;
    cfg->epoch        = block->epoch;
    cfg->chunk_total  = block->chunk_total;
    cfg->chunk_len    = block->chunk_len;
    cfg->block_len    = block->block_len;
    cfg->base         = base;
    cfg->stride       = block->server_count;
    cfg->count        = count;
    cfg->packet_bytes = engine->config.packet_bytes;
    cfg->deadline_us  = SKYC_Engine_DeadlineUs(engine, block);
    (void)memcpy(cfg->key, block->key, SKY_KEY_BYTES);
}

/* A PUT goes to the servers' own places only. */
static uint32_t block_rounds(const SKYC_Engine_t *engine, const SKYC_Block_t *block)
{
    return engine->is_put ? 0 : block->rounds;
}

static const SKYC_Satellite_t *place_of(const SKYC_Block_t *block, uint32_t server, uint32_t round)
{
    return round == 0 ? &block->servers[server] : &block->fallbacks[(size_t)(round - 1) * block->server_count + server];
}

uint32_t SKYC_Engine_NextRound(const SKYC_Engine_t *engine, const SKYC_Block_t *block, uint32_t server, uint32_t round)
{
    for (uint32_t r = round + 1; r <= block_rounds(engine, block); ++r)
    {
        if (place_of(block, server, r)->plane != 0)
        {
            return r;
        }
    }
    return 0;
}

static bool places_check(const SKYC_Engine_t *engine, const SKYC_Block_t *block)
{
    const uint32_t rounds = block_rounds(engine, block);

    if (rounds > SKY_HOST_ROUNDS || (rounds > 0 && block->fallbacks == NULL))
    {
        return false;
    }
    for (uint32_t r = 0; r <= rounds; ++r)
    {
        for (uint32_t s = 0; s < block->server_count; ++s)
        {
            const SKYC_Satellite_t *place = place_of(block, s, r);
            const bool              empty = r > 0 && place->plane == 0;

            if (!empty && (place->plane == 0 || place->slot == 0 || place->entry_port == 0))
            {
                return false;
            }
        }
    }
    return true;
}

static bool block_check(const SKYC_Engine_t *engine, const SKYC_Block_t *block)
{
    SKY_ShareCfg_t cfg;

    if (block->data == NULL || block->servers == NULL || block->server_count == 0 || block->deadline_ms == 0 ||
        !places_check(engine, block))
    {
        return false;
    }
    SKYC_Engine_Share(engine, block, 0, 1, &cfg);
    return SKY_ShareCfg_Check(&cfg);
}

static void block_reset(SKYC_Block_t *block)
{
    block->status       = SKY_STATUS_RUNNING;
    block->last_status  = SKY_STATUS_OK;
    block->failed_plane = 0;
    block->failed_slot  = 0;
    block->chunks       = 0;
    block->requests     = 0;
    block->repeats      = 0;
    block->duplicates   = 0;
    block->corrupt      = 0;
    block->bytes        = 0;
    block->duration_us  = 0;
}

/* Blocks name their satellites in much the same order, so the search begins behind the last hit. @return SKYC_NO_PEER: unknown */
static uint32_t peer_find(const SKYC_Engine_t *engine, uint32_t after, SKY_Addr_t addr)
{
    for (uint32_t n = 0; n < engine->peer_count; ++n)
    {
        const uint32_t i = (after + 1 + n) % engine->peer_count;

        if (SKY_Addr_Equal(engine->peers[i].peer.addr, addr))
        {
            return i;
        }
    }
    return SKYC_NO_PEER;
}

/* @return SKYC_NO_PEER: no memory */
static uint32_t peer_add(SKYC_Engine_t *engine, SKY_Addr_t addr)
{
    if (engine->peer_count == engine->peer_room)
    {
        const uint32_t room  = engine->peer_room == 0 ? 32 : engine->peer_room * 2;
        SKYC_Peer_t   *peers = realloc(engine->peers, room * sizeof(*peers));

        if (peers == NULL)
        {
            return SKYC_NO_PEER;
        }
        engine->peers     = peers;
        engine->peer_room = room;
    }
    SKYC_Peer_t *peer = &engine->peers[engine->peer_count];

    (void)memset(peer, 0, sizeof(*peer));
    SKY_Peer_Init(&peer->peer, &engine->peer_cfg, addr);
    return engine->peer_count++;
}

/* Make the satellite of a place one of this call's. @return its number, SKYC_NO_PEER: no memory */
static uint32_t peer_use(SKYC_Engine_t *engine, uint32_t after, const SKYC_Satellite_t *place)
{
    const SKY_Addr_t addr = {place->plane, place->slot};
    uint32_t         i    = peer_find(engine, after, addr);

    i = i != SKYC_NO_PEER ? i : peer_add(engine, addr);
    if (i == SKYC_NO_PEER)
    {
        return i;
    }
    SKYC_Peer_t *peer = &engine->peers[i];

    if (peer->call != engine->call)
    {
        peer->call                           = engine->call;
        peer->job_first                      = SKYC_NO_JOB;
        peer->silent                         = false;
        peer->served                         = (SKYC_Served_t){0};
        peer->at                             = engine->active_count;
        engine->active[engine->active_count] = i;
        ++engine->active_count;
    }
    peer->entry.plane   = place->entry_plane;
    peer->entry.slot    = place->entry_slot;
    peer->endpoint.ipv4 = place->entry_ipv4;
    peer->endpoint.port = place->entry_port;
    return i;
}

static void job_add(SKYC_Engine_t *engine, SKYC_Peer_t *peer, uint32_t job)
{
    engine->jobs[job].next = SKYC_NO_JOB;
    if (peer->job_first == SKYC_NO_JOB)
    {
        peer->job_first = job;
    }
    else
    {
        engine->jobs[peer->job_last].next = job;
    }
    peer->job_last = job;
}

void SKYC_Engine_Queue(SKYC_Engine_t *engine, uint32_t job)
{
    const SKYC_Job_t       *one   = &engine->jobs[job];
    const SKYC_Satellite_t *place = place_of(engine->work[one->block].block, one->server, one->round);
    const SKY_Addr_t        addr  = {place->plane, place->slot};

    job_add(engine, &engine->peers[peer_find(engine, 0, addr)], job); /* all places were made peers before the first packet */
}

static uint32_t share_pieces(uint32_t chunks)
{
    return (chunks + SKY_LIMIT_CHUNK_SET - 1) / SKY_LIMIT_CHUNK_SET;
}

/* The pieces of what the satellite of a server has to do for a block. @return number of the first job behind them */
static uint32_t share_jobs(SKYC_Engine_t *engine, uint32_t b, uint32_t server, SKYC_Peer_t *peer, uint32_t first)
{
    SKYC_Work_t   *work   = &engine->work[b];
    const uint32_t chunks = share_chunks(work->block, server);
    const uint32_t pieces = share_pieces(chunks);

    for (uint32_t p = 0; p < pieces; ++p)
    {
        SKYC_Job_t    *job    = &engine->jobs[first + p];
        const uint32_t behind = chunks - p * SKY_LIMIT_CHUNK_SET;

        job->block  = b;
        job->server = server;
        job->from   = p * SKY_LIMIT_CHUNK_SET;
        job->count  = behind < SKY_LIMIT_CHUNK_SET ? behind : SKY_LIMIT_CHUNK_SET;
        job_add(engine, peer, first + p);
    }
    work->jobs_left += pieces;
    return first + pieces;
}

static bool jobs_make(SKYC_Engine_t *engine)
{
    uint32_t jobs = 0;
    uint32_t at   = 0;

    for (uint32_t b = 0; b < engine->work_count; ++b)
    {
        const SKYC_Block_t *block = engine->work[b].block;

        for (uint32_t r = 0; r <= block_rounds(engine, block); ++r)
        {
            for (uint32_t s = 0; s < block->server_count && s < block->chunk_total; ++s)
            {
                if (place_of(block, s, r)->plane == 0)
                {
                    continue;
                }
                at = peer_use(engine, at, place_of(block, s, r));
                if (at == SKYC_NO_PEER)
                {
                    return false;
                }
                jobs = r == 0 ? share_jobs(engine, b, s, &engine->peers[at], jobs) : jobs;
            }
        }
    }
    return true;
}

static void ways_make(SKYC_Engine_t *engine)
{
    engine->way_count = 0;
    for (uint32_t i = 0; i < engine->active_count; ++i)
    {
        SKYC_Peer_t *peer = &engine->peers[engine->active[i]];
        uint32_t     way  = 0;

        while (way < engine->way_count &&
               (engine->ways[way].endpoint.ipv4 != peer->endpoint.ipv4 || engine->ways[way].endpoint.port != peer->endpoint.port))
        {
            ++way;
        }
        if (way == engine->way_count)
        {
            engine->ways[way].endpoint = peer->endpoint;
            ++engine->way_count;
        }
        peer->way = way;
    }
}

static uint64_t have_bytes(const SKYC_Engine_t *engine, const SKYC_Block_t *block)
{
    return block_rounds(engine, block) > 0 ? ((uint64_t)block->chunk_total + 7) / 8 : 0;
}

/* Memory for a call. @return false: there is none */
static bool engine_allocate(SKYC_Engine_t *engine, SKYC_Block_t *blocks, uint32_t count, uint64_t jobs, uint64_t places,
                            uint64_t have)
{
    engine->work   = calloc(count + 1u, sizeof(*engine->work)); /* + 1: a call without blocks is no special case */
    engine->jobs   = calloc(jobs + 1u, sizeof(*engine->jobs));
    engine->active = calloc(places + 1u, sizeof(*engine->active));
    engine->have   = calloc(have + 1u, 1);
    if (engine->work == NULL || engine->jobs == NULL || engine->active == NULL || engine->have == NULL)
    {
        return false;
    }
    uint64_t at = 0;

    for (uint32_t b = 0; b < count; ++b)
    {
        const uint64_t bytes = have_bytes(engine, &blocks[b]);

        engine->work[b].block = &blocks[b];
        engine->work[b].have  = bytes > 0 ? engine->have + at : NULL;
        at += bytes;
    }
    return true;
}

int SKYC_Engine_Prepare(SKYC_Engine_t *engine, SKYC_Block_t *blocks, uint32_t count)
{
    uint64_t jobs        = 0;
    uint64_t places      = 0;
    uint64_t chunks      = 0;
    uint64_t have        = 0;
    uint32_t chunk_bytes = 1;

    engine->started_us = SKYC_NowUs();
    for (uint32_t b = 0; b < count; ++b)
    {
        block_reset(&blocks[b]);
        if (!block_check(engine, &blocks[b]))
        {
            blocks[b].last_status = SKY_STATUS_BAD_CHUNK;
            return EINVAL;
        }
        for (uint32_t s = 0; s < blocks[b].server_count && s < blocks[b].chunk_total; ++s)
        {
            jobs += share_pieces(share_chunks(&blocks[b], s));
        }
        places += (uint64_t)blocks[b].server_count * (block_rounds(engine, &blocks[b]) + 1);
        chunks += blocks[b].chunk_total;
        have += have_bytes(engine, &blocks[b]);
        chunk_bytes = blocks[b].chunk_len > chunk_bytes ? blocks[b].chunk_len : chunk_bytes;
    }
    if (jobs >= SKYC_NO_JOB || places >= SKYC_NO_PEER)
    {
        return EINVAL;
    }
    if (!engine_allocate(engine, blocks, count, jobs, places, have))
    {
        return ENOMEM;
    }
    ++engine->call;
    engine->work_count   = count;
    engine->blocks_left  = count;
    engine->active_count = 0;
    engine->budget       = (uint32_t)BUFFER_CHUNKS(engine->counters.receive_buffer_bytes, chunk_bytes);
    engine->budget       = engine->budget > 0 ? engine->budget : 1;
    if (!jobs_make(engine))
    {
        return ENOMEM;
    }
    if (engine->active_count > SKYC_LANES_MAX / SKYC_LANES)
    {
        return EINVAL;
    }
    engine->ways = calloc(engine->active_count + 1u, sizeof(*engine->ways));
    if (engine->ways == NULL)
    {
        return ENOMEM;
    }
    ways_make(engine);
    if (engine->active_count * SKYC_LANES > engine->lane_room)
    {
        free(engine->lanes);
        engine->lane_room = engine->active_count * SKYC_LANES;
        engine->lanes     = calloc(engine->lane_room, sizeof(*engine->lanes));
        if (engine->lanes == NULL)
        {
            engine->lane_room = 0;
            return ENOMEM;
        }
    }
    __atomic_store_n(&engine->progress.chunks_done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->progress.chunks_total, chunks, __ATOMIC_RELAXED);
    return 0;
}
