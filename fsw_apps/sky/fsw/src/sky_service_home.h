/**
 * @file
 * Private to the service: where chunks belong by the schedule, or without one in the window (sky_service_home.c).
 */
#ifndef SKY_SERVICE_HOME_H
#define SKY_SERVICE_HOME_H

#include "sky_service_state.h"

/** Return the schedule, or the window as a schedule of one row; NULL if there is neither. */
const SKY_Schedule_t *SKY_Home_Schedule(const SKY_ServiceCore_t *core);
/** Return true if @p satellite is that server in a row. There is a schedule or a window. */
bool SKY_Home_Is(const SKY_ServiceCore_t *core, uint32_t row, uint32_t server, SKY_Addr_t satellite);
/** Find the server that @p satellite is in a row. There is a schedule or a window. @return the number of servers if it is none */
uint32_t SKY_Home_ServerOf(const SKY_ServiceCore_t *core, uint32_t row, SKY_Addr_t satellite);
/**
 * Find the chunks that a MIGRATE moves: those that @p target has in the window of its row, or if that has none there, as with a stand-in,
 * those of the share that its chunk id says. All (stride 1) if no row says which.
 */
void SKY_Home_Share(const SKY_ServiceCore_t *core, const SKY_Packet_t *pkt, SKY_Addr_t target, uint32_t *stride,
                    uint32_t *server);
/**
 * Return true if chunks of a server, held here of a block of that epoch, wait for a row to come. They wait if that row has them
 * here, or is unknown. Otherwise they only lie beside what waits: somebody who did not know of the prefetch put them anew. There
 * is a schedule.
 */
bool SKY_Home_Waits(const SKY_ServiceCore_t *core, uint32_t epoch, uint32_t server);

#endif
