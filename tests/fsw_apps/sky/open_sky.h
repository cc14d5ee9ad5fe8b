/**
 * @file
 * The sky of open_rig.h: nine whole satellites (node, security, service), 3 x 3, and a network that loses, doubles and reorders packets as
 * a test wants.
 */
#ifndef OPEN_SKY_H
#define OPEN_SKY_H

#include "crypto_rig.h"
#include "fixture.h"
#include "sky_host.h"

#define PLANES        3u
#define SLOTS         3u
#define SATELLITES    (PLANES * SLOTS)
#define ENDPOINT0     100u
#define HOST_ENDPOINT 0x10001u
#define NUMBER        77u
#define PEERS_MAX     16u
#define QUESTIONS     64u
#ifndef FLYING_MAX /* a test may need less memory */
#define FLYING_MAX 16384u
#endif
#define GROUND_US     5000u
#define ISL_US        1000u
#define RTT_US        (2u * GROUND_US)
#define CHUNK         1000u
#define CHUNKS_MAX    400u
#define SECOND_US     UINT64_C(1000000)
#define START_US      (1000u * SECOND_US)
#define IDLE_RUNS_MAX 300u /* runs of the host in which nothing came and nothing was begun */
#ifndef NONCES
#define NONCES (1u << 20)
#endif
#define TO_HOST SATELLITES

typedef enum
{
    MODE_OFF = 0, /* no security at all */
    MODE_COOKIE,  /* no keys */
    MODE_KEYED
} sky_mode_t;

typedef struct
{
    uint64_t at_us;
    uint64_t order;
    uint64_t from; /* endpoint */
    uint32_t to;   /* satellite, or TO_HOST */
    uint32_t len;
    uint8_t  bytes[1600];
} flying_t;

typedef struct
{
    SKY_Node_t         node;
    SKY_NodeListener_t listeners[2];
    SKY_NodeRelayed_t  relayed[2];
    uint32_t           map[SATELLITES * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
    SKY_Security_t     security;
    void              *security_memory;
    crypto_rig_t       crypto;
    SKY_Store_t        store;
    SKY_Service_t      svc;
    void              *store_memory;
    SKY_NodeService_t  service;
    uint32_t           index;
    uint32_t           boots;
    sky_mode_t         mode;
    uint8_t            master; /* first byte of its master key */
    bool               is_deaf;
} sat_t;

typedef struct
{
    SKY_Host_t            host;
    SKY_HostPeerMemory_t  peers;
    SKY_HostBlockMemory_t blocks;
    SKY_HostAsked_t       asked[QUESTIONS];
    crypto_rig_t          crypto;
    uint64_t              prints[RIG_PLACES]; /* of the keys at the host's places */
    sky_mode_t            mode;
    sat_t                *sats;
    flying_t             *flying;
    uint32_t              flying_count;
    uint64_t              order, now_us, random;
    uint32_t              loss, twice; /* of 1000 packets */
    uint32_t              jitter_us;
    uint8_t               payload[SKY_CHUNKSET_MAX_BYTES];
    uint64_t             *nonces; /* print ^ mixed sequence; 0: free */
    uint32_t              nonce_count;
    uint32_t              no_key_for; /* satellite + 1 of which the keyring has no key */
    bool                  no_random;  /* the system has none */
    uint32_t              idle_runs;
    /* what the host has sent, by the satellite that it was for */
    uint32_t openings[SATELLITES], requests[SATELLITES], puts[SATELLITES];
    uint64_t opened_us[SATELLITES][64];
    uint32_t not_believed; /* requests without the suite that a keyed host must have */
    /* What a test does with an answer of the sky before it is taken in. Return false to drop it. */
    bool (*tap)(uint32_t from, uint8_t *bytes, uint32_t *len);
    /* What a test does with a packet of the host. Return false to drop it. */
    bool (*spy)(uint32_t to, const SKY_Packet_t *pkt);
} net_t;

static net_t net;

static inline SKY_Addr_t addr_of(uint32_t i)
{
    return (SKY_Addr_t){(uint16_t)(i / SLOTS + 1u), (uint16_t)(i % SLOTS + 1u)};
}

static inline uint32_t index_of(SKY_Addr_t addr)
{
    return (addr.plane - 1u) * SLOTS + addr.slot - 1u;
}

/* ---- the network ----------------------------------------------------------------------------------------------------- */

static inline void fly(uint32_t to, uint64_t from, const uint8_t *bytes, uint32_t len, uint64_t takes_us)
{
    const uint32_t copies = 1u + (fx_below(&net.random, 1000) < net.twice ? 1u : 0u);

    CHECK(len <= sizeof(net.flying[0].bytes));
    for (uint32_t i = 0; i < copies; ++i)
    {
        flying_t *one = &net.flying[net.flying_count];

        if (fx_below(&net.random, 1000) < net.loss || net.flying_count == FLYING_MAX)
        {
            continue;
        }
        ++net.flying_count;
        one->at_us = net.now_us + takes_us + fx_below(&net.random, net.jitter_us);
        one->order = ++net.order;
        one->from  = from;
        one->to    = to;
        one->len   = len;
        (void)memcpy(one->bytes, bytes, len);
    }
}

/* ---- what others send ------------------------------------------------------------------------------------------------ */

/* Bytes of a packet. @param key  of its tag, or NULL @return their number */
static inline uint32_t bytes_of(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, uint8_t *bytes)
{
    uint8_t tail[SKY_TAIL_MAX];
    size_t  len = SKY_Tag_EncodeAround(pkt, key, NULL, bytes, tail);

    CHECK(len > 0);
    if (pkt->length > 0)
    {
        (void)memcpy(bytes + len, pkt->payload, pkt->length);
    }
    (void)memcpy(bytes + len + pkt->length, tail, SKY_Packet_TailBytes(pkt));
    return (uint32_t)len + pkt->length + SKY_Packet_TailBytes(pkt);
}

/* A packet comes to the host, now. */
static inline void inject(uint32_t from, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    static uint8_t bytes[1600];
    const uint32_t len = bytes_of(pkt, key, bytes);

    SKY_Host_Receive(&net.host, net.now_us, ENDPOINT0 + from, bytes, len);
}

/* An answer without a tag to a packet of the host. */
static inline SKY_Packet_t answer_of(const SKY_Packet_t *request, uint32_t from, SKY_Status_t status)
{
    SKY_Packet_t pkt;

    SKY_Packet_Reply(request, addr_of(from), status, &pkt);
    pkt.payload = NULL;
    pkt.length  = 0;
    return pkt;
}

/* ---- a satellite ----------------------------------------------------------------------------------------------------- */

static inline bool sat_send(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    static uint8_t bytes[1600];
    sat_t         *sat = context;
    uint32_t       len = 0;

    (void)now_us;
    if (parts->head_len > 0)
    {
        (void)memcpy(bytes, parts->head, parts->head_len);
        len += parts->head_len;
    }
    if (parts->body_len > 0)
    {
        (void)memcpy(bytes + len, parts->body, parts->body_len);
        len += parts->body_len;
    }
    if (parts->tail_len > 0)
    {
        (void)memcpy(bytes + len, parts->tail, parts->tail_len);
        len += parts->tail_len;
    }
    if (link == SKY_LINK_GROUND)
    {
        if (endpoint == HOST_ENDPOINT) /* else it is another host */
        {
            fly(TO_HOST, ENDPOINT0 + sat->index, bytes, len, GROUND_US);
        }
    }
    else
    {
        fly(index_of(sat->node.links[link].peer), ENDPOINT0 + sat->index, bytes, len, ISL_US);
    }
    return true;
}

static inline void sat_flush(void *context)
{
    (void)context;
}

static inline const SKY_NodeService_t *sat_acquire(void *context, uint16_t apid)
{
    sat_t *sat = context;

    return apid == SKY_APID_KVC ? &sat->service : NULL;
}

static inline const SKY_NodeService_t *sat_acquire_at(void *context, uint32_t place, uint16_t *apid)
{
    sat_t *sat = context;

    *apid = SKY_APID_KVC;
    return place == 0 ? &sat->service : NULL;
}

static inline SKY_Status_t sat_command(void *context, const uint8_t *message, uint32_t len)
{
    (void)context;
    (void)message;
    (void)len;
    return SKY_STATUS_REFUSED;
}

static inline uint64_t sat_clock(void *context)
{
    (void)context;
    return 0;
}

static inline void svc_begin(void *context, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_Service_Begin(context, now_us, pkt);
}

static inline bool svc_next(void *context, uint64_t now_us, SKY_Out_t *out)
{
    return SKY_Service_Next(context, now_us, out);
}

static inline void svc_poll(void *context, uint64_t now_us, uint64_t *next_us)
{
    SKY_Service_Poll(context, now_us, next_us);
}

static inline void svc_reject(void *context, SKY_Status_t status)
{
    SKY_Service_CountError(context, status);
}

static inline void svc_unreachable(void *context, SKY_Addr_t dst)
{
    SKY_Service_Unreachable(context, dst);
}

static inline void master_of(const sat_t *sat, uint8_t *key)
{
    (void)memset(key, (int)(sat->index + 1u), SKY_CRYPTO_KEY_BYTES);
    key[0] = sat->master;
}

/* Begin (again): what is in the store stays, all else is new. */
static inline void sat_boot(uint32_t i, sky_mode_t mode)
{
    sat_t                 *sat    = &net.sats[i];
    const SKY_NodeShell_t  shell  = {sat, sat_send, sat_flush, sat_acquire, sat_acquire_at, sat_flush, sat_command, sat_clock};
    const SKY_NodeMemory_t memory = {sat->map, sizeof(sat->map), sat->listeners, 2, sat->relayed, 2};
    SKY_NodeCfg_t          cfg;
    uint8_t                entropy[SKY_SECURITY_ENTROPY_BYTES];
    uint8_t                key[SKY_CRYPTO_KEY_BYTES];
    uint64_t               state = 1000u + i * 100u + ++sat->boots;

    sat->mode = mode;
    (void)memset(&cfg, 0, sizeof(cfg));
    CHECK(SKY_Torus_Init(&cfg.torus, PLANES, SLOTS, false));
    cfg.self         = addr_of(i);
    cfg.packet_bytes = 1600;
    cfg.poll_most_us = SECOND_US;
    cfg.lease_us     = SECOND_US;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        cfg.neighbours[link].is_present = true;
        cfg.neighbours[link].addr       = SKY_Torus_Neighbour(&cfg.torus, cfg.self, (SKY_LinkId_t)link);
        cfg.neighbours[link].endpoint   = ENDPOINT0 + index_of(cfg.neighbours[link].addr);
    }
    CHECK(SKY_Node_Init(&sat->node, &shell, &memory));
    CHECK_EQ(SKY_Node_Configure(&sat->node, net.now_us, &cfg), SKY_NODE_CONFIGURED);
    if (mode == MODE_OFF)
    {
        return;
    }
    const SKY_SecurityCfg_t security = {.crypto          = &sat->crypto.crypto,
                                        .suites          = sat->crypto.crypto.suites,
                                        .peer_suite      = SKY_SUITE_BLAKE2B_PACKET,
                                        .established_max = 8,
                                        .half_open_max   = 8,
                                        .session_max     = 1,
                                        .retry_us        = 1000000};
    const size_t            bytes    = SKY_Security_MemoryBytes(&security);

    for (uint32_t byte = 0; byte < sizeof(entropy); ++byte)
    {
        entropy[byte] = (uint8_t)(fx_random(&state) >> 32);
    }
    free(sat->security_memory);
    sat->security_memory = malloc(bytes);
    CHECK(SKY_Security_Init(&sat->security, &security, cfg.self, sat->security_memory, bytes, entropy));
    SKY_Node_Secure(&sat->node, &sat->security);
    if (mode == MODE_KEYED)
    {
        master_of(sat, key);
        CHECK(SKY_Security_SetMaster(&sat->security, 1, key));
    }
}

static inline void sat_open(uint32_t i)
{
    const SKY_StoreCfg_t store = {CHUNK, 2u * CHUNKS_MAX};
    const size_t         bytes = SKY_Store_MemoryBytes(&store);
    sat_t               *sat   = &net.sats[i];
    SKY_ServiceCfg_t     cfg   = {.self = addr_of(i), .packet_bytes = 1472, .credit = 20, .part_lifetime_ms = 500};

    crypto_rig_open(&sat->crypto);
    sat->index        = i;
    sat->master       = 9;
    sat->store_memory = malloc(bytes);
    sat->service      = (SKY_NodeService_t){&sat->svc, svc_begin, svc_next, svc_poll, svc_reject, svc_unreachable};
    CHECK(SKY_Store_Init(&sat->store, &store, sat->store_memory, bytes, 3));
    CHECK(SKY_Torus_Init(&cfg.torus, PLANES, SLOTS, false));
    CHECK(SKY_Service_Init(&sat->svc, &cfg, &sat->store, net.now_us, 77u + i));
}

#endif
