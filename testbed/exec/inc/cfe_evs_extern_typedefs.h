/**
 * @file
 * Types of the event services that appear in other interfaces.
 */
#ifndef CFE_EVS_EXTERN_TYPEDEFS_H
#define CFE_EVS_EXTERN_TYPEDEFS_H

#include "common_types.h"

/** Kinds of events; debug events are not sent, as in cFS. */
enum CFE_EVS_EventType
{
    CFE_EVS_EventType_DEBUG       = 1,
    CFE_EVS_EventType_INFORMATION = 2,
    CFE_EVS_EventType_ERROR       = 3,
    CFE_EVS_EventType_CRITICAL    = 4
};
typedef uint16 CFE_EVS_EventType_Enum_t;

enum CFE_EVS_EventFilter
{
    CFE_EVS_EventFilter_BINARY = 0
};
typedef uint8 CFE_EVS_EventFilter_Enum_t;

#endif
