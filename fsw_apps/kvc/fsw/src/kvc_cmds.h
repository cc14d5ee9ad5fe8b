/**
 * @file
 * Commands of KVC.
 */
#ifndef KVC_CMDS_H
#define KVC_CMDS_H

#include "cfe.h"

/* Each function takes the message for which kvc_dispatch.c lists it, whose length has been checked. */
void KVC_NoopCmd(const CFE_SB_Buffer_t *buffer);
void KVC_ResetCountersCmd(const CFE_SB_Buffer_t *buffer);
void KVC_ClearStoreCmd(const CFE_SB_Buffer_t *buffer);
void KVC_PurgeBlockCmd(const CFE_SB_Buffer_t *buffer);
void KVC_ScheduleBeginCmd(const CFE_SB_Buffer_t *buffer);
void KVC_ScheduleRowsCmd(const CFE_SB_Buffer_t *buffer);
void KVC_ScheduleCommitCmd(const CFE_SB_Buffer_t *buffer);
void KVC_HandoverCmd(const CFE_SB_Buffer_t *buffer);
void KVC_SendHkCmd(const CFE_SB_Buffer_t *buffer);
void KVC_WakeupCmd(const CFE_SB_Buffer_t *buffer);

#endif
