/**
 * @file
 * The host: what is sent to whom, what becomes of a block, and what the host says of it.
 */
#include "host_rig.h"

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static SKY_HostPlace_t fallbacks[SATELLITES * 3u];
static uint8_t         up[CHUNKS_MAX * CHUNK], down[CHUNKS_MAX * CHUNK], have[CHUNKS_MAX / 8u + 1u];

static void open_with(host_sizes_t sizes)
{
    host_open(&rig, sizes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(fallbacks, 0, sizeof(fallbacks));
    (void)memset(have, 0, sizeof(have));
    (void)memset(down, 0, sizeof(down));
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
}

static void begin(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    CHECK_EQ(block->status, SKY_STATUS_RUNNING);
}

/* Run one block to its end. @return what became of it */
static uint32_t run(SKY_HostBlock_t *block)
{
    begin(block);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    CHECK(SKY_Host_NextEnded(&rig.host) == NULL);
    return block->status;
}

static void put(uint32_t number, uint32_t chunks, uint32_t first, uint32_t servers)
{
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, number, chunks, &places[first], servers, up);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.chunks, chunks);
    CHECK_EQ(block.bytes, block.stripe.block_len);
}

static SKY_HostBlock_t get_of(uint32_t number, uint32_t chunks, uint32_t servers, uint32_t rounds)
{
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, number, chunks, places, servers, down);

    block.fallbacks = fallbacks;
    block.rounds    = rounds;
    block.have      = have;
    (void)memset(have, 0, sizeof(have));
    (void)memset(down, 0, sizeof(down));
    return block;
}

static void check_whole(const SKY_HostBlock_t *block)
{
    CHECK_EQ(block->status, SKY_STATUS_DONE);
    CHECK_EQ(block->chunks, block->stripe.chunk_total);
    CHECK_EQ(block->bytes, block->stripe.block_len);
    CHECK(memcmp(up, down, block->stripe.block_len) == 0);
}

static void test_what_is_put_comes_back(void)
{
    open_with(host_usual);
    put(1, 41, 0, 4);
    SKY_HostBlock_t block = get_of(1, 41, 4, 0);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    check_whole(&block);
    CHECK_EQ(block.duration_us % RTT_US, 0);
    CHECK_EQ(SKY_Host_Run(&rig.host, rig.now_us, true), UINT64_MAX);
    CHECK_EQ(rig.host.active_count, 0);
    CHECK_EQ(rig.host.piece_free_count, rig.blocks.piece_count);
    host_close(&rig);
}

/* More chunks of one satellite than a piece has. */
/* A satellite that stands in for another one has a share of its own as well. What host_send takes beside PUTs names nobody. */
static void test_a_put_at_a_stand_in_names_the_home(void)
{
    static const SKY_Addr_t nobody = {0, 0}, home = {1, SATELLITES};

    open_with(host_usual);
    places[3]            = host_place(0);
    places[3].home_plane = home.plane;
    places[3].home_slot  = home.slot;
    put(1, 40, 0, SATELLITES);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        CHECK(SKY_Addr_Equal(rig.homes[i], i == 3u ? home : nobody));
    }
    SKY_HostBlock_t block = get_of(1, 40, SATELLITES, 0);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    host_close(&rig);
}

static void test_a_share_of_several_pieces(void)
{
    open_with(host_usual);
    put(1, 4200, 0, 1);
    SKY_HostBlock_t block = get_of(1, 4200, 1, 0);

    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 3);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    check_whole(&block);
    host_close(&rig);
}

static void test_many_blocks_at_once(void)
{
    static uint8_t  data[12][5u * CHUNK];
    SKY_HostBlock_t blocks[12];

    open_with(host_usual);
    for (uint32_t i = 0; i < 12u; ++i)
    {
        blocks[i] = host_block(SKY_HOST_PUT, i, 5, places, 4, up);
        begin(&blocks[i]);
    }
    host_run(&rig);
    for (uint32_t i = 0; i < 12u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
        blocks[i] = host_block(SKY_HOST_GET, i, 5, places, 4, data[i]);
    }
    while (SKY_Host_NextEnded(&rig.host) != NULL)
    {
    }
    for (uint32_t i = 0; i < 12u; ++i)
    {
        begin(&blocks[i]);
    }
    host_run(&rig);
    for (uint32_t i = 0; i < 12u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
        CHECK(memcmp(data[i], up, blocks[i].stripe.block_len) == 0);
    }
    host_close(&rig);
}

/* What the first place denies is asked of the next, and only that. */
static void test_the_next_place_has_what_the_first_denies(void)
{
    SKY_HostBlock_t half;

    open_with(host_usual);
    put(1, 40, 0, 1);
    half = host_block(SKY_HOST_PUT, 1, 40, &places[1], 1, up);
    CHECK_EQ(run(&half), SKY_STATUS_DONE);
    for (uint32_t chunk = 0; chunk < 40u; chunk += 2u)
    {
        uint8_t key[SKY_KEY_BYTES];

        fx_key(key, 1);
        CHECK(SKY_Store_Drop(&rig.satellites[0].store, SKY_Store_Find(&rig.satellites[0].store, 0, key), chunk));
    }
    fallbacks[1]          = host_place(1);
    SKY_HostBlock_t block = get_of(1, 40, 1, 2);
    const uint32_t  hits  = (uint32_t)rig.satellites[1].svc.core.counters.hits;

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    check_whole(&block);
    CHECK_EQ(block.passes, 1);
    CHECK_EQ(rig.satellites[1].svc.core.counters.hits - hits, 20);
    host_close(&rig);
}

/* Let a satellite say of itself that all has arrived that belongs to it. */
static void settle(uint32_t satellite)
{
    rig.satellites[satellite].svc.core.word           = SKY_WORD_SETTLED;
    rig.satellites[satellite].svc.arrivals.row_end_us = UINT64_MAX;
}

/* Who may not have got its chunks yet denies nothing for sure. This is of the last attempt. */
static void test_a_miss_says_whether_satellites_were_settled(void)
{
    SKY_HostBlock_t block;

    open_with(host_usual);
    put(1, 8, 0, 2);
    fallbacks[0] = host_place(2);
    fallbacks[1] = host_place(3);
    settle(0);
    settle(3);
    block = get_of(2, 8, 1, 0); /* only one that is settled is asked */
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK(!block.is_unsettled);
    block = get_of(2, 8, 1, 1); /* its fallback is not settled */
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK(block.is_unsettled);
    settle(2);
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK(!block.is_unsettled);
    block = get_of(1, 8, 2, 1); /* nobody denies a chunk */
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(!block.is_unsettled);
    block = get_of(2, 8, 2, 1);
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK(block.is_unsettled);
    host_close(&rig);
}

static void test_a_miss_says_which_chunk(void)
{
    open_with(host_usual);
    put(1, 8, 0, 2);
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, 1);
    CHECK(SKY_Store_Drop(&rig.satellites[1].store, SKY_Store_Find(&rig.satellites[1].store, 0, key), 5));
    fallbacks[1]          = host_place(2);
    SKY_HostBlock_t block = get_of(1, 8, 2, 1);

    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK_EQ(block.failed_chunk, 5);
    CHECK_EQ(block.failed_slot, 3); /* the last place */
    CHECK(block.last_status == SKY_STATUS_OK || block.last_status == SKY_STATUS_NOT_FOUND);

    /* Without a fallback a denial ends the share at once. */
    block = get_of(1, 8, 2, 0);
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    CHECK_EQ(block.failed_slot, 2);
    CHECK_EQ(block.failed_chunk, 5);
    host_close(&rig);
}

/* A silent satellite is passed over after its part of the time, and so are all blocks that are to come from it. What begins later asks it
 * again: which satellites are left alone is for the ground to say (sky_reach.h). */
static void test_silence_is_passed_over(void)
{
    open_with(host_usual);
    put(1, 8, 1, 1);
    rig.is_silent[0]      = true;
    fallbacks[0]          = host_place(1);
    SKY_HostBlock_t block = get_of(1, 8, 1, 1);
    SKY_HostBlock_t other;
    uint8_t         others[1];

    const uint64_t begun_us = rig.now_us;

    begin(&block);
    while (rig.now_us < begun_us + 2000000u)
    {
        rig.now_us = SKY_Host_Run(&rig.host, rig.now_us, true);
    }
    CHECK(!rig.host.peers.peers[1].silent && rig.host.running == 1u);
    other      = block;
    other.have = others;
    begin(&other);
    host_run(&rig);
    check_whole(&block);
    CHECK(block.duration_us >= 2500000 && block.duration_us < 2700000);
    CHECK_EQ(other.status, SKY_STATUS_DONE);
    CHECK(other.duration_us < 900000);
    while (SKY_Host_NextEnded(&rig.host) != NULL)
    {
    }
    block = get_of(1, 8, 1, 1);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(block.duration_us >= 2500000 && block.duration_us < 2700000);

    /* If the others deny it, what was silent has the last word. */
    fallbacks[0] = host_place(2);
    block        = get_of(1, 8, 1, 1);
    while (SKY_Host_NextEnded(&rig.host) != NULL)
    {
    }
    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.failed_slot, 1);
    host_close(&rig);
}

static void test_all_are_silent(void)
{
    open_with(host_usual);
    rig.is_silent[0]      = true;
    rig.is_silent[1]      = true;
    fallbacks[0]          = host_place(1);
    SKY_HostBlock_t block = get_of(1, 8, 1, 1);

    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.duration_us, 5000000);
    block = host_block(SKY_HOST_PUT, 1, 8, places, 1, up);
    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.duration_us, 5000000);
    host_close(&rig);
}

/* What may be asked elsewhere, and what holds at any place. */
static void test_refusals(void)
{
    static const struct
    {
        SKY_Status_t said;
        uint32_t     without, with; /* a fallback that has it */
    } cases[] = {
        {SKY_STATUS_UNREACHABLE, SKY_STATUS_UNREACHABLE, SKY_STATUS_DONE},
        {SKY_STATUS_HOP_LIMIT, SKY_STATUS_HOP_LIMIT, SKY_STATUS_DONE},
        {SKY_STATUS_BAD_KEY, SKY_STATUS_BAD_KEY, SKY_STATUS_BAD_KEY},
        {SKY_STATUS_TOO_LARGE, SKY_STATUS_TOO_LARGE, SKY_STATUS_TOO_LARGE},
        {SKY_STATUS_REFUSED, SKY_STATUS_REFUSED, SKY_STATUS_REFUSED},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        for (uint32_t rounds = 0; rounds < 2u; ++rounds)
        {
            open_with(host_usual);
            put(1, 8, 1, 1);
            rig.refusal[0]        = cases[i].said;
            rig.refusals          = 1000;
            fallbacks[0]          = host_place(1);
            SKY_HostBlock_t block = get_of(1, 8, 1, rounds);

            CHECK_EQ(run(&block), rounds == 0 ? cases[i].without : cases[i].with);
            host_close(&rig);
        }
    }
    /* Where nobody else has it either, what was unreachable counts. */
    open_with(host_usual);
    rig.refusal[0]        = SKY_STATUS_UNREACHABLE;
    rig.refusals          = 1000;
    fallbacks[0]          = host_place(1);
    SKY_HostBlock_t block = get_of(1, 8, 1, 1);

    CHECK_EQ(run(&block), SKY_STATUS_UNREACHABLE);
    CHECK_EQ(block.last_status, SKY_STATUS_UNREACHABLE);
    CHECK_EQ(block.failed_slot, 1);
    host_close(&rig);
}

int main(void)
{
    RUN(test_what_is_put_comes_back);
    RUN(test_a_put_at_a_stand_in_names_the_home);
    RUN(test_a_share_of_several_pieces);
    RUN(test_many_blocks_at_once);
    RUN(test_the_next_place_has_what_the_first_denies);
    RUN(test_a_miss_says_whether_satellites_were_settled);
    RUN(test_a_miss_says_which_chunk);
    RUN(test_silence_is_passed_over);
    RUN(test_all_are_silent);
    RUN(test_refusals);
    return CHECK_RESULT();
}
