/**
 * @file
 * sky_service_scrub.c: broken blocks go, and nothing else does.
 */
#include "scrub_rig.h"

static void test_whole_blocks_stay(void)
{
    open_filled(PERIOD_MS, true);
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(held(&other), 4);
    CHECK_EQ(scrubbed(), 0);
    CHECK_EQ(unsolicited(), 0);
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        const uint64_t requests = node_at(server(i))->svc.core.counters.requests;

        CHECK(requests >= 9 && requests <= (i < 4 ? 24 : 14)); /* one satellite asks about each share, once in a period */
    }
    CHECK_EQ(node_at((SKY_Addr_t){1, 1})->svc.core.counters.requests, 0);
}

static void test_off(void)
{
    uint64_t next_us;

    open_filled(0, true);
    restart(server(8));
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18);
    SKY_Service_Poll(&node_at(server(0))->svc, now_us, &next_us);
    CHECK_EQ(node_at(server(0))->svc.scrub.state, SKY_SCRUB_IDLE);
    CHECK_EQ(node_at(server(0))->svc.scrub.next_us, 0); /* it was never due */

    open_filled(PERIOD_MS, true);
    restart(server(8));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, NULL));
    }
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18);
    SKY_Service_Poll(&node_at(server(0))->svc, now_us, &next_us);
    CHECK_EQ(next_us, UINT64_MAX);
}

static void test_a_lost_share_takes_the_block(void)
{
    open_filled(PERIOD_MS, true);
    sky_run(PERIOD_US, STEP_US);
    restart(server(8));
    sky_run(PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18); /* found broken once */
    sky_run(3u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&other), 4);
    CHECK_EQ(scrubbed(), 2); /* the others heard of it */
}

/* Its lost shares come back, if not as they were: the chunks of this rig are no parity of each other. */
static void test_a_lost_share_leaves_a_block_with_parity(void)
{
    open_filled(PERIOD_MS, true);
    fx_block_t coded = a_block(3, 18);

    sky_put_coded(&coded);
    sky_run(LIFE_MS * 1000u, STEP_US);
    restart(server(8));
    restart(server(3));
    sky_run(8u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&coded), 18);
}

static void test_without_gossip_it_takes_longer(void)
{
    open_filled(PERIOD_MS, false);
    restart(server(8));
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK(held(&block) > 0);
    sky_run(4u * SERVERS * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&other), 4);
    CHECK_EQ(scrubbed(), 18);
}

static void drop(SKY_Addr_t addr, const fx_block_t *what, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, what->number);
    CHECK(SKY_Store_Drop(&node_at(addr)->store, SKY_Store_Find(&node_at(addr)->store, 0, key), id));
}

/* Of two or three chunks one is gone: the satellite itself knows, and so does the one before it. */
static void test_a_share_with_a_gap(void)
{
    open_filled(PERIOD_MS, true);
    drop(server(5), &block, 14);
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&other), 4);

    open_filled(PERIOD_MS, true);
    node_at(server(5))->svc.core.cfg.scrub_period_ms = 0; /* only the other one looks */
    drop(server(5), &block, 14);
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);

    open_filled(PERIOD_MS, true);
    node_at(server(4))->svc.core.cfg.scrub_period_ms = 0;
    drop(server(5), &block, 14);
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

static void test_silence_says_nothing(void)
{
    open_filled(PERIOD_MS, true);
    node_at(server(5))->deaf = true;
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(scrubbed(), 0);
    node_at(server(5))->deaf = false; /* and then the looks go on */
    restart(server(5));
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

/* Put again between two looks, all of it or only a chunk that is there already: the doubt is over, or begins anew. */
static void test_a_put_in_between(void)
{
    open_filled(PERIOD_MS, true);
    restart(server(8));
    sky_run(PERIOD_US, STEP_US);
    sky_put_all(&block);
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 20);

    restart(server(8));
    for (uint32_t i = 0; i < 12; ++i)
    {
        sky_put(server(7), &block, 7);
        sky_run(PERIOD_US, STEP_US);
    }
    CHECK_EQ(held_at(server(7), &block), 2);
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

static void test_a_share_that_came_back(void)
{
    open_filled(PERIOD_MS, true);
    restart(server(8));
    sky_run(PERIOD_US, STEP_US);
    sky_put(server(8), &block, 8);
    sky_put(server(8), &block, 17);
    sky_run(3u * PERIOD_US, STEP_US);
    restart(server(8));
    sky_run(PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18); /* it was whole since the first doubt, so that one does not count */
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

static void test_later_epochs_are_left_alone(void)
{
    uint8_t      data[CHUNK];
    SKY_Packet_t pkt;

    open_filled(PERIOD_MS, true);
    other = a_block(3, 2);
    for (uint32_t epoch = 1; epoch <= 2; ++epoch)
    {
        fx_put(&other, 0, data, &pkt); /* and not its other chunk */
        pkt.epoch = epoch;
        node_serve(node_at(server(0)), &pkt);
    }
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&other), 1);
    now_us = schedule.epoch_us + 102000000u; /* row 3 */
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&other), 0);
}

/* What was suspected in the row before does not count. */
static void test_a_new_row_begins_anew(void)
{
    open_filled(PERIOD_MS, true);
    now_us = schedule.epoch_us + 101000000u - 3u * PERIOD_US / 4u;
    restart(server(8));
    sky_run(3u * PERIOD_US / 4u, STEP_US); /* rows 1 and 2: found broken */
    sky_run(9u * PERIOD_US / 10u, STEP_US);
    CHECK_EQ(held(&block), 18);
    sky_run(3u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
}

/* Chunks of a server that is another satellite in this row: nothing can be said of them here. */
static void test_what_belongs_elsewhere_is_left_alone(void)
{
    const fx_block_t stray = a_block(7, 9);
    node_t          *node;

    open_filled(PERIOD_MS, true);
    sky_put((SKY_Addr_t){5, 7}, &stray, 3);
    node = node_at((SKY_Addr_t){5, 7});
    for (uint32_t i = 0; i < 10; ++i)
    {
        uint64_t next_us;

        now_us += PERIOD_US;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        node_pull(node);
        CHECK_EQ(node->svc.scrub.state, SKY_SCRUB_IDLE);
        fleet_count = 0; /* nobody takes it home */
    }
    CHECK_EQ(held(&stray), 1);
}

/* Shares follow the window; whoever looks asks where they are now. */
static void test_a_moving_window(void)
{
    SKY_ScheduleRow_t moving[8];

    open_filled(PERIOD_MS, true);
    for (uint32_t i = 0; i < 8; ++i)
    {
        moving[i].time_ms      = i * 5u * PERIOD_MS / 2u;
        moving[i].centre.plane = centre.plane + (int32_t)(i / 4u);
        moving[i].centre.slot  = centre.slot - (int32_t)i;
    }
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, moving, 8, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    sky_run(22u * PERIOD_US, STEP_US);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, now_us), 8);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(held(&other), 4);
    CHECK_EQ(scrubbed(), 0);
    restart(SKY_Schedule_Server(&schedule, 8, 6));
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);
    CHECK_EQ(held(&other), 4);
}

static SKY_Status_t migrate(SKY_Addr_t from, SKY_Addr_t to, const fx_block_t *what, uint32_t epoch)
{
    const uint8_t  target[SKY_MIGRATE_BYTES] = {0, (uint8_t)to.plane, 0, (uint8_t)to.slot};
    SKY_Service_t *svc                       = &node_at(from)->svc;
    SKY_Packet_t   pkt                       = {.is_request = true, .apid = SKY_APID_KVC, .op = SKY_OP_MIGRATE};

    pkt.src     = (SKY_Addr_t){0, 77};
    pkt.dst     = from;
    pkt.epoch   = epoch;
    pkt.payload = target;
    pkt.length  = sizeof(target);
    if (what != NULL)
    {
        fx_key(pkt.key, what->number);
    }
    SKY_Service_Begin(svc, now_us, &pkt);
    const SKY_Status_t status = svc->answer.reply.status;
    node_pull(node_at(from));
    return status;
}

/* Of a block that is prefetched for a later row some shares have gone there and others stay: nothing of it is broken. */
static void test_what_is_prefetched(void)
{
    const SKY_ScheduleRow_t later[] = {{0, {3, 4}}, {20u * PERIOD_MS, {3, 5}}};
    const fx_block_t        unknown = a_block(99, 1);
    uint32_t                stay    = 0;

    open_filled(PERIOD_MS, true);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, later, 2, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        const SKY_Addr_t to = SKY_Schedule_Server(&schedule, 2, i);

        CHECK_EQ(migrate(server(i), to, &block, 2), SKY_STATUS_OK);
        stay += SKY_Addr_Equal(to, server(i)) ? 1u : 0u;
    }
    CHECK_EQ(stay, 6);
    CHECK_EQ(migrate(server(0), server(0), &unknown, 2), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(migrate(server(0), server(0), &block, 0), SKY_STATUS_BAD_ADDRESS);
    CHECK_EQ(migrate(server(0), server(0), NULL, 2), SKY_STATUS_BAD_ADDRESS);
    sky_run(18u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(held(&other), 4);
    sky_run(8u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(scrubbed(), 0);
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        CHECK_EQ(held_at(SKY_Schedule_Server(&schedule, 2, i), &block), i < 2 ? 3 : 2);
    }
}

static void test_blocks_of_one_share(void)
{
    const fx_block_t single = a_block(8, 1);
    uint64_t         requests;

    open_filled(PERIOD_MS, true);
    sky_open(ROOM, true);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    sky_put(server(0), &single, 0);
    requests = node_at(server(0))->svc.core.counters.requests;
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&single), 1);
    CHECK_EQ(node_at(server(0))->svc.core.counters.requests, requests); /* there is nobody to ask */
    CHECK_EQ(node_at(server(1))->svc.core.counters.requests, 0);
}

static void test_nothing_but_parts(void)
{
    node_t      *node = node_at(server(0));
    uint8_t      data[CHUNK];
    SKY_Packet_t pkt;
    uint64_t     next_us;

    open_filled(PERIOD_MS, false);
    restart(server(0));
    fx_put(&block, 0, data, &pkt);
    fx_part(&pkt, 0, CHUNK / 2);
    node_serve(node, &pkt);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    node_pull(node);
    CHECK_EQ(fleet_count, 0);
    CHECK_EQ(node->svc.scrub.state, SKY_SCRUB_IDLE);
    CHECK_EQ(node->svc.scrub.next_us, now_us + PERIOD_US + 1);
}

static void test_many_blocks(void)
{
    uint64_t next_us;
    node_t  *node = node_at(server(0));

    open_filled(1, false);
    for (uint32_t number = 0; number < 40; ++number)
    {
        const fx_block_t one = a_block(256u * number, 1); /* its key begins with 0, so it belongs to server 0 */

        sky_put(server(0), &one, 0);
    }
    now_us += PERIOD_US;
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    node_pull(node);
    fleet_count = 0;
    CHECK(next_us >= now_us + 10000); /* however short the period is */
    CHECK_EQ(node->svc.scrub.rest_us, now_us + 10000);
}

/* A store that held one block at the first look fills: the next look comes as soon as that many blocks need, not a period later. */
static void test_a_store_that_fills_is_looked_at(void)
{
    uint64_t next_us;
    node_t  *node = node_at(server(1)); /* which holds nothing yet */

    open_filled(PERIOD_MS, false);
    restart(server(1));
    const fx_block_t first = a_block(99, 2);

    sky_put(server(1), &first, 1);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    const uint64_t looked_us = now_us;

    CHECK_EQ(node->svc.scrub.look_us, looked_us);
    CHECK_EQ(node->svc.scrub.rest_us, looked_us + PERIOD_US + 1);
    for (uint32_t number = 100; number < 119; ++number)
    {
        const fx_block_t one = a_block(number, 2);

        sky_put(server(1), &one, 1);
    }
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK_EQ(node->svc.scrub.rest_us, looked_us + PERIOD_US / 20 + 1);
    CHECK(next_us <= looked_us + PERIOD_US / 20 + 1);

    now_us = looked_us + PERIOD_US / 20 + 1;
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK_EQ(node->svc.scrub.look_us, now_us);

    /* Not later than it was to be, if the period has become longer meanwhile. */
    const fx_block_t last    = a_block(120, 2);
    const uint64_t   rest_us = node->svc.scrub.rest_us;

    node->svc.core.cfg.scrub_period_ms = 10u * PERIOD_MS;
    sky_put(server(1), &last, 1);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK_EQ(node->svc.scrub.rest_us, rest_us);
    node_pull(node);
    fleet_count = 0;
}

/* An answer that is waited for has its time, however many blocks come meanwhile. */
static void test_a_question_has_its_time_while_the_store_fills(void)
{
    uint64_t next_us;
    node_t  *node = node_at(server(0));

    open_filled(PERIOD_MS, false);
    now_us = node->svc.scrub.rest_us;
    for (uint32_t i = 0; i < 4u && node->svc.scrub.state != SKY_SCRUB_ASK; ++i)
    {
        now_us = node->svc.scrub.rest_us > now_us ? node->svc.scrub.rest_us : now_us;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
    }
    for (uint32_t asked = 0; asked < 2u; ++asked)
    {
        const uint64_t late_us = node->svc.scrub.next_us;
        const uint64_t rest_us = node->svc.scrub.rest_us;

        CHECK_EQ(node->svc.scrub.state, asked == 0u ? SKY_SCRUB_ASK : SKY_SCRUB_ASKED);
        node->svc.scrub.blocks = 0; /* as if it had held one block at the look */
        node->svc.scrub.rest_us += 1u;
        node->svc.scrub.next_us += 1u;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        CHECK_EQ(node->svc.scrub.next_us, late_us + 1u);
        CHECK_EQ(node->svc.scrub.rest_us, rest_us);
        node_pull(node); /* the question goes */
        fleet_count = 0;
    }
}

int main(void)
{
    RUN(test_whole_blocks_stay);
    RUN(test_off);
    RUN(test_a_lost_share_takes_the_block);
    RUN(test_a_lost_share_leaves_a_block_with_parity);
    RUN(test_without_gossip_it_takes_longer);
    RUN(test_a_share_with_a_gap);
    RUN(test_silence_says_nothing);
    RUN(test_a_put_in_between);
    RUN(test_a_share_that_came_back);
    RUN(test_later_epochs_are_left_alone);
    RUN(test_a_new_row_begins_anew);
    RUN(test_what_belongs_elsewhere_is_left_alone);
    RUN(test_a_moving_window);
    RUN(test_what_is_prefetched);
    RUN(test_blocks_of_one_share);
    RUN(test_nothing_but_parts);
    RUN(test_many_blocks);
    RUN(test_a_store_that_fills_is_looked_at);
    RUN(test_a_question_has_its_time_while_the_store_fills);
    sky_close();
    return CHECK_RESULT();
}
