/**
 * @file
 * Streams of gets: which blocks begin, which have an end, and what ends a stream. Two services of the flight core behind sockets of their
 * own; they give chunks only while they may.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "satellites.h"

#define CHUNK    1000u
#define CHUNKS   10u
#define BLOCK    (CHUNKS * CHUNK)
#define BLOCKS   4u
#define CALL_MS  20000u
#define WAIT_US  (CALL_MS * 1000u)
#define SHORT_US 20000u
#define UNKNOWN  99u /* number of a block that nobody has */

static bool            is_mute; /* satellites give no chunks, atomic */
static uint8_t         up[BLOCKS][BLOCK], down[BLOCKS][BLOCK];
static SKY_HostBlock_t blocks[BLOCKS];
static SKYC_Client_t  *client;

typedef struct
{
    SKYC_Stream_t *stream;
    int            error;
} run_t;

static void before_responses(uint32_t satellite)
{
    (void)satellite;
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    (void)satellite;
    return response->pkt.op != SKY_OP_GET || response->pkt.status != SKY_STATUS_OK ||
           !__atomic_load_n(&is_mute, __ATOMIC_RELAXED);
}

static SKY_HostBlock_t block_of(uint8_t *data, uint32_t number)
{
    SKY_HostBlock_t block = {0};

    fx_key(block.key, number);
    block.stripe.block_len   = BLOCK;
    block.stripe.chunk_len   = CHUNK;
    block.stripe.chunk_total = CHUNKS;
    block.deadline_ms        = CALL_MS;
    block.data               = data;
    block.servers            = servers;
    block.server_count       = SATELLITES;
    return block;
}

static SKYC_Stream_t *stream_of_all(void)
{
    for (uint32_t b = 0; b < BLOCKS; ++b)
    {
        (void)memset(down[b], 0, BLOCK);
        blocks[b] = block_of(NULL, b);
    }
    return SKYC_Stream_New(blocks, BLOCKS);
}

static void *run_stream(void *context)
{
    run_t *run = context;

    run->error = SKYC_Stream_Run(client, run->stream);
    return NULL;
}

static pthread_t begin_run(run_t *run)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run_stream, run) == 0);
    return thread;
}

static void end_run(pthread_t thread, run_t *run, int error)
{
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(run->error, error);
    SKYC_Stream_Free(run->stream);
}

static void store_blocks(void)
{
    SKY_HostBlock_t put[BLOCKS];

    for (uint32_t b = 0; b < BLOCKS; ++b)
    {
        for (uint32_t i = 0; i < BLOCK; ++i)
        {
            up[b][i] = (uint8_t)(i * 7 + b);
        }
        put[b] = block_of(up[b], b);
    }
    CHECK_EQ(SKYC_Put(client, put, BLOCKS), 0);
    CHECK_EQ(put[BLOCKS - 1].status, SKY_STATUS_DONE);
}

static void test_blocks_begin_when_they_are_allowed(void)
{
    bool      is_over = true;
    run_t     run     = {stream_of_all(), -1};
    pthread_t thread;

    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED); /* so that it is not over before all are allowed */
    CHECK(SKYC_Stream_Allow(run.stream, down[0]));
    thread = begin_run(&run);
    for (uint32_t b = 1; b < BLOCKS; ++b)
    {
        CHECK_EQ(SKYC_Stream_Await(run.stream, 1, SHORT_US, &is_over), 0);
        CHECK(!is_over);
        CHECK(SKYC_Stream_Allow(run.stream, down[b]));
    }
    CHECK(!SKYC_Stream_Allow(run.stream, down[0])); /* there is no other block */
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
    for (uint32_t b = 0; b < BLOCKS; ++b)
    {
        CHECK(SKYC_Stream_Await(run.stream, b + 1, WAIT_US, &is_over) > b);
        CHECK_EQ(blocks[b].status, SKY_STATUS_DONE);
        CHECK(memcmp(up[b], down[b], BLOCK) == 0);
    }
    CHECK(blocks[BLOCKS - 1].duration_us < blocks[0].duration_us); /* it began later */
    end_run(thread, &run, 0);
}

static void test_it_is_over_when_what_was_allowed_has_ended(void)
{
    bool            is_over = false;
    run_t           run     = {stream_of_all(), -1};
    const pthread_t thread  = begin_run(&run); /* nothing is allowed */

    CHECK_EQ(SKYC_Stream_Await(run.stream, 1, WAIT_US, &is_over), 0);
    CHECK(is_over);
    CHECK(!SKYC_Stream_Allow(run.stream, down[0]));
    CHECK_EQ(blocks[0].status, SKY_STATUS_RUNNING);
    CHECK_EQ(SKYC_Stream_Run(client, run.stream), EINVAL); /* it has run */
    end_run(thread, &run, 0);
    SKYC_Stream_Free(NULL);
}

static void test_ends_are_told_in_order(void)
{
    bool            is_over = true;
    run_t           run     = {stream_of_all(), -1};
    pthread_t       thread;
    SKY_HostBlock_t unknown = block_of(NULL, UNKNOWN);

    blocks[1] = unknown;
    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
    for (uint32_t b = 0; b < BLOCKS; ++b)
    {
        CHECK(SKYC_Stream_Allow(run.stream, b == 2 ? NULL : down[b])); /* NULL: an error of the caller */
    }
    thread = begin_run(&run);
    CHECK_EQ(SKYC_Stream_Await(run.stream, 1, SHORT_US, &is_over), 0); /* though the second one has ended */
    CHECK(!is_over);
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Stream_Await(run.stream, BLOCKS, WAIT_US, &is_over), BLOCKS);
    CHECK_EQ(blocks[0].status, SKY_STATUS_DONE);
    CHECK_EQ(blocks[1].status, SKY_STATUS_MISS);
    CHECK_EQ(blocks[2].status, SKY_STATUS_BAD_CHUNK);
    CHECK_EQ(blocks[3].status, SKY_STATUS_DONE);
    CHECK(memcmp(up[3], down[3], BLOCK) == 0);
    end_run(thread, &run, 0);
}

static void check_stopped(void (*stop)(SKYC_Stream_t *stream))
{
    bool      is_over = false;
    run_t     run     = {stream_of_all(), -1};
    pthread_t thread;

    __atomic_store_n(&is_mute, true, __ATOMIC_RELAXED);
    CHECK(SKYC_Stream_Allow(run.stream, down[0]));
    thread = begin_run(&run);
    CHECK_EQ(SKYC_Stream_Await(run.stream, 1, SHORT_US, &is_over), 0);
    CHECK(!is_over);
    stop(run.stream);
    CHECK_EQ(SKYC_Stream_Await(run.stream, BLOCKS, WAIT_US, &is_over), 1);
    CHECK(is_over);
    CHECK_EQ(blocks[0].status, SKY_STATUS_CANCELLED);
    CHECK_EQ(blocks[1].status, SKY_STATUS_RUNNING);
    end_run(thread, &run, 0);
    __atomic_store_n(&is_mute, false, __ATOMIC_RELAXED);
}

static void cancel_call(SKYC_Stream_t *stream)
{
    SKYC_Progress_t progress;

    (void)stream;
    SKYC_Progress(client, &progress);
    SKYC_Cancel(client, progress.calls);
}

static void test_it_can_be_stopped(void)
{
    check_stopped(SKYC_Stream_Stop);
    check_stopped(cancel_call);
}

static void test_one_that_was_stopped_begins_nothing(void)
{
    bool      is_over = false;
    run_t     run     = {stream_of_all(), -1};
    pthread_t thread;

    CHECK(SKYC_Stream_Allow(run.stream, down[0]));
    SKYC_Stream_Stop(run.stream);
    thread = begin_run(&run);
    CHECK_EQ(SKYC_Stream_Await(run.stream, BLOCKS, WAIT_US, &is_over), 0);
    CHECK(is_over);
    end_run(thread, &run, 0);
}

static void test_wrong_numbers_end_it_at_once(void)
{
    bool      is_over = false;
    run_t     run     = {stream_of_all(), -1};
    pthread_t thread;

    blocks[2].stripe.block_len = 0;
    CHECK(SKYC_Stream_Allow(run.stream, down[0]));
    thread = begin_run(&run);
    CHECK_EQ(SKYC_Stream_Await(run.stream, BLOCKS, WAIT_US, &is_over), 0);
    CHECK(is_over);
    end_run(thread, &run, EINVAL);
    CHECK_EQ(blocks[2].last_status, SKY_STATUS_BAD_CHUNK);
}

int main(void)
{
    const pthread_t flight = launch();

    client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    store_blocks();
    RUN(test_blocks_begin_when_they_are_allowed);
    RUN(test_it_is_over_when_what_was_allowed_has_ended);
    RUN(test_ends_are_told_in_order);
    RUN(test_it_can_be_stopped);
    RUN(test_one_that_was_stopped_begins_nothing);
    RUN(test_wrong_numbers_end_it_at_once);
    SKYC_Close(client);
    land(flight);
    return CHECK_RESULT();
}
