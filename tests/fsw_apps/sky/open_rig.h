/**
 * @file
 * A host with security under a small sky (open_sky.h). All nonces are collected, and all runs of the host are counted.
 */
#ifndef OPEN_RIG_H
#define OPEN_RIG_H

#include "open_sky.h"

/* ---- the host -------------------------------------------------------------------------------------------------------- */

static inline bool host_load_key(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    (void)memcpy(&net.prints[place], key, sizeof(net.prints[place]));
    return rig_load_key(context, place, suite, key);
}

/* A nonce must be new. */
static inline void note_nonce(uint64_t print, uint64_t sequence)
{
    uint64_t mixed = print + sequence * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at;

    mixed = mixed == 0 ? 1 : mixed;
    at    = (uint32_t)(mixed >> 20) & (NONCES - 1u);
    while (net.nonces[at] != 0 && net.nonces[at] != mixed)
    {
        at = (at + 1u) & (NONCES - 1u);
    }
    CHECK(net.nonces[at] == 0);
    net.nonces[at] = mixed;
    ++net.nonce_count;
    CHECK(net.nonce_count < NONCES / 2u);
}

static inline void host_send(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    static uint8_t bytes[1600];
    const uint32_t entry = (uint32_t)endpoint - ENDPOINT0;
    const uint32_t to    = index_of(pkt->dst);

    (void)context;
    CHECK_EQ(now_us, net.now_us);
    CHECK(entry < SATELLITES && to < SATELLITES);
    CHECK_EQ(index_of(pkt->gateway), entry);
    CHECK_EQ(net.mode == MODE_KEYED, pkt->security != SKY_SUITE_NONE); /* always, or never */
    CHECK_EQ(key != NULL, pkt->security != SKY_SUITE_NONE);
    if (pkt->security != SKY_SUITE_NONE && pkt->security != SKY_SUITE_HANDSHAKE)
    {
        note_nonce(net.prints[key->place], pkt->sequence);
    }
    if (pkt->op == SKY_OP_ASSOCIATE)
    {
        CHECK(net.mode != MODE_OFF);
        net.opened_us[to][net.openings[to] % 64u] = net.now_us;
        ++net.openings[to];
    }
    else
    {
        ++net.requests[to];
        net.puts[to] += pkt->op == SKY_OP_PUT ? 1u : 0u;
    }
    if (net.spy == NULL || net.spy(to, pkt))
    {
        fly(entry, HOST_ENDPOINT, bytes, bytes_of(pkt, key, bytes), GROUND_US);
    }
}

static inline uint8_t *host_payload(void *context)
{
    (void)context;
    return net.payload;
}

static inline bool host_random(void *context, uint8_t *bytes, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; ++i)
    {
        bytes[i] = net.no_random ? 0 : (uint8_t)(fx_random(&net.random) >> 56);
    }
    return !net.no_random;
}

static inline bool host_pair_key(void *context, SKY_Addr_t satellite, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    uint8_t      master[SKY_CRYPTO_KEY_BYTES];
    const sat_t *sat = &net.sats[index_of(satellite)];

    (void)context;
    if (net.no_key_for == sat->index + 1u)
    {
        return false;
    }
    (void)memset(master, (int)(sat->index + 1u), sizeof(master));
    master[0] = 9;
    SKY_Keys_Pair(&net.crypto.crypto, master, &net.host.cfg.security.credential, key);
    return true;
}

typedef struct
{
    uint32_t peers, lanes;
    uint8_t  wanted;
    bool     keeps_number;
} sizes_t;

static const sizes_t usual = {PEERS_MAX, 64, SKY_SUITE_BLAKE2B_HEADER, true};

static inline void host_begin(sizes_t sizes)
{
    const SKY_HostShell_t          shell  = {NULL, host_send, host_payload, host_random};
    const SKY_HostQuestionMemory_t asked  = {net.asked, QUESTIONS};
    SKY_HostCfg_t                  cfg    = {SKY_PeerCfg_OfHost(64, 20), 1472, NUMBER, sizes.keeps_number, 0, false, {0}};
    SKY_HostSecurity_t            *secure = &cfg.security;

    net.peers.peer_count   = sizes.peers;
    net.peers.peers        = calloc(sizes.peers, sizeof(*net.peers.peers));
    net.peers.active       = calloc(sizes.peers, sizeof(*net.peers.active));
    net.peers.ways         = calloc(sizes.peers, sizeof(*net.peers.ways));
    net.peers.index        = calloc(1, SKY_Index_MemoryBytes(sizes.peers));
    net.blocks.work_count  = 32;
    net.blocks.piece_count = 256;
    net.blocks.lane_count  = sizes.lanes;
    net.blocks.works       = calloc(net.blocks.work_count, sizeof(*net.blocks.works));
    net.blocks.pieces      = calloc(net.blocks.piece_count, sizeof(*net.blocks.pieces));
    net.blocks.lanes       = calloc(net.blocks.lane_count, sizeof(*net.blocks.lanes));
    secure->is_on          = net.mode != MODE_OFF;
    secure->is_keyed       = net.mode == MODE_KEYED;
    if (secure->is_keyed)
    {
        secure->wanted              = sizes.wanted;
        secure->accepted            = SKY_SUITES_BLAKE2B;
        secure->crypto              = &net.crypto.crypto;
        secure->PairKey             = host_pair_key;
        secure->credential.bytes[1] = 1;
        secure->credential.bytes[2] = SKY_CREDENTIAL_ANY_TENANT;
        secure->credential.bytes[4] = 'h';
    }
    CHECK(SKY_Host_Init(&net.host, &shell, &cfg, &net.peers));
    CHECK(SKY_Host_Lend(&net.host, &net.blocks));
    CHECK(SKY_Host_LendQuestions(&net.host, &asked));
    SKY_Host_SetBudget(&net.host, 4096);
}

static inline void net_close(void)
{
    for (uint32_t i = 0; net.sats != NULL && i < SATELLITES; ++i)
    {
        crypto_rig_close(&net.sats[i].crypto);
        free(net.sats[i].store_memory);
        free(net.sats[i].security_memory);
    }
    if (net.sats != NULL)
    {
        crypto_rig_close(&net.crypto);
    }
    free(net.sats);
    free(net.flying);
    free(net.nonces);
    free(net.peers.peers);
    free(net.peers.active);
    free(net.peers.ways);
    free(net.peers.index);
    free(net.blocks.works);
    free(net.blocks.pieces);
    free(net.blocks.lanes);
    (void)memset(&net, 0, sizeof(net));
}

/* A host of one mode under a sky of another. */
static inline void net_open(sky_mode_t host, sky_mode_t sky, sizes_t sizes)
{
    net_close();
    net.mode   = host;
    net.now_us = START_US;
    net.random = 4711;
    net.sats   = calloc(SATELLITES, sizeof(*net.sats));
    net.flying = calloc(FLYING_MAX, sizeof(*net.flying));
    net.nonces = calloc(NONCES, sizeof(*net.nonces));
    crypto_rig_open(&net.crypto);
    net.crypto.crypto.LoadKey = host_load_key;
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        sat_open(i);
        sat_boot(i, sky);
    }
    host_begin(sizes);
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

static inline uint32_t first_flying(void)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < net.flying_count; ++i)
    {
        const flying_t *one  = &net.flying[i];
        const flying_t *best = &net.flying[first];

        first = one->at_us < best->at_us || (one->at_us == best->at_us && one->order < best->order) ? i : first;
    }
    return first;
}

/* Let a packet arrive. @return true if it was for the host, and came in */
static inline bool deliver(uint32_t i)
{
    static flying_t one;

    one = net.flying[i];
    --net.flying_count;
    net.flying[i] = net.flying[net.flying_count];
    net.now_us    = one.at_us > net.now_us ? one.at_us : net.now_us;
    if (one.to != TO_HOST && !net.sats[one.to].is_deaf)
    {
        SKY_Node_Receive(&net.sats[one.to].node, net.now_us, one.bytes, one.len, one.from);
        SKY_Node_Run(&net.sats[one.to].node, net.now_us);
    }
    if (one.to != TO_HOST || (net.tap != NULL && !net.tap((uint32_t)one.from - ENDPOINT0, one.bytes, &one.len)))
    {
        return false;
    }
    SKY_Host_Receive(&net.host, net.now_us, one.from, one.bytes, one.len);
    return true;
}

static inline bool is_busy(void)
{
    return net.host.running > 0 || SKY_Host_Asking(&net.host) > 0;
}

/* Let the host run once, and time go on until it is due, something comes for it, or @p end_us. @param waits  also if all has ended */
static inline void net_step(uint64_t end_us, bool waits)
{
    const uint64_t due_us  = SKY_Host_Run(&net.host, net.now_us, true);
    const uint64_t next_us = due_us < end_us ? due_us : end_us;
    bool           came    = false;

    CHECK(due_us >= net.now_us);
    ++net.idle_runs;
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        if (SKY_Node_NextDue(&net.sats[i].node) <= net.now_us)
        {
            SKY_Node_Run(&net.sats[i].node, net.now_us);
        }
    }
    if (!waits && !is_busy())
    {
        return;
    }
    while (!came && net.flying_count > 0 && net.flying[first_flying()].at_us <= next_us)
    {
        came = deliver(first_flying());
    }
    net.idle_runs = came ? 0 : net.idle_runs;
    net.now_us    = came ? net.now_us : next_us;
}

/* Until all has ended, or until a time. */
static inline void net_run(uint64_t end_us)
{
    net.idle_runs = 0;
    while (is_busy() && net.now_us < end_us && net.idle_runs <= IDLE_RUNS_MAX)
    {
        net_step(end_us, false);
    }
    CHECK(net.idle_runs <= IDLE_RUNS_MAX); /* more are a busy loop */
}

/* Take all that has ended out of the host's lists, so that it may go. */
static inline void forget_ended(void)
{
    while (SKY_Host_NextEnded(&net.host) != NULL)
    {
    }
    while (SKY_Host_NextAnswered(&net.host) != NULL)
    {
    }
}

static inline void net_run_all(void)
{
    net_run(net.now_us + 1000u * SECOND_US);
    CHECK(!is_busy()); /* each block and each question ends */
    forget_ended();
}

static inline void net_wait(uint64_t us)
{
    const uint64_t end_us = net.now_us + us;

    net.idle_runs = 0;
    while (net.now_us < end_us)
    {
        net_step(end_us, true);
    }
    CHECK(net.idle_runs <= IDLE_RUNS_MAX);
}

/* ---- work ------------------------------------------------------------------------------------------------------------ */

/* Satellite @p i through satellite @p entry. */
static inline SKY_HostPlace_t place_of(uint32_t i, uint32_t entry)
{
    return (SKY_HostPlace_t){
        addr_of(i).plane, addr_of(i).slot, addr_of(entry).plane, addr_of(entry).slot, ENDPOINT0 + entry, 0, 0};
}

static inline void block_make(SKY_HostBlock_t *block, uint32_t kind, uint32_t number, uint32_t chunks,
                              const SKY_HostPlace_t *places, uint32_t servers, uint8_t *data)
{
    (void)memset(block, 0, sizeof(*block));
    fx_key(block->key, number);
    block->kind               = kind;
    block->stripe.block_len   = (chunks - 1u) * CHUNK + 1u;
    block->stripe.chunk_len   = CHUNK;
    block->stripe.chunk_total = chunks;
    block->deadline_ms        = 20000;
    block->data               = data;
    block->servers            = places;
    block->server_count       = servers;
}

static inline void data_fill(uint8_t *data, uint32_t number, uint32_t bytes)
{
    uint64_t state = 99u + number;

    for (uint32_t i = 0; i < bytes; ++i)
    {
        data[i] = (uint8_t)(fx_random(&state) >> 40);
    }
}

static inline void block_begin(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&net.host, net.now_us, block), SKY_HOST_BEGUN);
}

/* A PUT, then a GET of the same, with an end each. */
static inline void put_and_get(uint32_t number, uint32_t chunks, const SKY_HostPlace_t *places, uint32_t servers)
{
    static uint8_t  there[CHUNKS_MAX * CHUNK], back[CHUNKS_MAX * CHUNK];
    SKY_HostBlock_t block;

    data_fill(there, number, chunks * CHUNK);
    (void)memset(back, 0, sizeof(back));
    block_make(&block, SKY_HOST_PUT, number, chunks, places, servers, there);
    block_begin(&block);
    net_run_all();
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    block_make(&block, SKY_HOST_GET, number, chunks, places, servers, back);
    block_begin(&block);
    net_run_all();
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK(memcmp(there, back, block.stripe.block_len) == 0);
}

/* A PING, which the node itself answers. */
static inline SKY_HostQuestion_t ping(uint32_t i, uint32_t entry)
{
    SKY_HostQuestion_t one;

    (void)memset(&one, 0, sizeof(one));
    one.place       = place_of(i, entry);
    one.apid        = SKY_APID_ISL;
    one.op          = SKY_OP_PING;
    one.deadline_ms = 10000;
    return one;
}

static inline void ask(SKY_HostQuestion_t *one)
{
    CHECK_EQ(SKY_Host_Ask(&net.host, net.now_us, one), SKY_HOST_BEGUN);
}

/* Check that a question was done as the last one. */
static inline void check_answered(SKY_HostQuestion_t *one, SKY_Status_t status)
{
    CHECK_EQ(one->status, SKY_STATUS_DONE);
    CHECK_EQ(one->answer.status, status);
}

/* Ask one satellite, and wait for the end. */
static inline void ask_one(uint32_t i, uint32_t entry, SKY_Status_t status)
{
    SKY_HostQuestion_t one = ping(i, entry);

    ask(&one);
    net_run_all();
    check_answered(&one, status);
}

static inline SKY_HostPeer_t *peer_of(uint32_t i)
{
    for (uint32_t at = 0; at < net.host.peer_used; ++at)
    {
        if (SKY_Addr_Equal(net.peers.peers[at].peer.addr, addr_of(i)))
        {
            return &net.peers.peers[at];
        }
    }
    return NULL;
}

#endif
