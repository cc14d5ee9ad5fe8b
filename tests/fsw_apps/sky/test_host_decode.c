/**
 * @file
 * Decoding of a long block: one row a run of the host, so that it does not hold up what has come meanwhile.
 */
#include "host_rig.h"

#define CHUNKS 7u /* of data: rows of two with two of parity, and a last row of one */
#define ROWS   4u

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static uint8_t         up[CHUNKS * CHUNK], down[CHUNKS * CHUNK], parity[2u * ROWS * CHUNK], have[4];
static SKY_HostRow_t   rows[ROWS];

static SKY_HostBlock_t coded(SKY_HostKind_t kind)
{
    SKY_HostBlock_t block = host_block(kind, 1, CHUNKS, places, SATELLITES, kind == SKY_HOST_PUT ? up : down);

    CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
    CHECK_EQ(SKY_Stripe_Rows(&block.stripe), ROWS);
    block.parity = parity;
    block.have   = have;
    block.rows   = rows;
    return block;
}

/* Put a block, and get it without the first satellite until it has all that it needs. */
static SKY_HostBlock_t *begun(SKY_HostBlock_t *block)
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
    *block = coded(SKY_HOST_PUT);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    CHECK_EQ(block->status, SKY_STATUS_DONE);
    (void)memset(down, 0, sizeof(down));
    rig.is_silent[0] = true;
    *block           = coded(SKY_HOST_GET);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    for (uint32_t steps = 0; rig.host.decoding == NULL && steps < 1000u; ++steps)
    {
        const uint64_t due_us = SKY_Host_Run(&rig.host, rig.now_us, true);

        if (rig.host.decoding == NULL && !host_take(&rig, due_us))
        {
            rig.now_us = due_us;
        }
    }
    CHECK(rig.host.decoding == block);
    CHECK_EQ(rig.host.running, 0);
    CHECK_EQ(block->status, SKY_STATUS_RUNNING);
    CHECK(SKY_Host_NextEnded(&rig.host) == NULL);
    return block;
}

static void test_one_row_is_decoded_a_run(void)
{
    SKY_HostBlock_t  memory;
    SKY_HostBlock_t *block = begun(&memory);
    uint32_t         runs  = 0;

    for (; block->status == SKY_STATUS_RUNNING && runs < ROWS; ++runs)
    {
        const uint32_t before = block->decoded;

        SKY_Host_SetQuantum(&rig.host, 10u * CHUNK);
        const uint64_t due_us = SKY_Host_Run(&rig.host, rig.now_us, true);

        CHECK(due_us == rig.now_us || block->status != SKY_STATUS_RUNNING);
        CHECK(block->decoded - before <= 2u);
        CHECK_EQ(rig.host.quantum_left, 8u * CHUNK);
    }
    CHECK(runs >= 2u);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    CHECK_EQ(block->status, SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block->stripe.block_len) == 0);
    host_close(&rig);
}

/* Who came first is done first: others that come all the time would hold it up for ever. */
static void test_blocks_are_decoded_one_after_the_other(void)
{
    static uint8_t       later[sizeof(down)], later_parity[sizeof(parity)], later_have[sizeof(have)];
    static SKY_HostRow_t later_rows[ROWS];
    SKY_HostBlock_t      memory;
    SKY_HostBlock_t     *first = begun(&memory);
    SKY_HostBlock_t      second;

    SKY_Host_Stop(&rig.host, rig.now_us, NULL, SKY_STATUS_CANCELLED);
    CHECK(SKY_Host_NextEnded(&rig.host) == first && rig.host.decoding == NULL);
    rig.wire_count = 0;
    *first         = coded(SKY_HOST_GET);
    second         = coded(SKY_HOST_GET);
    second.data    = later;
    second.parity  = later_parity;
    second.have    = later_have;
    second.rows    = later_rows;
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, first), SKY_HOST_BEGUN);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &second), SKY_HOST_BEGUN);
    for (uint32_t steps = 0; rig.host.running > 0u && steps < 1000u; ++steps)
    {
        const bool     is_all = rig.host.decoding != NULL; /* what the other one needs is on its way */
        const uint64_t due_us = is_all ? UINT64_MAX : SKY_Host_Run(&rig.host, rig.now_us, true);

        if (rig.host.running > 0u && !host_take(&rig, due_us))
        {
            CHECK(!is_all);
            rig.now_us = due_us;
        }
    }
    CHECK(rig.host.decoding == first && first->ended_next == &second);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == &second &&
          SKY_Host_NextEnded(&rig.host) == first); /* the last one that ended comes first */
    CHECK(memcmp(up, down, first->stripe.block_len) == 0 && memcmp(up, later, first->stripe.block_len) == 0);
    host_close(&rig);
}

static void test_decoding_can_be_stopped(void)
{
    SKY_HostBlock_t  memory, other = {0};
    SKY_HostBlock_t *block = begun(&memory);

    SKY_Host_Stop(&rig.host, rig.now_us, &other, SKY_STATUS_CANCELLED);
    CHECK(rig.host.decoding == block); /* another one was stopped */
    SKY_Host_SetQuantum(&rig.host, 1);
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    CHECK_EQ(rig.host.quantum_left, 0);
    SKY_Host_Stop(&rig.host, rig.now_us, block, SKY_STATUS_CANCELLED);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    CHECK_EQ(block->status, SKY_STATUS_CANCELLED);
    CHECK(rig.host.decoding == NULL);
    host_close(&rig);
}

int main(void)
{
    RUN(test_one_row_is_decoded_a_run);
    RUN(test_blocks_are_decoded_one_after_the_other);
    RUN(test_decoding_can_be_stopped);
    return CHECK_RESULT();
}
