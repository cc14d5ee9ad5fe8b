/**
 * @file
 * Start, stop, and the scheduler: one thread that sends the wake-up commands once a second.
 */
#include <string.h>

#include "exec_priv.h"

#define SECOND_NS ((int64)1000000000)

static bool           main_initialised;
static bool           main_scheduling;
static bool           main_stop;
static bool           main_cond_made;
static pthread_cond_t main_cond;
static pthread_t      main_scheduler;
static CFE_ES_AppId_t main_app;

static void WakeAll(void)
{
    for (uint32 i = 0; i < EXEC_Config.wakeup_count; ++i)
    {
        CFE_MSG_CommandHeader_t command;
        (void)CFE_MSG_Init(CFE_MSG_PTR(command), CFE_SB_ValueToMsgId(EXEC_Config.wakeups[i]), sizeof command);
        (void)CFE_SB_TransmitMsg(CFE_MSG_PTR(command), true); /* a full pipe means a late app, and the next second comes */
    }
}

static void *Scheduler(void *unused)
{
    (void)unused;
    int64 next = EXEC_NowNs() + SECOND_NS;
    (void)EXEC_Enter(main_app);
    EXEC_Lock();
    while (!main_stop)
    {
        if (!EXEC_Wait(&main_cond, next))
        {
            EXEC_Unlock();
            WakeAll();
            EXEC_Lock();
            const int64 now = EXEC_NowNs();
            next            = next + SECOND_NS > now ? next + SECOND_NS : now + SECOND_NS;
        }
    }
    EXEC_Unlock();
    WakeAll(); /* apps that pend look at their run status then */
    EXEC_Leave();
    return NULL;
}

bool EXEC_Init(const EXEC_Config_t *config)
{
    if (main_initialised)
    {
        return false;
    }
    EXEC_Config = *config;
    if (!main_cond_made)
    {
        EXEC_CondInit(&main_cond);
        main_cond_made = true;
    }
    EXEC_EsReset();
    EXEC_PoolReset();
    EXEC_SemReset();
    EXEC_SocketReset();
    EXEC_TblReset();
    if (!EXEC_SbReset() || EXEC_HostAppCreate(&main_app, "EXEC") != CFE_SUCCESS)
    {
        return false;
    }
    main_stop        = false;
    main_scheduling  = false;
    main_initialised = true;
    return true;
}

bool EXEC_Start(uint32 timeout_ms, char *why, size_t why_size)
{
    why[0] = '\0';
    if (!main_initialised || main_scheduling)
    {
        (void)snprintf(why, why_size, "EXEC_Init comes first, and once");
        return false;
    }
    (void)EXEC_Enter(main_app);
    const bool up = EXEC_EsStart(timeout_ms, why, why_size);
    EXEC_Leave();
    if (up && pthread_create(&main_scheduler, NULL, Scheduler, NULL) != 0)
    {
        (void)snprintf(why, why_size, "no thread for the scheduler");
        return false;
    }
    main_scheduling = up;
    return up;
}

bool EXEC_Stop(uint32 timeout_ms)
{
    if (!main_initialised)
    {
        return true;
    }
    EXEC_EsRequestStop();
    if (main_scheduling)
    {
        EXEC_Lock();
        main_stop = true;
        (void)pthread_cond_signal(&main_cond);
        EXEC_Unlock();
        (void)pthread_join(main_scheduler, NULL);
    }
    const bool clean = EXEC_EsStop(timeout_ms);
    EXEC_SemReset();
    EXEC_SocketReset();
    main_initialised = false;
    main_scheduling  = false;
    return clean;
}
