/**
 * @file
 * Whether a block is whole, as servers say that are asked by HAS. Part of the host: missions do not compile it.
 *
 * A server's share of a block is asked for in pieces that one request can name. Of a share that has several places the next place is
 * asked for what those before do not hold, because a share that moves may lie in part at one and in part at another:
 *
 *     for each server, for each of SKY_HeldShare_Pieces:   SKY_HeldShare_Init
 *     while SKY_HeldShare_Next names a place:              SKY_HeldShare_Ask, send it there, SKY_HeldShare_Take
 *     in the end, over all pieces:                     SKY_Held_Add
 *
 * Only a satellite's own word that it does not hold a chunk makes a block one that is not whole. Silence says nothing, nor does an
 * answer that cannot be read.
 */
#ifndef SKY_HELD_H
#define SKY_HELD_H

#include "sky_chunkset.h"
#include "sky_word.h"

#define SKY_HELD_NOWHERE UINT32_MAX /**< no place is left to ask, or nothing to ask for */

/** What a server should hold of a block, as far as one request can name it. */
typedef struct
{
    SKY_BlockFacts_t block;
    uint32_t         places;        /**< where it may be held */
    uint32_t         asked;         /**< of these, in their order */
    bool             is_unanswered; /**< somebody said nothing, or there is nobody to ask */
    bool             is_other;      /**< a block of other lengths has the name */
    SKY_ChunkSet_t   missing;       /**< found nowhere so far */
} SKY_HeldShare_t;

/** Is a block held? Of several shares the greatest value counts. */
typedef enum
{
    SKY_HELD_WHOLE = 0, /**< every chunk is held */
    SKY_HELD_UNKNOWN,   /**< that depends on somebody who said nothing, or on a server that nobody was asked about */
    SKY_HELD_BROKEN     /**< a chunk is held nowhere, as all said who may have it */
} SKY_HeldVerdict_t;

/** What servers say of a block. All 0 before the first share. */
typedef struct
{
    uint32_t verdict; /**< SKY_HeldVerdict_t */
    bool     is_other;
} SKY_Held_t;

/** @return in how many pieces a server's share is asked for; 0: it has none. @param server  0 to servers - 1 */
uint32_t SKY_HeldShare_Pieces(const SKY_BlockFacts_t *block, uint32_t servers, uint32_t server);
/**
 * @param block   of which all numbers are sound
 * @param piece   less than SKY_HeldShare_Pieces
 * @param places  where the share may be; 0: nobody is asked for it
 */
void SKY_HeldShare_Init(SKY_HeldShare_t *share, const SKY_BlockFacts_t *block, uint32_t servers, uint32_t server, uint32_t piece,
                        uint32_t places);
/** @return the place that is asked next, from 0; SKY_HELD_NOWHERE: the share is done */
uint32_t SKY_HeldShare_Next(const SKY_HeldShare_t *share);
/**
 * Write the question to the next place.
 * @param payload   room for SKY_CHUNKSET_MAX_BYTES
 * @param chunk_id  that goes into the packet's header
 * @return bytes written
 */
uint32_t SKY_HeldShare_Ask(SKY_HeldShare_t *share, uint8_t *payload, uint32_t *chunk_id);
/** That place has answered. @param answer  NULL: it has not */
void SKY_HeldShare_Take(SKY_HeldShare_t *share, const uint8_t *key, const SKY_Packet_t *answer);
/** Add what is known of a share that is done to what is known of its block. */
void SKY_Held_Add(SKY_Held_t *held, const SKY_HeldShare_t *share);

#endif
