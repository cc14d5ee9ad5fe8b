/**
 * @file
 * A satellite's word of a block: its answer to HAS. Part of the host: missions do not compile it.
 *
 * An answer is not trusted. If its numbers contradict each other it says nothing of any chunk.
 */
#ifndef SKY_WORD_H
#define SKY_WORD_H

#include "sky_packet.h"
#include "sky_stripe.h"

/** Kinds of answers. */
typedef enum
{
    SKY_WORD_NOTHING = 0, /**< there is no answer, or it only says why the satellite could not be asked */
    SKY_WORD_ABSENT,      /**< the satellite holds nothing of the block */
    SKY_WORD_UNSOUND,     /**< the answer describes something that no block can be, or another key */
    SKY_WORD_BLOCK        /**< the satellite knows the block: SKY_BlockFacts_t */
} SKY_HasWord_t;

/** Facts of a block. */
typedef struct
{
    SKY_Stripe_t stripe;
    uint32_t     epoch;   /**< row of the schedule that it is prefetched for; 0: it lies in the window of the moment */
    uint32_t     content; /**< content instance */
    uint64_t     version; /**< version under its key; 0: the key names the content */
} SKY_BlockFacts_t;

/**
 * Read an answer.
 * @param answer  NULL: there is none
 * @param key     key that was asked for
 * @param facts   set if this returns SKY_WORD_BLOCK
 */
SKY_HasWord_t SKY_Word_Of(const SKY_Packet_t *answer, const uint8_t *key, SKY_BlockFacts_t *facts);
/** Return true if the facts are those of another block under the same key, which another host has put there. */
bool SKY_Word_IsOther(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known);
/** Return true if these facts count instead of known ones: satellites may know a block of several versions and rows. The newest version
 *  counts, and of this the latest row. */
bool SKY_Word_IsNewer(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known);
/**
 * Return true if a block is prefetched for a row to come. Then its chunks are not to be purged, though they are missed now.
 * @param row         row that holds now; 0 without a schedule
 * @param rows        rows whose places are asked for a block of this epoch now; one that is not among them is a satellite's word, and no
 *                    row of the schedule
 */
bool SKY_Word_IsAhead(const SKY_BlockFacts_t *facts, uint32_t row, const uint32_t *rows, uint32_t row_count);

#endif
