/**
 * @file
 * Executive services: apps, tasks, memory pools.
 */
#ifndef CFE_ES_H
#define CFE_ES_H

#include "cfe_error.h"
#include "cfe_es_api_typedefs.h"

bool         CFE_ES_RunLoop(uint32 *RunStatus);
void         CFE_ES_ExitApp(uint32 ExitStatus);
void         CFE_ES_WaitForStartupSync(uint32 TimeOutMilliseconds);
CFE_Status_t CFE_ES_WriteToSysLog(const char *SpecStringPtr, ...) OS_PRINTF(1, 2);

CFE_Status_t CFE_ES_CreateChildTask(CFE_ES_TaskId_t *TaskIdPtr, const char *TaskName, CFE_ES_ChildTaskMainFuncPtr_t FunctionPtr,
                                    CFE_ES_StackPointer_t StackPtr, size_t StackSize, CFE_ES_TaskPriority_Atom_t Priority,
                                    uint32 Flags);
void         CFE_ES_ExitChildTask(void);
CFE_Status_t CFE_ES_DeleteChildTask(CFE_ES_TaskId_t TaskId);

CFE_Status_t CFE_ES_PoolCreateEx(CFE_ES_MemHandle_t *PoolID, void *MemPtr, size_t Size, uint16 NumBlockSizes,
                                 const size_t *BlockSizes, bool UseMutex);
/** Get a block of a pool. @return its bytes (> 0), or a negative result */
int32 CFE_ES_GetPoolBuf(CFE_ES_MemPoolBuf_t *BufPtr, CFE_ES_MemHandle_t Handle, size_t Size);
/** Give a block back to its pool. @return its bytes (> 0), or a negative result */
int32 CFE_ES_PutPoolBuf(CFE_ES_MemHandle_t Handle, CFE_ES_MemPoolBuf_t BufPtr);

/** Ignore a performance mark: use the host's own profilers. */
void CFE_ES_PerfLogAdd(uint32 Marker, uint32 EntryExit);
#define CFE_ES_PerfLogEntry(id) (CFE_ES_PerfLogAdd(id, 0))
#define CFE_ES_PerfLogExit(id)  (CFE_ES_PerfLogAdd(id, 1))

#endif
