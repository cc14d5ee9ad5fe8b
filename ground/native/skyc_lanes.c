/**
 * @file
 * Pieces that run. Each satellite has a queue of jobs and a few lanes in which they run; a piece that did not come whole from one
 * place goes on at the next.
 */
#define _GNU_SOURCE
#include "skyc_transfer.h"

#include <sys/random.h>

#define LANES_ALL  ((1u << SKYC_LANES) - 1u)
#define LANES_FULL 4u /* of large shares */

static void progress_add(SKYC_Engine_t *engine, uint32_t chunks)
{
    (void)__atomic_fetch_add(&engine->progress.chunks_done, chunks, __ATOMIC_RELAXED);
}

static SKYC_Peer_t *peer_of(const SKYC_Engine_t *engine, uint32_t index)
{
    return &engine->peers[engine->active[index / SKYC_LANES]];
}

static SKY_ShareState_t lane_state(const SKYC_Engine_t *engine, const SKYC_Lane_t *lane)
{
    return engine->is_put ? lane->u.push.state : lane->u.fetch.state;
}

static uint8_t lane_status(const SKYC_Engine_t *engine, const SKYC_Lane_t *lane)
{
    return engine->is_put ? lane->u.push.last_status : lane->u.fetch.last_status;
}

static uint32_t lane_left(const SKYC_Engine_t *engine, const SKYC_Lane_t *lane)
{
    return engine->is_put ? lane->u.push.left : lane->u.fetch.left + lane->u.fetch.denials;
}

/* Is chunk number @p i of the piece here, respectively acknowledged? */
static bool lane_has(const SKYC_Engine_t *engine, const SKYC_Lane_t *lane, uint32_t i)
{
    return engine->is_put ? !SKY_ChunkSet_Has(&lane->u.push.unacked, i)
                          : !SKY_ChunkSet_Has(&lane->u.fetch.missing, i) && !SKY_ChunkSet_Has(&lane->u.fetch.denied, i);
}

static void lane_progress(SKYC_Engine_t *engine, SKYC_Lane_t *lane)
{
    const uint32_t left = lane_left(engine, lane);

    if (left != lane->left_seen)
    {
        progress_add(engine, lane->left_seen - left);
        lane->left_seen = left;
    }
}

/* ---- ends ---------------------------------------------------------------------------------------------------------- */

static bool work_has(const SKYC_Work_t *work, uint32_t chunk_id)
{
    return work->have != NULL && (work->have[chunk_id / 8] & 1u << chunk_id % 8) != 0;
}

/* What has come is not asked for again at the next place. */
static void lane_keep(const SKYC_Engine_t *engine, const SKYC_Lane_t *lane)
{
    const SKYC_Work_t *work = &engine->work[engine->jobs[lane->job].block];

    for (uint32_t i = 0; i < lane->u.fetch.cfg.count; ++i)
    {
        if (lane_has(engine, lane, i))
        {
            const uint32_t id = SKY_ChunkSet_ChunkId(&lane->u.fetch.missing, i);

            work->have[id / 8] = (uint8_t)(work->have[id / 8] | 1u << id % 8);
        }
    }
}

/* What the end of a share makes of its block. A satellite's word counts only if it is a status of the wire: it must not be able to say
 * what is for this host to say, as that a block is missed, which is then purged. */
static SKY_Status_t status_of(SKY_ShareState_t state, SKY_Status_t said)
{
    switch (state)
    {
        case SKY_SHARE_RUNNING:
            return SKY_STATUS_RUNNING;
        case SKY_SHARE_DONE:
            return SKY_STATUS_DONE;
        case SKY_SHARE_MISS:
            return said == SKY_STATUS_BAD_KEY ? SKY_STATUS_BAD_KEY : SKY_STATUS_MISS;
        case SKY_SHARE_EXPIRED:
            return SKY_STATUS_EXPIRED;
        case SKY_SHARE_REFUSED:
            break;
    }
    return said != SKY_STATUS_OK && said != SKY_STATUS_EXPIRED && said < SKY_STATUS_COUNT ? said : SKY_STATUS_REFUSED;
}

static void block_end(SKYC_Engine_t *engine, SKYC_Block_t *block, SKY_Status_t status)
{
    block->status      = status;
    block->duration_us = engine->now_us - engine->started_us;
    --engine->blocks_left;
}

/* Add up what a lane has done, and free it. */
static void lane_close(SKYC_Engine_t *engine, uint32_t index)
{
    SKYC_Lane_t          *lane    = &engine->lanes[index];
    const bool            is_put  = engine->is_put;
    const SKY_ShareCfg_t *cfg     = is_put ? &lane->u.push.cfg : &lane->u.fetch.cfg;
    const SKY_ChunkSet_t *missing = is_put ? &lane->u.push.unacked : &lane->u.fetch.missing;
    const uint8_t         status  = lane_status(engine, lane);
    const SKYC_Work_t    *work    = &engine->work[engine->jobs[lane->job].block];
    SKYC_Block_t         *block   = work->block;
    const uint32_t        chunks  = lane->left_begun - lane_left(engine, lane);
    const uint32_t        last    = SKY_ChunkSet_IndexOf(missing, cfg->chunk_total - 1);
    const uint32_t        repeats = is_put ? lane->u.push.repeats : lane->u.fetch.repeats;
    SKYC_Peer_t          *peer    = peer_of(engine, index);
    const uint32_t        asked   = is_put ? lane->u.push.queries : lane->u.fetch.requests;
    uint64_t              bytes   = (uint64_t)chunks * cfg->chunk_len;

    if (last < cfg->count && lane_has(engine, lane, last) && !work_has(work, cfg->chunk_total - 1))
    {
        bytes -= (uint64_t)cfg->chunk_total * cfg->chunk_len - cfg->block_len; /* the last chunk is shorter */
    }
    block->chunks += chunks;
    block->bytes += bytes;
    block->requests += asked;
    block->repeats += repeats;
    peer->served.chunks += chunks;
    peer->served.bytes += bytes;
    peer->served.requests += asked;
    peer->served.repeats += repeats;
    block->duplicates += is_put ? 0 : lane->u.fetch.duplicates;
    block->corrupt += is_put ? 0 : lane->u.fetch.corrupt;
    block->last_status = status != SKY_STATUS_OK ? status : block->last_status;
    lane->request_id   = 0;
    peer->lanes_busy &= ~(1u << (index % SKYC_LANES));
}

void SKYC_Block_Stop(SKYC_Engine_t *engine, uint32_t work, SKY_Status_t status)
{
    for (uint32_t i = 0; i < engine->active_count * SKYC_LANES; ++i)
    {
        SKYC_Lane_t *lane = &engine->lanes[i];

        if (lane->request_id != 0 && engine->jobs[lane->job].block == work)
        {
            if (engine->is_put)
            {
                SKY_Push_Stop(&lane->u.push, SKY_SHARE_EXPIRED);
            }
            else
            {
                SKY_Fetch_Stop(&lane->u.fetch, SKY_SHARE_EXPIRED);
            }
            lane_close(engine, i);
        }
    }
    block_end(engine, engine->work[work].block, status);
}

/* May another place have what did not come here? What a satellite says of the request itself holds at any place. */
static bool is_of_place(SKY_ShareState_t state, uint8_t status)
{
    return state == SKY_SHARE_MISS || state == SKY_SHARE_EXPIRED ||
           (state == SKY_SHARE_REFUSED && (status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_HOP_LIMIT));
}

static bool is_denial(SKY_ShareState_t state, uint8_t status)
{
    return state == SKY_SHARE_MISS && status != SKY_STATUS_BAD_KEY;
}

/* Let a job go on at the next place of its server. @return false: there is none, or no time */
static bool job_pass(SKYC_Engine_t *engine, uint32_t number, SKY_ShareState_t state, uint8_t status, SKY_Addr_t addr)
{
    SKYC_Job_t         *job   = &engine->jobs[number];
    const SKYC_Block_t *block = engine->work[job->block].block;
    const uint32_t      round = SKYC_Engine_NextRound(engine, block, job->server, job->round);

    if (round == 0 || !is_of_place(state, status) || engine->now_us >= SKYC_Engine_DeadlineUs(engine, block))
    {
        return false;
    }
    if (job->doubt.plane == 0 && !is_denial(state, status))
    {
        job->doubt        = addr;
        job->doubt_state  = (uint8_t)state;
        job->doubt_status = status;
    }
    job->round = round;
    SKYC_Engine_Queue(engine, number);
    return true;
}

bool SKYC_Lane_Reap(SKYC_Engine_t *engine, uint32_t index)
{
    SKYC_Lane_t           *lane   = &engine->lanes[index];
    const SKY_ShareState_t state  = lane_state(engine, lane);
    const uint8_t          status = lane_status(engine, lane);
    const SKY_Addr_t       addr   = peer_of(engine, index)->peer.addr;
    const SKYC_Job_t      *job    = &engine->jobs[lane->job];
    SKYC_Work_t           *work   = &engine->work[job->block];

    if (state == SKY_SHARE_RUNNING)
    {
        return false;
    }
    lane_close(engine, index);
    if (state == SKY_SHARE_DONE)
    {
        if (--work->jobs_left == 0)
        {
            block_end(engine, work->block, SKY_STATUS_DONE);
        }
        return true;
    }
    if (job_pass(engine, lane->job, state, status, addr))
    {
        lane_keep(engine, lane);
        return true;
    }
    /* If all deny it but one that was silent, or that has another block of the name, then that one's word counts. */
    const bool doubted = is_denial(state, status) && job->doubt.plane != 0;

    work->block->failed_plane = doubted ? job->doubt.plane : addr.plane;
    work->block->failed_slot  = doubted ? job->doubt.slot : addr.slot;
    if (doubted && job->doubt_status != SKY_STATUS_OK)
    {
        work->block->last_status = job->doubt_status;
    }
    SKYC_Block_Stop(engine, job->block,
                    doubted ? status_of((SKY_ShareState_t)job->doubt_state, job->doubt_status) : status_of(state, status));
    return true;
}

/* ---- beginnings ---------------------------------------------------------------------------------------------------- */

uint32_t SKYC_RandomWord(SKYC_Engine_t *engine)
{
    uint32_t word = 0;

    ++engine->lanes_begun;
    if (getrandom(&word, sizeof(word), 0) != (ssize_t)sizeof(word))
    {
        word = (uint32_t)engine->lanes_begun;
    }
    return word;
}

/* How long a satellite may be silent before the next place is asked: the time that is left, in equal parts. 0: there is none. */
static uint64_t job_patience_us(const SKYC_Engine_t *engine, const SKYC_Job_t *job)
{
    const SKYC_Block_t *block  = engine->work[job->block].block;
    uint64_t            places = 1;

    for (uint32_t r = SKYC_Engine_NextRound(engine, block, job->server, job->round); r != 0;
         r          = SKYC_Engine_NextRound(engine, block, job->server, r))
    {
        ++places;
    }
    return places == 1 ? 0 : (SKYC_Engine_DeadlineUs(engine, block) - engine->now_us) / places + 1;
}

static void fetch_begin(const SKYC_Engine_t *engine, SKYC_Lane_t *lane, const SKY_ShareCfg_t *cfg, SKYC_Peer_t *peer)
{
    const SKYC_Job_t  *job   = &engine->jobs[lane->job];
    const SKYC_Work_t *work  = &engine->work[job->block];
    SKY_Fetch_t       *fetch = &lane->u.fetch;

    (void)SKY_Fetch_Init(fetch, cfg, &peer->peer, work->block->data);
    for (uint32_t i = 0; i < cfg->count && job->round > 0; ++i)
    {
        if (work_has(work, SKY_ChunkSet_ChunkId(&fetch->missing, i)))
        {
            SKY_Fetch_Skip(fetch, i);
        }
    }
    lane->patience_us = job_patience_us(engine, job);
    if (lane->patience_us != 0)
    {
        SKY_Fetch_Collect(fetch);
    }
}

static void lane_begin(SKYC_Engine_t *engine, uint32_t index, SKYC_Peer_t *peer, uint32_t number)
{
    SKYC_Lane_t        *lane  = &engine->lanes[index];
    const SKYC_Job_t   *job   = &engine->jobs[number];
    const SKYC_Block_t *block = engine->work[job->block].block;
    SKY_ShareCfg_t      cfg;

    SKYC_Engine_Share(engine, block, job->server + job->from * block->server_count, job->count, &cfg);
    cfg.gateway    = peer->entry;
    cfg.request_id = (uint64_t)(SKYC_RandomWord(engine) | 1u) << 32 | (uint64_t)index << 16; /* never 0: that means a free lane */
    lane->request_id  = cfg.request_id;
    lane->job         = number;
    lane->asked_us    = 0;
    lane->patience_us = 0;
    /* The numbers were checked before the call began: block_check. */
    if (engine->is_put)
    {
        (void)SKY_Push_Init(&lane->u.push, &cfg, &peer->peer, lane->asked_by);
    }
    else
    {
        fetch_begin(engine, lane, &cfg, peer);
    }
    lane->left_begun = lane_left(engine, lane);
    lane->left_seen  = lane->left_begun;
    peer->lanes_busy |= 1u << (index % SKYC_LANES);
}

/* Has a satellite enough to do for now? A few shares fill the window, with one that begins as another ends. Small shares take more
 * of them, for each that waits for another one waits a round trip. */
static bool lanes_fill(const SKYC_Engine_t *engine, uint32_t at, const SKYC_Peer_t *peer)
{
    uint32_t lanes  = 0;
    uint32_t chunks = 0;

    for (uint32_t i = 0; i < SKYC_LANES; ++i)
    {
        if ((peer->lanes_busy & 1u << i) != 0)
        {
            ++lanes;
            chunks += lane_left(engine, &engine->lanes[at * SKYC_LANES + i]);
        }
    }
    return lanes >= LANES_FULL && chunks >= peer->peer.window;
}

bool SKYC_Lanes_Begin(SKYC_Engine_t *engine, uint32_t at)
{
    SKYC_Peer_t *peer  = &engine->peers[engine->active[at]];
    bool         began = false;

    while (peer->job_first != SKYC_NO_JOB && peer->lanes_busy != LANES_ALL && !lanes_fill(engine, at, peer))
    {
        const uint32_t    number = peer->job_first;
        const SKYC_Job_t *job    = &engine->jobs[number];
        SKYC_Block_t     *block  = engine->work[job->block].block;

        peer->job_first = job->next;
        if (block->status == SKY_STATUS_RUNNING && engine->now_us >= SKYC_Engine_DeadlineUs(engine, block))
        {
            block->failed_plane = peer->peer.addr.plane;
            block->failed_slot  = peer->peer.addr.slot;
            SKYC_Block_Stop(engine, job->block, SKY_STATUS_EXPIRED);
        }
        if (block->status != SKY_STATUS_RUNNING)
        {
            continue;
        }
        began = true;
        if (peer->silent && job_pass(engine, number, SKY_SHARE_EXPIRED, SKY_STATUS_OK, peer->peer.addr))
        {
            continue;
        }
        uint32_t lane = 0;

        while ((peer->lanes_busy & (1u << lane)) != 0)
        {
            ++lane;
        }
        lane_begin(engine, at * SKYC_LANES + lane, peer, number);
    }
    return began;
}

/* ---- what happens to them ------------------------------------------------------------------------------------------- */

/* When a lane's satellite has been silent for so long that the next place is asked. UINT64_MAX: there is none, or it was not asked */
static uint64_t lane_silent_us(const SKYC_Peer_t *peer, const SKYC_Lane_t *lane)
{
    if (lane->patience_us == 0)
    {
        return UINT64_MAX;
    }
    if (peer->silent)
    {
        return 0;
    }
    if (lane->asked_us == 0)
    {
        return UINT64_MAX;
    }
    return (peer->heard_us > lane->asked_us ? peer->heard_us : lane->asked_us) + lane->patience_us;
}

uint64_t SKYC_Lane_OnTime(SKYC_Engine_t *engine, uint32_t index)
{
    SKYC_Lane_t *lane = &engine->lanes[index];
    SKYC_Peer_t *peer = peer_of(engine, index);

    if (engine->is_put)
    {
        return SKY_Push_OnTime(&lane->u.push, engine->now_us);
    }
    const uint64_t silent_us = lane_silent_us(peer, lane);
    const uint64_t next_us   = SKY_Fetch_OnTime(&lane->u.fetch, engine->now_us);

    if (engine->now_us >= silent_us)
    {
        peer->silent = true;
        SKY_Fetch_Stop(&lane->u.fetch, SKY_SHARE_EXPIRED);
    }
    return next_us < silent_us ? next_us : silent_us;
}

void SKYC_Lane_OnPacket(SKYC_Engine_t *engine, uint32_t index, const SKY_Packet_t *pkt)
{
    SKYC_Lane_t *lane = &engine->lanes[index];
    SKYC_Peer_t *peer = peer_of(engine, index);

    peer->heard_us        = engine->now_us;
    peer->served.first_us = peer->served.first_us == 0 ? engine->now_us : peer->served.first_us;
    peer->silent          = false;
    if (engine->is_put)
    {
        SKY_Push_OnPacket(&lane->u.push, engine->now_us, pkt);
    }
    else
    {
        SKY_Fetch_OnPacket(&lane->u.fetch, engine->now_us, pkt);
    }
    lane_progress(engine, lane);
}
