/**
 * @file
 * Stand-ins for lost satellites: see sky_standins.h.
 */
#include "sky_standins.h"

#include "sky_assert.h"
#include "sky_placement_priv.h"

static uint32_t Rank(SKY_Addr_t satellite)
{
    return (uint32_t)satellite.plane << 16 | satellite.slot;
}

bool SKY_Satellites_Has(const SKY_Satellites_t *among, SKY_Addr_t satellite)
{
    uint32_t first = 0;            /* its place is from here on, */
    uint32_t end   = among->count; /* and before this, if it is there */

    while (first < end)
    {
        const uint32_t middle = first + (end - first) / 2u;

        if (Rank(among->satellites[middle]) < Rank(satellite))
        {
            first = middle + 1u;
        }
        else
        {
            end = middle;
        }
    }
    SKY_ASSERT(first == end);
    SKY_ASSERT(first <= among->count);
    return first < among->count && SKY_Addr_Equal(among->satellites[first], satellite);
}

void SKY_StandIns_Nearest(const SKY_Torus_t *torus, SKY_Addr_t centre, uint32_t count, SKY_Cell_t *found)
{
    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(count <= (uint32_t)torus->planes * torus->slots);
    SKY_Placement_Rings(torus, torus->planes, torus->slots, count, found);
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_Addr_t satellite = SKY_Placement_Wrap(torus, (int64_t)centre.plane + found[i].plane - torus->planes / 2,
                                                        (int64_t)centre.slot + found[i].slot - torus->slots / 2);
        SKY_ASSERT(satellite.plane >= 1u);
        SKY_ASSERT(satellite.plane <= torus->planes);
        SKY_ASSERT(satellite.slot >= 1u);
        SKY_ASSERT(satellite.slot <= torus->slots);

        found[i].plane = satellite.plane;
        found[i].slot  = satellite.slot;
    }
}

static SKY_Addr_t AddrOf(SKY_Cell_t cell)
{
    const SKY_Addr_t satellite = {(uint16_t)cell.plane, (uint16_t)cell.slot};
    SKY_ASSERT(cell.plane >= 1);
    SKY_ASSERT(cell.plane <= UINT16_MAX);
    SKY_ASSERT(cell.slot >= 1);
    SKY_ASSERT(cell.slot <= UINT16_MAX);

    return satellite;
}

static bool IsServer(const SKY_Addr_t *servers, uint32_t count, SKY_Addr_t satellite)
{
    uint32_t at = 0;

    while (at < count && !SKY_Addr_Equal(servers[at], satellite))
    {
        ++at;
    }
    return at < count;
}

uint32_t SKY_StandIns_Spares(const SKY_Torus_t *torus, SKY_Addr_t centre, const SKY_Addr_t *servers, uint32_t count,
                             SKY_Cell_t *cells, SKY_Addr_t *found)
{
    const uint32_t all    = (uint32_t)torus->planes * torus->slots;
    const uint32_t enough = count + SKY_STANDINS_SPARES;
    const uint32_t near   = enough < all ? enough : all;
    uint32_t       spares = 0;

    SKY_ASSERT(count >= 1u);
    SKY_StandIns_Nearest(torus, centre, near, cells);
    for (uint32_t i = 0; i < near && spares < SKY_STANDINS_SPARES; ++i)
    {
        if (!IsServer(servers, count, AddrOf(cells[i])))
        {
            found[spares] = AddrOf(cells[i]);
            ++spares;
        }
    }
    SKY_ASSERT(spares <= SKY_STANDINS_SPARES);
    return spares;
}

/* Return how many satellites around the centre are enough: among them are servers and lost ones, and one for each server that is
 * lost. */
static uint32_t Enough(const SKY_Torus_t *torus, const SKY_Satellites_t *lost, uint32_t servers, uint32_t servers_lost)
{
    const uint64_t all    = (uint64_t)torus->planes * torus->slots;
    const uint64_t enough = (uint64_t)lost->count + servers + servers_lost;
    SKY_ASSERT(servers_lost >= 1u);
    SKY_ASSERT(servers_lost <= servers);

    return (uint32_t)(enough < all ? enough : all);
}

void SKY_StandIns_Replace(const SKY_Torus_t *torus, SKY_Addr_t centre, const SKY_Satellites_t *lost, SKY_Addr_t *servers,
                          uint32_t count, SKY_Cell_t *room)
{
    uint32_t servers_lost = 0;
    uint32_t alive        = 0;
    uint32_t next         = 0; /* the next satellite that may be a spare */
    uint32_t again        = 0; /* the next satellite that stands in although it has a share */
    uint32_t near;

    for (uint32_t i = 0; i < count; ++i)
    {
        servers_lost += SKY_Satellites_Has(lost, servers[i]) ? 1u : 0u;
    }
    if (servers_lost == 0u)
    {
        return;
    }
    SKY_ASSERT(servers_lost <= count);
    near = Enough(torus, lost, count, servers_lost);
    SKY_StandIns_Nearest(torus, centre, near, room);
    SKY_ASSERT(near >= 1u);
    for (uint32_t i = 0; i < near; ++i)
    {
        if (!SKY_Satellites_Has(lost, AddrOf(room[i])))
        {
            room[alive] = room[i];
            ++alive;
        }
    }
    SKY_ASSERT(alive <= near);
    for (uint32_t i = 0; alive > 0u && i < count; ++i)
    {
        if (!SKY_Satellites_Has(lost, servers[i]))
        {
            continue;
        }
        while (next < alive && IsServer(servers, count, AddrOf(room[next])))
        {
            ++next;
        }
        if (next < alive)
        {
            servers[i] = AddrOf(room[next]);
            ++next;
        }
        else /* there are no spares, so the list has all satellites */
        {
            servers[i] = AddrOf(room[again % alive]);
            ++again;
        }
    }
}
