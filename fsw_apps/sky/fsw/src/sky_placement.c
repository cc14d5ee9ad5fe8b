/**
 * @file
 * Places of servers while the window rolls: see sky_placement.h. Sums of coordinates are taken in 64 bits, where none overflows.
 */
#include "sky_placement_priv.h"

#include "sky_assert.h"

/* Choose the smallest box with room for all: ceil(sqrt(n)) slots wide where the torus allows, wider where it has too few
 * planes. A box over all planes is as narrow as can be, and may be higher than its servers need. */
static void Box(SKY_Placement_t *placement)
{
    const SKY_Torus_t *torus     = &placement->torus;
    const uint32_t     servers   = placement->servers;
    const bool         is_narrow = placement->layout == SKY_LAYOUT_ALL_PLANES;
    uint32_t           width     = 1;

    while (width < torus->slots && ((!is_narrow && width * width < servers) || width * torus->planes < servers))
    {
        ++width;
    }
    placement->height = (uint16_t)((servers + width - 1u) / width);
    placement->width  = (uint16_t)width;
    if (is_narrow && servers > torus->planes)
    {
        placement->height = torus->planes;
    }
    SKY_ASSERT((uint32_t)placement->height * placement->width >= servers);
    SKY_ASSERT(placement->height <= torus->planes);
    SKY_ASSERT(placement->width <= torus->slots);
    SKY_ASSERT(placement->height >= 1u);
    SKY_ASSERT(placement->width >= 1u);
}

static bool IsFound(const SKY_Cell_t *at, uint32_t first, uint32_t count, SKY_Cell_t cell)
{
    SKY_ASSERT(first <= count);
    for (uint32_t i = first; i < count; ++i)
    {
        if (at[i].plane == cell.plane && at[i].slot == cell.slot)
        {
            return true;
        }
    }
    return false;
}

/* The queue is what was found. A neighbour was found already only if it is in this ring, the one before, or the one after. */
void SKY_Placement_Rings(const SKY_Torus_t *torus, uint16_t rows, uint16_t columns, uint32_t cells, SKY_Cell_t *at)
{
    static const SKY_Cell_t steps[] = {{-1, 0}, {0, 1}, {1, 0}, {0, -1}};
    SKY_ASSERT(cells >= 1u);
    SKY_ASSERT(cells <= (uint32_t)rows * columns);
    SKY_ASSERT(rows <= torus->planes);
    SKY_ASSERT(columns <= torus->slots);

    uint32_t count  = 1; /* cells that were found */
    uint32_t before = 0; /* the ring before begins here */
    uint32_t ring   = 0; /* this ring begins here */
    uint32_t after  = 1; /* the ring after begins here */

    at[0].plane = rows / 2;
    at[0].slot  = columns / 2;
    for (uint32_t from = 0; from < cells; ++from)
    {
        SKY_ASSERT(from < count); /* the box has room for all, and is connected */
        SKY_ASSERT(before <= ring);
        SKY_ASSERT(ring <= from);
        if (from == after)
        {
            before = ring;
            ring   = after;
            after  = count;
        }
        for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i)
        {
            SKY_Cell_t cell;

            cell.plane = (int32_t)SKY_Placement_Modulo(at[from].plane + steps[i].plane, torus->planes);
            cell.slot  = (int32_t)SKY_Placement_Modulo(at[from].slot + steps[i].slot, torus->slots);
            if (count < cells && cell.plane < rows && cell.slot < columns && !IsFound(at, before, count, cell))
            {
                at[count++] = cell;
            }
        }
    }
    SKY_ASSERT(count == cells);
}

bool SKY_Placement_Init(SKY_Placement_t *placement, const SKY_Torus_t *torus, SKY_LayoutId_t layout, uint32_t servers,
                        SKY_Cell_t origin)
{
    uint16_t rows, columns;

    if (layout < SKY_LAYOUT_ROTATION || layout > SKY_LAYOUT_ALL_PLANES || servers == 0u || servers > SKY_PLACEMENT_SERVERS_MAX ||
        servers > (uint32_t)torus->planes * torus->slots || !SKY_Placement_IsCell(origin))
    {
        return false;
    }
    placement->torus   = *torus;
    placement->layout  = layout;
    placement->servers = (uint16_t)servers;
    placement->origin  = origin;
    Box(placement);

    rows    = placement->height;
    columns = placement->width;
    if (layout == SKY_LAYOUT_ROTATION)
    {
        for (uint32_t i = 0; i < servers; ++i)
        {
            placement->at[i].plane = (int32_t)(i / columns);
            placement->at[i].slot  = (int32_t)(i % columns);
        }
    }
    else
    {
        if (layout == SKY_LAYOUT_HOP)
        {
            rows    = torus->planes;
            columns = torus->slots;
        }
        SKY_Placement_Rings(torus, rows, columns, servers, placement->at);
    }
    for (uint32_t i = 0; i < servers; ++i)
    {
        placement->at[i].plane -= rows / 2;
        placement->at[i].slot -= columns / 2;
    }
    SKY_ASSERT(placement->servers == servers); /* the number fits 16 bits */
    return true;
}

bool SKY_Placement_IsCell(SKY_Cell_t cell)
{
    return cell.plane >= -SKY_PLACEMENT_CELL_MAX && cell.plane <= SKY_PLACEMENT_CELL_MAX &&
           cell.slot >= -SKY_PLACEMENT_CELL_MAX && cell.slot <= SKY_PLACEMENT_CELL_MAX;
}

void SKY_Placement_AllowSteps(SKY_Placement_t *placement, uint32_t planes, uint32_t slots)
{
    if ((uint64_t)placement->height + planes > placement->torus.planes)
    {
        placement->height = placement->torus.planes;
    }
    if ((uint64_t)placement->width + slots > placement->torus.slots)
    {
        placement->width = placement->torus.slots;
    }
    SKY_ASSERT(placement->height <= placement->torus.planes);
    SKY_ASSERT(placement->width <= placement->torus.slots);
    SKY_ASSERT((uint32_t)placement->height * placement->width >= placement->servers);
}

SKY_Addr_t SKY_Placement_Server(const SKY_Placement_t *placement, SKY_Cell_t centre, uint32_t server)
{
    const SKY_Cell_t at    = placement->at[server % placement->servers];
    int64_t          plane = (int64_t)placement->origin.plane + at.plane;
    int64_t          slot  = (int64_t)placement->origin.slot + at.slot;
    SKY_ASSERT(placement->servers >= 1u);

    if (placement->layout != SKY_LAYOUT_HOP)
    {
        plane = SKY_Placement_Keep(plane, SKY_Placement_First(centre.plane, placement->height), placement->height);
        slot  = SKY_Placement_Keep(slot, SKY_Placement_First(centre.slot, placement->width), placement->width);
    }
    SKY_ASSERT(placement->height >= 1u);
    SKY_ASSERT(placement->width >= 1u);
    return SKY_Placement_Wrap(&placement->torus, plane, slot);
}
