/**
 * @file
 * Private to the service: jobs of migrations and their lanes (sky_service_job.c).
 */
#ifndef SKY_SERVICE_JOB_H
#define SKY_SERVICE_JOB_H

#include "sky_service_state.h"

#define SKY_JOB_ALL_DONE UINT32_MAX /**< as `from` of a job: nothing of its block is left to begin; no chunk has this id */

/** Return the first lane of a job. */
uint32_t SKY_Job_FirstLane(const SKY_Migrations_t *migrations, const SKY_Migration_t *job);
/** Return the lane after the last one of a job. */
uint32_t SKY_Job_LanesEnd(const SKY_Migrations_t *migrations, const SKY_Migration_t *job);
/** Return true if a lane moves chunks of that block. */
bool SKY_Job_LaneIsOf(const SKY_Lane_t *lane, uint32_t tenant, const uint8_t *key);

/** Return true if a chunk that is held goes with a job that its server has: all do, or those that are kept for the target. */
bool SKY_Job_Goes(const SKY_ServiceCore_t *core, const SKY_Migration_t *job, uint32_t block, uint32_t id);
/**
 * Begin a lane with the next chunks of this block, or of the next block that has some.
 * @return false: no lane is free, or all has begun
 */
bool SKY_Job_BeginLane(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job);
/** Begin a lane whose chunks have changed anew with those that are held now, or end it if there are none. */
void SKY_Job_RestartLane(SKY_ServiceCore_t *core, SKY_Migration_t *job, SKY_Lane_t *lane);
/** After anything that may have ended the push of a lane: end the lane or the job, and begin the next lane. */
void SKY_Job_FollowUp(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Migration_t *job, SKY_Lane_t *lane);
/** End a job and its lanes; nothing happens to one that has ended. */
void SKY_Job_End(SKY_Migrations_t *migrations, SKY_Migration_t *job);

#endif
