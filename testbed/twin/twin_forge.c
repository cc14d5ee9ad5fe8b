/**
 * @file
 * Packets that the attacker makes: forged ones, and those that it has changed. Checksum and PEC are always right, so that it is the tag
 * that refuses them.
 */
#include <string.h>

#include "twin_priv.h"

#define CHECKSUM_AT   (SKY_PRIMARY_BYTES + 1u)
#define REQUEST_BIT   0x10u
#define FORGED_BYTES  64u /* of a forged chunk */
#define COMMAND_BYTES 16u
#define LATER         1000u /* how far a forged sequence number is ahead */
#define KINDS         11u

/* ---- bytes ----------------------------------------------------------------------------------------------------------------- */

static void fill(SKYT_Twin_t *twin, uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i)
    {
        bytes[i] = (uint8_t)(SKYT_Random(twin) >> 56);
    }
}

/* Write a packet with a tag that nobody can have made. @return its length; 0 if it is too long */
static uint32_t encode(SKYT_Twin_t *twin, const SKY_Packet_t *pkt, uint8_t *out)
{
    uint8_t        tag[SKY_TAG_BYTES];
    uint8_t        tail[SKY_TAIL_MAX];
    const uint32_t head_len = (uint32_t)SKY_Packet_EncodeHead(pkt, out);
    const uint32_t tail_len = SKY_Packet_TailBytes(pkt);

    if (head_len == 0 || head_len + pkt->length + tail_len > twin->config.packet_bytes)
    {
        return 0;
    }
    fill(twin, tag, sizeof(tag));
    SKY_Packet_Finish(pkt, NULL, pkt->security != SKY_SUITE_NONE ? tag : NULL, out, tail);
    if (pkt->length > 0)
    {
        (void)memcpy(out + head_len, pkt->payload, pkt->length);
    }
    (void)memcpy(out + head_len + pkt->length, tail, tail_len);
    return head_len + pkt->length + tail_len;
}

uint32_t SKYT_Forge_Strip(const SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *out)
{
    SKY_Packet_t pkt = *seen;

    pkt.security = SKY_SUITE_NONE;
    return (uint32_t)SKY_Packet_Encode(&pkt, out, twin->config.packet_bytes);
}

static void mend(uint8_t *data, uint32_t len)
{
    if ((data[0] & REQUEST_BIT) != 0)
    {
        data[CHECKSUM_AT] = 0;
        data[CHECKSUM_AT] = SKY_Xor8(0xFFu, data, len - SKY_PEC_BYTES);
    }
    const uint16_t pec = SKY_Crc16(SKY_CRC16_INIT, data, len - SKY_PEC_BYTES);

    data[len - 2u] = (uint8_t)(pec >> 8);
    data[len - 1u] = (uint8_t)(pec & 0xFFu);
}

/* Return true if a packet is still covered as it was: only what changes on the way has changed, or nothing. */
static bool is_same(const SKY_Packet_t *before, const uint8_t *data, uint32_t len)
{
    uint8_t      heads[2][SKY_HEAD_MAX];
    SKY_Packet_t after;

    if (before->tag == NULL || SKY_Packet_Decode(data, len, &after) != SKY_STATUS_OK || after.tag == NULL)
    {
        return false;
    }
    const size_t bytes = SKY_Packet_Authenticated(before, heads[0]);

    return SKY_Packet_Authenticated(&after, heads[1]) == bytes && memcmp(heads[0], heads[1], bytes) == 0;
}

static void flip(uint8_t *data, uint64_t bit)
{
    data[bit / 8u] = (uint8_t)(data[bit / 8u] ^ (0x80u >> bit % 8u));
}

/* A suite of headers leaves bytes of a chunk to the chunk's own checksum, which is no secret; so those are left alone. */
void SKYT_Forge_Alter(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *data, uint32_t len)
{
    const uint32_t tail    = SKY_Packet_TailBytes(seen);
    const uint32_t head    = len - tail - seen->length;
    const bool     is_all  = SKY_Packet_TagCoversPayload(seen) && seen->length > 0;
    const uint32_t covered = is_all ? len - tail : head;
    const uint64_t bit     = SKYT_Random(twin) % ((uint64_t)(covered + tail - SKY_PEC_BYTES) * 8u);
    const uint64_t of_tag  = (uint64_t)(len - tail) * 8u + SKYT_Random(twin) % ((uint64_t)SKY_TAG_BYTES * 8u);
    uint8_t        whole[SKY_HEAD_MAX];
    SKY_Packet_t   before = *seen;

    (void)memcpy(whole, data, head);
    before.head = whole;
    flip(data, bit < (uint64_t)covered * 8u ? bit : of_tag);
    mend(data, len);
    if (bit < (uint64_t)head * 8u && is_same(&before, data, len)) /* then it is the tag's turn */
    {
        (void)memcpy(data, whole, head);
        flip(data, of_tag);
        mend(data, len);
    }
}

/* ---- requests ---------------------------------------------------------------------------------------------------------------- */

static void forge_put(SKY_Packet_t *pkt, uint8_t *payload)
{
    pkt->op          = SKY_OP_PUT;
    pkt->chunk_id    = 0;
    pkt->chunk_total = 1;
    pkt->block_len   = FORGED_BYTES;
    pkt->chunk_len   = FORGED_BYTES;
    pkt->length      = FORGED_BYTES;
    pkt->chunk_crc   = SKY_Crc32c(0, payload, FORGED_BYTES);
}

/* Greet, or tell of links, as the near end of an ISL; without one, as the plane and slot that the packet came from. */
static void forge_hello(const SKYT_Twin_t *twin, SKY_Packet_t *pkt, uint32_t from, uint32_t to, uint8_t *payload)
{
    pkt->op        = SKY_OP_HELLO;
    pkt->hop_limit = 1;
    pkt->length    = SKY_HELLO_BYTES;
    if (from != SKYT_NONE)
    {
        pkt->src = SKYT_AddrOf(twin, from);
        pkt->dst = SKYT_AddrOf(twin, to);
    }
    if (payload[0] % 2u == 0)
    {
        pkt->flags  = SKY_FLAG_GOSSIP;
        pkt->length = SKY_HELLO_BYTES + SKY_LINK_STATE_BYTES;
    }
    (void)memset(payload + SKY_HELLO_BYTES, 0, SKY_LINK_STATE_BYTES);
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_PLANE + 1u]    = 1;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SLOT + 1u]     = 1;
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SEQUENCE + 1u] = 1; /* 2^16 changes later: newer than all that is known */
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_DOWN + 1u]     = 0xFu;
}

static void choose(SKYT_Twin_t *twin, SKY_Packet_t *pkt, uint32_t from, uint32_t to, uint8_t *payload)
{
    switch (SKYT_Random(twin) % KINDS)
    {
        case 0:
        case 1:
            forge_put(pkt, payload);
            break;
        case 2:
            pkt->op = SKY_OP_PURGE;
            break;
        case 3: /* word of another satellite */
            pkt->op     = SKY_OP_PURGE;
            pkt->flags  = SKY_FLAG_GOSSIP;
            pkt->credit = 1;
            break;
        case 4: /* all blocks of the tenant */
            pkt->op = SKY_OP_MIGRATE;
            (void)memset(pkt->key, 0, sizeof(pkt->key));
            (void)memset(payload, 0, SKY_MIGRATE_BYTES);
            payload[SKY_MIGRATE_OFF_PLANE + 1u] = 1;
            payload[SKY_MIGRATE_OFF_SLOT + 1u]  = 1;
            pkt->length                         = SKY_MIGRATE_BYTES;
            break;
        case 5: /* a command, as those that bring a schedule */
            pkt->apid   = SKY_APID_ISL;
            pkt->op     = SKY_OP_RELAY;
            pkt->length = COMMAND_BYTES;
            break;
        case 6: /* telemetry */
            pkt->apid  = SKY_APID_ISL;
            pkt->op    = SKY_OP_RELAY;
            pkt->flags = SKY_FLAG_TLM;
            break;
        case 7:
            pkt->apid = SKY_APID_ISL;
            forge_hello(twin, pkt, from, to, payload);
            break;
        case 8:
            pkt->apid = SKYT_Random(twin) % 2u == 0 ? SKY_APID_ISL : SKY_APID_KVC;
            pkt->op   = SKY_OP_STATS;
            break;
        case 9: /* a handshake, with whatever word */
            pkt->apid     = SKY_APID_ISL;
            pkt->op       = SKY_OP_ASSOCIATE;
            pkt->security = SKY_SUITE_HANDSHAKE;
            pkt->length   = SKY_HANDSHAKE_REQUEST_BYTES;
            (void)memset(payload, 0, SKY_CREDENTIAL_BYTES);
            payload[SKY_ASSOCIATE_OFF_ROLE]       = (uint8_t)SKY_ROLE_MISSION;
            payload[SKY_ASSOCIATE_OFF_GENERATION] = SKYT_KEY_GENERATION;
            payload[SKY_ASSOCIATE_OFF_TENANTS]    = SKY_CREDENTIAL_ANY_TENANT;
            payload[SKY_ASSOCIATE_OFF_SUITE]      = (uint8_t)twin->config.suite;
            (void)memset(payload + SKY_ASSOCIATE_OFF_SPARE_END, 0, SKY_HANDSHAKE_SPARE_BYTES);
            break;
        default:
            pkt->apid = SKY_APID_ISL;
            pkt->op   = SKY_OP_PING;
            break;
    }
}

uint32_t SKYT_Forge_Request(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint32_t from, uint32_t to, uint8_t *out)
{
    const bool   has_tag = SKYT_Random(twin) % 2u == 0;
    uint8_t      payload[SKY_HANDSHAKE_REQUEST_BYTES + FORGED_BYTES];
    SKY_Packet_t pkt;

    fill(twin, payload, sizeof(payload));
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = true;
    pkt.apid        = SKY_APID_KVC;
    pkt.seq_flags   = SKY_SEQ_WHOLE;
    pkt.hop_limit   = SKY_LIMIT_HOP_LIMIT;
    pkt.src         = seen->src;
    pkt.dst         = seen->dst;
    pkt.gateway     = seen->gateway;
    pkt.tenant      = seen->tenant;
    pkt.deadline_ms = seen->deadline_ms;
    pkt.request_id  = SKYT_Random(twin);
    pkt.cookie      = seen->cookie;
    pkt.spi         = seen->spi;
    pkt.sequence    = seen->sequence + LATER;
    pkt.security    = !has_tag ? SKY_SUITE_NONE : (uint8_t)twin->config.suite;
    pkt.payload     = payload;
    (void)memcpy(pkt.key, seen->key, sizeof(pkt.key));
    choose(twin, &pkt, from, to, payload);
    return encode(twin, &pkt, out);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------------- */

uint32_t SKYT_Forge_Answer(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *out)
{
    static const SKY_Status_t statuses[] = {
        SKY_STATUS_UNAUTHENTICATED, SKY_STATUS_COOKIE, SKY_STATUS_BAD_KEY, SKY_STATUS_OK, SKY_STATUS_OK,
        SKY_STATUS_NOT_FOUND,       SKY_STATUS_REFUSED};

    const SKY_Status_t status = statuses[SKYT_Random(twin) % sizeof(statuses)];
    uint8_t            payload[FORGED_BYTES];
    SKY_Packet_t       pkt;

    fill(twin, payload, sizeof(payload));
    SKY_Packet_Reply(seen, seen->dst, status, &pkt);
    pkt.spi      = seen->spi;
    pkt.sequence = seen->sequence;
    pkt.gateway  = seen->gateway;
    if (status == SKY_STATUS_COOKIE)
    {
        pkt.cookie = SKYT_Random(twin) | 1u;
    }
    if (seen->security >= SKY_SUITE_GMAC_HEADER && seen->security <= SKY_SUITE_BLAKE2B_PACKET && SKYT_Random(twin) % 2u == 0)
    {
        pkt.security = seen->security;
    }
    if (status == SKY_STATUS_OK && seen->op == SKY_OP_GET)
    {
        pkt.chunk_total = pkt.chunk_total != 0 ? pkt.chunk_total : 1u;
        pkt.chunk_len   = FORGED_BYTES;
        pkt.length      = FORGED_BYTES;
        pkt.payload     = payload;
        pkt.chunk_crc   = SKY_Crc32c(0, payload, FORGED_BYTES);
    }
    return encode(twin, &pkt, out);
}
