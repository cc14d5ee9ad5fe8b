/**
 * @file
 * sky_store.c: what a store takes, refuses, evicts and forgets. Walks over what it holds: test_store_walk.c. Random operations
 * against a model: test_store_model.c.
 */
#include "store_rig.h"

static void test_init(void)
{
    const SKY_StoreCfg_t bad[] = {{0, 4},   {SKY_LIMIT_CHUNK_BYTES + 1, 4}, {100, 0},
                                  {100, 1}, {100, SKY_STORE_SLOT_MAX + 1},  {20000, SKY_STORE_SLOT_MAX}};
    const SKY_StoreCfg_t good  = {100, 5};
    const size_t         bytes = SKY_Store_MemoryBytes(&good);
    static uint8_t       region[8192];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
    {
        CHECK_EQ(SKY_Store_MemoryBytes(&bad[i]), 0);
        CHECK(!SKY_Store_Init(&store, &bad[i], region, sizeof(region), 0));
    }
    CHECK(bytes > 900 && bytes < sizeof(region) - 64);
    CHECK(!SKY_Store_Init(&store, &good, region, bytes - 1, 0));
    for (size_t shift = 0; shift < 64; ++shift) /* any alignment will do, and no byte behind is touched */
    {
        (void)memset(region, 0x5A, sizeof(region));
        CHECK(SKY_Store_Init(&store, &good, region + shift, bytes, 0));
        for (uint32_t i = 0; i < 4; ++i)
        {
            CHECK_EQ(put(&one, i), SKY_STATUS_OK);
        }
        CHECK(holds(&one, 3));
        for (size_t i = shift + bytes; i < sizeof(region); ++i)
        {
            CHECK(region[i] == 0x5A);
        }
    }
}

static void test_put_and_get(void)
{
    uint8_t         key[SKY_KEY_BYTES];
    SKY_BlockInfo_t info;
    SKY_ChunkView_t view;

    open_store(8, 4);
    fx_key(key, one.number);
    CHECK_EQ(SKY_Store_Block(&store, SKY_Store_Find(&store, 0, key), &info), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(SKY_Store_NextChunk(&store, SKY_Store_Find(&store, 0, key), 0), SKY_STORE_NONE);
    CHECK(!has(&one, 0));
    CHECK_EQ(put(&one, 3), SKY_STATUS_OK); /* the short one: the length of the others follows */
    CHECK_EQ(SKY_Store_Block(&store, SKY_Store_Find(&store, 0, key), &info), SKY_STATUS_OK);
    CHECK_EQ(info.stripe.chunk_len, 100);
    CHECK_EQ(info.stripe.chunk_total, 4);
    CHECK_EQ(info.stripe.block_len, 350);
    CHECK_EQ(info.held, 1);
    CHECK_EQ(info.tenant, 0);
    CHECK(memcmp(info.key, key, sizeof(key)) == 0);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
    CHECK(holds(&one, 3) && holds(&one, 1));
    CHECK(!has(&one, 0) && !has(&one, 2) && !has(&two, 1));
    CHECK_EQ(SKY_Store_Peek(&store, SKY_Store_Find(&store, 0, key), 1, &view), SKY_STATUS_OK);
    CHECK_EQ(SKY_Store_Peek(&store, SKY_Store_Find(&store, 0, key), 2, &view), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(SKY_Store_Get(&store, SKY_Store_Find(&store, 0, key), 2, &view), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(SKY_Store_Get(&store, SKY_Store_Find(&store, 1, key), 1, &view), SKY_STATUS_NOT_FOUND); /* another tenant's */
    CHECK_EQ(SKY_Store_NextChunk(&store, SKY_Store_Find(&store, 0, key), 0), 1);
    CHECK_EQ(SKY_Store_NextChunk(&store, SKY_Store_Find(&store, 0, key), 2), 3);
    CHECK_EQ(SKY_Store_NextChunk(&store, SKY_Store_Find(&store, 0, key), 4), SKY_STORE_NONE);
    CHECK_EQ(store.counters.bytes, 150);
    CHECK_EQ(store.counters.chunks, 2);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK); /* once more */
    CHECK_EQ(put_at(&one, 1, 0, 50, 0), SKY_STATUS_OK);
    CHECK_EQ(store.counters.chunks, 2);
    SKY_Store_Clear(&store);
    CHECK(!has(&one, 1));
    CHECK_EQ(store.counters.blocks + store.counters.chunks + store.counters.bytes, 0);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
}

static void test_epoch_is_the_newest(void)
{
    const uint32_t  epochs[]   = {5, 9, 7};
    const uint32_t  expected[] = {5, 9, 9};
    SKY_Packet_t    pkt;
    SKY_BlockInfo_t info;

    open_store(8, 4);
    for (uint32_t i = 0; i < 3; ++i)
    {
        fx_put(&one, i, data, &pkt);
        pkt.epoch = epochs[i];
        CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_OK);
        CHECK_EQ(SKY_Store_Block(&store, SKY_Store_Find(&store, 0, pkt.key), &info), SKY_STATUS_OK);
        CHECK_EQ(info.epoch, expected[i]);
    }
}

/* Each case spoils one field of a good PUT. */
static void test_lengths_that_lie(void)
{
    SKY_Packet_t good, pkt;

    open_store(8, 4);
    fx_put(&one, 1, data, &good);
#define SPOILED(field, value, status)                       \
    do                                                      \
    {                                                       \
        pkt       = good;                                   \
        pkt.field = (value);                                \
        CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), (status)); \
    } while (0)
    SPOILED(chunk_id, 4, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_id, UINT32_MAX, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_total, 0, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_total, 1, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_total, UINT32_MAX, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_len, 0, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_len, 101, SKY_STATUS_TOO_LARGE);
    SPOILED(chunk_len, 120, SKY_STATUS_BAD_CHUNK); /* three of these are more than the block */
    SPOILED(block_len, 0, SKY_STATUS_BAD_CHUNK);
    SPOILED(block_len, 99, SKY_STATUS_BAD_CHUNK);
    SPOILED(block_len, 300, SKY_STATUS_BAD_CHUNK);
    SPOILED(block_len, 401, SKY_STATUS_BAD_CHUNK);
    SPOILED(code_scheme, 1, SKY_STATUS_BAD_CHUNK);
    SPOILED(code_k, 1, SKY_STATUS_BAD_CHUNK);
    SPOILED(code_m, 1, SKY_STATUS_BAD_CHUNK);
    SPOILED(length, 0, SKY_STATUS_BAD_CHUNK);
    SPOILED(length, 101, SKY_STATUS_BAD_CHUNK);
    SPOILED(offset, 1, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_crc, good.chunk_crc ^ 1u, SKY_STATUS_BAD_CRC);
    fx_put(&one, 3, data, &good); /* the last is as long as the lengths say */
    SPOILED(block_len, 351, SKY_STATUS_BAD_CHUNK);
    SPOILED(chunk_total, 5, SKY_STATUS_BAD_CHUNK);
    pkt             = good;
    pkt.chunk_total = 2;
    pkt.chunk_id    = 1;
    pkt.block_len   = 151;
    CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_TOO_LARGE); /* it fits, its full-sized sister does not */
#undef SPOILED
    CHECK_EQ(store.counters.blocks, 0);
    CHECK_EQ(store.counters.chunks, 0);
    CHECK_EQ(store.slab.fresh_slot, 0);
}

static void test_contradictions(void)
{
    const fx_block_t other_len     = {1, 0, 4, 100, 351};
    const fx_block_t other_total   = {1, 0, 5, 100, 450};
    const fx_block_t other_chunk   = {1, 0, 4, 90, 350};
    const fx_block_t other_version = {1, 1, 4, 100, 350};

    open_store(8, 4);
    CHECK_EQ(put(&one, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&other_len, 1), SKY_STATUS_BAD_KEY);
    CHECK_EQ(put(&other_total, 1), SKY_STATUS_BAD_KEY);
    CHECK_EQ(put(&other_chunk, 1), SKY_STATUS_BAD_KEY);
    CHECK_EQ(put(&other_version, 0), SKY_STATUS_BAD_KEY); /* another chunk under this id */
    CHECK_EQ(put_at(&other_version, 0, 0, 50, 0), SKY_STATUS_BAD_KEY);
    CHECK(holds(&one, 0));
    CHECK_EQ(store.counters.chunks, 1);

    /* Nothing complete is contradicted: the newer declaration stands. */
    open_store(8, 4);
    CHECK_EQ(put_at(&one, 0, 0, 50, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&other_len, 1), SKY_STATUS_OK);
    CHECK(holds(&other_len, 1));
    CHECK_EQ(store.counters.chunks, 1);
    CHECK_EQ(store.counters.blocks, 1);
}

static void test_parts(void)
{
    const fx_block_t other_version = {1, 1, 4, 100, 350};

    open_store(8, 4);
    CHECK_EQ(put_at(&one, 0, 80, 20, 10), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 0, 0, 40, 10), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 0, 0, 40, 10), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 0, 0, 20, 10), SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(put_at(&one, 0, 20, 40, 10), SKY_STATUS_BAD_CHUNK);
    CHECK(!has(&one, 0));
    CHECK_EQ(store.counters.partial, 1);
    CHECK_EQ(store.counters.bytes, 0);
    CHECK_EQ(put_at(&one, 0, 40, 40, 10), SKY_STATUS_OK);
    CHECK_EQ(store.counters.partial, 0);
    CHECK(holds(&one, 0));

    /* The whole chunk over its parts, and over those of another version. */
    CHECK_EQ(put_at(&one, 1, 0, 50, 10), SKY_STATUS_OK);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
    CHECK(holds(&one, 1));
    CHECK_EQ(put_at(&other_version, 2, 0, 50, 10), SKY_STATUS_OK);
    CHECK_EQ(put(&one, 2), SKY_STATUS_OK);
    CHECK(holds(&one, 2));
    CHECK_EQ(store.counters.partial, 0);

    /* Parts of a newer version restart the chunk: the parts of the older one are not mixed in. */
    CHECK_EQ(put_at(&other_version, 3, 0, 25, 10), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 3, 25, 25, 10), SKY_STATUS_OK);
    CHECK(!has(&one, 3));
    CHECK_EQ(put_at(&one, 3, 0, 25, 10), SKY_STATUS_OK);
    CHECK(holds(&one, 3));
}

static void test_parts_with_wrong_sum(void)
{
    SKY_Packet_t pkt;

    open_store(8, 4);
    CHECK_EQ(put_at(&one, 0, 0, 50, 10), SKY_STATUS_OK);
    fx_put(&one, 0, data, &pkt);
    fx_part(&pkt, 50, 50);
    data[99] ^= 1u;
    CHECK_EQ(SKY_Store_Put(&store, 10, &pkt), SKY_STATUS_BAD_CRC);
    CHECK_EQ(store.counters.chunks, 0);
    CHECK_EQ(store.counters.blocks, 0);
    CHECK_EQ(put_at(&one, 0, 0, 50, 10), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 0, 50, 50, 10), SKY_STATUS_OK);
    CHECK(holds(&one, 0));
}

static void test_expiry(void)
{
    open_store(8, 4);
    CHECK_EQ(SKY_Store_Expire(&store, UINT64_MAX, 100), 0);
    CHECK_EQ(put(&one, 0), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 1, 0, 50, 1000), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 2, 0, 50, 1000), SKY_STATUS_OK);
    CHECK_EQ(put_at(&two, 0, 0, 45, 2000), SKY_STATUS_OK);
    CHECK_EQ(SKY_Store_Expire(&store, 999, 100), 0);
    CHECK_EQ(SKY_Store_Expire(&store, 1000, 1), 0); /* looks at the first slot, which is an entry, */
    CHECK_EQ(SKY_Store_Expire(&store, 1000, 1), 0); /* and at the next, which is complete */
    CHECK_EQ(SKY_Store_Expire(&store, 1000, 1), 1);
    CHECK_EQ(SKY_Store_Expire(&store, 1000, 100), 1);
    CHECK_EQ(store.counters.partial, 1);
    CHECK_EQ(store.counters.blocks, 2);
    CHECK_EQ(SKY_Store_Expire(&store, 5000, 100), 1);
    CHECK_EQ(store.counters.blocks, 1); /* a block without a chunk is none */
    CHECK_EQ(store.counters.expired_partial, 3);
    CHECK(holds(&one, 0));
}

static void test_eviction_takes_the_oldest_block(void)
{
    fx_block_t block = {0, 0, 2, 100, 200};

    open_store(6, 3);
    for (block.number = 10; block.number < 13; ++block.number)
    {
        CHECK_EQ(put(&block, 0), SKY_STATUS_OK);
        CHECK_EQ(put(&block, 1), SKY_STATUS_OK);
    }
    block.number = 10;
    CHECK(holds(&block, 1)); /* used: now 11 is the oldest */
    block.number = 12;
    CHECK(has(&block, 1)); /* no use */
    block.number = 13;
    CHECK_EQ(put(&block, 0), SKY_STATUS_OK);
    CHECK_EQ(store.counters.evicted_blocks, 1);
    CHECK_EQ(store.counters.evicted_chunks, 2);
    CHECK_EQ(put(&block, 1), SKY_STATUS_OK);
    block.number = 11;
    CHECK(!has(&block, 0) && !has(&block, 1));
    block.number = 14; /* the oldest is 12 */
    CHECK_EQ(put(&block, 0), SKY_STATUS_OK);
    block.number = 12;
    CHECK(!has(&block, 0));
    block.number = 10;
    CHECK(holds(&block, 0) && holds(&block, 1));
    CHECK_EQ(store.counters.evicted_blocks, 2);
}

static void test_a_wrong_packet_evicts_nothing(void)
{
    SKY_Packet_t pkt;

    open_store(3, 1);
    CHECK_EQ(put(&two, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&two, 1), SKY_STATUS_OK);
    CHECK_EQ(put(&two, 2), SKY_STATUS_OK);
    fx_put(&one, 0, data, &pkt);
    data[0] ^= 1u;
    CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_BAD_CRC);
    CHECK(holds(&two, 0) && holds(&two, 1) && holds(&two, 2));
}

static void test_full(void)
{
    open_store(3, 1);
    CHECK_EQ(put_at(&two, 0, 0, 45, 1000), SKY_STATUS_OK); /* only parts: evicted like any other */
    CHECK_EQ(put(&one, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
    CHECK_EQ(put(&one, 2), SKY_STATUS_OK);
    CHECK_EQ(store.counters.evicted_blocks, 1);
    CHECK_EQ(store.counters.evicted_chunks, 0);
    CHECK_EQ(put(&one, 3), SKY_STATUS_STORE_FULL);
    CHECK(holds(&one, 0) && holds(&one, 1) && holds(&one, 2));
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
    CHECK_EQ(put(&two, 1), SKY_STATUS_OK); /* another block has its turn */
    CHECK(!has(&one, 0));
}

/* Entries and chunks take what is there, in any proportion. */
static void test_no_table_runs_out_before_the_memory(void)
{
    fx_block_t block = {0, 0, 1, 20, 20}; /* two chunks to a slot */

    open_store(8, 2);
    for (block.number = 1; block.number < 50; ++block.number)
    {
        CHECK_EQ(put(&block, 0), SKY_STATUS_OK);
        CHECK(holds(&block, 0));
        CHECK(store.evicted_count <= 1); /* a slot for an entry, and a cell for a chunk */
    }
    CHECK_EQ(store.counters.blocks, 6);
    CHECK_EQ(store.slab.used, 9);
    CHECK_EQ(store.counters.evicted_blocks, 43);
    CHECK(store.slab.fresh_slot <= 10);
}

static void test_purge_and_drop(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_store(8, 4);
    fx_key(key, one.number);
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 0);
    CHECK(!SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 0));
    for (uint32_t i = 0; i < 4; ++i)
    {
        CHECK_EQ(put(&one, i), SKY_STATUS_OK);
    }
    CHECK_EQ(put_at(&two, 0, 0, 45, 10), SKY_STATUS_OK);
    CHECK(SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 1)); /* from the middle of the list, then its ends */
    CHECK(!SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 1));
    CHECK(SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 0));
    CHECK(SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 3));
    CHECK(holds(&one, 2));
    CHECK_EQ(store.counters.blocks, 2);
    CHECK(SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 2));
    CHECK_EQ(store.counters.blocks, 1);
    CHECK_EQ(put(&one, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&one, 1), SKY_STATUS_OK);
    CHECK_EQ(put_at(&one, 2, 0, 50, 10), SKY_STATUS_OK);
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 2);
    fx_key(key, two.number);
    CHECK(!SKY_Store_Drop(&store, SKY_Store_Find(&store, 0, key), 0)); /* parts only */
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 0);
    CHECK_EQ(store.counters.blocks + store.counters.chunks + store.counters.partial + store.counters.bytes, 0);
}

typedef struct
{
    uint32_t hash, id;
} hashed_t;

static int by_hash(const void *a, const void *b)
{
    const uint32_t x = ((const hashed_t *)a)->hash;
    const uint32_t y = ((const hashed_t *)b)->hash;

    return (x > y) - (x < y);
}

#define HASHED 400000u

/* Two names with one 32-bit hash; with 400,000 names some eighteen pairs are to be expected. */
static bool find_twins(hashed_t *all, uint32_t *first, uint32_t *second)
{
    qsort(all, HASHED, sizeof(*all), by_hash);
    for (uint32_t i = 1; i < HASHED; ++i)
    {
        if (all[i].hash == all[i - 1].hash)
        {
            *first  = all[i - 1].id;
            *second = all[i].id;
            return true;
        }
    }
    return false;
}

static void test_chunks_and_blocks_with_one_hash(void)
{
    hashed_t  *all = malloc(HASHED * sizeof(*all));
    fx_block_t a   = {0, 0, HASHED, 1, HASHED}, b;
    uint64_t   name[5];
    uint32_t   first = 0, second = 0;

    CHECK(all != NULL);
    open_store(8, 4);
    for (uint32_t i = 0; i < HASHED; ++i)
    {
        name[0]     = i; /* block 0 */
        all[i].id   = i;
        all[i].hash = SKY_Hash(store.secret, name, 1);
    }
    CHECK(find_twins(all, &first, &second));
    CHECK_EQ(put(&a, first), SKY_STATUS_OK);
    CHECK(!has(&a, second));
    CHECK_EQ(put(&a, second), SKY_STATUS_OK);
    CHECK(holds(&a, first) && holds(&a, second));

    for (uint32_t i = 0; i < HASHED; ++i)
    {
        name[0] = 0;
        fx_key((uint8_t *)&name[1], i);
        all[i].id   = i;
        all[i].hash = SKY_Hash(store.secret, name, 5);
    }
    CHECK(find_twins(all, &first, &second));
    a        = one;
    a.number = first;
    b        = one;
    b.number = second;
    CHECK_EQ(put(&a, 0), SKY_STATUS_OK);
    CHECK(!has(&b, 0));
    CHECK_EQ(put(&b, 0), SKY_STATUS_OK);
    CHECK(holds(&a, 0) && holds(&b, 0));
    free(all);
}

/* What made room is known until the next PUT; parts alone are nothing that others would miss. */
static void test_tells_what_it_evicted(void)
{
    const fx_block_t first = {1, 0, 2, 100, 200}, second = {2, 0, 1, 100, 100}, third = {3, 0, 1, 100, 100};
    uint8_t          key[SKY_KEY_BYTES];
    SKY_Packet_t     pkt;

    open_store(2, 2);
    CHECK_EQ(put(&first, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&first, 1), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 0);
    fx_put(&second, 0, data, &pkt);
    fx_part(&pkt, 0, 50);
    pkt.tenant = 7;
    CHECK_EQ(SKY_Store_Put(&store, 1000, &pkt), SKY_STATUS_OK);
    fx_key(key, 1);
    CHECK_EQ(store.evicted_count, 1);
    CHECK_EQ(store.evicted[0].held, 2);
    CHECK_EQ(store.evicted[0].tenant, 0);
    CHECK(memcmp(store.evicted[0].key, key, sizeof(key)) == 0);
    CHECK_EQ(put(&third, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 0);
    CHECK_EQ(put(&first, 0), SKY_STATUS_OK); /* in place of parts */
    CHECK_EQ(store.evicted_count, 1);
    CHECK_EQ(store.evicted[0].held, 0);
    CHECK_EQ(store.evicted[0].tenant, 7);
    CHECK_EQ(put(&second, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 1);
    CHECK_EQ(store.evicted[0].held, 1);
    pkt.chunk_id = 99;
    CHECK_EQ(SKY_Store_Put(&store, 1000, &pkt), SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(store.evicted_count, 0);
}

/* What is rebuilt takes free slots only, and was not used. */
static void test_only_into_free_slots(void)
{
    const fx_block_t first = {1, 0, 3, 100, 300}, second = {2, 0, 1, 100, 100}, third = {3, 0, 1, 100, 100};
    SKY_Packet_t     pkt;

    open_store(3, 2);
    CHECK_EQ(put(&first, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&second, 0), SKY_STATUS_OK);
    fx_put(&first, 1, data, &pkt);
    pkt.flags = SKY_FLAG_FREE;
    CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_OK);
    fx_put(&first, 2, data, &pkt);
    pkt.flags = SKY_FLAG_FREE;
    CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_STORE_FULL);
    fx_put(&third, 0, data, &pkt);
    pkt.flags = SKY_FLAG_FREE;
    CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_STORE_FULL);
    CHECK(holds(&first, 0) && holds(&first, 1) && holds(&second, 0));
    CHECK_EQ(store.counters.evicted_blocks, 0);
    CHECK_EQ(put(&third, 0), SKY_STATUS_OK);
    CHECK(!has(&first, 0) && !has(&first, 1) && holds(&second, 0)); /* the first was used before the second */
}

int main(void)
{
    RUN(test_init);
    RUN(test_put_and_get);
    RUN(test_epoch_is_the_newest);
    RUN(test_lengths_that_lie);
    RUN(test_contradictions);
    RUN(test_parts);
    RUN(test_parts_with_wrong_sum);
    RUN(test_expiry);
    RUN(test_eviction_takes_the_oldest_block);
    RUN(test_a_wrong_packet_evicts_nothing);
    RUN(test_tells_what_it_evicted);
    RUN(test_only_into_free_slots);
    RUN(test_full);
    RUN(test_no_table_runs_out_before_the_memory);
    RUN(test_purge_and_drop);
    RUN(test_chunks_and_blocks_with_one_hash);
    free(memory);
    return CHECK_RESULT();
}
