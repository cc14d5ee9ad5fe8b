/**
 * @file
 * Fetching a share with parity chunks: they come into memory of their own.
 */
#include "fetch_rig.h"

#define ROWS 3u

static uint8_t parity[2u * ROWS * 1000u], parity_source[2u * ROWS * 1000u];

/* Describe the share of server @p server of five, of a block of rows of three and two; the last row has two data chunks. */
static void share_of(uint32_t server)
{
    Lossy_Share(&share, 8, 1000, 10, 1500);
    CHECK(SKY_Stripe_Cut(&share.stripe, share.stripe.block_len, 1000, 3, 2));
    CHECK_EQ(SKY_Stripe_Rows(&share.stripe), ROWS);
    share.base   = server;
    share.stride = 5;
    share.count  = (share.stripe.chunk_total - server - 1u) / 5u + 1u;
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    (void)memset(block, 0, sizeof(block));
    (void)memset(parity, 0, sizeof(parity));
}

static const uint8_t *source_of(uint32_t id)
{
    return (SKY_Stripe_IsParity(&share.stripe, id) ? parity_source : source) + SKY_Stripe_Offset(&share.stripe, id);
}

static void answer(uint32_t id)
{
    SKY_Packet_t pkt;

    SKY_ShareCfg_Request(&share, &peer, 0, SKY_OP_GET, 1, &pkt);
    pkt.is_request = false;
    pkt.chunk_id   = id;
    pkt.chunk_len  = SKY_Stripe_ChunkBytes(&share.stripe, id);
    pkt.payload    = source_of(id);
    pkt.length     = pkt.chunk_len;
    pkt.chunk_crc  = SKY_Crc32c(0, pkt.payload, pkt.length);
    SKY_Fetch_OnPacket(&fetch, 5, &pkt);
}

static void test_each_chunk_comes_to_its_place(void)
{
    for (uint32_t i = 0; i < sizeof(parity_source); ++i)
    {
        parity_source[i] = (uint8_t)(i * 7u + 1u);
    }
    for (uint32_t server = 0; server < 5u; ++server)
    {
        share_of(server);
        CHECK(SKY_Fetch_Init(&fetch, &share, &peer, block, parity));
        CHECK(next(0));
        for (uint32_t id = server; id < share.stripe.chunk_total; id += 5u)
        {
            const bool     is_parity = SKY_Stripe_IsParity(&share.stripe, id);
            const uint8_t *here      = (is_parity ? parity : block) + SKY_Stripe_Offset(&share.stripe, id);

            answer(id);
            CHECK(memcmp(here, source_of(id), SKY_Stripe_ChunkBytes(&share.stripe, id)) == 0);
        }
        CHECK_EQ(fetch.state, SKY_SHARE_DONE);
    }
}

static void test_parity_needs_memory(void)
{
    for (uint32_t server = 0; server < 5u; ++server)
    {
        bool has_parity = false;

        share_of(server);
        for (uint32_t id = server; id < share.stripe.chunk_total; id += 5u)
        {
            has_parity = has_parity || SKY_Stripe_IsParity(&share.stripe, id);
        }
        CHECK_EQ(SKY_Fetch_Init(&fetch, &share, &peer, block, NULL), !has_parity);
    }
}

int main(void)
{
    fill();
    RUN(test_each_chunk_comes_to_its_place);
    RUN(test_parity_needs_memory);
    return CHECK_RESULT();
}
