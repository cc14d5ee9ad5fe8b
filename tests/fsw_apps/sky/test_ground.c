/**
 * @file
 * Operations of a ground host: GET and PUT.
 */
#include "ground_rig.h"

static run_t runs[OPERATIONS + 1u];

static void test_what_is_put_comes_back(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    for (uint32_t share = 0; share < SERVERS; ++share)
    {
        CHECK(holds(home_of(&runs[0].op, 1, share), &runs[0].op));
    }
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_DONE);
    CHECK(runs[1].op.verdict == SKY_VERDICT_KEEP && is_as_put(&runs[1], 1, 0) && !runs[1].op.is_passed);
    CHECK(runs[1].has_ended && ground.running == 0 && told_moved == 2 && told_placed == 2u * SERVERS && told_lost == 0);
    close_ground();
}

static void test_no_more_run_than_there_is_memory_for(void)
{
    open_ground(1);
    for (uint32_t i = 0; i <= OPERATIONS; ++i)
    {
        submit(prepare(&runs[i], SKY_GROUND_PUT, 64u * i, 90, 0));
    }
    step();
    CHECK(ground.running == OPERATIONS && runs[OPERATIONS].op.is_queued);
    run_all();
    for (uint32_t i = 0; i <= OPERATIONS; ++i)
    {
        CHECK(runs[i].has_ended && runs[i].op.status == SKY_STATUS_DONE);
    }
    for (uint32_t i = 0; i < OPERATIONS; ++i) /* all memory is free again, and nobody has that of another */
    {
        submit(prepare(&runs[i], SKY_GROUND_GET, 64u * i, 90, 0));
    }
    run_all();
    for (uint32_t i = 0; i < OPERATIONS; ++i)
    {
        CHECK(runs[i].op.status == SKY_STATUS_DONE && is_as_put(&runs[i], 64u * i, 0));
    }
    close_ground();
}

/* A value is done once all its chunks are stored. */
static void test_a_value_goes_to_a_stand_in_that_is_told_whose_share_it_has(void)
{
    SKY_Addr_t away;
    uint32_t   named = 0;

    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 5);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away) && told_lost == 1 && !holds(away, &runs[0].op));
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        const bool is_put = asked[i].op == SKY_OP_PUT;

        named += is_put && SKY_Addr_Equal(asked[i].home, away) ? 1u : 0u;
        CHECK(!is_put || asked[i].home.plane == 0u || (asked[i].chunk_id % SERVERS == 2u && holds(asked[i].dst, &runs[0].op)));
    }
    CHECK(named >= 2u);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 5));
    close_ground();
}

/* Nobody acknowledges the second share. */
static bool keeps_quiet(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    (void)answer;
    return question->op != SKY_OP_HAS || question->chunk_id % SERVERS != 1u;
}

/* A value of which a share is put nowhere is not done, though its code bears that. A block named by its content is. */
static void test_only_a_value_has_to_be_stored_whole(void)
{
    for (uint64_t version = 0; version <= 5u; version += 5u)
    {
        open_ground(1);
        sky.parity = 1;
        set_sky();
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, version);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 950, CHUNK, 3, 1));
        forge = keeps_quiet;
        CHECK_EQ(finish(&runs[0].op), version == 0u ? SKY_STATUS_DONE : SKY_STATUS_EXPIRED);
        CHECK(version != 0u || runs[0].op.block.lost > 0u);
        forge = NULL;
        (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, version);
        runs[1].op.facts.stripe = runs[0].op.facts.stripe;
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
        CHECK(is_as_put(&runs[1], 1, version));
        close_ground();
    }
}

static void test_a_miss_is_confirmed(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    asked_count = 0;
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_MISS);
    CHECK(runs[1].op.verdict == SKY_VERDICT_PURGE && runs[1].op.gone % SERVERS == 3u);
    CHECK_EQ(told_searched, 1);
    CHECK(asked_of(SKY_OP_STATS, 0) > 0 && asked_of(SKY_OP_HAS, 0) >= SERVERS);
    forge       = NULL; /* the word of one that is not settled purges nothing */
    asked_count = 0;
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_MISS);
    CHECK(runs[1].op.verdict == SKY_VERDICT_FORGET && told_searched == 1); /* what is known of handovers holds */
    CHECK_EQ(asked_of(SKY_OP_STATS, 0), 0);
    close_ground();
}

/* Satellites that stand in first say nothing of the block: one of them may have some of it. */
static void test_a_silent_spare_keeps_the_rest(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS); /* no handover goes on */
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_PURGE);
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    CHECK_EQ(SKY_Ground_Spares(&ground, now_us), SKY_STANDINS_SPARES);
    for (uint32_t i = 0, left = 1; i < NODES && left > 0u; ++i)
    {
        left -= ground.aside[i] ? 1u : 0u;
        is_silent[i] = ground.aside[i];
    }
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    close_ground();
}

static bool tells_shorter(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->word |= SKY_WORD_SETTLED;
    answer->block_len -= question->op == SKY_OP_HAS && (question->flags & SKY_FLAG_ANY) != 0 ? 1u : 0u;
    return true;
}

/* Another host has put another block under the key of one that is named by its content. */
static void test_a_block_that_another_one_replaced(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    forge = tells_shorter;
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_BAD_LENGTH);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    CHECK_EQ(runs[1].op.facts.stripe.block_len, 949);
    close_ground();
}

/* A share of a value is gone, and nobody knows another version. */
static void test_a_value_of_which_a_share_is_gone(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_MISS);
    CHECK(runs[1].op.verdict == SKY_VERDICT_PURGE && runs[1].op.facts.version == 5);
    close_ground();
}

static uint32_t told_versions;

static bool is_mute_or_settled(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    return is_settled(question, answer) && is_mute(question, answer);
}

/* With one server of parity two homes have to say which version they know before a value is missed, whatever becomes of its rest. */
static void test_a_value_is_missed_only_by_the_word_of_enough_homes(void)
{
    for (uint32_t purges = 0; purges < 2u; ++purges)
    {
        open_ground(1);
        sky.parity     = 1;
        sky.lazy_purge = purges > 0u;
        set_sky();
        forge = is_settled;
        for (uint64_t version = 0; version <= 5u; version += 5u)
        {
            (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 50, version);
            CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 50, CHUNK, 3, 1));
            CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
            for (uint32_t share = 0; share < SERVERS; ++share)
            {
                forget(home_of(&runs[0].op, 1, share), &runs[0].op);
            }
            for (uint32_t mute = 0; mute < 2u; ++mute)
            {
                (void)prepare(&runs[1], SKY_GROUND_GET, 1, 50, version);
                runs[1].op.facts.stripe = runs[0].op.facts.stripe;
                told_mute               = SKY_Schedule_Server(&schedule, 1, SKY_Spread_OfKey(runs[1].op.key, SERVERS));
                forge                   = mute > 0u ? is_mute_or_settled : is_settled;
                CHECK_EQ(finish(&runs[1].op), mute > 0u && version > 0u ? SKY_STATUS_UNANSWERED : SKY_STATUS_MISS);
                CHECK(mute == 0u || version == 0u || runs[1].op.verdict == SKY_VERDICT_KEEP);
            }
            forge = is_settled;
        }
        close_ground();
    }
}

static bool knows_it(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->word |= SKY_WORD_SETTLED;
    if (question->op == SKY_OP_HAS && (question->flags & SKY_FLAG_ANY) != 0u)
    {
        answer->status = SKY_STATUS_OK;
        SKY_Stripe_ToPacket(&runs[0].op.facts.stripe, answer);
        answer->block_version = runs[0].op.facts.version;
        answer->content       = runs[0].op.facts.content;
    }
    return true;
}

/* Both homes that are asked first are lost. What stands in for them knows the value, and does not give it: the homes may. */
static void test_a_value_that_only_stand_ins_know(void)
{
    for (uint32_t are_lost = 0; are_lost < 2u; ++are_lost)
    {
        open_ground(1);
        sky.parity = 1;
        set_sky();
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 50, 5);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 50, CHUNK, 3, 1));
        for (uint32_t i = 0; i < 2u; ++i)
        {
            silence(SKY_Schedule_Server(&schedule, 1, (SKY_Spread_OfKey(runs[0].op.key, SERVERS) + i) % SERVERS), are_lost > 0u);
        }
        forge = knows_it;
        (void)prepare(&runs[1], SKY_GROUND_GET, 1, 50, 5);
        runs[1].op.facts.stripe = runs[0].op.facts.stripe;
        CHECK_EQ(finish(&runs[1].op), are_lost > 0u ? SKY_STATUS_UNANSWERED : SKY_STATUS_MISS);
        CHECK_EQ(ground.reach.lost_count, 2u * are_lost);
        close_ground();
    }
}

static bool is_newer_each_time(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->word |= SKY_WORD_SETTLED;
    if (question->op == SKY_OP_HAS && answer->status == SKY_STATUS_OK)
    {
        answer->block_version = 100u + told_versions;
        told_versions += 1u;
    }
    return true;
}

/* It changes twice while it is fetched: it is there, so it is not missed. */
static void test_a_value_that_changes_again_and_again(void)
{
    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    told_versions = 0;
    forge         = is_newer_each_time;
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_UNANSWERED);
    CHECK(told_versions >= 2u && runs[1].op.verdict == SKY_VERDICT_KEEP);
    close_ground();
}

/* What a satellite that stands in first has is not known while it is lost. */
static void test_a_lost_spare_keeps_the_rest(void)
{
    SKY_ReachAsk_t asks[2] = {0};

    open_ground(1);
    forge = is_settled;
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS); /* no handover goes on */
    forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
    CHECK_EQ(SKY_Ground_Spares(&ground, now_us), SKY_STANDINS_SPARES);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        asks[0].satellite = ground.aside[i] ? nodes[i].svc.core.cfg.self : asks[0].satellite;
    }
    asks[0] = (SKY_ReachAsk_t){asks[0].satellite, asks[0].satellite, false};
    asks[1] = (SKY_ReachAsk_t){home_of(&runs[0].op, 1, 0), home_of(&runs[0].op, 1, 0), true};
    (void)SKY_Reach_Found(&ground.reach, now_us, 1, asks, 2, 2); /* as another operation may find */
    CHECK(SKY_Ground_IsLost(&ground, asks[0].satellite));
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
    close_ground();
}

/* Nothing can be asked any more when a miss is to be confirmed: this host has fallen silent, or nobody is in sight. */
static void test_a_miss_that_cannot_be_confirmed_purges_nothing(void)
{
    for (uint32_t is_seen = 0; is_seen < 2u; ++is_seen)
    {
        open_ground(1);
        forge          = is_settled;
        seen[0]        = (SKY_Addr_t){1, 1};
        sky.seen_count = 1;
        sky.uplink     = is_seen == 1u ? (uint32_t)SKY_UPLINK_SEEN : (uint32_t)SKY_UPLINK_DIRECT;
        set_sky();
        CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS); /* no handover goes on */
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_PURGE);
        asked_count = 0;
        submit(prepare(&runs[1], SKY_GROUND_GET, 1, 950, 0));
        (void)SKY_Ground_Run(&ground, now_us, true);
        if (is_seen == 1u)
        {
            sky.seen_count = 0;
            set_sky();
        }
        else
        {
            CHECK_EQ(SKY_Reach_Found(&ground.reach, now_us, 1, NULL, 0, 0), SKY_REACH_NOBODY); /* as another operation may */
            silence_all(true);
        }
        run_all();
        CHECK_EQ(runs[1].op.status, SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
        close_ground();
    }
}

static void test_nothing_is_moved_while_the_host_is_silent(void)
{
    open_ground(1);
    silence_all(true);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_UNANSWERED);
    CHECK(ground.reach.pause_us > 0u);
    asked_count = 0;
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_UNANSWERED);
    CHECK_EQ(asked_count, 0);
    close_ground();
}

static void test_a_newer_version_is_taken(void)
{
    open_ground(1);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    CHECK_EQ(get(&runs[1], 1, 950, 5), SKY_STATUS_DONE);
    CHECK(runs[1].op.facts.version == 6 && is_as_put(&runs[1], 1, 6));

    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 7); /* a version that this host knows was newer */
    runs[1].op.known = 7;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_MISS);
    CHECK_EQ(runs[1].op.facts.version, 7);
    close_ground();
}

/* What satellites say of the length of a block does not make an operation write behind its memory. It says what has to be submitted next. */
static void test_a_version_of_another_length_needs_other_memory(void)
{
    static const uint32_t lengths[2][2] = {{950, 350}, {350, 950}};

    for (uint32_t i = 0; i < 2u; ++i)
    {
        open_ground(1);
        CHECK_EQ(put(&runs[0], 1, lengths[i][0], 6), SKY_STATUS_DONE);
        (void)prepare(&runs[1], SKY_GROUND_GET, 1, lengths[i][1], 5);
        CHECK_EQ(finish(&runs[1].op), SKY_STATUS_BAD_LENGTH);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET);
        CHECK_EQ(runs[1].op.facts.version, 6);
        CHECK_EQ(runs[1].op.facts.stripe.block_len, lengths[i][0]);
        for (uint32_t at = lengths[i][1]; at < BYTES_MAX; ++at)
        {
            CHECK_EQ(runs[1].data[at], 0);
        }
        CHECK_EQ(get(&runs[2], 1, lengths[i][0], 6), SKY_STATUS_DONE);
        CHECK(is_as_put(&runs[2], 1, 6));
        close_ground();
    }
}

static SKY_Stripe_t told_stripe; /* of all blocks, by the word of satellites */

static bool tells_stripe(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    if (question->op == SKY_OP_HAS && answer->status == SKY_STATUS_OK)
    {
        SKY_Stripe_ToPacket(&told_stripe, answer);
    }
    return true;
}

/* As few bytes in smaller chunks, or with more parity, or in more rows, need more memory. */
static void test_another_cut_needs_room(void)
{
    static const struct
    {
        uint32_t bytes, chunk;
        uint8_t  k, m;
    } cuts[] = {{200, 40, 0, 0}, {100, 100, 1, 3}, {300, 100, 3, 1}, {200, 100, 2, 2}};

    for (uint32_t cut = 0; cut < 4u; ++cut)
    {
        open_ground(1);
        (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 200, 6);
        CHECK(SKY_Stripe_Cut(&runs[0].op.facts.stripe, 200, CHUNK, 2, 2));
        CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
        (void)prepare(&runs[1], SKY_GROUND_GET, 1, 200, 5);
        runs[1].op.facts.stripe = runs[0].op.facts.stripe;
        CHECK(SKY_Stripe_Cut(&told_stripe, cuts[cut].bytes, cuts[cut].chunk, cuts[cut].k, cuts[cut].m));
        forge = tells_stripe;
        CHECK_EQ(finish(&runs[1].op), cut == 3u ? SKY_STATUS_DONE : SKY_STATUS_BAD_LENGTH);
        CHECK_EQ(runs[1].op.facts.version, 6);
        close_ground();
    }
}

/* An operation whose numbers contradict each other. */
static void test_a_block_that_can_be_none_is_refused(void)
{
    open_ground(1);
    (void)prepare(&runs[0], SKY_GROUND_GET, 1, 950, 0);
    runs[0].op.facts.stripe.chunk_total = 3;
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_REFUSED);
    CHECK_EQ(asked_count, 0);
    close_ground();
}

/* ---- while the sky turns --------------------------------------------------------------------------------------------- */

/* Satellites do not reach each other here, so what they had in a row stays there. */
static void test_what_is_late_is_found_where_it_was(void)
{
    open_ground(4);
    CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
    now_us = START_US + ROW_US + SECOND_US;
    poll_all();
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 0) && told_searched == 0);
    now_us = START_US + 3u * ROW_US + 10u * SECOND_US;
    poll_all();
    CHECK_EQ(get(&runs[1], 1, 950, 0), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 0) && told_searched >= 1 && ground.late_count > 0 && runs[1].op.is_passed);
    CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
    close_ground();
}

/* Satellites that have not looked at the new row yet may have what was theirs in the row before. */
static void test_who_does_not_know_the_row_is_late(void)
{
    for (uint32_t row = 1; row < 4u; ++row)
    {
        open_ground(4);
        CHECK_EQ(put(&runs[0], 1, 950, 0), SKY_STATUS_DONE);
        now_us = START_US + row * ROW_US + 10u * SECOND_US;
        CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS);
        CHECK(ground.late_count > 0 && runs[1].op.verdict == SKY_VERDICT_FORGET);
        CHECK_EQ(find(&runs[1], 1), SKY_STATUS_DONE);
        close_ground();
    }
}

/* A host whose clock is late puts where servers were. */
static void test_a_late_host_puts_where_servers_were(void)
{
    open_ground(2);
    now_us          = START_US + ROW_US + SECOND_US;
    sky.put_late_us = 10u * SECOND_US;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 350, 0), SKY_STATUS_DONE);
    CHECK(holds(home_of(&runs[0].op, 1, 0), &runs[0].op));
    sky.put_late_us = now_us + 1u; /* nobody's clock is before its beginning */
    set_sky();
    CHECK_EQ(put(&runs[0], 65, 350, 0), SKY_STATUS_DONE);
    CHECK(holds(home_of(&runs[0].op, 2, 0), &runs[0].op));
    close_ground();
}

static bool is_for_next_row(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    answer->word |= SKY_WORD_SETTLED;
    answer->epoch = question->op == SKY_OP_HAS ? 2u : answer->epoch;
    return true;
}

/* Another host has prefetched it for the next row, which is near: it is asked for as one of that row. */
static void test_a_block_that_another_host_prefetched(void)
{
    for (uint64_t version = 0; version <= 5u; version += 5u)
    {
        open_ground(3);
        forge = is_settled;
        CHECK_EQ(put(&runs[0], 1, 950, version), SKY_STATUS_DONE);
        forget(home_of(&runs[0].op, 1, 3), &runs[0].op);
        CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS); /* no handover goes on */
        now_us = START_US + ROW_US - SECOND_US;
        forge  = is_for_next_row;
        CHECK_EQ(get(&runs[1], 1, 950, version), SKY_STATUS_MISS);
        CHECK_EQ(runs[1].op.facts.epoch, 2);
        CHECK_EQ(runs[1].op.verdict, SKY_VERDICT_FORGET); /* its rest is of use there */
        close_ground();
    }
}

/* A block that waits for a row to come is not gone. */
static void test_a_block_that_is_prefetched_is_found_ahead(void)
{
    open_ground(3);
    forge = is_settled;
    (void)prepare(&runs[0], SKY_GROUND_PUT, 1, 950, 0);
    runs[0].op.facts.epoch = 2;
    CHECK_EQ(finish(&runs[0].op), SKY_STATUS_DONE);
    CHECK(holds(home_of(&runs[0].op, 2, 0), &runs[0].op));
    (void)prepare(&runs[1], SKY_GROUND_GET, 1, 950, 0);
    runs[1].op.facts.epoch = 2;
    CHECK_EQ(finish(&runs[1].op), SKY_STATUS_DONE);
    CHECK(is_as_put(&runs[1], 1, 0));
    close_ground();
}

/* A share of a block that waits for a row to come is gone. Another host may have moved it to an earlier row, where no purge would spare it: so its
 * rest stays until its row has begun. */
static void test_the_rest_of_a_block_stays_until_its_row_begins(void)
{
    for (uint32_t kind = SKY_GROUND_GET; kind <= SKY_GROUND_CHECK; kind += SKY_GROUND_CHECK - SKY_GROUND_GET)
    {
        for (uint32_t epoch = 1; epoch <= 4u; ++epoch) /* the schedule has no fourth row */
        {
            open_ground(3);
            forge = is_settled;
            CHECK_EQ(get(&runs[1], 65, 950, 0), SKY_STATUS_MISS); /* no handover goes on */
            (void)prepare(&runs[1], (SKY_GroundKind_t)kind, 1, 950, 0);
            runs[1].op.facts.epoch = epoch;
            CHECK_EQ(finish(&runs[1].op), SKY_STATUS_MISS);
            CHECK_EQ(runs[1].op.verdict, epoch == 1u || epoch == 4u ? SKY_VERDICT_PURGE : SKY_VERDICT_FORGET);
            close_ground();
        }
    }
}

int main(void)
{
    RUN(test_what_is_put_comes_back);
    RUN(test_no_more_run_than_there_is_memory_for);
    RUN(test_a_value_goes_to_a_stand_in_that_is_told_whose_share_it_has);
    RUN(test_only_a_value_has_to_be_stored_whole);
    RUN(test_a_miss_is_confirmed);
    RUN(test_a_silent_spare_keeps_the_rest);
    RUN(test_a_block_that_another_one_replaced);
    RUN(test_a_value_of_which_a_share_is_gone);
    RUN(test_a_value_is_missed_only_by_the_word_of_enough_homes);
    RUN(test_a_value_that_only_stand_ins_know);
    RUN(test_a_value_that_changes_again_and_again);
    RUN(test_a_lost_spare_keeps_the_rest);
    RUN(test_a_miss_that_cannot_be_confirmed_purges_nothing);
    RUN(test_nothing_is_moved_while_the_host_is_silent);
    RUN(test_a_newer_version_is_taken);
    RUN(test_a_version_of_another_length_needs_other_memory);
    RUN(test_another_cut_needs_room);
    RUN(test_a_block_that_can_be_none_is_refused);
    RUN(test_what_is_late_is_found_where_it_was);
    RUN(test_who_does_not_know_the_row_is_late);
    RUN(test_a_late_host_puts_where_servers_were);
    RUN(test_a_block_that_another_host_prefetched);
    RUN(test_a_block_that_is_prefetched_is_found_ahead);
    RUN(test_the_rest_of_a_block_stays_until_its_row_begins);
    return CHECK_RESULT();
}
