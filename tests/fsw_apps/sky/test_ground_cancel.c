/**
 * @file
 * Operations of a ground host that are called back.
 */
#include "ground_rig.h"

#define CUTS_MAX 200u /* more steps than any of these operations takes */

static run_t runs[OPERATIONS + 1u];

/* Count what was asked about an operation's block since the @p from th packet. */
static uint32_t asked_about(const SKY_GroundOp_t *op, uint32_t from)
{
    uint32_t count = 0;

    for (uint32_t i = from; i < asked_count; ++i)
    {
        count += memcmp(asked[i].key, op->key, SKY_KEY_BYTES) == 0 ? 1u : 0u;
    }
    return count;
}

/* Call an operation back, and hear all that comes for it. */
static void call_back(run_t *run)
{
    SKY_Ground_Cancel(&ground, &run->op);
    const uint32_t from = asked_count;

    step();
    CHECK(run->has_ended && ground.running == 0);
    CHECK(run->op.status == SKY_STATUS_CANCELLED && run->op.verdict == SKY_VERDICT_KEEP);
    for (uint32_t i = 0; i < CUTS_MAX; ++i)
    {
        now_us += RTT_US;
        while (hear(now_us))
        {
        }
        (void)SKY_Ground_Run(&ground, now_us, true);
        CHECK(SKY_Ground_Ended(&ground) == NULL);
    }
    CHECK_EQ(asked_about(&run->op, from), 0);
    CHECK(ground.host.running == 0 && SKY_Host_Asking(&ground.host) == 0);
}

/* An operation of each kind is called back after each of its steps. Then others have all the memory, and it can be done again. */
static void test_any_operation_at_any_time(void)
{
    static const SKY_GroundKind_t kinds[] = {SKY_GROUND_PUT, SKY_GROUND_GET, SKY_GROUND_FIND, SKY_GROUND_CHECK, SKY_GROUND_PURGE};
    bool                          was_cut = true;

    for (uint32_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); ++kind)
    {
        was_cut = true;
        for (uint32_t cut = 0; was_cut && cut < CUTS_MAX; ++cut)
        {
            open_ground(1);
            CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
            if (kinds[kind] != SKY_GROUND_PUT)
            {
                forget(home_of(&runs[0].op, 1, 3), &runs[0].op); /* so that more than one thing is asked */
                silence(home_of(&runs[0].op, 1, 1), true);
            }
            asked_count = 0;
            submit(prepare(&runs[1], kinds[kind], 1, 950, kinds[kind] == SKY_GROUND_PUT ? 6 : 5));
            for (uint32_t i = 0; i < cut && !runs[1].has_ended; ++i)
            {
                step();
            }
            was_cut = !runs[1].has_ended;
            if (was_cut)
            {
                call_back(&runs[1]);
            }
            silence_all(false);
            for (uint32_t i = 0; i < OPERATIONS; ++i)
            {
                submit(prepare(&runs[i], SKY_GROUND_PUT, 64u * i, 350, 7));
            }
            run_all();
            for (uint32_t i = 0; i < OPERATIONS; ++i)
            {
                CHECK(runs[i].op.status == SKY_STATUS_DONE);
            }
            close_ground();
        }
        CHECK(!was_cut);
    }
}

/* What others wait for goes on: the inquiry that one waited for, and the transfers of others. */
static void test_others_go_on(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(prepare(&runs[0], SKY_GROUND_PURGE, 1, 950, 5));
    for (uint32_t i = 0; i < STEPS_MAX && runs[0].op.waits != SKY_GROUND_WAIT_LOOK && !runs[0].has_ended; ++i)
    {
        step();
    }
    CHECK(runs[0].op.waits == SKY_GROUND_WAIT_LOOK);
    submit(prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 6));
    step();
    SKY_Ground_Cancel(&ground, &runs[0].op);
    SKY_Ground_Cancel(&ground, &runs[0].op); /* once is enough */
    step();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_CANCELLED);
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    SKY_Ground_Cancel(&ground, &runs[1].op); /* it has ended */
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    CHECK(SKY_Ground_Run(&ground, now_us, true) > now_us && SKY_Ground_Ended(&ground) == NULL);
    CHECK_EQ(put(&runs[2], 1, 950, 7), SKY_STATUS_DONE);
    close_ground();
}

/* A transfer that has ended, and one whose question waits to be sent. */
static void test_between_two_runs(void)
{
    open_ground(1);
    submit(prepare(&runs[0], SKY_GROUND_PUT, 1, 350, 0));
    while (runs[0].op.block.status != SKY_STATUS_DONE)
    {
        (void)SKY_Ground_Run(&ground, now_us, true);
        CHECK(hear(now_us + SECOND_US));
    }
    CHECK(runs[0].op.status == SKY_STATUS_RUNNING);
    call_back(&runs[0]);
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 350, 0)); /* it has asked nobody */
    call_back(&runs[1]);
    close_ground();
}

int main(void)
{
    RUN(test_any_operation_at_any_time);
    RUN(test_others_go_on);
    RUN(test_between_two_runs);
    return CHECK_RESULT();
}
