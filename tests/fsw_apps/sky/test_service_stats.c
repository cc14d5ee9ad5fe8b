/**
 * @file
 * sky_service.c: STATS, over the wire.
 */
#include "rig.h"

#define ALL UINT64_MAX

static rig_t            rig;
static const SKY_Addr_t self  = {1, 1};
static const fx_block_t block = {5, 0, 50, 1000, 49500}; /* the last chunk has 500 bytes */

static uint64_t stat(uint32_t index)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < 8; ++i)
    {
        value = value << 8 | rig.out[0].pkt.payload[8 * index + i];
    }
    return value;
}

static void test_stats(void)
{
    const fx_block_t other = {5, 1, 50, 1000, 49500};
    SKY_Packet_t     req;

    rig_open(&rig, self, 11, 1472); /* ten chunks, and an entry */
    for (uint32_t i = 40; i < 50; ++i)
    {
        rig_put(&rig, &block, i);
    }
    rig_put(&rig, &other, 45);
    rig_ask(&rig, SKY_OP_GET, block.number, 38, 1, 5, ALL, 20);
    rig.now_us += 3456789;
    SKY_Service_CountError(&rig.svc, SKY_STATUS_BAD_VERSION);
    SKY_Service_CountError(&rig.svc, SKY_STATUS_COUNT); /* no such status: not counted, not written anywhere */
    rig_request(&req, SKY_OP_STATS, 0);
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ(rig.out[0].pkt.length, SKY_STATS_KVC_COUNT * 8u);
    CHECK_EQ(stat(SKY_STATS_KVC_UPTIME_MS), 3456);
    CHECK_EQ(stat(SKY_STATS_KVC_STORE_BYTES), 11000);
    CHECK_EQ(stat(SKY_STATS_KVC_USED_BYTES), 11000);
    CHECK_EQ(stat(SKY_STATS_KVC_CHUNKS), 10);
    CHECK_EQ(stat(SKY_STATS_KVC_BLOCKS), 1);
    CHECK_EQ(stat(SKY_STATS_KVC_BYTES), 9500);
    CHECK_EQ(stat(SKY_STATS_KVC_PUTS), 10);
    CHECK_EQ(stat(SKY_STATS_KVC_GETS), 1);
    CHECK_EQ(stat(SKY_STATS_KVC_HITS), 3);
    CHECK_EQ(stat(SKY_STATS_KVC_MISSES), 2);
    CHECK_EQ(stat(SKY_STATS_KVC_REQUESTS), 13);
    CHECK_EQ(stat(SKY_STATS_KVC_ERR_KEY), 1);
    CHECK_EQ(stat(SKY_STATS_KVC_ROW), SKY_SCHEDULE_NONE);
    CHECK_EQ(stat(SKY_STATS_KVC_ROWS), 0);
    CHECK_EQ(stat(SKY_STATS_KVC_ERR_VERSION), 1);
    CHECK_EQ(stat(SKY_STATS_KVC_EVICTIONS), 0);

    const fx_block_t next = {6, 0, 1, 1000, 1000};
    rig_put(&rig, &next, 0);
    rig_serve(&rig, &req);
    CHECK_EQ(stat(SKY_STATS_KVC_EVICTIONS), 10);
    SKY_Service_ResetCounters(&rig.svc);
    rig_serve(&rig, &req);
    CHECK_EQ(stat(SKY_STATS_KVC_EVICTIONS), 0);
    CHECK_EQ(stat(SKY_STATS_KVC_REQUESTS), 1);
    CHECK_EQ(stat(SKY_STATS_KVC_BLOCKS), 1); /* what is there stays */
}

/* Two chunks of 32 bytes fit into one slot, as an entry of a block has to fit, too. */
static void test_stats_of_tiny_slots(void)
{
    const SKY_StoreCfg_t large = {1000, 11}, tiny = {32, 3};
    const fx_block_t     four = {5, 0, 4, 32, 128};
    SKY_Packet_t         req;

    rig_open(&rig, self, large.slot_count, 1472);
    CHECK(SKY_Store_Init(&rig.store, &tiny, rig.memory, SKY_Store_MemoryBytes(&large), 3));
    for (uint32_t i = 0; i < 4u; ++i)
    {
        rig_put(&rig, &four, i);
    }
    rig_request(&req, SKY_OP_STATS, 0);
    rig_serve(&rig, &req);
    CHECK_EQ(stat(SKY_STATS_KVC_CHUNKS), 4);
    CHECK_EQ(stat(SKY_STATS_KVC_BYTES), 128);
    CHECK_EQ(stat(SKY_STATS_KVC_USED_BYTES), 96);
}

/* Counter @p index of the record at @p place of the answer at hand. */
static uint64_t tenant_stat(uint32_t place, uint32_t index)
{
    return stat(SKY_STATS_KVC_COUNT + place * SKY_STATS_TENANT_COUNT + index);
}

/* Ask for records from @p first on, counted from 0. @return how many came */
static uint32_t ask_tenants(uint32_t first)
{
    SKY_Packet_t req;

    rig_request(&req, SKY_OP_STATS, 0);
    req.chunk_id = first + 1u;
    rig_serve(&rig, &req);
    CHECK_EQ(rig_status(&rig), SKY_STATUS_OK);
    CHECK_EQ((rig.out[0].pkt.length / 8u - SKY_STATS_KVC_COUNT) % SKY_STATS_TENANT_COUNT, 0);
    return (rig.out[0].pkt.length / 8u - SKY_STATS_KVC_COUNT) / SKY_STATS_TENANT_COUNT;
}

static void test_stats_of_tenants(void)
{
    SKY_Quotas_t     quotas = {.count = 2, .others = {0, 0, 50}, .tenants = {{7, 20, 40}, {UINT32_MAX, 0, 100}}};
    const fx_block_t next   = {6, 0, 1, 1000, 1000};

    rig_open(&rig, self, 10, 1472);
    CHECK_EQ(ask_tenants(0), 0);
    CHECK_EQ(stat(SKY_STATS_KVC_TENANTS), 0);
    CHECK(SKY_Store_SetQuotas(&rig.store, &quotas));
    for (uint32_t i = 40; i < 45; ++i)
    {
        rig_put(&rig, &block, i); /* tenant 0, one of the others: the fifth chunk finds no room, as the entry has a slot */
    }
    rig_put(&rig, &next, 0);
    CHECK_EQ(ask_tenants(0), 3);
    CHECK_EQ(stat(SKY_STATS_KVC_TENANTS), 3);
    CHECK_EQ(stat(SKY_STATS_KVC_ERR_STORE_FULL), 1);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_NUMBER), UINT64_C(1) << 32);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_RESERVED_BYTES), 0);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_MOST_BYTES), 5000);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_USED_BYTES), 2000);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_BLOCKS), 1);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_EVICTIONS), 4);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_REFUSED), 1);
    CHECK_EQ(tenant_stat(1, SKY_STATS_TENANT_NUMBER), 7);
    CHECK_EQ(tenant_stat(1, SKY_STATS_TENANT_RESERVED_BYTES), 2000);
    CHECK_EQ(tenant_stat(1, SKY_STATS_TENANT_MOST_BYTES), 4000);
    CHECK_EQ(tenant_stat(2, SKY_STATS_TENANT_NUMBER), UINT32_MAX);
    SKY_Service_ResetCounters(&rig.svc);
    CHECK_EQ(ask_tenants(0), 3);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_EVICTIONS) + tenant_stat(0, SKY_STATS_TENANT_REFUSED), 0);
    CHECK_EQ(ask_tenants(2), 1);
    CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_NUMBER), UINT32_MAX);
    CHECK_EQ(ask_tenants(3), 0);
    CHECK_EQ(ask_tenants(UINT32_MAX - 1u), 0);
    CHECK_EQ(ask_tenants(UINT32_MAX), 0); /* this is chunk id 0: counters only */

    /* More records than a packet has room for. */
    quotas.count = SKY_LIMIT_TENANTS;
    for (uint32_t i = 0; i < SKY_LIMIT_TENANTS; ++i)
    {
        quotas.tenants[i] = (SKY_Quota_t){1000 + i, 0, 100};
    }
    CHECK(SKY_Store_SetQuotas(&rig.store, &quotas));
    uint32_t first = ask_tenants(0);
    CHECK(first > 1 && first < SKY_STORE_TENANTS);
    while (first < SKY_STORE_TENANTS)
    {
        const uint32_t more = ask_tenants(first);

        CHECK(more > 0);
        CHECK_EQ(stat(SKY_STATS_KVC_TENANTS), SKY_STORE_TENANTS);
        CHECK_EQ(tenant_stat(0, SKY_STATS_TENANT_NUMBER), 1000 + first - 1u);
        first += more == 0 ? SKY_STORE_TENANTS : more;
    }
    CHECK_EQ(first, SKY_STORE_TENANTS);

    rig.svc.core.cfg.packet_bytes = SKY_SERVICE_PACKET_MIN; /* no room for a record */
    CHECK_EQ(ask_tenants(0), 0);
    CHECK_EQ(stat(SKY_STATS_KVC_TENANTS), SKY_STORE_TENANTS);
}

int main(void)
{
    RUN(test_stats);
    RUN(test_stats_of_tiny_slots);
    RUN(test_stats_of_tenants);
    free(rig.memory);
    return CHECK_RESULT();
}
