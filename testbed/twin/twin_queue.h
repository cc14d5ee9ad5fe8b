/**
 * @file
 * Event queue: a binary heap by time, then by order of setting. Every event has a number of its own and is in the queue at most
 * once; setting it again moves it. So no stale event waits there, and the size of the queue is known from the start.
 */
#ifndef TWIN_QUEUE_H
#define TWIN_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct
{
    uint64_t time_us;
    uint64_t order;
    uint32_t id;
} SKYT_Event_t;

typedef struct
{
    SKYT_Event_t *heap;
    uint32_t     *at; /**< place in the heap + 1 by id; 0: not there */
    uint32_t      count;
    uint64_t      order;
} SKYT_Queue_t;

/** Begin a queue of events 0 .. ids - 1. @return false if there is no memory */
bool SKYT_Queue_Init(SKYT_Queue_t *queue, uint32_t ids);
void SKYT_Queue_Free(SKYT_Queue_t *queue);
void SKYT_Queue_Set(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us);
/** Set an event, unless it is due earlier already. */
void SKYT_Queue_SetBy(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us);
/** Remove an event. Nothing happens if it is not there. */
void SKYT_Queue_Remove(SKYT_Queue_t *queue, uint32_t id);
/** Take the first event out if it is due. @return false if none is */
bool SKYT_Queue_Take(SKYT_Queue_t *queue, uint64_t until_us, SKYT_Event_t *event);

#endif
