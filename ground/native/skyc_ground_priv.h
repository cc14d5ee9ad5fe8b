/**
 * @file
 * Inside of a ground: what its files share. Private to the library.
 *
 * One lock, `list`, guards what callers and thread share: operations that were submitted, those that have ended, callers inside, telemetry.
 * Core and socket are those of whose turn it is: the leader's for a round, or a caller's. Turns are taken in the order in which they were
 * asked for, so nobody is left waiting. Whoever has the turn may take `list`.
 *
 * One at a time leads: it lets the core go round by round, and sleeps on the socket between rounds.
 *
 *     nobody leads: nothing runs, nothing is expected  -> somebody submits: the thread leads
 *                                                      -> SKYC_Ground_Do: that caller leads, which saves it two changes of threads
 *     a caller leads  -> what it waits for has ended: nobody leads, or the thread if anything else runs or is expected
 *                     -> its time is over, a signal comes, or the ground is closed: the thread leads
 *     the thread leads  -> nothing runs, nothing is expected: nobody leads
 */
#ifndef SKYC_GROUND_PRIV_H
#define SKYC_GROUND_PRIV_H

#include <pthread.h>
#include <time.h>

#include "skyc_ground.h"
#include "skyc_keyring.h"
#include "skyc_socket.h"

/** Messages of telemetry that are kept until they are asked for; later ones are dropped. */
#define SKYC_GROUND_TELEMETRY 1024u

/** States of an operation. */
enum
{
    SKYC_OP_FREE = 0, /* its owner's */
    SKYC_OP_RUNS,     /* submitted, and not ended */
    SKYC_OP_ENDED     /* in its box */
};

typedef struct
{
    SKYC_Op_t *first, *last;
} SKYC_List_t;

struct SKYC_Box
{
    SKYC_Ground_t *ground;
    SKYC_List_t    ended;
    uint32_t       count;
    int            fd; /* -1: it has none */
    pthread_cond_t more;
};

struct SKYC_Ground
{
    uint32_t            forks; /* of the process that has the thread */
    pthread_mutex_t     list;
    pthread_cond_t      left;  /* nobody is inside any more, or it was closed */
    pthread_cond_t      told;  /* telemetry has come */
    pthread_cond_t      turns; /* a turn has ended */
    pthread_cond_t      rest;  /* the thread is to lead, or to end */
    SKYC_GroundConfig_t config;
    uint64_t           *endpoints;
    SKYC_Keyring_t      keyring;
    /* under `list` */
    SKYC_List_t       submitted;
    SKYC_List_t       running;           /* operations that the core has */
    uint32_t          turn, asked;       /* number of the turn that goes on, or comes next; number of turns that were asked for */
    uint32_t          inside;            /* callers that are in a function */
    uint32_t          taken_in;          /* operations that were not taken back */
    uint32_t          references;        /* who has the ground, and its boxes: the last of them frees this structure */
    bool              is_led, is_called; /* somebody leads; the thread is to lead as soon as nobody does */
    bool              sleeps;            /* the leader sleeps on the socket */
    bool              has_cancels, has_thread, has_sky;
    bool              is_closed; /* nobody may enter */
    bool              has_ended; /* and all was given back */
    bool              is_gone;   /* somebody has closed the socket's descriptor */
    pthread_t         thread;
    SKYC_Telemetry_t *telemetry; /* a ring; NULL until somebody listens */
    uint32_t          telemetry_first, telemetry_count;
    /* of whose turn it is */
    bool               is_over; /* the core must not be called any more */
    SKY_Ground_t       core;
    void              *memory;
    SKYC_Socket_t     *sock;
    SKYC_Counters_t    counters;
    uint8_t            random[256]; /* bytes by chance, */
    uint32_t           random_left; /* and how many were not used */
    uint64_t           now_us;
    uint64_t           empty_us; /* last time at which nothing was left to read */
    SKY_Schedule_t     schedule;
    SKY_ScheduleRow_t *rows;
    SKY_Addr_t        *seen;
    SKYC_Words_t       words; /* those of late satellites hold until the next search */
};

/* ---- skyc_ground_calls.c: who is inside, lists and boxes ------------------------------------------------------------------ */

void       SKYC_List_Append(SKYC_List_t *list, SKYC_Op_t *op);
SKYC_Op_t *SKYC_List_Take(SKYC_List_t *list); /**< the first; NULL: there is none */
void       SKYC_List_Remove(SKYC_List_t *list, SKYC_Op_t *op);
/** Let forks be counted from now on, in children, which must not take a lock to know that they are ones. @return 0 or ENOMEM */
int SKYC_Ground_CountForks(uint32_t *number);
/** Begin a condition whose waits end by CLOCK_MONOTONIC. */
void SKYC_Ground_BeginCondition(pthread_cond_t *condition);
/** Return the time of CLOCK_MONOTONIC. */
uint64_t SKYC_Ground_ClockUs(void);
/** Find the time after @p timeout_us from now. */
void SKYC_Ground_After(uint32_t timeout_us, struct timespec *until);
/** Enter a function, with `list`. @return 0; ECHILD or ESHUTDOWN without it */
int  SKYC_Ground_Enter(SKYC_Ground_t *ground);
void SKYC_Ground_Leave(SKYC_Ground_t *ground);
/** Enter a function, and wait for a turn. @return 0 without `list`; EBADF, or as SKYC_Ground_Enter */
int  SKYC_Ground_EnterTurn(SKYC_Ground_t *ground);
void SKYC_Ground_LeaveTurn(SKYC_Ground_t *ground);
/** Wait for a turn. With `list`. */
void SKYC_Ground_TakeTurn(SKYC_Ground_t *ground);
/** End a turn. With `list`. */
void SKYC_Ground_EndTurn(SKYC_Ground_t *ground);
/** Let the leader go on; if nobody leads, the thread. With `list`. */
void SKYC_Ground_Kick(SKYC_Ground_t *ground);
/** Put an operation that has ended into its box. With `list`. */
void SKYC_Box_Deliver(SKYC_Op_t *op);
/** Drop a reference. The last one frees the structure and its locks. */
void SKYC_Ground_Drop(SKYC_Ground_t *ground);

/* ---- skyc_ground_thread.c -------------------------------------------------------------------------------------------------- */

/** Start the thread. With `list`. @return 0, an errno, or SKYC_NO_THREAD */
int SKYC_Ground_StartThread(SKYC_Ground_t *ground);
/** Lead until so many operations have ended in a box, a time, or a signal. Nobody leads. With `list`, which is let go meanwhile. */
void SKYC_Ground_Lead(SKYC_Ground_t *ground, const SKYC_Box_t *box, uint32_t count, uint64_t until_us);

#endif
