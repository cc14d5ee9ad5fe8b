/**
 * @file
 * The part of OSAL that the host executive offers: names, signatures and results as in OSAL 6 (cFS 7).
 */
#ifndef OSAPI_H
#define OSAPI_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common_types.h"
#include "osconfig.h"

/* Results. */
#define OS_SUCCESS                     (0)
#define OS_ERROR                       (-1)
#define OS_INVALID_POINTER             (-2)
#define OS_ERROR_TIMEOUT               (-4)
#define OS_SEM_FAILURE                 (-6)
#define OS_SEM_TIMEOUT                 (-7)
#define OS_QUEUE_EMPTY                 (-8)
#define OS_ERR_NAME_TOO_LONG           (-13)
#define OS_ERR_NO_FREE_IDS             (-14)
#define OS_ERR_NAME_TAKEN              (-15)
#define OS_ERR_INVALID_ID              (-16)
#define OS_INVALID_SEM_VALUE           (-20)
#define OS_ERR_NOT_IMPLEMENTED         (-28)
#define OS_ERR_BAD_ADDRESS             (-34)
#define OS_ERR_INCORRECT_OBJ_STATE     (-35)
#define OS_ERR_INCORRECT_OBJ_TYPE      (-36)
#define OS_ERR_OPERATION_NOT_SUPPORTED (-38)
#define OS_ERR_INVALID_SIZE            (-40)
#define OS_ERR_INVALID_ARGUMENT        (-42)

#define OS_PEND  (-1) /**< wait as long as it takes */
#define OS_CHECK (0)  /**< do not wait */

/* Object ids. */
#define OS_OBJECT_ID_UNDEFINED ((osal_id_t){0})

/* Time, in ticks of 100 ns. */
typedef struct
{
    int64 ticks;
} OS_time_t;

enum
{
    OS_TIME_TICK_RESOLUTION_NS = 100,
    OS_TIME_TICKS_PER_USEC     = 10
};

int32 OS_GetMonotonicTime(OS_time_t *time_struct);

static inline int64 OS_TimeGetTotalMicroseconds(OS_time_t tm)
{
    return tm.ticks / OS_TIME_TICKS_PER_USEC;
}

/* Tasks. */
typedef uint8 osal_priority_t;
typedef void *osal_stackptr_t;
typedef void  osal_task;
typedef osal_task (*osal_task_entry)(void);

#define OSAL_PRIORITY_C(x)       ((osal_priority_t){x})
#define OSAL_STACKPTR_C(x)       ((osal_stackptr_t){x})
#define OSAL_TASK_STACK_ALLOCATE OSAL_STACKPTR_C(NULL)

int32 OS_TaskDelay(uint32 millisecond);
int32 OS_TaskInstallDeleteHandler(osal_task_entry function_pointer);

/* Semaphores. */
#define OS_SEM_FULL  1
#define OS_SEM_EMPTY 0

int32 OS_MutSemCreate(osal_id_t *sem_id, const char *sem_name, uint32 options);
int32 OS_MutSemGive(osal_id_t sem_id);
int32 OS_MutSemTake(osal_id_t sem_id);

int32 OS_BinSemCreate(osal_id_t *sem_id, const char *sem_name, uint32 sem_initial_value, uint32 options);
int32 OS_BinSemGive(osal_id_t sem_id);
int32 OS_BinSemTimedWait(osal_id_t sem_id, uint32 msecs);

/* Sockets. */
typedef enum
{
    OS_SocketDomain_INVALID,
    OS_SocketDomain_INET,
    OS_SocketDomain_INET6,
    OS_SocketDomain_MAX
} OS_SocketDomain_t;

typedef enum
{
    OS_SocketType_INVALID,
    OS_SocketType_DATAGRAM,
    OS_SocketType_STREAM,
    OS_SocketType_MAX
} OS_SocketType_t;

typedef union
{
    uint8  Buffer[OS_SOCKADDR_MAX_LEN];
    uint32 AlignU32;
    void  *AlignPtr;
} OS_SockAddrData_t;

typedef struct
{
    size_t            ActualLength;
    OS_SockAddrData_t AddrData; /**< the system's own form of the address, for OSAL's functions only */
} OS_SockAddr_t;

int32 OS_SocketAddrInit(OS_SockAddr_t *Addr, OS_SocketDomain_t Domain);
int32 OS_SocketAddrFromString(OS_SockAddr_t *Addr, const char *string);
int32 OS_SocketAddrGetPort(uint16 *PortNum, const OS_SockAddr_t *Addr);
int32 OS_SocketAddrSetPort(OS_SockAddr_t *Addr, uint16 PortNum);
int32 OS_SocketOpen(osal_id_t *sock_id, OS_SocketDomain_t Domain, OS_SocketType_t Type);
int32 OS_SocketBind(osal_id_t sock_id, const OS_SockAddr_t *Addr);
/** @return bytes received, or a negative result */
int32 OS_SocketRecvFrom(osal_id_t sock_id, void *buffer, size_t buflen, OS_SockAddr_t *RemoteAddr, int32 timeout);
/** @return bytes sent, or a negative result */
int32 OS_SocketSendTo(osal_id_t sock_id, const void *buffer, size_t buflen, const OS_SockAddr_t *RemoteAddr);
int32 OS_close(osal_id_t filedes);

typedef struct
{
    uint8 object_ids[(OS_MAX_NUM_OPEN_FILES + 7) / 8];
} OS_FdSet;

/** Wait until an object of the sets is ready; leave only ready ones in them. */
int32 OS_SelectMultiple(OS_FdSet *ReadSet, OS_FdSet *WriteSet, int32 msecs);
int32 OS_SelectFdZero(OS_FdSet *Set);
int32 OS_SelectFdAdd(OS_FdSet *Set, osal_id_t objid);
bool  OS_SelectFdIsSet(const OS_FdSet *Set, osal_id_t objid);

void OS_printf(const char *string, ...) OS_PRINTF(1, 2);

#endif
