/**
 * @file
 * Reach of a host: which satellites do not answer. Part of the host: missions do not compile it.
 *
 * A satellite counts as lost only if another one answers at the same time. If nobody answers, it is this host that is cut off, or the
 * whole sky is gone: the host is *silent*. Then it asks nothing for a while, and after that one caller looks whether a satellite is back.
 *
 * A *look* asks the servers, the ways in, and a few others for comparison. Stand-ins take the places of those that are silent, and
 * are asked next, until all that then have a server's place answer. So all hosts that look at the same sky find the same places
 * (sky_standins.h).
 *
 * A satellite that is late in a transfer is only *suspected*: nothing is put there until the next look, which tells whether it is lost.
 *
 * The shell knows which satellites are in sight, and through which one another is reached. It hands that in as a list of questions,
 * sends them, and says which were answered. The clock of now_us never goes back.
 */
#ifndef SKY_REACH_H
#define SKY_REACH_H

#include "sky_defaults.h"
#include "sky_standins.h"
#include "sky_torus.h"

/** Times of a host; the defaults are in sky_defaults.h. */
typedef struct
{
    uint64_t lost_us;        /**< time for which a lost satellite is left alone before it is asked again */
    uint64_t doubt_us;       /**< the same, when a stand-in did not have its share; doubles up to lost_us */
    uint64_t pause_first_us; /**< time for which nothing is asked after nobody answered, from 1; doubles each time */
    uint64_t pause_max_us;   /**< longest such time, from 1 */
} SKY_ReachCfg_t;

/** Knowledge of a satellite. */
typedef struct
{
    uint64_t asked_us; /**< time at which it was lost, or last asked whether it is back */
    uint64_t doubt_us; /**< time for which it is left alone from then on, if a stand-in did not have its share */
    bool     is_lost;
    bool     is_suspect; /**< it was late: nothing is put there before it has said something, or is lost */
    bool     is_noted;   /**< for use within a call */
} SKY_ReachSatellite_t;

/** A question whether a satellite is there. */
typedef struct
{
    SKY_Addr_t satellite;
    SKY_Addr_t entry;    /**< satellite to which the host sends the question */
    bool       answered; /**< set by the shell */
} SKY_ReachAsk_t;

typedef struct
{
    SKY_ReachCfg_t        cfg;
    SKY_Torus_t           torus;
    SKY_ReachSatellite_t *satellites;
    SKY_Addr_t           *lost; /**< lost satellites in ascending order */
    uint32_t              lost_count;
    uint32_t              losses;   /**< times that a satellite was found lost */
    uint32_t              suspects; /**< satellites that are suspected, and not lost */
    uint64_t              pause_us; /**< current pause; 0: the host is not silent */
    uint64_t              again_us; /**< time at which one caller may ask although the host is silent */
} SKY_Reach_t;

/** Permission to ask now. */
typedef enum
{
    SKY_REACH_OPEN = 0, /**< yes */
    SKY_REACH_LOOK,     /**< only after a look that finds a satellite; other callers wait for this one */
    SKY_REACH_SILENT    /**< no */
} SKY_ReachMay_t;

/** Result of a look. */
typedef enum
{
    SKY_REACH_FOUND = 0, /**< all satellites with a server's place answer, or there were rounds enough */
    SKY_REACH_AGAIN,     /**< other satellites have the places now: ask again */
    SKY_REACH_NOBODY     /**< nobody answers: the host is silent */
} SKY_ReachFound_t;

/**
 * Begin.
 * @param satellites  room for planes x slots
 * @param lost        room for planes x slots
 */
void SKY_Reach_Init(SKY_Reach_t *reach, const SKY_ReachCfg_t *cfg, const SKY_Torus_t *torus, SKY_ReachSatellite_t *satellites,
                    SKY_Addr_t *lost);
/** Return whether a server may be asked; call this before any question to one. */
SKY_ReachMay_t SKY_Reach_May(SKY_Reach_t *reach, uint64_t now_us);
/** Note that a satellite was late while others answered. It is suspected until a look tells. @return false if it was, or is lost */
bool SKY_Reach_Suspect(SKY_Reach_t *reach, SKY_Addr_t satellite);
/** Find the satellites to which nothing is put: those that are lost or suspected, in ascending order. @param found  room for planes x slots
 *  @return number of them */
uint32_t SKY_Reach_Away(const SKY_Reach_t *reach, SKY_Addr_t *found);
/** End all suspicions: a look is over, and those that are left were not asked. */
void SKY_Reach_Trust(SKY_Reach_t *reach);
/** Note that a satellite has answered: it is not lost, and the host is not silent. */
void SKY_Reach_Heard(SKY_Reach_t *reach, SKY_Addr_t satellite);
/**
 * Add to the satellites that a look is about the others that it asks: the ways in, and a few others for comparison.
 * @param asks    questions to those that the look is about come first; room for twice as many and SKY_HOST_OTHERS
 * @param about   number of these
 * @param others  satellites that may be asked for comparison, the best first
 * @return number of satellites that are asked
 */
uint32_t SKY_Reach_Around(SKY_Reach_t *reach, SKY_ReachAsk_t *asks, uint32_t about, const SKY_ReachAsk_t *others,
                          uint32_t other_count);
/**
 * End a round of a look.
 * @param round  from 1
 * @param asks   @p count of SKY_Reach_Around, of which the look is about the first @p about
 */
SKY_ReachFound_t SKY_Reach_Found(SKY_Reach_t *reach, uint64_t now_us, uint32_t round, const SKY_ReachAsk_t *asks, uint32_t about,
                                 uint32_t count);
/**
 * Find the lost satellites that are to be asked now whether they are back. They count as asked.
 * @param doubted  true if a stand-in did not have its share: then the satellite is asked sooner, as others may put blocks there again
 * @param found    room for planes x slots
 * @return number of satellites found
 */
uint32_t SKY_Reach_AskLost(SKY_Reach_t *reach, uint64_t now_us, bool doubted, SKY_Addr_t *found);

#endif
