/**
 * @file
 * A large put beside small gets, on links of limited rate: how long a get of 3 bytes takes then, and how much many gets leave to the put.
 *
 * usage: test_fair [MEGABYTES of the put]
 */
#include "twin_rig.h"

#define FEW_PLANES          3u
#define FEW_SLOTS           5u
#define FEW                 (FEW_PLANES * FEW_SLOTS)
#define SERVERS             12u
#define CHUNK               6000u
#define TINY                3u
#define CLIENTS             50u
#define SAMPLES             30u
#define MANY                60000u
#define BYTES_OF_A_MEGABYTE 1000000u

static uint32_t put_bytes = 20u * BYTES_OF_A_MEGABYTE;

/* Links of a scenario. */
typedef struct
{
    const char   *name;
    SKYT_Uplink_t uplink;
    uint32_t      rate_kbps;
    uint32_t      ground_us; /* one way */
    uint32_t      parity;
} Links_t;

static const Links_t LINKS[] = {{"direct, 100 Mbit/s", SKYT_UPLINK_DIRECT, 100000, 3000, 0},
                                {"direct, 100 Mbit/s, parity", SKYT_UPLINK_DIRECT, 100000, 3000, 2},
                                {"direct, 20 Mbit/s", SKYT_UPLINK_DIRECT, 20000, 8000, 0},
                                {"over the centre, 200 Mbit/s", SKYT_UPLINK_CENTRE, 200000, 5000, 0}};

static SKYT_Op_t ops[MANY];
static uint32_t  op_count;

static void add(uint64_t time_us, SKYT_OpKind_t kind, uint32_t block)
{
    CHECK(op_count < MANY);
    ops[op_count++] = (SKYT_Op_t){time_us, (uint32_t)kind, block, 1, 600000, 0};
}

/* Block 0 is large; the others are small. */
static SKYT_Twin_t *create(const Links_t *links, uint32_t small_bytes, uint32_t smalls)
{
    static uint32_t     isl_us[FEW * SKY_ISL_COUNT];
    static uint32_t     ground_us[FEW];
    static SKYT_Block_t blocks[CLIENTS + 1u];
    const uint32_t      time_ms = 0;
    const int32_t       plane   = 2;
    const int32_t       slot    = 3;
    char                why[SKYT_TEXT_BYTES];
    const SKYT_Config_t config = {.seed             = 1,
                                  .start_us         = START_US,
                                  .planes           = FEW_PLANES,
                                  .slots            = FEW_SLOTS,
                                  .layout           = SKY_LAYOUT_ROTATION_HOP,
                                  .servers          = SERVERS,
                                  .parity           = links->parity,
                                  .uplink           = (uint32_t)links->uplink,
                                  .hosts            = 1,
                                  .tenants          = 1,
                                  .slot_bytes       = CHUNK,
                                  .slot_count       = put_bytes / CHUNK / (SERVERS - links->parity) + 4u * CLIENTS,
                                  .packet_bytes     = CHUNK + 200u,
                                  .credit           = SKY_DEFAULT_CREDIT,
                                  .part_lifetime_ms = 5000,
                                  .chunk_bytes      = CHUNK,
                                  .block_bytes      = put_bytes,
                                  .handover_ms      = 20000,
                                  .active_max       = CLIENTS + 1u,
                                  .packets_max      = 16384,
                                  .isl_kbps         = links->rate_kbps,
                                  .ground_kbps      = links->rate_kbps,
                                  .queue_ms         = 500,
                                  .hello_ms         = 10000,
                                  .livelock_steps   = UINT32_MAX};
    SKYT_Twin_t        *twin   = SKYT_Create(&config, why);

    CHECK(twin != NULL);
    CHECK(SKYT_SetRows(twin, &time_ms, &plane, &slot, 1));
    for (uint32_t i = 0; i <= smalls; ++i)
    {
        blocks[i].block_len = i == 0 ? put_bytes : small_bytes;
    }
    CHECK(SKYT_AddBlocks(twin, blocks, smalls + 1u));
    for (uint32_t i = 0; i < FEW; ++i)
    {
        ground_us[i] = links->ground_us;
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            isl_us[i * SKY_ISL_COUNT + link] = 4000;
        }
    }
    SKYT_SetDelays(twin, 0, isl_us, ground_us);
    return twin;
}

/* Run to the end. @return outcomes of all operations */
static const SKYT_Result_t *run(SKYT_Twin_t *twin)
{
    SKYT_Counters_t counters;
    uint32_t        count = 0;

    CHECK(SKYT_AddOps(twin, ops, op_count));
    (void)SKYT_Run(twin, START_US + 1000u * SECOND);
    SKYT_Counters(twin, &counters);
    show_violations(twin);
    CHECK(violations_of(&counters) == 0 && counters.hits == counters.gets && counters.puts_failed == 0);
    return SKYT_Results(twin, &count);
}

static int by_size(const void *one, const void *other)
{
    const uint32_t a = *(const uint32_t *)one;
    const uint32_t b = *(const uint32_t *)other;

    return a < b ? -1 : a > b;
}

/* Return the median, or the largest, of some numbers. */
static uint32_t of(uint32_t *numbers, uint32_t count, bool largest)
{
    qsort(numbers, count, sizeof(numbers[0]), by_size);
    return numbers[largest ? count - 1u : count / 2u];
}

/* Return how long the large put takes alone. */
static uint32_t alone_us(const Links_t *links)
{
    SKYT_Twin_t *twin = create(links, TINY, 1);

    op_count = 0;
    add(START_US + SECOND, SKYT_OP_PUT, 0);
    const uint32_t took_us = run(twin)[0].duration_us;

    SKYT_Destroy(twin);
    return took_us;
}

/* Gets of 3 bytes, one after the other, with the put and without. */
static void test_a_tiny_get_beside_a_large_put(void)
{
    for (uint32_t i = 0; i < sizeof(LINKS) / sizeof(LINKS[0]); ++i)
    {
        const uint32_t put_us = alone_us(&LINKS[i]);
        uint32_t       took[2][SAMPLES];
        uint32_t       beside_us = 0;

        for (uint32_t is_beside = 0; is_beside < 2u; ++is_beside)
        {
            SKYT_Twin_t *twin = create(&LINKS[i], TINY, SERVERS);

            op_count = 0;
            for (uint32_t block = 1; block <= SERVERS; ++block)
            {
                add(START_US + block * 10000u, SKYT_OP_PUT, block);
            }
            if (is_beside != 0u)
            {
                add(START_US + SECOND, SKYT_OP_PUT, 0);
            }
            for (uint32_t get = 0; get < SAMPLES; ++get)
            {
                add(START_US + SECOND + (get + 1u) * put_us / (SAMPLES + 2u), SKYT_OP_GET, 1u + get % SERVERS);
            }
            const SKYT_Result_t *results = run(twin);

            for (uint32_t get = 0; get < SAMPLES; ++get)
            {
                took[is_beside][get] = results[op_count - SAMPLES + get].duration_us;
            }
            beside_us = results[SERVERS].duration_us;
            SKYT_Destroy(twin);
        }
        const uint32_t usual_us  = of(took[0], SAMPLES, false);
        const uint32_t median_us = of(took[1], SAMPLES, false);
        const uint32_t most_us   = of(took[1], SAMPLES, true);

        (void)printf("  %s: a get of 3 bytes takes %u us alone, %u us beside the put, %u us at most: %.2f, %.2f; put %u ms "
                     "alone, %u beside\n",
                     LINKS[i].name, usual_us, median_us, most_us, (double)median_us / usual_us, (double)most_us / usual_us,
                     put_us / 1000u, beside_us / 1000u);
        CHECK(2u * median_us <= 3u * usual_us);
    }
}

/* Fifty clients, each with one get after the other. */
static void test_fifty_clients_leave_a_fifth_to_a_put(void)
{
    for (uint32_t i = 0; i < sizeof(LINKS) / sizeof(LINKS[0]); ++i)
    {
        const uint32_t alone = alone_us(&LINKS[i]);
        SKYT_Twin_t   *twin  = create(&LINKS[i], CHUNK, CLIENTS);
        uint64_t       got   = 0;

        op_count = 0;
        for (uint32_t block = 1; block <= CLIENTS; ++block)
        {
            add(START_US + block * 10000u, SKYT_OP_PUT, block);
        }
        add(START_US + SECOND, SKYT_OP_PUT, 0);
        while (op_count < MANY / 2u)
        {
            add(START_US + SECOND, SKYT_OP_GET, 1u + op_count % CLIENTS);
        }
        const SKYT_Result_t *results = run(twin);
        const uint32_t       put_us  = results[CLIENTS].duration_us;
        uint64_t             sum_us  = 0;

        for (uint32_t get = CLIENTS + 1u; get < op_count && sum_us < (uint64_t)CLIENTS * put_us; ++get)
        {
            sum_us += results[get].duration_us; /* all clients together are busy for so long */
            got += CHUNK;
        }
        CHECK(sum_us >= (uint64_t)CLIENTS * put_us);
        (void)printf("  %s: while the put takes %u ms (%u alone) gets bring %.1f MB: it has %.0f %% of the bytes\n",
                     LINKS[i].name, put_us / 1000u, alone / 1000u, (double)got / BYTES_OF_A_MEGABYTE,
                     100.0 * put_bytes / (double)(put_bytes + got));
        CHECK(put_bytes * 5u >= put_bytes + got);
        SKYT_Destroy(twin);
    }
}

int main(int argc, char **argv)
{
    put_bytes = argc > 1 ? (uint32_t)atoi(argv[1]) * BYTES_OF_A_MEGABYTE : put_bytes;
    RUN(test_a_tiny_get_beside_a_large_put);
    RUN(test_fifty_clients_leave_a_fifth_to_a_put);
    return CHECK_RESULT();
}
