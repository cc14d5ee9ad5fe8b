/**
 * @file
 * Grounds with a thread whose satellites are those of satellites.h, and operations for them.
 */
#ifndef GROUNDS_H
#define GROUNDS_H

#include "satellites.h"
#include "skyc_ground.h"

#define WAIT_US 10000000u /* longer than anything here takes */

static inline SKYC_GroundConfig_t ground_config(uint32_t operations, uint32_t queued, uint32_t chunk_bytes)
{
    static uint64_t endpoints[SATELLITES];

    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        endpoints[i] = servers[i].endpoint;
    }
    return (SKYC_GroundConfig_t){.planes      = 1,
                                 .slots       = SATELLITES,
                                 .servers     = SATELLITES,
                                 .operations  = operations,
                                 .queued      = queued,
                                 .chunk_bytes = chunk_bytes,
                                 .endpoints   = endpoints};
}

static inline SKYC_Ground_t *open_with(const SKYC_GroundConfig_t *config, const SKYC_Config_t *client)
{
    int            error  = -1;
    SKYC_Ground_t *ground = SKYC_Ground_Open(config, client, &error);

    CHECK(ground != NULL && error == 0);
    return ground;
}

/* Let the window be at some slots, one after the other, the last one now. */
static inline void follow(SKYC_Ground_t *ground, const uint16_t *slots, uint32_t count)
{
    static uint32_t   changes;
    SKY_ScheduleRow_t rows[4];
    struct timespec   now;

    CHECK(count >= 1u && count <= 4u);
    for (uint32_t i = 0; i < count; ++i)
    {
        rows[i] = (SKY_ScheduleRow_t){1000u * i, {1, slots[i]}};
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t        now_us = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
    const SKYC_SkyRows_t  sky    = {SKY_LAYOUT_ROTATION_HOP, rows, count, now_us - UINT64_C(1000000) * count};
    const SKY_GroundSky_t seen   = {.changes = ++changes, .lazy_purge = true};

    CHECK_EQ(SKYC_Ground_SetSky(ground, &seen, &sky), 0);
}

static inline SKYC_Box_t *new_box(SKYC_Ground_t *ground, bool has_descriptor)
{
    int         error = -1;
    SKYC_Box_t *box   = SKYC_Box_New(ground, has_descriptor, &error);

    CHECK(box != NULL && error == 0);
    return box;
}

/* A GET or PUT of a block. */
static inline SKYC_Op_t move_of(SKY_GroundKind_t kind, uint32_t number, uint8_t *data, uint32_t bytes, uint32_t chunk)
{
    SKYC_Op_t op = {0};

    op.core.kind        = kind;
    op.core.data        = data;
    op.core.deadline_ms = 5000;
    fx_key(op.core.key, number);
    CHECK(SKY_Stripe_Cut(&op.core.facts.stripe, bytes, chunk, 0, 0));
    return op;
}

/* An operation that asks a satellite one question: PING. */
static inline SKYC_Op_t ping_of(SKY_HostQuestion_t *request, uint32_t satellite)
{
    SKYC_Op_t op = {0};

    *request              = (SKY_HostQuestion_t){0};
    request->place        = servers[satellite];
    request->apid         = SKY_APID_KVC;
    request->op           = SKY_OP_PING;
    op.core.kind          = SKY_GROUND_EXCHANGE;
    op.core.requests      = request;
    op.core.request_count = 1;
    op.core.deadline_ms   = 5000;
    return op;
}

/* Have an operation done. The ground's memory of it is there until SKYC_Op_End. @return its status */
static inline uint32_t status_of(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t *op)
{
    CHECK_EQ(SKYC_Ground_Submit(ground, box, &op, 1), 0);
    CHECK_EQ(SKYC_Box_Await(box, 1, WAIT_US), 1);
    CHECK(SKYC_Box_Take(box) == op && SKYC_Box_Take(box) == NULL);
    return op->core.status;
}

/* Have an operation done, and keep nothing of it. @return its status */
static inline uint32_t ended(SKYC_Ground_t *ground, SKYC_Box_t *box, SKYC_Op_t op)
{
    const uint32_t status = status_of(ground, box, &op);

    SKYC_Op_End(&op);
    return status;
}

#endif
