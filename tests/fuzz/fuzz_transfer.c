/**
 * @file
 * Fuzz target: hostile answers into a host's transfers (GET, PUT) and questions, in the order and with the pauses that the input says.
 *
 * The input begins blocks and asks questions. What the host sends is remembered, and answered as an honest satellite would (otherwise
 * little but the first check would be reached), with, at will, one packet spoilt, sent by another satellite, through another endpoint
 * or damaged. At the end all is silent. Every block must then have an end, and that end must be one that answers gave reason for.
 */
#include "transfer_rig.h"

#include <stdbool.h>
#include <string.h>

#include "sky_crc.h"
#include "sky_host.h"

/* ---- what is answered ------------------------------------------------------------------------------------------------------ */

/* What an answer that the host has to believe gives reason for. */
static void note(const SKY_Packet_t *pkt)
{
    transfer_t    *one = transfer_of(pkt);
    SKY_ChunkSet_t held;

    one->is_denied = one->is_denied || pkt->status == SKY_STATUS_NOT_FOUND;
    if (pkt->status == SKY_STATUS_OK &&
        (pkt->block_len != one->block.stripe.block_len || pkt->chunk_total != one->block.stripe.chunk_total))
    {
        return; /* it is about another block */
    }
    if (pkt->op == SKY_OP_HAS && (pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND) &&
        SKY_ChunkSet_Decode(pkt, &held) == SKY_STATUS_OK)
    {
        for (uint32_t i = SKY_ChunkSet_Next(&held, 0); i < held.count; i = SKY_ChunkSet_Next(&held, i + 1))
        {
            const uint32_t id = SKY_ChunkSet_ChunkId(&held, i);

            if (id < TOTAL_MAX)
            {
                one->is_acked[id] = true;
            }
        }
    }
}

/* Most of it contradicts what was asked for. @return false: what comes is forged so well that it has to be believed */
static bool spoil(input_t *in, SKY_Packet_t *pkt)
{
    static uint8_t payload[PACKET_BYTES];

    switch (take(in) % 16u)
    {
        case 1:
            pkt->chunk_id = take32(in);
            return false;
        case 2:
            pkt->chunk_crc ^= take(in);
            break;
        case 3:
            pkt->chunk_total = take32(in);
            break;
        case 4:
            pkt->block_len = take32(in);
            break;
        case 5:
            pkt->chunk_len = take32(in);
            break;
        case 6:
            pkt->offset = take32(in);
            break;
        case 7:
            pkt->tenant = take(in);
            break;
        case 8:
            pkt->length = pkt->length > 0 ? take(in) % pkt->length : 0;
            break;
        case 9:
            pkt->op = take(in);
            break;
        case 10:
            pkt->status = take(in);
            break;
        case 11:
            pkt->credit = (uint16_t)take32(in);
            break;
        case 12:
            pkt->flags = take(in);
            break;
        case 13: /* another request of this lane, also one that was never sent */
            pkt->request_id = SKY_REQUEST_FIRST(pkt->request_id) | SKY_REQUEST_NUMBER(pkt->request_id + take(in) - 128u);
            break;
        case 14:
            pkt->dst.slot = take(in);
            break;
        case 15:
            pkt->is_request = true;
            break;
        default: /* a byte of the chunk, or of the set */
            if (pkt->length > 0)
            {
                (void)memcpy(payload, pkt->payload, pkt->length);
                payload[take(in) * 3u % pkt->length] ^= (uint8_t)(1u + take(in) % 255u);
                pkt->payload = payload;
            }
            break;
    }
    return true;
}

static void deliver(const sent_t *to, SKY_Packet_t *pkt, way_t way, uint8_t where)
{
    const SKY_HostCounters_t before   = host.counters;
    const uint32_t           running  = host.running;
    uint8_t                 *wire     = malloc(SKY_LIMIT_PACKET_BYTES + 1u);
    const bool               is_word  = pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND;
    uint64_t                 endpoint = to->endpoint;
    size_t                   len;
    uint8_t                 *exact;

    ENSURE(wire != NULL);
    if (way == FROM_OTHER_ENDPOINT)
    {
        endpoint = ENDPOINT0 + (endpoint - ENDPOINT0 + 1u + where % (PLACES - 1u)) % PLACES;
    }
    else if (way == FROM_OTHER_SATELLITE)
    {
        pkt->src.slot = (uint16_t)(pkt->src.slot + 1u + where);
    }
    len = SKY_Packet_Encode(pkt, wire, SKY_LIMIT_PACKET_BYTES);
    ENSURE(len > 0);
    if (way == DAMAGED)
    {
        wire[where * 3u % len] ^= (uint8_t)(1u << where % 8u);
    }
    exact = malloc(len + 1u); /* reading beyond is seen, and so is reading later; and at an odd address */
    ENSURE(exact != NULL);
    (void)memcpy(exact + 1, wire, len);
    free(wire);
    if (way == FROM_ASKED && !SKY_Host_IsQuestion(pkt->request_id))
    {
        note(pkt);
    }
    SKY_Host_Receive(&host, now_us, endpoint, exact + 1, len);
    free(exact);
    if (way == DAMAGED)
    {
        ENSURE(host.counters.undecoded == before.undecoded + 1u && host.running == running);
    }
    else if (way == FROM_OTHER_ENDPOINT || (way == FROM_OTHER_SATELLITE && is_word))
    {
        const uint64_t unheard = host.counters.undecoded + host.counters.stale;

        ENSURE(unheard == before.undecoded + before.stale + 1u && host.running == running);
    }
}

typedef struct
{
    const sent_t *to;
    uint32_t      spoilt; /* number of the packet that is spoilt, or takes another way */
    uint32_t      number;
    way_t         way;
    bool          is_spoilt;
} answer_t;

static void say(input_t *in, answer_t *answer, SKY_Packet_t pkt)
{
    const bool is_it = answer->number == answer->spoilt;

    ++answer->number;
    if (is_it && answer->is_spoilt && !spoil(in, &pkt) && !SKY_Host_IsQuestion(pkt.request_id))
    {
        transfer_of(&pkt)->is_forged = true;
    }
    deliver(answer->to, &pkt, is_it ? answer->way : FROM_ASKED, is_it && answer->way != FROM_ASKED ? take(in) : 0);
}

/* The chunks that a GET asks for, but for those that the input leaves out. */
static void say_chunks(input_t *in, answer_t *answer, SKY_Packet_t pkt, const SKY_ChunkSet_t *set, bool leaves_out)
{
    static uint8_t         chunk[1500];
    const SKY_HostBlock_t *block = &transfer_of(&pkt)->block;

    for (uint32_t i = SKY_ChunkSet_Next(set, 0); i < set->count; i = SKY_ChunkSet_Next(set, i + 1))
    {
        const bool is_last = SKY_ChunkSet_Next(set, i + 1) == set->count;
        uint32_t   at      = 0;

        if (leaves_out && (take(in) & 1u) != 0)
        {
            continue;
        }
        pkt.chunk_id    = SKY_ChunkSet_ChunkId(set, i);
        pkt.chunk_total = block->stripe.chunk_total;
        pkt.block_len   = block->stripe.block_len;
        pkt.chunk_len   = chunk_bytes(block, pkt.chunk_id);
        pkt.code_k      = block->stripe.code_k;
        pkt.code_m      = block->stripe.code_m;
        pkt.code_scheme = block->stripe.code_k > 0 ? SKY_CODE_CAUCHY : SKY_CODE_NONE;
        chunk_of(block, pkt.chunk_id, chunk);
        pkt.chunk_crc = SKY_Crc32c(0, chunk, pkt.chunk_len);
        do
        {
            at        = SKY_Packet_CutPart(&pkt, chunk, at, PACKET_BYTES);
            pkt.flags = is_last && at >= pkt.chunk_len ? SKY_FLAG_LAST : 0;
            say(in, answer, pkt);
        } while (at < pkt.chunk_len);
    }
}

/* A set of chunks: of those that are asked for, those that the input does not leave out. */
static void say_set(input_t *in, answer_t *answer, SKY_Packet_t pkt, SKY_ChunkSet_t set, bool leaves_out)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];

    for (uint32_t i = 0; i < set.count && leaves_out; ++i)
    {
        if ((take(in) & 1u) != 0)
        {
            SKY_ChunkSet_Remove(&set, i);
        }
    }
    SKY_Stripe_ToPacket(&transfer_of(&pkt)->block.stripe, &pkt);
    pkt.flags   = SKY_FLAG_LAST;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    pkt.payload = payload;
    say(in, answer, pkt);
}

static void reply(input_t *in)
{
    static uint8_t payload[ROOM_BYTES * 2u];
    const uint8_t  how    = take(in);
    const uint8_t  which  = take(in);
    const sent_t  *to     = &sent[(sent_count - 1u - which % (sent_count < SENT_MAX ? sent_count : SENT_MAX)) % SENT_MAX];
    answer_t       answer = {.to = to, .spoilt = UINT32_MAX};
    SKY_Packet_t   pkt;
    SKY_ChunkSet_t set;
    const uint8_t  status = (how & 3u) == 1u ? SKY_STATUS_NOT_FOUND : (how & 3u) == 2u ? take(in) : SKY_STATUS_OK;

    SKY_Packet_Reply(&to->pkt, to->pkt.dst, status, &pkt);
    pkt.credit = 8;
    if ((how & 4u) != 0)
    {
        answer.spoilt    = take(in) % 8u;
        answer.is_spoilt = (how & 8u) != 0;
        answer.way       = (way_t)(how >> 4 & 3u);
    }
    if (SKY_Host_IsQuestion(pkt.request_id))
    {
        pkt.length  = how >> 2 & (sizeof(payload) - 1u);
        pkt.payload = payload;
        say(in, &answer, pkt);
    }
    else if ((how & 3u) == 2u || to->pkt.op == SKY_OP_PUT || SKY_ChunkSet_Decode(&to->pkt, &set) != SKY_STATUS_OK)
    {
        say(in, &answer, pkt);
    }
    else if (to->pkt.op == SKY_OP_GET && status == SKY_STATUS_OK)
    {
        say_chunks(in, &answer, pkt, &set, (how & 128u) != 0);
    }
    else
    {
        say_set(in, &answer, pkt, set, (how & 128u) != 0);
    }
}

/* ---- what must hold -------------------------------------------------------------------------------------------------------- */

/* What is told of satellites: each at most once, and no more than there is. */
static void check_served(const SKY_HostBlock_t *block)
{
    uint64_t chunks = 0;

    ENSURE(block->served_count <= block->served_room);
    for (uint32_t i = 0; i < block->served_count; ++i)
    {
        const SKY_HostServed_t *one = &block->served[i];

        ENSURE((one->first_us == 0) == (one->last_us == 0) && one->first_us <= one->last_us && one->last_us <= now_us);
        chunks += one->chunks;
        for (uint32_t before = 0; before < i; ++before)
        {
            ENSURE(one->plane != block->served[before].plane || one->slot != block->served[before].slot);
        }
    }
    ENSURE(block->stripe.code_m > 0 || chunks <= block->stripe.chunk_total);
}

static void check_ended(SKY_HostBlock_t *block)
{
    transfer_t *one = &transfers[block->key[0]];

    ENSURE(block == &one->block && !one->has_ended);
    one->has_ended = true;
    ENSURE(block->status < SKY_STATUS_COUNT || block->status == SKY_STATUS_DONE || block->status == SKY_STATUS_MISS ||
           block->status == SKY_STATUS_CANCELLED);
    ENSURE(block->status != SKY_STATUS_OK);
    ENSURE(block->status != SKY_STATUS_MISS || one->is_denied);
    check_served(block);
    ENSURE(block->chunks <= block->stripe.chunk_total);
    ENSURE(block->bytes <= block->stripe.block_len + SKY_Stripe_ParityBytes(&block->stripe));
    if (block->status != SKY_STATUS_DONE)
    {
        return;
    }
    ENSURE(block->stripe.code_m > 0 || (block->chunks == block->stripe.chunk_total && block->bytes == block->stripe.block_len));
    for (uint32_t r = 0; r < SKY_Stripe_Rows(&block->stripe) && block->kind == SKY_HOST_PUT; ++r)
    {
        const SKY_StripeRow_t row   = SKY_Stripe_Row(&block->stripe, r);
        uint32_t              acked = 0;

        for (uint32_t id = row.first; id < row.first + row.data + row.parity; ++id)
        {
            acked += one->is_acked[id] ? 1u : 0u;
        }
        ENSURE(acked >= row.data);
    }
    for (uint32_t i = 0; i < block->stripe.block_len && !one->is_forged; ++i)
    {
        ENSURE(block->data[i] == pattern(block, i));
    }
}

static void check(void)
{
    SKY_HostBlock_t    *block;
    SKY_HostQuestion_t *question;

    while ((block = SKY_Host_NextEnded(&host)) != NULL)
    {
        check_ended(block);
    }
    while ((question = SKY_Host_NextAnswered(&host)) != NULL)
    {
        ENSURE(question->status == SKY_STATUS_DONE || question->status == SKY_STATUS_EXPIRED ||
               question->status == SKY_STATUS_CANCELLED || question->status == SKY_STATUS_TOO_LARGE);
        ENSURE(question->answer.payload == NULL || question->answer.payload == question->room);
    }
    for (uint32_t i = 0; i < host.peer_used; ++i)
    {
        ENSURE(peers[i].peer.window >= 1u && peers[i].peer.window <= peers[i].peer.cfg.window_max);
        ENSURE(peers[i].peer.rto_us >= 1u && peers[i].peer.rto_us <= peers[i].peer.cfg.rto_max_us);
    }
}

static void run(bool timers)
{
    out_count = 0;
    due_us    = SKY_Host_Run(&host, now_us, timers);
    ENSURE(due_us >= now_us);
    check();
}

/* Nobody says anything any more: all ends, and leaves nothing behind. */
static void fall_silent(void)
{
    for (uint32_t steps = 0; host.running > 0 || host.decoding != NULL || SKY_Host_Asking(&host) > 0; ++steps)
    {
        ENSURE(steps < STEPS_MAX);
        run(true);
        now_us = due_us != UINT64_MAX ? due_us : now_us;
    }
    run(true);
    ENSURE(host.active_count == 0 && host.piece_free_count == PIECES);
    for (uint32_t i = 0; i < host.peer_used; ++i)
    {
        ENSURE(peers[i].peer.outstanding == 0 && peers[i].lanes_busy == 0);
    }
    for (uint32_t i = 0; i < transfer_count; ++i)
    {
        const SKY_HostBlock_t *block = &transfers[i].block;

        ENSURE(transfers[i].has_ended);
        for (uint32_t b = 0; b < block->stripe.block_len && block->kind == SKY_HOST_PUT; ++b)
        {
            ENSURE(block->data[b] == pattern(block, b)); /* nothing writes into what is put */
        }
        free(block->data);
        free(block->have);
        free(block->parity);
        free(block->served);
        free(block->rows);
    }
    for (uint32_t i = 0; i < question_count; ++i)
    {
        ENSURE(questions[i].status != SKY_STATUS_RUNNING);
        free(questions[i].room);
    }
}

static void step(input_t *in)
{
    const uint8_t control = take(in);

    switch (control & 7u)
    {
        case 0: /* also at the end of the input */
            now_us += (uint64_t)take(in) * 1000u;
            run(true);
            break;
        case 1:
            begin(in);
            run((control & 8u) != 0);
            break;
        case 2:
            now_us = due_us != UINT64_MAX ? due_us : now_us;
            run(true);
            break;
        case 3:
            ask(in);
            run(true);
            break;
        case 4:
            if ((control & 0xC0u) == 0xC0u && sent_count > 0)
            {
                SKY_Host_RefuseTooLarge(&host, now_us, sent[(sent_count - 1u) % SENT_MAX].pkt.request_id);
            }
            else if ((control & 0xC0u) == 0x80u)
            {
                SKY_Host_Stop(&host, now_us, transfer_count > 0 ? &transfers[take(in) % transfer_count].block : NULL,
                              SKY_STATUS_CANCELLED);
            }
            run(true);
            break;
        default:
            if (sent_count > 0)
            {
                reply(in);
            }
            if ((control & 8u) == 0)
            {
                run((control & 16u) == 0);
            }
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t                        in     = {data, size};
    const uint8_t                  setup  = take(&in);
    const SKY_HostShell_t          shell  = {&host, on_send, on_payload, on_random};
    const SKY_HostCfg_t            cfg    = {SKY_PeerCfg_OfHost(16, 4), PACKET_BYTES,         77, (setup & 1u) != 0,
                                             setup >> 1 & 31u,          (setup & 0x80u) != 0, {0}};
    const SKY_HostPeerMemory_t     memory = {peers, active, ways, hashes, PEERS};
    const SKY_HostBlockMemory_t    blocks = {works, pieces, lanes, WORKS, PIECES, LANES, 0};
    const SKY_HostQuestionMemory_t rooms  = {asked, ASKED};

    ENSURE(SKY_Index_MemoryBytes(PEERS) <= sizeof(hashes));
    (void)memset(peers, 0, sizeof(peers));
    (void)memset(active, 0, sizeof(active));
    (void)memset(ways, 0, sizeof(ways));
    (void)memset(hashes, 0, sizeof(hashes));
    (void)memset(transfers, 0, sizeof(transfers));
    (void)memset(questions, 0, sizeof(questions));
    now_us         = NOW_US;
    due_us         = NOW_US;
    transfer_count = 0;
    question_count = 0;
    sent_count     = 0;
    draws          = setup;
    ENSURE(SKY_Host_Init(&host, &shell, &cfg, &memory));
    ENSURE(SKY_Host_Lend(&host, &blocks) && SKY_Host_LendQuestions(&host, &rooms));
    SKY_Host_SetBudget(&host, (setup & 64u) != 0 ? 4096u : 3u);
    while (in.left > 0)
    {
        step(&in);
    }
    fall_silent();
    return 0;
}
