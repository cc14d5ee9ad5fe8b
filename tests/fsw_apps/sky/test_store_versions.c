/**
 * @file
 * sky_store.c: versions and contents of blocks under one key: which one stays, and that no two of them mix.
 */
#include "store_rig.h"

#define EXPIRES_US 1000u

/* The whole chunk or its first half. */
static SKY_Status_t put_as(const fx_block_t *block, uint32_t id, uint64_t version, uint32_t content, bool is_half)
{
    SKY_Packet_t pkt;

    fx_put(block, id, data, &pkt);
    if (is_half)
    {
        fx_part(&pkt, 0, pkt.length / 2u);
    }
    pkt.block_version = version;
    pkt.content       = content;
    return SKY_Store_Put(&store, EXPIRES_US, &pkt);
}

static void instance_is(uint64_t version, uint32_t content)
{
    uint64_t found_version = 0;
    uint32_t found_content = 0;
    uint8_t  key[SKY_KEY_BYTES];

    fx_key(key, one.number);
    const uint32_t block = SKY_Store_Find(&store, 0, key);

    CHECK(block != SKY_STORE_NONE);
    SKY_Store_Instance(&store, block, &found_version, &found_content);
    CHECK_EQ(found_version, version);
    CHECK_EQ(found_content, content);
}

static SKY_BlockInfo_t info_of(const fx_block_t *block)
{
    SKY_BlockInfo_t info = {0};
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, block->number);
    CHECK_EQ(SKY_Store_Block(&store, SKY_Store_Find(&store, 0, key), &info), SKY_STATUS_OK);
    return info;
}

static void test_a_newer_version_replaces(void)
{
    const fx_block_t newer = {1, 1, 2, 80, 160}; /* also of other lengths */

    open_store(8, 4);
    for (uint32_t id = 0; id < 4; ++id)
    {
        CHECK_EQ(put_as(&one, id, 7, 70, false), SKY_STATUS_OK);
    }
    CHECK_EQ(info_of(&one).version, 7);
    CHECK_EQ(info_of(&one).content, 70);
    CHECK_EQ(put_as(&newer, 1, 8, 80, false), SKY_STATUS_OK);
    CHECK(holds(&newer, 1));
    CHECK_EQ(info_of(&one).held, 1);
    CHECK_EQ(info_of(&one).stripe.chunk_total, 2);
    CHECK_EQ(info_of(&one).version, 8);
    CHECK_EQ(info_of(&one).content, 80);
    CHECK_EQ(store.counters.chunks, 1);
    CHECK_EQ(store.counters.blocks, 1);
    CHECK_EQ(store.evicted_count, 0); /* nobody else lost anything */
    CHECK_EQ(store.counters.evicted_chunks, 0);
}

/* Same name, same lengths, same chunk: the complete chunk of the old version does not stand for that of the new one. */
static void test_a_newer_version_with_the_same_bytes(void)
{
    open_store(8, 4);
    CHECK_EQ(put_as(&one, 0, 0, 0, false), SKY_STATUS_OK);
    CHECK_EQ(put_as(&one, 1, 0, 0, false), SKY_STATUS_OK);
    CHECK_EQ(put_as(&one, 0, 1, 0, false), SKY_STATUS_OK);
    CHECK(holds(&one, 0) && !has(&one, 1));
    CHECK_EQ(info_of(&one).version, 1);
}

static void test_an_older_version_changes_nothing(void)
{
    const fx_block_t older = {1, 1, 4, 100, 350};

    open_store(8, 4);
    CHECK_EQ(put_as(&one, 0, UINT64_MAX, 70, false), SKY_STATUS_OK);
    CHECK_EQ(put_as(&older, 0, UINT64_MAX - 1u, 70, false), SKY_STATUS_OLD_VERSION);
    CHECK_EQ(put_as(&older, 1, 0, 0, false), SKY_STATUS_OLD_VERSION);
    CHECK_EQ(put_as(&one, 0, 0, 0, false), SKY_STATUS_OLD_VERSION); /* also with the very bytes that are held */
    CHECK(holds(&one, 0) && !has(&one, 1));
    CHECK_EQ(store.counters.chunks, 1);
    CHECK_EQ(info_of(&one).version, UINT64_MAX);
}

/* Nobody is evicted for a chunk that is refused. */
static void test_an_older_version_evicts_nothing(void)
{
    open_store(2, 2);
    CHECK_EQ(put(&two, 0), SKY_STATUS_OK);
    CHECK_EQ(put_as(&one, 0, 5, 0, false), SKY_STATUS_OK);
    CHECK_EQ(put_as(&one, 1, 4, 0, false), SKY_STATUS_OLD_VERSION);
    CHECK(has(&two, 0));
    CHECK_EQ(put_as(&one, 1, 6, 0, false), SKY_STATUS_OK); /* in the place of the chunk that goes */
    CHECK(has(&two, 0) && has(&one, 1) && !has(&one, 0));
}

static void test_contents_of_one_version_do_not_mix(void)
{
    const fx_block_t other = {1, 1, 4, 100, 350};

    for (uint64_t version = 0; version < 2; ++version)
    {
        open_store(8, 4);
        CHECK_EQ(put_as(&one, 0, version, 70, false), SKY_STATUS_OK);
        CHECK_EQ(put_as(&other, 1, version, 71, false), SKY_STATUS_BAD_KEY);
        CHECK_EQ(put_as(&other, 1, version, 0, false), SKY_STATUS_BAD_KEY); /* none is another one */
        CHECK_EQ(put_as(&other, 0, version, 70, false), SKY_STATUS_BAD_KEY);
        CHECK_EQ(put_as(&one, 0, version, 70, false), SKY_STATUS_OK);
        CHECK_EQ(put_as(&one, 1, version, 70, false), SKY_STATUS_OK);
        CHECK(holds(&one, 0) && holds(&one, 1));
    }
}

/* Parts make no claim against their own version, but an older one may not take their place. */
static void test_parts(void)
{
    const fx_block_t other = {1, 1, 4, 100, 350};

    open_store(8, 4);
    CHECK_EQ(put_as(&one, 0, 5, 70, true), SKY_STATUS_OK);
    CHECK_EQ(put_as(&other, 0, 4, 71, false), SKY_STATUS_OLD_VERSION);
    instance_is(5, 70);
    CHECK_EQ(put_as(&other, 0, 5, 71, true), SKY_STATUS_OK);
    instance_is(5, 71);
    CHECK_EQ(store.counters.chunks, 1);
    CHECK_EQ(put_as(&one, 0, 6, 70, true), SKY_STATUS_OK);
    instance_is(6, 70);
    CHECK_EQ(SKY_Store_Expire(&store, EXPIRES_US, 10), 1);
    CHECK_EQ(put_as(&other, 0, 4, 71, false), SKY_STATUS_OK); /* without a block no version is remembered */
    instance_is(4, 71);
}

static uint32_t purge(SKY_StoreBounds_t bounds)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, one.number);
    return SKY_Store_Purge(&store, 0, key, &bounds);
}

static void test_find_and_purge(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_store(8, 4);
    fx_key(key, one.number);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 0, 0), SKY_STORE_NONE);
    CHECK_EQ(purge((SKY_StoreBounds_t){5, 0, SKY_SCHEDULE_STAYS}), 0);
    CHECK_EQ(put_as(&one, 0, 5, 70, false), SKY_STATUS_OK);
    const uint32_t block = SKY_Store_Find(&store, 0, key);

    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 0, 0), block);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 5, 0), block);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 0, 70), block);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 5, 70), block);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 4, 70), SKY_STORE_NONE);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 6, 0), SKY_STORE_NONE);
    CHECK_EQ(SKY_Store_FindInstance(&store, 0, key, 5, 71), SKY_STORE_NONE);
    CHECK_EQ(purge((SKY_StoreBounds_t){4, 0, SKY_SCHEDULE_STAYS}), 0);
    CHECK(has(&one, 0));
    CHECK_EQ(purge((SKY_StoreBounds_t){5, 0, SKY_SCHEDULE_STAYS}), 1);
    CHECK_EQ(put_as(&one, 0, 5, 70, false), SKY_STATUS_OK);
    CHECK_EQ(purge((SKY_StoreBounds_t){6, 0, SKY_SCHEDULE_STAYS}), 1);
    CHECK_EQ(put_as(&one, 0, 5, 70, false), SKY_STATUS_OK);
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 1);
    CHECK(!has(&one, 0));
}

/* What is held is of version 5 and content 70, and kept for row 3. */
static void test_a_purge_goes_by_version_content_and_epoch(void)
{
    static const struct
    {
        SKY_StoreBounds_t bounds;
        bool              goes;
    } cases[] = {
        {{5, 70, 3}, true},
        {{5, 0, 3}, true},
        {{0, 70, 3}, true},
        {{0, 0, SKY_SCHEDULE_STAYS}, true},
        {{5, 70, 4}, true},
        {{5, 71, SKY_SCHEDULE_STAYS}, false}, /* another content of the same version */
        {{0, 71, SKY_SCHEDULE_STAYS}, false},
        {{5, 70, 2}, false}, /* it waits for a row to come */
        {{0, 0, 0}, false},
        {{4, 70, SKY_SCHEDULE_STAYS}, false}, /* it is newer */
        {{6, 71, 0}, true},                   /* it is older, whatever else it is */
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        for (uint32_t is_half = 0; is_half < 2u; ++is_half)
        {
            SKY_Packet_t pkt;

            open_store(8, 4);
            fx_put(&one, 0, data, &pkt);
            if (is_half != 0u)
            {
                fx_part(&pkt, 0, pkt.length / 2u);
            }
            pkt.block_version = 5;
            pkt.content       = 70;
            pkt.epoch         = 3;
            CHECK_EQ(SKY_Store_Put(&store, EXPIRES_US, &pkt), SKY_STATUS_OK);
            CHECK_EQ(purge(cases[i].bounds), cases[i].goes && is_half == 0u ? 1 : 0);
            CHECK_EQ(store.counters.chunks, cases[i].goes ? 0 : 1);
        }
    }
}

/* What never moves stays, unless a purge means whatever epoch; what lies in the window of the moment has none that could spare it. */
static void test_a_purge_spares_what_never_moves(void)
{
    for (uint32_t stays = 0; stays < 2u; ++stays)
    {
        SKY_Packet_t pkt;

        open_store(8, 4);
        fx_put(&one, 0, data, &pkt);
        pkt.epoch = stays != 0u ? SKY_SCHEDULE_STAYS : SKY_SCHEDULE_NONE;
        CHECK_EQ(SKY_Store_Put(&store, EXPIRES_US, &pkt), SKY_STATUS_OK);
        CHECK_EQ(purge((SKY_StoreBounds_t){0, 0, SKY_SCHEDULE_STAYS - 1u}), 1u - stays);
        CHECK_EQ(purge((SKY_StoreBounds_t){0, 0, SKY_SCHEDULE_STAYS}), stays);
    }
}

static void test_tells_the_version_that_it_evicted(void)
{
    open_store(1, 1);
    CHECK_EQ(put_as(&one, 0, 5, 70, false), SKY_STATUS_OK);
    CHECK_EQ(put(&two, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 1);
    CHECK_EQ(store.evicted[0].held, 1);
    CHECK_EQ(store.evicted[0].version, 5);
}

int main(void)
{
    RUN(test_a_newer_version_replaces);
    RUN(test_a_newer_version_with_the_same_bytes);
    RUN(test_an_older_version_changes_nothing);
    RUN(test_an_older_version_evicts_nothing);
    RUN(test_contents_of_one_version_do_not_mix);
    RUN(test_parts);
    RUN(test_find_and_purge);
    RUN(test_a_purge_goes_by_version_content_and_epoch);
    RUN(test_a_purge_spares_what_never_moves);
    RUN(test_tells_the_version_that_it_evicted);
    free(memory);
    return CHECK_RESULT();
}
