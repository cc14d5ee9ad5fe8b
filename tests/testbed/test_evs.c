/* Events: filters, squelch, truncation, the message on the bus. */
#include "bench_app.h"
#include "cfe_evs_msg.h"

static CFE_SB_PipeId_t evs_pipe;

static uint32 Count(void)
{
    CFE_SB_Buffer_t *buffer;
    uint32           count = 0;
    while (CFE_SB_ReceiveBuffer(&buffer, evs_pipe, CFE_SB_POLL) == CFE_SUCCESS)
    {
        ++count;
    }
    return count;
}

static void AppsRegisterFirst(void)
{
    CHECK_EQ(CFE_EVS_SendEvent(1, CFE_EVS_EventType_ERROR, "too early"), CFE_EVS_APP_NOT_REGISTERED);
    CHECK_EQ(CFE_EVS_Register(NULL, 0, 1), CFE_EVS_UNKNOWN_FILTER);
    CHECK_EQ(CFE_EVS_Register(NULL, 1, CFE_EVS_EventFilter_BINARY), CFE_ES_BAD_ARGUMENT);
    CHECK_EQ(CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY), CFE_SUCCESS);
    CHECK_EQ(CFE_EVS_SendEvent(1, CFE_EVS_EventType_ERROR, "now"), CFE_SUCCESS);
    CHECK_EQ(Count(), 1);
}

static void TheEventIsAMessage(void)
{
    CFE_SB_Buffer_t *buffer = NULL;
    CHECK_EQ(CFE_EVS_SendEvent(7, CFE_EVS_EventType_INFORMATION, "%d apples", 3), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, evs_pipe, CFE_SB_POLL), CFE_SUCCESS);
    const CFE_EVS_LongEventTlm_t *event = (const CFE_EVS_LongEventTlm_t *)buffer;
    size_t                        size  = 0;
    CHECK_EQ(CFE_MSG_GetSize(&buffer->Msg, &size), CFE_SUCCESS);
    CHECK_EQ(size, sizeof *event);
    CHECK(strcmp(event->Payload.Message, "3 apples") == 0);
    CHECK(strcmp(event->Payload.PacketID.AppName, "BENCH") == 0);
    CHECK_EQ(event->Payload.PacketID.EventID, 7);
    CHECK_EQ(event->Payload.PacketID.EventType, CFE_EVS_EventType_INFORMATION);
    CHECK_EQ(event->Payload.PacketID.SpacecraftID, 3010);
}

static void LongTextIsCutAndMarked(void)
{
    CFE_SB_Buffer_t *buffer = NULL;
    char             text[200];
    (void)memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(CFE_EVS_SendEvent(8, CFE_EVS_EventType_ERROR, "%s", text), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_ReceiveBuffer(&buffer, evs_pipe, CFE_SB_POLL), CFE_SUCCESS);
    const CFE_EVS_LongEventTlm_t *event = (const CFE_EVS_LongEventTlm_t *)buffer;
    CHECK_EQ(strlen(event->Payload.Message), 121);
    CHECK_EQ(event->Payload.Message[120], '$');
}

static void DebugEventsAreNotSent(void)
{
    CHECK_EQ(CFE_EVS_SendEvent(9, CFE_EVS_EventType_DEBUG, "detail"), CFE_SUCCESS);
    CHECK_EQ(Count(), 0);
}

static void FiltersLetTheFirstOnesThrough(void)
{
    const CFE_EVS_BinFilter_t filters[] = {{20, CFE_EVS_FIRST_4_STOP}, {21, CFE_EVS_EVERY_OTHER_ONE}};
    CHECK_EQ(CFE_EVS_Register(filters, 2, CFE_EVS_EventFilter_BINARY), CFE_SUCCESS);
    for (int i = 0; i < 10; ++i)
    {
        CHECK_EQ(CFE_EVS_SendEvent(20, CFE_EVS_EventType_ERROR, "again"), CFE_SUCCESS);
    }
    CHECK_EQ(Count(), 4);
    for (int i = 0; i < 10; ++i)
    {
        CHECK_EQ(CFE_EVS_SendEvent(21, CFE_EVS_EventType_ERROR, "again"), CFE_SUCCESS);
    }
    CHECK_EQ(Count(), 5);
}

static void AFloodIsSquelched(void)
{
    uint32 sent = 0;
    CHECK_EQ(CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY), CFE_SUCCESS);
    for (int i = 0; i < 200; ++i)
    {
        const CFE_Status_t status = CFE_EVS_SendEvent(30, CFE_EVS_EventType_ERROR, "flood");
        CHECK(status == CFE_SUCCESS || status == CFE_EVS_APP_SQUELCHED);
        sent += status == CFE_SUCCESS ? 1u : 0u;
    }
    CHECK(sent >= 32 && sent < 200); /* a burst of 32; a few more if this machine is slow */
    CHECK_EQ(Count(), sent < 50 ? sent : 50);
}

int main(void)
{
    BenchUp(NULL);
    CHECK_EQ(CFE_SB_CreatePipe(&evs_pipe, 50, "EVENTS"), CFE_SUCCESS);
    CHECK_EQ(CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(CFE_EVS_LONG_EVENT_MSG_MID), evs_pipe, CFE_SB_DEFAULT_QOS, 50), CFE_SUCCESS);
    RUN(AppsRegisterFirst);
    RUN(TheEventIsAMessage);
    RUN(LongTextIsCutAndMarked);
    RUN(DebugEventsAreNotSent);
    RUN(FiltersLetTheFirstOnesThrough);
    RUN(AFloodIsSquelched);
    BenchDown();
    return CHECK_RESULT();
}
