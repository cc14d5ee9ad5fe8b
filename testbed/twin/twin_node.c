/**
 * @file
 * One satellite: what `isl` and `kvc` do on board, in the same order (isl_node.c), with the network of the twin below.
 */
#include <string.h>

#include "twin_priv.h"

#define NO_APID      0xFFFFu /* an APID has 11 bits */
#define TYPE_REQUEST 0x10u   /* packet type in the first byte of the primary header */
#define POLL_MIN_US  1000u   /* as isl does it */

static void send(SKYT_Twin_t *twin, uint64_t ready_us, uint32_t node, const SKY_Route_t *route, const SKYT_Parts_t *parts)
{
    SKYT_Network_Send(twin, ready_us, node, route->action == SKY_ROUTE_GROUND ? SKYT_LINK_DOWN : (uint32_t)route->link,
                      (uint16_t)route->endpoint, parts);
}

/* Send what the service has to say. @param asker  host whose request is being served, 0: none. @return true: for some of it there is
 * no way, which the service was told */
static bool pull(SKYT_Twin_t *twin, uint32_t index, uint64_t asker)
{
    SKYT_Node_t *node = &twin->nodes[index];
    SKY_Packet_t address; /* what the router looks at */
    SKY_Route_t  route;
    SKY_Out_t    out;
    SKY_Addr_t   unreachable = {0, 0}; /* the last one; a next pull tells of others */
    bool         is_chunk    = SKYT_Work_IsChunk(twin, index);

    (void)memset(&address, 0, sizeof(address));
    address.src       = node->router.self;
    address.hop_limit = SKY_LIMIT_HOP_LIMIT;
    while (SKY_Service_Next(&node->service, twin->now_us, &out)) /* ends: a burst is bounded */
    {
        const uint64_t ready_us = SKYT_Work_Add(twin, index, is_chunk ? 1u : 0u);
        SKYT_Parts_t   parts    = {out.head, out.body, out.tail, out.head_len, out.body_len, SKY_PEC_BYTES, SKYT_NONE};

        address.dst        = out.dst;
        address.gateway    = out.gateway;
        address.is_request = (out.head[0] & TYPE_REQUEST) != 0;
        SKY_Router_Decide(&node->router, twin->now_us, &address, SKY_LINK_NONE, asker, &route);
        if (route.action == SKY_ROUTE_FORWARD || route.action == SKY_ROUTE_GROUND)
        {
            const uint32_t changed = twin->broken == SKYT_BREAK_NOTHING ? 0 : SKYT_Break_Packet(twin, &out);

            if (changed != 0)
            {
                const SKYT_Parts_t whole = {NULL, twin->scratch2, NULL, 0, changed, 0, SKYT_NONE};

                parts = whole;
            }
            send(twin, ready_us, index, &route, &parts);
        }
        else if (route.action == SKY_ROUTE_ANSWER && route.status == SKY_STATUS_UNREACHABLE)
        {
            unreachable = out.dst;
        }
        is_chunk = SKYT_Work_IsChunk(twin, index);
    }
    SKY_Service_Unreachable(&node->service, unreachable); /* nobody is at {0, 0} */
    return unreachable.plane != 0;
}

void SKYT_Node_Poll(SKYT_Twin_t *twin, uint32_t index)
{
    SKY_Service_t *service  = &twin->nodes[index].service;
    const uint32_t looked   = SKYT_Truth_Scrutinized(twin, index);
    const uint64_t scrubbed = service->core.counters.scrubbed;
    uint64_t       next_us  = UINT64_MAX;

    SKY_Service_Poll(service, twin->now_us, &next_us);
    if (service->core.counters.scrubbed != scrubbed)
    {
        SKYT_Truth_Scrubbed(twin, index, looked);
    }
    if (pull(twin, index, 0))
    {
        next_us = twin->now_us; /* what waited for that way may go on */
    }
    if (next_us == UINT64_MAX)
    {
        SKYT_Queue_Remove(&twin->queue, index);
    }
    else
    {
        SKYT_Queue_Set(&twin->queue, index, next_us < twin->now_us + POLL_MIN_US ? twin->now_us + POLL_MIN_US : next_us);
    }
}

/* ---- packets of its own ---------------------------------------------------------------------------------------------- */

static void answer(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                   uint64_t asker)
{
    SKYT_Node_t *node = &twin->nodes[index];
    uint8_t      head[SKY_HEAD_MAX];
    uint8_t      tail[SKY_PEC_BYTES];
    SKY_Packet_t reply;
    SKY_Route_t  route;

    (void)memset(&route, 0, sizeof(route));
    SKY_Packet_Reply(pkt, node->router.self, status, &reply);
    if (ingress == SKY_LINK_GROUND)
    {
        reply.gateway  = node->router.self;
        route.action   = SKY_ROUTE_GROUND;
        route.endpoint = asker;
    }
    else
    {
        SKY_Router_Decide(&node->router, twin->now_us, &reply, SKY_LINK_NONE, 0, &route);
        if (route.action != SKY_ROUTE_FORWARD && route.action != SKY_ROUTE_GROUND)
        {
            return; /* counted by the router */
        }
    }
    reply.seq_count = node->seq_count++;
    SKY_Packet_SetTime(&reply, twin->now_us);

    const uint32_t     head_len = (uint32_t)SKY_Packet_EncodeAround(&reply, NULL, head, tail);
    const SKYT_Parts_t parts    = {head, reply.payload, tail, head_len, reply.length, SKY_PEC_BYTES, SKYT_NONE};

    send(twin, twin->now_us, index, &route, &parts);
}

/* ---- arrivals -------------------------------------------------------------------------------------------------------- */

static void refuse(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, SKY_Status_t status, SKY_LinkId_t ingress,
                   uint64_t asker)
{
    SKYT_Node_t *node = &twin->nodes[index];

    ++twin->counters.damaged;
    SKY_Router_CountDrop(&node->router, status);
    if (pkt->apid == NO_APID)
    {
        return; /* not even an address could be trusted */
    }
    if (SKY_Addr_Equal(pkt->dst, node->router.self) && pkt->apid == SKY_APID_KVC)
    {
        SKY_Service_CountError(&node->service, status);
    }
    if (pkt->is_request)
    {
        answer(twin, index, pkt, status, ingress, asker);
    }
}

void SKYT_Node_Serve(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, uint64_t asker)
{
    SKYT_Node_t   *node     = &twin->nodes[index];
    const uint64_t evicted  = node->store.counters.evicted_blocks;
    const uint64_t scrubbed = node->service.core.counters.scrubbed;

    SKY_Service_Begin(&node->service, twin->now_us, pkt);
    SKYT_Truth_Put(twin, index, evicted);
    if (node->service.core.counters.scrubbed != scrubbed)
    {
        SKYT_Truth_Scrubbed(twin, index, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key));
    }
    (void)pull(twin, index, asker);
    if (twin->broken != SKYT_BREAK_NOTHING)
    {
        SKYT_Break_Served(twin, index, pkt);
    }
    SKYT_Check_Store(twin, index);
    SKYT_Node_Poll(twin, index); /* it may have got work to go on with */
}

static void deliver(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t asker)
{
    if (pkt->apid == SKY_APID_KVC)
    {
        const bool is_migrated = pkt->is_request && pkt->op == SKY_OP_PUT && pkt->src.plane != 0;

        if (is_migrated)
        {
            twin->counters.migrated_bytes += pkt->length;
            twin->row_moved_us = twin->now_us;
        }
        SKYT_Node_Serve(twin, index, pkt, asker);
        return;
    }
    if (pkt->apid == SKY_APID_ISL && pkt->op == SKY_OP_HELLO)
    {
        SKYT_Hello_Receive(twin, index, pkt, ingress);
        return;
    }
    ++twin->nodes[index].router.counters.no_service;
    if (pkt->is_request)
    {
        answer(twin, index, pkt, SKY_STATUS_UNREACHABLE, ingress, asker);
    }
}

static void pass_on(SKYT_Twin_t *twin, uint32_t index, uint8_t *data, uint32_t len, const SKY_Route_t *route)
{
    const SKYT_Parts_t parts = {NULL, data, NULL, 0, len, 0, twin->arriving};

    if (route->action == SKY_ROUTE_FORWARD)
    {
        SKY_Packet_Relabel(data, len, route->hop_limit, route->gateway);
    }
    send(twin, twin->now_us, index, route, &parts);
}

void SKYT_Node_Receive(SKYT_Twin_t *twin, uint32_t index, SKY_LinkId_t ingress, uint16_t host, uint8_t *data, uint32_t len)
{
    SKYT_Node_t *node = &twin->nodes[index];
    SKY_Packet_t pkt;
    SKY_Route_t  route;
    SKY_Status_t status;

    if (ingress != SKY_LINK_GROUND)
    {
        SKYT_Hello_Heard(twin, index, ingress);
    }
    pkt.apid = NO_APID; /* stays if decoding fails so early that nothing of the packet can be trusted */
    status   = SKY_Packet_Decode(data, len, &pkt);
    if (status != SKY_STATUS_OK)
    {
        refuse(twin, index, &pkt, status, ingress, host);
        return;
    }
    SKY_Router_Decide(&node->router, twin->now_us, &pkt, ingress, host, &route);
    switch (route.action)
    {
        case SKY_ROUTE_DELIVER:
            pkt.gateway = route.gateway; /* from the ground: ours, so that responses find back */
            deliver(twin, index, &pkt, ingress, route.endpoint);
            break;
        case SKY_ROUTE_FORWARD:
        case SKY_ROUTE_GROUND:
            pass_on(twin, index, data, len, &route);
            break;
        case SKY_ROUTE_ANSWER:
            answer(twin, index, &pkt, route.status, ingress, host);
            break;
        case SKY_ROUTE_DROP:
        default:
            break;
    }
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static bool start(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t     *node = &twin->nodes[index];
    SKY_ServiceCfg_t cfg;

    (void)memset(&cfg, 0, sizeof(cfg));
    cfg.self             = SKYT_AddrOf(twin, index);
    cfg.torus            = twin->torus;
    cfg.packet_bytes     = twin->config.packet_bytes;
    cfg.credit           = twin->config.credit;
    cfg.part_lifetime_ms = twin->config.part_lifetime_ms;
    cfg.gossip           = twin->config.gossip != 0;
    cfg.scrub_period_ms  = twin->config.scrub_ms;
    cfg.handover_ms      = twin->config.handover_ms;
    node->is_up          = true;
    node->digest         = 0;
    if (!SKY_Router_Init(&node->router, &twin->torus, cfg.self) ||
        !SKY_Map_Init(&node->map, &twin->torus, cfg.self, node->map_memory, SKY_Map_MemoryBytes(&twin->torus)))
    {
        return false;
    }
    if (twin->broken != SKYT_BREAK_ROUTE)
    {
        SKY_Router_SetMap(&node->router, &node->map);
    }
    SKY_Hello_Init(&node->hello, &node->router, twin->now_us, (uint64_t)twin->config.hello_ms * US_PER_MS);
    return SKY_Service_Init(&node->service, &cfg, &node->store, twin->now_us, SKYT_Random(twin));
}

/* All satellites begin together and know each other: nobody has to greet. */
static bool calm_down(SKY_Hello_t *hello)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        hello->links[link].is_due = false;
    }
    return true;
}

bool SKYT_Node_Init(SKYT_Twin_t *twin, uint32_t index)
{
    const SKY_StoreCfg_t cfg   = {twin->config.slot_bytes, twin->config.slot_count, twin->config.slot_count};
    const size_t         bytes = SKY_Store_MemoryBytes(&cfg);

    twin->nodes[index].memory     = twin->stores + index * bytes;
    twin->nodes[index].map_memory = twin->maps + index * (SKY_Map_MemoryBytes(&twin->torus) / sizeof(*twin->maps));
    return SKY_Store_Init(&twin->nodes[index].store, &cfg, twin->nodes[index].memory, bytes, SKYT_Random(twin)) &&
           start(twin, index) && calm_down(&twin->nodes[index].hello);
}

void SKYT_Node_SetSchedule(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t *node = &twin->nodes[index];

    (void)SKY_Service_SetSchedule(&node->service, node->late != NULL ? node->late : &twin->schedule); /* for this constellation */
}

void SKYT_Node_Crash(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t *node = &twin->nodes[index];

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        SKYT_Hello_WakeEnds(twin, index, link);
    }
    SKYT_Truth_Crash(twin, index);
    node->migrated += node->service.core.counters.migrated_out;
    node->evicted += node->store.counters.evicted_chunks;
    node->expired += node->store.counters.expired_partial;
    node->store.counters.evicted_blocks  = 0;
    node->store.counters.evicted_chunks  = 0;
    node->store.counters.expired_partial = 0;
    SKY_Store_Clear(&node->store);
    (void)memset(&node->service.core.counters, 0, sizeof(node->service.core.counters));
    node->busy_until_us = 0;
    node->is_up         = false;
    node->is_greeting   = false;
    SKYT_Queue_Remove(&twin->queue, index);
    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfHello(twin, index));
}

void SKYT_Node_Restart(SKYT_Twin_t *twin, uint32_t index)
{
    (void)start(twin, index); /* what was accepted once is accepted again */
    SKYT_Node_SetSchedule(twin, index);
    SKYT_Hello_SetSky(twin, index);
    SKYT_Hello_Wake(twin, index);
    SKYT_Hello_Flush(twin, index); /* it greets at once */
    SKYT_Node_Poll(twin, index);
}
