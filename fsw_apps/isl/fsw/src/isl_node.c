/**
 * @file
 * Shell around the core's node: the functions that it calls, and those that call it.
 */
#include "isl_node.h"

#include <string.h>

#include "isl_bus.h"

#define ISL_UPLINK_BATCH 64u               /* packets taken from the uplink line at a time */
#define ISL_POLL_MOST_US UINT64_C(1000000) /* time within which a service begins with work that its own app gave it */
#define ISL_US_PER_S     UINT64_C(1000000)
#define ISL_MAP_BYTES    ((size_t)ISL_PLATFORM_MAP_SATELLITES * SKY_MAP_SATELLITE_BYTES)

CompileTimeAssert(ISL_PLATFORM_LISTENERS > 0 && ISL_PLATFORM_RELAYED > 0, IslTablesOfTheNodeHaveEntries);

/* The constellation's size decides how much of this memory is touched. */
static uint32_t ISL_MapMemory[ISL_MAP_BYTES / sizeof(uint32_t)];

/* ---- a service of the library, as the node sees it ------------------------------------------------------------------- */

static void ISL_Begin(void *context, uint64_t now_us, const SKY_Packet_t *pkt)
{
    ((const ISL_Node_t *)context)->held->Begin(now_us, pkt);
}

static bool ISL_Next(void *context, uint64_t now_us, SKY_Out_t *out)
{
    return ((const ISL_Node_t *)context)->held->Next(now_us, out);
}

static void ISL_Poll(void *context, uint64_t now_us, uint64_t *next_us)
{
    ((const ISL_Node_t *)context)->held->Poll(now_us, next_us);
}

static void ISL_Reject(void *context, SKY_Status_t status)
{
    ((const ISL_Node_t *)context)->held->Reject(status);
}

static void ISL_Unreachable(void *context, SKY_Addr_t dst)
{
    ((const ISL_Node_t *)context)->held->Unreachable(dst);
}

/* ---- what the node calls --------------------------------------------------------------------------------------------- */

static bool ISL_Send(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    return ISL_Line_Send(context, now_us, link, endpoint, parts);
}

static void ISL_Flush(void *context)
{
    (void)context;
    ISL_IO_Flush();
}

/** Lock a service that the registry has found. */
static const SKY_NodeService_t *ISL_Hold(ISL_Node_t *isl, const SKY_LIB_Service_t *service)
{
    if (service == NULL)
    {
        return NULL;
    }
    if (!service->Lock())
    {
        SKY_LIB_Release();
        return NULL;
    }
    isl->held = service;
    return &isl->served;
}

static const SKY_NodeService_t *ISL_Acquire(void *context, uint16_t apid)
{
    return ISL_Hold(context, SKY_LIB_Acquire(apid));
}

static const SKY_NodeService_t *ISL_AcquireAt(void *context, uint32_t place, uint16_t *apid)
{
    return ISL_Hold(context, SKY_LIB_AcquireAt(place, apid));
}

static void ISL_Release(void *context)
{
    ISL_Node_t *const isl = context;

    isl->held->Unlock();
    isl->held = NULL;
    SKY_LIB_Release();
}

/** Put a message on the bus. It must be a whole command with a right checksum, and an id that the table ISL.Neighbours admits. */
static SKY_Status_t ISL_Command(void *context, const uint8_t *message, uint32_t len)
{
    const ISL_Node_t *const isl    = context;
    CFE_SB_Buffer_t        *buffer = NULL;
    SKY_Status_t            status = ISL_Bus_Decode(message, len, isl->uplink_first_mid, isl->uplink_last_mid, &buffer);

    if (status == SKY_STATUS_OK && CFE_SB_TransmitBuffer(buffer, false) != CFE_SUCCESS)
    {
        (void)CFE_SB_ReleaseMessageBuffer(buffer);
        status = SKY_STATUS_BUSY;
    }
    return status;
}

static uint64_t ISL_ClockOffsetUs(void *context)
{
    (void)context;
    return SKY_LIB_ClockOffsetUs();
}

void ISL_Node_Init(ISL_Node_t *isl)
{
    const SKY_NodeShell_t  shell  = {isl,           ISL_Send,    ISL_Flush,   ISL_Acquire,
                                     ISL_AcquireAt, ISL_Release, ISL_Command, ISL_ClockOffsetUs};
    const SKY_NodeMemory_t memory = {ISL_MapMemory,          sizeof(ISL_MapMemory), isl->listeners,
                                     ISL_PLATFORM_LISTENERS, isl->relayed,          ISL_PLATFORM_RELAYED};

    const SKY_NodeService_t served = {isl, ISL_Begin, ISL_Next, ISL_Poll, ISL_Reject, ISL_Unreachable};

    memset(isl, 0, sizeof(*isl));
    isl->served = served;
    (void)SKY_Node_Init(&isl->node, &shell, &memory); /* tables that have entries are taken */
}

/* ---- what calls the node --------------------------------------------------------------------------------------------- */

void ISL_Node_Input(ISL_Node_t *isl, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint)
{
    if (len == 0 && endpoint == isl->local_endpoint)
    {
        return;
    }
    if (SKY_Endpoint_Port(endpoint) == 0 || SKY_Node_LinkOf(&isl->node, endpoint) != SKY_LINK_GROUND ||
        !ISL_Line_DelayUplink(isl, now_us, endpoint, data, len)) /* a packet that is refused in any case waits nowhere */
    {
        SKY_Node_Receive(&isl->node, now_us, data, len, endpoint);
    }
}

void ISL_Node_Run(ISL_Node_t *isl, uint64_t now_us)
{
    uint64_t endpoint = 0;
    uint32_t len;
    uint32_t n;

    for (n = 0; n < ISL_UPLINK_BATCH && (len = ISL_Line_NextUplink(isl, now_us, &endpoint)) > 0; ++n)
    {
        SKY_Node_Receive(&isl->node, now_us, isl->work, len, endpoint);
        ISL_IO_Flush(); /* the next packet takes this one's place */
    }
    SKY_Node_Run(&isl->node, now_us);
    ISL_Line_Run(isl, now_us);
}

uint64_t ISL_Node_NextDue(const ISL_Node_t *isl)
{
    const uint64_t line_us = ISL_Line_NextDue(isl);
    const uint64_t node_us = SKY_Node_NextDue(&isl->node);

    return line_us < node_us ? line_us : node_us;
}

void ISL_Node_Telemetry(ISL_Node_t *isl, uint64_t now_us, const CFE_MSG_Message_t *message)
{
    const uint8_t *bytes = NULL;
    uint32_t       len;

    if (SKY_Node_Listeners(&isl->node, now_us) == 0)
    {
        return;
    }
    len = ISL_Bus_Encode(message, &bytes);
    if (len == 0)
    {
        ++isl->node.relay_errors;
        return;
    }
    SKY_Node_Telemetry(&isl->node, now_us, bytes, len);
}

/* ---- tables ---------------------------------------------------------------------------------------------------------- */

bool ISL_Node_SetNeighbours(ISL_Node_t *isl, uint64_t now_us, const ISL_NeighboursTable_t *table)
{
    SKY_NodeCfg_t    cfg;
    SKY_NodeResult_t result;
    uint32_t         id;

    memset(&cfg, 0, sizeof(cfg));
    cfg.self.plane   = table->SelfPlane;
    cfg.self.slot    = table->SelfSlot;
    cfg.packet_bytes = table->PacketBytes;
    cfg.hello_us     = table->HelloS * ISL_US_PER_S;
    cfg.poll_most_us = ISL_POLL_MOST_US;
    cfg.lease_us     = ISL_PLATFORM_LISTENER_LEASE_S * ISL_US_PER_S;
    (void)SKY_Torus_Init(&cfg.torus, table->Planes, table->Slots, table->SeamCut != 0); /* the table was validated */
    for (id = 0; id < SKY_ISL_COUNT; ++id)
    {
        const ISL_Neighbour_t *const entry = &table->Neighbour[id];

        cfg.neighbours[id].is_present = entry->Present != 0;
        cfg.neighbours[id].addr.plane = entry->Plane;
        cfg.neighbours[id].addr.slot  = entry->Slot;
        cfg.neighbours[id].endpoint   = SKY_Endpoint_Of(entry->Ipv4, entry->Port);
    }
    result = SKY_Node_Configure(&isl->node, now_us, &cfg); /* validated tables are not refused */
    if (result != SKY_NODE_REFUSED)
    {
        isl->uplink_first_mid = table->UplinkFirstMid;
        isl->uplink_last_mid  = table->UplinkLastMid;
        ISL_Line_Reset(isl);
    }
    return result == SKY_NODE_CONFIGURED;
}

void ISL_Node_SetModels(ISL_Node_t *isl, uint64_t now_us, const ISL_LinksTable_t *table)
{
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        const ISL_LinkEntry_t *const entry = &table->Link[id];
        const SKY_LinkModel_t        model = {entry->DelayUs, entry->JitterUs, entry->RateKbps, entry->LossPpm, entry->Cut != 0};

        ISL_Line_SetModel(isl, (SKY_LinkId_t)id, &model);
        SKY_Node_SetModel(&isl->node, now_us, (SKY_LinkId_t)id, &model);
    }
}
