/**
 * @file
 * Two satellites and a network between them, for the tests of MIGRATE: real packets, some of which are lost or late.
 */
#ifndef MIGRATE_RIG_H
#define MIGRATE_RIG_H

#include "rig.h"

#define QUEUE   2048u
#define STEP_US 10000u /* one way */

typedef struct
{
    SKY_Addr_t dst;
    uint32_t   len;
    uint8_t    bytes[1500];
} datagram_t;

static const SKY_Addr_t home   = {1, 1};
static const SKY_Addr_t away   = {1, 2};
static const SKY_Addr_t nobody = {5, 19}; /* on the torus, but silent */

static const SKY_Addr_t ground = {0, 77};

static SKY_Addr_t asker = {0, 77}; /* of MIGRATE */
static bool       crossing;        /* MIGRATE is for b, else for a */
static uint32_t   jitter_steps;    /* a packet takes up to so many steps more */

static rig_t      a, b;
static datagram_t queue[QUEUE];
static uint32_t   queued;
static uint32_t   loss_percent;
static uint64_t   random_state;
static uint64_t   next_us;

static const fx_block_t block = {5, 0, 50, 1000, 49500};

static inline void post(const rig_t *rig)
{
    for (uint32_t i = 0; i < rig->count; ++i)
    {
        CHECK(queued < QUEUE && rig->out[i].len <= sizeof(queue[0].bytes));
        queue[queued].dst = rig->out[i].dst;
        queue[queued].len = rig->out[i].len;
        (void)memcpy(queue[queued].bytes, rig->out[i].bytes, rig->out[i].len);
        ++queued;
    }
}

static inline void hand_over(rig_t *rig, const datagram_t *datagram)
{
    SKY_Packet_t pkt;

    if (SKY_Addr_Equal(datagram->dst, rig->svc.core.cfg.self) && jitter_steps > 0 &&
        fx_below(&random_state, jitter_steps + 1u) > 0)
    {
        CHECK(queued < QUEUE);
        queue[queued++] = *datagram; /* later */
        return;
    }
    if (SKY_Addr_Equal(datagram->dst, rig->svc.core.cfg.self) && fx_below(&random_state, 100) >= loss_percent)
    {
        CHECK_EQ(SKY_Packet_Decode(datagram->bytes, datagram->len, &pkt), SKY_STATUS_OK);
        SKY_Service_Begin(&rig->svc, rig->now_us, &pkt);
        rig_pull(rig);
        post(rig);
    }
}

/* One step of time: what is due is sent, what was sent in the step before arrives. */
static inline void step(void)
{
    static datagram_t arriving[QUEUE];
    const uint32_t    count = queued;

    (void)memcpy(arriving, queue, count * sizeof(queue[0]));
    queued = 0;
    a.now_us += STEP_US;
    b.now_us += STEP_US;
    for (uint32_t i = 0; i < count; ++i)
    {
        hand_over(&a, &arriving[i]);
        hand_over(&b, &arriving[i]);
    }
    rig_poll(&b, &next_us);
    post(&b);
    rig_poll(&a, &next_us);
    post(&a);
}

static inline uint32_t jobs(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SKY_SERVICE_MIGRATIONS; ++i)
    {
        count += a.svc.migrations.jobs[i].active ? 1u : 0u;
        count += b.svc.migrations.jobs[i].active ? 1u : 0u;
    }
    return count;
}

/* @return steps until no job is left */
static inline uint32_t run(uint32_t most)
{
    uint32_t steps = 0;

    while (jobs() > 0 && steps < most)
    {
        step();
        ++steps;
    }
    CHECK_EQ(jobs(), 0);
    return steps;
}

static inline void open_both(uint32_t slots, uint32_t packet_bytes, uint32_t loss)
{
    rig_open(&a, home, slots, packet_bytes);
    rig_open(&b, away, slots, packet_bytes);
    queued       = 0;
    loss_percent = loss;
    random_state = 4711;
}

static inline void put_all(rig_t *rig, const fx_block_t *what, uint32_t from, uint32_t stride)
{
    for (uint32_t i = from; i < what->chunk_total; i += stride)
    {
        rig_put(rig, what, i);
        CHECK_EQ(rig->count, 0);
    }
}

/* Are exactly the chunks from, from + stride, ... at @p rig? */
static inline bool all_at(const rig_t *rig, const fx_block_t *what, uint32_t from, uint32_t stride)
{
    bool good = true;

    for (uint32_t i = 0; i < what->chunk_total; ++i)
    {
        good = good && rig_holds(rig, what, i) == (i >= from && (i - from) % stride == 0);
    }
    return good;
}

static inline bool none_at(const rig_t *rig, const fx_block_t *what)
{
    return all_at(rig, what, what->chunk_total, 1);
}

/* @p key NULL: all blocks. The packets that follow the response go into the queue. */
static inline SKY_Status_t migrate(const uint8_t *key, uint32_t tenant, SKY_Addr_t target, uint8_t flags, uint32_t deadline_ms)
{
    const uint8_t payload[SKY_MIGRATE_BYTES] = {(uint8_t)(target.plane >> 8), (uint8_t)(target.plane & 0xFF),
                                                (uint8_t)(target.slot >> 8), (uint8_t)(target.slot & 0xFF)};
    SKY_Packet_t  req;

    rig_t *const rig = crossing ? &b : &a;

    rig_request(&req, SKY_OP_MIGRATE, 0);
    req.src = asker;
    (void)memset(req.key, 0, sizeof(req.key));
    if (key != NULL)
    {
        (void)memcpy(req.key, key, sizeof(req.key));
    }
    req.tenant      = tenant;
    req.flags       = flags;
    req.deadline_ms = deadline_ms;
    req.payload     = payload;
    req.length      = sizeof(payload);
    rig_serve(rig, &req);
    CHECK(rig->count >= 1 && rig->out[0].pkt.op == SKY_OP_MIGRATE && !rig->out[0].pkt.is_request);
    CHECK(SKY_Addr_Equal(rig->out[0].dst, asker)); /* the answer comes first */
    post(rig);
    return rig->out[0].pkt.status;
}

static inline SKY_Status_t migrate_block(const fx_block_t *what, SKY_Addr_t target, uint8_t flags, uint32_t deadline_ms)
{
    uint8_t key[SKY_KEY_BYTES];

    fx_key(key, what->number);
    return migrate(key, 0, target, flags, deadline_ms);
}

/* A response as the satellite @p from would send it to the newest query of the first lane of the job that is active. */
static inline void answer(SKY_Addr_t from, SKY_Status_t status, uint8_t op)
{
    const SKY_Migration_t *job  = &a.svc.migrations.jobs[SKY_SERVICE_MIGRATIONS - 1];
    const SKY_Lane_t      *lane = &a.svc.migrations.lanes[(SKY_SERVICE_MIGRATIONS - 1) * SKY_SERVICE_REQUEST_LANES];
    uint8_t                payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Packet_t           pkt;

    while (job->lanes > 0 && !lane->active)
    {
        ++lane;
    }
    SKY_Packet_Reply(&job->request, from, status, &pkt);
    pkt.op         = op;
    pkt.request_id = (lane->push.cfg.request_id & ~(uint64_t)0xFFFFu) | lane->push.number;
    (void)memcpy(pkt.key, lane->push.cfg.key, sizeof(pkt.key));
    if (op == SKY_OP_HAS)
    {
        pkt.payload = payload;
        pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&lane->push.unacked, payload, sizeof(payload));
    }
    rig_serve(&a, &pkt);
}

#endif
