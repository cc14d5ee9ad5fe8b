/**
 * @file
 * A ground host: the core's host, its memory, and the network around it.
 */
#include <stdlib.h>

#include "twin_priv.h"

#define BUDGET_CHUNKS 65536u /* large, so that the receive buffer is no limit */
#define RUNS_MAX      64u    /* runs of the host at one time, before others have their turn */
#define DENIAL_BYTES  1024u  /* no longer packet denies chunks */
#define SPARE_PIECES  8u     /* pieces of attempts that have ended wait in queues for a while */

/* ---- what the host asks of us ---------------------------------------------------------------------------------------- */

static void send_packet(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const SKYT_Ground_t         *ground = context;
    const SKY_HostBlockMemory_t *blocks = &ground->core.blocks;
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

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool SKYT_Ground_Init(SKYT_Twin_t *twin, uint32_t index)
{
    const uint32_t        most   = twin->config.credit > SKY_DEFAULT_WINDOW ? twin->config.credit : SKY_DEFAULT_WINDOW;
    const uint32_t        shares = twin->config.active_max * twin->config.servers;
    SKYT_Ground_t        *ground = &twin->grounds[index];
    const SKY_HostShell_t shell  = {ground, send_packet, payload, count_up};
    SKY_HostCfg_t         cfg    = {SKY_PeerCfg_OfHost(most, twin->config.credit),
                                    twin->config.packet_bytes,
                                    (uint16_t)(index + 1u),
                                    true,
                                    twin->config.way_chunks,
                                    twin->config.asks_all != 0,
                                    {0}};
    SKY_HostPeerMemory_t  peers;

    if (twin->keys != NULL)
    {
        SKYT_Keys_OfHost(twin, index + 1u, &cfg.security);
    }
    ground->twin               = twin;
    ground->number             = cfg.number;
    peers.peer_count           = twin->node_count;
    peers.peers                = calloc(twin->node_count, sizeof(*peers.peers));
    peers.active               = calloc(twin->node_count, sizeof(*peers.active));
    peers.ways                 = calloc(twin->node_count, sizeof(*peers.ways));
    peers.index                = calloc(1, SKY_Index_MemoryBytes(twin->node_count));
    ground->core.peers         = peers; /* SKYT_Ground_Free needs it if there is too little memory */
    ground->blocks.work_count  = SPARE_PIECES * twin->config.active_max;
    ground->blocks.piece_count = SPARE_PIECES * shares;
    ground->blocks.lane_count  = shares;
    ground->blocks.works       = calloc(ground->blocks.work_count, sizeof(*ground->blocks.works));
    ground->blocks.pieces      = calloc(ground->blocks.piece_count, sizeof(*ground->blocks.pieces));
    ground->blocks.lanes       = calloc(ground->blocks.lane_count, sizeof(*ground->blocks.lanes));
    if (peers.peers == NULL || peers.active == NULL || peers.ways == NULL || peers.index == NULL ||
        ground->blocks.works == NULL || ground->blocks.pieces == NULL || ground->blocks.lanes == NULL)
    {
        return false;
    }
    (void)SKY_Host_Init(&ground->core, &shell, &cfg, &peers); /* there is room for all */
    (void)SKY_Host_Lend(&ground->core, &ground->blocks);      /* and not too much: is_sound */
    SKY_Host_SetBudget(&ground->core, BUDGET_CHUNKS);
    return SKYT_Reach_Init(ground) && SKYT_Held_Init(ground);
}

void SKYT_Ground_Free(SKYT_Ground_t *ground)
{
    free(ground->core.peers.peers);
    free(ground->core.peers.active);
    free(ground->core.peers.ways);
    free(ground->core.peers.index);
    free(ground->blocks.works);
    free(ground->blocks.pieces);
    free(ground->blocks.lanes);
    SKYT_Reach_Free(ground);
    SKYT_Held_Free(ground);
}

/* ---- what happens to it ---------------------------------------------------------------------------------------------- */

void SKYT_Ground_Run(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Ground_t *ground = &twin->grounds[index];
    SKY_Host_t    *core   = &ground->core;
    uint64_t       due_us = twin->now_us;
    uint32_t       runs   = 0;

    while (due_us <= twin->now_us && runs < RUNS_MAX && twin->stopped == SKYT_STOP_NOT)
    {
        SKY_HostBlock_t    *ended;
        SKY_HostQuestion_t *answered;

        due_us = SKY_Host_Run(core, twin->now_us, true);
        ++runs;
        while ((ended = SKY_Host_NextEnded(core)) != NULL)
        {
            SKYT_Break_Ended(twin, index);
            SKYT_Check_Window(twin, index);
            SKYT_Op_End(twin, ended);
            due_us = twin->now_us; /* another operation may have begun */
        }
        while ((answered = SKY_Host_NextAnswered(core)) != NULL)
        {
            if (SKYT_Held_Answered(ground, answered) || SKYT_OpQuestions_Answered(ground, answered))
            {
                due_us = twin->now_us; /* others may be asked */
            }
            else
            {
                SKYT_ReachQuestions_Answered(ground);
            }
        }
        if (SKYT_ReachQuestions_Run(ground))
        {
            due_us = twin->now_us;
        }
    }
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

void SKYT_Ground_Receive(SKYT_Twin_t *twin, uint16_t host, uint32_t node, const uint8_t *data, uint32_t len)
{
    SKY_Host_t    *core      = &twin->grounds[host - 1u].core;
    const uint64_t undecoded = core->counters.undecoded;
    const uint64_t untrusted = core->counters.untrusted;
    const uint64_t stale     = core->counters.stale;
    SKYT_Active_t *unsettled = unsettled_of(core, data, len);
    bool          *answered  = SKYT_ReachQuestions_Hears(&twin->grounds[host - 1u], node, data, len);

    SKY_Host_Receive(core, twin->now_us, node, data, len);
    if (answered != NULL && core->counters.untrusted == untrusted)
    {
        *answered = true;
    }
    if (unsettled != NULL && core->counters.untrusted == untrusted && core->counters.stale == stale)
    {
        unsettled->is_unsettled = true;
    }
    twin->counters.damaged += core->counters.undecoded - undecoded;
}
