/**
 * @file
 * One satellite: the core's node (sky_node.h) with the service of `kvc`, on the network of the twin.
 */
#include <string.h>

#include "twin_break.h"
#include "twin_priv.h"

/* Endpoints by which the core tells senders apart: the number of a ground host, or this one of a satellite. */
static uint64_t endpoint_of(uint32_t node)
{
    return ((uint64_t)node + 1u) << 16 | 1u;
}

/* ---- the service, as the core calls it ------------------------------------------------------------------------------- */

static uint32_t index_of(const SKYT_Node_t *node)
{
    return (uint32_t)(node - node->twin->nodes);
}

static bool is_put(const SKY_Packet_t *pkt)
{
    return pkt->is_request && pkt->op == SKY_OP_PUT;
}

/* Return true for words of a neighbour, after which a satellite may purge a block with parity. */
static bool may_be_purged(const SKYT_Node_t *node, const SKY_Packet_t *pkt)
{
    return node->twin->config.parity > 0u && pkt->is_request && pkt->op == SKY_OP_PURGE && (pkt->flags & SKY_FLAG_GOSSIP) != 0 &&
           SKYT_Content_BlockOf(node->twin, pkt->tenant, pkt->key) != SKYT_NONE;
}

static SKYT_Before_t before_of(const SKYT_Node_t *node, const SKY_Packet_t *pkt)
{
    const SKY_ServiceCounters_t *counters = &node->service.core.counters;
    const uint32_t               block    = SKYT_Content_BlockOf(node->twin, pkt->tenant, pkt->key);
    SKYT_Before_t                before   = {0};

    before.evicted      = node->store.counters.evicted_blocks;
    before.scrubbed     = counters->scrubbed;
    before.puts         = counters->puts;
    before.hits         = counters->hits;
    before.rumoured     = counters->gossip_purged;
    before.slots        = node->store.slab.used;
    before.chunks       = node->store.counters.chunks;
    before.version      = SKYT_Version_Held(node->twin, index_of(node), pkt);
    before.spared       = SKYT_Purge_Spared(node->twin, index_of(node), pkt);
    before.is_known     = is_put(pkt) && SKY_Store_Find(&node->store, pkt->tenant, pkt->key) != SKY_STORE_NONE;
    before.is_moving    = pkt->is_request && pkt->epoch != 0 && SKY_Service_HandoverLeft(&node->service, node->twin->now_us) > 0;
    before.could_be_had = may_be_purged(node, pkt) && SKYT_Rows_CanBeHad(node->twin, block);
    return before;
}

static void begin(void *context, uint64_t now_us, const SKY_Packet_t *from)
{
    SKYT_Node_t        *node   = context;
    SKYT_Twin_t        *twin   = node->twin;
    const uint32_t      index  = index_of(node);
    const SKYT_Before_t before = before_of(node, from);
    SKY_Packet_t        changed;
    const SKY_Packet_t *pkt = twin->broken == SKYT_BREAK_NOTHING ? from : SKYT_Break_Seen(twin, index, from, &changed);

    if (is_put(pkt) && pkt->src.plane != 0 && (pkt->flags & SKY_FLAG_FREE) == 0)
    {
        twin->counters.migrated_bytes += pkt->length;
        twin->row_moved_us = now_us;
        SKYT_Use_Moved(twin, pkt);
    }
    if (pkt->is_request && pkt->op == SKY_OP_STATS && pkt->src.plane != 0)
    {
        SKYT_Truth_Surveyed(twin, index);
    }
    SKYT_Work_Hang(twin, index, pkt);
    twin->is_served = true;
    if (twin->arriving != SKYT_NONE && twin->packets[twin->arriving].mark.kind == SKYT_PACKET_SOUND)
    {
        SKYT_Check_Hops(twin, &twin->packets[twin->arriving], index);
        SKYT_Check_HopLimit(twin, &twin->packets[twin->arriving], index, pkt);
    }
    SKY_Service_Begin(&node->service, now_us + SKYT_Break_LaterUs(twin, pkt), pkt);
    if (twin->broken != SKYT_BREAK_NOTHING)
    {
        SKYT_Break_Begun(twin, index, pkt);
    }
    node->begun = from;
    SKYT_Arrivals_Look(twin, index);
    SKYT_Truth_Put(twin, index, before.evicted);
    SKYT_Version_Served(twin, index, from, &before);
    SKYT_Purge_Served(twin, index, from, &before);
    if (is_put(pkt))
    {
        twin->repaired_us =
            (from->flags & SKY_FLAG_FREE) != 0 && node->store.counters.chunks > before.chunks ? now_us : twin->repaired_us;
        SKYT_Use_Put(twin, index, from, &before);
        SKYT_Check_Taken(twin, index, from);
    }
    else if (from->is_request && (from->flags & SKY_FLAG_USE) != 0)
    {
        SKYT_Use_Word(twin, index, from);
    }
    else if (from->is_request && from->op == SKY_OP_MIGRATE && from->src.plane == 0)
    {
        SKYT_Use_Prefetched(twin, index, from, &before);
    }
    else if (node->service.core.counters.hits != before.hits && from->src.plane == 0)
    {
        SKYT_Use_Get(twin, index, from);
    }
    if (node->service.core.counters.gossip_purged != before.rumoured)
    {
        SKYT_Truth_Rumoured(twin, index, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key), before.could_be_had);
    }
    if (node->service.core.counters.scrubbed != before.scrubbed)
    {
        SKYT_Truth_Scrubbed(twin, index, SKYT_Content_BlockOf(twin, from->tenant, from->key), before.could_be_had);
    }
}

/* End the answer of the service: it has said all that there was to say about a packet. */
static void end(SKYT_Node_t *node)
{
    if (node->begun != NULL)
    {
        if (node->twin->broken != SKYT_BREAK_NOTHING)
        {
            SKYT_Break_Served(node->twin, index_of(node), node->begun);
        }
        SKYT_Check_Store(node->twin, index_of(node));
        node->begun = NULL;
    }
}

/* Get the service's next packet. @return false if there is none, or the run has stopped */
static bool pull(SKYT_Node_t *node, uint64_t now_us, SKY_Out_t *out)
{
    const SKY_AnswerStage_t stage   = node->service.answer.stage;
    const bool              goes_on = SKY_Service_Next(&node->service, now_us, out);

    if (goes_on && stage == SKY_ANSWER_REPLY && node->twin->broken == SKYT_BREAK_BABBLE)
    {
        node->service.answer.stage = stage;
    }
    SKYT_Pace_Step(node->twin, index_of(node), SKYT_NONE, NULL, 0);
    return goes_on && node->twin->stopped == SKYT_STOP_NOT;
}

static bool next(void *context, uint64_t now_us, SKY_Out_t *out)
{
    SKYT_Node_t   *node     = context;
    const uint32_t index    = index_of(node);
    const bool     is_chunk = SKYT_Work_IsChunk(node->twin, index);
    const uint64_t hits     = node->service.core.counters.hits;
    const bool     goes_on  = pull(node, now_us, out);

    if (node->begun != NULL && node->service.core.counters.hits != hits)
    {
        SKYT_Use_Get(node->twin, index, node->begun);
    }

    node->ready_us = goes_on ? SKYT_Work_Add(node->twin, index, is_chunk ? 1u : 0u) : 0;
    if (!goes_on)
    {
        end(node);
    }
    return goes_on;
}

static void poll(void *context, uint64_t now_us, uint64_t *next_us)
{
    SKYT_Node_t   *node     = context;
    const uint32_t index    = index_of(node);
    const uint32_t looked   = SKYT_Truth_Scrutinized(node->twin, index);
    const uint64_t scrubbed = node->service.core.counters.scrubbed;
    const uint64_t expired  = node->store.counters.expired_partial;
    const bool     had      = node->twin->config.parity > 0u && looked != SKYT_NONE && SKYT_Rows_CanBeHad(node->twin, looked);

    if (node->twin->broken == SKYT_BREAK_CONSENT)
    {
        node->service.survey.waiting = 0;
    }
    if (node->twin->broken == SKYT_BREAK_NEGLECT)
    {
        node->service.scrub.has_ripe = false;
    }
    if (node->twin->broken == SKYT_BREAK_MISER)
    {
        node->service.hints.look_us = UINT64_MAX;
        node->service.hints.to_ask  = false;
    }
    SKY_Service_Poll(&node->service, now_us, next_us);
    if (node->twin->broken == SKYT_BREAK_HASTY)
    {
        node->service.core.word |= SKY_WORD_SETTLED;
    }
    SKYT_Arrivals_Look(node->twin, index);
    SKYT_Use_Polled(node->twin, index, expired);
    if (node->service.core.counters.scrubbed != scrubbed)
    {
        SKYT_Truth_Scrubbed(node->twin, index, looked, had);
    }
}

static void reject(void *context, SKY_Status_t status)
{
    SKY_Service_CountError(&((SKYT_Node_t *)context)->service, status);
}

static void unreachable(void *context, SKY_Addr_t dst)
{
    SKY_Service_Unreachable(&((SKYT_Node_t *)context)->service, dst);
}

/* ---- what the core calls --------------------------------------------------------------------------------------------- */

static bool send(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *from)
{
    SKYT_Node_t   *node = context;
    SKYT_Twin_t   *twin = node->twin;
    const bool     goes = link == SKY_LINK_GROUND || twin->broken == SKYT_BREAK_NOTHING;
    const uint32_t over = goes ? (uint32_t)link : SKYT_Break_Link(twin, index_of(node), (uint32_t)link, from->head != NULL);
    const uint32_t id   = link == SKY_LINK_GROUND ? SKYT_LINK_DOWN : over;
    SKYT_Parts_t   parts;
    uint64_t       ready_us = now_us;

    parts.head      = from->head;
    parts.body      = from->body;
    parts.tail      = from->tail;
    parts.head_len  = from->head_len;
    parts.body_len  = from->body_len;
    parts.tail_len  = from->tail_len;
    parts.passed_on = from->head == NULL ? twin->arriving : SKYT_NONE;
    if (node->ready_us != 0)
    {
        const uint32_t changed = twin->broken == SKYT_BREAK_NOTHING ? 0 : SKYT_Break_Packet(twin, from);

        if (changed != 0)
        {
            const SKYT_Parts_t whole = {NULL, twin->scratch2, NULL, 0, changed, 0, SKYT_NONE};

            parts = whole;
        }
        ready_us       = node->ready_us;
        node->ready_us = 0;
    }
    SKYT_Network_Send(twin, ready_us, index_of(node), id, (uint16_t)endpoint, &parts);
    return true;
}

static void do_nothing(void *context)
{
    (void)context;
}

static const SKY_NodeService_t *acquire(void *context, uint16_t apid)
{
    return apid == SKY_APID_KVC ? &((SKYT_Node_t *)context)->served : NULL;
}

static const SKY_NodeService_t *acquire_at(void *context, uint32_t place, uint16_t *apid)
{
    *apid = SKY_APID_KVC;
    return place == 0 ? &((SKYT_Node_t *)context)->served : NULL;
}

static SKY_Status_t take_command(void *context, const uint8_t *message, uint32_t len)
{
    SKYT_Node_t *node = context;

    if (node->twin->mission == NULL)
    {
        return SKY_STATUS_REFUSED;
    }
    SKYT_Mission_Obeyed(node->twin, index_of(node), message, len);
    return SKY_STATUS_OK;
}

static uint64_t clock_offset_us(void *context)
{
    (void)context;
    return 0;
}

/* ---- what calls the core --------------------------------------------------------------------------------------------- */

/* Forget the packet that the service acted on: the core may stop in the middle of a burst, and the packet is gone then. */
static void forget_packet(SKYT_Node_t *node)
{
    node->begun    = NULL;
    node->ready_us = 0;
}

/* Return when the services or a handshake are due; hellos have events of their own. */
static uint64_t due_us_of(const SKYT_Node_t *node)
{
    const uint64_t handshake_us = node->twin->keys != NULL ? SKY_Security_NextDue(&node->security) : UINT64_MAX;

    return handshake_us < node->core.poll_due_us ? handshake_us : node->core.poll_due_us;
}

void SKYT_Node_Run(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t *node = &twin->nodes[index];

    if (!node->is_up)
    {
        return;
    }
    SKYT_Break_Links(twin, index);
    if (SKY_Node_NextDue(&node->core) <= twin->now_us)
    {
        SKYT_Hello_CatchUp(twin, index);
        SKY_Node_Run(&node->core, twin->now_us);
        forget_packet(node);
    }
    SKYT_Hello_Settle(twin, index);
    if (due_us_of(node) == UINT64_MAX)
    {
        SKYT_Queue_Remove(&twin->queue, index);
    }
    else
    {
        SKYT_Queue_Set(&twin->queue, index, due_us_of(node));
    }
}

void SKYT_Node_Poll(SKYT_Twin_t *twin, uint32_t index)
{
    SKY_Node_Wake(&twin->nodes[index].core);
    SKYT_Node_Run(twin, index);
}

void SKYT_Node_Receive(SKYT_Twin_t *twin, uint32_t index, uint32_t from, uint16_t host, uint8_t *data, uint32_t len)
{
    SKYT_Node_t   *node      = &twin->nodes[index];
    const uint64_t undecoded = node->core.undecoded;
    const bool     is_judged = SKYT_Judge_IsOf(twin, twin->arriving);
    SKYT_Sight_t   before;

    if (is_judged)
    {
        SKYT_Judge_SeeNode(twin, index, &before);
    }
    if (twin->broken != SKYT_BREAK_NOTHING)
    {
        SKYT_Break_Sequences(twin, index);
    }
    SKY_Node_Receive(&node->core, twin->now_us, data, len, from == SKYT_NONE ? host : endpoint_of(from));
    forget_packet(node);
    if (is_judged)
    {
        SKYT_Judge_Node(twin, index, twin->arriving, &before);
    }
    twin->counters.damaged += node->core.undecoded - undecoded;
    SKYT_Node_Run(twin, index);
}

void SKYT_Node_Serve(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt)
{
    SKYT_Node_t *node = &twin->nodes[index];
    SKY_Out_t    out;

    begin(node, twin->now_us, pkt);
    while (node->service.answer.stage != SKY_ANSWER_IDLE &&
           SKY_Service_Next(&node->service, twin->now_us, &out)) /* the loop ends, because it pulls one answer */
    {
    }
    end(node);
    SKYT_Node_Poll(twin, index); /* the service's other packets go out */
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static bool start_service(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t     *node = &twin->nodes[index];
    SKY_ServiceCfg_t cfg;

    (void)memset(&cfg, 0, sizeof(cfg));
    cfg.self             = SKYT_AddrOf(twin, index);
    cfg.torus            = twin->torus;
    cfg.packet_bytes     = twin->config.packet_bytes;
    cfg.credit           = twin->config.credit;
    cfg.part_lifetime_ms = twin->config.part_lifetime_ms;
    cfg.gossip           = twin->config.gossip != 0;
    cfg.scrub_period_ms  = twin->config.scrub_ms;
    cfg.handover_ms      = twin->config.handover_ms;
    return SKY_Service_Init(&node->service, &cfg, &node->store, twin->now_us, SKYT_Random(twin));
}

static bool start(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t            *node   = &twin->nodes[index];
    const SKY_NodeShell_t   shell  = {node, send, do_nothing, acquire, acquire_at, do_nothing, take_command, clock_offset_us};
    const SKY_NodeService_t served = {node, begin, next, poll, reject, unreachable};
    const SKY_NodeMemory_t  memory = {node->map_memory, SKY_Map_MemoryBytes(&twin->torus), &node->listener, 1, node->relayed,
                                      SKYT_RELAYED};
    SKY_NodeCfg_t           cfg;

    (void)memset(&cfg, 0, sizeof(cfg));
    cfg.self         = SKYT_AddrOf(twin, index);
    cfg.torus        = twin->torus;
    cfg.packet_bytes = twin->config.packet_bytes;
    cfg.hello_us     = (uint64_t)twin->config.hello_ms * US_PER_MS;
    cfg.poll_most_us = UINT64_MAX; /* the caller who gives the service work polls it */
    cfg.lease_us     = SKYT_LEASE_US;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        const uint32_t far = SKYT_Network_Neighbour(twin, index, link);

        if (far != SKYT_NONE)
        {
            cfg.neighbours[link].is_present = true;
            cfg.neighbours[link].addr       = SKYT_AddrOf(twin, far);
            cfg.neighbours[link].endpoint   = endpoint_of(far);
        }
    }
    node->twin   = twin;
    node->served = served;
    node->digest = 0;
    node->is_up  = true;
    node->up_us  = twin->now_us;
    if (!SKY_Node_Init(&node->core, &shell, &memory) ||
        SKY_Node_Configure(&node->core, twin->now_us, &cfg) != SKY_NODE_CONFIGURED ||
        (twin->keys != NULL && !SKYT_Keys_Boot(twin, index)))
    {
        return false;
    }
    if (twin->broken == SKYT_BREAK_ROUTE)
    {
        node->core.router.map = NULL;
    }
    return start_service(twin, index);
}

/* Start all satellites together. They know each other, so nobody has to greet. */
static bool calm_down(SKY_Hello_t *hello)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        hello->links[link].is_due = false;
    }
    return true;
}

/* Give a store the quotas of the configuration, the same for each tenant; without quotas nothing changes. */
static bool set_quotas(SKYT_Twin_t *twin, SKY_Store_t *store)
{
    SKY_Quotas_t quotas = {.count  = twin->config.quota_most > 0 ? twin->config.tenants : 0,
                           .others = {.most_percent = SKY_STORE_PERCENT}};

    for (uint32_t i = 0; i < quotas.count; ++i)
    {
        quotas.tenants[i] = (SKY_Quota_t){i + 1u, twin->config.quota_reserved, twin->config.quota_most};
    }
    return SKY_Store_SetQuotas(store, &quotas);
}

bool SKYT_Node_Init(SKYT_Twin_t *twin, uint32_t index)
{
    const SKY_StoreCfg_t cfg   = {twin->config.slot_bytes, twin->config.slot_count};
    const size_t         bytes = SKY_Store_MemoryBytes(&cfg);

    twin->nodes[index].memory     = twin->stores + index * bytes;
    twin->nodes[index].map_memory = twin->maps + index * (SKY_Map_MemoryBytes(&twin->torus) / sizeof(*twin->maps));
    return SKY_Store_Init(&twin->nodes[index].store, &cfg, twin->nodes[index].memory, bytes, SKYT_Random(twin)) &&
           set_quotas(twin, &twin->nodes[index].store) && start(twin, index) && calm_down(&twin->nodes[index].core.hello);
}

void SKYT_Node_SetSchedule(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t          *node     = &twin->nodes[index];
    const SKY_Schedule_t *schedule = node->late != NULL ? node->late : &twin->schedule;

    if (twin->config.scheduled != SKYT_SCHEDULED_ALL)
    {
        (void)SKY_Service_SetWindow(&node->service, &twin->window);
    }
    if (twin->config.scheduled == SKYT_SCHEDULED_NOBODY ||
        (twin->config.scheduled == SKYT_SCHEDULED_UNTIL_CRASH && node->has_crashed))
    {
        schedule = NULL;
    }
    (void)SKY_Service_SetSchedule(&node->service, schedule); /* it fits this sky, as the window does */
}

void SKYT_Node_Crash(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t *node = &twin->nodes[index];

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        SKYT_Hello_WakeEnds(twin, index, link);
    }
    SKYT_Truth_Crash(twin, index);
    node->migrated += node->service.core.counters.migrated_out;
    node->evicted += node->store.counters.evicted_chunks;
    node->expired += node->store.counters.expired_partial;
    node->store.counters.evicted_blocks  = 0;
    node->store.counters.evicted_chunks  = 0;
    node->store.counters.expired_partial = 0;
    SKY_Store_Clear(&node->store);
    (void)memset(&node->service.core.counters, 0, sizeof(node->service.core.counters));
    node->busy_until_us = 0;
    node->is_up         = false;
    node->has_crashed   = true;
    node->down_us       = twin->now_us;
    node->is_greeting   = false;
    SKYT_Queue_Remove(&twin->queue, index);
    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfHello(twin, index));
}

void SKYT_Node_Restart(SKYT_Twin_t *twin, uint32_t index)
{
    (void)start(twin, index); /* a configuration that was accepted once is accepted again */
    SKYT_Node_SetSchedule(twin, index);
    SKYT_Hello_SetSky(twin, index);
    SKYT_Hello_Wake(twin, index);
    SKYT_Node_Poll(twin, index); /* the satellite greets at once */
    SKYT_Attack_Reboot(twin, index);
}
