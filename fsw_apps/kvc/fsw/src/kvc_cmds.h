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
void KVC_SendHkCmd(void);
void KVC_WakeupCmd(void);

#endif
