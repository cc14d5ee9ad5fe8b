/**
 * @file
 * The packet engine: decode, decide, then deliver, forward, hand down, answer or drop.
 *
 * An endpoint that is a neighbour's counts as that ISL; everything else is the ground. Links are not authenticated yet: whoever
 * can forge a neighbour's address is that neighbour.
 */
#include "isl_node.h"

#include <string.h>

#define ISL_UPLINK_BATCH 64u      /* packets of the uplink line taken at a time */
#define ISL_NO_APID      0xFFFFu  /* an APID has 11 bits */
#define ISL_TYPE_REQUEST 0x10u    /* packet type in the first byte of the primary header */
#define ISL_POLL_MIN_US  1000u    /* a service that is always due must not keep the processor */
#define ISL_POLL_MAX_US  1000000u /* one that gets work from its own app begins with it within this time */
#define ISL_PORT_MASK    0xFFFFu  /* of an endpoint */
#define ISL_MAP_BYTES    ((size_t)ISL_PLATFORM_MAP_SATELLITES * SKY_MAP_SATELLITE_BYTES)

CompileTimeAssert(ISL_IO_COPY_BYTES >= SKY_SERVICE_SCRATCH_BYTES, IslShortBodiesAreCopied);
CompileTimeAssert(ISL_IO_COPY_BYTES >= SKY_LIMIT_RELAY_BYTES, IslRelayedMessagesAreCopied);
CompileTimeAssert(ISL_IO_HEAD_BYTES >= SKY_HEAD_MAX + SKY_PEC_BYTES, IslHeadsFitTheQueue);
CompileTimeAssert(ISL_IO_COPY_BYTES >= SKY_HELLO_MAX_BYTES, IslHellosAreCopied);
CompileTimeAssert(SKY_SERVICE_PACKET_MIN >= SKY_HELLO_MAX_BYTES + SKY_RESPONSE_OVERHEAD, IslHellosFitThePacket);

/* Only as much of it is touched as the constellation is large. */
static uint32_t ISL_MapMemory[ISL_MAP_BYTES / sizeof(uint32_t)];

/* ---- services ------------------------------------------------------------------------------------------------------ */

static void ISL_Flush(ISL_Node_t *node)
{
    ISL_IO_Flush();
    node->bodies_wait = false;
}

static void ISL_LetGo(ISL_Node_t *node)
{
    if (node->held != NULL)
    {
        ISL_Flush(node); /* bodies lie in the service's memory */
        node->held->Unlock();
        node->held = NULL;
        SKY_LIB_Release();
    }
}

/** Lock the service of an APID; it stays locked for the packets that follow. @return NULL if nobody serves it now */
static const SKY_LIB_Service_t *ISL_Hold(ISL_Node_t *node, uint16_t apid)
{
    const SKY_LIB_Service_t *service;

    if (node->held != NULL && node->held_apid == apid)
    {
        return node->held;
    }
    ISL_LetGo(node);
    service = SKY_LIB_Acquire(apid);
    if (service != NULL && !service->Lock())
    {
        SKY_LIB_Release();
        service = NULL;
    }
    node->held      = service;
    node->held_apid = apid;
    return service;
}

/** Send what the held service has to say. @return true: for some of it there is no way, which the service was told */
static bool ISL_Pull(ISL_Node_t *node, uint64_t now_us)
{
    SKY_Packet_t address; /* what the router looks at */
    SKY_Route_t  route;
    SKY_Out_t    out;
    uint32_t     n;
    SKY_Addr_t   unreachable = {0, 0}; /* the last one; a next pull tells of others */

    memset(&address, 0, sizeof(address));
    memset(&route, 0, sizeof(route));
    address.src       = node->router.self;
    address.hop_limit = SKY_LIMIT_HOP_LIMIT;
    for (n = 0; n < SKY_LIB_BURST_MAX && node->held->Next(now_us, &out); ++n)
    {
        ISL_IO_Parts_t parts;

        address.dst        = out.dst;
        address.gateway    = out.gateway;
        address.is_request = (out.head[0] & ISL_TYPE_REQUEST) != 0;
        SKY_Router_Decide(&node->router, now_us, &address, SKY_LINK_NONE, node->asker, &route);
        if (route.action != SKY_ROUTE_FORWARD && route.action != SKY_ROUTE_GROUND)
        {
            if (route.action == SKY_ROUTE_ANSWER && route.status == SKY_STATUS_UNREACHABLE)
            {
                unreachable = out.dst;
            }
            continue; /* counted by the router */
        }
        parts.head     = out.head;
        parts.head_len = out.head_len;
        parts.body     = out.body;
        parts.body_len = out.body_len;
        parts.tail     = out.tail;
        parts.tail_len = SKY_PEC_BYTES;
        node->bodies_wait |= out.body_len > ISL_IO_COPY_BYTES;
        ISL_Link_Send(node, now_us, route.action == SKY_ROUTE_GROUND ? SKY_LINK_GROUND : route.link, route.endpoint, &parts);
    }
    if (n == SKY_LIB_BURST_MAX && node->held->Next(now_us, &out))
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_BUSY); /* the rest is cut off; whoever waits for it will ask again */
    }
    if (unreachable.plane != 0)
    {
        node->held->Unreachable(unreachable);
    }
    return unreachable.plane != 0;
}

static void ISL_PollServices(ISL_Node_t *node, uint64_t now_us)
{
    uint64_t due_us = now_us + ISL_POLL_MAX_US;
    uint32_t place;

    ISL_LetGo(node);
    for (place = 0; place < SKY_LIB_SERVICES; ++place)
    {
        uint16_t                       apid    = 0;
        uint64_t                       next_us = UINT64_MAX;
        const SKY_LIB_Service_t *const service = SKY_LIB_AcquireAt(place, &apid);

        if (service != NULL && !service->Lock())
        {
            SKY_LIB_Release();
        }
        else if (service != NULL)
        {
            node->held      = service;
            node->held_apid = apid;
            service->Poll(now_us, &next_us);
            if (ISL_Pull(node, now_us))
            {
                next_us = now_us; /* what waited for that way may go on */
            }
            ISL_LetGo(node);
            due_us = next_us < due_us ? next_us : due_us;
        }
    }
    node->poll_due_us = due_us < now_us + ISL_POLL_MIN_US ? now_us + ISL_POLL_MIN_US : due_us;
}

/* ---- packets of our own -------------------------------------------------------------------------------------------- */

void ISL_Node_SendOver(ISL_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt, SKY_LinkId_t link, uint64_t endpoint)
{
    uint8_t        head[SKY_HEAD_MAX];
    uint8_t        tail[SKY_PEC_BYTES];
    ISL_IO_Parts_t parts;

    pkt->seq_count = node->seq_count++;
    SKY_Packet_SetTime(pkt, now_us + SKY_LIB_ClockOffsetUs());
    parts.head     = head;
    parts.head_len = (uint32_t)SKY_Packet_EncodeAround(pkt, NULL, head, tail);
    parts.body     = pkt->payload;
    parts.body_len = pkt->length;
    parts.tail     = tail;
    parts.tail_len = SKY_PEC_BYTES;
    if (parts.head_len > 0)
    {
        ISL_Link_Send(node, now_us, link, endpoint, &parts);
    }
}

void ISL_Node_SendPacket(ISL_Node_t *node, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_Route_t route;

    SKY_Router_Decide(&node->router, now_us, pkt, SKY_LINK_NONE, node->asker, &route);
    if (route.action == SKY_ROUTE_FORWARD)
    {
        ISL_Node_SendOver(node, now_us, pkt, route.link, 0);
    }
    else if (route.action == SKY_ROUTE_GROUND)
    {
        ISL_Node_SendOver(node, now_us, pkt, SKY_LINK_GROUND, route.endpoint);
    }
}

/**
 * Tell the sender of a request why nothing comes of it. This answer is no larger than the request; what a service answers can be
 * a thousand times as large, and goes to whatever address the request claims to come from: see docs/cfs-integration.md, limits.
 */
static void ISL_Answer(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                       uint64_t endpoint)
{
    SKY_Packet_t reply;

    SKY_Packet_Reply(pkt, node->router.self, status, &reply);
    if (ingress == SKY_LINK_GROUND)
    {
        reply.gateway = node->router.self;
        ISL_Node_SendOver(node, now_us, &reply, SKY_LINK_GROUND, endpoint);
    }
    else
    {
        ISL_Node_SendPacket(node, now_us, &reply);
    }
}

/* ---- arrivals ------------------------------------------------------------------------------------------------------ */

static void ISL_Refuse(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                       uint64_t endpoint)
{
    SKY_Router_CountDrop(&node->router, status);
    if (pkt->apid == ISL_NO_APID)
    {
        return; /* not even an address could be trusted */
    }
    if (SKY_Addr_Equal(pkt->dst, node->router.self) && pkt->apid != SKY_APID_ISL && ISL_Hold(node, pkt->apid) != NULL)
    {
        node->held->Reject(status);
    }
    if (pkt->is_request)
    {
        ISL_Answer(node, now_us, pkt, status, ingress, endpoint);
    }
}

static void ISL_Deliver(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint)
{
    if (pkt->apid == SKY_APID_ISL)
    {
        ISL_Local_Packet(node, now_us, pkt, ingress);
    }
    else if (ISL_Hold(node, pkt->apid) != NULL)
    {
        if (node->bodies_wait)
        {
            ISL_Flush(node);
        }
        node->held->Begin(now_us, pkt);
        (void)ISL_Pull(node, now_us);
        node->poll_due_us = now_us; /* it may have got work to go on with */
    }
    else
    {
        ++node->router.counters.no_service;
        if (pkt->is_request)
        {
            ISL_Answer(node, now_us, pkt, SKY_STATUS_UNREACHABLE, ingress, endpoint);
        }
    }
}

/** Hand a packet of others on, from where it lies; it stays there until the next flush. */
static void ISL_PassOn(ISL_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, const SKY_Packet_t *pkt,
                       const SKY_Route_t *route, SKY_LinkId_t ingress, uint64_t endpoint)
{
    ISL_IO_Parts_t parts;

    if (len > node->packet_bytes)
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_TOO_LARGE);
        if (pkt->is_request)
        {
            ISL_Answer(node, now_us, pkt, SKY_STATUS_TOO_LARGE, ingress, endpoint);
        }
        return;
    }
    if (route->action == SKY_ROUTE_FORWARD)
    {
        SKY_Packet_Relabel(data, len, route->hop_limit, route->gateway);
    }
    memset(&parts, 0, sizeof(parts));
    parts.body     = data;
    parts.body_len = len;
    ISL_Link_Send(node, now_us, route->action == SKY_ROUTE_GROUND ? SKY_LINK_GROUND : route->link, route->endpoint, &parts);
}

static void ISL_Process(ISL_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, SKY_LinkId_t ingress, uint64_t endpoint)
{
    SKY_Packet_t pkt;
    SKY_Route_t  route;
    SKY_Status_t status;

    pkt.apid = ISL_NO_APID; /* stays if decoding fails so early that nothing of the packet can be trusted */
    status   = SKY_Packet_Decode(data, len, &pkt);
    if (status != SKY_STATUS_OK)
    {
        ISL_Refuse(node, now_us, &pkt, status, ingress, endpoint);
        return;
    }
    SKY_Router_Decide(&node->router, now_us, &pkt, ingress, endpoint, &route);
    switch (route.action)
    {
        case SKY_ROUTE_DELIVER:
            pkt.gateway = route.gateway; /* from the ground: ours, so that responses find back */
            node->asker = route.endpoint;
            ISL_Deliver(node, now_us, &pkt, ingress, endpoint);
            node->asker = 0;
            break;
        case SKY_ROUTE_FORWARD:
        case SKY_ROUTE_GROUND:
            ISL_PassOn(node, now_us, data, len, &pkt, &route, ingress, endpoint);
            break;
        case SKY_ROUTE_ANSWER:
            ISL_Answer(node, now_us, &pkt, route.status, ingress, endpoint);
            break;
        case SKY_ROUTE_DROP:
        default:
            break;
    }
}

void ISL_Node_Input(ISL_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint)
{
    const SKY_LinkId_t ingress = ISL_Link_Of(node, endpoint);

    if ((endpoint & ISL_PORT_MASK) == 0) /* nobody can be answered there, and trying fails like a refused train */
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_BAD_ADDRESS);
        return;
    }
    if ((len == 0 && endpoint == node->local_endpoint) || !ISL_Link_Heard(node, now_us, ingress, endpoint, len))
    {
        return;
    }
    if (ingress != SKY_LINK_GROUND || !ISL_Link_DelayUplink(node, now_us, endpoint, data, len))
    {
        ISL_Process(node, now_us, data, len, ingress, endpoint);
    }
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

void ISL_Node_RunHellos(ISL_Node_t *node, uint64_t now_us)
{
    SKY_HelloOut_t out;

    while (SKY_Hello_Next(&node->hello, now_us, &out)) /* ends: news of a link comes in bounded bursts */
    {
        ISL_Node_SendOver(node, now_us, &out.pkt, out.link, 0);
    }
}

void ISL_Node_Run(ISL_Node_t *node, uint64_t now_us)
{
    uint64_t endpoint = 0;
    uint32_t len;
    uint32_t n;

    ISL_Link_EndCuts(node, now_us);
    for (n = 0; n < ISL_UPLINK_BATCH && (len = ISL_Link_NextUplink(node, now_us, &endpoint)) > 0; ++n)
    {
        ISL_Process(node, now_us, node->work, len, SKY_LINK_GROUND, endpoint);
        ISL_Flush(node); /* the next one takes this one's place */
    }
    if (now_us >= node->poll_due_us)
    {
        ISL_PollServices(node, now_us);
    }
    SKY_Hello_Poll(&node->hello, now_us);
    ISL_Node_RunHellos(node, now_us);
    ISL_LetGo(node);
    ISL_Flush(node);
    ISL_Link_RunLines(node, now_us);
}

uint64_t ISL_Node_NextDue(const ISL_Node_t *node)
{
    const uint64_t hello_us = SKY_Hello_NextDue(&node->hello);
    uint64_t       due_us   = ISL_Link_NextDue(node);

    if (node->poll_due_us < due_us)
    {
        due_us = node->poll_due_us;
    }
    return hello_us < due_us ? hello_us : due_us;
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

static void ISL_SetLink(ISL_Node_t *node, uint64_t now_us, uint32_t id, const ISL_Neighbour_t *entry)
{
    static const SKY_LinkModel_t ideal = {0, 0, 0, 0, false};
    ISL_Link_t *const            link  = &node->links[id];
    const bool                   is_up = id == SKY_LINK_GROUND || entry->Present != 0;

    link->present = is_up;
    if (id != SKY_LINK_GROUND)
    {
        link->peer.plane = entry->Plane;
        link->peer.slot  = entry->Slot;
        link->endpoint   = ISL_IO_Endpoint(entry->Ipv4, entry->Port);
    }
    link->out.ready  = false; /* what waits there was for another place */
    link->heard_once = false;
    link->heard_us   = now_us;
    ISL_Link_SetModel(node, now_us, (SKY_LinkId_t)id, &ideal);
}

/** Another satellite, or another constellation: what was known of it does not hold. */
static void ISL_StartRouter(ISL_Node_t *node, const SKY_Torus_t *torus, SKY_Addr_t self)
{
    (void)SKY_Router_Init(&node->router, torus, self); /* validated */
    memset(node->listeners, 0, sizeof(node->listeners));
}

bool ISL_Node_SetNeighbours(ISL_Node_t *node, uint64_t now_us, const ISL_NeighboursTable_t *table)
{
    const SKY_Addr_t self = {table->SelfPlane, table->SelfSlot};
    SKY_Torus_t      torus;
    bool             fits;
    uint32_t         id;

    if (node->started_us == 0)
    {
        node->started_us = now_us;
    }
    (void)SKY_Torus_Init(&torus, table->Planes, table->Slots, table->SeamCut != 0); /* validated */
    if (!SKY_Addr_Equal(node->router.self, self) || node->router.torus.planes != torus.planes ||
        node->router.torus.slots != torus.slots || node->router.torus.seam_cut != torus.seam_cut)
    {
        ISL_StartRouter(node, &torus, self);
    }
    if (node->router.map == NULL && SKY_Map_Init(&node->map, &torus, self, ISL_MapMemory, sizeof(ISL_MapMemory)))
    {
        SKY_Router_SetMap(&node->router, &node->map);
    }
    fits = node->router.map != NULL;
    SKY_Hello_Init(&node->hello, &node->router, now_us, table->HelloS * UINT64_C(1000000));
    node->packet_bytes     = table->PacketBytes;
    node->uplink_first_mid = table->UplinkFirstMid;
    node->uplink_last_mid  = table->UplinkLastMid;
    node->uplink.ready     = false;
    for (id = 0; id < SKY_ISL_COUNT; ++id)
    {
        ISL_SetLink(node, now_us, id, &table->Neighbour[id]);
    }
    ISL_SetLink(node, now_us, SKY_LINK_GROUND, NULL);
    return fits;
}

void ISL_Node_SetModels(ISL_Node_t *node, uint64_t now_us, const ISL_LinksTable_t *table)
{
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        const ISL_LinkEntry_t *const entry = &table->Link[id];
        const SKY_LinkModel_t        model = {entry->DelayUs, entry->JitterUs, entry->RateKbps, entry->LossPpm, entry->Cut != 0};

        ISL_Link_SetModel(node, now_us, (SKY_LinkId_t)id, &model);
    }
}

void ISL_Node_ResetCounters(ISL_Node_t *node)
{
    uint32_t id;

    memset(&node->router.counters, 0, sizeof(node->router.counters));
    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        memset(&node->links[id].counters, 0, sizeof(node->links[id].counters));
    }
    node->relayed_up   = 0;
    node->relayed_down = 0;
    node->relay_errors = 0;
}
