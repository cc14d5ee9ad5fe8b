/**
 * @file
 * Mutexes and binary semaphores.
 */
#include <errno.h>
#include <string.h>

#include "exec_priv.h"

typedef struct
{
    uint32          id;
    char            name[OS_MAX_API_NAME];
    uint32          value;
    bool            made;
    pthread_mutex_t mutex; /* a mutex is this one; a semaphore guards its value by it */
    pthread_cond_t  cond;
} Sem_t;

typedef struct
{
    uint32 kind;
    Sem_t *records;
    uint32 count;
    uint32 last;
} SemTable_t;

static Sem_t sem_mutexes[OS_MAX_MUTEXES];
static Sem_t sem_binary[OS_MAX_BIN_SEMAPHORES];

static SemTable_t sem_mutex_table  = {EXEC_ID_MUTEX, sem_mutexes, OS_MAX_MUTEXES, 0};
static SemTable_t sem_binary_table = {EXEC_ID_BINSEM, sem_binary, OS_MAX_BIN_SEMAPHORES, 0};

static void ResetTable(SemTable_t *table)
{
    for (uint32 i = 0; i < table->count; ++i)
    {
        table->records[i].id = 0;
        if (!table->records[i].made)
        {
            pthread_mutexattr_t attributes;
            (void)pthread_mutexattr_init(&attributes);
            (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); /* as OSAL's mutexes are */
            (void)pthread_mutex_init(&table->records[i].mutex, &attributes);
            (void)pthread_mutexattr_destroy(&attributes);
            EXEC_CondInit(&table->records[i].cond);
            table->records[i].made = true;
        }
    }
}

void EXEC_SemReset(void)
{
    ResetTable(&sem_mutex_table);
    ResetTable(&sem_binary_table);
}

static int32 Create(SemTable_t *table, osal_id_t *sem_id, const char *name, uint32 value)
{
    if (sem_id == NULL || name == NULL)
    {
        return OS_INVALID_POINTER;
    }
    if (!EXEC_NameOk(name))
    {
        return OS_ERR_NAME_TOO_LONG;
    }
    if (value > OS_SEM_FULL)
    {
        return OS_INVALID_SEM_VALUE;
    }
    int32 status = OS_SUCCESS;
    EXEC_Lock();
    for (uint32 i = 0; i < table->count; ++i)
    {
        if (table->records[i].id != 0 && strcmp(table->records[i].name, name) == 0)
        {
            status = OS_ERR_NAME_TAKEN;
        }
    }
    const uint32 id = EXEC_IdNext(table->last, table->kind, &table->records[0].id, sizeof table->records[0], table->count);
    if (status == OS_SUCCESS && id == 0)
    {
        status = OS_ERR_NO_FREE_IDS;
    }
    if (status == OS_SUCCESS)
    {
        Sem_t *sem = &table->records[EXEC_IdIndex(id, table->kind, table->count)];
        (void)memcpy(sem->name, name, strlen(name) + 1);
        sem->value  = value;
        sem->id     = id;
        table->last = id;
        sem_id->v   = id;
    }
    EXEC_Unlock();
    return status;
}

static Sem_t *Find(const SemTable_t *table, osal_id_t sem_id)
{
    const uint32 index = EXEC_IdIndex(sem_id.v, table->kind, table->count);
    return index != EXEC_NONE && table->records[index].id == sem_id.v ? &table->records[index] : NULL;
}

int32 OS_BinSemGive(osal_id_t sem_id)
{
    Sem_t *sem = Find(&sem_binary_table, sem_id);
    if (sem == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&sem->mutex);
    sem->value = OS_SEM_FULL; /* A full semaphore stays full. */
    (void)pthread_cond_signal(&sem->cond);
    (void)pthread_mutex_unlock(&sem->mutex);
    (void)pthread_setcancelstate(before, NULL);
    return OS_SUCCESS;
}

int32 OS_BinSemTimedWait(osal_id_t sem_id, uint32 msecs)
{
    const int64 deadline_ns = EXEC_NowNs() + (int64)msecs * 1000000;
    Sem_t      *sem         = Find(&sem_binary_table, sem_id);
    int32       status      = OS_SUCCESS;
    if (sem == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&sem->mutex);
    while (sem->value == 0 && sem->id == sem_id.v && status == OS_SUCCESS)
    {
        if (EXEC_CondWait(&sem->cond, &sem->mutex, deadline_ns) == ETIMEDOUT && sem->value == 0)
        {
            status = OS_SEM_TIMEOUT;
        }
    }
    if (status == OS_SUCCESS && sem->id != sem_id.v)
    {
        status = OS_SEM_FAILURE;
    }
    if (status == OS_SUCCESS)
    {
        --sem->value;
    }
    (void)pthread_mutex_unlock(&sem->mutex);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

int32 OS_MutSemCreate(osal_id_t *sem_id, const char *sem_name, uint32 options)
{
    (void)options;
    return Create(&sem_mutex_table, sem_id, sem_name, 0);
}

int32 OS_MutSemTake(osal_id_t sem_id)
{
    Sem_t *sem = Find(&sem_mutex_table, sem_id);
    if (sem == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    return pthread_mutex_lock(&sem->mutex) == 0 ? OS_SUCCESS : OS_SEM_FAILURE;
}

int32 OS_MutSemGive(osal_id_t sem_id)
{
    Sem_t *sem = Find(&sem_mutex_table, sem_id);
    if (sem == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    return pthread_mutex_unlock(&sem->mutex) == 0 ? OS_SUCCESS : OS_SEM_FAILURE;
}

int32 OS_BinSemCreate(osal_id_t *sem_id, const char *sem_name, uint32 sem_initial_value, uint32 options)
{
    (void)options;
    return Create(&sem_binary_table, sem_id, sem_name, sem_initial_value);
}
