/**
 * @file
 * A ground with its thread, over real sockets: operations end in their boxes, whoever submits, cancels, closes or forks.
 */
#define _GNU_SOURCE
#include "grounds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#define BYTES       2000u
#define CHUNK       500u
#define CALLERS     8u
#define A_CALLER    50u
#define CLOSINGS    100u
#define LOOK_US     1000u
#define DESCRIPTORS 64 /* more than this program has */

typedef struct
{
    SKYC_Op_t          op;
    SKY_HostQuestion_t request;
    uint8_t            data[BYTES];
} run_t;

static bool is_mute;     /* atomic: no response comes through, */
static bool keeps_chunk; /* or none that brings a chunk */

static void before_responses(uint32_t satellite)
{
    (void)satellite;
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    const bool brings = response->pkt.op == SKY_OP_GET && response->pkt.status == SKY_STATUS_OK;

    (void)satellite;
    return !__atomic_load_n(&is_mute, __ATOMIC_RELAXED) && !(brings && __atomic_load_n(&keeps_chunk, __ATOMIC_RELAXED));
}

static SKYC_Ground_t *open_ground(uint32_t operations, uint32_t queued)
{
    const SKYC_GroundConfig_t config = ground_config(operations, queued, CHUNK);
    const SKYC_Config_t       client = {0};

    return open_with(&config, &client);
}

static void set_sky(SKYC_Ground_t *ground)
{
    const SKY_ScheduleRow_t row  = {0, {1, 1}};
    const SKYC_SkyRows_t    rows = {SKY_LAYOUT_ROTATION_HOP, &row, 1, 0};
    const SKYC_SkyRows_t    none = {SKY_LAYOUT_ROTATION_HOP, &row, 0, 0};
    SKY_GroundSky_t         sky  = {.changes = 1, .lazy_purge = true};

    CHECK_EQ(SKYC_Ground_SetSky(ground, &sky, &none), EINVAL);
    CHECK_EQ(SKYC_Ground_SetSky(ground, &sky, &rows), 0);
    sky.parity = SATELLITES; /* no more servers than that */
    CHECK_EQ(SKYC_Ground_SetSky(ground, &sky, &rows), EINVAL);
}

/* A question to a satellite: PING. */
static SKYC_Op_t *ping(run_t *one, uint32_t satellite)
{
    (void)memset(one, 0, sizeof(*one));
    one->op = ping_of(&one->request, satellite);
    return &one->op;
}

static SKYC_Op_t *move(run_t *one, SKY_GroundKind_t kind, uint8_t key)
{
    (void)memset(one, 0, sizeof(*one));
    one->op = move_of(kind, key, one->data, BYTES, CHUNK);
    return &one->op;
}

static void test_operations_end_in_their_box(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          one;
    run_t          other;

    CHECK_EQ(status_of(ground, box, ping(&one, 1)), SKY_STATUS_DONE);
    CHECK(one.request.status == SKY_STATUS_DONE && one.request.answer.status == SKY_STATUS_OK);
    SKYC_Op_t *early = move(&one, SKY_GROUND_PUT, 7);

    CHECK_EQ(SKYC_Ground_Submit(ground, box, &early, 1), EINVAL); /* there is no sky yet */
    set_sky(ground);
    SKYC_Reach_t reach;

    CHECK_EQ(SKYC_Ground_Reach(ground, &reach), 0);
    CHECK(!reach.is_silent && reach.losses == 0 && reach.lost == NULL);
    SKYC_Op_t *put = move(&one, SKY_GROUND_PUT, 7);

    (void)memset(one.data, 0x5a, BYTES);
    CHECK_EQ(status_of(ground, box, put), SKY_STATUS_DONE);
    SKYC_Op_End(put);
    CHECK_EQ(status_of(ground, box, move(&other, SKY_GROUND_GET, 7)), SKY_STATUS_DONE);
    SKYC_Op_End(&other.op);
    CHECK(memcmp(one.data, other.data, BYTES) == 0);
    CHECK_EQ(status_of(ground, box, move(&other, SKY_GROUND_GET, 8)), SKY_STATUS_MISS);
    SKYC_Op_End(&other.op);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_of_operations_of_which_one_is_wrong_none_begins(void)
{
    SKYC_Ground_t  *ground = open_ground(4, 16);
    SKYC_Box_t     *box    = new_box(ground, false);
    run_t           runs[2];
    SKYC_Op_t      *ops[2] = {move(&runs[0], SKY_GROUND_GET, 9), move(&runs[1], SKY_GROUND_GET, 9)};
    SKYC_Counters_t counters;

    set_sky(ground);
    ops[1]->core.facts.stripe.chunk_len = 0;
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), EINVAL);
    ops[1]            = move(&runs[1], SKY_GROUND_GET, 9);
    ops[1]->core.data = NULL; /* an error of the caller */
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), EINVAL);
    CHECK(ops[0]->own == NULL && ops[1]->own == NULL);
    CHECK_EQ(SKYC_Box_Await(box, 1, 1000), 0);
    SKYC_Ground_Counters(ground, &counters);
    CHECK_EQ(counters.tx_packets, 0);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

/* Blocks come in any order, begin while others run, and one can be called back while others go on. */
static void test_no_block_waits_for_another(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          runs[4];
    SKYC_Op_t     *put = move(&runs[0], SKY_GROUND_PUT, 10);

    set_sky(ground);
    (void)memset(runs[0].data, 0x3c, BYTES);
    CHECK_EQ(status_of(ground, box, put), SKY_STATUS_DONE);
    SKYC_Op_End(put);
    __atomic_store_n(&keeps_chunk, true, __ATOMIC_RELAXED);
    SKYC_Op_t *ops[3] = {move(&runs[1], SKY_GROUND_GET, 10), move(&runs[2], SKY_GROUND_GET, 10),
                         move(&runs[3], SKY_GROUND_GET, 11)};

    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), 0);
    CHECK_EQ(SKYC_Box_Await(box, 1, 20000), 0);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &ops[2], 1), 0);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[2] && ops[2]->core.status == SKY_STATUS_MISS);
    SKYC_Ground_Cancel(ground, &ops[0], 1);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[0] && ops[0]->core.status == SKY_STATUS_CANCELLED);
    __atomic_store_n(&keeps_chunk, false, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[1] && ops[1]->core.status == SKY_STATUS_DONE);
    CHECK(memcmp(runs[0].data, runs[2].data, BYTES) == 0);
    for (uint32_t i = 0; i < 3; ++i)
    {
        SKYC_Op_End(ops[i]);
    }
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_numbers_out_of_range_are_refused(void)
{
    static const SKYC_Config_t clients[] = {{.packet_bytes = SKY_RESPONSE_OVERHEAD},
                                            {.packet_bytes = SKY_LIMIT_PACKET_BYTES + 1u},
                                            {.burst = SKY_LIMIT_CHUNK_SET + 1u},
                                            {.window_max = SKY_LIMIT_CHUNK_SET + 1u}};
    const SKYC_GroundConfig_t  sound     = ground_config(4, 16, CHUNK);
    const SKYC_Config_t        client    = {0};
    int                        error     = 0;

    for (uint32_t i = 0; i < sizeof(clients) / sizeof(clients[0]); ++i)
    {
        CHECK(SKYC_Ground_Open(&sound, &clients[i], &error) == NULL && error == EINVAL);
    }
    for (uint32_t i = 0; i < 7; ++i)
    {
        SKYC_GroundConfig_t config = sound;

        config.planes      = i == 0 ? 0 : config.planes;
        config.servers     = i == 1 ? 0 : i == 2 ? SATELLITES + 1u : config.servers;
        config.operations  = i == 3 ? 0 : config.operations;
        config.queued      = i == 4 ? 0 : config.queued;
        config.chunk_bytes = i == 5 ? 0 : config.chunk_bytes;
        config.endpoints   = i == 6 ? NULL : config.endpoints;
        error              = 0;
        CHECK(SKYC_Ground_Open(&config, &client, &error) == NULL && error == EINVAL);
    }
}

static void test_what_satellites_are_asked_is_checked(void)
{
    SKYC_Ground_t *ground = open_ground(1, 1);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          one;
    SKYC_Op_t     *op = ping(&one, 0);

    one.request.place.slot = 9;
    CHECK_EQ(status_of(ground, box, op), SKY_STATUS_REFUSED);
    CHECK_EQ(one.request.sent, 0);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_a_full_list_says_so(void)
{
    SKYC_Ground_t *ground = open_ground(1, 2);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          runs[3];
    SKYC_Op_t     *ops[3] = {ping(&runs[0], 0), ping(&runs[1], 1), ping(&runs[2], 0)};

    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 3), EAGAIN);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), 0);
    CHECK_EQ(SKYC_Box_Await(box, 2, WAIT_US), 2);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &ops[2], 1), EAGAIN); /* they were not taken */
    CHECK(SKYC_Box_Take(box) != NULL);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &ops[2], 1), 0);
    CHECK_EQ(SKYC_Box_Await(box, 2, WAIT_US), 2);
    while (SKYC_Box_Take(box) != NULL)
    {
    }
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_a_loop_of_events_has_a_descriptor(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, true);
    struct pollfd  ready  = {SKYC_Box_Descriptor(box), POLLIN, 0};
    run_t          one;
    SKYC_Op_t     *op = ping(&one, 0);

    CHECK_EQ(poll(&ready, 1, 0), 0);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &op, 1), 0);
    CHECK_EQ(poll(&ready, 1, 10000), 1);
    CHECK(SKYC_Box_Take(box) == op);
    CHECK_EQ(poll(&ready, 1, 0), 0);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_cancel_ends_what_runs_and_what_waits(void)
{
    SKYC_Ground_t *ground = open_ground(1, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          runs[3];
    SKYC_Op_t     *ops[3] = {ping(&runs[0], 0), ping(&runs[1], 1), ping(&runs[2], 0)};

    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 3), 0);
    SKYC_Ground_Cancel(ground, &ops[1], 1);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[1] && ops[1]->core.status == SKY_STATUS_CANCELLED);
    SKYC_Ground_Cancel(ground, ops, 2); /* one has ended */
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[0] && ops[0]->core.status == SKY_STATUS_CANCELLED);
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == ops[2] && ops[2]->core.status == SKY_STATUS_DONE);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_close_ends_all(void)
{
    SKYC_Ground_t *ground = open_ground(1, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          runs[2];
    SKYC_Op_t     *ops[2] = {ping(&runs[0], 0), ping(&runs[1], 1)};
    int            error  = 0;

    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), 0);
    SKYC_Ground_Close(ground);
    SKYC_Ground_Close(ground);
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Box_Await(box, 2, 0), 2);
    for (uint32_t i = 0; i < 2; ++i)
    {
        CHECK(SKYC_Box_Take(box)->core.status == SKY_STATUS_CANCELLED);
    }
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 1), ESHUTDOWN);
    CHECK(SKYC_Box_New(ground, false, &error) == NULL && error == ESHUTDOWN);
    SKYC_Ground_Free(ground);
    SKYC_Box_Free(box);
}

static void *call(void *argument)
{
    SKYC_Ground_t *ground = argument;
    SKYC_Box_t    *box    = new_box(ground, false);
    uint64_t       patience_us;
    run_t          runs[2];

    for (uint32_t i = 0; i < A_CALLER; ++i)
    {
        SKYC_Op_t *ops[2] = {ping(&runs[0], i % SATELLITES), ping(&runs[1], 0)};

        CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), 0);
        CHECK_EQ(SKYC_Box_Await(box, 2, WAIT_US), 2);
        CHECK(SKYC_Box_Take(box) != NULL && SKYC_Box_Take(box) != NULL);
        CHECK(ops[0]->core.status == SKY_STATUS_DONE && ops[1]->core.status == SKY_STATUS_DONE);
        CHECK_EQ(SKYC_Ground_Expect(ground, (SKY_Addr_t){1, 1}, 1000), 0);
        CHECK(SKYC_Ground_PatienceUs(ground, &(SKY_Addr_t){1, 1}, 1, &patience_us) == 0 && patience_us > 0);
    }
    SKYC_Box_Free(box);
    return NULL;
}

static void test_many_callers_at_once(void)
{
    SKYC_Ground_t  *ground = open_ground(4, 64);
    pthread_t       callers[CALLERS];
    SKYC_Counters_t counters;

    for (uint32_t i = 0; i < CALLERS; ++i)
    {
        CHECK(pthread_create(&callers[i], NULL, call, ground) == 0);
    }
    for (uint32_t i = 0; i < CALLERS; ++i)
    {
        (void)pthread_join(callers[i], NULL);
    }
    SKYC_Ground_SetNumber(ground, 77);
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.rx_bad == 0 && counters.tx_failed == 0);
    CHECK(counters.host_number == 77 && counters.tx_packets >= UINT64_C(2) * CALLERS * A_CALLER);
    SKYC_Ground_SetNumber(ground, 0);
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.host_number != 0);
    SKYC_Ground_Free(ground);
}

/* Return true if each function fails with an error, or gives back what it does in a forked child. */
static bool all_fail(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *op, int error)
{
    const SKY_Addr_t satellite = {1, 1};
    uint64_t         us        = 1;
    SKYC_Counters_t  counters;
    SKYC_Reach_t     reach;

    return SKYC_Ground_Error(ground) == error && SKYC_Ground_Submit(ground, box, &op, 1) == error &&
           SKYC_Ground_PatienceUs(ground, &satellite, 1, &us) == error && us == 0 &&
           SKYC_Ground_HurryUs(ground, &satellite, 1, &us) == error && SKYC_Ground_Expect(ground, satellite, 1000) == error &&
           SKYC_Ground_SetNumber(ground, 1) == error && SKYC_Ground_Reach(ground, &reach) == error &&
           SKYC_Ground_Counters(ground, &counters) == error && counters.port == 0 && SKYC_Ground_Listen(ground) == error;
}

static void test_a_forked_child_gets_an_error(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          one;
    SKYC_Op_t     *op = ping(&one, 0);

    CHECK_EQ(status_of(ground, box, op), SKY_STATUS_DONE);
    const pid_t child = fork();

    if (child == 0)
    {
        const bool is_told = all_fail(ground, box, op, ECHILD) && SKYC_Ground_IsChild(ground) &&
                             SKYC_Box_Await(box, 1, WAIT_US) == 0 && SKYC_Box_Take(box) == NULL;

        SKYC_Ground_Cancel(ground, &op, 1);
        SKYC_Box_Free(box);
        SKYC_Ground_Close(ground);
        SKYC_Ground_Free(ground);
        _exit(is_told ? 0 : 1);
    }
    int status = -1;

    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_EQ(status_of(ground, box, ping(&one, 0)), SKY_STATUS_DONE);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

/* Return the descriptor of the socket that has a port; -1: there is none. */
static int socket_of(uint64_t port)
{
    for (int fd = 3; fd < DESCRIPTORS; ++fd)
    {
        struct sockaddr_in at     = {0};
        socklen_t          at_len = sizeof(at);

        if (getsockname(fd, (struct sockaddr *)&at, &at_len) == 0 && ntohs(at.sin_port) == port)
        {
            return fd;
        }
    }
    return -1;
}

static uint64_t port_of(SKYC_Ground_t *ground)
{
    SKYC_Counters_t counters;

    CHECK_EQ(SKYC_Ground_Counters(ground, &counters), 0);
    return counters.port;
}

/* Put something else in the place of a ground's socket, so that closing the ground closes nobody else's. */
static void swap_socket(SKYC_Ground_t *ground)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    CHECK(dup2(null, socket_of(port_of(ground))) > 0);
    (void)close(null);
}

static void test_a_descriptor_that_somebody_closed_is_told(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          one;
    SKYC_Op_t     *op = ping(&one, 0);

    CHECK_EQ(status_of(ground, box, op), SKY_STATUS_DONE);
    (void)close(socket_of(port_of(ground)));
    int error = SKYC_Ground_Submit(ground, box, &op, 1);

    if (error == 0) /* else the thread has seen it first */
    {
        CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
        CHECK(SKYC_Box_Take(box)->core.status == SKY_STATUS_CANCELLED);
        error = SKYC_Ground_Submit(ground, box, &op, 1);
    }
    CHECK_EQ(error, EBADF);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

/* Nothing is sent, so only the receiving side can tell. A thread that does not see it never sleeps again. */
static void test_a_swapped_descriptor_ends_a_thread_that_sends_nothing(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t          one;

    CHECK_EQ(status_of(ground, box, ping(&one, 0)), SKY_STATUS_DONE);
    swap_socket(ground);
    CHECK_EQ(SKYC_Ground_SetNumber(ground, 77), 0); /* it wakes the thread */
    for (uint32_t i = 0; i < WAIT_US / LOOK_US && SKYC_Ground_Error(ground) == 0; ++i)
    {
        (void)usleep(LOOK_US);
    }
    CHECK_EQ(SKYC_Ground_Error(ground), EBADF);
    for (uint32_t i = 0; i < WAIT_US / LOOK_US && SKYC_Ground_SetNumber(ground, 78) == 0;
         ++i) /* the thread may be in its last round */
    {
        (void)usleep(LOOK_US);
    }
    CHECK(all_fail(ground, box, ping(&one, 0), EBADF));
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

/* Questions that the core has not ended are their owners' again: whatever is called, it must not look at them. */
static void test_what_has_ended_with_the_thread_is_not_touched_again(void)
{
    SKYC_Ground_t *ground = open_ground(4, 16);
    SKYC_Box_t    *box    = new_box(ground, false);
    run_t         *one    = malloc(sizeof(*one));
    SKYC_Op_t     *op     = ping(one, 1);

    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &op, 1), 0);
    swap_socket(ground);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1); /* the question is sent again, in vain */
    CHECK(SKYC_Box_Take(box) == op && op->core.status == SKY_STATUS_CANCELLED);
    free(one);
    CHECK_EQ(SKYC_Ground_SetNumber(ground, 77), EBADF);
    CHECK_EQ(SKYC_Ground_Expect(ground, (SKY_Addr_t){1, 1}, 1000), EBADF);
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void *renumber(void *argument)
{
    SKYC_Ground_t *ground = argument;
    uint16_t       number = 0;

    while (SKYC_Ground_Error(ground) == 0)
    {
        (void)SKYC_Ground_SetNumber(ground, ++number);
    }
    return NULL;
}

static uint64_t closing_port;

static void *close_it(void *argument)
{
    SKYC_Ground_Close(argument);
    CHECK_EQ(socket_of(closing_port), -1); /* whoever comes second has waited for the first */
    return NULL;
}

/* The owner of a question frees it as soon as it has its end, while others close the ground, or give it numbers. */
static void test_closing_at_once_with_all_else(void)
{
    for (uint32_t round = 0; round < CLOSINGS; ++round)
    {
        SKYC_Ground_t *ground = open_ground(4, 16);
        SKYC_Box_t    *box    = new_box(ground, false);
        run_t         *one    = malloc(sizeof(*one));
        SKYC_Op_t     *op     = ping(one, 1);
        pthread_t      others[4];

        closing_port = port_of(ground);
        __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
        CHECK_EQ(SKYC_Ground_Submit(ground, box, &op, 1), 0);
        for (uint32_t i = 0; i < 4; ++i)
        {
            CHECK(pthread_create(&others[i], NULL, i < 2 ? renumber : close_it, ground) == 0);
        }
        CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
        CHECK(SKYC_Box_Take(box) == op);
        free(one);
        for (uint32_t i = 0; i < 4; ++i)
        {
            (void)pthread_join(others[i], NULL);
        }
        __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
        SKYC_Box_Free(box);
        SKYC_Ground_Free(ground);
    }
}

int main(void)
{
    const pthread_t flight = launch();

    RUN(test_operations_end_in_their_box);
    RUN(test_of_operations_of_which_one_is_wrong_none_begins);
    RUN(test_no_block_waits_for_another);
    RUN(test_numbers_out_of_range_are_refused);
    RUN(test_what_satellites_are_asked_is_checked);
    RUN(test_a_full_list_says_so);
    RUN(test_a_loop_of_events_has_a_descriptor);
    RUN(test_cancel_ends_what_runs_and_what_waits);
    RUN(test_close_ends_all);
    RUN(test_many_callers_at_once);
    RUN(test_a_forked_child_gets_an_error);
    RUN(test_a_descriptor_that_somebody_closed_is_told);
    RUN(test_a_swapped_descriptor_ends_a_thread_that_sends_nothing);
    RUN(test_what_has_ended_with_the_thread_is_not_touched_again);
    RUN(test_closing_at_once_with_all_else);
    land(flight);
    return CHECK_RESULT();
}
