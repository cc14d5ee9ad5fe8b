/**
 * @file
 * Look-up of blocks of which a host knows only the keys: whom to ask, and what the answers mean. Part of the host: missions do not
 * compile it.
 *
 * One satellite after the other is asked for many keys at once:
 *
 *     ASK    -> all are found or denied                                -> SEARCH, AGAIN, or END
 *            -> nobody answered about some                              -> LOOK
 *     LOOK   -> ASK once more, if others are asked then; else as above
 *     SEARCH -> handovers may go on: late satellites were asked        -> AGAIN
 *     AGAIN  -> current places were asked, to which late chunks go     -> SEARCH once more, if somebody was late; END
 *
 * A key that is found is not asked for again. A key that some deny, and about which others were silent, is not known to be missing.
 */
#ifndef SKY_LOOKUP_H
#define SKY_LOOKUP_H

#include "sky_word.h"

typedef enum
{
    SKY_LOOKUP_ASK = 0, /**< ask satellites one after the other: SKY_Lookup_Begin */
    SKY_LOOKUP_LOOK,    /**< find lost satellites, so that others stand in */
    SKY_LOOKUP_SEARCH, /**< find satellites that are late to hand something over, and ask all of them at once: SKY_Lookup_Asked */
    SKY_LOOKUP_AGAIN,  /**< ask all current places at once: SKY_Lookup_Asked */
    SKY_LOOKUP_END
} SKY_LookupStep_t;

/** A key that is looked for. */
typedef struct
{
    bool is_found;
    bool is_unanswered; /**< a satellite was silent, and none said that the block is there */
    bool is_wanted;     /**< the satellites of this step are asked for the key, until it is found */
} SKY_LookupKey_t;

typedef struct
{
    SKY_LookupKey_t *keys;
    uint32_t         count;
    uint32_t         step;          /**< SKY_LookupStep_t */
    uint32_t         passes;        /**< passes over the satellites, one after the other */
    uint32_t         ways;          /**< number of the satellites and ways that were asked last; 0: none */
    uint32_t         left;          /**< satellites that the pass has yet to ask */
    uint32_t         asked, silent; /**< keys that the satellite was asked for, and about which it was silent */
    uint32_t         searches;      /**< searches for late satellites */
    bool             has_late;      /**< the last search found some, and asked them */
    bool             is_over;       /**< no handover goes on */
} SKY_Lookup_t;

/**
 * Begin a look-up.
 * @param keys     room for @p count; it stays with the lookup
 * @param is_over  true if it is known that no handover goes on
 */
void SKY_Lookup_Init(SKY_Lookup_t *lookup, SKY_LookupKey_t *keys, uint32_t count, bool is_over);
/** Return the next step. LOOK counts as done when this is called again. */
SKY_LookupStep_t SKY_Lookup_Next(SKY_Lookup_t *lookup);
/**
 * Begin a pass, if the step is ASK.
 * @param ways        number of the satellites and ways, from 1: another one for other satellites, or other ways to them
 * @param satellites  number of satellites to ask; 0: none can be asked now
 * @return false if these were asked in vain; then there is nothing to do, and the step is another one
 */
bool SKY_Lookup_Begin(SKY_Lookup_t *lookup, uint32_t ways, uint32_t satellites);
/** Return true if satellites of this step are to be asked for this key. */
bool SKY_Lookup_Wants(const SKY_Lookup_t *lookup, uint32_t key);
/** Take in a satellite's word about a key. In the step SEARCH, do so only if a satellite is late. */
void SKY_Lookup_Take(SKY_Lookup_t *lookup, uint32_t key, SKY_HasWord_t word);
/**
 * End the questions to a satellite; for SEARCH and AGAIN, those to all satellites.
 * @return true if the next one of the pass is to be asked. After one that was silent about all, none is: that would take as long.
 */
bool SKY_Lookup_Asked(SKY_Lookup_t *lookup);
/**
 * Return the status of a key: SKY_STATUS_DONE (the block is there), SKY_STATUS_MISS or SKY_STATUS_UNANSWERED.
 * @param is_incomplete  true if this host has learned that a share of the block is missing
 */
uint32_t SKY_Lookup_Status(const SKY_Lookup_t *lookup, uint32_t key, bool is_incomplete);

#endif
