/* Software Bus: who gets what, what is dropped, and that a message given to an app is neither writable nor kept. */
#include <sys/wait.h>
#include <unistd.h>

#include "bench_app.h"

#define MID_A 0x18E0
#define MID_B 0x18E1
#define MID_T 0x08E5

typedef struct
{
    CFE_MSG_CommandHeader_t header;
    uint32                  value;
} Command_t;

static CFE_SB_PipeId_t OpenPipe(const char *name, uint16 depth)
{
    CFE_SB_PipeId_t pipe = CFE_SB_INVALID_PIPE;
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, depth, name), CFE_SUCCESS);
    return pipe;
}

static CFE_Status_t Send(uint32 mid, uint32 value)
{
    Command_t command;
    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(command.header), CFE_SB_ValueToMsgId(mid), sizeof command), CFE_SUCCESS);
    command.value = value;
    return CFE_SB_TransmitMsg(CFE_MSG_PTR(command.header), true);
}

static const Command_t *Receive(CFE_SB_PipeId_t pipe, int32 timeout)
{
    CFE_SB_Buffer_t *buffer = NULL;
    return CFE_SB_ReceiveBuffer(&buffer, pipe, timeout) == CFE_SUCCESS ? (const Command_t *)buffer : NULL;
}

static uint32 Drain(CFE_SB_PipeId_t pipe)
{
    uint32 count = 0;
    while (Receive(pipe, CFE_SB_POLL) != NULL)
    {
        ++count;
    }
    return count;
}

static void MessagesReachAllSubscribers(void)
{
    CFE_SB_PipeId_t one = OpenPipe("ONE", 10);
    CFE_SB_PipeId_t two = OpenPipe("TWO", 10);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), one), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), two), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_B), two), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_B), two), CFE_SUCCESS); /* twice is no error, and not twice the messages */
    CHECK_EQ(Send(MID_A, 1), CFE_SUCCESS);
    CHECK_EQ(Send(MID_B, 2), CFE_SUCCESS);
    CHECK_EQ(Receive(one, CFE_SB_POLL)->value, 1);
    CHECK(Receive(one, CFE_SB_POLL) == NULL);
    CHECK_EQ(Receive(two, CFE_SB_POLL)->value, 1);
    CHECK_EQ(Receive(two, CFE_SB_POLL)->value, 2);
    CHECK(Receive(two, CFE_SB_POLL) == NULL);
    CHECK_EQ(CFE_SB_Unsubscribe(CFE_SB_ValueToMsgId(MID_A), two), CFE_SUCCESS);
    CHECK_EQ(Send(MID_A, 3), CFE_SUCCESS);
    CHECK_EQ(Drain(one), 1);
    CHECK_EQ(Drain(two), 0);
    CHECK_EQ(CFE_SB_DeletePipe(one), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_DeletePipe(two), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_DeletePipe(two), CFE_SB_BAD_ARGUMENT);
}

static void OriginationWritesSequenceTimeAndChecksum(void)
{
    CFE_SB_PipeId_t         pipe = OpenPipe("SEQ", 10);
    CFE_SB_Buffer_t        *buffer;
    CFE_MSG_SequenceCount_t first = 0;
    CFE_MSG_SequenceCount_t next  = 0;
    bool                    valid = false;
    CFE_TIME_SysTime_t      time;
    struct
    {
        CFE_MSG_TelemetryHeader_t header;
    } telemetry;
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_T), pipe), CFE_SUCCESS);
    CHECK_EQ(Send(MID_A, 1), CFE_SUCCESS);
    CHECK_EQ(Send(MID_A, 2), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetSequenceCount(&buffer->Msg, &first), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_ValidateChecksum(&buffer->Msg, &valid), CFE_SUCCESS);
    CHECK(valid);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetSequenceCount(&buffer->Msg, &next), CFE_SUCCESS);
    CHECK_EQ(next, first + 1);

    CHECK_EQ(CFE_MSG_Init(CFE_MSG_PTR(telemetry.header), CFE_SB_ValueToMsgId(MID_T), sizeof telemetry), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitMsg(CFE_MSG_PTR(telemetry.header), true), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_GetMsgTime(&buffer->Msg, &time), CFE_SUCCESS);
    CHECK(time.Seconds != 0);

    /* relayed: nothing is touched */
    CHECK_EQ(CFE_MSG_SetSequenceCount(CFE_MSG_PTR(telemetry.header), 77), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitMsg(CFE_MSG_PTR(telemetry.header), false), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SUCCESS);
    CHECK(memcmp(buffer, &telemetry, sizeof telemetry) == 0);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

static void WhatDoesNotFitIsDroppedWithoutAWord(void)
{
    EXEC_SbCounters_t before;
    EXEC_SbCounters_t after;
    CFE_SB_PipeId_t   pipe = OpenPipe("FULL", 10);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(MID_B), pipe, CFE_SB_DEFAULT_QOS, 50), CFE_SUCCESS);
    EXEC_SbCounters(&before);
    for (uint32 i = 0; i < 6; ++i)
    {
        CHECK_EQ(Send(MID_A, i), CFE_SUCCESS); /* four of an id may wait */
    }
    for (uint32 i = 0; i < 10; ++i)
    {
        CHECK_EQ(Send(MID_B, i), CFE_SUCCESS); /* ten of all */
    }
    CHECK_EQ(Send(0x18EF, 0), CFE_SUCCESS); /* nobody wants it */
    EXEC_SbCounters(&after);
    CHECK_EQ(after.message_limit - before.message_limit, 2);
    CHECK_EQ(after.pipe_overflow - before.pipe_overflow, 4);
    CHECK_EQ(after.no_subscribers - before.no_subscribers, 1);
    CHECK_EQ(Drain(pipe), 10);
    CHECK_EQ(Send(MID_A, 1), CFE_SUCCESS);
    CHECK_EQ(Drain(pipe), 1);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

static void AMessageIsReadOnly(void)
{
    CFE_SB_PipeId_t pipe = OpenPipe("RO", 4);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CHECK_EQ(Send(MID_A, 5), CFE_SUCCESS);
    CFE_SB_Buffer_t *buffer = NULL;
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SUCCESS);
    const pid_t child = fork();
    if (child == 0)
    {
        buffer->Msg.CCSDS.Pri.StreamId[0] = 0; /* the child must not get past this */
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); /* a sanitizer turns the signal into a status */
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

static void AMessageIsGoneAfterTheNextReceive(void)
{
    CFE_SB_PipeId_t pipe = OpenPipe("GONE", 4);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CHECK_EQ(Send(MID_A, 5), CFE_SUCCESS);
    const Command_t *kept = Receive(pipe, CFE_SB_POLL);
    CHECK_EQ(kept->value, 5);
    CHECK(Receive(pipe, CFE_SB_POLL) == NULL); /* also a receive that brings nothing */
    CHECK_EQ(kept->value, 0xDBDBDBDB);
    CHECK_EQ(Send(MID_A, 6), CFE_SUCCESS);
    CHECK_EQ(Receive(pipe, CFE_SB_POLL)->value, 6);
    CHECK_EQ(kept->value, 0xDBDBDBDB); /* not by luck the new one */
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

static void BuffersAreTheAppsUntilSent(void)
{
    CFE_SB_PipeId_t pipe = OpenPipe("BUF", 4);
    Command_t       local;
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CFE_SB_Buffer_t *buffer = CFE_SB_AllocateMessageBuffer(sizeof(Command_t));
    CHECK(buffer != NULL);
    CHECK_EQ(CFE_SB_TransmitBuffer(buffer, true), CFE_SB_BAD_ARGUMENT); /* no message id yet */
    CHECK_EQ(CFE_MSG_Init(&buffer->Msg, CFE_SB_ValueToMsgId(MID_A), sizeof(Command_t)), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitBuffer(buffer, true), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitBuffer(buffer, true), CFE_SB_BUFFER_INVALID);
    CHECK_EQ(CFE_SB_ReleaseMessageBuffer(buffer), CFE_SB_BUFFER_INVALID);
    CHECK_EQ(Drain(pipe), 1);
    buffer = CFE_SB_AllocateMessageBuffer(100);
    CHECK_EQ(CFE_SB_ReleaseMessageBuffer(buffer), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReleaseMessageBuffer(buffer), CFE_SB_BUFFER_INVALID);
    CHECK_EQ(CFE_SB_ReleaseMessageBuffer((CFE_SB_Buffer_t *)(void *)&local), CFE_SB_BUFFER_INVALID);
    CHECK(CFE_SB_AllocateMessageBuffer(32769) == NULL);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

static void ThePoolHolds63MessagesOf8KiB(void)
{
    static CFE_SB_Buffer_t *buffers[100];
    uint32                  count = 0;
    while (count < 100 && (buffers[count] = CFE_SB_AllocateMessageBuffer(8000)) != NULL)
    {
        ++count;
    }
    CHECK_EQ(count, 63);
    CHECK_EQ(Send(MID_A, 1), CFE_SUCCESS); /* the small rest serves small messages */
    while (count > 0)
    {
        CHECK_EQ(CFE_SB_ReleaseMessageBuffer(buffers[--count]), CFE_SUCCESS);
    }
}

static void ArgumentsAreChecked(void)
{
    static union
    {
        CFE_SB_Buffer_t align;
        uint8           bytes[40000];
    } large;
    CFE_SB_PipeId_t  pipe;
    CFE_SB_Buffer_t *buffer;
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 51, "DEEP"), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 0, "FLAT"), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 5, ""), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 5, "A_NAME_OF_20_LETTERS"), CFE_SB_PIPE_CR_ERR);
    CHECK_EQ(CFE_SB_CreatePipe(&pipe, 50, "A_NAME_OF_19_LETTER"), CFE_SUCCESS);
    CFE_SB_PipeId_t again;
    CHECK_EQ(CFE_SB_CreatePipe(&again, 5, "A_NAME_OF_19_LETTER"), CFE_SB_PIPE_CR_ERR);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(0x2000), pipe), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(0), pipe), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, -2), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_ReceiveBuffer(NULL, pipe, 0), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SB_NO_MESSAGE);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, 5), CFE_SB_TIME_OUT);
    CHECK_EQ(CFE_MSG_Init(&large.align.Msg, CFE_SB_ValueToMsgId(MID_A), 32769), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitMsg(&large.align.Msg, true), CFE_SB_MSG_TOO_BIG);
    CHECK_EQ(CFE_MSG_Init(&large.align.Msg, CFE_SB_ValueToMsgId(MID_A), 32768), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_TransmitMsg(&large.align.Msg, true), CFE_SUCCESS);
    CHECK_EQ(Drain(pipe), 1);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, pipe, CFE_SB_POLL), CFE_SB_BAD_ARGUMENT);
}

static void OnlyTheOwnerSubscribes(void)
{
    CFE_SB_PipeId_t pipe = OpenPipe("MINE", 4);
    CFE_ES_AppId_t  other;
    CHECK_EQ(EXEC_HostAppCreate(&other, "OTHER"), CFE_SUCCESS);
    CHECK_EQ(EXEC_Enter(other), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_Subscribe(CFE_SB_ValueToMsgId(MID_A), pipe), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SB_BAD_ARGUMENT);
    CHECK_EQ(EXEC_Enter(bench_app), CFE_SUCCESS);
    CHECK_EQ(EXEC_HostAppDelete(other), CFE_SUCCESS);
    CHECK_EQ(EXEC_Enter(other), CFE_ES_ERR_RESOURCEID_NOT_VALID);
    CHECK_EQ(EXEC_Enter(bench_app), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_DeletePipe(pipe), CFE_SUCCESS);
}

int main(void)
{
    BenchUp(NULL);
    RUN(MessagesReachAllSubscribers);
    RUN(OriginationWritesSequenceTimeAndChecksum);
    RUN(WhatDoesNotFitIsDroppedWithoutAWord);
    RUN(AMessageIsReadOnly);
    RUN(AMessageIsGoneAfterTheNextReceive);
    RUN(BuffersAreTheAppsUntilSent);
    RUN(ArgumentsAreChecked);
    RUN(OnlyTheOwnerSubscribes);
    BenchDown();
    BenchUp(NULL); /* and a second time in the same process, with the pool as new */
    RUN(ThePoolHolds63MessagesOf8KiB);
    BenchDown();
    return CHECK_RESULT();
}
