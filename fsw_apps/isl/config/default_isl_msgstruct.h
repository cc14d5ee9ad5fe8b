/**
 * @file
 * Messages of ISL.
 */
#ifndef ISL_MSGSTRUCT_H
#define ISL_MSGSTRUCT_H

#include "isl_msgdefs.h"
#include "cfe_msg_hdr.h"

typedef struct ISL_NoopCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} ISL_NoopCmd_t;

typedef struct ISL_ResetCountersCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} ISL_ResetCountersCmd_t;

typedef struct ISL_SetLinkCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
    ISL_SetLink_Payload_t   Payload;
} ISL_SetLinkCmd_t;

typedef struct ISL_SendHkCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} ISL_SendHkCmd_t;

typedef struct ISL_WakeupCmd
{
    CFE_MSG_CommandHeader_t CommandHeader;
} ISL_WakeupCmd_t;

typedef struct ISL_HkTlm
{
    CFE_MSG_TelemetryHeader_t TelemetryHeader;
    ISL_HkTlm_Payload_t       Payload;
} ISL_HkTlm_t;

#endif
