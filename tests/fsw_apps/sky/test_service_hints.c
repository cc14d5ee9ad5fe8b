/**
 * @file
 * sky_service_hints.c: what was put at a stand-in goes home when the home answers, and is counted until then.
 */
#include "constellation_rig.h"

#define ROOM    64u
#define STEP_US 10000u

static const SKY_Addr_t        away = {1, 1}; /* no server */
static const SKY_ScheduleRow_t row  = {0, {3, 4}};

static SKY_Schedule_t window;
static fx_block_t     block;

static void open_still(void)
{
    block = a_block(1, 9);
    stuck = (SKY_Addr_t){0, 0};
    sky_open(ROOM, false);
    CHECK(SKY_Schedule_Init(&window, &nodes[0].svc.core.cfg.torus, SKY_LAYOUT_ROTATION, 9, &row, 1, now_us));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetWindow(&nodes[i].svc, &window));
    }
}

/* Put a chunk at a stand-in, in @p parts parts. */
static void put_for(SKY_Addr_t at, const fx_block_t *of, uint32_t id, SKY_Addr_t home, uint32_t parts)
{
    for (uint32_t i = 0; i < parts; ++i)
    {
        uint8_t      data[CHUNK];
        SKY_Packet_t pkt;

        fx_put(of, id, data, &pkt);
        pkt.dst  = at;
        pkt.home = home;
        if (parts > 1)
        {
            fx_part(&pkt, i * CHUNK / parts, CHUNK / parts);
        }
        node_serve(node_at(at), &pkt);
    }
}

static uint32_t hints_at(SKY_Addr_t at)
{
    return node_at(at)->store.counters.hinted;
}

static SKY_Addr_t kept_for(SKY_Addr_t at, const fx_block_t *of, uint32_t id)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, of->number);
    return SKY_Store_HomeOf(&node_at(at)->store, SKY_Store_Find(&node_at(at)->store, 0, key), id);
}

static void test_what_is_kept_goes_home(void)
{
    for (uint32_t parts = 1; parts <= 2; ++parts)
    {
        SKY_Addr_t home;

        open_still();
        home                = home_of(&block, 4);
        node_at(home)->deaf = true;
        put_for(away, &block, 4, home, parts);
        CHECK_EQ(hints_at(away), 1);
        CHECK(SKY_Addr_Equal(kept_for(away, &block, 4), home));
        sky_run(20000000, STEP_US);
        CHECK_EQ(held_at(away, &block), 1);
        node_at(home)->deaf = false;
        sky_run(2500000, STEP_US);
        CHECK_EQ(held_at(home, &block), 1);
        CHECK_EQ(hints_at(away), 0);
        CHECK_EQ(hints_at(home), 0);
        CHECK_EQ(node_at(away)->svc.core.counters.migrated_out, 1);
        sky_run(50000000, STEP_US);
        CHECK_EQ(held_at(away, &block), 1); /* hosts that take the home for lost ask here */
        sky_run(15000000, STEP_US);
        CHECK_EQ(held_at(away, &block), 0);
        CHECK_EQ(node_at(away)->store.counters.leaving, 0);
        CHECK_EQ(node_at(away)->store.counters.expired_partial, 0);
    }
}

/* One home stays silent, others have their turn. What is the stand-in's own stays. */
static void test_each_home_has_its_turn(void)
{
    open_still();
    put_for(away, &block, 0, (SKY_Addr_t){0, 0}, 1);
    for (uint32_t id = 1; id < 9; ++id)
    {
        node_at(home_of(&block, id))->deaf = true;
        put_for(away, &block, id, home_of(&block, id), 1);
    }
    CHECK_EQ(hints_at(away), 8);
    sky_run(5000000, STEP_US);
    for (uint32_t id = 1; id < 8; ++id)
    {
        node_at(home_of(&block, id))->deaf = false;
    }
    sky_run(18000000, STEP_US);
    CHECK_EQ(hints_at(away), 1);
    sky_run(70000000, STEP_US);
    CHECK_EQ(held_at(away, &block), 2);
    CHECK_EQ(held(&block), 9);
    node_at(home_of(&block, 8))->deaf = false;
    sky_run(2500000, STEP_US);
    CHECK_EQ(hints_at(away), 0);
    sky_run(70000000, STEP_US);
    CHECK_EQ(held_at(away, &block), 1);
}

/* One packet is lost, or three in a row, whichever they are: the chunks come home all the same. */
static void test_a_packet_that_is_lost_at_each_step(void)
{
    for (uint32_t lost = 1; lost <= 3; lost += 2)
    {
        for (uint32_t at = 0; at < 30; ++at)
        {
            open_still();
            asks_arrivals = true;
            sky_run(1000000, STEP_US);
            node_at(home_of(&block, 4))->deaf = true;
            put_for(away, &block, 4, home_of(&block, 4), 2);
            put_for(away, &block, 5, home_of(&block, 5), 1);
            sent_count                        = 0;
            lost_at                           = at;
            lost_end                          = at + lost;
            node_at(home_of(&block, 4))->deaf = false;
            sky_run(12000000, STEP_US);
            CHECK_EQ(hints_at(away), 0);
            CHECK_EQ(held_at(home_of(&block, 4), &block), 1);
            CHECK_EQ(held_at(home_of(&block, 5), &block), 1);
            CHECK(sent_count > lost_end); /* so many packets have gone */
        }
    }
    lost_at       = UINT32_MAX;
    lost_end      = UINT32_MAX;
    asks_arrivals = false;
}

/* What leaves and is put again stays, as the satellite's own or for its home. */
static void test_what_is_put_again_does_not_leave(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_still();
    for (uint32_t id = 3; id < 6; ++id)
    {
        put_for(away, &block, id, home_of(&block, id), 1);
    }
    sky_run(5000000, STEP_US);
    CHECK_EQ(node_at(away)->store.counters.leaving, 3);
    put_for(away, &block, 3, (SKY_Addr_t){0, 0}, 1);
    put_for(away, &block, 4, home_of(&block, 4), 1);
    CHECK_EQ(node_at(away)->store.counters.leaving, 1);
    CHECK_EQ(hints_at(away), 1);
    fx_key(key, block.number);
    SKY_Store_Leave(&node_at(away)->store, SKY_STORE_NONE, 3, 0);                                /* nothing is there */
    SKY_Store_Leave(&node_at(away)->store, SKY_Store_Find(&node_at(away)->store, 0, key), 3, 0); /* it is its own */
    CHECK_EQ(node_at(away)->store.counters.leaving, 1);
    sky_run(120000000, STEP_US);
    CHECK_EQ(held_at(away, &block), 1);
    CHECK_EQ(hints_at(away), 0);
    CHECK_EQ(node_at(away)->store.counters.leaving, 0);
}

/* The home asks, and need not wait for its turn. */
static void test_who_asks_gets_what_is_kept(void)
{
    const SKY_Addr_t stand_in = {2, 6};
    SKY_Addr_t       home;

    open_still();
    asks_arrivals = true;
    home          = home_of(&block, 4);
    sky_run(5000000, STEP_US);
    CHECK_EQ(node_at(home)->svc.core.word, SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP);
    node_at(home)->deaf = true;
    sky_run(10000000, STEP_US);
    CHECK_EQ(node_at(home)->svc.core.word, 0);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        const SKY_Addr_t *sources = node_at(home)->svc.arrivals.sources;

        if (SKY_Addr_Equal(sources[0], nodes[i].svc.core.cfg.self))
        {
            put_for(sources[0], &block, 4, home, 1);
            node_at(sources[0])->svc.hints.look_us = UINT64_MAX; /* it does not look by itself */
        }
    }
    CHECK_EQ(hints_at(stand_in), 0);
    node_at(home)->deaf = false;
    sky_run(100000, STEP_US);
    CHECK_EQ(held_at(home, &block), 0);
    sky_run(17000000, STEP_US); /* a pause of a satellite that was silent so long, at most */
    CHECK_EQ(held_at(home, &block), 1);
    CHECK_EQ(node_at(home)->svc.core.word, SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP);
    asks_arrivals = false;
}

/* The last PUT says for whom a chunk is kept, but what is a satellite's own never leaves it. */
static void test_for_whom_a_chunk_is_kept(void)
{
    const SKY_Addr_t nobody = {0, 0};
    uint8_t          data[CHUNK];
    SKY_Packet_t     pkt;

    open_still();
    put_for(away, &block, 4, server(0), 1);
    put_for(away, &block, 4, server(1), 1);
    CHECK(SKY_Addr_Equal(kept_for(away, &block, 4), server(1)));
    CHECK_EQ(hints_at(away), 1);
    put_for(away, &block, 4, nobody, 1);
    CHECK_EQ(hints_at(away), 0);
    put_for(away, &block, 4, server(1), 1);
    CHECK_EQ(hints_at(away), 0);
    CHECK(SKY_Addr_Equal(kept_for(away, &block, 4), nobody));
    CHECK(SKY_Addr_Equal(kept_for(away, &block, 5), nobody)); /* which is not held */

    fx_put(&block, 6, data, &pkt); /* nobody stands in for itself */
    pkt.home = away;
    node_serve(node_at(away), &pkt);
    CHECK_EQ(node_at(away)->svc.core.counters.errors[SKY_STATUS_BAD_ADDRESS], 1);
    CHECK_EQ(held_at(away, &block), 1);

    put_for(away, &block, 7, server(1), 1);
    SKY_Store_Clear(&node_at(away)->store);
    CHECK_EQ(hints_at(away), 0);
}

/* A home that has a newer version does not want the older one. */
static void test_what_the_home_refuses_is_forgotten(void)
{
    fx_block_t   newer = block;
    uint8_t      data[CHUNK];
    SKY_Packet_t pkt;
    SKY_Addr_t   home;

    open_still();
    newer         = block;
    newer.version = 2;
    home          = home_of(&block, 4);
    put_for(away, &block, 4, home, 1);
    fx_put(&newer, 4, data, &pkt);
    pkt.block_version = 2;
    node_serve(node_at(home), &pkt);
    sky_run(5000000, STEP_US);
    CHECK_EQ(hints_at(away), 0);
    CHECK_EQ(held_at(away, &block), 0);
    CHECK_EQ(held_at(home, &block), 1);
}

/* What makes room is counted, if its home has missed it. */
static void test_what_is_evicted_is_counted(void)
{
    uint64_t counters[SKY_STATS_KVC_COUNT];

    open_still();
    put_for(away, &block, 4, server(4), 1);
    put_for(away, &block, 5, server(5), 1);
    for (uint32_t number = 100; node_at(away)->store.counters.evicted_blocks == 0; ++number)
    {
        const fx_block_t more = a_block(number, 1);

        CHECK(number < 10000);
        sky_put(away, &more, 0);
    }
    SKY_Service_Stats(&node_at(away)->svc, now_us, counters);
    CHECK_EQ(counters[SKY_STATS_KVC_HINTS], 0);
    CHECK_EQ(counters[SKY_STATS_KVC_HINTS_LOST], 2);
    SKY_Service_ResetCounters(&node_at(away)->svc);
    SKY_Service_Stats(&node_at(away)->svc, now_us, counters);
    CHECK_EQ(counters[SKY_STATS_KVC_HINTS_LOST], 0);
}

/* A stand-in that gives all away says for whom it was kept. Nothing is begun beside that. */
static void test_an_evacuation_hands_hints_on(void)
{
    const SKY_Addr_t other = {5, 7};
    open_still();
    put_for(away, &block, 7, server(1), 1);
    sky_run(5000000, STEP_US);
    CHECK_EQ(node_at(away)->store.counters.leaving, 1); /* it is at home: nobody else needs it */
    node_at(server(0))->deaf = true;
    put_for(away, &block, 4, server(0), 1);
    put_for(away, &block, 5, other, 1);
    put_for(away, &block, 6, (SKY_Addr_t){0, 0}, 1);
    CHECK_EQ(SKY_Service_Evacuate(&node_at(away)->svc, now_us, other), SKY_STATUS_OK);
    sky_run(STEP_US, STEP_US);
    CHECK_EQ(node_at(away)->svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].hinted, false);
    sky_run(1000000, STEP_US);
    CHECK_EQ(held_at(away, &block), 1);
    CHECK_EQ(held_at(other, &block), 3);
    CHECK_EQ(hints_at(other), 1);
    CHECK(SKY_Addr_Equal(kept_for(other, &block, 4), server(0)));
}

/* By a schedule chunks go to their homes of now, whoever was home when they were put. */
static void test_a_schedule_brings_all_home(void)
{
    open_still();
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, &window));
    }
    node_at((SKY_Addr_t){5, 7})->deaf = true;
    put_for(away, &block, 4, (SKY_Addr_t){5, 7}, 1);
    sky_run(3000000, STEP_US);
    CHECK_EQ(held_at(home_of(&block, 4), &block), 1);
    CHECK_EQ(held_at(away, &block), 0);
    CHECK_EQ(hints_at(home_of(&block, 4)), 0);
    CHECK_EQ(node_at(away)->svc.hints.request_id, 0); /* nobody was asked */
}

/* An answer counts once, from who was asked, and while nothing else goes on. */
static void test_answers_that_say_nothing(void)
{
    const SKY_Addr_t home = server(4);
    SKY_Service_t   *svc;
    SKY_Packet_t     pkt;

    open_still();
    put_for(away, &block, 4, home, 1);
    svc = &node_at(away)->svc;
    pkt = sky_catch(away, SKY_OP_PING);
    CHECK(SKY_Addr_Equal(pkt.src, home));
    pkt.op = SKY_OP_STATS;
    SKY_Service_Begin(svc, now_us, &pkt);
    pkt.op = SKY_OP_PING;
    ++pkt.request_id;
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->core.counters.unsolicited, 2);
    --pkt.request_id;
    pkt.status = SKY_STATUS_UNREACHABLE;
    SKY_Service_Begin(svc, now_us, &pkt);
    pkt.status = SKY_STATUS_OK;
    pkt.src    = server(5);
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK_EQ(svc->core.counters.unsolicited, 2);
    CHECK(!svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    pkt.src = home;
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK(svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    CHECK(svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].hinted);
    SKY_Service_Begin(svc, now_us, &pkt); /* once */
    CHECK_EQ(svc->core.counters.unsolicited, 3);

    /* An order to send everything there does more. */
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, home), SKY_STATUS_OK);
    CHECK(!svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].hinted);
    CHECK(svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    now_us += 3000000;
    SKY_Service_Unreachable(svc, home);
    pkt = sky_catch(away, SKY_OP_PING);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, home), SKY_STATUS_OK);
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK(!svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].hinted);

    /* Nor does it count under a schedule that moves chunks. */
    SKY_Service_Unreachable(svc, home);
    now_us += 3000000;
    pkt = sky_catch(away, SKY_OP_PING);
    CHECK(SKY_Service_SetSchedule(svc, &window));
    SKY_Service_Begin(svc, now_us, &pkt);
    CHECK(!svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
}

/* While a chunk goes home, others of its block are the stand-in's own, and are told to who asks. */
static void test_own_chunks_are_told_meanwhile(void)
{
    SKY_Packet_t   pkt;
    SKY_ChunkSet_t set;
    SKY_Out_t      out;
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];

    open_still();
    put_for(away, &block, 4, server(4), 1);
    put_for(away, &block, 5, (SKY_Addr_t){0, 0}, 1);
    pkt = sky_catch(away, SKY_OP_PING);
    SKY_Service_Begin(&node_at(away)->svc, now_us, &pkt);
    CHECK(node_at(away)->svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].hinted);
    (void)SKY_ChunkSet_Init(&set, 4, 1, 2);
    SKY_ChunkSet_Add(&set, 0);
    SKY_ChunkSet_Add(&set, 1);
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_KVC;
    pkt.op         = SKY_OP_HAS;
    pkt.src        = server(6);
    pkt.dst        = away;
    fx_key(pkt.key, block.number);
    pkt.chunk_id = set.base;
    pkt.length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    pkt.payload  = payload;
    SKY_Service_Begin(&node_at(away)->svc, now_us, &pkt);
    CHECK(SKY_Service_Next(&node_at(away)->svc, now_us, &out));
    CHECK_EQ(SKY_ChunkSet_Decode(&out.pkt, &set), SKY_STATUS_OK);
    CHECK(!SKY_ChunkSet_Has(&set, 0));
    CHECK(SKY_ChunkSet_Has(&set, 1));
}

int main(void)
{
    RUN(test_what_is_kept_goes_home);
    RUN(test_each_home_has_its_turn);
    RUN(test_a_packet_that_is_lost_at_each_step);
    RUN(test_what_is_put_again_does_not_leave);
    RUN(test_who_asks_gets_what_is_kept);
    RUN(test_for_whom_a_chunk_is_kept);
    RUN(test_what_the_home_refuses_is_forgotten);
    RUN(test_what_is_evicted_is_counted);
    RUN(test_an_evacuation_hands_hints_on);
    RUN(test_a_schedule_brings_all_home);
    RUN(test_answers_that_say_nothing);
    RUN(test_own_chunks_are_told_meanwhile);
    sky_close();
    return CHECK_RESULT();
}
