/**
 * @file
 * sky_service_scrub.c: broken blocks go, and nothing else does.
 */
#include "constellation_rig.h"

#define ROOM      64u
#define SERVERS   9u
#define PERIOD_MS 2000u
#define PERIOD_US (PERIOD_MS * 1000u)
#define STEP_US   10000u

static const SKY_ScheduleRow_t rows[] = {{0, {3, 4}}, {100000, {3, 4}}, {101000, {3, 4}}};

static SKY_Schedule_t schedule;
static fx_block_t     block, other;

static void follow(node_t *node)
{
    CHECK(SKY_Service_SetSchedule(&node->svc, &schedule));
}

/* All satellites hold their shares of two blocks, whose PUTs are over. */
static void open_filled(uint32_t period_ms, bool gossip)
{
    block           = a_block(1, 20);
    other           = a_block(2, 4); /* on the first four servers */
    scrub_period_ms = period_ms;
    sky_open(ROOM, gossip);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, rows, 3, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        follow(&nodes[i]);
    }
    for (uint32_t i = 0; i < SERVERS; ++i)
    {
        CHECK(SKY_Addr_Equal(SKY_Schedule_Server(&schedule, 1, i), server(i)));
    }
    sky_put_all(&block);
    sky_put_all(&other);
    CHECK_EQ(held(&block), 20);
    CHECK_EQ(held(&other), 4);
    sky_run(LIFE_MS * 1000u, STEP_US);
}

/* It comes back with nothing. */
static void restart(SKY_Addr_t addr)
{
    node_t *node = node_at(addr);

    node_open(node, addr, ROOM, node->svc.cfg.gossip);
    follow(node);
}

static uint64_t scrubbed(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.counters.scrubbed;
    }
    return count;
}

static uint64_t unsolicited(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.counters.unsolicited;
    }
    return count;
}

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
        const uint64_t requests = node_at(server(i))->svc.counters.requests;

        CHECK(requests >= 9 && requests <= (i < 4 ? 24 : 14)); /* one satellite asks about each share, once in a period */
    }
    CHECK_EQ(node_at((SKY_Addr_t){1, 1})->svc.counters.requests, 0);
}

static void test_off(void)
{
    uint64_t next_us;

    open_filled(0, true);
    restart(server(8));
    sky_run(10u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 18);
    SKY_Service_Poll(&node_at(server(0))->svc, now_us, &next_us);
    CHECK_EQ(next_us, SKY_Schedule_EndUs(&schedule, 1)); /* the handover looks then */

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
    CHECK(SKY_Store_Drop(&node_at(addr)->store, 0, key, id));
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
    node_at(server(5))->svc.cfg.scrub_period_ms = 0; /* only the other one looks */
    drop(server(5), &block, 14);
    sky_run(4u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&block), 0);

    open_filled(PERIOD_MS, true);
    node_at(server(4))->svc.cfg.scrub_period_ms = 0;
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
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.cfg.torus, SKY_LAYOUT_ROTATION, SERVERS, moving, 8, now_us));
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
    requests = node_at(server(0))->svc.counters.requests;
    sky_run(6u * PERIOD_US, STEP_US);
    CHECK_EQ(held(&single), 1);
    CHECK_EQ(node_at(server(0))->svc.counters.requests, requests); /* there is nobody to ask */
    CHECK_EQ(node_at(server(1))->svc.counters.requests, 0);
}

/* ---- answers, one by one ------------------------------------------------------------------------------------------ */

static SKY_Packet_t question;
static uint8_t      question_bytes[600];

/* Let one satellite look until it asks about the block; the question is caught. Nobody else does anything. */
static node_t *catch_question(void)
{
    node_t  *node = node_at(server(4));
    uint64_t next_us;

    for (uint32_t i = 0; i < 1000; ++i)
    {
        fleet_count = 0;
        now_us += STEP_US;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        node_pull(node);
        if (fleet_count == 1)
        {
            const flying_t *flying = &fleet[fleet_first];

            (void)memcpy(question_bytes, flying->bytes, flying->len);
            CHECK_EQ(SKY_Packet_Decode(question_bytes, flying->len, &question), SKY_STATUS_OK);
            CHECK(question.is_request && question.op == SKY_OP_HAS && SKY_Addr_Equal(question.dst, server(5)));
            break;
        }
    }
    CHECK_EQ(fleet_count, 1);
    fleet_count = 0;
    return node;
}

static uint64_t suspected(void)
{
    const node_t   *node = node_at(server(4));
    SKY_BlockInfo_t info = {.suspect_us = 0};
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, block.number);
    (void)SKY_Store_Block(&node->store, SKY_Store_Find(&node->store, 0, key), &info);
    return info.suspect_us;
}

static void answer(SKY_Status_t status, SKY_Packet_t *pkt)
{
    SKY_Packet_Reply(&question, question.dst, status, pkt);
    pkt->length = 0;
}

static void test_only_the_answer_counts(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    ++pkt.request_id;
    node_serve(node, &pkt);
    --pkt.request_id;
    ++pkt.tenant;
    node_serve(node, &pkt);
    --pkt.tenant;
    ++pkt.key[0];
    node_serve(node, &pkt);
    --pkt.key[0];
    CHECK_EQ(node->svc.counters.unsolicited, 3);
    CHECK_EQ(suspected(), 0);
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), now_us);
    node_serve(node, &pkt); /* once */
    CHECK_EQ(node->svc.counters.unsolicited, 4);

    node = catch_question();
    answer(SKY_STATUS_OK, &pkt); /* whole */
    pkt.payload = question.payload;
    pkt.length  = question.length;
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);
    CHECK_EQ(node->svc.counters.unsolicited, 4);
}

static void test_answers_that_say_nothing(void)
{
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;
    node_t        *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    answer(SKY_STATUS_UNREACHABLE, &pkt); /* from the way */
    pkt.src = server(3);
    node_serve(node, &pkt);
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    pkt.op = SKY_OP_GET;
    node_serve(node, &pkt);
    node = catch_question();
    answer(SKY_STATUS_OK, &pkt); /* not even a set */
    node_serve(node, &pkt);
    node = catch_question();
    CHECK_EQ(SKY_ChunkSet_Decode(&question, &set), SKY_STATUS_OK);
    (void)memset(set.map, 0, sizeof(set.map));
    answer(SKY_STATUS_OK, &pkt); /* it knows the block, and denies every chunk: it is moving them */
    pkt.payload = payload;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    now_us = schedule.epoch_us + 100000000u; /* of the row before */
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    node = catch_question();
    sky_put(server(4), &block, 4);
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    now_us += PERIOD_US;
    node = catch_question();
    CHECK(SKY_Store_Purge(&node->store, 0, question.key) > 0);
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.counters.unsolicited, 0);
    CHECK_EQ(node->svc.counters.scrubbed, 0);
}

static void test_two_answers_are_a_period_apart(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, true);
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    node->svc.cfg.scrub_period_ms = 10u * PERIOD_MS; /* but the next look is due in the old one */
    node                          = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(held_at(server(4), &block), 2);
    node->svc.cfg.scrub_period_ms = PERIOD_MS;
    now_us += 10u * PERIOD_US;
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    SKY_Service_Begin(&node->svc, now_us, &pkt);
    CHECK_EQ(held_at(server(4), &block), 0);
    CHECK_EQ(node->svc.counters.scrubbed, 2);
    node_pull(node);
    CHECK_EQ(fleet_count, 4); /* and all shall know */
    fleet_count = 0;
}

static void test_an_answer_after_the_schedule_has_gone(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    CHECK(SKY_Service_SetSchedule(&node->svc, NULL));
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.counters.unsolicited, 1);
    CHECK_EQ(suspected(), 0);
}

/* A share with more chunks than a question can name. */
static void test_large_shares(void)
{
    const fx_block_t large  = {9, 0, 2u * SKY_LIMIT_CHUNK_SET + 3u, 2, 2u * (2u * SKY_LIMIT_CHUNK_SET + 3u)};
    node_t          *node   = node_at(centre);
    SKY_Schedule_t   narrow = {.count = 0};
    SKY_ChunkSet_t   set;

    open_filled(PERIOD_MS, false);
    CHECK(SKY_Schedule_Init(&narrow, &node->svc.cfg.torus, SKY_LAYOUT_ROTATION, 2, rows, 1, now_us));
    const SKY_Addr_t first = SKY_Schedule_Server(&narrow, 1, 0);
    node                   = node_at(first);
    node_open(node, first, large.chunk_total, false);
    CHECK(SKY_Service_SetSchedule(&node->svc, &narrow));
    for (uint32_t id = 0; id < large.chunk_total; id += 2)
    {
        sky_put(first, &large, id);
    }
    now_us += PERIOD_US;
    for (uint32_t i = 0; i < 1000 && fleet_count == 0; ++i)
    {
        uint64_t next_us;

        now_us += STEP_US;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        node_pull(node);
    }
    CHECK_EQ(fleet_count, 1);
    CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &question), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Decode(&question, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), SKY_LIMIT_CHUNK_SET);
    CHECK_EQ(set.base, 1);
    CHECK_EQ(set.stride, 2);
    fleet_count = 0;
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
    for (uint32_t number = 100; number < 140; ++number)
    {
        const fx_block_t one = a_block(number, 1);

        sky_put(server(0), &one, 0);
    }
    now_us += PERIOD_US;
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    node_pull(node);
    fleet_count = 0;
    CHECK(next_us >= now_us + 10000); /* however short the period is */
    CHECK_EQ(node->svc.scrub.rest_us, now_us + 10000);
}

int main(void)
{
    RUN(test_whole_blocks_stay);
    RUN(test_off);
    RUN(test_a_lost_share_takes_the_block);
    RUN(test_without_gossip_it_takes_longer);
    RUN(test_a_share_with_a_gap);
    RUN(test_silence_says_nothing);
    RUN(test_a_put_in_between);
    RUN(test_a_share_that_came_back);
    RUN(test_later_epochs_are_left_alone);
    RUN(test_a_new_row_begins_anew);
    RUN(test_what_belongs_elsewhere_is_left_alone);
    RUN(test_a_moving_window);
    RUN(test_blocks_of_one_share);
    RUN(test_only_the_answer_counts);
    RUN(test_answers_that_say_nothing);
    RUN(test_two_answers_are_a_period_apart);
    RUN(test_an_answer_after_the_schedule_has_gone);
    RUN(test_large_shares);
    RUN(test_nothing_but_parts);
    RUN(test_many_blocks);
    sky_close();
    return CHECK_RESULT();
}
