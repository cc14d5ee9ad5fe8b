/**
 * @file
 * Commands of ISL, and what its main task does once a second.
 */
#ifndef ISL_CMDS_H
#define ISL_CMDS_H

#include "cfe.h"
#include "isl_msg.h"

void ISL_NoopCmd(void);
void ISL_ResetCountersCmd(void);
void ISL_SetLinkCmd(const ISL_SetLinkCmd_t *cmd);
void ISL_SendHkCmd(void);
void ISL_WakeupCmd(void);
/** Telemetry of the downlink list: on to the listeners. */
void ISL_RelayTelemetry(const CFE_MSG_Message_t *message);

#endif
