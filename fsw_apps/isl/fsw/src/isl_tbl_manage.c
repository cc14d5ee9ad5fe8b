/**
 * @file
 * The tables ISL.Neighbours and ISL.Links: registration, validation, taking over.
 */
#include "isl_tbl_manage.h"

#include <string.h>

#include "isl_app.h"
#include "isl_eventids.h"
#include "isl_security.h"
#include "isl_task.h"
#include "isl_tlm.h"
#include "sky_defaults.h"

#define ISL_PPM 1000000u

static const char *const ISL_LinkNames[ISL_LINK_COUNT] = {"north", "east", "south", "west", "ground"};

/* ---- validation ---------------------------------------------------------------------------------------------------- */

static bool ISL_InRange(const char *where, const char *field, uint32 value, uint32 least, uint32 most)
{
    if (value >= least && value <= most)
    {
        return true;
    }
    (void)CFE_EVS_SendEvent(ISL_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR, "%s: %s is %lu, allowed %lu .. %lu", where, field,
                            (unsigned long)value, (unsigned long)least, (unsigned long)most);
    return false;
}

static bool ISL_ValidateNeighbour(const ISL_NeighboursTable_t *table, const SKY_Torus_t *torus, uint32 id)
{
    const ISL_Neighbour_t *const entry  = &table->Neighbour[id];
    const SKY_Addr_t             self   = {table->SelfPlane, table->SelfSlot};
    const SKY_Addr_t             actual = {entry->Plane, entry->Slot};
    const SKY_Addr_t             wanted = SKY_Torus_Neighbour(torus, self, (SKY_LinkId_t)id);

    if (!ISL_InRange(ISL_LinkNames[id], "Present", entry->Present, 0, 1))
    {
        return false;
    }
    if (entry->Present == 0)
    {
        return true;
    }
    if (wanted.plane == 0 || !SKY_Addr_Equal(actual, wanted))
    {
        (void)CFE_EVS_SendEvent(ISL_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "ISL.Neighbours: %s of (%u, %u) is (%u, %u), not (%u, %u)", ISL_LinkNames[id],
                                (unsigned)self.plane, (unsigned)self.slot, (unsigned)wanted.plane, (unsigned)wanted.slot,
                                (unsigned)actual.plane, (unsigned)actual.slot);
        return false;
    }
    return ISL_InRange(ISL_LinkNames[id], "Ipv4", entry->Ipv4, 1, UINT32_MAX) &&
           ISL_InRange(ISL_LinkNames[id], "Port", entry->Port, 1, UINT16_MAX);
}

static bool ISL_IsTelemetry(uint32 mid)
{
    CFE_MSG_TelemetryHeader_t message;
    CFE_MSG_Type_t            type = CFE_MSG_Type_Invalid;

    memset(&message, 0, sizeof(message));
    return CFE_MSG_Init(CFE_MSG_PTR(message), CFE_SB_ValueToMsgId(mid), sizeof(message)) == CFE_SUCCESS &&
           CFE_MSG_GetType(CFE_MSG_PTR(message), &type) == CFE_SUCCESS && type == CFE_MSG_Type_Tlm;
}

/** Validate the list of telemetry. A command in it, maybe one of ISL's own, would be told to strangers; each id is subscribed to
 * once. */
static bool ISL_ValidateDownlink(const ISL_NeighboursTable_t *table)
{
    uint32 i;
    uint32 before;

    for (i = 0; i < ISL_DOWNLINK_MIDS; ++i)
    {
        const uint32 mid = table->DownlinkMid[i];
        bool         ok  = mid == 0 || ISL_IsTelemetry(mid);

        for (before = 0; before < i; ++before)
        {
            ok = ok && (mid == 0 || table->DownlinkMid[before] != mid);
        }
        if (!ok)
        {
            (void)CFE_EVS_SendEvent(ISL_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                    "ISL.Neighbours: DownlinkMid[%lu] is 0x%04lX, allowed is telemetry, each id once; 0: none",
                                    (unsigned long)i, (unsigned long)mid);
            return false;
        }
    }
    return true;
}

int32 ISL_Tbl_ValidateNeighbours(void *data)
{
    static const char *const           where = "ISL.Neighbours";
    const ISL_NeighboursTable_t *const table = data;
    SKY_Torus_t                        torus;
    uint32                             id;

    if (!ISL_InRange(where, "Planes", table->Planes, 1, UINT16_MAX) ||
        !ISL_InRange(where, "Slots", table->Slots, 1, UINT16_MAX) ||
        !ISL_InRange(where, "SelfPlane", table->SelfPlane, 1, table->Planes) ||
        !ISL_InRange(where, "SelfSlot", table->SelfSlot, 1, table->Slots) ||
        !ISL_InRange(where, "SeamCut", table->SeamCut, 0, 1) ||
        !ISL_InRange(where, "LocalPort", table->LocalPort, 1, UINT16_MAX) ||
        !ISL_InRange(where, "HelloS", table->HelloS, 0, SKY_MOST_HELLO_S) ||
        !ISL_InRange(where, "PacketBytes", table->PacketBytes, SKY_LEAST_PACKET_BYTES, SKY_LIMIT_PACKET_BYTES) ||
        !ISL_InRange(where, "UplinkLastMid", table->UplinkLastMid, table->UplinkFirstMid,
                     table->UplinkFirstMid != 0 ? UINT32_MAX : 0) ||
        !ISL_ValidateDownlink(table) || !SKY_Torus_Init(&torus, table->Planes, table->Slots, table->SeamCut != 0))
    {
        return CFE_STATUS_VALIDATION_FAILURE;
    }
    for (id = 0; id < ISL_NEIGHBOUR_COUNT; ++id)
    {
        if (!ISL_ValidateNeighbour(table, &torus, id))
        {
            return CFE_STATUS_VALIDATION_FAILURE;
        }
    }
    return CFE_SUCCESS;
}

int32 ISL_Tbl_ValidateLinks(void *data)
{
    const ISL_LinksTable_t *const table = data;
    uint32                        id;

    for (id = 0; id < ISL_LINK_COUNT; ++id)
    {
        const ISL_LinkEntry_t *const entry = &table->Link[id];

        if (!ISL_InRange(ISL_LinkNames[id], "DelayUs", entry->DelayUs, 0, SKY_MOST_DELAY_US) ||
            !ISL_InRange(ISL_LinkNames[id], "JitterUs", entry->JitterUs, 0, SKY_MOST_DELAY_US) ||
            !ISL_InRange(ISL_LinkNames[id], "LossPpm", entry->LossPpm, 0, ISL_PPM) ||
            !ISL_InRange(ISL_LinkNames[id], "Cut", entry->Cut, 0, 1))
        {
            return CFE_STATUS_VALIDATION_FAILURE;
        }
    }
    return CFE_SUCCESS;
}

/* ---- taking over --------------------------------------------------------------------------------------------------- */

/** Tell all services which satellite this is. The order of locks forbids it under the node's lock, so this works on a copy. */
static void ISL_TellServices(const ISL_NeighboursTable_t *table)
{
    SKY_LIB_Node_t node;
    uint32         refused;

    memset(&node, 0, sizeof(node));
    node.self.plane   = table->SelfPlane;
    node.self.slot    = table->SelfSlot;
    node.packet_bytes = table->PacketBytes;
    (void)SKY_Torus_Init(&node.torus, table->Planes, table->Slots, table->SeamCut != 0); /* the table was validated */
    refused = SKY_LIB_SetNode(&node);
    if (refused > 0)
    {
        (void)CFE_EVS_SendEvent(ISL_SERVICE_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: %lu services cannot serve this satellite",
                                (unsigned long)refused);
    }
    (void)CFE_EVS_SendEvent(ISL_NODE_INF_EID, CFE_EVS_EventType_INFORMATION,
                            "ISL: satellite (%u, %u) of %u x %u, packets of %lu bytes", (unsigned)table->SelfPlane,
                            (unsigned)table->SelfSlot, (unsigned)table->Planes, (unsigned)table->Slots,
                            (unsigned long)table->PacketBytes);
}

static CFE_Status_t ISL_Apply(const ISL_NeighboursTable_t *neighbours, const ISL_LinksTable_t *links, bool new_neighbours)
{
    const uint64_t    now_us  = SKY_LIB_NowUs();
    CFE_Status_t      status  = CFE_SUCCESS;
    uint32_t          slots   = 0;
    bool              has_map = true;
    ISL_Node_t *const isl     = ISL_Task_Enter();

    if (isl == NULL)
    {
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    if (new_neighbours)
    {
        has_map = ISL_Node_SetNeighbours(isl, now_us, neighbours);
    }
    ISL_Node_SetModels(isl, now_us, links);
    slots = ISL_Line_AnyReady(isl) ? ISL_Line_Slots(isl) : 0;
    ISL_Task_Leave();
    if (!has_map)
    {
        (void)CFE_EVS_SendEvent(ISL_MAP_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: %u x %u satellites have no room in a map of %lu: ways lead around own links only",
                                (unsigned)neighbours->Planes, (unsigned)neighbours->Slots,
                                (unsigned long)ISL_PLATFORM_MAP_SATELLITES);
    }
    if (slots > 0)
    {
        (void)CFE_EVS_SendEvent(ISL_LINES_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL: links are emulated; each holds %lu packets of %lu bytes: no burst should be longer",
                                (unsigned long)slots, (unsigned long)neighbours->PacketBytes);
    }
    if (new_neighbours)
    {
        ISL_TellServices(neighbours);
        status = ISL_Tlm_Subscribe(neighbours);
    }
    return status;
}

/** Note the socket's address. The first one is taken over; a later, new one has to wait for a restart. */
static void ISL_NoteEndpoint(const ISL_NeighboursTable_t *table)
{
    if (ISL_Data.LocalPort == 0)
    {
        ISL_Data.LocalIpv4 = table->LocalIpv4;
        ISL_Data.LocalPort = table->LocalPort;
    }
    else if (ISL_Data.LocalIpv4 != table->LocalIpv4 || ISL_Data.LocalPort != table->LocalPort)
    {
        (void)CFE_EVS_SendEvent(ISL_RESTART_INF_EID, CFE_EVS_EventType_INFORMATION,
                                "ISL.Neighbours: LocalIpv4 and LocalPort take effect at the next start");
    }
}

/** Take new values over. @return CFE_SUCCESS also if nothing is new */
static CFE_Status_t ISL_Tbl_Update(void)
{
    void              *neighbours        = NULL;
    void              *links             = NULL;
    const CFE_Status_t neighbours_status = CFE_TBL_GetAddress(&neighbours, ISL_Data.NeighboursHandle);
    const CFE_Status_t links_status      = CFE_TBL_GetAddress(&links, ISL_Data.LinksHandle);
    const bool         neighbours_new    = neighbours_status == CFE_TBL_INFO_UPDATED;
    const bool         links_new         = links_status == CFE_TBL_INFO_UPDATED;
    CFE_Status_t       status            = CFE_SUCCESS;

    if (!(neighbours_new || neighbours_status == CFE_SUCCESS))
    {
        status = neighbours_status;
    }
    else if (!(links_new || links_status == CFE_SUCCESS))
    {
        status = links_status;
    }
    else if (neighbours_new || links_new)
    {
        if (neighbours_new)
        {
            ISL_NoteEndpoint(neighbours);
        }
        status = ISL_Apply(neighbours, links, neighbours_new);
    }
    if (status == CFE_SUCCESS)
    {
        status = ISL_Security_Update();
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: tables cannot be taken over, status 0x%08lX",
                                (unsigned long)(uint32)status);
    }
    if (neighbours != NULL)
    {
        (void)CFE_TBL_ReleaseAddress(ISL_Data.NeighboursHandle);
    }
    if (links != NULL)
    {
        (void)CFE_TBL_ReleaseAddress(ISL_Data.LinksHandle);
    }
    return status;
}

CFE_Status_t ISL_Tbl_Load(CFE_TBL_Handle_t *handle, const char *name, size_t size, CFE_TBL_CallbackFuncPtr_t validate,
                          const char *file)
{
    CFE_Status_t status = CFE_TBL_Register(handle, name, size, CFE_TBL_OPT_DEFAULT, validate);

    if (status == CFE_SUCCESS)
    {
        status = CFE_TBL_Load(*handle, CFE_TBL_SRC_FILE, file);
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "ISL.%s cannot be loaded from %s, status 0x%08lX", name,
                                file, (unsigned long)(uint32)status);
    }
    return status;
}

CFE_Status_t ISL_Tbl_Init(void)
{
    CFE_Status_t status = ISL_Tbl_Load(&ISL_Data.NeighboursHandle, ISL_NEIGHBOURS_TABLE_NAME, sizeof(ISL_NeighboursTable_t),
                                       ISL_Tbl_ValidateNeighbours, ISL_NEIGHBOURS_TABLE_FILE);

    if (status == CFE_SUCCESS)
    {
        status = ISL_Tbl_Load(&ISL_Data.LinksHandle, ISL_LINKS_TABLE_NAME, sizeof(ISL_LinksTable_t), ISL_Tbl_ValidateLinks,
                              ISL_LINKS_TABLE_FILE);
    }
    if (status == CFE_SUCCESS)
    {
        status = ISL_Security_InitTables();
    }
    return status == CFE_SUCCESS ? ISL_Tbl_Update() : status;
}

void ISL_Tbl_Manage(void)
{
    (void)CFE_TBL_Manage(ISL_Data.NeighboursHandle);
    (void)CFE_TBL_Manage(ISL_Data.LinksHandle);
    ISL_Security_ManageTables();
    (void)ISL_Tbl_Update();
}
