/**
 * @file
 * Private to migrations: chunks of a lane that go from here (sky_service_letgo.c).
 */
#ifndef SKY_SERVICE_LETGO_H
#define SKY_SERVICE_LETGO_H

#include "sky_service_state.h"

/** Count the chunks that were acknowledged since @p before was left, and forget them unless the job keeps them. */
void SKY_LetGo_Acknowledged(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane, const SKY_ChunkSet_t *before);
/** The target of a handover has refused the lane: it holds another version of the block. Forget what the lane was to bring. */
void SKY_LetGo_Refused(SKY_ServiceCore_t *core, SKY_Migration_t *job, const SKY_Lane_t *lane);
/**
 * A lane that has delivered nothing for long: forget the chunks that have changed in memory. If there are none, the lane is
 * refused. Nothing happens to a lane that delivers.
 */
void SKY_LetGo_Damaged(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane);

#endif
