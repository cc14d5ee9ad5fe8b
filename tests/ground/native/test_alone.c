/**
 * @file
 * A caller that finds nothing else to do lets the ground go itself, whoever else submits, cancels, closes or interrupts meanwhile.
 */
#define _GNU_SOURCE
#include "grounds.h"

#include <errno.h>
#include <signal.h>

#define PINGS    50u
#define CALLERS  8u
#define A_CALLER 100u
#define CLOSINGS 50u
#define SHORT_US 20000u
#define LOOK_US  1000u
#define TRIES    20u

/* A thread that has one ping done. */
typedef struct
{
    SKYC_Ground_t     *ground;
    SKYC_Box_t        *box;
    SKYC_Op_t          op;
    SKY_HostQuestion_t request;
    uint32_t           timeout_us;
    int                error;
    uint32_t           ended;
    bool               is_back; /* atomic */
    pthread_t          thread;
} caller_t;

static uint32_t mute; /* number of the satellite, from 1, of which no response comes through, atomic */

static void before_responses(uint32_t satellite)
{
    (void)satellite;
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    (void)response;
    return __atomic_load_n(&mute, __ATOMIC_RELAXED) != satellite + 1u;
}

static void set_mute(uint32_t satellite)
{
    __atomic_store_n(&mute, satellite + 1u, __ATOMIC_RELAXED);
}

static void unmute(void)
{
    __atomic_store_n(&mute, 0, __ATOMIC_RELAXED);
}

static SKYC_Ground_t *open_ground(void)
{
    const SKYC_GroundConfig_t config = ground_config(4, 64, 500);
    const SKYC_Config_t       client = {0};

    return open_with(&config, &client);
}

/* Have a ping done. @return its status */
static uint32_t ping(SKYC_Ground_t *ground, SKYC_Box_t *box, uint32_t satellite)
{
    SKY_HostQuestion_t request;
    SKYC_Op_t          one   = ping_of(&request, satellite);
    SKYC_Op_t *const   op    = &one;
    uint32_t           ended = 0;

    CHECK_EQ(SKYC_Ground_Do(ground, box, &op, 1, WAIT_US, &ended), 0);
    CHECK(ended == 1 && SKYC_Box_Take(box) == op);
    return op->core.status;
}

static void *call(void *argument)
{
    caller_t        *caller = argument;
    SKYC_Op_t *const op     = &caller->op;

    caller->error = SKYC_Ground_Do(caller->ground, caller->box, &op, 1, caller->timeout_us, &caller->ended);
    __atomic_store_n(&caller->is_back, true, __ATOMIC_RELEASE);
    return NULL;
}

static SKYC_Counters_t counters_of(SKYC_Ground_t *ground)
{
    SKYC_Counters_t counters;

    CHECK_EQ(SKYC_Ground_Counters(ground, &counters), 0);
    return counters;
}

/* Let a thread have a ping done that gets no answer, and wait until it has asked: it is alone. */
static void begin(caller_t *caller, SKYC_Ground_t *ground, uint32_t timeout_us)
{
    *caller    = (caller_t){.ground = ground, .box = new_box(ground, false), .timeout_us = timeout_us};
    caller->op = ping_of(&caller->request, 0);
    set_mute(0);
    CHECK(pthread_create(&caller->thread, NULL, call, caller) == 0);
    for (uint32_t i = 0; i < WAIT_US / LOOK_US && counters_of(ground).tx_calls == 0; ++i)
    {
        (void)usleep(LOOK_US);
    }
}

/* Wait for the end of what a thread has begun. @return its status */
static uint32_t end(caller_t *caller, uint32_t ended)
{
    (void)pthread_join(caller->thread, NULL);
    CHECK(caller->error == 0 && caller->ended == ended);
    unmute();
    CHECK_EQ(SKYC_Box_Await(caller->box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(caller->box) == &caller->op);
    SKYC_Box_Free(caller->box);
    return caller->op.core.status;
}

/* Return true if a number of pings cost a call to send and one to receive each. */
static bool is_lean(SKYC_Ground_t *ground, SKYC_Box_t *box)
{
    const SKYC_Counters_t before = counters_of(ground);

    for (uint32_t i = 0; i < PINGS; ++i)
    {
        CHECK_EQ(ping(ground, box, 1), SKY_STATUS_DONE);
    }
    const SKYC_Counters_t after = counters_of(ground);

    return after.tx_calls - before.tx_calls == PINGS && after.rx_calls - before.rx_calls == PINGS;
}

static void test_a_caller_alone_sends_receives_and_no_more(void)
{
    SKYC_Ground_t *ground = open_ground();
    SKYC_Box_t    *box    = new_box(ground, false);
    bool           is     = false;

    CHECK_EQ(ping(ground, box, 1), SKY_STATUS_DONE);
    for (uint32_t i = 0; i < TRIES && !is; ++i)
    {
        is = is_lean(ground, box); /* on a busy machine an answer may be late, so that it is asked for again */
    }
    CHECK(is);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_nobody_waits_for_a_caller_that_sleeps(void)
{
    SKYC_Ground_t *ground = open_ground();
    SKYC_Box_t    *box    = new_box(ground, false);
    caller_t       caller;

    begin(&caller, ground, WAIT_US);
    CHECK_EQ(ping(ground, box, 1), SKY_STATUS_DONE);
    CHECK_EQ(SKYC_Ground_Expect(ground, (SKY_Addr_t){1, 2}, 1000), 0);
    unmute();
    CHECK_EQ(end(&caller, 1), SKY_STATUS_DONE);
    CHECK_EQ(ping(ground, box, 1), SKY_STATUS_DONE);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_what_others_began_goes_on_after_the_caller(void)
{
    SKYC_Ground_t     *ground = open_ground();
    SKYC_Box_t        *box    = new_box(ground, false);
    SKY_HostQuestion_t request;
    SKYC_Op_t          one = ping_of(&request, 0);
    SKYC_Op_t *const   op  = &one;
    caller_t           caller;

    begin(&caller, ground, WAIT_US);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &op, 1), 0);
    SKYC_Op_t *const called = &caller.op;

    SKYC_Ground_Cancel(ground, &called, 1);
    (void)pthread_join(caller.thread, NULL);
    CHECK(caller.ended == 1 && SKYC_Box_Take(caller.box) == &caller.op && caller.op.core.status == SKY_STATUS_CANCELLED);
    CHECK_EQ(SKYC_Box_Await(box, 1, 0), 0);
    unmute();
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == op && op->core.status == SKY_STATUS_DONE);
    SKYC_Box_Free(caller.box);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_the_thread_goes_on_when_the_time_is_over(void)
{
    SKYC_Ground_t *ground = open_ground();
    caller_t       caller;

    begin(&caller, ground, SHORT_US);
    CHECK_EQ(end(&caller, 0), SKY_STATUS_DONE);
    SKYC_Ground_Free(ground);
}

static void on_signal(int number)
{
    (void)number;
}

static void test_a_signal_ends_the_wait(void)
{
    SKYC_Ground_t         *ground = open_ground();
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    caller_t               caller;

    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    begin(&caller, ground, WAIT_US);
    for (uint32_t i = 0; i < WAIT_US / LOOK_US && !__atomic_load_n(&caller.is_back, __ATOMIC_ACQUIRE); ++i)
    {
        CHECK(pthread_kill(caller.thread, SIGUSR1) == 0); /* the first one may come before it sleeps */
        (void)usleep(LOOK_US);
    }
    CHECK_EQ(end(&caller, 0), SKY_STATUS_DONE);
    SKYC_Ground_Free(ground);
}

static void test_closing_ends_what_a_caller_waits_for(void)
{
    SKYC_Ground_t *ground = open_ground();
    caller_t       caller;

    begin(&caller, ground, WAIT_US);
    SKYC_Ground_Close(ground);
    CHECK_EQ(end(&caller, 0), SKY_STATUS_CANCELLED);
    caller.ended = 0;
    CHECK_EQ(SKYC_Ground_Do(ground, NULL, NULL, 0, WAIT_US, &caller.ended), ESHUTDOWN);
    SKYC_Ground_Free(ground);
}

static void *call_often(void *argument)
{
    SKYC_Ground_t *ground = argument;
    SKYC_Box_t    *box    = new_box(ground, false);

    for (uint32_t i = 0; i < A_CALLER; ++i)
    {
        CHECK_EQ(ping(ground, box, i % SATELLITES), SKY_STATUS_DONE);
        if (i % 4u == 0u)
        {
            (void)usleep(100); /* others are alone meanwhile */
        }
    }
    SKYC_Box_Free(box);
    return NULL;
}

static void test_callers_take_turns(void)
{
    for (uint32_t count = 2; count <= CALLERS; count *= 2u)
    {
        SKYC_Ground_t *ground = open_ground();
        pthread_t      callers[CALLERS];

        for (uint32_t i = 0; i < count; ++i)
        {
            CHECK(pthread_create(&callers[i], NULL, call_often, ground) == 0);
        }
        for (uint32_t i = 0; i < count; ++i)
        {
            (void)pthread_join(callers[i], NULL);
        }
        SKYC_Ground_Free(ground);
    }
}

static void *call_to_the_end(void *argument)
{
    SKYC_Ground_t     *ground = argument;
    int                error  = 0;
    SKYC_Box_t        *box    = SKYC_Box_New(ground, false, &error);
    SKY_HostQuestion_t request;

    while (error == 0)
    {
        SKYC_Op_t        one   = ping_of(&request, 1);
        SKYC_Op_t *const op    = &one;
        uint32_t         ended = 0;

        error = SKYC_Ground_Do(ground, box, &op, 1, WAIT_US, &ended);
        CHECK(error != 0 || SKYC_Box_Await(box, 1, WAIT_US) == 1);
        CHECK(error != 0 || SKYC_Box_Take(box) == op);
    }
    CHECK_EQ(error, ESHUTDOWN);
    SKYC_Box_Free(box);
    return NULL;
}

static void test_closing_at_any_time(void)
{
    for (uint32_t round = 0; round < CLOSINGS; ++round)
    {
        SKYC_Ground_t *ground = open_ground();
        pthread_t      callers[2];

        for (uint32_t i = 0; i < 1u + round % 2u; ++i)
        {
            CHECK(pthread_create(&callers[i], NULL, call_to_the_end, ground) == 0);
        }
        (void)usleep(50u * round);
        SKYC_Ground_Close(ground);
        for (uint32_t i = 0; i < 1u + round % 2u; ++i)
        {
            (void)pthread_join(callers[i], NULL);
        }
        SKYC_Ground_Free(ground);
    }
}

int main(void)
{
    const pthread_t flight = launch();

    RUN(test_a_caller_alone_sends_receives_and_no_more);
    RUN(test_nobody_waits_for_a_caller_that_sleeps);
    RUN(test_what_others_began_goes_on_after_the_caller);
    RUN(test_the_thread_goes_on_when_the_time_is_over);
    RUN(test_a_signal_ends_the_wait);
    RUN(test_closing_ends_what_a_caller_waits_for);
    RUN(test_callers_take_turns);
    RUN(test_closing_at_any_time);
    land(flight);
    return CHECK_RESULT();
}
