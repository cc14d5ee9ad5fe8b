/**
 * @file
 * Dispatch of a message on ISL's command pipe to the function that acts on it: message id, then function code, then exact length.
 */
#include "isl_dispatch.h"

#include "isl_app.h"
#include "isl_cmds.h"
#include "isl_eventids.h"
#include "isl_msgids.h"

/** The messages that ISL takes. The table names them, because their ids are no constants where electronic data sheets are built in. */
typedef enum
{
    ISL_MESSAGE_CMD = 0,
    ISL_MESSAGE_SEND_HK,
    ISL_MESSAGE_WAKEUP,
    ISL_MESSAGE_COUNT
} ISL_Message_t;

typedef struct
{
    ISL_Message_t     message;
    CFE_MSG_FcnCode_t code; /**< code of a command; other messages have none */
    void (*handler)(const CFE_SB_Buffer_t *buffer);
    size_t length; /**< exact length of the whole message */
} ISL_Dispatch_t;

static const ISL_Dispatch_t ISL_DispatchTable[] = {
    {ISL_MESSAGE_CMD, ISL_NOOP_CC, ISL_NoopCmd, sizeof(ISL_NoopCmd_t)},
    {ISL_MESSAGE_CMD, ISL_RESET_COUNTERS_CC, ISL_ResetCountersCmd, sizeof(ISL_ResetCountersCmd_t)},
    {ISL_MESSAGE_CMD, ISL_SET_LINK_CC, ISL_SetLinkCmd, sizeof(ISL_SetLinkCmd_t)},
    {ISL_MESSAGE_SEND_HK, 0, ISL_SendHkCmd, sizeof(ISL_SendHkCmd_t)},
    {ISL_MESSAGE_WAKEUP, 0, ISL_WakeupCmd, sizeof(ISL_WakeupCmd_t)},
};

/** Find the entry of a message. @return NULL if there is none; @p is_ours then tells whether the message id is one of ours */
static const ISL_Dispatch_t *ISL_FindDispatch(CFE_SB_MsgId_Atom_t mid, CFE_MSG_FcnCode_t code, bool *is_ours)
{
    /* The table is not static: with electronic data sheets its ids are looked up at run time. */
    const CFE_SB_MsgId_Atom_t mids[ISL_MESSAGE_COUNT] = {
        [ISL_MESSAGE_CMD]     = ISL_CMD_MID,
        [ISL_MESSAGE_SEND_HK] = ISL_SEND_HK_MID,
        [ISL_MESSAGE_WAKEUP]  = ISL_WAKEUP_MID,
    };
    uint32 i;

    *is_ours = false;
    for (i = 0; i < sizeof(ISL_DispatchTable) / sizeof(ISL_DispatchTable[0]); ++i)
    {
        const ISL_Dispatch_t *const entry = &ISL_DispatchTable[i];

        if (mids[entry->message] == mid)
        {
            *is_ours = true;
            if (entry->message != ISL_MESSAGE_CMD || entry->code == code)
            {
                return entry;
            }
        }
    }
    return NULL;
}

void ISL_TaskPipe(const CFE_SB_Buffer_t *buffer)
{
    const ISL_Dispatch_t *entry;
    CFE_SB_MsgId_t        id      = CFE_SB_INVALID_MSG_ID;
    CFE_MSG_FcnCode_t     code    = 0;
    CFE_MSG_Size_t        size    = 0;
    bool                  is_ours = false;
    CFE_SB_MsgId_Atom_t   mid;

    (void)CFE_MSG_GetMsgId(&buffer->Msg, &id);
    (void)CFE_MSG_GetFcnCode(&buffer->Msg, &code);
    (void)CFE_MSG_GetSize(&buffer->Msg, &size);
    mid   = CFE_SB_MsgIdToValue(id);
    entry = ISL_FindDispatch(mid, code, &is_ours);
    if (entry != NULL && entry->length == size)
    {
        entry->handler(buffer);
        return;
    }
    ++ISL_Data.CommandErrorCounter;
    if (entry != NULL)
    {
        (void)CFE_EVS_SendEvent(ISL_LEN_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: message 0x%04lX code %u has %lu bytes, not %lu",
                                (unsigned long)mid, (unsigned)code, (unsigned long)size, (unsigned long)entry->length);
    }
    else if (is_ours)
    {
        (void)CFE_EVS_SendEvent(ISL_CC_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: unknown function code %u", (unsigned)code);
    }
    else
    {
        (void)CFE_EVS_SendEvent(ISL_MID_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: message id 0x%04lX is not ours",
                                (unsigned long)mid);
    }
}
