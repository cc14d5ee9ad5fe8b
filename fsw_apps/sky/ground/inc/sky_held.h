/**
 * @file
 * Check whether a block is whole, by the word of servers that are asked by HAS. Part of the host: missions do not compile it.
 *
 * A share of a block (sky_spread.h) is asked for in pieces that one request can name. If a share has several places, the next place
 * is asked for the chunks that those before lack, because a share that moves may lie in part at one and in part at another:
 *
 *     for each share, for each of SKY_HeldShare_Pieces:   SKY_HeldShare_Init
 *     while SKY_HeldShare_Next names a place:              SKY_HeldShare_Ask, send it there, SKY_HeldShare_Take
 *     in the end, over all pieces:                     SKY_Held_Add
 *
 * Only satellites' own word that they lack chunks makes a block count as broken, and only if a row lacks more of them than its code bears.
 * Silence says nothing, nor does an answer that cannot be read.
 */
#ifndef SKY_HELD_H
#define SKY_HELD_H

#include "sky_chunkset.h"
#include "sky_word.h"

#define SKY_HELD_NOWHERE UINT32_MAX /**< no place is left to ask, or nothing to ask for */

/** A share of a block, as far as one request can name it. */
typedef struct
{
    SKY_BlockFacts_t block;
    uint32_t         places;        /**< number of its places */
    uint32_t         asked;         /**< places asked so far, in their order */
    bool             is_unanswered; /**< a satellite was silent, or there is none to ask */
    bool             is_stand_in;   /**< a satellite stands in for a lost one, which may have what it denies */
    bool             is_unsettled;  /**< a satellite that has answered is not settled: what it denies may be on its way to it */
    bool             is_other;      /**< a block of other lengths has the key */
    SKY_ChunkSet_t   missing;       /**< chunks found nowhere so far */
} SKY_HeldShare_t;

/** Verdict on a block. The greatest value of its shares counts. */
typedef enum
{
    SKY_HELD_WHOLE = 0, /**< the block can be had: without a code every chunk is held */
    SKY_HELD_UNKNOWN,   /**< that depends on satellites that were silent, or on servers about which nobody was asked */
    SKY_HELD_BROKEN     /**< too many chunks of a row are held nowhere, by the word of all satellites that may have them */
} SKY_HeldVerdict_t;

/** Chunks of a row that nobody is known to hold. */
typedef struct
{
    uint32_t denied;  /**< chunks that all satellites deny that were asked */
    uint32_t gone;    /**< those of them for which no satellite stood in */
    uint32_t doubted; /**< others */
} SKY_HeldRow_t;

/** The word of servers of a block. All 0 before the first share. */
typedef struct
{
    uint32_t       verdict; /**< SKY_HeldVerdict_t */
    bool           is_other;
    bool           is_gone;      /**< it is broken whatever lost satellites have for which others stand in */
    bool           is_unsettled; /**< a satellite that is not settled denied chunks: they may be on their way to it */
    uint32_t       denied;       /**< chunks that are denied; of a block that is whole, so many are to be made again */
    SKY_HeldRow_t  only_row;     /**< the row of a block without a code */
    SKY_HeldRow_t *rows;         /**< SKY_Stripe_Rows of 0; may be NULL without a code */
} SKY_Held_t;

/** Return the number of pieces in which a share is asked for; 0 if it has no chunk. @param number  of the share, 0 to servers - 1 */
uint32_t SKY_HeldShare_Pieces(const SKY_BlockFacts_t *block, uint32_t servers, uint32_t number);
/**
 * Begin a piece of a share.
 * @param block   facts of the block, which do not contradict each other
 * @param piece   less than SKY_HeldShare_Pieces
 * @param places  number of places of the share; 0: nobody is asked for it
 * @param is_stand_in  one of them is at a stand-in
 */
void SKY_HeldShare_Init(SKY_HeldShare_t *share, const SKY_BlockFacts_t *block, uint32_t servers, uint32_t number, uint32_t piece,
                        uint32_t places, bool is_stand_in);
/** Return the next place to ask, from 0; SKY_HELD_NOWHERE if the share is done. */
uint32_t SKY_HeldShare_Next(const SKY_HeldShare_t *share);
/**
 * Write the question to the next place.
 * @param payload   room for SKY_CHUNKSET_MAX_BYTES
 * @param chunk_id  receives the chunk id of the packet's header
 * @return bytes written
 */
uint32_t SKY_HeldShare_Ask(SKY_HeldShare_t *share, uint8_t *payload, uint32_t *chunk_id);
/** Take in the answer of that place. @param answer  NULL: there is none */
void SKY_HeldShare_Take(SKY_HeldShare_t *share, const uint8_t *key, const SKY_Packet_t *answer);
/** Return true if the first place of a share that is done holds all of it. */
bool SKY_HeldShare_IsHeldFirst(const SKY_HeldShare_t *share);
/** Add the result of a share that is done to that of its block. */
void SKY_Held_Add(SKY_Held_t *held, const SKY_HeldShare_t *share);

#endif
