/**
 * @file
 * Private to the service: the repair of chunks (sky_service_repair.c).
 */
#ifndef SKY_SERVICE_REPAIR_H
#define SKY_SERVICE_REPAIR_H

#include "sky_service_state.h"

/**
 * Begin to rebuild a chunk. The repair ends in one of the states behind SKY_REPAIR_DELIVER, and stays there until the next begins.
 * @param block  facts of its block
 * @param row    row of the schedule that says where chunks are
 * @param id     the lost chunk
 * @param have   places in its row of as many chunks as suffice, in the order in which they are asked for
 */
void SKY_Repair_Begin(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, const SKY_BlockInfo_t *block, uint32_t row,
                      uint32_t id, const uint8_t *have);
/** Give a repair up. */
void SKY_Repair_Stop(SKY_Repair_t *repair);
/** Return true if the repair goes on. */
bool SKY_Repair_GoesOn(const SKY_Repair_t *repair);
/** Let timers act. @return when to call again, UINT64_MAX if nothing goes on */
uint64_t SKY_Repair_OnTime(SKY_Repair_t *repair, uint64_t now_us);
/** Drop what was not pulled. */
void SKY_Repair_Pull(SKY_Repair_t *repair);
/** Make the next packet. */
bool SKY_Repair_Next(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, SKY_Out_t *out);
/** Act on a response. @return false if it belongs to no question of the repair */
bool SKY_Repair_Response(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, const SKY_Packet_t *pkt);
/** Note that there is no way to @p dst. */
void SKY_Repair_Unreachable(SKY_Repair_t *repair, SKY_Addr_t dst);

#endif
