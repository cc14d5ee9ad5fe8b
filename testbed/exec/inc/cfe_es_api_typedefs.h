/**
 * @file
 * Types of the interface of the executive services.
 */
#ifndef CFE_ES_API_TYPEDEFS_H
#define CFE_ES_API_TYPEDEFS_H

#include "cfe_es_extern_typedefs.h"

typedef void (*CFE_ES_TaskEntryFuncPtr_t)(void);
typedef CFE_ES_TaskEntryFuncPtr_t CFE_ES_ChildTaskMainFuncPtr_t;
typedef void                     *CFE_ES_StackPointer_t;
typedef void                     *CFE_ES_MemPoolBuf_t;

/** Types for which memory of a pool must be aligned. */
typedef union CFE_ES_PoolAlign
{
    void         *Ptr;
    long long int LongInt;
    long double   LongDouble;
} CFE_ES_PoolAlign_t;

#define CFE_ES_STATIC_POOL_TYPE(size)  \
    union                              \
    {                                  \
        CFE_ES_PoolAlign_t Align;      \
        uint8              Data[size]; \
    }

#define CFE_ES_MEMPOOLBUF_C(x) ((CFE_ES_MemPoolBuf_t)(x))

#define CFE_ES_APPID_C(x)     ((CFE_ES_AppId_t)CFE_RESOURCEID_WRAP(x))
#define CFE_ES_TASKID_C(x)    ((CFE_ES_TaskId_t)CFE_RESOURCEID_WRAP(x))
#define CFE_ES_MEMHANDLE_C(x) ((CFE_ES_MemHandle_t)CFE_RESOURCEID_WRAP(x))

#define CFE_ES_APPID_UNDEFINED     CFE_ES_APPID_C(CFE_RESOURCEID_UNDEFINED)
#define CFE_ES_TASKID_UNDEFINED    CFE_ES_TASKID_C(CFE_RESOURCEID_UNDEFINED)
#define CFE_ES_MEMHANDLE_UNDEFINED CFE_ES_MEMHANDLE_C(CFE_RESOURCEID_UNDEFINED)

#define CFE_ES_TASK_STACK_ALLOCATE NULL
#define CFE_ES_NO_MUTEX            false
#define CFE_ES_USE_MUTEX           true

#endif
