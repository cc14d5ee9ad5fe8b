/**
 * @file
 * Record of the satellites that hosts ask for a share. Those that had it until lately are asked, as chunks may be there still. Before
 * a get misses a chunk, all satellites are asked that are late to hand it over.
 */
#include <string.h>

#include "twin_priv.h"

#define SERVER_BITS 32u

static uint32_t *asked_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t node)
{
    return &twin->asked[(size_t)(active - twin->active) * twin->node_count + node];
}

uint32_t SKYT_ShareRecord_Bit(const SKYT_Twin_t *twin, uint32_t chunk)
{
    return 1u << chunk % twin->config.servers % SERVER_BITS;
}

void SKYT_ShareRecord_Begin(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    (void)memset(asked_of(twin, active, 0), 0, twin->node_count * sizeof(*twin->asked));
}

void SKYT_ShareRecord_Note(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt)
{
    if (pkt->op == SKY_OP_GET)
    {
        *asked_of(twin, active, SKYT_NodeOf(twin, pkt->dst)) |= SKYT_ShareRecord_Bit(twin, pkt->chunk_id);
    }
}

void SKYT_ShareRecord_Share(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t node, uint32_t server)
{
    *asked_of(twin, active, node) |= SKYT_ShareRecord_Bit(twin, server);
}

/* ---- the first places ------------------------------------------------------------------------------------------------ */

static bool is_among(const SKY_Addr_t *found, uint32_t count, SKY_Addr_t satellite)
{
    uint32_t at = 0;

    while (at < count && !SKY_Addr_Equal(found[at], satellite))
    {
        ++at;
    }
    return at < count;
}

/* Return a chunk of a share that this satellite holds, or SKY_STORE_NONE if it holds none. */
static uint32_t held_of_share(const SKYT_Twin_t *twin, SKY_Addr_t satellite, uint32_t block, uint32_t share)
{
    const SKY_Store_t *store = &twin->nodes[SKYT_NodeOf(twin, satellite)].store;
    uint8_t            key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    const uint32_t entry  = SKY_Store_Find(store, SKYT_Content_Tenant(twin, block), key);
    uint32_t       cursor = 0;
    uint32_t       chunk  = 0;

    while (entry != SKY_STORE_NONE && SKY_Store_EachChunk(store, entry, &cursor, &chunk))
    {
        if (chunk % twin->config.servers == share)
        {
            return chunk;
        }
    }
    return SKY_STORE_NONE;
}

void SKYT_ShareRecord_Places(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, const SKY_Addr_t *found,
                             uint32_t count)
{
    const SKYT_Ground_t  *ground      = &twin->grounds[active->host - 1u];
    const SKY_Schedule_t *schedule    = &twin->schedule;
    const uint64_t        handover_us = (uint64_t)twin->config.handover_ms * US_PER_MS;
    const uint32_t        now         = SKY_Schedule_RowAt(schedule, twin->now_us);

    for (uint32_t row = now; active->kind == SKYT_OP_GET && row >= 1u && now - row <= SKY_HOST_BACK &&
                             (row == now || twin->now_us - SKY_Schedule_EndUs(schedule, row) < handover_us);
         --row)
    {
        const SKY_Addr_t satellite = SKYT_Content_Home(twin, row, active->block, active->version, share);
        const bool       is_known  = is_among(found, count, satellite) || SKY_Ground_IsLost(&ground->core, satellite);
        const uint32_t   chunk     = is_known ? SKY_STORE_NONE : held_of_share(twin, satellite, active->block, share);

        if (chunk != SKY_STORE_NONE)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NodeOf(twin, satellite), active->op, active->block, chunk,
                            "a host does not ask this satellite for a share that was there until lately, and partly is");
        }
    }
}

/* ---- a miss ---------------------------------------------------------------------------------------------------------- */

/* Return true if a share of this server belonged to the satellite in an earlier row. */
static bool had_it(const SKYT_Twin_t *twin, uint32_t server, SKY_Addr_t satellite)
{
    const uint32_t now = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    uint32_t       row = 1;

    while (row < now && !SKY_Addr_Equal(SKY_Schedule_Server(&twin->schedule, row, server), satellite))
    {
        ++row;
    }
    return row < now;
}

/* Return true if the host could know that a satellite is late. It cannot if the satellite is lost to the host, or was silent when
 * it was asked. */
static bool may_be_known(const SKYT_Ground_t *ground, uint32_t index)
{
    return !SKY_Ground_IsLost(&ground->core, SKYT_AddrOf(ground->twin, index)) && !ground->is_mute[index];
}

/* Return true if a satellite held the chunk all the time, and the host could know that it is late. */
static bool is_passed_over(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk, uint32_t index)
{
    const SKYT_Node_t *node = &twin->nodes[index];

    return had_it(twin, SKYT_Content_Server(twin, active->block, active->version, chunk), SKYT_AddrOf(twin, index)) &&
           node->is_up && node->up_us <= active->started_us &&
           SKYT_Use_TakenUs(twin, index, active->block) < active->started_us && node->service.core.schedule != NULL &&
           SKYT_Op_HasLeft(twin, index) && may_be_known(&twin->grounds[active->host - 1u], index) &&
           (*asked_of(twin, active, index) & SKYT_ShareRecord_Bit(twin, chunk)) == 0;
}

uint32_t SKYT_ShareRecord_PassedOver(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    uint32_t       holders[SKY_HOST_LATE];
    const uint32_t count = SKYT_Holders(twin, active->block, chunk, holders, SKY_HOST_LATE);

    for (uint32_t i = 0; i < count; ++i)
    {
        if (is_passed_over(twin, active, chunk, holders[i]))
        {
            return holders[i];
        }
    }
    return SKYT_NONE;
}

/* ---- stand-ins ------------------------------------------------------------------------------------------------------- */

bool SKYT_ShareRecord_IsPlace(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, SKY_Addr_t satellite)
{
    for (uint32_t round = 0; round <= active->core.block.rounds; ++round)
    {
        const SKY_HostPlace_t *place = &active->core.places[(size_t)round * twin->config.servers + share];

        if (place->plane == satellite.plane && place->slot == satellite.slot)
        {
            return true;
        }
    }
    return false;
}

bool SKYT_ShareRecord_IsKept(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t index)
{
    const bool       may_keep  = twin->config.layout == SKY_LAYOUT_HOP || twin->config.scheduled != SKYT_SCHEDULED_ALL;
    const uint32_t   server    = SKYT_Content_Server(twin, block, 0, chunk);
    const SKY_Addr_t satellite = SKYT_AddrOf(twin, index);
    const uint32_t   row       = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);

    return may_keep && !had_it(twin, server, satellite) &&
           !SKY_Addr_Equal(SKY_Schedule_Server(&twin->schedule, row, server), satellite);
}

/* Return true if a satellite was asked whether it is late when it had the block already, and says so itself. */
static bool was_asked(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t index)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    return ground->core.spare_count <= SKY_STANDINS_SPARES &&
           SKY_Service_HandoverLeft(&twin->nodes[index].service, twin->now_us) > 0u &&
           SKYT_Use_TakenUs(twin, index, active->block) < ground->spare_us[index];
}

/* Return true if a satellite stands in for another. In the layout hop, and without a schedule, it keeps that one's chunks. Else it must
 * say to hosts that ask it that it is late. */
static bool stands_in(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t server, uint32_t index)
{
    return !had_it(twin, server, SKYT_AddrOf(twin, index)) &&
           (twin->config.layout == SKY_LAYOUT_HOP || (SKYT_Op_HasLeft(twin, index) && !was_asked(twin, active, index)));
}

/* Return true if the host could not ask a holder of a chunk, which stands in for another, or was lost to the host. */
static bool is_out_of_place(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk, uint32_t index)
{
    const uint32_t   server    = SKYT_Content_Server(twin, active->block, active->version, chunk);
    const SKY_Addr_t satellite = SKYT_AddrOf(twin, index);

    if (SKYT_ShareRecord_IsPlace(twin, active, chunk % twin->config.servers, satellite))
    {
        return SKYT_Use_TakenUs(twin, index, active->block) >= active->started_us; /* the chunk may have come later */
    }
    for (uint32_t i = 0; i < active->core.attempts.row_count; ++i)
    {
        if (SKY_Addr_Equal(SKY_Schedule_Server(&twin->schedule, active->core.attempts.rows[i], server), satellite))
        {
            return (active->astray & SKYT_ShareRecord_Bit(twin, chunk)) != 0u; /* others stood in for the server */
        }
    }
    return !may_be_known(&twin->grounds[active->host - 1u], index) || stands_in(twin, active, server, index);
}

bool SKYT_ShareRecord_IsAtHand(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    uint32_t       holders[SKY_HOST_LATE];
    const uint32_t count = SKYT_Holders(twin, active->block, chunk, holders, SKY_HOST_LATE);
    bool           found = false;

    for (uint32_t i = 0; i < count && !found; ++i)
    {
        found = SKYT_ShareRecord_IsPlace(twin, active, chunk % twin->config.servers, SKYT_AddrOf(twin, holders[i])) &&
                SKYT_Use_TakenUs(twin, holders[i], active->block) < active->started_us;
    }
    return found;
}

bool SKYT_ShareRecord_IsAside(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];
    bool           found  = false;

    (void)SKY_Ground_Spares(&ground->core, active->aside_us);
    for (uint32_t node = 0; !found && node < twin->node_count; ++node)
    {
        for (uint32_t share = 0; !found && ground->core.aside[node] && share < twin->config.servers; ++share)
        {
            found = held_of_share(twin, SKYT_AddrOf(twin, node), active->block, share) != SKY_STORE_NONE &&
                    SKYT_Use_TakenUs(twin, node, active->block) < active->aside_us;
        }
    }
    return found;
}

bool SKYT_ShareRecord_IsStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    const uint32_t bit = SKYT_ShareRecord_Bit(twin, chunk);
    uint32_t       holders[SKY_HOST_LATE];
    uint32_t       count = 0;
    uint32_t       i     = 0;

    /* In the layout hop, and without a schedule, a stand-in of an earlier put may have kept its chunks, and with parity the later one may
     * have lost them since. */
    const bool may_keep = twin->config.layout == SKY_LAYOUT_HOP || twin->config.scheduled != SKYT_SCHEDULED_ALL;
    const bool is_kept  = twin->config.parity > 0u && may_keep;

    if (chunk != SKYT_NONE && (is_kept || active->at_stand_in || (twin->truth[active->block].astray & bit) != 0u))
    {
        count = SKYT_Holders(twin, active->block, chunk, holders, SKY_HOST_LATE);
    }
    while (i < count && (SKYT_Truth_IsAside(twin, active->block, holders[i]) || is_out_of_place(twin, active, chunk, holders[i])))
    {
        ++i;
    }
    return count > 0u && i == count;
}
