/**
 * @file
 * Places besides, while a block moves: a satellite of it is late although others have answered (sky_host_replace.c).
 *
 *     transfer runs ----------- a satellite is late --> it is SUSPECT: nothing is put there      (sky_reach.h)
 *          ^                                            |
 *          |   PUT: the share goes to the stand-in      |--> a look begins, and nobody waits for it: the satellite is lost, or is
 *          +-- GET: the stand-in is asked, then the     |    trusted again                       (sky_ground_inquiry.c)
 *              satellite again                     <----+
 *
 * The place comes from the rule for lost satellites, as the next attempt would find it. It is asked when it is needed, and not found in advance:
 * who stands in for one satellite follows from all that are away at that time.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

#define BESIDES 2u /* rounds of a GET: the stand-in, and the satellite that is late again */

static bool IsAway(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_ReachSatellite_t *record = &ground->reach.satellites[SKY_GroundWays_NumberOf(ground, satellite)];

    SKY_ASSERT(satellite.plane != 0u);
    return record->is_lost || record->is_suspect;
}

static SKY_Addr_t AddrOf(const SKY_HostPlace_t *place)
{
    const SKY_Addr_t addr = {place->plane, place->slot};

    SKY_ASSERT((addr.plane == 0u) == (addr.slot == 0u));
    return addr;
}

/* Return the place of a share in a round. */
static SKY_HostPlace_t *PlaceOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t round, uint32_t share)
{
    SKY_ASSERT(round <= SKY_HOST_ROUNDS);
    SKY_ASSERT(share < ground->limits.servers);
    return &op->places[(size_t)round * ground->limits.servers + share];
}

/* Return true if the rows of which the running attempt has places are those of now. */
static bool AreSameRows(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    bool are_same = op->changes == ground->sky.changes && op->attempts.row_count == ground->shares.row_count;

    SKY_ASSERT(ground->shares.row_count >= 1u);
    SKY_ASSERT(ground->shares.row_count <= SKY_PLACES_ROWS_MAX);
    for (uint32_t i = 0; are_same && i < ground->shares.row_count; ++i)
    {
        are_same = op->attempts.rows[i] == ground->shares.rows[i];
    }
    return are_same;
}

/* Put a share of a PUT to the stand-in as well. @return true if it goes there */
static bool PutBesides(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, SKY_Addr_t stand_in)
{
    SKY_HostPlace_t      *place   = PlaceOf(ground, op, 1, share);
    const SKY_HostPlace_t before  = *place;
    const SKY_Addr_t      current = AddrOf(before.plane != 0u ? &before : PlaceOf(ground, op, 0, share));

    SKY_ASSERT(op->kind == SKY_GROUND_PUT);
    if (!IsAway(ground, current) || IsAway(ground, stand_in) || SKY_Addr_Equal(current, stand_in))
    {
        return false;
    }
    *place            = SKY_GroundWays_Place(ground, stand_in);
    place->home_plane = home.plane;
    place->home_slot  = home.slot;
    SKY_ASSERT(home.plane != 0u);
    if (place->plane == 0u || !SKY_Host_Replace(&ground->host, ground->now_us, &op->block, share))
    {
        *place = before;
        return false;
    }
    return true;
}

/* Make room for places besides those of a GET. @return false if there is none */
static bool HasRoom(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    if (op->besides == 0u && op->block.rounds + BESIDES <= SKY_HOST_ROUNDS)
    {
        op->besides = op->block.rounds + 1u;
        (void)memset(PlaceOf(ground, op, op->besides, 0), 0, (size_t)BESIDES * ground->limits.servers * sizeof(*op->places));
        op->block.rounds += BESIDES;
    }
    SKY_ASSERT(op->block.rounds <= SKY_HOST_ROUNDS);
    return op->besides != 0u;
}

/* Ask the stand-in for a share of a GET, and then who is late once more. @return true if it is asked, or another place */
static bool AskBesides(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, SKY_Addr_t stand_in)
{
    const uint32_t  rounds = op->besides != 0u ? op->besides : op->block.rounds + 1u;
    SKY_HostPlace_t late   = {0};

    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    for (uint32_t round = 0; round < rounds; ++round)
    {
        const SKY_HostPlace_t *place = PlaceOf(ground, op, round, share);

        if (place->plane != 0u && IsAway(ground, AddrOf(place)))
        {
            late = *place;
        }
    }
    if (late.plane == 0u)
    {
        return false;
    }
    if (!IsAway(ground, stand_in) && !SKY_Addr_Equal(stand_in, op->left_out) && HasRoom(ground, op) &&
        PlaceOf(ground, op, op->besides, share)->plane == 0u)
    {
        SKY_HostPlace_t place = SKY_GroundWays_Place(ground, stand_in);

        place.home_plane                              = home.plane;
        place.home_slot                               = home.slot;
        *PlaceOf(ground, op, op->besides, share)      = place;
        *PlaceOf(ground, op, op->besides + 1u, share) = late;
    }
    return SKY_Host_Replace(&ground->host, ground->now_us, &op->block, share);
}

/* Lead a block around satellites that are away. */
static void LeadAround(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t servers = ground->limits.servers;

    SKY_GroundWays_FindAround(ground, op);
    for (uint32_t share = 0; AreSameRows(ground, op) && share < servers; ++share)
    {
        const uint32_t    server   = SKY_Spread_Server(op->key, op->facts.stripe.chunk_total, servers, share);
        const SKY_Addr_t  home     = ground->shares.homes[server];
        const uint32_t    last     = ground->shares.counts[server] - 1u;
        const SKY_Addr_t *found    = &ground->shares.found[(size_t)server * SKY_PLACES_MAX];
        const SKY_Addr_t  stand_in = found[last];
        const bool        is_put   = op->kind == SKY_GROUND_PUT;

        SKY_ASSERT(server < servers);
        SKY_ASSERT(ground->shares.counts[server] >= 1u);
        if (home.plane != 0u &&
            (is_put ? PutBesides(ground, op, share, home, stand_in) : AskBesides(ground, op, share, home, stand_in)) &&
            ground->shell.watch.Replaced != NULL)
        {
            ground->shell.watch.Replaced(ground->shell.watch.context, op, share, stand_in);
        }
    }
}

bool SKY_GroundReplace_Run(SKY_Ground_t *ground)
{
    SKY_Addr_t satellite = {0, 0};
    bool       any       = false;

    while (SKY_Host_NextSuspect(&ground->host, &satellite)) /* once each, until it is late again */
    {
        (void)SKY_Reach_Suspect(&ground->reach, satellite);
        any = true;
    }
    SKY_ASSERT(!any || satellite.plane != 0u);
    for (SKY_GroundOp_t *op = ground->first; any && op != NULL; op = op->next)
    {
        SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
        if ((op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT) && op->block.status == SKY_STATUS_RUNNING)
        {
            LeadAround(ground, op);
        }
    }
    return any;
}
