/**
 * @file
 * The arithmetic of windows, for the layouts on board and for what the host derives from them. Sums of coordinates are taken in 64
 * bits, where none overflows.
 */
#ifndef SKY_PLACEMENT_PRIV_H
#define SKY_PLACEMENT_PRIV_H

#include "sky_assert.h"
#include "sky_placement.h"

/** Return the remainder that is not negative. */
static inline int64_t SKY_Placement_Modulo(int64_t value, uint16_t modulus)
{
    const int64_t rest = value % modulus;
    SKY_ASSERT(modulus >= 1u);

    return rest < 0 ? rest + modulus : rest;
}

/** Return the satellite at unrolled coordinates. */
static inline SKY_Addr_t SKY_Placement_Wrap(const SKY_Torus_t *torus, int64_t plane, int64_t slot)
{
    SKY_Addr_t satellite;

    satellite.plane = (uint16_t)(SKY_Placement_Modulo(plane - 1, torus->planes) + 1);
    satellite.slot  = (uint16_t)(SKY_Placement_Modulo(slot - 1, torus->slots) + 1);
    SKY_ASSERT(satellite.plane >= 1u);
    SKY_ASSERT(satellite.plane <= torus->planes);
    SKY_ASSERT(satellite.slot >= 1u);
    SKY_ASSERT(satellite.slot <= torus->slots);
    return satellite;
}

/** Return the first plane (slot) of a window. An even size has no middle and reaches one further north (west). */
static inline int64_t SKY_Placement_First(int32_t centre, uint16_t size)
{
    SKY_ASSERT(size >= 1u);
    return (int64_t)centre - size / 2;
}

/** Return where in the window that begins at @p first a server sits that was at @p cell. */
static inline int64_t SKY_Placement_Keep(int64_t cell, int64_t first, uint16_t size)
{
    SKY_ASSERT(size >= 1u);
    return first + SKY_Placement_Modulo(cell - first, size);
}

/**
 * Find cells breadth first from the middle of a box, neighbours in the order north, east, south, west. The way may lead around the
 * torus, if the box does.
 * @param rows, columns  of the box, at most those of the torus
 * @param cells          1 .. rows x columns
 * @param at             gets so many cells, as rows and columns from 0; the middle is {rows / 2, columns / 2}
 */
void SKY_Placement_Rings(const SKY_Torus_t *torus, uint16_t rows, uint16_t columns, uint32_t cells, SKY_Cell_t *at);

#endif
