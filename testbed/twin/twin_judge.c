/**
 * @file
 * Did anything come of what the attacker has sent? The satellite or host is looked at before and after each of its packets. What has
 * changed, or was served, is a violation; what was not is counted by the reason why.
 *
 * Some things any stranger on the path may do, and they are no violation: a word without a tag that a packet did not get there ends an
 * attempt, and one that repeats index and number of a packet ends a session, so that a new one begins (docs/security.md).
 */
#include "twin_priv.h"

bool SKYT_Judge_IsOf(const SKYT_Twin_t *twin, uint32_t packet)
{
    return twin->attack != NULL && packet != SKYT_NONE &&
           (twin->packets[packet].mark.kind != SKYT_PACKET_SOUND || twin->packets[packet].mark.record != 0);
}

void SKYT_Judge_SeeNode(SKYT_Twin_t *twin, uint32_t index, SKYT_Sight_t *sight)
{
    const SKYT_Node_t    *node     = &twin->nodes[index];
    const SKY_Security_t *security = &node->security;

    *sight                 = (SKYT_Sight_t){0};
    sight->unauthenticated = security->counters.unauthenticated;
    sight->replayed        = security->counters.replayed;
    sight->no_cookie       = security->counters.no_cookie;
    sight->refused         = security->counters.refused;
    sight->undecoded       = node->core.undecoded;
    sight->delivered       = node->core.router.counters.delivered;
    sight->granted         = (uint64_t)security->associations.stats.begun + security->associations.stats.repeated;
    sight->digest          = node->core.map.digest;
    sight->usable          = node->core.router.usable;
    sight->obeyed          = (uint64_t)node->core.relayed_up + node->core.relay_errors;
    sight->lease_us        = node->listener.until_us;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        sight->heard_us[link] = node->core.hello.links[link].heard_us;
    }
    for (uint32_t i = 0; i < security->cfg.session_max; ++i)
    {
        sight->sessions += security->sessions[i].session.state == SKY_SESSION_ESTABLISHED ? 1u : 0u;
    }
    twin->is_served = false;
}

void SKYT_Judge_SeeHost(const SKY_Host_t *host, SKYT_Sight_t *sight)
{
    *sight           = (SKYT_Sight_t){0};
    sight->chunks    = host->counters.chunks;
    sight->untrusted = host->counters.untrusted;
    sight->stale     = host->counters.stale;
    sight->undecoded = host->counters.undecoded;
    sight->ended     = host->questions.ended_last;
    for (uint32_t i = 0; i < host->peer_used; ++i)
    {
        sight->sessions += host->peers.peers[i].opening.session.state == SKY_SESSION_ESTABLISHED ? 1u : 0u;
    }
}

static void refuse(SKYT_Twin_t *twin, const SKYT_Sight_t *before, const SKYT_Sight_t *after)
{
    SKYT_Refusal_t why = SKYT_REFUSAL_IGNORED;

    if (after->undecoded != before->undecoded)
    {
        why = SKYT_REFUSAL_MALFORMED;
    }
    else if (after->unauthenticated != before->unauthenticated || after->untrusted != before->untrusted)
    {
        why = SKYT_REFUSAL_UNAUTHENTICATED;
    }
    else if (after->replayed != before->replayed)
    {
        why = SKYT_REFUSAL_REPLAYED;
    }
    else if (after->no_cookie != before->no_cookie)
    {
        why = SKYT_REFUSAL_NO_COOKIE;
    }
    else if (after->stale != before->stale)
    {
        why = SKYT_REFUSAL_STALE;
    }
    ++twin->counters.refusals[why];
}

static void fail(SKYT_Twin_t *twin, uint32_t node, const char *text)
{
    SKYT_Check_Fail(twin, SKYT_INVARIANT_AUTHENTIC, node, SKYT_NONE, SKYT_NONE, SKYT_NONE, text);
}

/* ---- satellites ---------------------------------------------------------------------------------------------------------------- */

/* Return true if a neighbour counts as there because of the packet, or links or routes are known otherwise. */
static bool has_learned(const SKYT_Sight_t *before, const SKYT_Sight_t *after)
{
    bool learned = before->digest != after->digest || before->usable != after->usable;

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        learned = learned || before->heard_us[link] != after->heard_us[link];
    }
    return learned;
}

/* Return true if a request was admitted: it was delivered, and not refused. */
static bool is_admitted(const SKYT_Sight_t *before, const SKYT_Sight_t *after)
{
    return before->delivered != after->delivered && before->unauthenticated == after->unauthenticated &&
           before->replayed == after->replayed && before->refused == after->refused && before->no_cookie == after->no_cookie;
}

static void judge_false(SKYT_Twin_t *twin, uint32_t node, bool admitted, const SKYT_Sight_t *before, const SKYT_Sight_t *after)
{
    if (twin->is_served || admitted || before->obeyed != after->obeyed || before->lease_us != after->lease_us)
    {
        fail(twin, node, "a satellite serves a packet that was forged or changed");
    }
    else if (has_learned(before, after))
    {
        fail(twin, node, "a satellite learns of a neighbour or of links from a packet that was forged or changed");
    }
    else if (before->granted != after->granted || before->sessions < after->sessions)
    {
        fail(twin, node, "a satellite associates with whoever has forged or changed a packet");
    }
    else
    {
        refuse(twin, before, after);
    }
}

/* An answer counts by its request, so that it may be looked at twice; and a handshake is answered again. */
static void judge_again(SKYT_Twin_t *twin, uint32_t node, bool is_request, bool admitted, const SKYT_Sight_t *before,
                        const SKYT_Sight_t *after)
{
    if ((is_request && (twin->is_served || admitted)) || before->obeyed != after->obeyed || before->lease_us != after->lease_us)
    {
        fail(twin, node, "a satellite serves a packet that it has served before");
    }
    else if (has_learned(before, after))
    {
        fail(twin, node, "a satellite takes a packet that was sent again for a sign of life, or for news of links");
    }
    else if (before->sessions < after->sessions)
    {
        fail(twin, node, "a session begins by an answer that was sent again");
    }
    else
    {
        refuse(twin, before, after);
    }
}

void SKYT_Judge_Node(SKYT_Twin_t *twin, uint32_t node, uint32_t packet, const SKYT_Sight_t *before)
{
    const SKYT_Mark_t mark   = twin->packets[packet].mark;
    const bool        served = twin->is_served;
    SKYT_Sight_t      after;
    SKY_Packet_t      pkt = {0};

    SKYT_Judge_SeeNode(twin, node, &after);
    twin->is_served = served;
    (void)SKY_Packet_Decode(SKYT_Network_DataOf(twin, packet), twin->packets[packet].len, &pkt);
    const bool is_handshake = pkt.op == SKY_OP_ASSOCIATE && pkt.security == SKY_SUITE_HANDSHAKE;
    const bool is_here      = SKY_Addr_Equal(pkt.dst, SKYT_AddrOf(twin, node));
    const bool admitted     = pkt.is_request && is_here && !is_handshake && is_admitted(before, &after);

    switch (mark.kind)
    {
        case SKYT_PACKET_FALSE:
            judge_false(twin, node, admitted, before, &after);
            break;
        case SKYT_PACKET_AGAIN:
            judge_again(twin, node, pkt.is_request, admitted, before, &after);
            break;
        default:
            if (admitted || (is_handshake && before->granted != after.granted) ||
                (!pkt.is_request && before->delivered != after.delivered))
            {
                SKYT_Attack_NoteActed(twin, mark.record);
            }
            break;
    }
}

/* ---- hosts ------------------------------------------------------------------------------------------------------------------------- */

/* Return true for reasons why a packet did not get there, which are taken without a tag. */
static bool is_of_the_way(const SKY_Packet_t *pkt)
{
    return pkt->security == SKY_SUITE_NONE &&
           (pkt->status == SKY_STATUS_BAD_VERSION || pkt->status == SKY_STATUS_TOO_LARGE || pkt->status == SKY_STATUS_HOP_LIMIT ||
            pkt->status == SKY_STATUS_UNREACHABLE || pkt->status == SKY_STATUS_REFUSED ||
            pkt->status == SKY_STATUS_UNAUTHENTICATED || pkt->status == SKY_STATUS_COOKIE);
}

void SKYT_Judge_Host(SKYT_Twin_t *twin, const SKY_Host_t *host, uint32_t packet, const SKYT_Sight_t *before)
{
    const SKYT_Mark_t mark = twin->packets[packet].mark;
    SKYT_Sight_t      after;
    SKY_Packet_t      pkt = {0};

    SKYT_Judge_SeeHost(host, &after);
    (void)SKY_Packet_Decode(SKYT_Network_DataOf(twin, packet), twin->packets[packet].len, &pkt);
    const bool is_passed = before->untrusted == after.untrusted && before->stale == after.stale &&
                           before->undecoded == after.undecoded && pkt.op != SKY_OP_ASSOCIATE && !is_of_the_way(&pkt);

    if (mark.kind == SKYT_PACKET_SOUND)
    {
        if (before->undecoded == after.undecoded) /* nobody acts upon a damaged one, so that the next copy counts as the first */
        {
            SKYT_Attack_NoteActed(twin, mark.record);
        }
    }
    else if (before->chunks != after.chunks || before->sessions < after.sessions ||
             (mark.kind == SKYT_PACKET_FALSE && is_passed) || (before->ended != after.ended && !is_of_the_way(&pkt)))
    {
        fail(twin, SKYT_NONE,
             mark.kind == SKYT_PACKET_FALSE ? "a host believes a packet that was forged or changed"
                                            : "a host counts an answer that was sent again");
    }
    else
    {
        refuse(twin, before, &after);
    }
}
