/**
 * @file
 * PUT of a new version of a value: who is told to forget older ones.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS];

/* Count the satellites that hold this version of a block. */
static uint32_t holders_of(const SKY_GroundOp_t *op, uint64_t version)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        const uint32_t entry = SKY_Store_Find(&nodes[i].store, op->tenant, op->key);
        uint64_t       held  = 0;
        uint32_t       content;

        if (entry != SKY_STORE_NONE)
        {
            SKY_Store_Instance(&nodes[i].store, entry, &held, &content);
            count += held == version ? 1u : 0u;
        }
    }
    return count;
}

static uint32_t delete (run_t *run, uint32_t number, uint64_t version)
{
    (void)prepare(run, SKY_GROUND_PUT, number, 50, version);
    run->op.is_deletion = true;
    return finish(&run->op);
}

/* All that a look-up asks have got a share. */
static void test_nobody_is_asked_as_a_rule(void)
{
    open_ground(1);
    for (uint64_t version = 4; version <= 6u; ++version)
    {
        CHECK_EQ(put(&runs[0], 1, 950, version), SKY_STATUS_DONE);
        CHECK_EQ(put(&runs[1], 65, 50, version), SKY_STATUS_DONE);
    }
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), 0);
    CHECK_EQ(put(&runs[1], 1, 50, 7), SKY_STATUS_DONE); /* its first server is that of the longer ones */
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), 0);
    CHECK_EQ(holders_of(&runs[0].op, 6), SERVERS - 1u);
    close_ground();
}

/* Shares of the row before were not handed over yet. */
static void test_a_look_up_does_not_meet_an_older_version_of_a_row_before(void)
{
    for (uint64_t version = 1; version <= 6u; version += 5u)
    {
        open_ground(2);
        CHECK_EQ(put(&runs[0], 1, 50, version), SKY_STATUS_DONE);
        now_us      = START_US + ROW_US + SECOND_US;
        asked_count = 0;
        CHECK_EQ(put(&runs[1], 1, 50, version), SKY_STATUS_DONE);
        CHECK_EQ(asked_of(SKY_OP_PURGE, 0), version == 1u ? 0u : 1u);
        CHECK_EQ(holders_of(&runs[0].op, version), 2); /* this one is not older */
        CHECK_EQ(put(&runs[1], 1, 50, version + 1u), SKY_STATUS_DONE);
        CHECK_EQ(holders_of(&runs[0].op, version), 0);
        CHECK_EQ(holders_of(&runs[0].op, version + 1u), 1);
        CHECK_EQ(asked[asked_count - 1u].block_version, version);
        CHECK(SKY_Addr_Equal(asked[asked_count - 1u].dst, home_of(&runs[0].op, 1, 0)));
        close_ground();
    }
}

/* With parity a look-up asks one more. Once all has been handed over only the first server's place of the row before counts. */
static void test_a_look_up_asks_several_with_parity(void)
{
    for (uint32_t seconds = 1; seconds <= 41u; seconds += 40u)
    {
        open_ground(2);
        sky.parity = 1;
        set_sky();
        now_us      = START_US + ROW_US + seconds * SECOND_US;
        asked_count = 0;
        CHECK_EQ(put(&runs[0], 1, 50, 6), SKY_STATUS_DONE);
        CHECK_EQ(asked_of(SKY_OP_PURGE, 0), seconds == 1u ? 3u : 2u);
        for (uint32_t i = 0; i < asked_count; ++i)
        {
            CHECK(asked[i].op != SKY_OP_PURGE || !SKY_Addr_Equal(asked[i].dst, home_of(&runs[0].op, 2, 0)));
        }
        close_ground();
    }
}

static void test_all_servers_forget_what_is_deleted(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    CHECK_EQ(holders_of(&runs[0].op, 5), SERVERS);
    CHECK_EQ(delete (&runs[1], 1, 6), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), SERVERS - 1u);
    CHECK_EQ(holders_of(&runs[0].op, 5), 0);
    CHECK_EQ(holders_of(&runs[0].op, 6), 1);
    CHECK_EQ(runs[1].op.tries, SERVERS);
    close_ground();
}

/* Of rows before only the first server, whose share was not handed over yet. */
static void test_servers_of_now_forget_what_is_deleted(void)
{
    open_ground(2);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    now_us = START_US + ROW_US + SECOND_US;
    CHECK_EQ(delete (&runs[1], 1, 6), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), SERVERS);
    CHECK(!holds(home_of(&runs[0].op, 1, 0), &runs[0].op));
    CHECK_EQ(holders_of(&runs[0].op, 6), 1);
    close_ground();
}

static bool drops_purges(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    (void)answer;
    return question->op != SKY_OP_PURGE;
}

/* Nobody waits long for them, and nothing depends on them. */
static void test_nothing_depends_on_the_answers(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    forge                   = drops_purges;
    const uint64_t began_us = now_us;

    CHECK_EQ(delete (&runs[1], 1, 6), SKY_STATUS_DONE);
    CHECK(now_us - began_us < SECOND_US / 2u);
    CHECK(told_lost == 0u && runs[1].op.verdict == SKY_VERDICT_KEEP);
    close_ground();
}

/* The last satellite in sight sets when the put is done. */
static void test_nobody_is_in_sight_any_more(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_PUT, 1, 50, 6);
    runs[1].op.is_deletion = true;
    submit(&runs[1].op);
    (void)SKY_Ground_Run(&ground, now_us, true);
    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), 0);
    close_ground();
}

/* What failed has replaced nothing for sure. */
static void test_a_put_that_failed_purges_nothing(void)
{
    open_ground(2);
    CHECK_EQ(put(&runs[0], 1, 50, 9), SKY_STATUS_DONE);
    CHECK_EQ(delete (&runs[1], 1, 6), SKY_STATUS_OLD_VERSION);
    CHECK_EQ(asked_of(SKY_OP_PURGE, 0), 0);
    close_ground();
}

static void test_it_is_called_back_while_they_are_asked(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    (void)prepare(&runs[1], SKY_GROUND_PUT, 1, 50, 6);
    runs[1].op.is_deletion = true;
    submit(&runs[1].op);
    while (asked_of(SKY_OP_PURGE, 0) == 0u)
    {
        step();
    }
    SKY_Ground_Cancel(&ground, &runs[1].op);
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_CANCELLED);
    CHECK_EQ(SKY_Host_Asking(&ground.host), 0);
    close_ground();
}

int main(void)
{
    RUN(test_nobody_is_asked_as_a_rule);
    RUN(test_a_look_up_does_not_meet_an_older_version_of_a_row_before);
    RUN(test_a_look_up_asks_several_with_parity);
    RUN(test_all_servers_forget_what_is_deleted);
    RUN(test_servers_of_now_forget_what_is_deleted);
    RUN(test_nothing_depends_on_the_answers);
    RUN(test_nobody_is_in_sight_any_more);
    RUN(test_a_put_that_failed_purges_nothing);
    RUN(test_it_is_called_back_while_they_are_asked);
    return CHECK_RESULT();
}
