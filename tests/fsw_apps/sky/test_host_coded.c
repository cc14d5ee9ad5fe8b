/**
 * @file
 * The host and blocks with parity: what may be lost, what is asked for when, and what the host says of it.
 */
#include "host_rig.h"

#define CHUNKS     7u /* of data: rows of two with two of parity, and a last row of one */
#define CHUNKS_ALL 8u /* the last row has two, one of them of one byte */
#define ROWS       4u
#define BYTES      ((CHUNKS - 1u) * CHUNK + 1u)

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES], fallbacks[SATELLITES];
static uint8_t         up[CHUNKS_ALL * CHUNK], down[CHUNKS_ALL * CHUNK], parity[2u * ROWS * CHUNK], have[4];
static SKY_HostRow_t   rows[ROWS];

static void open_with(host_sizes_t sizes, bool asks_all)
{
    host_open(&rig, sizes);
    rig.host.cfg.asks_all = asks_all;
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(fallbacks, 0, sizeof(fallbacks));
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
}

static SKY_HostBlock_t coded_of(SKY_HostKind_t kind, uint32_t number, uint32_t chunks)
{
    SKY_HostBlock_t block = host_block(kind, number, chunks, places, SATELLITES, kind == SKY_HOST_PUT ? up : down);

    CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
    CHECK_EQ(SKY_Stripe_Rows(&block.stripe), ROWS);
    block.parity = parity;
    block.have   = have;
    block.rows   = rows;
    (void)memset(down, 0, sizeof(down));
    return block;
}

static SKY_HostBlock_t coded(SKY_HostKind_t kind, uint32_t number)
{
    return coded_of(kind, number, CHUNKS);
}

static uint32_t run(SKY_HostBlock_t *block)
{
    (void)memset(rig.sent, 0, sizeof(rig.sent));
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    CHECK_EQ(SKY_Host_Run(&rig.host, rig.now_us, true), UINT64_MAX);
    CHECK_EQ(rig.host.piece_free_count, rig.blocks.piece_count);
    return block->status;
}

static void put(uint32_t number)
{
    SKY_HostBlock_t block = coded(SKY_HOST_PUT, number);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.lost, 0);
    CHECK_EQ(block.chunks, 15);
    CHECK_EQ(block.bytes, 12u * CHUNK + 3u); /* the last row has chunks of one byte */
}

static bool is_whole(void)
{
    return memcmp(up, down, BYTES) == 0;
}

/* Let a satellite forget a block. */
static void forget(uint32_t satellite, uint32_t number)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, number);
    CHECK(SKY_Store_Purge(&rig.satellites[satellite].store, 0, key, NULL) > 0);
}

static void test_a_last_row_with_a_short_chunk(void)
{
    for (uint32_t set = 0; set < 1u << SATELLITES; ++set)
    {
        if (set == 3u || set == 5u || set == 6u || set == 10u)
        {
            open_with(host_usual, false);
            SKY_HostBlock_t block = coded_of(SKY_HOST_PUT, 1, CHUNKS_ALL);

            CHECK_EQ(run(&block), SKY_STATUS_DONE);
            for (uint32_t i = 0; i < SATELLITES; ++i)
            {
                if ((set & 1u << i) != 0u)
                {
                    forget(i, 1);
                }
            }
            block = coded_of(SKY_HOST_GET, 1, CHUNKS_ALL);
            CHECK_EQ(run(&block), SKY_STATUS_DONE);
            CHECK(memcmp(up, down, block.stripe.block_len) == 0);
            CHECK_EQ(down[block.stripe.block_len], 0); /* not one byte further */
            host_close(&rig);
        }
    }
}

static void test_parity_goes_up_and_is_not_asked_for(void)
{
    open_with(host_usual, false);
    put(1);
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(is_whole());
    CHECK_EQ(block.chunks, CHUNKS);
    CHECK_EQ(block.bytes, BYTES);
    CHECK_EQ(block.decoded, 0);
    CHECK_EQ(block.lost, 0);
    CHECK_EQ(rig.sent[2], 1); /* the word that the block is used */
    CHECK_EQ(rig.sent[3], 1);
    CHECK_EQ(block.duration_us % RTT_US, 0);
    host_close(&rig);
}

/* Check which block a satellite would evict last. */
static void check_newest(uint32_t satellite, uint32_t number)
{
    SKY_StoreWalk_t walk = {0};
    SKY_BlockInfo_t info;
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, number);
    CHECK(SKY_Store_NextUsed(&rig.satellites[satellite].store, &walk, &info));
    CHECK(memcmp(info.key, key, SKY_KEY_BYTES) == 0);
}

/* Else those with parity alone would evict first what is read most. */
static void test_a_get_uses_the_block_at_all_servers(void)
{
    for (uint32_t chunks = 1; chunks <= CHUNKS; chunks += CHUNKS - 1u)
    {
        open_with(host_usual, false);
        for (uint32_t number = 1; number <= 2u; ++number)
        {
            SKY_HostBlock_t block = host_block(SKY_HOST_PUT, number, chunks, places, SATELLITES, up);

            CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
            block.parity = parity;
            block.rows   = rows;
            CHECK_EQ(run(&block), SKY_STATUS_DONE);
        }
        SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, chunks, places, SATELLITES, down);

        CHECK(SKY_Stripe_Cut(&block.stripe, block.stripe.block_len, CHUNK, 2, 2));
        block.parity = parity;
        block.rows   = rows;
        block.have   = have;
        CHECK_EQ(run(&block), SKY_STATUS_DONE);
        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            if (i < block.stripe.chunk_total)
            {
                check_newest(i, 1);
            }
            CHECK_EQ(rig.sent[i], i < block.stripe.chunk_total ? 1 : 0);
        }
        host_close(&rig);
    }
}

/* Whatever m servers have lost, the block comes; without one more, nobody has it. */
static void test_a_block_comes_without_any_two_servers(void)
{
    for (uint32_t set = 0; set < 1u << SATELLITES; ++set)
    {
        uint32_t lost = 0;

        open_with(host_usual, false);
        put(1);
        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            if ((set & 1u << i) != 0u)
            {
                forget(i, 1);
                ++lost;
            }
        }
        SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

        CHECK_EQ(run(&block), lost <= 2u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK_EQ(is_whole(), lost <= 2u);
        CHECK_EQ(block.decoded > 0u, lost <= 2u && (set & 3u) != 0u);
        CHECK_EQ(block.lost > 0u, (set & 3u) != 0u); /* of the others nobody is asked */
        host_close(&rig);
    }
}

/* Silent satellites cost no deadline: parity is asked for after a while, and at once when the next block begins. */
static void test_silence_of_two_costs_little(void)
{
    for (uint32_t first = 0; first < SATELLITES; ++first)
    {
        for (uint32_t second = first + 1u; second < SATELLITES; ++second)
        {
            open_with(host_usual, false);
            for (uint32_t number = 1; number < 12u; ++number)
            {
                put(number);
            }
            for (uint32_t number = 1; number < 10u; ++number) /* how long answers take is known then */
            {
                SKY_HostBlock_t block = coded(SKY_HOST_GET, number);

                CHECK_EQ(run(&block), SKY_STATUS_DONE);
            }
            rig.is_silent[first]  = true;
            rig.is_silent[second] = true;
            SKY_HostBlock_t block = coded(SKY_HOST_GET, 10);

            CHECK_EQ(run(&block), SKY_STATUS_DONE);
            CHECK(is_whole());
            CHECK(block.duration_us <= 5u * RTT_US);
            block = coded(SKY_HOST_GET, 11);
            CHECK_EQ(run(&block), SKY_STATUS_DONE);
            CHECK(is_whole());
            CHECK(block.duration_us <= 2u * RTT_US);
            host_close(&rig);
        }
    }
}

/* Let a satellite say nothing any more, and what it has said not arrive. */
static void die(uint32_t satellite)
{
    uint32_t left = 0;

    rig.is_silent[satellite] = true;
    for (uint32_t i = 0; i < rig.wire_count; ++i)
    {
        if (rig.wire[i].endpoint != ENDPOINT0 + satellite)
        {
            rig.wire[left] = rig.wire[i];
            ++left;
        }
    }
    rig.wire_count = left;
}

/* Every satellite is a server, so none can stand in. Whenever one dies, after whatever number of chunks, the others give the block. */
static void test_a_death_in_the_middle_costs_little(void)
{
    for (uint32_t dead = 0; dead < SATELLITES; ++dead)
    {
        for (uint32_t come = 0; come < CHUNKS; ++come)
        {
            open_with(host_usual, false);
            for (uint32_t number = 1; number < 11u; ++number)
            {
                put(number);
            }
            for (uint32_t number = 1; number < 10u; ++number)
            {
                SKY_HostBlock_t before = coded(SKY_HOST_GET, number);

                CHECK_EQ(run(&before), SKY_STATUS_DONE);
            }
            SKY_HostBlock_t block = coded(SKY_HOST_GET, 10);

            CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &block), SKY_HOST_BEGUN);
            for (uint32_t taken = 0; taken < come;)
            {
                const uint64_t due_us = SKY_Host_Run(&rig.host, rig.now_us, true);

                if (host_take(&rig, due_us))
                {
                    ++taken;
                }
                else
                {
                    rig.now_us = due_us;
                }
            }
            die(dead);
            host_run(&rig);
            CHECK_EQ(block.status, SKY_STATUS_DONE);
            CHECK(is_whole());
            CHECK(block.duration_us <= 4u * RTT_US);
            host_close(&rig);
        }
    }
}

static uint32_t asked_for_parity(uint32_t number)
{
    SKY_HostBlock_t block = coded(SKY_HOST_GET, number);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(is_whole());
    return block.requests - 2u; /* two servers have data */
}

/* Links that lose packets: waiting for a chunk that may be lost again would take longer than parity does. */
static void test_after_losses_parity_is_asked_for_at_once_for_a_while(void)
{
    open_with(host_usual, false);
    put(1);
    CHECK_EQ(asked_for_parity(1), 0);
    rig.is_silent[0] = true; /* it may be dead: that says nothing of links */
    (void)asked_for_parity(1);
    rig.is_silent[0] = false;
    put(1);
    CHECK_EQ(asked_for_parity(1), 0);
    rig.loses_chunks      = 1;
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(block.repeats > 0u);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        CHECK(asked_for_parity(1) > 0u);
    }
    put(1); /* all answer, so none is slow any more */
    rig.now_us += 30000000u;
    CHECK_EQ(asked_for_parity(1), 0);
    host_close(&rig);
}

static void test_the_fastest_count_if_all_are_asked(void)
{
    open_with(host_usual, true);
    put(1);
    rig.is_silent[0]      = true;
    rig.is_silent[1]      = true;
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(is_whole());
    CHECK_EQ(block.decoded, CHUNKS);
    CHECK_EQ(block.duration_us, RTT_US);
    host_close(&rig);
}

/* A third that is silent may have what is missing: no miss, but the deadline. */
static void test_silence_of_three_is_no_miss(void)
{
    open_with(host_usual, false);
    put(1);
    forget(0, 1);
    forget(2, 1);
    rig.is_silent[3]      = true;
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.failed_slot, 4);
    CHECK_EQ(block.duration_us, 5000000);
    host_close(&rig);
}

/* Let a satellite stand in for one that is lost, or for none. */
static void stand_in(SKY_HostPlace_t *place, bool is_stand_in)
{
    place->home_plane = is_stand_in ? 2 : 0;
    place->home_slot  = is_stand_in ? 1 : 0;
}

/* A miss is sure if more than m satellites deny chunks that were theirs; a stand-in may be among the places in any round. */
static void test_a_stand_in_denies_for_itself(void)
{
    for (uint32_t replaced = 0; replaced < 1u << SATELLITES; ++replaced)
    {
        for (uint32_t rounds = 0; rounds < 2u; ++rounds)
        {
            uint32_t own = 0;

            open_with(host_usual, false);
            for (uint32_t i = 0; i < SATELLITES; ++i)
            {
                const bool is_stand_in = (replaced & 1u << i) != 0u;

                own += is_stand_in ? 0u : 1u;
                fallbacks[i] = host_place(i);
                stand_in(&(rounds == 0u ? places : fallbacks)[i], is_stand_in);
            }
            SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

            block.fallbacks = fallbacks;
            block.rounds    = rounds;
            CHECK_EQ(run(&block), SKY_STATUS_MISS); /* nobody has anything */
            CHECK(own > 2u || block.at_stand_in);
            CHECK(replaced != 0u || !block.at_stand_in);
            host_close(&rig);
        }
    }
}

/* The stand-ins of two servers lack their shares: the others suffice. Without one of them it is a miss, but no sure one. */
static void test_stand_ins_are_lost_chunks(void)
{
    for (uint32_t more = 0; more < 2u; ++more)
    {
        open_with(host_usual, false);
        put(1);
        forget(0, 1);
        forget(3, 1);
        stand_in(&places[0], true);
        stand_in(&places[3], true);
        if (more > 0u)
        {
            forget(1, 1);
        }
        SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

        CHECK_EQ(run(&block), more == 0u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK_EQ(is_whole(), more == 0u);
        CHECK_EQ(block.at_stand_in, more > 0u);
        host_close(&rig);
    }
}

/* Of a refusal and denials the refusal counts: who refuses may have the chunks. */
static void test_a_refusal_counts_before_denials(void)
{
    open_with(host_usual, false);
    put(1);
    forget(1, 1);
    forget(2, 1);
    rig.refusal[0]        = SKY_STATUS_REFUSED;
    rig.refusals          = 1;
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_REFUSED);
    CHECK_EQ(block.failed_slot, 1);
    host_close(&rig);
}

static void test_chunks_elsewhere_are_not_lost(void)
{
    open_with(host_usual, false);
    put(1);
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    /* The chunks of the first are on the third's satellite, and the other way round. */
    places[0]       = host_place(2);
    places[2]       = host_place(0);
    fallbacks[0]    = host_place(0);
    block.fallbacks = fallbacks;
    block.rounds    = 1;
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(is_whole());
    CHECK_EQ(block.passes, 1);
    CHECK_EQ(block.decoded, 0);
    host_close(&rig);
}

static void test_a_put_may_lose_two_servers(void)
{
    static const SKY_Status_t refusals[] = {SKY_STATUS_STORE_FULL, SKY_STATUS_UNREACHABLE, SKY_STATUS_REFUSED};

    for (uint32_t lost = 0; lost <= 3u; ++lost)
    {
        for (uint32_t r = 0; r < sizeof(refusals) / sizeof(refusals[0]); ++r)
        {
            open_with(host_usual, false);
            for (uint32_t i = 0; i < lost; ++i)
            {
                rig.refusal[1u + i] = refusals[r];
            }
            rig.refusals          = 100;
            SKY_HostBlock_t block = coded(SKY_HOST_PUT, 1);

            CHECK_EQ(run(&block), lost <= 2u ? SKY_STATUS_DONE : refusals[r]);
            CHECK(lost > 2u || block.lost + block.chunks == 15u);
            rig.refusals = 0;
            block        = coded(SKY_HOST_GET, 1);
            CHECK_EQ(run(&block) == SKY_STATUS_DONE && is_whole(), lost <= 2u);
            host_close(&rig);
        }
    }
}

/* A silent satellite holds a put up for a few time-outs only, if the others suffice. */
static void test_a_put_does_not_wait_for_the_dead(void)
{
    open_with(host_usual, false);
    put(1);
    rig.is_silent[0]      = true;
    rig.is_silent[3]      = true;
    SKY_HostBlock_t block = coded(SKY_HOST_PUT, 2);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.lost, 4u + 3u); /* the last row has no chunk for the fourth */
    CHECK(block.duration_us < 2000000);
    rig.is_silent[1] = true;
    block            = coded(SKY_HOST_PUT, 3);
    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.duration_us, 5000000);
    host_close(&rig);
}

/* Another content under the key of a block without versions is a lost share; a newer version ends the block at once. */
static void test_another_block_of_the_name(void)
{
    for (uint64_t version = 0; version <= 8u; version += 8u)
    {
        open_with(host_usual, false);
        SKY_HostBlock_t block = coded(SKY_HOST_PUT, 1);

        block.block_version = version;
        block.content       = 70;
        CHECK_EQ(run(&block), SKY_STATUS_DONE);
        forget(1, 1);
        SKY_HostBlock_t other = host_block(SKY_HOST_PUT, 1, 1, &places[1], 1, up);

        other.block_version = version == 0u ? 0u : 9u;
        other.content       = 71;
        CHECK_EQ(run(&other), SKY_STATUS_DONE);
        block               = coded(SKY_HOST_GET, 1);
        block.block_version = version;
        block.content       = 70;
        CHECK_EQ(run(&block), version == 0u ? SKY_STATUS_DONE : SKY_STATUS_BAD_KEY);
        CHECK_EQ(is_whole(), version == 0u);
        if (version != 0u)
        {
            block               = coded(SKY_HOST_PUT, 1);
            block.block_version = version;
            block.content       = 70;
            CHECK_EQ(run(&block), SKY_STATUS_OLD_VERSION);
            CHECK_EQ(block.held_version, 9);
        }
        else
        {
            block         = coded(SKY_HOST_PUT, 1);
            block.content = 72;
            CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
        }
        host_close(&rig);
    }
}

static void test_no_memory_for_satellites_with_parity(void)
{
    static const host_sizes_t two = {2, 16, 64, 64, true};

    open_with(host_usual, false);
    put(1);
    host_close(&rig);
    open_with(two, false);
    SKY_HostBlock_t block = coded(SKY_HOST_GET, 1);

    CHECK_EQ(run(&block), SKY_STATUS_BUSY); /* neither of the two has a chunk, and there is no place for others */
    host_close(&rig);
}

static void test_a_code_needs_memory_and_servers(void)
{
    open_with(host_usual, false);
    const SKY_HostBlock_t good = coded(SKY_HOST_GET, 1);
    SKY_HostBlock_t       wrong[4];

    for (uint32_t i = 0; i < 4u; ++i)
    {
        wrong[i] = good;
    }
    wrong[0].parity       = NULL;
    wrong[1].rows         = NULL;
    wrong[2].have         = NULL;
    wrong[3].server_count = 3;
    for (uint32_t i = 0; i < 4u; ++i)
    {
        CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, &wrong[i]), SKY_HOST_WRONG);
        CHECK_EQ(SKY_Host_Pieces(&rig.host, &wrong[i]), 0);
    }
    wrong[2].kind = SKY_HOST_PUT; /* which notes what comes nowhere, and sends data and parity alike */
    CHECK_EQ(SKY_Host_Pieces(&rig.host, &wrong[2]), 4);
    host_close(&rig);
}

int main(void)
{
    RUN(test_parity_goes_up_and_is_not_asked_for);
    RUN(test_a_get_uses_the_block_at_all_servers);
    RUN(test_a_block_comes_without_any_two_servers);
    RUN(test_a_last_row_with_a_short_chunk);
    RUN(test_silence_of_two_costs_little);
    RUN(test_a_stand_in_denies_for_itself);
    RUN(test_stand_ins_are_lost_chunks);
    RUN(test_a_death_in_the_middle_costs_little);
    RUN(test_a_refusal_counts_before_denials);
    RUN(test_after_losses_parity_is_asked_for_at_once_for_a_while);
    RUN(test_the_fastest_count_if_all_are_asked);
    RUN(test_silence_of_three_is_no_miss);
    RUN(test_chunks_elsewhere_are_not_lost);
    RUN(test_a_put_may_lose_two_servers);
    RUN(test_a_put_does_not_wait_for_the_dead);
    RUN(test_another_block_of_the_name);
    RUN(test_no_memory_for_satellites_with_parity);
    RUN(test_a_code_needs_memory_and_servers);
    return CHECK_RESULT();
}
