/**
 * @file
 * Ground hosts' knowledge of satellites: which are lost or late to hand over, and where servers are then. twin_reach_questions.c asks them.
 */
#include <stdlib.h>

#include "twin_priv.h"

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool SKYT_Reach_Init(SKYT_Ground_t *ground)
{
    static const SKY_ReachCfg_t times = {SKY_HOST_LOST_US, SKY_HOST_DOUBT_US, SKY_HOST_PAUSE_FIRST_US, SKY_HOST_PAUSE_MAX_US};

    const SKYT_Twin_t *twin   = ground->twin;
    SKY_Shares_t      *shares = &ground->shares;

    ground->known   = calloc(twin->node_count, sizeof(*ground->known));
    ground->lost    = calloc(twin->node_count, sizeof(*ground->lost));
    ground->late    = calloc(twin->node_count, sizeof(*ground->late));
    ground->spares  = calloc(twin->node_count, sizeof(*ground->spares));
    ground->placed  = calloc(twin->config.servers, sizeof(*ground->placed));
    ground->room    = calloc(twin->node_count, sizeof(*ground->room));
    ground->aside   = calloc(twin->node_count, sizeof(*ground->aside));
    shares->found   = calloc((size_t)twin->config.servers * SKY_PLACES_MAX, sizeof(*shares->found));
    shares->counts  = calloc(twin->config.servers, sizeof(*shares->counts));
    shares->homes   = calloc(twin->config.servers, sizeof(*shares->homes));
    shares->servers = ground->placed;
    shares->cells   = ground->room;
    if (ground->known == NULL || ground->lost == NULL || ground->late == NULL || ground->placed == NULL || ground->room == NULL ||
        ground->aside == NULL || ground->spares == NULL || shares->found == NULL || shares->counts == NULL ||
        shares->homes == NULL)
    {
        return false;
    }
    SKY_Reach_Init(&ground->reach, &times, &twin->torus, ground->known, ground->lost);
    SKY_Handovers_Init(&ground->handovers);
    ground->late_first = 1;
    return SKYT_ReachQuestions_Init(ground);
}

void SKYT_Reach_Free(SKYT_Ground_t *ground)
{
    free(ground->known);
    free(ground->lost);
    free(ground->late);
    free(ground->spares);
    free(ground->placed);
    free(ground->room);
    free(ground->aside);
    free(ground->shares.found);
    free(ground->shares.counts);
    free(ground->shares.homes);
    SKYT_ReachQuestions_Free(ground);
}

/* ---- where satellites are -------------------------------------------------------------------------------------------- */

static SKY_Satellites_t lost_of(const SKYT_Ground_t *ground)
{
    const SKY_Satellites_t lost = {ground->reach.lost, ground->reach.lost_count};

    return lost;
}

bool SKYT_Reach_IsLost(const SKYT_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_Satellites_t lost = lost_of(ground);

    return SKY_Satellites_Has(&lost, satellite);
}

/* Return the satellite to send to, or SKYT_NONE if there is none. */
static uint32_t find_entry(const SKYT_Ground_t *ground, SKY_Addr_t target)
{
    const SKYT_Twin_t *twin      = ground->twin;
    uint32_t           best      = SKYT_NONE;
    uint32_t           best_hops = UINT32_MAX;

    if (twin->config.uplink == SKYT_UPLINK_DIRECT)
    {
        return SKYT_NodeOf(twin, target);
    }
    if (twin->config.uplink == SKYT_UPLINK_CENTRE)
    {
        const SKY_Satellites_t lost   = lost_of(ground);
        const SKY_Addr_t       centre = SKY_Schedule_Centre(&twin->schedule, twin->row);
        SKY_Addr_t             entry  = centre;

        SKY_StandIns_Replace(&twin->torus, centre, &lost, &entry, 1, ground->room);
        return SKYT_NodeOf(twin, entry);
    }
    for (uint32_t i = 0; i < twin->entry_count; ++i)
    {
        const SKY_Addr_t entry = SKYT_AddrOf(twin, twin->entries[i]);
        const uint32_t   hops  = SKY_Torus_Hops(&twin->torus, entry, target);

        if (hops < best_hops && !SKYT_Reach_IsLost(ground, entry))
        {
            best_hops = hops;
            best      = twin->entries[i];
        }
    }
    return best;
}

SKY_HostPlace_t SKYT_Reach_Place(const SKYT_Ground_t *ground, SKY_Addr_t addr)
{
    const uint32_t  entry = find_entry(ground, addr);
    SKY_HostPlace_t place = {addr.plane, addr.slot, 0, 0, entry, 0, 0};

    if (entry == SKYT_NONE)
    {
        place.plane = 0;
        return place;
    }
    place.entry_plane = SKYT_AddrOf(ground->twin, entry).plane;
    place.entry_slot  = SKYT_AddrOf(ground->twin, entry).slot;
    return place;
}

void SKYT_Reach_Servers(const SKYT_Ground_t *ground, uint32_t row, SKY_Addr_t *servers)
{
    const SKY_Satellites_t lost = lost_of(ground);

    SKY_Places_InRow(&ground->twin->schedule, row, &lost, servers, ground->room);
}

static bool is_among(SKY_Addr_t satellite, const SKY_Addr_t *found, uint32_t count)
{
    uint32_t at = 0;

    while (at < count && !SKY_Addr_Equal(found[at], satellite))
    {
        ++at;
    }
    return at < count;
}

uint32_t SKYT_Reach_First(const SKYT_Ground_t *ground, uint32_t block, SKY_Addr_t *found)
{
    const SKYT_Twin_t *twin   = ground->twin;
    const SKY_Places_t places = {&twin->schedule, (uint64_t)twin->config.handover_ms * US_PER_MS};
    uint32_t           rows[SKY_PLACES_ROWS_MAX];
    const uint32_t     several   = SKY_Places_Rows(&places, twin->now_us, 0, rows);
    const uint32_t     row_count = SKY_Places_IsMoving(&places, twin->now_us) ? several : 1u;
    uint32_t           before    = 0; /* index of the first satellite of the row before */
    uint32_t           count     = 0;
    uint8_t            key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    for (uint32_t i = 0; i < row_count; ++i)
    {
        SKYT_Reach_Servers(ground, rows[i], ground->placed);
        if (SKYT_Reach_Place(ground, ground->placed[0]).plane == 0u)
        {
            return 0;
        }
        const uint32_t from = count;

        for (uint32_t at = 0; at <= twin->config.parity; ++at)
        {
            const uint32_t server = (SKY_Spread_OfKey(key, twin->config.servers) + at) % twin->config.servers;

            if (!is_among(ground->placed[server], &found[before], from - before))
            {
                found[count] = ground->placed[server];
                ++count;
            }
        }
        before = from;
    }
    return count;
}

SKY_PlacesKnown_t SKYT_Reach_Known(const SKYT_Ground_t *ground, bool is_searched)
{
    const bool              is_late = is_searched && ground->twin->broken != SKYT_BREAK_HURRY;
    const SKY_PlacesKnown_t known   = {lost_of(ground),
                                       {ground->late, is_late ? ground->late_count : 0u},
                                       {ground->spares, is_late ? ground->spare_count : 0u},
                                       ground->late_first};

    return known;
}

SKY_Late_t SKYT_Reach_Late(const SKYT_Ground_t *ground)
{
    const SKYT_Twin_t     *twin  = ground->twin;
    const SKY_Handovers_t *known = &ground->handovers;
    const uint32_t         row   = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const SKY_Late_t       late  = {SKY_Handovers_IsKnown(known, 1, row, twin->now_us), known->is_over, known->is_certain};

    return late;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

SKYT_May_t SKYT_Reach_May(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    switch (SKY_Reach_May(&ground->reach, twin->now_us))
    {
        case SKY_REACH_SILENT:
            return SKYT_MAY_NOT;
        case SKY_REACH_LOOK:
            SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LOOK);
            return SKYT_MAY_LATER;
        default:
            break;
    }
    if (ground->reach.lost_count > 0u && !active->has_asked_lost)
    {
        active->has_asked_lost = true;
        active->doubts         = false;
        SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_BACK);
        return SKYT_MAY_LATER;
    }
    return SKYT_MAY_NOW;
}
