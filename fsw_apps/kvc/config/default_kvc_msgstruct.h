/**
 * @file
 * Messages of KVC.
 */
#ifndef KVC_MSGSTRUCT_H
#define KVC_MSGSTRUCT_H

#include "kvc_msgdefs.h"
#include "cfe_msg_hdr.h"

typedef struct KVC_NoopCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} KVC_NoopCmd_t;

typedef struct KVC_ResetCountersCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} KVC_ResetCountersCmd_t;

typedef struct KVC_ClearStoreCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} KVC_ClearStoreCmd_t;

typedef struct KVC_PurgeBlockCmd
{
    CFE_MSG_CommandHeader_t  CommandHeader;
    KVC_PurgeBlock_Payload_t Payload;
} KVC_PurgeBlockCmd_t;

typedef struct KVC_ScheduleBeginCmd
{
    CFE_MSG_CommandHeader_t     CommandHeader;
    KVC_ScheduleBegin_Payload_t Payload;
} KVC_ScheduleBeginCmd_t;

typedef struct KVC_ScheduleRowsCmd
{
    CFE_MSG_CommandHeader_t    CommandHeader;
    KVC_ScheduleRows_Payload_t Payload;
} KVC_ScheduleRowsCmd_t;

typedef struct KVC_ScheduleCommitCmd
{
    CFE_MSG_CommandHeader_t      CommandHeader;
    KVC_ScheduleCommit_Payload_t Payload;
} KVC_ScheduleCommitCmd_t;

typedef struct KVC_HandoverCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
    KVC_Handover_Payload_t  Payload;
} KVC_HandoverCmd_t;

typedef struct KVC_SendHkCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} KVC_SendHkCmd_t;

typedef struct KVC_WakeupCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} KVC_WakeupCmd_t;

typedef struct KVC_HkTlm
{
    CFE_MSG_TelemetryHeader_t TelemetryHeader;
    KVC_HkTlm_Payload_t       Payload;
} KVC_HkTlm_t;

#endif
