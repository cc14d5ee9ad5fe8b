/**
 * @file
 * Pieces that run. Each satellite has a queue of pieces and a few lanes in which they run; a piece that did not come whole from one
 * place goes on at the next.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define LANES_FULL 4u /* of large shares */

static SKY_HostWork_t *WorkOf(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->piece < host->blocks.piece_count);
    SKY_ASSERT(host->blocks.pieces[lane->piece].work < host->blocks.work_count);
    return &host->blocks.works[host->blocks.pieces[lane->piece].work];
}

SKY_ShareCfg_t *SKY_HostLanes_Cfg(SKY_HostLane_t *lane)
{
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            return &lane->u.push.cfg;
        case SKY_HOST_GET:
            return &lane->u.fetch.cfg;
        default:
            return &lane->u.ask.cfg;
    }
}

static SKY_ShareState_t StateOf(const SKY_HostLane_t *lane)
{
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            return lane->u.push.state;
        case SKY_HOST_GET:
            return lane->u.fetch.state;
        default:
            return lane->u.ask.state;
    }
}

static SKY_Status_t StatusOf(const SKY_HostLane_t *lane)
{
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            return lane->u.push.last_status;
        case SKY_HOST_GET:
            return lane->u.fetch.last_status;
        default:
            return lane->u.ask.last_status;
    }
}

/* Chunks that have not come, respectively were not acknowledged. A purge has none. */
static uint32_t LeftOf(const SKY_HostLane_t *lane)
{
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            return lane->u.push.left;
        case SKY_HOST_GET:
            return lane->u.fetch.left + lane->u.fetch.denials;
        default:
            return 0;
    }
}

/* Is chunk number @p i of the piece here, respectively acknowledged? Not of a purge. */
static bool HasChunk(const SKY_HostLane_t *lane, uint32_t i)
{
    SKY_ASSERT(i < SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT || lane->kind == SKY_HOST_GET);
    return lane->kind == SKY_HOST_PUT
               ? !SKY_ChunkSet_Has(&lane->u.push.unacked, i)
               : !SKY_ChunkSet_Has(&lane->u.fetch.missing, i) && !SKY_ChunkSet_Has(&lane->u.fetch.denied, i);
}

static void Count(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const uint32_t left = LeftOf(lane);
    SKY_ASSERT(left <= lane->left_seen); /* it only goes down */
    SKY_ASSERT(lane->left_seen <= lane->left_begun);

    host->counters.chunks += lane->left_seen - left;
    lane->left_seen = left;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

static bool IsKept(const SKY_HostBlock_t *block, uint32_t chunk_id)
{
    SKY_ASSERT(chunk_id < block->chunk_total);
    return block->have != NULL && (block->have[chunk_id / 8u] & 1u << chunk_id % 8u) != 0u;
}

/* What has come is not asked for again at the next place. */
static void Keep(const SKY_HostLane_t *lane, uint8_t *have)
{
    SKY_ASSERT(lane->kind == SKY_HOST_GET);
    for (uint32_t i = 0; i < lane->u.fetch.cfg.count; ++i)
    {
        if (HasChunk(lane, i))
        {
            const uint32_t id = SKY_ChunkSet_ChunkId(&lane->u.fetch.missing, i);
            SKY_ASSERT(id < lane->u.fetch.cfg.chunk_total);

            have[id / 8u] = (uint8_t)(have[id / 8u] | 1u << id % 8u);
        }
    }
}

/* What the end of a share makes of its block. A satellite's word counts only if it is a status of the wire: it must not be able to
 * say what is for this host to say, as that a block is missed, which is then purged. */
static SKY_Status_t VerdictOf(SKY_ShareState_t state, SKY_Status_t said)
{
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    SKY_ASSERT(state != SKY_SHARE_DONE);
    switch (state)
    {
        case SKY_SHARE_MISS:
            return said == SKY_STATUS_BAD_KEY ? SKY_STATUS_BAD_KEY : SKY_STATUS_MISS;
        case SKY_SHARE_EXPIRED:
            return SKY_STATUS_EXPIRED;
        default: /* REFUSED */
            SKY_ASSERT(state == SKY_SHARE_REFUSED);
            SKY_ASSERT(said != SKY_STATUS_OK);
            return said != SKY_STATUS_EXPIRED && said < SKY_STATUS_COUNT ? said : SKY_STATUS_REFUSED;
    }
}

static void EndBlock(SKY_Host_t *host, uint32_t number, SKY_Status_t status)
{
    SKY_HostWork_t  *work  = &host->blocks.works[number];
    SKY_HostBlock_t *block = work->block;
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(host->running > 0u);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    SKY_ASSERT(status != SKY_STATUS_DONE || work->pieces_left == 0u);
    SKY_ASSERT(work->started_us <= host->now_us);

    block->status      = status;
    block->duration_us = host->now_us - work->started_us;
    block->ended_next  = host->ended;
    host->ended        = block;
    work->block        = NULL;
    --host->running;
    if (work->pieces_alive == 0u)
    {
        work->next      = host->work_free;
        host->work_free = number;
    }
    SKY_ASSERT(work->block == NULL);
    SKY_ASSERT(host->ended == block);
}

/* Bytes of the chunks that a lane has moved, without those that came before. */
static uint64_t BytesOf(SKY_HostLane_t *lane, const SKY_HostBlock_t *block, uint32_t chunks)
{
    const SKY_ShareCfg_t *cfg   = SKY_HostLanes_Cfg(lane);
    const SKY_ChunkSet_t *set   = lane->kind == SKY_HOST_PUT ? &lane->u.push.unacked : &lane->u.fetch.missing;
    const uint32_t        last  = SKY_ChunkSet_IndexOf(set, cfg->chunk_total - 1u);
    const uint64_t        bytes = (uint64_t)chunks * cfg->chunk_len;
    SKY_ASSERT(chunks <= cfg->count);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT || lane->kind == SKY_HOST_GET);

    if (last < cfg->count && HasChunk(lane, last) && !IsKept(block, cfg->chunk_total - 1u))
    {
        return bytes - ((uint64_t)cfg->chunk_total * cfg->chunk_len - cfg->block_len); /* the last chunk is shorter */
    }
    return bytes;
}

/* Add up what a lane has done for its block and its satellite. */
static void Account(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const bool        is_put  = lane->kind == SKY_HOST_PUT;
    const bool        is_get  = lane->kind == SKY_HOST_GET;
    SKY_HostBlock_t  *block   = WorkOf(host, lane)->block;
    SKY_HostServed_t *served  = &host->peers.peers[lane->peer].served;
    const uint32_t    chunks  = lane->left_begun - LeftOf(lane);
    const uint64_t    bytes   = is_put || is_get ? BytesOf(lane, block, chunks) : 0u;
    const uint32_t    repeats = is_put ? lane->u.push.repeats : is_get ? lane->u.fetch.repeats : 0u;
    const uint32_t    asked   = is_put ? lane->u.push.queries : is_get ? lane->u.fetch.requests : lane->u.ask.sent;
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(LeftOf(lane) <= lane->left_begun);
    SKY_ASSERT(lane->left_seen <= lane->left_begun);

    block->chunks += chunks;
    block->bytes += bytes;
    block->requests += asked;
    block->repeats += repeats;
    served->chunks += chunks;
    served->bytes += bytes;
    served->requests += asked;
    served->repeats += repeats;
    block->duplicates += is_get ? lane->u.fetch.duplicates : 0u;
    block->corrupt += is_get ? lane->u.fetch.corrupt : 0u;
    block->last_status = StatusOf(lane) != SKY_STATUS_OK ? StatusOf(lane) : block->last_status;
    SKY_ASSERT(block->chunks <= block->chunk_total);
}

static void CloseLane(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->place < SKY_HOST_LANES);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) != 0u);
    Account(host, lane);
    lane->request_id = 0;
    lane->next       = host->lane_free;
    host->lane_free  = (uint32_t)(lane - host->blocks.lanes);
    host->peers.peers[lane->peer].lanes_busy &= ~(1u << lane->place);
    SKY_ASSERT(host->lane_free < host->blocks.lane_count);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) == 0u);
}

static void StopLane(SKY_HostLane_t *lane, SKY_ShareState_t state)
{
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            SKY_Push_Stop(&lane->u.push, state);
            break;
        case SKY_HOST_GET:
            SKY_Fetch_Stop(&lane->u.fetch, state);
            break;
        default:
            lane->u.ask.state = lane->u.ask.state == SKY_SHARE_RUNNING ? state : lane->u.ask.state;
            break;
    }
}

void SKY_HostLanes_StopBlock(SKY_Host_t *host, uint32_t work, SKY_Status_t status)
{
    SKY_ASSERT(work < host->blocks.work_count);
    SKY_ASSERT(host->blocks.works[work].block != NULL);
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
        {
            SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];

            if ((peer->lanes_busy & 1u << place) != 0u && host->blocks.pieces[lane->piece].work == work)
            {
                StopLane(lane, SKY_SHARE_EXPIRED);
                CloseLane(host, lane);
                SKY_HostPieces_Free(host, lane->piece);
                peer->due_us = 0; /* others have room now */
            }
        }
    }
    EndBlock(host, work, status);
    SKY_ASSERT(host->blocks.works[work].block == NULL);
}

/* May another place have what did not come here? What a satellite says of the request itself holds at any place. */
static bool IsOfPlace(SKY_ShareState_t state, SKY_Status_t status)
{
    SKY_ASSERT(state != SKY_SHARE_DONE);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    return state != SKY_SHARE_REFUSED || status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_HOP_LIMIT;
}

static bool IsDenial(SKY_ShareState_t state, SKY_Status_t status)
{
    return state == SKY_SHARE_MISS && status != SKY_STATUS_BAD_KEY;
}

/* Let a piece go on at the next place of its server. @return false: there is none, or no time */
static bool Pass(SKY_Host_t *host, uint32_t number, SKY_ShareState_t state, SKY_Status_t status, SKY_Addr_t addr)
{
    SKY_HostPiece_t      *piece = &host->blocks.pieces[number];
    const SKY_HostWork_t *work  = &host->blocks.works[piece->work];
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);

    if ((state != SKY_SHARE_DONE && !IsOfPlace(state, status)) || host->now_us >= work->deadline_us)
    {
        return false;
    }
    const uint32_t round = SKY_HostPieces_NextRound(work->block, piece->server, piece->round);

    if (round == 0u)
    {
        return false;
    }
    if (piece->doubt.plane == 0u && state != SKY_SHARE_DONE && !IsDenial(state, status))
    {
        piece->doubt        = addr;
        piece->doubt_state  = (uint8_t)state;
        piece->doubt_status = (uint8_t)status;
    }
    piece->round = round;
    ++work->block->passes;
    return SKY_HostPieces_Queue(host, number);
}

static uint32_t DeniedChunk(const SKY_HostLane_t *lane)
{
    const SKY_Fetch_t *fetch = &lane->u.fetch;
    uint32_t           at    = SKY_ChunkSet_Next(&fetch->denied, 0);
    SKY_ASSERT(lane->kind == SKY_HOST_GET);

    at = at < fetch->denied.count ? at : SKY_ChunkSet_Next(&fetch->missing, 0);
    SKY_ASSERT(at < fetch->denied.count); /* else all would have come */
    return SKY_ChunkSet_ChunkId(&fetch->denied, at);
}

/* A piece ends its block: all that could be asked deny it, or were silent. */
static void Fail(SKY_Host_t *host, const SKY_HostLane_t *lane, SKY_ShareState_t state, SKY_Status_t status)
{
    const SKY_HostPiece_t piece   = host->blocks.pieces[lane->piece];
    SKY_HostBlock_t      *block   = host->blocks.works[piece.work].block;
    const SKY_Addr_t      addr    = host->peers.peers[lane->peer].peer.addr;
    const bool            doubted = (state == SKY_SHARE_DONE || IsDenial(state, status)) && piece.doubt.plane != 0u;
    const SKY_Addr_t      who     = doubted ? piece.doubt : addr;
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    SKY_ASSERT(lane->request_id == 0u); /* its lane is closed */

    /* If all deny it but one that was silent, or that has another block of the name, then that one's word counts. */
    block->failed_plane = who.plane;
    block->failed_slot  = who.slot;
    block->failed_chunk = lane->kind == SKY_HOST_GET ? DeniedChunk(lane) : 0u;
    if (doubted && piece.doubt_status != SKY_STATUS_OK)
    {
        block->last_status = piece.doubt_status;
    }
    SKY_HostPieces_Free(host, lane->piece);
    SKY_HostLanes_StopBlock(host, piece.work,
                            doubted ? VerdictOf((SKY_ShareState_t)piece.doubt_state, piece.doubt_status)
                                    : VerdictOf(state, status));
}

static void Finish(SKY_Host_t *host, uint32_t piece)
{
    const uint32_t  number = host->blocks.pieces[piece].work;
    SKY_HostWork_t *work   = &host->blocks.works[number];
    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(work->pieces_left > 0u);

    --work->pieces_left;
    SKY_HostPieces_Free(host, piece);
    if (work->pieces_left == 0u)
    {
        EndBlock(host, number, SKY_STATUS_DONE);
    }
    SKY_ASSERT(work->block == NULL || work->pieces_left > 0u);
}

bool SKY_HostLanes_Reap(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const SKY_ShareState_t state  = StateOf(lane);
    const SKY_Status_t     status = StatusOf(lane);
    const uint32_t         piece  = lane->piece;
    const SKY_Addr_t       addr   = host->peers.peers[lane->peer].peer.addr;
    SKY_HostBlock_t       *block  = WorkOf(host, lane)->block;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    if (state == SKY_SHARE_RUNNING)
    {
        return false;
    }
    host->peers.peers[lane->peer].due_us = 0;
    CloseLane(host, lane);
    const bool is_purged = lane->kind == SKY_HOST_PURGE && state == SKY_SHARE_DONE;

    if ((state != SKY_SHARE_DONE || is_purged) && Pass(host, piece, state, status, addr))
    {
        if (lane->kind == SKY_HOST_GET)
        {
            SKY_ASSERT(block->have != NULL); /* where there are fallbacks */
            Keep(lane, block->have);
        }
    }
    else if (state == SKY_SHARE_DONE && (!is_purged || host->blocks.pieces[piece].doubt.plane == 0u))
    {
        Finish(host, piece);
    }
    else
    {
        Fail(host, lane, state, status);
    }
    SKY_ASSERT(lane->request_id == 0u);
    return true;
}

void SKY_HostLanes_Refuse(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT);
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            lane->u.push.last_status = status;
            break;
        case SKY_HOST_GET:
            lane->u.fetch.last_status = status;
            break;
        default:
            lane->u.ask.last_status = status;
            break;
    }
    StopLane(lane, SKY_SHARE_REFUSED);
    (void)SKY_HostLanes_Reap(host, lane);
    SKY_ASSERT(lane->request_id == 0u);
}

/* ---- beginnings ------------------------------------------------------------------------------------------------------ */

/* How long a satellite may be silent before the next place is asked: the time that is left, in equal parts. 0: there is none. */
static uint64_t PatienceUs(const SKY_Host_t *host, const SKY_HostPiece_t *piece)
{
    const SKY_HostWork_t *work   = &host->blocks.works[piece->work];
    uint64_t              places = 1;
    SKY_ASSERT(host->now_us < work->deadline_us);

    for (uint32_t round = SKY_HostPieces_NextRound(work->block, piece->server, piece->round); round != 0u;
         round          = SKY_HostPieces_NextRound(work->block, piece->server, round))
    {
        ++places;
    }
    SKY_ASSERT(places <= SKY_HOST_ROUNDS + 1u);
    return places == 1u ? 0u : (work->deadline_us - host->now_us) / places + 1u;
}

static void BeginFetch(const SKY_Host_t *host, SKY_HostLane_t *lane, const SKY_ShareCfg_t *cfg, SKY_HostPeer_t *peer)
{
    const SKY_HostPiece_t *piece = &host->blocks.pieces[lane->piece];
    const SKY_HostBlock_t *block = WorkOf(host, lane)->block;
    SKY_Fetch_t           *fetch = &lane->u.fetch;

    (void)SKY_Fetch_Init(fetch, cfg, &peer->peer, block->data);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING); /* its numbers were checked */
    SKY_ASSERT(fetch->left == cfg->count);
    for (uint32_t i = 0; i < cfg->count && piece->round > 0u; ++i)
    {
        if (IsKept(block, SKY_ChunkSet_ChunkId(&fetch->missing, i)))
        {
            SKY_Fetch_Skip(fetch, i);
        }
    }
    if (lane->patience_us != 0u)
    {
        SKY_Fetch_Collect(fetch);
    }
}

static uint32_t FreePlace(const SKY_HostPeer_t *peer)
{
    uint32_t place = 0;

    while ((peer->lanes_busy & 1u << place) != 0u)
    {
        ++place;
    }
    SKY_ASSERT(place < SKY_HOST_LANES);
    return place;
}

/* There is a free lane, and a free place for it. */
static void BeginLane(SKY_Host_t *host, SKY_HostPeer_t *peer, uint32_t number)
{
    const uint32_t         index = host->lane_free;
    SKY_HostLane_t        *lane  = &host->blocks.lanes[index];
    const SKY_HostPiece_t *piece = &host->blocks.pieces[number];
    const SKY_HostWork_t  *work  = &host->blocks.works[piece->work];
    const SKY_HostBlock_t *block = work->block;
    SKY_ShareCfg_t         cfg;

    SKY_ASSERT(index < host->blocks.lane_count);
    SKY_ASSERT(lane->request_id == 0u); /* it was free */
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(piece->count >= 1u);
    SKY_ASSERT(piece->count <= SKY_LIMIT_CHUNK_SET);
    SKY_HostPieces_Share(host, block, piece->server + piece->from * block->server_count, piece->count, &cfg);
    cfg.deadline_us = work->deadline_us;
    cfg.gateway     = peer->entry;
    /* never 0: that means a free lane */
    cfg.request_id   = (uint64_t)(host->shell.Random(host->shell.context) | 1u) << 32 | (uint64_t)index << 16;
    host->lane_free  = lane->next;
    lane->request_id = cfg.request_id;
    lane->kind       = block->kind;
    lane->peer       = (uint32_t)(peer - host->peers.peers);
    lane->place      = FreePlace(peer);
    SKY_ASSERT((peer->lanes_busy & 1u << lane->place) == 0u);
    lane->piece       = number;
    lane->endpoint    = peer->endpoint;
    lane->asked_us    = 0;
    lane->patience_us = lane->kind == SKY_HOST_PUT ? 0u : PatienceUs(host, piece);
    /* The numbers were checked before the block began. */
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            (void)SKY_Push_Init(&lane->u.push, &cfg, &peer->peer, lane->asked_by);
            break;
        case SKY_HOST_GET:
            BeginFetch(host, lane, &cfg, peer);
            break;
        default:
            (void)memset(&lane->u.ask, 0, sizeof(lane->u.ask));
            lane->u.ask.cfg    = cfg;
            lane->u.ask.rto_us = SKY_HOST_ASK_INITIAL_US;
            break;
    }
    lane->left_begun         = LeftOf(lane);
    lane->left_seen          = lane->left_begun;
    peer->lanes[lane->place] = (uint16_t)index;
    peer->lanes_busy |= 1u << lane->place;
    peer->due_us = 0;
    SKY_ASSERT(lane->left_begun <= piece->count);
}

/* Has a satellite enough to do for now? A few shares fill the window, with one that begins as another ends. Small shares take more
 * of them, for each that waits for another one waits a round trip. */
static bool IsFull(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    uint32_t lanes  = 0;
    uint32_t chunks = 0;

    for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
    {
        if ((peer->lanes_busy & 1u << place) != 0u)
        {
            ++lanes;
            chunks += LeftOf(&host->blocks.lanes[peer->lanes[place]]);
        }
    }
    SKY_ASSERT(lanes <= SKY_HOST_LANES);
    return lanes >= LANES_FULL && chunks >= peer->peer.window;
}

/* End the block of a piece that waits for a satellite, if its deadline has passed. */
static void EndIfLate(SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t number)
{
    const SKY_HostWork_t *work = &host->blocks.works[number];
    SKY_ASSERT(number < host->blocks.work_count);
    SKY_ASSERT(work->pieces_alive > 0u); /* this one */

    if (work->block != NULL && host->now_us >= work->deadline_us)
    {
        work->block->failed_plane = peer->peer.addr.plane;
        work->block->failed_slot  = peer->peer.addr.slot;
        SKY_HostLanes_StopBlock(host, number, SKY_STATUS_EXPIRED);
    }
}

void SKY_HostLanes_EndLate(SKY_Host_t *host)
{
    uint32_t seen = 0;

    host->queue_deadline_us = UINT64_MAX;
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        for (uint32_t piece = peer->piece_first; piece != SKY_HOST_NONE; piece = host->blocks.pieces[piece].next)
        {
            const uint32_t        number = host->blocks.pieces[piece].work;
            const SKY_HostWork_t *work   = &host->blocks.works[number];

            ++seen;
            SKY_ASSERT(seen <= host->blocks.piece_count); /* each is in one queue, once */
            EndIfLate(host, peer, number);
            if (work->block != NULL && work->deadline_us < host->queue_deadline_us)
            {
                host->queue_deadline_us = work->deadline_us;
            }
        }
    }
    SKY_ASSERT(host->queue_deadline_us > host->now_us);
}

bool SKY_HostLanes_Begin(SKY_Host_t *host, SKY_HostPeer_t *peer)
{
    bool began = false;

    while (peer->piece_first != SKY_HOST_NONE && peer->lanes_busy != SKY_HOST_LANES_ALL && host->lane_free != SKY_HOST_NONE &&
           !IsFull(host, peer))
    {
        const uint32_t        number = peer->piece_first;
        const uint32_t        work   = host->blocks.pieces[number].work;
        const SKY_HostWork_t *one    = &host->blocks.works[work];
        SKY_ASSERT(number < host->blocks.piece_count);
        SKY_ASSERT(work < host->blocks.work_count);
        SKY_ASSERT(peer->active != SKY_HOST_NONE);

        peer->piece_first = host->blocks.pieces[number].next;
        EndIfLate(host, peer, work);
        if (one->block == NULL)
        {
            SKY_HostPieces_Free(host, number);
            continue;
        }
        began = true;
        if (!peer->silent || !Pass(host, number, SKY_SHARE_EXPIRED, SKY_STATUS_OK, peer->peer.addr))
        {
            BeginLane(host, peer, number);
        }
    }
    return began;
}

/* ---- what happens to them -------------------------------------------------------------------------------------------- */

/* When a lane's satellite has been silent for so long that the next place is asked. UINT64_MAX: there is none, or it was not asked */
static uint64_t SilentUs(const SKY_HostPeer_t *peer, const SKY_HostLane_t *lane)
{
    if (lane->patience_us == 0u)
    {
        return UINT64_MAX;
    }
    if (peer->silent)
    {
        return 0;
    }
    if (lane->asked_us == 0u)
    {
        return UINT64_MAX;
    }
    return (peer->heard_us > lane->asked_us ? peer->heard_us : lane->asked_us) + lane->patience_us;
}

static uint64_t AskOnTime(SKY_HostAsk_t *ask, uint64_t now_us)
{
    SKY_ASSERT(ask->state == SKY_SHARE_RUNNING); /* a lane that has ended is reaped at once */
    SKY_ASSERT(ask->rto_us >= 1u);
    SKY_ASSERT(ask->rto_us <= SKY_HOST_ASK_MAX_US);
    if (now_us >= ask->cfg.deadline_us)
    {
        ask->state = SKY_SHARE_EXPIRED;
        return UINT64_MAX;
    }
    return ask->due_us < ask->cfg.deadline_us ? ask->due_us : ask->cfg.deadline_us;
}

uint64_t SKY_HostLanes_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_HostPeer_t *peer      = &host->peers.peers[lane->peer];
    const uint64_t  silent_us = SilentUs(peer, lane);
    uint64_t        next_us;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            next_us = SKY_Push_OnTime(&lane->u.push, host->now_us);
            break;
        case SKY_HOST_GET:
            next_us = SKY_Fetch_OnTime(&lane->u.fetch, host->now_us);
            break;
        default:
            next_us = AskOnTime(&lane->u.ask, host->now_us);
            break;
    }
    if (host->now_us >= silent_us)
    {
        peer->silent = true;
        StopLane(lane, SKY_SHARE_EXPIRED);
    }
    return next_us < silent_us ? next_us : silent_us;
}

static void AskOnPacket(SKY_HostAsk_t *ask, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(ask->state == SKY_SHARE_RUNNING);
    if (!SKY_ShareCfg_Owns(&ask->cfg, pkt))
    {
        return;
    }
    if (pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND)
    {
        ask->state = SKY_SHARE_DONE;
        return;
    }
    ask->last_status = pkt->status;
    ask->state       = SKY_ShareState_OfError(pkt->status);
}

void SKY_HostLanes_OnPacket(SKY_Host_t *host, SKY_HostLane_t *lane, const SKY_Packet_t *pkt)
{
    SKY_HostPeer_t *peer = &host->peers.peers[lane->peer];
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(peer->active != SKY_HOST_NONE);

    peer->heard_us        = host->now_us;
    peer->served.first_us = peer->served.first_us == 0u ? host->now_us : peer->served.first_us;
    peer->silent          = false;
    peer->due_us          = 0;
    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            SKY_Push_OnPacket(&lane->u.push, host->now_us, pkt);
            break;
        case SKY_HOST_GET:
            SKY_Fetch_OnPacket(&lane->u.fetch, host->now_us, pkt);
            break;
        default:
            AskOnPacket(&lane->u.ask, pkt);
            break;
    }
    Count(host, lane);
}

static bool NextAsk(SKY_HostAsk_t *ask, const SKY_Peer_t *peer, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_ASSERT(ask->state == SKY_SHARE_RUNNING);
    if (now_us < ask->due_us || now_us >= ask->cfg.deadline_us)
    {
        return false;
    }
    ++ask->sent;
    SKY_ShareCfg_Request(&ask->cfg, peer, now_us, SKY_OP_PURGE, (uint16_t)ask->sent, pkt);
    pkt->chunk_len = 0;
    ask->due_us    = now_us + ask->rto_us;
    ask->rto_us    = ask->rto_us < SKY_HOST_ASK_MAX_US / 2u ? ask->rto_us * 2u : SKY_HOST_ASK_MAX_US;
    SKY_ASSERT(ask->due_us > now_us);
    SKY_ASSERT(ask->rto_us <= SKY_HOST_ASK_MAX_US);
    return true;
}

SKY_PushAction_t SKY_HostLanes_Next(SKY_Host_t *host, SKY_HostLane_t *lane, uint32_t room, SKY_Packet_t *pkt, uint8_t *payload)
{
    bool is_due;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->peer < host->peer_used);

    switch (lane->kind)
    {
        case SKY_HOST_PUT:
            return SKY_Push_Next(&lane->u.push, host->now_us, room, pkt, payload);
        case SKY_HOST_GET:
            is_due = SKY_Fetch_Next(&lane->u.fetch, host->now_us, room, pkt, payload);
            break;
        default:
            is_due = NextAsk(&lane->u.ask, &host->peers.peers[lane->peer].peer, host->now_us, pkt);
            break;
    }
    return is_due ? SKY_PUSH_QUERY : SKY_PUSH_NOTHING;
}
