/**
 * @file
 * A host whose blocks and questions an input begins. What it sends is checked and remembered, so that it can be answered.
 */
#ifndef TRANSFER_RIG_H
#define TRANSFER_RIG_H

#include "fuzz_input.h"

#include <stdbool.h>
#include <string.h>

#include "sky_code.h"
#include "sky_crc.h"
#include "sky_host.h"

#define PLACES       5u
#define PEERS        4u /* of which the host has memory: fewer than there are places */
#define BLOCKS       6u
#define WORKS        4u
#define PIECES       32u
#define LANES        6u
#define SERVERS_MAX  5u
#define CODE_K_MAX   3u
#define CODE_M_MAX   2u
#define ROUNDS_MAX   2u
#define CHUNKS_MAX   24u                                    /* of data */
#define TOTAL_MAX    (CHUNKS_MAX + CHUNKS_MAX * CODE_M_MAX) /* with parity */
#define QUESTIONS    4u
#define ASKED        2u /* at a time */
#define ROOM_BYTES   24u
#define ENDPOINT0    100u
#define PACKET_BYTES 700u
#define SENT_MAX     64u   /* requests that are remembered */
#define OUT_MAX      4096u /* packets that one call may send: a few times all chunks of all blocks, in parts */
#define STEPS_MAX    20000u
#define NOW_US       UINT64_C(1000000000)

typedef struct
{
    SKY_HostBlock_t block;
    SKY_HostPlace_t servers[SERVERS_MAX], fallbacks[SERVERS_MAX * ROUNDS_MAX];
    bool            is_used, has_ended;
    bool            is_denied; /* a satellite that was asked said that it does not hold it */
    bool            is_forged; /* a satellite that was asked sent something else, with the right checksum */
    bool            is_acked[TOTAL_MAX];
} transfer_t;

typedef struct
{
    uint64_t     endpoint;
    SKY_Packet_t pkt;
    uint8_t      payload[SKY_CHUNKSET_MAX_BYTES];
} sent_t;

typedef enum
{
    FROM_ASKED = 0,
    FROM_OTHER_ENDPOINT,
    FROM_OTHER_SATELLITE,
    DAMAGED
} way_t;

static SKY_Host_t         host;
static SKY_HostPeer_t     peers[PEERS];
static uint32_t           active[PEERS];
static SKY_HostWay_t      ways[PEERS];
static uint64_t           hashes[128];
static SKY_HostWork_t     works[WORKS];
static SKY_HostPiece_t    pieces[PIECES];
static SKY_HostLane_t     lanes[LANES];
static SKY_HostAsked_t    asked[ASKED];
static SKY_HostQuestion_t questions[QUESTIONS];
static transfer_t         transfers[BLOCKS];
static uint32_t           transfer_count, question_count;
static sent_t             sent[SENT_MAX];
static uint64_t           sent_count; /* the newest is sent[(sent_count - 1) % SENT_MAX] */
static uint32_t           out_count;
static uint32_t           draws;
static uint64_t           now_us, due_us;

/* Byte number @p i of a block: no part of one looks like another. */
static uint8_t pattern(const SKY_HostBlock_t *block, uint32_t i)
{
    return (uint8_t)((i + block->key[0] * 65537u + 1u) * 2654435761u >> 24);
}

/* Get what a chunk of a block should be. */
static void chunk_of(const SKY_HostBlock_t *block, uint32_t id, uint8_t *bytes)
{
    static uint8_t        data[1500];
    const SKY_StripeRow_t row  = SKY_Stripe_Row(&block->stripe, SKY_Stripe_RowOf(&block->stripe, id));
    const SKY_CodeRow_t   code = {(uint8_t)(block->stripe.code_k > 0 ? row.data : 1u), (uint8_t)row.parity};

    memset(bytes, 0, SKY_Stripe_ChunkBytes(&block->stripe, id));
    for (uint32_t j = 0; j < row.data; ++j)
    {
        const uint32_t from      = row.first + j;
        const uint32_t len       = SKY_Stripe_ChunkBytes(&block->stripe, from);
        const bool     is_parity = SKY_Stripe_IsParity(&block->stripe, id);

        if (from != id && !is_parity)
        {
            continue;
        }
        for (uint32_t b = 0; b < len; ++b)
        {
            data[b] = pattern(block, (uint32_t)SKY_Stripe_Offset(&block->stripe, from) + b);
        }
        SKY_Code_Add(bytes, data, len, is_parity ? SKY_Code_Coefficient(code, (uint8_t)(id - row.first), (uint8_t)j) : 1u);
    }
}

static uint32_t chunk_bytes(const SKY_HostBlock_t *block, uint32_t id)
{
    return SKY_Stripe_ChunkBytes(&block->stripe, id);
}

static transfer_t *transfer_of(const SKY_Packet_t *pkt)
{
    ENSURE(pkt->key[0] < transfer_count);
    return &transfers[pkt->key[0]];
}

/* ---- what the host needs of its shell ------------------------------------------------------------------------------------ */

static void check_chunk(const SKY_Packet_t *pkt)
{
    const SKY_HostBlock_t *block = &transfer_of(pkt)->block;
    static uint8_t         wanted[1500];

    ENSURE(pkt->chunk_id < block->stripe.chunk_total && pkt->chunk_len == chunk_bytes(block, pkt->chunk_id));
    const bool     is_parity = SKY_Stripe_IsParity(&block->stripe, pkt->chunk_id);
    const uint8_t *chunk     = (is_parity ? block->parity : block->data) + SKY_Stripe_Offset(&block->stripe, pkt->chunk_id);

    chunk_of(block, pkt->chunk_id, wanted);
    ENSURE(memcmp(chunk, wanted, pkt->chunk_len) == 0);
    ENSURE(pkt->payload == chunk + pkt->offset && pkt->offset + pkt->length <= pkt->chunk_len);
    ENSURE(pkt->chunk_crc == SKY_Crc32c(0, chunk, pkt->chunk_len));
}

static void on_send(void *context, uint64_t at_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    static uint8_t wire[PACKET_BYTES];
    sent_t        *one = &sent[sent_count % SENT_MAX];
    const size_t   len = SKY_Packet_Encode(pkt, wire, sizeof(wire));
    SKY_Packet_t   again;

    ENSURE(key == NULL && context == &host && at_us == now_us && endpoint >= ENDPOINT0 && endpoint < ENDPOINT0 + PLACES);
    ENSURE(len > 0 && SKY_Packet_Decode(wire, len, &again) == SKY_STATUS_OK);
    ENSURE(pkt->is_request && pkt->dst.plane == 1u && pkt->dst.slot == endpoint - ENDPOINT0 + 1u);
    ENSURE(++out_count <= OUT_MAX);
    if (pkt->op == SKY_OP_PUT)
    {
        check_chunk(pkt);
    }
    one->endpoint = endpoint;
    one->pkt      = *pkt;
    if (pkt->length <= sizeof(one->payload))
    {
        one->pkt.payload = one->payload;
        if (pkt->length > 0)
        {
            (void)memcpy(one->payload, pkt->payload, pkt->length);
        }
    }
    ++sent_count;
}

static uint8_t *on_payload(void *context)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];

    ENSURE(context == &host);
    return payload;
}

static bool on_random(void *context, uint8_t *bytes, size_t count)
{
    const uint32_t number = ++draws * 2654435761u;

    ENSURE(context == &host);
    ENSURE(count == sizeof(number));
    (void)memcpy(bytes, &number, count);
    return draws % 8u != 0; /* the system may have none */
}

/* ---- what the input begins ------------------------------------------------------------------------------------------------ */

static SKY_HostPlace_t place(uint32_t i)
{
    const SKY_HostPlace_t found = {1, (uint16_t)(i % PLACES + 1u), 1, (uint16_t)(i % PLACES + 1u), ENDPOINT0 + i % PLACES, 0, 0};

    return found;
}

static void begin(input_t *in)
{
    static const uint32_t chunk_lens[4] = {40, 200, 640, 1500}; /* the last two go in parts */
    transfer_t           *one           = &transfers[transfer_count];
    SKY_HostBlock_t      *block         = &one->block;
    const uint8_t         what          = take(in);
    const uint8_t         where         = take(in);
    const uint8_t         code          = take(in);

    if (transfer_count == BLOCKS)
    {
        return;
    }
    block->kind               = (what & 1u) != 0 ? SKY_HOST_PUT : SKY_HOST_GET;
    block->key[0]             = (uint8_t)transfer_count;
    block->stripe.chunk_len   = chunk_lens[what >> 1 & 3u];
    block->stripe.chunk_total = 1u + take(in) % CHUNKS_MAX;
    block->stripe.block_len =
        (block->stripe.chunk_total - 1u) * block->stripe.chunk_len + 1u + take(in) * 6u % block->stripe.chunk_len;
    if ((code & 0x80u) != 0)
    {
        ENSURE(SKY_Stripe_Cut(&block->stripe, block->stripe.block_len, block->stripe.chunk_len,
                              (uint8_t)(1u + (code & 0xFu) % CODE_K_MAX), (uint8_t)(1u + (code >> 4 & 1u))));
    }
    block->deadline_ms  = 1u + take(in) * 16u;
    block->server_count = block->stripe.code_k + block->stripe.code_m;
    block->server_count = block->server_count > 0 ? block->server_count : 1u + (what >> 3 & 3u) % SERVERS_MAX;
    block->rounds       = (what >> 5) % (ROUNDS_MAX + 1u);
    block->servers      = one->servers;
    block->fallbacks    = block->rounds > 0 ? one->fallbacks : NULL;
    block->served_room  = where >> 5; /* from none on */
    block->served       = block->served_room > 0 ? malloc(block->served_room * sizeof(*block->served)) : NULL;
    block->data         = malloc(block->stripe.block_len); /* heap blocks of their own: writing beyond is seen */
    block->have         = block->rounds > 0 || block->stripe.code_m > 0 ? malloc((block->stripe.chunk_total + 7u) / 8u) : NULL;
    block->parity       = block->stripe.code_m > 0 ? malloc((size_t)SKY_Stripe_ParityBytes(&block->stripe)) : NULL;
    block->rows         = block->stripe.code_m > 0 ? malloc(SKY_Stripe_Rows(&block->stripe) * sizeof(*block->rows)) : NULL;
    ENSURE(block->data != NULL && (block->rounds == 0 || block->have != NULL));
    ENSURE(block->stripe.code_m == 0 || (block->have != NULL && block->parity != NULL && block->rows != NULL));
    for (uint32_t i = 0; i < block->stripe.block_len; ++i)
    {
        block->data[i] = block->kind == SKY_HOST_PUT ? pattern(block, i) : 0;
    }
    for (uint32_t server = 0; server < block->server_count; ++server)
    {
        one->servers[server] = place(where + server);
        for (uint32_t round = 0; round < block->rounds; ++round)
        {
            SKY_HostPlace_t *fallback = &one->fallbacks[round * block->server_count + server];

            *fallback       = place((where >> 4) + server + round);
            fallback->plane = (where >> 3 & 1u) != 0 && round == 0 ? 0 : fallback->plane; /* nowhere */
        }
    }
    one->is_used = true;
    ++transfer_count;
    switch (SKY_Host_Begin(&host, now_us, block))
    {
        case SKY_HOST_BEGUN:
            break;
        case SKY_HOST_FULL:
            one->has_ended = true;
            break;
        default:
            ENSURE(false); /* its numbers agree */
    }
}

static void ask(input_t *in)
{
    static const uint8_t ops[4] = {SKY_OP_PING, SKY_OP_HAS, SKY_OP_STATS, SKY_OP_PURGE};
    SKY_HostQuestion_t  *one    = &questions[question_count];
    const uint8_t        what   = take(in);

    if (question_count == QUESTIONS)
    {
        return;
    }
    one->place       = place(what >> 2);
    one->apid        = SKY_APID_KVC;
    one->op          = ops[what & 3u];
    one->key[0]      = take(in);
    one->deadline_ms = 1u + take(in) * 16u;
    one->room_bytes  = (what >> 6) * (ROOM_BYTES / 3u);
    one->room        = one->room_bytes > 0 ? malloc(one->room_bytes) : NULL;
    ++question_count;
    ENSURE(SKY_Host_Ask(&host, now_us, one) == SKY_HOST_BEGUN);
}

#endif
