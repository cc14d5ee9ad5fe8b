/**
 * @file
 * From a message on KVC's pipe to the function that acts on it: message id, then function code, then exact length.
 */
#include "kvc_dispatch.h"

#include "kvc_app.h"
#include "kvc_cmds.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"

static bool KVC_VerifyLength(const CFE_MSG_Message_t *message, size_t expected)
{
    CFE_SB_MsgId_t    mid    = CFE_SB_INVALID_MSG_ID;
    CFE_MSG_FcnCode_t code   = 0;
    CFE_MSG_Size_t    actual = 0;

    (void)CFE_MSG_GetSize(message, &actual);
    if (actual == expected)
    {
        return true;
    }
    (void)CFE_MSG_GetMsgId(message, &mid);
    (void)CFE_MSG_GetFcnCode(message, &code);
    ++KVC_Data.CommandErrorCounter;
    (void)CFE_EVS_SendEvent(KVC_LEN_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: message 0x%04lX code %u has %lu bytes, not %lu",
                            (unsigned long)CFE_SB_MsgIdToValue(mid), (unsigned)code, (unsigned long)actual,
                            (unsigned long)expected);
    return false;
}

static void KVC_ProcessCommand(const CFE_SB_Buffer_t *buffer)
{
    CFE_MSG_FcnCode_t code = 0;

    (void)CFE_MSG_GetFcnCode(&buffer->Msg, &code);
    switch (code)
    {
        case KVC_NOOP_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_NoopCmd_t)))
            {
                KVC_NoopCmd();
            }
            break;
        case KVC_RESET_COUNTERS_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_ResetCountersCmd_t)))
            {
                KVC_ResetCountersCmd();
            }
            break;
        case KVC_CLEAR_STORE_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_ClearStoreCmd_t)))
            {
                KVC_ClearStoreCmd();
            }
            break;
        case KVC_PURGE_BLOCK_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_PurgeBlockCmd_t)))
            {
                KVC_PurgeBlockCmd((const KVC_PurgeBlockCmd_t *)buffer);
            }
            break;
        case KVC_SCHEDULE_BEGIN_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_ScheduleBeginCmd_t)))
            {
                KVC_ScheduleBeginCmd((const KVC_ScheduleBeginCmd_t *)buffer);
            }
            break;
        case KVC_SCHEDULE_ROWS_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_ScheduleRowsCmd_t)))
            {
                KVC_ScheduleRowsCmd((const KVC_ScheduleRowsCmd_t *)buffer);
            }
            break;
        case KVC_SCHEDULE_COMMIT_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_ScheduleCommitCmd_t)))
            {
                KVC_ScheduleCommitCmd((const KVC_ScheduleCommitCmd_t *)buffer);
            }
            break;
        case KVC_HANDOVER_CC:
            if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_HandoverCmd_t)))
            {
                KVC_HandoverCmd((const KVC_HandoverCmd_t *)buffer);
            }
            break;
        default:
            ++KVC_Data.CommandErrorCounter;
            (void)CFE_EVS_SendEvent(KVC_CC_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: unknown function code %u", (unsigned)code);
            break;
    }
}

void KVC_TaskPipe(const CFE_SB_Buffer_t *buffer)
{
    CFE_SB_MsgId_t      id = CFE_SB_INVALID_MSG_ID;
    CFE_SB_MsgId_Atom_t mid;

    (void)CFE_MSG_GetMsgId(&buffer->Msg, &id);
    mid = CFE_SB_MsgIdToValue(id);
    if (mid == KVC_CMD_MID) /* no switch: with data sheets message ids are looked up, not constant */
    {
        KVC_ProcessCommand(buffer);
    }
    else if (mid == KVC_SEND_HK_MID)
    {
        if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_SendHkCmd_t)))
        {
            KVC_SendHkCmd();
        }
    }
    else if (mid == KVC_WAKEUP_MID)
    {
        if (KVC_VerifyLength(&buffer->Msg, sizeof(KVC_WakeupCmd_t)))
        {
            KVC_WakeupCmd();
        }
    }
    else
    {
        ++KVC_Data.CommandErrorCounter;
        (void)CFE_EVS_SendEvent(KVC_MID_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: message id 0x%04lX is not ours",
                                (unsigned long)mid);
    }
}
