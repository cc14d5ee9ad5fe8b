/**
 * @file
 * Model of one link: delay, jitter, rate, loss, cut. A packet goes in, and comes out when it would have arrived. Packets wait in
 * memory that the caller hands in; jitter and loss come from a seeded generator, so a run can be repeated exactly.
 */
#ifndef SKY_LINK_H
#define SKY_LINK_H

#include "sky_packet.h"

typedef struct
{
    uint32_t delay_us;
    uint32_t jitter_us; /**< jitter, uniform in 0 .. jitter_us, on top; reorders packets if it exceeds their spacing */
    uint32_t rate_kbps; /**< 0: unlimited */
    uint32_t loss_ppm;  /**< 0 .. 1,000,000 */
    bool     cut;
} SKY_LinkModel_t;

typedef enum
{
    SKY_LINK_TAKEN = 0,
    SKY_LINK_DROP_QUEUE,
    SKY_LINK_DROP_LOSS,
    SKY_LINK_DROP_CUT,
    SKY_LINK_DROP_SIZE
} SKY_LinkResult_t;

typedef struct SKY_LinkSlot SKY_LinkSlot_t;                   /* private, sky_link.c */
#define SKY_LINK_SLOT_BYTES_MAX (SKY_LIMIT_PACKET_BYTES + 8u) /**< a largest packet, and where it goes */
#define SKY_LINK_SLOTS_MAX      (1u << 20)                    /**< packets on their way, at most */

typedef struct
{
    SKY_LinkModel_t model;
    SKY_LinkSlot_t *slots;
    uint8_t        *data;
    uint32_t        slot_bytes, slot_count, used, free_head;
    uint32_t       *heap;          /**< slots by time of release, then by order of arrival */
    uint64_t        busy_until_ns; /**< the transmitter sends one packet after the other */
    bool            model_changed; /**< the model has changed since the last push */
    uint64_t        random;
    uint64_t        order;
} SKY_Link_t;

/** Return true if the model does nothing, so that packets may go past it. */
bool SKY_LinkModel_IsIdeal(const SKY_LinkModel_t *model);
/** Return the bytes of memory (of any alignment) that a link needs; 0 unless slot_bytes is 1 .. SKY_LINK_SLOT_BYTES_MAX and slot_count
 *  1 .. SKY_LINK_SLOTS_MAX. Slots beyond the bandwidth-delay product are never touched. */
size_t SKY_Link_MemoryBytes(uint32_t slot_bytes, uint32_t slot_count);
/** @return false: sizes out of range, or too little memory */
bool SKY_Link_Init(SKY_Link_t *link, const SKY_LinkModel_t *model, uint32_t slot_bytes, uint32_t slot_count, void *memory,
                   size_t memory_bytes, uint64_t seed);
/** Change the model; packets on their way keep their time, but the transmitter is free after no more than all slots take. */
void SKY_Link_SetModel(SKY_Link_t *link, const SKY_LinkModel_t *model);
/**
 * Copy in head, body and tail of one packet. A packet that is lost on the way occupied the transmitter all the same; one that
 * finds all slots taken, or the transmitter busy for longer than all slots take, or is empty or larger than a slot, did not.
 */
SKY_LinkResult_t SKY_Link_Push(SKY_Link_t *link, uint64_t now_us, const void *head, size_t head_len, const void *body,
                               size_t body_len, const void *tail, size_t tail_len);
/** Get the next packet that is due at @p now_us, valid until the next push. @return its length, 0 if none is due */
size_t SKY_Link_Pop(SKY_Link_t *link, uint64_t now_us, const uint8_t **data);
/** Return the time at which the next packet is due, UINT64_MAX if none waits. */
uint64_t SKY_Link_NextDue(const SKY_Link_t *link);

#endif
