/**
 * @file
 * The satellite as a library.
 */
#include "skyx.h"

#include <string.h>

#include "satellite.h"

int skyx_init(int argc, const char *const *argv, int quiet, char *why, size_t why_size)
{
    SKYSAT_Options_t options;
    if (!SKYSAT_ParseOptions(argc, argv, &options, why, why_size))
    {
        return -1;
    }
    return SATELLITE_Init(&options, quiet != 0, why, why_size) ? 0 : -1;
}

int skyx_start(char *why, size_t why_size)
{
    return SATELLITE_Start(why, why_size) ? 0 : -1;
}

int skyx_stop(void)
{
    return SATELLITE_Stop() ? 0 : -1;
}

static CFE_ES_AppId_t AppId(uint32_t app)
{
    const CFE_ES_AppId_t id = {{app}};
    return id;
}

static CFE_SB_PipeId_t PipeId(uint32_t pipe)
{
    const CFE_SB_PipeId_t id = {{pipe}};
    return id;
}

int32_t skyx_app_open(const char *name, uint32_t *app)
{
    CFE_ES_AppId_t id     = CFE_ES_APPID_UNDEFINED;
    CFE_Status_t   status = EXEC_HostAppCreate(&id, name);
    if (status == CFE_SUCCESS)
    {
        status = EXEC_Enter(id);
    }
    if (status == CFE_SUCCESS)
    {
        status = CFE_EVS_Register(NULL, 0, CFE_EVS_EventFilter_BINARY);
        EXEC_Leave();
    }
    *app = id.id.id;
    return status;
}

int32_t skyx_app_close(uint32_t app)
{
    return EXEC_HostAppDelete(AppId(app));
}

int32_t skyx_pipe_open(uint32_t app, const char *name, uint16_t depth, uint32_t *pipe)
{
    CFE_SB_PipeId_t id     = CFE_SB_INVALID_PIPE;
    CFE_Status_t    status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        status = CFE_SB_CreatePipe(&id, depth, name);
        EXEC_Leave();
    }
    *pipe = id.id.id;
    return status;
}

int32_t skyx_pipe_close(uint32_t app, uint32_t pipe)
{
    CFE_Status_t status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        status = CFE_SB_DeletePipe(PipeId(pipe));
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_subscribe(uint32_t app, uint32_t pipe, uint32_t mid, uint16_t limit)
{
    CFE_Status_t status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        status = CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(mid), PipeId(pipe), CFE_SB_DEFAULT_QOS, limit);
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_unsubscribe(uint32_t app, uint32_t pipe, uint32_t mid)
{
    CFE_Status_t status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        status = CFE_SB_Unsubscribe(CFE_SB_ValueToMsgId(mid), PipeId(pipe));
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_receive(uint32_t app, uint32_t pipe, int32_t timeout_ms, uint8_t *buffer, size_t *size)
{
    CFE_Status_t status = EXEC_Enter(AppId(app));
    *size               = 0;
    if (status == CFE_SUCCESS)
    {
        status = EXEC_Receive(buffer, size, PipeId(pipe), timeout_ms);
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_transmit(uint32_t app, const uint8_t *message, size_t size)
{
    if (size < sizeof(CFE_MSG_Message_t) || size > CFE_MISSION_SB_MAX_SB_MSG_SIZE)
    {
        return CFE_SB_BAD_ARGUMENT;
    }
    CFE_Status_t status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        CFE_SB_Buffer_t *buffer = CFE_SB_AllocateMessageBuffer(size);
        size_t           said   = 0;
        status                  = CFE_SB_BUF_ALOC_ERR;
        if (buffer != NULL)
        {
            (void)memcpy(buffer, message, size);
            (void)CFE_MSG_GetSize(&buffer->Msg, &said);
            status = said == size ? CFE_SB_TransmitBuffer(buffer, true) : CFE_SB_BAD_ARGUMENT;
            if (status != CFE_SUCCESS)
            {
                (void)CFE_SB_ReleaseMessageBuffer(buffer);
            }
        }
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_event(uint32_t app, uint16_t event_id, uint16_t type, const char *text)
{
    CFE_Status_t status = EXEC_Enter(AppId(app));
    if (status == CFE_SUCCESS)
    {
        status = CFE_EVS_SendEvent(event_id, type, "%s", text);
        EXEC_Leave();
    }
    return status;
}

int32_t skyx_table_load(const char *name, const uint8_t *data, size_t size)
{
    return EXEC_TableLoad(name, data, size);
}

int32_t skyx_table_read(const char *name, uint8_t *data, size_t size)
{
    return EXEC_TableRead(name, data, size);
}

void skyx_bus_counters(uint32_t *counters)
{
    EXEC_SbCounters_t c;
    EXEC_SbCounters(&c);
    counters[0] = c.no_subscribers;
    counters[1] = c.message_limit;
    counters[2] = c.pipe_overflow;
    counters[3] = c.pool_empty;
}
