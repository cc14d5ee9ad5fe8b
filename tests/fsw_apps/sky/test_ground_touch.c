/**
 * @file
 * TOUCH of a ground host: which blocks satellites take for used, and in which order.
 */
#include "ground_rig.h"

#define CHAIN 40u

static run_t             runs[OPERATIONS + 1u];
static SKY_GroundBlock_t chain[CHAIN];
static run_t             touch;

/* Put a chain of blocks, the first first. No question is sent again while its answer is on its way. */
static void put_chain(uint32_t count)
{
    const SKY_HostPatience_t patience = {250000, 4u * RTT_US, 1000000, 500000};

    SKY_Host_SetPatience(&ground.host, &patience);
    for (uint32_t i = 0; i < count; ++i)
    {
        CHECK_EQ(put(&runs[0], i, 350, 0), SKY_STATUS_DONE);
        (void)memcpy(chain[i].key, runs[0].op.key, SKY_KEY_BYTES);
        chain[i].facts = runs[0].op.facts;
    }
}

static SKY_GroundOp_t *prepare_touch(uint32_t count)
{
    (void)memset(&touch, 0, sizeof(touch));
    touch.op.kind         = SKY_GROUND_TOUCH;
    touch.op.chain        = chain;
    touch.op.chain_length = count;
    touch.op.deadline_ms  = 1000;
    return &touch.op;
}

/* Return the number of the block of the chain that a satellite was told about. */
static uint32_t number_of(const SKY_Packet_t *pkt)
{
    uint32_t i = 0;

    while (i < CHAIN && memcmp(chain[i].key, pkt->key, SKY_KEY_BYTES) != 0)
    {
        ++i;
    }
    return i;
}

static void test_the_last_block_is_used_first(void)
{
    open_ground(1);
    put_chain(CHAIN);
    const uint64_t misses = nodes[0].store.counters.evicted_blocks;
    uint32_t       before = CHAIN;
    uint32_t       told   = 0;

    asked_count = 0;
    CHECK_EQ(finish(prepare_touch(CHAIN)), SKY_STATUS_DONE);
    CHECK_EQ(touch.op.touched, CHAIN);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        const uint32_t number = number_of(&asked[i]);

        if (asked[i].op == SKY_OP_HAS)
        {
            CHECK(number <= before && number < CHAIN);
            CHECK((asked[i].flags & SKY_FLAG_USE) != 0u);
            before = number;
            ++told;
        }
    }
    CHECK(before == 0u && told == SERVERS * CHAIN && nodes[0].store.counters.evicted_blocks == misses);
    CHECK_EQ(asked_of(SKY_OP_GET, 0), 0);
    close_ground();
}

/* Return how many blocks of the chain a satellite holds, if those are the first ones; CHAIN if they are not. */
static uint32_t held_first(SKY_Addr_t satellite, uint32_t count)
{
    uint32_t held = 0;
    uint32_t last = 0;

    for (uint32_t i = 0; i < count; ++i)
    {
        (void)memcpy(runs[0].op.key, chain[i].key, SKY_KEY_BYTES);
        if (holds(satellite, &runs[0].op))
        {
            ++held;
            last = i + 1u;
        }
    }
    return held == last ? held : CHAIN;
}

/* Once a satellite needs room it evicts the end of a chain that was touched, and its beginning if it was not. */
static void test_a_chain_that_was_touched_loses_its_end_first(void)
{
    const uint32_t count = 12;

    for (uint32_t touched = 0; touched < 2u; ++touched)
    {
        uint32_t held = count;

        open_ground(1);
        put_chain(count);
        CHECK(touched == 0u || finish(prepare_touch(count)) == SKY_STATUS_DONE);
        const SKY_Addr_t home = home_of(&runs[0].op, 1, 0);

        for (uint32_t i = 0; i < 60u && held == count; ++i)
        {
            CHECK_EQ(put(&runs[1], 0x10000u + i, 350, 0), SKY_STATUS_DONE);
            held = held_first(home, count);
        }
        CHECK_EQ(held == CHAIN, touched == 0u);
        CHECK(touched == 0u || (held > 0u && held < count));
        close_ground();
    }
}

static void test_a_silent_satellite_ends_it(void)
{
    open_ground(1);
    put_chain(CHAIN);
    silence(home_of(&runs[0].op, 1, 1), true);
    CHECK_EQ(finish(prepare_touch(CHAIN)), SKY_STATUS_UNANSWERED);
    CHECK(touch.op.touched == 0u && ground.reach.suspects == 1u);
    rest();
    CHECK_EQ(ground.reach.lost_count, 1);
    CHECK_EQ(finish(prepare_touch(CHAIN)), SKY_STATUS_DONE); /* the stand-in says that it has nothing of these blocks */
    CHECK_EQ(touch.op.touched, CHAIN);
    close_ground();
}

static void test_nobody_can_be_asked(void)
{
    open_ground(1);
    put_chain(2);
    CHECK_EQ(finish(prepare_touch(0)), SKY_STATUS_DONE); /* an empty chain */
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    sky.seen_count = 0;
    set_sky();
    CHECK_EQ(finish(prepare_touch(2)), SKY_STATUS_NO_SATELLITE);
    seen[0]        = (SKY_Addr_t){1, 1};
    sky.seen_count = 1;
    set_sky();
    silence_all(true);
    CHECK_EQ(finish(prepare_touch(2)), SKY_STATUS_UNANSWERED);
    rest();
    CHECK(ground.reach.pause_us > 0u);
    CHECK_EQ(finish(prepare_touch(2)), SKY_STATUS_UNANSWERED); /* it asks nobody now */
    close_ground();
}

int main(void)
{
    RUN(test_the_last_block_is_used_first);
    RUN(test_a_chain_that_was_touched_loses_its_end_first);
    RUN(test_a_silent_satellite_ends_it);
    RUN(test_nobody_can_be_asked);
    return CHECK_RESULT();
}
