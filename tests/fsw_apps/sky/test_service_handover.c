/**
 * @file
 * sky_service_handover.c: chunks follow the window of the schedule, and whatever the network does, none is ever nowhere.
 */
#include "turning_rig.h"

static void test_follows_the_window(void)
{
    const fx_block_t *block;
    uint32_t          left = 0;

    open_constellation(1, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    step_to(3, 3, 2);
    follow(SKY_LAYOUT_ROTATION, 6, 3);
    CHECK_EQ(stat(&nodes[0], SKY_STATS_KVC_ROWS), 3);
    block = put_block(20, 1, 0);
    run_for(1000000);
    CHECK(is_at_home(block, 1));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK_EQ(stat(&nodes[i], SKY_STATS_KVC_ROW), 1);
        CHECK(nodes[i].next_us <= START_US + ROW_US); /* servers ask before whether all has arrived */
    }
    run_for(ROW_US);
    CHECK_EQ(stat(&nodes[0], SKY_STATS_KVC_ROW), 2);
    CHECK(is_at_home(block, 2));
    run_for(ROW_US);
    CHECK(is_at_home(block, 3));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        left += (uint32_t)stat(&nodes[i], SKY_STATS_KVC_HANDOVERS);
        CHECK(nodes[i].store.counters.blocks > 0 || nodes[i].next_us == UINT64_MAX); /* the last row holds for ever */
    }
    CHECK(left >= 2);
}

/* Where step and window are longer than the torus: nobody is outside, and yet almost everything moves. */
static void test_a_window_that_meets_itself(void)
{
    const fx_block_t *block;

    open_constellation(2, 0);
    step_to(1, 2, 3);
    step_to(2, 4, 3);
    step_to(3, 6, 4);
    follow(SKY_LAYOUT_ROTATION_HOP, 9, 3);
    block = put_block(40, 1, 0);
    run_for(ROW_US + 5000000);
    CHECK(is_at_home(block, 2));
    run_for(ROW_US);
    CHECK(is_at_home(block, 3));
}

static void test_what_comes_late(void)
{
    const fx_block_t *block, *wanderer;

    open_constellation(3, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 5);
    follow(SKY_LAYOUT_ROTATION, 4, 2);
    block = put_block(8, 1, 0);
    run_for(ROW_US + 5000000);
    CHECK(is_at_home(block, 2));
    wanderer = put_block(8, 1, 0); /* by a host that has not noticed */
    CHECK(!is_at_home(wanderer, 2));
    run_for(SKY_SERVICE_HANDOVER_LOOK_US + 1000000);
    CHECK(is_at_home(wanderer, 2));
    /* Somebody who knows that nothing is where it should be is not asked twice. */
    put_at(home_of(wanderer, 1, 0), wanderer, 0, 0);
    put_at(home_of(wanderer, 1, 0), wanderer, 4, 0);
    run_for(SKY_SERVICE_HANDOVER_LOOK_US + 1000000);
    CHECK(is_at_home(wanderer, 2));
    CHECK_EQ(node_at(home_of(wanderer, 1, 0))->store.counters.blocks, 0);
}

static void test_target_that_is_silent(void)
{
    const fx_block_t *block;
    uint64_t          asked_us;

    open_constellation(4, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 1, 2);
    block              = put_block(8, 1, 0);
    server(2, 0)->deaf = true;
    run_for(ROW_US + 100000);
    CHECK(handover_of(server(1, 0))->active);
    run_for(15000000);
    CHECK(is_at_home(block, 1));
    run_for(100000000); /* looked again and again, less and less often */
    CHECK_EQ(server(1, 0)->svc.handover.pause_us, SKY_SERVICE_HANDOVER_MAX_US);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVERS), 1);
    server(2, 0)->deaf = false;
    asked_us           = now_us;
    while (!is_at_home(block, 2))
    {
        step();
        CHECK(now_us - asked_us < SKY_SERVICE_HANDOVER_MAX_US + 5000000u);
    }
}

/* Chunks of two servers at one satellite, one of whose homes is deaf: the others do not wait for it. */
static void test_one_silent_target_of_two(void)
{
    const SKY_Addr_t  host = {4, 1};
    const fx_block_t *block;

    open_constellation(5, 0);
    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, 2, 1);
    block = put_block(2, 1, 0);
    run_for(1000000);
    server(1, 0)->deaf = true;
    SKY_Store_Clear(&server(1, 0)->store);
    SKY_Store_Clear(&server(1, 1)->store);
    put_at(host, block, 0, 0);
    put_at(host, block, 1, 0);
    run_for(40000000);
    CHECK(sat_holds(server(1, 1), block, 1) && sat_holds(node_at(host), block, 0) && !sat_holds(node_at(host), block, 1));
    server(1, 0)->deaf = false;
    run_for(40000000);
    CHECK(is_at_home(block, 1));
}

static void test_window_moves_on_meanwhile(void)
{
    const fx_block_t *block;

    open_constellation(6, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    step_to(3, 2, 1);
    step_to(4, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 1, 4);
    block              = put_block(20, 1, 0);
    server(2, 0)->deaf = true;
    run_for(ROW_US + 5000000);
    CHECK(SKY_Addr_Equal(handover_of(server(1, 0))->target, SKY_Schedule_Server(&schedule, 2, 0)));
    run_for(6000000); /* sooner than the silence would end it */
    CHECK(is_at_home(block, 3));
    /* A row that changes nothing for it lets a handover go on. */
    rows[3] = rows[2];
    step_to(4, 2, 1);
    open_constellation(6, 0);
    follow(SKY_LAYOUT_ROTATION, 1, 4);
    block              = put_block(20, 1, 0);
    server(3, 0)->deaf = true;
    run_for(3u * ROW_US - 1000000u);
    CHECK(handover_of(server(2, 0))->active);
    CHECK_EQ(handover_of(server(2, 0))->row, 3);
    run_for(1100000);
    CHECK(handover_of(server(2, 0))->active);
    CHECK_EQ(handover_of(server(2, 0))->row, 4);
    server(3, 0)->deaf = false;
    run_for(20000000);
    CHECK(is_at_home(block, 4));
}

/* A job goes on into a row that begins: until it ends nobody looks, so all that is held counts as left. */
static void test_a_row_begins_during_a_job(void)
{
    fx_block_t early = {50, 0, 1, CHUNK_BYTES, CHUNK_BYTES};
    fx_block_t waits = {51, 0, 1, CHUNK_BYTES, CHUNK_BYTES}; /* for a row that is unknown */

    open_constellation(12, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    step_to(3, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 1, 3);
    (void)put_block(3, 1, 0);
    server(2, 0)->deaf = true;
    run_for(2u * ROW_US - 1000000u);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVER_LEFT), 3);
    put_at(SKY_Schedule_Server(&schedule, 1, 0), &waits, 0, 9);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVER_LEFT), 3);
    put_at(SKY_Schedule_Server(&schedule, 1, 0), &early, 0, 3); /* by a host that lets it stand in */
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVER_LEFT), 4);
    run_for(1100000);
    CHECK(handover_of(server(1, 0))->active);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_ROW), 3);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVER_LEFT), 5);
    CHECK_EQ(SKY_Service_HandoverLeft(&server(1, 0)->svc, node_clock(server(1, 0))), 5);
    server(2, 0)->deaf = false;
    run_for(20000000);
    CHECK_EQ(stat(server(1, 0), SKY_STATS_KVC_HANDOVER_LEFT), 0);
    CHECK(sat_holds(server(3, 0), &early, 0));
    CHECK(sat_holds(server(1, 0), &waits, 0));
}

static void test_requests_do_not_lock_it_out(void)
{
    fx_block_t        some = {50, 0, 1, 100, 100};
    const fx_block_t *block;

    open_constellation(9, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 1, 2);
    block          = put_block(4, 1, 0);
    nodes[19].deaf = true;
    for (; some.number < 50 + SKY_SERVICE_TENANT_MIGRATIONS; ++some.number)
    {
        put_at(SKY_Schedule_Server(&schedule, 1, 0), &some, 0, 9);
        CHECK_EQ(migrate(SKY_Schedule_Server(&schedule, 1, 0), &some, (SKY_Addr_t){4, 5}, 9, 60000), SKY_STATUS_OK);
    }
    CHECK_EQ(migrate(SKY_Schedule_Server(&schedule, 1, 0), block, (SKY_Addr_t){4, 5}, 0, 0), SKY_STATUS_BUSY);
    run_for(ROW_US + 1000000);
    CHECK(is_at_home(block, 2));
}

static void test_schedules_come_and_go(void)
{
    SKY_Torus_t       torus;
    SKY_Schedule_t    strange;
    const fx_block_t *block;

    open_constellation(10, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    CHECK(SKY_Torus_Init(&torus, PLANES, SLOTS + 1u, false));
    CHECK(SKY_Schedule_Init(&strange, &torus, SKY_LAYOUT_ROTATION, 4, rows, 2, 0));
    CHECK(!SKY_Service_SetSchedule(&nodes[0].svc, &strange));
    CHECK(SKY_Torus_Init(&torus, PLANES + 1u, SLOTS, false));
    CHECK(SKY_Schedule_Init(&strange, &torus, SKY_LAYOUT_ROTATION, 4, rows, 2, 0));
    CHECK(!SKY_Service_SetSchedule(&nodes[0].svc, &strange));
    CHECK_EQ(stat(&nodes[0], SKY_STATS_KVC_ROWS), 0);
    CHECK_EQ(stat(&nodes[0], SKY_STATS_KVC_ROW), SKY_SCHEDULE_NONE);

    follow(SKY_LAYOUT_HOP, 4, 2);
    block = put_block(8, 1, 0);
    put_at((SKY_Addr_t){4, 5}, block, 1, 0);
    run_for(ROW_US + 5000000);
    CHECK(sat_holds(&nodes[19], block, 1)); /* nothing of it ever moves */
    CHECK_EQ(nodes[19].next_us, UINT64_MAX);
    CHECK_EQ(stat(&nodes[19], SKY_STATS_KVC_HANDOVER_LEFT), 0);

    open_constellation(10, 0);
    follow(SKY_LAYOUT_ROTATION, 1, 2);
    block              = put_block(8, 1, 0);
    server(2, 0)->deaf = true;
    run_for(ROW_US + 1000000);
    CHECK(handover_of(server(1, 0))->active);
    CHECK(SKY_Service_SetSchedule(&server(1, 0)->svc, NULL));
    CHECK(!handover_of(server(1, 0))->active);
    server(2, 0)->deaf = false;
    run_for(20000000);
    CHECK(is_at_home(block, 1));
}

/* The home has the block in another version: the stray would be refused again and again. */
static void test_a_stray_of_another_version(void)
{
    const fx_block_t at_home = {60, 0, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const fx_block_t longer  = {60, 1, 100, CHUNK_BYTES, 100u * CHUNK_BYTES}; /* more than a lane */
    const fx_block_t changed = {60, 1, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const SKY_Addr_t host    = {4, 1};

    for (uint32_t kind = 0; kind < 2; ++kind)
    {
        const fx_block_t *stray = kind == 0 ? &longer : &changed;

        open_constellation(14, 0);
        step_to(1, 2, 3);
        follow(SKY_LAYOUT_ROTATION, 1, 1);
        CHECK(server(1, 0) != node_at(host));
        put_at(SKY_Schedule_Server(&schedule, 1, 0), &at_home, 0, 0);
        for (uint32_t id = 0; id < stray->chunk_total; ++id)
        {
            put_at(host, stray, id, 0);
        }
        run_for(2u * SKY_SERVICE_HANDOVER_LOOK_US);
        CHECK(sat_holds(server(1, 0), &at_home, 0));
        CHECK_EQ(node_at(host)->store.counters.blocks, 0);
        CHECK_EQ(stat(node_at(host), SKY_STATS_KVC_HANDOVER_LEFT), 0);
        CHECK_EQ(stat(node_at(host), SKY_STATS_KVC_MIGRATED_OUT), 0);
    }
}

/* A handover is late: the block was put anew at its home meanwhile. The older one goes, whatever is asked first. */
static void test_a_late_stray_of_an_older_version(void)
{
    const fx_block_t at_home = {60, 0, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const fx_block_t stray   = {60, 1, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const SKY_Addr_t host    = {4, 1};

    for (uint64_t version = 6; version <= 8; version += 2)
    {
        uint8_t      data[CHUNK_BYTES];
        SKY_Packet_t pkt;

        open_constellation(14, 0);
        step_to(1, 2, 3);
        follow(SKY_LAYOUT_ROTATION, 1, 1);
        for (uint32_t id = 0; id < 4; ++id)
        {
            fx_put(&at_home, id, data, &pkt);
            pkt.block_version = 7;
            CHECK_EQ(ask(SKY_Schedule_Server(&schedule, 1, 0), &pkt), SKY_STATUS_OK);
            fx_put(&stray, id, data, &pkt);
            pkt.block_version = version;
            CHECK_EQ(ask(host, &pkt), SKY_STATUS_OK);
        }
        run_for(2u * SKY_SERVICE_HANDOVER_LOOK_US);
        for (uint32_t id = 0; id < 4; ++id)
        {
            uint8_t         key[SKY_KEY_BYTES];
            SKY_ChunkView_t view;

            fx_key(key, 60);
            fx_fill(version < 7 ? &at_home : &stray, id, data); /* the newer one */
            CHECK_EQ(SKY_Store_Peek(&server(1, 0)->store, SKY_Store_Find(&server(1, 0)->store, 0, key), id, &view),
                     SKY_STATUS_OK);
            CHECK(memcmp(view.data, data, CHUNK_BYTES) == 0);
        }
        CHECK_EQ(node_at(host)->store.counters.blocks, 0);
        CHECK_EQ(stat(node_at(host), SKY_STATS_KVC_HANDOVER_LEFT), 0);
    }
}

/* A tenant has no room at the home of its chunks: the block is evicted on its way. If its chunks stayed there would be something left
 * for ever. */
static void test_what_has_no_room_at_home_goes(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 0}, .tenants = {{9, 0, 100}}};
    const fx_block_t          stray  = {61, 0, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const SKY_Addr_t          host   = {4, 1};

    open_constellation(16, 0);
    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, 1, 1);
    CHECK(server(1, 0) != node_at(host));
    CHECK(SKY_Store_SetQuotas(&server(1, 0)->store, &quotas));
    for (uint32_t id = 0; id < stray.chunk_total; ++id)
    {
        put_at(host, &stray, id, 0);
    }
    run_for(2u * SKY_SERVICE_HANDOVER_LOOK_US);
    CHECK(server(1, 0)->store.tenants[SKY_STORE_OTHERS].refused > 0);
    CHECK_EQ(server(1, 0)->store.counters.blocks, 0);
    CHECK_EQ(node_at(host)->store.counters.blocks, 0);
    CHECK_EQ(stat(node_at(host), SKY_STATS_KVC_HANDOVER_LEFT), 0);
    CHECK_EQ(stat(node_at(host), SKY_STATS_KVC_MIGRATED_OUT), 0);
}

/* Only the home can say what it holds. */
static void test_a_stray_stays_at_the_word_of_others(void)
{
    const fx_block_t  stray = {60, 1, 4, CHUNK_BYTES, 4u * CHUNK_BYTES};
    const SKY_Addr_t  host  = {4, 1};
    const SKY_Lane_t *lane  = &node_at(host)->svc.migrations.lanes[SKY_SERVICE_MIGRATIONS * SKY_SERVICE_REQUEST_LANES];
    SKY_Packet_t      pkt;

    open_constellation(15, 0);
    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, 1, 1);
    server(1, 0)->deaf = true;
    put_at(host, &stray, 0, 0);
    run_for(SKY_SERVICE_HANDOVER_LOOK_US + 100000u);
    CHECK(handover_of(node_at(host))->active && lane->active);
    (void)memset(&pkt, 0, sizeof(pkt));
    (void)memcpy(pkt.key, lane->push.cfg.key, SKY_KEY_BYTES);
    pkt.op         = SKY_OP_PUT;
    pkt.src        = (SKY_Addr_t){1, 1};
    pkt.status     = SKY_STATUS_BAD_KEY;
    pkt.request_id = lane->push.cfg.request_id;
    CHECK(server(1, 0) != node_at(pkt.src));
    node_serve(node_at(host), &pkt);
    CHECK(!lane->active);
    CHECK(sat_holds(node_at(host), &stray, 0));
}

/* Whose turn it is among the servers of one schedule says nothing about another, which may have fewer of them. */
static void test_a_schedule_with_fewer_servers(void)
{
    const fx_block_t stray = {256, 0, 20, CHUNK_BYTES, 20u * CHUNK_BYTES}; /* chunk i belongs to server i */
    node_t          *holder;

    open_constellation(13, 0);
    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, NODES, 1);
    holder = server(1, 0);
    put_at(holder->svc.core.cfg.self, &stray, NODES - 1u, 0);
    run_for(SKY_SERVICE_HANDOVER_LOOK_US + 1000000u);
    CHECK(sat_holds(server(1, NODES - 1u), &stray, NODES - 1u));
    follow(SKY_LAYOUT_ROTATION, 10, 1);
    CHECK(holder != server(1, 5));
    put_at(holder->svc.core.cfg.self, &stray, 5, 0);
    run_for(3u * SKY_SERVICE_HANDOVER_LOOK_US / 2u); /* the first look finds it */
    CHECK(sat_holds(server(1, 5), &stray, 5));
    CHECK(!sat_holds(holder, &stray, 5));
}

/* ---- property ------------------------------------------------------------------------------------------------------ */

/* The row that was looked at last is none of the new schedule. */
static void test_a_chunk_comes_before_a_shorter_schedule_is_looked_at(void)
{
    const fx_block_t *block;
    uint8_t           data[CHUNK_BYTES];
    SKY_Packet_t      pkt;

    open_constellation(11, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 4, 2);
    block = put_block(4, 1, 0);
    run_for(ROW_US + 1000000);
    CHECK(is_at_home(block, 2));
    fx_put(block, 0, data, &pkt);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, 4, rows, 1, START_US));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, &schedule));
        pkt.epoch = i % 2u;
        CHECK_EQ(ask((SKY_Addr_t){(uint16_t)(i / SLOTS + 1u), (uint16_t)(i % SLOTS + 1u)}, &pkt), SKY_STATUS_OK);
    }
    run_for(ROW_US);
    CHECK(is_at_home(block, 1));
}

static int32_t random_step(uint32_t size)
{
    const uint32_t kind = fx_below(&random_state, 4);

    return kind == 0 ? (int32_t)fx_below(&random_state, size / 2u * 2u + 1u) - (int32_t)(size / 2u) : kind == 1 ? -1 : 0;
}

static void random_rows(uint32_t count)
{
    rows[0].time_ms      = 0;
    rows[0].centre.plane = 1 + (int32_t)fx_below(&random_state, PLANES);
    rows[0].centre.slot  = 1 + (int32_t)fx_below(&random_state, SLOTS);
    for (uint32_t i = 1; i < count; ++i)
    {
        rows[i].time_ms      = rows[i - 1].time_ms + 20u + fx_below(&random_state, 2000);
        rows[i].centre.plane = rows[i - 1].centre.plane + random_step(PLANES);
        rows[i].centre.slot  = rows[i - 1].centre.slot - random_step(SLOTS);
    }
}

static void random_prefetch(uint32_t row)
{
    const fx_block_t *block = &blocks[fx_below(&random_state, block_count)];
    const uint32_t    later = row + fx_below(&random_state, schedule.count - row + 1u);

    for (uint32_t i = 0; i < schedule.placement.servers; ++i)
    {
        const SKY_Addr_t from = SKY_Schedule_Server(&schedule, row, i);
        const SKY_Addr_t to   = SKY_Schedule_Server(&schedule, later, i);

        if (!SKY_Addr_Equal(from, to))
        {
            (void)migrate(from, block, to, later, 3000); /* there may be nothing, or no place */
        }
    }
}

static bool all_at_home(uint32_t row)
{
    bool good = true;

    for (uint32_t i = 0; i < block_count && good; ++i)
    {
        good = is_at_home(&blocks[i], row);
    }
    return good;
}

static void settle(uint32_t row)
{
    loss_percent = 0;
    for (uint32_t looks = 0; looks < 40 && !all_at_home(row); ++looks)
    {
        run_for(1000000);
    }
    CHECK(all_at_home(row));
    run_for(2000000);
    CHECK(all_at_home(row));
}

static void random_life(uint64_t seed)
{
    static const SKY_LayoutId_t layouts[] = {SKY_LAYOUT_ROTATION, SKY_LAYOUT_ROTATION_HOP, SKY_LAYOUT_ALL_PLANES};

    const uint32_t count   = 2u + (uint32_t)(seed % 12u);
    const uint32_t servers = 1u + (uint32_t)(seed * 7u % 12u);

    open_constellation(seed, seed % 3 == 0 ? 300000 : 0);
    random_rows(count);
    follow(layouts[seed % 3u], servers, count);
    loss_percent   = (uint32_t)(seed % 5u) * 4u;
    repeat_percent = seed % 2 == 0 ? 5 : 0;
    jitter_us      = (uint32_t)(seed % 4u) * 10000u;
    while (SKY_Schedule_RowAt(&schedule, now_us) < count)
    {
        const uint32_t row = SKY_Schedule_RowAt(&schedule, now_us);

        if (block_count < 12 && fx_below(&random_state, 100) == 0)
        {
            /* A host may be a row behind. */
            (void)put_block(1u + fx_below(&random_state, 16), row > 1 ? row - fx_below(&random_state, 2) : row, 0);
        }
        if (block_count > 0 && fx_below(&random_state, 200) == 0)
        {
            random_prefetch(row);
        }
        step();
    }
    settle(count);
}

static void test_never_nowhere(void)
{
    for (uint64_t seed = 1; seed <= 60; ++seed)
    {
        random_life(seed);
    }
}

/* The window goes to and fro faster than answers come, and the clocks differ: satellites hand the same chunks to each other. */
static void test_to_and_fro(void)
{
    for (uint64_t seed = 1; seed <= 60; ++seed)
    {
        open_constellation(seed, 100000);
        for (uint32_t i = 0; i < ROWS; ++i)
        {
            step_to(i + 1u, 2, i % 2 == 0 ? 3 : 2);
            rows[i].time_ms = i == 0 ? 0 : rows[i - 1].time_ms + 20u + fx_below(&random_state, 150);
        }
        follow(SKY_LAYOUT_ROTATION, 2, ROWS);
        loss_percent   = (uint32_t)(seed % 3u) * 10u;
        repeat_percent = 10;
        jitter_us      = (uint32_t)(seed % 4u) * 20000u;
        for (uint32_t i = 0; i < 4; ++i)
        {
            (void)put_block(1u + fx_below(&random_state, 16), 1, 0);
        }
        run_for((uint64_t)rows[ROWS - 1].time_ms * 1000u + 200000u);
        settle(ROWS);
    }
}

int main(void)
{
    RUN(test_follows_the_window);
    RUN(test_a_window_that_meets_itself);
    RUN(test_what_comes_late);
    RUN(test_target_that_is_silent);
    RUN(test_one_silent_target_of_two);
    RUN(test_window_moves_on_meanwhile);
    RUN(test_a_row_begins_during_a_job);
    RUN(test_requests_do_not_lock_it_out);
    RUN(test_schedules_come_and_go);
    RUN(test_a_stray_of_another_version);
    RUN(test_a_late_stray_of_an_older_version);
    RUN(test_what_has_no_room_at_home_goes);
    RUN(test_a_stray_stays_at_the_word_of_others);
    RUN(test_a_schedule_with_fewer_servers);
    RUN(test_a_chunk_comes_before_a_shorter_schedule_is_looked_at);
    RUN(test_never_nowhere);
    RUN(test_to_and_fro);
    return CHECK_RESULT();
}
