/**
 * @file
 * Shares of the sending. Every satellite that has something to do gets its turn, with its part of the chunks on their way: of its
 * own window, of the way in that it shares with others, and of the receive buffer.
 */
#include "sky_assert.h"
#include "sky_crc.h"
#include "sky_host_priv.h"

#define SENT_MAX (2u * SKY_LIMIT_CHUNK_SET) /* most chunks of one lane in its turn: more than its window takes */

static void SendChunk(SKY_Host_t *host, const SKY_HostLane_t *lane, SKY_Packet_t *pkt)
{
    SKY_HostWork_t        *work  = &host->blocks.works[host->blocks.pieces[lane->piece].work];
    const SKY_HostBlock_t *block = work->block;
    const uint8_t         *base  = SKY_Stripe_IsParity(&block->stripe, pkt->chunk_id) ? block->parity : block->data;
    const uint8_t         *chunk = base + SKY_Stripe_Offset(&block->stripe, pkt->chunk_id);
    uint32_t               at    = 0;
    SKY_ASSERT(block->kind == SKY_HOST_PUT);
    SKY_ASSERT(pkt->chunk_id < block->stripe.chunk_total);
    SKY_ASSERT(base != NULL);

    SKY_HostRows_Encode(work, pkt->chunk_id);
    pkt->chunk_crc = SKY_Crc32c(0, chunk, pkt->chunk_len);
    do
    {
        at = SKY_Packet_CutPart(pkt, chunk, at, host->cfg.packet_bytes);
        SKY_HostOpen_Send(host, lane->endpoint, pkt);
    } while (at < pkt->chunk_len);
    SKY_ASSERT(at == pkt->chunk_len);
}

/* Run a push for one burst and its query, so that all satellites get their turn and answers are read in between. @param room
 * chunks that may still be on their way. @return the chunks that were sent or asked for; @p more is set if others could be at
 * once */
static uint32_t SendLane(SKY_Host_t *host, SKY_HostLane_t *lane, uint32_t room, bool *more)
{
    uint32_t         used   = 0;
    uint32_t         sent   = 0;
    SKY_PushAction_t action = SKY_PUSH_CHUNK;
    SKY_Packet_t     pkt;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->peer < host->peer_used);

    do
    {
        ++sent;
        SKY_ASSERT(used <= room);     /* each step but the last takes room */
        SKY_ASSERT(sent <= SENT_MAX); /* so the number of steps is bounded */
        action = SKY_HostExchange_Next(lane, host->now_us, room - used, &pkt, host->shell.Payload(host->shell.context));
        if (action == SKY_PUSH_CHUNK)
        {
            SendChunk(host, lane, &pkt);
            ++used;
        }
        else if (action == SKY_PUSH_QUERY)
        {
            used += lane->kind == SKY_HOST_GET ? pkt.credit : 0u;
            SKY_HostOpen_Send(host, lane->endpoint, &pkt);
        }
        host->peers.peers[lane->peer].due_us = action != SKY_PUSH_NOTHING ? 0u : host->peers.peers[lane->peer].due_us;
    } while (action == SKY_PUSH_CHUNK || (action == SKY_PUSH_QUERY && lane->kind != SKY_HOST_PUT));
    *more          = action == SKY_PUSH_QUERY;
    lane->asked_us = lane->asked_us == 0u && used > 0u ? host->now_us : lane->asked_us;
    return used;
}

/* Return how many of @p all chunks @p peer may have on their way, which it shares with others: twice an even share. A silent
 * satellite does not keep the others waiting, and a fast one may have more. */
static uint32_t FairRoom(const SKY_HostPeer_t *peer, uint32_t all, uint32_t peers)
{
    const uint32_t fair = 2u * all / (peers + 1u) + 1u;
    SKY_ASSERT(peers >= 1u);

    return fair > peer->peer.outstanding ? fair - peer->peer.outstanding : 0u;
}

static uint32_t LessOf(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t Minus(uint32_t from, uint32_t by)
{
    return by < from ? from - by : 0u;
}

/* Return the chunks that may go to, or be asked of, a satellite now. @param budget  room of the receive buffer; a PUT needs
 * none */
static uint32_t RoomOf(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_HostLane_t *lane, uint32_t budget)
{
    const SKY_HostWay_t *way  = &host->peers.ways[peer->way];
    uint32_t             room = SKY_LIMIT_CHUNK_SET;
    SKY_ASSERT(peer->way < host->way_count);
    SKY_ASSERT(lane->place < SKY_HOST_LANES);

    if (lane->kind == SKY_HOST_GET)
    {
        room = LessOf(FairRoom(peer, host->budget, host->busy_count), budget);
    }
    if (way->peers > 1u)
    {
        room = LessOf(LessOf(room, FairRoom(peer, host->cfg.way_chunks, way->peers)), way->room);
    }
    SKY_ASSERT(lane->kind != SKY_HOST_GET || room <= budget);
    return room;
}

/* Return the chunks that the receive buffer has room for. */
static uint32_t CountRoom(SKY_Host_t *host)
{
    uint32_t budget = host->budget;

    for (uint32_t i = 0; i < host->way_count; ++i)
    {
        host->peers.ways[i].room  = host->cfg.way_chunks;
        host->peers.ways[i].peers = 0;
    }
    host->busy_count = 0;
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];
        SKY_HostWay_t        *way  = &host->peers.ways[peer->way];
        SKY_ASSERT(peer->way < host->way_count);
        const uint32_t busy = peer->lanes_busy != 0u ? 1u : 0u;

        budget    = Minus(budget, peer->peer.outstanding);
        way->room = Minus(way->room, peer->peer.outstanding);
        way->peers += busy;
        host->busy_count += busy;
    }
    SKY_ASSERT(budget <= host->budget);
    SKY_ASSERT(host->busy_count <= host->active_count);
    return budget;
}

/* Return true if the satellite of a lane may be asked. If not, the lane counts as asked, so that its silence is noticed. */
static bool IsOpen(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_HostLane_t *lane)
{
    SKY_ASSERT(peer->active != SKY_HOST_NONE);
    SKY_ASSERT(lane->request_id != 0u);
    if (SKY_HostOpen_May(host, peer, SKY_HostExchange_Cfg(lane)->gateway, lane->endpoint))
    {
        return true;
    }
    lane->asked_us = lane->asked_us == 0u ? host->now_us : lane->asked_us;
    peer->due_us   = 0; /* timers follow from what the lane says now, and from the opening's */
    return false;
}

/* Leave out what a GET does not need any more: once parity is asked for, other chunks of the row may have come first. */
static void Spare(const SKY_Host_t *host, SKY_HostLane_t *lane)
{
    SKY_HostWork_t *work = &host->blocks.works[host->blocks.pieces[lane->piece].work];
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(work->block != NULL);

    if (lane->kind == SKY_HOST_GET && work->block->stripe.code_m > 0u && work->held == SKY_HOST_NONE)
    {
        SKY_HostExchange_Spare(lane, work);
        if (SKY_HostExchange_State(lane) != SKY_SHARE_RUNNING)
        {
            host->peers.peers[lane->peer].due_us = 0; /* the lane has ended */
        }
    }
}

/* A turn of all satellites. */
typedef struct
{
    uint32_t budget; /* chunks that the receive buffer has room for */
    bool     more;   /* more could go at once */
} turn_t;

/* Return the chunks of a lane that may go now. */
static uint32_t LaneRoom(const SKY_Host_t *host, const SKY_HostPeer_t *peer, SKY_HostLane_t *lane, const turn_t *turn)
{
    const uint32_t room = RoomOf(host, peer, lane, turn->budget);

    if (lane->kind != SKY_HOST_PUT || lane->is_small)
    {
        return room;
    }
    if (host->quantum_left == 0u)
    {
        return 0; /* another lane of this satellite took the rest */
    }
    const uint64_t chunks =
        host->quantum_left / SKY_HostExchange_Cfg(lane)->stripe.chunk_len + 1u; /* one more than fits, so that any goes */
    const uint32_t paced = LessOf(room, SKY_HostPace_Room(host, peer));

    SKY_ASSERT(host->quantum_left > 0u);
    return chunks < paced ? (uint32_t)chunks : paced;
}

/* Let a lane of a satellite send. @return true if the satellite may have more to send soon, without any event */
static bool SendOf(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_HostLane_t *lane, turn_t *turn)
{
    SKY_HostWay_t *way  = &host->peers.ways[peer->way];
    bool           asks = false;
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(peer->way < host->way_count);

    if (!IsOpen(host, peer, lane))
    {
        return false;
    }
    Spare(host, lane);
    const uint32_t room = LaneRoom(host, peer, lane, turn);
    const uint32_t used = SendLane(host, lane, room, &asks);

    SKY_HostBlock_t *block = host->blocks.works[host->blocks.pieces[lane->piece].work].block;

    block->asked_us = block->asked_us == 0u && used > 0u ? host->now_us : block->asked_us;
    lane->sent_us   = lane->sent_us == 0u && used > 0u ? host->now_us : lane->sent_us;
    turn->more      = turn->more || asks;
    turn->budget    = Minus(turn->budget, used);
    way->room       = Minus(way->room, used);
    if (lane->kind == SKY_HOST_PUT && !lane->is_small)
    {
        const uint64_t bytes = (uint64_t)used * SKY_HostExchange_Cfg(lane)->stripe.chunk_len;

        host->quantum_left = bytes < host->quantum_left ? host->quantum_left - bytes : 0u;
    }
    return asks || room <= peer->peer.window; /* a satellite may have more when others have less */
}

/* Let the lanes of a satellite send that are of small blocks, or of others. @return as SendOf, of any of them */
static bool SendPeer(SKY_Host_t *host, SKY_HostPeer_t *peer, bool is_small, turn_t *turn)
{
    bool has_more = false;

    SKY_ASSERT(peer->active != SKY_HOST_NONE);
    for (uint32_t place = 0; place < SKY_HOST_LANES && peer->ready; ++place)
    {
        SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];

        if ((peer->lanes_busy & 1u << place) != 0u && lane->is_small == is_small)
        {
            SKY_ASSERT(lane->place == place);
            has_more = SendOf(host, peer, lane, turn) || has_more;
        }
    }
    return has_more;
}

bool SKY_HostSend_All(SKY_Host_t *host)
{
    turn_t   turn = {0, false};
    uint32_t n    = 0;

    SKY_HostPieces_FindWays(host);
    turn.budget = CountRoom(host);
    for (; n < host->active_count; ++n)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[(host->turn + n) % host->active_count]];

        peer->has_more = SendPeer(host, peer, true, &turn);
    }
    for (n = 0; n < host->active_count && host->quantum_left > 0u; ++n)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[(host->turn + n) % host->active_count]];

        peer->ready = SendPeer(host, peer, false, &turn) || peer->has_more;
    }
    host->turn += host->quantum_left == 0u ? n : 1u; /* who had no turn goes first */
    return turn.more || n < host->active_count;
}
