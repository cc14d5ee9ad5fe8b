/**
 * @file
 * Table services: registered by an app, loaded from an image, validated by the app, used under a lock.
 *
 * cFE reads table files; here the compiled images are linked in, found by the name of the file that cFE would make of them, and
 * the host may give others in their place.
 */
#define _DEFAULT_SOURCE
#include <string.h>

#include "exec_priv.h"

#define TABLES          ((uint32)CFE_PLATFORM_TBL_MAX_NUM_TABLES)
#define TABLE_BYTES_MAX ((size_t)CFE_PLATFORM_TBL_MAX_SNGL_TABLE_SIZE)
#define MEMORY_BYTES    ((size_t)524288)
#define ALIGNMENT       ((size_t)16)

typedef struct
{
    size_t                    size;
    CFE_TBL_CallbackFuncPtr_t validate;
    uint8                    *active;
    uint8                    *spare; /* the other buffer of double-buffered tables */
    uint32                    id;
    uint32                    app; /* id of the owner */
    char                      name[CFE_MISSION_TBL_MAX_FULL_NAME_LEN];
    bool                      loaded, updated, locked;
    bool                      pending; /* tbl_pending belongs to this table */
} Table_t;

static Table_t tbl_tables[TABLES];
static uint32  tbl_last;
static size_t  tbl_used;
static union
{
    CFE_ES_PoolAlign_t align;
    uint8              bytes[MEMORY_BYTES];
} tbl_memory;
static union
{
    CFE_ES_PoolAlign_t align;
    uint8              bytes[TABLE_BYTES_MAX];
} tbl_work, tbl_pending; /* image under validation; image that the ground sent */

/* The user of tbl_work holds this: the app's validation runs without the executive's lock. */
static pthread_mutex_t tbl_work_lock = PTHREAD_MUTEX_INITIALIZER;

static int TakeWork(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&tbl_work_lock);
    return before;
}

static void GiveWork(int before)
{
    (void)pthread_mutex_unlock(&tbl_work_lock);
    (void)pthread_setcancelstate(before, NULL);
}

void EXEC_TblReset(void)
{
    (void)memset(tbl_tables, 0, sizeof tbl_tables);
    explicit_bzero(tbl_memory.bytes, tbl_used); /* tables may hold keys */
    tbl_used = 0;
}

/* The lock is held here, and in all static functions but Install. */
static Table_t *TableById(uint32 id)
{
    const uint32 index = EXEC_IdIndex(id, EXEC_ID_TABLE, TABLES);
    return index != EXEC_NONE && tbl_tables[index].id == id ? &tbl_tables[index] : NULL;
}

static Table_t *TableByName(const char *name)
{
    for (uint32 i = 0; i < TABLES; ++i)
    {
        if (tbl_tables[i].id != 0 && strcmp(tbl_tables[i].name, name) == 0)
        {
            return &tbl_tables[i];
        }
    }
    return NULL;
}

static uint8 *Memory(size_t size)
{
    const size_t start = (tbl_used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > MEMORY_BYTES - start)
    {
        return NULL;
    }
    tbl_used = start + size;
    return &tbl_memory.bytes[start];
}

/* Return the table, if the calling app owns it. */
static Table_t *OwnTable(CFE_TBL_Handle_t handle, CFE_Status_t *status)
{
    const EXEC_AppRecord_t *app   = EXEC_CurrentApp();
    Table_t                *table = TableById(handle.id.id);
    if (table == NULL)
    {
        *status = CFE_TBL_ERR_INVALID_HANDLE;
    }
    else if (app == NULL || table->app != app->id)
    {
        *status = CFE_TBL_ERR_NO_ACCESS;
        table   = NULL;
    }
    return table;
}

CFE_Status_t CFE_TBL_Register(CFE_TBL_Handle_t *TblHandlePtr, const char *Name, size_t Size, uint16 TblOptionFlags,
                              CFE_TBL_CallbackFuncPtr_t TblValidationFuncPtr)
{
    if (TblHandlePtr == NULL || Name == NULL)
    {
        return CFE_TBL_BAD_ARGUMENT;
    }
    *TblHandlePtr = CFE_TBL_BAD_TABLE_HANDLE;
    if (Name[0] == '\0' || memchr(Name, '\0', CFE_MISSION_TBL_MAX_NAME_LENGTH + 1) == NULL)
    {
        return CFE_TBL_ERR_INVALID_NAME;
    }
    if (Size == 0 || Size > TABLE_BYTES_MAX)
    {
        return CFE_TBL_ERR_INVALID_SIZE;
    }
    if ((TblOptionFlags & ~(uint32)(CFE_TBL_OPT_DBL_BUFFER | CFE_TBL_OPT_CRITICAL)) != 0) /* dump-only tables are not offered */
    {
        return CFE_TBL_ERR_INVALID_OPTIONS;
    }
    CFE_Status_t status = CFE_SUCCESS;
    char         full_name[CFE_MISSION_TBL_MAX_FULL_NAME_LEN];
    EXEC_Lock();
    const EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app == NULL)
    {
        EXEC_Unlock();
        return CFE_ES_ERR_RESOURCEID_NOT_VALID;
    }
    (void)snprintf(full_name, sizeof full_name, "%s.%s", app->name, Name);
    Table_t *table = TableByName(full_name);
    if (table != NULL)
    {
        status = table->app != app->id ? CFE_TBL_ERR_DUPLICATE_NOT_OWNED
                                       : (table->size != Size ? CFE_TBL_ERR_DUPLICATE_DIFF_SIZE : CFE_TBL_WARN_DUPLICATE);
    }
    else
    {
        const uint32 id = EXEC_IdNext(tbl_last, EXEC_ID_TABLE, &tbl_tables[0].id, sizeof tbl_tables[0], TABLES);
        uint8       *a  = Memory(Size);
        uint8       *b  = (TblOptionFlags & CFE_TBL_OPT_DBL_BUFFER) != 0 ? Memory(Size) : a;
        if (id == 0 || a == NULL || b == NULL)
        {
            status = CFE_TBL_ERR_REGISTRY_FULL;
        }
        else
        {
            table = &tbl_tables[EXEC_IdIndex(id, EXEC_ID_TABLE, TABLES)];
            (void)memset(table, 0, sizeof *table);
            (void)memcpy(table->name, full_name, sizeof table->name);
            (void)memset(a, 0, Size);
            table->id       = id;
            table->app      = app->id;
            table->size     = Size;
            table->validate = TblValidationFuncPtr;
            table->active   = a;
            table->spare    = b != a ? b : NULL;
            tbl_last        = id;
            if ((TblOptionFlags & CFE_TBL_OPT_CRITICAL) != 0)
            {
                status = CFE_TBL_WARN_NOT_CRITICAL; /* no store survives this process, so this says what cFE says without room */
            }
        }
    }
    if (status >= CFE_SUCCESS)
    {
        TblHandlePtr->id.id = table->id;
    }
    EXEC_Unlock();
    return status;
}

static const char *BaseName(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Find the image for a table: the host's, else the compiled one whose file has this name. */
static CFE_Status_t FindImage(const Table_t *table, const char *path, const void **data, size_t *size)
{
    for (uint32 i = 0; i < EXEC_Config.table_count; ++i)
    {
        if (strcmp(EXEC_Config.tables[i].name, table->name) == 0)
        {
            *data = EXEC_Config.tables[i].data;
            *size = EXEC_Config.tables[i].size;
            return CFE_SUCCESS;
        }
    }
    for (uint32 i = 0; EXEC_Config.table_files != NULL && EXEC_Config.table_files[i] != NULL; ++i)
    {
        const CFE_TBL_FileDef_t *file = EXEC_Config.table_files[i];
        if (strcmp(file->TgtFilename, BaseName(path)) == 0)
        {
            *data = file->Object;
            *size = file->ObjectSize;
            return strcmp(file->TableName, table->name) == 0 ? CFE_SUCCESS : CFE_TBL_ERR_FILE_FOR_WRONG_TABLE;
        }
    }
    return CFE_TBL_ERR_ACCESS;
}

/* Validate what lies in tbl_work and make it the table. Called with the lock held; the app's function runs without it. */
static CFE_Status_t Install(Table_t *table)
{
    const CFE_TBL_CallbackFuncPtr_t validate = table->validate;
    CFE_Status_t                    status   = CFE_SUCCESS;
    if (validate != NULL)
    {
        EXEC_Unlock();
        status = validate(tbl_work.bytes);
        EXEC_Lock();
    }
    if (status > CFE_SUCCESS) /* only negative values are results of a validation */
    {
        status = CFE_STATUS_VALIDATION_FAILURE;
    }
    if (status == CFE_SUCCESS && table->spare == NULL && table->locked)
    {
        status = CFE_TBL_INFO_TABLE_LOCKED;
    }
    if (status == CFE_SUCCESS)
    {
        if (table->spare != NULL)
        {
            uint8 *other  = table->spare;
            table->spare  = table->active;
            table->active = other;
        }
        (void)memcpy(table->active, tbl_work.bytes, table->size);
        table->loaded  = true;
        table->updated = true;
    }
    return status;
}

CFE_Status_t CFE_TBL_Load(CFE_TBL_Handle_t TblHandle, CFE_TBL_SrcEnum_t SrcType, const void *SrcDataPtr)
{
    if (SrcDataPtr == NULL)
    {
        return CFE_TBL_BAD_ARGUMENT;
    }
    CFE_Status_t status = CFE_SUCCESS;
    const int    before = TakeWork();
    EXEC_Lock();
    Table_t    *table = OwnTable(TblHandle, &status);
    const void *data  = SrcDataPtr;
    size_t      size  = table != NULL ? table->size : 0;
    if (table != NULL && SrcType == CFE_TBL_SRC_FILE)
    {
        status = FindImage(table, SrcDataPtr, &data, &size);
    }
    else if (table != NULL && SrcType != CFE_TBL_SRC_ADDRESS)
    {
        status = CFE_TBL_ERR_ILLEGAL_SRC_TYPE;
    }
    if (status == CFE_SUCCESS && size > table->size)
    {
        status = CFE_TBL_ERR_FILE_TOO_LARGE;
    }
    if (status == CFE_SUCCESS && size < table->size && !table->loaded)
    {
        status = CFE_TBL_ERR_PARTIAL_LOAD;
    }
    if (status == CFE_SUCCESS)
    {
        const bool partial = size < table->size;
        (void)memcpy(tbl_work.bytes, table->active, table->size);
        (void)memcpy(tbl_work.bytes, data, size);
        status = Install(table);
        status = status == CFE_SUCCESS && partial ? CFE_TBL_WARN_PARTIAL_LOAD : status;
        explicit_bzero(tbl_work.bytes, table->size);
    }
    EXEC_Unlock();
    GiveWork(before);
    return status;
}

CFE_Status_t EXEC_TableLoad(const char *name, const void *data, size_t size)
{
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    Table_t *table = TableByName(name);
    bool     busy  = false;
    for (uint32 i = 0; i < TABLES; ++i)
    {
        busy = busy || (tbl_tables[i].id != 0 && tbl_tables[i].pending);
    }
    if (table == NULL)
    {
        status = CFE_TBL_ERR_INVALID_NAME;
    }
    else if (size != table->size)
    {
        status = size > table->size ? CFE_TBL_ERR_FILE_TOO_LARGE : CFE_TBL_ERR_PARTIAL_LOAD;
    }
    else if (busy)
    {
        status = CFE_STATUS_INCORRECT_STATE;
    }
    else
    {
        (void)memcpy(tbl_pending.bytes, data, size);
        table->pending = true;
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t EXEC_TableRead(const char *name, void *data, size_t size)
{
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    const Table_t *table = TableByName(name);
    if (table == NULL)
    {
        status = CFE_TBL_ERR_INVALID_NAME;
    }
    else if (!table->loaded)
    {
        status = CFE_TBL_ERR_NEVER_LOADED;
    }
    else if (size != table->size)
    {
        status = CFE_TBL_ERR_INVALID_SIZE;
    }
    else
    {
        (void)memcpy(data, table->active, size);
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t CFE_TBL_Manage(CFE_TBL_Handle_t TblHandle)
{
    CFE_Status_t status = CFE_SUCCESS;
    const int    before = TakeWork();
    EXEC_Lock();
    Table_t *table = OwnTable(TblHandle, &status);
    if (table != NULL && table->pending)
    {
        (void)memcpy(tbl_work.bytes, tbl_pending.bytes, table->size);
        status = Install(table);
        explicit_bzero(tbl_work.bytes, table->size);
        if (status != CFE_TBL_INFO_TABLE_LOCKED)
        {
            table->pending = false;
            explicit_bzero(tbl_pending.bytes, table->size);
            if (status == CFE_SUCCESS)
            {
                status = CFE_TBL_INFO_UPDATED;
            }
            else
            {
                (void)CFE_ES_WriteToSysLog("TBL: %s: image refused, 0x%08lX\n", table->name, (unsigned long)(uint32)status);
                status = CFE_SUCCESS; /* the table stays as it was */
            }
        }
    }
    EXEC_Unlock();
    GiveWork(before);
    return status;
}

CFE_Status_t CFE_TBL_GetAddress(void **TblPtr, CFE_TBL_Handle_t TblHandle)
{
    if (TblPtr == NULL)
    {
        return CFE_TBL_BAD_ARGUMENT;
    }
    *TblPtr             = NULL;
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    Table_t *table = OwnTable(TblHandle, &status);
    if (table != NULL)
    {
        *TblPtr        = table->active;
        table->locked  = true;
        status         = !table->loaded ? CFE_TBL_ERR_NEVER_LOADED : (table->updated ? CFE_TBL_INFO_UPDATED : CFE_SUCCESS);
        table->updated = false;
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t CFE_TBL_ReleaseAddress(CFE_TBL_Handle_t TblHandle)
{
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    Table_t *table = OwnTable(TblHandle, &status);
    if (table != NULL)
    {
        table->locked = false;
        status        = !table->loaded ? CFE_TBL_ERR_NEVER_LOADED : (table->updated ? CFE_TBL_INFO_UPDATED : CFE_SUCCESS);
    }
    EXEC_Unlock();
    return status;
}
