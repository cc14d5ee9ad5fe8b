/**
 * @file
 * Truth about each block: whether it was put, and whether anything has happened since that explains a miss. Chunks that a crash or an
 * eviction takes are seen when they go, so nothing has to be assumed.
 */
#include "twin_priv.h"

#define HOLDERS_MAX 8u

void SKYT_Truth_Taint(SKYT_Twin_t *twin, uint32_t block, SKYT_Cause_t cause)
{
    if (block != SKYT_NONE)
    {
        twin->truth[block].taint |= SKYT_BIT(cause);
        twin->truth[block].fresh |= SKYT_BIT(cause);
        if (cause == SKYT_CAUSE_EVICTED)
        {
            SKYT_Register_MadeRoom(twin, block);
        }
    }
}

/* ---- chunks that wait ------------------------------------------------------------------------------------------------ */

bool SKYT_Truth_IsAside(const SKYT_Twin_t *twin, uint32_t block, uint32_t node)
{
    const uint32_t epoch = SKYT_Use_Epoch(twin, node, block);

    return epoch != twin->truth[block].epoch && epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
}

uint32_t SKYT_Truth_Holder(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, bool aside)
{
    uint32_t       holders[HOLDERS_MAX];
    const uint32_t count = SKYT_Holders(twin, block, chunk, holders, HOLDERS_MAX);

    for (uint32_t i = 0; i < count; ++i)
    {
        if (SKYT_Truth_IsAside(twin, block, holders[i]) == aside)
        {
            return holders[i];
        }
    }
    return SKYT_NONE;
}

/* Return true if a chunk is held only by satellites that keep it for a later row: the window's copy of the block is not whole. */
static bool any_waits(const SKYT_Twin_t *twin, uint32_t block)
{
    const uint32_t row   = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    bool           waits = false;
    uint32_t       holders[HOLDERS_MAX];

    for (uint32_t chunk = 0; !waits && chunk < SKYT_Content_Total(twin, block); ++chunk)
    {
        const uint32_t count = SKYT_Holders(twin, block, chunk, holders, HOLDERS_MAX);

        waits = count > 0;
        for (uint32_t i = 0; waits && i < count; ++i)
        {
            waits = SKYT_Use_Epoch(twin, holders[i], block) > row;
        }
    }
    return waits;
}

/* ---- chunks that go -------------------------------------------------------------------------------------------------- */

void SKYT_Truth_Crash(SKYT_Twin_t *twin, uint32_t node)
{
    const SKY_Store_t *store  = &twin->nodes[node].store;
    uint32_t           cursor = 0;
    SKY_BlockInfo_t    info;

    while (SKY_Store_NextBlock(store, &cursor, &info))
    {
        const uint32_t block  = SKYT_Content_BlockOf(twin, info.tenant, info.key);
        uint32_t       at     = 0;
        uint32_t       chunk  = 0;
        uint32_t       shares = 0;

        while (SKY_Store_EachChunk(store, cursor - 1u, &at, &chunk))
        {
            shares |= SKYT_ShareRecord_Bit(twin, chunk);
        }
        SKYT_Truth_Taint(twin, block, SKYT_CAUSE_CRASHED);
        if (block != SKYT_NONE)
        {
            SKYT_Register_Gone(twin, block, shares);
        }
    }
}

void SKYT_Truth_Put(SKYT_Twin_t *twin, uint32_t node, uint64_t evicted_before)
{
    const SKY_Store_t *store = &twin->nodes[node].store;
    const bool         is_it = store->counters.evicted_blocks != evicted_before; /* else they went with an earlier put */

    for (uint32_t i = 0; is_it && i < store->evicted_count; ++i)
    {
        SKYT_Truth_Taint(twin, SKYT_Content_BlockOf(twin, store->evicted[i].tenant, store->evicted[i].key), SKYT_CAUSE_EVICTED);
    }
}

void SKYT_Truth_NoRoom(SKYT_Twin_t *twin, const SKY_Packet_t *pkt)
{
    SKYT_Truth_Taint(twin, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key), SKYT_CAUSE_EVICTED);
}

uint32_t SKYT_Truth_Scrutinized(const SKYT_Twin_t *twin, uint32_t node)
{
    const SKY_Scrub_t  *scrub  = &twin->nodes[node].service.scrub;
    const SKY_Census_t *census = &twin->nodes[node].service.census;
    const SKY_Store_t  *store  = &twin->nodes[node].store;
    uint32_t            cursor = scrub->cursor;
    uint32_t            first  = 0;
    SKY_BlockInfo_t     info;

    if (twin->config.parity > 0u)
    {
        const bool judges =
            census->state == SKY_CENSUS_ASKING && (census->waiting_count == 0 || twin->now_us >= census->until_us);

        return judges ? SKYT_Content_BlockOf(twin, census->block.tenant, census->block.key) : SKYT_NONE;
    }
    if (twin->config.scrub_ms == 0 || twin->now_us < scrub->next_us ||
        (!SKY_Store_NextBlock(store, &cursor, &info) && !SKY_Store_NextBlock(store, &first, &info)))
    {
        return SKYT_NONE;
    }
    return SKYT_Content_BlockOf(twin, info.tenant, info.key);
}

void SKYT_Truth_Surveyed(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Node_t          *here     = &twin->nodes[node];
    const SKY_Schedule_t *schedule = here->service.core.schedule;
    const bool            is_empty = here->store.counters.chunks == 0;

    if (is_empty || (schedule != NULL && SKY_Service_HandoverLeft(&here->service, twin->now_us) == 0))
    {
        here->cleared_us  = twin->now_us;
        here->cleared_row = is_empty ? SKYT_NONE : SKY_Schedule_RowAt(schedule, twin->now_us);
    }
}

/* Check that the scrub may purge a block. The missing chunks may be on their way if a satellite that was not asked in this row has
 * them, or had something left then. */
static void check_survey(SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    const SKY_Schedule_t *schedule = twin->nodes[node].service.core.schedule;

    if (schedule == NULL)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, block, SKYT_NONE,
                        "the scrub purged a block by the window alone, although hosts may have others");
        return;
    }
    const uint32_t row     = SKY_Schedule_RowAt(schedule, twin->now_us);
    const uint64_t from_us = schedule->epoch_us + (uint64_t)schedule->rows[row - 1u].time_ms * US_PER_MS;

    for (uint32_t other = 0; other < twin->node_count; ++other)
    {
        const SKYT_Node_t *asked = &twin->nodes[other];

        if (other != node && (asked->cleared_us < from_us || (asked->cleared_row != SKYT_NONE && asked->cleared_row != row)))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, other, SKYT_NONE, block, SKYT_NONE,
                            "the scrub purged a block although this satellite has not said that it has nothing left");
            return;
        }
    }
}

/* Check that a satellite has not destroyed a block with parity, which could be decoded until it purged what it held. Leftovers of an earlier
 * put may go. A hard fault is no reason: what it knows for sure counts. */
static void judge_destroyed(SKYT_Twin_t *twin, uint32_t node, uint32_t block, bool could_be_had, const char *text)
{
    const SKYT_Truth_t *truth = &twin->truth[block];

    if (could_be_had && !SKYT_Rows_CanBeHad(twin, block) && truth->is_held && truth->putting == 0 && truth->purging == 0 &&
        (truth->taint & (SKYT_BIT(SKYT_CAUSE_PURGED) | SKYT_BIT(SKYT_CAUSE_REPLACED))) == 0)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, block, SKYT_NONE, text);
    }
}

/* A share that a fault keeps from moving looks to the scrub like one that is gone. */
void SKYT_Truth_Scrubbed(SKYT_Twin_t *twin, uint32_t node, uint32_t block, bool could_be_had)
{
    check_survey(twin, node, block);
    if (block == SKYT_NONE)
    {
        return;
    }
    const SKYT_Truth_t *truth    = &twin->truth[block];
    const uint64_t      back_us  = SKYT_SETTLING_US + 2u * US_PER_MS * twin->config.scrub_ms;
    const uint64_t      since_us = twin->now_us > back_us ? twin->now_us - back_us : 0;

    const bool is_aside = twin->config.layout == SKY_LAYOUT_HOP && truth->astray != 0u; /* a stand-in keeps its share */

    if (twin->config.parity > 0u)
    {
        judge_destroyed(twin, node, block, could_be_had, "the scrub purged a block that could be decoded");
    }
    else if (truth->is_held && truth->taint == 0 && !SKYT_Fault_Since(&twin->hard, since_us) && !any_waits(twin, block) &&
             !is_aside)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, block, SKYT_NONE, "the scrub purged a whole block");
    }
    SKYT_Truth_Taint(twin, block, SKYT_CAUSE_SCRUBBED);
}

/* Return true if a fault explains the silence that a host sees, as with an operation that expires. */
static bool is_silence_explained(const SKYT_Twin_t *twin)
{
    const uint64_t since_us = twin->now_us > SKYT_SETTLING_US ? twin->now_us - SKYT_SETTLING_US : 0;

    return twin->sky_links_down > 0 || SKYT_Fault_Since(&twin->hard, since_us) || SKYT_Fault_Since(&twin->lossy, since_us);
}

static void judge_loss(SKYT_Twin_t *twin, const SKYT_Ground_t *ground, uint32_t index)
{
    const SKYT_Node_t *node = &twin->nodes[index];

    if (ground->answered_us[index] == ground->core.inquiry.began_us)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LOST, index, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a ground host calls a satellite lost that has answered it");
    }
    else if (node->is_up && node->up_us < ground->core.inquiry.began_us && !is_silence_explained(twin))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LOST, index, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a ground host calls a satellite lost without a fault that explains it");
    }
}

void SKYT_Truth_Lost(SKYT_Twin_t *twin, const SKYT_Ground_t *ground)
{
    const SKY_GroundInquiry_t *inquiry = &ground->core.inquiry;
    bool                       heard   = false;

    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_Addr_t satellite = inquiry->asks[i].satellite;
        const uint32_t   node      = SKYT_NodeOf(twin, satellite);

        heard = heard || ground->answered_us[node] == inquiry->began_us;
        if (SKY_Ground_IsLost(&ground->core, satellite) && ground->core.reach.satellites[node].asked_us == twin->now_us)
        {
            judge_loss(twin, ground, node);
        }
    }
    if (ground->core.reach.pause_us > 0u && (heard || !is_silence_explained(twin)))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LOST, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a ground host hears nobody without a fault that explains it");
    }
    if (ground->core.reach.lost_count >= twin->node_count)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LOST, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a ground host calls all satellites lost");
    }
}

void SKYT_Truth_Held(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t began_us)
{
    const SKYT_Truth_t *truth = &twin->truth[active->block];

    if (truth->putting > 0 || truth->put_us >= began_us)
    {
        return;
    }
    if (twin->config.parity > 0u)
    {
        if (!SKYT_Rows_WereHeld(twin, active))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_HELD, SKYT_NONE, active->op, active->block, SKYT_NONE,
                            "a ground host takes a block for whole, but too many chunks of a row are held nowhere");
        }
        return;
    }
    for (uint32_t chunk = 0; chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        const bool was_nowhere = (active->have[chunk / 8u] & (0x80u >> chunk % 8u)) != 0;
        uint32_t   holder;

        if (was_nowhere && SKYT_Holders(twin, active->block, chunk, &holder, 1) == 0)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_HELD, SKYT_NONE, active->op, active->block, chunk,
                            "a ground host takes a block for whole, but this chunk is held nowhere");
            return;
        }
    }
}

/* Return true if somebody else may have put or purged the block meanwhile, so that packets of that may still be about. */
static bool is_disturbed(const SKYT_Truth_t *truth, uint64_t began_us)
{
    const bool is_put    = truth->put_us != 0 && truth->put_us + SKYT_PURGE_ECHO_US >= began_us;
    const bool is_purged = truth->purged_us != 0 && truth->purged_us + SKYT_PURGE_ECHO_US >= began_us;

    return truth->putting > 0 || truth->purging > 1u || is_put || is_purged;
}

uint32_t SKYT_Truth_Unpurged(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    const uint32_t share = chunk % twin->config.servers;

    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const SKY_Addr_t satellite = SKYT_AddrOf(twin, node);

        if (SKYT_Truth_Holds(twin, node, active->block, chunk) && !SKYT_Truth_IsAside(twin, active->block, node) &&
            !SKY_Ground_IsLost(&twin->grounds[active->host - 1u].core, satellite) &&
            (twin->config.layout != SKY_LAYOUT_HOP || SKYT_ShareRecord_IsPlace(twin, active, share, satellite)))
        {
            return node;
        }
    }
    return SKYT_NONE;
}

/* A purge does not reach what is on its way from one satellite to another. To make way for another block it is enough that the share is
 * gone that a look-up asks for first. */
void SKYT_Truth_Cleared(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth       = &twin->truth[active->block];
    const uint64_t      since_us    = active->started_us > SKYT_SETTLING_US ? active->started_us - SKYT_SETTLING_US : 0;
    const bool          is_way_made = !active->is_lazy && active->op % 2u == 1u;
    const uint32_t      share       = SKYT_Content_Asked(twin, active->block, 0) % twin->config.servers;

    if (!active->is_calm || SKYT_Op_IsLate(twin) || SKYT_Fault_Since(&twin->hard, since_us) ||
        is_disturbed(truth, active->started_us) || truth->astray != 0u || SKYT_Version_IsValue(twin, active->block))
    {
        return;
    }
    if (twin->config.parity > 0u)
    {
        if (!SKYT_Rows_ArePurged(twin, active))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_HELD, SKYT_NONE, active->op, active->block, SKYT_NONE,
                            "a ground host takes a block for purged that can still be decoded");
        }
        return;
    }
    for (uint32_t chunk = 0; chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        const uint32_t holder = SKYT_Truth_Unpurged(twin, active, chunk);

        if (holder != SKYT_NONE && !(is_way_made && chunk % twin->config.servers != share))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_HELD, holder, active->op, active->block, chunk,
                            "a ground host takes a block for purged, but this satellite holds a chunk");
            return;
        }
    }
}

void SKYT_Truth_Rumoured(SKYT_Twin_t *twin, uint32_t node, uint32_t block, bool could_be_had)
{
    if (block == SKYT_NONE)
    {
        return;
    }
    const SKYT_Truth_t *truth = &twin->truth[block];

    if (twin->config.parity > 0u)
    {
        judge_destroyed(twin, node, block, could_be_had, "gossip purged a block that could be decoded");
    }
    else if (truth->is_held && truth->taint == 0 && truth->putting == 0)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, block, SKYT_NONE, "gossip purged a whole block");
    }
    if (twin->now_us < SKYT_Use_PutUntil(twin, node, block))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, block, SKYT_NONE,
                        "gossip purged a block of which a put still went on");
    }
    SKYT_Truth_Taint(twin, block, SKYT_CAUSE_EVICTED);
}

bool SKYT_Truth_Holds(const SKYT_Twin_t *twin, uint32_t node, uint32_t block, uint32_t chunk)
{
    const SKY_Store_t *store = &twin->nodes[node].store;
    uint8_t            key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    return SKY_Store_Has(store, SKY_Store_Find(store, SKYT_Content_Tenant(twin, block), key), chunk);
}

uint32_t SKYT_Holders(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t *nodes, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t node = 0; node < twin->node_count && count < most; ++node)
    {
        if (SKYT_Truth_Holds(twin, node, block, chunk))
        {
            nodes[count++] = node;
        }
    }
    return count;
}
