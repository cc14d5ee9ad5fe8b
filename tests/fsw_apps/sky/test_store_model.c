/**
 * @file
 * sky_store.c against a model made of plain arrays: the same random operations on both, then everything that can be asked is
 * compared. The model knows no lists, no hashes and no sums; it counts, and finds the oldest block, by looking at all of them.
 */
#include "check.h"
#include "fixture.h"

#define NUMBERS    14u /* keys in use */
#define CHUNKS     5u  /* most chunks of a block */
#define SLOTS      39u /* an entry takes one, and so does each chunk: small ones, which share slots, are in test_store_small.c */
#define SLOT_BYTES 100u
#define PART_BYTES 40u
#define ROUNDS     60000u
#define TENANTS    5u   /* in use */
#define QUOTA_EACH 150u /* rounds with the same quotas */

typedef struct
{
    bool     here, complete;
    uint32_t version;
    uint32_t parts; /* bit per part */
    uint64_t expires_us;
} model_chunk_t;

typedef struct
{
    bool          here;
    uint32_t      row; /* of its tenant, or the others', among which it was put */
    uint32_t      shape;
    uint32_t      epoch;
    uint64_t      used; /* when last */
    model_chunk_t chunks[CHUNKS];
} model_block_t;

static const fx_block_t shapes[] = {{0, 0, 5, 100, 450}, {0, 0, 3, 90, 270}, {0, 0, 1, 70, 70}};

/* Quotas that follow one another: none, all reserved, nothing reserved, others that may have nothing, tenants that nobody is. */
static const SKY_Quotas_t quotas[] = {
    {.count = 0},
    {.count = 3, .others = {0, 10, 30}, .tenants = {{1, 40, 60}, {2, 30, 30}, {3, 20, 100}}},
    {.count = 2, .others = {0, 0, 50}, .tenants = {{4, 0, 70}, {0, 0, 20}}},
    {.count = 4, .others = {0, 0, 0}, .tenants = {{0, 25, 25}, {1, 25, 25}, {2, 25, 25}, {3, 20, 90}}},
    {.count = 2, .others = {0, 35, 100}, .tenants = {{77, 10, 20}, {4, 2, 3}}},
    {.count = 3, .others = {0, 0, 100}, .tenants = {{3, 0, 100}, {2, 0, 100}, {0, 0, 100}}},
};

static const SKY_Quotas_t *rules = &quotas[0];

static model_block_t model[NUMBERS];
static uint64_t      model_evicted[SKY_STORE_TENANTS], model_refused[SKY_STORE_TENANTS], foreign, refused;
static uint64_t      model_clock, evicted_blocks, evicted_chunks, expired;
static uint64_t      random_state = 20240607;
static SKY_Store_t   store;
static uint8_t       data[SLOT_BYTES];

static uint32_t pick(uint32_t limit)
{
    return fx_below(&random_state, limit);
}

static uint32_t model_count(const model_block_t *block, bool complete_only)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < CHUNKS; ++i)
    {
        count += block->here && block->chunks[i].here && (block->chunks[i].complete || !complete_only) ? 1u : 0u;
    }
    return count;
}

static uint32_t model_chunks(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        count += model_count(&model[i], false);
    }
    return count;
}

static uint32_t model_blocks(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        count += model[i].here ? 1u : 0u;
    }
    return count;
}

static void model_forget(model_block_t *block)
{
    (void)memset(block, 0, sizeof(*block));
}

/* ---- tenants ---- */

static uint32_t tenant_of(uint32_t number)
{
    return number % TENANTS;
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

static uint32_t reserved_of(uint32_t row)
{
    const SKY_Quota_t *quota = row == 0 ? &rules->others : &rules->tenants[row - 1u];

    return rules->count == 0 ? 0 : SLOTS * quota->reserved_percent / 100u;
}

static uint32_t most_of(uint32_t row)
{
    const SKY_Quota_t *quota = row == 0 ? &rules->others : &rules->tenants[row - 1u];

    return rules->count == 0 ? SLOTS : (SLOTS * quota->most_percent + 99u) / 100u;
}

static uint32_t blocks_of(uint32_t row)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        count += model[i].here && model[i].row == row ? 1u : 0u;
    }
    return count;
}

static uint32_t used_of(uint32_t row)
{
    uint32_t count = blocks_of(row);

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        count += model[i].row == row ? model_count(&model[i], false) : 0;
    }
    return count;
}

/* 0: there is room for so many slots more, 1: one of its own has to go, 2: another one */
static uint32_t room_of(uint32_t row, uint32_t more)
{
    uint32_t all = 0, promised = 0;

    for (uint32_t i = 0; i <= rules->count; ++i)
    {
        const uint32_t used = used_of(i);
        const uint32_t then = used + (i == row ? more : 0);

        all += used;
        promised += then > reserved_of(i) ? then : reserved_of(i);
    }
    if (used_of(row) + more > most_of(row) || (used_of(row) + more > reserved_of(row) && promised > SLOTS))
    {
        return 1;
    }
    return all + more > SLOTS ? 2 : 0;
}

static uint32_t greediest(void)
{
    uint32_t found = 0, most = 0;

    for (uint32_t i = 0; i <= rules->count; ++i)
    {
        if (used_of(i) > most + reserved_of(i))
        {
            most  = used_of(i) - reserved_of(i);
            found = i;
        }
    }
    CHECK(most > 0);
    return found;
}

/* Evict the oldest block of a tenant, but not @p except. */
static bool model_evict(uint32_t row, uint32_t except)
{
    model_block_t *oldest = NULL;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        if (model[i].here && i != except && model[i].row == row && (oldest == NULL || model[i].used < oldest->used))
        {
            oldest = &model[i];
        }
    }
    if (oldest == NULL)
    {
        return false;
    }
    ++evicted_blocks;
    evicted_chunks += model_count(oldest, true);
    model_evicted[row] += model_count(oldest, true);
    model_forget(oldest);
    return true;
}

static bool model_room(uint32_t number, bool is_new)
{
    const uint32_t row  = is_new ? row_of(number) : model[number].row;
    const uint32_t more = is_new ? 2u : 1u;
    uint32_t       room = room_of(row, more);
    bool           went = true;

    while (room != 0 && went)
    {
        foreign += room == 2 ? 1u : 0u;
        went = model_evict(room == 1 ? row : greediest(), number);
        room = room_of(row, more);
    }
    model_refused[row] += room != 0;
    refused += room != 0;
    return room == 0;
}

/* ---- operations ---- */

static void model_use(model_block_t *block)
{
    block->used = ++model_clock;
}

static SKY_Status_t model_put(uint32_t number, uint32_t version, uint32_t shape, uint32_t epoch, uint32_t id, uint32_t parts,
                              uint64_t expires_us)
{
    model_block_t *block  = &model[number];
    model_chunk_t *chunk  = &block->chunks[id];
    const uint32_t all    = (1u << ((fx_len(&shapes[shape], id) + PART_BYTES - 1) / PART_BYTES)) - 1u;
    const uint32_t held   = model_count(block, true);
    bool           is_new = false;

    if ((held > 0 && block->shape != shape) || (chunk->here && chunk->complete && chunk->version != version))
    {
        return SKY_STATUS_BAD_KEY;
    }
    if (block->here && block->shape != shape)
    {
        model_forget(block);
    }
    if (!block->here)
    {
        is_new = true;
        if (!model_room(number, true))
        {
            return SKY_STATUS_STORE_FULL;
        }
        block->here  = true;
        block->row   = row_of(number);
        block->shape = shape;
    }
    model_use(block);
    block->epoch = epoch > block->epoch ? epoch : block->epoch;
    if (chunk->here && chunk->complete)
    {
        return SKY_STATUS_OK;
    }
    if (!chunk->here && !is_new && !model_room(number, false))
    {
        return SKY_STATUS_STORE_FULL;
    }
    if (!chunk->here || chunk->version != version)
    {
        chunk->parts = 0;
    }
    chunk->here       = true;
    chunk->version    = version;
    chunk->expires_us = expires_us;
    chunk->parts |= parts;
    chunk->complete = chunk->parts == all;
    return SKY_STATUS_OK;
}

static void do_put(uint64_t now_us)
{
    const uint32_t number  = pick(NUMBERS);
    const uint32_t version = pick(8) == 0 ? 1 : 0;
    const uint32_t shape   = pick(10) == 0 ? pick(3) : number % 3;
    const uint32_t id      = pick(shapes[shape].chunk_total);
    fx_block_t     block   = shapes[shape];
    SKY_Packet_t   pkt;

    block.number  = number;
    block.version = version;
    fx_put(&block, id, data, &pkt);
    pkt.tenant           = tenant_of(number);
    pkt.epoch            = pick(100);
    const uint32_t count = (pkt.chunk_len + PART_BYTES - 1) / PART_BYTES;
    uint32_t       parts = (1u << count) - 1u;
    if (pick(2) == 0)
    {
        const uint32_t part = pick(count);
        const uint32_t left = pkt.chunk_len - part * PART_BYTES;

        fx_part(&pkt, part * PART_BYTES, left < PART_BYTES ? left : PART_BYTES);
        parts = 1u << part;
    }
    CHECK_EQ(SKY_Store_Put(&store, now_us + 200, &pkt), model_put(number, version, shape, pkt.epoch, id, parts, now_us + 200));
}

static void do_get(void)
{
    const uint32_t  number = pick(NUMBERS);
    const uint32_t  id     = pick(CHUNKS);
    model_block_t  *block  = &model[number];
    const bool      held   = block->here && block->chunks[id].complete;
    fx_block_t      shape  = shapes[block->shape];
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, number);
    CHECK_EQ(SKY_Store_Get(&store, SKY_Store_Find(&store, tenant_of(number), key), id, &view),
             held ? SKY_STATUS_OK : SKY_STATUS_NOT_FOUND);
    if (held)
    {
        model_use(block);
        shape.number  = number;
        shape.version = block->chunks[id].version;
        fx_fill(&shape, id, data);
        CHECK_EQ(view.len, fx_len(&shape, id));
        CHECK(memcmp(view.data, data, view.len) == 0);
        CHECK_EQ(view.crc32c, SKY_Crc32c(0, data, view.len));
        CHECK_EQ(view.crc16_from_zero, SKY_Crc16(0, data, view.len));
    }
}

static void do_purge(void)
{
    const uint32_t number = pick(NUMBERS);
    uint8_t        key[SKY_KEY_BYTES];

    fx_key(key, number);
    CHECK_EQ(SKY_Store_Purge(&store, tenant_of(number), key, NULL), model_count(&model[number], true));
    model_forget(&model[number]);
}

static void model_forget_chunk(model_block_t *block, uint32_t id)
{
    (void)memset(&block->chunks[id], 0, sizeof(block->chunks[id]));
    if (model_count(block, false) == 0)
    {
        model_forget(block);
    }
}

static void do_drop(void)
{
    const uint32_t number = pick(NUMBERS);
    const uint32_t id     = pick(CHUNKS);
    const bool     held   = model[number].here && model[number].chunks[id].complete;
    uint8_t        key[SKY_KEY_BYTES];

    fx_key(key, number);
    CHECK_EQ(SKY_Store_Drop(&store, SKY_Store_Find(&store, tenant_of(number), key), id), held);
    if (held)
    {
        model_forget_chunk(&model[number], id);
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
                model_forget_chunk(&model[i], id);
                ++gone;
            }
        }
    }
    expired += gone;
    CHECK_EQ(SKY_Store_Expire(&store, now_us, SLOTS), gone);
}

static void compare_block(uint32_t number)
{
    const model_block_t *block = &model[number];
    const uint32_t       held  = model_count(block, true);
    uint8_t              key[SKY_KEY_BYTES];
    SKY_BlockInfo_t      info;
    uint32_t             next = SKY_STORE_NONE;

    fx_key(key, number);
    for (uint32_t id = CHUNKS; id-- > 0;)
    {
        next = block->here && block->chunks[id].complete ? id : next;
        CHECK_EQ(SKY_Store_Has(&store, SKY_Store_Find(&store, tenant_of(number), key), id),
                 block->here && block->chunks[id].complete);
        CHECK_EQ(SKY_Store_NextChunk(&store, SKY_Store_Find(&store, tenant_of(number), key), id), next);
    }
    CHECK_EQ(SKY_Store_Block(&store, SKY_Store_Find(&store, tenant_of(number), key), &info),
             held > 0 ? SKY_STATUS_OK : SKY_STATUS_NOT_FOUND);
    if (held > 0)
    {
        CHECK_EQ(info.held, held);
        CHECK_EQ(info.epoch, block->epoch);
        CHECK_EQ(info.stripe.chunk_total, shapes[block->shape].chunk_total);
        CHECK_EQ(info.stripe.chunk_len, shapes[block->shape].chunk_len);
        CHECK_EQ(info.stripe.block_len, shapes[block->shape].block_len);
    }
}

/* All blocks with a complete chunk come once, the last used first, whoever's they are. */
static void compare_order(void)
{
    uint64_t        before = UINT64_MAX;
    uint32_t        walked = 0, number, with_chunks = 0;
    SKY_StoreWalk_t walk = {0, 0};
    SKY_BlockInfo_t info;

    while (SKY_Store_NextUsed(&store, &walk, &info))
    {
        (void)memcpy(&number, info.key, sizeof(number));
        CHECK_EQ(info.tenant, tenant_of(number));
        CHECK(model[number].used < before);
        before = model[number].used;
        ++walked;
    }
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        with_chunks += model_count(&model[i], true) > 0 ? 1u : 0u;
    }
    CHECK_EQ(walked, with_chunks);
}

static void compare_tenants(void)
{
    CHECK_EQ(store.tenant_count, rules->count + 1u);
    for (uint32_t row = 0; row <= rules->count; ++row)
    {
        const SKY_StoreTenant_t *tenant = &store.tenants[row];

        CHECK_EQ(tenant->reserved, reserved_of(row));
        CHECK_EQ(tenant->most, most_of(row));
        CHECK_EQ(tenant->used, used_of(row));
        CHECK_EQ(tenant->blocks, blocks_of(row));
        CHECK_EQ(tenant->evicted_chunks, model_evicted[row]);
        CHECK_EQ(tenant->refused, model_refused[row]);
    }
}

static void new_quotas(void)
{
    const SKY_Quotas_t *before = rules;

    rules = &quotas[pick(sizeof(quotas) / sizeof(quotas[0]))];
    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        model[i].row = model[i].here && model[i].row != 0 && before->count > 0 ? row_of(i) : 0;
    }
    CHECK(SKY_Store_SetQuotas(&store, rules));
    (void)memset(model_evicted, 0, sizeof(model_evicted));
    (void)memset(model_refused, 0, sizeof(model_refused));
}

static void compare(void)
{
    uint32_t        partial = 0, walked = 0, with_chunks = 0, cursor = 0;
    uint64_t        bytes = 0;
    SKY_BlockInfo_t info;

    for (uint32_t i = 0; i < NUMBERS; ++i)
    {
        compare_block(i);
        partial += model_count(&model[i], false) - model_count(&model[i], true);
        with_chunks += model_count(&model[i], true) > 0 ? 1u : 0u;
        for (uint32_t id = 0; id < CHUNKS; ++id)
        {
            bytes += model[i].chunks[id].complete ? fx_len(&shapes[model[i].shape], id) : 0u;
        }
    }
    while (SKY_Store_NextBlock(&store, &cursor, &info))
    {
        ++walked;
    }
    CHECK_EQ(walked, with_chunks);
    compare_order();
    compare_tenants();
    CHECK_EQ(store.counters.blocks, model_blocks());
    CHECK_EQ(store.counters.chunks, model_chunks());
    CHECK_EQ(store.slab.used, model_chunks() + model_blocks());
    CHECK_EQ(store.counters.partial, partial);
    CHECK_EQ(store.counters.bytes, bytes);
    CHECK_EQ(store.counters.evicted_blocks, evicted_blocks);
    CHECK_EQ(store.counters.evicted_chunks, evicted_chunks);
    CHECK_EQ(store.counters.expired_partial, expired);
}

static void test_random_operations(void)
{
    const SKY_StoreCfg_t cfg    = {SLOT_BYTES, SLOTS};
    const size_t         bytes  = SKY_Store_MemoryBytes(&cfg);
    void                *memory = malloc(bytes);
    uint64_t             now_us = 0;

    CHECK(memory != NULL && SKY_Store_Init(&store, &cfg, memory, bytes, 99));
    for (uint32_t round = 0; round < ROUNDS; ++round)
    {
        const uint32_t what = pick(100);

        now_us += pick(20);
        if (round > ROUNDS / 3u && round % QUOTA_EACH == 0) /* none at first */
        {
            new_quotas();
        }
        if (what < 60)
        {
            do_put(now_us);
        }
        else if (what < 90)
        {
            do_get();
        }
        else if (what < 95)
        {
            do_drop();
        }
        else if (what < 97)
        {
            do_purge();
        }
        else
        {
            do_expire(now_us);
        }
        if (round % 16 == 0)
        {
            compare();
        }
    }
    CHECK(evicted_blocks > 1000 && expired > 100); /* the run has been where it should */
    CHECK(foreign > 3 && refused > 100);
    free(memory);
}

int main(void)
{
    RUN(test_random_operations);
    return CHECK_RESULT();
}
