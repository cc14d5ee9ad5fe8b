/* Apps and tasks: startup, run loops, wake-ups, child tasks, all ways to end. */
#include "bench_app.h"

#define WAKEUP_MID 0x18E7

/* What apps tell the test: one thread writes, another waits. */
static int Load(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void Store(int *value, int now)
{
    __atomic_store_n(value, now, __ATOMIC_RELEASE);
}

static void Add(int *value)
{
    (void)__atomic_add_fetch(value, 1, __ATOMIC_ACQ_REL);
}

/* GOOD: a proper app with a child task that waits in a semaphore nobody gives. */
static int       good_wakeups, good_exit_status, good_child_handler, good_initialised;
static osal_id_t good_never;

static void GoodChildDeleted(void)
{
    Add(&good_child_handler);
}

static void GoodChild(void)
{
    CHECK_EQ(OS_TaskInstallDeleteHandler(GoodChildDeleted), OS_SUCCESS);
    Add(&good_initialised);
    (void)OS_BinSemTimedWait(good_never, 1000000);
    CHECK(false); /* must be ended while it waits */
}

static void GoodMain(void)
{
    uint32           run  = CFE_ES_RunStatus_APP_RUN;
    CFE_SB_PipeId_t  pipe = CFE_SB_INVALID_PIPE;
    CFE_ES_TaskId_t  child;
    CFE_SB_Buffer_t *buffer;
    CHECK_EQ(CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 10, "GOOD"), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(WAKEUP_MID), pipe), CFE_SUCCESS);
    CHECK_EQ(OS_BinSemCreate(&good_never, "NEVER", OS_SEM_EMPTY, 0), OS_SUCCESS);
    CHECK_EQ(CFE_ES_CreateChildTask(&child, "CHILD", GoodChild, CFE_ES_TASK_STACK_ALLOCATE, 16384, 50, 0), CFE_SUCCESS);
    CFE_ES_WaitForStartupSync(1000);
    while (CFE_ES_RunLoop(&run))
    {
        if (CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_PEND_FOREVER) == CFE_SUCCESS)
        {
            Add(&good_wakeups);
        }
    }
    Store(&good_exit_status, (int)run);
    CFE_ES_ExitApp(run);
    CHECK(false); /* does not return */
}

/* STUBBORN: does not look at its run status. */
static void StubbornMain(void)
{
    uint32 run = CFE_ES_RunStatus_APP_RUN;
    (void)CFE_ES_RunLoop(&run);
    for (;;)
    {
        (void)OS_TaskDelay(1000);
    }
}

/* BROKEN: gives up while it starts. */
static void BrokenMain(void)
{
    CFE_ES_ExitApp(CFE_ES_RunStatus_APP_ERROR);
}

/* SILENT: never reaches its run loop. */
static void SilentMain(void)
{
    (void)OS_TaskDelay(60000);
}

static int32 library_status;

static int32 LibraryInit(void)
{
    return library_status;
}

static const EXEC_Library_t      libraries[] = {{"LIB", LibraryInit}};
static const CFE_SB_MsgId_Atom_t wakeups[]   = {WAKEUP_MID};

static bool Until(const int *value, int least)
{
    for (int i = 0; i < 500 && Load(value) < least; ++i)
    {
        (void)OS_TaskDelay(10);
    }
    return Load(value) >= least;
}

static EXEC_Config_t Config(const EXEC_App_t *apps, uint32 count)
{
    const EXEC_Config_t config = {.libraries     = libraries,
                                  .library_count = 1,
                                  .apps          = apps,
                                  .app_count     = count,
                                  .quiet         = true,
                                  .wakeups       = wakeups,
                                  .wakeup_count  = 1};
    return config;
}

static void AnAppIsWokenAndEndsWhenAsked(void)
{
    char                why[128];
    const EXEC_App_t    apps[] = {{"GOOD", GoodMain}};
    const EXEC_Config_t config = Config(apps, 1);
    CHECK(EXEC_Init(&config));
    CHECK(!EXEC_Init(&config)); /* one per process */
    CHECK(EXEC_Start(5000, why, sizeof why));
    CHECK_EQ(EXEC_AppsRunning(), 1);
    CHECK(Until(&good_initialised, 1));
    CHECK(Until(&good_wakeups, 2));
    CHECK(EXEC_Stop(3000));
    CHECK_EQ(Load(&good_exit_status), CFE_ES_RunStatus_SYS_DELETE);
    CHECK_EQ(Load(&good_child_handler), 1);
    CHECK(EXEC_Stop(10)); /* a second time does nothing */
}

static void AStubbornAppIsEndedByForce(void)
{
    char                why[128];
    const EXEC_App_t    apps[] = {{"STUBBORN", StubbornMain}};
    const EXEC_Config_t config = Config(apps, 1);
    CHECK(EXEC_Init(&config));
    CHECK(EXEC_Start(5000, why, sizeof why));
    CHECK(!EXEC_Stop(50));
}

static void WhoDoesNotComeUpIsNamed(void)
{
    char             why[128];
    const EXEC_App_t broken[] = {{"GOOD", GoodMain}, {"BROKEN", BrokenMain}};
    const EXEC_App_t silent[] = {{"SILENT", SilentMain}};
    EXEC_Config_t    config   = Config(broken, 2);
    CHECK(EXEC_Init(&config));
    CHECK(!EXEC_Start(5000, why, sizeof why));
    CHECK(strstr(why, "BROKEN") != NULL);
    (void)EXEC_Stop(100);

    config = Config(silent, 1);
    CHECK(EXEC_Init(&config));
    CHECK(!EXEC_Start(50, why, sizeof why));
    CHECK(strstr(why, "SILENT") != NULL);
    (void)EXEC_Stop(10);

    library_status = -7;
    CHECK(EXEC_Init(&config));
    CHECK(!EXEC_Start(50, why, sizeof why));
    CHECK(strstr(why, "LIB") != NULL);
    (void)EXEC_Stop(10);
    library_status = CFE_SUCCESS;
}

/* PARENT: child tasks that end by themselves, are deleted, or are asked for wrongly. */
static int parent_done, parent_ran;

static void ShortChild(void)
{
    CFE_ES_TaskId_t id;
    Add(&parent_ran);
    CHECK_EQ(CFE_ES_CreateChildTask(&id, "GRANDCHILD", ShortChild, NULL, 0, 50, 0), CFE_ES_ERR_CHILD_TASK_CREATE);
    CFE_ES_ExitChildTask();
    CHECK(false);
}

static void LongChild(void)
{
    Add(&parent_ran);
    for (;;)
    {
        (void)OS_TaskDelay(1000);
    }
}

static void ParentMain(void)
{
    uint32          run      = CFE_ES_RunStatus_APP_RUN;
    CFE_ES_TaskId_t id       = CFE_ES_TASKID_UNDEFINED;
    int             expected = 0;
    CHECK_EQ(CFE_ES_CreateChildTask(NULL, "X", ShortChild, NULL, 0, 50, 0), CFE_ES_BAD_ARGUMENT);
    CHECK_EQ(CFE_ES_CreateChildTask(&id, "A_NAME_OF_20_LETTERS", ShortChild, NULL, 0, 50, 0), CFE_ES_BAD_ARGUMENT);
    CFE_ES_ExitChildTask();       /* from the main task: nothing happens */
    for (int i = 0; i < 200; ++i) /* more than there are records: those of ended tasks are used again */
    {
        CHECK_EQ(CFE_ES_CreateChildTask(&id, "SHORT", ShortChild, NULL, 0, 50, 0), CFE_SUCCESS);
        CHECK(Until(&parent_ran, ++expected));
    }
    CHECK_EQ(CFE_ES_CreateChildTask(&id, "LONG", LongChild, NULL, 0, 50, 0), CFE_SUCCESS);
    CHECK(Until(&parent_ran, ++expected));
    CHECK_EQ(CFE_ES_DeleteChildTask(id), CFE_SUCCESS);
    CHECK_EQ(CFE_ES_DeleteChildTask(id), CFE_ES_ERR_RESOURCEID_NOT_VALID);
    Store(&parent_done, 1);
    while (CFE_ES_RunLoop(&run))
    {
        (void)OS_TaskDelay(5);
    }
    CFE_ES_ExitApp(run);
}

static void ChildTasksComeAndGo(void)
{
    char                why[128];
    const EXEC_App_t    apps[] = {{"PARENT", ParentMain}};
    const EXEC_Config_t config = Config(apps, 1);
    CHECK(EXEC_Init(&config));
    CHECK(EXEC_Start(20000, why, sizeof why));
    CHECK(Until(&parent_done, 1));
    CHECK(EXEC_Stop(3000));
}

static void TheBusIsGoneWithItsApp(void)
{
    CFE_ES_AppId_t   app;
    CFE_SB_PipeId_t  pipe;
    CFE_SB_Buffer_t *buffer;
    BenchUp(NULL);
    CHECK_EQ(EXEC_HostAppCreate(&app, "BENCH"), CFE_ES_ERR_APP_CREATE); /* the name is taken */
    CHECK_EQ(EXEC_HostAppCreate(&app, "GUEST"), CFE_SUCCESS);
    CHECK_EQ(EXEC_Enter(app), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 5, "GUEST"), CFE_SUCCESS);
    EXEC_Leave();
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 5, "NOBODY"), CFE_SB_BAD_ARGUMENT); /* no app: no pipe */
    CHECK_EQ(EXEC_HostAppDelete(app), CFE_SUCCESS);
    CHECK_EQ(EXEC_Enter(bench_app), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SB_BAD_ARGUMENT);
    BenchDown();
}

int main(void)
{
    RUN(AnAppIsWokenAndEndsWhenAsked);
    RUN(AStubbornAppIsEndedByForce);
    RUN(WhoDoesNotComeUpIsNamed);
    RUN(ChildTasksComeAndGo);
    RUN(TheBusIsGoneWithItsApp);
    return CHECK_RESULT();
}
