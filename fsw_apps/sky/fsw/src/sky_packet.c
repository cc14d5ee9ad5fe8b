/**
 * @file
 * Codec of one Space Packet with the SkyMemory header. Every field is stored and loaded byte by byte at the offset that the
 * ICD gives it; no structure is laid over a datagram.
 */
#include "sky_packet.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_crc.h"

#define TYPE_REQUEST     0x1000u /* first word of the primary header: telecommand */
#define SECONDARY_FLAG   0x0800u
#define VERSION_MASK     0xE000u
#define APID_MASK        0x07FFu
#define FUNCTION_MASK    0x7Fu /* bit 7 is reserved in the command secondary header's first byte */
#define OFF_FUNCTION     SKY_PRIMARY_BYTES
#define OFF_CHECKSUM     (SKY_PRIMARY_BYTES + 1u)
#define CHECKSUM_INIT    0xFFu
#define US_PER_S         UINT64_C(1000000)
#define SUBS_PER_S       65536u
#define LENGTH_BIAS      (SKY_PRIMARY_BYTES + 1u)    /* the length field counts the bytes behind the primary header, less one */
#define RELABELLED_BYTES (SKY_OFF_GATEWAY_SLOT + 2u) /* bytes of our header up to the end of its last mutable field */
#define JOIN_BYTES       64u                         /* below this many bytes reading again is faster than joining CRCs */

static uint16_t Load16(const uint8_t *p)
{
    return (uint16_t)(((uint32_t)p[0] << 8) | p[1]);
}

static uint32_t Load32(const uint8_t *p)
{
    return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
}

static uint64_t Load64(const uint8_t *p)
{
    return ((uint64_t)Load32(p) << 32) | Load32(p + 4);
}

static SKY_Addr_t LoadAddr(const uint8_t *p)
{
    const SKY_Addr_t addr = {Load16(p), Load16(p + 2)};

    return addr;
}

static void Store16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)((value >> 8) & 0xFFu);
    p[1] = (uint8_t)(value & 0xFFu);
}

static void Store32(uint8_t *p, uint32_t value)
{
    Store16(p, value >> 16);
    Store16(p + 2, value);
}

static void Store64(uint8_t *p, uint64_t value)
{
    Store32(p, (uint32_t)(value >> 32));
    Store32(p + 4, (uint32_t)value);
}

static void StoreAddr(uint8_t *p, SKY_Addr_t addr)
{
    Store16(p, addr.plane);
    Store16(p + 2, addr.slot);
}

/* Return the bytes before our header. */
static size_t HeaderOffset(bool is_request)
{
    return SKY_PRIMARY_BYTES + (is_request ? SKY_REQUEST_SECONDARY_BYTES : SKY_RESPONSE_SECONDARY_BYTES);
}

static void LoadFields(const uint8_t *data, SKY_Packet_t *pkt)
{
    const uint32_t word      = Load16(data);
    const uint32_t sequence  = Load16(data + 2);
    const uint8_t *secondary = data + SKY_PRIMARY_BYTES;
    const uint8_t *header;

    pkt->is_request = (word & TYPE_REQUEST) != 0u;
    pkt->apid       = (uint16_t)(word & APID_MASK);
    pkt->seq_flags  = (uint8_t)(sequence >> 14);
    pkt->seq_count  = (uint16_t)(sequence & SKY_SEQ_COUNT_MASK);
    pkt->time_s     = pkt->is_request ? 0u : Load32(secondary);
    pkt->time_subs  = pkt->is_request ? 0u : Load16(secondary + 4);

    header           = data + HeaderOffset(pkt->is_request);
    pkt->op          = header[SKY_OFF_OP];
    pkt->status      = header[SKY_OFF_STATUS];
    pkt->flags       = header[SKY_OFF_FLAGS];
    pkt->hop_limit   = header[SKY_OFF_HOP_LIMIT];
    pkt->security    = header[SKY_OFF_SECURITY];
    pkt->credit      = Load16(header + SKY_OFF_CREDIT);
    pkt->src         = LoadAddr(header + SKY_OFF_SRC_PLANE);
    pkt->dst         = LoadAddr(header + SKY_OFF_DST_PLANE);
    pkt->gateway     = LoadAddr(header + SKY_OFF_GATEWAY_PLANE);
    pkt->tenant      = Load32(header + SKY_OFF_TENANT);
    pkt->epoch       = Load32(header + SKY_OFF_EPOCH);
    pkt->deadline_ms = Load32(header + SKY_OFF_DEADLINE_MS);
    pkt->request_id  = Load64(header + SKY_OFF_REQUEST_ID);
    (void)memcpy(pkt->key, header + SKY_OFF_KEY, SKY_KEY_BYTES);
    pkt->chunk_id      = Load32(header + SKY_OFF_CHUNK_ID);
    pkt->chunk_total   = Load32(header + SKY_OFF_CHUNK_TOTAL);
    pkt->block_len     = Load32(header + SKY_OFF_BLOCK_LEN);
    pkt->chunk_len     = Load32(header + SKY_OFF_CHUNK_LEN);
    pkt->offset        = Load32(header + SKY_OFF_OFFSET);
    pkt->length        = 0;
    pkt->chunk_crc     = Load32(header + SKY_OFF_CHUNK_CRC);
    pkt->payload       = NULL;
    pkt->payload_crc16 = 0;
    SKY_ASSERT(pkt->seq_flags <= SKY_SEQ_WHOLE);
}

static bool CarriesChunk(const SKY_Packet_t *pkt)
{
    return pkt->is_request ? pkt->op == SKY_OP_PUT : pkt->op == SKY_OP_GET && pkt->status == SKY_STATUS_OK;
}

SKY_Status_t SKY_Packet_Decode(const uint8_t *data, size_t len, SKY_Packet_t *pkt)
{
    uint32_t       word;
    bool           is_request;
    size_t         head_len, payload_len;
    const uint8_t *header;
    uint16_t       payload_crc16, packet_crc16;

    pkt->is_request = false;
    if (len < SKY_REQUEST_OVERHEAD)
    {
        return SKY_STATUS_SHORT;
    }
    word       = Load16(data);
    is_request = (word & TYPE_REQUEST) != 0u;
    head_len   = HeaderOffset(is_request) + SKY_HEADER_BYTES;
    if ((word & VERSION_MASK) != 0u)
    {
        return SKY_STATUS_BAD_HEADER;
    }
    if (len < head_len + SKY_PEC_BYTES)
    {
        return SKY_STATUS_SHORT;
    }
    if (len > SKY_LIMIT_PACKET_BYTES || len != Load16(data + 4) + LENGTH_BIAS)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    if ((word & SECONDARY_FLAG) == 0u)
    {
        return SKY_STATUS_BAD_HEADER;
    }

    payload_len   = len - head_len - SKY_PEC_BYTES;
    payload_crc16 = SKY_Crc16(0, data + head_len, payload_len);
    packet_crc16  = payload_len < JOIN_BYTES
                        ? SKY_Crc16(SKY_CRC16_INIT, data, head_len + payload_len)
                        : SKY_Crc16_Join(SKY_Crc16(SKY_CRC16_INIT, data, head_len), payload_crc16, payload_len);
    if (packet_crc16 != Load16(data + len - SKY_PEC_BYTES))
    {
        return SKY_STATUS_BAD_CRC;
    }
    if (is_request && SKY_Xor8(CHECKSUM_INIT, data, len - SKY_PEC_BYTES) != 0u)
    {
        return SKY_STATUS_BAD_CHECKSUM;
    }

    LoadFields(data, pkt);
    SKY_ASSERT(pkt->is_request == is_request);
    header = data + HeaderOffset(is_request);
    if (is_request && data[OFF_FUNCTION] != (pkt->op & FUNCTION_MASK))
    {
        return SKY_STATUS_BAD_HEADER;
    }
    if (header[SKY_OFF_VERSION] != SKY_VERSION || pkt->security != 0u)
    {
        return SKY_STATUS_BAD_VERSION;
    }
    if (Load32(header + SKY_OFF_LENGTH) != payload_len)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    if (CarriesChunk(pkt) &&
        (pkt->chunk_len > SKY_LIMIT_CHUNK_BYTES || pkt->offset > pkt->chunk_len || payload_len > pkt->chunk_len - pkt->offset))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    SKY_ASSERT(payload_len <= SKY_LIMIT_PACKET_BYTES);
    SKY_ASSERT(head_len + payload_len + SKY_PEC_BYTES == len);
    SKY_ASSERT(!CarriesChunk(pkt) || pkt->offset <= pkt->chunk_len);
    pkt->length        = (uint32_t)payload_len;
    pkt->payload       = data + head_len;
    pkt->payload_crc16 = payload_crc16;
    return SKY_STATUS_OK;
}

size_t SKY_Packet_EncodeAround(const SKY_Packet_t *pkt, const uint16_t *payload_crc16, uint8_t *head, uint8_t *tail)
{
    const size_t offset   = HeaderOffset(pkt->is_request);
    const size_t head_len = offset + SKY_HEADER_BYTES;
    uint8_t     *header   = head + offset;
    uint16_t     crc;

    if (pkt->length > SKY_LIMIT_PACKET_BYTES - SKY_PEC_BYTES - head_len)
    {
        return 0;
    }

    SKY_ASSERT(head_len <= SKY_HEAD_MAX);
    SKY_ASSERT(head_len + pkt->length + SKY_PEC_BYTES - LENGTH_BIAS <= UINT16_MAX);
    SKY_ASSERT(pkt->length == 0u || pkt->payload != NULL || payload_crc16 != NULL);
    SKY_ASSERT(pkt->seq_flags <= SKY_SEQ_WHOLE);
    SKY_ASSERT(pkt->apid <= APID_MASK);
    (void)memset(head, 0, head_len);
    Store16(head, (pkt->is_request ? TYPE_REQUEST : 0u) | SECONDARY_FLAG | (pkt->apid & APID_MASK));
    Store16(head + 2, ((uint32_t)pkt->seq_flags << 14) | (pkt->seq_count & SKY_SEQ_COUNT_MASK));
    Store16(head + 4, (uint32_t)(head_len + pkt->length + SKY_PEC_BYTES - LENGTH_BIAS));

    header[SKY_OFF_VERSION]   = SKY_VERSION;
    header[SKY_OFF_OP]        = pkt->op;
    header[SKY_OFF_STATUS]    = pkt->status;
    header[SKY_OFF_FLAGS]     = pkt->flags;
    header[SKY_OFF_HOP_LIMIT] = pkt->hop_limit;
    header[SKY_OFF_SECURITY]  = pkt->security;
    Store16(header + SKY_OFF_CREDIT, pkt->credit);
    StoreAddr(header + SKY_OFF_SRC_PLANE, pkt->src);
    StoreAddr(header + SKY_OFF_DST_PLANE, pkt->dst);
    StoreAddr(header + SKY_OFF_GATEWAY_PLANE, pkt->gateway);
    Store32(header + SKY_OFF_TENANT, pkt->tenant);
    Store32(header + SKY_OFF_EPOCH, pkt->epoch);
    Store32(header + SKY_OFF_DEADLINE_MS, pkt->deadline_ms);
    Store64(header + SKY_OFF_REQUEST_ID, pkt->request_id);
    (void)memcpy(header + SKY_OFF_KEY, pkt->key, SKY_KEY_BYTES);
    Store32(header + SKY_OFF_CHUNK_ID, pkt->chunk_id);
    Store32(header + SKY_OFF_CHUNK_TOTAL, pkt->chunk_total);
    Store32(header + SKY_OFF_BLOCK_LEN, pkt->block_len);
    Store32(header + SKY_OFF_CHUNK_LEN, pkt->chunk_len);
    Store32(header + SKY_OFF_OFFSET, pkt->offset);
    Store32(header + SKY_OFF_LENGTH, pkt->length);
    Store32(header + SKY_OFF_CHUNK_CRC, pkt->chunk_crc);

    if (pkt->is_request)
    {
        head[OFF_FUNCTION] = (uint8_t)(pkt->op & FUNCTION_MASK);
        head[OFF_CHECKSUM] = SKY_Xor8(SKY_Xor8(CHECKSUM_INIT, head, head_len), pkt->payload, pkt->length);
    }
    else
    {
        Store32(head + SKY_PRIMARY_BYTES, pkt->time_s);
        Store16(head + SKY_PRIMARY_BYTES + 4u, pkt->time_subs);
    }

    crc = SKY_Crc16(SKY_CRC16_INIT, head, head_len);
    crc = payload_crc16 != NULL ? SKY_Crc16_Join(crc, *payload_crc16, pkt->length) : SKY_Crc16(crc, pkt->payload, pkt->length);
    Store16(tail, crc);
    return head_len;
}

size_t SKY_Packet_Encode(const SKY_Packet_t *pkt, uint8_t *out, size_t cap)
{
    const size_t overhead = pkt->is_request ? SKY_REQUEST_OVERHEAD : SKY_RESPONSE_OVERHEAD;
    uint8_t      tail[SKY_PEC_BYTES];
    size_t       head_len;

    if (cap < overhead || pkt->length > cap - overhead)
    {
        return 0;
    }
    head_len = SKY_Packet_EncodeAround(pkt, NULL, out, tail);
    if (head_len == 0u)
    {
        return 0;
    }
    SKY_ASSERT(head_len + pkt->length + sizeof(tail) <= cap);
    SKY_ASSERT(head_len == overhead - SKY_PEC_BYTES);
    if (pkt->length > 0u)
    {
        (void)memcpy(out + head_len, pkt->payload, pkt->length);
    }
    (void)memcpy(out + head_len + pkt->length, tail, sizeof(tail));
    return head_len + pkt->length + sizeof(tail);
}

void SKY_Packet_Relabel(uint8_t *data, size_t len, uint8_t hop_limit, SKY_Addr_t gateway)
{
    const bool   is_request = (Load16(data) & TYPE_REQUEST) != 0u;
    const size_t offset     = HeaderOffset(is_request);
    const size_t changed    = offset + RELABELLED_BYTES;
    uint8_t      difference[SKY_PRIMARY_BYTES + SKY_RESPONSE_SECONDARY_BYTES + RELABELLED_BYTES] = {0};
    uint8_t     *pec                                                                             = data + len - SKY_PEC_BYTES;

    SKY_ASSERT(changed <= sizeof(difference));
    SKY_ASSERT(changed + SKY_PEC_BYTES <= len);
    SKY_ASSERT(len <= SKY_LIMIT_PACKET_BYTES);
    SKY_ASSERT(len == Load16(data + 4) + LENGTH_BIAS); /* the packet has been decoded */
    difference[offset + SKY_OFF_HOP_LIMIT] = hop_limit;
    StoreAddr(difference + offset + SKY_OFF_GATEWAY_PLANE, gateway);
    difference[offset + SKY_OFF_HOP_LIMIT] ^= data[offset + SKY_OFF_HOP_LIMIT];
    for (size_t i = offset + SKY_OFF_GATEWAY_PLANE; i < changed; ++i)
    {
        difference[i] = (uint8_t)(difference[i] ^ data[i]);
    }
    if (is_request)
    {
        difference[OFF_CHECKSUM] = SKY_Xor8(0, difference, changed);
    }

    for (size_t i = 0; i < changed; ++i)
    {
        data[i] = (uint8_t)(data[i] ^ difference[i]);
    }
    /* The CRC of a XOR is the XOR of the CRCs, and zeros behind the difference only shift it. */
    Store16(pec, (uint32_t)Load16(pec) ^ SKY_Crc16_Join(SKY_Crc16(0, difference, changed), 0, len - SKY_PEC_BYTES - changed));
}

void SKY_Packet_Reply(const SKY_Packet_t *req, SKY_Addr_t self, SKY_Status_t status, SKY_Packet_t *reply)
{
    const SKY_Addr_t requester = req->src;

    *reply               = *req;
    reply->is_request    = false;
    reply->seq_flags     = SKY_SEQ_WHOLE;
    reply->seq_count     = 0;
    reply->status        = status;
    reply->flags         = 0;
    reply->hop_limit     = SKY_LIMIT_HOP_LIMIT;
    reply->security      = 0;
    reply->credit        = 0;
    reply->src           = self;
    reply->dst           = requester;
    reply->deadline_ms   = 0;
    reply->length        = 0;
    reply->chunk_crc     = 0;
    reply->payload       = NULL;
    reply->payload_crc16 = 0;
}

void SKY_Packet_SetTime(SKY_Packet_t *pkt, uint64_t time_us)
{
    pkt->time_s    = (uint32_t)(time_us / US_PER_S);
    pkt->time_subs = (uint16_t)(time_us % US_PER_S * SUBS_PER_S / US_PER_S);
}
