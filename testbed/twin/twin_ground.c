/**
 * @file
 * A ground host: the core's ground, its memory, and the network around it.
 */
#include "twin_break.h"
#include "twin_priv.h"

#define BUDGET_CHUNKS 65536u /* large, so that the receive buffer is no limit */
#define DENIAL_BYTES  1024u  /* no longer packet denies chunks */
#define SPARE_PIECES  8u     /* pieces of attempts that have ended wait in queues for a while */
/* Limits that are reached, so that operations wait for their turn. */
#define OPERATIONS_PART 2u
#define BLOCKS_AT_ONCE  3u
#define BLOCKS_OF_ONE   2u
#define TENANTS         2u

/* ---- what the core asks of us ------------------------------------------------------------------------------------------ */

static void send_packet(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const SKYT_Ground_t         *ground = context;
    const SKY_HostBlockMemory_t *blocks = &ground->core.host.blocks;
    uint8_t                      head[SKY_HEAD_MAX];
    uint8_t                      tail[SKY_TAIL_MAX];
    const uint32_t               head_len = (uint32_t)SKY_Tag_EncodeAround(pkt, key, NULL, head, tail);
    const SKYT_Parts_t           parts = {head, pkt->payload, tail, head_len, pkt->length, SKY_Packet_TailBytes(pkt), SKYT_NONE};

    /* A word of use belongs to no lane: nobody waits for an answer. */
    if (!SKY_Host_IsQuestion(pkt->request_id) && pkt->op != SKY_OP_ASSOCIATE && (pkt->flags & SKY_FLAG_USE) == 0u)
    {
        const SKY_HostLane_t *lane   = &blocks->lanes[SKY_HOST_LANE_OF(pkt->request_id)];
        const SKYT_Active_t  *active = SKYT_Op_Of(blocks->works[blocks->pieces[lane->piece].work].block);

        SKYT_Check_Request(ground->twin, active, pkt);
        SKYT_ShareRecord_Note(ground->twin, active, pkt);
    }
    SKYT_Network_Send(ground->twin, now_us, (uint32_t)endpoint, SKYT_LINK_UP, ground->number, &parts);
}

static uint8_t *payload(void *context)
{
    SKYT_Ground_t *ground = context;

    return ground->payload;
}

static bool count_up(void *context, uint8_t *bytes, size_t count)
{
    const SKYT_Ground_t *ground = context;

    SKYT_CountUp(ground->twin, bytes, count);
    return true;
}

static uint64_t endpoint_of(void *context, SKY_Addr_t entry)
{
    const SKYT_Ground_t *ground = context;

    return SKYT_NodeOf(ground->twin, entry);
}

/* ---- what it tells ----------------------------------------------------------------------------------------------------- */

static void placed(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                   uint32_t count)
{
    const SKYT_Ground_t *ground = context;

    SKYT_Op_Placed(ground->twin, SKYT_Op_OfCore(op), share, home, found, count);
}

static void replaced(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t stand_in)
{
    const SKYT_Ground_t *ground = context;

    (void)stand_in;
    SKYT_Op_OfCore(op)->astray |= SKYT_ShareRecord_Bit(ground->twin, share);
}

static void moved(void *context, const SKY_GroundOp_t *op, uint32_t status)
{
    const SKYT_Ground_t *ground = context;

    SKYT_Break_Ended(ground->twin, ground->number - 1u);
    SKYT_Check_Window(ground->twin, ground->number - 1u);
    SKYT_Op_Moved(ground->twin, SKYT_Op_OfCore(op), status == SKY_STATUS_DONE);
}

static void checked(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t satellite)
{
    const SKYT_Ground_t *ground = context;

    SKYT_Op_Checked(ground->twin, SKYT_Op_OfCore(op), share, satellite);
}

static void lost(void *context)
{
    const SKYT_Ground_t *ground = context;

    SKYT_Truth_Lost(ground->twin, ground);
}

/* Note who did not say whether it is late, though it was asked or was to be asked. */
static void searched(void *context)
{
    SKYT_Ground_t             *ground  = context;
    const SKY_GroundInquiry_t *inquiry = &ground->core.inquiry;

    for (uint32_t node = 0; node < ground->twin->node_count; ++node)
    {
        const bool is_spare = inquiry->is_spare[node];

        ground->is_mute[node]  = is_spare || inquiry->last_rows[node] != SKY_SCHEDULE_NONE;
        ground->spare_us[node] = is_spare ? inquiry->began_us : 0;
    }
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const uint32_t node = SKYT_NodeOf(ground->twin, inquiry->asks[i].satellite);

        ground->is_mute[node] = ground->answered_us[node] != inquiry->began_us;
    }
    SKYT_Break_Searched(ground->twin, &ground->core);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

bool SKYT_Ground_Init(SKYT_Twin_t *twin, uint32_t index)
{
    static const SKY_ReachCfg_t times = {SKY_HOST_LOST_US, SKY_HOST_DOUBT_US, SKY_HOST_PAUSE_FIRST_US, SKY_HOST_PAUSE_MAX_US};

    const uint32_t          most   = twin->config.credit > SKY_DEFAULT_WINDOW ? twin->config.credit : SKY_DEFAULT_WINDOW;
    const uint32_t          shares = twin->config.active_max * twin->config.servers;
    SKYT_Ground_t          *ground = &twin->grounds[index];
    const SKY_GroundShell_t shell  = {{ground, send_packet, payload, count_up},
                                      {ground, placed, replaced, moved, checked, lost, searched},
                                      endpoint_of,
                                      ground};
    SKY_HostCfg_t           cfg    = {SKY_PeerCfg_OfHost(most, twin->config.credit),
                                      twin->config.packet_bytes,
                                      (uint16_t)(index + 1u),
                                      true,
                                      twin->config.way_chunks,
                                      twin->config.asks_all != 0,
                                      {0}};

    SKY_GroundLimits_t limits = {.torus        = twin->torus,
                                 .servers      = twin->config.servers,
                                 .operations   = twin->config.active_max / OPERATIONS_PART + 1u,
                                 .works        = twin->config.active_max,
                                 .pieces       = SPARE_PIECES * shares,
                                 .lanes        = shares,
                                 .questions    = 1,
                                 .queued       = twin->config.active_max,
                                 .tenants      = TENANTS,
                                 .bytes        = (uint64_t)BLOCKS_AT_ONCE * twin->config.block_bytes,
                                 .tenant_bytes = (uint64_t)BLOCKS_OF_ONE * twin->config.block_bytes};

    limits.questions = SKY_Ground_QuestionsMost(&limits); /* who waited for a place would pass for silent */
    if (twin->keys != NULL)
    {
        SKYT_Keys_OfHost(twin, index + 1u, &cfg.security);
    }
    ground->twin        = twin;
    ground->number      = cfg.number;
    ground->seen        = SKYT_Take(twin, twin->node_count, sizeof(*ground->seen));
    ground->answered_us = SKYT_Take(twin, twin->node_count, sizeof(*ground->answered_us));
    ground->is_mute     = SKYT_Take(twin, twin->node_count, sizeof(*ground->is_mute));
    ground->spare_us    = SKYT_Take(twin, twin->node_count, sizeof(*ground->spare_us));
    void *memory        = SKYT_Take(twin, 1, SKY_Ground_MemoryBytes(&limits));

    if (twin->is_short)
    {
        return false;
    }
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        ground->answered_us[node] = UINT64_MAX;
    }
    (void)SKY_Ground_Init(&ground->core, &limits, &shell, &cfg, &times, memory); /* the numbers are sound: is_sound */
    SKY_Host_SetBudget(&ground->core.host, BUDGET_CHUNKS);
    return true;
}

/* ---- its sky ----------------------------------------------------------------------------------------------------------- */

void SKYT_Ground_SetSeen(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Ground_t        *ground = &twin->grounds[index];
    const SKY_GroundSky_t sky    = {.schedule    = &twin->schedule,
                                    .handover_us = (uint64_t)twin->config.handover_ms * US_PER_MS,
                                    .put_late_us = (uint64_t)twin->config.late_put_ms * US_PER_MS,
                                    .changes     = 1,
                                    .uplink      = twin->config.uplink,
                                    .seen        = ground->seen,
                                    .seen_count  = twin->entry_count,
                                    .parity      = twin->config.parity,
                                    .lazy_purge  = twin->config.lazy_purge != 0};

    for (uint32_t i = 0; i < twin->entry_count; ++i)
    {
        ground->seen[i] = SKYT_AddrOf(twin, twin->entries[i]);
    }
    (void)SKY_Ground_SetSky(&ground->core, &sky); /* the twin's own tables */
}

/* ---- what happens to it ------------------------------------------------------------------------------------------------ */

void SKYT_Ground_Run(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Ground_t  *ground = &twin->grounds[index];
    uint64_t        due_us = SKY_Ground_Run(&ground->core, twin->now_us, true);
    SKY_GroundOp_t *ended;

    while (twin->stopped == SKYT_STOP_NOT && (ended = SKY_Ground_Ended(&ground->core)) != NULL)
    {
        SKYT_Op_Ended(twin, SKYT_Op_OfCore(ended));
        due_us = twin->now_us; /* another phase may have begun */
    }
    SKYT_Op_Watch(twin, index);
    if ((due_us == UINT64_MAX && twin->broken != SKYT_BREAK_SPIN) || twin->broken == SKYT_BREAK_DEAF)
    {
        SKYT_Queue_Remove(&twin->queue, SKYT_EventOfGround(twin, index));
    }
    else
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, index), twin->broken == SKYT_BREAK_SPIN ? twin->now_us : due_us);
    }
}

/* Return the get of which a packet denies chunks, by the word of a satellite that is not settled. NULL: it is something else. */
static SKYT_Active_t *unsettled_of(const SKY_Host_t *core, const uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;

    if (len > DENIAL_BYTES || SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.op != SKY_OP_GET ||
        pkt.status != SKY_STATUS_NOT_FOUND || (pkt.word & SKY_WORD_SETTLED) != 0u)
    {
        return NULL;
    }
    const SKY_HostLane_t *lane = &core->blocks.lanes[SKY_HOST_LANE_OF(pkt.request_id) % core->blocks.lane_count];

    return lane->request_id != 0u && lane->request_id == SKY_REQUEST_FIRST(pkt.request_id)
               ? SKYT_Op_Of(core->blocks.works[core->blocks.pieces[lane->piece].work].block)
               : NULL;
}

/* Return the satellite of which a packet is the answer to a question of the inquiry; SKYT_NONE: it is no such answer. */
static uint32_t hears(const SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len)
{
    const SKY_GroundInquiry_t *inquiry  = &ground->core.inquiry;
    uint32_t                   answered = SKYT_NONE;
    SKY_Packet_t               pkt;

    if (inquiry->running == 0u || SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.status != SKY_STATUS_OK ||
        !SKY_Host_IsQuestion(pkt.request_id))
    {
        return SKYT_NONE;
    }
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_HostQuestion_t *question = &inquiry->questions[i];

        if (question->status == SKY_STATUS_RUNNING && question->request_id == pkt.request_id && question->place.endpoint == node)
        {
            answered = SKYT_NodeOf(ground->twin, inquiry->asks[i].satellite);
        }
    }
    return answered;
}

void SKYT_Ground_Receive(SKYT_Twin_t *twin, uint16_t host, uint32_t node, const uint8_t *data, uint32_t len)
{
    SKYT_Ground_t *ground    = &twin->grounds[host - 1u];
    SKY_Host_t    *core      = &ground->core.host;
    const uint64_t undecoded = core->counters.undecoded;
    const uint64_t untrusted = core->counters.untrusted;
    const uint64_t stale     = core->counters.stale;
    SKYT_Active_t *unsettled = unsettled_of(core, data, len);
    const uint32_t answered  = hears(ground, node, data, len);
    const uint32_t broken    = SKYT_Break_Heard(twin, ground, node, data, len);

    if (broken > 0u)
    {
        SKY_Ground_Receive(&ground->core, twin->now_us, node, broken == len ? data : twin->scratch2, broken);
    }
    if (answered != SKYT_NONE && core->counters.untrusted == untrusted)
    {
        ground->answered_us[answered] = ground->core.inquiry.began_us;
    }
    if (core->counters.untrusted == untrusted && core->counters.stale == stale && core->counters.undecoded == undecoded)
    {
        SKYT_Words_Hear(twin, host, data, len);
    }
    if (unsettled != NULL && core->counters.untrusted == untrusted && core->counters.stale == stale)
    {
        unsettled->is_unsettled = true;
    }
    twin->counters.damaged += core->counters.undecoded - undecoded;
}
