/**
 * @file
 * Who may be served by a node: cookies of those who come from the ground, tags, associations. sky_security.h decides; this applies it to
 * packets.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_node_priv.h"

#define SHOWN (UINT64_C(1) << 62) /* no endpoint has this bit */

SKY_Status_t SKY_NodeGuard_Enter(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                 uint64_t endpoint)
{
    const bool is_keyed = SKY_Node_IsKeyed(node);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    SKY_ASSERT(endpoint != 0u);

    /* What is for a keyed satellite itself has to have a tag, which shows more than a cookie does. */
    if (node->security == NULL || ingress != SKY_LINK_GROUND || !pkt->is_request ||
        (is_keyed && SKY_Addr_Equal(pkt->dst, node->router.self)))
    {
        return SKY_STATUS_OK;
    }
    if (!SKY_Security_HasCookie(node->security, now_us, pkt, endpoint))
    {
        return is_keyed ? SKY_STATUS_UNAUTHENTICATED : SKY_STATUS_COOKIE;
    }
    return is_keyed || SKY_Security_MayAsk(node->security, now_us, pkt, endpoint) ? SKY_STATUS_OK : SKY_STATUS_BUSY;
}

/*
 * Return OK if a handshake from the ground may be looked at. Of strangers only so many are: who is one too many gets a cookie, and with it a
 * share and places of its own, which invented addresses cannot take.
 */
static SKY_Status_t Greet(SKY_Node_t *node, uint64_t now_us, const SKY_HandshakeOrigin_t *origin)
{
    SKY_ASSERT(SKY_Node_IsKeyed(node));
    if (SKY_Security_MayGreet(node->security, now_us, origin))
    {
        return SKY_STATUS_OK;
    }
    return origin->is_reachable ? SKY_STATUS_RUNNING : SKY_STATUS_COOKIE;
}

/* Check a handshake from the ground. Shares are those of addresses, and are charged before the tag is looked at. */
static SKY_Status_t CheckOfGround(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_HandshakeOrigin_t *origin,
                                  SKY_SecurityHandshake_t *handshake)
{
    SKY_Status_t status;

    SKY_ASSERT((origin->endpoint & SHOWN) == 0u);
    origin->is_reachable = SKY_Security_IsReachable(node->security, now_us, pkt, origin->endpoint);
    status               = Greet(node, now_us, origin);
    if (status == SKY_STATUS_OK && !SKY_Security_IsHandshake(node->security, pkt, handshake))
    {
        status = SKY_STATUS_UNAUTHENTICATED;
    }
    SKY_ASSERT(status != SKY_STATUS_BUSY);
    return status;
}

/*
 * Check a handshake that came over a link. An address shows nothing there: a neighbour passes on what others send, and somebody else may send from
 * its address. So the tag is looked at first, and wrong ones take nothing from anybody. That costs 2 us with the key of a host and 0.5 us with that
 * of a satellite, no more than the datagram costs that brings it. What is expensive comes behind a right tag, and each credential has a share
 * and places of its own: whoever has a key, or recorded handshakes, takes from those whose they are.
 */
static SKY_Status_t CheckOfLink(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_HandshakeOrigin_t *origin,
                                SKY_SecurityHandshake_t *handshake)
{
    SKY_ASSERT((origin->endpoint & SHOWN) == 0u);
    if (!SKY_Security_IsHandshake(node->security, pkt, handshake))
    {
        return SKY_Security_MayBeRejected(node->security, now_us, origin->endpoint) ? SKY_STATUS_UNAUTHENTICATED
                                                                                    : SKY_STATUS_RUNNING;
    }
    origin->endpoint     = SHOWN | handshake->key_mark >> 2; /* bit 63 is not set either: see sky_security_limits.c */
    origin->is_reachable = true;
    SKY_ASSERT(origin->endpoint >> 63 == 0u);
    return Greet(node, now_us, origin);
}

/*
 * Answer a handshake whose tag is right. Anybody can send one again that he has recorded, so its answer has the cookie for handshakes alone. That
 * which opens the way through this satellite comes with the tag of an association.
 * @return RUNNING if it was answered
 */
static SKY_Status_t Grant(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                          const SKY_HandshakeOrigin_t *origin, SKY_SecurityHandshake_t *handshake)
{
    const uint32_t spi = SKY_Security_Handshake(node->security, now_us, origin, handshake);
    SKY_Packet_t   reply;

    SKY_ASSERT(node->handshake == NULL);
    if (spi == SKY_SPI_NONE)
    {
        return SKY_STATUS_UNAUTHENTICATED;
    }
    SKY_Packet_Reply(pkt, node->router.self, SKY_STATUS_OK, &reply);
    reply.security  = SKY_SUITE_HANDSHAKE;
    reply.spi       = spi;
    reply.cookie    = node->asker != 0u ? SKY_Security_GreetingCookieOf(node->security, now_us, node->asker) : SKY_COOKIE_NONE;
    reply.length    = sizeof(handshake->payload);
    reply.payload   = handshake->payload;
    node->handshake = &handshake->key;
    if (ingress != SKY_LINK_GROUND && SKY_Addr_Equal(pkt->src, node->links[ingress].peer))
    {
        SKY_NodeLink_SendOver(node, now_us, &reply, ingress, 0); /* even if the link counts as down still */
    }
    else
    {
        SKY_NodeLink_SendPacket(node, now_us, &reply);
    }
    node->handshake = NULL;
    SKY_ASSERT(node->handshake == NULL);
    return SKY_STATUS_RUNNING;
}

/* Answer a handshake. @return RUNNING if it was answered, or comes to nothing */
static SKY_Status_t Handshake(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint)
{
    SKY_HandshakeOrigin_t   origin = {endpoint, false};
    SKY_SecurityHandshake_t handshake;
    SKY_Status_t            status;

    SKY_ASSERT(pkt->security == SKY_SUITE_HANDSHAKE);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    (void)memset(&handshake, 0, sizeof(handshake));
    status = ingress == SKY_LINK_GROUND ? CheckOfGround(node, now_us, pkt, &origin, &handshake)
                                        : CheckOfLink(node, now_us, pkt, &origin, &handshake);
    if (status == SKY_STATUS_OK)
    {
        status = Grant(node, now_us, pkt, ingress, &origin, &handshake);
    }
    SKY_Security_Wipe(node->security, &handshake, sizeof(handshake));
    return status;
}

/* Note that a neighbour is there, which has shown that it sent this packet. */
static void NoteNeighbour(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    SKY_ASSERT(SKY_Node_IsKeyed(node));
    if (ingress != SKY_LINK_GROUND && SKY_Addr_Equal(pkt->src, node->links[ingress].peer))
    {
        SKY_NodeLink_Alive(node, now_us, ingress);
    }
}

/* Take in a response to this satellite. */
static SKY_Status_t AdmitResponse(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    SKY_ASSERT(!pkt->is_request);
    SKY_ASSERT(SKY_Node_IsKeyed(node));
    if (SKY_Security_AdmitResponse(node->security, now_us, pkt))
    {
        if (SKY_Security_IsSignOfLife(node->security, pkt)) /* else anybody could send it again when the neighbour is long gone */
        {
            NoteNeighbour(node, now_us, pkt, ingress);
        }
        return SKY_STATUS_OK;
    }
    for (uint32_t id = 0; id < SKY_ISL_COUNT && pkt->op == SKY_OP_ASSOCIATE; ++id)
    {
        if (SKY_Addr_Equal(pkt->src, node->links[id].peer) && SKY_Security_IsFresh(node->security, pkt->src))
        {
            SKY_Hello_Greet(&node->hello, (SKY_LinkId_t)id); /* the greeting of before could not go without a session */
        }
    }
    SKY_NodeLink_RunHellos(node, now_us);
    return SKY_STATUS_RUNNING;
}

SKY_Status_t SKY_NodeGuard_Admit(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                 uint64_t endpoint)
{
    SKY_ASSERT(node->association == NULL);
    SKY_ASSERT(SKY_Addr_Equal(pkt->dst, node->router.self));
    if (!SKY_Node_IsKeyed(node))
    {
        /* Nobody can check a tag here. A host with a keyring is to learn that. */
        return pkt->security == SKY_SUITE_NONE ? SKY_STATUS_OK : SKY_STATUS_UNAUTHENTICATED;
    }
    if (!pkt->is_request)
    {
        return AdmitResponse(node, now_us, pkt, ingress);
    }
    if (pkt->security == SKY_SUITE_HANDSHAKE && pkt->op == SKY_OP_ASSOCIATE && pkt->apid == SKY_APID_ISL)
    {
        return Handshake(node, now_us, pkt, ingress, endpoint);
    }
    switch (SKY_Security_Admit(node->security, now_us, pkt, endpoint, &node->association))
    {
        case SKY_ADMIT_OK:
            NoteNeighbour(node, now_us, pkt, ingress);
            return SKY_STATUS_OK;
        case SKY_ADMIT_REFUSED:
            return SKY_STATUS_REFUSED;
        case SKY_ADMIT_UNAUTHENTICATED:
            return SKY_STATUS_UNAUTHENTICATED;
        case SKY_ADMIT_DROP:
        default:
            return SKY_STATUS_RUNNING;
    }
}

void SKY_NodeGuard_Run(SKY_Node_t *node, uint64_t now_us)
{
    SKY_SecurityAsk_t ask;

    if (!SKY_Node_IsKeyed(node))
    {
        return;
    }
    SKY_ASSERT(node->handshake == NULL);
    while (
        SKY_Security_NextAsk(node->security, now_us, &ask)) /* the loop ends, because each session is asked for once in a while */
    {
        node->handshake = &ask.key;
        SKY_NodeLink_SendHandshake(node, now_us, &ask.pkt);
        node->handshake = NULL;
    }
    SKY_Security_Wipe(node->security, ask.pair, sizeof(ask.pair));
    SKY_ASSERT(node->handshake == NULL);
}
