/**
 * @file
 * A check that never fails proves nothing: each invariant is broken on purpose, and the twin says so.
 */
#include "twin_rig.h"

static void check_broken(SKYT_Break_t broken, SKYT_Invariant_t invariant)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 5000;
    check_first(&rig, broken, invariant, "");
}

static void test_damage_that_no_checksum_sees(void)
{
    check_broken(SKYT_BREAK_FLIP, SKYT_INVARIANT_EXACT);
}

static void test_a_chunk_of_another_tenant(void)
{
    check_broken(SKYT_BREAK_SWAP, SKYT_INVARIANT_FOREIGN);
}

static void test_a_chunk_lost_in_a_handover(void)
{
    check_broken(SKYT_BREAK_FORGET, SKYT_INVARIANT_KEPT);
}

static void test_a_satellite_that_is_settled_before_its_chunks_have_come(void)
{
    check_broken(SKYT_BREAK_HASTY, SKYT_INVARIANT_KEPT);
}

static void test_a_store_over_its_limit(void)
{
    check_broken(SKYT_BREAK_OVERFULL, SKYT_INVARIANT_LIMIT);
}

static void test_an_operation_that_does_not_end(void)
{
    check_broken(SKYT_BREAK_DEAF, SKYT_INVARIANT_DEADLINE);
}

static void test_packets_that_are_not_given_back(void)
{
    check_broken(SKYT_BREAK_LEAK, SKYT_INVARIANT_PACKETS);
}

/* The window's satellites are asked, one of them is dead, and the others know of no links but their own: packets circle. */
static void test_packets_that_circle(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig_dead_satellite(&rig, 0);
    rig_run(&rig, SKYT_BREAK_ROUTE, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_ROUTE] > 100);
}

static void test_more_packets_than_there_may_be(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.packets_max = 10;
    rig_run(&rig, SKYT_BREAK_LEAK, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_PACKETS] > 1);
    CHECK_EQ(counters.packets_on_way_most, 10);
}

/* A satellite crashes, so hosts look around. */
static void test_an_answer_that_a_host_does_not_count(void)
{
    Rig_t rig;

    rig_init(&rig, 4);
    (void)rig_fault(&rig, 100, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(&rig, 160, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    check_only_broken(&rig, SKYT_BREAK_RASH, SKYT_INVARIANT_LOST, "lost that has answered");
}

/* A satellite loses its share. Servers that are asked before gets say so; one that says that it has it all is not believed. */
static void test_a_satellite_that_says_it_holds_what_is_gone(void)
{
    Rig_t rig;

    rig_init(&rig, 5);
    rig.config.ask_first = 1;
    (void)rig_fault(&rig, 30, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(&rig, 31, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    check_only_broken(&rig, SKYT_BREAK_BOAST, SKYT_INVARIANT_HELD, "whole, but this chunk is held nowhere");
}

static void test_a_satellite_that_says_it_holds_nothing_of_what_is_whole(void)
{
    Rig_t rig;

    rig_init(&rig, 5);
    rig.config.ask_first  = 1;
    rig.config.lazy_purge = 1;
    check_only_broken(&rig, SKYT_BREAK_DISOWN, SKYT_INVARIANT_KEPT, "a get missed a chunk that");
}

/* What is gone is found before the get, which then moves nothing: the rest is purged. */
static void test_who_asks_first_moves_nothing_in_vain(void)
{
    SKYT_Counters_t counters[2];
    Rig_t           rig;

    for (uint32_t first = 0; first < 2u; ++first)
    {
        rig_init(&rig, 5);
        rig.rows              = 1;
        rig.config.ask_first  = first;
        rig.config.lazy_purge = 1;
        (void)rig_fault(&rig, 30, SKYT_FAULT_CRASH, node_at(3, 9), 0);
        (void)rig_fault(&rig, 31, SKYT_FAULT_RESTART, node_at(3, 9), 0);
        rig_run(&rig, SKYT_BREAK_NOTHING, &counters[first]);
        CHECK_EQ(violations_of(&counters[first]), 0);
        CHECK(counters[first].misses[SKYT_CAUSE_CRASHED] > 0);
        CHECK(counters[first].purges > 0);
    }
    CHECK_EQ(counters[0].purges, counters[1].purges);
    CHECK_EQ(counters[0].hits, counters[1].hits);
}

static void test_a_look_up_that_is_denied_what_is_whole(void)
{
    Rig_t rig;

    rig_init(&rig, 5);
    rig.config.look_up = 1;
    check_only_broken(&rig, SKYT_BREAK_DISOWN, SKYT_INVARIANT_KEPT, "a look-up missed a block that is whole");
}

/* Looked up or not, a block comes or does not; one that nobody has put is looked for in vain, and not got. */
static void test_who_looks_up_finds_what_a_get_finds(void)
{
    SKYT_Counters_t counters[2];
    Rig_t           rig;

    for (uint32_t looked = 0; looked < 2u; ++looked)
    {
        rig_init(&rig, 5);
        rig.config.look_up = looked;
        rig.ops[0]         = (SKYT_Op_t){START_US + SECOND, SKYT_OP_GET, 0, 1, 5000, 0};
        rig.ops[1]         = (SKYT_Op_t){START_US + 2 * SECOND, SKYT_OP_PUT, 0, 1, 5000, 0};
        rig.op_count       = 2;
        for (uint32_t i = 0; i < 20u; ++i)
        {
            rig.ops[rig.op_count++] = (SKYT_Op_t){START_US + (10u + 15u * i) * SECOND, SKYT_OP_GET, 0, i % 2u + 1u, 5000, 0};
        }
        rig_run(&rig, SKYT_BREAK_NOTHING, &counters[looked]);
        CHECK_EQ(violations_of(&counters[looked]), 0);
        CHECK_EQ(counters[looked].hits, 20);
        CHECK_EQ(counters[looked].misses[SKYT_CAUSE_ABSENT], 1);
    }
    CHECK(counters[1].digest != counters[0].digest);
}

/* Of what nobody has put, few satellites are asked. */
static void test_a_look_up_in_vain_takes_few_packets(void)
{
    SKYT_Counters_t counters[2];
    Rig_t           rig;

    for (uint32_t looked = 0; looked < 2u; ++looked)
    {
        rig_init(&rig, 5);
        rig.config.look_up = looked;
        rig.ops[0]         = (SKYT_Op_t){START_US + SECOND, SKYT_OP_GET, 0, 1, 5000, 0};
        rig.op_count       = 1;
        rig_run(&rig, SKYT_BREAK_NOTHING, &counters[looked]);
        CHECK_EQ(violations_of(&counters[looked]), 0);
        CHECK_EQ(counters[looked].misses[SKYT_CAUSE_ABSENT], 1);
    }
    CHECK(counters[1].packets < counters[0].packets);
}

/* Put two blocks and purge them: operation 2 asks all servers at once, operation 3 the first one before the others. */
static void init_purges(Rig_t *rig)
{
    rig_init(rig, 3);
    rig->ops[0]   = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig->ops[1]   = (SKYT_Op_t){START_US, SKYT_OP_PUT, 1, 2, 5000, 0};
    rig->ops[2]   = (SKYT_Op_t){START_US + 30 * SECOND, SKYT_OP_PURGE, 0, 1, 5000, 0};
    rig->ops[3]   = (SKYT_Op_t){START_US + 30 * SECOND, SKYT_OP_PURGE, 1, 2, 5000, 0};
    rig->op_count = 4;
}

static void test_a_purged_block_that_a_satellite_keeps(void)
{
    Rig_t rig;

    init_purges(&rig);
    check_only_broken(&rig, SKYT_BREAK_CLING, SKYT_INVARIANT_HELD, "takes a block for purged, but this satellite holds");
}

static void test_what_is_purged_is_nowhere(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    init_purges(&rig);
    rig_run_sound(&rig, &counters);
    CHECK_EQ(counters.purges, 2);
    CHECK_EQ(counters.stored_chunks, 0);
}

/* The others route around a dead server, which does not answer. So the host asks again, and its stand-in instead. */
static void test_a_purge_around_a_satellite_that_is_dead(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;
    uint32_t        count;

    init_purges(&rig);
    rig.rows           = 1;
    rig.ops[2].time_us = rig.ops[3].time_us = START_US + 100 * SECOND;
    (void)rig_fault(&rig, 20, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(&rig, 190, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    SKYT_Twin_t *twin = rig_create(&rig);

    (void)SKYT_Run(twin, START_US + 200 * SECOND);
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(violations_of(&counters), 0);
    CHECK_EQ(counters.stored_chunks, 0);
    const SKYT_Result_t *results = SKYT_Results(twin, &count);

    CHECK_EQ(count, 4);
    for (uint32_t op = 2; op < 4u; ++op)
    {
        CHECK_EQ(results[op].ended, 1);
        CHECK_EQ(results[op].cause, SKYT_CAUSE_NONE);
        CHECK(results[op].tries >= 2u * rig.config.servers);
    }
    SKYT_Destroy(twin);
}

static void small_stores(Rig_t *rig)
{
    rig_init(rig, 3);
    rig->config.slot_count = 24;
}

static void test_a_block_that_was_just_used_makes_room(void)
{
    Rig_t rig;

    small_stores(&rig);
    check_only_broken(&rig, SKYT_BREAK_NEWEST, SKYT_INVARIANT_OLDEST, "another one was used before it");
}

static void test_a_satellite_ignores_quotas(void)
{
    Rig_t rig;

    small_stores(&rig);
    rig.config.quota_reserved = 20;
    rig.config.quota_most     = 40;
    check_first(&rig, SKYT_BREAK_COMMON, SKYT_INVARIANT_QUOTA, "");
}

/* Pressure fills a store with junk, and no tenant loses anything. */
static void test_quotas_hold_under_pressure(void)
{
    for (uint32_t has_quotas = 0; has_quotas < 2; ++has_quotas)
    {
        Rig_t           rig;
        SKYT_Counters_t counters;

        rig_init(&rig, 3);
        rig.config.quota_reserved = has_quotas * 50;
        rig.config.quota_most     = has_quotas * 50;
        for (uint32_t i = 0; i < 30; ++i)
        {
            (void)rig_fault(&rig, 3, SKYT_FAULT_PRESSURE, node_at(2 + i / 15, i % 15 + 1), 0);
        }
        rig_run_sound(&rig, &counters);
        CHECK_EQ(counters.pressures, 30);
        CHECK_EQ(counters.misses[SKYT_CAUSE_EVICTED] == 0, has_quotas == 1);
    }
}

static void test_quotas_must_fit(void)
{
    Rig_t rig;
    char  why[SKYT_TEXT_BYTES];

    rig_init(&rig, 3);
    rig.config.quota_most = 101;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strcmp(why, "quota_most is 101; allowed are 0 to 100") == 0);
    rig.config.quota_most     = 50;
    rig.config.quota_reserved = 51;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strcmp(why, "quota_reserved is 51; allowed are 0 to 50") == 0);
    rig.config.tenants        = 3;
    rig.config.quota_reserved = 40;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strcmp(why, "tenants x quota_reserved is 120; allowed are 0 to 100") == 0);
    rig.config.tenants = 17;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strcmp(why, "tenants is 17; allowed are 1 to 16") == 0);
}

static void test_a_detour_without_need(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    check_only_broken(&rig, SKYT_BREAK_DETOUR, SKYT_INVARIANT_SHORTEST, "detour");
}

static void test_a_deadline_in_another_unit(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    check_only_broken(&rig, SKYT_BREAK_SECONDS, SKYT_INVARIANT_LIFETIME, "deadline of a put");
}

/* Nothing of a block is complete before its parts are forgotten. */
static void test_parts_that_are_forgotten_too_early(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.packet_bytes                                           = SKY_SERVICE_PACKET_MIN;
    rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.loss_ppm = 100000;
    check_first(&rig, SKYT_BREAK_SECONDS, SKYT_INVARIANT_LIFETIME, "");
}

static void test_a_chunk_whose_own_checksum_alone_is_wrong(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    for (uint32_t packet_bytes = SKY_SERVICE_PACKET_MIN; packet_bytes <= SKY_SERVICE_PACKET_MIN + 300u;
         packet_bytes += 300u) /* in parts, and whole */
    {
        rig_init(&rig, 3);
        rig.config.packet_bytes                                              = packet_bytes;
        rig_fault(&rig, 0, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.corrupt_ppm = 10000;
        rig_run_sound(&rig, &counters);
        CHECK(counters.corrupted > 50);
        CHECK_EQ(counters.damaged, 0);
        CHECK(counters.hits > GETS / 2u);
    }
    check_first(&rig, SKYT_BREAK_TRUST, SKYT_INVARIANT_EXACT, "not what was put");
}

static void test_gossip_that_is_taken_for_another_block(void)
{
    Rig_t rig;

    rig_init(&rig, 3);
    rig.config.gossip = 1;
    for (uint32_t slot = 5; slot <= 9; ++slot) /* the window is about to come there */
    {
        (void)rig_fault(&rig, 50, SKYT_FAULT_PRESSURE, node_at(3, slot), 2);
    }
    check_only_broken(&rig, SKYT_BREAK_RUMOUR, SKYT_INVARIANT_KEPT, "gossip purged a whole block");
}

static void test_a_chunk_that_is_denied_where_others_are_gone(void)
{
    Rig_t rig;

    small_stores(&rig);
    check_only_broken(&rig, SKYT_BREAK_DENY, SKYT_INVARIANT_KEPT, "a get missed a chunk that this satellite holds");
}

/* A host whose clock is late puts where the window was: what it puts goes home. */
static void test_a_late_put_goes_home(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.late_put_ms = 2000;
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        rig.ops[rig.op_count++] =
            (SKYT_Op_t){START_US + (60u + 60u * (i % 4u)) * SECOND + i * SECOND / 16u, SKYT_OP_PUT, i, 1, 5000, 0};
    }
    rig_sort_ops(&rig);
    rig_run_sound(&rig, &counters);
    CHECK(counters.migrated_chunks > 0);
    CHECK_EQ(counters.blocks_checked, BLOCKS);
    CHECK_EQ(counters.blocks_misplaced, 0);
}

/* Without a limit of violations, so that only the livelock stops it. */
static void check_livelock(SKYT_Break_t broken, const char *kind)
{
    SKYT_Violation_t found;
    SKYT_Counters_t  counters;
    SKYT_Twin_t     *twin;
    Rig_t            rig;
    uint32_t         last = 0;

    rig_init(&rig, 3);
    rig.config.livelock_steps = 100000;
    twin                      = rig_create(&rig);
    SKYT_Break(twin, broken);
    CHECK(!SKYT_Run(twin, START_US + 460 * SECOND));
    CHECK(!SKYT_Run(twin, START_US + 461 * SECOND)); /* for good */
    SKYT_Finish(twin);
    SKYT_Counters(twin, &counters);
    CHECK_EQ(counters.stopped, SKYT_STOP_LIVELOCK);
    CHECK_EQ(counters.violations[SKYT_INVARIANT_LIVELOCK], 1);
    CHECK(counters.now_us < START_US + 120 * SECOND);
    while (SKYT_Violation(twin, last, &found))
    {
        ++last;
    }
    CHECK_EQ(found.invariant, SKYT_INVARIANT_LIVELOCK); /* always kept, as the last */
    CHECK(strstr(found.text, kind) != NULL);
    CHECK(found.op != SKYT_NONE || broken != SKYT_BREAK_SPIN); /* the answers may be to other satellites */
    SKYT_Destroy(twin);
}

/* Nothing is sent while it goes round: there is an operation, and no kind of packet. */
static void test_a_host_that_is_always_due(void)
{
    check_livelock(SKYT_BREAK_SPIN, "no kind");
}

static void test_an_answer_without_end(void)
{
    check_livelock(SKYT_BREAK_BABBLE, "responses of PING"); /* whether all has arrived, which is asked first */
}

static void test_a_run_stops_at_the_first_violations(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.config.violations_max = 3;
    rig_run(&rig, SKYT_BREAK_FLIP, &counters);
    CHECK_EQ(violations_of(&counters), 3);
    CHECK_EQ(counters.stopped, SKYT_STOP_VIOLATIONS);
    CHECK(counters.now_us < START_US + 60 * SECOND);
}

/* Gone in the end, although nobody asked for it. */
static void test_a_chunk_that_is_missed_by_nobody(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    rig_init(&rig, 3);
    rig.ops[0]   = (SKYT_Op_t){START_US, SKYT_OP_PUT, 0, 1, 5000, 0};
    rig.op_count = 1;
    rig_run(&rig, SKYT_BREAK_FORGET, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_KEPT] > 0);
    CHECK_EQ(counters.gets, 0);
}

int main(void)
{
    RUN(test_damage_that_no_checksum_sees);
    RUN(test_a_chunk_of_another_tenant);
    RUN(test_a_chunk_lost_in_a_handover);
    RUN(test_a_satellite_that_is_settled_before_its_chunks_have_come);
    RUN(test_a_store_over_its_limit);
    RUN(test_an_operation_that_does_not_end);
    RUN(test_packets_that_are_not_given_back);
    RUN(test_packets_that_circle);
    RUN(test_an_answer_that_a_host_does_not_count);
    RUN(test_a_satellite_that_says_it_holds_what_is_gone);
    RUN(test_a_satellite_that_says_it_holds_nothing_of_what_is_whole);
    RUN(test_who_asks_first_moves_nothing_in_vain);
    RUN(test_a_look_up_that_is_denied_what_is_whole);
    RUN(test_who_looks_up_finds_what_a_get_finds);
    RUN(test_a_look_up_in_vain_takes_few_packets);
    RUN(test_a_purged_block_that_a_satellite_keeps);
    RUN(test_what_is_purged_is_nowhere);
    RUN(test_a_purge_around_a_satellite_that_is_dead);
    RUN(test_a_block_that_was_just_used_makes_room);
    RUN(test_a_satellite_ignores_quotas);
    RUN(test_quotas_hold_under_pressure);
    RUN(test_quotas_must_fit);
    RUN(test_a_detour_without_need);
    RUN(test_a_deadline_in_another_unit);
    RUN(test_parts_that_are_forgotten_too_early);
    RUN(test_a_chunk_whose_own_checksum_alone_is_wrong);
    RUN(test_gossip_that_is_taken_for_another_block);
    RUN(test_a_chunk_that_is_denied_where_others_are_gone);
    RUN(test_a_late_put_goes_home);
    RUN(test_a_host_that_is_always_due);
    RUN(test_an_answer_without_end);
    RUN(test_a_run_stops_at_the_first_violations);
    RUN(test_more_packets_than_there_may_be);
    RUN(test_a_chunk_that_is_missed_by_nobody);
    return CHECK_RESULT();
}
