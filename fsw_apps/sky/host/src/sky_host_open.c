/**
 * @file
 * Openings of satellites: see sky_host_open.h. A satellite that others are reached through is called a gate here.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

/* ---- what is known of a satellite ------------------------------------------------------------------------------------- */

static bool HasSession(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    SKY_ASSERT(peer->opening.session.state <= SKY_SESSION_DOUBTED);
    return !host->cfg.security.is_keyed || SKY_Session_IsUsable(&peer->opening.session);
}

/* Return true if a satellite is to be asked for an association, because there is none or one in doubt. */
static bool NeedsHandshake(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    SKY_ASSERT(peer->opening.session.state <= SKY_SESSION_DOUBTED);
    return host->cfg.security.is_keyed && peer->opening.session.state != SKY_SESSION_ESTABLISHED;
}

/* Return true if a gate takes packets of this host now. After a cookie's shortest life it may not. */
static bool IsOpen(const SKY_Host_t *host, const SKY_HostPeer_t *gate)
{
    SKY_ASSERT(gate->opening.cookie_us <= host->now_us);
    SKY_ASSERT(!gate->opening.is_open || HasSession(host, gate));
    return gate->opening.is_open && host->now_us - gate->opening.cookie_us <= SKY_COOKIE_PERIOD_US;
}

/* Return the satellite at whose endpoint what goes to @p peer arrives; NULL if there is no memory for both. */
static SKY_HostPeer_t *GateOf(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry)
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

/* Wake up all that waits to be sent to, or through, a satellite. @param lost  what was asked before was not acted upon */
static void Wake(SKY_Host_t *host, SKY_Addr_t satellite, bool lost)
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

/* End all that waits for a satellite that will not be opened. @param next_us  it is not asked again before */
static void Fail(SKY_Host_t *host, SKY_HostPeer_t *failed, SKY_Status_t status, uint64_t next_us)
{
    const SKY_Addr_t addr = failed->peer.addr; /* its place may be another one's when pieces have gone on to other satellites */

    SKY_ASSERT(status != SKY_STATUS_OK);
    failed->opening.request_id = 0;
    failed->opening.tries      = 0;
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
                SKY_HostLanes_Refuse(host, lane, status);
            }
        }
    }
    SKY_HostQuestions_Deny(host, addr, status);
}

/* Return the time before which a satellite that has refused is not asked again. */
static uint64_t AgainUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
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
    const SKY_HostPeer_t *gate = SKY_HostPieces_FindPeer(host, pkt->gateway);

    SKY_ASSERT(SKY_Addr_Equal(gate->peer.addr, pkt->gateway)); /* it is open, so it is known */
    pkt->cookie = gate->opening.cookie;
    if (!security->is_keyed)
    {
        return true;
    }
    SKY_HostPeer_t *peer = SKY_HostPieces_KnowPeer(host, pkt->dst);

    SKY_ASSERT(SKY_Addr_Equal(peer->peer.addr, pkt->dst));
    SKY_ASSERT(HasSession(host, peer));
    pkt->sequence = SKY_Session_NextSequence(&peer->opening.session);
    pkt->security = peer->opening.session.suite;
    pkt->spi      = peer->opening.session.spi;
    *room         = (SKY_TagKey_t){security->crypto, peer->opening.session.place_there, NULL, NULL};
    *key          = room;
    return pkt->sequence != 0u;
}

static void DrawWord(const SKY_Host_t *host, uint8_t *word)
{
    SKY_ASSERT(host->cfg.security.is_keyed);
    SKY_ASSERT(SKY_WORD_BYTES % sizeof(uint32_t) == 0u);
    for (uint32_t i = 0; i < SKY_WORD_BYTES; i += 4u)
    {
        const uint32_t random = host->shell.Random(host->shell.context);

        (void)memcpy(word + i, &random, sizeof(random));
    }
}

/* Write the handshake that is due into a packet. @return false if the keyring has no key for this satellite */
static bool MakeHandshake(SKY_Host_t *host, SKY_HostPeer_t *peer, uint64_t wait_us, uint8_t *pair, SKY_Packet_t *pkt)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;
    uint8_t                  *payload  = host->shell.Payload(host->shell.context);
    uint8_t                   word[SKY_WORD_BYTES];
    SKY_ASSERT(security->is_keyed);

    if (!security->PairKey(security->context, peer->peer.addr, pair))
    {
        return false;
    }
    DrawWord(host, word);
    peer->opening.session.next_us = host->now_us; /* the opening has a timer of its own */
    pkt->length  = (uint32_t)SKY_Session_Ask(&peer->opening.session, &security->credential, word, host->now_us, wait_us, payload);
    pkt->payload = payload;
    pkt->security = SKY_SUITE_HANDSHAKE;
    SKY_ASSERT(pkt->length == SKY_HANDSHAKE_REQUEST_BYTES);
    return true;
}

/* Ask a satellite to be opened, if that is due. */
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
        opening->request_id =
            (uint64_t)(host->shell.Random(host->shell.context) | 1u) << 32 | (uint32_t)(peer - host->peers.peers);
        opening->asked_us = host->now_us;
        opening->endpoint = endpoint;
        opening->entry    = gate->peer.addr;
        opening->tries    = 0;
    }
    const uint64_t wait_us = SKY_HostQuestions_TimeoutUs(host, peer, opening->tries);

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
    opening->next_us      = host->now_us + wait_us;
    opening->keep_us      = opening->next_us;
    gate->opening.keep_us = opening->next_us;
    SKY_ASSERT(opening->next_us > host->now_us); /* with an earlier time it would be sent without end */
    if (NeedsHandshake(host, peer))
    {
        if (!MakeHandshake(host, peer, wait_us, pair, &pkt))
        {
            Fail(host, peer, SKY_STATUS_UNAUTHENTICATED, host->now_us); /* nothing was sent */
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

/* Ask a satellite for another association, because it is said not to know this host any more. The one of before goes on being used, and what
 * was sent under it is repeated once there is another one. So a forged word costs one handshake. @return false if it is too soon for that */
static bool Doubt(SKY_Host_t *host, SKY_HostPeer_t *peer)
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
    if (SKY_HostPieces_FindPeer(host, opening->entry) != NULL) /* else it is asked with the next packet */
    {
        Ask(host, peer, SKY_HostPieces_KnowPeer(host, opening->entry), opening->endpoint);
    }
    SKY_ASSERT(NeedsHandshake(host, peer));
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
    gate = GateOf(host, peer, entry);
    if (gate == NULL)
    {
        return false;
    }
    const bool is_open = IsOpen(host, gate);

    if (!is_open || host->now_us - gate->opening.cookie_us > SKY_HOST_COOKIE_FRESH_US)
    {
        Ask(host, gate, gate, endpoint);
    }
    if (is_open && NeedsHandshake(host, peer))
    {
        Ask(host, peer, gate, endpoint);
    }
    return is_open && HasSession(host, peer);
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
    gate = SKY_HostPieces_FindPeer(host, entry);
    if (peer == NULL || gate == NULL) /* there may be memory for them later */
    {
        return host->now_us + SKY_HostQuestions_TimeoutUs(host, NULL, 0);
    }
    if (!IsOpen(host, gate))
    {
        due_us = gate->opening.next_us;
    }
    else if (!HasSession(host, peer))
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

/* ---- what comes -------------------------------------------------------------------------------------------------------- */

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
        Wake(host, who->peer.addr, true);
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
        who = GateOf(host, peer, pkt->src);
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
        Fail(host, who, SKY_STATUS_UNAUTHENTICATED, AgainUs(host, who));
    }
    else if (IsEcho(peer, pkt))
    {
        (void)Doubt(host, who);
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
    SKY_ASSERT(NeedsHandshake(host, peer));

    if (pkt->security == SKY_SUITE_HANDSHAKE && pkt->status == SKY_STATUS_OK &&
        security->PairKey(security->context, peer->peer.addr, pair))
    {
        taken = SKY_Tag_IsRight(pkt, &key) &&
                SKY_Session_Take(&peer->opening.session, security->crypto, pair, pkt->spi, pkt->payload, pkt->length);
        security->crypto->Wipe(security->crypto->context, pair, sizeof(pair));
    }
    peer->opening.is_open = peer->opening.is_open && HasSession(host, peer);
    return taken;
}

/* Take the cookie of a satellite that is open now. @param woken  what waited for it may go */
static void TakeCookie(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt, bool woken)
{
    SKY_HostOpening_t *opening = &peer->opening;
    SKY_ASSERT(opening->request_id == pkt->request_id);
    SKY_ASSERT(opening->asked_us <= host->now_us);

    if (opening->tries == 1u || peer->peer.srtt_us == 0u) /* the first sending gives the upper bound */
    {
        const uint64_t rtt_us = host->now_us - opening->asked_us;

        SKY_Peer_OnRtt(&peer->peer, rtt_us < UINT32_MAX ? (uint32_t)rtt_us : UINT32_MAX);
    }
    /* A satellite behind another one knows no endpoint, and gives no cookie: when it becomes an entry satellite it is asked for one. */
    opening->is_open    = !host->cfg.security.is_keyed || pkt->cookie != SKY_COOKIE_NONE;
    opening->cookie     = pkt->cookie;
    opening->cookie_us  = host->now_us;
    opening->request_id = 0;
    opening->tries      = 0;
    opening->next_us    = host->now_us;
    opening->keep_us    = host->now_us;
    peer->heard_us      = host->now_us;
    peer->silent        = false;
    if (woken)
    {
        Wake(host, peer->peer.addr, false);
    }
    SKY_ASSERT(HasSession(host, peer));
}

/* Take the answer to an opening that asked for a cookie only. */
static bool TakeRenewal(const SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(peer->opening.request_id == pkt->request_id);
    SKY_ASSERT(HasSession(host, peer));
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

        if (gate != NULL && Doubt(host, gate))
        {
            gate->opening.is_open = false; /* its cookie opens no way through it any more */
            peer->opening.next_us = host->now_us;
            Wake(host, gate->peer.addr, true);
        }
    }
    else if (NeedsHandshake(host, peer) && pkt->status == SKY_STATUS_COOKIE)
    {
        if (peer->opening.cookie !=
            pkt->cookie) /* else it is the answer to a question of before, and the next one is on its way */
        {
            peer->opening.cookie  = pkt->cookie; /* there are many whom it has to ask who they are */
            peer->opening.next_us = host->now_us;
            Wake(host, peer->peer.addr, false);
        }
    }
    else if (NeedsHandshake(host, peer))
    {
        SKY_Session_End(&peer->opening.session, host->cfg.security.crypto);
        peer->opening.is_open = false;
        Fail(host, peer, SKY_STATUS_UNAUTHENTICATED,
             AgainUs(host, peer)); /* it does not know the key; or it knows none, and wants a cookie only */
    }
    else if (IsEcho(peer, pkt))
    {
        (void)Doubt(host, peer);
    }
    else if (pkt->status == SKY_STATUS_COOKIE)
    {
        peer->opening.cookie = pkt->cookie; /* it begins without keys: with the cookie it says so */
    }
}

void SKY_HostOpen_OnAnswer(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt)
{
    const bool is_theirs  = SKY_Addr_Equal(pkt->src, peer->peer.addr);
    const bool was_open   = IsOpen(host, peer);
    const bool was_usable = HasSession(host, peer);
    const bool asks       = NeedsHandshake(host, peer);
    SKY_ASSERT(peer->opening.request_id == pkt->request_id);
    SKY_ASSERT(host->cfg.security.is_on);

    if (is_theirs && (asks ? TakeHandshake(host, peer, pkt) : TakeRenewal(host, peer, pkt)))
    {
        TakeCookie(host, peer, pkt, !was_open);
        if (asks && was_usable)
        {
            Wake(host, peer->peer.addr, true); /* what was sent under the old keys came to nothing */
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
        Fail(host, peer, pkt->status, AgainUs(host, peer));
    }
}
