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
#define WORDS            (SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP)
#define JOIN_BYTES       64u /* below this many bytes reading again is faster than joining CRCs */

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
    pkt->head          = data;
    pkt->tag           = NULL;
    pkt->payload_crc16 = 0;
    SKY_ASSERT(pkt->seq_flags <= SKY_SEQ_WHOLE);
}

/* Load the fields behind those that every version has. */
static void LoadRest(const uint8_t *header, SKY_Packet_t *pkt)
{
    pkt->spi           = Load32(header + SKY_OFF_SPI);
    pkt->sequence      = Load64(header + SKY_OFF_SEQUENCE);
    pkt->code_k        = header[SKY_OFF_CODE_K];
    pkt->code_m        = header[SKY_OFF_CODE_M];
    pkt->code_scheme   = header[SKY_OFF_CODE_SCHEME];
    pkt->track         = header[SKY_OFF_TRACK];
    pkt->content       = Load32(header + SKY_OFF_CONTENT);
    pkt->block_version = Load64(header + SKY_OFF_BLOCK_VERSION);
    pkt->cookie        = Load64(header + SKY_OFF_COOKIE);
    pkt->home          = LoadAddr(header + SKY_OFF_HOME_PLANE);
    pkt->word          = header[SKY_OFF_WORD];
    SKY_ASSERT(header[SKY_OFF_VERSION] == SKY_VERSION); /* other versions may have other fields here */
    SKY_ASSERT(pkt->security <= SKY_SUITE_HANDSHAKE);
}

static void ClearRest(SKY_Packet_t *pkt)
{
    pkt->spi           = 0;
    pkt->sequence      = 0;
    pkt->code_k        = 0;
    pkt->code_m        = 0;
    pkt->code_scheme   = 0;
    pkt->track         = 0;
    pkt->content       = 0;
    pkt->block_version = 0;
    pkt->cookie        = 0;
    pkt->home          = (SKY_Addr_t){0, 0};
    pkt->word          = 0;
}

static bool CarriesChunk(const SKY_Packet_t *pkt)
{
    return pkt->is_request ? pkt->op == SKY_OP_PUT : pkt->op == SKY_OP_GET && pkt->status == SKY_STATUS_OK;
}

/* Return true if home, word and spare bytes are as they must be: only a PUT names a home, and only a response has a word. */
static bool AreLastFieldsSound(const uint8_t *header, const SKY_Packet_t *pkt)
{
    static const uint8_t spare[SKY_HEADER_BYTES - SKY_OFF_SPARE] = {0};
    const bool           is_put                                  = pkt->is_request && pkt->op == SKY_OP_PUT;
    const bool           is_home_sound = (pkt->home.plane == 0u) == (pkt->home.slot == 0u) && (is_put || pkt->home.plane == 0u);
    SKY_ASSERT(header[SKY_OFF_VERSION] == SKY_VERSION); /* other versions may have other fields here */

    return is_home_sound && (pkt->word & ~(pkt->is_request ? 0u : WORDS)) == 0u &&
           memcmp(header + SKY_OFF_SPARE, spare, sizeof(spare)) == 0;
}

/* Return the PEC that a packet should have, and the CRC of its payload on the way. */
static uint16_t ComputePec(const uint8_t *data, size_t head_len, size_t payload_len, size_t tag_len, uint16_t *payload_crc16)
{
    const uint8_t *tag = data + head_len + payload_len;
    SKY_ASSERT(head_len <= SKY_HEAD_MAX);
    SKY_ASSERT(tag_len <= SKY_TAG_BYTES);

    *payload_crc16 = SKY_Crc16(0, data + head_len, payload_len);
    if (payload_len < JOIN_BYTES)
    {
        return SKY_Crc16(SKY_CRC16_INIT, data, head_len + payload_len + tag_len);
    }
    return SKY_Crc16(SKY_Crc16_Join(SKY_Crc16(SKY_CRC16_INIT, data, head_len), *payload_crc16, payload_len), tag, tag_len);
}

/* Sizes of a datagram's parts, as its headers announce them. */
typedef struct
{
    size_t head_len, payload_len, tag_len;
    bool   is_ours; /* the header is of our version */
} Parts_t;

/* Find the parts of a datagram. @return OK, or why these bytes are no packet */
static SKY_Status_t Measure(const uint8_t *data, size_t len, Parts_t *parts)
{
    size_t offset;

    if (len < SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES + SKY_BASE_HEADER_BYTES + SKY_PEC_BYTES)
    {
        return SKY_STATUS_SHORT;
    }
    if ((Load16(data) & VERSION_MASK) != 0u)
    {
        return SKY_STATUS_BAD_HEADER;
    }
    offset = HeaderOffset((Load16(data) & TYPE_REQUEST) != 0u);
    if (len < offset + SKY_BASE_HEADER_BYTES + SKY_PEC_BYTES)
    {
        return SKY_STATUS_SHORT;
    }
    if (len > SKY_LIMIT_PACKET_BYTES || len != Load16(data + 4) + LENGTH_BIAS)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    if ((Load16(data) & SECONDARY_FLAG) == 0u)
    {
        return SKY_STATUS_BAD_HEADER;
    }
    parts->is_ours  = data[offset + SKY_OFF_VERSION] == SKY_VERSION;
    parts->head_len = offset + (parts->is_ours ? SKY_HEADER_BYTES : SKY_BASE_HEADER_BYTES);
    parts->tag_len  = parts->is_ours && data[offset + SKY_OFF_SECURITY] != SKY_SUITE_NONE ? SKY_TAG_BYTES : 0u;
    if (len < parts->head_len + parts->tag_len + SKY_PEC_BYTES)
    {
        return SKY_STATUS_SHORT;
    }
    parts->payload_len = len - parts->head_len - parts->tag_len - SKY_PEC_BYTES;
    SKY_ASSERT(parts->payload_len < len);
    SKY_ASSERT(parts->head_len <= SKY_HEAD_MAX);
    return SKY_STATUS_OK;
}

/* Check what a packet says of itself, whose bytes came undamaged. */
static SKY_Status_t CheckFields(const uint8_t *data, const Parts_t *parts, SKY_Packet_t *pkt)
{
    const uint8_t *header = data + HeaderOffset(pkt->is_request);
    SKY_ASSERT(parts->head_len > 0u);
    SKY_ASSERT(pkt->payload == NULL); /* it is set once all is right */

    ClearRest(pkt);
    if (pkt->is_request && data[OFF_FUNCTION] != (pkt->op & FUNCTION_MASK))
    {
        return SKY_STATUS_BAD_HEADER;
    }
    if (!parts->is_ours || pkt->security > SKY_SUITE_HANDSHAKE)
    {
        pkt->security = SKY_SUITE_NONE; /* the rest counts for nothing */
        return SKY_STATUS_BAD_VERSION;
    }
    if (Load32(header + SKY_OFF_LENGTH) != parts->payload_len)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    pkt->security = header[SKY_OFF_SECURITY];
    LoadRest(header, pkt);
    if (!AreLastFieldsSound(header, pkt))
    {
        return SKY_STATUS_BAD_HEADER;
    }
    if (CarriesChunk(pkt) && (pkt->chunk_len > SKY_LIMIT_CHUNK_BYTES || pkt->offset > pkt->chunk_len ||
                              parts->payload_len > pkt->chunk_len - pkt->offset))
    {
        return SKY_STATUS_BAD_CHUNK;
    }
    SKY_ASSERT(!CarriesChunk(pkt) || pkt->offset <= pkt->chunk_len);
    SKY_ASSERT((pkt->security != SKY_SUITE_NONE) == (parts->tag_len > 0u));
    return SKY_STATUS_OK;
}

SKY_Status_t SKY_Packet_Decode(const uint8_t *data, size_t len, SKY_Packet_t *pkt)
{
    Parts_t      parts;
    SKY_Status_t status;
    uint16_t     payload_crc16;

    SKY_ASSERT(data != NULL);
    pkt->is_request = false;
    status          = Measure(data, len, &parts);
    if (status != SKY_STATUS_OK)
    {
        return status;
    }
    if (ComputePec(data, parts.head_len, parts.payload_len, parts.tag_len, &payload_crc16) != Load16(data + len - SKY_PEC_BYTES))
    {
        return SKY_STATUS_BAD_CRC;
    }
    if ((Load16(data) & TYPE_REQUEST) != 0u && SKY_Xor8(CHECKSUM_INIT, data, len - SKY_PEC_BYTES) != 0u)
    {
        return SKY_STATUS_BAD_CHECKSUM;
    }
    LoadFields(data, pkt);
    status = CheckFields(data, &parts, pkt);
    if (status != SKY_STATUS_OK)
    {
        return status;
    }
    SKY_ASSERT(parts.payload_len <= SKY_LIMIT_PACKET_BYTES);
    SKY_ASSERT(parts.head_len + parts.payload_len + parts.tag_len + SKY_PEC_BYTES == len);
    pkt->length        = (uint32_t)parts.payload_len;
    pkt->payload       = data + parts.head_len;
    pkt->tag           = parts.tag_len > 0u ? pkt->payload + pkt->length : NULL;
    pkt->payload_crc16 = payload_crc16;
    return SKY_STATUS_OK;
}

uint32_t SKY_Packet_TailBytes(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->security <= SKY_SUITE_HANDSHAKE);
    return pkt->security != SKY_SUITE_NONE ? SKY_TAIL_MAX : SKY_PEC_BYTES;
}

bool SKY_Packet_TagCoversPayload(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->security <= SKY_SUITE_HANDSHAKE);
    const bool is_header_suite = pkt->security == SKY_SUITE_GMAC_HEADER || pkt->security == SKY_SUITE_BLAKE2B_HEADER;

    return !is_header_suite || !CarriesChunk(pkt);
}

size_t SKY_Packet_Authenticated(const SKY_Packet_t *pkt, uint8_t *head)
{
    const size_t offset = HeaderOffset(pkt->is_request);
    SKY_ASSERT(pkt->head != NULL);
    SKY_ASSERT(pkt->tag != NULL); /* the packet was decoded */

    (void)memcpy(head, pkt->head, offset + SKY_HEADER_BYTES);
    head[offset + SKY_OFF_HOP_LIMIT] = 0;
    (void)memset(head + offset + SKY_OFF_GATEWAY_PLANE, 0, 4);
    if (pkt->is_request)
    {
        head[OFF_CHECKSUM] = 0;
    }
    return offset + SKY_HEADER_BYTES;
}

size_t SKY_Packet_EncodeHead(const SKY_Packet_t *pkt, uint8_t *head)
{
    const size_t   offset   = HeaderOffset(pkt->is_request);
    const size_t   head_len = offset + SKY_HEADER_BYTES;
    const uint32_t tail_len = SKY_Packet_TailBytes(pkt);
    uint8_t       *header   = head + offset;

    if (pkt->length > SKY_LIMIT_PACKET_BYTES - tail_len - head_len)
    {
        return 0;
    }

    SKY_ASSERT(head_len <= SKY_HEAD_MAX);
    SKY_ASSERT(head_len + pkt->length + tail_len - LENGTH_BIAS <= UINT16_MAX);
    SKY_ASSERT(pkt->seq_flags <= SKY_SEQ_WHOLE);
    SKY_ASSERT(pkt->apid <= APID_MASK);
    SKY_ASSERT(pkt->security <= SKY_SUITE_HANDSHAKE);
    SKY_ASSERT((pkt->word & ~(pkt->is_request ? 0u : WORDS)) == 0u);
    SKY_ASSERT(pkt->home.plane == 0u || (pkt->is_request && pkt->op == SKY_OP_PUT && pkt->home.slot != 0u));
    (void)memset(head, 0, head_len);
    Store16(head, (pkt->is_request ? TYPE_REQUEST : 0u) | SECONDARY_FLAG | (pkt->apid & APID_MASK));
    Store16(head + 2, ((uint32_t)pkt->seq_flags << 14) | (pkt->seq_count & SKY_SEQ_COUNT_MASK));
    Store16(head + 4, (uint32_t)(head_len + pkt->length + tail_len - LENGTH_BIAS));
    if (pkt->is_request)
    {
        head[OFF_FUNCTION] = (uint8_t)(pkt->op & FUNCTION_MASK);
    }
    else
    {
        Store32(head + SKY_PRIMARY_BYTES, pkt->time_s);
        Store16(head + SKY_PRIMARY_BYTES + 4u, pkt->time_subs);
    }

    header[SKY_OFF_VERSION]  = SKY_VERSION;
    header[SKY_OFF_OP]       = pkt->op;
    header[SKY_OFF_STATUS]   = pkt->status;
    header[SKY_OFF_FLAGS]    = pkt->flags;
    header[SKY_OFF_SECURITY] = pkt->security;
    Store16(header + SKY_OFF_CREDIT, pkt->credit);
    StoreAddr(header + SKY_OFF_SRC_PLANE, pkt->src);
    StoreAddr(header + SKY_OFF_DST_PLANE, pkt->dst);
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
    Store32(header + SKY_OFF_SPI, pkt->spi);
    Store64(header + SKY_OFF_SEQUENCE, pkt->sequence);
    header[SKY_OFF_CODE_K]      = pkt->code_k;
    header[SKY_OFF_CODE_M]      = pkt->code_m;
    header[SKY_OFF_CODE_SCHEME] = pkt->code_scheme;
    header[SKY_OFF_TRACK]       = pkt->track;
    Store32(header + SKY_OFF_CONTENT, pkt->content);
    Store64(header + SKY_OFF_BLOCK_VERSION, pkt->block_version);
    Store64(header + SKY_OFF_COOKIE, pkt->cookie);
    StoreAddr(header + SKY_OFF_HOME_PLANE, pkt->home);
    header[SKY_OFF_WORD] = pkt->word;
    return head_len;
}

void SKY_Packet_Finish(const SKY_Packet_t *pkt, const uint16_t *payload_crc16, const uint8_t *tag, uint8_t *head, uint8_t *tail)
{
    const size_t offset   = HeaderOffset(pkt->is_request);
    const size_t head_len = offset + SKY_HEADER_BYTES;
    const size_t tag_len  = tag != NULL ? SKY_TAG_BYTES : 0u;
    uint16_t     crc;

    SKY_ASSERT((tag != NULL) == (pkt->security != SKY_SUITE_NONE));
    SKY_ASSERT(pkt->length == 0u || pkt->payload != NULL || payload_crc16 != NULL);
    SKY_ASSERT(head[offset + SKY_OFF_VERSION] == SKY_VERSION); /* the head is one */
    SKY_ASSERT(Load16(head + 4) == head_len + pkt->length + tag_len + SKY_PEC_BYTES - LENGTH_BIAS);
    head[offset + SKY_OFF_HOP_LIMIT] = pkt->hop_limit;
    StoreAddr(head + offset + SKY_OFF_GATEWAY_PLANE, pkt->gateway);
    if (tag != NULL)
    {
        (void)memcpy(tail, tag, SKY_TAG_BYTES);
    }
    if (pkt->is_request)
    {
        head[OFF_CHECKSUM] =
            SKY_Xor8(SKY_Xor8(SKY_Xor8(CHECKSUM_INIT, head, head_len), pkt->payload, pkt->length), tail, tag_len);
    }

    crc = SKY_Crc16(SKY_CRC16_INIT, head, head_len);
    crc = payload_crc16 != NULL ? SKY_Crc16_Join(crc, *payload_crc16, pkt->length) : SKY_Crc16(crc, pkt->payload, pkt->length);
    Store16(tail + tag_len, SKY_Crc16(crc, tail, tag_len));
}

size_t SKY_Packet_EncodeAround(const SKY_Packet_t *pkt, const uint16_t *payload_crc16, uint8_t *head, uint8_t *tail)
{
    const size_t head_len = SKY_Packet_EncodeHead(pkt, head);
    SKY_ASSERT(pkt->security == SKY_SUITE_NONE);

    if (head_len > 0u)
    {
        SKY_Packet_Finish(pkt, payload_crc16, NULL, head, tail);
    }
    return head_len;
}

size_t SKY_Packet_Encode(const SKY_Packet_t *pkt, uint8_t *out, size_t cap)
{
    const size_t overhead = pkt->is_request ? SKY_REQUEST_BYTES : SKY_RESPONSE_BYTES;
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

bool SKY_Packet_IsOurs(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->head != NULL); /* the packet came in */
    return pkt->head[HeaderOffset(pkt->is_request) + SKY_OFF_VERSION] == SKY_VERSION;
}

void SKY_Packet_EncodeBase(const SKY_Packet_t *pkt, uint8_t *out)
{
    const size_t len = SKY_BASE_BYTES - SKY_PEC_BYTES;
    uint8_t      head[SKY_HEAD_MAX];
    uint8_t      tail[SKY_PEC_BYTES];

    SKY_ASSERT(!pkt->is_request);
    SKY_ASSERT(pkt->length == 0u);
    (void)SKY_Packet_EncodeAround(pkt, NULL, head, tail);
    Store16(head + 4, SKY_BASE_BYTES - LENGTH_BIAS);
    (void)memcpy(out, head, len);
    Store16(out + len, SKY_Crc16(SKY_CRC16_INIT, out, len));
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
    reply->security      = SKY_SUITE_NONE;
    reply->credit        = 0;
    reply->src           = self;
    reply->dst           = requester;
    reply->deadline_ms   = 0;
    reply->length        = 0;
    reply->chunk_crc     = 0;
    reply->track         = 0;
    reply->content       = 0;
    reply->block_version = 0;
    reply->spi           = 0;
    reply->sequence      = 0;
    reply->cookie        = 0;
    reply->home          = (SKY_Addr_t){0, 0};
    reply->word          = 0;
    reply->payload       = NULL;
    reply->head          = NULL;
    reply->tag           = NULL;
    reply->payload_crc16 = 0;
}

void SKY_Packet_SetTime(SKY_Packet_t *pkt, uint64_t time_us)
{
    pkt->time_s    = (uint32_t)(time_us / US_PER_S);
    pkt->time_subs = (uint16_t)(time_us % US_PER_S * SUBS_PER_S / US_PER_S);
}
