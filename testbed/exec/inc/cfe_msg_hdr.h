/**
 * @file
 * Headers of messages, CCSDS version 1: command 6 + 2 bytes; telemetry 6 + 6 bytes and 4 spare, so that what follows is aligned.
 */
#ifndef CFE_MSG_HDR_H
#define CFE_MSG_HDR_H

#include "cfe_msg_api_typedefs.h"

/** The message part of a command or telemetry header, or of a Software Bus buffer. */
#define CFE_MSG_PTR(shdr) (&((shdr).Msg))

typedef struct CCSDS_PrimaryHeader
{
    uint8 StreamId[2]; /**< version, type, secondary header flag, APID */
    uint8 Sequence[2]; /**< segmentation flags, count */
    uint8 Length[2];   /**< bytes of the whole packet, less 7 */
} CCSDS_PrimaryHeader_t;

typedef struct
{
    CCSDS_PrimaryHeader_t Pri;
} CCSDS_SpacePacket_t;

typedef struct
{
    uint8 FunctionCode;
    uint8 Checksum;
} CFE_MSG_CommandSecondaryHeader_t;

typedef struct
{
    uint8 Time[6]; /**< seconds, upper half of the subseconds */
} CFE_MSG_TelemetrySecondaryHeader_t;

struct CFE_MSG_Message
{
    CCSDS_SpacePacket_t CCSDS;
};

struct CFE_MSG_CommandHeader
{
    CFE_MSG_Message_t                Msg;
    CFE_MSG_CommandSecondaryHeader_t Sec;
};

struct CFE_MSG_TelemetryHeader
{
    CFE_MSG_Message_t                  Msg;
    CFE_MSG_TelemetrySecondaryHeader_t Sec;
    uint8                              Spare[4];
};

#endif
