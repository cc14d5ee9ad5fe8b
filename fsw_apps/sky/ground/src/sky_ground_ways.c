/**
 * @file
 * Knowledge of satellites: which are lost or late, where servers are then, and through which satellite another is reached.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

#define MIX UINT64_C(0x100000001b3)

SKY_Places_t SKY_GroundWays_Rule(const SKY_Ground_t *ground)
{
    const SKY_Places_t places = {ground->sky.schedule, ground->sky.handover_us};

    SKY_ASSERT(places.schedule != NULL);
    return places;
}

uint32_t SKY_GroundWays_Row(const SKY_Ground_t *ground)
{
    const uint32_t row = SKY_Schedule_RowAt(ground->sky.schedule, ground->now_us);

    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= ground->sky.schedule->count);
    return row;
}

SKY_Addr_t SKY_GroundWays_AddrOf(const SKY_Ground_t *ground, uint32_t number)
{
    const uint32_t   slots = ground->limits.torus.slots;
    const SKY_Addr_t addr  = {(uint16_t)(number / slots + 1u), (uint16_t)(number % slots + 1u)};

    SKY_ASSERT(SKY_Torus_Contains(&ground->limits.torus, addr));
    return addr;
}

uint32_t SKY_GroundWays_NumberOf(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    SKY_ASSERT(SKY_Torus_Contains(&ground->limits.torus, satellite));
    return (satellite.plane - 1u) * ground->limits.torus.slots + satellite.slot - 1u;
}

/* ---- ways in --------------------------------------------------------------------------------------------------------- */

static SKY_Satellites_t LostOf(const SKY_Ground_t *ground)
{
    const SKY_Satellites_t lost = {ground->reach.lost, ground->reach.lost_count};

    SKY_ASSERT(lost.count <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
    return lost;
}

bool SKY_Ground_IsLost(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_Satellites_t lost = LostOf(ground);

    SKY_ASSERT(satellite.plane != 0u);
    return SKY_Satellites_Has(&lost, satellite);
}

/* Return that one of some satellites from which another is the fewest hops, the first of several; plane 0: all are lost. */
static SKY_Addr_t NearestOf(const SKY_Ground_t *ground, const SKY_Addr_t *entries, uint32_t count, SKY_Addr_t target)
{
    SKY_Addr_t best      = {0, 0};
    uint32_t   best_hops = UINT32_MAX;

    for (uint32_t i = 0; i < count; ++i)
    {
        const uint32_t hops = SKY_Torus_Hops(&ground->limits.torus, entries[i], target);

        if (hops < best_hops && !SKY_Ground_IsLost(ground, entries[i]))
        {
            best_hops = hops;
            best      = entries[i];
        }
    }
    SKY_ASSERT(best.plane == 0u || best_hops != UINT32_MAX);
    return best;
}

/* Return the first satellite in sight that is not lost; plane 0: there is none. */
static SKY_Addr_t FirstSeen(const SKY_Ground_t *ground)
{
    const SKY_Addr_t nobody = {0, 0};
    uint32_t         at     = 0;

    while (at < ground->sky.seen_count && SKY_Ground_IsLost(ground, ground->sky.seen[at]))
    {
        ++at;
    }
    SKY_ASSERT(at <= ground->sky.seen_count);
    return at < ground->sky.seen_count ? ground->sky.seen[at] : nobody;
}

/* Find the satellites of all servers, the nearest to the centre first, unless those are known. */
static void FindEntries(SKY_Ground_t *ground)
{
    const SKY_Torus_t     *torus = &ground->limits.torus;
    const SKY_Satellites_t lost  = LostOf(ground);
    const uint32_t         row   = SKY_GroundWays_Row(ground);

    SKY_ASSERT(ground->sky.uplink == (uint32_t)SKY_UPLINK_SERVERS);
    if (ground->entries_row == row && ground->entries_changes == ground->sky.changes &&
        ground->entries_losses == ground->reach.losses && ground->entries_lost == lost.count)
    {
        return;
    }
    const SKY_Addr_t centre = SKY_Schedule_Centre(ground->sky.schedule, row);

    SKY_Places_InRow(ground->sky.schedule, row, &lost, ground->entries, ground->cells);
    for (uint32_t i = 1; i < ground->limits.servers; ++i) /* by insertion, which keeps the order of equals */
    {
        const SKY_Addr_t one  = ground->entries[i];
        const uint32_t   hops = SKY_Torus_Hops(torus, centre, one);
        uint32_t         at   = i;

        for (; at > 0u && SKY_Torus_Hops(torus, centre, ground->entries[at - 1u]) > hops; --at)
        {
            ground->entries[at] = ground->entries[at - 1u];
        }
        ground->entries[at] = one;
    }
    ground->entries_row     = row;
    ground->entries_changes = ground->sky.changes;
    ground->entries_losses  = ground->reach.losses;
    ground->entries_lost    = lost.count;
    SKY_ASSERT(ground->entries[0].plane != 0u);
}

static SKY_Addr_t EntryTo(SKY_Ground_t *ground, SKY_Addr_t target)
{
    SKY_Addr_t entry = target;

    SKY_ASSERT(target.plane != 0u);
    SKY_ASSERT(ground->sky.uplink <= (uint32_t)SKY_UPLINK_ABOARD);
    switch (ground->sky.uplink)
    {
        case SKY_UPLINK_CENTRE:
        {
            const SKY_Satellites_t lost = LostOf(ground);

            entry = SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground));
            SKY_StandIns_Replace(&ground->limits.torus, entry, &lost, &entry, 1, ground->cells);
            break;
        }
        case SKY_UPLINK_SEEN:
            entry = NearestOf(ground, ground->sky.seen, ground->sky.seen_count, target);
            break;
        case SKY_UPLINK_FIRST:
            entry = FirstSeen(ground);
            break;
        case SKY_UPLINK_SERVERS:
            FindEntries(ground);
            entry = NearestOf(ground, ground->entries, ground->limits.servers, target);
            break;
        case SKY_UPLINK_ABOARD:
            entry = SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground));
            break;
        default:
            SKY_ASSERT(ground->sky.uplink == (uint32_t)SKY_UPLINK_DIRECT);
            break;
    }
    return entry;
}

SKY_HostPlace_t SKY_GroundWays_Place(SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_Addr_t entry = EntryTo(ground, satellite);
    SKY_HostPlace_t  place = {satellite.plane, satellite.slot, entry.plane, entry.slot, 0, 0, 0};

    if (entry.plane == 0u)
    {
        place.plane = 0;
        return place;
    }
    place.endpoint = ground->shell.EndpointOf(ground->shell.context, entry);
    SKY_ASSERT(place.home_plane == 0u);
    return place;
}

/* ---- where servers are ----------------------------------------------------------------------------------------------- */

void SKY_GroundWays_Servers(SKY_Ground_t *ground, uint32_t row)
{
    const SKY_Satellites_t lost = LostOf(ground);

    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= ground->sky.schedule->count);
    SKY_Places_InRow(ground->sky.schedule, row, &lost, ground->placed, ground->cells);
}

uint32_t SKY_GroundWays_Rows(const SKY_Ground_t *ground, uint32_t *rows)
{
    const SKY_Places_t places  = SKY_GroundWays_Rule(ground);
    const uint32_t     several = SKY_Places_Rows(&places, ground->now_us, 0, rows);

    SKY_ASSERT(several >= 1u);
    SKY_ASSERT(several <= SKY_PLACES_ROWS_MAX);
    return SKY_Places_IsMoving(&places, ground->now_us) ? several : 1u;
}

SKY_Late_t SKY_GroundWays_Late(const SKY_Ground_t *ground)
{
    const SKY_Handovers_t *known = &ground->handovers;
    const uint32_t         row   = SKY_GroundWays_Row(ground);
    const SKY_Late_t       late  = {SKY_Handovers_IsKnown(known, ground->sky.changes, row, ground->now_us), known->is_over,
                                    known->is_certain};

    SKY_ASSERT(known->settled <= known->row);
    return late;
}

uint32_t SKY_Ground_Spares(SKY_Ground_t *ground, uint64_t time_us)
{
    const uint32_t satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;
    uint32_t       count      = 0;

    SKY_Places_Spares(ground->sky.schedule, 1, SKY_Schedule_RowAt(ground->sky.schedule, time_us), ground->aside, ground->placed,
                      ground->cells);
    for (uint32_t number = 0; number < satellites; ++number)
    {
        count += ground->aside[number] ? 1u : 0u;
    }
    SKY_ASSERT(count <= satellites);
    return count;
}

/* ---- places of a block ----------------------------------------------------------------------------------------------- */

/* Describe the transfer of an operation's block. Only the facts count if there is none. */
static void Describe(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_HostBlock_t *block = &op->block;
    const uint32_t   told  = block->served_count;

    (void)memset(block, 0, sizeof(*block));
    block->served        = op->served;
    block->served_room   = op->served_room;
    block->served_count  = told;
    block->kind          = op->kind == SKY_GROUND_PUT ? SKY_HOST_PUT : SKY_HOST_GET;
    block->tenant        = op->tenant;
    block->epoch         = op->facts.epoch;
    block->block_version = op->facts.version;
    block->content       = op->facts.content;
    block->stripe        = op->facts.stripe;
    block->deadline_ms   = op->deadline_ms;
    block->needs_all = op->kind == SKY_GROUND_PUT && op->facts.version != 0u; /* a value is put when all its chunks are stored */
    block->data      = op->data;
    block->parity    = op->parity;
    block->have      = op->have;
    block->rows      = op->rows;
    block->servers   = op->places;
    block->fallbacks = op->places + ground->limits.servers;
    block->server_count = ground->limits.servers;
    (void)memcpy(block->key, op->key, SKY_KEY_BYTES);
    SKY_ASSERT(op->deadline_ms >= 1u);
    SKY_ASSERT(op->places != NULL);
}

/* Find the places of a share without the satellite that is left out. If that is the only one another server's is asked, which has no such
 * chunks, and says so. @return number of them */
static uint32_t LeaveOut(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_Addr_t *found, uint32_t count,
                         SKY_Addr_t *others)
{
    uint32_t kept = 0;

    SKY_ASSERT(count <= SKY_PLACES_MAX);
    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    for (uint32_t i = 0; i < count; ++i)
    {
        others[kept] = found[i];
        kept += SKY_Addr_Equal(found[i], op->left_out) ? 0u : 1u;
    }
    for (uint32_t server = 0; kept == 0u && server < ground->limits.servers; ++server)
    {
        others[0] = ground->shares.found[(size_t)server * SKY_PLACES_MAX];
        kept      = SKY_Addr_Equal(others[0], op->left_out) ? 0u : 1u;
    }
    return kept;
}

/* Let these be the places of a share. @param home  lost satellite for which others stand in; plane 0: none */
static void SetPlaces(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                      uint32_t count)
{
    SKY_Addr_t others[SKY_PLACES_MAX];

    const uint32_t   servers = ground->limits.servers;
    SKY_HostBlock_t *block   = &op->block;

    SKY_ASSERT(share < servers);
    SKY_ASSERT(count <= SKY_PLACES_MAX);
    if (op->left_out.plane != 0u)
    {
        count = LeaveOut(ground, op, found, count, others);
        found = others;
    }
    for (; block->rounds + 1u < count; ++block->rounds) /* round 0 is no fallback */
    {
        (void)memset(&op->places[(size_t)(block->rounds + 1u) * servers], 0, servers * sizeof(*op->places));
    }
    SKY_ASSERT(block->rounds <= SKY_HOST_ROUNDS);
    for (uint32_t round = 0; round <= block->rounds; ++round)
    {
        const SKY_HostPlace_t nowhere = {0};

        SKY_HostPlace_t *place = &op->places[(size_t)round * servers + share];

        *place            = round < count ? SKY_GroundWays_Place(ground, found[round]) : nowhere;
        place->home_plane = home.plane;
        place->home_slot  = home.slot;
    }
}

/* Find the places of all shares, around these satellites, and at those that are late to hand over once they are searched. */
static void FindShares(SKY_Ground_t *ground, const SKY_GroundOp_t *op, SKY_Satellites_t lost)
{
    const bool              is_late = op->attempts.is_searched;
    const SKY_PlacesKnown_t known   = {lost,
                                       {ground->late, is_late ? ground->late_count : 0u},
                                       {ground->spares, is_late ? ground->spare_count : 0u},
                                       ground->late_first};
    const SKY_Places_t      places  = SKY_GroundWays_Rule(ground);
    const uint64_t          late_us = ground->sky.put_late_us < ground->now_us ? ground->sky.put_late_us : 0u;

    if (op->kind == SKY_GROUND_PUT)
    {
        SKY_Places_FindPut(&places, ground->now_us - late_us, op->facts.epoch, &known, &ground->shares);
    }
    else
    {
        SKY_Places_Find(&places, ground->now_us, op->facts.epoch, &known, &ground->shares);
    }
    SKY_ASSERT(ground->shares.row_count >= 1u);
    SKY_ASSERT(ground->shares.row_count <= SKY_PLACES_ROWS_MAX);
}

void SKY_GroundWays_FindAround(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const SKY_Satellites_t away = {ground->away, SKY_Reach_Away(&ground->reach, ground->away)};

    SKY_ASSERT(op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT);
    FindShares(ground, op, away);
    SKY_ASSERT(away.count <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
}

bool SKY_GroundWays_Find(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundWatch_t *watch   = &ground->shell.watch;
    const uint32_t           servers = ground->limits.servers;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    Describe(ground, op);
    if (op->kind == SKY_GROUND_PUT)
    {
        SKY_GroundWays_FindAround(ground, op);
    }
    else
    {
        FindShares(ground, op, LostOf(ground));
    }
    op->changes = ground->sky.changes;
    for (uint32_t share = 0; share < servers; ++share)
    {
        const uint32_t    server = SKY_Spread_Server(op->key, op->facts.stripe.chunk_total, servers, share);
        const SKY_Addr_t *found  = &ground->shares.found[(size_t)server * SKY_PLACES_MAX];
        const SKY_Addr_t  home   = ground->shares.homes[server];

        SKY_ASSERT(server < servers);
        if (watch->Placed != NULL)
        {
            watch->Placed(watch->context, op, share, home, found, ground->shares.counts[server]);
        }
        op->places[share].plane = 0;
        SetPlaces(ground, op, share, home, found, ground->shares.counts[server]);
        if (op->places[share].plane == 0u)
        {
            return false;
        }
    }
    return true;
}

uint64_t SKY_GroundWays_Mix(uint64_t number, const SKY_HostPlace_t *place)
{
    const uint64_t satellite = (uint64_t)place->plane << 16 | place->slot;

    return ((number ^ satellite) * MIX ^ place->endpoint) * MIX;
}

uint32_t SKY_GroundWays_Number(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const size_t count  = (size_t)(op->block.rounds + 1u) * ground->limits.servers;
    uint64_t     number = count;

    SKY_ASSERT(op->block.rounds <= SKY_HOST_ROUNDS);
    for (size_t i = 0; i < count; ++i)
    {
        number = SKY_GroundWays_Mix(number, &op->places[i]);
    }
    SKY_ASSERT(count >= 1u);
    return (uint32_t)(number >> 32) | 1u;
}
