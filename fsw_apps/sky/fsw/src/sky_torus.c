/**
 * @file
 * The +GRID torus: neighbours, distances, next hop.
 */
#include "sky_torus.h"

#include "sky_assert.h"

bool SKY_Torus_Init(SKY_Torus_t *torus, uint32_t planes, uint32_t slots, bool seam_cut)
{
    if (planes == 0u || planes > UINT16_MAX || slots == 0u || slots > UINT16_MAX)
    {
        return false;
    }
    torus->planes   = (uint16_t)planes;
    torus->slots    = (uint16_t)slots;
    torus->seam_cut = seam_cut;
    SKY_ASSERT(torus->planes == planes);
    SKY_ASSERT(torus->slots == slots);
    return true;
}

bool SKY_Torus_Contains(const SKY_Torus_t *torus, SKY_Addr_t addr)
{
    return addr.plane >= 1u && addr.plane <= torus->planes && addr.slot >= 1u && addr.slot <= torus->slots;
}

/* One step along a ring of @p size, counted from 1; 0 if there is no step. */
static uint16_t Step(uint16_t at, uint16_t size, bool forward, bool cut)
{
    SKY_ASSERT(at >= 1u);
    SKY_ASSERT(at <= size);
    if (size == 1u || (cut && at == (forward ? size : 1u)))
    {
        return 0;
    }
    if (forward)
    {
        return (uint16_t)(at == size ? 1u : at + 1u);
    }
    return (uint16_t)(at == 1u ? size : at - 1u);
}

SKY_Addr_t SKY_Torus_Neighbour(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_LinkId_t link)
{
    const SKY_Addr_t none = {0, 0};
    SKY_Addr_t       to   = from;

    switch (link)
    {
        case SKY_LINK_NORTH:
        case SKY_LINK_SOUTH:
            to.plane = Step(from.plane, torus->planes, link == SKY_LINK_SOUTH, torus->seam_cut);
            break;
        case SKY_LINK_WEST:
        case SKY_LINK_EAST:
            to.slot = Step(from.slot, torus->slots, link == SKY_LINK_EAST, false);
            break;
        default:
            return none;
    }
    return to.plane == 0u || to.slot == 0u ? none : to;
}

static uint32_t RingDistance(uint32_t a, uint32_t b, uint32_t size, bool cut)
{
    const uint32_t straight = a > b ? a - b : b - a;
    SKY_ASSERT(straight < size);
    SKY_ASSERT(a >= 1u);
    SKY_ASSERT(b >= 1u);

    return cut || straight <= size - straight ? straight : size - straight;
}

uint32_t SKY_Torus_Hops(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_Addr_t to)
{
    const uint32_t hops = RingDistance(from.plane, to.plane, torus->planes, torus->seam_cut) +
                          RingDistance(from.slot, to.slot, torus->slots, false);

    SKY_ASSERT(hops < (uint32_t)torus->planes + torus->slots);
    SKY_ASSERT(hops > 0u || SKY_Addr_Equal(from, to));
    return hops;
}

SKY_LinkId_t SKY_Torus_NextHop(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_Addr_t to, SKY_Addr_t previous, uint32_t usable)
{
    /* The order is planes before slots, and the winner of a tie first: the first link that leads nearer is the paper's. */
    static const SKY_LinkId_t order[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_NORTH, SKY_LINK_EAST, SKY_LINK_WEST};

    const uint32_t hops      = SKY_Torus_Hops(torus, from, to);
    SKY_LinkId_t   best      = SKY_LINK_NONE;
    uint32_t       best_cost = UINT32_MAX;

    if (hops == 0u)
    {
        return SKY_LINK_NONE;
    }
    for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
    {
        const SKY_Addr_t neighbour = SKY_Torus_Neighbour(torus, from, order[i]);
        const bool       back      = SKY_Addr_Equal(neighbour, previous);
        uint32_t         rest, cost;

        if ((usable & (1u << order[i])) == 0u || neighbour.plane == 0u)
        {
            continue;
        }
        rest = SKY_Torus_Hops(torus, neighbour, to);
        if (rest < hops && !back)
        {
            return order[i];
        }
        /* Take a detour. Back there the shortest way led here, so to go there again is the last resort. But if it is no nearer,
         * it is a step aside like another, and at the edge of a seam the only one. */
        cost = rest < hops
                   ? UINT32_MAX - 1u
                   : 4u * rest + ((neighbour.plane != from.plane) == (from.plane != to.plane) ? 2u : 0u) + (back ? 1u : 0u);
        if (cost < best_cost)
        {
            best      = order[i];
            best_cost = cost;
        }
    }
    SKY_ASSERT(best == SKY_LINK_NONE || (usable & (1u << best)) != 0u);
    SKY_ASSERT(best == SKY_LINK_NONE || best < SKY_ISL_COUNT);
    return best;
}
