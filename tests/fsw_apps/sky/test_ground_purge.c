/**
 * @file
 * PURGE of a ground host: satellites forget a block.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS];

static uint32_t purge(run_t *run, uint32_t number, uint32_t bytes)
{
    return finish(prepare(run, SKY_GROUND_PURGE, number, bytes, 0));
}

static uint32_t holders(const SKY_GroundOp_t *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += holds(nodes[i].svc.core.cfg.self, op) ? 1u : 0u;
    }
    return count;
}

static void test_all_forget_a_block(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(holders(&runs[0].op), SERVERS);
    CHECK_EQ(purge(&runs[1], 1, 950), SKY_STATUS_DONE);
    CHECK(holders(&runs[0].op) == 0 && told_searched == 1);
    CHECK(runs[1].op.tries == SERVERS && runs[1].op.purged == 10u);
    close_ground();
}

/* Another block is to be put under the key: those that a look-up asks are asked first, and all if they tell of more. */
static void test_a_way_is_made(void)
{
    for (uint32_t bytes = 50; bytes <= 950u; bytes += 900u)
    {
        open_ground(1);
        CHECK_EQ(put(&runs[0], 1, bytes, 0), SKY_STATUS_DONE);
        asked_count = 0;
        (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, bytes, 0);
        runs[1].op.is_way_made = true;
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
        CHECK_EQ(holders(&runs[0].op), 0);
        CHECK_EQ(asked_of(SKY_OP_PURGE, 0), bytes == 50u ? 1u : 1u + SERVERS);
        CHECK_EQ(runs[1].op.purged, bytes == 50u ? 1u : 10u);
        close_ground();
    }
}

/* Of a block of which only the key is known all places are asked, as of another one. */
static void test_only_the_key_is_known(void)
{
    for (uint32_t parity = 0; parity < 2u; ++parity)
    {
        for (uint32_t is_way_made = 0; is_way_made < 2u; ++is_way_made)
        {
            open_ground(1);
            sky.parity = parity;
            set_sky();
            (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
            CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, parity == 0u ? 0 : 3, (uint8_t)parity));
            CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
            const uint32_t chunks = runs[0].op.facts.stripe.chunk_total;

            for (uint32_t i = 0; i < 2u; ++i) /* once more: nobody knows it */
            {
                (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, 1, 0);
                (void)memset(&runs[1].op.facts, 0, sizeof(runs[1].op.facts));
                runs[1].op.is_way_made = is_way_made != 0u;
                CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
                CHECK_EQ(runs[1].op.purged, i == 0u ? chunks : 0u);
                CHECK_EQ(holders(&runs[0].op), 0);
            }
            close_ground();
        }
    }
}

/* A satellite that is silent keeps its share. */
static void test_a_silent_satellite_may_keep_its_share(void)
{
    SKY_Addr_t away;

    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    silence(home_of(&runs[0].op, 1, 3), true);
    CHECK_EQ(purge(&runs[1], 1, 950), SKY_STATUS_DONE); /* without the others' shares the block cannot be had */
    CHECK(SKY_Ground_IsLost(&ground, away) && holds(away, &runs[0].op));
    CHECK_EQ(holders(&runs[0].op), 2);
    CHECK(SKY_Addr_Equal(runs[1].op.failed_on, away));
    close_ground();
}

/* With parity the shares that are gone count: no more may be left than lets the block be had. */
static void test_enough_shares_are_gone(void)
{
    for (uint32_t silent = 1; silent <= 4u; silent += 3u)
    {
        open_ground(1);
        sky.parity = 1;
        set_sky();
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 0);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        for (uint32_t share = 0; share < silent; ++share)
        {
            silence(home_of(&runs[0].op, 1, share), true);
        }
        (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 0);
        runs[1].op.facts.stripe = runs[0].op.facts.stripe;
        CHECK_EQ(finish(&runs[1].op), silent == 1u ? SKY_STATUS_DONE : SKY_STATUS_EXPIRED);
        CHECK_EQ(holders(&runs[0].op), silent);
        close_ground();
    }
}

/* The rest of a block that was missed: one round, of that content. */
static void test_the_rest_goes_in_one_round(void)
{
    open_ground(2);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    asked_count = 0;
    for (uint32_t epoch = 0; epoch <= 2u; epoch += 2u)
    {
        (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 5);
        runs[1].op.is_lazy       = true;
        runs[1].op.facts.content = 8; /* another content stays */
        runs[1].op.facts.epoch   = epoch;
        (void)finish(&runs[1].op);
        CHECK(holders(&runs[0].op) == SERVERS && runs[1].op.purged == 0u);
        CHECK_EQ(asked[asked_count - 1u].epoch, epoch == 0u ? 1u : 2u);
    }
    silence(home_of(&runs[0].op, 1, 1), true);
    asked_count = 0;
    (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 5);
    runs[1].op.is_lazy    = true;
    runs[1].op.is_hurried = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_EXPIRED);
    CHECK_EQ(holders(&runs[0].op), 1);
    CHECK_EQ(runs[1].op.purged, 7); /* all but those of share 1 */
    CHECK(told_searched == 0 && told_lost == 0);
    CHECK_EQ(asked[asked_count - 1u].content, 7);
    close_ground();
}

static void test_a_hurried_one_leaves_silent_satellites_alone(void)
{
    SKY_Addr_t away;

    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 0)), SKY_STATUS_UNANSWERED);
    asked_count = 0;
    (void)prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 0);
    runs[1].op.is_lazy    = true;
    runs[1].op.is_hurried = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE); /* without the others' shares it cannot be had */
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), SERVERS - 1u);
    CHECK_EQ(holders(&runs[0].op), 1);
    close_ground();
}

static void test_nobody_can_be_asked(void)
{
    open_ground(1);
    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    CHECK_EQ(purge(&runs[0], 1, 950), SKY_STATUS_NO_SATELLITE);
    sky.uplink = (uint32_t)SKY_UPLINK_DIRECT;
    set_sky();
    silence_all(true);
    CHECK_EQ(finish(prepare(&runs[1], SKY_GROUND_FIND, 1, 950, 0)), SKY_STATUS_UNANSWERED);
    asked_count = 0;
    CHECK_EQ(purge(&runs[0], 1, 950), SKY_STATUS_NO_SATELLITE); /* this host is silent */
    CHECK(asked_of(SKY_OP_PURGE, 0) == 0);
    close_ground();
}

static bool refuses(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->status = question->op == SKY_OP_PURGE ? SKY_STATUS_BAD_OP : answer->status;
    return true;
}

/* They answer, but do not forget. */
static void test_who_refuses_has_not_confirmed(void)
{
    open_ground(1);
    sky.parity = 1;
    set_sky();
    forge = refuses;
    (void)prepare(&runs[0], SKY_GROUND_PURGE, 1, 950, 0);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_EXPIRED);
    CHECK(runs[0].op.failed_on.plane == 0u && ground.reach.lost_count == 0u);
    close_ground();
}

/* Shares are late, so all places are asked until none tells of anything, twice. */
static void test_shares_that_are_late_go_too(void)
{
    open_ground(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    now_us = START_US + 3u * ROW_US + 10u * SECOND_US;
    poll_all();
    CHECK_EQ(purge(&runs[1], 1, 950), SKY_STATUS_DONE);
    CHECK_EQ(holders(&runs[0].op), 0);
    CHECK(ground.late_count > 0 || told_searched > 1u);
    close_ground();
}

int main(void)
{
    RUN(test_all_forget_a_block);
    RUN(test_a_way_is_made);
    RUN(test_only_the_key_is_known);
    RUN(test_a_silent_satellite_may_keep_its_share);
    RUN(test_enough_shares_are_gone);
    RUN(test_the_rest_goes_in_one_round);
    RUN(test_a_hurried_one_leaves_silent_satellites_alone);
    RUN(test_nobody_can_be_asked);
    RUN(test_who_refuses_has_not_confirmed);
    RUN(test_shares_that_are_late_go_too);
    return CHECK_RESULT();
}
