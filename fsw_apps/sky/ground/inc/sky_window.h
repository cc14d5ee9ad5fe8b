/**
 * @file
 * Satellites of a window, and heirs of those that fall out of it. Part of the host: missions do not compile it.
 *
 * A satellite that follows a schedule knows from a chunk's server where the chunk belongs. A host that begins handovers by command
 * knows no chunks: it tells a whole satellite its heir.
 */
#ifndef SKY_WINDOW_H
#define SKY_WINDOW_H

#include "sky_placement.h"

/** Find the satellites of all servers while the centre is @p centre. @param found  room for placement->servers */
void SKY_Window_Servers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t *found);
/** Return true if a satellite is in the window around @p centre. With the hop-aware layout, which has no window, none is. */
bool SKY_Window_Covers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t satellite);
/**
 * Return the satellite that takes the chunks of another one over when the window moves from @p before to @p after. That is the
 * satellite itself if it stays, or was not in the window.
 */
SKY_Addr_t SKY_Window_Heir(const SKY_Placement_t *placement, SKY_Cell_t before, SKY_Cell_t after, SKY_Addr_t satellite);

#endif
