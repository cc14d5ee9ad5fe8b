/**
 * @file
 * Telemetry for ground hosts: a pipe and a task of their own, so that a burst of telemetry cannot push out commands.
 */
#ifndef ISL_TLM_H
#define ISL_TLM_H

#include "cfe.h"
#include "isl_tbl.h"

/** Make the pipe. */
CFE_Status_t ISL_Tlm_Open(void);
/** Subscribe to the telemetry that the table lists, and end the subscriptions that it no longer lists. */
CFE_Status_t ISL_Tlm_Subscribe(const ISL_NeighboursTable_t *table);
/** Start the task; the node must have its lock. */
CFE_Status_t ISL_Tlm_Start(void);
/** End the task. Nothing happens if it never ran. */
void ISL_Tlm_Stop(void);

#endif
