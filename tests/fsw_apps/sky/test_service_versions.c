/**
 * @file
 * Versions and contents of blocks in requests and their answers, and on the way from one satellite to another.
 */
#include "migrate_rig.h"

#define OLD     7u
#define NEW     8u
#define CONTENT 70u

static const fx_block_t newer = {5, 1, 50, 1000, 49500};

static void put_as(rig_t *rig, const fx_block_t *what, uint32_t id, uint64_t version, uint32_t content)
{
    uint8_t      data[1000];
    SKY_Packet_t pkt;

    fx_put(what, id, data, &pkt);
    pkt.block_version = version;
    pkt.content       = content;
    rig_serve(rig, &pkt);
}

static void put_all_as(rig_t *rig, const fx_block_t *what, uint64_t version, uint32_t content)
{
    for (uint32_t id = 0; id < what->chunk_total; ++id)
    {
        put_as(rig, what, id, version, content);
        CHECK_EQ(rig->count, 0);
    }
}

static void ask_as(rig_t *rig, uint8_t op, uint64_t version, uint32_t content)
{
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;

    CHECK(SKY_ChunkSet_Init(&set, 0, 1, 2));
    SKY_ChunkSet_Add(&set, 0);
    SKY_ChunkSet_Add(&set, 1);
    rig_request(&pkt, op, block.number);
    pkt.credit        = 10;
    pkt.payload       = payload;
    pkt.length        = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    pkt.block_version = version;
    pkt.content       = content;
    rig_serve(rig, &pkt);
}

static void purge_within(rig_t *rig, uint64_t version, uint32_t content, uint32_t epoch)
{
    SKY_Packet_t pkt;

    rig_request(&pkt, SKY_OP_PURGE, block.number);
    pkt.block_version = version;
    pkt.content       = content;
    pkt.epoch         = epoch;
    rig_serve(rig, &pkt);
    CHECK_EQ(rig_status(rig), SKY_STATUS_OK);
}

static void purge_up_to(rig_t *rig, uint64_t version)
{
    purge_within(rig, version, 0, SKY_SCHEDULE_STAYS);
}

static void test_put_is_told_what_is_held(void)
{
    rig_open(&a, home, 64, 1472);
    put_as(&a, &newer, 0, NEW, CONTENT);
    CHECK_EQ(a.count, 0);
    put_as(&a, &block, 0, OLD, 1);
    CHECK_EQ(rig_status(&a), SKY_STATUS_OLD_VERSION);
    CHECK_EQ(a.out[0].pkt.block_version, NEW);
    CHECK_EQ(a.out[0].pkt.content, CONTENT);
    CHECK_EQ(a.svc.core.counters.errors[SKY_STATUS_OLD_VERSION], 1);
    put_as(&a, &block, 0, NEW, 1);
    CHECK_EQ(rig_status(&a), SKY_STATUS_BAD_KEY);
    CHECK_EQ(a.out[0].pkt.block_version, NEW);
    CHECK_EQ(a.out[0].pkt.content, CONTENT);
    CHECK(rig_holds(&a, &newer, 0));
    put_as(&a, &newer, 0, NEW, CONTENT);
    CHECK_EQ(a.count, 0);
    put_as(&a, &block, 0, NEW + 1u, 1);
    CHECK_EQ(a.count, 0);
    CHECK(rig_holds(&a, &block, 0));
}

static void test_get_is_of_one_content(void)
{
    const struct
    {
        uint64_t version;
        uint32_t content;
        bool     comes;
    } asked[] = {{0, 0, true},          {OLD, CONTENT, true},      {OLD, 0, true},   {0, CONTENT, true},
                 {NEW, CONTENT, false}, {OLD - 1, CONTENT, false}, {OLD, 71, false}, {0, 71, false}};

    rig_open(&a, home, 64, 1472);
    put_all_as(&a, &block, OLD, CONTENT);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); ++i)
    {
        ask_as(&a, SKY_OP_GET, asked[i].version, asked[i].content);
        CHECK_EQ(a.count, asked[i].comes ? 2 : 1);
        CHECK_EQ(a.out[0].pkt.status, asked[i].comes ? SKY_STATUS_OK : SKY_STATUS_NOT_FOUND);
        CHECK_EQ(a.out[0].pkt.block_version, OLD); /* what is here instead */
        CHECK_EQ(a.out[0].pkt.content, CONTENT);
    }
}

/* HAS tells what is here, whatever it is asked for: the asker compares. */
static void test_has_tells_the_version(void)
{
    rig_open(&a, home, 64, 1472);
    ask_as(&a, SKY_OP_HAS, NEW, 1);
    CHECK_EQ(rig_status(&a), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(a.out[0].pkt.block_version, 0);
    CHECK_EQ(a.out[0].pkt.content, 0);
    put_all_as(&a, &block, OLD, CONTENT);
    ask_as(&a, SKY_OP_HAS, NEW, 1);
    CHECK_EQ(rig_status(&a), SKY_STATUS_OK);
    CHECK_EQ(a.out[0].pkt.block_version, OLD);
    CHECK_EQ(a.out[0].pkt.content, CONTENT);
}

static void test_purge_spares_newer_versions(void)
{
    rig_open(&a, home, 64, 1472);
    put_all_as(&a, &block, NEW, CONTENT);
    purge_up_to(&a, OLD);
    CHECK_EQ(a.out[0].pkt.chunk_total, 0);
    CHECK_EQ(a.out[0].pkt.block_len, 0);
    CHECK_EQ(a.out[0].pkt.chunk_len, 0);
    CHECK_EQ(a.out[0].pkt.block_version, NEW);
    CHECK(rig_holds(&a, &block, 0));
    purge_up_to(&a, NEW);
    CHECK_EQ(a.out[0].pkt.chunk_total, 50);
    CHECK_EQ(a.out[0].pkt.block_len, block.block_len);
    put_all_as(&a, &block, NEW, CONTENT);
    purge_up_to(&a, 0);
    CHECK_EQ(a.out[0].pkt.chunk_total, 50);
    CHECK_EQ(a.store.counters.blocks, 0);
}

/* A purge means a content and a row: what is spared is described, and of what went so are the lengths. */
static void test_purge_spares_other_contents_and_rows_to_come(void)
{
    static const struct
    {
        uint32_t content, epoch;
        bool     goes;
    } cases[] = {{CONTENT + 1u, SKY_SCHEDULE_STAYS, false}, {CONTENT, 2, false}, {0, 0, false}, {CONTENT, 3, true}};

    rig_open(&a, home, 64, 1472);
    for (uint32_t id = 0; id < block.chunk_total; ++id)
    {
        uint8_t      data[1000];
        SKY_Packet_t pkt;

        fx_put(&block, id, data, &pkt);
        pkt.block_version = OLD;
        pkt.content       = CONTENT;
        pkt.epoch         = 3;
        rig_serve(&a, &pkt);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        const uint32_t gone = cases[i].goes ? block.chunk_total : 0u;

        purge_within(&a, OLD, cases[i].content, cases[i].epoch);
        CHECK_EQ(a.out[0].pkt.chunk_total, gone);
        CHECK_EQ(a.out[0].pkt.block_len, cases[i].goes ? block.block_len : 0);
        CHECK_EQ(a.out[0].pkt.block_version, OLD);
        CHECK_EQ(a.out[0].pkt.content, CONTENT);
        CHECK_EQ(a.out[0].pkt.epoch, 3);
        CHECK_EQ(a.svc.core.counters.purges, gone);
        CHECK(rig_holds(&a, &block, 0) == !cases[i].goes);
    }
    purge_within(&a, OLD, CONTENT, 3); /* nothing is here any more */
    CHECK_EQ(a.out[0].pkt.chunk_total, 0);
    CHECK_EQ(a.out[0].pkt.block_version, 0);
    CHECK_EQ(a.out[0].pkt.content, 0);
    CHECK_EQ(a.out[0].pkt.epoch, 0);
}

static void test_moves_with_version_and_content(void)
{
    SKY_BlockInfo_t info;
    uint8_t         key[SKY_KEY_BYTES];

    open_both(64, 1472, 0);
    put_all_as(&a, &block, OLD, CONTENT);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    (void)run(50);
    CHECK(all_at(&b, &block, 0, 1) && none_at(&a, &block));
    fx_key(key, block.number);
    CHECK_EQ(SKY_Store_Block(&b.store, SKY_Store_Find(&b.store, 0, key), &info), SKY_STATUS_OK);
    CHECK_EQ(info.version, OLD);
    CHECK_EQ(info.content, CONTENT);
}

/* Which schedule a chunk was placed for is kept with it, that of the newest PUT; answers tell it, and it goes along. */
static void test_keeps_the_track(void)
{
    SKY_BlockInfo_t info;
    SKY_Packet_t    pkt;
    uint8_t         data[1000];
    uint8_t         key[SKY_KEY_BYTES];

    open_both(64, 1472, 0);
    put_all_as(&a, &block, OLD, CONTENT);
    for (uint8_t track = 3; track <= 4u; ++track)
    {
        fx_put(&block, 0, data, &pkt);
        pkt.block_version = OLD;
        pkt.content       = CONTENT;
        pkt.track         = track;
        rig_serve(&a, &pkt);
        CHECK_EQ(a.count, 0);
        ask_as(&a, SKY_OP_HAS, 0, 0);
        CHECK_EQ(rig_status(&a), SKY_STATUS_OK);
        CHECK_EQ(a.out[0].pkt.track, track);
    }
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    (void)run(50);
    fx_key(key, block.number);
    CHECK_EQ(SKY_Store_Block(&b.store, SKY_Store_Find(&b.store, 0, key), &info), SKY_STATUS_OK);
    CHECK_EQ(info.track, 4);
}

/* The target has another version: an older one is replaced, a newer one stays, and so does another content. */
static void test_meets_another_version(void)
{
    open_both(64, 1472, 0);
    put_all_as(&a, &newer, NEW, CONTENT);
    put_all_as(&b, &block, OLD, CONTENT);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    (void)run(50);
    CHECK(all_at(&b, &newer, 0, 1) && none_at(&a, &newer));

    open_both(64, 1472, 0);
    put_all_as(&a, &block, OLD, CONTENT);
    put_all_as(&b, &newer, NEW, CONTENT);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    (void)run(50);
    CHECK(all_at(&b, &newer, 0, 1) && all_at(&a, &block, 0, 1)); /* it was asked for, and is no handover: nothing goes */
    CHECK_EQ(a.svc.core.counters.migrated_out, 0);

    open_both(64, 1472, 0);
    put_all_as(&a, &block, OLD, CONTENT);
    put_all_as(&b, &newer, OLD, CONTENT + 1u);
    CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
    (void)run(50);
    CHECK(all_at(&b, &newer, 0, 1) && all_at(&a, &block, 0, 1));
}

/* A block is replaced while it moves: what the target acknowledges of the old one is not forgotten here, and the new one follows. */
static void test_is_replaced_on_its_way(void)
{
    for (uint32_t kind = 0; kind < 2; ++kind)
    {
        open_both(64, 1472, 0);
        put_all_as(&a, &block, OLD, CONTENT);
        CHECK_EQ(migrate_block(&block, away, 0, 0), SKY_STATUS_OK);
        if (kind == 0)
        {
            put_all_as(&a, &newer, NEW, CONTENT);
        }
        else
        {
            purge_up_to(&a, 0);
            put_all_as(&a, &newer, OLD, CONTENT + 1u);
        }
        (void)run(100);
        for (uint32_t id = 0; id < newer.chunk_total; ++id)
        {
            CHECK(rig_holds(&a, &newer, id) || rig_holds(&b, &newer, id));
        }
        CHECK(kind == 1 || all_at(&b, &newer, 0, 1));
    }
}

int main(void)
{
    RUN(test_put_is_told_what_is_held);
    RUN(test_get_is_of_one_content);
    RUN(test_has_tells_the_version);
    RUN(test_purge_spares_newer_versions);
    RUN(test_purge_spares_other_contents_and_rows_to_come);
    RUN(test_moves_with_version_and_content);
    RUN(test_keeps_the_track);
    RUN(test_meets_another_version);
    RUN(test_is_replaced_on_its_way);
    free(a.memory);
    free(b.memory);
    return CHECK_RESULT();
}
