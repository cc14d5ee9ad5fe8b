/**
 * @file
 * Who leads a ground, its thread or a caller: takes what was submitted, reads the socket, lets the core run, and delivers what has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "sky_endpoint.h"
#include "skyc_ground_priv.h"

#define BACKLOG_MAX_US 100000u
#define READING_US     1000u /* if reading has taken longer, this thread was held up, and more may have come */

static void on_datagram(void *context, SKYC_Endpoint_t from, const uint8_t *data, size_t len)
{
    SKYC_Ground_t *ground = context;

    SKY_Ground_Receive(&ground->core, ground->now_us, SKY_Endpoint_Of(from.ipv4, from.port), data, len);
}

/* ---- ends --------------------------------------------------------------------------------------------------------------- */

/* Deliver all that has ended. In a turn, with `list`: whoever waits for it finds that free as soon as it wakes. */
static void deliver_ended(SKYC_Ground_t *ground)
{
    SKY_GroundOp_t *core = SKY_Ground_Ended(&ground->core);

    if (core != NULL)
    {
        ++ground->words.number;
        ground->words.losses    = ground->core.reach.losses;
        ground->words.lost      = ground->core.reach.lost_count;
        ground->words.is_silent = ground->core.reach.pause_us > 0;
        ground->words.is_blind  = ground->core.is_blind;
    }
    for (; core != NULL; core = SKY_Ground_Ended(&ground->core))
    {
        SKYC_Op_t *op = (SKYC_Op_t *)(void *)core; /* `core` comes first in it */

        op->words = ground->words;
        SKYC_List_Remove(&ground->running, op);
        SKYC_Box_Deliver(op);
    }
}

/* ---- rounds ------------------------------------------------------------------------------------------------------------- */

/* Take what was submitted, and call back what is to be. In a turn, with `list`. */
static void take_submitted(SKYC_Ground_t *ground)
{
    SKYC_Op_t *op;

    ground->now_us = SKYC_Ground_ClockUs();
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

/* Read, run and send once. In a turn. @param reads  false: nothing can be late @return time at which it is due next; the past: at once */
static uint64_t go_round(SKYC_Ground_t *ground, bool reads)
{
    const uint64_t began_us = ground->now_us;
    const uint32_t messages = reads ? SKYC_Socket_Receive(ground->sock, on_datagram, ground) : 0;

    if (messages > 0)
    {
        ground->now_us = SKYC_Ground_ClockUs(); /* reading has taken time */
    }
    if (messages < SKYC_RX_MESSAGES && ground->now_us - began_us < READING_US)
    {
        ground->empty_us = ground->now_us;
    }
    const uint64_t due_us = SKY_Ground_Run(&ground->core, ground->now_us, timers_may_act(ground));

    SKYC_Socket_Flush(ground->sock);
    return refuse_too_large(ground) || messages == SKYC_RX_MESSAGES ? 0 : due_us;
}

/* Return true if nothing runs, and nothing is expected. With `list`. */
static bool rests(const SKYC_Ground_t *ground, uint64_t due_us)
{
    return due_us == UINT64_MAX && ground->running.first == NULL && ground->submitted.first == NULL && !ground->has_cancels &&
           ground->telemetry == NULL;
}

/* Sleep until something happens, at most until @p due_us, unless there is something to do. With `list`. @return false: a signal has come */
static bool sleep_until(SKYC_Ground_t *ground, uint64_t due_us)
{
    const uint64_t now_us = SKYC_Ground_ClockUs();
    bool           slept  = true;

    if (due_us > now_us && ground->submitted.first == NULL && !ground->has_cancels)
    {
        ground->sleeps = true;
        (void)pthread_mutex_unlock(&ground->list);
        slept = SKYC_Socket_Wait(ground->sock, due_us - now_us < UINT32_MAX ? due_us - now_us : UINT32_MAX);
        (void)pthread_mutex_lock(&ground->list);
        ground->sleeps = false;
    }
    return slept;
}

/* Lead until something ends it. @param box  NULL: the thread leads, until there is nothing to do */
void SKYC_Ground_Lead(SKYC_Ground_t *ground, const SKYC_Box_t *box, uint32_t count, uint64_t until_us)
{
    bool     reads = ground->running.first != NULL || ground->submitted.first == NULL; /* else nothing is expected yet */
    uint64_t due_us;
    bool     goes_on;

    ground->is_led = true;
    do
    {
        SKYC_Ground_TakeTurn(ground);
        take_submitted(ground);
        (void)pthread_mutex_unlock(&ground->list);
        due_us = go_round(ground, reads);
        reads  = true;
        (void)pthread_mutex_lock(&ground->list);
        deliver_ended(ground);
        SKYC_Ground_EndTurn(ground);
        ground->is_gone = ground->is_gone || SKYC_Socket_IsGone(ground->sock);
        goes_on         = !ground->is_closed && !ground->is_gone && (box == NULL ? !rests(ground, due_us) : box->count < count);
        if (goes_on)
        {
            goes_on = sleep_until(ground, due_us < until_us ? due_us : until_us) && SKYC_Ground_ClockUs() < until_us;
        }
    } while (goes_on);
    ground->is_led = false;
    if (ground->is_closed || ground->is_gone || !rests(ground, due_us))
    {
        SKYC_Ground_Kick(ground);
    }
}

/* ---- the thread --------------------------------------------------------------------------------------------------------- */

/* End all that runs: the core, which is never called again, uses its memory no more. In a turn. */
static void end_all(SKYC_Ground_t *ground)
{
    SKYC_Op_t *op;

    (void)pthread_mutex_lock(&ground->list);
    deliver_ended(ground);
    ground->is_over = true;
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

    (void)pthread_mutex_lock(&ground->list);
    while (!ground->is_closed && !ground->is_gone)
    {
        if (ground->is_led || !ground->is_called)
        {
            (void)pthread_cond_wait(&ground->rest, &ground->list);
        }
        else
        {
            ground->is_called = false;
            SKYC_Ground_Lead(ground, NULL, 0, UINT64_MAX);
        }
    }
    while (ground->is_led)
    {
        (void)pthread_cond_wait(&ground->rest, &ground->list);
    }
    SKYC_Ground_TakeTurn(ground);
    (void)pthread_mutex_unlock(&ground->list);
    end_all(ground);
    (void)pthread_mutex_lock(&ground->list);
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
