/**
 * @file
 * sky_service_survey.c, with the scrub: what is late is not taken for lost, whatever the handover needs, and what is lost goes.
 */
#include "scrub_rig.h"

#define ROW_US 10000000u

static const SKY_ScheduleRow_t steps[] = {{0, {3, 4}}, {ROW_US / 1000u, {3, 6}}, {100u * ROW_US / 1000u, {3, 6}}};

static SKY_Addr_t server_in(uint32_t row, uint32_t number)
{
    return SKY_Schedule_Server(&schedule, row, number);
}

/* Blocks are in the places of the first row. Then the window moves, and with it all but what the satellite stuck holds. */
static void open_moving(bool gossip)
{
    open_filled(PERIOD_MS, gossip);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, steps, 3, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    stuck = (SKY_Addr_t){0, 0};
}

static uint32_t mover(void)
{
    uint32_t number = 0;

    while (SKY_Addr_Equal(server_in(1, number), server_in(2, number)))
    {
        ++number;
    }
    return number;
}

static bool is_whole_at_home(const fx_block_t *what)
{
    bool good = true;

    for (uint32_t id = 0; id < what->chunk_total; ++id)
    {
        uint8_t       key[SKY_KEY_BYTES];
        const node_t *node = node_at(server_in(2, id));

        fx_key(key, what->number);
        good = good && SKY_Store_Has(&node->store, SKY_Store_Find(&node->store, 0, key), id);
    }
    return good;
}

static void test_what_is_late_is_not_lost(void)
{
    for (uint32_t gossip = 0; gossip < 2; ++gossip)
    {
        open_moving(gossip != 0);
        stuck = server_in(1, mover());
        sky_run(ROW_US + 10u * PERIOD_US, STEP_US);
        CHECK(!is_whole_at_home(&block));
        CHECK_EQ(scrubbed(), 0);
        stuck = (SKY_Addr_t){0, 0};
        sky_run(20000000u, STEP_US);
        CHECK(is_whole_at_home(&block) && is_whole_at_home(&other));
        sky_run(6u * PERIOD_US, STEP_US);
        CHECK_EQ(scrubbed(), 0);
    }
}

/* A new schedule that is loaded while the satellites fly begins with its first row, and that row moves everything. */
static void test_the_first_row_of_a_new_schedule_moves_chunks(void)
{
    static const SKY_ScheduleRow_t elsewhere[] = {{0, {3, 6}}};
    uint32_t                       moving      = 0;

    open_filled(PERIOD_MS, false);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, elsewhere, 1, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    while (SKY_Addr_Equal(server(moving), server_in(1, moving)))
    {
        ++moving;
    }
    stuck = server(moving);
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, now_us), 1);
    CHECK_EQ(scrubbed(), 0);
    CHECK_EQ(held(&block), 20);
    stuck = (SKY_Addr_t){0, 0};
    sky_run(20000000u + 6u * PERIOD_US, STEP_US);
    CHECK_EQ(scrubbed(), 0);
    CHECK_EQ(held(&block), 20);
}

static void test_what_is_lost_goes(void)
{
    open_moving(true);
    sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
    CHECK(is_whole_at_home(&block));
    restart(server_in(2, 8));
    sky_run(8u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&other), 4);
    CHECK(is_whole_at_home(&other));
}

/* A satellite that is silent may have what is missing; so may one that has another schedule, if it has anything. */
static void test_who_does_not_know_may_have_it(void)
{
    const SKY_Addr_t apart = {1, 1};

    CHECK(!SKY_Addr_Equal(server(8), apart));
    for (uint32_t kind = 0; kind < 2; ++kind)
    {
        const fx_block_t strange = a_block(9, 1);

        open_moving(false);
        sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
        CHECK(SKY_Service_SetSchedule(&node_at(apart)->svc, NULL));
        sky_put(apart, &strange, 0);
        node_at(apart)->deaf = kind == 0;
        restart(server_in(2, 8));
        sky_run(12u * PERIOD_US, STEP_US);
        CHECK_EQ(held(&block), 18);
        CHECK_EQ(scrubbed(), 0);
        restart(apart); /* it answers, and has nothing */
        sky_run(20u * SERVERS * PERIOD_US, STEP_US);
        CHECK_EQ(held(&block), 0);
    }
}

/* Another row begins while satellites are asked: what they said before does not count. */
static void test_a_row_in_between(void)
{
    const SKY_Addr_t apart = {1, 1};

    open_moving(false);
    sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
    node_at(apart)->deaf = true;
    restart(server_in(2, 8));
    sky_run(99u * ROW_US, STEP_US);
    CHECK_EQ(held(&block), 18);
    node_at(apart)->deaf = false;
    sky_run(20u * SERVERS * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

/* What is denied by an answer to a question from before all was known to be settled may have come meanwhile. */
static void test_a_question_from_before(void)
{
    open_moving(false);
    sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
    restart(server_in(2, 8));
    sky_run(PERIOD_US, STEP_US);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        nodes[i].svc.survey.row        = 2;
        nodes[i].svc.survey.settled_us = UINT64_MAX;
    }
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18);
}

/* A share that is to be handed over may be at its new place already: its eviction is no news of a broken block. */
static void test_no_gossip_about_what_is_to_go(void)
{
    node_t *full;

    open_moving(true);
    stuck = server_in(1, mover());
    full  = node_at(stuck);
    sky_run(ROW_US + PERIOD_US, STEP_US);
    CHECK(full->svc.handover.left > 0);
    for (uint32_t number = 20; number < 20 + 2u * ROOM; ++number)
    {
        const fx_block_t more = a_block(number, 1);

        sky_put(stuck, &more, 0);
    }
    CHECK(full->store.counters.evicted_blocks > 0);
    CHECK_EQ(full->svc.core.counters.gossip_tx, 0);
}

/* While one satellite stays silent the others are not asked over and over, and nobody is once there is nothing to know. */
static void test_a_silent_satellite_costs_little(void)
{
    const SKY_Addr_t apart = {PLANES, SLOTS}, first = {1, 1};
    node_t          *other_node;
    uint64_t         requests;
    uint8_t          key[SKY_KEY_BYTES];

    open_moving(false);
    sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
    CHECK_EQ(held_at(apart, &block) + held_at(first, &block), 0);
    other_node           = node_at(first);
    node_at(apart)->deaf = true;
    requests             = other_node->svc.core.counters.requests;
    restart(server_in(2, 8));
    sky_run(60u * PERIOD_US, STEP_US);
    CHECK_EQ(other_node->svc.core.counters.requests, requests + 1u); /* once, by the satellite before the lost one */
    CHECK_EQ(scrubbed(), 0);

    /* The host purges the block. */
    fx_key(key, block.number);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        (void)SKY_Store_Purge(&nodes[i].store, 0, key, NULL);
    }
    sky_run(2u * PERIOD_US, STEP_US);
    other_node = node_at((SKY_Addr_t){PLANES, SLOTS - 1u}); /* of the silent one's group */
    requests   = other_node->svc.core.counters.requests;
    sky_run(30u * PERIOD_US, STEP_US);
    CHECK_EQ(other_node->svc.core.counters.requests, requests);
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

/* Who asks about the server that is lost. */
static SKY_Addr_t asker(void)
{
    return server_in(2, 7);
}

static SKY_Survey_t *asking(void)
{
    SKY_Survey_t *survey;

    open_moving(false);
    sky_run(ROW_US + 4u * PERIOD_US, STEP_US);
    restart(server_in(2, 8));
    survey = &node_at(asker())->svc.survey;
    for (uint32_t steps_left = 1000; steps_left > 0 && survey->waiting == 0; --steps_left)
    {
        uint64_t next_us;

        sky_run(STEP_US, STEP_US);
        SKY_Service_Poll(&node_at(asker())->svc, now_us, &next_us); /* what it asks now is lost */
    }
    CHECK_EQ(survey->waiting, 0xFFFFu);
    return survey;
}

static bool answer_with(SKY_Survey_t *survey, uint32_t index, SKY_Addr_t from, uint8_t op, uint64_t row, uint64_t used,
                        uint64_t left, uint32_t length, SKY_Status_t status)
{
    uint8_t      payload[8u * SKY_STATS_KVC_COUNT] = {0};
    uint64_t     before;
    SKY_Packet_t pkt;

    payload[8u * SKY_STATS_KVC_ROW + 7u]           = (uint8_t)row;
    payload[8u * SKY_STATS_KVC_USED_BYTES + 7u]    = (uint8_t)used;
    payload[8u * SKY_STATS_KVC_HANDOVER_LEFT + 7u] = (uint8_t)left;
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.op         = op;
    pkt.src        = from;
    pkt.status     = status;
    pkt.request_id = (survey->request_id & ~(uint64_t)0xFFFFu) + index;
    pkt.payload    = payload;
    pkt.length     = length;
    before         = node_at(asker())->svc.core.counters.unsolicited;
    SKY_Service_Begin(&node_at(asker())->svc, now_us, &pkt);
    return node_at(asker())->svc.core.counters.unsolicited == before;
}

static void test_answers_that_say_nothing(void)
{
    const SKY_Addr_t first = {1, 1}, second = {1, 2};
    const uint32_t   all    = 8u * SKY_STATS_KVC_COUNT;
    SKY_Survey_t    *survey = asking();

    CHECK_EQ(survey->waiting, 0xFFFFu);
    CHECK(!answer_with(survey, 0, first, SKY_OP_HAS, 2, 5, 0, all, SKY_STATUS_OK));
    CHECK(!answer_with(survey, 0x10000u, first, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_OK)); /* of another group */
    CHECK(!answer_with(survey, 16, first, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_OK));
    CHECK(answer_with(survey, 0, first, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_OK));
    CHECK_EQ(survey->waiting, 0xFFFEu);
    CHECK(!answer_with(survey, 0, first, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_OK)); /* twice */
    CHECK(answer_with(survey, 1, second, SKY_OP_STATS, 1, 0, 0, all, SKY_STATUS_OK)); /* of another row, but empty */
    CHECK_EQ(survey->waiting, 0xFFFCu);

    /* Each of these ends the attempt. */
    survey = asking();
    CHECK(answer_with(survey, 0, second, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_OK)); /* not who was asked */
    CHECK_EQ(survey->waiting, 0);
    survey = asking();
    CHECK(answer_with(survey, 0, first, SKY_OP_STATS, 2, 5, 1, all, SKY_STATUS_OK)); /* has something left */
    CHECK_EQ(survey->waiting, 0);
    survey = asking();
    CHECK(answer_with(survey, 0, first, SKY_OP_STATS, 1, 5, 0, all, SKY_STATUS_OK)); /* of another row */
    CHECK_EQ(survey->waiting, 0);
    survey = asking();
    CHECK(answer_with(survey, 0, first, SKY_OP_STATS, 2, 5, 0, all - 8u, SKY_STATUS_OK)); /* too short */
    CHECK_EQ(survey->waiting, 0);
    survey = asking();
    CHECK(answer_with(survey, 0, first, SKY_OP_STATS, 2, 5, 0, all, SKY_STATUS_UNREACHABLE));
    CHECK_EQ(survey->waiting, 0);
    CHECK(survey->until_us > now_us);
}

/* This satellite has no link towards one that it asks: nobody waits for that answer. */
static void test_ends_when_there_is_no_way_from_here(void)
{
    const SKY_Addr_t asked = {1, 1}, of_another_group = {PLANES, SLOTS};
    SKY_Survey_t    *survey  = asking();
    const uint64_t   late_us = survey->until_us;

    SKY_Service_Unreachable(&node_at(asker())->svc, of_another_group);
    CHECK_EQ(survey->waiting, 0xFFFFu);
    SKY_Service_Unreachable(&node_at(asker())->svc, asked);
    CHECK_EQ(survey->waiting, 0);
    CHECK_EQ(survey->to_ask, 0);
    CHECK(!survey->is_wanted);
    CHECK(survey->until_us > late_us); /* the next attempt comes after a pause, as after silence */
}

int main(void)
{
    RUN(test_what_is_late_is_not_lost);
    RUN(test_the_first_row_of_a_new_schedule_moves_chunks);
    RUN(test_what_is_lost_goes);
    RUN(test_who_does_not_know_may_have_it);
    RUN(test_a_row_in_between);
    RUN(test_a_question_from_before);
    RUN(test_no_gossip_about_what_is_to_go);
    RUN(test_a_silent_satellite_costs_little);
    RUN(test_answers_that_say_nothing);
    RUN(test_ends_when_there_is_no_way_from_here);
    sky_close();
    return CHECK_RESULT();
}
