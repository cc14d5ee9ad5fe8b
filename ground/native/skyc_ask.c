/**
 * @file
 * Questions, and telemetry that was asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sky_endpoint.h"
#include "skyc_engine.h"

#define ASK_US 100000u /* longest run of a call with questions: an interrupt has to wait that long */

static void forget_answered(SKYC_Engine_t *engine)
{
    while (SKY_Host_NextAnswered(&engine->host) != NULL)
    {
        /* callers look at all questions */
    }
}

void SKYC_Engine_StopAsking(SKYC_Engine_t *engine)
{
    SKY_Host_Stop(&engine->host, SKYC_Engine_NowUs(), NULL, SKY_STATUS_CANCELLED);
    forget_answered(engine);
}

int SKYC_Engine_Ask(SKYC_Engine_t *engine, SKY_HostQuestion_t *questions, uint32_t count)
{
    const uint64_t begun_us = SKYC_Engine_NowUs();

    for (uint32_t i = 0; i < count; ++i)
    {
        if (SKY_Endpoint_Port(questions[i].place.endpoint) == 0 ||
            SKY_Host_Ask(&engine->host, begun_us, &questions[i]) != SKY_HOST_BEGUN)
        {
            SKYC_Engine_StopAsking(engine);
            return EINVAL;
        }
    }
    engine->empty_us = begun_us;
    SKYC_Engine_Loop(engine, begun_us + ASK_US);
    forget_answered(engine);
    SKYC_Engine_EndCall(engine);
    if (SKYC_Socket_IsGone(engine->sock))
    {
        SKYC_Engine_StopAsking(engine);
        return EBADF;
    }
    return SKY_Host_Asking(&engine->host) > 0 ? EAGAIN : 0;
}

/* Keep a message of telemetry, if there is room. */
static void keep_telemetry(void *context, const SKY_Packet_t *pkt)
{
    SKYC_Engine_t    *engine = context;
    SKYC_Telemetry_t *one    = &engine->telemetry[(engine->telemetry_first + engine->telemetry_count) % SKYC_TELEMETRY];

    if (engine->telemetry_count < SKYC_TELEMETRY && pkt->length <= sizeof(one->message))
    {
        one->plane  = pkt->src.plane;
        one->slot   = pkt->src.slot;
        one->length = pkt->length;
        if (pkt->length > 0)
        {
            (void)memcpy(one->message, pkt->payload, pkt->length);
        }
        ++engine->telemetry_count;
    }
}

int SKYC_Engine_Listen(SKYC_Engine_t *engine, uint32_t duration_ms)
{
    if (engine->telemetry == NULL)
    {
        engine->telemetry = calloc(SKYC_TELEMETRY, sizeof(*engine->telemetry));
    }
    if (engine->telemetry == NULL)
    {
        return ENOMEM;
    }
    engine->empty_us = SKYC_Engine_NowUs();
    SKY_Host_Listen(&engine->host, keep_telemetry, engine); /* from now on, also in other calls */
    engine->listens = true;
    SKYC_Engine_Loop(engine, SKYC_Engine_NowUs() + UINT64_C(1000) * duration_ms);
    engine->listens = false;
    SKYC_Engine_EndCall(engine);
    return SKYC_Socket_IsGone(engine->sock) ? EBADF : 0;
}

bool SKYC_Engine_NextTelemetry(SKYC_Engine_t *engine, SKYC_Telemetry_t *telemetry)
{
    if (engine->telemetry_count == 0)
    {
        return false;
    }
    *telemetry              = engine->telemetry[engine->telemetry_first];
    engine->telemetry_first = (engine->telemetry_first + 1u) % SKYC_TELEMETRY;
    --engine->telemetry_count;
    return true;
}
