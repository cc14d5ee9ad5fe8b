/**
 * @file
 * A ground host on a bench: the core's host, four satellites' services behind endpoints, and a wire between them that takes time and
 * does what a test tells it to.
 */
#ifndef HOST_RIG_H
#define HOST_RIG_H

#include "rig.h"
#include "sky_host.h"

#define SATELLITES 4u
#define ENDPOINT0  100u /* of the first one */
#ifndef RTT_US
#define RTT_US 20000u
#endif
#define CHUNK      1000u
#define CHUNKS_MAX 4200u
#define WIRE_MAX   4096u
#define MOST_STEPS 200000u

typedef struct
{
    uint64_t time_us;
    uint64_t endpoint;
    uint32_t len;
    uint8_t  bytes[1600];
} host_wire_t;

typedef struct
{
    SKY_Host_t            host;
    SKY_HostPeerMemory_t  peers;
    SKY_HostBlockMemory_t blocks;
    rig_t                *satellites; /* SATELLITES */
    uint64_t              now_us;
    uint8_t               payload[SKY_CHUNKSET_MAX_BYTES];
    host_wire_t          *wire; /* responses on their way, oldest first */
    uint32_t              wire_count;
    uint32_t              random;
    uint32_t              sent[SATELLITES];
    SKY_Addr_t            homes[SATELLITES]; /* that the last PUT of chunk i, i + SATELLITES, ... named */
    bool                  is_silent[SATELLITES];
    SKY_Status_t          refusal[SATELLITES]; /* what it says instead of serving; OK: it serves */
    SKY_Addr_t            refused_by;          /* who says so; {0,0}: itself */
    uint32_t              refusals;            /* left */
    uint32_t              loss_percent;        /* packets that are lost, each way */
    uint64_t              loses_chunks;        /* of the first 64: the next one that comes is lost */
    uint64_t              luck;
    uint64_t              link_us; /* for which a response takes up its satellite's link */
    uint64_t              link_free_us[SATELLITES];
} host_rig_t;

static bool host_loses(host_rig_t *rig)
{
    rig->luck = rig->luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(rig->luck >> 33) % 100u < rig->loss_percent;
}

static bool host_loses_chunk(host_rig_t *rig, const uint8_t *bytes, uint32_t len)
{
    SKY_Packet_t pkt;

    CHECK_EQ(SKY_Packet_Decode(bytes, len, &pkt), SKY_STATUS_OK);
    const uint64_t bit = pkt.op == SKY_OP_GET && pkt.chunk_id < 64u ? UINT64_C(1) << pkt.chunk_id : 0u;
    const bool     is  = (rig->loses_chunks & bit) != 0u;

    rig->loses_chunks &= ~bit;
    return is;
}

static void host_respond(host_rig_t *rig, uint64_t endpoint, const uint8_t *bytes, uint32_t len)
{
    uint64_t *free_us = &rig->link_free_us[endpoint - ENDPOINT0];
    uint32_t  at      = rig->wire_count;

    if (host_loses(rig) || (rig->loses_chunks != 0u && host_loses_chunk(rig, bytes, len)))
    {
        return;
    }
    CHECK(rig->wire_count < WIRE_MAX && len <= sizeof(rig->wire->bytes));
    ++rig->wire_count;
    *free_us = (*free_us > rig->now_us ? *free_us : rig->now_us) + rig->link_us;
    for (; at > 0 && rig->wire[at - 1u].time_us > *free_us + RTT_US; --at)
    {
        rig->wire[at] = rig->wire[at - 1u];
    }
    rig->wire[at].time_us  = *free_us + RTT_US;
    rig->wire[at].endpoint = endpoint;
    rig->wire[at].len      = len;
    (void)memcpy(rig->wire[at].bytes, bytes, len);
}

/* A response of @p status to a request, by the satellite itself or by another one. */
static void host_refuse(host_rig_t *rig, uint32_t satellite, const SKY_Packet_t *request, SKY_Status_t status)
{
    SKY_Packet_t pkt = *request;
    uint8_t      bytes[1600];

    pkt.is_request = false;
    pkt.status     = status;
    pkt.src        = rig->refused_by.plane != 0 ? rig->refused_by : request->dst;
    pkt.dst        = request->src;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.payload    = NULL;
    pkt.length     = 0;
    pkt.offset     = 0;
    pkt.home       = (SKY_Addr_t){0, 0};
    pkt.credit     = 20;
    host_respond(rig, ENDPOINT0 + satellite, bytes, (uint32_t)SKY_Packet_Encode(&pkt, bytes, sizeof(bytes)));
}

static void host_send(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    host_rig_t    *rig       = context;
    const uint32_t satellite = (uint32_t)endpoint - ENDPOINT0;

    CHECK_EQ(now_us, rig->now_us);
    CHECK(satellite < SATELLITES);
    CHECK(key == NULL); /* this host has no keyring */
    CHECK(pkt->op == SKY_OP_PUT || (pkt->home.plane == 0u && pkt->home.slot == 0u));
    ++rig->sent[satellite];
    rig->homes[pkt->chunk_id % SATELLITES] = pkt->op == SKY_OP_PUT ? pkt->home : rig->homes[pkt->chunk_id % SATELLITES];
    if (rig->is_silent[satellite] || host_loses(rig))
    {
        return;
    }
    if (rig->refusal[satellite] != SKY_STATUS_OK && rig->refusals > 0)
    {
        --rig->refusals;
        host_refuse(rig, satellite, pkt, rig->refusal[satellite]);
        return;
    }
    rig->satellites[satellite].now_us = rig->now_us;
    rig_serve(&rig->satellites[satellite], pkt);
    for (uint32_t i = 0; i < rig->satellites[satellite].count; ++i)
    {
        host_respond(rig, endpoint, rig->satellites[satellite].out[i].bytes, rig->satellites[satellite].out[i].len);
    }
}

static uint8_t *host_payload(void *context)
{
    host_rig_t *rig = context;

    return rig->payload;
}

static bool host_random(void *context, uint8_t *bytes, size_t count)
{
    host_rig_t *rig = context;

    ++rig->random;
    CHECK_EQ(count, sizeof(rig->random)); /* without a keyring it draws numbers alone */
    (void)memcpy(bytes, &rig->random, count);
    return true;
}

typedef struct
{
    uint32_t peers, works, pieces, lanes;
    bool     keeps_number;
} host_sizes_t;

static void host_open(host_rig_t *rig, host_sizes_t sizes)
{
    const SKY_HostShell_t shell      = {rig, host_send, host_payload, host_random};
    const SKY_HostCfg_t   cfg        = {SKY_PeerCfg_OfHost(64, 20), 1472, 77, sizes.keeps_number, 0, false, {0}};
    rig_t                *satellites = rig->satellites;

    (void)memset(rig, 0, sizeof(*rig));
    rig->satellites         = satellites != NULL ? satellites : calloc(SATELLITES, sizeof(*satellites));
    rig->now_us             = 5000000;
    rig->wire               = calloc(WIRE_MAX, sizeof(*rig->wire));
    rig->peers.peer_count   = sizes.peers;
    rig->peers.peers        = calloc(sizes.peers, sizeof(*rig->peers.peers));
    rig->peers.active       = calloc(sizes.peers, sizeof(*rig->peers.active));
    rig->peers.ways         = calloc(sizes.peers, sizeof(*rig->peers.ways));
    rig->peers.index        = calloc(1, SKY_Index_MemoryBytes(sizes.peers));
    rig->blocks.work_count  = sizes.works;
    rig->blocks.piece_count = sizes.pieces;
    rig->blocks.lane_count  = sizes.lanes;
    rig->blocks.works       = calloc(sizes.works, sizeof(*rig->blocks.works));
    rig->blocks.pieces      = calloc(sizes.pieces, sizeof(*rig->blocks.pieces));
    rig->blocks.lanes       = calloc(sizes.lanes, sizeof(*rig->blocks.lanes));
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        rig_open(&rig->satellites[i], (SKY_Addr_t){1, (uint16_t)(i + 1)}, CHUNKS_MAX + 16u, 1472);
    }
    CHECK(SKY_Host_Init(&rig->host, &shell, &cfg, &rig->peers));
    CHECK(SKY_Host_Lend(&rig->host, &rig->blocks));
    SKY_Host_SetBudget(&rig->host, 4096);
}

static const host_sizes_t host_usual = {8, 16, 64, 64, true};

static void host_close(host_rig_t *rig)
{
    free(rig->wire);
    free(rig->peers.peers);
    free(rig->peers.active);
    free(rig->peers.ways);
    free(rig->peers.index);
    free(rig->blocks.works);
    free(rig->blocks.pieces);
    free(rig->blocks.lanes);
}

static SKY_HostPlace_t host_place(uint32_t satellite)
{
    const SKY_HostPlace_t place = {1, (uint16_t)(satellite + 1u), 1, (uint16_t)(satellite + 1u), ENDPOINT0 + satellite, 0, 0};

    return place;
}

/** Take in the oldest response, if it is due by then. */
static bool host_take(host_rig_t *rig, uint64_t until_us)
{
    static host_wire_t first;

    if (rig->wire_count == 0 || rig->wire[0].time_us > until_us)
    {
        return false;
    }
    first       = rig->wire[0];
    rig->now_us = first.time_us > rig->now_us ? first.time_us : rig->now_us;
    --rig->wire_count;
    (void)memmove(&rig->wire[0], &rig->wire[1], rig->wire_count * sizeof(rig->wire[0]));
    SKY_Host_Receive(&rig->host, rig->now_us, first.endpoint, first.bytes, first.len);
    return true;
}

/** Until no block runs any more. */
static void host_run(host_rig_t *rig)
{
    uint32_t steps = 0;

    while ((rig->host.running > 0 || rig->host.decoding != NULL) && steps < MOST_STEPS)
    {
        const uint64_t due_us = SKY_Host_Run(&rig->host, rig->now_us, true);

        ++steps;
        CHECK(due_us >= rig->now_us);
        if (rig->host.running > 0 && !host_take(rig, due_us))
        {
            CHECK(due_us != UINT64_MAX);
            rig->now_us = due_us;
        }
    }
    CHECK(steps < MOST_STEPS);
    rig->wire_count = 0;
}

/** A block of @p chunks, the last one byte long, over servers on satellites 0 .. @p servers - 1. */
static SKY_HostBlock_t host_block(uint32_t kind, uint32_t number, uint32_t chunks, const SKY_HostPlace_t *places,
                                  uint32_t servers, uint8_t *data)
{
    SKY_HostBlock_t block = {0};

    fx_key(block.key, number);
    block.kind               = kind;
    block.stripe.block_len   = (chunks - 1u) * CHUNK + 1u;
    block.stripe.chunk_len   = CHUNK;
    block.stripe.chunk_total = chunks;
    block.deadline_ms        = 5000;
    block.data               = data;
    block.servers            = places;
    block.server_count       = servers;
    return block;
}

#endif
