/**
 * @file
 * Packets that come to a host: each goes to the lane, question, opening or listener that waits for it.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define REDRAWS_MAX 8u /* redraws of the host number until a block is done: so many collisions in a row are no accident */

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
    const SKY_HostPeer_t *peer = SKY_Host_PeerOf(host, pkt->src);
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
