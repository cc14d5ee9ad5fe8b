/**
 * @file
 * What the tests of the node share: satellite (2, 2) of 3 x 3 on a shell that notes what it is asked for, with one service.
 */
#ifndef NODE_RIG_H
#define NODE_RIG_H

#include <string.h>

#include "check.h"
#include "sky.h"

#define HOST       9u     /* number of the ground host */
#define GROUND     40000u /* its endpoint */
#define APID       0x123u /* of the service */
#define SENT_MAX   70000u
#define LISTENERS  4u
#define RELAYED    16u
#define SATELLITES 9u
#define SECOND_US  UINT64_C(1000000)
#define LEASE_US   (30u * SECOND_US)

static SKY_Node_t         node;
static SKY_NodeCfg_t      cfg;
static SKY_NodeListener_t listeners[LISTENERS];
static SKY_NodeRelayed_t  relayed[RELAYED];
static uint32_t           map[SATELLITES * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];

/* The datagram that was sent last, how many were, where to, and how often the shell was to send all that waits. */
static uint8_t      sent[SENT_MAX];
static uint32_t     sent_bytes, sent_count, flushes;
static SKY_LinkId_t sent_link;
static uint64_t     sent_endpoint;
static bool         shell_drops;

/* The service: what it was asked, what it says next and how often. */
static uint32_t  begun, rejected, released, outgoing, unreached;
static bool      is_served;
static uint64_t  poll_us;
static SKY_Out_t saying;
static uint8_t   body[2048];

/* Commands for the bus. */
static uint32_t     commands;
static SKY_Status_t command_status;

static const SKY_Addr_t self = {2, 2};

static uint64_t endpoint_of(SKY_LinkId_t link)
{
    return ((uint64_t)link + 1u) << 16 | 4919u;
}

/* ---- the service ----------------------------------------------------------------------------------------------------- */

static void on_begin(void *context, uint64_t now_us, const SKY_Packet_t *pkt)
{
    (void)context;
    (void)now_us;
    (void)pkt;
    ++begun;
}

static bool on_next(void *context, uint64_t now_us, SKY_Out_t *out)
{
    (void)context;
    (void)now_us;
    if (outgoing == 0)
    {
        return false;
    }
    --outgoing;
    *out = saying;
    return true;
}

static void on_poll(void *context, uint64_t now_us, uint64_t *next_us)
{
    (void)context;
    (void)now_us;
    *next_us = poll_us;
}

static void on_reject(void *context, SKY_Status_t status)
{
    (void)context;
    (void)status;
    ++rejected;
}

static void on_unreachable(void *context, SKY_Addr_t dst)
{
    (void)context;
    (void)dst;
    ++unreached;
}

static const SKY_NodeService_t service = {NULL, on_begin, on_next, on_poll, on_reject, on_unreachable};

/* ---- the shell ------------------------------------------------------------------------------------------------------- */

static bool on_send(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    uint8_t *at = sent;

    (void)context;
    (void)now_us;
    if (shell_drops)
    {
        return false;
    }
    if (parts->head_len > 0)
    {
        (void)memcpy(at, parts->head, parts->head_len);
    }
    at += parts->head_len;
    if (parts->body_len > 0)
    {
        (void)memcpy(at, parts->body, parts->body_len);
    }
    at += parts->body_len;
    if (parts->tail_len > 0)
    {
        (void)memcpy(at, parts->tail, parts->tail_len);
    }
    sent_bytes    = parts->head_len + parts->body_len + parts->tail_len;
    sent_link     = link;
    sent_endpoint = endpoint;
    ++sent_count;
    return true;
}

static void on_flush(void *context)
{
    (void)context;
    ++flushes;
}

static const SKY_NodeService_t *on_acquire(void *context, uint16_t apid)
{
    (void)context;
    return is_served && (apid == APID || apid == APID + 1u) ? &service : NULL;
}

static const SKY_NodeService_t *on_acquire_at(void *context, uint32_t place, uint16_t *apid)
{
    (void)context;
    *apid = APID;
    return is_served && place == 1u ? &service : NULL;
}

static void on_release(void *context)
{
    (void)context;
    ++released;
}

static SKY_Status_t on_command(void *context, const uint8_t *message, uint32_t len)
{
    (void)context;
    (void)message;
    (void)len;
    ++commands;
    return command_status;
}

static uint64_t on_clock_offset(void *context)
{
    (void)context;
    return 7 * SECOND_US;
}

static const SKY_NodeShell_t shell = {NULL,          on_send,    on_flush,   on_acquire,
                                      on_acquire_at, on_release, on_command, on_clock_offset};

/* ---- the satellite --------------------------------------------------------------------------------------------------- */

/* Satellite (2, 2) of 3 x 3, not configured yet. */
static void set_up(void)
{
    const SKY_NodeMemory_t memory = {map, sizeof(map), listeners, LISTENERS, relayed, RELAYED};

    begun = rejected = released = outgoing = unreached = sent_count = sent_bytes = flushes = commands = 0;
    is_served                                                                                         = true;
    shell_drops                                                                                       = false;
    poll_us                                                                                           = UINT64_MAX;
    command_status                                                                                    = SKY_STATUS_OK;
    (void)memset(&cfg, 0, sizeof(cfg));
    CHECK(SKY_Torus_Init(&cfg.torus, 3, 3, false));
    cfg.self         = self;
    cfg.packet_bytes = 9000;
    cfg.poll_most_us = SECOND_US;
    cfg.lease_us     = LEASE_US;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        cfg.neighbours[link].is_present = true;
        cfg.neighbours[link].addr       = SKY_Torus_Neighbour(&cfg.torus, self, (SKY_LinkId_t)link);
        cfg.neighbours[link].endpoint   = endpoint_of((SKY_LinkId_t)link);
    }
    CHECK(SKY_Node_Init(&node, &shell, &memory));
}

static inline void start(void)
{
    set_up();
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
}

/* A request of the ground host to this satellite. */
static SKY_Packet_t request_of(uint16_t apid, uint8_t op)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = apid;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = op;
    pkt.hop_limit  = 3;
    pkt.request_id = 77;
    pkt.src.slot   = HOST;
    pkt.dst        = self;
    return pkt;
}

static void come(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    static uint8_t wire[SENT_MAX];
    const size_t   len = SKY_Packet_Encode(pkt, wire, sizeof(wire));

    CHECK(len > 0);
    sent_count = 0;
    sent_bytes = 0;
    SKY_Node_Receive(&node, now_us, wire, (uint32_t)len, endpoint);
}

/* Make checksum and PEC of a request right again. */
static inline void mend(uint8_t *wire, size_t len)
{
    wire[SKY_PRIMARY_BYTES + 1u] = 0;
    wire[SKY_PRIMARY_BYTES + 1u] = SKY_Xor8(0xFF, wire, len - SKY_PEC_BYTES);
    const uint16_t crc           = SKY_Crc16(SKY_CRC16_INIT, wire, len - SKY_PEC_BYTES);
    wire[len - 2u]               = (uint8_t)(crc >> 8);
    wire[len - 1u]               = (uint8_t)(crc & 0xFFu);
}

/* Write a request without payload of another version, which has no fields but those that every version has. @return its bytes */
static inline uint32_t encode_as_version(const SKY_Packet_t *pkt, uint8_t version, uint8_t *wire)
{
    const size_t head = SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES;
    const size_t len  = head + SKY_BASE_HEADER_BYTES + SKY_PEC_BYTES;

    CHECK(pkt->length == 0 && SKY_Packet_Encode(pkt, wire, SENT_MAX) > len);
    wire[4]                      = 0;
    wire[5]                      = (uint8_t)(len - 7u);
    wire[head + SKY_OFF_VERSION] = version;
    mend(wire, len);
    return (uint32_t)len;
}

/* What was sent last. */
static SKY_Packet_t answer(void)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    CHECK_EQ(SKY_Packet_Decode(sent, sent_bytes, &pkt), SKY_STATUS_OK);
    return pkt;
}

/* The service is to say something to somebody, with a body that is not copied. */
static inline void say(SKY_Addr_t dst, bool is_request, uint32_t times)
{
    SKY_Packet_t pkt = request_of(APID, SKY_OP_GET);

    (void)memset(&saying, 0, sizeof(saying));
    pkt.is_request = is_request;
    pkt.src        = self;
    pkt.dst        = dst;
    pkt.gateway    = self;
    pkt.length     = sizeof(body);
    pkt.payload    = body;
    saying.pkt     = pkt;
    outgoing       = times;
}

#endif
