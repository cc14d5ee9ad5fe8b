/**
 * @file
 * Two neighbours whose links are secured, and what is on its way between them. A ground host is played by hand.
 */
#ifndef PAIR_RIG_H
#define PAIR_RIG_H

#include "party_rig.h"
#include "security_steps.h"
#include "sky.h"

#define SECOND_US  UINT64_C(1000000)
#define RETRY_US   (SECOND_US / 4u)
#define APID       0x123u
#define HOST       9u
#define GROUND     40000u
#define LISTENERS  2u
#define RELAYED    2u
#define SATELLITES 9u
#define FLYING     64u

enum
{
    WESTERN = 0,
    EASTERN,
    PAIR
};

typedef struct
{
    SKY_Node_t         node;
    SKY_Security_t     security;
    SKY_Addr_t         addr;
    crypto_rig_t       rig;
    uint64_t           memory[4096];
    uint32_t           map[SATELLITES * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
    SKY_NodeListener_t listeners[LISTENERS];
    SKY_NodeRelayed_t  relayed[RELAYED];
    SKY_Out_t          saying; /* what its service says next, and whether it does */
    bool               speaks;
    uint32_t           asked, answered; /* requests and responses that its service got */
} satellite_t;

typedef struct
{
    int      to; /* PAIR: the ground */
    uint32_t len;
    uint8_t  bytes[PARTY_WIRE];
} flying_t;

static satellite_t satellites[PAIR];
static flying_t    flying[FLYING];
static uint32_t    flying_count;
static bool        is_jammed; /* nothing gets from one to the other */
static uint8_t     ground[PARTY_WIRE];
static uint32_t    ground_bytes, ground_count;

/* Called for all that a satellite sends, if it is not NULL. */
static void (*on_sent)(int which, const uint8_t *bytes, uint32_t len);

static crypto_rig_t theirs;
static party_t      host;

static const SKY_Addr_t   addrs[PAIR] = {{2, 2}, {2, 3}};
static const SKY_LinkId_t links[PAIR] = {SKY_LINK_EAST, SKY_LINK_WEST}; /* to the other one */

static uint64_t endpoint_of(int which)
{
    return ((uint64_t)which + 1u) << 16 | 4919u;
}

/* ---- the service ----------------------------------------------------------------------------------------------------- */

static void on_begin(void *context, uint64_t now_us, const SKY_Packet_t *pkt)
{
    satellite_t *satellite = context;

    (void)now_us;
    if (pkt->is_request)
    {
        ++satellite->asked;
        (void)memset(&satellite->saying, 0, sizeof(satellite->saying));
        SKY_Packet_Reply(pkt, satellite->addr, SKY_STATUS_NOT_FOUND, &satellite->saying.pkt);
        satellite->speaks = true;
    }
    else
    {
        ++satellite->answered;
    }
}

static bool on_next(void *context, uint64_t now_us, SKY_Out_t *out)
{
    satellite_t *satellite = context;
    const bool   speaks    = satellite->speaks;

    (void)now_us;
    *out              = satellite->saying;
    satellite->speaks = false;
    return speaks;
}

static void on_poll(void *context, uint64_t now_us, uint64_t *next_us)
{
    (void)context;
    (void)now_us;
    *next_us = UINT64_MAX;
}

static void on_reject(void *context, SKY_Status_t status)
{
    (void)context;
    (void)status;
}

static void on_unreachable(void *context, SKY_Addr_t dst)
{
    (void)context;
    (void)dst;
}

static SKY_NodeService_t services[PAIR];

/* ---- the shell ------------------------------------------------------------------------------------------------------- */

static bool on_send(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    const int      which = (int)((satellite_t *)context - satellites);
    const uint32_t len   = parts->head_len + parts->body_len + parts->tail_len;
    uint8_t       *at    = link == SKY_LINK_GROUND ? ground : flying[flying_count].bytes;

    (void)now_us;
    CHECK(len <= PARTY_WIRE && flying_count + 1u < FLYING);
    CHECK(link == SKY_LINK_GROUND ? endpoint == GROUND : link == links[which]);
    if (parts->head_len > 0) /* what is passed on is a body alone */
    {
        (void)memcpy(at, parts->head, parts->head_len);
    }
    if (parts->body_len > 0)
    {
        (void)memcpy(at + parts->head_len, parts->body, parts->body_len);
    }
    if (parts->tail_len > 0)
    {
        (void)memcpy(at + parts->head_len + parts->body_len, parts->tail, parts->tail_len);
    }
    if (link == SKY_LINK_GROUND)
    {
        ground_bytes = len;
        ++ground_count;
    }
    else
    {
        flying[flying_count].to  = 1 - which;
        flying[flying_count].len = len;
        flying_count += is_jammed ? 0u : 1u;
    }
    if (on_sent != NULL)
    {
        on_sent(which, at, len);
    }
    return true;
}

static void on_flush(void *context)
{
    (void)context;
}

static const SKY_NodeService_t *on_acquire(void *context, uint16_t apid)
{
    return apid == APID ? &services[(satellite_t *)context - satellites] : NULL;
}

static const SKY_NodeService_t *on_acquire_at(void *context, uint32_t place, uint16_t *apid)
{
    *apid = APID;
    return place == 0u ? on_acquire(context, APID) : NULL;
}

static void on_release(void *context)
{
    (void)context;
}

static SKY_Status_t on_command(void *context, const uint8_t *message, uint32_t len)
{
    (void)context;
    (void)message;
    (void)len;
    return SKY_STATUS_OK;
}

static uint64_t on_clock_offset(void *context)
{
    (void)context;
    return 0;
}

/* ---- the two --------------------------------------------------------------------------------------------------------- */

/* A satellite boots. @param boot_number  below 128; no two boots draw the same random numbers */
static void boot(int which, uint64_t now_us, uint8_t boot_number)
{
    uint8_t                 entropy[SKY_SECURITY_ENTROPY_BYTES];
    satellite_t            *satellite = &satellites[which];
    const SKY_NodeShell_t   shell     = {satellite,     on_send,    on_flush,   on_acquire,
                                         on_acquire_at, on_release, on_command, on_clock_offset};
    const SKY_NodeMemory_t  memory    = {satellite->map, sizeof(satellite->map), satellite->listeners,
                                         LISTENERS,      satellite->relayed,     RELAYED};
    const SKY_SecurityCfg_t how       = {
              .crypto          = &satellite->rig.crypto,
              .suites          = UINT32_MAX,
              .peer_suite      = SKY_SUITE_BLAKE2B_HEADER,
              .established_max = 4,
              .half_open_max   = 2,
              .session_max     = 2,
              .retry_us        = RETRY_US,
              .peer_key        = party_peer_key,
              .peer_context    = &satellite->addr,
    };
    SKY_NodeCfg_t cfg = {.self         = addrs[which],
                         .packet_bytes = 2000,
                         .hello_us     = SECOND_US,
                         .poll_most_us = SECOND_US,
                         .lease_us     = 30u * SECOND_US};

    CHECK(boot_number < 128u);
    for (size_t i = 0; i < sizeof(entropy); ++i)
    {
        entropy[i] = (uint8_t)((2u * boot_number + (uint32_t)which) ^ i);
    }
    satellite->addr   = addrs[which];
    satellite->speaks = false;
    services[which]   = (SKY_NodeService_t){satellite, on_begin, on_next, on_poll, on_reject, on_unreachable};
    CHECK(SKY_Torus_Init(&cfg.torus, 3, 3, false));
    cfg.neighbours[links[which]] = (SKY_NodeNeighbour_t){true, addrs[1 - which], endpoint_of(1 - which)};
    CHECK(SKY_Security_Init(&satellite->security, &how, satellite->addr, satellite->memory, sizeof(satellite->memory), entropy));
    CHECK(SKY_Security_SetMaster(&satellite->security, 0, party_master));
    CHECK(SKY_Node_Init(&satellite->node, &shell, &memory));
    CHECK_EQ(SKY_Node_Configure(&satellite->node, now_us, &cfg), SKY_NODE_CONFIGURED);
    SKY_Node_Secure(&satellite->node, &satellite->security);
}

static inline void open(void)
{
    flying_count = ground_count = 0;
    is_jammed                   = false;
    crypto_rig_open(&theirs);
    party_host(&host, &theirs.crypto, 0, SKY_ROLE_HOST, HOST, GROUND);
    for (int which = 0; which < PAIR; ++which)
    {
        (void)memset(&satellites[which], 0, sizeof(satellites[which]));
        crypto_rig_open(&satellites[which].rig);
        boot(which, 0, 0);
    }
}

static inline void end(void)
{
    crypto_rig_close(&theirs);
    for (int which = 0; which < PAIR; ++which)
    {
        crypto_rig_close(&satellites[which].rig);
    }
}

/* Everything that is on its way arrives, and what comes of it. */
static inline void settle(uint64_t now_us)
{
    SKY_Node_Run(&satellites[WESTERN].node, now_us);
    SKY_Node_Run(&satellites[EASTERN].node, now_us);
    for (uint32_t at = 0; at < flying_count; ++at)
    {
        satellite_t *satellite = &satellites[flying[at].to];

        SKY_Node_Receive(&satellite->node, now_us, flying[at].bytes, flying[at].len, endpoint_of(1 - flying[at].to));
        SKY_Node_Run(&satellite->node, now_us);
    }
    flying_count = 0;
}

static inline void pass(uint64_t *now_us, uint64_t seconds)
{
    for (uint64_t until_us = *now_us + seconds * SECOND_US; *now_us < until_us; *now_us += RETRY_US)
    {
        settle(*now_us);
    }
}

static inline const SKY_HelloLink_t *hello_of(int which)
{
    return &satellites[which].node.hello.links[links[which]];
}

static inline bool is_up(int which)
{
    return SKY_Node_IsUp(&satellites[which].node, links[which]);
}

/* The service of a satellite asks the other one. */
static inline void ask_neighbour(int which, uint64_t now_us)
{
    satellite_t  *satellite = &satellites[which];
    SKY_Packet_t *pkt       = &satellite->saying.pkt;

    (void)memset(&satellite->saying, 0, sizeof(satellite->saying));
    pkt->is_request   = true;
    pkt->apid         = APID;
    pkt->seq_flags    = SKY_SEQ_WHOLE;
    pkt->op           = SKY_OP_GET;
    pkt->hop_limit    = 3;
    pkt->src          = addrs[which];
    pkt->dst          = addrs[1 - which];
    satellite->speaks = true;
    SKY_Node_Wake(&satellite->node);
    SKY_Node_Run(&satellite->node, now_us);
}

static inline SKY_Packet_t host_request(int which, uint8_t op)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = op;
    pkt.hop_limit  = 3;
    pkt.dst        = addrs[which];
    return pkt;
}

/* A datagram from the ground comes to the western satellite. @return what came back */
static inline SKY_Packet_t from_ground(uint64_t now_us, uint8_t *wire, uint32_t len)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    ground_count = 0;
    SKY_Node_Receive(&satellites[WESTERN].node, now_us, wire, len, GROUND);
    settle(now_us);
    CHECK_EQ(ground_count, 1);
    CHECK_EQ(SKY_Packet_Decode(ground, ground_bytes, &pkt), SKY_STATUS_OK);
    return pkt;
}

#endif
