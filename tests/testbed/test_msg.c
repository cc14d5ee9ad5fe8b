/* Message headers and time. */
#include <string.h>

#include "cfe.h"
#include "check.h"

typedef struct
{
    CFE_MSG_CommandHeader_t header;
    uint8                   data[10];
} Command_t;

typedef struct
{
    CFE_MSG_TelemetryHeader_t header;
    uint32                    value;
} Telemetry_t;

static void Sizes(void)
{
    CHECK_EQ(sizeof(CFE_MSG_Message_t), 6);
    CHECK_EQ(sizeof(CFE_MSG_CommandHeader_t), 8);
    CHECK_EQ(sizeof(CFE_MSG_TelemetryHeader_t), 16);
}

static void InitClearsTheWholeMessage(void)
{
    Command_t      command;
    CFE_SB_MsgId_t mid;
    size_t         size = 0;
    (void)memset(&command, 0xFF, sizeof command);
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(command.header), CFE_SB_ValueToMsgId(0x18D0), sizeof command), CFE_SUCCESS);
    for (size_t i = 0; i < sizeof command.data; ++i)
    {
        CHECK_EQ(command.data[i], 0);
    }
    CHECK_EQ(CFE_MSG_GetMsgId(CFE_MSG_PTR(command.header), &mid), CFE_SUCCESS);
    CHECK(CFE_SB_MsgId_Equal(mid, CFE_SB_MSGID_C(0x18D0)));
    CHECK_EQ(CFE_MSG_GetSize(CFE_MSG_PTR(command.header), &size), CFE_SUCCESS);
    CHECK_EQ(size, sizeof command);
    const uint8 expected[6] = {0x18, 0xD0, 0xC0, 0x00, 0x00, sizeof command - 7};
    CHECK(memcmp(&command, expected, sizeof expected) == 0);
    CHECK_EQ(CFE_MSG_Init(NULL, mid, sizeof command), CFE_MSG_BAD_ARGUMENT);
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(command.header), mid, 6), CFE_MSG_BAD_ARGUMENT);
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(command.header), CFE_SB_ValueToMsgId(0x2000), sizeof command), CFE_MSG_BAD_ARGUMENT);
}

static void FieldsAreKeptApart(void)
{
    Command_t               command;
    CFE_SB_MsgId_t          mid;
    CFE_MSG_SequenceCount_t count;
    CFE_MSG_Type_t          type;
    CFE_MSG_Message_t      *msg = CFE_MSG_PTR(command.header);
    (void)memset(&command, 0, sizeof command);
    CHECK_EQ(CFE_MSG_Init(msg, CFE_SB_ValueToMsgId(0x1801), sizeof command), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_SetMsgId(msg, CFE_SB_ValueToMsgId(0x1FFF)), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_SetSequenceCount(msg, 0x3FFF), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetMsgId(msg, &mid), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetSequenceCount(msg, &count), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetType(msg, &type), CFE_SUCCESS);
    CHECK_EQ(mid.Value, 0x1FFF);
    CHECK_EQ(count, 0x3FFF);
    CHECK_EQ(type, CFE_MSG_Type_Cmd);
    CHECK_EQ(command.header.Msg.CCSDS.Pri.Sequence[0] >> 6, 3); /* 11: not segmented */
    CHECK_EQ(CFE_MSG_SetMsgId(msg, CFE_SB_ValueToMsgId(0x0FFF)), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetType(msg, &type), CFE_SUCCESS);
    CHECK_EQ(type, CFE_MSG_Type_Tlm);
    CHECK_EQ(CFE_MSG_GetSequenceCount(msg, &count), CFE_SUCCESS);
    CHECK_EQ(count, 0x3FFF);
    CHECK_EQ(CFE_MSG_SetMsgId(msg, CFE_SB_ValueToMsgId(0x2000)), CFE_MSG_BAD_ARGUMENT);
    CHECK_EQ(CFE_MSG_SetSequenceCount(msg, 0x4000), CFE_MSG_BAD_ARGUMENT);
}

static void CommandsHaveFunctionCodesAndChecksums(void)
{
    Command_t         command;
    Telemetry_t       telemetry;
    CFE_MSG_FcnCode_t code  = 99;
    bool              valid = false;
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(command.header), CFE_SB_ValueToMsgId(0x18D0), sizeof command), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(telemetry.header), CFE_SB_ValueToMsgId(0x08D0), sizeof telemetry), CFE_SUCCESS);
    command.data[3] = 0x5A;
    CHECK_EQ(CFE_MSG_SetFcnCode(CFE_MSG_PTR(command.header), 5), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GenerateChecksum(CFE_MSG_PTR(command.header)), CFE_SUCCESS);
    /* 0xFF ^ 18 ^ D0 ^ C0 ^ 00 ^ 00 ^ 0B ^ 05 ^ 5A */
    CHECK_EQ(command.header.Sec.Checksum, 0xFF ^ 0x18 ^ 0xD0 ^ 0xC0 ^ 0x0B ^ 0x05 ^ 0x5A);
    CHECK_EQ(CFE_MSG_ValidateChecksum(CFE_MSG_PTR(command.header), &valid), CFE_SUCCESS);
    CHECK(valid);
    command.data[0] ^= 1;
    CHECK_EQ(CFE_MSG_ValidateChecksum(CFE_MSG_PTR(command.header), &valid), CFE_SUCCESS);
    CHECK(!valid);
    CHECK_EQ(CFE_MSG_GetFcnCode(CFE_MSG_PTR(command.header), &code), CFE_SUCCESS);
    CHECK_EQ(code, 5);
    CHECK_EQ(CFE_MSG_SetFcnCode(CFE_MSG_PTR(command.header), 128), CFE_MSG_BAD_ARGUMENT);
    CHECK_EQ(CFE_MSG_GetFcnCode(CFE_MSG_PTR(telemetry.header), &code), CFE_MSG_WRONG_MSG_TYPE);
    CHECK_EQ(code, 0);
    CHECK_EQ(CFE_MSG_SetFcnCode(CFE_MSG_PTR(telemetry.header), 1), CFE_MSG_WRONG_MSG_TYPE);
    CHECK_EQ(CFE_MSG_GenerateChecksum(CFE_MSG_PTR(telemetry.header)), CFE_MSG_WRONG_MSG_TYPE);
    CHECK_EQ(CFE_MSG_ValidateChecksum(CFE_MSG_PTR(telemetry.header), &valid), CFE_MSG_WRONG_MSG_TYPE);
}

static void TelemetryHasTime(void)
{
    Telemetry_t              telemetry;
    CFE_TIME_SysTime_t       stamped;
    const CFE_TIME_SysTime_t before = CFE_TIME_GetTime();
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(telemetry.header), CFE_SB_ValueToMsgId(0x08D0), sizeof telemetry), CFE_SUCCESS);
    CFE_SB_TimeStampMsg(CFE_MSG_PTR(telemetry.header));
    CHECK_EQ(CFE_MSG_GetMsgTime(CFE_MSG_PTR(telemetry.header), &stamped), CFE_SUCCESS);
    CHECK(CFE_TIME_GetTime().Seconds - stamped.Seconds < 2);
    CHECK(stamped.Seconds >= before.Seconds);
}

static void SubsecondsAreParts(void)
{
    CHECK_EQ(CFE_TIME_Sub2MicroSecs(0x80000000), 500000);
    CHECK_EQ(CFE_TIME_Sub2MicroSecs(0xFFFFFFFF), 999999);
    CHECK_EQ(CFE_TIME_Sub2MicroSecs(0), 0);
}

int main(void)
{
    RUN(Sizes);
    RUN(InitClearsTheWholeMessage);
    RUN(FieldsAreKeptApart);
    RUN(CommandsHaveFunctionCodesAndChecksums);
    RUN(TelemetryHasTime);
    RUN(SubsecondsAreParts);
    return CHECK_RESULT();
}
