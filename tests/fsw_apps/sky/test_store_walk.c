/**
 * @file
 * sky_store.c: walks over the blocks of a store, over the chunks of a block, and over blocks by last use.
 */
#include "store_rig.h"

static void test_walk_over_blocks(void)
{
    fx_block_t      block  = {0, 0, 1, 100, 100};
    uint32_t        cursor = 0;
    uint32_t        seen   = 0;
    SKY_BlockInfo_t info;

    open_store(8, 8);
    CHECK(!SKY_Store_NextBlock(&store, &cursor, &info));
    for (block.number = 0; block.number < 5; ++block.number)
    {
        CHECK_EQ(put(&block, 0), SKY_STATUS_OK);
    }
    CHECK_EQ(put_at(&two, 0, 0, 45, 10), SKY_STATUS_BAD_KEY); /* number 2 is taken */
    block.number = 7;
    CHECK_EQ(put_at(&block, 0, 0, 50, 10), SKY_STATUS_OK); /* not complete: left out */
    fx_key(info.key, 3);
    CHECK_EQ(SKY_Store_Purge(&store, 0, info.key, NULL), 1);
    while (SKY_Store_NextBlock(&store, &cursor, &info))
    {
        uint32_t number;

        (void)memcpy(&number, info.key, sizeof(number)); /* as fx_key writes it: on any processor */
        seen |= 1u << number;
        CHECK_EQ(info.held, 1);
        CHECK_EQ(info.stripe.chunk_len, 100);
        CHECK_EQ(SKY_Store_Find(&store, 0, info.key), cursor - 1u);
    }
    CHECK_EQ(seen, 0x17); /* 0, 1, 2, 4 */
}

static void test_walk_over_chunks(void)
{
    const fx_block_t block  = {3, 0, 6, 100, 600};
    uint32_t         cursor = 0;
    uint32_t         seen   = 0;
    uint32_t         id     = 0;
    uint8_t          key[SKY_KEY_BYTES];

    open_store(8, 8);
    fx_key(key, block.number);
    CHECK(!SKY_Store_EachChunk(&store, SKY_Store_Find(&store, 0, key), &cursor, &id));
    for (uint32_t i = 1; i < 6; i += 2)
    {
        CHECK_EQ(put(&block, i), SKY_STATUS_OK);
    }
    CHECK_EQ(put_at(&block, 4, 0, 50, 10), SKY_STATUS_OK); /* not complete: left out */
    while (SKY_Store_EachChunk(&store, SKY_Store_Find(&store, 0, key), &cursor, &id))
    {
        CHECK_EQ(seen & 1u << id, 0);
        seen |= 1u << id;
    }
    CHECK_EQ(seen, 0x2A); /* 1, 3, 5 */
}

/* The order of the walk by last use, as the numbers of its blocks; blocks of one digit. */
static uint32_t walk_on(SKY_StoreWalk_t *walk, uint32_t most)
{
    SKY_BlockInfo_t info;
    uint32_t        order = 0;
    uint8_t         key[SKY_KEY_BYTES];

    while (most-- > 0 && SKY_Store_NextUsed(&store, walk, &info))
    {
        uint32_t number = 1;

        for (fx_key(key, number); memcmp(key, info.key, sizeof(key)) != 0; fx_key(key, ++number))
        {
        }
        order = 10u * order + number;
    }
    return order;
}

static void test_walk_by_last_use(void)
{
    fx_block_t      some = {0, 0, 1, 50, 50};
    SKY_StoreWalk_t walk = {0, 0};
    uint8_t         key[SKY_KEY_BYTES];

    open_store(16, 16);
    CHECK_EQ(walk_on(&walk, 9), 0);
    for (some.number = 1; some.number <= 6; ++some.number)
    {
        CHECK_EQ(put(&some, 0), SKY_STATUS_OK);
    }
    some.number = 7;
    CHECK_EQ(put_at(&some, 0, 0, 25, 1000), SKY_STATUS_OK); /* in part: not listed */
    some.number = 2;
    CHECK(holds(&some, 0));
    CHECK_EQ(walk_on(&walk, 9), 265431);
    CHECK_EQ(walk_on(&walk, 9), 0);

    /* The block it is at goes, and its entry is taken anew. */
    (void)memset(&walk, 0, sizeof(walk));
    CHECK_EQ(walk_on(&walk, 2), 26);
    fx_key(key, 6);
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 1);
    CHECK_EQ(walk_on(&walk, 1), 5);
    fx_key(key, 5);
    CHECK_EQ(SKY_Store_Purge(&store, 0, key, NULL), 1);
    some.number = 8;
    CHECK_EQ(put(&some, 0), SKY_STATUS_OK);
    CHECK_EQ(walk_on(&walk, 1), 4);

    /* It is used: the walk goes on behind where it was. */
    some.number = 4;
    CHECK(holds(&some, 0));
    CHECK_EQ(walk_on(&walk, 9), 31);

    (void)memset(&walk, 0, sizeof(walk));
    CHECK_EQ(walk_on(&walk, 1), 4);
    SKY_Store_Clear(&store);
    CHECK_EQ(walk_on(&walk, 9), 0);
}

int main(void)
{
    RUN(test_walk_over_blocks);
    RUN(test_walk_over_chunks);
    RUN(test_walk_by_last_use);
    free(memory);
    return CHECK_RESULT();
}
