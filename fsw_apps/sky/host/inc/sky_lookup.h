/**
 * @file
 * Who is asked for blocks of which a host knows only the keys, and what their answers mean. Part of the host: missions do not compile
 * it.
 *
 * Many keys are asked for at once, of one satellite after the other:
 *
 *     ASK    -> all are found or denied                                -> SEARCH, AGAIN, or END
 *            -> of some nobody said anything                           -> LOOK
 *     LOOK   -> ASK once more, if others are asked then; else as above
 *     SEARCH -> handovers may go on: those who are late were asked     -> AGAIN
 *     AGAIN  -> the places of now were asked, to which late chunks go  -> END
 *
 * A key that is found is not asked for again. One that some deny, and of which others said nothing, is not known to be missing.
 */
#ifndef SKY_LOOKUP_H
#define SKY_LOOKUP_H

#include "sky_word.h"

typedef enum
{
    SKY_LOOKUP_ASK = 0, /**< ask satellites one after the other: SKY_Lookup_Begin */
    SKY_LOOKUP_LOOK,    /**< find out who is lost, so that others stand in */
    SKY_LOOKUP_SEARCH,  /**< find out who is late to hand something over, and ask all of them at once: SKY_Lookup_Asked */
    SKY_LOOKUP_AGAIN,   /**< ask all places of now at once: SKY_Lookup_Asked */
    SKY_LOOKUP_END
} SKY_LookupStep_t;

/** A key that is looked for. */
typedef struct
{
    bool is_found;
    bool is_unanswered; /**< somebody said nothing, and nobody that the block is there */
    bool is_wanted;     /**< the satellites of this step are asked for it, until it is found */
} SKY_LookupKey_t;

typedef struct
{
    SKY_LookupKey_t *keys;
    uint32_t         count;
    uint32_t         step;          /**< SKY_LookupStep_t */
    uint32_t         passes;        /**< over satellites, one after the other */
    uint32_t         ways;          /**< that were asked last; 0: none */
    uint32_t         left;          /**< satellites that the pass has yet to ask */
    uint32_t         asked, silent; /**< keys that the satellite was asked for, and of which it said nothing */
    bool             is_over;       /**< no handover goes on */
} SKY_Lookup_t;

/**
 * @param keys     room for @p count; it stays with the lookup
 * @param is_over  it is known that no handover goes on
 */
void SKY_Lookup_Init(SKY_Lookup_t *lookup, SKY_LookupKey_t *keys, uint32_t count, bool is_over);
/** @return what comes next. LOOK counts as done when this is called again. */
SKY_LookupStep_t SKY_Lookup_Next(SKY_Lookup_t *lookup);
/**
 * Before a pass, where the step is ASK.
 * @param ways        a number, from 1, that is another one when other satellites are asked, or over other ways
 * @param satellites  how many there are to ask; 0: none can be asked now
 * @return false: these were asked in vain; nothing is to be done, and the step is another one
 */
bool SKY_Lookup_Begin(SKY_Lookup_t *lookup, uint32_t ways, uint32_t satellites);
/** Is a satellite of this step to be asked for this key? */
bool SKY_Lookup_Wants(const SKY_Lookup_t *lookup, uint32_t key);
/** A satellite was asked for a key. */
void SKY_Lookup_Take(SKY_Lookup_t *lookup, uint32_t key, SKY_HasWord_t word);
/**
 * All that a satellite was to be asked for has been taken; for SEARCH and AGAIN, all of all satellites.
 * @return true: ask the next one of the pass. No other one is, if this one said nothing at all: that would take as long.
 */
bool SKY_Lookup_Asked(SKY_Lookup_t *lookup);
/**
 * @param is_incomplete  this host got to know that a share of the block is missing
 * @return SKY_STATUS_DONE: it is there; SKY_STATUS_MISS, SKY_STATUS_UNANSWERED
 */
uint32_t SKY_Lookup_Status(const SKY_Lookup_t *lookup, uint32_t key, bool is_incomplete);

#endif
