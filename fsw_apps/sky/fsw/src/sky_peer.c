/**
 * @file
 * State of the satellite at the other end of a transfer (window, round trip), and functions of both kinds of transfer.
 */
#include "sky_transfer.h"

#include "sky_defaults.h"

#include <string.h>

#include "sky_assert.h"

#define PEER_WINDOW_MIN         2u /* a single chunk would wait a whole round trip for the next */
#define PEER_GRACE_QUARTERS_MAX 4u
#define PEER_NARROW_ROUNDS      64u

/* Links lose packets without being full. If each loss counted as congestion, such a link would never fill. So a few losses (as in BBR
 * version 2) change nothing; a queue that overflows loses more than that at once. More losses only end slow start while no queue is
 * seen, up to a quarter of all packets: links that drop what is too much for them, without a queue, waste a third of what is useful. */
#define PEER_LOSS_TOLERATED(window) (1u + (window) / 32u)
#define PEER_LOSS_SHARE_MOST        (SKY_PEER_ALL / 4u)
#define PEER_LOSS_MEMORY            32u                            /* packets that the share of lost ones is over, about */
#define PEER_QUEUE_LIMIT(least_us)  ((least_us) + (least_us) / 4u) /* later packets have waited in a queue */
#define PEER_QUEUE_ROUNDS           2u /* round trips for which a queue that was seen counts: losses are noticed late */
#define PEER_LEAST_MEMORY           1024u /* round trips until the least one is forgotten, about: the sky turns, and paths become longer */
#define PEER_GAP_MEMORY             32u /* packets until the longest time between two is forgotten, about */
#define PEER_SILENCES_BORNE         1u  /* time-outs, one after another, that count as lost packets */

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

static uint32_t at_least(uint32_t value, uint32_t limit)
{
    return value > limit ? value : limit;
}

SKY_PeerCfg_t SKY_PeerCfg_OfHost(uint32_t window_max, uint32_t burst)
{
    const SKY_PeerCfg_t cfg = {.window_initial = 2 * burst,
                               .window_max     = window_max,
                               .burst          = burst,
                               .rto_initial_us = SKY_HOST_RTO_INITIAL_US,
                               .rto_min_us     = SKY_HOST_RTO_MIN_US,
                               .rto_max_us     = SKY_HOST_RTO_MAX_US};

    return cfg;
}

void SKY_Peer_Init(SKY_Peer_t *peer, const SKY_PeerCfg_t *cfg, SKY_Addr_t addr)
{
    (void)memset(peer, 0, sizeof(*peer));
    peer->cfg                = *cfg;
    peer->cfg.window_max     = at_most(at_least(cfg->window_max, PEER_WINDOW_MIN), SKY_LIMIT_CHUNK_SET);
    peer->cfg.window_initial = at_most(at_least(cfg->window_initial, PEER_WINDOW_MIN), peer->cfg.window_max);
    peer->cfg.burst          = at_most(cfg->burst == 0 ? peer->cfg.window_initial : cfg->burst, peer->cfg.window_max);
    peer->cfg.rto_min_us     = at_least(cfg->rto_min_us, 1);
    peer->cfg.rto_max_us     = at_least(cfg->rto_max_us, peer->cfg.rto_min_us);
    peer->cfg.rto_initial_us = at_most(at_least(cfg->rto_initial_us, peer->cfg.rto_min_us), peer->cfg.rto_max_us);
    peer->addr               = addr;
    peer->window             = peer->cfg.window_initial;
    peer->threshold          = peer->cfg.window_max;
    peer->credit             = SKY_LIMIT_CHUNK_SET;
    peer->rto_us             = peer->cfg.rto_initial_us;
    peer->grace_quarters     = 1;
    SKY_ASSERT(peer->window >= PEER_WINDOW_MIN);
    SKY_ASSERT(peer->window <= peer->cfg.window_max);
    SKY_ASSERT(peer->cfg.burst >= 1);
    SKY_ASSERT(peer->cfg.burst <= peer->cfg.window_max);
    SKY_ASSERT(peer->rto_us >= peer->cfg.rto_min_us);
    SKY_ASSERT(peer->rto_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->threshold >= peer->window);
    SKY_ASSERT(peer->outstanding == 0);
}

/* RFC 6298, section 2: gains 1/8 and 1/4, timer at four times the variation above the mean. On a steady link the variation goes
 * to nothing; rto_min_us then keeps late answers from causing needless repeats. */
void SKY_Peer_OnRtt(SKY_Peer_t *peer, uint32_t rtt_us)
{
    const uint32_t rtt      = at_least(at_most(rtt_us, peer->cfg.rto_max_us), 1);
    const bool     is_first = peer->srtt_us == 0 || peer->is_guess;

    peer->is_guess = false;
    if (is_first)
    {
        peer->srtt_us   = rtt;
        peer->rttvar_us = rtt / 2;
    }
    else
    {
        const uint32_t off = rtt > peer->srtt_us ? rtt - peer->srtt_us : peer->srtt_us - rtt;

        peer->rttvar_us = (uint32_t)((3ull * peer->rttvar_us + off) / 4);
        peer->srtt_us   = at_least((uint32_t)((7ull * peer->srtt_us + rtt) / 8), 1);
    }
    const uint32_t creep = peer->least_us / PEER_LEAST_MEMORY + 1u;

    peer->least_us     = is_first ? rtt : at_most(peer->least_us + creep, rtt);
    peer->silences     = 0;
    const uint64_t rto = (uint64_t)peer->srtt_us + at_least(at_most(peer->rttvar_us, UINT32_MAX / 4) * 4, peer->cfg.rto_min_us);

    peer->rto_us = rto < peer->cfg.rto_max_us ? (uint32_t)rto : peer->cfg.rto_max_us;
    SKY_ASSERT(peer->srtt_us > 0); /* a mean of 0 would mean that nothing was measured */
    SKY_ASSERT(peer->rto_us >= peer->cfg.rto_min_us);
    SKY_ASSERT(peer->rto_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->srtt_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->rttvar_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->rto_us >= peer->srtt_us); /* with a shorter timer every answer would come too late */
    SKY_ASSERT(peer->least_us >= 1);
    SKY_ASSERT(peer->least_us <= rtt);
}

void SKY_Peer_OnGuess(SKY_Peer_t *peer, uint32_t rtt_us)
{
    SKY_ASSERT(peer->srtt_us == 0);
    SKY_Peer_OnRtt(peer, rtt_us);
    peer->is_guess = true;
    SKY_ASSERT(peer->srtt_us > 0);
}

/* Return the round trip, or a guess while none was measured. */
static uint32_t peer_round_us(const SKY_Peer_t *peer)
{
    SKY_ASSERT(peer->rto_us > 0);
    SKY_ASSERT(peer->rto_us <= peer->cfg.rto_max_us);
    return peer->srtt_us == 0 ? peer->rto_us : peer->srtt_us;
}

void SKY_Peer_OnAge(SKY_Peer_t *peer, uint64_t now_us, uint64_t age_us)
{
    SKY_ASSERT(peer->least_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->rto_us > 0);
    if (peer->least_us != 0 && age_us > PEER_QUEUE_LIMIT(peer->least_us))
    {
        peer->queue_us = now_us + (uint64_t)PEER_QUEUE_ROUNDS * peer_round_us(peer);
        SKY_ASSERT(peer->queue_us > now_us);
    }
}

void SKY_Peer_OnGap(SKY_Peer_t *peer, uint64_t gap_us)
{
    const uint32_t gap  = gap_us < peer->cfg.rto_max_us ? at_least((uint32_t)gap_us, 1) : peer->cfg.rto_max_us;
    const uint32_t fall = peer->longest_us / PEER_GAP_MEMORY;

    peer->longest_us = at_least(peer->longest_us - fall, gap);
    SKY_ASSERT(peer->longest_us >= 1);
    SKY_ASSERT(peer->longest_us <= peer->cfg.rto_max_us);
}

/* Take packets into the share of lost ones. */
static void peer_weigh(SKY_Peer_t *peer, uint32_t packets, uint32_t part)
{
    SKY_ASSERT(part <= SKY_PEER_ALL);
    for (uint32_t i = 0; i < packets && peer->loss_share != part; ++i)
    {
        peer->loss_share = (peer->loss_share * (PEER_LOSS_MEMORY - 1u) + part) / PEER_LOSS_MEMORY;
    }
    SKY_ASSERT(peer->loss_share <= SKY_PEER_ALL);
}

void SKY_Peer_OnDelivered(SKY_Peer_t *peer, uint32_t chunks)
{
    SKY_ASSERT(chunks >= 1);
    SKY_ASSERT(peer->window >= PEER_WINDOW_MIN);
    peer->silences = 0;
    peer_weigh(peer, chunks, 0);
    if (peer->window < peer->threshold)
    {
        peer->window = at_most(peer->window + chunks, peer->threshold);
        SKY_ASSERT(peer->window <= peer->threshold);
        return;
    }
    peer->acked_in_window += chunks;
    if (peer->acked_in_window >= peer->window)
    {
        peer->acked_in_window = 0;
        peer->window          = at_most(peer->window + 1, peer->cfg.window_max);
    }
    SKY_ASSERT(peer->window <= peer->cfg.window_max);
    SKY_ASSERT(peer->acked_in_window < peer->window);
}

static void peer_shrink(SKY_Peer_t *peer, uint64_t now_us)
{
    if (now_us < peer->recovered_us)
    {
        return;
    }
    peer->threshold       = at_least(peer->window / 2, PEER_WINDOW_MIN);
    peer->window          = peer->threshold;
    peer->acked_in_window = 0;
    peer->recovered_us    = now_us + peer_round_us(peer);
    SKY_ASSERT(peer->window >= PEER_WINDOW_MIN);
    SKY_ASSERT(peer->recovered_us > now_us);
    SKY_ASSERT(peer->window == peer->threshold);
}

static void peer_round(SKY_Peer_t *peer, uint64_t now_us)
{
    if (now_us >= peer->round_end_us)
    {
        peer->round_end_us  = now_us + peer_round_us(peer);
        peer->lost_in_round = 0;
        peer->late_in_round = false;
    }
    SKY_ASSERT(peer->round_end_us > now_us);
}

/* Return true if packets wait in a queue, or may do so, as nothing was measured. */
static bool peer_is_queued(const SKY_Peer_t *peer, uint64_t now_us)
{
    SKY_ASSERT((peer->srtt_us == 0) == (peer->least_us == 0));
    SKY_ASSERT(peer->queue_us == 0 || peer->least_us > 0);
    return peer->srtt_us == 0 || now_us < peer->queue_us;
}

void SKY_Peer_OnLoss(SKY_Peer_t *peer, uint64_t now_us, uint32_t chunks, uint32_t packets)
{
    SKY_ASSERT(packets >= 1);
    SKY_ASSERT(packets <= chunks);
    peer_round(peer, now_us);
    peer_weigh(peer, packets, SKY_PEER_ALL);
    peer->lost_in_round += chunks;
    if (peer->lost_in_round > PEER_LOSS_TOLERATED(peer->window))
    {
        peer->threshold = at_most(peer->threshold, peer->window);
        if (peer_is_queued(peer, now_us) || peer->loss_share > PEER_LOSS_SHARE_MOST)
        {
            peer_shrink(peer, now_us);
            SKY_ASSERT(now_us < peer->recovered_us);
        }
    }
    SKY_ASSERT(peer->lost_in_round >= chunks);
}

void SKY_Peer_OnLate(SKY_Peer_t *peer, uint64_t now_us)
{
    peer_round(peer, now_us);
    if (!peer->late_in_round && peer->grace_quarters < PEER_GRACE_QUARTERS_MAX)
    {
        ++peer->grace_quarters;
    }
    peer->late_in_round = true;
    peer->narrow_us     = now_us + (uint64_t)PEER_NARROW_ROUNDS * peer_round_us(peer);
    SKY_ASSERT(peer->grace_quarters >= 1);
    SKY_ASSERT(peer->grace_quarters <= PEER_GRACE_QUARTERS_MAX);
    SKY_ASSERT(peer->late_in_round);
    SKY_ASSERT(peer->narrow_us > now_us);
}

uint32_t SKY_Peer_GraceUs(SKY_Peer_t *peer, uint64_t now_us)
{
    if (now_us >= peer->narrow_us)
    {
        peer->grace_quarters = 1;
    }
    SKY_ASSERT(peer->grace_quarters >= 1);
    SKY_ASSERT(peer->grace_quarters <= PEER_GRACE_QUARTERS_MAX);
    return at_least(peer_round_us(peer) / 4 * peer->grace_quarters, peer->rttvar_us);
}

uint32_t SKY_Peer_TailUs(SKY_Peer_t *peer, uint64_t now_us)
{
    const uint32_t grace_us = SKY_Peer_GraceUs(peer, now_us);

    if (peer->longest_us == 0 || now_us < peer->narrow_us) /* not long ago packets came later than they were waited for */
    {
        return peer->rto_us;
    }
    const uint64_t twice_us = 2ull * peer->longest_us;
    const uint32_t usual_us = twice_us < peer->rto_us ? (uint32_t)twice_us : peer->rto_us;
    SKY_ASSERT(peer->rto_us >= peer->cfg.rto_min_us);
    SKY_ASSERT(usual_us <= peer->rto_us);
    return at_most(at_least(at_least(grace_us, peer->cfg.rto_min_us), usual_us), peer->rto_us);
}

/* Back off once for all shares of one satellite, because they run out of time together. */
void SKY_Peer_OnTimeout(SKY_Peer_t *peer, uint64_t now_us)
{
    if (now_us < peer->recovered_us)
    {
        return;
    }
    ++peer->silences;
    peer_weigh(peer, 1, SKY_PEER_ALL); /* one packet, the request, if only that was lost */
    if (peer->silences > PEER_SILENCES_BORNE || now_us < peer->narrow_us || peer_is_queued(peer, now_us))
    {
        peer_shrink(peer, now_us);
        peer->rto_us = peer->rto_us < peer->cfg.rto_max_us / 2 ? peer->rto_us * 2 : peer->cfg.rto_max_us;
    }
    peer->recovered_us = now_us + peer->rto_us / 2;
    SKY_ASSERT(peer->rto_us <= peer->cfg.rto_max_us);
    SKY_ASSERT(peer->rto_us >= peer->cfg.rto_min_us);
    SKY_ASSERT(peer->recovered_us >= now_us);
    SKY_ASSERT(peer->silences >= 1);
}

void SKY_Peer_OnCredit(SKY_Peer_t *peer, uint32_t credit)
{
    peer->credit = at_most(at_least(credit, 1), SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(peer->credit >= 1);
    SKY_ASSERT(peer->credit <= SKY_LIMIT_CHUNK_SET);
}

bool SKY_ShareCfg_Check(const SKY_ShareCfg_t *cfg)
{
    const bool share_ok = cfg->stride >= 1 && cfg->count >= 1 && cfg->count <= SKY_LIMIT_CHUNK_SET &&
                          cfg->base + (uint64_t)(cfg->count - 1) * cfg->stride < cfg->stripe.chunk_total;
    const bool packet_ok = cfg->packet_bytes > SKY_RESPONSE_OVERHEAD && cfg->packet_bytes <= SKY_LIMIT_PACKET_BYTES &&
                           (uint64_t)(cfg->packet_bytes - SKY_RESPONSE_OVERHEAD) * SKY_LIMIT_FRAGMENTS >= cfg->stripe.chunk_len;

    return SKY_Stripe_Check(&cfg->stripe) && share_ok && packet_ok;
}

bool SKY_ShareCfg_Owns(const SKY_ShareCfg_t *cfg, const SKY_Packet_t *pkt)
{
    return !pkt->is_request && SKY_REQUEST_FIRST(pkt->request_id) == SKY_REQUEST_FIRST(cfg->request_id) &&
           pkt->tenant == cfg->tenant && memcmp(pkt->key, cfg->key, SKY_KEY_BYTES) == 0;
}

bool SKY_ShareCfg_HasParity(const SKY_ShareCfg_t *cfg)
{
    SKY_ASSERT(cfg->count >= 1);
    SKY_ASSERT(cfg->count <= SKY_LIMIT_CHUNK_SET);
    for (uint32_t i = 0; i < cfg->count && cfg->stripe.code_m > 0; ++i)
    {
        if (SKY_Stripe_IsParity(&cfg->stripe, cfg->base + i * cfg->stride))
        {
            return true;
        }
    }
    return false;
}

bool SKY_ShareCfg_IsChunk(const SKY_ShareCfg_t *cfg, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(cfg->count >= 1);
    SKY_ASSERT(pkt->status == SKY_STATUS_OK);

    return pkt->block_version == cfg->version && pkt->content == cfg->content && SKY_Stripe_IsChunk(&cfg->stripe, pkt);
}

SKY_ShareState_t SKY_ShareState_OfError(SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK); /* a success is no error */
    switch (status)
    {
        case SKY_STATUS_BUSY:    /* ask again later */
        case SKY_STATUS_BAD_CRC: /* the packet was damaged on its way */
            return SKY_SHARE_RUNNING;
        default:
            return SKY_SHARE_REFUSED;
    }
}

void SKY_ShareCfg_Request(const SKY_ShareCfg_t *cfg, const SKY_Peer_t *peer, uint64_t now_us, uint8_t op, uint16_t number,
                          SKY_Packet_t *req)
{
    SKY_ASSERT(cfg->count >= 1);
    SKY_ASSERT(cfg->count <= SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(cfg->stride >= 1);
    (void)memset(req, 0, sizeof(*req));
    req->is_request    = true;
    req->apid          = SKY_APID_KVC;
    req->seq_flags     = SKY_SEQ_WHOLE;
    req->op            = op;
    req->hop_limit     = SKY_LIMIT_HOP_LIMIT;
    req->src           = cfg->self;
    req->dst           = peer->addr;
    req->gateway       = cfg->gateway;
    req->tenant        = cfg->tenant;
    req->epoch         = cfg->epoch;
    req->track         = cfg->track;
    req->content       = cfg->content;
    req->block_version = cfg->version;
    req->request_id    = SKY_REQUEST_FIRST(cfg->request_id) | number;
    /* SKY_ShareCfg_Owns has shown that the answer is this share's. */
    SKY_ASSERT(SKY_REQUEST_FIRST(req->request_id) == SKY_REQUEST_FIRST(cfg->request_id));
    SKY_Stripe_ToPacket(&cfg->stripe, req);
    (void)memcpy(req->key, cfg->key, SKY_KEY_BYTES);
    if (cfg->deadline_us != UINT64_MAX)
    {
        /* The time is rounded up, because 0 would mean none. */
        const uint64_t left_ms = cfg->deadline_us > now_us ? (cfg->deadline_us - now_us - 1) / 1000 + 1 : 1;

        req->deadline_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
        SKY_ASSERT(req->deadline_ms > 0);
    }
}

uint32_t SKY_Packet_CutPart(SKY_Packet_t *pkt, const uint8_t *chunk, uint32_t offset, uint32_t packet_bytes)
{
    const uint32_t overhead = pkt->is_request ? SKY_REQUEST_OVERHEAD : SKY_RESPONSE_OVERHEAD;
    const uint32_t room     = packet_bytes - overhead;
    const uint32_t left     = pkt->chunk_len - offset;
    const bool     is_last  = left <= room;
    SKY_ASSERT(packet_bytes > overhead);
    SKY_ASSERT(packet_bytes <= SKY_LIMIT_PACKET_BYTES);
    SKY_ASSERT(offset < pkt->chunk_len); /* empty parts would go on without end */

    pkt->offset  = offset;
    pkt->length  = is_last ? left : room;
    pkt->payload = chunk + offset;
    if (offset == 0)
    {
        pkt->seq_flags = is_last ? SKY_SEQ_WHOLE : SKY_SEQ_FIRST;
    }
    else
    {
        pkt->seq_flags = is_last ? SKY_SEQ_LAST : SKY_SEQ_CONTINUE;
    }
    SKY_ASSERT(pkt->length >= 1);
    SKY_ASSERT(pkt->length <= pkt->chunk_len - offset);
    return offset + pkt->length;
}
