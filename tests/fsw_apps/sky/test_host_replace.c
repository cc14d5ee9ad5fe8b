/**
 * @file
 * A satellite that is late while others have answered: who counts as late, and what another place takes over.
 */
#include "host_rig.h"

#define SERVERS_MAX 4u

static host_rig_t      rig;
static uint8_t         data[64u * CHUNK];
static uint8_t         parity[64u * CHUNK];
static uint8_t         have[16];
static SKY_HostRow_t   rows[32];
static SKY_HostPlace_t places[SERVERS_MAX];
static SKY_HostPlace_t besides[8u * SERVERS_MAX];

/* Begin a block of so many chunks, over the first satellites. */
static SKY_HostBlock_t begin(uint32_t kind, uint32_t number, uint32_t chunks, uint32_t servers)
{
    for (uint32_t i = 0; i < SERVERS_MAX; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(besides, 0, sizeof(besides));
    for (uint32_t i = 0; kind == SKY_HOST_PUT && i < sizeof(data); ++i)
    {
        data[i] = (uint8_t)(number + i / 7u);
    }
    SKY_HostBlock_t block = host_block(kind, number, chunks, places, servers, data);

    block.have      = have;
    block.fallbacks = besides;
    return block;
}

/* The same with an erasure code over all four: a row has two data chunks and two of parity, or three and one. */
static SKY_HostBlock_t begin_coded(uint32_t kind, uint32_t number, uint8_t code_m)
{
    SKY_HostBlock_t block = begin(kind, number, 12, 4);

    CHECK(SKY_Stripe_Cut(&block.stripe, 11u * CHUNK + 1u, CHUNK, (uint8_t)(4u - code_m), code_m));
    block.parity = parity;
    block.rows   = rows;
    return block;
}

static void start(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
}

/* One run, and what comes then. @return true if a satellite is suspected */
static bool step(SKY_Addr_t *satellite)
{
    const uint64_t due_us = SKY_Host_Run(&rig.host, rig.now_us, true);
    const bool     is     = SKY_Host_NextSuspect(&rig.host, satellite);

    if (!is && rig.host.running > 0u && !host_take(&rig, due_us))
    {
        CHECK(due_us != UINT64_MAX);
        rig.now_us = due_us;
    }
    return is;
}

/* Run until a satellite is suspected. @return false if nothing runs any more, and none was */
static bool is_told(SKY_Addr_t *satellite)
{
    uint32_t steps = 0;
    bool     is    = false;

    for (; rig.host.running > 0u && !is && steps < MOST_STEPS; ++steps)
    {
        is = step(satellite);
    }
    CHECK(steps < MOST_STEPS);
    return is;
}

static bool is_number(SKY_Addr_t satellite, uint32_t number)
{
    return satellite.plane == 1u && satellite.slot == number + 1u;
}

/* Let a satellite stand in for the server of a share. */
static bool stand_in(const SKY_HostBlock_t *block, uint32_t share, uint32_t satellite)
{
    besides[share]            = host_place(satellite);
    besides[share].home_plane = 1;
    besides[share].home_slot  = (uint16_t)(share + 1u);
    return SKY_Host_Replace(&rig.host, rig.now_us, block, share);
}

static bool comes_back(uint32_t number, uint32_t chunks, const uint32_t *satellites, uint32_t servers)
{
    SKY_HostBlock_t block = begin(SKY_HOST_GET, number, chunks, servers);

    for (uint32_t i = 0; i < servers; ++i)
    {
        places[i] = host_place(satellites[i]);
    }
    (void)memset(data, 0, sizeof(data));
    start(&block);
    host_run(&rig);
    for (uint32_t i = 0; i < block.stripe.block_len; ++i)
    {
        if (data[i] != (uint8_t)(number + i / 7u))
        {
            return false;
        }
    }
    return block.status == SKY_STATUS_DONE;
}

/* ---- puts ------------------------------------------------------------------------------------------------------------ */

static void test_another_satellite_takes_the_share_of_one_that_is_late(void)
{
    static const uint32_t where[] = {0, 3, 2};
    SKY_Addr_t            late    = {0, 0};

    host_open(&rig, host_usual);
    rig.is_silent[1]      = true;
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 30, 3);

    start(&block);
    CHECK(is_told(&late) && is_number(late, 1));
    CHECK_EQ(rig.now_us - 5000000u, RTT_US + RTT_US / 2u + SKY_HOST_RTO_MIN_US);
    CHECK(!SKY_Host_NextSuspect(&rig.host, &late));
    CHECK(!stand_in(&block, 0, 3)); /* all of it is taken already */
    CHECK(stand_in(&block, 1, 3));
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK_EQ(block.chunks, 30);
    CHECK(block.duration_us < 4u * RTT_US && block.lost == 0u);
    CHECK(is_number(rig.homes[1], 1)); /* of chunks 1, 5, 9, ..., the last of which went to the stand-in */
    CHECK(!SKY_Host_Replace(&rig.host, rig.now_us, &block, 1));
    rig.is_silent[1] = false;
    CHECK(comes_back(1, 30, where, 3));
    host_close(&rig);
}

/* Who was late takes its share before the stand-in has, which may wait for its turn, or be under way. */
static void test_who_was_late_may_still_take_it(void)
{
    for (uint32_t lanes = 3; lanes <= 64u; lanes += 61u)
    {
        const host_sizes_t    sizes   = {8, 16, 64, lanes, true};
        static const uint32_t where[] = {0, 1, 2};
        SKY_Addr_t            late    = {0, 0};

        host_open(&rig, sizes);
        rig.is_silent[1]      = true;
        SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 30, 3);

        start(&block);
        CHECK(is_told(&late) && is_number(late, 1));
        if (lanes == 3u) /* others take the lanes that are free */
        {
            static uint8_t         more[3u * CHUNK];
            static SKY_HostPlace_t at[1];
            static SKY_HostBlock_t other;
            static SKY_HostBlock_t second;

            rig.is_silent[2] = true;
            at[0]            = host_place(2);
            other            = host_block(SKY_HOST_PUT, 2, 1, at, 1, more);
            second           = host_block(SKY_HOST_PUT, 3, 1, at, 1, more);
            start(&other);
            start(&second);
            (void)SKY_Host_Run(&rig.host, rig.now_us, true);
        }
        rig.is_silent[3] = true;
        CHECK(stand_in(&block, 1, 3));
        rig.is_silent[1] = false;
        for (uint32_t steps = 0; block.status == SKY_STATUS_RUNNING && steps < MOST_STEPS; ++steps)
        {
            (void)step(&late);
        }
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        CHECK(block.duration_us < 1000000u && block.chunks == 30u);
        rig.is_silent[2] = false;
        rig.is_silent[3] = false;
        host_run(&rig);
        CHECK_EQ(rig.host.piece_free_count, 64);
        CHECK(comes_back(1, 30, where, 3));
        host_close(&rig);
    }
}

static void test_the_stand_in_may_be_late_too(void)
{
    static const uint32_t where[] = {0, 3};
    SKY_Addr_t            late    = {0, 0};

    host_open(&rig, host_usual);
    rig.is_silent[1]      = true;
    rig.is_silent[2]      = true;
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

    start(&block);
    CHECK(is_told(&late) && is_number(late, 1));
    CHECK(stand_in(&block, 1, 2));
    CHECK(is_told(&late) && is_number(late, 2));
    CHECK(stand_in(&block, 1, 3));
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK(block.duration_us < 10u * RTT_US);
    CHECK_EQ(rig.host.piece_free_count, 64);
    rig.is_silent[1] = false;
    CHECK(comes_back(1, 8, where, 2));
    host_close(&rig);
}

/* What one place refuses the other may take; a newer version is the end at both. */
static void test_one_of_both_places_refuses(void)
{
    static const SKY_Status_t words[] = {SKY_STATUS_STORE_FULL, SKY_STATUS_OLD_VERSION};

    for (uint32_t i = 0; i < 2u; ++i)
    {
        SKY_Addr_t late = {0, 0};

        host_open(&rig, host_usual);
        rig.is_silent[1]      = true;
        SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

        start(&block);
        CHECK(is_told(&late) && is_number(late, 1));
        rig.refusal[3] = words[i];
        rig.refusals   = 1000;
        CHECK(stand_in(&block, 1, 3));
        for (uint32_t steps = 0; rig.refusals == 1000u && steps < MOST_STEPS; ++steps)
        {
            (void)step(&late);
        }
        rig.is_silent[1] = false;
        host_run(&rig);
        CHECK_EQ(block.status, i == 0u ? SKY_STATUS_DONE : SKY_STATUS_OLD_VERSION);
        CHECK(rig.host.piece_free_count == 64u && block.duration_us < 2000000u);
        host_close(&rig);
    }
}

static void test_there_is_no_memory_for_another_place(void)
{
    for (uint32_t i = 0; i < 2u; ++i)
    {
        const host_sizes_t sizes = {i == 0u ? 2 : 8, 16, i == 0u ? 64 : 2, 64, true};
        SKY_Addr_t         late  = {0, 0};

        host_open(&rig, sizes);
        rig.is_silent[1]      = true;
        SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

        start(&block);
        CHECK(is_told(&late));
        (void)memset(&besides[1], 0, sizeof(besides[1]));
        rig.is_silent[0]      = true;
        SKY_HostBlock_t other = host_block(SKY_HOST_PUT, 2, 1, places, 1, data);

        start(&other); /* it has the last piece, or keeps the other satellite from being forgotten */
        CHECK(!stand_in(&block, 1, 3));
        host_run(&rig);
        CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
        CHECK_EQ(rig.host.piece_free_count, sizes.pieces);
        host_close(&rig);
    }
}

/* With a single satellite there is nobody to compare it with. */
static void test_a_single_satellite_is_late_after_the_usual_time(void)
{
    SKY_Addr_t late = {0, 0};

    host_open(&rig, host_usual);
    rig.is_silent[0]      = true;
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 1, 3);

    start(&block);
    CHECK(is_told(&late) && is_number(late, 0));
    CHECK_EQ(rig.now_us, 5000000u + SKY_HOST_RTO_INITIAL_US);
    CHECK(stand_in(&block, 0, 3));
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    rig.is_silent[0]   = false;
    rig.host.hedge_us  = 50000;
    block              = begin(SKY_HOST_PUT, 2, 1, 3);
    const uint64_t now = rig.now_us;

    rig.is_silent[0] = true;
    start(&block);
    CHECK(is_told(&late) && rig.now_us - now == 50000u);
    CHECK(stand_in(&block, 0, 3));
    host_run(&rig);
    host_close(&rig);
}

/* Links that are full make all answers late. */
static void test_nobody_is_late_where_all_are(void)
{
    SKY_Addr_t late = {0, 0};

    host_open(&rig, host_usual);
    rig.link_us           = 30000;
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 60, 4);

    start(&block);
    CHECK(!is_told(&late));
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    for (uint32_t i = 0; i < 4u; ++i) /* nor if too few have answered */
    {
        rig.is_silent[i] = i != 2u;
    }
    block = begin(SKY_HOST_PUT, 2, 60, 4);
    start(&block);
    CHECK(!is_told(&late));
    CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
    host_close(&rig);
}

/* What the code bears goes to another place, too, and is given up where there is none; unless the block needs all. */
static void test_a_code_bears_what_is_late(void)
{
    for (uint32_t i = 0; i < 3u; ++i)
    {
        SKY_Addr_t late = {0, 0};

        host_open(&rig, host_usual);
        rig.is_silent[1]      = true;
        SKY_HostBlock_t block = begin_coded(SKY_HOST_PUT, 1, 1);

        block.needs_all = i == 2u;
        start(&block);
        CHECK(is_told(&late) && is_number(late, 1));
        CHECK(i > 0u || stand_in(&block, 1, 2));
        host_run(&rig);
        CHECK_EQ(block.status, i == 2u ? SKY_STATUS_EXPIRED : SKY_STATUS_DONE);
        CHECK_EQ(block.lost > 0u, i > 0u);
        CHECK(i > 0u || block.duration_us < 6u * RTT_US);
        host_close(&rig);
    }
}

/* ---- gets ------------------------------------------------------------------------------------------------------------ */

static void put(SKY_HostBlock_t block)
{
    start(&block);
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
}

static void test_a_get_goes_on_to_the_places_that_it_is_given(void)
{
    SKY_Addr_t late = {0, 0};

    host_open(&rig, host_usual);
    put(begin(SKY_HOST_PUT, 1, 8, 2));
    rig.is_silent[1]      = true;
    SKY_HostBlock_t block = begin(SKY_HOST_GET, 1, 8, 2);

    start(&block);
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
    CHECK(!SKY_Host_Replace(&rig.host, rig.now_us, &block, 1)); /* nobody is late yet */
    CHECK(is_told(&late) && is_number(late, 1));
    CHECK(!SKY_Host_Replace(&rig.host, rig.now_us, &block, 1)); /* nowhere else */
    CHECK(!SKY_Host_Replace(&rig.host, rig.now_us, &block, 0)); /* it is here */
    block.rounds = 2;
    besides[1]   = host_place(3); /* which does not have it */
    besides[3]   = host_place(1);
    CHECK(SKY_Host_Replace(&rig.host, rig.now_us, &block, 1));
    CHECK(!SKY_Host_Replace(&rig.host, rig.now_us, &block, 1)); /* it waits for its turn there */
    rig.is_silent[1] = false;
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    CHECK(block.passes == 2u && block.duration_us < 10u * RTT_US);
    host_close(&rig);
}

/* Who was late speaks after all, and denies the chunks, as the other place does: they are nowhere. */
static void test_a_denial_counts_after_silence(void)
{
    SKY_Addr_t late = {0, 0};

    host_open(&rig, host_usual);
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

    places[1] = host_place(3);
    put(block);
    rig.is_silent[1] = true;
    block            = begin(SKY_HOST_GET, 1, 8, 2);
    start(&block);
    CHECK(is_told(&late) && is_number(late, 1));
    block.rounds = 2;
    besides[1]   = host_place(2);
    besides[3]   = host_place(1);
    CHECK(SKY_Host_Replace(&rig.host, rig.now_us, &block, 1));
    rig.is_silent[1] = false;
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_MISS);
    host_close(&rig);
}

/* A fresh host asks for parity by what this call's answers took, and calls who is late then as well. */
/* Two places are late, and one of them, or a third one, denies the chunks at last: they may be at the other, which has said nothing. */
static void test_the_silence_of_another_place_is_not_forgotten(void)
{
    static const struct
    {
        uint32_t then, last, failed;
    } cases[] = {{2, 1, 2}, {2, 2, 1}, {1, 2, 1}};

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_Addr_t late = {0, 0};

        host_open(&rig, host_usual);
        SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

        places[1] = host_place(3);
        put(block);
        rig.is_silent[1] = rig.is_silent[2] = true;
        block                               = begin(SKY_HOST_GET, 1, 8, 2);
        start(&block);
        CHECK(is_told(&late) && is_number(late, 1));
        block.rounds = 2;
        besides[1]   = host_place(cases[i].then);
        besides[3]   = host_place(cases[i].last);
        CHECK(SKY_Host_Replace(&rig.host, rig.now_us, &block, 1));
        CHECK(is_told(&late) && is_number(late, cases[i].then));
        rig.is_silent[cases[i].last] = false;
        CHECK(SKY_Host_Replace(&rig.host, rig.now_us, &block, 1));
        host_run(&rig);
        CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
        CHECK(block.failed_plane == 1u && block.failed_slot == cases[i].failed + 1u);
        host_close(&rig);
    }
}

static void test_a_get_with_parity_asks_for_that_first(void)
{
    SKY_Addr_t late = {0, 0};

    for (uint32_t silent = 1; silent <= 2u; ++silent)
    {
        host_open(&rig, host_usual);
        put(begin_coded(SKY_HOST_PUT, 1, 1));
        rig.is_silent[0]      = true;
        rig.is_silent[3]      = silent == 2u; /* it has the parity */
        SKY_HostBlock_t block = begin_coded(SKY_HOST_GET, 1, 1);

        start(&block);
        CHECK_EQ(is_told(&late), silent == 2u);
        CHECK(silent == 1u || is_number(late, 0) || is_number(late, 3));
        rig.is_silent[0] = false;
        host_run(&rig);
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        CHECK(silent == 2u || block.duration_us < 5u * RTT_US);
        host_close(&rig);
    }
}

/* ---- who is lost ------------------------------------------------------------------------------------------------------- */

static void test_nothing_waits_for_one_that_is_lost(void)
{
    SKY_Addr_t       late = {0, 0};
    const SKY_Addr_t who  = {1, 2};

    host_open(&rig, host_usual);
    rig.is_silent[1]      = true;
    SKY_HostBlock_t block = begin(SKY_HOST_PUT, 1, 8, 2);

    start(&block);
    CHECK(is_told(&late));
    SKY_Host_GiveUp(&rig.host, rig.now_us, (SKY_Addr_t){3, 3}, rig.now_us);
    SKY_Host_GiveUp(&rig.host, rig.now_us, who, 0);
    CHECK_EQ(block.status, SKY_STATUS_RUNNING);
    SKY_Host_GiveUp(&rig.host, rig.now_us, who, rig.now_us);
    CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
    CHECK(block.failed_plane == 1u && block.failed_slot == 2u);
    host_run(&rig);
    CHECK_EQ(rig.host.piece_free_count, 64);
    host_close(&rig);
}

/* Blocks with parity go on without a satellite at once, so nobody finds it late. It is told once it has been silent for its patience. */
static void test_who_is_never_waited_for_is_suspect_at_last(void)
{
    SKY_Addr_t late = {0, 0};
    uint32_t   told = 0;

    host_open(&rig, host_usual);
    SKY_HostBlock_t block = begin_coded(SKY_HOST_PUT, 1, 2);

    start(&block);
    host_run(&rig);
    rig.is_silent[1]          = true;
    const uint64_t since_us   = rig.now_us;
    const uint64_t silence_us = SKY_Host_PatienceUs(&rig.host, &(SKY_Addr_t){1, 2}, 1);

    for (uint32_t number = 0; number < 200u && told == 0u; ++number)
    {
        block = begin_coded(SKY_HOST_GET, 1, 2);
        start(&block);
        told += is_told(&late) ? 1u : 0u;
        host_run(&rig);
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        told += SKY_Host_NextSuspect(&rig.host, &late) ? 1u : 0u;
        rig.now_us += 20000u;
    }
    CHECK(told == 1u && is_number(late, 1));
    CHECK(rig.now_us - since_us >= silence_us && rig.now_us - since_us < 2u * silence_us);
    CHECK(!SKY_Host_NextSuspect(&rig.host, &late)); /* once */
    rig.is_silent[1] = false;
    for (uint32_t number = 0; number < 200u; ++number)
    {
        block = begin_coded(SKY_HOST_GET, 1, 2);
        start(&block);
        CHECK(!is_told(&late));
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        rig.now_us += 20000u;
    }
    host_close(&rig);
}

int main(void)
{
    RUN(test_another_satellite_takes_the_share_of_one_that_is_late);
    RUN(test_who_was_late_may_still_take_it);
    RUN(test_the_stand_in_may_be_late_too);
    RUN(test_one_of_both_places_refuses);
    RUN(test_there_is_no_memory_for_another_place);
    RUN(test_a_single_satellite_is_late_after_the_usual_time);
    RUN(test_nobody_is_late_where_all_are);
    RUN(test_a_code_bears_what_is_late);
    RUN(test_a_get_goes_on_to_the_places_that_it_is_given);
    RUN(test_a_denial_counts_after_silence);
    RUN(test_the_silence_of_another_place_is_not_forgotten);
    RUN(test_a_get_with_parity_asks_for_that_first);
    RUN(test_nothing_waits_for_one_that_is_lost);
    RUN(test_who_is_never_waited_for_is_suspect_at_last);
    return CHECK_RESULT();
}
