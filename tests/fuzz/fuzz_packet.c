/**
 * @file
 * Fuzz target: datagram -> packet decoder -> chunk set, relabelling, reply, routing.
 *
 * The first byte of the input says how far the rest is made to look right (nobody finds a CRC by chance), the second where it came
 * from; the rest is the datagram.
 */
#include "fuzz.h"

#include <string.h>

#include "sky_chunkset.h"
#include "sky_crc.h"
#include "sky_router.h"

#define REPAIR_HEADERS  0x01u /* long enough, headers and lengths consistent */
#define REPAIR_CHECKSUM 0x02u
#define REPAIR_PEC      0x04u
#define AS_RESPONSE     0x08u
#define WITH_TAG        0x10u
#define PADDED_BYTES    (SKY_RESPONSE_OVERHEAD + SKY_CHUNK_SET_BYTES)
#define NOW_US          UINT64_C(1000000000)

static uint8_t out[SKY_LIMIT_PACKET_BYTES];

static void Repair(uint8_t how, uint8_t *packet, size_t len)
{
    if ((how & REPAIR_HEADERS) != 0u)
    {
        const size_t header =
            SKY_PRIMARY_BYTES + ((how & AS_RESPONSE) != 0u ? SKY_RESPONSE_SECONDARY_BYTES : SKY_REQUEST_SECONDARY_BYTES);
        const size_t tag    = (how & WITH_TAG) != 0u ? SKY_TAG_BYTES : 0u;
        const size_t length = len - header - SKY_HEADER_BYTES - tag - SKY_PEC_BYTES;

        packet[0] = (uint8_t)((packet[0] & 0x07u) | ((how & AS_RESPONSE) != 0u ? 0x08u : 0x18u));
        packet[4] = (uint8_t)((len - SKY_PRIMARY_BYTES - 1u) >> 8);
        packet[5] = (uint8_t)((len - SKY_PRIMARY_BYTES - 1u) & 0xFFu);
        if ((how & AS_RESPONSE) == 0u)
        {
            packet[6] = packet[header + SKY_OFF_OP] & 0x7Fu;
        }
        packet[header + SKY_OFF_VERSION] = SKY_VERSION;
        packet[header + SKY_OFF_SECURITY] =
            tag > 0u ? (uint8_t)(packet[header + SKY_OFF_SECURITY] % SKY_SUITE_HANDSHAKE + 1u) : 0u;
        packet[header + SKY_OFF_LENGTH]      = 0;
        packet[header + SKY_OFF_LENGTH + 1u] = 0;
        packet[header + SKY_OFF_LENGTH + 2u] = (uint8_t)(length >> 8);
        packet[header + SKY_OFF_LENGTH + 3u] = (uint8_t)(length & 0xFFu);
    }
    if ((how & REPAIR_CHECKSUM) != 0u && (how & AS_RESPONSE) == 0u)
    {
        packet[7] = 0;
        packet[7] = SKY_Xor8(0xFF, packet, len - SKY_PEC_BYTES);
    }
    if ((how & REPAIR_PEC) != 0u)
    {
        const uint16_t crc = SKY_Crc16(SKY_CRC16_INIT, packet, len - SKY_PEC_BYTES);

        packet[len - 2u] = (uint8_t)(crc >> 8);
        packet[len - 1u] = (uint8_t)(crc & 0xFFu);
    }
}

static void TryChunkSet(const SKY_Packet_t *pkt)
{
    SKY_ChunkSet_t set;
    uint32_t       seen = 0;
    uint8_t        wire[SKY_CHUNKSET_MAX_BYTES];

    if (SKY_ChunkSet_Decode(pkt, &set) != SKY_STATUS_OK)
    {
        return;
    }
    ENSURE(set.stride > 0u && set.count > 0u && set.count <= SKY_LIMIT_CHUNK_SET);
    for (uint32_t i = SKY_ChunkSet_Next(&set, 0); i < set.count; i = SKY_ChunkSet_Next(&set, i + 1u))
    {
        ENSURE(SKY_ChunkSet_Has(&set, i));
        ENSURE(SKY_ChunkSet_ChunkId(&set, i) >= set.base);
        ENSURE(SKY_ChunkSet_IndexOf(&set, SKY_ChunkSet_ChunkId(&set, i)) == i);
        ++seen;
    }
    ENSURE(SKY_ChunkSet_Size(&set) == seen);
    ENSURE(SKY_ChunkSet_Encode(&set, wire, sizeof(wire)) == pkt->length);
}

static void TryRoute(const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    const SKY_Addr_t self = {3, 10};
    SKY_Torus_t      torus;
    SKY_Router_t     router;
    SKY_Route_t      route;

    ENSURE(SKY_Torus_Init(&torus, 5, 19, (pkt->flags & 0x80u) != 0u));
    ENSURE(SKY_Router_Init(&router, &torus, self));
    router.usable = pkt->flags & 0x0Fu;
    SKY_Router_Decide(&router, NOW_US, pkt, ingress, 77, &route);
    switch (route.action)
    {
        case SKY_ROUTE_DELIVER:
            ENSURE(SKY_Addr_Equal(pkt->dst, self));
            break;
        case SKY_ROUTE_FORWARD:
            ENSURE((router.usable & (1u << route.link)) != 0u);
            ENSURE(SKY_Torus_Neighbour(&torus, self, route.link).plane != 0u);
            ENSURE(route.hop_limit < pkt->hop_limit && route.hop_limit < SKY_LIMIT_HOP_LIMIT);
            break;
        case SKY_ROUTE_ANSWER:
            ENSURE(pkt->is_request && route.status != SKY_STATUS_OK);
            break;
        case SKY_ROUTE_DROP:
            ENSURE(route.status != SKY_STATUS_OK);
            break;
        default: /* no host was heard yet: only an answer of our own, which knows where to, goes to the ground */
            ENSURE(route.action == SKY_ROUTE_GROUND && ingress == SKY_LINK_NONE && route.endpoint == 77u);
            ENSURE(!pkt->is_request && pkt->dst.plane == 0u && SKY_Addr_Equal(pkt->gateway, self));
            break;
    }
    ENSURE(ingress != SKY_LINK_GROUND || SKY_Addr_Equal(route.gateway, self));
}

/* Encode a packet with the tag that it came with. Its head is covered as it was when it was decoded. */
static size_t EncodeWhole(const SKY_Packet_t *pkt)
{
    uint8_t      tail[SKY_TAIL_MAX], covered[SKY_HEAD_MAX];
    const size_t head_len = SKY_Packet_EncodeHead(pkt, out);

    ENSURE(head_len > 0u);
    ENSURE(pkt->tag == NULL || (SKY_Packet_Authenticated(pkt, covered) == head_len && (covered[7] == 0u || !pkt->is_request)));
    SKY_Packet_Finish(pkt, &pkt->payload_crc16, pkt->tag, out, tail);
    (void)memcpy(out + head_len, pkt->payload, pkt->length);
    (void)memcpy(out + head_len + pkt->length, tail, SKY_Packet_TailBytes(pkt));
    return head_len + pkt->length + SKY_Packet_TailBytes(pkt);
}

static void TryGoodPacket(uint8_t *packet, size_t len, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    SKY_Packet_t again, reply;
    size_t       out_len;

    ENSURE(pkt->payload >= packet && pkt->payload + pkt->length + SKY_Packet_TailBytes(pkt) == packet + len);
    ENSURE(pkt->payload_crc16 == SKY_Crc16(0, pkt->payload, pkt->length));
    ENSURE(pkt->tag == (pkt->security != SKY_SUITE_NONE ? pkt->payload + pkt->length : NULL));

    out_len = EncodeWhole(pkt);
    ENSURE(out_len == len);
    ENSURE(SKY_Packet_Decode(out, out_len, &again) == SKY_STATUS_OK);
    ENSURE(again.request_id == pkt->request_id && again.length == pkt->length && again.payload_crc16 == pkt->payload_crc16);

    TryChunkSet(pkt);
    TryRoute(pkt, ingress);

    SKY_Packet_Reply(pkt, pkt->dst, SKY_STATUS_REFUSED, &reply);
    out_len = SKY_Packet_Encode(&reply, out, sizeof(out));
    ENSURE(SKY_Packet_Decode(out, out_len, &again) == SKY_STATUS_OK);

    SKY_Packet_Relabel(packet, len, (uint8_t)(pkt->hop_limit ^ 0x55u), pkt->dst);
    ENSURE(SKY_Packet_Decode(packet, len, &again) == SKY_STATUS_OK);
    ENSURE(again.hop_limit == (pkt->hop_limit ^ 0x55u) && SKY_Addr_Equal(again.gateway, pkt->dst));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SKY_Packet_t pkt;
    SKY_Status_t status;
    uint8_t     *packet;
    size_t       len;

    if (size < 2u || size - 2u > SKY_LIMIT_PACKET_BYTES)
    {
        return 0;
    }
    len = size - 2u;
    if ((data[0] & (REPAIR_HEADERS | REPAIR_CHECKSUM | REPAIR_PEC)) != 0u && len < PADDED_BYTES)
    {
        len = PADDED_BYTES;
    }
    packet = calloc(len + 1u, 1); /* a heap block of its own: reading beyond is seen */
    ENSURE(packet != NULL);
    (void)memcpy(packet + 1, data + 2, size - 2u); /* and at an odd address */
    Repair(data[0], packet + 1, len);

    status = SKY_Packet_Decode(packet + 1, len, &pkt);
    if (status == SKY_STATUS_OK)
    {
        TryGoodPacket(packet + 1, len, &pkt, (SKY_LinkId_t)(data[1] % (SKY_LINK_NONE + 1u)));
    }
    else
    {
        ENSURE(status <= SKY_STATUS_SHORT);
        ENSURE(!pkt.is_request || (pkt.payload == NULL && pkt.length == 0u));
    }
    free(packet);
    return 0;
}
