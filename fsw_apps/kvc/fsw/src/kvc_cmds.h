/**
 * @file
 * Commands of KVC.
 */
#ifndef KVC_CMDS_H
#define KVC_CMDS_H

#include "kvc_msg.h"

void KVC_NoopCmd(void);
void KVC_ResetCountersCmd(void);
void KVC_ClearStoreCmd(void);
void KVC_PurgeBlockCmd(const KVC_PurgeBlockCmd_t *cmd);
void KVC_ScheduleBeginCmd(const KVC_ScheduleBeginCmd_t *cmd);
void KVC_ScheduleRowsCmd(const KVC_ScheduleRowsCmd_t *cmd);
void KVC_ScheduleCommitCmd(const KVC_ScheduleCommitCmd_t *cmd);
void KVC_HandoverCmd(const KVC_HandoverCmd_t *cmd);
void KVC_SendHkCmd(void);
void KVC_WakeupCmd(void);

#endif
