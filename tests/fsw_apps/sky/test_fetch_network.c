/* Fetching a share over a bad network, against the real service: the block comes whole, and nothing is asked for in vain. */
#include "fetch_rig.h"

static void on_packet(uint64_t now_us, const SKY_Packet_t *response)
{
    SKY_Fetch_OnPacket(&fetch, now_us, response);
}

/* A packet of the ground that takes no time and no harm. */
static void put_at_once(const SKY_Packet_t *pkt)
{
    uint8_t      data[LOSSY_BYTES];
    const size_t len = SKY_Packet_Encode(pkt, data, sizeof(data));
    SKY_Packet_t decoded;
    SKY_Out_t    out;

    CHECK_EQ(SKY_Packet_Decode(data, len, &decoded), SKY_STATUS_OK);
    SKY_Service_Begin(&lossy_service, 0, &decoded);
    CHECK(!SKY_Service_Next(&lossy_service, 0, &out)); /* PUT is answered only on error */
}

static void store_block(uint32_t packet_bytes)
{
    SKY_Push_t push;
    uint16_t   asked_by[SKY_LIMIT_CHUNK_SET];

    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    CHECK(SKY_Push_Init(&push, &share, &peer, asked_by)); /* only to make the PUTs */
    peer.window    = SKY_LIMIT_CHUNK_SET;
    peer.cfg.burst = SKY_LIMIT_CHUNK_SET;
    while (SKY_Push_Next(&push, 0, 1, &req, payload) == SKY_PUSH_CHUNK)
    {
        const uint8_t *chunk = source + (size_t)req.chunk_id * share.stripe.chunk_len;

        req.chunk_crc = SKY_Crc32c(0, chunk, req.chunk_len);
        for (uint32_t at = 0; at < req.chunk_len;)
        {
            at = SKY_Packet_CutPart(&req, chunk, at, packet_bytes);
            put_at_once(&req);
        }
    }
}

static void run(uint64_t seed, const LossyModel_t *model, uint32_t chunks, uint32_t packet_bytes, uint32_t credit)
{
    uint64_t now_us = 1;
    uint32_t steps  = 0;

    Lossy_Start(seed, model, packet_bytes, credit);
    Lossy_Share(&share, chunks, 1000, 10, packet_bytes);
    store_block(packet_bytes);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    (void)memset(block, 0, sizeof(block));
    CHECK(SKY_Fetch_Init(&fetch, &share, &peer, block, NULL));
    while (fetch.state == SKY_SHARE_RUNNING && ++steps < 200000)
    {
        while (next(now_us))
        {
            Lossy_Send(now_us, &req);
        }
        const uint64_t arrives_us = Lossy_NextUs();
        const uint64_t due_us     = SKY_Fetch_OnTime(&fetch, now_us);

        now_us = arrives_us < due_us ? arrives_us : due_us;
        Lossy_Deliver(now_us, on_packet);
        (void)SKY_Fetch_OnTime(&fetch, now_us);
    }
    CHECK_EQ(fetch.state, SKY_SHARE_DONE);
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(lossy_crowded, 0);
    CHECK(memcmp(block, source, share.stripe.block_len) == 0);
}

static void CleanNetwork(void)
{
    const LossyModel_t clean = {.delay_us = 400};

    run(1, &clean, 300, 1500, 20);
    CHECK_EQ(fetch.repeats + fetch.duplicates, 0);
    run(2, &clean, 100, 1500, 2); /* asks for more than it gets */
    CHECK_EQ(fetch.duplicates, 0);
    run(3, &clean, 1, 500, 20);
}

/* Every packet may overtake any other of its burst: nothing is lost, and nothing is taken for lost. */
static void Disorder(void)
{
    const LossyModel_t jitter = {.delay_us = 400, .jitter_us = 90};

    for (uint64_t seed = 1; seed <= 10; ++seed)
    {
        run(seed, &jitter, 300, 1500, 20);
        CHECK_EQ(fetch.repeats + fetch.duplicates, 0);
        CHECK_EQ(peer.window, 32);
    }
}

static void BadNetwork(void)
{
    const LossyModel_t bad = {.loss = 50, .repeat = 20, .damage = 20, .delay_us = 500, .jitter_us = 700};

    for (uint64_t seed = 1; seed <= 30; ++seed)
    {
        run(seed, &bad, 100, 1500, 20);
        run(seed, &bad, 60, 500, 20); /* four parts a chunk */
    }
}

static void NothingThere(void)
{
    const LossyModel_t clean  = {.delay_us = 400};
    uint64_t           now_us = 1;

    Lossy_Start(1, &clean, 1500, 20);
    start(50);
    CHECK(next(now_us));
    Lossy_Send(now_us, &req);
    while (fetch.state == SKY_SHARE_RUNNING && now_us < 2000)
    {
        now_us = Lossy_NextUs();
        Lossy_Deliver(now_us, on_packet);
    }
    CHECK_EQ(fetch.state, SKY_SHARE_MISS);
}

int main(void)
{
    fill();
    RUN(CleanNetwork);
    RUN(Disorder);
    RUN(BadNetwork);
    RUN(NothingThere);
    return CHECK_RESULT();
}
