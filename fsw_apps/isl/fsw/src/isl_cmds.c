/**
 * @file
 * Commands of ISL, and the work of its main task once a second.
 */
#include "isl_cmds.h"

#include <string.h>

#include "isl_app.h"
#include "isl_eventids.h"
#include "isl_security.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "isl_version.h"

#define ISL_EVENT_PERIOD_US (ISL_PLATFORM_EVENT_PERIOD_S * UINT64_C(1000000))

void ISL_NoopCmd(const CFE_SB_Buffer_t *buffer)
{
    (void)buffer;
    ++ISL_Data.CommandCounter;
    (void)CFE_EVS_SendEvent(ISL_NOOP_INF_EID, CFE_EVS_EventType_INFORMATION, "ISL: no operation. Version %s", ISL_VERSION);
}

void ISL_ResetCountersCmd(const CFE_SB_Buffer_t *buffer)
{
    ISL_Node_t *const isl = ISL_Task_Enter();

    (void)buffer;
    if (isl != NULL)
    {
        SKY_Node_ResetCounters(&isl->node);
        ISL_Task_Leave();
    }
    ISL_Data.CommandCounter      = 0;
    ISL_Data.CommandErrorCounter = 0;
    memset(ISL_Data.Reported, 0, sizeof(ISL_Data.Reported));
    memset(ISL_Data.Refused, 0, sizeof(ISL_Data.Refused));
    SKY_LIB_ResetAsserts();
    ISL_Data.AssertsTold = false;
    (void)CFE_EVS_SendEvent(ISL_RESET_INF_EID, CFE_EVS_EventType_INFORMATION, "ISL: counters reset");
}

void ISL_SetLinkCmd(const CFE_SB_Buffer_t *buffer)
{
    const ISL_SetLinkCmd_t *const cmd     = (const ISL_SetLinkCmd_t *)buffer;
    const uint16                  id      = cmd->Payload.Link;
    const uint16                  seconds = cmd->Payload.CutS;
    bool                          exists  = false;
    bool                          done    = false;
    ISL_Node_t *const             isl     = id < ISL_LINK_COUNT && seconds <= ISL_CUT_S_MAX ? ISL_Task_Enter() : NULL;

    if (isl != NULL)
    {
        exists = isl->node.links[id].is_present;
        done   = SKY_Node_Cut(&isl->node, SKY_LIB_NowUs(), (SKY_LinkId_t)id, seconds);
        ISL_Task_Leave();
    }
    if (!done)
    {
        ++ISL_Data.CommandErrorCounter;
    }
    if (done)
    {
        ++ISL_Data.CommandCounter;
        ISL_Task_Wake(); /* the I/O task has to be awake when the cut ends */
        if (seconds != 0)
        {
            (void)CFE_EVS_SendEvent(ISL_SET_LINK_INF_EID, CFE_EVS_EventType_INFORMATION, "ISL: link %u cut for %u s",
                                    (unsigned)id, (unsigned)seconds);
        }
        else
        {
            (void)CFE_EVS_SendEvent(ISL_SET_LINK_INF_EID, CFE_EVS_EventType_INFORMATION, "ISL: link %u restored", (unsigned)id);
        }
    }
    else if (exists)
    {
        (void)CFE_EVS_SendEvent(ISL_LINK_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: link %u is not cut: no other link is up",
                                (unsigned)id);
    }
    else
    {
        (void)CFE_EVS_SendEvent(ISL_LINK_ERR_EID, CFE_EVS_EventType_ERROR,
                                "ISL: no link %u here or %u s above %u; links are 0 north, 1 east, 2 south, 3 west, 4 ground",
                                (unsigned)id, (unsigned)seconds, (unsigned)ISL_CUT_S_MAX);
    }
}

/* ---- housekeeping -------------------------------------------------------------------------------------------------- */

static uint32 ISL_Clip32(uint64_t value)
{
    return value < UINT32_MAX ? (uint32)value : UINT32_MAX;
}

static uint8 ISL_Clip8(uint64_t value)
{
    return value < UINT8_MAX ? (uint8)value : UINT8_MAX;
}

static uint16 ISL_Clip16(uint32_t value)
{
    return value < UINT16_MAX ? (uint16)value : UINT16_MAX;
}

static void ISL_FillHkLink(const SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, ISL_HkLink_t *hk)
{
    const SKY_NodeLink_t *const link = &node->links[id];

    hk->Present          = link->is_present ? 1 : 0;
    hk->Up               = SKY_Node_IsUp(node, id) ? 1 : 0;
    hk->Plane            = link->peer.plane;
    hk->Slot             = link->peer.slot;
    hk->QueueDepth       = ISL_Clip16(link->queue_depth);
    hk->LastHeardMs      = link->heard_once ? ISL_Clip32((now_us - link->heard_us) / 1000u) : UINT32_MAX;
    hk->DelayRequestedUs = link->model.delay_us;
    hk->DelayMeanUs      = id != SKY_LINK_GROUND ? node->hello.links[id].mean_us : 0;
    hk->DelayMinUs       = id != SKY_LINK_GROUND ? SKY_Hello_MinUs(&node->hello.links[id]) : 0;
    hk->TxPackets        = link->counters.tx_packets;
    hk->TxBytes          = link->counters.tx_bytes;
    hk->RxPackets        = link->counters.rx_packets;
    hk->RxBytes          = link->counters.rx_bytes;
    hk->DropQueue        = link->counters.drop_queue;
    hk->DropLoss         = link->counters.drop_loss;
    hk->DropCut          = link->counters.drop_cut;
    hk->DropError        = link->counters.drop_error;
}

static void ISL_FillHk(const SKY_Node_t *node, uint64_t now_us, ISL_HkTlm_Payload_t *hk)
{
    uint32 i;

    hk->Listeners   = (uint8)SKY_Node_Listeners(node, now_us);
    hk->Plane       = node->router.self.plane;
    hk->Slot        = node->router.self.slot;
    hk->RelayedUp   = node->relayed_up;
    hk->RelayedDown = node->relayed_down;
    hk->RelayErrors = node->relay_errors;
    hk->Delivered   = node->router.counters.delivered;
    hk->Forwarded   = node->router.counters.forwarded;
    hk->ToGround    = node->router.counters.to_ground;
    hk->Dropped     = node->router.counters.no_service;
    for (i = 0; i < ISL_CAUSES; ++i)
    {
        /* A host that gets a cookie asks again with it: nothing is lost. */
        hk->Dropped += i == (uint32)SKY_STATUS_COOKIE ? 0u : node->router.counters.drops[i];
    }
    for (i = 0; i < ISL_LINK_COUNT; ++i)
    {
        ISL_FillHkLink(node, now_us, (SKY_LinkId_t)i, &hk->Link[i]);
    }
}

void ISL_SendHkCmd(const CFE_SB_Buffer_t *buffer)
{
    ISL_HkTlm_Payload_t *const hk  = &ISL_Data.Hk.Payload;
    ISL_Node_t *const          isl = ISL_Task_Enter();

    (void)buffer;
    memset(hk, 0, sizeof(*hk));
    if (isl != NULL)
    {
        ISL_FillHk(&isl->node, SKY_LIB_NowUs(), hk);
        ISL_Security_FillHk(&hk->Security);
        hk->IoErrors = ISL_Task_Errors();
        ISL_Task_Leave();
    }
    hk->CommandCounter      = ISL_Data.CommandCounter;
    hk->CommandErrorCounter = ISL_Data.CommandErrorCounter;
    hk->FailedAsserts       = ISL_Clip8(SKY_LIB_Asserts().failed);
    CFE_SB_TimeStampMsg(CFE_MSG_PTR(ISL_Data.Hk.TelemetryHeader));
    (void)CFE_SB_TransmitMsg(CFE_MSG_PTR(ISL_Data.Hk.TelemetryHeader), true);
}

void ISL_RelayTelemetry(const CFE_MSG_Message_t *message)
{
    ISL_Node_t *const isl  = ISL_Task_Enter();
    bool              wake = false;

    if (isl != NULL)
    {
        const uint64_t before_us = ISL_Node_NextDue(isl);

        ISL_Node_Telemetry(isl, SKY_LIB_NowUs(), message);
        wake = ISL_Node_NextDue(isl) < before_us; /* a delayed packet is due before the I/O task would look */
        ISL_Task_Leave();
    }
    if (wake)
    {
        ISL_Task_Wake();
    }
}

/* ---- once a second ------------------------------------------------------------------------------------------------- */

/** Note that an event tells of a counter, which it does at the first count, then at most once a period.
 *  @return counts since the last one; 0: no event now */
static unsigned long ISL_CountsToTell(uint64_t count, uint64_t *told, uint64_t *told_us, uint64_t now_us)
{
    const uint64_t since = count - *told;

    if (since == 0 || (*told_us != 0 && now_us - *told_us < ISL_EVENT_PERIOD_US))
    {
        return 0;
    }
    *told    = count;
    *told_us = now_us;
    return (unsigned long)since;
}

/** Send one event for each cause of drops. */
static void ISL_ReportDrops(const uint64_t *drops, uint64_t now_us)
{
    uint32 cause;

    for (cause = 0; cause < ISL_CAUSES; ++cause)
    {
        const unsigned long count =
            ISL_CountsToTell(drops[cause], &ISL_Data.Reported[cause], &ISL_Data.ReportedUs[cause], now_us);

        if (count > 0)
        {
            (void)CFE_EVS_SendEvent(ISL_DROP_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: %lu packets dropped: %s", count,
                                    SKY_LIB_StatusName(cause));
        }
    }
}

/** Send one event for each reason for which security acts upon nothing. */
static void ISL_ReportRefused(const uint64_t *counts, uint64_t now_us)
{
    uint32 reason;

    for (reason = 0; reason < ISL_REASONS; ++reason)
    {
        const unsigned long count =
            ISL_CountsToTell(counts[reason], &ISL_Data.Refused[reason], &ISL_Data.RefusedUs[reason], now_us);

        if (count > 0)
        {
            (void)CFE_EVS_SendEvent(ISL_REFUSED_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: %lu %s", count,
                                    ISL_Security_ReasonName(reason));
        }
    }
}

static void ISL_ReportLinks(uint32 up)
{
    if (up != ISL_Data.LinksUp)
    {
        ISL_Data.LinksUp = up;
        (void)CFE_EVS_SendEvent(ISL_LINKS_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: links up: north %u east %u south %u west %u", (unsigned)(up >> SKY_LINK_NORTH) & 1u,
                                (unsigned)(up >> SKY_LINK_EAST) & 1u, (unsigned)(up >> SKY_LINK_SOUTH) & 1u,
                                (unsigned)(up >> SKY_LINK_WEST) & 1u);
    }
}

/** Send one event about assertions, with the place of the first: after one has failed others may fail with each packet. */
static void ISL_ReportAsserts(void)
{
    const SKY_LIB_Asserts_t asserts = SKY_LIB_Asserts();

    if (asserts.failed > 0 && !ISL_Data.AssertsTold)
    {
        (void)CFE_EVS_SendEvent(ISL_ASSERT_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: assertion failed at %s:%d, of %lu the first",
                                asserts.file, asserts.line, (unsigned long)asserts.failed);
        ISL_Data.AssertsTold = true;
    }
}

void ISL_WakeupCmd(const CFE_SB_Buffer_t *buffer)
{
    const uint64_t    now_us = SKY_LIB_NowUs();
    uint64_t          drops[ISL_CAUSES];
    uint64_t          refused[ISL_REASONS];
    uint32            up = 0;
    uint32            id;
    ISL_Node_t *const isl = ISL_Task_Enter();

    (void)buffer;
    if (isl != NULL)
    {
        memcpy(drops, isl->node.router.counters.drops, sizeof(drops));
        ISL_Security_Reasons(refused);
        if (SKY_Node_IsKeyed(&isl->node))
        {
            drops[SKY_STATUS_UNAUTHENTICATED] = ISL_Data.Reported[SKY_STATUS_UNAUTHENTICATED]; /* the reason is told */
        }
        for (id = 0; id < SKY_ISL_COUNT; ++id)
        {
            up |= SKY_Node_IsUp(&isl->node, (SKY_LinkId_t)id) ? 1u << id : 0u;
        }
        ISL_Task_Leave();
        ISL_ReportDrops(drops, now_us);
        ISL_ReportRefused(refused, now_us);
        ISL_ReportLinks(up);
    }
    ISL_ReportAsserts();
    ISL_Tbl_Manage();
}
