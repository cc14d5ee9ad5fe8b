/**
 * @file
 * sky_service_arrivals.c: a satellite says that it is settled, and has caught up, once nobody owes it anything.
 */
#include "constellation_rig.h"

#define ROOM    64u
#define STEP_US 10000u
#define ROW_US  20000000u
#define ROWS    8u
#define BOTH    (SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP)

static const SKY_Addr_t away = {1, 1}; /* no server, and no stand-in */

static SKY_ScheduleRow_t rows[ROWS];
static SKY_Schedule_t    window, schedule;
static fx_block_t        block;

static void open_sky(uint32_t servers)
{
    block         = a_block(1, 9);
    stuck         = (SKY_Addr_t){0, 0};
    asks_arrivals = true;
    sky_open(ROOM, false);
    for (uint32_t i = 0; i < ROWS; ++i)
    {
        rows[i] = (SKY_ScheduleRow_t){i * (ROW_US / 1000u), {3, 4 - (int32_t)i}};
    }
    CHECK(SKY_Schedule_Init(&window, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, servers, rows, 1, now_us));
}

/* Satellites stand still. */
static void open_still(uint32_t servers)
{
    open_sky(servers);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetWindow(&nodes[i].svc, &window));
    }
}

/* The window moves on by a slot in each row. */
static void open_turning(void)
{
    open_sky(9);
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, 9, rows, ROWS, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, &schedule));
    }
}

static uint8_t word_of(SKY_Addr_t at)
{
    return node_at(at)->svc.core.word;
}

static SKY_Addr_t server_in(uint32_t row, uint32_t number)
{
    return SKY_Schedule_Server(&schedule, row, number);
}

static uint32_t settled(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.core.word == BOTH ? 1u : 0u;
    }
    return count;
}

static void put_for(SKY_Addr_t at, uint32_t id, SKY_Addr_t home)
{
    uint8_t      data[CHUNK];
    SKY_Packet_t pkt;

    fx_put(&block, id, data, &pkt);
    pkt.home = home;
    node_serve(node_at(at), &pkt);
}

/* Ask a satellite for any chunk of the block. @return its word; the answer's status, epoch and version come with it */
static SKY_Packet_t has_any(SKY_Addr_t at, uint8_t flags)
{
    SKY_Packet_t pkt;
    SKY_Out_t    out;

    (void)memset(&pkt, 0, sizeof(pkt));
    (void)memset(&out, 0, sizeof(out));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_KVC;
    pkt.op         = SKY_OP_HAS;
    pkt.flags      = flags;
    pkt.src        = (SKY_Addr_t){0, 77};
    pkt.dst        = at;
    fx_key(pkt.key, block.number);
    SKY_Service_Begin(&node_at(at)->svc, now_us, &pkt);
    CHECK_EQ(SKY_Service_Next(&node_at(at)->svc, now_us, &out), (flags & SKY_FLAG_ANY) != 0);
    return out.pkt;
}

static void test_all_settle_in_a_window(void)
{
    open_still(9);
    CHECK_EQ(settled(), 0);
    sky_run(STEP_US, STEP_US);
    CHECK_EQ(word_of(away), BOTH); /* nothing belongs there */
    CHECK_EQ(word_of(server(0)), 0);
    sky_run(10u * STEP_US, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK_EQ(node_at(server(0))->svc.arrivals.count, SKY_STANDINS_SPARES);
    CHECK_EQ(has_any(server(0), SKY_FLAG_ANY).word, BOTH);
    CHECK_EQ(has_any(server(0), SKY_FLAG_ANY).status, SKY_STATUS_NOT_FOUND);
    sky_run(60000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK(node_at(server(0))->svc.core.counters.requests < 5); /* only who stands in is asked */
}

/* Who gets a small value asks m + 1 homes for version and word, and they count it as used. */
static void test_a_use_is_answered_to_who_wants_to_know(void)
{
    uint64_t used;

    open_still(9);
    block = a_block(1, 1);
    put_for(server(0), 0, (SKY_Addr_t){0, 0});
    block = a_block(2, 1);
    put_for(server(0), 0, (SKY_Addr_t){0, 0});
    block = a_block(1, 1);
    used  = node_at(server(0))->store.uses;
    (void)has_any(server(0), SKY_FLAG_USE);
    CHECK_EQ(node_at(server(0))->store.uses, used + 1u);
    CHECK_EQ(has_any(server(0), SKY_FLAG_USE | SKY_FLAG_ANY).status, SKY_STATUS_OK);
    CHECK_EQ(has_any(server(0), SKY_FLAG_USE | SKY_FLAG_ANY).block_len, CHUNK);
    CHECK_EQ(has_any(server(1), SKY_FLAG_USE | SKY_FLAG_ANY).status, SKY_STATUS_NOT_FOUND);
}

static void test_nobody_knows_without_a_window(void)
{
    open_sky(9);
    sky_run(10000000, STEP_US);
    CHECK_EQ(word_of(server(0)), 0);
    CHECK_EQ(word_of(away), 0);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetWindow(&nodes[i].svc, &window));
    }
    sky_run(1000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK(SKY_Service_SetWindow(&node_at(away)->svc, NULL));
    sky_run(1000000, STEP_US);
    CHECK_EQ(word_of(away), 0);
}

/* Where all are servers, each asks all others; a satellite alone has nobody to ask. */
static void test_where_all_are_servers(void)
{
    SKY_Torus_t    alone;
    SKY_Schedule_t one;
    node_t        *node;
    uint64_t       next_us = 0;

    open_still(NODES);
    sky_run((NODES + 5u) * STEP_US, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK(node_at(away)->svc.arrivals.asks_all);
    CHECK_EQ(node_at(away)->svc.core.counters.requests, NODES - 1u);

    node = node_at((SKY_Addr_t){1, 1});
    CHECK(SKY_Torus_Init(&alone, 1, 1, false));
    node->svc.core.cfg.torus = alone;
    rows[0].centre           = (SKY_Cell_t){1, 1};
    CHECK(SKY_Schedule_Init(&one, &alone, SKY_LAYOUT_ROTATION, 1, rows, 1, now_us));
    CHECK(SKY_Service_SetWindow(&node->svc, &one));
    CHECK_EQ(word_of(away), 0);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK(next_us > now_us);
    CHECK_EQ(word_of(away), BOTH);
}

/* What stands in first is silent: nobody is settled until it answers, and it is asked ever more seldom. */
static void test_a_silent_source(void)
{
    SKY_Addr_t source;
    uint64_t   requests;

    open_still(9);
    sky_run(STEP_US, STEP_US);
    source = node_at(server(0))->svc.arrivals.sources[2];
    open_still(9);
    node_at(source)->deaf = true;
    sky_run(60000000, STEP_US);
    CHECK_EQ(settled(), NODES - 9u);
    for (uint32_t i = 0; i < 9; ++i)
    {
        CHECK_EQ(word_of(server(i)), 0);
    }
    requests = node_at(node_at(server(0))->svc.arrivals.sources[0])->svc.core.counters.requests;
    sky_run(60000000, STEP_US);
    CHECK(node_at(node_at(server(0))->svc.arrivals.sources[0])->svc.core.counters.requests - requests <= 9u * 5u);
    node_at(source)->deaf = false;
    sky_run(18000000, STEP_US);
    CHECK_EQ(settled(), NODES);
}

/* What is kept for a satellite is missing there, though it knows of no silence. */
static void test_what_is_owed(void)
{
    SKY_Addr_t source, home;

    open_still(9);
    home = home_of(&block, 4);
    sky_run(5000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    source = node_at(home)->svc.arrivals.sources[1];
    stuck  = source; /* what it hands over is lost */
    put_for(source, 4, home);
    sky_run(17000000, STEP_US);
    CHECK_EQ(word_of(home), 0);
    CHECK_EQ(settled(), NODES - 1u);
    stuck = (SKY_Addr_t){0, 0};
    sky_run(40000000, STEP_US);
    CHECK_EQ(held_at(home, &block), 1);
    CHECK_EQ(settled(), NODES);
}

/* A satellite that hears nobody has missed what was put meanwhile. */
static void test_who_was_cut_off(void)
{
    open_still(9);
    sky_run(5000000, STEP_US);
    CHECK_EQ(word_of(server(3)), BOTH);
    node_at(server(3))->deaf = true;
    sky_run(3000000, STEP_US);
    CHECK_EQ(word_of(server(3)), BOTH); /* as after a short silence */
    sky_run(6000000, STEP_US);
    CHECK_EQ(word_of(server(3)), 0);
    node_at(server(3))->deaf = false;
    sky_run(17000000, STEP_US);
    CHECK_EQ(word_of(server(3)), BOTH);
}

/* Sources that are dead say nothing of who is settled, as long as one answers. */
static void test_dead_sources_of_who_is_settled(void)
{
    open_still(9);
    sky_run(5000000, STEP_US);
    for (uint32_t i = 0; i < 3; ++i)
    {
        node_at(node_at(server(0))->svc.arrivals.sources[i])->deaf = true;
    }
    sky_run(60000000, STEP_US);
    CHECK_EQ(settled(), NODES);
}

/* An app gives a new schedule in two steps, without one in between. Those who were servers before may owe something in its first rows. */
static void test_servers_before_a_schedule(void)
{
    node_t *node;

    open_still(9);
    sky_run(1000000, STEP_US);
    rows[0].centre = (SKY_Cell_t){3, 6};
    CHECK(SKY_Schedule_Init(&schedule, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, 9, rows, 1, now_us));
    node = node_at(server_in(1, 4));
    CHECK(SKY_Service_SetSchedule(&node->svc, NULL));
    CHECK(SKY_Service_SetSchedule(&node->svc, &schedule));
    CHECK_EQ(node->svc.core.word, 0);
    sky_run(STEP_US, STEP_US);
    CHECK_EQ(node->svc.arrivals.before_count, 9);
    CHECK(SKY_Addr_Equal(node->svc.arrivals.before[0], server(0)));
    CHECK_EQ(node->svc.core.word, 0);
}

/* In each row the chunks of the one before have to come first. */
static void test_rows(void)
{
    SKY_Addr_t late;
    uint64_t   requests;

    open_turning();
    for (uint32_t id = 0; id < block.chunk_total; ++id)
    {
        uint8_t key[SKY_KEY_BYTES];

        fx_key(key, block.number);
        put_for(server_in(1, SKY_Spread_Server(key, block.chunk_total, 9, id)), id, (SKY_Addr_t){0, 0});
    }
    sky_run(5000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK_EQ(node_at(server_in(1, 0))->svc.arrivals.before_count, 0); /* nothing was where another schedule had it */
    sky_run(ROW_US - 5000000, STEP_US);
    CHECK_EQ(has_any(server_in(2, 0), SKY_FLAG_ANY).word & SKY_WORD_SETTLED, 0);
    sky_run(5000000, STEP_US);
    CHECK_EQ(settled(), NODES);

    sky_run(2u * ROW_US, STEP_US); /* row 4 */
    CHECK_EQ(settled(), NODES);
    CHECK(node_at(server_in(4, 0))->svc.arrivals.count > SKY_STANDINS_SPARES);
    CHECK(node_at(server_in(4, 0))->svc.arrivals.count <= SKY_SERVICE_SOURCES);

    /* A satellite keeps what belongs to the next row: that row's server waits for it, others do not. */
    for (uint32_t i = 0; i < 9; ++i)
    {
        if (!SKY_Addr_Equal(server_in(4, i), server_in(5, i)))
        {
            stuck = server_in(4, i);
            late  = server_in(5, i);
        }
    }
    CHECK(held_at(stuck, &block) > 0);
    sky_run(ROW_US, STEP_US);
    CHECK_EQ(word_of(late), 0); /* it was no server before, and has not asked */
    CHECK_EQ(settled(), NODES - 1u);
    stuck = (SKY_Addr_t){0, 0};
    sky_run(14000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    CHECK(held_at(late, &block) > 0);

    /* A row is over at its end, whether or not the satellite has looked at the time. */
    now_us = SKY_Schedule_EndUs(&schedule, 5);
    CHECK_EQ(has_any(server_in(5, 0), SKY_FLAG_ANY).word, SKY_WORD_CAUGHT_UP);
    requests = node_at(away)->svc.core.counters.requests;
    CHECK(SKY_Service_SetSchedule(&node_at(server_in(6, 0))->svc, &schedule)); /* nothing is known of a new schedule */
    CHECK_EQ(word_of(server_in(6, 0)), 0);
    sky_run(2000000, STEP_US);
    CHECK(node_at(away)->svc.core.counters.requests > requests);
}

/* A satellite that is in another row does not say what it owes in this one. */
static void test_a_late_clock(void)
{
    SKY_Addr_t source;

    open_turning();
    sky_run(3u * ROW_US + 1000000, STEP_US);
    CHECK_EQ(settled(), NODES);
    source = node_at(server_in(4, 0))->svc.arrivals.sources[0];
    CHECK(SKY_Service_SetSchedule(&node_at(source)->svc, NULL));
    node_at(server_in(4, 0))->svc.arrivals.turn = 0; /* it is asked next */
    sky_run(6000000, STEP_US);
    CHECK_EQ(word_of(server_in(4, 0)), BOTH); /* what is known of a row stays known */
    sky_run(ROW_US, STEP_US);
    for (uint32_t i = 0; i < 9; ++i)
    {
        const bool asks = node_at(server_in(5, i))->svc.arrivals.left > 0;

        CHECK_EQ(word_of(server_in(5, i)), SKY_Addr_Equal(server_in(5, i), source) ? 0 : asks ? SKY_WORD_CAUGHT_UP : BOTH);
    }
    CHECK(settled() < NODES - 1u);
}

/* Only who was asked answers, and once. A satellite on the way says why a question did not get there. */
static void test_answers_that_say_nothing(void)
{
    SKY_Service_t *svc;
    SKY_Packet_t   pkt;

    open_still(9);
    svc = &node_at(server(0))->svc;
    pkt = sky_catch(server(0), SKY_OP_PING);
    ++pkt.request_id;
    SKY_Service_Begin(svc, now_us, &pkt);
    --pkt.request_id;
    pkt.op = SKY_OP_STATS;
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->core.counters.unsolicited, 2);
    pkt.op  = SKY_OP_PING;
    pkt.src = server(5);
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->arrivals.left, svc->arrivals.count);
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->core.counters.unsolicited, 3);

    now_us += 1000000;
    pkt        = sky_catch(server(0), SKY_OP_PING);
    pkt.status = SKY_STATUS_UNREACHABLE;
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->arrivals.left, svc->arrivals.count);
}

int main(void)
{
    RUN(test_all_settle_in_a_window);
    RUN(test_a_use_is_answered_to_who_wants_to_know);
    RUN(test_nobody_knows_without_a_window);
    RUN(test_where_all_are_servers);
    RUN(test_a_silent_source);
    RUN(test_what_is_owed);
    RUN(test_who_was_cut_off);
    RUN(test_dead_sources_of_who_is_settled);
    RUN(test_servers_before_a_schedule);
    RUN(test_rows);
    RUN(test_a_late_clock);
    RUN(test_answers_that_say_nothing);
    sky_close();
    return CHECK_RESULT();
}
