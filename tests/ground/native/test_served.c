/**
 * @file
 * What an operation tells of each satellite. Two services of the flight core behind sockets of their own; one of them answers late,
 * and loses what it is told to lose.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "grounds.h"

#define SLOW    1u /* which one is */
#define HOLD_MS 30u
#define CHUNK   1000u
#define CHUNKS  41u
#define BLOCK   ((CHUNKS - 1u) * CHUNK + 1u)

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

static SKYC_Ground_t *open_ground(void)
{
    const SKYC_GroundConfig_t config = ground_config(4, 16, CHUNK);
    const SKYC_Config_t       client = {.packet_bytes = 1472};
    SKYC_Ground_t            *ground = open_with(&config, &client);

    follow(ground, (const uint16_t[]){1}, 1);
    return ground;
}

static SKYC_Op_t told(SKY_GroundKind_t kind, uint8_t *data)
{
    SKYC_Op_t op = move_of(kind, 1, data, BLOCK, CHUNK);

    op.wants_served = true;
    return op;
}

static const SKY_HostServed_t *part_of(const SKYC_Op_t *op, uint32_t slot)
{
    for (uint32_t i = 0; i < op->core.block.served_count; ++i)
    {
        if (op->core.served[i].slot == slot)
        {
            return &op->core.served[i];
        }
    }
    CHECK(false);
    return NULL;
}

static void check_times(const SKY_HostServed_t *served, const SKYC_Op_t *op)
{
    const uint64_t end_us = op->core.submitted_us + op->core.queue_us + op->core.network_us + op->core.rest_us;

    CHECK(op->core.submitted_us <= served->asked_us && served->asked_us <= served->first_us);
    CHECK(served->first_us <= served->last_us && served->last_us <= end_us);
    CHECK(served->srtt_us > 0);
}

static void test_nobody_wants_to_know(void)
{
    SKYC_Ground_t *ground = open_ground();
    SKYC_Box_t    *box    = new_box(ground, false);
    SKYC_Op_t      op     = move_of(SKY_GROUND_PUT, 2, block_up, BLOCK, CHUNK);

    CHECK_EQ(status_of(ground, box, &op), SKY_STATUS_DONE);
    CHECK(op.core.served == NULL && op.core.block.served_count == 0);
    SKYC_Op_End(&op);
    SKYC_Op_End(&op); /* there is nothing left to give back */
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_each_satellite_is_reported(void)
{
    SKYC_Ground_t *ground = open_ground();
    SKYC_Box_t    *box    = new_box(ground, false);
    SKYC_Op_t      put    = told(SKY_GROUND_PUT, block_up);
    SKYC_Op_t      get    = told(SKY_GROUND_GET, block_down);

    CHECK_EQ(status_of(ground, box, &put), SKY_STATUS_DONE);
    CHECK_EQ(put.core.block.served_count, SATELLITES);
    CHECK_EQ(part_of(&put, 1)->chunks + part_of(&put, 2)->chunks, CHUNKS);
    CHECK_EQ(part_of(&put, 1)->bytes + part_of(&put, 2)->bytes, BLOCK);
    check_times(part_of(&put, 1), &put);

    __atomic_store_n(&to_lose, 3, __ATOMIC_RELAXED);
    CHECK_EQ(status_of(ground, box, &get), SKY_STATUS_DONE);
    CHECK(memcmp(block_up, block_down, BLOCK) == 0);
    CHECK_EQ(get.core.block.served_count, SATELLITES);
    const SKY_HostServed_t *quick = part_of(&get, 1);
    const SKY_HostServed_t *slow  = part_of(&get, 2);

    CHECK_EQ(slow->plane, 1);
    CHECK_EQ(slow->entry_slot, 2);
    CHECK_EQ(quick->chunks + slow->chunks, get.core.block.chunks);
    CHECK_EQ(quick->bytes + slow->bytes, BLOCK);
    CHECK_EQ(quick->bytes, part_of(&put, 1)->bytes); /* the last chunk is shorter */
    CHECK_EQ(quick->requests + slow->requests, get.core.block.requests);
    CHECK_EQ(quick->repeats + slow->repeats, get.core.block.repeats);
    CHECK(slow->repeats >= 3);
    check_times(quick, &get);
    check_times(slow, &get);
    CHECK(slow->first_us - slow->asked_us >= HOLD_MS * 1000); /* it answers late */
    CHECK(slow->srtt_us >= HOLD_MS * 1000);
    SKYC_Op_End(&put);
    SKYC_Op_End(&get);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_one_that_is_silent(void)
{
    SKYC_Ground_t *ground = open_ground();
    SKYC_Box_t    *box    = new_box(ground, false);
    SKYC_Op_t      get    = told(SKY_GROUND_GET, block_down);

    get.core.deadline_ms = 1000;
    __atomic_store_n(&to_lose, UINT32_MAX, __ATOMIC_RELAXED);
    const uint32_t status = status_of(ground, box, &get);

    CHECK(status == SKY_STATUS_EXPIRED);
    CHECK_EQ(get.core.block.served_count, SATELLITES);
    CHECK(part_of(&get, 1)->chunks >= CHUNKS / 2u); /* also of a block that did not come whole */
    CHECK_EQ(part_of(&get, 2)->chunks, 0);
    CHECK_EQ(part_of(&get, 2)->bytes, 0);
    CHECK_EQ(part_of(&get, 2)->first_us, 0);
    CHECK_EQ(part_of(&get, 2)->last_us, 0);
    CHECK(part_of(&get, 2)->asked_us > 0);
    CHECK(part_of(&get, 2)->srtt_us >= HOLD_MS * 1000); /* it has opened, and was silent then */
    SKYC_Op_End(&get);
    __atomic_store_n(&to_lose, 0, __ATOMIC_RELAXED);

    /* An operation that is refused tells nothing, and each begins anew. */
    get                             = told(SKY_GROUND_GET, block_down);
    get.core.facts.stripe.block_len = 0;
    SKYC_Op_t *wrong                = &get;

    CHECK_EQ(SKYC_Ground_Submit(ground, box, &wrong, 1), EINVAL);
    get = told(SKY_GROUND_GET, block_down);
    CHECK_EQ(status_of(ground, box, &get), SKY_STATUS_DONE);
    CHECK_EQ(get.core.block.served_count, SATELLITES);
    CHECK_EQ(part_of(&get, 1)->chunks + part_of(&get, 2)->chunks, CHUNKS);
    SKYC_Op_End(&get);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

int main(void)
{
    const pthread_t flight = launch();

    for (uint32_t i = 0; i < BLOCK; ++i)
    {
        block_up[i] = (uint8_t)(i * 7);
    }
    RUN(test_nobody_wants_to_know);
    RUN(test_each_satellite_is_reported);
    RUN(test_one_that_is_silent);
    land(flight);
    return CHECK_RESULT();
}
