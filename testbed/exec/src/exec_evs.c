/**
 * @file
 * Event services: filters, squelch, the event message, the line on the console.
 */
#include <string.h>

#include "cfe_evs_msg.h"
#include "exec_priv.h"

#define TYPES_ENABLED \
    ((1u << CFE_EVS_EventType_INFORMATION) | (1u << CFE_EVS_EventType_ERROR) | (1u << CFE_EVS_EventType_CRITICAL))
#define EVENT_COST 1000
#define PER_SECOND ((int64)CFE_PLATFORM_EVS_APP_EVENTS_PER_SEC)
#define TOKENS_MAX ((int64)CFE_PLATFORM_EVS_MAX_APP_EVENT_BURST * EVENT_COST)
#define COUNT_MAX  0xFFFFu
#define TRUNCATED  '$'

CFE_Status_t CFE_EVS_Register(const void *Filters, uint16 NumEventFilters, uint16 FilterScheme)
{
    if (FilterScheme != CFE_EVS_EventFilter_BINARY)
    {
        return CFE_EVS_UNKNOWN_FILTER;
    }
    if (NumEventFilters != 0 && Filters == NULL)
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    const uint32 count =
        NumEventFilters < CFE_PLATFORM_EVS_MAX_EVENT_FILTERS ? NumEventFilters : CFE_PLATFORM_EVS_MAX_EVENT_FILTERS;
    EXEC_Lock();
    EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app != NULL)
    {
        const CFE_EVS_BinFilter_t *filters = Filters;
        (void)memset(&app->events, 0, sizeof app->events);
        for (uint32 i = 0; i < count; ++i)
        {
            app->events.filters[i].event_id = filters[i].EventID;
            app->events.filters[i].mask     = filters[i].Mask;
        }
        app->events.filter_count = count;
        app->events.tokens       = TOKENS_MAX;
        app->events.credited_ms  = EXEC_NowNs() / 1000000;
        app->events.registered   = true;
    }
    EXEC_Unlock();
    return app != NULL ? CFE_SUCCESS : CFE_EVS_APP_ILLEGAL_APP_ID;
}

/* The lock is held here, and in all functions below but SendEvent. */
static bool Filtered(EXEC_AppEvents_t *events, uint16 event_id, CFE_EVS_EventType_Enum_t type)
{
    if (type > CFE_EVS_EventType_CRITICAL || (TYPES_ENABLED & (1u << type)) == 0)
    {
        return true;
    }
    for (uint32 i = 0; i < events->filter_count; ++i)
    {
        EXEC_Filter_t *filter = &events->filters[i];
        if (filter->event_id == event_id)
        {
            const bool filtered = (filter->count & filter->mask) != 0;
            filter->count       = (uint16)(filter->count < COUNT_MAX ? filter->count + 1u : COUNT_MAX);
            return filtered;
        }
    }
    return false;
}

/* Take a token from the app's bucket: bursts of 32, 15 a second on average. An app that goes on while squelched digs itself in
 * deeper. */
static bool Squelched(EXEC_AppEvents_t *events)
{
    const int64 now_ms = EXEC_NowNs() / 1000000;
    const int64 credit = (now_ms - events->credited_ms) * PER_SECOND;
    if (credit >= EVENT_COST)
    {
        events->credited_ms = now_ms;
        events->tokens      = events->tokens + credit > TOKENS_MAX ? TOKENS_MAX : events->tokens + credit;
    }
    const bool squelched = events->tokens <= 0;
    events->tokens       = events->tokens - EVENT_COST < -TOKENS_MAX ? -TOKENS_MAX : events->tokens - EVENT_COST;
    return squelched;
}

/* Set @p send if the calling app may send this event now. @p name receives the app's name, if there is one. */
static CFE_Status_t Admit(uint16 event_id, CFE_EVS_EventType_Enum_t type, char *name, bool *send)
{
    CFE_Status_t status = CFE_SUCCESS;
    bool         report = false;
    EXEC_Lock();
    EXEC_AppRecord_t *app = EXEC_CurrentApp();
    if (app == NULL)
    {
        status = CFE_EVS_APP_ILLEGAL_APP_ID;
    }
    else
    {
        (void)memcpy(name, app->name, sizeof app->name);
        if (!app->events.registered)
        {
            status                            = CFE_EVS_APP_NOT_REGISTERED;
            report                            = !app->events.unregistered_reported;
            app->events.unregistered_reported = true;
        }
        else if (!Filtered(&app->events, event_id, type))
        {
            *send  = !Squelched(&app->events);
            status = *send ? CFE_SUCCESS : CFE_EVS_APP_SQUELCHED;
        }
    }
    EXEC_Unlock();
    if (report)
    {
        (void)CFE_ES_WriteToSysLog("EVS: the app %s sends events but has not registered\n", name);
    }
    return status;
}

CFE_Status_t CFE_EVS_SendEvent(uint16 EventID, CFE_EVS_EventType_Enum_t EventType, const char *Spec, ...)
{
    CFE_EVS_LongEventTlm_t event;
    bool                   send = false;
    va_list                arguments;
    if (Spec == NULL)
    {
        return CFE_EVS_INVALID_PARAMETER;
    }
    (void)memset(&event, 0, sizeof event);
    (void)CFE_MSG_Init(CFE_MSG_PTR(event.TelemetryHeader), CFE_SB_ValueToMsgId(CFE_EVS_LONG_EVENT_MSG_MID), sizeof event);
    CFE_EVS_PacketID_t *id   = &event.Payload.PacketID;
    char               *text = event.Payload.Message;
    va_start(arguments, Spec);
    /* clang-tidy 14 takes va_start for unknown when it has read another file before: NOLINTNEXTLINE(clang-analyzer-valist*) */
    const int length = vsnprintf(text, sizeof event.Payload.Message, Spec, arguments);
    va_end(arguments);
    if (length >= (int)sizeof event.Payload.Message)
    {
        text[sizeof event.Payload.Message - 2] = TRUNCATED;
    }
    const CFE_Status_t status = Admit(EventID, EventType, id->AppName, &send);
    if (send)
    {
        id->EventID      = EventID;
        id->EventType    = EventType;
        id->SpacecraftID = CFE_PSP_GetSpacecraftId();
        id->ProcessorID  = CFE_PSP_GetProcessorId();
        char logger[EXEC_LOGGER_BYTES];
        (void)snprintf(logger, sizeof logger, "EVS %lu/%lu/%s %u", (unsigned long)id->SpacecraftID,
                       (unsigned long)id->ProcessorID, id->AppName, (unsigned)EventID);
        EXEC_Log(EventType, logger, text);
        (void)CFE_SB_TransmitMsg(CFE_MSG_PTR(event.TelemetryHeader), true); /* nobody listening is no error of the app */
    }
    return status;
}
