/**
 * @file
 * Places of the servers of a block while the window rolls over the torus (paper, sections 3.4 to 3.7). The ground calls the same
 * functions (`skymemory.sky.placement`).
 *
 * The window is a box of height x width cells around its centre. Its coordinates are *unrolled*: they go on past the last plane
 * and slot instead of beginning anew, and wrapping them gives the satellite. A layout is laid out once, around the first
 * centre. From then on a server keeps to its residues: it sits on the one cell of the window whose unrolled plane has the same
 * remainder modulo the height, and whose unrolled slot has the same remainder modulo the width, as its first cell had. So when the
 * window moves by any step, shares inside stay where they are, and shares that fall out go to cells that have come in. A step
 * along a plane moves chunks within their plane only; a jump to another plane moves one row only.
 *
 * A jump so far that the window meets its own other end around the torus would break that: a satellite that stays inside would have
 * to take another's share. So the caller says how far the window moves in one step. On an axis where that is too far servers
 * keep their plane (slot) for ever; the window is then as large as the torus there.
 *
 * The hop-aware layout is for a model on board: its centre is that satellite, and nothing of it ever moves.
 *
 * A window over all planes has ceil(servers / planes) slots. So no more servers are lost with a plane, and nothing moves when the
 * centre jumps to another plane. With fewer servers than planes each has a plane of its own.
 */
#ifndef SKY_PLACEMENT_H
#define SKY_PLACEMENT_H

#include "sky_torus.h"

#define SKY_PLACEMENT_SERVERS_MAX 1024u
#define SKY_PLACEMENT_CELL_MAX    0x40000000 /**< unrolled planes and slots are within +- this */

typedef enum
{
    SKY_LAYOUT_ROTATION     = 1, /**< left to right, top to bottom in the window */
    SKY_LAYOUT_HOP          = 2, /**< rings around the centre; never moves */
    SKY_LAYOUT_ROTATION_HOP = 3, /**< rings around the centre inside the window */
    SKY_LAYOUT_ALL_PLANES   = 4  /**< the same in a window over all planes, with as few servers in each as can be */
} SKY_LayoutId_t;

/** A cell of the unrolled grid. */
typedef struct
{
    int32_t plane;
    int32_t slot;
} SKY_Cell_t;

typedef struct
{
    SKY_Torus_t    torus;
    SKY_LayoutId_t layout;
    uint16_t       servers;
    uint16_t       height, width;                 /**< size of the window, in planes and in slots */
    SKY_Cell_t     origin;                        /**< the first centre */
    SKY_Cell_t     at[SKY_PLACEMENT_SERVERS_MAX]; /**< first cell of each server, relative to the origin */
} SKY_Placement_t;

/** Return true if both coordinates are within +-SKY_PLACEMENT_CELL_MAX. */
bool SKY_Placement_IsCell(SKY_Cell_t cell);
/**
 * Lay a layout out around @p origin.
 * @return false if layout or servers (1 .. planes x slots, at most SKY_PLACEMENT_SERVERS_MAX) are out of range, or origin is no cell
 */
bool SKY_Placement_Init(SKY_Placement_t *placement, const SKY_Torus_t *torus, SKY_LayoutId_t layout, uint32_t servers,
                        SKY_Cell_t origin);
/**
 * Say how far the centre will move in one step, if that may be more than one plane or one slot. Then a satellite that is in the
 * window before and after a step keeps its chunks, and chunks that fall out go to a satellite that was outside.
 */
void SKY_Placement_AllowSteps(SKY_Placement_t *placement, uint32_t planes, uint32_t slots);
/** Return the satellite of a server (from 0; @p server is taken modulo the number of servers) while the centre is @p centre. */
SKY_Addr_t SKY_Placement_Server(const SKY_Placement_t *placement, SKY_Cell_t centre, uint32_t server);

#endif
