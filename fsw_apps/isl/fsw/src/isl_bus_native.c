/**
 * @file
 * Software Bus messages that are space packets as they are.
 */
#include "isl_bus.h"

#include <string.h>

/** Check that this is one whole command that may go on the bus. */
static SKY_Status_t ISL_CheckCommand(const CFE_MSG_Message_t *message, uint32_t len, CFE_SB_MsgId_Atom_t first_mid,
                                     CFE_SB_MsgId_Atom_t last_mid)
{
    CFE_MSG_Size_t      size     = 0;
    CFE_MSG_Type_t      type     = CFE_MSG_Type_Invalid;
    CFE_SB_MsgId_t      mid      = CFE_SB_INVALID_MSG_ID;
    bool                is_valid = false;
    CFE_SB_MsgId_Atom_t value;

    if (len < sizeof(CFE_MSG_CommandHeader_t) || CFE_MSG_GetSize(message, &size) != CFE_SUCCESS || size != len)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    if (CFE_MSG_GetType(message, &type) != CFE_SUCCESS || type != CFE_MSG_Type_Cmd ||
        CFE_MSG_GetMsgId(message, &mid) != CFE_SUCCESS)
    {
        return SKY_STATUS_BAD_HEADER;
    }
    value = CFE_SB_MsgIdToValue(mid);
    if (last_mid == 0 || value < first_mid || value > last_mid)
    {
        return SKY_STATUS_REFUSED;
    }
    if (CFE_MSG_ValidateChecksum(message, &is_valid) != CFE_SUCCESS || !is_valid)
    {
        return SKY_STATUS_BAD_CHECKSUM;
    }
    return SKY_STATUS_OK;
}

SKY_Status_t ISL_Bus_Decode(const uint8_t *bytes, uint32_t len, CFE_SB_MsgId_Atom_t first_mid, CFE_SB_MsgId_Atom_t last_mid,
                            CFE_SB_Buffer_t **out)
{
    CFE_SB_Buffer_t *buffer;
    SKY_Status_t     status;

    if (len > SKY_LIMIT_RELAY_BYTES)
    {
        return SKY_STATUS_TOO_LARGE;
    }
    buffer = CFE_SB_AllocateMessageBuffer(len);
    if (buffer == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    memcpy(buffer, bytes, len); /* the copy is aligned */
    status = ISL_CheckCommand(&buffer->Msg, len, first_mid, last_mid);
    if (status == SKY_STATUS_OK)
    {
        *out = buffer;
    }
    else
    {
        (void)CFE_SB_ReleaseMessageBuffer(buffer);
    }
    return status;
}

uint32_t ISL_Bus_Encode(const CFE_MSG_Message_t *message, const uint8_t **bytes)
{
    CFE_MSG_Size_t size = 0;

    if (CFE_MSG_GetSize(message, &size) != CFE_SUCCESS || size > SKY_LIMIT_RELAY_BYTES)
    {
        return 0;
    }
    *bytes = (const uint8_t *)message;
    return (uint32_t)size;
}
