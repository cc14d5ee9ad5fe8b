/**
 * @file
 * The packet engine of a node: decode, decide, then deliver, forward, hand down, answer or drop.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_endpoint.h"
#include "sky_node_priv.h"

#define NO_APID     0xFFFFu /* no APID is as large: an APID has 11 bits */
#define POLL_MIN_US 1000u   /* a service that is always due does not keep the processor */

/* Arrays with -1 elements do not compile, so each line asserts that copies have room. */
typedef char ScratchIsCopied[SKY_NODE_COPY_BYTES >= SKY_SERVICE_SCRATCH_BYTES ? 1 : -1];
typedef char RelayedIsCopied[SKY_NODE_COPY_BYTES >= SKY_LIMIT_RELAY_BYTES ? 1 : -1];
typedef char HellosAreCopied[SKY_NODE_COPY_BYTES >= SKY_HELLO_MAX_BYTES ? 1 : -1];
typedef char StatsAreCopied[SKY_NODE_COPY_BYTES >= (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT) * 8 ? 1 : -1];
typedef char HeadsFit[SKY_NODE_HEAD_BYTES >= SKY_HEAD_MAX + SKY_TAIL_MAX ? 1 : -1];
typedef char HellosFit[SKY_SERVICE_PACKET_MIN >= SKY_HELLO_MAX_BYTES + SKY_RESPONSE_OVERHEAD ? 1 : -1];

/* ---- services -------------------------------------------------------------------------------------------------------- */

static void Flush(SKY_Node_t *node)
{
    SKY_ASSERT(!node->bodies_wait || node->held != NULL); /* waiting bodies lie in the memory of the held service */
    node->shell.Flush(node->shell.context);
    node->bodies_wait = false;
}

static void LetGo(SKY_Node_t *node)
{
    if (node->held != NULL)
    {
        Flush(node); /* bodies lie in the service's memory, which is about to be unlocked */
        node->shell.Release(node->shell.context);
        node->held = NULL;
    }
    SKY_ASSERT(node->held == NULL);
    SKY_ASSERT(!node->bodies_wait);
}

/* Lock the service of an APID; it stays locked for the packets that follow. @return false if no app serves it now */
static bool Hold(SKY_Node_t *node, uint16_t apid)
{
    SKY_ASSERT(apid != SKY_APID_ISL); /* the node itself serves ISL */
    if (node->held == NULL || node->held_apid != apid)
    {
        LetGo(node);
        SKY_ASSERT(node->held == NULL); /* one service is locked at a time */
        node->held      = node->shell.Acquire(node->shell.context, apid);
        node->held_apid = apid;
    }
    SKY_ASSERT(node->held_apid == apid);
    return node->held != NULL;
}

/* Send what the held service has to say. @return true if there was no way for some of it, which the service was told */
static bool Pull(SKY_Node_t *node, uint64_t now_us)
{
    const SKY_NodeService_t *service = node->held;
    SKY_Route_t              route;
    SKY_Out_t                out;
    uint32_t                 count;
    SKY_Addr_t               unreachable = {0, 0}; /* the last address without a way; the next pull tells of others */

    SKY_ASSERT(service != NULL);
    (void)memset(&route, 0, sizeof(route));
    for (count = 0; count < SKY_NODE_BURST_MAX && service->Next(service->context, now_us, &out); ++count)
    {
        SKY_ASSERT(SKY_Addr_Equal(out.pkt.src, node->router.self));
        SKY_ASSERT(out.pkt.length == 0u || out.pkt.payload != NULL);
        SKY_Router_Decide(&node->router, now_us, &out.pkt, SKY_LINK_NONE, node->asker, &route);
        if (route.action == SKY_ROUTE_FORWARD || route.action == SKY_ROUTE_GROUND)
        {
            const SKY_LinkId_t link = route.action == SKY_ROUTE_GROUND ? SKY_LINK_GROUND : route.link;

            SKY_ASSERT(link < SKY_LINK_COUNT);
            node->bodies_wait = node->bodies_wait || out.pkt.length > SKY_NODE_COPY_BYTES;
            SKY_NodeLink_SendWhole(node, now_us, &out.pkt, out.has_crc16 ? &out.payload_crc16 : NULL, link, route.endpoint);
        }
        else if (route.action == SKY_ROUTE_ANSWER && route.status == SKY_STATUS_UNREACHABLE) /* the router has counted the drop */
        {
            unreachable = out.pkt.dst;
        }
    }
    if (count == SKY_NODE_BURST_MAX && service->Next(service->context, now_us, &out))
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_BUSY); /* the rest is dropped; whoever waits for it asks again */
    }
    if (unreachable.plane != 0u)
    {
        service->Unreachable(service->context, unreachable);
    }
    SKY_ASSERT(node->held == service); /* nobody else has locked the service meanwhile */
    SKY_ASSERT(count <= SKY_NODE_BURST_MAX);
    return unreachable.plane != 0u;
}

static void PollServices(SKY_Node_t *node, uint64_t now_us)
{
    uint64_t due_us = node->cfg.poll_most_us < UINT64_MAX - now_us ? now_us + node->cfg.poll_most_us : UINT64_MAX;
    SKY_ASSERT(node->asker == 0u); /* polled packets answer nobody */

    LetGo(node);
    SKY_ASSERT(node->held == NULL);
    for (uint32_t place = 0; place < SKY_NODE_SERVICES; ++place)
    {
        uint16_t                 apid    = 0;
        uint64_t                 next_us = UINT64_MAX;
        const SKY_NodeService_t *service = node->shell.AcquireAt(node->shell.context, place, &apid);

        if (service != NULL)
        {
            node->held      = service;
            node->held_apid = apid;
            service->Poll(service->context, now_us, &next_us);
            if (Pull(node, now_us))
            {
                next_us = now_us; /* packets that waited for that way may go on */
            }
            LetGo(node);
            due_us = next_us < due_us ? next_us : due_us;
        }
    }
    node->poll_due_us = due_us < now_us + POLL_MIN_US ? now_us + POLL_MIN_US : due_us;
    SKY_ASSERT(node->poll_due_us > now_us);
    SKY_ASSERT(node->held == NULL);
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

/* Return true if the sender of a request may be told why nothing comes of it. Who has shown nothing is not always answered. */
static bool MayAnswer(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint)
{
    SKY_ASSERT(pkt->is_request);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    if (ingress != SKY_LINK_GROUND)
    {
        return SKY_Packet_IsOurs(pkt); /* in our header the answer would be much longer, and satellites speak no other one */
    }
    return node->security == NULL || node->association != NULL || SKY_Security_MayBeTold(node->security, now_us, pkt, endpoint);
}

/* Tell the sender of a request why nothing comes of it. This answer is at most 8 bytes longer than the request. */
static void Answer(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                   uint64_t endpoint)
{
    SKY_Packet_t reply;
    SKY_ASSERT(pkt->is_request); /* answers to answers would never end */
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT);

    if (!MayAnswer(node, now_us, pkt, ingress, endpoint))
    {
        return;
    }
    SKY_Packet_Reply(pkt, node->router.self, status, &reply);
    SKY_ASSERT(!reply.is_request);
    if (status == SKY_STATUS_UNAUTHENTICATED) /* so that only who has seen the request can have sent the answer */
    {
        reply.spi      = pkt->spi;
        reply.sequence = pkt->sequence;
    }
    else if (status == SKY_STATUS_COOKIE)
    {
        reply.cookie = SKY_Security_GreetingCookieOf(node->security, now_us, endpoint);
    }
    if (ingress == SKY_LINK_GROUND)
    {
        reply.gateway = node->router.self;
        if (SKY_Packet_IsOurs(pkt))
        {
            SKY_NodeLink_SendOver(node, now_us, &reply, SKY_LINK_GROUND, endpoint);
        }
        else /* our header is longer than that of version 1, so the answer would be much longer than the request */
        {
            SKY_NodeLink_SendBase(node, now_us, &reply, endpoint);
        }
    }
    else
    {
        SKY_NodeLink_SendPacket(node, now_us, &reply);
    }
}

static void AnswerRequest(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                          uint64_t endpoint)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    if (pkt->is_request)
    {
        Answer(node, now_us, pkt, status, ingress, endpoint);
    }
}

/* ---- arrivals -------------------------------------------------------------------------------------------------------- */

/* Act on a datagram that did not decode. */
static void Refuse(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                   uint64_t endpoint)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    ++node->undecoded;
    SKY_Router_CountDrop(&node->router, status);
    if (pkt->apid == NO_APID)
    {
        return; /* not even the sender's address can be trusted */
    }
    if (SKY_Addr_Equal(pkt->dst, node->router.self) && pkt->apid != SKY_APID_ISL && Hold(node, pkt->apid))
    {
        node->held->Reject(node->held->context, status);
    }
    AnswerRequest(node, now_us, pkt, status, ingress, endpoint);
}

static void Deliver(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint)
{
    const SKY_Status_t status = SKY_NodeGuard_Admit(node, now_us, pkt, ingress, endpoint);
    SKY_ASSERT(SKY_Addr_Equal(pkt->dst, node->router.self));
    SKY_ASSERT(ingress < SKY_LINK_COUNT);
    SKY_ASSERT(ingress == SKY_LINK_GROUND || node->asker == 0u); /* only ground hosts ask from an endpoint */
    if (status != SKY_STATUS_OK)
    {
        if (status != SKY_STATUS_RUNNING)
        {
            SKY_Router_CountDrop(&node->router, status);
            AnswerRequest(node, now_us, pkt, status, ingress, endpoint);
        }
        return;
    }
    if (pkt->apid == SKY_APID_ISL)
    {
        SKY_NodeLocal_Packet(node, now_us, pkt, ingress);
    }
    else if (Hold(node, pkt->apid))
    {
        if (node->bodies_wait)
        {
            Flush(node);
        }
        SKY_ASSERT(!node->bodies_wait);
        node->held->Begin(node->held->context, now_us, pkt);
        (void)Pull(node, now_us);
        node->poll_due_us = now_us; /* the service may have got work to go on with */
    }
    else
    {
        ++node->router.counters.no_service;
        AnswerRequest(node, now_us, pkt, SKY_STATUS_UNREACHABLE, ingress, endpoint);
    }
}

/* Forward a packet that is for others, from where it lies. */
static void PassOn(SKY_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, const SKY_Packet_t *pkt,
                   const SKY_Route_t *route, SKY_LinkId_t ingress, uint64_t endpoint)
{
    const SKY_PacketParts_t parts = {NULL, data, NULL, 0, len, 0};
    SKY_ASSERT(route->action == SKY_ROUTE_FORWARD || route->action == SKY_ROUTE_GROUND);
    SKY_ASSERT(!SKY_Addr_Equal(pkt->dst, node->router.self));
    SKY_ASSERT(len > pkt->length);

    if (len > node->cfg.packet_bytes)
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_TOO_LARGE);
        AnswerRequest(node, now_us, pkt, SKY_STATUS_TOO_LARGE, ingress, endpoint);
    }
    else if (route->action == SKY_ROUTE_FORWARD)
    {
        SKY_ASSERT(route->hop_limit < pkt->hop_limit); /* every packet ends, because its hop limit falls */
        SKY_ASSERT(route->link < SKY_ISL_COUNT);
        SKY_Packet_Relabel(data, len, route->hop_limit, route->gateway);
        SKY_NodeLink_Send(node, now_us, route->link, 0, &parts);
    }
    else
    {
        SKY_ASSERT(route->endpoint != 0u);
        SKY_NodeLink_Send(node, now_us, SKY_LINK_GROUND, route->endpoint, &parts);
    }
}

static void Process(SKY_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, SKY_LinkId_t ingress, uint64_t endpoint)
{
    SKY_Packet_t pkt;
    SKY_Route_t  route;
    SKY_Status_t status;
    SKY_ASSERT(ingress < SKY_LINK_COUNT);

    SKY_ASSERT(node->asker == 0u);
    pkt.apid = NO_APID; /* stays if decoding fails before the APID is known */
    status   = SKY_Packet_Decode(data, len, &pkt);
    if (status != SKY_STATUS_OK)
    {
        Refuse(node, now_us, &pkt, status, ingress, endpoint);
        return;
    }
    status = SKY_NodeGuard_Enter(node, now_us, &pkt, ingress, endpoint);
    if (status != SKY_STATUS_OK)
    {
        SKY_Router_CountDrop(&node->router, status);
        if (status != SKY_STATUS_BUSY) /* else it comes from a source that has asked for too much */
        {
            Answer(node, now_us, &pkt, status, ingress, endpoint);
        }
        return;
    }
    SKY_Router_Decide(&node->router, now_us, &pkt, ingress, endpoint, &route);
    switch (route.action)
    {
        case SKY_ROUTE_DELIVER:
            pkt.gateway = route.gateway; /* the gateway becomes this satellite, so that responses find back */
            node->asker = route.endpoint;
            Deliver(node, now_us, &pkt, ingress, endpoint);
            node->asker       = 0;
            node->association = NULL;
            break;
        case SKY_ROUTE_FORWARD:
        case SKY_ROUTE_GROUND:
            PassOn(node, now_us, data, len, &pkt, &route, ingress, endpoint);
            break;
        case SKY_ROUTE_ANSWER:
            Answer(node, now_us, &pkt, route.status, ingress, endpoint);
            break;
        case SKY_ROUTE_DROP:
        default:
            break;
    }
}

void SKY_Node_Receive(SKY_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint)
{
    SKY_LinkId_t ingress;

    SKY_NodeLink_EndCuts(node, now_us);
    ingress = SKY_Node_LinkOf(node, endpoint);
    SKY_ASSERT(ingress == SKY_LINK_GROUND || node->links[ingress].is_present);
    if (SKY_Endpoint_Port(endpoint) == 0u) /* without a port nobody can be answered, and trying fails like a refused train */
    {
        SKY_Router_CountDrop(&node->router, SKY_STATUS_BAD_ADDRESS);
    }
    else if (SKY_NodeLink_Heard(node, now_us, ingress, len))
    {
        Process(node, now_us, data, len, ingress, endpoint);
    }
    SKY_ASSERT(node->asker == 0u);
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

void SKY_Node_Run(SKY_Node_t *node, uint64_t now_us)
{
    SKY_NodeLink_EndCuts(node, now_us);
    if (now_us >= node->poll_due_us)
    {
        PollServices(node, now_us);
    }
    SKY_Hello_Poll(&node->hello, now_us);
    SKY_NodeLink_RunHellos(node, now_us);
    SKY_NodeGuard_Run(node, now_us);
    LetGo(node);
    Flush(node);
    SKY_ASSERT(node->held == NULL);
    SKY_ASSERT(!node->bodies_wait);
    SKY_ASSERT(node->asker == 0u);
    SKY_ASSERT(node->poll_due_us > now_us);
}

uint64_t SKY_Node_NextDue(const SKY_Node_t *node)
{
    const uint64_t hello_us = SKY_Hello_NextDue(&node->hello);
    uint64_t       due_us   = SKY_NodeLink_NextDue(node);

    if (node->poll_due_us < due_us)
    {
        due_us = node->poll_due_us;
    }
    due_us = hello_us < due_us ? hello_us : due_us;
    if (node->security != NULL)
    {
        const uint64_t handshake_us = SKY_Security_NextDue(node->security);

        due_us = handshake_us < due_us ? handshake_us : due_us;
    }
    return due_us;
}

void SKY_Node_Wake(SKY_Node_t *node)
{
    node->poll_due_us = 0;
}

/* ---- configuration --------------------------------------------------------------------------------------------------- */

bool SKY_Node_Init(SKY_Node_t *node, const SKY_NodeShell_t *shell, const SKY_NodeMemory_t *memory)
{
    if (memory->listener_count == 0u || memory->relayed_count == 0u)
    {
        return false;
    }
    (void)memset(node, 0, sizeof(*node));
    node->shell  = *shell;
    node->memory = *memory;
    (void)memset(memory->listeners, 0, memory->listener_count * sizeof(*memory->listeners));
    (void)memset(memory->relayed, 0, memory->relayed_count * sizeof(*memory->relayed));
    return true;
}

void SKY_Node_Secure(SKY_Node_t *node, SKY_Security_t *security)
{
    node->security = security;
}

static void SetLink(SKY_Node_t *node, uint64_t now_us, uint32_t id, const SKY_NodeNeighbour_t *neighbour)
{
    static const SKY_LinkModel_t ideal = {0, 0, 0, 0, false};
    SKY_NodeLink_t              *link  = &node->links[id];
    SKY_ASSERT(id < SKY_LINK_COUNT);

    link->is_present = neighbour->is_present;
    link->peer       = neighbour->addr;
    link->endpoint   = neighbour->endpoint;
    link->heard_once = false;
    link->heard_us   = now_us;
    SKY_Node_SetModel(node, now_us, (SKY_LinkId_t)id, &ideal);
}

static bool IsSameSatellite(const SKY_Router_t *router, const SKY_NodeCfg_t *cfg)
{
    return SKY_Addr_Equal(router->self, cfg->self) && router->torus.planes == cfg->torus.planes &&
           router->torus.slots == cfg->torus.slots && router->torus.seam_cut == cfg->torus.seam_cut;
}

SKY_NodeResult_t SKY_Node_Configure(SKY_Node_t *node, uint64_t now_us, const SKY_NodeCfg_t *cfg)
{
    static const SKY_NodeNeighbour_t ground = {true, {0, 0}, 0};
    bool                             has_room;

    if (!IsSameSatellite(&node->router, cfg))
    {
        if (!SKY_Router_Init(&node->router, &cfg->torus, cfg->self))
        {
            return SKY_NODE_REFUSED;
        }
        (void)memset(node->memory.listeners, 0, node->memory.listener_count * sizeof(*node->memory.listeners));
        if (node->security != NULL)
        {
            SKY_Security_Move(node->security, cfg->self);
        }
    }
    if (node->started_us == 0u)
    {
        node->started_us = now_us;
    }
    node->cfg = *cfg;
    if (node->router.map == NULL && SKY_Map_Init(&node->map, &cfg->torus, cfg->self, node->memory.map, node->memory.map_bytes))
    {
        SKY_Router_SetMap(&node->router, &node->map);
    }
    SKY_ASSERT(node->router.map == NULL || node->router.map == &node->map);
    SKY_ASSERT(node->router.map == NULL || node->map.satellites == (uint32_t)cfg->torus.planes * cfg->torus.slots);
    SKY_ASSERT(SKY_Addr_Equal(node->router.self, cfg->self));
    has_room = node->router.map != NULL;
    SKY_Hello_Init(&node->hello, &node->router, now_us, cfg->hello_us); /* Init takes the map away if there are no hellos */
    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        SetLink(node, now_us, id, &cfg->neighbours[id]);
    }
    SetLink(node, now_us, SKY_LINK_GROUND, &ground);
    SKY_ASSERT(cfg->hello_us != 0u || node->router.map == NULL);
    SKY_ASSERT(node->links[SKY_LINK_GROUND].is_present); /* without the ground link nobody could reach the satellite */
    SKY_ASSERT(node->router.map == NULL || node->map.self < node->map.satellites);
    SKY_ASSERT(node->router.usable >> SKY_ISL_COUNT == 0u);
    return has_room ? SKY_NODE_CONFIGURED : SKY_NODE_MAPLESS;
}

void SKY_Node_ResetCounters(SKY_Node_t *node)
{
    (void)memset(&node->router.counters, 0, sizeof(node->router.counters));
    for (uint32_t id = 0; id < SKY_LINK_COUNT; ++id)
    {
        (void)memset(&node->links[id].counters, 0, sizeof(node->links[id].counters));
    }
    node->undecoded    = 0;
    node->relayed_up   = 0;
    node->relayed_down = 0;
    node->relay_errors = 0;
    if (node->security != NULL)
    {
        SKY_Security_ResetCounters(node->security);
    }
}
