/**
 * @file
 * Software Bus.
 *
 * A message lies in a block of the bus's pool from transmit to the receive after the one that delivered it, as in cFE, so the pool
 * runs dry when it would there. What the receiver sees is a copy of its own: exec_window.c.
 */
#include <string.h>

#include "exec_priv.h"

#define PIPES        ((uint32)CFE_PLATFORM_SB_MAX_PIPES)
#define ROUTES       ((uint32)CFE_PLATFORM_SB_MAX_MSG_IDS)
#define DESTINATIONS ((uint32)CFE_PLATFORM_SB_MAX_DEST_PER_PKT)

#define OWNED_MAGIC 0x5BB0FFE5u /* only the app that allocated such a message may transmit or release it */

/* A message in the pool. Its head is as large as cFE's descriptor, so that as many messages fit. */
typedef struct Message
{
    uint32 magic;
    uint32 owner;
    uint32 uses;
    uint32 msg_id;
    size_t size;
    uint8  reserved[24];
} Message_t;

CompileTimeAssert(sizeof(Message_t) % EXEC_POOL_ALIGN == 0, MessageIsAligned);

typedef struct
{
    uint32 pipe; /* id of the pipe; 0: the entry is free */
    uint16 limit;
    uint16 waiting;
} Destination_t;

typedef struct
{
    uint32        msg_id;
    uint16        sequence;
    Destination_t destinations[DESTINATIONS];
} Route_t;

typedef struct
{
    uint32         id;
    uint32         app; /* id of the owner */
    char           name[OS_MAX_API_NAME];
    uint32         depth, head, count;
    Message_t     *queue[OS_QUEUE_MAX_DEPTH];
    Message_t     *delivered;
    bool           cond_made;
    pthread_cond_t cond;
} Pipe_t;

static CFE_ES_STATIC_POOL_TYPE(CFE_PLATFORM_SB_BUF_MEMORY_BYTES) sb_pool_memory;
static CFE_ES_MemHandle_t sb_pool;
static Route_t            sb_routes[ROUTES];
static uint32             sb_route_count;
static Pipe_t             sb_pipes[PIPES];
static uint32             sb_last_pipe;
static EXEC_SbCounters_t  sb_counters;

static const size_t sb_block_sizes[] = {
    8, 16, 20, 36, 64, 96, 128, 160, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, CFE_PLATFORM_SB_MAX_BLOCK_SIZE};

bool EXEC_SbReset(void)
{
    for (uint32 i = 0; i < PIPES; ++i)
    {
        sb_pipes[i].id        = 0;
        sb_pipes[i].delivered = NULL;
        if (!sb_pipes[i].cond_made)
        {
            EXEC_CondInit(&sb_pipes[i].cond);
            sb_pipes[i].cond_made = true;
        }
    }
    sb_route_count = 0;
    (void)memset(&sb_counters, 0, sizeof sb_counters);
    return EXEC_WindowMap() &&
           CFE_ES_PoolCreateEx(&sb_pool, &sb_pool_memory, sizeof sb_pool_memory, sizeof sb_block_sizes / sizeof sb_block_sizes[0],
                               sb_block_sizes, CFE_ES_USE_MUTEX) == CFE_SUCCESS;
}

void EXEC_SbCounters(EXEC_SbCounters_t *counters)
{
    EXEC_Lock();
    *counters = sb_counters;
    EXEC_Unlock();
}

static bool ValidMsgId(CFE_SB_MsgId_Atom_t value)
{
    return value != 0 && value <= CFE_PLATFORM_SB_HIGHEST_VALID_MSGID;
}

/* All functions below run with the lock held, except those with cFE's names. */

static Pipe_t *PipeById(uint32 id)
{
    const uint32 index = EXEC_IdIndex(id, EXEC_ID_PIPE, PIPES);
    return index != EXEC_NONE && sb_pipes[index].id == id ? &sb_pipes[index] : NULL;
}

static Route_t *RouteOf(uint32 msg_id)
{
    for (uint32 i = 0; i < sb_route_count; ++i)
    {
        if (sb_routes[i].msg_id == msg_id)
        {
            return &sb_routes[i];
        }
    }
    return NULL;
}

static Destination_t *DestinationOf(Route_t *route, uint32 pipe)
{
    for (uint32 i = 0; route != NULL && i < DESTINATIONS; ++i)
    {
        if (route->destinations[i].pipe == pipe)
        {
            return &route->destinations[i];
        }
    }
    return NULL;
}

static CFE_SB_Buffer_t *Content(Message_t *message)
{
    return (CFE_SB_Buffer_t *)(void *)(message + 1);
}

static void Drop(Message_t *message)
{
    if (--message->uses == 0)
    {
        (void)memset(Content(message), EXEC_POISON_BYTE, message->size);
        message->magic = 0;
        (void)CFE_ES_PutPoolBuf(sb_pool, message);
    }
}

static uint32 Index(const Pipe_t *pipe)
{
    return (uint32)(pipe - sb_pipes);
}

static void TakeBack(Pipe_t *pipe)
{
    if (pipe->delivered != NULL)
    {
        EXEC_WindowPoison(Index(pipe), pipe->delivered->size);
        Drop(pipe->delivered);
        pipe->delivered = NULL;
    }
}

static void RemovePipe(Pipe_t *pipe)
{
    for (uint32 i = 0; i < sb_route_count; ++i)
    {
        Destination_t *destination = DestinationOf(&sb_routes[i], pipe->id);
        if (destination != NULL)
        {
            destination->pipe = 0;
        }
    }
    TakeBack(pipe);
    for (; pipe->count > 0; --pipe->count)
    {
        Drop(pipe->queue[pipe->head]);
        pipe->head = (pipe->head + 1u) % pipe->depth;
    }
    pipe->id = 0;
    (void)pthread_cond_broadcast(&pipe->cond);
}

void EXEC_SbAppGone(uint32 app_id)
{
    for (uint32 i = 0; i < PIPES; ++i)
    {
        if (sb_pipes[i].id != 0 && sb_pipes[i].app == app_id)
        {
            RemovePipe(&sb_pipes[i]);
        }
    }
}

CFE_Status_t CFE_SB_CreatePipe(CFE_SB_PipeId_t *PipeIdPtr, uint16 Depth, const char *PipeName)
{
    if (PipeIdPtr == NULL || Depth == 0 || Depth > OS_QUEUE_MAX_DEPTH || PipeName == NULL || PipeName[0] == '\0')
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    if (!EXEC_NameOk(PipeName))
    {
        return CFE_SB_PIPE_CR_ERR;
    }
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    const EXEC_AppRecord_t *app = EXEC_CurrentApp();
    const uint32            id  = EXEC_IdNext(sb_last_pipe, EXEC_ID_PIPE, &sb_pipes[0].id, sizeof sb_pipes[0], PIPES);
    for (uint32 i = 0; i < PIPES; ++i)
    {
        if (sb_pipes[i].id != 0 && strcmp(sb_pipes[i].name, PipeName) == 0)
        {
            status = CFE_SB_PIPE_CR_ERR;
        }
    }
    if (app == NULL)
    {
        status = CFE_SB_BAD_ARGUMENT;
    }
    else if (id == 0)
    {
        status = CFE_SB_MAX_PIPES_MET;
    }
    else if (status == CFE_SUCCESS)
    {
        Pipe_t *pipe = &sb_pipes[EXEC_IdIndex(id, EXEC_ID_PIPE, PIPES)];
        pipe->app    = app->id;
        pipe->depth  = Depth;
        pipe->head   = 0;
        pipe->count  = 0;
        (void)memcpy(pipe->name, PipeName, strlen(PipeName) + 1);
        pipe->id         = id;
        sb_last_pipe     = id;
        PipeIdPtr->id.id = id;
    }
    EXEC_Unlock();
    return status;
}

/* Return the pipe, if the calling app owns it. */
static Pipe_t *OwnPipe(CFE_SB_PipeId_t pipe_id)
{
    const EXEC_AppRecord_t *app  = EXEC_CurrentApp();
    Pipe_t                 *pipe = PipeById(pipe_id.id.id);
    return pipe != NULL && app != NULL && pipe->app == app->id ? pipe : NULL;
}

CFE_Status_t CFE_SB_DeletePipe(CFE_SB_PipeId_t PipeId)
{
    EXEC_Lock();
    Pipe_t *pipe = OwnPipe(PipeId);
    if (pipe != NULL)
    {
        RemovePipe(pipe);
    }
    EXEC_Unlock();
    return pipe != NULL ? CFE_SUCCESS : CFE_SB_BAD_ARGUMENT;
}

CFE_Status_t CFE_SB_SubscribeEx(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId, CFE_SB_Qos_t Quality, uint16 MsgLim)
{
    (void)Quality;
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    const Pipe_t *pipe  = OwnPipe(PipeId);
    Route_t      *route = RouteOf(MsgId.Value);
    if (pipe == NULL || !ValidMsgId(MsgId.Value))
    {
        status = CFE_SB_BAD_ARGUMENT;
    }
    else if (route == NULL && sb_route_count == ROUTES)
    {
        status = CFE_SB_MAX_MSGS_MET;
    }
    else if (DestinationOf(route, pipe->id) == NULL) /* a second subscription changes nothing */
    {
        if (route == NULL)
        {
            route = &sb_routes[sb_route_count++];
            (void)memset(route, 0, sizeof *route);
            route->msg_id = MsgId.Value;
        }
        Destination_t *destination = DestinationOf(route, 0);
        if (destination == NULL)
        {
            status = CFE_SB_MAX_DESTS_MET;
        }
        else
        {
            destination->pipe    = pipe->id;
            destination->limit   = MsgLim;
            destination->waiting = 0;
        }
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t CFE_SB_Subscribe(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId)
{
    return CFE_SB_SubscribeEx(MsgId, PipeId, CFE_SB_DEFAULT_QOS, CFE_PLATFORM_SB_DEFAULT_MSG_LIMIT);
}

CFE_Status_t CFE_SB_Unsubscribe(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId)
{
    EXEC_Lock();
    const Pipe_t *pipe = OwnPipe(PipeId);
    const bool    good = pipe != NULL && ValidMsgId(MsgId.Value);
    if (good)
    {
        Destination_t *destination = DestinationOf(RouteOf(MsgId.Value), pipe->id);
        if (destination != NULL) /* cFE succeeds without a subscription, too */
        {
            destination->pipe = 0;
        }
    }
    EXEC_Unlock();
    return good ? CFE_SUCCESS : CFE_SB_BAD_ARGUMENT;
}

/* With the lock held: wait for the next message of a pipe, which becomes its `delivered`. */
static CFE_Status_t Next(CFE_SB_PipeId_t pipe_id, int32 timeout_ms, Pipe_t **found)
{
    const int64  deadline = timeout_ms == CFE_SB_PEND_FOREVER ? -1 : EXEC_NowNs() + (int64)timeout_ms * 1000000;
    CFE_Status_t status   = CFE_SUCCESS;
    Pipe_t      *pipe     = PipeById(pipe_id.id.id);
    if (pipe == NULL)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    TakeBack(pipe);
    while (status == CFE_SUCCESS && pipe->count == 0)
    {
        if (timeout_ms == CFE_SB_POLL)
        {
            status = CFE_SB_NO_MESSAGE;
        }
        else if (!EXEC_Wait(&pipe->cond, deadline) && pipe->count == 0)
        {
            status = CFE_SB_TIME_OUT;
        }
        if (pipe->id != pipe_id.id.id)
        {
            status = CFE_SB_PIPE_RD_ERR;
        }
    }
    if (status == CFE_SUCCESS)
    {
        Message_t *message = pipe->queue[pipe->head];
        pipe->head         = (pipe->head + 1u) % pipe->depth;
        --pipe->count;
        Destination_t *destination = DestinationOf(RouteOf(message->msg_id), pipe->id);
        if (destination != NULL && destination->waiting > 0)
        {
            --destination->waiting;
        }
        TakeBack(pipe); /* the message of another thread that received meanwhile */
        pipe->delivered = message;
        *found          = pipe;
    }
    return status;
}

CFE_Status_t CFE_SB_ReceiveBuffer(CFE_SB_Buffer_t **BufPtr, CFE_SB_PipeId_t PipeId, int32 TimeOut)
{
    if (BufPtr == NULL || TimeOut < CFE_SB_PEND_FOREVER)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    *BufPtr      = NULL;
    Pipe_t *pipe = NULL;
    EXEC_Lock();
    const CFE_Status_t status = Next(PipeId, TimeOut, &pipe);
    if (status == CFE_SUCCESS)
    {
        *BufPtr = (CFE_SB_Buffer_t *)EXEC_WindowShow(Index(pipe), Content(pipe->delivered), pipe->delivered->size);
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t EXEC_Receive(void *message, size_t *size, CFE_SB_PipeId_t pipe_id, int32 timeout_ms)
{
    Pipe_t *pipe = NULL;
    *size        = 0;
    if (timeout_ms < CFE_SB_PEND_FOREVER)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    EXEC_Lock();
    const CFE_Status_t status = Next(pipe_id, timeout_ms, &pipe);
    if (status == CFE_SUCCESS)
    {
        *size = pipe->delivered->size;
        (void)memcpy(message, Content(pipe->delivered), *size);
    }
    EXEC_Unlock();
    return status;
}

CFE_SB_Buffer_t *CFE_SB_AllocateMessageBuffer(size_t MsgSize)
{
    CFE_ES_MemPoolBuf_t block   = NULL;
    CFE_SB_Buffer_t    *content = NULL;
    EXEC_Lock();
    const EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app != NULL && MsgSize <= CFE_MISSION_SB_MAX_SB_MSG_SIZE)
    {
        if (CFE_ES_GetPoolBuf(&block, sb_pool, sizeof(Message_t) + MsgSize) > 0)
        {
            Message_t *message = block;
            (void)memset(message, 0, sizeof *message + MsgSize);
            message->magic = OWNED_MAGIC;
            message->owner = app->id;
            message->uses  = 1;
            message->size  = MsgSize;
            content        = Content(message);
        }
        else
        {
            ++sb_counters.pool_empty;
        }
    }
    EXEC_Unlock();
    return content;
}

/* Return the message behind a buffer that somebody allocated and has not sent yet, or NULL. */
static Message_t *OwnedMessage(CFE_SB_Buffer_t *buffer)
{
    const cpuaddr address = (cpuaddr)buffer;
    const cpuaddr first   = (cpuaddr)&sb_pool_memory + sizeof(Message_t);
    if (address < first || address >= (cpuaddr)&sb_pool_memory + sizeof sb_pool_memory || address % EXEC_POOL_ALIGN != 0)
    {
        return NULL;
    }
    Message_t *message = (Message_t *)(void *)((uint8 *)buffer - sizeof(Message_t));
    return message->magic == OWNED_MAGIC && message->owner != 0 ? message : NULL;
}

CFE_Status_t CFE_SB_ReleaseMessageBuffer(CFE_SB_Buffer_t *BufPtr)
{
    if (BufPtr == NULL)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    EXEC_Lock();
    Message_t *message = OwnedMessage(BufPtr);
    if (message != NULL)
    {
        Drop(message);
    }
    EXEC_Unlock();
    return message != NULL ? CFE_SUCCESS : CFE_SB_BUFFER_INVALID;
}

static void Enqueue(Destination_t *destination, Message_t *message)
{
    Pipe_t *pipe = PipeById(destination->pipe);
    if (pipe == NULL)
    {
        return;
    }
    if (destination->waiting >= destination->limit)
    {
        ++sb_counters.message_limit;
    }
    else if (pipe->count == pipe->depth)
    {
        ++sb_counters.pipe_overflow;
    }
    else
    {
        pipe->queue[(pipe->head + pipe->count) % pipe->depth] = message;
        ++pipe->count;
        ++destination->waiting;
        ++message->uses;
        (void)pthread_cond_signal(&pipe->cond);
    }
}

CFE_Status_t CFE_SB_TransmitBuffer(CFE_SB_Buffer_t *BufPtr, bool IsOrigination)
{
    CFE_SB_MsgId_t msg_id = CFE_SB_INVALID_MSG_ID;
    size_t         size   = 0;
    if (BufPtr == NULL)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    CFE_Status_t status = CFE_SUCCESS;
    EXEC_Lock();
    Message_t *message = OwnedMessage(BufPtr);
    if (message == NULL)
    {
        status = CFE_SB_BUFFER_INVALID;
    }
    else
    {
        (void)CFE_MSG_GetMsgId(&BufPtr->Msg, &msg_id);
        (void)CFE_MSG_GetSize(&BufPtr->Msg, &size);
        if (!ValidMsgId(msg_id.Value))
        {
            status = CFE_SB_BAD_ARGUMENT;
        }
        else if (size > message->size) /* cFE would read beyond the buffer */
        {
            status = CFE_SB_MSG_TOO_BIG;
        }
    }
    if (status == CFE_SUCCESS)
    {
        Route_t *route  = RouteOf(msg_id.Value);
        message->msg_id = msg_id.Value;
        message->owner  = 0;
        message->size   = size; /* the message may have been made for more bytes */
        if (route == NULL)
        {
            ++sb_counters.no_subscribers;
        }
        else if (IsOrigination)
        {
            route->sequence = (uint16)((route->sequence + 1u) & 0x3FFFu);
            (void)CFE_MSG_SetSequenceCount(&BufPtr->Msg, route->sequence);
        }
        if (IsOrigination)
        {
            CFE_SB_TimeStampMsg(&BufPtr->Msg);
            (void)CFE_MSG_GenerateChecksum(&BufPtr->Msg);
        }
        for (uint32 i = 0; route != NULL && i < DESTINATIONS; ++i)
        {
            Enqueue(&route->destinations[i], message);
        }
        Drop(message); /* the sender no longer uses it */
    }
    EXEC_Unlock();
    return status;
}

CFE_Status_t CFE_SB_TransmitMsg(const CFE_MSG_Message_t *MsgPtr, bool IsOrigination)
{
    CFE_SB_MsgId_t msg_id = CFE_SB_INVALID_MSG_ID;
    size_t         size   = 0;
    if (MsgPtr == NULL)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    (void)CFE_MSG_GetMsgId(MsgPtr, &msg_id);
    (void)CFE_MSG_GetSize(MsgPtr, &size);
    if (!ValidMsgId(msg_id.Value))
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    if (size > CFE_MISSION_SB_MAX_SB_MSG_SIZE)
    {
        return CFE_SB_MSG_TOO_BIG;
    }
    CFE_SB_Buffer_t *buffer = CFE_SB_AllocateMessageBuffer(size);
    if (buffer == NULL)
    {
        return CFE_SB_BUF_ALOC_ERR;
    }
    (void)memcpy(buffer, MsgPtr, size);
    const CFE_Status_t status = CFE_SB_TransmitBuffer(buffer, IsOrigination);
    if (status != CFE_SUCCESS)
    {
        (void)CFE_SB_ReleaseMessageBuffer(buffer);
    }
    return status;
}
