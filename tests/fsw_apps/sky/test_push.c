/* Pushing a share: what is sent, what an answer settles, and that it arrives over a bad network. */
#include "sky_transfer.h"

#include "lossy.h"

static const SKY_PeerCfg_t cfg =
    {.window_initial = 4, .window_max = 32, .burst = 3, .rto_initial_us = 1000, .rto_min_us = 100, .rto_max_us = 50000};

static SKY_Peer_t     peer;
static SKY_Push_t     push;
static uint16_t       asked_by[SKY_LIMIT_CHUNK_SET];
static SKY_ShareCfg_t share;
static SKY_Packet_t   pkt, answer;
static SKY_ChunkSet_t held;
static uint8_t        payload[SKY_CHUNKSET_MAX_BYTES], reply_payload[SKY_CHUNKSET_MAX_BYTES];
static uint8_t        block[600 * 1000];

static void start(uint32_t chunks)
{
    Lossy_Share(&share, chunks, 1000, 10, 1500);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    CHECK(SKY_Push_Init(&push, &share, &peer, asked_by));
}

static SKY_PushAction_t next(uint64_t now_us)
{
    return SKY_Push_Next(&push, now_us, 1, &pkt, payload);
}

static void answer_start(uint16_t number, uint8_t op, uint8_t status)
{
    SKY_ShareCfg_Request(&share, &peer, 0, op, number, &answer);
    answer.is_request = false;
    answer.status     = status;
    answer.credit     = 20;
}

/* An answer to query @p number that chunks base, base + 1, ... are held as the bits of @p map say. */
static void answer_held(uint64_t now_us, uint16_t number, uint32_t base, uint32_t count, uint32_t map)
{
    answer_start(number, SKY_OP_HAS, SKY_STATUS_OK);
    CHECK(SKY_ChunkSet_Init(&held, base, 1, count));
    for (uint32_t i = 0; i < count; ++i)
    {
        if ((map >> i & 1u) != 0)
        {
            SKY_ChunkSet_Add(&held, i);
        }
    }
    answer.chunk_id = base;
    answer.payload  = reply_payload;
    answer.length   = (uint32_t)SKY_ChunkSet_Encode(&held, reply_payload, sizeof(reply_payload));
    SKY_Push_OnPacket(&push, now_us, &answer);
}

static void Refused(void)
{
    start(5);
    share.count = 6;
    CHECK(!SKY_Push_Init(&push, &share, &peer, asked_by));
    CHECK_EQ(push.state, SKY_SHARE_REFUSED);
    CHECK_EQ(next(0), SKY_PUSH_NOTHING);
    CHECK_EQ(SKY_Push_OnTime(&push, 0), UINT64_MAX);
    share.count = 0;
    CHECK(!SKY_Push_Init(&push, &share, &peer, asked_by));
}

static void BurstThenQuery(void)
{
    start(5);
    CHECK_EQ(SKY_Push_Next(&push, 0, 0, &pkt, payload), SKY_PUSH_NOTHING);
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(10), SKY_PUSH_CHUNK);
        CHECK_EQ(pkt.op, SKY_OP_PUT);
        CHECK_EQ(pkt.chunk_id, i);
        CHECK_EQ(pkt.chunk_len, 1000);
    }
    CHECK_EQ(peer.outstanding, 3);
    CHECK_EQ(next(10), SKY_PUSH_QUERY);
    CHECK_EQ(pkt.op, SKY_OP_HAS);
    CHECK_EQ(pkt.request_id & 0xFFFFu, 1);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &held), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&held), 3);
    CHECK_EQ(next(10), SKY_PUSH_CHUNK); /* window 4 */
    CHECK_EQ(next(10), SKY_PUSH_QUERY); /* window full: ask at once */
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &held), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&held), 4);
    CHECK_EQ(next(10), SKY_PUSH_NOTHING);

    answer_held(310, 1, 0, 3, 7);
    CHECK_EQ(push.left, 2);
    CHECK_EQ(push.on_way, 1);
    CHECK_EQ(peer.outstanding, 1);
    CHECK_EQ(peer.srtt_us, 300);
    CHECK_EQ(peer.credit, 20);
    CHECK_EQ(next(310), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 4);
    CHECK_EQ(pkt.chunk_len, 10);
    CHECK_EQ(next(310), SKY_PUSH_QUERY);
    answer_held(320, 3, 3, 2, 3);
    CHECK_EQ(push.state, SKY_SHARE_DONE);
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(push.sent, 5);
    CHECK_EQ(push.repeats, 0);
    CHECK_EQ(push.queries, 3);
    CHECK_EQ(next(330), SKY_PUSH_NOTHING);
    answer_held(340, 3, 3, 2, 3); /* too late for anything */
}

/* Only a PUT names the home of a share. */
static void NamesTheHome(void)
{
    const SKY_Addr_t home = {2, 7};

    start(3);
    push.cfg.home = home;
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
        CHECK(SKY_Addr_Equal(pkt.home, home));
    }
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    CHECK(pkt.home.plane == 0u && pkt.home.slot == 0u);
}

static void AnswersToNothing(void)
{
    start(8);
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    }
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    answer_held(200, 2, 0, 3, 7); /* number 2 was never asked */
    CHECK_EQ(push.left, 8);
    CHECK_EQ(push.on_way, 3);
    CHECK_EQ(peer.srtt_us, 0);
    answer_held(200, 1, 0, 3, 7);
    CHECK_EQ(push.left, 5);
}

static void CountsSilence(void)
{
    uint64_t now_us = 0;

    start(8);
    CHECK_EQ(next(now_us), SKY_PUSH_CHUNK);
    while (next(now_us) != SKY_PUSH_QUERY)
    {
    }
    for (uint32_t i = 1; i < 4; ++i)
    {
        now_us = push.timer_us;
        (void)SKY_Push_OnTime(&push, now_us);
        CHECK_EQ(push.unanswered, i);
        CHECK_EQ(next(now_us), SKY_PUSH_QUERY);
    }
    answer_held(now_us, 1, 0, 1, 1);
    CHECK_EQ(push.unanswered, 0);
}

/* What the query has overtaken is doubted, asked for with the next one, and sent again only if it is not there then either. */
static void LostIsRepeated(void)
{
    start(8);
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    }
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK); /* chunk 3, after the query */
    answer_held(200, 1, 0, 3, 1);      /* chunks 1 and 2 are not there; nothing is said of chunk 3 */
    CHECK_EQ(push.left, 7);
    CHECK_EQ(push.on_way, 3);
    CHECK_EQ(push.doubted.count, 8);
    CHECK_EQ(SKY_ChunkSet_Size(&push.doubted), 2);
    CHECK_EQ(next(200), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 4); /* first what was never sent, in order */
    CHECK_EQ(next(200), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 5);
    CHECK_EQ(next(200), SKY_PUSH_QUERY); /* the window is full */
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &held), SKY_STATUS_OK);
    CHECK_EQ(held.base, 1);
    CHECK_EQ(SKY_ChunkSet_Size(&held), 5); /* the doubted with the others */
    CHECK_EQ(next(200), SKY_PUSH_NOTHING);
    answer_held(300, 1, 0, 3, 4); /* the first answer once more, now with one that came late */
    CHECK_EQ(push.left, 6);
    CHECK_EQ(push.on_way, 4);
    CHECK_EQ(push.repeats, 0);
    answer_held(400, 2, 1, 5, 4 | 8 | 16); /* 3, 4 and 5 are there, 1 still is not: lost */
    CHECK_EQ(push.left, 3);
    CHECK_EQ(push.on_way, 0);
    CHECK_EQ(push.timer_us, 0);
    CHECK(!push.query_owed);
    CHECK_EQ(next(400), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 6);
    CHECK_EQ(next(400), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 7);
    CHECK_EQ(next(400), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 1); /* round again */
    CHECK_EQ(push.repeats, 1);
    CHECK(!SKY_ChunkSet_Has(&push.doubted, 1)); /* it has another chance */
    CHECK_EQ(next(400), SKY_PUSH_QUERY);
    for (uint16_t number = 3; number < 5; ++number)
    {
        CHECK_EQ(push.on_way, 3);
        answer_start(number, SKY_OP_HAS, SKY_STATUS_NOT_FOUND); /* the block was evicted meanwhile */
        SKY_Push_OnPacket(&push, 500, &answer);
        CHECK_EQ(next(500), number == 3 ? SKY_PUSH_QUERY : SKY_PUSH_CHUNK); /* nothing else is to be sent: asked at once */
    }
    CHECK_EQ(push.left, 3);
    CHECK_EQ(push.on_way, 1);
}

/* More lost in a round trip than bad luck explains, and the answer has waited in a queue: the window halves. */
static void WindowHalves(void)
{
    start(8);
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    }
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    answer_held(200, 1, 0, 3, 0);
    CHECK_EQ(peer.window, 4);
    while (next(200) != SKY_PUSH_QUERY)
    {
    }
    answer_held(200 + 260, 2, 0, 3, 0);
    CHECK_EQ(peer.window, 2);
}

/* A chunk counted as lost, sent again, is found to be there by a late answer: nothing is left to ask for. */
static void LateAfterAll(void)
{
    start(4);
    peer.window = 2;
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    answer_held(100, 1, 0, 2, 0);
    CHECK_EQ(push.on_way, 2);
    CHECK_EQ(next(100), SKY_PUSH_QUERY);
    answer_held(200, 2, 0, 2, 0);
    CHECK_EQ(push.on_way, 0);
    CHECK_EQ(next(200), SKY_PUSH_CHUNK);
    CHECK_EQ(next(200), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 3);
    CHECK_EQ(push.since_query, 2);
    answer_held(210, 2, 0, 4, 13); /* 0, 2 and 3 are there after all */
    CHECK_EQ(push.left, 1);
    CHECK_EQ(push.on_way, 0);
    CHECK_EQ(push.since_query, 0);
    CHECK_EQ(next(220), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 1);
}

/* After silence what was asked for is doubted already; what was sent since the last query is not. */
static void SilenceDoubts(void)
{
    start(8);
    while (push.queries < 1)
    {
        (void)next(0);
    }
    CHECK_EQ(next(10), SKY_PUSH_CHUNK);
    (void)SKY_Push_OnTime(&push, push.timer_us);
    CHECK_EQ(SKY_ChunkSet_Size(&push.doubted), 3);
    CHECK_EQ(push.on_way, 4);
}

static void AnswersThatSayNothing(void)
{
    start(3);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    answer_start(0, SKY_OP_PUT, SKY_STATUS_OK);
    SKY_Push_OnPacket(&push, 10, &answer);
    answer_start(0, SKY_OP_HAS, SKY_STATUS_OK); /* without a chunk set */
    SKY_Push_OnPacket(&push, 10, &answer);
    answer_start(0, SKY_OP_HAS, SKY_STATUS_OK);
    answer.tenant = 8;
    SKY_Push_OnPacket(&push, 10, &answer);
    answer_start(0, SKY_OP_PUT, SKY_STATUS_BUSY);
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.last_status, SKY_STATUS_BUSY);
    CHECK_EQ(push.state, SKY_SHARE_RUNNING);
    CHECK_EQ(push.left, 3);
    CHECK_EQ(push.on_way, 1);
}

/* What is held under this name is not what was sent, in length or in number of chunks: no acknowledgement. */
static void HeldButAnother(void)
{
    start(3);
    answer_start(0, SKY_OP_HAS, SKY_STATUS_OK);
    answer.block_len -= 1;
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.state, SKY_SHARE_REFUSED);
    CHECK_EQ(push.last_status, SKY_STATUS_BAD_KEY);

    start(3);
    answer_start(0, SKY_OP_HAS, SKY_STATUS_OK);
    answer.chunk_total += 1;
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.state, SKY_SHARE_REFUSED);
    CHECK_EQ(push.last_status, SKY_STATUS_BAD_KEY);
}

/* The satellite holds this block in a newer version, or this version with another content. An older version is about to go. */
static void HeldInAnotherVersion(void)
{
    const struct
    {
        uint64_t     version;
        uint32_t     content;
        SKY_Status_t status;
    } held_there[] = {{8, 70, SKY_STATUS_OLD_VERSION},
                      {UINT64_MAX, 0, SKY_STATUS_OLD_VERSION},
                      {7, 71, SKY_STATUS_BAD_KEY},
                      {7, 0, SKY_STATUS_BAD_KEY}};

    for (size_t i = 0; i < sizeof(held_there) / sizeof(held_there[0]); ++i)
    {
        start(3);
        push.cfg.version = 7;
        push.cfg.content = 70;
        answer_start(0, SKY_OP_HAS, SKY_STATUS_OK);
        answer.block_version = held_there[i].version;
        answer.content       = held_there[i].content;
        SKY_Push_OnPacket(&push, 10, &answer);
        CHECK_EQ(push.state, SKY_SHARE_REFUSED);
        CHECK_EQ(push.last_status, held_there[i].status);
        CHECK_EQ(push.held_version, held_there[i].version);
    }
    start(3);
    push.cfg.version = 7;
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.block_version, 7);
    answer_start(0, SKY_OP_PUT, SKY_STATUS_OLD_VERSION);
    answer.block_version = 9;
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.state, SKY_SHARE_REFUSED);
    CHECK_EQ(push.last_status, SKY_STATUS_OLD_VERSION);
    CHECK_EQ(push.held_version, 9);

    start(3);
    push.cfg.version = 7;
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    }
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    answer_held(10, 1, 0, 3, 7); /* chunks of version 0 */
    CHECK_EQ(push.state, SKY_SHARE_RUNNING);
    CHECK_EQ(push.left, 3);
}

static void AnswersThatEndIt(void)
{
    start(3);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    answer_start(0, SKY_OP_PUT, SKY_STATUS_STORE_FULL);
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.state, SKY_SHARE_REFUSED);
    CHECK_EQ(push.last_status, SKY_STATUS_STORE_FULL);
    CHECK_EQ(peer.outstanding, 0);

    start(3);
    answer_start(0, SKY_OP_HAS, SKY_STATUS_EXPIRED);
    SKY_Push_OnPacket(&push, 10, &answer);
    CHECK_EQ(push.state, SKY_SHARE_REFUSED); /* only our own clock says that */

    start(3);
    SKY_Push_Stop(&push, SKY_SHARE_MISS);
    CHECK_EQ(push.state, SKY_SHARE_MISS);
    SKY_Push_Stop(&push, SKY_SHARE_EXPIRED);
    CHECK_EQ(push.state, SKY_SHARE_MISS);
}

static void Timers(void)
{
    start(3);
    push.cfg.deadline_us = 9000;
    CHECK_EQ(SKY_Push_OnTime(&push, 0), 9000);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    CHECK_EQ(SKY_Push_OnTime(&push, 999), 1000);
    CHECK_EQ(next(999), SKY_PUSH_NOTHING);
    CHECK_EQ(SKY_Push_OnTime(&push, 1000), 3000); /* twice the time */
    CHECK_EQ(next(1000), SKY_PUSH_QUERY);         /* asked before anything is sent again */
    CHECK_EQ(push.sent, 3);
    answer_held(1100, 1, 0, 3, 3); /* the answer to the first query was only slow; it is not timed */
    CHECK_EQ(peer.srtt_us, 0);
    CHECK_EQ(push.left, 1);
    CHECK_EQ(push.timed, 2);
    CHECK_EQ(next(1100), SKY_PUSH_NOTHING); /* chunk 2 belongs to the second query, and to be silent is not to be late */
    answer_held(1200, 2, 2, 1, 0);
    CHECK_EQ(peer.srtt_us, 200);
    push.cfg.deadline_us = 1700;
    CHECK_EQ(next(1200), SKY_PUSH_CHUNK);
    CHECK_EQ(next(1200), SKY_PUSH_QUERY);
    CHECK_EQ(SKY_Push_OnTime(&push, 1300), 1700);
    CHECK_EQ(SKY_Push_OnTime(&push, 1700), UINT64_MAX);
    CHECK_EQ(push.state, SKY_SHARE_EXPIRED);
    CHECK_EQ(peer.outstanding, 0);
}

/* The answer to the timed query was lost, a later one came: nothing is measured, and the next query is timed. */
static void TimedAnswerLost(void)
{
    start(8);
    while (push.queries < 2)
    {
        (void)next(0);
    }
    CHECK_EQ(push.timed, 1);
    answer_held(200, 2, 0, 4, 15);
    CHECK_EQ(push.timed, 0);
    CHECK_EQ(peer.srtt_us, 0);
}

static void CreditIsABurst(void)
{
    start(10);
    peer.credit = 2;
    for (int burst = 0; burst < 2; ++burst)
    {
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
        CHECK_EQ(next(0), SKY_PUSH_CHUNK);
        CHECK_EQ(next(0), SKY_PUSH_QUERY);
    }
    CHECK_EQ(next(0), SKY_PUSH_NOTHING);
}

static void Skipped(void)
{
    start(3);
    SKY_Push_Skip(&push, 3);
    SKY_Push_Skip(&push, 1);
    SKY_Push_Skip(&push, 1);
    CHECK_EQ(push.left, 2);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(pkt.chunk_id, 2);
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &held), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&held), 2);

    start(1);
    SKY_Push_Skip(&push, 0);
    CHECK_EQ(push.state, SKY_SHARE_DONE);
}

static void NumbersWrap(void)
{
    start(2);
    peer.window = 2;
    push.number = UINT16_MAX - 1;
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_CHUNK);
    CHECK_EQ(next(0), SKY_PUSH_QUERY);
    CHECK_EQ(push.number, UINT16_MAX);
    answer_held(10, UINT16_MAX, 0, 2, 0);
    CHECK_EQ(next(10), SKY_PUSH_QUERY);
    CHECK_EQ(push.number, 1); /* 0 means none */
    answer_held(20, 1, 0, 2, 0);
    CHECK_EQ(next(20), SKY_PUSH_CHUNK);
    CHECK_EQ(next(20), SKY_PUSH_CHUNK);
    CHECK_EQ(next(20), SKY_PUSH_QUERY);
    answer_held(30, 2, 0, 2, 3);
    CHECK_EQ(push.state, SKY_SHARE_DONE);
}

/* ---- over a bad network, against the real service ------------------------------------------------------------------ */

static void on_packet(uint64_t now_us, const SKY_Packet_t *response)
{
    SKY_Push_OnPacket(&push, now_us, response);
}

static void send_all(uint64_t now_us)
{
    SKY_PushAction_t action = next(now_us);

    while (action != SKY_PUSH_NOTHING)
    {
        if (action == SKY_PUSH_CHUNK)
        {
            const uint8_t *chunk = block + (size_t)pkt.chunk_id * share.stripe.chunk_len;

            pkt.chunk_crc = SKY_Crc32c(0, chunk, pkt.chunk_len);
            for (uint32_t at = 0; at < pkt.chunk_len;)
            {
                at = SKY_Packet_CutPart(&pkt, chunk, at, share.packet_bytes);
                Lossy_Send(now_us, &pkt);
            }
        }
        else
        {
            Lossy_Send(now_us, &pkt);
        }
        action = next(now_us);
    }
}

static void run(uint64_t seed, const LossyModel_t *model, uint32_t chunks, uint32_t packet_bytes)
{
    uint64_t now_us = 1;
    uint32_t steps  = 0;

    Lossy_Start(seed, model, packet_bytes, 20);
    Lossy_Share(&share, chunks, 1000, 10, packet_bytes);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    CHECK(SKY_Push_Init(&push, &share, &peer, asked_by));
    for (uint32_t i = 0; i < share.stripe.block_len; ++i)
    {
        block[i] = (uint8_t)Lossy_Random(256);
    }
    while (push.state == SKY_SHARE_RUNNING && ++steps < 200000)
    {
        send_all(now_us);
        const uint64_t arrives_us = Lossy_NextUs();
        const uint64_t due_us     = SKY_Push_OnTime(&push, now_us);

        now_us = arrives_us < due_us ? arrives_us : due_us;
        Lossy_Deliver(now_us, on_packet);
        (void)SKY_Push_OnTime(&push, now_us);
    }
    CHECK_EQ(push.state, SKY_SHARE_DONE);
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(lossy_crowded, 0);
    for (uint32_t id = 0; id < chunks; ++id)
    {
        SKY_ChunkView_t view;

        CHECK_EQ(SKY_Store_Get(&lossy_store, SKY_Store_Find(&lossy_store, share.tenant, share.key), id, &view), SKY_STATUS_OK);
        CHECK(memcmp(view.data, block + (size_t)id * 1000, view.len) == 0);
    }
}

static void CleanNetwork(void)
{
    const LossyModel_t clean = {.delay_us = 400};

    run(1, &clean, 300, 1500);
    CHECK_EQ(push.repeats, 0);
    CHECK_EQ(push.sent, 300);
    run(2, &clean, 1, 500);
}

/* Every packet may overtake any other of its burst: nothing is lost, and nothing is taken for lost. */
static void Disorder(void)
{
    const LossyModel_t jitter = {.delay_us = 400, .jitter_us = 90};

    for (uint64_t seed = 1; seed <= 10; ++seed)
    {
        run(seed, &jitter, 300, 1500);
        CHECK_EQ(push.repeats, 0);
        CHECK_EQ(peer.window, 32);
    }
}

static void BadNetwork(void)
{
    const LossyModel_t bad = {.loss = 50, .repeat = 20, .damage = 20, .delay_us = 500, .jitter_us = 700};

    for (uint64_t seed = 1; seed <= 30; ++seed)
    {
        run(seed, &bad, 100, 1500);
        run(seed, &bad, 60, 500); /* four parts a chunk */
    }
}

int main(void)
{
    RUN(Refused);
    RUN(BurstThenQuery);
    RUN(NamesTheHome);
    RUN(AnswersToNothing);
    RUN(CountsSilence);
    RUN(LostIsRepeated);
    RUN(WindowHalves);
    RUN(LateAfterAll);
    RUN(SilenceDoubts);
    RUN(AnswersThatSayNothing);
    RUN(HeldButAnother);
    RUN(HeldInAnotherVersion);
    RUN(AnswersThatEndIt);
    RUN(Timers);
    RUN(TimedAnswerLost);
    RUN(CreditIsABurst);
    RUN(Skipped);
    RUN(NumbersWrap);
    RUN(CleanNetwork);
    RUN(Disorder);
    RUN(BadNetwork);
    return CHECK_RESULT();
}
