/**
 * @file
 * The host where something runs out, contradicts itself, or comes from whom it must not.
 */
#include "host_rig.h"

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static SKY_HostPlace_t fallbacks[SATELLITES];
static uint8_t         up[64u * CHUNK], down[64u * CHUNK], have[16];

static void open_with(host_sizes_t sizes)
{
    host_open(&rig, sizes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(fallbacks, 0, sizeof(fallbacks));
    (void)memset(have, 0, sizeof(have));
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
}

static uint32_t run(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    return block->status;
}

static void put(uint32_t number, uint32_t chunks, const SKY_HostPlace_t *where, uint32_t servers)
{
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, number, chunks, where, servers, up);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
}

static void check_wrong(SKY_HostBlock_t block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_WRONG);
    CHECK_EQ(block.last_status, SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 0);
    CHECK_EQ(rig.host.running, 0);
}

static void test_numbers_that_contradict_each_other(void)
{
    SKY_HostPlace_t wrong[2] = {host_place(0), host_place(1)};

    open_with(host_usual);
    const SKY_HostBlock_t good = host_block(SKY_HOST_GET, 1, 8, places, 2, down);
    SKY_HostBlock_t       block;

    CHECK_EQ(SKY_Host_Pieces(&rig.host, &good), 2);
    block      = good;
    block.kind = SKY_HOST_PUT + 1u;
    check_wrong(block);
    block         = good;
    block.servers = NULL;
    check_wrong(block);
    block              = good;
    block.server_count = 0;
    check_wrong(block);
    block             = good;
    block.deadline_ms = 0;
    check_wrong(block);
    block      = good;
    block.data = NULL;
    check_wrong(block);
    block                  = good;
    block.stripe.block_len = 1;
    check_wrong(block);
    block           = good;
    block.rounds    = SKY_HOST_ROUNDS + 1u;
    block.fallbacks = fallbacks;
    block.have      = have;
    check_wrong(block);
    block.rounds    = 1;
    block.fallbacks = NULL;
    check_wrong(block);
    block.fallbacks = fallbacks;
    block.have      = NULL;
    check_wrong(block);
    block.have = have;
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 2);
    fallbacks[1] = (SKY_HostPlace_t){1, 0, 1, 1, ENDPOINT0, 0, 0}; /* a slot is missing */
    check_wrong(block);
    wrong[1].plane = 0; /* a server has to have a place at first */
    block          = good;
    block.servers  = wrong;
    check_wrong(block);
    wrong[1] = (SKY_HostPlace_t){1, 0, 1, 1, ENDPOINT0, 0, 0};
    check_wrong(block);
    wrong[1] = (SKY_HostPlace_t){1, 1, 1, 1, ENDPOINT0, 1, 0}; /* a home has a plane and a slot, */
    check_wrong(block);
    wrong[1] = (SKY_HostPlace_t){1, 1, 1, 1, ENDPOINT0, 0, 1};
    check_wrong(block);
    wrong[1] = (SKY_HostPlace_t){1, 1, 1, 1, ENDPOINT0, 2, 1}; /* and this one has both */
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 2);

    /* A put looks at no fallbacks. */
    block        = good;
    block.kind   = SKY_HOST_PUT;
    block.rounds = SKY_HOST_ROUNDS + 1u;
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 2);
    host_close(&rig);
}

/* A put goes to those that lack their shares alone. If nobody does there is nothing to put. */
static void test_a_put_leaves_out_who_holds_its_share(void)
{
    bool holders[2] = {true, false};

    open_with(host_usual);
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, 1, 9, places, 2, up);

    block.holders = holders;
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 1);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.chunks, 4);
    CHECK_EQ(block.lost, 0);
    CHECK_EQ(rig.satellites[0].store.counters.chunks, 0);
    CHECK_EQ(rig.satellites[1].store.counters.chunks, 4);
    holders[1] = true;
    check_wrong(block);

    /* A get asks all of them. */
    block         = host_block(SKY_HOST_GET, 1, 9, places, 2, down);
    block.holders = holders;
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 2);
    host_close(&rig);
}

static void test_memory_that_is_none(void)
{
    SKY_HostPeerMemory_t peers;
    SKY_Host_t           host;

    open_with(host_usual);
    peers            = rig.peers;
    peers.peer_count = 0;
    CHECK(!SKY_Host_Init(&host, &rig.host.shell, &rig.host.cfg, &peers));
    for (uint32_t i = 0; i < 4u; ++i)
    {
        SKY_HostBlockMemory_t blocks = rig.blocks;

        blocks.work_count  = i == 0 ? 0 : blocks.work_count;
        blocks.piece_count = i == 1 ? 0 : blocks.piece_count;
        blocks.lane_count  = i == 2 ? 0 : i == 3 ? SKY_HOST_LANES_MAX + 1u : blocks.lane_count;
        CHECK(!SKY_Host_Lend(&rig.host, &blocks));
    }
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, 1, 8, places, 2, up);

    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
    CHECK(!SKY_Host_Lend(&rig.host, &rig.blocks)); /* while one runs */
    host_run(&rig);
    (void)memset(rig.blocks.lanes, 0xff, rig.blocks.lane_count * sizeof(*rig.blocks.lanes)); /* whatever lies there */
    CHECK(SKY_Host_Lend(&rig.host, &rig.blocks));
    put(2, 8, places, 2);
    CHECK_EQ(rig.blocks.lanes[rig.blocks.lane_count - 1u].request_id, UINT64_MAX); /* it takes no memory before its use */
    SKY_Host_SetBudget(&rig.host, 0);
    CHECK_EQ(rig.host.budget, 1);
    host_close(&rig);
}

static void test_memory_that_is_full(void)
{
    SKY_HostBlock_t blocks[3];

    open_with((host_sizes_t){8, 2, 3, 2, true});
    for (uint32_t i = 0; i < 3u; ++i)
    {
        blocks[i] = host_block(SKY_HOST_PUT, i, 2, places, i == 1 ? 2 : 1, up);
    }
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[0]), SKY_HOST_BEGUN);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[1]), SKY_HOST_BEGUN);
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[2]), SKY_HOST_FULL); /* no place for another block */
    host_run(&rig);                                                             /* three pieces, and two lanes */
    CHECK_EQ(blocks[0].status, SKY_STATUS_DONE);
    CHECK_EQ(blocks[1].status, SKY_STATUS_DONE);
    SKY_HostBlock_t large = host_block(SKY_HOST_PUT, 9, 4, places, 4, up);

    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &large), SKY_HOST_FULL); /* four pieces */
    host_close(&rig);
}

/* Who was not used for the longest time is forgotten; while all are busy, nobody is. */
static void test_more_satellites_than_there_is_room_for(void)
{
    open_with((host_sizes_t){2, 16, 64, 64, true});
    put(1, 2, &places[0], 1);
    put(2, 2, &places[1], 1);
    put(3, 2, &places[0], 1);
    put(4, 2, &places[2], 1); /* in the place of the second */
    CHECK_EQ(rig.host.peer_used, 2);
    CHECK_EQ(rig.host.peers.peers[0].peer.addr.slot, 1);
    CHECK_EQ(rig.host.peers.peers[1].peer.addr.slot, 3);
    SKY_HostBlock_t wide = host_block(SKY_HOST_PUT, 5, 8, places, 4, up);

    CHECK_EQ(run(&wide), SKY_STATUS_BUSY);
    CHECK_EQ(SKY_Host_Run(&rig.host, rig.now_us, true), UINT64_MAX);
    CHECK_EQ(rig.host.piece_free_count, rig.blocks.piece_count);
    put(6, 2, &places[3], 1);
    host_close(&rig);
}

static void test_a_call_is_ended(void)
{
    SKY_HostBlock_t blocks[3];

    open_with(host_usual);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        blocks[i] = host_block(i == 0 ? SKY_HOST_PUT : SKY_HOST_GET, i, 8, places, 2, up);
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[i]), SKY_HOST_BEGUN);
    }
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    SKY_Host_Stop(&rig.host, rig.now_us, &blocks[1], SKY_STATUS_CANCELLED);
    CHECK_EQ(blocks[1].status, SKY_STATUS_CANCELLED);
    CHECK_EQ(rig.host.running, 2);
    SKY_Host_Stop(&rig.host, rig.now_us, NULL, SKY_STATUS_CANCELLED);
    CHECK_EQ(blocks[0].status, SKY_STATUS_CANCELLED);
    CHECK_EQ(blocks[2].status, SKY_STATUS_CANCELLED);
    CHECK_EQ(rig.host.running, 0);
    const uint64_t stale = rig.host.counters.stale;

    CHECK(host_take(&rig, UINT64_MAX)); /* what comes now is for nobody */
    CHECK_EQ(rig.host.counters.stale, stale + 1);
    host_close(&rig);
}

/* Pieces whose block has ended leave their queue unheard; those whose time is over do not begin. */
static void test_what_waits_in_a_queue(void)
{
    SKY_HostBlock_t blocks[40];

    open_with((host_sizes_t){8, 64, 64, 64, true});
    rig.is_silent[0] = true;
    for (uint32_t i = 0; i < 40u; ++i)
    {
        blocks[i]             = host_block(SKY_HOST_GET, i, 8, places, 1, down);
        blocks[i].deadline_ms = i < 20u ? 1000 : 900;
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &blocks[i]), SKY_HOST_BEGUN);
    }
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    SKY_Host_Stop(&rig.host, rig.now_us, &blocks[19], SKY_STATUS_CANCELLED);
    host_run(&rig);
    for (uint32_t i = 0; i < 40u; ++i)
    {
        CHECK_EQ(blocks[i].status, i == 19u ? SKY_STATUS_CANCELLED : SKY_STATUS_EXPIRED);
    }
    CHECK_EQ(blocks[39].failed_slot, 1);
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    CHECK_EQ(rig.host.piece_free_count, rig.blocks.piece_count);
    host_close(&rig);
}

/* Blocks that wait behind others with later deadlines end when their own deadline passes, not when a lane gets free. */
static void test_deadlines_of_what_waits_in_a_queue(void)
{
    SKY_HostBlock_t first[SKY_HOST_LANES], behind[5];

    open_with((host_sizes_t){8, 64, 64, 64, true});
    put(1000, 2, places, 2);
    rig.is_silent[0] = true;
    for (uint32_t i = 0; i < SKY_HOST_LANES; ++i)
    {
        first[i] = host_block(SKY_HOST_GET, i, 8, places, 1, down);
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &first[i]), SKY_HOST_BEGUN);
    }
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    const uint64_t begun_us = rig.now_us;

    for (uint32_t i = 0; i < 5u; ++i)
    {
        behind[i]             = host_block(SKY_HOST_GET, 1000, 2, places, 2, down);
        behind[i].deadline_ms = 900u - 100u * i;
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &behind[i]), SKY_HOST_BEGUN);
    }
    CHECK(rig.host.peers.peers[0].piece_first != SKY_HOST_NONE);
    SKY_Host_Stop(&rig.host, rig.now_us, &behind[4], SKY_STATUS_CANCELLED); /* the earliest deadline goes with it */
    host_run(&rig);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        CHECK_EQ(behind[i].status, SKY_STATUS_EXPIRED);
        CHECK_EQ(behind[i].duration_us, 1000u * behind[i].deadline_ms);
        CHECK_EQ(behind[i].failed_slot, 1);
        CHECK_EQ(behind[i].chunks, 1); /* the other satellite's */
    }
    for (uint32_t i = 0; i < SKY_HOST_LANES; ++i)
    {
        CHECK_EQ(first[i].status, SKY_STATUS_EXPIRED);
        CHECK_EQ(first[i].duration_us, 1000u * first[i].deadline_ms);
    }
    CHECK_EQ(rig.now_us, begun_us + 5000000u);
    CHECK(SKY_Host_Run(&rig.host, rig.now_us, true) == UINT64_MAX); /* nothing is waited for */
    CHECK_EQ(rig.host.piece_free_count, rig.blocks.piece_count);
    host_close(&rig);
}

static void test_packets_that_are_too_large(void)
{
    static const uint32_t kinds[] = {SKY_HOST_PUT, SKY_HOST_GET};

    for (uint32_t i = 0; i < 2u; ++i)
    {
        open_with(host_usual);
        SKY_HostBlock_t block = host_block(kinds[i], 1, 8, places, 1, up);

        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
        (void)SKY_Host_Run(&rig.host, rig.now_us, true);
        const uint64_t id = rig.blocks.lanes[0].request_id;

        SKY_Host_RefuseTooLarge(&rig.host, rig.now_us, id | 1u);
        CHECK_EQ(block.status, SKY_STATUS_TOO_LARGE);
        SKY_Host_RefuseTooLarge(&rig.host, rig.now_us, id | 1u);                     /* once more: nobody */
        SKY_Host_RefuseTooLarge(&rig.host, rig.now_us, UINT64_C(0xFFFF) << 16 | id); /* no lane at all */
        host_close(&rig);
    }
}

static void test_packets_that_are_not_believed(void)
{
    open_with(host_usual);
    put(1, 4, places, 1);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 4, places, 1, down);

    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    rig.wire[0].endpoint  = ENDPOINT0 + 1u; /* from another endpoint */
    rig.wire[1].bytes[40] = (uint8_t)~rig.wire[1].bytes[40];
    CHECK(host_take(&rig, UINT64_MAX));
    CHECK_EQ(rig.host.counters.stale, 1);
    CHECK(host_take(&rig, UINT64_MAX));
    CHECK_EQ(rig.host.counters.undecoded, 1);
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);

    /* Another satellite says what this one holds: nobody believes it. What was on the way it may say. */
    rig.refusal[0] = SKY_STATUS_NOT_FOUND;
    rig.refused_by = (SKY_Addr_t){2, 2};
    rig.refusals   = 1;
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    rig.refusal[0] = SKY_STATUS_UNREACHABLE;
    rig.refusals   = 1;
    CHECK_EQ(run(&block), SKY_STATUS_UNREACHABLE);
    host_close(&rig);
}

static void test_a_number_that_another_host_has(void)
{
    static const uint32_t kinds[] = {SKY_HOST_PUT, SKY_HOST_GET};

    for (uint32_t i = 0; i < 2u; ++i)
    {
        host_sizes_t sizes = host_usual;

        sizes.keeps_number = false;
        open_with(sizes);
        put(1, 8, places, 1);
        rig.refusal[0]        = SKY_STATUS_REFUSED;
        rig.refusals          = 1;
        SKY_HostBlock_t block = host_block(kinds[i], 1, 8, places, 1, i == 0 ? up : down);

        CHECK_EQ(run(&block), SKY_STATUS_DONE);
        CHECK(rig.host.self.slot != 77u);
        CHECK_EQ(rig.host.redraws, 0); /* the block came through, so the new number is this host's alone */
        host_close(&rig);
    }
    /* So many collisions in a row are no accident. */
    host_sizes_t sizes = host_usual;

    sizes.keeps_number = false;
    open_with(sizes);
    rig.refusal[0]        = SKY_STATUS_REFUSED;
    rig.refusals          = UINT32_MAX;
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 8, places, 1, down);

    CHECK_EQ(run(&block), SKY_STATUS_REFUSED);
    CHECK_EQ(rig.host.redraws, 8);
    /* From another one than the gateway it is the refusal of a satellite. */
    rig.refused_by = (SKY_Addr_t){2, 2};
    CHECK_EQ(run(&block), SKY_STATUS_REFUSED);
    CHECK_EQ(rig.host.redraws, 8);
    rig.refusals = 0;
    put(1, 8, places, 1);
    CHECK_EQ(rig.host.redraws, 0);
    host_close(&rig);
}

/* Nothing is late while what has come is still being read. */
static void test_timers_wait_for_what_has_come(void)
{
    open_with(host_usual);
    put(1, 4, places, 1);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 4, places, 1, down);

    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
    CHECK_EQ(SKY_Host_Run(&rig.host, rig.now_us, false), rig.now_us);
    rig.now_us += 6000000u;
    CHECK_EQ(SKY_Host_Run(&rig.host, rig.now_us, false), rig.now_us);
    CHECK_EQ(block.status, SKY_STATUS_RUNNING);
    while (host_take(&rig, UINT64_MAX))
    {
    }
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    host_close(&rig);
}

/* Four satellites through one endpoint share its way; a silent one does not keep the others waiting. */
static void test_a_way_that_is_shared(void)
{
    SKY_HostPlace_t shared[SATELLITES];

    open_with(host_usual);
    put(1, 64, places, 4);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        shared[i]          = places[i];
        shared[i].endpoint = ENDPOINT0; /* all go in over the first */
    }
    SKY_Host_SetBudget(&rig.host, 8);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 64, shared, 4, down);

    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    CHECK_EQ(rig.host.way_count, 1);
    uint32_t on_way = 0;

    for (uint32_t i = 0; i < rig.host.peer_used; ++i)
    {
        on_way += rig.host.peers.peers[i].peer.outstanding;
    }
    CHECK(on_way > 0 && on_way <= 8);
    SKY_Host_Stop(&rig.host, rig.now_us, NULL, SKY_STATUS_CANCELLED);
    host_close(&rig);
}

int main(void)
{
    RUN(test_numbers_that_contradict_each_other);
    RUN(test_a_put_leaves_out_who_holds_its_share);
    RUN(test_memory_that_is_none);
    RUN(test_memory_that_is_full);
    RUN(test_more_satellites_than_there_is_room_for);
    RUN(test_a_call_is_ended);
    RUN(test_what_waits_in_a_queue);
    RUN(test_deadlines_of_what_waits_in_a_queue);
    RUN(test_packets_that_are_too_large);
    RUN(test_packets_that_are_not_believed);
    RUN(test_a_number_that_another_host_has);
    RUN(test_timers_wait_for_what_has_come);
    RUN(test_a_way_that_is_shared);
    return CHECK_RESULT();
}
