/**
 * @file
 * From a message on ISL's command pipe to the function that acts on it: message id, then function code, then exact length.
 */
#include "isl_dispatch.h"

#include "isl_app.h"
#include "isl_cmds.h"
#include "isl_eventids.h"
#include "isl_msgids.h"

static bool ISL_VerifyLength(const CFE_MSG_Message_t *message, size_t expected)
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
    ++ISL_Data.CommandErrorCounter;
    (void)CFE_EVS_SendEvent(ISL_LEN_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: message 0x%04lX code %u has %lu bytes, not %lu",
                            (unsigned long)CFE_SB_MsgIdToValue(mid), (unsigned)code, (unsigned long)actual,
                            (unsigned long)expected);
    return false;
}

static void ISL_ProcessCommand(const CFE_SB_Buffer_t *buffer)
{
    CFE_MSG_FcnCode_t code = 0;

    (void)CFE_MSG_GetFcnCode(&buffer->Msg, &code);
    switch (code)
    {
        case ISL_NOOP_CC:
            if (ISL_VerifyLength(&buffer->Msg, sizeof(ISL_NoopCmd_t)))
            {
                ISL_NoopCmd();
            }
            break;
        case ISL_RESET_COUNTERS_CC:
            if (ISL_VerifyLength(&buffer->Msg, sizeof(ISL_ResetCountersCmd_t)))
            {
                ISL_ResetCountersCmd();
            }
            break;
        case ISL_SET_LINK_CC:
            if (ISL_VerifyLength(&buffer->Msg, sizeof(ISL_SetLinkCmd_t)))
            {
                ISL_SetLinkCmd((const ISL_SetLinkCmd_t *)buffer);
            }
            break;
        default:
            ++ISL_Data.CommandErrorCounter;
            (void)CFE_EVS_SendEvent(ISL_CC_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: unknown function code %u", (unsigned)code);
            break;
    }
}

void ISL_TaskPipe(const CFE_SB_Buffer_t *buffer)
{
    CFE_SB_MsgId_t      id = CFE_SB_INVALID_MSG_ID;
    CFE_SB_MsgId_Atom_t mid;

    (void)CFE_MSG_GetMsgId(&buffer->Msg, &id);
    mid = CFE_SB_MsgIdToValue(id);
    if (mid == ISL_CMD_MID) /* no switch: with data sheets message ids are looked up, not constant */
    {
        ISL_ProcessCommand(buffer);
    }
    else if (mid == ISL_SEND_HK_MID)
    {
        if (ISL_VerifyLength(&buffer->Msg, sizeof(ISL_SendHkCmd_t)))
        {
            ISL_SendHkCmd();
        }
    }
    else if (mid == ISL_WAKEUP_MID)
    {
        if (ISL_VerifyLength(&buffer->Msg, sizeof(ISL_WakeupCmd_t)))
        {
            ISL_WakeupCmd();
        }
    }
    else
    {
        ++ISL_Data.CommandErrorCounter;
        (void)CFE_EVS_SendEvent(ISL_MID_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: message id 0x%04lX is not ours",
                                (unsigned long)mid);
    }
}
