/**
 * @file
 * cFE's time: seconds since the epoch, and a binary fraction.
 */
#ifndef CFE_TIME_EXTERN_TYPEDEFS_H
#define CFE_TIME_EXTERN_TYPEDEFS_H

#include "common_types.h"

typedef struct CFE_TIME_SysTime
{
    uint32 Seconds;
    uint32 Subseconds; /**< 1 / 2^32 s */
} CFE_TIME_SysTime_t;

#endif
