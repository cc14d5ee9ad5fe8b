/**
 * @file
 * A ground host on a bench: the core's ground, a small constellation of services that its packets reach at once, and a wire on which their
 * answers come back after RTT_US. A test makes satellites silent, or says what others answer. Satellites reach each other, at once, only if
 * they are linked.
 */
#ifndef GROUND_RIG_H
#define GROUND_RIG_H

#define PLANES 5u
#define SLOTS  7u

#include "nodes.h"
#include "sky_ground.h"

#define SERVERS    4u
#define OPERATIONS 4u
#define QUEUED     64u
#define TENANTS    2u
#define RTT_US     20000u
#define CHUNK      100u
#define BYTES_MAX  2000u
#define ENDPOINT0  100u /* of satellite (1, 1) */
#define WIRE_MAX   4096u
#define ASKED_MAX  4096u
#define STEPS_MAX  20000u
#define ROWS_MAX   8u
#define ROW_US     UINT64_C(60000000)
#define START_US   UINT64_C(5000000)
#define SECOND_US  UINT64_C(1000000)

typedef struct
{
    uint64_t at_us;
    uint64_t endpoint;
    uint32_t len;
    uint8_t  bytes[FLYING_BYTES];
} answer_t;

/* An operation, and memory for its block. */
typedef struct
{
    SKY_GroundOp_t    op;
    bool              has_ended;
    uint8_t           data[BYTES_MAX];
    uint8_t           parity[BYTES_MAX];
    uint8_t           have[8];
    SKY_HostRow_t     rows[8];
    SKY_HeldRow_t     held_rows[8];
    SKY_GroundFound_t one; /* FIND: what is known of the block */
} run_t;

static SKY_Ground_t      ground;
static void             *ground_memory;
static SKY_GroundSky_t   sky;
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t schedule_rows[ROWS_MAX];
static SKY_Addr_t        seen[2];
static answer_t          wire[WIRE_MAX];
static uint32_t          wire_first, wire_count;
static SKY_Packet_t      asked[ASKED_MAX];    /* what the host has sent, without payloads */
static uint64_t          asked_at[ASKED_MAX]; /* endpoints to which it went */
static uint32_t          asked_count;
static bool              is_silent[NODES];
static bool              are_linked;
static flying_t          between[WIRE_MAX]; /* packets from satellite to satellite */
static uint32_t          between_first, between_count;
static uint64_t          endpoint_now; /* through which the satellite is asked that answers */
static SKY_Packet_t      question_now;
static uint32_t          told_lost, told_searched, told_moved, told_placed, told_replaced, told_checked;

/* What a test has satellites say instead. @return false: nothing */
static bool (*forge)(const SKY_Packet_t *question, SKY_Packet_t *answer);

/* What a test has other limits for. */
static void (*limit)(SKY_GroundLimits_t *limits);

static void node_send(const SKY_Out_t *out)
{
    const flying_t flying = flying_of(out);
    answer_t      *answer = &wire[(wire_first + wire_count) % WIRE_MAX];
    SKY_Packet_t   pkt;

    if (out->pkt.dst.plane != 0u)
    {
        if (are_linked && !is_silent[node_at(out->pkt.src) - nodes])
        {
            CHECK(between_count < WIRE_MAX);
            between[(between_first + between_count) % WIRE_MAX] = flying;
            ++between_count;
        }
        return;
    }
    CHECK(wire_count < WIRE_MAX);
    CHECK_EQ(SKY_Packet_Decode(flying.bytes, flying.len, &pkt), SKY_STATUS_OK);
    if (forge != NULL && !forge(&question_now, &pkt))
    {
        return;
    }
    answer->at_us    = now_us + RTT_US;
    answer->endpoint = endpoint_now;
    answer->len      = (uint32_t)SKY_Packet_Encode(&pkt, answer->bytes, sizeof(answer->bytes));
    CHECK(answer->len > 0u);
    ++wire_count;
}

static void ground_send(void *context, uint64_t at_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    static uint8_t bytes[1600];
    const size_t   len = SKY_Packet_Encode(pkt, bytes, sizeof(bytes));

    (void)context;
    CHECK(len > 0u && key == NULL);
    CHECK_EQ(at_us, now_us);
    CHECK(asked_count < ASKED_MAX);
    CHECK_EQ(SKY_Packet_Decode(bytes, len, &question_now), SKY_STATUS_OK);
    asked[asked_count]    = question_now;
    asked_at[asked_count] = endpoint;
    ++asked_count;
    endpoint_now = endpoint;
    if (!is_silent[node_at(pkt->dst) - nodes] && !is_silent[endpoint - ENDPOINT0])
    {
        if (pkt->op == SKY_OP_PING)
        {
            SKY_Out_t pong;

            (void)memset(&pong, 0, sizeof(pong)); /* this rig has no isl, which is who answers a PING of a host */
            SKY_Packet_Reply(&question_now, question_now.dst, SKY_STATUS_OK, &pong.pkt);
            pong.pkt.payload = NULL;
            node_send(&pong);
            return;
        }
        node_serve(node_at(pkt->dst), &question_now);
    }
}

static uint8_t *ground_payload(void *context)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];

    (void)context;
    return payload;
}

static bool ground_random(void *context, uint8_t *bytes, size_t count)
{
    static uint32_t number;

    (void)context;
    CHECK_EQ(count, sizeof(number));
    number += 1000u;
    (void)memcpy(bytes, &number, count);
    return true;
}

static uint64_t endpoint_of(void *context, SKY_Addr_t entry)
{
    (void)context;
    CHECK(entry.plane >= 1u && entry.plane <= PLANES && entry.slot >= 1u && entry.slot <= SLOTS);
    return ENDPOINT0 + (uint64_t)(node_at(entry) - nodes);
}

static void placed(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                   uint32_t count)
{
    (void)context;
    CHECK(op != NULL && share < SERVERS && count >= 1u && found[0].plane != 0u);
    CHECK(home.plane == 0u || SKY_Ground_IsLost(&ground, home) || ground.reach.suspects > 0u);
    ++told_placed;
}

static void replaced(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t stand_in)
{
    (void)context;
    CHECK(op != NULL && share < SERVERS && stand_in.plane != 0u && !SKY_Ground_IsLost(&ground, stand_in));
    ++told_replaced;
}

static void moved(void *context, const SKY_GroundOp_t *op, uint32_t status)
{
    (void)context;
    CHECK(op != NULL && status != SKY_STATUS_RUNNING);
    ++told_moved;
}

static void checked(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t satellite)
{
    (void)context;
    CHECK(op->kind == SKY_GROUND_CHECK && share < SERVERS && satellite.plane != 0u);
    ++told_checked;
}

static void lost(void *context)
{
    (void)context;
    ++told_lost;
}

static void searched(void *context)
{
    (void)context;
    ++told_searched;
}

/* The window moves on by a plane and a slot in each of @p count rows. */
static inline void lay_out(uint32_t count)
{
    CHECK(count <= ROWS_MAX);
    for (uint32_t i = 0; i < count; ++i)
    {
        schedule_rows[i].time_ms      = i * (uint32_t)(ROW_US / 1000u);
        schedule_rows[i].centre.plane = 3;
        schedule_rows[i].centre.slot  = (int32_t)(4u + 2u * i);
    }
    CHECK(SKY_Schedule_Init(&schedule, &ground.limits.torus, SKY_LAYOUT_ROTATION_HOP, SERVERS, schedule_rows, count, START_US));
}

/* Satellites look at the time, and at what is theirs. */
static inline void poll_all(void)
{
    for (uint32_t i = 0; i < NODES; ++i)
    {
        SKY_Service_Poll(&nodes[i].svc, now_us, &nodes[i].next_us);
        node_pull(&nodes[i]);
    }
    wire_count = 0;
}

static inline void set_sky(void)
{
    CHECK(SKY_Ground_SetSky(&ground, &sky));
}

static inline void open_watched(uint32_t rows, bool is_watched)
{
    static const SKY_ReachCfg_t times = {SKY_HOST_LOST_US, SKY_HOST_DOUBT_US, SKY_HOST_PAUSE_FIRST_US, SKY_HOST_PAUSE_MAX_US};
    const SKY_GroundWatch_t     watch = {NULL, placed, replaced, moved, checked, lost, searched};
    const SKY_GroundWatch_t     none  = {0};
    const SKY_GroundShell_t     shell = {
            {NULL, ground_send, ground_payload, ground_random}, is_watched ? watch : none, endpoint_of, NULL};
    const SKY_HostCfg_t  cfg   = {SKY_PeerCfg_OfHost(64, 20), 1472, 77, true, 0, false, {0}};
    const SKY_StoreCfg_t store = {CHUNK, 64};
    SKY_GroundLimits_t   limits;

    (void)memset(&limits, 0, sizeof(limits));
    CHECK(SKY_Torus_Init(&limits.torus, PLANES, SLOTS, false));
    limits.servers      = SERVERS;
    limits.operations   = OPERATIONS;
    limits.works        = 8u * OPERATIONS;
    limits.pieces       = 32u * OPERATIONS;
    limits.lanes        = 16u * OPERATIONS;
    limits.queued       = QUEUED;
    limits.tenants      = TENANTS;
    limits.bytes        = UINT32_MAX;
    limits.tenant_bytes = UINT32_MAX;
    if (limit != NULL)
    {
        limit(&limits);
    }
    limits.questions = limits.questions != 0u ? limits.questions : SKY_Ground_QuestionsMost(&limits);
    now_us           = START_US;
    wire_first       = 0;
    wire_count       = 0;
    asked_count      = 0;
    forge            = NULL;
    are_linked       = false;
    between_count    = 0;
    told_lost = told_searched = told_moved = told_placed = told_replaced = told_checked = 0;
    (void)memset(is_silent, 0, sizeof(is_silent));
    free(ground_memory);
    ground_memory = calloc(1, SKY_Ground_MemoryBytes(&limits));
    CHECK(SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, ground_memory));
    SKY_Host_SetBudget(&ground.host, 4096);
    lay_out(rows);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        SKY_ServiceCfg_t svc = {.self             = {(uint16_t)(i / SLOTS + 1u), (uint16_t)(i % SLOTS + 1u)},
                                .packet_bytes     = 1472,
                                .credit           = 20,
                                .part_lifetime_ms = 500};

        node_init(&nodes[i], &store, &svc, 3, i + 1u);
        CHECK(SKY_Service_SetSchedule(&nodes[i].svc, &schedule));
    }
    poll_all();
    sky = (SKY_GroundSky_t){.schedule = &schedule, .handover_us = 2u * SECOND_US, .changes = 1, .lazy_purge = true, .seen = seen};
    set_sky();
}

static inline void open_ground(uint32_t rows)
{
    open_watched(rows, true);
}

static inline void close_ground(void)
{
    for (uint32_t i = 0; i < NODES; ++i)
    {
        free(nodes[i].memory);
        nodes[i].memory = NULL;
    }
    free(ground_memory);
    ground_memory = NULL;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

/* An operation on a block of @p bytes. The number says which server is asked first: 64 numbers each. */
static inline SKY_GroundOp_t *prepare(run_t *run, SKY_GroundKind_t kind, uint32_t number, uint32_t bytes, uint64_t version)
{
    SKY_GroundOp_t *op = &run->op;

    (void)memset(run, 0, sizeof(*run));
    CHECK(bytes <= BYTES_MAX);
    fx_key(op->key, number);
    op->kind = kind;
    CHECK(SKY_Stripe_Cut(&op->facts.stripe, bytes, CHUNK, 0, 0));
    op->facts.version = version;
    op->facts.content = version == 0u ? 0u : 7u;
    op->deadline_ms   = 3000;
    op->data          = run->data;
    op->parity        = run->parity;
    op->have          = run->have;
    op->rows          = run->rows;
    op->held_rows     = run->held_rows;
    op->found         = &run->one;
    op->found_count   = 1;
    (void)memcpy(run->one.key, op->key, SKY_KEY_BYTES);
    for (uint32_t i = 0; kind == SKY_GROUND_PUT && i < bytes; ++i)
    {
        run->data[i] = (uint8_t)(number * 31u + version * 7u + i);
    }
    return op;
}

static inline void submit(SKY_GroundOp_t *op)
{
    CHECK(SKY_Ground_Submit(&ground, now_us, op));
}

/* Let satellites act, and carry what they send to each other. */
static inline void carry(void)
{
    uint32_t carried = 0;

    for (uint32_t i = 0; i < NODES && are_linked; ++i)
    {
        SKY_Service_Poll(&nodes[i].svc, now_us, &nodes[i].next_us);
        node_pull(&nodes[i]);
    }
    for (; between_count > 0u && carried < ASKED_MAX; ++carried)
    {
        const flying_t first = between[between_first];

        between_first = (between_first + 1u) % WIRE_MAX;
        --between_count;
        if (!is_silent[node_at(first.dst) - nodes])
        {
            node_hear(&first);
        }
    }
    CHECK(carried < ASKED_MAX);
}

/* Take in what has come by a time. @return false if nothing has */
static inline bool hear(uint64_t until_us)
{
    static answer_t first;

    if (wire_count == 0u || wire[wire_first].at_us > until_us)
    {
        return false;
    }
    first      = wire[wire_first];
    wire_first = (wire_first + 1u) % WIRE_MAX;
    --wire_count;
    now_us = first.at_us > now_us ? first.at_us : now_us;
    SKY_Ground_Receive(&ground, now_us, first.endpoint, first.bytes, first.len);
    return true;
}

/* One run of the ground, then the next answer, or the time at which it is due. */
static inline void step(void)
{
    const uint64_t  due_us = SKY_Ground_Run(&ground, now_us, true);
    SKY_GroundOp_t *op;

    carry();
    while ((op = SKY_Ground_Ended(&ground)) != NULL)
    {
        run_t *run = (run_t *)op; /* it stands first */

        CHECK(!run->has_ended && op->status != SKY_STATUS_RUNNING);
        run->has_ended = true;
    }
    if (ground.running + ground.queue.waiting > 0u && !hear(due_us))
    {
        CHECK(due_us != UINT64_MAX);
        now_us = due_us > now_us ? due_us : now_us;
    }
}

static inline void run_all(void)
{
    uint32_t steps = 0;

    for (; ground.running + ground.queue.waiting > 0u && steps < STEPS_MAX; ++steps)
    {
        step();
    }
    CHECK(steps < STEPS_MAX);
}

/* Until the host knows again whom to trust, for which no operation waits. */
static inline void rest(void)
{
    uint32_t steps  = 0;
    uint64_t due_us = SKY_Ground_Run(&ground, now_us, true);

    for (; (SKY_Host_Asking(&ground.host) > 0u || ground.reach.suspects > 0u) && steps < STEPS_MAX; ++steps)
    {
        if (!hear(due_us))
        {
            CHECK(due_us != UINT64_MAX);
            now_us = due_us > now_us ? due_us : now_us;
        }
        due_us = SKY_Ground_Run(&ground, now_us, true);
    }
    CHECK(steps < STEPS_MAX);
}

/* Have an operation done. @return its status */
static inline uint32_t finish(SKY_GroundOp_t *op)
{
    submit(op);
    run_all();
    return op->status;
}

static inline uint32_t put(run_t *run, uint32_t number, uint32_t bytes, uint64_t version)
{
    return finish(prepare(run, SKY_GROUND_PUT, number, bytes, version));
}

static inline uint32_t get(run_t *run, uint32_t number, uint32_t bytes, uint64_t version)
{
    return finish(prepare(run, SKY_GROUND_GET, number, bytes, version));
}

static inline uint32_t find(run_t *run, uint32_t number)
{
    return finish(prepare(run, SKY_GROUND_FIND, number, 1, 0));
}

static inline bool is_as_put(const run_t *run, uint32_t number, uint64_t version)
{
    bool good = true;

    for (uint32_t i = 0; i < run->op.facts.stripe.block_len; ++i)
    {
        good = good && run->data[i] == (uint8_t)(number * 31u + version * 7u + i);
    }
    return good;
}

/* ---- satellites ------------------------------------------------------------------------------------------------------ */

/* The satellite that has a share of a block in a row. */
static inline SKY_Addr_t home_of(const SKY_GroundOp_t *op, uint32_t row, uint32_t share)
{
    return SKY_Schedule_Server(&schedule, row, SKY_Spread_Server(op->key, op->facts.stripe.chunk_total, SERVERS, share));
}

static inline void silence(SKY_Addr_t satellite, bool silent)
{
    is_silent[node_at(satellite) - nodes] = silent;
}

static inline void silence_all(bool silent)
{
    for (uint32_t i = 0; i < NODES; ++i)
    {
        is_silent[i] = silent;
    }
}

/* Does a satellite hold something of the block? */
static inline bool holds(SKY_Addr_t satellite, const SKY_GroundOp_t *op)
{
    return SKY_Store_Find(&node_at(satellite)->store, op->tenant, op->key) != SKY_STORE_NONE;
}

static inline void forget(SKY_Addr_t satellite, const SKY_GroundOp_t *op)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_KVC;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = SKY_OP_PURGE;
    pkt.src        = (SKY_Addr_t){0, 78};
    pkt.dst        = satellite;
    pkt.epoch      = SKY_SCHEDULE_STAYS;
    pkt.tenant     = op->tenant;
    (void)memcpy(pkt.key, op->key, SKY_KEY_BYTES);
    node_serve(node_at(satellite), &pkt);
    wire_count = 0;
    CHECK(!holds(satellite, op));
}

/* Count the questions of an operation since the @p from th. */
static inline uint32_t asked_of(uint8_t op, uint32_t from)
{
    uint32_t count = 0;

    for (uint32_t i = from; i < asked_count; ++i)
    {
        count += asked[i].op == op ? 1u : 0u;
    }
    return count;
}

/* All that belongs to a satellite has arrived, by its word. */
static inline bool is_settled(const SKY_Packet_t *question, SKY_Packet_t *answer)
{
    (void)question;
    answer->word |= SKY_WORD_SETTLED;
    return true;
}

#endif
