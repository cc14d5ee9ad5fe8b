/**
 * @file
 * Software Bus messages that are structures of electronic data sheets: the runtime library turns them into space packets, in the
 * byte order that the mission's data sheets say, and back. Messages that no data sheet describes are not relayed.
 */
#include "isl_bus.h"

#include <string.h>

#include "cfe_config.h"
#include "cfe_hdr_eds_datatypes.h"
#include "cfe_mission_eds_interface_parameters.h"
#include "cfe_mission_eds_parameters.h"
#include "cfe_missionlib_api.h"
#include "cfe_missionlib_runtime.h"
#include "edslib_datatypedb.h"
#include "edslib_intfdb.h"

#define ISL_BITS(bytes) (8u * (bytes))

static const EdsLib_DatabaseObject_t *ISL_Bus_Database(void)
{
    return CFE_Config_GetObjPointer(CFE_CONFIGID_MISSION_EDS_DB);
}

/** Find the type of the messages of a topic. @return false if no data sheet describes it */
static bool ISL_Bus_TypeOf(EdsLib_Id_t command, uint16_t topic, EdsLib_Id_t *type)
{
    CFE_MissionLib_TopicInfo_t info;

    memset(&info, 0, sizeof(info));
    return CFE_MissionLib_GetTopicInfo(&CFE_SOFTWAREBUS_INTERFACE, topic, &info) == CFE_MISSIONLIB_SUCCESS &&
           EdsLib_Is_Valid(info.ParentIntfId) &&
           EdsLib_IntfDB_FindAllArgumentTypes(ISL_Bus_Database(), command, info.ParentIntfId, type, 1) == EDSLIB_SUCCESS;
}

/** Decode the headers first: only a packet that they admit is decoded further. */
static SKY_Status_t ISL_Bus_DecodeHeader(const uint8_t *bytes, const EdsLib_SizeInfo_t *room, CFE_SB_MsgId_Atom_t first_mid,
                                         CFE_SB_MsgId_Atom_t last_mid, CFE_SB_Buffer_t *buffer, EdsLib_SizeInfo_t *done)
{
    EdsLib_Id_t                  header = EDSLIB_MAKE_ID(EDS_INDEX(CFE_HDR), EdsContainer_CFE_HDR_CommandHeader_DATADICTIONARY);
    CFE_MSG_Type_t               type   = CFE_MSG_Type_Invalid;
    CFE_SB_MsgId_t               mid    = CFE_SB_INVALID_MSG_ID;
    CFE_SB_MsgId_Atom_t          value;
    EdsLib_DataTypeDB_TypeInfo_t info;

    if (EdsLib_DataTypeDB_GetTypeInfo(ISL_Bus_Database(), header, &info) != EDSLIB_SUCCESS || room->Bits < info.Size.Bits)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    if (EdsLib_DataTypeDB_UnpackPartialObjectVarSize(ISL_Bus_Database(), &header, buffer, bytes, room, done) != EDSLIB_SUCCESS ||
        CFE_MSG_GetType(&buffer->Msg, &type) != CFE_SUCCESS || type != CFE_MSG_Type_Cmd ||
        CFE_MSG_GetMsgId(&buffer->Msg, &mid) != CFE_SUCCESS)
    {
        return SKY_STATUS_BAD_HEADER;
    }
    value = CFE_SB_MsgIdToValue(mid);
    return last_mid != 0 && value >= first_mid && value <= last_mid ? SKY_STATUS_OK : SKY_STATUS_REFUSED;
}

static SKY_Status_t ISL_Bus_DecodeBody(const uint8_t *bytes, const EdsLib_SizeInfo_t *room, CFE_SB_Buffer_t *buffer,
                                       EdsLib_SizeInfo_t *done)
{
    const EdsLib_Id_t command = EDSLIB_INTF_ID(EDS_INDEX(CFE_SB), EdsCommand_CFE_SB_Telecommand_indication_DECLARATION);
    CFE_SB_SoftwareBus_PubSub_Interface_t address;
    CFE_SB_Listener_Component_t           listener;
    EdsLib_Id_t                           type = EDSLIB_ID_INVALID;

    CFE_MissionLib_Get_PubSub_Parameters(&address, &buffer->Msg.BaseMsg);
    CFE_MissionLib_UnmapListenerComponent(&listener, &address);
    if (!ISL_Bus_TypeOf(command, listener.Telecommand.TopicId, &type))
    {
        return SKY_STATUS_BAD_HEADER;
    }
    if (EdsLib_DataTypeDB_UnpackPartialObjectVarSize(ISL_Bus_Database(), &type, buffer, bytes, room, done) != EDSLIB_SUCCESS ||
        done->Bits != room->Bits)
    {
        return SKY_STATUS_BAD_LENGTH;
    }
    /* Check length and checksum of the packet against its bytes; from here on the length is that of the structure. */
    if (EdsLib_DataTypeDB_VerifyUnpackedObjectVarSize(ISL_Bus_Database(), type, buffer, bytes, EDSLIB_DATATYPEDB_RECOMPUTE_LENGTH,
                                                      done) != EDSLIB_SUCCESS)
    {
        return SKY_STATUS_BAD_CHECKSUM;
    }
    return SKY_STATUS_OK;
}

SKY_Status_t ISL_Bus_Decode(const uint8_t *bytes, uint32_t len, CFE_SB_MsgId_Atom_t first_mid, CFE_SB_MsgId_Atom_t last_mid,
                            CFE_SB_Buffer_t **out)
{
    CFE_SB_Buffer_t  *buffer;
    EdsLib_SizeInfo_t room;
    EdsLib_SizeInfo_t done;
    SKY_Status_t      status;

    if (len > SKY_LIMIT_RELAY_BYTES)
    {
        return SKY_STATUS_TOO_LARGE;
    }
    buffer = CFE_SB_AllocateMessageBuffer(sizeof(EdsNativeBuffer_CFE_HDR_CommandHeader_t));
    if (buffer == NULL)
    {
        return SKY_STATUS_BUSY;
    }
    memset(&room, 0, sizeof(room));
    memset(&done, 0, sizeof(done));
    room.Bits  = ISL_BITS(len);
    room.Bytes = sizeof(EdsNativeBuffer_CFE_HDR_CommandHeader_t);
    status     = ISL_Bus_DecodeHeader(bytes, &room, first_mid, last_mid, buffer, &done);
    if (status == SKY_STATUS_OK)
    {
        status = ISL_Bus_DecodeBody(bytes, &room, buffer, &done);
    }
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
    static EdsPackedBuffer_CFE_HDR_TelemetryHeader_t packet; /* room for the largest telemetry of all data sheets */
    const EdsLib_Id_t indication = EDSLIB_INTF_ID(EDS_INDEX(CFE_SB), EdsCommand_CFE_SB_Telemetry_indication_DECLARATION);
    CFE_SB_SoftwareBus_PubSub_Interface_t address;
    CFE_SB_Publisher_Component_t          publisher;
    EdsLib_DataTypeDB_TypeInfo_t          info;
    EdsLib_Id_t                           type = EDSLIB_ID_INVALID;
    CFE_MSG_Size_t                        size = 0;
    uint32_t                              len;

    CFE_MissionLib_Get_PubSub_Parameters(&address, &message->BaseMsg);
    CFE_MissionLib_UnmapPublisherComponent(&publisher, &address);
    if (CFE_MSG_GetSize(message, &size) != CFE_SUCCESS || !ISL_Bus_TypeOf(indication, publisher.Telemetry.TopicId, &type) ||
        EdsLib_DataTypeDB_PackCompleteObject(ISL_Bus_Database(), &type, packet, message, ISL_BITS((uint32_t)sizeof(packet)),
                                             (uint32_t)size) != EDSLIB_SUCCESS ||
        EdsLib_DataTypeDB_GetTypeInfo(ISL_Bus_Database(), type, &info) != EDSLIB_SUCCESS)
    {
        return 0;
    }
    len    = (info.Size.Bits + 7u) / 8u;
    *bytes = packet;
    return len <= SKY_LIMIT_RELAY_BYTES ? len : 0u;
}
