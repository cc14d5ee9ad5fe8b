/**
 * @file
 * Types of the message interface.
 */
#ifndef CFE_MSG_API_TYPEDEFS_H
#define CFE_MSG_API_TYPEDEFS_H

#include "cfe_error.h"

#define CFE_MSG_BAD_ARGUMENT   CFE_SB_BAD_ARGUMENT
#define CFE_MSG_WRONG_MSG_TYPE CFE_SB_WRONG_MSG_TYPE

typedef size_t CFE_MSG_Size_t;
typedef uint16 CFE_MSG_FcnCode_t;
typedef uint16 CFE_MSG_ApId_t;
typedef uint16 CFE_MSG_SequenceCount_t;

typedef enum CFE_MSG_Type
{
    CFE_MSG_Type_Invalid,
    CFE_MSG_Type_Cmd,
    CFE_MSG_Type_Tlm
} CFE_MSG_Type_t;

typedef enum CFE_MSG_SegmentationFlag
{
    CFE_MSG_SegFlag_Invalid,
    CFE_MSG_SegFlag_Continue,
    CFE_MSG_SegFlag_First,
    CFE_MSG_SegFlag_Last,
    CFE_MSG_SegFlag_Unsegmented
} CFE_MSG_SegmentationFlag_t;

typedef struct CFE_MSG_Message         CFE_MSG_Message_t;
typedef struct CFE_MSG_CommandHeader   CFE_MSG_CommandHeader_t;
typedef struct CFE_MSG_TelemetryHeader CFE_MSG_TelemetryHeader_t;

#endif
