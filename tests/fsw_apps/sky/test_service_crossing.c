/**
 * @file
 * sky_service_migrate.c and sky_service_guard.c: who may move what, and two satellites that move the same block to each other.
 */
#include "migrate_rig.h"

static void test_all_blocks_only_from_those_who_may(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    a.svc.core.cfg.migrate_all_from_ground = false;
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

/* The satellite itself has no link towards the target: its own router says so. */
static void test_ends_when_there_is_no_way_from_here(void)
{
    open_both(64, 1472, 0);
    put_all(&a, &block, 0, 1);
    CHECK_EQ(migrate(NULL, 0, away, 0, 0), SKY_STATUS_OK);
    SKY_Service_Unreachable(&a.svc, nobody); /* another target's way */
    CHECK_EQ(jobs(), 1);
    SKY_Service_Unreachable(&a.svc, away);
    CHECK_EQ(jobs(), 0);
    CHECK(all_at(&a, &block, 0, 1));
    rig_poll(&a, &next_us);
    CHECK_EQ(a.count, 0);
}

int main(void)
{
    RUN(test_all_blocks_only_from_those_who_may);
    RUN(test_guards_what_is_being_moved);
    RUN(test_ends_when_the_way_is_gone);
    RUN(test_ends_when_there_is_no_way_from_here);
    RUN(test_crossing_loses_nothing);
    free(a.memory);
    free(b.memory);
    return CHECK_RESULT();
}
