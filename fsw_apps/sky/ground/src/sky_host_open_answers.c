/**
 * @file
 * Openings of satellites, what comes back: which answers are believed, and what follows from them. See sky_host_open.h.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

/* Return true for reasons why a packet did not get there, which any satellite on the way may give. */
static bool IsOfTheWay(SKY_Status_t status)
{
    switch (status)
    {
        case SKY_STATUS_BAD_VERSION:
        case SKY_STATUS_TOO_LARGE:
        case SKY_STATUS_HOP_LIMIT:
        case SKY_STATUS_UNREACHABLE:
        case SKY_STATUS_REFUSED:
        case SKY_STATUS_UNAUTHENTICATED:
        case SKY_STATUS_COOKIE:
            return true;
        default:
            return false;
    }
}

/* Return true if a packet has the tag that @p peer puts on its answers. */
static bool HasTag(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    const SKY_Session_t *session = &peer->opening.session;
    const SKY_TagKey_t   key     = {host->cfg.security.crypto, session->place_back, NULL, NULL};
    SKY_ASSERT(pkt->security == SKY_SUITE_NONE || pkt->tag != NULL);

    SKY_ASSERT(host->cfg.security.is_keyed);
    return SKY_Session_IsUsable(session) && pkt->spi == session->spi && pkt->security == session->suite &&
           SKY_Addr_Equal(pkt->src, peer->peer.addr) && SKY_Tag_IsRight(pkt, &key);
}

/* Note an answer of a satellite under the host's session: whoever said that it does not know this host was somebody else, or it was long ago. */
static void Confirm(SKY_Host_t *host, const SKY_HostPeer_t *which, uint64_t sequence)
{
    SKY_HostPeer_t *peer = &host->peers.peers[which - host->peers.peers];
    SKY_ASSERT(host->cfg.security.is_keyed);

    if (SKY_Session_Confirm(&peer->opening.session, sequence))
    {
        peer->opening.request_id = 0; /* the handshake's answer is not waited for */
        peer->opening.tries      = 0;
        peer->opening.next_us    = host->now_us;
    }
    SKY_ASSERT(SKY_Session_IsUsable(&peer->opening.session));
}

bool SKY_HostOpen_IsTrusted(SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    bool is_right = true;
    SKY_ASSERT(host->cfg.security.is_on || !host->cfg.security.is_keyed);

    if (host->cfg.security.is_keyed)
    {
        is_right = pkt->security == SKY_SUITE_NONE ? IsOfTheWay(pkt->status) : HasTag(host, peer, pkt);
    }
    else if (host->cfg.security.is_on)
    {
        is_right = pkt->security == SKY_SUITE_NONE;
    }
    host->counters.untrusted += is_right ? 0u : 1u;
    if (is_right && pkt->security != SKY_SUITE_NONE)
    {
        Confirm(host, peer, pkt->sequence);
    }
    return is_right;
}

/* Return true if a word of `unauthenticated` repeats what was sent to a satellite a moment ago. */
static bool IsEcho(const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    const SKY_Session_t *session = &peer->opening.session;
    SKY_ASSERT(session->sequence < UINT64_MAX);
    SKY_ASSERT(session->state <= SKY_SESSION_DOUBTED);

    return SKY_Session_IsUsable(session) && pkt->spi == session->spi && pkt->sequence <= session->sequence &&
           session->sequence - pkt->sequence < SKY_REPLAY_WINDOW;
}

/* Take a cookie that a satellite gives instead of serving. Packets that left before it came get the same one again. */
static void TakeRefusal(SKY_Host_t *host, SKY_HostPeer_t *who, uint64_t cookie)
{
    SKY_ASSERT(host->cfg.security.is_on);
    SKY_ASSERT(who->opening.cookie_us <= host->now_us);
    if (who->opening.cookie != cookie)
    {
        who->opening.is_open   = !host->cfg.security.is_keyed; /* who wants no tag any more is asked why first */
        who->opening.cookie    = cookie;
        who->opening.cookie_us = host->now_us;
        SKY_HostOpen_Wake(host, who->peer.addr, true);
    }
}

bool SKY_HostOpen_OnRefusal(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry, const SKY_Packet_t *pkt)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;
    SKY_HostPeer_t           *who      = NULL;
    SKY_ASSERT(security->is_on || !security->is_keyed);

    if (!security->is_on || pkt->security != SKY_SUITE_NONE ||
        (pkt->status != SKY_STATUS_COOKIE && pkt->status != SKY_STATUS_UNAUTHENTICATED))
    {
        return false;
    }
    if (SKY_Addr_Equal(pkt->src, peer->peer.addr) ||
        SKY_Addr_Equal(pkt->src, entry)) /* nobody else on the way asks for anything */
    {
        who = SKY_HostOpen_GateOf(host, peer, pkt->src);
    }
    if (who == NULL)
    {
        return true;
    }
    if (pkt->status == SKY_STATUS_COOKIE)
    {
        TakeRefusal(host, who, pkt->cookie);
    }
    else if (!security->is_keyed)
    {
        SKY_HostOpen_Fail(host, who, SKY_STATUS_UNAUTHENTICATED, SKY_HostOpen_AgainUs(host, who));
    }
    else if (IsEcho(peer, pkt))
    {
        (void)SKY_HostOpen_Doubt(host, who);
    }
    return true;
}

SKY_HostPeer_t *SKY_HostOpen_Asked(const SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    const uint32_t  index = (uint32_t)(pkt->request_id & UINT32_MAX);
    SKY_HostPeer_t *peer  = index < host->peer_used ? &host->peers.peers[index] : NULL;
    SKY_ASSERT(pkt->op == SKY_OP_ASSOCIATE);
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);

    return peer != NULL && !pkt->is_request && pkt->request_id != 0u && peer->opening.request_id == pkt->request_id &&
                   peer->opening.endpoint == endpoint
               ? peer
               : NULL;
}

/* Take a handshake's answer. @return true if there is a session now */
static bool TakeHandshake(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;
    uint8_t                   pair[SKY_CRYPTO_KEY_BYTES];
    const SKY_TagKey_t        key   = {security->crypto, 0, pair, peer->opening.session.word};
    bool                      taken = false;
    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(SKY_HostOpen_NeedsHandshake(host, peer));

    if (pkt->security == SKY_SUITE_HANDSHAKE && pkt->status == SKY_STATUS_OK &&
        security->PairKey(security->context, peer->peer.addr, pair))
    {
        taken = SKY_Tag_IsRight(pkt, &key) &&
                SKY_Session_Take(&peer->opening.session, security->crypto, pair, pkt->spi, pkt->payload, pkt->length);
        security->crypto->Wipe(security->crypto->context, pair, sizeof(pair));
    }
    SKY_ASSERT(!(taken || peer->opening.is_open) || SKY_HostOpen_HasSession(host, peer));
    return taken;
}

/*
 * Take the cookie of a satellite that has answered an opening.
 * @param greets  it is that of a handshake, which opens no way through the satellite
 * @param woken   what waited for it may go
 */
static void TakeCookie(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt, bool greets, bool woken)
{
    SKY_HostOpening_t *opening = &peer->opening;
    SKY_ASSERT(opening->request_id == pkt->request_id);
    SKY_ASSERT(opening->asked_us <= host->now_us);

    const uint64_t since_us = host->now_us - opening->asked_us;
    const uint32_t rtt_us   = since_us < UINT32_MAX ? (uint32_t)since_us : UINT32_MAX;

    if (opening->tries == 1u)
    {
        SKY_Peer_OnRtt(&peer->peer, rtt_us);
    }
    else if (peer->peer.srtt_us == 0u)
    {
        /* One cannot tell which sending was answered (Karn). The first one would give timers of a second where it was lost. */
        SKY_Peer_OnGuess(&peer->peer, rtt_us);
    }
    opening->is_open    = !greets;
    opening->cookie     = pkt->cookie;
    opening->cookie_us  = host->now_us;
    opening->request_id = 0;
    opening->tries      = 0;
    opening->next_us    = host->now_us;
    opening->keep_us    = host->now_us;
    peer->heard_us      = host->now_us;
    peer->doubt_us      = 0;
    peer->silent        = false;
    if (woken)
    {
        SKY_HostOpen_Wake(host, peer->peer.addr, false);
    }
    SKY_ASSERT(SKY_HostOpen_HasSession(host, peer));
}

/* Take the answer to an opening that asked for a cookie only. */
static bool TakeRenewal(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(peer->opening.request_id == pkt->request_id);
    SKY_ASSERT(SKY_HostOpen_HasSession(host, peer));
    if (host->cfg.security.is_keyed)
    {
        return pkt->status == SKY_STATUS_OK && HasTag(host, peer, pkt);
    }
    return pkt->security == SKY_SUITE_NONE && (pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_COOKIE);
}

/* Act on a word that the opening of a satellite was not acted upon, with a keyring. The word has no tag. */
static void OnUnknown(SKY_Host_t *host, SKY_HostPeer_t *peer, bool is_theirs, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->security == SKY_SUITE_NONE);
    SKY_ASSERT(host->cfg.security.is_keyed);
    if (!is_theirs) /* the gate has begun anew, or its cookie is too old */
    {
        SKY_HostPeer_t *gate = SKY_Addr_Equal(pkt->src, peer->opening.entry) ? SKY_HostPieces_KnowPeer(host, pkt->src) : NULL;

        if (gate != NULL && SKY_HostOpen_Doubt(host, gate))
        {
            gate->opening.is_open = false; /* its cookie opens no way through it any more */
            peer->opening.next_us = host->now_us;
            SKY_HostOpen_Wake(host, gate->peer.addr, true);
        }
    }
    else if (SKY_HostOpen_NeedsHandshake(host, peer) && pkt->status == SKY_STATUS_COOKIE)
    {
        if (peer->opening.cookie !=
            pkt->cookie) /* else it is the answer to a question of before, and the next one is on its way */
        {
            peer->opening.cookie  = pkt->cookie; /* there are many whom it has to ask who they are */
            peer->opening.next_us = host->now_us;
            SKY_HostOpen_Wake(host, peer->peer.addr, false);
        }
    }
    else if (SKY_HostOpen_NeedsHandshake(host, peer))
    {
        /* It does not know the key; or it knows none, and wants a cookie only. Or somebody else says so, and its answer is on its way. */
        peer->opening.believe_us = peer->opening.next_us > host->now_us ? peer->opening.next_us : host->now_us;
    }
    else if (IsEcho(peer, pkt))
    {
        (void)SKY_HostOpen_Doubt(host, peer);
    }
    else if (pkt->status == SKY_STATUS_COOKIE)
    {
        peer->opening.cookie = pkt->cookie; /* it begins without keys: with the cookie it says so */
    }
}

void SKY_HostOpen_OnAnswer(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    const bool is_theirs  = SKY_Addr_Equal(pkt->src, peer->peer.addr);
    const bool was_open   = SKY_HostOpen_IsOpen(host, peer);
    const bool was_usable = SKY_HostOpen_HasSession(host, peer);
    const bool asks       = SKY_HostOpen_NeedsHandshake(host, peer);
    SKY_ASSERT(peer->opening.request_id == pkt->request_id);
    SKY_ASSERT(host->cfg.security.is_on);

    if (is_theirs && (asks ? TakeHandshake(host, peer, pkt) : TakeRenewal(host, peer, pkt)))
    {
        TakeCookie(host, peer, pkt, asks, !was_open || asks);
        if (asks && was_usable)
        {
            SKY_HostOpen_Wake(host, peer->peer.addr, true); /* what was sent under the old keys came to nothing */
        }
    }
    else if (pkt->security != SKY_SUITE_NONE || !IsOfTheWay(pkt->status))
    {
        ++host->counters.untrusted;
    }
    else if (host->cfg.security.is_keyed && (pkt->status == SKY_STATUS_UNAUTHENTICATED || pkt->status == SKY_STATUS_COOKIE))
    {
        OnUnknown(host, peer, is_theirs, pkt);
    }
    else
    {
        SKY_HostOpen_Fail(host, peer, pkt->status, SKY_HostOpen_AgainUs(host, peer));
    }
}
