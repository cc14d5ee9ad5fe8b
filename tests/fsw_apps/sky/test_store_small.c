/**
 * @file
 * The chunk store with small chunks beside large ones: how many there is room for, what goes when there is none, and random
 * operations of all sizes against a model that follows the store: it checks what the store says it evicted, and then compares
 * everything that is left.
 */
#include "check.h"
#include "fixture.h"

#define MEMORY     (16u << 20) /* bytes of a satellite's store */
#define LARGE      340u
#define SMALL      25000u
#define SLOT_BYTES 1000u
#define SLOTS      60u
#define NUMBERS    260u
#define CHUNKS     5u
#define TENANTS    4u
#define ROUNDS     40000u
#define SHAPES     8u

typedef struct
{
    bool     here, complete;
    uint64_t expires_us;
} model_chunk_t;

typedef struct
{
    bool          here;
    uint32_t      row;
    uint64_t      used;
    model_chunk_t chunks[CHUNKS];
} model_block_t;

/* A block's number says its shape. */
static const fx_block_t shapes[SHAPES] = {{0, 0, 1, 1, 1},       {0, 0, 1, 136, 136},   {0, 0, 1, 200, 200}, {0, 0, 2, 60, 100},
                                          {0, 0, 1, 1000, 1000}, {0, 0, 5, 1000, 4100}, {0, 0, 3, 450, 905}, {0, 0, 2, 640, 700}};

static const SKY_Quotas_t quotas[] = {
    {.count = 0},
    {.count = 2, .others = {0, 10, 50}, .tenants = {{1, 40, 60}, {2, 20, 100}}},
    {.count = 1, .others = {0, 0, 80}, .tenants = {{2, 50, 50}}},
    {.count = 3, .others = {0, 0, 0}, .tenants = {{3, 10, 20}, {1, 30, 60}, {0, 20, 20}}},
};

static SKY_Store_t         store;
static void               *memory;
static uint8_t             data[8192];
static model_block_t       model[NUMBERS];
static const SKY_Quotas_t *rules = &quotas[0];
static uint64_t            model_clock, evicted, with_mates, refused, expired;
static uint64_t            random_state = 20261128;

static void open_store(const SKY_StoreCfg_t *cfg)
{
    const size_t bytes = SKY_Store_MemoryBytes(cfg);

    free(memory);
    memory = malloc(bytes);
    CHECK(memory != NULL && SKY_Store_Init(&store, cfg, memory, bytes, 11));
}

static SKY_Status_t put(const fx_block_t *block, uint32_t id)
{
    SKY_Packet_t pkt;

    fx_put(block, id, data, &pkt);
    return SKY_Store_Put(&store, 0, &pkt);
}

static bool holds(const fx_block_t *block, uint32_t tenant, uint32_t id)
{
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, block->number);
    fx_fill(block, id, data);
    return SKY_Store_Peek(&store, SKY_Store_Find(&store, tenant, key), id, &view) == SKY_STATUS_OK &&
           view.len == fx_len(block, id) && memcmp(view.data, data, view.len) == 0;
}

/* ---- how many there is room for ---- */

static void open_large(void)
{
    SKY_StoreCfg_t cfg = {6144, 2};

    while (cfg.slot_count < SKY_STORE_SLOT_MAX && SKY_Store_MemoryBytes(&cfg) <= MEMORY)
    {
        ++cfg.slot_count;
    }
    --cfg.slot_count;
    open_store(&cfg);
}

/* The values are sealed: 100 bytes become 157. */
static void test_small_values_beside_large_blocks(void)
{
    const fx_block_t large = {SMALL, 0, LARGE, 6000, LARGE * 6000u};
    fx_block_t       small = {0, 0, 1, 157, 157};

    open_large();
    CHECK(store.cfg.slot_count >= 2650); /* chunks of 6,000 bytes, if there is nothing else */
    for (uint32_t id = 0; id < LARGE; ++id)
    {
        CHECK_EQ(put(&large, id), SKY_STATUS_OK);
    }
    for (small.number = 0; small.number < SMALL; ++small.number)
    {
        CHECK_EQ(put(&small, 0), SKY_STATUS_OK);
    }
    CHECK_EQ(store.counters.evicted_blocks, 0);
    CHECK(store.slab.used * 100u <= store.cfg.slot_count * 70u);
    for (small.number = 0; small.number < SMALL; ++small.number)
    {
        CHECK(holds(&small, 0, 0));
    }
    for (uint32_t id = 0; id < LARGE; ++id)
    {
        CHECK(holds(&large, 0, id));
    }
}

/* A store that is full of values makes room for a large block, and the other way round: by use, and whatever the sizes. */
static void test_sizes_make_room_for_each_other(void)
{
    fx_block_t large = {1000000, 0, 100, 6000, 600000};
    fx_block_t small = {0, 0, 1, 157, 157};

    open_large();
    for (; store.counters.evicted_blocks == 0; ++small.number)
    {
        CHECK_EQ(put(&small, 0), SKY_STATUS_OK);
    }
    CHECK(small.number > 40000);
    for (; large.number < 1000030; ++large.number)
    {
        for (uint32_t id = 0; id < 100; ++id)
        {
            CHECK_EQ(put(&large, id), SKY_STATUS_OK);
            CHECK(store.evicted_count <= SKY_STORE_EVICTS);
        }
    }
    CHECK(store.slab.used > store.cfg.slot_count - 100u);
    for (large.number = 1000029; large.number > 1000005; --large.number) /* 26 of 30 fit */
    {
        CHECK(holds(&large, 0, 0) && holds(&large, 0, 99));
    }
    for (small.number = 0; small.number < 25000; ++small.number)
    {
        CHECK_EQ(put(&small, 0), SKY_STATUS_OK);
        CHECK(store.evicted_count <= 1);
    }
    CHECK(holds(&small, 0, 0) == false);
    small.number = 0;
    CHECK(holds(&small, 0, 0));
    large.number = 1000029;
    CHECK(holds(&large, 0, 99));
}

/* A chunk of the block that is put shares a slot with others: it stays, and another slot is freed. */
static void test_a_block_does_not_evict_itself(void)
{
    const SKY_StoreCfg_t cfg   = {SLOT_BYTES, 3}; /* one of entries, one of small chunks, and one more */
    const fx_block_t     mixed = {900, 0, 2, 1000, 1020};
    const fx_block_t     whole = {901, 0, 1, 1000, 1000};
    fx_block_t           small = {0, 0, 1, 20, 20};

    open_store(&cfg);
    CHECK_EQ(put(&small, 0), SKY_STATUS_OK);
    CHECK_EQ(put(&mixed, 1), SKY_STATUS_OK); /* in the same slot */
    CHECK_EQ(put(&whole, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 0);
    CHECK_EQ(put(&mixed, 0), SKY_STATUS_OK);
    CHECK(holds(&mixed, 0, 0) && holds(&mixed, 0, 1));
    CHECK_EQ(store.evicted_count, 2);
    CHECK_EQ(put(&whole, 0), SKY_STATUS_OK);
    CHECK(!holds(&mixed, 0, 1));
}

static void test_a_put_evicts_a_bounded_number(void)
{
    const SKY_StoreCfg_t cfg   = {6144, 5};
    const fx_block_t     whole = {901, 0, 1, 6000, 6000};
    fx_block_t           small = {0, 0, 1, 20, 20};

    open_store(&cfg);
    for (; small.number < 64; ++small.number) /* two slots of entries, two of chunks */
    {
        CHECK_EQ(put(&small, 0), SKY_STATUS_OK);
    }
    CHECK_EQ(store.slab.used, 4);
    CHECK_EQ(put(&whole, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, 0);
    CHECK_EQ(store.slab.used, 5);
    const fx_block_t second = {902, 0, 1, 6000, 6000};

    CHECK_EQ(put(&second, 0), SKY_STATUS_OK);
    CHECK_EQ(store.evicted_count, SKY_SLAB_PARTS_MAX); /* all that shared the slot of the first */
    CHECK_EQ(store.evicted[0].held, 1);
    CHECK(holds(&whole, 0, 0) && holds(&second, 0, 0));
    for (small.number = 0; small.number < 64; ++small.number)
    {
        CHECK_EQ(holds(&small, 0, 0), small.number >= 32);
    }
}

/* ---- random operations ---- */

static uint32_t pick(uint32_t limit)
{
    return fx_below(&random_state, limit);
}

static fx_block_t block_of(uint32_t number)
{
    fx_block_t block = shapes[number % SHAPES];

    block.number = number;
    return block;
}

static uint32_t tenant_of(uint32_t number)
{
    return number / SHAPES % TENANTS;
}

static uint32_t row_of(uint32_t number)
{
    for (uint32_t i = 0; i < rules->count; ++i)
    {
        if (rules->tenants[i].tenant == tenant_of(number))
        {
            return i + 1u;
        }
    }
    return 0;
}

static void forget(uint32_t number)
{
    (void)memset(&model[number], 0, sizeof(model[number]));
}

static void forget_chunk(uint32_t number, uint32_t id)
{
    bool is_empty = true;

    model[number].chunks[id] = (model_chunk_t){0};
    for (uint32_t i = 0; i < CHUNKS; ++i)
    {
        is_empty = is_empty && !model[number].chunks[i].here;
    }
    if (is_empty)
    {
        forget(number);
    }
}

/* Take over what a put has evicted: the first was used longest ago of all of its row, and none is the block that was put. */
static void follow(uint32_t number)
{
    for (uint32_t i = 0; i < store.evicted_count; ++i)
    {
        uint32_t went = 0;

        (void)memcpy(&went, store.evicted[i].key, sizeof(went));
        CHECK(went < NUMBERS && went != number && model[went].here);
        CHECK_EQ(model[went].row, model[number].here ? model[number].row : row_of(number));
        for (uint32_t k = 0; k < NUMBERS && i == 0; ++k)
        {
            CHECK(k == number || !model[k].here || model[k].row != model[went].row || model[k].used >= model[went].used);
        }
        forget(went);
    }
    evicted += store.evicted_count;
    with_mates += store.evicted_count > 1 ? 1u : 0u;
}

/* A row that is below what is reserved for it may evict others, in which case they are of another row. */
static void follow_others(void)
{
    for (uint32_t i = 0; i < store.evicted_count; ++i)
    {
        uint32_t went = 0;

        (void)memcpy(&went, store.evicted[i].key, sizeof(went));
        CHECK(model[went].here);
        forget(went);
    }
    evicted += store.evicted_count;
}

static void do_put(uint64_t now_us)
{
    const uint32_t   number = pick(NUMBERS);
    const fx_block_t block  = block_of(number);
    const uint32_t   id     = pick(block.chunk_total);
    model_chunk_t   *chunk  = &model[number].chunks[id];
    const bool       is_new = !model[number].here;
    const uint32_t   row    = is_new ? row_of(number) : model[number].row;
    const uint32_t   before = store.tenants[row].used;
    const bool       below  = store.tenants[row].used < store.tenants[row].reserved;
    SKY_Packet_t     pkt;

    fx_put(&block, id, data, &pkt);
    pkt.tenant          = tenant_of(number);
    pkt.flags           = pick(20) == 0 ? SKY_FLAG_FREE : 0;
    const bool in_parts = pkt.length > 50u && pick(4) == 0;
    if (in_parts)
    {
        fx_part(&pkt, 0, 40);
    }
    const SKY_Status_t status = SKY_Store_Put(&store, now_us + 300u, &pkt);

    CHECK(status == SKY_STATUS_OK || status == SKY_STATUS_STORE_FULL);
    CHECK(pkt.flags == 0 || store.evicted_count == 0);
    if (below)
    {
        follow_others();
    }
    else
    {
        follow(number);
    }
    refused += status != SKY_STATUS_OK ? 1u : 0u;
    if (!is_new && pkt.flags == 0)
    {
        model[number].used = ++model_clock;
    }
    if (status != SKY_STATUS_OK)
    {
        return;
    }
    model[number].here = true;
    model[number].row  = row;
    model[number].used = is_new ? ++model_clock : model[number].used;
    if (!chunk->complete)
    {
        chunk->here       = true;
        chunk->complete   = !in_parts;
        chunk->expires_us = now_us + 300u;
    }
    CHECK(store.tenants[row].used <= store.tenants[row].most || store.tenants[row].used <= before);
}

static void do_use(void)
{
    const uint32_t number = pick(NUMBERS);
    uint8_t        key[SKY_KEY_BYTES];
    uint32_t       block;

    fx_key(key, number);
    block = SKY_Store_Find(&store, tenant_of(number), key);
    CHECK_EQ(block != SKY_STORE_NONE, model[number].here);
    SKY_Store_Use(&store, block);
    model[number].used = model[number].here ? ++model_clock : 0;
}

static void do_forget(void)
{
    const uint32_t number = pick(NUMBERS);
    const uint32_t id     = pick(CHUNKS);
    const bool     held   = model[number].chunks[id].complete;
    uint8_t        key[SKY_KEY_BYTES];

    fx_key(key, number);
    if (pick(2) == 0)
    {
        (void)SKY_Store_Purge(&store, tenant_of(number), key, 0);
        forget(number);
    }
    else
    {
        CHECK_EQ(SKY_Store_Drop(&store, SKY_Store_Find(&store, tenant_of(number), key), id), held);
        if (held)
        {
            forget_chunk(number, id);
        }
    }
}

static void do_expire(uint64_t now_us)
{
    uint32_t gone = 0;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        for (uint32_t id = 0; id < CHUNKS; ++id)
        {
            const model_chunk_t *chunk = &model[i].chunks[id];

            if (chunk->here && !chunk->complete && now_us >= chunk->expires_us)
            {
                forget_chunk(i, id);
                ++gone;
            }
        }
    }
    CHECK_EQ(SKY_Store_Expire(&store, now_us, SLOTS), gone);
    expired += gone;
}

static void new_quotas(void)
{
    rules = &quotas[pick(sizeof(quotas) / sizeof(quotas[0]))];
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        model[i].row = model[i].row != 0 ? row_of(i) : 0;
    }
    CHECK(SKY_Store_SetQuotas(&store, rules));
}

static void compare(void)
{
    uint32_t        blocks = 0, chunks = 0, complete = 0, walked = 0, cursor = 0, used = 0, promised = 0;
    uint64_t        bytes = 0, before = UINT64_MAX;
    SKY_StoreWalk_t walk = {0, 0};
    SKY_BlockInfo_t info;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        const fx_block_t block = block_of(i);

        blocks += model[i].here ? 1u : 0u;
        for (uint32_t id = 0; id < block.chunk_total; ++id)
        {
            CHECK_EQ(holds(&block, tenant_of(i), id), model[i].chunks[id].complete);
            chunks += model[i].chunks[id].here ? 1u : 0u;
            complete += model[i].chunks[id].complete ? 1u : 0u;
            bytes += model[i].chunks[id].complete ? fx_len(&block, id) : 0u;
        }
    }
    CHECK_EQ(store.counters.blocks, blocks);
    CHECK_EQ(store.counters.chunks, chunks);
    CHECK_EQ(store.counters.partial, chunks - complete);
    CHECK_EQ(store.counters.bytes, bytes);
    CHECK_EQ(store.counters.evicted_blocks, evicted);
    while (SKY_Store_NextUsed(&store, &walk, &info))
    {
        uint32_t number = 0;

        (void)memcpy(&number, info.key, sizeof(number));
        CHECK(model[number].used < before);
        before = model[number].used;
        ++walked;
    }
    while (SKY_Store_NextBlock(&store, &cursor, &info))
    {
        CHECK_EQ(SKY_Store_Find(&store, info.tenant, info.key), cursor - 1u);
        --walked;
    }
    CHECK_EQ(walked, 0);
    for (uint32_t row = 0; row < store.tenant_count; ++row)
    {
        const SKY_StoreTenant_t *tenant = &store.tenants[row];

        used += tenant->used;
        promised += tenant->used > tenant->reserved ? tenant->used : tenant->reserved;
    }
    CHECK_EQ(store.slab.used, used);
    CHECK_EQ(store.promised, promised);
    CHECK(used <= SLOTS);
}

static void test_random_operations(void)
{
    const SKY_StoreCfg_t cfg    = {SLOT_BYTES, SLOTS};
    uint64_t             now_us = 0;

    open_store(&cfg);
    for (uint32_t round = 0; round < ROUNDS; ++round)
    {
        const uint32_t what = pick(100);

        now_us += pick(20);
        if (round > ROUNDS / 3u && round % 500u == 0)
        {
            new_quotas();
        }
        if (what < 70)
        {
            do_put(now_us);
        }
        else if (what < 92)
        {
            do_use();
        }
        else if (what < 98)
        {
            do_forget();
        }
        else
        {
            do_expire(now_us);
        }
        if (round % 32u == 0)
        {
            compare();
        }
    }
    CHECK(evicted > 5000 && with_mates > 500 && refused > 100 && expired > 100); /* the run has been where it should */
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        uint8_t key[SKY_KEY_BYTES];

        fx_key(key, i);
        (void)SKY_Store_Purge(&store, tenant_of(i), key, 0);
    }
    CHECK_EQ(store.slab.used + store.counters.blocks + store.counters.chunks, 0);
}

int main(void)
{
    RUN(test_small_values_beside_large_blocks);
    RUN(test_sizes_make_room_for_each_other);
    RUN(test_a_block_does_not_evict_itself);
    RUN(test_a_put_evicts_a_bounded_number);
    RUN(test_random_operations);
    free(memory);
    return CHECK_RESULT();
}
