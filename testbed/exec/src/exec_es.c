/**
 * @file
 * Executive services: apps, tasks, run loops.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <string.h>

#include "exec_priv.h"

/* Stacks are touched page by page, so a generous one costs nothing; thread-local storage of the process lies in it too. */
#define STACK_BYTES_MIN ((size_t)128 * 1024)
#define TASK_END_NS     ((int64)2000000000)

typedef struct
{
    pthread_t                 thread;
    CFE_ES_TaskEntryFuncPtr_t entry;
    osal_task_entry           delete_handler;
    uint32                    id;
    uint32                    app; /* index of the app */
    char                      name[OS_MAX_API_NAME];
    bool                      ended;
} Task_t;

static EXEC_AppRecord_t es_apps[CFE_PLATFORM_ES_MAX_APPLICATIONS];
static Task_t           es_tasks[OS_MAX_TASKS];
static pthread_cond_t   es_change; /* signals a change of an app's or a task's state */
static bool             es_change_made;
static bool             es_stopping;
static uint32           es_last_app, es_last_task;

static __thread uint32 es_current_task = EXEC_NONE; /* index of this thread's task */
static __thread uint32 es_host_app;                 /* id of the host app between EXEC_Enter and EXEC_Leave */

void EXEC_EsReset(void)
{
    if (!es_change_made)
    {
        EXEC_CondInit(&es_change);
        es_change_made = true;
    }
    (void)memset(es_apps, 0, sizeof es_apps);
    (void)memset(es_tasks, 0, sizeof es_tasks);
    es_stopping = false;
}

EXEC_AppRecord_t *EXEC_AppById(uint32 id)
{
    const uint32 index = EXEC_IdIndex(id, EXEC_ID_APP, CFE_PLATFORM_ES_MAX_APPLICATIONS);
    return index != EXEC_NONE && es_apps[index].id == id ? &es_apps[index] : NULL;
}

EXEC_AppRecord_t *EXEC_CurrentApp(void)
{
    if (es_current_task != EXEC_NONE)
    {
        return &es_apps[es_tasks[es_current_task].app];
    }
    return EXEC_AppById(es_host_app);
}

/* --------------------------------------------------------------------------------------------------------------- tasks */

static void TaskEnded(void *unused)
{
    (void)unused;
    EXEC_Lock();
    Task_t           *task = &es_tasks[es_current_task];
    EXEC_AppRecord_t *app  = &es_apps[task->app];
    task->ended            = true;
    if (app->main_task == es_current_task)
    {
        app->state = EXEC_APP_STOPPED;
    }
    (void)pthread_cond_broadcast(&es_change);
    EXEC_Unlock();
}

static void *TaskMain(void *argument)
{
    Task_t *task    = argument;
    es_current_task = (uint32)(task - es_tasks);
    EXEC_Lock(); /* under the lock, because the maker of this task has filled its record in by now */
    char name[16];
    (void)memcpy(name, task->name, sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)pthread_setname_np(pthread_self(), name);
    EXEC_Unlock();
    pthread_cleanup_push(TaskEnded, NULL);
    task->entry();
    pthread_cleanup_pop(1);
    return NULL;
}

/* Give back the records of tasks that have ended. The lock is held. */
static void ReapTasks(void)
{
    for (uint32 i = 0; i < OS_MAX_TASKS; ++i)
    {
        if (es_tasks[i].id != 0 && es_tasks[i].ended && i != es_current_task)
        {
            (void)pthread_join(es_tasks[i].thread, NULL); /* a task that has ended needs the lock no more */
            es_tasks[i].id = 0;
        }
    }
}

/* Start a task. The lock is held. @return its index, or EXEC_NONE */
static uint32 StartTask(const char *name, CFE_ES_TaskEntryFuncPtr_t entry, size_t stack_bytes, uint32 app)
{
    ReapTasks();
    const uint32 id = EXEC_IdNext(es_last_task, EXEC_ID_TASK, &es_tasks[0].id, sizeof es_tasks[0], OS_MAX_TASKS);
    if (id == 0)
    {
        return EXEC_NONE;
    }
    const uint32 index = EXEC_IdIndex(id, EXEC_ID_TASK, OS_MAX_TASKS);
    Task_t      *task  = &es_tasks[index];
    (void)memset(task, 0, sizeof *task);
    (void)memcpy(task->name, name, strlen(name) + 1);
    task->app   = app;
    task->entry = entry;

    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    const size_t stack = (stack_bytes > STACK_BYTES_MIN ? stack_bytes : STACK_BYTES_MIN) + (size_t)PTHREAD_STACK_MIN;
    (void)pthread_attr_setstacksize(&attributes, (stack + 4095u) & ~(size_t)4095u);
    const int rc = pthread_create(&task->thread, &attributes, TaskMain, task);
    (void)pthread_attr_destroy(&attributes);
    if (rc != 0)
    {
        return EXEC_NONE;
    }
    task->id     = id;
    es_last_task = id;
    return index;
}

/* End a task from outside. The lock is held. @return false if it did not end in time; it is then left alone */
static bool EndTask(uint32 index)
{
    Task_t      *task     = &es_tasks[index];
    const int64  deadline = EXEC_NowNs() + TASK_END_NS;
    const uint32 id       = task->id;
    (void)pthread_cancel(task->thread);
    while (task->id == id && !task->ended)
    {
        if (!EXEC_Wait(&es_change, deadline))
        {
            return false;
        }
    }
    if (task->id == id)
    {
        const osal_task_entry handler = task->delete_handler;
        (void)pthread_join(task->thread, NULL);
        task->id = 0;
        if (handler != NULL)
        {
            EXEC_Unlock();
            handler();
            EXEC_Lock();
        }
    }
    return true;
}

/* End all tasks of an app but the calling one. The lock is held. */
static bool EndTasksOf(uint32 app)
{
    bool all = true;
    for (uint32 i = 0; i < OS_MAX_TASKS; ++i)
    {
        if (es_tasks[i].id != 0 && es_tasks[i].app == app && !es_tasks[i].ended && i != es_current_task)
        {
            all = EndTask(i) && all;
        }
    }
    return all;
}

CFE_Status_t CFE_ES_CreateChildTask(CFE_ES_TaskId_t *TaskIdPtr, const char *TaskName, CFE_ES_ChildTaskMainFuncPtr_t FunctionPtr,
                                    CFE_ES_StackPointer_t StackPtr, size_t StackSize, CFE_ES_TaskPriority_Atom_t Priority,
                                    uint32 Flags)
{
    (void)Priority; /* threads of the host have no priorities */
    (void)Flags;
    if (TaskIdPtr == NULL || TaskName == NULL || FunctionPtr == NULL || !EXEC_NameOk(TaskName))
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    if (StackPtr != CFE_ES_TASK_STACK_ALLOCATE)
    {
        return CFE_ES_NOT_IMPLEMENTED;
    }
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    const EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app == NULL || es_current_task == EXEC_NONE)
    {
        status = CFE_ES_ERR_RESOURCEID_NOT_VALID;
    }
    else if (app->main_task != es_current_task)
    {
        status = CFE_ES_ERR_CHILD_TASK_CREATE;
    }
    else
    {
        const uint32 index = StartTask(TaskName, FunctionPtr, StackSize, (uint32)(app - es_apps));
        if (index == EXEC_NONE)
        {
            status = CFE_ES_ERR_CHILD_TASK_CREATE;
        }
        else
        {
            TaskIdPtr->id.id = es_tasks[index].id;
        }
    }
    EXEC_Unlock();
    return status;
}

void CFE_ES_ExitChildTask(void)
{
    EXEC_Lock();
    const EXEC_AppRecord_t *app   = EXEC_CurrentApp();
    const bool              child = app != NULL && es_current_task != EXEC_NONE && app->main_task != es_current_task;
    EXEC_Unlock();
    if (child)
    {
        pthread_exit(NULL);
    }
    (void)CFE_ES_WriteToSysLog("CFE_ES_ExitChildTask: not called from a child task\n");
}

CFE_Status_t CFE_ES_DeleteChildTask(CFE_ES_TaskId_t TaskId)
{
    CFE_Status_t status = CFE_SUCCESS;
    const uint32 index  = EXEC_IdIndex(TaskId.id.id, EXEC_ID_TASK, OS_MAX_TASKS);
    EXEC_Lock();
    if (index == EXEC_NONE || es_tasks[index].id != TaskId.id.id)
    {
        status = CFE_ES_ERR_RESOURCEID_NOT_VALID;
    }
    else if (es_apps[es_tasks[index].app].main_task == index)
    {
        status = CFE_ES_ERR_CHILD_TASK_DELETE_MAIN_TASK;
    }
    else if (index == es_current_task || !EndTask(index))
    {
        status = CFE_ES_ERR_CHILD_TASK_DELETE;
    }
    EXEC_Unlock();
    return status;
}

int32 OS_TaskInstallDeleteHandler(osal_task_entry function_pointer)
{
    if (es_current_task == EXEC_NONE)
    {
        return OS_ERR_INVALID_ID;
    }
    EXEC_Lock();
    es_tasks[es_current_task].delete_handler = function_pointer;
    EXEC_Unlock();
    return OS_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------- apps */

bool CFE_ES_RunLoop(uint32 *RunStatus)
{
    bool run = false;
    if (RunStatus != NULL && *RunStatus != CFE_ES_RunStatus_APP_RUN)
    {
        return false;
    }
    EXEC_Lock();
    EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app != NULL && app->main_task != EXEC_NONE)
    {
        if (app->state < EXEC_APP_RUNNING)
        {
            app->state = EXEC_APP_RUNNING;
            (void)pthread_cond_broadcast(&es_change);
        }
        run = !es_stopping && app->exit_status == CFE_ES_RunStatus_APP_RUN;
        if (!run && RunStatus != NULL)
        {
            *RunStatus = es_stopping ? CFE_ES_RunStatus_SYS_DELETE : app->exit_status;
        }
    }
    EXEC_Unlock();
    return run;
}

void CFE_ES_ExitApp(uint32 ExitStatus)
{
    EXEC_Lock();
    EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app == NULL || es_current_task == EXEC_NONE)
    {
        EXEC_Unlock();
        return;
    }
    const bool main_task = app->main_task == es_current_task;
    app->exit_status =
        ExitStatus > CFE_ES_RunStatus_APP_RUN && ExitStatus < CFE_ES_RunStatus_MAX ? ExitStatus : CFE_ES_RunStatus_APP_ERROR;
    if (main_task)
    {
        if (!EndTasksOf((uint32)(app - es_apps)))
        {
            app->exit_status = CFE_ES_RunStatus_APP_ERROR;
        }
        EXEC_SbAppGone(app->id);
    }
    EXEC_Unlock();
    pthread_exit(NULL);
}

/* With the lock held. */
static uint32 CountApps(EXEC_AppState_t from, EXEC_AppState_t to)
{
    uint32 count = 0;
    for (uint32 i = 0; i < CFE_PLATFORM_ES_MAX_APPLICATIONS; ++i)
    {
        count += es_apps[i].id != 0 && es_apps[i].state >= from && es_apps[i].state <= to ? 1u : 0u;
    }
    return count;
}

void CFE_ES_WaitForStartupSync(uint32 TimeOutMilliseconds)
{
    const int64 deadline = EXEC_NowNs() + (int64)TimeOutMilliseconds * 1000000;
    EXEC_Lock();
    EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app != NULL && app->state == EXEC_APP_STARTING)
    {
        app->state = EXEC_APP_INITIALISED;
        (void)pthread_cond_broadcast(&es_change);
    }
    bool waiting = true;
    while (waiting && !es_stopping && CountApps(EXEC_APP_STARTING, EXEC_APP_STARTING) > 0)
    {
        waiting = EXEC_Wait(&es_change, deadline);
    }
    EXEC_Unlock();
}

uint32 EXEC_AppsRunning(void)
{
    EXEC_Lock();
    const uint32 count = CountApps(EXEC_APP_RUNNING, EXEC_APP_RUNNING);
    EXEC_Unlock();
    return count;
}

/* With the lock held. */
static EXEC_AppRecord_t *NewApp(const char *name)
{
    for (uint32 i = 0; i < CFE_PLATFORM_ES_MAX_APPLICATIONS; ++i)
    {
        if (es_apps[i].id != 0 && strcmp(es_apps[i].name, name) == 0)
        {
            return NULL;
        }
    }
    const uint32 id = EXEC_IdNext(es_last_app, EXEC_ID_APP, &es_apps[0].id, sizeof es_apps[0], CFE_PLATFORM_ES_MAX_APPLICATIONS);
    if (id == 0)
    {
        return NULL;
    }
    EXEC_AppRecord_t *app = &es_apps[EXEC_IdIndex(id, EXEC_ID_APP, CFE_PLATFORM_ES_MAX_APPLICATIONS)];
    (void)memset(app, 0, sizeof *app);
    (void)memcpy(app->name, name, strlen(name) + 1);
    app->id          = id;
    app->exit_status = CFE_ES_RunStatus_APP_RUN;
    app->main_task   = EXEC_NONE;
    es_last_app      = id;
    return app;
}

/* Say what is the matter with the first app in one of these states. The lock is held. */
static void NameFirst(EXEC_AppState_t from, EXEC_AppState_t to, const char *matter, char *why, size_t why_size)
{
    for (uint32 i = 0; i < CFE_PLATFORM_ES_MAX_APPLICATIONS; ++i)
    {
        if (es_apps[i].id != 0 && es_apps[i].state >= from && es_apps[i].state <= to)
        {
            (void)snprintf(why, why_size, "the app %s %s", es_apps[i].name, matter);
            return;
        }
    }
}

bool EXEC_EsStart(uint32 timeout_ms, char *why, size_t why_size)
{
    const int64 deadline = EXEC_NowNs() + (int64)timeout_ms * 1000000;
    for (uint32 i = 0; i < EXEC_Config.library_count; ++i)
    {
        const int32 status = EXEC_Config.libraries[i].entry();
        if (status != CFE_SUCCESS)
        {
            (void)snprintf(why, why_size, "the library %s failed with 0x%08lX", EXEC_Config.libraries[i].name,
                           (unsigned long)(uint32)status);
            return false;
        }
    }
    bool ok = true;
    EXEC_Lock();
    for (uint32 i = 0; ok && i < EXEC_Config.app_count; ++i)
    {
        const EXEC_App_t *app    = &EXEC_Config.apps[i];
        EXEC_AppRecord_t *record = EXEC_NameOk(app->name) ? NewApp(app->name) : NULL;
        if (record != NULL)
        {
            record->state     = EXEC_APP_STARTING;
            record->main_task = StartTask(app->name, app->entry, 0, (uint32)(record - es_apps));
        }
        if (record == NULL || record->main_task == EXEC_NONE)
        {
            (void)snprintf(why, why_size, "no room for the app %s", app->name);
            ok = false;
        }
    }
    while (ok && CountApps(EXEC_APP_RUNNING, EXEC_APP_RUNNING) < EXEC_Config.app_count)
    {
        if (CountApps(EXEC_APP_STOPPED, EXEC_APP_STOPPED) > 0)
        {
            ok = false;
            NameFirst(EXEC_APP_STOPPED, EXEC_APP_STOPPED, "stopped while it started; see the events before", why, why_size);
        }
        else if (!EXEC_Wait(&es_change, deadline))
        {
            ok = false;
            NameFirst(EXEC_APP_STARTING, EXEC_APP_INITIALISED, "did not come up in time", why, why_size);
        }
    }
    EXEC_Unlock();
    return ok;
}

void EXEC_EsRequestStop(void)
{
    EXEC_Lock();
    es_stopping = true;
    (void)pthread_cond_broadcast(&es_change);
    EXEC_Unlock();
}

bool EXEC_EsStop(uint32 timeout_ms)
{
    const int64 deadline = EXEC_NowNs() + (int64)timeout_ms * 1000000;
    bool        waiting  = true;
    bool        clean    = true;
    EXEC_Lock();
    while (waiting && CountApps(EXEC_APP_STARTING, EXEC_APP_RUNNING) > 0)
    {
        waiting = EXEC_Wait(&es_change, deadline);
    }
    for (uint32 i = 0; i < OS_MAX_TASKS; ++i)
    {
        if (es_tasks[i].id != 0 && !es_tasks[i].ended)
        {
            clean = false;
            (void)EndTask(i);
        }
    }
    ReapTasks();
    for (uint32 i = 0; i < CFE_PLATFORM_ES_MAX_APPLICATIONS; ++i)
    {
        if (es_apps[i].id != 0)
        {
            EXEC_SbAppGone(es_apps[i].id);
            es_apps[i].id = 0;
        }
    }
    EXEC_Unlock();
    return clean;
}

/* ----------------------------------------------------------------------------------------------------- apps of the host */

CFE_Status_t EXEC_HostAppCreate(CFE_ES_AppId_t *app, const char *name)
{
    if (!EXEC_NameOk(name))
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    EXEC_Lock();
    EXEC_AppRecord_t *record = NewApp(name);
    if (record != NULL)
    {
        record->state = EXEC_APP_HOST;
        app->id.id    = record->id;
    }
    EXEC_Unlock();
    return record != NULL ? CFE_SUCCESS : CFE_ES_ERR_APP_CREATE;
}

CFE_Status_t EXEC_HostAppDelete(CFE_ES_AppId_t app)
{
    CFE_Status_t status = CFE_ES_ERR_RESOURCEID_NOT_VALID;
    EXEC_Lock();
    EXEC_AppRecord_t *record = EXEC_AppById(app.id.id);
    if (record != NULL && record->state == EXEC_APP_HOST)
    {
        EXEC_SbAppGone(record->id);
        record->id = 0;
        status     = CFE_SUCCESS;
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t EXEC_Enter(CFE_ES_AppId_t app)
{
    EXEC_Lock();
    const EXEC_AppRecord_t *record = EXEC_AppById(app.id.id);
    const bool              host   = record != NULL && record->state == EXEC_APP_HOST;
    es_host_app                    = host ? app.id.id : 0;
    EXEC_Unlock();
    return host ? CFE_SUCCESS : CFE_ES_ERR_RESOURCEID_NOT_VALID;
}

void EXEC_Leave(void)
{
    es_host_app = 0;
}
