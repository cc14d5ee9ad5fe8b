/**
 * @file
 * What a call reports of each satellite. Two services of the flight core behind sockets of their own; one of them answers late,
 * and loses what it is told to lose.
 */
#define _GNU_SOURCE
#include <time.h>

#include "satellites.h"

#define SLOW    1u /* which one is */
#define HOLD_MS 30u
#define CHUNK   1000u
#define CHUNKS  41u
#define BLOCK   ((CHUNKS - 1u) * CHUNK + 1u)
#define CALL_MS 20000u

static uint32_t to_lose; /* responses of the slow one to GET, atomic */
static uint8_t  block_up[BLOCK], block_down[BLOCK];

static void before_responses(uint32_t satellite)
{
    const struct timespec time = {0, HOLD_MS * 1000000};

    if (satellite == SLOW)
    {
        (void)nanosleep(&time, NULL);
    }
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    uint32_t lose = satellite == SLOW && response->pkt.op == SKY_OP_GET ? __atomic_load_n(&to_lose, __ATOMIC_RELAXED) : 0;

    /* Not lost if the number was set meanwhile. */
    return lose == 0 || !__atomic_compare_exchange_n(&to_lose, &lose, lose - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
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

static void test_nothing_was_done_yet(void)
{
    SKYC_Client_t *client = SKYC_Open(&(SKYC_Config_t){0}, NULL);

    CHECK_EQ(SKYC_Served(client, NULL, 0), 0);
    CHECK_EQ(SKYC_Get(client, NULL, 0), 0);
    CHECK_EQ(SKYC_Served(client, NULL, 0), 0);
    SKYC_Close(client);
}

static void check_times(const SKY_HostServed_t *served, uint64_t duration_us)
{
    CHECK(served->asked_us <= served->first_us); /* the first microsecond may not be over when the first request leaves */
    CHECK(served->first_us > 0 && served->first_us <= served->last_us);
    CHECK(served->last_us <= duration_us);
    CHECK(served->srtt_us > 0);
}

static void test_each_satellite_is_reported(void)
{
    SKYC_Client_t   *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    SKY_HostBlock_t  up     = block_of(block_up, 1);
    SKY_HostBlock_t  down   = block_of(block_down, 1);
    SKY_HostServed_t served[3];

    for (uint32_t i = 0; i < BLOCK; ++i)
    {
        block_up[i] = (uint8_t)(i * 7);
    }
    CHECK_EQ(SKYC_Put(client, &up, 1), 0);
    CHECK_EQ(up.status, SKY_STATUS_DONE);
    CHECK_EQ(SKYC_Served(client, served, 3), SATELLITES);
    CHECK_EQ(served[0].chunks, 21);
    CHECK_EQ(served[1].chunks, 20);
    CHECK_EQ(served[0].bytes + served[1].bytes, BLOCK);
    check_times(&served[0], up.duration_us);

    __atomic_store_n(&to_lose, 3, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Get(client, &down, 1), 0);
    CHECK_EQ(down.status, SKY_STATUS_DONE);
    CHECK(memcmp(block_up, block_down, BLOCK) == 0);
    CHECK_EQ(SKYC_Served(client, served, 1), SATELLITES); /* room for one: the second is not written */
    CHECK_EQ(SKYC_Served(client, served, 3), SATELLITES);
    CHECK_EQ(served[0].slot, 1);
    CHECK_EQ(served[1].slot, 2);
    CHECK_EQ(served[1].plane, 1);
    CHECK_EQ(served[1].entry_slot, 2);
    CHECK_EQ(served[0].chunks + served[1].chunks, down.chunks);
    CHECK_EQ(served[0].bytes, 20 * CHUNK + 1); /* the last chunk is its own, and shorter */
    CHECK_EQ(served[1].bytes, 20 * CHUNK);
    CHECK_EQ(served[0].requests + served[1].requests, down.requests);
    CHECK_EQ(served[0].repeats + served[1].repeats, down.repeats);
    CHECK(served[1].repeats >= 3);
    check_times(&served[0], down.duration_us);
    check_times(&served[1], down.duration_us);
    CHECK(served[1].first_us >= HOLD_MS * 1000); /* it answers late */
    CHECK(served[1].srtt_us >= HOLD_MS * 1000);
    SKYC_Close(client);
}

static void test_one_that_is_silent(void)
{
    SKYC_Client_t   *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    SKY_HostBlock_t  down   = block_of(block_down, 1);
    SKY_HostServed_t served[2];

    down.deadline_ms = 1000;
    __atomic_store_n(&to_lose, UINT32_MAX, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Get(client, &down, 1), 0);
    CHECK_EQ(down.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(SKYC_Served(client, served, 2), SATELLITES);
    CHECK_EQ(served[0].chunks, 21); /* also of a block that did not come whole */
    CHECK_EQ(served[1].chunks, 0);
    CHECK_EQ(served[1].bytes, 0);
    CHECK_EQ(served[1].first_us, 0);
    CHECK_EQ(served[1].last_us, 0);
    CHECK(served[1].srtt_us >= HOLD_MS * 1000); /* it has opened, and was silent then */
    __atomic_store_n(&to_lose, 0, __ATOMIC_RELAXED);

    /* A call that is refused leaves no report of its own, and the next one begins anew. */
    down.stripe.block_len = 0;
    CHECK(SKYC_Get(client, &down, 1) != 0);
    down             = block_of(block_down, 1);
    down.deadline_ms = CALL_MS;
    CHECK_EQ(SKYC_Get(client, &down, 1), 0);
    CHECK_EQ(down.status, SKY_STATUS_DONE);
    CHECK_EQ(SKYC_Served(client, served, 2), SATELLITES);
    CHECK_EQ(served[0].chunks, 21);
    CHECK_EQ(served[1].chunks, 20);
    SKYC_Close(client);
}

int main(void)
{
    const pthread_t flight = launch();

    RUN(test_nothing_was_done_yet);
    RUN(test_each_satellite_is_reported);
    RUN(test_one_that_is_silent);
    land(flight);
    return CHECK_RESULT();
}
