/**
 * @file
 * Search for satellites that still have something to hand over, by their own word. Part of the host: missions do not compile it.
 *
 * A handover may take longer than any time that is set for it, and longer than its row. Then a chunk may still be at the place of any
 * earlier row. So before a block counts as gone, the satellites that had a place before and have none in this row (SKY_Places_Left) are
 * asked by STATS. In a row chunks go only to the row's own places. So once none of those satellites has anything left, that is true
 * until the next row begins, and satellites of rows before this one need not be asked again.
 */
#ifndef SKY_HANDOVERS_H
#define SKY_HANDOVERS_H

#include "sky_defaults.h"

#include <stdbool.h>
#include <stdint.h>

/** A satellite's word of its handover: counters of STATS. */
typedef struct
{
    uint64_t row, rows; /**< row that it is in, and rows of its schedule */
    uint64_t left;      /**< chunks that it still has to hand over */
    uint64_t used_bytes;
} SKY_HandoverWord_t;

/** Result of the searches. */
typedef struct
{
    uint32_t schedule;   /**< the host's number of the schedule; results under another one do not hold */
    uint32_t row;        /**< row that held when satellites were asked last; 0: they were not asked yet */
    uint32_t settled;    /**< last row in which everything is known to have arrived; 0: none */
    uint64_t until_us;   /**< time to search again, even if the row still holds */
    bool     is_over;    /**< no satellite that answered has anything left */
    bool     is_certain; /**< all satellites that may have something have answered */
} SKY_Handovers_t;

/** A search under way. */
typedef struct
{
    uint32_t schedule, row, rows;
    uint32_t first;      /**< first row whose satellites are asked */
    uint32_t passes;     /**< passes that are over */
    bool     is_certain; /**< so far all have answered */
} SKY_HandoverSearch_t;

void SKY_Handovers_Init(SKY_Handovers_t *handovers);
/** Return true if the result still holds. */
bool SKY_Handovers_IsKnown(const SKY_Handovers_t *handovers, uint32_t schedule, uint32_t row, uint64_t now_us);
/**
 * Begin a search. It may go on while others use @p handovers.
 * @param row   row that holds now, from 1
 * @param rows  rows of the schedule
 */
void SKY_Handovers_Begin(const SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint32_t schedule, uint32_t row,
                         uint32_t rows);
/**
 * Return true if a satellite has chunks that belong elsewhere. A satellite that follows another schedule, or is in another row, does
 * not know the places of its chunks. Then all of them may belong elsewhere, if it had a place.
 * @param had_place  false: it is asked because it may have stood in for others, and only its own word counts
 */
bool SKY_Handovers_HasLeft(const SKY_HandoverSearch_t *search, const SKY_HandoverWord_t *word, bool had_place);
/**
 * End a pass, in which all were asked once.
 * @param count     number of satellites that may have something
 * @param answered  number of them that answered
 * @param having    number of these that have something left
 * @return true if all are to be asked once more: a chunk may have left one before its question, and come to another after that one's
 */
bool SKY_Handovers_Asked(SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint64_t now_us, uint32_t count,
                         uint32_t answered, uint32_t having);

#endif
