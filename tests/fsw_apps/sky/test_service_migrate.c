/**
 * @file
 * sky_service_migrate.c: two satellites, real packets between them, some of which are lost.
 */
#include "rig.h"

#define QUEUE   2048u
#define STEP_US 10000u /* one way */

typedef struct
{
    SKY_Addr_t dst;
    uint32_t   len;
    uint8_t    bytes[1500];
} datagram_t;

static const SKY_Addr_t home   = {1, 1};
static const SKY_Addr_t away   = {1, 2};
static const SKY_Addr_t nobody = {5, 19}; /* on the torus, but silent */

static const SKY_Addr_t ground = {0, 77};

static SKY_Addr_t asker = {0, 77}; /* of MIGRATE */
static bool       crossing;        /* MIGRATE is for b, else for a */
static uint32_t   jitter_steps;    /* a packet takes up to so many steps more */

static rig_t      a, b;
static datagram_t queue[QUEUE];
static uint32_t   queued;
static uint32_t   loss_percent;
static uint64_t   random_state;
static uint64_t   next_us;

static const fx_block_t block = {5, 0, 50, 1000, 49500};

static void post(const rig_t *rig)
{
    for (uint32_t i = 0; i < rig->count; ++i)
    {
        CHECK(queued < QUEUE && rig->out[i].len <= sizeof(queue[0].bytes));
        queue[queued].dst = rig->out[i].dst;
        queue[queued].len = rig->out[i].len;
        (void)memcpy(queue[queued].bytes, rig->out[i].bytes, rig->out[i].len);
        ++queued;
    }
}

static void hand_over(rig_t *rig, const datagram_t *datagram)
{
    SKY_Packet_t pkt;

    if (SKY_Addr_Equal(datagram->dst, rig->svc.cfg.self) && jitter_steps > 0 && fx_below(&random_state, jitter_steps + 1u) > 0)
    {
        CHECK(queued < QUEUE);
        queue[queued++] = *datagram; /* later */
        return;
    }
    if (SKY_Addr_Equal(datagram->dst, rig->svc.cfg.self) && fx_below(&random_state, 100) >= loss_percent)
    {
        CHECK_EQ(SKY_Packet_Decode(datagram->bytes, datagram->len, &pkt), SKY_STATUS_OK);
        SKY_Service_Begin(&rig->svc, rig->now_us, &pkt);
        rig_pull(rig);
        post(rig);
    }
}

/* One step of time: what is due is sent, what was sent in the step before arrives. */
static void step(void)
{
    static datagram_t arriving[QUEUE];
    const uint32_t    count = queued;

    (void)memcpy(arriving, queue, count * sizeof(queue[0]));
    queued = 0;
    a.now_us += STEP_US;
    b.now_us += STEP_US;
    for (uint32_t i = 0; i < count; ++i)
    {
        hand_over(&a, &arriving[i]);
        hand_over(&b, &arriving[i]);
    }
    rig_poll(&b, &next_us);
    post(&b);
    rig_poll(&a, &next_us);
    post(&a);
}

static uint32_t jobs(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        count += a.svc.migrations[i].active ? 1u : 0u;
        count += b.svc.migrations[i].active ? 1u : 0u;
    }
    return count;
}

/* @return steps until no job is left */
static uint32_t run(uint32_t most)
{
    uint32_t steps = 0;

    while (jobs() > 0 && steps < most)
    {
        step();
        ++steps;
    }
    CHECK_EQ(jobs(), 0);
    return steps;
}

static void open_both(uint32_t slots, uint32_t packet_bytes, uint32_t loss)
{
    rig_open(&a, home, slots, packet_bytes);
    rig_open(&b, away, slots, packet_bytes);
    queued       = 0;
    loss_percent = loss;
    random_state = 4711;
}

static void put_all(rig_t *rig, const fx_block_t *what, uint32_t from, uint32_t stride)
{
    for (uint32_t i = from; i < what->chunk_total; i += stride)
    {
        rig_put(rig, what, i);
        CHECK_EQ(rig->count, 0);
    }
}

/* Are exactly the chunks from, from + stride, ... at @p rig? */
static bool all_at(const rig_t *rig, const fx_block_t *what, uint32_t from, uint32_t stride)
{
    bool good = true;

    for (uint32_t i = 0; i < what->chunk_total; ++i)
    {
        good = good && rig_holds(rig, what, i) == (i >= from && (i - from) % stride == 0);
    }
    return good;
}

static bool none_at(const rig_t *rig, const fx_block_t *what)
{
    return all_at(rig, what, what->chunk_total, 1);
}

/* @p key NULL: all blocks. The packets that follow the response go into the queue. */
static SKY_Status_t migrate(const uint8_t *key, uint32_t tenant, SKY_Addr_t target, uint8_t flags, uint32_t deadline_ms)
{
    const uint8_t payload[SKY_MIGRATE_BYTES] = {(uint8_t)(target.plane >> 8), (uint8_t)(target.plane & 0xFF),
                                                (uint8_t)(target.slot >> 8), (uint8_t)(target.slot & 0xFF)};
    SKY_Packet_t  req;

    rig_t *const rig = crossing ? &b : &a;

    rig_request(&req, SKY_OP_MIGRATE, 0);
    req.src = asker;
    (void)memset(req.key, 0, sizeof(req.key));
    if (key != NULL)
    {
        (void)memcpy(req.key, key, sizeof(req.key));
    }
    req.tenant      = tenant;
    req.flags       = flags;
    req.deadline_ms = deadline_ms;
    req.payload     = payload;
    req.length      = sizeof(payload);
    rig_serve(rig, &req);
    CHECK(rig->count >= 1 && rig->out[0].pkt.op == SKY_OP_MIGRATE && !rig->out[0].pkt.is_request);
    CHECK(SKY_Addr_Equal(rig->out[0].dst, asker)); /* the answer comes first */
    post(rig);
    return rig->out[0].pkt.status;
}

static SKY_Status_t migrate_block(const fx_block_t *what, SKY_Addr_t target, uint8_t flags, uint32_t deadline_ms)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, what->number);
    return migrate(key, 0, target, flags, deadline_ms);
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
    CHECK_EQ(a.svc.counters.migrated_out, 6);
    CHECK_EQ(b.svc.counters.migrated_in, 6);
    CHECK_EQ(SKY_Store_Block(&b.store, SKY_Store_Find(&b.store, 0, key), &at_b), SKY_STATUS_OK);
    CHECK_EQ(at_b.chunk_len, at_a.chunk_len);
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
    CHECK_EQ(a.svc.counters.migrated_out, 50);
}

static void test_survives_loss(void)
{
    open_both(64, 1472, 30);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    (void)run(60000);
    CHECK(all_at(&b, &block, 0, 1));
    CHECK(none_at(&a, &block));
    CHECK_EQ(a.svc.counters.migrated_out, 50);
}

static void test_moves_in_parts(void)
{
    open_both(64, 500, 10);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 600000), SKY_STATUS_OK);
    (void)run(60000);
    CHECK(all_at(&b, &block, 0, 1));
    CHECK(none_at(&a, &block));
    CHECK(b.svc.counters.migrated_in >= 50); /* some twice */
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
            CHECK(a.svc.migrations[SKY_SERVICE_MIGRATIONS - 1].cutting);
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
    uint8_t      key[SKY_KEY_BYTES];
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
    CHECK_EQ(a.svc.counters.errors[SKY_STATUS_BAD_ADDRESS], 3);
    for (some.number = 20; some.number < 20 + SKY_SERVICE_MIGRATIONS; ++some.number)
    {
        rig_put(&a, &some, 0);
        CHECK_EQ(migrate_block(&some, nobody, 0, 0), SKY_STATUS_OK);
        CHECK_EQ(migrate_block(&some, nobody, 0, 0), SKY_STATUS_OK); /* the same again is no new job */
    }
    CHECK_EQ(jobs(), SKY_SERVICE_MIGRATIONS);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_BUSY);
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
    CHECK_EQ(a.svc.migrations[SKY_SERVICE_MIGRATIONS - 1].deadline_us, a.now_us + SKY_SERVICE_MIGRATION_MS * 1000u);
    steps = run(10000);
    CHECK(steps >= 1000 && steps <= 1300);
    CHECK_EQ(migrate_block(&block, nobody, 0, UINT32_MAX), SKY_STATUS_OK);
    CHECK_EQ(a.svc.migrations[SKY_SERVICE_MIGRATIONS - 1].deadline_us, a.now_us + SKY_SERVICE_MIGRATION_MAX_MS * 1000ull);
    steps = run(10000);
    CHECK(steps <= 1300);
    CHECK_EQ(a.svc.counters.migrated_out, 0);
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
    CHECK_EQ(SKY_Store_Purge(&a.store, 0, key), 50);
    (void)run(100);
    CHECK(rig_holds(&b, &block, 0) && !rig_holds(&b, &block, 49));
    CHECK_EQ(a.store.counters.slots_used, 0);

    /* One of them: the others arrive, and the next block after it. */
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    put_all(&a, &next, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    CHECK(SKY_Store_Drop(&a.store, 0, key, 40));
    (void)run(100);
    for (uint32_t i = 0; i < block.chunk_total; ++i)
    {
        CHECK_EQ(rig_holds(&b, &block, i), i != 40);
    }
    CHECK(none_at(&a, &block) && all_at(&b, &next, 0, 1));

    /* Evicted by a block that comes in. */
    open_both(50, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    put_all(&a, &next, 0, 1);
    (void)run(100);
    CHECK(none_at(&a, &block) && all_at(&a, &next, 0, 1));
}

/* A response as the satellite @p from would send it to the newest query of the job. */
static void answer(SKY_Addr_t from, SKY_Status_t status, uint8_t op)
{
    const SKY_Migration_t *job = &a.svc.migrations[SKY_SERVICE_MIGRATIONS - 1];
    uint8_t                payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Packet_t           pkt;

    SKY_Packet_Reply(&job->request, from, status, &pkt);
    pkt.op = op;
    if (op == SKY_OP_HAS)
    {
        pkt.payload = payload;
        pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&job->push.unacked, payload, sizeof(payload));
    }
    rig_serve(&a, &pkt);
}

static void test_who_may_answer(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 40, 1);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    answer(nobody, SKY_STATUS_OK, SKY_OP_HAS); /* not the target: acknowledges nothing */
    CHECK_EQ(a.svc.counters.unsolicited, 1);
    CHECK(rig_holds(&a, &block, 40));
    CHECK_EQ(jobs(), 1);
    answer(nobody, SKY_STATUS_UNREACHABLE, SKY_OP_PUT); /* a satellite on the way knows better */
    CHECK_EQ(jobs(), 0);
    CHECK_EQ(a.svc.counters.unsolicited, 1);
    CHECK(rig_holds(&a, &block, 40));
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    answer(away, SKY_STATUS_OK, SKY_OP_HAS);
    CHECK_EQ(jobs(), 0);
    CHECK(!rig_holds(&a, &block, 40));
    answer(away, SKY_STATUS_OK, SKY_OP_HAS); /* once more: the job has ended */
    CHECK_EQ(a.svc.counters.unsolicited, 2);
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

static void test_all_blocks_only_from_those_who_may(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    a.svc.cfg.migrate_all_from_ground = false;
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_REFUSED);
    CHECK_EQ(jobs(), 0);
    asker = home; /* this satellite's own schedule */
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    asker = ground;
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_REFUSED);
    (void)run(100);
    CHECK(all_at(&b, &block, 0, 1));
}

/* All packets between the two take a random time on top of the step, so that they overtake each other. */
static void test_crossing_loses_nothing(void)
{
    const fx_block_t other = {6, 0, 30, 1000, 30000};

    for (uint32_t run_number = 0; run_number < 20; ++run_number)
    {
        open_both(128, 1472, 0);
        random_state = 100 + run_number;
        jitter_steps = run_number % 5;
        loss_percent = run_number < 10 ? 0 : 10;
        put_all(&a, &block, 0, 2);
        put_all(&b, &block, 1, 2);
        put_all(&a, &block, 1, 8); /* some at both */
        put_all(&a, &other, 0, 1);
        put_all(&b, &other, 0, 1);
        CHECK_EQ(migrate(NULL, 0, away, 0, 20000), SKY_STATUS_OK);
        crossing = true;
        CHECK_EQ(migrate(NULL, 0, home, 0, 20000), SKY_STATUS_OK);
        crossing = false;
        (void)run(3000);
        for (uint32_t i = 0; i < block.chunk_total; ++i)
        {
            CHECK(rig_holds(&a, &block, i) || rig_holds(&b, &block, i));
        }
        for (uint32_t i = 0; i < other.chunk_total; ++i)
        {
            CHECK(rig_holds(&a, &other, i) || rig_holds(&b, &other, i));
        }
        jitter_steps = 0;
    }
}

/* What the satellite @p from hears when it puts a chunk that is not here, or asks for one that is. */
static SKY_Status_t offer_from(SKY_Addr_t from, uint32_t tenant)
{
    uint8_t      data[1000];
    SKY_Packet_t pkt;

    fx_put(&block, 2, data, &pkt);
    pkt.src    = from;
    pkt.tenant = tenant;
    rig_serve(&a, &pkt);
    return a.count == 0 || a.out[0].pkt.is_request ? SKY_STATUS_OK : a.out[0].pkt.status;
}

static bool says_it_holds(SKY_Addr_t from)
{
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;

    CHECK(SKY_ChunkSet_Init(&set, 0, 1, 1));
    SKY_ChunkSet_Add(&set, 0);
    rig_request(&pkt, SKY_OP_HAS, block.number);
    pkt.src     = from;
    pkt.payload = payload;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    rig_serve(&a, &pkt);
    CHECK_EQ(a.out[0].pkt.op, SKY_OP_HAS);
    CHECK_EQ(SKY_ChunkSet_Decode(&a.out[0].pkt, &set), SKY_STATUS_OK);
    return SKY_ChunkSet_Has(&set, 0);
}

static void test_guards_what_is_being_moved(void)
{
    const SKY_Addr_t before = {1, 1}, between = {2, 1}, target = {2, 3}, behind = {3, 1};

    for (uint32_t keep = 0; keep < 2; ++keep)
    {
        rig_open(&a, between, 64, 1472);
        rig_open(&b, behind, 64, 1472);
        queued = 0;
        rig_put(&a, &block, 0);
        CHECK(says_it_holds(target));
        CHECK_EQ(migrate_block(&block, target, keep != 0 ? SKY_FLAG_KEEP : 0, 0), SKY_STATUS_OK);
        CHECK_EQ(says_it_holds(target), keep != 0);
        CHECK(says_it_holds(ground));                   /* it asks where to get it */
        CHECK_EQ(offer_from(behind, 1), SKY_STATUS_OK); /* another tenant's */
        CHECK_EQ(offer_from(behind, 0), keep != 0 ? SKY_STATUS_OK : SKY_STATUS_BUSY);
        CHECK_EQ(offer_from(target, 0), keep != 0 ? SKY_STATUS_OK : SKY_STATUS_REFUSED);
        CHECK_EQ(offer_from(ground, 0), SKY_STATUS_OK);
    }
    /* Of two that move a block to each other the one with the lower address goes first: by plane, then by slot. */
    rig_open(&a, between, 64, 1472);
    rig_put(&a, &block, 0);
    CHECK_EQ(migrate_block(&block, before, 0, 0), SKY_STATUS_OK);
    CHECK_EQ(offer_from(before, 0), SKY_STATUS_BUSY);
    rig_open(&a, target, 64, 1472);
    rig_put(&a, &block, 0);
    CHECK_EQ(migrate_block(&block, between, 0, 0), SKY_STATUS_OK);
    CHECK_EQ(offer_from(between, 0), SKY_STATUS_BUSY);
    CHECK_EQ(migrate_block(&block, behind, 0, 0), SKY_STATUS_OK); /* one more job with the block */
    CHECK_EQ(offer_from(behind, 0), SKY_STATUS_REFUSED);
}

static void test_ends_when_the_way_is_gone(void)
{
    const fx_block_t next = {6, 0, 2, 1000, 2000};

    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    put_all(&a, &next, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    answer(away, SKY_STATUS_REFUSED, SKY_OP_PUT); /* not this block */
    CHECK_EQ(jobs(), 1);
    answer(nobody, SKY_STATUS_UNREACHABLE, SKY_OP_PUT); /* none at all */
    CHECK_EQ(jobs(), 0);
    CHECK(all_at(&a, &block, 0, 1) && all_at(&a, &next, 0, 1));
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
    RUN(test_who_may_answer);
    RUN(test_two_jobs_at_a_time);
    RUN(test_all_blocks_only_from_those_who_may);
    RUN(test_guards_what_is_being_moved);
    RUN(test_ends_when_the_way_is_gone);
    RUN(test_crossing_loses_nothing);
    free(a.memory);
    free(b.memory);
    return CHECK_RESULT();
}
