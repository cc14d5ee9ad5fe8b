/**
 * @file
 * Engine of a host: it tells each lane of its packets and of late ones, and every lane with room in its window sends.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define US_PER_MS UINT64_C(1000)

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
    block->row_next     = 0;
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
    SKY_HostEnds_StopDecoding(host, block, status);
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
    const bool decodes = SKY_HostEnds_Decode(host);
    const bool more    = SKY_HostSend_All(host) || decodes;

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
