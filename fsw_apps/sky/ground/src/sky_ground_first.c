/**
 * @file
 * FIND: who is asked first for a key. Places of all servers are found once for all keys, and again when they have changed.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

_Static_assert(SKY_PLACES_ROWS_MAX <= SKY_HOST_ROUNDS + 1u, "the memory of places has room for each row's servers");

/* Find the places of all servers in the rows that are asked. There are none if nobody is in sight, or @p may says so. */
void SKY_GroundFirst_Find(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundMay_t may)
{
    SKY_GroundFind_t *find    = &op->find;
    const uint32_t    servers = ground->limits.servers;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(may != SKY_GROUND_MAY_LATER);
    find->row_count  = may == SKY_GROUND_MAY_NOW ? SKY_GroundWays_Rows(ground, find->rows) : 0u;
    find->has_places = true;
    find->row        = SKY_GroundWays_Row(ground);
    find->parity     = ground->sky.parity;
    find->at_once    = find->parity > 0u || find->is_fresh;
    find->skies      = ground->skies;
    find->losses     = ground->reach.losses;
    find->lost_count = ground->reach.lost_count;
    find->places_us  = ground->now_us;
    for (uint32_t row = 0; row < find->row_count; ++row)
    {
        SKY_GroundWays_Servers(ground, find->rows[row]);
        for (uint32_t server = 0; server < servers; ++server)
        {
            const SKY_Addr_t home  = SKY_Schedule_Server(ground->sky.schedule, find->rows[row], server);
            SKY_HostPlace_t *place = &op->places[(size_t)row * servers + server];

            *place = SKY_GroundWays_Place(ground, ground->placed[server]);
            if (!SKY_Addr_Equal(home, ground->placed[server]))
            {
                place->home_plane = home.plane;
                place->home_slot  = home.slot;
            }
        }
    }
    if (find->row_count > 0u && op->places[0].plane == 0u)
    {
        find->row_count = 0;
    }
}

/* Return true if servers are elsewhere now, or others stand in for them. */
bool SKY_GroundFirst_HasChanged(const SKY_Ground_t *ground, const SKY_GroundFind_t *find)
{
    uint32_t   rows[SKY_PLACES_ROWS_MAX];
    const bool is_known =
        find->skies == ground->skies && find->losses == ground->reach.losses && find->lost_count == ground->reach.lost_count;

    SKY_ASSERT(find->has_places);
    SKY_ASSERT(find->row_count <= SKY_PLACES_ROWS_MAX);
    return !is_known || (find->row_count > 0u && (SKY_GroundWays_Rows(ground, rows) != find->row_count ||
                                                  memcmp(rows, find->rows, find->row_count * sizeof(rows[0])) != 0));
}

/* Return the satellite with this number of those that are asked first for a key: in each row the server that has share 0 of a small block, and
 * those behind it, one more than hold parity. */
static const SKY_HostPlace_t *FirstOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found,
                                      uint32_t at)
{
    const uint32_t servers = ground->limits.servers;
    const uint32_t row     = at / (op->find.parity + 1u);
    const uint32_t behind  = at % (op->find.parity + 1u);

    SKY_ASSERT(row < op->find.row_count);
    SKY_ASSERT(behind < servers);
    return &op->places[(size_t)row * servers + (SKY_Spread_OfKey(found->key, servers) + behind) % servers];
}

uint32_t SKY_GroundFirst_Count(const SKY_GroundFind_t *find)
{
    SKY_ASSERT(find->has_places);
    SKY_ASSERT(find->row_count <= SKY_PLACES_ROWS_MAX);
    return find->row_count * (find->parity + 1u);
}

bool SKY_GroundFirst_IsAnyHome(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found)
{
    const SKY_GroundFind_t *find   = &op->find;
    bool                    is_any = false;

    SKY_ASSERT(find->row >= 1u);
    SKY_ASSERT(find->row <= ground->sky.schedule->count);
    for (uint32_t at = 0; !is_any && at < SKY_GroundFirst_Count(find); ++at)
    {
        is_any = find->rows[at / (find->parity + 1u)] == find->row && !SKY_HostPlace_IsStandIn(FirstOf(ground, op, found, at));
    }
    return is_any;
}

/* Return true if a satellite was asked before in this step: one may stand in for several. Of those that are asked one after the other only the row
 * before counts: what was to come may be there by now. */
static bool IsAgain(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found, uint32_t at)
{
    const SKY_HostPlace_t *place    = FirstOf(ground, op, found, at);
    const uint32_t         behind   = op->find.parity + 1u;
    const uint32_t         row      = at / behind;
    const uint32_t         from     = found->at_once || row == 0u ? 0u : (row - 1u) * behind;
    bool                   is_again = false;

    SKY_ASSERT(at < SKY_GroundFirst_Count(&op->find));
    for (uint32_t other = from; !is_again && other < at; ++other)
    {
        const SKY_HostPlace_t *before = FirstOf(ground, op, found, other);

        is_again = before->plane == place->plane && before->slot == place->slot;
    }
    SKY_ASSERT(from <= at);
    return is_again;
}

/* Return a number of a key's first satellites and the ways to them, from 1. */
uint32_t SKY_GroundFirst_Number(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found)
{
    const uint32_t count  = SKY_GroundFirst_Count(&op->find);
    uint64_t       number = count;

    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(op->find.parity < ground->limits.servers);
    for (uint32_t at = 0; at < count; ++at)
    {
        number = SKY_GroundWays_Mix(number, FirstOf(ground, op, found, at));
    }
    return (uint32_t)(number >> 32) | 1u;
}

bool SKY_GroundFirst_Place(SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found, uint32_t at,
                           SKY_HostPlace_t *place)
{
    SKY_ASSERT(found->is_passing);
    if (found->core.step == (uint32_t)SKY_LOOKUP_SEARCH)
    {
        SKY_ASSERT(at < ground->late_count);
        *place = SKY_GroundWays_Place(ground, ground->late[at]);
        return !SKY_Ground_IsLost(ground, ground->late[at]);
    }
    *place = *FirstOf(ground, op, found, at);
    SKY_ASSERT(place->plane != 0u);
    if (op->find.skies != ground->skies) /* the way in may have set */
    {
        *place = SKY_GroundWays_Place(ground, (SKY_Addr_t){place->plane, place->slot});
    }
    return !IsAgain(ground, op, found, at);
}
