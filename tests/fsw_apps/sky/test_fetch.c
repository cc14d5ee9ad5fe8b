/* Fetching a share: what is asked for, and what an answer means. */
#include "fetch_rig.h"

static SKY_Packet_t   answer;
static SKY_ChunkSet_t set;
static uint8_t        reply_payload[SKY_CHUNKSET_MAX_BYTES];

static void answer_start(uint16_t number, uint8_t status)
{
    SKY_ShareCfg_Request(&share, &peer, 0, SKY_OP_GET, number, &answer);
    answer.is_request = false;
    answer.status     = status;
}

static void answer_chunk(uint16_t number, uint32_t id, bool last)
{
    answer_start(number, SKY_STATUS_OK);
    answer.chunk_id  = id;
    answer.chunk_len = SKY_Stripe_ChunkBytes(&share.stripe, id);
    answer.payload   = source + (size_t)id * share.stripe.chunk_len;
    answer.length    = answer.chunk_len;
    answer.chunk_crc = SKY_Crc32c(0, answer.payload, answer.length);
    answer.flags     = last ? SKY_FLAG_LAST : 0;
}

static void data(uint64_t now_us, uint16_t number, uint32_t id, bool last)
{
    answer_chunk(number, id, last);
    SKY_Fetch_OnPacket(&fetch, now_us, &answer);
}

static void part(uint16_t number, uint32_t id, uint32_t offset, uint32_t length)
{
    answer_chunk(number, id, false);
    answer.offset = offset;
    answer.length = length;
    answer.payload += offset;
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
}

static uint32_t asked(void)
{
    CHECK_EQ(SKY_ChunkSet_Decode(&req, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), req.credit);
    return req.credit;
}

static void Refused(void)
{
    start(5);
    share.count = 6;
    CHECK(!SKY_Fetch_Init(&fetch, &share, &peer, block, NULL));
    CHECK_EQ(fetch.state, SKY_SHARE_REFUSED);
    CHECK(!next(0));
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 0), UINT64_MAX);
    answer_start(1, SKY_STATUS_OK);
    SKY_Fetch_OnPacket(&fetch, 0, &answer);
}

static void WindowAndBurst(void)
{
    start(20);
    CHECK(next(0));
    CHECK_EQ(req.op, SKY_OP_GET);
    CHECK_EQ(asked(), 4);
    CHECK_EQ(req.chunk_id, 0);
    CHECK_EQ(peer.outstanding, 4);
    CHECK(!next(0)); /* window full */
    data(500, 1, 0, false);
    CHECK_EQ(peer.srtt_us, 500);
    CHECK_EQ(peer.window, 5);
    CHECK(next(500)); /* half a burst is worth a request */
    CHECK_EQ(asked(), 2);
    CHECK_EQ(req.chunk_id, 4);
    CHECK(!SKY_Fetch_Next(&fetch, 500, 0, &req, payload));
    data(510, 1, 1, false);
    data(510, 1, 2, false);
    CHECK(!SKY_Fetch_Next(&fetch, 510, 1, &req, payload)); /* the host has room for one: not worth a request either */
    CHECK(SKY_Fetch_Next(&fetch, 510, 3, &req, payload));
    CHECK_EQ(asked(), 3); /* what the host can take in */
    peer.outstanding = peer.window - 1;
    CHECK(!next(510)); /* one chunk is not worth a request while others come */
    peer.outstanding = peer.window + 1;
    CHECK(!next(510));
    start(20);
    CHECK(SKY_Fetch_Next(&fetch, 510, 1, &req, payload)); /* nothing is coming: one is better than none */
    CHECK_EQ(asked(), 1);
}

static void WholeShare(void)
{
    start(5);
    share.deadline_us = 0;
    CHECK(next(0));
    for (uint32_t id = 0; id < 4; ++id)
    {
        data(100 + id, 1, id, id == 3);
    }
    CHECK_EQ(fetch.timer_us, 0);
    CHECK(next(110));
    CHECK_EQ(asked(), 1);
    data(120, 2, 4, true);
    CHECK_EQ(fetch.state, SKY_SHARE_DONE);
    CHECK_EQ(peer.outstanding, 0);
    CHECK(memcmp(block, source, share.stripe.block_len) == 0);
    CHECK_EQ(block[share.stripe.block_len], 0); /* not one byte further */
    CHECK_EQ(fetch.repeats + fetch.duplicates + fetch.corrupt, 0);
    CHECK_EQ(fetch.requests, 2);
}

static void StridedRepeat(void)
{
    start(20);
    share.base   = 1;
    share.stride = 3;
    share.count  = 6;
    CHECK(SKY_Fetch_Init(&fetch, &share, &peer, block, NULL));
    CHECK(next(0));
    CHECK_EQ(req.chunk_id, 1);
    data(10, 1, 1, false);
    data(10, 1, 10, true); /* 4 and 7 are not here */
    CHECK_EQ(fetch.gap_us, 10 + 5);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 14), 15);
    data(14, 1, 4, false); /* that one was only late */
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 15), fetch.timer_us == 0 ? UINT64_MAX : fetch.timer_us);
    CHECK_EQ(fetch.on_way, 0);
    CHECK_EQ(fetch.gap_us, 0);
    CHECK(next(20));
    CHECK_EQ(req.chunk_id, 7);
    CHECK_EQ(fetch.repeats, 1);
    CHECK_EQ(asked(), 3);
    data(30, 1, 7, false); /* of the first request, later still: taken all the same */
    CHECK_EQ(fetch.left, 2);
}

static void GivenUpTooEarly(void)
{
    start(20);
    CHECK(next(0));
    data(10, 1, 3, true);
    (void)SKY_Fetch_OnTime(&fetch, 15);
    CHECK_EQ(peer.outstanding, 0);
    data(16, 1, 0, false);
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(fetch.left, 18);
    CHECK_EQ(peer.grace_quarters, 2); /* it was not waited for long enough */
    data(30, 1, 0, false);
    CHECK_EQ(fetch.duplicates, 1);
    CHECK_EQ(peer.grace_quarters, 3);
}

/* A later burst tells that an earlier one is over, even if its last packet was lost. */
static void NextBurstTells(void)
{
    start(40);
    peer.window = 12;
    CHECK(next(0));
    CHECK(next(0));
    CHECK(next(0));
    data(10, 1, 0, false);
    data(10, 1, 1, false);
    data(10, 1, 2, false); /* 3, the last of the burst, does not come */
    CHECK_EQ(fetch.gap_us, 0);
    data(11, 2, 4, false);
    CHECK_EQ(fetch.over, 1);
    CHECK_EQ(fetch.gap_us, 11 + 5);
    data(12, 2, 7, true); /* on a link with jitter bursts mix: the grace for chunk 3 goes on; that for 5 and 6 comes after it */
    CHECK_EQ(fetch.over, 2);
    data(12, 2, 7, true); /* once more says nothing new */
    CHECK_EQ(fetch.gap_us, 11 + 5);
    (void)SKY_Fetch_OnTime(&fetch, 16);
    CHECK(SKY_ChunkSet_Has(&fetch.todo, 3));
    CHECK(!SKY_ChunkSet_Has(&fetch.todo, 5));
    CHECK_EQ(fetch.gap_us, 16 + 5);
    CHECK_EQ(peer.window, 17); /* one chunk lost is bad luck: grown, not halved */
    data(13, 9, 8, true);      /* of a request that we never made: taken, but no sign of anything */
    CHECK_EQ(fetch.over, 2);
}

/* A satellite with less credit than was asked for: what it did not send is not lost. */
static void UnsentIsNotLost(void)
{
    start(20);
    CHECK(next(0));
    data(10, 1, 0, false);
    data(10, 1, 1, true);
    CHECK_EQ(fetch.on_way, 0);
    CHECK_EQ(fetch.timer_us, 0);
    CHECK_EQ(fetch.gap_us, 0);
    CHECK_EQ(peer.window, 6); /* grown, not halved */
    CHECK(next(11));
    CHECK_EQ(req.chunk_id, 2);
}

/* A satellite that repeats one chunk as the last of every burst: what it keeps back is waited for, not asked for again at once. */
static void LastAgainAndAgain(void)
{
    start(20);
    CHECK(next(0));
    data(10, 1, 0, true);
    CHECK_EQ(fetch.on_way, 0); /* the first time this tells that no more was sent */
    CHECK(next(10));
    data(20, 2, 0, true);
    CHECK_EQ(fetch.duplicates, 1);
    CHECK(fetch.on_way > 0);
    CHECK(fetch.timer_us != 0);
    CHECK(!next(20));
}

static void Corrupt(void)
{
    start(5);
    CHECK(next(0));
    answer_chunk(1, 0, false);
    answer.chunk_crc ^= 1;
    SKY_Fetch_OnPacket(&fetch, 5, &answer);
    answer_chunk(1, 1, false);
    answer.length = 0;
    SKY_Fetch_OnPacket(&fetch, 5, &answer);
    answer_chunk(1, 1, false);
    answer.chunk_id = 5;
    SKY_Fetch_OnPacket(&fetch, 5, &answer);
    CHECK_EQ(fetch.corrupt, 3);
    CHECK_EQ(fetch.left, 5);
    CHECK_EQ(block[0], 0);
    answer_chunk(1, 1, false);
    answer.op = SKY_OP_PUT;
    SKY_Fetch_OnPacket(&fetch, 5, &answer);
    answer_chunk(1, 1, false);
    answer.key[3] = 1;
    SKY_Fetch_OnPacket(&fetch, 5, &answer);
    CHECK_EQ(fetch.left, 5);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
}

static void AnotherBlock(void)
{
    for (int field = 0; field < 7; ++field)
    {
        start(5);
        fetch.cfg.version = 7;
        fetch.cfg.content = 70;
        CHECK(next(0));
        CHECK_EQ(req.block_version, 7);
        CHECK_EQ(req.content, 70);
        answer_chunk(1, 0, false);
        answer.chunk_total += field == 0;
        answer.block_len += field == 1;
        answer.chunk_len += field == 2;
        answer.length += field == 2;
        answer.code_scheme   = field == 6 ? SKY_CODE_CAUCHY : SKY_CODE_NONE;
        answer.block_version = field == 3 ? 6 : field == 4 ? 8 : 7;
        answer.content       = field == 5 ? 71 : 70;
        SKY_Fetch_OnPacket(&fetch, 5, &answer);
        CHECK_EQ(fetch.state, SKY_SHARE_MISS);
        CHECK_EQ(fetch.last_status, SKY_STATUS_BAD_KEY);
        CHECK_EQ(peer.outstanding, 0);
    }
}

/* A satellite denies chunks, as it holds another version or content. Only an older version can just be late. */
static void DeniedForAnotherVersion(void)
{
    const struct
    {
        uint64_t version;
        uint32_t content;
        bool     is_late;
    } held_there[] = {{8, 70, false}, {7, 71, false}, {6, 71, true}, {7, 70, true}, {0, 0, true}, {7, 0, true}};

    for (size_t i = 0; i < sizeof(held_there) / sizeof(held_there[0]); ++i)
    {
        start(5);
        fetch.cfg.version = 7;
        fetch.cfg.content = 70;
        SKY_Fetch_Collect(&fetch);
        CHECK(next(0));
        answer_start(1, SKY_STATUS_NOT_FOUND);
        CHECK(SKY_ChunkSet_Init(&set, 0, 1, 1));
        SKY_ChunkSet_Add(&set, 0);
        answer.chunk_id      = 0;
        answer.payload       = reply_payload;
        answer.length        = (uint32_t)SKY_ChunkSet_Encode(&set, reply_payload, sizeof(reply_payload));
        answer.block_version = held_there[i].version;
        answer.content       = held_there[i].content;
        SKY_Fetch_OnPacket(&fetch, 5, &answer);
        CHECK_EQ(fetch.state, held_there[i].is_late ? SKY_SHARE_RUNNING : SKY_SHARE_MISS);
        CHECK_EQ(fetch.last_status, held_there[i].is_late ? SKY_STATUS_NOT_FOUND : SKY_STATUS_BAD_KEY);
        CHECK_EQ(fetch.denials, held_there[i].is_late ? 1 : 0);
    }
}

static void answer_denial(uint32_t base, uint32_t count)
{
    answer_start(1, SKY_STATUS_NOT_FOUND);
    CHECK(SKY_ChunkSet_Init(&set, base, 1, count));
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_ChunkSet_Add(&set, i);
    }
    answer.chunk_id = base;
    answer.payload  = reply_payload;
    answer.length   = (uint32_t)SKY_ChunkSet_Encode(&set, reply_payload, sizeof(reply_payload));
}

static void absent(uint32_t base, uint32_t count)
{
    answer_denial(base, count);
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
}

static void NotFound(void)
{
    start(5);
    CHECK(next(0));
    data(10, 1, 0, false);
    data(10, 1, 1, false);
    absent(0, 2); /* evicted since, but here */
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
    absent(7, 2); /* not of this share */
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
    absent(1, 2);
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
    CHECK_EQ(fetch.last_status, SKY_STATUS_NOT_FOUND);

    start(5);
    CHECK(next(0));
    answer_start(1, SKY_STATUS_NOT_FOUND); /* without a set: the block is unknown */
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
}

/* Where part of a share may lie elsewhere, what is denied does not keep from asking for the rest. */
static void Collect(void)
{
    start(8);
    SKY_Fetch_Collect(&fetch);
    CHECK(next(0)); /* 0 to 3 */
    CHECK(!next(0));
    data(10, 1, 0, false);
    absent(1, 1);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
    CHECK_EQ(fetch.left, 6);
    CHECK_EQ(fetch.denials, 1);
    CHECK_EQ(peer.outstanding, 2);
    absent(0, 3); /* 0 came before, 1 was denied already */
    CHECK_EQ(fetch.denials, 2);
    absent(5, 1); /* not even asked for */
    CHECK_EQ(fetch.left, 4);
    CHECK_EQ(peer.outstanding, 1);
    CHECK(fetch.timer_us != 0);
    data(10, 1, 2, false); /* said to be absent, and here after all: whoever is asked next may have it newer */
    CHECK_EQ(fetch.duplicates, 1);
    data(10, 1, 3, true);
    CHECK_EQ(fetch.timer_us, 0);
    CHECK(next(20));
    CHECK_EQ(asked(), 3);
    CHECK_EQ(req.chunk_id, 4);
    CHECK(!SKY_ChunkSet_Has(&set, 1));
    data(30, 2, 4, false);
    data(30, 2, 6, false);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
    data(30, 2, 7, true);
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
    CHECK_EQ(fetch.denials, 3);
    for (uint32_t i = 0; i < 8; ++i)
    {
        CHECK(!SKY_ChunkSet_Has(&fetch.missing, i));
        CHECK_EQ(SKY_ChunkSet_Has(&fetch.denied, i), i == 1 || i == 2 || i == 5);
    }
    CHECK_EQ(peer.outstanding, 0);

    start(2); /* the last word may be a denial, too */
    SKY_Fetch_Collect(&fetch);
    CHECK(next(0));
    data(10, 1, 0, false);
    absent(1, 1);
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
    CHECK_EQ(fetch.timer_us, 0);

    start(2);
    SKY_Fetch_Collect(&fetch);
    CHECK(next(0));
    answer_start(1, SKY_STATUS_NOT_FOUND); /* without a set: the block is unknown */
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
}

/* A denial is the last packet of its burst: what of that has not come is late, or lost. */
static void DenialEndsBurst(void)
{
    start(4);
    SKY_Fetch_Collect(&fetch);
    CHECK(next(0));
    answer_denial(0, 1);
    answer.flags = SKY_FLAG_LAST;
    SKY_Fetch_OnPacket(&fetch, 100, &answer);
    CHECK(fetch.gap_us != 0);
    CHECK(SKY_Fetch_OnTime(&fetch, fetch.gap_us) > 0);
    CHECK_EQ(peer.outstanding, 0);
    CHECK(next(1000));
    CHECK_EQ(req.chunk_id, 1);
}

static void Skip(void)
{
    start(4);
    SKY_Fetch_Skip(&fetch, 1);
    SKY_Fetch_Skip(&fetch, 1);
    SKY_Fetch_Skip(&fetch, 4); /* not of the share */
    CHECK_EQ(fetch.left, 3);
    CHECK(next(0));
    CHECK_EQ(asked(), 3);
    CHECK(!SKY_ChunkSet_Has(&set, 1));

    start(1);
    SKY_Fetch_Skip(&fetch, 0);
    CHECK_EQ(fetch.state, SKY_SHARE_DONE);
    CHECK(!next(0));
}

static void ErrorsAndStop(void)
{
    start(5);
    CHECK(next(0));
    answer_start(1, SKY_STATUS_BUSY);
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
    CHECK_EQ(peer.outstanding, 4);
    answer_start(1, SKY_STATUS_UNREACHABLE);
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
    CHECK_EQ(fetch.state, SKY_SHARE_REFUSED);
    CHECK_EQ(fetch.last_status, SKY_STATUS_UNREACHABLE);
    CHECK_EQ(peer.outstanding, 0);
    SKY_Fetch_Stop(&fetch, SKY_SHARE_EXPIRED);
    CHECK_EQ(fetch.state, SKY_SHARE_REFUSED);

    start(5);
    SKY_Fetch_Stop(&fetch, SKY_SHARE_EXPIRED);
    CHECK_EQ(fetch.state, SKY_SHARE_EXPIRED);
}

static void Timers(void)
{
    start(20);
    fetch.cfg.deadline_us = 9000;
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 0), 9000);
    CHECK(next(0));
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 999), 1000);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1000), 9000); /* all to be asked for again */
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(peer.rto_us, 2000);
    CHECK_EQ(peer.window, 2);
    CHECK(next(1000));
    CHECK_EQ(fetch.repeats, 2);
    peer.window = 4;
    CHECK(next(1300));
    data(1400, 3, 2, false); /* later than the timed one, whose answer may have been overtaken */
    CHECK_EQ(fetch.timed, 2);
    CHECK_EQ(fetch.gap_us, 1400 + 500); /* a quarter of the timer while no round trip is known */
    fetch.cfg.deadline_us = 1901;
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1899), 1900);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1900), 1901);
    CHECK_EQ(fetch.timed, 0); /* it was lost */
    CHECK_EQ(peer.srtt_us, 0);
    CHECK(next(1900));
    CHECK(fetch.timer_us > 1901); /* behind the deadline: does not matter */
    fetch.gap_us = 2000;
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1900), 1901);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1901), UINT64_MAX);
    CHECK_EQ(fetch.state, SKY_SHARE_EXPIRED);
    CHECK_EQ(peer.outstanding, 0);
}

/* On a link with jitter the answer to the second request may come first: the first is timed all the same, and nothing is lost. */
static void Overtaken(void)
{
    start(20);
    peer.window = 8;
    CHECK(next(0));
    CHECK(next(0));
    data(500, 2, 4, false);
    data(510, 2, 7, true);
    CHECK_EQ(peer.srtt_us, 0);
    (void)SKY_Fetch_OnTime(&fetch, 600);
    CHECK_EQ(fetch.on_way, 6);
    data(620, 1, 0, false);
    CHECK_EQ(peer.srtt_us, 620);
    CHECK_EQ(peer.window, 11);
}

/* What a burst's last packet has overtaken belongs to a later place of the share, but to an earlier request: it is on its way. */
static void LastOvertakes(void)
{
    start(8);
    peer.window = 8;
    CHECK(next(0));
    CHECK(next(0));
    data(100, 1, 1, false);
    data(100, 1, 2, false);
    data(100, 1, 3, true);
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us); /* chunk 0 is lost */
    CHECK(next(200));
    CHECK_EQ(req.chunk_id, 0);
    CHECK_EQ(asked(), 1);
    data(300, 3, 0, true); /* before what was asked for by the second request */
    CHECK_EQ(SKY_ChunkSet_Size(&fetch.todo), 0);
    CHECK_EQ(fetch.on_way, 4);
}

static void NumbersWrap(void)
{
    start(20);
    fetch.number = UINT16_MAX - 1;
    fetch.over   = UINT16_MAX - 1;
    CHECK(next(0));
    CHECK_EQ(req.request_id & 0xFFFFu, UINT16_MAX);
    data(10, UINT16_MAX, 3, true);
    (void)SKY_Fetch_OnTime(&fetch, 20);
    CHECK_EQ(fetch.on_way, 0);
    CHECK(next(20));
    CHECK_EQ(req.request_id & 0xFFFFu, 1); /* 0 means none */
    data(30, 1, 0, false);
    CHECK_EQ(fetch.over, 0);
    CHECK_EQ(fetch.left, 18);
}

static void Parts(void)
{
    start(40);
    CHECK(next(0));
    part(1, 0, 600, 400); /* the last part first */
    part(1, 0, 300, 300);
    part(1, 0, 300, 300);
    part(1, 1, 0, 500);
    CHECK_EQ(fetch.left, 40);
    part(1, 0, 0, 300); /* 600 + 400: the last part is longer than the others */
    CHECK_EQ(fetch.left, 40);
    part(1, 0, 300, 300);
    part(1, 0, 600, 300);
    CHECK_EQ(fetch.left, 40);
    part(1, 0, 900, 100);
    CHECK_EQ(fetch.left, 39);
    CHECK(memcmp(block, source, 1000) == 0);
    part(1, 1, 500, 500);
    CHECK_EQ(fetch.left, 38);

    part(1, 2, 0, 500);
    source[2500] ^= 1;
    answer_chunk(1, 2, false);
    source[2500] ^= 1;
    answer.chunk_crc = SKY_Crc32c(0, source + 2000, 1000);
    answer.offset    = 500;
    answer.length    = 500;
    answer.payload   = source + 2400; /* wrong bytes */
    SKY_Fetch_OnPacket(&fetch, 10, &answer);
    CHECK_EQ(fetch.corrupt, 1);
    CHECK_EQ(fetch.left, 38);
    part(1, 2, 0, 500);
    part(1, 2, 500, 500);
    CHECK_EQ(fetch.left, 37);

    part(1, 3, 0, 500);
    for (uint32_t id = 4; id < 4 + SKY_FETCH_PARTIALS; ++id)
    {
        part(1, id, 0, 500); /* one more than are followed */
    }
    part(1, 3, 500, 500);
    CHECK_EQ(fetch.left, 37);
    part(1, 3, 0, 500);
    CHECK_EQ(fetch.left, 36);
}

int main(void)
{
    fill();
    RUN(Refused);
    RUN(WindowAndBurst);
    RUN(WholeShare);
    RUN(StridedRepeat);
    RUN(GivenUpTooEarly);
    RUN(NextBurstTells);
    RUN(UnsentIsNotLost);
    RUN(LastAgainAndAgain);
    RUN(Corrupt);
    RUN(AnotherBlock);
    RUN(DeniedForAnotherVersion);
    RUN(NotFound);
    RUN(Collect);
    RUN(DenialEndsBurst);
    RUN(Skip);
    RUN(ErrorsAndStop);
    RUN(Timers);
    RUN(Overtaken);
    RUN(LastOvertakes);
    RUN(NumbersWrap);
    RUN(Parts);
    return CHECK_RESULT();
}
