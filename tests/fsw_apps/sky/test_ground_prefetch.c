/**
 * @file
 * PREFETCH of a ground host: a block moves to where a row to come has its shares.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS + 1u];

static SKY_GroundOp_t *prepare_prefetch(run_t *run, uint32_t number, uint32_t row)
{
    SKY_GroundOp_t *op = prepare(run, SKY_GROUND_PREFETCH, number, 950, 0);

    op->to_row      = row;
    op->deadline_ms = 20000;
    return op;
}

/* Does each satellite of a row have its share? */
static bool is_at(const SKY_GroundOp_t *op, uint32_t row)
{
    bool is = true;

    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        const SKY_Store_t *store = &node_at(home_of(op, row, share))->store;
        const uint32_t     block = SKY_Store_Find(store, op->tenant, op->key);

        for (uint32_t chunk = share; chunk < op->facts.stripe.chunk_total; chunk += SERVERS)
        {
            is = is && block != SKY_STORE_NONE && SKY_Store_Has(store, block, chunk);
        }
    }
    return is;
}

static void open_linked(uint32_t rows)
{
    open_ground(rows);
    are_linked = true;
}

static void test_a_block_moves_to_a_row_to_come(void)
{
    open_linked(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK(is_at(&runs[0].op, 1) && !is_at(&runs[0].op, 3));
    CHECK_EQ(finish(prepare_prefetch(&runs[1], 1, 3)), SKY_STATUS_DONE);
    CHECK(is_at(&runs[0].op, 3) && now_us < START_US + SECOND_US);
    now_us = START_US + 2u * ROW_US + SECOND_US; /* it waited there */
    carry();
    (void)prepare(&runs[2], SKY_GROUND_GET, 1, 950, 0);
    runs[2].op.facts.epoch = 3;
    CHECK_EQ(finish(&runs[2].op), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[2], 1, 0) && is_at(&runs[0].op, 3));
    close_ground();
}

/* Nobody has all of it: that is told after two rounds, not at the deadline. */
static void test_a_block_that_is_not_whole(void)
{
    open_linked(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(prepare_prefetch(&runs[1], 1, 3)), SKY_STATUS_MISS);
    CHECK(now_us - began_us < 5u * SECOND_US && !is_at(&runs[0].op, 3));
    close_ground();
}

/* A code bears that a share is gone: what there is moves, and is enough. */
static void test_what_the_code_bears_may_be_gone(void)
{
    open_linked(4);
    sky.parity = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 0);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    (void)prepare_prefetch(&runs[1], 1, 3);
    runs[1].op.facts.stripe = runs[0].op.facts.stripe;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    now_us = START_US + 2u * ROW_US + SECOND_US;
    carry();
    (void)prepare(&runs[2], SKY_GROUND_GET, 1, 950, 0);
    runs[2].op.facts.stripe = runs[0].op.facts.stripe;
    runs[2].op.facts.epoch  = 3;
    CHECK_EQ(finish(&runs[2].op), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[2], 1, 0));
    close_ground();
}

/* Satellites cannot reach each other, so that nothing moves before the time is over. */
static void test_the_time_is_over(void)
{
    open_ground(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    (void)prepare_prefetch(&runs[1], 1, 3);
    runs[1].op.deadline_ms  = 3000;
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_EXPIRED);
    CHECK(now_us - began_us >= 2u * SECOND_US && now_us - began_us <= 4u * SECOND_US);
    close_ground();
}

/* A target is silent: another stands in for it once it is found lost. */
static void test_a_stand_in_gets_the_share_of_a_silent_target(void)
{
    SKY_Addr_t away;

    open_linked(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 3, 2);
    silence(away, true);
    CHECK_EQ(finish(prepare_prefetch(&runs[1], 1, 3)), SKY_STATUS_DONE);
    CHECK(SKY_Ground_IsLost(&ground, away) && !holds(away, &runs[0].op) && !is_at(&runs[0].op, 3));
    for (uint32_t i = 0; i < asked_count; ++i) /* the row does not say which share a stand-in gets: the question does */
    {
        CHECK(asked[i].op != SKY_OP_MIGRATE || SKY_Addr_Equal(asked[i].dst, home_of(&runs[0].op, 1, asked[i].chunk_id)));
    }
    close_ground();
}

/* A get asks where the block was, while it moves or has just moved: it asks at the row to come as well. */
static void test_a_get_finds_what_moves_meanwhile(void)
{
    for (uint32_t lazy_purge = 0; lazy_purge < 2u; ++lazy_purge)
    {
        bool     is_over = false;
        uint32_t steps   = 0;

        for (; !is_over && steps < STEPS_MAX; ++steps)
        {
            open_linked(4);
            sky.lazy_purge = lazy_purge != 0u;
            set_sky();
            CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
            submit(prepare_prefetch(&runs[1], 1, 3));
            for (uint32_t i = 0; i < steps && !runs[1].has_ended; ++i)
            {
                step();
            }
            is_over = runs[1].has_ended;
            if (!is_over)
            {
                CHECK_EQ(get(&runs[2], 1, 950, 0), SKY_STATUS_DONE);
                CHECK(is_as_put(&runs[2], 1, 0) && runs[1].op.status == SKY_STATUS_DONE);
            }
            close_ground();
        }
        CHECK(is_over && steps > 5u);
    }
}

/* Blocks of other keys, and of other tenants, are elsewhere. */
static void test_gets_of_other_blocks_stay(void)
{
    open_linked(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    submit(prepare_prefetch(&runs[1], 1, 3));
    submit(prepare(&runs[2], SKY_GROUND_GET, 65, 950, 0));
    (void)prepare(&runs[3], SKY_GROUND_GET, 1, 950, 0);
    runs[3].op.tenant = 1;
    submit(&runs[3].op);
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    for (uint32_t i = 2; i < 4u; ++i)
    {
        CHECK(runs[i].op.status == SKY_STATUS_MISS && runs[i].op.facts.epoch == 0u);
    }
    close_ground();
}

static void test_there_is_no_such_row(void)
{
    open_linked(2);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(finish(prepare_prefetch(&runs[1], 1, 0)), SKY_STATUS_REFUSED);
    CHECK_EQ(finish(prepare_prefetch(&runs[1], 1, 3)), SKY_STATUS_REFUSED);
    close_ground();
}

/* Nobody answers, or is in sight: it is tried again until the time is over. */
static void test_nobody_can_be_asked(void)
{
    open_linked(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    silence_all(true);
    (void)prepare_prefetch(&runs[1], 1, 3);
    runs[1].op.deadline_ms = 15000;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_EXPIRED);
    CHECK(ground.reach.pause_us > 0u);
    silence_all(false);
    now_us += SKY_HOST_PAUSE_MAX_US;
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    sky.seen_count = 0;
    set_sky();
    (void)prepare_prefetch(&runs[1], 1, 3);
    runs[1].op.deadline_ms = 500;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_EXPIRED);
    close_ground();
}

/* The last satellite in sight sets before a block is asked for, or before it is asked whether it is there. */
static void test_the_last_in_sight_sets(void)
{
    for (uint32_t moves = 0; moves < 2u; ++moves)
    {
        open_linked(4);
        CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
        sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
        seen[0]        = (SKY_Addr_t){1, 1};
        sky.seen_count = moves;
        set_sky();
        asked_count = 0;
        (void)prepare_prefetch(&runs[1], 1, 3);
        runs[1].op.deadline_ms = 500;
        submit(&runs[1].op);
        while (moves > 0u && asked_of(SKY_OP_MIGRATE, 0) == 0u)
        {
            step();
        }
        sky.seen_count = 0;
        set_sky();
        run_all();
        CHECK_EQ(runs[1].op.status, SKY_STATUS_EXPIRED);
        CHECK_EQ(asked_of(SKY_OP_HAS, 0), 0);
        close_ground();
    }
}

/* Two prefetches wait for their next rounds, each for its own. Without a code there is no room for rows. */
static void test_two_prefetches_wait(void)
{
    open_ground(4);
    for (uint32_t i = 0; i < 2u; ++i)
    {
        (void)prepare_prefetch(&runs[i], 1u + 64u * i, 3);
        runs[i].op.deadline_ms = 1000u + 500u * i;
        runs[i].op.held_rows   = NULL;
    }
    CHECK_EQ(put(&runs[2], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(put(&runs[2], 65, 950, 0), SKY_STATUS_DONE);
    submit(&runs[0].op);
    submit(&runs[1].op);
    run_all();
    CHECK(runs[0].op.status == SKY_STATUS_EXPIRED && runs[1].op.status == SKY_STATUS_EXPIRED);
    close_ground();
}

int main(void)
{
    RUN(test_a_block_moves_to_a_row_to_come);
    RUN(test_a_block_that_is_not_whole);
    RUN(test_what_the_code_bears_may_be_gone);
    RUN(test_the_time_is_over);
    RUN(test_a_stand_in_gets_the_share_of_a_silent_target);
    RUN(test_a_get_finds_what_moves_meanwhile);
    RUN(test_gets_of_other_blocks_stay);
    RUN(test_there_is_no_such_row);
    RUN(test_nobody_can_be_asked);
    RUN(test_the_last_in_sight_sets);
    RUN(test_two_prefetches_wait);
    return CHECK_RESULT();
}
