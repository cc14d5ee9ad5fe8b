/**
 * @file
 * The event queue: a binary heap by time, then by order of setting. Every event has a number of its own and is in the queue at most
 * once; setting it again moves it. So nothing stale waits there, and its size is known from the start.
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
    uint32_t     *at; /**< by id: place in the heap + 1; 0: not there */
    uint32_t      count;
    uint64_t      order;
} SKYT_Queue_t;

/** Events are numbered 0 .. ids - 1. @return false: no memory */
bool SKYT_Queue_Init(SKYT_Queue_t *queue, uint32_t ids);
void SKYT_Queue_Free(SKYT_Queue_t *queue);
void SKYT_Queue_Set(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us);
/** Set, unless it is due earlier already. */
void SKYT_Queue_SetBy(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us);
/** Nothing happens if it is not there. */
void SKYT_Queue_Remove(SKYT_Queue_t *queue, uint32_t id);
bool SKYT_Queue_Has(const SKYT_Queue_t *queue, uint32_t id);
/** Take the first event out if it is due. @return false: none is */
bool SKYT_Queue_Take(SKYT_Queue_t *queue, uint64_t until_us, SKYT_Event_t *event);

#endif
