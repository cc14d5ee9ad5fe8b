/**
 * @file
 * Commands of ISL, and the work of its main task once a second.
 */
#ifndef ISL_CMDS_H
#define ISL_CMDS_H

#include "cfe.h"

/* Each function takes the message for which isl_dispatch.c lists it, whose length has been checked. */
void ISL_NoopCmd(const CFE_SB_Buffer_t *buffer);
void ISL_ResetCountersCmd(const CFE_SB_Buffer_t *buffer);
void ISL_SetLinkCmd(const CFE_SB_Buffer_t *buffer);
void ISL_SendHkCmd(const CFE_SB_Buffer_t *buffer);
void ISL_WakeupCmd(const CFE_SB_Buffer_t *buffer);
/** Send telemetry of the downlink list on to the listeners. */
void ISL_RelayTelemetry(const CFE_MSG_Message_t *message);

#endif
