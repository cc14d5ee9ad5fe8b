/**
 * @file
 * Links of a node: their states, cuts by command, packets in and out.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_node_priv.h"

#define SECOND_US UINT64_C(1000000)

static bool IsCut(const SKY_NodeLink_t *link)
{
    return link->model.cut || link->cut_until_us != 0u;
}

/* On a ring of two, a neighbour has two links: packets that come while one is cut have come over the other. */
SKY_LinkId_t SKY_Node_LinkOf(const SKY_Node_t *node, uint64_t endpoint)
{
    SKY_LinkId_t found = SKY_LINK_GROUND;

    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        const SKY_NodeLink_t *link = &node->links[id];

        if (link->is_present && link->endpoint == endpoint && (found == SKY_LINK_GROUND || IsCut(&node->links[found])))
        {
            found = (SKY_LinkId_t)id;
        }
    }
    SKY_ASSERT(found == SKY_LINK_GROUND || node->links[found].is_present);
    SKY_ASSERT(found == SKY_LINK_GROUND || node->links[found].endpoint == endpoint);
    return found;
}

bool SKY_Node_IsCut(const SKY_Node_t *node, SKY_LinkId_t id)
{
    SKY_ASSERT(id < SKY_LINK_COUNT);
    return IsCut(&node->links[id]);
}

bool SKY_Node_IsUp(const SKY_Node_t *node, SKY_LinkId_t id)
{
    const SKY_NodeLink_t *link = &node->links[id];
    SKY_ASSERT(id < SKY_LINK_COUNT);

    return link->is_present && !IsCut(link) && (id == SKY_LINK_GROUND || (node->router.usable & (1u << id)) != 0u);
}

/* Hellos decide when a link that is no longer cut comes back. */
static void UpdateRoute(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id)
{
    const SKY_NodeLink_t *link = &node->links[id];
    SKY_ASSERT(id < SKY_LINK_COUNT);

    if (id != SKY_LINK_GROUND)
    {
        SKY_Hello_SetLink(&node->hello, now_us, id, link->is_present, IsCut(link));
    }
    SKY_ASSERT(id == SKY_LINK_GROUND || node->hello.links[id].is_cut == IsCut(link));
    SKY_ASSERT(id == SKY_LINK_GROUND || node->hello.links[id].is_present == link->is_present);
}

void SKY_Node_SetModel(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, const SKY_LinkModel_t *model)
{
    node->links[id].model = *model;
    UpdateRoute(node, now_us, id);
}

/* ---- cuts by command ------------------------------------------------------------------------------------------------- */

static bool IsAnotherUp(const SKY_Node_t *node, SKY_LinkId_t id)
{
    SKY_ASSERT(id < SKY_LINK_COUNT);
    for (uint32_t other = 0; other < SKY_LINK_COUNT; ++other)
    {
        if (other != (uint32_t)id && SKY_Node_IsUp(node, (SKY_LinkId_t)other))
        {
            return true;
        }
    }
    return false;
}

bool SKY_Node_Cut(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t seconds)
{
    SKY_NodeLink_t *link;

    if (id >= SKY_LINK_COUNT || !node->links[id].is_present || (seconds != 0u && !IsAnotherUp(node, id)))
    {
        return false;
    }
    link               = &node->links[id];
    link->cut_until_us = seconds != 0u ? now_us + seconds * SECOND_US : 0u;
    SKY_ASSERT(seconds == 0u || link->cut_until_us > now_us);
    SKY_ASSERT(seconds == 0u || IsCut(link));
    UpdateRoute(node, now_us, id);
    return true;
}

void SKY_NodeLink_EndCuts(SKY_Node_t *node, uint64_t now_us)
{
    for (uint32_t id = 0; id < SKY_LINK_COUNT; ++id)
    {
        SKY_NodeLink_t *link = &node->links[id];

        if (link->cut_until_us != 0u && now_us >= link->cut_until_us)
        {
            link->cut_until_us = 0u;
            SKY_ASSERT(IsCut(link) == link->model.cut);
            UpdateRoute(node, now_us, (SKY_LinkId_t)id);
        }
    }
}

uint64_t SKY_NodeLink_NextDue(const SKY_Node_t *node)
{
    uint64_t due_us = UINT64_MAX;

    for (uint32_t id = 0; id < SKY_LINK_COUNT; ++id)
    {
        const uint64_t end_us = node->links[id].cut_until_us;

        if (end_us != 0u && end_us < due_us)
        {
            due_us = end_us;
        }
    }
    return due_us;
}

/* ---- what comes in --------------------------------------------------------------------------------------------------- */

void SKY_NodeLink_Alive(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id)
{
    const uint64_t endpoint = node->links[id].endpoint;
    SKY_ASSERT(id < SKY_ISL_COUNT);
    SKY_ASSERT(!IsCut(&node->links[id]));

    /* On a ring of two, one neighbour is reached over two links, and its packets cannot be told apart. */
    for (uint32_t other = 0; other < SKY_ISL_COUNT; ++other)
    {
        SKY_NodeLink_t *same = &node->links[other];

        if (same->is_present && same->endpoint == endpoint && !IsCut(same))
        {
            same->heard_us   = now_us;
            same->heard_once = true;
            SKY_Hello_Heard(&node->hello, now_us, (SKY_LinkId_t)other);
        }
    }
}

bool SKY_NodeLink_Heard(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t len)
{
    SKY_NodeLink_t *link = &node->links[id];
    SKY_ASSERT(id < SKY_LINK_COUNT);

    if (IsCut(link))
    {
        ++link->counters.drop_cut;
        return false;
    }
    SKY_ASSERT(link->is_present);
    ++link->counters.rx_packets;
    link->counters.rx_bytes += len;
    if (id == SKY_LINK_GROUND)
    {
        link->heard_us   = now_us;
        link->heard_once = true;
    }
    else if (!SKY_Node_IsKeyed(node)) /* else the packet has to show first who sent it */
    {
        SKY_NodeLink_Alive(node, now_us, id);
    }
    return true;
}

/* ---- what goes out --------------------------------------------------------------------------------------------------- */

void SKY_NodeLink_Send(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    SKY_NodeLink_t *link = &node->links[id];
    SKY_ASSERT(parts->head_len + parts->tail_len <= SKY_NODE_HEAD_BYTES);
    SKY_ASSERT(id != SKY_LINK_GROUND || endpoint != 0u); /* the packet has a receiver */

    if (IsCut(link))
    {
        ++link->counters.drop_cut;
    }
    else if (node->shell.Send(node->shell.context, now_us, id, id == SKY_LINK_GROUND ? endpoint : link->endpoint, parts))
    {
        ++link->counters.tx_packets;
        link->counters.tx_bytes += (uint64_t)parts->head_len + parts->body_len + parts->tail_len;
    }
}

/* Put a tag on an own packet. @return false if it cannot go now; @p key: NULL if it goes without a tag */
static bool Prepare(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, SKY_TagKey_t *room, const SKY_TagKey_t **key)
{
    *key = NULL;
    if (node->security == NULL)
    {
        return true;
    }
    if (pkt->security == SKY_SUITE_HANDSHAKE)
    {
        SKY_ASSERT(node->handshake != NULL);
        *key = node->handshake;
        return true;
    }
    const int way = SKY_Security_Prepare(node->security, now_us, pkt, node->association, room);

    *key = way > 0 ? room : NULL;
    return way >= 0;
}

void SKY_NodeLink_SendWhole(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, const uint16_t *payload_crc16,
                            SKY_LinkId_t id, uint64_t endpoint)
{
    uint8_t             head[SKY_HEAD_MAX];
    uint8_t             tail[SKY_TAIL_MAX];
    SKY_Packet_t        tagged = *pkt;
    SKY_TagKey_t        room;
    const SKY_TagKey_t *key;
    SKY_PacketParts_t   parts;
    SKY_ASSERT(id < SKY_LINK_COUNT);
    SKY_ASSERT(pkt->length == 0u || pkt->payload != NULL);
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, node->router.self)); /* the packet is our own */

    if (!Prepare(node, now_us, &tagged, &room, &key))
    {
        return;
    }
    parts.head     = head;
    parts.head_len = (uint32_t)SKY_Tag_EncodeAround(&tagged, key, payload_crc16, head, tail);
    parts.body     = pkt->payload;
    parts.body_len = pkt->length;
    parts.tail     = tail;
    parts.tail_len = SKY_Packet_TailBytes(&tagged);
    SKY_ASSERT(parts.head_len <= sizeof(head));
    if (parts.head_len > 0u) /* a packet without a head would be longer than any packet may be */
    {
        SKY_NodeLink_Send(node, now_us, id, endpoint, &parts);
    }
}

/* Number and date a packet of our own. */
static void Stamp(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, node->router.self));
    SKY_ASSERT(node->shell.ClockOffsetUs != NULL);
    pkt->seq_count = node->seq_count++;
    SKY_Packet_SetTime(pkt, now_us + node->shell.ClockOffsetUs(node->shell.context));
}

void SKY_NodeLink_SendOver(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, SKY_LinkId_t id, uint64_t endpoint)
{
    SKY_ASSERT(id < SKY_LINK_COUNT);
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, node->router.self));
    Stamp(node, now_us, pkt);
    SKY_NodeLink_SendWhole(node, now_us, pkt, NULL, id, endpoint);
}

void SKY_NodeLink_SendBase(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, uint64_t endpoint)
{
    uint8_t                 bytes[SKY_BASE_BYTES];
    const SKY_PacketParts_t parts = {bytes, NULL, NULL, sizeof(bytes), 0, 0};
    SKY_ASSERT(endpoint != 0u);

    Stamp(node, now_us, pkt);
    SKY_Packet_EncodeBase(pkt, bytes);
    SKY_NodeLink_Send(node, now_us, SKY_LINK_GROUND, endpoint, &parts);
}

void SKY_NodeLink_SendPacket(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_Route_t route;
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, node->router.self));

    SKY_Router_Decide(&node->router, now_us, pkt, SKY_LINK_NONE, node->asker, &route);
    SKY_ASSERT(route.action != SKY_ROUTE_FORWARD || route.link < SKY_ISL_COUNT);
    if (route.action == SKY_ROUTE_FORWARD)
    {
        SKY_NodeLink_SendOver(node, now_us, pkt, route.link, 0);
    }
    else if (route.action == SKY_ROUTE_GROUND)
    {
        SKY_NodeLink_SendOver(node, now_us, pkt, SKY_LINK_GROUND, route.endpoint);
    }
}

void SKY_NodeLink_SendHandshake(SKY_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_Route_t route;
    SKY_ASSERT(pkt->security == SKY_SUITE_HANDSHAKE);
    SKY_ASSERT(pkt->dst.plane != 0u);

    SKY_Router_Decide(&node->router, now_us, pkt, SKY_LINK_NONE, 0, &route);
    for (uint32_t id = 0; id < SKY_ISL_COUNT && route.action != SKY_ROUTE_FORWARD; ++id)
    {
        if (node->links[id].is_present && !IsCut(&node->links[id]) && SKY_Addr_Equal(pkt->dst, node->links[id].peer))
        {
            route.action = SKY_ROUTE_FORWARD;
            route.link   = (SKY_LinkId_t)id;
        }
    }
    if (route.action == SKY_ROUTE_FORWARD)
    {
        SKY_NodeLink_SendOver(node, now_us, pkt, route.link, 0);
    }
}

void SKY_NodeLink_RunHellos(SKY_Node_t *node, uint64_t now_us)
{
    SKY_HelloOut_t out;

    while (SKY_Hello_Next(&node->hello, now_us, &out)) /* the loop ends, because news of a link comes in bounded bursts */
    {
        SKY_ASSERT(out.link < SKY_ISL_COUNT);
        SKY_ASSERT(out.pkt.hop_limit == 1u); /* hellos go to neighbours only */
        SKY_ASSERT(out.pkt.length <= SKY_HELLO_MAX_BYTES);
        SKY_NodeLink_SendOver(node, now_us, &out.pkt, out.link, 0);
    }
}
