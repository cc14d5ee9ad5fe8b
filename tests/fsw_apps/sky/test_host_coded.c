/**
 * @file
 * The host and blocks with parity.
 */
#include "host_rig.h"

#define CHUNKS 7u /* of data: rows of two with two of parity, and a last row of one */

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static uint8_t         up[CHUNKS * CHUNK], down[CHUNKS * CHUNK], parity_up[2u * CHUNKS * CHUNK], parity_down[2u * CHUNKS * CHUNK];

static void open_all(void)
{
    host_open(&rig, host_usual);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
    for (uint32_t i = 0; i < sizeof(parity_up); ++i)
    {
        parity_up[i] = (uint8_t)(i * 17u >> 2);
    }
    (void)memset(down, 0, sizeof(down));
    (void)memset(parity_down, 0, sizeof(parity_down));
}

static SKY_HostBlock_t coded(SKY_HostKind_t kind)
{
    SKY_HostBlock_t block = host_block(kind, 1, CHUNKS, places, SATELLITES, kind == SKY_HOST_PUT ? up : down);

    CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
    block.parity = kind == SKY_HOST_PUT ? parity_up : parity_down;
    return block;
}

static void run(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
}

static void test_parity_goes_up_and_comes_back(void)
{
    open_all();
    SKY_HostBlock_t block = coded(SKY_HOST_PUT);

    run(&block);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK_EQ(block.chunks, 15);
    CHECK_EQ(block.bytes, 12u * CHUNK + 3u); /* the last row has chunks of one byte */
    block = coded(SKY_HOST_GET);
    run(&block);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    for (uint32_t id = 0; id < block.stripe.chunk_total; ++id)
    {
        const size_t at = SKY_Stripe_Offset(&block.stripe, id);

        CHECK(!SKY_Stripe_IsParity(&block.stripe, id) ||
              memcmp(parity_up + at, parity_down + at, SKY_Stripe_ChunkBytes(&block.stripe, id)) == 0);
    }
    host_close(&rig);
}

static void test_a_code_needs_memory_for_parity(void)
{
    open_all();
    SKY_HostBlock_t block = coded(SKY_HOST_GET);

    block.parity = NULL;
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_WRONG);
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 0);
    host_close(&rig);
}

int main(void)
{
    RUN(test_parity_goes_up_and_comes_back);
    RUN(test_a_code_needs_memory_for_parity);
    return CHECK_RESULT();
}
