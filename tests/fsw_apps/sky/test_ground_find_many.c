/**
 * @file
 * FIND of many keys, and of a chain.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS + 1u];

/* ---- many keys ------------------------------------------------------------------------------------------------------- */

#define KEYS  300u
#define EVERY 7u /* the keys of which one is of a block that is there */

static SKY_GroundFound_t keys[KEYS];

/* Numbers of blocks whose first servers differ. */
static uint32_t number_of(uint32_t key)
{
    return 1u + 17u * key;
}

static SKY_GroundOp_t *prepare_many(uint32_t count)
{
    SKY_GroundOp_t *op = prepare(&runs[1], SKY_GROUND_FIND, 0, 1, 0);

    (void)memset(keys, 0, sizeof(keys));
    CHECK(count <= KEYS);
    for (uint32_t i = 0; i < count; ++i)
    {
        fx_key(keys[i].key, number_of(i));
    }
    op->found           = keys;
    op->found_count     = count;
    op->block_bytes_max = BYTES_MAX;
    return op;
}

static void put_some(void)
{
    for (uint32_t i = 0; i < KEYS; i += EVERY)
    {
        CHECK_EQ(put(&runs[0], number_of(i), 50, 0), SKY_STATUS_DONE);
    }
    asked_count = 0;
}

static uint32_t told(uint32_t status)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < KEYS; ++i)
    {
        count += keys[i].status == status ? 1u : 0u;
    }
    return count;
}

static void test_many_keys_are_one_operation(void)
{
    const uint32_t there = (KEYS + EVERY - 1u) / EVERY;

    open_ground(1);
    put_some();
    const uint64_t from_us = now_us;
    uint32_t       most    = 0;

    submit(prepare_many(KEYS));
    while (ground.running + ground.queue.waiting > 0u)
    {
        step();
        most = SKY_Host_Asking(&ground.host) > most ? SKY_Host_Asking(&ground.host) : most;
    }
    CHECK_EQ(runs[1].op.status, SKY_STATUS_MISS);
    CHECK(told(SKY_STATUS_DONE) == there && told(SKY_STATUS_MISS) == KEYS - there);
    for (uint32_t i = 0; i < KEYS; ++i)
    {
        CHECK_EQ(keys[i].status, i % EVERY == 0u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK_EQ(keys[i].facts.stripe.block_len, i % EVERY == 0u ? 50u : 0u);
    }
    CHECK(most <= NODES);
    CHECK_EQ(runs[1].op.tries, KEYS + KEYS - there); /* what is denied may be on its way: once more */
    CHECK_EQ(told_searched, 1);
    CHECK(now_us - from_us <= 25u * RTT_US);
    close_ground();
}

/* Whoever waits for a silent satellite keeps nobody else waiting, and not one key after the other does. */
static void test_a_silent_satellite_keeps_no_other_key_waiting(void)
{
    open_ground(1);
    put_some();
    const SKY_Addr_t silent  = SKY_Schedule_Server(&schedule, 1, 0);
    const uint64_t   from_us = now_us;

    silence(silent, true);
    submit(prepare_many(KEYS));
    while (ground.running + ground.queue.waiting > 0u && now_us < from_us + SECOND_US / 2u)
    {
        step();
    }
    CHECK(told(SKY_STATUS_DONE) > 0u && told_lost == 0);
    run_all();
    CHECK(told_lost == 1 && SKY_Ground_IsLost(&ground, silent));
    CHECK_EQ(told(SKY_STATUS_RUNNING) + told(SKY_STATUS_UNANSWERED), 0);
    for (uint32_t i = 0; i < KEYS; ++i)
    {
        const bool is_its = SKY_Spread_OfKey(keys[i].key, SERVERS) == 0u;

        CHECK_EQ(keys[i].status, i % EVERY == 0u && !is_its ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK(keys[i].silences <= (is_its ? 1u : 0u));
    }
    CHECK(now_us - from_us < 8u * SECOND_US);
    close_ground();
}

static uint32_t drops; /* answers that are lost */

static bool is_dropped(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    (void)answer;
    drops -= question->op == SKY_OP_HAS && SKY_Addr_Equal(question->dst, told_mute) && drops > 0u ? 1u : 0u;
    return question->op != SKY_OP_HAS || !SKY_Addr_Equal(question->dst, told_mute) || drops == 0u;
}

/* Answers to some keys are lost, again and again. Who has answered other keys meanwhile is not silent. */
static void test_who_answers_other_keys_is_not_silent(void)
{
    open_ground(1);
    put_some();
    told_mute = SKY_Schedule_Server(&schedule, 1, 0);
    drops     = 30;
    forge     = is_dropped;
    CHECK_EQ(finish(prepare_many(KEYS)), SKY_STATUS_MISS);
    CHECK_EQ(told(SKY_STATUS_DONE), (KEYS + EVERY - 1u) / EVERY);
    CHECK_EQ(told_lost, 0);
    close_ground();
}

/* Places change while keys are looked up: the others are asked where servers are then. */
static void test_places_that_change_meanwhile(void)
{
    for (uint32_t what = 0; what < 3u; ++what)
    {
        open_ground(what < 2u ? 2u : 1u);
        put_some();
        CHECK_EQ(find(&runs[0], 2), SKY_STATUS_MISS); /* no handover goes on */
        now_us += what == 0u ? ROW_US - 3u * SECOND_US : 0u;
        submit(prepare_many(80));
        step();
        step();
        CHECK(told(SKY_STATUS_RUNNING) > 0u);
        now_us += what == 0u ? 5u * SECOND_US : 0u;
        set_sky();
        if (what == 2u)
        {
            silence(SKY_Schedule_Server(&schedule, 1, 2), true);
            submit(prepare(&runs[2], SKY_GROUND_FIND, 3, 1, 0));
        }
        run_all();
        CHECK(ground.running == 0u && told(SKY_STATUS_RUNNING) == 0u);
        CHECK(told(SKY_STATUS_DONE) > 0u);
        close_ground();
    }
}

/* ---- a chain --------------------------------------------------------------------------------------------------------- */

#define CHAIN 20u

static uint32_t chain(uint32_t count, uint32_t block_bytes_max)
{
    SKY_GroundOp_t *op = prepare_many(count);

    op->is_chain        = true;
    op->block_bytes_max = block_bytes_max;
    asked_count         = 0;
    return finish(op);
}

static void test_a_chain_ends_where_blocks_are_missing(void)
{
    open_ground(1);
    CHECK_EQ(chain(CHAIN, BYTES_MAX), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.chain_count, 0);
    CHECK_EQ(told(SKY_STATUS_MISS), 1); /* most that miss do so at the first */
    for (uint32_t there = 1; there <= CHAIN; ++there)
    {
        CHECK_EQ(put(&runs[0], number_of(there - 1u), 10u * there, 0), SKY_STATUS_DONE);
        CHECK_EQ(chain(CHAIN, BYTES_MAX), there == CHAIN ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.chain_count, there);
        CHECK_EQ(told(SKY_STATUS_DONE), there);
        CHECK(told(SKY_STATUS_MISS) <= 5u); /* a binary search */
    }
    CHECK_EQ(chain(1, BYTES_MAX), SKY_STATUS_DONE);
    CHECK_EQ(runs[1].op.chain_count, 1);
    CHECK_EQ(chain(CHAIN, 105), SKY_STATUS_DONE); /* a longer block ends it */
    CHECK_EQ(runs[1].op.chain_count, 10);
    CHECK_EQ(chain(CHAIN, 5), SKY_STATUS_DONE);
    CHECK_EQ(runs[1].op.chain_count, 0);
    close_ground();
}

/* A block that was left out is evicted alone. */
static void test_a_chain_with_a_gap(void)
{
    open_ground(1);
    for (uint32_t i = 0; i < CHAIN; ++i)
    {
        CHECK_EQ(put(&runs[0], number_of(i), 50, 0), SKY_STATUS_DONE);
        if (i == 3u)
        {
            forget(home_of(&runs[0].op, 1, 0), &runs[0].op);
        }
    }
    CHECK_EQ(chain(CHAIN, BYTES_MAX), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.chain_count, 3);
    CHECK_EQ(told(SKY_STATUS_DONE), CHAIN - 1u);
    close_ground();
}

static void test_a_chain_without_answers(void)
{
    open_ground(1);
    forge = refuses_has;
    CHECK_EQ(chain(CHAIN, BYTES_MAX), SKY_STATUS_UNANSWERED);
    CHECK(runs[1].op.chain_count == 0 && told(SKY_STATUS_UNANSWERED) == 1u && keys[0].status == SKY_STATUS_UNANSWERED);
    forge = NULL;
    for (uint32_t i = 0; i < CHAIN; ++i)
    {
        CHECK_EQ(put(&runs[0], number_of(i), 50, 0), SKY_STATUS_DONE);
    }
    told_mute = SKY_Schedule_Server(&schedule, 1, 1);
    forge     = is_mute; /* about some nobody answers: in the middle that ends the search */
    CHECK_EQ(chain(CHAIN, BYTES_MAX), SKY_STATUS_UNANSWERED);
    CHECK(told(SKY_STATUS_UNANSWERED) >= 1u && runs[1].op.chain_count < CHAIN);
    close_ground();
}

/* Called back in the middle, a look-up asks nobody for the keys that are left. */
static void test_a_look_up_that_is_called_back_asks_no_more(void)
{
    open_ground(1);
    put_some();
    submit(prepare_many(KEYS));
    step();
    CHECK(SKY_Host_Asking(&ground.host) > 0u);
    SKY_Ground_Cancel(&ground, &runs[1].op);
    const uint32_t asked_before = asked_count;

    step();
    CHECK(runs[1].has_ended && runs[1].op.status == SKY_STATUS_CANCELLED);
    CHECK_EQ(asked_count, asked_before);
    CHECK_EQ(SKY_Host_Asking(&ground.host), 0);
    submit(prepare_many(KEYS)); /* its memory is free again */
    run_all();
    CHECK_EQ(told(SKY_STATUS_RUNNING) + told(SKY_STATUS_UNANSWERED), 0);
    close_ground();
}

/* All servers are silent: none of the keys is waited for longer because of the others, and stand-ins deny them. */
static void test_all_servers_are_silent(void)
{
    open_ground(1);
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        silence(SKY_Schedule_Server(&schedule, 1, server), true);
    }
    const uint64_t from_us = now_us;

    CHECK_EQ(finish(prepare_many(KEYS)), SKY_STATUS_MISS);
    CHECK_EQ(told(SKY_STATUS_MISS), KEYS);
    CHECK(ground.reach.lost_count == SERVERS && now_us - from_us < 12u * SECOND_US);
    close_ground();
}

/* A satellite is found lost that none of the keys is asked of, while answers of another one are lost: the keys that are left are asked anew where
 * servers are then. */
static void test_another_one_is_found_lost_meanwhile(void)
{
    uint32_t count = 0;

    open_ground(1);
    put_some();
    silence(SKY_Schedule_Server(&schedule, 1, 0), true);
    told_mute = SKY_Schedule_Server(&schedule, 1, 1);
    drops     = 300;
    forge     = is_dropped;
    submit(prepare(&runs[2], SKY_GROUND_PUT, 1, 950, 5));
    while (ground.reach.suspects == 0u)
    {
        step();
    }
    SKY_GroundOp_t *op = prepare_many(KEYS);

    for (uint32_t i = 0; i < KEYS; ++i)
    {
        if (SKY_Spread_OfKey(keys[i].key, SERVERS) != 0u)
        {
            keys[count] = keys[i];
            ++count;
        }
    }
    op->found_count = count;
    CHECK_EQ(finish(op), SKY_STATUS_MISS);
    CHECK_EQ(told_lost, 1);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK(keys[i].status == SKY_STATUS_DONE || keys[i].status == SKY_STATUS_MISS);
    }
    close_ground();
}

int main(void)
{
    RUN(test_many_keys_are_one_operation);
    RUN(test_a_silent_satellite_keeps_no_other_key_waiting);
    RUN(test_who_answers_other_keys_is_not_silent);
    RUN(test_places_that_change_meanwhile);
    RUN(test_a_chain_ends_where_blocks_are_missing);
    RUN(test_a_chain_with_a_gap);
    RUN(test_a_chain_without_answers);
    RUN(test_a_look_up_that_is_called_back_asks_no_more);
    RUN(test_all_servers_are_silent);
    RUN(test_another_one_is_found_lost_meanwhile);
    return CHECK_RESULT();
}
