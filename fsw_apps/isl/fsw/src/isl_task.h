/**
 * @file
 * The I/O task: owns the socket, runs the packet engine. It and ISL's main task share the node under one lock.
 */
#ifndef ISL_TASK_H
#define ISL_TASK_H

#include "isl_node.h"

#define ISL_STOP_EXTRA_MS 1000u /**< that a task is given to end, beside the longest time that it waits for something */

/** Make the lock. */
CFE_Status_t ISL_Task_Open(void);
/** Lock the node and return it; NULL if there is no lock. */
ISL_Node_t *ISL_Task_Enter(void);
void        ISL_Task_Leave(void);
/** Open the socket and start the I/O task; the node must have its tables. */
CFE_Status_t ISL_Task_Start(uint32 ipv4, uint16 port);
/** Let the I/O task look at its timers anew, after something was put into the node. */
void ISL_Task_Wake(void);
/** End the I/O task and close the socket. Nothing happens if it never ran. */
void ISL_Task_Stop(void);
/** Return how often the socket has failed. Call it with the node locked. */
uint32 ISL_Task_Errors(void);

#endif
