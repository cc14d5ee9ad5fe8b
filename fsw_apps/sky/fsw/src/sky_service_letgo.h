/**
 * @file
 * Private to migrations: chunks of a lane that go from here (sky_service_letgo.c).
 */
#ifndef SKY_SERVICE_LETGO_H
#define SKY_SERVICE_LETGO_H

#include "sky_service_state.h"

/** Count the chunks that were acknowledged since @p before was left, and forget them unless the job keeps them; what was kept for its home
 *  after a while. */
void SKY_LetGo_Acknowledged(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane, const SKY_ChunkSet_t *before,
                            uint64_t now_us);
/** Forget the chunks of a lane that the target of a handover has refused: it holds another version of the block. */
void SKY_LetGo_Refused(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane);
/**
 * Forget the chunks that have changed in memory, of a lane that has delivered nothing for long. If there are none, the lane is
 * refused. Nothing happens to a lane that delivers.
 */
void SKY_LetGo_Damaged(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane);

#endif
