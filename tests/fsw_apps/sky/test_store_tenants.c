/**
 * @file
 * sky_store_tenants.c: quotas, and who makes room for whom. test_store_model.c tries all of it at random.
 */
#include "store_rig.h"

#define SLOTS 40u /* a block of one chunk takes two: its entry, and the chunk */

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

    open_store(SLOTS, 0);
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
    CHECK_EQ(store.tenants[1].reserved, 2); /* 6 % of 40 are 2.4 */
    CHECK_EQ(store.tenants[1].most, 3);
}

/* A flood of small blocks once made all others' blocks unreadable. */
static void test_a_flood_stays_among_its_own(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 30}, .tenants = {{1, 50, 100}, {2, 0, 40}}};

    open_store(SLOTS, 0);
    set(&quotas);
    flood(1, 100, 8);
    flood(2, 200, 8);
    flood(9, 1000, 500);
    CHECK_EQ(count_of(1, 100, 8), 8);
    CHECK_EQ(count_of(2, 200, 8), 8);
    CHECK_EQ(count_of(9, 1000, 500), 2); /* 40 slots less 20 that are reserved, and 16 of the second tenant */
    CHECK_EQ(count_of(9, 1498, 2), 2);   /* the newest */
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].evicted_chunks, 498);
    CHECK_EQ(store.tenants[1].evicted_chunks + store.tenants[2].evicted_chunks, 0);
    flood(1, 108, 2); /* what is reserved is there at once */
    CHECK_EQ(count_of(1, 100, 10), 10);
    CHECK_EQ(count_of(9, 1498, 2), 2);
    CHECK_EQ(store.tenants[1].evicted_chunks, 0);
}

/* Parts are charged like chunks, and entries as well. */
static void test_parts_are_charged(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 20}, .tenants = {{1, 50, 80}}};
    const fx_block_t          block  = {1, 0, 19, 100, 1900};

    open_store(SLOTS, 0);
    set(&quotas);
    flood(1, 100, 16);
    for (uint32_t id = 0; id < 7; ++id)
    {
        CHECK_EQ(put_at(&block, id, 0, 50, 1000), SKY_STATUS_OK);
    }
    CHECK_EQ(put_at(&block, 7, 0, 50, 1000), SKY_STATUS_STORE_FULL);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].used, 8);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].refused, 1);
    CHECK_EQ(count_of(1, 100, 16), 16);
    CHECK_EQ(SKY_Store_Expire(&store, 1000, SLOTS), 7);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].used, 0);
}

static void test_without_a_reserve_there_may_be_no_room(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 0, 100}, {2, 10, 100}}};

    open_store(SLOTS, 0);
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

    open_store(SLOTS, 0);
    flood(9, 1000, 3);
    set(&quotas);
    CHECK_EQ(count_of(9, 1000, 3), 3); /* what is there stays until its tenant puts */
    CHECK_EQ(put_of(9, 2000, 1, 0), SKY_STATUS_STORE_FULL);
    CHECK_EQ(count_of(9, 1000, 3), 0);
    CHECK_EQ(store.evicted_count, 3);
    CHECK_EQ(put_of(9, 2000, 1, 0), SKY_STATUS_STORE_FULL);
    CHECK_EQ(store.evicted_count, 0);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].refused, 2);
}

/* A new table leaves a tenant less: it shrinks with its PUTs, by so many blocks at most with each, and nobody else loses anything. */
static void test_a_tenant_shrinks(void)
{
    static const SKY_Quotas_t first  = {.count = 2, .others = {0, 0, 100}, .tenants = {{1, 0, 100}, {2, 0, 100}}};
    static const SKY_Quotas_t second = {.count = 2, .others = {0, 0, 100}, .tenants = {{2, 0, 100}, {1, 0, 5}}};

    open_store(200, 0);
    set(&first);
    flood(2, 200, 10);
    flood(1, 100, 90);
    set(&second);
    CHECK_EQ(store.tenants[1].used, 20);
    CHECK_EQ(store.tenants[1].blocks, 10);
    CHECK_EQ(store.tenants[2].used, 180);
    CHECK_EQ(put_of(1, 500, 1, 0), SKY_STATUS_STORE_FULL);
    CHECK_EQ(store.evicted_count, SKY_STORE_EVICTS);
    CHECK_EQ(store.evicted[0].tenant, 1);
    CHECK_EQ(count_of(1, 100, 90), 90 - SKY_STORE_EVICTS);
    CHECK_EQ(put_of(1, 500, 1, 0), SKY_STATUS_OK); /* four blocks and this one are 10 slots */
    CHECK_EQ(store.tenants[2].used, 10);
    CHECK_EQ(count_of(1, 186, 4), 4);
    CHECK_EQ(count_of(2, 200, 10), 10);
}

/* A new table reserves what others hold: they make room, and who is most above its reserve does so first. */
static void test_a_reserve_comes_later(void)
{
    static const SKY_Quotas_t first  = {.count = 2, .others = {0, 0, 100}, .tenants = {{2, 0, 100}, {3, 0, 100}}};
    static const SKY_Quotas_t second = {.count = 3, .others = {0, 0, 100}, .tenants = {{1, 40, 40}, {2, 20, 100}, {3, 0, 100}}};

    open_store(SLOTS, 0);
    set(&first);
    flood(3, 300, 8);
    flood(2, 200, 12);
    set(&second);
    flood(1, 100, 8);
    CHECK_EQ(count_of(1, 100, 8), 8);
    CHECK_EQ(count_of(2, 200, 12), 8); /* 16 slots each above their reserves, then by turns */
    CHECK_EQ(count_of(3, 300, 8), 4);
    CHECK_EQ(count_of(2, 204, 8), 8); /* the oldest went */
    CHECK_EQ(put_of(3, 400, 1, 0), SKY_STATUS_OK);
    CHECK_EQ(count_of(3, 300, 8), 3);
}

/* What was put while a tenant was one of the others stays among these: they may share slots. */
static void test_a_tenant_gets_a_row_of_its_own(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 50}, .tenants = {{1, 50, 50}}};
    static const SKY_Quotas_t none   = {.count = 0};

    open_store(SLOTS, 0);
    flood(1, 100, 5);
    flood(9, 1000, 5);
    set(&quotas);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].used, 20);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].blocks, 10);
    CHECK_EQ(store.tenants[1].used, 0);
    flood(1, 500, 10);
    CHECK_EQ(count_of(1, 500, 10), 10);
    CHECK_EQ(count_of(1, 100, 5), 5);
    CHECK_EQ(put_of(9, 1, 1, 0), SKY_STATUS_OK); /* the oldest of the others goes, which is the tenant's */
    CHECK_EQ(count_of(1, 100, 5), 4);
    CHECK_EQ(put_of(1, 104, 1, 0), SKY_STATUS_OK); /* a chunk that is here */
    CHECK_EQ(store.tenants[1].used, 20);
    set(&none);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].used, SLOTS);
    CHECK_EQ(store.tenants[SKY_STORE_OTHERS].blocks, 20);
}

/* Small chunks of two tenants share no slot, so that what one has makes room for it. */
static void test_tenants_share_no_slot(void)
{
    static const SKY_Quotas_t quotas = {.count = 2, .others = {0, 0, 0}, .tenants = {{1, 50, 50}, {2, 50, 50}}};

    open_store(SLOTS, 0);
    set(&quotas);
    for (uint32_t i = 0; i < 100; ++i)
    {
        const fx_block_t block = {i, 0, 1, 20, 20};
        SKY_Packet_t     pkt;

        fx_put(&block, 0, data, &pkt);
        pkt.tenant = 1u + i % 2u;
        CHECK_EQ(SKY_Store_Put(&store, 0, &pkt), SKY_STATUS_OK);
        CHECK(store.evicted_count == 0 || store.evicted[0].tenant == pkt.tenant);
    }
    CHECK_EQ(store.tenants[1].used, 20);
    CHECK_EQ(store.tenants[2].used, 20);
    CHECK_EQ(store.tenants[1].blocks, 13); /* and seven slots for their chunks */
    CHECK_EQ(store.tenants[2].blocks, 13);
}

static void test_clear_keeps_quotas(void)
{
    static const SKY_Quotas_t quotas = {.count = 1, .others = {0, 0, 100}, .tenants = {{1, 50, 50}}};

    open_store(SLOTS, 0);
    set(&quotas);
    flood(1, 100, 12);
    CHECK_EQ(store.tenants[1].evicted_chunks, 2);
    SKY_Store_Clear(&store);
    CHECK_EQ(store.tenants[1].used, 0);
    CHECK_EQ(store.tenants[1].blocks, 0);
    CHECK_EQ(store.tenants[1].reserved, 20);
    CHECK_EQ(store.tenants[1].evicted_chunks, 2); /* as the store's */
    flood(9, 1000, 20);
    CHECK_EQ(count_of(9, 1000, 20), 10);
}

int main(void)
{
    RUN(test_unsound_quotas);
    RUN(test_a_flood_stays_among_its_own);
    RUN(test_parts_are_charged);
    RUN(test_without_a_reserve_there_may_be_no_room);
    RUN(test_nothing_is_allowed);
    RUN(test_a_tenant_shrinks);
    RUN(test_a_reserve_comes_later);
    RUN(test_a_tenant_gets_a_row_of_its_own);
    RUN(test_tenants_share_no_slot);
    RUN(test_clear_keeps_quotas);
    free(memory);
    return CHECK_RESULT();
}
