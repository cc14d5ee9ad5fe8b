/**
 * @file
 * CHECK of a ground host: do servers hold all of a block?
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS];

static uint32_t check_block(run_t *run, uint32_t number, uint32_t bytes)
{
    return finish(prepare_check(run, number, bytes, 0));
}

static void test_a_block_is_whole_or_broken(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    asked_count = 0;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_DONE);
    CHECK(runs[1].op.verdict == SKY_VERDICT_KEEP && runs[1].op.gone == SKY_HOST_NONE);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), SERVERS);
    CHECK(told_checked == SERVERS && runs[1].op.tries == SERVERS && told_searched == 1);
    CHECK_EQ(put(&runs[0], 65, 250, 0), SKY_STATUS_DONE);
    CHECK_EQ(check_block(&runs[1], 65, 250), SKY_STATUS_DONE); /* not all servers have a share of it */
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);

    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK(runs[1].op.verdict == SKY_VERDICT_PURGE && runs[1].op.gone == 2);
    sky.lazy_purge = false;
    set_sky();
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    sky.lazy_purge = true;
    set_sky();
    forge = NULL; /* what one denies that is not settled may be on its way to it */
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);

    forge = is_settled; /* a satellite that stands in first says nothing */
    CHECK_EQ(SKY_Ground_Spares(&ground, now_us), SKY_STANDINS_SPARES);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        is_silent[i] = ground.aside[i];
    }
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    close_ground();
}

/* Another host has replaced it: of a value that says nothing, as there is one. A block by its content is not there as it was. */
static void test_what_was_replaced_is_not_gone(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    CHECK_EQ(put(&runs[0], 1, 250, 6), SKY_STATUS_DONE);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_UNANSWERED);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 250, 6)), SKY_STATUS_DONE);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    CHECK_EQ(finish(prepare_check(&runs[1], 2, 950, 5)), SKY_STATUS_MISS);
    close_ground();
}

/* Who was silent is left alone for a while, and a block of which nobody is asked is not known to be whole. */
static void test_nobody_is_asked_who_was_silent_lately(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 0), true);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
    asked_count = 0;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), SERVERS - 1u);
    silence_all(true);
    now_us += 60u * SECOND_US;
    for (uint32_t i = 0; i < 2u; ++i) /* the first time this host may be cut off */
    {
        asked_count = 0;
        CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
        CHECK(asked_of(SKY_OP_HAS, 0) >= SERVERS);
    }
    asked_count = 0;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), 0);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_KEEP);
    close_ground();
}

/* Of share 0 alone: what others lack is not asked. */
static void test_a_sample(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    for (uint32_t is_gone = 0; is_gone < 2u; ++is_gone)
    {
        (void)prepare_check(&runs[1], 1, 950, 0);
        runs[1].op.is_sample = true;
        asked_count          = 0;
        CHECK_EQ(finish(&runs[1].op), is_gone == 0u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.verdict, is_gone == 0u ? SKY_VERDICT_KEEP : SKY_VERDICT_PURGE);
        CHECK_EQ(runs[1].op.gone, is_gone == 0u ? SKY_HOST_NONE : 0u);
        CHECK(asked_of(SKY_OP_HAS, 0) >= 1u && SKY_Addr_Equal(asked[0].dst, home_of(&runs[0].op, 1, 0)));
        CHECK(is_gone == 1u || asked_count == 1u);
        forget(home_of(&runs[0].op, 1, 0), &runs[0].op);
    }
    silence(home_of(&runs[0].op, 1, 0), true);
    for (uint32_t i = 0; i < 2u; ++i) /* nobody has answered, so it may be this host: it is asked once more */
    {
        (void)prepare_check(&runs[1], 1, 950, 0);
        runs[1].op.is_sample = true;
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_UNANSWERED);
    }
    asked_count = 0;
    (void)prepare_check(&runs[1], 1, 950, 0);
    runs[1].op.is_sample = true;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_UNANSWERED);
    CHECK_EQ(asked_count, 0);
    close_ground();
}

/* ---- several pieces -------------------------------------------------------------------------------------------------- */

#define LONG_CHUNKS (SERVERS * (SKY_LIMIT_CHUNK_SET + 3u))

static SKY_Stripe_t long_stripe;
static uint32_t     denied_chunk; /* that nobody has */

/* All satellites say that they hold all that they are asked for, but for one chunk. */
static bool says_all(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;

    answer->word |= SKY_WORD_SETTLED;
    if (question->op == SKY_OP_HAS && (question->flags & SKY_FLAG_ANY) == 0)
    {
        CHECK_EQ(SKY_ChunkSet_Decode(question, &set), SKY_STATUS_OK);
        SKY_ChunkSet_Remove(&set, SKY_ChunkSet_IndexOf(&set, denied_chunk));
        SKY_Stripe_ToPacket(&long_stripe, answer);
        answer->status   = SKY_STATUS_OK;
        answer->chunk_id = set.base;
        answer->length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
        answer->payload  = payload;
    }
    return true;
}

static SKY_GroundOp_t *prepare_long(run_t *run)
{
    SKY_GroundOp_t *op = prepare_check(run, 1, 950, 0);

    CHECK(SKY_Stripe_Cut(&long_stripe, LONG_CHUNKS * CHUNK, CHUNK, 0, 0));
    op->facts.stripe = long_stripe;
    return op;
}

static void test_a_share_is_asked_for_piece_by_piece(void)
{
    open_ground(1);
    forge        = says_all;
    denied_chunk = UINT32_MAX;
    CHECK_EQ(finish(prepare_long(&runs[0])), SKY_STATUS_DONE);
    CHECK_EQ(asked_of(SKY_OP_HAS, 0), 2u * SERVERS);
    CHECK_EQ(runs[0].op.tries, 2u * SERVERS);
    denied_chunk = LONG_CHUNKS - 2u; /* in a second piece */
    CHECK_EQ(finish(prepare_long(&runs[0])), SKY_STATUS_MISS);
    CHECK_EQ(runs[0].op.gone, denied_chunk);
    close_ground();
}

/* One piece is asked for until the time is over: the rest is unknown, however many pieces it has. */
static void test_the_rest_of_a_share_is_left_out_once_the_time_is_over(void)
{
    for (uint32_t wants = 0; wants < 2u; ++wants)
    {
        SKY_Addr_t holders[SERVERS];

        open_ground(1);
        forge        = says_all;
        denied_chunk = UINT32_MAX;
        CHECK_EQ(finish(prepare_long(&runs[0])), SKY_STATUS_DONE); /* nothing is handed over */
        asked_count = 0;
        (void)prepare_long(&runs[0]);
        runs[0].op.holders = wants > 0u ? holders : NULL;
        silence_all(true);
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_UNANSWERED);
        CHECK_EQ(asked_of(SKY_OP_HAS, 0) % SERVERS, 0);
        CHECK(runs[0].op.tries <= SERVERS);
        CHECK(wants == 0u || holders[0].plane == 0u);
        close_ground();
    }
}

/* While the first piece is asked for, another operation finds that satellites are silent. */
static void test_a_share_goes_on_whose_satellite_turned_out_silent_meanwhile(void)
{
    SKY_Addr_t silent[SERVERS];

    open_ground(1);
    forge        = says_all;
    denied_chunk = UINT32_MAX;
    CHECK_EQ(finish(prepare_long(&runs[0])), SKY_STATUS_DONE);
    submit(prepare_long(&runs[0]));
    (void)SKY_Ground_Run(&ground, now_us, true); /* it has asked for the first pieces */
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        silent[share] = home_of(&runs[0].op, 1, share);
    }
    for (uint32_t i = 0; i < 2u; ++i)
    {
        SKY_Presence_Told(&ground.presence, now_us, 100u * RTT_US, silent, SERVERS, silent, SERVERS);
    }
    CHECK(!SKY_Presence_IsAwake(&ground.presence, now_us, silent[0]));
    run_all();
    CHECK_EQ(runs[0].op.status, SKY_STATUS_DONE);
    close_ground();
}

/* ---- while the sky turns --------------------------------------------------------------------------------------------- */

/* The time is over with the first place of a share: the others are not asked. */
static void test_no_place_is_asked_once_the_time_is_over(void)
{
    open_ground(2);
    now_us = START_US + ROW_US + 30u * SECOND_US;
    poll_all();
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_DONE);
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        silence(home_of(&runs[0].op, 2, share), true);
    }
    asked_count = 0;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(is_silent[node_at(asked[i].dst) - nodes]);
    }
    close_ground();
}

/* The next row is near when they answer, so places are asked then that nobody was asked at. */
static void test_a_block_is_kept_if_other_places_count_meanwhile(void)
{
    for (uint32_t epoch = 0; epoch <= 4u; epoch += 4u) /* it may wait for a row to come, too */
    {
        open_ground(4);
        forge = is_settled;
        CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_MISS); /* no handover goes on */
        CHECK_EQ(runs[0].op.verdict, SKY_VERDICT_PURGE);
        now_us = START_US + ROW_US - SKY_HOST_SKEW_US - RTT_US / 2u;
        (void)prepare_check(&runs[0], 1, 950, 0);
        runs[0].op.facts.epoch = epoch;
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_MISS);
        CHECK_EQ(runs[0].op.verdict, SKY_VERDICT_KEEP);
        CHECK(now_us < START_US + ROW_US);
        close_ground();
    }
}

static void test_nobody_is_asked_while_shares_may_be_on_their_way(void)
{
    open_ground(2);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    now_us = START_US + ROW_US + SECOND_US;
    poll_all();
    asked_count = 0;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
    CHECK(asked_of(SKY_OP_HAS, 0) == 0 && ground.late_count > 0);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_KEEP);
    close_ground();
}

/* A satellite that may have something to hand over is silent: a check in a hurry waits for it no longer than for servers, nor does the next one. The
 * search goes on, and the third one knows what it has found. */
static void test_a_check_in_a_hurry_waits_no_longer_than_its_hurry(void)
{
    for (uint32_t is_warm = 0; is_warm < 2u; ++is_warm)
    {
        open_ground(2);
        now_us = START_US + 10u * SECOND_US;
        poll_all();
        CHECK(is_warm == 0u || check_block(&runs[1], 1, 950) == SKY_STATUS_MISS);
        now_us += ROW_US;
        poll_all();
        CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
        silence(home_of(&runs[0].op, 1, 0), true);
        const uint64_t began_us = now_us;

        asked_count = 0;
        CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
        const uint64_t waited_us = now_us - began_us;

        CHECK(waited_us >= 3u * RTT_US && waited_us < SECOND_US);
        CHECK(asked_of(SKY_OP_HAS, 0) == 0u && ground.inquiry.kind == SKY_GROUND_WAIT_LATE && told_searched == is_warm);
        CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_UNANSWERED);
        CHECK(now_us - began_us == waited_us && runs[1].op.verdict == SKY_VERDICT_KEEP);
        rest();
        const uint64_t rested_us = now_us;

        CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_DONE);
        CHECK(now_us - rested_us < 2u * RTT_US && told_searched == is_warm + 1u);
        close_ground();
    }
}

static void test_nobody_can_be_asked(void)
{
    open_ground(1);
    CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_MISS);
    asked_count = 0;
    sky.uplink  = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_UNANSWERED); /* nobody is in sight */
    sky.uplink = (uint32_t)SKY_UPLINK_DIRECT;
    set_sky();
    silence_all(true);
    CHECK_EQ(finish(prepare(&runs[1], SKY_GROUND_FIND, 1, 950, 0)), SKY_STATUS_UNANSWERED);
    asked_count = 0;
    CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_UNANSWERED); /* this host is silent */
    sky.changes = 2;
    set_sky();
    CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_UNANSWERED); /* and knows of no handovers */
    CHECK_EQ(asked_count, 0);
    close_ground();
}

/* A server that is lost has a stand-in, which never had its share: the lost one may have it. */
static void test_a_lost_server_may_have_what_its_stand_in_denies(void)
{
    SKY_Addr_t away;

    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 1);
    silence(away, true);
    CHECK_EQ(put(&runs[1], 65, 950, 5), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    CHECK_EQ(runs[1].op.gone, SKY_HOST_NONE);
    close_ground();
}

static uint64_t told_rows; /* rows of the schedule that satellites follow, by their word */

static bool tells_rows(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    static uint8_t stats[8u * SKY_STATS_KVC_COUNT];

    answer->word |= SKY_WORD_SETTLED;
    if (question->op == SKY_OP_STATS)
    {
        (void)memset(stats, 0, sizeof(stats));
        stats[8u * SKY_STATS_KVC_ROWS + 7u] = (uint8_t)told_rows;
        answer->payload                     = stats;
        answer->length                      = sizeof(stats);
    }
    return true;
}

/* Satellites follow a schedule, and the host follows none: it has asked at wrong places. */
static void test_a_host_that_knows_no_schedule_purges_nothing(void)
{
    for (uint32_t kind = 0; kind < 2u; ++kind)
    {
        const SKY_GroundKind_t what = kind == 0u ? SKY_GROUND_CHECK : SKY_GROUND_GET;

        open_ground(1);
        forge     = tells_rows;
        told_rows = 0;
        CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
        forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
        CHECK_EQ(finish(prepare(&runs[1], what, 1, 950, 0)), SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_PURGE);
        sky.is_unscheduled = true;
        set_sky();
        CHECK_EQ(finish(prepare(&runs[1], what, 1, 950, 0)), SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_PURGE);
        told_rows = 3;
        CHECK_EQ(finish(prepare(&runs[1], what, 1, 950, 0)), SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
        close_ground();
    }
}

/* The last satellite in sight sets before they are asked. */
static void test_nobody_is_in_sight_who_could_say_so(void)
{
    open_ground(1);
    forge     = tells_rows;
    told_rows = 3;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    sky.is_unscheduled = true;
    set_sky();
    submit(prepare_check(&runs[1], 1, 950, 0));
    while (runs[1].op.check.step != SKY_GROUND_CHECK_AHEAD)
    {
        step();
    }
    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    run_all();
    CHECK_EQ(runs[1].op.status, SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET); /* nor do stand-ins say that they hold nothing */
    close_ground();
}

static bool is_for_next_row(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->word |= SKY_WORD_SETTLED;
    answer->epoch = question->op == SKY_OP_HAS && (question->flags & SKY_FLAG_ANY) != 0u ? 2u : answer->epoch;
    return true;
}

/* Another host has prefetched it for the next row: what is left of it is of use there. */
static void test_what_is_prefetched_is_not_purged(void)
{
    open_ground(3);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_PURGE);
    now_us = START_US + ROW_US - 3u * SECOND_US;
    forge  = is_for_next_row;
    CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    CHECK_EQ(runs[1].op.facts.epoch, 2);
    close_ground();
}

/* ---- without hurry --------------------------------------------------------------------------------------------------- */

static uint32_t check_calmly(run_t *run, uint32_t version)
{
    return finish(prepare(run, SKY_GROUND_CHECK, 1, 950, version));
}

/* A server is silent, which is then found lost: its stand-in holds its share, or has never had it. */
static void test_without_hurry_it_asks_around_who_is_lost(void)
{
    for (uint32_t is_put_first = 0; is_put_first < 2u; ++is_put_first)
    {
        open_ground(1);
        forge     = tells_rows; /* by their word nobody has anything to hand over, as the stand-in does */
        told_rows = 0;
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
        const SKY_Addr_t away = home_of(&runs[0].op, 1, 1);

        silence(away, is_put_first == 0u);
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        rest();
        SKY_Reach_Heard(&ground.reach, away);
        silence(away, true);
        told_lost = 0;
        CHECK_EQ(check_calmly(&runs[1], 5), is_put_first == 0u ? SKY_STATUS_DONE : SKY_STATUS_MISS);
        CHECK(told_lost == 1 && SKY_Ground_IsLost(&ground, away));
        CHECK(SKY_Addr_Equal(runs[1].op.failed_on, away));
        CHECK_EQ(runs[1].op.verdict, is_put_first == 0u ? SKY_VERDICT_KEEP : SKY_VERDICT_FORGET);
        close_ground();
    }
}

/* A word that counts servers another time: the schedule is another one when they answer. Without a code there is no room for rows. */
static void test_another_schedule_comes_before_the_answers(void)
{
    open_ground(2);
    forge = is_settled;
    CHECK_EQ(check_block(&runs[0], 1, 950), SKY_STATUS_MISS); /* no handover goes on */
    asked_count = 0;
    (void)prepare_check(&runs[1], 1, 950, 0);
    runs[1].op.held_rows = NULL;
    submit(&runs[1].op);
    while (asked_of(SKY_OP_HAS, 0) == 0u)
    {
        step();
    }
    sky.changes = 2;
    set_sky();
    run_all();
    CHECK(runs[1].op.status == SKY_STATUS_MISS && runs[1].op.verdict == SKY_VERDICT_KEEP);
    close_ground();
}

static bool tells_rows_unless_mute(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    return tells_rows(question, answer) && (question->op != SKY_OP_STATS || !SKY_Addr_Equal(question->dst, told_mute));
}

/* One server does not say whether it follows a schedule, the others do: what one says is enough. */
static void test_the_word_of_one_is_enough_for_a_schedule(void)
{
    for (told_rows = 0; told_rows <= 3u; told_rows += 3u)
    {
        open_ground(1);
        CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
        forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
        forge              = tells_rows_unless_mute;
        told_mute          = home_of(&runs[0].op, 1, 1);
        sky.is_unscheduled = true;
        set_sky();
        CHECK_EQ(check_block(&runs[1], 1, 950), SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.is_blind, told_rows > 0u);
        close_ground();
    }
}

static void test_without_hurry_all_are_asked_whoever_was_silent(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    silence(home_of(&runs[0].op, 1, 0), true);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_UNANSWERED);
    silence(home_of(&runs[0].op, 1, 0), false);
    CHECK_EQ(finish(prepare_check(&runs[1], 1, 950, 5)), SKY_STATUS_UNANSWERED); /* it is left alone */
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_DONE);
    CHECK_EQ(told_lost, 0);
    close_ground();
}

static void test_without_hurry_nobody_answers(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    silence_all(true);
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_UNANSWERED);
    CHECK(told_lost == 1 && ground.reach.pause_us > 0u);
    asked_count = 0;
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_UNANSWERED); /* this host is silent */
    CHECK_EQ(asked_count, 0);
    silence_all(false);
    now_us += 60u * SECOND_US;
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_DONE); /* after a look */
    sky.uplink = (uint32_t)SKY_UPLINK_SEEN;
    set_sky();
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_UNANSWERED); /* nobody is in sight */
    close_ground();
}

/* Satellites are late to hand over: they are asked, too. What nobody has of all these may still be on its way. */
static void test_without_hurry_late_satellites_are_asked(void)
{
    open_ground(2);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    now_us = START_US + ROW_US + 30u * SECOND_US;
    poll_all();
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_DONE);
    CHECK(ground.late_count > 0u);
    forget(home_of(&runs[0].op, 1, 2), &runs[0].op);
    CHECK_EQ(check_calmly(&runs[1], 5), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_KEEP);
    close_ground();
}

int main(void)
{
    RUN(test_a_block_is_whole_or_broken);
    RUN(test_nobody_is_asked_who_was_silent_lately);
    RUN(test_a_sample);
    RUN(test_a_share_is_asked_for_piece_by_piece);
    RUN(test_the_rest_of_a_share_is_left_out_once_the_time_is_over);
    RUN(test_a_share_goes_on_whose_satellite_turned_out_silent_meanwhile);
    RUN(test_no_place_is_asked_once_the_time_is_over);
    RUN(test_what_was_replaced_is_not_gone);
    RUN(test_a_block_is_kept_if_other_places_count_meanwhile);
    RUN(test_nobody_is_asked_while_shares_may_be_on_their_way);
    RUN(test_a_check_in_a_hurry_waits_no_longer_than_its_hurry);
    RUN(test_nobody_can_be_asked);
    RUN(test_a_lost_server_may_have_what_its_stand_in_denies);
    RUN(test_a_host_that_knows_no_schedule_purges_nothing);
    RUN(test_nobody_is_in_sight_who_could_say_so);
    RUN(test_what_is_prefetched_is_not_purged);
    RUN(test_without_hurry_it_asks_around_who_is_lost);
    RUN(test_without_hurry_all_are_asked_whoever_was_silent);
    RUN(test_without_hurry_nobody_answers);
    RUN(test_without_hurry_late_satellites_are_asked);
    RUN(test_another_schedule_comes_before_the_answers);
    RUN(test_the_word_of_one_is_enough_for_a_schedule);
    return CHECK_RESULT();
}
