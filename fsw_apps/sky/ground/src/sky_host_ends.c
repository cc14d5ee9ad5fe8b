/**
 * @file
 * Ends of pieces, and their consequences. A piece that did not come whole from one place goes on at the next. After the last place its
 * chunks are lost. A GET is done when enough chunks of each row are here, a PUT with its last piece; a block of which too much is lost
 * ends.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define LOSS_TOLERATED 64u       /* one of so many chunks may be lost on its way, and the links count as good */
#define LOSSY_US       30000000u /* for so long gets ask for parity at once after links have lost more */

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

/* Tell that a block has ended. */
static void Tell(SKY_Host_t *host, SKY_HostBlock_t *block, SKY_Status_t status)
{
    SKY_ASSERT(block->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    block->status     = status;
    block->ended_next = host->ended;
    host->ended       = block;
}

/* Take a block off its lanes. It is told of, unless it has to be decoded first. */
static void EndBlock(SKY_Host_t *host, uint32_t number, SKY_Status_t status, bool decodes)
{
    SKY_HostWork_t  *work  = &host->blocks.works[number];
    SKY_HostBlock_t *block = work->block;
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(host->running > 0u);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    SKY_ASSERT(work->started_us <= host->now_us);

    if (work->lost > block->chunks / LOSS_TOLERATED)
    {
        host->lossy_until_us = host->now_us + LOSSY_US;
    }
    host->redraws      = status == SKY_STATUS_DONE ? 0u : host->redraws; /* satellites know this host by its number */
    block->duration_us = host->now_us - work->started_us;
    work->block        = NULL;
    if (decodes)
    {
        SKY_HostBlock_t **last = &host->decoding; /* whoever came first is done first */

        while (*last != NULL)
        {
            last = &(*last)->ended_next;
        }
        block->ended_next = NULL;
        *last             = block;
    }
    else
    {
        Tell(host, block, status);
    }
    --host->running;
    if (work->pieces_alive == 0u)
    {
        work->next      = host->work_free;
        host->work_free = number;
    }
    SKY_ASSERT(work->block == NULL);
    SKY_ASSERT(decodes || host->ended == block);
    SKY_ASSERT(!decodes || host->decoding != NULL);
}

static void CloseLane(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->place < SKY_HOST_LANES);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) != 0u);
    SKY_HostPiece_t       *piece = &host->blocks.pieces[lane->piece];
    SKY_HostWork_t        *work  = SKY_HostPieces_WorkOf(host, lane);
    const SKY_HostServed_t part  = SKY_HostExchange_Account(lane, work, piece->twin == SKY_HOST_NONE);

    SKY_HostServed_Add(work->block, &host->peers.peers[lane->peer], &part);
    piece->lane      = SKY_HOST_NONE;
    lane->request_id = 0;
    lane->next       = host->lane_free;
    host->lane_free  = (uint32_t)(lane - host->blocks.lanes);
    ++host->lane_free_count;
    host->peers.peers[lane->peer].lanes_busy &= ~(1u << lane->place);
    SKY_ASSERT(host->lane_free < host->blocks.lane_count);
    SKY_ASSERT((host->peers.peers[lane->peer].lanes_busy & 1u << lane->place) == 0u);
}

/* Close all lanes of a block, and free its pieces but for those in queues, which are freed when their turn comes. */
static void StopLanes(SKY_Host_t *host, uint32_t work)
{
    SKY_ASSERT(work < host->blocks.work_count);
    SKY_ASSERT(host->blocks.works[work].block != NULL);
    for (uint32_t held = SKY_HostPieces_TakeHeld(host, work); held != SKY_HOST_NONE; held = SKY_HostPieces_TakeHeld(host, work))
    {
        --host->blocks.works[work].pieces_left;
        SKY_HostPieces_Free(host, held);
    }
    if (host->blocks.works[work].pieces_left == 0u)
    {
        return; /* no lane of the block runs */
    }
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
        {
            SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];

            if ((peer->lanes_busy & 1u << place) != 0u && host->blocks.pieces[lane->piece].work == work)
            {
                SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
                SKY_HostServed_Missed(host, lane);
                CloseLane(host, lane);
                SKY_HostPieces_Free(host, lane->piece);
                peer->due_us = 0; /* other satellites have room now */
            }
        }
    }
}

void SKY_HostEnds_StopBlock(SKY_Host_t *host, uint32_t work, SKY_Status_t status)
{
    StopLanes(host, work);
    EndBlock(host, work, status, false);
    SKY_ASSERT(host->blocks.works[work].block == NULL);
}

/* End a GET of which enough has come. */
static void Complete(SKY_Host_t *host, uint32_t work)
{
    SKY_ASSERT(host->blocks.works[work].rows_left == 0u);
    SKY_ASSERT(host->blocks.works[work].block->kind == SKY_HOST_GET);
    StopLanes(host, work); /* before memory of chunks on their way is written */
    EndBlock(host, work, SKY_STATUS_DONE, !SKY_HostRows_Decode(host->blocks.works[work].block));
}

bool SKY_HostEnds_Decode(SKY_Host_t *host)
{
    SKY_HostBlock_t *block = host->decoding;

    if (block != NULL)
    {
        const uint64_t bytes = SKY_Stripe_ChunkBytes(&block->stripe, 0) * (uint64_t)block->stripe.code_k;

        SKY_ASSERT(block->kind == SKY_HOST_GET);
        SKY_ASSERT(block->status == SKY_STATUS_RUNNING);
        host->quantum_left = bytes < host->quantum_left ? host->quantum_left - bytes : 0u;
        if (SKY_HostRows_Decode(block))
        {
            host->decoding = block->ended_next;
            Tell(host, block, SKY_STATUS_DONE);
        }
    }
    return host->decoding != NULL;
}

void SKY_HostEnds_StopDecoding(SKY_Host_t *host, const SKY_HostBlock_t *block, SKY_Status_t status)
{
    SKY_HostBlock_t **at = &host->decoding;

    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    while (*at != NULL)
    {
        SKY_HostBlock_t *one = *at;

        SKY_ASSERT(one->kind == SKY_HOST_GET);
        if (block == NULL || one == block)
        {
            *at = one->ended_next;
            Tell(host, one, status);
        }
        else
        {
            at = &one->ended_next;
        }
    }
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

bool SKY_HostEnds_Pass(SKY_Host_t *host, uint32_t number, SKY_ShareState_t state, SKY_Status_t status, SKY_Addr_t addr)
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
    if (!IsDenial(state, status) && !SKY_Addr_Equal(piece->doubt.addr, addr))
    {
        *(piece->doubt.addr.plane == 0u ? &piece->doubt : &piece->later) =
            (SKY_HostDoubt_t){addr, (uint8_t)state, (uint8_t)status};
    }
    piece->round = round;
    ++work->block->passes;
    return SKY_HostPieces_Queue(host, number);
}

/* Return true if a satellite's word about a chunk is one about the block: another one has taken its name, so the rest need not be asked for.
 * Contents without a version may differ from satellite to satellite. */
static bool IsOfBlock(const SKY_HostBlock_t *block, SKY_Status_t status)
{
    SKY_ASSERT(block != NULL);
    return status == SKY_STATUS_OLD_VERSION ||
           (status == SKY_STATUS_BAD_KEY && (block->kind == SKY_HOST_PUT || block->block_version != 0u));
}

/* Give a satellite the pieces of a block that were held back. @return the first for which there is no memory, or SKY_HOST_NONE */
static uint32_t Release(SKY_Host_t *host, uint32_t work)
{
    uint32_t piece = SKY_HostPieces_TakeHeld(host, work);
    SKY_ASSERT(work < host->blocks.work_count);

    while (piece != SKY_HOST_NONE && SKY_HostPieces_Queue(host, piece))
    {
        piece = SKY_HostPieces_TakeHeld(host, work);
    }
    return piece;
}

/* Count the chunks of a piece that have not come as lost. @param lane  the one that it ran in, closed; NULL: none */
static SKY_HostLoss_t LoseChunks(SKY_Host_t *host, uint32_t number, const SKY_HostLane_t *lane, bool is_denied)
{
    const SKY_HostPiece_t *piece = &host->blocks.pieces[number];
    SKY_HostWork_t        *work  = &host->blocks.works[piece->work];
    SKY_HostLoss_t         worst = SKY_HOST_LOSS_BORNE;
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(work->block != NULL);
    const bool is_gone = is_denied && !SKY_HostPieces_HasStandIn(work->block, piece->server);

    for (uint32_t i = 0; i < piece->count; ++i)
    {
        const uint32_t id      = piece->server + (piece->from + i) * work->block->server_count;
        const bool     is_here = lane != NULL && work->block->kind == SKY_HOST_PUT ? SKY_HostExchange_IsTaken(lane, i)
                                                                                   : SKY_HostRows_IsHere(work->block, id);
        if (!is_here)
        {
            const SKY_HostLoss_t loss = SKY_HostRows_Lose(work, id, is_denied, is_gone);

            worst = loss > worst ? loss : worst;
        }
    }
    return worst;
}

/* Act on the end of a piece that no other place can be asked for. @param doubt  why it is to be had nowhere */
static void Lose(SKY_Host_t *host, uint32_t number, const SKY_HostLane_t *lane, SKY_HostDoubt_t doubt)
{
    const uint32_t   index     = host->blocks.pieces[number].work;
    SKY_HostWork_t  *work      = &host->blocks.works[index];
    SKY_HostBlock_t *block     = work->block;
    const bool       is_denied = IsDenial((SKY_ShareState_t)doubt.state, doubt.status);
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(block != NULL);
    SKY_ASSERT(lane == NULL || lane->request_id == 0u); /* the piece's lane is closed */

    if (!is_denied && work->doubt.addr.plane == 0u)
    {
        work->doubt = doubt;
    }
    const SKY_HostLoss_t loss = LoseChunks(host, number, lane, is_denied);

    if (loss == SKY_HOST_LOSS_BORNE && !IsOfBlock(block, doubt.status))
    {
        --work->pieces_left;
        SKY_HostPieces_Free(host, number);
        if (work->pieces_left == 0u)
        {
            EndBlock(host, index, SKY_STATUS_DONE, false);
        }
        return;
    }
    /* If all places deny the chunks but one that was silent, or that has another block of the name, then that one's word counts. */
    const SKY_HostDoubt_t why    = loss == SKY_HOST_LOSS_DOUBTED && is_denied ? work->doubt : doubt;
    const bool            is_own = lane != NULL && SKY_Addr_Equal(why.addr, host->peers.peers[lane->peer].peer.addr);

    block->failed_plane = why.addr.plane;
    block->failed_slot  = why.addr.slot;
    block->failed_chunk = lane != NULL ? SKY_HostExchange_DeniedChunk(lane) : 0u;
    block->at_stand_in  = loss == SKY_HOST_LOSS_DENIED;
    if (why.status != SKY_STATUS_OK && !is_own)
    {
        block->last_status = why.status;
    }
    --work->pieces_left;
    SKY_HostPieces_Free(host, number);
    SKY_HostEnds_StopBlock(host, index, VerdictOf((SKY_ShareState_t)why.state, why.status));
}

void SKY_HostEnds_AskParity(SKY_Host_t *host, uint32_t work)
{
    SKY_ASSERT(work < host->blocks.work_count);
    SKY_ASSERT(host->blocks.works[work].block != NULL);
    const SKY_HostDoubt_t nobody = {{0, 0}, SKY_SHARE_REFUSED, SKY_STATUS_BUSY};
    uint32_t              piece  = Release(host, work);

    while (piece != SKY_HOST_NONE)
    {
        Lose(host, piece, NULL, nobody);
        piece = host->blocks.works[work].block != NULL ? Release(host, work) : SKY_HOST_NONE;
    }
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
        SKY_ASSERT(work->block->kind == SKY_HOST_PUT); /* a GET is done before its last piece is */
        EndBlock(host, number, SKY_STATUS_DONE, false);
    }
}

void SKY_HostEnds_Drop(SKY_Host_t *host, uint32_t number)
{
    SKY_HostPiece_t *piece = &host->blocks.pieces[number];
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(!piece->is_over);
    SKY_ASSERT(host->blocks.pieces[piece->twin].twin == number); /* it has one */

    --host->blocks.works[piece->work].pieces_left;
    if (piece->lane != SKY_HOST_NONE)
    {
        SKY_HostLane_t *lane = &host->blocks.lanes[piece->lane];

        SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
        host->peers.peers[lane->peer].due_us = 0;
        CloseLane(host, lane);
        host->blocks.pieces[piece->twin].twin = SKY_HOST_NONE;
        SKY_HostPieces_Free(host, number);
    }
    else
    {
        host->blocks.pieces[piece->twin].twin = SKY_HOST_NONE;
        piece->is_over                        = true; /* it is in a queue */
    }
}

/* Act on the end of a piece that is under way at two places: the other goes on, or is not needed any more. @return true if that is all */
static bool IsOfTwin(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_ShareState_t state, SKY_Status_t status)
{
    const uint32_t         piece = lane->piece;
    const uint32_t         twin  = host->blocks.pieces[piece].twin;
    const SKY_HostBlock_t *block = SKY_HostPieces_WorkOf(host, lane)->block;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);

    if (twin == SKY_HOST_NONE)
    {
        return false;
    }
    if (state == SKY_SHARE_DONE || IsOfBlock(block, status))
    {
        SKY_HostEnds_Drop(host, twin);
        return false;
    }
    SKY_HostEnds_Drop(host, piece);
    return true;
}

/* Take in that a satellite denies what is left of a piece: if it was silent before, it is in doubt no longer, but others still are. */
static void Trust(SKY_HostPiece_t *piece, SKY_Addr_t addr)
{
    const SKY_HostDoubt_t none = {0};

    SKY_ASSERT(addr.plane != 0u);
    SKY_ASSERT(piece->later.addr.plane == 0u || piece->doubt.addr.plane != 0u);
    if (SKY_Addr_Equal(piece->doubt.addr, addr))
    {
        piece->doubt = piece->later;
        piece->later = none;
    }
    else if (SKY_Addr_Equal(piece->later.addr, addr))
    {
        piece->later = none;
    }
}

/* Close a lane whose share has ended, and act on that. @param status  what it ended with */
static void End(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status)
{
    const SKY_ShareState_t state = SKY_HostExchange_State(lane);
    const uint32_t         piece = lane->piece;
    const uint32_t         work  = host->blocks.pieces[piece].work;
    const SKY_Addr_t       addr  = host->peers.peers[lane->peer].peer.addr;
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    host->peers.peers[lane->peer].due_us = 0;
    if (IsDenial(state, status))
    {
        Trust(&host->blocks.pieces[piece], addr);
    }
    if (IsOfTwin(host, lane, state, status))
    {
        return;
    }
    CloseLane(host, lane);
    if (state == SKY_SHARE_DONE)
    {
        Finish(host, piece);
    }
    else if (!SKY_HostEnds_Pass(host, piece, state, status, addr))
    {
        const SKY_HostDoubt_t earlier = host->blocks.pieces[piece].doubt;
        const SKY_HostDoubt_t doubt   = {addr, (uint8_t)state, (uint8_t)status};

        Lose(host, piece, lane, IsDenial(state, status) && earlier.addr.plane != 0u ? earlier : doubt);
        if (host->blocks.works[work].block != NULL)
        {
            SKY_HostEnds_AskParity(host, work);
        }
    }
    SKY_ASSERT(lane->request_id == 0u);
}

bool SKY_HostEnds_Reap(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->request_id != 0u);
    if (lane->kind == SKY_HOST_GET && SKY_HostPieces_WorkOf(host, lane)->rows_left == 0u)
    {
        Complete(host, host->blocks.pieces[lane->piece].work);
        return true;
    }
    if (SKY_HostExchange_State(lane) == SKY_SHARE_RUNNING)
    {
        return false;
    }
    End(host, lane, WordOf(lane));
    SKY_ASSERT(lane->request_id == 0u);
    return true;
}

void SKY_HostEnds_Refuse(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_HostExchange_Refuse(lane, status);
    End(host, lane, status); /* it is this host's own word, and may be one that no satellite has */
    SKY_ASSERT(lane->request_id == 0u);
}
