/* Memory pools. */
#include "bench_app.h"

#define HEAD_BYTES 24u /* in front of each block */

typedef struct
{
    char               byte;
    CFE_ES_PoolAlign_t align;
} Probe_t;

static const size_t align_bytes = offsetof(Probe_t, align); /* 16 on most machines, 8 on s390x */

static CFE_ES_STATIC_POOL_TYPE(4096) memory;

static void BlocksKeepTheirBucket(void)
{
    const size_t        sizes[] = {256, 64}; /* any order */
    CFE_ES_MemHandle_t  pool;
    CFE_ES_MemPoolBuf_t a, b, c;
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, &memory, sizeof memory, 2, sizes, CFE_ES_USE_MUTEX), CFE_SUCCESS);
    CHECK_EQ(CFE_ES_GetPoolBuf(&a, pool, 60), 60);
    CHECK_EQ(CFE_ES_GetPoolBuf(&b, pool, 65), 65);
    CHECK_EQ((cpuaddr)a % align_bytes, 0);
    CHECK_EQ((cpuaddr)b % align_bytes, 0);
    CHECK_EQ(CFE_ES_PutPoolBuf(pool, a), 60);
    CHECK_EQ(CFE_ES_PutPoolBuf(pool, a), CFE_ES_POOL_BLOCK_INVALID); /* twice */
    CHECK_EQ(CFE_ES_GetPoolBuf(&c, pool, 1), 1);
    CHECK(c == a);
    CHECK_EQ(CFE_ES_PutPoolBuf(pool, (uint8 *)b + 1), CFE_ES_BUFFER_NOT_IN_POOL);
    CHECK_EQ(CFE_ES_PutPoolBuf(pool, &pool), CFE_ES_BUFFER_NOT_IN_POOL);
    CHECK_EQ(CFE_ES_GetPoolBuf(&c, pool, 257), CFE_ES_ERR_MEM_BLOCK_SIZE);
}

static void APoolRunsDry(void)
{
    const size_t        sizes[] = {64, 1024};
    CFE_ES_MemHandle_t  pool;
    CFE_ES_MemPoolBuf_t blocks[100];
    CFE_ES_MemPoolBuf_t large;
    uint32              count = 0;
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, &memory, sizeof memory, 2, sizes, CFE_ES_NO_MUTEX), CFE_SUCCESS);
    while (count < 100 && CFE_ES_GetPoolBuf(&blocks[count], pool, 64) > 0)
    {
        (void)memset(blocks[count], 0xFF, 64);
        ++count;
    }
    CHECK_EQ(count, 4096 / ((64 + HEAD_BYTES + align_bytes - 1) / align_bytes * align_bytes));
    for (uint32 i = 0; i < count; ++i)
    {
        CHECK_EQ(CFE_ES_PutPoolBuf(pool, blocks[i]), 64);
    }
    CHECK_EQ(CFE_ES_GetPoolBuf(&large, pool, 1000), CFE_ES_ERR_MEM_BLOCK_SIZE); /* blocks never change their bucket */
    CHECK_EQ(CFE_ES_GetPoolBuf(&large, pool, 64), 64);
}

static void ArgumentsAreChecked(void)
{
    const size_t        zero[] = {0, 8};
    CFE_ES_MemHandle_t  pool;
    CFE_ES_MemPoolBuf_t block;
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, NULL, 4096, 0, NULL, false), CFE_ES_BAD_ARGUMENT);
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, &memory, 8, 0, NULL, false), CFE_ES_BAD_ARGUMENT);
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, &memory, 4096, 18, NULL, false), CFE_ES_BAD_ARGUMENT);
    CHECK_EQ(CFE_ES_PoolCreateEx(&pool, &memory, 4096, 2, zero, false), CFE_ES_ERR_MEM_BLOCK_SIZE);
    CHECK_EQ(CFE_ES_GetPoolBuf(&block, CFE_ES_MEMHANDLE_UNDEFINED, 8), CFE_ES_ERR_RESOURCEID_NOT_VALID);
    uint32 made = 0;
    while (made < 20 && CFE_ES_PoolCreateEx(&pool, &memory, 4096, 0, NULL, false) == CFE_SUCCESS)
    {
        ++made;
    }
    CHECK(made < 10); /* ten in all, some are taken */
}

int main(void)
{
    BenchUp(NULL);
    RUN(BlocksKeepTheirBucket);
    RUN(APoolRunsDry);
    RUN(ArgumentsAreChecked);
    BenchDown();
    return CHECK_RESULT();
}
