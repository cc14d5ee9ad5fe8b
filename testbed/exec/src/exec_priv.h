/**
 * @file
 * Declarations that the files of the executive share.
 *
 * One lock guards apps, tasks, pipes, events and tables: traffic is low, chunks do not pass here. Memory pools and semaphores
 * have locks of their own. While a lock is held the thread cannot be cancelled; a deleted task ends while it waits under the
 * lock (EXEC_Wait).
 */
#ifndef EXEC_PRIV_H
#define EXEC_PRIV_H

#include <pthread.h>
#include <time.h>

#include "cfe_platform_cfg.h"
#include "exec.h"

#define EXEC_NONE        UINT32_MAX
#define EXEC_POISON_BYTE 0xDB
#define EXEC_ID_MARK     0x02000000u

/** A struct that shows how the compiler aligns memory of a pool. */
typedef struct
{
    char               byte;
    CFE_ES_PoolAlign_t align;
} EXEC_PoolProbe_t;

/** Alignment of a pool's blocks. On s390x and 32-bit x86 the size of the type is not its alignment. */
#define EXEC_POOL_ALIGN ((size_t)offsetof(EXEC_PoolProbe_t, align))

/** Kinds of ids; the numbers are cFE's. */
enum
{
    EXEC_ID_TASK   = 0x01,
    EXEC_ID_BINSEM = 0x04,
    EXEC_ID_MUTEX  = 0x05,
    EXEC_ID_STREAM = 0x06,
    EXEC_ID_APP    = 0x11,
    EXEC_ID_POOL   = 0x14,
    EXEC_ID_PIPE   = 0x16,
    EXEC_ID_TABLE  = 0x1B
};

typedef enum
{
    EXEC_APP_FREE = 0,
    EXEC_APP_STARTING,
    EXEC_APP_INITIALISED, /**< waits in CFE_ES_WaitForStartupSync */
    EXEC_APP_RUNNING,
    EXEC_APP_STOPPED,
    EXEC_APP_HOST /**< threads of the host, no task of ours */
} EXEC_AppState_t;

typedef struct
{
    uint16 event_id;
    uint16 mask;
    uint16 count;
} EXEC_Filter_t;

typedef struct
{
    bool          registered;
    bool          unregistered_reported;
    uint32        filter_count;
    EXEC_Filter_t filters[CFE_PLATFORM_EVS_MAX_EVENT_FILTERS];
    int64         tokens; /**< thousandths of events that may still be sent at once */
    int64         credited_ms;
} EXEC_AppEvents_t;

typedef struct
{
    uint32           id;
    char             name[OS_MAX_API_NAME];
    EXEC_AppState_t  state;
    uint32           exit_status;
    uint32           main_task; /**< index, EXEC_NONE for host apps */
    EXEC_AppEvents_t events;
} EXEC_AppRecord_t;

/** Return the index of an id in a table of @p count records, or EXEC_NONE if the id is of another kind. */
uint32 EXEC_IdIndex(uint32 id, uint32 kind, uint32 count);
/** Return the id that follows @p last for the first index whose entry in ids (at @p stride bytes) is 0; 0 if all are taken. */
uint32 EXEC_IdNext(uint32 last, uint32 kind, const void *ids, size_t stride, uint32 count);

void EXEC_Lock(void);
void EXEC_Unlock(void);
/** With the lock held: wait for a change. @param deadline_ns CLOCK_MONOTONIC, < 0: no deadline. @return false: deadline passed */
bool  EXEC_Wait(pthread_cond_t *change, int64 deadline_ns);
void  EXEC_CondInit(pthread_cond_t *cond);
int64 EXEC_NowNs(void);
/** Return true if a string fits a name of cFE with its terminator. */
bool EXEC_NameOk(const char *name);
/** Wait on @p cond with @p lock held. The thread can be cancelled only while it waits. */
int EXEC_CondWait(pthread_cond_t *cond, pthread_mutex_t *lock, int64 deadline_ns);
/** Write a message to the log, as a line. The bounds are those of EXEC_FormatLine. */
void EXEC_Log(CFE_EVS_EventType_Enum_t level, const char *logger, const char *message);
/** Write what @p format makes of @p arguments to the log; a longer message is cut. */
void EXEC_Print(CFE_EVS_EventType_Enum_t level, const char *logger, const char *format, va_list arguments);

extern EXEC_Config_t EXEC_Config;

/* apps and tasks: exec_es.c. All with the lock held. */
EXEC_AppRecord_t *EXEC_CurrentApp(void);
EXEC_AppRecord_t *EXEC_AppById(uint32 id);

bool EXEC_EsStart(uint32 timeout_ms, char *why, size_t why_size); /* these three run without the lock */
void EXEC_EsRequestStop(void);
bool EXEC_EsStop(uint32 timeout_ms);

/* These reset the state to that before the first use. */
void EXEC_EsReset(void);
bool EXEC_SbReset(void);
void EXEC_TblReset(void);
void EXEC_PoolReset(void);
void EXEC_SemReset(void);
void EXEC_SocketReset(void);

/* Windows of pipes, by index of the pipe, with the lock held: exec_window.c. */
bool  EXEC_WindowMap(void);
void *EXEC_WindowShow(uint32 pipe, const void *message, size_t size); /* @return what the app may see */
void  EXEC_WindowPoison(uint32 pipe, size_t size);

/* The bus's side of an app's end, with the lock held. */
void EXEC_SbAppGone(uint32 app_id);

#endif
