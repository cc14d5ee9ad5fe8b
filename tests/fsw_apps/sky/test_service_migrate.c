/**
 * @file
 * sky_service_migrate.c and sky_service_job.c: what goes from one satellite to another, and when a job ends.
 */
#include "migrate_rig.h"

static bool is_put_of(const rig_out_t *out, const fx_block_t *what)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, what->number);
    return out->pkt.op == SKY_OP_PUT && memcmp(out->pkt.key, key, sizeof(key)) == 0;
}

static void test_moves_a_share(void)
{
    SKY_BlockInfo_t at_a, at_b;
    uint8_t         key[SKY_KEY_BYTES];

    open_both(64, 1472, 0);
    put_all(&a, &block, 3, 10);
    put_all(&a, &block, 49, 10);
    fx_key(key, block.number);
    CHECK_EQ(SKY_Store_Block(&a.store, SKY_Store_Find(&a.store, 0, key), &at_a), SKY_STATUS_OK);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    CHECK_EQ(jobs(), 1);
    CHECK(run(10) <= 3); /* out, back */
    for (uint32_t i = 0; i < block.chunk_total; ++i)
    {
        CHECK_EQ(rig_holds(&b, &block, i), i % 10 == 3 || i == 49);
    }
    CHECK(none_at(&a, &block));
    CHECK_EQ(a.store.counters.blocks, 0);
    CHECK_EQ(a.svc.core.counters.migrated_out, 6);
    CHECK_EQ(b.svc.core.counters.migrated_in, 6);
    CHECK_EQ(SKY_Store_Block(&b.store, SKY_Store_Find(&b.store, 0, key), &at_b), SKY_STATUS_OK);
    CHECK_EQ(at_b.stripe.chunk_len, at_a.stripe.chunk_len);
    CHECK_EQ(at_b.epoch, at_a.epoch);
    CHECK_EQ(next_us, UINT64_MAX);
}

static void test_keeps_when_told(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, SKY_FLAG_KEEP, 0), SKY_STATUS_OK);
    (void)run(50);
    CHECK(all_at(&a, &block, 0, 1));
    CHECK(all_at(&b, &block, 0, 1));
    CHECK_EQ(a.svc.core.counters.migrated_out, 50);
}

static void test_survives_loss(void)
{
    open_both(64, 1472, 30);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    (void)run(60000);
    CHECK(all_at(&b, &block, 0, 1));
    CHECK(none_at(&a, &block));
    CHECK_EQ(a.svc.core.counters.migrated_out, 50);
}

static void test_moves_in_parts(void)
{
    open_both(64, 500, 10);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    (void)run(60000);
    CHECK(all_at(&b, &block, 0, 1));
    CHECK(none_at(&a, &block));
    CHECK(b.svc.core.counters.migrated_in >= 50); /* some twice */
}

static void test_interrupted_in_a_chunk(void)
{
    SKY_Packet_t ping;
    SKY_Out_t    out;

    open_both(64, 500, 0);
    put_all(&a, &block, 48, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    queued = 0;         /* all lost */
    a.now_us += 300000; /* past the timer: a query, and after its answer the chunks again */
    rig_poll(&a, &next_us);
    post(&a);
    CHECK_EQ(queued, 1);
    for (uint32_t i = 0; i < 2; ++i) /* there and back, but the rest of the first chunk is not pulled */
    {
        const datagram_t datagram = queue[0];

        CHECK_EQ(queued, 1);
        queued = 0;
        if (i == 0)
        {
            hand_over(&b, &datagram);
        }
        else
        {
            SKY_Packet_t pkt;

            CHECK_EQ(SKY_Packet_Decode(datagram.bytes, datagram.len, &pkt), SKY_STATUS_OK);
            SKY_Service_Begin(&a.svc, a.now_us, &pkt);
            CHECK(SKY_Service_Next(&a.svc, a.now_us, &out));
            CHECK(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS - 1].cutting);
        }
    }
    rig_request(&ping, SKY_OP_PING, 0);
    rig_serve(&a, &ping);
    CHECK_EQ(a.out[0].pkt.op, SKY_OP_PING);
    post(&a);
    (void)run(1000);
    CHECK(rig_holds(&b, &block, 48) && rig_holds(&b, &block, 49));
}

static void test_moves_all_blocks_of_a_tenant(void)
{
    fx_block_t   some = {0, 0, 3, 500, 1400};
    uint8_t      key[SKY_KEY_BYTES], data[1000];
    SKY_Packet_t pkt;

    open_both(64, 1472, 5);
    CHECK_EQ(migrate(NULL, 0, away, 0, 600000), SKY_STATUS_NOT_FOUND);
    for (some.number = 1; some.number <= 12; ++some.number)
    {
        put_all(&a, &some, 0, 1);
    }
    fx_put(&some, 0, data, &pkt);
    pkt.tenant = 9;
    rig_serve(&a, &pkt);
    CHECK_EQ(migrate(NULL, 8, away, 0, 600000), SKY_STATUS_NOT_FOUND); /* has no blocks */
    CHECK_EQ(migrate(NULL, 0, away, 0, 600000), SKY_STATUS_OK);
    CHECK_EQ(migrate(NULL, 0, away, 0, 600000), SKY_STATUS_OK); /* the same request again */
    CHECK_EQ(jobs(), 1);
    (void)run(60000);
    for (some.number = 1; some.number <= 12; ++some.number)
    {
        CHECK(all_at(&b, &some, 0, 1));
        CHECK(none_at(&a, &some));
    }
    fx_key(key, some.number);
    CHECK(SKY_Store_Has(&a.store, SKY_Store_Find(&a.store, 9, key), 0));
    CHECK_EQ(a.store.counters.blocks, 1);
}

static void test_windows_of_a_long_block(void)
{
    const fx_block_t long_block = {6, 0, 9000, 1, 9000};
    const uint32_t   ids[]      = {5, 2047, 2048, 2053, 6500, 8999};

    open_both(64, 1472, 0);
    for (uint32_t i = 0; i < 6; ++i)
    {
        rig_put(&a, &long_block, ids[i]);
    }
    CHECK_EQ(migrate_block(&long_block, away, 0, 0), SKY_STATUS_OK);
    (void)run(100);
    for (uint32_t i = 0; i < 6; ++i)
    {
        CHECK(rig_holds(&b, &long_block, ids[i]) && !rig_holds(&a, &long_block, ids[i]));
    }
}

static void test_requests_that_cannot_be(void)
{
    uint8_t      key[SKY_KEY_BYTES], data[500];
    fx_block_t   some = {0, 0, 1, 500, 500};
    SKY_Packet_t req;

    open_both(64, 1472, 0);
    rig_put(&a, &block, 0);
    rig_request(&req, SKY_OP_MIGRATE, block.number);
    rig_serve(&a, &req);
    CHECK_EQ(rig_status(&a), SKY_STATUS_BAD_LENGTH);
    CHECK_EQ(migrate_block(&block, home, 0, 0), SKY_STATUS_BAD_ADDRESS);
    CHECK_EQ(migrate_block(&block, (SKY_Addr_t){6, 1}, 0, 0), SKY_STATUS_BAD_ADDRESS);
    CHECK_EQ(migrate_block(&block, (SKY_Addr_t){0, 77}, 0, 0), SKY_STATUS_BAD_ADDRESS);
    fx_key(key, 99);
    CHECK_EQ(migrate(key, 0, away, 0, 0), SKY_STATUS_NOT_FOUND);
    fx_key(key, block.number);
    CHECK_EQ(migrate(key, 1, away, 0, 0), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(jobs(), 0);
    CHECK_EQ(a.svc.core.counters.errors[SKY_STATUS_BAD_ADDRESS], 3);
    for (some.number = 20; some.number < 20 + SKY_SERVICE_TENANT_MIGRATIONS; ++some.number)
    {
        rig_put(&a, &some, 0);
        CHECK_EQ(migrate_block(&some, nobody, 0, 0), SKY_STATUS_OK);
        CHECK_EQ(migrate_block(&some, nobody, 0, 0), SKY_STATUS_OK); /* the same again is no new job */
    }
    CHECK_EQ(jobs(), SKY_SERVICE_TENANT_MIGRATIONS);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_BUSY);
    fx_put(&some, 0, data, &req);
    req.tenant = 9; /* one place is left to other tenants */
    rig_serve(&a, &req);
    CHECK_EQ(migrate(req.key, 9, nobody, 0, 0), SKY_STATUS_OK);
    CHECK_EQ(jobs(), SKY_SERVICE_MIGRATIONS);
    CHECK_EQ(migrate(NULL, 9, nobody, 0, 0), SKY_STATUS_BUSY);
    CHECK_EQ(migrate(NULL, 0, nobody, 0, 0), SKY_STATUS_BUSY); /* all blocks is another job than one of them */
}

static void test_ends_at_the_deadline(void)
{
    uint32_t steps;

    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, nobody, 0, 2000), SKY_STATUS_OK);
    rig_poll(&a, &next_us);
    CHECK(next_us > a.now_us && next_us <= a.now_us + 2000000);
    steps = run(1000);
    CHECK(steps >= 195 && steps <= 201);
    CHECK(all_at(&a, &block, 0, 1));
    CHECK_EQ(migrate_block(&block, nobody, 0, 0), SKY_STATUS_OK); /* ours; but nobody answers, so it ends before */
    CHECK_EQ(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS - 1].deadline_us, a.now_us + SKY_SERVICE_MIGRATION_MS * 1000u);
    steps = run(10000);
    CHECK(steps >= 1000 && steps <= 1300);
    CHECK_EQ(migrate_block(&block, nobody, 0, UINT32_MAX), SKY_STATUS_OK);
    CHECK_EQ(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS - 1].deadline_us, a.now_us + SKY_SERVICE_MIGRATION_MAX_MS * 1000ull);
    steps = run(10000);
    CHECK(steps <= 1300);
    CHECK_EQ(migrate_block(&block, nobody, 0, 1), SKY_STATUS_OK); /* nobody begins jobs that end at once, one after the other */
    CHECK_EQ(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS - 1].deadline_us, a.now_us + SKY_SERVICE_MIGRATION_MIN_MS * 1000u);
    steps = run(1000);
    CHECK(steps >= 95 && steps <= 101);
    CHECK_EQ(a.svc.core.counters.migrated_out, 0);
}

static void test_target_holds_another_version(void)
{
    const fx_block_t other = {5, 1, 50, 1000, 49500};
    const fx_block_t next  = {6, 0, 2, 1000, 2000};

    open_both(128, 1472, 0);
    put_all(&a, &block, 0, 1);
    put_all(&b, &other, 0, 1);
    put_all(&a, &next, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    (void)run(100);
    CHECK(all_at(&a, &block, 0, 1)); /* nothing lost */
    CHECK(all_at(&b, &other, 0, 1));
    CHECK(all_at(&b, &next, 0, 1) && none_at(&a, &next));
}

static void test_chunks_vanish_meanwhile(void)
{
    const fx_block_t next = {6, 0, 2, 1000, 2000};
    uint8_t          key[SKY_KEY_BYTES];

    /* All of them, with packets on their way: the job finds nothing more and ends, and acknowledgements do no harm. */
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    fx_key(key, block.number);
    CHECK_EQ(SKY_Store_Purge(&a.store, 0, key, NULL), 50);
    (void)run(100);
    CHECK(rig_holds(&b, &block, 0) && !rig_holds(&b, &block, 49));
    CHECK_EQ(a.store.counters.chunks, 0);

    /* One of them: the others arrive, and the next block after it. */
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    put_all(&a, &next, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    CHECK(SKY_Store_Drop(&a.store, SKY_Store_Find(&a.store, 0, key), 40));
    (void)run(100);
    for (uint32_t i = 0; i < block.chunk_total; ++i)
    {
        CHECK_EQ(rig_holds(&b, &block, i), i != 40);
    }
    CHECK(none_at(&a, &block) && all_at(&b, &next, 0, 1));

    /* Evicted by a block that comes in. */
    open_both(51, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    put_all(&a, &next, 0, 1);
    (void)run(100);
    CHECK(none_at(&a, &block) && all_at(&a, &next, 0, 1));
}

/* A bit of a chunk in memory flips: each time the target says BAD_CRC, and it answers every question. */
static void test_a_damaged_chunk_ends_no_later_than_others(void)
{
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    for (uint32_t kept = 0; kept < 2; ++kept)
    {
        open_both(64, 500, 0); /* in parts: only the checksum of the whole chunk tells */
        put_all(&a, &block, 0, 1);
        fx_key(key, block.number);
        CHECK_EQ(SKY_Store_Peek(&a.store, SKY_Store_Find(&a.store, 0, key), 7, &view), SKY_STATUS_OK);
        ((uint8_t *)(uintptr_t)view.data)[3] ^= 4u;
        CHECK_EQ(migrate_block(&block, away, kept != 0 ? SKY_FLAG_KEEP : 0, 600000), SKY_STATUS_OK);
        (void)run(1000);
        for (uint32_t id = 0; id < block.chunk_total; ++id)
        {
            CHECK_EQ(rig_holds(&b, &block, id), id != 7);
        }
        CHECK(!SKY_Store_Has(&a.store, SKY_Store_Find(&a.store, 0, key), 7));
        CHECK_EQ(a.store.counters.chunks, kept != 0 ? 49 : 0);
        CHECK(kept != 0 || a.svc.core.counters.migrated_out == 49); /* those that are kept are offered again */
    }
}

/* Questions get through, chunks do not: the job ends, and nothing is lost. */
static void test_a_way_that_drops_chunks(void)
{
    uint32_t left = 1000;

    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    for (; jobs() > 0 && left > 0; --left)
    {
        uint32_t passed = 0;

        for (uint32_t i = 0; i < queued; ++i)
        {
            SKY_Packet_t pkt;

            CHECK_EQ(SKY_Packet_Decode(queue[i].bytes, queue[i].len, &pkt), SKY_STATUS_OK);
            if (pkt.op != SKY_OP_PUT)
            {
                queue[passed++] = queue[i];
            }
        }
        queued = passed;
        step();
    }
    CHECK_EQ(jobs(), 0);
    CHECK(all_at(&a, &block, 0, 1) && none_at(&b, &block));
}

static void test_who_may_answer(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 40, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    answer(nobody, SKY_STATUS_OK, SKY_OP_HAS); /* not the target: acknowledges nothing */
    CHECK_EQ(a.svc.core.counters.unsolicited, 1);
    CHECK(rig_holds(&a, &block, 40));
    CHECK_EQ(jobs(), 1);
    answer(nobody, SKY_STATUS_UNREACHABLE, SKY_OP_PUT); /* a satellite on the way knows better */
    CHECK_EQ(jobs(), 0);
    CHECK_EQ(a.svc.core.counters.unsolicited, 1);
    CHECK(rig_holds(&a, &block, 40));
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    answer(away, SKY_STATUS_OK, SKY_OP_HAS);
    CHECK_EQ(jobs(), 0);
    CHECK(!rig_holds(&a, &block, 40));
    answer(away, SKY_STATUS_OK, SKY_OP_HAS); /* once more: the job has ended */
    CHECK_EQ(a.svc.core.counters.unsolicited, 2);
}

/* As many blocks as lanes and more, of one chunk each: they go in a few round trips, not in one each. */
static void test_many_small_blocks_at_a_time(void)
{
    fx_block_t some = {0, 0, 1, 500, 500};

    open_both(256, 1472, 0);
    for (some.number = 1; some.number <= 150; ++some.number)
    {
        rig_put(&a, &some, 0);
    }
    CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
    CHECK(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    for (uint32_t steps = 0; steps < 14; ++steps)
    {
        step();
    }
    CHECK(!a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    CHECK_EQ(a.store.counters.blocks, 0);
    CHECK_EQ(b.store.counters.blocks, 150);
    CHECK_EQ(a.svc.core.counters.migrated_out, 150);

    /* As a request, with fewer lanes. */
    CHECK_EQ(SKY_Service_Evacuate(&b.svc, b.now_us, away), SKY_STATUS_OK);
    crossing = true;
    CHECK_EQ(migrate(NULL, 0, home, 0, 0), SKY_STATUS_OK);
    CHECK(run(60) <= 25);
    crossing = false;
    CHECK_EQ(a.store.counters.blocks, 150);
}

/* No pull sends more chunks than a satellite takes at a time, however wide the window has become. */
static void test_bursts_stay_within_the_credit(void)
{
    fx_block_t some  = {0, 0, 8, 500, 4000};
    uint32_t   most  = 0;
    uint32_t   steps = 0;

    open_both(1024, 1472, 0);
    for (some.number = 1; some.number <= 100; ++some.number)
    {
        put_all(&a, &some, 0, 1);
    }
    CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
    for (; a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].active && steps < 200; ++steps)
    {
        uint32_t chunks = 0;

        step();
        for (uint32_t i = 0; i < a.count; ++i)
        {
            chunks += a.out[i].pkt.op == SKY_OP_PUT ? 1u : 0u;
        }
        CHECK(chunks <= a.svc.core.cfg.credit);
        most = a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].peer.window > most
                   ? a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].peer.window
                   : most;
    }
    CHECK(most > 4u * a.svc.core.cfg.credit);
    CHECK_EQ(b.store.counters.blocks, 100);
}

static void test_the_block_used_last_goes_first(void)
{
    fx_block_t some = {0, 0, 1, 500, 500};

    open_both(256, 1472, 0);
    for (some.number = 1; some.number <= 60; ++some.number)
    {
        rig_put(&a, &some, 0);
    }
    some.number = 7;
    rig_ask(&a, SKY_OP_GET, 7, 0, 1, 1, 1, 1);
    CHECK_EQ(a.count, 1);
    CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
    rig_poll(&a, &next_us);
    CHECK(a.count >= 4);
    some.number = 7;
    CHECK(is_put_of(&a.out[0], &some));
    some.number = 60;
    CHECK(is_put_of(&a.out[2], &some)); /* each after its question */
    post(&a);
    for (uint32_t steps = 0; steps < 14; ++steps)
    {
        step();
    }
    CHECK_EQ(b.store.counters.blocks, 60);
}

/* The target refuses a block of which several pieces are to go: the others are not begun. */
static void test_pieces_of_a_refused_block_are_left(void)
{
    const fx_block_t other = {5, 1, 3000, 1, 3000};
    const fx_block_t large = {5, 0, 3001, 1, 3001};

    open_both(4096, 1472, 0);
    put_all(&a, &large, 0, 1);
    put_all(&b, &other, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    CHECK(run(40) <= 10);
    CHECK(all_at(&a, &large, 0, 1));
}

/* A lane that begins anew keeps to its piece of the block; the next one has the rest. */
static void test_a_chunk_vanishes_from_one_of_two_lanes(void)
{
    const fx_block_t large = {8, 0, 100, 500, 50000};
    uint8_t          key[SKY_KEY_BYTES];

    open_both(256, 1472, 0);
    put_all(&a, &large, 0, 1);
    CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
    fx_key(key, large.number);
    CHECK(SKY_Store_Drop(&a.store, SKY_Store_Find(&a.store, 0, key), 40));
    for (uint32_t steps = 0; steps < 60; ++steps)
    {
        step();
    }
    for (uint32_t i = 0; i < large.chunk_total; ++i)
    {
        CHECK_EQ(rig_holds(&b, &large, i), i != 40);
    }
    CHECK(none_at(&a, &large));
}

/* Chunks go while lanes wait for room: a lane that finds nothing more ends, and with the last one the job. */
static void test_blocks_vanish_from_lanes(void)
{
    fx_block_t some = {0, 0, 30, 500, 15000};
    uint8_t    key[SKY_KEY_BYTES];

    open_both(256, 1472, 0);
    for (some.number = 1; some.number <= 3; ++some.number)
    {
        put_all(&a, &some, 0, 1);
    }
    CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
    rig_poll(&a, &next_us); /* the window takes 20 of the first block */
    queued = 0;
    for (some.number = 1; some.number <= 3; ++some.number)
    {
        fx_key(key, some.number);
        CHECK_EQ(SKY_Store_Purge(&a.store, 0, key, NULL), 30);
    }
    for (uint32_t steps = 0; steps < 400; ++steps)
    {
        step();
    }
    CHECK(!a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    CHECK_EQ(a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].lanes, 0);
    CHECK_EQ(b.store.counters.blocks, 0);
}

/* A block is purged and put anew with other lengths while it moves: what is sent is of the new one, and has its lengths. */
static void test_a_block_is_declared_anew_in_a_lane(void)
{
    const fx_block_t before = {8, 0, 100, 500, 50000};
    const fx_block_t anew[] = {{8, 0, 50, 1000, 50000}, {8, 0, 100, 500, 49990}, {8, 0, 100, 501, 50000}, {8, 0, 99, 501, 49500}};
    uint8_t          key[SKY_KEY_BYTES];

    fx_key(key, before.number);
    for (uint32_t i = 0; i < sizeof(anew) / sizeof(anew[0]); ++i)
    {
        open_both(256, 1472, 0);
        put_all(&a, &before, 0, 1);
        CHECK_EQ(SKY_Service_Evacuate(&a.svc, a.now_us, away), SKY_STATUS_OK);
        rig_poll(&a, &next_us);
        queued = 0; /* the first chunks are lost */
        CHECK_EQ(SKY_Store_Purge(&a.store, 0, key, NULL), 100);
        put_all(&a, &anew[i], 0, 1);
        for (uint32_t steps = 0; steps < 400; ++steps)
        {
            step();
        }
        CHECK(all_at(&b, &anew[i], 0, 1) && none_at(&a, &anew[i]));
        CHECK(!a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    }
}

static void test_two_jobs_at_a_time(void)
{
    const fx_block_t next = {6, 0, 30, 1000, 30000};
    uint8_t          key[SKY_KEY_BYTES], data[1000];
    SKY_Packet_t     pkt;

    open_both(128, 1472, 0);
    put_all(&a, &block, 0, 1);
    put_all(&a, &next, 0, 1);
    CHECK_EQ(migrate_block(&next, nobody, 0, 500), SKY_STATUS_OK);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    CHECK_EQ(jobs(), 2);
    (void)run(1000);
    CHECK(all_at(&b, &block, 0, 1) && none_at(&a, &block));
    CHECK(all_at(&a, &next, 0, 1));

    /* One key, two tenants: two jobs. A chunk in part beside them does not hold up their timers. */
    fx_put(&block, 0, data, &pkt);
    rig_serve(&a, &pkt);
    pkt.tenant = 1;
    rig_serve(&a, &pkt);
    pkt.chunk_id = 1;
    fx_part(&pkt, 0, 500);
    rig_serve(&a, &pkt);
    CHECK_EQ(a.store.counters.partial, 1);
    fx_key(key, block.number);
    CHECK_EQ(migrate(key, 0, nobody, 0, 500), SKY_STATUS_OK);
    CHECK_EQ(migrate(key, 1, nobody, 0, 500), SKY_STATUS_OK);
    CHECK_EQ(jobs(), 2);
    rig_poll(&a, &next_us);
    CHECK(next_us < a.now_us + SKY_SERVICE_EXPIRE_US);
    (void)run(1000);
}

int main(void)
{
    RUN(test_moves_a_share);
    RUN(test_keeps_when_told);
    RUN(test_survives_loss);
    RUN(test_moves_in_parts);
    RUN(test_interrupted_in_a_chunk);
    RUN(test_moves_all_blocks_of_a_tenant);
    RUN(test_windows_of_a_long_block);
    RUN(test_requests_that_cannot_be);
    RUN(test_ends_at_the_deadline);
    RUN(test_target_holds_another_version);
    RUN(test_chunks_vanish_meanwhile);
    RUN(test_a_damaged_chunk_ends_no_later_than_others);
    RUN(test_a_way_that_drops_chunks);
    RUN(test_who_may_answer);
    RUN(test_many_small_blocks_at_a_time);
    RUN(test_bursts_stay_within_the_credit);
    RUN(test_the_block_used_last_goes_first);
    RUN(test_pieces_of_a_refused_block_are_left);
    RUN(test_a_chunk_vanishes_from_one_of_two_lanes);
    RUN(test_blocks_vanish_from_lanes);
    RUN(test_a_block_is_declared_anew_in_a_lane);
    RUN(test_two_jobs_at_a_time);
    free(a.memory);
    free(b.memory);
    return CHECK_RESULT();
}
