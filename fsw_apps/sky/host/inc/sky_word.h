/**
 * @file
 * What a satellite's answer to HAS says of a block. Part of the host: missions do not compile it.
 *
 * An answer is not trusted. Where its numbers contradict each other it says nothing of any chunk.
 */
#ifndef SKY_WORD_H
#define SKY_WORD_H

#include "sky_packet.h"

/** What an answer says. */
typedef enum
{
    SKY_WORD_NOTHING = 0, /**< there is none, or it only says why the satellite could not be asked */
    SKY_WORD_ABSENT,      /**< the satellite holds nothing of the block */
    SKY_WORD_UNSOUND,     /**< it holds something that no block can be, or speaks of another key */
    SKY_WORD_BLOCK        /**< it knows the block: SKY_BlockFacts_t */
} SKY_HasWord_t;

/** What is known of a block. */
typedef struct
{
    uint32_t block_len, chunk_len, chunk_total;
    uint32_t epoch; /**< row of the schedule that it is laid for; 0: it lies in the window of the moment */
} SKY_BlockFacts_t;

/**
 * @param answer  NULL: there is none
 * @param key     that was asked for
 * @param facts   set if this returns SKY_WORD_BLOCK
 */
SKY_HasWord_t SKY_Word_Of(const SKY_Packet_t *answer, const uint8_t *key, SKY_BlockFacts_t *facts);
/** Is it another block of the same name? Another host has put it in the place of this one. */
bool SKY_Word_IsOther(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known);
/** Satellites may know a block of several rows. Does what one says count instead of what another one said? The latest row does. */
bool SKY_Word_IsNewer(const SKY_BlockFacts_t *facts, const SKY_BlockFacts_t *known);
/**
 * Is a block laid for a row to come? Its chunks are not to be purged, though they are missed now.
 * @param row         that holds now; 0 without a schedule
 * @param rows        whose places are asked for a block of this epoch now; one that is not among them is a satellite's word, and no
 *                    row of the schedule
 */
bool SKY_Word_IsAhead(const SKY_BlockFacts_t *facts, uint32_t row, const uint32_t *rows, uint32_t row_count);

#endif
