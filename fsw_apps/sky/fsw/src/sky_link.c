/**
 * @file
 * The link model: a binary heap of packets by time of release.
 */
#include "sky_link.h"
#include "sky_mix.h"

#include <string.h>

#include "sky_assert.h"

#define ALIGNMENT     16u
#define NS_PER_US     1000u
#define PPM           1000000u
#define NO_SLOT       UINT32_MAX
#define BITS_PER_BYTE 8u

struct SKY_LinkSlot
{
    uint64_t due_us;
    uint64_t order;
    uint32_t len;
    uint32_t next_free;
};

bool SKY_LinkModel_IsIdeal(const SKY_LinkModel_t *model)
{
    return !model->cut && model->delay_us == 0u && model->jitter_us == 0u && model->rate_kbps == 0u && model->loss_ppm == 0u;
}

size_t SKY_Link_MemoryBytes(uint32_t slot_bytes, uint32_t slot_count)
{
    if (slot_bytes == 0u || slot_bytes > SKY_LINK_SLOT_BYTES_MAX || slot_count == 0u || slot_count > SKY_LINK_SLOTS_MAX)
    {
        return 0;
    }
    const uint64_t bytes = ALIGNMENT - 1u + (uint64_t)slot_count * (sizeof(SKY_LinkSlot_t) + sizeof(uint32_t) + slot_bytes);

    return (size_t)bytes == bytes ? (size_t)bytes : 0; /* 32-bit processors cannot have more */
}

bool SKY_Link_Init(SKY_Link_t *link, const SKY_LinkModel_t *model, uint32_t slot_bytes, uint32_t slot_count, void *memory,
                   size_t memory_bytes, uint64_t seed)
{
    const size_t needed = SKY_Link_MemoryBytes(slot_bytes, slot_count);
    uint8_t     *at     = memory;

    if (needed == 0u || memory_bytes < needed)
    {
        return false;
    }
    at += (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT;

    (void)memset(link, 0, sizeof(*link));
    link->model      = *model;
    link->slots      = (SKY_LinkSlot_t *)(void *)at;
    link->heap       = (uint32_t *)(void *)(at + slot_count * sizeof(SKY_LinkSlot_t));
    link->data       = at + slot_count * (sizeof(SKY_LinkSlot_t) + sizeof(uint32_t));
    link->slot_bytes = slot_bytes;
    link->slot_count = slot_count;
    link->random     = seed;
    for (uint32_t i = 0; i < slot_count; ++i)
    {
        link->slots[i].next_free = i + 1u < slot_count ? i + 1u : NO_SLOT;
    }
    SKY_ASSERT((size_t)(link->data - (uint8_t *)memory) + (size_t)slot_count * slot_bytes <= needed);
    SKY_ASSERT((uintptr_t)link->slots % ALIGNMENT == 0u);
    SKY_ASSERT((uintptr_t)link->heap % sizeof(uint32_t) == 0u);
    SKY_ASSERT(link->free_head == 0u);
    return true;
}

void SKY_Link_SetModel(SKY_Link_t *link, const SKY_LinkModel_t *model)
{
    link->model         = *model;
    link->model_changed = true;
}

/* Return the next random number. Any seed will do, also 0. */
static uint64_t Random(SKY_Link_t *link)
{
    const uint64_t number = SKY_Mix64(link->random);

    link->random += SKY_MIX_STEP;
    return number;
}

static bool Before(const SKY_Link_t *link, uint32_t slot_a, uint32_t slot_b)
{
    const SKY_LinkSlot_t *a = &link->slots[slot_a];
    const SKY_LinkSlot_t *b = &link->slots[slot_b];
    SKY_ASSERT(slot_a != slot_b); /* a packet waits in one slot */
    SKY_ASSERT(slot_a < link->slot_count);
    SKY_ASSERT(slot_b < link->slot_count);

    return a->due_us < b->due_us || (a->due_us == b->due_us && a->order < b->order);
}

static void HeapInsert(SKY_Link_t *link, uint32_t slot)
{
    uint32_t at = link->used++;
    SKY_ASSERT(slot < link->slot_count);
    SKY_ASSERT(at < link->slot_count);

    while (at > 0u && Before(link, slot, link->heap[(at - 1u) / 2u]))
    {
        link->heap[at] = link->heap[(at - 1u) / 2u];
        at             = (at - 1u) / 2u;
    }
    SKY_ASSERT(link->used <= link->slot_count);
    link->heap[at] = slot;
    SKY_ASSERT(at < link->used);
}

static uint32_t HeapTake(SKY_Link_t *link)
{
    const uint32_t first = link->heap[0];
    const uint32_t last  = link->heap[--link->used];
    uint32_t       at    = 0;
    uint32_t       child = 1;
    SKY_ASSERT(first < link->slot_count);
    SKY_ASSERT(last < link->slot_count);

    while (child < link->used)
    {
        if (child + 1u < link->used && Before(link, link->heap[child + 1u], link->heap[child]))
        {
            ++child;
        }
        if (Before(link, last, link->heap[child]))
        {
            break;
        }
        link->heap[at] = link->heap[child];
        at             = child;
        child          = 2u * at + 1u;
    }
    link->heap[at] = last;
    SKY_ASSERT(link->used < link->slot_count);
    SKY_ASSERT(link->used == 0u || !Before(link, link->heap[0], first)); /* no waiting packet was due before */
    return first;
}

static void Copy(uint8_t **to, const void *from, size_t len)
{
    if (len > 0u)
    {
        (void)memcpy(*to, from, len);
        *to += len;
    }
}

static uint64_t TransmitNs(const SKY_Link_t *link, size_t len)
{
    SKY_ASSERT(len <= link->slot_bytes);
    return link->model.rate_kbps == 0u ? 0u : (uint64_t)len * BITS_PER_BYTE * 1000000u / link->model.rate_kbps;
}

/* Lost packets occupy the transmitter, but no slot. So the queue is bounded here as if they had slots. */
static bool IsBacklogged(SKY_Link_t *link, uint64_t now_us)
{
    const uint64_t latest_ns = now_us * NS_PER_US + link->slot_count * TransmitNs(link, link->slot_bytes);

    if (link->model_changed && link->busy_until_ns > latest_ns)
    {
        link->busy_until_ns = latest_ns; /* packets queued at a slower rate do not block a faster one */
    }
    link->model_changed = false;
    return link->busy_until_ns > latest_ns;
}

/* Return the time at which the last bit has left the transmitter. */
static uint64_t Transmit(SKY_Link_t *link, uint64_t now_us, size_t len)
{
    const uint64_t now_ns = now_us * NS_PER_US;
    SKY_ASSERT(len >= 1u);

    if (link->busy_until_ns < now_ns)
    {
        link->busy_until_ns = now_ns;
    }
    link->busy_until_ns += TransmitNs(link, len);
    SKY_ASSERT(link->busy_until_ns >= now_ns);
    return (link->busy_until_ns + NS_PER_US - 1u) / NS_PER_US;
}

SKY_LinkResult_t SKY_Link_Push(SKY_Link_t *link, uint64_t now_us, const void *head, size_t head_len, const void *body,
                               size_t body_len, const void *tail, size_t tail_len)
{
    const size_t    len  = head_len + body_len + tail_len;
    const uint32_t  slot = link->free_head;
    SKY_LinkSlot_t *packet;
    uint8_t        *to;
    uint64_t        sent_us;

    if (link->model.cut)
    {
        return SKY_LINK_DROP_CUT;
    }
    if (len == 0u || len > link->slot_bytes)
    {
        return SKY_LINK_DROP_SIZE;
    }
    if (slot == NO_SLOT || IsBacklogged(link, now_us))
    {
        return SKY_LINK_DROP_QUEUE;
    }
    sent_us = Transmit(link, now_us, len);
    if (link->model.loss_ppm != 0u && Random(link) % PPM < link->model.loss_ppm)
    {
        return SKY_LINK_DROP_LOSS;
    }

    SKY_ASSERT(slot < link->slot_count);
    SKY_ASSERT(link->used < link->slot_count);
    packet          = &link->slots[slot];
    link->free_head = packet->next_free;
    to              = link->data + (size_t)slot * link->slot_bytes;
    Copy(&to, head, head_len);
    Copy(&to, body, body_len);
    Copy(&to, tail, tail_len);
    SKY_ASSERT(to == link->data + (size_t)slot * link->slot_bytes + len); /* all of the packet was copied */
    packet->len    = (uint32_t)len;
    packet->order  = link->order++;
    packet->due_us = sent_us + link->model.delay_us;
    if (link->model.jitter_us != 0u)
    {
        packet->due_us += Random(link) % ((uint64_t)link->model.jitter_us + 1u);
    }
    SKY_ASSERT(packet->due_us >= now_us);
    HeapInsert(link, slot);
    SKY_ASSERT(link->used >= 1u);
    SKY_ASSERT(link->used <= link->slot_count);
    SKY_ASSERT(link->free_head == NO_SLOT || link->free_head < link->slot_count);
    return SKY_LINK_TAKEN;
}

size_t SKY_Link_Pop(SKY_Link_t *link, uint64_t now_us, const uint8_t **data)
{
    uint32_t slot;

    if (SKY_Link_NextDue(link) > now_us || link->used == 0u)
    {
        return 0;
    }
    slot = HeapTake(link);
    SKY_ASSERT(slot < link->slot_count);
    SKY_ASSERT(link->slots[slot].due_us <= now_us);
    link->slots[slot].next_free = link->free_head;
    link->free_head             = slot; /* the slot's bytes stay valid until the next push */
    *data                       = link->data + (size_t)slot * link->slot_bytes;
    SKY_ASSERT(link->slots[slot].len >= 1u);
    SKY_ASSERT(link->slots[slot].len <= link->slot_bytes);
    SKY_ASSERT(link->free_head == slot);
    SKY_ASSERT(link->used < link->slot_count);
    return link->slots[slot].len;
}

uint64_t SKY_Link_NextDue(const SKY_Link_t *link)
{
    SKY_ASSERT(link->used <= link->slot_count);
    SKY_ASSERT(link->used == 0u || link->heap[0] < link->slot_count);
    return link->used == 0u ? UINT64_MAX : link->slots[link->heap[0]].due_us;
}
