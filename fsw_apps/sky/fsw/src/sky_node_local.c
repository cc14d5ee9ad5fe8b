/**
 * @file
 * Requests that a node serves itself, at the APID of isl: PING, HELLO, STATS, REKEY, and RELAY of messages of the Software Bus.
 *
 * RELAY puts a command on the bus of this satellite, through the shell, which decides what is admitted. A command that is repeated,
 * because its answer was lost, is answered and not put there again. With the flag TLM the requester gets telemetry for as long as its
 * lease lasts.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_crc.h"
#include "sky_node_priv.h"

#define COUNTER_BYTES 8u
#define STATS_COUNT   (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT)
#define STATS_BYTES   (STATS_COUNT * COUNTER_BYTES) /* no more than SKY_NODE_COPY_BYTES */

/* ---- STATS ----------------------------------------------------------------------------------------------------------- */

static void SecurityStats(const SKY_Node_t *node, uint64_t *out)
{
    const SKY_Security_t *security = node->security;

    out[SKY_STATS_ISL_SECURED]              = SKY_Node_IsKeyed(node) ? 1u : 0u;
    out[SKY_STATS_ISL_ASSOCIATIONS]         = security != NULL ? security->associations.established : 0u;
    out[SKY_STATS_ISL_DROP_UNAUTHENTICATED] = security != NULL ? security->counters.unauthenticated : 0u;
    out[SKY_STATS_ISL_DROP_REPLAYED]        = security != NULL ? security->counters.replayed : 0u;
    out[SKY_STATS_ISL_DROP_COOKIE]          = security != NULL ? security->counters.no_cookie : 0u;
    out[SKY_STATS_ISL_DROP_REFUSED]         = security != NULL ? security->counters.refused : 0u;
    out[SKY_STATS_ISL_REKEY_REFUSED]        = security != NULL ? security->rekey.refused : 0u;
    out[SKY_STATS_ISL_GENERATION_PEERS]     = SKY_Node_IsKeyed(node) ? security->generation : 0u;
    for (uint32_t i = 0; i < SKY_MASTER_KEYS && SKY_Node_IsKeyed(node); ++i)
    {
        const SKY_MasterKey_t *master = &security->associations.masters[i];
        const uint32_t         place  = SKY_STATS_ISL_GENERATION_FIRST + (uint32_t)out[SKY_STATS_ISL_MASTER_KEYS];

        out[place] = master->is_set ? master->generation : out[place];
        out[SKY_STATS_ISL_MASTER_KEYS] += master->is_set ? 1u : 0u;
    }
    SKY_ASSERT(out[SKY_STATS_ISL_MASTER_KEYS] <= SKY_MASTER_KEYS);
    SKY_ASSERT(security != NULL || out[SKY_STATS_ISL_SECURED] == 0u);
}

static void NodeStats(const SKY_Node_t *node, uint64_t now_us, uint64_t *out)
{
    const SKY_RouterCounters_t *counters = &node->router.counters;

    out[SKY_STATS_ISL_UPTIME_MS]        = (now_us - node->started_us) / 1000u;
    out[SKY_STATS_ISL_DELIVERED]        = counters->delivered;
    out[SKY_STATS_ISL_FORWARDED]        = counters->forwarded;
    out[SKY_STATS_ISL_TO_GROUND]        = counters->to_ground;
    out[SKY_STATS_ISL_DROP_SHORT]       = counters->drops[SKY_STATUS_SHORT];
    out[SKY_STATS_ISL_DROP_HEADER]      = counters->drops[SKY_STATUS_BAD_HEADER];
    out[SKY_STATS_ISL_DROP_CHECKSUM]    = counters->drops[SKY_STATUS_BAD_CHECKSUM];
    out[SKY_STATS_ISL_DROP_CRC]         = counters->drops[SKY_STATUS_BAD_CRC];
    out[SKY_STATS_ISL_DROP_VERSION]     = counters->drops[SKY_STATUS_BAD_VERSION];
    out[SKY_STATS_ISL_DROP_LENGTH]      = counters->drops[SKY_STATUS_BAD_LENGTH] + counters->drops[SKY_STATUS_BAD_CHUNK];
    out[SKY_STATS_ISL_DROP_ADDRESS]     = counters->drops[SKY_STATUS_BAD_ADDRESS] + counters->drops[SKY_STATUS_REFUSED];
    out[SKY_STATS_ISL_DROP_HOP_LIMIT]   = counters->drops[SKY_STATUS_HOP_LIMIT];
    out[SKY_STATS_ISL_DROP_UNREACHABLE] = counters->drops[SKY_STATUS_UNREACHABLE] + counters->drops[SKY_STATUS_BUSY];
    out[SKY_STATS_ISL_DROP_TOO_LARGE]   = counters->drops[SKY_STATUS_TOO_LARGE];
    out[SKY_STATS_ISL_DROP_NO_SERVICE]  = counters->no_service;
    out[SKY_STATS_ISL_LINKS_DOWN_KNOWN] = node->router.map != NULL ? node->map.links_down : 0u;
    out[SKY_STATS_ISL_LINKS]            = SKY_LINK_COUNT;
    SecurityStats(node, out);
    SKY_ASSERT(node->router.map != NULL || out[SKY_STATS_ISL_LINKS_DOWN_KNOWN] == 0u);
}

static void LinkStats(const SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t *out)
{
    const SKY_NodeLink_t *link = &node->links[id];
    SKY_ASSERT(id < SKY_LINK_COUNT);

    out[SKY_STATS_LINK_UP]                 = SKY_Node_IsUp(node, id) ? 1u : 0u;
    out[SKY_STATS_LINK_PLANE]              = link->peer.plane;
    out[SKY_STATS_LINK_SLOT]               = link->peer.slot;
    out[SKY_STATS_LINK_TX_PACKETS]         = link->counters.tx_packets;
    out[SKY_STATS_LINK_TX_BYTES]           = link->counters.tx_bytes;
    out[SKY_STATS_LINK_RX_PACKETS]         = link->counters.rx_packets;
    out[SKY_STATS_LINK_RX_BYTES]           = link->counters.rx_bytes;
    out[SKY_STATS_LINK_DROP_QUEUE]         = link->counters.drop_queue;
    out[SKY_STATS_LINK_DROP_LOSS]          = link->counters.drop_loss;
    out[SKY_STATS_LINK_DROP_CUT]           = link->counters.drop_cut;
    out[SKY_STATS_LINK_DROP_ERROR]         = link->counters.drop_error;
    out[SKY_STATS_LINK_QUEUE_DEPTH]        = link->queue_depth;
    out[SKY_STATS_LINK_LAST_HEARD_MS]      = link->heard_once ? (now_us - link->heard_us) / 1000u : UINT64_MAX;
    out[SKY_STATS_LINK_DELAY_REQUESTED_US] = link->model.delay_us;
    out[SKY_STATS_LINK_DELAY_MEAN_US]      = id != SKY_LINK_GROUND ? node->hello.links[id].mean_us : 0u;
    out[SKY_STATS_LINK_DELAY_MIN_US]       = id != SKY_LINK_GROUND ? SKY_Hello_MinUs(&node->hello.links[id]) : 0u;
    out[SKY_STATS_LINK_RATE_KBPS]          = link->model.rate_kbps;
    out[SKY_STATS_LINK_LOSS_PPM]           = link->model.loss_ppm;
    out[SKY_STATS_LINK_JITTER_US]          = link->model.jitter_us;
}

static uint32_t EncodeStats(const SKY_Node_t *node, uint64_t now_us, uint8_t *payload)
{
    uint64_t values[STATS_COUNT];

    (void)memset(values, 0, sizeof(values));
    NodeStats(node, now_us, values);
    for (uint32_t id = 0; id < SKY_LINK_COUNT; ++id)
    {
        LinkStats(node, now_us, (SKY_LinkId_t)id, &values[SKY_STATS_ISL_COUNT + id * SKY_STATS_LINK_COUNT]);
    }
    SKY_ASSERT(values[SKY_STATS_ISL_LINKS] == SKY_LINK_COUNT); /* the receiver counts on as many links */
    for (uint32_t i = 0; i < STATS_COUNT; ++i)
    {
        for (uint32_t byte = 0; byte < COUNTER_BYTES; ++byte)
        {
            payload[i * COUNTER_BYTES + byte] = (uint8_t)(values[i] >> (8u * (COUNTER_BYTES - 1u - byte)));
        }
    }
    return STATS_BYTES;
}

/* ---- RELAY: commands ------------------------------------------------------------------------------------------------- */

static bool WasRelayed(const SKY_Node_t *node, const SKY_NodeRelayed_t *command)
{
    SKY_ASSERT(node->memory.relayed_count >= 1u);
    SKY_ASSERT(node->relayed_next < node->memory.relayed_count);
    for (uint32_t i = 0; i < node->memory.relayed_count; ++i)
    {
        const SKY_NodeRelayed_t *before = &node->memory.relayed[i];

        if (SKY_Addr_Equal(before->host, command->host) && before->request_id == command->request_id &&
            before->crc == command->crc)
        {
            return true;
        }
    }
    return false;
}

static SKY_Status_t RelayOnce(SKY_Node_t *node, const SKY_Packet_t *pkt)
{
    SKY_NodeRelayed_t command;
    SKY_Status_t      status;

    command.host       = pkt->src;
    command.request_id = pkt->request_id;
    command.crc        = SKY_Crc32c(0, pkt->payload, pkt->length);
    if (WasRelayed(node, &command))
    {
        return SKY_STATUS_OK;
    }
    status = node->shell.Command(node->shell.context, pkt->payload, pkt->length);
    if (status == SKY_STATUS_OK)
    {
        SKY_ASSERT(node->relayed_next < node->memory.relayed_count);
        node->memory.relayed[node->relayed_next] = command;
        node->relayed_next                       = (node->relayed_next + 1u) % node->memory.relayed_count;
        ++node->relayed_up;
        SKY_ASSERT(node->relayed_next < node->memory.relayed_count);
    }
    return status;
}

/* ---- RELAY: telemetry ------------------------------------------------------------------------------------------------ */

/* Find the lease of an endpoint. It has one, whatever numbers it gives itself. */
static bool IsLeaseOf(const SKY_NodeListener_t *listener, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    return listener->endpoint == endpoint &&
           (endpoint != 0u || (SKY_Addr_Equal(listener->host, pkt->src) && SKY_Addr_Equal(listener->gateway, pkt->gateway)));
}

/* Give the requester a lease, or renew it. Without a free place the oldest lease makes room, because listeners renew in time. */
static void Listen(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint64_t      endpoint = node->asker;
    SKY_NodeListener_t *place    = &node->memory.listeners[0];
    SKY_ASSERT(node->memory.listener_count >= 1u);

    for (uint32_t i = 0; i < node->memory.listener_count; ++i)
    {
        SKY_NodeListener_t *listener = &node->memory.listeners[i];

        if (listener->until_us > now_us && IsLeaseOf(listener, pkt, endpoint))
        {
            place = listener;
            break;
        }
        if (listener->until_us < place->until_us)
        {
            place = listener;
        }
    }
    SKY_ASSERT(place >= node->memory.listeners);
    SKY_ASSERT(place < node->memory.listeners + node->memory.listener_count);
    place->host       = pkt->src;
    place->gateway    = pkt->gateway;
    place->endpoint   = endpoint;
    place->request_id = pkt->request_id;
    place->spi        = node->association != NULL ? node->association->spi : SKY_SPI_NONE;
    place->until_us   = now_us + node->cfg.lease_us;
    SKY_ASSERT(place->until_us >= now_us);
    SKY_ASSERT(place->endpoint == node->asker); /* telemetry goes to the endpoint that asked */
}

static SKY_Status_t Relay(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const bool   listens = (pkt->flags & SKY_FLAG_TLM) != 0u;
    SKY_Status_t status  = SKY_STATUS_OK;
    SKY_ASSERT(pkt->op == SKY_OP_RELAY);
    SKY_ASSERT(pkt->is_request);

    if (listens)
    {
        Listen(node, now_us, pkt);
    }
    if (pkt->length > 0u || !listens)
    {
        status = RelayOnce(node, pkt);
    }
    if (status != SKY_STATUS_OK)
    {
        ++node->relay_errors;
    }
    return status;
}

uint32_t SKY_Node_Listeners(const SKY_Node_t *node, uint64_t now_us)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->memory.listener_count; ++i)
    {
        count += node->memory.listeners[i].until_us > now_us ? 1u : 0u;
    }
    SKY_ASSERT(count <= node->memory.listener_count);
    return count;
}

/* Find the association of a listener, under which it gets telemetry. @return false if that has ended, and the lease with it */
static bool FindAssociation(SKY_Node_t *node, SKY_NodeListener_t *listener)
{
    SKY_ASSERT(node->association == NULL);
    if (!SKY_Node_IsKeyed(node))
    {
        return true;
    }
    node->association = SKY_Associations_Find(&node->security->associations, listener->spi);
    if (node->association == NULL)
    {
        listener->until_us = 0;
    }
    return node->association != NULL;
}

void SKY_Node_Telemetry(SKY_Node_t *node, uint64_t now_us, const uint8_t *message, uint32_t len)
{
    SKY_ASSERT(len == 0u || message != NULL);
    SKY_ASSERT(node->asker == 0u);
    for (uint32_t i = 0; i < node->memory.listener_count; ++i)
    {
        SKY_NodeListener_t *listener = &node->memory.listeners[i];

        if (listener->until_us > now_us && FindAssociation(node, listener))
        {
            SKY_Packet_t pkt;

            (void)memset(&pkt, 0, sizeof(pkt));
            pkt.apid       = SKY_APID_ISL;
            pkt.seq_flags  = SKY_SEQ_WHOLE;
            pkt.op         = SKY_OP_RELAY;
            pkt.flags      = SKY_FLAG_TLM;
            pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
            pkt.src        = node->router.self;
            pkt.dst        = listener->host;
            pkt.gateway    = listener->gateway;
            pkt.request_id = listener->request_id;
            pkt.length     = len;
            pkt.payload    = message;
            node->asker    = listener->endpoint;
            SKY_NodeLink_SendPacket(node, now_us, &pkt);
            node->asker       = 0;
            node->association = NULL;
            ++node->relayed_down;
        }
    }
    node->shell.Flush(node->shell.context);
    SKY_ASSERT(node->asker == 0u);
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

/* Act on a hello. @return false if it is refused */
static bool Hello(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    SKY_HelloOut_t          out;
    const SKY_HelloResult_t result = SKY_Hello_Begin(&node->hello, now_us, pkt, ingress, &out);
    SKY_ASSERT(pkt->op == SKY_OP_HELLO);

    if (result == SKY_HELLO_ANSWER)
    {
        SKY_NodeLink_SendOver(node, now_us, &out.pkt, out.link, 0); /* the answer leaves over its link */
    }
    SKY_NodeLink_RunHellos(node, now_us); /* news leaves at once, before packets that are routed by it */
    SKY_ASSERT(result != SKY_HELLO_ANSWER || pkt->is_request);
    SKY_ASSERT(result != SKY_HELLO_ANSWER || out.link == ingress);
    return result != SKY_HELLO_REFUSED;
}

/* Act on a command about keys. It reaches a satellite that has a key, from the mission, or is refused. */
static SKY_Status_t Rekey(SKY_Node_t *node, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->op == SKY_OP_REKEY);
    SKY_ASSERT(node->association == NULL || SKY_Credential_Role(&node->association->credential) == SKY_ROLE_MISSION);
    if (node->association == NULL)
    {
        return SKY_STATUS_REFUSED;
    }
    return SKY_Security_Rekey(node->security, SKY_Credential_Generation(&node->association->credential), node->router.torus.slots,
                              pkt->payload, pkt->length);
}

void SKY_NodeLocal_Packet(SKY_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    uint8_t      stats[STATS_BYTES];
    SKY_Packet_t reply;
    SKY_ASSERT(pkt->apid == SKY_APID_ISL);
    SKY_ASSERT(ingress < SKY_LINK_COUNT);

    if (pkt->op == SKY_OP_HELLO && (Hello(node, now_us, pkt, ingress) || (pkt->flags & SKY_FLAG_GOSSIP) != 0u))
    {
        return; /* news is never answered, not even if it is refused */
    }
    if (!pkt->is_request)
    {
        return;
    }
    SKY_Packet_Reply(pkt, node->router.self, SKY_STATUS_OK, &reply);
    switch (pkt->op)
    {
        case SKY_OP_PING:
            if (pkt->length > SKY_LIMIT_PING_BYTES)
            {
                reply.status = SKY_STATUS_TOO_LARGE;
                break;
            }
            reply.payload = pkt->payload;
            reply.length  = pkt->length;
            break;
        case SKY_OP_STATS:
            reply.payload = stats;
            reply.length  = EncodeStats(node, now_us, stats);
            break;
        case SKY_OP_RELAY:
            reply.status = Relay(node, now_us, pkt);
            break;
        case SKY_OP_REKEY:
            reply.status = Rekey(node, pkt);
            break;
        case SKY_OP_HELLO:
            reply.status = SKY_STATUS_REFUSED;
            break;
        case SKY_OP_ASSOCIATE:
            reply.cookie = node->security != NULL ? SKY_Security_CookieOf(node->security, now_us, node->asker) : SKY_COOKIE_NONE;
            break;
        default:
            reply.status = SKY_STATUS_BAD_OP;
            break;
    }
    SKY_NodeLink_SendPacket(node, now_us, &reply);
    SKY_ASSERT(reply.length <= SKY_NODE_COPY_BYTES); /* the reply is copied at once, because its payload does not last */
    SKY_ASSERT(!reply.is_request);
}
