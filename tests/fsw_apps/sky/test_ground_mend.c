/**
 * @file
 * What mending is made of: a CHECK that tells who holds what, a PUT of the rest, and a GET without one satellite.
 */
#include "ground_rig.h"

static run_t      runs[OPERATIONS + 1u];
static SKY_Addr_t holders[SERVERS];

/* A block of three data chunks in a row and one of parity. */
static SKY_GroundOp_t *prepare_coded(run_t *run, SKY_GroundKind_t kind)
{
    SKY_GroundOp_t *op = prepare(run, kind, 1, 950, 0);

    CHECK(SKY_Stripe_Cut(&op->facts.stripe, 950, CHUNK, 3, 1));
    return op;
}

static void open_coded(void)
{
    open_ground(1);
    sky.parity = 1;
    set_sky();
    CHECK_EQ(finish(prepare_coded(&runs[0], SKY_GROUND_PUT)), SKY_STATUS_DONE);
}

static uint32_t check_holders(void)
{
    (void)prepare_coded(&runs[1], SKY_GROUND_CHECK);
    runs[1].op.holders = holders;
    (void)memset(holders, 0x55, sizeof(holders));
    return finish(&runs[1].op);
}

/* Count the shares that their homes are said to hold. */
static uint32_t held_at_home(void)
{
    uint32_t held = 0;

    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        const bool is_home = SKY_Addr_Equal(holders[share], home_of(&runs[0].op, 1, share));

        CHECK(is_home || holders[share].plane == 0u);
        held += is_home ? 1u : 0u;
    }
    return held;
}

static void test_only_what_is_missing_is_put_again(void)
{
    open_coded();
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    CHECK_EQ(held_at_home(), SERVERS);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    CHECK_EQ(check_holders(), SKY_STATUS_DONE); /* the code bears it */
    CHECK(runs[1].op.check.told.denied > 0u && holders[2].plane == 0u);
    CHECK_EQ(held_at_home(), SERVERS - 1u);

    (void)prepare_coded(&runs[2], SKY_GROUND_PUT);
    runs[2].op.holders = holders;
    asked_count        = 0;
    CHECK_EQ(finish(&runs[2].op), SKY_STATUS_DONE);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(asked[i].op != SKY_OP_PUT || asked[i].chunk_id % SERVERS == 2u);
    }
    CHECK(asked_of(SKY_OP_PUT, 0) > 0u && holds(home_of(&runs[0].op, 1, 2), &runs[0].op));
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    CHECK_EQ(held_at_home(), SERVERS);
    close_ground();
}

static void test_nothing_is_put_where_all_is_held(void)
{
    open_coded();
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    (void)prepare_coded(&runs[2], SKY_GROUND_PUT);
    runs[2].op.holders = holders;
    asked_count        = 0;
    CHECK_EQ(finish(&runs[2].op), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_PUT, 0), 0);
    close_ground();
}

/* A holder that is lost is none of those to which the shares belong now: a stand-in gets its share. */
static void test_a_lost_holder_does_not_count(void)
{
    SKY_Addr_t away;

    open_coded();
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    CHECK_EQ(put(&runs[3], 65, 950, 5), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    (void)prepare_coded(&runs[2], SKY_GROUND_PUT);
    runs[2].op.holders = holders;
    asked_count        = 0;
    CHECK_EQ(finish(&runs[2].op), SKY_STATUS_DONE);
    CHECK(asked_of(SKY_OP_PUT, 0) > 0u);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(asked[i].op != SKY_OP_PUT || (asked[i].chunk_id % SERVERS == 1u && SKY_Addr_Equal(asked[i].home, away)));
    }
    close_ground();
}

/* A silent satellite is not said to hold its share, nor one of which nobody was asked. */
static void test_silence_is_no_holder(void)
{
    open_coded();
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 3), true);
    CHECK_EQ(finish(prepare_coded(&runs[1], SKY_GROUND_CHECK)), SKY_STATUS_DONE); /* the others suffice */
    CHECK_EQ(told_lost, 0);
    CHECK_EQ(check_holders(), SKY_STATUS_DONE);
    CHECK_EQ(held_at_home(), SERVERS - 1u);
    CHECK(holders[3].plane == 0 && told_lost == 1 && runs[1].op.check.told.denied > 0u); /* its stand-in does not hold it */
    close_ground();
}

static void test_a_get_without_one_satellite(void)
{
    open_coded();
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        (void)prepare_coded(&runs[1], SKY_GROUND_GET);
        runs[1].op.left_out = home_of(&runs[0].op, 1, share);
        asked_count         = 0;
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
        CHECK(is_as_put(&runs[1], 1, 0) && runs[1].op.verdict == SKY_VERDICT_KEEP);
        for (uint32_t i = 0; i < asked_count; ++i)
        {
            CHECK(asked[i].op != SKY_OP_GET || !SKY_Addr_Equal(asked[i].dst, runs[1].op.left_out));
        }
    }
    close_ground();
}

/* What others do not have says nothing of the block: nothing is looked for, and nothing purged. */
static void test_a_get_without_one_that_is_needed(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 0);
    runs[1].op.left_out = home_of(&runs[0].op, 1, 1);
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_MISS);
    CHECK(runs[1].op.verdict == SKY_VERDICT_KEEP && told_searched == 0 && runs[1].op.attempts.asks == 1u);
    close_ground();
}

int main(void)
{
    RUN(test_only_what_is_missing_is_put_again);
    RUN(test_nothing_is_put_where_all_is_held);
    RUN(test_a_lost_holder_does_not_count);
    RUN(test_silence_is_no_holder);
    RUN(test_a_get_without_one_satellite);
    RUN(test_a_get_without_one_that_is_needed);
    return CHECK_RESULT();
}
