/**
 * @file
 * The event queue: see twin_queue.h.
 */
#include "twin_queue.h"

#include <stdlib.h>

bool SKYT_Queue_Init(SKYT_Queue_t *queue, uint32_t ids)
{
    queue->heap  = calloc(ids, sizeof(*queue->heap));
    queue->at    = calloc(ids, sizeof(*queue->at));
    queue->count = 0;
    queue->order = 0;
    return queue->heap != NULL && queue->at != NULL;
}

void SKYT_Queue_Free(SKYT_Queue_t *queue)
{
    free(queue->heap);
    free(queue->at);
}

static bool is_before(const SKYT_Event_t *a, const SKYT_Event_t *b)
{
    return a->time_us < b->time_us || (a->time_us == b->time_us && a->order < b->order);
}

static void place(SKYT_Queue_t *queue, uint32_t at, const SKYT_Event_t *event)
{
    queue->heap[at]      = *event;
    queue->at[event->id] = at + 1u;
}

static void sift_up(SKYT_Queue_t *queue, uint32_t at, SKYT_Event_t event)
{
    while (at > 0 && is_before(&event, &queue->heap[(at - 1u) / 2u]))
    {
        place(queue, at, &queue->heap[(at - 1u) / 2u]);
        at = (at - 1u) / 2u;
    }
    place(queue, at, &event);
}

static void sift_down(SKYT_Queue_t *queue, uint32_t at, SKYT_Event_t event)
{
    uint32_t child = 2u * at + 1u;

    while (child < queue->count)
    {
        if (child + 1u < queue->count && is_before(&queue->heap[child + 1u], &queue->heap[child]))
        {
            ++child;
        }
        if (is_before(&event, &queue->heap[child]))
        {
            break;
        }
        place(queue, at, &queue->heap[child]);
        at    = child;
        child = 2u * at + 1u;
    }
    place(queue, at, &event);
}

/* Restore the order after the event at a place has changed, or another has come there. */
static void sift(SKYT_Queue_t *queue, uint32_t at, const SKYT_Event_t *event)
{
    if (at > 0 && is_before(event, &queue->heap[(at - 1u) / 2u]))
    {
        sift_up(queue, at, *event);
    }
    else
    {
        sift_down(queue, at, *event);
    }
}

void SKYT_Queue_Set(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us)
{
    const SKYT_Event_t event = {time_us, queue->order++, id};

    if (queue->at[id] == 0)
    {
        sift_up(queue, queue->count++, event);
    }
    else
    {
        sift(queue, queue->at[id] - 1u, &event);
    }
}

void SKYT_Queue_SetBy(SKYT_Queue_t *queue, uint32_t id, uint64_t time_us)
{
    if (queue->at[id] == 0 || time_us < queue->heap[queue->at[id] - 1u].time_us)
    {
        SKYT_Queue_Set(queue, id, time_us);
    }
}

void SKYT_Queue_Remove(SKYT_Queue_t *queue, uint32_t id)
{
    if (queue->at[id] != 0)
    {
        const uint32_t     at   = queue->at[id] - 1u;
        const SKYT_Event_t last = queue->heap[--queue->count];

        queue->at[id] = 0;
        if (at < queue->count)
        {
            sift(queue, at, &last);
        }
    }
}

bool SKYT_Queue_Take(SKYT_Queue_t *queue, uint64_t until_us, SKYT_Event_t *event)
{
    if (queue->count == 0 || queue->heap[0].time_us > until_us)
    {
        return false;
    }
    *event = queue->heap[0];
    SKYT_Queue_Remove(queue, event->id);
    return true;
}
