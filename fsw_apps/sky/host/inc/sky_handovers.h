/**
 * @file
 * Whether satellites still have something to hand over, as they say themselves. Part of the host: missions do not compile it.
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

/** What a satellite says of itself: counters of STATS. */
typedef struct
{
    uint64_t row, rows; /**< that it is in, and of its schedule */
    uint64_t left;      /**< chunks that it has to hand over */
    uint64_t slots_used;
} SKY_HandoverWord_t;

/** What was found. */
typedef struct
{
    uint32_t schedule;   /**< the host's number of the schedule; what was found under another one does not hold */
    uint32_t row;        /**< that held when satellites were asked last; 0: they were not asked yet */
    uint32_t settled;    /**< the last row in which everything is known to have arrived; 0: none */
    uint64_t until_us;   /**< when this is to be asked again, even if the row still holds */
    bool     is_over;    /**< nobody who answered has anything left */
    bool     is_certain; /**< all who may have something have answered */
} SKY_Handovers_t;

/** Satellites that are being asked. */
typedef struct
{
    uint32_t schedule, row, rows;
    uint32_t first;      /**< row: satellites that had a place in one from this on are asked */
    uint32_t passes;     /**< that are over */
    bool     is_certain; /**< so far all have answered */
} SKY_HandoverSearch_t;

void SKY_Handovers_Init(SKY_Handovers_t *handovers);
/** @return true: what was found still holds */
bool SKY_Handovers_IsKnown(const SKY_Handovers_t *handovers, uint32_t schedule, uint32_t row, uint64_t now_us);
/**
 * Begin to ask. It may go on while others use @p handovers.
 * @param row   that holds now, from 1
 * @param rows  of the schedule
 */
void SKY_Handovers_Begin(const SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint32_t schedule, uint32_t row,
                         uint32_t rows);
/**
 * Has a satellite anything that belongs elsewhere? One that follows another schedule, or is in another row, does not know what
 * belongs where. Then all that it holds may, if it had a place.
 * @param had_place  else it is asked as it may have stood in for others, and only what it says itself counts
 */
bool SKY_Handovers_HasLeft(const SKY_HandoverSearch_t *search, const SKY_HandoverWord_t *word, bool had_place);
/**
 * All were asked once.
 * @param count     how many satellites may have something
 * @param answered  how many of them answered
 * @param having    how many of these have something left
 * @return true: ask all of them once more. What left one before it was asked may have come to another after that was asked.
 */
bool SKY_Handovers_Asked(SKY_Handovers_t *handovers, SKY_HandoverSearch_t *search, uint64_t now_us, uint32_t count,
                         uint32_t answered, uint32_t having);

#endif
