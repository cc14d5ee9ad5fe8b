/**
 * @file
 * sky_service_census.c: a block with parity is judged by what all servers say, and nothing that could be decoded goes.
 */
#define SLOT_BYTES 100u /* each chunk but the short ones has a slot for itself */
#include "repair_rig.h"

static coded_t block; /* of three rows on nine servers, two of which may be lost */

static void open_filled(SKY_LayoutId_t layout)
{
    block = a_coded(1, 16u * 100u + 30u, 100, 7, 2);
    open_sky(layout, 9, 64, true);
    put_all(&block);
    CHECK(is_whole(&block));
    run(LIFE_MS * 1000u);
}

/* Time goes on until a satellite is in the middle of repairs. */
static void run_until_mending(const node_t *node)
{
    for (uint32_t i = 0; i < 4u * PERIOD_US / STEP_US && node->svc.census.state != SKY_CENSUS_MENDING; ++i)
    {
        step();
    }
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_MENDING);
}

/* ---- what is not known ------------------------------------------------------------------------------------------- */

/* One more than may be lost does not answer: it may hold its share. */
static void test_silence_is_not_loss(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(2));
    restart(home_of(3));
    at_home(7)->deaf = true;
    run(12u * PERIOD_US);
    CHECK_EQ(held(&block), block.stripe.chunk_total - 4u); /* the last row has no chunk there, and comes back */
    CHECK_EQ(scrubbed() + gossip_purged(), 0);
    at_home(7)->deaf = false;
    run(5u * PERIOD_US);
    CHECK(is_whole(&block));
}

/* Begin with six blocks, and wait until they can be repaired. */
static void put_six(coded_t *blocks)
{
    open_filled(SKY_LAYOUT_ROTATION);
    for (uint32_t i = 0; i < 6; ++i)
    {
        blocks[i] = a_coded(10u + i, 700, 100, 7, 2);
        put_all(&blocks[i]);
    }
    run(LIFE_MS * 1000u);
}

/* Many blocks lost a chunk while another satellite is silent: only the first census waits for it. */
static void test_silence_is_waited_for_once(void)
{
    coded_t blocks[6];

    put_six(blocks);
    restart(home_of(3));
    at_home(7)->deaf               = true;
    at_home(2)->svc.census.rest_us = now_us + 4u * PERIOD_US; /* so long that all of them wait */
    for (uint32_t i = 0; i < 6u * PERIOD_US / STEP_US && repaired() == 0; ++i)
    {
        step();
    }
    CHECK(repaired() > 0);
    run(1500000u);
    for (uint32_t i = 0; i < 6; ++i)
    {
        CHECK_EQ(held_at(at_home(3), &blocks[i]), 1);
    }
    at_home(7)->deaf = false;
    restart(home_of(7));
    run(16000000u);
    for (uint32_t i = 0; i < 6; ++i)
    {
        CHECK(is_whole(&blocks[i]));
    }
}

/* The satellite that would ask about a lost share is silent: the one before it finds out. */
static void test_the_one_who_would_ask_is_silent(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    at_home(3)->deaf = true;
    restart(home_of(4));
    run(8u * PERIOD_US);
    CHECK_EQ(held(&block), block.stripe.chunk_total);
}

/* Three are gone, but a satellite is silent that may be about to hand chunks of theirs over. */
static void test_chunks_may_be_on_their_way(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    node_at((SKY_Addr_t){1, 1})->deaf = true;
    for (uint32_t i = 0; i < 3; ++i)
    {
        restart(home_of(i));
    }
    const uint32_t left = held(&block);
    run(12u * PERIOD_US);
    CHECK_EQ(held(&block), left);
    node_at((SKY_Addr_t){1, 1})->deaf = false;
    run(12u * PERIOD_US);
    CHECK_EQ(held(&block), 0);
}

/* Stand-ins keep their chunks for ever, and are not asked. */
static void test_nothing_is_purged_where_nothing_moves(void)
{
    open_filled(SKY_LAYOUT_HOP);
    for (uint32_t i = 0; i < 3; ++i)
    {
        restart(home_of(i));
    }
    const uint32_t left = held(&block);
    run(12u * PERIOD_US);
    CHECK_EQ(held(&block), left);
    put_at(home_of(1), &block, 1, 0);
    put_at(home_of(1), &block, 10, 0);
    put_at(home_of(1), &block, 19 < block.stripe.chunk_total ? 19 : 10, 0);
    run(12u * PERIOD_US);
    CHECK(is_whole(&block)); /* but repaired */
}

static void test_satellites_in_another_row_say_nothing(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    SKY_Schedule_t early = schedule; /* its clock is fast */
    early.epoch_us -= rows[1].time_ms * 1000u;
    restart(home_of(3));
    CHECK(SKY_Service_SetSchedule(&at_home(3)->svc, &early));
    restart(home_of(4));
    run(8u * PERIOD_US);
    CHECK_EQ(held_at(at_home(3), &block), 0);
    CHECK(held_at(at_home(4), &block) > 0);
    CHECK(SKY_Service_SetSchedule(&at_home(3)->svc, &schedule));
    run(6u * PERIOD_US);
    CHECK(is_whole(&block));
}

/* ---- what is not repaired ---------------------------------------------------------------------------------------- */

static void test_a_full_home_keeps_what_it_has(void)
{
    const coded_t other = a_coded(2, 16u * 100u + 30u, 100, 7, 2);

    open_filled(SKY_LAYOUT_ROTATION);
    put_all(&other);
    run(LIFE_MS * 1000u);
    store_slots = 1u + held_at(at_home(3), &block);
    restart(home_of(3));
    run(8u * PERIOD_US);
    CHECK_EQ(held_at(at_home(3), &block) + held_at(at_home(3), &other), store_slots - 1u);
    CHECK_EQ(at_home(3)->store.counters.evicted_chunks, 0);
    CHECK_EQ(scrubbed(), 0);
}

/* Many blocks lost a chunk, and their home has no room: sources are read for one of them in a period, not for each. */
static void test_a_full_home_is_remembered(void)
{
    coded_t blocks[6];

    put_six(blocks);
    store_slots = 2; /* an entry, and a chunk */
    restart(home_of(3));
    at_home(2)->svc.census.rest_us = now_us + 4u * PERIOD_US; /* so long that all of them wait */
    for (uint32_t i = 0; i < 8u * PERIOD_US / STEP_US && at_home(2)->svc.census.full_until_us[3] == 0; ++i)
    {
        step();
    }
    CHECK_EQ(repaired(), 1);
    const uint32_t before = sent_gets;

    CHECK(at_home(2)->svc.census.full_until_us[3] > now_us);
    run(at_home(2)->svc.census.full_until_us[3] - STEP_US - now_us);
    CHECK_EQ(sent_gets, before);
    CHECK(!at_home(2)->svc.scrub.has_ripe); /* the others were counted meanwhile */
    store_slots = 64;
    restart(home_of(3)); /* it has room now */
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
    for (uint32_t i = 0; i < 6; ++i)
    {
        CHECK(is_whole(&blocks[i]));
    }
}

/* A tenant may have nothing at a home: blocks of others are repaired there all the same, although its own was used last. */
static void test_a_home_is_full_for_one_tenant(void)
{
    const SKY_Quotas_t quotas = {.count = 1, .tenants = {{9, 0, 0}}, .others = {.most_percent = SKY_STORE_PERCENT}};
    coded_t            other  = a_coded(2, 700, 100, 7, 2);

    open_filled(SKY_LAYOUT_ROTATION);
    other.tenant = 9;
    put_all(&other);
    run(LIFE_MS * 1000u);
    restart(home_of(3));
    CHECK(SKY_Store_SetQuotas(&at_home(3)->store, &quotas));
    at_home(2)->svc.census.rest_us = now_us + 4u * PERIOD_US; /* so long that both of them wait */
    run(12u * PERIOD_US);
    CHECK_EQ(held_at(at_home(3), &other), 0);
    CHECK_EQ(at_home(2)->svc.census.full_tenant[3], 9);
    CHECK(is_whole(&block));
}

/* The block used last comes back first. */
static void test_the_block_used_last_comes_first(void)
{
    coded_t more[4];

    open_filled(SKY_LAYOUT_ROTATION);
    for (uint32_t i = 0; i < 4; ++i)
    {
        more[i] = a_coded(10u + i, 7u * 100u, 100, 7, 2);
        put_all(&more[i]);
    }
    put_all(&block); /* and the block is used again */
    run(LIFE_MS * 1000u);
    restart(home_of(3));
    at_home(2)->svc.census.rest_us = now_us + 4u * PERIOD_US; /* so long that all of them wait */
    for (uint32_t i = 0; i < 6u * PERIOD_US / STEP_US && repaired() == 0; ++i)
    {
        step();
    }
    CHECK_EQ(repaired(), 1);
    CHECK(held_at(at_home(3), &block) > 0);
    for (uint32_t i = 0; i < 4; ++i)
    {
        CHECK_EQ(held_at(at_home(3), &more[i]), 0);
    }
    run(6u * PERIOD_US);
    CHECK(is_whole(&block));
    for (uint32_t i = 0; i < 4; ++i)
    {
        CHECK(is_whole(&more[i]));
    }
}

/* As many chunks in a row as there are servers, or a row cannot be found. */
static void test_blocks_of_other_rows_are_left_alone(void)
{
    const coded_t narrow = a_coded(2, 600, 100, 3, 2);

    open_filled(SKY_LAYOUT_ROTATION);
    put_all(&narrow);
    run(LIFE_MS * 1000u);
    restart(home_of(3));
    const uint32_t left = held(&narrow);
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
    CHECK_EQ(held(&narrow), left);
}

/* Its own share has a gap, and nobody else looks. */
static void test_a_gap_in_the_own_share(void)
{
    uint8_t key[SKY_KEY_BYTES];

    for (uint32_t full = 0; full < 2; ++full)
    {
        open_filled(SKY_LAYOUT_ROTATION);
        node_t *node = at_home(4);

        at_home(3)->svc.core.cfg.scrub_period_ms = 0;
        fx_key(key, block.number);
        CHECK(SKY_Store_Drop(&node->store, SKY_Store_Find(&node->store, 0, key), 13));
        for (uint32_t i = 0; full != 0 && i < 62 && node->store.slab.used < node->store.cfg.slot_count; ++i)
        {
            const bool    two  = node->store.cfg.slot_count - node->store.slab.used >= 2u; /* else a chunk of the first again */
            const coded_t more = a_coded(100u + (two ? i : 0), 100, 100, 7, 2);

            put_at(home_of(4), &more, (two ? 4u : 5u) % more.stripe.chunk_total, SKY_SCHEDULE_STAYS);
        }
        run(4u * PERIOD_US);
        CHECK_EQ(is_whole(&block), full == 0);
        CHECK_EQ(node->store.counters.evicted_chunks, 0);
    }
}

/* ---- in the middle ----------------------------------------------------------------------------------------------- */

static void test_a_crash_in_the_middle(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(4));
    run_until_mending(at_home(3));
    restart(home_of(3));
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

static void test_purged_in_the_middle(void)
{
    uint8_t key[SKY_KEY_BYTES];

    for (uint32_t polls = 0; polls < 2; ++polls)
    {
        open_filled(SKY_LAYOUT_ROTATION);
        restart(home_of(4));
        run_until_mending(at_home(3));
        fx_key(key, block.number);
        for (uint32_t i = 0; i < NODES; ++i)
        {
            (void)SKY_Store_Purge(&nodes[i].store, 0, key, NULL);
        }
        if (polls == 0)
        {
            const SKY_Packet_t pkt = {.op = SKY_OP_GET};

            node_serve(at_home(3), &pkt); /* whatever comes first */
            CHECK_EQ(at_home(3)->svc.census.state, SKY_CENSUS_IDLE);
            CHECK_EQ(at_home(3)->svc.core.counters.unsolicited, 1);
        }
        run(4u * PERIOD_US);
        CHECK_EQ(held(&block), 0);
    }
}

static void test_put_in_the_middle(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(4));
    run_until_mending(at_home(3));
    put_at(home_of(3), &block, 3, 0);
    step();
    CHECK_EQ(at_home(3)->svc.census.state, SKY_CENSUS_IDLE);
    run(6u * PERIOD_US);
    CHECK(is_whole(&block));
}

static void test_replaced_in_the_middle(void)
{
    const coded_t  old   = a_coded(1, 1630, 100, 7, 2);
    const uint32_t total = old.stripe.chunk_total;

    for (uint32_t kind = 0; kind < 3; ++kind)
    {
        open_filled(SKY_LAYOUT_ROTATION);
        coded_t next = kind == 0 ? a_coded(1, 1500, 100, 7, 2) : block;

        next.version = kind == 1 ? 1 : 0;
        next.content = kind == 2 ? 7 : 1;
        restart(home_of(4));
        run_until_mending(at_home(3));
        restart(home_of(3));
        at_home(3)->svc.census.state              = SKY_CENSUS_MENDING; /* it forgets all but the census */
        at_home(3)->svc.census.block              = info_at(at_home(5), &block);
        at_home(3)->svc.census.row                = 1;
        at_home(3)->svc.core.cfg.part_lifetime_ms = 0;
        put_at(home_of(3), &next, 3, 0);
        step();
        CHECK_EQ(at_home(3)->svc.census.state, SKY_CENSUS_IDLE);
        CHECK(held(&block) < total);
    }
}

/* The block is to wait for a later row from now on: it is counted when that comes. */
static void test_a_later_row_in_the_middle(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(4));
    run_until_mending(at_home(3));
    node_t *node = at_home(3);

    fx_key(key, block.number);
    SKY_Store_RaiseEpoch(&node->store, SKY_Store_Find(&node->store, 0, key), 2);
    step();
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
}

static void test_the_row_ends_in_the_middle(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    now_us = schedule.epoch_us + 100000000u - 5u * PERIOD_US / 2u;
    restart(home_of(4));
    run_until_mending(at_home(3));
    node_t *node = at_home(3);
    now_us       = schedule.epoch_us + 100000000u;
    step();
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
    run(10u * PERIOD_US); /* chunks move with the window */
    CHECK(is_whole(&block));
}

static void test_another_schedule_in_the_middle(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(4));
    run_until_mending(at_home(3));
    node_t *node = at_home(3);
    CHECK(SKY_Service_SetSchedule(&node->svc, NULL));
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
    step();
    CHECK(SKY_Service_SetSchedule(&node->svc, &schedule));
    run_until_mending(node);
    node->svc.core.cfg.scrub_period_ms = 0;
    step();
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
}

/* A block is wanted, but this satellite is no server, or its row has ended. */
static void test_nothing_begins_elsewhere(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    node_t *far = node_at((SKY_Addr_t){1, 1});

    far->svc.scrub.has_ripe = true;
    far->svc.scrub.row      = 1;
    step();
    CHECK(!far->svc.scrub.has_ripe);
    CHECK_EQ(far->svc.census.state, SKY_CENSUS_IDLE);
    at_home(3)->svc.scrub.has_ripe = true;
    at_home(3)->svc.scrub.row      = 7;
    step();
    CHECK_EQ(at_home(3)->svc.census.state, SKY_CENSUS_IDLE);
}

/* The next server is silent, but the block was put or purged meanwhile. */
static void test_silence_about_a_block_that_changes(void)
{
    const coded_t other = a_coded(2, 700, 100, 7, 2);
    uint8_t       key[SKY_KEY_BYTES];

    for (uint32_t kind = 0; kind < 2; ++kind)
    {
        open_filled(SKY_LAYOUT_ROTATION);
        node_t *node     = at_home(3);
        at_home(4)->deaf = true;
        for (uint32_t i = 0; i < 2u * PERIOD_US / STEP_US && node->svc.scrub.state != SKY_SCRUB_ASKED; ++i)
        {
            step();
        }
        CHECK_EQ(node->svc.scrub.state, SKY_SCRUB_ASKED);
        node->svc.core.cfg.part_lifetime_ms = 60000;
        fx_key(key, block.number);
        if (kind == 0)
        {
            put_at(home_of(3), &block, 3, 0);
        }
        else
        {
            put_at(home_of(3), &other, 3, 0);
            (void)SKY_Store_Purge(&node->store, 0, key, NULL);
        }
        run(3u * PERIOD_US / 2u);
        CHECK_EQ(info_at(node, &block).suspect_us, 0);
    }
}

/* Of a block that waits for a later row nothing is counted. */
static void test_what_waits_for_a_later_row(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    restart(home_of(4));
    for (uint32_t i = 0; i < 9; ++i)
    {
        if (i != 4)
        {
            put_at(home_of(i), &block, i, 2);
        }
    }
    run(6u * PERIOD_US);
    CHECK_EQ(held_at(at_home(4), &block), 0);
    CHECK_EQ(scrubbed(), 0);
}

/* The block was put for a later row, too. So what is lost here may lie where that row has it. */
static void test_some_keep_it_for_a_later_row(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    for (uint32_t i = 3; i < 6; ++i)
    {
        put_at(home_of(i), &block, i, 2);
    }
    for (uint32_t i = 0; i < 3; ++i)
    {
        restart(home_of(i));
    }
    const uint32_t left = held(&block);
    run(12u * PERIOD_US);
    CHECK_EQ(held(&block), left);
    CHECK_EQ(scrubbed() + gossip_purged(), 0);
}

/* Nobody of this row knows that, and the block is purged here. The word spares what waits. */
static void test_a_word_spares_what_waits_for_a_later_row(void)
{
    open_filled(SKY_LAYOUT_ROTATION);
    uint32_t ahead = 0;

    for (uint32_t i = 0; i < 9; ++i)
    {
        const SKY_Addr_t next = SKY_Schedule_Server(&schedule, 2, i);

        if (held_at(node_at(next), &block) == 0)
        {
            put_at(next, &block, i, 2);
            ++ahead;
        }
    }
    CHECK(ahead > 0);
    for (uint32_t i = 0; i < 3; ++i)
    {
        restart(home_of(i));
    }
    run(12u * PERIOD_US);
    CHECK(gossip_purged() > 0);
    CHECK_EQ(held(&block), ahead);
}

int main(void)
{
    RUN(test_silence_is_not_loss);
    RUN(test_silence_is_waited_for_once);
    RUN(test_the_one_who_would_ask_is_silent);
    RUN(test_chunks_may_be_on_their_way);
    RUN(test_nothing_is_purged_where_nothing_moves);
    RUN(test_satellites_in_another_row_say_nothing);
    RUN(test_a_full_home_keeps_what_it_has);
    RUN(test_a_full_home_is_remembered);
    RUN(test_a_home_is_full_for_one_tenant);
    RUN(test_the_block_used_last_comes_first);
    RUN(test_blocks_of_other_rows_are_left_alone);
    RUN(test_a_gap_in_the_own_share);
    RUN(test_a_crash_in_the_middle);
    RUN(test_purged_in_the_middle);
    RUN(test_put_in_the_middle);
    RUN(test_replaced_in_the_middle);
    RUN(test_a_later_row_in_the_middle);
    RUN(test_the_row_ends_in_the_middle);
    RUN(test_another_schedule_in_the_middle);
    RUN(test_nothing_begins_elsewhere);
    RUN(test_what_waits_for_a_later_row);
    RUN(test_some_keep_it_for_a_later_row);
    RUN(test_a_word_spares_what_waits_for_a_later_row);
    RUN(test_silence_about_a_block_that_changes);
    close_sky();
    return CHECK_RESULT();
}
