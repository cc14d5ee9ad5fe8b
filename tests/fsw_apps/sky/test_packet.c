/* The packet codec: layout byte by byte, round trips, every error of the ICD, relabelling, and damage of every bit. */
#include "sky_packet.h"

#include <string.h>

#include "check.h"
#include "sky_crc.h"

#define SHORTEST (SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES + SKY_BASE_HEADER_BYTES + SKY_PEC_BYTES)

static uint8_t payload[SKY_LIMIT_PACKET_BYTES];
static uint8_t wire[SKY_LIMIT_PACKET_BYTES + 16u];
static uint8_t other[SKY_LIMIT_PACKET_BYTES + 16u];

static SKY_Packet_t Sample(bool is_request, uint32_t length)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = is_request;
    pkt.apid        = SKY_APID_KVC;
    pkt.seq_flags   = SKY_SEQ_WHOLE;
    pkt.seq_count   = 0x2ABC;
    pkt.time_s      = is_request ? 0u : 0x01020304u;
    pkt.time_subs   = is_request ? 0u : 0x0506u;
    pkt.op          = is_request ? SKY_OP_PUT : SKY_OP_GET;
    pkt.flags       = SKY_FLAG_LAST;
    pkt.hop_limit   = 9;
    pkt.credit      = 0x1112;
    pkt.src         = (SKY_Addr_t){0x2122, 0x2324};
    pkt.dst         = (SKY_Addr_t){0x3132, 0x3334};
    pkt.gateway     = (SKY_Addr_t){0x4142, 0x4344};
    pkt.tenant      = 0x51525354u;
    pkt.epoch       = 0x61626364u;
    pkt.deadline_ms = 0x71727374u;
    pkt.request_id  = UINT64_C(0x8182838485868788);
    for (uint32_t i = 0; i < SKY_KEY_BYTES; ++i)
    {
        pkt.key[i] = (uint8_t)(0x90u + i);
    }
    pkt.chunk_id    = 0xB1B2B3B4u;
    pkt.chunk_total = 0xC1C2C3C4u;
    pkt.block_len   = 0xD1D2D3D4u;
    pkt.chunk_len   = length + 5u;
    pkt.offset      = 5;
    pkt.length      = length;
    pkt.chunk_crc   = 0xE1E2E3E4u;

    pkt.spi           = 0xF1F2F3F4u;
    pkt.sequence      = UINT64_C(0x0102030405060708);
    pkt.code_k        = 0x0A;
    pkt.code_m        = 0x02;
    pkt.code_scheme   = 0x01;
    pkt.track         = 0x03;
    pkt.content       = 0x0B0C0D0Eu;
    pkt.block_version = UINT64_C(0x1112131415161718);
    pkt.cookie        = UINT64_C(0x191A1B1C1D1E1F20);
    pkt.home          = is_request ? (SKY_Addr_t){0x2122, 0x2324} : (SKY_Addr_t){0, 0};
    pkt.word          = is_request ? 0u : SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP;
    pkt.payload       = payload;
    return pkt;
}

static bool SameFields(const SKY_Packet_t *a, const SKY_Packet_t *b)
{
    return a->is_request == b->is_request && a->apid == b->apid && a->seq_flags == b->seq_flags && a->seq_count == b->seq_count &&
           a->time_s == b->time_s && a->time_subs == b->time_subs && a->op == b->op && a->status == b->status &&
           a->flags == b->flags && a->hop_limit == b->hop_limit && a->security == b->security && a->credit == b->credit &&
           SKY_Addr_Equal(a->src, b->src) && SKY_Addr_Equal(a->dst, b->dst) && SKY_Addr_Equal(a->gateway, b->gateway) &&
           a->tenant == b->tenant && a->epoch == b->epoch && a->deadline_ms == b->deadline_ms && a->request_id == b->request_id &&
           memcmp(a->key, b->key, SKY_KEY_BYTES) == 0 && a->chunk_id == b->chunk_id && a->chunk_total == b->chunk_total &&
           a->block_len == b->block_len && a->chunk_len == b->chunk_len && a->offset == b->offset && a->length == b->length &&
           a->chunk_crc == b->chunk_crc && a->spi == b->spi && a->sequence == b->sequence && a->code_k == b->code_k &&
           a->code_m == b->code_m && a->code_scheme == b->code_scheme && a->track == b->track && a->content == b->content &&
           a->block_version == b->block_version && a->cookie == b->cookie && SKY_Addr_Equal(a->home, b->home) &&
           a->word == b->word;
}

/* Make checksum and PEC right again after a test has changed a packet. */
static void Seal(uint8_t *packet, size_t len)
{
    uint16_t crc;

    if ((packet[0] & 0x10u) != 0u)
    {
        packet[7] = 0;
        packet[7] = SKY_Xor8(0xFF, packet, len - SKY_PEC_BYTES);
    }
    crc              = SKY_Crc16(SKY_CRC16_INIT, packet, len - SKY_PEC_BYTES);
    packet[len - 2u] = (uint8_t)(crc >> 8);
    packet[len - 1u] = (uint8_t)(crc & 0xFFu);
}

static void Layout(void)
{
    static const uint8_t fields[] = {
        0x03, 0x01, 0x00, 0x01, 0x09, 0x00, 0x11, 0x12,                         /* version .. credit */
        0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, /* addresses */
        0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74, /* tenant, epoch, deadline */
        0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,                         /* request id */
        0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, /* key */
        0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF,
        0xB1, 0xB2, 0xB3, 0xB4, 0xC1, 0xC2, 0xC3, 0xC4, 0xD1, 0xD2, 0xD3, 0xD4, /* chunk, total, block_len */
        0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x03, 0xE1, 0xE2, 0xE3, 0xE4, /* chunk_len .. crc */
        0xF1, 0xF2, 0xF3, 0xF4, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,                         /* spi, sequence */
        0x0A, 0x02, 0x01, 0x03, 0x0B, 0x0C, 0x0D, 0x0E,                                                 /* code, track, content */
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, /* version, cookie */
        0x21, 0x22, 0x23, 0x24, 0x00, 0x00, 0x00, 0x00,                                                 /* home, word, spare */
    };
    SKY_Packet_t pkt = Sample(true, 3);
    size_t       len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));

    CHECK_EQ(sizeof(fields), SKY_HEADER_BYTES);
    CHECK_EQ(len, 157);
    CHECK(memcmp(wire, "\x19\xD0\xEA\xBC\x00\x96\x01", 7) == 0); /* telecommand, APID 0x1D0, whole, 157 - 7, PUT */
    CHECK_EQ(SKY_Xor8(0xFF, wire, len - SKY_PEC_BYTES), 0);
    CHECK(memcmp(wire + 8, fields, sizeof(fields)) == 0);
    CHECK(memcmp(wire + 152, payload, 3) == 0);
    CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, wire, len), 0); /* the residue of a message with its CRC */

    pkt = Sample(false, 3);
    len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    CHECK_EQ(len, 165);
    CHECK(memcmp(wire, "\x09\xD0\xEA\xBC\x00\x9E\x01\x02\x03\x04\x05\x06\x00\x00\x00\x00\x03\x02", 18) == 0);
    CHECK(memcmp(wire + 18, fields + 2, SKY_OFF_HOME_PLANE - 2u) == 0);
    CHECK(memcmp(wire + 16 + SKY_OFF_HOME_PLANE, "\x00\x00\x00\x00\x03\x00\x00\x00", 8) == 0);
    CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, wire, len), 0);
}

static void RoundTrips(void)
{
    static const uint32_t lengths[] = {0, 1, 7, 8, 63, 64, 65, 1362, 6000, 6144, 61435};

    for (int is_request = 0; is_request < 2; ++is_request)
    {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i)
        {
            const SKY_Packet_t pkt = Sample(is_request == 1, lengths[i]);
            const size_t       len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
            SKY_Packet_t       decoded;

            CHECK_EQ(len, lengths[i] + (pkt.is_request ? SKY_REQUEST_BYTES : SKY_RESPONSE_BYTES));
            (void)memset(&decoded, 0xA5, sizeof(decoded));
            CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_OK);
            CHECK(SameFields(&pkt, &decoded));
            CHECK(decoded.payload == wire + len - SKY_PEC_BYTES - lengths[i]);
            CHECK(memcmp(decoded.payload, payload, lengths[i]) == 0);
            CHECK_EQ(decoded.payload_crc16, SKY_Crc16(0, payload, lengths[i]));
        }
    }
}

static void EncodesAroundWhatItDoesNotRead(void)
{
    SKY_Packet_t   pkt = Sample(false, 6000);
    const size_t   len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    const uint16_t crc = SKY_Crc16(0, payload, 6000);
    uint8_t        head[SKY_HEAD_MAX], tail[SKY_PEC_BYTES];

    pkt.payload = NULL; /* reading it would be seen */
    CHECK_EQ(SKY_Packet_EncodeAround(&pkt, &crc, head, tail), SKY_HEAD_MAX);
    CHECK(memcmp(head, wire, sizeof(head)) == 0);
    CHECK(memcmp(tail, wire + len - SKY_PEC_BYTES, sizeof(tail)) == 0);

    pkt = Sample(true, 6000);
    (void)SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    CHECK_EQ(SKY_Packet_EncodeAround(&pkt, &crc, head, tail), SKY_HEAD_MAX - 8u);
    CHECK(memcmp(head, wire, SKY_HEAD_MAX - 8u) == 0);
    CHECK(memcmp(tail, wire + SKY_HEAD_MAX - 8u + 6000u, sizeof(tail)) == 0);
}

static void EncodesNoMoreThanFits(void)
{
    SKY_Packet_t pkt = Sample(true, 100);
    uint8_t      head[SKY_HEAD_MAX], tail[SKY_PEC_BYTES];

    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, SKY_REQUEST_BYTES + 100u), SKY_REQUEST_BYTES + 100u);
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, SKY_REQUEST_BYTES + 99u), 0);
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, SKY_REQUEST_BYTES - 1u), 0);
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, 0), 0);
    pkt.length = UINT32_MAX;
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, sizeof(wire)), 0);
    CHECK_EQ(SKY_Packet_EncodeAround(&pkt, NULL, head, tail), 0);

    pkt.length = SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_BYTES;
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, sizeof(wire)), SKY_LIMIT_PACKET_BYTES);
    ++pkt.length;
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, sizeof(wire)), 0);
    pkt        = Sample(false, 0);
    pkt.length = SKY_LIMIT_PACKET_BYTES - SKY_RESPONSE_BYTES;
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, sizeof(wire)), SKY_LIMIT_PACKET_BYTES);
    ++pkt.length;
    CHECK_EQ(SKY_Packet_Encode(&pkt, wire, sizeof(wire)), 0);
}

/* Encode @p pkt, change one byte, make checksum and PEC right again, decode. */
static SKY_Status_t DecodeChanged(const SKY_Packet_t *pkt, size_t at, uint8_t value, SKY_Packet_t *decoded)
{
    const size_t len = SKY_Packet_Encode(pkt, wire, sizeof(wire));

    wire[at] = value;
    Seal(wire, len);
    return SKY_Packet_Decode(wire, len, decoded);
}

static void RefusesBadHeaders(void)
{
    const SKY_Packet_t request  = Sample(true, 20);
    const SKY_Packet_t response = Sample(false, 20);
    const size_t       h        = SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES;
    SKY_Packet_t       pkt;

    CHECK_EQ(DecodeChanged(&request, 0, 0x39, &pkt), SKY_STATUS_BAD_HEADER); /* packet version 1 */
    CHECK_EQ(DecodeChanged(&request, 0, 0x11, &pkt), SKY_STATUS_BAD_HEADER); /* no secondary header */
    CHECK_EQ(DecodeChanged(&request, 6, 0x02, &pkt), SKY_STATUS_BAD_HEADER); /* function code GET, operation PUT */
    CHECK_EQ(DecodeChanged(&request, 6, 0x81, &pkt), SKY_STATUS_BAD_HEADER); /* reserved bit */
    CHECK_EQ(DecodeChanged(&request, 5, 0x00, &pkt), SKY_STATUS_BAD_LENGTH); /* primary header's length */
    (void)memset(&pkt, 0xEE, sizeof(pkt));
    CHECK_EQ(DecodeChanged(&request, h, 1, &pkt), SKY_STATUS_BAD_VERSION); /* of our header */
    CHECK_EQ(pkt.request_id, request.request_id);
    CHECK(pkt.spi == 0u && pkt.sequence == 0u && pkt.cookie == 0u); /* another version may have other fields there */
    CHECK(pkt.code_k == 0u && pkt.code_m == 0u && pkt.code_scheme == 0u && pkt.track == 0u);
    CHECK(pkt.content == 0u && pkt.block_version == 0u && pkt.tag == NULL);
    CHECK(pkt.home.plane == 0u && pkt.home.slot == 0u && pkt.word == 0u);
    CHECK_EQ(DecodeChanged(&request, h + SKY_OFF_SECURITY, SKY_SUITE_HANDSHAKE + 1u, &pkt), SKY_STATUS_BAD_VERSION);
    CHECK_EQ(pkt.security, SKY_SUITE_NONE);                                                  /* nobody can check a tag of it */
    CHECK_EQ(DecodeChanged(&request, h + SKY_OFF_SECURITY, 1, &pkt), SKY_STATUS_BAD_LENGTH); /* 16 bytes are the tag now */
    CHECK_EQ(DecodeChanged(&request, h + SKY_OFF_LENGTH + 3u, 19, &pkt), SKY_STATUS_BAD_LENGTH);

    /* An answer to these can be addressed, and has no payload to go wrong with. */
    CHECK(SKY_Addr_Equal(pkt.src, request.src));
    CHECK_EQ(pkt.request_id, request.request_id);
    CHECK_EQ(pkt.length, 0);
    CHECK(pkt.payload == NULL);

    CHECK_EQ(DecodeChanged(&response, 6, 0xFF, &pkt), SKY_STATUS_OK); /* a time, not a function code */
}

/* A home is a satellite or none, and only a PUT has one; a word has no bits but those of the ICD, and only a response has one. */
static void RefusesBadLastFields(void)
{
    const size_t of_request  = SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES;
    const size_t of_response = SKY_PRIMARY_BYTES + SKY_RESPONSE_SECONDARY_BYTES;
    SKY_Packet_t request     = Sample(true, 20);
    SKY_Packet_t response    = Sample(false, 20);
    SKY_Packet_t pkt;

    for (size_t i = 0; i < SKY_HEADER_BYTES - SKY_OFF_SPARE; ++i)
    {
        CHECK_EQ(DecodeChanged(&request, of_request + SKY_OFF_SPARE + i, 1, &pkt), SKY_STATUS_BAD_HEADER);
        CHECK_EQ(DecodeChanged(&response, of_response + SKY_OFF_SPARE + i, 0x80, &pkt), SKY_STATUS_BAD_HEADER);
    }
    CHECK_EQ(DecodeChanged(&request, of_request + SKY_OFF_WORD, SKY_WORD_SETTLED, &pkt), SKY_STATUS_BAD_HEADER);
    CHECK_EQ(DecodeChanged(&response, of_response + SKY_OFF_WORD, SKY_WORD_CAUGHT_UP << 1, &pkt), SKY_STATUS_BAD_HEADER);
    CHECK_EQ(DecodeChanged(&response, of_response + SKY_OFF_WORD, SKY_WORD_CAUGHT_UP, &pkt), SKY_STATUS_OK);
    CHECK_EQ(pkt.word, SKY_WORD_CAUGHT_UP);
    CHECK_EQ(DecodeChanged(&response, of_response + SKY_OFF_HOME_SLOT, 1, &pkt), SKY_STATUS_BAD_HEADER);
    CHECK_EQ(DecodeChanged(&response, of_response + SKY_OFF_HOME_PLANE, 1, &pkt), SKY_STATUS_BAD_HEADER);

    request.home = (SKY_Addr_t){0, 0};
    CHECK_EQ(DecodeChanged(&request, of_request + SKY_OFF_HOME_PLANE + 1u, 1, &pkt), SKY_STATUS_BAD_HEADER);
    CHECK_EQ(DecodeChanged(&request, of_request + SKY_OFF_HOME_SLOT + 1u, 1, &pkt), SKY_STATUS_BAD_HEADER);
    CHECK_EQ(DecodeChanged(&request, 0, 0x19, &pkt), SKY_STATUS_OK); /* the receiver's own share */
    CHECK(pkt.home.plane == 0u && pkt.home.slot == 0u);
    request.home = (SKY_Addr_t){3, 10};
    CHECK_EQ(DecodeChanged(&request, 0, 0x19, &pkt), SKY_STATUS_OK);
    CHECK(SKY_Addr_Equal(pkt.home, request.home));
    wire[6]                       = SKY_OP_GET;
    wire[of_request + SKY_OFF_OP] = SKY_OP_GET;
    Seal(wire, SKY_REQUEST_BYTES + 20u);
    CHECK_EQ(SKY_Packet_Decode(wire, SKY_REQUEST_BYTES + 20u, &pkt), SKY_STATUS_BAD_HEADER); /* a home, and no PUT */
}

static void RefusesBadChunks(void)
{
    SKY_Packet_t sent = Sample(true, 20);
    SKY_Packet_t pkt;

    for (int is_request = 0; is_request < 2; ++is_request)
    {
        sent           = Sample(is_request == 1, 20);
        sent.chunk_len = 25;
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_OK);
        sent.chunk_len = 24; /* offset 5 + 20 */
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_BAD_CHUNK);
        sent.chunk_len = 4;
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_BAD_CHUNK);
        sent.chunk_len = 25;
        sent.offset    = UINT32_MAX - 10u; /* the sum would wrap */
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_BAD_CHUNK);
        sent.offset    = 5;
        sent.chunk_len = SKY_LIMIT_CHUNK_BYTES;
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_OK);
        sent.chunk_len = SKY_LIMIT_CHUNK_BYTES + 1u;
        CHECK_EQ(DecodeChanged(&sent, 0, is_request == 1 ? 0x19 : 0x09, &pkt), SKY_STATUS_BAD_CHUNK);
    }
    /* No chunk, no rule: a GET request, a GET that found nothing, the answer to a PUT. */
    sent.chunk_len = 0;
    sent.op        = SKY_OP_GET;
    sent.home      = (SKY_Addr_t){0, 0};
    CHECK_EQ(DecodeChanged(&sent, 0, 0x19, &pkt), SKY_STATUS_OK);
    sent           = Sample(false, 20);
    sent.chunk_len = 0;
    sent.status    = SKY_STATUS_NOT_FOUND;
    CHECK_EQ(DecodeChanged(&sent, 0, 0x09, &pkt), SKY_STATUS_OK);
    sent.status = SKY_STATUS_OK;
    sent.op     = SKY_OP_PUT;
    CHECK_EQ(DecodeChanged(&sent, 0, 0x09, &pkt), SKY_STATUS_OK);
}

static void RefusesWrongSizes(void)
{
    SKY_Packet_t pkt = Sample(true, 20);
    SKY_Packet_t decoded;
    size_t       len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));

    for (size_t cut = 0; cut < len; ++cut)
    {
        CHECK_EQ(SKY_Packet_Decode(wire, cut, &decoded), cut < SHORTEST ? SKY_STATUS_SHORT : SKY_STATUS_BAD_LENGTH);
    }
    CHECK_EQ(SKY_Packet_Decode(wire, len + 1u, &decoded), SKY_STATUS_BAD_LENGTH);

    pkt = Sample(false, 0);
    len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_OK);
    CHECK_EQ(SKY_Packet_Decode(wire, SHORTEST, &decoded), SKY_STATUS_SHORT); /* long enough for a request, not for this */

    /* Headers that are cut where only our version goes on, or the tag. */
    for (int is_request = 0; is_request < 2; ++is_request)
    {
        for (uint8_t security = 0; security < 2u; ++security)
        {
            const size_t least =
                (is_request == 1 ? SKY_REQUEST_BYTES : SKY_RESPONSE_BYTES) + (security > 0u ? SKY_TAG_BYTES : 0u);
            const size_t header = SKY_HEAD_MAX - SKY_HEADER_BYTES - (is_request == 1 ? 8u : 0u);

            pkt = Sample(is_request == 1, 0);
            (void)SKY_Packet_Encode(&pkt, wire, sizeof(wire));
            wire[header + SKY_OFF_SECURITY] = security;
            for (size_t cut = least - SKY_TAG_BYTES; cut < least; ++cut)
            {
                wire[4] = (uint8_t)((cut - 7u) >> 8);
                wire[5] = (uint8_t)((cut - 7u) & 0xFFu);
                Seal(wire, cut);
                CHECK_EQ(SKY_Packet_Decode(wire, cut, &decoded), SKY_STATUS_SHORT);
            }
        }
    }

    (void)memset(wire, 0, sizeof(wire)); /* a length that no UDP datagram has, though the primary header can say it */
    wire[0] = 0x18;
    wire[4] = (uint8_t)((SKY_LIMIT_PACKET_BYTES + 1u - 7u) >> 8);
    wire[5] = (uint8_t)((SKY_LIMIT_PACKET_BYTES + 1u - 7u) & 0xFFu);
    CHECK_EQ(SKY_Packet_Decode(wire, SKY_LIMIT_PACKET_BYTES + 1u, &decoded), SKY_STATUS_BAD_LENGTH);
}

static void SeesEveryFlippedBit(void)
{
    for (int is_request = 0; is_request < 2; ++is_request)
    {
        const SKY_Packet_t pkt = Sample(is_request == 1, 40);
        const size_t       len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
        SKY_Packet_t       decoded;

        for (size_t bit = 0; bit < len * 8u; ++bit)
        {
            wire[bit / 8u] = (uint8_t)(wire[bit / 8u] ^ (1u << (bit % 8u)));
            CHECK(SKY_Packet_Decode(wire, len, &decoded) != SKY_STATUS_OK);
            wire[bit / 8u] = (uint8_t)(wire[bit / 8u] ^ (1u << (bit % 8u)));
        }
    }
}

static void SeesAWrongChecksum(void)
{
    const SKY_Packet_t pkt = Sample(true, 40);
    const size_t       len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    uint16_t           crc;
    SKY_Packet_t       decoded;

    wire[7] ^= 0x40u;
    decoded.is_request = true;
    CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_BAD_CRC);
    CHECK(!decoded.is_request); /* so that nobody answers what is damaged */
    crc            = SKY_Crc16(SKY_CRC16_INIT, wire, len - SKY_PEC_BYTES);
    wire[len - 2u] = (uint8_t)(crc >> 8);
    wire[len - 1u] = (uint8_t)(crc & 0xFFu);
    CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_BAD_CHECKSUM);
}

static void RelabelsByDifference(void)
{
    const SKY_Addr_t gateway = {3, 10};

    for (int is_request = 0; is_request < 2; ++is_request)
    {
        for (uint32_t length = 0; length < 6001u; length += 750u)
        {
            SKY_Packet_t pkt = Sample(is_request == 1, length);
            const size_t len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
            SKY_Packet_t decoded;

            pkt.hop_limit = 8;
            pkt.gateway   = gateway;
            (void)SKY_Packet_Encode(&pkt, other, sizeof(other));
            SKY_Packet_Relabel(wire, len, 8, gateway);
            CHECK(memcmp(wire, other, len) == 0);

            /* Damage before the relabelling is still there after it. */
            wire[30] ^= 0x04u;
            SKY_Packet_Relabel(wire, len, 7, (SKY_Addr_t){0, 0});
            CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_BAD_CRC);
            wire[30] ^= 0x04u;
            CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_OK);
            CHECK_EQ(decoded.hop_limit, 7);
            CHECK_EQ(decoded.gateway.plane, 0);
            CHECK_EQ(decoded.gateway.slot, 0);
        }
    }
}

/* A packet with a tag: what the tag covers, and what it does not. */
static void CarriesATag(void)
{
    static const uint8_t tag[SKY_TAG_BYTES] = {0xF0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const SKY_Addr_t     gateway            = {3, 10};

    for (int is_request = 0; is_request < 2; ++is_request)
    {
        for (uint32_t length = 0; length < 200u; length += 40u)
        {
            SKY_Packet_t pkt = Sample(is_request == 1, length);
            SKY_Packet_t decoded;
            uint8_t      head[SKY_HEAD_MAX], tail[SKY_TAIL_MAX], covered[SKY_HEAD_MAX];

            pkt.security          = SKY_SUITE_GMAC_PACKET;
            const size_t head_len = SKY_Packet_EncodeHead(&pkt, covered);
            (void)memcpy(head, covered, sizeof(head));
            SKY_Packet_Finish(&pkt, NULL, tag, head, tail);
            (void)memcpy(wire, head, head_len);
            (void)memcpy(wire + head_len, payload, length);
            (void)memcpy(wire + head_len + length, tail, sizeof(tail));
            const size_t len = head_len + length + sizeof(tail);
            CHECK_EQ(SKY_Packet_TailBytes(&pkt), sizeof(tail));
            CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, wire, len), 0);

            SKY_Packet_Relabel(wire, len, 3, gateway); /* what changes on the way is not covered */
            CHECK_EQ(SKY_Packet_Decode(wire, len, &decoded), SKY_STATUS_OK);
            CHECK_EQ(decoded.security, SKY_SUITE_GMAC_PACKET);
            CHECK(decoded.tag == wire + head_len + length);
            CHECK(memcmp(decoded.tag, tag, sizeof(tag)) == 0);
            CHECK_EQ(decoded.length, length);
            CHECK_EQ(SKY_Packet_Authenticated(&decoded, head), head_len);
            CHECK(memcmp(head, covered, head_len) == 0);

            /* Every other byte of the head is. */
            for (size_t at = 0; at < head_len; ++at)
            {
                const size_t field = at - (head_len - SKY_HEADER_BYTES);
                const bool   moves = (is_request == 1 && at == 7u) || field == SKY_OFF_HOP_LIMIT ||
                                   (field >= SKY_OFF_GATEWAY_PLANE && field < SKY_OFF_GATEWAY_SLOT + 2u);

                wire[at] ^= 0x20u;
                (void)SKY_Packet_Authenticated(&decoded, head); /* of the bytes as they are now */
                CHECK_EQ(memcmp(head, covered, head_len) == 0, moves);
                wire[at] ^= 0x20u;
            }
        }
    }
}

static void CoversThePayload(void)
{
    SKY_Packet_t pkt = Sample(true, 20);

    pkt.security = SKY_SUITE_GMAC_PACKET;
    CHECK(SKY_Packet_TagCoversPayload(&pkt));
    pkt.security = SKY_SUITE_BLAKE2B_PACKET;
    CHECK(SKY_Packet_TagCoversPayload(&pkt));
    pkt.security = SKY_SUITE_HANDSHAKE;
    CHECK(SKY_Packet_TagCoversPayload(&pkt));
    for (uint8_t security = SKY_SUITE_GMAC_HEADER; security <= SKY_SUITE_BLAKE2B_HEADER; security += 2u)
    {
        pkt          = Sample(true, 20);
        pkt.security = security;
        CHECK(!SKY_Packet_TagCoversPayload(&pkt)); /* bytes of a chunk, which chunk_crc binds */
        pkt.op = SKY_OP_GET;
        CHECK(SKY_Packet_TagCoversPayload(&pkt)); /* a chunk set */
        pkt          = Sample(false, 20);
        pkt.security = security;
        CHECK(!SKY_Packet_TagCoversPayload(&pkt));
        pkt.status = SKY_STATUS_NOT_FOUND;
        CHECK(SKY_Packet_TagCoversPayload(&pkt));
    }
}

static void Replies(void)
{
    const SKY_Addr_t self = {3, 10};
    SKY_Packet_t     req  = Sample(true, 40);
    SKY_Packet_t     reply;

    req.deadline_ms = 50;
    SKY_Packet_Reply(&req, self, SKY_STATUS_STORE_FULL, &reply);
    CHECK(!reply.is_request);
    CHECK_EQ(reply.apid, req.apid);
    CHECK_EQ(reply.op, SKY_OP_PUT);
    CHECK_EQ(reply.status, SKY_STATUS_STORE_FULL);
    CHECK_EQ(reply.flags, 0);
    CHECK_EQ(reply.hop_limit, SKY_LIMIT_HOP_LIMIT);
    CHECK(SKY_Addr_Equal(reply.src, self));
    CHECK(SKY_Addr_Equal(reply.dst, req.src));
    CHECK(SKY_Addr_Equal(reply.gateway, req.gateway));
    CHECK_EQ(reply.request_id, req.request_id);
    CHECK_EQ(reply.tenant, req.tenant);
    CHECK_EQ(reply.chunk_id, req.chunk_id);
    CHECK_EQ(reply.chunk_total, req.chunk_total);
    CHECK(memcmp(reply.key, req.key, SKY_KEY_BYTES) == 0);
    CHECK_EQ(reply.content, 0); /* nothing is held until the service says so */
    CHECK_EQ(reply.block_version, 0);
    CHECK_EQ(reply.spi, 0); /* how a reply is authenticated is for the sender to say */
    CHECK_EQ(reply.sequence, 0);
    CHECK_EQ(reply.cookie, 0);
    CHECK(reply.home.plane == 0u && reply.home.slot == 0u && reply.word == 0u);
    CHECK_EQ(reply.length, 0);
    CHECK(reply.payload == NULL);
    CHECK_EQ(SKY_Packet_Encode(&reply, wire, sizeof(wire)), SKY_RESPONSE_BYTES);
    CHECK_EQ(SKY_Packet_Decode(wire, SKY_RESPONSE_BYTES, &reply), SKY_STATUS_OK);
}

/* What is said to who speaks another version: fields that every version has, and no more bytes than they take. */
static void EncodesWhatEveryVersionHas(void)
{
    SKY_Packet_t pkt = Sample(false, 0);
    size_t       len;

    pkt.status = SKY_STATUS_BAD_VERSION;
    (void)memset(other, 0xEE, sizeof(other));
    SKY_Packet_EncodeBase(&pkt, other);
    CHECK_EQ(SKY_BASE_BYTES, SHORTEST + 8u);
    CHECK_EQ(other[SKY_BASE_BYTES], 0xEE);
    CHECK_EQ(other[4] << 8 | other[5], SKY_BASE_BYTES - 7u);
    CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, other, SKY_BASE_BYTES), 0);
    len = SKY_Packet_Encode(&pkt, wire, sizeof(wire));
    CHECK(memcmp(other, wire, 4) == 0);
    CHECK(memcmp(other + 6, wire + 6, SKY_BASE_BYTES - 6u - SKY_PEC_BYTES) == 0);
    CHECK_EQ(SKY_Packet_Decode(other, SKY_BASE_BYTES, &pkt), SKY_STATUS_SHORT); /* it is not for us */

    CHECK_EQ(SKY_Packet_Decode(wire, len, &pkt), SKY_STATUS_OK);
    CHECK(SKY_Packet_IsOurs(&pkt));
    pkt = Sample(true, 20);
    CHECK_EQ(DecodeChanged(&pkt, SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES, 2, &pkt), SKY_STATUS_BAD_VERSION);
    CHECK(!SKY_Packet_IsOurs(&pkt));
}

int main(void)
{
    for (uint32_t i = 0; i < sizeof(payload); ++i)
    {
        payload[i] = (uint8_t)((i * 31u + (i >> 8)) & 0xFFu);
    }
    RUN(Layout);
    RUN(RoundTrips);
    RUN(EncodesAroundWhatItDoesNotRead);
    RUN(EncodesNoMoreThanFits);
    RUN(RefusesBadHeaders);
    RUN(RefusesBadLastFields);
    RUN(RefusesBadChunks);
    RUN(RefusesWrongSizes);
    RUN(SeesEveryFlippedBit);
    RUN(SeesAWrongChecksum);
    RUN(RelabelsByDifference);
    RUN(CarriesATag);
    RUN(CoversThePayload);
    RUN(Replies);
    RUN(EncodesWhatEveryVersionHas);
    return CHECK_RESULT();
}
