/**
 * @file
 * Lanes: begin of pieces, and consequences of their end. A piece that did not come whole from one place goes on at the next. With
 * its last piece a block is done; with one that fails it ends.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define LANES_FULL 4u /* lanes of a satellite with large shares */

static SKY_HostWork_t *WorkOf(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->piece < host->blocks.piece_count);
    SKY_ASSERT(host->blocks.pieces[lane->piece].work < host->blocks.work_count);
    return &host->blocks.works[host->blocks.pieces[lane->piece].work];
}

static void Count(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const uint32_t left = SKY_HostExchange_Left(lane);
    SKY_ASSERT(left <= lane->left_seen); /* the chunks left only become fewer */
    SKY_ASSERT(lane->left_seen <= lane->left_begun);

    host->counters.chunks += lane->left_seen - left;
    lane->left_seen = left;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

/* Return what a share ended with. A satellite's word counts only if it is a status of the wire: it must not say what only this host may
 * say, such as a miss, after which the block is purged. */
static SKY_Status_t WordOf(const SKY_HostLane_t *lane)
{
    const SKY_Status_t said = SKY_HostExchange_Status(lane);

    SKY_ASSERT(lane->request_id != 0u);
    return said != SKY_STATUS_EXPIRED && said < SKY_STATUS_COUNT ? said : SKY_STATUS_REFUSED;
}

/* Translate the end of a share into a result of its block. */
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
        default: /* SKY_SHARE_REFUSED */
            SKY_ASSERT(state == SKY_SHARE_REFUSED);
            SKY_ASSERT(said != SKY_STATUS_OK);
            return said;
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

static void CloseLane(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->place < SKY_HOST_LANES);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) != 0u);
    SKY_HostExchange_Account(lane, WorkOf(host, lane)->block, &host->peers.peers[lane->peer].served);
    lane->request_id = 0;
    lane->next       = host->lane_free;
    host->lane_free  = (uint32_t)(lane - host->blocks.lanes);
    host->peers.peers[lane->peer].lanes_busy &= ~(1u << lane->place);
    SKY_ASSERT(host->lane_free < host->blocks.lane_count);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) == 0u);
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
                SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
                CloseLane(host, lane);
                SKY_HostPieces_Free(host, lane->piece);
                peer->due_us = 0; /* other satellites have room now */
            }
        }
    }
    EndBlock(host, work, status);
    SKY_ASSERT(host->blocks.works[work].block == NULL);
}

/* Return true if another place may have what did not come here. A satellite's word about the request itself holds at any
 * place. */
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

/* Move a piece to the next place of its server. @return false if there is none, or no time */
static bool Pass(SKY_Host_t *host, uint32_t number, SKY_ShareState_t state, SKY_Status_t status, SKY_Addr_t addr)
{
    SKY_HostPiece_t      *piece = &host->blocks.pieces[number];
    const SKY_HostWork_t *work  = &host->blocks.works[piece->work];
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);

    if (!IsOfPlace(state, status) || host->now_us >= work->deadline_us)
    {
        return false;
    }
    const uint32_t round = SKY_HostPieces_NextRound(work->block, piece->server, piece->round);

    if (round == 0u)
    {
        return false;
    }
    if (piece->doubt.plane == 0u && !IsDenial(state, status))
    {
        piece->doubt        = addr;
        piece->doubt_state  = (uint8_t)state;
        piece->doubt_status = (uint8_t)status;
    }
    piece->round = round;
    ++work->block->passes;
    return SKY_HostPieces_Queue(host, number);
}

/* End the block of a piece, because all places that could be asked deny it or were silent. */
static void Fail(SKY_Host_t *host, const SKY_HostLane_t *lane, SKY_ShareState_t state, SKY_Status_t status)
{
    const SKY_HostPiece_t piece   = host->blocks.pieces[lane->piece];
    SKY_HostBlock_t      *block   = host->blocks.works[piece.work].block;
    const SKY_Addr_t      addr    = host->peers.peers[lane->peer].peer.addr;
    const bool            doubted = IsDenial(state, status) && piece.doubt.plane != 0u;
    const SKY_Addr_t      who     = doubted ? piece.doubt : addr;
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    SKY_ASSERT(lane->request_id == 0u); /* the piece's lane is closed */

    /* If all places deny the piece but one that was silent, or that has another block of the name, then that one's word
     * counts. */
    block->failed_plane = who.plane;
    block->failed_slot  = who.slot;
    block->failed_chunk = SKY_HostExchange_DeniedChunk(lane);
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

/* Close a lane whose share has ended, and act on that. @param status  what it ended with */
static void End(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status)
{
    const SKY_ShareState_t state = SKY_HostExchange_State(lane);
    const uint32_t         piece = lane->piece;
    const SKY_Addr_t       addr  = host->peers.peers[lane->peer].peer.addr;
    SKY_HostBlock_t       *block = WorkOf(host, lane)->block;
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    host->peers.peers[lane->peer].due_us = 0;
    CloseLane(host, lane);
    if (state == SKY_SHARE_DONE)
    {
        Finish(host, piece);
    }
    else if (Pass(host, piece, state, status, addr))
    {
        SKY_HostExchange_Keep(lane, block);
    }
    else
    {
        Fail(host, lane, state, status);
    }
    SKY_ASSERT(lane->request_id == 0u);
}

bool SKY_HostLanes_Reap(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    if (SKY_HostExchange_State(lane) == SKY_SHARE_RUNNING)
    {
        return false;
    }
    End(host, lane, WordOf(lane));
    SKY_ASSERT(lane->request_id == 0u);
    return true;
}

void SKY_HostLanes_Refuse(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_HostExchange_Refuse(lane, status);
    End(host, lane, status); /* it is this host's own word, and may be one that no satellite has */
    SKY_ASSERT(lane->request_id == 0u);
}

/* ---- beginnings ------------------------------------------------------------------------------------------------------ */

/* Return the silence after which the next place is asked: an equal part of the time that is left. 0 means that there is no next
 * place. */
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

static uint32_t FreePlace(const SKY_HostPeer_t *peer)
{
    uint32_t place = 0;
    SKY_ASSERT(peer->lanes_busy != SKY_HOST_LANES_ALL);

    while ((peer->lanes_busy & 1u << place) != 0u)
    {
        ++place;
    }
    SKY_ASSERT(place < SKY_HOST_LANES);
    return place;
}

/* Begin a piece. There is a free lane, and a free place for it. */
static void BeginLane(SKY_Host_t *host, SKY_HostPeer_t *peer, uint32_t number)
{
    const uint32_t         index = host->lane_free;
    SKY_HostLane_t        *lane  = &host->blocks.lanes[index];
    const SKY_HostPiece_t *piece = &host->blocks.pieces[number];
    const SKY_HostWork_t  *work  = &host->blocks.works[piece->work];
    const SKY_HostBlock_t *block = work->block;
    SKY_ShareCfg_t         cfg;

    SKY_ASSERT(index < host->blocks.lane_count);
    SKY_ASSERT(lane->request_id == 0u); /* the lane was free */
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(piece->count >= 1u);
    SKY_ASSERT(piece->count <= SKY_LIMIT_CHUNK_SET);
    SKY_HostPieces_Share(host, block, piece->server + piece->from * block->server_count, piece->count, &cfg);
    cfg.deadline_us = work->deadline_us;
    cfg.gateway     = peer->entry;
    /* The id is never 0, which means a free lane. */
    cfg.request_id   = (uint64_t)(SKY_HostRandom_Number(host) | 1u) << 32 | index * SKY_REQUEST_IDS;
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
    SKY_HostExchange_Begin(lane, &cfg, &peer->peer, block, piece->round);
    lane->left_begun         = SKY_HostExchange_Left(lane);
    lane->left_seen          = lane->left_begun;
    peer->lanes[lane->place] = (uint16_t)index;
    peer->lanes_busy |= 1u << lane->place;
    peer->due_us = 0;
    SKY_ASSERT(lane->left_begun <= piece->count);
}

/* Return true if a satellite has enough to do for now. A few shares fill the window, with one that begins as another ends. Small
 * shares take more of them, because each that waits for another one waits a round trip. */
static bool IsFull(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    uint32_t lanes  = 0;
    uint32_t chunks = 0;
    SKY_ASSERT(peer->active != SKY_HOST_NONE);

    for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
    {
        if ((peer->lanes_busy & 1u << place) != 0u)
        {
            ++lanes;
            chunks += SKY_HostExchange_Left(&host->blocks.lanes[peer->lanes[place]]);
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
    SKY_ASSERT(work->pieces_alive > 0u); /* this piece is alive */

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
            SKY_ASSERT(seen <= host->blocks.piece_count); /* each piece is in one queue, once */
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

/* Return the time at which a lane's satellite has been silent for so long that the next place is asked. UINT64_MAX means that
 * there is no next place, or that the satellite was not asked. */
static uint64_t SilentUs(const SKY_HostPeer_t *peer, const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(peer->active != SKY_HOST_NONE);
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

uint64_t SKY_HostLanes_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_HostPeer_t *peer      = &host->peers.peers[lane->peer];
    const uint64_t  silent_us = SilentUs(peer, lane);
    const uint64_t  next_us   = SKY_HostExchange_OnTime(lane, host->now_us);
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    if (host->now_us >= silent_us)
    {
        peer->silent = true;
        SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
    }
    return next_us < silent_us ? next_us : silent_us;
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
    SKY_HostExchange_OnPacket(lane, host->now_us, pkt);
    Count(host, lane);
}
