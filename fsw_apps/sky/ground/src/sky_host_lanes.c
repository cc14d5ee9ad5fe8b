/**
 * @file
 * Lanes: begin of pieces, and what happens to them until they end.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define LANES_FULL    4u  /* lanes of a satellite with large shares */
#define LANES_SMALL   2u  /* lanes of a satellite that only small blocks take */
#define HEDGE_PERCENT 95u /* of the answers come earlier than two thirds of the time after which parity is asked for */

static void Count(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const uint32_t left = SKY_HostExchange_Left(lane);
    SKY_ASSERT(left <= lane->left_seen); /* the chunks left only become fewer */
    SKY_ASSERT(lane->left_seen <= lane->left_begun);

    host->counters.chunks += lane->left_seen - left;
    SKY_HostPieces_WorkOf(host, lane)->block->moved += lane->left_seen - left;
    lane->left_seen = left;
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

/* Take a free lane: there is one. @return its number */
static uint32_t TakeLane(SKY_Host_t *host)
{
    const bool     is_new = host->lane_free == SKY_HOST_NONE;
    const uint32_t index  = is_new ? host->lane_used : host->lane_free;

    SKY_ASSERT(host->lane_free_count > 0u);
    SKY_ASSERT(index < host->blocks.lane_count);
    host->lane_free = is_new ? SKY_HOST_NONE : host->blocks.lanes[index].next;
    host->lane_used += is_new ? 1u : 0u;
    --host->lane_free_count;
    return index;
}

/* Begin a piece. There is a free lane, and a free place for it. */
static void BeginLane(SKY_Host_t *host, SKY_HostPeer_t *peer, uint32_t number)
{
    const uint32_t         index = TakeLane(host);
    SKY_HostLane_t        *lane  = &host->blocks.lanes[index];
    SKY_HostPiece_t       *piece = &host->blocks.pieces[number];
    SKY_HostWork_t        *work  = &host->blocks.works[piece->work];
    const SKY_HostBlock_t *block = work->block;
    const SKY_HostPlace_t *place = SKY_HostPieces_Place(block, piece->server, piece->round);
    SKY_ShareCfg_t         cfg;

    SKY_ASSERT(block != NULL);
    SKY_ASSERT(piece->count >= 1u);
    SKY_ASSERT(piece->count <= SKY_LIMIT_CHUNK_SET);
    SKY_HostPieces_Share(host, block, piece->server + piece->from * block->server_count, piece->count, &cfg);
    cfg.deadline_us = work->deadline_us;
    cfg.gateway     = peer->entry;
    cfg.home        = (SKY_Addr_t){place->home_plane, place->home_slot};
    /* The id is never 0, which means a free lane. */
    cfg.request_id   = (uint64_t)(SKY_HostRandom_Number(host) | 1u) << 32 | index * SKY_REQUEST_IDS;
    lane->request_id = cfg.request_id;
    lane->kind       = block->kind;
    lane->is_small   = work->is_small;
    lane->peer       = (uint32_t)(peer - host->peers.peers);
    lane->place      = FreePlace(peer);
    SKY_ASSERT((peer->lanes_busy & 1u << lane->place) == 0u);
    lane->piece       = number;
    lane->endpoint    = peer->endpoint;
    lane->begun_us    = host->now_us;
    lane->asked_us    = 0;
    lane->sent_us     = 0;
    lane->first_us    = 0;
    lane->last_us     = 0;
    lane->bytes       = 0;
    lane->is_answered = false;
    lane->is_overdue  = false;
    piece->lane       = index;
    lane->patience_us = lane->kind == SKY_HOST_PUT ? 0u : PatienceUs(host, piece);
    SKY_HostExchange_Begin(lane, &cfg, &peer->peer, work);
    lane->left_begun         = SKY_HostExchange_Left(lane);
    lane->left_seen          = lane->left_begun;
    peer->lanes[lane->place] = (uint16_t)index;
    peer->lanes_busy |= 1u << lane->place;
    peer->due_us = 0;
    SKY_ASSERT(lane->left_begun <= piece->count);
}

/* Return true if a satellite has enough to do for now. A few large shares fill the window, with one that begins as another ends. Shorter
 * ones take more of them, because each that waits for another one waits a round trip, and leave some to small blocks. */
static bool IsFull(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t *count)
{
    uint32_t lanes  = 0;
    uint32_t chunks = 0;
    SKY_ASSERT(peer->active != SKY_HOST_NONE);

    for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
    {
        const SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];

        if ((peer->lanes_busy & 1u << place) != 0u && !lane->is_small)
        {
            ++lanes;
            chunks += SKY_HostExchange_Left(lane);
        }
    }
    SKY_ASSERT(lanes <= SKY_HOST_LANES);
    *count = lanes;
    return lanes >= SKY_HOST_LANES - LANES_SMALL || (lanes >= LANES_FULL && chunks >= peer->peer.window) ||
           host->lane_free_count <= host->blocks.lanes_kept;
}

/* Return the queue of a satellite from which a piece begins next; NULL: none does. Small blocks go ahead, but leave the last lane to another
 * piece if there is none in a lane. */
static uint32_t *QueueOf(const SKY_Host_t *host, SKY_HostPeer_t *peer)
{
    const uint32_t free  = ~peer->lanes_busy & SKY_HOST_LANES_ALL;
    const bool     waits = peer->piece_first != SKY_HOST_NONE;
    uint32_t       count = 0;

    if (free == 0u || host->lane_free_count == 0u)
    {
        return NULL;
    }
    const bool is_full = waits && IsFull(host, peer, &count);
    const bool is_last = waits && !is_full && count == 0u && (free & (free - 1u)) == 0u;

    SKY_ASSERT(host->lane_free_count > 0u);
    if (peer->small_first != SKY_HOST_NONE && !is_last)
    {
        return &peer->small_first;
    }
    return waits && !is_full ? &peer->piece_first : NULL;
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
        SKY_HostEnds_StopBlock(host, number, SKY_STATUS_EXPIRED);
    }
}

/* End blocks of a queue whose deadline has passed, and find the next one. @return number of pieces in the queue */
static uint32_t EndLateIn(SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t first)
{
    uint32_t seen = 0;

    for (uint32_t piece = first; piece != SKY_HOST_NONE; piece = host->blocks.pieces[piece].next)
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
    return seen;
}

void SKY_HostLanes_EndLate(SKY_Host_t *host)
{
    uint32_t seen = 0;

    host->queue_deadline_us = UINT64_MAX;
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        seen += EndLateIn(host, peer, peer->small_first);
        seen += EndLateIn(host, peer, peer->piece_first);
    }
    SKY_ASSERT(seen <= host->blocks.piece_count);
    SKY_ASSERT(host->queue_deadline_us > host->now_us);
}

bool SKY_HostLanes_Begin(SKY_Host_t *host, SKY_HostPeer_t *peer)
{
    bool      began = false;
    uint32_t *queue = QueueOf(host, peer);

    for (; queue != NULL; queue = QueueOf(host, peer))
    {
        const uint32_t        number = *queue;
        const uint32_t        work   = host->blocks.pieces[number].work;
        const SKY_HostWork_t *one    = &host->blocks.works[work];
        SKY_ASSERT(number < host->blocks.piece_count);
        SKY_ASSERT(work < host->blocks.work_count);
        SKY_ASSERT(peer->active != SKY_HOST_NONE);

        *queue = host->blocks.pieces[number].next;
        EndIfLate(host, peer, work);
        if (host->blocks.pieces[number].is_over || one->block == NULL)
        {
            SKY_HostPieces_Free(host, number);
            continue;
        }
        began = true;
        if (peer->slow)
        {
            SKY_HostEnds_AskParity(host, work);
            SKY_ASSERT(one->block != NULL); /* nothing else is lost yet, or parity would have been asked for before */
        }
        if (!peer->silent || !SKY_HostEnds_Pass(host, number, SKY_SHARE_EXPIRED, SKY_STATUS_OK, peer->peer.addr))
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

/* Return the time at which parity is asked for, because a lane's satellite takes longer than most. UINT64_MAX: there is none to ask
 * for. */
static uint64_t HedgeUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_HostLane_t *lane)
{
    const uint64_t since_us = peer->heard_us > lane->begun_us ? peer->heard_us : lane->begun_us;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(since_us <= host->now_us);

    if (SKY_HostPieces_WorkOf(host, lane)->held == SKY_HOST_NONE)
    {
        return UINT64_MAX;
    }
    const uint64_t late_us = host->hedge_us == 0u ? SKY_HostReplace_LateUs(host, lane) : host->hedge_us;

    return since_us + (late_us == 0u ? host->cfg.peer.rto_initial_us : late_us);
}

/* Return true if the block of a lane can do without all that its satellite has not taken. */
static bool MayLose(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    const SKY_HostPiece_t *piece = &host->blocks.pieces[lane->piece];
    SKY_HostWork_t        *work  = SKY_HostPieces_WorkOf(host, lane);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT);
    SKY_ASSERT(piece->count >= 1u);

    for (uint32_t i = 0; i < piece->count; ++i)
    {
        if (!SKY_HostExchange_IsTaken(lane, i) &&
            !SKY_HostRows_MayLose(work, piece->server + (piece->from + i) * work->block->server_count))
        {
            return false;
        }
    }
    return true;
}

static uint64_t Earlier(uint64_t a_us, uint64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

uint64_t SKY_HostLanes_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_HostPeer_t *peer      = &host->peers.peers[lane->peer];
    const uint64_t  silent_us = SilentUs(peer, lane);
    const uint64_t  own_us    = SKY_HostExchange_OnTime(lane, host->now_us);
    const uint64_t  hedge_us  = HedgeUs(host, peer, lane);
    const uint64_t  next_us   = Earlier(own_us, hedge_us);
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    if (host->now_us >= silent_us)
    {
        peer->silent = true;
        SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
    }
    else if (SKY_HostReplace_IsSilent(host, lane) && MayLose(host, lane))
    {
        SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
    }
    else if (host->now_us >= hedge_us)
    {
        peer->slow = true;
        SKY_HostEnds_AskParity(host, host->blocks.pieces[lane->piece].work);
        return Earlier(silent_us, Earlier(own_us, SKY_HostReplace_OnTime(host, lane)));
    }
    return Earlier(Earlier(next_us, silent_us), SKY_HostReplace_OnTime(host, lane));
}

/* Note how long the answer to a lane's first request took. */
static void NoteAnswerTime(SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->asked_us != 0u);
    SKY_ASSERT(lane->asked_us <= host->now_us);

    SKY_Quantile_Add(&host->answer_times, (uint32_t)(host->now_us - lane->asked_us)); /* some seconds at most */
    const uint64_t usual_us = SKY_Quantile_Of(&host->answer_times, HEDGE_PERCENT);

    host->hedge_us = usual_us + usual_us / 2u;
}

void SKY_HostLanes_OnPacket(SKY_Host_t *host, SKY_HostLane_t *lane, const SKY_Packet_t *pkt)
{
    SKY_HostPeer_t *peer = &host->peers.peers[lane->peer];
    const uint32_t  left = SKY_HostExchange_Left(lane);
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(peer->active != SKY_HOST_NONE);

    if (!lane->is_answered && lane->kind == SKY_HOST_GET && SKY_REQUEST_NUMBER(pkt->request_id) == 1u)
    {
        NoteAnswerTime(host, lane); /* of another request a time-out would count */
    }
    SKY_HostReplace_Heard(host, lane);
    lane->is_answered                                  = true;
    lane->first_us                                     = lane->first_us == 0u ? host->now_us : lane->first_us;
    lane->last_us                                      = host->now_us;
    peer->slow                                         = false;
    peer->doubt_us                                     = 0;
    peer->heard_us                                     = host->now_us;
    SKY_HostPieces_WorkOf(host, lane)->block->heard_us = host->now_us;
    peer->silent                                       = false;
    peer->due_us                                       = 0;
    SKY_HostPace_Asked(host, peer, SKY_HostExchange_AgeUs(lane, host->now_us, pkt));
    SKY_HostExchange_OnPacket(lane, host->now_us, pkt);
    if (pkt->status == SKY_STATUS_NOT_FOUND && (pkt->word & SKY_WORD_SETTLED) == 0u)
    {
        SKY_HostPieces_WorkOf(host, lane)->block->is_unsettled = true;
    }
    if (lane->kind == SKY_HOST_GET && SKY_HostExchange_Left(lane) < left) /* a packet completes one chunk at most */
    {
        lane->bytes += pkt->chunk_len;
        SKY_HostRows_Take(SKY_HostPieces_WorkOf(host, lane), pkt->chunk_id);
    }
    lane->asked_us = SKY_HostExchange_Waits(lane) ? lane->asked_us : 0u; /* silence is to be that of the satellite */
    Count(host, lane);
}
