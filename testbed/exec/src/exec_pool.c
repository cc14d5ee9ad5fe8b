/**
 * @file
 * Memory pools.
 *
 * A pool behaves as cFE's: a block has the size of its bucket, is cut from the untouched end of the memory the first time, goes to
 * its bucket's list when given back and never changes its size. So a pool that runs dry there runs dry here.
 */
#include <string.h>

#include "exec_priv.h"

#define BLOCK_USED 0xAAAA5A5Au
#define BLOCK_FREE 0xDDDD5A5Au

/* Head of every block. */
typedef struct
{
    uint32 state;
    uint32 bucket;
    size_t size;
    size_t next; /* offset of the next free block of the bucket; 0: there is none */
} Block_t;

typedef struct
{
    size_t size;
    size_t first_free;
} Bucket_t;

typedef struct
{
    uint8          *base;
    size_t          size, tail;
    pthread_mutex_t mutex;
    Bucket_t        buckets[CFE_MISSION_ES_POOL_MAX_BUCKETS];
    uint32          id;
    uint32          bucket_count;
    bool            use_mutex;
} Pool_t;

static const size_t pool_default_sizes[CFE_MISSION_ES_POOL_MAX_BUCKETS] = {8,   16,   32,   48,   64,   96,    128,   160,  256,
                                                                           512, 1024, 2048, 4096, 8192, 16384, 32768, 80000};

static Pool_t pools[CFE_PLATFORM_ES_MAX_MEMORY_POOLS];
static uint32 pool_last;

void EXEC_PoolReset(void)
{
    for (uint32 i = 0; i < CFE_PLATFORM_ES_MAX_MEMORY_POOLS; ++i)
    {
        pools[i].id = 0;
    }
}

static Pool_t *PoolTake(CFE_ES_MemHandle_t handle)
{
    const uint32 index = EXEC_IdIndex(handle.id.id, EXEC_ID_POOL, CFE_PLATFORM_ES_MAX_MEMORY_POOLS);
    if (index == EXEC_NONE || pools[index].id != handle.id.id)
    {
        return NULL;
    }
    if (pools[index].use_mutex)
    {
        (void)pthread_mutex_lock(&pools[index].mutex);
    }
    return &pools[index];
}

static void PoolGive(Pool_t *pool)
{
    if (pool->use_mutex)
    {
        (void)pthread_mutex_unlock(&pool->mutex);
    }
}

CFE_Status_t CFE_ES_PoolCreateEx(CFE_ES_MemHandle_t *PoolID, void *MemPtr, size_t Size, uint16 NumBlockSizes,
                                 const size_t *BlockSizes, bool UseMutex)
{
    if (PoolID == NULL || MemPtr == NULL || NumBlockSizes > CFE_MISSION_ES_POOL_MAX_BUCKETS)
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    const size_t *sizes = BlockSizes != NULL ? BlockSizes : pool_default_sizes;
    const uint32  count = BlockSizes == NULL && NumBlockSizes == 0 ? CFE_MISSION_ES_POOL_MAX_BUCKETS : NumBlockSizes;
    if (count == 0)
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    Bucket_t buckets[CFE_MISSION_ES_POOL_MAX_BUCKETS];
    (void)memset(buckets, 0, sizeof buckets);
    for (uint32 i = 0; i < count; ++i) /* insert the size in ascending order */
    {
        uint32 at = i;
        for (; at > 0 && buckets[at - 1].size > sizes[i]; --at)
        {
            buckets[at].size = buckets[at - 1].size;
        }
        buckets[at].size = sizes[i];
    }
    if (buckets[0].size == 0)
    {
        return CFE_ES_ERR_MEM_BLOCK_SIZE;
    }
    if (Size < buckets[0].size + sizeof(Block_t))
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    EXEC_Lock();
    const uint32 id = EXEC_IdNext(pool_last, EXEC_ID_POOL, &pools[0].id, sizeof pools[0], CFE_PLATFORM_ES_MAX_MEMORY_POOLS);
    if (id != 0)
    {
        Pool_t *pool = &pools[EXEC_IdIndex(id, EXEC_ID_POOL, CFE_PLATFORM_ES_MAX_MEMORY_POOLS)];
        (void)memset(pool, 0, sizeof *pool);
        (void)memcpy(pool->buckets, buckets, sizeof buckets);
        (void)pthread_mutex_init(&pool->mutex, NULL);
        pool->base         = MemPtr;
        pool->size         = Size;
        pool->bucket_count = count;
        pool->use_mutex    = UseMutex;
        pool->id           = id;
        pool_last          = id;
    }
    PoolID->id.id = id;
    EXEC_Unlock();
    return id != 0 ? CFE_SUCCESS : CFE_ES_NO_RESOURCE_IDS_AVAILABLE;
}

static Block_t *BlockAt(const Pool_t *pool, size_t offset)
{
    return (Block_t *)(void *)(pool->base + offset - sizeof(Block_t));
}

int32 CFE_ES_GetPoolBuf(CFE_ES_MemPoolBuf_t *BufPtr, CFE_ES_MemHandle_t Handle, size_t Size)
{
    int32   result = CFE_ES_ERR_MEM_BLOCK_SIZE;
    size_t  offset = 0;
    Pool_t *pool   = BufPtr != NULL ? PoolTake(Handle) : NULL;
    if (pool == NULL)
    {
        return BufPtr == NULL ? CFE_ES_BAD_ARGUMENT : CFE_ES_ERR_RESOURCEID_NOT_VALID;
    }
    uint32 index = 0;
    while (index < pool->bucket_count && pool->buckets[index].size < Size)
    {
        ++index;
    }
    if (index < pool->bucket_count)
    {
        Bucket_t *bucket = &pool->buckets[index];
        if (bucket->first_free != 0)
        {
            offset             = bucket->first_free;
            bucket->first_free = BlockAt(pool, offset)->next;
        }
        else
        {
            const size_t start = (pool->tail + sizeof(Block_t) + EXEC_POOL_ALIGN - 1) / EXEC_POOL_ALIGN * EXEC_POOL_ALIGN;
            if (start <= pool->size && bucket->size <= pool->size - start)
            {
                offset     = start;
                pool->tail = start + bucket->size;
            }
        }
    }
    if (offset != 0)
    {
        Block_t *block = BlockAt(pool, offset);
        block->state   = BLOCK_USED;
        block->bucket  = index;
        block->size    = Size;
        block->next    = 0;
        *BufPtr        = pool->base + offset;
        result         = (int32)Size;
    }
    PoolGive(pool);
    return result;
}

int32 CFE_ES_PutPoolBuf(CFE_ES_MemHandle_t Handle, CFE_ES_MemPoolBuf_t BufPtr)
{
    int32   result = CFE_ES_BUFFER_NOT_IN_POOL;
    Pool_t *pool   = BufPtr != NULL ? PoolTake(Handle) : NULL;
    if (pool == NULL)
    {
        return BufPtr == NULL ? CFE_ES_BAD_ARGUMENT : CFE_ES_ERR_RESOURCEID_NOT_VALID;
    }
    const cpuaddr address = (cpuaddr)BufPtr;
    const cpuaddr base    = (cpuaddr)pool->base;
    if (address >= base + sizeof(Block_t) && address < base + pool->tail && (address - base) % EXEC_POOL_ALIGN == 0)
    {
        Block_t *block = BlockAt(pool, address - base);
        if (block->state == BLOCK_USED && block->bucket < pool->bucket_count)
        {
            Bucket_t *bucket   = &pool->buckets[block->bucket];
            block->state       = BLOCK_FREE;
            block->next        = bucket->first_free;
            bucket->first_free = address - base;
            result             = (int32)block->size;
        }
        else
        {
            result = CFE_ES_POOL_BLOCK_INVALID;
        }
    }
    PoolGive(pool);
    return result;
}
