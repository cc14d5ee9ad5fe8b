/**
 * @file
 * Openings of satellites, what goes out: see sky_host_open.h. What comes back is in sky_host_open_answers.c. A satellite that others are reached
 * through is called a gate here.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define REFUSED_TRIES 3u /* handshakes that come to nothing before an association that is there is given up */

/* ---- what is known of a satellite ------------------------------------------------------------------------------------- */

bool SKY_HostOpen_HasSession(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    SKY_ASSERT(peer->opening.session.state <= SKY_SESSION_DOUBTED);
    return !host->cfg.security.is_keyed || SKY_Session_IsUsable(&peer->opening.session);
}

bool SKY_HostOpen_NeedsHandshake(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    SKY_ASSERT(peer->opening.session.state <= SKY_SESSION_DOUBTED);
    return host->cfg.security.is_keyed && peer->opening.session.state != SKY_SESSION_ESTABLISHED;
}

bool SKY_HostOpen_IsOpen(const SKY_Host_t *host, const SKY_HostPeer_t *gate)
{
    SKY_ASSERT(gate->opening.cookie_us <= host->now_us);
    SKY_ASSERT(!gate->opening.is_open || SKY_HostOpen_HasSession(host, gate));
    return gate->opening.is_open && host->now_us - gate->opening.cookie_us <= SKY_COOKIE_PERIOD_US;
}

/* Return true if a gate takes what goes to a satellite only with its cookie. What is for a keyed gate itself has a tag, which shows more. */
static bool NeedsCookie(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_HostPeer_t *gate)
{
    SKY_ASSERT(host->cfg.security.is_on);
    return !host->cfg.security.is_keyed || peer != gate;
}

SKY_HostPeer_t *SKY_HostOpen_GateOf(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry)
{
    const SKY_Addr_t addr = peer->peer.addr;
    SKY_HostPeer_t  *gate = SKY_Addr_Equal(entry, addr) ? peer : SKY_HostPieces_KnowPeer(host, entry);

    SKY_ASSERT(gate == NULL || SKY_Addr_Equal(gate->peer.addr, entry));
    return SKY_Addr_Equal(peer->peer.addr, addr) ? gate : NULL; /* else the gate has taken the place of this satellite */
}

/* Return the lane at a place of an active satellite, if its way leads to, or through, @p satellite; else NULL. */
static SKY_HostLane_t *LaneBehind(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t place, SKY_Addr_t satellite)
{
    SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];
    SKY_ASSERT(place < SKY_HOST_LANES);

    if ((peer->lanes_busy & 1u << place) == 0u)
    {
        return NULL;
    }
    SKY_ASSERT(lane->place == place);
    return SKY_Addr_Equal(peer->peer.addr, satellite) || SKY_Addr_Equal(SKY_HostExchange_Cfg(lane)->gateway, satellite) ? lane
                                                                                                                        : NULL;
}

/* ---- what goes --------------------------------------------------------------------------------------------------------- */

void SKY_HostOpen_Wake(SKY_Host_t *host, SKY_Addr_t satellite, bool lost)
{
    SKY_ASSERT(host->cfg.security.is_on);
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
        {
            SKY_HostLane_t *lane = LaneBehind(host, peer, place, satellite);

            if (lane != NULL)
            {
                peer->ready  = true;
                peer->due_us = 0;
            }
            if (lane != NULL && lost)
            {
                SKY_HostExchange_Repeat(lane, host->now_us);
            }
        }
    }
    SKY_HostQuestions_Wake(host, satellite);
}

void SKY_HostOpen_Fail(SKY_Host_t *host, SKY_HostPeer_t *failed, SKY_Status_t status, uint64_t next_us)
{
    const SKY_Addr_t addr = failed->peer.addr; /* its place may be another one's when pieces have gone on to other satellites */

    SKY_ASSERT(status != SKY_STATUS_OK);
    failed->opening.request_id = 0;
    failed->opening.tries      = 0;
    failed->opening.believe_us = 0;
    failed->opening.next_us    = next_us;
    SKY_ASSERT(next_us >= host->now_us);
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];

        for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
        {
            SKY_HostLane_t *lane = LaneBehind(host, peer, place, addr);

            if (lane != NULL)
            {
                SKY_HostEnds_Refuse(host, lane, status);
            }
        }
    }
    SKY_HostQuestions_Deny(host, addr, status);
}

uint64_t SKY_HostOpen_AgainUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    SKY_ASSERT(host->questions.patience.first_us > 0u);
    return host->now_us + SKY_HostQuestions_TimeoutUs(host, peer, 0);
}

/* Put cookie and tag on a packet to an open satellite. @param key  NULL if it has no tag @return false if it cannot go, because the session
 * has no number left */
static bool Prepare(SKY_Host_t *host, SKY_Packet_t *pkt, SKY_TagKey_t *room, const SKY_TagKey_t **key)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;

    *key = NULL;
    if (!security->is_on)
    {
        return true;
    }
    const SKY_HostPeer_t *gate = SKY_Host_PeerOf(host, pkt->gateway);

    SKY_ASSERT(SKY_Addr_Equal(gate->peer.addr, pkt->gateway)); /* it is open, so it is known */
    pkt->cookie = gate->opening.cookie;
    if (!security->is_keyed)
    {
        return true;
    }
    SKY_HostPeer_t *peer = SKY_HostPieces_KnowPeer(host, pkt->dst);

    SKY_ASSERT(SKY_Addr_Equal(peer->peer.addr, pkt->dst));
    SKY_ASSERT(SKY_HostOpen_HasSession(host, peer));
    pkt->sequence = SKY_Session_NextSequence(&peer->opening.session);
    pkt->security = peer->opening.session.suite;
    pkt->spi      = peer->opening.session.spi;
    *room         = (SKY_TagKey_t){security->crypto, peer->opening.session.place_there, NULL, NULL};
    *key          = room;
    return pkt->sequence != 0u;
}

/* Write the handshake that is due into a packet. @return OK, NO_RANDOM, or UNAUTHENTICATED: the keyring has no key for this satellite */
static SKY_Status_t MakeHandshake(SKY_Host_t *host, SKY_HostPeer_t *peer, uint64_t wait_us, uint8_t *pair, SKY_Packet_t *pkt)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;
    uint8_t                  *payload  = host->shell.Payload(host->shell.context);
    uint8_t                   word[SKY_WORD_BYTES];
    SKY_ASSERT(security->is_keyed);

    if (!SKY_HostRandom_Word(host, word))
    {
        return SKY_STATUS_NO_RANDOM;
    }
    if (!security->PairKey(security->context, peer->peer.addr, pair))
    {
        return SKY_STATUS_UNAUTHENTICATED;
    }
    peer->opening.session.next_us = host->now_us; /* the opening has a timer of its own */
    pkt->length  = (uint32_t)SKY_Session_Ask(&peer->opening.session, &security->credential, word, host->now_us, wait_us, payload);
    pkt->payload = payload;
    pkt->security = SKY_SUITE_HANDSHAKE;
    SKY_ASSERT(pkt->length == SKY_HANDSHAKE_REQUEST_BYTES);
    return SKY_STATUS_OK;
}

/*
 * Return true if a satellite's word that it does not know this host is believed now: nothing with a tag has come in the time of the handshake's
 * answer. A word that is older still says nothing: nobody waited for the satellite when its time was over.
 */
static bool IsRefused(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint64_t wait_us)
{
    const SKY_HostOpening_t *opening = &peer->opening;
    SKY_ASSERT(host->cfg.security.is_on);
    SKY_ASSERT(opening->believe_us == 0u || host->cfg.security.is_keyed);

    return opening->believe_us != 0u && host->now_us >= opening->believe_us && host->now_us - opening->believe_us <= wait_us &&
           (opening->tries >= REFUSED_TRIES || !SKY_HostOpen_HasSession(host, peer));
}

/* Ask a satellite to be opened, if that is due: with a handshake if there is no association, else for a cookie. */
static void Ask(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_HostPeer_t *gate, uint64_t endpoint)
{
    SKY_HostOpening_t  *opening = &peer->opening;
    uint8_t             pair[SKY_CRYPTO_KEY_BYTES];
    SKY_TagKey_t        room = {host->cfg.security.crypto, 0, pair, NULL};
    const SKY_TagKey_t *key  = NULL;
    SKY_Packet_t        pkt;
    SKY_ASSERT(host->cfg.security.is_on);

    if (host->now_us < opening->next_us)
    {
        return;
    }
    if (opening->request_id == 0u || opening->endpoint != endpoint || !SKY_Addr_Equal(opening->entry, gate->peer.addr))
    {
        opening->request_id = (uint64_t)(SKY_HostRandom_Number(host) | 1u) << 32 | (uint32_t)(peer - host->peers.peers);
        opening->endpoint   = endpoint;
        opening->entry      = gate->peer.addr;
        opening->tries      = 0;
        opening->believe_us = 0;
    }
    const uint64_t wait_us = SKY_HostQuestions_TimeoutUs(host, peer, opening->tries);

    if (IsRefused(host, peer, wait_us))
    {
        SKY_Session_End(&opening->session, host->cfg.security.crypto);
        opening->is_open = false;
        SKY_HostOpen_Fail(host, peer, SKY_STATUS_UNAUTHENTICATED, SKY_HostOpen_AgainUs(host, peer));
        return;
    }
    opening->believe_us = 0;
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = SKY_OP_ASSOCIATE;
    pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt.src        = host->self;
    pkt.dst        = peer->peer.addr;
    pkt.gateway    = gate->peer.addr;
    pkt.request_id = opening->request_id;
    host->counters.repeats += opening->tries > 0u ? 1u : 0u;
    ++opening->tries;
    opening->asked_us     = host->now_us;
    opening->next_us      = host->now_us + wait_us;
    opening->keep_us      = opening->next_us;
    gate->opening.keep_us = opening->next_us;
    SKY_ASSERT(opening->next_us > host->now_us); /* with an earlier time it would be sent without end */
    if (SKY_HostOpen_NeedsHandshake(host, peer))
    {
        const SKY_Status_t made = MakeHandshake(host, peer, wait_us, pair, &pkt);

        if (made == SKY_STATUS_NO_RANDOM && SKY_HostOpen_HasSession(host, peer))
        {
            return; /* the association in doubt goes on being used; the next one is asked for later */
        }
        if (made != SKY_STATUS_OK)
        {
            SKY_HostOpen_Fail(host, peer, made, host->now_us); /* nothing was sent */
            return;
        }
        key        = &room;
        pkt.cookie = gate->opening.cookie;
    }
    else if (!Prepare(host, &pkt, &room, &key))
    {
        return;
    }
    pkt.seq_count   = host->seq_count;
    host->seq_count = (uint16_t)((host->seq_count + 1u) & SKY_SEQ_COUNT_MASK);
    host->shell.Send(host->shell.context, host->now_us, endpoint, &pkt, key);
    if (pkt.security == SKY_SUITE_HANDSHAKE)
    {
        room.crypto->Wipe(room.crypto->context, pair, sizeof(pair));
    }
}

bool SKY_HostOpen_Doubt(SKY_Host_t *host, SKY_HostPeer_t *peer)
{
    SKY_HostOpening_t *opening = &peer->opening;
    SKY_ASSERT(host->cfg.security.is_keyed);

    if (!SKY_Session_Doubt(&opening->session, host->now_us))
    {
        return false;
    }
    opening->request_id = 0;
    opening->tries      = 0;
    opening->next_us    = host->now_us;
    if (SKY_Host_PeerOf(host, opening->entry) != NULL) /* else it is asked with the next packet */
    {
        Ask(host, peer, SKY_HostPieces_KnowPeer(host, opening->entry), opening->endpoint);
    }
    SKY_ASSERT(SKY_HostOpen_NeedsHandshake(host, peer));
    return true;
}

bool SKY_HostOpen_May(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry, uint64_t endpoint)
{
    SKY_HostPeer_t *gate;
    SKY_ASSERT(host->cfg.security.is_on || !host->cfg.security.is_keyed);
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);

    if (!host->cfg.security.is_on)
    {
        return true;
    }
    gate = SKY_HostOpen_GateOf(host, peer, entry);
    if (gate == NULL)
    {
        return false;
    }
    const bool needs_cookie = NeedsCookie(host, peer, gate);
    const bool is_open      = !needs_cookie || SKY_HostOpen_IsOpen(host, gate);

    if (needs_cookie && (!is_open || SKY_HostOpen_NeedsHandshake(host, gate) ||
                         host->now_us - gate->opening.cookie_us > SKY_HOST_COOKIE_FRESH_US))
    {
        Ask(host, gate, gate, endpoint);
    }
    if (is_open && SKY_HostOpen_NeedsHandshake(host, peer))
    {
        Ask(host, peer, gate, endpoint);
    }
    return is_open && SKY_HostOpen_HasSession(host, peer);
}

uint64_t SKY_HostOpen_DueUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, SKY_Addr_t entry)
{
    const SKY_HostPeer_t *gate;
    uint64_t              due_us = UINT64_MAX;
    SKY_ASSERT(host->cfg.security.is_on || !host->cfg.security.is_keyed);

    if (!host->cfg.security.is_on)
    {
        return UINT64_MAX;
    }
    gate = SKY_Host_PeerOf(host, entry);
    if (peer == NULL || gate == NULL) /* there may be memory for them later */
    {
        return host->now_us + SKY_HostQuestions_TimeoutUs(host, NULL, 0);
    }
    if (NeedsCookie(host, peer, gate) && !SKY_HostOpen_IsOpen(host, gate))
    {
        due_us = gate->opening.next_us;
    }
    else if (!SKY_HostOpen_HasSession(host, peer))
    {
        due_us = peer->opening.next_us;
    }
    return due_us > host->now_us ? due_us : host->now_us + 1u;
}

void SKY_HostOpen_Send(SKY_Host_t *host, uint64_t endpoint, SKY_Packet_t *pkt)
{
    SKY_TagKey_t        room;
    const SKY_TagKey_t *key;
    SKY_ASSERT(pkt->src.plane == 0u);
    SKY_ASSERT(pkt->src.slot == host->self.slot);
    pkt->seq_count  = host->seq_count;
    host->seq_count = (uint16_t)((host->seq_count + 1u) & SKY_SEQ_COUNT_MASK);
    if (Prepare(host, pkt, &room, &key)) /* else its session has no number left, and the packet is lost */
    {
        host->shell.Send(host->shell.context, host->now_us, endpoint, pkt, key);
    }
    SKY_ASSERT(host->seq_count <= SKY_SEQ_COUNT_MASK);
}
