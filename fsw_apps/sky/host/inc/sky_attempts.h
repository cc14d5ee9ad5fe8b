/**
 * @file
 * How often a ground host tries to move a block, around what it learns on the way, and what a block that did not come means. Part of
 * the host: missions do not compile it.
 *
 * One attempt asks all places of a block once (SKY_Host_Begin). Between attempts the shell finds something out, and tells what it
 * found. SKY_Attempts_Next says what comes next:
 *
 *     ASK -> done, or refused                                     -> END
 *         -> a place was silent                  -> LOOK          -> ASK, once
 *         -> a stand-in does not have its share  -> DOUBT         -> ASK, once
 *         -> denied, and the window has moved on                  -> ASK
 *         -> denied, and a handover may go on    -> SEARCH        -> ASK, until one search is done within a row. After so
 *            many searches that were not, nothing is known of the block: the attempts have expired
 *         -> denied by all, or another block has
 *            the name                            -> CONFIRM       -> ASK, once, for what is there now; or END
 *
 * A put only has ASK, LOOK and END. No attempt asks the same places twice in a row, unless somebody may have handed a chunk over
 * meanwhile.
 *
 * What a get means for a block that is not whole is its verdict. It decides whether the rest of the block is purged.
 */
#ifndef SKY_ATTEMPTS_H
#define SKY_ATTEMPTS_H

#include "sky_places.h"

#define SKY_ATTEMPT_SEARCHES_MAX 4u /**< more than one where a row begins meanwhile: satellites of several rows are late */

typedef enum
{
    SKY_ATTEMPT_ASK = 0, /**< ask the places of now for the block: SKY_Attempts_Begin, then SKY_Attempts_Ended */
    SKY_ATTEMPT_LOOK,    /**< find out who is lost, so that others stand in */
    SKY_ATTEMPT_DOUBT,   /**< ask satellites that are lost, and that others stand in for, whether they are back */
    SKY_ATTEMPT_SEARCH,  /**< ask who has something left to hand over: SKY_Attempts_Searched */
    SKY_ATTEMPT_CONFIRM, /**< ask satellites what they know of the block now: SKY_Attempts_Confirmed */
    SKY_ATTEMPT_END
} SKY_AttemptStep_t;

typedef enum
{
    SKY_VERDICT_KEEP = 0, /**< nothing is known against the block, or it came */
    SKY_VERDICT_FORGET,   /**< this host does not get it; others may */
    SKY_VERDICT_PURGE     /**< a chunk is gone for good, so the rest is of no use (paper, section 3.9) */
} SKY_Verdict_t;

/** What is known when a share of a block is denied at all its places. */
typedef struct
{
    bool has_moved;   /**< the window moved on meanwhile, or the block was laid elsewhere: it may be where nobody was asked */
    bool at_stand_in; /**< a stand-in was asked for it, which never had it */
    bool is_certain;  /**< no handover went on: all who may have something to hand over said that they have nothing */
    bool is_other;    /**< a block of other lengths has the name, or the block is laid for another row: the rest is of use */
    bool is_blind;    /**< satellites follow a schedule that this host does not know, so it asked at wrong places */
    bool lazy_purge;  /**< hosts purge what is left */
} SKY_Denied_t;

/** @return what a denied share means for its block */
SKY_Verdict_t SKY_Verdict_Of(const SKY_Denied_t *denied);

/** The rows of the schedule whose places are asked, as SKY_Places_Rows finds them; none without a schedule. */
typedef struct
{
    const uint32_t *rows;
    uint32_t        count; /**< at most SKY_PLACES_ROWS_MAX */
} SKY_Rows_t;

/** Whether handovers go on. */
typedef struct
{
    bool is_known;   /**< somebody was asked so lately that it still holds; else the rest means nothing */
    bool is_over;    /**< no satellite that answered has anything to hand over */
    bool is_certain; /**< all who may have something have answered */
} SKY_Late_t;

/** Attempts to move one block. */
typedef struct
{
    bool         is_get;
    uint32_t     step;   /**< SKY_AttemptStep_t */
    uint32_t     status; /**< how the attempts ended so far; SKY_STATUS_RUNNING before */
    uint32_t     asks, searches;
    uint32_t     ways; /**< that were asked last; 0: none */
    uint32_t     rows[SKY_PLACES_ROWS_MAX];
    uint32_t     row_count;
    uint32_t     known_row;   /**< that held when satellites were last asked who is late */
    bool         is_searched; /**< the attempt that ran last, or runs, follows a search */
    bool         may_search;
    bool         is_renewed; /**< it is asked for as satellites know it now */
    SKY_Denied_t denied;
} SKY_Attempts_t;

/**
 * Begin a get.
 * @param late        what is known of handovers now; it holds until another row begins
 * @param row         that holds now; 0 without a schedule
 * @param lazy_purge  hosts purge what is left of a block that is gone
 */
void SKY_Attempts_InitGet(SKY_Attempts_t *attempts, const SKY_Late_t *late, uint32_t row, bool lazy_purge);
/** Begin a put. */
void SKY_Attempts_InitPut(SKY_Attempts_t *attempts);
/** @return what comes next. LOOK and DOUBT count as done when this is called again. */
SKY_AttemptStep_t SKY_Attempts_Next(SKY_Attempts_t *attempts);
/**
 * Before an attempt, where the step is ASK.
 * @param rows  that are asked. @param ways  a number, from 1, that is another one when other places are asked, or over other ways
 * @return false: these were asked in vain; nothing is to be done, and the step is another one
 */
bool SKY_Attempts_Begin(SKY_Attempts_t *attempts, const SKY_Rows_t *rows, uint32_t ways);
/** No satellite can be asked now: the attempts are over. */
void SKY_Attempts_GiveUp(SKY_Attempts_t *attempts);
/**
 * An attempt has ended.
 * @param status       SKY_STATUS_* of the block
 * @param at_stand_in  the satellite that denied a share stands in for another one
 * @param rows         whose places would be asked now
 * @param row          that holds now; 0 without a schedule
 * @param is_relaid    this host has laid the block for another row meanwhile
 */
void SKY_Attempts_Ended(SKY_Attempts_t *attempts, uint32_t status, bool at_stand_in, const SKY_Rows_t *rows, uint32_t row,
                        bool is_relaid);
/** Satellites were asked who is late. @param row  that held then */
void SKY_Attempts_Searched(SKY_Attempts_t *attempts, const SKY_Late_t *late, uint32_t row);
/**
 * Satellites were asked what they know of the block. Where they know another one it is asked for that, once.
 * @param is_other, is_blind  as in SKY_Denied_t
 */
void SKY_Attempts_Confirmed(SKY_Attempts_t *attempts, bool is_other, bool is_blind);
/** @return what a get that has ended means for the block */
SKY_Verdict_t SKY_Attempts_Verdict(const SKY_Attempts_t *attempts);

#endif
