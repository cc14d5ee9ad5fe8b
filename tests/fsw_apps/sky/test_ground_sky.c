/**
 * @file
 * The sky that a ground host sees: lost satellites, late ones, ways in, and answers that nobody has asked for.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS];

/* Whoever looks on or not, the same happens. */
static void test_nobody_has_to_watch(void)
{
    open_watched(1, false);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 1), true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 1, 950, 6), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 65, 950, 6), SKY_STATUS_MISS);
    CHECK_EQ(finish(prepare(&runs[1], SKY_GROUND_PURGE, 1, 950, 6)), SKY_STATUS_DONE);
    close_ground();
}

/* ---- inquiries ------------------------------------------------------------------------------------------------------- */

static void test_several_operations_wait_for_one_inquiry(void)
{
    open_ground(1);
    for (uint32_t i = 0; i < OPERATIONS; ++i)
    {
        submit(prepare(&runs[i], i % 2u == 0u ? SKY_GROUND_GET : SKY_GROUND_FIND, 1 + 64u * i % 256u, 950, 0));
    }
    run_all();
    CHECK_EQ(told_searched, 1);
    for (uint32_t i = 0; i < OPERATIONS; ++i)
    {
        CHECK_EQ(runs[i].op.status, SKY_STATUS_MISS);
    }
    close_ground();
}

/* Two puts fail on the same satellite: one look suffices. */
static void test_one_look_suffices(void)
{
    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    silence(home_of(&runs[0].op, 1, 1), true);
    submit(&runs[0].op);
    for (uint32_t i = 1; i < 3u; ++i)
    {
        submit(prepare(&runs[i], SKY_GROUND_PUT, 1u + 64u * i, 950, 5));
    }
    run_all();
    for (uint32_t i = 0; i < 3u; ++i)
    {
        CHECK_EQ(runs[i].op.status, SKY_STATUS_DONE);
    }
    rest();
    CHECK(told_lost == 1 && ground.reach.lost_count == 1);
    close_ground();
}

/* What is known of handovers does not hold under another schedule, also if that comes while satellites are asked. */
static void test_another_schedule_makes_void_what_was_known(void)
{
    open_ground(2);
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(told_searched, 1);
    sky.changes = 2;
    set_sky();
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(told_searched, 2);

    sky.changes = 3;
    set_sky();
    asked_count = 0;
    submit(prepare(&runs[0], SKY_GROUND_GET, 1, 950, 0));
    while (asked_of(SKY_OP_STATS, 0) == 0u)
    {
        step();
    }
    lay_out(3);
    sky.changes = 4;
    set_sky();
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_MISS);
    CHECK_EQ(runs[0].op.verdict, SKY_VERDICT_FORGET); /* what they said is of another schedule */
    CHECK_EQ(told_searched, 3);
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(told_searched, 4);
    close_ground();
}

/* ---- lost ones, and whether they are back ---------------------------------------------------------------------------- */

static void test_a_satellite_that_is_back_gets_its_shares_again(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    now_us += SKY_HOST_LOST_US;
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE); /* it is not */
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE); /* it was asked lately */
    CHECK(SKY_Ground_IsLost(&ground, away) && !holds(away, &runs[0].op));
    now_us += SKY_HOST_LOST_US;
    CHECK_EQ(put(&runs[0], 1, 950, 8), SKY_STATUS_DONE);
    CHECK(!SKY_Ground_IsLost(&ground, away) && holds(away, &runs[0].op));
    close_ground();
}

/* A stand-in that does not have its share lets the host ask the lost satellite sooner. */
static void test_a_stand_in_that_has_nothing_is_a_reason_to_ask(void)
{
    SKY_Addr_t away;

    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    CHECK_EQ(put(&runs[1], 65, 950, 5), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    now_us += SKY_HOST_DOUBT_US;
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
    CHECK(!SKY_Ground_IsLost(&ground, away) && is_as_put(&runs[1], 1, 5));
    close_ground();
}

/* ---- ways in --------------------------------------------------------------------------------------------------------- */

static void check_entry(uint32_t from, SKY_Addr_t entry)
{
    CHECK(from < asked_count);
    for (uint32_t i = from; i < asked_count; ++i)
    {
        CHECK_EQ(asked_at[i], endpoint_of(NULL, entry));
    }
}

static void test_direct_ways(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK_EQ(asked_at[i], endpoint_of(NULL, asked[i].dst));
    }
    close_ground();
}

static void test_the_centre_is_the_way_in_or_who_stands_in_for_it(void)
{
    SKY_Addr_t centre;

    open_ground(1);
    sky.uplink = (uint32_t)SKY_UPLINK_CENTRE;
    set_sky();
    centre = SKY_Schedule_Centre(&schedule, 1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    check_entry(0, centre);
    silence(centre, true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    CHECK(SKY_Ground_IsLost(&ground, centre));
    asked_count = 0;
    CHECK_EQ(get(&runs[1], 1, 950, 6), SKY_STATUS_DONE);
    CHECK(asked_at[0] != endpoint_of(NULL, centre));
    check_entry(
        0, (SKY_Addr_t){(uint16_t)((asked_at[0] - ENDPOINT0) / SLOTS + 1u), (uint16_t)((asked_at[0] - ENDPOINT0) % SLOTS + 1u)});
    silence(centre, false);
    now_us += SKY_HOST_LOST_US;
    asked_count = 0;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    check_entry(0, centre); /* it is asked directly whether it is back */
    close_ground();
}

static void test_the_nearest_in_sight_is_the_way_in(void)
{
    const SKY_Addr_t one = {1, 1};
    SKY_Addr_t       target;

    open_ground(1);
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    seen[0]        = one;
    sky.seen_count = 1;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    check_entry(0, one);
    target         = home_of(&runs[0].op, 1, 2);
    seen[1]        = target; /* it is nearer to all */
    sky.seen_count = 2;
    set_sky();
    asked_count = 0;
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    check_entry(0, target);
    silence(target, true);
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE); /* over the other one, around it */
    CHECK(SKY_Ground_IsLost(&ground, target) && !SKY_Ground_IsLost(&ground, one));

    sky.seen_count = 0;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 8), SKY_STATUS_NO_SATELLITE);
    CHECK_EQ(get(&runs[1], 1, 950, 7), SKY_STATUS_NO_SATELLITE);
    close_ground();
}

/* The only one in sight was lost before: it is asked whether it is back, as nobody else can be. */
static void test_a_lost_way_in_is_asked_although_it_is_the_only_one(void)
{
    const SKY_Addr_t other = {1, 1};
    SKY_Addr_t       away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away           = home_of(&runs[0].op, 1, 2);
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    seen[0]        = away;
    seen[1]        = other;
    sky.seen_count = 2;
    set_sky();
    silence(away, true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(SKY_Ground_IsLost(&ground, away));
    now_us += SKY_HOST_LOST_US;
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE); /* it is asked, and is not back */
    CHECK(SKY_Ground_IsLost(&ground, away));
    sky.seen_count = 1; /* the other one has set */
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_NO_SATELLITE);
    silence(away, false);
    now_us += SKY_HOST_LOST_US;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    CHECK(!SKY_Ground_IsLost(&ground, away));
    close_ground();
}

/* Nobody is in sight any more when satellites are to be looked for. */
static void test_the_last_in_sight_sets_before_a_look(void)
{
    open_ground(1);
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    seen[0]        = (SKY_Addr_t){1, 1};
    sky.seen_count = 1;
    set_sky();
    silence_all(true);
    submit(prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5));
    step();
    sky.seen_count = 0;
    set_sky();
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_NO_SATELLITE);
    CHECK_EQ(told_lost, 0);
    close_ground();
}

/* Nobody is in sight any more when stand-ins are to be asked. */
static void test_the_last_in_sight_sets_during_a_look(void)
{
    open_ground(1);
    sky.uplink     = (uint32_t)SKY_UPLINK_SEEN;
    seen[0]        = (SKY_Addr_t){1, 1};
    sky.seen_count = 1;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    (void)prepare(&runs[0], SKY_GROUND_GET, 1, 950, 5);
    silence(home_of(&runs[0].op, 1, 2), true);
    submit(&runs[0].op);
    while (asked_of(SKY_OP_PING, 0) == 0u)
    {
        step();
    }
    sky.seen_count = 0;
    set_sky();
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_NO_SATELLITE);
    CHECK_EQ(told_lost, 1);
    close_ground();
}

/* ---- answers that are not what they seem ----------------------------------------------------------------------------- */

static void test_answers_from_elsewhere_change_nothing(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    silence_all(true);
    asked_count = 0;
    submit(prepare(&runs[1], SKY_GROUND_FIND, 1, 950, 0));
    (void)SKY_Ground_Run(&ground, now_us, true);
    CHECK_EQ(asked_count, 1);
    for (uint32_t i = 0; i < 2u; ++i)
    {
        uint8_t      bytes[FLYING_BYTES];
        SKY_Packet_t pkt;

        SKY_Packet_Reply(&asked[0], asked[0].dst, SKY_STATUS_NOT_FOUND, &pkt);
        pkt.payload          = NULL;
        const size_t len     = SKY_Packet_Encode(&pkt, bytes, sizeof(bytes));
        const size_t garbage = i == 0u ? len : len / 2u;

        SKY_Ground_Receive(&ground, now_us, asked_at[0] + 1u - i, bytes, garbage);
        CHECK_EQ(runs[1].op.status, SKY_STATUS_RUNNING);
        CHECK_EQ(runs[1].op.asking, 1);
    }
    silence_all(false);
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_DONE);
    close_ground();
}

static uint32_t stats_kind; /* how answers to STATS are wrong */

static bool has_odd_stats(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    static uint8_t payload[8u * SKY_STATS_KVC_COUNT + 8u];

    answer->word |= SKY_WORD_SETTLED;
    if (question->op == SKY_OP_STATS)
    {
        CHECK_EQ(answer->length, 8u * SKY_STATS_KVC_COUNT);
        (void)memcpy(payload, answer->payload, answer->length);
        answer->payload = payload;
        answer->length  = stats_kind == 0u ? 8u : (stats_kind == 1u ? (uint32_t)sizeof(payload) : 0u);
        answer->status  = stats_kind == 3u ? SKY_STATUS_BAD_OP : SKY_STATUS_OK;
    }
    return true;
}

/* Who says nothing that can be read may have something to hand over: nothing is purged. */
static void test_counters_of_another_length_say_nothing(void)
{
    for (stats_kind = 0; stats_kind < 4u; ++stats_kind)
    {
        open_ground(1);
        forge = has_odd_stats;
        CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
        CHECK_EQ(runs[0].op.verdict, SKY_VERDICT_FORGET);
        CHECK(told_searched == 1 && ground.late_count == 0 && !ground.handovers.is_certain);
        close_ground();
    }
}

/* ---- beginning ------------------------------------------------------------------------------------------------------- */

static void test_limits(void)
{
    static const SKY_ReachCfg_t times = {SKY_HOST_LOST_US, SKY_HOST_DOUBT_US, SKY_HOST_PAUSE_FIRST_US, SKY_HOST_PAUSE_MAX_US};
    SKY_HostCfg_t               cfg   = {SKY_PeerCfg_OfHost(64, 20), 1472, 77, true, 0, false, {0}};
    const SKY_GroundShell_t     shell = {{NULL, ground_send, ground_payload, ground_random}, {0}, endpoint_of, NULL};
    const SKY_Crypto_t          few   = {.key_count = 1};
    SKY_GroundLimits_t          limits;

    open_ground(1);
    limits = ground.limits;
    CHECK(SKY_Torus_Init(&limits.torus, 2, 3, false));
    const size_t small = SKY_Ground_MemoryBytes(&limits);

    CHECK(small > 0u && small < SKY_Ground_MemoryBytes(&ground.limits)); /* where a look asks all more than once */
    CHECK(SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, ground_memory));
    limits.lanes = 0;
    CHECK(!SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, ground_memory));
    limits.lanes     = 16;
    limits.questions = SKY_HOST_QUESTIONS_MAX + 1u;
    void *more       = calloc(1, SKY_Ground_MemoryBytes(&limits));

    CHECK(!SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, more));
    free(more);
    limits.questions  = 16;
    limits.operations = SKY_HOST_QUESTIONS_MAX; /* too many to have a question to each satellite at once */
    CHECK_EQ(SKY_Ground_QuestionsMost(&limits), SKY_HOST_QUESTIONS_MAX);
    limits.operations     = OPERATIONS;
    cfg.security.is_keyed = true;
    cfg.security.crypto   = &few; /* not two places for each satellite */
    CHECK(!SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, ground_memory));
    close_ground();
}

/* A sky that leads out of the ground's tables is refused, and the one of before stays. */
static void test_a_sky_that_does_not_fit_is_refused(void)
{
    static SKY_Schedule_t other;
    SKY_Addr_t            outside = {PLANES + 1u, 1};
    SKY_GroundSky_t       wrong;

    open_ground(1);
    other          = *sky.schedule;
    wrong          = sky;
    wrong.schedule = NULL;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    wrong                   = sky;
    wrong.schedule          = &other;
    other.placement.servers = SERVERS + 1u;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    other = *sky.schedule;
    ++other.placement.torus.planes;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    other = *sky.schedule;
    ++other.placement.torus.slots;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    wrong        = sky;
    wrong.parity = SERVERS;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    wrong        = sky;
    wrong.uplink = (uint32_t)SKY_UPLINK_ABOARD + 1u;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    wrong            = sky;
    wrong.seen       = &outside;
    wrong.seen_count = 1;
    CHECK(!SKY_Ground_SetSky(&ground, &wrong));
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_DONE);
    close_ground();
}

int main(void)
{
    RUN(test_nobody_has_to_watch);
    RUN(test_several_operations_wait_for_one_inquiry);
    RUN(test_one_look_suffices);
    RUN(test_another_schedule_makes_void_what_was_known);
    RUN(test_a_satellite_that_is_back_gets_its_shares_again);
    RUN(test_a_stand_in_that_has_nothing_is_a_reason_to_ask);
    RUN(test_direct_ways);
    RUN(test_the_centre_is_the_way_in_or_who_stands_in_for_it);
    RUN(test_the_nearest_in_sight_is_the_way_in);
    RUN(test_a_lost_way_in_is_asked_although_it_is_the_only_one);
    RUN(test_the_last_in_sight_sets_before_a_look);
    RUN(test_the_last_in_sight_sets_during_a_look);
    RUN(test_answers_from_elsewhere_change_nothing);
    RUN(test_counters_of_another_length_say_nothing);
    RUN(test_limits);
    RUN(test_a_sky_that_does_not_fit_is_refused);
    return CHECK_RESULT();
}
