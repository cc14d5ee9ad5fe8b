/**
 * @file
 * Stand-ins for satellites that are lost: which satellites, and for whom.
 *
 * A stand-in is the satellite nearest to the centre that is neither lost nor a server. If none is left, the satellites that are
 * there stand in once more, the nearest first. One satellite then has the shares of several servers, which costs it room and time but
 * no deadline. Other servers stay where they are, so only shares of lost satellites are missing, and all hosts that know of the same
 * losses find the same places.
 */
#ifndef SKY_STANDINS_H
#define SKY_STANDINS_H

#include "sky_placement.h"

#define SKY_STANDINS_SPARES 4u /**< for whom no satellite is lost, looks for shares at so many that stand in for others first */

/** Satellites in ascending order: by plane, then by slot. */
typedef struct
{
    const SKY_Addr_t *satellites;
    uint32_t          count;
} SKY_Satellites_t;

/** Return true if a satellite is among these. */
bool SKY_Satellites_Has(const SKY_Satellites_t *among, SKY_Addr_t satellite);
/**
 * Find the satellites nearest to a centre: in rings around it, each ring in the order of the hop-aware layout. A cut seam does not
 * matter, as this is about places and not about links.
 * @param centre  in the torus
 * @param count   1 .. planes x slots
 * @param found   gets their planes and slots, the centre first
 */
void SKY_StandIns_Nearest(const SKY_Torus_t *torus, SKY_Addr_t centre, uint32_t count, SKY_Cell_t *found);
/**
 * Find the satellites that stand in first: the nearest to the centre that are no servers.
 * @param centre   in the torus
 * @param servers  the satellites of all servers
  * @param count    number of servers
 * @param cells    room for as many as the torus has satellites
 * @param found    room for SKY_STANDINS_SPARES
 * @return number of satellites found
 */
uint32_t SKY_StandIns_Spares(const SKY_Torus_t *torus, SKY_Addr_t centre, const SKY_Addr_t *servers, uint32_t count,
                             SKY_Cell_t *cells, SKY_Addr_t *found);
/**
 * Replace each lost satellite by a stand-in. Lost ones stay only if all satellites are lost.
 * @param centre   in the torus
 * @param servers  the satellites of all servers, each in the torus; changed
  * @param count    number of servers
 * @param room     for as many cells as the torus has satellites
 */
void SKY_StandIns_Replace(const SKY_Torus_t *torus, SKY_Addr_t centre, const SKY_Satellites_t *lost, SKY_Addr_t *servers,
                          uint32_t count, SKY_Cell_t *room);

#endif
