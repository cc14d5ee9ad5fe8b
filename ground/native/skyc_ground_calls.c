/**
 * @file
 * Calls of other threads: who is inside, operations that they submit, boxes in which these end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "skyc_ground_priv.h"

#define NS_PER_US UINT64_C(1000)
#define US_PER_S  UINT64_C(1000000)

/* ---- lists and times ---------------------------------------------------------------------------------------------------- */

uint64_t SKYC_Ground_ClockUs(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

void SKYC_Ground_After(uint32_t timeout_us, struct timespec *until)
{
    const uint64_t until_us = SKYC_Ground_ClockUs() + timeout_us;

    until->tv_sec  = (time_t)(until_us / US_PER_S);
    until->tv_nsec = (long)(until_us % US_PER_S * NS_PER_US);
}

void SKYC_List_Append(SKYC_List_t *list, SKYC_Op_t *op)
{
    op->next     = NULL;
    op->previous = list->last;
    if (list->last == NULL)
    {
        list->first = op;
    }
    else
    {
        list->last->next = op;
    }
    list->last = op;
}

void SKYC_List_Remove(SKYC_List_t *list, SKYC_Op_t *op)
{
    if (op->previous == NULL)
    {
        list->first = op->next;
    }
    else
    {
        op->previous->next = op->next;
    }
    if (op->next == NULL)
    {
        list->last = op->previous;
    }
    else
    {
        op->next->previous = op->previous;
    }
    op->next     = NULL;
    op->previous = NULL;
}

SKYC_Op_t *SKYC_List_Take(SKYC_List_t *list)
{
    SKYC_Op_t *op = list->first;

    if (op != NULL)
    {
        SKYC_List_Remove(list, op);
    }
    return op;
}

void SKYC_Ground_BeginCondition(pthread_cond_t *condition)
{
    pthread_condattr_t by_clock;

    (void)pthread_condattr_init(&by_clock);
    (void)pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &by_clock);
    (void)pthread_condattr_destroy(&by_clock);
}

/* ---- who is inside ------------------------------------------------------------------------------------------------------ */

static uint32_t forks; /* of this process's forebears, from the first ground on: a look at it is no system call, as getpid is */
static int      forks_error;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void note_fork(void)
{
    ++forks;
}

static void count_forks(void)
{
    forks_error = pthread_atfork(NULL, NULL, note_fork);
}

int SKYC_Ground_CountForks(uint32_t *number)
{
    (void)pthread_once(&forks_once, count_forks);
    *number = forks;
    return forks_error;
}

bool SKYC_Ground_IsChild(const SKYC_Ground_t *ground)
{
    return forks != ground->forks;
}

int SKYC_Ground_Enter(SKYC_Ground_t *ground)
{
    if (SKYC_Ground_IsChild(ground))
    {
        return ECHILD;
    }
    (void)pthread_mutex_lock(&ground->list);
    if (ground->is_closed)
    {
        (void)pthread_mutex_unlock(&ground->list);
        return ESHUTDOWN;
    }
    ++ground->inside;
    return 0;
}

void SKYC_Ground_Leave(SKYC_Ground_t *ground)
{
    --ground->inside;
    if (ground->inside == 0)
    {
        (void)pthread_cond_broadcast(&ground->left);
    }
    (void)pthread_mutex_unlock(&ground->list);
}

void SKYC_Ground_TakeTurn(SKYC_Ground_t *ground)
{
    const uint32_t ours = ground->asked++;

    while (ground->turn != ours)
    {
        (void)pthread_cond_wait(&ground->turns, &ground->list);
    }
}

void SKYC_Ground_EndTurn(SKYC_Ground_t *ground)
{
    ++ground->turn;
    if (ground->turn != ground->asked)
    {
        (void)pthread_cond_broadcast(&ground->turns); /* each waits for a number of its own */
    }
}

int SKYC_Ground_EnterTurn(SKYC_Ground_t *ground)
{
    int error = SKYC_Ground_Enter(ground);

    if (error == 0)
    {
        SKYC_Ground_TakeTurn(ground);
        error = ground->is_gone ? EBADF : ESHUTDOWN;
        (void)pthread_mutex_unlock(&ground->list);
        if (!ground->is_over)
        {
            return 0;
        }
        SKYC_Ground_LeaveTurn(ground); /* its questions are their owners' again */
    }
    return error;
}

void SKYC_Ground_LeaveTurn(SKYC_Ground_t *ground)
{
    (void)pthread_mutex_lock(&ground->list);
    SKYC_Ground_EndTurn(ground);
    SKYC_Ground_Leave(ground);
}

void SKYC_Ground_Kick(SKYC_Ground_t *ground)
{
    if (ground->sleeps)
    {
        ground->sleeps = false;
        SKYC_Socket_Wake(ground->sock);
    }
    else if (!ground->is_led)
    {
        ground->is_called = true;
        (void)pthread_cond_signal(&ground->rest);
    }
}

/* ---- operations --------------------------------------------------------------------------------------------------------- */

#define SERVED_A_SHARE 3u /* satellites that are asked for a share, about; of others nothing is told */

/* Memory of an operation: bytes of each part, which lie in this order, as their alignments fall. */
typedef struct
{
    uint64_t rows, held, served, holders, parity, have;
} own_t;

static own_t own_of(const SKYC_Ground_t *ground, const SKYC_Op_t *op)
{
    const SKY_Stripe_t *stripe = &op->core.facts.stripe;
    const bool          moves  = op->core.kind == SKY_GROUND_GET || op->core.kind == SKY_GROUND_PUT;
    const uint64_t      rows   = stripe->code_m > 0 ? SKY_Stripe_Rows(stripe) : 0;
    const uint32_t      shares = stripe->chunk_total < ground->config.servers ? stripe->chunk_total : ground->config.servers;

    return (own_t){.rows    = moves ? rows * sizeof(SKY_HostRow_t) : 0,
                   .held    = moves ? 0 : rows * sizeof(SKY_HeldRow_t),
                   .served  = moves && op->wants_served ? (uint64_t)SERVED_A_SHARE * shares * sizeof(SKY_HostServed_t) : 0,
                   .holders = op->wants_holders ? ground->config.servers * sizeof(SKY_Addr_t) : 0,
                   .parity  = moves ? SKY_Stripe_ParityBytes(stripe) : 0,
                   .have    = moves ? ((uint64_t)stripe->chunk_total + 7) / 8 : 0};
}

/* Give an operation its own memory. @return 0, EINVAL: its block is none; or ENOMEM */
static int give_own(const SKYC_Ground_t *ground, SKYC_Op_t *op)
{
    SKY_GroundOp_t *core  = &op->core;
    const bool      moves = core->kind == SKY_GROUND_GET || core->kind == SKY_GROUND_PUT;

    if (!moves && core->kind != SKY_GROUND_CHECK && core->kind != SKY_GROUND_PREFETCH)
    {
        return 0;
    }
    if (!SKY_Stripe_Check(&core->facts.stripe) || (moves && core->data == NULL))
    {
        return EINVAL;
    }
    const own_t    own   = own_of(ground, op);
    const uint64_t front = own.rows + own.held + own.served + own.holders;
    uint8_t       *at    = malloc(front + own.parity + own.have + 1u); /* one byte more, so that it is never none */

    if (at == NULL)
    {
        return ENOMEM;
    }
    op->own           = at;
    core->served      = own.served > 0 ? (SKY_HostServed_t *)(void *)at : NULL; /* its alignment is the largest */
    core->served_room = (uint32_t)(own.served / sizeof(SKY_HostServed_t));
    core->rows        = own.rows > 0 ? (SKY_HostRow_t *)(void *)(at + own.served) : NULL;
    core->held_rows   = own.held > 0 ? (SKY_HeldRow_t *)(void *)(at + own.served) : NULL;
    core->holders     = own.holders > 0 ? (SKY_Addr_t *)(void *)(at + own.served + own.rows + own.held) : core->holders;
    core->parity      = own.parity > 0 ? at + front : NULL;
    core->have        = own.have > 0 ? at + front + own.parity : NULL;
    if (own.holders > 0)
    {
        (void)memset(core->holders, 0, own.holders);
    }
    return 0;
}

void SKYC_Op_End(SKYC_Op_t *op)
{
    free(op->own);
    op->own = NULL;
}

/* Put operations into the list. With `list`. @return as SKYC_Ground_Submit */
static int submit(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count)
{
    int error = 0;

    if (ground->is_gone)
    {
        return EBADF;
    }
    if (count > ground->config.queued - ground->taken_in)
    {
        return EAGAIN;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        if (!ground->has_sky && ops[i]->core.kind != SKY_GROUND_EXCHANGE)
        {
            return EINVAL;
        }
    }
    if (!ground->has_thread)
    {
        error = SKYC_Ground_StartThread(ground);
    }
    if (error == 0)
    {
        ground->taken_in += count;
        for (uint32_t i = 0; i < count; ++i)
        {
            ops[i]->core.status  = SKY_STATUS_RUNNING;
            ops[i]->is_cancelled = false;
            ops[i]->box          = box;
            ops[i]->state        = SKYC_OP_RUNS;
            SKYC_List_Append(&ground->submitted, ops[i]);
        }
    }
    return error;
}

/* Enter a function with operations, and put them into the list. @return as SKYC_Ground_Submit: 0 with `list`, an error without */
static int enter_with(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count)
{
    uint32_t given = 0;
    int      error = 0;

    while (error == 0 && given < count)
    {
        error = give_own(ground, ops[given]);
        given += error == 0 ? 1u : 0u;
    }
    if (error == 0)
    {
        error = SKYC_Ground_Enter(ground);
    }
    else
    {
        error = SKYC_Ground_IsChild(ground) ? ECHILD : error;
    }
    if (error == 0)
    {
        error = submit(ground, box, ops, count);
        if (error != 0)
        {
            SKYC_Ground_Leave(ground);
        }
    }
    for (uint32_t i = 0; error != 0 && i < given; ++i)
    {
        SKYC_Op_End(ops[i]);
    }
    return error;
}

int SKYC_Ground_Submit(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count)
{
    const int error = enter_with(ground, box, ops, count);

    if (error == 0)
    {
        SKYC_Ground_Kick(ground);
        SKYC_Ground_Leave(ground);
    }
    return error;
}

/* Wait until so many operations have ended in a box, or a time. With `list`. @return number of them */
static uint32_t await(SKYC_Box_t *box, uint32_t count, const struct timespec *until)
{
    while (box->count < count && pthread_cond_timedwait(&box->more, &box->ground->list, until) == 0)
    {
        /* look again */
    }
    return box->count;
}

int SKYC_Ground_Do(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *const *ops, uint32_t count, uint32_t timeout_us,
                   uint32_t *ended)
{
    const int       error = enter_with(ground, box, ops, count);
    struct timespec until;

    if (error == 0)
    {
        if (ground->is_led || ground->is_called)
        {
            SKYC_Ground_Kick(ground);
            SKYC_Ground_After(timeout_us, &until);
            (void)await(box, count, &until);
        }
        else
        {
            SKYC_Ground_Lead(ground, box, count, SKYC_Ground_ClockUs() + timeout_us);
        }
        *ended = box->count;
        SKYC_Ground_Leave(ground);
    }
    return error;
}

int SKYC_Ground_Error(SKYC_Ground_t *ground)
{
    int error = SKYC_Ground_Enter(ground);

    if (error == 0)
    {
        error = ground->is_gone ? EBADF : 0;
        SKYC_Ground_Leave(ground);
    }
    return error;
}

void SKYC_Ground_Cancel(SKYC_Ground_t *ground, SKYC_Op_t *const *ops, uint32_t count)
{
    if (SKYC_Ground_Enter(ground) == 0)
    {
        for (uint32_t i = 0; i < count; ++i)
        {
            if (ops[i]->state == SKYC_OP_RUNS)
            {
                ops[i]->is_cancelled = true;
                ground->has_cancels  = true;
            }
        }
        if (ground->has_cancels)
        {
            SKYC_Ground_Kick(ground);
        }
        SKYC_Ground_Leave(ground);
    }
}

/* ---- boxes -------------------------------------------------------------------------------------------------------------- */

void SKYC_Ground_Drop(SKYC_Ground_t *ground)
{
    if (SKYC_Ground_IsChild(ground))
    {
        return;
    }
    (void)pthread_mutex_lock(&ground->list);
    --ground->references;
    const bool is_last = ground->references == 0;

    (void)pthread_mutex_unlock(&ground->list);
    if (is_last)
    {
        (void)pthread_mutex_destroy(&ground->list);
        (void)pthread_cond_destroy(&ground->left);
        (void)pthread_cond_destroy(&ground->told);
        (void)pthread_cond_destroy(&ground->turns);
        (void)pthread_cond_destroy(&ground->rest);
        free(ground);
    }
}

void SKYC_Box_Deliver(SKYC_Op_t *op)
{
    SKYC_Box_t    *box = op->box;
    const uint64_t one = 1;

    op->state = SKYC_OP_ENDED;
    SKYC_List_Append(&box->ended, op);
    ++box->count;
    if (box->fd >= 0 && box->count == 1)
    {
        (void)!write(box->fd, &one, sizeof(one)); /* it was empty, so this is taken */
    }
    (void)pthread_cond_broadcast(&box->more);
}

SKYC_Box_t *SKYC_Box_New(SKYC_Ground_t *ground, bool has_descriptor, int *error)
{
    SKYC_Box_t *box = calloc(1, sizeof(*box));

    if (box == NULL)
    {
        *error = ENOMEM;
        return NULL;
    }
    box->ground = ground;
    box->fd     = has_descriptor ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    *error      = has_descriptor && box->fd < 0 ? errno : SKYC_Ground_Enter(ground);
    if (*error != 0)
    {
        if (box->fd >= 0)
        {
            (void)close(box->fd);
        }
        free(box);
        return NULL;
    }
    ++ground->references;
    SKYC_Ground_BeginCondition(&box->more);
    SKYC_Ground_Leave(ground);
    return box;
}

void SKYC_Box_Free(SKYC_Box_t *box)
{
    if (box == NULL)
    {
        return;
    }
    SKYC_Ground_t *ground = box->ground;

    if (box->fd >= 0)
    {
        (void)close(box->fd);
    }
    if (!SKYC_Ground_IsChild(ground))
    {
        (void)pthread_cond_destroy(&box->more);
    }
    free(box);
    SKYC_Ground_Drop(ground);
}

int SKYC_Box_Descriptor(const SKYC_Box_t *box)
{
    return box->fd;
}

uint32_t SKYC_Box_Await(SKYC_Box_t *box, uint32_t count, uint32_t timeout_us)
{
    SKYC_Ground_t  *ground = box->ground;
    struct timespec until;

    if (SKYC_Ground_IsChild(ground))
    {
        return 0;
    }
    SKYC_Ground_After(timeout_us, &until);
    (void)pthread_mutex_lock(&ground->list);
    const uint32_t ended = await(box, count, &until);

    (void)pthread_mutex_unlock(&ground->list);
    return ended;
}

SKYC_Op_t *SKYC_Box_Take(SKYC_Box_t *box)
{
    SKYC_Ground_t *ground = box->ground;
    SKYC_Op_t     *op     = NULL;
    uint64_t       count;

    if (SKYC_Ground_IsChild(ground))
    {
        return NULL;
    }
    (void)pthread_mutex_lock(&ground->list);
    op = SKYC_List_Take(&box->ended);
    if (op != NULL)
    {
        --box->count;
        --ground->taken_in;
        op->state = SKYC_OP_FREE;
        if (box->fd >= 0 && box->count == 0)
        {
            (void)!read(box->fd, &count, sizeof(count)); /* there was something, so this takes it */
        }
    }
    (void)pthread_mutex_unlock(&ground->list);
    return op;
}
