/**
 * @file
 * Attempts of a ground host to move a block: how many there are, what happens between them, and what a failed one means for the
 * block. Part of the host: missions do not compile it.
 *
 * One attempt asks all places of a block once (SKY_Host_Begin). Between attempts the shell looks for something,
 * and reports it. SKY_TransferAttempts_Next says what comes next:
 *
 *     ASK -> done, or refused                                     -> END
 *         -> a place was silent                  -> LOOK          -> ASK, once; then SEARCH if it is silent again, as who could not
 *            hand over to it still has its share: -> ASK if somebody is late, else END
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
 * The verdict of a get says what it means for a block that is not whole, and so whether the rest of the block is purged. That is only if
 * nothing that could still give the block lies where this host did not look: on the way, at a lost satellite, or at a stand-in. The word of
 * a satellite that is not settled (SKY_WORD_SETTLED) purges nothing.
 */
#ifndef SKY_TRANSFER_ATTEMPTS_H
#define SKY_TRANSFER_ATTEMPTS_H

#include "sky_places.h"

#define SKY_ATTEMPT_SEARCHES_MAX 4u /**< more than one where a row begins meanwhile: satellites of several rows are late */

typedef enum
{
    SKY_ATTEMPT_ASK = 0, /**< ask the current places for the block: SKY_TransferAttempts_Begin, then SKY_TransferAttempts_Ended */
    SKY_ATTEMPT_LOOK,    /**< find lost satellites, so that others stand in */
    SKY_ATTEMPT_DOUBT,   /**< ask lost satellites that others stand in for whether they are back */
    SKY_ATTEMPT_SEARCH,  /**< find satellites with something left to hand over: SKY_TransferAttempts_Searched */
    SKY_ATTEMPT_CONFIRM, /**< ask satellites for the facts of the block now: SKY_TransferAttempts_Confirmed */
    SKY_ATTEMPT_END
} SKY_AttemptStep_t;

typedef enum
{
    SKY_VERDICT_KEEP = 0, /**< the block came, or nothing is known against it */
    SKY_VERDICT_FORGET,   /**< this host cannot get it; others may */
    SKY_VERDICT_PURGE     /**< a chunk is gone for good, so the rest is of no use (paper, section 3.9) */
} SKY_Verdict_t;

/**
 * Return true if a stand-in may hold some of a block: its rest is of use then. Stand-ins without a schedule, and all in the layout hop, keep
 * what they took when the lost satellite is back, and no place of a share leads there. So before a host purges a block it asks the
 * satellites that stand in first (SKY_Places_Spares) for any chunk of it, by HAS. If there are none, servers stand in for each other, and
 * nobody can say.
 * @param spares   number of these satellites, lost ones included
 * @param denials  number of those that said that they hold nothing of the block
 */
bool SKY_Verdict_IsAside(uint32_t spares, uint32_t denials);

/** Facts that are known when all places of a share have denied it. */
typedef struct
{
    bool has_moved;    /**< the window has moved on, or the block was prefetched elsewhere: it may be where nobody was asked */
    bool at_stand_in;  /**< the satellite that denied it is a stand-in, which never had it */
    bool is_unsettled; /**< a satellite that denied it is not settled: it may be on its way there */
    bool is_certain; /**< no handover went on: all satellites that may have something to hand over said that they have nothing */
    bool is_other;   /**< a block of other lengths has the key, or the block is prefetched for another row: the rest is of use */
    bool is_blind;   /**< satellites follow a schedule that this host does not know, so it asked at wrong places */
    bool is_aside;   /**< a stand-in may hold some of it: SKY_Verdict_IsAside */
    bool lazy_purge; /**< hosts purge what is left */
} SKY_Denied_t;

/** Return what a denied share means for its block. */
SKY_Verdict_t SKY_Verdict_Of(const SKY_Denied_t *denied);
/** Return true if the block is to be purged once all satellites that denied the share are settled. Then it is worth a question what became of it,
 *  as the block may be elsewhere (SKY_ATTEMPT_CONFIRM). */
bool SKY_Verdict_MayPurge(const SKY_Denied_t *denied);

/** Rows of the schedule whose places are asked, as SKY_Places_Rows finds them; none without a schedule. */
typedef struct
{
    const uint32_t *rows;
    uint32_t        count; /**< at most SKY_PLACES_ROWS_MAX */
} SKY_Rows_t;

/** Knowledge of handovers. */
typedef struct
{
    bool is_known;   /**< satellites were asked so lately that the rest still holds; else the rest means nothing */
    bool is_over;    /**< no answering satellite has anything to hand over */
    bool is_certain; /**< all satellites that may have something have answered */
} SKY_Late_t;

/** Attempts to move one block. */
typedef struct
{
    bool         is_get;
    uint32_t     step;   /**< SKY_AttemptStep_t */
    uint32_t     status; /**< outcome of the last attempt; SKY_STATUS_RUNNING before the first has ended */
    uint32_t     asks, searches;
    uint32_t     ways; /**< number of the places and ways that were asked last; 0: none */
    uint32_t     rows[SKY_PLACES_ROWS_MAX];
    uint32_t     row_count;
    uint32_t     known_row;   /**< row that held at the last search for late satellites */
    bool         is_searched; /**< the last attempt, or the running one, follows a search */
    bool         may_search;
    bool         is_renewed; /**< the block is asked for as satellites know it now */
    SKY_Denied_t denied;
} SKY_TransferAttempts_t;

/**
 * Begin a get.
 * @param late        knowledge of handovers now; it holds until another row begins
 * @param row         row that holds now; 0 without a schedule
 * @param lazy_purge  hosts purge what is left of a block that is gone
 */
void SKY_TransferAttempts_InitGet(SKY_TransferAttempts_t *attempts, const SKY_Late_t *late, uint32_t row, bool lazy_purge);
/** Begin a put. */
void SKY_TransferAttempts_InitPut(SKY_TransferAttempts_t *attempts);
/** Return the next step. LOOK and DOUBT count as done when this is called again. */
SKY_AttemptStep_t SKY_TransferAttempts_Next(SKY_TransferAttempts_t *attempts);
/**
 * Begin an attempt, if the step is ASK.
 * @param rows  rows that are asked
 * @param ways  number of the places and ways, from 1: another one for other places, or other ways to them
 * @return false if these were asked in vain; then there is nothing to do, and the step is another one
 */
bool SKY_TransferAttempts_Begin(SKY_TransferAttempts_t *attempts, const SKY_Rows_t *rows, uint32_t ways);
/** End the attempts, as no satellite can be asked now. */
void SKY_TransferAttempts_GiveUp(SKY_TransferAttempts_t *attempts);
/**
 * End an attempt.
 * @param status       SKY_STATUS_* of the block
 * @param at_stand_in  the satellite that denied a share stands in for another one
 * @param is_unsettled  a satellite that denied chunks is not settled
 * @param rows         rows whose places would be asked now
 * @param row          row that holds now; 0 without a schedule
 */
void SKY_TransferAttempts_Ended(SKY_TransferAttempts_t *attempts, uint32_t status, bool at_stand_in, bool is_unsettled,
                                const SKY_Rows_t *rows, uint32_t row);
/** Take in a search for late satellites. @param row  row that held then */
void SKY_TransferAttempts_Searched(SKY_TransferAttempts_t *attempts, const SKY_Late_t *late, uint32_t row);
/**
 * Take in the facts of the block that satellites know. If they know another block, that one is asked for, once.
 * @param is_other, is_blind, is_aside  as in SKY_Denied_t
 */
void SKY_TransferAttempts_Confirmed(SKY_TransferAttempts_t *attempts, bool is_other, bool is_blind, bool is_aside);
/** Have a miss confirmed before it ends the attempts, whatever it means for the rest of the block. A value may be missed only if enough homes say
 *  which version they know. */
void SKY_TransferAttempts_Doubt(SKY_TransferAttempts_t *attempts);
/** Return what a get that has ended means for the block. */
SKY_Verdict_t SKY_TransferAttempts_Verdict(const SKY_TransferAttempts_t *attempts);

#endif
