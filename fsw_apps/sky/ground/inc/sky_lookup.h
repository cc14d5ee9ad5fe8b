/**
 * @file
 * Look-up of a block of which a host knows only the key: whom to ask, and what the answers mean. Part of the host: missions do not
 * compile it.
 *
 *     ASK    -> found, or denied               -> SEARCH, or END
 *            -> not answered                   -> LOOK
 *     LOOK   -> ASK once more, if others are asked then; else as above
 *     SEARCH -> handovers may go on: late satellites were asked        -> AGAIN
 *     AGAIN  -> current places were asked, to which late chunks go     -> SEARCH once more, if somebody was late; END
 *
 * A block that some deny, and about which others were silent, is not known to be missing.
 */
#ifndef SKY_LOOKUP_H
#define SKY_LOOKUP_H

#include "sky_word.h"

typedef enum
{
    SKY_LOOKUP_ASK = 0, /**< ask satellites: SKY_Lookup_Begin */
    SKY_LOOKUP_LOOK,    /**< find lost satellites, so that others stand in */
    SKY_LOOKUP_SEARCH,  /**< find satellites that are late to hand something over, and ask all of them */
    SKY_LOOKUP_AGAIN,   /**< ask all current places */
    SKY_LOOKUP_END
} SKY_LookupStep_t;

typedef struct
{
    uint32_t step;          /**< SKY_LookupStep_t */
    uint32_t passes;        /**< times that ASK was begun */
    uint32_t ways;          /**< number of the satellites and ways that were asked last; 0: none */
    uint32_t searches;      /**< searches for late satellites */
    bool     has_late;      /**< the last search found some, and asked them */
    bool     is_over;       /**< no handover goes on */
    bool     is_found;      /**< a satellite has said that the block is there */
    bool     is_unanswered; /**< one was silent that may know it, and none said that it is there */
} SKY_Lookup_t;

/** Begin a look-up. @param is_over  true if it is known that no handover goes on */
void SKY_Lookup_Init(SKY_Lookup_t *lookup, bool is_over);
/** Return the next step. LOOK counts as done when this is called again. */
SKY_LookupStep_t SKY_Lookup_Next(SKY_Lookup_t *lookup);
/**
 * Begin to ask, if the step is ASK.
 * @param ways  number of the satellites and ways: another one for other satellites, or other ways to them; 0: none can be asked now
 * @return false if these were asked in vain; then there is nothing to do, and the step is another one
 */
bool SKY_Lookup_Begin(SKY_Lookup_t *lookup, uint32_t ways);
/** Take in what the satellites of a step (ASK, SEARCH or AGAIN) have said together. @param word  NOTHING: in ASK one was silent that may know
 *  more; in SEARCH nobody was late */
void SKY_Lookup_Told(SKY_Lookup_t *lookup, SKY_HasWord_t word);
/**
 * Return the status: SKY_STATUS_DONE (the block is there), SKY_STATUS_MISS or SKY_STATUS_UNANSWERED.
 * @param is_incomplete  true if this host has learned that a share of the block is missing
 */
uint32_t SKY_Lookup_Status(const SKY_Lookup_t *lookup, bool is_incomplete);

#endif
