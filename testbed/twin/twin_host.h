/**
 * @file
 * Private to the twin: ground hosts.
 *
 *     twin_ground.c   a ground host, its packets        twin_op.c     an operation of a host
 *     twin_reach.c    who is lost, and who is late      twin_asked.c  whom hosts ask for a share
 *     twin_inquiry.c  what they ask satellites to know it     twin_held.c  whether a block is whole
 *     twin_clear.c    purging a block                   twin_look.c   looking one up
 *     twin_ask.c      questions of an operation
 */
#ifndef TWIN_HOST_H
#define TWIN_HOST_H

#include "sky_attempts.h"
#include "sky_clearing.h"
#include "sky_handovers.h"
#include "sky_held.h"
#include "sky_host.h"
#include "sky_lookup.h"
#include "sky_places.h"
#include "sky_presence.h"
#include "sky_reach.h"
#include "twin.h"

/* ---- ground ---------------------------------------------------------------------------------------------------------- */

#define SKYT_REACH_FIRST_MAX (2u * SKY_PLACES_ROWS_MAX)

/** What an operation waits for: see twin_inquiry.c. */
typedef enum
{
    SKYT_WAIT_NOT = 0,
    SKYT_WAIT_LOOK, /**< who does not answer? */
    SKYT_WAIT_BACK, /**< are lost satellites back? */
    SKYT_WAIT_LATE  /**< who has something to hand over? */
} SKYT_Wait_t;

/** May satellites be asked? */
typedef enum
{
    SKYT_MAY_NOW = 0,
    SKYT_MAY_LATER, /**< the operation waits, and goes on by itself */
    SKYT_MAY_NOT    /**< nobody answers this host */
} SKYT_May_t;

/** Questions of a ground host to many satellites. */
typedef struct
{
    SKYT_Wait_t          kind;   /**< NOT: there is none */
    uint32_t             number; /**< of the last one */
    uint32_t             round;  /**< of a look */
    SKY_Addr_t           failed; /**< satellite that a look is about besides the servers; plane 0: none */
    uint64_t             began_us;
    uint32_t             count; /**< questions */
    uint32_t             about; /**< of these a look is about the first; or satellites that may be late, lost ones included */
    uint32_t             running;
    SKY_HandoverSearch_t search;
    SKY_ReachAsk_t      *asks, *others;
    SKY_Addr_t          *addrs;
    SKY_HostQuestion_t  *questions;
    SKY_HostAsked_t     *asked;
    uint8_t             *stats;     /**< answers to STATS */
    bool                *answered;  /**< by satellite: an answer to its question of now has come */
    bool                *is_mute;   /**< the same: it did not say whether it is late, when all were asked last */
    uint32_t            *last_rows; /**< by satellite, for a moment */
    bool                *is_spare;  /**< by satellite, for a moment: it may have stood in for others */
    uint64_t            *spare_us;  /**< by satellite: when it was last asked for that whether it is late; 0: not of late */
} SKYT_Inquiry_t;

/** What a host asks before a get, and where it stands: see twin_held.c. */
typedef enum
{
    SKYT_FIRST_NOTHING = 0, /**< or that is done */
    SKYT_FIRST_DUE,
    SKYT_FIRST_LATE, /**< it waits to know who is late */
    SKYT_FIRST_HELD  /**< servers are being asked what they hold */
} SKYT_First_t;

/** Purging a block: see twin_clear.c. */
typedef struct
{
    SKY_Clearing_t core;
    bool           has_asked;  /**< satellites were asked in this step */
    bool           is_hurried; /**< those that were silent lately are left alone */
    bool           is_calm;    /**< nobody had anything to hand over when it began, and whoever is asked first knows the block */
} SKYT_Clear_t;

/** What a get confirms before it ends. */
typedef enum
{
    SKYT_CONFIRM_NOT = 0,
    SKYT_CONFIRM_AHEAD, /**< is the block laid for a row to come? */
    SKYT_CONFIRM_OTHER  /**< has another block the name? */
} SKYT_Confirm_t;

/** Looking a block up: see twin_look.c. */
typedef struct
{
    bool             is_on;
    SKY_Lookup_t     core;
    SKY_LookupKey_t  key;
    SKY_Addr_t       first[SKYT_REACH_FIRST_MAX]; /**< whom a pass asks */
    uint32_t         count;                       /**< of them */
    uint32_t         at;                          /**< the one that is asked */
    bool             is_passing;
    bool             has_asked;
    SKY_BlockFacts_t facts; /**< what satellites know of it */
    uint32_t         payload_bytes;
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES];
} SKYT_Look_t;

typedef struct SKYT_Active SKYT_Active_t;

/** Questions of a ground host to all servers of one block. */
typedef struct
{
    SKYT_Active_t           *active; /**< whose they are; NULL: there are none */
    uint64_t                 began_us, end_us;
    uint64_t                 waits_us;   /**< from the beginning to the end */
    bool                     is_certain; /**< all who may have something to hand over said that they have nothing */
    SKY_BlockFacts_t         block;
    uint32_t                 rows[SKY_PLACES_ROWS_MAX];
    uint32_t                 row_count;
    uint32_t                 running;
    uint32_t                 silent_count;
    SKY_HeldShare_t         *shares; /**< by server */
    SKY_HostQuestion_t      *questions;
    uint8_t                 *payloads, *rooms;
    SKY_Addr_t              *silent; /**< who said nothing; room for all questions */
    SKY_Addr_t              *places; /**< for a moment; the same room */
    SKY_Presence_t           presence;
    SKY_PresenceSatellite_t *known; /**< its memory */
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
    SKY_ReachSatellite_t *known; /**< its memory */
    SKY_Addr_t           *lost;  /**< the same */
    SKY_Handovers_t       handovers;
    SKY_Addr_t           *late; /**< satellites that said last that they have something to hand over, in ascending order */
    uint32_t              late_count;
    uint32_t              late_first; /**< row: who had a place in one from this on was asked */
    SKY_Addr_t           *spares;     /**< those of them that may have stood in for others */
    uint32_t              spare_count;
    SKYT_Inquiry_t        inquiry;
    uint32_t              waiting; /**< operations that wait for one */
    SKY_Addr_t           *placed;  /**< by server, for a moment */
    SKY_Cell_t           *room;    /**< a cell a satellite, for a moment */
    SKY_Shares_t          shares;  /**< of the attempt that begins */
    SKYT_Held_t           held;
} SKYT_Ground_t;

/** An operation that runs. */
struct SKYT_Active
{
    bool             is_active;
    uint32_t         op; /**< its number */
    uint32_t         kind;
    uint32_t         block, host;
    uint32_t         epoch; /**< row that the host takes the block to be laid for */
    uint64_t         started_us;
    uint32_t         deadline_ms; /**< of an attempt */
    uint64_t         deadline_us; /**< of the attempt that runs */
    uint32_t         tries;       /**< pieces, and how often one went on to another place */
    bool             fell_back;
    bool             is_lazy; /**< a purge that follows a miss */
    SKYT_Cause_t     excuse;  /**< get: why it might miss, known when it began */
    uint32_t         denied;  /**< chunk that nobody held, SKYT_NONE */
    SKYT_Cause_t     failed;
    uint8_t         *buffer;
    uint8_t         *have;   /**< the host's */
    SKY_HostPlace_t *places; /**< round x servers + server */
    SKY_HostBlock_t  block_state;
    SKY_Attempts_t   attempts;
    SKYT_Wait_t      waits;
    uint32_t         waits_for;      /**< number of the first inquiry that tells what it waits for */
    SKY_Addr_t       failed_on;      /**< satellite on which the last attempt failed; plane 0: none */
    bool             doubts;         /**< a stand-in did not have its share */
    bool             has_asked_lost; /**< before the attempt that is to begin */
    uint32_t         astray;         /**< bits as SKYT_Asked_Bit: servers for which others stood in, in the last attempt, */
    bool             at_stand_in;    /**< and for that of the chunk that was denied */
    bool             is_stray; /**< the chunk that was denied lies where this host could not look for it: SKYT_Asked_IsStray */
    SKYT_First_t     first;
    bool             is_useless;   /**< servers said before the get that a chunk is gone for good */
    uint32_t         asks;         /**< satellites that are asked at once: twin_ask.c */
    uint32_t         asking;       /**< of them those that have yet to answer */
    bool             has_searched; /**< who is late was asked for in this step */
    bool             is_missed;    /**< it was looked up, and not found */
    SKYT_Clear_t     clear;
    SKYT_Look_t      look;
    SKYT_Confirm_t   confirms;
    bool             is_ahead;    /**< the block is laid for a row to come, */
    uint32_t         ahead_epoch; /**< this one */
};

/* ---- twin_op.c ------------------------------------------------------------------------------------------------------- */

/** Begin the operations that are due, as many as there is room for. */
void SKYT_Op_Next(SKYT_Twin_t *twin);
/** Its deadline has passed. */
void SKYT_Op_Overdue(SKYT_Twin_t *twin, uint32_t index);
/** The operation whose block this is. */
SKYT_Active_t *SKYT_Op_Of(const SKY_HostBlock_t *block);
/** Has a satellite something left to hand over? One that is in another row, by its clock, does not know. */
bool SKYT_Op_HasLeft(const SKYT_Twin_t *twin, uint32_t index);
/** What it waited for is known. */
void SKYT_Op_Resume(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t waited);
/** What servers hold is known: a get goes on. @param gone  a chunk without which the rest is to be purged; SKYT_NONE: there is none */
void SKYT_Op_Told(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t gone);
/** Describe the block for the core's host, and find the places of its shares. @return false: no satellite is in sight */
bool SKYT_Op_FindPlaces(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** All who were asked by SKYT_Ask_All have answered, or their time is over. */
void SKYT_Op_Answered(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** A block of the host has ended. */
void SKYT_Op_End(SKYT_Twin_t *twin, const SKY_HostBlock_t *block);

/* ---- twin_ground.c --------------------------------------------------------------------------------------------------- */

/** @return false: not enough memory */
bool SKYT_Ground_Init(SKYT_Twin_t *twin, uint32_t index);
void SKYT_Ground_Free(SKYT_Ground_t *ground);
/** Let the host do what it can, and find out when something will be due. */
void SKYT_Ground_Run(SKYT_Twin_t *twin, uint32_t index);
/** @param host  its number, from 1. @param node  the satellite that sent it */
void SKYT_Ground_Receive(SKYT_Twin_t *twin, uint16_t host, uint32_t node, const uint8_t *data, uint32_t len);

/* ---- twin_reach.c ---------------------------------------------------------------------------------------------------- */

/** @return false: not enough memory. The core's host is ready. */
bool SKYT_Reach_Init(SKYT_Ground_t *ground);
void SKYT_Reach_Free(SKYT_Ground_t *ground);
/** Where a satellite is, and through whom it is reached. Nowhere if no satellite is in sight. */
SKY_HostPlace_t SKYT_Reach_Place(const SKYT_Ground_t *ground, SKY_Addr_t addr);
/** The satellites of all servers in a row, around lost ones. */
void SKYT_Reach_Servers(const SKYT_Ground_t *ground, uint32_t row, SKY_Addr_t *servers);
/**
 * Whom the host asks first for a block of which it knows only the key, in this order: in each row the server nearest to it, and server 0.
 * While the block may move these are several rows.
 * @param found  room for SKYT_REACH_FIRST_MAX
 * @return how many there are; 0: no satellite is in sight
 */
uint32_t SKYT_Reach_First(const SKYT_Ground_t *ground, SKY_Addr_t *found);
bool     SKYT_Reach_IsLost(const SKYT_Ground_t *ground, SKY_Addr_t satellite);
/** What it knows of satellites. @param is_searched  it looks for shares at those that are late */
SKY_PlacesKnown_t SKYT_Reach_Known(const SKYT_Ground_t *ground, bool is_searched);
/** What is known of handovers now. */
SKY_Late_t SKYT_Reach_Late(const SKYT_Ground_t *ground);
/** Before an attempt. */
SKYT_May_t SKYT_Reach_May(SKYT_Twin_t *twin, SKYT_Active_t *active);

/* ---- twin_inquiry.c -------------------------------------------------------------------------------------------------- */

/** @return false: not enough memory. The core's host is ready. */
bool SKYT_Inquiry_Init(SKYT_Ground_t *ground);
void SKYT_Inquiry_Free(SKYT_Ground_t *ground);
/** Let an operation wait: it goes on by SKYT_Op_Resume. */
void SKYT_Inquiry_Wait(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t what);
/** Begin and end inquiries. @return true: something has happened, or was asked */
bool SKYT_Inquiry_Run(SKYT_Ground_t *ground);
/** A question of the inquiry has ended. */
void SKYT_Inquiry_Answered(SKYT_Ground_t *ground);
/** A packet has come, which the host is about to look at. */
void SKYT_Inquiry_Hear(SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len);

/* ---- twin_held.c ----------------------------------------------------------------------------------------------------- */

/** @return false: not enough memory */
bool SKYT_Held_Init(SKYT_Ground_t *ground);
void SKYT_Held_Free(SKYT_Ground_t *ground);
/**
 * Ask the servers of a block what they hold of it, at the operation's places. It goes on by SKYT_Op_Told.
 * @param late  what is known of handovers: none goes on
 * @return false: nobody is asked
 */
bool SKYT_Held_Ask(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_Late_t *late);
/** A question has ended. @return false: it is none of these */
bool SKYT_Held_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question);

/* ---- twin_ask.c ------------------------------------------------------------------------------------------------------ */

/** @return false: not enough memory */
bool SKYT_Ask_Init(SKYT_Twin_t *twin);
void SKYT_Ask_Free(SKYT_Twin_t *twin);
/** The questions of an operation: room for one to each satellite. */
SKY_HostQuestion_t *SKYT_Ask_Of(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Add a satellite to those that are to be asked (`asks` of them so far), unless it is among them or cannot be reached. */
void SKYT_Ask_Add(const SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_Addr_t satellite);
/** Add all that are late to hand over, but for those that are lost. */
void SKYT_Ask_AddLate(const SKYT_Twin_t *twin, SKYT_Active_t *active);
/** How long to wait for their answers. */
uint64_t SKYT_Ask_WaitUs(const SKYT_Twin_t *twin, const SKYT_Active_t *active, bool is_hurried);
/**
 * Ask them about the operation's block. It goes on by SKYT_Op_Answered.
 * @param what  operation, flags and payload of each question
 * @return false: there are none
 */
bool SKYT_Ask_All(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_HostQuestion_t *what, uint64_t wait_us);
/** Who is late has to be known, and is not: find it out, once in a step. @return true: the operation waits for that */
bool SKYT_Ask_WaitsLate(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** A question has ended. @return false: it is none of these */
bool SKYT_Ask_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question);

/* ---- twin_look.c ----------------------------------------------------------------------------------------------------- */

/** Begin to look the operation's block up. */
void SKYT_Look_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Let it go on. @return true: it waits; false: it is over */
bool SKYT_Look_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active);
/**
 * Ask what satellites know of a block that was missed.
 * @param is_other  set in the end: the block is laid for a row to come, which is the operation's from now on, or was replaced
 * @return true: the operation waits; false: it is over
 */
bool SKYT_Look_Confirms(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_other);

/* ---- twin_clear.c ---------------------------------------------------------------------------------------------------- */

/** An operation begins to purge its block. @param is_hurried  it does not wait long, and leaves those alone that were silent */
void SKYT_Clear_Begin(SKYT_Twin_t *twin, SKYT_Active_t *active, bool is_hurried);
/** Let it go on. @return true: it waits; false: it is over */
bool SKYT_Clear_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Has any satellite something to hand over? */
bool SKYT_Clear_IsLate(const SKYT_Twin_t *twin);

/* ---- twin_asked.c ---------------------------------------------------------------------------------------------------- */

/** A get begins. */
void SKYT_Asked_Begin(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** A host has found out whom to ask for a share. */
void SKYT_Asked_Places(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t server, const SKY_Addr_t *found, uint32_t count);
/** It sends a request. */
void SKYT_Asked_Note(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt);
/** It asks a satellite what it holds of a server's share. */
void SKYT_Asked_Share(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t node, uint32_t server);
/** A satellite that could have been asked for a chunk since the get began, and was not. @return SKYT_NONE: there is none */
uint32_t SKYT_Asked_PassedOver(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** A bit for the server of a chunk; for every 32nd server it is the same. */
uint32_t SKYT_Asked_Bit(const SKYT_Twin_t *twin, uint32_t chunk);
/** Is a satellite among the places of a server in the attempt that runs, or ran last? */
bool SKYT_Asked_IsPlace(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t server, SKY_Addr_t satellite);
/** Others stood in for lost satellites, and all who hold the chunk that was denied are none that this host could ask for it. */
bool SKYT_Asked_IsStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active);

#endif
