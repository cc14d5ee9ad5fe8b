/**
 * @file
 * The event as a telemetry message (long format).
 */
#ifndef CFE_EVS_MSG_H
#define CFE_EVS_MSG_H

#include "cfe_core_api_base_msgids.h"
#include "cfe_evs_extern_typedefs.h"
#include "cfe_mission_cfg.h"
#include "cfe_msg_hdr.h"

#define CFE_EVS_LONG_EVENT_MSG_MID CFE_PLATFORM_TLM_TOPICID_TO_MIDV(8)

typedef struct CFE_EVS_PacketID
{
    char                     AppName[CFE_MISSION_MAX_API_LEN];
    uint16                   EventID;
    CFE_EVS_EventType_Enum_t EventType;
    uint32                   SpacecraftID;
    uint32                   ProcessorID;
} CFE_EVS_PacketID_t;

typedef struct CFE_EVS_LongEventTlm_Payload
{
    CFE_EVS_PacketID_t PacketID;
    char               Message[CFE_MISSION_EVS_MAX_MESSAGE_LENGTH];
    uint8              Padding[2];
} CFE_EVS_LongEventTlm_Payload_t;

typedef struct CFE_EVS_LongEventTlm
{
    CFE_MSG_TelemetryHeader_t      TelemetryHeader;
    CFE_EVS_LongEventTlm_Payload_t Payload;
} CFE_EVS_LongEventTlm_t;

#endif
