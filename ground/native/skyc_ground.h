/**
 * @file
 * A ground host for programs: the core's ground (sky_ground.h), one UDP socket, and one thread that runs both. Any thread may call all
 * functions.
 *
 *     caller   SKYC_Ground_Submit puts operations into a list, and wakes the thread if it sleeps
 *     thread   takes the list, reads the socket, lets the ground run and send; what has ended goes to the box of who submitted it. It sleeps
 *              until a datagram comes, somebody submits, or the ground is due
 *     alone    a caller of SKYC_Ground_Do that finds nothing else to do does what the thread does, until its operations have ended
 *     box      what has ended for one caller: a caller waits for it, a loop of events has a descriptor of it
 *
 * Loss, a dead satellite or a bad answer never makes a function fail: each operation says what happened to it.
 *
 * The thread blocks all signals, and uses no CPU while nothing runs. A forked child has no such thread: functions fail there with ECHILD.
 */
#ifndef SKYC_GROUND_H
#define SKYC_GROUND_H

#include "sky_ground.h"
#include "skyc.h"

/** Settings of a ground besides those of its client. */
typedef struct
{
    uint16_t        planes, slots; /**< of the constellation */
    bool            seam_cut;      /**< no links lead over the seam */
    uint32_t        servers;       /**< servers of a block */
    uint32_t        operations;    /**< operations that run at a time, from 1; later ones wait for their turn */
    uint32_t        queued;        /**< operations that may be submitted and not taken back, from 1 */
    uint32_t        chunk_bytes; /**< the usual chunk, from 1: how many of them the receive buffer holds is the windows' limit */
    const uint64_t *endpoints;   /**< of all satellites, plane after plane: ipv4 << 16 | port. They are copied */
    SKY_ReachCfg_t  reach;       /**< how long satellites are left alone; a 0 is the default */
} SKYC_GroundConfig_t;

/** A message from the Software Bus of a satellite. */
typedef struct
{
    uint16_t plane, slot;
    uint32_t length;
    uint8_t  message[SKY_LIMIT_RELAY_BYTES];
} SKYC_Telemetry_t;

/** Questions on their way at a time: their answers must fit the socket's buffer. */
#define SKYC_GROUND_QUESTIONS 2048u
/** Error besides those of errno: the system gives no thread. */
#define SKYC_NO_THREAD (-1)

typedef struct SKYC_Ground SKYC_Ground_t;
typedef struct SKYC_Box    SKYC_Box_t;
typedef struct SKYC_Op     SKYC_Op_t;

/** What a ground knows of the sky as a whole, when an operation ends. Whoever wants to tell it looks whether it has changed. */
typedef struct
{
    uint32_t number;    /**< counts up: a larger one was said later */
    uint32_t losses;    /**< times that a satellite was found lost */
    uint32_t lost;      /**< satellites that are lost now */
    bool     is_silent; /**< nobody answers */
    bool     is_blind;  /**< satellites follow a schedule, and this host follows none */
    /* satellites with something to hand over, by their last word */
    uint32_t late;        /**< number of them; 0: there is none */
    uint32_t late_chunks; /**< chunks that they have to hand over */
    uint64_t late_ms;     /**< longest time for which one has handed over */
} SKYC_Words_t;

/** An operation. It belongs to the ground from SKYC_Ground_Submit until SKYC_Box_Take returns it, and so does the memory to which it points.
 *  Who submits it has set what stands first in `core` (sky_ground.h), and 0 elsewhere. What is only for the core's own use is given back
 *  in SKYC_Op_End. */
struct SKYC_Op
{
    SKY_GroundOp_t core; /**< it comes first. memory for the core's own use, and that of what is wanted, is the ground's */
    void          *user; /**< of no meaning to the ground */
    bool           wants_served;  /**< GET, PUT: what each satellite did in it is wanted (core.served), */
    bool           wants_holders; /**< CHECK: and who holds which share (core.holders), as many as a block has servers */
    /* outcome, besides that of the core */
    SKYC_Words_t words;
    /* for the ground only */
    SKYC_Box_t *box;
    SKYC_Op_t  *next, *previous;
    void       *own;
    uint8_t     state;
    bool        is_cancelled;
};

/**
 * Open the socket. The thread starts with the first operation.
 * @param error  receives an errno if the result is NULL. EINVAL: a number is out of range
 */
SKYC_Ground_t *SKYC_Ground_Open(const SKYC_GroundConfig_t *config, const SKYC_Config_t *client, int *error);
/** End all that runs as CANCELLED, and wait until no other thread is in a function of the ground; safe to call twice, also at once: each
 *  call returns when that is done. What has ended can still be taken from its box. Functions fail with ESHUTDOWN from now on. In a forked
 *  child this closes the descriptors only. */
void SKYC_Ground_Close(SKYC_Ground_t *ground);
/** Close and free a ground, which nobody uses any more. Boxes outlive it. NULL is none. */
void SKYC_Ground_Free(SKYC_Ground_t *ground);
/** Rows of a schedule, of the ground's torus and servers. */
typedef struct
{
    uint32_t                 layout; /**< SKY_LayoutId_t */
    const SKY_ScheduleRow_t *rows;
    uint32_t                 count;
    uint64_t                 epoch_us; /**< epoch of the schedule on CLOCK_MONOTONIC; modulo 2^64 if that clock began later */
} SKYC_SkyRows_t;

/**
 * Set the sky that operations see from now on. What it points to is copied.
 * @param sky  its schedule does not count: @p rows make it
 * @return 0; EINVAL: SKY_Schedule_Init or SKY_Ground_SetSky refuses it; ENOMEM; ESHUTDOWN; ECHILD
 */
int SKYC_Ground_SetSky(SKYC_Ground_t *ground, const SKY_GroundSky_t *sky, const SKYC_SkyRows_t *rows);
/**
 * Submit operations. They end in the box, in any order.
 * @return 0; EAGAIN: so many are not taken back that there is no room for all of these; EINVAL: one contradicts itself, or there is no sky;
 *         ENOMEM; SKYC_NO_THREAD; EBADF: somebody has closed the socket's descriptor; ESHUTDOWN: the ground was closed; ECHILD. After an
 *         error none was taken
 */
int SKYC_Ground_Submit(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count);
/** Submit operations, and wait as SKYC_Box_Await does, or until a signal comes. @param ended  receives what that returns @return as SKYC_Ground_Submit */
int SKYC_Ground_Do(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count, uint32_t timeout_us,
                   uint32_t *ended);
/** Return true in a forked child. The locks may be held by threads that it does not have, so functions that tell nothing do nothing there. */
bool SKYC_Ground_IsChild(const SKYC_Ground_t *ground);
/** Return why the ground takes no operations: EBADF, ESHUTDOWN or ECHILD, as SKYC_Ground_Submit; 0: it does. */
int SKYC_Ground_Error(SKYC_Ground_t *ground);
/** Ask operations to end; each ends in its box in any case. One that has ended already stays as it is. */
void SKYC_Ground_Cancel(SKYC_Ground_t *ground, SKYC_Op_t *const *ops, uint32_t count);

/** Make a box. @param has_descriptor  true: SKYC_Box_Descriptor is readable while something has ended and was not taken. @return NULL with an errno */
SKYC_Box_t *SKYC_Box_New(SKYC_Ground_t *ground, bool has_descriptor, int *error);
/** Free a box, to which no operation comes any more. NULL is none. */
void SKYC_Box_Free(SKYC_Box_t *box);
/** Return the descriptor of a box, or -1. */
int SKYC_Box_Descriptor(const SKYC_Box_t *box);
/** Wait until so many operations have ended and were not taken, or the time. @return number of them; 0 in a forked child, at once */
uint32_t SKYC_Box_Await(SKYC_Box_t *box, uint32_t count, uint32_t timeout_us);
/** Take the operation that has ended first. What was wanted of it is there until SKYC_Op_End. @return NULL if there is none */
SKYC_Op_t *SKYC_Box_Take(SKYC_Box_t *box);
/** Give back the ground's memory of an operation that was taken; nothing if it has none. */
void SKYC_Op_End(SKYC_Op_t *op);

/* ---- what the host knows: the thread waits meanwhile. Functions return 0 or an error as SKYC_Ground_Error ------------------------ */

/** See SKY_Host_PatienceUs and SKY_Host_HurryUs. @param us  receives 0 after an error */
int SKYC_Ground_PatienceUs(SKYC_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count, uint64_t *us);
int SKYC_Ground_HurryUs(SKYC_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count, uint64_t *us);
/** Knowledge of satellites that do not answer (sky_reach.h). */
typedef struct
{
    bool        is_silent; /**< nobody answers */
    uint32_t    losses;    /**< times that a satellite was found lost */
    SKY_Addr_t *lost;      /**< lost satellites in ascending order: the caller frees them; NULL if there are none */
    uint32_t    lost_count;
} SKYC_Reach_t;

/** Get what is known of satellites that do not answer; nothing after an error, or without memory. */
int SKYC_Ground_Reach(SKYC_Ground_t *ground, SKYC_Reach_t *reach);
/** See SKY_Ground_Progress. @return 0 after ECHILD */
uint32_t SKYC_Ground_Progress(SKYC_Ground_t *ground, const SKYC_Op_t *op, uint32_t *total);
/** See SKY_Host_Expect. */
int SKYC_Ground_Expect(SKYC_Ground_t *ground, SKY_Addr_t satellite, uint32_t rtt_us);
/** Take in hints of other processes of this machine (SKY_Ground_TakeHint), with times by CLOCK_MONOTONIC. */
int SKYC_Ground_TakeHints(SKYC_Ground_t *ground, const SKY_GroundHint_t *hints, uint32_t count);
/** Get what the host knows of each satellite, plane after plane (SKY_Ground_Hint). @param hints  room for all of them */
int SKYC_Ground_Hints(SKYC_Ground_t *ground, SKY_GroundHint_t *hints);
/** Take another host number, from 1 on; 0 draws one at random. Questions on their way are asked again under it. */
int SKYC_Ground_SetNumber(SKYC_Ground_t *ground, uint16_t number);
/** @param counters  receives zeros after an error */
int SKYC_Ground_Counters(SKYC_Ground_t *ground, SKYC_Counters_t *counters);
/** Keep telemetry from now on that comes of satellites which were asked for it (RELAY with flag TLM). @return ENOMEM, too */
int SKYC_Ground_Listen(SKYC_Ground_t *ground);
/** Wait for a message of telemetry, and get the oldest one. @return false: none came in time */
bool SKYC_Ground_NextTelemetry(SKYC_Ground_t *ground, SKYC_Telemetry_t *telemetry, uint32_t timeout_us);

#endif
