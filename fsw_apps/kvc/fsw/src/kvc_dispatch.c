/**
 * @file
 * Dispatch of a message on KVC's pipe to the function that acts on it: message id, then function code, then exact length.
 */
#include "kvc_dispatch.h"

#include "kvc_app.h"
#include "kvc_cmds.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"

/** The messages that KVC takes. The table names them, because their ids are no constants where electronic data sheets are built in. */
typedef enum
{
    KVC_MESSAGE_CMD = 0,
    KVC_MESSAGE_SEND_HK,
    KVC_MESSAGE_WAKEUP,
    KVC_MESSAGE_COUNT
} KVC_Message_t;

typedef struct
{
    KVC_Message_t     message;
    CFE_MSG_FcnCode_t code; /**< code of a command; other messages have none */
    void (*handler)(const CFE_SB_Buffer_t *buffer);
    size_t length; /**< exact length of the whole message */
} KVC_Dispatch_t;

static const KVC_Dispatch_t KVC_DispatchTable[] = {
    {KVC_MESSAGE_CMD, KVC_NOOP_CC, KVC_NoopCmd, sizeof(KVC_NoopCmd_t)},
    {KVC_MESSAGE_CMD, KVC_RESET_COUNTERS_CC, KVC_ResetCountersCmd, sizeof(KVC_ResetCountersCmd_t)},
    {KVC_MESSAGE_CMD, KVC_CLEAR_STORE_CC, KVC_ClearStoreCmd, sizeof(KVC_ClearStoreCmd_t)},
    {KVC_MESSAGE_CMD, KVC_PURGE_BLOCK_CC, KVC_PurgeBlockCmd, sizeof(KVC_PurgeBlockCmd_t)},
    {KVC_MESSAGE_CMD, KVC_SCHEDULE_BEGIN_CC, KVC_ScheduleBeginCmd, sizeof(KVC_ScheduleBeginCmd_t)},
    {KVC_MESSAGE_CMD, KVC_SCHEDULE_ROWS_CC, KVC_ScheduleRowsCmd, sizeof(KVC_ScheduleRowsCmd_t)},
    {KVC_MESSAGE_CMD, KVC_SCHEDULE_COMMIT_CC, KVC_ScheduleCommitCmd, sizeof(KVC_ScheduleCommitCmd_t)},
    {KVC_MESSAGE_CMD, KVC_HANDOVER_CC, KVC_HandoverCmd, sizeof(KVC_HandoverCmd_t)},
    {KVC_MESSAGE_SEND_HK, 0, KVC_SendHkCmd, sizeof(KVC_SendHkCmd_t)},
    {KVC_MESSAGE_WAKEUP, 0, KVC_WakeupCmd, sizeof(KVC_WakeupCmd_t)},
};

/** Find the entry of a message. @return NULL if there is none; @p is_ours then tells whether the message id is one of ours */
static const KVC_Dispatch_t *KVC_FindDispatch(CFE_SB_MsgId_Atom_t mid, CFE_MSG_FcnCode_t code, bool *is_ours)
{
    /* The table is not static: with electronic data sheets its ids are looked up at run time. */
    const CFE_SB_MsgId_Atom_t mids[KVC_MESSAGE_COUNT] = {
        [KVC_MESSAGE_CMD]     = KVC_CMD_MID,
        [KVC_MESSAGE_SEND_HK] = KVC_SEND_HK_MID,
        [KVC_MESSAGE_WAKEUP]  = KVC_WAKEUP_MID,
    };
    uint32 i;

    *is_ours = false;
    for (i = 0; i < sizeof(KVC_DispatchTable) / sizeof(KVC_DispatchTable[0]); ++i)
    {
        const KVC_Dispatch_t *const entry = &KVC_DispatchTable[i];

        if (mids[entry->message] == mid)
        {
            *is_ours = true;
            if (entry->message != KVC_MESSAGE_CMD || entry->code == code)
            {
                return entry;
            }
        }
    }
    return NULL;
}

void KVC_TaskPipe(const CFE_SB_Buffer_t *buffer)
{
    const KVC_Dispatch_t *entry;
    CFE_SB_MsgId_t        id      = CFE_SB_INVALID_MSG_ID;
    CFE_MSG_FcnCode_t     code    = 0;
    CFE_MSG_Size_t        size    = 0;
    bool                  is_ours = false;
    CFE_SB_MsgId_Atom_t   mid;

    (void)CFE_MSG_GetMsgId(&buffer->Msg, &id);
    (void)CFE_MSG_GetFcnCode(&buffer->Msg, &code);
    (void)CFE_MSG_GetSize(&buffer->Msg, &size);
    mid   = CFE_SB_MsgIdToValue(id);
    entry = KVC_FindDispatch(mid, code, &is_ours);
    if (entry != NULL && entry->length == size)
    {
        entry->handler(buffer);
        return;
    }
    ++KVC_Data.CommandErrorCounter;
    if (entry != NULL)
    {
        (void)CFE_EVS_SendEvent(KVC_LEN_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: message 0x%04lX code %u has %lu bytes, not %lu",
                                (unsigned long)mid, (unsigned)code, (unsigned long)size, (unsigned long)entry->length);
    }
    else if (is_ours)
    {
        (void)CFE_EVS_SendEvent(KVC_CC_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: unknown function code %u", (unsigned)code);
    }
    else
    {
        (void)CFE_EVS_SendEvent(KVC_MID_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: message id 0x%04lX is not ours",
                                (unsigned long)mid);
    }
}
