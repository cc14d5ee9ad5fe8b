/**
 * @file
 * Private to the twin: ground hosts.
 *
 *     twin_ground.c           a ground host, its packets
 *     twin_reach.c            what it knows of satellites: who is lost, who is late
 *     twin_reach_questions.c  what it asks satellites to know that
 *     twin_op.c               an operation of a host
 *     twin_op_places.c        where it goes for the shares of its block
 *     twin_op_questions.c     what an operation asks satellites about its block
 *     twin_share_record.c     whom hosts have asked for a share
 *     twin_held.c             whether a block is whole
 *     twin_clear.c            purging a block
 *     twin_look.c             looking one up
 */
#ifndef TWIN_HOST_H
#define TWIN_HOST_H

#include "sky_transfer_attempts.h"
#include "sky_purge.h"
#include "sky_handovers.h"
#include "sky_held.h"
#include "sky_host.h"
#include "sky_lookup.h"
#include "sky_places.h"
#include "sky_presence.h"
#include "sky_reach.h"
#include "twin.h"

/* ---- ground ---------------------------------------------------------------------------------------------------------- */

#define SKYT_REACH_FIRST_MAX ((SKY_STRIPE_ROW_MAX + 1u) * SKY_PLACES_ROWS_MAX)

/** Inquiry that an operation waits for: see twin_reach_questions.c. */
typedef enum
{
    SKYT_WAIT_NOT = 0,
    SKYT_WAIT_LOOK, /**< for satellites that do not answer */
    SKYT_WAIT_BACK, /**< for lost satellites that are back */
    SKYT_WAIT_LATE  /**< for satellites with something to hand over */
} SKYT_Wait_t;

/** Permission to ask satellites. */
typedef enum
{
    SKYT_MAY_NOW = 0,
    SKYT_MAY_LATER, /**< the operation waits, and goes on by itself */
    SKYT_MAY_NOT    /**< no: nobody answers this host */
} SKYT_May_t;

/** Questions of a ground host to many satellites. */
typedef struct
{
    SKYT_Wait_t          kind;   /**< kind; NOT: there is no inquiry */
    uint32_t             number; /**< number of the last inquiry */
    uint32_t             round;  /**< round of a look */
    SKY_Addr_t           failed; /**< satellite that a look is about besides the servers; plane 0: none */
    uint64_t             began_us;
    uint32_t             count; /**< number of questions */
    uint32_t             about; /**< first questions that a look is about; or satellites that may be late, lost ones included */
    uint32_t             running;
    SKY_HandoverSearch_t search;
    SKY_ReachAsk_t      *asks, *others;
    SKY_Addr_t          *addrs;
    SKY_HostQuestion_t  *questions;
    SKY_HostAsked_t     *asked;
    uint8_t             *stats;     /**< room for answers to STATS */
    bool                *answered;  /**< by satellite: its question is answered */
    bool                *is_mute;   /**< by satellite: it did not say whether it is late when all were asked last */
    uint32_t            *last_rows; /**< scratch, by satellite */
    bool                *is_spare;  /**< scratch, by satellite: it may have stood in for others */
    uint64_t *spare_us; /**< by satellite: time at which it was last asked as a spare whether it is late; 0: not lately */
} SKYT_ReachQuestions_t;

/** Question of a host before a get, and its state: see twin_held.c. */
typedef enum
{
    SKYT_FIRST_NOTHING = 0, /**< no question, or it is done */
    SKYT_FIRST_DUE,
    SKYT_FIRST_LATE, /**< it waits for the search for late satellites */
    SKYT_FIRST_HELD, /**< servers are asked what they hold */
    SKYT_FIRST_ASIDE /**< a chunk is gone, and stand-ins are asked whether they hold others */
} SKYT_First_t;

/** Purging a block: see twin_clear.c. */
typedef struct
{
    SKY_Purge_t core;
    bool        has_asked;  /**< satellites were asked in this step */
    bool        is_over;    /**< it was known before that no handover goes on */
    uint32_t    row;        /**< row in which they were asked */
    bool        is_hurried; /**< satellites that were silent lately are left alone */
    bool        is_calm;    /**< no satellite had anything to hand over at its begin, and the first one asked knows the block */
} SKYT_Clear_t;

/** Question that a get asks before it ends. */
typedef enum
{
    SKYT_CONFIRM_NOT = 0,
    SKYT_CONFIRM_AHEAD, /**< whether the block is prefetched for a row to come */
    SKYT_CONFIRM_OTHER, /**< whether another block has the key */
    SKYT_CONFIRM_ASIDE  /**< whether stand-ins hold some of it */
} SKYT_Confirm_t;

/** Looking a block up: see twin_look.c. */
typedef struct
{
    bool             is_on;
    SKY_Lookup_t     core;
    SKY_LookupKey_t  key;
    SKY_Addr_t       first[SKYT_REACH_FIRST_MAX]; /**< satellites that a pass asks */
    uint32_t         count;                       /**< number of them */
    uint32_t         at;                          /**< index of the one that is asked */
    bool             is_passing;
    bool             has_asked;
    uint32_t         silences; /**< questions without an answer */
    uint32_t         spares;   /**< number of satellites that stand in first */
    SKY_BlockFacts_t facts;    /**< facts that satellites know of the block */
    uint32_t         payload_bytes;
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES];
} SKYT_Look_t;

typedef struct SKYT_Active SKYT_Active_t;

/** Questions of a ground host to all servers of one block. */
typedef struct
{
    SKYT_Active_t           *active; /**< operation that asks; NULL: there are no questions */
    uint64_t                 began_us, end_us;
    uint64_t                 waits_us;   /**< duration from the beginning to the end */
    bool                     is_certain; /**< all satellites that may have something to hand over said that they have nothing */
    SKY_BlockFacts_t         block;
    uint32_t                 rows[SKY_PLACES_ROWS_MAX];
    uint32_t                 row_count;
    uint32_t                 running;
    uint32_t                 silent_count;
    SKY_HeldShare_t         *shares;
    SKY_HostQuestion_t      *questions;
    uint8_t                 *payloads, *rooms;
    SKY_Addr_t              *silent; /**< satellites that said nothing; room for all questions */
    SKY_Addr_t              *places; /**< scratch of the same size */
    SKY_Presence_t           presence;
    SKY_PresenceSatellite_t *known;   /**< memory of its knowledge of satellites */
    SKY_HeldRow_t           *rows_of; /**< what is said of each row of the block */
} SKYT_Held_t;

/** A ground host. */
typedef struct
{
    SKYT_Twin_t          *twin;
    uint16_t              number;
    SKY_Host_t            core;
    SKY_HostBlockMemory_t blocks;
    uint8_t               payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Reach_t           reach;
    SKY_ReachSatellite_t *known; /**< memory of its knowledge of satellites */
    SKY_Addr_t           *lost;  /**< memory of lost satellites */
    SKY_Handovers_t       handovers;
    SKY_Addr_t           *late; /**< satellites that had something to hand over by their last word, in ascending order */
    uint32_t              late_count;
    uint32_t              late_first; /**< first row whose satellites were asked */
    SKY_Addr_t           *spares;     /**< late ones that may have stood in for others */
    uint32_t              spare_count;
    SKYT_ReachQuestions_t inquiry;
    uint32_t              waiting; /**< operations that wait for an inquiry */
    SKY_Addr_t           *placed;  /**< scratch, by server */
    SKY_Cell_t           *room;    /**< scratch, a cell for each satellite */
    bool                 *aside;   /**< scratch, by satellite: it stands in first */
    SKY_Shares_t          shares;  /**< shares of the attempt that begins */
    SKYT_Held_t           held;
} SKYT_Ground_t;

/** An operation that runs. */
struct SKYT_Active
{
    bool                   is_active;
    uint32_t               op; /**< number of the operation */
    uint32_t               kind;
    uint32_t               block, host;
    uint32_t               epoch;    /**< row that the host takes the block to be prefetched for */
    uint64_t               version;  /**< of a value; 0: the block has none, or it is not known yet */
    uint64_t               known;    /**< newest version that the host knew when it began */
    uint64_t               promised; /**< version that it has to find at least; 0: any */
    uint64_t               started_us;
    uint32_t               deadline_ms; /**< deadline of an attempt */
    uint64_t               deadline_us; /**< deadline of the running attempt */
    uint32_t               tries;       /**< number of pieces, and of their moves to another place */
    bool                   fell_back;
    bool                   is_lazy;     /**< a purge that follows a miss */
    bool                   is_deletion; /**< a put deletes a value */
    bool                   is_above;    /**< a put goes on under a version above one that was in its way */
    SKYT_Cause_t           excuse;      /**< excuse for a miss that was known at the begin of a get */
    uint32_t               denied;      /**< chunk that nobody held, or SKYT_NONE */
    SKYT_Cause_t           failed;
    uint8_t               *buffer;
    uint8_t               *have; /**< memory of the core's host, as are the next two */
    uint8_t               *parity;
    SKY_HostRow_t         *rows;
    SKY_HostPlace_t       *places; /**< places at round x servers + share */
    SKY_HostBlock_t        block_state;
    SKY_TransferAttempts_t attempts;
    SKYT_Wait_t            waits;
    uint32_t               waits_for;      /**< number of the first inquiry that ends its wait */
    SKY_Addr_t             failed_on;      /**< satellite on which the last attempt failed; plane 0: none */
    bool                   doubts;         /**< a stand-in did not have its share */
    bool                   has_asked_lost; /**< lost satellites were asked before the next attempt */
    uint32_t       astray; /**< bits as SKYT_ShareRecord_Bit: shares for whose servers others stood in, in the last attempt, */
    bool           at_stand_in;  /**< and for that of the chunk that was denied */
    bool           is_unsettled; /**< a satellite that is not settled denied chunks, in the last attempt of a get */
    bool           is_stray;     /**< the denied chunk lies where this host could not look for it: SKYT_ShareRecord_IsStray */
    SKYT_First_t   first;
    bool           is_useless;   /**< servers said before the get that a chunk is gone for good */
    uint32_t       asks;         /**< number of satellites that are asked at once: twin_op_questions.c */
    uint32_t       asking;       /**< number of them that have yet to answer */
    bool           has_searched; /**< late satellites were searched for in this step */
    bool           is_missed;    /**< the block was looked up, and not found */
    SKYT_Clear_t   clear;
    SKYT_Look_t    look;
    SKYT_Confirm_t confirms;
    bool           is_ahead;    /**< the block is prefetched for a row to come, */
    uint32_t       ahead_epoch; /**< this one */
    uint64_t       aside_us;    /**< time at which stand-ins were asked what they hold */
};

/* ---- twin_op_places.c ------------------------------------------------------------------------------------------------ */

/** Return the rule by which the core finds places. */
SKY_Places_t SKYT_OpPlaces_Rule(const SKYT_Twin_t *twin);
/** Find the places of all shares, and tell the core's host of them. @return false if no satellite is in sight */
bool SKYT_OpPlaces_Take(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Return a number of the places that are asked, from 1. */
uint32_t SKYT_OpPlaces_Number(const SKYT_Twin_t *twin, const SKYT_Active_t *active);

/* ---- twin_op.c ------------------------------------------------------------------------------------------------------- */

/** Begin the operations that are due, as many as there is room for. */
void SKYT_Op_Next(SKYT_Twin_t *twin);
/** End an operation whose deadline has passed. */
void SKYT_Op_Overdue(SKYT_Twin_t *twin, uint32_t index);
/** Return the operation of a block. */
SKYT_Active_t *SKYT_Op_Of(const SKY_HostBlock_t *block);
/** Return true if a satellite has something left to hand over. One that is in another row, by its clock, does not know. */
bool SKYT_Op_HasLeft(const SKYT_Twin_t *twin, uint32_t index);
/** Resume an operation: its inquiry has ended. */
void SKYT_Op_Resume(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t waited);
/** Resume a get: the word of the servers is known. @param gone  a chunk without which the rest is to be purged, unless stand-ins hold some of
 * the block; SKYT_NONE: there is none */
void SKYT_Op_Told(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t gone);
/** Describe the block for the core's host, and find the places of its shares. @return false if no satellite is in sight */
bool SKYT_Op_FindPlaces(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Resume an operation: all that SKYT_OpQuestions_All asked have answered, or their time is over. */
void SKYT_Op_Answered(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Take in the end of a block of the host. */
void SKYT_Op_End(SKYT_Twin_t *twin, const SKY_HostBlock_t *block);

/* ---- twin_ground.c --------------------------------------------------------------------------------------------------- */

/** Take memory. @return false if there is not enough */
bool SKYT_Ground_Init(SKYT_Twin_t *twin, uint32_t index);
void SKYT_Ground_Free(SKYT_Ground_t *ground);
/** Run the host, and set the time of its next event. */
void SKYT_Ground_Run(SKYT_Twin_t *twin, uint32_t index);
/** Take in a packet; SKYT_Ground_Run is due. @param host  number of the host, from 1. @param node  satellite that sent it */
void SKYT_Ground_Receive(SKYT_Twin_t *twin, uint16_t host, uint32_t node, const uint8_t *data, uint32_t len);

/* ---- twin_reach.c ---------------------------------------------------------------------------------------------------- */

/** Take memory, once the core's host is ready. @return false if there is not enough */
bool SKYT_Reach_Init(SKYT_Ground_t *ground);
void SKYT_Reach_Free(SKYT_Ground_t *ground);
/** Return the place of a satellite, with its way in. Nowhere if no satellite is in sight. */
SKY_HostPlace_t SKYT_Reach_Place(const SKYT_Ground_t *ground, SKY_Addr_t addr);
/** Find the satellites of all servers in a row, with stand-ins for lost ones. */
void SKYT_Reach_Servers(const SKYT_Ground_t *ground, uint32_t row, SKY_Addr_t *servers);
/**
 * Find the satellites that the host asks first for a block of which it knows only the key: in each row the server that has share 0 of a small
 * block and those behind it, one more than hold parity. While the block may move these are several rows.
 * @param block  number of the block
 * @param found  room for SKYT_REACH_FIRST_MAX
 * @return number of satellites; 0 if none is in sight
 */
uint32_t SKYT_Reach_First(const SKYT_Ground_t *ground, uint32_t block, SKY_Addr_t *found);
bool     SKYT_Reach_IsLost(const SKYT_Ground_t *ground, SKY_Addr_t satellite);
/** Return the host's knowledge of satellites. @param is_searched  it looks for shares at late ones */
SKY_PlacesKnown_t SKYT_Reach_Known(const SKYT_Ground_t *ground, bool is_searched);
/** Return the host's knowledge of handovers. */
SKY_Late_t SKYT_Reach_Late(const SKYT_Ground_t *ground);
/** Before an attempt. */
SKYT_May_t SKYT_Reach_May(SKYT_Twin_t *twin, SKYT_Active_t *active);

/* ---- twin_reach_questions.c ----------------------------------------------------------------------------------------- */

/** Take memory, once the core's host is ready. @return false if there is not enough */
bool SKYT_ReachQuestions_Init(SKYT_Ground_t *ground);
void SKYT_ReachQuestions_Free(SKYT_Ground_t *ground);
/** Let an operation wait until SKYT_Op_Resume. */
void SKYT_ReachQuestions_Wait(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t what);
/** Begin and end inquiries. @return true if something has happened, or was asked */
bool SKYT_ReachQuestions_Run(SKYT_Ground_t *ground);
/** Take in the end of a question of the inquiry. */
void SKYT_ReachQuestions_Answered(SKYT_Ground_t *ground);
/**
 * Find what a packet answers that the host is about to look at.
 * @return flag that says whether the satellite has answered, to be set unless the host does not trust the packet; NULL: it is no answer
 */
bool *SKYT_ReachQuestions_Hears(SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len);

/* ---- twin_held.c ----------------------------------------------------------------------------------------------------- */

/** Take memory. @return false if there is not enough */
bool SKYT_Held_Init(SKYT_Ground_t *ground);
void SKYT_Held_Free(SKYT_Ground_t *ground);
/**
 * Ask the servers of a block what they hold of it, at the operation's places. It goes on by SKYT_Op_Told.
 * @param late  knowledge of handovers: none goes on
 * @return false if nobody is asked
 */
bool SKYT_Held_Ask(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_Late_t *late);
/** Take in the end of a question. @return false if it is none of these */
bool SKYT_Held_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question);

/* ---- twin_op_questions.c -------------------------------------------------------------------------------------------- */

/** Take memory. @return false if there is not enough */
bool SKYT_OpQuestions_Init(SKYT_Twin_t *twin);
void SKYT_OpQuestions_Free(SKYT_Twin_t *twin);
/** Return the questions of an operation: room for one to each satellite. */
SKY_HostQuestion_t *SKYT_OpQuestions_Of(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Add a satellite to those that are to be asked (`asks` of them so far), unless it is among them or cannot be reached. */
void SKYT_OpQuestions_Add(const SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_Addr_t satellite);
/** Add all satellites that are late to hand over, but for lost ones. */
void SKYT_OpQuestions_AddLate(const SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Return how long to wait for their answers. */
uint64_t SKYT_OpQuestions_WaitUs(const SKYT_Twin_t *twin, const SKYT_Active_t *active, bool is_hurried);
/**
 * Ask them about the operation's block. The operation goes on by SKYT_Op_Answered.
 * @param what  operation, flags and payload of each question
 * @return false if there are none
 */
bool SKYT_OpQuestions_All(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_HostQuestion_t *what, uint64_t wait_us);
/** Search for late satellites, once in a step, unless they are known. @return true if the operation waits for that */
bool SKYT_OpQuestions_WaitsLate(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Take in the end of a question. @return false if it is none of these */
bool SKYT_OpQuestions_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question);

/* ---- twin_look.c ----------------------------------------------------------------------------------------------------- */

/** Begin to look the operation's block up. */
void SKYT_Look_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Let it go on. @return true if it waits; false if it is over */
bool SKYT_Look_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active);
/**
 * Ask satellites for the facts of a block that was missed.
 * @param is_other  set in the end if the block is prefetched for a row to come, which is the operation's from now on, or was replaced
 * @param is_aside  set in the end if a stand-in may hold some of it
 * @return true if the operation waits; false if it is over
 */
bool SKYT_Look_Confirms(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_other, bool *is_aside);
/** Ask stand-ins for the operation's block. @param is_aside  set in the end if one may hold some of it. @return true if the operation waits */
bool SKYT_Look_AsksAside(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_aside);
/** Find the satellites that a host asks at a time because they stand in first: in `aside`. @return number of them */
uint32_t SKYT_Look_Spares(const SKYT_Ground_t *ground, uint64_t time_us);

/* ---- twin_clear.c ---------------------------------------------------------------------------------------------------- */

/** Begin to purge the operation's block. @param is_hurried  it does not wait long, and leaves silent satellites alone */
void SKYT_Clear_Begin(SKYT_Twin_t *twin, SKYT_Active_t *active, bool is_hurried);
/** Let it go on. @return true if it waits; false if it is over */
bool SKYT_Clear_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Return true if any satellite has something to hand over. */
bool SKYT_Clear_IsLate(const SKYT_Twin_t *twin);

/* ---- twin_share_record.c -------------------------------------------------------------------------------------------- */

/** Begin a get. */
void SKYT_ShareRecord_Begin(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note the places at which a host asks for a share. */
void SKYT_ShareRecord_Places(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, const SKY_Addr_t *found,
                             uint32_t count);
/** Note a request of the host. */
void SKYT_ShareRecord_Note(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt);
/** Note a question of the host about a server's share. */
void SKYT_ShareRecord_Share(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t node, uint32_t server);
/** Find a satellite that could have been asked for a chunk since the get began, and was not. @return SKYT_NONE if there is none */
uint32_t SKYT_ShareRecord_PassedOver(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Return a bit for the server of a chunk, the same for every 32nd server. */
uint32_t SKYT_ShareRecord_Bit(const SKYT_Twin_t *twin, uint32_t chunk);
/** Return true if a satellite is among the places of a server in the running attempt, or the last one. */
bool SKYT_ShareRecord_IsPlace(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t server, SKY_Addr_t satellite);
/** Return true if a satellite keeps a chunk for which it was never the server: stand-ins do in the layout hop, and without a schedule. */
bool SKYT_ShareRecord_IsKept(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t index);
/** Return true if others stood in for lost satellites, and this host could ask none of the holders of a chunk. */
bool SKYT_ShareRecord_IsStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Return true if a satellite that stands in first has held some of the block since before the host asked it for that. */
bool SKYT_ShareRecord_IsAside(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Return true if a satellite that the host asks for the chunk's share has held it since before the operation began. */
bool SKYT_ShareRecord_IsAtHand(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);

#endif
