/**
 * @file
 * What a window covers, and who takes over from a satellite that falls out of it. Part of the host: missions do not compile it.
 *
 * A satellite that follows a schedule knows from a chunk's server where the chunk belongs. Who moves satellites one by one, by
 * command, knows no chunks: it tells a whole satellite who its heir is.
 */
#ifndef SKY_WINDOW_H
#define SKY_WINDOW_H

#include "sky_placement.h"

/** Find the satellites of all servers while the centre is @p centre. @param found  room for placement->servers */
void SKY_Window_Servers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t *found);
/** Is a satellite in the window around @p centre? With the hop-aware layout, which has no window, none is. */
bool SKY_Window_Covers(const SKY_Placement_t *placement, SKY_Cell_t centre, SKY_Addr_t satellite);
/**
 * Return where what a satellite held in the window around @p before is to be in the one around @p after. That is the satellite
 * itself if it stays, or was not in the window.
 */
SKY_Addr_t SKY_Window_Heir(const SKY_Placement_t *placement, SKY_Cell_t before, SKY_Cell_t after, SKY_Addr_t satellite);

#endif
