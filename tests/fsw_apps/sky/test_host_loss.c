/**
 * @file
 * The host over links that lose packets: gets of a block with parity are complete in time, and ask for no more than they need.
 */
#define RTT_US 50000u
#include "host_rig.h"

#define CHUNKS   48u /* of data: rows of two with two of parity. A satellite has 24 chunks, which take two requests */
#define ROWS     24u
#define DEADLINE 4u  /* round trips */
#define VALUES   40u /* without parity, a chunk at each satellite */

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static uint8_t         up[CHUNKS * CHUNK], down[CHUNKS * CHUNK], parity[2u * ROWS * CHUNK], have[12];
static SKY_HostRow_t   rows[ROWS];

static SKY_HostBlock_t coded(SKY_HostKind_t kind)
{
    SKY_HostBlock_t block = host_block(kind, 1, CHUNKS, places, SATELLITES, kind == SKY_HOST_PUT ? up : down);

    CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
    CHECK_EQ(SKY_Stripe_Rows(&block.stripe), ROWS);
    block.parity      = parity;
    block.have        = have;
    block.rows        = rows;
    block.deadline_ms = DEADLINE * RTT_US / 1000u;
    return block;
}

static uint32_t run(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    return block->status;
}

static const host_sizes_t sizes = {8, VALUES, VALUES *SATELLITES, 64, true};

static void begin(void)
{
    host_open(&rig, sizes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
    SKY_HostBlock_t block = coded(SKY_HOST_PUT);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
}

/* Get so many times. @return the gets that were complete in time */
static uint32_t count_complete(uint32_t gets)
{
    uint32_t complete = 0;

    for (uint32_t i = 0; i < gets; ++i)
    {
        SKY_HostBlock_t block = coded(SKY_HOST_GET);

        (void)memset(down, 0, sizeof(down));
        if (run(&block) == SKY_STATUS_DONE)
        {
            ++complete;
            CHECK(memcmp(up, down, block.stripe.block_len) == 0);
        }
    }
    return complete;
}

/* One packet in ten is lost, on the way there and on the way back. With a window that halves, and a timer that doubles, 3 gets of 5 are
 * complete after four round trips. */
static void test_one_packet_in_ten_is_lost(void)
{
    uint32_t windows = 0;

    begin();
    rig.loss_percent = 10;
    (void)count_complete(5); /* until it is known that links lose packets */
    CHECK(count_complete(300) >= 297);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        windows += rig.host.peers.peers[i].peer.window;
    }
    CHECK(windows >= SATELLITES * CHUNKS / 2u); /* what a satellite has is asked for at once */
    host_close(&rig);
}

/* With parity on its way, a chunk that is lost is asked for again only if its row lacks it. */
static void test_a_chunk_is_asked_for_again_only_if_it_is_needed(void)
{
    SKY_HostBlock_t block;

    begin();
    rig.host.lossy_until_us = UINT64_MAX;
    rig.loses_chunks        = 0x10u; /* of the second row, which has three others */
    block                   = coded(SKY_HOST_GET);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.repeats, 0);
    rig.loses_chunks = 0x17u; /* and three of the first row */
    block            = coded(SKY_HOST_GET);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(block.repeats > 0u);
    CHECK(block.repeats <= 3u);
    CHECK(block.duration_us < 3u * RTT_US);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    host_close(&rig);
}

/* Losses are noticed even if nothing is asked for again because of them: parity is asked for at once as long as they go on. */
static void test_losses_that_are_borne_count(void)
{
    begin();
    rig.loss_percent = 5;
    (void)count_complete(5);
    CHECK(rig.host.lossy_until_us > rig.now_us);
    for (uint32_t i = 0; i < 100; ++i)
    {
        rig.now_us += 1000000u;
        (void)count_complete(1);
        CHECK(rig.host.lossy_until_us > rig.now_us);
    }
    host_close(&rig);
}

/* A time-out is no answer time, or the silence after which parity is asked for would become as long as that. */
static void test_answers_to_repeats_are_no_answer_times(void)
{
    begin();
    (void)count_complete(20);
    const uint64_t usual_us = rig.host.hedge_us;

    CHECK(usual_us >= RTT_US + RTT_US / 2u);
    rig.loss_percent = 10;
    (void)count_complete(100);
    CHECK_EQ(rig.host.hedge_us, usual_us);
    host_close(&rig);
}

/* Move all values at once. */
static void run_values(SKY_HostKind_t kind, SKY_HostBlock_t *values, uint8_t *bytes)
{
    for (uint32_t i = 0; i < VALUES; ++i)
    {
        values[i]             = host_block(kind, i + 2u, SATELLITES, places, SATELLITES, bytes + i * SATELLITES * CHUNK);
        values[i].deadline_ms = 60000;
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &values[i]), SKY_HOST_BEGUN);
    }
    host_run(&rig);
    for (uint32_t i = 0; i < VALUES; ++i)
    {
        CHECK_EQ(values[i].status, SKY_STATUS_DONE);
    }
}

/* All that a new host asks for waits in the queue of one slow link, for much longer than its first timer. Most of it is asked for once more
 * before the first late answer has come, but not time and again. */
static void test_a_slow_link_is_not_filled_with_repeats(void)
{
    static uint8_t  bytes[VALUES * SATELLITES * CHUNK];
    SKY_HostBlock_t values[VALUES];
    uint32_t        repeats = 0;

    begin();
    run_values(SKY_HOST_PUT, values, bytes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        SKY_Peer_t *peer = &rig.host.peers.peers[i].peer;

        SKY_Peer_Init(peer, &rig.host.cfg.peer, peer->addr); /* as a host that has measured nothing */
    }
    rig.link_us = 150000; /* three satellites share a link of 1 Mbit/s, with chunks of 6 kB */
    run_values(SKY_HOST_GET, values, bytes);
    for (uint32_t i = 0; i < VALUES; ++i)
    {
        repeats += values[i].repeats;
    }
    CHECK(repeats > 0u);
    CHECK(repeats < 3u * VALUES * SATELLITES / 2u); /* 320 if late answers are not timed */
    host_close(&rig);
}

int main(void)
{
    rig.satellites = NULL;
    RUN(test_one_packet_in_ten_is_lost);
    RUN(test_a_chunk_is_asked_for_again_only_if_it_is_needed);
    RUN(test_losses_that_are_borne_count);
    RUN(test_answers_to_repeats_are_no_answer_times);
    RUN(test_a_slow_link_is_not_filled_with_repeats);
    return CHECK_RESULT();
}
