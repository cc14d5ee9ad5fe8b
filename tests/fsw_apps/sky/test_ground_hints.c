/**
 * @file
 * Hints of a ground host: what it tells other processes of its machine of satellites, and what it makes of what they told.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS];

static uint32_t number_of(SKY_Addr_t satellite)
{
    return (uint32_t)(node_at(satellite) - nodes);
}

static SKY_Addr_t satellite_of(uint32_t number)
{
    return (SKY_Addr_t){(uint16_t)(number / SLOTS + 1u), (uint16_t)(number % SLOTS + 1u)};
}

static void take(SKY_Addr_t satellite, uint64_t age_us, bool is_lost)
{
    const SKY_GroundHint_t hint = {satellite, 0, now_us - age_us, is_lost};

    SKY_Ground_TakeHint(&ground, now_us, &hint);
}

static SKY_GroundHint_t told_of(SKY_Addr_t satellite)
{
    const SKY_GroundHint_t hint = SKY_Ground_Hint(&ground, now_us, number_of(satellite));

    CHECK(SKY_Addr_Equal(hint.satellite, satellite));
    return hint;
}

/* Count the packets of an operation that went to a satellite. */
static uint32_t went_to(uint8_t op, SKY_Addr_t satellite)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < asked_count; ++i)
    {
        count += asked[i].op == op && SKY_Addr_Equal(asked[i].dst, satellite) ? 1u : 0u;
    }
    return count;
}

/* ---- what comes of a hint ----------------------------------------------------------------------------------------------------- */

/* The share goes to its home and to the stand-in at once. */
static void test_a_put_goes_to_the_stand_in_as_well_at_once(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    take(away, SECOND_US, false);
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(now_us - began_us < 2u * RTT_US && told_replaced == 1u && went_to(SKY_OP_PUT, away) > 0u);
    const SKY_Addr_t besides = {runs[0].op.places[SERVERS + 2u].plane, runs[0].op.places[SERVERS + 2u].slot};

    CHECK(holds(besides, &runs[0].op) && ground.reach.suspects == 1u);
    rest();
    CHECK(told_lost == 1u && SKY_Ground_IsLost(&ground, away)); /* a look has told */
    close_ground();
}

/* It is there after all: what it says ends the hint, and the next put goes there alone. */
static void test_one_answer_ends_a_hint(void)
{
    for (uint32_t is_lost = 0; is_lost < 2u; ++is_lost)
    {
        SKY_Addr_t home;

        open_ground(1);
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
        home = home_of(&runs[0].op, 1, 2);
        take(home, SECOND_US, is_lost > 0u);
        CHECK(told_of(home).silent_us == now_us - SECOND_US && told_of(home).is_lost == (is_lost > 0u));
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        CHECK(holds(home, &runs[0].op));
        rest();
        CHECK(told_of(home).silent_us == 0u && !told_of(home).is_lost && ground.reach.suspects == 0u && told_lost == 0u);
        told_replaced = 0;
        CHECK_EQ(put(&runs[1], 65, 950, 5), SKY_STATUS_DONE);
        CHECK(told_replaced == 0u && holds(home, &runs[1].op));
        take(home, SECOND_US, true); /* it has said something since */
        CHECK_EQ(told_of(home).silent_us, 0);
        close_ground();
    }
}

/* An answer to a question ends it, but not what another one says on the way. */
static bool is_unreachable(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (SKY_Addr_Equal(question->dst, told_mute))
    {
        answer->status = SKY_STATUS_UNREACHABLE;
        answer->src    = (SKY_Addr_t){1, 1};
    }
    return true;
}

static void test_only_its_own_word_ends_a_hint(void)
{
    for (uint32_t is_own = 0; is_own < 2u; ++is_own)
    {
        open_ground(1);
        told_mute = home_of(prepare(&runs[0], SKY_GROUND_FIND, 1, 1, 0), 1, 0);
        forge     = is_own > 0u ? NULL : is_unreachable;
        take(told_mute, SECOND_US, false);
        (void)finish(&runs[0].op);
        CHECK_EQ(told_of(told_mute).silent_us != 0u, is_own == 0u);
        take(told_mute, SECOND_US, false);
        CHECK_EQ(told_of(told_mute).silent_us != 0u, is_own == 0u);
        close_ground();
    }
}

/* A get asks for parity at once; what its code bears it does not ask elsewhere. */
static void test_a_get_asks_for_parity_at_once(void)
{
    SKY_Addr_t away;

    open_ground(1);
    sky.parity = 1;
    set_sky();
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    now_us += 10u;
    take(away, 5, true);
    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 5);
    runs[1].op.facts.stripe = runs[0].op.facts.stripe;
    asked_count             = 0;
    const uint64_t began_us = now_us;

    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK(now_us - began_us < 2u * RTT_US && is_as_put(&runs[1], 1, 5) && told_replaced == 0u);
    CHECK(went_to(SKY_OP_GET, away) > 0u);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    close_ground();
}

/* Without parity the stand-in is asked at once, to which the share was put, and then the home again. */
static void test_a_get_asks_the_stand_in_at_once(void)
{
    for (uint32_t is_back = 0; is_back < 2u; ++is_back)
    {
        SKY_Addr_t away;

        open_ground(1);
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
        away = home_of(&runs[0].op, 1, 2);
        silence(away, is_back == 0u);
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        rest();
        SKY_Reach_Heard(&ground.reach, away); /* as a process that has just begun */
        now_us += 10u;
        take(away, 5, false);
        asked_count             = 0;
        const uint64_t began_us = now_us;

        CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
        CHECK(now_us - began_us < 4u * RTT_US && is_as_put(&runs[1], 1, 5));
        CHECK(went_to(SKY_OP_GET, away) > 0u && told_replaced >= 1u);
        close_ground();
    }
}

/* A look-up of a value needs the word of a silent home, or that it is lost. The look begins at once, and takes as long as three questions to others, for
 * another process has asked five. */
static void test_a_look_up_waits_no_longer_than_in_a_hurry(void)
{
    for (uint32_t is_lost = 0; is_lost < 2u; ++is_lost)
    {
        SKY_Addr_t away;

        open_ground(1);
        sky.parity = 1;
        set_sky();
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 350, 5);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 350, CHUNK, 3, 1));
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        away = home_of(&runs[0].op, 1, 0);
        silence(away, true);
        now_us += 10u;
        for (uint32_t number = 0; number < NODES; ++number)
        {
            const SKY_GroundHint_t rtt = {satellite_of(number), RTT_US, 0, false};

            SKY_Ground_TakeHint(&ground, now_us, &rtt);
        }
        take(away, 5, is_lost > 0u);
        const uint64_t began_us = now_us;

        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        CHECK_EQ(runs[1].one.facts.version, 5);
        CHECK_EQ(now_us - began_us<12u * RTT_US, is_lost> 0u);
        CHECK(told_lost == 1u && SKY_Ground_IsLost(&ground, away));
        close_ground();
    }
}

/* A hint alone makes nothing absent, and purges nothing: a check asks all the same. */
static void test_a_hint_makes_nothing_absent(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    now_us += 10u;
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        take(home_of(&runs[0].op, 1, share), 5, true);
    }
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    CHECK_EQ(finish(prepare(&runs[1], SKY_GROUND_CHECK, 1, 950, 5)), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
    rest();
    CHECK(told_lost == 0u && ground.reach.lost_count == 0u && ground.reach.pause_us == 0u);
    close_ground();
}

/* All satellites are doubted, so there are no others whose times could tell. */
static void test_all_are_doubted(void)
{
    open_ground(1);
    silence_all(true);
    for (uint32_t number = 0; number < NODES; ++number)
    {
        take(satellite_of(number), 5, true);
    }
    CHECK(find(&runs[1], 1) != SKY_STATUS_MISS);
    CHECK(ground.reach.pause_us > 0u && ground.reach.lost_count == 0u);
    close_ground();
}

/* ---- which hints count --------------------------------------------------------------------------------------------------------- */

static void test_what_is_wrong_is_left_out(void)
{
    static const SKY_Addr_t nobody[] = {{0, 0}, {0, 1}, {1, 0}, {PLANES + 1u, 1}, {1, SLOTS + 1u}, {UINT16_MAX, UINT16_MAX}};
    const SKY_Addr_t        one      = {2, 3};

    open_ground(1);
    now_us += 2u * SKY_HOST_LOST_US;
    for (uint32_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); ++i)
    {
        const SKY_GroundHint_t hint = {nobody[i], 1000, now_us - 5u, true};

        SKY_Ground_TakeHint(&ground, now_us, &hint);
    }
    take(one, SKY_HOST_LOST_US, true); /* too old */
    const SKY_GroundHint_t later = {one, 0, now_us + 1u, true};

    SKY_Ground_TakeHint(&ground, now_us, &later);
    CHECK(ground.doubted.plane == 0u && told_of(one).silent_us == 0u);
    take(one, SKY_HOST_LOST_US - 1u, true);
    CHECK(SKY_Addr_Equal(ground.doubted, one) && told_of(one).is_lost);
    now_us += 1u; /* it does not become younger */
    CHECK(told_of(one).silent_us == 0u && !told_of(one).is_lost);
    close_ground();
}

/* A process that only asks questions has no sky yet, and does not look. */
static void test_there_is_no_look_without_a_sky(void)
{
    SKY_HostQuestion_t question;

    open_ground(1);
    ground.sky.schedule = NULL;
    take((SKY_Addr_t){2, 3}, 5, true);
    (void)memset(&question, 0, sizeof(question));
    question.place.plane       = 1;
    question.place.slot        = 1;
    question.place.entry_plane = 1;
    question.place.entry_slot  = 1;
    question.apid              = SKY_APID_ISL;
    question.op                = SKY_OP_PING;
    (void)memset(&runs[0], 0, sizeof(runs[0]));
    runs[0].op.kind          = SKY_GROUND_EXCHANGE;
    runs[0].op.deadline_ms   = 1000;
    runs[0].op.requests      = &question;
    runs[0].op.request_count = 1;
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK_EQ(asked_count, 1);
    close_ground();
}

static void test_round_trips(void)
{
    const SKY_Addr_t       one   = {2, 3};
    const SKY_Addr_t       other = {2, 4};
    const SKY_GroundHint_t rtt   = {one, 30000, 0, false};
    const SKY_GroundHint_t long_ = {other, SKY_HOST_ASK_INITIAL_US / 3u + 1u, 0, false};

    open_ground(1);
    CHECK(told_of(one).rtt_us == 0u && told_of(one).silent_us == 0u);
    SKY_Ground_TakeHint(&ground, now_us, &rtt);
    SKY_Ground_TakeHint(&ground, now_us, &long_);
    CHECK(told_of(one).rtt_us == 30000u && told_of(other).rtt_us == 0u);
    CHECK(told_of(one).silent_us == 0u);
    close_ground();
}

/* Round trips of full links, or of satellites that were held up, make nobody wait longer for one that is silent. */
static void test_round_trips_hold_nobody_up(void)
{
    static const uint32_t rtts[] = {
        0, 1, SKY_HOST_ASK_INITIAL_US / 3u, SKY_HOST_ASK_INITIAL_US / 3u + 1u, SKY_HOST_RTO_MAX_US, UINT32_MAX};
    uint64_t without_us = UINT64_MAX;

    for (uint32_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); ++i)
    {
        open_ground(1);
        (void)prepare(&runs[0], SKY_GROUND_FIND, 1, 350, 0);
        silence(home_of(&runs[0].op, 1, 0), true);
        for (uint32_t number = 0; number < NODES; ++number)
        {
            const SKY_GroundHint_t hint = {satellite_of(number), rtts[i], 0, false};

            SKY_Ground_TakeHint(&ground, now_us, &hint);
        }
        const uint64_t began_us = now_us;

        CHECK(find(&runs[1], 1) != SKY_STATUS_DONE);
        without_us = i == 0u ? now_us - began_us : without_us;
        CHECK(now_us - began_us <= without_us);
        close_ground();
    }
}

/* ---- what it tells --------------------------------------------------------------------------------------------------------------- */

/* Suspected, then lost. Of one that is lost no hint is taken: this host knows more. */
static void test_it_tells_who_is_silent(void)
{
    SKY_Addr_t away;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    const uint64_t suspected_us = now_us;

    CHECK(told_of(away).silent_us == now_us && !told_of(away).is_lost);
    rest();
    const SKY_GroundHint_t known = told_of(away);

    CHECK(known.silent_us > suspected_us && known.silent_us <= now_us && known.is_lost && SKY_Ground_IsLost(&ground, away));
    now_us += SECOND_US;
    take(away, 5, true);
    CHECK_EQ(told_of(away).silent_us, known.silent_us);
    CHECK(ground.doubted.plane == 0u);
    close_ground();
}

/* A block went on without it, by its parity: that is of this host's own, and newer than what it was told. */
static void test_it_tells_whom_a_block_went_on_without(void)
{
    for (uint32_t kind = 0; kind < 3u; ++kind)
    {
        SKY_Addr_t away;

        open_ground(1);
        sky.parity = 1;
        set_sky();
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        away = home_of(&runs[0].op, 1, 1);
        silence(away, true);
        now_us += 10u;
        const uint64_t began_us = now_us;

        if (kind > 0u)
        {
            take(away, 5, kind > 1u);
        }
        (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 5);
        runs[1].op.facts.stripe = runs[0].op.facts.stripe;
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
        CHECK_EQ(told_of(away).silent_us, kind > 1u ? began_us - 5u : began_us);
        CHECK_EQ(told_of(away).is_lost, kind > 1u);
        close_ground();
    }
}

int main(void)
{
    RUN(test_a_put_goes_to_the_stand_in_as_well_at_once);
    RUN(test_one_answer_ends_a_hint);
    RUN(test_only_its_own_word_ends_a_hint);
    RUN(test_a_get_asks_for_parity_at_once);
    RUN(test_a_get_asks_the_stand_in_at_once);
    RUN(test_a_look_up_waits_no_longer_than_in_a_hurry);
    RUN(test_a_hint_makes_nothing_absent);
    RUN(test_all_are_doubted);
    RUN(test_what_is_wrong_is_left_out);
    RUN(test_there_is_no_look_without_a_sky);
    RUN(test_round_trips);
    RUN(test_round_trips_hold_nobody_up);
    RUN(test_it_tells_who_is_silent);
    RUN(test_it_tells_whom_a_block_went_on_without);
    return CHECK_RESULT();
}
