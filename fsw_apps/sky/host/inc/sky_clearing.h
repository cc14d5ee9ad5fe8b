/**
 * @file
 * Whether a block is gone from the sky, as satellites say that are asked by PURGE, and whom to ask next. Part of the host: missions do
 * not compile it.
 *
 * A block is purged wherever a share of it may be, and once more if somebody said nothing, as others may stand in for him then. So
 * that another block can be put under a key, the first server is asked alone, who has a share of every block:
 *
 *     FIRST -> all gave up their shares, one of which is the whole block -> END
 *           -> there is more, or there may be                            -> ALL
 *     ALL   -> all who were asked answered                               -> END
 *           -> somebody was silent                                       -> LOOK, and ALL once more
 */
#ifndef SKY_CLEARING_H
#define SKY_CLEARING_H

#include "sky_packet.h"

/** What satellites say that were asked to purge a block. All 0 before the first. */
typedef struct
{
    uint32_t asked;
    uint32_t confirmed;   /**< how many of them said that nothing of the block is left there */
    uint64_t chunks;      /**< that these gave up */
    uint64_t most;        /**< that one of them gave up: others may have had the same ones */
    uint64_t chunk_total; /**< of the block, as these say; 0: none of them knew it */
    bool     is_repeated; /**< a satellite may have purged before, and not have said what */
} SKY_Cleared_t;

/** @param answer  NULL: none came. @param is_repeated  the request was sent more than once */
void SKY_Cleared_Add(SKY_Cleared_t *cleared, const SKY_Packet_t *answer, bool is_repeated);
/** Has everybody answered, and was anybody asked? */
bool SKY_Cleared_IsConfirmed(const SKY_Cleared_t *cleared);
/** Has the block chunks elsewhere, or may it have some? */
bool SKY_Cleared_HasMore(const SKY_Cleared_t *cleared);

typedef enum
{
    SKY_CLEAR_FIRST = 0, /**< ask for the first server's share, wherever it may be: SKY_Clearing_Told */
    SKY_CLEAR_ALL,       /**< ask for all shares, wherever they may be: SKY_Clearing_Told */
    SKY_CLEAR_LOOK,      /**< find out who is lost, so that others stand in */
    SKY_CLEAR_END
} SKY_ClearStep_t;

/** Purging one block. */
typedef struct
{
    uint32_t step;         /**< SKY_ClearStep_t */
    uint32_t rounds;       /**< in which all were asked */
    bool     is_confirmed; /**< in the end: nothing of the block is left where it can be found */
} SKY_Clearing_t;

/** @param is_way_made  another block is to be put under the key; else the block is only to go */
void SKY_Clearing_Init(SKY_Clearing_t *clearing, bool is_way_made);
/** @return what comes next. LOOK counts as done when this is called again. */
SKY_ClearStep_t SKY_Clearing_Next(SKY_Clearing_t *clearing);
/** Those of the step were asked. @param is_over  no handover goes on, so no chunk was on its way past them */
void SKY_Clearing_Told(SKY_Clearing_t *clearing, const SKY_Cleared_t *cleared, bool is_over);

#endif
