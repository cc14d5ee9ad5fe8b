/**
 * @file
 * Satellites of a window: see sky_window.h.
 */
#include "sky_window.h"

#include "sky_assert.h"
#include "sky_placement_priv.h"

void SKY_Window_Servers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t *found)
{
    SKY_ASSERT(placement->servers >= 1u);
    SKY_ASSERT(placement->servers <= SKY_PLACEMENT_SERVERS_MAX);
    for (uint32_t server = 0; server < placement->servers; ++server)
    {
        found[server] = SKY_Placement_Server(placement, centre, server);
    }
}

/* Return the distance behind the first plane (slot) of a window, going on around the torus. */
static int64_t Offset(uint16_t at, int32_t centre, uint16_t size, uint16_t torus_size)
{
    SKY_ASSERT(size >= 1u);
    SKY_ASSERT(size <= torus_size);
    SKY_ASSERT(at >= 1u);
    SKY_ASSERT(at <= torus_size);
    return SKY_Placement_Modulo(at - SKY_Placement_First(centre, size), torus_size);
}

bool SKY_Window_Covers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t satellite)
{
    const SKY_Torus_t *torus = &placement->torus;
    SKY_ASSERT(placement->height <= torus->planes);
    SKY_ASSERT(placement->width <= torus->slots);

    return placement->layout != SKY_LAYOUT_HOP && SKY_Torus_Contains(torus, satellite) &&
           Offset(satellite.plane, centre.plane, placement->height, torus->planes) < placement->height &&
           Offset(satellite.slot, centre.slot, placement->width, torus->slots) < placement->width;
}

/* Return the plane (slot) of the heir. */
static int64_t Inherit(uint16_t at, int32_t before, int32_t after, uint16_t size, uint16_t torus_size)
{
    const int64_t cell = SKY_Placement_First(before, size) + Offset(at, before, size, torus_size);
    SKY_ASSERT(size >= 1u);
    SKY_ASSERT(cell >= SKY_Placement_First(before, size));

    return SKY_Placement_Keep(cell, SKY_Placement_First(after, size), size);
}

SKY_Addr_t SKY_Window_Heir(const SKY_Placement_t *placement, SKY_Cell_t before, SKY_Cell_t after, SKY_Addr_t satellite)
{
    const SKY_Torus_t *torus = &placement->torus;

    if (!SKY_Window_Covers(placement, before, satellite))
    {
        return satellite;
    }
    return SKY_Placement_Wrap(torus, Inherit(satellite.plane, before.plane, after.plane, placement->height, torus->planes),
                              Inherit(satellite.slot, before.slot, after.slot, placement->width, torus->slots));
}
