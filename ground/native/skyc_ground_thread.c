/**
 * @file
 * The thread of a ground: it takes what was submitted, reads the socket, lets the core run, and delivers what has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "sky_endpoint.h"
#include "skyc_ground_priv.h"

#define NS_PER_US      1000u
#define US_PER_S       1000000u
#define BACKLOG_MAX_US 100000u

static uint64_t clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

static void on_datagram(void *context, SKYC_Endpoint_t from, const uint8_t *data, size_t len)
{
    SKYC_Ground_t *ground = context;

    SKY_Ground_Receive(&ground->core, ground->now_us, SKY_Endpoint_Of(from.ipv4, from.port), data, len);
}

/* ---- ends --------------------------------------------------------------------------------------------------------------- */

/* Deliver all that has ended. In a turn. */
static void deliver_ended(SKYC_Ground_t *ground)
{
    SKY_GroundOp_t *core = SKY_Ground_Ended(&ground->core);

    if (core != NULL)
    {
        ++ground->words.number;
        ground->words.losses    = ground->core.reach.losses;
        ground->words.is_silent = ground->core.reach.pause_us > 0;
        ground->words.is_blind  = ground->core.is_blind;
        (void)pthread_mutex_lock(&ground->list);
        for (; core != NULL; core = SKY_Ground_Ended(&ground->core))
        {
            SKYC_Op_t *op = (SKYC_Op_t *)(void *)core; /* `core` comes first in it */

            op->words = ground->words;
            SKYC_List_Remove(&ground->running, op);
            SKYC_Box_Deliver(op);
        }
        (void)pthread_mutex_unlock(&ground->list);
    }
}

/* ---- the thread --------------------------------------------------------------------------------------------------------- */

/* Take what was submitted, and call back what is to be. In a turn, with `list`. */
static void take_submitted(SKYC_Ground_t *ground)
{
    SKYC_Op_t *op;

    ground->now_us = clock_us();
    while ((op = SKYC_List_Take(&ground->submitted)) != NULL)
    {
        SKYC_List_Append(&ground->running, op);
        (void)SKY_Ground_Submit(&ground->core, ground->now_us, &op->core); /* it has room for all that may be submitted */
    }
    for (op = ground->has_cancels ? ground->running.first : NULL; op != NULL; op = op->next)
    {
        if (op->is_cancelled)
        {
            SKY_Ground_Cancel(&ground->core, &op->core);
        }
    }
    ground->has_cancels = false;
}

/* Refuse the requests that are too large for their path. @return true if there were some */
static bool refuse_too_large(SKYC_Ground_t *ground)
{
    uint64_t request_id = 0;
    bool     any        = false;

    while (SKYC_Socket_NextTooLarge(ground->sock, &request_id))
    {
        SKY_Host_RefuseTooLarge(&ground->core.host, ground->now_us, request_id);
        any = true;
    }
    return any;
}

/* Let timers wait until the socket is empty, though not for ever: packets that came but were not read yet are not late. */
static bool timers_may_act(const SKYC_Ground_t *ground)
{
    return ground->empty_us == ground->now_us || ground->now_us - ground->empty_us >= BACKLOG_MAX_US;
}

/* Read, run and send once. In a turn. @return time at which it is due next; the past: at once */
static uint64_t go_round(SKYC_Ground_t *ground)
{
    const bool has_come = SKYC_Socket_Receive(ground->sock, on_datagram, ground);

    if (has_come)
    {
        ground->now_us = clock_us(); /* reading has taken time */
    }
    else
    {
        ground->empty_us = ground->now_us;
    }
    const uint64_t due_us = SKY_Ground_Run(&ground->core, ground->now_us, timers_may_act(ground));

    SKYC_Socket_Flush(ground->sock);
    const bool is_refused = refuse_too_large(ground);

    deliver_ended(ground);
    return has_come || is_refused ? 0 : due_us;
}

/* Sleep until something happens, at most until @p due_us. With `list`. @return false: the ground is to be closed */
static bool sleep_until(SKYC_Ground_t *ground, uint64_t due_us)
{
    const uint64_t now_us  = clock_us();
    const bool     goes_on = !ground->is_closed && !ground->is_gone;

    ground->is_gone = ground->is_gone || SKYC_Socket_IsGone(ground->sock);
    ground->sleeps  = goes_on && !ground->is_gone && due_us > now_us && ground->submitted.first == NULL && !ground->has_cancels;
    if (ground->sleeps)
    {
        (void)pthread_mutex_unlock(&ground->list);
        SKYC_Socket_Wait(ground->sock, due_us - now_us < UINT32_MAX ? due_us - now_us : UINT32_MAX);
        (void)pthread_mutex_lock(&ground->list);
        ground->sleeps = false;
    }
    return goes_on;
}

/* End all that runs: the core, which is never called again, uses its memory no more. In a turn. */
static void end_all(SKYC_Ground_t *ground)
{
    SKYC_Op_t *op;

    deliver_ended(ground);
    ground->is_over = true;
    (void)pthread_mutex_lock(&ground->list);
    while ((op = SKYC_List_Take(&ground->submitted)) != NULL || (op = SKYC_List_Take(&ground->running)) != NULL)
    {
        op->core.status = SKY_STATUS_CANCELLED;
        op->words       = ground->words;
        SKYC_Box_Deliver(op);
    }
    (void)pthread_mutex_unlock(&ground->list);
}

static void *run(void *argument)
{
    SKYC_Ground_t *ground = argument;
    uint64_t       due_us;

    (void)pthread_mutex_lock(&ground->list);
    do
    {
        SKYC_Ground_TakeTurn(ground);
        take_submitted(ground);
        (void)pthread_mutex_unlock(&ground->list);
        due_us = go_round(ground);
        SKYC_Ground_EndTurn(ground);
    } while (sleep_until(ground, due_us));
    SKYC_Ground_TakeTurn(ground);
    (void)pthread_mutex_unlock(&ground->list);
    end_all(ground);
    SKYC_Ground_EndTurn(ground);
    (void)pthread_mutex_unlock(&ground->list);
    return NULL;
}

/* All signals are blocked in it. */
int SKYC_Ground_StartThread(SKYC_Ground_t *ground)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&ground->thread, NULL, run, ground);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    ground->has_thread = error == 0;
    return error == EAGAIN ? SKYC_NO_THREAD : error; /* a full list is EAGAIN */
}
