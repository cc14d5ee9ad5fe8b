/**
 * @file
 * Message headers, CCSDS version 1.
 */
#include <string.h>

#include "cfe.h"
#include "cfe_platform_cfg.h"

#define TYPE_CMD       0x10u
#define SEC_HDR        0x08u
#define VERSION_BITS   0xE0u
#define SEQUENCE_MAX   0x3FFFu
#define FCN_CODE_MAX   0x7Fu
#define SIZE_MIN       7u
#define SIZE_MAX_BYTES (0xFFFFu + SIZE_MIN)

static bool IsCommand(const CFE_MSG_Message_t *msg)
{
    return (msg->CCSDS.Pri.StreamId[0] & (VERSION_BITS | TYPE_CMD | SEC_HDR)) == (TYPE_CMD | SEC_HDR);
}

static bool IsTelemetry(const CFE_MSG_Message_t *msg)
{
    return (msg->CCSDS.Pri.StreamId[0] & (VERSION_BITS | TYPE_CMD | SEC_HDR)) == SEC_HDR;
}

CFE_Status_t CFE_MSG_Init(CFE_MSG_Message_t *MsgPtr, CFE_SB_MsgId_t MsgId, CFE_MSG_Size_t Size)
{
    if (MsgPtr == NULL || Size < SIZE_MIN || Size > SIZE_MAX_BYTES)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    (void)memset(MsgPtr, 0, Size);
    MsgPtr->CCSDS.Pri.StreamId[0] = SEC_HDR;
    MsgPtr->CCSDS.Pri.Sequence[0] = 0xC0;
    /* A header with the invalid id is filled in later. */
    const CFE_Status_t status = MsgId.Value == 0 ? CFE_SUCCESS : CFE_MSG_SetMsgId(MsgPtr, MsgId);
    return status == CFE_SUCCESS ? CFE_MSG_SetSize(MsgPtr, Size) : status;
}

CFE_Status_t CFE_MSG_GetSize(const CFE_MSG_Message_t *MsgPtr, CFE_MSG_Size_t *Size)
{
    if (MsgPtr == NULL || Size == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    *Size = ((size_t)MsgPtr->CCSDS.Pri.Length[0] << 8) + MsgPtr->CCSDS.Pri.Length[1] + SIZE_MIN;
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_SetSize(CFE_MSG_Message_t *MsgPtr, CFE_MSG_Size_t Size)
{
    if (MsgPtr == NULL || Size < SIZE_MIN || Size > SIZE_MAX_BYTES)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    MsgPtr->CCSDS.Pri.Length[0] = (uint8)((Size - SIZE_MIN) >> 8);
    MsgPtr->CCSDS.Pri.Length[1] = (uint8)((Size - SIZE_MIN) & 0xFFu);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_GetMsgId(const CFE_MSG_Message_t *MsgPtr, CFE_SB_MsgId_t *MsgId)
{
    if (MsgPtr == NULL || MsgId == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    MsgId->Value = ((CFE_SB_MsgId_Atom_t)MsgPtr->CCSDS.Pri.StreamId[0] << 8) | MsgPtr->CCSDS.Pri.StreamId[1];
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_SetMsgId(CFE_MSG_Message_t *MsgPtr, CFE_SB_MsgId_t MsgId)
{
    if (MsgPtr == NULL || MsgId.Value == 0 || MsgId.Value > CFE_PLATFORM_SB_HIGHEST_VALID_MSGID)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    MsgPtr->CCSDS.Pri.StreamId[0] = (uint8)(MsgId.Value >> 8);
    MsgPtr->CCSDS.Pri.StreamId[1] = (uint8)(MsgId.Value & 0xFFu);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_GetFcnCode(const CFE_MSG_Message_t *MsgPtr, CFE_MSG_FcnCode_t *FcnCode)
{
    if (MsgPtr == NULL || FcnCode == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    if (!IsCommand(MsgPtr))
    {
        *FcnCode = 0;
        return CFE_MSG_WRONG_MSG_TYPE;
    }
    *FcnCode = (CFE_MSG_FcnCode_t)(((const CFE_MSG_CommandHeader_t *)MsgPtr)->Sec.FunctionCode & FCN_CODE_MAX);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_SetFcnCode(CFE_MSG_Message_t *MsgPtr, CFE_MSG_FcnCode_t FcnCode)
{
    if (MsgPtr == NULL || FcnCode > FCN_CODE_MAX)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    if (!IsCommand(MsgPtr))
    {
        return CFE_MSG_WRONG_MSG_TYPE;
    }
    ((CFE_MSG_CommandHeader_t *)MsgPtr)->Sec.FunctionCode = (uint8)FcnCode;
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_GetSequenceCount(const CFE_MSG_Message_t *MsgPtr, CFE_MSG_SequenceCount_t *SeqCnt)
{
    if (MsgPtr == NULL || SeqCnt == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    *SeqCnt = (CFE_MSG_SequenceCount_t)(((MsgPtr->CCSDS.Pri.Sequence[0] & 0x3Fu) << 8) | MsgPtr->CCSDS.Pri.Sequence[1]);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_SetSequenceCount(CFE_MSG_Message_t *MsgPtr, CFE_MSG_SequenceCount_t SeqCnt)
{
    if (MsgPtr == NULL || SeqCnt > SEQUENCE_MAX)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    MsgPtr->CCSDS.Pri.Sequence[0] = (uint8)((MsgPtr->CCSDS.Pri.Sequence[0] & 0xC0u) | ((unsigned)SeqCnt >> 8));
    MsgPtr->CCSDS.Pri.Sequence[1] = (uint8)(SeqCnt & 0xFFu);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_GetType(const CFE_MSG_Message_t *MsgPtr, CFE_MSG_Type_t *Type)
{
    if (MsgPtr == NULL || Type == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    *Type = (MsgPtr->CCSDS.Pri.StreamId[0] & TYPE_CMD) != 0 ? CFE_MSG_Type_Cmd : CFE_MSG_Type_Tlm;
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_GetMsgTime(const CFE_MSG_Message_t *MsgPtr, CFE_TIME_SysTime_t *Time)
{
    if (MsgPtr == NULL || Time == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    (void)memset(Time, 0, sizeof *Time);
    if (!IsTelemetry(MsgPtr))
    {
        return CFE_MSG_WRONG_MSG_TYPE;
    }
    const uint8 *bytes = ((const CFE_MSG_TelemetryHeader_t *)MsgPtr)->Sec.Time;
    Time->Seconds      = ((uint32)bytes[0] << 24) | ((uint32)bytes[1] << 16) | ((uint32)bytes[2] << 8) | bytes[3];
    Time->Subseconds   = ((uint32)bytes[4] << 24) | ((uint32)bytes[5] << 16);
    return CFE_SUCCESS;
}

void CFE_SB_TimeStampMsg(CFE_MSG_Message_t *MsgPtr)
{
    if (MsgPtr != NULL && IsTelemetry(MsgPtr))
    {
        const CFE_TIME_SysTime_t now   = CFE_TIME_GetTime();
        uint8                   *bytes = ((CFE_MSG_TelemetryHeader_t *)MsgPtr)->Sec.Time;
        bytes[0]                       = (uint8)(now.Seconds >> 24);
        bytes[1]                       = (uint8)(now.Seconds >> 16);
        bytes[2]                       = (uint8)(now.Seconds >> 8);
        bytes[3]                       = (uint8)now.Seconds;
        bytes[4]                       = (uint8)(now.Subseconds >> 24);
        bytes[5]                       = (uint8)(now.Subseconds >> 16);
    }
}

static uint8 Checksum(const CFE_MSG_Message_t *msg)
{
    size_t       size  = 0;
    unsigned     sum   = 0xFF;
    const uint8 *bytes = (const uint8 *)msg;
    (void)CFE_MSG_GetSize(msg, &size);
    for (size_t i = 0; i < size; ++i)
    {
        sum ^= bytes[i];
    }
    return (uint8)sum;
}

CFE_Status_t CFE_MSG_GenerateChecksum(CFE_MSG_Message_t *MsgPtr)
{
    if (MsgPtr == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    if (!IsCommand(MsgPtr))
    {
        return CFE_MSG_WRONG_MSG_TYPE;
    }
    CFE_MSG_CommandHeader_t *command = (CFE_MSG_CommandHeader_t *)MsgPtr;
    command->Sec.Checksum            = 0;
    command->Sec.Checksum            = Checksum(MsgPtr);
    return CFE_SUCCESS;
}

CFE_Status_t CFE_MSG_ValidateChecksum(const CFE_MSG_Message_t *MsgPtr, bool *IsValid)
{
    if (MsgPtr == NULL || IsValid == NULL)
    {
        return CFE_MSG_BAD_ARGUMENT;
    }
    if (!IsCommand(MsgPtr))
    {
        return CFE_MSG_WRONG_MSG_TYPE;
    }
    *IsValid = Checksum(MsgPtr) == 0;
    return CFE_SUCCESS;
}
