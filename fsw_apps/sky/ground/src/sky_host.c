/**
 * @file
 * Engine of a host: it tells each lane of its packets and of late ones, and every lane with room in its window sends.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define US_PER_MS   UINT64_C(1000)
#define REDRAWS_MAX 8u /* redraws of the host number in one report: so many collisions in a row are no accident */

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool SKY_Host_Init(SKY_Host_t *host, const SKY_HostShell_t *shell, const SKY_HostCfg_t *cfg, const SKY_HostPeerMemory_t *memory)
{
    const SKY_HostPatience_t patience = {SKY_HOST_ASK_INITIAL_US, SKY_HOST_ASK_MIN_US, SKY_HOST_ASK_MAX_US,
                                         SKY_HOST_PATIENCE_MIN_US};

    (void)memset(host, 0, sizeof(*host));
    SKY_Host_SetPatience(host, &patience);
    host->shell             = *shell;
    host->cfg               = *cfg;
    host->peers             = *memory;
    host->self.slot         = cfg->number;
    host->cfg.way_chunks    = cfg->way_chunks != 0u ? cfg->way_chunks : SKY_HOST_WAY;
    host->work_free         = SKY_HOST_NONE;
    host->piece_free        = SKY_HOST_NONE;
    host->lane_free         = SKY_HOST_NONE;
    host->budget            = SKY_LIMIT_CHUNK_SET;
    host->quantum_left      = UINT64_MAX;
    host->queue_deadline_us = UINT64_MAX;
    if (memory->peer_count == 0u || (cfg->security.is_keyed && cfg->security.crypto->key_count / 2u < memory->peer_count))
    {
        return false;
    }
    SKY_Index_Init(&host->index, memory->index, memory->peer_count);
    SKY_ASSERT(host->running == 0u);
    SKY_ASSERT(host->index.mask >= memory->peer_count); /* each satellite has a cell */
    return true;
}

bool SKY_Host_Lend(SKY_Host_t *host, const SKY_HostBlockMemory_t *memory)
{
    if (host->running > 0u || memory->work_count == 0u || memory->piece_count == 0u || memory->lane_count == 0u ||
        memory->lane_count > SKY_HOST_LANES_MAX || memory->lanes_kept >= memory->lane_count)
    {
        return false;
    }
    for (uint32_t at = 0; at < host->active_count; ++at) /* these pieces are of blocks that have ended */
    {
        host->peers.peers[host->peers.active[at]].piece_first = SKY_HOST_NONE;
        host->peers.peers[host->peers.active[at]].small_first = SKY_HOST_NONE;
    }
    SKY_HostPieces_Rest(host);
    SKY_ASSERT(host->active_count == 0u); /* without blocks no satellite has anything to do */
    host->blocks = *memory;
    for (uint32_t i = 0; i < memory->work_count; ++i)
    {
        memory->works[i].block        = NULL;
        memory->works[i].pieces_alive = 0;
        memory->works[i].next         = i + 1u < memory->work_count ? i + 1u : SKY_HOST_NONE;
    }
    for (uint32_t i = 0; i < memory->piece_count; ++i)
    {
        memory->pieces[i].work = SKY_HOST_NONE;
        memory->pieces[i].next = i + 1u < memory->piece_count ? i + 1u : SKY_HOST_NONE;
    }
    host->work_free        = 0;
    host->piece_free       = 0;
    host->piece_free_count = memory->piece_count;
    host->lane_free        = SKY_HOST_NONE; /* lanes are large, and most are never used: they are not touched before */
    host->lane_used        = 0;
    host->lane_free_count  = memory->lane_count;
    SKY_ASSERT(host->piece_free_count == memory->piece_count);
    SKY_ASSERT(host->running == 0u);
    SKY_ASSERT(host->ended == NULL || host->ended->status != SKY_STATUS_RUNNING);
    return true;
}

void SKY_Host_SetBudget(SKY_Host_t *host, uint32_t chunks)
{
    host->budget = chunks > 0u ? chunks : 1u;
    SKY_ASSERT(host->budget >= 1u); /* without a budget nothing would ever come */
}

void SKY_Host_SetQueue(SKY_Host_t *host, uint32_t queue_us)
{
    host->queue_us = queue_us;
}

void SKY_Host_SetQuantum(SKY_Host_t *host, uint64_t bytes)
{
    host->quantum_left = bytes;
}

void SKY_Host_BeginReport(SKY_Host_t *host)
{
    ++host->report;
    host->redraws = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

static void Reset(SKY_HostBlock_t *block)
{
    block->status       = SKY_STATUS_RUNNING;
    block->last_status  = SKY_STATUS_OK;
    block->failed_plane = 0;
    block->failed_slot  = 0;
    block->failed_chunk = 0;
    block->at_stand_in  = false;
    block->is_unsettled = false;
    block->held_version = 0;
    block->passes       = 0;
    block->chunks       = 0;
    block->lost         = 0;
    block->decoded      = 0;
    block->requests     = 0;
    block->repeats      = 0;
    block->duplicates   = 0;
    block->corrupt      = 0;
    block->bytes        = 0;
    block->duration_us  = 0;
    block->asked_us     = 0;
    block->heard_us     = 0;
    block->moved        = 0;
    block->ended_next   = NULL;
}

bool SKY_Host_HasRoom(const SKY_Host_t *host, uint64_t pieces)
{
    SKY_ASSERT(host->piece_free_count <= host->blocks.piece_count);
    SKY_ASSERT(host->running <= host->blocks.work_count);
    return host->work_free != SKY_HOST_NONE && pieces <= host->piece_free_count;
}

SKY_HostBegun_t SKY_Host_Begin(SKY_Host_t *host, uint64_t now_us, SKY_HostBlock_t *block)
{
    const uint64_t pieces = SKY_Host_Pieces(host, block);
    const uint32_t number = host->work_free;

    host->now_us = now_us;
    Reset(block);
    if (pieces == 0u)
    {
        block->last_status = SKY_STATUS_BAD_CHUNK;
        return SKY_HOST_WRONG;
    }
    if (!SKY_Host_HasRoom(host, pieces))
    {
        return SKY_HOST_FULL;
    }
    SKY_HostWork_t *work = &host->blocks.works[number];
    SKY_ASSERT(number < host->blocks.work_count);
    SKY_ASSERT(work->block == NULL); /* the place was free */
    SKY_ASSERT(work->pieces_alive == 0u);

    host->work_free = work->next;
    ++host->running;
    work->block       = block;
    work->started_us  = now_us;
    work->deadline_us = now_us + US_PER_MS * block->deadline_ms;
    SKY_ASSERT(work->deadline_us > now_us);
    SKY_ASSERT(host->running <= host->blocks.work_count);
    work->is_small    = block->stripe.block_len <= block->stripe.chunk_len;
    work->pieces_left = 0;
    work->lost        = 0;
    work->shares      = 0;
    work->answered    = 0;
    work->silence_us  = 0;
    work->doubt       = (SKY_HostDoubt_t){0};
    SKY_HostRows_Begin(work);
    work->tells_use = true;
    host->tells_use = true;
    if (!SKY_HostPieces_Make(host, number))
    {
        SKY_HostEnds_StopBlock(host, number, SKY_STATUS_BUSY);
    }
    SKY_ASSERT(work->pieces_left == pieces || block->status != SKY_STATUS_RUNNING);
    SKY_ASSERT(host->piece_free_count <= host->blocks.piece_count);
    return SKY_HOST_BEGUN;
}

void SKY_Host_Stop(SKY_Host_t *host, uint64_t now_us, const SKY_HostBlock_t *block, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    host->now_us = now_us;
    for (uint32_t i = 0; i < host->blocks.work_count; ++i)
    {
        const SKY_HostBlock_t *one = host->blocks.works[i].block;

        if (one != NULL && (block == NULL || one == block))
        {
            SKY_HostEnds_StopBlock(host, i, status);
        }
    }
    if (block == NULL)
    {
        SKY_HostQuestions_StopAll(host, status);
    }
    SKY_ASSERT(block != NULL || host->running == 0u);
}

SKY_HostBlock_t *SKY_Host_NextEnded(SKY_Host_t *host)
{
    SKY_HostBlock_t *block = host->ended;
    SKY_ASSERT(block == NULL || block->status != SKY_STATUS_RUNNING);

    if (block != NULL)
    {
        host->ended       = block->ended_next;
        block->ended_next = NULL;
    }
    return block;
}

/* ---- what comes ------------------------------------------------------------------------------------------------------ */

/* Return the lane to which a request id belongs, or NULL if it has ended. */
static SKY_HostLane_t *LaneOf(const SKY_Host_t *host, uint64_t request_id)
{
    const uint32_t index = SKY_HOST_LANE_OF(request_id);
    SKY_ASSERT(host->blocks.lane_count <= SKY_HOST_LANES_MAX);

    if (index >= host->lane_used || host->blocks.lanes[index].request_id == 0u ||
        host->blocks.lanes[index].request_id != SKY_REQUEST_FIRST(request_id))
    {
        return NULL;
    }
    SKY_ASSERT(host->blocks.lanes[index].piece < host->blocks.piece_count);
    SKY_ASSERT(host->blocks.lanes[index].peer < host->peer_used);
    return &host->blocks.lanes[index];
}

/* Take another number. What runs goes on under it: the questions and chunks on their way are asked for again. */
static void TakeNumber(SKY_Host_t *host, uint16_t number)
{
    SKY_ASSERT(number != 0u);
    SKY_ASSERT(host->self.plane == 0u); /* the host is on the ground */
    ++host->numbers;
    host->self.slot = number;
    for (uint32_t i = 0; i < host->lane_used; ++i)
    {
        SKY_HostLane_t *lane = &host->blocks.lanes[i];

        if (lane->request_id != 0u)
        {
            SKY_HostExchange_Cfg(lane)->self     = host->self;
            host->peers.peers[lane->peer].due_us = 0;
        }
    }
    SKY_HostAsk_OnNumber(host);
}

void SKY_Host_SetNumber(SKY_Host_t *host, uint16_t number)
{
    host->redraws = 0;
    TakeNumber(host, number);
}

/* Take a new number, because another host has ours at a gateway, and ask again what was asked there. */
static void Redraw(SKY_Host_t *host, SKY_Addr_t gateway)
{
    SKY_ASSERT(host->redraws < REDRAWS_MAX);
    SKY_ASSERT(!host->cfg.keeps_number);
    ++host->redraws;
    TakeNumber(host, (uint16_t)(SKY_HostRandom_Number(host) % UINT16_MAX + 1u));
    for (uint32_t i = 0; i < host->lane_used; ++i)
    {
        SKY_HostLane_t *lane = &host->blocks.lanes[i];

        if (lane->request_id != 0u && SKY_Addr_Equal(SKY_HostExchange_Cfg(lane)->gateway, gateway))
        {
            SKY_HostExchange_Repeat(lane, host->now_us);
        }
    }
}

/* Act on a gateway's word that another host has our number. @return true if the packet was one */
static bool IsNumberTaken(SKY_Host_t *host, SKY_HostLane_t *lane, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t gateway = SKY_HostExchange_Cfg(lane)->gateway;
    SKY_ASSERT(lane->request_id != 0u);

    if (pkt->status != SKY_STATUS_REFUSED || host->cfg.keeps_number || !SKY_Addr_Equal(pkt->src, gateway))
    {
        return false;
    }
    if (pkt->dst.slot == host->self.slot)
    {
        if (host->redraws == REDRAWS_MAX)
        {
            return false;
        }
        Redraw(host, gateway);
    }
    return true; /* it was one even if it speaks of an earlier number */
}

/* Only a satellite itself says what it holds. Any satellite on the way may say why a packet did not get there. */
static bool IsFrom(const SKY_Host_t *host, const SKY_HostLane_t *lane, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(lane->peer < host->peer_used);
    SKY_ASSERT(lane->request_id != 0u);
    return endpoint == lane->endpoint && ((pkt->status != SKY_STATUS_OK && pkt->status != SKY_STATUS_NOT_FOUND) ||
                                          SKY_Addr_Equal(pkt->src, host->peers.peers[lane->peer].peer.addr));
}

/* Return true if an answer to a question counts, and is no word that the satellite is to be opened first. */
static bool IsBelieved(SKY_Host_t *host, const SKY_HostQuestion_t *question, const SKY_Packet_t *pkt)
{
    const SKY_HostPlace_t *place = &question->place;
    SKY_HostPeer_t        *peer;
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->request_id == pkt->request_id);

    if (!host->cfg.security.is_on)
    {
        return true;
    }
    peer = SKY_HostPieces_KnowPeer(host, (SKY_Addr_t){place->plane, place->slot});
    if (peer == NULL)
    {
        ++host->counters.untrusted; /* it was forgotten, with its keys */
        return false;
    }
    return SKY_HostOpen_IsTrusted(host, peer, pkt) &&
           !SKY_HostOpen_OnRefusal(host, peer, (SKY_Addr_t){place->entry_plane, place->entry_slot}, pkt);
}

static void TakeAnswer(SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    SKY_HostQuestion_t *question = SKY_HostAsk_Asked(host, endpoint, pkt);
    SKY_ASSERT(SKY_Host_IsQuestion(pkt->request_id));

    if (question == NULL)
    {
        ++host->counters.stale;
    }
    else if (!IsBelieved(host, question, pkt))
    {
        SKY_ASSERT(host->cfg.security.is_on);
    }
    else if (SKY_HostAsk_IsNumberTaken(host, question, pkt))
    {
        Redraw(host, pkt->src);
    }
    else
    {
        SKY_HostAsk_OnAnswer(host, question, pkt);
    }
}

/* Return true if an answer to an opening is the entry satellite's word that another host has our number, or had an earlier one. */
static bool IsNumberTakenAt(const SKY_Host_t *host, const SKY_HostOpening_t *opening, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(opening->request_id != 0u);
    SKY_ASSERT(opening->request_id == pkt->request_id);
    return pkt->status == SKY_STATUS_REFUSED && pkt->security == SKY_SUITE_NONE && !host->cfg.keeps_number &&
           SKY_Addr_Equal(pkt->src, opening->entry) && (host->redraws < REDRAWS_MAX || pkt->dst.slot != host->self.slot);
}

/* Act on the response to an opening. */
static void TakeOpening(SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    SKY_HostPeer_t *peer = SKY_HostOpen_Asked(host, endpoint, pkt);
    SKY_ASSERT(peer == NULL || host->cfg.security.is_on);
    SKY_ASSERT(pkt->op == SKY_OP_ASSOCIATE);
    SKY_ASSERT(host->redraws <= REDRAWS_MAX);

    if (peer == NULL)
    {
        ++host->counters.stale;
    }
    else if (!IsNumberTakenAt(host, &peer->opening, pkt))
    {
        SKY_HostOpen_OnAnswer(host, peer, pkt);
    }
    else if (pkt->dst.slot == host->self.slot)
    {
        peer->opening.next_us = host->now_us;
        Redraw(host, pkt->src);
    }
}

void SKY_Host_Listen(SKY_Host_t *host, SKY_HostListener_t listener, void *context)
{
    host->listener         = listener;
    host->listener_context = context;
}

/* Return true if a trusted message was sent after all those that were handed over. All of them answer one request, so it is their sequence
 * number that tells one that is sent again. */
static bool IsNews(SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    SKY_ASSERT((pkt->flags & SKY_FLAG_TLM) != 0u);
    SKY_ASSERT(peer < &host->peers.peers[host->peer_used]);
    return !host->cfg.security.is_keyed ||
           SKY_Session_IsNewest(&host->peers.peers[peer - host->peers.peers].opening.session, pkt->sequence);
}

/* Hand telemetry over that was asked for. */
static void TakeTelemetry(SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    const SKY_HostPeer_t *peer = SKY_HostPieces_FindPeer(host, pkt->src);
    SKY_ASSERT((pkt->flags & SKY_FLAG_TLM) != 0u);

    if (peer == NULL || host->listener == NULL || pkt->is_request || pkt->status != SKY_STATUS_OK ||
        peer->lease_endpoint != endpoint || !SKY_Addr_Equal(pkt->dst, host->self) ||
        (pkt->request_id != peer->lease_ids[0] && pkt->request_id != peer->lease_ids[1]))
    {
        ++host->counters.stale;
    }
    else if (SKY_HostOpen_IsTrusted(host, peer, pkt))
    {
        if (IsNews(host, peer, pkt))
        {
            host->listener(host->listener_context, pkt);
        }
        else
        {
            ++host->counters.stale;
        }
    }
}

void SKY_Host_Receive(SKY_Host_t *host, uint64_t now_us, uint64_t endpoint, const uint8_t *data, size_t len)
{
    SKY_Packet_t pkt;

    host->now_us = now_us;
    if (SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK)
    {
        ++host->counters.undecoded;
        return;
    }
    if (pkt.op == SKY_OP_ASSOCIATE)
    {
        TakeOpening(host, endpoint, &pkt);
        return;
    }
    if ((pkt.flags & SKY_FLAG_TLM) != 0u)
    {
        TakeTelemetry(host, endpoint, &pkt);
        return;
    }
    if (SKY_Host_IsQuestion(pkt.request_id))
    {
        TakeAnswer(host, endpoint, &pkt);
        return;
    }
    SKY_HostLane_t *lane = LaneOf(host, pkt.request_id);
    SKY_ASSERT(pkt.length <= len);

    if (lane == NULL || !IsFrom(host, lane, endpoint, &pkt))
    {
        ++host->counters.stale;
        return;
    }
    SKY_HostPeer_t *peer = &host->peers.peers[lane->peer];

    if (!SKY_HostOpen_IsTrusted(host, peer, &pkt) ||
        SKY_HostOpen_OnRefusal(host, peer, SKY_HostExchange_Cfg(lane)->gateway, &pkt))
    {
        return;
    }
    if (!IsNumberTaken(host, lane, &pkt))
    {
        SKY_HostLanes_OnPacket(host, lane, &pkt);
        (void)SKY_HostEnds_Reap(host, lane);
    }
}

void SKY_Host_RefuseTooLarge(SKY_Host_t *host, uint64_t now_us, uint64_t request_id)
{
    SKY_HostLane_t *lane = LaneOf(host, request_id);

    host->now_us = now_us;
    if (SKY_Host_IsQuestion(request_id))
    {
        SKY_HostAsk_Refuse(host, request_id, SKY_STATUS_TOO_LARGE);
    }
    if (lane != NULL) /* without a lane an earlier packet has ended it */
    {
        SKY_HostEnds_Refuse(host, lane, SKY_STATUS_TOO_LARGE);
    }
}

/* ---- what has come due -------------------------------------------------------------------------------------------------- */

/* Begin what can begin, and let timers act. @return the time at which something is due, at the latest */
static uint64_t ActOnTime(SKY_Host_t *host, bool timers)
{
    uint64_t due_us = timers ? UINT64_MAX : host->now_us;

    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer    = &host->peers.peers[host->peers.active[at]];
        uint64_t        next_us = UINT64_MAX;
        SKY_ASSERT(peer->active == at);

        if (SKY_HostLanes_Begin(host, peer))
        {
            due_us = host->now_us; /* the satellite has something to send */
        }
        peer->ready = peer->ready || !timers || host->now_us >= peer->due_us;
        if (!timers)
        {
            continue;
        }
        for (uint32_t place = 0; place < SKY_HOST_LANES && host->now_us >= peer->due_us; ++place)
        {
            if ((peer->lanes_busy & 1u << place) == 0u) /* idle lanes are not touched, so they stay out of the cache */
            {
                continue;
            }
            SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];
            SKY_ASSERT(lane->place == place);
            SKY_ASSERT(lane->request_id != 0u);
            const uint64_t lane_us = SKY_HostLanes_OnTime(host, lane);
            const uint64_t open_us = SKY_HostOpen_DueUs(host, peer, SKY_HostExchange_Cfg(lane)->gateway);

            next_us = lane_us < next_us ? lane_us : next_us;
            next_us = open_us < next_us ? open_us : next_us;
            if (SKY_HostEnds_Reap(host, lane))
            {
                next_us = 0; /* another block can begin */
            }
        }
        peer->due_us = host->now_us >= peer->due_us ? next_us : peer->due_us;
        due_us       = peer->due_us < due_us ? peer->due_us : due_us;
    }
    SKY_ASSERT(host->active_count <= host->peer_used);
    return due_us > host->now_us ? due_us : host->now_us;
}

uint64_t SKY_Host_Run(SKY_Host_t *host, uint64_t now_us, bool timers)
{
    host->now_us             = now_us;
    const uint64_t asking_us = SKY_HostAsk_Run(host, timers);

    (void)ActOnTime(host, timers);
    if (timers && now_us >= host->queue_deadline_us) /* lanes act first, as they know better what has failed */
    {
        SKY_HostLanes_EndLate(host);
    }
    const bool more = SKY_HostSend_All(host);

    if (host->tells_use) /* behind the first requests, so that it costs them no time */
    {
        SKY_HostUse_Tell(host);
    }
    uint64_t due_us = more ? now_us : ActOnTime(host, timers); /* packets that were sent have set timers */

    SKY_HostPieces_Rest(host);
    if (due_us > host->queue_deadline_us && timers)
    {
        due_us = host->queue_deadline_us;
    }
    SKY_ASSERT(due_us >= now_us);
    SKY_ASSERT(host->active_count <= host->peer_used);
    SKY_ASSERT(host->active_count > 0u || host->running == 0u); /* a block that runs has a busy satellite */
    return asking_us < due_us ? asking_us : due_us;
}

/* ---- who did what ---------------------------------------------------------------------------------------------------- */

uint32_t SKY_Host_Served(const SKY_Host_t *host, SKY_HostServed_t *served, uint32_t room)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < host->peer_used; ++i)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[i];

        if (peer->report != host->report)
        {
            continue;
        }
        if (count < room)
        {
            SKY_HostServed_t *one = &served[count];

            *one             = peer->served;
            one->plane       = peer->peer.addr.plane;
            one->slot        = peer->peer.addr.slot;
            one->entry_plane = peer->entry.plane;
            one->entry_slot  = peer->entry.slot;
            one->srtt_us     = peer->peer.srtt_us;
            one->last_us     = one->first_us == 0u ? 0u : peer->heard_us;
        }
        ++count;
    }
    SKY_ASSERT(count <= host->peer_used);
    return count;
}
