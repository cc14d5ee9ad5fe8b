/**
 * @file
 * Creation of a twin, and its loop: take the next event and handle it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twin_priv.h"

#define ACTIVE_MAX  4096u
#define HOSTS_MAX   64u
#define PACKETS_MAX (1u << 20)
#define TRAIN_MAX   65536u /* most shares, which have 16 bits in a request's number */

/* ---- creation -------------------------------------------------------------------------------------------------------- */

typedef struct
{
    const char *name;
    uint32_t    value, low, high;
} Range_t;

static bool is_sound(const SKYT_Config_t *c, char *why)
{
    const Range_t ranges[] = {
        {"planes", c->planes, 1, UINT16_MAX},
        {"slots", c->slots, 1, UINT16_MAX},
        {"layout", c->layout, SKY_LAYOUT_ROTATION, SKY_LAYOUT_ALL_PLANES},
        {"servers", c->servers, 1, SKY_PLACEMENT_SERVERS_MAX},
        {"servers", c->servers, 1, c->planes * c->slots},
        {"servers with parity", c->parity == 0 ? 1u : c->servers, 1, SKY_STRIPE_ROW_MAX},
        {"parity", c->parity, 0, c->servers - 1u},
        {"uplink", c->uplink, SKYT_UPLINK_DIRECT, SKYT_UPLINK_ENTRIES},
        {"hosts", c->hosts, 1, HOSTS_MAX},
        {"tenants", c->tenants, 1, c->quota_most == 0 ? UINT16_MAX : SKY_LIMIT_TENANTS},
        {"quota_most", c->quota_most, 0, SKY_STORE_PERCENT},
        {"suite", c->suite, SKY_SUITE_NONE, SKY_SUITE_BLAKE2B_PACKET},
        {"hang_ppm", c->hang_ppm, 0, PPM},
        {"cancel_ppm", c->cancel_ppm, 0, PPM},
        {"quota_reserved", c->quota_reserved, 0, c->quota_most},
        {"tenants x quota_reserved", c->tenants * c->quota_reserved, 0, SKY_STORE_PERCENT},
        {"slot_count", c->slot_count, SKY_STORE_SLOTS_MIN, SKY_STORE_SLOT_MAX},
        {"chunk_bytes", c->chunk_bytes, 8, c->slot_bytes},
        {"packet_bytes", c->packet_bytes, SKY_SERVICE_PACKET_MIN, SKY_LIMIT_PACKET_BYTES},
        {"credit", c->credit, 1, SKY_LIMIT_CHUNK_SET},
        {"active_max", c->active_max, 1, ACTIVE_MAX},
        {"active_max x servers", c->active_max * c->servers, 1, TRAIN_MAX},
        {"packets_max", c->packets_max, 1, PACKETS_MAX},
        {"planes x slots", c->planes * c->slots, 1, SKY_MAP_SATELLITES_MAX},
        {"hello_ms", c->hello_ms, 1, 1000u * SKY_MOST_HELLO_S},
        {"start_us", c->start_us == 0 ? 0u : 1u, 1, UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); ++i)
    {
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high)
        {
            (void)snprintf(why, SKYT_TEXT_BYTES, "%s is %u; allowed are %u to %u", ranges[i].name, ranges[i].value, ranges[i].low,
                           ranges[i].high);
            return false;
        }
    }
    return true;
}

/* Return the bytes of a bitmap of the largest block's chunks. */
static size_t have_bytes(const SKYT_Config_t *c)
{
    return (size_t)c->servers * SKY_LIMIT_CHUNK_SET / 8u;
}

/** Memory that lasts as long as the twin. */
typedef struct SKYT_Owned
{
    struct SKYT_Owned *next;
    long double        memory[]; /* aligned as malloc does */
} Owned_t;

void *SKYT_Take(SKYT_Twin_t *twin, size_t count, size_t bytes)
{
    Owned_t *owned = bytes == 0 || count <= SIZE_MAX / 2u / bytes ? calloc(1, sizeof(*owned) + count * bytes) : NULL;

    if (owned == NULL)
    {
        twin->is_short = true;
        return NULL;
    }
    owned->next = twin->owned;
    twin->owned = owned;
    return owned->memory;
}

static bool take_memory(SKYT_Twin_t *twin)
{
    const SKYT_Config_t *c     = &twin->config;
    const SKY_StoreCfg_t store = {c->slot_bytes, c->slot_count};
    const size_t         nodes = twin->node_count;
    const size_t         train = c->packet_bytes > c->chunk_bytes ? c->packet_bytes : c->chunk_bytes;
    const size_t         rows  = (size_t)c->active_max * SKYT_Content_RowsMost(c);

    twin->nodes       = SKYT_Take(twin, nodes, sizeof(*twin->nodes));
    twin->stores      = SKYT_Take(twin, nodes, SKY_Store_MemoryBytes(&store));
    twin->maps        = SKYT_Take(twin, nodes, nodes * SKY_MAP_SATELLITE_BYTES);
    twin->links       = SKYT_Take(twin, nodes * SKYT_LINKS, sizeof(*twin->links));
    twin->entries     = SKYT_Take(twin, nodes, sizeof(*twin->entries));
    twin->packets     = SKYT_Take(twin, c->packets_max, sizeof(*twin->packets));
    twin->packet_data = SKYT_Take(twin, c->packets_max, c->packet_bytes);
    twin->grounds     = SKYT_Take(twin, c->hosts, sizeof(*twin->grounds));
    twin->active      = SKYT_Take(twin, c->active_max, sizeof(*twin->active));
    twin->active_free = SKYT_Take(twin, c->active_max, sizeof(*twin->active_free));
    twin->haves       = SKYT_Take(twin, c->active_max, have_bytes(c));
    twin->asked       = SKYT_Take(twin, c->active_max * nodes, sizeof(*twin->asked));
    twin->buffers     = SKYT_Take(twin, c->active_max, c->block_bytes);
    twin->scratch     = SKYT_Take(twin, train, 1);
    twin->scratch2    = SKYT_Take(twin, train, 1);
    twin->scratch3    = SKYT_Take(twin, train, 1);
    twin->scratch4    = SKYT_Take(twin, train, 1);
    twin->parities    = SKYT_Take(twin, c->active_max, SKYT_Content_ParityBytes(c));
    twin->rows_of     = SKYT_Take(twin, rows, sizeof(*twin->rows_of));
    twin->held_rows   = SKYT_Take(twin, rows, sizeof(*twin->held_rows));
    return !twin->is_short &&
           (c->suite == SKY_SUITE_NONE || (SKYT_Keys_Init(twin) && SKYT_Mission_Init(twin) && SKYT_Attack_Init(twin))) &&
           SKYT_Pace_Init(twin) && SKYT_Queue_Init(&twin->queue, SKYT_Events(twin));
}

static bool set_up(SKYT_Twin_t *twin, char *why)
{
    const SKYT_Config_t *c = &twin->config;

    SKYT_Network_Init(twin);
    for (uint32_t i = 0; i < c->active_max; ++i)
    {
        twin->active_free[i]   = c->active_max - 1u - i;
        twin->active[i].buffer = twin->buffers + (size_t)i * c->block_bytes;
        twin->active[i].have   = twin->haves + (size_t)i * have_bytes(c);
    }
    twin->active_free_count = c->active_max;
    for (uint32_t ground = 0; ground < c->hosts; ++ground)
    {
        if (!SKYT_Ground_Init(twin, ground))
        {
            return false;
        }
    }
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        if (!SKYT_Node_Init(twin, node))
        {
            (void)snprintf(why, SKYT_TEXT_BYTES, "slot_bytes %u do not go with packet_bytes %u, or are too many", c->slot_bytes,
                           c->packet_bytes);
            return false;
        }
    }
    return true;
}

SKYT_Twin_t *SKYT_Create(const SKYT_Config_t *config, char *why)
{
    SKYT_Twin_t *twin;

    if (!is_sound(config, why))
    {
        return NULL;
    }
    (void)snprintf(why, SKYT_TEXT_BYTES, "not enough memory");
    twin = calloc(1, sizeof(*twin));
    if (twin == NULL)
    {
        return NULL;
    }
    twin->config      = *config;
    twin->node_count  = config->planes * config->slots;
    twin->now_us      = config->start_us;
    twin->random      = config->seed;
    twin->packet_free = SKYT_NONE;
    twin->arriving    = SKYT_NONE;
    (void)SKY_Torus_Init(&twin->torus, config->planes, config->slots, config->seam_cut != 0); /* the configuration was checked */
    if (!take_memory(twin) || !set_up(twin, why))
    {
        SKYT_Destroy(twin);
        return NULL;
    }
    return twin;
}

void SKYT_Destroy(SKYT_Twin_t *twin)
{
    Owned_t *next = NULL;

    if (twin == NULL)
    {
        return;
    }
    if (twin->keys != NULL)
    {
        SKYT_Keys_Free(twin);
    }
    SKYT_Queue_Free(&twin->queue);
    for (Owned_t *owned = twin->owned; owned != NULL; owned = next)
    {
        next = owned->next;
        free(owned);
    }
    free(twin);
}

/* ---- what it is to do ------------------------------------------------------------------------------------------------ */

static void set_row_event(SKYT_Twin_t *twin)
{
    const uint64_t end_us = SKY_Schedule_EndUs(&twin->schedule, twin->row);

    if (end_us != UINT64_MAX)
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfScript(twin, 2), end_us);
    }
}

bool SKYT_SetRows(SKYT_Twin_t *twin, const uint32_t *time_ms, const int32_t *plane, const int32_t *slot, uint32_t count)
{
    twin->rows = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->rows));
    if (twin->rows == NULL)
    {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        twin->rows[i].time_ms      = time_ms[i];
        twin->rows[i].centre.plane = plane[i];
        twin->rows[i].centre.slot  = slot[i];
    }
    if (!SKY_Schedule_Init(&twin->schedule, &twin->torus, (SKY_LayoutId_t)twin->config.layout, twin->config.servers, twin->rows,
                           count, twin->config.start_us))
    {
        return false;
    }
    if (twin->config.scheduled != SKYT_SCHEDULED_ALL &&
        (count != 1u || !SKY_Schedule_Init(&twin->window, &twin->torus, (SKY_LayoutId_t)twin->config.layout, twin->config.servers,
                                           twin->rows, count, 0)))
    {
        return false;
    }
    twin->row = 1;
    set_row_event(twin);
    for (uint32_t ground = 0; ground < twin->config.hosts; ++ground)
    {
        SKYT_Ground_SetSeen(twin, ground);
    }
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        SKYT_Node_SetSchedule(twin, node);
        SKYT_Node_Poll(twin, node);
    }
    return true;
}

bool SKYT_AddBlocks(SKYT_Twin_t *twin, const SKYT_Block_t *blocks, uint32_t count)
{
    twin->blocks = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->blocks));
    twin->truth  = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->truth));
    if (twin->is_short)
    {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        twin->blocks[i] = blocks[i];
        if (blocks[i].block_len == 0 || blocks[i].block_len > twin->config.block_bytes ||
            blocks[i].epoch > twin->schedule.count ||
            SKYT_Content_Total(twin, i) > (uint64_t)SKY_LIMIT_CHUNK_SET * twin->config.servers)
        {
            return false;
        }
        twin->truth[i].epoch = blocks[i].epoch;
    }
    twin->block_count = count;
    return SKYT_Use_Init(twin) && SKYT_Words_Init(twin) && SKYT_Rows_Init(twin);
}

bool SKYT_AddOps(SKYT_Twin_t *twin, const SKYT_Op_t *ops, uint32_t count)
{
    twin->ops     = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->ops));
    twin->results = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->results));
    if (twin->is_short || !SKYT_Register_Init(twin, count))
    {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        const uint64_t earliest_us = i == 0 ? twin->now_us : ops[i - 1u].time_us;

        if (ops[i].time_us < earliest_us || ops[i].kind < SKYT_OP_PUT || ops[i].kind > SKYT_OP_PREFETCH ||
            ops[i].block >= twin->block_count || ops[i].host == 0 || ops[i].host > twin->config.hosts ||
            ops[i].deadline_ms == 0 || ops[i].epoch > twin->schedule.count)
        {
            return false;
        }
        twin->ops[i] = ops[i];
    }
    twin->op_count = count;
    if (count > 0)
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfScript(twin, 0), ops[0].time_us);
    }
    return true;
}

static bool is_fault_sound(const SKYT_Twin_t *twin, const SKYT_Fault_t *fault, uint64_t earliest_us)
{
    const bool is_model = fault->kind == SKYT_FAULT_MODEL;
    const bool has_link = is_model ? fault->link < SKYT_LINKS : fault->link < SKY_ISL_COUNT;

    if ((is_model && fault->model.attack_ppm != 0 && twin->config.suite == SKY_SUITE_NONE) || fault->time_us < earliest_us ||
        fault->kind < SKYT_FAULT_MODEL || fault->kind > SKYT_FAULT_DROP)
    {
        return false;
    }
    if (fault->node >= twin->node_count)
    {
        return is_model && fault->node == SKYT_ALL;
    }
    if (is_model)
    {
        return has_link;
    }
    return fault->kind != SKYT_FAULT_CUT || (has_link && SKYT_Network_Neighbour(twin, fault->node, fault->link) != SKYT_NONE);
}

bool SKYT_AddFaults(SKYT_Twin_t *twin, const SKYT_Fault_t *faults, uint32_t count)
{
    twin->faults = SKYT_Take(twin, (size_t)count + 1u, sizeof(*twin->faults));
    if (twin->faults == NULL)
    {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        if (!is_fault_sound(twin, &faults[i], i == 0 ? twin->now_us : faults[i - 1u].time_us))
        {
            return false;
        }
        twin->faults[i] = faults[i];
        if (faults[i].kind == SKYT_FAULT_CLOCK && twin->nodes[faults[i].node].late == NULL)
        {
            SKY_Schedule_t *late = SKYT_Take(twin, 1, sizeof(*late));

            if (late == NULL)
            {
                return false;
            }
            *late                            = twin->schedule;
            twin->nodes[faults[i].node].late = late;
        }
    }
    twin->fault_count = count;
    if (count > 0)
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfScript(twin, 1), faults[0].time_us);
    }
    return true;
}

void SKYT_Break(SKYT_Twin_t *twin, SKYT_Break_t what)
{
    twin->broken = what;
    for (uint32_t node = 0; what == SKYT_BREAK_ROUTE && node < twin->node_count; ++node)
    {
        twin->nodes[node].core.router.map = NULL;
    }
    for (uint32_t host = 0; what == SKYT_BREAK_GULLIBLE && host < twin->config.hosts; ++host)
    {
        twin->grounds[host].core.sky.parity = 0;
    }
}

/* ---- the sky --------------------------------------------------------------------------------------------------------- */

void SKYT_SetLinksDown(SKYT_Twin_t *twin, const uint8_t *down)
{
    twin->sky_links_down = 0;
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const SKY_Addr_t addr = SKYT_AddrOf(twin, node);

        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const bool is_down = down[(size_t)node * SKY_ISL_COUNT + link] != 0;
            const bool is_seam =
                (link == SKY_LINK_NORTH && addr.plane == 1u) || (link == SKY_LINK_SOUTH && addr.plane == twin->config.planes);

            SKYT_Network_Mark(twin, SKYT_LinkOf(twin, node, link));
            SKYT_LinkOf(twin, node, link)->sky_down = is_down;
            twin->sky_links_down += is_down && !is_seam ? 1u : 0u;
        }
    }
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        if (twin->nodes[node].is_up)
        {
            SKYT_Hello_SetSky(twin, node);
            SKYT_Node_Run(twin, node);
        }
    }
}

bool SKYT_SetEntries(SKYT_Twin_t *twin, const uint32_t *nodes, uint32_t count)
{
    if (count > twin->node_count)
    {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        if (nodes[i] >= twin->node_count)
        {
            return false;
        }
        twin->entries[i] = nodes[i];
    }
    twin->entry_count = count;
    for (uint32_t ground = 0; twin->row > 0u && ground < twin->config.hosts; ++ground)
    {
        SKYT_Ground_SetSeen(twin, ground);
    }
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------------------------------- */

static uint64_t row_us(const SKYT_Twin_t *twin)
{
    const uint64_t from_us = twin->schedule.epoch_us + (uint64_t)twin->rows[twin->row - 1u].time_ms * US_PER_MS;

    return twin->row_moved_us > from_us ? twin->row_moved_us - from_us : 0;
}

static void next_row(SKYT_Twin_t *twin)
{
    const uint64_t took_us = row_us(twin);

    twin->counters.handover_us += took_us;
    twin->counters.handover_most_us = took_us > twin->counters.handover_most_us ? took_us : twin->counters.handover_most_us;
    ++twin->row;
    ++twin->counters.handovers;
    SKYT_Digest(twin, twin->row, NULL, 0);
    set_row_event(twin);
    SKYT_Listen_Row(twin);
}

static void see_to(SKYT_Twin_t *twin, uint32_t id)
{
    const uint32_t first_ground = SKYT_EventOfGround(twin, 0);
    const uint32_t first_active = SKYT_EventOfActive(twin, 0);
    const uint32_t script       = SKYT_EventOfScript(twin, 0);
    const uint32_t first_hello  = SKYT_EventOfHello(twin, 0);
    const uint32_t first_packet = SKYT_EventOfPacket(twin, 0);

    SKYT_Pace_Step(twin, id < first_ground ? id : SKYT_NONE,
                   id >= first_ground && id < first_active ? SKYT_Pace_OpOf(twin, id - first_ground) : SKYT_NONE, NULL, 0);
    if (id == SKYT_EventOfMission(twin))
    {
        SKYT_Mission_Run(twin);
    }
    else if (id >= first_packet)
    {
        SKYT_Network_Arrive(twin, id - first_packet);
    }
    else if (id >= first_hello)
    {
        SKYT_Digest(twin, id, NULL, 0);
        SKYT_Hello_Run(twin, id - first_hello);
    }
    else if (id < first_ground)
    {
        SKYT_Digest(twin, id, NULL, 0);
        SKYT_Node_Run(twin, id);
    }
    else if (id < first_active)
    {
        SKYT_Digest(twin, id, NULL, 0);
        SKYT_Ground_Run(twin, id - first_ground);
    }
    else if (id < script)
    {
        SKYT_Op_Due(twin, id - first_active);
    }
    else if (id == script)
    {
        SKYT_Op_Next(twin);
    }
    else if (id == script + 1u)
    {
        SKYT_Fault_Next(twin);
    }
    else
    {
        next_row(twin);
    }
}

bool SKYT_Run(SKYT_Twin_t *twin, uint64_t until_us)
{
    SKYT_Event_t event;

    SKYT_Assert_Watch(twin);
    while (twin->stopped == SKYT_STOP_NOT && SKYT_Queue_Take(&twin->queue, until_us, &event))
    {
        twin->now_us = event.time_us;
        ++twin->counters.events;
        see_to(twin, event.id);
    }
    if (twin->stopped != SKYT_STOP_NOT)
    {
        return false;
    }
    twin->now_us = until_us > twin->now_us ? until_us : twin->now_us;
    SKYT_Check_Packets(twin);
    return twin->stopped == SKYT_STOP_NOT;
}

/* ---- what came of it ------------------------------------------------------------------------------------------------- */

void SKYT_Counters(const SKYT_Twin_t *twin, SKYT_Counters_t *counters)
{
    *counters         = twin->counters;
    counters->now_us  = twin->now_us;
    counters->stopped = (uint64_t)twin->stopped;
    SKYT_Keys_Count(twin, counters);
    for (uint32_t i = 0; i < twin->node_count; ++i)
    {
        const SKYT_Node_t *node = &twin->nodes[i];

        counters->migrated_chunks += node->migrated + node->service.core.counters.migrated_out;
        counters->evicted_chunks += node->evicted + node->store.counters.evicted_chunks;
        counters->expired_parts += node->expired + node->store.counters.expired_partial;
        counters->stored_chunks += node->store.counters.chunks - node->store.counters.partial;
    }
}

const SKYT_Result_t *SKYT_Results(const SKYT_Twin_t *twin, uint32_t *count)
{
    *count = twin->op_count;
    return twin->results;
}

bool SKYT_Violation(const SKYT_Twin_t *twin, uint32_t index, SKYT_Violation_t *violation)
{
    if (index >= twin->violation_count)
    {
        return false;
    }
    *violation = twin->violations[index];
    return true;
}
