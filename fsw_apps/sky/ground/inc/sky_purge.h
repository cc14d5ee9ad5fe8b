/**
 * @file
 * Purge of a block: whom to ask by PURGE next, and whether the block is gone from the sky by their answers. Part of the host: missions
 * do not compile it.
 *
 * A block is purged wherever a share of it may be. All are asked once more if a satellite was silent, as others may stand in for
 * it then; or if a chunk may have been on its way, past them, from a satellite that hands it over. If another block is to be put under
 * the key, only the servers of a look-up (sky_spread.h) are asked at first, of which one has a share of every block that can be had:
 *
 *     FIRST -> all gave up their shares, one of which is the whole block      -> END
 *           -> there is more, or may be                                       -> ALL
 *     ALL   -> confirmed, and nothing was on its way                          -> END
 *           -> all answered twice in a row: a chunk on its way has been met   -> END
 *           -> else                                                           -> LOOK, and ALL once more, three times in all
 *
 * Without parity all that were asked have to confirm. With parity a block is gone once a row has lost more chunks than its code bears, so
 * shares count: m + 1 of them have to be gone for sure, each by the word of all satellites that may have it. What a stand-in confirms,
 * the lost satellite may have. A value of one chunk lies on m + 1 servers, each of which has all of it. So if nobody knows the block, the
 * first m + 1 shares count alone.
 */
#ifndef SKY_PURGE_H
#define SKY_PURGE_H

#include "sky_packet.h"

/** Answers of satellites that were asked to purge a block. All 0 before the first. */
typedef struct
{
    uint32_t asked;
    uint32_t confirmed;   /**< satellites that said that nothing of the block is left there */
    uint64_t chunks;      /**< chunks that these gave up */
    uint64_t most;        /**< most chunks that one of them gave up: others may have had the same ones */
    uint64_t chunk_total; /**< chunks of the block by their word; 0: none of them knew it */
    bool     is_repeated; /**< a satellite may have purged before, and not have said how much */
    uint32_t
        code_m; /**< most parity chunks of a row: before the first answer those of blocks of this sky, then also by their word */
    uint32_t chunk_least; /**< least chunks of a block by their word; 0: none of them knew it */
    uint32_t servers;     /**< servers of which shares were told */
    uint32_t gone;        /**< shares of them that are gone for sure, and may be needed */
} SKY_PurgeAnswers_t;

/** Take in an answer. @param answer  NULL: none came. @param is_repeated  the request was sent more than once */
void SKY_PurgeAnswers_Add(SKY_PurgeAnswers_t *cleared, const SKY_Packet_t *answer, bool is_repeated);
/** Take in whether the next share is gone for sure: all satellites that may have it have confirmed, and no lost one may
 *  have it. Share 0 comes first, and all answers before it. Without parity this does not matter. */
void SKY_PurgeAnswers_AddShare(SKY_PurgeAnswers_t *cleared, bool is_gone);
/** Return true if no more is left than lets the block be had: without parity, if satellites were asked and all of them answered. */
bool SKY_PurgeAnswers_IsConfirmed(const SKY_PurgeAnswers_t *cleared);
/** Return true if the block has, or may have, chunks elsewhere. */
bool SKY_PurgeAnswers_HasMore(const SKY_PurgeAnswers_t *cleared);

typedef enum
{
    SKY_PURGE_FIRST = 0, /**< ask for the shares of the m + 1 servers of a look-up, wherever they may be: SKY_Purge_Told */
    SKY_PURGE_ALL,       /**< ask for all shares, wherever they may be: SKY_Purge_Told */
    SKY_PURGE_LOOK,      /**< find lost satellites, so that others stand in */
    SKY_PURGE_END
} SKY_PurgeStep_t;

/** The purge of one block. */
typedef struct
{
    uint32_t step;         /**< SKY_PurgeStep_t */
    uint32_t rounds;       /**< rounds in which all were asked */
    bool     is_swept;     /**< in the last of them all places of the current row answered */
    bool     is_confirmed; /**< result: nothing of the block is left where it can be found */
} SKY_Purge_t;

/** Begin a purge. @param is_way_made  another block is to be put under the key; else the block is only to go */
void SKY_Purge_Init(SKY_Purge_t *clearing, bool is_way_made);
/** Return the next step. LOOK counts as done when this is called again. */
SKY_PurgeStep_t SKY_Purge_Next(SKY_Purge_t *clearing);
/**
 * Take in the answers of the satellites that the step names.
 * @param is_over      true if it was known before that no handover goes on
 * @param is_same_row  true if the row of the schedule is still the one whose places were asked
 */
void SKY_Purge_Told(SKY_Purge_t *clearing, const SKY_PurgeAnswers_t *cleared, bool is_over, bool is_same_row);

#endif
