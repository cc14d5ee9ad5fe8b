/**
 * @file
 * Software Bus: pipes, subscriptions, messages.
 */
#ifndef CFE_SB_H
#define CFE_SB_H

#include "cfe_error.h"
#include "cfe_es_api_typedefs.h"
#include "cfe_sb_api_typedefs.h"

CFE_Status_t CFE_SB_CreatePipe(CFE_SB_PipeId_t *PipeIdPtr, uint16 Depth, const char *PipeName);
CFE_Status_t CFE_SB_DeletePipe(CFE_SB_PipeId_t PipeId);
CFE_Status_t CFE_SB_Subscribe(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId);
CFE_Status_t CFE_SB_SubscribeEx(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId, CFE_SB_Qos_t Quality, uint16 MsgLim);
CFE_Status_t CFE_SB_Unsubscribe(CFE_SB_MsgId_t MsgId, CFE_SB_PipeId_t PipeId);

/** Receive a buffer. It must not be written to, and is valid until the next receive on the same pipe. */
CFE_Status_t     CFE_SB_ReceiveBuffer(CFE_SB_Buffer_t **BufPtr, CFE_SB_PipeId_t PipeId, int32 TimeOut);
CFE_SB_Buffer_t *CFE_SB_AllocateMessageBuffer(size_t MsgSize);
CFE_Status_t     CFE_SB_ReleaseMessageBuffer(CFE_SB_Buffer_t *BufPtr);
/** Transmit a buffer. Success says that the bus took the message, not that a pipe had room for it. */
CFE_Status_t CFE_SB_TransmitBuffer(CFE_SB_Buffer_t *BufPtr, bool IsOrigination);
CFE_Status_t CFE_SB_TransmitMsg(const CFE_MSG_Message_t *MsgPtr, bool IsOrigination);

void CFE_SB_TimeStampMsg(CFE_MSG_Message_t *MsgPtr);

static inline bool CFE_SB_MsgId_Equal(CFE_SB_MsgId_t MsgId1, CFE_SB_MsgId_t MsgId2)
{
    return MsgId1.Value == MsgId2.Value;
}

static inline CFE_SB_MsgId_Atom_t CFE_SB_MsgIdToValue(CFE_SB_MsgId_t MsgId)
{
    return MsgId.Value;
}

static inline CFE_SB_MsgId_t CFE_SB_ValueToMsgId(CFE_SB_MsgId_Atom_t MsgIdValue)
{
    const CFE_SB_MsgId_t MsgId = CFE_SB_MSGID_WRAP_VALUE(MsgIdValue);
    return MsgId;
}

#endif
