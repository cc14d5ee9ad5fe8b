/**
 * @file
 * What ISL itself serves at its APID: PING, HELLO, STATS, and RELAY of Software Bus messages.
 *
 * RELAY puts commands on the bus of this satellite: only whole commands with a right checksum, and only message ids that the
 * table ISL.Neighbours admits. One that is repeated, because its answer was lost, is answered and not put there again. With the
 * flag TLM the requester gets the telemetry of the table's list for as long as its lease lasts.
 */
#include <string.h>

#include "isl_bus.h"
#include "isl_node.h"

#define ISL_COUNTER_BYTES 8u
#define ISL_STATS_BYTES   ((SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT) * ISL_COUNTER_BYTES)
#define ISL_US_PER_S      UINT64_C(1000000)

CompileTimeAssert(ISL_STATS_BYTES <= ISL_IO_COPY_BYTES, IslStatsAreCopied);

/* ---- STATS --------------------------------------------------------------------------------------------------------- */

static uint8_t *ISL_Put64(uint8_t *at, uint64_t value)
{
    uint32_t i;

    for (i = 0; i < ISL_COUNTER_BYTES; ++i)
    {
        at[i] = (uint8_t)(value >> (8u * (ISL_COUNTER_BYTES - 1u - i)));
    }
    return at + ISL_COUNTER_BYTES;
}

static void ISL_NodeStats(const ISL_Node_t *node, uint64_t now_us, uint64_t *out)
{
    const SKY_RouterCounters_t *const counters = &node->router.counters;

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
}

static void ISL_LinkStats(const ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t *out)
{
    const ISL_Link_t *const link = &node->links[id];

    out[SKY_STATS_LINK_UP]                 = ISL_Link_IsUp(node, id) ? 1u : 0u;
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
    out[SKY_STATS_LINK_QUEUE_DEPTH]        = link->out.ready ? link->out.line.used : 0u;
    out[SKY_STATS_LINK_LAST_HEARD_MS]      = link->heard_once ? (now_us - link->heard_us) / 1000u : UINT64_MAX;
    out[SKY_STATS_LINK_DELAY_REQUESTED_US] = link->model.delay_us;
    out[SKY_STATS_LINK_DELAY_MEAN_US]      = id != SKY_LINK_GROUND ? node->hello.links[id].mean_us : 0u;
    out[SKY_STATS_LINK_DELAY_MIN_US]       = id != SKY_LINK_GROUND ? SKY_Hello_MinUs(&node->hello.links[id]) : 0u;
    out[SKY_STATS_LINK_RATE_KBPS]          = link->model.rate_kbps;
    out[SKY_STATS_LINK_LOSS_PPM]           = link->model.loss_ppm;
    out[SKY_STATS_LINK_JITTER_US]          = link->model.jitter_us;
}

static uint32_t ISL_EncodeStats(const ISL_Node_t *node, uint64_t now_us, uint8_t *payload)
{
    uint64_t values[SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT];
    uint32_t i;

    memset(values, 0, sizeof(values));
    ISL_NodeStats(node, now_us, values);
    for (i = 0; i < SKY_LINK_COUNT; ++i)
    {
        ISL_LinkStats(node, now_us, (SKY_LinkId_t)i, &values[SKY_STATS_ISL_COUNT + i * SKY_STATS_LINK_COUNT]);
    }
    for (i = 0; i < sizeof(values) / sizeof(values[0]); ++i)
    {
        payload = ISL_Put64(payload, values[i]);
    }
    return ISL_STATS_BYTES;
}

/* ---- RELAY --------------------------------------------------------------------------------------------------------- */

static SKY_Status_t ISL_PutOnBus(const ISL_Node_t *node, const uint8_t *bytes, uint32_t len)
{
    CFE_SB_Buffer_t *buffer = NULL;
    SKY_Status_t     status = ISL_Bus_Decode(bytes, len, node->uplink_first_mid, node->uplink_last_mid, &buffer);

    if (status == SKY_STATUS_OK && CFE_SB_TransmitBuffer(buffer, false) != CFE_SUCCESS)
    {
        (void)CFE_SB_ReleaseMessageBuffer(buffer);
        status = SKY_STATUS_BUSY;
    }
    return status;
}

/** Was this command put on the bus already? */
static bool ISL_WasRelayed(const ISL_Node_t *node, const ISL_Relayed_t *command)
{
    uint32_t i;

    for (i = 0; i < ISL_PLATFORM_RELAYED; ++i)
    {
        const ISL_Relayed_t *const before = &node->relayed[i];

        if (SKY_Addr_Equal(before->host, command->host) && before->request_id == command->request_id &&
            before->crc == command->crc)
        {
            return true;
        }
    }
    return false;
}

/** Put a command on the bus, once. */
static SKY_Status_t ISL_RelayOnce(ISL_Node_t *node, const SKY_Packet_t *pkt)
{
    ISL_Relayed_t command;
    SKY_Status_t  status;

    command.host       = pkt->src;
    command.request_id = pkt->request_id;
    command.crc        = SKY_Crc32c(0, pkt->payload, pkt->length);
    if (ISL_WasRelayed(node, &command))
    {
        return SKY_STATUS_OK;
    }
    status = ISL_PutOnBus(node, pkt->payload, pkt->length);
    if (status == SKY_STATUS_OK)
    {
        node->relayed[node->relayed_next] = command;
        node->relayed_next                = (node->relayed_next + 1u) % ISL_PLATFORM_RELAYED;
        ++node->relayed_up;
    }
    return status;
}

/** Is this the lease of whoever sent the packet? An endpoint has one, whatever numbers it gives itself. */
static bool ISL_IsLeaseOf(const ISL_Listener_t *listener, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    return listener->endpoint == endpoint &&
           (endpoint != 0 || (SKY_Addr_Equal(listener->host, pkt->src) && SKY_Addr_Equal(listener->gateway, pkt->gateway)));
}

/** Give the requester a lease, or renew it. Without a free place the oldest lease makes room: who listens renews in time. */
static void ISL_Listen(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint64_t  endpoint = node->asker;
    ISL_Listener_t *place    = &node->listeners[0];
    uint32_t        i;

    for (i = 0; i < ISL_PLATFORM_LISTENERS; ++i)
    {
        ISL_Listener_t *const listener = &node->listeners[i];

        if (listener->until_us > now_us && ISL_IsLeaseOf(listener, pkt, endpoint))
        {
            place = listener;
            break;
        }
        if (listener->until_us < place->until_us)
        {
            place = listener;
        }
    }
    place->host       = pkt->src;
    place->gateway    = pkt->gateway;
    place->endpoint   = endpoint;
    place->request_id = pkt->request_id;
    place->until_us   = now_us + ISL_PLATFORM_LISTENER_LEASE_S * ISL_US_PER_S;
}

static SKY_Status_t ISL_Relay(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const bool   listens = (pkt->flags & SKY_FLAG_TLM) != 0;
    SKY_Status_t status  = SKY_STATUS_OK;

    if (listens)
    {
        ISL_Listen(node, now_us, pkt);
    }
    if (pkt->length > 0 || !listens)
    {
        status = ISL_RelayOnce(node, pkt);
    }
    if (status != SKY_STATUS_OK)
    {
        ++node->relay_errors;
    }
    return status;
}

uint32_t ISL_Local_Listeners(const ISL_Node_t *node, uint64_t now_us)
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < ISL_PLATFORM_LISTENERS; ++i)
    {
        n += node->listeners[i].until_us > now_us ? 1u : 0u;
    }
    return n;
}

void ISL_Local_Telemetry(ISL_Node_t *node, uint64_t now_us, const CFE_MSG_Message_t *message)
{
    const uint8_t *bytes = NULL;
    uint32_t       len;
    uint32_t       i;

    if (ISL_Local_Listeners(node, now_us) == 0)
    {
        return;
    }
    len = ISL_Bus_Encode(message, &bytes);
    if (len == 0)
    {
        ++node->relay_errors;
        return;
    }
    for (i = 0; i < ISL_PLATFORM_LISTENERS; ++i)
    {
        const ISL_Listener_t *const listener = &node->listeners[i];

        if (listener->until_us > now_us)
        {
            SKY_Packet_t pkt;

            memset(&pkt, 0, sizeof(pkt));
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
            pkt.payload    = bytes;
            node->asker    = listener->endpoint;
            ISL_Node_SendPacket(node, now_us, &pkt);
            node->asker = 0;
            ++node->relayed_down;
        }
    }
    ISL_IO_Flush();
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

/** A hello of a neighbour. @return false: it is refused */
static bool ISL_Hello(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    SKY_HelloOut_t          out;
    const SKY_HelloResult_t result = SKY_Hello_Begin(&node->hello, now_us, pkt, ingress, &out);

    if (result == SKY_HELLO_ANSWER)
    {
        ISL_Node_SendOver(node, now_us, &out.pkt, out.link, 0); /* the link is what it asks about */
    }
    ISL_Node_RunHellos(node, now_us); /* news goes on at once, before packets that are routed by it */
    return result != SKY_HELLO_REFUSED;
}

void ISL_Local_Packet(ISL_Node_t *node, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    uint8_t      stats[ISL_STATS_BYTES];
    SKY_Packet_t reply;

    if (pkt->op == SKY_OP_HELLO && (ISL_Hello(node, now_us, pkt, ingress) || (pkt->flags & SKY_FLAG_GOSSIP) != 0))
    {
        return; /* news is never answered, not even where it is refused */
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
            reply.length  = ISL_EncodeStats(node, now_us, stats);
            break;
        case SKY_OP_RELAY:
            reply.status = ISL_Relay(node, now_us, pkt);
            break;
        case SKY_OP_HELLO:
            reply.status = SKY_STATUS_REFUSED;
            break;
        default:
            reply.status = SKY_STATUS_BAD_OP;
            break;
    }
    ISL_Node_SendPacket(node, now_us, &reply);
}
