/**
 * @file
 * sky_store_tenants.c: quotas, and who makes room for whom. test_store_model.c tries all of it at random.
 */
#include "store_rig.h"

#define SLOTS 20u

static SKY_Status_t put_of(uint32_t tenant, uint32_t number, uint32_t chunks, uint32_t id)
{
    const fx_block_t block = {number, 0, chunks, 100, chunks * 100u};
    SKY_Packet_t     pkt;

    fx_put(&block, id, data, &pkt);
    pkt.tenant = tenant;
    return SKY_Store_Put(&store, 0, &pkt);
}

/* Put @p count blocks of one chunk, numbered from @p first. */
static void flood(uint32_t tenant, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i)
    {
        (void)put_of(tenant, first + i, 1, 0);
    }
}

/* Count the blocks of one chunk that a tenant has, of those numbered from @p first. */
static uint32_t count_of(uint32_t tenant, uint32_t first, uint32_t count)
{
    uint32_t found = 0;
    uint8_t  key[SKY_KEY_BYTES];

    for (uint32_t i = 0; i < count; ++i)
    {
        fx_key(key, first + i);
        found += SKY_Store_Has(&store, SKY_Store_Find(&store, tenant, key), 0) ? 1u : 0u;
    }
    return found;
}

static void set(const SKY_Quotas_t *quotas)
{
    CHECK(SKY_Store_SetQuotas(&store, quotas));
}

static void test_unsound_quotas(void)
{
    static const SKY_Quotas_t unsound[] = {
        {.count = SKY_LIMIT_TENANTS + 1u, .others = {0, 0, 100}},
        {.count = 1, .others = {0, 0, 101}, .tenants = {{1, 0, 1}}},
        {.count = 1, .others = {0, 2, 1}, .tenants = {{1, 0, 1}}},
        {.count = 1, .others = {0, 0, 100}, .tenants = {{1, 51, 50}}},
        {.count = 1, .others = {0, 0, 100}, .tenants = {{1, 0, UINT32_MAX}}},
        {.count = 1, .others = {0, 1, 100}, .tenants = {{1, 100, 100}}},
        {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 60, 60}, {2, 41, 60}}},
        {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 0, 60}, {1, 0, 60}}},
    };
    SKY_Quotas_t sound = {.count = SKY_LIMIT_TENANTS, .others = {0, 4, 100}};

    open_store(SLOTS, SLOTS);
    for (uint32_t i = 0; i < sizeof(unsound) / sizeof(unsound[0]); ++i)
    {
        CHECK(!SKY_Store_SetQuotas(&store, &unsound[i]));
        CHECK_EQ(store.tenant_count, 1);
    }
    for (uint32_t i = 0; i < SKY_LIMIT_TENANTS; ++i)
    {
        sound.tenants[i] = (SKY_Quota_t){i, 6, 6};
    }
    set(&sound);
    CHECK_EQ(store.tenant_count, SKY_STORE_TENANTS);
    CHECK_EQ(store.tenants[1].slots.reserved, 1); /* 6 % of 20 are 1.2 */
    CHECK_EQ(store.tenants[1].slots.most, 2);
}

/* A flood of blocks of one byte once made all others' blocks unreadable. */
static void test_a_flood_stays_among_its_own(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 30}, .tenants = {{1, 50, 100}, {2, 0, 40}}};

    open_store(SLOTS, SLOTS);
    set(&quotas);
    flood(1, 100, 8);
    flood(2, 200, 8);
    flood(9, 1000, 500);
    CHECK_EQ(count_of(1, 100, 8), 8);
    CHECK_EQ(count_of(2, 200, 8), 8);
    CHECK_EQ(count_of(9, 1000, 500), 2);
    CHECK_EQ(count_of(9, 1498, 2), 2); /* the newest */
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].evicted_chunks, 498);
    CHECK_EQ(store.tenants[1].evicted_chunks + store.tenants[2].evicted_chunks, 0);
    flood(1, 108, 2); /* what is reserved is there at once */
    CHECK_EQ(count_of(1, 100, 10), 10);
    CHECK_EQ(count_of(9, 1498, 2), 2);
    CHECK_EQ(store.tenants[1].evicted_chunks, 0);
}

/* Parts are charged like chunks: a slot is a slot. */
static void test_parts_are_charged(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 20}, .tenants = {{1, 50, 80}}};
    const fx_block_t          block  = {1, 0, 19, 100, 1900};

    open_store(SLOTS, SLOTS);
    set(&quotas);
    flood(1, 100, 16);
    for (uint32_t id = 0; id < 4; ++id)
    {
        CHECK_EQ(put_at(&block, id, 0, 50, 1000), SKY_STATUS_OK);
    }
    CHECK_EQ(put_at(&block, 4, 0, 50, 1000), SKY_STATUS_STORE_FULL);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].slots.used, 4);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].refused, 1);
    CHECK_EQ(count_of(1, 100, 16), 16);
    CHECK_EQ(SKY_Store_Expire(&store, 1000, SLOTS), 4);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].slots.used, 0);
}

/* Entries for blocks are shared out as slots are. */
static void test_blocks_are_charged(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 100}, .tenants = {{1, 50, 100}}};

    open_store(SLOTS, 4);
    set(&quotas);
    flood(9, 1000, 100);
    CHECK_EQ(store.counters.blocks, 2);
    CHECK_EQ(put_of(1, 1, 3, 0), SKY_STATUS_OK);
    CHECK_EQ(put_of(1, 2, 3, 0), SKY_STATUS_OK);
    flood(9, 1000, 100);
    CHECK_EQ(count_of(1, 1, 2), 2);
    CHECK_EQ(count_of(9, 1000, 100), 2);
    CHECK_EQ(put_of(1, 3, 3, 0), SKY_STATUS_OK); /* its own oldest goes */
    CHECK_EQ(count_of(1, 1, 3), 2);
    CHECK_EQ(count_of(9, 1000, 100), 2);
}

static void test_without_a_reserve_there_may_be_no_room(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 0, 100}, {2, 10, 100}}};

    open_store(SLOTS, SLOTS);
    set(&quotas);
    flood(1, 100, 40);
    CHECK_EQ(count_of(1, 100, 40), 18); /* two are reserved */
    CHECK_EQ(put_of(9, 1, 1, 0), SKY_STATUS_STORE_FULL);
    CHECK_EQ(count_of(1, 100, 40), 18);
    CHECK_EQ(put_of(2, 1, 2, 0), SKY_STATUS_OK);
    CHECK_EQ(put_of(2, 1, 2, 1), SKY_STATUS_OK);
    CHECK_EQ(put_of(2, 2, 1, 0), SKY_STATUS_OK); /* its own other block goes */
    CHECK_EQ(count_of(2, 1, 1), 0);
    CHECK_EQ(count_of(1, 100, 40), 18);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].refused, 1);
}

static void test_nothing_is_allowed(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 0}, .tenants = {{1, 0, 100}}};

    open_store(SLOTS, SLOTS);
    flood(9, 1000, 3);
    set(&quotas);
    CHECK_EQ(count_of(9, 1000, 3), 3); /* what is there stays until its tenant puts */
    for (uint32_t i = 0; i < 4; ++i)
    {
        CHECK_EQ(put_of(9, 2000, 1, 0), SKY_STATUS_STORE_FULL);
        CHECK_EQ(count_of(9, 1000, 3), i < 3 ? 2 - i : 0);
    }
}

/* A new table leaves a tenant less: it shrinks by a block with each of its PUTs, and nobody else loses anything. */
static void test_a_tenant_shrinks(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 0, 25}, {2, 0, 100}}};
    uint32_t                  puts   = 0;

    open_store(SLOTS, SLOTS);
    flood(2, 200, 8);
    flood(1, 100, 12);
    set(&quotas);
    CHECK_EQ(store.tenants[1].slots.used, 12);
    while (puts < 100 && put_of(1, 500, 1, 0) != SKY_STATUS_OK)
    {
        ++puts;
    }
    CHECK_EQ(puts, 7);
    CHECK_EQ(store.tenants[1].slots.used, 5);
    CHECK_EQ(count_of(1, 108, 4), 4);
    CHECK_EQ(count_of(2, 200, 8), 8);
    CHECK_EQ(store.evicted.tenant, 1);
}

/* A new table reserves what others hold: they make room, and who is most above its reserve does so first. */
static void test_a_reserve_comes_later(void)
{
    static const SKY_Quotas_t quotas = {.count = 3, .others = {0, 0, 100}, .tenants = {{1, 40, 40}, {2, 20, 100}, {3, 0, 100}}};

    open_store(SLOTS, SLOTS);
    flood(3, 300, 8);
    flood(2, 200, 12);
    set(&quotas);
    flood(1, 100, 8);
    CHECK_EQ(count_of(1, 100, 8), 8);
    CHECK_EQ(count_of(2, 200, 12), 8); /* 8 and 8 above their reserves, then by turns */
    CHECK_EQ(count_of(3, 300, 8), 4);
    CHECK_EQ(count_of(2, 204, 8), 8); /* the oldest went */
    CHECK_EQ(put_of(3, 400, 1, 0), SKY_STATUS_OK);
    CHECK_EQ(count_of(3, 300, 8), 3);
}

/* The same where it is entries for blocks that are missing. */
static void test_a_reserve_of_blocks_comes_later(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 50, 100}, {2, 0, 100}}};

    open_store(SLOTS, 4);
    flood(2, 200, 4);
    set(&quotas);
    CHECK_EQ(put_of(1, 1, 1, 0), SKY_STATUS_OK);
    CHECK_EQ(put_of(1, 2, 1, 0), SKY_STATUS_OK);
    CHECK_EQ(count_of(2, 200, 4), 2);
    CHECK_EQ(count_of(2, 202, 2), 2);
}

static void test_clear_keeps_quotas(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 100}, .tenants = {{1, 50, 50}}};

    open_store(SLOTS, SLOTS);
    set(&quotas);
    flood(1, 100, 12);
    CHECK_EQ(store.tenants[1].evicted_chunks, 2);
    SKY_Store_Clear(&store);
    CHECK_EQ(store.tenants[1].slots.used, 0);
    CHECK_EQ(store.tenants[1].blocks.used, 0);
    CHECK_EQ(store.tenants[1].slots.reserved, 10);
    CHECK_EQ(store.tenants[1].evicted_chunks, 2); /* as the store's */
    flood(9, 1000, 20);
    CHECK_EQ(count_of(9, 1000, 20), 10);
}

int main(void)
{
    RUN(test_unsound_quotas);
    RUN(test_a_flood_stays_among_its_own);
    RUN(test_parts_are_charged);
    RUN(test_blocks_are_charged);
    RUN(test_without_a_reserve_there_may_be_no_room);
    RUN(test_nothing_is_allowed);
    RUN(test_a_tenant_shrinks);
    RUN(test_a_reserve_comes_later);
    RUN(test_a_reserve_of_blocks_comes_later);
    RUN(test_clear_keeps_quotas);
    free(memory);
    return CHECK_RESULT();
}
