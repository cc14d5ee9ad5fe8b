/**
 * @file
 * sky_service_handover.c: blocks that are prefetched for a later row of the schedule wait there, and are handed over when it has passed.
 */
#include "turning_rig.h"

static void test_prefetch(void)
{
    const fx_block_t *block, *other;
    SKY_BlockInfo_t   info;
    uint8_t           key[SKY_KEY_BYTES];

    open_constellation(7, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    step_to(3, 2, 1);
    step_to(4, 2, 0);
    follow(SKY_LAYOUT_ROTATION, 4, 4);
    block = put_block(12, 1, 0);
    other = put_block(12, 1, 0);
    for (uint32_t i = 0; i < 4; ++i)
    {
        if (server(1, i) != server(3, i))
        {
            CHECK_EQ(migrate(SKY_Schedule_Server(&schedule, 1, i), block, SKY_Schedule_Server(&schedule, 3, i), 3, 0),
                     SKY_STATUS_OK);
            CHECK_EQ(migrate(SKY_Schedule_Server(&schedule, 1, i), block, SKY_Schedule_Server(&schedule, 3, i), 3, 0),
                     SKY_STATUS_OK); /* the same again */
            CHECK_EQ(migrate(SKY_Schedule_Server(&schedule, 1, i), block, SKY_Schedule_Server(&schedule, 3, i), 0, 0),
                     SKY_STATUS_OK); /* another job */
        }
    }
    run_for(1000000);
    CHECK(is_at_home(block, 3));
    fx_key(key, block->number);
    CHECK_EQ(SKY_Store_Block(&server(3, 0)->store, SKY_Store_Find(&server(3, 0)->store, 0, key), &info), SKY_STATUS_OK);
    CHECK_EQ(info.epoch, 3);
    run_for(ROW_US); /* into row 2: what was prefetched for row 3 stays, what lay beside it moves */
    CHECK(is_at_home(block, 3));
    CHECK(is_at_home(other, 2));
    run_for(ROW_US);
    CHECK(is_at_home(block, 3));
    run_for(ROW_US); /* and is like all others from then on */
    CHECK(is_at_home(block, 4));
    CHECK(is_at_home(other, 4));
}

/* A chunk comes in parts, some of them twice: it is one chunk, and none before all have come. */
static void test_a_chunk_in_parts_is_one_chunk(void)
{
    const fx_block_t block = {60, 0, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const fx_block_t waits = {61, 0, 4, CHUNK_BYTES, 4u * CHUNK_BYTES}; /* for a row that is unknown */
    const SKY_Addr_t away  = {4, 1};
    const uint32_t   half  = CHUNK_BYTES / 2u;
    uint8_t          data[CHUNK_BYTES];
    SKY_Packet_t     whole;

    open_constellation(10, 0);
    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, 4, 1);
    for (uint32_t id = 0; id < 4u; ++id)
    {
        put_at(away, &waits, id, 9);
    }
    for (uint32_t id = 0; id < 2u; ++id)
    {
        fx_put(&block, id, data, &whole);
        for (uint32_t i = 0; i < 6u; ++i) /* first, first, second; first, second, second */
        {
            const bool   is_first = i == 0u || i == 1u || i == 3u;
            SKY_Packet_t part     = whole;

            fx_part(&part, is_first ? 0u : half, is_first ? half : CHUNK_BYTES - half);
            CHECK_EQ(ask(away, &part), SKY_STATUS_OK);
            CHECK_EQ(stat(node_at(away), SKY_STATS_KVC_HANDOVER_LEFT), id + (i < 2u ? 0u : 1u));
        }
    }
    run_for(ROW_US / 2u);
    CHECK_EQ(stat(node_at(away), SKY_STATS_KVC_HANDOVER_LEFT), 0);
    CHECK_EQ(node_at(away)->store.counters.chunks, 4);
}

/* Others stand in for the satellites that it was prefetched to: it moves to where it belongs now, and not only when a row begins. */
static void test_what_stand_ins_take_for_a_later_row(void)
{
    const SKY_Addr_t  stand_in = {4, 1};
    const fx_block_t *block;

    open_constellation(10, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 4, 2);
    block = put_block(4, 2, 2);
    run_for(1000000);
    CHECK(is_at_home(block, 2)); /* it waits there */
    block = put_block(4, 1, 0);
    run_for(1000000);
    for (uint32_t id = 0; id < 4; ++id)
    {
        put_at(stand_in, block, id, 2);
        CHECK(stat(node_at(stand_in), SKY_STATS_KVC_HANDOVER_LEFT) > 0);
    }
    run_for(ROW_US / 2u);
    CHECK_EQ(stat(node_at(stand_in), SKY_STATS_KVC_HANDOVER_LEFT), 0);
    CHECK_EQ(node_at(stand_in)->store.counters.blocks, 0);
    CHECK_EQ(stat(node_at(stand_in), SKY_STATS_KVC_ROW), 1);
    run_for(ROW_US);
    CHECK(is_at_home(block, 2));
}

/*
 * Prefetched for the next time around the torus, where the same satellites have other shares; another host has not heard of it, misses the
 * block, and puts it anew. What waits does not hold back what lies beside it.
 */
static void test_a_block_put_beside_its_prefetch(void)
{
    const fx_block_t *block;

    open_constellation(9, 0);
    for (uint32_t row = 1; row <= 6; ++row)
    {
        step_to(row, 2, 4 - (int32_t)row);
    }
    follow(SKY_LAYOUT_ROTATION, 4, 6);
    block = put_block(12, 6, 6);
    for (uint32_t id = 0; id < 12; ++id)
    {
        put_at(home_of(block, 1, id), block, id, 0);
    }
    run_for(ROW_US / 2u);
    for (uint32_t row = 1; row <= 6; ++row)
    {
        for (uint32_t id = 0; id < 12; ++id)
        {
            CHECK(sat_holds(node_at(home_of(block, row, id)), block, id));
            CHECK(sat_holds(node_at(home_of(block, 6, id)), block, id));
        }
        run_for(ROW_US);
    }
    CHECK(is_at_home(block, 6));
}

/* What the row has at the target goes there, and to a stand-in the share that is asked for; without a word about it, all. */
static void test_share_of_a_prefetch(void)
{
    const SKY_Addr_t host = {4, 1};
    fx_block_t       some = {50, 0, 4, 100, 400};

    open_constellation(8, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 1);
    follow(SKY_LAYOUT_ROTATION, 2, 2);
    for (some.number = 50; some.number < 53; ++some.number)
    {
        for (uint32_t id = 0; id < 4; ++id)
        {
            put_at(host, &some, id, 9); /* that row is unknown: it waits */
        }
    }
    CHECK_EQ(migrate(host, &some, (SKY_Addr_t){4, 3}, 2, 0), SKY_STATUS_NOT_FOUND);
    some.number = 50;
    CHECK_EQ(migrate(host, &some, SKY_Schedule_Server(&schedule, 2, 1), 2, 0), SKY_STATUS_OK);
    some.number = 51; /* a row that is unknown here */
    CHECK_EQ(migrate(host, &some, SKY_Schedule_Server(&schedule, 2, 1), 3, 0), SKY_STATUS_OK);
    some.number = 52; /* a satellite that has nothing in that row: it stands in for another */
    CHECK_EQ(migrate_share(host, &some, 1, (SKY_Addr_t){4, 3}, 2, 0), SKY_STATUS_OK);
    run_for(2500000); /* a look comes a second after a put */
    for (uint32_t id = 0; id < 4; ++id)
    {
        some.number = 50;
        CHECK_EQ(sat_holds(server(2, 1), &some, id), id % 2 == 1);
        CHECK_EQ(sat_holds(node_at(host), &some, id), id % 2 == 0);
        some.number = 51;
        CHECK(sat_holds(server(2, 1), &some, id));
        some.number = 52;
        CHECK_EQ(sat_holds(server(1, id), &some, id), id % 2 == 1); /* where it waits for nothing, and is handed on */
        CHECK_EQ(sat_holds(node_at(host), &some, id), id % 2 == 0);
    }
}

int main(void)
{
    RUN(test_prefetch);
    RUN(test_a_chunk_in_parts_is_one_chunk);
    RUN(test_what_stand_ins_take_for_a_later_row);
    RUN(test_a_block_put_beside_its_prefetch);
    RUN(test_share_of_a_prefetch);
    return CHECK_RESULT();
}
