/**
 * @file
 * The host's manners: small blocks go ahead of large ones, a run sends a quantum, and large puts fill no queues.
 */
#include "host_rig.h"

#define LARGE_CHUNKS 400u
#define BLOCKS       40u
#define QUEUE_US     2000u

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static SKY_HostBlock_t blocks[BLOCKS];
static uint8_t         up[CHUNKS_MAX * CHUNK];

static void open_with(host_sizes_t sizes)
{
    host_open(&rig, sizes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
}

static void begin(uint32_t number, uint32_t kind, uint32_t chunks, uint32_t servers)
{
    blocks[number] = host_block(kind, number, chunks, places, servers, up);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[number]), SKY_HOST_BEGUN);
}

static uint64_t run_once(void)
{
    return SKY_Host_Run(&rig.host, rig.now_us, true);
}

static const SKY_HostPeer_t *peer_of(uint32_t satellite)
{
    return &rig.host.peers.peers[satellite];
}

static uint32_t lanes_of(uint32_t satellite, bool is_small)
{
    const SKY_HostPeer_t *peer  = peer_of(satellite);
    uint32_t              count = 0;

    for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
    {
        count +=
            (peer->lanes_busy >> place & 1u) != 0u && rig.host.blocks.lanes[peer->lanes[place]].is_small == is_small ? 1u : 0u;
    }
    return count;
}

static void finish(void)
{
    host_run(&rig);
    host_close(&rig);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------ */

/* Others have most lanes of a satellite, and more of them wait. */
static void test_some_lanes_are_for_small_blocks(void)
{
    open_with((host_sizes_t){8, BLOCKS, 64, 64, true});
    for (uint32_t i = 0; i < 20u; ++i)
    {
        begin(i, SKY_HOST_PUT, 2, 1);
    }
    (void)run_once();
    CHECK_EQ(lanes_of(0, false), SKY_HOST_LANES - 2u);
    for (uint32_t i = 20; i < 23u; ++i)
    {
        begin(i, SKY_HOST_PUT, 1, 1);
    }
    (void)run_once();
    CHECK_EQ(lanes_of(0, true), 2);
    CHECK(peer_of(0)->piece_first != SKY_HOST_NONE && peer_of(0)->small_first != SKY_HOST_NONE);
    finish();
    for (uint32_t i = 0; i < 23u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
    }
}

/* Small ones come without end: one lane is left to the other one that waits. */
static void test_the_last_lane_is_for_another_one(void)
{
    open_with((host_sizes_t){8, BLOCKS, 64, 64, true});
    for (uint32_t i = 0; i < 20u; ++i)
    {
        begin(i, SKY_HOST_PUT, 1, 1);
    }
    begin(20, SKY_HOST_PUT, 2, 1);
    (void)run_once();
    CHECK(lanes_of(0, true) == SKY_HOST_LANES - 1u && lanes_of(0, false) == 1u);
    finish();
}

static void test_lanes_of_all_satellites_are_kept_too(void)
{
    open_with((host_sizes_t){8, BLOCKS, 64, 8, true});
    rig.blocks.lanes_kept = 8;
    CHECK(!SKY_Host_Lend(&rig.host, &rig.blocks));
    rig.blocks.lanes_kept = 2;
    CHECK(SKY_Host_Lend(&rig.host, &rig.blocks));
    for (uint32_t i = 0; i < 8u; ++i)
    {
        begin(i, SKY_HOST_PUT, 2, 1);
    }
    (void)run_once();
    CHECK_EQ(lanes_of(0, false), 6);
    for (uint32_t i = 8; i < 11u; ++i)
    {
        begin(i, SKY_HOST_PUT, 1, 1);
    }
    (void)run_once();
    CHECK(lanes_of(0, true) == 2u && rig.host.lane_free_count == 0u);
    finish();
}

/* There is one lane: pieces of both kinds wait at satellites that have none. */
static void test_who_has_no_lane_waits(void)
{
    open_with((host_sizes_t){8, BLOCKS, 64, 1, true});
    for (uint32_t i = 0; i < 3u; ++i)
    {
        blocks[i] = host_block(SKY_HOST_PUT, i, i == 1u ? 1 : 2, &places[i], 1, up);
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[i]), SKY_HOST_BEGUN);
    }
    (void)run_once();
    CHECK(peer_of(1)->lanes_busy == 0u && peer_of(1)->small_first != SKY_HOST_NONE);
    CHECK(peer_of(2)->lanes_busy == 0u && peer_of(2)->piece_first != SKY_HOST_NONE);
    finish();
    for (uint32_t i = 0; i < 3u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
    }
}

/* Blocks in both queues of a satellite run out of time. */
static void test_who_waits_too_long_ends(void)
{
    open_with((host_sizes_t){8, BLOCKS, 64, 64, true});
    rig.is_silent[0] = true;
    for (uint32_t i = 0; i < 32u; ++i)
    {
        begin(i, SKY_HOST_PUT, 1u + i % 2u, 1);
    }
    (void)run_once();
    CHECK(peer_of(0)->piece_first != SKY_HOST_NONE && peer_of(0)->small_first != SKY_HOST_NONE);
    finish();
    for (uint32_t i = 0; i < 32u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_EXPIRED);
    }
}

/* ---- a quantum -------------------------------------------------------------------------------------------------------- */

static void test_a_quantum_is_sent(void)
{
    open_with(host_usual);
    SKY_Host_SetQuantum(&rig.host, 3u * CHUNK);
    begin(0, SKY_HOST_PUT, 40, 2);
    begin(1, SKY_HOST_PUT, 1, 1);
    CHECK_EQ(run_once(), rig.now_us);
    CHECK(rig.host.quantum_left == 0u && rig.sent[0] + rig.sent[1] >= 4u && rig.sent[0] + rig.sent[1] <= 9u);
    const uint32_t first  = rig.sent[0];
    const uint32_t second = rig.sent[1];

    CHECK_EQ(run_once(), rig.now_us);
    CHECK(rig.sent[0] == first && rig.sent[1] == second);
    SKY_Host_SetQuantum(&rig.host, 3u * CHUNK);
    CHECK_EQ(run_once(), rig.now_us);
    CHECK((rig.sent[0] > first) != (rig.sent[1] > second)); /* one after the other */
    SKY_Host_SetQuantum(&rig.host, CHUNK / 2u);             /* less than a chunk: one goes all the same */
    CHECK_EQ(run_once(), rig.now_us);
    CHECK(rig.sent[0] > first && rig.sent[1] > second);
    SKY_Host_SetQuantum(&rig.host, UINT64_MAX);
    begin(2, SKY_HOST_GET, 1, 1);
    finish();
    CHECK(blocks[0].status == SKY_STATUS_DONE && blocks[1].status == SKY_STATUS_DONE);
}

/* Two puts at one satellite: the first takes the quantum, and the other sends once there is one again. */
static void test_what_is_left_of_a_quantum_may_be_nothing(void)
{
    open_with(host_usual);
    SKY_Host_SetQuantum(&rig.host, 3u * CHUNK);
    begin(0, SKY_HOST_PUT, 40, 1);
    begin(1, SKY_HOST_PUT, 40, 1);
    CHECK_EQ(run_once(), rig.now_us);
    CHECK(rig.host.quantum_left == 0u && rig.sent[0] >= 4u && rig.sent[0] <= 6u);
    SKY_Host_SetQuantum(&rig.host, UINT64_MAX);
    finish();
    CHECK(blocks[0].status == SKY_STATUS_DONE && blocks[1].status == SKY_STATUS_DONE);
}

/* ---- queues ----------------------------------------------------------------------------------------------------------- */

static void test_without_a_bound_all_windows_are_filled(void)
{
    open_with(host_usual);
    begin(0, SKY_HOST_PUT, LARGE_CHUNKS, 1);
    while (run_once() == rig.now_us)
    {
    }
    CHECK_EQ(peer_of(0)->peer.outstanding, 40);
    host_run(&rig);
    CHECK(peer_of(0)->pace.window == 0u && blocks[0].status == SKY_STATUS_DONE);
    host_close(&rig);
}

static void test_a_link_without_a_queue_is_filled(void)
{
    open_with(host_usual);
    SKY_Host_SetQueue(&rig.host, QUEUE_US);
    begin(0, SKY_HOST_PUT, LARGE_CHUNKS, 1);
    while (run_once() == rig.now_us)
    {
    }
    CHECK_EQ(peer_of(0)->peer.outstanding, 40);
    host_run(&rig);
    CHECK(peer_of(0)->pace.window == 64u && !peer_of(0)->pace.is_filled && blocks[0].status == SKY_STATUS_DONE);
    host_close(&rig);
}

/* Answers wait for each other. */
static void test_a_queue_is_seen_and_kept_short(void)
{
    uint64_t longest_us = 0;

    open_with(host_usual);
    SKY_Host_SetQueue(&rig.host, QUEUE_US);
    rig.link_us = 3000;
    begin(0, SKY_HOST_PUT, LARGE_CHUNKS, 1);
    begin(1, SKY_HOST_PUT, LARGE_CHUNKS, 1);
    for (uint32_t i = 0; rig.host.running > 0u && i < MOST_STEPS; ++i)
    {
        const uint64_t due_us = run_once();

        rig.now_us = rig.host.running == 0u || host_take(&rig, due_us) ? rig.now_us : due_us;
        if (i > 400u)
        {
            longest_us = peer_of(0)->pace.age_us > longest_us ? peer_of(0)->pace.age_us : longest_us;
        }
    }
    CHECK(peer_of(0)->pace.is_filled && peer_of(0)->pace.window < 40u);
    CHECK(longest_us > 0u && longest_us < RTT_US + 4u * 3000u + 2u * QUEUE_US);
    CHECK(blocks[0].status == SKY_STATUS_DONE && blocks[1].status == SKY_STATUS_DONE);
    finish();
}

/* A window that is not used says nothing, and refusals are no round trips. */
static void test_what_is_not_used_does_not_grow(void)
{
    open_with(host_usual);
    SKY_Host_SetQueue(&rig.host, QUEUE_US);
    for (uint32_t i = 0; i < 8u; ++i)
    {
        rig.link_us = i == 0u ? 3000u : 0u; /* the least round trip comes later */
        begin(i, SKY_HOST_PUT, 3, 1);
        host_run(&rig);
    }
    CHECK_EQ(peer_of(0)->pace.least_us, RTT_US);
    CHECK(peer_of(0)->pace.window == 0u && peer_of(0)->pace.age_us >= RTT_US);
    rig.refusal[0] = SKY_STATUS_BUSY;
    rig.refusals   = 3;
    begin(8, SKY_HOST_PUT, 30, 1);
    finish();
    CHECK_EQ(blocks[8].status, SKY_STATUS_DONE);
}

/* Answers to queries that were never sent measure nothing. */
static void test_only_queries_are_measured(void)
{
    static host_wire_t answer;
    SKY_Packet_t       pkt;

    open_with(host_usual);
    SKY_Host_SetQueue(&rig.host, QUEUE_US);
    begin(0, SKY_HOST_PUT, 8, 1);
    while (run_once() == rig.now_us)
    {
    }
    for (uint64_t number = 0; number <= 9u; number += 9u)
    {
        answer = rig.wire[0];
        CHECK_EQ(SKY_Packet_Decode(answer.bytes, answer.len, &pkt), SKY_STATUS_OK);
        CHECK(pkt.op == SKY_OP_HAS && SKY_REQUEST_NUMBER(pkt.request_id) == 1u);
        pkt.request_id = SKY_REQUEST_FIRST(pkt.request_id) | number;
        answer.len     = (uint32_t)SKY_Packet_Encode(&pkt, answer.bytes, sizeof(answer.bytes));
        SKY_Host_Receive(&rig.host, rig.now_us + 1u, ENDPOINT0, answer.bytes, answer.len);
        CHECK_EQ(peer_of(0)->pace.ages, 0);
    }
    ++rig.now_us;
    host_run(&rig);
    CHECK(blocks[0].status == SKY_STATUS_DONE && peer_of(0)->pace.ages > 0u);
    host_close(&rig);
}

int main(void)
{
    RUN(test_some_lanes_are_for_small_blocks);
    RUN(test_the_last_lane_is_for_another_one);
    RUN(test_lanes_of_all_satellites_are_kept_too);
    RUN(test_who_has_no_lane_waits);
    RUN(test_who_waits_too_long_ends);
    RUN(test_a_quantum_is_sent);
    RUN(test_what_is_left_of_a_quantum_may_be_nothing);
    RUN(test_without_a_bound_all_windows_are_filled);
    RUN(test_a_link_without_a_queue_is_filled);
    RUN(test_a_queue_is_seen_and_kept_short);
    RUN(test_what_is_not_used_does_not_grow);
    RUN(test_only_queries_are_measured);
    return CHECK_RESULT();
}
