/**
 * @file
 * The +GRID: a torus of planes x slots, four neighbours each (paper, section 4 and figure 3).
 */
#ifndef SKY_TORUS_H
#define SKY_TORUS_H

#include "sky_packet.h"

/** Links of a satellite. North and south lead to the neighbouring planes (plane - 1, plane + 1), west and east to the
 *  neighbouring slots (slot - 1, slot + 1), as in the paper's formulas. */
typedef enum
{
    SKY_LINK_NORTH  = 0,
    SKY_LINK_EAST   = 1,
    SKY_LINK_SOUTH  = 2,
    SKY_LINK_WEST   = 3,
    SKY_LINK_GROUND = 4,
    SKY_LINK_NONE   = 5
} SKY_LinkId_t;

#define SKY_ISL_COUNT  4u
#define SKY_LINK_COUNT 5u
#define SKY_ISL_MASK   ((1u << SKY_ISL_COUNT) - 1u) /**< a bit for each ISL */

typedef struct
{
    uint16_t planes;
    uint16_t slots;
    bool     seam_cut; /**< Walker star: no link between the last plane and the first */
} SKY_Torus_t;

/** @return false unless planes and slots are 1 .. 65535. */
bool SKY_Torus_Init(SKY_Torus_t *torus, uint32_t planes, uint32_t slots, bool seam_cut);
bool SKY_Torus_Contains(const SKY_Torus_t *torus, SKY_Addr_t addr);
/** Return the neighbour over @p link, or {0,0} if there is none (seam, a torus one wide, not an ISL). */
SKY_Addr_t SKY_Torus_Neighbour(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_LinkId_t link);
/** Return the hops of the shortest way, with both wraps and the seam. */
uint32_t SKY_Torus_Hops(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_Addr_t to);
/**
 * Return the link towards @p to: plane first, then slot, the shorter way round (paper, section 4). The paper's rule leaves a tie
 * (even sizes, opposite satellites) open; here a tie goes south or east.
 *
 * If no link that leads nearer is up, the packet makes a detour: over the link that leaves the fewest hops, and among equals
 * one step aside (two hops more) before the long way round the ring. As the rule has no memory, the next satellite would
 * send such a packet straight back. So it is told where the packet came from, and sends it nearer over any other link.
 *
 * With one link or one satellite down every packet arrives that can, at most 2 hops later than on the best way left
 * (5 x 19 satellites, tested for all pairs). With more of them down, some packets may circle until their hop limit.
 *
 * @param previous  satellite that the packet came from, or {0,0}
 * @param usable    bit (1 << link) for each ISL that is up
 * @return SKY_LINK_NONE if @p to is @p from or no link is up
 */
SKY_LinkId_t SKY_Torus_NextHop(const SKY_Torus_t *torus, SKY_Addr_t from, SKY_Addr_t to, SKY_Addr_t previous, uint32_t usable);

#endif
