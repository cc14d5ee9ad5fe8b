/**
 * @file
 * Operations of a ground host that wait for their beginning: who begins when, and within which limits.
 */
#include "ground_rig.h"

#define MANY  600u
#define SMALL 3u
#define LARGE 1900u

static run_t    runs[MANY];
static uint32_t order[MANY]; /* operations in the order of their ends */
static bool     is_noted[MANY];
static uint32_t ended;
static uint32_t count; /* operations of the test */

/* One operation at a time, so that they end in the order in which they began. */
static void one_at_a_time(SKY_GroundLimits_t *limits)
{
    limits->operations = 1;
    limits->queued     = MANY;
}

static void many(SKY_GroundLimits_t *limits)
{
    limits->operations   = 16;
    limits->works        = 32;
    limits->pieces       = 512;
    limits->lanes        = 256;
    limits->queued       = 32;
    limits->bytes        = 3u * LARGE;
    limits->tenant_bytes = 2u * LARGE;
}

static void open_with(void (*with)(SKY_GroundLimits_t *limits))
{
    limit = with;
    open_ground(1);
    limit = NULL;
    ended = 0;
    count = 0;
    (void)memset(is_noted, 0, sizeof(is_noted));
    CHECK_EQ(put(&runs[0], 1, SMALL, 0), SKY_STATUS_DONE);
    CHECK_EQ(put(&runs[0], 2, LARGE, 0), SKY_STATUS_DONE);
}

/* Submit the next operation: a GET of what is there, or a PUT of that once more. @return its number */
static uint32_t add(SKY_GroundKind_t kind, uint32_t bytes, uint32_t tenant)
{
    CHECK(count < MANY);
    (void)prepare(&runs[count], kind, bytes == SMALL ? 1u : 2u, bytes, 0);
    runs[count].op.tenant = tenant;
    submit(&runs[count].op);
    return count++;
}

static uint32_t add_calm(SKY_GroundKind_t kind, uint32_t bytes, uint32_t tenant)
{
    CHECK(count < MANY);
    (void)prepare(&runs[count], kind, bytes == SMALL ? 1u : 2u, bytes, 0);
    runs[count].op.tenant  = tenant;
    runs[count].op.is_calm = true;
    submit(&runs[count].op);
    return count++;
}

static void go(void)
{
    for (uint32_t steps = 0; ended < count && steps < STEPS_MAX; ++steps)
    {
        asked_count = 0;
        step();
        for (uint32_t i = 0; i < count; ++i)
        {
            if (runs[i].has_ended && !is_noted[i])
            {
                is_noted[i]    = true;
                order[ended++] = i;
            }
        }
    }
    CHECK_EQ(ended, count);
    CHECK(ground.queue.waiting == 0 && ground.queue.large == 0 && ground.queue.bytes == 0 && ground.queue.wanting == 0);
}

/* The place of an operation in the order of ends. */
static uint32_t place_of(uint32_t number)
{
    uint32_t place = 0;

    while (place < count && order[place] != number)
    {
        ++place;
    }
    return place;
}

static bool runs_now(uint32_t number)
{
    return !runs[number].op.is_queued && runs[number].op.status == SKY_STATUS_RUNNING;
}

static void test_small_ones_go_ahead_but_not_for_ever(void)
{
    open_with(one_at_a_time);
    const uint32_t large = add(SKY_GROUND_GET, LARGE, 0);

    for (uint32_t i = 0; i < 400u; ++i)
    {
        (void)add(SKY_GROUND_GET, SMALL, 0);
    }
    const uint32_t second = add(SKY_GROUND_GET, LARGE, 0);

    go();
    CHECK(place_of(large) > 200u && place_of(large) < 300u && place_of(second) == 401u);
    close_ground();
}

static void test_four_bytes_of_gets_to_one_of_puts(void)
{
    uint32_t puts = 0;

    open_with(one_at_a_time);
    for (uint32_t i = 0; i < 30u; ++i)
    {
        (void)add(SKY_GROUND_PUT, LARGE, 0);
    }
    for (uint32_t i = 0; i < 30u; ++i)
    {
        (void)add(SKY_GROUND_GET, LARGE, 0);
    }
    go();
    for (uint32_t i = 0; i < 20u; ++i)
    {
        puts += runs[order[i]].op.kind == SKY_GROUND_PUT ? 1u : 0u;
    }
    CHECK(puts == 3u || puts == 4u); /* what was put before counts */
    close_ground();
}

/* What only asks counts as a get, and a purge as a put. */
static void test_questions_have_their_class(void)
{
    static const struct
    {
        SKY_GroundKind_t kind;
        SKY_GroundClass_t class;
    } kinds[] = {{SKY_GROUND_FIND, SKY_GROUND_CLASS_GET},
                 {SKY_GROUND_CHECK, SKY_GROUND_CLASS_GET},
                 {SKY_GROUND_PURGE, SKY_GROUND_CLASS_PUT}};

    open_with(many);
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i)
    {
        const uint32_t one = add(kinds[i].kind, LARGE, 0);

        CHECK(runs[one].op.is_small && runs[one].op.class == (uint32_t)kinds[i].class);
    }
    go();
    close_ground();
}

/* Of three tenants one has much to do, and one comes later. There are accounts for two. */
static void test_tenants_take_turns(void)
{
    open_with(one_at_a_time);
    for (uint32_t i = 0; i < 40u; ++i)
    {
        (void)add(SKY_GROUND_PUT, LARGE, 1);
    }
    for (uint32_t i = 0; i < 5u; ++i)
    {
        step();
    }
    const uint32_t other = add(SKY_GROUND_PUT, LARGE, 2);
    const uint32_t again = add(SKY_GROUND_PUT, LARGE, 2);
    const uint32_t third = add(SKY_GROUND_PUT, SMALL, 3); /* it shares the account of 1 */

    CHECK(runs[third].op.account == runs[0].op.account && runs[other].op.account != runs[0].op.account);
    go();
    CHECK(place_of(other) < 6u && place_of(again) < 9u && place_of(third) < 8u);
    CHECK_EQ(add(SKY_GROUND_PUT, SMALL, 3), 43);
    CHECK_EQ(ground.queue.accounts[runs[43].op.account].tenant, 3); /* it is free, and is its own now */
    go();
    close_ground();
}

static void test_bytes_under_way_are_bounded(void)
{
    open_with(many);
    uint32_t mine[4];
    uint32_t other[3];

    for (uint32_t i = 0; i < 4u; ++i)
    {
        mine[i] = add(SKY_GROUND_PUT, LARGE, 1);
    }
    const uint32_t small = add(SKY_GROUND_GET, SMALL, 1);

    step();
    CHECK(runs_now(mine[0]) && runs_now(mine[1]) && !runs_now(mine[2]) && runs_now(small)); /* the tenant's own limit */
    for (uint32_t i = 0; i < 3u; ++i)
    {
        other[i] = add(SKY_GROUND_GET, LARGE, 2);
    }
    const uint32_t late = add(SKY_GROUND_GET, SMALL, 2);

    step();
    CHECK(runs_now(other[0]) && !runs_now(other[1]) && runs_now(late)); /* that of all */
    CHECK_EQ(ground.queue.bytes, 3u * LARGE);
    go();
    close_ground();
}

static void narrow(SKY_GroundLimits_t *limits)
{
    many(limits);
    limits->bytes        = LARGE / 2u;
    limits->tenant_bytes = LARGE / 2u;
}

static void test_what_is_longer_than_all_limits_is_alone(void)
{
    open_with(narrow);
    const uint32_t some  = add(SKY_GROUND_PUT, 400, 1);
    const uint32_t long1 = add(SKY_GROUND_PUT, LARGE, 1);
    const uint32_t next  = add(SKY_GROUND_PUT, 400, 1);
    const uint32_t long2 = add(SKY_GROUND_PUT, LARGE, 2);

    step();
    CHECK(runs_now(some) && !runs_now(long1) && !runs_now(next) && !runs_now(long2));
    go();
    CHECK(place_of(some) == 0u && place_of(next) > place_of(long1));
    close_ground();
}

static void test_a_quarter_of_all_places_is_for_small_ones(void)
{
    open_with(many);
    ground.limits.bytes        = UINT32_MAX;
    ground.limits.tenant_bytes = UINT32_MAX;
    for (uint32_t i = 0; i < 16u; ++i)
    {
        (void)add(SKY_GROUND_GET, LARGE, 0);
    }
    step();
    CHECK(ground.running == 12u && ground.queue.large == 12u);
    for (uint32_t i = 0; i < 6u; ++i)
    {
        (void)add(SKY_GROUND_GET, SMALL, 0);
    }
    step();
    CHECK(ground.running == 16u && ground.queue.large == 12u);
    go();
    close_ground();
}

static void test_calm_ones_come_last(void)
{
    open_with(one_at_a_time);
    const uint32_t calm = add_calm(SKY_GROUND_PUT, SMALL, 0);

    for (uint32_t i = 0; i < 40u; ++i)
    {
        (void)add(i % 2u == 0u ? SKY_GROUND_PUT : SKY_GROUND_GET, i % 4u < 2u ? SMALL : LARGE, 0);
    }
    go();
    CHECK_EQ(place_of(calm), count - 1u);
    close_ground();

    open_with(many); /* a quarter of the bytes of a tenant, or one */
    const uint32_t first  = add_calm(SKY_GROUND_PUT, LARGE, 1);
    const uint32_t second = add_calm(SKY_GROUND_PUT, LARGE, 1);
    const uint32_t small  = add_calm(SKY_GROUND_GET, SMALL, 1);
    const uint32_t other  = add(SKY_GROUND_PUT, LARGE, 1);

    step();
    CHECK(runs_now(first) && !runs_now(second) && runs_now(small) && runs_now(other));
    go();
    close_ground();
}

/* Others have work without end: a calm one begins all the same. */
static void test_nobody_starves(void)
{
    open_with(one_at_a_time);
    const uint32_t calm = add_calm(SKY_GROUND_PUT, SMALL, 0);

    ground.queue.accounts[runs[calm].op.account].classes[SKY_GROUND_CLASS_CALM].used =
        100000u; /* as after many bytes of others */
    for (uint32_t i = 0; i < 90u; ++i)
    {
        (void)add(SKY_GROUND_GET, LARGE, 0);
    }
    go();
    CHECK(place_of(calm) > 30u && place_of(calm) < 40u);
    close_ground();
}

static void test_a_full_queue_says_so(void)
{
    open_with(many);
    for (uint32_t i = 0; i < 32u; ++i)
    {
        (void)add(SKY_GROUND_PUT, LARGE, 0);
    }
    (void)prepare(&runs[40], SKY_GROUND_GET, 1, SMALL, 0);
    CHECK(!SKY_Ground_Submit(&ground, now_us, &runs[40].op));
    step();
    CHECK(SKY_Ground_Submit(&ground, now_us, &runs[40].op)); /* some have begun */
    go();
    CHECK(runs[40].has_ended);
    close_ground();
}

static void test_who_waits_is_called_back(void)
{
    open_with(one_at_a_time);
    for (uint32_t i = 0; i < 6u; ++i)
    {
        (void)add(SKY_GROUND_PUT, SMALL, 0);
    }
    step();
    SKY_Ground_Cancel(&ground, &runs[3].op); /* in the middle, */
    SKY_Ground_Cancel(&ground, &runs[1].op); /* the first, */
    SKY_Ground_Cancel(&ground, &runs[5].op); /* and the last */
    go();
    for (uint32_t i = 0; i < 6u; ++i)
    {
        CHECK_EQ(runs[i].op.status, i % 2u == 1u ? SKY_STATUS_CANCELLED : SKY_STATUS_DONE);
    }
    close_ground();
}

/* ---- tables of transfers that are full ----------------------------------------------------------------------------------- */

static void one_transfer(SKY_GroundLimits_t *limits)
{
    limits->operations = 4;
    limits->works      = 1;
}

static void test_transfers_wait_for_room(void)
{
    open_with(one_transfer);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        (void)add(SKY_GROUND_PUT, SMALL, 0);
    }
    step();
    CHECK(ground.running == 4u && ground.queue.wanting == 3u);
    SKY_Ground_Cancel(&ground, &runs[2].op);
    go();
    for (uint32_t i = 0; i < 4; ++i)
        CHECK(place_of(2) < 2u && order[2] == 1u && order[3] == 3u);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        CHECK_EQ(runs[i].op.status, i == 2u ? SKY_STATUS_CANCELLED : SKY_STATUS_DONE);
    }
    close_ground();
}

/* Who waits for room finds the sky silent when it has some: it ends, and so do those behind it. */
static void test_room_is_of_no_use_under_a_silent_sky(void)
{
    open_with(one_transfer);
    for (uint32_t i = 0; i < 3u; ++i)
    {
        (void)add(SKY_GROUND_PUT, SMALL, 0);
    }
    step();
    silence_all(true);
    wire_count = 0;
    go();
    for (uint32_t i = 0; i < 3; ++i)
        CHECK(runs[1].op.status == SKY_STATUS_UNANSWERED && runs[2].op.status == SKY_STATUS_UNANSWERED);
    close_ground();
}

static void few_pieces(SKY_GroundLimits_t *limits)
{
    limits->pieces = 3;
}

static void test_what_no_table_holds_is_refused(void)
{
    limit = few_pieces;
    open_ground(1);
    limit = NULL;
    CHECK_EQ(put(&runs[0], 1, LARGE, 0), SKY_STATUS_REFUSED);
    CHECK_EQ(put(&runs[0], 1, SMALL, 0), SKY_STATUS_DONE);
    close_ground();
}

/* ---- what is told of an operation --------------------------------------------------------------------------------------------- */

static void test_times_do_not_overlap(void)
{
    uint32_t total = 0;

    open_with(one_at_a_time);
    const uint64_t start_us = now_us;
    const uint32_t first    = add(SKY_GROUND_PUT, LARGE, 0);
    const uint32_t next     = add(SKY_GROUND_GET, LARGE, 0);

    (void)add(SKY_GROUND_FIND, SMALL, 0);
    go();
    CHECK(SKY_Ground_Progress(&runs[first].op, &total) == 19u && total == 19u);
    CHECK(SKY_Ground_Progress(&runs[next].op, &total) == 19u && total == 19u);
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_GroundOp_t *op = &runs[i].op;

        CHECK(op->submitted_us == start_us && op->network_us >= RTT_US && op->rest_us < RTT_US);
        CHECK(i == order[0] ? op->queue_us == 0u : op->queue_us >= RTT_US);
    }
    const uint32_t silent = add(SKY_GROUND_PUT, SMALL, 0);

    SKY_Ground_Cancel(&ground, &runs[silent].op); /* nothing was asked */
    go();
    CHECK(runs[silent].op.network_us == 0u && runs[silent].op.rest_us == 0u);
    close_ground();
}

/* ---- a run ----------------------------------------------------------------------------------------------------------------- */

/* What has come is still being read: nothing is late, and what is begun is asked for all the same. */
static void test_nothing_is_late_while_the_host_reads(void)
{
    open_with(many);
    silence_all(true);
    (void)add(SKY_GROUND_GET, SMALL, 0);
    (void)add(SKY_GROUND_FIND, SMALL, 0);
    CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us);
    const uint32_t asked_first = asked_count;

    CHECK(asked_first > 0u);
    now_us += 10u * SECOND_US;
    CHECK_EQ(SKY_Ground_Run(&ground, now_us, false), now_us);
    CHECK(asked_count == asked_first && SKY_Ground_Ended(&ground) == NULL);
    CHECK(SKY_Ground_Run(&ground, now_us, true) > now_us);
    silence_all(false);
    go();
    close_ground();
}

int main(void)
{
    RUN(test_small_ones_go_ahead_but_not_for_ever);
    RUN(test_four_bytes_of_gets_to_one_of_puts);
    RUN(test_questions_have_their_class);
    RUN(test_tenants_take_turns);
    RUN(test_bytes_under_way_are_bounded);
    RUN(test_what_is_longer_than_all_limits_is_alone);
    RUN(test_a_quarter_of_all_places_is_for_small_ones);
    RUN(test_calm_ones_come_last);
    RUN(test_nobody_starves);
    RUN(test_a_full_queue_says_so);
    RUN(test_who_waits_is_called_back);
    RUN(test_transfers_wait_for_room);
    RUN(test_room_is_of_no_use_under_a_silent_sky);
    RUN(test_what_no_table_holds_is_refused);
    RUN(test_times_do_not_overlap);
    RUN(test_nothing_is_late_while_the_host_reads);
    return CHECK_RESULT();
}
